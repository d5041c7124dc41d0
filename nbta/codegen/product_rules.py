"""Code of products of matrices and vectors."""

from dataclasses import dataclass

from nbta.codegen.elementwise import broadcast, joined
from nbta.codegen.names import cast
from nbta.codegen.values import Block, Scalar, product, times, total
from nbta.runtime.protocol import LEFT, RIGHT


@dataclass
class _Operands:
    """What one product is of: addresses or offsets, sizes, and which side is transposed."""

    left: Block
    right: Block
    target: Block
    sizes: tuple[str, str, str]  # rows, inner, columns
    flags: int = 0


def matmul(code, op) -> None:
    """One product where the right side is one matrix for all; else one for each of a batch."""
    if op.inputs[1].spec.rank > 2:
        return _batched(code, op)
    a, b = op.inputs
    (left, left_turned), (right, right_turned) = code.matrix(a), code.matrix(b)
    a_extents, b_extents = code.extents(a), code.extents(b)
    inner = a_extents[-1]
    code.equate(inner, b_extents[0])
    rows, columns = a_extents[:-1], b_extents[1:]
    flags = RIGHT * right_turned + LEFT * left_turned
    if b.spec.rank == 1 and op.outputs[0].dtype.kind in "fc":
        flags |= RIGHT  # a column is a row, transposed
    target = _target(code, op, (*rows, *columns))
    sizes = product(rows), inner, product(columns)
    _multiply(code, _Operands(left, right, target, sizes, flags))
    if not op.outputs[0].spec.rank:
        code.bind(op.outputs[0], code.local(target.at("0"), op.outputs[0].dtype))
    return None


def _target(code, op, extents):
    if extents:
        return code.result(op, extents=extents)
    return code.new(op.outputs[0].dtype, ("1",))


def _batched(code, op):
    a, b = op.inputs
    left, right = code.value(a), code.value(b)
    of_a, of_b = left.extents[:-2], right.extents[:-2]
    inner = left.extents[-1]
    code.equate(inner, right.extents[-2])
    batch = broadcast(code, [(of_a, a.spec.shape[:-2]), (of_b, b.spec.shape[:-2])])
    rows, columns = left.extents[-2:-1], right.extents[-1]
    target = code.result(op, extents=(*batch, *rows, columns))
    indices = [code.name("i") for _ in batch]
    around = code.lines
    for index, extent in zip(indices, batch, strict=True):
        code.lines = code.lines.nest(f"for {index} in range({extent}):")
    ranks = 1 + len(rows), 2, 1 + len(rows)
    parts = [
        _matrix(code, block, indices, batch, rank)
        for block, rank in zip((left, right, target), ranks, strict=True)
    ]
    _multiply(code, _Operands(*parts, (product(rows), inner, columns)))
    code.lines = around


def _matrix(code, block, indices, batch, rank):
    """The matrix of a block, with so many axes, for indices of a batch."""
    own = block.extents[: len(block.extents) - rank]
    terms = [block.offset]
    for axis, extent in enumerate(own):
        place = len(batch) - len(own) + axis
        stride = product(block.extents[axis + 1 :])
        if extent == "1":
            continue
        if not code.same(extent, batch[place]):
            stride = times(f"int64({extent} != 1)", stride)
        terms.append(times(indices[place], stride))
    return Block(block.base, block.extents[len(own) :], code.variable(total(*terms), "o"))


def _multiply(code, operands):
    kind = operands.target.dtype.kind
    return (_by_call if kind in "fc" else _by_loops)(code, operands)


def _by_call(code, the):
    dtype = the.target.dtype.name
    code.add(
        f"call({code.helper(f'gemm_{dtype}')}, ({the.left.address}, {the.right.address}, "
        f"{the.target.address}, {', '.join(the.sizes)}, {the.flags}, "
        f"{code.helper(f'blas_{dtype}')}))"
    )


def _by_loops(code, the):
    """Integers add up modulo their size; of truth values, whether any pair is true."""
    rows, inner, columns = the.sizes
    i, j, k = (code.name(stem) for stem in "ijk")
    x = total(times(k, rows), i) if the.flags & LEFT else total(times(i, inner), k)
    y = total(times(j, inner), k) if the.flags & RIGHT else total(times(k, columns), j)
    z = the.target.at(total(times(i, columns), j))
    sign = "{} | {} & {}" if the.target.dtype.kind == "b" else "{} + {} * {}"
    text = cast(sign.format(z, the.left.at(x), the.right.at(y)), the.target.dtype)
    size = product((rows, columns))
    code.add(f"clear({the.target.base.name}, {the.target.offset or 0}, {size})")
    headers = [f"for {n} in range({e}):" for n, e in ((i, rows), (k, inner), (j, columns))]
    code.nested(headers, f"{z} = {text}")


def outer(code, op) -> None:
    """Each item of one by each of the other, in the loop that waits for the result's shape."""
    result = op.outputs[0]
    if any(tensor.spec.rank != 1 for tensor in op.inputs):
        return code.call_python(op)
    a, b = map(code.value, op.inputs)
    extents = *a.extents, *b.extents
    group = joined(code, [], extents)
    texts = [
        value.text if isinstance(value, Scalar) else
        group.load(code, Block(value.base, shape, value.offset))
        for value, shape in ((a, (*a.extents, "1")), (b, b.extents))
    ]  # fmt: skip
    sign = " & " if result.dtype.kind == "b" else " * "
    return group.step(code, cast(sign.join(texts), result.dtype), result)
