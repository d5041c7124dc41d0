"""Lists of a traced function, which loops of the graph may fill.

A list is Python's until a loop or a branch that only the run decides appends to it. Then it is made
a `TensorArray`, before the outermost of these, and what is around is traced again.
"""

from __future__ import annotations

import copy
import functools
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from nbta import classes
from nbta.control.control_flow import while_loop
from nbta.errors import UnimplementedError, invalid, out_of_range
from nbta.frontend import native
from nbta.frontend.array_wrappers import (
    ArrayWrapper,
    Attribute,
    born,
    explicitly_older,
    fix,
    frames,
    in_trace,
    is_older,
    is_older_array,
    link,
    note_changed,
    note_place,
    wrapped,
)
from nbta.frontend.containers import Whole, note_whole
from nbta.frontend.problems import here
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.arrays.index_lists import (
    ATTRS,
    GATHER_SLOT_LIST,
    READ_SLOT_LIST,
    SLOT_LIST,
    WRITE_SLOT_LIST,
)
from nbta.ops.arrays.tensor_arrays import build
from nbta.ops.axes.reductions import max as reduce_max
from nbta.ops.axes.truths import all as reduce_all
from nbta.ops.core.arithmetic import equal, less, less_equal, logical_and, maximum, minimum, where
from nbta.ops.core.checks import ASSERT, after, first_token
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import apply, as_tensor
from nbta.ops.core.filling import arange
from nbta.ops.core.shaping import INT64, cast, reshape, shape
from nbta.ops.indexing.joining import stack
from nbta.ops.loops.iteration_counts import integer_after
from nbta.ops.numbers import Number
from nbta.symbolic import Facts, SymbolicTensorArray


def slot_list(length):
    """A list of the first slots of an array."""
    facts = Facts(INT64, (), True, "slots", True, False)
    outputs = build(SLOT_LIST, [cast(as_tensor(length), INT64)], ATTRS)
    return SymbolicTensorArray.over(*outputs, facts)


def write_slot(slots, place, length, slot):
    """The list with another slot at a place."""
    access = slots._access
    inputs = [access.handle, _int64(place), _int64(length), _int64(slot), access.flow]
    return slots._after(build(WRITE_SLOT_LIST, inputs)[0])


def read_slot(slots, place, length):
    """The slot at a place, which must be that of an item."""
    access = slots._access
    inputs = [access.handle, _int64(place), _int64(length), access.flow]
    return build(READ_SLOT_LIST, inputs)[0]


def gather_slots(slots, length):
    """The slots of all items."""
    access = slots._access
    return build(GATHER_SLOT_LIST, [access.handle, _int64(length), access.flow])[0]


def _int64(value):
    value = as_tensor(value)
    return value if value.dtype == INT64 else cast(value, INT64)


class Grows(BaseException):
    """A list must be a `TensorArray` from before a loop on; no `Exception` that users catch."""

    def __init__(self, listing, sample):
        super().__init__("nbta traces the function again, as a list grows in a loop")
        self.listing, self.sample = listing, sample


class Reordered(BaseException):
    """A list that grows must keep a list of slots, from before a loop on."""

    def __init__(self, listing):
        super().__init__("nbta traces the function again, as a loop changes items of a list")
        self.listing = listing


class Widened(BaseException):
    """A list that grows must have items of another dtype, from before a loop on."""

    def __init__(self, listing, dtype):
        super().__init__("nbta traces the function again, as items of a list have several dtypes")
        self.listing, self.dtype = listing, dtype


#: What a list must be from before a loop on.
CHANGED = Grows, Reordered, Widened


def _wider(dtype, value):
    """The dtype for items of one, and a value."""
    weak = getattr(value, "weak", None)
    if weak is not None or isinstance(value, bool | int | float | complex):
        kind = _dtype(value).kind
        return np.result_type(dtype, {"b": False, "i": 0, "u": 0, "f": 0.0, "c": 0j}[kind])
    return np.result_type(dtype, _dtype(value))


def _of_two_dtypes(dtype, held):
    """The error of arrays in a list of others: in Python each keeps its own dtype."""
    message = (
        f"{here()}: a loop puts arrays of {dtype} into a list of arrays of {held}; it may append "
        f"numbers and arrays of one dtype"
    )
    return invalid("list_items", message)


def in_dtype_of(array, value):
    """A tensor in an array's dtype."""
    return value if value.dtype == array.dtype else cast(value, array.dtype)


class Guard(ArrayWrapper):
    """In place of all arrays that are items of a list, which has copies of them.

    An array that is changed is put into the list anew where it is known at which place it is: as
    long as no item has changed its place since it was read or appended, and if no array is at two
    places. Elsewhere the list is spoiled, and so are other arrays that are items.
    """

    __slots__ = ("_changed_in", "_known", "_order", "_relying", "_twice", "listing")

    def __init__(self, listing):
        super().__init__(np.zeros(1), "an item of a list")
        self.serial = 0  # older than any block
        self.listing, self._known, self._order, self._twice = listing, {}, 0, False
        #: Blocks in which items were changed, and those that went on from a place found before.
        self._changed_in, self._relying = [], []

    def watch(self, wrapper, place):
        """Note an array that was read or is added, and its place counted from the first."""
        root = wrapper.root
        if wrapper is root:
            self._known[id(wrapper)] = wrapper, place, self._order, frames()
        link(self, root)

    def admit(self, wrapper):
        """Note an array that is put into the list, perhaps one that is somewhere else, too."""
        guards = [each.other for each in wrapper.root.links if isinstance(each.other, Guard)]
        for guard in guards:
            link(self, guard)
        if wrapper.root is not wrapper or wrapper.links or is_older_array(wrapper):
            self._check(self._changed_in, "an array that may be at another place, too,")
            self._twice = True

    def reorder(self):
        """Note that items change places, or leave the list."""
        self._check(self._relying, "a change of places")
        self._order += 1

    def _check(self, blocks, what):
        """Refuse what would be so in the next iteration for a change that was traced before."""
        if any(frame.traced and frame in blocks for frame in frames()):
            self.listing.refuse(f"{what} in a loop or a branch that changes an item in place,")

    def follow(self, changed, known, change):
        """Let the list have what an array holds that is an item, or be spoiled."""
        found = self._known.get(id(changed))
        if found is not None and found[2] == self._order and self._may_put():
            self._changed_in += frames()
            self._relying += [frame for frame in frames() if frame not in found[3]]
            self.listing.replace(found[1], changed)
        elif self.spoiled is None:
            self.spoil(changed)
        else:
            return
        self._spoil_others(changed)

    def _may_put(self):
        return not self._twice and self.spoiled is None

    def _spoil_others(self, changed):
        for each in self.links:
            other = each.other
            if other is changed or other.spoiled is not None:
                continue
            other.spoil(changed)
            if isinstance(other, Guard):
                other._spoil_others(changed)


class Listing(list):
    """A list that a traced function made.

    Attributes
    ----------
    array : SymbolicTensorArray or None
        Where its items are, once a loop of the graph appends to it.
    length : Tensor
        How many there are then.
    """

    array, _length, guard = None, None, None
    #: Whether it stands for one of several lists, which only the run knows.
    is_picked = False
    #: Where items are assigned or taken off, a list of the slot of each, and how many are used.
    slots, used = None, None
    #: Whether tuples that a loop gives are an error, as for a comprehension that Python can make.
    numbers_only = False
    #: What has copies of its items, as it is an item of a list that a loop fills.
    copied_in = ()
    #: Whether each iteration of a loop makes such a list anew, which may be changed no more.
    is_made_anew = False

    def ask_length(self):
        """Begin the trace again with the length known, if it is that of an argument."""
        if isinstance(self.length, Number):
            self.length.ask_again()

    def lose(self):
        """Refuse to be read from now on, as an item of a copy was assigned."""
        self.__class__ = Lost

    @property
    def length(self):
        """How many items there are, once the list is an array."""
        return self.array.columns[0].length if self.is_of_tuples else self._length

    @length.setter
    def length(self, new):
        self._length = new

    @property
    def is_of_tuples(self) -> bool:
        """Whether each part of its items has a list of its own."""
        return isinstance(self.array, Columns)

    def _write(self, value):
        if self.is_of_tuples:
            return self.array.append(value)
        value = self._as_item(value, self.length)
        if self.slots is None:
            self._hold("array", self.array.write(self.length, value))
        else:
            self._write_slot(self.length, self.length + 1, value)
        self._hold("length", self.length + 1)
        return None

    def _as_item(self, value, place):
        if isinstance(value, ArrayWrapper):
            self._share(value, place, is_new=True)
        value, dtype = native.plain(value), self.array.dtype
        if self.array.element_shape and _dtype(value) != dtype:
            raise _of_two_dtypes(_dtype(value), dtype)
        wide = _wider(dtype, value)
        if wide != dtype:
            raise Widened(self, wide)
        return cast(as_tensor(value), dtype) if _dtype(value) != dtype else value

    def replace(self, place, wrapper):
        """Let an item be what an array holds that is the item."""
        self._needs_slots()
        self._write_slot(place, self.length, in_dtype_of(self.array, wrapper.itself))

    def _write_slot(self, place, length, value):
        """Write a value to a slot of its own, which has the item at a place from now on."""
        self._hold("array", self.array.write(self.used, value))
        self._hold("slots", write_slot(self.slots, place, length, self.used))
        self._hold("used", self.used + 1)

    def _share(self, wrapper, place, is_new=False):
        """Note that an array is an item: where it is changed, so is the item, which is a copy."""
        if self.guard is None:
            self.guard = Guard(self)
        if is_new:
            self.guard.admit(wrapper)
        self.guard.watch(wrapper, place)

    def check(self):
        """Refuse to read items of which an array was changed."""
        if self.guard is not None and self.guard.spoiled is not None:
            raise invalid("spoiled_array", f"{here()}: {self.guard.spoiled}")

    def _hold(self, name, value):
        if self.is_made_anew:
            raise UnimplementedError(
                f"{here()}: a list that each iteration of a loop makes anew is changed under that "
                f"name, where others may have it; change a copy, as of v = list(v)"
            )
        if explicitly_older(self):
            self.refuse("a change, in a function that is given to a loop or a branch of nbta's,")
        note_place(Attribute(self, name))
        setattr(self, name, value)

    def list_slots(self):
        """Keep a list of slots from now on, as slots of arrays are written once."""
        if self.slots is None:
            self._hold("slots", slot_list(self.length))
            self._hold("used", self.length)

    def widen(self, dtype):
        """Hold the items in another dtype from now on."""
        if self.array.element_shape:
            raise _of_two_dtypes(dtype, self.array.dtype)
        self._hold("array", _array_of(cast(self.stack(), dtype)))
        if self.slots is not None:
            self._hold("slots", slot_list(self.length))
            self._hold("used", self.length)

    def _needs_slots(self):
        """See to it that there is a list of slots, from before the loop or branch on."""
        if self.slots is None:
            if is_older(self):
                raise Reordered(self)
            self.list_slots()

    def _changes_places(self):
        """Note that items change their places, or leave the list."""
        self._needs_slots()
        self.check()
        if self.guard is not None:
            self.guard.reorder()

    def pop(self, index=-1):
        """Take the last item off."""
        if self.array is None:
            if in_trace(self):
                raise Grows(self, self[-1] if len(self) else 0.0)
            note_whole(self)
            return super().pop(index)
        if self.is_of_tuples:
            return self.array.each(lambda column: column.pop(index))
        found = self.array.read(self._taken(index))
        return wrapped(found)

    def _taken(self, index):
        """The slot of an item that leaves the list."""
        self._changes_places()
        error = invalid("index", f"{here()}: pop or del of an item that the list does not have")
        place, length = self._from_first(index), _int64(self.length)
        holds = logical_and(less_equal(0, place), less(place, length))
        token = apply(ASSERT, [first_token(), holds], {"message": error})
        last = after(length - 1, token)  # though nobody may look at the item
        slot = read_slot(self.slots, place, self.length)
        if not (native.is_known(index) and index == -1):
            self._move(place, last, 1)
        self._hold("length", last)
        return slot

    def _move(self, first, stop, by):
        """Let the slots of some places be those of the next ones, or of the ones before."""
        length = self.length if by == 1 else self.length + 1
        begin = first if by == 1 else stop - 1
        last = stop if by == 1 else first - 1

        def goes_on(place, _):
            return (place < last) if by == 1 else (place > last)

        def move(place, slots):
            slot = read_slot(slots, place + by, length)
            return place + by, write_slot(slots, place, length, slot)

        _, slots = while_loop(goes_on, move, [_int64(begin), self.slots])
        self._hold("slots", slots)

    def insert_at(self, place, value):
        """Put an item at a place, and those from there on one further."""
        self._changes_places()
        value = self._as_item(value, place)
        length = self.length + 1
        self._hold("slots", write_slot(self.slots, self.length, length, self.used))
        self._move(place + 1, length, -1)
        self._write_slot(place, length, value)
        self._hold("length", length)

    def take_all_off(self):
        """Take all items off."""
        self._changes_places()
        self._hold("length", _int64(0))

    def turn_round(self):
        """Turn the order of the items round."""
        self._changes_places()
        length = self.length

        def swap(place, slots):
            other = length - 1 - place
            one, two = (read_slot(slots, each, length) for each in (place, other))
            slots = write_slot(write_slot(slots, place, length, two), other, length, one)
            return place + 1, slots

        _, slots = while_loop(
            lambda place, _: 2 * place < length - 1, swap, [_int64(0), self.slots]
        )
        self._hold("slots", slots)

    def put_in_order(self, order):
        """Let the item at each place be the one that was at the place in a tensor."""
        if self.is_of_tuples:
            self.array.each(lambda column: column.put_in_order(order))
            return
        self._changes_places()
        length, before = self.length, gather_slots(self.slots, self.length)

        def move(place, slots):
            return place + 1, write_slot(slots, place, length, before[order[place]])

        _, slots = while_loop(lambda place, _: place < length, move, [_int64(0), self.slots])
        self._hold("slots", slots)

    def append(self, value):
        """Add an item."""
        if self.array is not None:
            return self._write(value)
        if in_trace(self):
            raise Grows(self, value if isinstance(value, list) else native.plain(value))
        note_whole(self)
        return super().append(value)

    def __iadd__(self, values):
        if isinstance(values, Tensor | np.ndarray):  # NumPy adds numbers then
            return NotImplemented
        self.extend(values)
        return self

    def _slot(self, place):
        return place if self.slots is None else read_slot(self.slots, place, self.length)

    def _from_first(self, key):
        """An index counted from the first item."""
        if native.is_known(key):
            return key if key >= 0 else self.length + key
        key = as_tensor(key)
        return where(key < 0, key + self.length, key)

    def put(self, key, value):
        """Assign an item."""
        if isinstance(key, slice):
            self.refuse("an assigned slice")
        if self.is_of_tuples:
            return self.array.put(key, value)
        self._changes_places()
        place = self._from_first(key)
        return self._write_slot(place, self.length, self._as_item(value, place))

    def item(self, key):
        """The item at an index."""
        if self.array is None:
            return list.__getitem__(self, key)
        if isinstance(key, slice):
            return self.part(key)
        if self.is_of_tuples:
            return self.array.each(lambda column: column.item(key))
        self.check()
        place = self._from_first(key)
        found = wrapped(self.array.read(self._slot(place)))
        if isinstance(found, ArrayWrapper):
            self._share(found, place)
        return found

    def stack(self):
        """All items as a tensor."""
        if self.slots is None:
            return self.array.stack()
        return self.array.gather(gather_slots(self.slots, self.length))

    def stacked(self):
        """All items as one array."""
        if self.is_of_tuples:
            return self.array.stack()
        self.check()
        found = self.stack()
        if isinstance(self.length, Number):
            found = reshape(found, (self.length, *found.shape[1:]))
        return wrapped(found)

    def __iter__(self):
        if self.array is None:
            return super().__iter__()
        length = integer_after(outside(self.length))
        if length is None:
            self.refuse("a loop of Python's own")
        return map(self.item, range(length))

    def __copy__(self):
        return self.copy()

    def __deepcopy__(self, memo):
        if self.array is not None:
            return self.copy()
        found = memo[id(self)] = listing(())
        list.extend(found, (copy.deepcopy(item, memo) for item in self))
        return found

    def __setitem__(self, key, value):
        """Assign items; converted code does that itself."""
        if self.array is not None:
            return self.put(key, value)
        note_whole(self)
        return super().__setitem__(key, value)

    def delete(self, key):
        """``del`` of an item in what only the run decides, or of a list that it fills."""
        if isinstance(key, slice):
            self.refuse("a deleted slice")
        self.pop(key)

    def __delitem__(self, key):
        if self.array is None:
            note_whole(self)
            super().__delitem__(key)
        else:
            self.delete(key)

    def refuse(self, what):
        """Say what cannot be done once a loop fills the list, if no new trace knows its length."""
        self.ask_length()
        raise UnimplementedError(
            f"{here()}: {what} of a list that a loop appends to, whose length only the run knows; "
            f"append, extend, insert, pop, del, remove, sort, reverse, clear, index, count, len, "
            f"==, items read and assigned, slices read, loops over it and np.array(list) are "
            f"possible"
        )


def bases_of(lists) -> tuple:
    """What some lists are among lists of which an index may choose.

    Returns
    -------
    tuple of list of list and list of callable
        Each list once, and what gives the index of each one that is given, in its own block.
    """
    bases, places, indices = [], {}, []

    def place_of(each):
        if id(each) not in places:
            places[id(each)] = len(bases)
            bases.append(each)
        return places[id(each)]

    for each in lists:
        if getattr(each, "is_picked", False):
            inner = np.array(list(map(place_of, each.lists)), np.int64)
            indices.append(lambda inner=inner, each=each: as_tensor(inner)[_int64(each.place)])
        else:
            indices.append(functools.partial(as_tensor, np.int64(place_of(each))))
    return bases, indices


class Columns:
    """What a list of tuples is filled in: a list for each part.

    Attributes
    ----------
    columns : tuple of Listing
    kind : type
        Of the items: tuple, or a named one.
    """

    def __init__(self, kind, columns):
        self.kind, self.columns = kind, columns

    @property
    def lists(self):
        """The lists that hold the items."""
        return self.columns

    def append(self, value):
        """Add a tuple."""
        for column, part in self._parts(value):
            column.append(part)

    def put(self, key, value):
        """Assign a tuple."""
        for column, part in self._parts(value):
            column.put(key, part)

    def insert(self, index, value):
        """Put a tuple before another one."""
        for column, part in self._parts(value):
            column.insert(index, part)

    def _parts(self, value):
        if type(value) is not self.kind or len(value) != len(self.columns):
            self.columns[0].refuse(f"an item that is no tuple of {len(self.columns)}")
        return zip(self.columns, value, strict=True)

    def each(self, take):
        """A tuple of what is taken of each column."""
        found = tuple(take(column) for column in self.columns)
        return found if self.kind is tuple else self.kind(*found)

    def stack(self):
        """All items as one array, in which a tuple is a row."""
        rows = [native.plain(column.stacked()) for column in self.columns]
        dtype = np.result_type(*(row.dtype for row in rows))
        return wrapped(stack([cast(row, dtype) for row in rows], 1))


class Rows(Columns):
    """What a list of lists of numbers is filled in: where each begins, and how long it is.

    Attributes
    ----------
    numbers : Numbers
    """

    def __init__(self, columns, numbers):
        super().__init__(list, columns)
        self.numbers = numbers

    @property
    def lists(self):
        """The lists that hold the items."""
        return (*self.columns, self.numbers)

    def _parts(self, value):
        if isinstance(value, Row) and value.numbers is self.numbers:
            return zip(self.columns, (value.start, value.length), strict=True)
        if not isinstance(value, Listing) or isinstance(value, Row):
            what = "an item of another list" if isinstance(value, Row) else "no list"
            self.columns[0].refuse(f"an item that is {what}, beside lists,")
        if not _is_of_numbers(value):
            self.columns[0].refuse("an item that is no list of numbers")
        start = self.numbers.length
        self.numbers.extend_together(value)
        self.numbers.admit(value)
        return zip(self.columns, (start, self.numbers.length - start), strict=True)

    def each(self, take):
        """A row, or nothing, of what is taken of where it begins and of how long it is."""
        start, count = map(take, self.columns)
        return None if start is None else born(Row(self.numbers, start, count))

    def stack(self):
        """All items as one array, in which a list is a row; a run fails for several lengths."""
        starts, counts = (native.plain(column.stacked()) for column in self.columns)
        columns = reduce_max(counts, initial=0)
        message = f"{here()}: the lists of a list have several lengths, and no array has such rows"
        holds = reduce_all(equal(counts, columns))
        error = invalid("list_items", message)
        columns = after(columns, apply(ASSERT, [first_token(), holds], {"message": error}))
        places = reshape(starts, (-1, 1)) + arange(columns)
        return wrapped(native.plain(self.numbers.stacked())[places])


class Numbers(Listing):
    """The numbers of lists in lists that loops fill: copies, of which nobody may see a difference.

    A list that is appended to a list may be changed no more. Where an item of a copy is assigned,
    the list is lost to who reads it, and no list may have been appended twice.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self):
        super().__init__()
        self._given, self._is_twice, self._is_assigned = [], False, False
        #: How many items Python knows each list to have that was added; None for several.
        self.width = ...

    def admit(self, value):
        """Note a list that is added."""
        if is_older(value) or any(each is self for each in value.copied_in):
            self._is_twice = True
            self._check_once()
        width = len(value) if native.is_python(value) else None
        self.width = width if self.width in (..., width) else None
        fix(value)
        self.note(value)

    def note(self, value):
        """Note that a list is one of which this has a copy, or may be."""
        if not any(value is each for each in self._given):
            self._given.append(value)
            value.copied_in = (*value.copied_in, self)
        if self._is_assigned:
            value.lose()

    def assign(self, place, value):
        """Assign a number."""
        self._is_assigned = True
        self._check_once()
        for each in self._given:
            each.lose()
        self.put(place, value)

    def _check_once(self):
        if self._is_twice and self._is_assigned:
            self.refuse("an assigned item of a list in a list, where it may be twice,")


class Lost(Listing):
    """A list of which another one has a copy, in which an item was assigned."""

    @property
    def array(self):
        """Nothing that could be read."""
        message = (
            f"{here()}: a list that was appended to a list is read, or changed, after an item of "
            f"that one was assigned; read it as an item, such as rows[-1]"
        )
        raise invalid("spoiled_array", message)


def filled_by(listing) -> list:
    """What tells what was put into a list that loops fill: lists, and flows of arrays."""
    if isinstance(listing, Lost | Row):
        return []
    if isinstance(listing.array, Columns):
        return list(listing.array.lists)
    return [listing.array.flow]


class Row(Listing):
    """A list that is an item of a list that a loop fills."""

    array, slots, guard, is_of_tuples = "a row of a list", None, None, False

    def __init__(self, numbers, start, count):
        super().__init__()
        self.numbers, self.start, self._count = numbers, start, count

    @property
    def length(self):
        """How many items it has."""
        return self._count

    def _place_of(self, key):
        place = _int64(self._from_first(key))
        holds = logical_and(less_equal(0, place), less(place, self._count))
        error = out_of_range(f"{here()}: an index is out of range for a list of a list")
        token = apply(ASSERT, [first_token(), holds], {"message": error})
        return self.start + after(place, token)

    def item(self, key):
        """The item at an index."""
        if isinstance(key, slice):
            return self.part(key)
        return self.numbers.item(self._place_of(key))

    def put(self, key, value):
        """Assign an item."""
        if isinstance(key, slice):
            self.refuse("an assigned slice")
        self.numbers.assign(self._place_of(key), value)

    def __iter__(self):
        width = self.numbers.width
        if not isinstance(width, int):
            self.refuse("a loop of Python's own, or an assignment to several names,")
        error = ValueError(f"{here()}: a list in a list has not {width} items")
        holds = equal(_int64(self._count), width)
        token = apply(ASSERT, [first_token(), holds], {"message": error})
        start = after(_int64(self.start), token)
        return iter([self.numbers.item(start + k) for k in range(width)])

    def stacked(self):
        """All items as one array."""
        return self.copy().stacked()

    def stack(self):
        """All items as a tensor."""
        return native.plain(self.stacked())

    def check(self):
        """Nothing, as its items are those of the list of all rows."""

    def refuse(self, what):
        """Say what cannot be done."""
        raise UnimplementedError(
            f"{here()}: {what} of a list in a list that a loop appends to; len, items read and "
            f"assigned, slices read, loops over it and list(row) are possible: fill it before it "
            f"is appended"
        )

    def append(self, value):
        """Refused."""
        self.refuse("append")

    def pop(self, index=-1):
        """Refused."""
        self.refuse("pop or del")

    def insert_at(self, place, value):
        """Refused."""
        self.refuse("insert")

    def take_all_off(self):
        """Refused."""
        self.refuse("clear")

    def turn_round(self):
        """Refused."""
        self.refuse("reverse")


def _is_of_numbers(row):
    if not native.is_python(row):
        return not row.is_of_tuples and row.array is not None and _is_scalar_array(row)
    return bool(row) and all(_is_number(native.plain(each)) for each in list.__iter__(row))


def _is_scalar_array(row):
    return isinstance(row, Row) or row.is_picked or row.array.element_shape == ()


def numbers_of(values):
    """A list of numbers as an array of one axis; None for a list of other things.

    What Python knows is an array of NumPy's, as is an empty list.
    """
    if values.array is not None:
        is_plain = not values.is_of_tuples and _is_scalar_array(values)
        return native.plain(values.stacked()) if is_plain else None
    items = list(list.__iter__(values))
    if not all(_is_number(each) and not isinstance(each, ArrayWrapper) for each in items):
        return None
    return as_tensor(native.together(items)) if items else np.zeros(0)


def _is_number(value):
    if isinstance(value, Tensor):
        return value.kind == "data" and value.spec.rank == 0
    return isinstance(value, bool | int | float | complex | np.generic)


def _changing(name):
    method = getattr(list, name)

    def change(self, *args, **options):
        if self.array is not None:
            self.refuse(f".{name}()")
        note_whole(self)
        return method(self, *args, **options)

    return change


def _insert(self, index, value):
    """Put an item before another one."""
    if self.array is None and in_trace(self):
        raise Grows(self, native.plain(value))
    if self.array is None:
        note_whole(self)
        return list.insert(self, index, value)
    if self.is_of_tuples:
        return self.array.insert(index, value)
    return self.insert_at(minimum(maximum(self._from_first(_int64(index)), 0), self.length), value)


def _whole(name, change):
    """A method for all items: Python's, that of each part of tuples, or one of an array's slots."""
    method = getattr(list, name)

    def changed(self):
        if self.array is None:
            note_whole(self)
            return method(self)
        if self.is_of_tuples:
            self.array.each(lambda column: getattr(column, name)())
            return None
        return change(self)

    changed.__doc__ = change.__doc__
    return changed


Listing.insert, Listing.remove = _insert, _changing("remove")
Listing.clear = _whole("clear", Listing.take_all_off)
Listing.reverse = _whole("reverse", Listing.turn_round)


def _is_empty(value):
    return isinstance(value, list) and native.is_python(value) and not value


def _asking(name):
    method = getattr(list, name)

    def ask(self, *args):
        if name in ("__eq__", "__ne__") and _is_empty(*args) and self.array is not None:
            return self.length == 0 if name == "__eq__" else self.length != 0
        if any(getattr(each, "array", None) is not None for each in (self, *args)):
            owner = self if self.array is not None else args[0]
            owner.refuse(f".{name}()" if name.isalpha() else f"a comparison ({name})")
        return method(self, *args)

    return ask


for _name in ("index", "count", "__contains__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__",
              "__ge__", "__reversed__"):  # fmt: skip
    setattr(Listing, _name, _asking(_name))
Listing.__hash__ = None


def _repeated(self, number):
    if self.array is not None:
        self.refuse("a multiple")
    return listing(list.__mul__(self, number))


def _repeat(self, number):
    if self.array is not None:
        self.refuse("a multiple")
    note_whole(self)
    return list.__imul__(self, number)


Listing.__mul__, Listing.__rmul__, Listing.__imul__ = _repeated, _repeated, _repeat


def listing(values):
    """A list display."""
    return born(Listing(values))


def _dtype(value):
    return value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype


def grow(error) -> None:
    """Make a list an array here, or leave that to what is around, if that is younger than it."""
    if is_older(error.listing):
        raise error
    if isinstance(error, Reordered):
        return error.listing.list_slots()
    if isinstance(error, Widened):
        return error.listing.widen(error.dtype)
    return _fill(error.listing, error.sample)


def _appended(array):
    """An array, of which compiled code is told that each write is to the slot after all others."""
    array.handle.op.know(is_appended=True)
    return array


def _array_of(numbers):
    """The array of a list that has the numbers of a vector."""
    array = SymbolicTensorArray(numbers.dtype, 0, True, False, "list", element_shape=())
    return _appended(array).unstack(numbers)


def _fill(listing, sample):
    """Make a list an array, of what it holds and will be given."""
    samples = [*list.__iter__(listing), sample]
    if not all(isinstance(each, list) for each in samples):
        samples = list(map(native.plain, samples))
    elif not listing.numbers_only:
        return _fill_rows(listing, samples)
    items = samples[:-1]
    if _are_tuples(samples) and not listing.numbers_only:
        return _fill_columns(listing, samples)
    if not all(
        isinstance(each, Tensor | np.ndarray | np.generic | int | float | complex)
        for each in samples
    ):
        lists = any(isinstance(each, list) for each in samples)
        kinds = sorted(
            {"list" if isinstance(each, list) else type(each).__name__ for each in samples}
        )
        ways = (
            "make lists before the loop, as [[0.0] * m for _ in range(n)], and assign their items"
            if lists
            else "give each part of a tuple a list of its own"
        )
        message = (
            f"{here()}: a loop appends {' and '.join(kinds)} to a list; it may append numbers and "
            f"arrays of one dtype; {ways}"
        )
        raise invalid("list_items", message)
    dtype = np.result_type(*(_dtype(each) for each in samples))
    sample = native.plain(sample)
    rank = sample.ndim if isinstance(sample, Tensor) else np.ndim(sample)
    other = next((d for d in map(_dtype, items) if d != _dtype(sample)), None)
    if rank and other is not None:
        raise _of_two_dtypes(_dtype(sample), other)
    array = SymbolicTensorArray(
        dtype, 0, True, False, "list", element_shape=(None,) * rank, infer_shape=not rank
    )
    _appended(array)
    for k, each in enumerate(items):
        array = array.write(k, cast(as_tensor(each), dtype))
    for k, each in enumerate(list.__iter__(listing)):
        if isinstance(each, ArrayWrapper):
            listing._share(each, k, is_new=True)
    _empty(listing)
    listing.array, listing.length = array, as_tensor(np.int64(len(items)))
    return None


def is_of_numbers(value) -> bool:
    """Whether a value is a list of numbers, of Python's or one that a loop fills."""
    if type(value) is not Listing or value.is_picked:
        return False
    if value.array is None:
        return all(map(_is_number, list.__iter__(value)))
    return not value.is_of_tuples and _is_scalar_array(value)


def vector_of(values, dtype=None):
    """The numbers of a list as a vector."""
    found = as_tensor(numbers_of(values))
    return wrapped(found if dtype in (None, found.dtype) else cast(found, dtype))


def made_anew(vector) -> Listing:
    """A list of the numbers of a vector, which a loop makes anew in each iteration."""
    found, numbers = born(Listing()), vector.itself
    found.array, found.length = _array_of(numbers), _int64(shape(numbers)[0])
    found.is_made_anew = True
    fix(found)
    return found


_GROWN = "lists that became arrays, and the items that they had"


def grown_lists() -> int:
    """How many lists have become arrays in this trace."""
    return len(current().root.cache.setdefault(_GROWN, []))


def put_back_lists(count) -> None:
    """Let lists that became arrays since there were ``count`` of these be Python's again."""
    grown = current().root.cache[_GROWN]
    while len(grown) > count:
        listing, items = grown.pop()
        listing.array = listing.length = listing.slots = listing.used = None
        list.extend(listing, items)


def _empty(listing):
    """Take the items off a list that becomes an array, as it is going to change."""
    note_changed(listing)
    items = list(list.__iter__(listing))
    current().root.cache.setdefault(_GROWN, []).append((listing, items))
    list.clear(listing)


def _are_tuples(samples) -> bool:
    first = samples[-1]
    if not isinstance(first, tuple) or not first:
        return False
    return all(type(each) is type(first) and len(each) == len(first) for each in samples)


def _fill_columns(listing, samples):
    columns = []
    for parts in zip(*samples, strict=True):
        columns.append(born(Listing(parts[:-1])))
        _fill(columns[-1], parts[-1])
    _empty(listing)
    listing.array = Columns(type(samples[-1]), tuple(columns))


def _number_of(row):
    """A number as a row has them; a list that a loop fills is of a block that may be over."""
    if native.is_python(row):
        return list.__getitem__(row, 0)
    return _number_of(row.lists[0]) if row.is_picked else np.zeros((), row.array.dtype)[()]


def _fill_rows(listing, samples):
    if not all(map(_is_of_numbers, samples)):
        message = (
            f"{here()}: a loop appends a list to a list, which may be a list of numbers, and no "
            f"empty one: fill it before it is appended, or make lists before the loop, as [[0.0] * "
            f"m for _ in range(n)], and assign their items"
        )
        raise invalid("list_items", message)
    last, columns = samples[-1], (born(Listing()), born(Listing()))
    for column in columns:
        _fill(column, np.int64(0))
    if isinstance(last, Row):
        numbers = last.numbers
    else:
        numbers = born(Numbers())
        _fill(numbers, native.plain(_number_of(last)))
    _empty(listing)
    listing.array = Rows(columns, numbers)
    for row in samples[:-1]:
        listing.array.append(row)


class ListResult:
    """A list that a loop filled, as a function gives it: a run puts a list in its place.

    Attributes
    ----------
    arrays : tuple
        One of all items that are numbers or arrays; of tuples one for each part; of lists their
        numbers, where each begins, and how many it has.
    kind : type or None
        Of items that are tuples or lists.
    """

    def __init__(self, arrays, kind):
        self.arrays, self.kind = arrays, kind


def list_result(listing) -> ListResult:
    """What a function gives for a list that is an array."""
    filled = listing.array
    if not listing.is_of_tuples:
        return ListResult((listing.stacked(),), None)
    arrays = tuple(column.stacked() for column in filled.columns)
    if isinstance(filled, Rows):
        arrays = (filled.numbers.stacked(), *arrays)
    return ListResult(arrays, filled.kind)


_as_arrays = ContextVar("nbta lists as arrays", default=False)


@contextmanager
def lists_as_arrays():
    """Within it a run gives the arrays of a `ListResult`, for callers that are compiled code."""
    token = _as_arrays.set(True)
    try:
        yield
    finally:
        _as_arrays.reset(token)


def _of_run(kind, arrays):
    if any(isinstance(each, Tensor) for each in arrays):
        return ListResult(arrays, kind)
    if _as_arrays.get():
        return arrays[0] if kind is None else arrays
    if kind is None:
        return list(arrays[0])
    if kind is list:
        numbers, starts, counts = arrays
        return [list(numbers[k : k + n]) for k, n in zip(starts, counts, strict=True)]
    items = zip(*arrays, strict=True)
    return list(items) if kind is tuple else [kind(*item) for item in items]


classes.add(ListResult, (lambda result: (result.arrays, result.kind), _of_run))


def growing(place, old) -> Grows | None:
    """Why a place of a loop is to be an array: it is a list that an iteration makes longer."""
    owner = place.owner
    if not isinstance(place, Whole) or not isinstance(owner, Listing) or owner.array is not None:
        return None
    now = place.value
    if len(now) <= len(old):
        return None
    last = now[-1] if isinstance(now, tuple) else list.__getitem__(now, -1)
    return Grows(owner, last if isinstance(last, list) else native.plain(last))
