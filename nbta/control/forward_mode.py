"""Forward mode: derivatives along a direction, as operations of the same graph.

`tangents` goes through the operations between ``xs`` and ``ys`` in the order in which they run and
asks each for the tangents of its results: what these change by when ``xs`` move along the
directions. So nothing of a loop's iterations is saved: a loop has the tangents of its variables as
further variables, and an array an array of tangents beside it (`nbta.control.activity` says which).

A record has a rule of its own (``tangent``), or says in which inputs it is linear, together
(``linear``) or one by one (``multilinear``); the Jacobian of an elementwise operation of real
numbers is diagonal, so that its gradient rule is the one for tangents too. For all others the
tangent is the gradient of the gradient with respect to its seed, on which it depends linearly
(J. Townsend, "A new trick for calculating Jacobian vector products", 2017).
"""

from __future__ import annotations

import functools
import operator
from types import SimpleNamespace

from nbta import shapes
from nbta.control.activity import active_tensors
from nbta.control.reverse_mode import Computation
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import SubGraph, current, gradient_of
from nbta.graph.labels import TANGENT, call_after
from nbta.graph.operation import DATA, FLOW, Addend, Operation, Tensor, made_gradient
from nbta.graph.order import ordered
from nbta.graph.verifier import verify_change
from nbta.ops.arrays.tensor_arrays import Access
from nbta.ops.core.arithmetic import add_n
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import broadcast_to, identity, shape_of
from nbta.ops.loops.aliases import check_writes, own_suffix, with_suffix
from nbta.ops.loops.residuals import none_like


def tangents(ys: list[Tensor], xs: list[Tensor], directions: list[Tensor]) -> list[Tensor | None]:
    """Derivatives of ``ys`` along a direction, None where no path leads from any of ``xs``.

    Parameters
    ----------
    ys, xs : list of Tensor
        Of the graph that is being built.
    directions : list of Tensor
        One for each x, of its dtype and shape. They must not depend on ``ys``: loops between get
        further variables.
    """
    graph = current()
    with graph.name_scope("tangents") as scope:
        found = Forward(scope[:-1]).run(ys, xs, directions)
        verify_change(graph)
    return found


class Forward:
    """One call of `tangents`, and what rules ask it.

    Parameters
    ----------
    name : str
        What the sources of its gradient arrays end in, if no lookup of the program has such a one.
    """

    def __init__(self, name: str):
        self._name, self._home = name, current()
        self._tangents: dict[Tensor, Tensor] = {}
        self._active: set[Tensor] = set()
        self._used: set[Tensor] = set()
        self._lookups: list[tuple[Operation, Operation]] = []

    def run(self, ys, xs, directions) -> list:
        """Tangents of ``ys``."""
        operations = ordered({y.op for y in ys})
        self._active |= active_tensors(operations, xs, ys)
        check_writes(operations, self._active)
        self._tangents.update(zip(xs, directions, strict=True))
        self._walk(operations, ys)
        self._end(operations)
        return [self.of(y) for y in ys]

    def through(self, body: SubGraph, ends: list[Tensor], given: dict[Tensor, Tensor]) -> list:
        """Tangents of tensors of a body, zeros where they have none, from those of parameters.

        What the body captures has the tangent that it has around.
        """
        self._tangents.update(given)
        with body.as_default(), body.control_dependencies(None):
            operations = ordered({tensor.op for tensor in ends})
            check_writes(operations, self._active)
            self._walk(operations, ends)
            self._end(ordered({tensor.op for tensor in body.outputs}))
            return [self.of_or_none_like(tensor) for tensor in ends]

    def has(self, tensor: Tensor) -> bool:
        """Whether a tensor depends on the directions, or is an array that may."""
        return tensor in self._active

    def of(self, tensor: Tensor) -> Tensor | None:
        """The tangent of a tensor in the graph that is being built; None where it has none."""
        if tensor not in self._active:
            return None
        if tensor not in self._tangents:
            graph = tensor.graph
            if not isinstance(graph, SubGraph) or tensor not in graph.sources:
                return None
            around = graph.sources[tensor]
            with graph.outer.as_default():
                outer = self.of(around)
            if outer is None:
                return None
            self._tangents[tensor] = graph.resolve(outer)
        return self._tangents[tensor]

    def of_or_none_like(self, tensor: Tensor) -> Tensor:
        """The tangent of a tensor, or zeros; of arrays' handles and flows, these themselves."""
        found = self.of(tensor)
        return none_like(tensor) if found is None else found

    def beside(self, handle: Tensor, flow: Tensor) -> Access | None:
        """The array of tangents beside an array; None where nothing in that has any."""
        found = self.of(handle)
        return None if found is None else Access(found, self.of_or_none_like(flow))

    @functools.cached_property
    def _suffix(self) -> str:
        with self._home.as_default():
            return own_suffix(self._name)

    def source_beside(self, source: str) -> str:
        """The source of the tangents of a gradient array, which nothing else looks up."""
        return with_suffix(source, self._suffix)

    def note_lookup(self, op: Operation, beside: Operation) -> None:
        """Note the lookup of the tangents beside a gradient array."""
        self._lookups.append((op, beside))

    def lookups_before(self, close: Operation) -> list[Operation]:
        """Lookups of tangents that belong to lookups in an array before it is closed."""
        return [
            beside
            for op, beside in self._lookups
            if op.inputs[0] is close.inputs[0]
            and (op.number < close.number or op.attrs.get("stays"))
        ]

    def _walk(self, operations, ends):
        self._used.update(tensor for op in operations for tensor in op.inputs)
        self._used.update(ends)
        for op in operations:
            if any(self._is_due(tensor) for tensor in op.outputs):
                given = [self.of(tensor) for tensor in op.inputs]
                for tensor, found in zip(list(op.outputs), self._apply(op, given), strict=True):
                    if found is not None and self._is_due(tensor):
                        self._tangents[tensor] = _checked(op, tensor, found)
                        call_after(found, tensor, TANGENT)

    def _end(self, operations):
        """Let what ends arrays come after all tangents."""
        for op in operations:
            if not op.outputs:
                self._apply(op, [self.of(tensor) for tensor in op.inputs])

    def _is_due(self, tensor):
        return tensor in self._active and tensor not in self._tangents

    def _apply(self, op, given):
        if op.record.effects:
            rule = op.record.tangent or _only_flows
            with gradient_of(op, ()):
                return rule(self, op, *given)
        if all(tangent is None for tangent in given):
            return [None] * len(op.outputs)
        with gradient_of(op, [tangent for tangent in given if tangent is not None]):
            found = self._derived(op, given)
            whole = not op.record.elementwise or _covers(op, given)
            return [
                t if t is None or whole else _like(t, tensor)
                for t, tensor in zip(map(_as_tensor, found), op.outputs, strict=True)
            ]

    def _derived(self, op, given):
        """Tangents of an operation that depends on its inputs alone."""
        record = op.record
        if record.tangent is not None:
            return record.tangent(op, *given)
        if record.linear:
            return _by_itself(op, given)
        if record.multilinear:
            return _by_each(op, given)
        numbers = [*op.inputs, op.outputs[0]]
        real = all(tensor.dtype == op.outputs[0].dtype for tensor in numbers if _is_number(tensor))
        if record.elementwise and real and op.outputs[0].dtype.kind != "c":
            return [_by_diagonal(op, given)]
        return _by_transposing(op, given, [tensor in self._used for tensor in op.outputs])


def _only_flows(context, op, *given):
    """The rule of what touches no array of floats, but may stand between what does."""
    flows = [t for t, x in zip(given, op.inputs, strict=True) if x.kind == FLOW and t is not None]
    return [add_n(flows) if tensor.kind == FLOW and flows else None for tensor in op.outputs]


def _is_number(tensor):
    return tensor.spec.differentiable


def _again(op, inputs):
    """Results of an operation of other inputs like its own."""
    made = current().create(op.record, inputs, op.attrs).outputs
    keep_shapes(op.outputs, made)
    return made


def _by_itself(op, given):
    """The operation of tangents, in all the inputs in which it is linear together."""
    places = op.record.linear
    places = range(len(given)) if places is True else places
    inputs = list(op.inputs)
    for place in places:
        if given[place] is not None:
            inputs[place] = given[place]
        elif inputs[place].spec.differentiable:
            inputs[place] = zeros_like(inputs[place])
    return _again(op, [as_tensor(tensor) for tensor in inputs])


def _by_each(op, given):
    """The operation of each tangent and the other inputs, added up."""
    terms = [
        _again(op, [*op.inputs[:place], found, *op.inputs[place + 1 :]])
        for place, found in enumerate(given)
        if found is not None
    ]
    return [as_tensor(add_n(column)) for column in zip(*terms, strict=True)]


def _by_diagonal(op, given):
    """The gradient rule, as each item of the result depends on items at its own place alone."""
    terms = []
    for place, tangent in enumerate(given):
        if tangent is None:
            continue
        by_item = getattr(op.record.gradient, "by_item", None)
        if by_item is not None:
            found = made_gradient(by_item(*op.inputs, op.outputs[0], tangent)[place])
        else:
            found = op.record.gradient(*_broadcast(op, place, tangent))[place]
        if found is not None:
            terms.append(found)
    return functools.reduce(operator.add, terms) if terms else None


def _broadcast(op, place, tangent):
    """An operation of which one input has the shape of the result, and the tangent of that."""
    y, inputs = op.outputs[0], list(op.inputs)
    if not _same_shape(inputs[place], y):
        shape = shape_of(y)
        inputs[place], tangent = broadcast_to(inputs[place], shape), broadcast_to(tangent, shape)
    parts = {name: getattr(op, name) for name in ("record", "attrs", "graph", "outputs", "name")}
    return SimpleNamespace(inputs=inputs, type=op.type, location=op.location, **parts), tangent


def _by_transposing(op, given, used):
    """The gradient of the gradient with respect to its seed, for the results that are used."""
    seeds = [
        identity(zeros_like(tensor)) if is_used and tensor.spec.differentiable else None
        for tensor, is_used in zip(op.outputs, used, strict=True)
    ]
    with gradient_of(op, [seed for seed in seeds if seed is not None]):
        grads = [_whole(made_gradient(grad)) for grad in op.record.gradient(op, *seeds)]
    pairs = [
        pair for pair in zip(grads, given, strict=True) if all(part is not None for part in pair)
    ]
    wanted = [seed for seed in seeds if seed is not None]
    if not pairs:
        return [None] * len(op.outputs)
    computation = Computation(current().unique_name("transposed"))
    found = iter(computation.run([g for g, _ in pairs], [t for _, t in pairs], wanted))
    return [None if seed is None else next(found) for seed in seeds]


def _whole(grad):
    return grad.alone(grad.value) if isinstance(grad, Addend) else grad


def _same_shape(one, whole):
    """Whether a tensor, broadcast to the shape of another one, is known to have it already."""
    have, want = one.spec.shape, whole.spec.shape
    if have is None or want is None or len(have) != len(want) or None in have:
        return False
    pairs = zip(have, want, strict=True)
    return all(n == m or type(n) is not int for n, m in pairs)  # a `Dim` is never 1


def _as_tensor(tangent):
    return None if tangent is None else as_tensor(tangent)


def _covers(op, given):
    """Whether the inputs with a tangent have the shape of the result by themselves."""
    pairs = zip(op.inputs, given, strict=True)
    return all(tangent is not None or tensor.spec.rank == 0 for tensor, tangent in pairs)


def _like(tangent, tensor):
    """A tangent of the shape of its tensor: where another input was broadcast, so is this.

    Not where that is known, as a broadcast of unknown lengths keeps code from changing an array
    where it is.
    """
    if tensor.kind != DATA or _same_shape(tangent, tensor):
        return tangent
    return broadcast_to(tangent, shape_of(tensor))


def _checked(op, tensor, tangent):
    """A tangent with the dtype and a compatible shape, or the rule is wrong."""
    want, have = tensor.spec, tangent.spec
    same = have.dtype == want.dtype and have.kind == want.kind
    if not same or not shapes.compatible(have.shape, want.shape):
        raise AssertionError(f"the tangent rule of {op!r} gave {tangent} for {tensor!r}")
    return tangent
