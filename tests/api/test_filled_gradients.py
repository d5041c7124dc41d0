"""Gradients that are written to arrays of the caller's: ``out=``, from Python and in ``@njit``."""

import gc

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

import nbta


def distance(q, data):
    return nbta.sum((q - data) ** 2 * nbta.arange(q.shape[0]))


vg = nbta.value_and_grad(distance, compiled=True)
both = nbta.grad(distance, argnums=(0, 1), compiled=True)


@numba.njit
def into(q, data, out):
    return vg(q, data, out=out)


@numba.njit
def into_both(q, data, one, other):
    return both(q, data, out=(one, other))


@pytest.mark.parametrize("call", [into, lambda q, d, out: vg(q, d, out=out)])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
def test_the_gradient_is_in_the_array(call, n):
    q, data, out = np.arange(n) + 0.5, np.ones(n), np.empty(n)
    value, gradient = call(q, data, out)
    expected = vg(q, data)
    assert value == expected[0]
    np.testing.assert_array_equal(gradient, expected[1])
    np.testing.assert_array_equal(out, expected[1])
    assert np.may_share_memory(gradient, out) or not n


def test_structures_and_other_results():
    q, data = np.arange(3.0), np.ones(3)
    outs = np.empty(3), np.empty(3)
    for found in (into_both(q, data, *outs), both(q, data, out=outs)):
        for one, array, expected in zip(found, outs, both(q, data), strict=True):
            assert np.may_share_memory(one, array)
            np.testing.assert_array_equal(array, expected)
    by_name = nbta.grad(lambda p: nbta.sum(p["a"] ** 2) + p["b"] ** 3)
    out = {"a": np.empty(2), "b": np.empty(())}
    assert by_name({"a": np.ones(2), "b": 2.0}, out=out) is out
    assert out["b"] == 12.0
    with_more = nbta.grad(lambda x: (nbta.sum(x * x), x + 1), has_aux=True)
    out = np.empty(2)
    found = with_more(np.ones(2), out=out)
    assert found[0] is out
    np.testing.assert_array_equal(found[1], [2.0, 2.0])
    assert with_more(np.ones(2), out=None)[0] is not out
    twice = nbta.value_and_grad(lambda x: (nbta.sum(x * x), x + 1), has_aux=True)
    assert twice(np.ones(2), out=out)[1] is out
    # What the function itself calls `out` is the function's.
    own = nbta.grad(lambda x, out: nbta.sum(x * out))
    np.testing.assert_array_equal(own(np.ones(2), out=np.full(2, 3.0)), [3.0, 3.0])


def test_none_is_no_array_to_fill():
    q, data = np.arange(3.0), np.ones(3)
    compiled = numba.njit(lambda q, data, out: vg(q, data, out=out))
    for found in (compiled(q, data, None), vg(q, data, out=None)):
        np.testing.assert_array_equal(found[1], vg(q, data)[1])
    own = nbta.grad(lambda x, out: nbta.sum(x) if out is None else nbta.sum(x * out))
    compiled = numba.njit(lambda x, out: own(x, out=out))
    np.testing.assert_array_equal(compiled(q, None), np.ones(3))
    np.testing.assert_array_equal(compiled(q, data * 3.0), np.full(3, 3.0))


weights = np.arange(3.0) + 1.0


def test_an_argument_or_an_array_from_outside_may_be_filled():
    # Items that are read after others were written: the result is that of arrays of their own.
    mirrored = nbta.grad(lambda x: nbta.sum(x * x[::-1] * nbta.arange(4.0)), compiled=True)
    compiled = numba.njit(lambda x, out: mirrored(x, out=out))
    memory = np.arange(6.0)
    for k in range(3):
        x, out = memory.copy(), np.empty(4)
        expected = mirrored(x[:4])
        compiled(x[:4], x[k : k + 4])
        np.testing.assert_array_equal(x[k : k + 4], expected)
        np.testing.assert_array_equal(x[:k], memory[:k])
        np.testing.assert_array_equal(mirrored(memory[:4], out=out), expected)
    outer = nbta.grad(lambda x: nbta.sum(x * weights * weights[::-1]), compiled=True)
    expected = outer(np.ones(3))
    numba.njit(lambda x, out: outer(x, out=out))(np.ones(3), weights)
    np.testing.assert_array_equal(weights, expected)


def test_arrays_that_do_not_fit():
    q, data = np.arange(4.0), np.ones(4)
    for call in (into, lambda q, d, out: vg(q, d, out=out)):
        out = np.full(3, 7.0)
        with pytest.raises(nbta.InvalidArgumentError, match="out"):
            call(q, data, out)
        assert (out == 7.0).all()
    for call in (into_both, lambda q, d, *outs: both(q, d, out=outs)):
        out = np.full(4, 7.0)
        with pytest.raises(nbta.InvalidArgumentError, match="share memory"):
            call(q, data, out, out)
        assert (out == 7.0).all()
    frozen = np.empty(4)
    frozen.flags.writeable = False
    kinds = np.empty(4, np.float32), np.empty(8)[::2], np.empty((4, 1)), frozen
    for out in kinds:
        with pytest.raises(TypingError, match=r"give array\(float64, 1d, C\), which may be"):
            into(q, data, out)
        with pytest.raises(nbta.InvalidArgumentError, match="; give "):
            vg(q, data, out=out)
    with pytest.raises(nbta.InvalidArgumentError, match="of NumPy's"):
        vg(q, data, out=3.0)
    with pytest.raises(nbta.InvalidArgumentError, match="the gradient's structure"):
        vg(q, data, out=(np.empty(4),))
    number = nbta.grad(lambda x: x * x)
    with pytest.raises(TypingError, match="the gradient there is a number"):
        numba.njit(lambda x, out: number(x, out=out))(2.0, np.empty(1))
    traced = nbta.function(lambda q: vg(q, data, out=np.empty(4))[1])
    with pytest.raises(nbta.InvalidArgumentError, match="fills no arrays"):
        traced(q)


def test_calls_from_python_write_to_the_arrays_themselves(monkeypatch):
    def loss(p, x, scale):
        return nbta.sum(p["a"] * x) * scale * p["b"]

    g = nbta.value_and_grad(loss, argnums=(0, 1), compiled=True)
    monkeypatch.setattr("nbta.api.tracing.fill", None)  # which copies
    for n in (3, 7, 2):
        p, x = {"a": np.arange(n) + 1.0, "b": 2.0}, np.arange(n) * 0.5
        value, gradient = g(p, x, 3.0)
        out = {"a": np.empty(n), "b": np.empty(())}, np.empty(n)
        found = g(p, x, 3.0, out=out)
        assert found[0] == value
        assert found[1] is out
        np.testing.assert_array_equal(out[0]["a"], gradient[0]["a"])
        np.testing.assert_array_equal(out[1], gradient[1])
        assert out[0]["b"] == gradient[0]["b"]
    # Other results may have lengths that the last call's had not.
    positive = nbta.grad(lambda x: (nbta.sum(x * x), x[x > 0] + 0.0), has_aux=True, compiled=True)
    for x in (np.ones(4), np.ones(4), -np.ones(4), np.arange(5.0), np.ones(2)):
        _, kept = positive(x)
        out = np.empty(len(x))
        found = positive(x, out=out)
        assert found[0] is out
        np.testing.assert_array_equal(out, 2 * x)
        np.testing.assert_array_equal(found[1], kept)


def test_memory_that_arguments_share_is_copied_from_python():
    mirrored = nbta.grad(lambda x: nbta.sum(x * x[::-1] * nbta.arange(4.0)), compiled=True)
    memory = np.arange(8.0)
    expected = {k: mirrored(memory[k : k + 4]) for k in range(5)}
    for k in range(5):
        for j in range(5):
            x = memory.copy()
            assert mirrored(x[k : k + 4], out=x[j : j + 4]) is not None
            np.testing.assert_array_equal(x[j : j + 4], expected[k])
        x = memory[k : k + 4].copy()
        mirrored(x, out=x)
        np.testing.assert_array_equal(x, expected[k])
    # Memory that no array owns, so that nothing but addresses tell.
    x = memory[:4].copy()
    hidden = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_double * 4).from_address(x.ctypes.data))
    mirrored(x, out=hidden)
    np.testing.assert_array_equal(x, expected[0])


def test_nothing_is_left_behind():
    q, data, out = np.arange(4.0), np.ones(4), np.empty(4)

    def all_ways():
        into(q, data, out)
        into(q.copy(), data, data.copy())
        into(out, data, out)  # (Numba drops no reference of a function that raises)

    def left():
        for _ in range(20):
            all_ways()
        gc.collect()
        stats = rtsys.get_allocation_stats()
        return stats.alloc - stats.free

    was_on = _nrt_python.memsys_stats_enabled()
    _nrt_python.memsys_enable_stats()
    try:
        before = left()
        assert left() == before
    finally:
        if not was_on:
            _nrt_python.memsys_disable_stats()
