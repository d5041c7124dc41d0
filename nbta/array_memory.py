"""What lies in arrays' memory, for whoever looks without reading; and giving memory back."""

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np

from nbta.runtime import python_calls
from nbta.runtime.packed import PACKED_COUNT, PACKED_HEAD, PACKED_RANK, ROW_BYTES, ROW_SHAPE
from nbta.runtime.slots import CLEARED, holds_value, in_python
from nbta.runtime.store import (
    BLOCK_HEAD,
    BLOCK_RANK,
    BLOCK_ROOM,
    BLOCK_SHAPE,
    FIELD,
    PACKED,
    RAGGED,
    UNIFORM,
)

_HALVES = ("float16", "bfloat16")
_STATM = Path("/proc/self/statm")


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


def shape_and_bytes(array, slot: int) -> tuple[tuple[int, ...], np.ndarray]:
    """Shape of a written slot's element, and its bytes in memory: none of a cleared one's block."""
    layout = array._fields[FIELD.layout]
    if layout == UNIFORM:
        return array.element_shape, uniform_bytes(array)[slot]
    if layout == RAGGED:
        head, element = block_of(array, slot)
        rank = int(head[BLOCK_RANK])
        return tuple(head[BLOCK_SHAPE : BLOCK_SHAPE + rank].tolist()), element
    head = python_calls.native(python_calls.head_bytes)(array._address).view(np.int64)
    first, last = head[PACKED_HEAD + slot : PACKED_HEAD + slot + 2].tolist()
    rest = head[ROW_SHAPE : ROW_SHAPE + int(head[PACKED_RANK]) - 1].tolist()
    data, width = python_calls.native(python_calls.data_bytes)(array._address), int(head[ROW_BYTES])
    return (last - first, *rest), data[first * width : last * width]


def packed_rows(array) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows of all elements as they lie in memory, and their offsets, both read-only.

    None where they do not lie back to back, and where one is cleared.
    """
    if array._fields[FIELD.layout] != PACKED or len(array) == 0:
        return None
    head = python_calls.native(python_calls.head_bytes)(array._address).view(np.int64)
    head.flags.writeable = False
    if len(head) == 0 or head[PACKED_COUNT] != len(array) or (array._states() & CLEARED).any():
        return None
    rest = head[ROW_SHAPE : ROW_SHAPE + int(head[PACKED_RANK]) - 1].tolist()
    offsets, width = head[PACKED_HEAD : PACKED_HEAD + len(array) + 1], int(head[ROW_BYTES])
    rows = int(offsets[-1])
    data = python_calls.native(python_calls.data_bytes)(array._address)[: rows * width]
    data.flags.writeable = False
    if array._fields[FIELD.layout] != PACKED:  # another thread moved all out meanwhile
        return None
    return data.view(array.dtype).reshape(rows, *rest), offsets


def block_of(array, slot: int) -> tuple[np.ndarray, np.ndarray]:
    """Head and element of a ragged slot's block."""
    data = python_calls.native(python_calls.data_bytes)(array._address)
    owner = int(data[8 * slot : 8 * slot + 8].view(np.int64)[0])
    block = python_calls.native(python_calls.block_bytes)(owner)
    head = block[:BLOCK_HEAD].view(np.int64)
    return head, block[len(block) - int(head[BLOCK_ROOM]) :]


def trim() -> int:
    """Return memory of dropped arrays to the system.

    Buffers of 128 KiB or more are kept when nothing refers to them any more, up to 256 MiB, so that
    the next arrays find memory that was touched before; more than that goes back at once. Smaller
    buffers, and the arrays themselves, go to the C library, which keeps them for what is
    allocated next. This function returns both.

    Returns
    -------
    int
        By how many bytes the memory of the process shrank; 0 where the system does not tell.

    Notes
    -----
    It takes about 0.1 ms for each MiB that is returned, and the next arrays take as long again as
    their pages come anew. The system may take buffers of 8 MiB or more by itself when memory runs
    short. Memory of the C library is returned where that is glibc.

    Examples
    --------
    >>> import nbta
    >>> arrays = [nbta.TensorArray("float64", size=1_000_000) for _ in range(3)]
    >>> del arrays
    >>> nbta.trim() >= 0
    True
    """
    before = _resident()
    python_calls.native(python_calls.return_pool)()
    if sys.platform == "linux":
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim:
            malloc_trim(0)
    return max(before - _resident(), 0)


def _resident():
    """Bytes of this process that are in memory; 0 where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0
