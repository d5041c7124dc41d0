"""nbta.plot: pictures of graphs, by their structure."""

import re
import shutil
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import nbta
from nbta.display import picture
from nbta.inspect import plot
from nbta.inspect.diagram import UNUSED, diagram_of, source_of

SVG = "{http://www.w3.org/2000/svg}"
needs_dot = pytest.mark.skipif(
    shutil.which("dot") is None, reason="needs the program dot, which is no Python package"
)
each_engine = pytest.mark.parametrize(
    "engine", [pytest.param("graphviz", marks=needs_dot), "matplotlib"]
)


def raw_graph():
    """Two writes, two reads and the gradient of their product, of raw operations."""
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (2,), name="x")
        handle, flow = nbta.raw_ops.TensorArrayV3(size=2, dtype="float64", element_shape=(2,))
        flow = nbta.raw_ops.TensorArrayWriteV3(handle, 0, x * 2.0, flow)
        flow = nbta.raw_ops.TensorArrayWriteV3(handle, 1, nbta.tanh(x), flow)
        first = nbta.raw_ops.TensorArrayReadV3(handle, 0, flow, dtype="float64")
        second = nbta.raw_ops.TensorArrayReadV3(handle, 1, flow, dtype="float64")
        nbta.gradients(nbta.sum(first * second), [x])
    return graph


def loop_graph(gradient=True):
    """A loop with a branch in its body, which captures k."""
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (), name="x")
        k = nbta.placeholder("float64", (), name="k")

        def body(i, s):
            return i + 1, nbta.cond(s > 2.0, lambda: s * k, lambda: s + k)

        _, s = nbta.while_loop(lambda i, s: i < 4, body, (0, x))
        if gradient:
            nbta.gradients(s, [k])
    return graph


def frames_of(diagram):
    return [(frame.kind, frame.title) for frame in diagram.root.frames()]


def nodes_of(diagram):
    return {node.lines[0]: node for node in diagram.root.nodes() if node.lines}


def kinds_between(diagram, tail, head):
    nodes = nodes_of(diagram)
    ends = nodes[tail], nodes[head]
    return sorted(e.kind for e in diagram.edges if (e.tail.node, e.head.node) == ends)


# What is in a picture.


def test_data_flow_and_handle_are_distinguished():
    diagram = diagram_of(raw_graph())
    assert kinds_between(diagram, "TensorArrayV3", "TensorArrayWriteV3") == ["flow", "handle"]
    assert kinds_between(diagram, "Mul", "TensorArrayWriteV3") == ["data"]
    assert kinds_between(diagram, "TensorArrayWriteV3", "TensorArrayWriteV3_1") == ["flow"]
    assert diagram.kinds == ["data", "flow", "handle"]


def test_control_edges_are_drawn():
    with nbta.Graph().as_default() as graph:
        first = nbta.placeholder("float64", (), name="first")
        with nbta.control_dependencies([first]):
            nbta.tanh(nbta.placeholder("float64", (), name="x"))
    assert kinds_between(diagram_of(graph), "first", "Tanh") == ["control"]


def test_labels_say_slot_value_dtype_and_shape():
    nodes = nodes_of(diagram_of(raw_graph()))
    assert nodes["TensorArrayWriteV3_1"].lines[1:] == ["slot 1"]
    assert nodes["Mul"].lines[1:] == ["(·, 2.0)", "float64 (2,)"]
    assert nodes["x"].lines[1:] == ["Placeholder", "float64 (2,)"]
    assert "float64 elements (2,)" in nodes["TensorArrayV3"].lines


def test_constants_that_are_small_have_no_boxes_unless_nobody_uses_them():
    with nbta.Graph().as_default() as graph:
        nbta.constant(3.0, name="alone")
        nbta.placeholder("float64", (), name="x") * 2.0
        nbta.placeholder("float64", (7,), name="y") * np.arange(7.0)
    nodes = nodes_of(diagram_of(graph))
    assert sorted(nodes) == ["Const_1", "Mul", "Mul_1", "alone", "x", "y"]


def test_bodies_are_frames_and_captured_tensors_are_in_their_bars():
    diagram = diagram_of(loop_graph(gradient=False))
    assert frames_of(diagram) == [
        ("operation", "while"), ("body", "go on?"), ("body", "each iteration"),
        ("operation", "cond (Case)"), ("body", "if True"), ("body", "if False"),
    ]  # fmt: skip
    bars = [node for node in diagram.root.nodes() if node.cells]
    told = [[(cell.kind, cell.lines[0]) for cell in bar.cells] for bar in bars]
    captured = [("captured", "s"), ("captured", "k")]
    iteration = [("variable", name) for name in ("iteration", "i from 0", "s")] + [
        ("captured", "k")
    ]
    results = [("result", name) for name in ("go on?", "iteration", "i", "s")]
    assert told == [
        iteration,
        [("variable", "which: Greater"), *captured],
        [("result", ":0")],
        results,
    ]
    assert [e.kind for e in diagram.edges if e.tail.node is bars[3]] == ["next"]


def test_depth_folds():
    graph = loop_graph(gradient=False)
    assert frames_of(diagram_of(graph, depth=0)) == []
    assert nodes_of(diagram_of(graph, depth=0))["while"].kind == "folded"
    assert len(frames_of(diagram_of(graph, depth=1))) == 3
    assert nodes_of(diagram_of(graph, depth=1))["cond"].kind == "folded"


def test_rows_of_a_map_go_into_its_frame():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (3,), name="x")
        k = nbta.placeholder("float64", (), name="k")
        nbta.map_fn(lambda row: row * k, x, parallel_iterations=2)
    diagram = diagram_of(graph)
    assert ("body", "each row") in frames_of(diagram)
    names = [cell.lines[0] for node in diagram.root.nodes() for cell in node.cells]
    assert names == ["rows of x", "k", ":0"]


# Gradient sources.


def test_what_a_gradient_made_has_its_source():
    graph = raw_graph()
    owners = {op.name: source_of(op) for op in graph.operations}
    assert {owner for name, owner in owners.items() if name.startswith("gradients/")} == {
        "gradients"
    }
    assert {owner for name, owner in owners.items() if not name.startswith("gradients/")} == {None}


def test_two_gradients_have_two_sources_and_any_name_may_be_one():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (), name="x")
        nbta.gradients(x**2, [x])
        with nbta.name_scope("outer"):
            nbta.gradients(x**3, [x], name="slope")
    assert diagram_of(graph).sources == ["gradients", "outer/slope"]


def test_tapes_in_the_forward_loop_belong_to_the_gradient():
    diagram = diagram_of(loop_graph())
    loop = next(f for f in diagram.root.items if getattr(f, "title", "") == "while")
    body = next(f for f in loop.items if getattr(f, "title", "") == "each iteration")
    inner = {node.lines[0]: node.source for node in body.nodes() if node.lines}
    assert inner["Greater"] is None
    taped = [source for name, source in inner.items() if name.startswith("Save")]
    assert taped
    assert set(taped) == {"gradients"}
    assert {cell.source for cell in loop.items[0].cells} == {None, "gradients"}


def test_a_raw_lookup_belongs_to_its_source_and_so_does_what_uses_it():
    with nbta.Graph().as_default() as graph:
        handle, flow = nbta.raw_ops.TensorArrayV3(size=1, dtype="float64")
        found, flow = nbta.raw_ops.TensorArrayGradV3(handle, flow, "mine")
        nbta.raw_ops.TensorArrayWriteV3(found, 0, 1.0, flow)
    owners = [source_of(op) for op in graph.operations if op.type != "Constant"]
    assert owners == [None, "mine", "mine"]


def test_sources_survive_the_passes():
    slope = nbta.function(lambda x: nbta.gradients(nbta.tanh(x) ** 3.0, [x])[0])
    slope(1.0)
    assert diagram_of(slope.graph).sources == ["gradients"]


# Findings.


def lost_write():
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", size=1)
        ta.write(0, 1.0)
        ta.read(0)
    return graph


def test_a_lost_write_and_a_race_are_marked():
    diagram = diagram_of(lost_write())
    assert nodes_of(diagram)["TensorArrayWriteV3"].warning == UNUSED
    assert kinds_between(diagram, "TensorArrayWriteV3", "TensorArrayReadV3") == ["race"]


def test_a_write_whose_flow_is_a_result_is_not_lost():
    filled = nbta.function(lambda x: nbta.TensorArray("float64", size=1).write(0, x))
    filled(1.0)
    diagram = diagram_of(*filled.traced())
    assert [node.warning for node in diagram.root.nodes()] == [""] * len(list(diagram.root.nodes()))


# The pictures themselves.


def groups(svg, kind):
    root = ET.fromstring(svg)
    return [g for g in root.iter(f"{SVG}g") if kind in g.get("class", "").split()]


@needs_dot
def test_the_svg_of_graphviz_has_all_nodes_edges_and_frames():
    diagram = diagram_of(loop_graph())
    svg = nbta.plot(loop_graph(), engine="graphviz").svg
    assert len(groups(svg, "node")) == len(list(diagram.root.nodes()))
    assert len(groups(svg, "edge")) == len(diagram.edges)
    assert len(groups(svg, "cluster")) == len(list(diagram.root.frames()))
    for kind in diagram.kinds:
        assert len(groups(svg, kind)) == sum(edge.kind == kind for edge in diagram.edges)
    assert groups(svg, "source-0")


def test_the_svg_of_matplotlib_has_all_nodes_edges_and_frames():
    diagram = diagram_of(loop_graph())
    picture = nbta.plot(loop_graph(), engine="matplotlib")
    assert picture.engine == "matplotlib"
    ids = [g.get("id", "") for g in ET.fromstring(picture.svg).iter(f"{SVG}g")]
    assert sum(i.startswith("edge-") for i in ids) == len(diagram.edges)
    assert sum(i.startswith(("operation-", "body-")) for i in ids) == len(frames_of(diagram))
    bars = {i.split("-")[1] for i in ids if i.startswith("cell-")}
    boxes = [i for i in ids if re.fullmatch(r"(op|array|input|constant|folded)-n\d+", i)]
    assert len(bars) + len(boxes) == len(list(diagram.root.nodes()))


def test_nothing_overlaps_in_the_layout():
    from nbta.inspect.plot import lay_out

    levels = [lay_out(diagram_of(loop_graph()))]
    while levels:
        level = levels.pop()
        boxes = list(level.boxes.values())
        levels += [box.inner for box in boxes if box.inner is not None]
        for i, one in enumerate(boxes):
            assert 0 <= one.x <= one.x + one.width <= level.width + 1e-6
            for other in boxes[:i]:
                aside = one.x + one.width <= other.x or other.x + other.width <= one.x
                assert aside or one.y + one.height <= other.y or other.y + other.height <= one.y


NASTY = "<b>&\"'\\N \\l $x$ {|} ]]> \x00\ud800"


@each_engine
def test_names_are_escaped(engine):
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", size=1, tensor_array_name=NASTY)
        found = ta.grad(NASTY).write(0, 1.0)
        found.read(0) * nbta.constant(np.array([b'"<i>\\'])).shape[0]
    root = ET.fromstring(nbta.plot(graph, engine=engine).svg)
    text = " ".join("".join(element.itertext()) for element in root.iter())
    assert "<b>&" in text
    assert not [element for element in root.iter() if element.tag in (f"{SVG}b", f"{SVG}script")]


@each_engine
@pytest.mark.parametrize(
    ("ending", "start"), [("svg", b"<"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_files(engine, ending, start, tmp_path):
    file = tmp_path / f"graph.{ending}"
    shown = nbta.plot(lost_write(), file, engine=engine)
    assert file.read_bytes().startswith(start)
    assert shown._repr_svg_().startswith("<svg")


@needs_dot
def test_dot_has_nothing_to_complain_about(capfd):
    def loss(w, xs):
        def step(h, x):
            return nbta.tanh(w @ h + x), h

        return nbta.sum(nbta.scan(step, np.zeros(2), xs)[1] ** 2)

    curvature = nbta.grad(lambda w, xs: nbta.sum(nbta.grad(loss)(w, xs) ** 2))
    curvature(np.eye(2), np.ones((3, 2)))
    svg = nbta.plot(curvature, engine="graphviz").svg
    assert capfd.readouterr().err == ""
    assert len(groups(svg, "source-0")) > 5
    assert len(groups(svg, "source-1")) > 5


@each_engine
def test_an_empty_graph_has_a_picture(engine):
    assert nbta.plot(nbta.Graph(), engine=engine).svg.startswith("<svg")


# What may be drawn.


def test_functions_operations_bodies_and_programs():
    def f(x):
        return nbta.scan(lambda s, t: (s * t, s), x, nbta.arange(3.0))[0]

    traced = nbta.function(f)
    traced(2.0)
    assert "result 0" in nbta.plot(traced).svg
    assert "result 0" in nbta.plot(traced.graph).svg
    graph, _ = traced.traced()
    loop = next(op for op in graph.operations if op.type == "While")
    assert nbta.plot(loop).svg.startswith("<svg")
    body = diagram_of(loop.attrs["body"])
    assert body.root.items[0].cells
    assert body.root.items[-1].cells[0].kind == "result"


def test_the_graph_that_is_being_built():
    with nbta.Graph().as_default():
        nbta.placeholder("float64", (), name="of_now")
        assert "of_now" in nbta.plot().svg


@needs_dot
def test_the_bodies_of_an_operation_are_clusters():
    loop = next(op for op in loop_graph().operations if op.type == "While")
    assert len(groups(nbta.plot(loop, engine="graphviz").svg, "cluster")) == 6


@each_engine
def test_drawing_adds_nothing_to_a_graph(engine):
    graph = loop_graph()
    before, text = graph.version, str(graph)
    nbta.plot(graph, engine=engine)
    assert (graph.version, str(graph)) == (before, text)


def test_a_large_graph_leaves_out_handles_that_flows_show():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (), name="x")
        ta = nbta.TensorArray("float64", size=70)
        for i in range(70):
            ta = ta.write(i, nbta.tanh(x))
    diagram = diagram_of(graph)
    assert diagram.kinds == ["data", "flow"]
    assert len(nodes_of(diagram)) == 142


# Errors.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"graph": 3}, "plot: 3 is no graph; give a Graph"),
        ({"depth": -1}, "plot: depth must be None or an int from 0 on, not -1"),
        ({"depth": True}, "plot: depth must be None or an int from 0 on, not True"),
        ({"engine": "neato"}, 'plot: engine must be "graphviz", "matplotlib" or None, not \'neato'),
        ({"file": "graph.gif"}, "file: 'graph.gif' must end in .svg, .png or .pdf"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be(options, words):
    with pytest.raises(nbta.InvalidArgumentError, match=re.escape(words)):
        nbta.plot(**{"graph": nbta.Graph(), **options})


def test_without_a_graph():
    with pytest.raises(nbta.InvalidArgumentError, match="plot: None is no graph"):
        nbta.plot()


def test_an_operation_without_bodies_and_a_function_that_was_not_called():
    graph = lost_write()
    with pytest.raises(nbta.InvalidArgumentError, match="a loop or branch"):
        nbta.plot(graph.operations[0])
    with pytest.raises(nbta.FailedPreconditionError, match="was not called yet"):
        nbta.plot(nbta.function(abs))


def hide(monkeypatch, *packages):
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)


def test_matplotlib_draws_where_dot_is_not_there(monkeypatch):
    monkeypatch.setattr(plot.shutil, "which", lambda name: None)
    assert nbta.plot(lost_write()).engine == "matplotlib"
    with pytest.raises(nbta.FailedPreconditionError, match="needs the program dot of Graphviz"):
        nbta.plot(lost_write(), engine="graphviz")


def test_packages_that_are_missing_are_named_with_their_extra(monkeypatch):
    hide(monkeypatch, "graphviz")
    assert nbta.plot(lost_write()).engine == "matplotlib"
    hide(monkeypatch, "matplotlib")
    remedy = re.escape('pip install "nbta[plot]"')
    for engine, what in [("graphviz", "package graphviz"), ("matplotlib", "matplotlib")]:
        with pytest.raises(nbta.FailedPreconditionError, match=f"{what}.*{remedy}"):
            nbta.plot(lost_write(), engine=engine)
    with pytest.raises(nbta.FailedPreconditionError, match=f"dot. or matplotlib: {remedy}") as e:
        nbta.plot(lost_write())
    assert e.value.reason == "missing_extra"
    assert not picture.is_there("matplotlib")
