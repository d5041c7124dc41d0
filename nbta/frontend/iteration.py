"""What `for` goes along: ranges and arrays whose lengths the run may tell, and what wraps them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from nbta.errors import InvalidArgumentError, NbtaError, UnimplementedError, invalid
from nbta.frontend import control, conversion, effects, native
from nbta.frontend.array_wrappers import ArrayWrapper, born, wrapped
from nbta.frontend.identity import called_by_python, is_run_number
from nbta.frontend.languages import is_numbas
from nbta.frontend.lists import Listing, listing
from nbta.frontend.maybe import check_keys, used
from nbta.frontend.outside import seen_by
from nbta.frontend.problems import here
from nbta.frontend.ranges import Indexed, Once, Range
from nbta.frontend.records import Records
from nbta.frontend.taken import advance, leave_sources, note_sources, note_taken
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.axes.sorting import sort
from nbta.ops.core.arithmetic import equal, floor_divide, less, maximum, minimum, not_equal, where
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import cast
from nbta.ops.numbers import Number
from nbta.tuning import LISTED_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Iterable

T = TypeVar("T")


class Unrolled:
    """Items for which Python makes each iteration; see `unroll`."""

    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def unroll(iterable: Iterable[T]) -> Iterable[T]:
    """Trace the iterations of a loop one by one, whatever their number.

    Parameters
    ----------
    iterable : iterable
        An iterable whose length is known while tracing, such as ``range(20)``.

    Returns
    -------
    iterable
        The same items.

    Examples
    --------
    A loop over a range of more than eight numbers is one loop of the graph, in which the number is
    a tensor. Here Python makes each iteration, and so may look into a list:

    >>> weights = [0.1 * k for k in range(12)]
    >>> @nbta.function
    ... def weighted(x):
    ...     total = 0.0
    ...     for k in nbta.unroll(range(12)):
    ...         total += weights[k] * x**k
    ...     return total
    >>> weighted(1.0)
    np.float64(6.6...)
    """
    return Unrolled(iterable)  # type: ignore[return-value] # it is gone along only


def range_(*bounds):
    """``range``."""
    if is_numbas():
        bounds = tuple(map(_as_numbas_bound, bounds))
    if not any(isinstance(bound, Tensor) for bound in bounds):
        return range(*bounds)
    start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if not isinstance(step, Tensor) and step == 0:
        raise ValueError("range() arg 3 must not be zero")
    for bound in bounds:
        if isinstance(bound, Tensor) and (bound.dtype.kind not in "iu" or bound.ndim):
            message = (
                f"{here()}: range() is given {bound.spec}; give it integers, such as int(value)"
            )
            raise invalid("dtype", message)
    return (
        _by_step(start, stop, step) if isinstance(step, Tensor) else Range(start, stop, int(step))
    )


def _as_numbas_bound(bound):
    """A bound as Numba takes it, which cuts fractions off: range(3.7) is range(3)."""
    if isinstance(bound, float | np.floating):
        return int(bound)
    if isinstance(bound, Tensor) and bound.dtype.kind == "f" and not bound.ndim:
        return cast(as_tensor(native.plain(bound)), np.int64)
    return bound


def _by_step(start, stop, step):
    """A range with a step that only the run knows."""
    start, stop, step = (as_tensor(native.plain(bound)) for bound in (start, stop, step))
    error = ValueError(f"{here()}: range() arg 3 must not be zero")
    effects.check(not_equal(step, 0), error)
    size = maximum(where(less(step, 0), -step, step), 1)
    left = where(less(step, 0), start - stop, stop - start)
    return Indexed(maximum(floor_divide(left + (size - 1), size), 0), lambda k: start + k * step)


def indexed(items):
    """Items that are found by their number; None for others."""
    if isinstance(items, Once) and items.begun is None:
        return items.items
    if isinstance(items, Indexed):
        return items
    if isinstance(items, range):
        return _PlainRange(items)
    if isinstance(items, Listing):
        if items.array is None:
            return None
        return Indexed(items.length, items.item, lambda: items.length)
    if isinstance(items, Records):
        return Indexed(items.shape[0], items.__getitem__)
    if isinstance(items, np.ndarray):
        items = ArrayWrapper(items)
    if isinstance(items, Tensor) and used(items).ndim:
        wrapper = items if isinstance(items, ArrayWrapper) else ArrayWrapper(items)
        return Indexed(wrapper.length, lambda k: wrapper[k])
    return None


def has_places(items) -> bool:
    """Whether its items are found by their number, and may be read once more."""
    return isinstance(items, list | tuple | range | np.ndarray | Tensor)


def run_range(items):
    """A range of Python's as one of which only the run may know the place; others as they are."""
    return _PlainRange(items) if isinstance(items, range) else items


class _PlainRange(Range):
    """A range of Python's."""

    def __init__(self, items):
        super().__init__(items.start, items.stop, items.step)
        self._items = items

    @property
    def count(self):
        return len(self._items)

    def item(self, k):
        return self._items[k] if type(k) is int else super().item(k)


def enumerate_(items, start=0):
    """``enumerate``."""
    items = items.rest() if isinstance(items, Yielding) else items
    found = indexed(items)
    if current() is None or found is None:
        return born(enumerate(one_by_one(items), start))
    note_taken(items, True)
    item = found.item
    return _once(found.count, lambda k: (k + start if start != 0 else k, item(k)), found.count_now)


def zip_(*columns, strict=False):
    """``zip``."""
    columns = [each.rest() if isinstance(each, Yielding) else each for each in columns]
    found = [indexed(column) for column in columns]
    if any(isinstance(column, Listing) and column.array is not None for column in columns):
        pairs = zip(found, columns, strict=True)
        found = [_by_place(column) if each is None else each for each, column in pairs]
    if current() is None or None in found or not found:
        return born(zip(*map(one_by_one, columns), strict=strict))
    counts = [each.count for each in found]
    if strict and native.is_known(counts) and len(set(counts)) > 1:
        return born(zip(*map(one_by_one, columns), strict=True))  # which says what is wrong
    if strict:
        _check_as_long(counts)
    now = [lambda f=f: f.count_now() if f.count_now else f.count for f in found]
    changes = any(each.count_now for each in found)
    for column in columns:
        note_taken(column, True)
    return _once(
        least(counts),
        lambda k: tuple(f.item(k) for f in found),
        (lambda: least([count() for count in now])) if changes else None,
    )


def _by_place(items):
    """A list of Python's beside one whose length only the run knows; None for others."""
    if not isinstance(items, list | tuple):
        return None
    return Indexed(len(items), lambda k: conversion.runtime().item(items, k))


def _check_as_long(counts):
    """Fail in a run in which the columns of ``zip(..., strict=True)`` differ in length."""
    first = counts[0]
    for place, count in enumerate(counts[1:], 2):
        if not _is_one_length(first, count):
            said = f"zip() argument {place} is shorter or longer than argument 1"
            holds = equal(as_tensor(count), as_tensor(first))
            effects.check(holds, ValueError(f"{here()}: {said}"))


def _once(*parts):
    """An iterator over items that are found by their number."""
    return born(Once(Indexed(*parts)))


def ndindex(*shape):
    """``np.ndindex``."""
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return _once(math.prod(shape), lambda k: _places(k, shape))


def ndenumerate(array):
    """``np.ndenumerate``."""
    wrapper = array if isinstance(array, ArrayWrapper) else ArrayWrapper(np.asarray(array))
    shape = wrapper.shape
    return _once(math.prod(shape), lambda k: (place := _places(k, shape), wrapper[place]))


def _places(k, shape):
    """The index along each axis of an item that is counted in C's order."""
    found = []
    for dimension in reversed(shape[1:]):
        found.append(k % dimension)
        k = k // dimension
    return (k, *reversed(found))[: len(shape)]


def least(counts):
    """The least of several lengths."""
    first = counts[0]
    for count in counts[1:]:
        if _is_one_length(first, count):
            continue
        if not isinstance(count, Tensor) and not isinstance(first, Tensor):
            first = min(first, count)
            continue
        first = minimum(as_tensor(first), as_tensor(count))
    return first


def _is_one_length(count, other):
    """Whether two are the length of one array."""
    numbers = isinstance(count, Number) and isinstance(other, Number)
    return numbers and count.source is not None and count.source is other.source


def reversed_(items):
    """``reversed``."""
    found = indexed(items)
    if found is None:
        return born(reversed(items))
    if isinstance(found, Range):
        return born(Once(_reversed_range(found)))
    return _once(found.count, lambda k: found.item(found.count - 1 - k))


def _reversed_range(items):
    if isinstance(items, _PlainRange):
        return _PlainRange(reversed_plain(items))
    if abs(items.step) == 1:
        step = items.step
        return Range(items.stop - step, items.start - step, -step)
    last = items.start + (items.count - 1) * items.step
    return Range(last, items.start - items.step, -items.step)


def reversed_plain(items):
    """A range of Python's, the other way round."""
    return items._items[::-1]


def settled(items):
    """The items of a generator expression as a list; others as they are."""
    return items.rest() if isinstance(items, Generator) else items


def own_items(items):
    """What a user's object gives to go along, by its ``__iter__``; others as they are."""
    found = None if current() is None else conversion.runtime().iterated(items)
    return settled(items if found is None else found)


def elements(items):
    """What Python can go along, in comprehensions and calls."""
    items = own_items(items)
    found = _of_array(items)
    return spent(items) if found is None else list(found)


def one_by_one(items):
    """What Python can go along, with items of arrays as they are when it comes to them."""
    given, items = items, own_items(items)
    if isinstance(given, Generator):  # all items, of which who asks for them may want a few
        note_taken(given, True)
    found = _of_array(items)
    return spent(items) if found is None else iter(found)


def spent(items):
    """What Python goes along: of an iterator no items are left, which cannot be put back."""
    check_keys(items, "the items")
    seen_by(items, "__iter__", "__getitem__")
    advance(items)
    return items


def searched(items):
    """What a search goes along that may end before the last item, but takes all."""
    if not isinstance(items, Iterator):
        return items
    advance(items)
    if isinstance(items, Once) and items.begun is None:
        found = Once(items.items)
    else:
        found = settled(items) if isinstance(items, Generator) else list(items)
    note_taken(items, True)
    return found


def items_of_search(make):
    """The items of a generator expression in ``any`` or ``all``, which may end before the last."""

    def is_early(found):
        return control.is_filled(found) or any(map(control.is_traced, found))

    return effects.early("any() or all()", make, is_early)


def _of_array(items):
    return indexed(items) if isinstance(items, Tensor | np.ndarray) else None


def comprehension(item, test, items, only_reads=False):
    """``[item(x) for x in items if test(x)]``.

    Where the items are ``only_reads``, of constants or variables, and are few numbers, they are a
    list as ``[0.0] * 16`` gives it: loops carry that as one tensor, with items in place.
    """
    items = own_items(items)
    if only_reads and test is None and isinstance(items, range) and len(items) <= LISTED_NUMBERS:
        found = list(map(item, items))
        if all(isinstance(each, int | float | complex | np.generic) for each in found):
            return listing(found)
    found = listing(())
    known = indexed(items)
    found.numbers_only = (
        known is None or type(known.count) is int or isinstance(known.count, Number)
    )
    try:
        _fill(found, item, test, items)
    except InvalidArgumentError as error:
        if error.reason != "list_items" or indexed(items) is None:
            raise
        return comprehension(item, test, list(elements(indexed(items))))
    count = known.count if known is not None else None
    if test is None and found.array is not None and isinstance(count, int | Number):
        # A number of the run says of the array what it is as long as.
        found.length = count if isinstance(count, Number) else as_tensor(np.int64(count))
    return found


class Items:
    """A generator expression or ``filter`` that a method is given, as a list of all items.

    The graph may make that by a loop, and a user's method is given an iterator over it.
    """

    def __init__(self, items):
        self.items = items

    def one_by_one(self):
        """An iterator over the items."""
        found = Generator(None, None, None)
        found._items = self.items
        return born(found)


class Inner:
    """What an iteration of a comprehension goes along, item by item, before the next iteration.

    It takes what `comprehension` does.
    """

    def __init__(self, item, test, items):
        self.parts = item, test, items


def nested(item, test, items):
    """A comprehension whose items are those of an `Inner` each."""
    found = listing(())
    _fill(found, item, test, items)
    return found


def _fill(found, item, test, items):
    """Append the items of a comprehension to a list."""

    def add(each):
        value = item(each)
        return _fill(found, *value.parts) if isinstance(value, Inner) else found.append(value)

    def body(each):
        if test is None:
            return add(each)
        return control.if_(test(each), lambda: add(each), lambda: None, (), _no_values, None)

    for_(own_items(items), body, _no_values, (), _no_values, None, _no_values)


def known_test(value):
    """What a comprehension asks of an item that Python makes, of which it must know the truth."""
    if control.is_traced(value) and not isinstance(value, Number):
        message = (
            f"{here()}: only the run knows which items this comprehension keeps; that is supported "
            f"in a list without `:=`, such as [v for v in items if v > 0]: write a `for` loop with "
            f"an `if` in place of a dict or a set"
        )
        raise invalid("symbolic", message)
    return value


def comprehension_by(by_python, by_loops):
    """A list comprehension of several ``for``, by Python, or by loops where only these can be."""
    if current() is None:
        return by_python()
    try:
        return control.or_undone(by_python)
    except NbtaError:
        return by_loops()


def listed(items):
    """``list(items)``; where only the run knows how many these are, a list that a loop fills."""
    items = own_items(items)
    found = indexed(items) if isinstance(items, Tensor | np.ndarray | Range) else None
    if found is not None and isinstance(found.count, Tensor):
        if isinstance(found.count, Number):
            found.count.ask_again()
        return comprehension(lambda each: each, None, items)
    return listing(list(elements(items)))


def repeated(items, number):
    """``items * number``, as often as only the run knows."""
    number = as_tensor(native.plain(number))
    if number.dtype.kind not in "iu":
        kind = type(number.dtype.type(0).item()).__name__
        raise TypeError(f"{here()}: can't multiply sequence by non-int of type {kind!r}")
    if isinstance(items, Listing) and items.array is not None:
        length = items.length
        return comprehension(lambda i: items.item(i % length), None, Range(0, length * number, 1))
    if not isinstance(items, list) or not all(map(_is_number, items)):
        message = (
            f"{here()}: a tuple, a string, or a list whose items are not all numbers is repeated a "
            f"number of times that only the run knows; use a list of numbers, an array, or a "
            f"comprehension"
        )
        raise UnimplementedError(message)
    if len(items) == 1:
        return comprehension(lambda i: items[0], None, Range(0, number, 1))
    values, length = wrapped(native.together(items)), len(items)
    return comprehension(lambda i: values[i % length], None, Range(0, length * number, 1))


def sorted_list(array, reverse):
    """The items of an array in ascending or descending order, as a list."""
    count, found = array.length, wrapped(sort(native.plain(array)))
    item = (lambda k: found[count - 1 - k]) if reverse else (lambda k: found[k])
    return comprehension(lambda each: each, None, Indexed(count, item))


def part_of(values, key):
    """A slice of a list of numbers of which Python knows how many there are, by run bounds."""
    array = wrapped(as_tensor(native.together(values)))
    return _part(Indexed(len(values), lambda k: array[k]), key)


def _is_number(value):
    return isinstance(value, int | float | complex | np.generic) or (
        isinstance(value, Tensor) and value.ndim == 0 and not isinstance(value, ArrayWrapper)
    )


class Generator:
    """What a generator expression with a condition gives, made when it is asked for."""

    def __init__(self, item, test, items):
        self._parts, self._items, self._taken = (item, test, items), None, 0

    def _made(self):
        advance(self)
        return comprehension(*self._parts) if self._items is None else self._items

    def rest(self):
        """All items that nobody has taken, so that none is left."""
        found, taken = self._made(), self._taken
        self._items, self._taken = listing(()), 0
        if not taken:
            return found
        if found.array is None:
            return listing(list(found)[taken:])
        return comprehension(found.item, None, Range(taken, found.length, 1))

    def take(self, *default):
        """The next item, or what is given for the case that there is none."""
        self._items, place = effects.early("next()", self._made), self._taken
        self._taken += 1
        leave_sources(self)
        found = self._items
        if found.array is None:
            return next(iter(list(found)[place:]), *default)
        there = found.length > place
        if default:
            return control.either(there, lambda: found.item(place), lambda: default[0])
        effects.check(there, invalid("index", f"{here()}: next() of a generator without items"))
        return found.item(place)

    def __iter__(self):
        return iter(self.rest())

    __next__ = take


class Yielding(Generator):
    """What a user's generator gives: a loop over it runs where the generator gives items."""

    #: Items that a list is made of, at most: a generator may go on for ever.
    most = 100_000

    def __init__(self, function, args, kwargs):
        super().__init__(None, None, None)
        self._run = lambda emit: function(emit, *args, **kwargs)

    def run(self, body, flags, *state):
        """Run the generator, and a loop's body for each item."""

        def emit(item):
            with control.yielding(around):
                body(item)
            return control.any_flag(flags())

        advance(self)
        around, run = control.yielded(), self._run
        self._run = lambda emit: None  # no items are left
        with control.yielding(state):
            run(emit)
        note_taken(self, control.any_flag(flags()))

    def rest(self):
        """All items as a list."""
        found, count = listing(()), 0

        def add(item):
            nonlocal count
            count += 1
            if count > self.most:
                message = (
                    f"{here()}: a generator of more than {self.most} items is made a list; write "
                    f"a for loop over it that ends by break"
                )
                raise UnimplementedError(message)
            found.append(item)

        self.run(add, _no_values, (), _no_values, None)
        return found

    def take(self, *default):
        """Refused: what the generator does after an item is done when the next is asked for."""
        message = (
            f"{here()}: next() of a generator: write a for loop over it, which may end by break, "
            f"or list(...)"
        )
        raise UnimplementedError(message)

    __next__ = take


def generator(item, test, items):
    """``(item(x) for x in items if test(x))``."""
    found = born(Generator(item, test, items))
    note_sources(found, [items])
    return found


def _no_values():
    return ()


def _extend(self, values):
    """Add items."""
    found = indexed(values)
    if current() is not None and found is not None and isinstance(found.count, Tensor):
        values = Indexed(found.count, found.item) if values is self else values  # as many as now
        return for_(values, self.append, _no_values, (), _no_values, None, _no_values)
    for value in list(elements(values)):
        self.append(value)
    return None


def _extend_together(self, values):
    """Add the numbers of a list: of many by a loop of the graph."""
    if native.is_python(values) and len(values) > control.UNROLLED:
        array = wrapped(as_tensor(native.together(values)))
        values = Indexed(as_tensor(np.int64(len(values))), lambda k: array[k])
    _extend(self, values)


def _joined(one, other):
    """A new list of the items of two."""
    if not isinstance(one, list) or not isinstance(other, list):
        return NotImplemented
    found = listing(())
    found.extend(one)
    found.extend(other)
    return found


def _part(self, key):
    """A new list of the items of a slice."""
    step = 1 if key.step is None else key.step
    if not isinstance(step, int) or step == 0:
        if type(step) is int:
            raise ValueError("slice step cannot be zero")
        self.refuse("a slice with a step that only the run knows")
    length = as_tensor(self.count if isinstance(self, Indexed) else self.length)
    low = 0 if step > 0 else -1
    high = length + low
    start, stop = (
        default if bound is None else _within(bound, length, low, high)
        for bound, default in ((key.start, low if step > 0 else high),
                               (key.stop, high if step > 0 else low))
    )  # fmt: skip
    return comprehension(self.item, None, Range(start, stop, step))


def _within(bound, length, low, high):
    """A bound of a slice, counted from the first item."""
    bound = as_tensor(native.plain(bound))
    return minimum(maximum(where(less(bound, 0), bound + length, bound), low), high)


Listing.part = _part
Listing.extend = _extend
Listing.extend_together = _extend_together
Listing.__add__ = _joined
Listing.__radd__ = lambda self, other: _joined(other, self)
Listing.copy = lambda self: _joined(self, listing(()))


def for_(items, body, flags, names, get, set_, changed):
    """A `for`."""
    names, get, set_ = control.with_yielded(names, get, set_)
    if isinstance(items, Yielding):
        return items.run(body, flags, names, get, set_)
    if current() is None:
        return control.native_for(settled(items), body, flags)
    found, place = items, None
    if isinstance(items, Generator):
        found, place = effects.acting(lambda: settled(items))
    try:
        by_python = _go_along(found, body, flags, names, get, set_, changed)
    except Exception as error:
        if control.is_caught(error):  # by a handler around the loop
            note_taken(items, True)
        raise
    ended = control.any_flag(flags())
    if place is not None and control.is_traced(ended):
        effects.refuse_early("a loop that ends early", place)
    return note_taken(items, ended, by_python)


def _go_along(items, body, flags, names, get, set_, changed) -> bool:
    """Trace a `for`; whether Python took item after item of what was given."""
    if is_run_number(items) and items.spec.rank == 0:
        raise TypeError(f"{here()}: {called_by_python(items)!r} object is not iterable")
    if isinstance(items, Undefined) or not is_iterable(items):
        iter(items)  # which says that it has none
    found = None if isinstance(items, Unrolled) else indexed(items)
    if found is None:
        endless = isinstance(items, itertools.cycle)
        control.guarded_iterations(_along(spent(items)), body, flags, names, get, set_, endless)
        return not isinstance(items, Listing)
    advance(items)

    def as_loop():
        state = names, get, set_, changed
        if isinstance(found, Range) and found.step in (1, -1):
            bounds = found.start, found.stop, found.step
            return control.counted_loop(*bounds, lambda k: k, body, flags, *state)
        # A range of longer steps, too: the compiler knows how many iterations a loop makes whose
        # counter goes up by one, and so makes vector instructions of it, and checks no index in it.
        stop = found.count_now or found.count
        return control.counted_loop(0, stop, 1, found.item, body, flags, *state)

    short = not isinstance(found.count, Tensor) and found.count <= control.UNROLLED
    if not (short and control.known_iterations(found, body, flags, get, set_, as_loop)):
        control.loop_or_iterations(found, body, flags, names, get, set_, as_loop)
    return False


def is_iterable(items):
    """Whether Python goes along something."""
    return hasattr(items, "__iter__") or hasattr(items, "__getitem__")


Undefined = control.Undefined


def _along(items):
    """What Python goes along, whose errors, such as of a dict that changes, are Python's."""
    # not `yield from`, which closes a generator with the loop
    for item in items:  # noqa: UP028
        yield item
