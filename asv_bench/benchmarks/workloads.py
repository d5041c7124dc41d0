"""Functions that are compiled as graphs, with what they are called with.

The formulas are those of the peers' comparison and of the examples. Each is made once a process,
so that a setup before every sample is cheap.
"""

from functools import cache
from typing import Any, NamedTuple

import adaptive_ode
import fit_ode
import numpy as np

import nbta
from asv_bench.peers import cases
from asv_bench.peers.with_nbta import net_loss

#: Steps, batch, inputs, states of the nets where one size is enough.
SIZE = cases.SIZES[1]
ODES = {"Lotka-Volterra": adaptive_ode.lotka_volterra, "Van der Pol": adaptive_ode.van_der_pol}


class Work(NamedTuple):
    """A function of nbta's, and its arguments."""

    function: Any
    arguments: tuple

    def run(self):
        """Call it."""
        return self.function(*self.arguments)


@cache
def recurrence(cell, size=SIZE, compiled=True):
    """Value and gradient of a recurrent net's sum of squares, by all parameters."""
    x, params = cases.network(cell, size)
    return Work(nbta.value_and_grad(net_loss(cell), compiled=compiled), (params, x))


@cache
def solver(problem):
    """Value and gradient of the end of an adaptive solution, by its start and its rates."""
    slope, given = ODES[problem], cases.PROBLEMS[problem]

    def loss(start, rates):
        return adaptive_ode.end_loss(slope, start, rates, cases.END, cases.TOLERANCE)

    both = nbta.value_and_grad(loss, argnums=(0, 1), compiled=True)
    return Work(both, (np.array(given.start), np.array(given.rates)))


@cache
def steps(problem):
    """Steps that the solver takes for it, those that are tried again among them."""
    slope, given = ODES[problem], cases.PROBLEMS[problem]
    solve = nbta.function(
        lambda start, rates: adaptive_ode.solve(slope, start, rates, cases.END, cases.TOLERANCE),
        compiled=True,
    )
    _, taken, refused = solve(np.array(given.start), np.array(given.rates))
    return int(taken + refused)


@cache
def fit():
    """Value and gradient of the example's loss: 24 observations between an adaptive solver's steps.

    Its arrays grow.
    """
    observed = np.random.default_rng(0).uniform(1.0, 10.0, (len(fit_ode.TIMES), 2))
    both = nbta.value_and_grad(fit_ode.loss, has_aux=True, compiled=True)
    return Work(both, (np.log(fit_ode.TRUE), observed))


def powers(a, b):
    """The sum of items of products of small matrices, by loops short enough to be unrolled."""
    total, (n, m) = 0.0, a.shape
    for _ in range(100):
        c = np.zeros((n, m))
        for i in range(n):
            for j in range(m):
                for k in range(m):
                    c[i, j] += a[i, k] * b[k, j]
        for i in range(n):
            for j in range(m):
                a[i, j] = 0.1 * c[i, j] / (1.0 + c[i, j] * c[i, j])
        total += a[0, 1]
    return total


@cache
def small_matrices():
    """Value and gradient of loops in loops that each unroll: hundreds of reads of items."""
    rng = np.random.default_rng(0)
    both = nbta.value_and_grad(powers, compiled=True)
    return Work(both, (rng.random((8, 8)), rng.random((8, 8))))


#: Values and gradients that are built and compiled in several files, by name.
WORKS = {
    "tanh net": lambda: recurrence("tanh"),
    "LSTM": lambda: recurrence("lstm"),
    "adaptive ODE": lambda: solver("Lotka-Volterra"),
    "fit": fit,
    "small matrices": small_matrices,
}


def traced(work):
    """The graph of a work's function for its arguments, made anew, and the arrays among these."""
    fresh = nbta.api.tracing.Function(work.function._f, compiled=True)
    return fresh.bound((work.arguments, {}))
