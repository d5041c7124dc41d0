"""Indices that are proven to be out of range in bodies: a run raises, if it comes there."""

import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

#: What takes or changes items of three, with an index that they do not have.
REACHING = {
    "getitem": lambda x: nbta.getitem(x, 5),
    "the item of a row": lambda x: nbta.getitem(nbta.reshape(x, (1, 3)), (..., 0, None, -4))[0],
    "a row": lambda x: nbta.sum(nbta.getitem(nbta.reshape(x, (1, 3)), 1)),
    "set_item": lambda x: nbta.sum(nbta.set_item(x, -4, 1.0)),
    "add_item": lambda x: nbta.sum(nbta.add_item(x, 3, x[0])),
    "beside a slice": lambda x: nbta.sum(
        nbta.add_item(nbta.reshape(x, (1, 3)), (2, np.s_[nbta.cast(x[0], "int64") :]), 1.0)
    ),
    "at": lambda x: nbta.sum(nbta.at(x)[3].max(x[0])),
    "take": lambda x: nbta.take(x, 3, 0),
    "gather": lambda x: nbta.sum(nbta.gather(x, [0, 4])),
    "scatter_add": lambda x: nbta.sum(nbta.scatter_add(x, [3], [1.0])),
    "slice": lambda x: nbta.sum(nbta.slice(x, [2], [2])),
    "all that is left": lambda x: nbta.sum(nbta.slice(x, [5], [-1])),
    "a slice longer than all": lambda x: nbta.sum(nbta.slice(x, [0], [5])),
}


def in_a_loop(reach, x, n):
    three = nbta.ones(3) * x
    step = lambda i, t: (i + 1, t + reach(three))  # noqa: E731
    return nbta.while_loop(lambda i, t: i < n, step, (0, x))[1]


def in_a_branch(reach, x, n):
    three = nbta.ones(3) * x
    return nbta.cond(n > 0, lambda: reach(three), lambda: x * 1.0)


@pytest.mark.parametrize("around", [in_a_loop, in_a_branch])
@pytest.mark.parametrize("reach", REACHING.values(), ids=REACHING)
def test_a_run_raises_that_comes_to_an_index(reach, around):
    x = 0.5
    with in_python():
        for compiled in (False, True):
            f = nbta.value_and_grad(lambda x, n: around(reach, x, n), compiled=compiled)
            assert f(x, 0) == (0.5, 1.0)
            with pytest.raises(nbta.InvalidArgumentError, match=r"out of range|does not fit"):
                f(x, 2)


@pytest.mark.parametrize("reach", REACHING.values(), ids=REACHING)
def test_rows_of_a_parallel_map(reach):
    f = lambda q: in_a_loop(reach, *q)  # noqa: E731
    given = np.array([0.5, 0.25])
    with in_python():
        found = nbta.map_fn(f, (given, np.array([0, 0])), parallel_iterations=2)
        np.testing.assert_array_equal(found, given)
        with pytest.raises(nbta.InvalidArgumentError, match=r"out of range|does not fit"):
            nbta.map_fn(f, (given, np.array([0, 1])), parallel_iterations=2)


def test_a_map_over_rows_without_items():
    """A loop that runs for none of them adds to the first item."""

    def row(r):
        step = lambda i, h: (i + 1, nbta.add_item(h, 0, 1.0))  # noqa: E731
        return nbta.while_loop(lambda i, h: i < 0, step, (0, r))[1]

    x = np.zeros((1, 0))
    for options in ({}, {"parallel_iterations": 2}):
        assert nbta.map_fn(row, x, **options).shape == (1, 0)
        for compiled in (False, True):
            f = nbta.function(lambda x, o=options: nbta.map_fn(row, x, **o), compiled=compiled)
            with in_python():
                assert f(x).shape == (1, 0)


def test_outside_of_bodies_the_graph_refuses_it():
    for reach in (REACHING["getitem"], REACHING["set_item"], REACHING["slice"]):
        with nbta.Graph().as_default(), pytest.raises(nbta.InvalidArgumentError):
            reach(nbta.ones(3))


def test_a_handler_in_a_loop_takes_up_the_error():
    def f(x, n):
        three, total = nbta.ones(3) * x, 0.0
        for _ in range(n):
            try:
                total = total + nbta.getitem(three, 7)
            except IndexError:
                total = total + x
        return total

    for compiled in (False, True):
        with in_python():
            assert nbta.function(f, compiled=compiled)(0.5, 3) == 1.5 == f(0.5, 3)
