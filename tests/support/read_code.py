"""Functions of the loop IR from their source, so that tests can write them as Python."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import numpy as np

from nbta.compiler.build import build
from nbta.loops import Block
from nbta.loops.nodes import (
    Accumulate,
    Assign,
    Attribute,
    Binary,
    Break,
    Call,
    Compare,
    Constant,
    Evaluate,
    Expression,
    Function,
    Guard,
    If,
    Load,
    Logical,
    Name,
    Pass,
    Return,
    Select,
    Store,
    Tuple,
    Unary,
    Unpack,
    While,
    counted,
)

_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%", ast.Div: "/", ast.FloorDiv: "//",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<",
    ast.RShift: ">>", ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not", ast.Lt: "<",
    ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "and",
    ast.Or: "or",
}  # fmt: skip


class TextError(Exception):
    """Text that is not of the loop IR."""


def _no_node(found):
    return TextError(f"a {type(found).__name__} is not of the loop IR: {ast.unparse(found)}")


def expression(text: str) -> Expression:
    """An expression."""
    node = _node(ast.parse(text, mode="eval").body)
    if isinstance(node, Tuple) and not text.startswith("("):
        raise TextError(f"several expressions, not one: {text}")
    return node


def function(source: str, block: Callable = Block) -> Function:
    """A function from its source: assignments of constants, and the definition of ``run``.

    ``block(statements)`` gives a block.
    """
    *constants, found = ast.parse(source).body
    names: dict[str, Any] = {"np": np}
    exec(compile(ast.Module(constants, []), "<nbta>", "exec"), names)
    values = {each.targets[0].id: names[each.targets[0].id] for each in constants}  # type: ignore
    return Function(tuple(_statements(found.body, block)), values)  # type: ignore[attr-defined]


def built(source: str, extra: dict | None = None) -> Any:
    """What `nbta.compiler.build.build` gives for a source."""
    return build(source, extra, lambda: function(source))


def _statements(found, block):
    return [_statement(each, block) for each in found]


def _statement(found, block):
    rule = _STATEMENTS.get(type(found))
    made = None if rule is None else rule(found, lambda inner: block(_statements(inner, block)))
    if made is None:
        raise _no_node(found)
    return made


def _assign(found, _):
    match found.targets:
        case [ast.Name(name)]:
            return Assign(name, _node(found.value))
        case [ast.Tuple(names)] if all(isinstance(each, ast.Name) for each in names):
            return Unpack(tuple(each.id for each in names), _node(found.value))
        case [ast.Subscript() as target]:
            return Store(_node(target), _node(found.value))
    return None


def _evaluate(found, _):
    match found.value:
        case ast.Call(ast.Name("refuse"), [condition, status]):
            return Guard(_node(condition), _node(status))
    return Evaluate(_node(found.value))


def _for(found, block):
    match found:
        case ast.For(ast.Name(name), ast.Call(ast.Name("range"), ends), body, []):
            return counted(name, tuple(map(_node, ends)), block(body))
    return None


def _while(found, block):
    return None if found.orelse else While(_node(found.test), block(found.body))


_STATEMENTS: dict[type, Callable] = {
    ast.Assign: _assign,
    ast.Expr: _evaluate,
    ast.For: _for,
    ast.AugAssign: lambda found, _: Accumulate(
        _node(found.target), _SIGNS[type(found.op)], _node(found.value)
    ),
    ast.While: _while,
    ast.If: lambda found, block: If(_node(found.test), block(found.body), block(found.orelse)),
    ast.Return: lambda found, _: Return(_node(found.value)),
    ast.Break: lambda found, _: Break(),
    ast.Pass: lambda found, _: Pass(),
}


def _node(found):
    rule = _NODES.get(type(found))
    if rule is None:
        raise _no_node(found)
    return rule(found)


def _binary(found):
    chain = []
    while type(found) is ast.BinOp:  # a sum of lengths has as many as the program
        chain.append(found)
        found = found.left
    node = _node(found)
    for each in reversed(chain):
        node = Binary(node, _SIGNS[type(each.op)], _node(each.right))
    return node


def _compare(found):
    operands = tuple(map(_node, (found.left, *found.comparators)))
    return Compare(operands, tuple(_SIGNS[type(sign)] for sign in found.ops))


def _constant(found):
    if type(found.value) not in (bool, int, float):
        raise _no_node(found)
    return Constant(found.value)


_NODES: dict[type, Callable] = {
    ast.Name: lambda found: Name(found.id),
    ast.Constant: _constant,
    ast.UnaryOp: lambda found: Unary(_SIGNS[type(found.op)], _node(found.operand)),
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: lambda found: Logical(_SIGNS[type(found.op)], tuple(map(_node, found.values))),
    ast.IfExp: lambda found: Select(_node(found.test), _node(found.body), _node(found.orelse)),
    ast.Subscript: lambda found: Load(_node(found.value), _node(found.slice)),
    ast.Call: lambda found: Call(_node(found.func), tuple(map(_node, found.args))),
    ast.Attribute: lambda found: Attribute(_node(found.value), found.attr),
    ast.Tuple: lambda found: Tuple(tuple(map(_node, found.elts))),
}
