"""Views of operations that run bodies: a loop's variables and a branch's results by name.

Where the inputs and attributes of such an operation lie is known here alone. A view holds the
operation and nothing else, so that it is true of whatever the operation is changed to.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from nbta import shapes
from nbta.errors import invalid
from nbta.graph import graph as graphs
from nbta.graph.graph import SubGraph, keep_live
from nbta.graph.operation import Operation, Spec, Tensor
from nbta.graph.order import ordered


class Loop(NamedTuple):
    """A While.

    Its inputs are the first values of the variables, a counter of iterations before all others, and
    then what cond and body capture. Both bodies have a parameter for each input; the results of the
    body are the variables' next values, those of the loop their last ones.
    """

    op: Operation

    @property
    def cond(self) -> SubGraph:
        """Gives whether there is another iteration."""
        return self.op.attrs["cond"]

    @property
    def body(self) -> SubGraph:
        """An iteration."""
        return self.op.attrs["body"]

    @property
    def count(self) -> int:
        """How many variables there are, with the counter."""
        return self.op.attrs["count"]

    @property
    def first(self) -> list[Tensor]:
        """The first values of the variables."""
        return self.op.inputs[: self.count]

    @property
    def captured(self) -> list[Tensor]:
        """What its bodies capture."""
        return self.op.inputs[self.count :]

    @property
    def parameters(self) -> list[Tensor]:
        """The variables in the body."""
        return self.body.inputs[: self.count]

    @property
    def following(self) -> list[Tensor]:
        """The next values of the variables."""
        return self.body.outputs

    @property
    def counter(self) -> Tensor:
        """The counter of iterations in the body."""
        return self.body.inputs[0]

    @property
    def iterations(self) -> Tensor:
        """How many iterations there were."""
        return self.op.outputs[0]

    @property
    def condition(self) -> Tensor:
        """What cond gives."""
        return self.cond.outputs[0]

    @property
    def checkpoint(self) -> int | str | None:
        """How a gradient gets at the values of an iteration; None where they are kept."""
        return self.op.attrs.get("checkpoint")

    @property
    def progress(self) -> str | None:
        """What its bar says; None where it has no bar."""
        return self.op.attrs.get("progress")

    @property
    def origin(self) -> Any:
        """The `Origin` of the loop that the user wrote; None where there is none."""
        return self.op.attrs.get("origin")

    def variable(self, place: int) -> "Variable":
        """The variable of a place."""
        return Variable(self, place)

    def variables(self) -> "list[Variable]":
        """All of them, the counter first."""
        return [Variable(self, place) for place in range(self.count)]

    def attrs(self, cond: SubGraph, body: SubGraph, count: int | None = None) -> dict:
        """The attributes of a loop that is like this one, but for its bodies."""
        count = self.count if count is None else count
        return {**self.op.attrs, "cond": cond, "body": body, "count": count}

    def add_variable(self, first: Tensor, following: Callable[[Tensor], Tensor]) -> Tensor:
        """Another variable, after the others; its last value.

        ``following(parameter)`` builds the next value in the body.
        """
        op, place = self.op, self.count
        for graph in (self.cond, self.body):
            parameter = graph.parameter(first.spec)
            graph.inputs.insert(place, graph.inputs.pop())
        op.inputs.insert(place, first)
        op.attrs["count"] = place + 1
        op.outputs.append(Tensor(op, place, first.spec))
        with self.body.as_default(), self.body.control_dependencies(None):
            self.body.outputs.append(self.body.resolve(following(parameter)))
        self.body.changed()
        return op.outputs[place]

    def add_variables(
        self,
        first: list[Tensor],
        specs: list[Spec],
        following: Callable[[list[Tensor]], list[Tensor]],
    ) -> list[Tensor]:
        """Several more variables, which may depend on one another; their last values.

        ``following(parameters)`` builds the next values in the body.
        """
        op, place = self.op, self.count
        for graph in (self.cond, self.body):
            made = [graph.parameter(spec) for spec in specs]
            others = graph.inputs[: len(graph.inputs) - len(made)]
            graph.inputs = [*others[:place], *made, *others[place:]]
        op.inputs[place:place] = first
        op.attrs["count"] = place + len(specs)
        op.outputs += [Tensor(op, place + k, spec) for k, spec in enumerate(specs)]
        parameters = self.body.inputs[place : place + len(specs)]
        self.body.outputs += parameters  # for what asks of the loop meanwhile
        with self.body.as_default(), self.body.control_dependencies(None):
            self.body.outputs[place:] = [self.body.resolve(t) for t in following(parameters)]
        self.body.changed()
        return op.outputs[place:]

    def keep(self, places: list[int]) -> None:
        """Keep only the variables and the captured tensors of some places among the inputs."""
        op, kept = self.op, [place for place in places if place < self.count]
        op.inputs = [op.inputs[place] for place in places]
        op.outputs = [op.outputs[place] for place in kept]
        for index, tensor in enumerate(op.outputs):
            tensor.index = index
        op.attrs["count"] = len(kept)
        self.body.outputs = [self.body.outputs[place] for place in kept]
        for graph in (self.cond, self.body):
            graph.inputs = [graph.inputs[place] for place in places]
            keep_live(graph, ordered({tensor.op for tensor in graph.outputs}))

    def release(self, tensor: Tensor) -> None:
        """Capture a tensor no more."""
        place = place_of(self.body.captures[tensor])
        for graph in (self.body, self.cond):
            parameter = graph.inputs.pop(place)
            graph.captures.pop(graph.sources.pop(parameter))
        del self.op.inputs[place]
        self.op.graph.root.losses += 1


class Variable(NamedTuple):
    """A variable of a loop, by its tensors before the loop, in it and after it."""

    loop: Loop
    place: int

    @property
    def first(self) -> Tensor:
        """Its value before the loop."""
        return self.loop.op.inputs[self.place]

    @property
    def tested(self) -> Tensor:
        """Its parameter of cond."""
        return self.loop.cond.inputs[self.place]

    @property
    def parameter(self) -> Tensor:
        """Its parameter of the body."""
        return self.loop.body.inputs[self.place]

    @property
    def following(self) -> Tensor:
        """What the body gives for the next iteration."""
        return self.loop.body.outputs[self.place]

    @property
    def last(self) -> Tensor:
        """Its value after the loop."""
        return self.loop.op.outputs[self.place]

    @property
    def is_kept(self) -> bool:
        """Whether no iteration changes it."""
        return self.following is self.parameter


class Branch(NamedTuple):
    """A Case.

    Its inputs are the number of the branch, or a truth value, and then what the branches capture.
    """

    op: Operation

    @property
    def index(self) -> Tensor:
        """Which branch runs."""
        return self.op.inputs[0]

    @property
    def branches(self) -> tuple[SubGraph, ...]:
        """Its bodies."""
        return self.op.attrs["branches"]

    @property
    def captured(self) -> list[Tensor]:
        """What its branches capture."""
        return self.op.inputs[1:]

    def ends(self, place: int) -> list[Tensor]:
        """What each branch gives for a result."""
        return [branch.outputs[place] for branch in self.branches]

    def keep(self, results: list[int], captured: list[int]) -> None:
        """Keep only the results, and what the branches capture, of some places."""
        op = self.op
        op.inputs = [op.inputs[0], *(op.inputs[place + 1] for place in captured)]
        op.outputs = [op.outputs[place] for place in results]
        for index, tensor in enumerate(op.outputs):
            tensor.index = index
        for branch in self.branches:
            branch.outputs = [branch.outputs[place] for place in results]
            branch.inputs = [branch.inputs[place] for place in captured]
            keep_live(branch, ordered({tensor.op for tensor in branch.outputs}))

    def add_result(self, ends: list[Tensor]) -> Tensor:
        """Another result, for which each branch gives a tensor of its own."""
        for branch, tensor in zip(self.branches, ends, strict=True):
            branch.outputs.append(tensor)
        spec = common_spec(*(tensor.spec for tensor in ends))
        self.op.outputs.append(Tensor(self.op, len(self.op.outputs), spec))
        for branch in self.branches:
            branch.changed()
        return self.op.outputs[-1]

    def replace_end(self, branch: graphs.SubGraph, result: Tensor, end: Tensor) -> None:
        """Let a branch give another tensor, of the same kind, for a result."""
        branch.outputs[result.index] = end
        branch.changed()


def common_spec(first: Spec, *others: Spec) -> Spec:
    """Of a result that each branch gives with a spec of its own."""
    shape = first.shape
    for other in others:
        if (other.dtype, other.kind) != (first.dtype, first.kind):
            message = f"one branch gives {first} where another gives {other}; cast one of them"
            raise invalid("branches", message)
        shape = shapes.common(shape, other.shape)
    return Spec(first.dtype, shape, first.kind)


def is_loop(op: Operation) -> bool:
    """Whether an operation is a While."""
    return "cond" in op.attrs


def is_branch(op: Operation) -> bool:
    """Whether an operation is a Case."""
    return "branches" in op.attrs


def holder_in(graph: graphs.Graph, op: Operation) -> Operation:
    """The operation of a graph that an operation is, or runs in."""
    while op.graph is not graph:
        op = op.graph.owner
    return op


def is_body_of_branch(graph: graphs.Graph) -> bool:
    """Whether a graph is what one way of a branch runs."""
    owner = getattr(graph, "owner", None)
    return owner is not None and is_branch(owner)


def variables_in(op: Operation) -> list[Tensor]:
    """The inputs that are first values of variables; the bodies capture the others."""
    return Loop(op).first if is_loop(op) else []


def arguments(op: Operation, body: SubGraph) -> list[Tensor]:
    """What the parameters of a body stand for at first: inputs of what runs it."""
    return op.inputs[len(op.inputs) - len(body.inputs) :]


def place_of(parameter: Tensor) -> int:
    """The place of a parameter among those of its body."""
    return parameter.graph.place_of(parameter)


def variable_of(tensor: Tensor) -> Variable | None:
    """The variable that a parameter of a loop's body is; None for any other tensor."""
    owner = getattr(tensor.graph, "owner", None)
    if tensor.op.record is not graphs.PARAMETER or owner is None or not is_loop(owner):
        return None
    loop, place = Loop(owner), place_of(tensor)
    return Variable(loop, place) if place < loop.count else None


def owners(op: Operation) -> Iterator[Operation]:
    """The operations in whose bodies one lies, from the inside."""
    while (op := getattr(op.graph, "owner", None)) is not None:
        yield op


def origin(tensor: Tensor) -> Tensor:
    """Where a value comes from: around a body that captures it, before a loop that keeps it."""
    while (before := _before(tensor)) is not None:
        tensor = before
    return tensor


def _before(tensor):
    op = tensor.op
    if is_loop(op):
        variable = Variable(Loop(op), tensor.index)
        return variable.first if variable.is_kept else None
    if op.record is not graphs.PARAMETER:
        return None
    owner = getattr(tensor.graph, "owner", None)
    if owner is None:
        return None
    place = place_of(tensor)
    if not is_loop(owner):
        return arguments(owner, tensor.graph)[place]
    loop = Loop(owner)
    fixed = place >= loop.count or Variable(loop, place).is_kept
    return owner.inputs[place] if fixed else None
