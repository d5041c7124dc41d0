"""Lengths that values decide, of more items than there can be: one error in both executors."""

import sys

import numba
import numpy as np
import pytest

import nbta

#: Functions of a length; what they make is added up as it is, and after an operation in memory.
MAKERS = {
    "arange": lambda n: nbta.arange(n) * 1.0,
    "zeros": lambda n: nbta.zeros((n,)),
    "ones": lambda n: nbta.ones((n, 2)),
    "square": lambda n: nbta.ones((n, n)),
    "cube": lambda n: nbta.ones((n, 3, n, n)),
    "broadcast_to": lambda n: nbta.broadcast_to(nbta.reshape(n * 1.0, (1, 1)), (n, n)),
    "one_hot": lambda n: nbta.one_hot(nbta.arange(5), n),
    "tile": lambda n: nbta.zeros((n,)) + nbta.zeros((n, 1)),
}
USES = {
    "sum": nbta.sum,
    "item": lambda x: nbta.sum(nbta.sin(x)[0]),
    "size": lambda x: nbta.size(x) * 1.0,
}


@pytest.fixture(scope="module")
def functions():
    return {}


@pytest.mark.slow_but_every(48)
@pytest.mark.parametrize("n", [2**32, 2**61, 2**62, 2**63 - 1])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("maker", MAKERS)
def test_more_items_than_memory_are_one_error(maker, use, n, functions):
    """Where n items fit, there is no error, and the other executor need not hold them."""

    def program(n):
        return USES[use](MAKERS[maker](n))

    for compiled in (True, False):
        functions.setdefault((maker, use, compiled), nbta.function(program, compiled=compiled))
    compiled, reference = (functions[maker, use, way] for way in (True, False))
    np.testing.assert_allclose(compiled(5), reference(5), rtol=1e-14)
    if n == 2**32 and maker not in ("square", "cube", "broadcast_to", "tile"):
        return
    with pytest.raises(nbta.NbtaError) as expected:
        reference(n)
    with pytest.raises(nbta.NbtaError) as found:
        compiled(n)
    assert (type(found.value), str(found.value)) == (type(expected.value), str(expected.value))
    np.testing.assert_allclose(compiled(7), reference(7), rtol=1e-14)


def test_small_inputs_whose_broadcast_has_no_memory():
    def total(x):
        return nbta.sum(x[:, None, None] * x[None, :, None] * x[None, None, :])

    compiled = nbta.function(total, compiled=True)
    assert compiled(np.ones(3)) == 27.0
    with pytest.raises(nbta.NbtaError):
        compiled(np.ones(2**22))


@numba.njit
def size_in_njit(ta):
    return ta.size()


@numba.njit
def length_in_njit(ta):
    return len(ta)


def size_in_graph(n):
    return nbta.TensorArray("bool", n, element_shape=()).size()


@pytest.mark.skipif(sys.maxsize < 2**32, reason="no room for the slots")
def test_sizes_past_int32_are_one_error_and_lengths_are_exact():
    """Pages of slots that nobody touches take no memory."""
    large, full = (nbta.TensorArray("bool", n, element_shape=()) for n in (2**31, 2**31 - 1))
    for size, length in ((nbta.TensorArray.size, len), (size_in_njit, length_in_njit)):
        assert [length(ta) for ta in (large, full)] == [2**31, 2**31 - 1]
        assert size(full) == 2**31 - 1
        with pytest.raises(nbta.InvalidArgumentError, match="has 2147483648 slots") as caught:
            size(large)
        assert caught.value.reason == "size_int32"


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_sizes_past_int32_in_graphs_are_the_same_error(compiled):
    """Compiled code fills the buffer, of 2 GiB."""
    graph = nbta.function(size_in_graph, compiled=compiled)
    assert graph(7) == 7
    with pytest.raises(nbta.InvalidArgumentError, match="has 2147483648 slots"):
        graph(2**31)
