"""A weekly record and the windows of it that the network learns from.

Which values are known when matters here. A window stands for a forecast made at its *origin*: its
inputs come from weeks before the origin alone, its targets from the weeks after. Weeks that the
record misses have weight 0 as targets; as inputs they are interpolated between the known values
before the origin, and the last known value is carried up to the origin itself.
"""

import csv
import datetime
from importlib import resources
from typing import NamedTuple

import numpy as np

YEAR = 52  # weeks; the season itself is taken from the dates
HISTORY = 2 * YEAR  # weeks before an origin that the inputs look at
HORIZON = 4 * YEAR  # weeks that a forecast covers
STRIDE = 13  # weeks between the origins of two windows
SHORTEST = HISTORY + 2 * HORIZON + YEAR


class DataError(ValueError):
    """A record that cannot be used; the message is one line for the user."""


class Record(NamedTuple):
    """Values on a regular weekly grid, NaN where the record has none."""

    name: str
    start: datetime.date
    values: np.ndarray  # (weeks,)

    def dates(self) -> np.ndarray:
        """The day of each week, as datetime64."""
        return np.datetime64(self.start) + 7 * np.arange(len(self.values))


class Windows(NamedTuple):
    """Forecasts to practise: time first, then one column an origin."""

    inputs: np.ndarray  # (HORIZON, origins, features)
    targets: np.ndarray  # (HORIZON, origins), in units of the level
    weights: np.ndarray  # (HORIZON, origins), 0 where the record has no value
    levels: np.ndarray  # (origins,), what a target of 0 stands for

    def part(self, start: int, stop: int) -> "Windows":
        """The windows of some of the origins."""
        inputs, targets, weights, levels = self
        cut = (inputs[:, start:stop], targets[:, start:stop], weights[:, start:stop])
        return Windows(*map(np.ascontiguousarray, cut), levels[start:stop])


def read_record(file=None, column=None) -> Record:
    """Read a CSV file with a date in its first column; by default the record that is shipped.

    Raises
    ------
    DataError
        With one line that says what is wrong.
    """
    try:
        if file is None:
            shipped = resources.files("nbta") / "data" / "mauna_loa_co2_weekly.csv"
            text, name = shipped.read_text(encoding="utf-8"), "co2"
        else:
            with open(file, encoding="utf-8-sig", newline="") as stream:
                text, name = stream.read(), None
    except FileNotFoundError:
        raise DataError(f"{file}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read as text ({error})") from None
    return _parse(text, file or "the record", column or name)


def _parse(text, source, column):
    try:
        rows = [row for row in csv.reader(text.splitlines(), strict=True) if row]
    except csv.Error as error:
        raise DataError(f"{source} is not a CSV file ({error})") from None
    if not rows:
        raise DataError(f"{source}: is empty")
    header = [name.strip() for name in rows[0]]
    if column is None and len(header) == 2:
        column = header[1]
    if column not in header[1:]:
        wanted = "say which with --column" if column is None else f"no column {column!r}"
        raise DataError(f"{source}: {wanted}; its value columns are {', '.join(header[1:])}")
    place = header.index(column, 1)
    dates = [_date(row[0], source, number) for number, row in enumerate(rows[1:], start=2)]
    values = [_value(row, place, source, number) for number, row in enumerate(rows[1:], start=2)]
    return _on_grid(source, column, dates, np.array(values, dtype=float))


def _date(text, source, row):
    for form in ("%Y%m%d", "%Y-%m-%d"):
        try:
            return datetime.datetime.strptime(text.strip(), form).date()
        except ValueError:
            continue
    raise DataError(f"{source}: row {row}: {text!r} is not a date; use YYYYMMDD or YYYY-MM-DD")


def _value(row, place, source, number):
    text = row[place].strip() if place < len(row) else ""
    if text.lower() in ("", "nan", "na"):
        return np.nan
    try:
        value = float(text)
    except ValueError:
        raise DataError(f"{source}: row {number}: {text!r} is not a number") from None
    if not np.isfinite(value):
        raise DataError(f"{source}: row {number}: {text!r} is not a finite number")
    return value


def _on_grid(source, column, dates, values):
    """The record on a weekly grid: weeks without a row become missing values."""
    if not np.isfinite(values).any():
        raise DataError(f"{source}: column {column!r} has no values")
    days = np.array([date.toordinal() for date in dates])
    steps = np.diff(days)
    if (steps <= 0).any():
        row = int(np.argmax(steps <= 0)) + 3
        raise DataError(f"{source}: row {row}: the date is not after the one before it")
    weeks = np.rint((days - days[0]) / 7).astype(int)
    if (np.diff(weeks) == 0).any():
        row = int(np.argmax(np.diff(weeks) == 0)) + 3
        raise DataError(f"{source}: row {row}: a second value for one week; give weekly values")
    grid = np.full(weeks[-1] + 1, np.nan)
    grid[weeks] = values
    _check_length(source, grid)
    return Record(column, dates[0], grid)


def _check_length(source, grid):
    known = np.isfinite(grid)
    if len(grid) < SHORTEST:
        raise DataError(
            f"{source}: {len(grid)} weeks are too short a record; the demo needs {SHORTEST}"
        )
    if known[:-HORIZON].mean() < 0.5 or known[-HORIZON:].mean() < 0.5:
        raise DataError(f"{source}: more than half of the weeks have no value; give weekly values")


def filled(values: np.ndarray) -> np.ndarray:
    """Values with gaps interpolated; at the end, the last known value stands."""
    known = np.flatnonzero(np.isfinite(values))
    return np.interp(np.arange(len(values)), known, values[known])


def seasonal_naive(record: Record, origin: int) -> np.ndarray:
    """The forecast to beat: the last observed year, again and again."""
    return np.resize(filled(record.values[:origin])[-YEAR:], HORIZON)


def scale_of(record: Record, end: int) -> float:
    """How far values move over a horizon: the unit of the network's numbers."""
    values = filled(record.values[:end])
    return float(np.std(values[HORIZON:] - values[:-HORIZON]) + np.std(values[-YEAR:]))


def make_windows(record: Record, origins, scale: float) -> Windows:
    """Windows at the given origins; targets past the record's end have weight 0."""
    dates = record.dates()
    inputs = np.stack([_inputs(record, dates, origin, scale) for origin in origins], axis=1)
    levels = np.array([_level(record, origin)[0] for origin in origins])
    weeks = np.add.outer(np.arange(HORIZON), np.asarray(origins))
    values = record.values[weeks]
    weights = np.isfinite(values).astype(float)
    targets = np.where(weights > 0, (values - levels) / scale, 0.0)
    return Windows(np.ascontiguousarray(inputs), targets, weights, levels)


def _level(record, origin):
    """Level at an origin, growth a year, how much of it came lately, and the last year."""
    history = filled(record.values[:origin])[-HISTORY:]
    first, last = history[:YEAR].mean(), history[-YEAR:].mean()
    growth = (last - first) / (HISTORY / YEAR - 1)
    lately = history[-STRIDE:].mean() - history[-YEAR - STRIDE : -YEAR].mean()
    return last + growth / 2, growth, lately, history[-YEAR:]


def _inputs(record, dates, origin, scale):
    """Features of each week of a window: season, last year's season, growth, time."""
    level, growth, lately, last_year = _level(record, origin)
    ahead = np.arange(1, HORIZON + 1) / YEAR  # years
    days = (dates[origin : origin + HORIZON] - np.datetime64("1958-01-01")).astype(float)
    phase = 2 * np.pi * days / 365.2425
    after = (np.arange(YEAR) - YEAR) / YEAR
    season = np.resize((last_year - level - growth * after) / scale, HORIZON)
    columns = [
        np.sin(phase), np.cos(phase), np.sin(2 * phase), np.cos(2 * phase),
        season, np.full(HORIZON, growth / scale), np.full(HORIZON, lately / scale), ahead / 4,
    ]  # fmt: skip
    return np.stack(columns, axis=-1)
