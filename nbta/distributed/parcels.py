"""What goes to workers, pickled once and not looked into on the way."""

import pickle

import cloudpickle
import numpy as np
from dask.sizeof import sizeof

from nbta.packing import pack
from nbta.tensor_array import TensorArray

#: Bytes; compiled code is fast with arrays whose items lie at multiples of their size.
ALIGNMENT = 16


class Parcel:
    """A pickle whose arrays stay where they are.

    Dask sends the arrays' memory as it is, without a copy, and neither Dask nor its scheduler sees
    what is inside: it may be of classes that only the user's code knows.

    Parameters
    ----------
    content : object
        Anything that cloudpickle takes.

    Examples
    --------
    >>> from nbta.distributed.parcels import Parcel
    >>> weights = np.ones(3)
    >>> np.shares_memory(Parcel({"w": weights}).open()["w"], weights)
    True
    """

    __slots__ = ("_body", "_buffers")

    def __init__(self, content):
        buffers = []
        self._body = cloudpickle.dumps(content, protocol=5, buffer_callback=buffers.append)
        # Read-only memory is never copied on arrival.
        self._buffers = [buffer.raw().toreadonly() for buffer in buffers]

    def open(self):
        """The content; its arrays are read-only, and lie in the parcel's memory."""
        self._buffers = [_aligned(buffer) for buffer in self._buffers]
        return pickle.loads(self._body, buffers=self._buffers)

    def parts(self) -> list:
        """All bytes of it."""
        return [self._body, *self._buffers]

    def __sizeof__(self):  # by which Dask weighs where to compute
        return object.__sizeof__(self) + sum(len(part) for part in self.parts())

    def __reduce_ex__(self, protocol):
        wrap = pickle.PickleBuffer if protocol >= 5 else bytes
        return _arrived, (self._body, list(map(wrap, self._buffers)))


def _arrived(body, buffers):
    parcel = object.__new__(Parcel)
    parcel._body = body
    parcel._buffers = [memoryview(buffer).cast("B").toreadonly() for buffer in buffers]
    return parcel


def _aligned(buffer):
    """The buffer, or a copy: Dask joins small messages, and so arrays arrive at any address."""
    items = np.frombuffer(buffer, np.uint8)
    return buffer if items.ctypes.data % ALIGNMENT == 0 else memoryview(items.copy()).toreadonly()


@sizeof.register(TensorArray)
def _bytes_of(array):
    """What an array and its gradient arrays hold, by which Dask weighs where to compute."""
    return 0 if array.closed else sum(part.nbytes for part in pack(array).values())
