"""Items of Python's lists at places that only the run knows.

A list that no loop of the graph makes longer stays Python's: its items are chosen one by one, so
that each operation takes as long as the list. Loops carry numbers that are assigned as one tensor,
and capture numbers that are read as one (`nbta.frontend.native.together`).
"""

from __future__ import annotations

import itertools

import numpy as np

from nbta.errors import PerformanceWarning, UnimplementedError, invalid, out_of_range
from nbta.frontend import control, effects, iteration, native
from nbta.frontend.array_wrappers import (
    ArrayWrapper,
    Item,
    born,
    common_read_only,
    link,
    made,
    note_place,
)
from nbta.frontend.constants import are_constants, one_of_constants
from nbta.frontend.containers import fill, put_item
from nbta.frontend.identity import called_by_python
from nbta.frontend.lists import Listing, Row, bases_of
from nbta.frontend.maybe import is_number
from nbta.frontend.outside import reading
from nbta.frontend.problems import at_line, here
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.locations import warn_caller
from nbta.ops.core.arithmetic import equal, greater_equal, less, logical_and, where
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import cast
from nbta.ops.indexing.items import GETITEM, getitem, set_item
from nbta.ops.indexing.joining import stack
from nbta.tuning import TOGETHER_ITEMS


def is_run_place(key) -> bool:
    """Whether a key is a number that only the run knows."""
    return isinstance(key, Tensor) and key.weak is None


#: Among more lists than these a change or a read is told to be slow, or is refused: it is a branch
#: for each of them, and a loop is traced again for each list that it fills. Compiling a gradient
#: takes 8 s for 8 lists, tracing it 9 s for 16 and 40 s for 32.
MANY, MOST = 16, 64


class Picked(Listing):
    """One of several lists, which only the run knows.

    What is read of it is chosen among items of all, and a change is a branch for each. So it holds
    nothing itself, and is no list of which Python knows the items.

    Parameters
    ----------
    lists : list of list
    place : Tensor
        Which one.
    """

    array, slots, guard = "one of several lists", None, None
    is_of_tuples, is_picked = False, True

    def __init__(self, lists, place):
        super().__init__()
        if any(isinstance(each, Picked) for each in lists):
            lists, indices = bases_of(lists)
            place = stack([index() for index in indices])[place]
        self.lists, self._place = lists, place

    @property
    def place(self):
        """Which one."""
        return self._place

    def _chosen(self, take, first=0, stop=None):
        """What is taken of the list of this run, by a tree of branches."""
        if stop is None:
            self._tell_of_many()
            stop = len(self.lists)
        if stop - first == 1:
            return take(self.lists[first])
        middle = (first + stop) // 2
        return control.either(
            less(self._place, middle),
            lambda: self._chosen(take, first, middle),
            lambda: self._chosen(take, middle, stop),
        )

    def _tell_of_many(self):
        count = len(self.lists)
        if count <= MANY:
            return
        message = (
            f"{here()}: an index that only the run knows chooses among {count} lists, and each use "
            f"is a branch for each of them; a 2-D array with a count for each row takes any number"
        )
        if count > MOST:
            raise UnimplementedError(message)
        warn_caller(message, PerformanceWarning)

    def _is_even(self):
        """Whether all lists are Python's and of one length."""
        return all(map(native.is_python, self.lists)) and len(set(map(len, self.lists))) == 1

    @property
    def length(self):
        """How many items it has."""
        if self._is_even():
            return len(self.lists[0])
        return self._chosen(lambda each: _length(each))

    def item(self, key):
        """The item at an index."""
        if isinstance(key, slice):
            return self.part(key)
        if is_run_place(key) and all(map(_is_of_lists, self.lists)):
            return self._of_nested(key)
        if not self._is_even():
            return self._chosen(lambda each: _item(each, key))
        if all(map(_is_of_numbers, self.lists)) and not isinstance(key, bool):
            items, place = self._in_a_row(key)
            return made(_together(items))[place]
        if not is_run_place(key):
            return item_at([each[native.plain(key)] for each in self.lists], self._place)
        return self._chosen(lambda each: _item(each, key))

    def _in_order(self):
        return itertools.chain.from_iterable(self.lists)

    def _in_a_row(self, key):
        """The items of all lists, which are of one length, and the place of one among them."""
        key = as_tensor(native.plain(key))
        place = self._place * len(self.lists[0]) + _place(self.lists[0], key)
        return list(self._in_order()), place

    def _of_nested(self, key):
        """The list at an index, of lists of lists: one of all that these hold."""
        held = [inner for each in self.lists for inner in each]
        counts = [len(each) for each in self.lists]
        firsts = [sum(counts[:k]) for k in range(len(counts))]
        key, count = as_tensor(native.plain(key)), item_at(counts, self._place)
        _check_integer(self, key)
        place = where(less(key, 0), key + count, key)
        error = IndexError(f"{here()}: list index out of range")
        effects.check(logical_and(greater_equal(place, 0), less(place, count)), error)
        return born(Picked(held, item_at(firsts, self._place) + place))

    def put(self, key, value):
        """Assign an item."""
        _check_few_constants(self, value, sum(map(_counted, self.lists)))
        even = not isinstance(key, slice) and self._is_even() and self._are_others()
        if not even or _dtype_together(list(self._in_order()), value) is None:
            return self._change(lambda each: _put(each, key, value))
        self._check_own()
        found = iter(_changed_together(*self._in_a_row(key), value))
        for values in self.lists:
            _replace(values, [next(found) for _ in values])
        return None

    def _are_others(self):
        """Whether no list is there twice."""
        return len(set(map(id, self.lists))) == len(self.lists)

    def _check_own(self):
        if any(reading() is not None and reading().holds(each) for each in self.lists):
            self.refuse("a change")

    def _change(self, change):
        self._check_own()

        def changed(each):
            change(each)
            return 0

        self._chosen(changed)

    def stack(self):
        """All items as a tensor."""
        return native.plain(self.stacked())

    def stacked(self):
        """All items as one array."""
        if self._is_even():
            return _table(self.lists)[self._place]
        return self.copy().stacked()

    def __iter__(self):
        if not isinstance(self.length, int):
            self.refuse("a loop of Python's own")
        return iter([self.item(place) for place in range(self.length)])

    def delete(self, key):
        """``del`` of an item."""
        self._change(lambda each: each.pop(key))

    def pop(self, index=-1):
        """Take an item off."""
        return self._chosen(lambda each: each.pop(index))

    def check(self):
        """Nothing, as its items are those of the lists."""

    def refuse(self, what):
        """Say what cannot be done."""
        raise UnimplementedError(
            f"{here()}: {what} of a list that is chosen by an index that only the run knows; "
            f"append, extend, insert, pop, del, reverse, clear, len, items read and assigned, "
            f"slices read, loops over it and np.array(list) are possible; a 2-D array with a count "
            f"for each row takes all others"
        )


def _changing(name):
    def change(self, *args, **options):
        self._change(lambda each: getattr(each, name)(*args, **options))

    return change


for _name in ("append", "extend", "insert", "reverse", "clear", "sort"):
    setattr(Picked, _name, _changing(_name))


def _counted(values):
    return len(values) if native.is_python(values) else 0


def _table(lists):
    """Lists of one length as an array with a row for each."""
    rows = list(map(list, lists))
    return ArrayWrapper(np.array(rows)) if native.is_known(rows) else made(native.together(rows))


def _length(values):
    return len(values) if native.is_python(values) else values.length


def _item(values, key):
    if not native.is_python(values):
        return values.item(key)
    return item_at(values, key) if is_run_place(key) else _known_item(values, native.plain(key))


def _known_item(values, key):
    try:
        return values[key]
    except IndexError as error:
        raise at_line(error) from None


def _put(values, key, value):
    if not native.is_python(values):
        return values.put(key, value)
    if is_run_place(key):
        return set_item_at(values, key, value)
    key = native.plain(key)
    if isinstance(key, slice):
        raise UnimplementedError(
            f"{here()}: a slice is assigned to a list that is chosen by an index that only the run "
            f"knows; assign the items one by one"
        )
    _known_item(values, key)  # which says that there is none
    key += len(values) if key < 0 else 0
    note_place(Item(values, key))
    put_item(values, key, value)
    return control.follow(values, key)


def _is_of_lists(values):
    return native.is_python(values) and all(isinstance(each, list) for each in values)


def _is_of_numbers(values):
    return all(map(is_number, values))


def _of_parts(values, place):
    """The tuple at a place, of tuples of one kind and length: each part is chosen by itself."""
    kind = type(values[0])
    if any(type(each) is not kind or len(each) != len(values[0]) for each in values):
        message = (
            f"{here()}: an index that only the run knows chooses one of tuples of several lengths "
            f"or kinds; let them have one length, or use arrays"
        )
        raise invalid("index", message)
    parts = [item_at(list(part), place) for part in zip(*values, strict=True)]
    return tuple(parts) if kind is tuple else kind(*parts)


def item_at(values, key):
    """``values[key]``, of a list also for a slice."""
    if isinstance(key, slice):
        return _part(values, key)
    _check_integer(values, key)
    if key.dtype.kind == "b":
        key = cast(as_tensor(key), np.int64)
    if isinstance(values, list | tuple) and values:
        if all(isinstance(each, list) for each in values):
            return born(Picked(list(values), _place(values, key)))
        if all(isinstance(each, tuple) for each in values):
            return _of_parts(values, _place(values, key))
    if isinstance(values, str | list | tuple) and values and are_constants(values):
        return one_of_constants(list(values), _place(values, key))
    _check_alike(values)
    if not native.is_known(values):
        return _linked(made(_together(values))[key], values)
    found = np.asarray(values)
    if found.dtype.kind in "OSU":  # a text, too
        message = (
            f"{here()}: an index that only the run knows chooses an item of a "
            f"{type(values).__name__} whose items are not all numbers; use an array, or loop by "
            f"nbta.unroll(range(...))"
        )
        raise invalid("index", message)
    fixed = (
        f"{here()}: only the run knows which item of a list is changed; use an array, such as "
        f"np.zeros makes it"
    )
    return ArrayWrapper(found, fixed=fixed)[key]


def _check_alike(values):
    """Refuse to choose among what is neither numbers nor arrays of one shape."""
    if isinstance(values, str | bytes):
        return
    alike = all(is_number(each) or isinstance(each, Tensor | np.ndarray) for each in values)
    ranks = {np.ndim(each) if not isinstance(each, Tensor) else each.spec.rank for each in values}
    shapes = {each.spec.shape for each in values if isinstance(each, Tensor) and _is_full(each)}
    dtypes = {native.dtype_of(each) for each in values} if alike and ranks != {0} else ()
    if alike and len(ranks) < 2 and len(shapes) < 2 and len(dtypes) < 2:
        return
    kinds = sorted({called_by_python(each) for each in values})
    several = "shapes" if len(ranks) > 1 or len(shapes) > 1 else "dtypes"
    what = f"arrays of several {several}" if alike else " and ".join(kinds)
    message = (
        f"{here()}: an index that only the run knows chooses an item of a "
        f"{called_by_python(values)} of {what}; such items can be numbers, arrays of one shape "
        f"and dtype, lists or tuples: use an array with a row for each, or loop by "
        f"nbta.unroll(range(...))"
    )
    raise invalid("index", message)


def _is_full(tensor):
    """Whether all lengths of a tensor are integers."""
    shape = tensor.spec.shape
    return shape is not None and all(type(each) is int for each in shape)


def _check_integer(values, key):
    """Refuse what is not an index, as Python does."""
    if key.dtype.kind not in "iub" or key.spec.rank:
        kind, given = called_by_python(values), called_by_python(key)
        raise TypeError(f"{here()}: {kind} indices must be integers or slices, not {given}")


def _part(values, key):
    """A new list of the items of a slice whose bounds only the run knows."""
    if not _is_of_numbers(values):
        message = (
            f"{here()}: only the run knows the bounds of a slice of a list whose items are not all "
            f"numbers; use an array, or a loop that appends the items to a list"
        )
        raise invalid("index", message)
    return iteration.part_of(values, key)


def _linked(found, values):
    """A copy of one of several arrays, of which nobody may change one and look at another."""
    if not isinstance(found, ArrayWrapper):
        return found
    for each in values:
        if isinstance(each, ArrayWrapper):
            link(found.root, each.root)
    found.read_only = common_read_only(values)
    return found


def _place(values, key):
    """A place counted from the first item, which a run fails for where there is none."""
    _check_integer(values, key)
    count, key = len(values), as_tensor(native.plain(key))
    message = f"{here()}: an index is out of range for a list of {count} items"
    holds = logical_and(greater_equal(key, -count), less(key, count))
    effects.check(holds, out_of_range(message))
    return where(less(key, 0), key + count, key)


_KINDS = {"b": "truth values", "i": "integers", "u": "integers", "f": "floats", "c": "complex"}


def check_keeps_kind(values, value) -> None:
    """Refuse to assign a number that Numba would cast to what a list holds, such as 2.5 to 2.

    Raises
    ------
    UnimplementedError
        For a float in a list of integers, and others of a higher kind than all items have.
    """
    if not is_number(value):
        return
    kinds = _kinds(values)
    order = "".join(_KINDS)
    if not kinds or order.index(_kind(value)) <= max(map(order.index, kinds)):
        return
    have = _KINDS[max(kinds, key=order.index)]
    if have == _KINDS[_kind(value)]:
        return
    raise UnimplementedError(
        f"{here()}: a number of {_KINDS[_kind(value)]} is assigned to an item of a list of {have}, "
        f"to which Numba casts it; let the list begin with such numbers, as [0.0] * n does, or "
        f"cast the number"
    )


def _kinds(values):
    """The kinds of the numbers in a list; none for a list of other things."""
    if isinstance(values, Picked):
        return [kind for each in values.lists for kind in _kinds(each)]
    if isinstance(values, Row):
        return _kinds(values.numbers)
    if isinstance(values, Listing) and values.array is not None:
        return [np.dtype(values.array.dtype).kind] if not values.is_of_tuples else []
    return [_kind(each) for each in values] if _is_of_numbers(values) else []


def _kind(number):
    return (number.dtype if hasattr(number, "dtype") else np.asarray(number).dtype).kind


def set_item_at(values, key, value) -> None:
    """``values[key] = value``."""
    _check_few_constants(values, value, len(values))
    place, items = _place(values, key), list(values)
    if any(isinstance(each, Picked) for each in (value, *items)) and _are_lists((value, *items)):
        bases, (*old, new) = bases_of([*items, value])
        new = new()
        found = (where(equal(place, k), new, index()) for k, index in enumerate(old))
        return _replace(values, [born(Picked(bases, index)) for index in found])
    found = _changed_together(items, place, value)
    if found is None:
        found = (control.value_of(equal(place, k), value, old) for k, old in enumerate(items))
    return _replace(values, found)


def _are_lists(values):
    return all(isinstance(each, list) for each in values)


def _check_few_constants(values, value, count):
    """Refuse to choose among many texts or None, each of which would be a variable."""
    if count > TOGETHER_ITEMS and are_constants([value]):
        raise UnimplementedError(
            f"{here()}: only the run knows which item of a {called_by_python(values)} of {count} "
            f"becomes {control.described(value)}; write numbers for texts, into a list or an array"
        )


def _replace(values, items):
    """Let a list have other items."""
    for k, item in enumerate(items):
        note_place(Item(values, k))
        put_item(values, k, item)
        control.follow(values, k)


def _dtype_together(items, value):
    """The dtype of a tensor in which one of some items can be assigned; None where none is to be.

    Of few items each is chosen by itself, and so are items of several dtypes.
    """
    if len(items) < TOGETHER_ITEMS or not (is_number(value) and all(map(is_number, items))):
        return None
    dtypes = {control.common_dtype(value, each) for each in items}
    return dtypes.pop() if len(dtypes) == 1 else None


def _changed_together(items, place, value):
    """Items of a list after one of them was assigned in a tensor; None where it is not to be one.

    A loop carries the tensor then (`nbta.control.item_variables`).
    """
    dtype = _dtype_together(items, value)
    if dtype is None:
        return None
    plain = [control.in_dtype(native.plain(each), dtype) for each in (value, *items)]
    table = set_item(_together(plain[1:]), place, plain[0])
    return [getitem(table, k) for k in range(len(items))]


def _together(items):
    """Items as one tensor: the one that they are taken from, if it has these alone and in order."""
    found = _taken_from(items)
    return native.together(items) if found is None else found


def _taken_from(items):
    first = items[0] if items else None
    if type(first) is not Tensor or first.op.record is not GETITEM:
        return None
    table = first.op.inputs[0]
    if table.graph is not current() or table.spec.shape != (len(items),):
        return None
    held = (
        type(each) is Tensor
        and each.op.record is GETITEM
        and each.op.inputs[0] is table
        and each.op.attrs["key"] == (k,)
        for k, each in enumerate(items)
    )
    return table if all(held) else None


def delete_item_at(values, key) -> None:
    """``del values[key]``."""
    place, items = _place(values, key), list(values)
    pairs = enumerate(itertools.pairwise(items))
    fill(values, [control.value_of(less(k, place), *pair) for k, pair in pairs])
