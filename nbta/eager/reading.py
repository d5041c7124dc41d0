"""Eager operations that read."""

from typing import Any

import numpy as np

from nbta import errors
from nbta.eager.base import Base, Request, as_integer, as_vector, put_pattern
from nbta.runtime import python_calls
from nbta.runtime import request as rq
from nbta.runtime.results import Concat
from nbta.runtime.store import FIELD
from nbta.shapes import as_pattern


def _claim_object(*args):
    """Stands in for the compiled function until the first call."""
    global _claim_object
    _claim_object = python_calls.native(python_calls.claim_object)
    return _claim_object(*args)


class Reading(Base):
    """read, gather, stack, concat."""

    __slots__ = ()

    def read(self, index: int, *, name: str | None = None, dtype=None) -> Any:
        """The value of a slot; the slot is read from then on, and cleared if the array clears.

        Parameters
        ----------
        index : int
            The slot.
        name : str, optional
            Of the operation; here for graphs.
        dtype : dtype-like, optional
            What the caller counts on; another dtype than the array's is an error.

        Returns
        -------
        numpy.ndarray or scalar
            Read-only, of the element's shape; a scalar where elements have no dimensions. An
            unwritten slot of a fully known element shape reads as zeros.

        Raises
        ------
        InvalidArgumentError
            For a slot that does not exist or is cleared, and for an unwritten slot while the
            element shape is not fully known.

        Notes
        -----
        TensorFlow's ``TensorArrayReadV3``.

        Examples
        --------
        >>> nbta.TensorArray("float32", size=1, element_shape=(2,)).read(0)
        array([0., 0.], dtype=float32)
        """
        base = _claim_object(self._address, index) if dtype is None else 0
        if base:
            seen, view = self._seen  # one object, as several threads may look
            if seen != base:
                view = self._look()
            if view is not None:
                return view[index]
        request = Request()
        request[rq.INDEX] = as_integer(f"read on {self._name}: index", "index_rank", index)
        return self._read_many(rq.READ, request, dtype)[()]

    def _look(self):
        """Keep a NumPy view of all elements, for reads that hand out a part of it.

        None where another thread has closed the array.
        """
        view = python_calls.native(python_calls.data_bytes)(self._address)
        if len(view) == 0:
            return None
        shape, base = self.element_shape, view.ctypes.data
        nbytes = self._fields[FIELD.element_bytes]
        slots = len(view) // nbytes
        view = view[: slots * nbytes].view(self._dtype).reshape(slots, *shape)
        view.flags.writeable = False
        self._seen = base, view
        return view

    def _look_at(self, index):
        """What a slot holds, without a read."""
        if isinstance(index, slice | tuple):
            message = (
                f"getitem on {self._name}: index must be one integer, and is {index!r}; index "
                f"np.asarray(ta), or gather slots"
            )
            raise errors.invalid("index_rank", message)
        request = Request()
        request[rq.INDEX] = as_integer(f"getitem on {self._name}: index", "index_rank", index)
        return self._read_many(rq.LOOK, request)[()]

    def _look_at_all(self):
        """What all slots hold, stacked, without a read."""
        return self._read_many(rq.LOOK_AT_ALL, Request())

    def gather(
        self, indices, *, name: str | None = None, element_shape=None, dtype=None
    ) -> np.ndarray:
        """The listed slots, stacked along a new first axis; read rules as for `read`.

        Parameters
        ----------
        indices : vector of int
        element_shape : tuple of int or None, optional
            Merged into the array's own, where it stays.
        dtype : dtype-like, optional
            As for `read`.

        Returns
        -------
        numpy.ndarray, shape (len(indices), ...)
            Read-only; a view, not a copy, where the slots lie one behind the other.

        Raises
        ------
        InvalidArgumentError
            As `read`, and when the shapes of the elements differ.
        UnimplementedError
            For no indices while the element shape is not fully known.

        Notes
        -----
        TensorFlow's ``TensorArrayGatherV3``.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=3).unstack([5, 6, 7]).gather([2, 0])
        array([7, 5])
        """
        return self._gather(indices, element_shape, dtype)

    def _gather(self, indices, element_shape, dtype, strict=False):
        """`gather`; if strict, no slots have the shape asked for, whatever the array's is."""
        slots = as_vector(f"gather on {self._name}: indices", "indices_rank", indices)
        request = Request()
        request[rq.LIST], request[rq.COUNT] = slots.ctypes.data, len(slots)
        request[rq.INDEX] = strict
        put_pattern(request, as_pattern("element_shape", element_shape))
        return self._read_many(rq.GATHER, request, dtype)

    def stack(self, *, name: str | None = None) -> np.ndarray:
        """All slots, stacked along a new first axis; `gather` of every slot.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=2).unstack([5, 6]).stack()
        array([5, 6])
        """
        return self._read_many(rq.STACK, Request())

    def _read_many(self, operation, request, dtype=None):
        request[rq.DTYPE] = self._dtype_asked(dtype)
        slots = request[rq.COUNT] if operation == rq.GATHER else self._fields[FIELD.size]
        moved = self._bytes_in(1 if operation in (rq.READ, rq.LOOK) else slots)
        self._run(operation, request, moved)
        return self._result(request)

    def concat(self, *, name: str | None = None, element_shape_except0=None, dtype=None) -> Concat:
        """All elements joined along their first axis, and how many rows each has.

        Parameters
        ----------
        element_shape_except0 : tuple of int or None, optional
            What the shape behind the first axis must fit.
        dtype : dtype-like, optional
            As for `read`.

        Returns
        -------
        value : numpy.ndarray, shape (sum(lengths), ...)
            Read-only.
        lengths : numpy.ndarray of int64

        Raises
        ------
        InvalidArgumentError
            As `read`; for scalar elements; when the shapes behind the first axis differ.
        UnimplementedError
            For an array of no slots while the element shape is not fully known.

        Notes
        -----
        TensorFlow's ``TensorArrayConcatV3``.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", size=2, infer_shape=False)
        >>> value, lengths = ta.write(0, [1]).write(1, [2, 3]).concat()
        >>> value, lengths
        (array([1, 2, 3]), array([1, 2]))
        """
        return self._concat(element_shape_except0, dtype)

    def _concat(self, element_shape_except0=None, dtype=None, count=0):
        """`concat`, of the first ``count`` slots where that is not 0."""
        request = Request()
        put_pattern(request, as_pattern("element_shape_except0", element_shape_except0))
        request[rq.VALUE] = count
        while True:
            room = max(self._fields[FIELD.size], count)
            lengths = np.zeros(room, np.int64)
            request[rq.LIST], request[rq.INDEX] = lengths.ctypes.data, room
            value = self._read_many(rq.CONCAT, request, dtype)
            if request[rq.COUNT] <= room:  # else another thread made it grow; nothing was done
                return Concat(value, lengths[: request[rq.COUNT]])
