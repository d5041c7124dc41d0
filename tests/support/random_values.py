"""Values, shapes and ways to pass them, for tests that try anything."""

import hypothesis.strategies as st
import ml_dtypes
import numpy as np

RECORD = np.dtype([("tag", "S3"), ("x", np.float64), ("n", np.int16, (2,))])
NUMERIC = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", ml_dtypes.bfloat16, "float32", "float64", "complex64", "complex128",
]  # fmt: skip
DTYPES = [np.dtype(dtype) for dtype in [*NUMERIC, "S5", "U3", "datetime64[s]", RECORD]]
HARD_DTYPES = [np.dtype(dtype) for dtype in ("bool", "float16", ml_dtypes.bfloat16)]
PYTHON_DTYPES = ("bool", "int64", "uint8", "float64")
FLOATS = [0.0, -0.0, 1.0, -1.5, 0.1, 1e-7, 3e4, 7e4, 1e30, np.inf, -np.inf, np.nan]


def assert_same(got, want, zero_signs=True):
    """The same dtype, shape and values: NaN equals NaN, and bits count everywhere else."""
    if want.dtype.kind in "SU" and not isinstance(got, np.ndarray):
        got = np.asarray(got, want.dtype)  # NumPy's scalars have just the width that they need
    got, want = np.asarray(got), np.asarray(want)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    if got.dtype.kind not in "fc" and got.dtype.name != "bfloat16":
        assert got.tobytes() == want.tobytes()
        return
    if got.dtype.kind == "c":
        got, want = (np.stack([value.real, value.imag]) for value in (got, want))
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)
    if zero_signs:
        numbers = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers])


def make_value(dtype, shape, seed):
    """A repeatable array of values that are apt to go wrong."""
    random = np.random.default_rng(seed)
    if dtype.kind in "fc" or dtype.name == "bfloat16":
        value = random.choice(FLOATS, size=shape)
        if dtype.kind == "c":
            value = np.asarray(value, np.complex128)
            value.imag = random.choice(FLOATS, size=shape)
        with np.errstate(all="ignore"):
            return np.asarray(value).astype(dtype)
    items = int(np.prod(shape))
    if dtype.kind in "US":
        words = np.array(["", "a", "bc", "xyz"], dtype)
        return np.asarray(random.choice(words, size=shape), dtype)
    if dtype.names:
        value = np.zeros(items, dtype)
        value["tag"], value["n"] = random.choice([b"", b"ab"], items), random.integers(9)
        return value.reshape(shape)
    data = random.integers(0, 256, items * dtype.itemsize, np.uint8)
    if dtype.kind == "b":
        data &= 1
    return np.frombuffer(data.tobytes(), dtype).reshape(shape).copy()


def scramble(value):
    """Overwrite what was passed in, which an array must not hold on to."""
    if isinstance(value, np.ndarray):
        value[...] = np.zeros((), value.dtype)


def as_given(value, form):
    """The same value the way some caller might pass it."""
    if form == "fortran":
        return np.array(value, order="F")
    if form == "strided":
        wide = np.zeros((*value.shape, 2), value.dtype)
        wide[..., 0] = value
        return wide[..., 0]
    if form == "swapped":
        return value.astype(value.dtype.newbyteorder())
    if form == "scalar" and value.ndim == 0 and value.dtype.kind not in "SU":
        return value[()]
    if form == "python" and value.size and value.dtype.name in PYTHON_DTYPES:
        return value.tolist()
    return value.copy()


FORMS = st.sampled_from(["plain", "plain", "fortran", "strided", "swapped", "scalar", "python"])
DIMENSIONS = st.sampled_from([0, 1, 1, 2, 3])
SHAPES = st.lists(DIMENSIONS, max_size=4).map(tuple)
SEEDS = st.integers(0, 2**16)


def pattern_of(shape):
    """Patterns that admit a shape."""
    known_axes = st.tuples(*(st.sampled_from([dimension, dimension, None]) for dimension in shape))
    return st.one_of(st.none(), st.just(shape), known_axes)
