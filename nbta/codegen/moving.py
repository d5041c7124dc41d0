"""Copies between stretches of buffers, axis by axis."""

from dataclasses import dataclass

from nbta.codegen.names import cast
from nbta.codegen.values import Base, product, times, total


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


def strides_of(code, extents) -> tuple[str, ...]:
    """How far apart items are in C order."""
    extents = tuple(map(code.canonical, extents))
    return tuple(product(extents[axis + 1 :]) for axis in range(len(extents)))


def window(code, block, extents=None) -> Window:
    """All items of a block, also under other extents."""
    extents = block.extents if extents is None else extents
    return Window(block.base, block.offset, strides_of(code, extents))


def move(code, extents, target: Window, source: Window) -> None:
    """Copy items from one window to another; the innermost ones that lie together all at once."""
    extents = tuple(map(code.canonical, extents))
    outer = len(extents)
    while outer and _together(extents, outer - 1, target, source):
        outer -= 1
    run = product(extents[outer:])
    axes = [axis for axis in range(outer) if extents[axis] != "1"]
    names = {axis: code.name("i") for axis in axes}
    indices = [names.get(axis, "0") for axis in range(len(extents))]
    to, of = target.moved(*indices), source.moved(*indices)
    line = f"{to.base.name}[{to.offset or 0}] = {of.base.name}[{of.offset or 0}]"
    if run != "1":
        line = f"copy({to.base.name}, {to.offset or 0}, {of.base.name}, {of.offset or 0}, {run})"
    code.nested([f"for {names[axis]} in range({extents[axis]}):" for axis in axes], line)


def _together(extents, axis, *windows):
    """Whether items along an axis and all behind it lie one behind the other."""
    run = product(extents[axis + 1 :])
    return extents[axis] == "1" or all(w.strides[axis] == run for w in windows)


def fill(code, block, text) -> None:
    """Put one item everywhere."""
    i = code.name("i")
    item = cast(text, block.dtype)
    header = f"for {i} in range({product(block.extents)}):"
    code.nested([header], f"{block.at(i)} = {item}")


def clear(code, block) -> None:
    """Put zeros everywhere."""
    code.add(f"clear({block.base.name}, {block.offset or 0}, {product(block.extents)})")


def is_below(code, one: str, other: str) -> None:
    """Fail where an extent is longer than another."""
    one, other = code.canonical(one), code.canonical(other)
    if one.isdigit() and other.isdigit():
        if int(one) > int(other):
            code.fail_if("True")
    elif one != other and not (one == "0" and other in code.dims.values()):
        code.fail_if(f"{one} > {other}")


def held(code, extent: str, known) -> str:
    """An extent, held against what the graph knows of it."""
    name = str(known) if type(known) is int else code.known_extent(known)
    if name is None:
        return code.canonical(extent)
    code.equate(extent, name)
    return name


def integer(code, tensor) -> str:
    """Source of a scalar integer as an int64, also where that is used as an index."""
    text = code.integer(tensor)
    if tensor.dtype.kind == "u" and tensor.dtype.itemsize == 8:
        code.fail_if(f"{text} < 0")  # beyond what an int64 holds
    return text


def integers(code, tensor, count) -> list[str]:
    """The items of a vector that must have so many: numbers, or variables that stay."""
    (extent,) = code.extents(tensor)
    code.equate(extent, str(count))
    return [_settled(code, text) for text in _items(code, tensor, extent, count)]


def _items(code, tensor, extent, count):
    if extent.isdigit():
        return code.vector(tensor)
    block = code.value(tensor)
    return [f"int64({block.at(str(k))})" for k in range(count)]


def _settled(code, text):
    number = number_in(text)
    return code.extent(text) if number is None else str(number)


def number_in(text: str) -> int | None:
    """The integer that source says, None for others."""
    text = text.removeprefix("int64(").removesuffix(")").removeprefix("(")
    return int(text) if text.removeprefix("-").isdigit() else None
