"""Values and gradients of ordinary loop programs, beside their plain functions, as they grow."""

import math
import time
import warnings
from functools import cache, partial
from statistics import median

import numpy as np

import nbta
from asv_bench.figures import ratios
from asv_bench.programs import PROGRAMS, measure

from . import common


@cache
def gradient_of(name):
    """Value and gradient of a program, compiled; whether it calls Python in loops."""
    warnings.simplefilter("ignore", nbta.PerformanceWarning)
    program = PROGRAMS[name]
    gradient = program.value_and_grad()
    gradient(*program.arguments(program.small))
    return gradient, measure.runs_in_python(gradient)


class _Program:
    """At its size, or at an eighth of that where the gradient is slow."""

    params = (tuple(PROGRAMS),)
    param_names = ("program",)
    timeout = 300

    def setup(self, name):
        self.program = PROGRAMS[name]
        self.gradient, slow = gradient_of(name)
        self.n = self.program.n // (measure.SMALLER if slow else 1)
        self.arguments = self.program.arguments(self.n)
        self.program.function(*self.arguments)
        self.gradient(*self.arguments)


class Programs(_Program):
    """The cost of a gradient."""

    def time_value_and_grad(self, name):
        """One call."""
        self.gradient(*self.arguments)

    def track_ratio(self, name):
        """Value and gradient over the plain function: a median of neighbours."""
        runs = {
            measure.GRADIENT: partial(self.gradient, *self.arguments),
            measure.FUNCTION: partial(self.program.function, *self.arguments),
        }
        found = measure.samples(runs)
        return median(ratios(found[measure.GRADIENT], found[measure.FUNCTION]))

    track_ratio.unit = "ratio"

    def track_memory(self, name):
        """What the compiled function keeps for its next call; tapes are most of it."""
        return common.buffer_bytes(self.gradient)

    track_memory.unit = "bytes"


def directional(program):
    """Derivatives of a program along directions, of first and of second order."""

    def parted(args):
        def loss(*xs):
            given = list(args)
            for place, x in zip(program.argnums, xs, strict=True):
                given[place] = x
            return program.loss(*given)

        return loss, tuple(args[place] for place in program.argnums)

    def jvp(args, directions):
        return nbta.jvp(*parted(args), directions)

    def hvp(args, directions):
        return nbta.hvp(*parted(args), directions)

    return nbta.function(jvp, compiled=True), nbta.function(hvp, compiled=True)


class Directions:
    """Derivatives along a direction, in forward mode, of some programs."""

    params = (("recurrence", "kalman filter", "lstm", "soft-dtw", "heat", "n-body"),)
    param_names = ("program",)
    timeout = 300

    def setup(self, name):
        program = PROGRAMS[name]
        self.arguments = program.arguments(program.n)
        self.directions = tuple(np.ones_like(self.arguments[place]) for place in program.argnums)
        self.jvp, self.hvp = directional(program)
        self.jvp(self.arguments, self.directions)
        self.hvp(self.arguments, self.directions)

    def time_jvp(self, name):
        """One call."""
        self.jvp(self.arguments, self.directions)

    def time_hvp(self, name):
        """One call."""
        self.hvp(self.arguments, self.directions)


class Growth(_Program):
    """The exponent of times in the size n, from n to 4n: that of the plain function is the aim."""

    def track_exponent(self, name):
        """Of value and gradient."""
        return self._exponent(self.gradient)

    track_exponent.unit = "exponent"

    def track_function_exponent(self, name):
        """Of the plain function."""
        return self._exponent(self.program.function)

    track_function_exponent.unit = "exponent"

    def _exponent(self, function):
        """By pairs of a call at each size; those at 4n are as few as need be."""
        longer = self.program.arguments(4 * self.n)
        function(*longer)
        found, start = [], time.perf_counter()
        while len(found) < measure.SAMPLES and time.perf_counter() - start < measure.ENOUGH:
            one, other = (
                common.median_seconds(partial(function, *given), samples=1)
                for given in (self.arguments, longer)
            )
            found.append(math.log(other / one, 4))
        return median(found)
