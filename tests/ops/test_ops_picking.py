"""Picks, counts and functions given by samples: extreme points, and what is refused."""

import numpy as np
import pytest

import nbta
from nbta.errors import InvalidArgumentError
from nbta.testing import check_grads

V = np.array([3.0, 1.0, 2.5, 5.0, 4.0])
M = np.arange(12.0).reshape(3, 4)


def everywhere(function, *args):
    """What a function gives at once, and in both executors."""
    yield function(*args)
    for compiled in (False, True):
        yield nbta.function(function, compiled=compiled, convert=False)(*args)


EXTREME = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 4.0, 5.0, np.inf, np.nan])


@pytest.mark.parametrize(
    ("points", "values"),
    [
        ([0.0, 1.0, 2.0, 4.0], [1.0, 3.0, -2.0, 5.0]),
        ([0.0, 1.0, 1.0, 4.0], [1.0, 3.0, -2.0, 5.0]),
        ([0.0, 1.0, 2.0, 4.0], [1.0, np.inf, np.inf, 5.0]),
        ([0.0, 1.0, 2.0, 4.0], [1.0, np.nan, 2.0, 5.0]),
        ([0.0, 1.0, 4.0, np.inf], [1.0, 2.0, 2.0, 5.0]),
        ([1.0], [3.0]),
        ([1.0, 1.0], [3.0, 4.0]),
        ([0.0, 1.0, 4.0], [1.0 + 2j, 3.0, 2j]),
    ],
)
def test_interp_at_extreme_points(points, values):
    want = np.interp(EXTREME, points, values)
    for found in everywhere(nbta.interp, EXTREME, np.array(points), np.array(values)):
        np.testing.assert_allclose(found, want, rtol=1e-14)
        assert found.dtype == want.dtype


@pytest.mark.smoke
def test_derivatives_of_interp():
    xp, fp = np.array([0.0, 1.0, 2.5, 3.0]), np.array([1.0, -1.0, 0.5, 2.0])
    x = np.array([-1.0, 0.3, 1.7, 2.9, 4.0])
    check_grads(nbta.interp, [x, xp, fp])
    at_points = nbta.grad(lambda x: nbta.sum(nbta.interp(x, xp, fp)))(xp)
    np.testing.assert_allclose(at_points, [-2.0, 1.0, 3.0, 3.0])


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_rows_that_meet(mode):
    rng = np.random.default_rng(0)
    for n, m in ((5, 3), (3, 5), (4, 4), (6, 2), (1, 3), (6, 1)):
        a, v = rng.normal(size=n) + 1j, rng.normal(size=m) - 2j * rng.normal(size=m)
        for name in ("convolve", "correlate"):
            function, want = getattr(nbta, name), getattr(np, name)(a, v, mode)
            np.testing.assert_allclose(function(a, v, mode), want)
    ways = (lambda a, v: [nbta.convolve(a, v, mode), nbta.correlate(v, a, mode)],)
    for found in everywhere(*ways, a.real, v.real):
        for one, name in zip(found, ("convolve", "correlate"), strict=True):
            pair = (a.real, v.real) if name == "convolve" else (v.real, a.real)
            np.testing.assert_allclose(one, getattr(np, name)(*pair, mode), rtol=1e-13, atol=1e-13)
    check_grads(lambda a, v: nbta.correlate(a, v, mode), [rng.normal(size=5), rng.normal(size=3)])
    check_grads(lambda a, v: nbta.convolve(a, v, mode), [a[:3], v[:2]])


def test_rows_meet_nothing_beyond_their_ends():
    a, v = np.array([np.inf, 1.0, 2.0, np.nan, 3.0]), np.array([1.0, -np.inf, 2.0])
    for mode in ("full", "same", "valid"):
        for name in ("convolve", "correlate"):
            want = getattr(np, name)(a, v, mode)
            for found in everywhere(
                lambda a, v, name=name, mode=mode: getattr(nbta, name)(a, v, mode), a, v
            ):
                np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "float32"])
def test_rows_of_other_dtypes(dtype):
    a, v = np.array([1, 0, 3, 2, 1]).astype(dtype), np.array([1, 1, 0]).astype(dtype)
    for found in everywhere(nbta.convolve, a, v):
        np.testing.assert_array_equal(found, np.convolve(a, v))
        assert found.dtype == dtype


def test_a_histogram_counts_what_numpy_counts():
    x = np.concatenate(
        [np.random.default_rng(0).normal(size=200), [0.0, 1.0, 9.0, -np.inf, np.nan]]
    )
    weights = np.arange(float(len(x)))
    for kind in (None, weights, weights.astype("float32"), weights.astype("int32")):
        for bins, ends in ((7, (-1.0, 1.0)), (np.array([-1.0, 0.0, 1.0]), None), (3, (2, 2))):
            want = np.histogram(x, bins, ends, weights=kind)
            for hist, edges in (
                everywhere(
                    lambda x, w, bins=bins, ends=ends: nbta.histogram(x, bins, ends, weights=w),
                    x,
                    kind,
                )
                if kind is not None
                else [nbta.histogram(x, bins, ends)]
            ):
                np.testing.assert_allclose(hist, want[0], rtol=1e-5)
                np.testing.assert_allclose(edges, want[1])
                assert hist.dtype == want[0].dtype


@pytest.mark.smoke
def test_gradients_pass_to_weights():
    numbers = np.array([0, 2, 2, 1])
    check_grads(lambda w: nbta.bincount(numbers, w) ** 2, [V[:4]])
    check_grads(lambda w: nbta.histogram(V, 3, weights=w, density=True)[0], [V])
    check_grads(lambda x: nbta.histogram_bin_edges(x, 4), [V])


def test_places_out_of_range_are_errors_of_the_run():
    numbers = np.array([0, 3])
    for wrong in (numbers, numbers - 1):
        for compiled in (False, True):
            with pytest.raises(InvalidArgumentError, match="not less than the 3 of minlength"):
                nbta.function(lambda x: np.bincount(x, minlength=3), compiled=compiled)(wrong)
            with pytest.raises(InvalidArgumentError, match="not from 0 to 1"):
                nbta.function(lambda x: np.choose(x, [V[:2], V[:2]]), compiled=compiled)(wrong)


def test_of_several_values_for_one_place_the_last_stays():
    def f(x, values):
        return nbta.put_along_axis(x, [[1, 1], [0, 0], [3, -1]], values, 1)

    want = M.copy()
    np.put_along_axis(want, np.array([[1, 1], [0, 0], [3, -1]]), V[:2], 1)
    for found in everywhere(f, M, V[:2]):
        np.testing.assert_array_equal(found, want)
    check_grads(f, [M, V[:2]])
    np.testing.assert_array_equal(nbta.put_along_axis(M, [5], 9.0, None)[1], [4, 9, 6, 7])


INSERTED = [
    (1, 5.0, None), (-1, [1.0, 2.0], None), ([0, 2], [8.0, 9.0], None), ([2, 0, 2], 1.0, 0),
    (1, [1.0, 2.0, 3.0], 1), ([1], [[1.0], [2.0], [3.0]], 1), (np.s_[::2], 7.0, 1),
    (3, [1.0, 2.0, 3.0, 4.0], 0), ([], 3.0, 0), (np.array([True, False, True]), 2.0, 0),
    (12, 1.5, None),
]  # fmt: skip


@pytest.mark.parametrize(("obj", "values", "axis"), INSERTED)
def test_insert_has_numpys_rules(obj, values, axis):
    obj = np.asarray(obj, int) if isinstance(obj, list) else obj
    np.testing.assert_array_equal(
        nbta.insert(M, obj, values, axis), np.insert(M, obj, values, axis)
    )


REFUSED = {
    "insert": (lambda x, k: nbta.insert(x, 5, 1.0), "index 5 is out of range for 4 rows"),
    "insert traced": (
        lambda x, k: nbta.insert(x, k, 1.0),
        "the number of items is known only in a run",
    ),
    "delete": (lambda x, k: nbta.delete(x, 9), "delete: index 9 is out of bounds"),
    "delete traced": (lambda x, k: nbta.delete(x, k), "the number of items is known only in a run"),
    "compress": (
        lambda x, k: nbta.compress(k > 0, x),
        "the number of items is known only in a run",
    ),
    "compress rank": (lambda x, k: nbta.compress([[True]], x), "give a row of booleans"),
    "extract": (lambda x, k: nbta.extract(x > 1, x), "the number of items is known only in a run"),
    "select": (lambda x, k: nbta.select([x > 1], []), "1 conditions and 0 choices"),
    "choose": (
        lambda x, k: nbta.choose(k, [x], "any"),
        'mode must be "raise", "wrap" or "clip", not',
    ),
    "bincount": (lambda x, k: nbta.bincount(k), "give minlength="),
    "bincount rank": (lambda x, k: nbta.bincount(k[None], minlength=2), "x has rank 2, not 1"),
    "bincount length": (lambda x, k: nbta.bincount(k, minlength=-2), "-2 is negative"),
    "weights": (lambda x, k: nbta.bincount(k, x[None], 9), "give one weight per element of x"),
    "weights are complex": (lambda x, k: nbta.bincount(k, x * 1j, 9), "weights are complex"),
    "bins": (lambda x, k: nbta.histogram(x, "auto"), "give a number"),
    "no bins": (lambda x, k: nbta.histogram(x, 0), "bins must be 1 or more, or edges, not 0"),
    "edges": (lambda x, k: nbta.histogram(x, [1.0, 0.0]), "the edges are not increasing"),
    "a range": (lambda x, k: nbta.histogram(x, 3, (2.0, 1.0)), "the range is empty or not finite"),
    "linspace": (lambda x, k: nbta.linspace(0.0, x[0], -1), "-1 is negative"),
    "geomspace": (lambda x, k: nbta.geomspace(1j, x[0]), "complex ends"),
    "points": (lambda x, k: nbta.interp(x, x[None], x), "give one row"),
    "no points": (lambda x, k: nbta.interp(x, [], []), "of one point or more"),
    "point and value": (lambda x, k: nbta.interp(x, [1.0], [1.0, 2.0]), "make them one"),
    "period": (lambda x, k: nbta.interp(x, x, x, period=0), "it must not be 0"),
    "mode": (
        lambda x, k: nbta.convolve(x, x, "half"),
        'mode must be "full", "same" or "valid", not',
    ),
    "no row": (lambda x, k: nbta.convolve(x, []), "a row has no items"),
    "a matrix": (lambda x, k: nbta.convolve(x, x[None]), "a row is of rank 1"),
    "edge_order": (lambda x, k: nbta.gradient(x, edge_order=3), "edge_order must be 1 or 2"),
    "too few": (lambda x, k: nbta.gradient([1.0]), "has 1 items; give 2"),
    "distances": (lambda x, k: nbta.gradient(x, 1.0, 2.0), "2 distances for 1 axes"),
    "grid": (lambda x, k: nbta.gradient(np.ones(3), np.ones(4)), "4 points for an axis of 3"),
    "a plane of points": (lambda x, k: nbta.gradient(x, np.ones((2, 2))), "points in one row"),
    "a mode": (
        lambda x, k: nbta.take(x, k, mode="any"),
        'mode must be "raise", "wrap" or "clip", not',
    ),
    "a border": (lambda x, k: np.pad(x, 1, "empty"), "empty"),
    "a border of nothing": (
        lambda x, k: nbta.pad(x[:0], 1, mode="edge"),
        "no items to make a border",
    ),
    "an order": (lambda x, k: x.ravel("K"), "give 'C' or 'F'"),
    "vander": (lambda x, k: nbta.vander(x[None]), "give one row"),
    "columns": (lambda x, k: nbta.vander(x, -1), "-1 is negative"),
    "a degree": (lambda x, k: nbta.polyfit(x, x, -1), "-1 is negative"),
    "a fit": (lambda x, k: nbta.polyfit(x[None], x, 1), "give a row of points"),
    "a text": (lambda x, k: np.r_["0,2", x], "use np.concatenate"),
    "an open range": (lambda x, k: np.r_[0 : x[0], x], "use np.concatenate"),
    "a captured array": (lambda x, k: V.fill(x[0]), "V is from outside .* V.copy"),
    "a long mask": (lambda x, k: x[np.ones(3, bool)], "for axes of lengths"),
    "rows": (lambda x, k: np.unique(np.outer(x, x), axis=0), "np.unique with axis="),
    "trim_zeros": (lambda x, k: np.trim_zeros(x), "the length of the result"),
}


UNCONVERTED = {
    "a mask": (lambda x: x[x > 1], "a boolean mask selects is known only in a run"),
    "nonzero": (np.nonzero, "use nbta.where with the condition"),
    "flatnonzero": (np.flatnonzero, "use nbta.where with the condition"),
    "unique": (np.unique, "nbta.sort and compare neighbours"),
    "where of one": (lambda x: np.where(x > 0), r"only the run knows their number.*count_nonzero"),
}


@pytest.mark.parametrize("name", UNCONVERTED)
def test_what_is_refused_where_code_is_not_converted(name):
    function, message = UNCONVERTED[name]
    with pytest.raises(nbta.NbtaError, match=message):
        nbta.function(function, convert=False)(np.arange(4.0))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    function, message = REFUSED[name]
    with pytest.raises(InvalidArgumentError, match=message):
        nbta.function(function)(np.arange(4.0), np.array([0, 1, 2, 1]))


def test_values_for_more_places_are_refused():
    def f(x):
        y = x * 1.0
        np.put(y, [0, 1, 2], x[:2])
        return y

    with pytest.raises(nbta.UnimplementedError, match="one for each index"):
        nbta.function(f)(V)
