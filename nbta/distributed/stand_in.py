"""Stands in for ``nbta.value_and_grad(..., batch_axis=)`` until that is there."""

import numpy as np

import nbta
from nbta.distributed.batches import count, item
from nbta.structure import map_leaves


def value_and_grad(f, argnums=0, *, batch_axis=None, reduction="sum", compiled="auto"):
    """The signature of the function to come; items one after the other."""
    one = nbta.value_and_grad(f, argnums, compiled=compiled)

    def both(*args, **kwargs):
        items = count(args, batch_axis)
        found = [one(*item(args, batch_axis, i), **kwargs) for i in range(items)]
        if not found:
            chosen = [args[place] for place in np.atleast_1d(argnums)]
            zeros = [map_leaves(lambda x: np.zeros_like(x)[()], part) for part in chosen]
            return np.float64(0), tuple(zeros) if isinstance(argnums, tuple) else zeros[0]
        total = found[0]
        for more in found[1:]:
            total = map_leaves(lambda a, b: a + b, total, more)
        return map_leaves(lambda x: x / items, total) if reduction == "mean" else total

    return both
