"""Users' names of arguments, variables and loops, in what nbta shows."""

import ast
from pathlib import Path

import numpy as np
import pytest

import nbta
from nbta.graph.labels import Labels
from nbta.graph.operation import label_of

X = np.linspace(0.0, 1.0, 5)


def place(function, mark):
    lines = Path(__file__).read_text().splitlines()
    first = function.__code__.co_firstlineno
    number = next(k for k in range(first, len(lines)) if mark in lines[k - 1])
    return f"test_users_names.py:{number}"


def test_tensors_have_the_names_of_arguments():
    def f(weights, offset):
        return weights + offset

    g = nbta.function(f)
    g(X, 1.0)
    graph, _ = g.traced()
    labels = {label_of(t) for op in graph.operations for t in op.outputs}
    assert {"weights", "offset"} <= labels


def test_tensors_have_the_names_of_variables():
    def f(x):
        height = np.tanh(x) * 2
        width: float = height + 1
        width += x
        return np.mean(width - height)

    g = nbta.function(f)
    g(X)
    graph, _ = g.traced()
    labelled = {}
    for op in graph.operations:
        for tensor in op.outputs:
            labelled.setdefault(label_of(tensor), []).append(op.type)
    assert labelled["height"] == ["Mul"]
    assert labelled["width"] == ["Add", "Add"]


def test_arrays_are_shown_with_the_names_of_variables():
    def g(x):
        height = np.tanh(x)
        return 1.0 if height else 2.0

    with pytest.raises(nbta.InvalidArgumentError) as found:
        nbta.function(g)(X)
    assert "height has no truth value" in str(found.value)


def looping(x, n):
    y = x * 2
    for t in range(n):  # the first
        y = np.tanh(y) + x[t]
    while np.sum(y) > 1e-3:  # the second
        y = y / 2
    return np.sum(y)


def test_loops_are_shown_as_they_were_written():
    f = nbta.value_and_grad(looping, argnums=0, compiled=True)
    f(X, 4)
    text = f.explain()
    assert f"`for t in range(n)` at {place(looping, '# the first')}" in text
    assert "`while np.sum(y) > 1e-3`" in str(f.profile(X, 4, repeats=1))


def test_iterations_are_told_of_the_loop_as_it_was_written():
    def f(x):
        total = 0.0
        for k in range(9):  # here
            total += x[k]
        return total

    with pytest.raises(nbta.OutOfRangeError) as found:
        nbta.function(f)(X)
    notes = "\n".join([str(found.value), *found.value.__notes__])
    assert f"of the loop `for k in range(9)` at {place(f, '# here')})" in notes


def test_names_that_users_gave_stay():
    def f(x):
        return nbta.fori_loop(0, 3, lambda k, y: y * 2, x, name="doubling")

    g = nbta.function(f, compiled=True)
    g(X)
    assert "`" not in g.explain()


def test_names_of_graphs_stay_as_they_are():
    f = nbta.function(looping, compiled=True)
    f(X, 4)
    names = [op.name for op in f.traced()[0].operations]
    assert all("`" not in name and " " not in name for name in names)
    assert "argument" in names
    assert Labels([]).put("while_1: while_1/body/Add:0") == "while_1: while_1/body/Add:0"


def test_the_text_is_read_once_for_all_operations(tmp_path, monkeypatch):
    """And not once for each: `explain` of 6,000 operations took 40 s."""
    lines = [f"    y = x * {k}.5 + y\n" for k in range(60)]
    path = tmp_path / "long_function.py"
    path.write_text(f"def f(x):\n    y = x\n{''.join(lines)}    return y\n")
    names = {}
    exec(compile(path.read_text(), path, "exec"), names)
    f = nbta.function(names["f"])
    f(X)
    graph, read, parse = f.traced()[0], [], ast.parse

    def counted(*given, **named):
        read.append(given)
        return parse(*given, **named)

    monkeypatch.setattr(ast, "parse", counted)
    last = graph.operations[-1].outputs[0]
    assert Labels(graph.operations).put(f"of {last.name}") == f"of y ({last.name})"
    assert len(read) == 1


@pytest.mark.parametrize("compiled", [False, True])
def test_errors_call_arrays_by_their_variables(compiled):
    def f(x, n):
        states = nbta.TensorArray("float64", size=n)
        for i in range(len(x)):
            states = states.write(i, x[i])
        return states.stack()[0] + states.grad("g").read(-n)

    function = nbta.function(f, compiled=compiled)
    with pytest.raises(nbta.InvalidArgumentError, match=r"^write on states \(TensorArray_\d+\): "):
        function(np.ones(3), 2)
    with pytest.raises(nbta.InvalidArgumentError, match=r"^read on states \(TensorArray_\d+@g\): "):
        function(np.ones(3), 3)
