"""What converted functions call, by short names."""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import inspect
import itertools
import operator
import os
import sys
import types

import numpy as np

from nbta.errors import UnimplementedError, invalid, out_of_range
from nbta.frontend import (
    control,
    declared_types,
    effects,
    followed,
    iteration,
    native,
    numba_integers,
    picking,
    python_numbers,
    texts,
)
from nbta.frontend.array_wrappers import (
    ArrayWrapper,
    Attribute,
    Frame,
    Item,
    Missing,
    born,
    cells_of,
    change_in_place,
    check_number,
    frames,
    in_trace,
    note_place,
    wrapped,
)
from nbta.frontend.calls import (
    _together,
    by_special,
    by_users,
    call,
    call_of_items,
    filtered,
    is_library,
    iterated,
    seen_by_users,
    special,
    truth_of_object,
    user_method,
)
from nbta.frontend.constants import Chosen
from nbta.frontend.containers import KINDS, note_whole, put_item
from nbta.frontend.control import (
    Undefined,
    any_of,
    as_truth,
    both,
    either,
    if_,
    negated,
    while_,
)
from nbta.frontend.conversion import note_unproven, provide
from nbta.frontend.conversion import outer as _outer
from nbta.frontend.dict_items import dict_item, is_in_range, open_item, set_chosen_item
from nbta.frontend.identity import (
    attribute_of,
    called_by_python,
    check_key,
    checked_keys,
    differ,
    is_known_key,
    is_run_number,
    is_same,
    no_attribute,
    with_floats,
)
from nbta.frontend.iteration import (
    Inner,
    Items,
    comprehension,
    comprehension_by,
    elements,
    generator,
    items_of_search,
    known_test,
    nested,
    one_by_one,
    searched,
)
from nbta.frontend.jit_classes import PythonObject, asked, is_compiled_object, placeholder
from nbta.frontend.languages import is_numbas
from nbta.frontend.list_items import (
    Picked,
    check_keeps_kind,
    delete_item_at,
    is_run_place,
    item_at,
    set_item_at,
)
from nbta.frontend.lists import Listing, listing
from nbta.frontend.maybe import check_keys, is_maybe, may_be_gone, open_keys, or_none
from nbta.frontend.messages import filled, shown
from nbta.frontend.outside import note_member, reading, see_whole, seen_by
from nbta.frontend.picking import concatenated, selects
from nbta.frontend.problems import here, refuse_numbas
from nbta.frontend.raising import checked as checked_operand
from nbta.frontend.records import Record
from nbta.frontend.taken import advance, note_searched, note_sources, note_taken
from nbta.frontend.texts import joined_text, text_of_error
from nbta.frontend.tries import (
    Suppressing,
    Unraised,
    check_index,
    enter_try,
    leave_try,
    refusals,
)
from nbta.frontend.unused import compute, unused, unused_after
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import logical_not
from nbta.ops.core.dispatch import is_weak
from nbta.ops.numbers import Number
from nbta.structure import leaves

__all__ = [
    "Inner",
    "Items",
    "any_of",
    "as_truth",
    "assert_",
    "attribute",
    "binary",
    "both",
    "call",
    "call_of_items",
    "cell",
    "cells",
    "change",
    "change_attribute",
    "checked",
    "compared",
    "compared_once",
    "comprehension",
    "comprehension_by",
    "compute",
    "declared",
    "delete_attribute",
    "delete_item",
    "either",
    "elements",
    "emitted",
    "enter_try",
    "filled",
    "filtered",
    "for_",
    "free",
    "generator",
    "global_before",
    "if_",
    "in_place",
    "item",
    "items_of_search",
    "joined_text",
    "known_test",
    "later",
    "leave_try",
    "listing",
    "managed",
    "matched",
    "method",
    "negated",
    "nested",
    "no_result",
    "of_python",
    "one_by_one",
    "outer",
    "own_cells",
    "owned",
    "raised",
    "refusals",
    "returned",
    "searched",
    "set_attribute",
    "set_item",
    "shown",
    "slice",
    "text",
    "truth_of_object",
    "unary",
    "undefined",
    "unpacked",
    "unproven",
    "unused",
    "unused_after",
    "while_",
]  # fmt: skip

undefined = Undefined
slice = builtins.slice
text = str
_OPERATORS = {
    "Add": (operator.add, operator.iadd), "Sub": (operator.sub, operator.isub),
    "Mult": (operator.mul, operator.imul), "Div": (operator.truediv, operator.itruediv),
    "FloorDiv": (operator.floordiv, operator.ifloordiv), "Mod": (operator.mod, operator.imod),
    "Pow": (operator.pow, operator.ipow), "MatMult": (operator.matmul, operator.imatmul),
    "BitAnd": (operator.and_, operator.iand), "BitOr": (operator.or_, operator.ior),
    "BitXor": (operator.xor, operator.ixor), "LShift": (operator.lshift, operator.ilshift),
    "RShift": (operator.rshift, operator.irshift),
}  # fmt: skip
#: Attributes of an array that are views of it, or are nothing that an assignment changes.
_VIEWS = {"real", "imag", "T"}
#: What Python calls the methods for operators.
_NAMES = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "FloorDiv": "floordiv",
    "Mod": "mod", "Pow": "pow", "MatMult": "matmul", "BitAnd": "and", "BitOr": "or",
    "BitXor": "xor", "LShift": "lshift", "RShift": "rshift",
}  # fmt: skip
_SIGNS = {
    "Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**",
    "MatMult": "@", "BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>",
}  # fmt: skip
_ORDERS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
_UNARY = {"USub": operator.neg, "UAdd": operator.pos, "Invert": operator.invert}
_COMPARED = {
    "Eq": ("__eq__", "__eq__"), "NotEq": ("__ne__", "__ne__"), "Lt": ("__lt__", "__gt__"),
    "LtE": ("__le__", "__ge__"), "Gt": ("__gt__", "__lt__"), "GtE": ("__ge__", "__le__"),
}  # fmt: skip
_COMPARISONS = {
    "Eq": operator.eq, "NotEq": operator.ne, "Lt": operator.lt, "LtE": operator.le,
    "Gt": operator.gt, "GtE": operator.ge,
}  # fmt: skip


def outer(value, name, whole=True):
    """A value from outside of the function, of which the caller sees all, or what it asks for."""
    if current() is None:
        return value
    if whole:
        see_whole(value)
    return _outer(value, name)


def free(value, name):
    """A variable of the module of a function."""
    if (outside := reading()) is not None:
        outside.read_global(sys._getframe(1).f_globals, name, value)
        return _outer(value, name)
    return value


def cell(get, name):
    """A variable of a function around the function."""
    value = get()
    if (outside := reading()) is not None:
        outside.read_cell(get.__closure__[0], name, value)
        return _outer(value, name)
    return value


def _asked(owner, name):
    """What has an attribute: an array from outside as a wrapper, where those have it too."""
    if is_compiled_object(owner):
        return owner if current() is None else asked(owner, name)
    if not isinstance(owner, np.ndarray | ArrayWrapper) or (outside := reading()) is None:
        return owner
    if hasattr(ArrayWrapper, name):
        return _outer(owner)
    return outside.as_it_is(owner)


def method(owner, name):
    """``owner.name`` as Python has it, such as what is called."""
    owner = _asked(owner, name)
    try:
        value = attribute_of(owner, name)
    except AttributeError:
        if (outside := reading()) is not None:
            outside.read_whether(owner, name, False)
        if isinstance(owner, Listing):
            getattr(list, name)
        raise
    if (outside := reading()) is not None:
        outside.read_attribute(owner, name, value)
    return value


def no_result():
    """What a function gives that has not returned yet."""
    return Undefined("the result")


def returned(value, given=True):
    """What a function gives that has ended: None where no `return` has given anything else."""
    if isinstance(value, Undefined):
        return None
    if not control.is_traced(given):
        return value if given else None
    return or_none(value, given)


def attribute(owner, name):
    """``owner.name``."""
    if current() is None:
        return getattr(owner, name)
    owner = _asked(owner, name)
    if isinstance(owner, Tensor):
        return attribute_of(owner, name)
    found = next((vars(k)[name] for k in type(owner).__mro__ if name in vars(k)), None)
    if hasattr(found, "__get__") and not isinstance(found, types.FunctionType):
        note_member(type(owner), name)
    if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
        if not is_library(found.fget):
            return call(found.fget, owner)
    elif isinstance(found, functools.cached_property) and name not in owner.__dict__:
        set_attribute(call(found.func, owner), owner, name)
    elif user_method(found, "__get__") is not None and not isinstance(owner, type):
        return call(user_method(found, "__get__"), found, owner, type(owner))
    elif user_method(owner, "__getattr__") is not None and not _has(owner, name):
        if (outside := reading()) is not None:
            outside.read_missing(owner, name)
        return call(user_method(owner, "__getattr__"), owner, name)
    return method(owner, name)


def _has(owner, name):
    """Whether Python finds an attribute without asking ``__getattr__``."""
    try:
        object.__getattribute__(owner, name)
    except AttributeError:
        return False
    return True


def item(array, key, whole=True):
    """``array[key]``, of which the caller sees all, or what it asks for."""
    key = _index(array, key)
    _check_for_handlers(array, key)
    if isinstance(array, ArrayWrapper) or current() is None:
        return array[key]
    if isinstance(array, np.ndarray):
        return _outer(array)[key]
    if isinstance(array, Listing) and array.array is not None:
        return array.item(key)
    if (array is np.c_ or array is np.r_) and not native.is_known(key):
        return wrapped(concatenated(native.plain(key), columns=array is np.c_))
    if isinstance(array, Tensor):
        return wrapped(picking.item(array, native.plain(key)))
    if _is_chosen_by_run(array, key):
        return item_at(_with_own_lists(array), key)
    method = user_method(array, "__getitem__")
    if isinstance(array, dict | set) and method is None and not is_known_key(key):
        return dict_item(array, key)
    if method is not None:
        return call(method, array, key)
    if isinstance(array, dict) and key not in array and hasattr(type(array), "__missing__"):
        return _missing(array, key, whole)
    return _found(array, native.plain(key), whole)


def _check_for_handlers(array, key):
    """Let an index be out of range as Python has it, or fail in a run, where a handler waits."""
    if not check_index(array, key):
        return
    length = call(len, array)
    holds = both(True, key < length, lambda: key >= -length)
    message = (
        f"{here()}: an index is out of range in this run, and the try statement around it does not "
        f"catch what only the run knows; test the index with an if instead"
    )
    effects.check_uncaught(holds, out_of_range(message))


def _is_chosen_by_run(array, key):
    """Whether only the run knows which item of a sequence a key is of, or which items of a list."""
    if isinstance(array, list) and isinstance(key, builtins.slice):
        return any(map(is_run_place, (key.start, key.stop, key.step)))
    return isinstance(array, list | tuple | str) and is_run_place(key)


def _index(array, key):
    """A key, with what a user's ``__index__`` gives in place of the object."""
    if current() is None or not isinstance(array, _BY_INDEX):
        return key
    if type(key) is tuple:
        return tuple(_index(array, part) for part in key)
    return by_special(key, "__index__")


#: What takes integers as keys.
_BY_INDEX = list | tuple | str | bytes | builtins.range | Tensor | np.ndarray


def _missing(owner, key, whole):
    """An item that a dict does not have: what its class gives."""
    method = user_method(owner, "__missing__")
    if method is not None:
        found = call(method, owner, key)
        if key not in owner and (outside := reading()) is not None:
            outside.read_lacking(owner, key)
        return found
    if not isinstance(owner, collections.defaultdict):
        return _found(owner, key, whole)
    factory = attribute(owner, "default_factory")
    if isinstance(factory, type | None):
        note_place(Item(owner, key))
    else:
        set_item(call(factory), owner, key)
    return _found(owner, key, whole)


def _found(owner, key, whole):
    """An item of a container, as it holds it."""
    try:
        found = owner[key]
    except LookupError:
        seen_by(owner, "__getitem__")
        raise
    if isinstance(owner, dict) and may_be_gone(found):
        found = open_item(found, key)
    if (outside := reading()) is not None:
        outside.read_item(owner, key, found)
    if whole or type(found) is list:
        see_whole(found)
    inner = type(owner) in (list, Listing) and type(found) is list
    return _own_list(owner, key, found) if inner else _outer(found)


def _with_own_lists(owner):
    """A sequence of which all items that are lists are those that loops may fill."""
    if isinstance(owner, Listing):
        for place, each in enumerate(list.__iter__(owner)):
            if type(each) is list:
                _own_list(owner, place, each)
    return owner


def _own_list(owner, key, found):
    """An item that is a list of Python's, from now on one that loops may fill; not from outside."""
    if isinstance(key, builtins.slice):
        return listing(found)
    if (outside := reading()) is not None and outside.holds(found):
        return found
    own = listing(found)
    for frame in frames():  # it is as old as the item
        if not (frame.made(found) or frame.made(owner)):
            frame.disowns(own)
    for place, each in enumerate(list.__iter__(owner)):
        if each is found:
            put_item(owner, place, own)
    return own


def set_item(value, array, key):
    """``array[key] = value``."""
    key = _index(array, key)
    if current() is not None:
        if isinstance(array, list) and is_numbas():
            check_keeps_kind(array, value)
        return _set_item_in_graph(value, array, key)
    array[key] = value
    return None


def _set_item_in_graph(value, array, key):
    if isinstance(array, np.ndarray):
        array = _outer(array)
    elif is_run_number(array):
        kind = called_by_python(array)
        raise TypeError(f"{here()}: {kind!r} object does not support item assignment")
    elif isinstance(array, Tensor) and not isinstance(array, ArrayWrapper):
        array[key] = value  # which says that it cannot be
    elif isinstance(array, Listing) and array.array is not None:
        return array.put(key, value)
    elif isinstance(array, list) and is_run_place(key):
        return set_item_at(array, key, value)
    elif type(array) is dict and isinstance(key, Chosen):
        _check_stays(array, value)
        return set_chosen_item(array, key, value)
    elif isinstance(array, list | dict) and user_method(array, "__setitem__") is None:
        _check_stays(array, value)
        _note_item(array, key)
        put_item(array, key, value)
        return control.follow(array, key)
    elif isinstance(array, KINDS[2:]):
        note_whole(array)
    elif not isinstance(array, ArrayWrapper):
        return _set_item_of_object(value, array, key)
    array[key] = value
    return None


def _check_stays(owner, value):
    """Refuse to leave a value of a trace in a container from outside of the function."""
    if (outside := reading()) is None or not outside.holds(owner) or native.is_known(value):
        return
    message = (
        f"{here()}: an item of a {called_by_python(owner)} from outside of the function is "
        "assigned a value that only the run knows; return it as a result"
    )
    raise invalid("global", message)


def _set_item_of_object(value, owner, key):
    """``owner[key] = value`` of an object whose class says what that is."""
    if not native.is_known((key, value)):
        refuse_numbas(owner)
    if not hasattr(type(owner), "__setitem__"):
        owner[key] = value  # which says that it cannot be
    special(owner, "__setitem__", key, value)


def _note_item(owner, key):
    """Note an item of a list or a dict before it changes."""
    if isinstance(owner, list) and isinstance(key, builtins.slice | Tensor):
        return note_whole(owner)
    if isinstance(owner, dict):
        check_key(key, owner)
    key = key + len(owner) if isinstance(owner, list) and key < 0 else key
    return note_place(Item(owner, key))


def delete_item(owner, key):
    """``del owner[key]``."""
    if isinstance(owner, ArrayWrapper):
        raise ValueError(f"{here()}: cannot delete array elements")
    if current() is not None and isinstance(owner, KINDS):
        if isinstance(owner, Listing) and (owner.array is not None or in_trace(owner)):
            return owner.delete(key)
        note_whole(owner)
        if isinstance(owner, list) and is_run_place(key):
            return delete_item_at(owner, key)
        if open_keys(owner):
            item(owner, key)
    elif current() is not None and user_method(owner, "__delitem__") is not None:
        return special(owner, "__delitem__", key)
    del owner[key]
    return None


def delete_attribute(owner, attribute):
    """``del owner.attribute``."""
    if current() is not None and hasattr(owner, "__dict__"):
        note_place(Attribute(owner, attribute))
    delattr(owner, attribute)


def set_attribute(value, owner, name):
    """``owner.name = value``."""
    bare = isinstance(owner, Listing) or (
        isinstance(owner, ArrayWrapper) and not hasattr(ArrayWrapper, name)
    )
    if bare or is_run_number(owner):
        raise no_attribute(owner, name)
    if current() is not None and not isinstance(owner, Tensor):
        if isinstance(owner, Record):
            owner[name] = value
            return None
        owner = placeholder(owner) if is_compiled_object(owner) else owner
        if isinstance(owner, PythonObject) and name in owner.dtypes:
            note_place(Attribute(owner, name))
            owner.put(name, value)
            return None
        if user_method(owner, "__setattr__") is not None:
            return special(owner, "__setattr__", name, value)
        if (setter := _setter(owner, name)) is not None:
            return call(*setter, value)  # which notes what it changes itself
        note_place(Attribute(owner, name))
    return setattr(owner, name, value)


def _setter(owner, name):
    """The user's function, and what it begins with, that an assigned attribute calls."""
    found = inspect.getattr_static(type(owner), name, None)
    if isinstance(found, property) and isinstance(found.fset, types.FunctionType):
        return None if is_library(found.fset) else (found.fset, owner)
    method = user_method(found, "__set__")
    return None if method is None else (method, found, owner)


def checked(value, has_value, name, kind=UnboundLocalError):
    """The value of a variable that may have none."""
    if isinstance(value, Undefined):
        value._refuse()
    if current() is None or not control.is_traced(has_value):
        return value
    error = kind(f"{here()}: the variable {name!r} has no value in this run")
    effects.check(has_value, error, f"reading {name!r}")
    return value


def unproven(get, has_value):
    """Note that functions in this one may read a variable that has no value."""
    if current() is not None:
        (place,) = cells_of(get)
        note_unproven(place.owner, has_value)


def matched(subject, numbers):
    """What a `match` of Python's is of; ``numbers``: whether it asks if parts of it are some."""
    if (outside := reading()) is not None:
        outside.native(subject, fix=False)
    for leaf in leaves(subject):
        if isinstance(leaf, Chosen):
            leaf.refuse()
    whole = isinstance(subject, Tensor) and not isinstance(subject, ArrayWrapper)
    unknown = current() is not None and not native.is_known(subject)
    if unknown and (numbers or whole or any(map(is_maybe, leaves(subject)))):
        message = (
            f"{here()}: match asks for the class or parts of a value that only the run knows; use "
            f"if and isinstance"
        )
        raise invalid("symbolic", message)
    return subject


def raised(error):
    """An error of a `raise` statement, which is one of the run where that decides."""
    found = error() if isinstance(error, type) else error
    if current() is not None:
        found.nbta_raised = True
    return found


def of_python(test, what):
    """A test that Python makes, as a name is bound by ``:=`` in what it decides."""
    if control.is_traced(test) and not isinstance(test, Number):  # lengths can be asked for
        message = (
            f"{here()}: `:=` in {what}, where only the run knows whether it is computed; assign "
            f"the name in a statement before, or write an `if` statement"
        )
        raise invalid("symbolic", message)
    return test


def for_(items, *loop):
    """A `for`."""
    if current() is None:
        return iteration.for_(items, *loop)
    if type(items) is itertools.count:
        return _counted_for(items, loop)
    found = iterated(items)
    if found is None:
        return iteration.for_(items, *loop)
    advance(items)
    iteration.for_(found, *loop)
    _, flags, *_ = loop
    return note_taken(items, control.any_flag(flags()), by_python=True)


def _counted_for(items, loop):
    """A `for` along `itertools.count`, which its body ends."""
    advance(items)
    first = next(items)
    iteration.for_(call(followed.count, first, next(items) - first), *loop)
    note_taken(items, True)


def emitted(emit, value):
    """``yield value``: whether who takes the items wants no more."""
    return emit(value)


def owned(value):
    """A dict, a set or a generator that is made here."""
    if current() is None:
        return value
    if isinstance(value, types.GeneratorType):
        note_sources(value, [value.gi_frame.f_locals[".0"]])
    return born(checked_keys(value))


class Later:
    """A value that is computed after what an assignment reads, which that may change."""

    def __init__(self, thunk):
        self.thunk = thunk


later = Later


def _value_and_old(array, key, value):
    """A value, and the items that were there before; None where computing it changed no items."""
    if not isinstance(value, Later):
        return value, None
    held = array.root._value
    value = value.thunk()
    now = array.root._value
    if now is held:
        return value, None
    array.root._value = held
    try:
        return value, native.plain(array[key])
    finally:
        array.root._value = now


def change(name, array, key, value):
    """``array[key] += value``, and with other operators."""
    key = _index(array, key)
    compute, _ = _OPERATORS[name]
    if current() is not None and isinstance(array, ArrayWrapper):
        value, before = _value_and_old(array, key, value)
        _, value = python_numbers.as_operands(name, array, value)
        if before is not None:
            return set_item(compute(wrapped(before), value), array, key)
    if current() is None or not isinstance(array, ArrayWrapper):
        old = item(array, key)
        value = value.thunk() if isinstance(value, Later) else value
        new = _in_place(name, old, value)
        if new is old and isinstance(array, Listing) and isinstance(new, ArrayWrapper):
            return None  # the item itself has changed
        if new is old and isinstance(new, Picked) and isinstance(array, list):
            return None
        return set_item(new, array, key)
    plain = native.plain(key)
    array.check_writable()
    if name in ("Add", "Sub") and _is_basic(plain) and not _adds_by_cast(value, array):
        value = native.plain(value)
        return array.add(plain, -value if name == "Sub" else value)
    if selects(plain, value) and not native.is_known((array, plain, value)):
        return array.change_where(plain, compute, native.plain(value))
    part = array[key]
    if isinstance(part, ArrayWrapper) and part.root is array.root:
        return change_in_place(part, compute, value)
    with np.errstate(all="ignore"):
        array[key] = compute(part, value)
    return None


def _adds_by_cast(value, array) -> bool:
    """Whether a sum is cast as a whole: 3 - 0.5 is 2 as an integer, and 3 less 0 is 3.

    A sum in the wider dtype of the value is rounded once, and a value that is cast first, twice.
    """
    value, into = native.plain(value), array.dtype
    have = getattr(value, "dtype", None) or np.asarray(value).dtype
    is_wide = not is_weak(value) and have.kind in "iufc" and into.kind in "iufc"
    is_wide = is_wide and np.promote_types(have, into) != into
    return is_wide or native.stored_by_cast(have, into)


def _is_basic(key):
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None or part is Ellipsis or isinstance(part, builtins.slice)
        or native.is_integer(part)
        for part in parts
    )  # fmt: skip


def declared(kind, value):
    """What is assigned to a variable that has a type for Numba."""
    return declared_types.declared(kind, value, call)


def in_place(name, old, value):
    """``old += value``, and with other operators."""
    if isinstance(old, Undefined):
        old._refuse()
    if current() is not None and isinstance(old, np.ndarray):
        old = _outer(old)
    check_number(old)
    return _in_place(name, old, value)


def _in_place(name, old, value):
    changing = _OPERATORS[name][1]
    if current() is not None:
        if isinstance(old, KINDS) and not isinstance(old, Listing):
            note_whole(old)
        method = user_method(old, f"__i{_NAMES[name]}__")
        found = NotImplemented if method is None else call(method, old, value)
        if found is NotImplemented and not hasattr(type(old), f"__i{_NAMES[name]}__"):
            found = by_users(_names_of(name), old, value)
        if found is not NotImplemented:
            return found
        _check_none(name, old, value, "=")
        if (text := texts.of_operator(name, old, value)) is not None:
            return text
        old, value = _operands(name, old, value)
        if name == "Mult" and _repeats(old, value) is not None:
            message = (
                f"{here()}: *= repeats a list a number of times that only the run knows; write a "
                "= a * n"
            )
            raise UnimplementedError(message)
    return _computed(changing, old, value)


def binary(name, left, right):
    """``left + right``, and with other operators."""
    if current() is not None:
        left, right = _outer(left), _outer(right)
        found = by_users(_names_of(name), left, right)
        if found is not NotImplemented:
            return found
        _check_none(name, left, right)
        if (text := texts.of_operator(name, left, right)) is not None:
            return text
        left, right = _operands(name, left, right)
        if name == "Mult" and (repeats := _repeats(left, right)) is not None:
            return iteration.repeated(*repeats)
    found = _computed(_OPERATORS[name][0], left, right)
    return born(found) if isinstance(found, KINDS) else found


def _operands(name, left, right):
    """Operands as the language of the function has them, after its checks."""
    left, right = with_floats(left, right)
    if is_numbas():
        left, right = numba_integers.as_operands(name, left, right)
    left, right = python_numbers.as_operands(name, left, right)
    checked = checked_operand(name, left, right)
    python_numbers.note(checked, right)
    right = checked
    for operand in (left, right):
        check_keys(operand, "an operator")
    return left, right


def _computed(compute, left, right):
    found = compute(left, right)
    if current() is not None:
        python_numbers.note(found, left, right)
    return numba_integers.checked_result(found) if is_numbas() else found


def _check_none(name, left, right, more=""):
    """Raise Python's error of None in an operator: a loop may learn that it is a number later."""
    if not any(each is None for each in (left, right)):
        return
    if isinstance(right if left is None else left, Tensor):
        kinds = f"{called_by_python(left)!r} and {called_by_python(right)!r}"
        said = f"unsupported operand type(s) for {_SIGNS.get(name)}{more}: {kinds}"
        if name in _ORDERS:
            said = f"{_ORDERS[name]!r} not supported between instances of {kinds}"
        raise TypeError(f"{here()}: {said}")


def _repeats(left, right):
    """A sequence and how often it is repeated, if only the run knows that; None for products."""
    for items, number in ((left, right), (right, left)):
        kinds = list | tuple | str | bytes
        if isinstance(items, kinds) and is_run_number(number) and not number.ndim:
            return items, number
    return None


def unary(name, value):
    """``-value``, and with other operators."""
    value = value if current() is None else _outer(value)
    method = seen_by_users(value, f"__{name.lower()}__") if current() is not None else None
    if method is not None:
        return call(method, value)
    found = _UNARY[name](value)
    if current() is not None:
        python_numbers.note(found, value)
    return found


def _names_of(name):
    """What the methods are called that Python asks for an operator."""
    return f"__{_NAMES[name]}__", f"__r{_NAMES[name]}__"


def change_attribute(name, owner, attribute, value):
    """``owner.attribute += value``, and with other operators."""
    old = attribute_of(owner, attribute) if current() is not None else getattr(owner, attribute)
    if (outside := reading()) is not None:
        outside.read_attribute(owner, attribute, old, changes=True)
    old = _outer(old)
    value = value.thunk() if isinstance(value, Later) else value
    if isinstance(owner, ArrayWrapper) and attribute in _VIEWS:
        return set_attribute(binary(name, old, value), owner, attribute)
    return set_attribute(in_place(name, old, value), owner, attribute)


def compared_once(sign, left, right):
    """A comparison."""
    return _COMPARISONS[sign](left, right) if current() is None else _compare(sign, left, right)


def compared(signs, left, *thunks):
    """Comparisons in a row, and ``in``."""
    right = thunks[0]()
    found = _compare(signs[0], left, right)
    if not thunks[1:]:
        return found
    return both(True, found, lambda: compared(signs[1:], right, *thunks[1:]))


def cells(function):
    """Note variables of functions around this one, which a statement gives other values."""
    if current() is not None:
        outside = reading()
        for place in cells_of(function):
            if outside is not None and place.value is not Missing:
                outside.read_cell(place.owner, place.name, place.value, changes=True)
            note_place(place)


def own_cells(function):
    """Note that the variables of a function that functions in it assign are its own."""
    for cell in cells_of(function):
        born(cell.owner)


def global_before(name, get):
    """What a module's variable holds before a statement assigns it."""
    if current() is not None and in_trace():
        refuse_global(name)
    try:
        value = get()
    except NameError:
        value = None
    if (outside := reading()) is not None:
        outside.read_global(get.__globals__, name, value, changes=True)
    return value


def is_run_value(value):
    """Whether a value may not be left in a module's variable."""
    return current() is not None and control.is_traced(value)


def refuse_global(name):
    """Refuse a value of a trace in a module's variable."""
    message = (
        f"{here()}: the global {name!r} is assigned a value that only the run knows, or in a "
        "data-dependent loop or branch; return it as a result"
    )
    raise invalid("global", message)


def managed(manager):
    """The object of a `with`, whose methods are converted where they are the user's."""
    if isinstance(manager, contextlib.suppress) and current() is not None:
        return Suppressing(manager)
    if isinstance(manager, np.errstate) and current() is not None:
        return Unraised(manager)
    seen_by(manager, "__enter__", "__exit__")
    enter = getattr(type(manager), "__enter__", None)
    plain = isinstance(enter, types.FunctionType) and not is_library(enter)
    return Managed(manager) if plain and current() is not None else manager


class Managed:
    """A user's object in a `with`."""

    def __init__(self, manager):
        self._manager = manager

    def __enter__(self):
        return call(type(self._manager).__enter__, self._manager)

    def __exit__(self, *error):
        ended = call(type(self._manager).__exit__, self._manager, *error)
        return ended and not refusals()


def _compare(sign, left, right):
    if isinstance(left, Chosen):
        return left.of_each(lambda value: _compare(_by_value(sign, value), value, right))
    if isinstance(right, Chosen):
        return right.of_each(lambda value: _compare(_by_value(sign, value), left, value))
    if sign in ("Is", "IsNot", "Eq", "NotEq") and (is_maybe(left) or is_maybe(right)):
        return _compare_maybe(sign, left, right)
    if sign in ("Is", "IsNot"):
        found = is_same(left, right)
        return found if sign == "Is" else negated(found)
    if sign in _COMPARISONS:
        left, right = _outer(left), _outer(right)
        if _are_sequences(left, right):
            return _in_order(sign, left, right)
        check_keys(left, "a comparison")
        check_keys(right, "a comparison")
        if sign in ("Eq", "NotEq") and differ(left, right):
            return sign == "NotEq"
        if sign in _ORDERS:
            _check_none(sign, left, right)
        found = by_users(_COMPARED[sign], left, right)
        return _compare_values(sign, left, right) if found is NotImplemented else found
    found = _contains(right, left)
    if sign == "In":
        return found
    return logical_not(found) if control.is_traced(found) else not found


def _compare_values(sign, left, right):
    return _COMPARISONS[sign](*python_numbers.as_operands(sign, left, right))


def _by_value(sign, constant):
    """A comparison of one of several constants: Python has one object of a text or more."""
    return {"Is": "Eq", "IsNot": "NotEq"}.get(sign, sign) if type(constant) is str else sign


def _compare_maybe(sign, left, right):
    """A comparison of what may be None: with None, or with a value that it may be."""
    if sign in ("NotEq", "IsNot"):
        return negated(_compare_maybe(sign.replace("Not", ""), left, right))
    if not is_maybe(left):
        left, right = right, left
    there, value = left.parts.present, left.parts.value
    if right is None:
        return logical_not(there)
    if is_maybe(right):
        both_none = logical_not(any_of(True, there, lambda: right.parts.present))
        other = right.parts
        same = both(True, other.present, lambda: _compare_maybe(sign, left, other.value))
        return any_of(True, both_none, lambda: same)
    return both(True, there, lambda: _compare(sign, value, right))


def _are_sequences(left, right):
    """Whether these are two tuples or two lists of numbers that only the run knows."""
    if not (isinstance(left, tuple) and isinstance(right, tuple)):
        if not (type(left) in _LISTS and type(right) in _LISTS):
            return False
        if not (native.is_python(left) and native.is_python(right)):
            return False
    return not native.is_known((left, right))


_LISTS = (list, Listing)


def _in_order(sign, left, right):
    """A comparison of two tuples or lists: that of the first items that differ, or of lengths."""
    if sign in ("Eq", "NotEq"):
        same = len(left) == len(right)
        for one, other in zip(left, right, strict=False):
            same = both(True, same, lambda a=one, b=other: is_item(a, b))
        return same if sign == "Eq" else negated(same)
    found = _COMPARISONS[sign](len(left), len(right))
    strict = sign.removesuffix("E")
    for one, other in reversed([*zip(left, right, strict=False)]):
        if one is other:
            continue
        rest = both(True, compared_once("Eq", one, other), lambda found=found: found)
        found = any_of(True, compared_once(strict, one, other), lambda rest=rest: rest)
    return found


def _contains(items, value):
    if isinstance(items, Listing) and items.array is not None:
        items = _together(items)
    method = seen_by_users(items, "__contains__")
    if method is not None:
        return control.truth(call(method, items, value))
    if items is os.environ and (outside := reading()) is not None:
        outside.read_call(items, f".__contains__({value!r})", found := value in items)
        return found
    if isinstance(items, ArrayWrapper):
        return wrapped(np.any(items == value))
    if type(items) is dict and is_known_key(value):
        found = items.get(value)
        return found.parts.present if may_be_gone(found) else value in items
    check_keys(items, "a search")
    found = _found_in(iteration.own_items(items), value)
    note_searched(items, found)
    return found


def _found_in(items, value):
    if native.is_known(value) and (native.is_known(items) or isinstance(items, str | range)):
        return value in items
    if isinstance(items, str | bytes):
        return value in items  # which says that it takes texts only
    if isinstance(items, range):
        return is_in_range(value, items)
    found = False
    for each in iteration.spent(items):
        found = any_of(True, found, lambda e=each: is_item(value, e))
        if found is True:
            break
    return found


def is_item(one, other):
    """Whether two items of containers are equal: one object always is, as NaN in ``[v] == [v]``."""
    return one is other or control.truth(_compare("Eq", one, other))


def unpacked(value, named=False):
    """What ``*value`` takes apart, or ``**value`` where items have names."""
    check_keys(value, "the items")
    if not hasattr(type(value), "keys"):
        if named:
            raise TypeError(f"{here()}: {called_by_python(value)!r} object is not a mapping")
        return iteration.own_items(value)
    seen_by(value, "__iter__", "keys", "__getitem__", followed=False)
    return value


def assert_(test, message):
    """``assert test, message``."""
    found = control.truth(test)
    if not control.is_traced(found):
        if not found:
            raise AssertionError(message())
        return
    with Frame() as frame:  # whoever fails here runs nothing that would see what the text does
        text = text_of_error(message())
        frame.undo()
    where = here()
    effects.check(found, f"{where}: {text}" if text is not None else f"{where}: assertion failed")


provide(sys.modules[__name__])
