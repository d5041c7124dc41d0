"""Work on whole blocks that generated code calls by address: products of matrices."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import get_cython_function_address, intrinsic

from nbta.runtime.plain import plain
from nbta.runtime.pointers import INT64, clear, pointer

OPTIONS = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_BLAS = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}
#: Multiply-adds below which a plain loop beats the call into BLAS.
SMALL = 20_000
#: How operands are to be taken: each transposed or not, the product added to what is there.
RIGHT, LEFT, ADD = 1, 2, 4

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


def _gemm(number):
    """``out = a @ b`` of C-ordered matrices, by BLAS or by loops where they are small."""

    def gemm(a, b, out, rows, inner, columns, flags, blas):
        if rows == 0 or columns == 0:
            return 0
        if rows * inner * columns > SMALL:
            right = inner if flags & RIGHT else columns
            left = rows if flags & LEFT else inner
            sizes = (columns, rows, inner)
            return _call_blas(number, blas, flags, sizes, (right, left, columns), (b, a, out))
        x, y, z = pointer(number, a, 0), pointer(number, b, 1), pointer(number, out, 2)
        if flags & ADD == 0:
            clear(z, 0, rows * columns)
        if flags & RIGHT == 0:
            step, along = (1, rows) if flags & LEFT else (inner, 1)
            for i in range(rows):
                for k in range(inner):
                    s, o, p = x[i * step + k * along], i * columns, k * columns
                    for j in range(columns):
                        z[o + j] = z[o + j] + s * y[p + j]
            return 0
        step, along = (1, rows) if flags & LEFT else (inner, 1)
        for i in range(rows):
            for j in range(columns):
                s = number(0)
                for k in range(inner):
                    s += x[i * step + k * along] * y[j * inner + k]
                z[i * columns + j] = z[i * columns + j] + s
        return 0

    gemm.__name__ = gemm.__qualname__ = f"gemm_{number.name}"
    return gemm


FUNCTIONS = {"plain": (plain, 5)} | {
    f"gemm_{number.name}": (_gemm(number), 8)
    for number in (types.float32, types.float64, types.complex64, types.complex128)
}
