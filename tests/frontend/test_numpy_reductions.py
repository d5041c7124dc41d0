"""NumPy's elementwise functions, reductions and scans, as for arrays, in plain functions."""

import warnings

import numpy as np
import pytest
from fuzz.ways import in_python

import nbta
from nbta.testing import check_grads

X = np.array([[0.3, -0.45, 0.15], [1.0, 2.5, 0.2]])
HOLES = np.array([[0.3, np.nan, 0.15], [np.nan, np.nan, np.nan]])
EDGES = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan])
W = np.array([1.0, 2.0, 0.5])
WEIGHTS = np.array([[1.0, 2.0, 0.5], [0.0, 1.0, 3.0]])

#: How a fraction is found among sorted elements, besides those that are tried by hand.
METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "median_unbiased", "normal_unbiased", "nearest",
)  # fmt: skip


def of_method(method):
    """Quantiles by it, of a row and of what is no NaN."""
    return lambda x: (
        np.quantile(x, [0.15, 0.37], axis=1, method=method),
        np.nanpercentile(x, 62, axis=1, method=method),
    )


#: What is called with a matrix, by family; "~" before a name says that there is no gradient.
FAMILIES = {
    "elementwise": {
        "logaddexp": lambda x: np.logaddexp(x, x[0]),
        "logaddexp2": lambda x: np.logaddexp2(x, 0.5),
        "sinc": lambda x: np.sinc(x),
        "~heaviside": lambda x: np.heaviside(x, 0.5),
        "nan_to_num": lambda x: np.nan_to_num(x, nan=1.0, posinf=5.0),
        "angle": lambda x: np.angle(x + 1j * x[0]),
        "~angle of numbers": lambda x: np.angle(x, deg=True),
        "degrees": lambda x: np.degrees(x) + np.rad2deg(x),
        "radians": lambda x: np.radians(x) + np.deg2rad(x),
        "~signbit": lambda x: np.signbit(x),
        "fmax": lambda x: np.fmax(x, 0.17),
        "fmin": lambda x: np.fmin(x, 0.17),
        "positive": lambda x: np.positive(x),
        "fabs": lambda x: np.fabs(x),
        "float_power": lambda x: np.float_power(np.abs(x), 1.5),
        "reciprocal": lambda x: np.reciprocal(x),
        "ldexp": lambda x: np.ldexp(x, np.array([1, -2, 3])),
        "modf": lambda x: np.modf(x * 1.1)[0],
        "~modf": lambda x: np.modf(x)[1],
        "~divmod": lambda x: np.divmod(x, 0.4)[0],
        "~fix": lambda x: np.fix(x),
        "~round": lambda x: (np.round(x, 1), np.around(x), x.round(2), np.round(x * 100, -1)),
        "~isreal": lambda x: (np.isreal(x), np.isreal(x + 0j), np.iscomplex(x * (1 + 1j))),
        "~which": lambda x: (np.isposinf(x), np.isneginf(x), np.isclose(x, 0.3)),
        "~logic": lambda x: (np.logical_xor(x > 0, x > 1), np.allclose(x, x), np.array_equal(x, x)),
        "exp in float64": lambda x: np.exp(x, dtype=np.float64),
    },
    "reductions": {
        "var": lambda x: (np.var(x), np.var(x, axis=0, ddof=1), x.var(axis=1, keepdims=True)),
        "std": lambda x: (np.std(x), np.std(x, axis=(0, 1)), x.std(axis=-1, ddof=0.5)),
        "var of some": lambda x: np.var(x, axis=1, where=x < 2, correction=1),
        "average": lambda x: (np.average(x), np.average(x, axis=1, weights=W)),
        "average by all": lambda x: np.average(x, weights=x + 1.0),
        "average returned": lambda x: np.average(x, axis=1, weights=W, returned=True)[0],
        "ptp": lambda x: (np.ptp(x), np.ptp(x, axis=0)),
        "~argmin": lambda x: (np.argmin(x), np.argmin(x, axis=0), x.argmin(axis=1)),
        "~argmax keepdims": lambda x: np.argmax(x, axis=0, keepdims=True),
        "~argmin keepdims": lambda x: np.argmin(x, keepdims=True),
        "~any": lambda x: (np.any(x > 1, axis=0), x.any(), (x > 5).any(axis=1)),
        "~all": lambda x: (np.all(x > 0, axis=1), x.all(), np.all(x > 0, axis=0, keepdims=True)),
        "~count": lambda x: (np.count_nonzero(x > 0.2), np.count_nonzero(x > 0.2, axis=0)),
        "sums of some": lambda x: (np.sum(x, where=x > 0), np.prod(x, axis=0, where=x > 0)),
        "mean of some": lambda x: np.mean(x, axis=1, where=x > 0),
        "max of some": lambda x: np.max(x, axis=0, where=x < 2, initial=-1.0),
        "sum in float64": lambda x: x.sum(axis=0, dtype=np.float64),
        "reduce": lambda x: (np.add.reduce(x), np.multiply.reduce(x, axis=1)),
        "reduce extremes": lambda x: (np.maximum.reduce(x, axis=None), np.minimum.reduce(x)),
        "~reduce logic": lambda x: (np.logical_or.reduce(x > 1), np.logical_and.reduce(x > 0)),
        "reduce logaddexp": lambda x: np.logaddexp.reduce(x, axis=1),
        "norm": lambda x: (np.linalg.norm(x), np.linalg.norm(x[0]), np.linalg.norm(x, axis=0)),
        "norm 1": lambda x: (np.linalg.norm(x, 1), np.linalg.norm(x, -1), np.linalg.norm(x[1], 1)),
        "norm inf": lambda x: (np.linalg.norm(x, np.inf), np.linalg.norm(x, -np.inf, axis=1)),
        "norm p": lambda x: (np.linalg.norm(x, 3, axis=0), np.linalg.norm(x[0], 0.5)),
        "norm fro": lambda x: np.linalg.norm(x, "fro", keepdims=True),
        "norm of axes": lambda x: np.linalg.norm(x[None], 1, axis=(2, 1)),
        "norm 2": lambda x: (np.linalg.norm(x, 2), np.linalg.norm(x, -2), np.linalg.norm(x, "nuc")),
        "norm 2 of axes": lambda x: np.linalg.norm(x[:, None], 2, axis=(2, 0), keepdims=True),
        "~norm 0": lambda x: np.linalg.norm(x, 0, axis=1),
    },
    "scans": {
        "cumprod": lambda x: (np.cumprod(x), x.cumprod(axis=0), np.multiply.accumulate(x, axis=1)),
        "cumsum": lambda x: (np.add.accumulate(x), x.cumsum(axis=1, dtype=np.float64)),
        "running": lambda x: (np.maximum.accumulate(x, axis=1), np.minimum.accumulate(x)),
        "diff": lambda x: (np.diff(x), np.diff(x, 2), np.diff(x, axis=0)),
        "diff with edges": lambda x: np.diff(x, prepend=0.0, append=x[:, :1]),
        "~diff of truth": lambda x: np.diff(x > 0.2),
        "ediff1d": lambda x: (np.ediff1d(x), np.ediff1d(x, to_end=[1.0, 2.0], to_begin=x[0, 0])),
        "trapezoid": lambda x: (np.trapezoid(x), np.trapezoid(x, dx=0.5, axis=0)),
        "trapezoid at points": lambda x: (np.trapezoid(x, W), np.trapezoid(x, x * 2, axis=0)),
        "outer": lambda x: np.subtract.outer(x[0], x[1]),
    },
    "quantiles": {
        "median": lambda x: (np.median(x), np.median(x, axis=0), np.median(x[:, :2], axis=1)),
        "median of axes": lambda x: np.median(x[None], axis=(0, 2), keepdims=True),
        "quantile": lambda x: (np.quantile(x, 0.3), np.quantile(x, [0.1, 0.5, 1.0], axis=1)),
        "percentile": lambda x: (np.percentile(x, 30, axis=-1), np.percentile(x, [0, 25, 100])),
        "keepdims": lambda x: np.quantile(x, [0.1, 0.8], axis=(0, 1), keepdims=True),
        "lower": lambda x: np.quantile(x, 0.3, axis=1, method="lower"),
        "higher": lambda x: np.quantile(x, 0.3, axis=1, method="higher"),
        "midpoint": lambda x: np.quantile(x, [0.3, 0.5], axis=1, method="midpoint"),
        **{method: of_method(method) for method in METHODS},
        "weights": lambda x: (
            np.quantile(x, [0.0, 0.1, 0.6, 1.0], axis=1, weights=W, method="inverted_cdf"),
            np.percentile(x, 45, weights=abs(x), method="inverted_cdf"),
            np.quantile(x, 0.4, axis=0, weights=x * x, method="inverted_cdf", keepdims=True),
        ),
    },
    "observations": {
        "cov": lambda x: (np.cov(x), np.cov(x, rowvar=False), np.cov(x, bias=True)),
        "cov aweights": lambda x: (np.cov(x, aweights=W), np.cov(x[0], ddof=0, aweights=W * W)),
        "cov weights": lambda x: np.cov(x, fweights=[2, 1, 3], aweights=x[1]),
        "cov fweights": lambda x: np.cov(x, x * x, bias=True, fweights=np.array([2, 0, 3])),
        "cov of two": lambda x: (np.cov(x[0]), np.cov(x[0], x[1], ddof=0), np.cov(x, x * x)),
        "corrcoef": lambda x: (np.corrcoef(x), np.corrcoef(x[0], x[1]), np.corrcoef(x[0])),
        "cumulative_sum": lambda x: (np.cumulative_sum(x, axis=1), np.cumulative_sum(x[0])),
        "from 0": lambda x: np.cumulative_sum(x, axis=-1, include_initial=True),
        "cumulative_prod": lambda x: np.cumulative_prod(x, axis=0, include_initial=True),
        "~nanargmax": lambda x: (np.nanargmax(x), np.nanargmin(x, axis=1, keepdims=True)),
        "~nanargmin": lambda x: np.nanargmax(np.where(x > 1, np.nan, x), axis=1),
    },
    "nan": {
        "nanmedian": lambda x: (np.nanmedian(x), np.nanmedian(x, axis=1)),
        "nanquantile": lambda x: np.nanquantile(x, [0.2, 0.9], axis=1),
        "nanpercentile": lambda x: np.nanpercentile(x, 20, axis=0, keepdims=True),
        "nanquantile weights": lambda x: (
            np.nanquantile(x, [0.2, 0.7], axis=1, weights=WEIGHTS, method="inverted_cdf"),
            np.quantile(x, 0.2, axis=1, weights=WEIGHTS, method="inverted_cdf"),
        ),
        "median with NaN": lambda x: (np.median(x), np.median(x, axis=1)),
        "nansum": lambda x: (np.nansum(x), np.nansum(x, axis=0)),
        "nanprod": lambda x: np.nanprod(x, axis=1),
        "nanmean": lambda x: (np.nanmean(x), np.nanmean(x, axis=1)),
        "nanvar": lambda x: (np.nanvar(x), np.nanvar(x, axis=1, ddof=1)),
        "nanstd": lambda x: np.nanstd(x[0]),
        "nanmax": lambda x: (np.nanmax(x), np.nanmax(x, axis=1)),
        "nanmin": lambda x: np.nanmin(x, axis=0),
        "nancumsum": lambda x: np.nancumsum(x, axis=1),
        "nancumprod": lambda x: np.nancumprod(x),
    },
}  # fmt: skip


def parts(found):
    return list(found) if isinstance(found, list | tuple) else [found]


def all_of(family, x):
    """Every result of a family."""
    return [part for function in family.values() for part in parts(function(x))]


def plainly(function, *args):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        return function(*args)


def hold(got, want, rtol):
    assert np.asarray(got).dtype == np.asarray(want).dtype
    assert np.shape(got) == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # from NumPy 2.5 on
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FAMILIES)
def test_values(name, compiled):
    function = nbta.function(lambda x: all_of(FAMILIES[name], x), compiled=compiled)
    for x in (X, HOLES) if name == "nan" else (X,):
        want = plainly(all_of, FAMILIES[name], x)
        for got, expected in zip(function(x.copy()), want, strict=True):
            hold(got, expected, 2e-15)


@pytest.mark.parametrize("name", FAMILIES)
def test_gradients(name):
    family = {key: f for key, f in FAMILIES[name].items() if not key.startswith("~")}
    check_grads(lambda x: all_of(family, x), (X,))


NOT_OF_TRUTH = (np.trapezoid, np.ediff1d, np.linalg.norm, np.average)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8", "bool", "complex64"])
def test_dtypes(dtype):
    x = (X * 10).astype(dtype)
    calls = [np.var, np.std, np.mean, np.average, np.any, np.all, np.count_nonzero, np.cumprod]
    calls += [np.nansum, np.nanmean, np.trapezoid, np.ediff1d, np.linalg.norm, np.diff]
    if dtype != "complex64":
        calls += [np.argmin, np.maximum.accumulate]
    if dtype not in ("bool", "complex64"):
        calls += [np.median, lambda x: np.quantile(x, 0.3, method="lower")]
        calls += [np.ptp, np.nanmax, np.round, np.nan_to_num]
    if dtype == "bool":
        calls = [
            f for f in calls if f not in (np.trapezoid, np.ediff1d, np.linalg.norm, np.average)
        ]
    for f in calls:
        want = plainly(f, x)
        for way in (False, True):
            with in_python():
                got = nbta.function(lambda x, f=f: f(x), compiled=way)(x)
            hold(got, want, 2e-3 if dtype == "float16" else 1e-6)


ELEMENTWISE = [
    lambda x: np.logaddexp(x[:, None], x), lambda x: np.logaddexp2(x[:, None], x), np.sinc,
    lambda x: np.heaviside(x, 0.5), np.signbit, lambda x: np.fmax(x[:, None], x),
    lambda x: np.fmin(x[:, None], x), np.reciprocal, np.nan_to_num, np.modf, np.round,
    lambda x: np.divmod(x, 2.0), np.angle, np.isposinf, lambda x: np.isclose(x[:, None], x),
    lambda x: np.isclose(x, x, equal_nan=True), lambda x: np.maximum.accumulate(x), np.argmin,
    lambda x: np.minimum.accumulate(x[::-1]), np.nanmax, np.diff, np.linalg.norm,
]  # fmt: skip


def test_values_at_the_edges():
    both = [nbta.function(lambda x: [f(x) for f in ELEMENTWISE], compiled=c) for c in (False, True)]
    want = plainly(lambda x: [f(x) for f in ELEMENTWISE], EDGES)
    for function in both:
        for got, expected in zip(function(EDGES), want, strict=True):
            for one, other in zip(parts(got), parts(expected), strict=True):
                hold(one, other, 1e-15)
                if np.ndim(other) == 1:  # of -0.0 and 0.0 NumPy takes any
                    assert np.all((np.signbit(one) == np.signbit(other)) | np.isnan(other))


def slope(function, *values, **options):
    return nbta.grad(lambda *x: nbta.sum(function(*x)), **options)(*map(np.asarray, values))


def test_gradients_at_the_edges():
    inf, nan = np.inf, np.nan
    x = np.array([inf, -inf, 1.0, -inf])
    y = np.array([inf, -inf, -inf, 1.0])
    np.testing.assert_array_equal(slope(nbta.logaddexp, x, y), [0.5, 0.5, 1.0, 0.0])
    assert slope(nbta.logaddexp, -800.0, 0.0) == 0
    twice = nbta.grad(nbta.grad(lambda x: nbta.logaddexp(x, 0.0)))
    assert twice(np.float64(0.0)) == 0.25
    sinc = [nbta.sinc]
    for expected in (0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5):
        sinc.append(nbta.grad(sinc[-1]))
        np.testing.assert_allclose(sinc[-1](np.float64(0.0)), expected, rtol=1e-15)
    for x in (1e-9, 0.4999, 0.5001, -0.2):
        check_grads(nbta.sinc, (np.array([x]),))
    np.testing.assert_array_equal(slope(nbta.fmax, [nan, 1.0, 2.0], [1.0, nan, 2.0]), [0, 1, 0.5])
    np.testing.assert_array_equal(slope(nbta.nan_to_num, [nan, inf, 1.0]), [0, 0, 1])
    np.testing.assert_array_equal(
        slope(lambda h: nbta.heaviside([0.0, 1.0], h), [2.0, 2.0]), [1, 0]
    )
    np.testing.assert_array_equal(slope(nbta.cummax, [2.0, 2.0, 1.0, 3.0]), [3, 0, 0, 1])
    np.testing.assert_array_equal(slope(nbta.cummax, [1.0, nan, 3.0]), [1, 2, 0])
    np.testing.assert_array_equal(slope(nbta.norm, [0.0, 0.0]), [0, 0])
    np.testing.assert_array_equal(slope(lambda x: nbta.norm(x, 3), [0.0, 0.0]), [0, 0])
    np.testing.assert_array_equal(slope(nbta.std, [1.0, 1.0]), [nan, nan])
    np.testing.assert_array_equal(slope(nbta.nansum, [1.0, nan]), [1, 0])
    np.testing.assert_array_equal(slope(nbta.median, [2.0, 2.0, 2.0]), [0, 1, 0])
    check_grads(lambda q: nbta.quantile(X, q, axis=0), (np.array(0.37),))
    check_grads(lambda x: nbta.cumprod(x), (np.array([2.0, 0.0, 3.0, 0.0]),))


@pytest.mark.parametrize("compiled", [False, True])
def test_nothing(compiled):
    empty = np.zeros((0, 2))

    def program(x):
        return (np.any(x), np.all(x), np.count_nonzero(x), np.var(x, axis=0), np.cumprod(x, axis=0),
                np.maximum.accumulate(x), np.diff(x, axis=0), np.linalg.norm(x),
                np.trapezoid(x, axis=0), np.nansum(x, axis=0), np.ediff1d(x),
                np.any(x, axis=1))  # fmt: skip

    want = plainly(program, empty)
    for got, expected in zip(nbta.function(program, compiled=compiled)(empty), want, strict=True):
        hold(got, expected, 0)


REFUSED = {
    "where=": (lambda x: np.exp(x, where=x > 0), r"np\.exp .* where= .* np\.where"),
    "initial": (lambda x: np.max(x, where=x > 0), "give initial="),
    "norm": (lambda x: np.linalg.norm(x, 7), "no norm 7 of matrices"),
    "norm of vectors": (lambda x: np.linalg.norm(x[0], "fro"), "no norm 'fro' of vectors"),
    "norm of rank 3": (lambda x: np.linalg.norm(x[None], 1), "rank is 3; give axis="),
    "norm of axes": (lambda x: np.linalg.norm(x[None], 1, axis=(0, 1, 2)), "names 3 axes"),
    "bits": (lambda x: np.frexp(x), r"nbta\.log2 and nbta\.ldexp"),
    "diff": (lambda x: np.diff(x, -1), "n must be 0 or more, not -1"),
    "fraction": (lambda x: np.quantile(x, 1.5), "fractions are from 0 to 1"),
    "method": (lambda x: np.quantile(x, 0.5, method="median"), "'median'; give one of 'linear'"),
    "no order": (lambda x: np.median(x * 1j), "complex numbers have no order"),
    "decimals": (lambda x: np.round(nbta.cast(x, "int64"), -1), "decimals: -1 of int64"),
    "exponent": (lambda x: np.ldexp(x, x), "exponent: float64 is not an integer dtype"),
    "weights": (lambda x: np.cov(x, aweights=x[0] - 1.0), "aweights: one is negative"),
    "matrix of weights": (lambda x: np.cov(x, aweights=x), "aweights: give numbers in one row"),
    "frequencies": (lambda x: np.cov(x, fweights=x[0]), "fweights: give integers in one row"),
    "no weights": (
        lambda x: np.quantile(x, 0.5, 1, weights=x[0] * 0.0, method="inverted_cdf"),
        "negative or not finite, or all in a row are 0",
    ),
    "weighted method": (
        lambda x: np.quantile(x, 0.5, weights=x),
        "for method='inverted_cdf', not 'linear'",
    ),
    "weights of all": (
        lambda x: np.quantile(x, 0.5, weights=W, method="inverted_cdf"),
        "a row of weights needs one axis",
    ),
    "correlation": (lambda x: np.corrcoef(x * 1j), "corrcoef is for real numbers"),
    "rank of cov": (lambda x: np.cov(x[None]), "in a vector or a matrix"),
    "flattened": (lambda x: np.cumulative_sum(x), "may be left out only for tensors of rank 1"),
    "one row": (lambda x: np.cov(x[:1]), "one variable in a matrix; give it as a vector"),
    "no place": (lambda x: np.nanargmax(x * np.nan, axis=1), "all items along the axis are NaN"),
    "complex": (lambda x: np.nan_to_num(x * 1j), "use real and imag"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    function, message = REFUSED[name]
    with pytest.raises(nbta.NbtaError, match=message):
        nbta.function(function)(X)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", *METHODS])
def test_fractions_that_meet_elements(method, compiled):
    """Of integers, too, which those that take an element leave what they are."""
    fractions = np.array([0.0, 0.1, 0.25, 1 / 7, 2 / 7, 0.5 / 7, 2.5 / 7, 0.5, 0.9, 1.0])
    x = np.random.default_rng(3).normal(size=(3, 7)) * 20
    x[0, 3] = np.nan

    def both(x):
        return (
            np.quantile(x, fractions, axis=1, method=method),
            np.nanquantile(x, 2 / 7, axis=1, method=method),
            np.quantile(x[:, :1], fractions, axis=1, method=method),
        )

    for given in (x, x[1:].astype(int), x.astype(np.float32)):
        rtol = 2e-6 if given.dtype == np.float32 else 1e-14
        for got, want in zip(
            nbta.function(both, compiled=compiled)(given), both(given), strict=True
        ):
            hold(got, want, rtol)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [1, 5, 200])
def test_fractions_in_any_order(count, compiled):
    """Items of a few are selected; rows are sorted for many."""
    fractions = np.random.default_rng(1).permutation(np.linspace(0.0, 1.0, count))
    x = np.random.default_rng(3).normal(size=(4, 30))
    x[0, 3], x[1, ::4], x[3] = np.nan, np.nan, np.nan

    def both(x):
        quantiles = [np.quantile(x, fractions, axis=1), np.nanquantile(x, fractions, axis=1)]
        return [*quantiles, np.percentile(x[2], fractions * 100), np.quantile(x, fractions)]

    run = nbta.function(both, compiled=compiled)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a row of NaN alone
        want = both(x)
    for got, each in zip(run(x), want, strict=True):
        hold(got, each, 1e-14)


@pytest.mark.parametrize("function", [np.quantile, np.nanquantile])
def test_derivatives_of_several_fractions(function):
    x = np.random.default_rng(3).permutation(np.linspace(-1.0, 2.0, 28)).reshape(4, 7)
    check_grads(lambda x: function(x, [0.7, 0.1, 0.55], axis=1) ** 2, (x,), order=2)
    check_grads(lambda x, q: function(x, nbta.stack([q, 0.3, q * q])), (x, np.array(0.77)))


def test_tensors_outside_of_converted_code():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (2, 3))
        found = [x.var(), x.std(axis=0), x.argmin(), x.cumprod(), x.any(), x.all(axis=1)]
        found += [x.round(1), x.clip(0, 1), x.conj(), np.linalg.norm(x), np.ptp(x, axis=0)]
    want = [X.var(), X.std(axis=0), X.argmin(), X.cumprod(), X.any(), X.all(axis=1)]
    want += [X.round(1), X.clip(0, 1), X.conj(), np.linalg.norm(X), np.ptp(X, axis=0)]
    for got, expected in zip(nbta.Session(graph).run(found, {x: X}), want, strict=True):
        hold(got, expected, 1e-15)


def test_unknown_dimensions():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None, None))
        y = nbta.placeholder("float64", None)
        found = [
            nbta.var(x, 0),
            nbta.std(x),
            nbta.diff(x, axis=0),
            nbta.norm(x),
            nbta.cumprod(x, 1),
        ]
        found += [nbta.nanmean(x, 1), nbta.average(x, 1, W), nbta.trapezoid(x, W)]
        found += [nbta.ptp(x)]
        found += [nbta.var(y), nbta.std(y, -1), nbta.any(y, 0), nbta.norm(y), nbta.diff(y)]
    want = [X.var(0), X.std(), np.diff(X, axis=0), np.linalg.norm(X), X.cumprod(1)]
    want += [X.mean(1), np.average(X, 1, W), np.trapezoid(X, W), np.ptp(X)]
    want += [X.var(), X.std(-1), X.any(0), np.linalg.norm(X), np.diff(X)]
    for got, expected in zip(nbta.Session(graph).run(found, {x: X, y: X}), want, strict=True):
        hold(got, expected, 1e-15)


#: By name: a mask of plain truth values, and what reduces by it.
MASKED = {
    "row": ([True, False, True], {"axis": 1}),
    "column": (((True,), (False,)), {"axis": 0}),
    "all items": ([[True, False, True], [False, True, True]], {}),
}
REDUCERS = {
    "sum": {}, "prod": {}, "mean": {}, "var": {}, "std": {}, "min": {"initial": 9.0},
    "max": {"initial": -9.0}, "any": None, "all": None,
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("mask", MASKED)
def test_lists_of_truth_values_choose_items(mask, compiled):
    chosen, options = MASKED[mask]
    for name, more in REDUCERS.items():
        named = {**options, **(more or {}), "where": chosen}

        def by_function(x, name=name, more=more, named=named):
            found = getattr(np, name)(x > 0.25 if more is None else x, **named)
            return np.sum(found * x[0, 0])

        def by_method(x, name=name, more=more, named=named):
            array = x > 0.25 if more is None else x
            return np.sum(getattr(array, name)(**named) * x[0, 0])

        for f in (by_function, by_method):
            value, _ = nbta.value_and_grad(f, compiled=compiled)(X)
            hold(value, f(X), 1e-13)
            if (name, mask) != ("std", "column"):  # of one number
                check_grads(f, (X,), order=1)


def test_a_list_of_truth_values_of_another_length_is_refused():
    with pytest.raises((ValueError, nbta.NbtaError), match="broadcast"):
        nbta.function(lambda x: x.sum(axis=1, where=[True, False]))(X)
