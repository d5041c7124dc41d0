"""Methods of universal functions: NumPy's values, dtypes and shapes, with gradients."""

import functools
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import nbta
from nbta.errors import NbtaError
from nbta.structure import leaves
from nbta.testing import check_grads

sys.path.insert(0, str(Path(__file__).parents[2] / "docs"))
import numpy_table as table

BINARY = {name: function for name, function in table.functions("numpy").items()
          if isinstance(function, np.ufunc) and function.signature is None
          and function.nin == 2 and function.nout == 1}  # fmt: skip
UNARY = {name: function for name, function in table.functions("numpy").items()
         if isinstance(function, np.ufunc) and function.nin == function.nout == 1}  # fmt: skip
X = np.array([[1.3, 0.6, 0.9, 1.7], [0.8, 1.9, 1.1, 0.7], [1.2, 1.6, 0.55, 1.4]])
N = np.array([[6, 3, 5], [2, 7, 1]])


def changed(name):
    """What a function leaves of a copy of an array whose items it changes."""

    def run(f, x, key, *values):
        y = x.copy()
        getattr(f, name)(y, key, *values)
        return y

    return run


at = changed("at")
CALLS = {
    "reduce": lambda f, x: f.reduce(x),
    "reduce along the last axis": lambda f, x: f.reduce(x, axis=-1),
    "reduce with all options": lambda f, x: f.reduce(
        x, 1, x.dtype, keepdims=True, initial=2, where=x > 1
    ),
    "reduce no axis": lambda f, x: f.reduce(x, axis=()),
    "reduce all axes": lambda f, x: f.reduce(x, axis=None),
    "reduce one number": lambda f, x: f.reduce(x[0, 0]),
    "reduce from the first": lambda f, x: f.reduce(x, initial=None),
    "reduce a list": lambda f, x: f.reduce([x[0, 0], x[1, 2], x[1, 1]]),
    "accumulate": lambda f, x: f.accumulate(x),
    "accumulate along the last axis": lambda f, x: f.accumulate(x, -1, x.dtype),
    "reduceat": lambda f, x: f.reduceat(x, [0, 2, 1, 1], axis=1),
    "outer": lambda f, x: f.outer(x[0, :2], x),
    "at": lambda f, x: at(f, x, [0, 1, 0], 2),
    "at with axes": lambda f, x: at(f, x, ([0, 1, 0], [1, 1, 1]), x[0, :3]),
    "at of a row": lambda f, x: at(f, x[0], [0, 2, 0, -1], x[1, :1]),
    "at by a mask": lambda f, x: at(f, x, x > 1, x[0, 1]),
}


def quietly(call):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call()


def assert_same(found, wanted, said):
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        assert np.shape(one) == np.shape(other), said
        assert np.asarray(one).dtype == np.asarray(other).dtype, said
        tol = 2e-3 if np.asarray(other).dtype.itemsize < 4 else 1e-6
        np.testing.assert_allclose(one, other, rtol=tol, atol=1e-12, err_msg=said)


def folds(function, row):
    """Whether NumPy reduces a row item by item.

    For `arctan2` and `power` of float64 it does not on processors with AVX-512 (NumPy 2.4.6): its
    vector instructions take items together, as of a function for which the order does not matter.
    """
    try:
        found = quietly(lambda: function.reduce(row))
        return np.allclose(found, quietly(lambda: functools.reduce(function, row)), equal_nan=True)
    except Exception:  # it has no such method
        return True


def taken(function, x):
    """The calls that NumPy takes of a universal function, and what they give."""
    found, is_right = {}, folds(function, x[0])
    for name, call in CALLS.items():
        if name.startswith("reduce") and not is_right:
            continue
        try:
            found[name] = quietly(lambda call=call: call(function, x))
        except Exception:  # whatever it says, it does not
            continue
    return found


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("code", "dl?b")
@pytest.mark.parametrize("name", BINARY)
def test_each_call_gives_numpys(name, code):
    function, x = BINARY[name], (X if code == "d" else N).astype(code)
    for said, wanted in taken(function, x).items():
        call = CALLS[said]
        try:
            found = quietly(lambda call=call: nbta.function(
                lambda x: call(function, x), compiled=False)(x))  # fmt: skip
        except NbtaError as error:
            text = str(error)
            reasons = f"np.{name}", "does not fit into", "floats are not taken apart"
            assert any(reason in text for reason in reasons), f"{said}: {text}"
            continue
        assert_same(found, wanted, f"{name}.{said} of {code}")


#: Those with a slope, and calls with it that are of different kinds.
SMOOTH = [name for name in BINARY
          if name not in ("nextafter", "ldexp", "floor_divide", "heaviside")
          and np.result_type(BINARY[name].types[-1][-1]).kind in "fcO"
          and isinstance(taken(BINARY[name], X).get("accumulate"), np.ndarray)
          and taken(BINARY[name], X)["accumulate"].dtype.kind == "f"]  # fmt: skip
SLOPED = [
    "reduce with all options", "reduce", "accumulate along the last axis", "reduceat",
    "at with axes",
]  # fmt: skip


@pytest.mark.slow_but_every(20)
@pytest.mark.parametrize("name", BINARY)
def test_compiled_calls(name):
    function = BINARY[name]
    wanted = taken(function, X)
    if not wanted or name in ("nextafter", "ldexp"):
        return
    calls = [CALLS[said] for said in wanted]
    found = quietly(lambda: nbta.function(lambda x: [call(function, x) for call in calls])(X))
    assert_same(found, list(wanted.values()), name)


@pytest.mark.slow_but_every(20)
@pytest.mark.parametrize("said", SLOPED)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives(name, said):
    function, call = BINARY[name], CALLS[said]
    check_grads(lambda x: call(function, x), (X,), rtol=1e-5)


@pytest.mark.slow_but_every(20)
@pytest.mark.parametrize("said", SLOPED)
@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_operation_by_operation(name, said):
    function, call = BINARY[name], CALLS[said]
    check_grads(
        nbta.function(lambda x: call(function, x), compiled=False), (X,), rtol=1e-5, order=1
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_items_of_one_argument(compiled):
    def run(x):
        return [at(f, x, [0, 2, 0]) for f in (np.negative, np.sqrt, np.exp)]

    assert_same(nbta.function(run, compiled=compiled)(X), run(X), "at")
    check_grads(run, (X,))


@pytest.mark.parametrize("name", UNARY)
def test_items_of_each_function(name):
    function = UNARY[name]
    try:
        wanted = quietly(lambda: at(function, X[0] - 0.5, [0, 2, 2]))
    except TypeError:  # it is of integers
        return
    traced = nbta.function(lambda x: at(function, x[0] - 0.5, [0, 2, 2]), compiled=False)
    if name == "spacing":
        with pytest.raises(NbtaError, match="floats are not taken apart"):
            traced(X)
        return
    assert_same(traced(X), wanted, name)


@pytest.mark.parametrize("compiled", [False, True])
def test_places_and_lengths_that_the_run_tells(compiled):
    def run(x, places):
        table = np.zeros(4)
        np.maximum.at(table, places, x[0])
        for k in range(x.shape[0]):
            np.multiply.at(table, places[::2], x[k, ::2])
        chosen = x[x > 1]
        return table, np.subtract.reduce(chosen), np.divide.reduceat(x[1], places % 2), \
            np.hypot.accumulate(chosen)  # fmt: skip

    places = np.array([1, 0, 3, 1])
    assert_same(nbta.function(run, compiled=compiled)(X, places), run(X, places), "places")
    check_grads(lambda x: run(x, places), (X,))


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_to_fill(compiled):
    def run(x):
        out, low = np.zeros(4), np.zeros((3, 4), np.float32)
        found = np.subtract.reduce(x, out=out)
        found[0] = 7.0
        np.divide.accumulate(x, 0, None, low)
        return out, found, low, np.power.outer(x[0], x[1], dtype=np.float32)

    assert_same(nbta.function(run, compiled=compiled)(X), run(X), "out")


@pytest.mark.parametrize("compiled", [False, True])
def test_sums_at_places_of_a_wider_dtype_are_rounded_one_by_one(compiled):
    def run(x):
        sums = np.ones(3, np.float32) * np.float32(0.3)
        np.add.at(sums, [k % 3 for k in range(40)], x)
        np.subtract.at(sums, 1, 0.1)
        return sums

    values = np.random.default_rng(0).normal(size=40)
    np.testing.assert_array_equal(nbta.function(run, compiled=compiled)(values), run(values))
    slope = nbta.grad(lambda x: np.sum(run(x)[1:]), compiled=compiled)(values)
    np.testing.assert_array_equal(slope, [k % 3 > 0 for k in range(40)])


WRONG = {
    "several axes": (ValueError, lambda x: np.subtract.reduce(x, axis=(0, 1))),
    "where alone": (ValueError, lambda x: np.subtract.reduce(x, where=x > 1)),
    "nothing": (ValueError, lambda x: np.subtract.reduce(x[x > 9])),
    "no loop": (TypeError, lambda x: np.less.reduce(x)),
    "one axis": ((TypeError, ValueError), lambda x: np.subtract.accumulate(x, axis=None)),
    "a number": (TypeError, lambda x: np.subtract.accumulate(x[0, 0])),
    "an index": (IndexError, lambda x: np.subtract.reduceat(x, [0, 3])),
    "an argument": (TypeError, lambda x: np.subtract.reduce(x, axes=0)),
    "values": (ValueError, lambda x: np.subtract.at(x.copy(), [0])),
    "axis": (ValueError, lambda x: np.subtract.reduce(x, 2)),
    "one argument": (ValueError, lambda x: np.exp.outer(x, x)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_numpy_refuses_is_an_error(name):
    kind, function = WRONG[name]
    with pytest.raises(kind):
        function(X)
    with pytest.raises((TypeError, ValueError, IndexError)):
        nbta.function(function, compiled=False)(X)


def test_what_numpy_refuses_once_it_found_a_loop_for_it():
    # From the first comparison of a bool with a number on, NumPy raises another kind of TypeError.
    np.less(np.array([True]), np.array([1.0]))
    with pytest.raises(TypeError, match=r"np\.less\.reduce"):
        nbta.function(lambda x: np.less.reduce(x), compiled=False)(X)


def test_the_value_to_begin_with_has_the_dtype_of_the_array():
    def run(x):
        return [f(x, 0, initial=2.5, where=x > 2) for f in (np.max, np.min)]

    assert_same(nbta.function(run)(N), run(N), "initial")
    given = nbta.function(lambda x: np.max(x > 2, initial=3))(N)
    assert given.dtype == bool
