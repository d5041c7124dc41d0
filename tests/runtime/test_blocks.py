"""Products of matrices that compiled code calls by address, against NumPy's."""

import ctypes
from itertools import product

import numpy as np
import pytest
from many import each

from nbta.compiler import build
from nbta.kernels import matrices
from nbta.runtime.intrinsics import ADD, LEFT, RIGHT

DTYPES = ("float32", "float64", "complex64", "complex128")
FLAGS = range(8)
SIZES = (1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100)
INNER = (1, 2, 3, 5, 8, 15, 17, 31, 33, 64, 100)
ENTRY = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 8)
#: What surrounds each matrix, so that a write outside shows, and so that it is not aligned.
MARGIN, MARK = 3, 77


def placed(values):
    """A copy between margins, which nothing aligns."""
    room = np.full(values.size + 2 * MARGIN, MARK, values.dtype)
    room[MARGIN:-MARGIN] = values.ravel()
    return room


def address(room):
    return room.ctypes.data + MARGIN * room.itemsize


def multiplied(a, b, out, flags):
    """What the helper makes of copies of three matrices."""
    dtype, (rows, inner), columns = a.dtype.name, a.shape, b.shape[1]
    places = [placed(a.T if flags & LEFT else a), placed(b.T if flags & RIGHT else b), placed(out)]
    gemm, blas = build.address(f"gemm_{dtype}"), build.address(f"blas_{dtype}")
    ENTRY(gemm)(*map(address, places), rows, inner, columns, flags, blas)
    for room in places:
        assert (room[:MARGIN] == MARK).all()
        assert (room[-MARGIN:] == MARK).all()
    return places[2][MARGIN:-MARGIN].reshape(rows, columns)


def numbers(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((*shape, 2))
    if dtype.startswith("complex"):
        return (values[..., 0] + 1j * values[..., 1]).astype(dtype)
    return values[..., 0].astype(dtype)


def assert_right(rows, inner, columns, dtype, flags):
    a, b = numbers((rows, inner), dtype), numbers((inner, columns), dtype, 1)
    out = numbers((rows, columns), dtype, 2)
    found = multiplied(a, b, out, flags)
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    expected = a.astype(wide) @ b.astype(wide) + (out if flags & ADD else 0)
    bound = np.abs(a) @ np.abs(b) + np.abs(out)  # what the sums of absolute values could be
    assert (np.abs(found - expected) <= 8 * np.finfo(dtype).eps * bound).all()


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_all_small_sizes(dtype, flags):
    for i, j in product(range(len(SIZES)), repeat=2):
        for inner in {INNER[(i + j) % len(INNER)], INNER[(2 * i + 3 * j + 1) % len(INNER)]}:
            assert_right(SIZES[i], inner, SIZES[j], dtype, flags)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes",
    [
        (13, 300, 40),  # several panels
        (14, 257, 129),
        (25, 515, 65),
        (3, 1025, 9),
        (40, 513, 70),
        (1, 600, 1000),  # a row by what does not fit in the second cache
        (700, 900, 1),
        (2, 3, 1000),
        (1000, 3, 2),
    ],
)
def test_long_sizes(sizes, dtype):
    each(FLAGS, lambda flags: assert_right(*sizes, dtype, flags))


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_large_ones(dtype, flags):
    sizes = (640, 660, 650)
    assert np.prod(sizes) > matrices.BLAS_PRODUCT
    assert_right(*sizes, dtype, flags)


@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_to_multiply(dtype):
    sizes = [s for s in product((0, 1, 5, 40), repeat=3) if 0 in s]
    each(product(sizes, FLAGS), lambda case: check_nothing(*case, dtype))


def check_nothing(sizes, flags, dtype):
    rows, inner, columns = sizes
    out = numbers((rows, columns), dtype)
    found = multiplied(
        np.empty((rows, inner), dtype), np.empty((inner, columns), dtype), out, flags
    )
    np.testing.assert_array_equal(found, out if flags & ADD else np.zeros_like(out))


@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers(value, dtype):
    """They reach the items that they belong to, and no others."""
    sizes = [(1, 5, 3), (1, 17, 1), (7, 19, 21), (17, 33, 50), (20, 3, 5)]
    each(product(sizes, FLAGS), lambda case: check_no_numbers(*case, value, dtype))


def check_no_numbers(sizes, flags, value, dtype):
    rows, inner, columns = sizes
    a, b = np.ones((rows, inner), dtype), np.ones((inner, columns), dtype)
    out = np.ones((rows, columns), dtype)
    a[rows // 2, inner - 1] = b[inner - 1, columns // 3] = value
    with np.errstate(invalid="ignore"):  # NumPy multiplies more than it has to
        expected = a @ b + (1 if flags & ADD else 0)
    np.testing.assert_array_equal(multiplied(a, b, out, flags), expected)


@pytest.mark.parametrize("dtype", DTYPES[:2])
def test_what_was_there_does_not_matter(dtype):
    found = multiplied(
        np.ones((9, 20), dtype), np.ones((20, 37), dtype), np.full((9, 37), np.nan, dtype), 0
    )
    np.testing.assert_array_equal(found, 20)
