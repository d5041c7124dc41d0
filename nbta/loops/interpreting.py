"""The loop IR run by a walk over its nodes, without compiling: a second oracle.

Whoever asks says what names stand for: numbers, and Python functions in place of intrinsics. Values
are what these give; signs are Python's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from nbta.loops.nodes import (
    Accumulate,
    Assign,
    Attribute,
    Binary,
    Break,
    Call,
    Comment,
    Compare,
    Constant,
    Evaluate,
    Expression,
    For,
    Function,
    Guard,
    If,
    Load,
    Logical,
    Mark,
    Name,
    Pass,
    Return,
    Select,
    Statement,
    Store,
    Tuple,
    Unary,
    Unpack,
    While,
)

_BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod,
    "/": operator.truediv, "//": operator.floordiv, "**": operator.pow, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_UNARY = {"-": operator.neg, "+": operator.pos, "~": operator.invert, "not": operator.not_}


class _Left(Exception):  # noqa: N818 - how a block is left, no error
    """A loop or the function is left; with a status, the function."""


class _LoopLeft(_Left):
    """The innermost loop is left."""


class Interpreter:
    """Runs a function.

    Parameters
    ----------
    function : nbta.loops.Function
    names : mapping
        What it refers to. ``refuse(condition, status)`` is called for each `Guard`; where it raises
        an error, that ends the run.
    """

    def __init__(self, function: Function, names: Mapping[str, Any]):
        self._body = function.body
        self._names = {"max": max, "min": min, "abs": abs, "complex": complex, "bool": bool}
        self._names |= {**names, **function.constants}
        self._values: dict[str, Any] = {}

    def run(self, address: int) -> Any:
        """The status that the function gives for the address of its table."""
        self._values = {"w": address}
        try:
            self._run(self._body)
        except _Left as left:
            return left.args[0]
        return None

    # Statements.

    def _run(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            _STATEMENTS[type(statement)](self, statement)

    def _assign(self, node: Assign) -> None:
        self._values[node.name] = self.value(node.value)

    def _unpack(self, node: Unpack) -> None:
        self._values.update(zip(node.names, self.value(node.value), strict=True))

    def _store(self, node: Store) -> None:
        value, target = self.value(node.value), node.target
        self.value(target.buffer)[self.value(target.index)] = value

    def _accumulate(self, node: Accumulate) -> None:
        value = _BINARY[node.sign](self.value(node.target), self.value(node.value))
        if isinstance(node.target, Name):
            self._values[node.target.id] = value
        else:
            self.value(node.target.buffer)[self.value(node.target.index)] = value

    def _guard(self, node: Guard) -> None:
        self._names["refuse"](self.value(node.condition), self.value(node.status))

    def _if(self, node: If) -> None:
        self._run(node.body if self.value(node.test) else node.otherwise)

    def _for(self, node: For) -> None:
        ends = (int(self.value(end)) for end in (node.start, node.stop, node.step))
        try:
            for number in range(*ends):
                self._values[node.variable] = number
                self._run(node.body)
        except _LoopLeft:
            pass

    def _while(self, node: While) -> None:
        try:
            while self.value(node.test):
                self._run(node.body)
        except _LoopLeft:
            pass

    def _break(self, _: Break) -> None:
        raise _LoopLeft

    def _return(self, node: Return) -> None:
        raise _Left(self.value(node.value))

    # Expressions.

    def value(self, node: Expression) -> Any:
        """The value of an expression."""
        return _EXPRESSIONS[type(node)](self, node)

    def _name(self, node: Name) -> Any:
        return self._values[node.id] if node.id in self._values else self._names[node.id]

    def _binary(self, node: Binary) -> Any:
        chain, first = [], node.left
        chain.append(node)
        while isinstance(first, Binary):  # however long a sum is
            chain.append(first)
            first = first.left
        found = self.value(first)
        for each in reversed(chain):
            found = _BINARY[each.sign](found, self.value(each.right))
        return found

    def _compare(self, node: Compare) -> bool:
        pairs = zip(node.signs, node.operands, node.operands[1:], strict=False)
        return all(_BINARY[s](self.value(one), self.value(other)) for s, one, other in pairs)

    def _logical(self, node: Logical) -> bool:
        decide = all if node.sign == "and" else any
        return decide(self.value(operand) for operand in node.operands)

    def _select(self, node: Select) -> Any:
        return self.value(node.one if self.value(node.test) else node.other)

    def _call(self, node: Call) -> Any:
        return self.value(node.function)(*map(self.value, node.arguments))


def _nothing(*_: Any) -> None:
    pass


_STATEMENTS: dict[type, Callable] = {
    Assign: Interpreter._assign, Unpack: Interpreter._unpack, Store: Interpreter._store,
    Accumulate: Interpreter._accumulate, Guard: Interpreter._guard,
    Evaluate: lambda run, node: run.value(node.value),
    If: Interpreter._if, For: Interpreter._for, While: Interpreter._while,
    Break: Interpreter._break, Return: Interpreter._return, Pass: _nothing, Comment: _nothing,
    Mark: _nothing,
}  # fmt: skip
_EXPRESSIONS: dict[type, Callable] = {
    Name: Interpreter._name, Constant: lambda run, node: node.value,
    Unary: lambda run, node: _UNARY[node.sign](run.value(node.operand)),
    Binary: Interpreter._binary, Compare: Interpreter._compare, Logical: Interpreter._logical,
    Select: Interpreter._select, Call: Interpreter._call,
    Load: lambda run, node: run.value(node.buffer)[run.value(node.index)],
    Attribute: lambda run, node: getattr(run.value(node.value), node.name),
    Tuple: lambda run, node: tuple(map(run.value, node.items)),
}  # fmt: skip
