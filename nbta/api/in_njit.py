"""Traced functions and derivatives in users' own ``@njit`` functions.

Each `Function` has a Numba type of its own. Typing a call makes an `Entry` for the types of the
arguments: the function is traced for arrays of these types, and its program is in machine code
before Numba goes on. What the user's function calls is in `nbta.runtime.native_calls`; where that
finds no program for the lengths of a call it asks `Entry.answer`, which makes one, or computes the
results as a call from Python does.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import itertools
import operator
import threading
from collections import namedtuple
from types import FunctionType, MemberDescriptorType
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.extending import (
    NativeValue,
    box,
    intrinsic,
    models,
    overload,
    register_jitable,
    register_model,
    typeof_impl,
    unbox,
)

from nbta.api import cached_callers, derivatives
from nbta.api.batches_in_njit import ANY_LENGTH, ANY_NUMBER, ItemPlan, bits_of
from nbta.api.static import Fixed, unfixed
from nbta.api.tracing import MANY_LENGTHS, Function, is_text, lies_apart
from nbta.compiler.executable import Executable, Workspace
from nbta.errors import FailedPreconditionError, NbtaError, UnimplementedError, invalid
from nbta.frontend.arguments import taken_apart
from nbta.frontend.lists import lists_as_arrays
from nbta.frontend.outside import BY_TEXT
from nbta.frontend.records import Records
from nbta.graph.graph import leaving
from nbta.graph.operation import DATA, Tensor
from nbta.runtime import native_batches, parallel_loops
from nbta.runtime import native_calls as rt
from nbta.runtime.failures import refusal
from nbta.runtime.intrinsics import INTERRUPTED, NOT_A_NUMBER, OK, call
from nbta.runtime.memory import (
    ARRAY_DTYPE,
    ARRAY_READY,
    HEAD,
    INT64,
    build_array,
    copy_memory,
    room,
)
from nbta.runtime.native_calls import kept, raise_kept, raise_memory, raise_misfit
from nbta.runtime.numba_private import (
    AbstractTemplate,
    Conversion,
    NumbaError,
    as_dtype,
    cgutils,
    cpu_target,
    imputils,
    infer,
    infer_global,
    signature,
)
from nbta.runtime.records import RecordType, spilled
from nbta.runtime.sharing import forget_python_error, hold_python, let_python_go, python_held
from nbta.structure import describe, layout, leaves, map_leaves
from nbta.tuning import SAVED_BUFFERS, WATCHED_ITEMS, WORKSPACES

_ASK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
_TELL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
#: Lengths that a function is traced for, one after another, where Python goes by them.
_SAMPLES = (3, 2, 1, 4, 5, 8, 10, 6, 7, 16)
#: How often a call asks for a program before Python computes its results.
_ATTEMPTS = 4
_NUMBERS = types.Number | types.Boolean
_TAKEN = (
    "arrays, numbers, truth values, NumPy's records, None, and tuples and named tuples of these"
)

#: Who owns the memory of an array.
_OWNER = types.MemInfoPointer(types.voidptr)

# Arguments and results, by their types.


class _Given:
    """An array, a number or a truth value that a call brings."""

    def __init__(self, kind: Any) -> None:
        self.type = kind
        is_array = isinstance(kind, types.Array)
        self.dtype = as_dtype(kind.dtype if is_array else kind)
        self.rank = kind.ndim if is_array else 0
        #: Whether it is decided by each call if its items lie in another order than C's.
        self.may_lie_apart = is_array and kind.layout != "C" and kind.ndim > 1
        #: Whether a trace goes by its value.
        self.is_truth = isinstance(kind, types.Boolean)
        #: Whether a trace may go by its value, as that of a whole number.
        self.is_whole = not self.rank and self.dtype.kind in "iu"
        #: How many conditions there are on it.
        self.conditions = self.rank + self.may_lie_apart + self.is_truth + self.is_whole

    def sample(self, length: int) -> Any:
        """A value of the type."""
        if self.is_truth:
            return True
        found = np.ones(self._shape(length), self.dtype)
        if not self.rank:
            return found[()]
        return _apart(found) if self.may_lie_apart else found

    def _shape(self, length: int) -> tuple[int, ...]:
        return (length,) * self.rank

    def value(self, address: int, numbers: list[int]) -> Any:
        """A copy of what lies at an address, for the numbers that conditions are on."""
        if self.is_truth:
            return bool(numbers[0])
        shape = tuple(numbers[: self.rank])
        found = np.empty(shape, self.dtype)
        if found.size:
            ctypes.memmove(found.ctypes.data, address, found.nbytes)
        if not self.rank:
            return found[()]
        return _apart(found) if self.may_lie_apart and numbers[-1] else found


def _apart(array: Any) -> Any:
    """The same items in another order than C's, whatever the shape is."""
    wide = np.empty((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


class _Field(_Given):
    """A field of an array of records or of a single record, which calls bring as one value.

    Parameters
    ----------
    item : numba type
        Of its items, which may be of kinds that compiled code only moves.
    rank : int
        Of the array of records.
    offset : int
        Of the first item in a record.
    axes : list of (int, int)
        Dimensions and strides that it has of its own.
    """

    def __init__(self, item: Any, rank: int, offset: int, axes: list[tuple[int, int]]) -> None:
        super().__init__(types.Array(item, rank + len(axes), "C"))
        self._offset, self._axes = offset, axes

    def _shape(self, length: int) -> tuple[int, ...]:
        own = tuple(n for n, _ in self._axes)
        return (length,) * (self.rank - len(own)) + own

    def of(self, context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, Any]:
        """Type and value of the field, for those of the records."""
        value, shape, strides = _laid_out(context, builder, kind, value)
        item, place = self.type.dtype, self.place(builder, value)
        if self.rank or not isinstance(item, _NUMBERS):
            return self.view(context, builder, place, shape, strides)
        data = builder.bitcast(place, context.get_data_type(item).as_pointer())
        return item, context.unpack_value(builder, item, data, align=1)

    def place(self, builder: Any, records: Any) -> Any:
        """The place of the first item, for that of the first record."""
        return builder.gep(builder.bitcast(records, cgutils.voidptr_t), [INT64(self._offset)])

    def view(
        self, context: Any, builder: Any, place: Any, shape: Any, strides: Any
    ) -> tuple[Any, Any]:
        """Type and value of an array of the items, for dimensions and strides of the records."""
        shape = [*shape, *(INT64(n) for n, _ in self._axes)]
        strides = [*strides, *(INT64(stride) for _, stride in self._axes)]
        # What only lies there, as a text, is not copied.
        kind = types.Array(
            self.type.dtype, self.rank, "A" if self.rank else "C", aligned=not self.rank
        )
        address = builder.ptrtoint(place, INT64)
        return kind, build_array(context, builder, kind, address, shape, strides=strides)


def _laid_out(context: Any, builder: Any, kind: Any, value: Any) -> tuple[Any, Any, Any]:
    """Where the first of some records lies, and their dimensions and strides."""
    if isinstance(kind, RecordType):
        value = spilled(context, builder, kind, value)
    if not isinstance(kind, types.Array):
        return value, [], []
    records = context.make_array(kind)(context, builder, value)
    pair = records.shape, records.strides
    return records.data, *(cgutils.unpack_tuple(builder, each, kind.ndim) for each in pair)


def _fields(record: Any, rank: int, offset: int = 0, axes: Any = ()) -> Any:
    """Records with a `_Field` for each array of numbers."""
    found, dtype = {}, as_dtype(record)
    if not record.fields:
        raise refusal("a record has no fields; drop it, or give it one")
    for name in dtype.names:
        kind, own = record.typeof(name), list(axes)
        if isinstance(kind, types.NestedArray):
            own += zip(kind.shape, kind.strides, strict=True)
            kind = kind.dtype
        start = offset + record.offset(name)
        is_record = isinstance(kind, types.Record)
        found[name] = (
            _fields(kind, rank, start, own) if is_record else _Field(kind, rank, start, own)
        )
    return Records(dtype, found)


def _given(path: str, kind: Any, is_static: bool) -> Any:
    """The structure of an argument, with a `_Given` for each value that calls bring."""
    if isinstance(kind, types.Literal) and (is_static or isinstance(kind, types.StringLiteral)):
        return Fixed(path, kind.literal_value)
    kind = types.unliteral(kind)
    if isinstance(kind, types.NoneType):
        return Fixed(path, None) if is_static else None
    if is_static:
        raise refusal(f"{path} is static, and its value is not known here; give a constant")
    if isinstance(kind, types.BaseTuple):
        made = getattr(kind, "instance_class", None)
        names = [f".{n}" for n in kind.fields] if made else [f"[{n}]" for n in range(len(kind))]
        pairs = zip(names, kind, strict=True)
        parts = [_given(path + name, part, False) for name, part in pairs]
        return made(*parts) if made else tuple(parts)
    item = kind.dtype if isinstance(kind, types.Array) else kind
    if isinstance(item, types.Record | RecordType):
        return _fields(getattr(item, "record", item), getattr(kind, "ndim", 0))
    if not isinstance(item, _NUMBERS) or item == types.float16:
        raise refusal(f"{path} is {kind}; arguments of calls in @njit functions may be {_TAKEN}")
    return _Given(kind)


class _Wanted:
    """A result: its number, dtype and rank."""

    def __init__(self, number: int, dtype: Any, rank: int) -> None:
        self.number, self.dtype, self.rank = number, dtype, rank
        item = from_dtype(dtype)
        self.type = types.Array(item, rank, "C") if rank else item

    def __bool__(self) -> bool:
        raise refusal(
            "a function that is called in an @njit function gives results of the same types each "
            "time; this one gives None, or one of several texts: give a number there, such as nan"
        )

    __int__ = __bool__


def _result_type(title: str, part: Any) -> Any:
    """The type of a structure with a `_Wanted` for each result."""
    if part is None:
        return types.none
    if isinstance(part, _Wanted):
        return part.type
    if isinstance(part, Records):
        record, rank = from_dtype(part.dtype), _rank_of(part)
        return types.Array(record, rank, "C") if rank else RecordType(record)
    if isinstance(part, tuple):
        inner = [_result_type(title, item) for item in part]
        return types.BaseTuple.from_types(inner, type(part))
    message = (
        f"{title} gives {describe(part)}; results of calls in @njit functions may be arrays, "
        f"numbers, None, and tuples and named tuples of these"
    )
    raise refusal(message)


def _rank_of(records: Any) -> int:
    """Of an array of records with a `_Wanted` for each array of numbers; 0 for a single one."""
    name = records.dtype.names[0]
    first = records[name]
    inner = _rank_of(first) if isinstance(first, Records) else first.rank
    return int(inner - records.dtype[name].ndim)


def _check_out(part: Any, kind: Any, path: str) -> None:
    """Refuse types that a gradient cannot be written to."""
    if isinstance(part, tuple):
        if not isinstance(kind, types.BaseTuple) or len(kind) != len(part):
            raise refusal(f"{path} is {kind}; give a tuple of {len(part)} arrays")
        for k, (item, own) in enumerate(zip(part, kind, strict=True)):
            _check_out(item, own, f"{path}[{k}]")
        return
    want = _result_type(path, part)
    if not isinstance(want, types.Array) or not want.ndim:
        what = "a record" if isinstance(want, RecordType) else "a number"
        raise refusal(f"{path}: the gradient there is {what}; out= is for arrays")
    if not isinstance(kind, types.Array) or kind.copy(readonly=False) != want or not kind.mutable:
        raise refusal(f"{path} is {kind}; give {want}, which may be written to")


def _specs(title: str, result: Any) -> list[tuple[Any, int]]:
    """Dtype and rank of each result of a trace, or of an array like each.

    Raises
    ------
    TypingError
        For what compiled code has no type for.
    """
    found = []
    for leaf in leaves(result):
        if isinstance(leaf, np.ndarray):
            found.append((leaf.dtype, leaf.ndim))
            continue
        if is_text(leaf) or not isinstance(leaf, Tensor) or leaf.spec.kind != DATA:
            what = "a text" if is_text(leaf) else "a TensorArray"
            raise refusal(f"{title} gives {what}, which a call in an @njit function cannot give")
        if leaf.ndim is None or leaf.dtype.kind not in "biufc" or leaf.dtype == np.float16:
            why = "whose rank is not known" if leaf.ndim is None else "which Numba does not have"
            raise refusal(f"{title} gives {leaf.spec}, {why}; reshape or cast it")
        found.append((leaf.dtype, leaf.ndim))
    return found


def _described(spec: Any) -> str:
    dtype, rank = spec
    return f"{dtype} of rank {rank}" if rank else str(dtype)


# Memory that tells of changes.


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


@functools.cache
def _version_offset() -> int | None:
    """Where a dict has a word that is another one after each change; None where it has none."""
    sample: dict[str, int] = {"a": 1}
    place, seen = HEAD + 8, set()
    changes = (lambda: None, lambda: sample.update(a=2), lambda: sample.update(b=3), sample.popitem)
    for change in changes:
        change()
        seen.add(_word(id(sample) + place))
    return place if len(seen) == len(changes) and sample == {"a": 2} else None


@functools.cache
def _attribute_offset(name: str) -> int | None:
    """Where a function has the address of its code or defaults; None where that is not known."""
    if name not in ("__code__", "__defaults__"):  # others may change what they hold
        return None

    def sample(_: Any = None) -> None:
        pass

    wanted = id(getattr(sample, name))
    places = range(HEAD, type(sample).__basicsize__, 8)
    found = [place for place in places if _word(id(sample) + place) == wanted]
    return found[0] if len(found) == 1 else None


class _Sample:
    """A class like those of users."""


@functools.cache
def _attribute_words() -> tuple[int, int] | None:
    """Where an object has the address of its variables, and a class a word of its own version.

    None where these do not tell of all changes.
    """
    size: Any = type.__basicsize__
    places = range(HEAD, size, 8)
    seen: list[dict[int, int]] = []
    kind: Any = type("Sample", (_Sample,), {"a": 1})
    sample, dict_offset = kind(), _version_offset()
    for change in (lambda: None, lambda: setattr(kind, "a", 2), lambda: setattr(kind, "b", 3)):
        change()
        _ = kind.a, sample.a  # a version is made by a look
        seen.append({place: _word(id(kind) + place) for place in places})
    versions = [p for p in places if len({0, *(each[p] for each in seen)}) == len(seen) + 1]
    variables = [p for p in _VARIABLES if _word(id(sample) + p) == id(sample.__dict__)]
    if dict_offset is None or len(versions) != 1 or len(variables) != 1:
        return None
    words = set()
    for number in range(_OFTEN):  # by which the interpreter has short ways for it
        sample.own = number
        words.add(_word(id(sample.__dict__) + dict_offset))
    return (variables[0], versions[0]) if len(words) == _OFTEN else None


#: Where CPython 3.11 and later may have the address of an object's variables.
_VARIABLES = (-32, -24)
#: How often a piece of code runs until the interpreter has found its short ways, and more.
_OFTEN = 40


def _version_word(kind: Any) -> int | None:
    """The address of a word that changes with a class; None where it may not tell."""
    words = _attribute_words()
    if words is None or not isinstance(kind, type):
        return None
    _ = kind.__init__  # type: ignore[misc] # a version is made by a look
    version = id(kind) + words[1]
    return version if _word(version) & 0xFFFFFFFF else None


@functools.cache
def _are_slots_known() -> bool:
    """Whether `_slot_offset` tells where slots are."""

    class Sample:
        __slots__ = ("a", "b")
        a: Any
        b: Any

    sample = Sample()
    sample.a, sample.b = object(), object()
    places = [id(sample) + _slot_offset(vars(Sample)[name]) for name in "ab"]
    return list(map(_word, places)) == [id(sample.a), id(sample.b)]


def _slot_offset(member: Any) -> int:
    """Where an object has what a slot holds: the offset in the description of the member."""
    return _word(_word(id(member) + HEAD + 3 * 8) + 2 * 8)


def _words_of_attribute(owner: Any, name: str) -> tuple[list[int], list[Any]] | None:
    """Addresses of words that change with an attribute, and what must live with them.

    None where words may not tell.
    """
    kind, words = type(owner), _attribute_words()
    version, offset = _version_word(kind), _version_offset()
    plain = kind.__getattribute__ in (object.__getattribute__, tuple.__getattribute__)
    if words is None or version is None or offset is None or not plain:
        return None
    found, held = [id(owner) + _KIND, version], [owner, kind]
    of_class = next((vars(k)[name] for k in kind.__mro__ if name in vars(k)), None)
    if isinstance(of_class, MemberDescriptorType) and _are_slots_known():
        place = id(owner) + _slot_offset(of_class)
        value = of_class.__get__(owner)  # its address may not become that of another value
        return ([*found, place], [*held, value]) if _word(place) == id(value) else None
    is_data = hasattr(of_class, "__set__") or hasattr(of_class, "__delete__")
    if isinstance(of_class, _TUPLE_GETTER):
        return found, held
    has_get = hasattr(of_class, "__get__") and not isinstance(of_class, FunctionType)
    if not kind.__dictoffset__:
        return None if has_get or is_data else (found, held)
    variables = owner.__dict__ if kind.__dictoffset__ == _Sample.__dictoffset__ else None
    if type(variables) is not dict or is_data or (has_get and name not in variables):
        return None
    place = id(owner) + words[0]
    if _word(place) != id(variables):
        return None
    return [*found, place, id(variables) + offset], [*held, variables]


#: Attributes of named tuples.
_TUPLE_GETTER = type(namedtuple("Sample", "a").a)  # type: ignore[attr-defined]
#: Where an object has the address of its class.
_KIND = HEAD - 8
#: Where a list has the number of its items, and their address.
_LIST_SIZE, _LIST_ITEMS = HEAD, HEAD + 8


@functools.cache
def _are_lists_known() -> bool:
    """Whether lists have their items where they are looked for."""
    sample = [object(), object()]
    items = _word(id(sample) + _LIST_ITEMS)
    sizes = [_word(id(sample) + _LIST_SIZE), len(sample)]
    return sizes[0] == sizes[1] and [_word(items + 8 * k) for k in range(2)] == list(
        map(id, sample)
    )


def _words_of_list(owner: Any, key: int | None) -> tuple[list[tuple[int, int]], list[Any]] | None:
    """Addresses and words that change with an item of a list, or all, and what must live with them.

    The first of the words are those that tell whether there are such items.
    """
    if type(owner) is not list or not _are_lists_known():
        return None
    place, before = id(owner) + _LIST_ITEMS, _word(id(owner) + _LIST_ITEMS)
    items = tuple(owner) if key is None else (owner[key],)
    size = len(owner)
    if _word(place) != before or len(items) > WATCHED_ITEMS or (key is None and len(items) != size):
        return None
    first = 0 if key is None else range(size)[key]
    words = [(place, before), (id(owner) + _LIST_SIZE, size)]
    words += [(before + 8 * (first + k), id(item)) for k, item in enumerate(items)]
    return words, [owner, *items]


class _Watched(NamedTuple):
    """Words that change with what a trace read.

    Attributes
    ----------
    free, locked : list of tuple of int
        Addresses and words; the latter are looked at with the interpreter's lock.
    held : list
        What has to live as long as somebody looks.
    """

    free: list[tuple[int, int]]
    locked: list[tuple[int, int]]
    held: list[Any]


def _watched(places: Any, owners: Any) -> _Watched | None:
    """Words that change with places that a trace read.

    Parameters
    ----------
    places : list of (str, object)
        See `nbta.frontend.outside.Outside`.
    owners : sequence
        Those of the places that have them by texts.

    Returns
    -------
    _Watched or None
        None where some places have no such words.
    """
    free: list[int] = []
    found = _Watched([], [], [])
    by_text = iter(owners)
    for kind, place in places:
        owner = next(by_text) if kind in BY_TEXT else _owner(kind, place)
        if owner is None:
            return None
        found.held.append(owner)
        if kind in ("item", "whole") and type(owner) is not dict:
            of_list = _words_of_list(owner, place[1] if kind == "item" else None)
            if of_list is None:
                return None
            found.locked.extend(of_list[0])
            found.held.extend(of_list[1])
            continue
        words = _words_of(kind, place, owner)
        if words is None:
            return None
        free += words[0]
        found.held.extend(words[1])
    found.free.extend((address, _word(address)) for address in free)
    return found


def _words_of(kind: str, place: Any, owner: Any) -> tuple[list[int], list[Any]] | None:
    """Addresses of words that change with a place, and what must live with them; else None."""
    if kind == "attribute":
        return _words_of_attribute(owner, place[1])
    if kind == "items" and isinstance(owner, tuple):
        return [], []  # of which the place itself tells
    if kind == "member":
        version = _version_word(owner)
        return None if version is None else ([version], [])
    if kind in ("dict", "items", "whole"):
        offset = _version_offset() if type(owner) is dict else None
    elif kind == "class":
        offset = _KIND
    else:
        offset = HEAD if kind == "cell" else _attribute_offset(kind)
    return None if offset is None else ([id(owner) + offset], [])


def _owner(kind: str, place: Any) -> Any:
    """The object that holds a place; None where it is gone. See `nbta.frontend.outside.Outside`."""
    if kind == "dict":
        return place
    if kind != "cell":
        return place()
    function = place[0]()
    return function and function.__closure__[place[1]]


# Programs for lengths.


class _Record:
    """A program and the lengths that it is for, as compiled code finds it.

    Parameters
    ----------
    entry : Entry
    trace : object
        The graph; see `nbta.api.tracing.Function.bound`.
    executable : Executable
    bounds : list of (int, int)
        For each condition the least number, and how far up it may go from there.
    watched : int
        How many words change with what the trace read.
    plan : ItemPlan, optional
        For a program that computes an item of a batch.
    """

    def __init__(
        self,
        entry: Entry,
        trace: Any,
        executable: Executable,
        bounds: Any,
        watched: int,
        plan: ItemPlan | None = None,
    ) -> None:
        self._entry, self.trace, self.executable, self._plan = entry, trace, executable, plan
        generated = executable.generated
        #: Results that the program has for the call, or for the items of one.
        self._results = plan.results if plan else entry.count
        outputs = [] if plan else generated.outputs[: entry.count]
        axes = [word for output in outputs for word in output.dimensions or ()]
        outside = generated.arguments - len(entry.inputs)
        self.slots = np.zeros((WORKSPACES, rt.SLOT_BYTES // 8), np.int64)
        self._guards = np.zeros((watched + outside, 2), np.int64)
        self._arrays = np.zeros(outside, np.int64)
        sources, hints = plan.dimensions if plan else self._dimensions()
        self._tables = {
            rt.SLOTS: self.slots,
            rt.GUARD: self._guards,
            rt.ARRAYS: self._arrays,
            rt.BOUNDS: np.array(bounds, np.int64),
            rt.SOURCES: np.array(sources, np.int64),
            rt.HINTS: np.array(hints, np.int64),
            rt.BUFFERS: np.array([-1 if o.word is None else o.word for o in outputs], np.int64),
            rt.LENGTHS: np.array(axes, np.int64),
        }
        self.words = np.zeros(rt.RECORD_WORDS, np.int64)
        for word, table in self._tables.items():
            self.words[word] = table.ctypes.data
        self.words[rt.PROGRAM], self.words[rt.PLACE] = executable.address, generated.inputs
        if plan:
            self.words[rt.PROGRAM] = native_batches.address()
            self.words[rt.PLACE] = native_batches.TABLE
        self.words[rt.OUTSIDE] = outside
        self._hidden: tuple[Any, ...] = ()
        self._before: list[Any] = []  # arrays from outside that a thread may still be at work on
        self._workspaces: dict[int, _Workspace] = {}

    @property
    def address(self) -> int:
        """Of its words."""
        return self.words.ctypes.data

    def _dimensions(self) -> tuple[list[int], list[int]]:
        """For each dimension of a result its condition, or -1, and the number if that is known."""
        places: dict[Any, int] = {}
        inputs, place = iter(self.trace.inputs), 0
        for given in self._entry.given:
            if not given.is_truth:
                for axis, n in enumerate(next(inputs).spec.shape):
                    if n is not None and type(n) is not int:
                        places.setdefault(n, place + axis)
            place += given.conditions
        found = [n for leaf in leaves(self.trace.result) for n in leaf.spec.shape]
        hints = [n if type(n) is int else 0 for n in found]
        return [places.get(n, -1) for n in found], hints

    def refresh(self, arrays: Any) -> bool:
        """Whether it is for what is outside now; compiled code counts on that from then on."""
        watched = _watched_of(self.trace, arrays)
        if watched is None:
            return False
        hidden = self.trace.looking.now(arrays)
        # Another thread may have put something else in a place before its word was read.
        again = _watched_of(self.trace, arrays)
        if hidden is None or again is None or again[:2] != watched[:2]:
            return False
        # Arrays may be given another dtype in place.
        kinds = [id(array) + HEAD + ARRAY_DTYPE for array in hidden]
        free = [*watched.free, *((address, _word(address)) for address in kinds)]
        guards = free + watched.locked
        if len(guards) > len(self._guards):
            return False
        self._before = [*self._before, self._hidden] if self.slots[:, rt.BUSY].sum() > 1 else []
        self._hidden = *hidden, *watched.held
        self._arrays[:] = list(map(id, hidden))
        self._guards[: len(guards)] = np.array(guards, np.int64).reshape(-1, 2)
        self.words[rt.GUARDS], self.words[rt.LOCKED] = len(free), len(watched.locked)
        return True

    def fill(self, slot: int) -> None:
        """Give a slot a workspace."""
        number = (slot - self.slots.ctypes.data) // rt.SLOT_BYTES
        generated = self.executable.generated
        work = self._workspaces[number] = _Workspace(generated, self.slots[number])
        place = generated.inputs + generated.arguments + self._results
        work.others = [np.empty((), o.dtype) for o in generated.outputs[self._results :]]
        for k, array in enumerate(work.others):
            work.words[place + k] = id(array)
        address = work.address
        if self._plan:
            loops = int(self._entry.words[rt.LOOPS])
            work.tables = self._plan.table(self.executable, loops, address)
            address = work.tables[0].ctypes.data
        self.slots[number, rt.WORDS] = address

    def lighten(self, slot: int) -> None:
        """Give back the buffers of a slot's workspace, which are too large to keep."""
        number = (slot - self.slots.ctypes.data) // rt.SLOT_BYTES
        self._workspaces[number].clean()
        self.slots[number, rt.CARE] = 0


class _Workspace(Workspace):
    """A workspace of calls from compiled code.

    Attributes
    ----------
    others : list of ndarray
        For results that nobody takes.
    tables : list of ndarray
        By which a batch uses it.
    """

    others: list[Any]
    tables: list[Any]

    def __init__(self, generated: Any, slot: Any) -> None:
        super().__init__(generated)
        self._slot = slot

    def _grow(self, word: int, nbytes: int, kept: int = 0) -> int:
        status = super()._grow(word, nbytes, kept)
        if self.held() > SAVED_BUFFERS:
            self._slot[rt.CARE] = 1
        return status


class Entry:
    """A function for some types of arguments.

    Parameters
    ----------
    owner : NativeFunction
    args : tuple of numba type
        By position.
    kwargs : dict of numba type
        By name.

    Attributes
    ----------
    owner : NativeFunction
    args, kwargs : tuple
        Types of arguments by position, and names and types of those by name.
    form : str
        All that the code of a caller counts on.
    type : numba type
        Of the result.
    asked : int
        How often compiled code asked Python.

    Raises
    ------
    TypingError
        For arguments and results that compiled code cannot have, and with what a trace raises.
    """

    def __init__(self, owner: NativeFunction, args: Any, kwargs: Any) -> None:
        self.owner, self._function = owner, owner.function
        self.args, self.kwargs = tuple(args), tuple(kwargs.items())
        self._title = self._function._title
        #: Whether Python computes all results, as for a batch on threads of its own.
        self._is_batch = isinstance(self._function, derivatives.Batched)
        static = (self._function.item if self._is_batch else self._function)._static
        numbers, names = (static.numbers, static.names) if static else ((), ())
        positional = [_given(f"args[{k}]", a, k in numbers) for k, a in enumerate(args)]
        named = {k: _given(k, kwargs[k], k in names) for k in sorted(kwargs, key=repr)}
        self.structure = tuple(positional), named
        self.given = [leaf for leaf in leaves(self.structure) if isinstance(leaf, _Given)]
        #: Those that are inputs of programs.
        self.inputs = [given for given in self.given if not given.is_truth]
        self._lock = threading.RLock()
        self._records: list[_Record] = []
        #: By address; those that are found no more stay, as a thread may be at work with them.
        self._all: dict[int, _Record] = {}
        self._answers: dict[int, Any] = {}
        self.asked = 0
        result, sample = self._sample_result()
        self._specs = _specs(self._title, result)
        self._layout = layout(result)
        #: How many results programs have, with those that calls do not give.
        self.count = len(self._specs)
        self.wanted = [_Wanted(k, *spec) for k, spec in enumerate(self._specs)]
        with lists_as_arrays():
            self.result = _packed(result, self.wanted)
        #: What ``out=`` of a call may be for.
        self.gradient = None
        if not self._is_batch and self._function._fills:
            self.gradient = self.result[1]
        if not self._is_batch and self._function._pick is not None:
            self.result = self._function._pick(self.result)
        self.type = _result_type(self._title, self.result)
        self.conditions = sum(given.conditions for given in self.given)
        self.dimensions = sum(wanted.rank for wanted in self.wanted)
        parts = [self.structure, self.result, tuple(self.wanted)]
        #: All that the code of a caller counts on.
        self.form = repr([_described_form(part) for part in parts])
        self._callback = _ASK(self.answer)
        self.words = _new_words(self._callback)
        self.words[rt.GIVEN], self.words[rt.WANTED] = len(self.inputs), self.count
        self.words[rt.CONDITIONS] = self.conditions
        self.words[rt.RESULTS], self.words[rt.LOOPS] = self.dimensions, owner.loops.ctypes.data
        self.words[rt.ANY] = numba_type(FIRST_CLASS).loops.ctypes.data
        if sample is not None:
            self._find(sample)

    def _pack(self, values: Any) -> Any:
        """Arguments and keyword arguments, of values that a call brings."""
        values = iter(values)
        return map_leaves(
            lambda leaf: next(values) if isinstance(leaf, _Given) else unfixed(leaf),
            self.structure,
        )

    def _sample_result(self) -> Any:
        """A result for arguments of the types, and such arguments where a graph is for these.

        Where Python goes by lengths, it is of a graph that a call from Python made, or of one for
        the first lengths that give any.
        """
        error: Any = None
        for length in _SAMPLES:
            sample = self._pack([given.sample(length) for given in self.given])
            try:
                if self._is_batch:
                    args, kwargs = sample
                    return taken_apart(self._function._example(*args, **kwargs)), None
                trace = self._function.bound(sample)[0]
                # Hardly a call brings the whole numbers of a sample.
                return trace.result, None if trace.lengths.values else sample
            except Exception as raised:
                error = error or raised
            if self._is_batch:
                break
            known, goes_by_lengths = self._function.trace_like(sample)
            if known is not None:
                return known.result, None
            if not goes_by_lengths:
                break
        name = "" if isinstance(error, NbtaError) else f"{type(error).__name__}: "
        notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
        raise refusal(f"{name}{error}{notes}") from error

    # Programs.

    def _find(self, structure: Any) -> bool:
        """Put the program for some arguments first; whether there is one."""
        if self._function._compiled is False:
            return False
        plan = self._planned(structure)
        if plan is not None and not (plan.is_native and plan.specs == self._specs):
            return False
        if plan is None:
            trace, arrays = self._function.bound(structure)
            self._check(trace)
        else:
            trace, arrays = plan.trace, plan.inputs
        results = self.count if plan is None else plan.results
        runner = trace.runner
        watched = _watched_of(trace, arrays[: trace.arguments])
        by_python = trace.apart or trace._changes or runner.generators
        if by_python or watched is None or self._is_one_of_many(trace):
            return False
        compiled = runner.prepared(arrays, True)
        if isinstance(compiled, str):
            return False
        executable = compiled.build()
        outputs = executable.generated.outputs
        others = outputs[results:]
        if executable.generated.calls or any(o.dimensions is not None for o in others):
            return False
        with self._lock:
            alike = (r for r in self._records if r.executable is executable and r.trace is trace)
            record = next(alike, None)
            if record is None:
                count = len(watched.free) + len(watched.locked)
                bounds = self._bounds(trace, structure) if plan is None else plan.bounds()
                record = _Record(self, trace, executable, bounds, count, plan)
            if not record.refresh(arrays[: trace.arguments]):
                return False
            self._link([record, *(r for r in self._records if r is not record)])
        return True

    def _is_one_of_many(self, trace: Any) -> bool:
        """Whether there are enough programs for values of whole numbers: others take Python."""
        if not trace.lengths.values or any(r.trace is trace for r in self._records):
            return False
        return sum(bool(r.trace.lengths.values) for r in self._records) >= MANY_LENGTHS

    def _planned(self, structure: Any) -> ItemPlan | None:
        """The items of a call; None where it has none.

        Raises
        ------
        Exception
            What the call from Python raises before it has computed an item.
        """
        if not self._is_batch:
            return None
        return ItemPlan(self._function, taken_apart(structure), leaves(self.structure))

    def _check(self, trace: Any) -> None:
        """Refuse a graph whose results have other types than those of the first."""
        specs = _specs(self._title, trace.result)
        if specs != self._specs or layout(trace.result) != self._layout:
            raise self._other_types(specs)

    def _other_types(self, specs: Any) -> Exception:
        have, told = (", ".join(map(_described, pairs)) for pairs in (specs, self._specs))
        message = (
            f"{self._title} gives {have} for these arguments, and the @njit function was compiled "
            f"for {told}; return results of the same types for all lengths"
        )
        return invalid("result_types", message)

    def _bounds(self, trace: Any, structure: Any) -> list[tuple[int, int]]:
        """The bounds of all conditions for a graph, as a call with some arguments came to it."""
        found: list[tuple[int, int]] = []
        values = leaves(taken_apart(self._function.with_static(structure)))
        looks = {(look.leaf, look.axis) for look in trace.lengths.known if hasattr(look, "axis")}
        numbers = trace.lengths.values
        is_exact = any(isinstance(value, np.ndarray) and not value.size for value in values)
        for place, (leaf, value) in enumerate(zip(leaves(self.structure), values, strict=True)):
            if not isinstance(leaf, _Given):
                continue
            for axis, n in enumerate(np.shape(value)):
                is_fixed = is_exact or n == 1 or (place, axis) in looks
                found.append((n, 0) if is_fixed else (2, ANY_LENGTH))
            if leaf.is_truth:
                found.append((int(value), 0))
            if leaf.is_whole:
                found.append((bits_of(value), 0) if place in numbers else ANY_NUMBER)
            if leaf.may_lie_apart:
                found.append((int(lies_apart(value)), 0))
        return found

    def _link(self, records: list[_Record]) -> None:
        """Let compiled code find records, in an order."""
        following = [*(record.address for record in records), 0][1:]
        for record, address in zip(records, following, strict=True):
            record.words[rt.NEXT] = address
        self.words[rt.RECORDS] = records[0].address if records else 0
        self._all.update({record.address: record for record in records})
        self._records = records

    def _become_careful(self, structure: Any) -> None:
        """Drop programs whose products do not look at zeros; one has given a NaN."""
        plan = self._planned(structure)
        trace = self._function.bound(structure)[0] if plan is None else plan.trace
        trace.runner._become_careful()
        with self._lock:
            plain = {r for r in self._records if r.executable.generated.is_plain}
            self._link([r for r in self._records if r not in plain or r.trace is not trace])

    # What compiled code asks.

    def answer(self, request: int, record: int, reason: int) -> int:
        """Answer compiled code that cannot go on; see `nbta.runtime.native_calls`."""
        words = (ctypes.c_int64 * rt.FIRST).from_address(request)
        answer = rt.AGAIN
        self.asked += 1
        try:
            words[rt.ANSWER] = answer = self._answer(request, record, reason, words)
        except BaseException as error:
            leaving(error)
            words[rt.ERROR] = kept.keep(error)
            self.owner.keep(error)
            words[rt.ANSWER] = rt.RAISE
        return answer

    def _answer(self, request: int, record: int, reason: int, words: Any) -> int:
        if reason == rt.TAKEN:
            self._answers.pop(request, None)
            return OK
        if reason == INTERRUPTED:
            raise _raised(words)
        if reason in (rt.LARGE, rt.EMPTY):
            found = self._all[record]
            (found.lighten if reason == rt.LARGE else found.fill)(words[rt.SLOT])
            return rt.AGAIN
        structure = self._read(request)
        words[rt.ATTEMPTS] += 1
        if reason == NOT_A_NUMBER:
            self._become_careful(structure)
        may_find = reason in (rt.NEW, rt.CHANGED, NOT_A_NUMBER)
        if may_find and words[rt.ATTEMPTS] < _ATTEMPTS and self._find(structure):
            return rt.AGAIN
        self._compute(request, structure)
        return rt.ELSEWHERE

    def _read(self, request: int) -> Any:
        """The arguments of a call."""
        arrays = request + 8 * rt.FIRST
        place = arrays + 8 * rt.ARRAY * (len(self.inputs) + self.count)
        values = []
        for given in self.given:
            numbers = list((ctypes.c_int64 * given.conditions).from_address(place))
            place += 8 * given.conditions
            values.append(given.value(0 if given.is_truth else _word(arrays), numbers))
            arrays += 0 if given.is_truth else 8 * rt.ARRAY
        return self._pack(values)

    def _compute(self, request: int, structure: Any) -> None:
        """Let Python compute the results of a call, and say where they are."""
        args, kwargs = structure
        with lists_as_arrays():
            result = taken_apart(self._function(*args, **kwargs))
        kinds = [(np.asarray(v).dtype, np.ndim(v)) for v in leaves(result)]
        wanted = leaves(self.result)
        if kinds != [(each.dtype, each.rank) for each in wanted]:
            raise self._other_types(kinds)
        found: list[Any] = [np.zeros((0,) * each.rank, each.dtype) for each in self.wanted]
        for each, value in zip(wanted, leaves(result), strict=True):
            found[each.number] = np.array(value, order="C")
        arrays = request + 8 * (rt.FIRST + rt.ARRAY * len(self.inputs))
        place = arrays + 8 * (rt.ARRAY * self.count + self.conditions)
        for array in found:
            ctypes.c_int64.from_address(arrays).value = array.ctypes.data
            arrays += 8 * rt.ARRAY
            for n in array.shape:
                ctypes.c_int64.from_address(place).value = n
                place += 8
        self._answers[request] = found


def _new_words(callback: Any) -> Any:
    """The words of an entry that has no programs yet, and asks Python by a callback."""
    words = np.zeros(rt.ENTRY, np.int64)
    words[rt.BEGIN : rt.END + 1] = [rt.address(name) for name in rt.ROUTINES]
    words[rt.LAST_WORDS] = ctypes.addressof(rt.LAST_WORDS_TEXT)
    words[rt.ASK] = ctypes.cast(callback, ctypes.c_void_p).value
    return words


def _described_form(part: Any) -> Any:
    """A part of what a call gives or takes, as a text that is the same in all processes."""
    if isinstance(part, tuple):
        made = type(part)
        names = made.__module__, made.__qualname__, getattr(made, "_fields", None)
        return names, tuple(map(_described_form, part))
    if isinstance(part, dict):
        return tuple((key, _described_form(part[key])) for key in part)
    if isinstance(part, _Given):
        return str(part.type)
    if isinstance(part, _Wanted):
        return part.number, str(part.dtype), part.rank
    if isinstance(part, Records):
        return str(part.dtype), tuple(map(_described_form, leaves(part)))
    return repr(part)


def _packed(like: Any, values: Any) -> Any:
    """A structure with other values."""
    values = iter(values)
    return map_leaves(lambda _: next(values), like)


def _watched_of(trace: Any, arrays: Any) -> _Watched | None:
    """As `_watched`, for all that a trace read; for some arrays among the arguments."""
    places = trace.looking.places
    if places is None:
        return None
    owners = trace.looking.owners(arrays) if any(kind in BY_TEXT for kind, _ in places) else ()
    return None if owners is None else _watched(places, owners)


def _raised(words: Any) -> BaseException:
    """The exception that a signal's handler raised in a thread, which took it."""
    kind, value, _ = (_owned(words[rt.RAISED + k]) for k in range(3))
    if isinstance(value, BaseException):
        return value
    if kind is None:
        return KeyboardInterrupt()
    return kind() if value is None else kind(value)


def _owned(address: int) -> Any:
    """The object of a reference that is given up."""
    if not address:
        return None
    found = ctypes.cast(address, ctypes.py_object).value
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(found))
    return found


# The type.


class NativeFunction(types.Callable):
    """The Numba type of one traced function.

    Parameters
    ----------
    function : Function

    Attributes
    ----------
    loops : ndarray
        How many parallel loops use it now.
    entries : list of Entry
        One for each types of arguments.
    made_of : tuple of (str, weakref), optional
        Of a derivative along directions which one it is, and of which function.
    symbols : dict
        Of callers that may be saved on the disk; see `nbta.api.cached_callers`.
    """

    #: Parallel loops say when they begin and end.
    used_in_loops = True

    def __init__(self, function: Any) -> None:
        self.function, self.loops = function, np.zeros(1, np.int64)
        self._signatures: dict[Any, Any] = {}
        self._by_types: dict[Any, Entry] = {}
        self.made_of: Any = None
        self.symbols: dict[str, Any] = {}
        self.entries: list[Entry] = []
        self._first_class: dict[Any, Any] = {}
        self._lock = threading.RLock()
        #: For each loop of a thread, the innermost last, whether it let go of the lock.
        self._begun: dict[int, list[int]] = {}
        self._error: BaseException | None = None
        self._callback = _TELL(self._tell)
        self.loop_words = _LoopWords(self._callback)
        super().__init__(f"nbta.{function!r}, number {next(_numbers)}")

    @property
    def key(self) -> Any:
        """Each is a type of its own."""
        return self.name

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """The signature of a call."""
        args = tuple(map(_without_none, args))
        kwargs = {name: _without_none(kind) for name, kind in dict(kws).items()}
        if any(isinstance(kind, types.Omitted) for kind in (*args, *kwargs.values())):
            return None
        key = tuple(args), tuple(kwargs.items())
        with self._lock:
            if key not in self._signatures:
                may_fill = getattr(self.function, "_fills", False)
                out = kwargs.get("out", types.none) if may_fill else types.none
                brought = {k: v for k, v in kwargs.items() if k != "out" or not may_fill}
                entry = self.entry(args, brought)
                fills = not isinstance(out, types.NoneType)
                if fills:
                    _check_out(entry.gradient, out, "out")
                kinds = [*map(types.unliteral, args), *map(types.unliteral, kwargs.values())]
                sig = signature(entry.type, *kinds)
                position = inspect.Parameter.POSITIONAL_ONLY
                parameters = [inspect.Parameter(f"_{k}", position) for k in range(len(args))]
                keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD  # Numba takes no others
                parameters += [inspect.Parameter(name, keyword) for name in kwargs]
                sig = sig.replace(pysig=inspect.Signature(parameters))
                lowered = functools.partial(_lower, entry, list(kwargs), fills)
                self._signatures[key] = sig
                made = functools.wraps(_lower)(lambda c, b, s, a: lowered(c, b, s, a))
                del made.__wrapped__
                cpu_target.target_context.insert_func_defn([(made, (self, sig.args), sig.args)])
        return self._signatures[key]

    def entry(self, args: Any, kwargs: Any) -> Entry:
        """The function for some types of arguments, by position and by name.

        Raises
        ------
        TypingError
            As `Entry`.
        """
        key = tuple(args), tuple(kwargs.items())
        with self._lock:
            if key not in self._by_types:
                self._by_types[key] = self._made(args, kwargs)
                self.entries.append(self._by_types[key])
            return self._by_types[key]

    def can_convert_to(self, context: Any, other: Any) -> Any:
        """How it becomes a first-class function, if it gives what that does; it is nothing else."""
        if not isinstance(other, types.FunctionType) or not other.is_precise():
            return None
        sig = other.signature
        try:
            given = self.get_call_type(context, sig.args, {}).return_type
        except NumbaError:
            return None
        found = context.can_convert(given, sig.return_type)
        return None if found is None or found > Conversion.safe else Conversion.safe

    def first_class(self, sig: Any) -> Any:
        """An ``@njit`` function that calls it, of which Numba has the address for a signature."""
        with self._lock:
            if sig not in self._first_class:
                names = ", ".join(f"a{k}" for k in range(len(sig.args)))
                named = {"function": self.function}
                self._first_class[sig] = njit(eval(f"lambda {names}: function({names})", named))
            return self._first_class[sig]

    def __reduce__(self) -> Any:
        return _type_again, (cached_callers.names_of(self),)

    def __deepcopy__(self, memo: Any) -> NativeFunction:
        return self  # numba.literal_unroll copies types

    def _made(self, args: Any, kwargs: Any) -> Entry:
        try:
            return Entry(self, args, kwargs)
        except NumbaError:
            raise
        except NbtaError as error:
            raise refusal(str(error)) from error

    def get_call_signatures(self) -> Any:
        """All signatures so far."""
        return list(self._signatures.values()), True

    def get_impl_key(self, sig: Any) -> Any:
        """By which the code of a call is found."""
        return self, sig.args

    # Parallel loops.

    def keep(self, error: BaseException) -> None:
        """Keep an error for the end of a parallel loop, if any: its threads drop theirs."""
        with self._lock:
            if self.loops[0] and self._error is None:
                self._error = error
            elif not self.loops[0] and self.function is not FIRST_CLASS:
                numba_type(FIRST_CLASS).keep(error)

    def _tell(self, what: int, held: int) -> int:
        """What compiled code says of a parallel loop; see `_enter`, `_leave` and `_report`."""
        thread = threading.get_ident()
        with self._lock:
            if what == _ENTER:
                self.loops[0] += 1
                self._begun.setdefault(thread, []).append(held)
            elif what == _LEAVE:
                self.loops[0] -= 1
                held = self._begun[thread].pop()
                if not self._begun[thread]:
                    del self._begun[thread]
                return held
            elif not self.loops[0] and self._error is not None:
                error, self._error = self._error, None
                return kept.keep(error)
        return 0


def _without_none(kind: Any) -> Any:
    """The type of what may be None: the caller's code raises an error where it is."""
    return kind.type if isinstance(kind, types.Optional) else kind


_numbers = itertools.count()


class _LoopWords:
    """What the code of a parallel loop finds: the address of what it tells of itself."""

    def __init__(self, callback: Any) -> None:
        address = ctypes.cast(callback, ctypes.c_void_p).value
        self.words = np.array([address], np.int64)


def _refuse(request: int, record: int, reason: int) -> int:
    """Answer a call of what is no more; see `nbta.api.cached_callers.Missing`."""
    words = (ctypes.c_int64 * rt.FIRST).from_address(request)
    words[rt.ERROR] = kept.keep(FailedPreconditionError(_MISSING))
    words[rt.ANSWER] = rt.RAISE
    return rt.RAISE


_MISSING = (
    "what Numba saved on the disk calls a function of nbta as it is no more: its types, its "
    "variable or nbta's version are others now; save the caller's file again, or delete its cache"
)
_REFUSE, _NOTHING = _ASK(_refuse), _TELL(lambda what, held: 0)
_NO_LOOPS = np.zeros(1, np.int64)


def _words_of_missing(is_call: bool) -> Any:
    if not is_call:
        return _LoopWords(_NOTHING).words
    words = _new_words(_REFUSE)
    words[rt.LOOPS] = words[rt.ANY] = _NO_LOOPS.ctypes.data
    return words


cached_callers.Missing.make = staticmethod(_words_of_missing)


def _type_again(names: Any) -> Any:
    """The type of a function in another process; one of nothing where there is none by a name."""
    try:
        return cached_callers.found(names)
    except Exception:
        return types.Opaque(f"nbta.{names}, number {next(_numbers)}")


def numba_type(function: Any) -> NativeFunction:
    """The Numba type of a function."""
    found = function.__dict__.get("_native")
    if found is None or found.function is not function:  # a wrapper takes all over
        found = function.__dict__["_native"] = NativeFunction(function)
    return found


@typeof_impl.register(Function)
@typeof_impl.register(derivatives.Batched)
def _typeof(function: Any, _: Any) -> NativeFunction:
    return numba_type(function)


def _refuse_address(function: Any) -> None:
    """Refuse what Numba asks for where Python passes a function as a first-class one.

    It would call the function by an address of C's, and drop its errors.
    """
    message = (
        f"{function._title} cannot become a first-class function on its way from Python; pass it "
        f"from an @njit function, or in a container or jitclass, or pass an @njit function with a "
        f'signature that calls it, as in numba.njit("f8(f8)")(lambda x: g(x))'
    )
    raise UnimplementedError(message)


for _kind in (Function, derivatives.Batched):
    setattr(_kind, "__wrapper_address__", _refuse_address)  # noqa: B010 - Numba's name


class FirstClass:
    """Stands for any function of nbta: parallel loops that call first-class functions tell it."""

    _title = "first-class functions"

    def __repr__(self) -> str:
        return self._title


FIRST_CLASS = FirstClass()
typeof_impl.register(FirstClass)(_typeof)
parallel_loops.FIRST_CLASS.append(numba_type(FIRST_CLASS))


@register_model(NativeFunction)
class _Model(models.OpaqueModel):
    pass


@imputils.lower_constant(NativeFunction)
def _constant(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.get_dummy_value()


@unbox(NativeFunction)
def _unbox(kind: Any, value: Any, c: Any) -> Any:
    return NativeValue(c.context.get_dummy_value())


@box(NativeFunction)
def _box(kind: Any, value: Any, c: Any) -> Any:
    found = c.context.add_dynamic_addr(c.builder, id(kind.function), info=str(kind))
    c.pyapi.incref(found)
    return found


# First-class functions, and others.


@imputils.lower_cast(NativeFunction, types.FunctionType)
def _become_first_class(context: Any, builder: Any, kind: Any, to: Any, value: Any) -> Any:
    dispatcher = kind.first_class(to.get_precise().signature)
    address = context.add_dynamic_addr(builder, id(dispatcher), info=str(kind))
    made = context.cast(builder, address, types.Dispatcher(dispatcher), to)
    found = cgutils.create_struct_proxy(to.get_precise())(context, builder, value=made)
    # Python gets the function itself back.
    found.py_addr = context.add_dynamic_addr(builder, id(kind.function), info=str(kind))
    return found._getvalue()


@imputils.lower_cast(NativeFunction, NativeFunction)
def _become_another(context: Any, builder: Any, kind: Any, to: Any, value: Any) -> Any:
    message = (
        "a container has one type for all its items, and each function of nbta has a type of its "
        "own; make the container for a first-class function type, as in "
        "List.empty_list(types.FunctionType(numba.float64(numba.float64)))"
    )
    raise refusal(message)


@imputils.lower_builtin(operator.is_, NativeFunction, NativeFunction)
def _is(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Whether functions are one: Numba's own answer is always no."""
    return cgutils.true_bit if sig.args[0] == sig.args[1] else cgutils.false_bit


# Parallel loops.

_ENTER, _LEAVE, _REPORT = range(3)
_save_thread = types.ExternalFunction("PyEval_SaveThread", types.intp())
_restore_thread = types.ExternalFunction("PyEval_RestoreThread", types.void(types.intp))


@intrinsic
def _teller(typingctx: Any, value: Any) -> Any:
    """The address of what a function is told of loops by."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        found = cached_callers.address(context, builder, value, None, value.loop_words)
        return builder.load(builder.inttoptr(found, INT64.as_pointer()))

    return types.int64(value), codegen


@register_jitable
def _tell(address: Any, what: Any, held: Any) -> Any:
    """Tell a function of a loop, whose iterations may have left an error of Python's."""
    place = room(24)
    python = hold_python()
    rt.take_error(place, place + 8, place + 16)
    found = call(address, (what, held))
    error = rt.words(place)
    rt.give_error(error[0], error[1], error[2])
    let_python_go(python)
    return found


@overload(parallel_loops.enter)
def _enter(value: Any) -> Any:
    """A loop begins: its threads may need the interpreter's lock, so nobody holds it meanwhile."""

    def begin(value: Any) -> Any:
        held = python_held()
        _tell(_teller(value), _ENTER, held)
        if held:
            _save_thread()

    return begin if isinstance(value, NativeFunction) else None


@overload(parallel_loops.leave)
def _leave(value: Any) -> Any:
    """A loop has ended."""

    def end(value: Any) -> Any:
        if _tell(_teller(value), _LEAVE, 0) != 0:
            _restore_thread(rt.thread_state())

    return end if isinstance(value, NativeFunction) else None


@overload(parallel_loops.report)
def _report(value: Any) -> Any:
    """Raise the first error of a loop, if there was any."""

    def raise_first(value: Any) -> Any:
        number = _tell(_teller(value), _REPORT, 0)
        if number != 0:
            python = hold_python()
            forget_python_error()  # this thread's own iterations may have left one
            let_python_go(python)
            raise_kept(number)

    return raise_first if isinstance(value, NativeFunction) else None


# Tuples of functions: each has a type of its own, so that an index or a loop's variable has none.


def _refuse_either(args: Any) -> None:
    """Refuse what may be any function of a tuple."""
    kinds = args[0] if isinstance(args[0], types.Tuple | types.LiteralList) else ()
    if any(isinstance(kind, NativeFunction) for kind in kinds):
        message = (
            "the functions in a tuple or a list are of several types; take one by an index that is "
            "a constant, or go over a tuple by literal_unroll (from numba import literal_unroll)"
        )
        raise refusal(message)


@infer
class _LoopOverTuple(AbstractTemplate):
    key = "getiter"

    def generic(self, args: Any, kws: Any) -> None:
        """Has no type, but an error."""
        _refuse_either(args)


@infer_global(operator.getitem)
class _ItemOfTuple(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> None:
        """Has no type, but an error."""
        if not isinstance(args[1], types.Literal | types.SliceType):
            _refuse_either(args)


# Derivatives along directions, for which there are no functions by name.


def function_of(kind: Any) -> Any:
    """The function of a type; None for a type of something else."""
    if isinstance(kind, types.Dispatcher):
        return kind.dispatcher
    return kind.function if isinstance(kind, NativeFunction) else None


@overload(derivatives.jvp)
def _jvp(f, primals, tangents):  # type: ignore[no-untyped-def] # as the lambdas
    if (function := function_of(f)) is None:
        return None
    traced = cached_callers.derived("jvp", function).function
    if isinstance(primals, types.BaseTuple):
        return lambda f, primals, tangents: traced(primals, tangents)
    return lambda f, primals, tangents: traced((primals,), (tangents,))


@overload(derivatives.hvp)
def _hvp(f, primals, tangents):  # type: ignore[no-untyped-def] # as the lambdas
    if (function := function_of(f)) is None:
        return None
    traced = cached_callers.derived("hvp", function).function
    if isinstance(primals, types.BaseTuple):
        return lambda f, primals, tangents: traced(primals, tangents)
    return lambda f, primals, tangents: traced((primals,), (tangents,))[0]


parallel_loops.CALLED_BEHIND.update(
    {
        derivatives.jvp: lambda kinds: [cached_callers.derived("jvp", function_of(kinds[0]))],
        derivatives.hvp: lambda kinds: [cached_callers.derived("hvp", function_of(kinds[0]))],
    }
)

# Code of a call.

#: What is wrong with arrays of ``out=``.
_FITS, _OTHER_SHAPE, _SHARED = 0, rt.OTHER_SHAPE, rt.SHARED


def _brought(part: Any, kind: Any, value: Any, context: Any, builder: Any) -> list[tuple[Any, Any]]:
    """The values in an argument that a call brings, in their order, with their types."""
    if isinstance(part, _Given):
        return [(kind, value)]
    if isinstance(part, Records):
        return [field.of(context, builder, kind, value) for field in leaves(part)]
    if not isinstance(part, tuple):
        return []
    items = cgutils.unpack_tuple(builder, value, len(kind))
    parts = zip(part, kind, items, strict=True)
    return [pair for part in parts for pair in _brought(*part, context, builder)]


def _raise_misfit(what: Any) -> Any:
    raise_misfit(what)


def _raise(number: Any) -> Any:
    raise_kept(number)


def _raise_memory(number: Any) -> Any:
    raise_memory()


def _in_c_order(array: Any) -> Any:
    return np.ascontiguousarray(array)


def _copied(array: Any) -> Any:
    return array.copy()


def _put(items: Any, source: Any) -> Any:
    """Copy items to others, which lie apart."""
    for place in np.ndindex(source.shape):
        items[place] = source[place]


class _Request:
    """A request on the stack of a user's function, in LLVM's code."""

    def __init__(self, context: Any, builder: Any, entry: Entry) -> None:
        self.context, self.builder, self.entry = context, builder, entry
        count = len(entry.inputs) + entry.count
        self._numbers = rt.FIRST + rt.ARRAY * count
        size = self._numbers + entry.conditions + entry.dimensions
        with builder.goto_entry_block():
            self._block = builder.alloca(ir.ArrayType(INT64, max(size, 1)))
            self._scalars = builder.alloca(ir.ArrayType(INT64, 2 * count + 1))
        self._block.align = self._scalars.align = 16
        self.address = builder.ptrtoint(self._block, INT64)
        #: Where arrays that are given lie: first and last address of each.
        self.ranges: list[tuple[Any, Any]] = []
        self.store(rt.ATTEMPTS, 0)
        self.store(rt.SLOT, 0)

    def place(self, word: int) -> Any:
        """The place of a word."""
        return self.builder.gep(self._block, [INT64(0), INT64(word)], inbounds=True)

    def store(self, word: int, value: Any) -> None:
        """Put a number into a word."""
        self.builder.store(INT64(value) if isinstance(value, int) else value, self.place(word))

    def load(self, word: int) -> Any:
        """The number in a word."""
        return self.builder.load(self.place(word))

    def _describe(self, number: int, data: Any, rank: int, first: int) -> None:
        """Fill what stands for an array."""
        start = rt.FIRST + rt.ARRAY * number
        if data is not None:
            self.store(start + rt.DATA, data)
        self.store(start + rt.RANK, rank)
        dimensions = self.builder.ptrtoint(self.place(first), INT64) if rank else INT64(0)
        self.store(start + rt.DIMENSIONS, dimensions)
        self.store(start + rt.FLAGS, ARRAY_READY)

    def scalar(self, number: int) -> Any:
        """The address of a place for a number."""
        place = self.builder.gep(self._scalars, [INT64(0), INT64(2 * number)], inbounds=True)
        return self.builder.ptrtoint(place, INT64)

    def give(self, values: Any) -> list[Any]:
        """Fill in what a call brings; places of the owners of copies that were made for that."""
        context, builder, made = self.context, self.builder, []
        place, number = self._numbers, 0
        for given, (kind, value) in zip(self.entry.given, values, strict=True):
            if given.is_truth:
                self.store(place, builder.zext(value, INT64))
                place += 1
                continue
            if given.rank or isinstance(kind, types.Array):
                array = context.make_array(kind)(context, builder, value)
                shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
                for axis, n in enumerate(shape):
                    self.store(place + axis, n)
                if given.may_lie_apart:
                    apart = self._lies_apart(array, shape, given.dtype.itemsize)
                    self.store(place + given.rank, builder.zext(apart, INT64))
                if kind.layout != "C" or not kind.aligned:
                    # An array that is not aligned is one of fields, and these lie apart.
                    whole = kind.copy(layout="C", readonly=kind.aligned and not kind.mutable)
                    moved = _in_c_order if kind.aligned else _copied
                    value = context.compile_internal(builder, moved, whole(kind), [value])
                    array = context.make_array(whole)(context, builder, value)
                    owner = cgutils.alloca_once_value(builder, array.meminfo)
                    builder.store(array.meminfo, owner)
                    made.append(owner)
                data = builder.ptrtoint(array.data, INT64)
                size = builder.mul(array.nitems, INT64(given.dtype.itemsize))
                self.ranges.append((data, builder.add(data, size)))
            else:
                data = self.scalar(number)
                model = context.data_model_manager[kind]
                item = model.as_data(builder, value)
                pointer = builder.inttoptr(data, item.type.as_pointer())
                builder.store(item, pointer)
            if given.is_whole:
                self.store(place, self._whole(given.dtype, data))
            self._describe(number, data, given.rank, place)
            place += given.conditions
            number += 1
        return made

    def _whole(self, dtype: Any, data: Any) -> Any:
        """The whole number at an address; of one above all int64 the bits."""
        kind = ir.IntType(8 * dtype.itemsize)
        found = self.builder.load(self.builder.inttoptr(data, kind.as_pointer()))
        if kind == INT64:
            return found
        widened = self.builder.zext if dtype.kind == "u" else self.builder.sext
        return widened(found, INT64)

    def _lies_apart(self, array: Any, shape: Any, itemsize: int) -> Any:
        """Whether items lie in another order than C's, as NumPy's flag has it."""
        builder, expected = self.builder, INT64(itemsize)
        strides = cgutils.unpack_tuple(builder, array.strides, len(shape))
        apart, is_empty = cgutils.false_bit, cgutils.false_bit
        for n, stride in reversed(list(zip(shape, strides, strict=True))):
            wrong = builder.icmp_signed("!=", stride, expected)
            wrong = builder.and_(wrong, builder.icmp_signed("!=", n, INT64(1)))
            apart = builder.or_(apart, wrong)
            is_empty = builder.or_(is_empty, builder.icmp_signed("==", n, INT64(0)))
            expected = builder.mul(expected, n)
        return builder.and_(apart, builder.not_(is_empty))

    def want(self) -> None:
        """Say where results go that are numbers, and where dimensions of others will stand."""
        first, before = self._numbers + self.entry.conditions, len(self.entry.inputs)
        for wanted in self.entry.wanted:
            number = before + wanted.number
            data = None if wanted.rank else self.scalar(number)
            self._describe(number, data, wanted.rank, first)
            first += wanted.rank

    def data(self, wanted: Any) -> int:
        """The word with the address of a result."""
        return rt.FIRST + rt.ARRAY * (len(self.entry.inputs) + wanted.number) + rt.DATA

    def shape(self, wanted: Any) -> list[Any]:
        """The dimensions of a result."""
        before = sum(each.rank for each in self.entry.wanted[: wanted.number])
        first = self._numbers + self.entry.conditions + before
        return [self.load(first + axis) for axis in range(wanted.rank)]


class _Call:
    """A call in a user's function, in LLVM's code."""

    def __init__(self, context: Any, builder: Any, entry: Entry, into: Any = None) -> None:
        self.context, self.builder, self.entry = context, builder, entry
        self._into = into or {}
        self._failed = cgutils.alloca_once_value(builder, cgutils.false_bit)
        call = entry.args, entry.kwargs, entry.form
        self._entry = cached_callers.address(context, builder, entry.owner, call, entry)
        self.request = _Request(context, builder, entry)
        self.arrays = [wanted for wanted in entry.wanted if wanted.rank]
        pointer = cgutils.voidptr_t
        self._owners = [cgutils.alloca_once(builder, pointer) for _ in self.arrays]

    @property
    def failed(self) -> Any:
        """Whether the results are none, as an error was raised that the caller may catch."""
        return self.builder.load(self._failed)

    def fail(self) -> None:
        """An error is raised here."""
        self.builder.store(cgutils.true_bit, self._failed)

    def step(self, name: str) -> Any:
        """What a step of a call gives."""
        builder, place = self.builder, INT64(8 * (rt.BEGIN + list(rt.ROUTINES).index(name)))
        kind = ir.FunctionType(INT64, [INT64, INT64]).as_pointer()
        word = builder.inttoptr(builder.add(self._entry, place), kind.as_pointer())
        return builder.call(builder.load(word), [self._entry, self.request.address])

    def make(self, apart: Any) -> Any:
        """Make the arrays for results of the dimensions that the request says; whether one failed.

        An array of no bytes has an owner, too. None is made where the caller gives one, unless
        results must lie apart from what a program still reads.
        """
        builder, nrt = self.builder, self.context.nrt
        failed = cgutils.alloca_once_value(builder, cgutils.false_bit)
        for wanted, place in zip(self.arrays, self._owners, strict=True):
            is_needed = apart if id(wanted) in self._into else cgutils.true_bit
            with builder.if_then(is_needed):
                size = self._size(wanted)
                owner = nrt.meminfo_alloc_aligned_unchecked(builder, size, ir.IntType(32)(32))
                builder.store(owner, place)
                either = builder.or_(builder.load(failed), cgutils.is_null(builder, owner))
                builder.store(either, failed)
        return builder.load(failed)

    def misfit(self) -> Any:
        """What is wrong with arrays that the caller gives: an int64, `_FITS` for nothing."""
        builder, found = self.builder, INT64(_FITS)
        for kind, array, part in self._into.values():
            shape = cgutils.unpack_tuple(builder, array.shape, kind.ndim)
            for n, m in zip(shape, self._shape_of(part), strict=True):
                other = builder.icmp_signed("!=", n, m)
                found = builder.select(other, INT64(_OTHER_SHAPE), found)
        ranges = [self._range(array) for _, array, _ in self._into.values()]
        for one, other in itertools.combinations(ranges, 2):
            found = builder.select(self._overlap(one, other), INT64(_SHARED), found)
        return found

    def must_lie_apart(self) -> Any:
        """Whether a program may read what lies where the caller wants results.

        Arrays from outside may lie there, too.
        """
        builder, found = self.builder, cgutils.false_bit
        if self._into:
            record = builder.inttoptr(self.request.load(rt.RECORD), INT64.as_pointer())
            outside = builder.load(builder.gep(record, [INT64(rt.OUTSIDE)]))
            found = builder.icmp_signed("!=", outside, INT64(0))
        for _, array, part in self._into.values():
            if isinstance(part, _Wanted):
                for given in self.request.ranges:
                    found = builder.or_(found, self._overlap(self._range(array), given))
        return found

    def _range(self, array: Any) -> tuple[Any, Any]:
        first = self.builder.ptrtoint(array.data, INT64)
        size = self.builder.mul(array.nitems, array.itemsize)
        return first, self.builder.add(first, size)

    def _overlap(self, one: Any, other: Any) -> Any:
        builder = self.builder
        before = builder.icmp_unsigned("<", one[0], other[1])
        return builder.and_(before, builder.icmp_unsigned("<", other[0], one[1]))

    def _data(self, wanted: Any, place: Any) -> Any:
        """Where a result goes."""
        owner = self.builder.load(place)
        if id(wanted) not in self._into:
            return self.context.nrt.meminfo_data(self.builder, owner)
        found = cgutils.alloca_once(self.builder, cgutils.voidptr_t)
        data = self.builder.bitcast(self._into[id(wanted)][1].data, cgutils.voidptr_t)
        self.builder.store(data, found)
        with self.builder.if_then(cgutils.is_not_null(self.builder, owner)):
            self.builder.store(self.context.nrt.meminfo_data(self.builder, owner), found)
        return self.builder.load(found)

    def _size(self, wanted: Any) -> Any:
        size = INT64(wanted.dtype.itemsize)
        for n in self.request.shape(wanted):
            size = self.builder.mul(size, n)
        return size

    def offer(self) -> None:
        """Tell the request of the arrays."""
        for wanted, place in zip(self.arrays, self._owners, strict=True):
            data = self._data(wanted, place)
            self.request.store(self.request.data(wanted), self.builder.ptrtoint(data, INT64))

    def copy(self) -> None:
        """Copy results from where they are to the arrays."""
        for wanted, place in zip(self.arrays, self._owners, strict=True):
            word = self.request.data(wanted)
            source = self.builder.inttoptr(self.request.load(word), cgutils.voidptr_t)
            data = self._data(wanted, place)
            copy_memory(self.builder, data, source, self._size(wanted))

    def drop(self) -> None:
        """Free the arrays, as far as they were made."""
        for place in self._owners:
            owner = self.builder.load(place)
            self.context.nrt.decref(self.builder, _OWNER, owner)
        self.forget()

    def forget(self) -> None:
        """There are no arrays, now."""
        for place in self._owners:
            self.builder.store(cgutils.get_null_value(cgutils.voidptr_t), place)

    def results(self) -> Any:
        """The value of the call."""
        found: list[Any] = []
        taken = {id(leaf) for leaf in leaves(self.entry.result)}
        owners = dict(zip(map(id, self.arrays), self._owners, strict=True))
        for wanted in self.entry.wanted:
            if id(wanted) in self._into:
                value = self._filled(wanted, self.builder.load(owners[id(wanted)]))
            elif wanted.rank:
                owner = self.builder.load(owners[id(wanted)])
                data = self.request.load(self.request.data(wanted))
                shape = self.request.shape(wanted)
                value = build_array(self.context, self.builder, wanted.type, data, shape, owner)
                if id(wanted) not in taken:
                    self.context.nrt.decref(self.builder, wanted.type, value)
            else:
                kind = self.context.data_model_manager[wanted.type].get_data_type().as_pointer()
                place = self.builder.inttoptr(self.request.load(self.request.data(wanted)), kind)
                value = self.context.unpack_value(self.builder, wanted.type, place)
            found.append(value)
        return self._value(self.entry.result, self.entry.type, found)

    def _records(self, part: Any, kind: Any, found: list[Any]) -> Any:
        """Records of the results for their fields, or the caller's array with these."""
        context, builder, rank = self.context, self.builder, _rank_of(part)
        record = kind.dtype if rank else kind.record
        if id(part) in self._into:
            value = self._into[id(part)][1]._getvalue()
            context.nrt.incref(builder, kind, value)
        elif rank:
            # After an error that the caller catches nothing tells the dimensions.
            shape = [builder.select(self.failed, INT64(0), n) for n in self._shape_of(part)]
            dimensions = types.UniTuple(types.int64, rank)
            made, dtype = cgutils.pack_array(builder, shape), part.dtype
            value = context.compile_internal(
                builder, lambda shape: np.zeros(shape, dtype), kind(dimensions), [made]
            )
        else:
            value = cgutils.alloca_once(builder, context.get_value_type(kind), zfill=True)
        base, shape, strides = _laid_out(context, builder, kind if rank else record, value)
        fields = leaves(_fields(record, rank))
        with builder.if_then(builder.not_(self.failed)):
            for wanted, field in zip(leaves(part), fields, strict=True):
                own, place = found[wanted.number], field.place(builder, base)
                if not wanted.rank:
                    data = context.get_data_type(wanted.type).as_pointer()
                    place = builder.bitcast(place, data)
                    context.pack_value(builder, wanted.type, own, place, align=1)
                    continue
                items, view = field.view(context, builder, place, shape, strides)
                sig = types.none(items, wanted.type)
                context.compile_internal(builder, _put, sig, [view, own])
        for wanted in leaves(part):
            if wanted.rank:
                context.nrt.decref(builder, wanted.type, found[wanted.number])
        return value if rank else builder.load(value)

    def _shape_of(self, part: Any) -> Any:
        """The dimensions of an array, or of one of records."""
        if isinstance(part, Records):
            return self.request.shape(leaves(part)[0])[: _rank_of(part)]
        return self.request.shape(part)

    def _filled(self, wanted: Any, owner: Any) -> Any:
        """The array that the caller gives, with a result in it."""
        kind, array, _ = self._into[id(wanted)]
        value = array._getvalue()
        with self.builder.if_then(cgutils.is_not_null(self.builder, owner)):
            source = self.context.nrt.meminfo_data(self.builder, owner)
            data = self.builder.bitcast(array.data, cgutils.voidptr_t)
            copy_memory(self.builder, data, source, self._size(wanted))
            self.context.nrt.decref(self.builder, _OWNER, owner)
        self.context.nrt.incref(self.builder, kind, value)
        return value

    def _value(self, part: Any, kind: Any, found: list[Any]) -> Any:
        if isinstance(part, _Wanted):
            return found[part.number]
        if isinstance(part, Records):
            return self._records(part, kind, found)
        if part is None:
            return self.context.get_dummy_value()
        parts = [self._value(item, k, found) for item, k in zip(part, kind, strict=True)]
        return self.context.make_tuple(self.builder, kind, parts)


def _free(context: Any, builder: Any, made: Any) -> None:
    """Free copies of arguments."""
    for owner in made:
        context.nrt.decref(builder, _OWNER, builder.load(owner))
        builder.store(cgutils.get_null_value(cgutils.voidptr_t), owner)


def _lower(
    entry: Entry, names: list[str], fills: bool, context: Any, builder: Any, sig: Any, args: Any
) -> Any:
    """The code of a call."""
    positional, named = entry.structure
    keys = [*range(len(positional)), *names]
    parts = [*positional, *(named.get(name) for name in names)]
    given = dict(zip(keys, zip(parts, sig.args, args, strict=True), strict=True))
    order = [*range(len(positional)), *named]  # as leaves have it
    values = []
    for key in order:
        part, kind, value = given[key]
        values += _brought(part, kind, value, context, builder)
    into = {}
    if fills:
        _, kind, array = given["out"]
        into = _arrays_to_fill(entry.gradient, kind, array, context, builder)
    calling = _Call(context, builder, entry, into)
    made = calling.request.give(values)
    blocks = {name: builder.append_basic_block(name) for name in _BLOCKS}
    code = cgutils.alloca_once(builder, INT64)
    calling.forget()
    builder.branch(blocks["again"])
    _try(calling, blocks, code)
    _take_from_elsewhere(calling, blocks)
    # In a try block the code goes on after an error, without results that anybody uses.
    for name, function in (
        ("full", _raise_memory),
        ("raising", _raise),
        ("misfit", _raise_misfit),
    ):
        builder.position_at_end(blocks[name])
        number = calling.request.load(rt.ERROR)
        if name == "misfit":
            number = calling.misfit()
        if name != "raising":
            calling.drop()
            calling.step("end_call")
        _free(context, builder, made)
        context.compile_internal(builder, function, signature(types.none, types.int64), [number])
        calling.fail()
        calling.request.want()
        builder.branch(blocks["done"])
    builder.position_at_end(blocks["done"])
    _free(context, builder, made)
    return calling.results()


_BLOCKS = ("again", "ready", "undo", "other", "elsewhere", "full", "raising", "misfit", "done")


def _arrays_to_fill(part: Any, kind: Any, value: Any, context: Any, builder: Any) -> dict[int, Any]:
    """Types and structures of the arrays of ``out=``, by the identity of the result for each.

    Programs write to those that are not of records; fields of others are copied in the end.
    """
    if isinstance(part, _Wanted | Records):
        return {id(part): (kind, context.make_array(kind)(context, builder, value), part)}
    items = cgutils.unpack_tuple(builder, value, len(kind))
    parts = [
        _arrays_to_fill(item, own, each, context, builder)
        for item, own, each in zip(part, kind, items, strict=True)
    ]
    return {key: found for each in parts for key, found in each.items()}


def _try(calling: _Call, blocks: Any, code: Any) -> None:
    """Let a program compute the results, once or again."""
    builder = calling.builder
    builder.position_at_end(blocks["again"])
    calling.request.want()
    builder.store(calling.step("begin_call"), code)
    is_ready = builder.icmp_signed("==", builder.load(code), INT64(rt.READY))
    builder.cbranch(is_ready, blocks["ready"], blocks["other"])

    builder.position_at_end(blocks["ready"])
    _refuse_misfits(calling, blocks)
    with builder.if_then(calling.make(calling.must_lie_apart()), likely=False):
        builder.branch(blocks["full"])
    calling.offer()
    builder.store(calling.step("run_call"), code)
    is_done = builder.icmp_signed("==", builder.load(code), INT64(rt.DONE))
    builder.cbranch(is_done, blocks["done"], blocks["undo"])

    builder.position_at_end(blocks["undo"])
    # The request says where results are; the arrays that were made for them are of other lengths.
    calling.drop()
    builder.branch(blocks["other"])

    builder.position_at_end(blocks["other"])
    switch = builder.switch(builder.load(code), blocks["raising"])
    switch.add_case(INT64(rt.AGAIN), blocks["again"])
    switch.add_case(INT64(rt.ELSEWHERE), blocks["elsewhere"])


def _refuse_misfits(calling: _Call, blocks: Any) -> None:
    """Raise an error for arrays of ``out=`` that do not fit."""
    is_wrong = calling.builder.icmp_signed("!=", calling.misfit(), INT64(_FITS))
    with calling.builder.if_then(is_wrong, likely=False):
        calling.builder.branch(blocks["misfit"])


def _take_from_elsewhere(calling: _Call, blocks: Any) -> None:
    """Copy results that a program or Python left somewhere."""
    builder, request = calling.builder, calling.request
    builder.position_at_end(blocks["elsewhere"])
    _refuse_misfits(calling, blocks)
    with builder.if_then(calling.make(cgutils.false_bit), likely=False):
        builder.branch(blocks["full"])
    calling.copy()
    calling.offer()
    for wanted in calling.entry.wanted:
        if not wanted.rank:
            place = request.scalar(len(calling.entry.inputs) + wanted.number)
            word = request.data(wanted)
            source = builder.inttoptr(request.load(word), cgutils.voidptr_t)
            target = builder.inttoptr(place, cgutils.voidptr_t)
            cgutils.raw_memmove(builder, target, source, INT64(wanted.dtype.itemsize), INT64(1))
            request.store(word, place)
    calling.step("end_call")
    builder.branch(blocks["done"])
