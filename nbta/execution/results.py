"""Where results of a batch go: each to its own place, or into a sum."""

import numpy as np

from nbta.dtypes import code_of
from nbta.runtime.parallel import ADDED


class Column:
    """One result of all items, item by item.

    Parameters
    ----------
    items : int
    """

    code = nbytes = 0  # nothing is added

    def __init__(self, items):
        self._items, self._others = items, {}
        self._block = self._rows = None

    def expect(self, shape, dtype):
        """Make room for results of a shape; None where it is not known."""
        if shape is not None:
            self._block = np.empty((self._items, *shape), dtype)
            self._rows = _rows(self._block)

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

    def value(self):
        """All results: an array where they have one shape, else a list."""
        if not self._others:
            return self._block
        others = self._others
        values = [others[i] if i in others else self._rows[i] for i in range(self._items)]
        same = len({value.shape for value in values}) == 1
        return np.stack(values) if same else values


class Total:
    """The sum of one result over all items, part by part.

    Half precision is added in float32 and rounded once.

    Parameters
    ----------
    parts : int
    shape, dtype
        Of the result.
    """

    def __init__(self, parts, shape, dtype):
        self._dtype = dtype
        wide = np.dtype(np.float32) if is_half(dtype) else dtype
        self._parts = _array((parts, *shape), wide)
        self._rows = _rows(self._parts)
        self.code, self.nbytes = code_of(wide), self._rows[0].nbytes

    def expect(self, shape, dtype):
        """The shape is known already."""

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

    def value(self):
        """The sum of all parts, in order; nothing may be kept any more."""
        total = np.asarray(np.add.reduce(self._parts, axis=0))
        _spare.append(self._parts)
        del _spare[:-SPARE]
        return total.astype(self._dtype, copy=False)[()]


#: Arrays of sums that are used again: fresh ones take a page fault every 4 KiB, 0.3 ms for 64 sums
#: of 25 KiB.
SPARE = 16
_spare: list[np.ndarray] = []


def _array(shape, dtype):
    """An array of any values."""
    for place in range(len(_spare)):
        try:
            found = _spare.pop(place)
        except IndexError:  # taken by another thread
            break
        if found.shape == shape and found.dtype == dtype:
            return found
        _spare.append(found)
    return np.empty(shape, dtype)


def _rows(array):
    """The rows of an array, of a vector those of rank 0."""
    return list(array) if array.ndim > 1 else [array[i, ...] for i in range(len(array))]


def is_half(dtype):
    """Whether sums are taken in float32."""
    return dtype.itemsize == 2 and dtype.kind not in "biu"
