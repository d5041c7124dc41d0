"""Inner loops that read an item again where the iteration before had it in a register.

Of ``u[i - 1] + u[i + 1] - 2 * u[i]``, LLVM's value numbering reads one item and has the others from
the iterations before (partial redundancy elimination). That is a load less for numbers. In vector
instructions it is two shuffles for a load, of which a processor makes one a cycle where it makes
two loads; and of a loop that hands numbers on, LLVM makes no vector instructions for the last
iterations, those that are left over by the widest vectors.

It finds that two items are the same by their indices: a counter plus a constant, and one more. So
an inner loop counts from 0, and gets the first value of each counter from `opaque`: of an index
that is a sum of two numbers, value numbering cannot tell what it is in the next iteration. What the
dependence test of vector instructions knows stays as it was, as that compares differences. Nor does
any counter live on after the loop, for which the last iterations would have no vectors either.

A loop stays as it is if a later iteration reads what an earlier one stored, which had better be in
a register, or if a number goes from iteration to iteration otherwise than as a sum: neither is
vector instructions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from nbta.loops.building import Block, call
from nbta.loops.jamming import has_chain
from nbta.loops.nodes import (
    ONE,
    ZERO,
    Accumulate,
    Assign,
    Binary,
    Call,
    Comment,
    Constant,
    Expression,
    For,
    Guard,
    Load,
    Mark,
    Name,
    Statement,
    Store,
    Unary,
    expressions_in,
    names_in,
    statements_in,
    stored_by,
    with_blocks,
)


def reread(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Statements whose inner loops read again what the iteration before has read.

    Parameters
    ----------
    statements : iterable of Statement
        The whole body of a function.
    """
    statements = tuple(statements)
    used = {name for each in statements_in(statements) for name in names_in(*each.expressions)}
    numbers = count()

    def changed(block):
        found = Block()
        for each in block:
            if type(each) is For and _is_plain(each):
                found.add(*_rereading(each, used, numbers))
            else:
                found.add(with_blocks(each, changed))
        return found

    return tuple(changed(statements))


def _is_plain(loop: For) -> bool:
    kinds = (Assign, Store, Accumulate, Guard, Comment, Mark)
    return loop.step == ONE and all(isinstance(each, kinds) for each in loop.body)


def _rereading(loop: For, used: set[str], numbers: Iterator[int]) -> list[Statement]:
    """A loop that counts from 0, with what is before and after it; or the loop as it is."""
    accesses = _Accesses(loop)
    if not accesses.hand_on() or has_chain(loop):
        return [loop]

    def variable(stem):
        name = next(name for k in numbers if (name := f"{stem}{k}") not in used)
        used.add(name)
        return name

    counter, length = variable("k"), variable("n")
    before: list[Statement] = [Assign(length, call("max", 0, loop.stop - loop.start))]
    body, after = Block(), []
    for name, step in accesses.steps.items():
        start, first = variable("b"), variable("b")
        value = loop.start if name == loop.variable else Name(name)
        before.append(Assign(start, call("int64", value)))
        before.append(Assign(first, call("opaque", Name(start))))
        body.add(Assign(name, call("int64", Name(first) + _times(counter, step))))
        if name != loop.variable:
            after.append(Assign(name, call("int64", Name(start) + _times(length, step))))
    body.add(*loop.body)
    return [*before, For(counter, ZERO, Name(length), ONE, body), *after]


def _times(name: str, step: int) -> Expression:
    return Name(name) if step == 1 else Name(name) * step


class _Form(NamedTuple):
    """An index: a number, and multiples of values from before an iteration."""

    offset: int
    terms: frozenset[tuple[Expression, int]]

    def plus(self, other: _Form, sign: int) -> _Form:
        factors = dict(self.terms)
        for what, factor in other.terms:
            factors[what] = factors.get(what, 0) + sign * factor
        terms = frozenset((what, factor) for what, factor in factors.items() if factor)
        return _Form(self.offset + sign * other.offset, terms)

    def times(self, number: int) -> _Form:
        terms = frozenset((what, number * factor) for what, factor in self.terms if number)
        return _Form(number * self.offset, terms)


class _Accesses:
    """What an innermost loop reads and stores.

    Attributes
    ----------
    steps : dict of str to int
        Its counters, and by how much an iteration raises each.
    """

    def __init__(self, loop: For):
        self._forms: dict[str, _Form | None] = {}
        self._read: defaultdict[str, list[_Form | None]] = defaultdict(list)
        self._stored: defaultdict[str, list[_Form | None]] = defaultdict(list)
        self._assigned = {name for each in loop.body for name in stored_by(each)} | {loop.variable}
        for each in loop.body:
            self._note(each)
        self.steps = {} if loop.variable == "_" else {loop.variable: 1}
        for name, form in self._forms.items():
            if form is not None and form.offset and form.terms == {(Name(name), 1)}:
                self.steps[name] = form.offset

    def _note(self, statement):
        read = list(statement.expressions)
        target = read[0] if isinstance(statement, Store | Accumulate) else None
        if type(target) is Load:
            self._keep(target, self._stored)
            if type(statement) is Store:
                read[0] = target.index
        for root in read:
            for node in expressions_in(root):
                if type(node) is Load:
                    self._keep(node, self._read)
        for name in stored_by(statement):
            once = type(statement) is Assign and name not in self._forms
            self._forms[name] = self._form(statement.value) if once else None

    def _keep(self, item, found):
        if type(item.buffer) is Name:
            found[item.buffer.id].append(self._form(item.index))

    def _form(self, node) -> _Form | None:
        """An index by values from before an iteration; None for what is no such sum."""
        match node:
            case Constant(value) if type(value) is int:
                return _Form(value, frozenset())
            case Name(name):
                form = _Form(0, frozenset({(node, 1)}))
                return self._forms.get(name, form)
            case Call(Name("int64"), (value,)):
                return self._form(value)
            case Unary("-", operand):
                form = self._form(operand)
                return None if form is None else form.times(-1)
            case Binary(left, "+" | "-" | "*" as sign, right):
                one, other = self._form(left), self._form(right)
                if one is None or other is None:
                    return None
                if sign != "*":
                    return one.plus(other, -1 if sign == "-" else 1)
                if not (one.terms and other.terms):
                    number, form = (other, one) if one.terms else (one, other)
                    return form.times(number.offset)
                if self._assigned.isdisjoint(names_in(node)):
                    return _Form(0, frozenset({(node, 1)}))
        return None

    def _step(self, form):
        """By how much an iteration raises an index; 0 where that is not known."""
        step = 0
        for what, factor in form.terms:
            if type(what) is Name and what.id in self.steps:
                step += factor * self.steps[what.id]
            elif not self._assigned.isdisjoint(names_in(what)):
                return 0
        return step

    def hand_on(self) -> bool:
        """Whether an iteration reads an item that the next one has again, and stores none of these.

        A loop that stores what a later iteration reads is no vector instructions.
        """
        found = False
        for buffer, forms in self._read.items():
            rows: dict[frozenset, set[int]] = defaultdict(set)
            for form in forms:
                if form is not None:
                    rows[form.terms].add(form.offset)
            for terms, offsets in rows.items():
                step, stored = self._step(_Form(0, terms)), self._stored[buffer]
                same = [each for each in stored if each is not None and each.terms == terms]
                if step and any((s.offset - o) * step > 0 for s in same for o in offsets):
                    return False
                again = step and any(offset + step in offsets for offset in offsets)
                found |= bool(again) and len(same) == len(stored)
        return found
