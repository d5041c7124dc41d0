"""Fit spike trains of many cells on the workers of a Dask cluster.

The loss of one train is an ordinary Numba loop over its times, whose number differs among trains.
`nbta.distributed.value_and_grad` has the workers of a cluster compute values and gradients of
their shares. The results of one and of two workers are bitwise identical.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from distributed import Client, LocalCluster
from scipy.optimize import minimize

import nbta.distributed

END = 50.0


@numba.njit
def loss(log_rates, times):
    """Negative log-likelihood of a Hawkes process: each event makes more events likely."""
    base, jump, decay = np.exp(log_rates)
    total, excited, last = base * END, 0.0, 0.0
    for t in times:
        excited *= np.exp(-decay * (t - last))
        total -= np.log(base + excited)
        total += jump / decay * (1.0 - np.exp(-decay * (END - t)))
        excited += jump
        last = t
    return total


def simulate(log_rates, random):
    """Times of events, by thinning."""
    base, jump, decay = np.exp(log_rates)
    t, excited, times = 0.0, 0.0, []
    while True:
        most = base + excited
        wait = random.exponential(1.0 / most)
        t, excited = t + wait, excited * np.exp(-decay * wait)
        if t > END:
            return np.array(times)
        if random.uniform() * most < base + excited:
            times.append(t)
            excited += jump


def fit(trains, workers):
    """The fitted logarithms of rates, and value and gradient at the start, by so many workers."""
    start = np.log([1.0, 1.0, 3.0])
    with (
        LocalCluster(workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        slope = nbta.distributed.value_and_grad(loss, client)
        value, gradient = slope(start, trains)
        found = minimize(slope, start, (trains,), jac=True, method="BFGS", options={"gtol": 1e-3})
    return found.x, value, gradient


def main(picture=None):
    """Make trains up, fit them with one and two workers, and draw; gives both fits and trains."""
    random, true = np.random.default_rng(0), np.log([0.5, 1.2, 2.0])
    trains = [simulate(true, random) for _ in range(100)]
    fits = [fit(trains, workers) for workers in (1, 2)]
    for workers, (found, value, _) in enumerate(fits, 1):
        print(f"{workers} workers: loss {value!r} at first, fitted rates {np.exp(found).round(3)}")
    print(f"true rates {np.exp(true).round(3)}, {sum(map(len, trains))} events")
    if picture:
        draw(picture, fits[1][0], trains[:5])
    return fits, trains


def draw(picture, log_rates, trains):
    """Events of some trains, and the fitted rate of the last one."""
    import matplotlib.pyplot as plt

    base, jump, decay = np.exp(log_rates)
    dense = np.linspace(0.0, END, 500)
    since = dense[:, None] - trains[-1]
    rate = base + jump * np.sum(
        np.where(since > 0, np.exp(-decay * np.maximum(since, 0)), 0), axis=1
    )
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, (upper, lower) = plt.subplots(2, sharex=True, height_ratios=(2, 1))
        upper.eventplot(trains, colors=["grey"] * (len(trains) - 1) + ["C1"], linewidths=1)
        upper.set(yticks=[], ylabel="cells")
        lower.plot(dense, rate, color="C1")
        lower.set(xlabel="s", ylabel="rate")
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
