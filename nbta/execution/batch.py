"""Runs of programs for many items, on several threads, with sums that do not depend on these.

Items are cut into parts, which depend on their number and the size of the sums alone. A part adds
up its items in order, and sums of parts are added in order: whoever computes what, and when, leaves
no trace in the sum. Threads work from a table (`WorkTable`), as `nbta.runtime.parallel` reads it.
"""

import contextlib
import ctypes
import math
import operator
import weakref

import numba
import numpy as np

from nbta.compiler import build
from nbta.dtypes import code_of
from nbta.errors import memory_for
from nbta.execution.crew import do_together
from nbta.graph.graph import at_once
from nbta.ops.loops.bodies import note
from nbta.runtime import intrinsics as status
from nbta.runtime import parallel as rt
from nbta.runtime.intrinsics import WATCH
from nbta.runtime.parallel import ADDED
from nbta.tuning import (
    BATCH_ITEM_KINDS,
    BATCH_KINDS,
    BATCH_PARTS,
    BATCH_PARTS_LEAST,
    BATCH_SUMS,
    BATCH_TABLES,
    SAVED_SUMS,
    THREAD_SHARE,
)


class Results:
    """Results of a number of items.

    Parameters
    ----------
    count : int
    sums : list of (tuple, dtype) or None
        For each result its shape and dtype if it is to be added up; else None.

    Attributes
    ----------
    starts : list of int
        First item by part, and the number of items.
    parts : int
    sinks : list of Column or Total
        By result.
    nbytes : int
        Of what is kept for the next items.
    """

    def __init__(self, count, sums):
        nbytes = sum(math.prod(shape) * dtype.itemsize for shape, dtype in filter(None, sums))
        self.parts = min(
            count, max(BATCH_PARTS_LEAST, min(BATCH_PARTS, BATCH_SUMS // max(nbytes, 1)))
        )
        self.starts = [count * part // self.parts for part in range(self.parts + 1)]
        self.sinks = [Column(count) if s is None else Total(self.parts, *s) for s in sums]
        self.nbytes = nbytes * self.parts

    def keep(self, part, item, values):
        """Take the results of an item."""
        is_first = item == self.starts[part]
        for sink, value in zip(self.sinks, values, strict=True):
            sink.keep(part, item, is_first, value)

    def values(self, divisors) -> list:
        """For each result the sum, or the values of all items, divided."""
        pairs = zip(self.sinks, divisors, strict=True)
        return [sink.value(divisor) for sink, divisor in pairs]


class Column:
    """One result of all items: an array where all have one shape, else a list."""

    code = nbytes = 0  # nothing is added

    def __init__(self, items):
        self._items, self._others = items, {}
        self._block = self._rows = None

    def expect(self, shape, dtype):
        """Make room for the results of new items, if their shape is known."""
        self._others, self._block, self._rows = {}, None, None
        if shape is not None:
            with contextlib.suppress(MemoryError, ValueError):  # others may be smaller
                self._block = np.empty((self._items, *shape), dtype)
                self._rows = rows_of(self._block)

    def places(self, starts):
        """Addresses of the arrays that results are to fill, by item; 0 for none."""
        return 0 if self._rows is None else list(map(id, self._rows))

    def place(self, part, item, is_first, spare):
        """The array that an item's result was to fill, if any."""
        return None if self._rows is None else self._rows[item]

    def spare(self):
        """An array for a term before it is added: none."""

    def sums(self, parts):
        """Addresses of the sums of parts: none."""
        return np.zeros(parts, np.int64)

    def keep(self, part, item, is_first, value):
        """Take the result of an item."""
        if self._block is not None and np.shape(value) == self._block.shape[1:]:
            self._block[item] = value
        else:
            self._others[item] = np.array(value)

    def value(self, divisor):
        """All results, which are the caller's from now on."""
        others, block, rows = self._others, self._block, self._rows
        self._others, self._block, self._rows = {}, None, None
        if not others:
            return divided(block, divisor)
        values = [others[i] if i in others else rows[i] for i in range(self._items)]
        same = len({value.shape for value in values}) == 1
        return divided(np.stack(values), divisor) if same else [divided(v, divisor) for v in values]


class Total:
    """The sum of one result over all items, part by part.

    Half precision is added in float32 and rounded once.
    """

    def __init__(self, parts, shape, dtype):
        self._dtype = dtype
        wide = np.dtype(np.float32) if is_half(dtype) else dtype
        self._parts = np.empty((parts, *shape), wide)
        self._rows = rows_of(self._parts)
        self.code, self.nbytes = code_of(wide), self._rows[0].nbytes

    def places(self, starts):
        """The first item of a part fills the sum, what others give is added to it."""
        found = np.full(starts[-1], ADDED)
        found[starts[:-1]] = list(map(id, self._rows))
        return found

    def place(self, part, item, is_first, spare):
        """The array that an item's result was to fill."""
        return self._rows[part] if is_first else spare

    def spare(self):
        """An array for a term before it is added."""
        return np.empty(self._parts.shape[1:], self._dtype)

    def sums(self, parts):
        """Addresses of the sums of parts."""
        return self._parts.ctypes.data + self.nbytes * np.arange(parts)

    def keep(self, part, item, is_first, value):
        """Take the result of an item."""
        if is_first:
            self._parts[part] = value
        else:
            self._parts[part] += value

    def value(self, divisor):
        """The sum of all parts, in order."""
        if self._parts[0].size == 1:  # NumPy would add pairs first
            total = np.add.accumulate(self._parts, axis=0)[-1]
        else:
            total = np.add.reduce(self._parts, axis=0, initial=None)
        total = divided(np.asarray(total), divisor)
        return total.astype(self._dtype, copy=False)[()]


def divided(array, divisor):
    """An array divided by an integer, which half precision may not hold."""
    if divisor == 1:
        return array
    wide = array.astype(np.float32) if is_half(array.dtype) else array
    return (wide / wide.dtype.type(divisor)).astype(array.dtype, copy=False)


def rows_of(array) -> list:
    """The rows of an array, of a vector those of rank 0."""
    return list(array) if array.ndim > 1 else [array[i, ...] for i in range(len(array))]


def is_half(dtype):
    """Whether sums are taken in float32."""
    return dtype.itemsize == 2 and dtype.kind not in "biu"


_AFTER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class WorkTable:
    """Computes items with certain functions on some threads, as often as it is loaded.

    Parameters
    ----------
    executables : list of Executable
        By item.
    sums : list
        As for `Results`.
    threads : int

    Attributes
    ----------
    results : Results
    errors : dict
        What items raised, by number.
    most : int
        Threads that may take part.
    words : array of int64
        The table itself, which threads read and write.
    size : int
        Of what is loaded: how many items it has, and elements that these bring.
    had_nan : bool
        Whether a result of what is loaded had a NaN that may have been wrong.
    """

    def __init__(self, executables, sums, threads):
        self.kind, self.most = (executables, sums, threads), threads
        self.results, self.errors = Results(len(executables), sums), {}
        self.words, self._arrays = np.zeros(rt.TABLE, np.int64), []
        self._programs = list(dict.fromkeys(executables))
        place = {executable: k for k, executable in enumerate(self._programs)}
        self._program = [place[executable] for executable in executables]
        self._work = [[each.borrow() for each in self._programs] for _ in range(threads)]
        self._status = self._put(rt.STATUS, np.zeros(len(executables)))
        self._put_programs()
        self._put_results()
        self._after = _callback(self)
        self.words[rt.AFTER] = ctypes.cast(self._after, ctypes.c_void_p).value

    def _put(self, word, values):
        """Let a word hold the address of numbers."""
        array = np.array(values, np.int64, order="C")
        self._arrays.append(array)
        self.words[word] = array.ctypes.data
        return array

    def _put_programs(self):
        programs = self._programs
        self.words[rt.PROGRAMS] = len(programs)
        self._put(rt.PROGRAM, self._program)
        self._put(rt.FUNCTION, [each.address for each in programs])
        self._put(rt.WORDS, [[work.address for work in row] for row in self._work])
        self._put(rt.INPUTS, [each.generated.inputs for each in programs])
        self.words[rt.ENSURE : rt.RELEASE + 1] = [build.address(name) for name in WATCH]

    def _put_results(self):
        results, sinks = self.results, self.results.sinks
        self.words[rt.PARTS], self.words[rt.RESULTS] = results.parts, len(sinks)
        self._put(rt.STARTS, results.starts)
        self._order = self._put(rt.ORDER, np.arange(results.parts))
        self._new = self._put(rt.NEW, np.zeros((len(self._program), len(sinks))))
        for k, sink in enumerate(sinks):
            self._new[:, k] = sink.places(results.starts)
        self._spare = [[[sink.spare() for sink in sinks] for _ in row] for row in self._work]
        self._put(rt.SPARE, [[_addresses(spares) for spares in row] for row in self._spare])
        self._put(rt.SUM, np.transpose([sink.sums(results.parts) for sink in sinks]))
        self._put(rt.BYTES, [sink.nbytes for sink in sinks])
        self._put(rt.CODE, [sink.code for sink in sinks])

    def load(self, items, alone) -> None:
        """Say what the next items are computed from.

        Parameters
        ----------
        items : Items
        alone : callable
            Gives the results of an item that a function cannot compute; or it raises.
        """
        self._items, self._alone, self._given = items, alone, items.addresses()
        self.words[rt.GIVEN], self.words[rt.COUNT] = self._given.ctypes.data, len(items.shared)
        self.words[rt.NEXT] = self.words[rt.STOP] = 0
        self.words[rt.FAILED] = rt.NONE_FAILED
        self.errors.clear()
        self.had_nan = False
        sizes = items.sizes()
        self.size = len(sizes) + int(sizes.sum())
        sizes = np.add.reduceat(sizes, self.results.starts[:-1])
        self._order[:] = np.argsort(-sizes, kind="stable")  # no thread begins a long part last
        one = len(self._programs) == 1
        for k, sink in enumerate(self.results.sinks):
            if isinstance(sink, Column):
                sink.expect(*(self._programs[0].output(k) if one else (None, None)))
                self._new[:, k] = sink.places(self.results.starts)

    def after(self, thread, part, item):
        """What is left to do where a function could not fill the arrays that were given."""
        try:
            if self._status[item] == status.RESIZED:
                values = self._resized(thread, part, item)
            else:
                self.had_nan |= bool(self._status[item] == status.NOT_A_NUMBER)
                self._work[thread][self._program[item]].forget_results()
                values = self._alone(item)  # the reference executor says what is wrong
            self.results.keep(part, item, values)
        except BaseException as error:
            self.errors[item] = error
            self.words[rt.STOP] |= not isinstance(error, Exception)
        else:
            self._status[item] = status.OK
        return 0

    def _resized(self, thread, part, item):
        """The results of the item that a thread has just computed, some of another shape."""
        program, is_first = self._program[item], item == self.results.starts[part]
        spares = self._spare[thread][program]
        pairs = zip(self.results.sinks, spares, strict=True)
        new = [sink.place(part, item, is_first, spare) for sink, spare in pairs]
        values = self._work[thread][program].results(new)
        self._programs[program].shapes[:] = [value.shape for value in values]
        return values

    def was_interrupted(self):
        """Whether threads stopped, or an item failed without an error."""
        failed = self.words[rt.FAILED]
        return self.words[rt.STOP] != 0 or failed not in {rt.NONE_FAILED, *self.errors}

    def unload(self) -> None:
        """Forget the items."""
        self._items = self._alone = self._given = None
        for work in (work for row in self._work for work in row if work.is_used):
            work.clean()


def _callback(table):
    """`WorkTable.after` for compiled code, which does not keep the table alive."""
    reference = weakref.ref(table)
    return _AFTER(lambda thread, part, item: reference().after(thread, part, item))


def _addresses(arrays):
    """Addresses of arrays and of their items."""
    return [[0, 0] if a is None else [id(a), a.ctypes.data] for a in arrays]


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
        """By item, dtypes and shapes of what it brings, in one flat tuple.

        A tuple of tuples costs four times as much, 1.7 microseconds an item, in Python's search
        for garbage.
        """
        found = [map(of, column) for column in self._columns.values() for of in _KIND]
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


_KIND = operator.attrgetter("dtype"), operator.attrgetter("shape")
_SIZE = operator.attrgetter("size")


class Memory:
    """What is kept from one batch to the next, where the shared inputs are of the same kind.

    Attributes
    ----------
    functions : dict
        In machine code, by kind of item.
    tables : list of WorkTable
        Those that no thread uses now.
    each : float or None
        CPU seconds that the last batch took, by its size.
    """

    def __init__(self):
        self.functions, self.tables, self.each = {}, [], None

    def take(self, executables, sums, threads) -> WorkTable:
        """A table that nobody else uses."""
        kind = executables, sums, threads
        try:
            table = self.tables.pop()
        except IndexError:
            return WorkTable(*kind)
        return table if table.kind == kind else WorkTable(*kind)

    def put_back(self, table) -> None:
        """Let a table be used again."""
        if table.results.nbytes <= SAVED_SUMS and len(self.tables) < BATCH_TABLES:
            self.tables.append(table)


class Memories:
    """What is kept between batches, by kind of what their items share."""

    def __init__(self):
        self._by_kind = {}

    def of(self, kind) -> Memory:
        """What is kept for a kind."""
        if kind not in self._by_kind and len(self._by_kind) >= BATCH_KINDS:
            self._by_kind.clear()
        return self._by_kind.setdefault(kind, Memory())


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
    table = _on_threads(items, alone, functions, sums, threads, memory)
    if table.had_nan:  # functions that look at zeros have taken the place of some
        memory.functions.clear()
    values = table.results.values(divisors)
    memory.put_back(table)
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
    if len(known) > BATCH_ITEM_KINDS:
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
    """Compute the items on several threads: all before the first that fails."""
    executables = [function.executable for function in functions]
    table = memory.take(executables, sums, _most(threads, len(items)))
    table.load(items, alone)
    try:
        worth = table.most if memory.each is None else worth_of(table.size * memory.each)
        memory.each = _go(table, min(table.most, worth)) / table.size
    finally:
        table.unload()
    for error in table.errors.values():
        if not isinstance(error, Exception):
            raise error
    if table.was_interrupted():
        raise KeyboardInterrupt  # ctypes has printed what a signal's handler raised
    if table.errors:
        item = min(table.errors)
        raise items.named(table.errors[item], item)
    return table


def worth_of(seconds) -> int:
    """How many threads work is worth that takes so long on one."""
    return max(1, int(seconds / THREAD_SHARE))


def _most(threads, items):
    """How many threads may take part."""
    most = numba.get_num_threads()
    return min(items, most if threads is None else min(threads, most))


def _go(table, threads):
    """Do the work and give its CPU seconds; what a signal's handler raises is raised here."""
    work, place = rt.native(), table.words.ctypes.data

    def stop():
        table.words[rt.STOP] = 1

    try:
        return do_together(lambda thread: work(thread, place), threads, stop)
    except SystemError as error:  # it gives a result although an exception is set
        raise error.__cause__ or error from None
