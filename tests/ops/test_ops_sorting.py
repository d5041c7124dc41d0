"""Sorting and what is looked up in order, against NumPy, at ordinary and extreme numbers."""

import numpy as np
import pytest

import nbta
from nbta.ops.axes.sorting import selected_places
from nbta.testing import check_grads

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "complex128"]
SHAPES = [(0,), (1,), (300,), (2, 30, 3), (0, 3), (3, 0), (13,), (3, 26)]


def numbers(shape, dtype):
    """With equal ones, infinities and NaN where there are such."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 3).round(1)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape).round()
    x = x.astype(dtype)
    if x.dtype.kind in "fc" and x.size > 4:
        x.flat[::5], x.flat[2], x.flat[3] = np.nan, np.inf, -np.inf
    return x


def everywhere(function, *args):
    """What a function gives at once, and in both executors."""
    yield function(*args)
    for compiled in (False, True):
        yield nbta.function(function, compiled=compiled, convert=False)(*args)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_and_argsort_are_stable_with_nan_last(dtype):
    arrays = [numbers(shape, dtype) for shape in (SHAPES if dtype == "float64" else SHAPES[-2:])]
    ways = [(x, axis) for x in arrays for axis in (-1, 0) if x.ndim > 1 or axis]
    want = [np.argsort(x, axis, kind="stable") for x, axis in ways]

    def both(*arrays):
        ways = [(x, axis) for x in arrays for axis in (-1, 0) if x.ndim > 1 or axis]
        return [(nbta.sort(x, axis), nbta.argsort(x, axis)) for x, axis in ways]

    for found in everywhere(both, *arrays):
        for (values, places), (x, axis), wanted in zip(found, ways, want, strict=True):
            np.testing.assert_array_equal(places, wanted)
            np.testing.assert_array_equal(values, np.take_along_axis(x, wanted, axis))
            assert (values.dtype, places.dtype) == (x.dtype, np.int64)
    for values in everywhere(lambda x: nbta.sort(x, None), arrays[-1]):
        np.testing.assert_array_equal(values, np.sort(arrays[-1], None))


def test_each_item_of_equal_ones_has_its_own_gradient():
    x = np.array([2.0, 1.0, 2.0, np.nan, 1.0])
    for compiled in (False, True):
        gradient = nbta.grad(lambda x: np.sum(np.sort(x) * np.arange(5.0)), compiled=compiled)
        np.testing.assert_array_equal(gradient(x), [2.0, 0.0, 3.0, 4.0, 1.0])


@pytest.mark.smoke
def test_derivatives_of_sorting():
    x = np.random.default_rng(1).permutation(np.linspace(0.5, 2.0, 24)).reshape(2, 3, 4)
    for axis in (0, 1, 2, None):
        check_grads(lambda x, axis=axis: nbta.sort(x * x, axis) ** 2, [x])
    check_grads(lambda x: nbta.sort(x * (1 + 2j)), [x[0, 0]])


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_what_cannot_be_sorted(name):
    function = getattr(nbta, name)
    with pytest.raises(nbta.InvalidArgumentError, match="there is no axis 1 in rank 1"):
        function(np.ones(3), 1)
    with pytest.raises(nbta.InvalidArgumentError, match="a scalar has no axes"):
        function(1.0)
    with pytest.raises(nbta.InvalidArgumentError, match="are not numbers"):
        function(np.array(["b", "a"]))


def test_take_along_axis_counts_from_the_end_and_refuses_what_is_out_of_range():
    x = np.arange(12.0).reshape(3, 4)
    rows = np.array([[-1, 0], [1, -4], [3, 2]])
    for found in everywhere(lambda x, rows: nbta.take_along_axis(x, rows, 1), x, rows):
        np.testing.assert_array_equal(found, np.take_along_axis(x, rows, 1))
    for wrong in (4, -5):
        for compiled in (False, True):
            function = nbta.function(np.take_along_axis, static_argnums=2, compiled=compiled)
            with pytest.raises(nbta.InvalidArgumentError, match="is out of range"):
                function(x, np.full((3, 1), wrong), 1)
    with pytest.raises(nbta.InvalidArgumentError, match="rank 1, and x has rank 2"):
        nbta.take_along_axis(x, rows[0], 1)
    with pytest.raises(nbta.InvalidArgumentError, match="must be integers"):
        nbta.take_along_axis(x, x, 1)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_searchsorted_has_numpys_order(dtype, side):
    row, values = np.sort(numbers((13,), dtype)), numbers((3, 26), dtype)
    want = np.searchsorted(row, values, side)
    for found in everywhere(lambda x, y: nbta.searchsorted(x, y, side), row, values):
        np.testing.assert_array_equal(found, want)
        assert found.dtype == np.int64
    for short in (row[:0], row[:1]):
        for found in everywhere(lambda x, y: nbta.searchsorted(x, y, side), short, values[0, 0]):
            np.testing.assert_array_equal(found, np.searchsorted(short, values[0, 0], side))


def test_digitize_refuses_edges_in_no_order():
    x, edges = np.array([0.5, 1.5]), np.array([0.0, 2.0, 1.0])
    with pytest.raises(nbta.InvalidArgumentError, match="the edges are not monotonic"):
        nbta.digitize(x, edges)
    for compiled in (False, True):
        function = nbta.function(lambda x, e: np.digitize(x, e), compiled=compiled)
        with pytest.raises(nbta.InvalidArgumentError, match="the edges are not monotonic"):
            function(x, edges)
        np.testing.assert_array_equal(function(x, edges[::2]), np.digitize(x, edges[::2]))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: nbta.partition(x, 4), "no item 4 among 4"),
        (lambda x: nbta.argpartition(x, -5), "no item -5 among 4"),
        (lambda x: nbta.lexsort([]), "there are no keys"),
        (lambda x: nbta.searchsorted([x, x], x), "give one row in ascending order"),
        (lambda x: nbta.searchsorted(x, x, "middle"), 'side must be "left" or "right", not'),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        function(np.arange(4.0))


def parted(x, kth, axis):
    """Places in partitioned rows: between those of ``kth`` items stay in order."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    order = np.moveaxis(np.argsort(x, axis, kind="stable"), axis, -1).copy()
    ends = [0, *np.repeat(np.unique(np.array(kth) % x.shape[axis]), 2), x.shape[axis]]
    for first, end in zip(ends[::2], ends[1::2], strict=True):
        order[..., first + (first in ends[1:]) : end].sort(-1)
    return np.moveaxis(order, -1, axis)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kth", [0, -1, (5, 2), (-3, 5, 5), tuple(range(3, 90))[::-1]], ids=str)
def test_partitions_keep_the_order_between_places(dtype, kth):
    x = numbers((3, 100), dtype)

    def both(x):
        at = kth if isinstance(kth, int) else list(kth)
        return [(nbta.partition(x, at, a), nbta.argpartition(x, at, a)) for a in (1, None)]

    for found in everywhere(both, x):
        for (values, places), axis in zip(found, (1, None), strict=True):
            rows = x if axis else x.reshape(-1)
            many = not isinstance(kth, int) and len(kth) > 64  # then rows are sorted
            wanted = range(rows.shape[-1]) if many else np.atleast_1d(kth)
            np.testing.assert_array_equal(places, parted(x, wanted, axis))
            np.testing.assert_array_equal(values, np.take_along_axis(rows, places, -1))
            assert (values.dtype, places.dtype) == (x.dtype, np.int64)


def test_partitions_of_columns():
    x = numbers((20, 4, 3), "float64")
    for found in everywhere(lambda x: nbta.partition(x, (2, 11), 0), x):
        np.testing.assert_array_equal(found, np.take_along_axis(x, parted(x, [2, 11], 0), 0))
        np.testing.assert_array_equal(found[[2, 11]], np.sort(x, 0)[[2, 11]])


@pytest.mark.smoke
def test_derivatives_of_partitions():
    x = np.random.default_rng(1).permutation(np.linspace(0.5, 2.0, 24)).reshape(3, 8)
    check_grads(lambda x: np.partition(x, (2, -2), axis=1)[:, :3] ** 2, (x,), order=2)
    check_grads(lambda x: np.partition(x, 1, axis=0)[1:] ** 3, (x,), order=2)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("partition", [np.partition, np.argpartition])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_a_run_decides_the_place_of_a_partition(compiled, partition, axis):
    def smallest(x, part):
        k = int((x.shape[0] - 1) * part)
        return partition(x, k, axis)

    found = nbta.function(smallest, compiled=compiled)
    for x in (np.random.default_rng(3).normal(size=shape) for shape in ((4, 3), (3, 5))):
        places = parted(x, [int((x.shape[0] - 1) * 0.7)], axis)
        if partition is np.partition:
            places = np.take_along_axis(x, places, axis)
        np.testing.assert_array_equal(found(x, 0.7), places)
        with pytest.raises(nbta.errors.InvalidArgumentError, match="no such item"):
            found(x, 20.0)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", DTYPES[:-1])
@pytest.mark.parametrize("shape", [(1,), (7,), (300,), (4, 60), (2, 3, 25)])
def test_places_of_few_items_are_those_of_a_stable_sort(dtype, shape):
    x = numbers(shape, dtype)
    count = shape[-1]
    for wanted in ([0], [count // 2, count - 1], [count - 1, 0, 0, count // 3]):
        expected = np.argsort(x, -1, kind="stable")[..., wanted]
        for found in everywhere(lambda x, w: selected_places(x, w), x, np.array(wanted)):
            np.testing.assert_array_equal(found, expected)


def test_each_row_may_have_places_of_its_own():
    x = numbers((3, 40), "float64")
    wanted = np.array([[0, 39, 7], [5, 5, 6], [39, 38, 0]])
    expected = np.take_along_axis(np.argsort(x, -1, kind="stable"), wanted, -1)
    for found in everywhere(lambda x, w: selected_places(x, w), x, wanted):
        np.testing.assert_array_equal(found, expected)


def test_more_places_are_found_than_parting_items_are_kept():
    """Places rise, and each part of a falling pipe is parted again."""
    x = np.random.default_rng(5).normal(size=5000).round(2)
    wanted = np.arange(0, 5000, 3)
    expected = np.argsort(x, kind="stable")[wanted]
    for found in everywhere(lambda x, w: selected_places(x, w), x, wanted):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "order",
    {
        "rising": lambda n: np.arange(n),
        "falling": lambda n: -np.arange(n),
        "equal": lambda n: np.zeros(n),
        "a pipe": lambda n: -np.abs(np.arange(n) - n // 2),
        "NaN": lambda n: np.where(np.arange(n) % 2, np.nan, 1.0),
    }.values(),
)
def test_a_median_takes_a_time_linear_in_the_items(order):
    """No order makes it quadratic: 200,000 items would take minutes."""
    slope = nbta.value_and_grad(np.median, compiled=True)
    for n in (3, 8, 200_001):
        x = order(n).astype(float)
        value, found = slope(x)
        np.testing.assert_array_equal(value, np.median(x))
        assert found.sum() == pytest.approx(1.0, nan_ok=True)


@pytest.mark.parametrize("place", [-1, 3])
def test_places_that_a_row_does_not_have(place):
    with pytest.raises(nbta.InvalidArgumentError, match="no item"):
        selected_places(np.arange(3.0), np.array([place]))
    run = nbta.function(selected_places, compiled=True)
    with pytest.raises(nbta.InvalidArgumentError):
        run(np.arange(3.0), np.array([place]))
