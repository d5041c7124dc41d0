"""Which statements are equal but for names and numbers, and what is put in place of these.

Compiled code shares what is equal: loops that differ in names alone, and *pieces* of large
functions that differ in names and in integers which may be computed. Those are places in the table
of words, in buffers, and statuses; each has a *role*, as have names by what is done with them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from nbta.loops.nodes import (
    Assign,
    Attribute,
    Binary,
    Call,
    Comment,
    Compare,
    Constant,
    Expression,
    For,
    Function,
    Guard,
    If,
    Load,
    Logical,
    Mark,
    Name,
    Select,
    Statement,
    Unary,
    expressions_in,
    mapped,
    mapped_statement,
    statements_in,
    with_blocks,
)


class Role(Enum):
    """What a name or an integer of a statement is there."""

    #: A name.
    NAMED = 0
    #: The name that is given a value.
    GIVEN = 1
    #: The name of a buffer of which only an address is taken.
    FORWARDED = 2
    #: An integer that may be computed.
    FREE = 3
    #: The number of an alias class.
    CLASS = 4
    #: Not a leaf: a tuple of integers that may be computed.
    ITEMS = 5


#: Roles of arguments of functions, by their places.
_ARGUMENTS: dict[str, dict[int, Role]] = {
    "pointer": {2: Role.CLASS}, "room": {2: Role.FREE, 4: Role.CLASS},
    "array_in": {2: Role.FREE, 5: Role.CLASS}, "dimension_in": {1: Role.FREE},
    "agrees": {1: Role.FREE}, "adopt": {1: Role.FREE, 2: Role.FREE}, "call": {1: Role.ITEMS},
    "address": {0: Role.FORWARDED},
}  # fmt: skip
_NUMBERS = (Role.FREE, Role.CLASS)


def _roles(node: Expression, role: Role | None) -> Iterable[Role | None]:
    """The roles of the parts of an expression that has a role itself."""
    kind = type(node)
    if kind is Load:
        return None, Role.FREE
    if kind is Call:
        found = _ARGUMENTS.get(node.name or "", {})  # type: ignore[attr-defined]
        return (None, *map(found.get, range(len(node.arguments))))  # type: ignore[attr-defined]
    return (Role.FREE if role is Role.ITEMS else None,) * len(node.parts)


def _rooted(statement: Statement) -> Iterable[tuple[Expression, Role | None]]:
    """The expressions of a statement, with their roles."""
    match statement:
        case Assign(name, value):
            return (Name(name), Role.GIVEN), (value, None)
        case Guard(condition, status):
            return (condition, None), (status, Role.FREE)
    return tuple((node, None) for node in statement.expressions)


def _sign(node: Any) -> Any:
    """What tells an expression from others with the same number of parts."""
    match node:
        case Binary(sign=sign) | Unary(sign, _) | Logical(sign, _):
            return type(node), sign, len(node.parts)
        case Compare(_, signs):
            return type(node), signs
        case Attribute(_, name):
            return type(node), name
    return type(node), len(node.parts)


class Outline(NamedTuple):
    """A statement taken apart.

    Attributes
    ----------
    shape : tuple
        Equal for statements that are equal but for their leaves.
    leaves : list of str or int
        Variables, and integers that may be computed, in the order in which they are printed.
    roles : list of Role
        Of the leaves.
    """

    shape: tuple
    leaves: list
    roles: list


def outline(statement: Statement, known: Container[str]) -> Outline:
    """A statement taken apart, where names that are known are no variables."""
    shape: list[Any] = []
    leaves: list[str | int] = []
    roles: list[Role] = []

    def of_nodes(nodes):
        waiting = list(nodes)[::-1]
        while waiting:
            node, role = waiting.pop()
            kind = type(node)
            if kind is Name and node.id not in known:
                shape.append(Name)
                leaves.append(node.id)
                roles.append(role if role in (Role.GIVEN, Role.FORWARDED) else Role.NAMED)
            elif kind is Constant and role in _NUMBERS and type(node.value) is int:
                shape.append(role)
                leaves.append(node.value)
                roles.append(role)
            elif kind is Name or kind is Constant:
                shape.append(node)
            else:
                shape.append(_sign(node))
                waiting.extend([*zip(node.parts, _roles(node, role), strict=True)][::-1])

    def of_statement(each):
        shape.append((type(each), getattr(each, "sign", None), len(each.expressions)))
        of_nodes(_rooted(each))
        for block in each.blocks:
            shape.append("below")
            for inner in block:
                of_statement(inner)
            shape.append("end")

    of_statement(statement)
    return Outline(tuple(shape), leaves, roles)


def shape(statement: Statement, renamed: Callable[[str], str | int]) -> tuple:
    """What is equal for statements that say the same but for names that ``renamed`` makes equal."""
    found: list[Any] = []

    def of_statement(each):
        found.append((type(each), getattr(each, "sign", None), len(each.expressions)))
        waiting = list(each.expressions[::-1])
        while waiting:
            node = waiting.pop()
            kind = type(node)
            if kind is Name:
                found.append(renamed(node.id))
            elif kind is Constant:
                found.append(node)
            else:
                found.append(_sign(node))
                waiting.extend(node.parts[::-1])
        for block in each.blocks:
            found.append("below")
            for inner in block:
                of_statement(inner)
            found.append("end")

    of_statement(statement)
    return tuple(found)


class Replaced:
    """Statements with other expressions in place of some leaves of their outlines.

    Parameters
    ----------
    known : container of str
        See `outline`.
    leaves : mapping
        Expressions by the numbers of leaves, counted through all statements.
    block : callable
        ``block(statements)`` gives a block.
    """

    def __init__(self, known: Container[str], leaves: Mapping[int, Expression], block: Callable):
        self._known, self._leaves, self._block, self._next = known, leaves, block, 0

    def __call__(self, statements: Iterable[Statement]) -> Any:
        """A block of what statements become."""
        return self._block(list(map(self.statement, statements)))

    def statement(self, statement: Statement) -> Statement:
        """What the next statement becomes."""
        roles = iter([role for _, role in _rooted(statement)])
        return mapped_statement(statement, lambda node: self._put(node, next(roles)), self)

    def _put(self, node: Expression, role: Role | None) -> Expression:
        if isinstance(node, Name):
            return node if node.id in self._known else self._leaf(node)
        if isinstance(node, Constant):
            is_leaf = role in _NUMBERS and type(node.value) is int
            return self._leaf(node) if is_leaf else node
        chain = []
        while isinstance(node, Binary):  # however long a sum is
            chain.append(node)
            node = node.left
        if chain:
            found = self._put(node, None)
            for each in reversed(chain):
                found = Binary(found, each.sign, self._put(each.right, None))
            return found
        roles = iter(_roles(node, role))
        return mapped(node, lambda part: self._put(part, next(roles)))

    def _leaf(self, node: Expression) -> Expression:
        number, self._next = self._next, self._next + 1
        return self._leaves.get(number, node)


def without_remarks(statements: Iterable[Statement], block: Callable) -> list[Statement]:
    """Statements without those that are for people; ``block(statements)`` gives a block."""

    def below(inner):
        return block(without_remarks(inner, block))

    kept = (each for each in statements if not isinstance(each, Comment | Mark))
    return [with_blocks(each, below) for each in kept]


class Sizes(NamedTuple):
    """How much there is to compile of a function.

    Attributes
    ----------
    statements : int
        All of them, also for people.
    different : int
        Those in statements of the function that no statement before equals but for names and
        integers, as equal ones become a loop.
    loops, branches : int
        Counted loops, and branches and choices, in these.
    calls : dict
        How often these call a function, by its name.
    """

    statements: int
    different: int
    loops: int
    branches: int
    calls: dict[str, int]


def sizes(function: Function, known: Container[str]) -> Sizes:
    """How much of a function there is to compile; names that are known are no variables."""
    unlike = {outline(each, known).shape: each for each in function.body}.values()
    inner = list(statements_in(unlike))
    parts = [node for each in inner for root in each.expressions for node in expressions_in(root)]
    kinds = Counter(map(type, (*inner, *parts)))
    calls = Counter(node.name for node in parts if type(node) is Call and node.name)
    return Sizes(
        height(function.body), len(inner), kinds[For], kinds[If] + kinds[Select], dict(calls)
    )


def height(statements: Iterable[Statement]) -> int:
    """How many statements there are, with those in blocks."""
    return sum(1 + sum(map(height, statement.blocks)) for statement in statements)
