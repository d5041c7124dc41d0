"""Estimate a stochastic cycle by maximum likelihood through a Kalman filter.

The filter is the textbook's loop over observations, with matrix products and a branch that leaves
out missing values. `nbta.value_and_grad` gives SciPy's `minimize` the gradient of its likelihood.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import nbta


@numba.njit(cache=True)
def predictions(parameters, observed):
    """Means and variances of each observation, given those before it; NaN is a missing one."""
    decay, frequency, shock, noise = parameters
    c, s = decay * np.cos(frequency), decay * np.sin(frequency)
    turn = np.array([[c, s], [-s, c]])
    state = np.zeros(2)
    cov = shock**2 / (1.0 - decay**2) * np.eye(2)  # the stationary one
    means, variances = np.zeros(len(observed)), np.zeros(len(observed))
    for t in range(len(observed)):
        state = turn @ state
        cov = turn @ cov @ turn.T + shock**2 * np.eye(2)
        means[t] = state[0]
        variances[t] = cov[0, 0] + noise**2
        if not np.isnan(observed[t]):
            gain = cov[:, 0] / variances[t]
            state = state + gain * (observed[t] - means[t])
            cov = cov - np.outer(gain, cov[0])
    return means, variances


@numba.njit(cache=True)
def cost(parameters, observed):
    """Minus the logarithm of the likelihood."""
    means, variances = predictions(parameters, observed)
    total = 0.0
    for t in range(len(observed)):
        if not np.isnan(observed[t]):
            error = observed[t] - means[t]
            total += 0.5 * (np.log(2.0 * np.pi * variances[t]) + error**2 / variances[t])
    return total


@numba.njit(cache=True)
def simulate(parameters, n, seed):
    """Observations of a cycle that random shocks turn and keep alive."""
    np.random.seed(seed)
    decay, frequency, shock, noise = parameters
    x, y = shock / np.sqrt(1.0 - decay**2) * np.random.normal(0.0, 1.0, 2)
    observed = np.zeros(n)
    for t in range(n):
        c, s = decay * np.cos(frequency), decay * np.sin(frequency)
        x, y = c * x + s * y, c * y - s * x
        x += shock * np.random.normal()
        y += shock * np.random.normal()
        observed[t] = x + noise * np.random.normal()
    return observed


def main(picture=None):
    """Make data up, fit, print what was found, and draw it."""
    true, guess = np.array([0.98, 0.25, 0.3, 0.8]), np.array([0.9, 0.35, 0.5, 0.5])
    observed = simulate(true, 200, 1)
    observed[90:115] = np.nan
    bounds = [(0.0, 0.999), (0.0, np.pi), (0.01, None), (0.01, None)]
    fit = minimize(nbta.value_and_grad(cost), guess, (observed,), jac=True, bounds=bounds)
    print("decay, frequency, shock, noise")
    print(f"true   {true}\nfitted {fit.x.round(3)}, after {fit.nfev} gradients")
    if picture:
        draw(picture, fit.x, observed)
    return fit.x, observed


def draw(picture, parameters, observed):
    """The observations, and what the filter expected before it saw each."""
    import matplotlib.pyplot as plt

    means, variances = nbta.function(predictions)(parameters, observed)
    t, spread = np.arange(len(observed)), 2.0 * np.sqrt(variances)
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        axes.fill_between(t, means - spread, means + spread, color="C0", alpha=0.25, lw=0)
        axes.plot(
            t, means, color="C0", label="prediction of the next, with two standard deviations"
        )
        axes.plot(t, observed, ".", color="C1", ms=4, label="observations")
        axes.set(xlabel="time", xlim=(0, len(t)), ylim=(-6, 8))
        axes.legend(ncols=2, loc="upper center")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
