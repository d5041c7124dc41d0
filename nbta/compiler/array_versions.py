"""The accesses to an array, by following its versions through bodies of loops and branches.

An array that a program changes has a version after each change. What reads or changes items of one
of them, or of those made of it, is listed here with the loop in whose iterations it does.
"""

from collections.abc import Generator
from typing import NamedTuple

from nbta.compiler.access_sets import OF_ITEMS, AccessSets
from nbta.compiler.induction import Order
from nbta.graph.graph import Graph, SubGraph
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable, is_branch, is_loop
from nbta.ops.core.shaping import SHAPE, SIZE
from nbta.ops.indexing.items import GETITEM
from nbta.tuning import FOLLOWED_ACCESSES


class Access(NamedTuple):
    """What reads or changes items of a version of an array.

    Attributes
    ----------
    op : Operation
    body : SubGraph
        That of the loop to whose iterations ``order`` refers.
    order : Order
        In which of its iterations it may be, as seen from the version that was followed.
    """

    op: Operation
    body: SubGraph
    order: Order


class UnknownError(Exception):
    """Somebody has all items, or does with them what is not known."""


class Versions(NamedTuple):
    """What is done to versions of an array: see `Access` for the attributes."""

    access: AccessSets
    body: SubGraph
    order: Order

    def made_of(self, version: Tensor, graph: Graph) -> Generator[Access, None, list]:
        """The accesses to a version and to those made of it in a graph.

        Returns the places of these among the graph's results.
        """
        found, users = [version], self.access.users(graph)
        for version in found:
            if len(found) > FOLLOWED_ACCESSES:
                raise UnknownError
            for op in {user: None for user in users.get(version, ()) if user is not None}:
                made = yield from self.by_user(op, version)
                found += [t for t in made if not any(t is other for other in found)]
        return [p for p, end in enumerate(graph.outputs) if any(end is t for t in found)]

    def by_user(self, op: Operation, version: Tensor) -> Generator[Access, None, list]:
        """The accesses of an operation that uses a version, and what it makes of it."""
        places = [place for place, tensor in enumerate(op.inputs) if tensor is version]
        if op.record in (SHAPE, SIZE):
            return []
        if op.record in OF_ITEMS and places == [0]:
            yield Access(op, self.body, self.order)
            return [] if op.record is GETITEM else op.outputs
        if is_loop(op) and places:
            return (yield from self._by_loop(Loop(op), places))
        if is_branch(op) and places and places[0]:
            inner = [(b, b.inputs[place - 1]) for b in Branch(op).branches for place in places]
            made = set()
            for branch, parameter in inner:
                made.update((yield from self.made_of(parameter, branch)))
            return [op.outputs[place] for place in sorted(made)]
        raise UnknownError

    def _by_loop(self, loop, places):
        """Those of a loop, which may carry the array or only read it."""
        for place in places:
            if place < loop.count:
                yield from self.carried_by(loop.variable(place))
                continue
            for graph in (loop.cond, loop.body):
                if (yield from self.made_of(graph.inputs[place], graph)):
                    raise UnknownError
        return [loop.op.outputs[place] for place in places if place < loop.count]

    def carried_by(self, variable: Variable) -> Generator[Access, None, None]:
        """The accesses to an array in all iterations of a loop that carries it."""
        loop, place = variable.loop, variable.place
        if self.access.users(loop.cond).get(variable.tested):
            raise UnknownError
        if (yield from self.made_of(variable.parameter, loop.body)) not in ([], [place]):
            raise UnknownError
