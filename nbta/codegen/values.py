"""Generated source: what stands for a tensor, as a variable or a stretch of a buffer; its dtypes.

Dimensions are source too: a literal, or the name of an integer variable.
"""

import math
from dataclasses import dataclass

import numpy as np

from nbta.runtime.intrinsics import MOST_ITEMS, SCOPES


@dataclass(frozen=True)
class Scalar:
    """Of rank 0: an expression without effects, mostly a name."""

    text: str
    dtype: np.dtype

    dimensions = ()


@dataclass(eq=False)
class Base:
    """A buffer: the name of the pointer, and the place of its address among the words."""

    name: str
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
    dimensions: tuple[str, ...]
    offset: str = ""

    @property
    def dtype(self):
        """Of the items."""
        return self.base.dtype

    @property
    def address(self) -> str:
        """Source of the address of the first item."""
        return f"address({self.base.name}, {self.offset or 0})"

    def at(self, index: str) -> str:
        """Source of an item."""
        return f"{self.base.name}[{total(self.offset, index)}]"


@dataclass(eq=False)
class Lazy:
    """An item in a loop that is not written down yet."""

    group: object
    text: str
    dtype: np.dtype
    dimensions: tuple[str, ...]


#: Integers that are kept item by item, as shapes are made of them.
SHORT = ("int32", "int64")


@dataclass(frozen=True)
class Vector:
    """Of rank 1: an expression an item."""

    texts: tuple[str, ...]
    dtype: np.dtype

    @property
    def dimensions(self):
        """Its length."""
        return (str(len(self.texts)),)


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


def factors(dimensions) -> list[str]:
    """Sources of numbers whose product says how many items there are."""
    known = min(math.prod(int(e) for e in dimensions if e.isdigit()), 2 * MOST_ITEMS)
    names = [e for e in dimensions if not e.isdigit()]
    if known == 0:
        return ["0"]
    return ([str(known)] if known != 1 or not names else []) + names


def product(dimensions) -> str:
    """Source of how many items there are."""
    return " * ".join(factors(dimensions))


def total(*terms) -> str:
    """Source of a sum."""
    terms = [term for term in terms if term not in ("", "0")]
    return " + ".join(terms) or "0"


def times(one: str, other: str) -> str:
    """Source of a product."""
    if "0" in (one, other):
        return "0"
    factors = [f"({f})" if " + " in f else f for f in (one, other) if f != "1"]
    return " * ".join(factors) or "1"


# dtypes in source.

#: What Numba computes with on a CPU.
NUMBERS = "?bBhHiIlLqQfdFD"


def numba_name(dtype) -> str:
    """Numba's name for a dtype; what it has no numbers of is moved as bytes."""
    dtype = np.dtype(dtype)
    if dtype.char not in NUMBERS:
        return f"uint{8 * dtype.itemsize}"
    return "boolean" if dtype == np.bool_ else dtype.name


def cast_text(text: str, dtype) -> str:
    """Source of a value with a dtype."""
    return f"{numba_name(dtype)}({text})"
