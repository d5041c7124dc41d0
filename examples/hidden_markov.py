"""Fit a hidden Markov model of earthquakes, and find its states by one more gradient.

The likelihood is the forward algorithm in log space. Its gradient with respect to the logarithms
of the emission probabilities is the probability of each state at each time, given all data, for
which one otherwise writes the backward algorithm.
"""

import math
import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import nbta

#: Earthquakes of magnitude 7 or more in the years 1900 to 2006 (Zucchini and MacDonald, 2009).
COUNTS = np.array([
    13, 14, 8, 10, 16, 26, 32, 27, 18, 32, 36, 24, 22, 23, 22, 18, 25, 21, 21, 14, 8, 11, 14,
    23, 18, 17, 19, 20, 22, 19, 13, 26, 13, 14, 22, 24, 21, 22, 26, 21, 23, 24, 27, 41, 31, 27,
    35, 26, 28, 36, 39, 21, 17, 22, 17, 19, 15, 34, 10, 15, 22, 18, 15, 20, 15, 22, 19, 16, 30,
    27, 29, 23, 20, 16, 21, 21, 25, 16, 18, 15, 18, 14, 10, 15, 8, 15, 6, 11, 8, 7, 18, 16, 13,
    12, 13, 20, 15, 16, 12, 18, 15, 16, 13, 15, 16, 11, 11,
])  # fmt: skip


@numba.njit(cache=True)
def log_sum_exp(x):
    """The logarithm of the sum of exponentials, without overflow."""
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))


@numba.njit(cache=True)
def log_likelihood(log_emission, log_transition, log_start):
    """The forward algorithm."""
    n, k = log_emission.shape
    forward = log_start + log_emission[0]
    for t in range(1, n):
        after = np.zeros(k)
        for j in range(k):
            after[j] = log_sum_exp(forward + log_transition[:, j]) + log_emission[t, j]
        forward = after
    return log_sum_exp(forward)


@numba.njit(cache=True)
def model(parameters, counts):
    """Logarithms of emission, transition and first probabilities, from unbounded parameters."""
    k = int(np.sqrt(len(parameters)))
    rates, weights = parameters[:k], parameters[k:].reshape(k, k - 1)
    emission, transition = np.zeros((len(counts), k)), np.zeros((k, k))
    for i in range(k):
        for t in range(len(counts)):
            emission[t, i] = counts[t] * rates[i] - np.exp(rates[i]) - math.lgamma(counts[t] + 1.0)
        transition[i, :i], transition[i, i + 1 :] = weights[i, :i], weights[i, i:]
        transition[i] -= log_sum_exp(transition[i])
    balance = np.eye(k) - np.exp(transition) + np.ones((k, k))
    start = np.linalg.solve(balance.T, np.ones(k))  # the stationary distribution
    return emission, transition, np.log(start)


@numba.njit(cache=True)
def cost(parameters, counts):
    """Minus the logarithm of the likelihood."""
    emission, transition, start = model(parameters, counts)
    return -log_likelihood(emission, transition, start)


def main(picture=None):
    """Fit three states, print what was found, and draw it."""
    guess = np.concatenate([np.log([10.0, 20.0, 30.0]), np.full(6, -2.0)])
    slope = nbta.value_and_grad(cost, compiled=True)
    fit = minimize(slope, guess, (COUNTS,), jac=True, method="BFGS")
    rates = np.exp(fit.x[:3])
    fitted = nbta.function(model)(fit.x, COUNTS)  # traced: Numba compiles nothing
    states = nbta.grad(log_likelihood)(*fitted)  # given all data
    print(f"minus log-likelihood {fit.fun:.4f}, after {fit.nfev} gradients")
    print(f"earthquakes a year   {rates.round(3)}\nyears in each state  {states.sum(0).round(1)}")
    if picture:
        draw(picture, rates, states)
    return fit, states


def draw(picture, rates, states):
    """Counts, what is expected of them, and the probability of each state."""
    import matplotlib.pyplot as plt

    years = 1900 + np.arange(len(COUNTS))
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, (upper, lower) = plt.subplots(2, 1, sharex=True, height_ratios=(2, 1))
        upper.plot(years, COUNTS, "o", color="C1", ms=3, label="earthquakes in a year")
        upper.plot(years, states @ rates, color="C0", label="expected, given all data")
        upper.legend(ncols=2, loc="upper right")
        upper.set(ylim=(0, 55))
        lower.stackplot(years, states.T, colors=("C5", "C2", "C4"))
        lower.set(ylabel="states", yticks=(0, 1), xlim=(1900, 2006), ylim=(0, 1))
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
