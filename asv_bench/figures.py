"""What the tables share: files of figures, the circumstances of a measurement, numbers as text.

A file of figures (``docs/figures/NAME.json``) holds samples and what they depend on, nothing that
follows from them: tables, plot and page are made from samples each time.
"""

import datetime
import json
import os
import platform
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "figures"
PEERS, PLOT, BARS = FOLDER / "peers.json", FOLDER / "peers.svg", FOLDER / "bars.json"
CHART = FOLDER / "chart.svg"
SCALE = FOLDER / "scale.json"
#: Sorts for a figure for the machine's unrest.
SORTS = 15
#: Load a processor from which on other work must have been running: a measurement makes about one.
BUSY = 2


def read(path):
    """The rows of a file; none where there is no file yet."""
    return json.loads(path.read_text(encoding="utf-8"))["rows"] if path.exists() else []


def keep(path, rows, order=None):
    """Write rows, new ones over those of the same title, in the order of all titles.

    Rows whose title is not in ``order`` go: nobody measures them any more.
    """
    found = {row["title"]: row for row in [*read(path), *rows]}
    kept = [found[title] for title in (found if order is None else order) if title in found]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in kept)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(f'{{"rows": [\n{lines}\n]}}\n', encoding="utf-8")
    new.replace(path)  # in one step, as long runs may be stopped


def noise():
    """Seconds that the control took, least and most: the machine's own unrest."""
    from .benchmarks import control  # benchmarks import nbta, which pages and plots do not need

    job, seconds = control.Control(), []
    job.setup()
    for _ in range(SORTS):
        start = time.perf_counter()
        job.time_sort()
        seconds.append(time.perf_counter() - start)
    return min(seconds), max(seconds)


class Circumstances:
    """The machine's load and unrest around a measurement: made before it, asked after it."""

    def __init__(self, threads):
        self.threads, self.before = threads, self._now()

    @staticmethod
    def _now():
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        return {"load": load, "control": noise()}

    def found(self):
        """What a row keeps of it; load is that of the minute before."""
        after = self._now()
        return {
            "date": datetime.date.today().isoformat(),
            "processor": processor(),
            "processors": os.cpu_count(),
            "threads": self.threads,
            **{name: [self.before[name], after[name]] for name in after},
        }


def processor():
    """The processor's name where the system tells it, else its kind."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def described(rows):
    """One paragraph about the circumstances of rows, from the least to the most of each."""
    measured = [row["measured"] for row in rows]
    facts = [f"Measured {_range(m['date'] for m in measured)} on {_listed(measured)}."]
    loads = [load for m in measured for load in m["load"] if load is not None]
    if loads:
        facts.append(f"The load average of the machine was {min(loads):.1f} to {max(loads):.1f}.")
    if any(max(filter(None, m["load"]), default=0) > BUSY * m["processors"] for m in measured):
        facts.append("**Other work ran on the machine meanwhile: these figures are preliminary.**")
    seconds = [second for m in measured for pair in m["control"] for second in pair]
    facts.append(
        f"Control (a NumPy sort): {min(seconds) * 1e3:.1f} to {max(seconds) * 1e3:.1f} ms."
    )
    return "\n".join(facts)


def _listed(measured):
    found = (f"{m['processor']}, {m['processors']} processors" for m in measured)
    threads = {m["threads"] for m in measured} - {None}
    told = f", {' or '.join(map(str, sorted(threads)))} threads" if threads else ""
    return "; ".join(dict.fromkeys(found)) + told


def _range(dates):
    found = sorted(set(dates))
    return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"


def ratios(samples, base):
    """Of samples that were taken in turn, round by round: each to its neighbour in ``base``."""
    return [mine / other for mine, other in zip(samples, base, strict=False)]


def spread(values):
    """Median, least and most."""
    return median(values), min(values), max(values)


def quantity(seconds):
    """A time as people read it."""
    units = ("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)
    unit, scale = next(((u, s) for u, s in units if seconds * s >= 1), units[-1])
    return f"{number(seconds * scale)} {unit}"


def number(value):
    """Two digits, and all before the point; between 0.1 and 10 a digit or two after it."""
    if value >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def table(head, lines):
    """A Markdown table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
