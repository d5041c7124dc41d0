"""A line on standard error where compiling makes somebody wait, so that nobody thinks it hangs.

``NBTA_VERBOSE`` says when: 1 always, 0 never; otherwise in terminals and notebooks.
"""

import os
import sys
import threading
from contextlib import contextmanager, suppress

from nbta.tuning import TOLD_SECONDS

_waiting = threading.local()


@contextmanager
def told(what: str):
    """Say what takes so long, once it does; within another such context only that one does.

    Examples
    --------
    >>> from nbta.runtime.waiting import told
    >>> with told("counting to a thousand"):
    ...     sum(range(1001))
    500500
    """
    if getattr(_waiting, "told", False) or not _is_wanted():
        yield
        return
    _waiting.told, timer = True, threading.Timer(TOLD_SECONDS, _tell, (what,))
    timer.daemon = True  # who ends the program need not wait for it
    timer.start()
    try:
        yield
    finally:
        _waiting.told = False
        timer.cancel()


def _is_wanted():
    choice = os.environ.get("NBTA_VERBOSE", "")
    if choice or sys.stderr is None:
        return choice not in ("", "0")
    return "ipykernel" in sys.modules or getattr(sys.stderr, "isatty", bool)()


def _tell(what):
    with suppress(OSError, ValueError, AttributeError):  # a stream that is closed, or none
        print(f"nbta: {what} (NBTA_VERBOSE=0 leaves this out)", file=sys.stderr, flush=True)
