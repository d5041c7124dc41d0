"""Conditions of loops that do something: change arrays and objects, draw, or check values."""

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

ARGUMENTS = [np.array([3.5, 2.0]), np.array([0.35, 5.1])]


def _fall(a, k=0):
    a[k] *= 0.8
    return a[k]


class _Counter:
    def __init__(self, left):
        self.left = left

    def goes_on(self):
        self.left = self.left - 1.0
        return self.left > 0.3


def changes_an_array(x):
    a, total = x.copy(), 0.0
    while _fall(a) > 0.3:
        total += a[0] * x[1]
    return total + a[0]


def changes_what_the_body_changes(x):
    a, total = x.copy(), 0.0
    while _fall(a) > 0.3:
        a[0] -= 0.1
        total += a[0] * x[1]
    return total + a[0]


def changes_an_attribute(x):
    counter, total = _Counter(x[0]), 0.0
    while counter.goes_on():
        counter.left = counter.left * 0.9
        total += counter.left * x[1]
    else:
        total = total * 2.0
    return total + counter.left


def changes_a_variable_around(x):
    level, total = x[0], 0.0

    def goes_on():
        nonlocal level
        level = level * 0.7
        return level > 0.3

    while goes_on():
        total += level * x[1]
    return total + level


def changes_a_dict_if_asked(x):
    state, total = {"level": x[0]}, 0.0

    def goes_on():
        state["level"] = state["level"] * 0.7
        return state["level"] > 0.3

    while total < 4.0 and goes_on():
        total += state["level"] * x[1]
    return total + state["level"]


def appends(x):
    levels, total = [x[0]], 0.0

    def goes_on():
        levels.append(levels[-1] * 0.7)
        return levels[-1] > 0.3

    while goes_on():
        total += levels[-1] * x[1]
    return total + len(levels) * levels[0]


def jumps(x):
    a, total, count = x.copy(), 0.0, 0
    while _fall(a) > 0.2:
        count += 1
        if count % 3 == 0:
            continue
        if count > 6:
            break
        total += a[0] * x[1]
    else:
        total = total * 10.0
    return total + a[0]


def returns(x):
    a, count = x.copy(), 0
    while _fall(a) > 0.2:
        count += 1
        if a[0] * count > 2.2:
            return a[0] * x[1]
    return a[0]


def nests(x):
    a, total = x.copy(), 0.0
    while _fall(a) > 0.5:
        a[1] = x[1]
        while _fall(a, 1) > 0.5:
            total += a[0] * a[1]
    return total


def falls_by_one_or_the_other(x):
    a, total = x.copy(), 0.0
    while _fall(a) > 0.5 or _fall(a, 1) > 0.5:
        total += a[0] * a[1]
    return total


def draws(x):
    rng, total = np.random.default_rng(3), 0.0
    while rng.random() < x[0] * 0.2:
        total += x[1] * rng.random()
    return total


def binds_a_name(x):
    total, k = x[0], 0
    while (k := k + 1) < 5 and total > 0.1:
        total = total * 0.7
    else:
        total = total * 100.0
    return total * k


def binds_a_name_and_breaks(x):
    total, k = x[0], 0
    while (k := k + 1) < 5:
        if total < 1.5:
            break
        if k == 2:
            continue
        total = total * 0.7
    else:
        total = total * 100.0
    return total * k


PROGRAMS = [
    changes_an_array, changes_what_the_body_changes, changes_an_attribute,
    changes_a_variable_around, changes_a_dict_if_asked, appends, jumps, returns, nests,
    falls_by_one_or_the_other, draws, binds_a_name, binds_a_name_and_breaks,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("compiled", [False, True])
def test_what_conditions_do_stays_done(program, compiled):
    for x in ARGUMENTS:
        value, _ = nbta.value_and_grad(program, compiled=compiled)(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        check_grads(nbta.function(program, compiled=compiled), (x,), order=1)


def _divides(x, n):
    total, k = 0.0, n[0]
    while 12 // k > 2:
        assert total < 100.0
        k = k + 1
        total += x[0]
    return total


def _looks_up(x, n):
    total, table, k = 0.0, {1: 2.0, 2: 3.0, 3: 0.5}, n[0]
    while table[k] > 1.0:
        k = k + 1
        total += x[0]
    return total


def _asserts(x, n):
    def is_large(v):
        if v < 0.5:
            raise AssertionError("too small")
        return v > 1.0

    total, v = 0.0, x[0] * n[0]
    while is_large(v):
        v = v * 0.5
        total += v
    return total


@pytest.mark.parametrize(
    ("program", "fine", "failing", "error"),
    [
        (_divides, (2.0, 2), (2.0, 0), ZeroDivisionError),
        (_looks_up, (2.0, 1), (2.0, 7), KeyError),
        (_asserts, (1.2, 1), (0.3, 1), AssertionError),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_what_conditions_check_fails_in_a_run(program, fine, failing, error, compiled):
    found = nbta.value_and_grad(program, compiled=compiled)
    x, n = np.array(fine[:1]), np.array(fine[1:])
    np.testing.assert_allclose(found(x, n)[0], program(x, n))
    with pytest.raises(error):
        found(np.array(failing[:1]), np.array(failing[1:]))
