"""Operators of a number and an array give arrays as NumPy's, which change through all their names.

The numbers are all kinds that a trace has: lengths, what is computed from them, comparisons of
them, items of arrays, and Python's and NumPy's own. `ndarray.item` is the way back to a number.
"""

import itertools
import operator

import numpy as np
import pytest

import nbta

X = np.array([3.0, 1.0, 2.0])
MATRIX = np.arange(6.0).reshape(2, 3) + 0.5

NUMBERS = {
    "a length": len,
    "an axis": lambda x: x.shape[0],
    "a size": lambda x: x.size + 1,
    "a quotient of lengths": lambda x: 1.5 / len(x),
    "a comparison of lengths": lambda x: len(x) > 2,
    "an item": lambda x: x[0],
    "a float": lambda x: float(x[1]),
    "an integer of the run": lambda x: int(x[2]),
    "a truth value of the run": lambda x: x[0] > 1.0,
    "Python's": lambda _: 2,
    "NumPy's": lambda _: np.float64(1.5),
}
FLOATS = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne",
]  # fmt: skip
INTEGERS = ["and_", "or_", "xor", "lshift", "rshift"]


def changed(compute, number, left):
    """Whether the result is an array, and what it holds after changes through other names."""

    def f(x):
        n = number(x)
        y = compute(n, x) if left else compute(x, n)
        z = y
        z[0] = 1
        part = y[1:]
        part[0] = 0
        kept = [y]
        kept[0][-1] = 1
        return y, isinstance(y, np.ndarray), isinstance(y, (int, float))

    return f


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("left", [True, False])
def test_results_of_operators_change_as_arrays_do(name, left):
    compute, x = getattr(operator, name), X if name in FLOATS else X.astype(np.int64)
    for kind, number in NUMBERS.items():
        f = changed(compute, number, left)
        try:
            expected = f(x)
        except TypeError:  # bits of a float
            continue
        found = nbta.function(f, compiled=False)(x)
        np.testing.assert_array_equal(found[0], expected[0], err_msg=kind)
        assert found[0].dtype == expected[0].dtype, kind
        assert found[1:] == expected[1:], kind


def scaled_by_its_length(x):
    step = 1.0 / len(x)
    y = step * x
    z = y
    z *= y  # y changes with it
    for i in range(len(x)):
        y[i] += i * x[i] ** 2
    return np.sum(y * z)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_of_arrays_scaled_by_their_length(compiled):
    value, gradient = nbta.value_and_grad(scaled_by_its_length, compiled=compiled)(X)
    assert value == pytest.approx(scaled_by_its_length(X), rel=1e-14)
    for i, h in itertools.product(range(3), [1e-6]):
        step = h * np.eye(3)[i]
        slope = (scaled_by_its_length(X + step) - scaled_by_its_length(X - step)) / (2 * h)
        assert gradient[i] == pytest.approx(slope, rel=1e-7)
    _, tangent = nbta.jvp(scaled_by_its_length, (X,), (np.cos(X),))
    assert tangent == pytest.approx(gradient @ np.cos(X), rel=1e-12)


ITEMS = {
    "in order": lambda x: x.item(4),
    "from the end": lambda x: x.item(-1),
    "by axes": lambda x: x.item(1, 2),
    "by a tuple": lambda x: x.item((1, 2)),
    "by a tuple in order": lambda x: x.item((4,)),
    "transposed": lambda x: x.T.item(1),
    "in Fortran's order": lambda x: np.asfortranarray(x).item(1),
    "of a row": lambda x: x[1].item(2) * x[0].item((1,)),
    "the only one": lambda x: x[:1, 1:2].item(),
    "of an array without axes": lambda x: np.array(x[0, 1]).item(0) + np.array(x[1, 1]).item(),
    "of a known array": lambda x: x[0, 0] * np.array(2, dtype=x.dtype).item(0),
    "of a matrix that the function knows": lambda x: x[0, 0] * np.arange(6).reshape(2, 3).item(4),
    "by an index of the run": lambda x: x.item(int(x[0, 1])),
    "in a loop": lambda x: sum(x.item(k) * k for k in range(x.size)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", ITEMS.values(), ids=ITEMS)
def test_items_are_numpys(f, compiled):
    value, gradient = nbta.value_and_grad(f, compiled=compiled)(MATRIX)
    assert value == f(MATRIX)
    assert np.shape(value) == ()
    for place in np.ndindex(MATRIX.shape):
        step = np.zeros_like(MATRIX)
        step[place] = 1e-6
        slope = (f(MATRIX + step) - f(MATRIX - step)) / 2e-6
        assert gradient[place] == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        (lambda x: x.item(), ValueError, "can only convert an array of size 1"),
        (lambda x: (x + 1.0)[0].item(), ValueError, "can only convert an array of size 1"),
        (lambda x: x.item(1, 2, 0), ValueError, "incorrect number of indices"),
        (lambda x: x.item(6), IndexError, "out of range"),
        (lambda x: x.item(0, 3), IndexError, "out of range"),
    ],
)
def test_items_that_are_not_there(f, kind, message):
    with pytest.raises(kind):
        f(MATRIX)
    with pytest.raises(kind, match=message):
        nbta.function(f)(MATRIX)
