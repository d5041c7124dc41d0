"""Errors of kernels, raised in compiled code as the classes that Python users catch."""

import numpy as np
from numba.extending import register_jitable

from nbta.errors import (
    REASONS,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
)
from nbta.runtime import memory as mem
from nbta.runtime import request as rq
from nbta.runtime import settings
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.locks import python_held
from nbta.runtime.memory import kernel
from nbta.runtime.settings import setting
from nbta.runtime.sharing import keep_failure, keep_stray
from nbta.runtime.store import FIELD, store_at
from nbta.runtime.vector_code import room

_CLASSES = [
    InvalidArgumentError, ResourceExhaustedError, UnimplementedError, FailedPreconditionError,
    OutOfRangeError,
]  # fmt: skip
_CLASS_OF = tuple(_CLASSES.index(row.error) for row in REASONS)


@kernel
def shape_words(r, first):
    """Rank and extents of a shape in a request, for a message."""
    return (
        r[first], r[first + 1], r[first + 2], r[first + 3], r[first + 4],
        r[first + 5], r[first + 6], r[first + 7], r[first + 8],
    )  # fmt: skip


@kernel
def trail_words(store):
    """What a gradient array's name adds to its forward array's, two code points a word."""
    w = mem.array_at(room(96), 12, np.int64)
    w[:] = 0
    if store:
        trail = store_at(store)._trail
        for k in range(min(len(trail), 24)):
            w[k // 2] |= np.int64(trail[k]) << np.int64(32 * (k % 2))
        if len(trail) > 24:
            w[11] = np.int64(ord(".")) | np.int64(ord(".")) << np.int64(32)
    return w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11]


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
    trail = trail_words(store)
    kind = _CLASS_OF[status]
    if kind == 1:
        raise ResourceExhaustedError(
            status, operation, array, slot, expected, got, wanted, given, trail
        )
    if kind == 2:
        raise UnimplementedError(
            status, operation, array, slot, expected, got, wanted, given, trail
        )
    if kind == 3:
        raise FailedPreconditionError(
            status, operation, array, slot, expected, got, wanted, given, trail
        )
    if kind == 4:
        raise OutOfRangeError(status, operation, array, slot, expected, got, wanted, given, trail)
    raise InvalidArgumentError(status, operation, array, slot, expected, got, wanted, given, trail)


@register_jitable
def call_kernel(entry, operation, store, request):
    """Run a kernel; its failure is an exception."""
    status = mem.call_entry(setting(entry), operation, store, request)
    if status != 0:
        raise_failure(status, operation, store, request)
