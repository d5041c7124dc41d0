"""Lists of a traced function, which loops of the graph may fill.

A list is Python's until a loop or a branch that only the run decides appends to it. Then it is made
a `TensorArray`, in front of the outermost of these, and what is around is traced again.
"""

from __future__ import annotations

import copy

import numpy as np

from nbta.errors import UnimplementedError, invalid
from nbta.frontend import native
from nbta.frontend.boxes import Attribute, Box, born, boxed, in_trace, is_older, link, note_place
from nbta.frontend.containers import Whole, note_whole
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.arithmetic import where
from nbta.ops.dispatch import as_tensor
from nbta.ops.joining import arange, stack
from nbta.ops.numbers import Number
from nbta.ops.shaping import cast, reshape
from nbta.ops.sorting import sort
from nbta.symbolic import SymbolicTensorArray


class Grows(BaseException):
    """A list must be a `TensorArray` from before a loop on; no `Exception` that users catch."""

    def __init__(self, listing, sample):
        super().__init__("nbta traces the function again, as a list grows in a loop")
        self.listing, self.sample = listing, sample


class Stacked(BaseException):
    """A list that grows must note which item is below which, from before a loop on."""

    def __init__(self, listing):
        super().__init__("nbta traces the function again, as a list shrinks in a loop")
        self.listing = listing


class Listing(list):
    """A list that a traced function made.

    Attributes
    ----------
    array : SymbolicTensorArray or None
        Where its items are, once a loop of the graph appends to it.
    length : Tensor
        How many there are then.
    """

    array, _length = None, None
    below, top, used, guard = None, None, None, None
    #: Whether tuples that a loop gives are an error, as for a comprehension that Python can make.
    numbers_only = False

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
        if isinstance(value, Box):
            self._share(value)
        value = native.plain(value)
        dtype = self.array.dtype
        value = cast(as_tensor(value), dtype) if _dtype(value) != dtype else value
        place = self.length if self.below is None else self.used
        if self.below is not None:
            self._hold("below", self.below.write(place, self.top))
            self._hold("top", place)
            self._hold("used", place + 1)
        self._hold("array", self.array.write(place, value))
        self._hold("length", self.length + 1)
        return None

    def _share(self, box):
        """Note that an array is an item: where it is changed, so is the item, which is a copy."""
        if self.guard is None:
            self.guard = Box(np.zeros(1), "an item of a list")
            self.guard.serial = 0  # older than any block
        link(self.guard, box.root)

    def check(self):
        """Refuse to read items of which an array was changed."""
        if self.guard is not None and self.guard.spoiled is not None:
            raise invalid("spoiled_array", f"{here()}: {self.guard.spoiled}")

    def _hold(self, name, value):
        note_place(Attribute(self, name))
        setattr(self, name, value)

    def stack_up(self):
        """Note for each item which one is below it, so that the last can be taken off.

        Slots of arrays are written once: what is appended behind a pop has a slot of its own.
        """
        indices = arange(self.length)
        below = SymbolicTensorArray(
            np.int64, self.length, True, False, "below", element_shape=()
        ).unstack(indices - 1)
        self._hold("below", below)
        self._hold("top", self.length - 1)
        self._hold("used", self.length)

    def pop(self, index=-1):
        """Take the last item off."""
        if self.array is None:
            if in_trace(self):
                raise Grows(self, self[-1] if len(self) else 0.0)
            note_whole(self)
            return super().pop(index)
        if type(index) is not int or index != -1:
            self.refuse(".pop() of another item than the last")
        if self.is_of_tuples:
            return self.array.each(lambda column: column.pop())
        if self.below is None:
            if is_older(self):
                raise Stacked(self)
            self.stack_up()
        self.check()
        found = self.array.read(self.top)
        self._hold("top", self.below.read(self.top))
        self._hold("length", self.length - 1)
        return boxed(found)

    def append(self, value):
        """Add an item."""
        if self.array is not None:
            return self._write(value)
        if in_trace(self):
            raise Grows(self, native.plain(value))
        note_whole(self)
        return super().append(value)

    def __iadd__(self, values):
        if isinstance(values, Tensor | np.ndarray):  # NumPy adds numbers then
            return NotImplemented
        self.extend(values)
        return self

    def place_of(self, key):
        """The slot for an index."""
        if isinstance(key, slice):
            self.refuse("a slice")
        if self.below is not None:
            if type(key) is int and key == -1:
                return self.top
            self.refuse("another item than the last")
        if native.is_known(key):
            return key if key >= 0 else self.length + key
        key = as_tensor(key)
        return where(key < 0, key + self.length, key)

    def item(self, key):
        """The item at an index."""
        if self.array is None:
            return list.__getitem__(self, key)
        if self.is_of_tuples:
            return self.array.each(lambda column: column.item(key))
        self.check()
        found = boxed(self.array.read(self.place_of(key)))
        if isinstance(found, Box):
            self._share(found)
        return found

    def stacked(self):
        """All items as one array."""
        if self.below is not None:
            self.refuse("all items")
        if self.is_of_tuples:
            return self.array.stack()
        self.check()
        found = self.array.stack()
        if isinstance(self.length, Number):
            found = reshape(found, (self.length, *found.shape[1:]))
        return boxed(found)

    def __iter__(self):
        if self.array is not None:
            self.refuse("a loop of Python's own")
        return super().__iter__()

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
            self.refuse("an assigned item")
        note_whole(self)
        super().__setitem__(key, value)

    def __delitem__(self, key):
        if self.array is not None:
            self.refuse("a deleted item")
        note_whole(self)
        super().__delitem__(key)

    def refuse(self, what):
        """Say what cannot be done once a loop fills the list."""
        raise UnimplementedError(
            f"{here()}: {what} of a list that a loop appends to, whose length only the run knows; "
            f"append, len, pop() of the last, single items, loops over it and np.array(list) are "
            f"possible, where nothing is popped"
        )


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

    def append(self, value):
        """Add a tuple."""
        if type(value) is not self.kind or len(value) != len(self.columns):
            self.columns[0].refuse(f"an item that is no tuple of {len(self.columns)}")
        for column, part in zip(self.columns, value, strict=True):
            column.append(part)

    def each(self, take):
        """A tuple of what is taken of each column."""
        found = tuple(take(column) for column in self.columns)
        return found if self.kind is tuple else self.kind(*found)

    def stack(self):
        """All items as one array, in which a tuple is a row."""
        rows = [native.plain(column.stacked()) for column in self.columns]
        dtype = np.result_type(*(row.dtype for row in rows))
        return boxed(stack([cast(row, dtype) for row in rows], 1))


def in_order(items, key=None, reverse=False) -> list:
    """Numbers in ascending or descending order, some of which only the run knows.

    Raises
    ------
    UnimplementedError
        For a key, or for arrays.
    """
    arrays = [item for item in items if getattr(item, "ndim", 0)]
    if key is not None or arrays:
        what = "arrays" if arrays else "values by a key"
        raise UnimplementedError(
            f"{here()}: {what} that only the run knows are not sorted in a list; np.argsort of an "
            f"array of their keys says which one comes first"
        )
    found = sort(native.together(items))
    order = range(len(items))
    return [found[k] for k in (reversed(order) if reverse else order)]


def _changing(name):
    method = getattr(list, name)

    def change(self, *args, **options):
        if self.array is not None:
            self.refuse(f".{name}()")
        note_whole(self)
        return method(self, *args, **options)

    return change


def _sort(self, *, key=None, reverse=False):
    """Put the items in order."""
    if self.array is not None:
        self.refuse(".sort()")
    note_whole(self)
    if native.is_known(list(self)):
        return list.sort(self, key=key, reverse=reverse)
    return list.__setitem__(self, slice(None), in_order(list(self), key, reverse))


Listing.sort = _sort
for _name in ("insert", "remove", "clear", "reverse"):
    setattr(Listing, _name, _changing(_name))


def _asking(name):
    method = getattr(list, name)

    def ask(self, *args):
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
    if isinstance(error, Stacked):
        error.listing.stack_up()
        return
    _fill(error.listing, error.sample)


def _fill(listing, sample):
    """Make a list an array, of what it holds and will be given."""
    items = [native.plain(each) for each in list.__iter__(listing)]
    samples = [*items, sample]
    if _are_tuples(samples) and not listing.numbers_only:
        return _fill_columns(listing, samples)
    if not all(
        isinstance(each, Tensor | np.ndarray | np.generic | int | float) for each in samples
    ):
        kinds = sorted({type(each).__name__ for each in samples})
        message = (
            f"{here()}: a loop appends {' and '.join(kinds)} to a list; it may append numbers and "
            f"arrays of one dtype; give each part of a tuple a list of its own"
        )
        raise invalid("list_items", message)
    dtype = np.result_type(*(_dtype(each) for each in samples))
    sample = native.plain(sample)
    rank = sample.ndim if isinstance(sample, Tensor) else np.ndim(sample)
    array = SymbolicTensorArray(
        dtype, 0, True, False, "list", element_shape=(None,) * rank, infer_shape=not rank
    )
    for k, each in enumerate(items):
        array = array.write(k, cast(as_tensor(each), dtype))
    list.clear(listing)
    listing.array, listing.length = array, as_tensor(np.int64(len(items)))
    return None


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
    list.clear(listing)
    listing.array = Columns(type(samples[-1]), tuple(columns))


def growing(place, old) -> Grows | None:
    """Why a place of a loop is to be an array: it is a list that a trip makes longer."""
    owner = place.owner
    if not isinstance(place, Whole) or not isinstance(owner, Listing) or owner.array is not None:
        return None
    now = place.value
    if len(now) <= len(old):
        return None
    return Grows(owner, native.plain(now[-1]))
