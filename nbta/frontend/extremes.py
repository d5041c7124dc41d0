"""Python's `max` and `min` of values that only the run knows.

They give the first of those that no later one is beyond. So a NaN stays where it comes first, and
is passed over elsewhere; of equal ones the first has all of the gradient. NumPy's differ in both.
"""

import numpy as np

from nbta.errors import invalid
from nbta.frontend import control, native, python_numbers
from nbta.frontend.array_wrappers import ArrayWrapper
from nbta.frontend.problems import here
from nbta.ops.axes import reductions
from nbta.ops.core.arithmetic import greater, less, maximum, minimum, where
from nbta.ops.core.dispatch import FUNCTIONS

_isnan = FUNCTIONS["isnan"]


def extreme_of(plain, items):
    """``max(items)`` or ``min(items)`` of a list."""
    found = items[0]
    for item in items[1:]:
        found = _further(plain, found, item)
    return found


def _further(plain, found, item):
    for each in (found, item):
        if isinstance(each, ArrayWrapper) and each.ndim:
            raise _of_arrays(plain)
    found, item = python_numbers.as_choices(_number(found), _number(item))
    if _kind(found) in "biu" and _kind(item) in "biu":
        chosen = (maximum if plain is max else minimum)(found, item)
        python_numbers.note(chosen, found, item)
        return chosen
    beyond = (greater if plain is max else less)(item, found)
    chosen = control.value_of(beyond, item, found)
    python_numbers.note(chosen, found, item)
    return chosen


def _number(value):
    value = native.plain(value)
    return value[()] if isinstance(value, np.ndarray) else value


def _kind(number):
    return (number.dtype if hasattr(number, "dtype") else np.asarray(number).dtype).kind


def _of_arrays(plain):
    name = plain.__name__
    message = (
        f"{here()}: {name}() compares arrays, which have no single truth value; write "
        f"np.{name}imum(a, b), or np.{name}(a)"
    )
    return invalid("symbolic", message)


def extreme_item(plain, items, default):
    """``max(items)`` or ``min(items)`` of an array, which must be a vector.

    ``default`` may have what Python gives for none of that name.
    """
    if items.ndim != 1:
        raise _of_arrays(plain)
    values = items.itself
    if values.spec.shape[0] == 0:
        return plain((), **default)
    if values.dtype.kind != "f":
        return (reductions.max if plain is max else reductions.min)(values)
    worst = values.dtype.type(-np.inf if plain is max else np.inf)
    numbers = where(_isnan(values), worst, values)
    place = (reductions.argmax if plain is max else reductions.argmin)(numbers)
    return where(_isnan(values[0]), values[0], values[place])
