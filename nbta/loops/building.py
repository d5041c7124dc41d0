"""How rules make nodes: expressions by operators, statements in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from nbta.loops.nodes import (
    Accumulate,
    Assign,
    Call,
    Comment,
    Compare,
    Evaluate,
    Expression,
    For,
    Guard,
    If,
    Load,
    Logical,
    Mark,
    Name,
    Select,
    Statement,
    Store,
    Tuple,
    Unary,
    Unpack,
    Versions,
    While,
    as_node,
    counted,
    with_blocks,
)
from nbta.loops.versions import versions_of


def expression(value: Any) -> Expression:
    """An expression, a number as one, or a name by its letters, such as that of a type."""
    if not isinstance(value, str):
        return as_node(value)
    if not value.isidentifier():
        raise TypeError(f"{value!r} is no name; expressions are made of nodes")
    return Name(value)


def call(name: str, *arguments: Any) -> Call:
    """A call of a function by its name."""
    return Call(Name(name), tuple(map(expression, arguments)))


def several(*items: Any) -> Tuple:
    """Several values, as one argument or one index."""
    return Tuple(tuple(map(expression, items)))


def select(test: Any, one: Any, other: Any) -> Select:
    """One of two values, by a test."""
    return Select(expression(test), expression(one), expression(other))


def both(*tests: Any) -> Expression:
    """Whether all of some tests hold: from the left, until one does not."""
    return _logical("and", tests)


def either(*tests: Any) -> Expression:
    """Whether one of some tests holds, or several: from the left, until one does."""
    return _logical("or", tests)


def _logical(sign: str, tests: Iterable[Any]) -> Expression:
    operands: list[Expression] = []
    for test in map(expression, tests):
        inner = isinstance(test, Logical) and test.sign == sign
        operands += test.operands if inner else [test]
    return Logical(sign, tuple(operands)) if len(operands) > 1 else operands[0]


def negated(test: Any) -> Unary:
    """Whether a test does not hold."""
    return Unary("not", expression(test))


def between(low: Any, first: str, value: Any, second: str, high: Any) -> Compare:
    """Whether a value is between two others, by signs such as in ``low <= value < high``."""
    return Compare(tuple(map(expression, (low, value, high))), (first, second))


def assign(target: Any, value: Any) -> Assign | Store | Unpack:
    """Give a variable, or an item of a buffer, a value; several variables those of a tuple."""
    target, value = expression(target), expression(value)
    if isinstance(target, Name):
        return Assign(target.id, value)
    if isinstance(target, Load):
        return Store(target, value)
    if isinstance(target, Tuple):
        return Unpack(tuple(name.id for name in target.items if isinstance(name, Name)), value)
    raise TypeError(f"{target} is no variable and no item")


def comment(text: str) -> Comment:
    """A line for people."""
    return Comment(text)


def accumulate(target: Any, value: Any, sign: str = "+") -> Accumulate:
    """Combine a variable, or an item of a buffer, with a value."""
    return Accumulate(expression(target), sign, expression(value))


def call_at(address: Any, *arguments: Any) -> Call:
    """A call of the machine code at an address, which gives a number."""
    return call("call", address, several(*arguments))


def attempt(name: str, arguments: Iterable[Any]) -> Call:
    """A call of a user's function, which may raise."""
    return call("attempt", name, several(*arguments))


def do(name: str, *arguments: Any) -> Evaluate:
    """Call a function for what it does."""
    return Evaluate(call(name, *arguments))


def refuse(condition: Any, status: int) -> Guard:
    """Leave the function with a status where a condition holds."""
    return Guard(expression(condition), expression(status))


def leave(condition: Any, statement: Statement) -> If:
    """Leave a loop, or the function, where a condition holds."""
    return If(expression(condition), Block([statement]), Block())


def over(name: Name | str, *ends: Any) -> For:
    """The header of a loop over what ``range`` gives for one to three arguments."""
    return counted(
        name if isinstance(name, str) else name.id, tuple(map(expression, ends)), Block()
    )


def loop_while(test: Any) -> While:
    """The header of a loop as long as a test holds."""
    return While(expression(test), Block())


def when(test: Any) -> If:
    """The header of a branch."""
    return If(expression(test), Block(), Block())


class Otherwise(NamedTuple):
    """The header of what is done where no test of the branch before holds, but perhaps this one."""

    test: Expression | None = None


def otherwise(test: Any = None) -> Otherwise:
    """See `Otherwise`."""
    return Otherwise(None if test is None else expression(test))


class Block:
    """Statements, one after another; and where more of them are added.

    Iterating gives what is there in the end: places are filled, and versions are made.
    """

    __slots__ = ("_items",)

    def __init__(self, statements: Iterable[Statement] = ()):
        self._items: list[Statement | Block] = list(statements)

    def add(self, *statements: Statement) -> None:
        """More statements at the end."""
        self._items.extend(statements)

    def place(self) -> Block:
        """A block at the end whose statements come later."""
        block = Block()
        self._items.append(block)
        return block

    def versions(self, *names: str) -> Block:
        """A block that is there twice: for when one of some truth values holds, and for when none.

        Where none holds, and where a single one does, names are constants, and blocks under them
        are there without a condition or not at all. The block is there once where nothing in it
        asks.
        """
        block = Block()
        self._items.append(Versions(block, names))
        return block

    def nest(self, header: Statement | Otherwise) -> Block:
        """The new block of a header, which is a statement with empty blocks or an `Otherwise`.

        A header may be used several times.
        """
        if isinstance(header, Otherwise):
            return self._alternative(header.test)
        statement = with_blocks(header, lambda _: Block())
        self._items.append(statement)
        return statement.blocks[0]

    def _alternative(self, test: Expression | None) -> Block:
        """Where statements go when the test of the last branch does not hold, and another does."""
        marks: list[Statement | Block] = []
        while self._items and isinstance(self._items[-1], Mark | Comment):
            marks.insert(0, self._items.pop())
        last = self._items[-1] if self._items else None
        if not isinstance(last, If):
            raise ValueError("no branch is there whose alternative this could be")
        while last.otherwise.size:
            (last,) = last.otherwise._items  # type: ignore[assignment, misc]
        block = last.otherwise if test is None else last.otherwise.nest(when(test))
        block._items.extend(marks)
        return block

    @property
    def size(self) -> int:
        """How many statements and places there are."""
        return len(self._items)

    def items_from(self, start: int) -> list[Statement | Block]:
        """Statements and places from some number on."""
        return self._items[start:]

    def __iter__(self) -> Iterator[Statement]:
        for item in self._items:
            if isinstance(item, Block):
                yield from item
            elif isinstance(item, Versions):
                yield from versions_of(item, Block)
            else:
                yield item

    def __bool__(self) -> bool:
        return any(True for _ in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def finished(block: Iterable[Statement]) -> Block:
    """A block without places and versions, all the way down."""
    return Block(with_blocks(statement, finished) for statement in block)
