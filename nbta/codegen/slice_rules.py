"""Code of blocks by where they begin and how large they are."""

from nbta.codegen import moving
from nbta.codegen.index_rules import offset_of
from nbta.codegen.moving import Window, held, integers, is_below, move, number_in, window
from nbta.codegen.values import Block, Scalar


def slice_block(code, op) -> None:
    """A block: a view where it lies together in memory."""
    x, result = op.inputs[0], op.outputs[0]
    value = code.value(x)
    if isinstance(value, Scalar):
        return code.bind(result, value)
    starts, sizes = (integers(code, t, len(value.extents)) for t in op.inputs[1:])
    clamp, lengths, begun = op.attrs["clamp"], [], []
    for start, size, extent, known in zip(
        starts, sizes, value.extents, result.spec.shape, strict=True
    ):
        length = held(code, _length(code, start, size, extent, clamp), known)
        lengths.append(code.canonical(length))
        begun.append(_begin(code, start, extent, length))
    whole = window(code, value)
    found = Window(value.base, whole.moved(*begun).offset, whole.strides)
    if _is_together(code, value.extents, lengths):
        return code.bind(result, Block(value.base, tuple(lengths), offset_of(code, found)))
    block = code.result(op, extents=tuple(lengths))
    return move(code, lengths, window(code, block), found)


def _length(code, start, size, extent, clamp):
    """How long a block is along an axis; it must be within it."""
    left = f"{extent} - {start}"
    if number_in(size) is None:
        length = size if clamp else code.derived(f"{left} if {size} == -1 else {size}")
    else:
        length = code.derived(left) if size == "-1" and not clamp else size
    if not length.isdigit():
        code.fail_if(f"{length} < 0")
    is_below(code, length, extent)
    if not clamp and start != "0":
        code.fail_if(f"{start} < 0 or {start} > {extent} - {length}")
    return length


def _begin(code, start, extent, length):
    """Where a block begins that is moved inwards if it reaches over the edge."""
    if start == "0" or code.same(extent, length):
        return "0"
    return code.derived(f"min(max({start}, 0), {extent} - {length})", "k")


def _is_together(code, extents, lengths):
    long = [axis for axis, length in enumerate(lengths) if length != "1"]
    behind = range(long[0] + 1, len(extents)) if long else ()
    return all(code.same(extents[axis], lengths[axis]) for axis in behind)


def update_block(code, op) -> None:
    """A tensor with a block replaced."""
    x, update, begin = op.inputs
    value = code.value(update)
    if isinstance(value, Scalar):
        return code.bind(op.outputs[0], value)
    extents = code.extents(x)
    begun = []
    for start, extent, length in zip(
        integers(code, begin, len(extents)), extents, value.extents, strict=True
    ):
        is_below(code, length, extent)
        begun.append(_begin(code, start, extent, length))
    block = code.changed(op)
    target = window(code, block)
    place = Window(block.base, target.moved(*begun).offset, target.strides)
    return move(code, value.extents, place, moving.window(code, value))
