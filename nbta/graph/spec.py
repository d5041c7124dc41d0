"""What is known about a tensor before a run."""

from typing import Any, NamedTuple

import numpy as np

from nbta import shapes

DATA, HANDLE, FLOW = "data", "handle", "flow"


class Spec(NamedTuple):
    """Dtype, partly known shape, and kind.

    A handle is at run time the number of an array in the step's container; a flow is a float32
    scalar with no meaning but order.
    """

    dtype: np.dtype
    shape: tuple | None
    kind: str = DATA

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def differentiable(self) -> bool:
        """Whether a gradient may pass: floats and complex numbers, flows among them."""
        return self.kind != HANDLE and is_inexact(self.dtype)

    def __str__(self):
        if self.kind != DATA:
            return self.kind
        return f"{self.dtype.name} {shapes.text(self.shape)}"


Spec.dtype.__doc__ = "Of the elements."
Spec.shape.__doc__ = "Extents; None in it for one that is not known, None for an unknown rank."
Spec.kind.__doc__ = '``"data"``, ``"handle"`` or ``"flow"``.'


def is_inexact(dtype) -> bool:
    """Whether a dtype has fractions: floats, bfloat16, complex."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def spec(dtype: Any, shape=()) -> Spec:
    """A `Spec` of plain data."""
    return Spec(np.dtype(dtype), shape)


HANDLE_SPEC = Spec(np.dtype(np.int64), (), HANDLE)
FLOW_SPEC = Spec(np.dtype(np.float32), (), FLOW)
