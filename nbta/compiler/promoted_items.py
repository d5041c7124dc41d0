"""Items that a loop reads or adds to, in registers, where one iteration alone meets them otherwise.

In ``d[i, j] = min(d[i, j], d[i, k] + d[k, j])`` the loop over ``j`` reads item ``k`` of row ``i``
in each iteration, and changes it in iteration ``k``. The gradient adds to that item in each
iteration, and takes what is in it in one. In memory, each iteration would wait for the one before,
and LLVM would make no vector instructions. So code for such a loop goes through two parts, with a
cut at the iteration that has the other access (index set splitting): before a part an item is
loaded, and after it what the part added is added to it (scalar promotion). Where an index may be
outside of its axis, everything goes to memory as it is written. What an iteration adds to an item
that the next one takes is in a register, too.

`nbta.compiler.scalar_promotion` promotes items that nothing else in a loop meets.
"""

from contextlib import contextmanager
from typing import NamedTuple

from nbta.codegen.values import product, times, typed
from nbta.compiler.access_sets import differ, indices_of, touched
from nbta.compiler.induction import Counts, Linear
from nbta.compiler.sums import FLOATS
from nbta.graph.graph import SubGraph
from nbta.graph.operation import DATA, Operation, Tensor
from nbta.graph.views import Branch, Loop, Variable
from nbta.loops import Load, Name, assign, call, do, either, negated, over, select, when
from nbta.loops.nodes import ZERO, as_node
from nbta.ops.indexing.items import ADD_ITEM, GETITEM, SET_ITEM
from nbta.ops.loops.branch import CASE
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


class Carried(NamedTuple):
    """Additions to an item that the next iteration reads and replaces.

    In the gradient of ``c[i, j] = f(c[i - 1, j], c[i, j - 1])`` an iteration over ``j`` takes what
    is in an item, and adds to two others, of which the next iteration takes one. Without the other
    one LLVM has the sum in a register by itself, and a recurrence takes 1.06 times as long so. In a
    branch it has not: value and gradient of a recurrence over the largest number so far took 4.9
    times the function, as each iteration waited for what the one before had just stored.

    Attributes
    ----------
    read : Operation
        Of the item that an iteration takes.
    additions : list of Operation
        To the one that the next iteration takes, in branches of the body, too.
    variable : Variable
        The array.
    is_left : bool
        Whether a branch sets the item, which stays as it is where another one runs.
    """

    read: Operation
    additions: list[Operation]
    variable: Variable
    is_left: bool


def carried(loop: Loop, counts: Counts) -> list[Carried]:
    """The arrays of a loop whose additions go to what its next iteration takes."""
    found = []
    for variable in loop.variables():
        spec = variable.parameter.spec
        if spec.kind != DATA or spec.rank == 0 or spec.dtype not in FLOATS or variable.is_kept:
            continue
        use = touched(variable)
        taken = None if use is None else _taken(use, variable.loop.body, counts)
        if taken is not None:
            body, later = variable.loop.body, _after_its_set(use, variable)
            own = [op for op in later if _adds_to_next(op, taken, variable, counts)]
            in_branch = any(op.graph is not body for op in own)
            if own and (in_branch or len(own) + 1 < len(use.changes)):
                is_set = all(op.graph is body for op in use.changes if op.record is SET_ITEM)
                found.append(Carried(use.reads[0], own, variable, not is_set))
    left = [each for each in found if each.is_left]
    # each costs a store in iterations that are skipped: with two, `hvp` of dynamic time warping
    # takes 1.08 times as long
    return found if len(left) < 2 else [each for each in found if not each.is_left]


def _taken(use, body, counts):
    """By axis, the index of the one item that an iteration reads, and sets; or None."""
    sets = [op for op in use.changes if op.record is SET_ITEM]
    if len(use.reads) != 1 or len(sets) != 1 or use.reads[0].graph is not body:
        return None
    if not all(map(_is_number, (*use.reads, *sets))):
        return None
    forms, others = ([counts.affine(i, body) for i in indices_of(op)] for op in (*use.reads, *sets))
    steps = [form[1] for form in forms if form is not None]
    known = None not in forms and forms == others
    return forms if known and any(steps) and all(abs(step) <= 1 for step in steps) else None


def _is_number(op):
    """Whether an operation reads or changes one number, without more."""
    indices = indices_of(op)
    value = op.outputs[0] if op.record is GETITEM else op.inputs[1]
    return (
        len(indices) == op.inputs[0].spec.rank
        and all(
            i >= 0 if type(i) is int else isinstance(i, Tensor) and is_integer(i) for i in indices
        )
        and value.spec.rank == 0
        and value.dtype == op.inputs[0].dtype
        and not op.control_inputs
    )


def _adds_to_next(op, taken, variable, counts):
    """Whether an addition goes to what the next iteration takes."""
    body = variable.loop.body
    if op.record is not ADD_ITEM or not _is_number(op):
        return False
    forms = [counts.affine(index, body) for index in indices_of(op)]
    return None not in forms and all(
        step == their and start == first + their
        for (start, step), (first, their) in zip(forms, taken, strict=True)
    )


def _after_its_set(use, variable) -> list[Operation]:
    """Additions of an iteration after it has set the item that it read just before.

    Those of a branch are among them if it is the only one that changes the array.
    """
    version, found = variable.following, []
    while version is not variable.parameter and version.op.record is not SET_ITEM:
        op = version.op
        if op.record is ADD_ITEM:
            found.append(op)
            version = op.inputs[0]
        elif op.record is CASE:
            ends = [branch.outputs[version.index] for branch in Branch(op).branches]
            changed = [end for end in ends if end not in end.graph.sources]
            if len(changed) != 1:
                return []
            version = changed[0]
        else:
            version = version.graph.sources[version]
    if version is variable.parameter:
        return []
    before, read = version.op.inputs[0], use.reads[0].inputs[0]
    while before is not read and before in getattr(before.graph, "sources", ()):
        before = before.graph.sources[before]
    return found if before is read else []


def promotable(loop: Loop, counts: Counts) -> list[Item]:
    """The items of a loop that other accesses meet in one iteration alone, the same for all."""
    found = []
    for variable in loop.variables():
        spec = variable.parameter.spec
        if spec.kind != DATA or spec.rank == 0 or spec.dtype not in FLOATS or variable.is_kept:
            continue
        use = touched(variable)
        others = use and _others(counts, use)
        for op in () if use is None else (*use.reads, *use.changes):
            meeting = _met_once(op, others, variable, counts)
            if meeting is not None and not (found and _differs(meeting, found[0].meeting)):
                found.append(Item(op, variable, meeting))
    return found


def _differs(one, other):
    return one.iteration != other.iteration


def _others(counts, use):
    """By the record of an operation, the accesses that may meet its item, and their order."""
    added_after = [*use.reads, *(each for each in use.changes if each.record is SET_ITEM)]
    return {
        GETITEM: (_ByIndices(counts, use.changes), _reads_before),
        ADD_ITEM: (_ByIndices(counts, added_after), _adds_after),
    }


class _ByIndices:
    """Accesses to an array, of which constant indices tell most apart without a comparison."""

    def __init__(self, counts, accesses):
        self._counts, self._accesses = counts, accesses
        self._places: dict = {}  # by axis and index, which is None where it is not constant
        for place, access in enumerate(accesses):
            for key in self._keys(access):
                self._places.setdefault(key, []).append(place)

    def _keys(self, access):
        forms = map(self._counts.unwrapped, indices_of(access))
        known = (None if form is None or form.terms else form.constant for form in forms)
        return list(enumerate(known))

    def beside(self, op):
        """Those that are not known to be of another item by the constant indices of an axis."""
        found = [
            [*self._places.get(key, ()), *self._places.get((key[0], None), ())]
            for key in self._keys(op) if key[1] is not None
        ]  # fmt: skip
        places = sorted(min(found, key=len)) if found else range(len(self._accesses))
        return [self._accesses[place] for place in places]


def _met_once(op, others, variable, counts) -> Meeting | None:
    """Where other accesses meet the item of an operation; None for nowhere, or if unknown."""
    body = variable.loop.body
    if op.record not in others or op.graph is not body or not _is_fixed(op, counts, body):
        return None
    accesses, is_ordered = others[op.record]
    met, meeting = [], None
    for other in accesses.beside(op):
        if differ(counts, op, other, body):
            continue
        found = _meeting(counts, op, other, body)
        if found is None or (meeting is not None and _differs(found, meeting)):
            return None
        met.append(other)
        meeting = meeting or found
    return meeting if meeting is not None and is_ordered(op, met, variable) else None


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
        return Meeting((counts.number(item) - start) * step, item, index, step, axis)
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
    moving : list of Carried
    on_entry : callable
        ``on_entry(index)`` is an index of the loop's body in the next iteration to run,
        or None.
    blocks : dict
        By variable of ``items`` and ``moving``, the array.

    Attributes
    ----------
    guard : str
        The truth value of whether items are read and added to in memory: where iterations are few,
        and where indices may be outside of their axes.
    """

    def __init__(self, code, items, moving, on_entry, blocks):
        self._code, self._items, self._moving, self._blocks = code, items, moving, blocks
        self._on_entry = on_entry
        self.guard = code.name("u")
        self._names = {item.op: code.name("r") for item in items}
        self._array = {item.op: blocks[item.variable] for item in items}
        self._sums: dict[Name, Load] = {}  # by register of a sum, its item's place
        self._held: set[Operation] = set()
        for each in moving:
            name = code.name("r")
            self._names |= dict.fromkeys((each.read, *each.additions), name)
            self._array |= dict.fromkeys((each.read, *each.additions), blocks[each.variable])
        self._added_to = {each.read for each in moving}
        self._left = {each.read for each in moving if each.is_left}

    @property
    def is_plain(self) -> bool:
        """Whether all indices it needs have a source before the loop."""
        operations = [*(item.op for item in self._items), *(each.read for each in self._moving)]
        indices = [index for op in operations for index in indices_of(op)]
        indices += [item.meeting.other for item in self._items]
        return None not in map(self._source, indices)

    def _source(self, index):
        return as_node(index) if type(index) is int else self._on_entry(index)

    def _cuts(self, iterations):
        """How many iterations are before each cut.

        A read has its cut after the iteration that meets it, and an addition before that one.
        """
        code = self._code
        for after in sorted({not item.adds for item in self._items}):
            meeting = self._items[0].meeting
            low, high = self._source(meeting.other), self._source(meeting.item)
            if meeting.step < 0:
                low, high = high, low
            met = high - low + 1 if after else high - low
            yield code.variable(call("max", 0, call("min", met, iterations)))

    @contextmanager
    def each_iteration(self, body, iterations, watch_word):
        """The lines of an iteration, in parts."""
        code, around = self._code, self._code.lines
        start, few = code.name("i"), iterations < PARTED_ITERATIONS
        count, cuts = iterations, list(self._cuts(iterations))
        if cuts:
            part, count = code.name("p"), code.name("n")
            length = iterations - cuts[-1]
            for number in reversed(range(len(cuts))):
                here = cuts[number] - cuts[number - 1] if number else cuts[0]
                length = select(part.equals(number), here, length)
            code.lines = around.nest(over(part, select(few, 1, 1 + len(cuts))))
            code.add(assign(count, select(few, iterations, length)))
            code.count(body, count)
        lines = [
            over(start, 0, count, WATCHED_ITERATIONS),
            do("watch", "w", watch_word, start + (WATCHED_ITERATIONS - 1)),
        ]
        with code.loop(*lines, versions=(self.guard,)):
            code.heads[-1].add(assign(self.guard, either(few, count > COUNTED_ITERATIONS)))
            self._unguarded(list(self._begun(body)))
            with code.nest(over("_", start, call("min", start + WATCHED_ITERATIONS, count))):
                yield
            self._unguarded(list(self._ended()))
        code.lines = around

    def _unguarded(self, lines):
        if lines:
            with self._code.nest(when(negated(self.guard))):
                self._code.add(*lines)

    def _begun(self, body):
        """Lines before a part: the items that it reads, and sums of nothing."""
        for item in self._items:
            indices = [*enumerate(indices_of(item.op)), (item.meeting.axis, item.meeting.other)]
            if self._are_within(body, item.op, indices):
                self._held.add(item.op)
                name, place = self._names[item.op], self._place(item.op)
                if item.adds:
                    self._sums[name] = place
                first = self._zero(item.op) if item.adds else place
                yield assign(name, typed(first, self._array[item.op].dtype))
        for each in self._moving:
            operations = (each.read, *each.additions)
            pairs = [(op, enumerate(indices_of(op))) for op in operations]
            # after a part the next iteration's item is there, whichever branch would add to it
            if all(self._are_within(body, *pair, is_always=True) for pair in pairs):
                self._held.update(operations)
                name = self._names[each.read]
                self._sums[name] = self._place(each.read)  # after a part, the next iteration's
                yield assign(name, typed(self._zero(each.read), self._array[each.read].dtype))

    def _ended(self):
        """Lines after a part: what it added goes to its item."""
        for name, place in self._sums.items():
            dtype = next(self._array[op].dtype for op in self._held if self._names[op] == name)
            yield assign(place, typed(place + name, dtype))

    def _zero(self, op):
        return self._code.number(self._array[op].dtype.type(0))

    def _are_within(self, body, op, indices, *, is_always=False):
        """Whether indices are proven to be within axes where no guard holds.

        Those of branches are where the branch runs, or ``is_always``.
        """
        dimensions = self._array[op].dimensions
        return all(
            self._is_within(body, index, axis, op.inputs[0], dimensions[axis], is_always)
            for axis, index in indices
        )

    def _is_within(self, body, index, axis, x, dimension, is_always):
        code, counts = self._code, self._code.counts
        graph = body if is_always or type(index) is int else index.graph
        if counts.is_within(index, counts.length(x, axis), graph):
            return True
        if type(index) is not int:
            return code.guard_in(body, index, dimension) is not None
        code.heads[-1].add(assign(self.guard, either(self.guard, index >= dimension)))
        return True

    def _place(self, op):
        """An operation's item in its buffer, in the next iteration to run."""
        block = self._array[op]
        place = block.offset
        for axis, index in enumerate(indices_of(op)):
            step = times(self._source(index), product(block.dimensions[axis + 1 :]))
            place = step if place == ZERO else place + step
        return block.base.name[place]

    def holds(self, op, block) -> bool:
        """Whether a register is for an operation's item where no guard holds."""
        return op in self._held and self._array[op].base is block.base

    def added(self, op, value) -> list:
        """Lines that add to an item, where no guard holds."""
        name = self._names[op]
        return [assign(name, call("fast_add", name, value))]

    def read(self, op, name) -> list:
        """Lines that let a name have what is in an item, where no guard holds.

        Where a branch sets the item, the sum goes there, as another one may leave it as it is.
        """
        own, dtype = self._names[op], self._array[op].dtype
        if op not in self._added_to:
            return [assign(name, own)]
        lines = [
            assign(name, typed(name + own, dtype)),
            assign(own, typed(self._zero(op), dtype)),
        ]
        return [*lines, assign(self._place(op), name)] if op in self._left else lines
