"""Fit a survival model by Newton's method, with standard errors from the Hessian.

The data are the times until a relapse of leukaemia with a drug and without it (Freireich and
others, 1963); some patients left the study before. The likelihood is a loop with a branch for them.
"""

import sys
from pathlib import Path

import numba
import numpy as np

import nbta

DRUG = np.array([6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35])
LEFT = np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1])
PLACEBO = np.array([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23])
TIMES = np.concatenate([DRUG, PLACEBO]).astype(float)  # weeks
SEEN = np.concatenate([1 - LEFT, np.ones(21, int)])
TREATED = np.repeat([1.0, 0.0], 21)


@numba.njit(cache=True)
def cost(parameters, times, seen, treated):
    """Minus the logarithm of the likelihood of Weibull's distribution."""
    shape, intercept, drug = parameters
    total = 0.0
    for i in range(len(times)):
        z = shape * np.log(times[i]) + intercept + drug * treated[i]
        total += np.exp(z)
        if seen[i]:  # a relapse; else all that is known is that there was none so far
            total -= z + np.log(shape / times[i])
    return total


def main(picture=None):
    """Fit, print the estimates with their standard errors, and draw them."""
    data = TIMES, SEEN, TREATED
    slope, hessian = nbta.grad(cost), nbta.hessian(cost)
    x = np.array([1.0, -np.log(np.mean(TIMES)), 0.0])
    for step in range(20):
        gradient = slope(x, *data)
        if np.max(np.abs(gradient)) < 1e-10:
            break
        x = x - np.linalg.solve(hessian(x, *data), gradient)
        print(f"step {step + 1}: minus log-likelihood {cost(x, *data):.10f}")
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(x, *data))))
    for name, value, error in zip(("shape", "intercept", "drug"), x, errors, strict=True):
        print(f"{name:9} {value:7.4f} ± {error:.4f}")
    if picture:
        draw(picture, x)
    return x, errors


def draw(picture, parameters):
    """The share of patients without a relapse, observed (Kaplan and Meier) and fitted."""
    import matplotlib.pyplot as plt

    shape, intercept, drug = parameters
    weeks = np.linspace(0.01, 36.0, 100)
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        for treated, colour, label in ((1.0, "C0", "drug"), (0.0, "C1", "placebo")):
            fitted = np.exp(-np.exp(shape * np.log(weeks) + intercept + drug * treated))
            axes.plot(weeks, fitted, color=colour, label=label)
            times, seen = TIMES[treated == TREATED], SEEN[treated == TREATED]
            relapses = np.unique(times[seen == 1])
            stay = [1.0 - np.sum(seen[times == t]) / np.sum(times >= t) for t in relapses]
            share = [1.0, *np.cumprod(stay), np.prod(stay)]
            axes.step([0.0, *relapses, 36.0], share, ":", color=colour, where="post")
        axes.set(xlabel="weeks", ylabel="without a relapse", xlim=(0, 36), ylim=(0, 1.02))
        axes.legend()
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
