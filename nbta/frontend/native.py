"""Operations on what boxes hold: NumPy's where Python knows all values, nbta's elsewhere."""

from __future__ import annotations

from collections import deque

import numpy as np

from nbta.classes import node_of
from nbta.dtypes import as_plain
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.dispatch import OF_NUMPY, nearest, sensible, strange
from nbta.ops.joining import stack
from nbta.ops.shaping import cast, shape_of
from nbta.symbolic import SymbolicTensorArray


def is_known(value) -> bool:
    """Whether Python knows a value, and all in it."""
    if isinstance(value, list | tuple | deque):
        return is_python(value) and all(map(is_known, value))
    if isinstance(value, slice):
        return is_known((value.start, value.stop, value.step))
    if isinstance(value, dict):
        return all(map(is_known, value.values()))
    if (node := node_of(value)) is not None:
        return is_known(node.parts)
    if isinstance(value, Tensor):
        return bool(getattr(value, "is_known", False))
    return not (isinstance(value, SymbolicTensorArray) or hasattr(type(value), "holds_array"))


def is_python(items) -> bool:
    """Whether a list has its items itself, and no loop of the graph fills it."""
    return getattr(items, "array", None) is None


def plain(value):
    """A value with what they hold in place of boxes."""
    if isinstance(value, Tensor):
        return value.content if hasattr(type(value), "content") else value
    if isinstance(value, list) and hasattr(value, "array"):
        if value.array is None:
            return list(map(plain, value))
        value.check()
        return value.stack()
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(plain, value))
    if getattr(type(value), "holds_array", False):
        return value.array
    if type(value) is slice:
        return slice(plain(value.start), plain(value.stop), plain(value.step))
    if type(value) is dict:
        return {key: plain(part) for key, part in value.items()}
    if (node := node_of(value)) is not None:
        parts = tuple(map(plain, node.parts))
        same = not node.is_value and all(
            one is other for one, other in zip(parts, node.parts, strict=True)
        )
        return value if same else node.packed(parts)
    return value


def together(values):
    """A list as an array."""
    if is_known(values):
        return as_plain("value", plain(values))
    return stack([together(v) if isinstance(v, list | tuple) else _item(plain(v)) for v in values])


def _item(value):
    """An item of a list: numbers of Python have dtypes there, as NumPy has it."""
    if isinstance(value, Tensor):
        return value if value.weak is None else value.in_dtype(value.dtype)
    return as_plain("value", value)


def is_integer(part) -> bool:
    """Whether a part of a key is one integer."""
    if isinstance(part, bool | np.bool_):
        return False
    if isinstance(part, Tensor):
        return part.spec.rank == 0 and part.dtype.kind in "iu"
    if isinstance(part, np.ndarray):
        return part.ndim == 0 and part.dtype.kind in "iu"
    return isinstance(part, int | np.integer) or hasattr(part, "__index__")


def settled(value, dtype):
    """A value that goes into an array, in the array's dtype where that loses no kind."""
    if isinstance(value, list | tuple) and not is_known(value):
        value = together(value)
    have = getattr(value, "dtype", None)
    other = isinstance(value, Tensor) and value.weak is None and have != dtype
    return cast(value, dtype) if other and np.can_cast(have, dtype, "same_kind") else value


def method(name, array, args, options):
    """A method of an array."""
    if is_known((array, args, options)):
        with np.errstate(all="ignore"):
            return getattr(array, name)(*args, **options)
    function, _ = OF_NUMPY.get(name, (None, None))
    if name == "astype":
        return cast(array, *args)
    function = getattr(Tensor, name, function)
    if function is None:
        what = f".{name}() of an array that only the run knows: nbta has no such operation"
        raise invalid("symbolic", f"{what}; {nearest(name)}")
    options = sensible(options)
    unknown = strange(function, (array, *args), options)
    if unknown:
        message = f".{name}() of an array that only the run knows takes no argument {unknown}"
        raise invalid("symbolic", f"{message}; leave it out, or give it by name")
    return function(array, *args, **options)


def length(array):
    """The extent of the first axis."""
    extents = array.shape
    return extents[0] if extents is not None else shape_of(array)[0]
