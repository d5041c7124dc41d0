"""The TensorArray under TensorFlow's names, and its raw operations."""

import numpy as np

import nbta
from foreign.values import Shape, Value, unwrap, wrap
from nbta import raw_ops


class Array:
    """`nbta.TensorArray`; with ``handle=``, what raw operations make of a handle."""

    def __new__(cls, dtype=None, *args, handle=None, flow=None, **options):
        """Choose between an array of its own and one that a handle names."""
        return object.__new__(cls if handle is None else RawArray)

    def __init__(
        self,
        dtype,
        size=None,
        dynamic_size=None,
        clear_after_read=None,
        tensor_array_name=None,
        handle=None,
        flow=None,
        infer_shape=True,
        element_shape=None,
        colocate_with_first_write_call=True,
        name=None,
    ):
        options = {
            "size": size,
            "dynamic_size": dynamic_size,
            "clear_after_read": clear_after_read,
            "tensor_array_name": tensor_array_name,
            "element_shape": element_shape,
            "infer_shape": infer_shape,
            "name": name,
        }
        given = {key: value for key, value in unwrap(options).items() if value is not None}
        self.inner = nbta.TensorArray(unwrap(dtype), **given)

    @classmethod
    def over(cls, inner):
        """An array of nbta's."""
        self = object.__new__(cls)
        self.inner = inner
        return self

    dtype = property(lambda self: Value(self.inner).dtype)
    flow = property(lambda self: wrap(self.inner.flow))
    handle = property(lambda self: wrap(self.inner.handle))
    element_shape = property(lambda self: Shape(self.inner.element_shape))

    def _text(self, value):
        """Values for arrays of strings, in their width."""
        value = unwrap(value)
        return np.asarray(value).astype(self.inner.dtype) if self.inner.dtype.kind == "S" else value

    def write(self, index, value, name=None):
        """Store a value in a slot."""
        return wrap(self.inner.write(unwrap(index), self._text(value), name=name))

    def scatter(self, indices, value, name=None):
        """Store rows in slots."""
        return wrap(self.inner.scatter(unwrap(indices), self._text(value), name=name))

    def unstack(self, value, name=None):
        """Store rows in the first slots."""
        return wrap(self.inner.unstack(self._text(value), name=name))

    def split(self, value, lengths, name=None):
        """Store pieces in the first slots."""
        return wrap(self.inner.split(self._text(value), unwrap(lengths), name=name))

    def read(self, index, name=None):
        """The value of a slot."""
        return wrap(self.inner.read(unwrap(index), name=name))

    def gather(self, indices, name=None):
        """The values of slots."""
        return wrap(self.inner.gather(unwrap(indices), name=name))

    def stack(self, name=None):
        """The values of all slots."""
        return wrap(self.inner.stack(name=name))

    def concat(self, name=None):
        """The values of all slots, joined."""
        return wrap(self.inner.concat(name=name).value)

    def size(self, name=None):
        """How many slots there are."""
        return wrap(self.inner.size(name=name))

    def grad(self, source, flow=None, name=None):
        """The gradient array of a source."""
        return wrap(self.inner.grad(source, flow=unwrap(flow), name=name))

    def identity(self):
        """The same array under a new flow."""
        return wrap(self.inner.identity())

    def close(self, name=None):
        """Free it."""
        return wrap(self.inner.close(name=name))

    def mark_used(self):
        """Nothing is said here where a result is not used."""


class RawArray(Array):
    """What a handle names, by raw operations."""

    def __init__(self, dtype, handle, flow):
        self._dtype, self._handle, self._flow = unwrap((dtype, handle, flow))

    def write(self, index, value, name=None):
        """Store a value in a slot."""
        flow = raw_ops.TensorArrayWriteV3(self._handle, unwrap(index), unwrap(value), self._flow)
        return RawArray(self._dtype, handle=self._handle, flow=flow)

    def read(self, index, name=None):
        """The value of a slot."""
        args = self._handle, unwrap(index), self._flow, self._dtype
        return wrap(raw_ops.TensorArrayReadV3(*args))


def raw(operation):
    """A raw operation under its name in TensorFlow's Python modules."""

    def call(*args, **kwargs):
        return wrap(operation(*unwrap(args), **unwrap(kwargs)))

    return call
