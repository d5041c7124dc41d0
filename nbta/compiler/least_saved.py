"""What a loop saves for its gradient, as a minimum cut.

An adjoint iteration needs some values of the iteration: each is saved, or computed again from
others that are. Values are the nodes of a network, which leads from what can only be saved, such as
a variable or an exponential, along operations to what is needed. To cut a node has the price of a
tape, and to leave an operation to the adjoint iteration that of doing it once more. The nodes of a
cut of least price are what to save. (Moses et al., "Reverse-mode automatic differentiation and
optimization of GPU kernels via Enzyme", SC 2021, cut such a network, where operations are free.)
"""

from dataclasses import dataclass
from itertools import pairwise

from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.products import is_multiplied
from nbta.compiler.program import Program, changes
from nbta.compiler.recompute import Again, is_cheap, outermost_loop, progression, saved_by
from nbta.compiler.shifted_items import Sweeps, shifted
from nbta.compiler.tapes import Tapes, can_shift, is_invariant
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import lies_in, substitute
from nbta.graph.operation import DATA, Tensor
from nbta.graph.views import Loop, is_body_of_branch, is_loop, origin
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.indexing.items import GETITEM
from nbta.ops.loops.residuals import SAVE, restore
from nbta.tuning import (
    ARRAY_PRICE,
    BYTE_PRICE,
    ENDLESS_PRICE,
    ONCE_PRICE,
    OPERATION_PRICE,
    SHIFTED_PRICE,
    TAPE_PRICE,
)


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
        self._known, self._made, self._unlike = {}, {}, set()
        self._shifted: dict = {}
        self._before: dict = {}  # by what an iteration gives the next one, what holds it there
        for variable in self._loop.variables()[1:]:
            self._before.setdefault(variable.following, []).append(variable.parameter)

    def improve(self) -> bool:
        """Save something else, if that costs less; whether it does."""
        places = [reads[0] for reads in self._reads.values() if reads]
        if not places:
            return False
        self._graph, self._iterations, _ = places[0]
        self._again = Again(
            self._graph, self._body, self._iterations, self._saved_around(), self._tapes
        )
        own = self._own.items()
        self._needed = {value: tape for value, tape in own if self._is_free(tape, value)}
        if not any(map(self._is_cheap, self._needed)):
            return False
        self._sweeps = Sweeps(self._tapes, self._loop, self._needed)
        now = sum(map(self._price_to_save, self._needed))
        chosen = self._chosen(now, ()), self._chosen(now, self._chains())
        price, saved, renewed = min(chosen, key=lambda each: each[0])
        if price >= now:
            return False
        tapes = [renewed.get(value) or self._own[value] for value in saved]
        if None in map(self._place_here, tapes):  # one that is read elsewhere alone
            return False
        self._save(saved, renewed)
        return True

    def _chosen(self, now, chains):
        """A price that is less than that of now, what to save for it, and new values' tapes.

        With chains, their items and nothing that is computed from these.
        """
        self._unlike.clear()
        while (price := (network := self._network(chains)).flow()) < now:
            saved = _saved_by(network)
            new = [value for value in saved if value not in self._own]
            renewed = self._renewed(new, saved)
            if not all(chain.is_linked(saved) for chain in chains):
                break
            if len(renewed) == len(new):
                return price, saved, renewed
            self._unlike.update(value for value in new if value not in renewed)
        return ENDLESS_PRICE, [], {}

    def _chains(self):
        """Items that iterations read one after the other, so that one tape has them all."""
        items = [v for v in self._values() if v.op.record is GETITEM and v.spec.rank == 0]
        again, taken = {}, set()  # by what an iteration reads ahead, what the next one has again
        items = filter(self._is_cheap, items)
        for one, other in Sweeps(self._tapes, self._loop, items).pairs():
            free = one not in again and other not in taken
            if free and shifted(self._tapes, self._loop, one, other) is not None:
                again[one] = other
                taken.add(other)
        found = []
        for first in (one for one in again if one not in taken):
            chain = [first]
            while chain[-1] in again:
                chain.append(again[chain[-1]])
            found.append(Chain(tuple(chain)))
        return found

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
            if graph is not read.graph and not self._has_row(read):
                return []
            found.append((graph, place.iterations, read))
        return found

    def _has_row(self, read):
        """Whether what a branch reads could be read ahead of it, as each iteration saves it."""
        index, count = map(self._tapes.number, (read.inputs[1], self._loop.iterations))
        return self._tapes.is_row(index, count)

    def _is_free(self, tape, value):
        """Whether only the adjoint iteration reads a tape, which could do without."""
        reads = self._reads[tape]
        here = value.graph is self._body and bool(reads) and all(map(self._is_here, reads))
        return here and not any(is_multiplied(read) for *_, read in reads)

    def _is_here(self, read):
        graph, iterations, _ = read
        return graph is self._graph and self._tapes.same_iterations(iterations, self._iterations)

    def _place_here(self, tape):
        """By what the adjoint iteration reads a tape; None where it has none of that."""
        if lies_in(self._graph, tape.loop.graph):
            return [tape.last, self._iterations[-1]]
        reads = (read for *place, read in self._reads[tape] if self._is_here((*place, read)))
        return next((read.inputs for read in reads), None)

    def _saved_around(self):
        """Tapes of the outermost loop, where the adjoint iteration sees them."""
        loop = outermost_loop(self._loop.op, self._iterations)
        seen = loop is not self._loop.op and lies_in(self._graph, loop.graph)
        return saved_by(self._tapes, loop) if seen else {}

    # Prices.

    def _values(self):
        """What is needed, and all that it may be computed from, by what that takes."""
        todo, found = list(self._needed), {}
        for value in todo:
            if value not in found:
                made = map(origin, _operands(value) if self._is_cheap(value) else ())
                found[value] = [each for each in made if self._from_nothing(each) is None]
                todo += found[value]
        return found

    def _network(self, chains):
        """From what can only be saved to what the adjoint iteration needs."""
        network, operands = Network(), self._values()
        of_chain = {value: chain for chain in chains for value in chain.items}
        after = _computed_from(of_chain, operands)
        for chain in chains:
            network.add((chain, "in"), (chain, "out"), self._price_of_chain(chain))
            for value in chain.items:
                network.add((chain, "out"), (value, "in"), ENDLESS_PRICE)
        for value in self._needed:
            network.add((value, "out"), network.sink, ENDLESS_PRICE)
        for value, others in operands.items():
            again = self._is_cheap(value)
            price = self._price_to_compute(value) if again else ENDLESS_PRICE
            network.add(network.source, (value, "in"), price)
            price = ENDLESS_PRICE if value in after else self._price_to_save(value)
            network.add((value, "in"), (value, "out"), price)
            for other in others:
                network.add((other, "out"), (of_chain.get(value, value), "in"), ENDLESS_PRICE)
        return network

    def _price_of_chain(self, chain):
        """A tape, from which a vector of each further item is loaded."""
        prices = [_price(value, BYTE_PRICE * value.dtype.itemsize) for value in chain.items[:1]]
        return max(TAPE_PRICE, *prices) + OPERATION_PRICE * (len(chain.items) - 1)

    def _is_cheap(self, value):
        op = value.op
        cheap = op.record.cheap or is_cheap(op) or _is_counter(value)
        return op.graph is self._body and cheap and not op.control_inputs

    def _price_to_compute(self, value):
        return 0 if value.op.record.selects else _price(value, OPERATION_PRICE)

    def _price_to_save(self, value):
        """What a tape costs.

        Nothing where there is one in any case, next to nothing where all iterations have the same
        number, and little if it is a tape of the next iteration.
        """
        tape = self._own.get(value)
        fixed = tape and value not in self._needed and self._place_here(tape) is not None
        before = [p for p in self._before.get(value, ()) if p in self._needed]
        is_next = any(can_shift(self._tapes, self._own[parameter]) for parameter in before)
        if fixed or value in self._unlike:
            return 0 if fixed else ENDLESS_PRICE
        if self._is_saved_once(value):
            return ONCE_PRICE
        if is_next or self._is_shifted(value):
            return _price(value, SHIFTED_PRICE)
        return _price(value, max(TAPE_PRICE, BYTE_PRICE * value.dtype.itemsize))

    def _is_shifted(self, value):
        """Whether a tape that is needed has the item but for one iteration, or is to have it."""
        if value not in self._shifted:
            ways = [(value, other) for other in self._sweeps.again(value)]
            if value not in self._needed:
                ways += [(other, value) for other in self._sweeps.ahead(value)]
            found = (shifted(self._tapes, self._loop, *pair) is not None for pair in ways)
            self._shifted[value] = any(found)
        return self._shifted[value]

    def _is_saved_once(self, value):
        """Whether the loop around this one saves a number once for all iterations of this one.

        `linearised_tapes` has it so where nothing in this loop changes the number.
        """
        owner = getattr(self._loop.op.graph, "owner", None)
        is_nested = owner is not None and is_loop(owner)
        return is_nested and value.spec.rank == 0 and is_invariant(value, self._body)

    def _from_nothing(self, value):
        """A value in the adjoint iteration that no tape need bring, such as a counter."""
        if value not in self._known:
            self._known[value] = None if value in self._own else self._again.make(value)
        return self._known[value]

    # Another choice.

    def _left(self, saved):
        stay = set(saved)
        return [tape for value, tape in self._needed.items() if value not in stay]

    def _renewed(self, new, saved):
        """A tape for each new value, as far as there is one that is left, of values like it."""
        free, found = self._left(saved), {}
        for value in new:
            like = next((tape for tape in free if tape.value.spec == value.spec), None)
            if like is not None:
                found[value] = like
                free.remove(like)
        return found

    def _save(self, saved, renewed):
        """Save values, new ones on tapes of others, which are computed again."""
        for value in saved:
            place = self._place_here(renewed.get(value) or self._own[value])
            with self._graph.as_default(), self._graph.control_dependencies(None):
                tape, index = (self._graph.resolve(origin(tensor)) for tensor in place)
                self._made[value] = restore(tape, index, value.spec)
        for tape, made in [(tape, self._build(tape.value)) for tape in self._left(saved)]:
            for *_, read in self._reads[tape]:
                substitute(read.graph, {read.outputs[0]: read.graph.resolve(made)})
        for value, tape in renewed.items():
            inputs = [tape.variable.parameter, self._loop.counter, value]
            self._body.outputs[tape.place] = self._body.create(SAVE, inputs).outputs[0]
            self._body.changed()

    def _build(self, value):
        """A value in the adjoint iteration, from what is saved."""
        order, todo, found = self._tapes.order(self._body), [value], set()
        while todo:
            each = todo.pop()
            if each not in self._made and each not in found:
                found.add(each)
                todo += map(origin, _operands(each) if self._from_nothing(each) is None else ())
        free = [each for each in found if self._from_nothing(each) is not None]
        self._made |= {each: self._from_nothing(each) for each in free}
        for each in sorted(found.difference(free), key=lambda e: (order.get(e.op, -1), e.index)):
            self._made[each] = self._computed(each)
        return self._made[value]

    def _computed(self, value):
        op, graph = value.op, self._graph
        inputs = [graph.resolve(self._made[origin(tensor)]) for tensor in _operands(value)]
        if _is_counter(value):
            return self._again.counted(value, *inputs)
        with graph.control_dependencies(None):
            results = graph.create(op.record, inputs, dict(op.attrs)).outputs
        keep_shapes(op.outputs, results)
        return results[value.index]


@dataclass(frozen=True, eq=False)
class Chain:
    """Items that are one node: each is read ahead of the next one, and a tape has them all."""

    items: tuple[Tensor, ...]

    def is_linked(self, saved) -> bool:
        """Whether no item is missing between those that are saved."""
        places = [place for place, value in enumerate(self.items) if value in set(saved)]
        return not places or len(places) == places[-1] - places[0] + 1


def _computed_from(items, operands):
    """What is computed from some values, by what others are computed from."""
    found: set = set()
    while new := {
        value
        for value, others in operands.items()
        if value not in items and value not in found
        if any(other in items or other in found for other in others)
    }:
        found |= new
    return found


def _saved_by(network):
    """The values of the nodes of a network's cut, and the needed ones of the chains in it."""
    after = network.after()
    nodes = [end[0] for start, end in network.cut() if start[0] is end[0]]
    chains = [node for node in nodes if type(node) is Chain]
    items = [value for chain in chains for value in chain.items if (value, "in") in after]
    return [*(node for node in nodes if type(node) is not Chain), *items]


def _is_counter(value):
    """Whether a variable is its first value and the iteration's number times a step."""
    return value.op.record is PARAMETER and progression(value) is not None


def _operands(value):
    """What a value is computed from again, besides the iteration's number."""
    return progression(value).numbers if _is_counter(value) else value.op.inputs


def _price(value, of_number):
    return of_number * (ARRAY_PRICE if value.spec.rank else 1)


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
            ways = {node: [end for end in self._left[node] if levels.get(end) == level + 1]
                    for node, level in levels.items()}  # fmt: skip
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
        """The edges of the minimum cut that is next to the sink, after `flow`."""
        after = self.after()
        return [edge for edge in self._edges if edge[0] not in after and edge[1] in after]

    def after(self) -> set:
        """The nodes on the sink's side of that cut."""
        after, todo = {self.sink}, [self.sink]
        for end in todo:
            before = [n for n in self._left[end] if self._left[n][end] and n not in after]
            after.update(before)
            todo += before
        return after
