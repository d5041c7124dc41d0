"""Fills of arrays whose items a loop stores before anything reads them: only the others are filled.

A step of ``new = np.empty(n)`` and ``new[i] = ...`` for all items but those at the ends fills the
whole grid, and then stores almost all of it again; and so does its adjoint, where the first sum
that gets to an item adds to zero. The items that a nest of loops stores are a box: along each axis
a range that one loop goes through, or one place. A fill need not touch what is in the box, if

* the loops count, and store in each iteration, whatever branches are taken;
* what uses the array before that only stores items;
* what uses it in the loops comes to an item after the store, or never: by the indices of the store
  and of the other access, which differ by a constant along the axis of the outermost loop for which
  they differ, it is an item of an earlier iteration, or one outside of the box.

A sum that comes to its item before anything else does stores what it would have added to zero.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from math import prod
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.access_sets import AccessSets, indices_of
from nbta.compiler.array_versions import UnknownError, Versions
from nbta.compiler.induction import (
    ADD,
    MAXIMUM,
    MUL,
    SUB,
    Counts,
    Iteration,
    Linear,
    Order,
    is_outside,
    positive,
)
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.passes import prune
from nbta.compiler.program import Program, changes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import running, substitute
from nbta.graph.operation import Operation, Tensor
from nbta.graph.views import Loop, Variable, is_branch, is_loop, place_of
from nbta.ops.core.arithmetic import maximum
from nbta.ops.core.dispatch import CONSTANT, PARAMETER, constant_in
from nbta.ops.core.filling import FILL, FILL_AROUND
from nbta.ops.core.shaping import CAST, IDENTITY, INT64, SHAPE, SIZE, cast
from nbta.ops.indexing.items import ADD_ITEM, GETITEM, SET_ITEM
from nbta.ops.loops.iteration_counts import Limit, is_integer, limit_before, step_of
from nbta.tuning import FOLLOWED_ACCESSES, WHOLE_FILL


@contract(requires=[Fact.RANKS])
@changes
def fill_around(program: Program) -> Program:
    """Fill arrays around the items that a loop stores before anything reads them."""
    search = _Search(analysis(Counts, program), analysis(AccessSets, program))
    fills = [op for op in running(program) if op.record is FILL and _is_long(op.outputs[0].spec)]
    found = [(op, box) for op in fills if (box := search.box(op)) is not None]
    replaced: dict = defaultdict(dict)
    for op, box in found:
        replaced[op.graph].update(box.left_out_of(op))
        if box.store.record is ADD_ITEM:
            replaced[box.store.graph].update(_stored_first(box.store))
    for graph, pairs in replaced.items():
        substitute(graph, pairs)
    return prune.in_place(program) if found else program


def _is_long(spec):
    """Whether it may take longer to fill all than to find what is to be filled."""
    few = shapes.is_known(spec.shape) and prod(spec.shape) <= WHOLE_FILL
    return bool(spec.rank) and spec.dtype.kind in "biufc" and not few


class _Level(NamedTuple):
    """A loop of the nest that stores a box.

    Attributes
    ----------
    variable : Variable
        The array.
    before : tuple of Tensor
        Its versions in an iteration up to the change.
    change : Operation
        The store, or the next loop of the nest.
    """

    variable: Variable
    before: tuple[Tensor, ...]
    change: Operation

    @property
    def loop(self) -> Loop:
        """The loop."""
        return self.variable.loop

    @property
    def after(self) -> Tensor:
        """The version that the change makes."""
        return _changed(self.change, self.before[-1])


def _changed(op, version):
    """What an operation that changes an array makes of a version."""
    return op.outputs[_places(op, version)[0]]


def _places(op, version):
    """Where an operation takes a version."""
    return [place for place, tensor in enumerate(op.inputs) if tensor is version]


class _Walk(NamedTuple):
    """By which loop an index goes along an axis, and how.

    Attributes
    ----------
    level : int or None
        The place of the loop in the nest; None for an index that stays.
    step : int
    form : Linear
    """

    level: int | None
    step: int
    form: Linear


class _Box(NamedTuple):
    """The items that a nest of loops stores, each once."""

    levels: list[_Level]
    walks: list[_Walk]
    limits: list[Limit]

    @property
    def store(self) -> Operation:
        """What stores an item."""
        return self.levels[-1].change

    def left_out_of(self, fill: Operation) -> dict[Tensor, Tensor]:
        """A fill of what is around the box alone, in place of one."""
        graph, bounds = fill.graph, []
        with graph.as_default(), graph.control_dependencies(None):
            for index, walk in zip(indices_of(self.store), self.walks, strict=True):
                first, count = _on_entry(index, graph), _on_entry(1, graph)
                if walk.level is not None:
                    limit = self.limits[walk.level]
                    low, high = (_on_entry(end, graph) for end in (limit.low, limit.high))
                    count = high - low + np.int64(limit.more)
                    first = first if walk.step > 0 else first - count + np.int64(1)
                bounds += [first, count]
            attrs = {**fill.attrs, "axes": tuple(range(len(self.walks)))}
            made = graph.create(FILL_AROUND, [*fill.inputs, *bounds], attrs)
        made.location = fill.location
        keep_shapes(fill.outputs, made.outputs)
        return {fill.outputs[0]: made.outputs[0]}


def _goes_along_rows(box):
    """Whether the innermost loop of a nest stores items next to each other.

    Where it goes down columns, the loop around it goes through several columns at once if it only
    adds to items: with stores the gradient of sums of columns takes 1.6 times as long.
    """
    inner = len(box.levels) - 1
    return not inner or box.walks[-1].level == inner


def _stored_first(op):
    """A store of what an operation would add to zero, in place of that."""
    x, value, *indices = op.inputs
    with op.graph.as_default(), op.graph.control_dependencies(None):
        value = value + constant_in(op.graph, np.zeros((), value.dtype))  # of -0.0 makes 0.0
        made = op.graph.create(SET_ITEM, [x, value, *indices], op.attrs)
    made.location = op.location
    return {op.outputs[0]: made.outputs[0]}


#: What an integer may be computed by once more, before the loops whose first iteration has it.
_COMPUTED = frozenset((ADD, SUB, MUL, MAXIMUM, CAST, IDENTITY))


def _before(tensor) -> Tensor | None:
    """What a parameter of a body is in the first iteration, in the graph around."""
    body = tensor.graph
    if tensor.op.record is not PARAMETER or body.owner is None or not is_loop(body.owner):
        return None
    return body.owner.inputs[place_of(tensor)]


def _counted(tensor) -> tuple[Tensor, Limit, int] | None:
    """Of what a loop has counted: the first number, the loop's limit, and the step."""
    if not is_loop(tensor.op):
        return None
    variable, limit = Loop(tensor.op).variable(tensor.index), limit_before(Loop(tensor.op))
    step = step_of(variable.parameter)
    return None if None in (limit, step) else (variable.first, limit, step)


def _waits_for_no_fill(tensor) -> bool:
    """Whether few operations compute an integer, and no fill, which may be to wait for it."""
    todo = [tensor.op]
    for number, op in enumerate(todo):
        if number == FOLLOWED_ACCESSES or op.record is FILL or op.control_inputs:
            return False
        todo += [each.op for each in op.inputs]
    return True


def _is_taken(tensor, graph):
    """Whether an integer of a graph is there for an operation that a fill has to wait for."""
    return tensor.graph is graph and _waits_for_no_fill(tensor)


def _is_on_entry(tensor, graph) -> bool:
    """Whether `_on_entry` can compute an integer, by few operations."""
    todo = [tensor]
    for number, each in enumerate(todo):
        if number == FOLLOWED_ACCESSES:
            return False
        if type(each) is int or each.op.record is CONSTANT or _is_taken(each, graph):
            continue
        before, counted = _before(each), _counted(each)
        if before is not None:
            todo.append(before)
        elif counted is not None:
            first, limit, _ = counted
            todo += [first, limit.low, limit.high]
        elif each.op.record in _COMPUTED and not each.op.control_inputs:
            todo += each.op.inputs
        else:
            return False
    return all(type(each) is int or is_integer(each) for each in todo)


def _on_entry(tensor, graph):
    """An integer of bodies of loops in their first iterations, in a graph around them."""
    if type(tensor) is int:
        return constant_in(graph, np.int64(tensor))
    op = tensor.op
    if op.record is CONSTANT:
        return constant_in(graph, np.int64(op.attrs["value"]))
    if _is_taken(tensor, graph):
        return tensor if tensor.dtype == INT64 else cast(tensor, INT64)
    before, counted = _before(tensor), _counted(tensor)
    if before is not None:
        return _on_entry(before, graph)
    if counted is not None:
        first, limit, step = counted
        left = limit.iterations(lambda end: _on_entry(end, graph))
        return _on_entry(first, graph) + maximum(left, np.int64(0)) * np.int64(step)
    inputs = [_on_entry(each, graph) for each in op.inputs]
    if op.record in (CAST, IDENTITY):
        return inputs[0]
    return graph.create(op.record, inputs, dict(op.attrs)).outputs[0]


class _Search(NamedTuple):
    """Finds boxes that fills may leave out."""

    counts: Counts
    access: AccessSets

    def box(self, fill: Operation) -> _Box | None:
        """What a fill need not fill: of some boxes the first one of the deepest nest of loops."""
        found = islice(self._boxes(fill), FOLLOWED_ACCESSES)
        return max(found, key=lambda box: len(box.levels), default=None)

    def _boxes(self, fill) -> Iterator[_Box]:
        """The boxes that loops of the fill's graph store before anything reads their items."""
        graph, version, earlier = fill.graph, fill.outputs[0], []
        while len(earlier) < FOLLOWED_ACCESSES:
            op = self._only_change(version, graph)
            if op is None or not self._only_counts(version, graph):
                return
            if is_loop(op):
                variable = Loop(op).variable(_places(op, version)[0])
                for levels in self._nests(variable):
                    box = self._box_of(levels, graph)
                    if box is not None and self._is_first(box, fill, earlier):
                        yield box
                if not self._only_stores(variable):
                    return
            elif op.record is not SET_ITEM:
                return
            earlier.append(op)
            version = _changed(op, version)

    def _users(self, version, graph):
        return list(dict.fromkeys(self.access.users(graph)[version]))

    def _only_change(self, version, graph) -> Operation | None:
        """The one operation that changes a version of an array, whatever runs; else None.

        The others read, or none of them is known.
        """
        users = self._users(version, graph)
        if None in users:
            return None
        found = [op for op in users if not self._reads(op, version)]
        if len(found) != 1 or len(_places(found[0], version)) != 1:
            return None
        (op,) = found
        (place,) = _places(op, version)
        known = place < Loop(op).count if is_loop(op) else op.record in (SET_ITEM, ADD_ITEM)
        return op if known and (is_loop(op) or place == 0) else None

    def _reads(self, op, version):
        """Whether an operation only reads a version, as a branch may, and loops do."""
        if op.record in (SHAPE, SIZE, GETITEM):
            return True
        if is_loop(op):
            return _places(op, version)[0] >= Loop(op).count
        return is_branch(op) and not _result(self._steps().by_user(op, version))

    def _only_counts(self, version, graph):
        """Whether a version is changed and asked for its shape, and nothing reads its items."""
        asked = (SHAPE, SIZE)
        users = self._users(version, graph)
        return sum(op.record not in asked for op in users) == 1

    def _only_stores(self, variable):
        """Whether a loop only stores items."""
        try:
            steps = self._steps().carried_by(variable)
            return all(each.op.record is SET_ITEM for each in _some(steps))
        except UnknownError:
            return False

    def _steps(self):
        return Versions(self.access, None, Order.ANY)

    def _nests(self, variable: Variable) -> Iterator[list[_Level]]:
        """The nests of loops, from a loop on, that change an array in each iteration."""
        loop, before = variable.loop, [variable.parameter]
        if self.access.users(loop.cond).get(variable.tested):
            return
        while len(before) <= FOLLOWED_ACCESSES:
            op = self._only_change(before[-1], loop.body)
            if op is None:
                return
            level = _Level(variable, tuple(before), op)
            if is_loop(op):
                inner = Loop(op).variable(_places(op, before[-1])[0])
                yield from ([level, *rest] for rest in self._nests(inner))
            else:
                yield [level]
            before.append(level.after)

    def _box_of(self, levels, graph) -> _Box | None:
        """The items that a nest of loops stores, if these are a box that is known before it."""
        outer, store = levels[0].loop, levels[-1].change
        limits = [limit_before(level.loop) for level in levels]
        if None in limits or not all(self._stays(limit, outer, graph) for limit in limits):
            return None
        walks = [self._walk(index, levels, graph) for index in indices_of(store)]
        by = [walk.level for walk in walks if walk is not None and walk.level is not None]
        if None in walks or sorted(by) != list(range(len(levels))):
            return None
        return _Box(levels, walks, limits)

    def _stays(self, limit, outer, graph):
        """Whether a loop of a nest runs as many iterations each time."""
        left = self.counts.number(limit.high) - self.counts.number(limit.low)
        ends = (limit.low, limit.high)
        return is_outside(left, outer.body) and all(_is_on_entry(end, graph) for end in ends)

    def _walk(self, index, levels, graph) -> _Walk | None:
        """How the loops of a nest go along an axis; None where one index is not all there is."""
        if isinstance(index, slice):
            return None
        form = self.counts.number(index)
        steps = {k: form.terms.get(Iteration(level.loop.body), 0) for k, level in enumerate(levels)}
        steps = {k: step for k, step in steps.items() if step}
        rest = form
        for k, step in steps.items():
            rest = rest - Linear(0, {Iteration(levels[k].loop.body): step})
        ((level, step),) = list(steps.items())[:1] or [(None, 0)]
        known = is_outside(rest, levels[0].loop.body) and _is_on_entry(index, graph)
        return _Walk(level, step, form) if known and len(steps) <= 1 >= abs(step) else None

    def _is_first(self, box, fill, earlier) -> bool:
        """Whether whatever comes to an item of a box before its store is stores alone.

        Before a sum nothing comes to it.
        """
        adds = box.store.record is ADD_ITEM
        if adds and not (_goes_along_rows(box) and self._adds_to_zero(box, fill, earlier)):
            return False
        try:
            return all(
                self._is_after(each.op, box, depth, strict=strict)
                for depth, level in enumerate(box.levels)
                for each, strict in _some(self._accesses(level))
                if each.op is not box.store and (adds or each.op.record is not SET_ITEM)
            )
        except UnknownError:
            return False

    def _accesses(self, level):
        """The accesses in a loop, with whether the level's change comes after them."""
        body, steps = level.loop.body, self._steps()
        for version in level.before:
            for op in self._users(version, body):
                if op is not level.change:
                    yield from ((each, True) for each in steps.by_user(op, version))
        found: list = []
        yield from ((each, False) for each in _noting(steps.made_of(level.after, body), found))
        if found not in ([], [level.variable.place]):
            raise UnknownError

    def _is_after(self, op, box, depth, *, strict) -> bool:
        """Whether an access in a loop of the nest comes to the items of a box after their store.

        ``strict`` tells that it is before the store in each iteration.
        """
        indices = indices_of(op)
        for level in range(depth + 1):
            axis = next(a for a, walk in enumerate(box.walks) if walk.level == level)
            walk, form = box.walks[axis], self.counts.unwrapped(indices[axis])
            if form is None:
                return False
            gap = (walk.form - form) * walk.step
            if gap.terms or gap.constant < 0:
                return False
            if gap.constant:
                return True
        return not strict

    def _adds_to_zero(self, box, fill, earlier) -> bool:
        """Whether a sum is of numbers, one for each item of a box, that is zero as it is filled."""
        store, value = box.store, fill.inputs[1]
        number = store.inputs[1].spec.rank == 0 and store.inputs[1].dtype == value.dtype
        zero = value.op.record is CONSTANT and not any(value.op.attrs["value"].tobytes())
        own = all(self.counts.unwrapped(index) is not None for index in indices_of(store))
        plain = number and zero and value.dtype.kind == "f" and own
        return plain and all(self._is_beside(op, box) for op in earlier)

    def _is_beside(self, op, box):
        """Whether a store is of an item outside of a box."""
        if op.record is not SET_ITEM:
            return False
        return any(
            self._is_apart(index, walk, box)
            for index, walk in zip(indices_of(op), box.walks, strict=True)
        )

    def _is_apart(self, index, walk, box):
        """Whether an index is not among those that a walk comes to."""
        form = self.counts.unwrapped(index)
        if form is None:
            return False
        first, count = walk.form, Linear(1)
        if walk.level is not None:
            loop = box.levels[walk.level].loop
            first = first - Linear(0, {Iteration(loop.body): walk.step})
            count = self.counts.iterations(loop.op)
        last = first + (count + -1) * walk.step
        low, high = (first, last) if walk.step >= 0 else (last, first)
        gaps = (form - high + -1, low - form + -1)
        return any(self.counts.is_natural(positive(gap, count)) for gap in gaps)


def _noting(steps, found):
    """What a generator yields; and what it returns, in a list."""
    found += yield from steps


def _result(steps):
    """What a generator returns."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        except UnknownError:
            return True


def _some(accesses):
    """Some accesses, one after another; an error where there are too many to look at."""
    for number, each in enumerate(accesses):
        if number == FOLLOWED_ACCESSES:
            raise UnknownError
        yield each
