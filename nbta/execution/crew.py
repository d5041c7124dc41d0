"""The table from which threads compute items of a batch; see `nbta.runtime.parallel`."""

import ctypes
import weakref

import numpy as np

from nbta.compiler import helpers
from nbta.execution.results import Column, Results
from nbta.runtime import parallel as rt
from nbta.runtime import protocol as status
from nbta.runtime.slots import WATCH

_AFTER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)


class Crew:
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
    table : array of int64
        What threads read and write.
    """

    def __init__(self, executables, sums, threads):
        self.kind = executables, sums, threads
        self.results, self.errors = Results(len(executables), sums), {}
        self.table, self._arrays = np.zeros(rt.TABLE, np.int64), []
        self._programs = list(dict.fromkeys(executables))
        place = {executable: k for k, executable in enumerate(self._programs)}
        self._program = [place[executable] for executable in executables]
        self._work = [[each.borrow() for each in self._programs] for _ in range(threads)]
        self._status = self._put(rt.STATUS, np.zeros(len(executables)))
        self._put_programs()
        self._put_results()
        self._after = _callback(self)
        self.table[rt.AFTER] = ctypes.cast(self._after, ctypes.c_void_p).value

    def _put(self, word, values):
        """Let a word hold the address of numbers."""
        array = np.array(values, np.int64, order="C")
        self._arrays.append(array)
        self.table[word] = array.ctypes.data
        return array

    def _put_programs(self):
        programs = self._programs
        self.table[rt.PROGRAMS] = len(programs)
        self._put(rt.PROGRAM, self._program)
        self._put(rt.FUNCTION, [each.address for each in programs])
        self._put(rt.WORDS, [[work.address for work in row] for row in self._work])
        self._put(rt.INPUTS, [each.generated.inputs for each in programs])
        self.table[rt.ENSURE : rt.RELEASE + 1] = [helpers.address(name) for name in WATCH]

    def _put_results(self):
        results, sinks = self.results, self.results.sinks
        self.table[rt.PARTS], self.table[rt.RESULTS] = results.parts, len(sinks)
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
        self.table[rt.GIVEN], self.table[rt.COUNT] = self._given.ctypes.data, len(items.shared)
        self.table[rt.NEXT] = self.table[rt.STOP] = 0
        self.errors.clear()
        sizes = np.add.reduceat(items.sizes(), self.results.starts[:-1])
        self._order[:] = np.argsort(-sizes, kind="stable")  # no thread begins a long part last
        one = len(self._programs) == 1
        for k, sink in enumerate(self.results.sinks):
            if isinstance(sink, Column):
                sink.expect(*(self._programs[0].outputs[k] if one else (None, None)))
                self._new[:, k] = sink.places(self.results.starts)

    def behind(self, thread, part, item):
        """What is left to do where a function could not fill the arrays that were given."""
        try:
            if self._status[item] == status.RESIZED:
                values = self._resized(thread, part, item)
            else:
                self._work[thread][self._program[item]].forget_results()
                values = self._alone(item)  # the reference executor says what is wrong
            self.results.keep(part, item, values)
        except BaseException as error:
            self.errors[item] = error
            self.table[rt.STOP] |= not isinstance(error, Exception)
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
        self._programs[program].outputs = [(value.shape, value.dtype) for value in values]
        return values

    def unload(self) -> None:
        """Forget the items."""
        self._items = self._alone = self._given = None
        for work in (work for row in self._work for work in row if work.is_used):
            work.clean()


def _callback(crew):
    """`Crew.behind` for compiled code, which does not keep the crew alive."""
    reference = weakref.ref(crew)
    return _AFTER(lambda thread, part, item: reference().behind(thread, part, item))


def _addresses(arrays):
    """Addresses of arrays and of their items."""
    return [[0, 0] if a is None else [id(a), a.ctypes.data] for a in arrays]
