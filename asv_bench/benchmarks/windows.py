"""Window functions over a series, and sweeps over a grid: derivatives over the function itself."""

import time
import warnings
from functools import partial
from statistics import median

import numpy as np
from numba import njit

import nbta
from asv_bench.figures import ratios

#: Items of a series; points and steps of a grid.
SERIES, POINTS = 3_000, 600
#: Samples of a ratio, and seconds that each lasts at least.
SAMPLES, SAMPLE = 15, 0.005


@njit
def forward_fill(x, w):
    """The last number that is not missing."""
    out, last = np.empty(len(x)), np.nan
    for i in range(len(x)):
        if not np.isnan(x[i]):
            last = x[i]
        out[i] = last
    return np.sum(out * w)


@njit
def true_range(x, w):
    """The largest of three distances between neighbours."""
    out = np.zeros(len(x))
    for i in range(2, len(x)):
        out[i] = max(x[i] - x[i - 1], abs(x[i] - x[i - 2]), abs(x[i - 1] - x[i - 2]))
    return np.sum(out * w)


@njit
def future_mean(x, w):
    """The mean of the next ten items."""
    out = np.zeros(len(x))
    for i in range(len(x) - 10):
        s = 0.0
        for j in range(i + 1, i + 11):
            s += x[j]
        out[i] = s / 10
    return np.sum(out * w)


@njit
def expanding_deviation(x, w):
    """The standard deviation of all items so far, by Welford's sums."""
    out, mean, squares = np.zeros(len(x)), 0.0, 0.0
    for i in range(len(x)):
        d = x[i] - mean
        mean += d / (i + 1)
        squares += d * (x[i] - mean)
        if i > 0:
            out[i] = np.sqrt(squares / i)
    return np.sum(out * w)


@njit
def heat(u, w):
    """A new grid in each step, between ends that stay."""
    for _ in range(len(w)):
        new = np.empty(len(u))
        new[0] = u[0]
        new[len(u) - 1] = u[len(u) - 1]
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.2 * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u = new
    return np.sum(u * w)


@njit
def american(u, w):
    """A new grid in each step, of the larger of two values."""
    first = u
    for _ in range(len(w)):
        new = np.empty(len(u))
        new[0] = first[0]
        new[len(u) - 1] = first[len(u) - 1]
        for i in range(1, len(u) - 1):
            new[i] = max(0.999 * (0.3 * u[i - 1] + 0.4 * u[i] + 0.3 * u[i + 1]), first[i])
        u = new
    return np.sum(u * w)


@njit
def tree(u, w):
    """A grid in place that becomes shorter."""
    v = u.copy()
    for t in range(len(v) - 1, 0, -1):
        for j in range(t):
            v[j] = w[t] * (0.6 * v[j + 1] + 0.4 * v[j])
    return v[0]


@njit
def cheapest_path(u, w):
    """A table of smallest costs from the first row to the last."""
    n = len(u)
    cost = np.empty((n, n))
    for j in range(n):
        cost[0, j] = u[j]
    for i in range(1, n):
        for j in range(n):
            best = cost[i - 1, j]
            if j > 0 and cost[i - 1, j - 1] < best:
                best = cost[i - 1, j - 1]
            if j < n - 1 and cost[i - 1, j + 1] < best:
                best = cost[i - 1, j + 1]
            cost[i, j] = best + u[j] * w[i]
    return np.sum(cost[n - 1])


LENGTHS = {
    **dict.fromkeys((forward_fill, true_range, future_mean, expanding_deviation), SERIES),
    **dict.fromkeys((heat, american, tree, cheapest_path), POINTS),
}
FUNCTIONS = {function.__name__: function for function in LENGTHS}
DERIVATIVES = ("value and gradient", "jvp")


class Ratios:
    """A derivative over the plain function, in CPU seconds."""

    params = (tuple(FUNCTIONS), DERIVATIVES)
    param_names = ("function", "derivative")
    timeout = 300

    def setup(self, name, derivative):
        warnings.simplefilter("ignore", nbta.PerformanceWarning)
        function = FUNCTIONS[name]
        random = np.random.default_rng(0)
        given = [random.uniform(0.9, 1.1, LENGTHS[function]) for _ in range(2)]
        if derivative == "jvp":
            run = partial(nbta.jvp, function, tuple(given), tuple(map(np.ones_like, given)))
        else:
            run = partial(nbta.value_and_grad(function, (0, 1)), *given)
        self.runs = [partial(function, *given), run]
        for run in self.runs:
            _seconds(run, 1.0)

    def track_ratio(self, name, derivative):
        """A median of neighbours."""
        found = ([], [])
        for _ in range(SAMPLES):
            for seconds, run in zip(found, self.runs, strict=True):
                seconds.append(_seconds(run, SAMPLE))
        return median(ratios(found[1], found[0]))

    track_ratio.unit = "ratio"


def _seconds(run, least):
    """CPU seconds of a call, by as many as last some seconds."""
    calls, start = 0, time.process_time()
    while time.process_time() - start < least:
        run()
        calls += 1
    return (time.process_time() - start) / calls
