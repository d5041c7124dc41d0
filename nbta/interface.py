"""What eager arrays and those of graphs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from nbta.eager import Lanes
    from nbta.graph.operation import Operation, Tensor
    from nbta.naming import Flow, Handle
    from nbta.runtime.request import Concat
    from nbta.tensor_array import TensorArray
    from nbta.typing import Array, ArrayLike, DTypeLike, Integer, Pattern, ShapeLike


class ArrayInterface:
    """What users call on arrays, said once for both kinds of them.

    `TensorArray` does it at once, and its subclass for graphs adds operations.
    """

    __slots__ = ()

    # Facts.

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        raise NotImplementedError

    @property
    def element_shape(self) -> tuple[int | None, ...] | None:
        """The shape of the elements, with None for unknown dimensions or an unknown rank."""
        raise NotImplementedError

    @property
    def dynamic_size(self) -> bool:
        """Whether writes past the end make the array grow (a gradient lookup ends this)."""
        raise NotImplementedError

    @property
    def clear_after_read(self) -> bool:
        """Whether reading a slot frees its memory."""
        raise NotImplementedError

    @property
    def infer_shape(self) -> bool:
        """Whether the first write fixes the element shape."""
        raise NotImplementedError

    @property
    def is_gradient(self) -> bool:
        """Whether writes accumulate."""
        raise NotImplementedError

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        raise NotImplementedError

    @property
    def offsets(self) -> Array:
        """Where each element begins among the rows of all, as Arrow's offsets.

        Rows ``offsets[i]`` to ``offsets[i + 1]`` of ``concat().value`` are the element of slot i.
        No slot counts as read, and slots that were read and cleared keep their lengths. The offsets
        are a view where the elements were written in the order of their slots, and else computed.

        Returns
        -------
        read-only int64 array, shape (size + 1,)

        Raises
        ------
        InvalidArgumentError
            If the array is closed, an element is a scalar, elements differ in more than their first
            dimension, or a slot was never written and the element shape is not fully known.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", dynamic_size=True, infer_shape=False)
        >>> ta = ta.append([1.0, 2.0]).append([]).append([3.0])
        >>> ta.offsets
        array([0, 2, 2, 3])
        >>> ta.concat().value
        array([1., 2., 3.])
        """
        raise NotImplementedError

    @property
    def handle(self) -> Handle | Tensor:
        """The container and name of the array."""
        raise NotImplementedError

    @property
    def flow(self) -> Flow | Tensor:
        """The flow for operations that should run after all operations on this array so far."""
        raise NotImplementedError

    def size(self, *, name: str | None = None) -> np.int32 | Tensor:
        """Return the number of slots, as an int32 scalar.

        Parameters
        ----------
        name : str, optional
            As for `write`.

        Returns
        -------
        int32 scalar or Tensor
            The number of slots.

        Raises
        ------
        InvalidArgumentError
            If the array is closed.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=2, dynamic_size=True)
        >>> ta.append(1.0).size()
        np.int32(3)
        """
        raise NotImplementedError

    # Writing.

    def write(self, index: Integer, value: ArrayLike, *, name: str | None = None) -> Self:
        """Store a value in a slot; in a gradient array, add the value to the slot.

        Parameters
        ----------
        index : int
            The slot. In a dynamic array, a slot past the end makes the array grow.
        value : array-like
            A value of the array's dtype, whose shape fits the element shape. Python numbers and
            nested lists are converted to the array's dtype if no information is lost.
        name : str, optional
            Name of the operation in a graph; ignored outside graphs.

        Returns
        -------
        TensorArray
            The array with its new flow; outside graphs, the array itself.

        Raises
        ------
        InvalidArgumentError
            If the slot does not exist, was written or read, or if the dtype or shape of the value
            does not fit. The array does not change.
        ResourceExhaustedError
            If there is not enough memory to grow.

        Notes
        -----
        This is TensorFlow's ``TensorArrayWriteV3``.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=2)
        >>> ta.write(1, 0.5).read(1)
        np.float64(0.5)
        """
        raise NotImplementedError

    def append(self, value: ArrayLike, *, name: str | None = None) -> Self:
        """Write a value after the last slot of a dynamic array; errors are those of ``write``.

        Parameters
        ----------
        value : array-like
            As for `write`.
        name : str, optional
            As for `write`.

        Returns
        -------
        TensorArray
            The array with its new flow; outside graphs, the array itself.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", dynamic_size=True)
        >>> len(ta.append(3).append(4))
        2
        """
        raise NotImplementedError

    def accumulate(self, index: Integer, value: ArrayLike, *, name: str | None = None) -> Self:
        """Add a value to a slot of a gradient array; other errors are those of ``write``.

        Parameters
        ----------
        index : int
            The slot.
        value : array-like
            A value of the array's dtype and the shape of the slot.
        name : str, optional
            As for `write`.

        Returns
        -------
        TensorArray
            The array with its new flow; outside graphs, the array itself.

        Raises
        ------
        InvalidArgumentError
            If the array is a forward array, and as for `write`.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=1).write(0, 1.0)
        >>> g = ta.grad("gradients")
        >>> g.accumulate(0, 2.0).accumulate(0, 3.0).read(0)
        np.float64(5.0)
        """
        raise NotImplementedError

    def scatter(self, indices: ArrayLike, value: ArrayLike, *, name: str | None = None) -> Self:
        """Write row ``k`` of a value to slot ``indices[k]``; after an error, no row was written.

        Parameters
        ----------
        indices : vector of int
            One slot for each row of the value.
        value : array-like, shape (len(indices), ...)
            The rows.
        name : str, optional
            As for `write`.

        Returns
        -------
        TensorArray
            The array with its new flow; outside graphs, the array itself.

        Raises
        ------
        InvalidArgumentError
            As for `write`, and if the number of indices is not that of the rows.

        Notes
        -----
        This is TensorFlow's ``TensorArrayScatterV3``.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=3).scatter([2, 0, 1], [5, 6, 7]).stack()
        array([6, 7, 5])
        """
        raise NotImplementedError

    def unstack(self, value: ArrayLike, *, name: str | None = None) -> Self:
        """Write row ``k`` of a value to slot ``k``; errors are those of ``scatter``.

        A value without rows fixes the element shape, too, if a first write would.

        Parameters
        ----------
        value : array-like, shape (number of slots, ...)
            The rows.
        name : str, optional
            As for `write`.

        Returns
        -------
        TensorArray
            The array with its new flow; outside graphs, the array itself.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=2).unstack([[1, 2], [3, 4]]).read(1)
        array([3, 4])
        """
        raise NotImplementedError

    def split(self, value: ArrayLike, lengths: ArrayLike, *, name: str | None = None) -> Self:
        """Split a value along its first axis and write piece ``k`` to slot ``k``.

        Parameters
        ----------
        value : array-like, shape (sum(lengths), ...)
            The value to split.
        lengths : vector of int
            The number of rows of each piece: one piece per slot, unless the array is dynamic.
        name : str, optional
            As for `write`.

        Returns
        -------
        TensorArray
            The array with its new flow; outside graphs, the array itself.

        Raises
        ------
        InvalidArgumentError
            As for `write`, and if the lengths are not a vector, are negative, do not add up to the
            number of rows, or do not have one entry per slot.

        Notes
        -----
        This is TensorFlow's ``TensorArraySplitV3``.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", size=2, infer_shape=False)
        >>> ta.split([1, 2, 3], lengths=[1, 2]).read(1)
        array([2, 3])
        """
        raise NotImplementedError

    # Reading.

    def read(
        self, index: Integer, *, name: str | None = None, dtype: DTypeLike | None = None
    ) -> Array:
        """Return the value of a slot and mark it as read; a clearing array also clears the slot.

        Parameters
        ----------
        index : int
            The slot.
        name : str, optional
            Name of the operation in a graph; ignored outside graphs.
        dtype : dtype-like, optional
            The expected dtype; a dtype other than the array's is an error.

        Returns
        -------
        numpy.ndarray or scalar
            A read-only array of the element's shape, or a scalar if elements have no dimensions. An
            unwritten slot reads as zeros if the element shape is fully known.

        Raises
        ------
        InvalidArgumentError
            If the slot does not exist, is cleared, or is unwritten while the element shape is not
            fully known.

        Notes
        -----
        This is TensorFlow's ``TensorArrayReadV3``.

        Examples
        --------
        >>> nbta.TensorArray("float32", size=1, element_shape=(2,)).read(0)
        array([0., 0.], dtype=float32)
        """
        raise NotImplementedError

    def gather(
        self,
        indices: ArrayLike,
        *,
        name: str | None = None,
        element_shape: Pattern = None,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """Return the given slots, stacked along a new first axis; they count as read.

        Parameters
        ----------
        indices : vector of int
            The slots.
        name : str, optional
            As for `read`.
        element_shape : tuple of int or None, optional
            Merged into the array's own element shape, and kept there.
        dtype : dtype-like, optional
            As for `read`.

        Returns
        -------
        numpy.ndarray, shape (len(indices), ...)
            A read-only array; it is a view, not a copy, if the slots are consecutive.

        Raises
        ------
        InvalidArgumentError
            As for `read`, and if the shapes of the elements differ.
        UnimplementedError
            If there are no indices and the element shape is not fully known.

        Notes
        -----
        This is TensorFlow's ``TensorArrayGatherV3``.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=3).unstack([5, 6, 7]).gather([2, 0])
        array([7, 5])
        """
        raise NotImplementedError

    def stack(self, *, name: str | None = None) -> Array:
        """Return all slots, stacked along a new first axis; this is ``gather`` of every slot.

        Parameters
        ----------
        name : str, optional
            As for `read`.

        Returns
        -------
        numpy.ndarray, shape (number of slots, ...)
            A read-only array, which is not copied.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=2).unstack([5, 6]).stack()
        array([5, 6])
        """
        raise NotImplementedError

    def concat(
        self,
        *,
        name: str | None = None,
        element_shape_except0: Pattern = None,
        dtype: DTypeLike | None = None,
    ) -> Concat:
        """Concatenate all elements along their first axis, and return the number of rows of each.

        Parameters
        ----------
        name : str, optional
            As for `read`.
        element_shape_except0 : tuple of int or None, optional
            The expected shape of the elements after their first axis.
        dtype : dtype-like, optional
            As for `read`.

        Returns
        -------
        value : numpy.ndarray, shape (sum(lengths), ...)
            A read-only array: a view where the elements were written in the order of their slots.
        lengths : numpy.ndarray of int64
            The number of rows of each element.

        Raises
        ------
        InvalidArgumentError
            As for `read`; if elements are scalars; or if the shapes after the first axis differ.
        UnimplementedError
            If the array has no slots and the element shape is not fully known.

        Notes
        -----
        This is TensorFlow's ``TensorArrayConcatV3``.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", size=2, infer_shape=False)
        >>> value, lengths = ta.write(0, [1]).write(1, [2, 3]).concat()
        >>> value, lengths
        (array([1, 2, 3]), array([1, 2]))
        """
        raise NotImplementedError

    # Gradient arrays, lanes, and the end.

    def grad(
        self,
        source: str,
        flow: Flow | Tensor | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> TensorArray:
        """Return the gradient array of this array for a source: one accumulator per source.

        The first lookup makes it, with the size of this array and virtual zeros of the shapes of
        the slots written so far, and ends the growth of this array. A gradient array may itself be
        differentiated.

        Parameters
        ----------
        source : str
            The name of the gradient computation.
        flow : Flow, optional
            A flow of this array; the lookup runs after all operations before that flow.
        name : str, optional
            As for `read`.
        clear_after_read : bool, default True
            Whether reading a slot of the new array clears it.

        Returns
        -------
        TensorArray
            The gradient array.

        Raises
        ------
        InvalidArgumentError
            If the array is closed, or the flow is that of another array.
        UnimplementedError
            For strings, dates and records, which cannot be added.

        Notes
        -----
        This is TensorFlow's ``TensorArrayGradV3``.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=2).unstack([1.0, 2.0])
        >>> ta.grad("gradients").write(0, 0.5).write(0, 0.25).stack()
        array([0.75, 0.  ])
        """
        raise NotImplementedError

    def grad_with_shape(
        self,
        source: str,
        shape_to_prepend: ShapeLike,
        flow: Flow | Tensor | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> TensorArray:
        """Like ``grad``, with elements of shape ``shape_to_prepend + element_shape``.

        If there is already a gradient array for the source, that array is returned.

        Parameters
        ----------
        source : str
            As for `grad`.
        shape_to_prepend : tuple of int
            The dimensions before those of the elements.
        flow : Flow, optional
            As for `grad`.
        name : str, optional
            As for `read`.
        clear_after_read : bool, default True
            As for `grad`.

        Returns
        -------
        TensorArray
            The gradient array.

        Raises
        ------
        InvalidArgumentError
            For negative dimensions, and as for `grad`.
        UnimplementedError
            As for `grad`.

        Notes
        -----
        This is TensorFlow's ``TensorArrayGradWithShape``.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=1, element_shape=(2,))
        >>> ta.grad_with_shape("gradients", [3]).element_shape
        (3, 2)
        """
        raise NotImplementedError

    def lanes(self, count: int) -> Lanes:
        """Make private arrays that threads fill in parallel, and that are joined in a fixed order.

        Lanes of a dynamic array are empty arrays of the same kind; `nbta.Lanes.join` appends their
        slots after the last slot. Lanes of a gradient array are gradient arrays with virtual zeros
        instead of its sums; `nbta.Lanes.join` adds their sums to it.

        Parameters
        ----------
        count : int
            The number of lanes, from 1 to 65536: a fixed number, not the number of threads. The
            work of a lane depends only on it, so results are bitwise identical for any number of
            threads. A few times the number of processors divides the work well.

        Returns
        -------
        Lanes
            The lanes.

        Raises
        ------
        InvalidArgumentError
            If the array is closed, or is a forward array that does not grow, or for another number
            of lanes.
        ResourceExhaustedError
            If there is not enough memory for the lanes.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", dynamic_size=True).write(0, -1)
        >>> lanes = ta.lanes(3)
        >>> for k in reversed(range(3)):
        ...     part = lanes.take(k)
        ...     for i in lanes.range(k, 8):
        ...         part = part.append(i)
        >>> lanes.join().stack()
        array([-1,  0,  1,  2,  3,  4,  5,  6,  7])
        """
        raise NotImplementedError

    def identity(self, *, name: str | None = None) -> TensorArray:
        """Return the same array under a new flow; both names share the storage.

        Parameters
        ----------
        name : str, optional
            As for `write`.

        Returns
        -------
        TensorArray
            The array.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", size=1)
        >>> ta.identity().write(0, 7) is ta
        False
        >>> ta.read(0)
        np.int64(7)
        """
        raise NotImplementedError

    def close(self, *, name: str | None = None) -> Operation | None:
        """Free all memory at once; all other operations then fail. Gradient arrays stay open.

        If nogil functions or parallel loops are using the array, they fail, too, and the memory is
        freed when they end.

        Parameters
        ----------
        name : str, optional
            As for `write`.

        Returns
        -------
        Operation or None
            The operation in a graph; None outside graphs.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", size=1)
        >>> ta.close()
        >>> ta.close()
        >>> ta
        <nbta.TensorArray ... closed>
        """
        raise NotImplementedError

    # A sequence, which looks without reading.

    def __len__(self) -> int:
        raise NotImplementedError

    def __getitem__(self, index: Integer) -> Array:
        """What a slot holds, from after for a negative index; it does not count as read.

        Raises
        ------
        OutOfRangeError
            For a slot that does not exist; it is an `IndexError`.
        InvalidArgumentError
            For a slot that was cleared, an unwritten one while the element shape is not fully
            known, and for what is not an integer.
        """
        raise NotImplementedError

    def __iter__(self) -> Iterator[Array]:
        """What the slots hold, as ``ta[0]``, ``ta[1]``, ...; slots that come meanwhile too."""
        raise NotImplementedError

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        """What all slots hold, stacked; none counts as read."""
        raise NotImplementedError

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        """Capsules of Arrow's C data interface: numbers, or lists of them; none counts as read."""
        raise NotImplementedError

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """As `np.asarray`; a copy where the consumer cannot take read-only data."""
        raise NotImplementedError

    def __dlpack_device__(self) -> tuple[int, int]:
        raise NotImplementedError

    def plot(self, axes: Any = None) -> Any:
        """Draw the slots as cells, with those of the gradient arrays below, using matplotlib.

        Cells show which slots are unwritten, written, read or cleared, and the values of small
        elements. In a gradient array, they show which slots were added to. Of many slots, only the
        first and the last are shown. Plotting changes nothing: no slot counts as read.

        Parameters
        ----------
        axes : matplotlib axes or path, optional
            Where to draw; by default, the axes of a new figure, ``axes.figure``. A path is that of
            a file to write, which ends in ``.svg``, ``.png`` or ``.pdf``.

        Returns
        -------
        matplotlib.axes.Axes
            The axes.

        Raises
        ------
        InvalidArgumentError
            If the array belongs to a graph, if ``axes`` are not axes, or if the file name has
            another ending.
        FailedPreconditionError
            If matplotlib is not installed; the extra ``plot`` installs it.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=3).write(0, 1.5)
        >>> axes = ta.plot()
        >>> axes = ta.plot("array.png")  # doctest: +SKIP
        """
        raise NotImplementedError
