"""Parts of expressions, and items of iterators, that Python computes if a run comes to them."""

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

ARGUMENTS = [np.array([2.5, 0.7, 1.3]), np.array([0.6, 3.1, 2.2]), np.array([1.1, 1.2, 0.4])]


class _Sum:
    """Sums up what it is asked for."""

    def __init__(self):
        self.total = 0.0

    def __call__(self, value):
        self.total += value
        return value


def comparisons_that_change_an_object(x):
    seen, found = _Sum(), 0.0
    for v in x:
        if 0.5 < seen(v) < 2.0 < seen(v * 2) < seen(v * 3):
            found += v * v
    return found + seen.total


def comparisons_that_change_an_array(x):
    seen, found = np.zeros(1), 0.0

    def noted(v):
        seen[0] += v
        return v

    for v in x:
        if 0.5 < noted(v) < 2.0 < noted(v * 2):
            found += v * v
    return found + seen[0]


def comparisons_of_items(x):
    found = 0.0
    for i in range(3):
        if 0.5 < x[i] <= x[i - 1] != 0.7:
            found += x[i]
        if 0 <= i - int(x[i]) < 3:
            found += x[i - int(x[i])] ** 2
    return found


def all_items_of_a_list(x):
    seen = _Sum()
    decided = any([seen(v) > 2.0 for v in x])  # noqa: C419 - all items are computed
    return seen.total * (2.0 if decided else 1.0)


def one_way_or_the_other(x):
    seen = _Sum()
    found = seen(x[0]) if x[1] > 1 else seen(x[1]) * 2
    return seen.total * found


def a_message_of_an_assertion(x):
    seen = _Sum()
    if x[0] < -5.0:
        raise ValueError(f"{seen(x[1])}")
    assert x[0] > 0.0, seen(x[1])
    return seen.total + x[0]


def sums_of_generators(x):
    seen = _Sum()
    return sum(seen(v) for v in x if v > 1.0) * seen.total + max(seen(v) for v in x)


@pytest.mark.parametrize(
    "program",
    [
        comparisons_that_change_an_object, comparisons_that_change_an_array, comparisons_of_items,
        all_items_of_a_list, one_way_or_the_other, a_message_of_an_assertion, sums_of_generators,
    ],
)  # fmt: skip
@pytest.mark.parametrize("compiled", [False, True])
def test_what_a_run_comes_to_is_done(program, compiled):
    for x in ARGUMENTS:
        value, _ = nbta.value_and_grad(program, compiled=compiled)(x)
        np.testing.assert_allclose(value, program(x), rtol=1e-12)
        check_grads(nbta.function(program, compiled=compiled), (x,), order=1)


def any_of_a_generator(x):
    seen = []

    def is_large(v):
        seen.append(v)
        return v > 2.0

    return (2.0 if any(is_large(v) for v in x) else 1.0) * sum(seen)


def all_of_a_user_generator(x):
    seen = _Sum()

    def items():
        for v in x:
            seen(v)
            yield v

    return (2.0 if all(v > 1.0 for v in items()) else 1.0) * seen.total


def the_next_of_a_generator(x):
    seen = _Sum()
    found = next((v for v in x if seen(v) > 1.0), x[0])
    return found * seen.total


def a_loop_over_a_map(x):
    seen, found = _Sum(), 0.0
    for v in map(seen, x):
        found += v
        if found > 2.0:
            break
    return found + seen.total


def a_loop_over_pairs(x):
    seen, found = _Sum(), 0.0
    for v, w in zip(x, (seen(v) for v in x), strict=True):
        found += v * w
        if found > 2.0:
            break
    return found + seen.total


def a_loop_over_a_generator_with_a_test(x):
    seen, found = _Sum(), 0.0
    for v in (v for v in x if seen(v) > 0.65):
        found += v
        if found > 2.0:
            break
    return found + seen.total


@pytest.mark.parametrize(
    "program",
    [
        any_of_a_generator, all_of_a_user_generator, the_next_of_a_generator, a_loop_over_a_map,
        a_loop_over_pairs, a_loop_over_a_generator_with_a_test,
    ],
)  # fmt: skip
def test_changes_by_items_that_a_run_may_not_come_to_are_refused(program):
    with pytest.raises(nbta.InvalidArgumentError, match=r"test_early_ends.*computing the item cha"):
        nbta.value_and_grad(program)(ARGUMENTS[0])
