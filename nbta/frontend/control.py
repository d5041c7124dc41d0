"""Branches and loops of a function that is traced: Python's where it knows the way, else nbta's.

A block of a user's function is a function without arguments here, with a pair of functions that get
and set the variables that it forwards. Traced, it runs in a `Frame`; what it left in variables and
wrappers becomes the state of a loop or the results of a branch. Which those are is found by tracing
until what was assumed is so.
"""

from __future__ import annotations

import functools
import math
import operator
import reprlib
import threading
import types
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager, suppress
from typing import NamedTuple

import numpy as np

from nbta.classes import objects_in
from nbta.control.control_flow import joined_branches, while_loop
from nbta.errors import (
    InvalidArgumentError,
    NbtaError,
    OutOfRangeError,
    UnimplementedError,
    invalid,
)
from nbta.frontend import (
    awaited,
    conversion,
    effects,
    native,
    python_numbers,
    tensor_array_wrappers,
)
from nbta.frontend.array_wrappers import (
    ArrayWrapper,
    Attribute,
    Frame,
    Item,
    Link,
    Missing,
    born,
    cells_of,
    common_read_only,
    containers_in,
    in_trace,
    is_of_now,
    is_older,
    keeps_shared,
    link,
    made,
    note_number,
    note_place,
    relations,
    take_apart,
    wrapped,
)
from nbta.frontend.chosen_dtypes import note_chosen
from nbta.frontend.constants import Chosen, Code, as_code, is_constant, may_be_all, may_be_chosen
from nbta.frontend.containers import (
    ITEMS,
    is_held,
    link_items,
    linked_items,
    own_attributes,
    put_item,
    relatives,
)
from nbta.frontend.growth import checked_growth
from nbta.frontend.jumps import ITEM, PREFIX, RESULT
from nbta.frontend.languages import is_numbas
from nbta.frontend.lists import (
    CHANGED,
    Listing,
    bases_of,
    grow,
    growing,
    grown_lists,
    is_of_numbers,
    made_anew,
    numbers_of,
    put_back_lists,
    vector_of,
)
from nbta.frontend.maybe import (
    Gone,
    Parts,
    array_like,
    as_parts,
    as_state,
    as_user,
    check_keys,
    in_state,
    is_maybe,
    is_number,
    may_be_gone,
    may_be_none,
    note_open_key,
)
from nbta.frontend.naturals import note_counter
from nbta.frontend.object_paths import ObjectPaths, is_path
from nbta.frontend.problems import here, is_pythons
from nbta.frontend.ranges import Range
from nbta.frontend.taken import note_taken
from nbta.frontend.tensor_array_wrappers import (
    TensorArrayWrapper,
    Unknown,
    has_value,
    one_of,
    unwrapped,
)
from nbta.frontend.texts import check_no_text
from nbta.frontend.tries import check_certain, is_caught
from nbta.graph.graph import SubGraph, at_line, current, lies_in, subgraphs
from nbta.graph.labels import call_after
from nbta.graph.operation import Tensor
from nbta.graph.views import is_loop
from nbta.locations import of_error
from nbta.ops.core.arithmetic import logical_and, logical_not, logical_or, not_equal, where
from nbta.ops.core.dispatch import PARAMETER, as_tensor
from nbta.ops.core.shaping import cast
from nbta.ops.numbers import Number
from nbta.structure import layout, leaves, pack
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray
from nbta.tuning import ITERATIONS_OF_PYTHON

#: Loops of more iterations that Python knows become one loop of the graph.
UNROLLED = 8
#: Where iterations that Python makes one by one would make more operations than this, which takes
#: about 0.1 ms each to trace and ten times that to compile, they become one loop too, if they can.
#: Three times as many made first calls of products of matrices of 6 and 8 rows twice as long, and
#: runs 1.6 and 2.1 times; half as many made hand tracking's runs 3.8 times as long.
OPERATIONS = 500
#: For how many of these an operation of a loop in such an iteration counts, which is compiled in
#: versions with and without checks: five times three loops of 15 operations took 4 s with their
#: gradient, as one loop 1 s. Runs took 0.94 to 1.24 times as long in one loop. More would leave an
#: insertion sort of five items a loop, whose gradient then has one more tape.
OPERATIONS_IN_LOOPS = 3
#: A loop in a branch that the run decides is endless after so many iterations that do nothing.
IDLE = 1000
LABELS = ("then", "else")
#: Each trace of a loop learns of one thing more that it carries.
ATTEMPTS = 1000


class NoValueError(UnboundLocalError):
    """A variable is read that has no value, as far as this trace knows."""


class Undefined:
    """In place of a variable that has no value yet."""

    def __init__(self, name):
        self.name = name

    #: Why it has none, after its name.
    reason = "has no value in the branch that leads here"

    def _refuse(self, *_):
        error = NoValueError(f"{here()}: the variable {self.name!r} {self.reason}")
        error.nbta_raised = not _attempts.errors  # no later trace of a loop will know it
        raise error

    __getattr__ = __getitem__ = __iter__ = __len__ = __bool__ = __call__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _refuse
    __rtruediv__ = __pow__ = __rpow__ = __floordiv__ = __rfloordiv__ = __mod__ = _refuse
    __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __array__ = __matmul__ = _refuse
    __index__ = __float__ = __int__ = __str__ = __format__ = _refuse

    def __repr__(self):
        return f"<no value of {self.name}>"


class Within(Undefined):
    """In place of a function whose default arguments have no value outside of a branch."""

    reason = (
        "is a function made in a branch, with a default argument that has no value outside of the "
        "branch; call it there, or give it the value as an argument"
    )


class Absent(Undefined):
    """In place of an attribute, or an item of a dict, that an object does not have yet."""

    def refuse(self):
        """Refuse to guess: whether it is there is something that Python may ask for."""
        message = (
            f"{here()}: {self.name} is given a value, or deleted, in a data-dependent loop or "
            "branch, and has no value elsewhere; give it a value before that"
        )
        raise invalid("undefined", message)


class AbsentPart(Absent):
    """Of an attribute or key: where it is a number elsewhere, only the run knows if it exists."""

    is_absent = True


def absent(place) -> Absent:
    """In place of what a place does not hold."""
    known = isinstance(place, Attribute) or type(place.owner) is dict
    return (AbsentPart if known else Absent)(str(place))


class Again(BaseException):
    """A block must be traced once more, with what was learnt; no `Exception` that users catch."""


class KnownCondition(BaseException):
    """What ends a loop is decided by values that Python knows."""


class ActingCondition(BaseException):
    """A condition of a loop changes something, or checks what a run may fail in."""


def is_traced(value) -> bool:
    """Whether a truth value is known only when the function runs."""
    return isinstance(value, Tensor) and not (isinstance(value, ArrayWrapper) and value.is_known)


def is_filled(value):
    """Whether a value is a list that a loop of the graph fills."""
    return isinstance(value, Listing) and value.array is not None


def truth(value):
    """A value as a condition: a bool, or a tensor of one."""
    if is_filled(value):
        return value.length > 0
    if isinstance(value, Chosen):
        return value.of_each(bool)
    if not is_traced(value):
        check_keys(value, "the truth")
        return conversion.runtime().truth_of_object(value)
    if is_maybe(value):
        return logical_and(value.parts.present, truth(value.parts.value))
    if isinstance(value, ArrayWrapper):
        return bool(value)
    if value.dtype.kind == "b":
        return value
    return value != 0 if isinstance(value, Number) else not_equal(value, 0)


def decided(value):
    """A condition of a branch; Python decides on lengths of arguments, for which it traces anew."""
    found = truth(value)
    if not isinstance(found, Number) or _open.tests:
        return found
    try:
        return bool(found)
    except NbtaError:
        return found


class _Open(threading.local):
    tests = 0  # conditions of loops that are looked at, for which Python asks for no lengths


_open = _Open()


def _looked_at(test):
    """A condition of a loop, in which lengths are left open."""
    _open.tests += 1
    try:
        return truth(test())
    finally:
        _open.tests -= 1


# Expressions.


def negated(value):
    """``not value``."""
    found = truth(value)
    return logical_not(found) if is_traced(found) else not found


def both(safe, first, *thunks):
    """``first and ...``, where what follows is computed if it is asked for."""
    value = first
    for thunk in thunks:
        found = decided(value)
        value = found if is_filled(value) else value  # for no branch gives a list or else a number
        if is_traced(found):
            value = _combined(safe, found, value, thunk, logical_and)
        elif not found:
            return value
        else:
            value = thunk()
    return value


def _combined(safe, found, value, thunk, combine):
    """``value and thunk()`` or ``value or thunk()``: the second of them, or the first itself."""
    with_second = combine is logical_and
    if safe:
        other, checks = _tried(thunk)
        if not checks:
            if _is_truth(value) and _is_truth(other):
                return combine(found, other)
            thunk = _constantly(other)
    ways = thunk, _constantly(value)
    return _chosen(found, *(ways if with_second else ways[::-1]))


def _tried(thunk):
    """A value, and whether to compute it checks something, so that it must not be if not asked for.

    Such is whether a variable has a value, or is not None, and what ends in an error of Python's.
    """
    try:
        with Frame() as frame:
            other = thunk()
            checks = bool(frame.changed or frame.places)
            (frame.undo if checks else frame.keep)()
    except Exception as error:
        if not _is_of_a_run(error):
            raise
        return None, True
    return other, checks


def _constantly(value):
    return lambda: value


def _is_truth(value):
    of_truths = getattr(value, "dtype", None) == np.bool_ and not isinstance(value, ArrayWrapper)
    return isinstance(value, bool | np.bool_) or of_truths


def as_truth(value):
    """A part of a test, of which only the truth is asked for."""
    return decided(value)


def any_of(safe, first, *thunks):
    """``first or ...``."""
    value = first
    for thunk in thunks:
        found = decided(value)
        value = found if is_filled(value) else value
        if is_traced(found):
            value = _combined(safe, found, value, thunk, logical_or)
        elif found:
            return value
        else:
            value = thunk()
    return value


def either(test, then, orelse):
    """``then() if test else orelse()``."""
    found = decided(test)
    if not is_traced(found):
        return then() if found else orelse()
    return _chosen(found, then, orelse)


def _chosen(pred, then, orelse):
    """The value of one of two functions, which only the run decides."""
    cell = [Undefined("the value")]

    def get():
        return (cell[0],)

    def set_(values):
        (cell[0],) = values

    def run(function):
        def block():
            cell[0] = function()

        return block

    _branch(pred, run(then), run(orelse), ("the value",), get, set_)
    return cell[0]


def value_of(holds, one, other):
    """One of two values."""
    if is_number(one) and is_number(other):
        dtype = common_dtype(one, other)
        if dtype is not None:
            one, other = (in_dtype(native.plain(v), dtype) for v in (one, other))
            return where(holds, one, other)
    return either(holds, lambda: one, lambda: other)


def _told(name, one, other, path=()):
    """The beginning of a message about a variable, or about what a container holds; both values.

    ``path`` are the places of a part in tuples that the variable holds.
    """
    if not name.startswith(ITEMS):
        if name == RESULT:
            what = "what the function gives is" if path else "the function gives"
        else:
            what = f"{name!r} is"
        places = "".join(f"item {place} of " for place in reversed(path))
        return f"{places}{what}", described(one), described(other)
    if len(one) != len(other):
        return f"the number of {name.removeprefix('the ')} is", len(one), len(other)
    if isinstance(one, bytes | frozenset):
        return f"{name} are", reprlib.repr(one), reprlib.repr(other)
    return f"{name} are", described(one), described(other)


def _rule_of_items(one, otherwise):
    """What to do about what a container holds, where that differs."""
    return "use a list or an array of numbers" if isinstance(one, bytes) else otherwise


def _remedy(one, other, otherwise="make both numbers, or arrays of one rank and dtype"):
    """What to do where one way, or an iteration, leaves another thing than the other one."""
    pair = one, other
    if any(map(_is_picked, pair)) and any(map(is_filled, pair)):
        return (
            "lists that change places, such as rows of a table, can be rows of an array: "
            "a[[i, j]] = a[[j, i]]"
        )
    if any(map(_is_picked, pair)):
        return "keep the index in a variable, and take the list by it where it is used"
    if any(map(is_filled, pair)):
        return (
            "change the list in place, for example with clear() and extend(), and assign no "
            "other list to its name"
        )
    if all(isinstance(each, list) for each in pair) and len(one) != len(other):
        return "give both lists as many items, for example zeros in place of those that lack"
    arrays = all(isinstance(each, Tensor) and each.spec.rank != 0 for each in pair)
    if arrays and one.dtype != other.dtype:
        dtype = _promoted(one.dtype, other.dtype) or "..."
        return f"give both arrays one dtype, for example by astype(np.{dtype}) before they meet"
    if any(each is None for each in pair) and any(type(each) is tuple for each in pair):
        count = max(len(each) for each in pair if type(each) is tuple)
        return f"use {', '.join(['None'] * count)} in place of None, a tuple of as many items"
    if any(each is None for each in pair) and objects_in(pair):
        return "keep what it has in variables, which may be None, or the index of the object"
    return otherwise


def _check_keys(one, other, are_results=False):
    """Refuse dicts of which one only has some item, or, as results, of keys in another order."""
    if not (isinstance(one, dict) and isinstance(other, dict)) or list(one) == list(other):
        return
    only = [key for key in (*one, *other) if (key in one) != (key in other)]
    if only and not are_results:
        Absent(f"dict[{only[0]!r}]").refuse()
    if are_results:
        what = f"has dict[{only[0]!r}]" if only else "has its keys in this order"
        message = (
            f"{here()}: only one of two dicts that a branch chooses from {what}; give both the "
            "same keys in the same order, perhaps with None as a value, or name the argument that "
            "decides in static_argnums"
        )
        raise invalid("undefined", message)


def follow(owner, key, done=()):
    """Give an item that was assigned to the lists or dicts that are this one in some runs."""
    done = {*done, id(owner)}
    for other, holds in linked_items(owner):
        if id(other) in done:
            continue
        note_place(Item(other, key))
        new, old = owner[key], other[key]
        value = either(holds, lambda new=new: new, lambda old=old: old)
        put_item(other, key, value)
        follow(other, key, done)


# What a block leaves behind.

_NUMBERS = bool | int | float | complex | np.number | np.bool_


def _is_value(leaf):
    """Whether a graph can hand something on."""
    return isinstance(leaf, Tensor | TensorArrayWrapper | SymbolicTensorArray | _NUMBERS)


def _is_carried(value):
    if is_filled(value):
        return False
    found = leaves(value)
    return all(map(_is_value, found)) and (bool(found) or isinstance(value, list | dict))


def _same(one, other):
    """Whether two values are one, for Python."""
    if one is other:
        return True
    if isinstance(one, Undefined) and isinstance(other, Undefined):
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, TensorArrayWrapper):
        return one.is_same(other)
    plain = isinstance(one, str | bytes | frozenset | range | _NUMBERS)
    return plain and (one == other or one != one)


def _gives_a_function(before, after):
    """Whether a variable without a value is that of a function which stands in a block.

    What it takes from around it are variables of their own, so that it is the same one everywhere.
    """
    return isinstance(before, Undefined) and isinstance(after, types.FunctionType)


def _two_of(kind):
    """How two objects of a class are distinguished, for messages, and what to do."""
    remedy = (
        f"assign the attributes of one {kind} in its branches, or make the class known by "
        f"nbta.register_structure"
    )
    if kind == types.FunctionType.__name__:
        remedy = "call each in its own branch, or make one function that takes what differs"
    return f"one {kind}", "another one", remedy


def described(value) -> str:
    """What a value is, for messages."""
    if isinstance(value, Undefined):
        return "nothing"
    if isinstance(value, Parts):
        other = "nothing" if isinstance(value, Gone) else "None"
        return f"{described(value.value)} or {other}"
    if isinstance(value, Tensor):
        return str(value.spec)
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype} {np.shape(value)}"
    if isinstance(value, list | tuple | dict | set | frozenset):  # of this package's kind, too
        if isinstance(value, list) and not native.is_python(value):
            return "list that an index chooses" if _is_picked(value) else "list that a loop fills"
        kind = "list" if isinstance(value, list) else type(value).__name__.removeprefix("frozen")
        return f"{kind} of {len(value)} items"
    return repr(value) if isinstance(value, str | _NUMBERS | None) else type(value).__name__


def _as_data(leaf):
    """A value of a leaf that goes into a graph."""
    if isinstance(leaf, ArrayWrapper):
        return leaf.itself
    if isinstance(leaf, TensorArrayWrapper):
        return leaf.array
    if isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic):
        return np.asarray(leaf)[()]
    return leaf


#: What to do about a list that a loop fills, and of which a branch makes more than a name.
_RETURN_LAST = (
    "leave the loop by break, and return the list after it; or return it under one name at each "
    "return of the function"
)


def _has_filled(value):
    """Whether a value is a list that a loop fills, or a tuple with one in it."""
    return is_filled(value) or (type(value) is tuple and any(map(_has_filled, value)))


def _check_lists_in(value):
    """Refuse a tuple with a list in it that a loop fills, where the other way has no such one."""
    if type(value) is tuple and _has_filled(value):
        message = f"{here()}: a branch makes a tuple of a list that a loop fills; {_RETURN_LAST}"
        raise invalid("branches", message)


def _parts_of(value):
    """A value; of a tuple with a list in it that a loop fills, its parts."""
    if type(value) is not tuple or not _has_filled(value):
        return [value]
    return [part for each in value for part in _parts_of(each)]


class Outcome:
    """What a branch left: the variables, and the wrappers that it changed with what they hold."""

    def __init__(self, values, count, frame):
        self.values = values
        self.arrays = list(values[:count])
        self._parts = [part for each in self.arrays for part in _parts_of(each)]
        parts = [part for part in self._parts if not is_filled(part)]
        found = [v for part in parts for v in leaves(part)]
        self.contents = {id(v): _content(v) for v in found}
        self.lost = {id(v): v.root.spoiled for v in found if isinstance(v, ArrayWrapper)}
        self.places = frame.places
        for place, old in frame.places.values():
            error = growing(place, old)
            if error is not None:
                raise error
        held = [each for part in parts for each in containers_in(part)]
        self._times = Counter(map(id, held))
        inner = (each for part in parts for each in containers_in(part) if each is not part)
        self._inner = Counter(map(id, inner))
        self._originals = {}
        self.structures = list(map(self._as_it_is, self.arrays))
        entries = frame.changed.values()
        self.wrappers = {id(b): (b, b._value) for b, old, _ in entries if b._value is not old}
        self.spoiled = {id(b): (b, b.spoiled) for b, _, old in entries if b.spoiled is not old}
        self.frame = frame

    def _as_it_is(self, value):
        """A value with copies of its lists and dicts, as what the block did to them is put back."""
        if is_filled(value):
            return value
        if _has_filled(value):
            return tuple(map(self._as_it_is, value))
        held = containers_in(value)
        if not held or objects_in(value) or not all(map(native.is_python, held)):
            return value
        copied = pack(value, leaves(value))
        pairs = zip(containers_in(copied), held, strict=True)
        self._originals.update((id(copy), original) for copy, original in pairs)
        return copied

    def original(self, container):
        """The list or dict that a copy in `structures` is of."""
        return self._originals.get(id(container), container)

    def has_alone(self, made) -> bool:
        """Whether a list was made in the block, and only one variable has it after that."""
        holders = sum(each is made for each in self._parts) + self._inner[id(made)]
        return self.frame.made(made) and holders == 1

    def has_twice(self, container) -> bool:
        """Whether several variables have a list or dict, or parts of one."""
        return self._times[id(container)] > 1


def packed(like, values):
    """A structure of other values, with lists and dicts of its own."""
    found = pack(like, values)
    for each in containers_in(found):
        born(each)
    return found


def _copies(value):
    """What has copies of the lists in a value, as these are items of what loops fill."""
    lists = [each for each in containers_in(value) if isinstance(each, Listing)]
    return list({rows: None for each in lists for rows in each.copied_in})


def _note_copies(value, copies):
    for each in containers_in(value) if copies else ():
        if isinstance(each, Listing):
            for rows in copies:
                rows.note(each)


def _content(leaf):
    """What a wrapper holds, as long as somebody knows."""
    if isinstance(leaf, TensorArrayWrapper):
        return leaf.array
    return leaf.content if isinstance(leaf, ArrayWrapper) and leaf.root.spoiled is None else leaf


def _run_block(block, entry, get, set_, count):
    """Run a block of a branch, and put everything back."""
    if set_ is not None:
        set_(entry)
    with Frame(traced=True, of_branch=True) as frame:
        try:
            block()
            return Outcome(get(), count, frame)
        except Exception as error:
            if id(effects.token_wrapper()) in frame.changed:
                error.nbta_acts = True
            raise
        finally:
            frame.undo()
            if set_ is not None:
                set_(entry)


class _Yielded(threading.local):
    """The variables of the loop that goes along the generator that runs, or None."""

    def __init__(self):
        self.state = None


_yielded = _Yielded()


def yielded():
    """Names, and functions that get and set variables, of the loop over a generator that runs."""
    return _yielded.state


@contextmanager
def yielding(state):
    """Let what runs be a generator, of which a loop with these variables takes the items."""
    before, _yielded.state = _yielded.state, state
    try:
        yield
    finally:
        _yielded.state = before


def with_yielded(names, get, set_):
    """The variables of a block, with those that the loop over its generator changes in it."""
    if _yielded.state is None:
        return names, get, set_
    others, get_others, set_others = _yielded.state
    count = len(get_others()) if others else 0
    if not count:
        return names, get, set_

    def set_all(values):
        set_others(values[:count])
        if set_ is not None:
            set_(values[count:])

    return (*others, *names), lambda: (*get_others(), *get()), set_all


def if_(test, then, orelse, names, get, set_, else_raises=False):
    """An `if`: one of two blocks, or both, traced.

    ``names`` are the first of the variables that ``get`` gives: those that something reads later.
    The others are put back for the second block. Where ``else_raises``, that block is the first:
    as it ends in an error, the other one is no branch, and it would be traced again as none.
    """
    names, get, set_ = with_yielded(names, get, set_)
    found = decided(test)
    if not is_traced(found):
        return then() if found else orelse()
    return _branch(found, then, orelse, names, get, set_, else_raises)


def _growing_lists(run, *args):
    """Run what may find that a list is to be an array from here on."""
    while True:
        try:
            return run(*args)
        except CHANGED as error:
            grow(error)


def _branch(*given):
    """Both blocks of a branch."""
    return _growing_lists(_traced_branch, *given)


class Raised(BaseException):
    """A block of a branch ends in an error of the user's."""

    def __init__(self, error, is_second):
        super().__init__(error)
        self.error, self.is_second = error, is_second


def _check(holds, error):
    """Fail in a run, at the line where the trace failed."""
    place = of_error(error)
    if place is not None:
        error.nbta_at = place, place.code.co_name
    with at_line(place):
        check_certain(error)
        effects.check(holds, error.with_traceback(None))


def _traced_branch(pred, then, orelse, names, get, set_, else_first=False):
    try:
        return _both_blocks(pred, then, orelse, names, *in_state(get, set_), else_first)
    except Raised as found:
        holds = pred if found.is_second else logical_not(pred)
        if isinstance(found.error, NoValueError):
            _attempts.put_off(found.error, holds)
        elif getattr(found.error, "nbta_acts", False):
            blocks = (_nothing, _failing(orelse)) if found.is_second else (_failing(then), _nothing)
            _both_blocks(pred, *blocks, (), *in_state(get, set_), found.is_second)
        else:
            _check(holds, found.error)
        return then() if found.is_second else orelse()


def _nothing():
    """The block of a branch that does nothing."""


def _failing(block):
    """A block that prints, or may fail in another way, before it ends in an error of the user's."""

    def run():
        try:
            block()
        except Exception as error:
            if not _is_of_a_run(error):
                raise
            _check(np.bool_(False), error)

    return run


class _Attempts(threading.local):
    """Traces of loops in which a branch was left out, as it reads what a later trace will know.

    Attributes
    ----------
    errors : list
        For each loop that is traced, the innermost last, why its trace is not to be the last one.
    is_last : bool
        Whether the outermost loop has learnt all.
    """

    def __init__(self):
        self.errors, self.is_last = [], False

    def put_off(self, error, holds):
        """Trace on without a branch, which is a failure in runs that come to it.

        Where there is a loop that may learn of the variable, it is so once that has learnt all.
        """
        if self.errors and not self.is_last:
            self.errors[-1] = error
        else:
            _check(holds, error)

    def end(self):
        """Whether a loop that has learnt of nothing more must be traced again, with failures."""
        error = self.errors.pop()
        if error is None or not self.errors:
            return error is not None
        self.errors[-1] = error  # the loop around may learn more
        return False


_attempts = _Attempts()


def _call(tensor, name) -> None:
    """Note what the user calls a tensor; a name with a space is one of ours, for messages."""
    if isinstance(tensor, Tensor) and name and " " not in name and not name.startswith(PREFIX):
        tensor = tensor if type(tensor) is Tensor else tensor.itself
        tensor.graph.labels.setdefault(tensor, name)


def _call_as_wrapper(tensor, wrapper, name=None) -> None:
    """Note of a tensor that it is what an array holds from now on."""
    held = wrapper._value if wrapper.root is wrapper else None
    if name or wrapper.label:
        _call(tensor, name or wrapper.label)
    elif isinstance(tensor, Tensor) and isinstance(held, Tensor):
        call_after(tensor, held if type(held) is Tensor else held.itself)


def _both_blocks(pred, then, orelse, names, get, set_, else_first=False, known=frozenset()):
    graph, entry = current(), get()
    with graph.name_scope("if") as scope:
        branches = [SubGraph(graph, f"{scope}{label}") for label in LABELS]
        outcomes = [None, None]
        for place in (1, 0) if else_first else (0, 1):
            with branches[place].as_default():
                block = (then, orelse)[place]
                outcomes[place] = _outcome(block, entry, get, set_, names, place == 1)
        places = {**outcomes[0].places, **outcomes[1].places}
        new = [place for key, (place, _) in places.items() if key not in known]
        if new:
            state = _with_places(new, names, get, set_)
            return _both_blocks(pred, then, orelse, *state, else_first, known | places.keys())
        index = as_tensor(pred)
        merged = _Merge(index, entry, names, outcomes, branches)
        values = joined_branches("if", index, branches, LABELS, merged.columns, scope)
    if branches[0].owner is None:
        awaited.note_blocks(index, branches)
    for outcome in outcomes:
        for iterator in outcome.frame.taken.values():
            note_taken(iterator, True)
    return merged.finish(values, set_)


def _outcome(block, entry, get, set_, names, second):
    """What a block leaves; `Raised` where it ends in an error of the user's, or cannot go on."""
    try:
        return _run_block(block, entry, get, set_, len(names))
    except StopIteration:
        message = (
            f"{here()}: only the run knows where this iterator ends; write a loop with break, or a "
            "generator"
        )
        raise invalid("effect", message) from None
    except Exception as error:
        if not _is_of_a_run(error):
            raise
        raise Raised(error, second) from None


def _is_of_a_run(error) -> bool:
    """Whether an error in a block is one only for runs that come to it, as in Python.

    Such are those that the user's code raises, or Python for what that does with values that it
    knows, those of shapes, which Python knows where the function asked for a length, and uses of
    closed arrays.
    """
    raised = isinstance(error, NoValueError) or getattr(error, "nbta_raised", False)
    raised = raised or isinstance(error, OutOfRangeError) or is_pythons(error)
    return raised or getattr(error, "reason", None) in ("shape", "reshape", "closed")


def _with_places(places, names, get, set_):
    """Names, and functions that get and set variables, with places of objects in front."""
    count = len(places)

    def get_all():
        return (*(_value_of(place) for place in places), *get())

    def set_all(values):
        for place, value in zip(places, values, strict=False):
            hold_place(place, value)
        if set_ is not None:
            set_(values[count:])

    return (*map(str, places), *names), get_all, set_all


def _value_of(place):
    value = place.value
    return absent(place) if value is Missing else as_state((value,))[0]


def hold_place(place, value):
    """Let a place of an object hold a value."""
    new = Missing if isinstance(value, Absent) else as_user((value,))[0]
    if new is not place.value:
        note_place(place)
        place.value = new
        if may_be_gone(new):
            note_open_key(place.owner)


def _itself(value):
    return value


def _list_of(array):
    """A list of the items of an array, of which only the run knows how many there are."""
    return conversion.runtime().call(list, wrapped(array))


class _Plan(NamedTuple):
    """How a variable, or a part of one, gets its value after a branch.

    Attributes
    ----------
    kind : str
        ``"same"``: both ways leave it so; ``"joined"``: the branch operation gives its leaves;
        ``"parts"``: each part of a tuple has a plan.
    what : object
        The value; the values of both ways, and pairs of their leaves; or the plans.
    remade : callable
        Makes the value of what the branch operation gives.
    """

    kind: str
    what: object
    remade: Callable = _itself

    def pairs(self) -> list:
        """Pairs of leaves that the branch operation decides on, in order."""
        if self.kind == "parts":
            return [pair for part in self.what for pair in part.pairs()]
        return self.what[1] if self.kind == "joined" else []


class _Merge:
    """What both branches leave, side by side.

    Attributes
    ----------
    columns : list
        Of pairs of values, one a branch, that the branch operation decides on.
    """

    def __init__(self, pred, entry, names, outcomes, branches):
        self._pred, self._entry, self._names, self._outcomes = pred, entry, names, outcomes
        self._branches, self.columns = branches, []
        self._plans = [self._variable(i) for i in range(len(names))]
        self._pairs = [pair for plan in self._plans for pair in plan.pairs()]
        self._ties = list(self._found_ties())
        self.columns += [holds for tie in self._ties for holds in tie.columns]
        self._wrappers = {**outcomes[0].wrappers, **outcomes[1].wrappers}
        for key, (wrapper, _) in self._wrappers.items():
            self.columns.append([self._held(outcome, key, wrapper) for outcome in outcomes])

    def _held(self, outcome, key, wrapper):
        value = outcome.wrappers[key][1] if key in outcome.wrappers else wrapper._value
        return (
            wrapper.itself if value is wrapper._value and not isinstance(value, Tensor) else value
        )

    def _variable(self, i):
        """How a variable gets its value."""
        ways = [(outcome.values[i], outcome.structures[i]) for outcome in self._outcomes]
        return self._plan(i, *zip(*ways, strict=True))

    def _plan(self, i, values, structures, path=()):
        """`_variable`, of a variable or of a part of it, at a path of places.

        ``structures`` are the values with what their lists and dicts held at the ends of the ways.
        """
        one, other = values
        for value in self._as_it_was(one, other):
            return _Plan("same", value)
        if _goes_by_parts(one, other):
            parts = zip(zip(*values, strict=True), zip(*structures, strict=True), strict=True)
            plans = (self._plan(i, *part, (*path, k)) for k, part in enumerate(parts))
            return _Plan("parts", tuple(plans))
        for value in values:
            _check_lists_in(value)
        remade = _itself
        if (bounds := _bounds_of(one, other)) is not None:
            step, one, other = bounds
            remade = lambda found: Range(*found, step)  # noqa: E731
        if (lists := self._bases_of(one, other) or self._arrays_of(values, structures)) is not None:
            remade, (one, other) = lists
        if may_be_none(one, other):
            one, other = as_parts(one, other), as_parts(other, one)
        one, other = _as_codes(one, other)
        for value in (one, other):
            check_keys(value, "a choice")
        one, other = self._filled(one, other), self._filled(other, one)
        one, other = (
            structure if given is value else value
            for value, given, structure in zip((one, other), values, structures, strict=True)
        )
        if _unlike(one, other) or not (_is_carried(one) and _is_carried(other)):
            error = self._unlike(i, one, other, path)
            error.replaced = self._replaced(*values)
            raise error
        self._apart((one, other))
        pairs = list(zip(leaves(one), leaves(other), strict=True))
        for pair in pairs:
            self.columns.append(self._column(i, pair, path))
        return _Plan("joined", ((one, other), pairs), remade)

    def _bases_of(self, *pair):
        """Lists of before the branch of which an index chooses one that the ways leave, and which.

        None for other values.
        """
        kind = next((type(each) for each in pair if _is_picked(each)), None)
        if kind is None or not all(isinstance(each, list) for each in pair):
            return None
        bases, indices = bases_of(pair)
        if any(outcome.frame.made(each) for outcome in self._outcomes for each in bases):
            return None
        found = []
        for branch, index in zip(self._branches, indices, strict=True):
            with branch.as_default():
                found.append(index())
        return lambda place: born(kind(bases, place)), found

    def _as_it_was(self, *pair):
        """A value that both ways leave, or a list from before, where one leaves nothing to read."""
        if _same(*pair):
            return filter(_is_usable, pair)
        if not any(isinstance(each, Undefined) for each in pair):
            return ()
        if _gives_a_function(*pair) or _gives_a_function(*pair[::-1]):
            missing, found = sorted(pair, key=lambda each: not isinstance(each, Undefined))
            given = leaves((found.__defaults__, found.__kwdefaults__))
            known = all(not isinstance(each, Tensor) or is_of_now(each) for each in given)
            return [found if known else Within(missing.name)]
        return [each for each, outcome in zip(pair, self._outcomes, strict=True)
                if isinstance(each, Listing) and not (_is_picked(each) or outcome.frame.made(each))
                ]  # fmt: skip

    def _arrays_of(self, values, structures):
        """What makes a list of an array, and arrays of the lists that the ways make.

        These are lists of numbers, each as long as its way likes: of the array that the branch
        operation gives only the run knows the length. None for lists of one structure, for lists
        of other things, and for those that something else refers to as well.
        """
        lists = [value for value in values if not isinstance(value, Undefined)]
        if not all(type(value) is Listing for value in lists):
            return None
        if not any(map(is_filled, lists)) and len({len(value) for value in lists}) < 2:
            return None
        found = []
        for k, outcome in enumerate(self._outcomes):
            numbers = np.zeros(0)
            if not isinstance(values[k], Undefined):
                if not (outcome.has_alone(values[k]) or values[k].is_made_anew):
                    return None
                with self._branches[k].as_default():
                    numbers = numbers_of(structures[k])
            found.append(numbers)
        given = [each for each in found if isinstance(each, Tensor)]
        if not given or any(each is None for each in found):
            return None
        for k, branch in enumerate(self._branches):
            with branch.as_default():  # an empty list has the dtype of the other one
                found[k] = as_tensor(
                    found[k] if isinstance(found[k], Tensor) else np.zeros(0, given[0].dtype)
                )
        if any(value.is_made_anew for value in lists):
            return (lambda vector: made_anew(wrapped(vector))), found
        return _list_of, found

    def _replaced(self, *pair):
        """A list of numbers from before the branch that one way replaces, and a dtype for both."""
        if not all(map(is_of_numbers, pair)):
            return None
        dtype = np.result_type(*map(_dtype_of_numbers, pair))
        older = (v for v, way in zip(pair, self._outcomes, strict=True) if not way.frame.made(v))
        return next(((value, dtype) for value in older), None)

    def _apart(self, pair):
        """Note objects that are one of two from now on; lists and dicts that one way only made."""
        for value, outcome in zip(pair, self._outcomes, strict=True):
            objects = objects_in(value)
            for each in (objects, containers_in(value)) if objects else ():
                take_apart(each, (place for place, _ in outcome.places.values()))
            for each in map(outcome.original, containers_in(value)):
                if outcome.frame.made(each) and outcome.has_twice(each):
                    take_apart([each])

    def _filled(self, value, other):
        """A placeholder where a variable has no value on one way."""
        if isinstance(value, Absent):
            value.refuse()
        if isinstance(value, Undefined) and _is_carried(other):
            return pack(other, [_placeholder(leaf) for leaf in leaves(other)])
        return value

    def _unlike(self, i, one, other, path=()):
        check_no_text(one, other)
        name, rule = self._names[i], _remedy(one, other)
        _check_keys(one, other, are_results=not name.startswith(ITEMS))
        if name.startswith(ITEMS):
            rule = _rule_of_items(
                one, "both branches must leave the same number of items, of the same keys and kinds"
            )
        kinds = one, other
        what, one, other = _told(name, one, other, path)
        if one == other == type(kinds[0]).__name__:
            one, other, rule = _two_of(one)
        if name == RESULT and any(map(is_filled, kinds)):
            rule = _RETURN_LAST
        message = f"{here()}: {what} {one} where the condition holds and {other} elsewhere; {rule}"
        return invalid("branches", message)

    def _column(self, i, pair, path):
        """A pair of values in one dtype."""
        has_axes, pair = any(map(_has_axes, pair)), self._contents(pair)
        if any(isinstance(leaf, SymbolicTensorArray) for leaf in pair):
            return pair
        ranks = {leaf.spec.rank if isinstance(leaf, Tensor) else np.ndim(leaf) for leaf in pair}
        if len(ranks) > 1 and None not in ranks:
            raise self._unlike(i, *pair, path)
        dtype = common_dtype(*pair)
        if dtype is None or (has_axes and not all(_widens(_dtype(leaf), dtype) for leaf in pair)):
            raise self._unlike(i, *pair, path)
        found = []
        for leaf, branch in zip(pair, self._branches, strict=True):
            with branch.as_default():
                found.append(in_dtype(leaf, dtype))
        return found

    def _contents(self, pair):
        """What both branches leave; the key of a view may be the branch's, so it is not read."""
        held = zip(pair, self._outcomes, strict=True)
        return [outcome.contents.get(id(leaf), leaf) for leaf, outcome in held]

    def _found_ties(self):
        """Which arrays that both branches leave may be others, of before or among themselves."""
        for k, pair in enumerate(self._pairs):
            for other in self._earlier(pair):
                yield _Tie(k, other, pair, (other, other))
        ways = [
            {k: leaf for k, leaf in enumerate(column) if _has_axes(leaf)}
            for column in zip(*self._pairs, strict=True)
        ]
        for k, j in sorted(set().union(*map(_pairs, ways))):
            yield _Tie(k, j, self._pairs[k], self._pairs[j])

    def _earlier(self, pair):
        """Arrays from before the branch that one of two values may be."""
        roots = [part.root for part in pair if _has_axes(part)]
        near = {id(wrapper): wrapper for root in roots for wrapper in (root, *_linked_to(root))}
        return [wrapper for wrapper in near.values() if self._outcomes[0].frame.is_before(wrapper)]

    def finish(self, values, set_):
        """Give variables and wrappers what the branch operation gives."""
        split = len(values) - len(self._wrappers)
        for (wrapper, _), value in zip(self._wrappers.values(), values[split:], strict=True):
            _call_as_wrapper(value, wrapper)
            wrapper.hold(value)
        names = [self._names[i] for i, plan in enumerate(self._plans) for _ in plan.pairs()]
        for value, called in zip(values, names, strict=False):
            _call(value, called)
        joined = [_as_user_has(pair, v) for pair, v in zip(self._pairs, values, strict=False)]
        for wrapper, pair in zip(joined, self._pairs, strict=True):
            if isinstance(wrapper, ArrayWrapper):
                wrapper.read_only = common_read_only(pair)
                dtypes = list(map(_dtype, self._contents(pair)))
                if dtypes[0] != dtypes[1] and any(map(_has_axes, pair)):
                    note_chosen(wrapper.itself, tuple(dtypes))
                    wrapper.fixed = wrapper.of_either_dtype("changed")
            self._lose(wrapper, pair)
            note_number(wrapper, pair)
            python_numbers.note_joined(wrapper, *self._contents(pair))
        self._link(joined, iter(values[len(self._pairs) : split]))
        values = iter(joined)
        results = [self._result(plan, values) for plan in self._plans]
        for outcome in self._outcomes:
            for wrapper, reason in outcome.spoiled.values():
                wrapper.put_off(reason)
        if set_ is not None:
            set_((*results, *self._entry[len(results) :]))

    def _lose(self, wrapper, pair):
        """Spoil what is an array on some way which a change of another one spoiled there."""
        lost = [o.lost.get(id(leaf)) for o, leaf in zip(self._outcomes, pair, strict=True)]
        if any(lost) and isinstance(wrapper, ArrayWrapper):
            wrapper.put_off(next(filter(None, lost)))

    def _link(self, joined, holds):
        for tie in self._ties:
            other = tie.other if isinstance(tie.other, ArrayWrapper) else joined[tie.other]
            found = tie.links(other, holds)
            if tie.may_hold and isinstance(joined[tie.place], ArrayWrapper):
                link(joined[tie.place], other, found)

    def _result(self, plan, values):
        """What a variable is after the branch."""
        if plan.kind == "same":
            return plan.what
        if plan.kind == "parts":
            return tuple(self._result(part, values) for part in plan.what)
        return plan.remade(self._joined(*plan.what, values))

    def _joined(self, ways, pairs, values):
        result = packed(ways[0], [next(values) for _ in pairs])
        _note_copies(result, {each: None for way in ways for each in self._copies_of(way)})
        for each in objects_in(result):
            take_apart(each)
        found = map(containers_in, (result, *ways))
        for merged, *sources in zip(*found, strict=True):
            self._link_items(merged, sources)
        return result

    def _copies_of(self, way):
        originals = [o.original(each) for o in self._outcomes for each in containers_in(way)]
        return [found for each in originals for found in _copies(each)]

    def _link_items(self, merged, sources):
        """Say which list or dict from before a result is, on which way."""
        for way, source in enumerate(sources):
            source = self._outcomes[way].original(source)
            if not self._outcomes[way].frame.made(source):
                link_items(merged, source, logical_not(self._pred) if way else self._pred)
            elif self._outcomes[way].has_twice(source) or relatives(source):
                take_apart([merged, relatives(source)])


def _is_picked(value):
    return isinstance(value, Listing) and value.is_picked


def _goes_by_parts(one, other):
    """Whether two tuples are no structures of the same numbers, but their parts may go together.

    Such parts are a number or None, two texts, or one list.
    """
    if type(one) is not tuple or type(other) is not tuple or len(one) != len(other):
        return False
    if _has_filled(one) or _has_filled(other):
        return True
    return _unlike(one, other) or not (_is_carried(one) and _is_carried(other))


def _as_codes(one, other):
    """Two values, as codes where they are constants, or one of them that has no value else."""
    if may_be_chosen(one, other):
        return as_code(one, other), as_code(other, one)
    if isinstance(one, Undefined) and may_be_chosen(other, other):
        return one, as_code(other)
    if isinstance(other, Undefined) and may_be_chosen(one, one):
        return as_code(one), other
    return one, other


def _bounds_of(one, other):
    """The step that two ranges have in common, and the bounds of each; None for others."""
    if not all(isinstance(each, range) or hasattr(type(each), "is_range") for each in (one, other)):
        return None
    if one.step != other.step:
        return None
    return one.step, (one.start, one.stop), (other.start, other.stop)


def _is_usable(value):
    """Whether a value is one where the branch is over; tensor arrays looked up in it are not."""
    parts = leaves(value) if isinstance(value, tuple | TensorArrayWrapper) else ()
    return all(has_value(part) for part in parts if isinstance(part, TensorArrayWrapper))


def _as_user_has(pair, value):
    """What a branch gives in place of one of two values."""
    if not isinstance(pair[0], TensorArrayWrapper):
        return made(value)
    return one_of(value, [each.forward for each in pair])


def _has_axes(leaf):
    """Whether it is an array, and none of no axes, which is a number after a loop or branch."""
    # a view may be of a branch that is over, so it is not read
    return isinstance(leaf, ArrayWrapper) and (leaf.root is not leaf or leaf.spec.rank != 0)


def _linked_to(wrapper):
    return [each.other for each in wrapper.links]


def _rank(wrapper):
    """How many axes an array has that nobody may read."""
    value = wrapper.root._value
    return value.spec.rank if isinstance(value, Tensor) else value.ndim


#: Ways in which one array is another, such as two rows of it, that a graph tells apart.
WAYS = 4


def _new_ways(known, found):
    """Ways in which one array is another that are not among those that are known."""
    new = []
    for each in found:
        if not any(each.is_like(way) for way in (*known, *new)):
            new.append(each)
    return new


def _holds(way, found):
    """Whether one array is another in a certain way."""
    return next((each.holds for each in found if each.is_like(way)), np.False_)


def _is_vague(ways, found):
    """Whether nobody can say how an array is another one, or it is so in too many ways."""
    return len(ways) > WAYS or any(each.holds is None for each in found)


class _Tie:
    """That an array may be another one, on some of the ways through a branch.

    Attributes
    ----------
    place : int
        Which array.
    other : int or ArrayWrapper
    columns : list
        For each way in which it may be, whether it is, on each way through the branch.
    may_hold : bool
    """

    def __init__(self, place, other, mine, others):
        self.place, self.other = place, other
        found = [_relations(*pair) for pair in zip(mine, others, strict=True)]
        self._ways = _new_ways([], [each for links in found for each in links])
        self.may_hold, self.columns = bool(self._ways), []
        vague = any(_is_vague(self._ways, links) for links in found)
        of_one = len({_held_dtype(part) for part in (*mine, *others)}) == 1
        if of_one and not vague and keeps_shared():
            self.columns = [[_holds(way, links) for links in found] for way in self._ways]

    def links(self, other, holds):
        """What to note of the array; ``holds`` gives what the branch says."""
        return [Link(other, next(holds), way.steps, way.is_inverse)
                for way, _ in zip(self._ways, self.columns, strict=False)]  # fmt: skip


def _held_dtype(leaf):
    """That of an array too which nobody may read."""
    return leaf.root._value.dtype if isinstance(leaf, ArrayWrapper) else _dtype(leaf)


def _relations(one, other):
    both = isinstance(one, ArrayWrapper) and isinstance(other, ArrayWrapper)
    return relations(one, other) if both else []


def _placeholder(leaf):
    """A value that nobody reads, like another one."""
    if isinstance(leaf, TensorArrayWrapper | SymbolicTensorArray):
        message = f"{here()}: only one branch makes this TensorArray; make it before the branches"
        raise invalid("undefined", message)
    if not isinstance(leaf, Tensor):
        return np.zeros(np.shape(leaf), np.asarray(leaf).dtype)[()]
    if isinstance(leaf, ArrayWrapper):
        return array_like(leaf)
    if python_numbers.is_noted(leaf):
        return python_numbers.zero_like(leaf)
    dimensions = [n if type(n) is int else 0 for n in leaf.spec.shape or ()]
    return np.zeros(dimensions, leaf.dtype)[()]


def _is_weak(leaf):
    plain = isinstance(leaf, bool | int | float | complex) and not isinstance(leaf, np.generic)
    return plain or (isinstance(leaf, Tensor) and leaf.weak is not None)


def _dtype(leaf):
    return leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype


def _are_of_two_dtypes(one, other):
    """Whether they are arrays, or one is, and have two dtypes.

    In NumPy each has its own, by which is rounded, wrapped around and cut off what is computed
    from it and assigned to its items.
    """
    return (_has_axes(one) or _has_axes(other)) and _dtype(one) != _dtype(other)


def _is_computed_as_wide(start, end):
    """Whether an iteration computes the same from numbers of the dtype in which it leaves them.

    Integers may become floats, and real numbers complex ones of the same precision, as long as no
    items are written, which takes fewer numbers in the narrower dtype.
    """
    return _widens(_dtype(start), _dtype(end)) and start.itself.op.record is PARAMETER


def _widens(have, new):
    """Whether what is computed of numbers of one dtype is what those of another one give."""
    if have == new or have.kind in "iu":
        return have == new or new.kind in "fc"
    return have.kind == "f" and new.kind == "c" and new.itemsize == 2 * have.itemsize


def common_dtype(one, other):
    """The dtype for two values of a variable; None where they do not go together."""
    a, b = _dtype(one), _dtype(other)
    if a == b:
        return a
    for weak, leaf, dtype in ((one, other, b), (other, one, a)):
        fits = _takes(_dtype(weak).kind, dtype.kind) and python_numbers.fits(weak, dtype)
        if _is_weak(weak) and not _is_weak(leaf) and fits and python_numbers.holds(dtype, weak):
            return dtype
        if python_numbers.takes(weak, dtype) and not _is_weak(leaf):
            return dtype
    return _promoted(a, b)


def _promoted(a, b):
    """The dtype of two numbers, as Numba unifies those of a variable; None for what are none."""
    return np.promote_types(a, b) if a.kind in "iufc" and b.kind in "iufc" else None


def _takes(kind, into):
    order = "iufc"
    return kind in order and into in order and order.index(kind) <= order.index(into)


def in_dtype(leaf, dtype):
    """A value of a variable in a dtype."""
    if isinstance(leaf, Tensor):
        tensor = as_tensor(leaf)
        if dtype.kind in "iu" and tensor.dtype != dtype and python_numbers.is_integer(leaf):
            return python_numbers.fitted(leaf, dtype)
        if tensor.dtype != dtype:
            python_numbers.rely_on(leaf)
        return tensor if tensor.dtype == dtype else cast(tensor, dtype)
    return np.asarray(leaf).astype(dtype)[()]


# Loops.


def native_for(items, body, flags):
    """A loop of Python's."""
    for item in items:
        body(item)
        if any(flags()):
            break


def known_iterations(items, body, flags, get, set_, as_loop):
    """Iterations that Python counts; whether all of them are done.

    Where a flag that ends the loop is known only when the function runs, all is put back.
    ``as_loop()`` makes a loop of the graph of them, where they are too large.
    """
    most = _most(body)
    made = most and _growing_lists(_known_iterations, items, body, flags, get, set_, most)
    if made is None and not _tried_as_loop(body, get, set_, as_loop):
        made = _growing_lists(_known_iterations, items, body, flags, get, set_, math.inf)
    return made is not False


_LARGE = "bodies of loops that unrolling would repeat too often, and whether loops do"


def _most(body):
    """How many operations unrolled iterations of a loop may make; None where none is tried."""
    can_be_loop = current().root.cache.get(_LARGE, {}).get(body.__code__)
    return OPERATIONS if can_be_loop is None else None if can_be_loop else math.inf


def _tried_as_loop(body, get, set_, as_loop) -> bool:
    """Make a loop of the graph; whether that is possible, such as where items are chosen by it."""
    known = current().root.cache.setdefault(_LARGE, {})
    try:
        _in_frame(as_loop, get, set_)
    except (Exception, *CHANGED):
        # Python's iterations then say what is wrong, or nothing is: their lists hold what no array
        # does
        known[body.__code__] = False
    else:
        known[body.__code__] = True
    return known[body.__code__]


_REFUSED = "bodies of loops that cannot be loops of the graph, and whose iterations Python makes"
_VECTORS = "bodies of loops, and whether lists that they make anew are vectors to the loop"


def loop_or_iterations(items, body, flags, names, get, set_, as_loop):
    """A loop of the graph; where it cannot be one, iterations that Python counts, if these are few.

    So dicts, sets and objects that Python alone can follow may be used in a short loop. What is
    raised where neither is possible says why there is no loop, or is the user's own error.
    """
    if not items.is_countable:
        current().root.cache.setdefault(_VECTORS, {})[body.__code__] = True
        return as_loop()
    refused, made = current().root.cache.setdefault(_REFUSED, set()), grown_lists()
    if body.__code__ in refused:
        with suppress(TooManyError):  # the loop says why it cannot be one
            return _counted_iterations(items, body, flags, names, get, set_)
        put_back_lists(made)
    try:
        return as_loop()
    except Exception as error:
        put_back_lists(made)
        try:
            _counted_iterations(items, body, flags, names, get, set_)
        except TooManyError:
            return _with_vectors(as_loop, body, _with_limit(error), made)
        except NbtaError:
            return _with_vectors(as_loop, body, error, made)
        refused.add(body.__code__)
    return None


def _with_vectors(loop, body, error, made):
    """A loop to which lists that iterations make anew are vectors; an error if it has none.

    It is the last thing to try: where Python makes iterations, it knows the lengths of lists.
    """
    bodies = current().root.cache.get(_VECTORS, {})
    if bodies.get(body.__code__) is not False:
        raise error from None
    bodies[body.__code__] = True
    put_back_lists(made)
    return loop()


def _loop_or_known(loop, body, unrolled):
    """As `loop_or_iterations` a `while`, whose iterations Python counts as it goes."""
    refused, made = current().root.cache.setdefault(_REFUSED, set()), grown_lists()
    known = functools.partial(unrolled, ITERATIONS_OF_PYTHON, ITERATIONS_OF_PYTHON, asks=True)
    if body.__code__ in refused and known():
        return
    put_back_lists(made)
    try:
        loop()
    except Exception as error:
        put_back_lists(made)
        try:
            done = known()
        except NbtaError:
            done = False
        if done:
            refused.add(body.__code__)
        else:
            _with_vectors(loop, body, error if done is False else _with_limit(error), made)


_LIMIT = (
    f"; Python makes the iterations of such a loop where they come to at most "
    f"{ITERATIONS_OF_PYTHON:,} operations, and these come to more"
)


def _with_limit(error):
    """The error of a loop that cannot be one of the graph, and why Python does not make it."""
    if isinstance(error, NbtaError) and _LIMIT not in str(error):
        error.args = (f"{error}{_LIMIT}", *error.args[1:])
    return error


class TooManyError(BaseException):
    """Iterations would make too many operations; no handler of the user's takes it up."""


def _counted_iterations(items, body, flags, names, get, set_):
    _growing_lists(_counted, items, body, flags, names, get, set_)


def _counted(items, body, flags, names, get, set_):
    entry, first = get(), current().root.version
    with _by_python(entry, set_) as (frame, _):
        for number, (item, ended) in enumerate(_one_by_one(items, flags), 1):
            if is_traced(ended):
                _branch(logical_not(ended), _with(body, item), _nothing, names, get, set_)
            elif ended:
                break
            else:
                body(item)
            if current().root.version - first >= ITERATIONS_OF_PYTHON * number / items.count:
                raise TooManyError
    frame.keep()


def _in_frame(as_loop, get, set_):
    with _put_back(get(), set_), Frame() as frame:
        as_loop()
    frame.keep()


@contextmanager
def _put_back(entry, set_):
    """Give variables what they had where iterations are given up, to be made in another way.

    Gives a function that does so.
    """
    before = awaited.noted()

    def put_back():
        if set_ is not None:
            set_(entry)
        awaited.forget_later(before)

    try:
        yield put_back
    except BaseException:
        put_back()
        raise


@contextmanager
def _by_python(entry, set_):
    """Iterations that Python makes, in a frame; gives that, and a function that puts all back.

    What they did stays where one ends by an error that a handler of the user's takes up.
    """
    caught = None
    with _put_back(entry, set_) as put_back, Frame() as frame:
        try:
            yield frame, put_back
        except Exception as error:
            if not is_caught(error):
                raise
            caught = error
    if caught is not None:
        frame.keep()
        raise caught


def or_undone(block):
    """What a block gives; where nbta cannot follow it, all that it did is put back."""
    made = grown_lists()
    try:
        with _by_python((), None) as (frame, _):
            found = block()
    except NbtaError:
        put_back_lists(made)
        raise
    frame.keep()
    return found


def _known_iterations(items, body, flags, get, set_, most):
    """Whether iterations are done; None where they would make too many operations."""
    entry, work, done = get(), _work_from_now(), True
    with _by_python(entry, set_) as (frame, put_back):
        for number, item in enumerate(items, 1):
            body(item)
            ended = flags()
            done = not any(map(is_traced, ended))
            if not done or any(ended):
                break
            is_last = number == items.count
            if not is_last and most < math.inf and work() / number * items.count > most:
                done = None
                break
        if not done:
            frame.undo()
            put_back()
            return done
    frame.keep()
    return True


def _work_from_now():
    """A function that tells how much is made until it is called; see `_work`."""
    graph = current()
    first, start = graph.root.version, len(graph.operations)
    return lambda: max(graph.root.version - first, _work(graph.operations[start:]))


def _work(operations, each=1):
    """How many operations there are, with those in bodies; in loops each counts for several."""
    work = each * len(operations)
    for op in operations:
        for body in subgraphs(op):
            work += _work(body.operations, OPERATIONS_IN_LOOPS if is_loop(op) else each)
    return work


def guarded_iterations(items, body, flags, names, get, set_, endless=False):
    """Iterations over what only Python knows, each in a branch once a flag is traced."""
    for item, ended in _one_by_one(items, flags):
        if is_traced(ended):
            if endless:
                message = "a loop over itertools.cycle that only the run ends"
                raise UnimplementedError(f"{here()}: {message}; write it with a counter")
            _branch(logical_not(ended), _with(body, item), _nothing, names, get, set_)
        else:
            body(item)
        if any_flag(flags()) is True:  # no more is taken of an iterator
            break


def _one_by_one(items, flags):
    """Items, each with whether a loop over them has ended before it."""
    items, last = iter(items), object()
    while True:
        ended = any_flag(flags())
        advance = functools.partial(next, items, last)
        if is_traced(ended):
            item = effects.early("a loop that ends early", advance)
        else:
            item = advance()
        if item is last:
            return
        yield item, ended


def _with(body, item):
    return lambda: body(item)


def _nothing():
    pass


def any_flag(flags):
    """Whether one of some truth values holds."""
    found = False
    for flag in flags:
        if is_traced(flag):
            found = logical_or(found, flag) if is_traced(found) else flag
        elif flag:
            return True
    return found


def counted_loop(start, stop, step, item, body, flags, *state):
    """A loop of the graph over integers, which ``item`` makes what the body is given.

    ``stop`` may be a function that gives it anew for each iteration.
    """
    target = next(iter(body.__code__.co_varnames), "")
    first = _int64(start)
    known = None if callable(stop) else _int64(stop)

    def test(place):
        end = _int64(stop()) if known is None else known
        goes_on = place < end if step > 0 else place > end
        ended = any_flag(flags())
        return both(True, negated(ended), lambda: goes_on) if flags() else goes_on

    def advance(place):
        note_counter(place, start, step)
        python_numbers.note(place)
        given = item(place)
        if target.startswith(ITEM):
            _call(given, target.removeprefix(f"{ITEM}_"))
        body(given)
        return place + step

    _Loop(body, *state).run([first], test, lambda place: [advance(place)])


def _int64(value):
    if isinstance(value, Tensor):
        tensor = as_tensor(value)
        return tensor if tensor.dtype == np.int64 else cast(tensor, np.int64)
    return np.int64(value)


def while_(test, body, flags, names, get, set_, changed, safe=False):
    """A `while`."""
    names, get, set_ = with_yielded(names, get, set_)
    if current() is None:
        while not any(flags()) and test():
            body()
        return
    try:
        _traced_while(test, body, flags, names, get, set_, _older(changed), safe)
    except ActingCondition:
        _with_test_in_body(test, body, flags, names, get, set_, changed)


def _traced_while(test, body, flags, names, get, set_, changed, safe):
    state, most = (names, get, set_, changed), _most(body)

    def unrolled(iterations, most, asks=False):
        return _growing_lists(_known_while, test, body, flags, get, set_, iterations, most, asks)

    def goes_on():
        ended = any_flag(flags())
        return both(safe, negated(ended), test)

    def advance():
        body()
        return []

    def loop():
        _Loop(body, *state).run([], goes_on, advance)

    try:
        made = most and unrolled(UNROLLED, most)
        if made is None:
            made = _tried_as_loop(body, get, set_, loop) or unrolled(UNROLLED, math.inf)
        if not made:
            _loop_or_known(loop, body, unrolled)
    except KnownCondition:
        unrolled(math.inf, math.inf)


def _with_test_in_body(test, body, flags, names, get, set_, changed):
    """A `while` whose condition does something, which only the body of a loop may."""
    ended = False

    def tested():
        nonlocal ended
        if_(negated(test()), end, body, *state)

    def end():
        nonlocal ended
        ended = True

    def get_all():
        return (ended, *get())

    def set_all(values):
        nonlocal ended
        ended = values[0]
        if set_ is not None:
            set_(values[1:])

    state = ("the end", *names), get_all, set_all
    code = tested.__code__  # by which loops are known: another one for each body
    tested.__code__ = code.replace(co_consts=(*code.co_consts, body.__code__))
    while_(_constantly(True), tested, lambda: (ended, *flags()), *state, changed)


def _older(changed):
    """Of some variables' values the arrays of now: iterations that are put back leave theirs."""
    start = Frame().start

    def of_before():
        return [
            v if isinstance(v, ArrayWrapper) and v.root.serial < start else None for v in changed()
        ]

    of_before.names = _names_of(changed)
    return of_before


def _known_while(test, body, flags, get, set_, iterations, most, asks):
    """Iterations as long as Python knows the condition, or can where it asks for lengths.

    False where all was put back, None where it was as they make too many operations.
    """
    entry, work, done = get(), _work_from_now(), True
    idle, seen = 0, ()
    with _by_python(entry, set_) as (frame, put_back):
        while True:
            ended = any_flag(flags())
            goes_on = _looked_at(test) if ended is False else negated(ended)
            if asks and isinstance(goes_on, Number):
                goes_on.ask_again()
            if is_traced(goes_on) or (goes_on and not iterations):
                done = False
                break
            if not goes_on:
                break
            if most < math.inf and work() > most:
                done = None
                break
            body()
            iterations -= 1
            before, seen = seen, _progress(get, frame)
            idle = idle + 1 if _are_same(before, seen) else 0
            if idle > IDLE and in_trace():
                raise _endless()
        if not done:
            frame.undo()
            put_back()
            return done
    frame.keep()
    return True


def _progress(get, frame):
    """What an iteration changes if it does anything."""
    noted = len(frame.changed), len(frame.places), current().root.version
    return (*get(), *noted)


def _are_same(before, now):
    return len(before) == len(now) and all(map(operator.is_, before, now))


def _endless():
    """An error for runs that come to a loop which Python would never end."""
    error = InvalidArgumentError(f"{here()}: this loop changes nothing and never ends")
    error.nbta_raised = True
    return error


_FOUND = "what loops were found to carry"


def taken_found(graph) -> dict:
    """What loops of a trace that is over were found to carry, as far as others have that too."""
    found = graph.root.cache.pop(_FOUND, {})
    return {key: each.of_any_trace() for key, each in found.items() if each.has_paths_to_places()}


def assume_found(graph, found) -> None:
    """Let the loops of a trace begin with what an earlier one of the same arguments found."""
    graph.root.cache[_FOUND] = found


def _kind(value):
    """What a value is, as far as it decides how a loop hands it on."""
    # a view may be of a trace that is given up, so it is not read
    if isinstance(value, ArrayWrapper):
        held = value.root._value
        return type(value), held.dtype, isinstance(held, Tensor)
    if isinstance(value, Tensor):
        is_pythons = python_numbers.is_noted(value)
        return type(value), value.spec.dtype, value.spec.rank, value.weak, is_pythons
    if isinstance(value, tuple):
        return type(value), *map(_kind, value)
    return type(value)


def _kinds_seen(function, depth=3):
    """What the variables that a function sees are, as far as that decides on dtypes."""
    return tuple((cell.name, _kind_seen(_value_of(cell), depth)) for cell in cells_of(function))


def _codes_seen(function, depth=3):
    """The code of the functions that a function sees, which distinguishes bodies of one code."""
    values = [_value_of(cell) for cell in cells_of(function)]
    functions = [each for each in values if isinstance(each, types.FunctionType)]
    return tuple((each.__code__, depth and _codes_seen(each, depth - 1)) for each in functions)


def _kind_seen(value, depth):
    if isinstance(value, np.ndarray):
        return type(value), value.dtype
    if isinstance(value, types.FunctionType):
        return value.__code__, depth and _kinds_seen(value, depth - 1)
    if isinstance(value, list | tuple) and native.is_python(value):
        return type(value), _kinds_of(list(value), depth)
    if isinstance(value, dict):
        return type(value), _kinds_of(list(value.values()), depth)
    of_user = not type(value).__module__.startswith("nbta.")
    if of_user and not isinstance(value, Tensor | type | types.ModuleType):
        return type(value), _kinds_of(list((own_attributes(value) or {}).values()), depth)
    return _kind(value)


def _kinds_of(values, depth):
    """The kinds of what an object holds; often many numbers."""
    kinds = frozenset(map(type, values))
    if not depth or all(issubclass(kind, _NUMBERS) for kind in kinds):
        return kinds
    return frozenset(_kind_seen(value, depth - 1) for value in values)


def _is_empty(value):
    return value is None or isinstance(value, Undefined)


def _is_empty_or_constant(value):
    return _is_empty(value) or is_constant(value) or isinstance(value, Code)


def _fresh(value, entry):
    """A placeholder for a loop, of one for another loop; ``entry`` is what it begins with."""
    if isinstance(value, Code) and may_be_chosen(value, entry):
        return as_code(entry, value)
    return pack(value, [array_like(v) if isinstance(v, ArrayWrapper) else v for v in leaves(value)])


def _names_of(changed):
    """Variables that a function gives which reads those alone, in the order of the alphabet."""
    return getattr(changed, "names", None) or changed.__code__.co_freevars


class _Array(NamedTuple):
    """An array of a rank, that another trace finds by a reference, if there is one."""

    reference: object
    rank: int


class _Found(NamedTuple):
    """What was found of a loop, with references in place of objects: see `_Loop._start`.

    Attributes
    ----------
    kinds : list
        Of what the body sees, and of what each variable has, before the loop.
    places : list
        References to objects, and their places that iterations change.
    wrappers : list
        References to arrays that iterations change.
    written : set
        The places of which all arrays that were there before the loop change.
    ways : dict
        By tie, one for all arrays of a rank without a reference: the ways, and whether it is vague.
    is_ordered : bool
        Whether iterations print, or may fail.
    """

    kinds: list
    carried: set
    known: set
    aliases: set
    dtypes: dict
    read_only: dict
    placeholders: dict
    places: list
    wrappers: list
    written: set
    flows: dict
    outer: dict
    ways: dict
    spoiled: list
    is_ordered: bool

    def has_paths_to_places(self) -> bool:
        """Whether another trace finds its own places by the references."""
        return all(is_path(reference) for reference, _ in self.places)

    def of_any_trace(self) -> _Found:
        """It without arrays that other traces do not have: these find their own."""
        return self._replace(
            wrappers=list(filter(is_path, self.wrappers)),
            outer={place: list(filter(is_path, arrays)) for place, arrays in self.outer.items()},
            ways={
                (place, other): known
                for (place, other), known in self.ways.items()
                if not isinstance(other, _Array)
                or other.reference is None
                or is_path(other.reference)
            },
            spoiled=[each for each in self.spoiled if is_path(each[0])],
        )


def _is_something(value):
    return value is not None


class _Loop:
    """A loop of the graph, traced until its state is what was assumed.

    Parameters
    ----------
    block : callable
        Its body in the user's code: by the code of that it begins with what was found of it before.
    names : tuple of str
        Variables that iterations may assign and that something reads later.
    get, set_ : callable
        Get and set these.
    changed : callable
        Gives variables whose arrays the body may change.
    """

    def __init__(self, block, names, get, set_, changed):
        get, setter = in_state(get, set_)
        self._begins = tensor_array_wrappers.now()
        self._given = names, get(), get, setter or (lambda values: None)
        self._changed = [*changed(), effects.token_wrapper()]
        self._called = dict(zip(map(id, self._changed), _names_of(changed), strict=False))
        self._start()
        self._block, self._paths = block, ObjectPaths(block)
        # Dtypes of lists that iterations make anew, which are vectors to the loop, by variable; and
        # the list and the vector that each was given last.
        self._made_anew, self._lists = {}, {}
        self._begin_as_before(block.__code__)

    def _start(self):
        """Assume that iterations forward numbers, and arrays that they seem to change."""
        self._names, self._entry, self._get_variables, self._set_variables = self._given
        self._placeholders, self._dtypes, self._begun = {}, {}, {}
        self._carried = {i for i, v in enumerate(self._entry) if self._is_scalar(v)}
        self._of_numpy = set()  # parts that do not stay integers of Python's
        self._known = set()  # variables that no iteration changes though one could
        self._wrappers, self._places = [], {}
        self._aliases, self._outer, self._spoiled = set(), {}, {}
        self._flows = {}  # by place, the places whose arrays an iteration may leave there
        # Of the last trace of such a loop, by place, more arrays of `_outer`, and, by their rank,
        # ways of others.
        self._known_outer, self._other_ways = {}, {}
        # In the last trace, which wrappers changed, and whether some of the places did not.
        self._changing, self._has_idle_places = set(), False
        self._read_only = {}  # by place, where iterations decide
        self._ways, self._vague = {}, set()  # how arrays of a tie are one, and where nobody knows
        self._copied = {}  # what has copies of lists that iterations forward, by variable
        self._families, self._related = {}, set()  # of tensor arrays, by place
        for value in self._changed[:-1]:
            self._guess(value)

    def _begin_as_before(self, code):
        """Assume what was found of such a loop: in nests each is traced again with those around."""
        self._found = current().root.cache.setdefault(_FOUND, {})
        self._key, self._assumes = (code, self._names, _codes_seen(self._block)), False
        self._kinds_seen = _kinds_seen(self._block)
        found = self._found.get(self._key)
        if found is None or not self._has_places(found.places):
            return
        self._assumes = True
        seen, *before = found.kinds
        kinds = zip(map(_kind, self._entry), before, strict=True)
        alike = {i for i, (now, before) in enumerate(kinds) if now == before}
        forwarded = {i for i in found.carried - alike if _is_carried(self._entry[i])}
        self._carried = (self._carried - alike) | (found.carried & alike) | forwarded
        self._known = found.known & alike
        self._placeholders = {
            i: _fresh(value, self._entry[i])
            for i, value in found.placeholders.items()
            if i in alike
        }
        alike = alike if seen == self._kinds_seen else set()
        for known, now in ((found.dtypes, self._dtypes), (found.read_only, self._read_only)):
            now.update((place, value) for place, value in known.items() if place[0] in alike)
        self._flows = {place: set(sources) for place, sources in found.flows.items()}
        self._known_outer = {
            place: list(self._objects(arrays)) for place, arrays in found.outer.items()
        }
        self._begin_ways(found.ways)
        entries = self._entries()
        self._aliases = {pair for pair in found.aliases if entries.keys() >= set(pair)}
        self._begin_outer(entries)
        given = self._changed[-1:] if found.is_ordered else []
        for wrapper in [*self._objects(found.wrappers), *given]:
            self._guess(wrapper, also_known=True)
        for wrapper in [b for place in found.written for b in self._outer.get(place, ())]:
            self._guess(wrapper, also_known=True)
        for reference, reason in found.spoiled:
            for wrapper in self._objects([reference]):
                self._spoiled[id(wrapper)] = wrapper, reason

    def _begin_ways(self, found):
        """Assume the ways in which arrays were others, of which some have no reference."""
        for (place, other), (ways, is_vague) in found.items():
            rank = other.rank if isinstance(other, _Array) else None
            if rank is not None:
                other = self._paths.object(other.reference)
            if other is None:
                self._other_ways[place, rank] = ways, is_vague
            elif rank is None or (isinstance(other, ArrayWrapper) and _rank(other) == rank):
                self._ways[place, other] = list(ways)
                self._vague |= {(place, other)} if is_vague else set()

    def _objects(self, references):
        """What stands at references, as far as something does."""
        return filter(_is_something, map(self._paths.object, references))

    def _has_places(self, places) -> bool:
        """Let places of objects be variables that were found to be; whether all are there."""
        found = [(self._paths.object(reference), place) for reference, place in places]
        if any(owner is None for owner, _ in found):
            return False
        for place in [place.of(owner) for owner, place in found]:
            self._add_place(place.key, place, place.value)
        return True

    def _remember(self):
        """Keep what was found, where that says something of another loop of this body."""
        own = (v for i, v in enumerate(self._entry) if i in self._placeholders)
        if not all(map(_is_empty_or_constant, own)):
            return
        if self._has_idle_places:  # they are of another call of the function, or another branch
            self._found.pop(self._key, None)
            return
        refer = self._paths.reference
        places = [(refer(place.owner), place) for place in self._places.values()]
        if any(reference is None for reference, _ in places):
            return
        ways = {}
        for (place, other), known in self._ways.items():
            if isinstance(other, ArrayWrapper):
                kept = place, _Array(refer(other), _rank(other))
            else:
                kept = place, other
            before, is_vague = ways.get(kept, ([], False))
            is_vague = is_vague or (place, other) in self._vague
            ways[kept] = [*before, *_new_ways(before, known)], is_vague
        wrappers = [wrapper for wrapper in self._wrappers if id(wrapper) in self._changing]
        self._found[self._key] = _Found(
            [self._kinds_seen, *map(_kind, self._entry)],
            self._carried,
            self._known,
            self._aliases,
            self._dtypes,
            self._read_only,
            self._placeholders,
            places,
            list(filter(_is_something, map(refer, wrappers))),
            {
                place
                for place, arrays in self._outer.items()
                if self._changing.issuperset(map(id, arrays))
            },
            self._flows,
            {
                place: list(filter(_is_something, map(refer, arrays)))
                for place, arrays in self._outer.items()
            },
            ways,
            [(refer(wrapper), reason) for wrapper, reason in self._spoiled.values()],
            id(self._changed[-1]) in self._changing,
        )

    def _is_scalar(self, value):
        if not _is_carried(value):
            return False
        if any(isinstance(leaf, ArrayWrapper | TensorArrayWrapper) for leaf in leaves(value)):
            return False
        # as long as no other object takes the place of one
        return not objects_in(value) and not containers_in(value)

    def _guess(self, value, also_known=False):
        """Take the array of a variable for one that iterations change."""
        if (
            not isinstance(value, ArrayWrapper)
            or value.fixed is not None
            or value.root.fixed is not None
        ):
            return
        root = value.root
        held = root._value  # a variable may have it from a trace that is given up
        here = lies_in(current(), held.graph) if isinstance(held, Tensor) else also_known
        if here and root.spoiled is None and not any(root is wrapper for wrapper in self._wrappers):
            self._wrappers.append(root)

    def run(self, first, test, advance):
        """Build it; ``advance`` gives what ``test`` and it are given next."""
        if self._assumes:
            try:
                return self._traced(first, test, advance)
            except (NbtaError, NoValueError):  # perhaps of what was assumed
                self._found.pop(self._key, None)
                self._start()
        try:
            return self._traced(first, test, advance)
        except Exception as error:
            if not _is_of_a_run(error):
                raise
            self._set(self._entry)
            _check(negated(test(*map(as_tensor, first))), error)  # each iteration ends in it
            return None

    def _traced(self, first, test, advance):
        try:
            self._learn(first, test, advance)
        finally:
            if not _attempts.errors:
                _attempts.is_last = False

    def _learn(self, first, test, advance):
        """Trace until what was assumed is so."""
        for _ in range(ATTEMPTS):
            self._begin_with_vectors()
            self._set(self._entry)
            _attempts.errors.append(None)
            try:
                self._attempt(first, test, advance)
            except Again:
                _attempts.errors.pop()
            except CHANGED as error:
                _attempts.errors.pop()
                grow(error)
                self._look_again()
            except BaseException as error:
                _attempts.errors.pop()
                if not self._learn_replaced(getattr(error, "replaced", None)):
                    raise
            else:
                self._remember()
                if not _attempts.end():
                    return
                _attempts.is_last = True
        message = (
            f"{here()}: the variables of this loop are not known after {ATTEMPTS} traces of it; "
            f"give arrays that differ between iterations different names"
        )
        raise UnimplementedError(message)

    def _begin_with_vectors(self):
        """Let lists that iterations make anew be vectors before the loop, too."""
        names, entry, *access = self._given
        begun = [
            vector_of(value, self._made_anew[i])
            if i in self._made_anew and isinstance(value, list)
            else value
            for i, value in enumerate(entry)
        ]
        self._given = (names, tuple(begun), *access)
        self._entry = (*begun, *self._entry[len(begun) :])

    def _look_again(self):
        """Begin with what places of objects hold now, after a list was made an array."""
        count = len(self._entry) - len(self._places)
        self._entry = (*self._entry[:count], *map(_value_of, self._places.values()))

    def _attempt(self, first, test, advance):
        own = len(first)
        begin = [*first, *self._first_values(), *(wrapper.itself for wrapper in self._wrappers)]
        begin += self._first_ties()
        begin = [as_tensor(v) if not isinstance(v, TensorArray) else v for v in begin]
        if not begin:
            begin = [as_tensor(np.int64(0))]

        def cond(*variables):
            with Frame(traced=True) as frame:
                try:
                    self._bind(variables[own:])
                    with Frame() as of_test:
                        goes_on = truth(test(*variables[:own]))
                    of_test.keep()
                    return self._as_condition(goes_on, of_test)
                finally:
                    frame.undo()

        def body(*variables):
            with Frame(traced=True) as frame:
                try:
                    bound = self._bind(variables[own:])
                    following = advance(*variables[:own])
                    found = [*following, *self._results(bound, frame, variables[own:])]
                    return tuple(found or variables)
                finally:
                    frame.undo()

        body.carries_order = True  # in a wrapper
        self._is_known = False
        try:
            last = while_loop(cond, body, begin)
        except Exception:
            if self._is_known:
                raise KnownCondition from None
            raise
        finally:
            self._set(self._entry)
        if self._is_known:
            raise KnownCondition
        self._finish(begin[own:], last[own:])

    def _as_condition(self, goes_on, frame):
        if frame.has_acted():
            raise ActingCondition
        if not is_traced(goes_on):
            if goes_on and not self._may_choose():
                raise KnownCondition
            self._is_known = bool(goes_on)
            return as_tensor(np.bool_(goes_on))
        return goes_on

    def _may_choose(self):
        """Whether a variable is a constant that an iteration may turn out to choose."""
        return any(
            value is not None and is_constant(value)
            for i, value in enumerate(self._entry)
            if i not in self._carried
        )

    def _first_values(self):
        found = []
        for i in sorted(self._carried):
            value = self._placeholders.get(i, self._entry[i])
            for j, leaf in enumerate(leaves(value)):
                leaf, dtype = _as_data(leaf), self._dtypes.get((i, j))
                found.append(leaf if dtype is None else in_dtype(leaf, dtype))
                self._begun[i, j] = getattr(found[-1], "dtype", None)
        return found

    def _bind(self, given):
        """Give variables and wrappers what an iteration begins with; the variables' values."""
        given, values = iter(given), list(self._entry)
        for i in sorted(self._carried):
            like = self._placeholders.get(i, self._entry[i])
            parts = [self._part(i, j, leaf, next(given)) for j, leaf in enumerate(leaves(like))]
            for part in parts:
                _call(part._value if isinstance(part, ArrayWrapper) else part, self._names[i])
            values[i] = packed(like, parts)
            take_apart((self._entry[i], values[i]))
            self._note_numbers(like, values[i])
            self._note_pythons(i, like, values[i], python_numbers.assume)
            _note_copies(values[i], self._copied.get(i, ()))
        self._link_families(values)
        for wrapper in self._wrappers:
            tensor = next(given)
            _call_as_wrapper(tensor, wrapper, self._called.get(id(wrapper)))
            wrapper.rebind(tensor)
        for wrapper, reason in self._spoiled.values():
            wrapper.put_off(reason)
        self._link(values, given)
        self._set(tuple(values))
        return values

    def _part(self, i, j, leaf, value):
        """What a variable has, or a part of it, in an iteration or after the loop."""
        if not isinstance(leaf, TensorArrayWrapper):
            found = made(value, self._names[i])
            if isinstance(found, ArrayWrapper):
                found.read_only = self._read_only.get((i, j), common_read_only([leaf]))
            return found
        return one_of(value, self._families.setdefault((i, j), [leaf.forward]))

    def _tensor_arrays(self, values):
        """The tensor arrays that iterations forward, by place."""
        return {
            (i, j): leaf
            for i in sorted(self._carried)
            for j, leaf in enumerate(leaves(values[i]))
            if isinstance(leaf, TensorArrayWrapper)
        }

    def _link_families(self, values):
        """Note which tensor arrays may be one."""
        arrays = self._tensor_arrays(values) if self._related else {}
        for place, other in self._related:
            tensor_array_wrappers.link(arrays[place], arrays[other])

    def _learn_families(self, bound, end):
        """Which tensor arrays an iteration may forward."""
        starts, ends = self._tensor_arrays(bound), self._tensor_arrays(end)
        found = {place: tensor_array_wrappers.relatives(wrapper) for place, wrapper in ends.items()}
        related, again = set(self._related), False
        for place, firsts in found.items():
            known = self._families[place]
            for first in firsts:
                if first is starts[place].forward or any(first is each for each in known):
                    continue
                again = again or not isinstance(known, Unknown) or first.since < self._begins
                if first.since < self._begins:
                    known.append(first)
                else:
                    known = self._families[place] = Unknown(known)
            near = {*map(id, firsts), id(starts[place].forward)}
            for other in found.keys() - {place}:
                if near & {*map(id, found[other]), id(starts[other].forward)}:
                    related.add((place, other))
        if again or related != self._related:
            self._related = related
            raise Again

    def _note_numbers(self, like, value):
        for leaf, found in zip(leaves(like), leaves(value), strict=True):
            note_number(found, (leaf,))

    def _note_pythons(self, i, like, value, note):
        """Note which parts of a variable are numbers of Python's, as they were before the loop."""
        for j, (leaf, found) in enumerate(zip(leaves(like), leaves(value), strict=True)):
            if (i, j) not in self._dtypes and (i, j) not in self._of_numpy:
                note(found, leaf)

    def _learn_pythons(self, bound, end):
        """Which variables do not stay numbers of Python's, although they began so."""
        found, depending, todo, lost = {}, {}, [], {}
        for i in sorted(self._carried):
            pairs = zip(leaves(bound[i]), leaves(end[i]), strict=False)
            for j, (start, last) in enumerate(pairs):
                if not python_numbers.is_assumed(start):
                    continue
                found[i, j], sources = start, python_numbers.assumptions(last)
                todo += [(i, j)] if sources is None else []
                for each in sources or ():
                    depending.setdefault(each, []).append((i, j))
        while todo:
            place = todo.pop()
            if place not in lost:
                lost[place] = found[place]
                todo += depending.get(found[place], ())
        self._of_numpy |= lost.keys()
        if not python_numbers.used().isdisjoint(lost.values()):
            raise Again

    def _slots(self, values):
        """The wrappers of variables that iterations forward, by place."""
        return {
            (i, j): leaf
            for i in sorted(self._carried)
            for j, leaf in enumerate(leaves(values[i]))
            if _has_axes(leaf)
        }

    def _link(self, values, holds):
        """Note which arrays may be one; ``holds`` says in which iterations, as the graph does."""
        slots, said = self._slots(values), dict(zip(self._said, holds, strict=False))
        for tie in self._ties:
            place, other = tie
            other = slots[other] if isinstance(other, tuple) else other
            found = [
                Link(other, said[tie, k], way.steps, way.is_inverse)
                for k, way in enumerate(self._ways.get(tie, ()))
                if (tie, k) in said
            ]
            if found or not keeps_shared() or tie in self._vague:
                link(slots[place], other, found)

    def _first_ties(self):
        """Which arrays may be one in some iteration; what the graph says of the first."""
        entries = self._entries()
        self._begin_outer(entries)
        self._ties = [*(self._aliases | _pairs(entries))]
        self._ties += [(place, wrapper) for place in entries for wrapper in self._outer[place]]
        self._said = []
        if not keeps_shared():
            return []
        found = {tie: self._tied(tie, entries) for tie in self._ties}
        self._said = [(tie, k) for tie in self._ties for k, _ in enumerate(self._clear(tie))]
        return [_holds(self._ways[tie][k], found[tie]) for tie, k in self._said]

    def _begin_outer(self, entries):
        """Which arrays from before the loop its variables may be."""
        for place, wrapper in entries.items():
            if place not in self._outer:
                entry = wrapper.root  # and what that may be, as a loop around may say
                found = [entry, *_linked_to(entry), *self._known_outer.get(place, ())]
                self._outer[place] = list({id(each): each for each in found}.values())
        self._follow_flows(entries)

    def _clear(self, tie):
        """The ways in which an array may be another one, which the graph tells apart."""
        return () if tie in self._vague else self._ways[tie]

    def _tied(self, tie, wrappers):
        """In which ways an array is another one; new ones are learnt."""
        place, other = tie
        found = relations(wrappers[place], wrappers[other] if isinstance(other, tuple) else other)
        if tie not in self._ways:
            of_others = not isinstance(other, tuple)
            rank = _rank(other) if of_others else None
            known, is_vague = self._other_ways.get((place, rank), ((), False))
            self._ways[tie] = list(known) if of_others else []
            self._vague |= {tie} if of_others and is_vague else set()
        ways = self._ways[tie]
        ways += _new_ways(ways, found)
        if _is_vague(ways, found):
            self._vague.add(tie)
        return found

    def _last_ties(self, ends):
        """What the graph says after an iteration."""
        if not keeps_shared():
            return []
        vague = set(self._vague)
        found = {tie: self._tied(tie, ends) for tie in self._ties if tie not in vague}
        said = [(tie, k) for tie in self._ties for k, _ in enumerate(self._clear(tie))]
        if self._said != said or self._vague != vague:  # the iteration was traced without these
            raise Again
        return [_holds(self._ways[tie][k], found[tie]) for tie, k in self._said]

    def _entries(self):
        """The wrappers that variables of the loop are before it."""
        return self._slots([self._placeholders.get(i, v) for i, v in enumerate(self._entry)])

    def _results(self, bound, frame, given):
        """What an iteration ends with; `Again` where the state is another one than was assumed."""
        pairs = zip(bound, self._get(), strict=False)
        end = [_in_form_of(start, found) for start, found in pairs]
        again = self._learn_lists(bound, end) or self._learn_wrappers(frame)
        again = more = self._learn_places(frame) or again
        for i, pair in enumerate(zip(bound, end, strict=True)):
            if more and pair[0] is pair[1]:
                continue  # what changes besides may change it, too
            try:
                again = self._learn_variable(i, *pair) or again
            except NbtaError:
                if not again:
                    raise
                break  # the next trace tells whether it is so with all that changes, too
        if again:
            raise Again
        for i in self._carried:
            parts = end[i], *relatives(end[i])
            take_apart(parts, (place for place, _ in frame.places.values()), frame)
            copies = _copies(end[i])
            if not set(copies) <= set(self._copied.get(i, ())):
                self._copied[i] = copies
                raise Again
        self._learn_pythons(bound, end)
        self._learn_families(bound, end)
        self._learn_aliases(bound, end, frame)
        self._learn_spoiled(frame)
        found = [self._ended(i, j, leaf) for i in sorted(self._carried)
                 for j, leaf in enumerate(leaves(end[i]))]  # fmt: skip
        found = self._with_checked_growth(bound, found)
        params = given[len(found) :]
        self._changing = set(self._spoiled)
        for wrapper, param in zip(self._wrappers, params, strict=False):
            found.append(param if wrapper.spoiled is not None else wrapper.itself)
            self._changing |= {id(wrapper)} if found[-1] is not param else set()
        first = len(self._names) - len(self._places)
        pairs = zip(bound[first:], end[first:], strict=True)
        self._has_idle_places = any(_same(*pair) for pair in pairs)
        return [*found, *self._last_ties(self._slots(end))]

    def _with_checked_growth(self, bound, found):
        """The ends of variables, of which integers may become too large for the graph."""
        if is_numbas():
            return found
        starts = [leaf for i in sorted(self._carried) for leaf in leaves(bound[i])]
        integers = [
            k
            for k, leaf in enumerate(starts)
            if isinstance(leaf, Tensor) and leaf.dtype == np.int64 and leaf.spec.rank == 0
        ]
        checked = checked_growth([(starts[k], found[k]) for k in integers])
        for k, end in zip(integers, checked, strict=True):
            found[k] = end
        return found

    def _learn_wrappers(self, frame):
        new = [
            wrapper
            for wrapper, old, _ in frame.changed.values()
            if wrapper._value is not old and not any(wrapper is mine for mine in self._wrappers)
        ]
        self._wrappers += new
        return bool(new)

    def _learn_places(self, frame):
        """Make places of objects that an iteration changes variables."""
        new = [(key, *entry) for key, entry in frame.places.items() if key not in self._places]
        for key, place, old in new:
            error = growing(place, old)
            if error is not None:
                raise error
            if not is_held(place, old):
                self._add_place(key, place, old)
        return any(key in self._places for key, _, _ in new)

    def _add_place(self, key, place, old):
        self._places[key] = place
        value = absent(place) if old is Missing else as_state((old,))[0]
        if self._is_scalar(value):
            self._carried.add(len(self._names))
        self._names = (*self._names, str(place))
        self._entry = (*self._entry, value)

    def _get(self):
        values = list(self._get_variables())
        for i in self._made_anew:
            values[i] = self._vector(i, values[i])
        return (*values, *map(_value_of, self._places.values()))

    def _vector(self, i, value):
        """The vector of a list that an iteration made, as nobody changes the list any more."""
        listing, vector = self._lists.get(i, (None, None))
        if value is listing and listing is not None:
            return vector
        if not is_of_numbers(value) or _is_changed_elsewhere(value):
            return value
        if value.copied_in:
            message = (
                f"{here()}: {self._names[i]!r} is a list that each iteration of a loop makes anew, "
                f"and an item of another list; put a copy there, as list({self._names[i]})"
            )
            raise invalid("loop_variable", message)
        return vector_of(value)

    def _set(self, values):
        count = len(values) - len(self._places)
        variables = list(values[:count])
        for i in self._made_anew:
            if isinstance(variables[i], ArrayWrapper):
                self._lists[i] = made_anew(variables[i]), variables[i]
                variables[i] = self._lists[i][0]
        self._set_variables(tuple(variables))
        for place, value in zip(self._places.values(), values[count:], strict=True):
            hold_place(place, value)

    def _learn_replaced(self, replaced):
        """Whether it was not known of a list in a variable that iterations make it anew."""
        listing, dtype = replaced or (None, None)
        values = self._entry[: len(self._given[0])]
        return self._let_be_vectors(
            {i: dtype for i, v in enumerate(values) if v is listing and is_of_numbers(v)}
        )

    def _let_be_vectors(self, found):
        """Whether lists, by variable, are vectors to the loop from now on, as nothing else does."""
        if not found:
            return False
        bodies = current().root.cache.setdefault(_VECTORS, {})
        allowed = bodies.setdefault(self._block.__code__, False)
        self._made_anew |= found if allowed else {}
        return allowed

    def _learn_lists(self, bound, end):
        """Whether variables are lists that iterations make anew, of which that was not known."""
        found = {}
        for i, (start, last) in enumerate(zip(bound, end, strict=False)):
            if start is not last and i < len(self._given[0]) and _are_made_anew(start, last):
                known = [value for value in (start, last) if not isinstance(value, Undefined)]
                found[i] = np.result_type(*map(_dtype_of_numbers, known))
        return self._let_be_vectors(found)

    def _learn_variable(self, i, start, end):
        """Whether a variable is something else than was assumed."""
        if not isinstance(start, Parts) and may_be_none(start, end) and not _same(start, end):
            if i in self._placeholders:
                raise self._changes(i, start, end)
            self._placeholders[i] = as_parts(self._entry[i], end)
            self._carried.add(i)
            return True
        if may_be_chosen(start, end) and not _same(start, end):
            if isinstance(start, Code) and i in self._carried and may_be_all(start, end):
                return False
            self._placeholders[i] = as_code(self._entry[i], start, end)
            self._carried.add(i)
            return True
        if i not in self._carried:
            if _same(start, end) or _gives_a_function(start, end):
                return False
            self._carry(i, start, end)
            return True
        if end is start and self._may_be_known(i):
            self._known.add(i)
            self._carried.discard(i)
            return True
        if _unlike(start, end) or not _is_carried(end):
            raise self._changes(i, start, end)
        pairs = zip(leaves(start), leaves(end), strict=True)
        found = [self._learn_leaf(i, j, *pair) for j, pair in enumerate(pairs)]
        return any(found)

    def _may_be_known(self, i):
        """Whether Python may go on with the value that a variable has before the loop."""
        learnt = i in self._placeholders or i in self._known or (i, 0) in self._dtypes
        return not learnt and not any(isinstance(v, Tensor) for v in leaves(self._entry[i]))

    def _carry(self, i, start, end):
        """Make a variable one of the loop's."""
        for value in (start, end):
            check_keys(value, "a change")
        if isinstance(start, Absent):
            start.refuse()
        if isinstance(start, Undefined):
            if not _is_carried(end):
                raise self._changes(i, start, end)
            self._placeholders[i] = pack(end, [_placeholder(leaf) for leaf in leaves(end)])
        elif _unlike(start, end) or not (_is_carried(start) and _is_carried(end)):
            raise self._changes(i, start, end)
        self._carried.add(i)

    def _changes(self, i, start, end):
        check_no_text(start, end)
        _check_keys(start, end)
        rule = _remedy(
            start,
            end,
            "a variable of a loop keeps its kind: start with a number or an array of that dtype "
            "and rank, such as math.inf in place of None",
        )
        if self._names[i].startswith(ITEMS):
            rule = "a loop keeps the number of items, the keys and their order: add all before it"
            rule = _rule_of_items(start, rule)
        what, before, after = _told(self._names[i], start, end)
        message = (
            f"{here()}: {what} {before} before an iteration of the loop and {after} after it; "
            f"{rule}"
        )
        return invalid("loop_variable", message)

    def _learn_leaf(self, i, j, start, end):
        if any(isinstance(leaf, TensorArray | TensorArrayWrapper) for leaf in (start, end)):
            return False
        if common_read_only([start, end]) is None and (i, j) not in self._read_only:
            self._read_only[i, j] = None
            return True
        ranks = [v.spec.rank if isinstance(v, Tensor) else np.ndim(v) for v in (start, end)]
        if None not in ranks and ranks[0] != ranks[1]:
            raise self._changes(i, start, end)
        have, new = _dtype(start), _dtype(end)
        if have == new or (_is_weak(end) and _takes(new.kind, have.kind)):
            return False
        if (i, j) in self._dtypes and have.kind in "iu" and python_numbers.is_integer(end):
            return False
        apart = i not in self._placeholders and _are_of_two_dtypes(start, end)
        if apart and not _is_computed_as_wide(start, end):
            raise self._changes(i, start, end)
        weak = self._weak_entry(i, j, new) and (i, j) not in self._dtypes
        dtype = new if weak and _takes(have.kind, new.kind) else _promoted(have, new)
        if dtype is None:
            raise self._changes(i, start, end)
        if dtype == have:
            return False
        self._dtypes[i, j] = dtype
        return True

    def _weak_entry(self, i, j, dtype):
        """Whether a variable takes a dtype, as a number of Python's does."""
        if i in self._placeholders:
            return False
        leaf = leaves(self._entry[i])[j]
        if (i, j) not in self._of_numpy and python_numbers.is_noted(leaf):
            return True
        return _is_weak(leaf) and python_numbers.fits(leaf, dtype)

    def _ended(self, i, j, leaf):
        if isinstance(leaf, TensorArray | TensorArrayWrapper):
            return unwrapped(leaf)
        return in_dtype(leaf, self._begun[i, j])

    def _learn_aliases(self, bound, end, frame):
        """Which wrappers may be the same array in a later iteration."""
        slots, ends = self._slots(bound), self._slots(end)
        starts = {id(wrapper): place for place, wrapper in slots.items()}
        found = _pairs(ends)
        changed = False
        for place, wrapper in ends.items():
            for root in (wrapper.root, *_linked_to(wrapper.root)):
                if id(root) in starts:
                    self._flows.setdefault(place, set()).add(starts[id(root)])
                elif frame.is_before(root) and not any(root is b for b in self._outer[place]):
                    self._outer[place].append(root)
                    changed = True
        changed |= self._follow_flows(slots)
        if found - self._aliases or changed:
            self._aliases |= found
            raise Again

    def _follow_flows(self, places) -> bool:
        """Let a place have the arrays that iterations bring there; whether it had not all."""
        found, changed = {}, False
        for place in places:
            found[place], todo = {place}, [place]
            while todo:
                new = self._flows.get(todo.pop(), set()) & places.keys() - found[place]
                found[place] |= new
                todo += new
        outer = {
            place: {id(b): b for source in sources for b in self._outer[source]}
            for place, sources in found.items()
        }
        for place, arrays in outer.items():
            known = set(map(id, self._outer[place]))
            new = [b for key, b in arrays.items() if key not in known]
            self._outer[place] += new
            changed |= bool(new)
        return changed

    def _learn_spoiled(self, frame):
        """Wrappers that an iteration spoils are spoiled in the next one, from its start."""
        again = False
        for wrapper, _, old in frame.changed.values():
            if (
                wrapper.spoiled is not None
                and wrapper.spoiled is not old
                and id(wrapper) not in self._spoiled
            ):
                self._spoiled[id(wrapper)] = wrapper, wrapper.spoiled
                again |= wrapper.read > frame.start
        if again:
            raise Again

    def _finish(self, begin, last):
        """Give variables and wrappers what the loop gives."""
        pairs = iter(zip(begin, last, strict=False))
        values, given = list(self._entry), {}
        for i in sorted(self._carried):
            like = self._placeholders.get(i, self._entry[i])
            given[i] = like, [next(pairs)[1] for _ in leaves(like)]
        for wrapper in self._wrappers:
            first, found = next(pairs)
            if found is not first:
                wrapper.hold(found)
        for i, (like, found) in given.items():
            parts = zip(leaves(like), found, strict=True)
            values[i] = packed(like, [self._part(i, j, *part) for j, part in enumerate(parts)])
            take_apart(values[i])
            self._note_numbers(like, values[i])
            self._note_pythons(i, like, values[i], python_numbers.note)
            _note_copies(values[i], self._copied.get(i, ()))
        self._link_families(values)
        self._link(values, (found for _, found in pairs))
        for wrapper, reason in self._spoiled.values():
            wrapper.put_off(reason)
        self._set(tuple(values))


def _are_made_anew(one, other):
    """Whether values of a variable are lists of numbers, as many of which only the run knows."""
    if isinstance(one, Undefined):
        return is_filled(other) and is_of_numbers(other) and not _is_changed_elsewhere(other)
    if not (is_of_numbers(one) and is_of_numbers(other)) or _is_changed_elsewhere(other):
        return False
    return is_filled(one) or is_filled(other) or len(one) != len(other)


def _is_changed_elsewhere(listing):
    """Whether what is around an iteration may change a list that is a variable's at its end."""
    return is_older(listing) and not listing.is_made_anew


def _dtype_of_numbers(values):
    """Of the numbers of a list; the least where it has none."""
    if is_filled(values):
        return values.array.dtype
    return np.result_type(*set(map(_dtype, values))) if values else np.dtype(np.bool_)


def _unlike(one, other) -> bool:
    """Whether two values of a variable have other parts; of lists that loops fill nobody knows."""
    if any(getattr(value, "array", None) is not None for value in (one, other)
           if isinstance(value, Listing)):  # fmt: skip
        return True
    return layout(one) != layout(other) or _orders(one) != _orders(other)


def _orders(value):
    """The keys of the dicts in a value, in which order a loop over them goes."""
    if isinstance(value, dict):
        return list(value), list(map(_orders, value.values()))
    return list(map(_orders, value)) if isinstance(value, list | tuple) else None


def _in_form_of(start, end):
    """The value of a variable after an iteration, in the form that it had before it."""
    if isinstance(start, Code) and may_be_chosen(start, end) and may_be_all(start, end):
        return as_code(end, start)
    return as_parts(end, start) if isinstance(start, Parts) and may_be_none(start, end) else end


def _pairs(slots):
    """Pairs of places, the later one first, that hold one array, or arrays that may be one."""
    order, held = {place: n for n, place in enumerate(slots)}, {}
    for place, wrapper in slots.items():
        held.setdefault(id(wrapper.root), []).append(place)
    return {
        (max(place, other, key=order.get), min(place, other, key=order.get))
        for place, wrapper in slots.items()
        for near in (wrapper.root, *_linked_to(wrapper.root))
        for other in held.get(id(near), ())
        if other != place
    }
