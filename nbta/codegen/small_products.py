"""Products of small matrices of floats, of known sizes, as loops in place of a call."""

import math

import numpy as np

from nbta.codegen.values import is_known, times, total, typed
from nbta.loops import assign, call, over
from nbta.loops.nodes import ONE
from nbta.runtime.intrinsics import LEFT, RIGHT
from nbta.tuning import SMALL_PRODUCT

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def is_small(dtype, sizes) -> bool:
    """Whether a product of matrices with so many rows, inner items and columns is one of these."""
    known = all(is_known(size) for size in sizes)
    return known and dtype in _FLOATS and math.prod(size.value for size in sizes) <= SMALL_PRODUCT


def small_product(code, left, right, target, sizes, flags) -> None:
    """Loops over items of a product, which are added up in any order.

    Where rows of the right side lie along those of the product, the sum of an item is written out,
    so that its columns are the innermost loop, for vector instructions. Elsewhere the sum is.
    """
    rows, inner, columns = sizes
    i, j, k = (code.name("i") for _ in range(3))
    turned, zero = flags & RIGHT or columns == ONE, typed(0, target.dtype)

    def step(k):
        x = total(times(k, rows), i) if flags & LEFT else total(times(i, inner), k)
        y = total(times(j, inner), k) if turned else total(times(k, columns), j)
        return assign(s, call("fast_add", s, left.at(x) * right.at(y)))

    s = code.name("s")
    with code.nest(over(i, rows)), code.nest(over(j, columns)):
        code.add(assign(s, zero))
        if turned:
            code.nested([over(k, inner)], step(k))
        else:
            code.add(*(step(k) for k in range(inner.value)))
        code.add(assign(target.at(total(times(i, columns), j)), s))
