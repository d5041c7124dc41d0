"""Functions run by threads at once; a deadlock fails the test."""

import faulthandler
import sys
import threading
from contextlib import contextmanager

#: Seconds that nothing here comes near to, on however slow a machine.
LIMIT = 120


@contextmanager
def watchdog():
    """End the process with all stacks where the body takes too long.

    It needs no interpreter's lock, which a deadlock may hold.
    """
    faulthandler.dump_traceback_later(LIMIT, exit=True, file=sys.__stderr__)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def together(*functions):
    """Call all functions at once, a thread each; what each gave, or the exception it raised."""
    results, ready = [None] * len(functions), threading.Barrier(len(functions))

    def run(number, function):
        ready.wait(LIMIT)
        try:
            results[number] = function()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(functions)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # hand the interpreter's lock over often
    try:
        with watchdog():
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(interval)
    return results


def unexpected(results):
    """The exceptions among the results."""
    return [result for result in results if isinstance(result, Exception)]
