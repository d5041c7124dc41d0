"""What lies in arrays' memory, for whoever looks without reading; and giving memory back."""

import ctypes
import sys

import numpy as np

from nbta.runtime import python_calls
from nbta.runtime.slots import holds_value, in_python
from nbta.runtime.store import BLOCK_HEAD, BLOCK_ROOM, FIELD

_HALVES = ("float16", "bfloat16")


def source_of(array) -> str:
    """The source of a gradient array."""
    points = python_calls.native(python_calls.source_points)(array._address)
    return "".join(map(chr, points))


def gradients_of(array):
    """The gradient arrays that an array holds, in the order in which they were made."""
    owners = python_calls.native(python_calls.gradient_owners)(array._address).view(np.int64)
    for owner in owners.tolist():
        store = python_calls.native(python_calls.share_store)(owner)
        yield type(array)._over(store, array.dtype, "")


def dtype_in_memory(dtype: np.dtype, gradient: bool) -> np.dtype:
    """The dtype of elements in memory; gradients of half precision are kept as float32 sums."""
    return np.dtype(np.float32) if gradient and dtype.name in _HALVES else dtype


#: Whether slots in such states hold a value that takes memory.
has_value = in_python(holds_value)


def uniform_bytes(array) -> np.ndarray:
    """The elements of a uniform array in memory, a row of bytes a slot."""
    size, width = array._fields[FIELD.size], array._fields[FIELD.element_bytes]
    data = python_calls.native(python_calls.data_bytes)(array._address)
    return data[: size * width].reshape(size, width)


def block_of(array, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """Head and element of a ragged slot's block."""
    data = python_calls.native(python_calls.data_bytes)(array._address)
    owner = int(data[8 * slot : 8 * slot + 8].view(np.int64)[0])
    block = python_calls.native(python_calls.block_bytes)(owner)
    head = block[:BLOCK_HEAD].view(np.int64)
    return head, block[len(block) - int(head[BLOCK_ROOM]) :]


def trim() -> None:
    """Return memory of dropped arrays to the system.

    Buffers of 1 MiB or more go back as soon as nothing refers to them. Smaller ones, and the arrays
    themselves, go to the C library, which keeps them for what is allocated next. After a program
    has dropped very many small arrays, this returns their pages. It does nothing where the C
    library is not glibc.

    Notes
    -----
    It takes about 0.1 ms for each MiB that is returned, and the next arrays take as long again as
    their pages come anew.

    Examples
    --------
    >>> import nbta
    >>> arrays = [nbta.TensorArray("float64", size=10) for _ in range(1000)]
    >>> del arrays
    >>> nbta.trim()
    """
    if sys.platform == "linux":
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim:
            malloc_trim(0)
