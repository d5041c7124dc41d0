"""What Numba calls dtypes."""

import numpy as np

#: What Numba computes with on a CPU.
NUMBERS = "?bBhHiIlLqQfdFD"


def numba_name(dtype) -> str:
    """Numba's name for a dtype; what it has no numbers of is moved as bytes."""
    dtype = np.dtype(dtype)
    if dtype.char not in NUMBERS:
        return f"uint{8 * dtype.itemsize}"
    return "boolean" if dtype == np.bool_ else dtype.name


def cast(text: str, dtype) -> str:
    """Source of a value with a dtype."""
    return f"{numba_name(dtype)}({text})"
