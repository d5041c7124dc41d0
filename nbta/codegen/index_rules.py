"""Code of indexing."""

import builtins

from nbta.codegen.values import Block, Scalar, Vector, product, times, total


def getitem(code, op, key, symbolic) -> None:
    """Integers along the first axes are an offset; slices of step 1 there too; others are copied.

    ``key`` has a part for each axis; ``symbolic`` stands for the further inputs.
    """
    x, result = op.inputs[0], op.outputs[0]
    value = code.values[x]
    scalars = iter(op.inputs[1:])
    if isinstance(value, Vector) and len(key) == 1 and isinstance(key[0], int):
        return code.bind(result, Scalar(value.texts[key[0]], value.dtype))
    value = code.value(x)
    if isinstance(value, Scalar):
        return _of_scalar(code, op, value)
    parts = [p if p is not symbolic else f"int64({code.scalar(next(scalars))})" for p in key]
    if any(isinstance(p, builtins.slice) and symbolic in (p.start, p.stop, p.step) for p in parts):
        return code.call_python(op)
    axes = [_axis(code, part, n) for part, n in _with_extents(parts, value.extents)]
    if None in axes:
        return code.call_python(op)
    return _take(code, op, value, axes)


def _of_scalar(code, op, value):
    if not op.outputs[0].spec.rank:
        return code.bind(op.outputs[0], value)
    block = code.result(op, extents=("1",) * op.outputs[0].spec.rank)
    return code.add(f"{block.at('0')} = {value.text}")


def _with_extents(parts, extents):
    """Parts of a key with the extent of their axis, None for a new axis."""
    extents = iter(extents)
    return [(part, None if part is None else next(extents)) for part in parts]


def _axis(code, part, extent):
    """Start, length and step of what is taken of an axis; length None for a single index."""
    if part is None:
        return ("0", "new", 1)
    if isinstance(part, builtins.slice):
        return _slice(code, part, extent)
    index = code.variable(str(part), "k")
    code.fail_if(f"{index} < -{extent} or {index} >= {extent}")
    if not (isinstance(part, int) and part >= 0):
        code.add(f"if {index} < 0: {index} += {extent}")
    return (index, None, 1)


def _slice(code, part, extent):
    step = 1 if part.step is None else part.step
    if step > 0 and part.start in (None, 0) and part.stop is None and step == 1:
        return ("0", extent, 1)
    if step < 0 and part.start is None and part.stop is None and step == -1:
        return (code.variable(f"{extent} - 1", "k"), extent, -1)
    if step < 0:
        return None
    start = _bound(code, part.start or 0, extent)
    stop = extent if part.stop is None else _bound(code, part.stop, extent)
    count = code.variable(f"max(0, {stop} - {start} + {step - 1}) // {step}")
    return (start, count, step)


def _bound(code, bound, extent):
    if bound == 0:
        return "0"
    text = f"min({bound}, {extent})" if bound > 0 else f"max({extent} - {-bound}, 0)"
    return code.variable(text, "k")


def _take(code, op, value, axes):
    result = op.outputs[0]
    strides = _strides(value.extents, axes)
    extents = tuple("1" if n == "new" else n for _, n, _ in axes if n is not None)
    extents = tuple(
        str(known) if type(known) is int else e
        for e, known in zip(extents, result.spec.shape, strict=True)
    )
    offset = total(value.offset, *(times(s, stride) for (s, _, _), stride in
                                   zip(axes, strides, strict=True) if stride))  # fmt: skip
    if not extents:
        return code.bind(result, code.local(f"{value.base.name}[{offset}]", value.dtype))
    if _is_view(axes, value.extents):
        start = offset if offset == "0" or offset.isidentifier() else code.variable(offset, "o")
        return code.bind(result, Block(value.base, extents, "" if start == "0" else start))
    return _copy(code, op, value, axes, strides, extents, offset)


def _strides(extents, axes):
    found, place = [], 0
    for _, count, _ in axes:
        if count == "new":
            found.append("")
            continue
        place += 1
        found.append(product(extents[place:]))
    return found


def _is_view(axes, extents):
    """Whether what is taken lies together: all behind the first slice are taken whole."""
    real = [(start, n, step) for start, n, step in axes if n != "new"]
    sliced = [i for i, (_, n, _) in enumerate(real) if n is not None]
    first = sliced[0] if sliced else len(real)
    rest = zip(real[first + 1 :], extents[first + 1 :], strict=True)
    whole = all(axis == ("0", extent, 1) for axis, extent in rest)
    return whole and (first == len(real) or real[first][2] == 1)


def _copy(code, op, value, axes, strides, extents, offset):
    block = code.result(op, extents=extents)
    kept = [(axis, stride) for axis, stride in zip(axes, strides, strict=True) if axis[1]]
    names = [code.name("i") for _ in kept]
    source = [offset] + [
        times(name, times(f"{axis[2]}" if axis[2] != 1 else "1", stride))
        for name, (axis, stride) in zip(names, kept, strict=True)
        if stride
    ]
    target = [times(name, product(extents[k + 1 :])) for k, name in enumerate(names)]
    code.nested(
        [f"for {name} in range({e}):" for name, e in zip(names, extents, strict=True)],
        f"{block.at(total(*target))} = {value.base.name}[{total(*source)}]",
    )
