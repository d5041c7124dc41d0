"""A tanh recurrent network, its training on windows of a record, and its forecast as a picture.

``h[t+1] = tanh(x[t] @ w_in + h[t] @ w_rec + bias)`` and ``y[t] = h[t+1] @ w_out + offset``: a loop
that fills a tensor array. Its functions are plain Python. Called with arrays they run at once;
`nbta.value_and_grad` traces the loss, and finds its gradient through the loop.
"""

import contextlib
import itertools
import logging
import signal
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

import nbta
from nbta.demo import data

PENALTY = 1e-3  # on squared weights, so that growth unlike the past's is not followed too far


class Parameters(NamedTuple):
    """The weights of a network."""

    w_in: np.ndarray  # (features, hidden)
    w_rec: np.ndarray  # (hidden, hidden)
    bias: np.ndarray  # (hidden,)
    w_out: np.ndarray  # (hidden,)
    offset: np.ndarray  # (1,)


def initial(features: int, hidden: int, seed: int) -> Parameters:
    """Small random weights, the recurrent ones near the identity so that memory lasts."""
    random = np.random.default_rng(seed)
    return Parameters(
        w_in=random.normal(size=(features, hidden)) * 0.3 / np.sqrt(features),
        w_rec=0.9 * np.eye(hidden) + random.normal(size=(hidden, hidden)) * 0.1 / np.sqrt(hidden),
        bias=np.zeros(hidden),
        w_out=random.normal(size=hidden) * 0.3 / np.sqrt(hidden),
        offset=np.zeros(1),
    )


def outputs(parameters: Parameters, inputs):
    """What the network says of inputs (steps, batch, features), shape (steps, batch)."""
    w_in, w_rec, bias, w_out, offset = parameters
    steps = nbta.shape(inputs)[0]
    drive = inputs @ w_in + bias  # one product for all steps, as it needs no state
    # Read slot by slot: the gradient of drive[t] would be as large as drive, in every step.
    drives = nbta.TensorArray(np.float64, size=steps).unstack(drive)
    states = nbta.TensorArray(np.float64, size=steps)

    def step(t, state, states):
        state = nbta.tanh(drives.read(t) + state @ w_rec)
        return t + 1, state, states.write(t, state)

    first = (0, nbta.zeros_like(drive[0]), states)
    _, _, states = nbta.while_loop(lambda t, *_: t < steps, step, first)
    return states.stack() @ w_out + offset


def squared_error(parameters: Parameters, windows):
    """Sum of the weighted squared errors over windows."""
    errors = windows.weights * (outputs(parameters, windows.inputs) - windows.targets)
    return nbta.sum(errors**2)


def penalty(parameters: Parameters):
    """What large weights cost."""
    return PENALTY * nbta.sum(nbta.flatten(parameters) ** 2)


def loss(parameters: Parameters, windows):
    """Weighted mean squared error, with a penalty on the weights."""
    error = squared_error(parameters, windows)
    return error / nbta.sum(windows.weights) + penalty(parameters)


value = nbta.function(loss, compiled=True)
loss_and_gradient = nbta.value_and_grad(loss, compiled=True)


def check_gradient(parameters: Parameters, windows, step: float = 1e-5) -> float:
    """Largest difference from central differences, relative to the largest derivative."""
    gradient = nbta.flatten(loss_and_gradient(parameters, windows)[1])
    vector, numeric = nbta.flatten(parameters), np.empty_like(gradient)
    for i in range(len(vector)):
        shift = np.zeros_like(vector)
        shift[i] = step
        above, below = (
            value(nbta.unflatten(moved, parameters), windows)
            for moved in (vector + shift, vector - shift)
        )
        numeric[i] = (above - below) / (2 * step)
    return float(np.abs(gradient - numeric).max() / np.abs(numeric).max())


# The same loss, computed by processes of a Dask cluster on this machine.

#: Groups of windows, each of which one task computes. Windows one by one, in 16 tasks, took 121 ms
#: for an epoch where these took 95, with one worker.
GROUPS = 8


@contextlib.contextmanager
def computing(count: int):
    """A context with `loss_and_gradient`, as ``count`` processes compute it.

    Its last digits are others, as sums are taken in another order, but the same for any ``count``.
    """
    from distributed import Client, LocalCluster

    from nbta.distributed import value_and_grad

    options = {"n_workers": count, "threads_per_worker": 1, "processes": True}
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(**options, **quiet) as cluster, Client(cluster) as client:
        client.run(_ignore_interrupts)
        of_error = value_and_grad(squared_error, client)
        of_penalty = nbta.value_and_grad(penalty)

        def loss_and_gradient(parameters, windows):
            error, slope = of_error(parameters, _groups(windows))
            cost, more = of_penalty(parameters)
            total = np.sum(windows.weights)
            gradient = map(lambda a, b: a / total + b, slope, more)
            return error / total + cost, Parameters(*gradient)

        yield loss_and_gradient


def _ignore_interrupts():
    """Ctrl-C goes to all processes of a terminal; workers end when the cluster does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _groups(windows):
    count = len(windows.levels)
    bounds = sorted({count * k // GROUPS for k in range(GROUPS + 1)})
    return [windows.part(*pair) for pair in itertools.pairwise(bounds)]


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
    start: Parameters


def prepare(record: data.Record) -> Task:
    """Hold the last `HORIZON` weeks out, and make windows of all that lies before them."""
    origin = len(record.values) - data.HORIZON
    scale = data.scale_of(record, origin)
    # The last window to practise ends where the held-out weeks begin.
    origins = np.arange(origin - data.HORIZON, data.HISTORY - 1, -data.STRIDE)[::-1]
    windows = data.make_windows(record, origins, scale)
    start = initial(windows.inputs.shape[-1], HIDDEN, SEED)
    return Task(record, origin, scale, windows, start)


def train(task: Task, epochs: int, on_epoch, loss_and_gradient=loss_and_gradient) -> Parameters:
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


def forecast(task: Task, parameters: Parameters) -> Forecast:
    """Forecast the held-out weeks from what lies before them."""
    test = data.make_windows(task.record, [task.origin], task.scale)
    scaled = outputs(parameters, test.inputs)[:, 0]
    values = test.levels[0] + task.scale * scaled
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


# The picture of a forecast against the record.

SHOWN = 3 * data.YEAR  # weeks of record before the forecast
INK, BLUE, GREY = "#222222", "#0b6e99", "#b0802c"


def draw(file, record: data.Record, forecast) -> None:
    """Write a PNG: record, forecast and seasonal-naive forecast above, what they miss below."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    _draw_forecast(above, record, forecast)
    _draw_misses(below, record, forecast)
    figure.savefig(file, dpi=150)


def _draw_forecast(axes, record, forecast):
    dates, origin = record.dates(), forecast.origin
    first = max(origin - SHOWN, 0)
    known = np.isfinite(record.values)
    ahead = dates[origin:]
    axes.plot(
        dates[first:][known[first:]], record.values[first:][known[first:]],
        ".", color=INK, markersize=3.5, label="record",
    )  # fmt: skip
    axes.plot(
        ahead, forecast.naive, color=GREY, linewidth=1.5, linestyle="--",
        label=f"last year repeated (RMSE {forecast.naive_rmse:.2f})",
    )  # fmt: skip
    axes.plot(
        ahead, forecast.values, color=BLUE, linewidth=2,
        label=f"recurrent network (RMSE {forecast.rmse:.2f})",
    )  # fmt: skip
    axes.axvspan(ahead[0], ahead[-1], color=BLUE, alpha=0.06, linewidth=0)
    axes.annotate(
        "held out: the network never saw these four years", (ahead[0], 0.03),
        xycoords=("data", "axes fraction"), xytext=(6, 0), textcoords="offset points", color=BLUE,
    )  # fmt: skip
    axes.set_ylabel(record.name)
    axes.set_title(f"Forecast of {record.name}, made on {dates[origin]}", loc="left")
    axes.legend(loc="upper left", frameon=False)
    _tidy(axes)


def _draw_misses(axes, record, forecast):
    ahead = record.dates()[forecast.origin :]
    truth = record.values[forecast.origin :]
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.plot(ahead, forecast.naive - truth, color=GREY, linewidth=1.5, linestyle="--")
    axes.plot(ahead, forecast.values - truth, color=BLUE, linewidth=2)
    axes.axvspan(ahead[0], ahead[-1], color=BLUE, alpha=0.06, linewidth=0)
    axes.set_ylabel("forecast error")
    _tidy(axes)


def _tidy(axes):
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.margins(x=0.01)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
