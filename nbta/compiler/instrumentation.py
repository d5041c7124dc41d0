"""Compiled code that measures itself: the same statements, with a clock read after each part.

A part is what is written for one operation, or the loop that does several. What passes between two
readings goes to the part that the second one is after, so that nothing is left out. What a
reading takes itself is no part's: it is found by running the code without clocks in between, and
taken off. A processor does several things at once, so that parts of some 20 ns run into one
another. Operations on single numbers get no reading of their own, which takes longer than they do:
their time goes to the next part. Such code has a source of its own, and so an entry of its own in
the cache.
"""

import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from nbta.codegen.code import NotCompiledError
from nbta.codegen.values import NUMBERS, numba_name
from nbta.compiler.emitter import Emitter
from nbta.compiler.executable import Compiled
from nbta.compiler.generate import generate
from nbta.compiler.phases import phase
from nbta.graph.labels import written
from nbta.graph.views import is_loop
from nbta.loops import Attribute, Block, Break, Call, do
from nbta.loops.nodes import expressions_in
from nbta.runtime import clock as rt
from nbta.tuning import CLOCK_LONGEST, CLOCK_RUNS, CLOCK_SHORTEST

#: Calls that do next to nothing.
_CHEAP = {"min", "max", *(numba_name(np.dtype(char)) for char in NUMBERS)}


@dataclass(eq=False)
class Piece:
    """A part of the code.

    Attributes
    ----------
    names, types : tuple of str
        Of the operations that it does; what it is for where there are none.
    loops : tuple of str
        Names of the loops around it, from the outside.
    ends_iteration : bool
        Whether it is the last one of an iteration of the innermost loop.
    numbers : tuple of str
        Types of the operations on single numbers whose time is in it, too.
    ops : tuple of Operation
        All whose time is in it.
    written : tuple of str
        The loops around it, as the user wrote them where they have no name.
    """

    names: tuple
    types: tuple
    loops: tuple = ()
    ends_iteration: bool = False
    numbers: tuple = ()
    ops: tuple = ()
    written: tuple = ()


@dataclass
class Clock:
    """Where readings are found.

    Attributes
    ----------
    head : int
        The first of the clock's words.
    places : dict
        Piece by the word of its time; a piece may have several.
    """

    head: int
    places: dict = field(default_factory=dict)


class InstrumentedEmitter(Emitter):
    """Writes a program down, with clocks."""

    def __init__(self, arrays, counts, same_shapes):
        super().__init__(arrays, counts, same_shapes)
        self.clock = Clock(self.word(rt.WORDS))
        self._open, self._loops, self._numbers = [_piece("begin", ())], (), []
        self._written = ()
        kind = "" if rt.counts_ticks() else "system_"
        self._lap = f"{kind}lap"
        self.add(do(f"start_{kind}clock", "w", self.clock.head))
        self.initial.append((self.clock.head + rt.FUNCTION, rt.system_clock()))
        self._mark()

    @contextmanager
    def part(self, what):
        """Lines of some operations, or of what a string says, with a clock after them."""
        self._read()
        self._open.append(_piece(what, self._loops, self._written))
        yield
        self._read()
        self._open.pop()

    @contextmanager
    def loop(self, *lines, **options):
        """A loop of the program, with a clock at the end of each iteration and after it."""
        self._read()
        around, op = self._loops, self._open[-1]
        self._loops = (*around, *op.names)
        before = self._written
        loops = [each for each in op.ops if each.name in op.names]
        self._written = (*before, *((is_loop(o) and written(o)) or o.name for o in loops))
        with super().loop(*lines, **options):
            self._mark()
            yield
            end = Piece(op.names, op.types, self._loops, ends_iteration=True, ops=op.ops)
            end.written = self._written
            self._put(end)
        self._loops, self._written = around, before
        self._put(op)

    def _mark(self):
        self._marked = self.lines, self.lines.size

    def _read(self):
        """Read the clock if anything was written since that takes time."""
        lines, size = self._marked
        if lines is not self.lines or not all(map(_is_cheap, lines.items_from(size))):
            self._put(self._open[-1])
        elif size < lines.size:
            self._numbers.append(self._open[-1])
            self._mark()

    def _put(self, piece):
        place = self.word(rt.PLACE)
        self.clock.places[place] = piece
        for part in self._numbers:
            piece.numbers += part.types
            piece.ops += part.ops
        self._numbers = []
        self.add(do(self._lap, "w", self.clock.head, place))
        self._mark()


def _is_cheap(item):
    """Whether a statement, or a place for some, takes next to no time."""
    if isinstance(item, Block) or any(type(s) is not Break for b in item.blocks for s in b):
        return False
    nodes = (each for node in item.expressions for each in expressions_in(node))
    return all(_called(each) in _CHEAP for each in nodes if isinstance(each, Call))


def _called(node):
    return node.function.name if isinstance(node.function, Attribute) else node.name


def _piece(what, loops, around=()):
    if isinstance(what, str):
        return Piece((what,), (what,), loops, written=around)
    ops = list(dict.fromkeys(what))
    names, types = tuple(op.name for op in ops), tuple(op.type for op in ops)
    return Piece(names, types, loops, ops=tuple(ops), written=around)


class Instrumented(Compiled):
    """What another `Compiled` computes, with clocks.

    Parameters
    ----------
    other : Compiled

    Raises
    ------
    NotCompiledError
        Where there is no clock.
    """

    def __init__(self, other):
        if not (rt.counts_ticks() or rt.system_clock()):
            raise NotCompiledError("this system has no clock that compiled code could read")
        self._plain = other
        self._given, self._new_step = other._given, other._new_step
        self._program, self._entry, self.log = other.program, None, other.log
        self._begin()
        self.generated = self._generate()

    def _generate(self):
        with phase("source with clocks"):
            return generate(self.program, InstrumentedEmitter)

    def _tell(self, given):
        """The code without clocks has warned."""

    def measure(self, given, repeats=1, entries=0, compare=True) -> "Measured":
        """Run, and give what the clocks said.

        Parameters
        ----------
        given : list of array
        repeats : int
            How many runs there are, besides one to begin with; more where these end too soon to
            tell how long a tick is.
        entries : int
            How many readings of the last run are kept one by one at most.
        compare : bool
            Whether the code without clocks runs in between, to know what a reading takes.

        Raises
        ------
        FailedError
            Where anything is to be refused.
        """
        given = [np.require(value, requirements=["C", "A"]) for value in given]
        first = self._run(given, 0, compare)
        runs = [self._run(given, 0, compare) for _ in range(repeats - 1)]
        runs.append(self._run(given, entries, compare))
        while not _can_tell(first, runs):
            runs.append(self._run(given, entries, compare))
        return Measured(self.generated.clock, [first, *runs])

    def _run(self, given, entries, compare):
        start = time.perf_counter_ns()
        if compare:
            self._plain(given)
        plain = time.perf_counter_ns() - start
        clock, room = self.generated.clock, np.empty((entries, rt.ENTRY), np.int64)
        places = np.fromiter(clock.places, np.int64)
        words = self._words()
        words[places] = words[places + 1] = 0
        words[clock.head + rt.NEXT] = room.ctypes.data
        words[clock.head + rt.END] = room.ctypes.data + room.nbytes
        start = time.perf_counter_ns()
        self(given)
        end = time.perf_counter_ns()
        made = (words[clock.head + rt.NEXT] - room.ctypes.data) // (8 * rt.ENTRY)
        words[clock.head + rt.END] = words[clock.head + rt.NEXT] = 0
        last = int(words[clock.head + rt.LAST])
        found = words[places], words[places + 1]
        return _Run(*found, last, end, plain, compare, room[:made])

    def _words(self):
        """The words that the next call will use."""
        executable = self.build()
        work = executable.borrow()
        executable.give_back(work)
        return work.words


def _can_tell(first, runs):
    """Whether it can be told how long a tick is."""
    passed = runs[-1].end - first.end
    return passed > CLOCK_LONGEST or (passed > CLOCK_SHORTEST and len(runs) >= CLOCK_RUNS)


@dataclass
class _Run:
    """What was found after a run.

    By place time and number of readings; the last reading and when that was; how long a run without
    clocks took, and whether there was one; entries.
    """

    ticks: np.ndarray
    counts: np.ndarray
    last: int
    end: int
    plain: int
    compared: bool
    entries: np.ndarray


class Measured:
    """What the clocks of some runs said.

    Attributes
    ----------
    rows : list of (Piece, float, int)
        Nanoseconds of a run, the median of all, and how often it ran, for each piece that did.
    plain : float
        Nanoseconds of the fastest run without clocks.
    reading : float
        Nanoseconds that a reading took; they are in no row.
    readings : int
        How many there were in a run.
    entries : list of (Piece, int, int)
        From when to when, in nanoseconds as of `time.perf_counter_ns`, for readings of the last
        run, in order.
    left_out : int
        How many readings came after these.
    """

    def __init__(self, clock, runs):
        self._tick = _tick_of(runs)
        runs, last = runs[1:], runs[-1]  # the first one finds no buffers yet
        ticks = np.median([run.ticks for run in runs], axis=0)
        pieces = list(clock.places.values())
        self.readings = int(last.counts.sum())
        self.plain = float(min(run.plain for run in runs))
        # Readings take what all parts do beyond that: medians of parts leave out the few runs in
        # which each had to wait for a processor, where nearly every whole run has waited somewhere.
        more = ticks.sum() * self._tick - self.plain
        self.reading = max(0.0, more / self.readings) if last.compared else 0.0
        spent, times = defaultdict(float), defaultdict(int)
        for piece, total, count in zip(pieces, ticks, last.counts.tolist(), strict=True):
            spent[piece] += max(0.0, total * self._tick - count * self.reading)
            times[piece] = max(times[piece], count)
        self.rows = [(piece, time, times[piece]) for piece, time in spent.items() if times[piece]]
        self.entries = list(self._in_order(clock, last))
        self.left_out = self.readings - len(self.entries)

    def _in_order(self, clock, run):
        places, ends = run.entries[:, 0].tolist(), run.entries[:, 1]
        start = run.last - run.ticks.sum()
        back = (run.last - np.concatenate([[start], ends])) * self._tick
        times = (run.end - np.rint(back).astype(np.int64)).tolist()
        for place, begin, end in zip(places, times, times[1:], strict=False):
            yield clock.places[place], begin, end


def _tick_of(runs):
    """Nanoseconds of a tick: the median, as a process that has to wait is late to tell the time."""
    half = len(runs) // 2
    pairs = zip(runs[:half], runs[-half:], strict=True)
    return float(np.median([(b.end - a.end) / (b.last - a.last) for a, b in pairs]))
