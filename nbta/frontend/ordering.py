"""`sorted`, `list.sort`, and `max` and `min` with a key, of what only the run knows.

Keys become columns of numbers: tuples have one for each part. Equal items keep their order, in
descending order too, and of equal extremes the first one is taken, as Python has it.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from nbta.errors import UnimplementedError
from nbta.frontend import conversion, effects, native
from nbta.frontend.containers import note_whole
from nbta.frontend.iteration import comprehension, elements, indexed, sorted_list
from nbta.frontend.list_items import item_at
from nbta.frontend.lists import Listing, Rows, listing
from nbta.frontend.maybe import is_number
from nbta.frontend.problems import here
from nbta.frontend.ranges import Indexed
from nbta.ops.axes.reductions import argmax, argmin
from nbta.ops.axes.sorting import argsort, lexsort, sort
from nbta.ops.core.arithmetic import greater, where
from nbta.ops.core.dispatch import FUNCTIONS, as_tensor
from nbta.ops.core.shaping import cast

_isnan = FUNCTIONS["isnan"]


def in_order(items, key=None, reverse=False) -> Listing:
    """A list of items in ascending or descending order.

    Raises
    ------
    UnimplementedError
        For arrays, objects and other things that are neither numbers nor tuples of these.
    """
    found = _counted_by_run(items)
    if found is None:
        return listing(_list_in_order(list(elements(items)), key, reverse))
    numbers = getattr(items, "ndim", None) == 1 or (_is_filled(items) and not items.is_of_tuples)
    if key is None and numbers:
        return sorted_list(items.stacked() if _is_filled(items) else items, reverse)
    given = comprehension(_identity if key is None else key, None, found)
    order = _order(_checked_columns(given), reverse)
    return comprehension(_identity, None, Indexed(found.count, lambda k: found.item(order[k])))


def _identity(item):
    return item


def _is_filled(items):
    return isinstance(items, Listing) and not native.is_python(items)


def _counted_by_run(items):
    """Items of which only the run knows how many there are, by their number; None for others."""
    is_list = isinstance(items, list | tuple) and native.is_python(items)
    found = None if is_list else indexed(items)
    return None if found is None or type(found.count) is int else found


def _list_in_order(items, key, reverse):
    if key is None and native.is_known(items):
        return sorted(items, reverse=reverse)
    keys = list(map(key, items)) if key is not None else _first_parts(items)
    if keys is not None and native.is_known(keys):
        places = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return [items[place] for place in places]
    if key is None and all(map(is_number, items)):
        found = sort(native.together(items))
        order = range(len(items))
        return [found[k] for k in (reversed(order) if reverse else order)]
    order = _order(_checked_columns(items if keys is None else keys), reverse)
    return [item_at(items, order[k]) for k in range(len(items))]


def _first_parts(items):
    """The first parts of tuples, of which no two are equal; else all there is, or None."""
    if not any(isinstance(item, tuple | list) for item in items):
        return None
    firsts = [item[0] for item in items if isinstance(item, tuple | list) and item]
    known = len(firsts) == len(items) and native.is_known(firsts)
    alike = known and any(one == other for one, other in itertools.combinations(firsts, 2))
    return items if alike or not known else firsts  # the rest decides, which the run knows


def _checked_columns(keys):
    found = _columns(keys)
    if found is None:
        is_of_arrays = native.is_python(keys) and any(getattr(key, "ndim", 0) for key in keys)
        what = "arrays" if is_of_arrays else "what is no number and no tuple of numbers,"
        raise UnimplementedError(
            f"{here()}: a list cannot be sorted by {what} that only the run knows; give key= a "
            "function that returns numbers"
        )
    return found


def _columns(keys):
    """Keys as columns of numbers, the first one compared first; None where they are none."""
    if not native.is_python(keys):
        return _columns_of_filled(keys)
    keys = list(keys)
    if all(map(is_number, keys)):
        return [_comparable(as_tensor(native.together(keys)))]
    if native.is_known(keys) and not any(getattr(key, "ndim", 0) for key in keys):
        return [as_tensor(_ranks(keys))]
    lengths = {len(key) if isinstance(key, tuple) else 0 for key in keys}
    if len(lengths) != 1 or lengths == {0}:
        return None
    return _joined(map(_columns, zip(*keys, strict=True)))


def _columns_of_filled(keys):
    if isinstance(keys.array, Rows):
        return None
    if keys.is_of_tuples:
        return _joined(map(_columns_of_filled, keys.array.columns))
    return [_comparable(native.plain(keys.stacked()))] if keys.array.element_shape == () else None


def _joined(groups):
    groups = list(groups)
    return None if None in groups else [column for group in groups for column in group]


def _comparable(column):
    return cast(column, np.int64) if column.dtype.kind == "b" else column


def _ranks(keys):
    """Integers in the order of what Python knows, such as texts."""
    values = sorted(set(keys))
    return np.array([values.index(key) for key in keys], np.int64)


def _order(columns, reverse):
    """The places of items in the order of their keys."""
    if reverse:
        columns = [column[::-1] for column in columns]
    order = argsort(columns[0]) if len(columns) == 1 else lexsort(columns[::-1])
    return columns[0].shape[0] - 1 - order[::-1] if reverse else order


def extreme_by(plain, items, key, default):
    """``max(items, key=key)`` or ``min(items, key=key)``; ``default`` may have what none give."""
    found, key = _counted_by_run(items), _identity if key is None else key
    if found is None:
        items = list(elements(items))
        if not items:
            return plain((), **default)
        keys = list(map(key, items))
        if native.is_known(keys):
            return items[plain(range(len(items)), key=keys.__getitem__)]
        return item_at(items, _extreme_place(plain, _checked_columns(keys)))
    error = ValueError(f"{here()}: {plain.__name__}() iterable argument is empty")
    effects.check(greater(as_tensor(found.count), 0), error)
    place = _extreme_place(plain, _checked_columns(comprehension(key, None, found)))
    return found.item(place)


def _extreme_place(plain, columns):
    """The place of the first of the largest or smallest keys; of NaN only the first one counts."""
    if len(columns) > 1:
        return _order(columns, reverse=plain is max)[0]
    (keys,) = columns
    find = argmax if plain is max else argmin
    if keys.dtype.kind != "f":
        return find(keys)
    nan = _isnan(keys)
    place = find(where(nan, keys.dtype.type(-np.inf if plain is max else np.inf), keys))
    return where(nan[0], 0, place)


def _sort(self, *, key=None, reverse=False):
    """Put the items in order."""
    key = None if key is None else functools.partial(conversion.runtime().call, key)
    if native.is_python(self):
        note_whole(self)
        found = _list_in_order(list(self), key, reverse)
        return list.__setitem__(self, slice(None), found)
    given = self if key is None else comprehension(key, None, Indexed(self.length, self.item))
    self.put_in_order(_order(_checked_columns(given), reverse))
    return None


Listing.sort = _sort
