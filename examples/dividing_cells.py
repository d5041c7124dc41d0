"""Estimate the growth rate of a colony of cells that divide, whose number only the run knows.

The colony is a `nbta.TensorArray` that grows in a Numba function: a cell that reaches a volume of 2
appends its two daughters, and the daughter with the old pole grows more slowly. The volume of the
colony is differentiated with respect to the rate, through all divisions.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import nbta


@numba.njit(cache=True)
def grown(rate, ageing, end):
    """All cells of a colony until some time: time of birth, volume, rate of growth, mother."""
    cells = nbta.TensorArray(
        np.float64, dynamic_size=True, clear_after_read=False, element_shape=(4,)
    )
    cells.append(np.array([0.0, 1.0, rate, -1.0]))
    total, i = 0.0, 0
    while i < len(cells):
        birth, volume, speed, _ = cells.read(i)
        division = birth + np.log(2.0 / volume) / speed
        if division < end:
            cells.append(np.array([division, 0.9, speed * ageing, i]))
            cells.append(np.array([division, 1.1, speed, i]))
        else:
            total += volume * np.exp(speed * (end - birth))
        i += 1
    return total, cells.stack()


#: The same, compiled by nbta: Numba takes ten seconds longer to compile the methods of the array.
colony = nbta.function(grown)


@numba.njit(cache=True)
def misfit(parameters, times, measured):
    """Squared relative distance of the volumes to those that were measured."""
    rate, ageing = parameters
    total = 0.0
    for i in range(len(times)):
        volume, _ = grown(rate, ageing, times[i])
        total += (volume / measured[i] - 1.0) ** 2
    return total


def main(picture=None):
    """Make measurements up, fit, print what was found, and draw it."""
    true, guess = np.array([0.8, 0.95]), np.array([0.7, 1.0])
    times = np.linspace(0.5, 8.0, 16)
    volumes = np.array([colony(*true, t)[0] for t in times])
    measured = volumes * np.random.default_rng(0).normal(1.0, 0.03, 16)
    slope, bounds = nbta.value_and_grad(misfit), [(0.1, 1.0), (0.8, 1.0)]
    fit = minimize(slope, guess, (times, measured), jac=True, bounds=bounds)
    _, cells = colony(*fit.x, times[-1])
    print("rate, slower growth of the daughter with the old pole")
    print(f"true   {true}\nfitted {fit.x.round(3)}, after {fit.nfev} gradients; {len(cells)} cells")
    if picture:
        draw(picture, fit.x, times, measured)
    return fit.x, times, measured


def draw(picture, parameters, times, measured):
    """The volume of the colony, and the family tree of its cells."""
    import matplotlib.pyplot as plt

    dense = np.linspace(0.0, 8.0, 60)
    _, cells = colony(*parameters, 5.0)
    birth, mother = cells[:, 0], cells[:, 3].astype(int)
    place, width, death = np.zeros(len(cells)), np.ones(len(cells)), np.full(len(cells), 5.0)
    for i in range(1, len(cells)):
        death[mother[i]] = birth[i]
        width[i] = width[mother[i]] / 2
        place[i] = place[mother[i]] + (width[i] if i % 2 else -width[i])
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, (left, right) = plt.subplots(1, 2)
        left.hlines(place, birth, death, color="C2", lw=0.8)
        left.vlines(birth[1:], place[mother[1:]], place[1:], color="C2", lw=0.8)
        left.set(xlabel="time", yticks=[], title="cells until time 5")
        right.semilogy(dense, [colony(*parameters, t)[0] for t in dense], label="fit")
        right.semilogy(times, measured, "o", ms=4, label="measured")
        right.set(xlabel="time", title="volume of the colony")
        right.legend()
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
