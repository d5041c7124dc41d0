"""What arrays hold, once what nothing refers to any more has been collected."""

import gc

from numba.core.runtime import rtsys

from nbta.runtime import settings


def live_bytes():
    """Bytes in the buffers of stores.

    Arrays of earlier tests that are parts of circles go when Python looks for such, which may be
    in the middle of a test: so it looks now.
    """
    gc.collect()
    return settings.get(settings.LIVE_BYTES)


def in_use():
    """The same; owners alive by Numba's count; its allocations that were not given back."""
    held = live_bytes()
    stats = rtsys.get_allocation_stats()
    return held, stats.mi_alloc - stats.mi_free, stats.alloc - stats.free
