"""Batches: the function of one item, built again for many items at once.

`batched` takes the body that computes an item and builds operations that compute all items
together: what differs between items has an axis for them, after all its own, and what they share
is computed once. A loop over iterations then has lanes of items within it, in place of a loop over
items with iterations in each. `nbta.ops.batches` has the rules of operations.

Loops and branches must take one way for all items: `Own` declines where an item decides how
often a loop runs, which branch is taken, or which item of an array is meant, and where it meets an
operation without a rule. Arrays are those that reverse mode makes; users' own, which may have slots
that nobody has written, are left alone.
"""

from __future__ import annotations

from collections import Counter

from nbta.graph.copying import Captured, Copy, copied
from nbta.graph.graph import SubGraph, at_line, current, running
from nbta.graph.operation import DATA, HANDLE, TAPES, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, is_branch, is_loop
from nbta.ops.arrays.tensor_arrays import CLOSE, CREATE, ITERATION, LOOKUP, READ, SIZE, WRITE
from nbta.ops.batches import RULES, by_item, with_lanes
from nbta.ops.core.shaping import SHAPE
from nbta.ops.loops.residuals import ADD_SAVED, ADD_SHADOWS, EMPTY, RESTORE, SAVE, SHADOW
from nbta.shapes import MAX_RANK
from nbta.tuning import LONG_BODY

#: Floats of fewer bytes are added up in wider ones, which the rules' products are not.
SHORTEST = 4


class DeclinedError(Exception):
    """Items are to be computed one after another."""


class Own:
    """What differs between the items of a body.

    Attributes
    ----------
    tensors : set of Tensor
        Values that do, in the body and in all bodies in it.
    arrays : set of Operation
        What makes arrays whose elements do, with their gradient arrays.
    """

    def __init__(self, body: SubGraph, rows: list[Tensor]):
        self.tensors, self.arrays = set(rows), set()
        self._made: dict[Tensor, set] = {}  # by handle: what may have made its array
        self._stored: dict = {}  # by what makes an array of handles: what may have made those
        self._changed = True
        while self._changed:
            self._changed = False
            self._walk(body)

    def may_be(self, handle: Tensor) -> set:
        """What may have made the array of a handle."""
        return self._made.get(handle, set())

    def pays(self, body: SubGraph, *, shares: bool) -> bool:
        """Whether items are computed faster together than one after another.

        Lanes of numbers hide the time that an iteration waits for the one before, so a loop must
        carry numbers of items, or change items of arrays that it reads. Arrays of items are vectors
        by themselves, and tables of several items leave the caches: stencils on 100 x 100 items
        took three times as long. LLVM makes no vectors of the iterations of a long body, nor of its
        statements: there, lanes are the only ones, and the tables are small beside the work. Where
        items share what does not differ (``shares``), that is computed once, which pays if it is
        most.
        """
        numbers, arrays, others, carried = Counter(), 0, 0, []
        for op in running(body):
            if is_loop(op):
                own = [v for v in Loop(op).variables() if v.last in self.tensors]
                carried += [v for v in own if not v.last.spec.is_tape]
            elif op.graph is not body and op.outputs and not self._is_moved(op):
                ranks = [tensor.spec.rank for tensor in op.outputs if tensor in self.tensors]
                numbers[op.graph] += 0 in ranks
                arrays += any(ranks) and not op.record.changes
                others += not ranks and op.record.pure and bool(op.inputs)
        total, is_long = numbers.total(), max(numbers.values(), default=0) >= LONG_BODY
        gains = is_long or any(map(_is_read, carried))
        if not shares:
            tables = any(v.last.spec.rank > 1 for v in carried)
            return gains and total > arrays and (is_long or not tables)
        return others > 2 * (total + arrays) or (gains and total + others > arrays)

    @staticmethod
    def _is_moved(op):
        """Whether an operation computes nothing."""
        return op.record.selects or op.record in _ON_TAPES

    def _walk(self, body):
        for op in ordered({tensor.op for tensor in body.outputs}):
            self._visit(op)

    def _visit(self, op):
        if is_loop(op):
            self._visit_loop(Loop(op))
        elif is_branch(op):
            self._visit_branch(Branch(op))
        elif op.record in _ON_ARRAYS:
            self._visit_array(op)
        elif op.record in _ON_TAPES:
            self._visit_tape(op)
        elif not self.tensors.isdisjoint(op.inputs):
            self._visit_values(op)
        elif not op.record.pure and op.record is not ITERATION:
            raise DeclinedError

    def _visit_loop(self, loop):
        inputs, body, cond = loop.op.inputs, loop.body, loop.cond
        for tensor, inner, tested in zip(inputs, body.inputs, cond.inputs, strict=True):
            self._pass(tensor, inner)
            self._pass(tensor, tested)
        self._walk(cond)
        self._walk(body)
        for place, end in enumerate(body.outputs):
            for other in (body.inputs[place], cond.inputs[place], loop.op.outputs[place]):
                self._pass(end, other)
            self._pass(inputs[place], loop.op.outputs[place])
        if loop.condition in self.tensors:
            raise DeclinedError

    def _visit_branch(self, case):
        if case.index in self.tensors:
            raise DeclinedError
        for branch in case.branches:
            for tensor, inner in zip(case.captured, branch.inputs, strict=True):
                self._pass(tensor, inner)
            self._walk(branch)
            for end, result in zip(branch.outputs, case.op.outputs, strict=True):
                self._pass(end, result)

    def _visit_array(self, op):
        if op.record is CREATE:
            if op.inputs[0] in self.tensors:
                raise DeclinedError
            self._add(self._made, op.outputs[0], {op})
            return
        if op.record in (READ, WRITE) and op.inputs[1] in self.tensors:
            raise DeclinedError
        arrays = self.may_be(op.inputs[0])
        if op.record is LOOKUP:
            self._add(self._made, op.outputs[0], arrays)
        elif op.record is WRITE:
            value = op.inputs[2]
            for array in arrays if value.kind == HANDLE else ():
                self._add(self._stored, array, self.may_be(value))
            self._equalise(arrays, value)
        elif op.record is READ:
            for array in arrays if op.outputs[0].kind == HANDLE else ():
                self._add(self._made, op.outputs[0], self._stored.get(array, set()))
            self._equalise(arrays, None)
            if not self.arrays.isdisjoint(arrays):
                self._note(op.outputs[0])

    def _visit_tape(self, op):
        """A tape has own values if one of them is: all have the same axes."""
        tape, index, value = [*op.inputs, None, None, None][:3]
        if index in self.tensors or (op.record is ADD_SAVED and self._is_new(tape, value)):
            raise DeclinedError
        for tensor in op.inputs:
            if tensor is not index:
                self._pass(tensor, op.outputs[0])
        if op.record is not RESTORE and tape is not None:
            self._pass(op.outputs[0], tape)

    def _is_new(self, shadow, value):
        """Whether a value has an axis for items, and what a shadow begins with has none."""
        return value in self.tensors and shadow not in self.tensors and not value.spec.is_tape

    def _equalise(self, arrays, value):
        """Let all arrays that an access may mean have own elements, if one has."""
        if value not in self.tensors and self.arrays.isdisjoint(arrays):
            return
        if not arrays or not all(array.facts.is_saved for array in arrays):
            raise DeclinedError
        self._changed |= not arrays <= self.arrays
        self.arrays |= arrays

    def _visit_values(self, op):
        rule = RULES.get(op.record)
        if rule is None and not op.record.elementwise:
            raise DeclinedError
        if rule is not None:
            places = range(len(op.inputs)) if rule.own is None else rule.own
            own = [place for place, t in enumerate(op.inputs) if t in self.tensors]
            if not set(own) <= set(places) or not rule.fits(op):
                raise DeclinedError
        if not all(map(_is_plain, [*op.inputs, *op.outputs])):
            raise DeclinedError
        if rule is None or not rule.uniform:
            for tensor in op.outputs:
                self._note(tensor)

    def _pass(self, one, other):
        if one in self.tensors:
            self._note(other)
        if one.kind in (HANDLE, TAPES[HANDLE]):
            self._add(self._made, other, self.may_be(one))

    def _note(self, tensor):
        if tensor.kind in (DATA, TAPES[DATA]) and tensor not in self.tensors:
            self.tensors.add(tensor)
            self._changed = True

    def _add(self, sets, key, found):
        have = sets.setdefault(key, set())
        self._changed |= not found <= have
        have |= found


def _is_read(variable):
    """Whether a loop carries a number, or an array of which it reads items."""
    if variable.parameter.spec.rank == 0:
        return True
    versions = {variable.parameter}
    for op in ordered({tensor.op for tensor in variable.loop.body.outputs}):
        if op.record.changes and op.inputs[0] in versions:
            versions.update(op.outputs)
        elif op.record.selects and op.record is not SHAPE and op.inputs[0] in versions:
            return True
    return False


_ON_ARRAYS = frozenset({CREATE, READ, WRITE, LOOKUP, SIZE, CLOSE})
_ON_TAPES = frozenset({EMPTY, SAVE, RESTORE, SHADOW, ADD_SAVED, ADD_SHADOWS})


def _is_plain(tensor):
    """Whether a value is one that rules are for: of a known rank, and no short float."""
    spec = tensor.spec
    short = spec.dtype.kind in "fcV" and spec.dtype.itemsize < SHORTEST
    return spec.rank is not None and spec.rank < MAX_RANK and not short


def batched(body: SubGraph, own: Own, rows: list[Tensor], lanes: int) -> list[Tensor]:
    """Results of a body for many items, in the graph that is being built.

    Parameters
    ----------
    body : SubGraph
        Of an item: a parameter for each of ``rows``, and then for what it captures.
    own : Own
    rows : list of Tensor
        The values of all items, which are along the last axis.
    lanes : int
        How many items there are.

    Returns
    -------
    list of Tensor
        Each with an axis for items, after its own.
    """
    known = dict(zip(body.inputs, rows, strict=False))
    build = _Build(own, lanes)
    tensors = Captured(body, current(), known)
    copy = Copy(current(), body.scope, build.rule, tensors)
    found = copy.fill(body.inputs, body.outputs)[0]
    return [build.for_each(new, old) for new, old in zip(found, body.outputs, strict=True)]


def replayed(body: SubGraph, rows: list[Tensor]) -> list[Tensor]:
    """Results of a body for one item, in the graph that is being built."""
    tensors = Captured(body, current(), dict(zip(body.inputs, rows, strict=False)))
    return Copy(current(), body.scope, copied, tensors).fill(body.inputs, body.outputs)[0]


class _Build:
    """The rule by which a body is built again for many items."""

    def __init__(self, own, lanes):
        self._own, self._lanes = own, lanes

    def rule(self, copy: Copy, op, inputs):
        """The results that stand for an operation's."""
        with copy.graph.as_default(), copy.graph.control_dependencies(None):
            if is_loop(op):
                return self._loop(copy, op, inputs)
            if is_branch(op):
                return self._branch(copy, op, inputs)
            if op.record in _ON_ARRAYS:
                return self._access(copy, op, inputs)
            if op.record in _ON_TAPES:
                return self._on_tape(copy, op, inputs)
            if self._own.tensors.isdisjoint(op.inputs):
                return copied(copy, op, inputs)
            rule = RULES.get(op.record)
            with at_line(op.location):
                build = by_item if rule is None else rule.build
                made = build(op, inputs, self._lanes)
            copy.stands_for(op, made[0].op)
            made[0].op.control_inputs += copy.after(op)
            return made

    def for_each(self, new, old):
        """A value for each item, where they share it, too."""
        if new.kind != DATA:
            return new
        return with_lanes(new, old, self._lanes)

    def _as_own(self, new, old, is_own):
        return self.for_each(new, old) if is_own else new

    def _loop(self, copy, op, inputs):
        loop, own = Loop(op), [tensor in self._own.tensors for tensor in op.outputs]
        first = [self._as_own(*trio) for trio in zip(inputs, op.inputs, own, strict=False)]
        cond, body = self._body(copy, loop.cond, None), self._body(copy, loop.body, own)
        return copy.create(op, [*first, *inputs[loop.count :]], loop.attrs(cond, body))

    def _branch(self, copy, op, inputs):
        own = [tensor in self._own.tensors for tensor in op.outputs]
        branches = tuple(self._body(copy, branch, own) for branch in Branch(op).branches)
        return copy.create(op, inputs, {**op.attrs, "branches": branches})

    def _body(self, copy, old, own):
        """A body for many items, some of whose results each item has for itself."""
        body = SubGraph(copy.graph, old.scope[:-1])
        inner = Copy(body, old.scope, self.rule)
        for tensor in old.inputs:
            inner.tensors[tensor] = body.parameter(self._spec(tensor))
        found = inner.fill(old.inputs, old.outputs)[0]
        if own is not None:
            with body.as_default(), body.control_dependencies(None):
                found = [self._as_own(*trio) for trio in zip(found, old.outputs, own, strict=True)]
        body.outputs = found
        return body

    def _spec(self, tensor):
        own = tensor in self._own.tensors and tensor.kind == DATA
        return self._with_axis(tensor.spec) if own else tensor.spec

    def _with_axis(self, spec):
        return spec._replace(shape=(*spec.shape, self._lanes))

    def _on_tape(self, copy, op, inputs):
        """An operation on a tape, whose values have an axis for items if they are own."""
        attrs = dict(op.attrs)
        if inputs and op.inputs[0] in self._own.tensors:
            if op.record in (SAVE, ADD_SAVED):
                inputs = [*inputs[:2], self.for_each(inputs[2], op.inputs[2])]
            elif op.record is RESTORE and op.outputs[0].kind == DATA:
                attrs["known"] = self._with_axis(op.outputs[0].spec).shape
        return copy.create(op, inputs, attrs)

    def _access(self, copy, op, inputs):
        """An operation on an array, whose elements have an axis for items if they are own."""
        attrs = dict(op.attrs)
        maker = {op} if op.record is CREATE else self._own.may_be(op.inputs[0])
        if not maker.isdisjoint(self._own.arrays):
            if op.record is CREATE:
                shape = attrs["element_shape"]
                attrs["element_shape"] = None if shape is None else (*shape, self._lanes)
            elif op.record is WRITE:
                inputs = [*inputs[:2], self.for_each(inputs[2], op.inputs[2]), inputs[3]]
            elif op.record is READ and op.outputs[0].kind == DATA:
                attrs["known"] = self._with_axis(op.outputs[0].spec).shape
        return copy.create(op, inputs, attrs)
