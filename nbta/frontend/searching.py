"""`index`, `count`, `remove` and `==` of lists of which only the run knows the length or items."""

from __future__ import annotations

from nbta.errors import UnimplementedError
from nbta.frontend import conversion, effects, native
from nbta.frontend.iteration import comprehension
from nbta.frontend.lists import Listing
from nbta.frontend.problems import here
from nbta.frontend.ranges import Indexed, Range
from nbta.ops.axes.reductions import argmax
from nbta.ops.axes.reductions import sum as total_of
from nbta.ops.axes.truths import all as all_of
from nbta.ops.axes.truths import any as any_of
from nbta.ops.core.arithmetic import equal, logical_and, logical_not, where
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import INT64, cast


def _truths(items, test):
    """A truth value for each item, as a tensor."""
    return as_tensor(native.together(comprehension(test, None, items)))


def _places_of(items, value):
    """Whether each item is equal to a value."""
    is_item = conversion.runtime().is_item
    return _truths(Indexed(items.length, items.item), lambda each: is_item(value, each))


def count(self, value):
    """How many items are equal to a value."""
    if native.is_python(self):
        return list.count(self, value)
    return total_of(cast(_places_of(self, value), INT64))


def index(self, value, *bounds):
    """The place of the first item that is equal to a value; a run fails where there is none."""
    if native.is_python(self):
        return list.index(self, value, *bounds)
    if bounds:
        message = f"{here()}: index() between bounds of what only the run knows; give a slice"
        raise UnimplementedError(message)
    found = cast(_places_of(self, value), INT64)
    effects.check(any_of(found), ValueError(f"{here()}: the value is not in the list"))
    return argmax(found)


def _removing(of_python):
    def remove(self, value):
        if not native.is_python(self):
            self.pop(index(self, value))
        elif native.is_known((self, value)):
            of_python(self, value)
        else:
            runtime = conversion.runtime()
            runtime.delete_item(self, runtime.call(self.index, value))

    remove.__doc__ = "Take the first item off that is equal to a value."
    return remove


def _comparing(of_python, is_equal):
    def compare(self, other):
        lists = isinstance(other, list) and not (native.is_python(self) and native.is_python(other))
        if not lists or _is_empty(other):
            return of_python(self, other)
        same = _are_equal(self, other)
        return same if is_equal else logical_not(same)

    return compare


def _is_empty(value):
    return native.is_python(value) and not value


def _are_equal(one, other):
    runtime = conversion.runtime()
    lengths = [runtime.call(len, each) for each in (one, other)]
    same = equal(*map(as_tensor, lengths))

    def test(place):
        return runtime.is_item(runtime.item(one, place), runtime.item(other, place))

    items = Range(0, where(same, as_tensor(lengths[0]), 0), 1)
    return logical_and(same, all_of(_truths(items, test)))


Listing.count, Listing.index = count, index
Listing.remove = _removing(Listing.remove)
Listing.__eq__ = _comparing(Listing.__eq__, True)
Listing.__ne__ = _comparing(Listing.__ne__, False)
