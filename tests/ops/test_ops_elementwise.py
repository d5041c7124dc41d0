"""Elementwise operations, dtypes and shapes: values, shape rules and gradients."""

import inspect

import ml_dtypes
import numpy as np
import pytest
from fuzz.ways import in_python
from item_by_item import OF_INTEGERS, OF_ONE, OF_TWO
from scipy import special

import nbta
from nbta.graph.operation import Spec
from nbta.testing import check_grads

UNARY = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "tanh": np.tanh, "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(x, 0), "relu": lambda x: np.maximum(x, 0),
    "erf": special.erf, "sin": np.sin, "cos": np.cos, "tan": np.tan, "abs": np.abs, "sign": np.sign,
    "square": np.square, "negative": np.negative, "floor": np.floor, "isfinite": np.isfinite,
    "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "isnan": np.isnan, "isinf": np.isinf,
    "arcsin": np.arcsin, "arccos": np.arccos, "arctan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "arcsinh": np.arcsinh, "arccosh": np.arccosh, "arctanh": np.arctanh,
    "log2": np.log2, "log10": np.log10, "exp2": np.exp2, "cbrt": np.cbrt, "erfc": special.erfc,
    "gamma": special.gamma, "reciprocal": np.reciprocal, "sinc": np.sinc, "signbit": np.signbit,
    "gammaln": lambda x: np.where(x == -np.inf, np.inf, special.gammaln(x)),
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide,
    "floor_divide": np.floor_divide, "mod": np.mod, "power": np.power, "minimum": np.minimum,
    "maximum": np.maximum, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "equal": np.equal,
    "not_equal": np.not_equal, "arctan2": np.arctan2, "hypot": np.hypot,
    "copysign": np.copysign, "fmod": np.fmod, "logaddexp": np.logaddexp, "fmax": np.fmax,
    "logaddexp2": np.logaddexp2, "heaviside": np.heaviside, "fmin": np.fmin,
}  # fmt: skip


def _takes_complex(record):
    try:
        return record.infer(Spec(np.dtype(complex), ())).dtype == complex
    except nbta.InvalidArgumentError:
        return False


POSITIVE = {
    "log", "log2", "log10", "sqrt", "rsqrt", "log1p", "power", "arccosh", "gamma", "gammaln",
}  # fmt: skip
#: Where functions of one argument have values: a factor, and what is added.
DOMAIN = {"arcsin": (0.5, 0), "arccos": (0.5, 0), "arctanh": (0.5, 0), "arccosh": (1, 1.2)}
TRUTH = {"isfinite", "isinf", "isnan", "signbit"}
FLAT = {"floor", "ceil", "trunc", "rint", "sign", "floor_divide"} | TRUTH
LOGIC = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}
HOLOMORPHIC = [
    name
    for name in sorted({*UNARY} - FLAT - {"abs"})
    if OF_ONE.get(name) is None or _takes_complex(OF_ONE[name].record)
]


def sample(*shape, positive=False, seed=0):
    values = np.random.default_rng(seed).uniform(0.2, 1.7, shape)
    signs = np.random.default_rng(seed + 1).choice([-1.0, 1.0], shape)
    return values if positive else values * signs


def argument(name, *shape):
    """A sample where a function of one argument has values."""
    factor, shift = DOMAIN.get(name, (1, 0))
    return factor * sample(*shape, positive=name in POSITIVE) + shift


def both_ways(function, *arrays, exact=True):
    """The result at once, and by a graph whose placeholders know nothing but the dtype."""
    now = function(*arrays)
    for i, known in enumerate((lambda a: a.shape, lambda a: (None,) * a.ndim, lambda a: None)):
        with nbta.Graph().as_default() as g:
            feeds = {nbta.placeholder(a.dtype, known(a)): a for a in arrays}
            result = function(*feeds)
        value = nbta.Session(g).run(result, feeds)
        np.testing.assert_array_equal(value, now)
        assert result.dtype == np.asarray(value).dtype
        spec = result.shape
        assert spec is None or all(
            n in (None, m) for n, m in zip(spec, np.shape(value), strict=True)
        )
        if exact and i == 0:
            assert spec == np.shape(value)
    return now


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", UNARY)
def test_values_of_one_argument(name, dtype):
    x = argument(name, 2, 3).astype(dtype)
    found = both_ways(getattr(nbta, name), x)
    expected = UNARY[name](x)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-15)


@pytest.mark.parametrize("name", UNARY)
def test_values_at_the_edges(name):
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, 1e-300, -1.0])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(getattr(nbta, name)(x), UNARY[name](x), rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", UNARY)
def test_half_precision_stays_what_it_is(name, dtype):
    x = argument(name, 4).astype(dtype)
    found = both_ways(getattr(nbta, name), x)
    assert found.dtype == (bool if name in TRUTH else dtype)
    expected = UNARY[name](x.astype(np.float64))
    np.testing.assert_allclose(found.astype(np.float64), expected, rtol=2e-2, atol=1e-2)
    if name not in FLAT:
        with nbta.Graph().as_default() as g:
            t = nbta.placeholder(dtype, (4,))
            (grad,) = nbta.gradients(getattr(nbta, name)(t), [t])
        assert nbta.Session(g).run(grad, {t: x}).dtype == dtype


@pytest.mark.smoke
@pytest.mark.parametrize("name", sorted(set(UNARY) - FLAT))
def test_gradients_of_one_argument(name):
    check_grads(getattr(nbta, name), (argument(name, 2, 2),))


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_gradients_of_complex_numbers(name):
    z = sample(3) + 1j * sample(3, seed=5)
    check_grads(getattr(nbta, name), (z,))


def test_gradients_of_parts_of_complex_numbers():
    z = sample(3) + 1j * sample(3, seed=5)
    for function in (nbta.abs, nbta.real, nbta.imag, nbta.conj):
        check_grads(function, (z,))
    check_grads(lambda z: z * nbta.conj(z) + nbta.abs(z), (z,))
    check_grads(lambda z, x: z * x / (z + 2) ** 2, (z, sample(3, seed=3)))


@pytest.mark.smoke_every(4)
@pytest.mark.parametrize("shapes", [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (3,)), ((), (2,))])
@pytest.mark.parametrize("name", BINARY)
def test_values_of_two_arguments(name, shapes):
    x, y = (sample(*s, positive=name in POSITIVE, seed=i) for i, s in enumerate(shapes))
    found = both_ways(getattr(nbta, name), np.asarray(x), np.asarray(y))
    np.testing.assert_allclose(found, BINARY[name](x, y), rtol=1e-15)


@pytest.mark.smoke
@pytest.mark.parametrize("name", sorted(set(BINARY) - LOGIC - FLAT))
@pytest.mark.parametrize("shapes", [((2, 2), (2, 2)), ((2, 1), (1, 2)), ((), (2,)), ((1,), (2,))])
def test_gradients_of_two_arguments(name, shapes):
    x, y = (sample(*s, positive=name in POSITIVE, seed=i) for i, s in enumerate(shapes))
    check_grads(getattr(nbta, name), (np.asarray(x), np.asarray(y)))


@pytest.mark.parametrize("dimensions", [(1, 3), (3, 1), (3, 3), (1, 1)])
def test_unknown_lengths_that_turn_out_to_be_1_are_summed_over(dimensions):
    with nbta.Graph().as_default() as g:
        x, y = (nbta.placeholder("float64", (None,)) for _ in range(2))
        grads = nbta.gradients(x * y, [x, y])
    a, b = (sample(n, seed=n) for n in dimensions)
    da, db = nbta.Session(g).run(grads, {x: a, y: b})
    ones = np.ones(np.broadcast_shapes(a.shape, b.shape))
    expected = [ones * b, ones * a]
    for found, want, like in zip((da, db), expected, (a, b), strict=True):
        np.testing.assert_allclose(found, want.sum(keepdims=True) if like.size == 1 else want)


def test_arguments_have_the_names_that_are_shown():
    """Those of `arctan2` are in the other order."""
    assert nbta.arctan2(x=2.0, y=1.0) == np.arctan2(1.0, 2.0)
    assert nbta.beta(b=2.0, a=3.0) == nbta.beta(3.0, 2.0)
    assert nbta.huber(r=3.0, delta=1.0) == 2.5
    for name, function in {**OF_ONE, **OF_TWO, **OF_INTEGERS}.items():
        code = function.__code__
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        assert given == tuple(inspect.signature(function).parameters), name


def test_only_the_slopes_that_are_wanted_are_made():
    """By a known exponent there is none, nor a choice for exponents of zero, to any order."""
    with nbta.Graph().as_default() as graph:
        x = nbta.constant(1.5)
        y = (x**5 / 3.0 - 2.0 * x) * 0.5
        for _ in range(3):
            (y,) = nbta.gradients(y, [x])
        made = {op.type for op in graph.operations}
        assert made.isdisjoint({"Log", "Where", "Equal"})
        np.testing.assert_allclose(nbta.Session().run(y), 0.5 * 60.0 * 1.5**2 / 3.0, rtol=1e-12)


def test_powers_of_zero_and_of_negative_numbers():
    grad = nbta.grad(lambda x, y: nbta.sum(x**y), argnums=(0, 1))
    dx, dy = grad(np.array([0.0, 0.0, -2.0, 2.0]), np.array([0.0, 2.0, 3.0, 0.0]))
    np.testing.assert_allclose(dx, [0, 0, 12, 0])
    np.testing.assert_allclose(dy, [0, 0, 0, np.log(2)])
    check_grads(lambda x: x**3 + x**-1.5, (np.array([0.5, 2.0]),))
    assert nbta.grad(lambda x: x**2)(0.0) == 0


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("choose", "sign"),
    [
        (lambda x: nbta.maximum(x, 0.0), 1), (lambda x: nbta.maximum(0.0, x), 1),
        (lambda x: nbta.fmax(x, 0.0), 1), (lambda x: nbta.fmax(0.0, x), 1), (nbta.relu, 1),
        (lambda x: nbta.max(nbta.stack([x, nbta.zeros_like(x)], 1), axis=1), 1),
        (lambda x: -nbta.minimum(x, 0.0), -1), (lambda x: -nbta.minimum(0.0, x), -1),
        (lambda x: -nbta.fmin(x, 0.0), -1),
        (lambda x: -nbta.min(nbta.stack([x, nbta.zeros_like(x)], 1), axis=1), -1),
    ],
)  # fmt: skip
def test_what_is_not_chosen_has_no_part_in_an_infinite_gradient(choose, sign, compiled):
    def total(x):
        return nbta.sum(nbta.sqrt(choose(sign * x)))

    x = np.array([-1.0, 4.0, -0.5])
    chosen = [0.0, 0.25, 0.0]
    found = nbta.grad(total, compiled=compiled)(x)
    np.testing.assert_allclose(found, chosen)
    slope = nbta.grad(lambda x: nbta.sum(nbta.grad(total)(x)), compiled=compiled)
    np.testing.assert_allclose(slope(x), [0.0, -0.03125, 0.0])


@pytest.mark.smoke
def test_equal_values_share_the_gradient_of_minimum_and_maximum():
    for function in (nbta.minimum, nbta.maximum):
        assert nbta.grad(function, argnums=(0, 1))(1.0, 1.0) == (0.5, 0.5)


def test_kinks_have_the_slope_zero():
    assert nbta.grad(nbta.relu)(0.0) == 0
    assert nbta.grad(nbta.abs)(0.0) == 0
    assert nbta.grad(nbta.abs, compiled=False)(-2.0) == -1


def test_slopes_at_kinks_of_two_arguments_are_zero():
    assert nbta.grad(nbta.hypot, argnums=(0, 1))(0.0, 0.0) == (0, 0)
    assert nbta.grad(nbta.copysign)(0.0, -1.0) == 0
    assert nbta.grad(nbta.copysign)(-3.0, 1.0) == -1


def test_polygamma():
    x = sample(3, positive=True)
    for n in range(3):
        expected = special.psi(x) if n == 0 else special.polygamma(n, x)
        np.testing.assert_allclose(both_ways(lambda x, n=n: nbta.polygamma(n, x), x), expected)
    check_grads(lambda x: nbta.polygamma(0, x), (x,))
    with pytest.raises(nbta.InvalidArgumentError, match="must be 0 or more"):
        nbta.polygamma(-1, 1.0)


INTEGERS = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "left_shift": np.left_shift, "right_shift": np.right_shift, "gcd": np.gcd, "lcm": np.lcm,
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name):
    """By both executors, for each dtype; shift counts are negative, and too large, too."""
    x = np.array([[0, 1, 5, 100, 127, -128, -1]])
    y = np.array([[0], [1], [3], [7], [8], [64], [-3]])
    for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64"):
        given = x.astype(dtype), y.astype(dtype)
        found = both_ways(getattr(nbta, name), *given)
        expected = INTEGERS[name](*given)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        with in_python():
            compiled = nbta.function(getattr(nbta, name), compiled=True)(*given)
        np.testing.assert_array_equal(compiled, expected)


def test_bits_of_other_numbers():
    truth = np.array([True, False])
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        found = both_ways(getattr(nbta, name), truth, truth[::-1].copy())
        np.testing.assert_array_equal(found, INTEGERS[name](truth, truth[::-1]))
    for x in (truth, np.array([0, 5, -7], np.int8), np.array([3], np.uint64)):
        np.testing.assert_array_equal(both_ways(nbta.invert, x), ~x)
    assert nbta.left_shift(truth, truth).dtype == np.left_shift(truth, truth).dtype
    with pytest.raises(nbta.InvalidArgumentError, match=r"float64 has no bits.*cast it"):
        nbta.bitwise_and(1.0, 2.0)


def test_softplus_and_sigmoid_far_out():
    value, slope = nbta.value_and_grad(nbta.softplus)(800.0)
    assert (value, slope) == (800.0, 1.0)
    assert nbta.grad(nbta.sigmoid)(-800.0) == 0


@pytest.mark.smoke
def test_where_and_clip():
    condition = np.array([True, False])
    found = both_ways(nbta.where, condition, sample(2), sample(2, seed=3))
    np.testing.assert_array_equal(found, np.where(condition, sample(2), sample(2, seed=3)))
    check_grads(lambda x, y: nbta.where(x > 0, x * y, y), (sample(3), sample(3, seed=2)))
    check_grads(lambda x: nbta.clip(x, -0.5, 0.7) * x, (sample(5),))
    np.testing.assert_array_equal(nbta.clip(np.arange(5), 1, None), [1, 1, 2, 3, 4])
    np.testing.assert_array_equal(nbta.clip(np.arange(5), None, 3), [0, 1, 2, 3, 3])
    with pytest.raises(nbta.InvalidArgumentError, match="must hold booleans, not float64"):
        nbta.where(np.ones(2), 1.0, 2.0)


def test_numpys_rules_for_dtypes():
    f32, f64 = np.float32([1]), np.float64([1])
    i32, i64, b = np.int32([1]), np.int64([1]), np.array([True])
    for x, y in [(f32, f64), (i32, f32), (i32, i64), (b, i32), (b, f32), (f32, 2), (f32, 2.5)]:
        assert (
            both_ways(nbta.add, *map(np.asarray, (x, y))).dtype
            == (np.asarray(x) + np.asarray(y)).dtype
        )
    assert nbta.multiply(f32, 2.5).dtype == np.float32
    assert nbta.multiply(i32, 2.5).dtype == np.float64
    assert nbta.multiply(f32, 1j).dtype == np.complex64
    assert nbta.divide(i32, i32).dtype == np.float64
    assert nbta.multiply(np.ones(1, ml_dtypes.bfloat16), 2.5).dtype == ml_dtypes.bfloat16
    with pytest.raises(nbta.InvalidArgumentError, match="<U1 and float32 cannot be computed with"):
        nbta.add(np.array(["a"]), f32)
    with pytest.raises(nbta.InvalidArgumentError, match="does not fit int32"):
        nbta.add(i32, 2**40)


def test_arithmetic_of_truth_values_is_refused():
    for function in (nbta.subtract, lambda x, y: nbta.negative(x)):
        with pytest.raises(nbta.InvalidArgumentError, match="cast them first"):
            function(np.array([True]), np.array([True]))


def test_complex_numbers_have_no_sigmoid():
    with pytest.raises(nbta.InvalidArgumentError, match="for real numbers, not complex128"):
        nbta.sigmoid(1j)


def test_cast_keeps_gradients_between_floats_only():
    check_grads(lambda x: nbta.cast(nbta.cast(x, "complex128"), "float64") * x, (sample(2),))
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        assert nbta.gradients(nbta.cast(nbta.cast(x, "int32"), "float64"), [x]) == [None]
    assert nbta.cast(1 + 2j, "float32") == np.float32(1)


@pytest.mark.parametrize("shape", [(6,), (2, -1), (3, 2), (-1,), (1, 6, 1)])
def test_reshape(shape):
    x = sample(2, 3)
    np.testing.assert_array_equal(both_ways(lambda x: nbta.reshape(x, shape), x), x.reshape(shape))
    check_grads(lambda x: nbta.reshape(x * x, shape), (x,))


def test_a_sequence_in_a_shape_is_refused():
    with pytest.raises(
        nbta.InvalidArgumentError, match="shape contains a sequence; give one integer per axis"
    ):
        nbta.function(lambda x: nbta.reshape(x, ([x[0], 2.0], 2)))(np.ones(4))


def test_reshape_to_a_shape_that_a_run_tells():
    def halves(x):
        n = nbta.shape(x)[0]
        return nbta.reshape(x, (n // 2, 2))

    np.testing.assert_array_equal(
        both_ways(halves, sample(6), exact=False), sample(6).reshape(3, 2)
    )
    check_grads(halves, (sample(4),))
    for bad in ((4,), (5, -1)):
        with pytest.raises(nbta.InvalidArgumentError, match="6"):
            nbta.reshape(sample(2, 3), bad)
    with pytest.raises(nbta.InvalidArgumentError, match="negative dimension"):
        nbta.reshape(sample(2), (-2,))


@pytest.mark.smoke
def test_broadcast_to_and_sum_to_undo_each_other():
    x = sample(2, 1)
    wide = both_ways(lambda x: nbta.broadcast_to(x, (3, 2, 4)), x)
    np.testing.assert_array_equal(wide, np.broadcast_to(x, (3, 2, 4)))
    np.testing.assert_allclose(nbta.sum_to(wide, (2, 1)), 12 * x)
    check_grads(lambda x: nbta.broadcast_to(x * x, (3, 2, 2)), (x,))
    check_grads(lambda x: nbta.sum_to(x * x, (2, 1)), (sample(3, 2, 2),))
    with pytest.raises(nbta.InvalidArgumentError, match=r"\(2,\) does not broadcast to \(3,\)"):
        nbta.broadcast_to(sample(2), (3,))


def test_making_tensors():
    np.testing.assert_array_equal(nbta.zeros((2, 1), "int32"), np.zeros((2, 1), np.int32))
    np.testing.assert_array_equal(nbta.ones(()), np.float64(1))
    np.testing.assert_array_equal(nbta.fill((2,), np.float32(3)), np.full(2, 3, np.float32))
    both_ways(nbta.zeros_like, sample(2, 3))
    both_ways(lambda x: nbta.ones_like(x, "int64"), sample(2, 3))
    both_ways(lambda x: nbta.zeros((nbta.shape(x)[0], 2)), sample(2, 3))
    check_grads(lambda x: nbta.fill((2, 2), nbta.sum(x)) * 2, (sample(2),))


@pytest.mark.smoke
def test_add_n():
    x = [sample(2, seed=i) for i in range(3)]
    np.testing.assert_allclose(both_ways(lambda *x: nbta.add_n(x), *x), x[0] + x[1] + x[2])
    check_grads(lambda *x: nbta.add_n([*x, x[0]]), tuple(x))
    with pytest.raises(nbta.InvalidArgumentError, match="nothing to add"):
        nbta.add_n([])


@pytest.mark.smoke
def test_stop_gradient_and_identity():
    x = sample(2)
    np.testing.assert_array_equal(both_ways(nbta.identity, x), x)
    np.testing.assert_allclose(nbta.grad(lambda x: nbta.sum(x * nbta.stop_gradient(x)))(x), x)
    check_grads(lambda x: nbta.identity(x) * x, (x,))


@pytest.mark.smoke
@pytest.mark.parametrize("name", ["logical_and", "logical_or"])
def test_logic(name):
    a, b = np.array([True, True, False]), np.array([True, False, False])
    np.testing.assert_array_equal(both_ways(getattr(nbta, name), a, b), getattr(np, name)(a, b))
    np.testing.assert_array_equal(both_ways(nbta.logical_not, a), ~a)


WITHOUT_AXES = {
    "sum": lambda x: nbta.sum(x),
    "var": lambda x: nbta.var(x),
    "det": lambda x: nbta.det(x),
    "an item": lambda x: nbta.gather(nbta.gather(x, 0), 1),
    "sin": lambda x: nbta.sin(nbta.sum(x)),
    "slogdet": lambda x: nbta.slogdet(x)[1],
    "iterations": lambda x: nbta.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, s * i), (0, nbta.sum(x))
    )[1],
}


@pytest.mark.parametrize("function", WITHOUT_AXES.values(), ids=WITHOUT_AXES)
def test_what_has_no_axes_is_a_scalar_as_compiled_functions_give_it(function):
    x = sample(2, 2)
    compiled = nbta.function(function, compiled=True)(x)
    assert type(function(x)) is type(compiled) is np.float64
    np.testing.assert_allclose(function(x), compiled)


def test_functions_of_two_dtypes_in_one_compiled_function():
    names = (
        "exp", "log", "log2", "log10", "exp2", "expm1", "log1p", "sqrt", "cbrt", "sin", "cos",
        "tan", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "rint",
        "floor",
    )  # fmt: skip

    def run(*values):
        found = [getattr(np, name)(value) for name in names for value in values]
        return found + [np.logaddexp2(value, value) for value in values]

    values = [np.array([0.25, 0.5, 0.75], dtype) for dtype in (np.float32, np.float64)]
    for found, expected in zip(
        nbta.function(run, compiled=True)(*values), run(*values), strict=True
    ):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_integers_are_compared_with_numbers_that_their_dtype_has_not():
    numbers = (-1, 300, 2**40)
    for dtype in (np.uint8, np.uint64):
        x = np.array([0, 7], dtype)
        for function in (np.less, np.equal, np.greater_equal):
            f = lambda x, name=function.__name__: [getattr(nbta, name)(x, n) for n in numbers]  # noqa: E731
            expected = [function(x, n) for n in numbers]
            for compiled in (False, True):
                np.testing.assert_array_equal(nbta.function(f, compiled=compiled)(x), expected)
