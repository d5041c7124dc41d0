"""Copies and views are NumPy's: what a write to one array does to another one.

Each function and method of NumPy's is called on an array, and then its result is written to, or the
array is; what both hold afterwards is NumPy's, or the write is refused.
"""

import itertools
import operator
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import nbta
from nbta.errors import NbtaError
from nbta.structure import leaves
from nbta.testing import check_grads

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import numpy_table as table

A = np.arange(12.0).reshape(3, 4) / 8 + 1
FUNCTIONS = {
    name: (getattr(np, name), *found)
    for name in table.functions("numpy")
    if (found := table._samples(name, getattr(np, name)))
}
METHODS = {
    "astype": ("f8",), "astype float32": ("f4",), "clip": (0.0, 1.5), "conj": (), "conjugate": (),
    "copy": (), "cumprod": (0,), "cumsum": (0,), "diagonal": (), "flatten": (), "max": (0,),
    "mean": (0,), "ravel": (), "repeat": (2,), "reshape": (4, 3), "round": (1,), "squeeze": (),
    "sum": (0,), "swapaxes": (0, 1), "take": ([0, 1],), "transpose": (), "view": (),
    "real": None, "imag": None,
}  # fmt: skip
#: Arrays by what they are of the argument.
PARTS = {
    "whole": lambda x: x, "rows": lambda x: x[::2], "columns": lambda x: x[:, 1:],
    "turned": lambda x: x.T, "computed": lambda x: x.T + 1.0,
}  # fmt: skip


def quietly(call):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call()


def first_array(found):
    return next((each for each in leaves(found) if getattr(each, "ndim", 0)), None)


def result_written(run):
    """A function that writes to what a call gives."""

    def function(x):
        found = run(x)
        found = found[0] if isinstance(found, list | tuple) else found
        found[0] = 5
        return x, found

    return function


def argument_written(run):
    def function(x):
        found = run(x)
        x[0] = 3
        return x, found

    return function


def hold(function, start, said, compiled=False):
    """What both arrays hold is NumPy's, or the function is refused."""
    try:
        wanted = quietly(lambda: function(start.copy()))
    except Exception as error:  # NumPy does not write there
        with pytest.raises(type(error) if "read-only" in str(error) else Exception) as raised:
            quietly(lambda: nbta.function(function, compiled=compiled)(start.copy()))
        if "read-only" in str(error):
            assert f"{Path(__file__).name}:" in str(raised.value), said
        return
    try:
        found = quietly(lambda: nbta.function(function, compiled=compiled)(start.copy()))
    except (NbtaError, TypeError, ValueError):
        return
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=said)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_share_what_numpys_share(name):
    function, *samples = FUNCTIONS[name]
    for start, call in samples[:3]:
        try:
            given = quietly(lambda c=call, s=start: c(function, s.copy()))
        except Exception:  # the next may do
            continue
        if not isinstance(first_array(given), np.ndarray):
            continue

        def run(x, call=call):
            return call(function, x)

        hold(result_written(run), start, f"{name}: written to what it gives")
        hold(argument_written(run), start, f"{name}: written to what it is given")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", METHODS)
def test_methods_share_what_numpys_share(name, part):
    args, take = METHODS[name], PARTS[part]

    def run(x):
        found = getattr(take(x), name.split()[0])
        return found if args is None else found(*args)

    hold(result_written(run), A, name)
    hold(argument_written(run), A, name)


#: Views for reading alone, and what keeps them so.
READ_ONLY = {
    "diagonal": lambda x: np.diagonal(x, 1), "diag": np.diag, "linalg": np.linalg.diagonal,
    "method": lambda x: np.stack([x, x]).diagonal(0, 1, 2), "broadcast": lambda x:
    np.broadcast_to(x, (2, *x.shape)), "number": lambda x: np.broadcast_to(x[0, 0], 3),
    "imag": lambda x: x.imag, "windows": lambda x: sliding_window_view(x, (2, 2)),
    "known": lambda x: np.diagonal(np.eye(3)), "known imag": lambda x: np.imag(np.ones(3)),
    "known windows": lambda x: sliding_window_view(np.arange(5.0), 2),
    "part": lambda x: np.diagonal(x)[1:], "turned": lambda x: np.broadcast_to(x, (2, 3, 4)).T,
    "split": lambda x: np.split(np.broadcast_to(x, (2, *x.shape)), 2)[0],
    "asarray": lambda x: np.asarray(np.diagonal(x)), "real": lambda x: np.diagonal(x).real,
    "item": lambda x: [np.diagonal(x), np.diag(x)][int(x[0, 0] > 0)],
}  # fmt: skip
NO_LONGER = {
    "copy": lambda x: np.diagonal(x).copy(), "flatten": lambda x: np.diagonal(x).flatten(),
    "computed": lambda x: np.diagonal(x) + 0.0, "picked": lambda x: np.diagonal(x)[[0, 1]],
    "array": lambda x: np.array(np.diag(x)), "astype": lambda x: np.diag(x).astype(float),
}  # fmt: skip


def _assigned(found):
    found[0] = 5.0


def _added(found):
    found += 1.0


def _filled(found):
    found.fill(2.0)


def _sorted(found):
    found.sort()


def _out(found):
    np.add(found, 1.0, out=found)


WRITES = {"assigned": _assigned, "added": _added, "filled": _filled, "sorted": _sorted, "out": _out}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("name", [*READ_ONLY, *NO_LONGER])
def test_what_is_read_only_in_numpy_is_so(name, write):
    make, change = {**READ_ONLY, **NO_LONGER}[name], WRITES[write]

    def function(x):
        found = make(x)
        change(found)
        return x, found

    try:
        function(A.copy())
        raised = False
    except ValueError:
        raised = True
    assert raised == (name in READ_ONLY)
    hold(function, A, name)


def _after_a_loop(x):
    d = np.diagonal(x)
    for k in range(int(x[0, 0]) + 1):
        d = np.diagonal(x + k)
    d[0] = 1.0
    return d


def _made_in_a_loop(x):
    for k in range(int(x[0, 0]) + 1):
        d = np.diag(x * k)
    d[0] = 1.0
    return d


def _in_a_loop(x):
    for k in range(int(x[0, 0]) + 1):
        np.diagonal(x)[k] = 1.0
    return x


def _in_a_branch(x):
    d = np.diagonal(x)
    if x[0, 0] > 0:
        d[0] = 1.0
    return d


def _after_a_branch(x):
    d = np.diag(x) if x[0, 0] > 0 else np.diagonal(x, 1)
    d[0] = 1.0
    return d


def _tried(x):
    try:
        np.diagonal(x)[0] = 1.0
    except ValueError:
        return x + 1.0
    return x


FOLLOWED = (_after_a_loop, _made_in_a_loop, _in_a_loop, _in_a_branch, _after_a_branch, _tried)


@pytest.mark.parametrize("function", FOLLOWED, ids=lambda f: f.__name__)
def test_read_only_views_stay_so_in_loops_and_branches(function):
    hold(function, A, function.__name__)


def _or_a_row(x):
    d = np.diagonal(x) if x[0, 0] > 5 else x[0]
    d[0] = 1.0
    return d


def _or_a_sum(x):
    d = np.diagonal(x)
    for _ in range(int(x[0, 0]) + 1):
        d = np.diagonal(x) + 1.0
    d[0] = 1.0
    return d


@pytest.mark.parametrize("function", [_or_a_row, _or_a_sum], ids=lambda f: f.__name__)
def test_what_may_be_read_only_is_refused(function):
    with pytest.raises(nbta.InvalidArgumentError, match="may or may not be a view that is read-on"):
        nbta.function(function)(A)


def _written_before(x):
    d, b, w = np.diagonal(x), np.broadcast_to(x[0], (2, 4)), sliding_window_view(x, (2, 3))
    x[0] *= 5.0
    x[1, 1] = -x[2, 0]
    return np.sum(d * d) + np.sum(b * b) + np.sum(w * w), d, b, w


def _written_in_a_loop(x):
    d, w, s = np.diagonal(x), sliding_window_view(x, 2, axis=1), 0.0
    for k in range(int(x[0, 0] + 0.5) + 1):
        x[k, k] += x[0, 2]
        s += np.sum(d * d) + w[k, k, 0] * w[0, 0, 1]
    return s, d, w


def _carried(x):
    y, d = x, np.diagonal(x)
    for k in range(int(x[0, 0] + 0.5) + 1):
        y = y * 2.0
        d = np.diagonal(y)
        y[k, k] = 3.0 * x[k, 0]
    return np.sum(d * y[:, 0]), d, y


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "function", [_written_before, _written_in_a_loop, _carried], ids=lambda f: f.__name__
)
def test_read_only_views_show_what_is_written(function, compiled):
    found = nbta.function(function, compiled=compiled)(A.copy())
    for one, other in zip(found, function(A.copy()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    nbta.testing.check_grads(lambda x: function(x)[0], (A,))


WINDOWS = {
    "vector": lambda x: sliding_window_view(x[0], 3),
    "all": lambda x: sliding_window_view(x, (2, 1)),
    "axis": lambda x: sliding_window_view(x, 2, axis=-1), "twice": lambda x:
    sliding_window_view(x, (2, 2), (1, 1)), "whole": lambda x: sliding_window_view(x, (3, 4)),
    "none": lambda x: sliding_window_view(x, (0, 2)), "list": lambda x:
    sliding_window_view(x, [2, 3], axis=[1, 0]), "of a length": lambda x:
    sliding_window_view(x, len(x) // 2 + 1, 0), "picked": lambda x:
    sliding_window_view(x[x > 1.2], 3), "means": lambda x:
    np.mean(sliding_window_view(x, 2, 0), axis=-1), "no axes": lambda x:
    sliding_window_view(x, (), ()),
    "too long": lambda x: sliding_window_view(x, 5, 1), "negative": lambda x:
    sliding_window_view(x, -1, 0), "few": lambda x: sliding_window_view(x, 2), "axis 2": lambda x:
    sliding_window_view(x, 2, 2), "float": lambda x: sliding_window_view(x, 2.0, 0),
    "too long for the run": lambda x: sliding_window_view(x[x > 2.3], 3),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_numpys(name, compiled):
    def windows(x):
        return WINDOWS[name](x)

    try:
        wanted = windows(A)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            nbta.function(windows, compiled=compiled)(A)
        return
    found = nbta.function(windows, compiled=compiled)(A)
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)
    if compiled:
        nbta.testing.check_grads(lambda x: np.sum(np.sin(windows(x))), (A,), order=2)


@pytest.mark.parametrize("name", ["writeable=", "window_shape="])
def test_windows_that_are_refused_by_name(name):
    def windows(x):
        if name == "writeable=":
            return sliding_window_view(x, 2, 0, writeable=True)
        return sliding_window_view(x, int(x[0, 0]), 0)

    with pytest.raises(nbta.InvalidArgumentError, match=name):
        nbta.function(windows)(A)


#: Calls that lay their results out as their arguments lie: a vector of them is a copy or a view.
LAID_OUT = {
    "copy": lambda x: np.copy(x.T), "array": lambda x: np.array(x.T),
    "method": lambda x: x.T.copy(),
    "like": lambda x: np.zeros_like(x.T), "sum": lambda x: x.T + 1.0, "twice": lambda x: x.T.T * 2,
    "dtype": lambda x: x.T.astype(np.float32), "function": lambda x: np.exp(x.T),
    "both": lambda x: x.T + np.ones((4, 3)), "negative": lambda x: -x.T,
    "C": lambda x: np.array(x.T, order="C"),
    "F": lambda x: np.array(x, order="F"), "zeros": lambda x: np.zeros((3, 4), order="F"),
    "product": lambda x: x.T @ x, "clip": lambda x: x.T.clip(0, 1),
    "where": lambda x: np.where(x.T > 1, x.T, 0),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LAID_OUT)
def test_vectors_of_arrays_are_views_where_numpys_are(name, compiled):
    make = LAID_OUT[name]

    def function(x):
        y = make(x)
        z = y.reshape(-1)
        z[0] = 100.0
        return y, z

    hold(function, A, name, compiled)


def written(change):
    def function(x):
        change(x)
        return np.sum(x * x), x

    return function


def _diagonal(x):
    np.einsum("ii->i", x[:, :3])[:] = np.array([2.0, 3.0, 4.0])


def _permuted(x):
    y = np.einsum("ij->ji", x)
    y[0] = y[1] * 2


def _rows(x):
    y = np.ascontiguousarray(x[::2])
    y[0] = 5.0


def _real(x):
    y = x.conj()
    y[0] *= 3.0


def _same(x):
    y = np.array(x, copy=False)
    y[1] = 2.0


def _getter(x):
    y, z = operator.itemgetter(slice(0, 2), (slice(None), 3))(x)
    y[0] = 7.0
    z[2] = 1.0


def _operators(x):
    y = operator.iadd(x, 1.0)
    y = operator.imul(y, x)
    operator.setitem(operator.getitem(y, 1), 2, 5.0)


CHANGES = {"diagonal": _diagonal, "permuted": _permuted, "rows": _rows, "real": _real,
           "same": _same, "getter": _getter, "operators": _operators}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_writes_reach_what_they_reach_in_numpy_with_gradients(name, compiled):
    function = written(CHANGES[name])
    found = nbta.function(function, compiled=compiled)(A.copy())
    for one, other in zip(found, function(A.copy()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    nbta.testing.check_grads(lambda x: function(x)[0], (A,))


B = np.array([[9.0, 7.0, 3.0], [1.0, 8.0, 6.0], [2.0, 0.5, 7.0]])
TRIANGLES = {
    "eigh": lambda a: abs(np.linalg.eigh(a)[1]), "eigvalsh": np.linalg.eigvalsh,
    "upper": lambda a: np.linalg.eigvalsh(a, "U"),
    "by name": lambda a: np.linalg.eigvalsh(a, UPLO="U"),
    "cholesky": np.linalg.cholesky,
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", TRIANGLES)
def test_one_triangle_is_read_alone(name, compiled):
    function = TRIANGLES[name]
    found = nbta.function(function, compiled=compiled)(B)
    np.testing.assert_allclose(found, function(B), rtol=1e-11)

    def loss(a):
        return np.sum(np.sin(function(a)))

    slope = nbta.grad(loss, compiled=compiled)(B)
    for k in range(9):
        way = np.zeros(9)
        way[k] = 1e-6
        way = way.reshape(3, 3)
        near = (loss(B + way) - loss(B - way)) / 2e-6
        np.testing.assert_allclose(slope.ravel()[k], near, rtol=1e-6, atol=1e-8)
    holes = np.where(np.triu(np.ones((3, 3)), 1) > 0, np.nan, B)
    if "upper" not in name and "by name" not in name:
        found = nbta.function(function, compiled=compiled)(holes)
        np.testing.assert_allclose(found, function(holes), rtol=1e-11)


@pytest.mark.parametrize("lower", [False, True])
def test_scipys_factors_read_one_triangle(lower):
    linalg = pytest.importorskip("scipy.linalg")

    def parts(a):
        return [linalg.cholesky(a, lower=lower), linalg.eigvalsh(a, lower=lower),
                linalg.cho_solve(linalg.cho_factor(a, lower), a[0])]  # fmt: skip

    for one, other in zip(nbta.function(parts)(B), parts(B), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


def test_small_cases_are_numpys():
    def parts(x):
        return [np.diff(x, n=0, prepend=1.0), np.block(x[0, 0]), np.block([3.0, x[0, 0]]),
                x[np.array([1, 0]), :, True], x[True], x[:, True, 0], x[False]]  # fmt: skip

    for one, other in zip(nbta.function(parts)(A), parts(A), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_vector_of_an_argument_in_another_order_is_no_view(compiled):
    def written(x):
        y = x.reshape(-1)
        y[0] = 1.0
        return np.sum(x * x)

    def computed(x):
        y = (x + 0.0).ravel()
        y[1] = 2.0
        return np.sum(x * y.reshape(x.shape))

    in_order = np.arange(6.0).reshape(2, 3) + 0.5
    turned, spaced = np.asfortranarray(in_order), np.repeat(in_order, 2, axis=1)[:, ::2]
    views, values = (nbta.function(f, compiled=compiled) for f in (written, computed))
    for given in (in_order, turned, spaced, in_order, turned, in_order):
        assert values(given) == pytest.approx(computed(given))
        if given is in_order:
            assert views(given) == pytest.approx(written(given.copy()))
        else:
            with pytest.raises(nbta.InvalidArgumentError, match="may or may not be the same array"):
                views(given)


def of_parts(re, im):
    return complex(re, im)


def of_complex_parts(re, im):
    return complex(re, 2.0 + 1j * re)


def views_of_parts(re, im):
    z = np.zeros(2, dtype=complex)
    z.real[0], z.imag[0] = re, im
    z.imag[1] += im
    return z


def set_parts(re, im):
    z = np.ones(2, dtype=np.complex64)
    z.imag, z.real = im, re
    return z


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [of_parts, of_complex_parts, views_of_parts, set_parts])
def test_an_infinite_part_leaves_the_other_as_it_is(f, compiled):
    """`re + 1j * im` would multiply an infinite `im` by 0."""
    function = nbta.function(f, compiled=compiled)
    for re, im in itertools.product([1.0, -0.5, np.inf, np.nan], repeat=2):
        wanted, found = np.asarray(f(re, im)), np.asarray(function(re, im))
        assert wanted.dtype == found.dtype
        np.testing.assert_array_equal(found.real, wanted.real)
        np.testing.assert_array_equal(found.imag, wanted.imag)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_parts(compiled):
    def f(x):
        z = np.zeros(3, dtype=complex)
        for i in range(3):
            z[i] = complex(x[i], x[i + 1] ** 2)
        z.imag[1] += x[0]
        w = z * z
        return np.sum(w.real * w.imag)

    x = np.array([0.3, 0.5, 0.7, 0.9])
    check_grads(nbta.function(f, compiled=compiled), (x,), order=2)


def _by_a_run_step(x):
    a = np.concatenate((x, x, x))
    n = int(x[0]) + 1
    return a[1::n][0] * a[::-n][1] + a[n::-2].sum()


def _chosen_by_values_of_a_branch(x):
    a, total = np.concatenate((x, x, x)), 0.0
    view = a[2:5].copy()
    for k in range(9):
        view[1] += 0.1 * a[k]
        if view[1] > 1.0:
            view = a[k % 6 : k % 6 + 3].copy()
        total += view.sum()
    return total


def _of_an_array_of_the_block(x):
    found = None
    for k in range(12):
        y = x * (k + 1.0)
        if y[0] > 4.0:
            found = y[1:]
        if y[0] > 9.0:
            table = np.outer(y, x)
            last = table.T[1, :2]
            break
    else:
        last = x[:2]
    return np.sum(last) if found is None else np.sum(last * found)


@pytest.mark.parametrize(
    "function", [_by_a_run_step, _chosen_by_values_of_a_branch, _of_an_array_of_the_block]
)
@pytest.mark.parametrize("compiled", [False, True])
def test_views_that_the_run_knows(function, compiled):
    x = np.array([2.5, 0.7, 1.3])
    value, _ = nbta.value_and_grad(function, compiled=compiled)(x)
    np.testing.assert_allclose(value, function(x))
    check_grads(function, (x,), order=1)


def test_a_view_that_a_branch_chooses_and_a_loop_writes_is_refused_by_name():
    def program(x):
        a, total = np.concatenate((x, x, x)), 0.0
        view = a[2:5]
        for k in range(9):
            view[1] += 0.1 * a[k]
            if view[1] > 1.0:
                view = a[k % 6 : k % 6 + 3]
            total += view.sum()
        return total

    with pytest.raises(nbta.InvalidArgumentError, match=r"same array as view, which was changed"):
        nbta.value_and_grad(program)(np.array([2.5, 0.7, 1.3]))
