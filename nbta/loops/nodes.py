"""The nodes of the loop IR."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbta.loops.building import Block

#: Nodes of expressions are not frozen: ``object.__setattr__`` for each field makes them four times
#: as slow to make (0.2 and 0.8 microseconds), and a program has tens of thousands.
_expression = dataclass(slots=True, unsafe_hash=True, repr=False)
_node = dataclass(slots=True, eq=False, repr=False)


class Node:
    """What the loop IR is made of; `nbta.loops.printing` shows it as Python."""

    __slots__ = ()


class Expression(Node):
    """A value, computed without effects.

    Signs of Python make expressions of expressions and numbers. Of ``==`` and ``!=``, which tell
    whether two expressions say the same, the nodes are `equals` and `differs`.
    """

    __slots__ = ()

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The expressions that it is made of, in the order in which they are printed."""
        return ()

    def with_parts(self, *parts: Expression) -> Expression:
        """An expression of the same kind that is made of other parts."""
        return self

    def __add__(self, other: Any) -> Binary:
        return Binary(self, "+", as_node(other))

    def __radd__(self, other: Any) -> Binary:
        return Binary(as_node(other), "+", self)

    def __sub__(self, other: Any) -> Binary:
        return Binary(self, "-", as_node(other))

    def __rsub__(self, other: Any) -> Binary:
        return Binary(as_node(other), "-", self)

    def __mul__(self, other: Any) -> Binary:
        return Binary(self, "*", as_node(other))

    def __rmul__(self, other: Any) -> Binary:
        return Binary(as_node(other), "*", self)

    def __truediv__(self, other: Any) -> Binary:
        return Binary(self, "/", as_node(other))

    def __rtruediv__(self, other: Any) -> Binary:
        return Binary(as_node(other), "/", self)

    def __pow__(self, other: Any) -> Binary:
        return Binary(self, "**", as_node(other))

    def __floordiv__(self, other: Any) -> Binary:
        return Binary(self, "//", as_node(other))

    def __mod__(self, other: Any) -> Binary:
        return Binary(self, "%", as_node(other))

    def __and__(self, other: Any) -> Binary:
        return Binary(self, "&", as_node(other))

    def __or__(self, other: Any) -> Binary:
        return Binary(self, "|", as_node(other))

    def __xor__(self, other: Any) -> Binary:
        return Binary(self, "^", as_node(other))

    def __lshift__(self, other: Any) -> Binary:
        return Binary(self, "<<", as_node(other))

    def __rshift__(self, other: Any) -> Binary:
        return Binary(self, ">>", as_node(other))

    def __neg__(self) -> Unary:
        return Unary("-", self)

    def __invert__(self) -> Unary:
        return Unary("~", self)

    @property
    def real(self) -> Attribute:
        """The real part of a complex number."""
        return Attribute(self, "real")

    @property
    def imag(self) -> Attribute:
        """The imaginary part of a complex number."""
        return Attribute(self, "imag")

    def conjugate(self) -> Call:
        """The complex conjugate."""
        return Call(Attribute(self, "conjugate"), ())

    def __lt__(self, other: Any) -> Compare:
        return Compare((self, as_node(other)), ("<",))

    def __le__(self, other: Any) -> Compare:
        return Compare((self, as_node(other)), ("<=",))

    def __gt__(self, other: Any) -> Compare:
        return Compare((self, as_node(other)), (">",))

    def __ge__(self, other: Any) -> Compare:
        return Compare((self, as_node(other)), (">=",))

    def equals(self, other: Any) -> Compare:
        """Whether the value is that of another expression."""
        return Compare((self, as_node(other)), ("==",))

    def differs(self, other: Any) -> Compare:
        """Whether the value is not that of another expression."""
        return Compare((self, as_node(other)), ("!=",))

    def __getitem__(self, index: Any) -> Load:
        return Load(self, as_node(index))

    def __bool__(self) -> bool:
        raise TypeError(f"whether {self} holds is known in a run only")

    def __iter__(self) -> Iterator:
        raise TypeError(f"{self} has no items before a run")


def as_node(value: Any) -> Expression:
    """An expression, or a number as one."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, bool | int | float):
        if not math.isfinite(value):
            raise TypeError(f"{value!r} has a name in code, and no number")
        negative = math.copysign(1, value) < 0
        return Unary("-", Constant(-value)) if negative else Constant(value)
    raise TypeError(f"{value!r} is no expression")


@_expression
class Name(Expression):
    """A variable, or what the function refers to."""

    id: str


@_node
class Constant(Expression):
    """A number that is not negative, or a truth value.

    Two of them are equal if their types are, too: ``1``, ``1.0`` and ``True`` are different code.
    """

    value: bool | int | float

    def __eq__(self, other: object) -> bool:
        if type(other) is not Constant:
            return NotImplemented
        return type(self.value) is type(other.value) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@_expression
class Unary(Expression):
    """``-``, ``+``, ``~`` or ``not`` of a value."""

    sign: str
    operand: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return (self.operand,)

    def with_parts(self, *parts: Expression) -> Unary:
        """See `Expression.with_parts`."""
        return Unary(self.sign, *parts)


@_expression
class Binary(Expression):
    """Two values in one of Python's operations."""

    left: Expression
    sign: str
    right: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return self.left, self.right

    def with_parts(self, *parts: Expression) -> Binary:
        """See `Expression.with_parts`."""
        return Binary(parts[0], self.sign, parts[1])


@_expression
class Compare(Expression):
    """Whether each two neighbours of some values are in an order, ``a < b <= c``."""

    operands: tuple[Expression, ...]
    signs: tuple[str, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return self.operands

    def with_parts(self, *parts: Expression) -> Compare:
        """See `Expression.with_parts`."""
        return Compare(parts, self.signs)


@_expression
class Logical(Expression):
    """``and`` or ``or`` of truth values: from the left, until one decides."""

    sign: str
    operands: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return self.operands

    def with_parts(self, *parts: Expression) -> Logical:
        """See `Expression.with_parts`."""
        return Logical(self.sign, parts)


@_expression
class Select(Expression):
    """One of two values, ``one if test else other``; only that is computed, or both are cheap."""

    test: Expression
    one: Expression
    other: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return self.one, self.test, self.other

    def with_parts(self, *parts: Expression) -> Select:
        """See `Expression.with_parts`."""
        return Select(parts[1], parts[0], parts[2])


@_expression
class Load(Expression):
    """An item of a buffer."""

    buffer: Expression
    index: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return self.buffer, self.index

    def with_parts(self, *parts: Expression) -> Load:
        """See `Expression.with_parts`."""
        return Load(*parts)


@_expression
class Attribute(Expression):
    """A part of a value, such as ``real``, or a name of a module."""

    value: Expression
    name: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return (self.value,)

    def with_parts(self, *parts: Expression) -> Attribute:
        """See `Expression.with_parts`."""
        return Attribute(*parts, self.name)


@_expression
class Call(Expression):
    """What a function, or a value's method, gives."""

    function: Expression
    arguments: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return self.function, *self.arguments

    @property
    def name(self) -> str | None:
        """The function's name; None for a method, or a name of a module."""
        return self.function.id if type(self.function) is Name else None

    def with_parts(self, *parts: Expression) -> Call:
        """See `Expression.with_parts`."""
        return Call(parts[0], parts[1:])


@_expression
class Tuple(Expression):
    """Several values."""

    items: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """See `Expression.parts`."""
        return self.items

    def with_parts(self, *parts: Expression) -> Tuple:
        """See `Expression.with_parts`."""
        return Tuple(parts)


class Statement(Node):
    """What is done."""

    __slots__ = ()

    #: The expressions in it, without those of its blocks, in the order in which they are printed.
    expressions: tuple[Expression, ...] = ()
    #: Its blocks.
    blocks: tuple[Block, ...] = ()


@_node
class Assign(Statement):
    """Give a variable a value."""

    name: str
    value: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return Name(self.name), self.value


@_node
class Unpack(Statement):
    """Give variables what a user's function gives, which is several values."""

    names: tuple[str, ...]
    value: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return *map(Name, self.names), self.value


@_node
class Store(Statement):
    """Put a value into an item of a buffer."""

    target: Load
    value: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return self.target, self.value


@_node
class Accumulate(Statement):
    """Combine a variable, or an item of a buffer, with a value: ``target += value``."""

    target: Name | Load
    sign: str
    value: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return self.target, self.value


@_node
class Evaluate(Statement):
    """Call a function for what it does."""

    value: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return (self.value,)


@_node
class Guard(Statement):
    """Leave the function with a status where a condition holds: its error is found outside."""

    condition: Expression
    status: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return self.condition, self.status


@_node
class For(Statement):
    """A loop over integers from ``start`` to before ``stop``."""

    variable: str
    start: Expression
    stop: Expression
    step: Expression
    body: Block

    @property
    def ends(self) -> tuple[Expression, ...]:
        """What ``range`` is given where that is said as shortly as can be."""
        if self.step != ONE:
            return self.start, self.stop, self.step
        return (self.stop,) if self.start == ZERO else (self.start, self.stop)

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return Name(self.variable), *self.ends

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        """See `Statement.blocks`."""
        return (self.body,)


@_node
class While(Statement):
    """A loop as long as a test holds."""

    test: Expression
    body: Block

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return (self.test,)

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        """See `Statement.blocks`."""
        return (self.body,)


@_node
class If(Statement):
    """One of two blocks."""

    test: Expression
    body: Block
    otherwise: Block

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return (self.test,)

    @property
    def blocks(self) -> tuple[Block, ...]:  # type: ignore[override]
        """See `Statement.blocks`."""
        return self.body, self.otherwise


@_node
class Break(Statement):
    """Leave the innermost loop."""


@_node
class Pass(Statement):
    """Nothing, in a block that would be empty."""


@_node
class Return(Statement):
    """Leave the function with a status."""

    value: Expression

    @property
    def expressions(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """See `Statement.expressions`."""
        return (self.value,)


@_node
class Comment(Statement):
    """A line for people."""

    text: str


@_node
class Mark(Statement):
    """Where what follows comes from; a number, whose meaning is known to whoever put it there."""

    number: int


@_node
class Versions(Statement):
    """A block for when one of some truth values holds, and for when none does, if anything asks."""

    body: Block
    names: tuple[str, ...]


ZERO, ONE = Constant(0), Constant(1)


@dataclass(eq=False, slots=True)
class Function:
    """A function of the address of a table, which gives a status.

    Attributes
    ----------
    body : tuple of Statement
        Without `Versions`, and with blocks that hold statements alone.
    constants : dict
        Numbers of NumPy's, by the names that the body has for them.
    """

    body: tuple[Statement, ...]
    constants: dict[str, Any] = field(default_factory=dict)


def expressions_in(root: Expression) -> Iterator[Expression]:
    """An expression and all in it, in the order in which their first parts are printed.

    Without recursion: a sum may have as many terms as a program has lengths.
    """
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        parts = node.parts
        if parts:
            waiting.extend(parts[::-1])


def names_in(*roots: Expression) -> Iterator[str]:
    """Names in expressions, in the order in which they are printed."""
    waiting = list(roots[::-1])
    while waiting:
        node = waiting.pop()
        if type(node) is Name:
            yield node.id
        else:
            waiting.extend(node.parts[::-1])


def statements_in(statements: Any) -> Iterator[Statement]:
    """Statements and all in their blocks, in order.

    Without recursion: branches may lie as deep as a chain of ``elif`` is long.
    """
    levels = [iter(statements)]
    while levels:
        for statement in levels[-1]:
            yield statement
            if blocks := statement.blocks:
                levels.append(chain.from_iterable(blocks))
                break
        else:
            levels.pop()


def names_of(statement: Statement) -> Iterator[str]:
    """Names in a statement and its blocks, in the order in which they are printed."""
    for each in statements_in((statement,)):
        yield from names_in(*each.expressions)


def stored_by(statement: Statement) -> Iterator[str]:
    """The variables that a statement gives values to, without those of its blocks."""
    match statement:
        case Assign(name) | For(name):
            yield name
        case Accumulate(Name(name)):
            yield name
        case Unpack(names):
            yield from names


def mapped(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """An expression of the same kind, whose parts ``change`` gives in their order."""
    parts = node.parts
    return node.with_parts(*map(change, parts)) if parts else node


def mapped_statement(statement: Statement, change: Any, block: Any) -> Statement:
    """A statement of the same kind.

    ``change`` gives its expressions in their order, of which that of a variable which is given a
    value is a `Name`; ``block`` gives its blocks.
    """
    if statement.blocks:
        return _mapped_compound(statement, change, block)
    match statement:
        case Assign(name, value):
            return Assign(change(Name(name)).id, change(value))
        case Unpack(names, value):
            return Unpack(tuple(change(Name(name)).id for name in names), change(value))
        case Store(target, value):
            return Store(change(target), change(value))
        case Accumulate(target, sign, value):
            return Accumulate(change(target), sign, change(value))
        case Evaluate(value):
            return Evaluate(change(value))
        case Guard(condition, status):
            return Guard(change(condition), change(status))
        case Return(value):
            return Return(change(value))
    return statement


def _mapped_compound(statement: Statement, change: Any, block: Any) -> Statement:
    match statement:
        case For(variable, body=body):
            variable = change(Name(variable)).id
            return counted(variable, tuple(map(change, statement.ends)), block(body))
        case While(test, body):
            return While(change(test), block(body))
        case If(test, body, otherwise):
            return If(change(test), block(body), block(otherwise))
    return statement


def with_blocks(statement: Statement, block: Callable[[Block], Block]) -> Statement:
    """A statement of the same kind whose blocks ``block`` gives; one without blocks as it is."""
    return mapped_statement(statement, lambda node: node, block) if statement.blocks else statement


def counted(variable: str, ends: tuple[Expression, ...], body: Block) -> For:
    """A loop over what ``range`` gives for one to three arguments."""
    start, stop, step = (ZERO, *ends, ONE) if len(ends) == 1 else (*ends, ONE)[:3]
    return For(variable, start, stop, step, body)
