"""Lists of numbers that a loop appends to a list: rows that are read, assigned and moved."""

import numpy as np
import pytest
from frontend_checks import check_of_an_array
from numba import njit

import nbta
from nbta.testing import check_grads

X = np.array([0.7, -0.4, 1.3, 0.2, -1.1, 0.9, 0.5, -0.8, 1.6, 0.1])


def table_that_is_assigned(x):
    n, table = len(x), []
    for _ in range(n + 1):
        table.append([0.0] * (n + 1))
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            gain = table[i - 1][j - 1] + x[i - 1] * x[j - 1]
            table[i][j] = max(table[i - 1][j], table[i][j - 1], gain)
    return table[n][n]


def triangle(x):
    rows = [[x[0]]]
    for i in range(1, len(x)):
        row = [x[i]]
        for j in range(1, i):
            row.append(0.5 * (rows[i - 1][j - 1] + rows[-1][j]))
        row.append(2.0)
        rows.append(row)
    total = sum(rows[-1]) + max(rows[4]) * len(rows[3])
    for row in rows:
        for v in row:
            total += v * v
    return total


def steps_of_a_solver(x):
    y, k = [x[0], 0.0], 0
    path = [y]
    while path[-1][0] > 0.05 and k < 40:
        slope = [-0.3 * path[-1][0], path[-1][0]]
        y = [y[0] + 0.5 * slope[0], y[1] + 0.5 * slope[1]]
        path.append(y)
        k += 1
    total = 0.0
    for a, b in path:
        total += a * b
    return total + path[-1][1] * len(path)


def as_an_array(x):
    rows = []
    for k in range(len(x)):
        rows.append([k * x[k], 1.0, x[k] ** 2])
    table = np.array(rows)
    both = rows[3] + rows[4]  # the items of both
    return np.sum(table[:, 0] * table[:, 2]) + len(both) * both[3] + sum(r[2] for r in rows[2:5])


def rows_that_move(x):
    rows = []
    for k in range(len(x)):
        rows.append([x[k] * k, k, -x[k]])
    rows.reverse()
    last = rows.pop()
    rows.insert(2, [x[0], x[1], 4.0])
    rows[1] = [x[2] ** 2, 2.0, 3.0]
    del rows[0]
    rows[1][2] += last[2]
    first, second = rows[0], rows[1]
    return first[0] * second[1] + second[-1] ** 2 + rows[4][0] * rows[5][1]


PROGRAMS = [table_that_is_assigned, triangle, steps_of_a_solver, as_an_array, rows_that_move]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_rows_that_a_loop_appends(f):
    for compiled in (False, True):
        value, _ = nbta.value_and_grad(f, compiled=compiled)(X)
        np.testing.assert_allclose(value, f(X), rtol=1e-13)
    check_grads(f, (X,), order=1)


def test_rows_in_a_compiled_function():
    own = njit(table_that_is_assigned)
    value, gradient = nbta.value_and_grad(own)(X)
    expected = nbta.value_and_grad(table_that_is_assigned)(X)
    np.testing.assert_allclose(value, own(X), rtol=1e-13)
    np.testing.assert_allclose(gradient, expected[1], rtol=1e-13)


def changed_after_it_was_appended(x):
    rows = []
    for v in x:
        row = [v, v]
        rows.append(row)
        row[0] = v * v
    return rows[3][0]


def read_after_the_copy_was_assigned(x):
    rows, total = [], 0.0
    for v in x:
        row = [v, v]
        rows.append(row)
        rows[-1][0] = v * v
        total += row[0]
    return total


def read_in_the_next_iteration(x):
    rows, row, total = [], [x[0], x[1]], 0.0
    for k in range(len(x)):
        if k > 0:
            rows[-1][0] += x[k]
        total += row[0]
        row = [x[k], x[k]]
        rows.append(row)
    return total


def twice(x):
    rows, row = [], [x[0], x[1]]
    for k in range(len(x)):
        rows.append(row)
        rows[k][0] += x[k]
    return rows[3][0]


def grown_later(x):
    rows = []
    for v in x:
        rows.append([v])
        rows[-1].append(v)
    return rows[3][0]


def of_several_lengths(x):
    rows = []
    for k in range(len(x)):
        row = [x[k]]
        for _ in range(k):
            row.append(x[k])
        rows.append(row)
    return np.sum(np.array(rows))


REFUSED = {
    changed_after_it_was_appended: "appended to a list is changed afterwards",
    read_after_the_copy_was_assigned: "is read, or changed, after an item of that one was",
    read_in_the_next_iteration: "is read, or changed, after an item of that one was",
    twice: "where it may be twice",
    grown_later: "fill it before it is appended",
    of_several_lengths: "the lists of a list have several lengths",
}


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_lists_under_two_names_are_no_wrong_number(f):
    with pytest.raises(nbta.NbtaError, match=REFUSED[f]):
        nbta.value_and_grad(f, compiled=False)(X)


@pytest.mark.parametrize(
    "f", [changed_after_it_was_appended, read_after_the_copy_was_assigned, grown_later]
)
def test_short_loops_over_lists_under_two_names_are_pythons(f):
    check_of_an_array(f, X, compiled=False)


def parts_by_bounds_of_the_run(x):
    numbers, total = [v * v for v in [x[0], x[1], x[2], 3.0]], 0.0
    for k in range(len(x)):
        part = numbers[k % 3 : k % 3 + 2]
        total += part[0] * x[k] + sum(part) * len(part)
    return total


def in_order(x):
    found = []
    for v in x:
        if v > -1.0:
            found.append(v * v)
    up, down = sorted(found), sorted(found, reverse=True)
    return up[0] + 2.0 * up[-1] * down[1] + sum(down[:3]) * len(up)


def a_range_as_an_array(x):
    lags = range(2, len(x) // 2)
    return np.sum(np.log(np.array(lags)) * x[: len(lags)]) + np.sum(np.sqrt(lags)) * x[0]


@pytest.mark.parametrize("f", [parts_by_bounds_of_the_run, in_order, a_range_as_an_array])
def test_lists_and_ranges_by_lengths_of_the_run(f):
    for compiled in (False, True):
        value, _ = nbta.value_and_grad(f, compiled=compiled)(X)
        np.testing.assert_allclose(value, f(X), rtol=1e-13)
    check_grads(f, (X,), order=1)


def test_fits_to_points_that_the_run_counts():
    """More points than columns, fewer, and none."""

    def fitted(x):
        found = []
        for v in x:
            if v > 0.0:
                found.append(v)
        line = np.polyfit(np.arange(len(found)), found, 1)
        rows = np.stack([np.array(found), np.ones(len(found)), np.array(found) ** 2], axis=1)
        return line, np.linalg.lstsq(rows, np.cos(np.array(found)), rcond=0.01)

    few = X - np.sort(X)[-2] + 0.1
    for compiled in (False, True):
        run = nbta.function(fitted, compiled=compiled)
        for x in (X, few):
            wanted = nbta.structure.leaves(fitted(x))
            for one, other in zip(nbta.structure.leaves(run(x)), wanted, strict=True):
                assert np.shape(one) == np.shape(other)
                np.testing.assert_allclose(one, other, rtol=1e-9)
        with pytest.raises(ValueError, match="polyfit: there are no points"):
            run(-abs(X))
    for x in (X, few):
        check_grads(nbta.function(lambda x: fitted(x)[1][0], compiled=False), (x,), order=1)
