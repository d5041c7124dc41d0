"""What loops and branches share: tracing their bodies, and values that their gradients need."""

from nbta.errors import NbtaError
from nbta.graph.dependence import closure, uses
from nbta.graph.graph import SubGraph, drop_unused, subgraphs, substitute
from nbta.graph.operation import DATA, NotDifferentiable, Tensor
from nbta.graph.order import before, ordered
from nbta.graph.views import Loop
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, as_tensor, special
from nbta.ops.core.filling import zeros
from nbta.ops.core.shaping import shape_of
from nbta.ops.loops.residuals import shadow


def note(error: Exception, text: str) -> None:
    """Say in an error where it happened."""
    if isinstance(error, NbtaError):
        error.args = (f"{error} {text}",)
    else:
        error.add_note(text)


def trace(outer, name, specs, function) -> SubGraph:
    """The sub-graph of a function of parameters like ``specs``."""
    body = SubGraph(outer, name)
    with body.as_default():
        parameters = [body.parameter(spec) for spec in specs]
        body.outputs = [as_tensor(tensor, body) for tensor in function(*parameters)]
    return body


class GradientGraph(SubGraph):
    """A body for the gradient of another one, which sees the values of that one.

    What the forward body captures is captured here too, and what only depends on that is computed
    again. For any other value a parameter stands in at first: rules build more than is needed, and
    only what the results turn out to need is kept from the forward run.
    """

    def __init__(self, outer, name, forward):
        super().__init__(outer, name)
        self.forward = forward
        self._known = {}
        self._pending = {}
        self._fixed = {}  # for operations of the forward body, whether they are
        self._again = {}  # what is computed of them here

    def recall(self, tensor):
        """What stands here for a tensor of the forward body."""
        if tensor not in self._known:
            with self.as_default(), self.control_dependencies(None):
                self._known[tensor] = self._found(tensor)
        return self._known[tensor]

    def _found(self, tensor):
        op = tensor.op
        if tensor in self.forward.sources:
            return self.resolve(self.forward.sources[tensor])
        if op.record is CONSTANT:
            return self.create(CONSTANT, [], op.attrs, name="Const").outputs[0]
        if self._is_fixed(op):
            for needed in ordered({op}, self._again):  # from the first on: chains may be long
                self._make_again(needed)
            return self._again[op][tensor.index]
        placeholder = self.create(PARAMETER, [], {"spec": tensor.spec}, name="value").outputs[0]
        self._pending[tensor] = placeholder
        return placeholder

    def stands_for(self, tensor) -> Tensor | None:
        """The tensor of the forward body that a parameter stands in for; None for any other."""
        return self.placeholders().get(tensor)

    def placeholders(self) -> dict[Tensor, Tensor]:
        """The tensors of the forward body by the parameters that stand in for them."""
        return {placeholder: tensor for tensor, placeholder in self._pending.items()}

    def _make_again(self, op):
        """Compute a fixed operation here, whose inputs are here."""
        if op.record is CONSTANT or op.outputs[0] in self.forward.sources:
            self._again[op] = [self.recall(tensor) for tensor in op.outputs]
        else:
            self._again[op] = self.create(op.record, op.inputs, op.attrs, name=op.type).outputs
        self._known.update(zip(op.outputs, self._again[op], strict=True))

    def _is_fixed(self, op):
        """Whether a value depends on nothing but what is at hand here: computed again, it is free.

        A part of a tensor that has to be kept is kept itself, so that no iteration keeps all of a
        tensor of which it reads an item.
        """
        for needed in ordered({op}, self._fixed):
            of_fixed = all(self._fixed[other] for other in before(needed))
            self._fixed[needed] = of_fixed and self._stays_fixed(needed)
        return self._fixed[op]

    def _stays_fixed(self, op):
        """Whether an operation on what is fixed is."""
        made = op.inputs or op.record is CONSTANT or op.outputs[0] in self.forward.sources
        indexes = _indexes(op) and not self.is_at_hand(op.inputs[0])
        return bool(op.record.pure and made and not indexes)

    def is_at_hand(self, tensor) -> bool:
        """Whether a tensor of the forward body has its value here without being kept."""
        source, outer = self.forward.sources.get(tensor), self.outer
        if source is None:
            return self._is_fixed(tensor.op)
        inside = isinstance(outer, GradientGraph) and source.graph is outer.forward
        return not inside or outer.is_at_hand(source)

    def resolve_pending(self, value):
        """Put ``value(tensor)`` in place of what stands in and is needed; drop all that is not."""
        live = set(ordered({tensor.op for tensor in self.outputs}))
        needed = {
            t: placeholder for t, placeholder in self._pending.items() if placeholder.op in live
        }
        with self.as_default(), self.control_dependencies(None):
            substitute(self, {old: self.resolve(value(t)) for t, old in needed.items()})
        drop_unused(self, ordered({tensor.op for tensor in self.outputs}))


def keep_only(op, used):
    """Leave out variables of a loop that lead neither to used results nor to its condition."""
    wanted = {i for i, tensor in enumerate(op.outputs) if tensor in used}
    Loop(op).keep(needed_places(Loop(op), wanted))


def needed_places(loop, results) -> list[int]:
    """Which inputs of a loop some of its results need, and the number of iterations."""
    start = {0, *results, *uses(loop.cond)[0]}
    return sorted(closure(start, dict(enumerate(uses(loop.body)))))


def _indexes(op):
    """Whether a result is a part of a larger tensor."""
    record = op.record
    return record.selects and not isinstance(record.gradient, NotDifferentiable)


def parts_are_read(body, tensor) -> bool:
    """Whether a body, or one in it, picks parts of a tensor."""
    for op in body.operations:
        if op.record.selects and op.inputs[0] is tensor:
            return True
        inner = (sub.captures.get(tensor) for sub in subgraphs(op))
        if any(t is not None and parts_are_read(t.graph, t) for t in inner):
            return True
    return False


def no_gradient_like(tensor):
    """Zeros in place of a gradient that does not arrive."""
    if tensor.spec.is_tape:
        return shadow(tensor)
    if tensor.kind != DATA:
        return special(tensor.kind)
    return as_tensor(zeros(shape_of(tensor), tensor.dtype))
