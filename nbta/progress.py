"""Progress bars of loops: a number in shared memory that the loop adds to, and a thread that looks.

A loop does nothing for its bar but ``counter[0] += 1``, which compiled code can do as well: it must
release the GIL to let the thread look. The bar itself is that of tqdm, which is not installed with
nbta.
"""

import importlib
import sys
import threading
from contextlib import contextmanager

import numpy as np

from nbta.errors import FailedPreconditionError, invalid

#: Seconds between two looks.
INTERVAL = 0.1
_showing = threading.local()


def as_label(what, progress) -> str | None:
    """The argument ``progress`` as a description, or None.

    Raises
    ------
    InvalidArgumentError
        For what is neither a truth value nor a string.
    FailedPreconditionError
        Where a bar is asked for and tqdm is missing.
    """
    if progress is None or progress is False:
        return None
    if progress is not True and not isinstance(progress, str):
        message = (
            f"{what}: progress must be True, False, or a string to stand before the bar, not "
            f"{progress!r}"
        )
        raise invalid("progress", message)
    _bar_class()
    return what if progress is True else progress


def _bar_class():
    """The class ``tqdm.tqdm``, without the thread that it would start to watch over bars."""
    try:
        tqdm = importlib.import_module("tqdm")  # by name, as it need not be installed
    except ImportError:
        message = "progress= needs tqdm, which is not installed: pip install tqdm"
        raise FailedPreconditionError(message) from None
    return type("_Bar", (tqdm.tqdm,), {"monitor_interval": 0})


class Bar:
    """A bar that shows how far a loop is; a context, for one loop.

    Parameters
    ----------
    description : str
    total : int, optional
        The number of iterations, where it is known.
    stream : file-like, optional
        By default ``sys.stderr``; where there is none, nothing is shown.
    interval : float
        Seconds between two looks at the counter.

    Attributes
    ----------
    counter : numpy.ndarray
        One int64: the number of iterations that are done. The loop adds to it.

    Notes
    -----
    Nothing is shown before the first look, so that short loops show their end only. After the
    context, whichever way it was left, nothing is printed any more.

    Examples
    --------
    >>> import io
    >>> from nbta.progress import Bar
    >>> shown = io.StringIO()
    >>> with Bar("solving", total=3, stream=shown) as bar:
    ...     for _ in range(3):
    ...         bar.counter[0] += 1
    >>> "solving: 100%" in shown.getvalue()
    True
    """

    def __init__(self, description, total=None, stream=None, interval=INTERVAL):
        self.counter = np.zeros(1, np.int64)
        self._description, self._total, self._interval = description, total, interval
        self._stream = sys.stderr if stream is None else stream
        self._class = None if self._stream is None else _bar_class()
        self._lock, self._ends = threading.Lock(), threading.Event()
        self._thread = self._shown = None

    def __enter__(self):
        if self._class is not None and self._thread is None and not self._ends.is_set():
            self._thread = threading.Thread(target=self._watch, name="nbta bar", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error):
        self.close()

    def _watch(self):
        while not self._ends.wait(self._interval):
            with self._lock:
                if self._ends.is_set() or not self._show():
                    return

    def _show(self):
        """Bring the bar to where the loop is; whether that worked."""
        try:
            if self._shown is None:
                options = {"desc": self._description, "total": self._total, "unit": "iteration"}
                self._shown = self._class(file=self._stream, mininterval=0, **options)
            self._shown.update(int(self.counter[0]) - self._shown.n)
        except (OSError, ValueError):  # a stream that was closed must not end the loop
            self._class = None
        return self._class is not None

    def close(self) -> None:
        """Show the last state, and no more from now on; closing again does nothing."""
        if self._ends.is_set():
            return
        self._ends.set()  # from here on the thread leaves the bar alone
        with self._lock:
            if self._class is not None and self._show():
                self._finish()
        if self._thread is not None:
            self._thread.join()

    def _finish(self):
        try:
            self._shown.close()
        except (OSError, ValueError):
            self._class = None


@contextmanager
def bar(description, total=None, stream=None):
    """A context with the counter for a loop; only the outermost loop of a thread shows a bar."""
    if getattr(_showing, "bar", False):
        yield np.zeros(1, np.int64)
        return
    _showing.bar = True
    try:
        with Bar(description, total, stream) as shown:
            yield shown.counter
    finally:
        _showing.bar = False
