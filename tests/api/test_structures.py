"""Objects of users' classes as structures, and functions over structures."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

X = np.array([0.3, -0.7, 1.1])


@nbta.register_structure
@dataclass(frozen=True)
class Line:
    slope: Any
    offset: Any

    def at(self, x):
        return self.slope * x + self.offset


class Chain:
    """Has parts, and a name that is none."""

    def __init__(self, name, *lines):
        self.name, self.lines = name, lines


nbta.register_structure(Chain, lambda c: (c.lines, c.name), lambda name, lines: Chain(name, *lines))


def chained(chain, x):
    for line in chain.lines:
        x = np.tanh(line.at(x)) if chain.name == "tanh" else line.at(x)
    return np.sum(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_objects_are_arguments_and_results(compiled):
    both = nbta.value_and_grad(chained, compiled=compiled)
    for offset in (0.5, 0.75, 0.25):  # later calls go the short way
        value, found = both(Chain("tanh", Line(2.0, offset), Line(X, 1.0)), X)
        inner = np.tanh(2.0 * X + offset)
        outer = np.tanh(X * inner + 1.0)
        np.testing.assert_allclose(value, np.sum(outer))
        assert type(found) is Chain
        assert found.name == "tanh"
        np.testing.assert_allclose(found.lines[1].slope, (1 - outer**2) * inner)
    plain = both(Chain("none", Line(2.0, 0.5), Line(X, 1.0)), X)[0]  # the rest is looked at
    np.testing.assert_allclose(plain, np.sum(X * (2.0 * X + 0.5) + 1.0))


def test_objects_as_the_state_of_loops_and_their_gradients():
    def last(line, x):
        return nbta.scan(lambda s, v: (Line(s.slope * v, s.offset + s.slope), s), line, x)[0]

    found = nbta.function(last)(Line(2.0, 0.0), X)
    np.testing.assert_allclose(
        [found.slope, found.offset], [2 * np.prod(X), 2 * 0.3 - 2 * 0.21 + 2]
    )
    check_grads(lambda line, x: last(line, x).offset, (Line(2.0, 0.0), X))

    def loop(line, x):
        for i in range(len(x)):
            line = Line(line.slope * x[i], line.offset + line.slope)
        return line

    for compiled in (False, True):
        again = nbta.function(loop, compiled=compiled)(Line(2.0, 0.0), np.tile(X, 4))
        want = loop(Line(2.0, 0.0), np.tile(X, 4))
        np.testing.assert_allclose([again.slope, again.offset], [want.slope, want.offset])


def test_jacobians_and_batches_of_objects():
    found = nbta.jacobian(lambda line: line.at(X))(Line(2.0, 1.0))
    np.testing.assert_array_equal(found.slope, X)
    np.testing.assert_array_equal(found.offset, np.ones(3))
    batch = nbta.value_and_grad(lambda w, line: line.at(w) ** 2, batch_axis=0)
    value, slope = batch(2.0, Line(X, np.ones(3)))
    np.testing.assert_allclose(value, np.sum((2 * X + 1) ** 2))
    np.testing.assert_allclose(slope, np.sum(2 * X * (2 * X + 1)))


def test_tree_map_of_several():
    one, other = {"a": Line(1.0, 2.0), "b": [X]}, {"a": Line(10.0, 20.0), "b": [X]}
    found = nbta.tree_map(lambda p, g: p + g, one, other)
    assert found["a"] == Line(11.0, 22.0)
    np.testing.assert_array_equal(found["b"][0], 2 * X)
    with pytest.raises(nbta.InvalidArgumentError, match="must be alike"):
        nbta.tree_map(np.add, one, {"a": 1.0})


def test_paths_name_fields():
    with pytest.raises(nbta.InvalidArgumentError, match=r"args\[0\]\.offset.*floats"):
        nbta.grad(lambda line: line.slope)(Line(1.0, 2))


def test_what_is_refused():
    class Plain:
        pass

    for call, words in (
        (lambda: nbta.register_structure(Plain), "is no dataclass"),
        (lambda: nbta.register_structure(Line), "is a structure already"),
        (lambda: nbta.register_structure(3), "is no class"),
        (lambda: nbta.grad(lambda x: 1.0)(Plain()), "register_structure"),
    ):
        with pytest.raises(nbta.InvalidArgumentError, match=words):
            call()


@nbta.register_structure
@dataclass
class Open:
    a: Any
    b: Any


def changed_in_a_branch(x):
    found = Open(1.0, 0.0)
    if x[0] > 0:
        found.b = x[1]
    else:
        found = Open(2.0, x[2])
    return found


def test_attributes_change_outside_of_loops_and_branches_alone():
    def swapped(p):
        p.a, p.b = p.b, p.a * 2.0
        return p

    given = Open(1.0, 3.0)
    assert nbta.function(swapped)(given) == Open(3.0, 2.0)
    assert given == Open(1.0, 3.0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"Open\.b changes in a loop or a branch"):
        nbta.function(changed_in_a_branch)(X)
