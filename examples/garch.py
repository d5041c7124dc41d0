"""Estimate the GARCH(1,1) model of a time series whose volatility changes, by maximum likelihood.

Each day's variance depends on the day before, so the likelihood is a loop that no array operation
replaces. `nbta.value_and_grad` gives its gradient for the fit, and `nbta.hessian` the standard
errors.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import nbta


@numba.njit(cache=True)
def cost(parameters, returns):
    """Minus the logarithm of the likelihood."""
    omega, alpha, beta = parameters
    variance = np.mean(returns**2)
    total = 0.0
    for r in returns:
        total += 0.5 * (np.log(2.0 * np.pi * variance) + r**2 / variance)
        variance = omega + alpha * r**2 + beta * variance
    return total


@numba.njit(cache=True)
def simulate(parameters, n, seed):
    """Returns, and their variances."""
    np.random.seed(seed)
    omega, alpha, beta = parameters
    returns, variances = np.zeros(n), np.zeros(n)
    variance = omega / (1.0 - alpha - beta)
    for t in range(n):
        variances[t] = variance
        returns[t] = np.sqrt(variance) * np.random.normal()
        variance = omega + alpha * returns[t] ** 2 + beta * variance
    return returns, variances


@numba.njit(cache=True)
def filtered(parameters, returns):
    """The variance of each return, given those before it."""
    omega, alpha, beta = parameters
    variances = np.full(len(returns), np.mean(returns**2))
    for t in range(len(returns) - 1):
        variances[t + 1] = omega + alpha * returns[t] ** 2 + beta * variances[t]
    return variances


def main(picture=None):
    """Make data up, fit, print what was found, and draw it."""
    true, guess = np.array([0.03, 0.12, 0.86]), np.array([0.2, 0.2, 0.5])
    returns, variances = simulate(true, 2000, 7)
    bounds = [(1e-6, None), (0.0, 1.0), (0.0, 1.0)]
    fit = minimize(nbta.value_and_grad(cost), guess, (returns,), jac=True, bounds=bounds)
    errors = np.sqrt(np.diag(np.linalg.inv(nbta.hessian(cost)(fit.x, returns))))
    print(f"omega, alpha, beta: true {true}, found after {fit.nfev} gradients")
    print(f"fitted          {fit.x.round(3)}\nstandard errors {errors.round(3)}")
    if picture:
        draw(picture, fit.x, returns, variances)
    return fit.x, errors, returns


def draw(picture, parameters, returns, variances):
    """The days around the most volatile one, with true and estimated volatility."""
    import matplotlib.pyplot as plt

    first = max(0, int(np.argmax(variances)) - 150)
    days = np.arange(first, min(first + 300, len(returns)))
    estimated = 2.0 * np.sqrt(filtered(parameters, returns)[days])
    true = 2.0 * np.sqrt(variances[days])
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        label = "twice the estimated volatility"
        axes.fill_between(days, -estimated, estimated, color="C0", alpha=0.25, lw=0, label=label)
        axes.plot(days, true, "--", color="C0", lw=1, label="twice the true one")
        axes.plot(days, returns[days], color="C1", lw=0.8, label="returns")
        axes.set(xlabel="day", xlim=(days[0], days[-1]), ylim=(None, 1.4 * true.max()))
        axes.legend(ncols=3, loc="upper center")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
