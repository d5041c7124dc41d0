"""Code of operations about dtype and shape."""

from nbta.codegen.elementwise import broadcast, joined, operand, reduction
from nbta.codegen.moving import number_in
from nbta.codegen.names import cast
from nbta.codegen.values import Block, Lazy, Scalar, Vector, product, times, total


def identity(code, op) -> None:
    """The first input itself; a result in a loop that waits becomes another result of that."""
    x, result = op.inputs[0], op.outputs[0]
    value = code.values[x]
    if not isinstance(value, Lazy) or not value.text:
        return code.bind(result, code.kept(x))
    return value.group.step(code, value.text, result)


def to_dtype(op, text) -> str:
    """Source of a number in another dtype, by NumPy's rules."""
    have, want = op.inputs[0].dtype, op.outputs[0].dtype
    if want.kind == "b":
        return f"({text} != 0)"
    return f"{text}.real" if have.kind == "c" != want.kind else text


def shape(code, op) -> None:
    """The extents."""
    texts = tuple(cast(e, "int64") for e in code.extents(op.inputs[0]))
    code.bind(op.outputs[0], Vector(texts, op.outputs[0].dtype))


def size(code, op) -> None:
    """The number of items."""
    text = product(code.extents(op.inputs[0]))
    code.bind(op.outputs[0], code.local(text, op.outputs[0].dtype))


def wanted(code, op, place=1) -> tuple[str, ...]:
    """Extents of a result whose shape is an input."""
    texts = code.vector(op.inputs[place])
    known = op.outputs[0].spec.shape
    found = []
    for text, extent in zip(texts, known, strict=True):
        if type(extent) is int and extent >= 0:
            if number_in(text) != extent:
                code.fail_if(f"{text} != {extent}")
            found.append(str(extent))
        else:
            found.append(code.extent(text))
    return tuple(found)


def reshape(code, op) -> None:
    """The same items under other extents."""
    x = code.value(op.inputs[0])
    texts = code.vector(op.inputs[1])
    known = op.outputs[0].spec.shape
    have = "1" if isinstance(x, Scalar) else product(x.extents)
    extents = [
        str(extent) if type(extent) is int and extent >= 0 else _open(code, text)
        for text, extent in zip(texts, known, strict=True)
    ]
    unsure = [axis for axis, e in enumerate(extents) if not e.isdigit()]
    free = next((axis for axis in unsure if extents[axis] == "-1"), unsure[-1] if unsure else None)
    if free is not None:
        extents[free] = _left_over(code, extents, free, have)
    for axis, text in enumerate(texts):
        if axis != free and number_in(text) == -1:  # known, but NumPy asks the others for it
            _refuse_none(code, product(extents[:axis] + extents[axis + 1 :]))
    if have != product(extents):
        code.fail_if(f"{have} != {product(extents)}")
    if isinstance(x, Block):
        if op.outputs[0].spec.rank == 0:
            return code.bind(op.outputs[0], code.local(x.at("0"), x.dtype))
        return code.bind(op.outputs[0], Block(x.base, tuple(extents), x.offset))
    if not extents:
        return code.bind(op.outputs[0], x)
    block = code.result(op, extents=tuple(extents))
    return code.add(f"{block.at('0')} = {x.text}")


def _open(code, text):
    """Source of an extent that the graph does not know: -1 for what is left over."""
    return "-1" if number_in(text) == -1 else code.extent(text)


def _left_over(code, extents, free, have):
    """An extent that takes what the others leave, where it is negative."""
    text, others = extents[free], product(extents[:free] + extents[free + 1 :])
    rest = have if others == "1" else f"({have}) // ({others})"
    if text != "-1":
        code.fail_if(f"{text} < 0 and ({others}) == 0")
        return code.variable(f"({rest}) if {text} < 0 else {text}")
    _refuse_none(code, others)
    return rest if rest.isidentifier() or rest.isdigit() else code.derived(rest)


def _refuse_none(code, others):
    """Fail where the other extents hold nothing, as then any extent is left over."""
    if not others.isdigit() or others == "0":
        code.fail_if(f"({others}) == 0")


def broadcast_to(code, op) -> None:
    """Items repeated."""
    extents = wanted(code, op)
    x, result = op.inputs[0], op.outputs[0]
    if not extents:
        return code.bind(result, code.value(x))
    found = broadcast(
        code,
        [(code.extents(x), x.spec.shape), (extents, tuple(_known(e) for e in extents))],
    )
    for mine, theirs in zip(found, extents, strict=True):
        code.equate(mine, theirs)
    group = joined(code, [x], found)
    return group.step(code, operand(code, group, x), result)


def _known(extent):
    return int(extent) if extent.isdigit() else None


def fill(code, op) -> None:
    """One item everywhere."""
    extents = wanted(code, op, 0)
    for extent in extents:
        if not extent.isdigit() and extent not in code.dims.values():
            code.fail_if(f"{extent} < 0")
    value, result = op.inputs[1], op.outputs[0]
    if not extents:
        return code.bind(result, code.value(value))
    group = joined(code, [], extents)
    text = code.scalar(value)
    return group.step(code, text, result)


def sum_to(code, op) -> None:
    """Sums over the axes that broadcasting repeats."""
    x, result = op.inputs[0], op.outputs[0]
    extents = wanted(code, op)
    have = code.extents(x)
    extra = len(have) - len(extents)
    if extra < 0:
        return code.call_python(op)
    kept = [False] * extra
    for axis, extent in enumerate(extents):
        mine = have[extra + axis]
        known = result.spec.shape[axis]
        if code.same(mine, extent):
            kept.append(True)
        elif extent == "1":
            kept.append(mine == "1")
        elif known is None:
            return code.call_python(op)
        else:
            code.equate(mine, extent)
            kept.append(True)
    if all(kept):
        return identity(code, op)
    return reduction(code, op, kept, extents)


def transpose(code, op) -> None:
    """Axes in another order; the transpose of a matrix is made when somebody needs it."""
    rank = op.inputs[0].spec.rank
    if "axes" in op.attrs:
        axes = op.attrs["axes"] or tuple(range(rank))[::-1]
    else:
        axes = list(range(rank))
        a, b = op.attrs["a"] % rank, op.attrs["b"] % rank
        axes[a], axes[b] = axes[b], axes[a]
    if tuple(axes) == tuple(range(rank)):
        return identity(code, op)
    if rank == 2:
        return code.bind_turned(op)
    return _move_axes(code, op, axes)


def _move_axes(code, op, axes):
    x = code.value(op.inputs[0])
    extents = tuple(x.extents[axis] for axis in axes)
    block = code.result(op, extents=extents)
    names = [code.name("i") for _ in axes]
    steps = [product(x.extents[axis + 1 :]) for axis in axes]
    out = [product(extents[k + 1 :]) for k in range(len(axes))]
    source = total(*(times(i, step) for i, step in zip(names, steps, strict=True)))
    target = total(*(times(i, step) for i, step in zip(names, out, strict=True)))
    code.nested(
        [f"for {i} in range({e}):" for i, e in zip(names, extents, strict=True)],
        f"{block.at(target)} = {x.at(source)}",
    )
