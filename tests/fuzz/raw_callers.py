"""Arrays whose methods users' compiled functions call."""

import numpy as np
from numba import njit

import nbta


class Caller:
    """An array whose methods are called in compiled functions, where these take them."""

    def __init__(self, dtype, *args, **options):
        self.array = nbta.TensorArray(dtype, *args, **options)

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
        return Caller.over(self.array.grad(*args, **options))

    def grad_with_shape(self, *args, **options):
        return Caller.over(self.array.grad_with_shape(*args, **options))


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
