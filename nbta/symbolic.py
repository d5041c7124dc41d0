"""Tensor arrays inside a graph: a handle, and the flow that orders what is done with it."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nbta import shapes, tensor_array
from nbta.dtypes import as_dtype, as_plain, as_value
from nbta.errors import UnimplementedError, invalid, not_of_arrays
from nbta.graph.graph import current
from nbta.graph.operation import Spec, Tensor
from nbta.naming import gradient_name
from nbta.ops import numbers, tensor_methods
from nbta.ops.arrays import tensor_arrays as arrays
from nbta.ops.arrays.tensor_arrays import Access, build
from nbta.ops.core.dimensions import pattern_of
from nbta.ops.core.dispatch import as_array, as_tensor, building
from nbta.ops.core.filling import arange
from nbta.ops.core.shaping import cast, identity, shape
from nbta.runtime.request import Concat
from nbta.tensor_array import TensorArray, as_flow, as_source

if TYPE_CHECKING:
    from nbta.graph.operation import Operation
    from nbta.naming import Flow
    from nbta.typing import ArrayLike, DTypeLike, Integer, Pattern, ShapeLike


@dataclass(slots=True)
class Facts:
    """What is known of an array when the graph is built; all its names share this."""

    dtype: np.dtype
    element_shape: tuple | None
    infer_shape: bool
    name: str
    dynamic_size: bool
    clear_after_read: bool
    prefixes: dict = field(default_factory=dict)  # of gradient arrays: how long, by source
    declared: tuple | None = None  # what the array itself was made with
    is_gradient: bool = False  # proven to be made by a lookup, so that writes add

    def admit(self, operation, argument, spec, rows=None):
        """Hold an element, or one of several rows, against what is known, and learn from it."""
        if spec.dtype != self.dtype:
            message = (
                f"{operation} on {self.name}: the array holds {self.dtype}, and {argument} is "
                f"{spec.dtype}; cast it with nbta.cast"
            )
            raise invalid("write_dtype", message)
        if rows == 0:  # nothing is written, which decides nothing
            return
        try:
            merged = shapes.merge(self.element_shape, spec.shape)
        except ValueError:
            message = (
                f"{operation} on {self.name}: elements have shape {shapes.text(self.element_shape)}"
                f", and {argument} gives {shapes.text(spec.shape)}; reshape it, or make the array "
                f"with infer_shape=False and a wider element_shape"
            )
            raise invalid("incompatible_element_shape", message) from None
        if self.infer_shape:
            self.element_shape = merged

    def told(self):
        """The element shape, where all of it is known and the array was not made with it.

        Who reads several slots hands it on, for there may be no slot that tells it.
        """
        learnt = shapes.is_known(self.element_shape) and not shapes.is_known(self.declared)
        return self.element_shape if learnt else None

    def told_rows(self):
        """Whether the shape after the first axis is known, and the array was not made with it."""
        shape, declared = self.element_shape, self.declared
        made_so = bool(declared) and shapes.is_known(declared[1:])
        return bool(shape) and shapes.is_known(shape[1:]) and not made_so

    def of_gradient(self, source, length):
        """Elements of a gradient array; unknown where another lookup may have made it."""
        first = self.prefixes.setdefault(source, length)
        if self.element_shape is None or length is None or first != length:
            return None
        return (None,) * length + tuple(self.element_shape)


def _in_its_graph(method):
    """Let a method add to the array's graph where no graph is being built."""

    @functools.wraps(method)
    def build_there(self, *args, **kwargs):
        if current() is not None:
            return method(self, *args, **kwargs)
        with self._handle.graph.as_default():
            return method(self, *args, **kwargs)

    return build_there


class SymbolicTensorArray(TensorArray):
    """See `nbta.TensorArray`, while a graph is built."""

    __slots__ = ("_facts", "_flow", "_handle")

    if not TYPE_CHECKING:  # type checkers would take any name for an attribute

        def __getattr__(self, name):
            raise AttributeError(not_of_arrays(name), name=name)

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
        pattern = shapes.as_pattern("element_shape", element_shape)
        label = str(tensor_array_name or name or "TensorArray")
        clear_after_read = clear_after_read is None or bool(clear_after_read)
        dynamic_size = bool(dynamic_size)
        attrs = {
            "dtype": as_dtype(dtype),
            "dynamic_size": dynamic_size,
            "clear_after_read": clear_after_read,
            "tensor_array_name": label,
            "element_shape": shapes.public(pattern),
            "infer_shape": bool(infer_shape),
        }
        self._handle, self._flow = build(arrays.CREATE, [_as_index("size", size)], attrs, name)
        self._facts = Facts(
            attrs["dtype"],
            pattern,
            bool(infer_shape),
            label,
            dynamic_size,
            clear_after_read,
            declared=pattern,
        )

    @classmethod
    def over(cls, handle: Tensor, flow: Flow | Tensor | None, facts: Facts) -> SymbolicTensorArray:
        """A name for an array that exists in the graph."""
        self = object.__new__(cls)
        self._handle, self._flow, self._facts = handle, flow, facts
        return self

    def _after(self, flow):
        return SymbolicTensorArray.over(self._handle, flow, self._facts)

    @property
    def _access(self):
        graph = current() or self._handle.graph
        return Access(as_tensor(self._handle, graph), as_tensor(self._flow, graph))

    def _build(self, record, inputs, attrs=None, name=None):
        """The results of an operation on this array."""
        outputs = build(record, [self._handle, *inputs, self._flow], attrs, name)
        return outputs[0] if len(outputs) == 1 else outputs

    # Facts.

    dtype = property(lambda self: self._facts.dtype, doc="Of the elements.")
    dynamic_size = property(lambda self: self._facts.dynamic_size, doc="Whether it grows.")
    clear_after_read = property(
        lambda self: self._facts.clear_after_read, doc="Whether a read gives memory up."
    )
    infer_shape = property(
        lambda self: self._facts.infer_shape, doc="Whether the first write fixes the shape."
    )

    @property
    def element_shape(self) -> tuple[int | None, ...] | None:
        """As far as it is known before the graph runs."""
        return shapes.public(self._facts.element_shape)

    @property
    def is_gradient(self) -> bool:
        """Whether it was made by a gradient lookup, whatever the run chooses."""
        return self._facts.is_gradient

    @property
    def closed(self) -> bool:
        """Unknown before the graph runs."""
        return False

    @property
    def handle(self) -> Tensor:
        """The tensor that stands for the array."""
        return self._handle

    @property
    def flow(self) -> Tensor:
        """What an operation takes to run after all that this name of the array has seen."""
        return self._flow

    @_in_its_graph
    def size(self, *, name: str | None = None) -> Tensor:
        return self._build(arrays.SIZE, [], name=name)

    def __len__(self) -> int:
        message = f"size of {self._facts.name} is known only when the graph runs; use size()"
        raise invalid("symbolic", message)

    def __repr__(self):
        return (
            f"<nbta.TensorArray {self._handle.op.name!r} symbolic dtype={self.dtype} "
            f"element_shape={self.element_shape}>"
        )

    def plot(self, axes: Any = None) -> Any:
        """Arrays of graphs have no slots to draw."""
        message = f"{self._facts.name} has slots only when the graph runs; use nbta.plot(graph)"
        raise invalid("symbolic", message)

    # Writing.

    def _value(self, operation, value):
        if isinstance(value, Tensor) and value.weak is not None:
            value = value.in_dtype(self.dtype)
        if not hasattr(value, "dtype"):
            as_array(value)  # refuses what is not a tensor
            value = as_value(operation, self._facts.name, value, self.dtype)
        return as_tensor(value, building(value) or self._handle.graph)

    def _rows(self, operation, value):
        value = self._value(operation, value)
        if value.spec.shape == ():
            reason = "split_scalar" if operation == "split" else "scatter_scalar"
            message = f"{operation} on {self._facts.name}: a scalar has no first axis; use write"
            raise invalid(reason, message)
        return value

    @_in_its_graph
    def write(
        self, index: Integer, value: ArrayLike, *, name: str | None = None
    ) -> SymbolicTensorArray:
        value = self._value("write", value)
        self._facts.admit("write", "value", value.spec)
        return self._after(self._build(arrays.WRITE, [_as_index("index", index), value], name=name))

    @_in_its_graph
    def append(self, value: ArrayLike, *, name: str | None = None) -> SymbolicTensorArray:
        return self.write(self.size(), value, name=name)

    @_in_its_graph
    def accumulate(
        self, index: Integer, value: ArrayLike, *, name: str | None = None
    ) -> SymbolicTensorArray:
        if not self.is_gradient:
            message = (
                f"accumulate on {self._facts.name}: only gradient arrays accumulate, and this is a "
                f"forward array; use grad(source), or write"
            )
            raise invalid("not_gradient", message)
        return self.write(index, value, name=name)

    @_in_its_graph
    def scatter(
        self, indices: ArrayLike, value: ArrayLike, *, name: str | None = None
    ) -> SymbolicTensorArray:
        value = self._rows("scatter", value)
        self._facts.admit("scatter", "a row of value", _element(value.spec), _rows(value.spec))
        indices = _as_index("indices", indices, rank=1)
        return self._after(self._build(arrays.SCATTER, [indices, value], name=name))

    @_in_its_graph
    def unstack(self, value: ArrayLike, *, name: str | None = None) -> SymbolicTensorArray:
        value = self._rows("unstack", value)
        self._facts.admit("unstack", "a row of value", _element(value.spec))  # no row, too
        slots = arange(cast(shape(value)[0], np.int32))
        built = self._build(arrays.SCATTER, [slots, value], {"unstacks": True}, name)
        return self._after(built)

    @_in_its_graph
    def split(
        self, value: ArrayLike, lengths: ArrayLike, *, name: str | None = None
    ) -> SymbolicTensorArray:
        value = self._rows("split", value)
        lengths = _as_index("lengths", lengths, rank=1)
        piece = _element(value.spec)
        pattern = None if piece.shape is None else (_one_length(lengths), *piece.shape)
        self._facts.admit("split", "a piece of value", Spec(value.dtype, pattern))
        return self._after(self._build(arrays.SPLIT, [value, lengths], name=name))

    # Reading.

    def _asked(self, operation, dtype):
        if dtype is not None and np.dtype(dtype) != self.dtype:
            message = f"{operation} on {self._facts.name}: it holds {self.dtype}, not {dtype}"
            raise invalid("read_dtype", message)
        return {"dtype": self.dtype, "known": self._facts.element_shape}

    @_in_its_graph
    def read(
        self, index: Integer, *, name: str | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        attrs = self._asked("read", dtype)
        return self._build(arrays.READ, [_as_index("index", index)], attrs, name)

    @_in_its_graph
    def gather(
        self,
        indices: ArrayLike,
        *,
        name: str | None = None,
        element_shape: Pattern = None,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        attrs = self._asked("gather", dtype)
        pattern = shapes.as_pattern("element_shape", element_shape)
        self._facts.admit("gather", "element_shape", Spec(self.dtype, pattern))
        attrs["element_shape"] = self._facts.told() if pattern is None else pattern
        attrs["known"] = pattern if attrs["known"] is None else attrs["known"]
        return self._build(arrays.GATHER, [_as_index("indices", indices, rank=1)], attrs, name)

    @_in_its_graph
    def stack(self, *, name: str | None = None) -> Tensor:
        return self.gather(arange(self.size()), name=name)

    @_in_its_graph
    def concat(
        self,
        *,
        name: str | None = None,
        element_shape_except0: Pattern = None,
        dtype: DTypeLike | None = None,
    ) -> Concat:
        attrs = self._asked("concat", dtype)
        pattern = shapes.as_pattern("element_shape_except0", element_shape_except0)
        if pattern is None and self._facts.told_rows():
            pattern = self._facts.element_shape[1:]
        attrs["element_shape_except0"] = pattern
        return Concat(*self._build(arrays.CONCAT, [], attrs, name))

    # Gradient arrays, and the end.

    @_in_its_graph
    def grad(
        self,
        source: str,
        flow: Flow | Tensor | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> SymbolicTensorArray:
        """`TensorArray.grad`; ``flow`` may be a tensor."""
        attrs = {"source": as_source("grad", source), "clear_after_read": bool(clear_after_read)}
        return self._looked_up(arrays.LOOKUP, [], flow, attrs, 0, name)

    @_in_its_graph
    def grad_with_shape(
        self,
        source: str,
        shape_to_prepend: ShapeLike,
        flow: Flow | Tensor | None = None,
        *,
        name: str | None = None,
        clear_after_read: bool = True,
    ) -> SymbolicTensorArray:
        """`TensorArray.grad_with_shape`; ``flow`` may be a tensor."""
        prefix = _as_index("shape_to_prepend", shape_to_prepend, rank=1)
        length = shapes.public(prefix.spec.shape)[0] if prefix.spec.shape else None
        attrs = {"source": as_source("grad", source), "clear_after_read": bool(clear_after_read)}
        return self._looked_up(arrays.LOOKUP_WITH_SHAPE, [prefix], flow, attrs, length, name)

    def _looked_up(self, record, prefix, flow, attrs, length, name):
        flow = self._flow if flow is None else as_flow(f"grad on {self._facts.name}: flow", flow)
        handle, flow = build(record, [self._handle, flow, *prefix], attrs, name)
        name = gradient_name(self._facts.name, attrs["source"])
        clear = attrs["clear_after_read"]
        pattern = self._facts.of_gradient(attrs["source"], length)
        facts = Facts(self.dtype, pattern, False, name, False, clear, {}, pattern, True)
        return SymbolicTensorArray.over(handle, flow, facts)

    def gradient_after(
        self, source: str, flow: Flow | Tensor | None, iteration: Any
    ) -> SymbolicTensorArray:
        """The gradient array of a computation, after the flow of all that it added."""
        graph = current()
        access = Access(graph.resolve(self._handle), flow).gradient(source, False, iteration)
        name = gradient_name(self._facts.name, source)
        shape = self._facts.element_shape
        facts = Facts(self.dtype, shape, False, name, False, False, {}, shape, True)
        return SymbolicTensorArray.over(*access, facts)

    def gradient_behind(
        self, source: str, flow: Flow | Tensor | None, trip: Any
    ) -> SymbolicTensorArray:
        """The former name of `gradient_after`."""
        message = "gradient_behind is now gradient_after(source, flow, iteration)"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return self.gradient_after(source, flow, trip)

    @_in_its_graph
    def identity(self, *, name: str | None = None) -> SymbolicTensorArray:
        return self._after(identity(self._flow, name=name))

    @_in_its_graph
    def close(self, *, name: str | None = None) -> Operation:
        """Add the operation that frees the array when it runs, and give it."""
        graph = current()
        with graph.control_dependencies([graph.resolve(self._flow)]):
            return graph.create(arrays.CLOSE, [self._handle], name=name)

    def lanes(self, count: int) -> NoReturn:
        """Graphs have no threads to give lanes to: flows order what is done with an array."""
        message = (
            f"lanes on {self._facts.name}: flows order the operations of a graph, so none of them "
            f"run side by side; use map_fn(parallel_iterations=), or an array outside of graphs"
        )
        raise UnimplementedError(message)

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        message = f"{self._facts.name} has elements only when the graph runs; use stack()"
        raise invalid("symbolic", message)

    def __getitem__(self, index: Integer) -> NoReturn:
        message = f"{self._facts.name} has elements only when the graph runs; use read(i)"
        raise invalid("symbolic", message)

    def __iter__(self) -> NoReturn:
        message = (
            f"{self._facts.name} has elements only when the graph runs; loop over its stack() with "
            f"nbta.scan or nbta.map_fn"
        )
        raise invalid("symbolic", message)

    @property
    def offsets(self) -> NoReturn:
        message = f"{self._facts.name} has elements only when the graph runs; use concat().lengths"
        raise invalid("symbolic", message)

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.__array__()

    __dlpack__ = __array__

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # the CPU

    def __reduce__(self) -> NoReturn:
        message = f"{self._facts.name} belongs to a graph; fetch it and save the result"
        raise invalid("symbolic", message)


def _rows(spec):
    """How many rows a value has, where that is known."""
    return spec.shape[0] if spec.shape else None


def _one_length(lengths):
    """The length that all pieces of a split have; None where that is not known."""
    known = set(pattern_of(lengths) or ())
    return known.pop() if len(known) == 1 else None


def _element(spec):
    """Spec of a row of a value."""
    return Spec(spec.dtype, None if spec.shape is None else spec.shape[1:])


def _as_index(argument, value, rank=0):
    """Integers as a tensor; Python's become int32, as in TensorFlow."""
    graph = building(value)
    if isinstance(value, Tensor):
        tensor = as_tensor(value, graph)
    else:
        array = as_plain(argument, value)
        if array.dtype.kind == "O":
            raise invalid("index_rank", f"{argument}: {value!r} is not an integer of 64 bits")
        small = array.dtype.kind in "iu" and not hasattr(value, "dtype") and _fits(array)
        if array.size == 0 and array.dtype.kind == "f":
            array, small = array.astype(np.int32), True
        tensor = as_tensor(array.astype(np.int32) if small else array, graph)
    if tensor.dtype.kind not in "iu" or tensor.ndim not in (rank, None):
        what = "one integer" if rank == 0 else "a vector of integers"
        raise invalid("index_rank", f"{argument}: must be {what}, not {tensor.spec}")
    return tensor


def _fits(array):
    return bool(np.all(np.abs(array.astype(object)) < 2**31))


def _class_here():
    return TensorArray if current() is None else SymbolicTensorArray


tensor_array._class_here = _class_here
#: Imported for the methods of tensors that they install, whichever module comes first.
_METHODS = tensor_methods, numbers
