"""Code of indexing."""

import builtins
from dataclasses import dataclass

from nbta.codegen import moving
from nbta.codegen.moving import Window, held, move, window
from nbta.codegen.shape_rules import wanted
from nbta.codegen.values import Block, Scalar, Vector, times, total

#: Bounds of slices are cut to this: no axis is as long, and sums of two are int64.
_FAR = 2**62


@dataclass(frozen=True)
class Part:
    """What a key takes of an axis: ``count`` items, or a single one where that is None."""

    start: str
    count: str | None
    step: str = "1"
    whole: bool = False


def getitem(code, op, key, symbolic) -> None:
    """A view of what lies together in memory; other items are copied.

    ``key`` has a part for each axis, and None for new ones; ``symbolic`` stands for the further
    inputs.
    """
    x, result = op.inputs[0], op.outputs[0]
    if any(tensor.spec.rank for tensor in op.inputs[1:]):
        return code.call_python(op)
    value = code.values[x]
    if isinstance(value, Vector) and len(key) == 1 and _is_constant(key[0], symbolic):
        return code.bind(result, _of_vector(value, key[0]))
    value = code.value(x)
    if isinstance(value, Scalar):
        return _of_scalar(code, op, value)
    parts = parts_of(code, key, symbolic, op.inputs[1:], value.extents)
    return _pick(code, op, value, parts)


def _is_constant(part, symbolic):
    if isinstance(part, builtins.slice):
        return symbolic not in (part.start, part.stop, part.step)
    return isinstance(part, int)


def _of_vector(value, part):
    if isinstance(part, int):
        return Scalar(value.texts[part], value.dtype)
    return Vector(value.texts[part], value.dtype)


def _of_scalar(code, op, value):
    if not op.outputs[0].spec.rank:
        return code.bind(op.outputs[0], value)
    block = code.result(op, extents=("1",) * op.outputs[0].spec.rank)
    return code.add(f"{block.at('0')} = {value.text}")


def parts_of(code, key, symbolic, scalars, extents) -> list:
    """A `Part` for each axis, and None for each new one, of a key that ``scalars`` fill in."""
    texts = iter([moving.integer(code, tensor) for tensor in scalars])
    extents = iter(extents)

    def filled(n):
        return code.variable(next(texts), "k") if n is symbolic else n

    found = []
    for part in key:
        if part is None:
            found.append(None)
        elif isinstance(part, builtins.slice):
            bounds = [filled(n) for n in (part.start, part.stop, part.step)]
            found.append(_slice(code, *bounds, code.canonical(next(extents))))
        else:
            found.append(Part(position(code, filled(part), next(extents)), None))
    return found


def position(code, index, extent) -> str:
    """An index counted from the first item: a variable or a number; the run fails outside."""
    if not isinstance(index, str):
        index = _cut(index)
        if extent.isdigit():
            index = index + int(extent) * (index < 0)
            if not 0 <= index < int(extent):
                code.fail_if("True")
            return str(index)
        if index >= 0:
            code.fail_if(f"{index} >= {extent}")
            return str(index)
        found = code.derived(f"{extent} - {-index}", "k")
        code.fail_if(f"{found} < 0")
        return found
    code.fail_if(f"{index} < -{extent} or {index} >= {extent}")
    return code.variable(f"{index} + {extent} if {index} < 0 else {index}", "k")


def _cut(n):
    return n if n is None or isinstance(n, str) else max(-_FAR, min(n, _FAR))


def _slice(code, start, stop, step, extent):
    """A slice of an axis; bounds are numbers, variables or None."""
    start, stop, step = map(_cut, (start, stop, 1 if step is None else step))
    if isinstance(step, str):
        code.fail_if(f"{step} == 0 or {step} < {-_FAR}")
    if extent.isdigit() and not any(isinstance(n, str) for n in (start, stop, step)):
        found = range(int(extent))[start:stop:step]
        whole = len(found) == int(extent) and step > 0
        return Part(str(found.start), str(len(found)), str(step), whole)
    if stop is None and step == 1 and start in (None, 0):
        return Part("0", extent, "1", True)
    if step == -1 and start is stop is None:
        return Part(code.derived(f"{extent} - 1", "k"), extent, "-1")
    lower, upper, first, last = _ends(code, step, extent)
    start = first if start is None else _bound(code, start, extent, lower, upper)
    stop = last if stop is None else _bound(code, stop, extent, lower, upper)
    return Part(start, _count(code, start, stop, step), str(step))


def _ends(code, step, extent):
    """Within what the bounds of a slice are, and its bounds where none are given."""
    top = f"{extent} - 1"
    if isinstance(step, str):
        lower = code.derived(f"0 if {step} > 0 else -1", "k")
        upper = code.derived(f"{extent} if {step} > 0 else {top}", "k")
        first = code.derived(f"0 if {step} > 0 else {upper}", "k")
        return lower, upper, first, code.derived(f"{upper} if {step} > 0 else -1", "k")
    if step > 0:
        return "0", extent, "0", extent
    upper = code.derived(top, "k")
    return "-1", upper, upper, "-1"


def _bound(code, bound, extent, lower, upper):
    if isinstance(bound, str):
        near, far = f"min({bound}, {upper})", f"max({bound} + {extent}, {lower})"
        return code.variable(f"{near} if {bound} >= 0 else {far}", "k")
    if bound == 0 and lower == "0":
        return "0"
    text = f"min({bound}, {upper})" if bound >= 0 else f"max({extent} - {-bound}, {lower})"
    return code.derived(text, "k")


def _count(code, start, stop, step):
    """How many items there are from a bound to another."""
    if step == 1 and start == "0":
        return stop
    if step in (1, -1):
        length = f"{stop} - {start}" if step == 1 else f"{start} - {stop}"
        return code.derived(f"max(0, {length})")
    up = f"({stop} - {start} - 1) // {step} + 1 if {stop} > {start} else 0"
    back = str(-step) if isinstance(step, int) else f"-{step}"
    down = f"({start} - {stop} - 1) // ({back}) + 1 if {start} > {stop} else 0"
    if isinstance(step, int):
        return code.derived(up if step > 0 else down)
    return code.derived(f"({up}) if {step} > 0 else ({down})")


def picked(code, value, parts) -> tuple[Window, tuple[str, ...]]:
    """What parts of a key take of a block: a window with its extents, without new axes."""
    around, real = window(code, value), [part for part in parts if part is not None]
    begun = around.moved(*(part.start for part in real))
    pairs = [(p, s) for p, s in zip(real, around.strides, strict=True) if p.count is not None]
    steps = tuple(times(part.step, stride) for part, stride in pairs)
    return Window(value.base, begun.offset, steps), tuple(part.count for part, _ in pairs)


def _pick(code, op, value, parts):
    result = op.outputs[0]
    found, counts = picked(code, value, parts)
    if not result.spec.rank:
        return code.bind(result, code.local(found.at(), value.dtype))
    counts = iter(counts)
    extents = ["1" if p is None else next(counts) for p in parts if p is None or p.count]
    extents = tuple(held(code, *pair) for pair in zip(extents, result.spec.shape, strict=True))
    if is_together(parts):
        return code.bind(result, Block(value.base, extents, offset_of(code, found)))
    block = code.result(op, extents=extents)
    kept = tuple(n for n, p in zip(extents, _lasting(parts), strict=True) if p is not None)
    return move(code, kept, window(code, block, kept), found)


def _lasting(parts):
    return [part for part in parts if part is None or part.count is not None]


def offset_of(code, found) -> str:
    """Where a window begins, in a variable where that takes arithmetic."""
    text = total(found.offset)
    if text == "0":
        return ""
    return text if text.isidentifier() or text.isdigit() else code.variable(text, "o")


def is_together(parts) -> bool:
    """Whether what is taken lies together: all behind the first longer part is taken whole."""
    real = [part for part in parts if part is not None]
    long = [k for k, part in enumerate(real) if part.count not in (None, "1")]
    if not long:
        return True
    first = long[0]
    return real[first].step == "1" and all(part.whole for part in real[first + 1 :])


def scatter_slice(code, op, key, symbolic) -> None:
    """Zeros, with items at the places that a key names."""
    dy, result, scalars = op.inputs[0], op.outputs[0], op.inputs[2:]
    if any(tensor.spec.rank for tensor in scalars):
        return code.call_python(op)
    value, extents = code.kept(dy), wanted(code, op)
    for extent in extents:
        moving.is_below(code, "0", extent)
    if not extents:
        return code.bind(result, code.local(_first(code.value(dy)), result.dtype))
    parts = parts_of(code, key, symbolic, scalars, extents)
    shape = tuple("1" if part is None else part.count for part in _lasting(parts))
    if len(shape) != len(value.extents):
        return code.call_python(op)
    for mine, theirs in zip(value.extents, shape, strict=True):
        code.equate(mine, theirs)
    return _put(code, op, extents, parts)


def _put(code, op, extents, parts):
    value = code.value(op.inputs[0])
    block = code.result(op, extents=extents)
    if not all(part is None or part.whole for part in parts):
        moving.clear(code, block)
    target, counts = picked(code, block, parts)
    if isinstance(value, Scalar):
        return code.add(f"{target.at()} = {value.text}")
    return move(code, counts, target, window(code, value, counts))


def _first(value):
    return value.text if isinstance(value, Scalar) else value.at("0")
