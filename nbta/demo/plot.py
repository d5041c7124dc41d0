"""The picture of a forecast against the record."""

import numpy as np

from nbta.demo import data

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
