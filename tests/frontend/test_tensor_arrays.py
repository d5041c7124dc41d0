"""Tensor arrays in unmodified functions: what is written stays, as in eager ones."""

import numba
import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

X = np.linspace(0.2, 1.4, 12)


def growing():
    return nbta.TensorArray("float64", 0, dynamic_size=True, clear_after_read=False)


def in_a_loop(x):
    ta = nbta.TensorArray("float64", len(x))
    for i in range(len(x)):
        ta.write(i, x[i] * x[0])
    return nbta.sum(ta.stack() * x)


def in_a_branch_of_a_loop(x):
    ta = growing()
    ta.write(0, x[0])
    for i in range(1, len(x)):
        if x[i] > 0.5:
            ta.append(x[i] * ta.read(0))
    return nbta.sum(ta.stack() * ta.stack())


def by_a_callee_and_another_name(x):
    ta = growing()
    other = ta

    def fill(array, i):
        array.append(x[i] * 2.0)
        return array

    for i in range(12):
        fill(ta, i)
    return nbta.sum(other.stack() ** 2)


def beside_loops_of_nbta(x):
    ta = growing()
    ta.append(x[0])
    for _ in range(9):
        _, ta = nbta.while_loop(
            lambda i, t: i < 3, lambda i, t: (i + 1, t.append(x[i] * x[i])), (0, ta)
        )
    for i in range(len(x)):
        ta = ta.append(x[i])
    return nbta.sum(ta.stack() ** 2)


def another_one_in_a_branch(x):
    ta = nbta.TensorArray("float64", 1)
    if x[0] > 5.0:
        ta = nbta.TensorArray("float64", 1).write(0, x[1])
    else:
        ta.write(0, x[2] * x[2])
    return nbta.sum(ta.stack()) * isinstance(ta, nbta.TensorArray)


def two_arrays(x):
    one, two = growing(), growing()
    for i in range(len(x)):
        one.write(i, x[i])
        if i > 2:
            two.append(one.read(i - 2) * x[i])
    return nbta.sum(two.stack())


def in_an_attribute(x):
    history = History()
    for v in x:
        history.note(v * v)
    return nbta.sum(history.values.stack() * x)


class History:
    def __init__(self):
        self.values = growing()

    def note(self, value):
        self.values.append(value)


EACH = (
    in_a_loop, in_a_branch_of_a_loop, by_a_callee_and_another_name, beside_loops_of_nbta,
    another_one_in_a_branch, two_arrays, in_an_attribute,
)  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", EACH)
def test_what_is_written_stays(f, compiled):
    """As in eager arrays, which Python runs the function on."""
    with in_python():
        value, slope = nbta.value_and_grad(f, compiled=compiled)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    h = 1e-6
    for k, unit in enumerate(np.eye(len(X))):
        expected = (f(X + h * unit) - f(X - h * unit)) / (2 * h)
        assert slope[k] == pytest.approx(expected, abs=1e-7)


def written_twice(x):
    ta = nbta.TensorArray("float64", 1)
    for _ in range(12):
        ta.write(0, x[1])
    return ta.read(0)


@pytest.mark.parametrize("compiled", [False, True])
def test_slots_are_written_once(compiled):
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 holds a value") as failed:
        nbta.function(written_twice, compiled=compiled)(X)
    line = written_twice.__code__.co_firstlineno + 3
    assert any(f"{__file__}:{line}" in note for note in failed.value.__notes__)


def dropped_in_a_body(x):
    ta = nbta.TensorArray("float64", 12)
    nbta.while_loop(lambda i: i < 3, lambda i: (ta.write(i, x[i]), i + 1)[1:], (0,))
    return nbta.sum(ta.stack())


def test_functions_given_to_loops_of_nbta_give_back_what_they_write():
    with pytest.raises(nbta.InvalidArgumentError, match="assign the result"):
        nbta.function(dropped_in_a_body)(X)


@numba.njit
def queue(x):
    """Items that append others, until none is left."""
    ta = nbta.TensorArray(np.float64, dynamic_size=True, clear_after_read=False, element_shape=())
    ta.append(x)
    total, i = 0.0, 0
    while i < len(ta):
        value = ta.read(i)
        if value > 0.3:
            ta.append(value * 0.5)
            ta.append(value * value)
        total += value * len(ta)
        i += 1
    return total


@pytest.mark.parametrize("compiled", [False, True])
def test_the_length_of_an_array_is_that_of_the_run(compiled):
    value, slope = nbta.value_and_grad(queue, compiled=compiled)(0.9)
    assert value == queue(0.9)
    np.testing.assert_allclose(slope, (queue(0.9 + 1e-6) - queue(0.9 - 1e-6)) / 2e-6, rtol=1e-7)
    length = nbta.function(lambda x: len(growing().append(x)), compiled=compiled)(1.0)
    assert (length, np.asarray(length).dtype) == (1, np.int64)
