"""Parts of buffers, axis by axis: where they begin, what they hold, copies between them."""

from dataclasses import dataclass

from nbta.codegen.values import SHORT, Base, Block, Vector, cast_text, product, times, total
from nbta.loops import assign, do, over
from nbta.tuning import SLICE_BOUND


@dataclass(frozen=True)
class Window:
    """Items of a buffer: where the first is, and how far apart they are along each axis."""

    base: Base
    offset: str
    strides: tuple[str, ...]

    def at(self, *indices) -> str:
        """Source of the item at an index an axis."""
        steps = (times(i, stride) for i, stride in zip(indices, self.strides, strict=True))
        return f"{self.base.name}[{total(self.offset, *steps)}]"

    def moved(self, *indices) -> "Window":
        """The window that begins at an index an axis."""
        steps = (times(i, stride) for i, stride in zip(indices, self.strides, strict=True))
        return Window(self.base, total(self.offset, *steps), self.strides)


def offset_of(code, found) -> str:
    """Where a window begins, in a variable where that takes arithmetic."""
    text = total(found.offset)
    if text == "0":
        return ""
    return text if text.isidentifier() or text.isdigit() else code.variable(text, "o")


def strides_of(code, dimensions) -> tuple[str, ...]:
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
    axes = [axis for axis in range(outer) if dimensions[axis] != "1"]
    names = {axis: code.name("i") for axis in axes}
    indices = [names.get(axis, "0") for axis in range(len(dimensions))]
    to, of = target.moved(*indices), source.moved(*indices)
    line = assign(f"{to.base.name}[{to.offset or 0}]", f"{of.base.name}[{of.offset or 0}]")
    if run != "1":
        line = do("copy", to.base.name, to.offset or 0, of.base.name, of.offset or 0, run)
    code.nested([over(names[axis], dimensions[axis]) for axis in axes], line)


def _together(dimensions, axis, *windows):
    """Whether items along an axis and all after it lie one after the other."""
    run = product(dimensions[axis + 1 :])
    return dimensions[axis] == "1" or all(w.strides[axis] == run for w in windows)


def put(code, dimensions, target: Window, source, steps, *, adds: bool) -> None:
    """Store items, or add them, one by one.

    ``source`` is a block or a scalar whose items are ``steps`` apart along each axis; 0 repeats.
    """
    dimensions = tuple(map(code.canonical, dimensions))
    names = ["0" if dimension == "1" else code.name("i") for dimension in dimensions]
    inside = isinstance(source, Block)
    item = source.at(total(*map(times, names, steps))) if inside else source.text
    at = target.at(*names)
    if adds:
        item = f"{at} {'|' if target.base.dtype.kind == 'b' else '+'} {item}"
    pairs = zip(names, dimensions, strict=True)
    headers = [over(name, dimension) for name, dimension in pairs if name != "0"]
    line = assign(at, cast_text(item, target.base.dtype))
    if headers or not adds:
        return code.nested(headers, line)
    return code.addition(line)


def fill(code, block, text) -> None:
    """Put one item everywhere."""
    i = code.name("i")
    item = cast_text(text, block.dtype)
    header = over(i, product(block.dimensions))
    code.nested([header], assign(block.at(i), item))


def clear(code, block) -> None:
    """Put zeros everywhere."""
    code.add(do("clear", block.base.name, block.offset or 0, product(block.dimensions)))


def is_below(code, one: str, other: str) -> None:
    """Fail where a dimension is longer than another."""
    one, other = code.canonical(one), code.canonical(other)
    if one.isdigit() and other.isdigit():
        if int(one) > int(other):
            code.fail_if("True")
    elif one != other and not (one == "0" and other in code.dims.values()):
        code.fail_if(f"{one} > {other}")


def held(code, dimension: str, known) -> str:
    """A dimension, held against what the graph knows of it."""
    name = str(known) if type(known) is int else code.known_dimension(known)
    if name is None:
        return code.canonical(dimension)
    code.equate(dimension, name)
    return name


def integer(code, tensor) -> str:
    """Source of a scalar integer as an int64, also where that is used as an index."""
    text = code.integer(tensor)
    if tensor.dtype.kind == "u" and tensor.dtype.itemsize == 8:
        code.fail_if(f"{text} < 0")  # beyond what an int64 holds
    return text


def integers(code, tensor, count) -> list[str]:
    """The items of a vector that must have so many: numbers, or variables that stay."""
    (dimension,) = code.dimensions(tensor)
    code.equate(dimension, str(count))
    return [_dimension_text(code, text) for text in _items(code, tensor, dimension, count)]


def _items(code, tensor, dimension, count):
    if dimension.isdigit():
        return code.vector(tensor)
    block = code.value(tensor)
    return [f"int64({block.at(str(k))})" for k in range(count)]


def _dimension_text(code, text):
    number = number_in(text)
    return code.dimension(text) if number is None else str(number)


def number_in(text: str) -> int | None:
    """The integer that source says, None for others."""
    text = text.removeprefix("int64(").removesuffix(")").removeprefix("(")
    return int(text) if text.removeprefix("-").isdigit() else None


def position(code, index, dimension, guard=None) -> str:
    """An index counted from the first item: a variable or a number; the run fails outside.

    ``guard`` is a truth value: where it is false, the variable is proven to be from 0 to before the
    dimension. As no iteration of a loop changes it, LLVM makes a loop without checks for that case.
    """
    if not isinstance(index, str):
        index = clipped(index)
        if dimension.isdigit():
            index = index + int(dimension) * (index < 0)
            if not 0 <= index < int(dimension):
                code.fail_if("True")
            return str(index)
        if index >= 0:
            code.fail_if(f"{index} >= {dimension}")
            return str(index)
        found = code.derived(f"{dimension} - {-index}", "k")
        code.fail_if(f"{found} < 0")
        return found
    outside, negative = f"{index} < -{dimension} or {index} >= {dimension}", f"{index} < 0"
    if guard is not None:
        outside, negative = f"{guard} and ({outside})", f"{guard} and {negative}"
    code.fail_if(outside)
    return code.variable(f"{index} + {dimension} if {negative} else {index}", "k")


def clipped(n):
    """A bound within what arithmetic with dimensions allows."""
    return n if n is None or isinstance(n, str) else max(-SLICE_BOUND, min(n, SLICE_BOUND))


def sum_of(code, lengths):
    """Source of a sum of dimensions."""
    numbers = sum(int(n) for n in lengths if n.isdigit())
    names = [n for n in lengths if not n.isdigit()]
    text = total(*names, str(numbers))
    return code.derived(text) if len(names) > 1 or (names and numbers) else text


def bind_reshaped(code, op, value, dimensions):
    """Let the items of a value stand for the result under other dimensions."""
    result = op.outputs[0]
    if isinstance(value, Block) and dimensions:
        return code.bind(result, Block(value.base, tuple(dimensions), value.offset))
    if isinstance(value, Block):
        return code.bind(result, code.local(value.at("0"), value.dtype))
    if not dimensions:
        return code.bind(result, value)
    if len(dimensions) == 1 and value.dtype.name in SHORT:
        return code.bind(result, Vector((value.text,), value.dtype))
    block = code.result(op, dimensions=tuple(dimensions))
    return code.add(assign(block.at("0"), value.text))
