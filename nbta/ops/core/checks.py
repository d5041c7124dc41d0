"""What a program does beside computing: assertions, and text that it prints.

Each takes a token and gives the next one, an integer of no meaning but order: what is computed
after a token runs after all that it came by.
"""

from __future__ import annotations

import threading
import types
from contextlib import contextmanager

import numpy as np

from nbta.codegen.values import Scalar
from nbta.errors import invalid
from nbta.graph.graph import current
from nbta.graph.operation import DATA, NotDifferentiable, Spec, Tensor
from nbta.locations import raise_at
from nbta.loops import negated
from nbta.ops.core.dispatch import apply, as_tensor, define

TOKEN = np.dtype(np.int64)
_NO_GRADIENT = NotDifferentiable("a token orders what is done, and has no value")


def _infer_assert(token, holds, *, message):
    return Spec(TOKEN, ())


def _evaluate_assert(token, holds, *, message):
    if not holds:
        if isinstance(message, Exception):
            # Not itself, which would gather tracebacks, nor by a user's __init__, which may take
            # others than the arguments that it gives to Exception.
            kind = type(message)
            by_user = isinstance(kind.__init__, types.FunctionType)
            error = kind.__new__(kind, *message.args) if by_user else kind(*message.args)
            error.__dict__.update(message.__dict__)
            error.nbta_place = True  # it says where: executors leave it of its class
            if (at := getattr(error, "nbta_at", None)) is not None:
                raise_at(error, *at)
            raise error
        raise AssertionError(message)
    return np.asarray(token)


def _emit_assert(code, op) -> None:
    """Leave where it does not hold; the run that follows raises the error."""
    token, holds = op.inputs
    code.fail_if(negated(code.scalar(holds)))
    code.bind(op.outputs[0], Scalar(code.scalar(token), TOKEN))


ASSERT = define("Assert", _infer_assert, _evaluate_assert, _NO_GRADIENT, emit=_emit_assert)


def _emit_await(code, op) -> None:
    """What is awaited stands before this in the code."""
    for tensor in op.inputs[1:]:
        code.kept(tensor)
    code.bind(op.outputs[0], Scalar(code.scalar(op.inputs[0]), TOKEN))


AWAIT = define(
    "Await",
    lambda token, *values: Spec(TOKEN, ()),
    lambda token, *values: np.asarray(token),
    _NO_GRADIENT,
    emit=_emit_await,
)


def _infer_print(token, *values, parts, end, by):
    return Spec(TOKEN, ())


def _evaluate_print(token, *values, parts, end, by):
    values = iter(value[()] for value in values)
    shown = [next(values) if part is None else part(values) if callable(part) else part
             for part in parts]  # fmt: skip
    _attempt.begun += 1
    if _attempt.begun > _attempt.printed:
        by(*shown, **dict(end))
        _attempt.printed = _attempt.begun
    return np.asarray(token)


def _emit_print(code, op) -> None:
    """Printing is Python's."""
    code.call_python(op)


PRINT = define("Print", _infer_print, _evaluate_print, _NO_GRADIENT, emit=_emit_print, foreign=True)


def _emit_after(code, op) -> None:
    """The value itself; all that has an effect stands before it in the code."""
    code.bind(op.outputs[0], code.kept(op.inputs[0]))


AFTER = define(
    "After",
    lambda x, token: x,
    lambda x, token: x,
    lambda op, dy: [dy, None],
    connections=lambda op: [[op.inputs[0]]],
    emit=_emit_after,
    linear=(0,),
    moves=True,
)


def after(x, token):
    """The same values, for which a run does all that a token stands for."""
    return apply(AFTER, [x, token])


def after_token(leaf, token):
    """A value that a body or a function gives, for which a run does all that a token stands for."""
    plain = isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic)
    tensor = as_tensor(leaf) if plain and not isinstance(leaf, Tensor) else leaf
    return after(tensor, token) if _can_wait(tensor) else leaf


def _can_wait(leaf):
    return isinstance(leaf, Tensor) and leaf.kind == DATA


_LEFT = "what nothing waits for"


def leave_over(found, token) -> None:
    """Note a token that no result of a function waits for, if there is none that could."""
    if not any(map(_can_wait, found)):
        current().root.cache[_LEFT] = [token]


def left_over(graph) -> list:
    """The token that a run of a graph is asked for beside its results."""
    return graph.cache.get(_LEFT, [])


# What is printed once, although a run may take several attempts.


class _Attempt(threading.local):
    """Counts what is printed, of which attempts before this one have printed the beginning."""

    def __init__(self):
        self.begun = self.printed = 0

    def restart(self):
        self.begun = 0


_attempt = _Attempt()


@contextmanager
def printing_once():
    """A run that may take several attempts; what one of them printed the next ones leave out.

    Gives what is to be called where another attempt begins.
    """
    around = _attempt.begun, _attempt.printed
    _attempt.begun = _attempt.printed = 0
    try:
        yield _attempt.restart
    finally:
        _attempt.begun, _attempt.printed = around


# The order in which what is traced acts.


class Acts(BaseException):  # no Exception, which users catch
    """A body acts that was not given a token; it is traced once more, with one."""


class Order:
    """In which order what is traced acts.

    Attributes
    ----------
    token : Tensor
        After the last act; the next one takes it, and puts its own in its place.
    """

    def __init__(self, token):
        self.root, self.token = current().root, token


class Unordered(Order):
    """Of a body that was given no token, as most bodies need none."""

    def __init__(self):
        self.root = current().root

    @property
    def token(self):
        """There is none."""
        raise Acts


class _Orders(threading.local):
    def __init__(self):
        self.stack = []


_orders = _Orders()


@contextmanager
def entered(order):
    """A context in which what is traced acts in an order, which this gives."""
    depth = len(_orders.stack)
    _orders.stack.append(order)
    try:
        yield order
    finally:
        del _orders.stack[depth:]


def order_now() -> Order | None:
    """The order of what is traced; None for a graph that is built by hand, and outside of any."""
    graph, stack = current(), _orders.stack
    return stack[-1] if graph is not None and stack and stack[-1].root is graph.root else None


def first_token():
    """What stands before the first act."""
    return np.zeros((), TOKEN)


def assert_holds(token, holds, message):
    """The token after an assertion, which a run fails with where a truth value is false.

    ``message`` is the text of an `AssertionError`, or an error of the user's.
    """
    return apply(ASSERT, [token, holds], {"message": message})


def computed(token, values):
    """The token after values, which a run computes although nobody may use them."""
    return apply(AWAIT, [token, *values])


def print_values(token, parts, values, end, by=print):
    """The token after what prints parts, or tells them in another way: by calling ``by``.

    A part is a text; None for the next one of the values; or a function that takes what it needs of
    an iterator over these, and gives what is printed.
    """
    attrs = {"parts": tuple(parts), "end": tuple(end.items()), "by": by}
    return apply(PRINT, [token, *values], attrs)


def checked(x, holds, message):
    """The same values, in a run that fails with a message where a truth value is false."""
    error = invalid("value", message)
    token = apply(ASSERT, [first_token(), holds], {"message": error})
    return after(x, token)
