"""Fit one volatility model to many series of different lengths.

The loss is that of one series, an ordinary Numba loop. With `batch_axis=0` a list of arrays is a
batch: nbta runs the loss for each array, on several threads, and adds up values and gradients.
Nothing is padded or masked.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import nbta


@numba.njit(cache=True)
def natural(p):
    """Level, shock and memory of a GARCH(1, 1) model, of parameters without bounds."""
    shock = 1.0 / (1.0 + np.exp(-p[1]))
    return np.exp(p[0]), shock, (1.0 - shock) / (1.0 + np.exp(-p[2]))


@numba.njit(cache=True)
def deviations(p, returns):
    """Standard deviation of each day, given the returns of the days before."""
    level, shock, memory = natural(p)
    variance, result = level, np.empty_like(returns)
    for t in range(len(returns)):
        result[t] = np.sqrt(variance)
        surprise = shock * returns[t] ** 2 + memory * variance
        variance = (1.0 - shock - memory) * level + surprise
    return result


@numba.njit(cache=True)
def loss(p, returns):
    """Negative log-likelihood of one series."""
    spread = deviations(p, returns)
    return np.sum(np.log(spread) + 0.5 * (returns / spread) ** 2)


def simulate(p, noise):
    """Returns that follow the model."""
    returns = noise.copy()
    for t in range(len(noise)):
        returns[t] *= deviations(p, returns[: t + 1])[t]
    return returns


def main(picture=None):
    """Make series up, fit, print what was found, and draw it; gives the fit and the series."""
    random = np.random.default_rng(0)
    true, lengths = np.array([0.0, -1.7, 2.0]), random.integers(20, 300, 300)
    series = [simulate(true, random.normal(size=n)) for n in lengths]

    objective = nbta.value_and_grad(loss, batch_axis=0)  # of a list of arrays
    fit = minimize(objective, np.zeros(3), (series,), jac=True, method="BFGS")
    print(f"{len(series)} series of {min(lengths)} to {max(lengths)} days")
    for name, p in ("true  ", true), ("fitted", fit.x):
        print(name, "level {:.3f}, shock {:.3f}, memory {:.3f}".format(*natural(p)))
    if picture:
        draw(picture, fit.x, sorted(series, key=len)[175::-42])
    return fit.x, series


def draw(picture, p, series):
    """Some of the series, with two standard deviations of the fitted model."""
    import matplotlib.pyplot as plt

    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        for k, returns in enumerate(series):
            days, spread = np.arange(len(returns)), 0.2 * deviations(p, returns)
            axes.fill_between(days, k - spread, k + spread, color="C4", alpha=0.6, lw=0)
            axes.plot(days, k + 0.1 * returns, linewidth=0.8, color="C0")
        axes.plot([], [], color="C0", label="returns")
        axes.fill_between([], [], color="C4", alpha=0.6, label="±2 fitted standard deviations")
        axes.set(xlabel="day", yticks=[])
        axes.spines["left"].set_visible(False)
        axes.legend(loc="upper right")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
