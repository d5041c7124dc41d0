"""Tracebacks of errors end at users' lines, without the frames of nbta's files."""

import ast
import os
import pickle
import re
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pytest

import nbta
from nbta import naming

OWN = str(Path(nbta.__file__).parent) + os.sep
X = np.ones((3, 3))


def product(x):
    return x[:, :2] @ x  # here


def in_a_loop(x):
    y = x * 2
    for _ in range(3):
        y = product(y) + y
    return np.sum(y)


def item(x, i):
    return x[i] * 2  # here


def asserts(x):
    assert np.sum(x) > 100, "too small"  # here
    return x


def attribute(x):
    return x.foo  # here


def raises(x):
    raise ValueError("mine")  # here


def raises_in_a_run(x):
    for v in x:
        if v > 1:
            raise KeyError("in a run")  # here
    return x


def lines_of_its_own(x):
    return np.sum(
        x[:, :2] @ x,  # here
    )


def inner_function(x):
    return nbta.function(product)(x)


def library(x):
    if len(x) == 3:
        return int("a")  # here
    return x


CASES = {
    "in a loop": (in_a_loop, product, X),
    "gradient": (nbta.grad(in_a_loop), product, X),
    "item": (item, item, np.ones(3), 7),
    "assert": (asserts, asserts, X),
    "attribute": (attribute, attribute, X),
    "raise": (raises, raises, X),
    "raise in a run": (raises_in_a_run, raises_in_a_run, np.ones(3) * 2),
    "several lines": (lines_of_its_own, lines_of_its_own, X),
    "function in a function": (inner_function, product, X),
    "library": (library, library, X),
}


def raised(f, *args):
    with pytest.raises(Exception) as found:  # noqa: PT011
        f(*args)
    return found


def line_of(function):
    code = function.__code__
    lines = Path(code.co_filename).read_text().splitlines()
    return next(k for k in range(code.co_firstlineno, len(lines)) if "# here" in lines[k - 1])


def traced(f, compiled="auto"):
    return f if isinstance(f, nbta.api.tracing.Function) else nbta.function(f, compiled=compiled)


@pytest.mark.parametrize("compiled", ["auto", True])
@pytest.mark.parametrize("case", CASES)
def test_the_last_frame_is_the_users(case, compiled):
    f, where, *args = CASES[case]
    error = raised(traced(f, compiled), *args).value
    frames = traceback.extract_tb(error.__traceback__)
    assert not [frame for frame in frames if frame.filename.startswith(OWN)]
    last = frames[-1]
    assert (last.filename, last.name) == (__file__, where.__name__)
    assert last.lineno == line_of(where)
    assert last.line.endswith("# here")


@pytest.mark.parametrize("case", CASES)
def test_what_is_shown_has_no_name_of_nbtas_own(case):
    f, _, *args = CASES[case]
    error = raised(traced(f), *args).value
    assert "_nbta_" not in "".join(traceback.format_exception(error))


@pytest.mark.parametrize("style", ["long", "short", "native"])
@pytest.mark.parametrize("case", CASES)
def test_pytest_shows_the_line(case, style):
    f, where, *args = CASES[case]
    found = raised(traced(f), *args)
    assert found.traceback[-1].lineno + 1 == line_of(where)
    assert "# here" in str(found.getrepr(style=style))


def test_ipython_shows_the_line():
    ultratb = pytest.importorskip("IPython.core.ultratb")
    error = raised(traced(in_a_loop), X).value
    shown = ultratb.VerboseTB().text(type(error), error, error.__traceback__)
    shown = re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert re.search(rf"-> {line_of(product)} .*@ x", shown)
    assert "error" not in shown.partition("InvalidArgumentError:")[0].replace(
        "InvalidArgumentError", ""
    )
    assert OWN not in shown


def test_what_others_hang_onto_shared_nodes_is_nothing_to_us():
    """As asttokens does, with which IPython shows tracebacks."""
    tree = ast.parse("x")
    shared = tree.body[0].value.ctx
    shared.parent = tree.body[0].value
    try:
        np.testing.assert_array_equal(nbta.function(lambda x: x * 3)(X), 3 * X)
    finally:
        del shared.parent


def test_what_was_written_is_marked():
    error = raised(traced(in_a_loop), X).value
    last = traceback.extract_tb(error.__traceback__)[-1]
    assert last._line[last.colno : last.end_colno] == "x[:, :2] @ x" if last.colno else True


def test_batches_and_sessions_hide_frames_too():
    def loss(x, i):
        return x[i] * 2

    slopes = nbta.value_and_grad(loss, batch_axis=(None, 0), argnums=0)
    for call in (slopes, slopes.profile):
        error = raised(call, np.ones(3), np.array([1, 7])).value
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        assert not [name for name in files if name.startswith(OWN)]
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (3,))
        y = x + nbta.placeholder("float64", (None,), name="y")
        error = raised(nbta.Session().run, y, {x: np.ones(3), "y:0": np.ones(2)}).value
    frames = traceback.extract_tb(error.__traceback__)
    assert [frame.filename for frame in frames] == [__file__] * len(frames)


def test_causes_of_the_users_stay():
    def f(x):
        try:
            raise KeyError("first")
        except KeyError as error:
            raise ValueError("second") from error

    error = raised(nbta.function(f, convert=False), X).value
    assert isinstance(error.__cause__, KeyError)
    frames = traceback.extract_tb(error.__cause__.__traceback__)
    assert [frame.filename for frame in frames] == [__file__]


def test_causes_from_inside_are_left_out(monkeypatch):
    def f(x):
        return np.sum(x)

    def fails(*args):
        return naming.gradient_name("a", None)

    monkeypatch.setattr("nbta.frontend.entry.call", fails)
    error = raised(nbta.function(f), X).value
    assert "nbta cannot follow this (AttributeError: " in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__
    monkeypatch.setenv("NBTA_FULL_TRACEBACK", "1")
    assert isinstance(raised(nbta.function(f), X).value.__cause__, AttributeError)


def test_all_frames_are_there_when_asked_for(monkeypatch):
    monkeypatch.setenv("NBTA_FULL_TRACEBACK", "1")
    error = raised(nbta.function(item), np.ones(3), 7).value
    assert traceback.extract_tb(error.__traceback__)[-1].filename.startswith(OWN)


def test_errors_of_runs_can_be_pickled():
    error = raised(nbta.function(item), np.ones(3), 7).value
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_script_ends_with_its_own_line(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, nbta\n"
        "def f(x, i):\n"
        "    y = x * 2\n"
        "    return y[i + 1]\n"
        "nbta.function(f)(np.ones(3), 7)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    places = [line.split(",")[:2] for line in done.stderr.splitlines() if "File " in line]
    assert places == [[f'  File "{script}"', " line 5"], [f'  File "{script}"', " line 4"]]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: sorted(2),
        lambda x: sorted([1, 2], key=3),
        lambda x: sorted([1, "a"]),
        lambda x: sorted([x[0], x[1]], key=3),
    ],
)
def test_what_sorting_cannot_do_is_told_in_pythons_words(f):
    with pytest.raises(TypeError) as expected:
        f(X)
    error = raised(nbta.function(f), X)
    assert error.type is TypeError
    assert str(expected.value) in str(error.value)
