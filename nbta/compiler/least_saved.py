"""What a loop saves for its gradient, as a minimum cut.

An adjoint iteration needs some values of the iteration: each is saved, or computed again from
others that are. Values are the nodes of a network, which leads from what can only be saved, such as
a variable or an exponential, along operations to what is needed. To cut a node has the price of a
tape, and to leave an operation to the adjoint iteration that of doing it once more. The nodes of a
cut of least price are what to save. (Moses et al., "Reverse-mode automatic differentiation and
optimization of GPU kernels via Enzyme", SC 2021, cut such a network, where operations are free.)
"""

from itertools import pairwise

from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.compiler.recompute import Again, is_multiplied
from nbta.compiler.tapes import Tapes, may_shift
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import DATA
from nbta.graph.views import Loop, is_body_of_branch, origin
from nbta.ops.residuals import RESTORE, SAVE

#: Prices: of an operation, of a byte on a tape, and of arrays as multiples of those of numbers. To
#: save eight bytes and to restore them takes as long as four operations.
OPERATION, BYTE, ITEMS = 4, 2, 64
NEVER = 1 << 40


@contract(requires=[Fact.RANKS, Fact.TAPES_OF_LOOPS], breaks=[Fact.SAVED_BY_TAPES])
@changes
def save_least(program: Program) -> Program:
    """Save what adjoint iterations compute all that they need from, in the least time."""
    tapes = analysis(Tapes, program)
    by_loop: dict = {}
    for tape in tapes.all:
        by_loop.setdefault(tape.loop, []).append(tape)
    found = [_Saved(tapes, loop, own).improve() for loop, own in by_loop.items()]
    return prune.in_place(program) if any(found) else program


class _Saved:
    """What one loop saves."""

    def __init__(self, tapes, loop, own):
        self._tapes, self._loop, self._body = tapes, Loop(loop), Loop(loop).body
        self._own = {tape.value: tape for tape in own if tape.value.kind == DATA}
        self._reads = {tape: self._reads_of(tape) for tape in self._own.values()}
        self._known, self._made = {}, {}

    def improve(self) -> bool:
        """Save something else, if that costs less; whether it does."""
        places = [reads[0] for reads in self._reads.values() if reads]
        if not places:
            return False
        self._graph, self._trips, _ = places[0]
        self._again = Again(self._graph, self._body, self._trips, {}, self._tapes)
        own = self._own.items()
        self._needed = {value: tape for value, tape in own if self._is_free(tape, value)}
        if not any(map(self._is_quick, self._needed)):
            return False
        network = self._network()
        if network.flow() >= sum(map(self._price_to_save, self._needed)):
            return False
        return self._save({end[0] for start, end in network.cut() if start[0] is end[0]})

    # Where tapes are read.

    def _reads_of(self, tape):
        """Graph, iterations and operation of each read; none where not all are known."""
        tapes, found = self._tapes, []
        if tape in tapes.shadows:
            return []
        for read in tapes.restores[tape]:
            place, graph = tapes.restored(read), read.graph
            while is_body_of_branch(graph):
                graph = graph.outer
            if place is None or read.control_inputs or read in tapes.uses.waited:
                return []
            if not all(lies_in(graph, origin(tensor).graph) for tensor in read.inputs):
                return []
            found.append((graph, place.trips, read))
        return [] if any(is_multiplied(read) for *_, read in found) else found

    def _is_free(self, tape, value):
        """Whether only the adjoint iteration reads a tape, which could do without."""
        reads = self._reads[tape]
        return value.graph is self._body and bool(reads) and all(map(self._is_here, reads))

    def _is_here(self, read):
        graph, trips, _ = read
        return graph is self._graph and self._tapes.same_trips(trips, self._trips)

    def _read_here(self, tape):
        """An operation of the adjoint iteration that reads a tape; None where there is none."""
        return next((read[2] for read in self._reads[tape] if self._is_here(read)), None)

    # Prices.

    def _network(self):
        """From what can only be saved to what the adjoint iteration needs."""
        network, todo, seen = Network(), list(self._needed), set(self._needed)
        for value in self._needed:
            network.add((value, "out"), network.sink, NEVER)
        for value in todo:
            again = self._is_quick(value)
            price = _price(value, OPERATION) if again else NEVER
            network.add(network.source, (value, "in"), price)
            network.add((value, "in"), (value, "out"), self._price_to_save(value))
            made = map(origin, value.op.inputs if again else ())
            for other in (each for each in made if self._from_nothing(each) is None):
                network.add((other, "out"), (value, "in"), NEVER)
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return network

    def _is_quick(self, value):
        op = value.op
        return op.graph is self._body and op.record.quick and not op.control_inputs

    def _price_to_save(self, value):
        """What a tape costs; nothing where there is one in any case, as one place further."""
        tape = self._own.get(value)
        kept = tape is not None and value not in self._needed and self._read_here(tape) is not None
        before = (v.parameter for v in self._loop.variables()[1:] if v.following is value)
        shifted = any(p in self._needed and may_shift(self._tapes, self._own[p]) for p in before)
        return 0 if kept or shifted else _price(value, BYTE * value.dtype.itemsize)

    def _from_nothing(self, value):
        """A value in the adjoint iteration that no tape need bring, such as a counter."""
        if value not in self._known:
            self._known[value] = None if value in self._own else self._again.make(value)
        return self._known[value]

    # Another choice.

    def _save(self, saved):
        """Save other values in place of some; whether each fits on a tape of those."""
        left = [tape for value, tape in self._needed.items() if value not in saved]
        renewed, free = {}, list(left)
        for value in saved - self._own.keys():
            like = next((tape for tape in free if tape.value.spec == value.spec), None)
            if like is None:
                return False
            renewed[value] = like
            free.remove(like)
        for value in saved:
            read = self._read_here(renewed.get(value) or self._own[value])
            self._made[value] = self._create(RESTORE, map(origin, read.inputs), read.attrs)[0]
        for tape, made in [(tape, self._build(tape.value)) for tape in left]:
            for *_, read in self._reads[tape]:
                substitute(read.graph, {read.outputs[0]: read.graph.resolve(made)})
        for value, tape in renewed.items():
            inputs = [tape.variable.parameter, self._loop.counter, value]
            self._body.outputs[tape.place] = self._body.create(SAVE, inputs).outputs[0]
            self._body.changed()
        return True

    def _build(self, value):
        """A value in the adjoint iteration, from what is saved."""
        if value not in self._made:
            made = self._from_nothing(value)
            if made is None:
                inputs = [self._build(origin(tensor)) for tensor in value.op.inputs]
                results = self._create(value.op.record, inputs, value.op.attrs)
                keep_shapes(value.op.outputs, results)
                made = results[value.index]
            self._made[value] = made
        return self._made[value]

    def _create(self, record, inputs, attrs):
        graph = self._graph
        with graph.control_dependencies(None):
            return graph.create(record, list(map(graph.resolve, inputs)), dict(attrs)).outputs


def _price(value, of_number):
    return of_number * (ITEMS if value.spec.rank else 1)


class Network:
    """A network with a price on each edge, and its minimum cut.

    By E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power
    estimation", Soviet Math. Doklady 11 (1970).
    """

    source, sink = "source", "sink"

    def __init__(self):
        self._left: dict = {self.source: {}, self.sink: {}}
        self._edges: list = []

    def add(self, start, end, price) -> None:
        """Add an edge."""
        self._edges.append((start, end))
        ends = self._left.setdefault(start, {})
        ends[end] = ends.get(end, 0) + price
        self._left.setdefault(end, {}).setdefault(start, 0)

    def flow(self) -> int:
        """The largest flow from source to sink, which is what the minimum cut costs."""
        total = 0
        while self.sink in (levels := self._levels()):
            ways = {node: [e for e in ends if levels.get(e) == levels.get(node, -9) + 1]
                    for node, ends in self._left.items()}  # fmt: skip
            while path := self._path(ways):
                edges = list(pairwise(path))
                width = min(self._left[start][end] for start, end in edges)
                for start, end in edges:
                    self._left[start][end] -= width
                    self._left[end][start] += width
                total += width
        return total

    def _levels(self):
        """How many edges each node is from the source, of those that are reached."""
        levels, todo = {self.source: 0}, [self.source]
        for start in todo:
            for end, left in self._left[start].items():
                if left and end not in levels:
                    levels[end] = levels[start] + 1
                    todo.append(end)
        return levels

    def _path(self, ways):
        """A path to the sink; ways that lead nowhere are taken out."""
        path = [self.source]
        while path and path[-1] != self.sink:
            ends = ways[path[-1]]
            while ends and not self._left[path[-1]][ends[-1]]:
                ends.pop()
            if ends:
                path.append(ends[-1])
                continue
            path.pop()
            if path:
                ways[path[-1]].pop()
        return path

    def cut(self) -> list:
        """The edges of the minimum cut that is next to the sink, behind `flow`."""
        after, todo = {self.sink}, [self.sink]
        for end in todo:
            before = [n for n in self._left[end] if self._left[n][end] and n not in after]
            after.update(before)
            todo += before
        return [edge for edge in self._edges if edge[0] not in after and edge[1] in after]
