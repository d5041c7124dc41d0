"""Items that a mask picks which only the run knows, in a time linear in its length."""

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads


def around_a_threshold(x, mask):
    return np.sum(x[x > 0.1]) / (1.0 - np.sum(x[x < -0.1]))


def squares_in_place(x, mask):
    y = x * 2.0
    y[mask] = y[mask] ** 2
    return np.sum(y)


def of_two_axes(x, mask):
    y = np.outer(x, x)
    rows, columns = np.nonzero(y > 0.21)
    return np.sum(y[y > 0.21]) + np.sum(y[rows, columns] * columns)


def in_a_loop(x, mask):
    total = 0.0
    for i in range(len(x)):
        total += np.sum(x[x > x[i]] * i)
    return total


def where_they_are(x, mask):
    places = np.flatnonzero(mask)
    return np.sum(x[places] * places) + len(places)


def summed(x, mask):
    return np.sum(x[mask]) + np.mean(x[~mask])


def as_lists(x, mask):
    picked, places = list(x[x > 0.1]), list(np.flatnonzero(mask))
    picked.append(2.0)
    total = 0.0
    for v in picked:
        total += v * picked[0]
    for row in list(np.outer(x, x)[mask]):
        total += row[0] * row[-1]
    return total * len(picked) + len(places)


def different_items(x, mask):
    total, kinds = 0.0, np.round(2.6 * x).astype(int)
    for kind in np.unique(kinds):
        total += kind * np.sum(x[kinds == kind] ** 2)
    found, first, inverse, counts = np.unique(np.outer(x, x), True, True, True)
    total += np.sum(found * counts) + np.sum(found[inverse] * np.arange(len(x))) + first[0]
    return total + len(np.unique(x[x > 0.1])) * found[-1]


PROGRAMS = [
    around_a_threshold, squares_in_place, of_two_axes, in_a_loop, where_they_are, summed, as_lists,
    different_items,
]  # fmt: skip
#: Masks that are mixed, true at the ends, at one end alone, and of one item.
ROWS = [
    ([0.5, -0.7, 0.3, 0.9, -0.2, 0.4], [1, 0, 0, 1, 0, 1]),
    ([0.5, -0.7, 0.3, 0.9, -0.2, 0.4, 1.3], [0, 0, 0, 0, 0, 0, 1]),
    ([0.6, 0.2, -0.4], [1, 1, 0]),
    ([0.6, -0.5], [0, 1]),
]


@pytest.mark.parametrize("f", PROGRAMS)
def test_each_run_picks_as_many_items_as_are_true(f):
    slopes = [nbta.value_and_grad(f, compiled=kind) for kind in (True, False)]
    for x, mask in ROWS:
        x, mask = np.array(x), np.array(mask, bool)
        for slope in slopes:
            value, _ = slope(x, mask)
            np.testing.assert_allclose(value, f(x.copy(), mask), rtol=1e-13)
        check_grads(lambda x, mask=mask: f(x, mask), (x,), order=2)


@pytest.mark.parametrize("mask", [[], [0, 0, 0], [1, 1, 1]])
@pytest.mark.parametrize("compiled", [True, False])
def test_masks_of_one_kind(mask, compiled):
    mask = np.array(mask, bool)
    x = np.arange(len(mask)) + 0.5
    slope = nbta.value_and_grad(lambda x, mask: np.sum(x[mask] ** 2), compiled=compiled)
    value, found = slope(x, mask)
    assert value == np.sum(x[mask] ** 2)
    np.testing.assert_array_equal(found, np.where(mask, 2 * x, 0.0))


def test_places_are_found_without_a_search():
    slope = nbta.value_and_grad(lambda x: np.sum(x[x > 0.0]), compiled=True)
    slope(np.array([1.0, -1.0]))
    assert "// 2" not in slope.source  # as in a search by halves, for each item


def test_arrays_of_one_mask_are_picked_from_at_the_same_places():
    def f(x, y):
        mask = x > 0.0
        y[mask] *= x[mask]
        return np.sum(x[mask] / y[mask]) + np.sum(y * y)

    slope = nbta.value_and_grad(f, argnums=(0, 1), compiled=True)
    x, y = np.array([0.5, -1.0, 2.0]), np.array([2.0, 3.0, 4.0])
    value, found = slope(x, y)
    assert value == f(x, y.copy())
    reference = nbta.value_and_grad(f, argnums=(0, 1), compiled=False)(x, y)[1]
    np.testing.assert_allclose(found, reference, rtol=1e-13)
    assert slope.source.count("while ") == 1  # it finds the places
    assert slope.source.count("room(int64,") == 1  # which nothing asks whether they are distinct
    for compiled in (True, False):
        with pytest.raises(ValueError, match=r"a mask and the array .* differ in length"):
            nbta.function(f, compiled=compiled)(x, np.ones(4))


ROWS_OF_ITEMS = [[1.0, 3.0, 1.0, 2.0], [np.nan, 1.0, np.nan], [], [[2, 1], [2, 0]], [True, True]]


@pytest.mark.parametrize("compiled", [False, True])
def test_unique_is_numpys(compiled):
    def f(x, equal_nan):
        return np.unique(x, True, True, True, equal_nan=equal_nan), np.unique(x)

    made = nbta.function(f, compiled=compiled)
    for items in ROWS_OF_ITEMS:
        for equal_nan in (True, False):
            x = np.array(items)
            (found, alone), (wanted, wanted_alone) = made(x, equal_nan), f(x, equal_nan)
            for one, other in zip((*found, alone), (*wanted, wanted_alone), strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
