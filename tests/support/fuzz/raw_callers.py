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
    """An array whose methods are called in compiled functions, where these take them.

    What compiled code refuses by the types of the arguments, another dtype or rank, and what would
    take one more function for each rank, is called in Python.
    """

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

    @property
    def _rank(self):
        """Rank of the elements, where compiled code is to be used for them."""
        if self.array.dtype.name not in ("float64", "int32"):
            return None
        rank = self.array._numba_type_.ndim
        return rank if rank in (0, 1) else None

    def _takes(self, value, spare=0):
        """Whether a value of elements, or of rows or pieces, goes to compiled code."""
        rank = self._rank
        return rank is not None and value.dtype == self.array.dtype and value.ndim == rank + spare

    def _put(self, compiled, method, *args, value, spare=0):
        if self._takes(value, spare):
            compiled(self.array, *args, value[()])
        else:
            getattr(self.array, method)(*args, value)
        return self

    def _get(self, compiled, method, *args, **options):
        if self._rank is None:
            return getattr(self.array, method)(*args, **options)
        return compiled(self.array, *args, *options.values())

    def write(self, index, value):
        return self._put(_write, "write", index, value=value)

    def append(self, value):
        return self._put(_append, "append", value=value)

    def accumulate(self, index, value):
        return self._put(_accumulate, "accumulate", index, value=value)

    def scatter(self, indices, value):
        indices = np.array(indices, np.int64)
        return self._put(_scatter, "scatter", indices, value=value, spare=1)

    def unstack(self, value):
        return self._put(_unstack, "unstack", value=value, spare=1)

    def split(self, value, lengths):
        if self._rank and self._takes(value):
            _split(self.array, value, np.array(lengths, np.int64))
        else:
            self.array.split(value, lengths)
        return self

    def read(self, index):
        return self._as_scalar(self._get(_read, "read", index))

    def _as_scalar(self, value):
        """A number as Python gets it from compiled code, in the dtype that it has there."""
        return value if hasattr(value, "dtype") else self.array.dtype.type(value)

    def gather(self, indices, element_shape=None):
        indices = np.array(indices, np.int64)
        return self._get(_gather, "gather", indices, element_shape=element_shape)

    def stack(self):
        return self._get(_stack, "stack")

    def concat(self, element_shape_except0=None):
        return self._get(_concat, "concat", element_shape_except0=element_shape_except0)

    def size(self):
        return np.int32(self._get(_size, "size"))

    def close(self):
        self._get(_close, "close")

    def __getitem__(self, index):
        return self._as_scalar(self._get(_item, "__getitem__", index))

    def __iter__(self):
        if self._rank is None:
            return iter(self.array)
        return (self._as_scalar(_looped(self.array, k)) for k in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        return self._get(_asarray, "__array__")

    def __len__(self):
        return self._get(_length, "__len__")

    def grad(self, source, clear_after_read=True):
        return self._look_up(_grad, "grad", source, clear_after_read=clear_after_read)

    def grad_with_shape(self, source, prefix, clear_after_read=True):
        prefix = tuple(prefix) if len(prefix) < 2 else np.array(prefix)
        options = {"clear_after_read": clear_after_read}
        return self._look_up(_grad_with_shape, "grad_with_shape", source, prefix, **options)

    def _look_up(self, compiled, method, *args, **options):
        try:
            return Caller.over(self._get(compiled, method, *args, **options))
        except nbta.InvalidArgumentError as error:
            if error.reason != "gradient_rank":  # made with another prefix, which Python gives
                raise
            return Caller.over(getattr(self.array, method)(*args, **options))


class Passed:
    """An array that goes through compiled code after each operation, and is otherwise forgotten.

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

    def __getitem__(self, index):
        return self.array[index]

    def __iter__(self):
        return iter(self.array)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array)

    def __len__(self):
        return len(self.array)

    def _pass_on(self):
        kind = self.array._numba_type_
        if not isinstance(kind, errors.NoNumbaType):
            if self._compiled:
                self.array = _same(self.array)
            else:  # what compiled code does when it hands an array out
                self.array = extension._wrapper(self.array._store, as_dtype(kind.dtype))
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
def _scatter(ta, indices, value):
    ta.scatter(indices, value)


@njit(cache=True)
def _unstack(ta, value):
    ta.unstack(value)


@njit(cache=True)
def _split(ta, value, lengths):
    ta.split(value, lengths)


@njit(cache=True)
def _read(ta, index):
    return ta.read(index)


@njit(cache=True)
def _gather(ta, indices, element_shape):
    return ta.gather(indices, element_shape=element_shape)


@njit(cache=True)
def _stack(ta):
    return ta.stack()


@njit(cache=True)
def _concat(ta, element_shape_except0):
    return ta.concat(element_shape_except0=element_shape_except0)


@njit(cache=True)
def _size(ta):
    return ta.size()


@njit(cache=True)
def _close(ta):
    ta.close()


@njit(cache=True)
def _item(ta, index):
    return ta[index]


@njit(cache=True)
def _looped(ta, wanted):
    """The value that a loop comes to after so many others."""
    for count, value in enumerate(ta):
        if count == wanted:
            return value
    raise IndexError


@njit(cache=True)
def _asarray(ta):
    return np.asarray(ta)


@njit(cache=True)
def _length(ta):
    return len(ta)


@njit(cache=True)
def _grad(ta, source, clear_after_read):
    return ta.grad(source, clear_after_read=clear_after_read)


@njit(cache=True)
def _grad_with_shape(ta, source, prefix, clear_after_read):
    return ta.grad_with_shape(source, prefix, clear_after_read=clear_after_read)
