"""Numbers in compiled code, against the reference executor: special values, all dtypes."""

import numpy as np
import pytest
from item_by_item import OF_ONE, OF_TWO

import nbta
from nbta.codegen import fusion
from nbta.codegen.fusion import Elementary
from nbta.compiler.executable import Compiled

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
#: Units in the last place by which functions may differ; 0 for what must be equal.
ULPS = {"power": 4, "sums": 64}


def special(dtype):
    """Values that go wrong first."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([True, False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min // 2 + 1,
                         *((-1, -2, -7) if info.min else ())], dtype)  # fmt: skip
    if dtype.kind == "f":
        tiny, most = np.finfo(dtype).tiny, np.finfo(dtype).max
        return np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 3.0, -7.0, 1e-3, 88.0, -90.0,
                         most, -most, tiny, -tiny / 4, np.inf, -np.inf, np.nan], dtype)  # fmt: skip
    parts = np.array([0.0, -0.0, 1.5, -2.0, np.inf, np.nan])
    pairs = np.stack(np.broadcast_arrays(parts[:, None], parts), -1)
    return pairs.reshape(-1, 2).view(np.complex128).ravel().astype(dtype)


def both(build, *arrays, shapes=None):
    """Fetches, by name, of a graph that is run operation by operation and compiled."""
    with nbta.Graph().as_default() as graph:
        shapes = shapes or [array.shape for array in arrays]
        fed = [nbta.placeholder(a.dtype, s) for a, s in zip(arrays, shapes, strict=True)]
        fetches = build(*fed)
    session, feeds = nbta.Session(graph), dict(zip(fed, arrays, strict=True))
    expected = session.run(fetches, feeds, compiled=False)
    found = session.run(fetches, feeds, compiled=True)
    runner = session.last
    (function,) = runner.compiled
    assert isinstance(function, Compiled)
    assert [call.op.type for call in function.generated.calls] == []
    assert runner.fallbacks == 0
    return found, expected


def agree(found, expected, ulps=None):
    """Hold results against expected ones, by name."""
    for name, value in expected.items():
        close(name, np.asarray(found[name]), np.asarray(value), (ulps or {}).get(name, 0))


def close(name, found, expected, ulps):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
    if ulps and expected.dtype.kind in "fc":
        info = np.finfo(expected.dtype)
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                found, expected, ulps * info.eps, ulps * float(info.tiny), err_msg=name
            )
    else:
        np.testing.assert_array_equal(found, expected, err_msg=name)


def same_zeros(found, expected, names):
    """Hold the signs of zeros against each other."""
    for name in names:
        zero = np.asarray(expected[name]) == 0
        signs = np.signbit(np.asarray(found[name])[zero]), np.signbit(expected[name][zero])
        np.testing.assert_array_equal(*signs, err_msg=name)


def one_argument(x):
    made = {f.__name__: f(x) for f in (nbta.abs, nbta.negative, nbta.square)}
    made |= {f.__name__: f(x) for f in (nbta.real, nbta.imag, nbta.conj, nbta.isfinite)}
    if x.dtype.kind != "c":
        made |= {f.__name__: f(x) for f in (nbta.relu, nbta.sign)}
    functions = {"f": FUNCTIONS, "c": (nbta.exp, nbta.sqrt, nbta.log1p)}.get(x.dtype.kind, ())
    return made | {f.__name__: f(x) for f in functions}


def elementary(functions):
    return [f for f in functions.values() if isinstance(f.record.emit, Elementary)]


FUNCTIONS = [*elementary(OF_ONE), nbta.rsqrt, nbta.floor]
ROUNDED = {
    f.__name__: 8 for f in [*FUNCTIONS, *elementary(OF_TWO)] if f not in (nbta.sqrt, nbta.floor)
}


def two_arguments(x, y):
    arithmetic = nbta.add, nbta.subtract, nbta.multiply, nbta.equal, nbta.not_equal
    order = (
        nbta.less, nbta.less_equal, nbta.greater, nbta.greater_equal, nbta.minimum, nbta.maximum,
        nbta.floor_divide, nbta.mod,
    )  # fmt: skip
    made = {f.__name__: f(x, y) for f in arithmetic}
    made["fixed power"] = nbta.power(x, 3)
    if x.dtype.kind in "fc":
        made["divide"] = nbta.divide(x, y)
    if x.dtype.kind != "c":
        made |= {f.__name__: f(x, y) for f in order}
        made["clip"] = nbta.clip(x, nbta.minimum(y, x), y)
        made["where"] = nbta.where(nbta.less(x, y), x, y)
    if x.dtype.kind == "f":
        made["power"] = nbta.power(x, y)
        made |= {f.__name__: f(x, y) for f in elementary(OF_TWO)}
    if x.dtype.kind in "iu":
        made["power"] = nbta.power(x, nbta.cast(nbta.mod(y, 7), x.dtype))
        made["quotient"] = nbta.divide(x, y)
    return made


@pytest.mark.smoke
@pytest.mark.slow_but_every(12)
@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS, *COMPLEX])
def test_elementwise_operations(dtype):
    values = special(dtype)

    def build(x, y, scalar):
        made = one_argument(x) | two_arguments(x, nbta.reshape(y, (-1, 1)))
        made |= {f"scalar {name}": v for name, v in one_argument(scalar).items()}
        return made | {f"scalars {name}": v for name, v in two_arguments(scalar, x[2]).items()}

    found, expected = both(build, values, values, values[-2])
    inexact = ROUNDED | {"power": 4, "fixed power": 4, "quotient": 1, "multiply": 2, "square": 2}
    inexact |= dict.fromkeys(("abs", "divide", "sqrt"), 4 if dtype in COMPLEX else 0)
    inexact |= {f"scalar{s} {name}": n for name, n in inexact.items() for s in ("", "s")}
    agree(found, expected, inexact)
    if dtype in FLOATS:
        names = "abs", "sign", "floor", "negative", "floor_divide", "mod", "divide", "expm1"
        same_zeros(found, expected, names)


AXES = [(0, 2), 1, None, ()]


def reductions(x):
    made, is_whole = {}, x.dtype.name in ("int8", "float32", "complex64")
    for place, axis in enumerate(AXES if is_whole else AXES[:1]):
        made |= {f"{f.__name__} {axis}": f(x, axis, place % 2 == 0) for f in folds(x.dtype)}
    if x.dtype.kind != "c":
        made |= {f"argmax {axis}": nbta.argmax(x, axis) for axis in (1, None, 2)[: 1 + is_whole]}
    made |= {f"cumsum {axis}": nbta.cumsum(x, axis) for axis in (None, 1)[: 1 + is_whole]}
    for axis, reverse in ((0, False), (1, True))[not is_whole :]:
        made[f"cumprod {axis}"] = nbta.exclusive_cumprod(x, axis, reverse=reverse)
        made[f"recurrence {axis}"] = nbta.linear_recurrence(x, x, axis, reverse=reverse)
    return made


def folds(dtype):
    sums = nbta.sum, nbta.prod, nbta.mean
    return sums if dtype.kind == "c" else (*sums, nbta.max, nbta.min)


def exponentials(x):
    made = {}
    for axis in AXES[: 3 if x.dtype == np.float32 else 1]:
        made |= {f"{f.__name__} {axis}": f(x, axis) for f in (nbta.softmax, nbta.log_softmax)}
        made[f"logsumexp {axis}"] = nbta.logsumexp(x, axis, axis == (0, 2))
    return made


def some(dtype, shape):
    """Small numbers, negative ones and fractions among them."""
    rng, dtype = np.random.default_rng(3), np.dtype(dtype)
    values = rng.integers(0 if dtype.kind in "bu" else -4, 5, shape)
    if dtype.kind in "fc":
        values = values / 4
    return (values + 1j * rng.integers(-2, 3, shape) if dtype.kind == "c" else values).astype(dtype)


def sums_inexact(expected, ulps):
    rounded = "sum", "mean", "prod", "cumsum", "cumprod", "recurrence", "soft", "log"
    return {name: ulps for name in expected if name.startswith(rounded)}


@pytest.mark.smoke
@pytest.mark.slow_but_every(13)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS, *COMPLEX])
def test_reductions_along_axes(dtype):
    values = some(dtype, (3, 4, 5))
    if np.dtype(dtype).kind in "fc":
        values[values == 0] = 0.75  # sums in another order have no common relative accuracy at 0
        values = abs(values).astype(dtype)

    def build(x, scalar):
        made = reductions(x) | {f"{f.__name__} alone": f(scalar) for f in folds(x.dtype)}
        if x.dtype.kind != "c":
            made["argmax alone"] = nbta.argmax(scalar)
        if x.dtype.kind == "f":
            made |= exponentials(x)
            made |= {f"{f.__name__} alone": f(scalar, None) for f in EXPONENTIALS}
        return made

    found, expected = both(build, values, values[0, 0, 0], shapes=[(None, 4, None), ()])
    agree(found, expected, sums_inexact(expected, 64))


EXPONENTIALS = nbta.softmax, nbta.log_softmax, nbta.logsumexp


@pytest.mark.slow
@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_of_special_values(dtype):
    inf, nan = np.inf, np.nan
    rows = np.array([[1, 2, nan, 3], [inf, 1, 2, -inf], [-inf, -inf, -inf, -inf], [inf, inf, 0, 1],
                     [nan, nan, inf, 1], [-0.0, 0.0, -0.0, 0.0], [-nan, -1, -2, -3],
                     [1e3, 1e3, -1e3, 0]], dtype)  # fmt: skip

    def build(x):
        made = {f"{f.__name__} {axis}": f(x, axis)
                for axis in (0, 1, None) for f in (*folds(x.dtype), *EXPONENTIALS)}  # fmt: skip
        made |= {f"argmax {axis}": nbta.argmax(x, axis) for axis in (0, 1, None)}
        made |= {f"cumsum {axis}": nbta.cumsum(x, axis) for axis in (0, 1)}
        finite = nbta.where(nbta.isfinite(x), x, nbta.zeros_like(x))
        return made | {f"{f.__name__}": f(finite, 1) for f in folds(x.dtype)}

    found, expected = both(build, rows)
    agree(found, expected, sums_inexact(expected, 64))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "shape"), [("float32", (None, None)), ("complex64", (3, 5000))])
def test_long_reductions(dtype, shape):
    """Of more items than are added up in one block."""
    values = abs(some(dtype, (3, 5000))) if dtype == "float32" else some(dtype, (3, 5000))

    def build(x):
        made = {f"{f.__name__} {a}": f(x, a) for a in (None, 0, 1) for f in (nbta.sum, nbta.mean)}
        if x.dtype.kind != "c":
            made |= {f"{f.__name__} {a}": f(x, a) for a in (None, 0, 1) for f in (nbta.max,)}
            made |= {f"argmax {a}": nbta.argmax(x, a) for a in (None, 0, 1)}
        return made

    found, expected = both(build, values, shapes=[shape])
    agree(found, expected, sums_inexact(expected, 256))


@pytest.mark.slow
def test_reductions_of_nothing():
    def build(x, y):
        functions = nbta.sum, nbta.prod, nbta.mean, nbta.logsumexp, nbta.softmax
        made = {f"{f.__name__} {axis}": f(x, axis) for axis in (None, 0, 1) for f in functions}
        made |= {"max": nbta.max(x, 0), "argmax": nbta.argmax(x, 0), "cumsum": nbta.cumsum(x, 1)}
        return made | {"complex mean": nbta.mean(y, 1)}

    x = np.ones((2, 0), np.float32)
    found, expected = both(build, x, x.astype(np.complex64), shapes=[(None, None)] * 2)
    agree(found, expected)


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_a_few_numbers(dtype):
    """Those of up to eight need no integers in their order; NaN is one of these at each place."""
    rng = np.random.default_rng(0)
    for length in (1, 2, 3, fusion.SHORT_RUN, fusion.SHORT_RUN + 1):
        rows = rng.normal(size=(length + 3, length)).astype(dtype)
        rows[np.arange(length), np.arange(length)] = np.nan
        rows[length], rows[length + 1] = np.inf, -np.inf

        def f(x):
            return nbta.max(x, 1), nbta.min(x, 1), nbta.max(x, 0), nbta.logsumexp(x, 1)

        fast = nbta.function(f, compiled=True)
        for one, other in zip(fast(rows), nbta.function(f, compiled=False)(rows), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
        assert np.isnan(fast(rows)[0]).tolist() == [True] * length + [False] * 3
        fixed = nbta.function(lambda x, n=length: nbta.max(nbta.reshape(x, (-1, n)), 1))
        np.testing.assert_array_equal(fixed(rows), np.max(rows, 1))


@pytest.mark.smoke
@pytest.mark.parametrize("function", [nbta.max, nbta.min, nbta.argmax])
def test_the_greatest_of_nothing_is_refused(function):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None, 2))
        y = function(x, 0)
    with pytest.raises(nbta.InvalidArgumentError, match="length 0"):
        nbta.Session(graph).run(y, {x: np.ones((0, 2))}, compiled=True)


def test_powers_of_integers_with_negative_exponents_are_refused():
    with nbta.Graph().as_default() as graph:
        x, y = nbta.placeholder("int64", ()), nbta.placeholder("int64", (None,))
        results = [nbta.power(x, y), nbta.power(y, x), nbta.power(y, -1)]
    session, values = nbta.Session(graph), {x: np.array(-2), y: np.array([3, -2])}
    for result in results:
        with pytest.raises(ValueError):  # noqa: PT011 - its words are NumPy's
            session.run(result, values, compiled=True)


@pytest.mark.slow
def test_ranges():
    bounds = [
        (0.0, 1.0, 0.1), (1.0, -2.5, -0.5), (0.0, -1.0, 0.25), (5.0, 5.0, 1.0), (1e8, 1e8 + 40, 8),
    ]  # fmt: skip

    def build(values):
        made = {}
        for row, _ in enumerate(bounds):
            for dtype in FLOATS:
                given = [nbta.cast(values[row, k], dtype) for k in range(3)]
                made[f"{row} {dtype}"] = nbta.arange(*given)
                made[f"{row} {dtype} from whole"] = nbta.arange(row, row * 7, 2, dtype=dtype)
            for dtype in INTEGERS[row::5]:
                given = [nbta.cast(nbta.clip(values[row, k], -9, 9), "int32") for k in range(2)]
                made[f"{row} {dtype}"] = nbta.arange(abs(given[0]), given[1], 2, dtype=dtype)
        return made

    found, expected = both(build, np.array(bounds))
    agree(found, expected, dict.fromkeys(expected, 2))


@pytest.mark.smoke_every(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "uint64", "bool", "complex64"])
def test_zeros_are_cleared(dtype):
    """All at once and not in a loop; not those with a sign."""
    minus = np.full((), -0.0).astype(dtype)

    def build(x):
        lengths = nbta.shape(x)
        zeros = nbta.zeros(lengths, dtype)
        return {
            "zeros": zeros, "signed": nbta.fill(lengths, minus),
            "none": nbta.zeros((0, 3), dtype), "sum": nbta.sum(nbta.cast(zeros, "float64") + x),
        }  # fmt: skip

    found, expected = both(build, np.arange(6.0).reshape(2, 3))
    agree(found, expected)
    for name in ("zeros", "signed"):
        assert found[name].tobytes() == expected[name].tobytes()
    f = nbta.function(lambda x: nbta.zeros(nbta.shape(x), dtype), compiled=True)
    f(np.ones((2, 3)))
    assert "clear(" in f.source
    assert "for " not in f.source


@pytest.mark.parametrize("bounds", [(0.0, 1.0, 0.0), (0.0, np.inf, 1.0), (np.nan, 1.0, 1.0)])
def test_ranges_without_end_are_refused(bounds):
    with nbta.Graph().as_default() as graph:
        fed = [nbta.placeholder("float64", ()) for _ in bounds]
        result = nbta.arange(*fed)
    values = dict(zip(fed, map(np.float64, bounds), strict=True))
    with pytest.raises(nbta.InvalidArgumentError, match=r"end|step"):
        nbta.Session(graph).run(result, values, compiled=True)


BATCHES = [
    ((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 2)),
    ((2, 3, 4), (4,)), ((2, 3, 4), (2, 4, 2)), ((3, 4), (2, 4, 2)), ((4,), (2, 4, 2)),
    ((5, 1, 3, 4), (2, 4, 2)), ((1, 3, 4), (5, 2, 4, 2)), ((0, 3, 4), (4, 2)),
]  # fmt: skip


@pytest.mark.smoke
@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_products(dtype):
    batches = BATCHES if dtype == "float32" else BATCHES[::3]
    arrays = [some(dtype, shape) for pair in batches for shape in pair]

    def build(*x):
        made = {f"{k}": nbta.matmul(x[2 * k], x[2 * k + 1]) for k in range(len(batches))}
        made["turned"] = nbta.matmul(nbta.transpose(x[1]), nbta.transpose(x[0]))
        made["of transpose"] = nbta.matmul(nbta.transpose(x[0]), x[0])
        made["by transpose"] = nbta.matmul(x[4], nbta.transpose(nbta.matmul(x[0], x[1])[:, :1]))
        made["outer"] = nbta.outer(x[4][:, 0], x[0][0])
        return made

    arrays[4:6] = some(dtype, (3, 1)), some(dtype, (1,))
    open_shapes = [tuple(None if n > 1 else n for n in array.shape) for array in arrays]
    found, expected = both(build, *arrays, shapes=open_shapes)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, 1e-6, 1e-6, err_msg=name)
        assert found[name].dtype == value.dtype


@pytest.mark.smoke
def test_batches_that_do_not_fit_are_refused():
    with nbta.Graph().as_default() as graph:
        x, y = (nbta.placeholder("float64", (None,) * 3) for _ in range(2))
        result = nbta.matmul(x, y)
    for shapes in (((2, 3, 4), (3, 4, 2)), ((2, 3, 4), (2, 3, 4))):
        values = dict(zip((x, y), map(np.ones, shapes), strict=True))
        with pytest.raises(nbta.InvalidArgumentError, match=r"broadcast|inner lengths|do not"):
            nbta.Session(graph).run(result, values, compiled=True)


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "float64", "complex64"])
@pytest.mark.parametrize("count", [63, 64, 65, 128])
def test_sums_of_many_terms_are_added_in_order(dtype, count):
    made = np.random.default_rng(count)
    rows = (made.uniform(-1, 1, (7, 3)) * 9).astype(dtype)

    def f(rows):
        terms = [rows[k % 7] for k in range(count)]
        return nbta.add_n(terms), nbta.add_n([term[0] for term in terms])

    compiled, reference = (
        nbta.function(f, compiled=kind, convert=False)(rows) for kind in (True, False)
    )
    for one, other in zip(compiled, reference, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_sums_may_have_more_terms_than_python_parses():
    f = nbta.function(lambda x: nbta.add_n([x] * 4000), compiled=True)
    assert f(0.25) == 1000.0


def test_methods_of_complex_constants():
    def turned(x):
        z = complex(x[0], x[1])
        if x[0] > 1.0:
            z = z.conjugate()
        return z.real + 2.0 * z.imag

    x = np.array([2.5, 0.7])
    for compiled in (False, True):
        value, slope = nbta.value_and_grad(turned, compiled=compiled)(x)
        np.testing.assert_allclose(value, 1.1)
        np.testing.assert_allclose(slope, [1.0, -2.0])
