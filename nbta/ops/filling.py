"""Tensors from nothing: constants, filled ones, and what a run is given."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import joined
from nbta.dtypes import as_dtype, without_loss
from nbta.errors import FailedPreconditionError, invalid
from nbta.graph.graph import current
from nbta.graph.operation import Spec, Tensor
from nbta.ops.dispatch import CONSTANT, apply, as_array, as_tensor, building, define, exported
from nbta.ops.extents import as_shape, pattern_of
from nbta.ops.shaping import shape_of, sum_to, wanted

if TYPE_CHECKING:
    from nbta.graph.operation import Tensor
    from nbta.typing import Array, ArrayLike, DTypeLike, Pattern, ShapeLike


def _infer_fill(_, value, *, pattern):
    if any(type(extent) is int and extent < 0 for extent in pattern or ()):
        message = f"shape: {shapes.text(pattern)} has a negative dimension"
        raise invalid("shape", message)
    return Spec(value.dtype, pattern)


def _emit_fill(code, op) -> None:
    """One item everywhere."""
    extents = wanted(code, op, 0)
    for extent in extents:
        if not extent.isdigit() and extent not in code.dims.values():
            code.fail_if(f"{extent} < 0")
    value, result = op.inputs[1], op.outputs[0]
    if not extents:
        return code.bind(result, code.value(value))
    group = joined(code, [], extents)
    text = code.scalar(value)
    return group.step(code, text, result)


FILL = define(
    "Fill",
    _infer_fill,
    lambda shape, value, *, pattern: np.full(shape, value),
    lambda op, dy: [None, sum_to(dy, ())],
    emit=_emit_fill,
    shape_input=0,
    linear=(1,),
    moves=True,
)


@exported
def fill(shape: ShapeLike, value: ArrayLike, *, name: str | None = None) -> Array:
    """A tensor with one value in all places, as `numpy.full`.

    Parameters
    ----------
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.
    value : scalar or Tensor of rank 0
        The value.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape, in the dtype of the value.

    Examples
    --------
    >>> nbta.fill((2,), 7.0)
    array([7., 7.])
    """
    wanted = as_shape(shape, value)
    return apply(FILL, [wanted, value], {"pattern": pattern_of(wanted)}, name)


@exported
def zeros(shape: ShapeLike, dtype: DTypeLike = np.float64, *, name: str | None = None) -> Array:
    """A tensor of zeros, as `numpy.zeros`.

    Parameters
    ----------
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.
    dtype : dtype-like, default float64
        The dtype of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape and dtype.

    Examples
    --------
    >>> nbta.zeros(2)
    array([0., 0.])
    """
    return fill(shape, np.zeros((), as_dtype(dtype)), name=name)


@exported
def ones(shape: ShapeLike, dtype: DTypeLike = np.float64, *, name: str | None = None) -> Array:
    """A tensor of ones, as `numpy.ones`.

    Parameters
    ----------
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.
    dtype : dtype-like, default float64
        The dtype of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape and dtype.

    Examples
    --------
    >>> nbta.ones(2, "int64")
    array([1, 1])
    """
    return fill(shape, np.ones((), as_dtype(dtype)), name=name)


def _full_like(x, value, dtype, name):
    x = x if isinstance(x, Tensor) or building() is None else as_tensor(x)
    if not isinstance(x, Tensor):
        x = as_array(x)
        wanted = np.array(x.shape, np.int64)
    else:
        wanted = shape_of(x)
    dtype = x.dtype if dtype is None else as_dtype(dtype)
    return fill(wanted, np.full((), value, dtype), name=name)


@exported(numpy=2)
def zeros_like(x: ArrayLike, dtype: DTypeLike | None = None, *, name: str | None = None) -> Array:
    """Zeros of the shape of another tensor, as `numpy.zeros_like`.

    Parameters
    ----------
    x : array-like or Tensor
        The tensor to take the shape from.
    dtype : dtype-like, optional
        The dtype of the result; that of ``x`` by default.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``.

    Examples
    --------
    >>> nbta.zeros_like([1.5, 2.5])
    array([0., 0.])
    """
    return _full_like(x, 0, dtype, name)


@exported(numpy=2)
def ones_like(x: ArrayLike, dtype: DTypeLike | None = None, *, name: str | None = None) -> Array:
    """Ones of the shape of another tensor, as `numpy.ones_like`.

    Parameters
    ----------
    x : array-like or Tensor
        The tensor to take the shape from.
    dtype : dtype-like, optional
        The dtype of the result; that of ``x`` by default.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``.

    Examples
    --------
    >>> nbta.ones_like([1.5, 2.5])
    array([1., 1.])
    """
    return _full_like(x, 1, dtype, name)


def _unfed(*, spec, label):
    error = FailedPreconditionError(
        f"the placeholder {label!r} got no value; give Session.run one in feed_dict, of {spec}"
    )
    error.reason = "unfed"
    raise error


def _no_gradient(op, dy):
    return []


PLACEHOLDER = define("Placeholder", lambda *, spec, label: spec, _unfed, _no_gradient, fed=True)


@exported
def placeholder(dtype: DTypeLike, shape: Pattern = None, *, name: str | None = None) -> Tensor:
    """Add a tensor to a graph whose value is fed in each run.

    Parameters
    ----------
    dtype : dtype-like
        The dtype of the values.
    shape : tuple of int or None, optional
        None in the tuple is a dimension that may differ between runs; None instead of the tuple
        allows any shape.
    name : str, optional
        Name of the operation.

    Returns
    -------
    Tensor
        The placeholder.

    Raises
    ------
    InvalidArgumentError
        Outside graphs.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (None, 2), name="x")
    >>> x.shape
    (?, 2)
    """
    graph = current()
    if graph is None:
        message = "placeholder: no graph is being built; open one with Graph().as_default()"
        raise invalid("graph", message)
    if graph.root is not graph:
        message = "placeholder: make it outside of the loop or branch and use it there"
        raise invalid("graph", message)
    spec = Spec(as_dtype(dtype), shapes.as_pattern("shape", shape))
    attrs = {"spec": spec, "label": name or "Placeholder"}
    with graph.control_dependencies(None):
        return graph.create(PLACEHOLDER, [], attrs, name=name).outputs[0]


def _converted(value, dtype):
    """A value in another dtype: numbers of Python without loss, arrays within their kind."""
    given = as_array(value)
    if hasattr(value, "dtype"):
        fits = np.can_cast(given.dtype, dtype, "same_kind")
        array = given.astype(dtype) if fits else None
    else:
        array = without_loss(value, dtype)
    if array is None:
        message = f"constant: {value!r} does not fit {dtype}; round it, or cast it with nbta.cast"
        raise invalid("dtype", message)
    return array


#: By identity, arrays that their user promised not to change.
_promised: dict[int, weakref.ref] = {}


def _forget(key: int, _: weakref.ref) -> None:
    _promised.pop(key, None)


def is_promised(array: np.ndarray) -> bool:
    """Whether an array is what `constant` gave outside of graphs."""
    return id(array) in _promised


@exported
def constant(value: ArrayLike, dtype: DTypeLike | None = None, *, name: str | None = None) -> Array:
    """Return a tensor of a value that is known now; outside graphs, an array.

    The caller promises that the value does not change: a traced function that reads such an array
    from outside, or calls ``nbta.constant(w)`` for an array from outside, uses the values that the
    array had when it was traced, and is traced again for another array. Changes of all other arrays
    from outside are seen at each call; see `nbta.function`.

    Parameters
    ----------
    value : array-like
        The value.
    dtype : dtype-like, optional
        By default, that of the value.
    name : str, optional
        Name of the operation in a graph.

    Returns
    -------
    numpy.ndarray or Tensor
        The value.

    Raises
    ------
    InvalidArgumentError
        If the value is not an array, or does not fit the dtype.

    Examples
    --------
    >>> nbta.constant([1, 2], dtype="float32")
    array([1., 2.], dtype=float32)
    """
    array = as_array(value) if dtype is None else _converted(value, as_dtype(dtype))
    array, graph = np.array(array), current()
    if graph is None:
        _promised[id(array)] = weakref.ref(array, functools.partial(_forget, id(array)))
        return array
    array.flags.writeable = False
    with graph.control_dependencies(None):
        return graph.create(CONSTANT, [], {"value": array}, name=name or "Const").outputs[0]
