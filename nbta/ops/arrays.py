"""Operations on tensor arrays, with TensorFlow's names.

A handle is the number of an array in the step's container. The gradient rules send values through
the gradient array that belongs to the forward array and to the source of the computation: what is
read adds to it, what was written is read from it, and the flows' gradients order these steps
against each other, backwards.
"""

import numpy as np

from nbta import shapes
from nbta.errors import invalid
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import DATA, FLOW_SPEC, HANDLE, HANDLE_SPEC, Spec
from nbta.ops.dispatch import CONSTANT, define
from nbta.ops.extents import outside
from nbta.tensor_array import TensorArray

FLOW_VALUE = np.float32(0)
_STORAGE = NotDifferentiable("it makes or ends an array, and has no values")


def _need_handle(handle):
    if handle.kind != HANDLE:
        message = f"handle: {handle} is no handle; give what TensorArrayV3 returned"
        raise invalid("handle", message)


# Making arrays and asking about them.

TRIP = define(
    "GradientTrip",
    lambda: Spec(np.dtype(np.int64), ()),
    lambda step: np.int64(step.number()),
    NotDifferentiable("its result is an integer"),
    effects=True,
)


def _infer_create(size, **attrs):
    return HANDLE_SPEC, FLOW_SPEC


def _create(step, size, **attrs):
    return step.add(TensorArray(size=size, **attrs)), FLOW_VALUE


CREATE = define("TensorArrayV3", _infer_create, _create, _STORAGE, effects=True)


def _infer_lookup(handle, flow, *prefix, **attrs):
    _need_handle(handle)
    return HANDLE_SPEC, FLOW_SPEC


def _lookup(step, handle, flow, *trip, source, clear_after_read=None):
    """The gradient array; each trip of a loop whose body calls `gradients` has its own."""
    source = "#".join([source, *map(str, trip)])
    return step.gradient(handle, source, clear_after_read), FLOW_VALUE


def _lookup_with_shape(step, handle, flow, prefix, *, source, clear_after_read=None):
    clears = clear_after_read is not False
    made = step.array(handle).grad_with_shape(source, prefix, clear_after_read=clears)
    return step.add(made), FLOW_VALUE


def _lookup_gradient(context, op, _, dflow):
    """Two lookups may find one array: what one writes another reads, and flow connects them."""
    return [None, dflow, *[None] * (len(op.inputs) - 2)]


LOOKUP = define("TensorArrayGradV3", _infer_lookup, _lookup, _lookup_gradient, effects=True)
LOOKUP_WITH_SHAPE = define(
    "TensorArrayGradWithShape", _infer_lookup, _lookup_with_shape, _lookup_gradient, effects=True
)


def _infer_size(handle, flow):
    _need_handle(handle)
    return Spec(np.dtype(np.int32), ())


SIZE = define(
    "TensorArraySizeV3",
    _infer_size,
    lambda step, handle, flow: step.array(handle).size(),
    NotDifferentiable("its result is an integer"),
    effects=True,
)


def _infer_close(handle):
    _need_handle(handle)
    return ()


def _close(step, handle):
    step.array(handle).close()
    return ()


CLOSE = define("TensorArrayCloseV3", _infer_close, _close, _STORAGE, effects=True)

# Writing.


def _infer_store(handle, *others, **attrs):
    _need_handle(handle)
    return FLOW_SPEC


def _value_and_flow(op):
    """Connections of what stores ``inputs[-2]``; arrays of integers carry no gradient."""
    value = op.inputs[op.record.value_input]
    return [op.inputs if value.spec.differentiable else []]


def _write(step, handle, index, value, flow):
    step.array(handle).write(index, value)
    return FLOW_VALUE


def _write_gradient(context, op, dflow):
    _, index, value, _ = op.inputs
    return [
        None,
        None,
        context.stored(op, value, dflow, lambda g: g.read(index, value.spec)),
        dflow,
    ]


WRITE = define(
    "TensorArrayWriteV3",
    _infer_store,
    _write,
    _write_gradient,
    effects=True,
    connections=_value_and_flow,
    value_input=2,
)


def _scatter(step, handle, indices, value, flow):
    step.array(handle).scatter(indices, value)
    return FLOW_VALUE


def _scatter_gradient(context, op, dflow):
    _, indices, value, _ = op.inputs

    def rows(gradient):
        return gradient.gather(indices, value.spec)

    return [None, None, context.stored(op, value, dflow, rows), dflow]


SCATTER = define(
    "TensorArrayScatterV3",
    _infer_store,
    _scatter,
    _scatter_gradient,
    effects=True,
    connections=_value_and_flow,
    value_input=2,
)


def _split(step, handle, value, lengths, flow, *, partly=False):
    """``partly``: into the first slots of an array that may have more; for gradients of concat."""
    step.array(handle)._split(value, lengths, partly)
    return FLOW_VALUE


def _split_gradient(context, op, dflow):
    _, value, lengths, _ = op.inputs
    joined = context.stored(op, value, dflow, lambda g: g.joined(value, lengths))
    return [None, joined, None, dflow]


SPLIT = define(
    "TensorArraySplitV3",
    _infer_store,
    _split,
    _split_gradient,
    effects=True,
    connections=_value_and_flow,
    value_input=1,
)

# Reading. ``known`` is the element shape as far as it is known when the graph is built.


def _infer_read(handle, index, flow, *, dtype, known=None, kind=DATA):
    _need_handle(handle)
    return Spec(dtype, known, kind)


def _read(step, handle, index, flow, *, dtype, known=None, kind=DATA):
    array = step.array(handle)
    value = array.read(index) if array.dtype == dtype else array.read(index, dtype=dtype)
    if known is not None and value.shape != known and not shapes.compatible(value.shape, known):
        message = (
            f"slot {index} has shape {value.shape}, and the graph was built for "
            f"{shapes.text(known)}, as other writes of the array said; give it "
            f"infer_shape=False, or element_shape="
        )
        raise invalid("element_shape", message)
    return value


def _read_gradient(context, op, dvalue):
    handle, index, flow = op.inputs
    return [None, None, context.accumulate(handle, flow, lambda g: g.write(index, dvalue))]


READ = define("TensorArrayReadV3", _infer_read, _read, _read_gradient, effects=True)


def _settled(step, pattern):
    """A shape with the lengths of this run; None where one of them is not known."""
    if pattern is None:
        return None
    found = tuple(n if type(n) is int else step.lengths.get(n) for n in pattern)
    return None if None in found else found


def _infer_gather(handle, indices, flow, *, dtype, element_shape=None, known=None, strict=False):
    _need_handle(handle)
    rows = indices.shape[0] if indices.shape else None
    return Spec(dtype, None if known is None else (rows, *known))


def _gather(step, handle, indices, flow, *, dtype, element_shape=None, known=None, strict=False):
    if np.shape(indices) == (0,) and not strict:  # no element tells its shape
        element_shape = _settled(step, known) or element_shape
    return step.array(handle)._gather(indices, element_shape, dtype, strict)


def _gather_gradient(context, op, dvalue):
    handle, indices, flow = op.inputs
    return [None, None, context.accumulate(handle, flow, lambda g: g.scatter(indices, dvalue))]


GATHER = define("TensorArrayGatherV3", _infer_gather, _gather, _gather_gradient, effects=True)


def _infer_concat(handle, flow, *given, dtype, element_shape_except0=None, known=None):
    _need_handle(handle)
    if len(given) == 2:
        return Spec(dtype, known), Spec(np.dtype(np.int64), (None,))
    value = Spec(dtype, None if known is None else (None, *known[1:]))
    return value, Spec(np.dtype(np.int64), (None,))


def _concat(step, handle, flow, count=None, *shape, dtype, element_shape_except0=None, known=None):
    """All elements, or so many from the first one on; those of a split have its value's shape."""
    array = step.array(handle)
    if count is not None and count == 0 and (shape or array.size()):
        extents = shape[0] if shape else (0, *(element_shape_except0 or ()))
        return np.zeros(extents, dtype), np.zeros(0, np.int64)
    return array._concat(element_shape_except0, dtype, int(count or 0))


def _concat_gradient(context, op, dvalue, _):
    handle, flow, *given = op.inputs
    lengths = op.outputs[1]
    added = context.accumulate(handle, flow, lambda g: g.split(dvalue, lengths))
    return [None, added, *[None] * len(given)]


CONCAT = define("TensorArrayConcatV3", _infer_concat, _concat, _concat_gradient, effects=True)

# What others ask about these operations.

WRITES, READS = frozenset({WRITE, SCATTER, SPLIT}), frozenset({READ, GATHER, CONCAT})
LOOKUPS = frozenset({LOOKUP, LOOKUP_WITH_SHAPE})


def slots(op) -> frozenset | None:
    """The slots that an operation touches; None where the run tells, or where it may be any."""
    if op.record not in (WRITE, SCATTER, READ, GATHER):
        return None
    index = outside(op.inputs[1]).op
    if index.record is not CONSTANT:
        return None
    return frozenset(int(i) for i in np.atleast_1d(index.attrs["value"]))


def array_behind(flow):
    """The handle of the array that an operation gave a flow of; None where that is not plain."""
    op = flow.op
    if op.record is CREATE or op.record in LOOKUPS:
        return op.outputs[0]
    return op.inputs[0] if op.record in WRITES else None
