"""Looking at slots: what reads give, and nothing is marked."""

import numpy as np
import pytest

import nbta
from nbta.dtypes import code_of
from nbta.eager import Request
from nbta.runtime import python_calls
from nbta.runtime import request as rq
from nbta.runtime.store import FIELD


def look(ta, index):
    request = Request()
    request[rq.INDEX], request[rq.DTYPE] = index, code_of(ta.dtype)
    ta._run(rq.LOOK, request)
    return ta._result(request)[()]


def look_at_all(ta):
    request = Request()
    request[rq.DTYPE] = code_of(ta.dtype)
    ta._run(rq.LOOK_AT_ALL, request)
    return ta._result(request)


def states(ta):
    return ta._states().tolist()


def uniform(**options):
    options = {"dtype": "float64", "size": 3, "element_shape": (2,), **options}
    return nbta.TensorArray(**options).write(0, np.array([1.0, 2.0])).write(1, np.array([3.0, 4.0]))


def ragged(**options):
    ta = nbta.TensorArray("float64", 3, infer_shape=False, element_shape=None, **options)
    return ta.write(0, np.array([1.0, 2.0])).write(1, np.array([3.0, 4.0])).write(2, np.zeros(2))


def sums(**options):
    return uniform(clear_after_read=False).grad("gradients", **options).write(0, np.ones(2))


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("make", [uniform, ragged, sums])
def test_looks_mark_nothing(make, clear):
    ta = make(clear_after_read=clear)
    before = states(ta)
    once, everything = look(ta, -2), look_at_all(ta)
    np.testing.assert_array_equal(once, look(ta, len(ta) - 2))
    np.testing.assert_array_equal(everything[1], once)
    assert states(ta) == before
    np.testing.assert_array_equal(ta.stack(), everything)


def test_looks_at_what_may_change_are_copies():
    ta = uniform()
    empty, everything = look(ta, 2), look_at_all(ta)
    ta.write(2, np.array([5.0, 6.0]))
    assert (empty.tolist(), everything[2].tolist()) == ([0, 0], [0, 0])
    assert look(ta, 2).tolist() == [5, 6]
    g = sums()
    first, everything = look(g, 0), look_at_all(g)
    g.accumulate(0, np.ones(2))
    assert (first.tolist(), everything[0].tolist(), look(g, 0).tolist()) == ([1, 1], [1, 1], [2, 2])


def test_looks_outlive_reads_that_clear(monkeypatch):
    ta = uniform(clear_after_read=True)
    seen = look(ta, 0), look_at_all(ta)
    ta.read(0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"getitem on .*slot 0 was cleared"):
        look(ta, 0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"asarray on .*slot 0 was cleared"):
        look_at_all(ta)
    ta.close()
    assert (seen[0].tolist(), seen[1].tolist()) == ([1, 2], [[1, 2], [3, 4], [0, 0]])
    with pytest.raises(nbta.InvalidArgumentError, match="the array is closed"):
        look(ta, 0)


def test_what_is_not_cleared_is_not_copied():
    ta = uniform(clear_after_read=False).write(2, np.ones(2))
    assert np.shares_memory(look_at_all(ta), look(ta, 1))
    first = ta[0]
    assert np.shares_memory(first, look_at_all(ta))
    assert not first.flags.writeable
    assert (first.tolist(), ta[-1].tolist(), states(ta)) == ([1, 2], [1, 1], [1, 1, 1])
    kept = ragged(clear_after_read=False)
    assert np.shares_memory(look(kept, 0), look(kept, 0))


@pytest.mark.parametrize("index", [3, -4, 2**61, -(2**61)])
def test_looks_outside(index):
    with pytest.raises(nbta.OutOfRangeError, match=f"there is no slot {index}: .* 3 slots") as e:
        look(uniform(), index)
    assert isinstance(e.value, IndexError)
    assert isinstance(e.value, nbta.InvalidArgumentError)
    assert (e.value.reason, e.value.code) == ("no_slot", "OUT_OF_RANGE")


def test_looks_at_what_is_not_known():
    ta = nbta.TensorArray("float64", 2)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 1 was never written"):
        look(ta, 1)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was never written"):
        look_at_all(ta)
    with pytest.raises(nbta.UnimplementedError, match="nothing to stack"):
        look_at_all(nbta.TensorArray("float64"))
    assert look_at_all(nbta.TensorArray("float64", element_shape=(3,))).shape == (0, 3)
    unlike = ragged(dynamic_size=True).append(np.ones(3))
    assert look(unlike, -1).tolist() == [1, 1, 1]
    with pytest.raises(nbta.InvalidArgumentError, match=r"slot 3 has shape \(3,\)"):
        look_at_all(unlike)


@pytest.mark.parametrize("dtype", ["float16", "S5", "bool"])
def test_dtypes(dtype):
    values = np.array([1, 0, 1]).astype(dtype)
    ta = nbta.TensorArray(dtype, 3).unstack(values)
    np.testing.assert_array_equal(look_at_all(ta), values)
    if dtype == "float16":
        g = ta.grad("gradients").write(1, np.float16(0.5))
        assert look_at_all(g).tolist() == [0, 0.5, 0]
        assert look(g, 1).dtype == "float16"


def test_guards_stay_whole():
    for ta in (uniform(), ragged(), sums()):
        look(ta, 0), look_at_all(ta)
        assert python_calls.native(python_calls.guards_intact)(ta._address)
        assert ta._fields[FIELD.size] == 3
