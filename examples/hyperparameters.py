"""Choose a learning rate and penalties by gradients through the training that uses them.

A polynomial is fitted to few points by gradient descent with momentum. The error on other points is
differentiated with respect to the learning rate and to a penalty for each coefficient: a gradient
of a loop that takes a gradient in each of its steps.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import nbta

DEGREE, STEPS = 11, 300


def features(x):
    """Chebyshev polynomials, and so numbers of one size."""
    return np.cos(np.arange(DEGREE + 1) * np.arccos(x)[:, None])


def training_loss(weights, penalties, x, y):
    """Squared error, and a penalty for each weight."""
    return np.mean((features(x) @ weights - y) ** 2) + np.sum(penalties * weights**2)


def trained(hyper, x, y):
    """Weights after some steps of gradient descent with momentum."""
    rate, penalties = np.exp(hyper[0]), np.exp(hyper[1:])
    weights, velocity = np.zeros(DEGREE + 1), np.zeros(DEGREE + 1)
    slope = nbta.grad(training_loss)
    for _ in range(STEPS):
        velocity = 0.9 * velocity - rate * slope(weights, penalties, x, y)
        weights = weights + velocity
    return weights


def validation_loss(hyper, x, y, x_other, y_other):
    """Squared error on points that were not trained on."""
    return np.mean((features(x_other) @ trained(hyper, x, y) - y_other) ** 2)


def main(picture=None):
    """Make data up, choose, print what was found, and draw it."""
    generator = np.random.default_rng(3)
    x = generator.uniform(-1.0, 1.0, 60)
    y = np.sin(4.0 * x) + generator.normal(0.0, 0.3, 60)
    parts = x[:20], y[:20], x[20:], y[20:]
    guess = np.log([0.01, *np.full(DEGREE + 1, 1e-4)])
    bounds = [(-8.0, -2.5), *[(-12.0, 3.0)] * (DEGREE + 1)]
    slope = nbta.value_and_grad(validation_loss)
    fit = minimize(slope, guess, parts, jac=True, bounds=bounds, options={"maxiter": 40})
    print(f"validation loss {slope(guess, *parts)[0]:.4f} before, {fit.fun:.4f} after")
    print(f"learning rate {np.exp(guess[0]):.4f} before, {np.exp(fit.x[0]):.4f} after")
    if picture:
        draw(picture, guess, fit.x, parts)
    return guess, fit.x, parts


def draw(picture, guess, hyper, parts):
    """The data with both polynomials, and the penalties that were chosen."""
    import matplotlib.pyplot as plt

    x, y, x_other, y_other = parts
    dense = np.linspace(-1.0, 1.0, 200)
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, (left, right) = plt.subplots(1, 2, width_ratios=(2, 1))
        left.plot(x, y, "o", color="C1", ms=4, label="trained on")
        left.plot(x_other, y_other, "o", color="C4", ms=2, label="validated on")
        for values, line, label in ((guess, ":", "before"), (hyper, "-", "after")):
            left.plot(dense, features(dense) @ trained(values, x, y), line, color="C0", label=label)
        left.set(ylim=(-2, 3), xticks=(-1, -0.5, 0, 0.5, 1))
        left.legend(ncols=2, loc="upper center")
        right.semilogy(np.exp(hyper[1:]), "o", color="C0")
        right.set(xlabel="degree", title="penalty")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
