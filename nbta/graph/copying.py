"""Building operations of a graph again in another one, by a rule for each."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from nbta import shapes
from nbta.graph import graph as graphs
from nbta.graph.graph import SubGraph, subgraphs
from nbta.graph.operation import Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import arguments, variables_in


class Part(NamedTuple):
    """What is to be built again of a graph; a body is a part with all that it has.

    Attributes
    ----------
    scope : str
        What names in it begin with.
    inputs : list of Tensor
        Parameters.
    outputs : list of Tensor
        The results that are needed.
    """

    scope: str
    inputs: list[Tensor]
    outputs: list[Tensor]


#: Makes the tensors that stand for an operation's results: ``rule(copy, op, inputs)``.
Rule = Callable[["Copy", Operation, list[Tensor]], list[Tensor]]


class Copy:
    """A graph on its way into a new one.

    Parameters
    ----------
    graph : SubGraph
        Where the operations go.
    scope : str
        What names of old operations begin with; in the new graph they begin with its own scope.
    rule : Rule
    shared : dict, optional
        New tensor by old one, for this graph and all bodies in it; by default each has its own.

    Attributes
    ----------
    tensors : dict
        New tensor by old one.
    used : set of Tensor
        Old tensors that anything needs.
    """

    def __init__(self, graph: SubGraph, scope: str, rule: Rule, shared: dict | None = None):
        self.graph, self._scope, self._rule, self._shared = graph, scope, rule, shared
        self.tensors: dict[Tensor, Tensor] = {} if shared is None else shared
        self.used: set[Tensor] = set()
        self._operations: dict[Operation, Operation] = {}

    def parameters(self, tensors: Iterable[Tensor]) -> None:
        """A new parameter for each of some old ones."""
        for tensor in tensors:
            made = self._add(graphs.PARAMETER, tensor.op.name, [], {"spec": tensor.spec},
                             [tensor.spec])  # fmt: skip
            self.graph.inputs.append(made.outputs[0])
            self.tensors[tensor] = made.outputs[0]
            label = tensor.graph.labels.get(tensor)
            if label is not None:
                self.graph.labels[made.outputs[0]] = label

    def fill(self, given, outputs, targets=()) -> tuple[list[Tensor], list[Operation]]:
        """What stands for some tensors and operations, made from what is given."""
        given = set(given)
        stop = {t.op for t in given if given.issuperset(t.op.outputs)}
        needed = [*(t.op for t in outputs if t not in given), *targets]
        live = ordered(needed, stop)
        self.used = {t for op in live for t in op.inputs} | set(outputs)
        for op in live:
            inputs = [self.tensors[tensor] for tensor in op.inputs]
            for old, new in zip(op.outputs, self._rule(self, op, inputs), strict=True):
                self.tensors.setdefault(old, new)
        self.graph.changed()
        for graph in {tensor.graph for tensor in outputs[:1]} | {op.graph for op in live[:1]}:
            self._hand_on_names(graph)
        return [self.tensors[tensor] for tensor in outputs], [self._operations[o] for o in targets]

    def _hand_on_names(self, graph):
        """Call new tensors as old ones of a graph."""
        pairs = (graph.labels, self.graph.labels), (graph.roles, self.graph.roles)
        for names, new in pairs:
            for tensor, called in names.items():
                found = self.tensors.get(tensor)
                if found is not None and found.graph is self.graph:
                    new.setdefault(found, called)

    def _name(self, name):
        return self.graph.unique_name(name.removeprefix(self._scope))

    def _add(self, record, name, inputs, attrs, specs, after=()):
        """An operation of which the results are known."""
        made = Operation(self.graph, record, self._name(name), inputs, attrs, after, specs)
        self.graph.add(made)
        return made

    def body(self, part: Part | SubGraph) -> SubGraph:
        """A body of an operation, built again by the same rule."""
        scope = part.scope
        if scope.startswith(self._scope):
            scope = self.graph.scope + scope.removeprefix(self._scope)
        body = SubGraph(self.graph, scope[:-1])
        inner = Copy(body, part.scope, self._rule, self._shared)
        inner.parameters(part.inputs)
        body.outputs, _ = inner.fill(part.inputs, part.outputs)
        return body

    def attr(self, value: Any) -> Any:
        """An attribute, with what bodies are in it built again."""
        if isinstance(value, SubGraph):
            return self.body(value)
        if isinstance(value, tuple) and value and isinstance(value[0], SubGraph):
            return tuple(map(self.body, value))
        return value

    def after(self, op: Operation) -> tuple[Operation, ...]:
        """What takes the place of an operation's control inputs."""
        if not op.control_inputs:
            return ()
        return tuple(self._operations[o] for o in op.control_inputs if o in self._operations)

    def stands_for(self, op: Operation, new: Operation) -> None:
        """Let what comes after an operation come after a new one."""
        self._operations[op] = new

    def again(self, op: Operation, inputs: list[Tensor]) -> list[Tensor]:
        """An operation without bodies, on inputs of the same specs: the results are the same."""
        specs = [tensor.spec for tensor in op.outputs]
        made = self._add(op.record, op.name, inputs, dict(op.attrs), specs, self.after(op))
        made.location = op.location
        self.stands_for(op, made)
        return made.outputs

    def create(self, op: Operation, inputs: list[Tensor], attrs: dict) -> list[Tensor]:
        """An operation like another one; its bodies capture all inputs after their variables."""
        made = self.graph.create(op.record, inputs, attrs, name=self._name(op.name) + "/")
        made.location = op.location
        made.control_inputs = list(self.after(op))
        self.stands_for(op, made)
        for body in subgraphs(made):
            _adopt(made, body)
        return made.outputs


def _adopt(op, body):
    """Make a body that of an operation: it captures what is after its variables."""
    body.owner = op
    pairs = list(zip(body.inputs, arguments(op, body), strict=True))
    for parameter, outer in pairs[len(variables_in(op)) :]:
        body.captures.setdefault(outer, parameter)
        body.sources[parameter] = outer


class Captured(dict):
    """New tensor by old one; what a body captures is captured by the new one, too."""

    def __init__(self, body: SubGraph, target: SubGraph, known: dict):
        super().__init__(known)
        self._body, self._target = body, target

    def __missing__(self, tensor):
        self[tensor] = self._target.resolve(self._body.sources[tensor])
        return self[tensor]


def copied(copy: Copy, op: Operation, inputs: list[Tensor]) -> list[Tensor]:
    """The rule that changes nothing, but for what it does in bodies."""
    if not subgraphs(op) and all(map(_same_spec, op.inputs, inputs)):
        return copy.again(op, inputs)
    made = copy.create(op, inputs, {key: copy.attr(value) for key, value in op.attrs.items()})
    keep_shapes(op.outputs, made)
    return made


def _same_spec(old, new):
    return new.spec is old.spec


def keep_shapes(old: list[Tensor], new: list[Tensor]) -> None:
    """Say of results what is known of the same ones, where their shape rule says less."""
    for before, after in zip(old, new, strict=True):
        if after.spec.shape is None or None in after.spec.shape:
            shape = shapes.merge(after.spec.shape, before.spec.shape)
            after.spec = after.spec._replace(shape=shape)
