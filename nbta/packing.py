"""Arrays taken apart into NumPy arrays and put together again, for files and for pickling.

``meta`` is a JSON text; array ``k`` (the array itself is 0, its gradient arrays follow)
has ``dtype_k`` (an empty array that has it), ``states_k`` (a byte a slot), ``elements_k`` (of the
slots that hold a value, in slot order) and, where shapes differ, ``shapes_k`` (rank and dimensions
a slot; the elements are then joined bytes).
"""

import json
import math
import sys

import numpy as np

from nbta import errors, naming
from nbta.array_memory import (
    block_of,
    dtype_in_memory,
    gradients_of,
    has_value,
    shape_and_bytes,
    source_of,
    uniform_bytes,
)
from nbta.runtime import python_calls
from nbta.runtime.request import GRAD
from nbta.runtime.slots import CLEARED, READ, WRITTEN, ZERO
from nbta.runtime.store import BLOCK_RANK, BLOCK_SHAPE, FIELD, PACKED, RAGGED
from nbta.shapes import MAX_RANK, as_pattern
from nbta.tensor_array import TensorArray, code_points

# Taking apart.

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
    """Add an array and, after it, everything below it."""
    number = len(facts)
    fields = array._fields
    facts.append(
        {
            "parent": parent,
            "source": source,
            "size": fields[FIELD.size],
            "element_shape": array.element_shape,
            "ragged": fields[FIELD.layout] in (RAGGED, PACKED),
            "marked": fields[FIELD.marked],
            "closed": array.closed,
            "dtype": array.dtype.name if array.dtype.name == "bfloat16" else None,
            **{flag: bool(fields[getattr(FIELD, flag)]) for flag in FLAGS},
        }
    )
    for name, value in _pack_members(array).items():
        members[f"{name}_{number}"] = value
    for gradient in gradients_of(array):
        _pack_tree(gradient, source_of(gradient), number, members, facts)


def _pack_members(array):
    size = array._fields[FIELD.size]
    states = python_calls.native(python_calls.state_bytes)(array._address)[:size] & KEPT_STATES
    parts = {"dtype": np.empty(0, file_dtype(array.dtype)), "states": states}
    if array._fields[FIELD.layout] in (RAGGED, PACKED):
        return parts | _pack_ragged(array, states)
    return parts | {"elements": _pack_uniform(array, states)}


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
        shape, element = shape_and_bytes(array, slot)
        shapes[slot, : 1 + len(shape)] = len(shape), *shape
        if has_value(states[slot]):
            parts.append(element)
    joined = np.concatenate(parts) if parts else np.empty(0, np.uint8)
    return {"shapes": shapes, "elements": joined}


# Putting together what anybody wrote. A file may be made up, digest and all. Nothing in it is
# believed before it is checked, and what it makes takes no more memory than a few times its bytes.

#: States of a slot that operations leave behind; a lane's slots may be cleared and not written.
_STATES = (
    0, WRITTEN, WRITTEN | READ, WRITTEN | READ | CLEARED, READ | CLEARED, WRITTEN | ZERO,
)  # fmt: skip
#: Code points of all names together: names of nested gradient arrays grow with the square.
_LONGEST = 1 << 24


def unpack(members):
    """The array that `pack` took apart.

    Raises
    ------
    InvalidArgumentError
        For anything but the result of `pack`.
    """
    return unpack_all(members)[0]


def unpack_all(members):
    """The array that `pack` took apart, and after it all gradient arrays below it."""
    meta = _checked(meta_of(members))
    arrays = []
    _check_names(meta["arrays"])
    for number, facts in enumerate(meta["arrays"]):
        parts = {name: members.get(f"{name}_{number}") for name in _MEMBERS}
        _check(facts, parts, number)
        array = _restore(facts, parts, meta["name"])
        if number:
            array = _attach(arrays[facts["parent"]], array, facts["source"])
        elif facts["gradient"]:
            array._name = f"{array._name.split('@')[0]}@{meta['sources']}"
            _put_suffix(array, f"@{meta['sources']}")
        arrays.append(array)
    for array, facts in zip(arrays, meta["arrays"], strict=True):
        if facts["closed"]:
            array.close()
    return arrays


_MEMBERS = ("dtype", "states", "elements", "shapes")
_FACTS = {
    "parent": int, "source": str, "size": int, "ragged": bool, "marked": int, "closed": bool,
} | dict.fromkeys(FLAGS, bool)  # fmt: skip


def require(condition, what):
    """Refuse a file of which something does not hold."""
    if not condition:
        raise errors.invalid("file", f"is damaged: {what}")


def meta_of(members):
    """What a file says of itself, of which nothing is checked yet."""
    text = members.get("meta")
    is_text = isinstance(text, np.ndarray) and text.dtype.kind == "U" and text.shape == ()
    require(is_text, "no meta")
    try:
        meta = json.loads(str(text))
    except ValueError:
        meta = None
    require(isinstance(meta, dict), "meta is no JSON text")
    return meta


def _checked(meta):
    if meta.get("format") != FORMAT:
        message = f"has format {meta.get('format')}, and this version of nbta reads 1 and 2"
        raise errors.invalid("file", message)
    arrays = meta.get("arrays")
    require(isinstance(arrays, list) and arrays, "no arrays")
    require(all(isinstance(meta.get(key), str) for key in ("name", "sources")), "no name")
    return meta


def _check(facts, parts, number):
    """Whether an array's parts fit together, before anything is made of them."""
    for key, kind in _FACTS.items():
        require(type(facts.get(key)) is kind, f"array {number}: {key}")
    states, size = parts["states"], facts["size"]
    require(_is_array(states, np.uint8, 1) and len(states) == size, f"array {number}: states")
    require(np.isin(states, _STATES).all(), f"array {number}: state bits")
    zeros = facts["gradient"] or not (states & ZERO).any()
    require(zeros, f"array {number}: state bits of a gradient array")
    require(0 <= facts["marked"] <= size, f"array {number}: marked")
    require(number == 0 or facts["gradient"], f"array {number}: parent")
    require(isinstance(parts["dtype"], np.ndarray), f"array {number}: dtype")
    require(facts.get("dtype") in (None, "bfloat16"), f"array {number}: dtype")
    shape = facts.get("element_shape", 0)
    require(shape is None or isinstance(shape, list), f"array {number}: element shape")
    if facts["ragged"]:
        _check_ragged(facts, parts, number)
    else:
        known = shape is not None and None not in shape
        require(known or not (states & WRITTEN).any(), f"array {number}: no element shape")


def _check_names(arrays):
    """Whether the names of all arrays, each with its source after its parent's, stay in bounds."""
    lengths = []
    for number, facts in enumerate(arrays):
        require(isinstance(facts, dict), f"array {number} is no record")
        parent, source = facts.get("parent"), facts.get("source")
        above = type(parent) is int and 0 <= parent < number
        require(above or (number == 0 and parent == -1), f"array {number}: parent")
        require(type(source) is str, f"array {number}: source")
        lengths.append(len(source) + 1 + (lengths[parent] if above else 0))
    require(sum(lengths) <= _LONGEST, "its names are too long")


def _is_array(value, dtype, rank):
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == rank


def _check_ragged(facts, parts, number):
    shapes, states = parts["shapes"], parts["states"]
    whole = _is_array(shapes, np.int64, 2) and shapes.shape == (len(states), 1 + MAX_RANK)
    require(whole, f"array {number}: shapes")
    require(_is_array(parts["elements"], np.uint8, 1), f"array {number}: elements")
    written = shapes[states & WRITTEN != 0]
    require(np.all((written[:, :1] >= 0) & (written[:, :1] <= MAX_RANK)), f"array {number}: ranks")
    inside = np.arange(MAX_RANK) < written[:, :1]
    require(np.all(written[:, 1:][inside] >= 0), f"array {number}: dimensions")
    dtype = stored_dtype(_restored_dtype(facts, parts), facts["gradient"])
    items = sum(math.prod(_slot_shape(parts, slot)) for slot in np.flatnonzero(has_value(states)))
    surplus = len(parts["elements"]) - items * dtype.itemsize
    require(surplus >= 0, f"array {number}: elements end too early")
    require(surplus <= 0, f"array {number}: more elements than slots")


def _restore(facts, parts, name):
    """An array of its own with those parts; a gradient array's forward array is made up."""
    dtype, ragged = _restored_dtype(facts, parts), facts["ragged"]
    array = _restore_forward(facts, parts, name, dtype)
    if facts["gradient"]:
        array = array.grad(facts["source"], clear_after_read=facts["clear_after_read"])
    if ragged:
        _put_ragged(array, parts)
        _put_pattern(array, facts)
    else:
        _put_uniform(array, parts)
    states = python_calls.native(python_calls.state_bytes)(array._address)
    states[: facts["size"]] = parts["states"]
    array._fields[FIELD.marked] = facts["marked"]
    return array


def _restored_dtype(facts, parts):
    if facts["dtype"] is None:
        # Before NumPy 2.3 unpickled dates have metadata, of which saving them would warn.
        return np.lib.format.drop_metadata(parts["dtype"].dtype)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _restore_forward(facts, parts, name, dtype):
    """A forward array without its values; for a gradient array, one whose shapes it takes."""
    ragged, gradient = facts["ragged"], facts["gradient"]
    shape = facts["element_shape"]
    array = TensorArray._eager(
        dtype,
        size=facts["size"],
        dynamic_size=facts["dynamic"] and not gradient,
        clear_after_read=facts["clear_after_read"],
        tensor_array_name=name,
        element_shape=None if ragged or shape is None else tuple(shape),
        infer_shape=facts["infer_shape"] and not ragged,
    )
    if gradient and ragged:
        for slot in np.flatnonzero(parts["states"] & WRITTEN):
            _put_shape(array, slot, _slot_shape(parts, slot))
    return array


def _put_shape(array, slot, shape):
    """Let a ragged slot have a shape and no memory for its items, which nobody reads."""
    array.write(slot, np.zeros((), array.dtype))
    head, _ = block_of(array, slot)
    head[BLOCK_RANK], head[BLOCK_SHAPE : BLOCK_SHAPE + len(shape)] = len(shape), shape


def _slot_shape(parts, slot):
    rank, *dimensions = parts["shapes"][slot].tolist()
    return tuple(dimensions[:rank])


def _put_ragged(array, parts):
    """Write each slot that has a shape, then its bytes; a cleared slot keeps its shape alone."""
    states, elements, first = parts["states"], parts["elements"], 0
    for slot in np.flatnonzero(states & WRITTEN):
        shape = _slot_shape(parts, slot)
        if not has_value(states[slot]):
            if not array.is_gradient:
                _put_shape(array, slot, shape)
            continue
        array.write(slot, np.zeros(shape, array.dtype))
        _, element = shape_and_bytes(array, slot)
        element[:] = elements[first : first + len(element)]
        first += len(element)


def _put_pattern(array, facts):
    """The element shape of an array whose elements may have had any; its layout stays."""
    pattern = as_pattern("element_shape", facts["element_shape"])
    fields = array._fields
    fields[FIELD.infer_shape] = facts["infer_shape"]
    fields[FIELD.rank] = -1 if pattern is None else len(pattern)
    for axis, dimension in enumerate(pattern or ()):
        fields[FIELD.dimension0 + axis] = -1 if dimension is None else dimension


def _put_uniform(array, parts):
    elements, states = parts["elements"], parts["states"]
    dtype = stored_dtype(array.dtype, array.is_gradient)
    require(isinstance(elements, np.ndarray) and elements.dtype == dtype, "dtype of elements")
    slots = np.flatnonzero(has_value(states))
    if not len(slots):
        require(elements.size == 0, "more elements than slots")
        return
    require(elements.shape == (len(slots), *(array.element_shape or ())), "shape of elements")
    require(array.element_shape is not None, "no element shape")
    require(None not in array.element_shape, "the element shape is not known")
    if dtype == file_dtype(array.dtype):
        array.scatter(slots, elements.view(array.dtype))
        return
    array.scatter(slots, np.zeros(elements.shape, array.dtype))
    rows = np.ascontiguousarray(elements).view(np.uint8)
    uniform_bytes(array)[slots] = rows.reshape(len(slots), -1)


def _attach(parent, gradient, source):
    """Let an array hold a restored gradient array, under the array's own name and number."""
    python_calls.native(python_calls.attach_gradient)(parent._address, gradient._address)
    gradient._fields[FIELD.id] = parent._fields[FIELD.id]
    own = python_calls.native(python_calls.name_suffix)(parent._address)
    _put_suffix(gradient, naming.gradient_name("".join(map(chr, own)), source))
    return type(parent)._over(
        gradient._store, parent.dtype, naming.gradient_name(parent._name, source)
    )


def _put_suffix(array, suffix):
    """Let the store of a gradient array know its name, which compiled code asks it for."""
    points = code_points(suffix)
    put = python_calls.native(python_calls.put_suffix)
    if not put(array._address, points.ctypes.data, len(points)):
        raise errors.failure(
            errors.STATUS.too_large, GRAD, array._name, 0, 4, len(points), (-1,), (-1,)
        )


def _reduced(array):
    """What pickling an array writes, and copying it copies."""
    return unpack, (pack(array),)


TensorArray.__reduce__ = _reduced
#: Where pickles of earlier versions look for `unpack`.
sys.modules["nbta.unpacking"] = sys.modules[__name__]
