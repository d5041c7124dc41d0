"""What a program's gradient costs beside its function: times of all sides, taken in turn."""

import time
from functools import partial
from statistics import median

import numpy as np

from ..figures import ratios

#: Samples of each side, seconds that a sample lasts at least, and those that all may take.
SAMPLES, SAMPLE, ENOUGH = 21, 0.001, 6.0
#: How much smaller a program is measured whose gradient calls Python in loops.
SMALLER = 8
GRADIENT, FUNCTION, BY_HAND, JAX = "gradient", "function", "by hand", "jax"


def explained(compiled, title):
    """The lines of a section of `explain`."""
    found, wanted = [], False
    for line in compiled.explain().splitlines():
        if not line.startswith(" "):
            wanted = line == f"{title}:"
        elif wanted:
            found.append(line.strip())
    return found


def runs_in_python(compiled):
    """What a compiled function leaves to Python, and how often its source does."""
    return explained(compiled, "operations that run in Python")


def copies(compiled):
    """The whole tensors that a compiled function copies in loops."""
    return explained(compiled, "copies of whole tensors in loops")


def sides(program, n, gradient, with_jax=False):
    """Functions without arguments, by side; each has been called, and so is compiled."""
    arguments = program.arguments(n)
    found = {
        FUNCTION: partial(program.function, *arguments),
        GRADIENT: partial(gradient, *arguments),
    }
    if program.adjoint is not None:
        found[BY_HAND] = partial(program.adjoint, *arguments)
    if with_jax and program.in_jax is not None:
        import jax

        found[JAX] = partial(program.jax_value_and_grad(), *jax.device_put(arguments))
    for run in found.values():
        run()
    return found


def samples(runs, clock=time.perf_counter):
    """Seconds of a call, sample by sample, of each side; one of each after the other.

    A call that is not timed comes first: a side finds in the caches what its own calls leave there,
    as in the loop of an optimiser, whether one call or many fill a sample, and does not wait for
    what the side before it left to its threads (JAX gives up to 54 MB back after its call, which
    took 4 ms in which no other thread could get memory). A side that takes long is sampled less
    often.
    """
    calls = {side: max(1, int(SAMPLE / _seconds(run, 1, clock))) for side, run in runs.items()}
    found, start = {side: [] for side in runs}, time.perf_counter()
    while len(found[GRADIENT]) < SAMPLES:
        for side, run in runs.items():
            run()
            found[side].append(_seconds(run, calls[side], clock))
        if time.perf_counter() - start > ENOUGH:
            break
    return found


def _seconds(run, calls, clock):
    start = clock()
    for _ in range(calls):
        run()
    return max(clock() - start, 1e-9) / calls


class Row:
    """What was measured of a program at a size.

    Medians, and those of ratios of neighbours; on a busy machine the lowest tenth of each side.
    """

    def __init__(self, n, found, busy=False):
        self.n, self.found, self._busy = n, found, busy

    def seconds(self, side):
        """Of a side; None where the program has no such side."""
        if side not in self.found:
            return None
        return np.quantile(self.found[side], 0.1) if self._busy else median(self.found[side])

    def ratio(self, to=FUNCTION):
        """The gradient's time over another side's."""
        if to not in self.found:
            return None
        if self._busy:
            return self.seconds(GRADIENT) / self.seconds(to)
        return median(ratios(self.found[GRADIENT], self.found[to]))


def measure(program, with_jax=False, busy=False):
    """Rows for the program's sizes, or for a smaller one only; and what runs in Python, or copies.

    A first call at a small size compiles, and shows by its report whether others take too long.
    ``busy`` takes the processors' time in place of the clock's.
    """
    gradient = program.value_and_grad()
    gradient(*program.arguments(program.small))
    python, copied = runs_in_python(gradient), copies(gradient)
    sizes = [program.n // SMALLER] if python else program.sizes
    clock = time.process_time if busy else time.perf_counter
    found = [samples(sides(program, n, gradient, with_jax), clock) for n in sizes]
    rows = [Row(n, of_size, busy) for n, of_size in zip(sizes, found, strict=True)]
    notes = [f"in Python: {line}" for line in python] + [f"copied in a loop: {c}" for c in copied]
    return rows, notes
