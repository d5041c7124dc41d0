"""When it pays to compile: once runs one by one have taken as long as compiling would.

Whoever compiles then has spent at most twice what the better of always and never compiling would
have taken, after any number of calls, and no other rule that does not know the number of calls
promises less: at the moment of compiling both have cost as much. (It is the rent-or-buy problem:
Karlin, Manasse, Rudolph and Sleator, "Competitive snoopy caching", Algorithmica 3, 1988.) To be
wrong by a factor f about what compiling takes makes that 1 + f. So the estimate is made anew after
each stage, from what is known then: at first the graph, later the source.

Seconds are those of the processor in the thread that runs or compiles, as other work on the machine
is not to decide. The figures fit 74 programs on a machine where others worked too: those of
``python -m asv_bench.auto``, with second derivatives, and 14 small ones. They minimise the absolute
logarithms of ratios. Of programs that the fit left out (in 8 parts) what a build took was 0.79,
1.01 and 1.34 times its estimate (first decile, median, ninth), and what the passes took 0.8, 1.0
and 1.4 times. By these times and estimates the cost is up to 2.16 times that of the better choice
for 9 of 10 programs, and 2.32 times for the worst; by exact estimates it would be 1.9 times.
"""

import ast
import re
import threading
import time

from nbta.runtime.numba_private import event

#: The machine that the figures were measured on took so long for `_piece`; another one's figures
#: are in proportion.
PIECE = 1.45e-3
#: CPU seconds to look for a graph on disk: for any, and for each of its operations.
LOOKING = 5e-4, 2e-5
#: To come from a graph to source, the same; and for each pair of operations, as some passes look at
#: all operations for some: 0.25 s for 774 of them, 4 s for 6,100.
PASSES = 2.5e-3, 3.4e-4, 2.9e-8
#: What the first function of a process takes more: to digest nbta's sources when a graph is looked
#: for, and to know Numba's types when one is built.
FIRST_LOOK, FIRST_BUILD = 0.015, 0.17
#: To load machine code that is on disk.
LOADING = 5e-3
#: To build machine code, for: any source, a line, a line unlike all others outside of loops (those
#: that are like another one become a loop over pieces, see `nbta.compiler.rolling`), a loop in
#: these, of which LLVM makes vector instructions, a branch, and a function of the gamma family,
#: whose two ways are put there. Exponentials and their kin take no more than other arithmetic.
BUILD, LINE, UNLIKE, LOOP, BRANCH, GAMMA = 2.7e-2, 9.2e-5, 3.3e-4, 1.35e-2, 3.2e-3, 2.7e-2
#: CPU seconds of an operation one by one, at least: 19 of 20 programs take more.
OPERATION = 1e-6
#: To come to source takes a third of the whole, and is estimated less well than what follows. It
#: waits until this many times its estimate is spent: between what it takes and the whole any moment
#: will do.
CERTAINTY = 1.8
#: How much of a difference between an estimate and what was measured belongs to the machine; the
#: rest belongs to the program.
LEARNING = 0.2
#: A run as short as this is seldom interrupted, and is timed by the clock on the wall, which takes
#: 50 ns; the processor's takes 0.3 us, and 7 us where system calls are watched.
SHORT = 1e-3

processor = time.thread_time


class _Lock(event.Listener, threading.local):
    """CPU seconds for which this thread has had Numba's lock."""

    seconds, _begin, _depth = 0.0, 0.0, 0

    def on_start(self, event):
        """It is taken, maybe again."""
        if self._depth == 0:
            self._begin = processor()
        self._depth += 1

    def on_end(self, event):
        """It is returned."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += processor() - self._begin


_lock = _Lock()
event.register("numba:compiler_lock", _lock)


def clock() -> float:
    """CPU seconds of this thread but those in which Numba compiled or loaded functions.

    What operations call is compiled once for a machine and loaded once for a process, which says
    nothing of how long the next run will take.
    """
    return processor() - _lock.seconds


_DIGITS = re.compile(r"\d+")
_BRANCHES = re.compile(r"\bif ")


def build_seconds(source: str) -> float:
    """CPU seconds to make machine code of source, on the machine of the figures."""
    statements: list[str] = []
    lines = _DIGITS.sub("", source).splitlines()
    for line in lines:
        if line.startswith(" " * 5) and statements:  # in a loop or branch of the function
            statements[-1] += f"\n{line}"
        else:
            statements.append(line)
    unlike = "\n".join(dict.fromkeys(statements))
    return (
        BUILD
        + LINE * len(lines)
        + UNLIKE * unlike.count("\n")
        + LOOP * unlike.count("for ")
        + BRANCH * len(_BRANCHES.findall(unlike))
        + GAMMA * unlike.count("positive_")
    )


class Estimates:
    """CPU seconds of the stages of compiling, on this machine.

    Attributes
    ----------
    is_cold : bool
        Whether this process has compiled nothing yet.
    """

    def __init__(self):
        self._speed, self.is_cold = None, True

    @property
    def speed(self) -> float:
        """How many times as long as the machine of the figures this one takes."""
        if self._speed is None:
            self._speed = min(map(_piece, range(5))) / PIECE or 1.0  # a clock may be coarse
        return self._speed

    def looking(self, operations: int) -> float:
        """To look for a graph on disk, and to load it if it is there."""
        always, each = LOOKING
        return self.speed * (FIRST_LOOK * self.is_cold + LOADING + always + each * operations)

    def passes(self, operations: int) -> float:
        """To make source of a graph, and to be sure that it was worth it."""
        always, each, pair = PASSES
        return CERTAINTY * self.speed * (always + operations * (each + pair * operations))

    def building(self, seconds: float, is_kept: bool) -> float:
        """To make machine code of source of which `build_seconds` says so, or to load it."""
        return self.speed * (LOADING if is_kept else FIRST_BUILD * self.is_cold + seconds)

    def one_by_one(self, operations: int) -> float:
        """To run operations, at least."""
        return self.speed * OPERATION * operations

    def learn_building(self, estimate: float, seconds: float) -> None:
        """Correct the speed by what it has taken to make machine code."""
        if not self.is_cold and estimate > LOADING * self.speed and seconds > 0:
            self._speed = self.speed * min(max(seconds / estimate, 0.5), 2.0) ** LEARNING
        self.is_cold = False


#: Those of this process.
estimates = Estimates()


class Deadline:
    """When a run one by one has made up, with those before it, for what compiling takes.

    Stages of compiling that become worth it in the middle of the run are gone through there, so
    that it need not begin again; only what is to be compiled at last is given up.

    Parameters
    ----------
    price : callable
        Gives the CPU seconds that it has to make up for, as they are known after so many.
    spent : float
        CPU seconds of runs before.
    now : callable
        The clock of the run.
    count : int
        How many runs like it are to come.

    Attributes
    ----------
    aside : float
        Seconds of the stages.
    """

    def __init__(self, price, spent, now, count=1):
        self._price, self._spent, self._now, self._count = price, spent, now, count
        self._limit, self.aside = price(spent), 0.0
        self._begin = now()

    def is_over(self, operations: int = 0) -> bool:
        """Whether it has, or will have before so many more operations are done."""
        now = self._now()
        seconds = now - self._begin - self.aside + estimates.one_by_one(operations)
        have = self._spent + self._count * seconds
        while have > self._limit:
            limit = self._price(have)
            if limit <= self._limit:
                return True
            self._limit = limit
            self.aside += self._now() - now
            now = self._now()
        return False


_TEXT = "\n".join(
    f"for i{k} in range(n{k}):\n    a{k}[i{k}] = b{k}[i{k} + {k}] * c{k} - abs(d{k}[i{k}])"
    for k in range(24)
)


def _piece(_):
    """CPU seconds of work that is like that of compiling."""
    begin = processor()
    sorted(node.id for node in ast.walk(ast.parse(_TEXT)) if isinstance(node, ast.Name))
    return processor() - begin
