"""What `nbta.packing` took apart, put together again, whoever wrote it.

A file may be made up, digest and all. Nothing in it is believed before it is checked, and what it
makes takes no more memory than a few times its own bytes.
"""

import json
import math

import numpy as np

from nbta import errors
from nbta.contents import block_of, has_value, uniform_bytes
from nbta.packing import FLAGS, FORMAT, file_dtype, stored_dtype
from nbta.runtime import python_calls
from nbta.runtime.store import BLOCK_RANK, BLOCK_SHAPE, CLEARED, FIELD, READ, WRITTEN, ZERO
from nbta.shapes import MAX_RANK, as_pattern

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
    """The array that `pack` took apart, and behind it all gradient arrays below it."""
    meta = _checked(meta_of(members))
    arrays = []
    _check_names(meta["arrays"])
    for number, facts in enumerate(meta["arrays"]):
        contents = {name: members.get(f"{name}_{number}") for name in _MEMBERS}
        _check(facts, contents, number)
        array = _restore(facts, contents, meta["name"])
        if number:
            array = _attach(arrays[facts["parent"]], array, facts["source"])
        elif facts["gradient"]:
            array._name = f"{array._name.split('@')[0]}@{meta['sources']}"
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


def _check(facts, contents, number):
    """Whether an array's parts fit together, before anything is made of them."""
    for key, kind in _FACTS.items():
        require(type(facts.get(key)) is kind, f"array {number}: {key}")
    states, size = contents["states"], facts["size"]
    require(_is_array(states, np.uint8, 1) and len(states) == size, f"array {number}: states")
    require(np.isin(states, _STATES).all(), f"array {number}: state bits")
    zeros = facts["gradient"] or not (states & ZERO).any()
    require(zeros, f"array {number}: state bits of a gradient array")
    require(0 <= facts["marked"] <= size, f"array {number}: marked")
    require(number == 0 or facts["gradient"], f"array {number}: parent")
    require(isinstance(contents["dtype"], np.ndarray), f"array {number}: dtype")
    require(facts.get("dtype") in (None, "bfloat16"), f"array {number}: dtype")
    shape = facts.get("element_shape", 0)
    require(shape is None or isinstance(shape, list), f"array {number}: element shape")
    if facts["ragged"]:
        _check_ragged(facts, contents, number)
    else:
        known = shape is not None and None not in shape
        require(known or not (states & WRITTEN).any(), f"array {number}: no element shape")


def _check_names(arrays):
    """Whether the names of all arrays, each with its source behind its parent's, stay in bounds."""
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


def _check_ragged(facts, contents, number):
    shapes, states = contents["shapes"], contents["states"]
    whole = _is_array(shapes, np.int64, 2) and shapes.shape == (len(states), 1 + MAX_RANK)
    require(whole, f"array {number}: shapes")
    require(_is_array(contents["elements"], np.uint8, 1), f"array {number}: elements")
    written = shapes[states & WRITTEN != 0]
    require(np.all((written[:, :1] >= 0) & (written[:, :1] <= MAX_RANK)), f"array {number}: ranks")
    inside = np.arange(MAX_RANK) < written[:, :1]
    require(np.all(written[:, 1:][inside] >= 0), f"array {number}: extents")
    dtype = stored_dtype(_restored_dtype(facts, contents), facts["gradient"])
    items = sum(
        math.prod(_slot_shape(contents, slot)) for slot in np.flatnonzero(has_value(states))
    )
    surplus = len(contents["elements"]) - items * dtype.itemsize
    require(surplus >= 0, f"array {number}: elements end too early")
    require(surplus <= 0, f"array {number}: more elements than slots")


def _restore(facts, contents, name):
    """An array of its own with those contents; a gradient array's forward array is made up."""
    dtype, ragged = _restored_dtype(facts, contents), facts["ragged"]
    array = _restore_forward(facts, contents, name, dtype)
    if facts["gradient"]:
        array = array.grad(facts["source"], clear_after_read=facts["clear_after_read"])
    if ragged:
        _put_ragged(array, contents)
        _put_pattern(array, facts)
    else:
        _put_uniform(array, contents, facts)
    states = python_calls.native(python_calls.state_bytes)(array._address)
    states[: facts["size"]] = contents["states"]
    array._fields[FIELD.marked] = facts["marked"]
    return array


def _restored_dtype(facts, contents):
    if facts["dtype"] is None:
        # Before NumPy 2.3 unpickled dates have metadata, of which saving them would warn.
        return np.lib.format.drop_metadata(contents["dtype"].dtype)
    import ml_dtypes

    return np.dtype(ml_dtypes.bfloat16)


def _restore_forward(facts, contents, name, dtype):
    """A forward array without its values; for a gradient array, one whose shapes it takes."""
    from nbta.tensor_array import TensorArray

    ragged, gradient = facts["ragged"], facts["gradient"]
    shape = facts["element_shape"]
    array = TensorArray(
        dtype,
        size=facts["size"],
        dynamic_size=facts["dynamic"] and not gradient,
        clear_after_read=facts["clear_after_read"],
        tensor_array_name=name,
        element_shape=None if ragged or shape is None else tuple(shape),
        infer_shape=facts["infer_shape"] and not ragged,
    )
    if gradient and ragged:
        for slot in np.flatnonzero(contents["states"] & WRITTEN):
            _put_shape(array, slot, _slot_shape(contents, slot))
    return array


def _put_shape(array, slot, shape):
    """Let a ragged slot have a shape and no memory for its items, which nobody reads."""
    array.write(slot, np.zeros((), array.dtype))
    head, _ = block_of(array, slot)
    head[BLOCK_RANK], head[BLOCK_SHAPE : BLOCK_SHAPE + len(shape)] = len(shape), shape


def _slot_shape(contents, slot):
    rank, *extents = contents["shapes"][slot].tolist()
    return tuple(extents[:rank])


def _put_ragged(array, contents):
    """Write each slot that has a shape, then its bytes; a cleared slot keeps its shape alone."""
    states, elements, first = contents["states"], contents["elements"], 0
    for slot in np.flatnonzero(states & WRITTEN):
        shape = _slot_shape(contents, slot)
        if not has_value(states[slot]):
            if not array.is_gradient:
                _put_shape(array, slot, shape)
            continue
        array.write(slot, np.zeros(shape, array.dtype))
        _, element = block_of(array, slot)
        element[:] = elements[first : first + len(element)]
        first += len(element)


def _put_pattern(array, facts):
    """The element shape of an array whose elements may have had any; its layout stays."""
    pattern = as_pattern("element_shape", facts["element_shape"])
    fields = array._fields
    fields[FIELD.infer_shape] = facts["infer_shape"]
    fields[FIELD.rank] = -1 if pattern is None else len(pattern)
    for axis, extent in enumerate(pattern or ()):
        fields[FIELD.extent0 + axis] = -1 if extent is None else extent


def _put_uniform(array, contents, facts):
    elements, states = contents["elements"], contents["states"]
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
    python_calls.native(python_calls.hold_gradient)(parent._address, gradient._store)
    gradient._fields[FIELD.id] = parent._fields[FIELD.id]
    return type(parent)._over(gradient._store, parent.dtype, f"{parent._name}@{source}")
