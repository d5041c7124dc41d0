"""Fit the orbit of a planet through an equation that is solved by bisection.

Where the planet is follows from Kepler's equation, which has no solution in closed form. Bisection
solves it, and bisection has a derivative of zero. `nbta.implicit.root` gives the derivative of the
solution instead.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import nbta


def kepler(anomaly, mean, eccentricity):
    """Kepler's equation, which is zero at the eccentric anomaly."""
    return anomaly - eccentricity * np.sin(anomaly) - mean


@nbta.implicit.root(kepler)
def solved(mean, eccentricity):
    """The eccentric anomaly, by bisection."""
    low, high = mean - 1.0, mean + 1.0
    while high - low > 1e-14 * (1.0 + abs(mean)):
        middle = 0.5 * (low + high)
        if kepler(middle, mean, eccentricity) < 0.0:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def velocity(orbit, t):
    """How fast the planet makes its star move along the line of sight, at a time."""
    amplitude, period, eccentricity, argument, start = orbit
    phase = (t - start) / period
    anomaly = solved(2.0 * np.pi * (phase - np.floor(phase)), eccentricity)
    x = np.cos(anomaly) - eccentricity
    y = np.sqrt(1.0 - eccentricity**2) * np.sin(anomaly)
    true = np.arctan2(y, x)
    return amplitude * (np.cos(true + argument) + eccentricity * np.cos(argument))


def misfit(orbit, times, observed, noise):
    """Half the squared distance to the observations, in units of their noise."""
    total = 0.0
    for i in range(len(times)):
        total += 0.5 * ((velocity(orbit, times[i]) - observed[i]) / noise) ** 2
    return total


def main(picture=None):
    """Make observations up, fit, print what was found, and draw it."""
    true = np.array([50.0, 10.0, 0.5, 0.8, 3.0])  # m/s, days, -, radians, days
    guess = np.array([40.0, 9.95, 0.35, 0.6, 3.2])
    generator = np.random.default_rng(1)
    times = np.sort(generator.uniform(0.0, 60.0, 50))
    many = nbta.function(nbta.vmap(velocity, (None, 0)))
    observed = many(true, times) + generator.normal(0.0, 4.0, 50)
    slope, data = nbta.value_and_grad(misfit), (times, observed, 4.0)
    fit = minimize(slope, guess, data, jac=True, method="BFGS", options={"gtol": 1e-3})
    print(f"amplitude, period, eccentricity, argument, start\ntrue   {true}")
    print(f"fitted {fit.x.round(3)}, after {fit.nfev} gradients")
    if picture:
        draw(picture, fit.x, times, observed, many)
    return fit.x, data


def draw(picture, orbit, times, observed, many):
    """The velocities, and those of one period over each other."""
    import matplotlib.pyplot as plt

    dense = np.linspace(0.0, 60.0, 400)
    period = orbit[1]
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, (left, right) = plt.subplots(1, 2, sharey=True, width_ratios=(2, 1))
        left.plot(dense, many(orbit, dense))
        left.plot(times, observed, "o", ms=4)
        left.set(xlabel="days", ylabel="m/s")
        once = np.linspace(0.0, period, 100)
        right.plot(once, many(orbit, once))
        right.plot(times % period, observed, "o", ms=4)
        right.set(xlabel="days of one period")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
