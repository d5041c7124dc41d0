"""TensorFlow's raw TensorArray operations, by their names and arguments.

Each operation works in a graph, where it returns tensors, eagerly, and in ``@njit`` functions,
where a handle refers to its array directly. Operations with several results return named tuples,
with TensorFlow's names.

In a graph, handles, indices and values are checked when it runs, as by TensorFlow's kernels; flows
and sources are checked when an operation is created. ``name`` is the name of the operation in the
graph. Eagerly, it is ignored, and so is the value of a flow, as operations run one after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbta import shapes, tensor_array
from nbta.dtypes import as_dtype, as_plain, as_value
from nbta.errors import invalid
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.arrays import tensor_arrays as arrays
from nbta.ops.arrays.tensor_arrays import build
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import as_tensor
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
    message = f"handle: {handle!r} is not a handle; give what TensorArrayV3 returned"
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
    """Create an array.

    Parameters
    ----------
    size : int32 scalar
        The number of slots.
    dtype : dtype-like
        Of the elements.
    element_shape : tuple of int or None, optional
        The shape of the elements. None in the tuple is an unknown dimension; None instead of the
        tuple is an unknown rank. In compiled code, the rank of elements that are read must be
        known.
    dynamic_size : bool, default False
        Whether a write past the end makes the array grow.
    clear_after_read : bool, default True
        Whether reading a slot frees its memory, so that it can be read only once.
    identical_element_shapes : bool, default False
        Whether the first write fixes the element shape: ``infer_shape`` of `nbta.TensorArray`.
    tensor_array_name : str, default ""
        The first part of the name in the handle; a unique number follows.
    name : str, optional
        Name of the operation in a graph; elsewhere, the first part of the array's name if
        ``tensor_array_name`` is empty (``TensorArrayV3`` if both are).

    Returns
    -------
    handle : ArrayHandle or Tensor
    flow : Flow or Tensor
        The flow, a float32 scalar, for operations on the array that run after this one.

    Raises
    ------
    InvalidArgumentError
        If the size is negative or not a single integer, for an object dtype, or for an element
        shape with more than 8 dimensions or a negative dimension.
    ResourceExhaustedError
        If there is not enough memory for the slots.

    Notes
    -----
    TensorFlow's ``TensorArrayV3``.

    In ``@njit`` functions, the types of arguments are checked when compiling: an invalid handle or
    flow, or another dtype, is a ``TypingError``.

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
    """Look up the gradient array of an array for a source, or make it.

    The array stops growing, and values that are written to the gradient array are added up.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
        A gradient array has gradient arrays, too.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    source : str or bytes
        The name of the gradient computation; bytes are UTF-8, and are not supported in compiled
        code.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    grad_handle : ArrayHandle or Tensor
        The same source always returns the same array.
    flow_out : Flow or Tensor
        The flow, a float32 scalar, for operations on the array that run after this one.

    Raises
    ------
    InvalidArgumentError
        If the array is closed, or if handle, flow or source are invalid.
    UnimplementedError
        For an array of strings, dates or records, whose sums have no meaning.
    ResourceExhaustedError
        If there is not enough memory for another gradient array.

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
        attrs = {"source": source, "clear_after_read": True}
        return TensorArrayGradV3Output(*_build(arrays.LOOKUP, [handle, flow_in], attrs, name))
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
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    shape_to_prepend : vector of int32
        The dimensions before those of the array's elements. In compiled code, the length of a tuple
        is known; with a list or an array, the rank of elements is unknown.
    source : str or bytes
        The name of the gradient computation.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    grad_handle : ArrayHandle or Tensor
        If there is already a gradient array for the source, that array, whatever its shape.
    flow_out : Flow or Tensor
        The flow, a float32 scalar, for operations on the array that run after this one.

    Raises
    ------
    InvalidArgumentError
        For a negative dimension, elements of more than 8 dimensions, or a closed array; or if
        handle, flow or source are invalid.
    UnimplementedError
        For an array of strings, dates or records.
    ResourceExhaustedError
        If there is not enough memory for another gradient array.

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
        attrs = {"source": source, "clear_after_read": True}
        return TensorArrayGradV3Output(*_build(arrays.LOOKUP_WITH_SHAPE, inputs, attrs, name))
    array = _array(handle).grad_with_shape(source, shape_to_prepend)
    return TensorArrayGradV3Output(ArrayHandle(array), array.flow)


def TensorArrayWriteV3(  # noqa: N802
    handle: Any, index: ArrayLike, value: ArrayLike, flow_in: Any, *, name: str | None = None
) -> Any:
    """Store a value in a slot; in a gradient array, add it.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    index : int32 scalar
        The slot, counted from 0.
    value : array-like
        A value of the array's dtype, whose shape fits the element shape. Python numbers and lists
        are converted to the dtype if no information is lost.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Flow or Tensor
        The flow, a float32 scalar, for operations on the array that run after this one.

    Raises
    ------
    InvalidArgumentError
        If the slot is negative, or past the end of an array that does not grow; if the dtype or
        shape does not fit; if the slot was written or read; if the array is closed; or if handle or
        flow are invalid.
    ResourceExhaustedError
        If there is not enough memory to grow.

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
    """Return the value of a slot.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    index : int32 scalar
        The slot, counted from 0.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    dtype : dtype-like
        The array's dtype.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    array of the element's shape and ``dtype``, or Tensor
        Read-only. An unwritten slot reads as zeros if the element shape is fully known.

    Raises
    ------
    InvalidArgumentError
        If the slot does not exist, is cleared, or is unwritten while the element shape is not fully
        known; for another dtype or a closed array; or if handle or flow are invalid.

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
    nbta.errors.InvalidArgumentError: read on ...: slot 0 was cleared when it was read; ...
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
    """Return the given slots, stacked along a new first axis.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    indices : vector of int32
        The slots, in any order, also repeatedly.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    dtype : dtype-like
        The array's dtype.
    element_shape : tuple of int or None, optional
        The known part of the element shape; it is kept by the array, and later writes must fit it.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    array of shape ``(len(indices), *element)`` and ``dtype``, or Tensor
        Read-only. Without slots, its element shape is ``element_shape``, whatever the array's is.

    Raises
    ------
    InvalidArgumentError
        As for `TensorArrayReadV3`; or if elements have different shapes, or shapes that do not fit
        ``element_shape``.
    UnimplementedError
        If there are no slots, and ``element_shape`` is not fully known.

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
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    indices : vector of int32
        The slots; in a forward array, each may occur once.
    value : array-like of shape ``(len(indices), *element)``
        Of the array's dtype.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Flow or Tensor
        The flow, a float32 scalar, for operations on the array that run after this one.

    Raises
    ------
    InvalidArgumentError
        As for `TensorArrayWriteV3`; for a scalar; or if the numbers of rows and indices differ.
        Then nothing was written.
    ResourceExhaustedError
        If there is not enough memory to grow.

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
    """Concatenate all elements along their first axis, and return their lengths.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    dtype : dtype-like
        The array's dtype.
    element_shape_except0 : tuple of int or None, optional
        The known part of the elements' shape after the first axis.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    value : array of shape ``(sum(lengths), *rest)`` and ``dtype``, or Tensor
        Read-only.
    lengths : int64 vector, or Tensor
        The lengths of the elements, in the order of the slots.

    Raises
    ------
    InvalidArgumentError
        As for `TensorArrayReadV3`; if elements are scalars, if their shapes differ after the first
        axis, or if they do not fit ``element_shape_except0``.
    UnimplementedError
        If there are no slots, and the shape after the first axis is not fully known.

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
    """Split a value along its first axis and write piece ``k`` to slot ``k``.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    value : array-like of at least one dimension
        Of the array's dtype.
    lengths : vector of int64
        The lengths of the pieces: one per slot, unless the array grows.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Flow or Tensor
        The flow, a float32 scalar, for operations on the array that run after this one.

    Raises
    ------
    InvalidArgumentError
        As for `TensorArrayWriteV3`; for a scalar; if lengths are negative or do not add up to the
        length of the value; or if their number is not that of the slots. Then nothing was written.
    ResourceExhaustedError
        If there is not enough memory to grow.

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
    """Return the number of slots.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    flow_in : Flow, Tensor, or float32 scalar
        In a graph, this operation runs after the one that returned the flow. Eagerly and in
        compiled code, operations run in program order, and the flow is ignored, even if it is
        another array's.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    int32 scalar, or Tensor

    Raises
    ------
    InvalidArgumentError
        If the array is closed, or if handle or flow are invalid.

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
    """Free the memory of an array; closing it again is allowed.

    Its gradient arrays stay open if they have handles of their own.

    Parameters
    ----------
    handle : ArrayHandle, TensorArray or Tensor
        The handle that `TensorArrayV3` or `TensorArrayGradV3` returned.
    name : str, optional
        Name of the operation in a graph; ignored elsewhere.

    Returns
    -------
    Operation or None
        In a graph, the operation that frees it, which runs because of a control edge or a fetch.

    Raises
    ------
    InvalidArgumentError
        If the handle is invalid.

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
