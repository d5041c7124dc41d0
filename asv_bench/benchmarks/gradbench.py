"""GradBench's evals: the objective and what is derived from it, in both styles."""

import time
import warnings
from functools import partial
from statistics import median

import nbta
from asv_bench.figures import ratios
from asv_bench.gradbench import EVALS, STYLES, find, functions

from . import common

#: Samples, or as many as end within these seconds.
SAMPLES, ENOUGH = 9, 4.0


class Derivatives:
    """An eval at its first size."""

    #: What hello asks for is too small to be measured.
    params = (EVALS[1:], STYLES)
    param_names = ("eval", "style")
    timeout = 300

    def setup(self, name, style):
        warnings.simplefilter("ignore", nbta.PerformanceWarning)
        of = find(name)
        arguments = of.arguments(of.generate(*of.sizes[0]))
        self.functions = functions(name, style)
        self.runs = [partial(self.functions[each], *arguments) for each in of.pair]
        for run in self.runs:
            run()

    def time_objective(self, name, style):
        """One call."""
        self.runs[0]()

    def time_derivatives(self, name, style):
        """One call."""
        self.runs[1]()

    def track_ratio(self, name, style):
        """Derivatives over the objective, both by nbta: a median of neighbours."""
        found, start = ([], []), time.perf_counter()
        while len(found[0]) < SAMPLES and (not found[0] or time.perf_counter() - start < ENOUGH):
            for seconds, run in zip(found, self.runs, strict=True):
                seconds.append(common.median_seconds(run, samples=1))
        return median(ratios(found[1], found[0]))

    track_ratio.unit = "ratio"
