"""Lists that loops make longer, whose items change, come, go and move: as Python has it."""

import re
from typing import NamedTuple

import frontend_checks as checks
import frontend_lists as lists
import frontend_random as made
import numpy as np
import pytest
from frontend_refused import name_of, said
from fuzz.ways import in_python

import nbta

MAY_BE = "may or may not be the same array"
#: Programs that are refused, with words of the error. One that begins to work fails here.
NOT_YET = {
    "items_under_two_lists": MAY_BE,
    "two_names_of_one_row": MAY_BE,
    "copy_of_a_list_of_rows": MAY_BE,
    "row_put_at_two_places": MAY_BE,
    "row_read_before_the_list_is_turned_round": MAY_BE,
}
EACH = [f for f in lists.LISTS if f.__name__ not in NOT_YET]


def held(f, compiled):
    with in_python():
        return checks.check_first(f, (0,), (lists.X.copy(),), compiled)


@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right(f):
    held(f, False)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right_in_generated_code(f):
    explained = held(f, True).explain()
    assert "SlotList: a plain buffer" in explained or "SlotList:" not in explained
    if f.__name__ != "rows_joined":  # TensorArrayConcatV3 is Python's
        assert "in Python" not in explained


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    with in_python():
        checks.check_second(f, (0,), (lists.X.copy(),), True)


class Pair(NamedTuple):
    place: int
    value: float


def lists_of_each_kind(x):
    numbers, arrays, pairs, named, rows, none = [], [], [], [], [], []
    for i in range(len(x)):
        if x[i] > 9.0:
            none.append(x[i])
        numbers.append(2.0 * x[i])
        arrays.append(x[:2] * x[i])
        pairs.append((i, x[i]))
        named.append(Pair(i, x[i]))
        row = []
        for j in range(i):
            row.append(x[j] - x[i])
        rows.append(row)
    return numbers, {"arrays": arrays, "parts": [pairs, 1.5]}, named, rows, none


def alike(found, wanted):
    assert type(found) is type(wanted) or np.ndim(wanted) == 0
    if isinstance(wanted, dict):
        found, wanted = list(found.items()), list(wanted.items())
    if isinstance(wanted, list | tuple):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            alike(one, other)
    elif not isinstance(wanted, str):
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_list_that_a_loop_fills_is_a_list_as_a_result(compiled, long_loops):
    run = nbta.function(lists_of_each_kind, compiled=compiled)
    for n in (2, 5):
        found, wanted = run(lists.X[:n].copy()), lists_of_each_kind(lists.X[:n])
        alike(found, wanted)


def test_returns_of_several_lists():
    def one_in_a_tuple(x):
        found = []
        for v in x:
            found.append(v)
            if v < -0.5:
                return v, found
        return 0.0, []

    def one_alone(x):
        found = []
        for v in x:
            found.append(v)
            if v < -0.5:
                return found
        return found[:2]

    for f in one_in_a_tuple, one_alone:
        with pytest.raises(nbta.InvalidArgumentError, match="list that a loop fills") as failed:
            nbta.function(f, compiled=False)(lists.X)
        assert "break, and return the list after it" in str(failed.value)


def rows_made_anew(x):
    rows = [[x[0] * i + j for j in range(9)] for i in range(9)]
    for v in x[:3]:
        rows = [[0.2 * (rows[i][j] + rows[i - 1][j]) + v for j in range(9)] for i in range(9)]
    return rows[2][3] * rows[8][0] + sum(rows[0])


@pytest.mark.usefixtures("long_loops")
def test_comprehensions_of_rows_that_are_no_loops_of_the_graph():
    """Python makes these; that a loop appends a list that it fills is found before it is read."""
    held(rows_made_anew, False)


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("name", NOT_YET)
def test_refused(name):
    f = getattr(lists, name)
    with pytest.raises(nbta.NbtaError) as failed:
        held(f, False)
    assert re.search(NOT_YET[name], said(failed.value))
    assert name_of(f) in said(failed.value)


def numbers(x):
    items = []
    for v in x:
        items.append(v)
        items[len(items) // 2] *= v
    return items


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("k", [0, 11, -12])
def test_an_item_by_any_index(k, compiled):
    def f(x, k):
        items = numbers(x)
        items[k] = items[k] * 2.0
        return items[k] + sum(items)

    assert nbta.function(f, compiled=compiled)(lists.X, k) == pytest.approx(f(lists.X, k))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("k", [12, -13])
def test_no_item_by_an_index_out_of_range(k, compiled):
    def f(x, k):
        items = numbers(x)
        items[k] = 1.0
        return sum(items)

    message = rf"list index out of range: item {k} of a list of 12 items"
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        nbta.function(f, compiled=compiled)(lists.X, k)


@pytest.mark.parametrize("compiled", [False, True])
def test_no_item_is_taken_off_an_empty_list(compiled):
    def f(x, k):
        items = numbers(x)
        for _ in range(k):
            items.pop()
        return sum(items)

    taken = nbta.function(f, compiled=compiled)
    assert taken(lists.X, 12) == 0.0
    with pytest.raises(nbta.InvalidArgumentError, match="an item that the list does not have"):
        taken(lists.X, 13)


@pytest.mark.parametrize("cut", [np.s_[1:], np.s_[:-1], np.s_[::-1], np.s_[5:2], np.s_[-3:],
                                 np.s_[20:], np.s_[-20:3], np.s_[8:1:-2], np.s_[:-20:-1],
                                 np.s_[20::-3], np.s_[2:9:3]])  # fmt: skip
def test_slices(cut):
    def f(x, start, stop):
        items = numbers(x)
        return np.array(items[cut]), np.array(items[start : stop : cut.step])

    given = [0 if n is None else n for n in (cut.start, cut.stop)]
    with in_python():
        found = nbta.function(f, compiled=False)(lists.X, *given)
    for mine, plain in zip(found, f(lists.X, *given), strict=True):
        np.testing.assert_allclose(mine, plain, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int32])
def test_dtypes(dtype):
    x = (lists.X * 10).astype(dtype)

    def f(x):
        return np.array(numbers(x))

    np.testing.assert_allclose(nbta.function(f, compiled=True)(x), f(x), rtol=1e-6)


def test_no_iterations():
    def f(x):
        items = numbers(x)
        items.reverse()
        return sum(items) + len(items) + 1.0

    assert nbta.function(f)(np.zeros(0)) == 1.0


def test_forwards():
    def f(x):
        return sum(numbers(x))

    direction = checks.directions((lists.X,))
    _, slope = nbta.jvp(f, (lists.X,), direction)
    checks.hold(slope, np.sum(nbta.grad(f)(lists.X) * direction[0]), "forwards")


def test_a_list_from_outside_of_a_function_that_a_loop_is_given():
    def f(x):
        items = numbers(x)

        def body(i, s):
            items[0] = s
            return i + 1, s + items[0]

        return nbta.while_loop(lambda i, s: i < 9, body, (0, x[0]))[1]

    with pytest.raises(nbta.UnimplementedError, match="a function that is given to a loop"):
        nbta.function(f)(lists.X)


@pytest.mark.slow
def test_in_a_loop_with_checkpoints():
    def f(x):
        def body(i, s):
            items = numbers(x * s)
            return i + 1, 0.1 * sum(items) + 0.5

        return nbta.while_loop(lambda i, s: i < 9, body, (0, x[0]), checkpoint=3)[1]

    nbta.testing.check_grads(f, (lists.X,), order=2)


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (8, 48))])
def test_random_programs(first):
    """None is refused: what they do to lists is what nbta takes."""
    counts = {}
    for seed in range(first, first + (40 if first else 8)):
        made.check(made.growing_program(seed), False, counts)
    assert counts["agreed"] > 12, counts
    assert not any(what.startswith("refused") for what in counts), counts


# Lists of as many items as only the run knows.


def one_number(x, n):
    found = [0.0] * n
    for i in range(n):
        found[i] += x * i
    return found[-1] + sum(found) + len(found)


def an_integer(x, n):
    found = (n + 1) * [0]
    for i in range(n):
        found[i] = x * i
    return found[n - 1] + found[n]


def several(x, n):
    return sum([x, 1.0, x * x] * n) * x


def of_a_loops_list(x, n):
    found = []
    for i in range(n):
        found.append(x * i)
    twice = found * (n - 1)
    return sum(twice) + (twice[-1] if n > 1 else 0.0)


def knapsack(x, n):
    best = [0.0] * (n + 1)
    for k in range(3):
        for c in range(n, k, -1):
            best[c] = max(best[c], best[c - k - 1] + x * (k + 1))
    return best[n]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [one_number, an_integer, several, of_a_loops_list, knapsack])
def test_lists_repeated_as_often_as_the_run_knows(f, compiled):
    found = nbta.value_and_grad(f, compiled=compiled)
    for n in (4, 1, 6):
        value, slope = found(1.3, n)
        assert value == pytest.approx(f(1.3, n), rel=1e-12)
        wanted = (f(1.3 + 1e-6, n) - f(1.3 - 1e-6, n)) / 2e-6
        assert slope == pytest.approx(wanted, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        (
            lambda x, n: sum((x, 1.0) * int(x * n)),
            nbta.UnimplementedError,
            "a tuple, a string, or a list whose items",
        ),
        (
            lambda x, n: len("a" * int(x * n)) * x,
            nbta.UnimplementedError,
            "a tuple, a string, or a list whose items",
        ),
        (
            lambda x, n: ([[x]] * int(x * n))[0][0],
            nbta.UnimplementedError,
            "a tuple, a string, or a list whose items",
        ),
        (
            lambda x, n: sum([x] * x),
            TypeError,
            "can't multiply sequence by non-int of type 'float'",
        ),
    ],
)
def test_other_sequences_are_not_repeated(f, kind, message):
    with pytest.raises(kind, match=message):
        nbta.grad(f)(2.0, 3)
