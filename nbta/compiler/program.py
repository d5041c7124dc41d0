"""A program: what a run needs of a graph, by itself; and how passes build it again."""

from collections.abc import Callable

from nbta import shapes
from nbta.graph.graph import Graph, SubGraph, subgraphs
from nbta.graph.operation import Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import arguments, variables_in
from nbta.ops.dispatch import PARAMETER


class Program(SubGraph):
    """A graph with parameters for what is fed, and results for what is fetched.

    Attributes
    ----------
    targets : list of Operation
        What is to run besides, for its effects.
    assumed : Assumed or None
        What it takes for granted of lengths besides those of its inputs.
    """

    def __init__(self):
        super().__init__(Graph(), "")
        self._scope = ""
        self.targets: list[Operation] = []
        self.assumed = None


class Part:
    """What is to be built again: parameters, and the results that are needed."""

    def __init__(self, scope, inputs, outputs, targets=()):
        self.scope, self.inputs, self.outputs, self.targets = scope, inputs, outputs, targets


#: Makes the tensors that stand for an operation's results: ``rule(copy, op, inputs)``.
Rule = Callable[["Copy", Operation, list[Tensor]], list[Tensor]]


class Copy:
    """A part of a graph on its way into a new one.

    Attributes
    ----------
    graph : SubGraph
        Where the operations go.
    used : set of Tensor
        Old tensors that anything needs.
    """

    def __init__(self, graph: SubGraph, part: Part, rule: Rule):
        self.graph, self._rule = graph, rule
        self._tensors: dict[Tensor, Tensor] = {}
        self._operations: dict[Operation, Operation] = {}
        for tensor in part.inputs:
            made = self._add(PARAMETER, tensor.op.name, [], {"spec": tensor.spec}, [tensor.spec])
            graph.inputs.append(made.outputs[0])
            self._tensors[tensor] = made.outputs[0]
        given = set(part.inputs)
        stop = {t.op for t in given if given.issuperset(t.op.outputs)}
        needed = [*(t.op for t in part.outputs if t not in given), *part.targets]
        live = ordered(needed, stop)
        self.used = {t for op in live for t in op.inputs} | set(part.outputs)
        for op in live:
            inputs = [self._tensors[tensor] for tensor in op.inputs]
            for old, new in zip(op.outputs, rule(self, op, inputs), strict=True):
                self._tensors.setdefault(old, new)
        graph.outputs = [self._tensors[tensor] for tensor in part.outputs]
        if isinstance(graph, Program):
            graph.targets = [self._operations[op] for op in part.targets]
        graph.changed()

    def _name(self, name):
        return self.graph.unique_name(name.removeprefix(self.graph.scope))

    def _add(self, record, name, inputs, attrs, specs, after=()):
        """An operation of which the results are known."""
        made = Operation(self.graph, record, self._name(name), inputs, attrs, after, specs)
        self.graph.add(made)
        return made

    def body(self, part: Part) -> SubGraph:
        """A body of an operation, built again by the same rule."""
        body = SubGraph(self.graph, part.scope[:-1])
        Copy(body, part, self._rule)
        return body

    def after(self, op) -> tuple:
        """What takes the place of an operation's control inputs."""
        return tuple(self._operations[o] for o in op.control_inputs if o in self._operations)

    def stands_for(self, op, new) -> None:
        """Let what comes after an operation come after a new one."""
        self._operations[op] = new

    def again(self, op, inputs) -> list[Tensor]:
        """An operation without bodies, on inputs of the same specs: the results are the same."""
        specs = [tensor.spec for tensor in op.outputs]
        made = self._add(op.record, op.name, inputs, dict(op.attrs), specs, self.after(op))
        self.stands_for(op, made)
        return made.outputs

    def create(self, op, inputs, attrs) -> list[Tensor]:
        """An operation like another one; its bodies capture all inputs behind their variables."""
        made = self.graph.create(op.record, inputs, attrs, name=self._name(op.name) + "/")
        made.control_inputs = list(self.after(op))
        self.stands_for(op, made)
        for body in subgraphs(made):
            adopt(made, body)
        return made.outputs


def adopt(op: Operation, body: SubGraph) -> None:
    """Make a body that of an operation: it captures what is behind its variables."""
    body.owner = op
    pairs = list(zip(body.inputs, arguments(op, body), strict=True))
    for parameter, outer in pairs[len(variables_in(op)) :]:
        body.captures.setdefault(outer, parameter)
        body.sources[parameter] = outer


def copied(copy: Copy, op: Operation, inputs) -> list[Tensor]:
    """The rule that changes nothing, but for what it does in bodies."""
    if not subgraphs(op) and all(map(_same_spec, op.inputs, inputs)):
        return copy.again(op, inputs)
    attrs = {key: _rebuilt(copy, value) for key, value in op.attrs.items()}
    made = copy.create(op, inputs, attrs)
    keep_shapes(op.outputs, made)
    return made


def _same_spec(old, new):
    return new.spec is old.spec


def keep_shapes(old, new) -> None:
    """Say of results what is known of the same ones, where their shape rule says less."""
    for before, after in zip(old, new, strict=True):
        if after.spec.shape is None or None in after.spec.shape:
            shape = shapes.merge(after.spec.shape, before.spec.shape)
            after.spec = after.spec._replace(shape=shape)


def _rebuilt(copy, value):
    if isinstance(value, SubGraph):
        return copy.body(Part(value.scope, value.inputs, value.outputs))
    if isinstance(value, tuple) and value and isinstance(value[0], SubGraph):
        return tuple(_rebuilt(copy, body) for body in value)
    return value


def extract(given, wanted, targets=()) -> Program:
    """What it takes to compute some tensors of a graph from others."""
    program = Program()
    for item in [*wanted, *targets][:1]:
        program.outer.gradient_scopes = item.graph.root.gradient_scopes
    Copy(program, Part("", list(given), list(wanted), list(targets)), copied)
    return program


def rebuild(program: Program, rule: Rule) -> Program:
    """The program again, operation by operation, without what nothing needs."""
    new = Program()
    new.outer.gradient_scopes = program.outer.gradient_scopes
    Copy(new, Part("", program.inputs, program.outputs, program.targets), rule)
    new.assumed = program.assumed
    return new
