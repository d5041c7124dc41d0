"""Calls of compiled programs by users' compiled code, which hold no lock of Python's.

A call has a *request*, a block of words on the caller's stack: what stands for each array that is
given or wanted, as programs take them (`nbta.runtime.intrinsics.array_in`), and their dimensions.
An *entry* knows the *records* of one function and one kind of arguments. A record has a program
with the lengths that it is for, what it counts on (guards: a word of memory each, and what it must
hold), and slots with a workspace for each thread at work.

What no record is for, and what a program refuses, is left to Python: the entry has the address of
a function that makes a record, or computes the results, or keeps the error.
"""

import ctypes
import itertools

import numpy as np
from numba import types

from nbta.errors import InvalidArgumentError
from nbta.runtime import settings
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.intrinsics import INTERRUPTED, OK, RESIZED, call, pointer
from nbta.runtime.machine_code import Routine
from nbta.runtime.memory import (
    ARRAY_DATA,
    ARRAY_DIMENSIONS,
    ARRAY_FLAGS,
    ARRAY_RANK,
    kernel,
    publish_int,
    seen_int,
    swap_int,
)
from nbta.runtime.parallel import moment
from nbta.runtime.settings import setting
from nbta.runtime.sharing import hold_python, let_python_go
from nbta.tuning import UNTIMED_CALLS, WATCH_CYCLES, WORKSPACES

#: Words of a request, before what stands for arrays: the slot that the call holds, or 0; its
#: record; what Python answered; the number of the error that was kept; how often Python was asked;
#: and three for an exception that was set when Python was asked.
SLOT, RECORD, ANSWER, ERROR, ATTEMPTS, RAISED, FIRST = *range(6), 8
#: Words that stand for an array, by where its Python object has them.
ARRAY = 7
DATA, RANK, DIMENSIONS, FLAGS = (
    n // 8 for n in (ARRAY_DATA, ARRAY_RANK, ARRAY_DIMENSIONS, ARRAY_FLAGS)
)
#: Words of an entry: the addresses of the steps of a call; its first record, or 0; the address of
#: what asks Python; how many arrays are given, and wanted; how many conditions there are, and
#: dimensions of results; and the addresses of the numbers of parallel loops that use the function
#: now, and that use any function; and of what the process says where it must end.
(
    BEGIN, RUN, END, RECORDS, ASK, GIVEN, WANTED, CONDITIONS, RESULTS, LOOPS, ANY, LAST_WORDS,
    ENTRY,
) = range(13)  # fmt: skip
#: Words of a record: the next one, or 0; the program's address; how many guards, how many more that
#: are looked at with the interpreter's lock, and where they are, with an address and a word each,
#: of which each is read only where all before are as they were; slots; for each condition the least
#: number and how far up it may go, unsigned; for each dimension of a result which condition's
#: number it is, or -1, and the last that there was; arrays from outside, how many and their
#: objects; the word where the program finds its arrays; for each result the word of its buffer, or
#: -1, and of its dimensions.
(
    NEXT, PROGRAM, GUARDS, LOCKED, GUARD, SLOTS, BOUNDS, SOURCES, HINTS, OUTSIDE, ARRAYS, PLACE,
    BUFFERS, LENGTHS, RECORD_WORDS,
) = range(15)  # fmt: skip
#: Words of a slot, which has a line of the processor's cache: whether it is in use, the address of
#: the workspace's words or 0, whether Python must look after the workspace, how many calls there
#: were, and when one looked at signals last.
BUSY, WORDS, CARE, CALLS, LOOKED = range(5)
SLOT_BYTES = 64
#: Slots that a thread tries.
TRIES = 8
#: What a step of a call gives: the results are there; go on with them; begin again; an error was
#: kept; the results are elsewhere, where the request says.
DONE, READY, AGAIN, RAISE, ELSEWHERE = range(5)
#: Why Python is asked, besides by the status of a program: there is no record; no workspace; none
#: is free; what the function reads from outside may have changed; results were taken; a workspace
#: is too large.
NEW, EMPTY, FULL, CHANGED, TAKEN, LARGE = range(-1, -7, -1)

thread_state = types.ExternalFunction("PyGILState_GetThisThreadState", types.intp())
end_process = types.ExternalFunction("Py_FatalError", types.void(types.intp))
check_signals = types.ExternalFunction("PyErr_CheckSignals", types.int32())
#: Take the error of a thread, and give it back.
take_error = types.ExternalFunction("PyErr_Fetch", types.void(types.intp, types.intp, types.intp))

give_error = types.ExternalFunction("PyErr_Restore", types.void(types.intp, types.intp, types.intp))


@kernel
def words(address):
    """The int64 at an address."""
    return pointer(types.int64, address, 0)


@kernel
def fitting(entry, request):
    """The first record that is for the lengths of a call; 0 for none."""
    e = words(entry)
    given = words(request + 8 * (FIRST + ARRAY * (e[GIVEN] + e[WANTED])))
    record = e[RECORDS]
    while record != 0:
        bounds, fits = words(words(record)[BOUNDS]), True
        for k in range(e[CONDITIONS]):
            above = np.uint64(given[k] - bounds[2 * k])  # what is below is far above
            fits = fits and above <= np.uint64(bounds[2 * k + 1])
        if fits:
            return record
        record = words(record)[NEXT]
    return record


@kernel
def free_slot(record, request):
    """A slot of a record that nobody uses; 0 for none. Each thread has one of its own, mostly."""
    # Stacks of threads are 2 MB apart at least, and the request is on one.
    start = ((request >> 21) * 40503) >> 4
    for k in range(TRIES):
        slot = words(record)[SLOTS] + SLOT_BYTES * ((start + k) & (WORKSPACES - 1))
        if seen_int(slot) == 0 and swap_int(slot, 0, 1):
            return slot
    return 0


@kernel
def is_unchanged(entry, record):
    """Whether all is as a record counts on."""
    r = words(record)
    if not are_alike(words(r[GUARD]), 0, r[GUARDS]):
        return False
    return r[LOCKED] == 0 or are_lists_alike(entry, record)


@kernel
def are_alike(guards, first, count):
    """Whether words are what some guards say."""
    for k in range(first, first + count):  # noqa: SIM110 - compiled code has no `all`
        if seen_int(guards[2 * k]) != guards[2 * k + 1]:
            return False
    return True


@kernel
def are_lists_alike(entry, record):
    """Whether items of lists are as a record counts on: where these lie changes as lists grow."""
    if is_stray(entry):
        return False
    r = words(record)
    python = hold_python()
    found = are_alike(words(r[GUARD]), r[GUARDS], r[LOCKED])
    let_python_go(python)
    return found


@kernel
def hand_over(entry, record, request, w):
    """Say in a workspace where the arrays of a call are, and in the request their dimensions."""
    e, r = words(entry), words(record)
    head = setting(settings.OBJECT_HEAD)
    place, first = words(w + 8 * r[PLACE]), request + 8 * FIRST - head
    for k in range(e[GIVEN]):
        place[k] = first + 8 * ARRAY * k
    arrays = words(r[ARRAYS])
    for k in range(r[OUTSIDE]):
        place[e[GIVEN] + k] = arrays[k]
    first += 8 * ARRAY * e[GIVEN]
    place = words(w + 8 * (r[PLACE] + e[GIVEN] + r[OUTSIDE]))
    for k in range(e[WANTED]):
        place[k] = first + 8 * ARRAY * k
    given = words(first + head + 8 * ARRAY * e[WANTED])
    sources, hints = words(r[SOURCES]), words(r[HINTS])
    for k in range(e[RESULTS]):
        source = sources[k]
        given[e[CONDITIONS] + k] = given[source] if source >= 0 else hints[k]


@kernel
def is_stray(entry):
    """Whether a thread must not wait for Python.

    One that Python does not know is that of a parallel loop. Where no loop said that it began, its
    caller may hold the interpreter's lock until this thread is done.
    """
    e = words(entry)
    return thread_state() == 0 and words(e[LOOPS])[0] == 0 and words(e[ANY])[0] == 0


@kernel
def ask(entry, record, request, reason):
    """What Python makes of a call.

    Numba drops what is raised where a loop has told nothing, and its results would be wrong.
    """
    e, r = words(entry), words(request)
    if is_stray(entry):
        end_process(e[LAST_WORDS])
    # Python runs with no exception set. One may be: that of a signal's handler, or of an earlier
    # item of a loop that Numba goes on with, as those of `vectorize`.
    python, place = hold_python(), request + 8 * RAISED
    take_error(place, place + 8, place + 16)
    # Where a signal's handler raises ahead of the first line there, there is no answer.
    r[ANSWER] = AGAIN
    call(e[ASK], (request, record, reason))
    if reason != INTERRUPTED:
        give_error(r[RAISED], r[RAISED + 1], r[RAISED + 2])
    let_python_go(python)
    return seen_int(request + 8 * ANSWER)


@kernel
def is_interrupted(slot):
    """Whether a signal's handler has raised, of which long loops of short calls ask now and then.

    Handlers run in a thread that Python knows.
    """
    s = words(slot)
    s[CALLS] += 1
    if s[CALLS] & UNTIMED_CALLS != 0 or thread_state() == 0:
        return False
    now = moment()
    if now != 0 and now - s[LOOKED] < WATCH_CYCLES:
        return False
    s[LOOKED] = now
    python = hold_python()
    raised = check_signals()
    let_python_go(python)
    return raised != 0


def begin_call(entry, request):
    """Find what computes the results of a call, and say which dimensions these have."""
    r = words(request)
    while True:
        slot = record = fitting(entry, request)
        reason = NEW
        if record != 0:
            slot = free_slot(record, request)
            reason = FULL
        if slot != 0:
            w = words(slot)[WORDS]
            reason = EMPTY
            if w != 0:
                reason = CHANGED
                if is_interrupted(slot):
                    reason = INTERRUPTED
                elif is_unchanged(entry, record):
                    hand_over(entry, record, request, w)
                    r[SLOT], r[RECORD] = slot, record
                    return READY
            r[SLOT] = slot
        code = ask(entry, record, request, reason)
        if slot != 0:
            publish_int(slot, 0)
        r[SLOT] = 0
        if code != AGAIN:
            return code


def run_call(entry, request):
    """Compute the results of a call, for which there are arrays now."""
    r = words(request)
    slot, record = r[SLOT], r[RECORD]
    s, program = words(slot), words(record)
    status = call(program[PROGRAM], (s[WORDS],))
    if status == RESIZED:
        tell_results(entry, record, request, s[WORDS])
        return ELSEWHERE
    if s[CARE] != 0:
        ask(entry, record, request, LARGE)
    publish_int(slot, 0)
    r[SLOT] = 0
    return DONE if status == OK else ask(entry, record, request, status)


@kernel
def tell_results(entry, record, request, w):
    """Say in a request where a program left its results, and remember their dimensions."""
    e, r, w = words(entry), words(record), words(w)
    first = request + 8 * (FIRST + ARRAY * e[GIVEN])
    dimensions = words(first + 8 * (ARRAY * e[WANTED] + e[CONDITIONS]))
    buffers, lengths, hints = words(r[BUFFERS]), words(r[LENGTHS]), words(r[HINTS])
    for k in range(e[WANTED]):
        if buffers[k] >= 0:
            words(first + 8 * ARRAY * k)[DATA] = w[buffers[k]]
    for k in range(e[RESULTS]):
        dimensions[k] = hints[k] = w[lengths[k]]


def end_call(entry, request):
    """Results that were elsewhere have been taken from there."""
    r = words(request)
    if r[SLOT] == 0:
        return ask(entry, r[RECORD], request, TAKEN)
    publish_int(r[SLOT], 0)
    return 0


_OPTIONS = {"nogil": True, "error_model": "numpy"}
ROUTINES = {
    f.__name__: Routine(f, types.int64(types.int64, types.int64), _OPTIONS)
    for f in (begin_call, run_call, end_call)
}
_loaded = {}


def address(name: str) -> int:
    """The address of a step of a call, loaded or compiled at its first use."""
    if name not in _loaded:
        _loaded[name] = ROUTINES[name].load()
    return _loaded[name].address


# Errors.


class _Kept:
    """Errors that were raised in Python, on their way through compiled code, by number."""

    def __init__(self):
        self._errors, self._numbers = {}, itertools.count(1)

    def keep(self, error: BaseException) -> int:
        """The number of an error from now on; those that nobody takes are dropped in the end."""
        number = next(self._numbers)
        self._errors[number] = [error]
        self._errors.pop(number - WORKSPACES, None)
        return number

    def take(self, number: int) -> BaseException:
        """The error of a number, which Numba makes twice: to look at it, and to raise it."""
        found = self._errors.get(number)
        if found is None:
            return RuntimeError(_LOST)
        found.append(found[0])
        if len(found) > 2:
            self._errors.pop(number, None)
        return found[0]


_LOST = "an error of a call in compiled code is lost, as many others came after it"
#: What a process says where a thread needs Python and must not wait for it.
LAST_WORDS_TEXT = ctypes.create_string_buffer(
    b"nbta: a function of nbta needs Python in a parallel loop that Numba made by itself: of an "
    b"array expression, a stencil, or a function of vectorize with target='parallel'. Numba drops "
    b"errors there, and results would be wrong. Call it in a loop over numba.prange"
)
kept = _Kept()


class KeptError(Exception):
    """Compiled code raises it by its number, and what was kept arrives."""

    def __new__(cls, number):
        """Give the error itself."""
        return kept.take(number)


@out_of_line
def raise_kept(number):
    """Raise an error that was kept."""
    stay_out_of_line()
    raise KeptError(number)


#: What is wrong with arrays that a caller gives for results.
OTHER_SHAPE, SHARED = 1, 2


@out_of_line
def raise_misfit(what):
    """Raise what is wrong with arrays that a caller gives for results."""
    stay_out_of_line()
    if what == OTHER_SHAPE:
        raise InvalidArgumentError("out: it has another shape than the gradient; give one like it")
    raise InvalidArgumentError("out: its arrays share memory; give one for each")


@out_of_line
def raise_memory():
    """Raise what there is where no memory is left for a result."""
    stay_out_of_line()
    raise MemoryError("there is no memory for a result")
