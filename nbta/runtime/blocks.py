"""Work on whole blocks that generated code calls by address: products of matrices."""

from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic, register_jitable

from nbta.runtime.numba_private import cgutils
from nbta.runtime.plain import plain
from nbta.runtime.pointers import INT64, clear, pointer
from nbta.runtime.protocol import ADD, LEFT, RIGHT
from nbta.runtime.tiles import dots, tiles, turn, widest
from nbta.runtime.vector_code import Machine, lanes, room

OPTIONS = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_BLAS = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
#: Multiply-adds below which a plain loop beats the call into BLAS, for complex numbers.
SMALL = 20_000
#: Multiply-adds above which BLAS with two threads beats tiles with one, where vectors have 64
#: bytes and where they have less. In GFLOP/s for float32, tiles, BLAS with one thread and with two,
#: on a Zen 5 at 4 GHz: 237, 107, 188 for (128, 512, 512), 242, 119, 203 for (512, 512, 512), 236,
#: 116, 199 for (512, 1024, 512), and 191, 103, 165 for x.T @ g of (128, 3200, 384). With its AVX2
#: only: 82, 103, 171 for (64, 256, 1024), 122, 112, 184 for (128, 512, 512). Where something else
#: has one of two processors, a call of BLAS with two threads takes up to 30 ms.
LARGE, LARGE_NARROW = 1 << 28, 1 << 23
#: Rows of the inner dimension that are gone through for one tile, and bytes of as many rows of a
#: tile, which must fit: 240 GFLOP/s for (64, 256, 1024), with 128 rows 231, with 64 rows 218.
#: Packing what is not transposed costs more than it gains: 213.
DEPTH, ROOM = 256, 1 << 16
#: Rows from which on a transposed b is written the other way round. In GFLOP/s by `dots` and by
#: turning: 190 and 83 for (4, 256, 64), 182 and 117 for (8, 384, 128), 158 and 172 for (12, 96,
#: 32), 157 and 181 for (16, 96, 32), 184 and 182 for (24, 384, 128).
TURNED = 12
#: Bytes of b that do not stay in the second cache; a row times such a b goes through a few rows
#: of b at once, so that it reads it nearly in order: 72 GB/s for (1, 256, 1024), by tiles 51.
SPILLED, SLICE = 1 << 20, 8

_BYTE, _INT32 = ir.IntType(8), ir.IntType(32)


def blas_address(dtype: str) -> int:
    """SciPy's matrix product of a dtype."""
    return get_cython_function_address("scipy.linalg.cython_blas", _BLAS[dtype])


@intrinsic
def _call_blas(typingctx, number, blas, flags, sizes, leads, places):
    """Fortran's GEMM, whose arguments are all pointers: ``c = op(a) op(b)``, by columns."""
    item = number.instance_type

    def codegen(context, builder, sig, args):
        _, blas, flags, sizes, leads, places = args
        numbers = context.get_value_type(item)

        def kept(value, kind):
            return cgutils.alloca_once_value(builder, builder.trunc(value, kind))

        def turned(bit):
            is_set = builder.icmp_unsigned("!=", builder.and_(flags, INT64(bit)), INT64(0))
            return builder.select(is_set, INT64(ord("T")), INT64(ord("N")))

        def constant(value):
            made = context.get_constant_generic(builder, item, value)
            return cgutils.alloca_once_value(builder, made)

        m, n, k = (kept(v, _INT32) for v in cgutils.unpack_tuple(builder, sizes))
        a_lead, b_lead, c_lead = (kept(v, _INT32) for v in cgutils.unpack_tuple(builder, leads))
        pointers = [builder.inttoptr(v, numbers.as_pointer())
                    for v in cgutils.unpack_tuple(builder, places)]  # fmt: skip
        adds = builder.icmp_unsigned("!=", builder.and_(flags, INT64(ADD)), INT64(0))
        alpha, zero = constant(1), constant(0)
        beta = builder.select(adds, alpha, zero)
        given = [
            kept(turned(RIGHT), _BYTE), kept(turned(LEFT), _BYTE), m, n, k, alpha,
            pointers[0], a_lead, pointers[1], b_lead, beta, pointers[2], c_lead,
        ]  # fmt: skip
        kind = ir.FunctionType(ir.VoidType(), [v.type for v in given])
        builder.call(builder.inttoptr(blas, kind.as_pointer()), given)
        return INT64(0)

    return types.int64(number, types.int64, types.int64, sizes, leads, places), codegen


def _by_blas(number):
    """By SciPy's BLAS."""

    @register_jitable
    def by_blas(a, b, out, rows, inner, columns, flags, blas):
        right = inner if flags & RIGHT else columns
        left = rows if flags & LEFT else inner
        sizes = (columns, rows, inner)
        return _call_blas(number, blas, flags, sizes, (right, left, columns), (b, a, out))

    return by_blas


def _by_loops(number):
    """Plain loops, which add."""

    @register_jitable
    def by_rows(x, y, z, sizes, step, along):
        rows, inner, columns = sizes
        for i in range(rows):
            for k in range(inner):
                s, o, p = x[i * step + k * along], i * columns, k * columns
                for j in range(columns):
                    z[o + j] = z[o + j] + s * y[p + j]

    @register_jitable
    def by_items(x, y, z, sizes, step, along):
        rows, inner, columns = sizes
        for i in range(rows):
            for j in range(columns):
                s = number(0)
                for k in range(inner):
                    s += x[i * step + k * along] * y[j * inner + k]
                z[i * columns + j] = z[i * columns + j] + s

    return by_rows, by_items


def _complex_gemm(number):
    """``out = a @ b`` of C-ordered matrices, by BLAS or by loops where they are small."""
    by_blas, (by_rows, by_items) = _by_blas(number), _by_loops(number)

    def gemm(a, b, out, rows, inner, columns, flags, blas):
        if rows == 0 or columns == 0:
            return 0
        if rows * inner * columns > SMALL:
            return by_blas(a, b, out, rows, inner, columns, flags, blas)
        x, y, z = pointer(number, a, 0), pointer(number, b, 1), pointer(number, out, 2)
        if flags & ADD == 0:
            clear(z, 0, rows * columns)
        sizes, (step, along) = (rows, inner, columns), (1, rows) if flags & LEFT else (inner, 1)
        if flags & RIGHT == 0:
            by_rows(x, y, z, sizes, step, along)
        else:
            by_items(x, y, z, sizes, step, along)
        return 0

    return _named(gemm, number)


def _named(function, number):
    function.__name__ = function.__qualname__ = f"gemm_{number.name}"
    return function


@intrinsic
def _large(typingctx):
    """Multiply-adds above which BLAS is called."""

    def codegen(context, builder, sig, args):
        return INT64(LARGE if Machine(context).is_wide else LARGE_NARROW)

    return types.int64(), codegen


@register_jitable
def _tile_width(left, lane, most):
    """Columns of the next tiles, so that the last ones are no narrower than a vector."""
    if left <= most:
        return left
    if left >= 2 * most:
        return most
    half = (left + 2 * lane - 1) // (2 * lane) * lane
    return half if left - half >= lane else half - lane


@register_jitable
def _depth(left, most):
    """Rows of the inner dimension to go through next; the last two times about as many."""
    if left <= most:
        return left
    return most if left >= 2 * most else (left + 1) // 2


def _gemm(number):
    """``out = a @ b`` of C-ordered matrices, by vectors in registers, or by BLAS where large."""
    by_blas, size = _by_blas(number), number.bitwidth // 8

    # One function: LLVM goes through vector code again in each that calls the one that it is in.
    def gemm(a, b, out, rows, inner, columns, flags, blas):
        if rows * inner * columns == 0:
            if flags & ADD == 0:
                clear(pointer(number, out, 2), 0, rows * columns)
            return 0
        if columns == 1:  # out.T = b.T @ a.T
            flags = (flags & ADD) | (RIGHT if flags & LEFT == 0 or rows == 1 else 0)
            a, b, rows, columns = b, a, 1, rows
        elif rows * inner * columns > _large():
            return by_blas(a, b, out, rows, inner, columns, flags, blas)
        adds, turned, is_row = (flags & ADD) // ADD, flags & RIGHT, rows == 1
        if turned and (is_row or (rows < TURNED and flags & LEFT == 0)):
            dots(number, a, inner, b, inner, out, columns, inner, rows, columns, adds)
            return 0
        row, step = (1, rows) if flags & LEFT else (inner, 1)
        deep = SLICE if is_row and inner * columns * size >= SPILLED else DEPTH
        k, panel = 0, room(ROOM)
        while k < inner:
            depth, j, x = _depth(inner - k, deep), 0, a + k * step * size
            while j < columns:
                width = _tile_width(columns - j, lanes(number), widest(number))
                y, y_step, z = b + (k * columns + j) * size, columns, out + j * size
                if turned:
                    y, y_step = panel, width
                    turn(number, b + (j * inner + k) * size, inner, panel, width, width, depth)
                tiles(number, x, row, step, y, y_step, z, columns, depth, rows, width, adds)
                j += width
            k, adds = k + depth, 1
        return 0

    return _named(gemm, number)


FUNCTIONS = {"plain": (plain, 5)}
FUNCTIONS |= {f"gemm_{n.name}": (_gemm(n), 8) for n in (types.float32, types.float64)}
FUNCTIONS |= {f"gemm_{n.name}": (_complex_gemm(n), 8) for n in (types.complex64, types.complex128)}
