"""Operations on what wrappers hold: NumPy's where Python knows all values, nbta's elsewhere."""

from __future__ import annotations

from collections import deque

import numpy as np

from nbta.classes import node_of
from nbta.dtypes import as_plain
from nbta.errors import invalid
from nbta.frontend.problems import at_line
from nbta.frontend.python_numbers import stored
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.core.checks import checked
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import OF_NUMPY, as_tensor, nearest, sensible, strange
from nbta.ops.core.numpy_arguments import check_choices
from nbta.ops.core.shaping import cast, shape_of
from nbta.ops.indexing.joining import stack
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
    if isinstance(value, np.ndarray):
        return input_of(value) is None
    return not (isinstance(value, SymbolicTensorArray) or hasattr(type(value), "holds_array"))


def input_of(array):
    """The tensor for an array from outside that is an input of the graph; None for others."""
    graph = current()
    outside = None if graph is None else graph.root.outside
    return None if outside is None else outside.tensor(array)


def is_python(items) -> bool:
    """Whether a list has its items itself, and no loop of the graph fills it."""
    return getattr(items, "array", None) is None


def plain(value):
    """A value with what they hold in place of wrappers."""
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
    found = input_of(value) if isinstance(value, np.ndarray) else None
    return value if found is None else found


def together(values):
    """A list as an array, also one that a loop of the graph fills."""
    if not is_python(values):
        return plain(values)
    if is_known(values):
        return as_plain("value", plain(values))
    items = [together(v) if isinstance(v, list | tuple) else _item(plain(v)) for v in values]
    return _stacked(items)


def _stacked(items):
    """Items as an array, made once in the innermost graph of one: loops capture that alone."""
    origins = [outside(item) if isinstance(item, Tensor) else item for item in items]
    graphs = {item.graph for item in origins if isinstance(item, Tensor)}
    around, having = current(), []
    while around is not None:
        having += [around] if around in graphs else []
        around = getattr(around, "outer", None)
    if not having or len(having) < len(graphs):
        return stack(items)  # a gradient has values of iterations, whose graphs are not around it
    graph = having[0]
    with graph.as_default(), graph.control_dependencies(None):
        tensors = list(map(as_tensor, origins))
        key = ("together", *tensors)
        if key not in graph.cache:
            graph.cache[key] = stack(tensors)
    return graph.cache[key]


def _item(value):
    """An item of a list: numbers of Python have dtypes there, as NumPy has it."""
    if isinstance(value, Tensor):
        return value if value.weak is None else value.in_dtype(value.dtype)
    return as_plain("value", value)


def dtype_of(value):
    """The dtype that a value has as an array."""
    return value.dtype if hasattr(value, "dtype") else np.asarray(plain(value)).dtype


def is_integer(part) -> bool:
    """Whether a part of a key is one integer."""
    if isinstance(part, bool | np.bool_):
        return False
    if isinstance(part, Tensor):
        return part.spec.rank == 0 and part.dtype.kind in "iu"
    if isinstance(part, np.ndarray):
        return part.ndim == 0 and part.dtype.kind in "iu"
    return isinstance(part, int | np.integer) or hasattr(part, "__index__")


def stored_by_cast(have, dtype) -> bool:
    """Whether an item of one dtype goes into an array of another only by NumPy's unsafe cast.

    Assigned items are cast so (``a[i] = 2.7`` of integers is 2); in-place operators are not. A
    complex number is not stored as a real one: Python refuses that, too.
    """
    numbers = np.dtype(have).kind in "biuf" and np.dtype(dtype).kind in "biuf"
    return numbers and not np.can_cast(have, dtype, "same_kind")


def settled(value, dtype):
    """A value that goes into an array, in the array's dtype by NumPy's rule for assigned items."""
    value = stored(value, np.dtype(dtype))
    if isinstance(value, list | tuple) and not is_known(value):
        value = together(value)
    if not isinstance(value, Tensor):
        have = np.asarray(value).dtype
        if not stored_by_cast(have, dtype):
            return value
        found = np.empty(np.shape(value), dtype)
        found[...] = value  # an error of NumPy's where it has one, as for NaN of Python's
        return found[()]
    have = value.dtype
    if value.spec.rank == 0 and have.kind in "iuf" and np.dtype(dtype).kind in "iu":
        value = _within(value, dtype)
    same_kind = value.weak is None and have != dtype and np.can_cast(have, dtype, "same_kind")
    return cast(value, dtype) if same_kind or stored_by_cast(have, dtype) else value


def _within(value, dtype):
    """A number that is stored as an integer, in a run that fails where NumPy's would.

    Signed integers take what they can hold; unsigned ones, as in Numba, drop upper bits.
    """
    have, limits = value.dtype, np.iinfo(dtype)
    if np.can_cast(have, dtype) or limits.min == 0:
        return value
    number = value if value.weak is None else value.in_dtype(have)
    one_less, one_more = float(limits.min) - 1.0, float(limits.max) + 1.0
    if have.kind == "f":
        low = number >= one_less if limits.bits == 64 else number > one_less
        holds = low & (number < one_more)
    else:
        ours = np.iinfo(have)
        holds = number >= max(limits.min, ours.min)
        holds = holds & (number <= min(limits.max, ours.max))
    return checked(number, holds, f"a number does not fit into an item of {np.dtype(dtype)}")


def check_method(name, array, options) -> None:
    """Raise what NumPy says of how a method is told to compute."""
    try:
        check_choices(getattr(np, name, None), options, (array,))
    except Exception as error:
        raise at_line(error) from None


def method(name, array, args, options):
    """A method of an array."""
    if is_known((array, args, options)):
        with np.errstate(all="ignore"):
            return getattr(array, name)(*args, **options)
    function, _ = OF_NUMPY.get(name, (None, None))
    check_method(name, array, options)
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
    """The dimension of the first axis."""
    dimensions = array.shape
    return dimensions[0] if dimensions is not None else shape_of(array)[0]
