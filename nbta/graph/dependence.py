"""Which inputs a gradient can reach from which outputs."""

import functools
import operator

from nbta.graph.graph import SubGraph, all_bodies
from nbta.graph.operation import NotDifferentiable, Operation, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, is_branch, is_loop


def connections(op: Operation) -> list[list[Tensor]]:
    """For each output, the inputs that a gradient of it passes to."""
    if isinstance(op.record.gradient, NotDifferentiable):
        return [[] for _ in op.outputs]
    if op.record.connections is not None:
        ways = op.record.connections(op)
    else:
        ways = [op.inputs] * len(op.outputs)
    return [
        [tensor for tensor in inputs if tensor.spec.differentiable]
        if output.spec.differentiable
        else []
        for output, inputs in zip(op.outputs, ways, strict=True)
    ]


def dependence(body: SubGraph) -> list[set[int]]:
    """For each result of a body, the places of the parameters that a gradient of it reaches."""
    found = body.cache.get("dependence")
    if found is None or found[0] != body.version:
        found = body.version, list(map(_places, _reach(body, connections)))
        body.cache["dependence"] = found
    return found[1]


def uses(body: SubGraph) -> list[set[int]]:
    """For each result of a body, the places of the parameters that it is computed from."""
    return list(map(_places, _reach(body, _all_inputs)))


def _all_inputs(op):
    """The tensors that an operation, and each that it waits for, are computed from."""
    return [[*op.inputs, *_awaited(op)]] * len(op.outputs)


class UsesThroughBodies:
    """`uses`, where loops and branches in a body leave out what some of their results need not.

    Those with effects leave out nothing. What it found of a body it knows as long as nothing
    changes that: a body in twenty others is looked at once. Places are bits of a number: an
    iteration of a thousand variables, each of which may need most others, has a million of them.
    """

    def __init__(self):
        self._uses, self._effects = {}, {}

    def of(self, body: SubGraph) -> list[int]:
        """For each result of a body, the places of the parameters that it needs, as bits."""
        return _as_long_as_it_stays(self._uses, body, self._found)

    def of_loop(self, loop: Loop, results: int) -> int:
        """The places of the inputs that some results of a loop, and its condition, need."""
        found = todo = results | 1 | self.of(loop.cond)[0]
        edges = self.of(loop.body)
        while todo:
            place = todo.bit_length() - 1
            new = edges[place] & ~found if place < len(edges) else 0
            found |= new
            todo = todo & ~(1 << place) | new
        return found

    def _found(self, body):
        return _reach(body, self._needed_inputs)

    def _needed_inputs(self, op):
        if self._has_effects(op):
            return _all_inputs(op)
        awaited = _awaited(op)
        if is_loop(op):
            loop, places = Loop(op), range(len(op.outputs))
            found = (self.of_loop(loop, 1 << place) for place in places)
            return [[*awaited, *(op.inputs[k] for k in places_of(each))] for each in found]
        if is_branch(op):
            case = Branch(op)
            ways = zip(*map(self.of, case.branches), strict=True)
            found = (places_of(functools.reduce(operator.or_, each)) for each in ways)
            return [[*awaited, case.index, *(case.captured[k] for k in each)] for each in found]
        return _all_inputs(op)

    def _has_effects(self, op):
        """Whether an operation, or one in its bodies, closed ones too, does more than compute."""
        if op.record.effects and not (is_loop(op) or is_branch(op)):
            return True
        bodies = all_bodies(op)
        return bool(bodies) and any(
            _as_long_as_it_stays(self._effects, body, self._have_effects) for body in bodies
        )

    def _have_effects(self, body):
        return any(map(self._has_effects, body.operations))


def _as_long_as_it_stays(known, body, find):
    """What is known of a body at its present version, or is found."""
    found = known.get(body)
    if found is None or found[0] != body.version:
        known[body] = found = body.version, find(body)
    return found[1]


def _awaited(op):
    """The tensors that all that an operation waits for is computed from."""
    if not op.control_inputs:
        return ()
    found, todo, seen = [], list(op.control_inputs), set()
    while todo:
        other = todo.pop()
        if other.outputs:
            found += other.outputs
        elif other not in seen:  # such as a Close, of which no tensor says what it waits for
            seen.add(other)
            found += other.inputs
            todo += other.control_inputs
    return found


def _reach(body, ways):
    reach = {tensor: 1 << place for place, tensor in enumerate(body.inputs)}  # places as bits
    for op in ordered({tensor.op for tensor in body.outputs}):
        for output, inputs in zip(op.outputs, ways(op), strict=True):
            if output not in reach:
                reach[output] = functools.reduce(operator.or_, map(reach.__getitem__, inputs), 0)
    return [reach[tensor] for tensor in body.outputs]


def _places(bits):
    return set(places_of(bits))


def places_of(bits: int) -> list[int]:
    """The places of the bits of a number, in ascending order."""
    return [place for place, bit in enumerate(reversed(bin(bits))) if bit == "1"]


def closure(start: set[int], edges: dict[int, set[int]]) -> set[int]:
    """All that can be reached from ``start``."""
    found, todo = set(start), list(start)
    while todo:
        new = edges.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def loop_edges(op: Operation) -> dict[int, set[int]]:
    """For each variable of a loop, the inputs that its next value depends on."""
    return dict(enumerate(dependence(Loop(op).body)))


def outside_ways(graph, ys, x, stop) -> list[Tensor]:
    """Captured tensors that ``ys`` depend on, and that depend themselves on ``x`` around the body.

    ``x`` is a captured tensor too; what ``stop`` has counts as constant.
    """
    if not isinstance(graph, SubGraph) or x not in graph.sources:
        return []
    above = set(ys)
    for op in reversed(ordered({y.op for y in ys})):
        for output, inputs in zip(op.outputs, connections(op), strict=True):
            if output in above and output not in stop:
                above.update(inputs)
    sources = graph.sources
    others = [sources[p] for p in above if p in sources and p is not x and p not in stop]
    start, stop = sources[x], {sources[tensor] for tensor in stop if tensor in sources}
    reached = {start}
    for op in ordered({tensor.op for tensor in others}):
        for output, inputs in zip(op.outputs, connections(op), strict=True):
            if output not in stop and not reached.isdisjoint(inputs):
                reached.add(output)
    found = [tensor for tensor in others if tensor in reached]
    return found or outside_ways(graph.outer, others, start, stop)
