"""float32 stays float32 where it meets numbers of Python: every function, in every way."""

import numpy as np
import pytest
from fuzz.ways import in_python
from item_by_item import OF_INTEGERS, OF_ONE, OF_TWO

import nbta
from nbta.graph.operation import Spec
from nbta.ops.functions import __all__ as functions
from nbta.structure import leaves

X = np.array([0.5, 1.25, 0.75], np.float32)
S = X[0]  # a scalar
M = np.array([[2.0, 0.5, 0.25], [0.5, 1.5, 0.125], [0.25, 0.125, 1.0]], np.float32)


def _stays(function):
    return function.record.infer(Spec(X.dtype, ())).dtype == np.float32


#: Calls with x of float32, a vector, and numbers of Python where another value may stand.
VECTOR = {
    **{name: [f] for name, f in OF_ONE.items() if _stays(f)},
    **{
        name: [lambda x, f=f: f(x, 1.5), lambda x, f=f: f(2, x)]
        for name, f in OF_TWO.items()
        if _stays(f)
    },
    **{
        name: [getattr(nbta, name)]
        for name in (
            "angle", "average", "cummax", "cummin", "cumprod", "degrees", "diff", "ediff1d", "fix",
            "nan_to_num", "nancumprod", "nancumsum", "nanmax", "nanmean", "nanmin", "nanprod",
            "nanstd", "nansum", "nanvar", "norm", "ptp", "radians", "round", "sort", "std",
            "trapezoid", "var", "digamma", "i0", "i0e", "i1", "i1e", "j0", "j1", "lambertw",
            "y0", "y1", "k0", "k1", "k0e", "k1e",
            "log_sigmoid", "median", "nanmedian", "atleast_1d", "atleast_2d", "atleast_3d", "diag",
            "diagflat", "flipud", "gradient", "ravel",
        )
    },
    "abs": [nbta.abs],
    "add": [lambda x: nbta.add(x, 1.5), lambda x: nbta.add(2, x), lambda x: 1.5 + x],
    "add_item": [lambda x: nbta.add_item(x, 0, 1.5), lambda x: nbta.add_item(x, [0, 0], 2)],
    "add_n": [lambda x: nbta.add_n([x[0], 1.5, x[1], 2]), lambda x: nbta.add_n([0.5, x[0]])],
    "broadcast_to": [lambda x: nbta.broadcast_to(x, (2, 3))],
    "cast": [lambda x: nbta.cast(nbta.cast(x, "float64"), "float32")],
    "clip": [lambda x: nbta.clip(x, 0.6, 1.0), lambda x: nbta.clip(x, 0, 1)],
    "concatenate": [
        lambda x: nbta.concatenate([x, x * 2.0]),
    ],
    "conj": [nbta.conj],
    "cumsum": [nbta.cumsum],
    "divide": [lambda x: nbta.divide(x, 3), lambda x: nbta.divide(1.5, x), lambda x: 1 / x],
    "dot": [lambda x: nbta.dot(x, x), lambda x: nbta.dot(x, 2.0)],
    "dynamic_slice": [lambda x: nbta.dynamic_slice(x, [1], [2])],
    "dynamic_update_slice": [

        lambda x: nbta.dynamic_update_slice(x, x[:1] * 2.5, [1]),
    ],
    "einsum": [lambda x: nbta.einsum("i,i->i", x, x)],
    "exclusive_cumprod": [nbta.exclusive_cumprod],
    "expand_dims": [lambda x: nbta.expand_dims(x, 0)],
    "fill": [lambda x: nbta.fill([2], x[0])],
    "flip": [nbta.flip],
    "floor_divide": [lambda x: nbta.floor_divide(x, 0.3), lambda x: 2 // x],
    "betainc": [lambda x: nbta.betainc(2.0, 1.5, x / 4)],
    "betaincc": [lambda x: nbta.betaincc(2.0, 1.5, x / 4)],
    "betaincinv": [lambda x: nbta.betaincinv(2.0, 1.5, x / 4)],
    "betainccinv": [lambda x: nbta.betainccinv(2.0, 1.5, x / 4)],
    "expn": [lambda x: nbta.expn(2, x), lambda x: nbta.expn(0, x)],
    "gammaincinv": [lambda x: nbta.gammaincinv(2, x / 4)],
    "gammainccinv": [lambda x: nbta.gammainccinv(2.5, x / 4)],
    "gammainc": [lambda x: nbta.gammainc(2, x)],
    "gammaincc": [lambda x: nbta.gammaincc(2.5, x)],
    "gather": [lambda x: nbta.gather(x, [2, 0])],
    "getitem": [lambda x: nbta.getitem(x, 1), lambda x: x[1:]],
    "identity": [nbta.identity],
    "imag": [nbta.imag],
    "ldexp": [lambda x: nbta.ldexp(x, 2), lambda x: nbta.ldexp(x, np.array([1, 2, 3]))],
    "linear_recurrence": [lambda x: nbta.linear_recurrence(x, x * 0.5)],
    "log_softmax": [nbta.log_softmax],
    "logsumexp": [nbta.logsumexp],
    "max": [nbta.max],
    "maximum": [lambda x: nbta.maximum(x, 0.6), lambda x: nbta.maximum(1, x)],
    "mean": [nbta.mean, lambda x: nbta.mean(x, 0)],
    "min": [nbta.min],
    "minimum": [lambda x: nbta.minimum(x, 0.6), lambda x: nbta.minimum(1, x)],
    "mod": [lambda x: nbta.mod(x, 0.7), lambda x: 2 % x],
    "multiply": [lambda x: nbta.multiply(x, 1.5), lambda x: nbta.multiply(2, x), lambda x: 2.5 * x],
    "negative": [nbta.negative],
    "ones_like": [lambda x: nbta.ones_like(x) * x],
    "outer": [lambda x: nbta.outer(x, x)],
    "pad": [lambda x: nbta.pad(x, 1)],
    "polygamma": [lambda x: nbta.polygamma(0, x)],
    "append": [lambda x: nbta.append(x, x)],
    "at": [lambda x: nbta.at(x)[0].add(1.5), lambda x: nbta.at(x)[1:].mul(x[:1])],
    "array_split": [lambda x: nbta.array_split(x, 2)],
    "block": [lambda x: nbta.block([x, x])],
    "broadcast_arrays": [lambda x: nbta.broadcast_arrays(x, x[:1])],
    "choose": [lambda x: nbta.choose(np.array([0, 1, 0]), [x, x * 2.0])],
    "column_stack": [lambda x: nbta.column_stack([x, x])],
    "compress": [lambda x: nbta.compress([True, False, True], x)],
    "convolve": [lambda x: nbta.convolve(x, x)],
    "correlate": [lambda x: nbta.correlate(x, x)],
    "cross": [lambda x: nbta.cross(x, x[::-1])],
    "delete": [lambda x: nbta.delete(x, 1)],
    "dstack": [lambda x: nbta.dstack([x, x])],
    "extract": [lambda x: nbta.extract([True, False, True], x)],
    "hsplit": [lambda x: nbta.hsplit(x, 3)],
    "hstack": [lambda x: nbta.hstack([x, x])],
    "inner": [lambda x: nbta.inner(x, x)],
    "insert": [lambda x: nbta.insert(x, 1, 2.5)],
    "kron": [lambda x: nbta.kron(x, x)],
    "meshgrid": [lambda x: nbta.meshgrid(x, x)],
    "partition": [lambda x: nbta.partition(x, 1)],
    "put_along_axis": [lambda x: nbta.put_along_axis(x, np.array([2]), x[:1], 0)],
    "repeat": [lambda x: nbta.repeat(x, 2)],
    "resize": [lambda x: nbta.resize(x, (2, 3))],
    "roll": [lambda x: nbta.roll(x, 1)],
    "select": [lambda x: nbta.select([x > 1.0], [x * 2.0])],
    "tensordot": [lambda x: nbta.tensordot(x, x, 1)],
    "tile": [lambda x: nbta.tile(x, 2)],
    "unstack": [lambda x: nbta.unstack(x)],
    "vdot": [lambda x: nbta.vdot(x, x)],
    "vecdot": [lambda x: nbta.vecdot(x, x)],
    "vstack": [lambda x: nbta.vstack([x, x])],
    "polyval": [lambda x: nbta.polyval(x, x)],
    "irfft": [nbta.irfft],
    "toeplitz": [nbta.toeplitz],
    "linspace": [lambda x: nbta.linspace(x[0], x[1], 3)],
    "logspace": [lambda x: nbta.logspace(x[0], x[1], 3)],
    "percentile": [lambda x: nbta.percentile(x, 30)],
    "nanpercentile": [lambda x: nbta.nanpercentile(x, 30)],
    "quantile": [lambda x: nbta.quantile(x, 0.3)],
    "nanquantile": [lambda x: nbta.nanquantile(x, 0.3)],
    "power": [
        lambda x: nbta.power(x, 2), lambda x: nbta.power(x, 0.5), lambda x: nbta.power(1.5, x),
        lambda x: x**3, lambda x: 2**x, lambda x: x**-1.5,
    ],
    "prod": [nbta.prod],
    "real": [nbta.real],
    "reshape": [lambda x: nbta.reshape(x, (3, 1))],
    "scatter_add": [
        lambda x: nbta.scatter_add(x, [0, 0], 1.5),
    ],
    "set_item": [lambda x: nbta.set_item(x, 0, 1.5), lambda x: nbta.set_item(x, np.s_[1:], x[:1])],
    "slice": [lambda x: nbta.slice(x, [1], [2])],
    "softmax": [nbta.softmax],
    "split": [lambda x: nbta.split(x, 3)],
    "squeeze": [lambda x: nbta.squeeze(x[:1], axis=0)],
    "stack": [lambda x: nbta.stack([x, x]), lambda x: nbta.stack([x[0], 1.5, 2])],
    "stop_gradient": [nbta.stop_gradient],
    "subtract": [lambda x: nbta.subtract(x, 1.5), lambda x: 2 - x],
    "sum": [nbta.sum],
    "sum_to": [lambda x: nbta.sum_to(x, (1,))],
    "take": [lambda x: nbta.take(x, [2, 0])],
    "take_along_axis": [lambda x: nbta.take_along_axis(x, np.array([2, 0]), 0)],
    "transpose": [nbta.transpose],
    "where": [
        lambda x: nbta.where(x > 0.6, x, 0.0), lambda x: nbta.where(x > 1, 2, x),
        lambda x: nbta.where(True, x, 1.5),
    ],
    "zeros_like": [lambda x: nbta.zeros_like(x) + x],
    "zeta": [
        lambda x: nbta.zeta(x + 1.0), lambda x: nbta.zeta(x - 2.0), lambda x: nbta.zeta(2.5, x),
    ],
    "while_loop": [
        lambda x: nbta.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 0.5 + 1), (0, x))[1],
        lambda x: nbta.while_loop(lambda y: nbta.sum(y) < 9.5, lambda y: y * 1.5, x),
        lambda x: nbta.while_loop(
            lambda i, s, y: i < 3, lambda i, s, y: (i + 1, s * 0.5 + y[0], y * 0.5), (0, 1.0, x)
        )[1:],
    ],
    "scan": [
        lambda x: nbta.scan(lambda c, r: (c * 0.9 + r, 2 * c), x[0], x),
        lambda x: nbta.scan(lambda c, r: (c * 0.9 + r, 2 * c), x[0], x, checkpoint=2),
        lambda x: nbta.scan(lambda c, r: (c * 0.9 + r, 2 * c), 0.5, x),
        lambda x: nbta.scan(lambda c, r: ({"a": c["a"] + r}, 2 * r), {"a": 0.0}, x),
    ],
    "map_fn": [
        lambda x: nbta.map_fn(lambda r: r * 2.5 + 1, x),
        lambda x: nbta.map_fn(lambda r: r * 2.5 + 1, x, parallel_iterations=2),
    ],
    "foldl": [
        lambda x: nbta.foldl(lambda a, r: a * 0.5 + 2 * r, x),
        lambda x: nbta.foldl(lambda a, r: a * 0.5 + 2 * r, x, 0.0),
    ],
    "foldr": [lambda x: nbta.foldr(lambda a, r: a * 0.5 + 2 * r, x, x[0])],
    "cond": [
        lambda x: nbta.cond(x[0] > 0.2, lambda: x * 1.5, lambda: x),
        lambda x: nbta.cond(x[0] > 0.2, lambda x: x * 1.5, lambda x: x + 1, x),
    ],
    "switch_case": [lambda x: nbta.switch_case(1, [lambda: x, lambda: 2 * x])],
    "custom_gradient": [nbta.custom_gradient(lambda x: x * 2.0, backward=lambda g, x, y: g * 2.0)],
    "flatten": [lambda x: nbta.flatten([x, 1.5 * x])],
    "unflatten": [lambda x: nbta.unflatten(x * 2.0, {"a": np.zeros(2), "b": 0.0})],
    "TensorArray": [
        lambda x: nbta.TensorArray("float32", 2).write(0, x).write(1, [1.0, 2.0, 3.0]).stack(),
        lambda x: nbta.TensorArray("float32", 3).unstack(x * 0.5).gather([2, 0]),
    ],
}  # fmt: skip
#: The same of a matrix.
MATRIX = {
    **{
        name: [getattr(nbta, name)]
        for name in (
            "det",
            "diagonal",
            "expm",
            "fliplr",
            "inv",
            "matrix_transpose",
            "pinv",
            "rot90",
            "svdvals",
            "trace",
            "triu",
        )
    },
    "block_diag": [lambda m: nbta.block_diag(m, m)],
    "cho_factor": [lambda m: nbta.cho_factor(m)[0]],
    "cho_solve": [lambda m: nbta.cho_solve(nbta.cho_factor(m), m[0])],
    "condition_number": [nbta.condition_number],
    "dsplit": [lambda m: nbta.dsplit(m[None], 3)],
    "eigh": [lambda m: nbta.eigh(m)[0]],
    "eigvalsh": [nbta.eigvalsh],
    "lstsq": [lambda m: nbta.lstsq(m, m[0])[0]],
    "lu": [lambda m: nbta.lu(m)[1:]],
    "lu_factor": [lambda m: nbta.lu_factor(m)[0]],
    "lu_solve": [lambda m: nbta.lu_solve(nbta.lu_factor(m), m[0])],
    "matrix_power": [lambda m: nbta.matrix_power(m, 2)],
    "moveaxis": [lambda m: nbta.moveaxis(m, 0, 1)],
    "multi_dot": [lambda m: nbta.multi_dot([m, m, m])],
    "qr": [lambda m: nbta.qr(m)],
    "rollaxis": [lambda m: nbta.rollaxis(m, 1)],
    "slogdet": [lambda m: nbta.slogdet(m)[1]],
    "solve": [lambda m: nbta.solve(m, m[0])],
    "solve_triangular": [lambda m: nbta.solve_triangular(m, m[0])],
    "svd": [lambda m: nbta.svd(m)[1]],
    "vsplit": [lambda m: nbta.vsplit(m, 3)],
    "as_matrix": [lambda m: nbta.as_matrix(m, "left")],
    "cholesky": [nbta.cholesky],
    "matmul": [lambda m: m @ m],
    "swapaxes": [lambda m: nbta.swapaxes(m, 0, 1)],
    "triangular_solve": [
        lambda m: nbta.triangular_solve(m, m[0]),
    ],
    "tril": [nbta.tril],
}
#: Functions whose results are no floats, or have no argument to take a dtype from.
WITHOUT = {
    *OF_INTEGERS, "all", "allclose", "any", "arange", "argmax", "argmin", "argsort", "array_equal",
    "constant", "count_nonzero", "equal", "float_power", "greater", "greater_equal", "invert",
    "isclose", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "less", "less_equal",
    "logical_and", "logical_not", "logical_or", "logical_xor", "not_equal", "one_hot", "ones",
    "placeholder", "shape", "signbit", "size", "zeros",
    "argpartition", "bincount", "digitize", "eye", "fft", "geomspace", "histogram", "ifft",
    "histogram_bin_edges", "interp", "lexsort", "matrix_rank", "polyfit", "rfft", "searchsorted",
    "tri", "vander",
}  # fmt: skip
CASES = [
    pytest.param(name, call, value, id=f"{name} {k}")
    for table, value in ((VECTOR, X), (MATRIX, M))
    for name, calls in table.items()
    for k, call in enumerate(calls)
]


def test_every_function_is_here():
    assert set(functions) - set(VECTOR) - set(MATRIX) == WITHOUT
    assert not WITHOUT & {*VECTOR, *MATRIX}


def single(result):
    return {np.asarray(value).dtype.name for value in leaves(result)} == {"float32"}


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize(("name", "call", "value"), CASES)
def test_float32_stays(name, call, value):
    total = lambda x: nbta.add_n([nbta.sum(y) * 0.5 for y in leaves(call(x))])  # noqa: E731
    again = lambda x: nbta.sum(nbta.grad(total)(x) * 2)  # noqa: E731
    assert single(call(value))
    with in_python():
        for compiled in (False, True):
            assert single(nbta.function(call, compiled=compiled)(value))
            assert single(nbta.value_and_grad(total, compiled=compiled)(value))
            if name != "custom_gradient":
                assert single(nbta.value_and_grad(again, compiled=compiled)(value))


@pytest.mark.parametrize("name", ["jvp", "hvp", "batch"])
def test_transforms(name):
    f = lambda x: nbta.sum(nbta.tanh(x * 1.5) * 2 + 1)  # noqa: E731
    if name == "jvp":
        assert single(nbta.jvp(f, (X,), (X,)))
    elif name == "hvp":
        assert single(nbta.hvp(f, X, X))
    else:
        total = nbta.value_and_grad(lambda w, x: nbta.sum(w * x * 0.5), batch_axis=(None, 0))
        assert single(total(X, np.stack([X, X])))


# Carries.


def ways(f):
    return [f, nbta.function(f, compiled=False)]


@pytest.mark.parametrize("way", [0, 1])
def test_what_a_body_brings_in_decides(way):
    """Where it is wider, and nobody could see that before the loop, all is as wide."""
    w = np.float64(0.1)
    f = lambda x: nbta.scan(lambda c, r: (c * w + r, None), 0.1, x)[0]  # noqa: E731
    found = ways(f)[way](X)
    assert found.dtype == np.float64
    expected = np.float64(0.1)
    for r in X:
        expected = expected * w + r
    assert found == expected
    g = lambda x: nbta.while_loop(lambda s, y: s < 1.0, lambda s, y: (s + w, y), (0.1, x))  # noqa: E731
    s, y = ways(g)[way](X)
    assert (s.dtype, y.dtype) == (np.float64, np.float32)


@pytest.mark.parametrize("way", [0, 1])
def test_a_carry_of_float64_is_named(way):
    step = lambda c, r: ({"h": c["h"] * 0.5 + r}, None)  # noqa: E731
    f = lambda x: nbta.scan(step, {"h": np.zeros(2)}, x)[0]["h"]  # noqa: E731
    with pytest.warns(nbta.PrecisionWarning, match=r"scan: init\['h'\] is float64 and xs float32"):
        assert ways(f)[way](M[:, :2]).dtype == np.float64
    g = lambda x: nbta.foldl(lambda a, r: a + r, x, np.zeros(2))  # noqa: E731
    with pytest.warns(nbta.PrecisionWarning, match="foldl: initializer is float64 and elems float"):
        ways(g)[way](M[:, :2])


def test_no_warning_where_nothing_is_widened():
    for xs in (M.astype(np.float64), M.astype(np.complex128), np.ones((2, 3), np.int64)):
        nbta.foldl(lambda a, r: a + nbta.sum(nbta.real(r)), xs, np.float64(0.0))
    nbta.foldl(lambda a, r: a + r, M, np.zeros(3, np.float32))
    nbta.foldl(lambda a, r: a + nbta.sum(r), M, 0.0)
