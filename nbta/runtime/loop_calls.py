"""Calls of compiled code around parallel loops, and claims from inside them.

`enter` and `leave` stand around a loop for every array that its body uses, and `report` behind
it: Numba drops what is raised in an iteration, so a failure is kept in its array and raised when
all iterations have ended. Each is overloaded by type; a type whose values hold arrays says so with
an attribute ``used_in_loops``.
"""

import numpy as np
from numba import types
from numba.extending import overload

from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.claims import put_by_claim, take_by_claim
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.extension import LanesType, TensorArrayType, new_request, store_fields
from nbta.runtime.failures import raise_failure
from nbta.runtime.locks import forget_python_error, hold_python, let_python_go, python_held
from nbta.runtime.settings import add_to_setting, change_setting, setting
from nbta.runtime.sharing import kept_failure, stray_failure
from nbta.runtime.store import store_at


def used_in_loops(kind) -> bool:
    """Whether values of a type must be told of the parallel loops that use them."""
    if isinstance(kind, types.BaseTuple):
        return any(used_in_loops(member) for member in kind)
    return getattr(kind, "used_in_loops", False)


@out_of_line
def change_use(operation, store):
    """Tell a store, if any, that a parallel loop begins or has ended.

    This happens with the interpreter's lock held.
    """
    stay_out_of_line()
    words = new_request()
    mem.store_int(words + 8 * rq.INDEX, 1 - python_held())
    python = hold_python()
    begins = operation == rq.ENTER
    if begins and setting(settings.LOOPS) == 0:
        change_setting(settings.STRAY, 0)
    add_to_setting(settings.LOOPS, 1 if begins else -1)
    if store:
        mem.call_entry(setting(settings.STORAGE_ENTRY), operation, store, words)
    let_python_go(python)


@out_of_line
def raise_kept(store):
    """Raise the failure that a loop left in a store, if any, or one of its iterations' arrays."""
    stay_out_of_line()
    words = new_request()
    r = mem.array_at(words, rq.WORDS, np.int64)
    status, operation = stray_failure(r)
    failed = np.int64(0)
    if store and status == 0:
        status, operation, failed = kept_failure(store_at(store), r)
    if status:
        python = hold_python()
        forget_python_error()  # this thread's own iterations may have left one behind
        let_python_go(python)
        raise_failure(status, operation, failed, words)


@out_of_line
def write_in_loop(store, slot, source):
    """Write an element in a parallel loop; False where the kernels must see to it."""
    stay_out_of_line()
    return put_by_claim(store, slot, source)


@out_of_line
def read_in_loop(store, slot):
    """Mark a slot as read in a parallel loop; False where the kernels must see to it."""
    stay_out_of_line()
    return take_by_claim(store, slot)


def _around_loops(name, act, act_alone):
    """A function for all types that are `used_in_loops`; tuples pass it on to their members.

    None stands for a loop that only uses arrays of its iterations; so do lanes, each of which is
    one iteration's.
    """

    def function(value):
        raise NotImplementedError(f"{name}: compiled code only")

    function.__name__ = name

    @overload(function)
    def implement(value):
        if isinstance(value, TensorArrayType):
            return act
        if isinstance(value, types.NoneType | LanesType):
            return act_alone
        if not isinstance(value, types.BaseTuple):
            return None
        if len(value) == 0 or not used_in_loops(value):
            return lambda value: None

        def members(value):
            function(value[0])
            function(value[1:])

        return members if used_in_loops(value[0]) else lambda value: function(value[1:])

    return function


enter = _around_loops(
    "enter",
    lambda value: change_use(rq.ENTER, store_fields(value)),
    lambda value: change_use(rq.ENTER, 0),
)
leave = _around_loops(
    "leave",
    lambda value: change_use(rq.LEAVE, store_fields(value)),
    lambda value: change_use(rq.LEAVE, 0),
)
report = _around_loops(
    "report",
    lambda value: raise_kept(store_fields(value)),
    lambda value: raise_kept(0),
)
