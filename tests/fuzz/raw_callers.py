"""Arrays whose methods users' compiled functions call."""

import functools
import gc
import itertools
import pickle

import numpy as np
from numba import njit
from numba.np.numpy_support import as_dtype

import nbta
from nbta import errors
from nbta.runtime import extension


class Caller:
    """An array whose methods are called in compiled functions, where these take them."""

    def __init__(self, dtype, size, **options):
        shape, make = options["element_shape"], nbta.TensorArray
        if options["infer_shape"] and shape is not None and None not in shape:
            make = _MAKERS.get((dtype.name, len(shape)), make)
        if make is nbta.TensorArray:
            self.array = make(dtype, size, **options)
        else:
            self.array = make(size, options["dynamic_size"], options["clear_after_read"], shape)

    def __getattr__(self, name):
        return getattr(self.array, name)

    @classmethod
    def over(cls, array):
        self = object.__new__(cls)
        self.array = array
        return self

    def _is_plain(self, *values):
        if self.array.dtype.name not in ("float64", "int32"):
            return False
        rank = self.array._numba_type_.ndim
        same = all(value.dtype == self.array.dtype and value.ndim == rank for value in values)
        return rank in (0, 1) and same

    def _do(self, function, method, *args, values=()):
        if self._is_plain(*values):
            return function(self.array, *(a[()] if isinstance(a, np.ndarray) else a for a in args))
        return getattr(self.array, method)(*args)

    def write(self, index, value):
        self._do(_write, "write", index, value, values=[value])
        return self

    def append(self, value):
        self._do(_append, "append", value, values=[value])
        return self

    def accumulate(self, index, value):
        self._do(_accumulate, "accumulate", index, value, values=[value])
        return self

    def read(self, index):
        value = self._do(_read, "read", index)
        return value if hasattr(value, "dtype") else self.array.dtype.type(value)

    def stack(self):
        return self._do(_stack, "stack")

    def size(self):
        return np.int32(self._do(_size, "size"))

    def _through(self, method, *args, **options):
        getattr(self.array, method)(*args, **options)
        return self

    def scatter(self, *args):
        return self._through("scatter", *args)

    def unstack(self, *args):
        return self._through("unstack", *args)

    def split(self, *args):
        return self._through("split", *args)

    def grad(self, *args, **options):
        return self.over(self.array.grad(*args, **options))

    def grad_with_shape(self, *args, **options):
        return self.over(self.array.grad_with_shape(*args, **options))


class Passed:
    """An array that goes through compiled code behind each operation, and is otherwise forgotten.

    Nobody else holds its dtype object then; those of values come to lie where others were freed.
    """

    _operations = itertools.count(1)

    def __init__(self, compiled, dtype, *args, **options):
        self._compiled = compiled
        self.array = nbta.TensorArray(another(dtype), *args, **options)
        self._pass_on()

    def __getattr__(self, name):
        method = getattr(self.array, name)
        if not callable(method):
            return method

        def operation(*args, **options):
            result = method(*args, **options)
            if isinstance(result, nbta.TensorArray):
                if name.startswith("grad"):
                    other = object.__new__(Passed)
                    other._compiled, other.array = self._compiled, result
                    other._pass_on()
                    return other
                result = self
            self._pass_on()
            return result

        return operation

    def _pass_on(self):
        kind = self.array._numba_type_
        if not isinstance(kind, errors.NoNumbaType):
            if self._compiled:
                self.array = _same(self.array)
            else:  # what compiled code does when it hands an array out
                self.array = extension._face(self.array._store, as_dtype(kind.dtype))
        if next(self._operations) % 50 == 0:
            gc.collect()


def another(dtype):
    """Another dtype object that stands for the same."""
    return pickle.loads(pickle.dumps(dtype))


def swapped(value, seed):
    """A value whose dtype object is its own; two of three have their bytes the other way round.

    Of several objects, which take as many places that were freed, any may be the value's.
    """
    order = "=" if seed % 3 == 0 or value.dtype.name == "bfloat16" else "S"
    pickled = _in_order(value.dtype, order)
    places = [pickle.loads(pickled) for _ in range(5)]
    dtype = places[seed % 5]
    return value.astype(dtype) if order == "S" else value.view(dtype)


@functools.cache
def _in_order(dtype, order):
    """A pickle, so that loading it makes one object and no other on the way."""
    return pickle.dumps(dtype if order == "=" else dtype.newbyteorder(order))


def _maker(dtype):
    @njit
    def make(size, dynamic, clear, shape):
        return nbta.TensorArray(dtype, size, dynamic, clear, element_shape=shape)

    return make


#: By dtype and rank of the elements.
_MAKERS = {
    (np.dtype(dtype).name, rank): make
    for dtype in (np.float64, np.int32)
    for make in [_maker(dtype)]
    for rank in (0, 1)
}


@njit(cache=True)
def _same(ta):
    return ta


@njit(cache=True)
def _write(ta, index, value):
    ta.write(index, value)


@njit(cache=True)
def _append(ta, value):
    ta.append(value)


@njit(cache=True)
def _accumulate(ta, index, value):
    ta.accumulate(index, value)


@njit(cache=True)
def _read(ta, index):
    return ta.read(index)


@njit(cache=True)
def _stack(ta):
    return ta.stack()


@njit(cache=True)
def _size(ta):
    return ta.size()
