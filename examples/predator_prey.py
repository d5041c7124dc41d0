"""Fit the rates of a predator-prey model through a solver that chooses its own steps.

The loss is an ordinary Numba function. How many steps its solver takes depends on the rates, and
so does the length of each step; `nbta.value_and_grad` differentiates the function as it is
written. Run with a file name, the example saves the fitted trajectory as a picture.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import nbta

TOLERANCE = 1e-3


@numba.njit
def misfit(rates, times, observed, fitted):
    """Squared distance of the model to the data, by a method with adaptive steps."""
    birth, hunting, death, growth = rates
    prey, hunters, t, step, total = 10.0, 5.0, 0.0, 0.1, 0.0
    for i in range(len(times)):
        while t < times[i]:
            step = min(step, times[i] - t)
            dp, dh = (birth - hunting * hunters) * prey, (growth * prey - death) * hunters
            p, h = prey + step * dp, hunters + step * dh  # Euler's step
            dp2, dh2 = (birth - hunting * h) * p, (growth * p - death) * h
            error = 0.5 * step * (abs(dp2 - dp) + abs(dh2 - dh)) + 1e-12
            if error < TOLERANCE:  # accept Heun's step, else try a shorter one
                prey += 0.5 * step * (dp + dp2)
                hunters += 0.5 * step * (dh + dh2)
                t += step
            step *= min(3.0, max(0.3, 0.9 * np.sqrt(TOLERANCE / error)))
        fitted[i, 0], fitted[i, 1] = prey, hunters
        total += (prey - observed[i, 0]) ** 2 + (hunters - observed[i, 1]) ** 2
    return total


def main(picture=None):
    """Make data up, fit, print what was found, and draw it."""
    true, guess = np.array([1.1, 0.4, 0.4, 0.1]), np.array([0.9, 0.3, 0.5, 0.12])
    times = np.linspace(0.5, 12.0, 24)
    clean, fitted = np.zeros((24, 2)), np.zeros((24, 2))
    misfit(true, times, clean, clean)
    observed = clean + np.random.default_rng(0).normal(0.0, 0.3, clean.shape)

    slope = nbta.value_and_grad(misfit)  # the gradient of the function above
    fit = minimize(slope, guess, (times, observed, fitted), jac=True, method="BFGS")
    print(f"true rates   {true}\nfitted rates {fit.x.round(3)}, after {fit.nfev} gradients")
    if picture:
        draw(picture, guess, fit.x, times, observed)
    return fit.x


def draw(picture, guess, rates, times, observed):
    """The data, the trajectory of the first guess and that of the fit."""
    import matplotlib.pyplot as plt

    dense = np.linspace(0.05, 12.0, 240)
    nothing, first, last = np.zeros((240, 2)), np.zeros((240, 2)), np.zeros((240, 2))
    misfit(guess, dense, nothing, first)
    misfit(rates, dense, nothing, last)
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        for k, name in enumerate(("prey", "predators")):
            axes.plot(times, observed[:, k], "o", color=f"C{k}", label=name)
            axes.plot(dense, first[:, k], ":", color=f"C{k}", alpha=0.7)
            axes.plot(dense, last[:, k], color=f"C{k}")
        axes.plot([], [], ":", color="grey", label="first guess")
        axes.plot([], [], color="grey", label="fit")
        axes.set(xlabel="time", ylim=(-0.5, 1.25 * observed.max()))
        axes.legend(ncols=4, loc="upper center")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
