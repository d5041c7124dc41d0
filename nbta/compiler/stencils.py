"""Sums of neighbours: a loop that adds to several items of an array, gathered item by item.

The gradient of ``v[i] = u[i - 1] + u[i] + u[i + 1]`` adds to three items of an array in each
iteration. What one iteration stores the next one loads, so that no vector instructions are made of
the loop, and each iteration waits for the one before. So values go to rows of scratch memory, which
are added after a stretch of iterations, to each item all that goes to it: as the loop itself, that
has one place in memory for each iteration then. Hueckelheim, Kukreja, Narayanan, Luporini, Gorman
and Hovland, Automatic differentiation for adjoint stencil loops (ICPP 2019), compute values again,
item by item; of rows a loop may have any body, and the ends of arrays need no code of their own.

Each item gets its values in the order of the iterations, so that sums are what they were. After
both ends of a row there are numbers that change no sum. Of items that are next to each other, the
rows are registers: see `nbta.compiler.stencil_windows`.
"""

from contextlib import contextmanager
from typing import NamedTuple

from nbta.codegen.values import Block, product, total, typed
from nbta.compiler.access_sets import (
    comes_before,
    differ,
    indices_of,
    is_of_its_iteration,
    touched,
)
from nbta.compiler.induction import Counts, Linear
from nbta.compiler.loop_ends import Between
from nbta.compiler.sums import FLOATS, Sums, has_plain_branches, is_independent
from nbta.graph.operation import FLOW, Operation, Tensor
from nbta.graph.views import Loop, Variable, is_body_of_branch
from nbta.loops import Constant, assign, call, do, either, negated, over, when
from nbta.loops.nodes import ZERO
from nbta.ops.indexing.items import ADD_ITEM, SYMBOLIC
from nbta.tuning import COUNTED_ITERATIONS, STENCIL_ITERATIONS, STENCIL_STRETCH, STENCIL_WIDTH


class Addition(NamedTuple):
    """What adds a number to the item ``place`` after the first iteration's, on the last axis.

    Which iteration's addition comes first is told by ``number``.
    """

    op: Operation
    place: int
    number: int


class Stencil(NamedTuple):
    """Additions to an array that a loop, or branches in it, do nothing else with.

    Attributes
    ----------
    variable : Variable
    step : int
        By how much each iteration raises the last index: 1 or -1.
    lines : list of list of Addition
        By where along the other axes.
    """

    variable: Variable
    step: int
    lines: list[list[Addition]]

    @property
    def first(self) -> list[list[Tensor | int]]:
        """The indices of the addition of each line that places are counted from."""
        return [indices_of(line[0].op) for line in self.lines]

    @property
    def width(self) -> int:
        """How far apart the items of a line are that an iteration adds to, at most."""
        return max(map(_spread, self.lines))


def stencils(
    loop: Loop, counts: Counts, sums: Sums, between: Between | None = None
) -> list[Stencil]:
    """The arrays a loop adds to at several places, if iterations need nothing else of others.

    Parameters
    ----------
    loop : Loop
    counts : Counts
    sums : nbta.compiler.sums.Sums
        Additions to numbers that may change places.
    between : Between, optional
        Where the loop's ends are apart, what holds between them, where rows are for.
    """
    counts, apart = (counts, 0) if between is None else (between.counts, between.iterations)
    if any(op.facts.skips_adjoints for op in loop.body.operations):
        return []
    if not has_plain_branches(loop, counts, apart):
        return []
    found, variables = [], [v for v in loop.variables() if v.parameter.spec.kind != FLOW]
    for variable in variables:
        additions = _additions(variable, counts)
        stencil = _stencil(variable, additions, counts) if additions else None
        if stencil is not None and (stencil.width or _is_set_too(variable, additions, counts)):
            found.append(stencil)
        elif not (variable.following in sums or is_independent(variable)):
            return []
    return found


def _additions(variable, counts) -> list[Operation]:
    """What adds items to an array, in order, where else iterations only touch items of their own.

    Those are none that an iteration adds to, as they are in another row of the array; or no later
    iteration comes to what one adds to, as in the gradient of ``v[i] = v[i] + v[i + 1]``, so that
    it may be added after all of them.
    """
    if variable.parameter.spec.rank == 0 or variable.parameter.dtype not in FLOATS:
        return []
    use, body = touched(variable), variable.loop.body
    if use is None:
        return []
    additions = [op for op in use.changes if op.record is ADD_ITEM]
    changes = [op for op in use.changes if op.record is not ADD_ITEM]
    alone = all(
        differ(counts, one, other, body) or comes_before(counts, one, other, use, body)
        for one in (*use.reads, *changes)
        for other in additions
    ) and all(
        differ(counts, one, other, body) or is_of_its_iteration(counts, one, other, body)
        for one in (*use.reads, *changes)
        for other in changes
    )
    return additions[::-1] if alone else []


def _is_set_too(variable, additions, counts):
    """Whether iterations set, or read, items that others add to."""
    use, body = touched(variable), variable.loop.body
    others = (*use.reads, *(op for op in use.changes if op.record is not ADD_ITEM))
    return not all(differ(counts, one, op, body) for one in others for op in additions)


def _stencil(variable, additions, counts) -> Stencil | None:
    """Additions by lines; None where it is not known which of them go to the same items."""
    steps, lines = set(), []
    for number, op in enumerate(additions):
        found = _form(op, variable, counts)
        if found is None:
            return None
        *around, (start, step) = found
        steps.add(step)
        ways = [_apart(around, others) for others, *_ in lines]
        if None in ways:
            return None
        if False not in ways:
            lines.append((around, start, []))
        _, first, line = lines[ways.index(False) if False in ways else -1]
        place = start - first
        if place.terms:
            return None
        line.append(Addition(op, place.constant, number))
    if len(steps) > 1:
        return None
    stencil = Stencil(variable, steps.pop(), [line for *_, line in lines])
    return stencil if stencil.width <= STENCIL_WIDTH else None


def _apart(one, other) -> bool | None:
    """Whether indices along the other axes are proven to be of other lines; None if unknown."""
    differences = [a - b for a, b in zip(one, other, strict=True)]
    if any(not each.terms and each.constant for each in differences):
        return True
    return False if all(each == Linear(0) for each in differences) else None


def _form(op, variable, counts):
    """The indices of a number that is added, if each iteration moves the last one alone, by one.

    Linear forms, and for the last axis what that is in the first iteration and by how much it
    grows. Whether they are within the array, and do not wrap around, code looks at before the loop.
    """
    x, value, *scalars = op.inputs
    key, body = op.attrs["key"], variable.loop.body
    whole = len(key) == x.spec.rank and all(part is SYMBOLIC or _is_place(part) for part in key)
    if not whole or op.control_inputs or value.spec.rank != 0 or value.dtype != x.dtype:
        return None
    if any(tensor.spec.rank != 0 for tensor in scalars):
        return None
    forms = []
    for axis, index in enumerate(indices_of(op)):
        length = counts.length(variable.first, axis)
        if type(index) is int and not counts.is_within(index, length, body):
            return None
        form = counts.affine(index, body)
        if form is None or (abs(form[1]) != 1 if axis == len(key) - 1 else form[1]):
            return None
        forms.append(form)
    return [*(start for start, _ in forms[:-1]), forms[-1]]


def _is_place(part):
    return type(part) is int and part >= 0


class Rows:
    """The rows of the stencils of a loop, as code is written.

    Parameters
    ----------
    code : Emitter
    stencils : list of Stencil
    first : list of list of (list of str)
        By stencil and line, source of indices in the first iteration.
    blocks : list of Block
        By stencil, the array.

    Attributes
    ----------
    guard : str
        The truth value of whether items are added to at once: where iterations are few, and where
        indices may be outside of their axes.
    """

    def __init__(self, code, stencils, first, blocks):
        self._code, self._stencils, self._first, self._blocks = code, stencils, first, blocks
        self.guard = code.name("u")
        # Where the iterations of a stretch begin, how many there are, the number of the current
        # one.
        self._start, self._count, self._iteration = code.name("i"), code.name("z"), code.name("j")
        self._room = max(_spread(line) for each in stencils for line in each.lines)
        self._places = {a.op: each for each in stencils for line in each.lines for a in line}
        self._rows: dict[Operation, Block] = {}
        self._steps: dict[Block, int] = {}
        self._shared: set[Block] = set()  # rows of branches that exclude each other
        self._beside: set[Operation] = set()  # additions whose row another one adds
        self._kept: set[tuple] = set()
        #: The variables that have what branches add.
        self._chosen: dict[Block, str] = {}
        for stencil in stencils:
            for line in stencil.lines:
                self._make_rows(line, stencil.step)

    @property
    def operations(self):
        """What adds to arrays, or sets items that rows have."""
        return set(self._places)

    def block(self, op):
        """The array that an operation adds to."""
        return self._blocks[self._stencils.index(self._places[op])]

    def _new_row(self, dtype):
        """Scratch memory for the values of a stretch."""
        return self._code.new(dtype, (Constant(STENCIL_STRETCH + 2 * self._room),), "q")

    def _make_rows(self, line, step):
        """Give additions their rows: one for equal values, and for those that exclude each other.

        The latter are additions to one item, one after another, in branches that exclude each
        other; such a row serves no other item.
        """
        for k, (op, place, _) in enumerate(line):
            before = next((other for other in reversed(line[:k]) if other.place == place), None)
            row = self._row_of(op.inputs[1], step)
            if row is None and before is not None and self._is_apart(op, before.op):
                row = self._rows[before.op]
                self._shared.add(row)
                self._beside.add(op)
            if row is None:
                row = self._new_row(op.inputs[1].dtype)
                self._steps[row] = step
            self._rows[op] = row
            if is_body_of_branch(op.graph) and row not in self._chosen:
                self._chosen[row] = self._code.name("r")

    def _row_of(self, value, step):
        """The row of a value, by the order of iterations; None where it has none yet."""
        equal = (row for op, row in self._rows.items() if op.inputs[1] is value)
        return next((r for r in equal if self._steps[r] == step and r not in self._shared), None)

    def _is_apart(self, op, before):
        """Whether an addition may have the row of the one before, as each iteration does one."""
        row = self._rows[before]
        others = [other for other, found in self._rows.items() if found is row]
        alone = row in self._shared or others == [before]
        return alone and all(are_apart(op, other) for other in others)

    def _place(self, row):
        """The place of the current iteration in a row."""
        iteration = self._iteration - self._start
        place = iteration if self._steps[row] > 0 else self._count - 1 - iteration
        return row.at(place + self._room)

    def keep(self, op) -> list:
        """The line that keeps what an operation adds until a stretch ends, unless there is one."""
        value, row = op.inputs[1], self._rows[op]
        if (value, row) in self._kept:
            return []
        self._kept.add((value, row))
        place = self._chosen[row] if row in self._chosen else self._place(row)
        return [assign(place, typed(self._code.scalar(value), value.dtype))]

    def _unguarded(self, lines):
        if lines:
            with self._code.nest(when(negated(self.guard))):
                self._code.add(*lines)

    def _before_stretch(self) -> list:
        """Lines before the iterations of a stretch."""
        return []

    def _before_iteration(self) -> list:
        """Lines before an iteration: -0.0 for where no branch that adds is taken."""
        return [assign(name, self._zero(row)) for row, name in self._chosen.items()]

    def _after_iteration(self) -> list:
        """Lines after an iteration: rows get what branches add."""
        return [assign(self._place(row), name) for row, name in self._chosen.items()]

    def _zero(self, row):
        """A number that changes no sum."""
        return typed(self._code.number(row.dtype.type(-0.0)), row.dtype)

    @contextmanager
    def each_iteration(self, iterations, watch_word, ends):
        """The lines of an iteration, in stretches.

        ``ends`` tells whether it is at an end of the loop.
        """
        code, start, count = self._code, self._start, self._count
        lines = [
            over(start, 0, iterations, STENCIL_STRETCH),
            do("watch", "w", watch_word, start + (STENCIL_STRETCH - 1)),
            assign(count, call("min", STENCIL_STRETCH, iterations - start)),
        ]
        versions = (self.guard,) if ends is None else (self.guard, ends)
        few = either(iterations < STENCIL_ITERATIONS, iterations > COUNTED_ITERATIONS)
        with code.loop(*lines, versions=versions):
            code.heads[-1].add(assign(self.guard, few if ends is None else either(few, ends)))
            self._unguarded(self._before_stretch())
            with code.nest(over(self._iteration, start, start + count)):
                self._unguarded(self._before_iteration())
                yield
                self._unguarded(self._after_iteration())
            with code.nest(when(negated(self.guard))):
                self._after_stretch()

    def _after_stretch(self):
        """Lines after a stretch: each item gets all that goes to it."""
        code = self._code
        for row in self._steps:
            for k in range(self._room):
                code.add(assign(row.at(k), self._zero(row)))
                code.add(assign(row.at(self._count + (self._room + k)), self._zero(row)))
        for stencil, firsts, block in zip(self._stencils, self._first, self._blocks, strict=True):
            for line, first in zip(stencil.lines, firsts, strict=True):
                self._add_line(stencil, line, first, block)

    def _add_line(self, stencil, line, first, block):
        code, low, k = self._code, min(a.place for a in line), self._code.name("k")
        begin = code.variable(self._begin(stencil, first, block) + low, "o")
        with code.nest(over(k, self._count + _spread(line))):
            place = begin + k
            others = (
                self._rows[op].at(k + (self._room + low - there))
                for op, there, _ in self._in_turn(line, stencil.step)
            )
            code.add(self._summed(block, place, others))

    def _begin(self, stencil, first, block):
        """The place of the item with the least index that a stretch counts the others from."""
        moved = self._start if stencil.step > 0 else -(self._start + self._count - 1)
        return total(self._item(block, first), moved)

    def _in_turn(self, line, step):
        """The additions of a line that have rows, in the order in which an item gets them."""
        in_turn = sorted(line, key=lambda a: (-step * a.place, a.number))
        return [each for each in in_turn if each.op not in self._beside]

    def _summed(self, block, place, others, start=None):
        """The line that adds several numbers to an item, or to what it is set to, in turn."""
        item = block.base.name[place] if start is None else typed(start, block.dtype)
        for other in others:
            item = typed(item + other, block.dtype)
        return assign(block.base.name[place], item)

    def _item(self, block, first):
        """The place of an item in its buffer, in the first iteration."""
        dimensions = block.dimensions
        terms = [index * product(dimensions[axis + 1 :]) for axis, index in enumerate(first[:-1])]
        place = total(block.offset, *terms)
        place = first[-1] if place == ZERO else place + first[-1]
        name = self._code.name("o")
        self._code.heads[-1].add(assign(name, place))
        return name


def are_apart(one: Operation, other: Operation) -> bool:
    """Whether two operations are in branches of which one is taken."""
    ways = dict(_branches_around(one))
    return any(ways.get(case, branch) is not branch for case, branch in _branches_around(other))


def _branches_around(op):
    graph = op.graph
    while is_body_of_branch(graph):
        yield graph.owner, graph
        graph = graph.outer


def _spread(line):
    places = [addition.place for addition in line]
    return max(places) - min(places)
