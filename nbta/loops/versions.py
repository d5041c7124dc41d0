"""Two versions of a block: for when one of some truth values holds, and for when none does.

A loop that looks at each index is no vector instructions. So a truth value from before the loop
says whether any index may be outside; where it does not hold, a copy of the loop has no guards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from nbta.loops.nodes import (
    Constant,
    Expression,
    Guard,
    If,
    Logical,
    Name,
    Select,
    Statement,
    Unary,
    Versions,
    mapped,
    mapped_statement,
    names_in,
    names_of,
)


def versions_of(versions: Versions, block: Callable) -> Iterator[Statement]:
    """What stands in place of a block with two versions: a branch, if anything in it asks.

    ``block(statements)`` gives a block.
    """
    body = list(versions.body)
    found = {name for statement in body for name in names_of(statement)}
    asked = [name for name in versions.names if name in found]
    if not asked:
        yield from body
        return
    test = _any([Name(name) for name in asked])
    one = _Version(asked, True, block)(body) if len(asked) == 1 else block(body)
    yield If(test, one, _Version(asked, False, block)(body))


def _any(names: list[Name]) -> Expression:
    return names[0] if len(names) == 1 else Logical("or", tuple(names))


class _Version:
    """Makes a version where truth values are known.

    Parameters
    ----------
    names : iterable of str
        Of the truth values.
    holds : bool
    block : callable
        See `versions_of`.
    """

    def __init__(self, names: Iterable[str], holds: bool, block: Callable):
        self._names, self._holds, self._block = frozenset(names), holds, block

    def __call__(self, statements: Iterable[Statement]):
        """A block of what statements become."""
        return self._block(each for s in statements for each in self._statement(s))

    def _statement(self, statement: Statement) -> Iterator[Statement]:
        if isinstance(statement, If) and (known := self._known(statement.test)) is not None:
            for each in statement.body if known else statement.otherwise:
                yield from self._statement(each)
        elif not (isinstance(statement, Guard) and self._is_never(statement.condition)):
            if statement.blocks or self._asks(*statement.expressions):
                statement = mapped_statement(statement, self._expression, self)
            yield statement

    def _asks(self, *nodes: Expression) -> bool:
        return not self._names.isdisjoint(names_in(*nodes))

    def _expression(self, node: Expression) -> Expression:
        if isinstance(node, Name):
            return Constant(self._holds) if node.id in self._names else node
        if isinstance(node, Select) and self._is_never(node.test):
            return self._expression(node.other)
        return mapped(node, self._expression) if self._asks(node) else node

    def _known(self, test: Expression) -> bool | None:
        """The value of a test that is one of the truth values, or its opposite; else None."""
        match test:
            case Name(name) if name in self._names:
                return self._holds
            case Unary("not", Name(name)) if name in self._names:
                return not self._holds
        return None

    def _is_never(self, test: Expression) -> bool:
        """Whether a truth value that does not hold decides a test."""
        match test:
            case Logical("and", (Name(name), *_)):
                return not self._holds and name in self._names
        return False
