"""Generated code: what stands for a tensor, as a variable or a stretch of a buffer; its dtypes.

Dimensions are expressions too: a constant, or the name of an integer variable.
"""

import math
import operator
from dataclasses import dataclass
from functools import reduce

import numpy as np

from nbta.loops import Binary, Call, Constant, Expression, Load, Name, Unary, call
from nbta.loops.nodes import ONE, ZERO, as_node
from nbta.runtime.intrinsics import MOST_ITEMS, SCOPES


@dataclass(frozen=True)
class Scalar:
    """Of rank 0: an expression without effects, mostly a name."""

    item: Expression
    dtype: np.dtype

    dimensions = ()


@dataclass(eq=False)
class Base:
    """A buffer: the name of the pointer, and the place of its address among the words."""

    name: Name
    dtype: np.dtype
    number: int
    word: int | None = None  # None for what has its place elsewhere, such as constants
    level: int = 0  # of the loop in whose body it may be used again
    loose: bool = False  # whether it may be used again at all
    made: tuple | None = None  # level and size, where it is made ahead of a loop

    @property
    def scope(self):
        """The number by which LLVM knows it: that of an earlier buffer, where there are many.

        Two of one scope may overlap, for all that LLVM knows. The first ones, arguments among them,
        share theirs with nobody.
        """
        return self.number if self.number < SCOPES else SCOPES // 2 + self.number % (SCOPES // 2)


@dataclass(eq=False)
class Block:
    """Consecutive items of a buffer, in C order."""

    base: Base
    dimensions: tuple[Expression, ...]
    offset: Expression = ZERO

    @property
    def dtype(self):
        """Of the items."""
        return self.base.dtype

    @property
    def address(self) -> Call:
        """The address of the first item."""
        return call("address", self.base.name, self.offset)

    def at(self, index: Expression | int) -> Load:
        """An item."""
        return self.base.name[total(self.offset, index)]


@dataclass(eq=False)
class Lazy:
    """An item in a loop that is not written down yet."""

    group: object
    item: Expression | None
    dtype: np.dtype
    dimensions: tuple[Expression, ...]


#: The words that a call brings, as a buffer.
TABLE = Name("W")
_INT64 = Name("int64")
#: Integers that are kept item by item, as shapes are made of them.
SHORT = ("int32", "int64")


@dataclass(frozen=True)
class Vector:
    """Of rank 1: an expression an item."""

    items: tuple[Expression, ...]
    dtype: np.dtype

    @property
    def dimensions(self):
        """Its length."""
        return (Constant(len(self.items)),)


@dataclass(eq=False)
class Transposed:
    """A matrix whose transpose is in memory; products take it as it is."""

    block: Block

    @property
    def dtype(self):
        """Of the items."""
        return self.block.dtype

    @property
    def dimensions(self):
        """Of the matrix that it stands for."""
        return self.block.dimensions[::-1]


def is_known(dimension: Expression) -> bool:
    """Whether a dimension is a number."""
    return type(dimension) is Constant


def uncast(node: Expression) -> Expression:
    """What an expression makes an int64 of; others as they are."""
    return node.arguments[0] if type(node) is Call and node.function == _INT64 else node


def number_in(node: Expression) -> int | None:
    """The integer that an expression is, perhaps as an int64; None for others."""
    match uncast(node):
        case Constant(int(number)) if type(number) is int:
            return number
        case Unary("-", Constant(int(number))) if type(number) is int:
            return -number
    return None


def factors(dimensions) -> list[Expression]:
    """Numbers whose product says how many items there are."""
    known = min(math.prod(e.value for e in dimensions if is_known(e)), 2 * MOST_ITEMS)
    names = [e for e in dimensions if not is_known(e)]
    if known == 0:
        return [ZERO]
    return ([Constant(known)] if known != 1 or not names else []) + names


def product(dimensions) -> Expression:
    """How many items there are."""
    return reduce(operator.mul, factors(dimensions))


def total(*terms) -> Expression:
    """A sum, in which zeros are left out."""
    found = ZERO
    for term in map(as_node, terms):
        if found == ZERO:
            found = term
        elif term != ZERO:
            found = _chained(found, term, "+", "+-")
    return found


def times(one: Expression | int, other: Expression | int) -> Expression:
    """A product, in which ones are left out."""
    one, other = as_node(one), as_node(other)
    if ZERO in (one, other):
        return ZERO
    if ONE in (one, other):
        return other if one == ONE else one
    return _chained(one, other, "*", "*")


def _chained(one, other, sign, signs):
    """A sum or product of integers without parentheses where its second operand is one, too."""
    chain = []
    while type(other) is Binary and other.sign in signs:
        chain.append(other)
        other = other.left
    found = Binary(one, sign, other)
    for each in reversed(chain):
        found = Binary(found, each.sign, each.right)
    return found


# dtypes in source.

#: What Numba computes with on a CPU.
NUMBERS = "?bBhHiIlLqQfdFD"


def numba_name(dtype) -> str:
    """Numba's name for a dtype; what it has no numbers of is moved as bytes."""
    dtype = np.dtype(dtype)
    if dtype.char not in NUMBERS:
        return f"uint{8 * dtype.itemsize}"
    return "boolean" if dtype == np.bool_ else dtype.name


def typed(value, dtype) -> Call:
    """A value with a dtype."""
    return call(numba_name(dtype), value)
