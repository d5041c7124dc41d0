"""Variables that nobody reads: the items that went into them are taken all the same.

See `nbta.frontend.awaited`. Where the source says that nobody reads a value, by
`nbta.frontend.liveness`, the function calls what is here.
"""

from __future__ import annotations

import contextlib
import sys

from nbta.frontend.array_wrappers import ArrayWrapper, is_of_now
from nbta.frontend.awaited import note
from nbta.graph.operation import Tensor


def compute(value, depth=1) -> None:
    """Note a value that nobody reads; compute it in a run if an earlier trace missed it."""
    parts = value if type(value) is tuple else (value,)
    held = [
        part.itself if isinstance(part, ArrayWrapper) else part for part in parts if is_of_now(part)
    ]
    tensors = [part for part in held if isinstance(part, Tensor)]
    if tensors:
        frame = sys._getframe(depth)
        note((frame.f_code.co_filename, frame.f_lineno), tensors)


def unused(*variables) -> None:
    """`compute` for variables that a statement gave values."""
    for value in _values(variables):
        compute(value, depth=2)


def unused_after(*variables) -> None:
    """`compute` for variables that blocks gave values.

    A view that a block made is not looked at after it: a run that did not come there has no such
    items, and its index may be out of range.
    """
    for value in _values(variables):
        compute(value.root if isinstance(value, ArrayWrapper) else value, depth=2)


def _values(variables):
    for get in variables:
        with contextlib.suppress(NameError):  # such as of an annotation alone
            yield get()
