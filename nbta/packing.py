"""Arrays taken apart into NumPy arrays and put together again, for files and for pickling.

``meta`` is a JSON text; array ``k`` (the array itself is 0, its gradient arrays follow)
has ``dtype_k`` (an empty array that has it), ``states_k`` (a byte a slot), ``elements_k`` (of the
slots that hold a value, in slot order) and, where shapes differ, ``shapes_k`` (rank and extents a
slot; the elements are then joined bytes).
"""

import json

import numpy as np

from nbta import errors
from nbta.contents import (
    block_of,
    dtype_in_memory,
    gradients_of,
    has_value,
    source_of,
    uniform_bytes,
)
from nbta.runtime import python_calls
from nbta.runtime.store import BLOCK_RANK, BLOCK_SHAPE, CLEARED, FIELD, RAGGED, READ, WRITTEN, ZERO
from nbta.shapes import MAX_RANK

FORMAT = 1
FLAGS = ("dynamic", "clear_after_read", "infer_shape", "gradient")
KEPT_STATES = WRITTEN | READ | CLEARED | ZERO


def pack(array) -> dict[str, np.ndarray]:
    """An array and its gradient arrays as NumPy arrays; the inverse of `unpack`.

    Raises
    ------
    InvalidArgumentError
        For a closed array, and for a dtype that no file can name.
    """
    from nbta.tensor_array import TensorArray

    if not isinstance(array, TensorArray):
        message = f"save: {type(array).__name__} is not a TensorArray"
        raise errors.invalid("array", message)
    if array.closed:
        raise errors.invalid("closed", f"save on {array.handle.name}: the array is closed")
    members, facts = {}, []
    _pack_tree(array, source_of(array), -1, members, facts)
    path = array.handle.name.split("@", 1)
    meta = {
        "format": FORMAT,
        "name": path[0].removesuffix(f"_{array._fields[FIELD.id]}"),
        "sources": path[1] if array.is_gradient else "",
        "arrays": facts,
    }
    return {"meta": np.array(json.dumps(meta)), **members}


def _pack_tree(array, source, parent, members, facts):
    """Add an array and, behind it, everything below it."""
    number = len(facts)
    fields = array._fields
    facts.append(
        {
            "parent": parent,
            "source": source,
            "size": fields[FIELD.size],
            "element_shape": array.element_shape,
            "ragged": fields[FIELD.layout] == RAGGED,
            "marked": fields[FIELD.marked],
            "closed": array.closed,
            "dtype": array.dtype.name if array.dtype.name == "bfloat16" else None,
            **{flag: bool(fields[getattr(FIELD, flag)]) for flag in FLAGS},
        }
    )
    for name, value in _pack_contents(array).items():
        members[f"{name}_{number}"] = value
    for gradient in gradients_of(array):
        _pack_tree(gradient, source_of(gradient), number, members, facts)


def _pack_contents(array):
    size = array._fields[FIELD.size]
    states = python_calls.native(python_calls.state_bytes)(array._address)[:size] & KEPT_STATES
    contents = {"dtype": np.empty(0, file_dtype(array.dtype)), "states": states}
    if array._fields[FIELD.layout] == RAGGED:
        return contents | _pack_ragged(array, states)
    return contents | {"elements": _pack_uniform(array, states)}


def file_dtype(dtype):
    """The dtype that stands for an array's dtype in a file, which knows NumPy's own only."""
    if dtype.name == "bfloat16":
        return np.dtype(np.uint16)
    description = np.lib.format.dtype_to_descr(dtype)
    if np.lib.format.descr_to_dtype(description) != dtype:
        message = f"save: no file can name the dtype {dtype}; keep its items as integers or bytes"
        raise errors.invalid("dtype", message)
    return dtype


def stored_dtype(dtype, gradient):
    """The dtype of elements in a file."""
    return file_dtype(dtype_in_memory(dtype, gradient))


def _pack_uniform(array, states):
    dtype, full = stored_dtype(array.dtype, array.is_gradient), has_value(states)
    if not full.any():
        return np.empty(0, dtype)
    elements = _rows(uniform_bytes(array), full).reshape(-1).view(dtype)
    return elements.reshape(int(full.sum()), *array.element_shape)


def _rows(elements, full):
    """The rows that are filled, read-only: the array's own memory where no gap is between them."""
    slots = np.flatnonzero(full)
    first, last = slots[0], slots[-1]
    whole = last - first + 1 == len(slots)
    rows = elements[first : last + 1] if whole else elements[full]
    rows.flags.writeable = False
    return rows


def _pack_ragged(array, states):
    shapes = np.full((len(states), 1 + MAX_RANK), -1, np.int64)
    parts = []
    for slot in np.flatnonzero(states & WRITTEN):
        head, element = block_of(array, slot)
        rank = head[BLOCK_RANK]
        shapes[slot, 0] = rank
        shapes[slot, 1 : 1 + rank] = head[BLOCK_SHAPE : BLOCK_SHAPE + rank]
        if has_value(states[slot]):
            parts.append(element)
    joined = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return {"shapes": shapes, "elements": joined}
