"""Code of products of matrices and vectors."""

from nbta.codegen.values import product

#: As in `nbta.runtime.blocks`.
RIGHT, LEFT, ADD = 1, 2, 4


def matmul(code, op) -> None:
    """One call for two matrices or vectors, or where the right side is one matrix for all."""
    a, b = op.inputs
    if op.outputs[0].dtype.kind not in "fc" or b.spec.rank > 2 or (a.spec.rank > 2 > b.spec.rank):
        return code.call_python(op)
    (left, left_turned), (right, right_turned) = code.matrix(a), code.matrix(b)
    a_extents, b_extents = code.extents(a), code.extents(b)
    inner = a_extents[-1]
    code.equate(inner, b_extents[0])
    rows, columns = a_extents[:-1], b_extents[1:]
    flags = RIGHT * right_turned + LEFT * left_turned
    if b.spec.rank == 1 and a.spec.rank >= 1:
        flags |= RIGHT  # a column is a row, transposed
    target = _target(code, op, (*rows, *columns))
    dtype = op.outputs[0].dtype.name
    sizes = f"{product(rows)}, {inner}, {product(columns)}"
    code.add(
        f"call({code.helper(f'gemm_{dtype}')}, ({left.address}, {right.address}, "
        f"{target.address}, {sizes}, {flags}, {code.helper(f'blas_{dtype}')}))"
    )
    if not op.outputs[0].spec.rank:
        code.bind(op.outputs[0], code.local(target.at("0"), op.outputs[0].dtype))
    return None


def _target(code, op, extents):
    if extents:
        return code.result(op, extents=extents)
    return code.new(op.outputs[0].dtype, ("1",))


def outer(code, op) -> None:
    """Each item of one by each of the other: a product of a column and a row."""
    if any(tensor.spec.rank != 1 for tensor in op.inputs):
        return code.call_python(op)
    a, b = map(code.value, op.inputs)
    target = code.result(op, extents=(*a.extents, *b.extents))
    i, j = code.name("i"), code.name("j")
    (rows,), (columns,) = a.extents, b.extents
    at = f"{i} * {columns} + {j}" if columns != "1" else i
    return code.nested(
        [f"for {i} in range({rows}):", f"for {j} in range({columns}):"],
        f"{target.at(at)} = {a.at(i)} * {b.at(j)}",
    )
