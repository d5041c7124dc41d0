"""Functions that call themselves: each call is written out, where only the run ends them."""

from __future__ import annotations

import os
from contextlib import contextmanager

from nbta.errors import PerformanceWarning, UnimplementedError
from nbta.graph.graph import current
from nbta.locations import of_caller, warn_caller

#: After so many operations of a recursion, which take some seconds to trace, users are told.
WRITTEN_OUT = 5000
#: After so many, which take minutes to trace and longer to compile, it is an error.
MOST = 500_000
_CALLS = "functions that are running, and what their recursion has written out"


class _Calls:
    """Calls of a function that are running."""

    def __init__(self, first):
        self.depth, self.deepest, self.first = 0, 0, first


@contextmanager
def followed(function):
    """Around a call of a user's function that is traced."""
    graph = current()
    if graph is None:
        yield
        return
    root = graph.root
    running = root.cache.setdefault(_CALLS, {})
    calls = running.get(function.__code__)
    if calls is None:
        calls = running[function.__code__] = _Calls(root.version)
    calls.depth += 1
    calls.deepest = max(calls.depth, calls.deepest)
    try:
        if calls.depth > 1:
            _look(root, function, calls)
        yield
    finally:
        calls.depth -= 1
        if not calls.depth:
            del running[function.__code__]


def is_told(graph) -> bool:
    """Whether the user was told of a recursion while a graph was traced."""
    return _TOLD in graph.root.cache


_TOLD = "functions whose recursion users were told of"


def _look(root, function, calls):
    """Tell of a recursion that is long, once, or end it."""
    count = root.version - calls.first
    told = root.cache.get(_TOLD, ())
    if count < WRITTEN_OUT or (count < MOST and function.__code__ in told):
        return
    place = of_caller()
    where = "" if place is None else f"({os.path.basename(place.filename)}:{place.line}) "
    what = (
        f"{function.__qualname__} {where}calls itself, {calls.deepest} calls deep so far, and each "
        f"call is written out in all branches that only the run decides"
    )
    cure = "Write a loop with arrays for what is to be done, or let the depth be smaller"
    if count >= MOST:
        raise UnimplementedError(f"{place}: {what}: more than {MOST:,} operations. {cure}")
    root.cache.setdefault(_TOLD, set()).add(function.__code__)
    message = (
        f"{what}: {count:,} operations, and it goes on; each takes about a millisecond to trace "
        f"and to compile, and one more level doubles the count where a call makes two. {cure}; to "
        f"silence this: warnings.simplefilter('ignore', nbta.PerformanceWarning)"
    )
    warn_caller(message, PerformanceWarning)
