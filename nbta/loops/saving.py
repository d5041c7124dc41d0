"""Functions of the loop IR as bytes, for the disk: JSON with a row for each node.

A row has the kind of its node and the node's fields, where a number stands for an earlier row.
Equal expressions have one row. Comments are left out.
"""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from nbta.loops import nodes
from nbta.loops.building import Block
from nbta.loops.nodes import Constant, Expression, Function, Node, Statement, expressions_in
from nbta.loops.structure import without_remarks

_KINDS: dict[str, Any] = {
    each.__name__: each for each in (Block, *vars(nodes).values()) if isinstance(each, type)
}


def encoded(function: Function) -> bytes:
    """The bytes of a function, in one line."""
    rows: list[list] = []
    known: dict[str, int] = {}

    def block(statements: Iterable[Statement]) -> int:
        rows.append(["Block", list(map(statement, statements))])
        return len(rows) - 1

    def statement(node: Statement) -> int:
        rows.append(row(node, expression))
        return len(rows) - 1

    def expression(root: Expression) -> int:
        numbers: dict[int, int] = {}
        for node in reversed(list(expressions_in(root))):  # parts come first, however deep
            found = row(node, lambda part: numbers[id(part)])
            number = known.setdefault(repr(found), len(rows))
            if number == len(rows):
                rows.append(found)
            numbers[id(node)] = number
        return numbers[id(root)]

    def row(node: Node, part: Any) -> list:
        return [type(node).__name__, *(field(getattr(node, f), part) for f in node.__slots__)]

    def field(value: Any, part: Any) -> Any:
        if isinstance(value, tuple):
            return [field(each, part) for each in value]
        if isinstance(value, Block):
            return block(value)
        return part(value) if isinstance(value, Expression) else value

    block(without_remarks(function.body, Block))
    constants = [(n, v.dtype.str, v.tobytes().hex()) for n, v in function.constants.items()]
    return json.dumps((rows, constants)).encode()


def decoded(data: bytes) -> Function:
    """The function that bytes of `encoded` hold."""
    made: list[Any] = []

    def field(value: Any) -> Any:
        if type(value) is list:
            return tuple(map(field, value))
        return made[value] if type(value) is int else value

    rows, constants = json.loads(data)
    for kind, *fields in rows:
        values = fields if kind == Constant.__name__ else map(field, fields)
        made.append(_KINDS[kind](*values))
    numbers = {n: np.frombuffer(bytes.fromhex(text), kind)[0] for n, kind, text in constants}
    return Function(tuple(made[-1]), numbers)
