"""The array that users make."""

import inspect

import numpy as np

from nbta import errors, naming
from nbta.dtypes import as_dtype, code_of
from nbta.eager.base import (
    NO_FIELDS,
    NOTHING_SEEN,
    Request,
    as_integer,
    as_vector,
    put_pattern,
)
from nbta.eager.lanes import Lanes
from nbta.eager.reading import Reading
from nbta.eager.writing import Writing
from nbta.naming import Flow
from nbta.runtime import (
    bulk_methods,
    extension,
    lane_methods,
    look_methods,
    parallel_loops,
    python_calls,
    read_methods,
    write_methods,
)
from nbta.runtime import request as rq
from nbta.runtime.construct import register_constructor
from nbta.runtime.store import FIELD
from nbta.shapes import MAX_RANK, as_pattern

#: Whether NumPy's arrays know of versions of DLPack, and so hand out read-only data.
_DLPACK_1 = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


def _class_here():
    """The class of a new array; where graphs are known, that is another one while one is built."""
    return TensorArray


class TensorArray(Writing, Reading):
    """A list of tensors, indexed by integer, that a loop fills and a gradient pass reads back.

    Made while a graph is being built it is symbolic: its operations are added to the graph, and
    each run of the graph has an array of its own.

    Parameters
    ----------
    dtype : dtype-like
        Of the elements: a number, fixed-width string, date or record dtype.
    size : int, default 0
        How many slots there are.
    dynamic_size : bool, default False
        Whether a write past the end makes the array grow.
    clear_after_read : bool, optional
        Whether a read gives the slot's memory up; the slot can then be read only once. By default
        arrays of graphs clear, as TensorFlow's do, and others keep what is read.
    tensor_array_name : str, optional
        First part of the array's handle.
    element_shape : tuple of int or None, optional
        Shape of the elements; None in it stands for an unknown extent, None for an unknown rank.
    infer_shape : bool, default True
        Whether the first write fixes the element shape. With False elements may differ in shape
        and even in rank, as far as ``element_shape`` allows.
    name : str, optional
        Used where ``tensor_array_name`` is not given.

    Raises
    ------
    InvalidArgumentError
        For a negative size, an object dtype, or an element shape of more than 8 dimensions.
    ResourceExhaustedError
        When there is no memory for so many slots.

    Notes
    -----
    Follows TensorFlow's ``TensorArrayV3``. Slots of a forward array are written once. Values
    that reads hand out are read-only; they stay valid whatever happens to the array.

    Outside of graphs an array is a Python sequence besides: ``ta[i]``, ``len(ta)``, iteration and
    ``np.asarray(ta)`` look without reading. A look marks nothing and clears nothing; an unwritten
    slot shows the zeros that it would read as, and may still be written.

    Examples
    --------
    >>> import numpy as np
    >>> import nbta
    >>> ta = nbta.TensorArray(np.float64, size=0, dynamic_size=True, element_shape=(2,))
    >>> for t in range(3):
    ...     ta = ta.write(t, np.array([t, t * t], dtype=np.float64))
    >>> ta.stack()
    array([[0., 0.],
           [1., 1.],
           [2., 4.]])
    >>> len(ta), ta[-1]
    (3, array([2., 4.]))
    """

    __slots__ = ()

    def __new__(cls, *args, **kwargs):
        """Choose between an array of now and one of the graph that is being built."""
        return object.__new__(_class_here() if cls is TensorArray else cls)

    def __init__(
        self,
        dtype,
        size: int = 0,
        dynamic_size: bool = False,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        element_shape=None,
        infer_shape: bool = True,
        *,
        name: str | None = None,
    ):
        self._dtype = as_dtype(dtype)
        self._name = str(tensor_array_name or name or "TensorArray")
        request = Request()
        request[rq.INDEX] = as_integer("size", "size_rank", size)
        request[rq.DTYPE] = code_of(self._dtype)
        request[rq.COUNT] = self._dtype.itemsize
        request[rq.LIST] = bool(dynamic_size) | bool(clear_after_read) << 1 | bool(infer_shape) << 2
        put_pattern(request, as_pattern("element_shape", element_shape))
        self._store = None
        self._address, self._fields = 0, NO_FIELDS
        self._run(rq.CREATE, request)
        self._adopt(request[rq.OWNER])
        self._name += f"_{self._fields[FIELD.id]}"
        naming.register(self._fields[FIELD.id], self)

    # Gradient arrays, and the end.

    def grad(
        self,
        source: str,
        flow: Flow | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> "TensorArray":
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
        return self._gradient(source, (), flow, clear_after_read)

    def grad_with_shape(
        self,
        source: str,
        shape_to_prepend,
        flow: Flow | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> "TensorArray":
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
        prefix = as_vector(
            f"grad on {self._name}: shape_to_prepend", "prepend_rank", shape_to_prepend
        )
        return self._gradient(source, prefix, flow, clear_after_read)

    def _gradient(self, source, prefix, flow, clear_after_read):
        if not isinstance(source, str):
            message = f"grad on {self._name}: source must be a string, not {source!r}"
            raise errors.invalid("source", message)
        if flow is not None and flow.handle != self.handle:
            message = f"grad on {self._name}: the flow is {flow!r}; give this array's own"
            raise errors.invalid("flow", message)
        if len(prefix) > MAX_RANK:
            message = f"grad on {self._name}: shape_to_prepend has over {MAX_RANK} dimensions"
            raise errors.invalid("rank", message)
        code_points = np.array([ord(letter) for letter in source], np.int32)
        request = Request()
        request[rq.INDEX] = bool(clear_after_read)
        request[rq.VALUE], request[rq.COUNT] = code_points.ctypes.data, len(code_points)
        put_pattern(request, prefix)
        self._run(rq.GRAD, request)
        store = python_calls.native(python_calls.own_store)(request[rq.OWNER])
        return TensorArray._over(store, self._dtype, f"{self._name}@{source}")

    def lanes(self, count: int) -> Lanes:
        """Private arrays for threads to fill side by side, joined in a fixed order afterwards.

        Lanes of a dynamic array are empty arrays like it; `nbta.Lanes.join` appends their slots
        behind the last slot. Lanes of a gradient array are gradient arrays like it, with virtual
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
        return Lanes(self, count)

    def identity(self, *, name: str | None = None) -> "TensorArray":
        """The same array under a new flow; both names share the storage.

        Examples
        --------
        >>> ta = nbta.TensorArray("int64", size=1)
        >>> ta.identity().write(0, 7) is ta
        False
        >>> ta.read(0)
        np.int64(7)
        """
        return TensorArray._over(self._store, self._dtype, self._name)

    def close(self, *, name: str | None = None) -> None:
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
        self._seen = NOTHING_SEEN
        self._run(rq.CLOSE, Request())

    # Protocols.

    def __getitem__(self, index: int):
        """What a slot holds, from behind for a negative index; it does not count as read.

        Raises
        ------
        OutOfRangeError
            For a slot that does not exist; it is an `IndexError`.
        InvalidArgumentError
            For a slot that was cleared, an unwritten one while the element shape is not fully
            known, and for what is no integer.
        """
        return self._look_at(index)

    def __iter__(self):
        """What the slots hold, as ``ta[0]``, ``ta[1]``, ...; slots that come meanwhile too."""
        slot = 0
        while slot < len(self):
            yield self[slot]
            slot += 1

    def __array__(self, dtype=None, copy=None):
        """What all slots hold, stacked; none counts as read."""
        value = self._look_at_all()
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(f"{self._name}: {value.dtype} as {dtype} needs a copy")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        """As `np.asarray`; a copy where the consumer cannot take read-only data."""
        value = self._look_at_all()
        if max_version is None or max_version < (1, 0) or not _DLPACK_1:
            return value.copy().__dlpack__(stream=stream)
        options = {} if copy is None else {"copy": copy}
        return value.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, **options
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # the CPU

    def _repr_html_(self):
        from nbta.inspect.array_view import html_of

        return html_of(self)

    def plot(self, axes=None):
        """Draw the slots as cells, and those of the gradient arrays below, with matplotlib.

        Cells show which slots are unwritten, written, read or cleared, and the values of small
        elements. In a gradient array they tell slots that were added to from those that were not.
        Of many slots the first and the last are shown. Looking changes nothing: no slot counts as
        read.

        Parameters
        ----------
        axes : matplotlib axes, optional
            Where to draw; by default those of a new figure, ``axes.figure``.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        InvalidArgumentError
            For an array of a graph, and for what are no axes.
        FailedPreconditionError
            Where matplotlib is not installed; the extra ``plot`` has it.

        Examples
        --------
        >>> ta = nbta.TensorArray("float64", size=3).write(0, 1.5)
        >>> axes = ta.plot()
        >>> axes.figure.savefig("array.png")  # doctest: +SKIP
        """
        from nbta.inspect.array_view import draw

        return draw(self, axes)

    def __reduce__(self):
        from nbta.saving import pack, unpack

        return unpack, (pack(self),)

    @property
    def _numba_type_(self):
        """What compiled code sees: dtype and, where it is known, rank of the elements."""
        rank = self._fields[FIELD.rank]
        try:
            return extension.type_of(self._dtype, None if rank < 0 else rank, self._is_uniform())
        except TypeError as error:  # a dtype that Numba cannot compute with
            return errors.NoNumbaType(error)


_, *_arguments = inspect.signature(TensorArray.__init__).parameters.values()
#: For help(), which would show the ``*args`` of ``__new__``.
TensorArray.__signature__ = inspect.Signature(_arguments)


def _from_compiled_code(store, dtype):
    """The face of an array that compiled code made or passed on."""
    array = TensorArray._over(store, dtype, "")
    number = array._fields[FIELD.id]
    trail = python_calls.native(python_calls.name_trail)(array._address)
    array._name = errors.handle_of(number) + "".join(map(chr, trail))
    if not trail.size and naming.find(number) is None:
        naming.register(number, array)
    return array


extension.faces["make"] = _from_compiled_code
register_constructor(TensorArray)
#: Imported for what they register: methods in compiled code, and the rewrite of parallel loops.
_METHODS = (bulk_methods, lane_methods, look_methods, read_methods, write_methods, parallel_loops)
