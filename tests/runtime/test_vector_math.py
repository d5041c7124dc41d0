"""Elementary functions in plain loops: within 4 units in the last place over all they take."""

import math

import numba
import numpy as np
import pytest
from scipy import special

from nbta.kernels import vector_math

WIDE = np.longdouble
TRUE = {
    "exp": np.exp,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "log": np.log,
    "log1p": np.log1p,
    "sigmoid": lambda x: np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x))),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "erf": special.erf,
}


def samples(dtype):
    """Numbers of all sizes, more of those near 0 and 1, and the edges."""
    rng = np.random.default_rng(0)
    info = np.finfo(dtype)
    low, high = np.log10(float(info.smallest_subnormal)), np.log10(float(info.max))
    n = 100_000
    parts = [rng.uniform(-s, s, n) for s in (1e-3, 1, 20, 110, 800)]
    sizes = 10 ** rng.uniform(low, high, n)
    parts += [sizes, -sizes, -1 + 10 ** rng.uniform(-16, 0, n), 1 + rng.uniform(-1e-3, 1e-3, n)]
    edges = [0.0, np.inf, np.nan, info.tiny, info.smallest_subnormal, info.max, 1.0]
    return np.concatenate([*parts, edges, np.negative(edges)]).astype(dtype)


def computed(name, x):
    out = np.empty_like(x)
    getattr(vector_math, f"{name}_all")(x, out)
    return out


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TRUE)
def test_within_4_units_in_the_last_place(name, dtype):
    x = samples(dtype)
    found = computed(name, x)
    wide = np.float64 if name == "erf" else WIDE
    with np.errstate(all="ignore"):
        exact = TRUE[name](x.astype(wide))
        expected = exact.astype(dtype)
        unit = np.spacing(np.abs(expected))
        far = np.abs(found.astype(wide) - exact) / unit
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))
    finite = np.isfinite(expected)
    assert far[finite].max() <= 4
    np.testing.assert_array_equal(found[np.isinf(expected)], expected[np.isinf(expected)])


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_odd_functions_are_odd_and_end_at_1(name):
    x = samples("float64")
    np.testing.assert_array_equal(computed(name, -x), -computed(name, x))
    assert computed(name, np.array([50.0, np.inf])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["expm1", "tanh", "log1p", "erf"])
def test_zeros_keep_their_signs(name, dtype):
    found = computed(name, np.array([0.0, -0.0], dtype))
    assert found.tolist() == [0, 0]
    assert np.signbit(found).tolist() == [False, True]


@pytest.mark.parametrize("length", [0, 1, 7, 33])
def test_any_length(length):
    x = np.linspace(-3, 3, length)
    np.testing.assert_allclose(computed("tanh", x), np.tanh(x), rtol=1e-15)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TRUE)
def test_the_flags_of_the_caller_change_nothing(name, dtype):
    function = getattr(vector_math, name)

    @numba.njit(fastmath=True)
    def loop(x, out):
        for i in range(out.size):
            out[i] = function(x[i])

    x = samples(dtype)
    found = np.empty_like(x)
    loop(x, found)
    np.testing.assert_array_equal(found, computed(name, x))


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", TRUE)
def test_fused_loops_are_vector_instructions(name, dtype):
    function = getattr(vector_math, name)

    @numba.njit
    def loop(x, y, out):
        for i in range(out.size):
            out[i] = function(x[i] + y[i])

    x = np.ones(8, dtype)
    loop(x, x, x.copy())
    (code,) = loop.inspect_llvm().values()
    assert (" x float>" if dtype == "float32" else " x double>") in code


@pytest.mark.parametrize("name", TRUE)
def test_integers_are_refused(name):
    function = getattr(vector_math, name)
    with pytest.raises(numba.TypingError, match=f"intrinsic {name}"):
        numba.njit(lambda x: function(x))(1)


def power_of(halves):
    """A compiled loop of powers with one exponent, half of an integer."""
    names = {"power": vector_math.half_integer_power}
    lines = ["def loop(x, out):", "    for i in range(len(x)):"]
    exec("\n".join([*lines, f"        out[i] = power(x[i], {halves})"]), names)
    return numba.njit(names["loop"], error_model="numpy", fastmath={"contract"})


def c_power(x, y):
    """The C library's, which NumPy's is not for all exponents."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.copysign(math.inf, x if y % 2 == 1 else 1)
    except ValueError:  # of 0 to a negative power, and of a negative number to a fraction
        return math.copysign(math.inf, x if y % 2 == 1 else 1) if x == 0 else math.nan


HALVES = [
    -64,
    -33,
    -13,
    -8,
    -7,
    -6,
    -5,
    -4,
    -3,
    -2,
    -1,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    12,
    14,
    33,
    64,
]


@pytest.mark.parametrize("halves", HALVES)
def test_powers_are_within_2_units_in_the_last_place(halves):
    loop, exponent = power_of(halves), halves / 2
    for dtype in ("float32", "float64"):
        x = samples(dtype)[::20]
        found = np.empty_like(x)
        loop(x, found)
        with np.errstate(all="ignore"):
            exact = x.astype(WIDE) ** WIDE(exponent)
            expected = exact.astype(dtype)
            far = np.abs(found.astype(WIDE) - exact) / np.spacing(np.abs(expected))
        normal = np.isfinite(expected) & (np.abs(expected) >= 16 * np.finfo(dtype).tiny)
        assert far[normal].max() <= 2
        tiny = np.isfinite(expected) & ~normal
        assert tiny.sum() == 0 or far[tiny].max() <= 4
        info = np.finfo(dtype)
        edges = [0.0, np.inf, 1.0, info.smallest_subnormal, info.max, 2.0, np.nan]
        edges = np.array([*edges, *np.negative(edges)], dtype)
        found = np.empty_like(edges)
        loop(edges, found)
        with np.errstate(all="ignore"):
            expected = np.array([c_power(each, exponent) for each in edges.tolist()])
            expected = expected.astype(dtype)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        rest = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[rest]), np.signbit(expected[rest]))
        np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)


def test_powers_are_vector_instructions():
    loop = power_of(12)
    loop(np.ones(4), np.ones(4))
    (code,) = loop.inspect_llvm().values()
    assert "x double> @llvm.fma" in code
    assert "@pow(" not in code
