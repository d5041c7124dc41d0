"""Items of Python's lists at places that only the run knows.

A list that no loop of the graph makes longer stays Python's: its items are chosen one by one, so
that each operation takes as long as the list.
"""

from __future__ import annotations

import itertools

import numpy as np

from nbta.errors import invalid, out_of_range
from nbta.frontend import control, effects, native
from nbta.frontend.boxes import Box, Item, common_read_only, link, note_place
from nbta.frontend.calls import array
from nbta.frontend.containers import fill, put_item
from nbta.frontend.identity import called_by_python
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.arithmetic import equal, greater_equal, less, logical_and, where
from nbta.ops.dispatch import as_tensor
from nbta.ops.shaping import cast


def is_run_place(key) -> bool:
    """Whether a key is a number that only the run knows."""
    return isinstance(key, Tensor) and key.weak is None


def item_at(values, key):
    """``values[key]``."""
    _check_integer(values, key)
    if key.dtype.kind == "b":
        key = cast(as_tensor(key), np.int64)
    if not native.is_known(values):
        return _linked(array(values)[key], values)
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
    return Box(found, fixed=fixed)[key]


def _check_integer(values, key):
    """Refuse what is not an index, as Python does."""
    if key.dtype.kind not in "iub" or key.spec.rank:
        kind, given = called_by_python(values), called_by_python(key)
        raise TypeError(f"{here()}: {kind} indices must be integers or slices, not {given}")


def _linked(found, values):
    """A copy of one of several arrays, of which nobody may change one and look at another."""
    if not isinstance(found, Box):
        return found
    for each in values:
        if isinstance(each, Box):
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


def set_item_at(values, key, value) -> None:
    """``values[key] = value``."""
    place = _place(values, key)
    for k, old in enumerate(list(values)):
        note_place(Item(values, k))
        put_item(values, k, control.value_of(equal(place, k), value, old))
        control.follow(values, k)


def delete_item_at(values, key) -> None:
    """``del values[key]``."""
    place, items = _place(values, key), list(values)
    pairs = enumerate(itertools.pairwise(items))
    fill(values, [control.value_of(less(k, place), *pair) for k, pair in pairs])
