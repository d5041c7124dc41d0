"""TensorFlow's raw TensorArray operations, by their names and arguments.

Each works in a graph, where it gives tensors, eagerly, and in ``@njit`` functions: there a handle
carries its array. Operations of several results give named tuples, with TensorFlow's names.

In a graph, what handles, indices and values must be is checked when it runs, as TensorFlow's
kernels do; flows and sources, which are attributes of an operation or part of its type, when it
is made. ``name``, which all of them take, is that of the operation in the graph. Eagerly it is
ignored, and so is what a flow holds, as operations run one after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbta import shapes, tensor_array
from nbta.dtypes import as_dtype, as_plain, as_value
from nbta.errors import invalid
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops import arrays
from nbta.ops.arrays import build
from nbta.ops.dispatch import as_tensor
from nbta.ops.extents import outside
from nbta.runtime.raw_methods import (
    TensorArrayGradV3Output,
    TensorArrayV3Output,
    register_operations,
)
from nbta.runtime.request import Concat
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import ArrayHandle, as_flow, as_source

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike, Integer, Pattern


def _array(handle) -> tensor_array.TensorArray:
    if isinstance(handle, ArrayHandle):
        return handle.array
    if isinstance(handle, tensor_array.TensorArray):
        return handle
    message = f"handle: {handle!r} is no handle; give what TensorArrayV3 returned"
    raise invalid("handle", message)


def _in_graph(*values):
    return current() is not None or any(isinstance(v, Tensor) for v in values)


def _build(record, inputs, attrs=None, name=None):
    """The results of an operation in the graph of its inputs; one alone, several as a tuple."""
    handles = [v.handle if isinstance(v, SymbolicTensorArray) else v for v in inputs]
    graph = current() or next(v.graph for v in handles if isinstance(v, Tensor))
    with graph.as_default():
        tensors = [_integers(v) for v in handles]
        outputs = build(record, tensors, attrs, name)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _integers(value):
    """Python's integers as int32, as in TensorFlow."""
    if isinstance(value, Tensor) or hasattr(value, "dtype"):
        return as_tensor(value)
    array = as_plain("value", value)
    small = array.dtype.kind in "iu" or not array.size
    return as_tensor(array.astype(np.int32) if small else array)


def _pattern(argument, shape):
    return shapes.public(shapes.as_pattern(argument, shape))


def TensorArrayV3(  # noqa: N802
    size: Integer,
    dtype: DTypeLike,
    element_shape: Pattern = None,
    dynamic_size: bool = False,
    clear_after_read: bool = True,
    identical_element_shapes: bool = False,
    tensor_array_name: str = "",
    *,
    name: str | None = None,
) -> TensorArrayV3Output:
    """Make an array.

    Parameters
    ----------
    size : int32 scalar
        How many slots there are.
    dtype : dtype-like
        Of the elements.
    element_shape : tuple of int or None, optional
        Shape of the elements; None in it stands for an unknown dimension, None for an unknown rank.
        In compiled code what is read must be of known rank.
    dynamic_size : bool, default False
        Whether a write past the end makes the array grow.
    clear_after_read : bool, default True
        Whether a read gives the slot's memory up, so that it can be read once.
    identical_element_shapes : bool, default False
        Whether the first write fixes the element shape: ``infer_shape`` of `nbta.TensorArray`.
    tensor_array_name : str, default ""
        First part of the name in the handle; a number of its own follows.
    name : str, optional
        Of the operation in a graph; elsewhere the first part of the name where
        ``tensor_array_name`` is empty, ``TensorArrayV3`` where both are.

    Returns
    -------
    handle : ArrayHandle or Tensor
    flow : Flow or Tensor
        A float32 scalar, after which operations on the array may run.

    Raises
    ------
    InvalidArgumentError
        For a negative size or one that is not one integer, an object dtype, and an element shape
        of more than 8 dimensions or with a negative one.
    ResourceExhaustedError
        When there is no memory for so many slots.

    Notes
    -----
    TensorFlow's ``TensorArrayV3``.

    In ``@njit`` functions the arguments' types are checked when compiling, so that what is no
    handle, no flow, or of another dtype is a ``TypingError``.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(size=1, dtype="float64", tensor_array_name="states")
    >>> handle.container, handle.name
    ('_tensor_arrays', 'states_...')
    >>> flow = raw_ops.TensorArrayWriteV3(handle, 0, 2.5, flow)
    >>> raw_ops.TensorArrayReadV3(handle, 0, flow, dtype="float64")
    np.float64(2.5)

    In compiled code:

    >>> import numba
    >>> @numba.njit
    ... def halves(n):
    ...     handle, flow = raw_ops.TensorArrayV3(n, "float64", element_shape=())
    ...     for k in range(n):
    ...         flow = raw_ops.TensorArrayWriteV3(handle, k, k / 2, flow)
    ...     return handle, flow
    >>> handle, flow = halves(4)
    >>> raw_ops.TensorArrayGatherV3(handle, [1, 3], flow, "float64")
    array([0.5, 1.5])
    """
    attrs = {
        "dtype": as_dtype(dtype),
        "element_shape": _pattern("element_shape", element_shape),
        "dynamic_size": bool(dynamic_size),
        "clear_after_read": bool(clear_after_read),
        "infer_shape": bool(identical_element_shapes),
        "tensor_array_name": tensor_array_name or name or "TensorArrayV3",
    }
    if _in_graph(size):
        return TensorArrayV3Output(*_build(arrays.CREATE, [size], attrs, name))
    array = tensor_array.TensorArray(size=size, **attrs)
    return TensorArrayV3Output(ArrayHandle(array), array.flow)


def TensorArrayGradV3(  # noqa: N802
    handle: Any, flow_in: Any, source: str | bytes, *, name: str | None = None
) -> TensorArrayGradV3Output:
    """The gradient array of an array for a source, looked up or made.

    The array stops growing, and what is written to the gradient array is added up.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
        A gradient array has gradient arrays, too.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    source : str or bytes
        Names the gradient computation; bytes are UTF-8, and no argument of compiled code.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    grad_handle : ArrayHandle or Tensor
        That of the same array for the same source, always.
    flow_out : Flow or Tensor
        A float32 scalar, after which operations on the array may run.

    Raises
    ------
    InvalidArgumentError
        For a closed array, and where handle, flow or source are none.
    UnimplementedError
        For an array of strings, dates or records, whose sums have no meaning.
    ResourceExhaustedError
        When there is no memory for another gradient array.

    Notes
    -----
    TensorFlow's ``TensorArrayGradV3``, which refuses the handle of a gradient array.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(size=1, dtype="float64", element_shape=())
    >>> grad_handle, flow = raw_ops.TensorArrayGradV3(handle, flow, source="gradients")
    >>> raw_ops.TensorArrayReadV3(grad_handle, 0, flow, dtype="float64")
    np.float64(0.0)
    """
    source = as_source("TensorArrayGradV3", source)
    flow_in = as_flow("TensorArrayGradV3: flow_in", flow_in)
    if _in_graph(handle, flow_in):
        return TensorArrayGradV3Output(
            *_build(arrays.LOOKUP, [handle, flow_in], {"source": source}, name)
        )
    array = _array(handle).grad(source)
    return TensorArrayGradV3Output(ArrayHandle(array), array.flow)


def TensorArrayGradWithShape(  # noqa: N802
    handle: Any,
    flow_in: Any,
    shape_to_prepend: ArrayLike,
    source: str | bytes,
    *,
    name: str | None = None,
) -> TensorArrayGradV3Output:
    """`TensorArrayGradV3` with elements of shape ``shape_to_prepend + element_shape``.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    shape_to_prepend : vector of int32
        Dimensions before those of the array's elements. In compiled code a tuple tells how
        many they are; of a list or an array what is read has no known rank.
    source : str or bytes
        Names the gradient computation.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    grad_handle : ArrayHandle or Tensor
        Where there is a gradient array for the source, that one, whatever its shape.
    flow_out : Flow or Tensor
        A float32 scalar, after which operations on the array may run.

    Raises
    ------
    InvalidArgumentError
        For a negative dimension, elements of more than 8 dimensions, a closed array, and where
        handle, flow or source are none.
    UnimplementedError
        For an array of strings, dates or records.
    ResourceExhaustedError
        When there is no memory for another gradient array.

    Notes
    -----
    TensorFlow's ``TensorArrayGradWithShape``.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(size=1, dtype="float64", element_shape=())
    >>> grad_handle, flow = raw_ops.TensorArrayGradWithShape(handle, flow, [2], "gradients")
    >>> raw_ops.TensorArrayReadV3(grad_handle, 0, flow, dtype="float64")
    array([0., 0.])
    """
    source = as_source("TensorArrayGradWithShape", source)
    flow_in = as_flow("TensorArrayGradWithShape: flow_in", flow_in)
    if _in_graph(handle, flow_in, shape_to_prepend):
        inputs = [handle, flow_in, shape_to_prepend]
        return TensorArrayGradV3Output(
            *_build(arrays.LOOKUP_WITH_SHAPE, inputs, {"source": source}, name)
        )
    array = _array(handle).grad_with_shape(source, shape_to_prepend)
    return TensorArrayGradV3Output(ArrayHandle(array), array.flow)


def TensorArrayWriteV3(  # noqa: N802
    handle: Any, index: ArrayLike, value: ArrayLike, flow_in: Any, *, name: str | None = None
) -> Any:
    """Store a value in a slot; in a gradient array, add it.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    index : int32 scalar
        A slot, from 0.
    value : array-like
        Of the array's dtype, and of a shape that fits its element shape. Numbers of Python and
        lists take the dtype where nothing is lost.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Flow or Tensor
        A float32 scalar, after which operations on the array may run.

    Raises
    ------
    InvalidArgumentError
        For a negative slot, or one past the end of an array that does not grow; another dtype or
        shape; a slot that was written or read; a closed array; and where handle or flow are none.
    ResourceExhaustedError
        When there is no memory to grow.

    Notes
    -----
    TensorFlow's ``TensorArrayWriteV3``; see `nbta.TensorArray.write`.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(size=1, dtype="int64")
    >>> raw_ops.TensorArrayWriteV3(handle, 0, 7, flow)
    <flow of ...>
    >>> raw_ops.TensorArrayWriteV3(handle, 1, 7, flow)
    Traceback (most recent call last):
    nbta.errors.InvalidArgumentError: write on ...: there is no slot 1: the array has 1 slots, ...
    """
    flow_in = as_flow("TensorArrayWriteV3: flow_in", flow_in)
    if _in_graph(handle, index, value, flow_in):
        value = _value("write", handle, value)
        return _build(arrays.WRITE, [handle, index, value, flow_in], name=name)
    return _array(handle).write(index, value).flow


def _value(operation, handle, value):
    """Python numbers take the array's dtype, where it is known and nothing is lost."""
    op = handle.op if isinstance(handle, Tensor) else None
    if hasattr(value, "dtype") or op is None or op.record is not arrays.CREATE:
        return value
    array = as_value(operation, repr(op.name), value, op.attrs["dtype"])
    return as_tensor(array, current() or handle.graph)


def TensorArrayReadV3(  # noqa: N802
    handle: Any, index: ArrayLike, flow_in: Any, dtype: DTypeLike, *, name: str | None = None
) -> Array:
    """The value of a slot.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    index : int32 scalar
        A slot, from 0.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    dtype : dtype-like
        The array's own.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    array of the element's shape and ``dtype``, or Tensor
        Read-only. A slot that nobody wrote is zeros, where the element shape is fully known.

    Raises
    ------
    InvalidArgumentError
        For a slot that does not exist, gave its value up, or was not written while the element
        shape is not fully known; another dtype; a closed array; and where handle or flow are none.

    Notes
    -----
    TensorFlow's ``TensorArrayReadV3``; see `nbta.TensorArray.read`.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(1, "int64", element_shape=(2,))
    >>> raw_ops.TensorArrayReadV3(handle, 0, flow, "int64")
    array([0, 0])
    >>> raw_ops.TensorArrayReadV3(handle, 0, flow, "int64")
    Traceback (most recent call last):
    nbta.errors.InvalidArgumentError: read on ...: slot 0 gave its value up when it was read; ...
    """
    flow_in = as_flow("TensorArrayReadV3: flow_in", flow_in)
    if _in_graph(handle, index, flow_in):
        attrs = {"dtype": as_dtype(dtype), "known": _known(handle)}
        return _build(arrays.READ, [handle, index, flow_in], attrs, name)
    return _array(handle).read(index, dtype=dtype)


def _known(handle):
    """The element shape that an array was made with, or its forward array, where it is known."""
    op = outside(handle).op if isinstance(handle, Tensor) else None
    if op is None or op.record not in arrays.LOOKUPS | {arrays.CREATE}:
        return None
    if op.record is arrays.CREATE:
        return op.attrs["element_shape"]
    known, lengths = _known(op.inputs[0]), {_prefix(other) for other in _lookups_like(op)}
    length = lengths.pop()
    return None if known is None or length is None or lengths else (None,) * length + known


def _lookups_like(op):
    """Lookups that find the same gradient array: elements are as the first of a run makes them."""
    return [
        other
        for other in op.graph.operations
        if other.record in arrays.LOOKUPS
        and other.inputs[0] is op.inputs[0]
        and other.attrs["source"] == op.attrs["source"]
    ]


def _prefix(op):
    """How many axes a lookup puts before elements; None where that is not known."""
    if op.record is arrays.LOOKUP:
        return 0
    shape = op.inputs[2].spec.shape
    return shape[0] if shape and type(shape[0]) is int else None


def TensorArrayGatherV3(  # noqa: N802
    handle: Any,
    indices: ArrayLike,
    flow_in: Any,
    dtype: DTypeLike,
    element_shape: Pattern = None,
    *,
    name: str | None = None,
) -> Array:
    """The listed slots, stacked along a new first axis.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    indices : vector of int32
        Slots, in any order and as often as they are wanted.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    dtype : dtype-like
        The array's own.
    element_shape : tuple of int or None, optional
        What is known of the elements; the array remembers it, and holds later writes to it.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    array of shape ``(len(indices), *element)`` and ``dtype``, or Tensor
        Read-only. No slots have the shape ``element_shape``, whatever the array's own is.

    Raises
    ------
    InvalidArgumentError
        As of `TensorArrayReadV3`; and for elements of several shapes, or ones that do not fit
        ``element_shape``.
    UnimplementedError
        For no slots, where ``element_shape`` is not fully known.

    Notes
    -----
    TensorFlow's ``TensorArrayGatherV3``; see `nbta.TensorArray.gather`.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(3, "int64", element_shape=())
    >>> flow = raw_ops.TensorArrayScatterV3(handle, [2, 0], [5, 6], flow)
    >>> raw_ops.TensorArrayGatherV3(handle, [0, 1, 2], flow, "int64")
    array([6, 0, 5])
    >>> raw_ops.TensorArrayGatherV3(handle, [], flow, "int64", element_shape=())
    array([], dtype=int64)
    """
    flow_in = as_flow("TensorArrayGatherV3: flow_in", flow_in)
    if _in_graph(handle, indices, flow_in):
        attrs = {
            "dtype": as_dtype(dtype),
            "element_shape": _pattern("element_shape", element_shape),
            "known": _known(handle),
            "strict": True,
        }
        return _build(arrays.GATHER, [handle, indices, flow_in], attrs, name)
    return _array(handle)._gather(indices, element_shape, dtype, strict=True)


def TensorArrayScatterV3(  # noqa: N802
    handle: Any, indices: ArrayLike, value: ArrayLike, flow_in: Any, *, name: str | None = None
) -> Any:
    """Write row ``k`` of a value to slot ``indices[k]``.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    indices : vector of int32
        Slots; in an array that is no gradient array, each once.
    value : array-like of shape ``(len(indices), *element)``
        Of the array's dtype.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Flow or Tensor
        A float32 scalar, after which operations on the array may run.

    Raises
    ------
    InvalidArgumentError
        As of `TensorArrayWriteV3`; and for a scalar, or another number of rows than of indices.
        Then nothing was written.
    ResourceExhaustedError
        When there is no memory to grow.

    Notes
    -----
    TensorFlow's ``TensorArrayScatterV3``; see `nbta.TensorArray.scatter`.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(2, "int64")
    >>> flow = raw_ops.TensorArrayScatterV3(handle, [1, 0], [5, 6], flow)
    >>> raw_ops.TensorArrayReadV3(handle, 1, flow, "int64")
    np.int64(5)
    """
    flow_in = as_flow("TensorArrayScatterV3: flow_in", flow_in)
    if _in_graph(handle, indices, value, flow_in):
        value = _value("scatter", handle, value)
        return _build(arrays.SCATTER, [handle, indices, value, flow_in], name=name)
    return _array(handle).scatter(indices, value).flow


def TensorArrayConcatV3(  # noqa: N802
    handle: Any,
    flow_in: Any,
    dtype: DTypeLike,
    element_shape_except0: Pattern = None,
    *,
    name: str | None = None,
) -> Concat:
    """All elements joined along their first axis, and their lengths.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    dtype : dtype-like
        The array's own.
    element_shape_except0 : tuple of int or None, optional
        What is known of the elements' shapes after the first axis.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    value : array of shape ``(sum(lengths), *rest)`` and ``dtype``, or Tensor
        Read-only.
    lengths : int64 vector, or Tensor
        Of the elements, in the order of the slots.

    Raises
    ------
    InvalidArgumentError
        As of `TensorArrayReadV3`; and for scalar elements, and ones whose shapes differ after
        the first axis, or do not fit ``element_shape_except0``.
    UnimplementedError
        For no slots, where the shape after the first axis is not fully known.

    Notes
    -----
    TensorFlow's ``TensorArrayConcatV3``; see `nbta.TensorArray.concat`.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(2, "int64")
    >>> flow = raw_ops.TensorArraySplitV3(handle, [5, 6, 7], [1, 2], flow)
    >>> raw_ops.TensorArrayConcatV3(handle, flow, "int64").lengths
    array([1, 2])
    """
    flow_in = as_flow("TensorArrayConcatV3: flow_in", flow_in)
    if _in_graph(handle, flow_in):
        attrs = {
            "dtype": as_dtype(dtype),
            "element_shape_except0": _pattern("element_shape_except0", element_shape_except0),
            "known": _known(handle),
        }
        return Concat(*_build(arrays.CONCAT, [handle, flow_in], attrs, name))
    return _array(handle).concat(element_shape_except0=element_shape_except0, dtype=dtype)


def TensorArraySplitV3(  # noqa: N802
    handle: Any, value: ArrayLike, lengths: ArrayLike, flow_in: Any, *, name: str | None = None
) -> Any:
    """Cut a value along its first axis and write piece ``k`` to slot ``k``.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    value : array-like of at least one dimension
        Of the array's dtype.
    lengths : vector of int64
        Of the pieces; one for each slot, where the array does not grow.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Flow or Tensor
        A float32 scalar, after which operations on the array may run.

    Raises
    ------
    InvalidArgumentError
        As of `TensorArrayWriteV3`; and for a scalar, lengths that are negative or do not add up
        to the length of the value, and another number of them than of slots. Then nothing was
        written.
    ResourceExhaustedError
        When there is no memory to grow.

    Notes
    -----
    TensorFlow's ``TensorArraySplitV3``; see `nbta.TensorArray.split`.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(2, "int64")
    >>> flow = raw_ops.TensorArraySplitV3(handle, [5, 6, 7], [1, 2], flow)
    >>> raw_ops.TensorArrayReadV3(handle, 1, flow, "int64")
    array([6, 7])
    """
    flow_in = as_flow("TensorArraySplitV3: flow_in", flow_in)
    if _in_graph(handle, value, lengths, flow_in):
        value = _value("split", handle, value)
        return _build(arrays.SPLIT, [handle, value, lengths, flow_in], name=name)
    return _array(handle).split(value, lengths).flow


def TensorArraySizeV3(handle: Any, flow_in: Any, *, name: str | None = None) -> np.int32 | Tensor:  # noqa: N802
    """How many slots there are.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    flow_in : Flow, Tensor, or float32 scalar
        After which operations this one runs in a graph. Eagerly and in compiled code, which run
        one operation after another, what it holds is ignored, also if it is another array's.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    int32 scalar, or Tensor

    Raises
    ------
    InvalidArgumentError
        For a closed array, and where handle or flow are none.

    Notes
    -----
    TensorFlow's ``TensorArraySizeV3``.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> raw_ops.TensorArraySizeV3(*raw_ops.TensorArrayV3(3, "int64"))
    np.int32(3)
    """
    flow_in = as_flow("TensorArraySizeV3: flow_in", flow_in)
    if _in_graph(handle, flow_in):
        return _build(arrays.SIZE, [handle, flow_in], name=name)
    return _array(handle).size()


def TensorArrayCloseV3(handle: Any, *, name: str | None = None) -> Any:  # noqa: N802
    """Free an array; closing it again is allowed.

    Its gradient arrays live on where they are held by handles of their own.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        What `TensorArrayV3` or `TensorArrayGradV3` gave.
    name : str, optional
        Of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Operation or None
        In a graph the operation that frees it, which a control edge or a fetch makes run.

    Raises
    ------
    InvalidArgumentError
        Where the handle is none.

    Notes
    -----
    TensorFlow's ``TensorArrayCloseV3``. Every other operation on a closed array is an error.

    Examples
    --------
    >>> from nbta import raw_ops
    >>> handle, flow = raw_ops.TensorArrayV3(3, "int64")
    >>> raw_ops.TensorArrayCloseV3(handle)
    >>> raw_ops.TensorArraySizeV3(handle, flow)
    Traceback (most recent call last):
    nbta.errors.InvalidArgumentError: size on ...: the array is closed...
    """
    if _in_graph(handle):
        graph = current() or handle.graph
        return graph.create(arrays.CLOSE, [as_tensor(handle, graph)], name=name)
    return _array(handle).close()


# Names of earlier versions, which have the same arguments here.
TensorArray = TensorArrayV2 = TensorArrayV3
TensorArrayGrad = TensorArrayGradV2 = TensorArrayGradV3
TensorArrayWrite = TensorArrayWriteV2 = TensorArrayWriteV3
TensorArrayRead = TensorArrayReadV2 = TensorArrayReadV3
TensorArrayGather = TensorArrayGatherV2 = TensorArrayGatherV3
TensorArrayScatter = TensorArrayScatterV2 = TensorArrayScatterV3
TensorArrayConcat = TensorArrayConcatV2 = TensorArrayConcatV3
TensorArraySplit = TensorArraySplitV2 = TensorArraySplitV3
TensorArraySize = TensorArraySizeV2 = TensorArraySizeV3
TensorArrayClose = TensorArrayCloseV2 = TensorArrayCloseV3

register_operations(globals())
