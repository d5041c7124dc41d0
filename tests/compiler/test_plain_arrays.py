"""Arrays of which more than the items counts are refused, wherever arrays come in."""

import numpy as np
import pytest
from item_by_item import OF_INTEGERS, OF_ONE, OF_TWO
from many import each

import nbta
from nbta import raw_ops
from nbta.ops import functions

X = np.array([[4.0, 1.0], [1.0, 3.0]])


class Metres(np.ndarray):
    """An array with a unit, in the manner of astropy and unyt."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return NotImplemented


class Ordinary(np.ndarray):
    """A subclass that changes nothing."""


def masked(x):
    return np.ma.array(x, mask=np.zeros(np.shape(x), bool))


#: How an array that means more is made of one that does not, and what the message has.
KINDS = {
    "masked": (masked, r"MaskedArray has a mask, .*\.filled\(\.\.\.\)"),
    "with nothing masked": (np.ma.array, r"a mask, .*\.filled\(\.\.\.\)"),
    "matrix": (
        lambda x: np.asarray(x).view(np.matrix),
        r"matrix has another product, .*np\.asarray\(value\)",
    ),
    "units": (lambda x: np.asarray(x).view(Metres), "Metres has a meaning of its own"),
    "in a list": (lambda x: [masked(row) for row in x], r"\[0\]: .*has a mask"),
    "an item": (lambda x: [list(row) for row in x[:-1]] + [[np.ma.masked] * 2], r"has a mask"),
}

I1 = np.array([1, 0])
ONE = (
    "abs argmax cholesky conj constant cumsum exclusive_cumprod flip identity imag invert "
    "log_softmax logical_not logsumexp max mean min negative ones_like prod real shape size "
    "softmax squeeze stop_gradient sum transpose tril zeros_like "
    "all angle any argmin argsort average count_nonzero cummax cummin cumprod degrees diff ediff1d "
    "fix isneginf isposinf nan_to_num nancumprod nancumsum nanmax nanmean nanmin nanprod nanstd "
    "atleast_1d atleast_2d atleast_3d cho_factor condition_number det diag diagflat diagonal eigh "
    "eigvalsh expm fft fliplr flipud gradient histogram histogram_bin_edges ifft inv irfft lu "
    "lu_factor matrix_rank matrix_transpose pinv qr ravel rfft rot90 slogdet svd svdvals trace "
    "triu unstack "
    "nansum nanvar norm ptp radians round sort std trapezoid var "
    "median nanmedian digamma i0 i0e i1 i1e j0 j1 lambertw log_sigmoid "
    "y0 y1 k0 k1 k0e k1e"
)
TWO = (
    "allclose array_equal dot float_power gammainc gammaincc gammaincinv "
    "gammainccinv isclose linear_recurrence matmul "
    "outer triangular_solve zeta append broadcast_arrays inner kron lstsq meshgrid solve "
    "solve_triangular tensordot vdot vecdot block_diag"
)
#: Arguments of each function that takes arrays, and the places of those that are arrays.
FUNCTIONS = {
    **dict.fromkeys([*OF_ONE, *ONE.split()], ((X,), (0,))),
    **dict.fromkeys([*OF_TWO, *OF_INTEGERS, *TWO.split()], ((X, X), (0, 1))),
    "where": ((X > 1, X, X), (0, 1, 2)),
    **dict.fromkeys(("betaincc", "betaincinv", "betainccinv"), ((X, X, X / 5), (0, 1, 2))),
    "expn": ((2, X), (1,)),
    "clip": ((X, X, X), (0, 1, 2)),
    "add_n": (([X, X],), (0,)),
    "concatenate": (([X, X],), (0,)),
    "stack": (([X, X],), (0,)),
    "split": ((X, 2), (0,)),
    "einsum": (("ij,jk,ij->k", X, X, X), (1, 2, 3)),
    "as_matrix": ((X, "row"), (0,)),
    "broadcast_to": ((X, (2, 2)), (0, 1)),
    "cast": ((X, "float32"), (0,)),
    "dynamic_slice": ((X, I1, (1, 1)), (0, 1)),
    "dynamic_update_slice": ((X, X[:1], I1), (0, 1, 2)),
    "slice": ((X, I1, I1), (0, 1)),
    "expand_dims": ((X, 0), (0,)),
    "fill": ((I1, X[0, 0]), (0,)),
    "gather": ((X, I1), (0, 1)),
    "take": ((X, I1), (0, 1)),
    "scatter_add": ((X, I1, X), (0, 1, 2)),
    "one_hot": ((I1, 2), (0,)),
    "polygamma": ((0, X), (1,)),
    "getitem": ((X, 0), (0,)),
    "set_item": ((X, 0, X[0]), (0, 2)),
    "add_item": ((X, I1, X), (0, 1, 2)),
    "pad": ((X, 1), (0,)),
    "reshape": ((X, I1 + 1), (0, 1)),
    "sum_to": ((X, (2, 2)), (0,)),
    "swapaxes": ((X, 0, 1), (0,)),
    "betainc": ((X, X, X), (0, 1, 2)),
    "ldexp": ((X, I1), (0, 1)),
    **dict.fromkeys(("argpartition", "partition", "repeat", "roll", "tile"), ((X, 1), (0,))),
    **dict.fromkeys(("array_split", "hsplit", "vsplit", "matrix_power"), ((X, 2), (0,))),
    **{
        name: (([X, X],), (0,))
        for name in ("block", "column_stack", "dstack", "hstack", "lexsort", "multi_dot", "vstack")
    },
    **dict.fromkeys(("moveaxis", "rollaxis"), ((X, 0, 1), (0,))),
    **dict.fromkeys(("geomspace", "linspace", "logspace"), ((X[0], X[1], 2), (0, 1))),
    "bincount": ((I1, X[0]), (0, 1)),
    "cho_solve": (((X, True), X), (1,)),
    "choose": ((I1, [X[0], X[1]]), (0,)),
    "compress": ((I1 > 0, X, 0), (0, 1)),
    "convolve": ((X[0], X[1]), (0, 1)),
    "correlate": ((X[0], X[1]), (0, 1)),
    "cross": ((np.ones((2, 3)), np.ones((2, 3))), (0, 1)),
    "delete": ((X, 0, 0), (0,)),
    "digitize": ((X, X[1]), (0, 1)),
    "dsplit": ((X[:, :, None], 1), (0,)),
    "extract": ((I1 > 0, X[0]), (0, 1)),
    "insert": ((X, 0, X[0], 0), (0, 2)),
    "interp": ((X, X[1], X[0]), (0, 1, 2)),
    "lu_solve": (((X, I1), X), (1,)),
    "polyfit": ((X[0], X[1], 1), (0, 1)),
    "polyval": ((X[0], X), (0, 1)),
    "put_along_axis": ((X, X.astype(int) % 2, X, 0), (0, 1, 2)),
    "resize": ((X, (2, 2)), (0,)),
    "searchsorted": ((X[1], X), (0, 1)),
    "select": (([X > 1, X > 2], [X, X]), (0, 1)),
    "toeplitz": ((X[0], X[1]), (0, 1)),
    "vander": ((X[0],), (0,)),
    **dict.fromkeys(["quantile", "nanquantile"], ((X, 0.3), (0,))),
    **dict.fromkeys(["percentile", "nanpercentile"], ((X, 30), (0,))),
    "take_along_axis": ((X, X.astype(int) % 2, 0), (0, 1)),
    "zeros": ((I1,), (0,)),
    "ones": ((I1,), (0,)),
}
WITHOUT = {"arange", "at", "eye", "placeholder", "tri"}
PLACES = [(name, place) for name, (_, places) in FUNCTIONS.items() for place in places]


def test_all_functions_are_in_the_table():
    assert set(FUNCTIONS) | WITHOUT == set(functions.__all__)


def spoilt(values, place, kind):
    """The arguments with one of them made anew."""
    value = KINDS[kind][0](values[place])
    return [*values[:place], value, *values[place + 1 :]]


def refused(kind):
    return pytest.raises(nbta.InvalidArgumentError, match=KINDS[kind][1])


@pytest.mark.parametrize("kind", KINDS)
def test_functions_refuse_them(kind):
    each(PLACES, lambda place: check_refused(*place, kind))


def check_refused(name, place, kind):
    function, values = getattr(nbta, name), FUNCTIONS[name][0]
    if np.ndim(values[place]) != 2 and kind in ("matrix", "in a list", "an item"):
        return
    with refused(kind) as caught:
        function(*spoilt(values, place, kind))
    assert caught.value.reason == "subclass"
    with nbta.Graph().as_default(), refused(kind):
        function(*spoilt(values, place, kind))


def array(**options):
    return nbta.TensorArray("float64", dynamic_size=True, **options)


def fed(x):
    with nbta.Graph().as_default() as graph:
        y = nbta.placeholder("float64", (None, None))
    return nbta.Session(graph).run(y, {y: x})


def fed_as_another(x):
    with nbta.Graph().as_default() as graph:
        y = nbta.placeholder("complex128", (None, None))
    return nbta.Session(graph).run(y, {y: x})


def graph_gradients(x):
    with nbta.Graph().as_default():
        y = nbta.placeholder("float64", (2, 2))
        return nbta.gradients(y * y, [y], grad_ys=[x])


shared = nbta.value_and_grad(lambda w, y: nbta.sum(w * y * y), batch_axis=(None, 0))
total = nbta.value_and_grad(lambda x: nbta.sum(x * x))
ENTRY_POINTS = {
    "write": lambda x: array().write(0, x),
    "append": lambda x: array().append(x),
    "accumulate": lambda x: array().write(0, X).grad("s").accumulate(0, x),
    "unstack": lambda x: array().unstack(x),
    "scatter": lambda x: array().scatter([0, 1], x),
    "split": lambda x: array(infer_shape=False).split(x, [1, 1]),
    "raw write": lambda x: raw_ops.TensorArrayWriteV3(
        raw_ops.TensorArrayV3(1, "float64")[0], 0, x, 0
    ),
    "argument": lambda x: nbta.function(nbta.square)(x),
    "keyword": lambda x: nbta.function(lambda y: nbta.square(y))(y={"a": [x]}),
    "captured": lambda x: nbta.function(lambda y: y * x)(X),
    "captured by a write": lambda x: nbta.function(lambda y: array().append(x).stack() + y)(X),
    "value_and_grad": total,
    "batch": lambda x: shared(1.0, x),
    "shared by a batch": lambda x: shared(x, X),
    "jvp": lambda x: nbta.jvp(nbta.square, X, x),
    "hvp": lambda x: nbta.hvp(lambda y: nbta.sum(y**3), X, x),
    "check_grads": lambda x: nbta.testing.check_grads(nbta.square, (x,)),
    "feed": fed,
    "feed of another dtype": fed_as_another,
    "grad_ys": graph_gradients,
    "while_loop": lambda x: nbta.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y), (0, x)),
    "body": lambda x: nbta.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, x), (0, X)),
    "scan": lambda x: nbta.scan(lambda c, row: (c, row), 0.0, x),
    "state": lambda x: nbta.scan(lambda c, row: (c, row), x, X),
    "map_fn": lambda x: nbta.map_fn(nbta.square, x),
    "map_fn on threads": lambda x: nbta.map_fn(nbta.square, x, parallel_iterations=2),
    "foldl": lambda x: nbta.foldl(nbta.add, x),
    "operand": lambda x: nbta.cond(True, nbta.square, nbta.sin, x),
    "operator": lambda x: nbta.function(lambda y: y + x)(X),
    "reflected operator": lambda x: nbta.function(lambda y: x + y)(X),
    "NumPy's function": lambda x: nbta.function(lambda y: np.matmul(y, x))(X),
    "flatten": lambda x: nbta.flatten({"a": x}),
    "unflatten": lambda x: nbta.unflatten(x, X),
}


@pytest.mark.parametrize("kind", KINDS)
def test_entry_points_refuse_them(kind):
    each(ENTRY_POINTS, lambda entry_point: check_entry_point(entry_point, kind))


def check_entry_point(entry_point, kind):
    value = KINDS[kind][0](X)
    if isinstance(value, list):  # for some a structure, whose parts are refused one by one
        with pytest.raises((nbta.InvalidArgumentError, TypeError)):
            ENTRY_POINTS[entry_point](value)
        return
    with pytest.raises((nbta.InvalidArgumentError, TypeError)) as caught:
        ENTRY_POINTS[entry_point](value)
    if isinstance(caught.value, TypeError):  # the class itself refuses tensors
        assert kind == "units"
        return
    if entry_point == "reflected operator" and caught.value.reason == "symbolic":
        return  # NumPy's own addition, of masked arrays, asks for the tensor's value
    assert caught.value.reason == "subclass"
    caught.match(KINDS[kind][1])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.asarray(x).view(Ordinary),
        lambda x: np.asarray(x).view(np.memmap),
        lambda x: x,
        np.asfortranarray,
    ],
)
def test_what_means_nothing_else_is_taken(make):
    value = make(X)
    np.testing.assert_array_equal(array().write(0, value).read(0), X)
    np.testing.assert_array_equal(nbta.square(value), X * X)
    np.testing.assert_array_equal(total(value)[1], 2 * X)


def test_records_are_taken_by_name():
    records = np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])
    ta = nbta.TensorArray(records.dtype.fields and np.dtype([("a", "i4"), ("b", "f8")]), size=1)
    assert ta.unstack(records).read(0)["b"] == 2.0
