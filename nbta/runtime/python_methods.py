"""Methods that Python calls as it calls NumPy's: machine code that looks at its arguments itself.

A method that is a function of Python's costs a frame, a check of each argument and a call of
compiled code, which takes a tuple apart: together four times ``a[i] = v``. Python's interpreter
calls objects of a type with a *vectorcall* function (PEP 590) at once, with the addresses of the
arguments, and does not bind those whose type is marked as one of methods. So a `Method` has such a
function, in machine code, which does what is simple; all else it hands to the function of Python's
that it stands for, and of which it has name, documentation and signature.
"""

import ctypes
import functools
import inspect
from functools import partial

import numpy as np
from numba import types

from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime.compiled import loaded_once
from nbta.runtime.fields import field
from nbta.runtime.machine_code import Routine
from nbta.runtime.memory import HEAD, kernel
from nbta.runtime.python_calls import int_value, type_address, value_address
from nbta.runtime.settings import setting
from nbta.runtime.slots import CLEARED, is_free, is_value, occupy, state_place, take
from nbta.runtime.store import FIELD

#: Words of a method after its head: its vectorcall function; the function of Python's; the class
#: whose instances it takes, and at which bytes these have the address of their store, their dtype,
#: and a view of all elements with its address (0 and None before there is one); the functions that
#: make such a view, and that results go through while a list is not empty; and its attributes.
(
    VECTORCALL, FUNCTION, KIND, STORE, DTYPE, SEEN, LOOK, COMPUTED, ANYWHERE, ATTRIBUTES, WORDS,
) = range(11)  # fmt: skip
#: What is not the count in the number that a vectorcall function gets.
_COUNT = np.int64(2**63 - 1)

_object = types.intp
_call = types.ExternalFunction(
    "PyObject_Vectorcall", _object(_object, types.intp, types.intp, _object)
)
_call_with_one = types.ExternalFunction("PyObject_CallOneArg", _object(_object, _object))
_bound = types.ExternalFunction("PyMethod_New", _object(_object, _object))
_retain = types.ExternalFunction("Py_IncRef", types.void(_object))
_release = types.ExternalFunction("Py_DecRef", types.void(_object))
_part = types.ExternalFunction("PySequence_GetItem", _object(_object, types.intp))
_is_subtype = types.ExternalFunction("PyType_IsSubtype", types.int32(_object, _object))
_tuple_item = types.ExternalFunction("PyTuple_GetItem", _object(_object, types.intp))


@kernel
def word(method, number):
    """A word of a method."""
    return mem.load_int(method + setting(settings.OBJECT_HEAD) + 8 * number)


@kernel
def store_of(method, args, count, given, names):
    """The store of an array, where it and so many arguments are given by place; else 0."""
    if names != 0 or given & _COUNT != count:
        return 0
    array = mem.load_int(args)
    kind, known = type_address(array), word(method, KIND)
    if kind != known and not _is_subtype(kind, known):
        return 0
    number = mem.load_int(array + word(method, STORE))
    return int_value(number) if number else 0


@kernel
def slot_number(index):
    """Value of a Python int, or -1 for any other object."""
    return int_value(index) if type_address(index) == setting(settings.INT_TYPE) else -1


@kernel
def put(store, dtype, slot, value):
    """Write a value to a slot; False where that takes more than a copy."""
    if not is_free(store, slot):
        return False
    source = value_address(store, dtype, value)
    nbytes = field(store, FIELD.element_bytes)
    if source == 0 or nbytes >= setting(settings.LARGE):
        return False
    place = state_place(store, slot)
    mem.copy_bytes(field(store, FIELD.data) + slot * nbytes, source, nbytes)
    occupy(store, place, slot)
    return True


@kernel
def handed_on(method, args, given, names):
    """What the function of Python's makes of a call."""
    return _call(word(method, FUNCTION), args, given, names)


@kernel
def array_itself(array):
    """An array as a result."""
    _retain(array)
    return array


def write_method(method, args, given, names):
    """``write(index, value)``."""
    store = store_of(method, args, 3, given, names)
    if store != 0:
        array = mem.load_int(args)
        dtype, slot = mem.load_int(array + word(method, DTYPE)), slot_number(mem.load_int(args + 8))
        if put(store, dtype, slot, mem.load_int(args + 16)):
            return array_itself(array)
    return handed_on(method, args, given, names)


def append_method(method, args, given, names):
    """``append(value)``."""
    store = store_of(method, args, 2, given, names)
    if store != 0:
        array = mem.load_int(args)
        dtype, slot = mem.load_int(array + word(method, DTYPE)), field(store, FIELD.size)
        if put(store, dtype, slot, mem.load_int(args + 8)):
            return array_itself(array)
    return handed_on(method, args, given, names)


@kernel
def view_of(method, array, base):
    """The view of all elements, which are at an address; 0 where there is none. Not counted."""
    seen = mem.load_int(array + word(method, SEEN))
    if seen == 0 or int_value(_tuple_item(seen, 0)) != base:
        return 0
    return _tuple_item(seen, 1)


@kernel
def element(method, view, slot):
    """An element of a view, as it is given to users."""
    _retain(view)  # the memory that is asked for may make Python collect garbage: anything may run
    found = _part(view, slot)
    _release(view)
    if found == 0 or mem.load_int(word(method, ANYWHERE) + setting(settings.OBJECT_HEAD)) == 0:
        return found
    result = _call_with_one(word(method, COMPUTED), found)
    _release(found)
    return result


@kernel
def simple_view(method, args, store, slot, stays):
    """The view of all elements if a slot's value is there; else 0. Not counted.

    ``stays`` asks for one that can neither change nor be cleared.
    """
    if stays and (field(store, FIELD.gradient) or field(store, FIELD.read_state) & CLEARED):
        return 0
    if not is_value(store, slot):
        return 0
    return view_of(method, mem.load_int(args), field(store, FIELD.data))


@kernel
def value_at(method, args, given, names, reads):
    """An element that is read or looked at."""
    store = store_of(method, args, 2, given, names)
    if store == 0:
        return handed_on(method, args, given, names)
    slot = slot_number(mem.load_int(args + 8))
    view = simple_view(method, args, store, slot, not reads)
    if view == 0 and is_value(store, slot):
        # Made now, and looked for again, as anything may have run.
        made = _call_with_one(word(method, LOOK), mem.load_int(args))
        if made == 0:
            return 0
        _release(made)
        view = simple_view(method, args, store, slot, not reads)
    if view == 0 or (reads and not take(store, slot)):
        return handed_on(method, args, given, names)
    return element(method, view, slot)


def read_method(method, args, given, names):
    """``read(index)``."""
    return value_at(method, args, given, names, True)


def look_method(method, args, given, names):
    """``array[index]``."""
    return value_at(method, args, given, names, False)


def bound_method(method, array, kind):
    """A method that was asked for: of an array, or of a class."""
    return array_itself(method) if array == 0 else _bound(method, array)


_CALL = _object(_object, types.intp, types.intp, _object)
_OPTIONS = {"error_model": "numpy"}
ROUTINES = {
    **{f: Routine(f, _CALL, _OPTIONS) for f in (
        write_method, append_method, read_method, look_method,
    )},
    bound_method: Routine(bound_method, _object(_object, _object, _object), _OPTIONS),
}  # fmt: skip


@loaded_once
def _loaded(function):
    """One of this module's functions, loaded or compiled at its first use."""
    return ROUTINES[function].load()


# The type of methods.


class _Member(ctypes.Structure):  # PyMemberDef
    _fields_ = (
        ("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t),
        ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


class _Attribute(ctypes.Structure):  # PyGetSetDef
    _fields_ = (
        ("name", ctypes.c_char_p), ("get", ctypes.c_void_p), ("set", ctypes.c_void_p),
        ("doc", ctypes.c_char_p), ("closure", ctypes.c_void_p),
    )  # fmt: skip


class _Slot(ctypes.Structure):  # PyType_Slot
    _fields_ = (("slot", ctypes.c_int), ("pointer", ctypes.c_void_p))


class _Spec(ctypes.Structure):  # PyType_Spec
    _fields_ = (
        ("name", ctypes.c_char_p), ("size", ctypes.c_int), ("item_size", ctypes.c_int),
        ("flags", ctypes.c_uint), ("slots", ctypes.POINTER(_Slot)),
    )  # fmt: skip


#: Constants of Python's headers: numbers of slots of types, flags of types, and of members.
_TP_CALL, _TP_DESCR_GET, _TP_MEMBERS, _TP_GETSET = 50, 54, 72, 73
_HAVE_VECTORCALL, _METHOD_DESCRIPTOR = 1 << 11, 1 << 17
_SSIZE, _READ_ONLY = 19, 1


def _in_python(name):
    """Address of a function of Python's."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value


@loaded_once
def _type():
    """The type of methods, and what it keeps."""
    members = (_Member * 3)(
        _Member(b"__vectorcalloffset__", _SSIZE, HEAD + 8 * VECTORCALL, _READ_ONLY),
        _Member(b"__dictoffset__", _SSIZE, HEAD + 8 * ATTRIBUTES, _READ_ONLY),
    )
    attributes = (_Attribute * 2)(
        _Attribute(b"__dict__", _in_python("PyObject_GenericGetDict")),
    )
    slots = (_Slot * 5)(
        _Slot(_TP_CALL, _in_python("PyVectorcall_Call")),
        _Slot(_TP_DESCR_GET, _loaded(bound_method).address),
        _Slot(_TP_MEMBERS, ctypes.addressof(members)),
        _Slot(_TP_GETSET, ctypes.addressof(attributes)),
    )
    flags = _HAVE_VECTORCALL | _METHOD_DESCRIPTOR
    spec = _Spec(b"nbta.Method", HEAD + 8 * WORDS, 0, flags, slots)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
    kind = make(("PyType_FromSpec", ctypes.pythonapi))(ctypes.addressof(spec))
    kind.__repr__ = lambda method: repr(method.__wrapped__)
    kind.__reduce__ = lambda method: method.__qualname__  # by name, as functions
    return kind, (members, attributes)


def _offset(kind, name):
    """At which byte of an instance a slot of its class is."""
    marker, probe = object(), object.__new__(kind)
    setattr(probe, name, marker)
    words = (ctypes.c_int64 * (kind.__basicsize__ // 8)).from_address(id(probe))
    return 8 * list(words).index(id(marker))


#: Methods of a class by their names, in machine code.
CODE = {
    "write": write_method, "append": append_method, "read": read_method,
    "__getitem__": look_method,
}  # fmt: skip


def quicken(kind, look, computed, anywhere):
    """Give a class of arrays methods in machine code in place of its own.

    Parameters
    ----------
    kind : type
        It has slots ``_address``, ``_dtype`` and ``_seen``.
    look : callable
        Takes an array, and puts a view of its elements and their address into ``_seen``.
    computed : callable
        What results go through while ``anywhere`` is not empty.
    anywhere : list
    """
    for name, code in CODE.items():
        function = vars(kind)[name]
        method = _type()[0]()
        functools.update_wrapper(method, function)
        method.__doc__ = inspect.getdoc(function)
        words = (ctypes.c_int64 * ATTRIBUTES).from_address(id(method) + HEAD)
        slots = map(partial(_offset, kind), ("_address", "_dtype", "_seen"))
        held = [id(look), id(computed), id(anywhere)]
        words[:] = [_loaded(code).address, id(function), id(kind), *slots, *held]
        method.__dict__["_held"] = look, computed, anywhere
        setattr(kind, name, method)
