"""Factors of matrices and what they solve, which generated code calls by address.

Triangles of small matrices are made by loops of our own: a call of LAPACK takes a microsecond, more
than the work. Those of a hundred rows and more are made in blocks, with the products of graphs on
one thread: where something else has one of two processors, each call of OpenBLAS's that wakes its
threads takes up to 30 ms. The largest go to LAPACK and BLAS, as SciPy exports them, and so does all
else. Addresses of functions are arguments, as those of another process are others; so is the room
that LAPACK works in. Fortran has matrices by columns, which is the transposed matrix here: where
the layout decides signs, a matrix is turned, so that all is as NumPy has it.

Matrices are addresses of items in C order. A function gives 0, or 1 where there is no result.
"""

from math import log, sqrt

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import get_cython_function_address, intrinsic, register_jitable

from nbta.kernels.matrices import OPTIONS, routines
from nbta.runtime.intrinsics import INT64, LEFT, RIGHT, address, call, pointer
from nbta.runtime.memory import room
from nbta.runtime.numba_private import cgutils
from nbta.tuning import (
    FACTOR_BLOCK,
    FACTOR_COLUMNS,
    FACTOR_LAPACK,
    FACTOR_PLAIN,
    FACTOR_PRODUCT,
)

_INT32, _BYTES = ir.IntType(32), ir.IntType(8).as_pointer()
#: Which triangle of a matrix is read, whether it is taken transposed, and has ones for a diagonal.
LOWER, TRANSPOSED, UNIT = 1, 2, 4
#: Whether factors are wanted beside the values.
VECTORS = 1
#: Rows, inner length and columns of the products that blocks are made of.
ROWS, DEPTH, COLUMNS = FACTOR_PRODUCT
#: Bytes of an item at most.
_MOST = 16
_SQUARE = FACTOR_BLOCK * FACTOR_BLOCK * _MOST
_SQUARES = 2 * _SQUARE
_LEFT, _RIGHT, _TARGET = ROWS * DEPTH * _MOST, DEPTH * COLUMNS * _MOST, ROWS * COLUMNS * _MOST
_LETTERS = {letter: np.uint8(ord(letter)) for letter in "NTULRVS"}
_N, _T, _U, _L, _R, _V, _S = _LETTERS.values()


def lapack_address(name: str) -> int:
    """SciPy's function of LAPACK of a name."""
    return get_cython_function_address("scipy.linalg.cython_lapack", name)


def _call(context, builder, function, kinds, values, further=()):
    """Call a function of Fortran's: addresses as they are, other numbers by reference."""
    given = [
        builder.inttoptr(value, _BYTES)
        if kind == types.int64
        else builder.bitcast(cgutils.alloca_once_value(builder, value), _BYTES)
        for value, kind in zip(values, kinds, strict=True)
    ]
    given = [*given, *further]
    kind = ir.FunctionType(ir.VoidType(), [_BYTES] * len(given))
    builder.call(builder.inttoptr(function, kind.as_pointer()), given)


@intrinsic
def blas(typingctx, function, arguments):
    """Call a function of BLAS with a tuple: addresses are int64, numbers of other types."""

    def codegen(context, builder, sig, args):
        values = cgutils.unpack_tuple(builder, args[1])
        _call(context, builder, args[0], list(arguments), values)
        return context.get_dummy_value()

    return types.void(types.int64, arguments), codegen


@intrinsic
def lapack(typingctx, function, arguments):
    """Call a function of LAPACK likewise; what it says last, which is 0 where all is well."""

    def codegen(context, builder, sig, args):
        status = cgutils.alloca_once_value(builder, _INT32(0))
        values, further = cgutils.unpack_tuple(builder, args[1]), builder.bitcast(status, _BYTES)
        _call(context, builder, args[0], list(arguments), values, [further])
        return builder.sext(builder.load(status), INT64)

    return types.int64(types.int64, arguments), codegen


def _most_in_blocks(number):
    """Rows up to which blocks are worth it; products of complex numbers are BLAS's themselves."""
    return FACTOR_PLAIN if isinstance(number, types.Complex) else FACTOR_LAPACK


def _named(function, number):
    function.__name__ = function.__qualname__ = f"{function.__name__}_{number.name}"
    return function


@njit(**OPTIONS)
def _turn_square(x, n):
    """Transpose a square matrix where it is."""
    for i in range(n):
        for j in range(i):
            one, other = x[i * n + j], x[j * n + i]
            x[i * n + j], x[j * n + i] = other, one


@njit(**OPTIONS)
def _turn(source, target, rows, columns):
    """Write a matrix transposed."""
    for i in range(rows):
        for j in range(columns):
            target[j * rows + i] = source[i * columns + j]


# Triangles.


@njit(**OPTIONS)
def _subtract(number, helpers, sizes, out, a, b, conjugates):
    """Take a product of matrices off another one: each is a pointer with its strides."""
    (gemm, blas), (rows, inner, columns) = helpers, sizes
    (z, z_row), (x, x_row, x_step), (y, y_row, y_step) = out, a, b
    left, right = room(_LEFT), room(_RIGHT)
    target = room(_TARGET)
    packed, other = pointer(number, left, 3), pointer(number, right, 4)
    made = pointer(number, target, 5)
    for c in range(0, columns, COLUMNS):
        width = min(COLUMNS, columns - c)
        for k in range(0, inner, DEPTH):
            depth = min(DEPTH, inner - k)
            for i in range(depth):
                for j in range(width):
                    value = y[(k + i) * y_row + (c + j) * y_step]
                    other[i * width + j] = np.conj(value) if conjugates else value
            for r in range(0, rows, ROWS):
                height = min(ROWS, rows - r)
                for i in range(height):
                    for j in range(depth):
                        packed[i * depth + j] = x[(r + i) * x_row + (k + j) * x_step]
                call(gemm, (left, right, target, height, depth, width, 0, blas))
                for i in range(height):
                    for j in range(width):
                        at = (r + i) * z_row + c + j
                        z[at] = z[at] - made[i * width + j]


@njit(**OPTIONS)
def _cholesky_by_rows(number, z, n, row):
    """The factor of a block, in its place; 1 where there is none."""
    for i in range(n):
        for j in range(i + 1):
            s = z[i * row + j]
            for k in range(j):
                s = s - z[i * row + k] * np.conj(z[j * row + k])
            if i != j:
                z[i * row + j] = s / z[j * row + j]
            elif s.real > 0:
                z[i * row + j] = number(sqrt(s.real))
            else:
                return 1
        for j in range(i + 1, n):
            z[i * row + j] = number(0)
    return 0


@njit(**OPTIONS)
def _cholesky_below(z, first, last, n):
    """Some columns of a factor, below the block of them that is done."""
    for i in range(last, n):
        for j in range(first, last):
            s = z[i * n + j]
            for k in range(first, j):
                s = s - z[i * n + k] * np.conj(z[j * n + k])
            z[i * n + j] = s / z[j * n + j]


@register_jitable
def _cholesky_by_blocks(number, out, n, helpers):
    z = pointer(number, out, 1)
    for first in range(0, n, FACTOR_BLOCK):
        last = min(first + FACTOR_BLOCK, n)
        if first:
            sizes, start = (n - first, first, last - first), address(z, first * n)
            rows = pointer(number, start, 1)
            target = pointer(number, address(rows, first), 1)
            _subtract(number, helpers, sizes, (target, n), (rows, n, 1), (rows, 1, n), True)
        block = pointer(number, address(z, first * n + first), 1)
        if _cholesky_by_rows(number, block, last - first, n):
            return 1
        _cholesky_below(z, first, last, n)
    return 0


def _cholesky(number):
    """The lower factor of the mean of a matrix and its conjugate transpose; 1 where none is."""

    most = _most_in_blocks(number)

    def cholesky(a, out, n, potrf, gemm, blas):
        x, z, half = pointer(number, a, 0), pointer(number, out, 1), number(0.5)
        for i in range(n):
            for j in range(i + 1):
                z[i * n + j] = half * x[i * n + j] + half * np.conj(x[j * n + i])
            for j in range(i + 1, n):
                z[i * n + j] = number(0)
        if n <= FACTOR_PLAIN:
            return _cholesky_by_rows(number, z, n, n)
        if n <= most:
            return _cholesky_by_blocks(number, out, n, (gemm, blas))
        return 1 if lapack(potrf, (_U, np.int32(n), out, np.int32(n))) else 0

    return _named(cholesky, number)


# The derivative by a matrix from that by its factor.


@njit(**OPTIONS)
def _inverted(number, x, step, z, n):
    """Write the conjugate of a lower triangle's inverse."""
    for i in range(n):
        at = i * n
        for j in range(n):
            z[at + j] = number(0)
        for k in range(i):
            factor = np.conj(x[i * step + k])
            for j in range(k + 1):
                z[at + j] = z[at + j] - factor * z[k * n + j]
        factor = number(1) / np.conj(x[i * step + i])
        for j in range(i):
            z[at + j] = factor * z[at + j]
        z[at + i] = factor


@njit(**OPTIONS)
def _conjugated(number, x, step, z, rows, columns):
    """Write rows that are apart, conjugated, below each other."""
    for i in range(rows):
        for j in range(columns):
            z[i * columns + j] = np.conj(x[i * step + j])


@njit(**OPTIONS)
def _turned_conjugated(source, target, rows, columns):
    """Write a matrix transposed and conjugated."""
    for i in range(rows):
        for j in range(columns):
            target[j * rows + i] = np.conj(source[i * columns + j])


@njit(**OPTIONS)
def _half_less(number, y, step, z, rows, columns):
    """Half of the conjugate of a matrix, transposed, less another one, in the place of that."""
    half = number(0.5)
    for j in range(columns):
        for i in range(rows):
            z[i * columns + j] = half * np.conj(y[j * step + i]) - z[i * columns + j]


@njit(**OPTIONS)
def _slope_of_block(number, y, step, z, n):
    """A block's own slope, less twice the conjugate of what those below have to say; lower."""
    two = number(2)
    for i in range(n):
        for j in range(i + 1):
            z[i * n + j] = y[i * step + j] - two * np.conj(z[i * n + j])
        for j in range(i + 1, n):
            z[i * n + j] = number(0)


@njit(**OPTIONS)
def _lower_conjugated(number, x, step, z, n):
    """Write the conjugate of a lower triangle, and zeros above."""
    for i in range(n):
        for j in range(n):
            z[i * n + j] = np.conj(x[i * step + j]) if j <= i else number(0)


@njit(**OPTIONS)
def _from_lower(number, z, n):
    """The Hermitian matrix that has half of a lower triangle."""
    half = number(0.5)
    for i in range(n):
        for j in range(i):
            value = half * z[i * n + j]
            z[i * n + j], z[j * n + i] = value, np.conj(value)
        z[i * n + i] = number(0.5 * z[i * n + i].real)


@njit(**OPTIONS)
def _mean(number, x, z, n):
    """Write the mean of a matrix and its conjugate transpose."""
    half = number(0.5)
    for i in range(n):
        for j in range(i + 1):
            value = half * x[i * n + j] + half * np.conj(x[j * n + i])
            z[i * n + j], z[j * n + i] = value, np.conj(value)


@register_jitable
def _back_below(number, places, spans, helpers):
    """What is below a block: the panels' rows of the block, and the block's own panel.

    ``places`` are the addresses of slopes, panels, the conjugate of the factor's columns here, the
    inverse of their block, and of room.
    """
    (slope, panels, below, inverse, spare), (n, first, last) = places, spans
    (gemm, blas, size), width = helpers, last - first
    y, z = pointer(number, slope, 1), pointer(number, spare, 3)
    for start in range(last, n, FACTOR_BLOCK):
        columns = min(FACTOR_BLOCK, n - start)
        panel = panels + start * n * size
        solved, rest = panel + first * columns * size, panel + last * columns * size
        call(gemm, (below, rest, spare, width, n - last, columns, LEFT, blas))
        wanted = pointer(number, address(y, start * n + first), 1)
        _half_less(number, wanted, n, z, width, columns)
        call(gemm, (inverse, spare, solved, width, width, columns, LEFT, blas))
        turned = panels + (first * n + start * width) * size
        source, target = pointer(number, solved, 2), pointer(number, turned, 2)
        _turned_conjugated(source, target, width, columns)


@register_jitable
def _back_block(number, places, spans, helpers):
    """The block itself, where ``places`` are those of factor, slope, panels and rooms."""
    (factor, slope, panels, below, inverse, one, other), (n, first, last) = places, spans
    (gemm, blas, size), width = helpers, last - first
    corner, own = (first * n + first) * size, panels + first * (n + width) * size
    mine = panels + (first * n + last * width) * size
    x, y = pointer(number, factor + corner, 0), pointer(number, slope + corner, 1)
    z, w = pointer(number, one, 3), pointer(number, other, 4)
    call(gemm, (mine, below, one, width, n - last, width, LEFT, blas))
    _slope_of_block(number, y, n, z, width)
    _lower_conjugated(number, x, n, w, width)
    call(gemm, (other, one, own, width, width, width, LEFT, blas))
    _from_lower(number, pointer(number, own, 2), width)
    call(gemm, (inverse, own, one, width, width, width, LEFT, blas))
    _turned_conjugated(z, w, width, width)
    call(gemm, (inverse, other, one, width, width, width, LEFT, blas))
    _mean(number, z, pointer(number, own, 2), width)


@njit(**OPTIONS)
def _back_by_columns(number, x, y, z, n):
    """The same for blocks of one column, of a matrix that is small."""
    half = number(0.5)
    for turn in range(n):
        k = n - 1 - turn
        own, size = y[k * n + k].real, x[k * n + k].real
        for i in range(k + 1, n):
            s = half * y[i * n + k]
            for j in range(k + 1, n):
                s = s - z[i * n + j] * x[j * n + k]
            s = s / size
            z[i * n + k], z[k * n + i] = s, np.conj(s)
            twice = (np.conj(s) * x[i * n + k]).real
            own = own - twice - twice
        z[k * n + k] = number(own / (size + size))


@njit(**OPTIONS)
def _side_by_side(z, out, n):
    """Write panels of columns as rows."""
    for start in range(0, n, FACTOR_BLOCK):
        columns = min(FACTOR_BLOCK, n - start)
        for i in range(n):
            for j in range(columns):
                out[i * n + start + j] = z[start * n + i * columns + j]


def _cholesky_gradient(number):
    """The derivative by a matrix, from that by its lower factor, of which a triangle is read.

    With some columns of the factor known, their block D and C below it, the factor of ``A - C C^H``
    is that of what is left of the matrix. So the derivatives by those, S, come first: from the last
    columns back, by C it is ``G - 2 S C`` and by the matrix's items there that times ``D^-1``.
    All is products, of two thirds of the cube of n multiplications and additions. See I. Murray,
    "Differentiation of the Cholesky decomposition", arXiv:1602.07527, for columns in the other
    order. ``work`` has room for n rows of n and `FACTOR_BLOCK` items: S, by panels of columns of
    which each is as a product takes it, and C.
    """
    size = number.bitwidth // 8

    def cholesky_gradient(factor, slope, out, work, n, gemm, blas):
        if n <= FACTOR_COLUMNS:
            x, y = pointer(number, factor, 0), pointer(number, slope, 1)
            _back_by_columns(number, x, y, pointer(number, out, 5), n)
            return 0
        inverse, one, other = room(_SQUARE), room(_SQUARE), room(_SQUARE)
        below, helpers = work + n * n * size, (gemm, blas, size)
        for turn in range(0, n, FACTOR_BLOCK):
            first = (n - 1 - turn) // FACTOR_BLOCK * FACTOR_BLOCK
            last = min(first + FACTOR_BLOCK, n)
            spans, corner = (n, first, last), factor + (first * n + first) * size
            x, z = pointer(number, corner, 0), pointer(number, inverse, 3)
            _inverted(number, x, n, z, last - first)
            columns = pointer(number, factor + (last * n + first) * size, 0)
            target = pointer(number, below, 4)
            _conjugated(number, columns, n, target, n - last, last - first)
            _back_below(number, (slope, work, below, inverse, one), spans, helpers)
            places = factor, slope, work, below, inverse, one, other
            _back_block(number, places, spans, helpers)
        _side_by_side(pointer(number, work, 2), pointer(number, out, 5), n)
        return 0

    return _named(cholesky_gradient, number)


# How a factor changes with its matrix.


@njit(**OPTIONS)
def _change_by_rows(number, x, z, n):
    """The change of a factor, in the place of that of its matrix, of which a triangle is read."""
    for i in range(n):
        for j in range(i):
            s = z[i * n + j]
            for k in range(j):
                s = s - z[i * n + k] * np.conj(x[j * n + k]) - x[i * n + k] * np.conj(z[j * n + k])
            z[i * n + j] = (s - x[i * n + j] * z[j * n + j]) / x[j * n + j]
        own, size = z[i * n + i].real, x[i * n + i].real
        for k in range(i):
            twice = (z[i * n + k] * np.conj(x[i * n + k])).real
            own = own - twice - twice
        z[i * n + i] = number(own / (size + size))


@njit(**OPTIONS)
def _whole(number, x, step, z, n):
    """Write the Hermitian matrix of a lower triangle."""
    for i in range(n):
        for j in range(i):
            z[i * n + j], z[j * n + i] = x[i * step + j], np.conj(x[i * step + j])
        z[i * n + i] = number(x[i * step + i].real)


@njit(**OPTIONS)
def _halve_lower(number, z, n):
    """Halve the diagonal of a Hermitian matrix, and let zeros be above."""
    for i in range(n):
        z[i * n + i] = number(0.5 * z[i * n + i].real)
        for j in range(i + 1, n):
            z[i * n + j] = number(0)


@njit(**OPTIONS)
def _conjugated_back(x, z, step, n):
    """Write a matrix conjugated to rows that are apart."""
    for i in range(n):
        for j in range(n):
            z[i * step + j] = np.conj(x[i * n + j])


@njit(**OPTIONS)
def _beside(x, y, step, z, rows, columns, sign):
    """Write rows that are apart, each followed by the like one of another matrix times a sign."""
    for i in range(rows):
        for j in range(columns):
            z[2 * i * columns + j] = x[i * step + j]
            z[(2 * i + 1) * columns + j] = sign * y[i * step + j]


@njit(**OPTIONS)
def _rows_back(x, z, step, rows, columns):
    """Write rows to where they are apart."""
    for i in range(rows):
        for j in range(columns):
            z[i * step + j] = x[i * columns + j]


@register_jitable
def _change_of_block(number, places, spans, helpers):
    """A block's change, where ``places`` are those of factor, change and rooms.

    With D the block, it is D times the halved triangle of ``D^-1 dA D^-H``. The conjugates of
    the inverse and of that triangle are left in rooms.
    """
    (factor, change, inverse, inner, one, other), (n, first, last) = places, spans
    (gemm, blas, size), width = helpers, last - first
    corner = (first * n + first) * size
    x, z = pointer(number, factor + corner, 0), pointer(number, change + corner, 1)
    w, v = pointer(number, one, 5), pointer(number, other, 6)
    _inverted(number, x, n, pointer(number, inverse, 3), width)
    _whole(number, z, n, w, width)
    call(gemm, (one, inverse, other, width, width, width, RIGHT, blas))
    _turned_conjugated(v, w, width, width)
    call(gemm, (inverse, one, inner, width, width, width, RIGHT, blas))
    _halve_lower(number, pointer(number, inner, 4), width)
    _lower_conjugated(number, x, n, w, width)
    call(gemm, (one, inner, other, width, width, width, 0, blas))
    _conjugated_back(v, z, n, width)


@register_jitable
def _change_below(number, places, spans, helpers):
    """What is below a block: what is left of the matrix, and the factor, times what that left."""
    (factor, change, inverse, inner, one, other, both), (n, first, last) = places, spans
    (gemm, blas, size), width = helpers, last - first
    whole = 2 * width
    x, y = pointer(number, inverse, 3), pointer(number, inner, 4)
    w, v = pointer(number, one, 5), pointer(number, other, 6)
    _beside(x, y, width, pointer(number, both, 7), width, width, number(1))
    for start in range(last, n, FACTOR_BLOCK):
        rows, at = min(FACTOR_BLOCK, n - start), (start * n + first) * size
        c, z = pointer(number, factor + at, 0), pointer(number, change + at, 1)
        _beside(z, c, n, w, rows, width, number(-1))
        call(gemm, (one, both, other, rows, whole, width, RIGHT, blas))
        _rows_back(v, z, n, rows, width)


def _cholesky_tangent(number):
    """How a lower factor changes where its matrix changes by the mean of one and its transpose.

    The steps of `_cholesky_by_blocks`, differentiated: two products in place of each. The factor
    itself is given, and above its diagonal nothing is read.
    """
    size = number.bitwidth // 8

    def cholesky_tangent(factor, change, out, n, gemm, blas):
        x, z = pointer(number, factor, 0), pointer(number, out, 1)
        y, half = pointer(number, change, 2), number(0.5)
        for i in range(n):
            for j in range(i + 1):
                z[i * n + j] = half * y[i * n + j] + half * np.conj(y[j * n + i])
            for j in range(i + 1, n):
                z[i * n + j] = number(0)
        if n <= FACTOR_COLUMNS:
            _change_by_rows(number, x, z, n)
            return 0
        inverse, inner, other = room(_SQUARE), room(_SQUARE), room(_SQUARE)
        one, both, helpers = room(_SQUARES), room(_SQUARES), (gemm, blas, size)
        for first in range(0, n, FACTOR_BLOCK):
            last = min(first + FACTOR_BLOCK, n)
            if first:
                sizes, start = (n - first, first, last - first), first * n
                target = pointer(number, address(z, start + first), 1), n
                left = pointer(number, address(z, start), 1)
                right = pointer(number, address(x, start), 0)
                given = (gemm, blas), sizes, target
                _subtract(number, *given, (left, n, 1), (right, 1, n), True)
                _subtract(number, *given, (right, n, 1), (left, 1, n), True)
            spans, places = (n, first, last), (factor, out, inverse, inner, one, other)
            _change_of_block(number, places, spans, helpers)
            _change_below(number, (*places, both), spans, helpers)
        return 0

    return _named(cholesky_tangent, number)


@njit(**OPTIONS)
def _gather(x, at, z, row, span, columns, lead):
    """Take off a row what a row of the triangle makes of the rows of a span."""
    first, last = span
    if columns == 1 and lead == 1:
        s = z[row]
        for k in range(first, last):
            s = s - x[at + k] * z[k]
        z[row] = s
        return
    for k in range(first, last):
        factor, other = x[at + k], k * lead
        for c in range(columns):
            z[row + c] = z[row + c] - factor * z[other + c]


@njit(**OPTIONS)
def _scatter(x, at, z, row, span, columns, lead):
    """Take off the rows of a span what a row of the triangle makes of one row."""
    first, last = span
    if columns == 1 and lead == 1:
        s = z[row]
        for k in range(first, last):
            z[k] = z[k] - x[at + k] * s
        return
    for k in range(first, last):
        factor, other = x[at + k], k * lead
        for c in range(columns):
            z[other + c] = z[other + c] - factor * z[row + c]


@njit(**OPTIONS)
def _by_rows(x, step, z, lead, sizes, flags):
    """Solve with a triangle, in place of the right side; rows are ``step`` and ``lead`` apart."""
    n, columns = sizes
    lower, transposed = flags & LOWER != 0, flags & TRANSPOSED != 0
    for turn in range(n):
        i = turn if lower != transposed else n - 1 - turn
        span = (0, i) if lower else (i + 1, n)
        at, row = i * step, i * lead
        if not transposed:
            _gather(x, at, z, row, span, columns, lead)
        if flags & UNIT == 0:
            for c in range(columns):
                z[row + c] = z[row + c] / x[at + i]
        if transposed:
            _scatter(x, at, z, row, span, columns, lead)


@register_jitable
def _by_blocks(number, a, step, b, lead, sizes, flags, helpers):
    """The same in blocks: what is solved is taken off the next one by a product."""
    n, columns = sizes
    x, z = pointer(number, a, 0), pointer(number, b, 1)
    transposed = flags & TRANSPOSED != 0
    forward = (flags & LOWER != 0) != transposed
    row, along = (1, step) if transposed else (step, 1)
    for turn in range(0, n, FACTOR_BLOCK):
        first = turn if forward else max(n - turn - FACTOR_BLOCK, 0)
        last = min(turn + FACTOR_BLOCK, n) if forward else n - turn
        start, stop = (0, first) if forward else (last, n)
        target = pointer(number, address(z, first * lead), 1)
        if stop > start:
            factor = pointer(number, address(x, first * row + start * along), 0)
            solved = pointer(number, address(z, start * lead), 1)
            wanted = last - first, stop - start, columns
            given = (factor, row, along), (solved, lead, 1)
            _subtract(number, helpers, wanted, (target, lead), given[0], given[1], False)
        block = pointer(number, address(x, first * step + first), 0)
        _by_rows(block, step, target, lead, (last - first, columns), flags)


@register_jitable
def _with_triangle(number, a, b, sizes, flags, trsm, helpers, most):
    """Solve with a triangle; in BLAS's transposed equation it is on the right."""
    n, columns = sizes
    if n <= FACTOR_PLAIN or columns < FACTOR_COLUMNS:
        x, z = pointer(number, a, 0), pointer(number, b, 1)
        _by_rows(x, n, z, columns, sizes, flags)
    elif n <= most:
        _by_blocks(number, a, n, b, columns, sizes, flags, helpers)
    else:
        half = _U if flags & LOWER else _L
        turned = _T if flags & TRANSPOSED else _N
        diagonal = _U if flags & UNIT else _N
        order, width = np.int32(n), np.int32(columns)
        blas(trsm, (_R, half, turned, diagonal, width, order, number(1), a, order, b, width))


@njit(**OPTIONS)
def _has_zero(x, n):
    """Whether there is a zero on the diagonal."""
    found = False
    for i in range(n):
        found |= x[i * n + i] == 0
    return found


def _solve(number):
    """Solve with a triangle, in place of the right side; 1 for a zero on the diagonal."""

    most = _most_in_blocks(number)

    def solve(a, b, n, columns, flags, trsm, gemm, blas):
        if _has_zero(pointer(number, a, 0), n):
            return 1
        _with_triangle(number, a, b, (n, columns), flags, trsm, (gemm, blas), most)
        return 0

    return _named(solve, number)


# Factors with pivots.


@njit(**OPTIONS)
def _swap_rows(z, one, other, columns):
    if one != other:
        for c in range(columns):
            first, second = z[one * columns + c], z[other * columns + c]
            z[one * columns + c], z[other * columns + c] = second, first


@njit(**OPTIONS)
def _size(value):
    return abs(value.real) + abs(value.imag)


@njit(**OPTIONS)
def _panel(x, p, n, first, last):
    """Some columns of the factors, below a row; whole rows change places."""
    for k in range(first, last):
        at, most = k, _size(x[k * n + k])
        for i in range(k + 1, n):
            size = _size(x[i * n + k])
            if size > most:
                at, most = i, size
        p[k] = np.int32(at)
        _swap_rows(x, k, at, n)
        if x[k * n + k] == 0:
            continue
        for i in range(k + 1, n):
            factor = x[i * n + k] / x[k * n + k]
            x[i * n + k] = factor
            for j in range(k + 1, last):
                x[i * n + j] = x[i * n + j] - factor * x[k * n + j]


@register_jitable
def _lu_by_blocks(number, a, pivots, n, helpers):
    """Block by block of columns, from those on the left."""
    x, p = pointer(number, a, 0), pointer(types.int32, pivots, 2)
    for first in range(0, n, FACTOR_BLOCK):
        last = min(first + FACTOR_BLOCK, n)
        if first:
            above = address(x, first)
            sizes = first, last - first
            _by_blocks(number, a, n, above, n, sizes, LOWER | UNIT, helpers)
            rows = pointer(number, address(x, first * n), 0)
            target = pointer(number, address(rows, first), 0)
            wanted = n - first, first, last - first
            solved = pointer(number, above, 0)
            _subtract(number, helpers, wanted, (target, n), (rows, n, 1), (solved, n, 1), False)
        _panel(x, p, n, first, last)


def _lu(number):
    """Triangular factors of a matrix with its rows swapped, in its place, and with whom each was.

    A zero on the diagonal is no failure here.
    """

    most = _most_in_blocks(number)

    def lu(a, pivots, n, getrf, gemm, blas):
        x, p = pointer(number, a, 0), pointer(types.int32, pivots, 1)
        if n <= FACTOR_PLAIN:
            _panel(x, p, n, 0, n)
        elif n <= most:
            _lu_by_blocks(number, a, pivots, n, (gemm, blas))
        else:
            _turn_square(x, n)
            lapack(getrf, (np.int32(n), np.int32(n), a, np.int32(n), pivots))
            _turn_square(x, n)
            for k in range(n):
                p[k] = p[k] - np.int32(1)
        return 0

    return _named(lu, number)


def _lu_solve(number):
    """Solve with such factors, in place of the right side; 1 where the matrix is singular."""

    most = _most_in_blocks(number)

    def lu_solve(a, pivots, b, n, columns, flags, trsm, gemm, blas):
        z, p, sizes = pointer(number, b, 1), pointer(types.int32, pivots, 2), (n, columns)
        if _has_zero(pointer(number, a, 0), n):
            return 1
        turned = flags & TRANSPOSED
        if turned == 0:
            for k in range(n):
                _swap_rows(z, k, np.int64(p[k]), columns)
        first, second = (TRANSPOSED, LOWER | UNIT | TRANSPOSED) if turned else (LOWER | UNIT, 0)
        _with_triangle(number, a, b, sizes, first, trsm, (gemm, blas), most)
        _with_triangle(number, a, b, sizes, second, trsm, (gemm, blas), most)
        if turned:
            for step in range(n):
                k = n - 1 - step
                _swap_rows(z, k, np.int64(p[k]), columns)
        return 0

    return _named(lu_solve, number)


def _log_determinant(number):
    """The sign of a determinant from such factors, and the logarithm of its size."""
    real = getattr(number, "underlying_float", number)

    def slogdet(a, pivots, sign, logarithm, n):
        x, p = pointer(number, a, 0), pointer(types.int32, pivots, 1)
        turn, total = number(1), real(0)
        for k in range(n):
            value = x[k * n + k]
            size = abs(value)
            total += log(size)
            turn *= value / size if size > 0 or size != size else number(0)
            if p[k] != k:
                turn = -turn
        pointer(number, sign, 2)[0], pointer(real, logarithm, 3)[0] = turn, total
        return 0

    return _named(slogdet, number)


def _determinant(number):
    """A determinant from such factors."""

    def det(a, pivots, out, n):
        x, p = pointer(number, a, 0), pointer(types.int32, pivots, 1)
        found = number(1)
        for k in range(n):
            found *= -x[k * n + k] if p[k] != k else x[k * n + k]
        pointer(number, out, 2)[0] = found
        return 0

    return _named(det, number)


def permutation(pivots, out, n):
    """Which row of a matrix is in which place, once each was swapped with another."""
    p, z = pointer(types.int32, pivots, 0), pointer(types.int64, out, 1)
    for k in range(n):
        z[k] = k
    for k in range(n):
        other = np.int64(p[k])
        first, second = z[k], z[other]
        z[k], z[other] = second, first
    return 0


# Orthogonal factors, by LAPACK.


def _is_complex(number):
    return isinstance(number, types.Complex)


def _eigh(number):
    """Eigenvalues, and eigenvectors as columns, of the mean of a matrix and its transpose.

    ``work`` has room for ``length`` items, ``more`` for real numbers and ``whole`` for int32.
    """
    is_complex = _is_complex(number)

    def eigh(a, w, v, n, flags, work, length, more, more_length, whole, syevd):
        x, z, half = pointer(number, a, 0), pointer(number, v, 1), number(0.5)
        for i in range(n):
            for j in range(n):
                z[j * n + i] = half * x[i * n + j] + half * np.conj(x[j * n + i])
        kind = _V if flags & VECTORS else _N
        order, size, lengths = np.int32(n), np.int32(length), np.int32(3 + 5 * n)
        if n == 0:
            return 0
        if is_complex:
            status = lapack(
                syevd,
                (kind, _L, order, v, order, w, work, size, more, np.int32(more_length), whole,
                 lengths),
            )  # fmt: skip
        else:
            status = lapack(syevd, (kind, _L, order, v, order, w, work, size, whole, lengths))
        _turn_square(z, n)
        return 1 if status else 0

    return _named(eigh, number)


def _svd(number):
    """Singular values, and singular vectors: columns of u, rows of v, as many as values.

    ``work`` has room for the matrix and both factors, and ``length`` items after these.
    """
    is_complex, size = _is_complex(number), number.bitwidth // 8

    def svd(a, u, s, v, m, n, flags, work, length, more, whole, gesdd):
        k = min(m, n)
        if k == 0:
            return 0
        left, right = work + m * n * size, work + (m * n + m * k) * size
        room, lengths = right + k * n * size, np.int32(length)
        _turn(pointer(number, a, 0), pointer(number, work, 1), m, n)
        kind, rows, columns, few = (
            _S if flags & VECTORS else _N,
            np.int32(m),
            np.int32(n),
            np.int32(k),
        )
        given = (kind, rows, columns, work, rows, s, left, rows, right, few, room, lengths)
        if is_complex:
            status = lapack(gesdd, given + (more, whole))  # noqa: RUF005 - for Numba
        else:
            status = lapack(gesdd, given + (whole,))  # noqa: RUF005
        if flags & VECTORS:
            _turn(pointer(number, left, 1), pointer(number, u, 2), k, m)
            _turn(pointer(number, right, 1), pointer(number, v, 3), n, k)
        return 1 if status else 0

    return _named(svd, number)


def _qr(number):
    """Orthogonal columns and a triangle: ``k`` columns of q and rows of r.

    ``work`` has room for the matrix, for as many numbers as it has rows or columns, and
    ``length`` items after these.
    """
    size = number.bitwidth // 8

    def qr(a, q, r, m, n, work, length, geqrf, orgqr):
        k = min(m, n)
        if k == 0:
            return 0
        tau = work + m * n * size
        room, lengths = tau + k * size, np.int32(length)
        rows, columns, few = np.int32(m), np.int32(n), np.int32(k)
        x, z = pointer(number, work, 1), pointer(number, r, 2)
        _turn(pointer(number, a, 0), x, m, n)
        status = lapack(geqrf, (rows, columns, work, rows, tau, room, lengths))
        for i in range(k):
            for j in range(n):
                z[i * n + j] = x[j * m + i] if j >= i else number(0)
        status |= lapack(orgqr, (rows, few, few, work, rows, tau, room, lengths))
        _turn(x, pointer(number, q, 3), k, m)
        return 1 if status else 0

    return _named(qr, number)


_NUMBERS = (types.float32, types.float64, types.complex64, types.complex128)
_ARITIES = {
    _cholesky: 6, _cholesky_gradient: 7, _cholesky_tangent: 6, _solve: 8, _lu: 6, _lu_solve: 9,
    _log_determinant: 5, _determinant: 4, _eigh: 11, _svd: 12, _qr: 9,
}  # fmt: skip
#: What compiled graphs call by its address, by name.
FUNCTIONS = {
    name: routine
    for make, arity in _ARITIES.items()
    for name, routine in routines(arity, *map(make, _NUMBERS)).items()
}
FUNCTIONS |= routines(3, permutation)
