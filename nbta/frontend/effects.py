"""What a traced function does beside computing, in the order in which Python would do it.

A token is handed from one assertion or print to the next. It is a box like any other, so that loops
and branches carry it. What the function gives waits for the last one.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

import numpy as np

from nbta.frontend.boxes import Box
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.checks import assert_holds, behind, print_values
from nbta.ops.dispatch import as_tensor
from nbta.structure import map_leaves


class _Tokens(threading.local):
    def __init__(self):
        self.stack = []


_tokens = _Tokens()


@contextmanager
def ordered():
    """Around a function: gives what lets its results wait for all that it does."""
    graph = current()
    stack = _tokens.stack
    if stack and stack[-1][0] is graph.root:
        yield lambda result: result
        return
    first = np.zeros((), np.int64)
    box = Box(first, "the order of prints and assertions")
    stack.append((graph.root, box))

    def waiting(result):
        if box.content is first:
            return result
        return map_leaves(lambda leaf: _behind(leaf, box.itself), result)

    try:
        yield waiting
    finally:
        stack.pop()


def _behind(leaf, token):
    tensor = leaf if isinstance(leaf, Tensor) or not _is_data(leaf) else as_tensor(leaf)
    if not isinstance(tensor, Tensor):
        return leaf
    return behind(tensor, token)


def _is_data(leaf):
    return isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic)


def check(holds, message) -> None:
    """Fail in a run where a truth value is false."""
    _, box = _tokens.stack[-1]
    box.store(assert_holds(box.itself, holds, message))


def show(parts, values, options) -> None:
    """Print in a run."""
    _, box = _tokens.stack[-1]
    box.store(print_values(box.itself, parts, values, options))
