"""Short loops of which LLVM certainly makes vector instructions.

Of a loop whose vectors' width it is given, and of which it makes none, LLVM prints a remark on
standard error, which nothing turns off. So it is given only where this is certain: places are an
affine function of the loop's number, with a step that is known, as steps of a run and places that
may overlap would take a check before the loop; and what one iteration hands to the next is a sum or
a product. A load that the next iteration repeats is forwarded, too, by LLVM's value numbering.
"""

import ast
from typing import NamedTuple

#: Functions of numbers that have no branches.
BRANCHLESS = frozenset(
    ("float32", "float64", "fast_add", "tanh", "exp", "expm1", "log", "log1p", "sigmoid",
     "softplus", "erf", "unless", "guarded")
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
    node : ast.For
    scope_of : callable
        Gives by a name the number of what it points into, which lies apart from all others; None
        where that is not known.
    meaning_of : callable
        Gives by a name a number, if it stands for one, or a text: the same for the same value.
    """

    def __init__(self, node, scope_of, meaning_of):
        self._scope_of, self._meaning_of = scope_of, meaning_of
        self._indices = {node.target.id: Affine(1, 0)}
        self._assigned = {
            name.id
            for statement in node.body
            for name in ast.walk(statement)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        self._stored, self._read = {}, {}
        self._body = node.body

    def is_sure(self) -> bool:
        """Whether LLVM makes vector instructions of it, of the width that it is given."""
        return all(map(self._takes, enumerate(self._body))) and self._is_free()

    def _takes(self, numbered):
        """Note what a statement does; False where it is not plain."""
        k, statement = numbered
        (target,), value = statement.targets, statement.value
        if not isinstance(target, ast.Name | ast.Subscript) or not _is_branchless(statement):
            return False
        for item in ast.walk(statement):
            if isinstance(item, ast.Subscript):
                place = self._place(item)
                if place is None:
                    return False
                found = self._stored if isinstance(item.ctx, ast.Store) else self._read
                found.setdefault(place[0], {}).setdefault(place, set()).add(k)
        if isinstance(target, ast.Name):
            index = self._affine(value)
            again = target.id in self._indices  # an earlier value, or none that is an index
            self._indices[target.id] = None if again else index
        return True

    def _place(self, item):
        """Which scope an item is in, by what name, and where; None where that is not certain."""
        name = item.value.id if isinstance(item.value, ast.Name) else None
        scope = None if name is None else self._scope_of(name)
        index = self._affine(item.slice)
        return None if scope is None or index is None else (scope, name, index)

    def _affine(self, node):
        """An index as a function of the loop's number; None for another one."""
        match node:
            case ast.Constant(int(value)):
                return Affine(0, value)
            case ast.Name(name):
                return self._named(name)
            case ast.UnaryOp(ast.USub(), operand):
                index = self._affine(operand)
                return None if index is None else index.times(-1)
            case ast.BinOp(left, (ast.Add() | ast.Sub() | ast.Mult()) as op, right):
                one, other = self._affine(left), self._affine(right)
                if one is None or other is None:
                    return None
                if not isinstance(op, ast.Mult):
                    return one.plus(other, -1 if isinstance(op, ast.Sub) else 1)
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
        """Whether iterations hand on sums and products alone."""
        for scope, places in self._stored.items():
            read = self._read.get(scope, {})
            if len(places) > 1 or not read.keys() <= places.keys():
                return False
            ((_, name, index),) = places
            if read and index.step == 0 and not self._is_folded(name, None):
                return False
        stores = [k for k, s in enumerate(self._body) if isinstance(s.targets[0], ast.Subscript)]
        return all(_is_read_anew(places, stores) for places in self._read.values()) and all(
            self._is_folded(None, name) for name in self._carried()
        )

    def _carried(self):
        """Names whose value of the last iteration is read."""
        found, known = set(), set()
        for statement in self._body:
            names = {item.id for item in ast.walk(statement) if _is_read(item)}
            found |= (names & self._assigned) - known
            if isinstance(statement.targets[0], ast.Name):
                known.add(statement.targets[0].id)
        return found

    def _is_folded(self, array, name):
        """Whether an item, the only one of its array, or a variable is a running sum or product."""

        def is_it(node):
            if array is not None:
                return isinstance(node, ast.Subscript) and node.value.id == array
            return isinstance(node, ast.Name) and node.id == name

        kinds = set()
        for statement in self._body:
            target, value = statement.targets[0], statement.value
            if is_it(target):
                kinds.add(_fold(value, is_it))
            elif any(map(is_it, ast.walk(statement))):
                return False
        return kinds in ({ast.Add}, {ast.Mult})


def _product(one, other):
    """A product of indices: of a number with any, or of what the loop keeps; else None."""
    for number, index in ((one, other), (other, one)):
        if number.step == 0 and not number.terms:
            return index.times(number.offset)
    if one.step or other.step:
        return None
    return Affine(0, 0, ((1, (one, other) if repr(one) < repr(other) else (other, one)),))


def _is_read(node):
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)


def _is_branchless(statement):
    """Whether a statement is arithmetic of numbers and items."""
    for item in ast.walk(statement):
        match item:
            case ast.Call(ast.Name(name)) if name in BRANCHLESS:
                pass
            case ast.Call() | ast.IfExp() | ast.Compare() | ast.BoolOp():
                return False
            case ast.BinOp(op=ast.Pow()):
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
        case ast.BinOp(left, ast.Add() | ast.Sub(), right):
            kind, sides = ast.Add, [left, right]
        case ast.BinOp(left, ast.Mult(), right):
            kind, sides = ast.Mult, [left, right]
        case ast.Call(ast.Name("fast_add"), [left, right]):
            kind, sides = ast.Add, [left, right]
        case _:
            return None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub):
        sides = [left] if not any(map(is_it, ast.walk(right))) else []
    inner = [side for side in sides if any(map(is_it, ast.walk(side)))]
    if len(inner) != 1:
        return None
    return kind if is_it(inner[0]) or _fold(inner[0], is_it) is kind else None
