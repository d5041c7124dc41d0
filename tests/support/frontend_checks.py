"""Functions that stand as their users wrote them, held to plain Python and central differences.

Differences are taken of the plain function, outside of nbta; those of second order of nbta's first
derivatives, which have been held to the former.
"""

import copy
import functools
import re

import numpy as np
import pytest
from frontend_refused import name_of, said
from fuzz.ways import in_python

import nbta
from nbta.structure import leaves, map_leaves, pack

STEP = 6e-6
value_and_grad = functools.partial(nbta.value_and_grad, convert=True)
grad = functools.partial(nbta.grad, convert=True)


def wrong_today(table, name):
    """Marks of a case that is in a table of what is wrong; it fails when it is not any more."""
    return [pytest.mark.xfail(strict=True, reason=table[name])] if name in table else []


def plain(f):
    """The Python function in a function of Numba's; others as they are."""
    return getattr(f, "py_func", f)


def chosen(arguments, argnums):
    return tuple(arguments[k] for k in argnums)


def with_chosen(arguments, argnums, values):
    """Fresh copies of the arguments, with these in their places."""
    given = list(copy.deepcopy(arguments))
    for k, value in zip(argnums, values, strict=True):
        given[k] = copy.deepcopy(value)
    return given


def moved(values, directions, step):
    """Structures, each leaf ``step`` times its direction further."""
    parts = zip(leaves(values), leaves(directions), strict=True)
    return pack(values, [_like(v, v + step * d) for v, d in parts])


def _like(value, found):
    return found if isinstance(value, np.ndarray) else float(found)


def directions(values, seed=0):
    """Random ones, like ``values``."""
    random = np.random.default_rng(seed)
    return map_leaves(lambda v: _like(v, random.uniform(0.5, 1.5, np.shape(v))), values)


def differences(f, argnums, arguments, step=STEP):
    """Derivatives of the plain function by each element of the arguments chosen."""
    values = chosen(arguments, argnums)
    flat, found = leaves(values), []
    for place, value in enumerate(flat):
        slope = np.zeros(np.shape(value))
        for index in np.ndindex(slope.shape):
            unit = [np.zeros(np.shape(v)) for v in flat]
            unit[place][index] = 1.0
            ends = [
                plain(f)(*with_chosen(arguments, argnums, moved(values, pack(values, unit), h)))
                for h in (step, -step)
            ]
            slope[index] = (ends[0] - ends[1]) / (2 * step)
        found.append(slope)
    return pack(values, found)


def hold(found, expected, what, rtol=1e-6, atol=1e-7):
    """Structures of numbers; differences are as exact as the largest of them."""
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected), what
    scale = max([1.0, *(float(np.max(np.abs(e), initial=0.0)) for e in expected)])
    for f, e in zip(found, expected, strict=True):
        assert np.shape(f) == np.shape(e), (what, np.shape(f), np.shape(e))
        np.testing.assert_allclose(f, e, rtol=0, atol=atol + rtol * scale, err_msg=what)


def hold_value(found, expected):
    """A value is that of Python up to the order of sums."""
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def check_first(f, argnums, arguments, compiled, gradient=None):
    """Value and gradient; the arguments stay as they are. Gives the traced function."""
    expected = plain(f)(*copy.deepcopy(arguments))
    gradient = gradient or value_and_grad(f, argnums, compiled=compiled)
    given = copy.deepcopy(arguments)
    value, slopes = gradient(*given)
    hold_value(value, expected)
    hold(slopes, differences(f, argnums, arguments), "gradient")
    for before, after in zip(leaves(arguments), leaves(tuple(given)), strict=True):
        np.testing.assert_array_equal(before, after, err_msg="arguments were changed")
    return gradient


def check_of_an_array(f, x, compiled):
    """A function of one array, all of whose loops Python may run."""
    with in_python():
        check_first(f, (0,), (x.copy(),), compiled)


def check_refused(f, x, words):
    """Its error says so, and names its file."""
    with pytest.raises(nbta.NbtaError) as failed:
        check_of_an_array(f, x, compiled=False)
    assert re.search(words, said(failed.value))
    assert name_of(f) in said(failed.value)


def second(f, argnums, arguments, compiled):
    """A function of the chosen arguments: weighted sum of all first derivatives, differentiated."""
    weights = directions(chosen(arguments, argnums), 1)

    def along(*values):
        given = list(copy.copy(arguments))
        for k, value in zip(argnums, values, strict=True):
            given[k] = value
        slopes = grad(f, argnums)(*given)
        parts = zip(leaves(slopes), leaves(weights), strict=True)
        return nbta.add_n([nbta.sum(s * w) for s, w in parts])

    places = tuple(range(len(argnums)))
    return nbta.grad(along, places, compiled=compiled)


def check_second(f, argnums, arguments, compiled):
    """The Hessian times a vector, against differences of the gradient along it."""
    values = chosen(arguments, argnums)
    weights = directions(values, 1)
    first = grad(f, argnums, compiled=False)
    ends = [
        first(*with_chosen(arguments, argnums, moved(values, weights, h))) for h in (STEP, -STEP)
    ]
    pairs = zip(leaves(ends[0]), leaves(ends[1]), strict=True)
    expected = pack(values, [(a - b) / (2 * STEP) for a, b in pairs])
    found = second(f, argnums, arguments, compiled)(*copy.deepcopy(values))
    hold(found, expected, "second derivatives", rtol=1e-5, atol=1e-6)
