"""Operations about dtype and shape: cast, shape, reshape, broadcasting and its undoing."""

import numpy as np

from nbta import shapes
from nbta.codegen import shape_rules as rules
from nbta.codegen.elementwise import Elementwise
from nbta.dtypes import OTHER, as_dtype, as_plain, code_of
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import Spec, is_inexact
from nbta.ops.dispatch import apply, define, exported
from nbta.ops.extents import as_shape, pattern_of

INT64 = np.dtype(np.int64)


def _infer_cast(spec, *, dtype):
    return Spec(dtype, spec.shape)


def _evaluate_cast(x, *, dtype):
    return np.real(x).astype(dtype) if x.dtype.kind == "c" != dtype.kind else x.astype(dtype)


def _cast_gradient(op, dy):
    x = op.inputs[0]
    return [cast(dy, x.dtype) if is_inexact(x.dtype) and is_inexact(dy.dtype) else None]


def _cast_connections(op):
    return [op.inputs if is_inexact(op.attrs["dtype"]) else []]


def _between_numbers(op):
    """Texts may be no numbers."""
    return OTHER not in (code_of(op.inputs[0].dtype), code_of(op.attrs["dtype"]))


CAST = define(
    "Cast",
    _infer_cast,
    _evaluate_cast,
    _cast_gradient,
    connections=_cast_connections,
    emit=Elementwise(rules.to_dtype),
    elementwise=True,
    total=_between_numbers,
    quick=True,
)


@exported
def cast(x, dtype, *, name=None):
    """The values in another dtype, by ``astype``; complex numbers lose their imaginary part.

    Parameters
    ----------
    x : array-like or Tensor
    dtype : dtype-like

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape of ``x``.

    Examples
    --------
    >>> nbta.cast([1.5, -2.5], "int32")
    array([ 1, -2], dtype=int32)
    """
    return apply(CAST, [x], {"dtype": as_dtype(dtype)}, name)


IDENTITY = define(
    "Identity",
    lambda spec: spec,
    lambda x: x,
    lambda op, dy: [dy],
    emit=rules.identity,
    elementwise=True,
    total=True,
)


@exported
def identity(x, *, name=None):
    """The same values under another name.

    Examples
    --------
    >>> nbta.identity([1, 2])
    array([1, 2])
    """
    return apply(IDENTITY, [x], name=name)


STOP_GRADIENT = define(
    "StopGradient",
    lambda spec: spec,
    lambda x: x,
    NotDifferentiable("it is there to stop them"),
    emit=rules.identity,
    elementwise=True,
    total=True,
)


@exported
def stop_gradient(x, *, name=None):
    """The same values; for gradients they are constants.

    Examples
    --------
    >>> nbta.grad(lambda x: x * nbta.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return apply(STOP_GRADIENT, [x], name=name)


def _infer_shape(spec):
    return Spec(INT64, (spec.rank,))


SHAPE = define(
    "Shape",
    _infer_shape,
    lambda x: np.array(np.shape(x), np.int64),
    NotDifferentiable("it does not depend on the values"),
    emit=rules.shape,
    total=True,
    selects=True,
)


@exported(numpy=1)
def shape(x, *, name=None):
    """The extents, as a vector of int64; in a graph, those of the run.

    Examples
    --------
    >>> nbta.shape([[1, 2, 3]])
    array([1, 3])
    """
    return apply(SHAPE, [x], name=name)


def shape_of(tensor):
    """The shape of a tensor for use in a gradient: a constant where it is known.

    Where it is not, the operation stands in the tensor's own graph, so that a loop keeps a few
    extents of each trip and not the values.
    """
    if shapes.is_known(tensor.spec.shape):
        return np.array(tensor.spec.shape, np.int64)
    key = ("shape", tensor)
    cache = tensor.graph.cache
    if key not in cache:
        with tensor.graph.control_dependencies(None):
            cache[key] = tensor.graph.create(SHAPE, [tensor], name="Shape").outputs[0]
    return cache[key]


SIZE = define(
    "Size",
    lambda spec: Spec(INT64, ()),
    lambda x: np.int64(np.size(x)),
    NotDifferentiable("it does not depend on the values"),
    emit=rules.size,
    total=True,
    selects=True,
)


@exported(numpy=1)
def size(x, *, name=None):
    """How many elements there are, as an int64 scalar.

    Examples
    --------
    >>> nbta.size([[1, 2, 3]])
    np.int64(3)
    """
    return apply(SIZE, [x], name=name)


def _infer_reshape(spec, _, *, pattern):
    if shapes.is_known(spec.shape) and shapes.is_known(pattern) and -1 not in pattern:
        _check_count(spec, pattern)
    return Spec(spec.dtype, pattern)


def _check_count(spec, pattern):
    have, want = (int(np.prod(s, dtype=object)) for s in (spec.shape, pattern))
    if have != want:
        message = (
            f"shape {shapes.text(spec.shape)} has {have} elements, and {shapes.text(pattern)} has "
            f"{want}; give a shape of as many"
        )
        raise invalid("reshape", message)


RESHAPE = define(
    "Reshape",
    _infer_reshape,
    lambda x, shape, *, pattern: np.reshape(x, shape),
    lambda op, dy: [reshape(dy, shape_of(op.inputs[0])), None],
    emit=rules.reshape,
    keeps=True,
    shape_input=1,
)


@exported(numpy=2)
def reshape(x, shape, *, name=None):
    """The same elements, in row-major order, in another shape.

    Parameters
    ----------
    x : array-like or Tensor
    shape : int, tuple of int or Tensor, or Tensor
        One extent may be -1: what is left.

    Raises
    ------
    InvalidArgumentError
        For a shape of another number of elements.

    Examples
    --------
    >>> nbta.reshape([1, 2, 3, 4], (2, -1))
    array([[1, 2],
           [3, 4]])
    """
    wanted = as_shape(shape, x)
    if isinstance(shape, Tensor):
        pattern = pattern_of(shape)
    else:
        pattern = _fill_in(pattern_of(wanted), x)
    return apply(RESHAPE, [x, wanted], {"pattern": pattern}, name)


def _fill_in(pattern, x):
    """Replace the -1 of a pattern, where all else is known."""
    if pattern is None or -1 not in pattern:
        return pattern
    place = pattern.index(-1)
    rest = [extent for i, extent in enumerate(pattern) if i != place]
    have = x.spec.shape if isinstance(x, Tensor) else as_plain("value", x).shape
    extent = None
    if shapes.is_known(have) and shapes.is_known(tuple(rest)) and -1 not in rest:
        count, step = int(np.prod(have, dtype=object)), int(np.prod(rest, dtype=object))
        if step == 0 or count % step:
            message = f"{count} elements cannot be arranged as {pattern}; choose other extents"
            raise invalid("reshape", message)
        extent = count // step
    return (*pattern[:place], extent, *pattern[place + 1 :])


def _infer_broadcast_to(spec, _, *, pattern):
    try:
        result = shapes.broadcast(spec.shape, pattern)
    except ValueError:
        result = ()
    if pattern is not None and (result is None or len(result) != len(pattern)):
        if spec.shape is None:
            return Spec(spec.dtype, pattern)
        message = f"{shapes.text(spec.shape)} does not broadcast to {shapes.text(pattern)}"
        raise invalid("broadcast", message)
    return Spec(spec.dtype, pattern)


BROADCAST_TO = define(
    "BroadcastTo",
    _infer_broadcast_to,
    lambda x, shape, *, pattern: np.broadcast_to(x, shape),
    lambda op, dy: [unbroadcast(dy, op.inputs[0]), None],
    emit=rules.broadcast_to,
    keeps=True,
    shape_input=1,
)


@exported(numpy=2)
def broadcast_to(x, shape, *, name=None):
    """The values repeated along axes of length 1 and new first axes.

    Raises
    ------
    InvalidArgumentError
        For a shape that ``x`` does not broadcast to.

    Examples
    --------
    >>> nbta.broadcast_to([1, 2], (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    wanted = as_shape(shape, x)
    return apply(BROADCAST_TO, [x, wanted], {"pattern": pattern_of(wanted)}, name)


def _infer_sum_to(spec, _, *, pattern):
    if shapes.is_known(spec.shape) and shapes.is_known(pattern):
        _check_sum_to(spec.shape, pattern)
    return Spec(spec.dtype, pattern)


def _check_sum_to(have, want):
    kept = (None,) * (len(want) - len(have)) + have[max(len(have) - len(want), 0) :]
    if any(n not in (1, m) or m is None for n, m in zip(want, kept, strict=True)):
        message = f"{shapes.text(have)} is no shape that {shapes.text(want)} broadcasts to"
        raise invalid("broadcast", f"{message}; give the shape of what was repeated")


def _evaluate_sum_to(x, shape, *, pattern):
    shape = tuple(map(int, shape))
    _check_sum_to(np.shape(x), shape)
    extra = np.ndim(x) - len(shape)
    short = [i for i, n in enumerate(shape) if n == 1 != x.shape[extra + i]]
    axes = (*range(extra), *(extra + i for i in short))
    return np.sum(x, axis=axes, dtype=x.dtype).reshape(shape) if axes else x


SUM_TO = define(
    "SumTo",
    _infer_sum_to,
    _evaluate_sum_to,
    lambda op, dy: [broadcast_to(dy, shape_of(op.inputs[0])), None],
    emit=rules.sum_to,
    keeps=True,
    shape_input=1,
)


@exported
def sum_to(x, shape, *, name=None):
    """The sum over those axes that broadcasting to the shape of ``x`` would repeat.

    Raises
    ------
    InvalidArgumentError
        For a shape that does not broadcast to that of ``x``.

    Examples
    --------
    >>> nbta.sum_to([[1.0, 2.0], [3.0, 4.0]], (1, 2))
    array([[4., 6.]])
    """
    wanted = as_shape(shape, x)
    return apply(SUM_TO, [x, wanted], {"pattern": pattern_of(wanted)}, name)


def unbroadcast(grad, tensor):
    """A gradient summed to the shape of the tensor that was broadcast."""
    have, want = grad.spec.shape, tensor.spec.shape
    ranked = have is not None and want is not None and len(have) == len(want)
    if ranked and all(_stays(a, b) for a, b in zip(have, want, strict=True)):
        return grad
    return sum_to(grad, shape_of(tensor))


def _stays(have, want):
    """Whether an axis is surely not summed over."""
    decided = (type(want) is int and want != 1) or isinstance(want, shapes.Dim)
    return decided or have == 1
