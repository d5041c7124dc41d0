"""Traced functions refuse writes that would not run although something counts on them.

Unmodified functions keep such writes, as Python does (`tests/frontend/test_tensor_arrays.py`);
those that are traced as they were, and bodies of loops, take a write for a new value.
"""

import pytest

import nbta


def scalars(size):
    return nbta.TensorArray("float64", size=size, element_shape=())


def forgets(x):
    ta = scalars(2)
    ta.write(0, x)
    return nbta.sum(ta.stack())


def forgets_in_a_loop(x):
    ta = scalars(3)

    def body(i, y):
        ta.write(i, y)
        return i + 1, y * 2

    nbta.while_loop(lambda i, y: i < 3, body, (0, x))
    return nbta.sum(ta.stack())


@pytest.mark.parametrize("program", [forgets, forgets_in_a_loop])
def test_a_forgotten_assignment_is_an_error_where_something_counts_on_the_write(program):
    for traced in (nbta.function(program, convert=False), nbta.grad(program, convert=False)):
        with pytest.raises(nbta.InvalidArgumentError, match=r"TensorArrayWriteV3.* is dropped"):
            traced(2.0)


def test_a_write_that_nothing_counts_on_may_be_dropped():
    def reads_before(x):
        ta = scalars(2).write(0, x)
        y = ta.read(0)
        ta.write(1, y)
        return y

    assert nbta.function(reads_before, convert=False)(2.0) == 2
    array = nbta.function(lambda x: scalars(1).write(0, x))(3.0)
    assert array.read(0) == 3


def test_a_write_that_is_forgotten_before_others_is_missed():
    def program(x):
        ta = scalars(2)
        ta.write(0, x)
        ta = ta.write(1, x)
        return nbta.sum(ta.stack())

    with pytest.raises(nbta.InvalidArgumentError, match="is dropped"):
        nbta.function(program, convert=False)(2.0)
    assert nbta.function(program)(2.0) == program(2.0) == 4


def test_an_older_name_may_be_read_whatever_is_dropped():
    def program(x):
        old = nbta.TensorArray("float64", dynamic_size=True, element_shape=()).append(x)
        old.append(x).append(x)  # nobody looks for these
        new = old.write(1, x)
        new.append(x)
        return old.read(0)

    assert nbta.function(program, convert=False)(2.0) == 2
    for kept in (program, nbta.function(program)):
        with pytest.raises(nbta.InvalidArgumentError, match="slot 1 holds a value"):
            kept(2.0)
