"""Operations on tensor arrays, with TensorFlow's names.

A handle is the number of an array in the step's container. The gradient rules send values through
the gradient array that belongs to the forward array and to the source of the computation: what is
read adds to it, what was written is read from it, and the flows' gradients order these steps
against each other, backwards.
"""

from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.errors import invalid
from nbta.graph.graph import current, subgraphs
from nbta.graph.operation import (
    DATA,
    FLOW_SPEC,
    HANDLE,
    HANDLE_SPEC,
    NO_FACTS,
    Facts,
    NotDifferentiable,
    Spec,
    Tensor,
)
from nbta.ops.core.arithmetic import add_n
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import CONSTANT, as_tensor, define
from nbta.ops.core.shaping import shape_of
from nbta.ops.indexing.items import getitem
from nbta.tensor_array import TensorArray

FLOW_VALUE = np.float32(0)
_STORAGE = NotDifferentiable("it makes or ends an array, and has no values")


def need_handle(handle):
    """Refuse what is not a handle."""
    if handle.kind != HANDLE:
        message = f"handle: {handle} is not a handle; give what TensorArrayV3 returned"
        raise invalid("handle", message)


#: Of accesses of reverse mode, and of reads of slots that have a value.
OF_ADJOINT, WRITTEN = Facts(of_adjoint=True), Facts(is_written=True)

# Making arrays and asking about them.

ITERATION = define(
    "GradientIteration",
    lambda: Spec(np.dtype(np.int64), ()),
    lambda step: np.int64(step.number()),
    NotDifferentiable("its result is an integer"),
    effects=True,
)


def _infer_create(size, **attrs):
    return HANDLE_SPEC, FLOW_SPEC


def _create(step, size, facts=NO_FACTS, **attrs):
    return step.add(TensorArray(size=size, **attrs)), FLOW_VALUE


def _create_tangent(context, op, *_):
    """An array for the tangents of values, of the same size."""
    if not context.has(op.outputs[0]):
        return [None, None]
    return build(CREATE, op.inputs, op.attrs, f"{op.type}_tangent")


CREATE = define(
    "TensorArrayV3", _infer_create, _create, _STORAGE, effects=True, tangent=_create_tangent
)


def _infer_lookup(handle, flow, *prefix, **attrs):
    need_handle(handle)
    return HANDLE_SPEC, FLOW_SPEC


def _lookup(
    step, handle, flow, *iteration, source, clear_after_read=None, stays=False, grows=False
):
    """The gradient array; each iteration of a loop whose body calls `gradients` has its own.

    ``stays``: it is found by its source also once the other array is closed, as a derivative needs
    it after all that the program does. ``grows``: it is a derivative's, of a gradient array, which
    a read past the end makes longer; that read may not run where only its derivative is needed.
    """
    source = "#".join([source, *map(str, iteration)])
    return step.gradient(handle, source, clear_after_read, stays, grows), FLOW_VALUE


def _lookup_with_shape(step, handle, flow, prefix, *, source, clear_after_read=None):
    array = step.array(handle)
    clear = clears(clear_after_read, array.is_gradient)
    made = array.grad_with_shape(source, prefix, clear_after_read=clear)
    return step.add(made), FLOW_VALUE


def clears(asked: bool | None, of_gradient: bool) -> bool:
    """Whether reads clear the slots of a gradient array, as the lookup that makes it asks.

    Where it does not ask, as those of derivatives: each slot of a forward array's is read once; a
    gradient array may be written many times, so that its own gradient is read as often.
    """
    return not of_gradient if asked is None else asked


def _lookup_gradient(context, op, _, dflow):
    """Two lookups may find one array: what one writes another reads, and flow connects them."""
    return [None, dflow, *[None] * (len(op.inputs) - 2)]


def _lookup_tangent(context, op, *given):
    """A gradient array of the same array, of another source: it has the same shapes, and adds."""
    flow = given[1]
    if not context.has(op.outputs[0]):
        return [None, flow]
    handle, before, *others = op.inputs
    before = before if flow is None else add_n([before, flow])
    attrs = {**op.attrs, "source": context.source_beside(op.attrs["source"])}
    made = build(op.record, [handle, before, *others], attrs)
    context.note_lookup(op, made[0].op)
    if _is_written_later(op):
        op.add_control_input(made[0].op)
    return made


def _is_written_later(lookup):
    """Whether the forward array may learn shapes after a lookup, so that a later one has others."""
    if lookup.attrs.get("clear_after_read") is None:  # a derivative's, which follows all writes
        return False
    handle, number = lookup.inputs[0], lookup.number
    made = outside(handle).op
    while made.record in LOOKUPS:
        made = outside(made.inputs[0]).op
    if made.record is CREATE and shapes.is_known(made.attrs.get("element_shape")):
        return False
    return any(
        op.number > number
        and (op.record in WRITES or subgraphs(op))
        and any(tensor is handle for tensor in op.inputs)
        for op in lookup.graph.operations
    )


LOOKUP = define(
    "TensorArrayGradV3",
    _infer_lookup,
    _lookup,
    _lookup_gradient,
    effects=True,
    tangent=_lookup_tangent,
)
LOOKUP_WITH_SHAPE = define(
    "TensorArrayGradWithShape",
    _infer_lookup,
    _lookup_with_shape,
    _lookup_gradient,
    effects=True,
    tangent=_lookup_tangent,
)


def _infer_size(handle, flow):
    need_handle(handle)
    return Spec(np.dtype(np.int32), ())


SIZE = define(
    "TensorArraySizeV3",
    _infer_size,
    lambda step, handle, flow: step.array(handle).size(),
    NotDifferentiable("its result is an integer"),
    effects=True,
)


def _infer_close(handle, facts=NO_FACTS):
    need_handle(handle)
    return ()


def _close(step, handle, facts=NO_FACTS):
    step.array(handle).close()
    return ()


def _close_tangent(context, op, beside):
    """Nothing; but an array is open until tangents have been looked up in it, too.

    What is closed for the memory alone is closed with the array of tangents beside it, both after
    all that uses any array: several handles may be of one gradient array.
    """
    graph = op.graph
    if not op.facts.only_frees:
        op.control_inputs = list(dict.fromkeys([*op.control_inputs, *context.lookups_before(op)]))
        graph.changed()
        return []
    others = [other for other in graph.operations if other.record is not CLOSE]
    users = [other for other in others if any(tensor.kind == HANDLE for tensor in other.inputs)]
    op.control_inputs = list(dict.fromkeys([*op.control_inputs, *users]))
    if beside is not None:
        with graph.control_dependencies(users):
            end = graph.create(CLOSE, [beside], op.attrs)
        graph.outputs[0].op.control_inputs.append(end)
    graph.changed()
    return []


CLOSE = define(
    "TensorArrayCloseV3", _infer_close, _close, _STORAGE, effects=True, tangent=_close_tangent
)

# Writing.


def _infer_store(handle, *others, **attrs):
    need_handle(handle)
    return FLOW_SPEC


def _value_and_flow(op):
    """Connections of what stores ``inputs[-2]``; arrays of integers carry no gradient."""
    value = op.inputs[op.record.value_input]
    return [op.inputs if value.spec.differentiable else []]


def _store_tangent(context, op, *given):
    """The same with the tangent of the value, zeros where it has none, in the array beside."""
    handle, flow = op.inputs[0], op.inputs[-1]
    access = context.beside(handle, flow)
    if access is None:
        return [given[-1]]
    inputs = [access.handle, *op.inputs[1:-1], access.flow]
    place = op.record.value_input
    inputs[place] = context.of_or_none_like(op.inputs[place])
    return build(op.record, inputs, op.attrs)


def _python_index(integer):
    """An index as Python's calls of arrays take it without a detour: of the type int."""
    return int(integer) if isinstance(integer, np.integer) else integer


def _write(step, handle, index, value, flow, *, facts=NO_FACTS):
    if isinstance(value, np.generic) and not isinstance(value, np.flexible):
        value = np.asarray(value)  # quicker; an array of a short text has another dtype
    step.array(handle).write(_python_index(index), value)
    return FLOW_VALUE


def _write_gradient(context, op, dflow):
    _, index, value, _ = op.inputs
    return [
        None,
        None,
        context.stored(op, value, dflow, lambda g: g.read(index, value.spec, OF_ADJOINT)),
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
    spreads=True,
    tangent=_store_tangent,
)


def _scatter(step, handle, indices, value, flow, *, unstacks=False, facts=NO_FACTS):
    """``unstacks``: into the first slots; no rows tell their shape, too."""
    array = step.array(handle)
    array.unstack(value) if unstacks else array.scatter(indices, value)
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
    spreads=True,
    tangent=_store_tangent,
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
    spreads=True,
    tangent=_store_tangent,
)

# Reading. ``known`` is the element shape as far as it is known when the graph is built.


def _infer_read(handle, index, flow, *, dtype, known=None, kind=DATA, facts=NO_FACTS):
    need_handle(handle)
    return Spec(dtype, known, kind)


def _read(step, handle, index, flow, *, dtype, known=None, kind=DATA, facts=NO_FACTS):
    array, index = step.array(handle), _python_index(index)
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
    return [
        None,
        None,
        context.accumulate(handle, flow, lambda g: g.write(index, dvalue, OF_ADJOINT)),
    ]


def _tangent_of_read(place):
    """The rule of what reads an array after the flow of a place."""

    def tangent(context, op, *given):
        access = context.beside(op.inputs[0], op.inputs[place])
        if access is None:
            return [None] * len(op.outputs)
        inputs = [access.handle, *op.inputs[1:]]
        inputs[place] = access.flow
        return build(op.record, inputs, op.attrs)

    return tangent


READ = define(
    "TensorArrayReadV3",
    _infer_read,
    _read,
    _read_gradient,
    effects=True,
    tangent=_tangent_of_read(2),
)


def _in_run(step, pattern):
    """A shape with the lengths of this run; None where one of them is not known."""
    if pattern is None:
        return None
    found = tuple(n if type(n) is int else step.lengths.get(n) for n in pattern)
    return None if None in found else found


def _infer_gather(
    handle, indices, flow, *, dtype, element_shape=None, known=None, strict=False, learnt=False
):
    need_handle(handle)
    rows = indices.shape[0] if indices.shape else None
    return Spec(dtype, None if known is None else (rows, *known))


def _gather(
    step,
    handle,
    indices,
    flow,
    *,
    dtype,
    element_shape=None,
    known=None,
    strict=False,
    learnt=False,
):
    """``learnt`` says that what is known is so of written slots alone, and not of no slots."""
    if np.shape(indices) == (0,) and not strict and not learnt:  # no element tells its shape
        element_shape = _in_run(step, known) or element_shape
    return step.array(handle)._gather(indices, element_shape, dtype, strict)


def _gather_gradient(context, op, dvalue):
    handle, indices, flow = op.inputs
    return [
        None,
        None,
        context.accumulate(handle, flow, lambda g: g.scatter(indices, dvalue, OF_ADJOINT)),
    ]


GATHER = define(
    "TensorArrayGatherV3",
    _infer_gather,
    _gather,
    _gather_gradient,
    effects=True,
    tangent=_tangent_of_read(2),
)


def _infer_concat(handle, flow, *given, dtype, element_shape_except0=None, known=None):
    need_handle(handle)
    if len(given) == 2:
        return Spec(dtype, known), Spec(np.dtype(np.int64), (None,))
    value = Spec(dtype, None if known is None else (None, *known[1:]))
    return value, Spec(np.dtype(np.int64), (None,))


def _concat(step, handle, flow, count=None, *shape, dtype, element_shape_except0=None, known=None):
    """All elements, or so many from the first one on; those of a split have its value's shape."""
    array = step.array(handle)
    if count is not None and count == 0 and (shape or array.size()):
        dimensions = shape[0] if shape else (0, *(element_shape_except0 or ()))
        return np.zeros(dimensions, dtype), np.zeros(0, np.int64)
    return array._concat(element_shape_except0, dtype, int(count or 0))


def _concat_gradient(context, op, dvalue, _):
    handle, flow, *given = op.inputs
    lengths = op.outputs[1]
    added = context.accumulate(handle, flow, lambda g: g.split(dvalue, lengths))
    return [None, added, *[None] * len(given)]


CONCAT = define(
    "TensorArrayConcatV3",
    _infer_concat,
    _concat,
    _concat_gradient,
    effects=True,
    tangent=_tangent_of_read(1),
)

# What others ask about these operations.

WRITES, READS = frozenset({WRITE, SCATTER, SPLIT}), frozenset({READ, GATHER, CONCAT})
LOOKUPS = frozenset({LOOKUP, LOOKUP_WITH_SHAPE})


def slots(op) -> frozenset | None:
    """The slots that an operation touches; None where only the run knows, or for any slots."""
    if op.record not in (WRITE, SCATTER, READ, GATHER):
        return None
    index = outside(op.inputs[1]).op
    if index.record is not CONSTANT:
        return None
    return frozenset(int(i) for i in np.atleast_1d(index.attrs["value"]))


def is_flow_of(flow, handle) -> bool:
    """Whether an operation that gave a flow worked on an array, or on a gradient array of it."""
    op = flow.op
    if op.record is CREATE:
        return op.outputs[0] is handle
    touched = op.inputs[0] if op.record in WRITES | LOOKUPS else None
    while touched is not None and touched is not handle:
        touched = touched.op.inputs[0] if touched.op.record in LOOKUPS else None
    return touched is handle or (op.record in LOOKUPS and op.outputs[0] is handle)


def build(record, inputs, attrs=None, name=None):
    """The results of an operation in the graph that is being built."""
    graph = current()
    return graph.create(record, [as_tensor(t, graph) for t in inputs], attrs, name=name).outputs


class Access(NamedTuple):
    """An array's handle, with the flow that says what its operations come after."""

    handle: Tensor
    flow: Tensor

    def gradient(self, source: str, clear_after_read=None, iteration=(), grows=False) -> "Access":
        """The gradient array for a source, and an iteration if a loop's body calls `gradients`."""
        attrs = {"source": source, "clear_after_read": clear_after_read}
        attrs |= {"grows": True} if grows else {}
        return Access(*build(LOOKUP, [*self, *iteration], attrs))

    def write(self, index, value, facts=NO_FACTS) -> Tensor:
        """The flow after a write."""
        attrs = {} if facts is NO_FACTS else {"facts": facts}
        return build(WRITE, [self.handle, index, value, self.flow], attrs)[0]

    def scatter(self, indices, value, facts=NO_FACTS) -> Tensor:
        """The flow after a scatter."""
        attrs = {} if facts is NO_FACTS else {"facts": facts}
        return build(SCATTER, [self.handle, indices, value, self.flow], attrs)[0]

    def split(self, value, lengths) -> Tensor:
        """The flow after a split into the first slots, of which there may be more."""
        inputs = [self.handle, value, lengths, self.flow]
        return build(SPLIT, inputs, {"partly": True})[0]

    def read(self, index, spec, facts=NO_FACTS) -> Tensor:
        """An element like ``spec``."""
        attrs = {"dtype": spec.dtype, "known": spec.shape, "kind": spec.kind}
        attrs |= {} if facts is NO_FACTS else {"facts": facts}
        return build(READ, [self.handle, index, self.flow], attrs)[0]

    def gather(self, indices, spec) -> Tensor:
        """Elements stacked like ``spec``."""
        known = None if spec.shape is None else spec.shape[1:]
        attrs = {"dtype": spec.dtype, "known": known}
        return build(GATHER, [self.handle, indices, self.flow], attrs)[0]

    def joined(self, value, lengths) -> Tensor:
        """The pieces into which ``value`` was split, joined again."""
        attrs = {"dtype": value.dtype, "known": value.spec.shape}
        inputs = [self.handle, self.flow, getitem(shape_of(lengths), 0), shape_of(value)]
        return build(CONCAT, inputs, attrs)[0]


def tape(spec, name="tape") -> Access:
    """A new array that grows with a loop and keeps values like ``spec``."""
    uniform = spec.shape is not None and all(type(dimension) is int for dimension in spec.shape)
    attrs = {
        "dtype": spec.dtype,
        "dynamic_size": True,
        "clear_after_read": False,  # several gradients, and gradients of them, read it
        "element_shape": spec.shape if uniform else None,
        "infer_shape": uniform,
        "tensor_array_name": name,
        "facts": Facts(is_saved=True),
    }
    return Access(*build(CREATE, [np.int32(0)], attrs, name))
