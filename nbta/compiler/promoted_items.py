"""Items that a loop reads or adds to, in registers, where one iteration alone meets them otherwise.

In ``d[i, j] = min(d[i, j], d[i, k] + d[k, j])`` the loop over ``j`` reads item ``k`` of row ``i``
in each iteration, and changes it in iteration ``k``. The gradient adds to that item in each
iteration, and takes what is in it in one. In memory, each iteration would wait for the one before,
and LLVM would make no vector instructions. So code for such a loop goes through two parts, with a
cut at the iteration that has the other access (index set splitting): before a part an item is
loaded, and after it what the part added is added to it (scalar promotion). Where an index may be
outside of its axis, everything goes to memory as it is written.

`nbta.compiler.scalar_promotion` promotes items that nothing else in a loop meets.
"""

from contextlib import contextmanager
from typing import NamedTuple

from nbta.codegen.values import cast_text, product, times, total
from nbta.compiler.access_sets import differ, indices_of, touched, users_in
from nbta.compiler.induction import Counts, Linear
from nbta.compiler.sums import FLOATS
from nbta.graph.graph import SubGraph
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Loop, Variable
from nbta.loops import assign, do, over, when
from nbta.ops.indexing.items import ADD_ITEM, GETITEM, SET_ITEM
from nbta.ops.loops.iteration_counts import is_integer
from nbta.tuning import COUNTED_ITERATIONS, PARTED_ITERATIONS, WATCHED_ITERATIONS


class Meeting(NamedTuple):
    """Where another access meets an item: in the one iteration in which two indices are equal.

    Attributes
    ----------
    iteration : Linear
        Its number.
    item : Tensor or int
        The item's index along some axis.
    other : Tensor
        That of the other access, in the same body or in a branch of it.
    step : int
        By how much each iteration raises that: 1 or -1.
    axis : int
    """

    iteration: Linear
    item: Tensor | int
    other: Tensor
    step: int
    axis: int


class Item(NamedTuple):
    """An access that touches the same item in all iterations: a read, or an addition to it."""

    op: Operation
    variable: Variable
    meeting: Meeting

    @property
    def adds(self) -> bool:
        """Whether it is an addition."""
        return self.op.record is ADD_ITEM


def promotable(loop: Loop, counts: Counts) -> list[Item]:
    """The items of a loop that other accesses meet in one iteration alone, the same for all."""
    users, found = None, []
    for variable in loop.variables():
        spec = variable.parameter.spec
        if spec.kind != DATA or spec.rank == 0 or spec.dtype not in FLOATS or variable.is_kept:
            continue
        users = users_in(loop) if users is None else users
        use = touched(variable, users)
        for op in () if use is None else (*use.reads, *use.changes):
            meeting = _met_once(op, use, variable, counts)
            if meeting is not None and not (found and _differs(meeting, found[0].meeting)):
                found.append(Item(op, variable, meeting))
    return found


def _differs(one, other):
    return one.iteration != other.iteration


def _met_once(op, use, variable, counts) -> Meeting | None:
    """Where other accesses meet the item of an operation; None for nowhere, or if unknown."""
    body = variable.loop.body
    if op.record is GETITEM:
        others, is_ordered = use.changes, _reads_before
    elif op.record is ADD_ITEM:
        others = [*use.reads, *(each for each in use.changes if each.record is SET_ITEM)]
        is_ordered = _adds_after
    else:
        return None
    if op.graph is not body or not _is_fixed(op, counts, body):
        return None
    met = [other for other in others if not differ(counts, op, other, body)]
    found = [_meeting(counts, op, other, body) for other in met]
    if not found or None in found or any(_differs(each, found[0]) for each in found):
        return None
    return found[0] if is_ordered(op, met, variable) else None


def _is_fixed(op, counts, body):
    """Whether an operation reads a number of the same item in all iterations, or adds one to it."""
    indices = indices_of(op)
    if op.control_inputs or any(not isinstance(index, Tensor | int) for index in indices):
        return False
    if len(indices) != op.inputs[0].spec.rank or any(t.spec.rank != 0 for t in op.inputs[1:]):
        return False
    x = op.inputs[0]
    if op.record is ADD_ITEM and op.inputs[1].dtype != x.dtype:
        return False
    return all(
        index >= 0
        if type(index) is int
        else is_integer(index) and (form := counts.affine(index, body)) is not None and not form[1]
        for index in indices
    )


def _meeting(counts, op, other, body) -> Meeting | None:
    """Where an access meets an item: where an index that each iteration moves by one is its own."""
    for axis, (item, index) in enumerate(zip(indices_of(op), indices_of(other), strict=True)):
        form = counts.affine(index, body) if isinstance(index, Tensor) else None
        if form is None or abs(form[1]) != 1 or not is_integer(index):
            continue
        start, step = form
        place = Linear(item) if type(item) is int else counts.number(item)
        return Meeting((place - start) * step, item, index, step, axis)
    return None


def _reads_before(op, met, variable):
    """Whether an item is read before any of the changes that meet it."""
    version = op.inputs[0]
    while version is not variable.parameter:
        if version.op.record not in (ADD_ITEM, SET_ITEM) or version.op in met:
            return False
        version = version.op.inputs[0]
    return True


def _adds_after(op, met, variable):
    """Whether an addition comes after all the accesses that meet its item."""
    version, later = variable.following, {op.outputs[0]}
    while version is not op.outputs[0]:
        if version.op.record not in (ADD_ITEM, SET_ITEM):
            return False
        later.add(version)
        version = version.op.inputs[0]
    tops = (_in_body(other, variable.loop.body) for other in met)
    return all(later.isdisjoint(top.inputs) for top in tops)


def _in_body(op, body: SubGraph) -> Operation:
    """The operation of a body that is, or has in a branch, another one."""
    while op.graph is not body:
        op = op.graph.owner
    return op


class Promoted:
    """Promoted items of a loop, as code is written.

    Parameters
    ----------
    code : Emitter
    items : list of Item
    on_entry : callable
        ``on_entry(index)`` is source of an index of the loop's body in the next iteration to run,
        or None.
    blocks : list of Block
        By item, the array.

    Attributes
    ----------
    guard : str
        The truth value of whether items are read and added to in memory: where iterations are few,
        and where indices may be outside of their axes.
    """

    def __init__(self, code, items, on_entry, blocks):
        self._code, self._items, self._blocks = code, items, blocks
        self._on_entry = on_entry
        self.guard = code.name("u")
        self._names = {item.op: code.name("r") for item in items}
        self._held: dict[Operation, str] = {}  # by operation, source of its item's place

    @property
    def is_plain(self) -> bool:
        """Whether all indices it needs have a source before the loop."""
        indices = [index for item in self._items for index in indices_of(item.op)]
        indices += [item.meeting.other for item in self._items]
        return None not in map(self._source, indices)

    def _source(self, index):
        return str(index) if type(index) is int else self._on_entry(index)

    def _cuts(self, iterations):
        """How many iterations are before each cut.

        A read has its cut after the iteration that meets it, and an addition before that one.
        """
        meeting, code = self._items[0].meeting, self._code
        low, high = self._source(meeting.other), self._source(meeting.item)
        if meeting.step < 0:
            low, high = high, low
        for after in sorted({not item.adds for item in self._items}):
            met = f"{high} - ({low})" + " + 1" * after
            yield code.variable(f"max(0, min({met}, {iterations}))")

    @contextmanager
    def each_iteration(self, body, iterations, watch_word):
        """The lines of an iteration, in parts."""
        code, around = self._code, self._code.lines
        part, count, start = code.name("p"), code.name("n"), code.name("i")
        cuts = list(self._cuts(iterations))
        text = f"{iterations} - {cuts[-1]}"
        for number in reversed(range(len(cuts))):
            before = f" - {cuts[number - 1]}" if number else ""
            text = f"({cuts[number]}{before} if {part} == {number} else {text})"
        whole = f"{iterations} < {PARTED_ITERATIONS}"
        code.lines = around.nest(over(part, f"1 if {whole} else {1 + len(cuts)}"))
        code.add(assign(count, f"{iterations} if {whole} else {text}"))
        code.count(body, count)
        lines = [
            over(start, 0, count, WATCHED_ITERATIONS),
            do("watch", "w", watch_word, f"{start} + {WATCHED_ITERATIONS - 1}"),
        ]
        with code.loop(*lines, versions=(self.guard,)):
            code.heads[-1].add(
                assign(self.guard, f"{whole} or {count} > {COUNTED_ITERATIONS}"),
            )
            self._begin(body)
            with code.nest(over("_", start, f"min({start} + {WATCHED_ITERATIONS}, {count})")):
                yield
            self._end()
        code.lines = around

    def _begin(self, body):
        """Lines before a part: the items that it reads, and sums of nothing."""
        code = self._code
        for item, block in zip(self._items, self._blocks, strict=True):
            if not self._is_seen(body, item, block):
                continue
            place = self._held[item.op] = self._place(item, block)
            zero = code.number(block.dtype.type(0))
            with code.nest(when(f"not {self.guard}")):
                text = cast_text(zero if item.adds else place, block.dtype)
                code.add(assign(self._names[item.op], text))

    def _end(self):
        """Lines after a part: what it added goes to its item."""
        for item, block in zip(self._items, self._blocks, strict=True):
            place = self._held.get(item.op)
            if place is not None and item.adds:
                text = cast_text(f"{place} + {self._names[item.op]}", block.dtype)
                with self._code.nest(when(f"not {self.guard}")):
                    self._code.add(assign(place, text))

    def _is_seen(self, body, item, block):
        """Whether all indices it needs are proven to be within axes where no guard holds."""
        meeting = item.meeting
        needed = [*enumerate(indices_of(item.op)), (meeting.axis, meeting.other)]
        return all(
            self._is_within(body, index, axis, item.variable.parameter, block.dimensions[axis])
            for axis, index in needed
        )

    def _is_within(self, body, index, axis, x, dimension):
        code, counts = self._code, self._code.counts
        graph = body if type(index) is int else index.graph
        if counts.is_within(index, counts.length(x, axis), graph):
            return True
        if type(index) is not int:
            return code.guard_in(body, index, dimension) is not None
        code.heads[-1].add(assign(self.guard, f"{self.guard} or {index} >= {dimension}"))
        return True

    def _place(self, item, block):
        """Source of an item in its buffer."""
        terms = [
            times(f"({self._source(index)})", product(block.dimensions[axis + 1 :]))
            for axis, index in enumerate(indices_of(item.op))
        ]
        return f"{block.base.name}[{total(block.offset, *terms)}]"

    def holds(self, op, block) -> bool:
        """Whether an operation's item is in a register where no guard holds, and not in memory."""
        places = {item.op: own for item, own in zip(self._items, self._blocks, strict=True)}
        return op in self._held and places[op].base is block.base

    def name(self, op) -> str:
        """The register: what is read, or the sum."""
        return self._names[op]
