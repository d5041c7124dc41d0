"""nbta.plot of graphs of 50 and of thousands of operations, by lines and by loops."""

import inspect
import re
import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import nbta
from nbta.graph.graph import within
from nbta.inspect.folding import MOST, MOST_ENDS, folded_diagram


def recurrence(x, c):
    y = x[0] * c
    s = 0.0
    for t in range(1, len(x)):
        y = np.tanh(c * y) + x[t]
        if y > 3:
            y = y - 1.0
        s += y * y
    return s + np.sum(np.exp(x))


def filtered(obs, A, Q):  # noqa: N803
    x = np.zeros(2)
    P = np.eye(2)  # noqa: N806
    loss = 0.0
    for t in range(len(obs)):
        x = A @ x
        P = A @ P @ A.T + Q  # noqa: N806
        gain = P @ np.linalg.inv(P + np.eye(2))
        error = obs[t] - x
        x = x + gain @ error
        P = P - gain @ P  # noqa: N806
        loss += error @ error + np.log(np.linalg.det(P))
    return loss


def layers(params, x):
    h = x
    for w, b in params:
        z = w @ h + b
        h = np.tanh(z)
        m = np.mean(h)
        s = np.sqrt(np.mean((h - m) ** 2) + 1e-5)
        h = (h - m) / s
    return np.sum(h**2)


def traced(f, *args, argnums=0, make=nbta.value_and_grad):
    function = make(f, argnums=argnums) if make is nbta.value_and_grad else make(f)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nbta.PerformanceWarning)
        function(*args)
    return function


@pytest.fixture(scope="module")
def small():
    return traced(recurrence, np.ones(5), 2.0, argnums=(0, 1))


@pytest.fixture(scope="module")
def large():
    rng = np.random.default_rng(0)
    params = [(rng.normal(size=(4, 4)), rng.normal(size=4)) for _ in range(100)]
    return traced(layers, params, np.ones(4))


def texts_of(picture):
    """All texts of an SVG of matplotlib's."""
    root = ET.fromstring(picture.svg.encode())
    return {"".join(each.itertext()) for each in root.iter("{http://www.w3.org/2000/svg}text")}


def size_of(picture):
    root = ET.fromstring(picture.svg.encode())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return tuple(float(root.get(side).removesuffix("pt")) for side in ("width", "height"))


def place(f, text):
    lines, first = inspect.getsourcelines(f)
    (found,) = [k for k, each in enumerate(lines) if text in each]
    return f"test_folded_plots.py:{first + found}"


def test_a_small_graph_has_a_box_for_each_operation_with_users_names():
    function = traced(recurrence, np.ones(5), 2.0, make=nbta.function)
    assert 40 < len(within(function.traced()[0].operations)) < 60
    picture = nbta.plot(function, engine="matplotlib")
    width, height = size_of(picture)
    assert width < 900
    assert height < 1600
    texts = texts_of(picture)
    assert {"x", "c", "y", "Tanh", "s", "t from 1", "s from 0.0", "Exp"} <= texts
    assert any("for t in range(1, len(x))" in text for text in texts)


def test_a_graph_by_lines(small):
    picture = nbta.plot(small, fold="line", engine="matplotlib")
    width, height = size_of(picture)
    assert width < 1000
    assert height < 1400
    texts = texts_of(picture)
    assert {"x", "c", "y = x[0] * c", "s += y * y", "gives y", "result 1: d_x"} <= texts
    header = place(recurrence, "for t in")
    assert any(t.startswith(f"for t in range(1, len(x)):  {header}, ") for t in texts)
    assert any(t.startswith(f"gradient of for t in range(1, len(x)):  {header}, ") for t in texts)
    assert f"{place(recurrence, 's += y')}, 2 operations" in texts
    assert any(t.startswith(f"gradient of {place(recurrence, 's += y')}, ") for t in texts)


def test_a_graph_by_loops(small):
    diagram = folded_diagram(*small.traced(), by="loop")
    assert [len(list(frame.nodes())) for frame in diagram.root.frames()] == [2, 1]
    assert diagram.count <= 9
    assert len(texts_of(nbta.plot(small, fold="loop", engine="matplotlib"))) < 40


def test_all_operations_are_counted_once(small, large):
    for function in (small, large):
        graph, results = function.traced()
        counts = []
        for by in ("line", "loop"):
            diagram = folded_diagram(graph, results, by)
            lines = [line for node in diagram.root.nodes() for line in node.lines]
            found = [re.search(r"(\d+) operations?$", line) for line in lines]
            counts.append(sum(int(each[1]) for each in found if each))
        assert counts[0] == counts[1]


def test_thousands_of_operations_are_drawn_by_line(large):
    graph, results = large.traced()
    assert len(within(graph.operations)) > 5000
    diagram = folded_diagram(graph, results)
    assert diagram.count < 20
    picture = nbta.plot(large, engine="matplotlib")
    width, height = size_of(picture)
    assert width < 1200
    assert height < 1200
    texts = texts_of(picture)
    assert {"params", "200 arrays", "x", "z = w @ h + b", "h = np.tanh(z)", "gives z"} <= texts
    assert f"{place(layers, 'h = np.tanh')}, 100 operations" in texts
    assert any(text.startswith("and ") and text.endswith(" more") for text in texts)


def test_a_filter_with_its_gradient_fits_a_screen():
    function = traced(filtered, np.ones((6, 2)), np.eye(2), np.eye(2), argnums=(1, 2))
    width, height = size_of(nbta.plot(function, engine="matplotlib"))
    assert width < 2000
    assert height < 1500


def many_lines(count):
    """A program of many lines, each of which reads the last two."""
    lines = ["def many(x):", "    y0 = y1 = x"]
    lines += [f"    y{k} = np.sin(y{k - 1}) * y{k - 2}" for k in range(2, count)]
    return "\n".join([*lines, f"    return y{count - 1}"])


def test_pictures_of_many_lines_are_bounded(tmp_path):
    path = tmp_path / "many.py"
    path.write_text("import numpy as np\n" + many_lines(400))
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    function = traced(names["many"], 0.5, make=nbta.function)
    diagram = folded_diagram(*function.traced())
    assert MOST // 3 < diagram.count <= MOST + MOST_ENDS
    assert any(" to many.py:" in line for node in diagram.root.nodes() for line in node.lines)
    width, height = size_of(nbta.plot(function, engine="matplotlib"))
    assert max(width, height) < 8000


def test_folds_that_cannot_be(small):
    with pytest.raises(nbta.InvalidArgumentError, match='fold must be "auto"'):
        nbta.plot(small, fold="lines")
    with pytest.raises(nbta.InvalidArgumentError, match="depth folds bodies"):
        nbta.plot(small, fold="line", depth=1)


def test_a_graph_can_be_unfolded(small):
    everything = nbta.plot(small, fold=None, engine="matplotlib")
    assert {"Tanh", "go on?", "next iteration"} <= texts_of(everything)
