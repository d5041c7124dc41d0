"""The kinds of random programs: how each is made, checked, and cut down."""

from typing import NamedTuple

import frontend_random

from . import (
    accumulators,
    callers,
    derivatives,
    fillings,
    grow,
    item_nests,
    lengths,
    lookups,
    loops,
    menu,
    nests,
    program,
    raw,
    raw_maker,
    surface,
    ways,
)
from .drawn import whole


class Family(NamedTuple):
    """``make(seed)`` gives a program, ``check(program, machine_code, counts)`` runs it."""

    make: object
    check: object
    shrink: object = program.shrunk


def graph(seed):
    """Expressions: mostly of float64, some of float32 and complex numbers, some with NaN."""
    kind = seed % 10
    if kind == 9:
        return grow.program(seed, menu.OF_COMPLEX, 30, "complex128", outputs=8)
    if kind == 8:
        return grow.program(seed, menu.GRAPH, 40, "float32", outputs=8)
    return grow.program(seed, menu.GRAPH, 60, hard=kind == 7, outputs=12, others=2)


def loop(seed):
    """Loops, branches and arrays in each other."""
    dtype = "float32" if seed % 10 == 9 else "float64"
    return grow.program(seed, loops.LOOP, 14, dtype, outputs=6, others=2)


def gradient(seed):
    """Programs with and without loops that have gradients."""
    several = loops.LOOP if seed % 2 else menu.GRAPH
    return grow.program(seed, several, 10, outputs=3, refused=derivatives.ROUGH)


def mutation(seed):
    """Loops and branches whose functions change their values by operators in place."""
    return grow.program(seed, loops.MUTATING, 10, outputs=6, others=1)


def empty(seed):
    """Scans and folds in each other, run with rows and columns of which there are none or few."""
    choice = (0, 0, 1, 2)
    return grow.program(seed, loops.NESTED, 8, outputs=5, others=3, choice=choice)


def empty_gradient(seed):
    """Gradients of the same."""
    choice = (0, 0, 1, 2)
    return grow.program(
        seed, loops.NESTED, 5, outputs=3, others=2, refused=derivatives.ROUGH, choice=choice
    )


FAMILIES = {
    "graph": Family(graph, ways.check),
    "loop": Family(loop, ways.check),
    "gradient": Family(gradient, derivatives.check),
    "mutation": Family(mutation, ways.check),
    "empty": Family(empty, ways.check),
    "empty gradient": Family(empty_gradient, derivatives.check),
    "accumulator": Family(accumulators.program, accumulators.check, accumulators.shrunk),
    "lookup": Family(lookups.program, lookups.check, accumulators.shrunk),
    "caller": Family(callers.program, callers.check, whole),
    "filling": Family(fillings.program, fillings.check, whole),
    "nest": Family(nests.program, nests.check, whole),
    "item nest": Family(item_nests.program, item_nests.check, whole),
    "lengths": Family(lengths.program, lengths.check),
    "code": Family(frontend_random.program, frontend_random.check, frontend_random.shrunk),
    "conditions": Family(raw_maker.conditions, raw.check, raw.shrunk),
    "surface": Family(surface.program, surface.check, surface.shrunk),
    "raw": Family(raw_maker.program, raw.check, raw.shrunk),
}


def failure(family, program, machine_code=False, counts=None):
    """The error of a program; None where all is well. Any exception counts."""
    try:
        family.check(program, machine_code, counts)
    except Exception as error:
        return error
    return None


def word(error):
    """What two errors of one cause have in common."""
    return getattr(error, "stage", type(error).__name__)


def cut_down(family, program, machine_code, error, seconds=120.0):
    """A small program that fails in the same way."""

    def fails(candidate):
        other = failure(family, candidate, machine_code)
        return other is not None and word(other) == word(error)

    return family.shrink(program, fails, seconds)
