"""The rules of a tensor array in plain NumPy: slow, short, and meant to be right at a glance.

An operation here works slot by slot and simply undoes everything when it fails, so "all or
nothing" needs no care anywhere else.
"""

from dataclasses import dataclass
from functools import wraps

import numpy as np

MAX_RANK = 8
FURTHEST = 1 << 47  # no array has a slot from here on
HALVES = ("float16", "bfloat16")
WRITTEN, READ, CLEARED, VIRTUAL = 1, 2, 4, 8


class ModelError(Exception):
    """A broken rule, by the word that nbta uses for it."""

    def __init__(self, reason):
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Slot:
    """One slot. A written one without a value is cleared, or is zeros nobody has asked for."""

    value: np.ndarray | None = None
    shape: tuple | None = None
    written: bool = False
    read: bool = False
    cleared: bool = False

    @property
    def state(self):
        """The state as nbta encodes it."""
        virtual = self.written and self.value is None and not self.cleared
        return (
            WRITTEN * self.written | READ * self.read | CLEARED * self.cleared | VIRTUAL * virtual
        )


def require(holds, reason):
    """Fail for a reason unless a rule holds."""
    if not holds:
        raise ModelError(reason)


def known(pattern):
    """Whether a shape pattern is a shape."""
    return pattern is not None and None not in pattern


def fits(shape, pattern):
    """Whether a shape (or a pattern) does not contradict a pattern."""
    if shape is None or pattern is None:
        return True
    return len(shape) == len(pattern) and all(
        a is None or b is None or a == b for a, b in zip(shape, pattern, strict=True)
    )


def merged(first, second):
    """What two patterns that fit say together."""
    if first is None or second is None:
        return first if second is None else tuple(second)
    return tuple(b if a is None else a for a, b in zip(first, second, strict=True))


def scalar(value, reason):
    require(np.ndim(value) == 0, reason)
    return int(value)


def vector(values, reason):
    require(np.ndim(values) == 1, reason)
    return [int(value) for value in values]


def operation(method):
    """All or nothing: after an error the array is as it was before the operation."""

    @wraps(method)
    def run(self, *args, **kwargs):
        before, slots = dict(vars(self)), list(self.slots)
        try:
            return method(self, *args, **kwargs)
        except ModelError:
            vars(self).update(before)
            self.slots = slots
            raise

    return run


class ModelArray:
    """A forward array, or (made by `grad`) a gradient array."""

    def __init__(
        self,
        dtype,
        size=0,
        dynamic_size=False,
        clear_after_read=True,
        element_shape=None,
        infer_shape=True,
    ):
        size = scalar(size, "size_rank")
        require(size >= 0, "negative_size")
        self.dtype = np.dtype(dtype)
        self.slots = [Slot()] * size
        self.dynamic_size = dynamic_size
        self.clear_after_read = clear_after_read
        self.element_shape = None if element_shape is None else tuple(element_shape)
        self.infer_shape = infer_shape
        self.is_gradient = False
        self.closed = False
        self.gradients = {}
        self.split_count = 0  # slots that the last split filled
        self.deposits = None  # in a parallel loop: slots that were added to

    # Single slots.

    def _check_value(self, value):
        require(value.dtype == self.dtype, "write_dtype")
        require(not self.closed, "closed")

    def _check_read(self, dtype):
        require(not self.closed, "closed")
        require(dtype is None or np.dtype(dtype) == self.dtype, "read_dtype")

    def _reach(self, index):
        require(index < FURTHEST, "too_large")
        self.slots += [Slot()] * (index + 1 - len(self.slots))

    def _stays(self, index):
        """Nothing grows in a parallel loop."""
        require(self.deposits is None or index < len(self.slots), "growth_in_loop")

    def _put(self, index, value):
        """Write one slot, or add to it."""
        in_range = index >= 0 and (index < len(self.slots) or self.dynamic_size)
        require(in_range, "write_out_of_range")
        self._stays(index)
        require(index < FURTHEST, "too_large")
        require(value.ndim <= MAX_RANK, "rank")
        require(fits(value.shape, self.element_shape), "incompatible_element_shape")
        self._reach(index)
        slot = self.slots[index]
        require(not slot.read, "already_read")
        require(self.is_gradient or not slot.written, "already_written")
        value = value.astype(self._stored_dtype())
        if slot.written:
            value = self._sum(slot, value)
        if self.deposits is not None and self.is_gradient:
            rounds = self.dtype.kind in "fc" or self.dtype.name in HALVES
            require(not (rounds and index in self.deposits), "deposited_twice")
            self.deposits = self.deposits | {index}
        if self.infer_shape:
            self.element_shape = value.shape
        self.slots[index] = Slot(value, value.shape, written=True)

    def _stored_dtype(self):
        """Half precision adds up in float32 and is rounded once, when it is read."""
        halves = self.is_gradient and self.dtype.name in HALVES
        return np.dtype(np.float32) if halves else self.dtype

    def _sum(self, slot, value):
        require(slot.shape == value.shape, "aggregate_shape")
        if slot.value is None:
            return value
        require(self.dtype.name != "bool" or value.size == 0, "aggregate_dtype")
        with np.errstate(all="ignore"):
            return np.asarray(slot.value + value)

    def _take(self, index):
        """Read one slot."""
        in_range = index >= 0 and (index < len(self.slots) or self.is_gradient)
        require(in_range, "read_out_of_range")
        self._stays(index)
        slot = self.slots[index] if index < len(self.slots) else Slot()
        require(not slot.cleared, "cleared")
        shape = slot.shape if slot.written else self.element_shape
        require(known(shape), "unknown_element_shape")
        self._reach(index)
        value = np.zeros(shape, self._stored_dtype()) if slot.value is None else slot.value
        kept = None if self.clear_after_read else value
        self.slots[index] = Slot(kept, shape, True, True, self.clear_after_read)
        with np.errstate(all="ignore"):
            return value.astype(self.dtype)

    # Operations that write.

    @operation
    def write(self, index, value):
        index = scalar(index, "index_rank")
        self._check_value(value)
        self._put(index, value)
        return self

    @operation
    def append(self, value):
        self._check_value(value)
        self._put(len(self.slots), value)
        return self

    @operation
    def accumulate(self, index, value):
        index = scalar(index, "index_rank")
        self._check_value(value)
        require(self.is_gradient, "not_gradient")
        self._put(index, value)
        return self

    @operation
    def scatter(self, indices, value):
        indices = vector(indices, "indices_rank")
        self._check_value(value)
        require(value.ndim > 0, "scatter_scalar")
        require(len(value) == len(indices), "scatter_length")
        reachable = self.dynamic_size or all(i < len(self.slots) for i in indices)
        require(reachable, "scatter_out_of_range")
        if indices:
            fitting = fits(value.shape[1:], self.element_shape)
            require(fitting, "incompatible_element_shape")
        for index, row in zip(indices, value, strict=True):
            self._put(index, np.asarray(row, self.dtype))
        return self

    @operation
    def unstack(self, value):
        self.scatter(range(len(value) if value.ndim else 0), value)
        if len(value) == 0 and self.infer_shape and not self.is_gradient:
            require(value.ndim <= MAX_RANK + 1, "rank")
            require(fits(value.shape[1:], self.element_shape), "incompatible_element_shape")
            self.element_shape = value.shape[1:]
        return self

    @operation
    def split(self, value, lengths):
        lengths = vector(lengths, "split_lengths_rank")
        self._check_value(value)
        require(value.ndim > 0, "split_scalar")
        require(sum(lengths) == len(value), "split_sum")
        require(all(length >= 0 for length in lengths), "split_negative")
        enough = len(lengths) == len(self.slots)
        more = len(lengths) > len(self.slots) and self.dynamic_size
        require(enough or more, "split_count")
        start = 0
        for index, length in enumerate(lengths):
            self._put(index, value[start : start + length])
            start += length
        if not self.is_gradient:
            self.split_count = len(lengths)
        return self

    # Operations that read.

    @operation
    def read(self, index, dtype=None):
        index = scalar(index, "index_rank")
        self._check_read(dtype)
        return self._take(index)

    @operation
    def gather(self, indices, element_shape=None, dtype=None, strict=False):
        indices = vector(indices, "indices_rank")
        require(not self.closed or not indices, "closed")  # no indices: TensorFlow looks at nothing
        require(dtype is None or np.dtype(dtype) == self.dtype, "read_dtype")
        require(fits(element_shape, self.element_shape), "gather_element_shape")
        self.element_shape = merged(self.element_shape, element_shape)
        if not indices:
            require(known(element_shape if strict else self.element_shape), "empty_gather")
            return np.zeros((0, *self.element_shape), self.dtype)
        elements = [self._take(index) for index in indices]
        shape = elements[0].shape
        require(fits(shape, element_shape), "gather_element_shape")
        if elements[0].size == 0:
            return np.zeros((len(elements), *shape), self.dtype)
        require(all(element.shape == shape for element in elements), "inconsistent_shapes")
        return np.stack(elements)

    def stack(self):
        require(not self.closed, "closed")
        return self.gather(range(len(self.slots)))

    @operation
    def concat(self, element_shape_except0=None, dtype=None):
        self._check_read(dtype)
        count = self.split_count if self.is_gradient and self.split_count else len(self.slots)
        if count == 0:
            require(known(element_shape_except0), "empty_concat")
            return np.zeros((0, *element_shape_except0), self.dtype), np.zeros(0, np.int64)
        elements = [self._take(index) for index in range(count)]
        for element in elements:
            require(element.ndim > 0, "concat_scalar")
            require(fits(elements[0].shape[1:], element_shape_except0), "concat_except0")
            require(element.shape[1:] == elements[0].shape[1:], "inconsistent_shapes")
        return np.concatenate(elements), np.array([len(e) for e in elements], np.int64)

    def size(self):
        require(not self.closed, "closed")
        return np.int32(len(self.slots))

    # Looks, which mark nothing.

    def __len__(self):
        return int(self.size())

    def _seen(self, index):
        slot = self.slots[index]
        require(not slot.cleared, "cleared")
        settled = slot.written and not self.is_gradient
        require(self.deposits is None or settled, "look_in_loop")
        shape = slot.shape if slot.written else self.element_shape
        require(known(shape), "unknown_element_shape")
        with np.errstate(all="ignore"):
            value = np.zeros(shape, self.dtype) if slot.value is None else slot.value
            return value.astype(self.dtype)

    def __getitem__(self, index):
        require(-len(self) <= index < len(self), "no_slot")
        return self._seen(index)

    def __iter__(self):
        return (self._seen(index) for index in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        if len(self) == 0:
            require(known(self.element_shape), "empty_gather")
            return np.zeros((0, *self.element_shape), self.dtype)
        elements = list(self)
        same = all(element.shape == elements[0].shape for element in elements)
        require(same, "inconsistent_shapes")
        require(elements[0].ndim < 2 * MAX_RANK, "rank")
        return np.stack(elements)

    # Gradient arrays, and the end.

    def grad(self, source, clear_after_read=True):
        return self.grad_with_shape(source, [], clear_after_read)

    @operation
    def grad_with_shape(self, source, shape_to_prepend, clear_after_read=True):
        prefix = tuple(vector(shape_to_prepend, "prepend_rank"))
        require(not self.closed, "closed")
        require(self.dtype.kind in "biufc" or self.dtype.name in HALVES, "no_gradient")
        require(all(dimension >= 0 for dimension in prefix), "prepend_negative")
        if source not in self.gradients:
            self.gradients[source] = self._new_gradient(prefix, clear_after_read)
            self.dynamic_size = False
        return self.gradients[source]

    def _new_gradient(self, prefix, clear_after_read):
        pattern = None if self.element_shape is None else prefix + self.element_shape
        shapes = [prefix + slot.shape for slot in self.slots if slot.written]
        ranks = [len(shape) for shape in [*shapes, pattern or ()]]
        require(max(ranks) <= MAX_RANK, "rank")
        made = ModelArray(
            self.dtype, len(self.slots), False, clear_after_read, pattern, self.infer_shape
        )
        made.is_gradient, made.split_count = True, self.split_count
        for index, slot in enumerate(self.slots):
            if slot.written:
                made.slots[index] = Slot(None, prefix + slot.shape, written=True)
        return made

    def close(self):
        self.closed, self.slots = True, []

    def states(self):
        """State bits of all slots."""
        return [slot.state for slot in self.slots]
