"""Checkpoints of loops: which iterations begin a segment, and how a segment runs again.

A loop with ``checkpoint=`` saves its variables at the start of each segment; its gradient runs one
segment after another again, from the last to the first. A segment runs once more and no oftener.

`Every` is the two-level scheme of A. Griewank and A. Walther, "Evaluating Derivatives" (2nd ed.,
SIAM 2008), chapter 12; with segments of about the square root of the number of iterations it is
that of T. Chen et al., "Training deep nets with sublinear memory cost" (2016). Of ``T`` iterations
it saves ``T / k`` states, and the values of ``k`` iterations.

`Growing` is for an iteration count that is known at the end only. Schemes for that by P. Stumm and
A. Walther, "New algorithms for optimal online checkpointing", SIAM J. Sci. Comput. 32(2), 2010, and
by Q. Wang, P. Moin and G. Iaccarino, "Minimal repetition dynamic checkpointing algorithm for
unsteady adjoint calculation", SIAM J. Sci. Comput. 31(4), 2009, have a fixed number of checkpoints,
give up old ones for new ones, and run iterations several times. A tensor array grows instead, and
its slots are written once: segments of 1, 2, 3, ... iterations keep ``sqrt(2 T)`` states and the
values of ``sqrt(2 T)`` iterations, whatever ``T`` turns out to be, which is sqrt(2) times the least
that a scheme of two levels with known ``T`` needs.

A segment that runs again (`Replay`) computes what its iterations computed, from the same captured
tensors. What they read from arrays around the loop is still there, for slots are written once. What
they wrote there stays: the copy has the writes only while it is differentiated, since a gradient
passes through them, and then they are taken out. Arrays that an iteration makes for itself are made
again. What could come out differently is refused. Arrays that only one iteration uses are closed
after it.
"""

import operator

import numpy as np

from nbta.errors import invalid
from nbta.graph.copying import Captured, Copy
from nbta.graph.graph import lies_in, subgraphs, substitute
from nbta.graph.operation import FLOW, HANDLE, Facts, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, is_branch, is_loop, variable_of
from nbta.ops.arrays import tensor_arrays as arrays
from nbta.ops.arrays.tensor_arrays import CLOSE, LOOKUPS
from nbta.ops.core.arithmetic import add, equal, floor_divide, less, maximum, multiply, subtract
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import PARAMETER, special
from nbta.ops.core.shaping import cast
from nbta.ops.elementary.basic import floor, sqrt
from nbta.ops.loops.aliases import origins
from nbta.ops.loops.iteration_counts import iterations_before
from nbta.ops.loops.residuals import ADD_SAVED, EMPTY, SAVE, SHADOW

#: What a loop over segments has, whose iterations are computed again for derivatives of the
#: gradient.
AGAIN = "again"
WORDS = ("sqrt", "online")


def as_checkpoint(what, checkpoint):
    """The argument ``checkpoint`` as a plain int or str, or None.

    Raises
    ------
    InvalidArgumentError
        For anything else.
    """
    if checkpoint is None or (isinstance(checkpoint, str) and checkpoint in WORDS):
        return checkpoint
    if not isinstance(checkpoint, bool | np.bool_ | str):
        try:
            period = operator.index(checkpoint)
        except (TypeError, ValueError):  # of a symbolic tensor: an error that is a ValueError
            period = 0
        if period >= 1:
            return period
    message = (
        f"{what}: checkpoint must be None, an int of 1 or more (save the state every so many "
        f"iterations), 'sqrt' or 'online', not {checkpoint!r}"
    )
    raise invalid("checkpoint", message)


class Every:
    """Segments of ``period`` iterations, the last one of what is left."""

    def __init__(self, period):
        self.period = period

    @property
    def has_single_iterations(self):
        """Whether each iteration is a segment."""
        return not isinstance(self.period, Tensor) and self.period == 1

    def segment(self, iteration):
        """The number of the segment that an iteration belongs to."""
        return floor_divide(iteration, self.period)

    def start(self, segment):
        """The first iteration of a segment."""
        return multiply(segment, self.period)


class Growing:
    """Segments of 1, 2, 3, ... iterations."""

    has_single_iterations = False

    def segment(self, iteration):
        """The largest ``s`` with ``s (s + 1) / 2 <= iteration``, exact below 2**50 iterations."""
        root = sqrt(cast(add(multiply(iteration, np.int64(8)), np.int64(1)), np.float64))
        return floor_divide(subtract(cast(floor(root), np.int64), np.int64(1)), np.int64(2))

    def start(self, segment):
        """The first iteration of a segment."""
        return floor_divide(multiply(segment, add(segment, np.int64(1))), np.int64(2))


def begins(schedule, iteration):
    """Whether an iteration is the first of its segment."""
    return equal(schedule.start(schedule.segment(iteration)), iteration)


def number_of_segments(schedule, iterations):
    """How many segments a number of iterations has."""
    whole = schedule.segment(iterations)
    return add(whole, cast(less(schedule.start(whole), iterations), np.int64))


def schedule_of(op):
    """The schedule of a loop with an attribute ``checkpoint``."""
    checkpoint = Loop(op).checkpoint
    if checkpoint == "online":
        return Growing()
    if checkpoint == "sqrt":
        return Every(_root_of_iterations(op))
    return Every(np.int64(1 if checkpoint == AGAIN else checkpoint))


def _root_of_iterations(op):
    """The period of "sqrt", computed before the loop, where its body can capture it."""
    if "period" not in op.tapes:
        with op.graph.as_default(), op.graph.control_dependencies(None):
            iterations = cast(maximum(iterations_before(Loop(op)), 1), np.float64)
            up = cast(floor(sqrt(subtract(iterations, 1.0))), np.int64)  # the root, rounded up
            op.tapes["period"] = add(up, np.int64(1))
    return op.tapes["period"]


class Replay:
    """A body, or what some of its results need, built again in another one.

    Parameters
    ----------
    loop : Operation
        Whose body it is.
    target : SubGraph
        Where the operations go; what the body captures is captured there too.
    parameters : dict
        New tensor by old one, for the variables.
    body : SubGraph, optional
        By default that of the loop.
    """

    def __init__(self, loop, target, parameters, body=None):
        self._loop, self._body = loop, body or Loop(loop).body
        self._target, self._stores = target, []
        self._tensors = Captured(self._body, target, parameters)

    def build(self, tensors):
        """The tensors that stand for results of the body."""
        copy = Copy(self._target, self._body.scope, self._again, self._tensors)
        return copy.fill(self._body.inputs, tensors)[0]

    def _again(self, copy, op, inputs):
        """The rule of the copy."""
        if op.record is arrays.CLOSE:  # what was closed may be needed for the gradient
            if self._where(op.inputs[0]) != {"inside"}:
                raise self._refused(op, "closes", "close it after the loop")
            return []
        self._check(op)
        attrs = {key: copy.attr(value) for key, value in op.attrs.items()}
        attrs.pop("progress", None)  # the loop that computes it again shows its own
        results = copy.create(op, inputs, attrs)
        self._tensors.update(zip(op.outputs, results, strict=True))
        for made in {tensor.op for tensor in results}:
            made.tapes = self._tapes(op)
            writes = op.record in arrays.WRITES and self._where(op.inputs[0]) == {"outside"}
            saves = op.record in (SAVE, ADD_SAVED)
            if writes or (saves and not self._begins_inside(op.inputs[0])):
                self._stores.append(made)
        return results

    def _tapes(self, op):
        """What the loop or branch keeps already, as far as it is copied."""
        found = {}
        for key, saved in op.tapes.items():
            needed = [saved] if isinstance(key, str) else [key, saved]
            if all(tensor in self._tensors for tensor in needed):
                found[self._tensors.get(key, key)] = self._tensors[saved]
        return found

    def _begins_inside(self, tape):
        """Whether a tape begins in the body."""
        while tape.op.record not in (EMPTY, SHADOW):
            op = outside(tape).op
            if op.record is PARAMETER:
                variable = variable_of(outside(tape))
                if not lies_in(op.graph.outer, self._body):
                    return False
                tape = variable.first
            elif is_loop(op):
                tape = Loop(op).variable(tape.index).first
            elif is_branch(op):
                ends = Branch(op).ends(tape.index)
                tape = next((end for end in ends if end.op.record is not EMPTY), ends[0])
            else:
                tape = op.inputs[0]
        return lies_in(tape.graph, self._body)

    def take_out_stores(self):
        """Leave out what writes to arrays and tapes around the loop, which has been done."""
        for op in self._stores:
            graph, place = op.graph, -1 if op.record in arrays.WRITES else 0
            substitute(graph, {op.outputs[0]: op.inputs[place]})
            before = [*(tensor.op for tensor in op.inputs), *op.control_inputs]
            for other in graph.operations:
                if op in other.control_inputs:
                    other.control_inputs = [o for o in other.control_inputs if o is not op]
                    other.control_inputs += before
            graph.operations.remove(op)
            for number, other in enumerate(graph.operations):
                other.number = number
            graph.changed()

    # What could come out differently.

    def _check(self, op):
        """Refuse what an iteration, run again, might find in another state."""
        kind = next((k for k, records in _KINDS.items() if op.record in records), None)
        if kind is None:
            return
        where = self._where(op.inputs[0])
        if where == {"inside"}:
            return
        if len(where) > 1 or "unknown" in where:
            raise self._refused(op, f"{kind} an array that only the run knows", _ONE_ARRAY)
        if kind == "reads" and not all(map(self._stays, _makers(op.inputs[0]))):
            remedy = "make it with clear_after_read=False, or read it outside of the loop"
            raise self._refused(op, "reads an array that may not hold this later", remedy)
        whole = op.record is arrays.SIZE or (op.record is arrays.CONCAT and len(op.inputs) == 2)
        if whole and any(map(_grows, _makers(op.inputs[0]))):
            remedy = "let one name of the array see all writes before, or make it with size="
            raise self._refused(op, "asks for the length of an array that grows", remedy)

    def _stays(self, maker):
        """Whether what is read from an array can be read again."""
        if maker.record is arrays.CREATE:
            return not maker.attrs["clear_after_read"]
        final = Loop(self._loop).checkpoint == AGAIN  # all was added before the gradient read it
        return final and maker.attrs.get("clear_after_read") is False

    def _refused(self, op, what, remedy):
        loop, checkpoint = self._loop, Loop(self._loop).checkpoint
        why = (
            f"gradients: a derivative of the gradient of {loop.name!r}, which has checkpoint=,"
            if checkpoint == AGAIN
            else f"gradients: the loop {loop.name!r} has checkpoint={checkpoint!r}, which"
        )
        message = (
            f"{why} computes iterations again, and {op.name!r} ({op.type}) {what}; {remedy}, or "
            f"leave out checkpoint="
        )
        return invalid("checkpoint", message)

    def _where(self, handle):
        """Whether the arrays that a handle may stand for are made in the body."""
        return {self._place(maker) for maker in _makers(handle)}

    def _place(self, maker):
        if maker.record in arrays.LOOKUPS:
            numbers = [outside(tensor) for tensor in maker.inputs[2:]]
            if any(lies_in(number.graph, self._body) for number in numbers):
                return "inside"  # a gradient array of this iteration
            places = self._where(maker.inputs[0])
            return places.pop() if len(places) == 1 else "unknown"
        if maker.record is not arrays.CREATE:
            return "unknown"
        return "inside" if lies_in(maker.graph, self._body) else "outside"

    def check_variables(self, places):
        """Refuse arrays that are others in each iteration."""
        for place in places:
            tensor = self._body.inputs[place]
            if tensor.kind == HANDLE:
                what = "stands for another array in each iteration"
                raise self._refused(tensor.op, what, _ONE_ARRAY)


_ONE_ARRAY = "let each variable and each branch go on with the array that it began with"
_KINDS = {"reads": arrays.READS, "asks about": {arrays.SIZE}, "writes": arrays.WRITES}


def _grows(maker):
    return maker.record is arrays.CREATE and maker.attrs["dynamic_size"]


def _makers(handle):
    """The operations that the array of a handle may come from; one that makes none is unknown."""
    return {tensor.op for tensor in origins(handle)}


def close_after(graph, handles) -> None:
    """Free arrays when all in a body that uses them has run, and their gradient arrays.

    The counter of iterations, which is the first result of the body, waits for it.
    """
    if not handles:
        return
    lookups = list(_lookups(graph))
    found = {handle: handle for handle in handles}
    for op in lookups:
        if op.graph is graph and op.inputs[0] in found:
            found[op.outputs[0]] = op.outputs[0]
    users = [op for op in graph.operations if any(tensor in found for tensor in op.inputs)]
    with graph.as_default(), graph.control_dependencies(users):
        again = [_look_up_again(graph, op, found) for op in lookups if op.graph is not graph]
    with graph.control_dependencies(users + [op for op in again if op is not None]):
        ends = [
            graph.create(CLOSE, [handle], {"facts": Facts(only_frees=True)})
            for handle in found.values()
        ]
    graph.outputs[0].op.control_inputs += ends
    graph.changed()


def _lookups(graph):
    """Lookups of gradient arrays in a body and in the bodies in it, the array before its own."""
    for op in ordered(graph.operations):
        if op.record in LOOKUPS:
            yield op
        for body in subgraphs(op):
            yield from _lookups(body)


def _look_up_again(graph, op, found):
    """Get at a gradient array of one of the arrays found, which a body in this one may use."""
    array = found.get(outside(op.inputs[0]))
    iteration = [outside(tensor) for tensor in op.inputs[2:]]
    if array is None or not all(_is_visible(tensor, graph) for tensor in iteration):
        return None
    inputs = [array, special(FLOW), *map(graph.resolve, iteration)]
    again = graph.create(op.record, inputs, op.attrs)
    found[op.outputs[0]] = again.outputs[0]
    return again


def _is_visible(tensor, graph):
    """Whether a tensor belongs to a body or to a graph around it."""
    while graph is not None:
        if tensor.graph is graph:
            return True
        graph = getattr(graph, "outer", None)
    return False
