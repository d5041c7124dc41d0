"""Processes take turns at compiling what a folder keeps: one compiles, the others wait and load it.

Two hundred processes that start together on an empty cache would each compile the same, which
takes 15 s of a processor and 270 MB, where loading takes 0.2 s and 40 MB.
"""

import contextlib
import os
import time

try:
    import fcntl
except ImportError:  # Windows: every process compiles for itself
    fcntl = None

#: Seconds after which a process no longer waits: who has the turn may be stopped, or far away.
PATIENCE = 600.0
#: Seconds between two looks, at most: 200 processes that wait take 2% of a processor.
_PAUSE = 0.2
#: Folders whose turn this process has.
_ours = set()


@contextlib.contextmanager
def turn(folder):
    """Have the turn for a folder; without one where the system has no locks for it.

    The lock is on the folder itself, so that no file is left over, and goes with its process.
    Whoever calls this holds Numba's compiler lock, so that one thread at a time comes here.
    """
    folder = os.path.abspath(folder)
    if fcntl is None or folder in _ours:  # what is compiled on the way to something else
        yield
        return
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, descriptor)
            if _wait(descriptor):
                stack.callback(fcntl.flock, descriptor, fcntl.LOCK_UN)  # a fork may share it
        _ours.add(folder)
        stack.callback(_ours.discard, folder)
        yield


def _wait(descriptor) -> bool:
    """Whether the lock came before the patience ended."""
    end, pause = time.monotonic() + PATIENCE, _PAUSE / 64
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() > end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, _PAUSE)
