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


def literal(value) -> str:
    """Source of a NumPy scalar."""
    if value.dtype.kind == "c":
        text = f"complex({_float(value.real)}, {_float(value.imag)})"
    else:
        text = _float(value) if value.dtype.kind == "f" else str(int(value))
    return f"np.{value.dtype.name}({text})"


def _float(value):
    if np.isnan(value):
        return "np.nan"
    if np.isinf(value):
        return "np.inf" if value > 0 else "-np.inf"
    return repr(float(value))
