"""Numba's typed lists and dicts, made by a function or given to it, and arguments that grow."""

import numba
import numpy as np
import pytest
from numba.typed import Dict, List

import nbta
from nbta.testing import check_grads

X = np.array([0.3, -0.7, 1.2, 0.4])


def made_list(x):
    values = List()
    for v in x:
        values.append(v * v)
    total = 0.0
    for v in values:
        total += v * values[-1]
    return total + len(values)


def list_of_a_type(x):
    values, places = List.empty_list(numba.float64), List.empty_list(numba.types.intp, allocated=4)
    for i in range(x.shape[0]):
        if x[i] > 0.0:
            values.append(x[i] ** 3)
            places.append(i)
    return values[0] * values[len(values) - 1] + places[1] * x[0]


def list_of_arrays(x):
    rows = List([x, 2.0 * x])
    rows.append(x[::-1] * x)
    rows[0][1] = 3.0 * x[2]
    return rows[0] @ rows[2] + rows[1][0]


def made_dict(x):
    sums = Dict()
    for i in range(x.shape[0]):
        sums[i % 2] = sums.get(i % 2, 0.0) + x[i] ** 2
    return sums[0] - 2.0 * sums[1] + len(sums)


def dict_of_types(x):
    found = Dict.empty(key_type=numba.types.unicode_type, value_type=numba.types.float64, n_keys=2)
    found["a"] = x[0] * x[1]
    found["b"] = x[2]
    if "a" in found:
        found["b"] *= found["a"]
    return found["b"]


MAKING = [made_list, list_of_a_type, list_of_arrays, made_dict, dict_of_types]


@pytest.mark.parametrize("f", MAKING)
def test_a_function_that_makes_one(f):
    value, slopes = nbta.value_and_grad(numba.njit(f))(X.copy())
    assert value == pytest.approx(f(X.copy()), rel=1e-13)
    check_grads(f, (X,))
    plain = nbta.value_and_grad(f, compiled=False)(X.copy())
    np.testing.assert_allclose(slopes, plain[1], rtol=1e-13)


@pytest.mark.parametrize("dtype", [numba.float32, numba.int32, numba.uint8])
def test_types_to_which_numba_casts_are_refused(dtype):
    def f(x):
        values = List.empty_list(dtype)
        values.append(x)
        return values[0]

    def g(x):
        values = Dict.empty(numba.int64, dtype)
        values[0] = x
        return values[0]

    for each, kind in ((f, "list"), (g, "dict")):
        with pytest.raises(nbta.UnimplementedError, match=f"a typed {kind} of {dtype}, to which"):
            nbta.grad(each)(1.5)


def test_arguments():
    rows = List([np.array([1.0, 2.0]), np.array([3.0, 4.0, 5.0])])
    slopes = nbta.grad(lambda rows: (rows[0] ** 2).sum() * rows[1][2])(rows)
    np.testing.assert_allclose(slopes[0], [10.0, 20.0])
    np.testing.assert_allclose(slopes[1], [0.0, 0.0, 5.0])
    nested = List([rows])
    slopes = nbta.grad(lambda nested: nested[0][0] @ nested[0][0])(nested)
    np.testing.assert_allclose(slopes[0][0], [2.0, 4.0])
    slopes = nbta.grad(lambda v: v[0] * v[1] + sum(v))(List([2.0, 3.0]))
    np.testing.assert_allclose(slopes, [4.0, 3.0])
    found = Dict()
    found["rate"], found["start"] = 0.5, 3.0
    slopes = nbta.grad(lambda p: p["start"] * np.exp(-p["rate"]))(found)
    assert slopes == pytest.approx({"rate": -3.0 * np.exp(-0.5), "start": np.exp(-0.5)})


def appended(items, x):
    items.append(x)
    return items[-1] * items[0]


def taken_off(items, x):
    return items.pop() * x + items[0]


def emptied(items, x):
    first = items[0]
    items.clear()
    return first * x


def filled(items, x):
    for i in range(3):
        items.append(x * i)
    return sum(items)


def with_a_key(items, x):
    items["new"] = x
    return items["new"] * items["a"]


def without_a_key(items, x):
    return items.pop("a") * x


CHANGING = [(f, [2.0, 3.0]) for f in (appended, taken_off, emptied, filled)]
CHANGING += [(f, {"a": 2.0, "b": 3.0}) for f in (with_a_key, without_a_key)]


@pytest.mark.parametrize(("f", "items"), CHANGING, ids=lambda v: getattr(v, "__name__", ""))
def test_an_argument_that_a_function_fills_or_empties(f, items):
    """Neither changes how the arguments are counted, nor what the caller has."""
    expected = f(items.copy(), 1.5)
    for compiled in (False, True):
        value, slopes = nbta.value_and_grad(f, argnums=(0, 1), compiled=compiled)(items, 1.5)
        assert value == pytest.approx(expected, rel=1e-14)
        assert len(items) == 2
        keys = items.keys() if isinstance(items, dict) else range(2)
        for key in keys:
            high, low = items.copy(), items.copy()
            high[key] += 1e-6
            low[key] -= 1e-6
            assert slopes[0][key] == pytest.approx((f(high, 1.5) - f(low, 1.5)) / 2e-6, abs=1e-6)
        difference = (f(items.copy(), 1.5 + 1e-6) - f(items.copy(), 1.5 - 1e-6)) / 2e-6
        assert slopes[1] == pytest.approx(difference, abs=1e-6)
