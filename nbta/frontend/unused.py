"""Variables that nobody reads: the items that went into them are taken all the same.

See `nbta.frontend.awaited`. Where the source says that nobody reads a value, by
`nbta.frontend.liveness`, the function calls what is here.
"""

from __future__ import annotations

import contextlib
import sys

from nbta.frontend.array_wrappers import ArrayWrapper, is_of_now
from nbta.frontend.awaited import note
from nbta.frontend.lists import filled_by
from nbta.frontend.maybe import Parts, is_maybe
from nbta.frontend.native import is_python
from nbta.graph.operation import Tensor


def compute(value, depth=1) -> None:
    """Note a value that nobody reads; compute it in a run if an earlier trace missed it."""
    tensors = list(_tensors(value))
    if tensors:
        frame = sys._getframe(depth)
        note((frame.f_code.co_filename, frame.f_lineno), tensors)


def _tensors(value):
    """The tensors in a value, also those of which a run may put None in the place."""
    waiting, lists = [value], set()
    while waiting:
        part = waiting.pop()
        if is_maybe(part):
            part = part.parts.value
        if isinstance(part, Parts):
            waiting.append(part.value)
        elif type(part) is tuple:
            waiting += part
        elif isinstance(part, dict):
            waiting += dict.values(part)
        elif isinstance(part, list):
            if id(part) not in lists:
                lists.add(id(part))
                waiting += list.__iter__(part) if is_python(part) else filled_by(part)
        elif is_of_now(part):
            held = part.itself if isinstance(part, ArrayWrapper) else part
            if isinstance(held, Tensor):
                yield held


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
