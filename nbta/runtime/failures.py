"""Errors of compiled code: what Numba's typing refuses, and failures of kernels as exceptions.

Numba puts what an overload raises into the middle of some twenty lines of its own. It tells
listeners when it has compiled a function, or failed to: there the sentence is put at the end once
more, after the line of the user's that asked for what there is not. Kernels' failures are raised
as the classes that Python users catch.
"""

import re
import sys
from pathlib import Path

import numba
import numpy as np
from numba.extending import register_jitable

from nbta.errors import NOT_OF_ARRAYS, failure, not_of_arrays
from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.cold_fields import NAME, SUFFIX, cold_points
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.memory import kernel, room
from nbta.runtime.numba_private import TypingError, event
from nbta.runtime.settings import setting
from nbta.runtime.sharing import keep_failure, keep_stray, python_held
from nbta.runtime.store import FIELD, store_at

_TWO_DOTS, _TEXT_WORDS, _TEXT_BYTES = ord(".") | ord(".") << 32, 24, 192


class FailureError(Exception):
    """Compiled code raises it by a status and facts, and what the status stands for arrives.

    One class for all: each ``raise`` with facts is code that LLVM goes over again in each function
    that can fail and in each of a user's.
    """

    def __new__(cls, status, *facts):
        """Give the error itself."""
        return failure(status, *facts)


@kernel
def shape_words(r, first):
    """Rank and dimensions of a shape in a request, for a message."""
    return (
        r[first], r[first + 1], r[first + 2], r[first + 3], r[first + 4],
        r[first + 5], r[first + 6], r[first + 7], r[first + 8],
    )  # fmt: skip


@kernel
def text_words(points):
    """The first 48 code points of a text, two a word, for a message."""
    block = room(_TEXT_BYTES)
    # w[:] = 0 would bring Numba's text for arrays that do not fit
    mem.clear_bytes(block, _TEXT_BYTES)
    w = mem.array_at(block, _TEXT_WORDS, np.int64)
    for k in range(min(len(points), 2 * _TEXT_WORDS)):
        w[k // 2] |= np.int64(points[k]) << np.int64(32 * (k % 2))
    if len(points) > 2 * _TEXT_WORDS:
        w[_TEXT_WORDS - 1] = _TWO_DOTS
    return (
        w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
        w[12], w[13], w[14], w[15], w[16], w[17], w[18], w[19], w[20], w[21], w[22], w[23],
    )  # fmt: skip


@kernel
def keep_for_loop(status, operation, store, r):
    """Keep a failure for the end of the parallel loop that it happened in, if it did in one.

    An array without users is that of one iteration, or of a nogil function beside the loop, which
    nothing here can tell apart: rather one loop too many fails than one too few.
    """
    if store and mem.load_int(store + 8 * FIELD.users):
        if mem.load_int(store + 8 * FIELD.parallel):
            keep_failure(status, operation, store_at(store), r)
    elif setting(settings.LOOPS):
        keep_stray(status, operation, r)


@out_of_line
def raise_failure(status, operation, store, request):
    """Raise what a status stands for; the message is put together when Python sees it.

    In an iteration of a parallel loop, which runs without the interpreter's lock, the failure is
    also kept for the end of the loop.
    """
    stay_out_of_line()
    r = mem.array_at(request, rq.WORDS, np.int64)
    if not python_held():
        keep_for_loop(status, operation, store, r)
    array = mem.load_int(store + 8 * FIELD.id) if store else np.int64(-1)
    slot, expected, got = r[rq.SLOT], r[rq.EXPECTED], r[rq.GOT]
    wanted, given = shape_words(r, rq.OUT_RANK), shape_words(r, rq.RANK)
    points = mem.array_at(0, 0, np.int32)
    name = text_words(cold_points(store_at(store), NAME) if store else points)
    suffix = text_words(cold_points(store_at(store), SUFFIX) if store else points)
    raise FailureError(status, operation, array, slot, expected, got, wanted, given, name, suffix)


@register_jitable
def call_kernel(entry, operation, store, request):
    """Run a kernel; its failure is an exception."""
    status = mem.call_entry(setting(entry), operation, store, request)
    if status != 0:
        raise_failure(status, operation, store, request)


#: What was refused so far, each once; Numba keeps of an overload's error no more than its text.
_said = {}
_LIBRARIES = (str(Path(numba.__file__).parent), str(Path(__file__).parents[1]))


def refusal(sentence: str) -> TypingError:
    """The error to raise for what compiled code cannot do."""
    _said[sentence] = True
    return TypingError(sentence)


def _place(error):
    """File and line of the user's code that an error is about; None where there is none."""
    found = None
    while error is not None:
        loc = getattr(error, "loc", None)
        if loc is not None and not loc.filename.startswith(_LIBRARIES):
            found = f"{loc.filename}:{loc.line}"
        error = error.__cause__
    return found


#: What Numba says of an attribute that arrays do not have; one that they have in part, for typing
#: to refuse, would be there for `hasattr`.
_NO_ATTRIBUTE = re.compile(r"^Unknown attribute '(\w+)' of type nbta\.TensorArray\(", flags=re.M)
#: What Numba says of a variable that is one function of nbta or another: it asks for a common type
#: where none is needed, too.
_NO_COMMON_TYPE = re.compile(r"^Cannot unify nbta\.<.*>, number \d+ and nbta\.<", flags=re.M)
_ONE_FUNCTION = (
    "a variable cannot be one function of nbta or another, as each has a type of its own; call "
    "each in a branch of its own, or go over a tuple of them by literal_unroll (from numba import "
    "literal_unroll)"
)


def _repeat_at_the_end(error):
    text = str(error).rstrip()
    if _NO_COMMON_TYPE.search(text) and _ONE_FUNCTION not in text:
        error.patch_message(f"{text}\n\n{_place(error)}: {_ONE_FUNCTION}")
        return
    if (unknown := _NO_ATTRIBUTE.search(text)) and unknown[1] in NOT_OF_ARRAYS:
        error.patch_message(f"{text}\n\n{_place(error)}: {not_of_arrays(unknown[1])}")
        return
    said = [sentence for sentence in _said if sentence in text]
    if not said:
        return
    first = min(said, key=lambda sentence: (text.index(sentence), -len(sentence)))
    inside = re.search(rf"^\s*(\S.*:\d+): {re.escape(first)}$", text, flags=re.M)
    place = inside[1] if inside else _place(error)  # the line of a function that was called
    if place is None:
        return
    last = f"{place}: {first}"
    if not text.endswith(last):
        error.patch_message(f"{text}\n\n{last}")


class _Compiled(event.Listener):
    def on_start(self, event):
        """Nothing is known yet."""

    def on_end(self, event):
        """Put what was refused at the end of the error, if that is why compiling failed.

        The event has the error too, but no public name for it.
        """
        error = sys.exception()
        if isinstance(error, TypingError):
            _repeat_at_the_end(error)


event.register("numba:compile", _Compiled())
