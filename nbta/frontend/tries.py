"""`try`, whose handlers see errors of tracing, and none of a run.

What Python would raise for values that only the run knows does not come while the function is
traced: `math.sqrt(v)` of a negative `v` is NaN in the graph. A handler that waits for it is never
taken, so a run fails where Python would come to it (`nbta.frontend.effects.check`). And an error
that says what nbta cannot follow goes past handlers, as it is none of the user's.
"""

import contextlib
import sys
import threading

import numpy as np

from nbta.errors import InvalidArgumentError, UnimplementedError
from nbta.frontend.problems import here
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.core.checks import ASSERT, after, first_token
from nbta.ops.core.dispatch import apply

#: Reasons of nbta's errors for what Python refuses too, by what is known before a run.
_PYTHONS = {
    "axis", "broadcast", "cholesky", "empty", "index", "matmul", "reshape", "shape", "singular",
    "split", "squeeze",
}  # fmt: skip


class _Tries(threading.local):
    """What gives the errors that each `try` around catches, from the outermost to the innermost."""

    def __init__(self):
        self.around = []


_tries = _Tries()


def enter_try(kinds) -> None:
    """Note that what follows is in a `try`; ``kinds()`` are the errors of its handlers."""
    _tries.around.append(kinds)


def leave_try() -> None:
    """Note that it is over."""
    _tries.around.pop()


def in_a_try() -> bool:
    """Whether a handler may take up an error of the function."""
    return bool(_tries.around)


def is_caught(error) -> bool:
    """Whether a `try` around has a handler for an error that came while the function is traced."""
    return not _is_refusal(error) and any(_catches(kinds(), type(error)) for kinds in _tries.around)


def awaited(*errors) -> type | None:
    """The first of some kinds of errors for which a handler waits."""
    return next((e for e in errors if any(_catches(kinds(), e) for kinds in _tries.around)), None)


class AwaitedError(UnimplementedError):
    """A block of the run ends in an error for which a handler waits."""


_RUNS_FAIL = "whether runs fail that come to an error for which a handler waits"


def let_runs_fail(graph) -> None:
    """Let such a block be one at which runs fail.

    A trace refuses it first, as Python may make the iterations of a loop around it, and go to the
    handler. Where that is no way, a second one leaves it to runs, which may not come there.
    """
    graph.root.cache[_RUNS_FAIL] = True


def check_certain(error) -> None:
    """Refuse an error in which a block ends, if a handler waits for it."""
    caught = awaited(type(error))
    if caught is not None and _RUNS_FAIL not in current().root.cache:
        raise AwaitedError(str(uncaught("this line", caught)))


def uncaught(what, caught) -> UnimplementedError:
    """The error of a run that comes to what raises an error for which a handler waits."""
    pythons = next(kind for kind in caught.__mro__ if not kind.__module__.startswith("nbta."))
    return UnimplementedError(
        f"{here()}: {what} raises {pythons.__name__} in this run, which the try statement around "
        f"it does not catch, as only the run knows of it; test for it with an if instead"
    )


def check_index(array, key) -> bool:
    """Raise what Python does in a `try` that waits for it, of an index that Python knows.

    Lengths are asked for, so that a new trace begins where they are open. The result says whether
    a handler waits for the error of one index that only the run knows.
    """
    if not any(_catches(kinds(), IndexError) for kinds in _tries.around):
        return False
    if _is_run_index(key) and (isinstance(array, list | tuple) or getattr(array, "ndim", 0)):
        return True
    if not isinstance(array, Tensor) or array.shape is None:
        return False
    parts = key if isinstance(key, tuple) else (key,)
    if not all(type(part) is int for part in parts) or len(parts) > (array.ndim or 0):
        return False
    for axis, (part, length) in enumerate(zip(parts, array.shape, strict=False)):
        if not (-length <= part < length):
            raise IndexError(f"{here()}: index {part} is out of bounds for axis {axis}")
    return False


def _is_run_index(key):
    return isinstance(key, Tensor) and key.spec.rank == 0 and key.dtype.kind in "iu"


def _catches(kinds, error):
    """Whether one of the kinds of errors of a `try` is that of an error; None is each."""
    return issubclass(error, tuple(BaseException if kind is None else kind for kind in kinds))


def refusals() -> tuple[type, ...]:
    """The kind of the error that is being handled, if it is not for the user's handlers; else none.

    It is what the first handler of each `try` waits for, to raise it again.
    """
    error = sys.exception()
    return (type(error),) if _is_refusal(error) else ()


def _is_refusal(error):
    """Whether nbta cannot follow something, or ends a first way of tracing it."""
    ours = type(error).__module__.startswith("nbta.")
    raised = getattr(error, "nbta_raised", False)
    return ours and not raised and getattr(error, "reason", None) not in _PYTHONS


class Suppressing:
    """`contextlib.suppress`, which is a `try` with a handler that does nothing."""

    def __init__(self, manager: contextlib.suppress):
        self._manager = manager

    def __enter__(self):
        enter_try(lambda: self._manager._exceptions)
        return self._manager.__enter__()

    def __exit__(self, kind, error, trace):
        leave_try()
        return not _is_refusal(error) and self._manager.__exit__(kind, error, trace)


class Unraised:
    """`numpy.errstate`, which is refused where NumPy's functions would raise errors in it."""

    def __init__(self, manager: np.errstate):
        self._manager = manager

    def __enter__(self):
        before = _raised_by_numpy()
        entered = self._manager.__enter__()
        if _raised_by_numpy() <= before:
            return entered
        self._manager.__exit__(None, None, None)
        raise UnimplementedError(
            f"{here()}: np.errstate asks for errors that depend on values that only the run knows, "
            "and runs raise none; test the values with an if, for example by np.isfinite"
        )

    def __exit__(self, *error):
        return self._manager.__exit__(*error)


def _raised_by_numpy():
    return {kind for kind, what in np.geterr().items() if what in ("raise", "call")}


class NoIntegerError(InvalidArgumentError, OverflowError):
    """A float that is to become an integer is none; Python's error differs for NaN and infinity."""


def where_it_holds(value, holds, error):
    """A value, which a run raises an error in place of where something does not hold.

    It is no effect, so that conditions of loops can have it, too.
    """
    if (caught := awaited(type(error))) is not None:
        error = uncaught("this line", caught)
    return after(value, apply(ASSERT, [first_token(), holds], {"message": error}))
