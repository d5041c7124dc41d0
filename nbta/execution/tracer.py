"""Traces of runs: what ran when, as events of a file.

A `Tracer` stands where `Plainly` does in a run that nobody watches: it gives the run a step and a
plan whose operations tell when they begin and end. The compiled function of a run is one event. So
that one sees into it, the program is run once more after it, by code with clocks
(`nbta.compiler.instrumentation`), whose readings become events of a row of their own.

A file has the Trace Event Format, which Perfetto, chrome://tracing and speedscope show ("Trace
Event Format", the Chromium project's document on the JSON that its trace viewer reads): an object
with a list of events. An event has a phase (``ph``): X is something with a begin and a duration, i
an instant, C a counter's value, s and f the ends of an arrow, M a name. Times are microseconds.
"""

import gzip
import io
import itertools
import json
import linecache
import os
import threading
import time
import warnings
from collections import defaultdict
from contextlib import contextmanager

import numpy as np

from nbta.codegen.code import NotCompiledError
from nbta.compiler.executable import FailedError
from nbta.compiler.instrumentation import Instrumented
from nbta.compiler.phases import listening
from nbta.errors import invalid
from nbta.execution.reference import Step, body_function
from nbta.graph.graph import all_bodies, is_of_gradient, within
from nbta.graph.operation import DATA, FLOW, HANDLE
from nbta.graph.views import Branch, Loop, is_branch
from nbta.ops.arrays.tensor_arrays import GATHER, READ, SCATTER, WRITE
from nbta.ops.loops.loop import WHILE
from nbta.runtime import settings
from nbta.tuning import TRACE_EVENTS, TRACE_READINGS, TRACE_SLOTS, WAITING_EVENTS


class TraceFile:
    """Writes events as they come; a context.

    Parameters
    ----------
    file : path or text file
        A path that ends with ``.gz`` is compressed. A file stays open.
    what : str
        What errors call it.

    Attributes
    ----------
    notes : dict
        What else the file says at its end.

    Raises
    ------
    InvalidArgumentError
        For what is neither a path nor a text file.
    OSError
        Where the file cannot be written. What fails later is a warning, as results are worth more.
    """

    def __init__(self, file, what="run: trace"):
        self._what, self.notes = what, {}
        self._stream, self._ours = _opened(file, what)
        self._waiting, self._threads, self._first = [], set(), True
        self._pid, self._zero = os.getpid(), time.perf_counter_ns()
        self._arrows = 0
        self._write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        self._add("M", "process_name", None, None, args={"name": "nbta"})

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def name_thread(self, thread: int, name: str) -> None:
        """Say what is to be read before a thread's row; rows are in the order of this."""
        if thread not in self._threads:
            place = {"sort_index": len(self._threads)}
            self._threads.add(thread)
            self._add("M", "thread_name", None, thread, args={"name": name})
            self._add("M", "thread_sort_index", None, thread, args=place)

    def complete(self, name, category, begin, end, thread, args) -> None:
        """Something that lasted, in nanoseconds as of `time.perf_counter_ns`."""
        self._add("X", name, begin, thread, cat=category, dur=(end - begin) / 1000, args=args)

    def instant(self, name, category, at, thread, args) -> None:
        """Something that happened at one time."""
        self._add("i", name, at, thread, cat=category, s="p", args=args)

    def counter(self, name, at, values) -> None:
        """What a counter has from now on."""
        self._add("C", name, at, None, args=values)

    def arrow(self, name, begin, end, to, thread) -> None:
        """An arrow from what went on between two times to what began at another."""
        self._arrows += 1
        inside = max(begin, end - 1)  # what begins at once after it is another event
        self._add("s", name, inside, thread, cat="flow", id=self._arrows)
        self._add("f", name, to, thread, cat="flow", id=self._arrows, bp="e")

    def _add(self, phase, name, at, thread, **more):
        event = {"ph": phase, "name": name, "pid": self._pid, "tid": thread or 0, **more}
        if at is not None:
            event["ts"] = (at - self._zero) / 1000
        self._waiting.append(event)

    @property
    def is_full(self) -> bool:
        """Whether it is time to `flush`."""
        return len(self._waiting) >= WAITING_EVENTS

    def flush(self) -> None:
        """Write what waits."""
        lines = ",\n".join(map(json.dumps, self._waiting))
        self._waiting.clear()
        self._write(lines if self._first else f",\n{lines}" if lines else "")
        self._first = False

    def close(self) -> None:
        """Write the rest; the file is whole then."""
        if self._stream is None:
            return
        self.flush()
        self._write(f'\n], "otherData": {json.dumps(self.notes)}}}\n')
        stream, self._stream = self._stream, None
        if stream is not None:
            self._try(stream.close if self._ours else stream.flush)

    def _write(self, text):
        if self._stream is not None:
            self._try(self._stream.write, text)

    def _try(self, act, *text):
        """Do something to the file, which is given up where that fails."""
        try:
            act(*text)
        except (OSError, ValueError) as error:  # such as a full disk, or a file that was closed
            self._stream = None
            message = f"{self._what}: the file was given up: {error}"
            warnings.warn(message, RuntimeWarning, stacklevel=3)


def _opened(file, what):
    """A stream for text, and whether we close it."""
    if hasattr(file, "write"):
        _check_text(file, what)
        return file, False
    try:
        path = os.fspath(file)
    except TypeError:
        message = f"{what}: it must be a path or an open text file, not {file!r}"
        raise invalid("file", message) from None
    try:
        if os.fsdecode(path).endswith(".gz"):
            return io.TextIOWrapper(gzip.open(path, "wb"), encoding="ascii"), True
        return open(path, "w", encoding="ascii"), True
    except OSError as error:
        message = f"{what}: the file cannot be written ({error.strerror}); nothing was run"
        raise OSError(error.errno, message, path) from None


def _check_text(file, what):
    try:
        file.write("")
    except TypeError:
        message = f"{what}: {file!r} takes bytes; open it for text, with mode 'w'"
        raise invalid("file", message) from None
    except ValueError as error:  # closed, or open for reading only
        raise invalid("file", f"{what}: {file!r} cannot be written: {error}") from None


_INDEXED = frozenset({READ, WRITE, GATHER, SCATTER})
INSTRUMENTED_ROW = 1  # no thread of Linux, macOS or Windows that runs Python has this number


class Tracer:
    """Writes down what a run does.

    Parameters
    ----------
    file : TraceFile
    limit : int
        How many events there may be of operations in bodies of loops and branches, and of what
        these are in. What is not in a body is always there.

    Attributes
    ----------
    totals : dict
        By operation, its nanoseconds without those of its bodies, and how often it ran.
    """

    def __init__(self, file: TraceFile, limit=None):
        self._file, self._left, self._left_out = file, TRACE_EVENTS if limit is None else limit, 0
        self._thread = threading.get_native_id()
        self._inner, self._held = [0], None
        self.totals = defaultdict(lambda: [0, 0])
        file.name_thread(self._thread, threading.current_thread().name)
        self._count_bytes(time.perf_counter_ns())

    # What a run asks for; see `Plainly`.

    def step(self, deadline=None) -> "TracedStep":
        """The container of a run."""
        return TracedStep(deadline, self)

    def plan(self, plan):
        """A plan whose operations are events."""
        ends = {}
        return plan.observed(lambda op, function: self._observed(op, function, ends))

    def call(self, function, given):
        """What a compiled function gives."""
        with self.span("compiled function", "compiled"):
            found = function(given)
        self._show_inside(function, given)
        return found

    # Events.

    @contextmanager
    def span(self, name, category, **args):
        """Something that lasts; gives the dict of what is said about it."""
        mark = self._enter()
        try:
            yield args
        except BaseException as error:
            args["error"] = _described(error)
            raise
        finally:
            self._leave(mark, name, category, args)

    def phase(self, name, begin, end, facts) -> None:
        """Something that has been, as `nbta.compiler.phases` tells of it."""
        name, category, args = told(name, facts)
        self._file.complete(name, category, begin, end, self._thread, args)

    def body(self, graph, plan):
        """A body's plan, each of whose runs is an event; made anew for each run of a loop."""
        name, numbers = _name_of_run(graph), itertools.count()

        def run(step, values):
            number = next(numbers)
            with self.span(name.format(number), "body", number=number):
                return plan.use_up(step, values)

        return run

    def stopped(self, error) -> None:
        """Say where the run ended before its time."""
        args, now = {"error": _described(error)}, time.perf_counter_ns()
        self._file.instant("stopped", "error", now, self._thread, args)

    def finish(self) -> None:
        """Say what is missing."""
        if self._left_out:
            self._file.notes["left out"] = (
                f"{self._left_out} events of bodies, after the first {TRACE_EVENTS}; run fewer "
                f"iterations"
            )

    def _enter(self):
        """When it began, and whether there are not too many events already."""
        self._inner.append(0)
        shown = len(self._inner) <= 3 or self._left > 0  # the run, and what is in no body
        if len(self._inner) > 3:
            self._left -= shown
            self._left_out += not shown
        return time.perf_counter_ns(), shown

    def _leave(self, mark, name, category, args, op=None, describe=None):
        end, (begin, shown) = time.perf_counter_ns(), mark
        inner = self._inner.pop()
        if op is not None:
            total = self.totals[op]
            total[0] += end - begin - inner
            total[1] += 1
        if shown:
            if describe is not None:
                describe(args, begin, end)
            self._complete(name, category, begin, end, args)
        self._inner[-1] += time.perf_counter_ns() - begin  # what is noted is nobody's time

    def _complete(self, name, category, begin, end, args):
        self._file.complete(name, category, begin, end, self._thread, args)
        if self._file.is_full:
            start = time.perf_counter_ns()
            self._file.flush()
            self._file.complete(
                "write this file", "trace", start, time.perf_counter_ns(), self._thread, {}
            )

    def _observed(self, op, function, ends):
        """The function of an operation, as an event; ``ends`` says when others of its plan ran."""
        category = "array" if any(t.kind == HANDLE for t in [*op.inputs, *op.outputs]) else "math"
        category = "control" if all_bodies(op) else category
        line = {} if op.location is None else {"at": [shown_line(op)]}

        def observed(*values):
            args, mark = {"type": op.type, **line}, self._enter()
            try:
                results = function(*values)
            except BaseException as error:
                args["error"] = _described(error)
                self._leave(mark, op.name, category, args, op)
                raise
            if op.record.effects:
                step, *values = values
                values = [] if op.record.takes_list else values

            def describe(args, begin, end):
                args.update(_facts(op, results))
                if op.record.effects:
                    args.update(_array_facts(op, step, values, results))
                    self._count_bytes(end)
                self._draw_arrows(op, begin, end, ends)

            self._leave(mark, op.name, category, args, op, describe)
            return results

        return observed

    def _count_bytes(self, at):
        held = settings.get(settings.LIVE_BYTES)
        if held != self._held:
            self._held = held
            self._file.counter("bytes in arrays", at, {"bytes": held})

    def _draw_arrows(self, op, begin, end, ends):
        """From operations of the same body whose flow it takes."""
        for producer in dict.fromkeys(t.op for t in op.inputs if t.kind == FLOW):
            if producer in ends:
                self._file.arrow("flow", *ends[producer], begin, self._thread)
        ends[op] = begin, end

    # Compiled functions, from the inside.

    def _show_inside(self, function, given):
        if calls_users(function):
            self._file.notes["compiled function"] = (
                "it calls users' functions, which are not called once more to see what takes time"
            )
            return
        with self.span("once more, with clocks", "clocks") as args:
            try:
                measured = Instrumented(function).measure(
                    given, entries=TRACE_READINGS, compare=False
                )
            except (NotCompiledError, FailedError) as reason:
                args["left out"] = str(reason)
                return
        show_inside(self._file, measured)


class TracedStep(Step):
    """The container of a run that is traced."""

    def __init__(self, deadline, tracer):
        super().__init__(deadline)
        self._tracer = tracer

    def function(self, body):
        """What runs a sub-graph, with events."""
        if body not in self._functions:
            self._functions[body] = self._tracer.plan(body_function(body))
        return self._tracer.body(body, self._functions[body])


def traced(runner, given, compiled, file):
    """What a runner gives, with a file that says what happened; see `Session.run`."""
    with TraceFile(file) as out:
        tracer = Tracer(out)
        try:
            with listening(tracer.phase), tracer.span("run", "run"):
                return runner.run(given, compiled, tracer)
        except BaseException as error:
            tracer.stopped(error)
            raise
        finally:
            tracer.finish()


def show_inside(file, measured) -> None:
    """The readings of a call of compiled code as a row of events, in loops and iterations."""
    file.name_thread(INSTRUMENTED_ROW, "compiled code, read by clocks")
    nest = _Nest()
    for piece, begin, end in measured.entries:
        nest.enter(piece.written, begin)
        args = {"type": ", ".join(piece.types)}
        if piece.numbers:
            args["with numbers"] = ", ".join(piece.numbers)
        places = dict.fromkeys(shown_line(op) for op in piece.ops if op.location is not None)
        if places:
            args["at"] = list(places)
        nest.complete(", ".join(labels(piece)), "part", begin, end, args)
        if piece.ends_iteration:
            nest.end_iteration(end)
    if measured.entries:
        nest.enter((), measured.entries[-1][2])
    for name, category, begin, end, args in nest.from_outside():
        file.complete(name, category, begin, end, INSTRUMENTED_ROW, args)
    if measured.left_out:
        text = f"{measured.left_out} parts came after these, in the same call"
        file.notes["compiled function"] = text


class _Nest:
    """Loops that are open at some time, each with an iteration."""

    def __init__(self):
        self._open = []  # of name, begin, iterations, begin of the iteration or None
        self._done = []

    def from_outside(self) -> list:
        """Events, loops ahead of what is in them: viewers need that where both begin at once."""
        order = sorted(enumerate(self._done), key=lambda e: (e[1][2], -e[1][3], -e[0]))
        return [event for _, event in order]

    def enter(self, loops, at):
        """Be in some loops from now on, and in no others."""
        known = [loop[0] for loop in self._open]
        same = next((k for k, (a, b) in enumerate(zip(known, loops, strict=False)) if a != b), None)
        same = min(len(known), len(loops)) if same is None else same
        while len(self._open) > same:
            name, begin, iterations, iteration = self._open.pop()
            if iteration is not None:
                self.complete("condition", "control", iteration, at, {})
            self.complete(name, "control", begin, at, {"iterations": iterations})
        self._open += [[name, at, 0, None] for name in loops[same:]]
        for loop in self._open:
            loop[3] = at if loop[3] is None else loop[3]

    def end_iteration(self, at):
        """The iteration of the innermost loop ends."""
        name, begin, iterations, iteration = self._open[-1]
        self.complete(f"iteration {iterations}", "control", iteration, at, {"number": iterations})
        self._open[-1] = [name, begin, iterations + 1, None]

    def complete(self, name, category, begin, end, args) -> None:
        """An event."""
        self._done.append((name, category, begin, end, args))


def calls_users(function) -> bool:
    """Whether a compiled function calls users' functions, which only a run of its own may do."""
    return any(op.record.foreign for op in within(function.program.operations))


def shown_line(op) -> str:
    """The user's line that an operation comes from, for people."""
    location = op.location
    text = linecache.getline(location.filename, location.line).strip()
    whose = "gradient of " if is_of_gradient(op) else ""
    return f"{whose}{os.path.basename(location.filename)}:{location.line}: {text}"


def labels(piece) -> tuple:
    """What people see of a part of compiled code."""
    return (
        tuple(f"{name}: end of iteration" for name in piece.names)
        if piece.ends_iteration
        else piece.names
    )


def told(name, facts):
    """A phase as name, category and facts for people."""
    if "before" in facts:
        sizes = {key: len(within(facts[key].operations)) for key in ("before", "after")}
        return f"pass: {name}", "pass", {f"operations {key}": n for key, n in sizes.items()}
    if name == "machine code":
        made = facts.get("compiled", False)
        return ("Numba compiles" if made else "load from the disk cache"), "compile", {}
    return name, "compile", facts


def _name_of_run(graph):
    """What a run of a body is called, with {} for its number."""
    owner = graph.owner
    if owner is None:
        return "row {}"
    if is_branch(owner):
        return f"branch {Branch(owner).branches.index(graph)}"
    return "condition" if graph is Loop(owner).cond else "iteration {}"


def _described(error):
    return f"{type(error).__name__}: {error}"


def _facts(op, results):
    """Shapes and dtypes of results, and their bytes."""
    several = len(op.outputs) != 1 or op.record.several
    values = results if several else (results,)
    data = [np.asarray(v) for v, t in zip(values, op.outputs, strict=True) if t.kind == DATA]
    found = {"shapes": [list(v.shape) for v in data], "dtypes": [v.dtype.name for v in data]}
    found["bytes"] = sum(v.nbytes for v in data)
    if op.record is WHILE:
        found["iterations"] = int(values[0])
    return found


def _array_facts(op, step, values, results):
    """Which array an operation is on, and which slots; of what runs bodies nothing."""
    found = {}
    if all_bodies(op):
        return found
    handles = [v for v, t in zip(values, op.inputs, strict=True) if t.kind == HANDLE]
    if op.outputs and op.outputs[0].kind == HANDLE and isinstance(results, tuple):
        handles.insert(0, results[0])
    if handles:
        found["array"] = step.array(handles[0]).handle[1]
    if op.record in _INDEXED:
        slots = np.atleast_1d(values[1])
        listed = slots[:TRACE_SLOTS].tolist()
        found["slots"] = (
            listed if len(slots) <= TRACE_SLOTS else [*listed, f"... {len(slots)} in all"]
        )
    return found
