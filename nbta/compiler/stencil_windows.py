"""Sums of neighbours in registers: a loop finishes an item in each iteration, and stores it once.

A loop that adds to items next to each other could go through them in the order of their indices:
then an iteration finishes one item, to which it adds what the last few iterations computed for it.
These numbers are in registers, which each iteration moves on by one, so that an item is loaded and
stored once: scalar replacement (Callahan, Carr and Kennedy, 1990). An item that the iteration sets
before it adds to it, as an adjoint that takes an item clears it, is not loaded either. LLVM makes
vector instructions of it, as all that an iteration has of the ones before is what they computed,
and no sum. The sum of an item takes its numbers in the order of the program, whichever way the loop
goes.

Adjoint loops mostly go from the last item to the first. Where nothing depends on the order of
their iterations but sums that may have any, a stretch of them goes from the first to the last.
"""

from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from nbta.codegen.values import typed
from nbta.compiler.access_sets import (
    differ,
    is_earlier,
    is_of_its_iteration,
    iterations_apart,
    touched,
)
from nbta.compiler.induction import Counts, Order
from nbta.compiler.prefetch import ask_below
from nbta.compiler.stencils import Rows, Stencil
from nbta.compiler.sums import Sums
from nbta.graph.graph import everything, subgraphs
from nbta.graph.operation import DATA, Operation
from nbta.graph.views import Loop, is_body_of_branch, is_branch
from nbta.loops import Name, assign, call
from nbta.ops.arrays.tensor_arrays import READ
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.indexing.items import ADD_ITEM, SET_ITEM
from nbta.ops.loops.iteration_counts import step_of
from nbta.tuning import WINDOW_REGISTERS


class WindowsOf(NamedTuple):
    """How a loop goes through the items of its stencils.

    Attributes
    ----------
    finished : list of list of int
        By stencil and line, the place of the item that an iteration finishes.
    starts : list of list of (Operation or None)
        By stencil and line, what sets that item in the same iteration, before additions.
    numbers : list of (int, int)
        Of a loop that goes from its last iteration to its first, the places of variables that count
        iterations, and by how much each of these raises them.
    """

    finished: list[list[int]]
    starts: list[list[Operation | None]]
    numbers: list[tuple[int, int]]


def windows_of(loop: Loop, stencils: list[Stencil], counts: Counts, sums: Sums) -> WindowsOf | None:
    """How a loop could have what it adds in registers; None where memory is for that."""
    steps = {each.step for each in stencils}
    if len(steps) > 1:
        return None
    finished = [[_finished(each, line, counts) for line in each.lines] for each in stencils]
    if any(None in places for places in finished) or _held(stencils, finished) > WINDOW_REGISTERS:
        return None
    starts = [
        [_start(each, *pair, counts) for pair in zip(each.lines, places, strict=True)]
        for each, places in zip(stencils, finished, strict=True)
    ]
    if steps == {1}:
        return WindowsOf(finished, starts, [])
    if not _may_turn(loop, stencils, counts, sums):
        return None
    numbers = [(v.place, step_of(v.parameter)) for v in loop.variables() if not v.is_kept]
    counted = [(place, step) for place, step in numbers if step is not None]
    return WindowsOf(finished, starts, counted)


def _held(stencils, finished):
    """How many numbers of earlier iterations are in registers."""
    held: dict = {}
    for each, places in zip(stencils, finished, strict=True):
        for line, least in zip(each.lines, places, strict=True):
            for op, place, _ in line:
                value = op.inputs[1]
                held[value] = max(held.get(value, 0), place - least)
    return sum(held.values())


def _finished(stencil, line, counts) -> int | None:
    """The least place of a line that an iteration comes to; None where that is not known.

    No iteration after it, by the order of items, reads or sets that item.
    """
    least = min(each.place for each in line)
    if stencil.step > 0:  # nothing comes back to an item that was added to
        return least
    use, body = touched(stencil.variable), stencil.variable.loop.body
    others = [*use.reads, *(op for op in use.changes if op.record is not ADD_ITEM)]
    for other in others:
        for op, place, _ in line:
            if not differ(counts, other, op, body):
                gap = iterations_apart(counts, other, op, body)
                if gap is None or other.graph is not body:
                    return None
                least = min(least, place + gap)
    return least


def _start(stencil, line, finished, counts) -> Operation | None:
    """What sets the item that an iteration finishes, which nothing reads before additions."""
    use, body = touched(stencil.variable), stencil.variable.loop.body
    others = [*use.reads, *(op for op in use.changes if op.record is not ADD_ITEM)]
    for store in others:
        if store.record is not SET_ITEM or store.graph is not body or store.inputs[1].spec.rank:
            continue
        gaps = [iterations_apart(counts, store, op, body) for op, *_ in line]
        if None not in gaps and all(
            place - gap * stencil.step == finished
            for gap, (_, place, _) in zip(gaps, line, strict=True)
        ):
            alone = all(
                differ(counts, store, other, body, Order.SAME)
                or is_earlier(other, store, use, body)
                for other in others
                if other is not store
            )
            return store if alone else None
    return None


def _may_turn(loop, stencils, counts, sums):
    """Whether nothing but sums depends on the order of a loop's iterations."""
    for op in everything(loop.body):
        free = op.record.pure or op.record is READ or subgraphs(op)
        changes = op.record is not PARAMETER and any(t.kind != DATA for t in op.outputs)
        if not free or op.control_inputs or changes:
            return False
    own = {each.variable.place for each in stencils}
    for variable in loop.variables():
        if variable.is_kept or variable.following in sums:
            continue
        if variable.parameter.spec.kind != DATA:
            return False
        if variable.parameter.spec.rank == 0:
            if step_of(variable.parameter) is None:
                return False
        elif not _is_free_of_order(variable, counts, variable.place in own):
            return False
    return True


def _is_free_of_order(variable, counts, is_stencil):
    """Whether no iteration changes an item of an array that another one has something to do with.

    Of a stencil's additions it is known.
    """
    use, body = touched(variable), variable.loop.body
    if use is None:
        return False
    changes, reads = use.changes, use.reads
    if is_stencil:
        changes = [op for op in changes if op.record is not ADD_ITEM]
    return all(
        differ(counts, one, other, body) or is_of_its_iteration(counts, one, other, body)
        for one in (*reads, *changes)
        for other in changes
    )


@dataclass(eq=False)
class _Register:
    """What an iteration adds, by how many iterations ago; a row in place of a `Block`."""

    names: list[Name]
    dtype: np.dtype


class Windows(Rows):
    """The rows of the stencils of a loop in registers, as code is written.

    Parameters
    ----------
    code, stencils, first, blocks
        See `Rows`.
    windows : WindowsOf
    numbers : list of (Scalar, int)
        The variables of ``windows.numbers``, and by how much an iteration raises them.
    tapes : list of (array, str)
        Arrays that iterations read from the last item to the first, until the loop is turned, and
        source of the index in the first iteration.
    """

    def __init__(self, code, stencils, first, blocks, windows, numbers, tapes):
        self._finished, self._numbers, self._starts = windows.finished, numbers, windows.starts
        self._tapes = tapes
        self._begun: dict = {}  # by stencil and line, where the item of the first iteration is
        self._firsts = [code.name("b") for _ in numbers]
        super().__init__(code, stencils, first, blocks)
        for stencil, stores in zip(stencils, windows.starts, strict=True):
            self._places.update((store, stencil) for store in stores if store is not None)
        self._in_branch = tuple(self._chosen)  # in order: source must not differ by process
        self._chosen = {row: row.names[0] for row in self._steps}
        for row, depth in self._depths().items():
            row.names.extend(code.name("q") for _ in range(depth))
        #: By the names of numbers that come from branches, what the next iteration has them by.
        self._carried = {
            self._rows[op].names[0]: code.name("q")
            for op in self._rows
            if len(self._rows[op].names) > 1
            if is_body_of_branch(op.graph) or is_branch(op.inputs[1].op)
        }

    def _new_row(self, dtype):
        return _Register([self._code.name("q")], dtype)

    def keep(self, op) -> list:
        """See `Rows.keep`; the sum of an item begins with what it is set to."""
        return [] if op.record is SET_ITEM else super().keep(op)

    def _lines(self):
        """Stencil, additions, place of the item that is finished, first indices and array."""
        for each, places, firsts, block in zip(
            self._stencils, self._finished, self._first, self._blocks, strict=True
        ):
            yield from (
                (each, line, place, first, block)
                for line, place, first in zip(each.lines, places, firsts, strict=True)
            )

    def _depths(self):
        """By row, how many iterations later an item gets the last of what is in it."""
        found = dict.fromkeys(self._steps, 0)
        for _, line, finished, _, _ in self._lines():
            for op, place, _ in line:
                found[self._rows[op]] = max(found[self._rows[op]], place - finished)
        return found

    def _number(self, name, value, iterations, step):
        return assign(value.item, typed(name + iterations * step, value.dtype))

    def _before_stretch(self):
        rows = [assign(name, self._zero(row)) for row in self._steps for name in row.names[1:]]
        self._begun = {}
        for number, (stencil, _, finished, first, block) in enumerate(self._lines()):
            self._begun[number] = self._code.name("o")
            rows.append(assign(self._begun[number], self._begin(stencil, first, block) + finished))
        pairs = zip(self._firsts, self._numbers, strict=True)
        self._code.heads[-1].add(*(assign(name, value.item) for name, (value, _) in pairs))
        for array, first in self._tapes:
            ask_below(self._code, array, first - (self._start + self._count - 1), self._count)
        return rows

    def _before_iteration(self):
        left = self._start + (self._count - 1 - (self._iteration - self._start))
        turned = [
            self._number(name, value, left, step)
            for name, (value, step) in zip(self._firsts, self._numbers, strict=True)
        ]
        return [*turned, *(assign(row.names[0], self._zero(row)) for row in self._in_branch)]

    def _after_iteration(self):
        found = [assign(one, call("carried", now)) for now, one in self._carried.items()]
        starts = chain.from_iterable(self._starts)
        for number, (store, lines) in enumerate(zip(starts, self._lines(), strict=True)):
            stencil, line, finished, _, block = lines
            others = (
                self._rows[op].names[place - finished]
                for op, place, _ in self._in_turn(line, stencil.step)
            )
            place = self._begun[number] + (self._iteration - self._start)
            start = None if store is None else self._code.scalar(store.inputs[1])
            found.append(self._summed(block, place, others, start))
        for row in self._steps:
            later = zip(row.names[:0:-1], row.names[-2::-1], strict=True)
            found += [assign(one, self._carried.get(other, other)) for one, other in later]
        return found

    def _after_stretch(self):
        """Lines after a stretch: the items that it has not finished, and numbers that count."""
        code = self._code
        for number, (stencil, line, finished, _, block) in enumerate(self._lines()):
            in_turn = self._in_turn(line, stencil.step)
            for after in range(1, max(place for _, place, _ in line) - finished + 1):
                others = [
                    self._rows[op].names[place - finished - after + 1]
                    for op, place, _ in in_turn
                    if place - finished >= after
                ]
                place = self._begun[number] + (self._count - 1 + after)
                code.add(self._summed(block, place, others))
        for name, (value, step) in zip(self._firsts, self._numbers, strict=True):
            code.add(self._number(name, value, self._start + self._count, step))
