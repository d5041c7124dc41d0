"""Eager operations that write."""

from typing import Self

from nbta.dtypes import as_value
from nbta.eager.base import Base, Request, as_integer, as_vector
from nbta.errors import OPERATIONS
from nbta.runtime import python_calls
from nbta.runtime import request as rq
from nbta.shapes import MAX_RANK


def _write_object(*args):
    """Stands in for the compiled function until the first call."""
    global _write_object
    _write_object = python_calls.native(python_calls.write_object)
    return _write_object(*args)


def _append_object(*args):
    """Stands in for the compiled function until the first call."""
    global _append_object
    _append_object = python_calls.native(python_calls.append_object)
    return _append_object(*args)


class Writing(Base):
    """write, append, accumulate, scatter, unstack, split."""

    __slots__ = ()

    def write(self, index: int, value, *, name: str | None = None) -> Self:
        """Store a value in a slot; in a gradient array, add it to what is there.

        Parameters
        ----------
        index : int
            The slot. In a dynamic array, one past the end makes the array grow.
        value : array-like
            Of the array's dtype and a shape that the element shape admits. Python numbers and
            nested lists take the array's dtype where nothing is lost.
        name : str, optional
            Of the operation; here for graphs.

        Returns
        -------
        TensorArray
            The array with its new flow; here the array itself.

        Raises
        ------
        InvalidArgumentError
            For a slot that does not exist, holds a value or was read, another dtype, or a shape
            that does not fit. The array is then as it was.
        ResourceExhaustedError
            When there is no memory to grow.

        Notes
        -----
        TensorFlow's ``TensorArrayWriteV3``.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=2)
        >>> ta.write(1, 0.5).read(1)
        np.float64(0.5)
        """
        if _write_object(self._address, self._dtype, index, value):
            return self
        return self._write(rq.WRITE, index, value)

    def _write(self, operation, index, value):
        """`write`, for whatever needs more than a copy."""
        name = OPERATIONS[operation]
        request = Request()
        request[rq.INDEX] = as_integer(f"{name} on {self._name}: index", "index_rank", index)
        value = as_value(name, self._name, value, self._dtype)
        self._put_value(operation, request, value)
        self._run(operation, request, value.nbytes)
        return self

    def append(self, value, *, name: str | None = None) -> Self:
        """Write behind the last slot of a dynamic array; errors as for `write`.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", dynamic_size=True)
        >>> len(ta.append(3).append(4))
        2
        """
        if _append_object(self._address, self._dtype, value):
            return self
        return self._write(rq.APPEND, 0, value)

    def accumulate(self, index: int, value, *, name: str | None = None) -> Self:
        """Add a value into a slot of a gradient array; errors as for `write`.

        Raises
        ------
        InvalidArgumentError
            For a forward array, besides what `write` raises.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=1).write(0, 1.0)
        >>> g = ta.grad("gradients")
        >>> g.accumulate(0, 2.0).accumulate(0, 3.0).read(0)
        np.float64(5.0)
        """
        return self._write(rq.ACCUMULATE, index, value)

    def scatter(self, indices, value, *, name: str | None = None) -> Self:
        """Write row ``k`` of a value to slot ``indices[k]``, all rows or, after an error, none.

        Parameters
        ----------
        indices : vector of int
            As many as the value has rows.
        value : array-like, shape (len(indices), ...)

        Raises
        ------
        InvalidArgumentError
            As `write`, and when the lengths differ.

        Notes
        -----
        TensorFlow's ``TensorArrayScatterV3``.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=3).scatter([2, 0, 1], [5, 6, 7]).stack()
        array([6, 7, 5])
        """
        slots = as_vector(f"scatter on {self._name}: indices", "indices_rank", indices)
        return self._scatter(slots, value)

    def unstack(self, value, *, name: str | None = None) -> Self:
        """Write row ``k`` of a value to slot ``k``; errors as for `scatter`.

        A value of no rows tells the shape of elements too, where a first write would.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=2).unstack([[1, 2], [3, 4]]).read(1)
        array([3, 4])
        """
        return self._scatter(None, value)

    def _scatter(self, slots, value):
        value = as_value("scatter", self._name, value, self._dtype)
        request = Request()
        self._put_value(rq.SCATTER, request, value)
        rows = len(value) if value.ndim else 0
        request[rq.INDEX], request[rq.RANK] = rows, value.ndim - 1
        request[rq.SHAPE : rq.SHAPE + MAX_RANK] = (*value.shape[1:], *[0] * MAX_RANK)[:MAX_RANK]
        if slots is None:
            request[rq.LIST], request[rq.COUNT] = 0, rows
        else:
            request[rq.LIST], request[rq.COUNT] = slots.ctypes.data, len(slots)
        self._run(rq.SCATTER, request, value.nbytes)
        return self

    def split(self, value, lengths, *, name: str | None = None) -> Self:
        """Cut a value along its first axis and write piece ``k`` to slot ``k``.

        Parameters
        ----------
        value : array-like, shape (sum(lengths), ...)
        lengths : vector of int
            Rows of each piece; one a slot, unless the array is dynamic.

        Raises
        ------
        InvalidArgumentError
            As `write`, and when the lengths are not a vector, negative, do not add up to the
            value's rows, or are not as many as slots.

        Notes
        -----
        TensorFlow's ``TensorArraySplitV3``.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", size=2, infer_shape=False)
        >>> ta.split([1, 2, 3], lengths=[1, 2]).read(1)
        array([2, 3])
        """
        return self._split(value, lengths)

    def _split(self, value, lengths, partly=False):
        """`split`; ``partly`` says that there may be fewer pieces than slots."""
        pieces = as_vector(f"split on {self._name}: lengths", "split_lengths_rank", lengths)
        value = as_value("split", self._name, value, self._dtype)
        request = Request()
        self._put_value(rq.SPLIT, request, value)
        request[rq.LIST], request[rq.COUNT] = pieces.ctypes.data, len(pieces)
        request[rq.INDEX] = partly
        self._run(rq.SPLIT, request, value.nbytes)
        return self
