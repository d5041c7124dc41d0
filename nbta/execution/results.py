"""Where results of a batch go: each to its own place, or into a sum.

Items are cut into parts, which depend on their number and the size of the sums alone. A part adds
up its items in order, and sums of parts are added in order: whoever computes what, and when, leaves
no trace in the sum.
"""

import contextlib
import math

import numpy as np

from nbta.dtypes import code_of
from nbta.runtime.parallel import ADDED

#: Into how many parts items are cut, at most; and how many bytes the sums of all parts may have
#: before there are fewer, down to some.
MOST, FEWEST, LARGEST = 64, 16, 1 << 28


class Results:
    """Results of a number of items.

    Parameters
    ----------
    count : int
    sums : list of (tuple, dtype) or None
        For each result its shape and dtype if it is to be added up; else None.

    Attributes
    ----------
    starts : list of int
        First item by part, and the number of items.
    parts : int
    sinks : list of Column or Total
        By result.
    nbytes : int
        Of what is kept for the next items.
    """

    def __init__(self, count, sums):
        nbytes = sum(math.prod(shape) * dtype.itemsize for shape, dtype in filter(None, sums))
        self.parts = min(count, max(FEWEST, min(MOST, LARGEST // max(nbytes, 1))))
        self.starts = [count * part // self.parts for part in range(self.parts + 1)]
        self.sinks = [Column(count) if s is None else Total(self.parts, *s) for s in sums]
        self.nbytes = nbytes * self.parts

    def keep(self, part, item, values):
        """Take the results of an item."""
        is_first = item == self.starts[part]
        for sink, value in zip(self.sinks, values, strict=True):
            sink.keep(part, item, is_first, value)

    def values(self, divisors) -> list:
        """For each result the sum, or the values of all items, divided."""
        pairs = zip(self.sinks, divisors, strict=True)
        return [sink.value(divisor) for sink, divisor in pairs]


class Column:
    """One result of all items: an array where all have one shape, else a list."""

    code = nbytes = 0  # nothing is added

    def __init__(self, items):
        self._items, self._others = items, {}
        self._block = self._rows = None

    def expect(self, shape, dtype):
        """Make room for the results of new items, if their shape is known."""
        self._others, self._block, self._rows = {}, None, None
        if shape is not None:
            with contextlib.suppress(MemoryError, ValueError):  # others may be smaller
                self._block = np.empty((self._items, *shape), dtype)
                self._rows = rows_of(self._block)

    def places(self, starts):
        """Addresses of the arrays that results are to fill, by item; 0 for none."""
        return 0 if self._rows is None else list(map(id, self._rows))

    def place(self, part, item, is_first, spare):
        """The array that an item's result was to fill, if any."""
        return None if self._rows is None else self._rows[item]

    def spare(self):
        """An array for a term before it is added: none."""

    def sums(self, parts):
        """Addresses of the sums of parts: none."""
        return np.zeros(parts, np.int64)

    def keep(self, part, item, is_first, value):
        """Take the result of an item."""
        if self._block is not None and np.shape(value) == self._block.shape[1:]:
            self._block[item] = value
        else:
            self._others[item] = np.array(value)

    def value(self, divisor):
        """All results, which are the caller's from now on."""
        others, block, rows = self._others, self._block, self._rows
        self._others, self._block, self._rows = {}, None, None
        if not others:
            return divided(block, divisor)
        values = [others[i] if i in others else rows[i] for i in range(self._items)]
        same = len({value.shape for value in values}) == 1
        return divided(np.stack(values), divisor) if same else [divided(v, divisor) for v in values]


class Total:
    """The sum of one result over all items, part by part.

    Half precision is added in float32 and rounded once.
    """

    def __init__(self, parts, shape, dtype):
        self._dtype = dtype
        wide = np.dtype(np.float32) if is_half(dtype) else dtype
        self._parts = np.empty((parts, *shape), wide)
        self._rows = rows_of(self._parts)
        self.code, self.nbytes = code_of(wide), self._rows[0].nbytes

    def places(self, starts):
        """The first item of a part fills the sum, what others give is added to it."""
        found = np.full(starts[-1], ADDED)
        found[starts[:-1]] = list(map(id, self._rows))
        return found

    def place(self, part, item, is_first, spare):
        """The array that an item's result was to fill."""
        return self._rows[part] if is_first else spare

    def spare(self):
        """An array for a term before it is added."""
        return np.empty(self._parts.shape[1:], self._dtype)

    def sums(self, parts):
        """Addresses of the sums of parts."""
        return self._parts.ctypes.data + self.nbytes * np.arange(parts)

    def keep(self, part, item, is_first, value):
        """Take the result of an item."""
        if is_first:
            self._parts[part] = value
        else:
            self._parts[part] += value

    def value(self, divisor):
        """The sum of all parts, in order."""
        total = divided(np.asarray(np.add.reduce(self._parts, axis=0)), divisor)
        return total.astype(self._dtype, copy=False)[()]


def divided(array, divisor):
    """An array divided by an integer, which half precision may not hold."""
    if divisor == 1:
        return array
    wide = array.astype(np.float32) if is_half(array.dtype) else array
    return (wide / wide.dtype.type(divisor)).astype(array.dtype, copy=False)


def rows_of(array) -> list:
    """The rows of an array, of a vector those of rank 0."""
    return list(array) if array.ndim > 1 else [array[i, ...] for i in range(len(array))]


def is_half(dtype):
    """Whether sums are taken in float32."""
    return dtype.itemsize == 2 and dtype.kind not in "biu"
