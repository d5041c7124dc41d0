"""scan, map_fn, foldl, foldr: values eager and in graphs, gradients to second order."""

import numpy as np
import pytest
from running import both, checked

import nbta
from nbta.testing import check_grads

X = np.array([0.7, -1.3, 2.1])


def scan_forward(x):
    return nbta.scan(lambda c, v: (c * v + 1.0, c * c), x[0], x)


def scan_reverse(x):
    return nbta.scan(lambda c, v: (c * v + x[0], nbta.sin(c)), x[1], x * 0.9, reverse=True)


def scan_by_length(x):
    return nbta.scan(lambda c, _: (c * x[0] + x, nbta.sum(c)), x, None, length=4)


def scan_of_structures(x):
    def step(state, row):
        a, b = state["a"], state["b"]
        return {"a": a * row[0], "b": b + row[1]["k"]}, [a * b, {"r": row[0] - a}]

    rows = (x, {"k": nbta.outer(x, x)})
    return nbta.scan(lambda s, r: step(s, (r[0], r[1])), {"a": x[0], "b": x * 0.1}, rows)


def scan_with_integers(x):
    def step(state, i):
        a, n = state
        return (a * nbta.gather(x, i), n + i), (a + nbta.cast(n, a.dtype), i * 2)

    return nbta.scan(step, (x[0], np.int64(1)), np.array([2, 0, 1, 1]))


def scan_of_nothing(x):
    return nbta.scan(lambda c, v: (c * v, c + v), x[0], x[:0])


def scan_in_scan(x):
    inner = lambda c: nbta.scan(lambda d, v: (d * v, d + c), c, x, reverse=True)  # noqa: E731
    return nbta.scan(lambda c, v: (inner(c * v)[0] * 0.5, inner(c)[1]), x[2], x)


def mapped(x):
    return nbta.map_fn(lambda v: {"a": nbta.sin(v) * x, "b": v * v}, x)


def mapped_pairs(x):
    return nbta.map_fn(lambda pair: pair[0] * pair[1][1], (x, nbta.outer(x, x)))


def folded_left(x):
    return nbta.foldl(lambda a, v: a * x[0] + nbta.sin(v), x), nbta.foldl(
        lambda a, v: a * v, nbta.outer(x, x), initializer=x
    )


def folded_right(x):
    return nbta.foldr(lambda a, v: a * x[0] + nbta.sin(v), x), nbta.foldr(
        lambda a, v: (a[0] * v, a[1] + a[0]), x, initializer=(x[1], x[0])
    )


SCANS = [
    scan_forward, scan_reverse, scan_by_length, scan_of_structures, scan_with_integers,
    scan_of_nothing, scan_in_scan, mapped, mapped_pairs, folded_left, folded_right,
]  # fmt: skip


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("program", SCANS, ids=lambda f: f.__name__)
def test_scans(program):
    checked(program, X)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_scan_of_a_length_that_the_run_tells(length):
    def program(x, n):
        return nbta.scan(lambda c, _: (c * x, c), x, None, length=n)

    last, states = both(program, np.float64(2.0), np.int32(length))
    assert last == 2.0 ** (length + 1)
    np.testing.assert_array_equal(states, 2.0 ** np.arange(1, length + 1))
    check_grads(program, (np.float64(2.0), np.int32(length)))


def test_scan_is_a_loop_by_hand():
    state, rows = 0.5, []
    for v in X[::-1]:
        rows.append(state * v)
        state = state + v * v
    last, found = both(
        lambda x: nbta.scan(lambda c, v: (c + v * v, c * v), 0.5, x, reverse=True), X
    )
    assert last == pytest.approx(state)
    np.testing.assert_allclose(found, rows[::-1])
