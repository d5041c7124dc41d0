"""Methods of NumPy's universal functions: reduce, accumulate, reduceat, outer and at.

Sums and what else NumPy has a function for is that function; all others are loops over the first
axis, in plain Python that is followed as users' functions are. They compute in NumPy's order, in
the dtypes that NumPy resolves for the method.
"""

from __future__ import annotations

import inspect
import operator

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from nbta.errors import invalid
from nbta.frontend import conversion, native
from nbta.frontend.array_wrappers import ArrayWrapper, normalized_axes, wrapped
from nbta.frontend.picking import as_key
from nbta.frontend.problems import here
from nbta.ops.axes import reductions
from nbta.ops.special import softmax

#: Functions that reduce and accumulate as a universal function does.
_REDUCTIONS = {
    np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min,
    np.logical_and: np.all, np.logical_or: np.any,
}  # fmt: skip
_SCANS = {
    np.add: np.cumsum, np.multiply: np.cumprod,
    np.maximum: reductions.cummax, np.minimum: reductions.cummin,
}  # fmt: skip
#: Arguments that those take which do not take all.
_TAKEN = {
    np.max: {"initial", "where"}, np.min: {"initial", "where"}, np.all: {"where"},
    np.any: {"where"}, reductions.cummax: set(), reductions.cummin: set(),
}  # fmt: skip
_ALL = {"dtype", "initial", "where"}
#: Universal functions for which the order of several axes is no matter, beside those that have an
#: identity.
_REORDERABLE = (np.maximum, np.minimum, np.fmax, np.fmin)


def call_method(ufunc, name, args, kwargs, into):
    """A method of a universal function with values that only the run knows.

    Parameters
    ----------
    ufunc : numpy.ufunc
    name : str
    args : tuple
    kwargs : dict
    into : callable
        Leaves a result in the array of ``out=``.
    """
    method = METHODS_OF_UFUNCS[name]
    try:
        inspect.signature(method).bind(ufunc, into, *args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{here()}: np.{ufunc.__name__}.{name}(): {error}") from None
    return method(ufunc, into, *args, **kwargs)


def _call(function, *args, **kwargs):
    return conversion.runtime().call(function, *args, **kwargs)


def _array(value):
    """An array of a value."""
    found = value if isinstance(value, ArrayWrapper) else _call(np.asarray, value)
    return found if isinstance(found, ArrayWrapper) else wrapped(np.asarray(native.plain(found)))


def reduce(
    ufunc, into, array, axis=0, dtype=None, out=None, keepdims=False, initial=np._NoValue,
    where=True
):  # fmt: skip
    """``ufunc.reduce``."""
    array, out = _array(array), _alone(out)
    if dtype is None and out is not None:
        dtype = out.dtype
    axes = _axes(ufunc, array, axis)
    given = {"dtype": dtype, "initial": initial, "where": where}
    missing = {"dtype": None, "initial": np._NoValue, "where": True}
    given = {key: value for key, value in given.items() if value is not missing[key]}
    known = _REDUCTIONS.get(ufunc)
    fits = given.get("initial", 0) is not None and given.keys() <= _TAKEN.get(known, _ALL)
    if known is not None and fits:
        return into(_call(known, array, axis=axes, keepdims=keepdims, **given), out)
    if ufunc is np.logaddexp and not given and array.dtype.kind == "f":
        found = wrapped(softmax.logsumexp(array.itself, axis=axes, keepdims=bool(keepdims)))
        return into(found, out)
    takes = _resolved(ufunc, array, dtype, "reduce")
    found = _folded(ufunc, array, axes, takes, initial, where)
    if keepdims:
        kept = [1 if axis in axes else length for axis, length in enumerate(array.shape)]
        found = _call(np.reshape, found, tuple(kept))
    return into(found, out)


def _alone(out):
    """The array of ``out=``, which may be in a tuple."""
    return out[0] if isinstance(out, tuple) and len(out) == 1 else out


def _axes(ufunc, array, axis):
    """The axes to reduce, counted from the first one."""
    if axis is None:
        axes = tuple(range(array.ndim))
    elif array.ndim == 0 and not isinstance(axis, tuple) and operator.index(axis) in (0, -1):
        axes = ()
    else:
        axes = tuple(normalized_axes(axis, array.ndim))
    several = ufunc.identity is None and ufunc not in _REORDERABLE
    if several and len(axes) > 1:
        message = (
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may "
            f"be specified"
        )
        raise ValueError(f"{here()}: {message}")
    return axes


def _resolved(ufunc, array, dtype, method):
    """In which dtypes a method computes: of what it has so far, and of the next item."""
    if ufunc.signature is not None:
        raise RuntimeError(f"{here()}: Reduction not defined on ufunc with signature")
    try:
        chosen = {} if dtype is None else {"signature": (np.dtype(dtype), None, None)}
        takes = ufunc.resolve_dtypes(
            (None, np.dtype(array.dtype), None), reduction=True, casting="unsafe", **chosen
        )
    except (TypeError, ValueError) as error:
        # NumPy's own kinds of TypeError are made from dtypes and not from a message.
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{here()}: np.{ufunc.__name__}.{method}: {error}") from None
    return takes


def _folded(ufunc, array, axes, takes, initial, where):
    """The items along some axes, taken together one by one."""
    start, take, _ = takes
    rows = _rows(array, axes)
    shape = rows.shape[1:]
    if initial is np._NoValue:
        initial = ufunc.identity
    mask = None
    if where is not True:
        mask = _rows(_call(np.broadcast_to, _call(np.asarray, where), array.shape), axes)
        if initial is None:
            message = (
                f"reduction operation '{ufunc.__name__}' does not have an identity, so to use a "
                f"where mask one has to specify 'initial'"
            )
            raise ValueError(f"{here()}: {message}")
    items = _cast(rows, take)
    if initial is None:
        first = items if start == take else _cast(rows, start)
        return _followed(_fold_items)(ufunc, first, items)
    first = _cast(_array(initial), start)
    first = _call(np.broadcast_to, first, shape).copy() if len(shape) else first[()]
    if mask is None:
        return _followed(_fold_from)(ufunc, first, items)
    return _followed(_fold_where)(ufunc, first, items, mask)


def _rows(array, axes):
    """An array with some of its axes as the first one."""
    rest = [axis for axis in range(array.ndim) if axis not in axes]
    turned = array.transpose((*axes, *rest))
    return turned.reshape((-1 if axes else 1, *[array.shape[axis] for axis in rest]))


def _cast(array, dtype):
    return array if array.dtype == dtype else array.astype(dtype)


def _followed(function):
    return conversion.converted(function)


def _fold_items(ufunc, first, items):
    if len(items) == 0:
        raise ValueError("zero-size array to a reduction operation which has no identity")
    found = first[0]
    for k in range(1, len(items)):
        found = ufunc(found, items[k])
    return found


def _fold_from(ufunc, found, items):
    for k in range(len(items)):
        found = ufunc(found, items[k])
    return found


def _fold_where(ufunc, found, items, mask):
    for k in range(len(items)):
        found = np.where(mask[k], ufunc(found, items[k]), found)
    return found


def accumulate(ufunc, into, array, axis=0, dtype=None, out=None):
    """``ufunc.accumulate``."""
    array, out = _array(array), _alone(out)
    if dtype is None and out is not None:
        dtype = out.dtype
    axis = _one_axis(ufunc, array, axis, "accumulate")
    known = _SCANS.get(ufunc)
    given = {} if dtype is None else {"dtype": dtype}
    if known is not None and given.keys() <= _TAKEN.get(known, _ALL):
        return into(_call(known, array, axis=axis, **given), out)
    start, take, _ = _resolved(ufunc, array, dtype, "accumulate")
    if start != take:
        message = f"the resolved dtypes are not compatible with {ufunc.__name__}.accumulate"
        raise TypeError(f"{here()}: {message}")
    rows = _call(np.moveaxis, array, axis, 0)
    found = _followed(_accumulated)(ufunc, _cast(rows, take))
    return into(_call(np.moveaxis, found, 0, axis), out)


def _one_axis(ufunc, array, axis, method):
    if array.ndim == 0:
        raise TypeError(f"{here()}: cannot {method} on a scalar")
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    try:
        return normalize_axis_index(operator.index(axis), array.ndim)
    except (ValueError, TypeError) as error:
        error.args = (f"{here()}: np.{ufunc.__name__}.{method}: axis: {error}",)
        raise


def _accumulated(ufunc, rows):
    found = rows.copy()
    if len(rows):
        last = rows[0]
        for k in range(1, len(rows)):
            last = ufunc(last, rows[k])
            found[k] = last
    return found


def reduceat(ufunc, into, array, indices, axis=0, dtype=None, out=None):
    """``ufunc.reduceat``."""
    array, out, indices = _array(array), _alone(out), _array(indices)
    if dtype is None and out is not None:
        dtype = out.dtype
    axis = _one_axis(ufunc, array, axis, "reduceat")
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise TypeError(f"{here()}: np.{ufunc.__name__}.reduceat: indices are a row of integers")
    start, take, _ = _resolved(ufunc, array, dtype, "reduceat")
    if start != take:
        message = f"the resolved dtypes are not compatible with {ufunc.__name__}.reduceat"
        raise TypeError(f"{here()}: {message}")
    rows = _cast(_call(np.moveaxis, array, axis, 0), take)
    count = rows.shape[0]
    if native.is_known((indices, count)):
        wrong = [int(n) for n in native.plain(indices) if not 0 <= n < count]
        if wrong:
            message = f"index {wrong[0]} out-of-bounds in {ufunc.__name__}.reduceat [0, {count})"
            raise IndexError(f"{here()}: {message}")
    stops = _call(np.append, indices[1:], count)
    found = _followed(_reduced_between)(ufunc, rows, indices, stops)
    return into(_call(np.moveaxis, found, 0, axis), out)


def _reduced_between(ufunc, rows, firsts, stops):
    found = np.zeros((len(firsts), *rows.shape[1:]), rows.dtype)
    for k in range(len(firsts)):
        first = firsts[k]
        if first < 0 or first >= len(rows):
            raise IndexError("an index is out-of-bounds in reduceat")
        value = rows[first]
        for j in range(first + 1, stops[k]):
            value = ufunc(value, rows[j])
        found[k] = value
    return found


def outer(ufunc, into, one, other, /, **kwargs):
    """``ufunc.outer``."""
    if ufunc.signature is not None:
        raise TypeError(
            f"{here()}: method outer is not allowed in ufunc with non-trivial signature"
        )
    if ufunc.nin != 2:
        raise ValueError(f"{here()}: outer product only supported for binary functions")
    one, other = _array(one), _array(other)
    return _call(ufunc, one[(..., *[None] * other.ndim)], other, **kwargs)


def at(ufunc, into, target, key, value=None, /):
    """``ufunc.at``, which changes an array item by item, as often as an index names one."""
    if not isinstance(target, ArrayWrapper):
        message = f"np.{ufunc.__name__}.at needs an array that the function made"
        raise invalid("symbolic", f"{here()}: {message}")
    if ufunc.signature is not None or ufunc.nout != 1 or ufunc.nin > 2:
        message = "Only two dimensional functions supported at this time"
        raise TypeError(f"{here()}: np.{ufunc.__name__}.at: {message}")
    if (ufunc.nin == 2) != (value is not None):
        raise ValueError(
            f"{here()}: np.{ufunc.__name__}.at: takes {ufunc.nin - 1} arrays of values"
        )
    target.check_writable()
    if native.is_known((target, key, value)):
        found = np.array(target.content)
        ufunc.at(found, native.plain(key), *([] if value is None else [native.plain(value)]))
        target[...] = found
        return
    value = None if value is None else _array(value)
    kind = target.dtype.kind
    if ufunc in (np.add, np.subtract) and kind in "fc" and _adds_in_own(value, target):
        value = value if ufunc is np.add else -value
        target.add(native.plain(as_key(key)), native.plain(value))
        return
    numbers = _numbers_of(target, key)
    whole = target.ndim == 1
    flat = target if whole else target.reshape(-1).copy()
    if value is None:
        _followed(_changed_each)(ufunc, flat, numbers.reshape(-1))
    else:
        values = _call(np.broadcast_to, value, numbers.shape).reshape(-1)
        _followed(_changed_by)(ufunc, flat, numbers.reshape(-1), values)
    if not whole:
        target[...] = flat.reshape(target.shape)


def _adds_in_own(value, target):
    """Whether sums are in the dtype of the target: those in a wider one are rounded one by one."""
    return np.promote_types(value.dtype, target.dtype) == target.dtype


def _numbers_of(target, key):
    """Which items of an array a key names, as numbers in C's order."""
    alone = key if isinstance(key, ArrayWrapper) else None
    if isinstance(key, list) and native.is_known(key):
        alone = wrapped(np.asarray(native.plain(key)))
    if target.ndim == 1 and alone is not None and alone.dtype.kind in "iu":
        return alone
    everywhere = _call(np.arange, target.size).reshape(target.shape)
    return _array(everywhere[key])


def _changed_by(ufunc, flat, numbers, values):
    for k in range(len(numbers)):
        flat[numbers[k]] = ufunc(flat[numbers[k]], values[k])


def _changed_each(ufunc, flat, numbers):
    for k in range(len(numbers)):
        flat[numbers[k]] = ufunc(flat[numbers[k]])


#: The methods by name.
METHODS_OF_UFUNCS = {
    "reduce": reduce, "accumulate": accumulate, "reduceat": reduceat, "outer": outer,
    "at": at,
}  # fmt: skip
