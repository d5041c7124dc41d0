"""A clock in generated code: what passed since it was last read goes to the place that says so.

On x86-64 it counts ticks of the processor's time stamp counter, and a reading with its additions
takes 3 to 10 ns; elsewhere it counts nanoseconds of ``clock_gettime``, 25 ns.

Words of a clock, after one another: the last reading; the address for the next entry of the list
of readings, and where that list ends; the address of ``clock_gettime`` and two words for its
answer.
"""

import ctypes
import functools
import platform
import sys

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.intrinsics import INT64, call_word, word_at

#: What generated source refers to.
NAMES = ("lap", "system_lap", "start_clock", "start_system_clock")
LAST, NEXT, END, FUNCTION, ANSWER, WORDS = 0, 1, 2, 3, 4, 6
#: Words of a place: time that went to it, and how often. Words of an entry: place, and reading.
PLACE, ENTRY = 2, 2
_MONOTONIC = 6 if sys.platform == "darwin" else 1


def counts_ticks() -> bool:
    """Whether the processor has a counter that user code may read, and LLVM knows how."""
    return platform.machine().lower() in ("x86_64", "amd64")


@functools.cache
def system_clock() -> int:
    """The address of ``clock_gettime``; 0 where the system has none."""
    try:
        found = ctypes.CDLL(None).clock_gettime
    except (AttributeError, OSError, TypeError):  # Windows has neither
        return 0
    return ctypes.cast(found, ctypes.c_void_p).value


def _ticks(builder, words, head):
    function = builder.module.declare_intrinsic(
        "llvm.readcyclecounter", (), ir.FunctionType(INT64, [])
    )
    return builder.call(function, [])


def _nanoseconds(builder, words, head):
    answer = word_at(builder, words, builder.add(head, INT64(ANSWER)))
    where = builder.ptrtoint(answer, INT64)
    function = builder.add(head, INT64(FUNCTION))
    call_word(builder, words, function, [INT64(_MONOTONIC), where])
    seconds, rest = builder.load(answer), builder.load(builder.gep(answer, [INT64(1)]))
    return builder.add(builder.mul(seconds, INT64(10**9)), rest)


def _starting(read):
    @intrinsic
    def start(typingctx, w, head):
        """Read the clock whose words begin at ``head``."""

        def codegen(context, builder, sig, args):
            place = word_at(builder, *args)
            builder.store(read(builder, *args), place)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return start


def _lapping(read):
    @intrinsic
    def lap(typingctx, w, head, place):
        """Read the clock, and let what passed go to the place whose words begin there."""

        def codegen(context, builder, sig, args):
            w, head, number = args
            clock, place = word_at(builder, w, head), word_at(builder, w, number)
            now = read(builder, w, head)
            _increase(builder, place, builder.sub(now, builder.load(clock)))
            _increase(builder, builder.gep(place, [INT64(1)]), INT64(1))
            builder.store(now, clock)
            _enter(builder, clock, number, now)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    return lap


def _increase(builder, place, value):
    builder.store(builder.add(builder.load(place), value), place)


def _enter(builder, clock, number, now):
    """An entry in the list of readings, while there is room."""
    following = builder.gep(clock, [INT64(NEXT)])
    end = builder.load(builder.gep(clock, [INT64(END)]))
    start = builder.load(following)
    with builder.if_then(builder.icmp_signed("<", start, end)):
        entry = builder.inttoptr(start, INT64.as_pointer())
        builder.store(number, entry)
        builder.store(now, builder.gep(entry, [INT64(1)]))
        builder.store(builder.add(start, INT64(8 * ENTRY)), following)


lap, start_clock = _lapping(_ticks), _starting(_ticks)
system_lap, start_system_clock = _lapping(_nanoseconds), _starting(_nanoseconds)
