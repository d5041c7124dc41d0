"""What a program does beside computing: assertions, and text that it prints.

Each takes a token and gives the next one, an integer of no meaning but order: what is computed
behind a token runs after all that it came by.
"""

from __future__ import annotations

import numpy as np

from nbta.codegen.values import Scalar
from nbta.errors import invalid
from nbta.graph.operation import NotDifferentiable, Spec
from nbta.ops.dispatch import apply, define

TOKEN = np.dtype(np.int64)
_NO_GRADIENT = NotDifferentiable("a token orders what is done, and has no value")


def _infer_assert(token, holds, *, message):
    return Spec(TOKEN, ())


def _evaluate_assert(token, holds, *, message):
    if not holds:
        if isinstance(message, Exception):
            error = type(message)(*message.args)  # not itself, which would gather tracebacks
            error.__dict__.update(message.__dict__)
            raise error
        raise AssertionError(message)
    return np.asarray(token)


def _emit_assert(code, op) -> None:
    """Leave where it does not hold; the run that follows raises the error."""
    token, holds = op.inputs
    code.fail_if(f"not {code.scalar(holds)}")
    code.bind(op.outputs[0], Scalar(code.scalar(token), TOKEN))


ASSERT = define("Assert", _infer_assert, _evaluate_assert, _NO_GRADIENT, emit=_emit_assert)


def _infer_print(token, *values, parts, end):
    return Spec(TOKEN, ())


def _evaluate_print(token, *values, parts, end):
    values = iter(values)
    print(*(next(values)[()] if part is None else part for part in parts), **dict(end))
    return np.asarray(token)


def _emit_print(code, op) -> None:
    """Printing is Python's."""
    code.call_python(op)


PRINT = define("Print", _infer_print, _evaluate_print, _NO_GRADIENT, emit=_emit_print, foreign=True)


def _emit_behind(code, op) -> None:
    """The value itself; all that has an effect stands before it in the code."""
    code.bind(op.outputs[0], code.kept(op.inputs[0]))


BEHIND = define(
    "Behind",
    lambda x, token: x,
    lambda x, token: x,
    lambda op, dy: [dy, None],
    connections=lambda op: [[op.inputs[0]]],
    emit=_emit_behind,
)


def behind(x, token):
    """The same values, for which a run does all that a token stands for."""
    return apply(BEHIND, [x, token])


def assert_holds(token, holds, message):
    """The token behind an assertion, which a run fails with where a truth value is false.

    ``message`` is the text of an `AssertionError`, or an error of the user's.
    """
    return apply(ASSERT, [token, holds], {"message": message})


def print_values(token, parts, values, end):
    """The token behind what prints texts, and values in place of None among them."""
    return apply(PRINT, [token, *values], {"parts": tuple(parts), "end": tuple(end.items())})


def checked(x, holds, message):
    """The same values, in a run that fails with a message where a truth value is false."""
    error = invalid("value", message)
    token = apply(ASSERT, [np.zeros((), np.int64), holds], {"message": error})
    return behind(x, token)
