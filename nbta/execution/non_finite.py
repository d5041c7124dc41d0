"""Runs that stop at the first NaN or infinity, with the operation that made it.

`Watcher` stands where `Plainly` does in a run that nobody watches, as the tracer's does. An
operation makes a NaN where none of its inputs has one, and an infinity where all are finite.
"""

import contextvars
import functools
import os

import numpy as np

from nbta.errors import invalid
from nbta.execution.reference import Step, body_function
from nbta.graph.graph import is_of_gradient
from nbta.graph.operation import is_inexact

#: Of a context: None where nobody watches, else whether infinities count.
_choice: contextvars.ContextVar[bool | None] = contextvars.ContextVar(
    "nbta_nans", default=True if os.environ.get("NBTA_DEBUG_NANS") == "1" else None
)


def choose(infinities):
    """Watch from now on, in this thread or task; gives what `restore` takes."""
    return _choice.set(infinities)


def restore(token) -> None:
    """Go back to what was before `choose`."""
    _choice.reset(token)


#: None where runs are not to be watched; without a function of Python's around it.
watching = _choice.get


def is_watched() -> bool:
    """Whether runs are to be watched."""
    return watching() is not None


class Watcher:
    """Looks at each result of a run, one by one."""

    def __init__(self):
        self._infinities = _choice.get()

    def step(self, deadline=None) -> "_WatchedStep":
        """The container of a run."""
        return _WatchedStep(deadline, self)

    def plan(self, plan):
        """A plan whose operations are watched."""
        return plan.observed(self._observed)

    def _observed(self, op, function):
        if op.record.takes_list or (op.record.effects and not op.record.foreign):
            return function  # bodies are watched themselves, and arrays forward what they have
        if op in op.graph.factors:
            return function  # it counts where it meets an adjoint that is not zero
        return functools.partial(self._run, op, function)

    def _run(self, op, function, *given):
        before = [_state(value) for value in given] if op.record.changes else None
        found = function(*given)
        for result in found if type(found) is tuple else (found,):
            state = _state(result)
            if state == (False, False):
                continue
            states = before or [_state(value) for value in given]
            counted = [
                s for s, tensor in zip(states, op.inputs, strict=True) if not _is_factor(tensor)
            ]
            had_nan, had_infinity = (
                any(kind) for kind in zip((False, False), *counted, strict=True)
            )
            if state[0] and not had_nan:
                raise _error(op, "NaN", given, result, np.isnan)
            if self._infinities and state[1] and not (had_nan or had_infinity):
                raise _error(op, "an infinity", given, result, np.isinf)
        return found


class _WatchedStep(Step):
    def __init__(self, deadline, watcher):
        super().__init__(deadline)
        self._watcher = watcher

    def function(self, body):
        if body not in self._functions:
            self._functions[body] = self._watcher.plan(body_function(body)).use_up
        return self._functions[body]


def _is_factor(tensor):
    return tensor.op in tensor.graph.factors


def _state(value):
    """Whether there is a NaN, and an infinity, among the items of a value."""
    array = np.asarray(value)
    if not is_inexact(array.dtype) or np.isfinite(array).all():
        return False, False
    return bool(np.isnan(array).any()), bool(np.isinf(array).any())


def _error(op, what, given, result, test):
    place = np.unravel_index(np.argmax(test(result)), np.shape(result))
    item = f", item {_index(place)}" if place else ""
    values = [_shown(value, np.shape(result), place) for value in given if _is_number(value)]
    of = f" of {' and '.join(values)}" if values else ""
    message = f"{op.type} made {what}{of}{item}{_where(op)}"
    return invalid("not_finite", message)


def _index(place):
    return "[" + ", ".join(str(int(index)) for index in place) + "]"


def _is_number(value):
    return np.asarray(value).dtype.kind in "biufc"


def _shown(value, shape, place):
    """The item of a value that goes with an item of the result, or what the value is."""
    array = np.asarray(value)
    if array.ndim == 0:
        return str(array[()])
    if array.shape == shape:
        return str(array[place])
    return f"an array of shape {array.shape}"


def _where(op):
    """The user's line, and whether it is its gradient that made it."""
    backward = is_of_gradient(op)
    about = " in the gradient of" if backward else " at"
    if op.location is None:
        return ", in a gradient" if backward else ""
    text = getattr(op.location, "text", "")
    return f",{about} {op.location}" + (f": {text}" if text else "")
