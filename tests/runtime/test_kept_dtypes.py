"""Dtype objects that nobody but an array holds, in arrays that go through compiled code."""

import gc
import pickle

import numpy as np
import pytest
from numba import njit

import nbta

TWO_FIELDS = [("a", "f8"), ("b", "i8")]
#: What makes a dtype object that nobody else holds, and values of dtypes that are not it.
DTYPES = {
    ">f8": (lambda: np.dtype(">f8"), [">f8", "<f8", "<i8", "M8[s]", "S8"]),
    "pickled": (lambda: pickle.loads(pickle.dumps(np.dtype("f8"))), [">f8", "<f8", "m8[s]"]),
    "S64": (lambda: np.dtype("S64"), ["S4", "S64", ">S64", "U16", "S65"]),
    "U5": (lambda: np.dtype(">U5"), [">U5", "<U5", "U2", "S20"]),
    "dates": (lambda: np.dtype("M8[s]"), ["M8[s]", ">M8[s]", "M8[ms]", "m8[s]", "f8"]),
    "record": (
        lambda: np.dtype(TWO_FIELDS),
        [TWO_FIELDS, [("b", "i8"), ("a", "f8")], [("a", "i8"), ("b", "f8")], [("a", ">f8")]],
    ),
}
every = pytest.mark.parametrize("name", DTYPES)


@njit(cache=True)
def through(ta):
    return ta


@njit(cache=True)
def made():
    return nbta.TensorArray("float64", 0, True, element_shape=(), clear_after_read=False)


def array(dtype):
    return nbta.TensorArray(dtype, 0, True, element_shape=(2,), clear_after_read=False)


def value_of(dtype, seed):
    """Two items whose bytes are all different, but for those of strings."""
    dtype = np.dtype(dtype)
    if dtype.kind in "SU":
        return np.array(["ab", "c"[: seed % 2]], dtype)
    if dtype.names:
        value = np.zeros(2, dtype)
        for place, name in enumerate(dtype.names):
            value[name] = seed + place, 7 + place
        return value
    return np.array([seed, 3 * seed + 1]).astype(dtype)


def tried(ta, value):
    """Write a value and read it back; a value of another dtype is refused. Whether it was written.

    A gradient array adds values up in its only slot.
    """
    put = (lambda: ta.write(0, value)) if ta.is_gradient else (lambda: ta.append(value))
    if value.dtype.newbyteorder("=") != ta.dtype:
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            put()
        assert caught.value.reason == "write_dtype"
        return False
    put()
    if not ta.is_gradient:
        found = ta.read(len(ta) - 1)
        assert found.dtype == ta.dtype
        assert found.tolist() == value.tolist()
    return True


@pytest.mark.slow_but_every(6)
@every
def test_a_dtype_that_nobody_else_holds(name):
    """The store kept the address of a dtype object, and others came to lie there."""
    make, others = DTYPES[name]
    written = 0
    for k in range(100):
        ta = through(array(make()))
        if k % 10 == 0:
            gc.collect()
        for other in others:
            values = [value_of(other, seed) for seed in range(1, 4)]  # several dtype objects
            written += sum(tried(ta, value) for value in values)
        assert ta.dtype == make().newbyteorder("=")
    assert written >= 300


@pytest.mark.slow
@every
def test_gradients_copies_and_lanes_hold_it_too(name):
    make, others = DTYPES[name]
    for _ in range(30):
        ta = through(array(make()))
        parts = [ta.identity(), through(ta), ta.lanes(1).take(0)]
        if ta.dtype.kind == "f":
            parts.append(through(through(array(make())).append(np.zeros(2)).grad("s")))
        del ta
        gc.collect()
        values = [value_of(other, 2) for other in others]
        assert sum(tried(part, value) for part in parts for value in values)
        if parts[-1].is_gradient:
            fitting = sum(value.dtype.newbyteorder("=") == parts[-1].dtype for value in values)
            assert parts[-1].read(0).tolist() == [2.0 * fitting, 7.0 * fitting]


def test_an_array_that_compiled_code_made():
    for _ in range(100):
        ta = made()
        assert not tried(ta.append(1.5), np.array(1, ">i8"))
        ta.append(np.array(2.5, ">f8")).append(np.array(3.5))
        assert ta.stack().tolist() == [1.5, 2.5, 3.5]
        assert ta.dtype is np.dtype("f8")  # by which the fast path of writes knows it


def test_the_names_of_fields_are_an_arrays_own():
    """Numba keeps one dtype object for all arrays that a compiled function hands out."""
    first, second = (through(array(np.dtype(TWO_FIELDS))) for _ in range(2))
    first.dtype.names = ("x", "y")
    assert second.dtype.names == ("a", "b")
    assert through(array(np.dtype(TWO_FIELDS))).dtype.names == ("a", "b")


@pytest.mark.parametrize("dtype", [">f8", "<i4", "bool", "complex64", "float16"])
def test_arrays_of_numbers_have_the_dtype_object_that_numpy_has(dtype):
    usual = np.dtype(np.dtype(dtype).type)
    for other in (np.dtype(dtype), pickle.loads(pickle.dumps(np.dtype(dtype)))):
        assert nbta.TensorArray(other).dtype is usual


def test_what_a_dtype_says_besides_is_kept():
    dtype = np.dtype("f8", metadata={"unit": "m"})
    assert nbta.TensorArray(dtype).dtype.metadata == {"unit": "m"}
    assert nbta.TensorArray("float64").dtype.metadata is None
    assert nbta.TensorArray("q").dtype.char == "q"


@pytest.mark.parametrize("dtype", ["<U3", "S3"])
def test_graphs_write_texts_shorter_than_the_dtype(dtype):
    values = np.array(["a", "abc", ""], dtype)

    @nbta.function(compiled=False)
    def written(one, other, third):
        ta = nbta.TensorArray(dtype, 3, element_shape=())
        return ta.write(0, one).write(1, other).write(2, third).stack()

    np.testing.assert_array_equal(written(*(np.array(v, dtype) for v in values)), values)
