"""Compiled programs on several threads: each takes the next part of the work until none is left.

A part is a run of items, and is computed by one thread in the order of its items, which adds up
what is to be added up. Parts do not depend on the number of threads, and whoever folds their sums
does so in their order: the result has bitwise identical results however many threads there are.
"""

import platform

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.accumulation import add_elements
from nbta.runtime.compiled import loaded_once
from nbta.runtime.intrinsics import INTERRUPTED, OK, call, pointer
from nbta.runtime.machine_code import Routine
from nbta.runtime.memory import INT64, add_int, kernel
from nbta.tuning import WATCH_CYCLES

#: Words of the table that all threads share, many of them addresses of int64.
(
    NEXT,  # of the parts in their order, which nobody has taken
    STOP,  # whether nobody is to begin another item
    FAILED,  # the first of the items that failed: nobody is to begin one after it
    PARTS,  # how many
    ORDER,  # part by turn
    STARTS,  # first item by part, and after the last
    PROGRAMS,  # how many
    PROGRAM,  # program by item
    FUNCTION,  # address by program
    WORDS,  # table of words by thread and program
    INPUTS,  # first word for addresses of arrays, by program
    COUNT,  # how many arrays are given
    GIVEN,  # their addresses, by item and array
    RESULTS,  # how many
    NEW,  # address of the array for a result by item and result; 0: none
    SPARE,  # address of an array, and of its elements, by thread, program and result
    SUM,  # address of the elements of a sum, by part and result
    BYTES,  # of a sum, by result
    CODE,  # dtype code of a sum, by result
    STATUS,  # by item
    AFTER,  # function to call after an item that did not go as planned; puts OK in its status
    ENSURE, CHECK, RELEASE,  # functions of Python's C interface, to look at signals
    TABLE,
) = range(25)  # fmt: skip
#: In place of the number of an item that failed.
NONE_FAILED = 2**62
#: In place of the address of an array: what comes is to be added.
ADDED = -1


@intrinsic
def moment(typingctx):
    """A count that goes on with time; 0 where there is none that is read at once."""

    def codegen(context, builder, sig, args):
        if platform.machine() not in ("x86_64", "AMD64"):
            return INT64(0)
        kind = ir.FunctionType(INT64, [])
        counter = builder.module.declare_intrinsic("llvm.readcyclecounter", fnty=kind)
        return builder.call(counter, [])

    return types.int64(), codegen


@kernel
def numbers(address):
    """The int64 at an address."""
    return pointer(types.int64, address, 0)


@kernel
def look_at_signals(t):
    """Whether a signal's handler has raised, in the thread that handlers run in."""
    state = call(t[ENSURE], ())
    raised = call(t[CHECK], ()) & 0xFFFFFFFF
    call(t[RELEASE], (state,))
    return raised != 0


@kernel
def hand_over(t, thread, item, words):
    """Put the addresses of an item's arrays among the words of its program."""
    program = numbers(t[PROGRAM])[item]
    first = numbers(t[INPUTS])[program]
    count = t[COUNT]
    given = numbers(t[GIVEN] + 8 * item * count)
    for k in range(count):
        words[first + k] = given[k]
    results = t[RESULTS]
    new = numbers(t[NEW] + 8 * item * results)
    spare = numbers(t[SPARE] + 16 * (thread * t[PROGRAMS] + program) * results)
    for k in range(results):
        words[first + count + k] = spare[2 * k] if new[k] == ADDED else new[k]


@kernel
def add_up(t, thread, part, item):
    """Add the results of an item to the sums of its part, where they are not in these already."""
    program = numbers(t[PROGRAM])[item]
    results = t[RESULTS]
    new = numbers(t[NEW] + 8 * item * results)
    spare = numbers(t[SPARE] + 16 * (thread * t[PROGRAMS] + program) * results)
    for k in range(results):
        if new[k] == ADDED:
            target = numbers(t[SUM])[part * results + k]
            add_elements(numbers(t[CODE])[k], target, spare[2 * k + 1], numbers(t[BYTES])[k])


@kernel
def run_part(t, thread, part):
    """Compute the items of a part."""
    starts, status = numbers(t[STARTS]), numbers(t[STATUS])
    for item in range(starts[part], starts[part + 1]):
        if t[STOP] != 0 or item > t[FAILED]:
            return
        program = numbers(t[PROGRAM])[item]
        table = numbers(t[WORDS])[thread * t[PROGRAMS] + program]
        hand_over(t, thread, item, numbers(table))
        status[item] = call(numbers(t[FUNCTION])[program], (table,))
        if status[item] == OK:
            add_up(t, thread, part, item)
        elif status[item] == INTERRUPTED or look_at_signals(t):
            t[STOP] = 1
        else:
            call(t[AFTER], (thread, part, item))
            # The status says it, and no result: see `protocol`. Where two threads come at once and
            # the later item stays, some that need not be are computed, and all that must be.
            if status[item] != OK and item < t[FAILED]:
                t[FAILED] = item


def work(thread, table):
    """What one thread does; without the interpreter's lock."""
    t, looked = numbers(table), moment()
    while t[STOP] == 0:
        turn = add_int(table + 8 * NEXT, 1)  # no two threads get the same
        if turn >= t[PARTS]:
            return
        if thread == 0 and (moment() == 0 or moment() - looked > WATCH_CYCLES):
            looked = moment()
            if look_at_signals(t):  # the first thread is the caller's, which sees signals
                t[STOP] = 1
        run_part(t, thread, numbers(t[ORDER])[turn])


@loaded_once
def native():
    """`work` in machine code, compiled or loaded at its first use."""
    return WORK.load().function


WORK = Routine(work, types.void(types.int64, types.int64), {"nogil": True, "error_model": "numpy"})
