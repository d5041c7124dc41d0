"""Items of Python's dicts, whose keys Python knows, at keys that only the run knows."""

from __future__ import annotations

import numpy as np

from nbta.frontend import control, effects
from nbta.frontend.array_wrappers import Item, born, note_place
from nbta.frontend.constants import Chosen
from nbta.frontend.containers import put_item
from nbta.frontend.identity import check_key
from nbta.frontend.list_items import Picked
from nbta.frontend.maybe import check_keys, is_number
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import equal, greater_equal, less_equal, logical_and, where
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.numbers import holds_text


def dict_item(values, key, *default):
    """``values[key]``, or ``values.get(key, default)``, of a dict: that of the key it equals."""
    check_keys(values, "an item at a key that only the run knows")
    if hasattr(type(values), "__missing__"):
        check_key(key, values)
    holds = [_is_key(key, each) for each in values]
    if not default:
        found = control.any_of(True, False, *(lambda each=each: each for each in holds))
        message = f"{here()}: the dict has no item for a key that this run looks up"
        effects.check(found, KeyError(message), "an item of a dict")
    pairs = [(test, values[each]) for each, test in zip(values, holds, strict=True)
             if test is not False]  # fmt: skip
    if not pairs:
        return default[0] if default else 0.0  # of a run that has failed
    if all(isinstance(each, list) for each in (*default, *(value for _, value in pairs))):
        return _picked(pairs, *default)
    chosen = default[0] if default else pairs.pop()[1]
    for test, value in reversed(pairs):
        chosen = value if test is True else control.value_of(test, value, chosen)
    return chosen


def set_chosen_item(values, key, value) -> None:
    """``values[key] = value`` for a key that is one of several constants, which the dict has."""
    if not all(constant in values for _, constant in key.code.options):
        check_key(key, values)
    for number, constant in key.code.options:
        new = control.value_of(key.holds(number), value, values[constant])
        note_place(Item(values, constant))
        put_item(values, constant, new)
        control.follow(values, constant)


def _picked(pairs, *default):
    """One of several lists, by truth values of which one holds at most."""
    lists = [*(value for _, value in pairs), *default]
    place = np.int64(len(lists) - 1)
    for k, (test, _) in enumerate(pairs):
        place = np.int64(k) if test is True else where(test, np.int64(k), place)
    return born(Picked(lists, as_tensor(place)))


def open_item(found, key):
    """The item of a key that the run may find a dict not to have: a run fails for then."""
    effects.check(found.parts.present, KeyError(f"{here()}: the dict has no item {key!r}"))
    return found.parts.value


def open_item_or(found, default):
    """The item of a key that the run may find a dict not to have, or a default."""
    return control.value_of(found.parts.present, found.parts.value, default)


def _is_key(key, known):
    """Whether a key is equal to one that Python knows."""
    if isinstance(key, tuple):
        if not isinstance(known, tuple) or len(key) != len(known):
            return False
        return control.both(
            True, True, *(lambda pair=pair: _is_key(*pair) for pair in zip(key, known, strict=True))
        )
    if isinstance(key, Chosen):
        return key.of_each(lambda constant: constant == known)
    if not isinstance(key, Tensor) or key.weak is not None or holds_text(key):
        return key == known
    if not is_number(known):
        return False
    if key.dtype.kind == "b":
        return equal(as_tensor(key), bool(known)) if known in (0, 1) else False
    return equal(as_tensor(key), int(known) if isinstance(known, bool) else known)


def is_in_range(value, items):
    """``value in items`` of a range of Python's."""
    if not is_number(value):
        return False
    low, high = min(items, default=0), max(items, default=-1)
    inside = logical_and(greater_equal(value, low), less_equal(value, high))
    return logical_and(inside, equal((value - low) % abs(items.step), 0))
