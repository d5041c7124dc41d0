"""Memory of dropped arrays, which the next arrays take.

The first write to a fresh page costs a fault, and the system fills the page with zeros: a loop that
makes, fills and drops arrays of 8 MiB waited for that as long as for all its writes. So memory
whose last user is gone stays mapped, up to `POOL_LIMIT` bytes that may have been touched; that of
the C library from `POOLED` bytes on, as it returns the end of its heap in such loops. The system
may take what is in long buffers back when it needs memory, without asking
(``MADV_FREE``); `nbta.trim` returns everything.

A table of a few places is in the settings block. Finalizers run in any thread, with or without the
interpreter's lock, so a place changes hands by one atomic step: whoever makes it BUSY has it alone,
and nobody waits. A child of a fork has the places as they were; one that was BUSY it forgets.
"""

import numpy as np

from nbta.runtime import memory as mem
from nbta.runtime import settings
from nbta.runtime.memory import kernel, publish_int, seen_int, swap_int
from nbta.runtime.settings import (
    POOL_AGE,
    POOL_BASE,
    POOL_BUSY,
    POOL_EMPTY,
    POOL_FULL,
    POOL_KIND,
    POOL_NONZERO,
    POOL_PLACE,
    POOL_TABLE,
    POOL_TOTAL,
    POOL_TOUCHED,
    add_to_setting,
    setting,
    setting_address,
)
from nbta.tuning import LAZY_FREE, POOL_PLACES, POOL_SLACK

#: Kinds: mapped pages, mapped pages to grow into, memory of the C library.
PAGES, RESERVE, LIBRARY = range(3)

_MADV_FREE = 8


@kernel
def _place(k):
    """Address of a place."""
    return setting_address() + 8 * (np.int64(POOL_TABLE) + k * np.int64(POOL_PLACE))


@kernel
def _words(place):
    return mem.array_at(place, POOL_PLACE, np.int64)


@kernel
def _seize(place, state):
    """Whether this call, and not another thread's, may use a place that is in a state."""
    return seen_int(place) == state and swap_int(place, state, POOL_BUSY)


@kernel
def _empty(place):
    """Return the memory in a place to the system; how many bytes were touched at most."""
    if not _seize(place, POOL_FULL):
        return 0
    words = _words(place)
    touched = words[POOL_TOUCHED]
    if words[POOL_KIND] == LIBRARY:
        mem.libc_free(words[POOL_BASE])
    else:
        mem.libc_munmap(words[POOL_BASE], words[POOL_TOTAL])
    add_to_setting(settings.POOL_BYTES, -touched)
    publish_int(place, POOL_EMPTY)
    return touched


@kernel
def empty_pool():
    """Return all that the pool holds to the system; how many bytes were touched at most."""
    total = 0
    for k in range(POOL_PLACES):
        total += _empty(_place(k))
    return total


@kernel
def _oldest():
    """The place that was filled first; 0 for none."""
    found, first = 0, np.int64(0)
    for k in range(POOL_PLACES):
        place = _place(k)
        if seen_int(place) == POOL_FULL:
            age = _words(place)[POOL_AGE]
            if found == 0 or age < first:
                found, first = place, age
    return found


@kernel
def put_in_pool(base, total, touched, nonzero, kind):
    """Take over memory whose last user is gone; False where the caller must free it.

    Of its bytes only the first ``touched`` are in memory, and only the first ``nonzero`` may be
    other than 0. Memory to grow into is not charged to the process before it is touched.
    """
    limit = setting(settings.POOL_LIMIT)
    if touched > limit:
        return False
    held = add_to_setting(settings.POOL_BYTES, touched) + touched
    for _ in range(POOL_PLACES):
        if held <= limit:
            break
        place = _oldest()
        if place:
            _empty(place)
        held = setting(settings.POOL_BYTES)
    for _ in range(2 if held <= limit else 0):
        for k in range(POOL_PLACES):
            place = _place(k)
            if _seize(place, POOL_EMPTY):
                if touched >= LAZY_FREE and kind != LIBRARY:
                    mem.libc_madvise(base, min(touched, total), np.int32(_MADV_FREE))
                words = _words(place)
                words[POOL_BASE], words[POOL_TOTAL] = base, total
                words[POOL_TOUCHED], words[POOL_NONZERO] = touched, nonzero
                words[POOL_KIND] = kind
                words[POOL_AGE] = add_to_setting(settings.POOL_CLOCK, 1)
                publish_int(place, POOL_FULL)
                return True
        place = _oldest()
        if place:
            _empty(place)
    add_to_setting(settings.POOL_BYTES, -touched)
    return False


@kernel
def _fits(words, total, kind):
    """Whether memory in the pool is what is asked for, without wasting much."""
    if words[POOL_KIND] != kind or words[POOL_TOTAL] < total:
        return False
    return kind == RESERVE or words[POOL_TOTAL] - total <= total // POOL_SLACK


@kernel
def take_from_pool(total, kind):
    """Memory of at least so many bytes: base, total, touched and nonzero; base 0 for none."""
    found, least = 0, np.int64(0)
    for k in range(POOL_PLACES):
        place = _place(k)
        if seen_int(place) == POOL_FULL and _fits(_words(place), total, kind):
            # Any room to grow into will do: the least touched leaves most to others.
            size = _words(place)[POOL_TOUCHED if kind == RESERVE else POOL_TOTAL]
            if found == 0 or size < least:
                found, least = place, size
    if found and _seize(found, POOL_FULL):
        words = _words(found)
        if _fits(words, total, kind):
            base, bytes_there = words[POOL_BASE], words[POOL_TOTAL]
            touched, nonzero = words[POOL_TOUCHED], words[POOL_NONZERO]
            add_to_setting(settings.POOL_BYTES, -touched)
            publish_int(found, POOL_EMPTY)
            return base, bytes_there, touched, nonzero
        publish_int(found, POOL_FULL)
    return 0, total, 0, 0
