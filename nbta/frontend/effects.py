"""What a traced function does beside computing, in the order in which Python would do it.

A token is handed from one assertion or print to the next. It is in a wrapper like any other, so
that loops and branches carry it. What the function gives waits for the last one.
"""

from __future__ import annotations

from contextlib import contextmanager

from nbta.errors import invalid
from nbta.frontend.array_wrappers import ArrayWrapper, Frame
from nbta.frontend.awaited import is_repeated, look_for_missed
from nbta.frontend.lists import CHANGED
from nbta.frontend.problems import here
from nbta.frontend.tries import awaited, uncaught
from nbta.graph.graph import current
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


def early(what, make, is_early=None):
    """What ``make()`` gives, refused where the run may end before, if it changes something.

    Python would compute the items of an iterator when it comes to them; here they are computed
    before.
    """
    if current() is None:
        return make()
    found, place = acting(make)
    if place is not None and (is_early is None or is_early(found)):
        refuse_early(what, place)
    return found


def acting(make):
    """What ``make()`` gives, and where it is called if it changes something, else None."""
    try:
        with Frame() as frame:
            found = make()
    except CHANGED:  # of a list that is to grow in a block, as this is none
        return make(), here()
    frame.keep()
    return found, here() if frame.has_acted(but=token_wrapper()) else None


def refuse_early(what, place):
    """Refuse changes that only a run should make which comes to an item."""
    raise invalid(
        "effect",
        f"{place}: only the run knows whether {what} comes to an item, and computing the item "
        f"changes something; write a loop over indices that ends by break",
    )


def check(holds, message, what="this line") -> None:
    """Fail in a run where a truth value is false, once.

    Where a handler waits for the error, that of the run says that it does not catch it.
    """
    kind = type(message) if isinstance(message, Exception) else AssertionError
    caught = awaited(kind)
    check_uncaught(holds, message if caught is None else uncaught(what, caught))


def check_for_handlers(holds, what, *errors) -> None:
    """Fail in a run where ``holds()`` is false, if a handler waits for what Python raises there."""
    caught = awaited(*errors)
    if caught is not None:
        check_uncaught(holds(), uncaught(what, caught))


def check_uncaught(holds, message) -> None:
    """Fail in a run where a truth value is false, whatever handlers wait for."""
    if is_repeated():
        return
    order = order_now()
    order.token = assert_holds(order.token, holds, message)


def show(parts, values, options, by) -> None:
    """Let a run print parts, or call another function ``by`` with them."""
    order = order_now()
    order.token = print_values(order.token, parts, values, options, by)
