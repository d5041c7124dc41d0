"""Keys with several arrays of integers, by operations along one axis; masks.

NumPy's rule: arrays and integers of a key are broadcast together and name single places of their
axes; the axes of what is broadcast stand where these stood, or first where a slice is between them.
Here these axes are moved to the front and made one, in which a number names the place.
"""

from __future__ import annotations

import math

import numpy as np

from nbta import shapes
from nbta.errors import invalid
from nbta.frontend import native
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.arithmetic import logical_not, where
from nbta.ops.dispatch import apply, as_tensor
from nbta.ops.gathering import SCATTER_ADD, SCATTER_SET
from nbta.ops.indexing import add_item, getitem, set_item, take
from nbta.ops.joining import concatenate
from nbta.ops.linalg import transpose
from nbta.ops.places import numbers_of
from nbta.ops.shaping import broadcast_to, cast, reshape

_WHOLE = slice(None)


def is_mask(part) -> bool:
    """Whether a key, or a part of one, is an array of truth values."""
    dtype = getattr(part, "dtype", None)
    return dtype is not None and dtype.kind == "b" and bool(part.ndim)


def as_key(key):
    """A key with arrays in place of lists."""
    if isinstance(key, tuple):
        return tuple(map(as_key, key))
    return native.together(key) if isinstance(key, list) else key


def counted(x, key):
    """A key with indices in place of masks that are known, which tell how many items there are."""
    parts = key if isinstance(key, tuple) else (key,)
    if x.ndim is None or not any(is_mask(part) and native.is_known(part) for part in parts):
        return key
    taken = [0 if part is None or part is Ellipsis else part.ndim if is_mask(part) else 1
             for part in parts]  # fmt: skip
    found, axis = [], 0
    for part, count in zip(parts, taken, strict=True):
        known = is_mask(part) and native.is_known(part)
        found += _indices(part, x.shape[axis : axis + count]) if known else [part]
        axis += x.ndim - sum(taken) if part is Ellipsis else count
    return tuple(found)


def _indices(mask, extents):
    """Where a mask is true, as arrays of indices along its axes, which are those of an array."""
    mask = np.asarray(mask)
    if mask.shape != tuple(map(int, extents)):
        message = (
            f"{here()}: a mask of shape {shapes.text(mask.shape)} for axes of lengths "
            f"{shapes.text(tuple(map(int, extents)))}"
        )
        raise invalid("mask", message)
    return np.nonzero(mask)


def _is_array(part):
    return bool(getattr(part, "ndim", 0))


class _Places:
    """What a key with arrays of integers names of a tensor.

    Parameters
    ----------
    x : Tensor
    parts : list
        One for each axis; slices of them are whole.
    """

    def __init__(self, x, parts):
        self._x, self._rank = x, len(parts)
        self._named = [k for k, part in enumerate(parts) if not isinstance(part, slice)]
        self._rest = [k for k in range(self._rank) if k not in self._named]
        extents = [x.shape[axis] for axis in self._named]
        self.numbers = numbers_of([parts[k] for k in self._named], extents)
        self._total = math.prod(extents)
        together = self._named[-1] - self._named[0] == len(self._named) - 1
        #: Where the axes of the numbers stand in what is picked.
        self.place = self._named[0] if together else 0

    def _in_front(self, x):
        """The tensor with the axes that are named in front, as one."""
        x = transpose(x, (*self._named, *self._rest))
        return reshape(x, (self._total, *(self._x.shape[axis] for axis in self._rest)))

    def _back(self, x):
        order = (*self._named, *self._rest)
        x = reshape(x, tuple(self._x.shape[axis] for axis in order))
        return transpose(x, tuple(np.argsort(order).tolist()))

    def picked(self):
        """The items."""
        found = take(self._in_front(self._x), self.numbers, 0)
        count, place = self.numbers.ndim, self.place
        order = list(range(count, count + place)) + list(range(count))
        return transpose(found, (*order, *range(count + place, found.ndim)))

    def changed(self, record, value):
        """The tensor with other items, or values added to them."""
        if self.place and getattr(value, "ndim", 0):
            value = self._turned(value)
        x = self._in_front(self._x)
        return self._back(apply(record, [x, self.numbers, value], {"axis": 0}))

    def _turned(self, value):
        """A value with the axes of the numbers in front."""
        count, place = self.numbers.ndim, self.place
        rest = [self._x.shape[axis] for axis in self._rest]
        whole = (*rest[:place], *self.numbers.shape, *rest[place:])
        value = broadcast_to(value, whole)
        order = [*range(place, place + count), *range(place)]
        return transpose(value, (*order, *range(place + count, len(whole))))


def _with_axes(x, key):
    """A tensor with the new axes of a key, and the key with all of them in place of None.

    As they are without those where a key has no arrays beside them.
    """
    parts = key if isinstance(key, tuple) else (key,)
    if not any(part is None for part in parts) or not any(map(_is_array, parts)) or x.ndim is None:
        return x, key
    whole = tuple(part if part is None or part is Ellipsis else _WHOLE for part in parts)
    return getitem(as_tensor(x), whole), tuple(_WHOLE if p is None else p for p in parts)


def _parts(x, key):
    """A part of a key for each axis; None where the key has no arrays, or one alone."""
    key = key if isinstance(key, tuple) else (key,)
    if not any(map(_is_array, key)) or len(key) == 1:
        return None
    masks = any(map(is_mask, key))
    if masks or x.ndim is None:
        what = "a mask and other parts" if masks else "arrays, of an array of unknown rank"
        message = (
            f"{here()}: a key with {what}; write a loop, or use np.where with a mask of the "
            f"array's own shape"
        )
        raise invalid("mask" if masks else "index", message)
    place = next((k for k, part in enumerate(key) if part is Ellipsis), len(key))
    missing = x.ndim - len(key) + any(part is Ellipsis for part in key)
    if missing < 0:
        raise invalid("index", f"{here()}: {len(key)} indices of an array of {x.ndim} axes")
    return [*key[:place], *[_WHOLE] * missing, *key[place + 1 :]]


def _slices_of(parts):
    """The slices, which come first; None where all are whole."""
    slices = tuple(part if isinstance(part, slice) else _WHOLE for part in parts)
    return None if all(part.start is part.stop is part.step is None for part in slices) else slices


def item(x, key):
    """``x[key]``."""
    if native.is_known((x, key)):
        return np.asarray(x)[key]
    x, key = _with_axes(x, counted(x, key))
    parts = _parts(x, key)
    if parts is None:
        return getitem(x, key)
    slices, x = _slices_of(parts), as_tensor(x)
    x = x if slices is None else getitem(x, slices)
    return _Places(x, parts).picked()


def replaced(x, key, value):
    """What ``x`` is behind ``x[key] = value``."""
    return _changed(set_item, SCATTER_SET, x, key, value)


def added(x, key, value):
    """What ``x`` is behind ``np.add.at(x, key, value)``, or ``x[key] += value`` of slices."""
    return _changed(add_item, SCATTER_ADD, x, key, value)


def _changed(plain, record, x, key, value):
    wide, key = _with_axes(x, counted(x, key))
    if wide is not x:
        return reshape(_changed(plain, record, wide, key, value), x.shape)
    parts = _parts(x, key)
    if parts is None:
        return plain(x, key, value)
    slices = _slices_of(parts)
    value = cast(as_tensor(value), x.dtype)
    if slices is None:
        return _Places(x, parts).changed(record, value)
    inner = _Places(getitem(x, slices), parts).changed(record, value)
    return set_item(x, slices, inner)


def concatenated(key, columns):
    """``np.c_[key]`` where ``columns``, else ``np.r_[key]``."""
    parts = [np.r_[part] if isinstance(part, slice) and native.is_known(part) else part
             for part in (key if isinstance(key, tuple) else (key,))]  # fmt: skip
    if any(isinstance(part, slice | str) for part in parts):
        what = "np.c_" if columns else "np.r_"
        message = (
            f"{here()}: {what} with a text, or a range of values that only the run knows; use "
            f"np.concatenate, np.column_stack, np.linspace or np.arange"
        )
        raise invalid("symbolic", message)
    ranks = [np.ndim(part) if not isinstance(part, Tensor) else part.ndim for part in parts]
    if not columns:
        return concatenate([p if n else reshape(p, (1,))
                            for p, n in zip(parts, ranks, strict=True)])  # fmt: skip
    shaped = [reshape(p, (-1, 1)) if n < 2 else p for p, n in zip(parts, ranks, strict=True)]
    return concatenate(shaped, -1)


# Masks.


def selects(key, value) -> bool:
    """Whether items are replaced by a mask that only the run knows, or all by one value."""
    return is_mask(key) and not (native.is_known(key) and getattr(value, "ndim", 0))


def where_true(mask, value, array):
    """What an array is behind ``array[mask] = value``."""
    if getattr(value, "ndim", 0):
        message = (
            f"{here()}: array[mask] = values: how many there are is known only when the function "
            f"runs; use np.where(mask, values of all items, array)"
        )
        raise invalid("mask", message)
    if not isinstance(value, Tensor):
        value = np.asarray(value, array.dtype)
    return where(_aligned(mask, array), native.settled(value, array.dtype), array)


def computed_where(mask, compute, array, value):
    """What an array is behind ``array[mask] = compute(array[mask], value)``.

    Where the mask is false the computation is that of ones, whose result nobody takes: neither it
    nor its gradient is to be NaN for items that the mask leaves out.
    """
    if getattr(value, "ndim", 0):
        return where_true(mask, value, array)  # which refuses it
    mask = _aligned(mask, array)
    ones = np.ones((), array.dtype)
    found = compute(where(logical_not(mask), ones, array), value)
    return where(mask, native.settled(found, array.dtype), array)


def _aligned(mask, array):
    """A mask of the array's rank, whose first axes it has; an error where they differ."""
    mask = as_tensor(mask)
    have, want = mask.spec.shape, array.spec.shape
    if have is None or want is None:
        return mask
    pairs = zip(have, want, strict=False)
    if len(have) > len(want) or any(type(n) is type(m) is int and n != m for n, m in pairs):
        message = (
            f"{here()}: a mask of shape {shapes.text(have)} for an array of shape "
            f"{shapes.text(want)}; its axes are to be the array's first ones"
        )
        raise invalid("mask", message)
    return reshape(mask, (*mask.shape, *[1] * (len(want) - len(have))))
