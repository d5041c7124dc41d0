"""Arrays by Arrow's C data interface: numbers, and elements of several lengths, as columns.

Two structs describe a column (https://arrow.apache.org/docs/format/CDataInterface.html), and each
has a function that its last user calls. What they point to is held here until then.
"""

import ctypes
import itertools

import numpy as np

from nbta import errors
from nbta.array_memory import packed_rows
from nbta.runtime.store import FIELD, PACKED, RAGGED

_FORMATS = {
    "bool": "b", "int8": "c", "uint8": "C", "int16": "s", "uint16": "S", "int32": "i",
    "uint32": "I", "int64": "l", "uint64": "L", "float16": "e", "float32": "f", "float64": "g",
}  # fmt: skip
_NULLABLE = 2


def parts(array, function):
    """Rows of an array's elements, looked at, and their offsets where each slot has several.

    Offsets are None for elements of one shape, which are a row each. Rows that lie back to back are
    not copied where no read clears them.
    """
    shape = array.element_shape
    nothing = len(array) == 0 and shape is not None and shape[:1] == (None,)
    if array._fields[FIELD.layout] not in (RAGGED, PACKED) and not nothing:
        return np.asarray(array), None
    if packed := packed_rows(array):
        rows, offsets = packed
        return (rows.copy() if array.clear_after_read else rows), offsets
    elements = list(array)  # looks, which mark nothing
    rest = elements[0].shape[1:] if elements else ()
    for slot, element in enumerate(elements):
        if element.ndim == 0 or element.shape[1:] != rest:
            raise errors.invalid(
                "column",
                f"{function}: elements must be rows of one shape, {('n', *rest)}, and that of slot "
                f"{slot} of {array._name} has shape {element.shape}",
            )
    offsets = np.zeros(len(elements) + 1, np.int64)
    np.cumsum([len(element) for element in elements], out=offsets[1:])
    return np.concatenate(elements) if elements else np.empty(0, array.dtype), offsets


class _Schema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_char_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.POINTER(ctypes.c_void_p)),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


class _Array(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("children", ctypes.POINTER(ctypes.c_void_p)),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


#: What structs point to, by their private data, and structs in capsules, by their addresses.
_held, _in_capsules = {}, {}
_numbers = itertools.count(1)
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def _releaser(kind):
    @_Release
    def release(address):
        struct = kind.from_address(address)
        for k in range(struct.n_children):
            _release(kind, struct.children[k])
        struct.release = None
        del _held[struct.private_data]

    return release


_RELEASERS = {kind: _releaser(kind) for kind in (_Schema, _Array)}


def _release(kind, address):
    """Let go of a struct, unless somebody took it over."""
    function = kind.from_address(address).release
    if function:
        _Release(function)(address)


def _own(struct, children, *more):
    """Let a struct have its children and its release function."""
    addresses = (ctypes.c_void_p * len(children))(*map(ctypes.addressof, children))
    struct.n_children, struct.children = len(children), addresses
    struct.release = ctypes.cast(_RELEASERS[type(struct)], ctypes.c_void_p)
    struct.private_data = number = next(_numbers)
    _held[number] = (addresses, children, *more)
    return struct


def _column(form, name, length, buffers, children=()):
    """Both structs of a column, with those of its children."""
    schema = _Schema(format=form.encode(), name=name.encode(), flags=_NULLABLE)
    addresses = [None, *(buffer.ctypes.data for buffer in buffers)]  # no bits for missing values
    pointers = (ctypes.c_void_p * len(addresses))(*addresses)
    array = _Array(length=length, n_buffers=len(addresses), buffers=pointers)
    schemas, arrays = zip(*children, strict=True) if children else ((), ())
    return _own(schema, schemas), _own(array, arrays, pointers, buffers)


def _rows(values, name):
    """A column with an item for each row, which may have axes of its own."""
    if values.ndim > 1:
        width = values.shape[1]
        inner = values.reshape(len(values) * width, *values.shape[2:])
        return _column(f"+w:{width}", name, len(values), [], [_rows(inner, "item")])
    if values.dtype == bool:
        packed = np.packbits(values, bitorder="little")
        return _column("b", name, len(values), [packed])
    return _column(_FORMATS[values.dtype.name], name, len(values), [values])


def export(array):
    """Capsules of an array's schema and contents, as ``__arrow_c_array__`` gives them."""
    if array.dtype.name not in _FORMATS:
        message = f"Arrow has no numbers of dtype {array.dtype}, which {array._name} has"
        raise errors.invalid("column", f"__arrow_c_array__: {message}")
    values, offsets = parts(array, "__arrow_c_array__")
    values = np.ascontiguousarray(values)
    if offsets is None:
        schema, contents = _rows(values, "")
    else:
        schema, contents = _column("+L", "", len(offsets) - 1, [offsets], [_rows(values, "item")])
    return _capsule(schema), _capsule(contents)


# Capsules. Python's own functions, with types that nobody else changes.

_new_capsule = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", ctypes.pythonapi))
_pointer_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _destroyer(kind, name):
    @_Release
    def destroy(capsule):
        address = _pointer_in(capsule, name)
        _release(kind, address)
        del _in_capsules[address]

    return destroy


_NAMES = {_Schema: b"arrow_schema", _Array: b"arrow_array"}
_DESTROYERS = {kind: _destroyer(kind, name) for kind, name in _NAMES.items()}


def _capsule(struct):
    address, kind = ctypes.addressof(struct), type(struct)
    _in_capsules[address] = struct
    return _new_capsule(address, _NAMES[kind], ctypes.cast(_DESTROYERS[kind], ctypes.c_void_p))
