"""Half precision, which is added up and solved in float32."""

import numpy as np

from nbta.graph.spec import is_inexact


def wide(dtype):
    """The dtype to compute in: float32 for float16 and bfloat16, else the dtype itself."""
    return np.dtype(np.float32) if is_inexact(dtype) and dtype.itemsize == 2 else dtype


def widened(x):
    """An array in the dtype to compute in."""
    return x.astype(wide(x.dtype), copy=False)


def narrow(value, dtype):
    """A computed value in the dtype that it is to have."""
    return value if value.dtype == dtype else value.astype(dtype)
