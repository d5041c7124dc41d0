"""Operators and NumPy's functions on symbolic tensors, against NumPy."""

import operator

import numpy as np
import pytest
from item_by_item import OF_ONE, OF_TWO

import nbta

X = np.array([[0.5, -1.25, 2.0], [3.0, 0.75, -0.5]])
Y = np.array([2.0, -1.5, 0.25])
NUMPY = np.lib.NumpyVersion(np.__version__)
TRUTH = np.array([True, False, True])


@pytest.fixture
def graph():
    with nbta.Graph().as_default() as made:
        yield made


def value_of(function, *values):
    """What a function of tensors gives when it runs."""
    tensors = [nbta.placeholder(v.dtype, v.shape, name="x") for v in map(np.asarray, values)]
    result = function(*tensors)
    assert isinstance(result, nbta.Tensor)
    return nbta.Session(result.graph).run(result, dict(zip(tensors, values, strict=True)))


def check(function, *values):
    found, expected = value_of(function, *values), np.asarray(function(*values))
    assert (found.dtype, np.shape(found)) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-15)


ARITHMETIC = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"]
COMPARISONS = ["lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", ARITHMETIC + COMPARISONS)
def test_binary_operators(graph, name):
    function = getattr(operator, name)
    x = np.abs(X)
    check(function, x, Y)
    for other in (2, 1.5, np.float64(0.5), Y, np.int64(2), [1.0, 2.0, 3.0]):
        as_array = np.asarray(other) if isinstance(other, list) else other
        for apply in (lambda t, o: function(t, o), lambda t, o: function(o, t)):
            found = value_of(lambda t, o=other, apply=apply: apply(t, o), x)
            with np.errstate(invalid="ignore"):
                expected = apply(x, as_array)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-15)


@pytest.mark.parametrize("name", ARITHMETIC[:3] + ARITHMETIC[4:])
def test_python_numbers_are_weak(graph, name):
    x = np.array([3, 5], np.int8)
    check(lambda t: getattr(operator, name)(t, 2), x)
    check(lambda t: getattr(operator, name)(7, t), x)
    if name != "pow" or NUMPY >= "2.3.0":  # before, ``**`` gave another dtype than ``power``
        check(lambda t: getattr(operator, name)(t, np.float32(2)), x)


@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs])
def test_unary_operators(graph, function):
    check(function, X)


@pytest.mark.parametrize("function", [operator.and_, operator.or_])
def test_logic(graph, function):
    check(function, TRUTH, ~TRUTH)
    check(lambda t: function(t, True), TRUTH)
    check(lambda t: function(False, t), TRUTH)
    check(operator.invert, TRUTH)


BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, divmod]


@pytest.mark.parametrize("function", BITS)
def test_bits(graph, function):
    x, y = np.array([5, 12, -7]), np.array([3, 1, 2])
    for k in range(2 if function is divmod else 1):
        part = (lambda a, b, k=k: function(a, b)[k]) if function is divmod else function
        check(part, x, y)
        check(lambda t, part=part: part(t, 2), x)
        check(lambda t, part=part: part(13, t), y)


def test_bits_of_integers_that_are_inverted(graph):
    check(operator.invert, np.array([5, 0, -7]))
    check(lambda t: t & True, np.array([5, 12, -7]))


def test_matrix_products(graph):
    check(operator.matmul, X, X.T)
    check(lambda t: t @ Y, X)
    check(lambda t: Y @ t, X.T)
    check(lambda t: np.eye(2) @ t, X)
    check(lambda t: t.T @ t, X)


KEYS = {
    "integer": lambda t: t[1],
    "negative": lambda t: t[-1, -2],
    "slice": lambda t: t[:, 1:],
    "backwards": lambda t: t[::-1, ::2],
    "ellipsis": lambda t: t[..., 0],
    "new axis": lambda t: t[:, None, 1],
    "numpy integer": lambda t: t[np.int8(1)],
}


@pytest.mark.parametrize("key", KEYS)
def test_indexing(graph, key):
    check(KEYS[key], X)


METHODS = {
    "sum": lambda t: t.sum(),
    "sum of an axis": lambda t: t.sum(axis=0),
    "mean": lambda t: t.mean(axis=-1, keepdims=True),
    "max": lambda t: t.max(axis=1),
    "min": lambda t: t.min(),
    "prod": lambda t: t.prod(axis=(0, 1)),
    "argmax": lambda t: t.argmax(axis=0),
    "cumsum": lambda t: t.cumsum(axis=1),
    "reshape": lambda t: t.reshape(3, -1),
    "reshape to a tuple": lambda t: t.reshape((6,)),
    "squeeze": lambda t: t[:1].squeeze(),
    "transpose": lambda t: t.transpose(),
    "transpose by axes": lambda t: t.transpose(1, 0),
    "T": lambda t: t.T,
    "astype": lambda t: t.astype("float32"),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods(graph, name):
    check(METHODS[name], X)


POSITIVE = [np.log, np.log2, np.log10, np.log1p, np.sqrt]
WITHIN_ONE = [np.arcsin, np.arccos, np.arctanh]
OTHERS = [*POSITIVE, *WITHIN_ONE, np.arccosh, np.power, np.logical_and, np.logical_or]


def ufuncs(functions):
    """NumPy's functions that nbta's are made from, but for those of some arguments only."""
    made = dict.fromkeys(function.record.evaluate for function in functions.values())
    return [ufunc for ufunc in made if isinstance(ufunc, np.ufunc) and ufunc not in OTHERS]


UFUNCS = [*ufuncs(OF_ONE), np.negative, np.absolute, np.conjugate]
BINARY_UFUNCS = ufuncs(OF_TWO)


@pytest.mark.parametrize("function", UFUNCS, ids=lambda f: f.__name__)
def test_ufuncs_of_one_argument(graph, function):
    check(function, X)


@pytest.mark.parametrize("function", POSITIVE, ids=lambda f: f.__name__)
def test_ufuncs_of_positive_arguments(graph, function):
    check(function, np.abs(X))


def test_ufuncs_of_arguments_within_bounds(graph):
    for function in WITHIN_ONE:
        check(function, X / 4)
    check(np.arccosh, 1 + np.abs(X))


@pytest.mark.parametrize("function", BINARY_UFUNCS, ids=lambda f: f.__name__)
def test_ufuncs_of_two_arguments(graph, function):
    check(function, X, Y)
    check(lambda t: function(t, Y), X)
    check(lambda t: function(Y, t), X)


def test_more_ufuncs(graph):
    check(np.power, np.abs(X), Y)
    check(np.matmul, X, X.T)
    check(np.logical_and, TRUTH, ~TRUTH)
    check(np.logical_or, TRUTH, ~TRUTH)
    check(np.logical_not, TRUTH)
    check(np.add.reduce, X)
    check(lambda t: np.maximum.reduce(t, axis=1), X)
    check(lambda t: np.multiply.reduce(t, axis=1, keepdims=True), X)
    check(lambda t: np.minimum.reduce(t, axis=None), X)


FUNCTIONS = {
    "sum": lambda t: np.sum(t, axis=1),
    "sum of all": lambda t: np.sum(t),
    "mean": lambda t: np.mean(t, axis=0, keepdims=True),
    "max": lambda t: np.max(t, axis=0),
    "amax": lambda t: np.amax(t),
    "min": lambda t: np.min(t, axis=(0, 1)),
    "prod": lambda t: np.prod(t),
    "argmax": lambda t: np.argmax(t, axis=1),
    "cumsum": lambda t: np.cumsum(t, axis=0),
    "dot": lambda t: np.dot(t, Y),
    "outer": lambda t: np.outer(t[0], Y),
    "einsum": lambda t: np.einsum("ij,j->i", t, Y),
    "transpose": lambda t: np.transpose(t),
    "reshape": lambda t: np.reshape(t, (3, 2)),
    "squeeze": lambda t: np.squeeze(t[:, :1]),
    "expand_dims": lambda t: np.expand_dims(t, 1),
    "broadcast_to": lambda t: np.broadcast_to(t, (4, 2, 3)),
    "concatenate": lambda t: np.concatenate([t, X, t], axis=1),
    "stack": lambda t: np.stack([t[0], Y]),
    "split": lambda t: np.split(t, 3, axis=1)[1],
    "take": lambda t: np.take(t, [2, 0], axis=1),
    "pad": lambda t: np.pad(t, ((1, 0), (0, 2))),
    "flip": lambda t: np.flip(t, 1),
    "where": lambda t: np.where(t > 0, t, 0.0),
    "where by an array": lambda t: np.where(X > 0, t, -t),
    "clip": lambda t: np.clip(t, -1.0, 1.0),
    "zeros_like": lambda t: np.zeros_like(t),
    "ones_like": lambda t: np.ones_like(t),
    "real": lambda t: np.real(t),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(graph, name):
    check(FUNCTIONS[name], X)


def test_a_layer_in_numpy(graph):
    w, b = X, np.array([0.5, -0.5, 0.25])
    check(lambda x: np.tanh(x @ w + b).sum(), np.array([[1.0, 2.0], [0.5, -1.0]]))


def test_complex_parts(graph):
    z = X + 1j * X[::-1]
    for function in (np.real, np.imag, np.conj, np.square, lambda t: t * t.T[:, :1].T):
        check(function, z)


BY_NAME = {
    "vander": lambda t: np.vander(x=t[0], N=2),
    "swapaxes": lambda t: np.swapaxes(a=t, axis1=0, axis2=1),
    "sum": lambda t: np.sum(a=t, axis=1),
    "append": lambda t: np.append(arr=t, values=t),
    "tril": lambda t: np.tril(m=t, k=-1),
    "array_equal": lambda t: np.array_equal(a1=t, a2=t),
    "take": lambda t: np.take(a=t, indices=[0], axis=1),
    "cond": lambda t: np.linalg.cond(x=t @ t.T + np.eye(t.shape[0]), p=2),
    "searchsorted": lambda t: np.searchsorted(a=np.sort(t[0]), v=0.5),
    "flip": lambda t: np.flip(m=t, axis=0),
    "insert": lambda t: np.insert(arr=t, obj=1, values=3.0, axis=1),
    "quantile": lambda t: np.quantile(a=t, q=0.3, axis=0, method="hazen"),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_arguments_by_numpys_names(graph, name):
    check(BY_NAME[name], X)


UNSUPPORTED = {
    "np.add.reduceat": lambda t: np.add.reduceat(t, [0, 1]),
    "np.subtract.accumulate": lambda t: np.subtract.accumulate(t),
    "np.subtract.reduce": lambda t: np.subtract.reduce(t),
    "np.exp": lambda t: np.exp(t, where=X > 0),
    "np.linalg": lambda t: np.linalg.eig(t),
    "np.real_if_close": lambda t: np.real_if_close(t),
    "np.packbits": lambda t: np.packbits(t),
    "np.unique": lambda t: np.unique(t),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_numpy_has_and_nbta_has_not(graph, name):
    x = nbta.placeholder("float64", (2, 3), name="weights")
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        UNSUPPORTED[name](x)
    name = {"np.linalg": "np.linalg.eig", "np.fft": "np.fft"}.get(name, name)
    assert caught.value.reason == "symbolic"
    for word in (name, "'weights:0'", "symbolic tensors"):
        assert word in str(caught.value)
    assert "nbta." in str(caught.value), "what to use in its place"


def test_an_array_takes_no_tensor_in_place(graph):
    x = nbta.placeholder("float64", (3,), name="x")
    values = np.zeros(3)
    with pytest.raises(nbta.InvalidArgumentError, match=r"out= would .* x:0 .*; y = y \+ x, "):
        values += x
    with pytest.raises(nbta.InvalidArgumentError, match="symbolic"):
        values[:] = x
    assert values.tolist() == [0, 0, 0]
