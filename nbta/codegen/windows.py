"""Parts of buffers, axis by axis: where they begin, what they hold, copies between them."""

from dataclasses import dataclass

import numpy as np

from nbta.codegen.values import (
    SHORT,
    Base,
    Block,
    Vector,
    is_known,
    number_in,
    product,
    times,
    total,
    typed,
)
from nbta.loops import Constant, Expression, Load, Name, assign, both, do, either, over, select
from nbta.loops.nodes import ONE, ZERO, as_node
from nbta.tuning import SLICE_BOUND


@dataclass(frozen=True)
class Window:
    """Items of a buffer: where the first is, and how far apart they are along each axis."""

    base: Base
    offset: Expression
    strides: tuple[Expression, ...]

    def at(self, *indices) -> Load:
        """The item at an index an axis."""
        return self.moved(*indices).first

    def moved(self, *indices) -> "Window":
        """The window that begins at an index an axis."""
        steps = (times(i, stride) for i, stride in zip(indices, self.strides, strict=True))
        return Window(self.base, total(self.offset, *steps), self.strides)

    @property
    def first(self) -> Load:
        """The first item."""
        return self.base.name[self.offset]


def offset_of(code, found) -> Expression:
    """Where a window begins, in a variable where that takes arithmetic."""
    offset = found.offset
    return offset if isinstance(offset, Name | Constant) else code.variable(offset, "o")


def strides_of(code, dimensions) -> tuple[Expression, ...]:
    """How far apart items are in C order."""
    dimensions = tuple(map(code.canonical, dimensions))
    return tuple(product(dimensions[axis + 1 :]) for axis in range(len(dimensions)))


def window(code, block, dimensions=None) -> Window:
    """All items of a block, also under other dimensions."""
    dimensions = block.dimensions if dimensions is None else dimensions
    return Window(block.base, block.offset, strides_of(code, dimensions))


def move(code, dimensions, target: Window, source: Window) -> None:
    """Copy items from one window to another; the innermost ones that lie together all at once."""
    dimensions = tuple(map(code.canonical, dimensions))
    outer = len(dimensions)
    while outer and _together(dimensions, outer - 1, target, source):
        outer -= 1
    run = product(dimensions[outer:])
    axes = [axis for axis in range(outer) if dimensions[axis] != ONE]
    names = {axis: code.name("i") for axis in axes}
    indices = [names.get(axis, ZERO) for axis in range(len(dimensions))]
    to, of = target.moved(*indices), source.moved(*indices)
    line = assign(to.first, of.first)
    if run != ONE:
        line = do("copy", to.base.name, to.offset, of.base.name, of.offset, run)
    code.nested([over(names[axis], dimensions[axis]) for axis in axes], line)


def _together(dimensions, axis, *windows):
    """Whether items along an axis and all after it lie one after the other."""
    run = product(dimensions[axis + 1 :])
    return dimensions[axis] == ONE or all(w.strides[axis] == run for w in windows)


def put(code, dimensions, target: Window, source, steps, *, adds: bool) -> None:
    """Store items, or add them, one by one.

    ``source`` is a block or a scalar whose items are ``steps`` apart along each axis; 0 repeats.
    """
    dimensions = tuple(map(code.canonical, dimensions))
    names = [ZERO if dimension == ONE else code.name("i") for dimension in dimensions]
    inside = isinstance(source, Block)
    item = source.at(total(*map(times, names, steps))) if inside else source.item
    at = target.at(*names)
    if adds:
        item = added(at, item, target.base.dtype)
    pairs = zip(names, dimensions, strict=True)
    headers = [over(name, dimension) for name, dimension in pairs if name != ZERO]
    line = assign(at, typed(item, target.base.dtype))
    if headers:
        return code.nested(headers, line)
    return code.addition(line) if adds else code.replacement(line)


def added(one, other, dtype) -> Expression:
    """A sum of items; of truth values, whether one holds."""
    return one | other if dtype.kind == "b" else one + other


def fill(code, block, item) -> None:
    """Put one item everywhere."""
    i = code.name("i")
    header = over(i, product(block.dimensions))
    code.nested([header], assign(block.at(i), typed(item, block.dtype)))


def clear(code, block) -> None:
    """Put zeros everywhere."""
    code.add(do("clear", block.base.name, block.offset, product(block.dimensions)))


def is_below(code, one: Expression, other: Expression) -> None:
    """Fail where a dimension is longer than another."""
    one, other = code.canonical(one), code.canonical(other)
    if is_known(one) and is_known(other):
        if one.value > other.value:
            code.fail_if(True)
    elif one != other and not (one == ZERO and other in code.dims.values()):
        code.fail_if(one > other)


def held(code, dimension: Expression, known) -> Expression:
    """A dimension, held against what the graph knows of it."""
    name = Constant(known) if type(known) is int else code.known_dimension(known)
    if name is None:
        return code.canonical(dimension)
    code.equate(dimension, name)
    return name


def integer(code, tensor) -> Expression:
    """A scalar integer as an int64, also where that is used as an index."""
    item = code.integer(tensor)
    if tensor.dtype.kind == "u" and tensor.dtype.itemsize == 8:
        code.fail_if(item < 0)  # beyond what an int64 holds
    return item


def integers(code, tensor, count) -> list[Expression]:
    """The items of a vector that must have so many: numbers, or variables that stay."""
    (dimension,) = code.dimensions(tensor)
    code.equate(dimension, Constant(count))
    return [_staying(code, item) for item in _items(code, tensor, dimension, count)]


def _items(code, tensor, dimension, count):
    if is_known(dimension):
        return code.vector(tensor)
    block = code.value(tensor)
    return [typed(block.at(k), np.int64) for k in range(count)]


def _staying(code, item):
    number = number_in(item)
    return code.dimension(item) if number is None else as_node(number)


def position(code, index, dimension, guard=None) -> Expression:
    """An index counted from the first item: a variable or a number; the run fails outside.

    ``guard`` is a truth value: where it is false, the variable is proven to be from 0 to before the
    dimension. As no iteration of a loop changes it, LLVM makes a loop without checks for that case.
    """
    if not isinstance(index, Expression):
        index = clipped(index)
        if is_known(dimension):
            index = index + dimension.value * (index < 0)
            if not 0 <= index < dimension.value:
                code.fail_if(True)
            return as_node(index)
        if index >= 0:
            code.fail_if(as_node(index) >= dimension)
            return as_node(index)
        found = code.derived(dimension - -index, "k")
        code.fail_if(found < 0)
        return found
    outside, negative = either(index < -dimension, index >= dimension), index < 0
    if guard is not None:
        outside, negative = both(guard, outside), both(guard, negative)
    code.fail_if(outside)
    return code.variable(select(negative, index + dimension, index), "k")


def clipped(n):
    """A bound within what arithmetic with dimensions allows."""
    return n if n is None or isinstance(n, Expression) else max(-SLICE_BOUND, min(n, SLICE_BOUND))


def sum_of(code, lengths):
    """A sum of dimensions."""
    numbers = sum(n.value for n in lengths if is_known(n))
    names = [n for n in lengths if not is_known(n)]
    found = total(*names, numbers)
    return code.derived(found) if len(names) > 1 or (names and numbers) else found


def bind_reshaped(code, op, value, dimensions):
    """Let the items of a value stand for the result under other dimensions."""
    result = op.outputs[0]
    if isinstance(value, Block) and dimensions:
        return code.bind(result, Block(value.base, tuple(dimensions), value.offset))
    if isinstance(value, Block):
        return code.bind(result, code.local(value.at(0), value.dtype))
    if not dimensions:
        return code.bind(result, value)
    if len(dimensions) == 1 and value.dtype.name in SHORT:
        return code.bind(result, Vector((value.item,), value.dtype))
    block = code.result(op, dimensions=tuple(dimensions))
    return code.add(assign(block.at(0), value.item))
