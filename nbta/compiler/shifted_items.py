"""Items of an array that one iteration reads and later ones read again: one tape for all.

A sweep such as ``v[j] = p * v[j + 1] + q * v[j]`` reads in each iteration an item that the next one
reads at another index, where nothing changes it in between. Two tapes would have all but one of
their values in common. One tape does that has the item of the first iteration in its first slot,
and in each other one what an iteration reads ahead. Of ``v[j + 2] * v[j + 1] * v[j]``, each item is
read by three iterations, and the first two slots are for items of the first iteration.

That nothing changes an item in between is the question whether a change in the same iteration is
of another item: of what an iteration does after it reads ahead, and of what it does before it reads
again.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from nbta.compiler.access_sets import (
    OF_ITEMS,
    differ,
    iterations_apart,
    place_in_sweep,
    readers,
    touched,
)
from nbta.compiler.branch_reads import read_where
from nbta.compiler.hoisted_saves import Again, is_told, iterations_before
from nbta.compiler.induction import Counts, Order
from nbta.compiler.tapes import Tapes
from nbta.graph.graph import substitute
from nbta.graph.operation import Tensor
from nbta.graph.views import Loop, Variable, is_loop, origin
from nbta.ops.core.arithmetic import add, less
from nbta.ops.core.dispatch import as_tensor, constant_in
from nbta.ops.indexing.items import GETITEM
from nbta.ops.loops.residuals import RESTORE, SAVE


def _itself(item):
    return item


def share_shifted(tapes: Tapes) -> bool:
    """Let one tape do for those of an item that iterations read one after the other; if it can."""
    if tapes.shadows or not all(map(_is_from_loop(tapes), tapes.restores.get(None, ()))):
        return False
    by_loop: dict = {}
    for tape in tapes.all:
        if tape.value.spec.rank == 0 and tape.value.op.record is GETITEM:
            by_loop.setdefault(tape.loop, []).append(tape)
    for op, own in by_loop.items():
        loop = Loop(op)
        if len(own) > 1 and is_told(loop, op.graph) and _merge_one(tapes, loop, own):
            return True
    return False


def _is_from_loop(tapes):
    """Whether an operation restores from the tape of a loop, if not of one that `Tapes` has."""
    return lambda restore: is_loop(tapes.reaching_definition(restore.inputs[0]).tensor.op)


def _merge_one(tapes, loop, own):
    own = [tape for tape in own if all(map(_is_plain, tapes.restores[tape]))]
    again: dict = {}  # by the tape of what an iteration reads ahead, that of what the next one has
    for one, other in Sweeps(tapes, loop, own, lambda tape: tape.value).pairs():
        array = None if one in again else shifted(tapes, loop, one.value, other.value)
        if array is not None and other not in (tape for tape, _ in again.values()):
            again[one] = other, array
    read_again = {tape for tape, _ in again.values()}
    first = next((tape for tape in own if tape in again and tape not in read_again), None)
    if first is None:
        return False
    chain, (_, array) = [first], again[first]
    while chain[-1] in again:
        chain.append(again[chain[-1]][0])
    _merge(tapes, loop, array, chain)
    return True


def _is_plain(restore):
    return restore.record is RESTORE and not restore.control_inputs


def array_read(loop: Loop, value: Tensor) -> Tensor | Variable | None:
    """The array of which the body of a loop reads a number, if one may be `shifted`.

    A variable, or what stands for a captured one. None for all other values.
    """
    op = value.op
    plain = op.record is GETITEM and value.spec.rank == 0 and not op.control_inputs
    if not plain or value.graph is not loop.body:
        return None
    return op.inputs[0] if op.inputs[0] in loop.body.sources else readers(loop).get(op)


class Sweeps:
    """Which items an iteration reads that the one before has read at another index.

    Parameters
    ----------
    counts : Counts
    loop : Loop
    items : iterable
        Whose values the body reads.
    value_of : callable
        The value of an item.
    """

    def __init__(self, counts: Counts, loop: Loop, items: Iterable, value_of: Callable = _itself):
        self._counts, self._loop, self._value_of = counts, loop, value_of
        self._items, self._found = list(items), defaultdict(list)
        for item in self._items:
            self._found[self._place(value_of(item))].append(item)

    def _place(self, value):
        """The array of a value, and where it is in a sweep along it; None where there is none."""
        array = array_read(self._loop, value)
        place = None if array is None else place_in_sweep(self._counts, value.op, self._loop.body)
        return None if place is None else (array, place)

    def again(self, value: Tensor) -> list:
        """Items of which an iteration has read ahead by a value."""
        found = self._place(value)
        return [] if found is None else self._found.get((found[0], found[1].before()), [])

    def ahead(self, value: Tensor) -> list:
        """Items by which an iteration has read a value ahead."""
        found = self._place(value)
        return [] if found is None else self._found.get((found[0], found[1].next()), [])

    def pairs(self) -> Iterator[tuple]:
        """An item that is read ahead with each that reads it again, in the order of the items."""
        for item in self._items:
            yield from ((item, other) for other in self.again(self._value_of(item)))


def shifted(counts: Counts, loop: Loop, ahead: Tensor, again: Tensor) -> Tensor | None:
    """The array of which an iteration reads again what the one before has read ahead, or None.

    Both are numbers that the body of a loop reads, and the array, as it is before the loop, is a
    variable of the loop, or the same for all iterations.
    """
    one, other, body = ahead.op, again.op, loop.body
    array = array_read(loop, ahead)
    if array is None or array not in {array_read(loop, again)}:
        return None
    outside = Again(loop, loop.op.graph)
    is_next = iterations_apart(counts, other, one, body) == 1
    if not is_next or not all(map(outside.can_make, other.inputs[1:])):
        return None
    if isinstance(array, Tensor):
        return body.sources[array]
    use = touched(array)
    earlier = _changes_before(one, array)
    after = use.changes if earlier is None else [op for op in use.changes if op not in earlier]
    earlier = _changes_before(other, array)
    before = use.changes if earlier is None else earlier
    stays = all(differ(counts, op, one, body, Order.SAME) for op in after) and all(
        differ(counts, op, other, body, Order.SAME) for op in before
    )
    return array.first if stays else None


def _changes_before(read, variable) -> list | None:
    """What an iteration changes before it reads an item; None where that is unknown."""
    found, version = [], read.inputs[0]
    while version is not variable.parameter:
        op = version.op
        if op.record not in OF_ITEMS or op.graph is not read.graph:
            return None
        found.append(op)
        version = op.inputs[0]
    return found


def _merge(tapes, loop, array, chain):
    """Restore what is read again from the tape of what is read ahead, which has more slots.

    Each tape of a chain has what the iteration after has read ahead of it. The first slots are for
    what the first iteration reads again.
    """
    graph, body, ahead, count = loop.op.graph, loop.body, chain[0], len(chain) - 1
    for after, tape in zip(range(count, 0, -1), chain, strict=False):
        for restore in tapes.restores[tape]:
            index = restore.inputs[1]
            restore.inputs = [restore.inputs[0], _raised(index, after)]
            restore.graph.changed()
    begun = ahead.variable.first
    with graph.as_default(), graph.control_dependencies(None):
        for place, tape in enumerate(chain[:0:-1]):
            index = constant_in(graph, np.array(place, np.int64))
            value = _in_first(tapes, loop, array, tape.value.op)
            begun = graph.create(SAVE, [begun, index, value]).outputs[0]
    loop.op.inputs[ahead.place] = begun
    inputs = [ahead.variable.parameter, _raised(body.outputs[0], count - 1), ahead.value]
    body.outputs[ahead.place] = body.create(SAVE, inputs).outputs[0]
    for tape in chain[1:]:
        body.outputs[tape.place] = tape.variable.parameter
        substitute(graph, {tape.last: ahead.last})
    body.changed()


def _raised(index, by):
    """An index of a slot further on."""
    if not by:
        return index
    by = constant_in(index.graph, np.array(by, index.dtype))
    return index.graph.create(add.record, [index, by]).outputs[0]


def _in_first(tapes, loop, array, read) -> Tensor:
    """The item that the first iteration reads; 0 where there is none."""
    graph = loop.op.graph
    outside, zero = Again(loop, graph), as_tensor(np.int64(0), graph)
    scalars = [outside.make(tensor, graph, zero) for tensor in read.inputs[1:]]

    inputs = [graph.resolve(origin(tensor)) for tensor in (array, *scalars)]
    if tapes.iterates(loop.op):
        return graph.create(GETITEM, inputs, dict(read.attrs)).outputs[0]
    return read_where(less(zero, iterations_before(loop, graph)), True, graph, read, inputs)
