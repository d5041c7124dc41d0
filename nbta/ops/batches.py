"""Rules of batches: operations on the values of many items at once.

A value that differs between items has an axis for them after all its own; a value that all items
share has none. So a number is a vector of lanes, operations by item broadcast as they are, and the
product of a shared matrix and a vector becomes one of matrices.

A rule takes an operation, new inputs in place of its own and the number of items, and gives the
results of all items.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, NamedTuple

from nbta.graph.graph import current, with_adjoints
from nbta.ops.axes.reductions import CUMSUM, MAX, MEAN, MIN, PROD, SUM, prod
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.core import checks, shaping
from nbta.ops.core.arithmetic import ADD_N, multiply
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import FILL
from nbta.ops.core.shaping import (
    BROADCAST_TO,
    RESHAPE,
    SHAPE,
    SUM_TO,
    broadcast_to,
    cast,
    reshape,
    shape_of,
)
from nbta.ops.core.strong_zeros import OF_ADJOINTS, adjoints_of
from nbta.ops.indexing.arranging import moveaxis
from nbta.ops.indexing.gathering import TAKE
from nbta.ops.indexing.items import (
    ADD_ITEM,
    GETITEM,
    SCATTER_SLICE,
    SET_ITEM,
    aligned,
    getitem,
)
from nbta.ops.indexing.joining import CONCATENATE, EXPAND_DIMS, STACK, concatenate, expand_dims
from nbta.ops.indexing.transposing import SWAPAXES, TRANSPOSE, transpose
from nbta.ops.linalg.products import MATMUL, OUTER, matmul
from nbta.ops.special.softmax import LOGSUMEXP

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.graph.operation import Operation, Tensor


EVERY = builtins.slice(None)


def has_lanes(new: Tensor, old: Tensor) -> bool:
    """Whether a value differs between items, by that of a single one."""
    return new.spec.rank > old.spec.rank


def with_lanes(new: Tensor, old: Tensor, lanes: int) -> Tensor:
    """A value for each item, also of what they share."""
    if has_lanes(new, old):
        return new
    lifted = _lifted(new, old)
    return broadcast_to(lifted, concatenate([shape_of(new), [lanes]]))


def by_item(op: Operation, inputs: list[Tensor], lanes: int) -> list[Tensor]:
    """The rule of elementwise operations, which broadcast their inputs."""
    pairs = zip(inputs, op.inputs, strict=True)
    return _again(op, [new if has_lanes(new, old) else _lifted(new, old) for new, old in pairs])


def _lifted(new, old):
    """A shared array with an axis of length 1 for items; numbers broadcast without."""
    return expand_dims(new, old.spec.rank) if old.spec.rank else new


def _again(op, inputs, **attrs):
    return current().create(op.record, inputs, {**op.attrs, **attrs}).outputs


def _equal_shapes(op, inputs, lanes):
    """Of elementwise operations that do not broadcast."""
    return _again(op, [with_lanes(*pair, lanes) for pair in zip(inputs, op.inputs, strict=True)])


# Dimensions.


def _shape(op, inputs, lanes):
    return [getitem(shape_of(inputs[0]), builtins.slice(None, -1))]


def _size(op, inputs, lanes):
    return [prod(_shape(op, inputs, lanes)[0])]


def _to_shape(op, inputs, lanes):
    """Of what has the shape as its second input."""
    x, shape = inputs
    pattern = op.attrs["pattern"]
    pattern = None if pattern is None else (*pattern, lanes)
    return _again(op, [x, concatenate([shape, [lanes]])], pattern=pattern)


def _broadcast_to(op, inputs, lanes):
    return [broadcast_to(inputs[0], concatenate([inputs[1], [lanes]]))]


def _fill(op, inputs, lanes):
    shape, value = inputs
    return [broadcast_to(value, concatenate([shape, [lanes]]))]


# Items and axes.


def _getitem(op, inputs, lanes):
    return _again(op, inputs, key=aligned(op.attrs["key"], op.inputs[0].spec.shape))


def _change(op, inputs, lanes):
    """Of what changes items of its first input."""
    (x, value, *scalars), (old, old_value, *_) = inputs, op.inputs
    x = with_lanes(x, old, lanes)
    value = value if has_lanes(value, old_value) else _lifted(value, old_value)
    return _again(op, [x, value, *scalars], key=aligned(op.attrs["key"], old.spec.shape))


def _scatter_slice(op, inputs, lanes):
    dy, shape, *scalars = inputs
    pattern, key = op.outputs[0].spec.shape, op.attrs["key"]
    attrs = {"key": aligned(key, pattern), "pattern": (*pattern, lanes)}
    return _again(op, [dy, concatenate([shape, [lanes]]), *scalars], **attrs)


def _along_axis(op, inputs, lanes):
    """Of what joins or picks along one axis of its first input."""
    rank = op.outputs[0].spec.rank if op.record is STACK else op.inputs[0].spec.rank
    return _again(op, inputs, axis=op.attrs["axis"] % rank)


def _join(op, inputs, lanes):
    whole = [with_lanes(*pair, lanes) for pair in zip(inputs, op.inputs, strict=True)]
    return _along_axis(op, whole, lanes)


def _expand_dims(op, inputs, lanes):
    rank, axes = op.outputs[0].spec.rank, op.attrs["axes"]
    return _again(op, inputs, axes=tuple(axis % rank for axis in axes))


def _transpose(op, inputs, lanes):
    rank = op.inputs[0].spec.rank
    axes = op.attrs["axes"] or tuple(range(rank))[::-1]
    return _again(op, inputs, axes=(*axes, rank))


def _swapaxes(op, inputs, lanes):
    rank = op.inputs[0].spec.rank
    return _again(op, inputs, a=op.attrs["a"] % rank, b=op.attrs["b"] % rank)


def _reduce(op, inputs, lanes):
    rank, axes = op.inputs[0].spec.rank, op.attrs["axis"]
    if not rank:
        return [cast(inputs[0], op.outputs[0].dtype)]
    return _again(op, inputs, axis=tuple(range(rank)) if axes is None else axes)


# Products.


def _matmul(op, inputs, lanes):
    """Of matrices and vectors; see `_is_small`."""
    (a, b), (old_a, old_b) = inputs, op.inputs
    of_a, of_b = has_lanes(a, old_a), has_lanes(b, old_b)
    if old_a.spec.rank == old_b.spec.rank == 1 and of_a and of_b:
        return [sum_(multiply(a, b), 0)]
    if not of_a:
        return [_by_shared(a, b, old_b.spec.rank)]
    if not of_b and old_a.spec.rank == 1:
        return [_by_shared(transpose(b), a, 1)]
    left = _items_first(a)
    right = _items_first(b) if of_b else b
    if old_a.spec.rank == 1:
        left = expand_dims(left, 1)
    if of_b and old_b.spec.rank == 1:
        right = expand_dims(right, -1)
    found = moveaxis(matmul(left, right), 0, -1)
    if old_a.spec.rank == 1:
        return [getitem(found, 0)]
    return [getitem(found, (EVERY, 0)) if of_b and old_b.spec.rank == 1 else found]


def _items_first(x):
    return moveaxis(x, -1, 0)


def _by_shared(a, b, rank):
    """A shared matrix or vector times those of items: one product, whose columns are theirs."""
    if rank == 1:
        return matmul(a, b)
    lengths = shape_of(b)
    columns = reshape(b, concatenate([lengths[:1], [-1]]))
    found = matmul(a, columns)
    return reshape(found, concatenate([as_tensor(shape_of(found))[:-1], lengths[1:]]))


def _outer(op, inputs, lanes):
    a, b = (new if has_lanes(new, old) else _lifted(new, old)
            for new, old in zip(inputs, op.inputs, strict=True))  # fmt: skip
    return [multiply(expand_dims(a, 1), expand_dims(b, 0))]


def _of_adjoints(build):
    """The rule of the record of adjoints by that of the ordinary one."""

    def build_of_adjoints(op, inputs, lanes):
        with with_adjoints(adjoints_of(op, inputs)):
            return build(op, inputs, lanes)

    return build_of_adjoints


def _same(op, inputs, lanes):
    return _again(op, inputs)


class Rule(NamedTuple):
    """The rule of a record.

    Attributes
    ----------
    build : callable
        ``build(op, inputs, lanes)`` gives the results.
    own : tuple of int or None
        The inputs that may differ between items; None for all.
    uniform : bool
        Whether the results are the same for all items: they tell dimensions, or order.
    fits : callable
        ``fits(op)`` says whether an operation is of a kind that the rule is for.
    """

    build: Callable
    own: tuple[int, ...] | None = None
    uniform: bool = False
    fits: Callable = lambda op: True


def _is_small(op):
    return all(tensor.spec.rank <= 2 for tensor in op.inputs) and op.outputs[0].dtype.kind != "b"


_FIRST = (0,)
_REDUCTION = Rule(_reduce, _FIRST)
#: By record. What has no rule, and is not elementwise, is computed for one item after another.
RULES: dict = {
    SHAPE: Rule(_shape, _FIRST, uniform=True),
    shaping.SIZE: Rule(_size, _FIRST, uniform=True),
    RESHAPE: Rule(_to_shape, _FIRST),
    SUM_TO: Rule(_to_shape, _FIRST),
    BROADCAST_TO: Rule(_broadcast_to, _FIRST),
    FILL: Rule(_fill, (1,)),
    GETITEM: Rule(_getitem, _FIRST),
    SET_ITEM: Rule(_change, (0, 1)),
    ADD_ITEM: Rule(_change, (0, 1)),
    SCATTER_SLICE: Rule(_scatter_slice, _FIRST),
    TAKE: Rule(_along_axis, _FIRST),
    STACK: Rule(_join),
    CONCATENATE: Rule(_join),
    EXPAND_DIMS: Rule(_expand_dims),
    TRANSPOSE: Rule(_transpose),
    SWAPAXES: Rule(_swapaxes),
    SUM: _REDUCTION,
    MEAN: _REDUCTION,
    PROD: _REDUCTION,
    MAX: _REDUCTION,
    MIN: _REDUCTION,
    LOGSUMEXP: _REDUCTION,
    CUMSUM: Rule(_along_axis),
    ADD_N: Rule(_equal_shapes),
    MATMUL: Rule(_matmul, fits=_is_small),
    OF_ADJOINTS[MATMUL]: Rule(_of_adjoints(_matmul), fits=_is_small),
    OUTER: Rule(_outer),
    OF_ADJOINTS[OUTER]: Rule(_of_adjoints(_outer)),
    checks.AWAIT: Rule(_same, uniform=True),
    checks.AFTER: Rule(_same, _FIRST),
}
