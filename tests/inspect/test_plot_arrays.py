"""Arrays as HTML and as figures: what cells say, and that looking changes nothing."""

import re
import sys
import tracemalloc
from html.parser import HTMLParser

import ml_dtypes
import numpy as np
import pytest
from memory_in_use import live_bytes

import nbta
from nbta.display.array_view import MARKS, STATES, view_of
from nbta.runtime import python_calls
from nbta.testing import check_grads


class Page(HTMLParser):
    """Open tags with their classes, the text, and whether all tags are closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.classes, self.text = [], [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        self.classes.append(dict(attrs).get("class", ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if self.open[-1:] != ["style"] else ""


def page_of(array):
    page = Page(array._repr_html_())
    assert page.open == []
    assert "script" not in page.tags
    return page


def cells_of(array):
    return [(slot.state, *slot.lines) for slot in view_of(array).slots]


def bits_of(array):
    return python_calls.native(python_calls.state_bytes)(array._address)[: len(array)].tolist()


def all_states():
    ta = nbta.TensorArray("float64", size=5, clear_after_read=True, element_shape=(2,))
    for i in range(3):
        ta.write(i, [i, i / 3])
    ta.read(0)
    return ta


def accumulated():
    """A forward array that keeps, with two gradient arrays, one of which has one itself."""
    ta = nbta.TensorArray("float64", size=4, clear_after_read=False).scatter([0, 1, 2], np.ones(3))
    ta.read(1)
    first = ta.grad("first").write(0, 0.5).write(0, 0.25)
    ta.grad("second").write(1, 1.0).read(1)
    first.grad("third")
    return ta


def ragged():
    ta = nbta.TensorArray("int64", dynamic_size=True, infer_shape=False)
    return ta.write(0, [[1, 2], [3, 4]]).write(2, 7).write(3, np.zeros((3, 3), np.int64))


ARRAYS = {
    "states": all_states,
    "accumulated": accumulated,
    "ragged": ragged,
    "empty": lambda: nbta.TensorArray("float64"),
    "nothing known": lambda: nbta.TensorArray("float64", size=3),
    "half": lambda: nbta.TensorArray("float16", size=1).write(0, np.float16(1.5)),
    "brain": lambda: nbta.TensorArray(ml_dtypes.bfloat16, size=1).write(0, ml_dtypes.bfloat16(2)),
    "bool": lambda: nbta.TensorArray("bool", size=2).write(0, True),
    "complex": lambda: nbta.TensorArray("complex64", size=1).write(0, 1 + 2j),
    "bytes": lambda: nbta.TensorArray("S4", size=1).write(0, np.bytes_(b"<i>")),
    "text": lambda: nbta.TensorArray("U4", size=1).write(0, np.str_("<é>")),
    "dates": lambda: nbta.TensorArray("M8[D]", size=1).write(0, np.datetime64("2020-01-02")),
    "records": lambda: nbta.TensorArray([("a", "i4"), ("b", "f8")], size=2),
    "no items": lambda: nbta.TensorArray("float64", size=1).write(0, np.zeros((0, 3))),
}  # fmt: skip


def test_states_of_a_forward_array():
    assert cells_of(all_states()) == [
        ("cleared",), ("written", "1 0.3333"), ("written", "2 0.6667"), ("unwritten",),
        ("unwritten",),
    ]  # fmt: skip


def test_states_of_gradient_arrays_which_stand_below():
    view = view_of(accumulated())
    assert [slot.state for slot in view.slots] == ["written", "read", "written", "unwritten"]
    first, second = view.below
    assert first.title == "gradient array of source 'first'"
    assert [(s.state, *s.lines) for s in first.slots[:3]] == [
        ("sum", "0.75"), ("zeros", "0"), ("zeros", "0"),
    ]  # fmt: skip
    assert [slot.state for slot in second.slots] == ["zeros", "cleared", "zeros", "unwritten"]
    assert [below.title for below in first.below] == ["gradient array of source 'third'"]


def test_an_unwritten_slot_that_was_read_as_zeros_counts_as_read():
    ta = nbta.TensorArray("float64", size=1, element_shape=(), clear_after_read=False)
    ta.read(0)
    assert cells_of(ta) == [("read", "0")]


def test_small_values_are_shown_and_larger_ones_by_their_shape():
    assert cells_of(ragged()) == [
        ("written", "1 2", "3 4"), ("unwritten",), ("written", "7"), ("written", "(3, 3)"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("half", "1.5"), ("brain", "2"), ("bool", "True"), ("complex", "1+2j"),
        ("bytes", "b'<i>'"), ("text", "'<é>'"), ("dates", "2020-01-02"), ("no items", "(0, 3)"),
    ],
)  # fmt: skip
def test_values_of_each_dtype(name, value):
    assert cells_of(ARRAYS[name]())[0] == ("written", value)


def test_records_are_shown():
    dtype = np.dtype([("a", "i4"), ("b", "f8")])
    ta = nbta.TensorArray(dtype, size=1).write(0, np.array((1, 2.5), dtype))
    assert cells_of(ta) == [("written", "(1, 2.5)")]


def test_sums_of_half_precision_are_shown_as_they_are_kept():
    ta = nbta.TensorArray("float16", size=1).write(0, np.float16(1))
    ta.grad("g").write(0, np.float16(0.5)).write(0, np.float16(0.25))
    assert view_of(ta).below[0].slots[0].lines == ("0.75",)


def test_the_header_says_what_the_array_is():
    ta = nbta.TensorArray("int32", dynamic_size=True, tensor_array_name="counts")
    text = page_of(ta.write(0, np.int32(1)).write(2, np.int32(5))).text
    facts = "int32 · scalars · 3 slots · grows · keeps what is read"
    assert re.match(rf"counts_\d+ {facts}1 unwritten, 2 written", text)


@pytest.mark.parametrize("name", ARRAYS)
def test_looking_changes_nothing(name):
    array = ARRAYS[name]()
    before, live = bits_of(array), live_bytes()
    fields = list(array._fields)
    html = array._repr_html_()
    array.plot()
    assert (bits_of(array), list(array._fields)) == (before, fields)
    assert live_bytes() == live
    assert html == array._repr_html_()
    assert python_calls.native(python_calls.guards_intact)(array._address)
    Page(html)


def test_virtual_zeros_stay_virtual():
    ta = nbta.TensorArray("float64", size=100, element_shape=(1000,))
    ta.unstack(np.zeros((100, 1000)))
    gradient = ta.grad("g")
    live = live_bytes()
    assert view_of(gradient).slots[5].lines == ("0",)
    assert page_of(ta).text.count("zeros") >= 40
    assert live_bytes() == live
    np.testing.assert_array_equal(gradient.read(0), np.zeros(1000))


def test_a_closed_array_says_so_and_gradient_arrays_live_on():
    ta = nbta.TensorArray("float64", size=1).write(0, 1.0)
    gradient = ta.grad("g").write(0, 2.0)
    ta.close()
    view = view_of(ta)
    assert view.facts[-1] == "closed"
    assert (view.slots, view.below) == ([], [])
    assert view_of(gradient).slots[0].lines == ("2",)
    page_of(ta)
    ta.plot()


def test_of_many_slots_the_first_and_the_last_are_shown():
    ta = nbta.TensorArray("int32", size=10**6).unstack(np.arange(10**6, dtype=np.int32))
    view = view_of(ta)
    assert [slot.number for slot in view.slots[-8:]] == [39, *range(999_993, 10**6)]
    assert (view.left_out, view.counts) == (999_953, {})
    tracemalloc.start()
    page = page_of(ta)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500_000
    assert "… 999,953 more …" in page.text
    assert sum("nbta-slot " in kind for kind in page.classes) == len(view.slots) == 47


def test_all_text_is_escaped():
    name = "<script>alert(1)</script>&\"'\x00\ud800"
    ta = nbta.TensorArray("S30", size=1, tensor_array_name=name)
    ta.write(0, np.bytes_(b"</code><script>"))
    page = page_of(ta)
    assert "<script>alert(1)</script>&\"'" in page.text
    ta.plot().figure.canvas.draw()
    numbers = nbta.TensorArray("float64", size=1, tensor_array_name="$x_{$")
    numbers.grad(name)
    assert "source '<script>" in page_of(numbers).text
    numbers.plot().figure.canvas.draw()


def test_html_brings_its_own_colours_and_nothing_else():
    html = accumulated()._repr_html_()
    assert "http" not in html
    assert "url(" not in html
    for state in STATES:
        assert f".nbta-{state}" in html
    assert MARKS.keys() == STATES.keys()


# Figures.


def patches_of(axes):
    return [patch.get_gid() for patch in axes.patches]


def test_a_figure_has_the_same_cells_and_a_legend():
    array = accumulated()
    axes = array.plot()
    views = [view_of(array)]
    cells = []
    while views:
        view = views.pop(0)
        cells += [f"{slot.state}-{slot.number}" for slot in view.slots]
        views = view.below + views
    assert patches_of(axes) == cells
    told = [text.get_text() for text in axes.get_legend().get_texts()]
    assert told == list(STATES.values())


def test_a_figure_goes_into_given_axes():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    assert all_states().plot(axes) is axes
    assert len(axes.patches) == 5
    with pytest.raises(nbta.InvalidArgumentError, match="axes must be matplotlib axes, not 3"):
        all_states().plot(3)


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("PDF", b"%PDF")]
)
def test_a_figure_goes_into_a_file(tmp_path, suffix, start):
    file = tmp_path / f"array.{suffix}"
    array = all_states()
    axes = array.plot(file)
    assert len(axes.patches) == 5
    assert file.read_bytes().startswith(start)
    written = file.read_bytes()
    array.plot(str(file))
    assert file.read_bytes() == written


def test_other_files_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "array.jpeg"
    with pytest.raises(
        nbta.InvalidArgumentError, match=r"must end in .svg, .png or .pdf"
    ) as caught:
        all_states().plot(file)
    assert caught.value.reason == "file"
    with pytest.raises(FileNotFoundError):
        all_states().plot(tmp_path / "none" / "array.png")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(nbta.FailedPreconditionError, match=r"TensorArray.plot needs matplotlib"):
        all_states().plot(tmp_path / "array.png")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    words = re.escape('TensorArray.plot needs matplotlib: pip install "nbta[plot]"')
    with pytest.raises(nbta.FailedPreconditionError, match=words):
        all_states().plot()
    assert "written" in all_states()._repr_html_()


# Arrays of graphs.


def test_an_array_of_a_graph_shows_what_its_flow_comes_after():
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", size=20, tensor_array_name="<ta>")
        for i in range(2):
            ta = ta.write(i, float(i))
        text = page_of(ta).text
        longer = page_of(ta.write(2, 0.0).scatter(np.arange(3, 14), np.zeros(11))).text
        for i in range(14, 20):
            ta = ta.write(i, 0.0)
        gradient = page_of(ta.grad("g")).text
        many = page_of(ta.write(2, 1.0).write(3, 1.0).write(4, 1.0).write(5, 1.0)).text
    assert "slot 0 gets 0.0" in text
    assert "'<ta>'" in text
    assert text.index("slot 0") < text.index("slot 1")
    assert "TensorArrayScatterV3" in longer
    assert "source 'g'" in gradient
    assert "1 more" in many
    with pytest.raises(nbta.InvalidArgumentError, match=r"use nbta.plot\(graph\)"):
        ta.plot()
    assert len(graph.operations) > 1


def test_looking_in_the_middle_of_a_gradient_leaves_it_right():
    def f(x):
        ta = nbta.TensorArray("float64", size=1).write(0, x)
        ta._repr_html_()
        return ta.read(0) ** 2

    check_grads(f, (1.5,))


def test_import_and_html_load_no_matplotlib():
    import subprocess

    code = (
        "import sys, nbta; nbta.plot; nbta.TensorArray('float64', size=1)._repr_html_(); "
        "sys.exit(bool({'matplotlib', 'graphviz'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
