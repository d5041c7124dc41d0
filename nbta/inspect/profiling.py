"""Profiles of traced functions: phases, calls, and where compiled code spends its time."""

from __future__ import annotations

import html
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nbta.codegen.code import NotCompiledError
from nbta.compiler.executable import FailedError
from nbta.compiler.instrumentation import Instrumented
from nbta.compiler.phases import listening
from nbta.errors import invalid
from nbta.execution.tracer import (
    TraceFile,
    Tracer,
    calls_users,
    labels,
    show_inside,
    told,
)
from nbta.graph.graph import at_once
from nbta.inspect import lines as by_line
from nbta.tuning import TRACE_READINGS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbta.typing import ArrayLike

#: Rows of a table unless told otherwise, and names in one.
ROWS, FEW = 15, 3


@dataclass(frozen=True)
class Row:
    """Operations, and their time.

    Attributes
    ----------
    names, types : tuple of str
        Of the operations.
    loops : tuple of str
        Names of the loops around, from the outside; of compiled code only.
    runs : int
        How often in a call.
    seconds : float
        In a call; of loops without what is in them.
    lines : tuple of (Location or None, bool, float)
        Lines that the operations come from, whether it is their gradient, and their seconds.
    written : tuple of str
        The loops around, as the user wrote them where they have no name.
    """

    names: tuple
    types: tuple
    loops: tuple
    runs: int
    seconds: float
    lines: tuple = ()
    written: tuple = ()


@dataclass(frozen=True)
class Phase:
    """What happens once, ahead of calls.

    Attributes
    ----------
    name, category : str
        Of the categories ``"pass"``, ``"compile"`` and ``"call"``.
    seconds : float
    facts : dict
        Such as the numbers of operations before and after a pass.
    """

    name: str
    category: str
    seconds: float
    facts: dict


class Profile:
    """Where the time of a function goes; see `nbta.api.tracing.Function.profile`.

    Attributes
    ----------
    name : str
    phases : list of Phase
        In order.
    calls : array
        Seconds of each call, without the first one.
    operations : list of Row
        By time, most first.
    compiled : bool
        Whether ``operations`` are parts of compiled code, read by clocks in it. If not, they ran
        one by one, in Python.
    note : str
        How times of operations were found, or why they were not.
    """

    def __init__(
        self,
        name: str,
        phases: list[Phase],
        calls: ArrayLike,
        operations: Iterable[Row],
        compiled: bool,
        note: str,
    ) -> None:
        self.name, self.phases, self.calls = name, phases, np.array(calls)
        self.operations = sorted(operations, key=lambda row: -row.seconds)
        self.compiled, self.note = compiled, note

    @property
    def median(self) -> float:
        """Seconds of a call, the median."""
        return float(np.median(self.calls))

    def lines(self) -> list[by_line.Line]:
        """Lines of the user's by their time, most first.

        A line has the time of the operations that it says itself; functions that it calls have
        lines of their own. Loops that compute what several lines say are shared among these by what
        each is estimated to take. What comes from no line has the file name ``""``.

        Returns
        -------
        list of Line
            The lines.
        """
        return by_line.lines(self.operations)

    def text(self, style: str = "table", rows: int = ROWS) -> str:
        """Time by lines.

        Parameters
        ----------
        style : {"table", "line_profiler"}
            A table by time; or whole functions with their lines in order, in the layout of the
            package line_profiler, which has microseconds of a call. The column "% Gradient" says
            how much of a line's time is its gradient's.
        rows : int
            How many rows a table has at most.

        Returns
        -------
        str
            The table.

        Raises
        ------
        InvalidArgumentError
            For another style.
        """
        if style == "table":
            return "\n".join(_aligned(self._lines(rows)))
        if style == "line_profiler":
            return by_line.line_profiler(self.lines())
        message = f"text: style must be 'table' or 'line_profiler', not {style!r}"
        raise invalid("style", message)

    def table(self, rows: int = ROWS) -> str:
        """All of it as text, with so many rows of lines and of operations.

        Parameters
        ----------
        rows : int
            How many rows each table has at most.

        Returns
        -------
        str
            The text.
        """
        heads = ("time", "share", "runs", "operations")
        phases = [f"  {_text(seconds):>9}  {name}" for name, seconds in self._phases()]
        parts = [*self._heads(), "once:", *phases]
        if self.operations:
            parts += ["lines:", *_aligned(self._lines(rows))]
        return "\n".join([*parts, f"{self.note}:", *_aligned([heads, *self._operations(rows)])])

    def _lines(self, rows):
        found = self.lines()
        shown, rest = by_line.table(found, _text), found[rows:]
        if rest:
            spent = sum(line.seconds for line in rest)
            share = 100 * spent / (sum(line.seconds for line in found) or 1.0)
            blanks = [""] * (len(shown[0]) - 4)
            others = (_text(spent), f"{share:.1f}%", *blanks, f"{len(rest)} others", "")
            shown = [*shown[: rows + 1], others]
        return shown

    def _heads(self):
        low, high = np.quantile(self.calls, [0.25, 0.75])
        how = "compiled" if self.compiled else "operations one by one"
        yield f"{self.name}: {_text(self.median)} a call, {how}"
        yield f"  median of {len(self.calls)}, half of them in {_text(low)} to {_text(high)}"

    def _phases(self):
        """Name and seconds, all passes together."""
        passes = [phase for phase in self.phases if phase.category == "pass"]
        for phase in self.phases:
            if phase.category != "pass":
                yield phase.name, phase.seconds
            elif phase is passes[0]:
                sizes = [passes[0].facts["operations before"], passes[-1].facts["operations after"]]
                text = f"{len(passes)} passes, {sizes[0]} operations to {sizes[1]}"
                yield text, sum(each.seconds for each in passes)

    def _operations(self, rows):
        total = sum(row.seconds for row in self.operations) or 1.0
        for row in self.operations[:rows]:
            share = f"{100 * row.seconds / total:.1f}%"
            what = f"{_few(row.types)}: {_few(row.names)}"
            if row.written:
                what += f" (in {' in '.join(reversed(row.written))})"
            yield _text(row.seconds), share, str(row.runs), what
        rest = self.operations[rows:]
        if rest:
            spent = sum(row.seconds for row in rest)
            yield _text(spent), f"{100 * spent / total:.1f}%", "", f"{len(rest)} others"

    def __repr__(self):
        return self.table()

    def _repr_html_(self):
        rows = [("time", "share", "runs", "operations"), *self._operations(ROWS)]
        phases = [(_text(seconds), name) for name, seconds in self._phases()]
        heads = "<br>".join(map(html.escape, self._heads()))
        lines = by_line.html_table(self._lines(ROWS), self.lines()) if self.operations else ""
        note = html.escape(self.note)
        return f"<p>{heads}</p>{lines}{_html(phases)}<p>{note}</p>{_html(rows)}"


def _aligned(rows):
    """Rows of cells as text, the last one or two of which are words."""
    words = 2 if rows[0][-1] == "" else 1
    numbers = len(rows[0]) - words
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(width) if k < numbers else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield f"  {'  '.join(cells)}".rstrip()


def _html(rows):
    lines = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _few(names):
    """Some names, and how many there are."""
    return ", ".join(names if len(names) <= FEW else [*names[:FEW], f"... {len(names)} in all"])


def _text(seconds):
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("\N{MICRO SIGN}s", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"


def profile(name, whole, arguments, one, of_one, file=None, repeats=10) -> Profile:
    """A profile of calls.

    Parameters
    ----------
    name : str
    whole : callable
        What is called, with ``arguments``, a pair of arguments and keyword arguments.
    one : Function
        Whose operations are looked at, for the arguments ``of_one``; it may be ``whole``.
    file : path or text file, optional
    repeats : int

    Raises
    ------
    InvalidArgumentError
        For fewer repeats than one.
    OSError
        Where the file cannot be written.
    """
    if isinstance(repeats, bool) or not hasattr(repeats, "__index__") or repeats < 1:
        raise invalid("repeats", f"profile: repeats must be an int from 1 on, not {repeats!r}")
    with TraceFile(os.devnull if file is None else file, "profile: file") as out:
        tracer = Tracer(out)
        try:
            found = _Profiler(tracer, out, repeats)
            found.prepare(one, of_one)
            found.call(whole, arguments)
            with at_once(), np.errstate(all="ignore"):
                rows, note = found.look_inside()
        except BaseException as error:
            tracer.stopped(error)
            raise
        finally:
            tracer.finish()
    return Profile(name, found.phases, found.calls, rows, found.is_compiled, note)


class _Profiler:
    """Does what it takes, and notes how long that is."""

    def __init__(self, tracer, file, repeats):
        self._tracer, self._file, self._repeats = tracer, file, repeats
        self.phases, self.calls = [], []

    @property
    def is_compiled(self):
        """Whether there is a compiled function."""
        return not isinstance(self._function, str)

    def _hear(self, name, begin, end, facts):
        self._tracer.phase(name, begin, end, facts)
        name, category, facts = told(name, facts)
        self.phases.append(Phase(name, category, (end - begin) / 1e9, facts))

    def prepare(self, one, arguments):
        """Trace and compile."""
        with listening(self._hear), self._tracer.span("prepare", "call"):
            self._runner, self._function, self._given = one.prepared(arguments)

    def call(self, whole, arguments):
        """Call, once to begin with and then for the times."""
        args, kwargs = arguments
        if self.is_compiled:
            whole.prefer_compiled()
        for number in range(self._repeats + 1):
            name = f"call {number}" if number else "first call"
            with self._tracer.span(name, "call"):
                begin = time.perf_counter()
                whole(*args, **kwargs)
                seconds = time.perf_counter() - begin
            if number:
                self.calls.append(seconds)
            else:
                self.phases.append(Phase(name, "call", seconds, {}))

    def look_inside(self):
        """Rows of operations, and how they were found."""
        if not self.is_compiled:
            return self._one_by_one()
        if calls_users(self._function):
            return self._nothing("users' functions are called, which clocks would call more often")
        with self._tracer.span("calls with clocks", "clocks"):
            try:
                measured = Instrumented(self._function).measure(
                    self._given, self._repeats, TRACE_READINGS
                )
            except (NotCompiledError, FailedError) as reason:
                return self._nothing(str(reason))
        show_inside(self._file, measured)
        rows = [
            Row(
                labels(piece),
                piece.types,
                piece.loops,
                runs,
                nanoseconds / 1e9,
                by_line.shares(piece.ops, nanoseconds / 1e9),
                piece.written,
            )
            for piece, nanoseconds, runs in measured.rows
        ]
        note = (
            f"parts of the compiled code, by {measured.readings} readings of a clock a call; the "
            f"{measured.reading:.1f} ns of each are taken off"
        )
        return rows, note

    def _one_by_one(self):
        with self._tracer.span("operations one by one", "call"):
            self._runner.run(self._given, False, self._tracer)
        rows = [
            Row(
                (op.name,),
                (op.type,),
                (),
                runs,
                nanoseconds / 1e9,
                by_line.shares([op], nanoseconds / 1e9),
            )
            for op, (nanoseconds, runs) in self._tracer.totals.items()
        ]
        return rows, f"operations one by one in Python, as it is not compiled: {self._function}"

    def _nothing(self, reason):
        return [], f"no times of operations, as {reason}"
