"""How items along an axis become one: sums, products, the greatest and the least."""

from dataclasses import dataclass

import numpy as np

from nbta.codegen.names import cast, numba_name


@dataclass(frozen=True)
class Fold:
    """Source of a reduction's parts.

    Attributes
    ----------
    start : str
        Of nothing at all.
    step : str
        Of the result so far and another one.
    inner : str
        The same in a run of items that are folded one after another in a register.
    item, back : str
        What becomes of an item before such a run, and of the run's result.
    wide : str
        Numba's name of what holds the results of runs.
    """

    start: str
    step: str
    inner: str
    wide: str
    item: str = "{}"
    back: str = "{}"

    @property
    def first(self) -> str:
        """With what a run of items begins."""
        return self.item.format(self.start)


def total_of(dtype) -> Fold:
    """Sums: of floats in any order, and float32 in blocks whose sums are added as float64."""
    start, step = cast("0", dtype), "{} + {}"
    if dtype.kind == "f":
        return Fold(start, step, "fast_add({}, {})", "float64")
    return Fold(start, step, cast(step, dtype), numba_name(dtype))


def product_of(dtype) -> Fold:
    """Products, in order."""
    return Fold(cast("1", dtype), "{} * {}", cast("{} * {}", dtype), numba_name(dtype))


def extreme_of(dtype, sign) -> Fold:
    """The greatest (sign 1) or the least (-1), or NaN where there is one."""
    step = "maximum({}, {})" if sign > 0 else "minimum({}, {})"
    name = numba_name(dtype)
    if dtype.kind != "f":
        return Fold(cast(_farthest(dtype, -sign), dtype), step, step, name)
    order = "order_up({})" if sign > 0 else "order_down({})"
    start = cast("-inf" if sign > 0 else "inf", dtype)
    return Fold(start, step, step, name, order, "from_order({})")


def _farthest(dtype, sign):
    """Source of the greatest or the least of a dtype's numbers."""
    if dtype.kind == "b":
        return str(sign > 0)
    info = np.iinfo(dtype)
    return str(info.max) if sign > 0 else f"{info.min + 1} - 1"
