"""Objects of all kinds that a function reads from outside, and that change between two calls."""

import numpy as np
import pytest

import nbta

CASES = []


def case(make):
    """A function that gives a function of a number, and changes of what that reads."""
    CASES.append(pytest.param(make, id=make.__name__))
    return make


def check(make, compiled):
    f, *changes = make()
    traced = nbta.value_and_grad(f, compiled=compiled)
    for change in (lambda: None, *changes):
        change()
        for x in (2.0, 3.0):
            value, slope = traced(x)
            np.testing.assert_allclose(value, f(x), rtol=1e-12)
            wanted = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
            np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-5)


# Arrays that are given another shape or dtype in place.


def shaped(shape, *shapes):
    array = np.arange(4.0).reshape(shape)
    return array, *(lambda to=to: setattr(array, "shape", to) for to in shapes)


@case
def rank():
    array, *changes = shaped(4, (2, 2), (4,), (1, 2, 2))
    return (lambda x: x * array.ndim + array.sum()), *changes


@case
def lengths():
    array, *changes = shaped((2, 2), (4, 1), (1, 4), (4,))
    return (lambda x: x * array.shape[0] + array[0].sum()), *changes


@case
def rows():
    array, *changes = shaped((2, 2), (4, 1), (4,), (2, 2))

    def f(x):
        total = 0.0
        for i in range(len(array)):
            total = total + array[i].sum() * x
        return total

    return f, *changes


@case
def broadcast():
    array, *changes = shaped((2, 2), (1, 4), (4, 1))
    return (lambda x: np.sum(x * array * array.T)), *changes


@case
def another_dtype():
    array = np.arange(4.0)
    kinds = (np.int64, np.uint64, np.uint8, np.float64)
    changes = [lambda to=to: setattr(array, "dtype", to) for to in kinds]
    return (lambda x: x + np.sum(array) * 1e-300 + array.dtype.itemsize * x), *changes


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("make", CASES)
def test_call_gives_what_python_gives_now(make, compiled):
    check(make, compiled)
