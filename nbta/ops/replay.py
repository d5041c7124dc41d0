"""The body of a loop once more, for a gradient that computes its trips again.

A copy computes what the trips computed, from the same captured tensors. What they read from arrays
around the loop is still there, for slots are written once. What they wrote there stays: the copy
has the writes only while it is differentiated, since a gradient passes through them, and then they
are taken out. Arrays that a trip makes for itself are made again.

What could come out differently is refused.
"""

from nbta.errors import invalid
from nbta.graph.copying import Copy
from nbta.graph.graph import lies_in, substitute
from nbta.graph.spec import HANDLE
from nbta.graph.views import Loop
from nbta.ops import arrays
from nbta.ops.aliases import origins
from nbta.ops.array_access import Access
from nbta.ops.extents import outside
from nbta.ops.schedule import AGAIN


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
        self._tensors = _Captured(self._body, target, parameters)

    def build(self, tensors):
        """The tensors that stand for results of the body."""
        copy = Copy(self._target, self._body.scope, self._again, self._tensors)
        return copy.fill(self._body.inputs, tensors)[0]

    def _again(self, copy, op, inputs):
        """The rule of the copy."""
        if op.record is arrays.CLOSE:  # what was closed may be needed for the gradient
            if self._where(op.inputs[0]) != {"inside"}:
                raise self._refused(op, "closes", "close it behind the loop")
            return []
        self._check(op)
        attrs = {key: copy.attr(value) for key, value in op.attrs.items()}
        attrs.pop("progress", None)  # the loop that computes it again shows its own
        results = copy.create(op, inputs, attrs)
        self._tensors.update(zip(op.outputs, results, strict=True))
        for made in {tensor.op for tensor in results}:
            made.tapes = self._tapes(op)
            if op.record in arrays.WRITES and self._where(op.inputs[0]) == {"outside"}:
                self._stores.append(made)
        return results

    def _tapes(self, op):
        """What the loop or branch keeps already, as far as it is copied."""
        found = {}
        for key, kept in op.tapes.items():
            parts = kept if isinstance(kept, Access) else (kept,)
            needed = parts if isinstance(key, str) else (key, *parts)
            if all(tensor in self._tensors for tensor in needed):
                new = [self._tensors[part] for part in parts]
                new = Access(*new) if isinstance(kept, Access) else new[0]
                found[self._tensors.get(key, key)] = new
        return found

    def take_out_stores(self):
        """Leave out what writes to arrays around the loop, which has been done."""
        for op in self._stores:
            graph = op.graph
            substitute(graph, {op.outputs[0]: op.inputs[-1]})
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
        """Refuse what a trip, run again, might find in another state."""
        kind = next((k for k, records in _KINDS.items() if op.record in records), None)
        if kind is None:
            return
        where = self._where(op.inputs[0])
        if where == {"inside"}:
            return
        if len(where) > 1 or "unknown" in where:
            raise self._refused(op, f"{kind} an array that only the run tells", _ONE_ARRAY)
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
            f"{why} computes trips again, and {op.name!r} ({op.type}) {what}; {remedy}, or leave "
            f"out checkpoint="
        )
        return invalid("checkpoint", message)

    def _where(self, handle):
        """Whether the arrays that a handle may stand for are made in the body."""
        return {self._place(maker) for maker in _makers(handle)}

    def _place(self, maker):
        if maker.record in arrays.LOOKUPS:
            numbers = [outside(tensor) for tensor in maker.inputs[2:]]
            if any(lies_in(number.graph, self._body) for number in numbers):
                return "inside"  # a gradient array of this trip
            places = self._where(maker.inputs[0])
            return places.pop() if len(places) == 1 else "unknown"
        if maker.record is not arrays.CREATE:
            return "unknown"
        return "inside" if lies_in(maker.graph, self._body) else "outside"

    def check_variables(self, places):
        """Refuse arrays that are others in each trip."""
        for place in places:
            tensor = self._body.inputs[place]
            if tensor.kind == HANDLE:
                what = "stands for another array in each trip"
                raise self._refused(tensor.op, what, _ONE_ARRAY)


class _Captured(dict):
    """New tensor by old one; what a body captures is captured by the new one, too."""

    def __init__(self, body, target, known):
        super().__init__(known)
        self._body, self._target = body, target

    def __missing__(self, tensor):
        self[tensor] = self._target.resolve(self._body.sources[tensor])
        return self[tensor]


_ONE_ARRAY = "let each variable and each branch go on with the array that it began with"
_KINDS = {"reads": arrays.READS, "asks about": {arrays.SIZE}, "writes": arrays.WRITES}


def _grows(maker):
    return maker.record is arrays.CREATE and maker.attrs["dynamic_size"]


def _makers(handle):
    """The operations that the array of a handle may come from; one that makes none is unknown."""
    return {tensor.op for tensor in origins(handle)}
