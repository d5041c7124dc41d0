"""Operations about dtype and shape: cast, shape, reshape, broadcasting and its undoing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import ElementwiseOf, broadcast, item_of, joined, reduction
from nbta.codegen.values import Lazy, Scalar, Vector, is_known, product, typed
from nbta.codegen.windows import bind_reshaped, number_in
from nbta.dtypes import OTHER, as_dtype, as_plain, code_of
from nbta.errors import invalid
from nbta.graph.operation import NotDifferentiable, Spec, Tensor, is_inexact
from nbta.loops import Constant, Expression, Name, both, select
from nbta.loops.nodes import ONE, ZERO, as_node
from nbta.ops.core.descriptions import NUMBERS
from nbta.ops.core.dimensions import as_shape, pattern_of
from nbta.ops.core.dispatch import apply, as_array, building, define, exported, stands_for

if TYPE_CHECKING:
    from nbta.typing import Array, ArrayLike, DTypeLike, ShapeLike


def wanted(code, op, place=1) -> tuple[Expression, ...]:
    """Dimensions of a result whose shape is an input."""
    items = code.vector(op.inputs[place])
    known = op.outputs[0].spec.shape
    found = []
    for item, dimension in zip(items, known, strict=True):
        if type(dimension) is int and dimension >= 0:
            if number_in(item) != dimension:
                code.fail_if(item.differs(dimension))
            found.append(Constant(dimension))
        else:
            found.append(code.dimension(item))
            if isinstance(dimension, shapes.IterationDim):
                code.dims.setdefault(dimension, found[-1])
    return tuple(found)


def new_dimensions(code, op, place=1) -> tuple[Expression, ...]:
    """`wanted` of a shape that a run may compute: a negative one fails before it sizes memory."""
    dimensions = wanted(code, op, place)
    for dimension in dimensions:
        if not is_known(dimension) and dimension not in code.dims.values():
            code.fail_if(dimension < 0)
    return dimensions


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


def _emit_to_dtype(op, item):
    """A number in another dtype, by NumPy's rules.

    Floats become short integers by way of 32 bits, as in C: -1.7 is 255 as uint8. LLVM's direct
    conversion of a number out of range is what the processor's vectors make of it.
    """
    have, want = op.inputs[0].dtype, op.outputs[0].dtype
    if want.kind == "b":
        return item.differs(0)
    if have.kind == "f" and want.kind in "iu" and want.itemsize < 4:
        return typed(item, np.int32)
    return item.real if have.kind == "c" != want.kind else item


CAST = define(
    "Cast",
    _infer_cast,
    _evaluate_cast,
    _cast_gradient,
    connections=_cast_connections,
    emit=ElementwiseOf(_emit_to_dtype),
    elementwise=True,
    total=_between_numbers,
    cheap=True,
    linear=True,
)


@exported
def cast(x: ArrayLike, dtype: DTypeLike, *, name: str | None = None) -> Array:
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


def emit_identity(code, op) -> None:
    """The first input itself; a result in a loop that waits becomes another result of that."""
    x, result = op.inputs[0], op.outputs[0]
    value = code.values[x]
    if not isinstance(value, Lazy) or value.item is None:
        return code.bind(result, code.kept(x))
    return value.group.step(code, value.item, result)


IDENTITY = define(
    "Identity",
    lambda spec: spec,
    lambda x: x,
    lambda op, dy: [dy],
    emit=emit_identity,
    elementwise=True,
    total=True,
    linear=(0,),
)


@exported(family=NUMBERS)
def identity(x: ArrayLike, *, name: str | None = None) -> Array:
    """The same values as a new tensor, for example to give them a name.

    Examples
    --------
    >>> nbta.identity([1, 2])
    array([1, 2])
    """
    return apply(IDENTITY, [x], name=name)


def named(x, name=None):
    """What a function of several operations gives: in a graph with a name, else as it is.

    Arrays of rank 0 are NumPy's scalars, as operations give them.
    """
    if building(x) is not None:
        return identity(x, name=name)
    return x[()] if isinstance(x, np.ndarray) and not x.ndim else x


STOP_GRADIENT = define(
    "StopGradient",
    lambda spec: spec,
    lambda x: x,
    NotDifferentiable("it is there to stop them"),
    emit=emit_identity,
    elementwise=True,
    total=True,
    linear=(0,),  # for flows, whose tangents say only what comes after what
)


@exported(family=NUMBERS)
def stop_gradient(x: ArrayLike, *, name: str | None = None) -> Array:
    """The same values, which gradients treat as constants.

    Examples
    --------
    >>> nbta.grad(lambda x: x * nbta.stop_gradient(x))(3.0)
    np.float64(3.0)
    """
    return apply(STOP_GRADIENT, [x], name=name)


def _infer_shape(spec):
    return Spec(INT64, (spec.rank,))


def _emit_shape(code, op) -> None:
    """The dimensions."""
    items = tuple(typed(e, INT64) for e in code.dimensions(op.inputs[0]))
    code.bind(op.outputs[0], Vector(items, op.outputs[0].dtype))


SHAPE = define(
    "Shape",
    _infer_shape,
    lambda x: np.array(np.shape(x), np.int64),
    NotDifferentiable("it does not depend on the values"),
    emit=_emit_shape,
    total=True,
    selects=True,
)


@exported(numpy=1)
def shape(x: ArrayLike, *, name: str | None = None) -> Array:
    """The shape of a tensor as a vector; in a graph, the shape it has in the run.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.

    Returns
    -------
    Tensor or numpy.ndarray
        A vector of int64.

    Examples
    --------
    >>> nbta.shape([[1, 2, 3]])
    array([1, 3])
    """
    return apply(SHAPE, [x], name=name)


def shape_of(tensor):
    """The shape of a tensor for use in a gradient: a constant where it is known.

    Where it is not, the operation stands in the tensor's own graph, so that a loop keeps a few
    dimensions of each iteration and not the values.
    """
    if shapes.is_known(tensor.spec.shape):
        return np.array(tensor.spec.shape, np.int64)
    key = ("shape", tensor)
    cache = tensor.graph.cache
    if key not in cache:
        with tensor.graph.control_dependencies(None):
            cache[key] = tensor.graph.create(SHAPE, [tensor], name="Shape").outputs[0]
    return cache[key]


def _emit_size(code, op) -> None:
    """The number of items."""
    count = product(code.dimensions(op.inputs[0]))
    code.bind(op.outputs[0], code.local(count, op.outputs[0].dtype))


SIZE = define(
    "Size",
    lambda spec: Spec(INT64, ()),
    lambda x: np.int64(np.size(x)),
    NotDifferentiable("it does not depend on the values"),
    emit=_emit_size,
    total=True,
    selects=True,
)


@exported(numpy=1)
def size(x: ArrayLike, *, name: str | None = None) -> Array:
    """The number of elements; in a graph, the number there is in the run.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.

    Returns
    -------
    Tensor or numpy.ndarray
        A scalar of int64.

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
            f"{want}; give a shape with as many"
        )
        raise invalid("reshape", message)


def _emit_reshape(code, op) -> None:
    """The same items under other dimensions."""
    x = code.value(op.inputs[0])
    items = code.vector(op.inputs[1])
    known = op.outputs[0].spec.shape
    have = ONE if isinstance(x, Scalar) else product(x.dimensions)
    dimensions = [
        as_node(dimension) if type(dimension) is int and dimension >= 0 else _open(code, item)
        for item, dimension in zip(items, known, strict=True)
    ]
    unproven = [axis for axis, e in enumerate(dimensions) if not is_known(e)]
    free = next(
        (axis for axis in unproven if dimensions[axis] == as_node(-1)),
        unproven[-1] if unproven else None,
    )
    if free is not None:
        dimensions[free] = _left_over(code, dimensions, free, have)
    for axis, item in enumerate(items):
        if axis != free and number_in(item) == -1:  # known, but NumPy asks the others for it
            _refuse_none(code, product(dimensions[:axis] + dimensions[axis + 1 :]))
    if have != product(dimensions):
        code.fail_if(have.differs(product(dimensions)))
    bind_reshaped(code, op, x, dimensions)


def _open(code, item):
    """A dimension that the graph does not know: -1 for what is left over."""
    return as_node(-1) if number_in(item) == -1 else code.dimension(item)


def _left_over(code, dimensions, free, have):
    """A dimension that takes what the others leave, where it is negative."""
    item, others = dimensions[free], product(dimensions[:free] + dimensions[free + 1 :])
    rest = have if others == ONE else have // others
    if item != as_node(-1):
        code.fail_if(both(item < 0, others.equals(0)))
        return code.variable(select(item < 0, rest, item))
    _refuse_none(code, others)
    return rest if isinstance(rest, Name | Constant) else code.derived(rest)


def _refuse_none(code, others):
    """Fail where the other dimensions hold nothing, as then any dimension is left over."""
    if not is_known(others) or others == ZERO:
        code.fail_if(others.equals(0))


RESHAPE = define(
    "Reshape",
    _infer_reshape,
    lambda x, shape, *, pattern: np.reshape(x, shape),
    lambda op, dy: [reshape(dy, shape_of(op.inputs[0])), None],
    emit=_emit_reshape,
    keeps=True,
    shape_input=1,
    linear=(0,),
    moves=True,
)


@exported(numpy=2)
def reshape(x: ArrayLike, shape: ShapeLike, *, name: str | None = None) -> Array:
    """The same elements, in row-major order, in another shape, as `numpy.reshape`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result. One dimension may be -1, and follows from the others.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape, in the dtype of ``x``.

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
    x = as_array(x) if isinstance(x, list | tuple) else x
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
    rest = [dimension for i, dimension in enumerate(pattern) if i != place]
    have = x.spec.shape if isinstance(x, Tensor) else as_plain("value", x).shape
    dimension = None
    if shapes.is_known(have) and shapes.is_known(tuple(rest)) and -1 not in rest:
        count, step = int(np.prod(have, dtype=object)), int(np.prod(rest, dtype=object))
        if step == 0 or count % step:
            message = f"{count} elements cannot be arranged as {pattern}; choose other dimensions"
            raise invalid("reshape", message)
        dimension = count // step
    return (*pattern[:place], dimension, *pattern[place + 1 :])


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


def _emit_broadcast_to(code, op) -> None:
    """Items repeated."""
    dimensions = new_dimensions(code, op)
    x, result = op.inputs[0], op.outputs[0]
    if not dimensions:
        return code.bind(result, code.value(x))
    found = broadcast(
        code,
        [(code.dimensions(x), x.spec.shape), (dimensions, tuple(_known(e) for e in dimensions))],
    )
    for mine, theirs in zip(found, dimensions, strict=True):
        code.equate(mine, theirs)
    group = joined(code, [x], found)
    put = group.step if x.spec.rank else group.repeat
    return put(code, item_of(code, group, x), result)


def _known(dimension):
    return dimension.value if is_known(dimension) else None


BROADCAST_TO = define(
    "BroadcastTo",
    _infer_broadcast_to,
    lambda x, shape, *, pattern: np.broadcast_to(x, shape),
    lambda op, dy: [unbroadcast(dy, op.inputs[0]), None],
    emit=_emit_broadcast_to,
    keeps=True,
    shape_input=1,
    linear=(0,),
    moves=True,
)


@exported(numpy=2)
def broadcast_to(x: ArrayLike, shape: ShapeLike, *, name: str | None = None) -> Array:
    """``x`` repeated along axes of length 1 and along new first axes, as `numpy.broadcast_to`.

    Parameters
    ----------
    x : array-like or Tensor
        Elements of any dtype.
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape, in the dtype of ``x``.

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
        message = f"{shapes.text(have)} is not a shape that {shapes.text(want)} broadcasts to"
        raise invalid("broadcast", f"{message}; give the shape before broadcasting")


def _evaluate_sum_to(x, shape, *, pattern):
    shape = tuple(map(int, shape))
    _check_sum_to(np.shape(x), shape)
    extra = np.ndim(x) - len(shape)
    short = [i for i, n in enumerate(shape) if n == 1 != x.shape[extra + i]]
    axes = (*range(extra), *(extra + i for i in short))
    return np.sum(x, axis=axes, dtype=x.dtype).reshape(shape) if axes else x


def _emit_sum_to(code, op) -> None:
    """Sums over the axes that broadcasting repeats."""
    x, result = op.inputs[0], op.outputs[0]
    dimensions = wanted(code, op)
    have = code.dimensions(x)
    extra = len(have) - len(dimensions)
    if extra < 0:
        return code.call_python(op)
    kept = [False] * extra
    for axis, dimension in enumerate(dimensions):
        mine = have[extra + axis]
        known = result.spec.shape[axis]
        if code.same(mine, dimension):
            kept.append(True)
        elif dimension == ONE:
            kept.append(mine == ONE)
        elif known is None:
            code.fail_if(both(dimension.differs(1), dimension.differs(mine)))
            kept.append(dimension)
        else:
            code.equate(mine, dimension)
            kept.append(True)
    if all(stays is True for stays in kept):
        return emit_identity(code, op)
    return reduction(code, op, kept, dimensions)


SUM_TO = define(
    "SumTo",
    _infer_sum_to,
    _evaluate_sum_to,
    lambda op, dy: [broadcast_to(dy, shape_of(op.inputs[0])), None],
    emit=_emit_sum_to,
    keeps=True,
    shape_input=1,
    linear=(0,),
)


@exported
def sum_to(x: ArrayLike, shape: ShapeLike, *, name: str | None = None) -> Array:
    """Sum over the axes along which `nbta.broadcast_to` repeats elements: its adjoint.

    Parameters
    ----------
    x : array-like or Tensor
        Numbers.
    shape : int, tuple of int or Tensor, or Tensor
        The shape of the result, which broadcasts to that of ``x``.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the given shape, in the dtype of ``x``.

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
    """Whether an axis is provably not summed over."""
    decided = (type(want) is int and want != 1) or isinstance(want, shapes.Dim)
    return decided or have == 1


@stands_for("asanyarray", "asfortranarray", "ascontiguousarray", numpy=2)
def _as_it_is(a, dtype=None, order=None):
    """NumPy's: what is a tensor stays one; in which order it lies in memory is no matter."""
    a = a if isinstance(a, Tensor) else as_array(a)
    return a if dtype is None or a.dtype == dtype else cast(a, dtype)


@stands_for("require", numpy=3)
def _require(a, dtype=None, requirements=None):
    return _as_it_is(a, dtype)


@stands_for("astype", numpy=2)
def _astype(x, dtype, /, *, copy=True, device=None):
    return cast(x, dtype)
