"""How rules make nodes: expressions by operators, statements in blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from nbta.loops import text as texts
from nbta.loops.nodes import (
    Accumulate,
    Assign,
    Call,
    Comment,
    Evaluate,
    Expression,
    For,
    Guard,
    If,
    Load,
    Mark,
    Name,
    Statement,
    Store,
    Versions,
    as_node,
    counted,
    with_blocks,
)
from nbta.loops.versions import versions_of


def expression(value: Any) -> Expression:
    """An expression, a number as one, or what a rule has as text."""
    return texts.expression(value) if isinstance(value, str) else as_node(value)


def call(name: str, *arguments: Any) -> Call:
    """A call of a function by its name."""
    return Call(Name(name), tuple(map(expression, arguments)))


def assign(target: Any, value: Any) -> Assign | Store:
    """Give a variable, or an item of a buffer, a value."""
    target, value = expression(target), expression(value)
    if isinstance(target, Name):
        return Assign(target.id, value)
    if isinstance(target, Load):
        return Store(target, value)
    raise TypeError(f"{target} is no variable and no item")


def accumulate(target: Any, value: Any, sign: str = "+") -> Accumulate:
    """Combine a variable, or an item of a buffer, with a value."""
    return Accumulate(expression(target), sign, expression(value))


def do(name: str, *arguments: Any) -> Evaluate:
    """Call a function for what it does."""
    return Evaluate(call(name, *arguments))


def refuse(condition: Any, status: int) -> Guard:
    """Leave the function with a status where a condition holds."""
    return Guard(expression(condition), expression(status))


def leave(condition: Any, statement: Statement) -> If:
    """Leave a loop, or the function, where a condition holds."""
    return If(expression(condition), Block([statement]), Block())


def over(name: str, *ends: Any) -> For:
    """The header of a loop over what ``range`` gives for one to three arguments."""
    return counted(name, tuple(map(expression, ends)), Block())


def when(test: Any) -> If:
    """The header of a branch."""
    return If(expression(test), Block(), Block())


class Block:
    """Statements, one after another; and where more of them are added.

    Iterating gives what is there in the end: places are filled, and versions are made.
    """

    __slots__ = ("_items",)

    def __init__(self, statements: Iterable[Statement] = ()):
        self._items: list[Statement | Block] = list(statements)

    def add(self, *statements: Statement | str) -> None:
        """More statements at the end."""
        self._items.extend(
            texts.statement(each) if isinstance(each, str) else each for each in statements
        )

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

    def nest(self, header: str | Statement) -> Block:
        """The new block of a header: of a statement with empty blocks, or such as ``while x:``.

        A header may be used several times.
        """
        if isinstance(header, str):
            if header == "else:":
                return self._alternative()
            if header.startswith("elif "):
                otherwise = self._alternative()
                marks, otherwise._items = otherwise._items, []
                block = otherwise.nest(header[2:])
                block._items.extend(marks)
                return block
            header = texts.header(header, Block)
        statement = with_blocks(header, lambda _: Block())
        self._items.append(statement)
        return statement.blocks[0]

    def _alternative(self) -> Block:
        """The block of the last branch that is for when its test does not hold."""
        marks: list[Statement | Block] = []
        while self._items and isinstance(self._items[-1], Mark | Comment):
            marks.insert(0, self._items.pop())
        last = self._items[-1] if self._items else None
        if not isinstance(last, If):
            raise ValueError("no branch is there whose alternative this could be")
        while last.otherwise.size:
            (last,) = last.otherwise._items  # type: ignore[assignment, misc]
        last.otherwise._items.extend(marks)
        return last.otherwise

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
