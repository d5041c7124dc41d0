"""Which arrays a program's operations touch, and whether anybody sees what they write."""

from collections import defaultdict

from nbta.graph.graph import all_bodies, subgraphs
from nbta.graph.order import ordered
from nbta.graph.spec import HANDLE
from nbta.ops.arrays import CREATE, LOOKUPS, WRITES


class Arrays:
    """The arrays of a program, each known by where its handle is made.

    A gradient array is known by its forward array and its source. A handle that only the run
    tells, such as one out of an array of handles, stands for an array that everybody may see.
    """

    def __init__(self, program):
        self._array = {}  # by handle
        self._users = defaultdict(set)  # operations by array
        self._shown = set()  # arrays that leave a graph by their handle
        self._walk(program)

    def _walk(self, graph):
        for op in ordered(graph.operations):
            bodies = subgraphs(op)
            for body in bodies:
                self._enter(op, body)
            for tensor in op.inputs if not bodies else op.inputs[: op.attrs.get("count", 0)]:
                if tensor.kind == HANDLE:
                    array = self._array.get(tensor)
                    self._users[array].add(op)  # a gradient array takes over the size, too
                    if op.record in LOOKUPS:
                        self._users[_looked_up(op, array)].add(op)
                    self._shown |= {array} if bodies else set()
            if op.record is CREATE:
                self._array[op.outputs[0]] = op.outputs[0]
            elif op.record in LOOKUPS:
                self._array[op.outputs[0]] = _looked_up(op, self._array.get(op.inputs[0]))
        self._shown |= {self._array.get(t) for t in graph.outputs if t.kind == HANDLE}

    def _enter(self, op, body):
        """Give what a body captures the same array as around."""
        captured = len(body.inputs) - op.attrs.get("count", 0)
        if captured:
            pairs = zip(body.inputs[-captured:], op.inputs[-captured:], strict=True)
            self._array.update({p: self._array.get(t) for p, t in pairs if p.kind == HANDLE})
        self._walk(body)

    def visible(self, op, dropped) -> bool:
        """Whether an operation writes what others than those to be dropped may see."""
        if op.record in WRITES:
            array = self._array.get(op.inputs[0])
            return array is None or array in self._shown or not self._users[array] <= dropped
        return any(self.visible(inner, dropped) for body in subgraphs(op) for inner in needed(body))


def _looked_up(op, array):
    return None if array is None else (array, op.attrs["source"])


def needed(body, places=None) -> list:
    """Operations that results of a body need, by default all, in running order."""
    places = range(len(body.outputs)) if places is None else places
    return ordered({body.outputs[i].op for i in places})


def within(operations) -> set:
    """Operations, and those of their bodies."""
    found = set(operations)
    for op in operations:
        for body in all_bodies(op):
            found |= within(body.operations)
    return found


def results_with_effects(arrays, bodies, kept, count) -> set:
    """Places of results that must stay for what is written on the way to them.

    Parameters
    ----------
    arrays : Arrays
    bodies : list of SubGraph
        With ``count`` results each.
    kept : set of int
        The places that stay in any case.
    """
    found = set()
    for body in bodies:
        live = set(needed(body, kept))
        rest = [op for op in needed(body, range(count)) if op not in live]
        dropped = within(rest)
        seen = {op for op in rest if arrays.visible(op, dropped)}
        for place in set(range(count)) - kept if seen else ():
            if not seen.isdisjoint(needed(body, [place])):
                found.add(place)
    return found
