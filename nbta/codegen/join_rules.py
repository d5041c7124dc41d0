"""Code of joining tensors and taking them apart, and of what changes axes."""

import builtins

from nbta.codegen import moving
from nbta.codegen.index_rules import Part, is_together, offset_of, parts_of, picked
from nbta.codegen.moving import Window, held, move, window
from nbta.codegen.values import Block, Scalar, Vector, times, total

#: Integers that are kept item by item, as shapes are made of them.
_SHORT = ("int32", "int64")


def concatenate(code, op) -> None:
    """One tensor behind the other along an axis."""
    axis = op.attrs["axis"] % op.outputs[0].spec.rank
    values = [code.kept(tensor) for tensor in op.inputs]
    if all(isinstance(value, Vector) for value in values):
        texts = sum((value.texts for value in values), ())
        return code.bind(op.outputs[0], Vector(texts, op.outputs[0].dtype))
    values = [code.value(tensor) for tensor in op.inputs]
    first = values[0].extents
    for value in values[1:]:
        for place, (mine, theirs) in enumerate(zip(first, value.extents, strict=True)):
            if place != axis:
                code.equate(mine, theirs)
    lengths = [value.extents[axis] for value in values]
    whole = held(code, _total(code, lengths), op.outputs[0].spec.shape[axis])
    block = code.result(op, extents=(*first[:axis], whole, *first[axis + 1 :]))
    return _lay(code, block, axis, values, lengths)


def _total(code, lengths):
    numbers = sum(int(n) for n in lengths if n.isdigit())
    names = [n for n in lengths if not n.isdigit()]
    text = total(*names, str(numbers))
    return code.derived(text) if len(names) > 1 or (names and numbers) else text


def _lay(code, block, axis, values, lengths):
    """Put values one behind the other."""
    whole, start = window(code, block), []
    for value, length in zip(values, lengths, strict=True):
        place = ["0"] * len(block.extents)
        place[axis] = f"({total(*start)})" if len(start) > 1 else total(*start)
        target = Window(block.base, whole.moved(*place).offset, whole.strides)
        extents = (*block.extents[:axis], length, *block.extents[axis + 1 :])
        move(code, extents, target, window(code, value, extents))
        start.append(length)


def stack(code, op) -> None:
    """Tensors of one shape along a new axis; integers of rank 0 stay as they are."""
    result, axis = op.outputs[0], op.attrs["axis"] % op.outputs[0].spec.rank
    values = [code.value(tensor) for tensor in op.inputs]
    if isinstance(values[0], Scalar):
        return _stack_scalars(code, op, values)
    first = values[0].extents
    for value in values[1:]:
        for mine, theirs in zip(first, value.extents, strict=True):
            code.equate(mine, theirs)
    extents = (*first[:axis], str(len(values)), *first[axis:])
    block = code.destination(result, result.dtype, extents)
    code.bind(result, block)
    rows = [Block(value.base, (*first[:axis], "1", *first[axis:]), value.offset)
            for value in values]  # fmt: skip
    return _lay(code, block, axis, rows, ["1"] * len(rows))


def _stack_scalars(code, op, values):
    result = op.outputs[0]
    if result.dtype.name in _SHORT:
        return code.bind(result, Vector(tuple(value.text for value in values), result.dtype))
    block = code.result(op, extents=(str(len(values)),))
    return code.add(*(f"{block.at(str(k))} = {value.text}" for k, value in enumerate(values)))


def split(code, op) -> None:
    """Parts along an axis: views along the first one."""
    value, sections = code.value(op.inputs[0]), op.attrs["sections"]
    axis = op.attrs["axis"] % len(value.extents)
    extent = code.canonical(value.extents[axis])
    parts = (_sections if type(sections) is int else _points)(code, extent, sections)
    for result, part in zip(op.outputs, parts, strict=True):
        if code.uses(result):
            _piece(code, op, value, axis, result, part)


def _sections(code, extent, count):
    code.fail_if(f"{extent} % {count} != 0")
    length = str(int(extent) // count) if extent.isdigit() else code.derived(f"{extent} // {count}")
    return [Part(times(str(k), length), length) for k in range(count)]


def _points(code, extent, points):
    bounds = zip((0, *points), (*points, None), strict=True)
    return [parts_of(code, [builtins.slice(a, b)], object(), (), [extent])[0] for a, b in bounds]


def _piece(code, op, value, axis, result, part):
    every = [Part("0", extent, "1", True) for extent in value.extents]
    parts = [*every[:axis], part, *every[axis + 1 :]]
    found, extents = picked(code, value, parts)
    extents = tuple(held(code, *pair) for pair in zip(extents, result.spec.shape, strict=True))
    if is_together(parts):
        return code.bind(result, Block(value.base, extents, offset_of(code, found)))
    block = code.result(op, extents=extents, index=result.index)
    return move(code, extents, window(code, block), found)


def pad(code, op) -> None:
    """A tensor within a border of one value."""
    value, result = code.value(op.inputs[0]), op.outputs[0]
    if isinstance(value, Scalar):
        return code.bind(result, value)
    widths = op.attrs["widths"]
    widths = widths * len(value.extents) if len(widths) == 1 else widths
    extents = tuple(
        held(code, _total(code, [extent, str(sum(pair))]), known)
        for extent, pair, known in zip(value.extents, widths, result.spec.shape, strict=True)
    )
    text = code.scalar(op.inputs[1])
    block = code.result(op, extents=extents)
    moving.fill(code, block, text)
    place = window(code, block).moved(*(str(before) for before, _ in widths))
    return move(code, value.extents, place, window(code, value))


def squeeze(code, op) -> None:
    """The same items without axes of length 1."""
    value, shape, axes = code.value(op.inputs[0]), op.inputs[0].spec.shape, op.attrs["axes"]
    if axes is None:
        gone = {axis for axis, extent in enumerate(shape) if extent == 1}
        for axis in set(range(len(shape))) - gone:
            code.fail_if(f"{value.extents[axis]} == 1")
    else:
        gone = {axis % len(shape) for axis in axes}
        for axis in gone:
            code.equate(value.extents[axis], "1")
    _under(code, op, value, [e for axis, e in enumerate(value.extents) if axis not in gone])


def expand_dims(code, op) -> None:
    """The same items with new axes of length 1."""
    value, axes = code.value(op.inputs[0]), op.attrs["axes"]
    extents = list(value.extents)
    rank = len(extents) + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        extents.insert(axis, "1")
    _under(code, op, value, extents)


def as_matrix(code, op) -> None:
    """A vector as a row or a column."""
    value = code.kept(op.inputs[0])
    if len(value.extents) != 1:
        return code.bind(op.outputs[0], value)
    is_row = op.attrs["side"] == "row"
    value = code.value(op.inputs[0])
    extents = ("1", *value.extents) if is_row else (*value.extents, "1")
    return _under(code, op, value, extents)


def _under(code, op, value, extents):
    """Let the items of a value stand for a result under other extents."""
    result = op.outputs[0]
    if isinstance(value, Block) and extents:
        return code.bind(result, Block(value.base, tuple(extents), value.offset))
    if isinstance(value, Block):
        return code.bind(result, code.local(value.at("0"), value.dtype))
    if not extents:
        return code.bind(result, value)
    if len(extents) == 1 and value.dtype.name in _SHORT:
        return code.bind(result, Vector((value.text,), value.dtype))
    block = code.result(op, extents=tuple(extents))
    return code.add(f"{block.at('0')} = {value.text}")
