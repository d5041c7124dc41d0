"""Reductions and linear algebra: values, what is known of results, errors and gradients."""

import math
from contextlib import contextmanager
from itertools import product

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from many import each

import nbta
from nbta import shapes
from nbta.ops.axes import reductions
from nbta.ops.core.dispatch import OF_NUMPY
from nbta.ops.linalg import triangular as linalg
from nbta.ops.special import softmax
from nbta.testing import check_grads

ml_dtypes = pytest.importorskip("ml_dtypes")

RNG = np.random.default_rng(7)
DTYPES = [
    "bool", "int8", "int32", "int64", "uint8", "float16", ml_dtypes.bfloat16, "float32",
    "float64", "complex64", "complex128",
]  # fmt: skip
AXES = [
    ((), None), ((), ()), ((4,), 0), ((4,), None), ((2, 3), -1), ((2, 3), (0, 1)),
    ((2, 3, 4), (0, -1)), ((2, 3, 4), 1), ((2, 3, 4), None), ((2, 0, 3), 0), ((2, 0, 3), (0, 2)),
]  # fmt: skip
HIDDEN = ["nothing", "lengths", "rank"]
TOLERANCES = {"float16": 1e-2, "bfloat16": 1e-1, "float32": 1e-5, "complex64": 1e-5}


def sample(dtype, shape):
    """Small values, negative ones and zeros among them."""
    values = RNG.integers(-2, 3, shape)
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return (values + 1j * RNG.integers(-2, 3, shape)).astype(dtype)
    return (abs(values) if dtype.kind in "bu" else values).astype(dtype)


def close(actual, expected, dtype=None):
    dtype = np.dtype(dtype or expected.dtype)
    assert actual.dtype == dtype
    assert np.shape(actual) == np.shape(expected)
    tolerance = TOLERANCES.get(dtype.name, 1e-12)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    np.testing.assert_allclose(
        np.asarray(actual).astype(wide), np.asarray(expected).astype(wide), tolerance, tolerance
    )


def hide(shape, what):
    """The shape as a placeholder has it of which less is known."""
    return {"nothing": shape, "lengths": (None,) * len(shape), "rank": None}[what]


def placeholders(arrays, what):
    return [
        nbta.placeholder(array.dtype, hide(array.shape, what), name=f"x{i}")
        for i, array in enumerate(arrays)
    ]


def in_graph(function, arrays, what):
    """Tensor and value of a function of placeholders."""
    with nbta.Graph().as_default() as g:
        inputs = placeholders(arrays, what)
        result = function(*inputs)
    return result, nbta.Session(g).run(result, dict(zip(inputs, arrays, strict=True)))


def same_everywhere(function, *arrays, hidden=HIDDEN):
    """The eager value, after graphs gave the same and knew its dtype and shape."""
    value = function(*arrays)
    for what in hidden:
        tensor, found = in_graph(function, arrays, what)
        assert tensor.dtype == value.dtype
        assert shapes.compatible(tensor.shape, np.shape(value))
        assert what != "nothing" or tensor.shape == np.shape(value)
        close(np.asarray(found), np.asarray(value))
    return value


def gradient(function, arrays, what, order=1):
    """Of a weighted sum of the function, once or of its own weighted sum again."""
    with nbta.Graph().as_default() as g:
        inputs = placeholders(arrays, what)
        found = [function(*inputs)]
        for _ in range(order):
            total = 0.0
            for y in found:
                ones = nbta.ones_like(nbta.reshape(y, (-1,)))
                weights = nbta.reshape(reductions.cumsum(ones) / 7.0, nbta.shape(y))
                total = total + reductions.sum(y * weights)
            found = nbta.gradients(total, inputs, unconnected="zero")
    return nbta.Session(g).run(found, dict(zip(inputs, arrays, strict=True)))


def gradient_of_real(function, arrays):
    """Of the sum of the real part."""
    with nbta.Graph().as_default() as g:
        inputs = placeholders(arrays, "nothing")
        found = nbta.gradients(reductions.sum(nbta.real(function(*inputs))), inputs)
    return nbta.Session(g).run(found, dict(zip(inputs, arrays, strict=True)))


def differentiable(function, *arrays, hidden=("lengths",)):
    """Gradients against differences, and with less known of the shapes."""
    arrays = tuple(np.asarray(array) for array in arrays)
    check_grads(function, arrays, order=2)
    for order in (1, 2):
        expected = gradient(function, arrays, "nothing", order)
        for what in hidden:
            for one, other in zip(expected, gradient(function, arrays, what, order), strict=True):
                np.testing.assert_allclose(other, one, 1e-9, 1e-9)


def values(*shape):
    return RNG.normal(size=shape)


@contextmanager
def invalid(reason, match):
    with pytest.raises(nbta.InvalidArgumentError, match=match) as caught:
        yield
    assert caught.value.reason == reason


# Reductions


@pytest.mark.smoke_every(5)
@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["sum", "prod", "mean"])
def test_totals(name, dtype):
    each(product(AXES, [False, True]), lambda case: check_total(name, dtype, *case[0], case[1]))


def check_total(name, dtype, shape, axis, keepdims):
    x = sample(dtype, shape)

    def total(x):
        return getattr(nbta, name)(x, axis, keepdims)

    hidden = HIDDEN if dtype in ("int32", "float32") else ["nothing"]
    result = same_everywhere(total, x, hidden=hidden)
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x
    expected = getattr(np, name)(wide, axis=axis, keepdims=keepdims)
    close(result, expected, x.dtype if wide is not x else expected.dtype)


@pytest.mark.smoke_every(5)
@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if "complex" not in str(dtype)])
@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes(name, dtype):
    each(product(AXES, [False, True]), lambda case: check_extreme(name, dtype, *case[0], case[1]))


def check_extreme(name, dtype, shape, axis, keepdims):
    x = sample(dtype, shape)
    expected = getattr(np, name)(x, axis=axis, keepdims=keepdims)
    hidden = HIDDEN if dtype in ("int32", "float32") else ["nothing"]

    def extreme(x):
        return getattr(nbta, name)(x, axis, keepdims)

    close(same_everywhere(extreme, x, hidden=hidden), expected)


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if "complex" not in str(dtype)])
@pytest.mark.parametrize(("shape", "axis"), [((), None), ((4,), -1), ((2, 3), 0), ((2, 3), None)])
def test_argmax(dtype, shape, axis):
    x = sample(dtype, shape)
    result = same_everywhere(lambda x: reductions.argmax(x, axis), x)
    close(result, np.argmax(x, axis), np.int64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "axis"), [((), None), ((4,), -1), ((2, 3), 0), ((2, 3), None), ((0, 3), 1)]
)
def test_cumsum(dtype, shape, axis):
    x = sample(dtype, shape)
    close(same_everywhere(lambda x: reductions.cumsum(x, axis), x), np.cumsum(x, axis))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "axis"), AXES[:9])
@pytest.mark.parametrize("dtype", ["int32", "float16", ml_dtypes.bfloat16, "float32", "float64"])
def test_logsumexp(dtype, shape, axis, keepdims):
    x = sample(dtype, shape)
    wide = x.astype(np.float64)
    expected = np.log(np.sum(np.exp(wide), axis=axis, keepdims=keepdims))
    result = same_everywhere(lambda x: softmax.logsumexp(x, axis, keepdims), x)
    close(result, expected, np.float64 if dtype == "int32" else dtype)


def test_logsumexp_of_extreme_values():
    inf = math.inf
    assert softmax.logsumexp([-inf, -inf]) == -inf
    assert softmax.logsumexp([]) == -inf
    assert softmax.logsumexp([inf, 1.0]) == inf
    assert softmax.logsumexp([inf, -inf]) == inf
    assert math.isnan(softmax.logsumexp([inf, math.nan]))
    assert softmax.logsumexp([-inf, 3.0]) == 3
    assert softmax.logsumexp(np.float32([1e30, 1.0])) == np.float32(1e30)
    close(softmax.logsumexp([-1000.0, -1000.0]), np.float64(-1000 + math.log(2)))


@pytest.mark.smoke_every(5)
@pytest.mark.parametrize("dtype", ["int32", "float16", ml_dtypes.bfloat16, "float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((4,), -1), ((2, 3), 0), ((2, 3), (0, 1)), ((2, 3), None), ((0, 3), 0)]
)
def test_softmax(dtype, shape, axis):
    x = sample(dtype, shape)
    wide = np.exp(x.astype(np.float64))
    expected = wide / np.sum(wide, axis=axis, keepdims=True)
    dtype = np.float64 if dtype == "int32" else dtype
    close(same_everywhere(lambda x: softmax.softmax(x, axis), x), expected, dtype)
    logarithm = same_everywhere(lambda x: softmax.log_softmax(x, axis), x)
    close(logarithm, np.log(expected), dtype)


def test_softmax_of_extreme_values():
    x = np.array([[1000.0, 0.0], [-1000.0, -math.inf]])
    np.testing.assert_array_equal(softmax.softmax(x), [[1, 0], [1, 0]])
    np.testing.assert_array_equal(softmax.log_softmax(x), [[0, -1000], [0, -math.inf]])


def test_half_precision_is_added_up_in_float32():
    ones = np.ones(3000, np.float16)
    assert reductions.sum(ones.reshape(3000, 1), axis=0)[0] == 3000
    assert reductions.sum(ones.astype(ml_dtypes.bfloat16)) == 3008  # the nearest that there is
    assert reductions.mean(np.full(4, 60000, np.float16)) == 60000


def test_recurrences():
    x = sample("float64", (3, 4))
    before = same_everywhere(lambda x: reductions.exclusive_cumprod(x, 0), x)
    np.testing.assert_array_equal(before, np.cumprod(np.vstack([np.ones((1, 4)), x[:-1]]), 0))
    after = reductions.exclusive_cumprod(x, -1, reverse=True)
    np.testing.assert_array_equal(after[:, -3], x[:, -2] * x[:, -1])
    result = same_everywhere(lambda a, b: reductions.linear_recurrence(a, b, 0), x, x)
    np.testing.assert_array_equal(result[2], x[1] * x[0] + x[1])
    assert reductions.linear_recurrence(np.ones(0), np.ones(0)).shape == (0,)


def test_what_is_no_axis():
    x = np.ones((2, 3))
    with invalid("axis", r"no axis 2 in rank 2, shape \(2, 3\)"):
        reductions.sum(x, 2)
    with invalid("axis", "no axis -3 in rank 2"):
        reductions.max(x, (0, -3))
    with invalid("axis", "no axis 0 in rank 0.*scalar"):
        reductions.mean(1.0, 0)
    with invalid("axis", "twice"):
        reductions.prod(x, (1, -1))
    with invalid("axis", "must be an integer"):
        reductions.sum(x, 1.5)
    with invalid("axis", "not one axis"):
        reductions.argmax(x, (0, 1))
    with invalid("axis", "no axis 5 in rank 2"):
        reductions.cumsum(x, 5)
    with invalid("axis", "not one axis"):
        reductions.exclusive_cumprod(x, None)
    with nbta.Graph().as_default(), invalid("axis", r"no axis 2 in rank 2, shape \(\?, 3\)"):
        softmax.softmax(nbta.placeholder("float32", (None, 3)), 2)


def test_an_axis_that_only_a_run_can_refuse():
    with pytest.raises(nbta.InvalidArgumentError, match="axis 3"):
        in_graph(lambda x: reductions.sum(x, 3), [np.ones((2, 2))], "rank")


@pytest.mark.parametrize("what", HIDDEN)
@pytest.mark.parametrize("name", ["max", "min", "argmax"])
def test_the_greatest_of_nothing(name, what):
    function = getattr(nbta, name)
    with pytest.raises(nbta.InvalidArgumentError, match=r"axis 0 of shape \(0, 3\) has length 0"):
        in_graph(lambda x: function(x, 0), [np.ones((0, 3))], what)


@pytest.mark.parametrize("name", ["max", "min", "argmax", "logsumexp", "softmax", "log_softmax"])
def test_complex_numbers_have_no_order(name):
    with pytest.raises(nbta.InvalidArgumentError, match="order"):
        getattr(nbta, name)([1j, 2.0])


def test_text_has_no_sum():
    with pytest.raises(nbta.InvalidArgumentError, match="numbers"):
        reductions.sum(np.array(["a"]))


def test_attributes_can_be_keys():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float32", (2, 3))
        assert reductions.sum(x, [-1, 0]).op.attrs == {"axis": (0, 1), "keepdims": False}
        hash(tuple(reductions.max(x, 1).op.attrs.items()))


def test_numpys_functions_and_methods():
    x = values(2, 3)
    for function in (np.sum, np.mean, np.max, np.min, np.prod, np.argmax, np.cumsum):
        same_everywhere(lambda x, function=function: function(x, 1), x)
        method = function.__name__
        same_everywhere(lambda x, method=method: getattr(x, method)(1), x)


@pytest.mark.smoke_every(4)
@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((), None), ((3,), 0), ((2, 3), None), ((2, 3), -1), ((2, 3, 2), (0, 2)), ((2, 3, 2), (-2,))],
)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "logsumexp"])
def test_gradients_of_reductions(name, shape, axis, keepdims):
    function = getattr(nbta, name)
    several = axis is not None and np.size(axis) > 1 and min(axis) >= 0
    hidden = HIDDEN[1:] if axis is None or not several else ["lengths"]
    differentiable(lambda x: function(x, axis, keepdims), values(*shape), hidden=hidden)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("zeros", [(), (1,), (0, 4), (1, 4), (0, 1, 2, 3, 4, 5)])
def test_gradient_of_a_product_with_zeros(zeros, axis):
    x = values(2, 3)
    x.flat[list(zeros)] = 0
    differentiable(lambda x: reductions.prod(x, axis), x)


@pytest.mark.smoke
def test_equal_maxima_share_the_gradient():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]])
    (dx,) = gradient_of_real(lambda x: reductions.max(x, keepdims=True), [x])
    np.testing.assert_array_equal(dx, [[0, 0.5, 0.5], [0, 0, 0]])
    (dx,) = gradient_of_real(lambda x: reductions.min(x, 1), [x])
    np.testing.assert_array_equal(dx, [[1, 0, 0], [0, 1, 0]])


@pytest.mark.smoke
@pytest.mark.parametrize(("shape", "axis"), [((3,), 0), ((2, 3), 0), ((2, 3), None)])
def test_gradients_of_what_goes_along_an_axis(shape, axis):
    differentiable(lambda x: reductions.cumsum(x, axis), values(*shape), hidden=HIDDEN[1:])
    differentiable(lambda x: softmax.softmax(x, axis), values(*shape), hidden=HIDDEN[1:])
    differentiable(lambda x: softmax.log_softmax(x, axis), values(*shape), hidden=HIDDEN[1:])


@pytest.mark.smoke
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_recurrences(reverse):
    x = values(2, 3)
    x[0, 1] = 0
    differentiable(lambda x: reductions.exclusive_cumprod(x, 1, reverse), x)
    differentiable(lambda a, b: reductions.linear_recurrence(a, b, 1, reverse), x, values(2, 3))


def test_gradients_of_logsumexp_with_infinities():
    x = np.array([[-math.inf, -math.inf], [-math.inf, 1.0]])
    for order in (1, 2):
        (dx,) = gradient(lambda x: softmax.logsumexp(x, 1), [x], "nothing", order)
        assert np.isfinite(dx).all()
    (dx,) = gradient_of_real(lambda x: softmax.logsumexp(x, 1), [x])
    np.testing.assert_array_equal(dx, [[0, 0], [0, 1]])


def test_gradients_with_nothing_in_them():
    for name in ("sum", "mean", "prod", "logsumexp"):
        function = getattr(nbta, name)
        for what in HIDDEN[:2]:
            (dx,) = gradient(lambda x, f=function: f(x, 0), [np.ones((0, 3))], what)
            assert dx.shape == (0, 3)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "cumsum", "max", "softmax", "logsumexp"])
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32"])
def test_gradients_keep_the_precision(name, dtype):
    x = np.ones((2, 3), dtype)
    for what in HIDDEN:
        with nbta.Graph().as_default():
            (x_,) = placeholders([x], what)
            (dx,) = nbta.gradients(getattr(nbta, name)(x_ * x_, 1), [x_])
            (ddx,) = nbta.gradients(dx, [x_])
        assert dx.dtype == ddx.dtype == x.dtype


def along(function, z, *others):
    """The derivative of the real part of a function, along the real and the imaginary axis."""
    (dz, *_) = gradient_of_real(function, (z, *others))
    step, found = 1e-6, np.zeros_like(z)
    for place in np.ndindex(z.shape):
        for unit in (1, 1j):
            shift = np.zeros_like(z)
            shift[place] = step * unit
            above, below = (function(z + s, *others).real.sum() for s in (shift, -shift))
            found[place] += unit * (above - below) / (2 * step)
    np.testing.assert_allclose(dz, found, 1e-6, 1e-6)


def test_complex_gradients():
    z, w = values(3, 3) + 1j * values(3, 3), values(3, 3) + 1j * values(3, 3)
    along(lambda z: reductions.sum(z * z, 0), z)
    along(lambda z: reductions.mean(z * z, 0), z)
    along(lambda z: reductions.prod(z, 0), z)
    along(lambda z: reductions.prod(z), z)
    along(lambda z: reductions.cumsum(z * z, 0), z)
    along(linalg.matmul, z, w)
    along(lambda z, w: linalg.matmul(w, z), z, w)
    along(lambda z, w: linalg.matmul(w, z), z[0], w)
    along(lambda z, w: linalg.einsum("ij,kj->ik", w, z), z, w)
    along(lambda z, w: linalg.outer(z, w), z[0], w[0])
    along(linalg.triangular_solve, z + 3 * np.eye(3), w)
    along(lambda z, w: linalg.triangular_solve(z, w, False, True), z + 3 * np.eye(3), w)
    along(lambda z, w: linalg.triangular_solve(w, z), z, w)
    hermitian = z @ z.conj().T + np.eye(3)
    along(lambda a: linalg.cholesky(a) * linalg.cholesky(a), hermitian)


# Linear algebra

PRODUCTS = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
    ((2, 3), (5, 3, 4)), ((5, 2, 3), (5, 3, 4)), ((1, 2, 3), (5, 3, 1)), ((6, 1, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)), ((3,), (5, 3, 2)), ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((0,), (0,)),
    ((4, 2, 0), (0, 3)),
]  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_matmul(dtype, left, right):
    a, b = sample(dtype, left), sample(dtype, right)
    hidden = HIDDEN if dtype in ("int32", "float32") else ["nothing"]
    close(same_everywhere(linalg.matmul, a, b, hidden=hidden), np.matmul(a, b), dtype)


def test_matmul_of_several_dtypes():
    a, b = np.ones((2, 2), np.float32), np.ones((2, 2), np.int8)
    close(same_everywhere(linalg.matmul, a, b), np.matmul(a, b))
    assert linalg.matmul([1, 2], [3, 4]) == 11


def test_what_does_not_multiply():
    with invalid("matmul", r"shapes \(2, 3\) and \(2, 3\).*inner lengths 3 and 2"):
        linalg.matmul(np.ones((2, 3)), np.ones((2, 3)))
    with invalid("matmul", r"shapes \(\) and \(2,\).*scalars"):
        linalg.matmul(1.0, [1.0, 2.0])
    with invalid("matmul", r"shapes \(2, 3, 3\) and \(4, 3, 3\).*broadcast"):
        linalg.matmul(np.ones((2, 3, 3)), np.ones((4, 3, 3)))
    with nbta.Graph().as_default(), invalid("matmul", r"shapes \(\?, 3\) and \(2, 4\)"):
        linalg.matmul(nbta.placeholder("float64", (None, 3)), np.ones((2, 4)))


@pytest.mark.parametrize(
    ("left", "right"),
    [((), (2,)), ((2, 3), ()), *PRODUCTS[:5], ((5, 2, 3), (4, 3, 6)), ((2, 3), (4, 3, 6))],
)
def test_dot(left, right):
    a, b = values(*left), values(*right)
    close(same_everywhere(linalg.dot, a, b, hidden=HIDDEN[:2]), np.asarray(np.dot(a, b)))


def test_dot_needs_ranks():
    with nbta.Graph().as_default(), invalid("rank", "rank"):
        linalg.dot(nbta.placeholder("float64"), np.ones(3))


def test_outer():
    a, b = sample("int32", (2, 3)), sample("float32", (4,))
    close(same_everywhere(linalg.outer, a, b), np.outer(a, b))
    close(linalg.outer(2, [1, 3]), np.array([[2, 6]]))


EINSUMS = [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ki", (2, 3), (4, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)), ("bij,bjk->ikb", (5, 2, 3), (5, 3, 4)),
    ("ij,ij->ij", (2, 3), (2, 3)), ("ij,ij->", (2, 3), (2, 3)), ("i,j->ji", (2,), (3,)),
    ("ij,k->", (2, 3), (4,)), ("ijk,k->j", (2, 3, 4), (4,)), (",i->i", (), (3,)),
    ("ij,jk -> i", (2, 3), (3, 4)), ("ij,j->i", (2, 0), (0,)), ("i,i", (3,), (3,)),
    ("Ba,aC->BC", (2, 3), (3, 4)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)),
    ("ba", (2, 3)), ("->", ()), ("ijk->ki", (2, 3, 4)), ("ij->i", (2, 0)),
    ("i,i,i->", (3,), (3,), (3,)), ("i,ij,j", (2,), (2, 3), (3,)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("ij,jk,kl,l->i", (2, 3), (3, 4), (4, 2), (2,)),
    ("i,j,k->kij", (2,), (3,), (2,)), ("bi,bij,bj->b", (4, 2), (4, 2, 3), (4, 3)),
    ("ij,k,l->jl", (2, 3), (4,), (2,)), (",i,->i", (), (3,), ()), ("i,i,ij->i", (2,), (2,), (2, 0)),
    ("a,ab,bc,cd,de->e", (2,), (2, 3), (3, 2), (2, 3), (3, 2)),
]  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float16", "float32", "complex128"])
@pytest.mark.parametrize("case", EINSUMS, ids=str)
def test_einsum(case, dtype):
    spec, *dimensions = case
    arrays = [sample(dtype, shape) for shape in dimensions]
    result = same_everywhere(lambda *arrays: linalg.einsum(spec, *arrays), *arrays)
    close(np.asarray(result), np.asarray(np.einsum(spec, *arrays)), dtype)


def test_wrong_einsums():
    a = np.ones((2, 3))
    for spec, match in [
        ("i...,jk->ij", r"'\.\.\.' in operands and none in the result"),
        ("...ijk,jk->i", r"'\.\.\.ijk' for an operand of rank 2"),
        ("i.,jk->ij", "'...', ',' and '->' only"),
        ("......,jk->jk", "'...', ',' and '->' only"),
        ("ii,jk->ij", r"'i' has the lengths 2 and 3 in \(2, 3\)"),
        ("ij->i", "is for 1 operands, and there are 2"),
        ("ij,jk->ii", "each once"),
        ("ij,jk->z", "each once"),
        ("ij,k->ik", r"'k' names 1 axes of shape \(2, 3\)"),
        ("ij,jk->ik", r"'j' has the lengths 3 and 2 in \(2, 3\) and \(2, 3\)"),
        (3, "not a string"),
    ]:
        with pytest.raises(nbta.InvalidArgumentError, match=match):
            linalg.einsum(spec, a, a)
    for arrays, match in [((), "there are 0"), ((a, a), "there are 2"), ((a,) * 4, "there are 4")]:
        with pytest.raises(nbta.InvalidArgumentError, match=f"is for 3 operands, and {match}"):
            linalg.einsum("ij,ij,ij->", *arrays)
    with pytest.raises(nbta.InvalidArgumentError, match=r"Einsum: .*'j' has the lengths 3 and 2"):
        linalg.einsum("ij,ij,j->", a, a, np.ones(2))
    with pytest.raises(nbta.InvalidArgumentError, match="'j' has the lengths"):
        in_graph(lambda a, b: linalg.einsum("ij,jk", a, b), [a, np.ones((1, 3))], "rank")


#: With axes that have no letters, and letters that one operand has several times.
ELLIPSES = [
    ("...ij,jk", (2, 3, 4), (4, 2)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("i...,i...->...", (3, 2), (3, 2)), ("...i,...i->...", (4, 1, 3), (4, 2, 3)), ("ii->i", (3, 3)),
    ("ii", (3, 3)), ("...ii->...i", (2, 3, 3)), ("...ii->...", (2, 3, 3)), ("iii->", (2, 2, 2)),
    ("iij,ij->j", (3, 3, 2), (3, 2)), ("...,...", (3,), (2, 3)), ("...", (2, 3)), ("...->...", ()),
    ("b...,...->b...", (2, 3), (3,)), ("...a,...b,ab", (2, 3), (1, 4), (3, 4)),
    ("ij...,jk...->ik...", (2, 3, 4), (3, 2, 4)), ("i...->...", (2, 0)),
    ("b...i,...", (2, 3, 4), ()),
]  # fmt: skip


@pytest.mark.parametrize("case", ELLIPSES, ids=str)
def test_einsum_of_axes_without_letters(case):
    spec, *dimensions = case
    arrays = [values(*shape) for shape in dimensions]
    expected = np.einsum(spec, *arrays)
    for compiled in (False, True):
        run = nbta.function(
            lambda *arrays: np.einsum(spec, *arrays, optimize=True), compiled=compiled
        )
        found = run(*arrays)
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, 1e-13, 1e-13)
    assert "run in Python" not in run.explain()
    check_grads(lambda *arrays: linalg.einsum(spec, *arrays), arrays)


def test_einsum_of_lists_of_axes():
    a, b = values(2, 3), values(4, 3, 2)
    for given in (
        (a, [0, 1], b, [2, 1, 0], [2, 0]), (a, [27, 3], b, [Ellipsis, 3, 27]), (a, [1, 0]),
        (b, [Ellipsis, 5, 2], [5, Ellipsis]),
    ):  # fmt: skip
        np.testing.assert_allclose(linalg.einsum(*given), np.einsum(*given))
    with pytest.raises(nbta.InvalidArgumentError, match="not a string"):
        linalg.einsum(a, [0.5, 1])


def test_einsum_of_axes_of_unknown_lengths():
    with nbta.Graph().as_default() as g:
        x, y = nbta.placeholder("float64", (None, None)), nbta.placeholder("float64", (None,))
        found = linalg.einsum("ii", x), linalg.einsum("...i,i", x, y)
        with pytest.raises(nbta.InvalidArgumentError, match="lengths are known only in the run"):
            linalg.einsum("...i,...i", x, x)
        with pytest.raises(nbta.InvalidArgumentError, match="operand of an unknown rank"):
            linalg.einsum("...i->i...", nbta.placeholder("float64"))
    a, v = values(3, 3), values(3)
    one, other = nbta.Session(g).run(found, {x: a, y: v})
    np.testing.assert_allclose(one, np.trace(a))
    np.testing.assert_allclose(other, a @ v)
    with pytest.raises(nbta.InvalidArgumentError, match="'i' has two lengths in 'ii'"):
        nbta.Session(g).run(found[0], {x: a[:2], y: v})


def test_three_operands_and_more_are_multiplied_in_the_cheapest_order():
    with nbta.Graph().as_default() as g:
        a, b, v = (nbta.placeholder("float64", shape) for shape in [(9, 9), (9, 9), (9,)])
        linalg.einsum("ij,jk,k->i", a, b, v)
    assert [op.outputs[0].shape for op in g.operations if op.type == "Einsum"] == [(9,), (9,)]


def test_half_precision_is_rounded_once_in_an_einsum_of_three():
    x = np.float16([0.1, 0.3, 0.7])
    found = linalg.einsum("i,i,i->", x, x, x)
    assert (found.dtype, found) == (np.float16, np.float16(np.sum(np.float32(x) ** 3)))


def test_axes_in_another_order():
    x = sample("int32", (2, 3, 4))
    for axes in (None, (0, 1, 2), (1, 2, 0), (-1, 0, -2)):
        close(same_everywhere(lambda x, a=axes: linalg.transpose(x, a), x), np.transpose(x, axes))
    for a, b in [(0, 1), (-1, -2), (0, -1), (1, 1)]:
        result = same_everywhere(lambda x, a=a, b=b: linalg.swapaxes(x, a, b), x)
        close(result, np.swapaxes(x, a, b))
    close(linalg.transpose(np.float64(3.0)), np.asarray(3.0))
    with invalid("axis", "twice"):
        linalg.transpose(x, (0, 0, 1))
    with invalid("axis", r"\(0, 1\) has 2 axes, and shape \(2, 3, 4\) 3"):
        linalg.transpose(x, (0, 1))
    with invalid("axis", "no axis 3 in rank 3"):
        linalg.swapaxes(x, 0, 3)


def test_lower_triangles():
    x = sample("float32", (2, 3, 4))
    for k in (-1, 0, 2):
        close(same_everywhere(lambda x, k=k: linalg.tril(x, k), x), np.tril(x, k))
    with invalid("rank", r"shape \(3,\) has no matrix"):
        linalg.tril(np.ones(3))


def definite(*shape):
    a = values(*shape)
    return a @ np.swapaxes(a, -1, -2) + np.eye(shape[-1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 3), (2, 3, 3), (1, 1), (0, 0), (0, 2, 2)])
def test_cholesky(shape, dtype):
    a = definite(*shape).astype(dtype)
    wide = a.astype(np.float32) if dtype == "float16" else a
    close(same_everywhere(linalg.cholesky, a), np.linalg.cholesky(wide), dtype)


def test_what_has_no_cholesky_factor():
    with invalid("cholesky", "not positive definite"):
        linalg.cholesky(-np.eye(2))
    with invalid("shape", "square"):
        linalg.cholesky(np.ones((2, 3)))
    with invalid("rank", "matrix"):
        linalg.cholesky(np.ones(2))


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex128"])
def test_triangular_solve(dtype, lower, transpose):
    tolerance = 1e-2 if dtype == "float16" else 1e-4
    for left, right in [
        ((3, 3), (3,)), ((3, 3), (3, 2)), ((4, 3, 3), (3, 2)), ((3, 3), (4, 3, 2)),
        ((4, 3, 3), (3,)), ((2, 1, 3, 3), (4, 3, 2)), ((0, 0), (0, 2)), ((3, 3), (3, 0)),
    ]:  # fmt: skip
        a = (values(*left) / 4 + np.eye(left[-1])).astype(dtype)
        b = values(*right).astype(dtype)
        hidden = HIDDEN[:2] if dtype == "float64" else ["nothing"]
        x = same_everywhere(
            lambda a, b: linalg.triangular_solve(a, b, lower, transpose), a, b, hidden=hidden
        )
        assert x.dtype == dtype
        triangle = np.tril(a) if lower else np.triu(a)
        triangle = np.swapaxes(triangle, -1, -2) if transpose else triangle
        if len(right) == 1:
            x, b = x[..., None], b[:, None]
        product = triangle.astype(np.complex128) @ x
        np.testing.assert_allclose(product, np.broadcast_to(b, product.shape), 0, tolerance)


def test_triangular_solve_like_scipy():
    a, b = values(3, 3) + 3 * np.eye(3), values(3, 2)
    expected = scipy.linalg.solve_triangular(a, b, lower=True)
    np.testing.assert_allclose(linalg.triangular_solve(a, b), expected)
    a[np.triu_indices(3, 1)] = math.nan
    np.testing.assert_allclose(linalg.triangular_solve(a, b), expected)


def test_what_cannot_be_solved():
    a = np.diag([1.0, 0.0])
    with invalid("singular", "element 1 of the diagonal is 0"):
        linalg.triangular_solve(a, [1.0, 2.0])
    with invalid("singular", r"element 1 of the diagonal of matrix \(1,\) is 0"):
        linalg.triangular_solve(np.stack([np.eye(2), a]), np.eye(2))
    with invalid("shape", r"\(2, 2\) does not act on b of \(3, 1\)"):
        linalg.triangular_solve(a, np.ones(3))
    with invalid("shape", "square"):
        linalg.triangular_solve(np.ones((2, 3)), np.ones(3))
    with nbta.Graph().as_default(), invalid("rank", "rank must be known"):
        linalg.triangular_solve(a, nbta.placeholder("float64"))


@pytest.mark.smoke_every(4)
@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_gradients_of_matmul(left, right):
    differentiable(linalg.matmul, values(*left), values(*right))


def test_the_gradient_of_a_product_of_matrices_is_two_products():
    with nbta.Graph().as_default() as g:
        a, b = nbta.placeholder("float32", (2, 3)), nbta.placeholder("float32", (3, 4))
        c, dc = linalg.matmul(a, b), nbta.placeholder("float32", (2, 4))
        before = len(g.operations)
        da, db = c.op.record.gradient(c.op, dc)
    types = sorted(op.type for op in g.operations[before:])
    assert types == ["MatMul", "MatMul", "Transpose", "Transpose"]
    assert (da.shape, db.shape) == ((2, 3), (3, 4))
    assert da.dtype == db.dtype == np.float32


@pytest.mark.parametrize("left", [(3,), (2, 3), (4, 2, 3)])
@pytest.mark.parametrize("right", [(3,), (3, 2), (4, 3, 2), (1, 3, 2)])
def test_the_gradient_of_matmul_where_the_run_tells_the_ranks(left, right):
    with nbta.Graph().as_default() as g:
        a, b = nbta.placeholder("float64"), nbta.placeholder("float64")
        ranked = nbta.placeholder("float64", left), nbta.placeholder("float64", right)
        found = nbta.gradients(linalg.matmul(a, b), [a, b])
        expected = nbta.gradients(linalg.matmul(*ranked), ranked)
    x, y = values(*left), values(*right)
    feeds = {a: x, b: y, ranked[0]: x, ranked[1]: y}
    for grad, want in zip(*nbta.Session(g).run([found, expected], feeds), strict=True):
        np.testing.assert_allclose(grad, want)


@pytest.mark.smoke_every(3)
@pytest.mark.parametrize(
    ("left", "right"),
    [((), (2,)), ((2, 3), ()), ((3,), (3,)), ((2, 3), (3, 2)), ((2, 2, 3), (2, 3, 2))],
)
def test_gradients_of_dot(left, right):
    differentiable(linalg.dot, values(*left), values(*right))


@pytest.mark.smoke_every(5)
@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("case", EINSUMS, ids=str)
def test_gradients_of_einsum(case):
    spec, *dimensions = case
    arrays = [values(*shape) for shape in dimensions]
    differentiable(lambda *arrays: linalg.einsum(spec, *arrays), *arrays, hidden=HIDDEN[1:])


def test_gradients_of_rearrangements():
    x = values(2, 3, 2)
    differentiable(lambda x: linalg.transpose(x), x, hidden=HIDDEN[1:])
    differentiable(lambda x: linalg.transpose(x, (1, 2, 0)) * 2, x, hidden=HIDDEN[1:])
    differentiable(lambda x: linalg.swapaxes(x, 0, -1), x, hidden=HIDDEN[1:])
    differentiable(lambda x: linalg.tril(x, 1), x, hidden=HIDDEN[1:])
    differentiable(linalg.outer, values(2), values(3), hidden=HIDDEN[1:])
    differentiable(linalg.outer, values(2, 2), values(3))


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 3, 3)])
def test_gradients_of_cholesky(shape):
    differentiable(linalg.cholesky, definite(*shape))
    gradient(linalg.cholesky, [definite(*shape)], "rank")


@pytest.mark.smoke_every(5)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(
    ("left", "right"),
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)), ((2, 2, 2), (2,))],
)
def test_gradients_of_triangular_solve(left, right, lower, transpose):
    a = values(*left) / 2 + 2 * np.eye(left[-1])
    differentiable(lambda a, b: linalg.triangular_solve(a, b, lower, transpose), a, values(*right))


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("rows", [1, 4, 31, 32, 128, 129])
@pytest.mark.parametrize("columns", [1, 33, 300])
def test_small_systems_are_solved_on_one_thread(monkeypatch, dtype, rows, columns):
    """OpenBLAS has a thread for itself where there are less than 1024 results."""
    sizes, solver = [], linalg._solver

    def counting(dtype):
        return lambda one, a, b, **flags: (sizes.append(b.size), solver(dtype)(one, a, b, **flags))[
            1
        ]

    monkeypatch.setattr(linalg, "_solver", counting)
    random = np.random.default_rng(0)
    a = np.tril(random.normal(size=(rows, rows)) + 2 * rows * np.eye(rows)).astype(dtype)
    b = random.normal(size=(rows, columns)).astype(dtype)
    for lower, transpose in [(True, False), (True, True), (False, False), (False, True)]:
        matrix = a if lower else a.T
        x = linalg.triangular_solve(matrix, b, lower, transpose)
        np.testing.assert_allclose((matrix.T if transpose else matrix) @ x, b, atol=1e-4)
    assert max(sizes) < 1024 or rows > 128
    assert sum(sizes) == 4 * rows * columns


def test_operators():
    a, b = values(2, 3), values(3, 2)
    assert OF_NUMPY["einsum"][0] is linalg.einsum
    same_everywhere(lambda a, b: a @ b, a, b)
    same_everywhere(lambda a: a @ b, a)
    same_everywhere(lambda b: a @ b, b)
    same_everywhere(lambda a: a.T, a)
    same_everywhere(lambda a: np.einsum("ij->j", a), a)
    same_everywhere(lambda a, b: np.einsum("ij,jk,ij->k", a, b, a), a, b)
    same_everywhere(lambda a: np.transpose(a, (1, 0)), a)
    same_everywhere(lambda a, b: np.dot(a, b), a, b, hidden=HIDDEN[:2])
    same_everywhere(lambda a, b: np.outer(a, b), a, b)
