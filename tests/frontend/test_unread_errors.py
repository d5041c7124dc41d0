"""Errors of values that nobody reads: as in Python, whether a view is ever looked at or not."""

import re

import numpy as np
import pytest
from frontend_random import built

import nbta
from nbta.api import tracing

TABLE = """
a.reshape((x, 2))      a.reshape(([x], 2))      a.reshape(2.0, 2)    a.reshape(-2, -2)
a.reshape(-1, -1)      a.reshape(5, -1)         a.reshape((3, 3))    a.reshape(0, -1)
a.transpose((0, 0))    a.transpose(1)           a.swapaxes(0, 5)     a.squeeze(0)
np.expand_dims(a, 9)   np.moveaxis(a, 0, 7)     np.flip(a, 5)        np.rot90(a)
a.diagonal()           a[5]                     a[:, 1, 1]           np.tile(a, 'x')
a[None, 9]             a[1.5]                   np.atleast_2d(a)[9]  np.split(a, 5)[0]
m[7]                   m[:, 5]                  m[..., 2]            m[0].reshape(3)
a.T[7]                 a[[0, 9]]                np.take(a, 9)        np.repeat(a, -1)
np.stack([a, a[:1]])   np.dot(a, np.ones(7))    a + np.ones(7)       np.sum(a, 5)
np.cumsum(a, 5)        np.sort(a, 5)            np.linalg.inv(a)     np.roll(a, 1, 5)
np.zeros(-1)           np.eye(-2)               np.full((-1,), x)    np.linspace(0, x, -1)
"""
EXPRESSIONS = [part for line in TABLE.splitlines() for part in re.split("  +", line) if part]

PROGRAM = """
import numpy as np
def f(x):
    a, m = np.array([x, x + 1.0, 2.0, x]), np.array([[x, 1.0], [2.0, x]])
    {head}
        a = {expression}
        {end}
    return x
"""


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_errors_of_values_that_nobody_reads(expression):
    for head, end in (("while True:", "break"), ("for _ in range(2):", "pass")):
        f, _ = built(PROGRAM.format(head=head, expression=expression, end=end))
        with pytest.raises(Exception):  # noqa: B017, PT011 # of whatever class
            f(0.3)
        with pytest.raises(Exception):  # noqa: B017, PT011
            nbta.function(f)(0.3)


@pytest.mark.parametrize(
    "expression",
    ["a.reshape((3, 3))", "a.reshape(5, -1)", "m[0].reshape(3)", "m[7]", "a[None, 9]", "a.T[7]"],
)
def test_a_run_that_does_not_come_there_has_none(expression):
    f, _ = built(PROGRAM.format(head="if x > 5.0:", expression=expression, end="pass"))
    assert nbta.function(f)(np.float64(0.3)) == 0.3


def test_views_do_not_ask_for_lengths():
    """A graph is for all lengths of an argument, whatever views a function makes."""

    def f(x, m):
        b, c = m[1:, 2:], x.reshape((-1, 2))
        return b[0] @ c[:, 1] + m[None, 1][0, 0] + m[2, ...].sum()

    traced = nbta.grad(f)
    for n in (4, 6, 9):
        x, m = np.ones(2 * n), np.ones((n + 1, n + 2))
        np.testing.assert_allclose(traced(x, m), np.tile([0.0, 1.0], n))
    assert traced.traces == 1


def put_and_read_again(x, k):
    table = np.zeros(3)
    table[k] = x[0] * 3.0
    return table[k] * x


def put_and_forgotten(x, k):
    put_and_read_again(x, k)
    return 2.0 * x


def total(x, k):
    return np.sum(put_and_read_again(x, k))


def of_rows(f):
    return nbta.function(lambda x, k: nbta.vmap(lambda row: f(row, k))(np.stack([x, x])))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "derivative",
    [
        nbta.jacobian(put_and_read_again),
        nbta.jacfwd(put_and_read_again),
        nbta.jacobian(put_and_forgotten),
        nbta.jacfwd(put_and_forgotten),
        nbta.hessian(total),
        of_rows(put_and_read_again),
        of_rows(nbta.grad(total)),
        of_rows(nbta.jacfwd(put_and_read_again)),
    ],
    ids=str,
)
def test_rows_of_derivatives_and_batches_fail_as_their_function_does(derivative, compiled):
    """An item that is read as what was just put there needs no array, but its index counts."""
    derivative = nbta.function(derivative, compiled=compiled)
    x = np.array([1.0, 2.0])
    assert np.all(np.isfinite(derivative(x, 1)))
    with pytest.raises(nbta.NbtaError, match="out of range"):
        derivative(x, 5)


def two_read_nothing(x, k):
    item = x[k]
    twice = item * 2.0  # noqa: F841
    thrice = item * 3.0  # noqa: F841
    return x[0]


def put_in_a_loop(x, k):
    total, i = 0.0, 0
    while i < 30:  # Python knows, until the break
        pair, triple = np.zeros(2), np.zeros(3)
        pair[0] = x[k]
        pair[1] = pair[0] * 2.0
        triple[1] = pair[1] + 1.0
        triple[2] = triple[1]
        total += triple[2]
        i += 1
        if total > 5.0:
            break
    return total


@pytest.mark.parametrize(("function", "most"), [(two_read_nothing, 2), (put_in_a_loop, 1)])
def test_lines_do_not_take_a_trace_of_the_function_each(function, most, monkeypatch):
    """A value of several lines is missed once, and what was traced in vain misses nothing."""
    count, make = [0], tracing._Trace.make

    def counted(trace, *args):
        count[0] += 1
        return make(trace, *args)

    monkeypatch.setattr(tracing._Trace, "make", counted)
    made, x = nbta.function(function), np.array([1.0, 2.0])
    assert made(x, 1) == function(x, 1)
    assert count == [most]
    with pytest.raises(nbta.NbtaError, match="out of range"):
        made(x, 5)


def moved_up(x):
    """The last of the places in each iteration is of an array whose length only the run knows."""
    found = np.abs(x)
    for j in range(len(x)):
        places = np.nonzero(found[j:] == np.max(found[j:]))[0]
        count = len(places)
        if count > 0:
            found[places[0] + j] = found[j]
    return np.sum(found * found)


def test_counts_that_nobody_reads_are_no_keys():
    x = np.array([-1.0, 2.0, 3.0, 0.5])
    for compiled in (False, True):
        value, gradient = nbta.value_and_grad(moved_up, compiled=compiled)(x)
        assert value == moved_up(x) == 6.25
        np.testing.assert_array_equal(gradient, [-4.0, 4.0, 0.0, 1.0])


ITEM = "x[2 * i]"
WAYS = {
    "statement": ITEM,
    "variable": f"t = {ITEM}",
    "list": f"t = [{ITEM}, 1.0]",
    "appended": f"kept.append({ITEM})",
    "row": f"rows.append([{ITEM}, 1.0])",
    "pair": f"pairs.append(({ITEM}, i))",
    "key": f'by_name["a"] = {ITEM}',
    "none before": f"last = {ITEM}",
    "condition": f"if {ITEM} > 0.0: pass",
    "of and": f"t = i > 0 and {ITEM} > 0.0",
    "picked": f"t = {ITEM} if x[i] > 0.6 else 0.0",
    "item": f"table[0] = {ITEM}",
}
BLOCKS = {
    "loop": "{}",
    "branch": "if x[i] > 0.5:\n            {}",
    "branch that gives something": "if x[i] > 0.5:\n            s += x[i]\n            {}",
    "else": "if x[i] < 0.5:\n            pass\n        else:\n            {}",
    "branch in a branch": "if x[i] > 0.5:\n            if x[i] < 3.0:\n                {}",
    "loop in a branch": "if x[i] > 0.5:\n            for _ in range(2):\n                {}",
}
NESTED = """
import numpy as np
def f(x):
    kept, rows, pairs, by_name, last, table, s = [], [], [], {{}}, None, np.zeros(1), 0.0
    for i in range(len(x)):
        {block}
    return np.sum(x) + s
"""
CASES = {
    **{way: BLOCKS["branch"].format(text) for way, text in WAYS.items()},
    **{block: text.format(WAYS["variable"]) for block, text in BLOCKS.items()},
}


@pytest.mark.parametrize("case", CASES)
def test_items_of_blocks_that_nobody_reads(case):
    """A block that gives nothing is no operation, and what only it takes is taken all the same."""
    f, _ = built(NESTED.format(block=CASES[case]))
    traced = nbta.function(f, compiled=False)
    few, enough = np.linspace(0.2, 1.4, 12), np.linspace(0.7, 0.2, 12)
    for function in (f, traced):
        with pytest.raises(IndexError, match="out of"):
            function(few)
    if case not in ("loop", "branch that gives something"):
        np.testing.assert_allclose(traced(enough), np.sum(enough), rtol=1e-14)


def test_what_is_none_in_a_run_is_no_error_where_nobody_reads_it():
    def f(x):
        last, least, s = None, None, 0.0
        for v in x:
            if v > 100.0:
                last = x[int(v)]  # noqa: F841
            if least is None or v < least:
                least = v
            s += least * v
        return s

    x = np.linspace(0.2, 1.4, 12)
    rows = np.stack([x, 2.0 * x])
    expected = np.array([f(row) for row in rows])
    np.testing.assert_allclose(nbta.vmap(f)(rows), expected, rtol=1e-14)
    slopes = nbta.function(nbta.vmap(nbta.grad(f)))(rows)
    np.testing.assert_allclose(np.sum(slopes * rows, 1), 2.0 * expected, rtol=1e-12)
    rows[1, 3] = 101.0
    with pytest.raises(IndexError):
        nbta.vmap(f)(rows)
