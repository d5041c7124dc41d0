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
        """Of the elements."""
        raise NotImplementedError

    @property
    def element_shape(self) -> tuple[int | None, ...] | None:
        """As far as it is known: None in it for an unknown dimension, None for an unknown rank."""
        raise NotImplementedError

    @property
    def dynamic_size(self) -> bool:
        """Whether writes past the end make the array grow (a gradient lookup ends this)."""
        raise NotImplementedError

    @property
    def clear_after_read(self) -> bool:
        """Whether a read gives the slot's memory up."""
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
    def handle(self) -> Handle | Tensor:
        """Container and name."""
        raise NotImplementedError

    @property
    def flow(self) -> Flow | Tensor:
        """What an operation takes to run after all that this array has seen."""
        raise NotImplementedError

    def size(self, *, name: str | None = None) -> np.int32 | Tensor:
        """How many slots there are, as an int32 scalar.

        Raises
        ------
        InvalidArgumentError
            For a closed array.
        """
        raise NotImplementedError

    # Writing.

    def write(self, index: Integer, value: ArrayLike, *, name: str | None = None) -> Self:
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
        raise NotImplementedError

    def append(self, value: ArrayLike, *, name: str | None = None) -> Self:
        """Write after the last slot of a dynamic array; errors as for ``write``.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", dynamic_size=True)
        >>> len(ta.append(3).append(4))
        2
        """
        raise NotImplementedError

    def accumulate(self, index: Integer, value: ArrayLike, *, name: str | None = None) -> Self:
        """Add a value into a slot of a gradient array; errors as for ``write``.

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
        raise NotImplementedError

    def scatter(self, indices: ArrayLike, value: ArrayLike, *, name: str | None = None) -> Self:
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
        raise NotImplementedError

    def unstack(self, value: ArrayLike, *, name: str | None = None) -> Self:
        """Write row ``k`` of a value to slot ``k``; errors as for ``scatter``.

        A value of no rows tells the shape of elements too, where a first write would.

        Examples
        --------
        >>> nbta.TensorArray("int64", size=2).unstack([[1, 2], [3, 4]]).read(1)
        array([3, 4])
        """
        raise NotImplementedError

    def split(self, value: ArrayLike, lengths: ArrayLike, *, name: str | None = None) -> Self:
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
        raise NotImplementedError

    # Reading.

    def read(
        self, index: Integer, *, name: str | None = None, dtype: DTypeLike | None = None
    ) -> Array:
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
        raise NotImplementedError

    def gather(
        self,
        indices: ArrayLike,
        *,
        name: str | None = None,
        element_shape: Pattern = None,
        dtype: DTypeLike | None = None,
    ) -> Array:
        """The listed slots, stacked along a new first axis; read rules as for ``read``.

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
            Read-only; a view, not a copy, where the slots lie one after the other.

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
        raise NotImplementedError

    def stack(self, *, name: str | None = None) -> Array:
        """All slots, stacked along a new first axis; `gather` of every slot.

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
        """All elements joined along their first axis, and how many rows each has.

        Parameters
        ----------
        element_shape_except0 : tuple of int or None, optional
            What the shape after the first axis must fit.
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
            As `read`; for scalar elements; when the shapes after the first axis differ.
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
        """The gradient array of this array for a source: one accumulator per source.

        The first lookup makes it, with this array's size and virtual zeros of the shapes of the
        slots written so far, and ends this array's growth. A gradient array may itself be
        differentiated.

        Parameters
        ----------
        source : str
            Which gradient computation asks.
        flow : Flow, optional
            Of this array; the lookup comes after all operations that it has seen.
        clear_after_read : bool, default True
            Whether reads of the new array clear its slots.

        Returns
        -------
        TensorArray

        Raises
        ------
        InvalidArgumentError
            For a closed array, or a flow of another one.
        UnimplementedError
            For strings, dates and records, which cannot be added.

        Notes
        -----
        TensorFlow's ``TensorArrayGradV3``.

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
        """`grad`, with elements of shape ``shape_to_prepend + element_shape``.

        Where the gradient array for the source exists already, it is given as it is.

        Notes
        -----
        TensorFlow's ``TensorArrayGradWithShape``.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=1, element_shape=(2,))
        >>> ta.grad_with_shape("gradients", [3]).element_shape
        (3, 2)
        """
        raise NotImplementedError

    def lanes(self, count: int) -> Lanes:
        """Private arrays for threads to fill side by side, joined in a fixed order afterwards.

        Lanes of a dynamic array are empty arrays like it; `nbta.Lanes.join` appends their slots
        after the last slot. Lanes of a gradient array are gradient arrays like it, with virtual
        zeros in place of its sums; there it adds theirs.

        Parameters
        ----------
        count : int
            How many, from 1 to 65536: a fixed number, not the number of threads. What a lane does
            depends on it and on nothing else, so the result is the same for any number of
            threads, to the bit. A few times as many as there are processors share the work well.

        Returns
        -------
        Lanes

        Raises
        ------
        InvalidArgumentError
            For a closed array, a forward array that does not grow, or another number of lanes.
        ResourceExhaustedError
            When there is no memory for so many lanes.

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
        """The same array under a new flow; both names share the storage.

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
        """Free everything at once; every other operation then fails. Gradient arrays live on.

        Where nogil functions or parallel loops use the array, they fail too, and the memory is
        freed when they end.

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
            known, and for what is no integer.
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
        """Draw the slots as cells, and those of the gradient arrays below, with matplotlib.

        Cells show which slots are unwritten, written, read or cleared, and the values of small
        elements. In a gradient array they tell slots that were added to from those that were not.
        Of many slots the first and the last are shown. Looking changes nothing: no slot counts as
        read.

        Parameters
        ----------
        axes : matplotlib axes or path, optional
            Where to draw; by default those of a new figure, ``axes.figure``. A path is that of a
            file to write, which ends in ``.svg``, ``.png`` or ``.pdf``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InvalidArgumentError
            For an array of a graph, for what are no axes, and for a file with another ending.
        FailedPreconditionError
            Where matplotlib is not installed; the extra ``plot`` has it.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=3).write(0, 1.5)
        >>> axes = ta.plot()
        >>> axes = ta.plot("array.png")  # doctest: +SKIP
        """
        raise NotImplementedError
