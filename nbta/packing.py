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
from nbta.runtime.store import (
    BLOCK_RANK,
    BLOCK_SHAPE,
    CLEARED,
    FIELD,
    RAGGED,
    READ,
    WRITTEN,
    ZERO,
)
from nbta.shapes import MAX_RANK, as_pattern

FORMAT = 1
_FLAGS = ("dynamic", "clear_after_read", "infer_shape", "gradient")
_KEPT_STATES = WRITTEN | READ | CLEARED | ZERO


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
            **{flag: bool(fields[getattr(FIELD, flag)]) for flag in _FLAGS},
        }
    )
    for name, value in _pack_contents(array).items():
        members[f"{name}_{number}"] = value
    for gradient in gradients_of(array):
        _pack_tree(gradient, source_of(gradient), number, members, facts)


def _pack_contents(array):
    size = array._fields[FIELD.size]
    states = python_calls.native(python_calls.state_bytes)(array._address)[:size] & _KEPT_STATES
    contents = {"dtype": np.empty(0, _file_dtype(array.dtype)), "states": states}
    if array._fields[FIELD.layout] == RAGGED:
        return contents | _pack_ragged(array, states)
    return contents | {"elements": _pack_uniform(array, states)}


def _file_dtype(dtype):
    """The dtype that stands for an array's dtype in a file, which knows NumPy's own only."""
    if dtype.name == "bfloat16":
        return np.dtype(np.uint16)
    description = np.lib.format.dtype_to_descr(dtype)
    if np.lib.format.descr_to_dtype(description) != dtype:
        message = f"save: no file can name the dtype {dtype}; keep its items as integers or bytes"
        raise errors.invalid("dtype", message)
    return dtype


def _stored_dtype(dtype, gradient):
    """The dtype of elements in a file."""
    return _file_dtype(dtype_in_memory(dtype, gradient))


def _pack_uniform(array, states):
    dtype, filled = _stored_dtype(array.dtype, array.is_gradient), has_value(states)
    if not filled.any():
        return np.empty(0, dtype)
    elements = _rows(uniform_bytes(array), filled).reshape(-1).view(dtype)
    return elements.reshape(int(filled.sum()), *array.element_shape)


def _rows(elements, filled):
    """The rows that are filled, read-only: the array's own memory where no gap is between them."""
    slots = np.flatnonzero(filled)
    first, last = slots[0], slots[-1]
    whole = last - first + 1 == len(slots)
    rows = elements[first : last + 1] if whole else elements[filled]
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


# And back.


def unpack(members):
    """The array that `pack` took apart.

    Raises
    ------
    InvalidArgumentError
        For anything but the result of `pack`.
    """
    meta = _meta_of(members)
    arrays = []
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
    return arrays[0]


_MEMBERS = ("dtype", "states", "elements", "shapes")
_FACTS = {
    "parent": int, "source": str, "size": int, "ragged": bool, "marked": int, "closed": bool,
} | dict.fromkeys(_FLAGS, bool)  # fmt: skip


def _require(condition, what):
    if not condition:
        raise errors.invalid("file", f"is damaged: {what}")


def _meta_of(members):
    text = members.get("meta")
    is_text = isinstance(text, np.ndarray) and text.dtype.kind == "U" and text.shape == ()
    _require(is_text, "no meta")
    try:
        meta = json.loads(str(text))
    except ValueError:
        meta = None
    _require(isinstance(meta, dict), "meta is no JSON text")
    if meta.get("format") != FORMAT:
        message = f"has format {meta.get('format')}, and this version of nbta reads {FORMAT}"
        raise errors.invalid("file", message)
    arrays = meta.get("arrays")
    _require(isinstance(arrays, list) and arrays, "no arrays")
    _require(all(isinstance(meta.get(key), str) for key in ("name", "sources")), "no name")
    return meta


def _check(facts, contents, number):
    """Whether an array's parts fit together, before anything is made of them."""
    _require(isinstance(facts, dict), f"array {number} is no record")
    for key, kind in _FACTS.items():
        _require(type(facts.get(key)) is kind, f"array {number}: {key}")
    states, size = contents["states"], facts["size"]
    _require(_is_array(states, np.uint8, 1) and len(states) == size, f"array {number}: states")
    _require(not (states & ~np.uint8(_KEPT_STATES)).any(), f"array {number}: state bits")
    _require(0 <= facts["marked"] <= size, f"array {number}: marked")
    above = 0 <= facts["parent"] < number or (number == 0 and facts["parent"] == -1)
    _require(above and (number == 0 or facts["gradient"]), f"array {number}: parent")
    _require(isinstance(contents["dtype"], np.ndarray), f"array {number}: dtype")
    _require(facts.get("dtype") in (None, "bfloat16"), f"array {number}: dtype")
    shape = facts.get("element_shape", 0)
    _require(shape is None or isinstance(shape, list), f"array {number}: element shape")
    if facts["ragged"]:
        _check_ragged(contents, states, number)


def _is_array(value, dtype, rank):
    return isinstance(value, np.ndarray) and value.dtype == dtype and value.ndim == rank


def _check_ragged(contents, states, number):
    shapes = contents["shapes"]
    whole = _is_array(shapes, np.int64, 2) and shapes.shape == (len(states), 1 + MAX_RANK)
    _require(whole, f"array {number}: shapes")
    _require(_is_array(contents["elements"], np.uint8, 1), f"array {number}: elements")
    written = shapes[states & WRITTEN != 0]
    _require(np.all((written[:, :1] >= 0) & (written[:, :1] <= MAX_RANK)), f"array {number}: ranks")
    inside = np.arange(MAX_RANK) < written[:, :1]
    _require(np.all(written[:, 1:][inside] >= 0), f"array {number}: extents")


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
        return contents["dtype"].dtype
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
            array.write(slot, np.zeros(_slot_shape(contents, slot), dtype))
    return array


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
                array.write(slot, np.zeros(shape, array.dtype)).read(slot)
            continue
        array.write(slot, np.zeros(shape, array.dtype))
        _, element = block_of(array, slot)
        _require(first + len(element) <= len(elements), "elements end too early")
        element[:] = elements[first : first + len(element)]
        first += len(element)
    _require(first == len(elements), "more elements than slots")


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
    dtype = _stored_dtype(array.dtype, array.is_gradient)
    _require(isinstance(elements, np.ndarray) and elements.dtype == dtype, "dtype of elements")
    slots = np.flatnonzero(has_value(states))
    if not len(slots):
        _require(elements.size == 0, "more elements than slots")
        return
    _require(elements.shape == (len(slots), *(array.element_shape or ())), "shape of elements")
    _require(array.element_shape is not None, "no element shape")
    _require(None not in array.element_shape, "the element shape is not known")
    if dtype == _file_dtype(array.dtype):
        array.scatter(slots, elements.view(array.dtype))
        return
    array.scatter(slots, np.zeros(elements.shape, array.dtype))
    rows = np.ascontiguousarray(elements).view(np.uint8)
    uniform_bytes(array)[slots] = rows.reshape(len(slots), -1)


def _attach(parent, gradient, source):
    """Let an array hold a restored gradient array, under the array's own name and number."""
    python_calls.native(python_calls.hold_gradient)(parent._address, gradient._store)
    for field in (FIELD.id, FIELD.descriptor):
        gradient._fields[field] = parent._fields[field]
    return type(parent)._over(gradient._store, parent.dtype, f"{parent._name}@{source}")
