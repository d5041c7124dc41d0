"""The array that users make: a wrapper of a store, whose operations run at once."""

from __future__ import annotations

import contextlib
import inspect
import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numba.extending import typeof_impl

from nbta import errors, naming
from nbta.dtypes import INT32_MAX, as_dtype, as_value, code_of
from nbta.eager import (
    NO_FIELDS,
    Lanes,
    Request,
    StoreWrapper,
    as_integer,
    as_vector,
    put_pattern,
)
from nbta.errors import OPERATIONS, STATUS
from nbta.immutable import anywhere, computed
from nbta.interface import ArrayInterface
from nbta.naming import Flow, Handle
from nbta.runtime import (
    extension,
    methods,
    parallel_loops,
    promotion,
    python_calls,
    raw_methods,
)
from nbta.runtime import request as rq
from nbta.runtime.compiled import loaded_once
from nbta.runtime.methods import register_constructor
from nbta.runtime.python_methods import quicken
from nbta.runtime.request import Concat
from nbta.runtime.slots import CLEARED, READ, WRITTEN
from nbta.runtime.store import FIELD, PACKED, RAGGED, UNDECIDED
from nbta.shapes import MAX_RANK, as_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbta.graph.operation import Operation, Tensor
    from nbta.typing import Array, ArrayLike, DTypeLike, Integer, Pattern, ShapeLike

_RAGGED_BYTES = 64
#: Stands for the view of all elements, and its address, until there is one.
NOTHING_SEEN = (-1, None)
#: Whether NumPy's arrays know of versions of DLPack, and so hand out read-only data.
_DLPACK_1 = np.lib.NumpyVersion(np.__version__) >= "2.1.0"


class ArrayHandle(Handle):
    """A handle outside of graphs: container and name, with the array itself.

    Parameters
    ----------
    array : TensorArray
    """

    array: TensorArray

    def __new__(cls, array: TensorArray) -> Self:
        """Take the name of an array."""
        self = super().__new__(cls, *array._plain_handle)
        self.array = array
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Handle, tuple(self)  # another process has no such array

    @property
    def _store(self) -> Any:
        return self.array._store

    @property
    def _numba_type_(self) -> Any:
        """What compiled code sees: the type of the array."""
        kind = self.array._numba_type_
        return kind if isinstance(kind, errors.NoNumbaType) else extension.HandleType(kind)


@typeof_impl.register(ArrayHandle)
def _type_of_handle(handle: ArrayHandle, _: Any) -> Any:
    """Numba takes a handle for a tuple of two strings, which it is, too."""
    return handle._numba_type_


@typeof_impl.register(Flow)
def _type_of_flow(flow: Flow, _: Any) -> Any:
    if flow._store is not None:
        return extension.FLOW
    message = f"{flow!r} was pickled, without its array; take the flow of an array"
    return errors.NoNumbaType(errors.invalid("flow", message))


def _class_here() -> Any:
    """The class of a new array; where graphs are known, that is another one while one is built."""
    return TensorArray


class TensorArray(StoreWrapper, ArrayInterface):
    """A list of tensors, indexed by integer, that a loop fills and a gradient pass reads.

    If it is made while a graph is being built, it is symbolic: its operations are added to the
    graph, and each run of the graph has its own array.

    Parameters
    ----------
    dtype : dtype-like
        The dtype of the elements: a number, fixed-width string, date or record dtype.
    size : int, default 0
        The number of slots.
    dynamic_size : bool, default False
        Whether a write past the end makes the array grow.
    clear_after_read : bool, optional
        Whether reading a slot frees its memory, so that it can be read only once. By default,
        arrays in graphs clear slots when they are read, as in TensorFlow, and other arrays do not.
    tensor_array_name : str, optional
        The first part of the array's name.
    element_shape : tuple of int or None, optional
        The shape of the elements. None in the tuple is an unknown dimension; None instead of the
        tuple is an unknown rank.
    infer_shape : bool, default True
        Whether the first write fixes the element shape. If False, elements may differ in shape
        and even in rank, as far as ``element_shape`` allows.
    name : str, optional
        Used if ``tensor_array_name`` is not given.

    Raises
    ------
    InvalidArgumentError
        For a negative size, an object dtype, or an element shape of more than 8 dimensions.
    ResourceExhaustedError
        If there is not enough memory for the slots.

    Notes
    -----
    The class follows TensorFlow's ``TensorArrayV3``. Slots of a forward array are written once. The
    results of reads are read-only; they stay valid whatever happens to the array.

    Outside graphs, an array is also a Python sequence: ``ta[i]``, ``len(ta)``, iteration and
    ``np.asarray(ta)`` inspect elements without reading them, which marks and clears nothing. An
    unwritten slot is shown as the zeros that a read would return, and may still be written.

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

    __slots__ = ("_seen",)
    __signature__: ClassVar[inspect.Signature]
    _seen: tuple[int, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Choose between an array of now and one of the graph that is being built."""
        return object.__new__(_class_here() if cls is TensorArray else cls)

    def __init__(
        self,
        dtype: DTypeLike,
        size: Integer = 0,
        dynamic_size: bool = False,
        clear_after_read: bool | None = None,
        tensor_array_name: str | None = None,
        element_shape: Pattern = None,
        infer_shape: bool = True,
        *,
        name: str | None = None,
    ) -> None:
        self._dtype = as_dtype(dtype)
        given = str(tensor_array_name or name or "")
        self._name = given or naming.UNNAMED
        request = Request()
        if given:
            points = code_points(given)
            request[rq.VALUE], request[rq.RESULT] = points.ctypes.data, len(points)
        request[rq.INDEX] = as_integer("size", "size_rank", size)
        request[rq.DTYPE] = code_of(self._dtype)
        request[rq.COUNT] = self._dtype.itemsize
        request[rq.LIST] = bool(dynamic_size) | bool(clear_after_read) << 1 | bool(infer_shape) << 2
        put_pattern(request, as_pattern("element_shape", element_shape))
        self._store = None
        self._address, self._fields = 0, NO_FIELDS
        self._run(rq.CREATE, request)
        self._adopt(request[rq.OWNER])
        self._name = naming.forward_name(given, self._fields[FIELD.id])

    @classmethod
    def _eager(cls, *args: Any, **options: Any) -> TensorArray:
        """An array of now, whatever graph is being built."""
        self = object.__new__(TensorArray)
        TensorArray.__init__(self, *args, **options)
        return self

    def _bind(self, store: Any) -> None:
        super()._bind(store)
        self._seen = NOTHING_SEEN
        _quicken()

    def _put_value(self, operation: Any, request: Any, value: Any) -> None:
        if value.ndim > MAX_RANK + 1:
            raise errors.invalid(
                "rank",
                f"{OPERATIONS[operation]} on {self._name}: elements have at most {MAX_RANK} "
                f"dimensions, and the value has {value.ndim}; reshape it",
            )
        request[rq.DTYPE] = code_of(value.dtype)
        request[rq.VALUE] = value.ctypes.data
        request[rq.RANK] = value.ndim
        request[rq.SHAPE : rq.SHAPE + value.ndim] = value.shape

    def _dtype_asked(self, dtype: Any) -> Any:
        """Code of the dtype that a read asks for; -1 for one that is not the array's."""
        if dtype is None or np.dtype(dtype) == self._dtype:
            return code_of(self._dtype)
        return -1

    def _result(self, request: Any) -> Any:
        """The array that a kernel's request describes."""
        rank = request[rq.OUT_RANK]
        shape = tuple(request[rq.OUT_SHAPE : rq.OUT_SHAPE + rank])
        if not request[rq.OWNER]:
            value = np.empty(shape, self._dtype)
        else:
            nbytes = math.prod(shape) * self._dtype.itemsize
            take = python_calls.native(python_calls.take_bytes)
            data = take(request[rq.OWNER], request[rq.RESULT], nbytes)
            value = data.view(self._dtype).reshape(shape)
        value.flags.writeable = False
        return value

    def _bytes_in(self, slots: Any) -> Any:
        """About how many bytes a number of slots hold; ragged ones cost more than they hold."""
        return slots * (self._fields[FIELD.element_bytes] or _RAGGED_BYTES)

    # Facts.

    @property
    def element_shape(self) -> tuple[int | None, ...] | None:
        rank, first = self._fields[FIELD.rank], FIELD.dimension0
        if rank < 0:
            return None
        return tuple(None if n < 0 else n for n in self._fields[first : first + rank])

    @property
    def dynamic_size(self) -> bool:
        return bool(self._fields[FIELD.dynamic])

    @property
    def clear_after_read(self) -> bool:
        return bool(self._fields[FIELD.clear_after_read])

    @property
    def infer_shape(self) -> bool:
        return bool(self._fields[FIELD.infer_shape])

    @property
    def is_gradient(self) -> bool:
        return bool(self._fields[FIELD.gradient])

    @property
    def closed(self) -> bool:
        return bool(self._fields[FIELD.closed])

    @property
    def offsets(self) -> Array:
        request = Request()
        self._run(rq.OFFSETS, request, 8 * self._fields[FIELD.size])
        take = python_calls.native(python_calls.take_bytes)
        count = request[rq.OUT_SHAPE]
        offsets = take(request[rq.OWNER], request[rq.RESULT], 8 * count).view(np.int64)
        offsets.flags.writeable = False
        return computed(offsets)

    @property
    def _plain_handle(self) -> Handle:
        return Handle(naming.GRADIENT if self.is_gradient else naming.FORWARD, self._name)

    @property
    def handle(self) -> Handle | Tensor:
        return ArrayHandle(self)

    @property
    def flow(self) -> Flow | Tensor:
        flow = Flow(self._plain_handle)
        flow._store = self._store
        return flow

    def size(self, *, name: str | None = None) -> np.int32 | Tensor:
        if (count := len(self)) > INT32_MAX:
            operation = OPERATIONS.index("size")
            facts = operation, self._name, 0, 0, count, (0,), (0,)
            raise errors.failure(STATUS.size_int32, *facts)
        return np.int32(count)

    def __len__(self) -> int:
        if self.closed:
            message = f"size on {self._name}: the array is closed; make a new one"
            raise errors.invalid("closed", message)
        return self._fields[FIELD.size]

    def _is_uniform(self) -> Any:
        """Whether elements lie, or will lie, in one buffer in the dtype that users see."""
        layout = self._fields[FIELD.layout]
        if layout == UNDECIDED and not self.infer_shape:
            return False
        stored = self._fields[FIELD.storage_itemsize]
        return layout not in (RAGGED, PACKED) and stored == self._dtype.itemsize

    def _states(self) -> Any:
        return python_calls.native(python_calls.state_bytes)(self._address)[: len(self)]

    def _count(self, state: Any) -> Any:
        """Slots in a state, counted in pieces: a sparse array may be larger than memory."""
        states = self._states()
        pieces = (states[i : i + (1 << 20)] for i in range(0, len(states), 1 << 20))
        return sum(int(np.count_nonzero(piece & state)) for piece in pieces)

    def __repr__(self) -> str:
        if self.closed:
            return f"<nbta.TensorArray {self._name!r} closed>"
        written, read, cleared = (self._count(state) for state in (WRITTEN, READ, CLEARED))
        return (
            f"<nbta.TensorArray {self._name!r} dtype={self._dtype} size={len(self)} "
            f"element_shape={self.element_shape} written={written} read={read} cleared={cleared}>"
        )

    # Writing.

    def write(self, index: Integer, value: ArrayLike, *, name: str | None = None) -> Self:
        return self._write(rq.WRITE, index, value)

    def _write(self, operation: Any, index: Any, value: Any) -> Any:
        name = OPERATIONS[operation]
        request = Request()
        request[rq.INDEX] = as_integer(f"{name} on {self._name}: index", "index_rank", index)
        value = as_value(name, self._name, value, self._dtype)
        self._put_value(operation, request, value)
        self._run(operation, request, value.nbytes)
        return self

    def append(self, value: ArrayLike, *, name: str | None = None) -> Self:
        return self._write(rq.APPEND, 0, value)

    def accumulate(self, index: Integer, value: ArrayLike, *, name: str | None = None) -> Self:
        return self._write(rq.ACCUMULATE, index, value)

    def scatter(self, indices: ArrayLike, value: ArrayLike, *, name: str | None = None) -> Self:
        slots = as_vector(f"scatter on {self._name}: indices", "indices_rank", indices)
        return self._scatter(slots, value)

    def unstack(self, value: ArrayLike, *, name: str | None = None) -> Self:
        return self._scatter(None, value)

    def _scatter(self, slots: Any, value: Any) -> Any:
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

    def split(self, value: ArrayLike, lengths: ArrayLike, *, name: str | None = None) -> Self:
        return self._split(value, lengths)

    def _split(self, value: Any, lengths: Any, partly: Any = False) -> Any:
        """`split`; ``partly`` says that there may be fewer pieces than slots."""
        pieces = as_vector(f"split on {self._name}: lengths", "split_lengths_rank", lengths)
        value = as_value("split", self._name, value, self._dtype)
        request = Request()
        self._put_value(rq.SPLIT, request, value)
        request[rq.LIST], request[rq.COUNT] = pieces.ctypes.data, len(pieces)
        request[rq.INDEX] = partly
        self._run(rq.SPLIT, request, value.nbytes)
        return self

    # Reading.

    def read(
        self, index: Integer, *, name: str | None = None, dtype: DTypeLike | None = None
    ) -> Array:
        request = Request()
        request[rq.INDEX] = as_integer(f"read on {self._name}: index", "index_rank", index)
        return self._read_many(rq.READ, request, dtype)[()]

    def _look(self) -> None:
        """Keep a NumPy view of all elements, for reads that hand out a part of it.

        There is none where another thread has closed the array.
        """
        view = python_calls.native(python_calls.data_bytes)(self._address)
        if len(view) == 0:
            return
        shape, base = self.element_shape, view.ctypes.data
        nbytes = self._fields[FIELD.element_bytes]
        slots = len(view) // nbytes
        view = view[: slots * nbytes].view(self._dtype).reshape(slots, *(shape or ()))
        view.flags.writeable = False
        self._seen = base, view

    def _look_at(self, index: Any) -> Any:
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

    def _look_at_all(self) -> Any:
        """What all slots hold, stacked, without a read."""
        return self._read_many(rq.LOOK_AT_ALL, Request())

    def gather(
        self,
        indices: ArrayLike,
        *,
        name: str | None = None,
        element_shape: Pattern = None,
        dtype: DTypeLike | None = None,
    ) -> Array:
        return self._gather(indices, element_shape, dtype)

    def _gather(self, indices: Any, element_shape: Any, dtype: Any, strict: Any = False) -> Any:
        """`gather`; if strict, no slots have the shape asked for, whatever the array's is."""
        slots = as_vector(f"gather on {self._name}: indices", "indices_rank", indices)
        request = Request()
        request[rq.LIST], request[rq.COUNT] = slots.ctypes.data, len(slots)
        request[rq.INDEX] = strict
        put_pattern(request, as_pattern("element_shape", element_shape))
        return self._read_many(rq.GATHER, request, dtype)

    def stack(self, *, name: str | None = None) -> Array:
        return self._read_many(rq.STACK, Request())

    def _read_many(self, operation: Any, request: Any, dtype: Any = None) -> Any:
        request[rq.DTYPE] = self._dtype_asked(dtype)
        slots = request[rq.COUNT] if operation == rq.GATHER else self._fields[FIELD.size]
        moved = self._bytes_in(1 if operation in (rq.READ, rq.LOOK) else slots)
        self._run(operation, request, moved)
        return computed(self._result(request))

    def concat(
        self,
        *,
        name: str | None = None,
        element_shape_except0: Pattern = None,
        dtype: DTypeLike | None = None,
    ) -> Concat:
        return self._concat(element_shape_except0, dtype)

    def _concat(self, element_shape_except0: Any = None, dtype: Any = None, count: Any = 0) -> Any:
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
                return Concat(value, computed(lengths[: request[rq.COUNT]]))

    # Gradient arrays, lanes, and the end.

    def grad(
        self,
        source: str,
        flow: Flow | Tensor | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> TensorArray:
        return self._gradient(source, (), flow, clear_after_read)

    def grad_with_shape(
        self,
        source: str,
        shape_to_prepend: ShapeLike,
        flow: Flow | Tensor | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> TensorArray:
        prefix = as_vector(
            f"grad on {self._name}: shape_to_prepend", "prepend_rank", shape_to_prepend
        )
        return self._gradient(source, prefix, flow, clear_after_read)

    def _gradient(self, source: Any, prefix: Any, flow: Any, clear_after_read: Any) -> Any:
        source = as_source(f"grad on {self._name}", source)
        flow = None if flow is None else as_flow(f"grad on {self._name}: flow", flow)
        if isinstance(flow, Flow) and flow.handle != self._plain_handle:
            message = f"grad on {self._name}: the flow is {flow!r}; give this array's own"
            raise errors.invalid("flow", message)
        if len(prefix) > MAX_RANK:
            message = f"grad on {self._name}: shape_to_prepend has over {MAX_RANK} dimensions"
            raise errors.invalid("rank", message)
        points, request = code_points(source), Request()
        request[rq.INDEX] = bool(clear_after_read)
        request[rq.VALUE], request[rq.COUNT] = points.ctypes.data, len(points)
        put_pattern(request, prefix)
        self._run(rq.GRAD, request)
        store = python_calls.native(python_calls.own_store)(request[rq.OWNER])
        return TensorArray._over(store, self._dtype, naming.gradient_name(self._name, source))

    def _let_grow(self) -> None:
        """Let writes past the end make a gradient array longer."""
        self._fields[FIELD.dynamic] = 1

    def lanes(self, count: int) -> Lanes:
        return Lanes(self, count)

    def identity(self, *, name: str | None = None) -> TensorArray:
        return TensorArray._over(self._store, self._dtype, self._name)

    def close(self, *, name: str | None = None) -> Operation | None:  # type: ignore[return]
        self._seen = NOTHING_SEEN
        self._run(rq.CLOSE, Request())

    # A sequence.

    def __getitem__(self, index: Integer) -> Array:
        return self._look_at(index)

    def __iter__(self) -> Iterator[Array]:
        slot = 0
        while slot < len(self):
            yield self[slot]
            slot += 1

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        value = self._look_at_all()
        if dtype is not None and np.dtype(dtype) != value.dtype:
            if copy is False:
                raise ValueError(f"{self._name}: {value.dtype} as {dtype} needs a copy")
            return value.astype(dtype)
        return value.copy() if copy else value

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        from nbta import arrow

        return arrow.export(self)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        value = self._look_at_all()
        if max_version is None or max_version < (1, 0) or not _DLPACK_1:
            return value.copy().__dlpack__(stream=stream)
        options = {} if copy is None else {"copy": copy}
        return value.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, **options
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # the CPU

    if not TYPE_CHECKING:  # type checkers tell of what there is not
        __setitem__ = errors.NotOfArrays("__setitem__")
        __delitem__ = errors.NotOfArrays("__delitem__")

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in errors.NOT_OF_ARRAYS]

    def _repr_html_(self) -> Any:
        from nbta.display.array_view import html_of

        return html_of(self)

    def plot(self, axes: Any = None) -> Any:
        from nbta.display.array_view import draw

        return draw(self, axes)

    @property
    def _numba_type_(self) -> Any:
        """What compiled code sees: dtype and, where it is known, rank of the elements."""
        rank = self._fields[FIELD.rank]
        try:
            return extension.type_of(self._dtype, None if rank < 0 else rank, self._is_uniform())
        except TypeError as error:  # a dtype that Numba cannot compute with
            return errors.NoNumbaType(error)


@loaded_once
def _quicken() -> None:
    """Let Python call the methods for one element in machine code, from the first array on."""
    quicken(TensorArray, TensorArray._look, computed, anywhere)


for _name in errors.NOT_OF_ARRAYS.keys() - vars(TensorArray).keys():
    setattr(TensorArray, _name, errors.NotOfArrays(_name))
_, *_arguments = inspect.signature(TensorArray.__init__).parameters.values()
#: For help(), which would show the ``*args`` of ``__new__``.
TensorArray.__signature__ = inspect.Signature(_arguments)


def code_points(text: str) -> np.ndarray[Any, Any]:
    """A text as kernels take it."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.int32)


def as_source(operation: str, source: Any) -> str:
    """A source as a string; bytes are UTF-8, as in TensorFlow."""
    if isinstance(source, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return source.decode()
    if isinstance(source, str):
        return str(source)
    message = f"{operation}: source must be a string, not {source!r}"
    raise errors.invalid("source", message)


def as_flow(argument: str, flow: Any) -> Any:
    """A flow as operations take it: a `Flow`, a tensor, or a float32 scalar of no meaning.

    Parameters
    ----------
    argument : str
        What messages call it.
    flow : Flow, Tensor, float or float32 scalar
    """
    if isinstance(flow, Flow):
        return flow
    if isinstance(flow, int | float) and not isinstance(flow, bool | np.generic):
        return np.float32(flow)
    dtype, rank = getattr(flow, "dtype", None), getattr(flow, "ndim", -1)
    if dtype == np.float32 and rank in (0, None):
        return flow
    found = repr(flow) if rank == -1 else f"of {dtype} with {rank} dimensions"
    message = (
        f"{argument} must be a flow that an operation on the array gave, or a float32 scalar; "
        f"this is {found}"
    )
    raise errors.invalid("flow", message)


def _from_compiled_code(store: Any, dtype: Any) -> Any:
    """The wrapper of an array that compiled code made or passed on."""
    array = TensorArray._over(store, dtype, "")
    name, suffix = "", ""
    if array._fields[FIELD.cold]:  # else it has neither; to ask took 4 us
        name = "".join(map(chr, python_calls.native(python_calls.name_points)(array._address)))
        suffix = "".join(map(chr, python_calls.native(python_calls.name_suffix)(array._address)))
    array._name = naming.forward_name(name, array._fields[FIELD.id]) + suffix
    return array


extension.wrappers["make"] = _from_compiled_code
register_constructor(TensorArray)
#: Imported for what they register: methods in compiled code, and the rewrite of parallel loops.
_METHODS = (methods, parallel_loops, promotion, raw_methods)
