"""Code of triangles of matrices."""

from nbta.codegen import moving
from nbta.codegen.elementwise import broadcast
from nbta.codegen.gather_rules import spread
from nbta.codegen.moving import held
from nbta.codegen.values import product, times, total

#: Diagonals beyond are left to NumPy, which has a limit of its own.
_FAR = 2**61


def tril(code, op) -> None:
    """Matrices with zeros above a diagonal."""
    k = op.attrs["k"]
    if abs(k) > _FAR:
        return code.call_python(op)
    value = code.value(op.inputs[0])
    block = code.result(op, extents=value.extents)
    *outer, rows, columns = value.extents
    o, i, n, at = (code.name(stem) for stem in "oink")
    around = code.lines
    for header in (f"for {o} in range({product(outer)}):", f"for {i} in range({rows}):"):
        code.lines = code.lines.nest(header)
    code.add(f"{n} = min(max({i} + {k + 1}, 0), {columns})")
    code.add(f"{at} = {times(f'({total(times(o, rows), i)})', columns)}")
    source, target = total(value.offset, at), total(block.offset, at)
    code.add(f"copy({block.base.name}, {target}, {value.base.name}, {source}, {n})")
    code.add(f"clear({block.base.name}, {total(target, n)}, {columns} - {n})")
    code.lines = around
    return None


def cholesky(code, op) -> None:
    """Lower factors, matrix by matrix."""
    value, result = code.value(op.inputs[0]), op.outputs[0]
    code.equate(value.extents[-1], value.extents[-2])
    block = code.result(op, extents=value.extents)
    *outer, _, n = value.extents
    i, size = code.name("i"), product((n, n))
    helper = code.helper(f"cholesky_{result.dtype.name}")
    with code.nest(f"for {i} in range({product(outer)}):"):
        places = ", ".join(_address(one, times(i, size)) for one in (value, block))
        code.fail_if(f"call({helper}, ({places}, {n})) != 0")


def _address(block, start):
    return f"address({block.base.name}, {total(block.offset, start)})"


def triangular_solve(code, op) -> None:
    """Solutions, matrix by matrix, in a copy of the right sides."""
    a, b = code.value(op.inputs[0]), code.value(op.inputs[1])
    *outer_a, n, other = a.extents
    *outer_b, rows, columns = b.extents
    code.equate(n, other)
    code.equate(n, rows)
    known = op.outputs[0].spec.shape
    outer = _batch(code, outer_a, outer_b, known[:-2])
    block = code.result(op, extents=(*outer, rows, columns))
    _repeat(code, block, b, outer)
    flags = op.attrs["lower"] + 2 * op.attrs["transpose"]
    names = [code.name("i") for _ in outer]
    steps = spread(code, a.extents, len(block.extents), (*outer, n, n))
    source = total("", *map(times, names, steps))
    target = total("", *map(times, names, moving.strides_of(code, block.extents)))
    helper = code.helper(f"solve_{block.dtype.name}")
    around = code.lines
    for name, extent in zip(names, outer, strict=True):
        code.lines = code.lines.nest(f"for {name} in range({extent}):")
    places = f"{_address(a, source)}, {_address(block, target)}"
    code.fail_if(f"{columns} > 0 and call({helper}, ({places}, {n}, {columns}, {flags})) != 0")
    code.lines = around


def _batch(code, one, other, known):
    """Extents of what is in front of matrices, which broadcasts."""
    if not one and not other:
        return ()
    pairs = [(extents, tuple(int(e) if e.isdigit() else None for e in extents))
             for extents in (one, other)]  # fmt: skip
    found = broadcast(code, pairs)
    return tuple(held(code, *pair) for pair in zip(found, known, strict=True))


def _repeat(code, block, value, outer):
    """Put matrices into a block, again and again where it has more of them."""
    steps = spread(code, value.extents, len(block.extents), block.extents)
    names = [code.name("i") for _ in outer]
    source = total(value.offset, *map(times, names, steps))
    to = moving.strides_of(code, block.extents)
    target = total(block.offset, *map(times, names, to))
    code.nested(
        [f"for {name} in range({extent}):" for name, extent in zip(names, outer, strict=True)],
        f"copy({block.base.name}, {target}, {value.base.name}, {source}, "
        f"{product(block.extents[-2:])})",
    )
