"""What a traced function does beside computing, in the order in which Python would do it.

A token is handed from one assertion or print to the next. It is in a box like any other, so that
loops and branches carry it. What the function gives waits for the last one.
"""

from __future__ import annotations

from contextlib import contextmanager

from nbta.frontend.awaited import look_for_missed
from nbta.frontend.boxes import Box
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


class Boxed(Order):
    """An order whose token is in a box."""

    def __init__(self, token):
        self.box = Box(token, "the order of prints and assertions")
        self.box.made = True  # no value of the user's, so that functions given to loops change it
        super().__init__(token)

    @property
    def token(self):
        """What the box holds."""
        return self.box.itself

    @token.setter
    def token(self, new):
        if new is not self.box.content:
            self.box.store(new)


@contextmanager
def ordered():
    """Around a function: gives what lets its results wait for all that it does."""
    around = order_now()
    if around is None:
        with entered(Boxed(first := first_token())) as order:
            yield lambda result: _waiting(result, order, first)
        return
    with in_block():
        yield lambda result: result


def _waiting(result, order, first):
    look_for_missed(result)
    if order.box.content is first:
        return result
    found = map_leaves(lambda leaf: after_token(leaf, order.token), result)
    leave_over(leaves(found), order.token)
    return found


@contextmanager
def in_block():
    """Around a function that is given to a loop or a branch of nbta's, whose token has no box."""
    around = order_now()
    if around is None or isinstance(around, Boxed | Unordered):
        yield
        return
    first = around.token
    with entered(Boxed(first)) as order:
        yield
    if order.box.content is not first:
        around.token = order.token


def token_box():
    """The box of the token, if it is in one."""
    order = order_now()
    return order.box if isinstance(order, Boxed) else None


def check(holds, message) -> None:
    """Fail in a run where a truth value is false; refused where a handler waits for the error."""
    kind = type(message) if isinstance(message, Exception) else AssertionError
    check_raising("this line", kind)
    order = order_now()
    order.token = assert_holds(order.token, holds, message)


def show(parts, values, options) -> None:
    """Print in a run."""
    order = order_now()
    order.token = print_values(order.token, parts, values, options)
