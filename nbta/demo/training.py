"""Training the network on all earlier windows of a record, and its forecast of the last years."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

import nbta
from nbta.demo import data, network

HIDDEN = 16
SEED = 1958


class Forecast(NamedTuple):
    """A forecast of the held-out weeks, and how good it is."""

    values: np.ndarray  # (HORIZON,)
    naive: np.ndarray  # (HORIZON,)
    origin: int
    rmse: float
    mae: float
    naive_rmse: float
    naive_mae: float


class Task(NamedTuple):
    """What there is to learn, and the weights to begin with."""

    record: data.Record
    origin: int  # where the held-out weeks begin
    scale: float
    windows: data.Windows
    start: network.Parameters


def prepare(record: data.Record) -> Task:
    """Hold the last `HORIZON` weeks out, and make windows of all that lies before them."""
    origin = len(record.values) - data.HORIZON
    scale = data.scale_of(record, origin)
    # The last window to practise ends where the held-out weeks begin.
    origins = np.arange(origin - data.HORIZON, data.HISTORY - 1, -data.STRIDE)[::-1]
    windows = data.make_windows(record, origins, scale)
    start = network.initial(windows.inputs.shape[-1], HIDDEN, SEED)
    return Task(record, origin, scale, windows, start)


def check_gradient(task: Task) -> float:
    """`network.check_gradient` over every weight and a few of the windows."""
    return network.check_gradient(task.start, task.windows.part(0, 3))


def train(
    task: Task, epochs: int, on_epoch, loss_and_gradient=network.loss_and_gradient
) -> network.Parameters:
    """At most ``epochs`` iterations of L-BFGS, each over every window.

    ``on_epoch`` is called with the loss after each.
    """

    def objective(vector):
        parameters = nbta.unflatten(vector, task.start)
        loss, gradient = loss_and_gradient(parameters, task.windows)
        return loss, nbta.flatten(gradient)

    result = minimize(
        objective,
        nbta.flatten(task.start),
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: on_epoch(float(intermediate_result.fun)),
        options={"maxiter": epochs, "maxfun": 100 * epochs},
    )
    return nbta.unflatten(result.x, task.start)


def forecast(task: Task, parameters: network.Parameters) -> Forecast:
    """Forecast the held-out weeks from what lies before them."""
    test = data.make_windows(task.record, [task.origin], task.scale)
    outputs = network.outputs(parameters, test.inputs)
    values = test.levels[0] + task.scale * outputs[:, 0]
    return score(task.record, task.origin, values)


def score(record: data.Record, origin: int, values) -> Forecast:
    """Compare a forecast with the held-out weeks that the record has."""
    naive = data.seasonal_naive(record, origin)
    truth = record.values[origin:]
    known = np.isfinite(truth)
    misses, naive_misses = (values - truth)[known], (naive - truth)[known]
    return Forecast(
        values=values,
        naive=naive,
        origin=origin,
        rmse=float(np.sqrt(np.mean(misses**2))),
        mae=float(np.mean(np.abs(misses))),
        naive_rmse=float(np.sqrt(np.mean(naive_misses**2))),
        naive_mae=float(np.mean(np.abs(naive_misses))),
    )
