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
import threading
import time

from nbta.codegen import positive_gammas
from nbta.loops.structure import Sizes
from nbta.runtime.numba_private import event
from nbta.tuning import (
    BRANCH_SECONDS,
    BUILD_SECONDS,
    CALIBRATION_SECONDS,
    DIFFERENT_SECONDS,
    FIRST_BUILD_SECONDS,
    FIRST_LOOK_SECONDS,
    GAMMA_SECONDS,
    LEARNING_RATE,
    LOAD_SECONDS,
    LOOK_SECONDS,
    LOOP_SECONDS,
    OPERATION_SECONDS,
    PASS_SECONDS,
    SOURCE_WAIT,
    STATEMENT_SECONDS,
)

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


def build_seconds(sizes: Sizes) -> float:
    """CPU seconds to make machine code of a function, on the machine of the figures."""
    return (
        BUILD_SECONDS
        + STATEMENT_SECONDS * sizes.statements
        + DIFFERENT_SECONDS * sizes.different
        + LOOP_SECONDS * sizes.loops
        + BRANCH_SECONDS * sizes.branches
        + GAMMA_SECONDS * sum(sizes.calls.get(name, 0) for name in positive_gammas.NAMES)
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
            measured = min(map(_piece, range(5)))
            self._speed = measured / CALIBRATION_SECONDS or 1.0  # a clock may be coarse
        return self._speed

    def looking(self, operations: int) -> float:
        """To look for a graph on disk, and to load it if it is there."""
        always, each = LOOK_SECONDS
        return self.speed * (
            FIRST_LOOK_SECONDS * self.is_cold + LOAD_SECONDS + always + each * operations
        )

    def passes(self, operations: int) -> float:
        """To make source of a graph, and to be sure that it was worth it."""
        always, each, pair = PASS_SECONDS
        return SOURCE_WAIT * self.speed * (always + operations * (each + pair * operations))

    def building(self, seconds: float, is_kept: bool) -> float:
        """To make machine code, of which `build_seconds` says so, or to load it."""
        return self.speed * (
            LOAD_SECONDS if is_kept else FIRST_BUILD_SECONDS * self.is_cold + seconds
        )

    def one_by_one(self, operations: int) -> float:
        """To run operations, at least."""
        return self.speed * OPERATION_SECONDS * operations

    def learn_building(self, estimate: float, seconds: float) -> None:
        """Correct the speed by what it has taken to make machine code."""
        if not self.is_cold and estimate > LOAD_SECONDS * self.speed and seconds > 0:
            self._speed = self.speed * min(max(seconds / estimate, 0.5), 2.0) ** LEARNING_RATE
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
