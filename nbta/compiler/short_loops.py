"""Short loops of which LLVM certainly makes vector instructions.

Of a loop whose vectors' width it is given, and of which it makes none, LLVM prints a remark on
standard error, which nothing turns off. So it is given only where this is certain: places are an
affine function of the loop's number, with a step that is known, as steps of a run and places that
may overlap would take a check before the loop; and what one iteration hands to the next is a sum or
a product. A load that the next iteration repeats is forwarded, too, by LLVM's value numbering.
"""

from typing import NamedTuple

from nbta.loops import (
    Assign,
    Binary,
    Call,
    Compare,
    Constant,
    Load,
    Logical,
    Name,
    Select,
    Store,
    Unary,
)
from nbta.loops.nodes import expressions_in, stored_by

#: Functions of numbers that have no branches.
BRANCHLESS = frozenset(
    ("float32", "float64", "fast_add", "tanh", "exp", "expm1", "log", "log1p", "sigmoid",
     "softplus", "erf", "unless", "chosen", "guarded", "carried")
)  # fmt: skip


class Affine(NamedTuple):
    """An index: ``step`` times the loop's number, a number, and terms that the loop keeps.

    A term is a factor and what it is of; no two are of the same, and no factor is 0.
    """

    step: int
    offset: int
    terms: tuple = ()

    def plus(self, other, sign):
        """The sum, or the difference."""
        factors = {what: factor for factor, what in self.terms}
        for factor, what in other.terms:
            factors[what] = factors.get(what, 0) + sign * factor
        terms = [(factor, what) for what, factor in factors.items() if factor]
        step, offset = self.step + sign * other.step, self.offset + sign * other.offset
        return Affine(step, offset, tuple(sorted(terms, key=repr)))

    def times(self, number):
        """The product with a number."""
        terms = tuple((number * factor, what) for factor, what in self.terms if number)
        return Affine(self.step * number, self.offset * number, terms)


class Loop:
    """What a loop of assignments reads and writes.

    Parameters
    ----------
    node : nbta.loops.For
    scope_of : callable
        Gives by a name the number of what it points into, which lies apart from all others; None
        where that is not known.
    meaning_of : callable
        Gives by a name a number, if it stands for one, or a text: the same for the same value.
    """

    def __init__(self, node, scope_of, meaning_of):
        self._scope_of, self._meaning_of = scope_of, meaning_of
        self._indices = {node.variable: Affine(1, 0)}
        self._body = list(node.body)
        self._assigned = {name for statement in self._body for name in stored_by(statement)}
        self._stored, self._read = {}, {}

    def is_proven(self) -> bool:
        """Whether LLVM makes vector instructions of it, of the width that it is given."""
        return all(map(self._takes, enumerate(self._body))) and self._is_free()

    def _takes(self, numbered):
        """Note what a statement does; False where it is not plain."""
        k, statement = numbered
        if not _is_branchless(statement):
            return False
        read = [statement.value]
        if isinstance(statement, Store):
            read.append(statement.target.index)
            if not self._note(statement.target, self._stored, k):
                return False
        items = (each for node in read for each in expressions_in(node) if type(each) is Load)
        if not all(self._note(item, self._read, k) for item in items):
            return False
        if isinstance(statement, Assign):
            index = self._affine(statement.value)
            again = statement.name in self._indices  # an earlier value, or none that is an index
            self._indices[statement.name] = None if again else index
        return True

    def _note(self, item, found, k):
        """Keep the place of an item; False where it is not certain."""
        place = self._place(item)
        if place is not None:
            found.setdefault(place[0], {}).setdefault(place, set()).add(k)
        return place is not None

    def _place(self, item):
        """Which scope an item is in, by what name, and where; None where that is not certain."""
        name = item.buffer.id if isinstance(item.buffer, Name) else None
        scope = None if name is None else self._scope_of(name)
        index = self._affine(item.index)
        return None if scope is None or index is None else (scope, name, index)

    def _affine(self, node):
        """An index as a function of the loop's number; None for another one."""
        match node:
            case Constant(value) if isinstance(value, int):
                return Affine(0, value)
            case Name(name):
                return self._named(name)
            case Unary("-", operand):
                index = self._affine(operand)
                return None if index is None else index.times(-1)
            case Binary(left, "+" | "-" | "*" as sign, right):
                one, other = self._affine(left), self._affine(right)
                if one is None or other is None:
                    return None
                if sign != "*":
                    return one.plus(other, -1 if sign == "-" else 1)
                return _product(one, other)
        return None

    def _named(self, name):
        if name in self._indices or name in self._assigned:
            return self._indices.get(name)
        meaning = self._meaning_of(name)
        if isinstance(meaning, int):
            return Affine(0, meaning)
        return Affine(0, 0, ((1, meaning),))

    def _is_free(self):
        """Whether iterations forward sums and products alone."""
        for scope, places in self._stored.items():
            read = self._read.get(scope, {})
            if len(places) > 1 or not read.keys() <= places.keys():
                return False
            ((_, name, index),) = places
            if read and index.step == 0 and not self._is_folded(name, None):
                return False
        stores = [k for k, s in enumerate(self._body) if isinstance(s, Store)]
        return all(_is_read_anew(places, stores) for places in self._read.values()) and all(
            self._is_folded(None, name) for name in self._carried()
        )

    def _carried(self):
        """Names whose value of the last iteration is read."""
        found, known = set(), set()
        for statement in self._body:
            stored = set(stored_by(statement))
            nodes = [statement.value, *([statement.target] if isinstance(statement, Store) else [])]
            names = {each.id for n in nodes for each in expressions_in(n) if type(each) is Name}
            found |= (names & self._assigned) - known
            known |= stored
        return found

    def _is_folded(self, array, name):
        """Whether an item, the only one of its array, or a variable is a running sum or product."""

        def is_it(node):
            if array is not None:
                return isinstance(node, Load) and node.buffer == Name(array)
            return isinstance(node, Name) and node.id == name

        kinds = set()
        for statement in self._body:
            target = statement.expressions[0]
            if is_it(target):
                kinds.add(_fold(statement.value, is_it))
            elif any(
                is_it(each) for node in statement.expressions for each in expressions_in(node)
            ):
                return False
        return kinds in ({"+"}, {"*"})


def _product(one, other):
    """A product of indices: of a number with any, or of what the loop keeps; else None."""
    for number, index in ((one, other), (other, one)):
        if number.step == 0 and not number.terms:
            return index.times(number.offset)
    if one.step or other.step:
        return None
    return Affine(0, 0, ((1, (one, other) if repr(one) < repr(other) else (other, one)),))


def _is_branchless(statement):
    """Whether a statement is arithmetic of numbers and items."""
    for node in statement.expressions:
        for each in expressions_in(node):
            match each:
                case Call() if each.name in BRANCHLESS:
                    pass
                case Call() | Select() | Compare() | Logical():
                    return False
                case Binary(_, "**", _):
                    return False
    return True


def _is_read_anew(places, stores):
    """Whether no iteration reads what the next one does but before statements that store."""
    found = [(index, statements) for (_, _, index), statements in places.items() if index.step]
    for k, (one, at) in enumerate(found):
        for other, there in found[:k]:
            apart = one.plus(other, -1)
            is_known = apart.step == 0 and not apart.terms
            both, may_be = at | there, not is_known or abs(apart.offset) == abs(one.step)
            if may_be and any(min(both) <= k < max(both) for k in stores):
                return False
    return True


def _fold(value, is_it):
    """By what a value of the last iteration is continued: a sum, a product; None for others."""
    match value:
        case Binary(left, "+" | "-", right):
            kind, sides = "+", [left, right]
        case Binary(left, "*", right):
            kind, sides = "*", [left, right]
        case Call(Name("fast_add"), (left, right)):
            kind, sides = "+", [left, right]
        case _:
            return None
    if isinstance(value, Binary) and value.sign == "-":
        sides = [left] if not any(map(is_it, expressions_in(right))) else []
    inner = [side for side in sides if any(map(is_it, expressions_in(side)))]
    if len(inner) != 1:
        return None
    return kind if is_it(inner[0]) or _fold(inner[0], is_it) == kind else None
