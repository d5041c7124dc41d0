"""Keys with several arrays of integers, by operations along one axis; masks.

NumPy's rule: arrays and integers of a key are broadcast together and name single places of their
axes; the axes of what is broadcast stand where these stood, or first where a slice is between them.
Here these axes are moved to the front and made one, in which a number names the place.
"""

from __future__ import annotations

import math

import numpy as np

from nbta import shapes
from nbta.errors import invalid, out_of_range
from nbta.frontend import awaited, native, python_numbers
from nbta.frontend.problems import here
from nbta.graph.graph import current
from nbta.graph.operation import Spec, Tensor
from nbta.ops.axes.places import dimensions_of, numbers_of, true_places
from nbta.ops.core.arithmetic import equal, logical_not, not_equal, where
from nbta.ops.core.checks import checked
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import CONSTANT, apply, as_tensor, is_weak
from nbta.ops.core.shaping import broadcast_to, cast, reshape
from nbta.ops.indexing.gathering import SCATTER_ADD, SCATTER_SET
from nbta.ops.indexing.items import SET_ITEM, SYMBOLIC, add_item, castable, getitem, set_item, take
from nbta.ops.indexing.joining import concatenate
from nbta.ops.indexing.transposing import transpose

_WHOLE = slice(None)


def is_mask(part) -> bool:
    """Whether a key, or a part of one, is an array of truth values."""
    dtype = getattr(part, "dtype", None)
    return dtype is not None and dtype.kind == "b" and bool(part.ndim)


def as_key(key):
    """A key with arrays in place of lists."""
    if isinstance(key, tuple):
        return tuple(as_key(list(part) if type(part) is tuple else part) for part in key)
    return native.together(key) if isinstance(key, list) else key


def is_run_truth(part) -> bool:
    """Whether a part of a key is one truth value that only the run knows."""
    return isinstance(part, Tensor) and part.dtype.kind == "b" and part.ndim == 0


def without_truths(parts):
    """A key with truth values as two: one that makes an axis for each, and one that indexes it.

    A single True is an array of indices that names the one item of an axis of its own, and False
    one that names none; one of the run is a mask of that axis.
    """
    axes, found = [], []
    for part in parts:
        if type(part) in (bool, np.bool_):
            axes.append(None)
            found.append(np.zeros(int(part), np.int64))
            continue
        if is_run_truth(part):
            axes.append(None)
            found.append(reshape(native.plain(part), (1,)))
            continue
        count = part.ndim if is_mask(part) else 1
        axes += [part if part is None or part is Ellipsis else _WHOLE] * count
        found.append(_WHOLE if part is None else part)
    return tuple(axes), tuple(found)


def counted(x, key):
    """A key with arrays of indices in place of masks."""
    parts = key if isinstance(key, tuple) else (key,)
    if x.ndim is None or not any(map(is_mask, parts)):
        return key
    taken = [0 if part is None or part is Ellipsis else part.ndim if is_mask(part) else 1
             for part in parts]  # fmt: skip
    found, axis = [], 0
    for part, count in zip(parts, taken, strict=True):
        found += _indices(part, x, range(axis, axis + count)) if is_mask(part) else [part]
        axis += x.ndim - sum(taken) if part is Ellipsis else count
    return tuple(found)


def _indices(mask, x, axes):
    """Where a mask is true, as arrays of indices along some axes of an array."""
    if native.is_known(mask) and axes.stop <= x.ndim:
        _check_lengths(np.shape(mask), [int(x.shape[axis]) for axis in axes])
        return np.nonzero(np.asarray(mask))
    mask, lengths = as_tensor(mask), _pattern(x)[axes.start : axes.stop]
    key, found = ("places", mask, lengths), current().cache
    if None in lengths or key not in found:  # a length that is None is another one each time
        found[key] = _fitting(_run_indices(mask), mask, x, axes)
    return found[key]


def _check_lengths(have, want):
    if any(type(n) is type(m) is int and n != m for n, m in zip(have, want, strict=True)):
        message = (
            f"{here()}: a mask of shape {shapes.text(have)} for axes of lengths "
            f"{shapes.text(want)}; compute it from the array that it selects from"
        )
        raise invalid("mask", message)


def _fitting(found, mask, x, axes):
    """Tensors found of a mask, in a run that fails where it is not as long as axes of an array.

    Indices wait for that and not the mask they are of, so that arrays of one mask have equal ones.
    """
    have, want = mask.spec.shape, _pattern(x)
    if axes.stop > len(want):
        raise invalid("mask", f"{here()}: a mask of {len(have)} axes for an array of {len(want)}")
    want = want[axes.start : axes.stop]
    _check_lengths(have, want)
    lengths, dimensions = dimensions_of(mask), dimensions_of(x)[axes.start :]
    for k, (n, m) in enumerate(zip(have, want, strict=True)):
        if n is None or n != m:
            message = f"{here()}: a mask and the array that it selects from differ in length"
            holds = equal(lengths[k], dimensions[k])
            found = [checked(each, holds, message) for each in found]
    return found


def _pattern(x):
    return x.spec.shape if isinstance(x, Tensor) else np.shape(x)


def _run_indices(mask):
    """Where a mask is true that only the run knows, along each of its axes."""
    numbers, found = true_places(mask if mask.ndim == 1 else reshape(mask, (-1,))), []
    for dimension in reversed(dimensions_of(mask)[1:]):
        found.append(numbers % dimension)
        numbers = numbers // dimension
    return [numbers, *reversed(found)]


def nonzero(x):
    """``np.nonzero(x)``, of values that only the run knows."""
    x = as_tensor(x)
    return tuple(_run_indices(x if x.dtype.kind == "b" else not_equal(x, 0)))


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
        dimensions = [x.shape[axis] for axis in self._named]
        self.numbers = numbers_of([parts[k] for k in self._named], dimensions)
        self._total = math.prod(dimensions)
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
        raise out_of_range(f"{here()}: {len(key)} indices of an array of {x.ndim} axes")
    return [*key[:place], *[_WHOLE] * missing, *key[place + 1 :]]


def _slices_of(parts):
    """The slices, which come first; None where all are whole."""
    slices = tuple(part if isinstance(part, slice) else _WHOLE for part in parts)
    return None if all(part.start is part.stop is part.step is None for part in slices) else slices


def item(x, key):
    """``x[key]``."""
    if native.is_known((x, key)):
        return np.asarray(x)[key]
    if any(map(is_run_truth, parts := key if isinstance(key, tuple) else (key,))):
        axes, key = without_truths(parts)
        return item(getitem(x, axes), key)
    if (put := _last_put(x, key)) is not None and awaited.pass_by(x):
        return put.inputs[1]
    x, key = _with_axes(x, counted(x, key))
    parts = _parts(x, key)
    if parts is None:
        return getitem(x, key)
    slices, x = _slices_of(parts), as_tensor(x)
    x = x if slices is None else getitem(x, slices)
    return _Places(x, parts).picked()


def _last_put(x, key):
    """The operation that replaced an item or a row last, where a key names that; else None.

    So what is put to an item and read again is a value as that of any variable, and its gradient
    needs no array.
    """
    op = x.op if isinstance(x, Tensor) else None
    if op is None or op.record is not SET_ITEM or x.spec.shape is None:
        return None
    (_, value, *scalars), given = op.inputs, op.attrs["key"]
    parts, picked = key if isinstance(key, tuple) else (key,), x.spec.shape[len(given) :]
    if len(parts) != len(given) or None in picked or value.spec != Spec(x.dtype, picked):
        return None
    scalars = iter(scalars)
    places = [next(scalars) if place is SYMBOLIC else place for place in given]
    return op if all(map(_is_same_index, places, parts)) else None


def _is_same_index(one, other, depth=4):
    """Whether two parts of keys are one integer, by how they are computed; no slices are."""
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return type(one) is type(other) is int and one == other
    one, other = outside(one), outside(other)
    if one is other:
        return True
    a, b = one.op, other.op
    if a.record is CONSTANT is b.record:
        return one.spec == other.spec and a.attrs["value"].tolist() == b.attrs["value"].tolist()
    is_plain = a.record.pure and a.record.elementwise
    if a.record is not b.record or not is_plain or one.spec != other.spec or not depth:
        return False
    if a.attrs != b.attrs or a.control_inputs or b.control_inputs:
        return False
    pairs = zip(a.inputs, b.inputs, strict=True)
    return all(_is_same_index(*pair, depth - 1) for pair in pairs)


def replaced(x, key, value):
    """What ``x`` is after ``x[key] = value``."""
    put = _last_put(x, key)
    if put is None or not _is_newest(put):
        return _changed(set_item, SCATTER_SET, x, key, value)
    found = _changed(set_item, SCATTER_SET, put.inputs[0], key, value)
    awaited.replace(x, found)
    return found


#: How many operations after a change are looked at for one that uses it.
_FEW = 50


def _is_newest(op):
    """Whether nothing uses an array that the graph just made: else it would have to be copied."""
    graph = op.graph
    if graph is not current():
        return False
    for later in reversed(graph.operations[-_FEW:]):
        if later is op:
            return True
        if any(tensor is op.outputs[0] for tensor in later.inputs) or op in later.control_inputs:
            return False
    return False


def added(x, key, value):
    """What ``x`` is after ``np.add.at(x, key, value)``, or ``x[key] += value`` of slices."""
    put = _last_put(x, key)
    is_number = x.dtype.kind in "fc" and not getattr(value, "ndim", 0)
    if is_number and put is not None and not put.inputs[1].ndim and _is_newest(put):
        return replaced(x, key, put.inputs[1] + castable(value, x.dtype))
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
    parts = [native.together(part) if isinstance(part, list | tuple) else part for part in parts]
    dtype = python_numbers.common_dtype_of(parts)
    parts = [np.asarray(p, dtype) if is_weak(p) else python_numbers.stored(p, dtype)
             for p in parts]  # fmt: skip
    ranks = [np.ndim(part) if not isinstance(part, Tensor) else part.ndim for part in parts]
    if not columns:
        return concatenate([p if n else reshape(p, (1,))
                            for p, n in zip(parts, ranks, strict=True)])  # fmt: skip
    shaped = [reshape(p, (-1, 1)) if n < 2 else p for p, n in zip(parts, ranks, strict=True)]
    return concatenate(shaped, -1)


# Masks.


def selects(key, value) -> bool:
    """Whether items that a mask picks are all replaced by one value."""
    one = not isinstance(value, list | tuple) and not getattr(value, "ndim", 0)
    return is_mask(key) and one


def where_true(mask, value, array):
    """What an array is after ``array[mask] = value``."""
    if not isinstance(value, Tensor):
        value = np.asarray(value, array.dtype)
    return where(_aligned(mask, array), native.settled(value, array.dtype), array)


def computed_where(mask, compute, array, value):
    """What an array is after ``array[mask] = compute(array[mask], value)``.

    Where the mask is false the computation is that of ones, whose result nobody takes: neither it
    nor its gradient is to be NaN for items that the mask leaves out.
    """
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
    (mask,) = _fitting([mask], mask, array, range(len(have)))
    return reshape(mask, (*mask.shape, *[1] * (len(want) - len(have))))
