"""How a graph runs: operation by operation, or as a compiled function.

`Session` and traced functions ask `Runners` for what computes their results, and call that.
"""

import contextlib
import functools
import math
import threading
import time

import numpy as np

from nbta.codegen.code import NotCompiledError
from nbta.compiler.executable import Compiled, FailedError, NotANumberError, no_collection
from nbta.compiler.explain import explained
from nbta.compiler.graph_cache import GraphCache
from nbta.compiler.manager import is_observed, settings
from nbta.compiler.pipeline import optimised
from nbta.errors import PerformanceWarning, UnimplementedError, invalid
from nbta.execution.batch import Items, Memories, run_batch
from nbta.execution.break_even import (
    Deadline,
    build_seconds,
    clock,
    estimates,
    processor,
)
from nbta.execution.non_finite import Watcher, is_watched
from nbta.execution.pass_check import checking
from nbta.execution.reference import ROW, Plan, Step, TooLongError, as_result
from nbta.graph.graph import at_once, within
from nbta.graph.operation import FLOW, HANDLE, Operation
from nbta.graph.verifier import verify
from nbta.locations import warn_caller
from nbta.naming import Handle
from nbta.ops.core.checks import PRINT, printing_once
from nbta.ops.random.draws import generators_of
from nbta.runtime.waiting import told
from nbta.symbolic import SymbolicTensorArray
from nbta.tuning import GIVE_UP_RUNS, REMEMBERED_SHAPES, WALL_CLOCK_RUN


class CompiledStep(Step):
    """The container of a run of compiled code."""

    def each(self, graph, shared, columns, sums, threads) -> list:
        """Results of a body for many inputs, on several threads."""
        found = graph.cache.get("runner")
        if found is None or found[0] != graph.version:
            runner = Runner(graph.inputs, graph.outputs, patience=0)
            found = graph.cache["runner"] = graph.version, runner, Memories()
        (_, runner, memories), items = found, Items(shared, columns, ROW)
        memory = memories.of(items.shapes())
        return run_batch(items, lambda _: runner, sums, "auto", threads, memory)


class Plainly:
    """How a run goes that nobody watches; `nbta.execution.tracer.Tracer` has the same methods."""

    step = Step

    def plan(self, plan):
        """What runs operations one by one."""
        return plan

    def call(self, function, given):
        """What a compiled function gives."""
        return function(given)


_PLAINLY = Plainly()


#: How nobody has to wait for a compilation; see `told`.
AHEAD = "a call with compiled=True does so ahead, and the disk has it for later processes"


class Runners:
    """What computes parts of a graph, made again when that has changed."""

    def __init__(self, graph):
        self._graph, self._version = graph, -1
        self._found: dict = {}
        self._lock = threading.Lock()

    def of(self, wanted, given) -> "Runner":
        """What computes tensors, arrays and operations from the values of tensors."""
        key = tuple(map(_key, wanted)), tuple(map(id, given))
        with self._lock:
            if self._version != self._graph.version:
                verify(self._graph)
                self._found, self._version = {}, self._graph.version
            if key not in self._found:
                self._found[key] = Runner(given, wanted)
            return self._found[key]


class Runner:
    """Computes some parts of a graph from others.

    Parameters
    ----------
    given : list of Tensor
    wanted : list of Tensor, SymbolicTensorArray or Operation
    patience : float, optional
        After how many CPU seconds one by one it compiles; by default when that pays, see
        `nbta.execution.break_even`.

    Attributes
    ----------
    tensors : tuple
        What is given, the tensors that are wanted, and the operations that are.
    shapes : tuple of tuple of int, or None
        Of the values that were fed last.
    compiled : list of Compiled
        One for each kind of shapes that was fed.
    refusals : dict
        Why there is none, by ranks.
    ran : Compiled or None
        What the last run ran, if it was not one by one.
    prints : bool
        Whether runs print or log anything.
    generators : list
        Those that it draws random numbers from.
    fallbacks : int
        How often a compiled function gave up and operations ran one by one.
    """

    def __init__(self, given, wanted, patience=None):
        self._wanted, self._patience = wanted, patience
        targets = [each for each in wanted if isinstance(each, Operation)]
        wanted = [tensor for each in wanted for tensor in _tensors(each)]
        self.tensors = given, wanted, targets
        self._plan = Plan(given, wanted, targets)
        # CPU seconds one by one: since it compiled last, and of the last run.
        self._spent, self._each = 0.0, None
        self.has_foreign = any(op.record.foreign for op in within(self._plan.operations))
        self.prints = any(op.record is PRINT for op in within(self._plan.operations))
        self.generators = generators_of(self._plan.operations)
        self._lock = threading.Lock()
        self._cache = GraphCache(given, wanted, targets)
        self._checks, self._values = settings().checks, None  # for which passes are compared
        self.shapes, self.ran, self._by_shapes = None, None, {}
        self._is_told = False
        self._missing = set()  # shapes for which nothing is on disk
        self.compiled, self.refusals, self.fallbacks = [], {}, 0

    def __call__(self, given, compiled="auto", trace=None) -> list:
        """What is wanted, as users get it, for values of what is given; see `Session.run`."""
        with at_once(), np.errstate(all="ignore"):
            if trace is None:
                values, step = self.run(given, compiled)
            else:
                from nbta.execution.tracer import traced  # what few need

                values, step = traced(self, given, compiled, trace)
        values = iter(values)
        return [_own(_collect(step, each, values), given) for each in self._wanted]

    def run(self, given, compiled, watcher=_PLAINLY):
        """Values of tensors for those that are given, and the step of the run."""
        with printing_once() as again:
            return self._run(given, compiled, watcher, again)

    def _run(self, given, compiled, watcher, again):
        self.shapes = shapes = tuple([np.shape(value) for value in given])
        self.ran = None
        if self._checks:
            self._values = given
        if is_watched():
            return self._one_by_one(given, None, Watcher())
        if compiled is False:
            return self._one_by_one(given, None, watcher)
        if compiled == "auto" and self._price(shapes, self._spent) > self._spent:
            with contextlib.suppress(TooLongError):
                return self._one_by_one(given, 1, watcher)
        function = self._ready(shapes)
        if isinstance(function, str):
            _check_asked(compiled, function)
            self._warn_of_refusal(function)
            return self._one_by_one(given, None, watcher)
        if compiled is True or function.misses < GIVE_UP_RUNS:
            try:
                return self._of_compiled(function, given, watcher)
            except NotANumberError:
                self._become_careful()
                again()
                return self._run(given, compiled, watcher, again)
            except (FailedError, MemoryError):  # the reference executor says what is too large
                self.fallbacks += 1
                again()
        found = self._one_by_one(given, None, watcher)
        function.misses += 1  # where the reference executor raises, it was right to give up
        return found

    def _of_compiled(self, function, given, watcher):
        """What a compiled function gives; where it gives up, it has drawn no random numbers."""
        states = [generator.state() for generator in self.generators]
        try:
            found = watcher.call(function, given)
        except (FailedError, MemoryError):
            for generator, state in zip(self.generators, states, strict=True):
                generator.restore(state)
            raise
        self.ran, function.misses = function, 0
        return found

    def _become_careful(self):
        """Compile programs whose products look at zeros from now on; one without gave a NaN."""
        with self._lock:
            if not self._cache.is_careful:
                self._cache.is_careful = True
                self.__dict__.pop("_program", None)
                self._missing.clear()
            self.compiled = [each for each in self.compiled if not each.generated.is_plain]
            known = self._by_shapes.copy().items()  # other threads add to it
            self._by_shapes = {shapes: each for shapes, each in known if each in self.compiled}

    def prepared(self, given, compiled):
        """The function in machine code for some values, or the reason why there is none."""
        if compiled is False:
            return "compiled=False says so"
        self.shapes = tuple([np.shape(value) for value in given])
        self._values = given if self._checks else None
        return self._ready(self.shapes)

    def ready(self, given, compiled, count):
        """The function in machine code, for values that are like ``count`` others; None for none.

        There is none where operations run one by one, or where Python has a part in it.
        """
        self.shapes = shapes = tuple([value.shape for value in given])
        self._values = given if self._checks else None
        self.ran = None
        if is_watched() or (compiled == "auto" and not self._is_long(given, count)):
            return None
        function = self._ready(shapes)
        if isinstance(function, str):
            _check_asked(compiled, function)
            return None
        if function.generated.calls:
            return None
        self.ran = function
        return function

    def _is_long(self, given, count):
        """Whether runs for so many values take so long that it pays to compile."""
        if self._each is None and not self.has_foreign:
            try:
                self._one_by_one(given, count)
            except TooLongError:
                return True
            except Exception:  # the run that counts meets it again
                return False
        have = self._spent + (self._each or 0.0) * count
        return self._price(self.shapes, have) <= have

    def _price(self, shapes, have):
        """CPU seconds one by one that compiling for some shapes must have been worth.

        Stages that ``have`` seconds are worth are gone through, as then the price of the next is
        known better. It is 0 for what is compiled, and infinite for what cannot be.
        """
        if self._patience is not None:
            return self._patience
        function = self._known(shapes)
        if function is None:
            price = estimates.looking(self._size)
            if have >= price and self._entry(shapes) is None:
                price = estimates.passes(self._size)
            if have < price and self._refusal(shapes) is None:
                return price
            function = self._attempted(shapes)
            if isinstance(function, str):
                self._warn_of_refusal(function)
        if isinstance(function, str) or function.is_refused:
            return math.inf
        return 0.0 if function.is_built else function.seconds + self._building(function)

    def _attempted(self, shapes):
        """`function` for whoever did not ask for it: where the compiler fails, that is a reason.

        Where somebody looks for faults of passes, as with NBTA_DEBUG=1, what it raised is raised.
        """
        try:
            return self.function(shapes)
        except Exception as error:
            if is_observed():
                raise
            reason = (
                f"the compiler failed, which is a fault of nbta's ({error!r}); please report it"
            )
            self.refusals[tuple(map(len, shapes))] = reason
            return reason

    def _warn_of_refusal(self, reason):
        """Say once that operations run one by one for ever, although it would pay to compile."""
        if not self._is_told:
            message = (
                f"this graph of {self._size} operations runs them one by one, 1 us to 10 us each, "
                f"as it cannot be compiled: {reason}. compiled=False says that this is meant"
            )
            warn_caller(message, PerformanceWarning)
            self._is_told = True  # unless the warning was an error

    @functools.cached_property
    def _size(self):
        """How many operations there are before all passes, those of bodies too."""
        return len(within(self._plan.operations))

    @staticmethod
    def _building(function):
        return estimates.building(build_seconds(function.generated.sizes), function.is_kept)

    def _ready(self, shapes):
        """The function for some shapes, in machine code; or the reason why there is none."""
        function = self.function(shapes)
        if isinstance(function, str) or function.is_built:
            return function
        estimate, begin = self._building(function), processor()
        try:
            lines = function.generated.source.count("\n")
            with told(f"compiling {lines} lines of a graph; {AHEAD}"):
                function.build()
        except NotCompiledError as reason:
            return str(reason)
        estimates.learn_building(estimate, processor() - begin)
        self._spent = 0.0  # functions for other shapes must be worth their own
        return function

    @property
    def has_code(self) -> bool:
        """Whether there is machine code for any shapes."""
        return any(function.is_built for function in self.compiled)

    def explain(self) -> str:
        """How it runs, in words."""
        one_by_one = f"operations run one by one: {len(self._plan.operations)} and their bodies'"
        function = self.last()
        if isinstance(function, str):
            return f"{one_by_one}\nnot compiled: {function}"
        waits = ""
        if not function.is_built:
            waits = (
                f"; not compiled yet, {one_by_one}; a later call waits for the compiler, or none "
                f"does after warm() with such arguments"
            )
        if self.fallbacks:
            waits += f"; it gave up {self.fallbacks} times, and {one_by_one}"
        if self._cache.is_careful:
            waits += "; products of adjoints look at zeros, as a result of one without had a NaN"
        return explained(function, waits)

    def last(self):
        """The compiled function for what was fed last, or the reason why there is none."""
        return self.function(self.shapes)

    def function(self, shapes):
        """The compiled function for values of some shapes, or the reason why there is none."""
        found = self._known(shapes)
        if found is None:
            with self._lock, no_collection():  # another thread may have been here before
                found = self._fitting(shapes) or self._compile(shapes)
            self._remember(shapes, found)
        return found

    def _known(self, shapes):
        """The same as far as that was found out; else None."""
        found = self._by_shapes.get(shapes)
        if found is None:
            found = self._fitting(shapes)
            if found is not None:
                self._remember(shapes, found)
        return found

    def _remember(self, shapes, found):
        if len(self._by_shapes) >= REMEMBERED_SHAPES:
            self._by_shapes.clear()
        self._by_shapes[shapes] = found

    def _fitting(self, shapes):
        return next((one for one in self.compiled if one.fits(shapes)), None)

    @functools.cached_property
    def _program(self):
        return optimised(*self.tensors, careful=self._cache.is_careful)

    def _refusal(self, shapes):
        """Why there is no function for values of such ranks, if that is known."""
        return self.refusals.get(tuple(map(len, shapes)))

    def _entry(self, shapes):
        """What is on disk for some shapes; None where nothing is."""
        if shapes not in self._missing:
            entry = self._cache.read(shapes)
            if entry is not None:
                return entry
            if len(self._missing) >= REMEMBERED_SHAPES:
                self._missing.clear()
            self._missing.add(shapes)
        return None

    def _compile(self, shapes):
        with checking(self.tensors, self._fitting_values(shapes), self.generators):
            return self._made(shapes)

    def _fitting_values(self, shapes):
        """Values of some shapes that were given last; None where there are none."""
        values = self._values
        fits = values is not None and tuple(map(np.shape, values)) == shapes
        return values if fits else None

    def _made(self, shapes):
        if self._refusal(shapes) is not None:
            return self._refusal(shapes)
        begin, entry = processor(), self._entry(shapes)
        size = len(within(self._program.operations)) if entry is None else entry.size
        try:
            with told(f"going through a graph of {size} operations, to compile it"):
                made = Compiled(lambda: self._program, shapes, CompiledStep, entry)
        except NotCompiledError as reason:
            self.refusals[tuple(map(len, shapes))] = str(reason)
            return str(reason)
        made.seconds = processor() - begin
        if entry is None:
            self._cache.write(shapes, made, size)
            self._missing.discard(shapes)
        self.compiled.append(made)
        return made

    def _one_by_one(self, given, count=None, watcher=_PLAINLY):
        """A run; with a count of runs like it, it is stopped where it pays to compile for them."""
        is_short = self._each is not None and self._each < WALL_CLOCK_RUN
        now, deadline = time.perf_counter if is_short else clock, None
        if count is not None and not self.has_foreign:
            price = functools.partial(self._price, self.shapes)
            deadline = Deadline(price, self._spent, now, count)
        step, begin = watcher.step(deadline), now()
        try:
            values = watcher.plan(self._plan)(step, given)
        finally:
            seconds = now() - begin - (deadline.aside if deadline else 0.0)
            self._spent += min(seconds, WALL_CLOCK_RUN if is_short else math.inf)
        self._each = seconds
        return values, step


def _key(wanted):
    """What is the same for all names of what is wanted: an array has many."""
    if isinstance(wanted, SymbolicTensorArray):
        return tuple(map(id, _tensors(wanted)))
    return id(wanted)


def _tensors(wanted):
    if isinstance(wanted, SymbolicTensorArray):
        return [wanted.handle, wanted.flow]
    return [] if isinstance(wanted, Operation) else [wanted]


def _collect(step, wanted, values):
    """What is wanted, from the values of its tensors."""
    if isinstance(wanted, SymbolicTensorArray):
        handle, _ = next(values), next(values)
        return step.array(handle)
    if isinstance(wanted, Operation):
        return None
    value = next(values)
    if wanted.kind == HANDLE:
        return Handle(*step.array(value).handle)  # without the array, which the run has done with
    return np.float32(0) if wanted.kind == FLOW else as_result(value)


def _own(value, given):
    """A result that shares no memory with what was fed, nor with a constant of the graph."""
    if not isinstance(value, np.ndarray):
        return value
    constant = value.base is None and not value.flags.writeable
    if constant or any(np.may_share_memory(value, fed) for fed in given):
        return value.copy()
    return value


def check_compiled(compiled) -> None:
    """Refuse what says nothing about whether to compile."""
    if not (compiled is True or compiled is False or compiled == "auto"):
        raise invalid("compiled", f"compiled must be 'auto', True or False, not {compiled!r}")


def _check_asked(compiled, reason):
    """Refuse to run one by one where compiled code was asked for."""
    if compiled is True:
        raise UnimplementedError(f"run: this cannot be compiled: {reason}")
