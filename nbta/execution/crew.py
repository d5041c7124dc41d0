"""The table from which threads compute items of a batch; see `nbta.runtime.parallel`."""

import numpy as np

from nbta.compiler import helpers
from nbta.runtime import parallel as rt
from nbta.runtime.slots import WATCH


class Crew:
    """What some threads compute, from what, and where it goes.

    Parameters
    ----------
    given : list of list of array
        By item.
    functions : list of Compiled
        By item, in machine code.
    starts : list of int
        First item by part, and the number of items.
    sinks : list of Column or Total
        By result.
    threads : int

    Attributes
    ----------
    table : array of int64
    status : array of int64
        By item, what its function gave.
    """

    def __init__(self, given, functions, starts, sinks, threads):
        self._executables = list(dict.fromkeys(function.executable for function in functions))
        place = {executable: k for k, executable in enumerate(self._executables)}
        self._program = [place[function.executable] for function in functions]
        self._given, self._starts, self._sinks = given, starts, sinks
        self._work = [[each.borrow() for each in self._executables] for _ in range(threads)]
        self.table, self._arrays = np.zeros(rt.TABLE, np.int64), []
        self.status = np.full(len(given), -1)
        self.table[rt.STATUS] = self.status.ctypes.data
        self._put_programs()
        self._put_inputs()
        self._put_results()
        self._put_order()

    def _put(self, word, values):
        """Let a word hold the address of numbers."""
        array = np.ascontiguousarray(values, np.int64)
        self._arrays.append(array)
        self.table[word] = array.ctypes.data
        return array

    def _put_programs(self):
        programs = self._executables
        self.table[rt.PROGRAMS] = len(programs)
        self._put(rt.PROGRAM, self._program)
        self._put(rt.FUNCTION, [each.address for each in programs])
        self._put(rt.WORDS, [[work.address for work in row] for row in self._work])
        self._put(rt.INPUTS, [each.generated.inputs for each in programs])
        self._put(rt.COUNTS, [each.generated.arguments for each in programs])
        self.table[rt.ENSURE : rt.RELEASE + 1] = [helpers.address(name) for name in WATCH]

    def _put_inputs(self):
        ids = np.array([id(value) for values in self._given for value in values], np.int64)
        self._arrays.append(ids)
        first = np.cumsum([0, *map(len, self._given)])[:-1]
        self._put(rt.GIVEN, ids.ctypes.data + 8 * first)

    def _put_results(self):
        shapes = self._executables[0].outputs if len(self._executables) == 1 else None
        parts, sinks = len(self._starts) - 1, self._sinks
        self.table[rt.PARTS], self.table[rt.RESULTS] = parts, len(sinks)
        new = np.empty((len(self._given), len(sinks)), np.int64)
        for k, sink in enumerate(sinks):
            sink.expect(*(shapes[k] if shapes else (None, None)))
            new[:, k] = sink.places(self._starts)
        self._put(rt.NEW, new)
        self._spare = [[[sink.spare() for sink in sinks] for _ in row] for row in self._work]
        self._put(rt.SPARE, [[_addresses(spares) for spares in row] for row in self._spare])
        self._put(rt.SUM, np.transpose([sink.sums(parts) for sink in sinks]))
        self._put(rt.BYTES, [sink.nbytes for sink in sinks])
        self._put(rt.CODE, [sink.code for sink in sinks])

    def _put_order(self):
        """Parts with the most to do first, so that no thread is left with a long one at the end."""
        sizes = [sum([value.size for value in values]) for values in self._given]
        costs = np.add.reduceat(sizes, self._starts[:-1])
        self._put(rt.ORDER, np.argsort(-costs, kind="stable"))
        self._put(rt.STARTS, self._starts)

    def resized(self, thread, part, item):
        """The results of the item that a thread has just computed, some of another shape."""
        program, is_first = self._program[item], item == self._starts[part]
        spares = self._spare[thread][program]
        pairs = zip(self._sinks, spares, strict=True)
        new = [sink.place(part, item, is_first, spare) for sink, spare in pairs]
        values = self._work[thread][program].results(new)
        self._executables[program].outputs = [(value.shape, value.dtype) for value in values]
        return values

    def end(self) -> None:
        """Give back what belongs to the executables."""
        for row in self._work:
            for executable, work in zip(self._executables, row, strict=True):
                executable.give_back(work)


def _addresses(arrays):
    """Addresses of arrays and of their items."""
    return [[0, 0] if a is None else [id(a), a.ctypes.data] for a in arrays]
