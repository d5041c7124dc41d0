"""Training on all earlier windows of a record, and the forecast of the last years, as a picture."""

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
