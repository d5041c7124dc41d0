"""Find where a NaN comes from, and mend that line.

Potassium currents of a nerve cell are fitted to a record of voltage steps. One rate of the model
is 0/0 at -55 mV, a voltage that the steps visit, so the loss is NaN. Inside `nbta.debug.nans()`
the first NaN is an error that names operation, line and iteration.
"""

import sys
from pathlib import Path

import numba
import numpy as np
from scipy.optimize import minimize

import nbta

VOLTS, DT = np.arange(-75.0, 50.0, 10.0), 0.05  # mV, ms


@numba.njit(cache=True)
def opening(x):
    """How fast channels open, as Hodgkin and Huxley wrote it."""
    return 0.1 * x / (1.0 - np.exp(-x))


@numba.njit(cache=True)
def mended(x):
    """The same with its limit at 0."""
    if abs(x) < 1e-5:
        return 0.1 + 0.05 * x
    return 0.1 * x / (1.0 - np.exp(-x))


@numba.njit
def currents(p, volts, steps, rate):
    """Currents after steps from rest to each voltage; p is the conductance and a shift in mV."""
    result = np.zeros((len(volts), steps))
    for k in range(len(volts)):
        gate = 0.32  # how many channels are open at rest
        for t in range(steps):
            v = volts[k] - p[1]
            gate += DT * (rate((v + 55.0) / 10.0) * (1.0 - gate))
            gate -= DT * 0.125 * np.exp(-(v + 65.0) / 80.0) * gate
            result[k, t] = p[0] * gate**4 * (volts[k] + 77.0)
    return result


def misfit(p, observed, rate):
    """Mean squared distance to the observed currents."""
    return np.mean((currents(p, VOLTS, observed.shape[1], rate) - observed) ** 2)


def main(picture=None):
    """Meet the NaN, find it, fit the mended model, and draw it; gives the error and the fit."""
    true, start = np.array([36.0, 4.0]), np.array([20.0, 0.0])
    observed = currents(true, VOLTS, 200, mended)
    observed += np.random.default_rng(0).normal(0.0, 40.0, observed.shape)

    slope, message = nbta.value_and_grad(misfit, compiled=True), ""
    print("value and gradient:", *slope(start, observed, opening))
    try:
        with nbta.debug.nans():
            slope(start, observed, opening)
    except nbta.InvalidArgumentError as error:
        message = str(error)
        print(message)

    fit = minimize(slope, start, (observed, mended), jac=True, method="BFGS")
    print(f"conductance and shift: true {true}, fitted {fit.x.round(3)}")
    if picture:
        draw(picture, fit.x, observed)
    return message, fit.x


def draw(picture, p, observed):
    """The observed and fitted currents."""
    import matplotlib.pyplot as plt

    times = DT * np.arange(observed.shape[1])
    fitted = currents(p, VOLTS, len(times), mended)
    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        for k in range(1, len(VOLTS), 2):
            axes.plot(times[::5], observed[k, ::5], ".", color="grey", markersize=3)
            axes.plot(times, fitted[k], color="C0")
        axes.plot(times, fitted[2], color="C1", label="-55 mV, where the loss was NaN")
        axes.plot([], [], color="C0", label=", ".join(f"{v:.0f}" for v in VOLTS[1::2]) + " mV")
        axes.set(xlabel="ms", ylabel="µA/cm²", ylim=(-100, 1.4 * observed.max()))
        axes.legend(ncols=2)
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
