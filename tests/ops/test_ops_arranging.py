"""What lays tensors out anew: nothing, dimensions that the run tells, and what is refused."""

import numpy as np
import pytest

import nbta
from nbta.errors import InvalidArgumentError

M = np.arange(12.0).reshape(3, 4)

#: Of a matrix that may have no rows or no columns.
OF_MATRICES = {
    "append": lambda x: np.append(x, x[:1], 0),
    "array_split": lambda x: np.array_split(x, 2, 1)[0],
    "atleast_3d": np.atleast_3d,
    "block": lambda x: np.block([[x, x], [x, x]]),
    "column_stack": lambda x: np.column_stack([x, x[:, :1]]),
    "diagonal": lambda x: np.diagonal(x, -1),
    "diagonal above": lambda x: np.diagonal(x, 1),
    "diag": lambda x: np.diag(x[:, 1:].sum(1), -2),
    "dstack": lambda x: np.dstack([x, x]),
    "hstack": lambda x: np.hstack([x, x]),
    "kron": lambda x: np.kron(x, x[:, :1]),
    "meshgrid": lambda x: np.meshgrid(x.sum(0), x.sum(1))[0],
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "repeat": lambda x: np.repeat(x, 2, 0),
    "repeat not": lambda x: np.repeat(x, 0, 1),
    "roll": lambda x: np.roll(x, (1, -5), (0, 1)),
    "roll all": lambda x: np.roll(x, 3),
    "rot90": np.rot90,
    "tile": lambda x: np.tile(x, (2, 1, 2)),
    "tile not": lambda x: np.tile(x, (0, 1)),
    "trace": np.trace,
    "triu": lambda x: np.triu(x, 1),
    "tril": lambda x: np.tril(x, -1),
    "vstack": lambda x: np.vstack([x, x[:1]]),
}


def results(function, x):
    """In a graph that knows no dimensions, and traced, by both executors."""
    graph = nbta.Graph()
    with graph.as_default():
        given = nbta.placeholder(x.dtype, (None, None))
        found = function(given)
    yield nbta.Session(graph).run(found, {given: x})
    for compiled in (False, True):
        yield nbta.function(function, compiled=compiled, convert=False)(x)


@pytest.mark.parametrize("shape", [(3, 4), (0, 4), (3, 0), (1, 1)])
def test_shapes_that_only_the_run_tells(shape):
    x = np.resize(M, shape) + 1
    table = {k: f for k, f in OF_MATRICES.items() if shape[1] or k != "column_stack"}
    table.pop("array_split")  # of a length that only a traced function asks for
    for found in results(lambda x: [f(x) for f in table.values()], x):
        for name, got, want in zip(table, found, [f(x) for f in table.values()], strict=True):
            np.testing.assert_array_equal(got, want, name)
            assert got.dtype == want.dtype


def test_lengths_stay_known():
    """One trace serves all lengths, and its results may be added to its arguments."""
    traces = []

    def f(x):
        traces.append(x)
        square = x @ x.T
        parts = np.roll(x, 1, 0) + x, np.triu(square) + square, np.diag(x[:, 0]) + square
        return [*parts, np.diagonal(square) + x[:, 0], np.eye(len(square)) + square]

    f = nbta.function(f, compiled=False)
    for rows in (2, 3, 5):
        x = np.random.default_rng(rows).normal(size=(rows, 3))
        square = x @ x.T
        want = [np.roll(x, 1, 0) + x, np.triu(square) + square, np.diag(x[:, 0]) + square,
                np.diagonal(square) + x[:, 0], np.eye(rows) + square]  # fmt: skip
        for got, wanted in zip(f(x), want, strict=True):
            np.testing.assert_allclose(got, wanted)


REFUSED = {
    "a shift": (lambda x: nbta.roll(x, 0.5, 0), "must be integers"),
    "shifts": (lambda x: nbta.roll(x, (1, 2, 3), (0, 1)), "there are 3 for 2 axes"),
    "a turn": (lambda x: nbta.rot90(x, 1, (0, 0)), "names an axis twice"),
    "axes of a turn": (lambda x: nbta.rot90(x, 1, (0,)), "a rotation takes two axes, not 1"),
    "places": (lambda x: nbta.moveaxis(x, (0, 1), 0), "2 axes go to 1 places"),
    "a start": (lambda x: nbta.rollaxis(x, 0, 5), "no place 5 among the axes of rank 2"),
    "an order": (lambda x: nbta.ravel(x, "A"), 'order must be "C" or "F", not'),
    "reps": (lambda x: nbta.tile(x, (-1, 2)), "-1 is negative"),
    "repeats": (lambda x: nbta.repeat(x, [1, 2], 0), "2 numbers for 3 rows"),
    "traced repeats": (
        lambda x: nbta.function(lambda x, n: nbta.repeat(x, n, 0))(x, np.array([1, 2, 0])),
        "the number of rows is known only in a run",
    ),
    "sections": (lambda x: nbta.array_split(x, 0), "0 sections are not possible"),
    "hsplit": (lambda x: nbta.hsplit(x[0, 0], 2), "rank 0 has no axis 1"),
    "dsplit": (lambda x: nbta.dsplit(x, 2), "rank 2 has no axis 2"),
    "depths": (lambda x: nbta.block([[x], x]), "the lists differ in depth"),
    "a list": (lambda x: nbta.block([[x], []]), "a list is empty"),
    "indexing": (
        lambda x: nbta.meshgrid(x, x, indexing="yx"),
        'indexing must be "xy" or "ij", not',
    ),
    "diag": (lambda x: nbta.diag(x[None]), "not for rank 3"),
    "diagonal": (lambda x: nbta.diagonal(x[0]), "rank 1 has no matrix"),
    "triu": (lambda x: nbta.triu(x[0]), "rank 1 has no matrix"),
    "resize": (lambda x: nbta.resize(x, (-1, 2)), "new_shape: -1 is negative"),
    "nothing": (lambda x: nbta.vstack([]), "nothing to join"),
    "no shape": (lambda x: nbta.broadcast_arrays(x, x[:2]), "broadcast"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    function, message = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=message):
        function(M)


def test_an_unknown_rank_is_refused():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64")
        for function in (nbta.vstack, nbta.hstack):
            with pytest.raises(InvalidArgumentError, match="has an unknown rank"):
                function([x])


def test_views_are_views():
    """What NumPy gives as a part of an array is one in unmodified functions."""

    def turned(x):
        y = x * 1.0
        np.rot90(y)[0, 0] = 7.0
        np.rollaxis(y, 1)[1, 0] = 8.0
        np.atleast_3d(y)[1, 1, 0] = 9.0
        return y

    for compiled in (False, True):
        np.testing.assert_array_equal(nbta.function(turned, compiled=compiled)(M), turned(M))


@pytest.mark.parametrize(
    "part",
    [np.diagonal, np.diag, lambda y: y.diagonal(1), lambda y: np.broadcast_to(y, (2, 3, 4))],
)
def test_views_that_can_only_be_read_see_later_changes(part):
    def changed(x):
        y = x * 1.0
        found = part(y)
        y[0, 0], y[0, 1] = 5.0, 6.0
        return found[0] * 1.0

    for compiled in (False, True):
        found = nbta.function(changed, compiled=compiled)(M)
        np.testing.assert_array_equal(found, changed(M))


@pytest.mark.parametrize(
    "part",
    [
        np.linalg.matrix_transpose, np.unstack, lambda y: np.array_split(y, 2),
        lambda y: np.meshgrid(y[0], y[1], copy=False)[0], lambda y: y.T.ravel(),
    ],
)  # fmt: skip
def test_what_shares_items_is_not_read_when_these_have_changed(part):
    def stale(x):
        y = x * 1.0
        found = part(y)
        y[0, 0] = 5.0
        return found[0] * 1.0

    with pytest.raises(InvalidArgumentError, match="make one of the two a copy"):
        nbta.function(stale)(M)


def test_vectors_on_a_diagonal_are_copies():
    def f(x):
        y = x * 1.0
        found = np.diag(y)
        y[0] = 5.0
        return found

    np.testing.assert_array_equal(nbta.function(f)(M[0] + 1), f(M[0] + 1))
