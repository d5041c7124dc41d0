"""The loop IR as Python: for people, and as the key of machine code on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

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
    Node,
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

#: How tightly signs of two values bind; beside them stand what is below.
_BINDS = {
    "|": 6, "^": 7, "&": 8, "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "//": 11,
    "%": 11, "**": 13,
}  # fmt: skip
_SELECT, _OR, _AND, _NOT, _COMPARE, _UNARY, _PART = 1, 2, 3, 4, 5, 12, 14


class Printer:
    """Shows nodes.

    Parameters
    ----------
    names : mapping, optional
        Other names for variables.
    remark : callable, optional
        The lines that are shown for a `Comment` or a `Mark`.
    """

    def __init__(
        self,
        names: Mapping[str, str] | None = None,
        remark: Callable[[Statement], Iterable[str]] | None = None,
    ):
        self._names = {} if names is None else names
        self._remark = _remark if remark is None else remark

    # Expressions.

    def expression(self, node: Expression, least: int = 0) -> str:
        """An expression, in parentheses where it binds less tightly than is asked."""
        kind = type(node)
        if kind is Name:
            return self._names.get(node.id, node.id)  # type: ignore[attr-defined]
        if kind is Constant:
            return repr(node.value)  # type: ignore[attr-defined]
        return _RULES[kind](self, node, least)

    def _binary(self, node: Binary, least: int) -> str:
        """A chain of operations from its end: a sum of lengths has as many as the program."""
        binds, ends = _BINDS[node.sign], []
        whole = binds
        while node.sign != "**":
            ends.append(f" {node.sign} {self.expression(node.right, binds + 1)}")
            left = node.left
            if type(left) is not Binary or _BINDS[left.sign] < binds:
                text = self.expression(left, binds)
                break
            node, binds = left, _BINDS[left.sign]
        else:
            text = f"{self.expression(node.left, _PART)} ** {self.expression(node.right, _UNARY)}"
        text += "".join(ends[::-1])
        return f"({text})" if whole < least else text

    def _load(self, node: Load, _least: int) -> str:
        return f"{self.expression(node.buffer, _PART)}[{self.expression(node.index)}]"

    def _call(self, node: Call, _least: int) -> str:
        arguments = ", ".join(map(self.expression, node.arguments))
        return f"{self.expression(node.function, _PART)}({arguments})"

    def _attribute(self, node: Attribute, _least: int) -> str:
        text = self.expression(node.value, _PART)
        return f"({text}).{node.name}" if type(node.value) is Constant else f"{text}.{node.name}"

    def _unary(self, node: Unary, least: int) -> str:
        binds, space = (_NOT, " ") if node.sign == "not" else (_UNARY, "")
        text = f"{node.sign}{space}{self.expression(node.operand, binds)}"
        return f"({text})" if binds < least else text

    def _compare(self, node: Compare, least: int) -> str:
        text = self.expression(node.operands[0], _COMPARE + 1)
        for sign, operand in zip(node.signs, node.operands[1:], strict=True):
            text += f" {sign} {self.expression(operand, _COMPARE + 1)}"
        return f"({text})" if least > _COMPARE else text

    def _logical(self, node: Logical, least: int) -> str:
        binds = _AND if node.sign == "and" else _OR
        text = f" {node.sign} ".join(self.expression(each, binds + 1) for each in node.operands)
        return f"({text})" if binds < least else text

    def _select(self, node: Select, least: int) -> str:
        one, test = self.expression(node.one, _OR), self.expression(node.test, _OR)
        text = f"{one} if {test} else {self.expression(node.other, _SELECT)}"
        return f"({text})" if least > _SELECT else text

    def _tuple(self, node: Tuple, _least: int) -> str:
        items = ", ".join(map(self.expression, node.items))
        return f"({items},)" if len(node.items) == 1 else f"({items})"

    # Statements.

    def lines(self, statements: Iterable[Statement], depth: int = 0) -> Iterator[str]:
        """The lines of statements."""
        indent = "    " * depth
        for statement in statements:
            rule = _LINES.get(type(statement))
            if rule is not None:
                yield indent + rule(self, statement)
            elif isinstance(statement, Comment | Mark):
                for text in self._remark(statement):
                    yield f"{indent}# {text}" if text else indent
            else:
                yield from self._compound(statement, depth)

    def _compound(self, statement: Statement, depth: int) -> Iterator[str]:
        indent, show = "    " * depth, self.expression
        if isinstance(statement, If):
            yield from self._branches(statement, depth)
        elif isinstance(statement, For):
            ends, name = ", ".join(map(show, statement.ends)), show(Name(statement.variable))
            yield f"{indent}for {name} in range({ends}):"
            yield from self.lines(statement.body, depth + 1)
        elif isinstance(statement, While):
            yield f"{indent}while {show(statement.test)}:"
            yield from self.lines(statement.body, depth + 1)
        else:
            raise TypeError(f"no {type(statement).__name__} is printed")

    def _branches(self, statement: If, depth: int) -> Iterator[str]:
        indent, word = "    " * depth, "if"
        while True:
            body, otherwise = list(statement.body), list(statement.otherwise)
            head = f"{indent}{word} {self.expression(statement.test)}:"
            if not otherwise and word == "if" and _leaves(body):
                yield f"{head} {next(self.lines(body))}"
                return
            yield head
            yield from self.lines(body, depth + 1)
            if len(otherwise) != 1 or not isinstance(otherwise[0], If):
                break
            statement, word = otherwise[0], "elif"
        if otherwise:
            yield f"{indent}else:"
            yield from self.lines(otherwise, depth + 1)


def _leaves(body: list[Statement]) -> bool:
    return len(body) == 1 and isinstance(body[0], Break | Return)


def _remark(statement: Any) -> Iterator[str]:
    yield statement.text if isinstance(statement, Comment) else f"@{statement.number}"


_RULES: dict[type, Callable] = {
    Binary: Printer._binary, Load: Printer._load, Call: Printer._call, Unary: Printer._unary,
    Compare: Printer._compare, Logical: Printer._logical, Select: Printer._select,
    Tuple: Printer._tuple, Attribute: Printer._attribute,
}  # fmt: skip
_LINES: dict[type, Callable] = {
    Assign: lambda p, s: f"{p.expression(Name(s.name))} = {p.expression(s.value)}",
    Unpack: lambda p, s: (
        f"{', '.join(p.expression(Name(name)) for name in s.names)} = {p.expression(s.value)}"
    ),
    Store: lambda p, s: f"{p.expression(s.target)} = {p.expression(s.value)}",
    Accumulate: lambda p, s: f"{p.expression(s.target)} {s.sign}= {p.expression(s.value)}",
    Evaluate: lambda p, s: p.expression(s.value),
    Guard: lambda p, s: f"refuse({p.expression(s.condition)}, {p.expression(s.status)})",
    Return: lambda p, s: f"return {p.expression(s.value)}",
    Break: lambda p, s: "break",
    Pass: lambda p, s: "pass",
}


def printed(node: Any) -> str:
    """An expression, or the lines of a statement."""
    printer = Printer()
    if isinstance(node, Expression):
        return printer.expression(node)
    return "\n".join(printer.lines([node]))


def printed_function(function: Function, printer: Printer | None = None) -> str:
    """A definition of ``run``, after its constants."""
    printer = printer or Printer()
    show = printer.expression
    lines = [f"{show(Name(name))} = {literal(v)}" for name, v in function.constants.items()]
    return "\n".join([*lines, "def run(w):", *printer.lines(function.body, 1)]) + "\n"


def literal(value: np.generic) -> str:
    """A number of NumPy's as Python makes it."""
    if value.dtype.kind == "c":
        text = f"complex({_float(value.real)}, {_float(value.imag)})"
    else:
        text = _float(value) if value.dtype.kind == "f" else str(int(value))
    return f"np.{value.dtype.name}({text})"


def _float(value: Any) -> str:
    if np.isnan(value):
        return "np.nan"
    if np.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(float(value))


# Nodes are below their printer, and show themselves by it.
Node.__str__ = printed  # type: ignore[method-assign, assignment]
Node.__repr__ = lambda node: f"<{type(node).__name__} {node}>"  # type: ignore[method-assign]
Function.__str__ = printed_function  # type: ignore[method-assign, assignment]
