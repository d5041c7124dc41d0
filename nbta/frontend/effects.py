"""What a traced function does beside computing, in the order in which Python would do it.

A token is handed from one assertion or print to the next. It is in a wrapper like any other, so
that loops and branches carry it. What the function gives waits for the last one.
"""

from __future__ import annotations

from contextlib import contextmanager

from nbta.frontend.array_wrappers import ArrayWrapper
from nbta.frontend.awaited import is_repeated, look_for_missed
from nbta.frontend.tries import check_raising
from nbta.ops.core.checks import (
    Order,
    Unordered,
    after_token,
    assert_holds,
    entered,
    first_token,
    leave_over,
    order_now,
    print_values,
)
from nbta.structure import leaves, map_leaves


class Wrapped(Order):
    """An order whose token is in a wrapper."""

    def __init__(self, token):
        self.wrapper = ArrayWrapper(token, "the order of prints and assertions")
        # no value of the user's, so that functions given to loops change it
        self.wrapper.made = True
        super().__init__(token)

    @property
    def token(self):
        """What the wrapper holds."""
        return self.wrapper.itself

    @token.setter
    def token(self, new):
        if new is not self.wrapper.content:
            self.wrapper.store(new)


@contextmanager
def ordered():
    """Around a function: gives what lets its results wait for all that it does."""
    around = order_now()
    if around is None:
        with entered(Wrapped(first := first_token())) as order:
            yield lambda result: _waiting(result, order, first)
        return
    with in_block():
        yield lambda result: result


def _waiting(result, order, first):
    acts = order.wrapper.content is not first
    look_for_missed([result, order.token] if acts else result)
    if not acts:
        return result
    found = map_leaves(lambda leaf: after_token(leaf, order.token), result)
    leave_over(leaves(found), order.token)
    return found


@contextmanager
def in_block():
    """Around a function given to a loop or a branch of nbta's: its token has no wrapper."""
    around = order_now()
    if around is None or isinstance(around, Wrapped | Unordered):
        yield
        return
    first = around.token
    with entered(Wrapped(first)) as order:
        yield
    if order.wrapper.content is not first:
        around.token = order.token


def token_wrapper():
    """The wrapper of the token, if it is in one."""
    order = order_now()
    return order.wrapper if isinstance(order, Wrapped) else None


def check(holds, message) -> None:
    """Fail in a run where a truth value is false, once; refused where a handler waits for it."""
    kind = type(message) if isinstance(message, Exception) else AssertionError
    check_raising("this line", kind)
    check_uncaught(holds, message)


def check_uncaught(holds, message) -> None:
    """The same where a handler may wait for the error, which the message says it does not catch."""
    if is_repeated():
        return
    order = order_now()
    order.token = assert_holds(order.token, holds, message)


def show(parts, values, options, by) -> None:
    """Let a run print parts, or call another function ``by`` with them."""
    order = order_now()
    order.token = print_values(order.token, parts, values, options, by)
