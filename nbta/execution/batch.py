"""Runs of programs for many items, on several threads, with sums that do not depend on these.

Items are cut into parts, which depend on their number alone. A part is computed by one thread, in
order, and so are its sums; the sums of parts are added in the order of parts. So the number of
threads, and which of them took what, changes no bit.
"""

import ctypes
import os
import threading
from typing import Any, NamedTuple

import numba
import numpy as np

from nbta.execution.crew import Crew
from nbta.execution.results import Column, Total, is_half
from nbta.graph.graph import at_once
from nbta.ops.bodies import note
from nbta.runtime import parallel as rt
from nbta.runtime import protocol as status

#: Into how many parts items are cut, at most; and how many bytes the sums of all parts may have
#: before there are fewer, down to some.
MOST, FEWEST, LARGEST = 64, 16, 1 << 28


class Job(NamedTuple):
    """An item: the runner that computes its results, from which arrays, and of what kind it is.

    Items of the same kind have the same runner, and arrays of the same dtypes and shapes.
    """

    runner: Any
    given: list
    kind: Any


def run_batch(jobs, sums, compiled="auto", threads=None) -> list:
    """Results of many items.

    Parameters
    ----------
    jobs : list of Job
        At least one; all give as many results.
    sums : list of (shape, dtype) or None
        For each result its shape and dtype if it is to be added up, where it has the same for all
        items; else None.
    compiled : {"auto", True, False}
    threads : int, optional
        How many threads may take part; by default as many as Numba would use.

    Returns
    -------
    list
        For each result the sum; or the values of all items, stacked where they have one shape, else
        a list.

    Raises
    ------
    Exception
        What the first item that fails raises, with its number.
    """
    with at_once(), np.errstate(all="ignore"):
        functions = _functions(jobs, sums, compiled)
        how = compiled if functions is None else True
        batch = _Batch(lambda job: job.runner.run(job.given, how)[0], jobs, sums)
        if functions is None:
            batch.one_by_one()
        else:
            batch.on_threads(functions, threads)
    return batch.results()


def one_by_one(compute, items, sums) -> list:
    """`run_batch` in order on this thread, for a function that gives the results of an item."""
    batch = _Batch(compute, items, sums)
    batch.one_by_one()
    return batch.results()


class _Batch:
    def __init__(self, compute, items, sums):
        self._compute, self._items, self._starts = compute, items, _starts(len(items), sums)
        parts = len(self._starts) - 1
        self._sinks = [Column(len(items)) if s is None else Total(parts, *s) for s in sums]
        self._errors: dict[int, BaseException] = {}

    def results(self):
        """What all items gave, or the error of the first that failed."""
        if self._errors:
            item = min(self._errors)
            note(self._errors[item], f"(item {item} of the batch)")
            raise self._errors[item]
        return [sink.value() for sink in self._sinks]

    def one_by_one(self):
        """Compute the items in order, until one fails."""
        for part, (first, end) in enumerate(zip(self._starts, self._starts[1:], strict=False)):
            for item in range(first, end):
                self._alone(part, item)
                if self._errors:
                    return

    def _alone(self, part, item):
        """Compute an item by a run of its own."""
        try:
            self._keep(part, item, self._compute(self._items[item]))
        except Exception as error:
            self._errors[item] = error

    def _keep(self, part, item, values):
        for sink, value in zip(self._sinks, values, strict=True):
            sink.keep(part, item, item == self._starts[part], value)

    def on_threads(self, functions, threads):
        """Compute the items on several threads; those behind one that fails, too."""
        threads = _number_of(threads, len(self._starts) - 1)
        given = [job.given for job in self._items]
        crew = Crew(given, functions, self._starts, self._sinks, threads)

        @_AFTER
        def after(thread, part, item):
            try:
                if crew.status[item] == status.RESIZED:
                    self._keep(part, item, crew.resized(thread, part, item))
                else:
                    self._alone(part, item)  # the reference executor says what is wrong
            except BaseException as error:
                self._errors[item] = error
            else:
                crew.status[item] = status.OK
            return 0

        crew.table[rt.AFTER] = ctypes.cast(after, ctypes.c_void_p).value
        try:
            _go(crew.table, threads)
        finally:
            crew.end()
        if crew.table[rt.STOP] and not self._errors:
            raise KeyboardInterrupt  # ctypes has printed what a signal's handler raised


_AFTER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


def _functions(jobs, sums, compiled):
    """The function in machine code for each job; None where any must run one by one."""
    if compiled is False or any(s is not None and is_half(s[1]) for s in sums):
        return None
    known = {}
    for job in jobs:
        if job.kind not in known:
            known[job.kind] = job.runner.ready(job.given, compiled, len(jobs))
            if known[job.kind] is None:
                return None
    return [known[job.kind] for job in jobs]


def _starts(count, sums):
    """First item by part, and the number of items."""
    nbytes = sum(int(np.prod(shape)) * dtype.itemsize for shape, dtype in filter(None, sums))
    parts = min(count, max(FEWEST, min(MOST, LARGEST // max(nbytes, 1))))
    return [count * part // parts for part in range(parts + 1)]


#: Held by the thread whose work Numba's threads do. Some of Numba's layers end the process where a
#: second one comes, or one of those threads itself.
_together = threading.Lock()
#: Whether this process was forked. GNU OpenMP ends it where its threads are asked for.
_forked = threading.Event()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked.set)


def _number_of(threads, parts):
    """How many threads take part."""
    if _forked.is_set():
        return 1
    most = numba.get_num_threads()
    return min(parts, most if threads is None else min(threads, most))


def _go(table, threads):
    """Do the work, on Numba's threads if these are free; a signal's exception is raised here."""
    place = table.ctypes.data
    free = threads > 1 and _together.acquire(blocking=False)
    try:
        if free and numba.threading_layer() == "workqueue":
            _beside(table, rt.native(rt.together), threads, place)
        elif free:
            rt.native(rt.together)(threads, place)
        else:
            rt.native(rt.alone)(place)
    except SystemError as error:  # they give a result although an exception is set
        raise error.__cause__ or error from None
    finally:
        if free:
            _together.release()


def _beside(table, work, *args):
    """Do work in a thread, for a layer that lets the caller sleep: so that it sees signals.

    It waits for a lock, as `Thread.join`, once interrupted, takes the thread for ended.
    """
    done, interrupt = threading.Lock(), None
    done.acquire()
    threading.Thread(target=_then, args=(done, work, *args)).start()
    while True:
        try:
            done.acquire()
            break
        except BaseException as error:  # what threads work on must live until all have stopped
            table[rt.STOP], interrupt = 1, error
    if interrupt is not None:
        raise interrupt


def _then(done, work, *args):
    try:
        work(*args)
    finally:
        done.release()
