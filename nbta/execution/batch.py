"""Runs of programs for many items, on several threads, with sums that do not depend on these."""

import operator
import os
import threading

import numba
import numpy as np

from nbta.errors import memory_for
from nbta.execution.crew import Crew
from nbta.execution.results import Results, is_half
from nbta.graph.graph import at_once
from nbta.ops.bodies import note
from nbta.runtime import parallel as rt

#: Bytes of sums that are kept for the next batch.
KEPT = 1 << 24


class Items:
    """Inputs of many runs of programs: those that all items share, and those of each.

    Parameters
    ----------
    shared : list of array
        All inputs; in place of those that an item brings there may be anything.
    columns : dict
        By place in ``shared``, for each item its array. There is one at least.
    name : str
        What errors call an item, with {} for its number.
    """

    def __init__(self, shared, columns, name="item {} of the batch"):
        self.shared, self._columns, self._name = shared, columns, name

    def __len__(self):
        return len(next(iter(self._columns.values())))

    def given(self, item) -> list:
        """All inputs for an item."""
        found = list(self.shared)
        for place, column in self._columns.items():
            found[place] = column[item]
        return found

    def named(self, error, item):
        """An error that says which item it came from."""
        note(error, f"({self._name.format(item)})")
        return error

    def kinds(self) -> list:
        """By item, dtypes and shapes of what it brings."""
        found = [map(_KIND, column) for column in self._columns.values()]
        return list(zip(*found, strict=True))

    def shapes(self) -> tuple:
        """Of what all items share."""
        columns = self._columns
        return tuple([v.shape for place, v in enumerate(self.shared) if place not in columns])

    def sizes(self):
        """By item, how many elements it brings."""
        return np.sum([list(map(_SIZE, column)) for column in self._columns.values()], 0)

    def addresses(self):
        """Of the array objects, by item and input."""
        found = np.empty((len(self), len(self.shared)), np.int64)
        found[:] = list(map(id, self.shared))
        for place, column in self._columns.items():
            found[:, place] = list(map(id, column))
        return found


_KIND, _SIZE = operator.attrgetter("dtype", "shape"), operator.attrgetter("size")


class Memory:
    """What is kept from one batch to the next, where the shared inputs are of the same kind.

    Attributes
    ----------
    functions : dict
        In machine code, by kind of item.
    crews : list of Crew
        Those that no thread uses now.
    """

    def __init__(self):
        self.functions, self.crews = {}, []

    def take(self, executables, sums, threads) -> Crew:
        """A crew that nobody else uses."""
        kind = executables, sums, threads
        try:
            crew = self.crews.pop()
        except IndexError:
            return Crew(*kind)
        return crew if crew.kind == kind else Crew(*kind)

    def put_back(self, crew) -> None:
        """Let a crew be used again."""
        if crew.results.nbytes <= KEPT and len(self.crews) < MOST:
            self.crews.append(crew)


class Memories:
    """What is kept between batches, by kind of what their items share."""

    def __init__(self):
        self._by_kind = {}

    def of(self, kind) -> Memory:
        """What is kept for a kind."""
        if kind not in self._by_kind and len(self._by_kind) >= KINDS:
            self._by_kind.clear()
        return self._by_kind.setdefault(kind, Memory())


#: Kinds of what is shared, kinds of items, and crews, of which there is memory.
KINDS, REMEMBERED, MOST = 16, 4096, 2


def run_batch(
    items, runner_of, sums, compiled="auto", threads=None, memory=None, divisors=None
) -> list:
    """Results of many items.

    Parameters
    ----------
    items : Items
        One at least.
    runner_of : callable
        Gives the runner for an item by its number, the same for items of the same kind.
    sums : list of (shape, dtype) or None
        For each result its shape and dtype if it is to be added up, where it has the same for all
        items; else None.
    compiled : {"auto", True, False}
    threads : int, optional
        How many threads may take part; by default as many as Numba would use.
    memory : Memory, optional
    divisors : list of int, optional
        For each result what it, or the sum, is divided by.

    Returns
    -------
    list
        For each result the sum; or the values of all items, stacked where they have one shape, else
        a list.

    Raises
    ------
    ResourceExhaustedError
        When there is no memory for the results of all.
    Exception
        What the first item that fails raises, with its number.
    """
    memory, divisors = memory or Memory(), divisors or [1] * len(sums)
    with memory_for(f"a batch of {len(items)} items"), at_once(), np.errstate(all="ignore"):
        return _run(items, runner_of, sums, compiled, threads, memory, divisors)


def _run(items, runner_of, sums, compiled, threads, memory, divisors):
    def alone(item):
        how = compiled if functions is None else True
        return runner_of(item).run(items.given(item), how)[0]

    functions = _functions(items, runner_of, sums, compiled, memory)
    if functions is None:
        return one_by_one(items, alone, sums, divisors)
    crew = _on_threads(items, alone, functions, sums, threads, memory)
    values = crew.results.values(divisors)
    memory.put_back(crew)
    return values


def one_by_one(items, compute, sums, divisors) -> list:
    """`run_batch` in order on this thread, for a function that gives the results of an item."""
    results = Results(len(items), sums)
    for part, (first, end) in enumerate(zip(results.starts, results.starts[1:], strict=False)):
        for item in range(first, end):
            try:
                results.keep(part, item, compute(item))
            except Exception as error:
                raise items.named(error, item) from error.__cause__
    return results.values(divisors)


def _functions(items, runner_of, sums, compiled, memory):
    """The function in machine code for each item; None where any must run one by one."""
    if compiled is False or any(s is not None and is_half(s[1]) for s in sums):
        return None
    kinds, known = items.kinds(), memory.functions
    if len(known) > REMEMBERED:
        known.clear()
    found = [known.get(kind) for kind in kinds]
    for item, kind in enumerate(kinds if None in found else ()):
        if kind not in known:
            try:
                runner = runner_of(item)
            except Exception as error:
                raise items.named(error, item) from error.__cause__
            known[kind] = runner.ready(items.given(item), compiled, len(kinds))
            if known[kind] is None:
                return known.pop(kind)
        found[item] = known[kind]
    return found


def _on_threads(items, alone, functions, sums, threads, memory):
    """Compute the items on several threads; those behind one that fails, too."""
    executables = [function.executable for function in functions]
    crew = memory.take(executables, sums, _number_of(threads, len(items)))
    crew.load(items, alone)
    try:
        _go(crew)
    finally:
        crew.unload()
    for error in crew.errors.values():
        if not isinstance(error, Exception):
            raise error
    if crew.errors:
        item = min(crew.errors)
        raise items.named(crew.errors[item], item)
    if crew.table[rt.STOP]:
        raise KeyboardInterrupt  # ctypes has printed what a signal's handler raised
    return crew


#: Held by the thread whose work Numba's threads do. Some of Numba's layers end the process where a
#: second one comes, or one of those threads itself.
_together = threading.Lock()
#: Whether this process was forked. GNU OpenMP ends it where its threads are asked for.
_forked = threading.Event()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked.set)


def _number_of(threads, items):
    """How many threads take part."""
    if _forked.is_set():
        return 1
    most = numba.get_num_threads()
    return min(items, most if threads is None else min(threads, most))


def _go(crew):
    """Do the work, on Numba's threads if these are free; a signal's exception is raised here."""
    place, threads = crew.table.ctypes.data, crew.kind[-1]
    free = threads > 1 and _together.acquire(blocking=False)
    try:
        if free and numba.threading_layer() == "workqueue":
            _beside(crew.table, rt.native(rt.together), threads, place)
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
