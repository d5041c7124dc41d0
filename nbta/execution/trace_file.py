"""Files in the Trace Event Format, which Perfetto, chrome://tracing and speedscope show.

The format: "Trace Event Format", the Chromium project's document on the JSON that its trace viewer
reads. A file is an object with a list of events. An event has a phase (``ph``): X is something with
a begin and a duration, i an instant, C a counter's value, s and f the ends of an arrow, M a name.
Times are microseconds.
"""

import gzip
import io
import json
import os
import time
import warnings

from nbta.errors import invalid

#: Events that wait in memory, to be written together.
WAITING = 2000


class TraceFile:
    """Writes events as they come; a context.

    Parameters
    ----------
    file : path or text file
        A path that ends with ``.gz`` is compressed. A file stays open.
    what : str
        What errors call it.

    Attributes
    ----------
    notes : dict
        What else the file says at its end.

    Raises
    ------
    InvalidArgumentError
        For what is neither a path nor a text file.
    OSError
        Where the file cannot be written. What fails later is a warning, as results are worth more.
    """

    def __init__(self, file, what="run: trace"):
        self._what, self.notes = what, {}
        self._stream, self._ours = _opened(file, what)
        self._waiting, self._threads, self._first = [], set(), True
        self._pid, self._zero = os.getpid(), time.perf_counter_ns()
        self._arrows = 0
        self._write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        self._add("M", "process_name", None, None, args={"name": "nbta"})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def name_thread(self, thread: int, name: str) -> None:
        """Say what is to be read in front of a thread's row; rows are in the order of this."""
        if thread not in self._threads:
            place = {"sort_index": len(self._threads)}
            self._threads.add(thread)
            self._add("M", "thread_name", None, thread, args={"name": name})
            self._add("M", "thread_sort_index", None, thread, args=place)

    def complete(self, name, category, begin, end, thread, args) -> None:
        """Something that lasted, in nanoseconds as of `time.perf_counter_ns`."""
        self._add("X", name, begin, thread, cat=category, dur=(end - begin) / 1000, args=args)

    def instant(self, name, category, at, thread, args) -> None:
        """Something that happened at one time."""
        self._add("i", name, at, thread, cat=category, s="p", args=args)

    def counter(self, name, at, values) -> None:
        """What a counter has from now on."""
        self._add("C", name, at, None, args=values)

    def arrow(self, name, begin, end, to, thread) -> None:
        """An arrow from what went on between two times to what began at another."""
        self._arrows += 1
        inside = max(begin, end - 1)  # what begins at once behind it is another event
        self._add("s", name, inside, thread, cat="flow", id=self._arrows)
        self._add("f", name, to, thread, cat="flow", id=self._arrows, bp="e")

    def _add(self, phase, name, at, thread, **more):
        event = {"ph": phase, "name": name, "pid": self._pid, "tid": thread or 0, **more}
        if at is not None:
            event["ts"] = (at - self._zero) / 1000
        self._waiting.append(event)

    @property
    def is_full(self) -> bool:
        """Whether it is time to `flush`."""
        return len(self._waiting) >= WAITING

    def flush(self) -> None:
        """Write what waits."""
        lines = ",\n".join(map(json.dumps, self._waiting))
        self._waiting.clear()
        self._write(lines if self._first else f",\n{lines}" if lines else "")
        self._first = False

    def close(self) -> None:
        """Write the rest; the file is whole then."""
        if self._stream is None:
            return
        self.flush()
        self._write(f'\n], "otherData": {json.dumps(self.notes)}}}\n')
        stream, self._stream = self._stream, None
        if stream is not None:
            self._try(stream.close if self._ours else stream.flush)

    def _write(self, text):
        if self._stream is not None:
            self._try(self._stream.write, text)

    def _try(self, act, *text):
        """Do something to the file, which is given up where that fails."""
        try:
            act(*text)
        except (OSError, ValueError) as error:  # such as a full disk, or a file that was closed
            self._stream = None
            message = f"{self._what}: the file was given up: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def _opened(file, what):
    """A stream for text, and whether we close it."""
    if hasattr(file, "write"):
        _check_text(file, what)
        return file, False
    try:
        path = os.fspath(file)
    except TypeError:
        message = f"{what}: it must be a path or an open text file, not {file!r}"
        raise invalid("file", message) from None
    try:
        if os.fsdecode(path).endswith(".gz"):
            return io.TextIOWrapper(gzip.open(path, "wb"), encoding="ascii"), True
        return open(path, "w", encoding="ascii"), True
    except OSError as error:
        message = f"{what}: the file cannot be written ({error.strerror}); nothing was run"
        raise OSError(error.errno, message, path) from None


def _check_text(file, what):
    try:
        file.write("")
    except TypeError:
        message = f"{what}: {file!r} takes bytes; open it for text, with mode 'w'"
        raise invalid("file", message) from None
    except ValueError as error:  # closed, or open for reading only
        raise invalid("file", f"{what}: {file!r} cannot be written: {error}") from None
