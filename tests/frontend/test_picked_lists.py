"""Lists that an index of the run chooses among others, and lists in lists."""

import copy
import linecache
import random

import numpy as np
import pytest

import nbta
from nbta.graph.graph import everything
from nbta.testing import check_grads

X = np.array([0.11, 0.43, 0.81, 0.93, 0.22, 0.64])
RIGHT, REFUSED = {}, {}


def right(function):
    """Note a program that gives what Python gives."""
    RIGHT[function.__name__] = function
    return function


def refused(words):
    """Note a program whose error says some words."""

    def note(function):
        REFUSED[function.__name__] = function, words
        return function

    return note


@right
def buckets(x):
    bins = [[], [], []]
    for i in range(len(x)):
        bins[int(x[i] * 3)].append(x[i])
    return sum(bins[0]) + 2 * sum(bins[1]) + 3 * sum(v * v for v in bins[2])


@right
def buckets_in_order(x):
    bins = [[] for _ in range(4)]
    for v in x:
        b = bins[int(v * 4)]
        b.append(v)
        j = len(b) - 1
        while j > 0 and b[j - 1] > b[j]:
            b[j - 1], b[j] = b[j], b[j - 1]
            j -= 1
    total, rank = 0.0, 1
    for b in bins:
        for v in b:
            total += v * rank
            rank += 1
    return total


@right
def neighbours_that_grow(x):
    near = [[] for _ in range(6)]
    for i in range(6):
        j = int(x[i] * 5)
        near[i].append(j)
        near[j] += [i]
    total = 0.0
    for i in range(6):
        for j in near[i]:
            total += x[i] * x[j] ** 2
    return total


@right
def known_neighbours(x):
    near, total = [[1, 2], [0], [1, 0, 2]], 0.0
    for j in near[int(x[0] * 3)]:
        total += x[0] * x[j]
    return total


@right
def items(x):
    rows = [[x[0], x[1]], [x[1], x[2]], [x[2], x[0]]]
    k = int(x[0] * 3)
    rows[k][1] = x[3] ** 2
    rows[k][-2] += x[4]
    row = rows[k]
    rows[0][0] *= x[5]
    return row[0] + 2 * rows[1][1] + 3 * rows[0][1] * len(row)


@right
def deeper_items(x):
    rows = [[[0.0] * 2 for _ in range(2)] for _ in range(3)]
    for i in range(len(x)):
        rows[int(x[i] * 3)][i % 2][int(x[i] * 2)] += x[i] ** 2
    return rows[0][0][0] + 2 * rows[1][1][0] + 3 * rows[2][1][1] + 5 * rows[2][0][1]


@right
def other_methods(x):
    rows = [[x[0], x[1]], [x[1], x[2], x[3]]]
    k = int(x[2] * 2)
    last = rows[k].pop()
    rows[k].insert(0, x[5])
    rows[k].extend([x[4], 1.0])
    rows[k].reverse()
    del rows[1 - k][0]
    more = rows[k] + [last]
    return more[0] * rows[1][-1] + sum(more) * x[0] + rows[0][0]


@right
def by_key(x):
    bins = {0: [], 1: [], 2: []}
    for v in x:
        bins[int(v * 3)].append(v * v)
    return sum(bins[0]) + 2 * sum(bins[2])


@right
def two_names(x):
    a, b = [x[0], x[1]], [x[1], x[2]]
    rows = [a, b, a]
    rows[int(x[2] * 3)][0] = x[3]
    return a[0] * rows[0][0] + 2 * b[0]


@right
def tuples(x):
    pairs = [(x[0], 1), (x[1], 2), (x[2], 3)]
    value, place = pairs[int(x[1] * 3)]
    return value * x[place] + sum((*pairs[int(x[0] * 3)], 1.0))


@right
def lists_of_python(x):
    rows, more = x.reshape(2, 3).tolist(), copy.deepcopy([[1.0], [2.0]])
    row, other = rows[1], more[1]
    row[1] = x[0] ** 2
    other.append(x[1])
    if x[0] < 0.5:
        rows[0][0] = x[2] ** 3
    return rows[1][1] + rows[0][0] + sum(more[1])


@right
def chosen_in_a_branch(x):
    rows = [[x[0], x[1]], [x[1], x[2]]]
    row = rows[0]
    if x[0] < 0.5:
        row = rows[int(x[3] * 2)]
    row[0] = x[4]
    return rows[1][0] * x[5] + row[1]


@right
def rows_that_change_places(x):
    a = [[x[0], x[1]], [x[2], x[3]], [x[4], x[0] * x[1]]]
    row, p = a[0], int(x[1] * 1.5) + 1
    a[0], a[p] = a[p], a[0]
    row[0] *= 5.0
    a[0][1] += 2.0
    held = a[p]
    a[p] = a[1]
    a[1] = held
    held[1] *= x[2]
    return sum((i + 1) * (j + 2) * v for i, r in enumerate(a) for j, v in enumerate(r)) + row[1]


@right
def rows_that_change_places_in_branches(x):
    n, sign = 3, 1.0
    a = [[x[(2 * i + j) % 5] + 0.1 * i * j for j in range(n)] for i in range(n)]
    b = [1.0, x[0], 2.0]
    for i in range(n):
        p = i
        for r in range(i + 1, n):
            if abs(a[r][i]) > abs(a[p][i]):
                p = r
        if p != i:
            a[i], a[p] = a[p], a[i]
            b[i], b[p] = b[p], b[i]
            sign = -sign
        for r in range(i + 1, n):
            f = a[r][i] / a[i][i]
            for c in range(i, n):
                a[r][c] -= f * a[i][c]
            b[r] -= f * b[i]
    return sign * a[0][0] * a[1][1] + b[1]


@right
def counted(x):
    rows = [[x[0], x[1]], [x[1], x[2]]]
    return rows[int(x[3] * 2)].count(x[1]) * x[0] + rows[int(x[3] * 2)].index(x[1]) * x[2]


@refused("compare indices")
def identity(x):
    rows = [[1, 2], [3, 4]]
    return x[0] if rows[int(x[0] * 2)] is rows[0] else x[1]


@refused("chooses an item of a list of dict")
def dicts(x):
    rows = [{"a": x[0]}, {"a": x[1]}]
    return rows[int(x[0] * 2)]["a"]


@refused("arrays of several shapes")
def ragged_arrays(x):
    rows = [np.zeros(2), np.zeros(3)]
    rows[int(x[0] * 2)][1] += x[0]
    return rows[0][1]


@refused("one of tuples of several lengths")
def ragged_tuples(x):
    return x[0] * ((1, 2), (3,))[int(x[0] * 2)][0]


@right
def table_of_costs(x):
    n, m = len(x), len(x) - 1
    cost = [[float("inf")] * (m + 1) for _ in range(n + 1)]
    cost[0][0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            step = (x[i - 1] - 0.9 * x[j]) ** 2
            cost[i][j] = step + min(cost[i - 1][j], cost[i][j - 1], cost[i - 1][j - 1])
    return cost[n][m]


@right
def rows_that_are_one_list(x):
    table = [[0.0] * 4] * 3
    for i in range(3):
        for j in range(4):
            table[i][j] += x[i] * (j + 1)
    return table[0][1] + 2 * table[2][3] + table[1][0]


@right
def row_by_another_name(x):
    table = [[0.0] * 4 for _ in range(3)]
    row = table[1]
    for i in range(len(x)):
        table[i % 3][i % 4] += x[i]
        row[i % 4] += 1.0 * i * x[0]
    return sum(row) + table[1][2] * table[0][0]


@right
def places_from_the_end(x):
    table = [[1.0] * 5 for _ in range(3)]
    for i in range(len(x)):
        table[-(i % 3) - 1][-(i % 5) - 1] *= x[i]
        table[i % 3][0] += x[1]
    return sum([sum(row) for row in table])


@right
def two_rows_by_turns(x):
    rows = [[0.1] * 3 for _ in range(2)]
    for i in range(len(x)):
        now, before = rows[i % 2], rows[(i + 1) % 2]
        for j in range(3):
            now[j] = before[j] * 0.5 + x[i] * j
    return rows[0][2] + rows[1][1]


@right
def integers_that_become_floats(x):
    table = [[0] * 4 for _ in range(3)]
    for i in range(len(x)):
        table[i % 3][(i * 2) % 4] = x[i] * 2 if i > 2 else i
    return table[0][0] + table[1][2] * table[2][2] + table[2][0] * table[0][2]


@right
def three_deep(x):
    box = [[[0.0] * 3 for _ in range(2)] for _ in range(4)]
    for i in range(len(x)):
        box[i % 4][i % 2][i % 3] += x[i] * x[0]
    return box[0][0][0] + box[1][1][1] * box[3][1][0] + box[2][0][2]


@right
def products_of_tables(x):
    n = 4
    a, c = [[0.0] * n for _ in range(n)], [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(n):
            a[i][j] = x[(i * j) % 6] + i
    for i in range(n):
        for j in range(n):
            for k in range(n):
                c[i][j] += a[i][k] * a[k][j]
    return c[1][2] * c[3][3]


@refused(r"a loop appends a list to a list, .* as \[\[0.0\] \* m for _ in range\(n\)\]")
def appended_empty_rows(x):
    rows = []
    for _ in range(2 * len(x)):
        rows.append([])
    return rows[0][0] * x[0]


OUTER = [[1.0, 2.0], [3.0, 4.0]]


@refused("from outside of the function is assigned")
def list_from_outside(x):
    OUTER[1][0] = x[0]
    return OUTER[1][0]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_right(name, compiled):
    """Value and gradient."""
    function = RIGHT[name]
    traced = nbta.function(function, compiled=compiled)
    assert float(traced(X)) == pytest.approx(float(function(X.copy())), rel=1e-12)
    check_grads(traced, (X,), order=1)


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    """The error names the line and says what to do."""
    function, words = REFUSED[name]
    with pytest.raises(nbta.NbtaError, match=rf"test_picked_lists\.py:\d+: .*{words}"):
        nbta.value_and_grad(function, compiled=False)(X)
    assert OUTER == [[1.0, 2.0], [3.0, 4.0]]


def test_past_the_end():
    """Python's error of a run, with its line."""

    def f(x):
        rows = [[x[0], x[1]], [x[1]]]
        return rows[int(x[0] * 2)][1]

    for compiled in (False, True):
        fast = nbta.function(f, compiled=compiled)
        assert fast(X) == X[1]
        with pytest.raises(IndexError, match=r"test_picked_lists\.py:\d+: list index out of"):
            fast(X + 0.5)


def test_nested_argument():
    """A list in a list that is an argument, changed by another name."""

    def f(rows, x):
        rows[0][0] = x[0] ** 2
        row = rows[1]
        row[1] = x[1]
        return rows[0][0] * rows[1][1]

    given = [[1.0, 2.0], [3.0, 4.0]]
    value, slope = nbta.value_and_grad(f, argnums=1, compiled=False)(given, X)
    assert value == pytest.approx(X[0] ** 2 * X[1])
    assert slope[:2] == pytest.approx([2 * X[0] * X[1], X[0] ** 2])
    assert given == [[1.0, 2.0], [3.0, 4.0]]


def smoothed(x):
    n = len(x)
    sums = [0.0] * (n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] * 0.5 + x[i]
    return sums[n]


def warped(x):
    n = len(x)
    cost = [[0.0] * n for _ in range(n)]
    for i in range(1, n):
        for j in range(1, n):
            cost[i][j] = abs(x[i] - 0.5 * x[j]) + min(cost[i - 1][j], cost[i][j - 1])
    return cost[n - 1][n - 1]


@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
@pytest.mark.parametrize(("f", "count"), [(smoothed, 1500), (warped, 24)])
def test_long_lists_and_large_tables(f, count):
    """Among more rows than branches would do for, and more items than calls may be nested."""
    x = np.random.default_rng(3).random(count)
    value, gradient = nbta.value_and_grad(f, compiled=True)(x)
    assert value == pytest.approx(f(x), rel=1e-12)
    along = np.cos(np.arange(count))
    slope = (f(x + 1e-6 * along) - f(x - 1e-6 * along)) / 2e-6
    assert gradient @ along == pytest.approx(slope, rel=1e-6)


def turns(x, steps):
    total = 0.0
    for t in range(steps):
        for i in range(len(x)):
            for j in range(len(x)):
                total += x[i] * x[j - t % 2]
    return total


def test_loops_take_the_numbers_of_a_list_as_one_array():
    """And so do their gradients: three loops add to no number of the list by itself."""
    x, function = [0.25 * k for k in range(40)], nbta.value_and_grad(turns, compiled=False)
    value, gradient = function(x, 3)
    assert value == pytest.approx(turns(x, 3), rel=1e-12)
    up, down = ([*x[:7], x[7] + h, *x[8:]] for h in (1e-6, -1e-6))
    assert gradient[7] == pytest.approx((turns(up, 3) - turns(down, 3)) / 2e-6, rel=1e-6)
    found = list(everything(function.traced()[0]))
    assert sum(op.type == "Stack" and len(op.inputs) == 40 for op in found) == 1
    loops = [op for op in found if op.type == "While"]
    assert len(loops) >= 2
    assert max(len(op.inputs) for op in loops) < 20


class Tables:
    """Writes programs that read and assign items of two tables, which may have rows in common."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def program(self):
        """The function, and its text."""
        pick = self._random.choice
        rows = pick(
            ["[[1.0] * 4 for _ in range(3)]", "[[1.0] * 4] * 3", "[[2, 1, 0, 1]] * 2 + [[1.0] * 4]"]
        )
        lines = ["def program(x):", f"    a = {rows}", "    b = [[x[0]] * 4, a[1], [0.5] * 4]"]
        lines += [
            f"    row = {pick(['a[0]', 'b[1]', 'b[2]', '[0.0] * 4'])}",
            "    for i in range(6):",
        ]
        for _ in range(3):
            lines.append(f"        {self._item()} {pick(['=', '+=', '*='])} {self._value()}")
        if pick([True, False]):
            lines.append(f"        if x[i] > 0.5: {self._item()} = {self._value()}")
        lines.append("    return sum([sum(r) * (k + 1) for k, r in enumerate(a + b + [row])])")
        text = "\n".join(lines)
        name, names = f"<tables {id(self)}>", {}
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec"), names)
        return names["program"], text

    def _item(self):
        pick = self._random.choice
        place = pick(["i % 3", "-(i % 3) - 1", "(i * 2) % 3", "1", "0"])
        column = pick(["i % 4", "(i + 1) % 4", "-1 - i % 4", "2"])
        return pick([f"a[{place}][{column}]", f"b[{place}][{column}]", f"row[{column}]"])

    def _value(self):
        return self._random.choice([f"0.5 * {self._item()} + x[i]", f"{self._item()} * x[5 - i]",
                                    "1.5", f"{self._item()} - {self._item()}"])  # fmt: skip


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.slow_but_every(4)
def test_random_tables_of_lists_are_pythons(seed):
    program, text = Tables(seed).program()
    for compiled in (False, True):
        found = nbta.value_and_grad(program, compiled=compiled)(X)
        assert found[0] == pytest.approx(program(list(X)), rel=1e-12), text
    compare = [(program(list(X + h)) - program(list(X - h))) / 2e-6 for h in 1e-6 * np.eye(6)]
    np.testing.assert_allclose(found[1], compare, rtol=1e-5, atol=1e-6, err_msg=text)


def filling(count):
    def f(x):
        bins = [[] for _ in range(count)]
        for v in x:
            bins[int(v * count)].append(v)
        return sum(bins[0])

    return f


def test_many_lists_are_told():
    """Tracing takes longer than in proportion to them."""
    function = nbta.function(filling(17), compiled=False)
    with pytest.warns(
        nbta.PerformanceWarning, match=r"test_picked_lists.py:\d+: .* among 17 lists"
    ):
        assert function(X[:2]) == 0.0
    with pytest.raises(nbta.NbtaError, match=r"among 65 lists, .* a 2-D array with a count"):
        nbta.function(filling(65), compiled=False)(X)
