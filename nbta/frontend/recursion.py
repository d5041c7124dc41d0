"""Functions that call themselves: each call is written out, where only the run ends them."""

from __future__ import annotations

import os
from contextlib import contextmanager

from nbta.errors import PerformanceWarning, UnimplementedError
from nbta.graph.graph import current
from nbta.locations import of_caller, of_error, warn_caller
from nbta.tuning import RECURSION_DEPTH

#: After so many operations of a recursion, which take some seconds to trace, users are told.
WRITTEN_OUT = 5000
#: After so many, which take minutes to trace and longer to compile, it is an error.
MOST = 500_000
_CALLS = "functions that are running, and what their recursion has written out"
_CUT = "functions whose recursion is an error of a run from some depth on"


class EndlessError(UnimplementedError):
    """A function calls itself again and again, as only the run knows where that ends.

    Attributes
    ----------
    code : code
        Of the function.
    """

    def __init__(self, message, code):
        super().__init__(message)
        self.code = code


def endless(function, error) -> EndlessError:
    """For Python's error at its limit of calls, in a function that was called last."""
    running = current().root.cache[_CALLS] if current() is not None else {}
    code = max(running, key=lambda code: running[code].depth, default=function.__code__)
    message = (
        f"{of_error(error)}: {function.__qualname__} calls itself again and again, as only the "
        f"run knows where that ends; write a loop"
    )
    return EndlessError(message, code)


def cut(graph, codes) -> None:
    """Let calls that functions make of themselves be an error of a run where they go deep.

    A formula of a reflection, `1 - cdf(-x)` or `pi / (sin(pi * x) * gamma(1 - x))`, calls its
    function once more. A trace that writes out what is not taken never ends, so a second one writes
    out as many calls as runs of such functions need, and its runs fail where they come to the next.
    """
    graph.root.cache[_CUT] = codes


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
        if calls.depth > RECURSION_DEPTH + 1 and function.__code__ in root.cache.get(_CUT, ()):
            raise _too_deep(function)
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


def _too_deep(function):
    """An error for runs that come to a call which the trace no longer writes out."""
    error = UnimplementedError(
        f"{of_caller()}: {function.__qualname__} calls itself more than {RECURSION_DEPTH} deep, as "
        f"only the run knows where that ends; write a loop"
    )
    error.nbta_raised = True
    return error
