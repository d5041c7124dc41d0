"""Time by lines of the user's: what operations took, at the lines that they come from."""

from __future__ import annotations

import ast
import html
import linecache
import math
import os
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nbta.graph.graph import is_of_gradient
from nbta.ops.core.dispatch import CONSTANT, PARAMETER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from nbta.locations import Location

#: What a line of no file says.
NO_LINE = "(what comes from no line)"
#: How long a dimension is taken to be that only a run knows; and how much longer than an item of
#: an addition one of exp, sin and their kin takes, in loops over arrays.
USUAL, EXPENSIVE = 100, 10


@dataclass(frozen=True)
class Line:
    """A line of the user's code, and its time.

    Attributes
    ----------
    filename : str
        Empty for operations that belong to no line.
    line : int
        The number of the line.
    text : str
        The text of the line.
    hits : int
        How often the line ran in a call.
    seconds : float
        Time per call, including that of its gradient.
    gradient : float
        Time of its gradient per call, in seconds.
    """

    filename: str
    line: int
    text: str
    hits: int
    seconds: float
    gradient: float

    @property
    def place(self) -> str:
        """File and line, for people; empty for what comes from no line."""
        return f"{os.path.basename(self.filename)}:{self.line}" if self.filename else ""


def shares(ops: Iterable[Any], seconds: float) -> tuple[tuple[Location | None, bool, float], ...]:
    """The time of operations that ran together, by the lines that these come from.

    A loop over items may do operations of several lines, and its time is measured as a whole. So
    each gets a part by what it is estimated to take: the loop's items, or one for a single number,
    and `EXPENSIVE` times as much where computing an item takes longer than to write and read it.

    Returns
    -------
    tuple of (Location or None, bool, float)
        Line, whether it is its gradient, and seconds.
    """
    ops = [op for op in ops if op.record is not CONSTANT and op.record is not PARAMETER]
    sizes = [max(map(_size, (*op.inputs, *op.outputs)), default=1) for op in ops]
    items, found = max(sizes, default=1), defaultdict(float)
    for op, size in zip(ops, sizes, strict=True):
        weight = (1 if size == 1 else items) * (1 if op.record.cheap else EXPENSIVE)
        found[op.location, is_of_gradient(op)] += weight
    total = sum(found.values())
    if not found:
        return ((None, False, seconds),)
    return tuple((*key, seconds * weight / total) for key, weight in found.items())


def _size(tensor):
    shape = (None,) if tensor.spec.shape is None else tensor.spec.shape
    return math.prod(n if type(n) is int else USUAL for n in shape)


def lines(rows: Iterable[Any]) -> list[Line]:
    """Lines by their time, most first; what comes from no line is one of them."""
    times: dict[Any, list[float]] = defaultdict(lambda: [0.0, 0.0])
    hits: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        for location, backward, seconds in row.lines:
            key = ("", 0) if location is None else (location.filename, location.line)
            times[key][backward] += seconds
            hits[key][backward] = max(hits[key][backward], row.runs)
    found = [
        Line(*key, _text_of(*key), hits[key][0] or hits[key][1], forward + backward, backward)
        for key, (forward, backward) in times.items()
    ]
    return sorted(found, key=lambda line: -line.seconds)


def _text_of(filename, line):
    return linecache.getline(filename, line).strip() if filename else NO_LINE


def table(found: list[Line], time: Any) -> list[tuple[str, ...]]:
    """Rows of cells, the first of which are heads; ``time`` gives seconds as text."""
    total = sum(line.seconds for line in found) or 1.0
    has_gradient = any(line.gradient for line in found)
    rows = [("time", "share", *(["gradient"] if has_gradient else []), "hits", "line", "")]
    for line in found:
        part = [_percent(line.gradient, line.seconds)] if has_gradient else []
        share = f"{100 * line.seconds / total:.1f}%"
        rows.append((time(line.seconds), share, *part, str(line.hits), line.place, line.text))
    return rows


def _percent(part, whole):
    return f"{100 * part / whole:.0f}%" if part else ""


def line_profiler(found: list[Line]) -> str:
    """Functions with all of their lines, in the layout of the package line_profiler.

    Where there are gradients, a column says how many percent of the line's time are its gradient's.
    """
    functions: dict[Any, list[Line]] = defaultdict(list)
    known = {name: list(_functions(name)) for name in {line.filename for line in found}}
    for line in found:
        functions[_function_of(line, known[line.filename])].append(line)
    whole = sum(line.seconds for line in found)
    parts = ["Timer unit: 1e-06 s"]
    for (filename, name, first, last), own in functions.items():
        seconds = sum(line.seconds for line in own)
        head = [f"Total time: {seconds:.6g} s"]
        if filename:
            head += [f"File: {filename}", f"Function: {name} at line {first}"]
        parts.append("\n".join([*head, "", *_listing(own, first, last, whole)]))
    return "\n\n".join(parts) + "\n"


def _listing(own, first, last, whole):
    has_gradient = any(line.gradient for line in own)
    widths = [6, 9, 12, 8, 8, *([10] if has_gradient else [])]
    heads = ["Line #", "Hits", "Time", "Per Hit", "% Time", *["% Gradient"] * has_gradient]
    yield "  ".join([h.rjust(w) for h, w in zip([*heads], widths, strict=True)] + ["Line Contents"])
    yield "=" * (sum(widths) + 2 * len(widths) + len("Line Contents"))
    by_number = {line.line: line for line in own}
    for number in range(first, last + 1):
        line = by_number.get(number)
        cells = [str(number) if number else ""] + [""] * (len(widths) - 1)
        if line is not None:
            micro = line.seconds * 1e6
            cells[1:5] = str(line.hits), f"{micro:.1f}", f"{micro / line.hits:.1f}", ""
            cells[4] = f"{100 * line.seconds / (whole or 1.0):.1f}"
            if has_gradient and line.gradient:
                cells[5] = f"{100 * line.gradient / line.seconds:.1f}"
        text = linecache.getline(own[0].filename, number).rstrip() if number else NO_LINE
        yield "  ".join([*(c.rjust(w) for c, w in zip(cells, widths, strict=True)), text]).rstrip()


def _function_of(line, functions):
    """File, name and lines of the innermost function with a line; or the line by itself."""
    inside = [
        (last - first, first, last, name)
        for name, first, last in functions
        if first <= line.line <= last
    ]
    if not inside:
        return line.filename, "<module>", line.line, line.line
    _, first, last, name = min(inside)
    return line.filename, name, first, last


def _functions(filename) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line of the functions of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield node.name, first, node.end_lineno or node.lineno


def html_table(rows: list[tuple[str, ...]], found: list[Line]) -> str:
    """The cells of `table` for notebooks, in the colours of the page around; bars show shares."""
    cell = "text-align: {}; padding: 0.1em 0.6em; color: inherit; background: {}"
    most = max((line.seconds for line in found), default=0.0) or 1.0
    head, *body = rows
    texts = ["<tr>"]
    for k, text in enumerate(head):
        style = cell.format("left" if k >= len(head) - 2 else "right", "none")
        texts.append(f'<th style="{style}">{html.escape(text)}</th>')
    for row, line in zip(body, found, strict=False):
        part, width = line.gradient / line.seconds if line.seconds else 0.0, line.seconds / most
        ends = f"{100 * width * (1 - part):.1f}%", f"{100 * width:.1f}%"
        bar = (
            f"linear-gradient(to right, rgba(70, 130, 220, 0.35) {ends[0]}, "
            f"rgba(225, 130, 40, 0.35) {ends[0]} {ends[1]}, transparent {ends[1]})"
        )
        texts.append("</tr><tr>")
        for k, text in enumerate(row):
            is_code = k == len(row) - 1
            style = cell.format(
                "left" if k >= len(row) - 2 else "right", bar if is_code else "none"
            )
            hint = f' title="{html.escape(line.filename)}"' if k == len(row) - 2 else ""
            style += "; font-family: monospace; white-space: pre" if k >= len(row) - 2 else ""
            texts.append(f'<td style="{style}"{hint}>{html.escape(text)}</td>')
    return f'<table class="nbta-lines">{"".join(texts)}</tr></table>'
