"""Random programs of operations on arrays: the slow model, eagerly, in graphs, in compiled code."""

import time
from functools import partial
from typing import NamedTuple

import numpy as np
from model import ModelArray, ModelError
from random_values import DTYPES, assert_same, make_value

import nbta
from nbta.runtime import python_calls, settings

from .raw_callers import Caller, Passed, swapped
from .ways import DisagreementError, count, executed


class Value(NamedTuple):
    """A repeatable array."""

    dtype: str
    shape: tuple
    seed: int

    def array(self):
        return make_value(as_dtype(self.dtype), self.shape, self.seed)


def as_dtype(name):
    return next(dtype for dtype in DTYPES if str(dtype) == name)


class Op(NamedTuple):
    """A method of the array with a number, or (without one) the making of an array."""

    method: str
    array: int | None
    args: tuple
    options: tuple = ()

    def run(self, arrays, make, convert):
        """Do it; what comes out, and arrays that are made are put after the others."""
        args = [convert(arg) for arg in self.args]
        options = dict(self.options)
        if self.method == "create":
            arrays.append(make(as_dtype(self.args[0]), *args[1:], **options))
            return None
        array = arrays[self.array]
        if self.method in LOOKS:
            return LOOKS[self.method](array, *args)
        result = getattr(array, self.method)(*args, **options)
        if self.method.startswith("grad"):
            arrays.append(result)
            return None
        if self.method in WRITES:
            arrays[self.array] = result
            return None
        return result


#: What leaves no trace, and is not there in graphs.
LOOKS = {
    "item": lambda array, index: array[index], "items": tuple, "asarray": np.asarray, "length": len,
}  # fmt: skip
WRITES = {"write", "append", "accumulate", "scatter", "unstack", "split"}


class Program(NamedTuple):
    """Operations, one after another; some fail, and leave the arrays as they were."""

    ops: list
    mapped: bool

    def operations(self):
        return len(self.ops)

    def __repr__(self):
        lines = [f"    {op!r}," for op in self.ops]
        head = ["from fuzz.raw import Op, Program, Value, check", "", "check(Program(["]
        return "\n".join([*head, *lines, f"], mapped={self.mapped}))"])


# Running them.


def as_value(arg):
    return arg.array() if isinstance(arg, Value) else arg


def as_swapped(arg):
    """A value with a dtype object of its own, most with their bytes the other way round."""
    return swapped(arg.array(), arg.seed) if isinstance(arg, Value) else arg


def attempt(op, arrays, make, convert):
    """The result of an operation and the reason why it failed, one of them None."""
    try:
        return op.run(arrays, make, convert), None
    except (ModelError, nbta.NbtaError) as error:
        return None, error.reason


def by_model(ops):
    """Arrays of the model, and what every operation gave; without those whose array is missing."""
    arrays, done = [], []
    for op in ops:
        if op.array is None or op.array < len(arrays):
            done.append((op, *attempt(op, arrays, ModelArray, as_value)))
    return arrays, done


def check(program, machine_code=False, counts=None):
    """Run a program in all ways; `DisagreementError` where one differs from the model."""
    counts = {} if counts is None else counts
    limits = {settings.FIRST_CAPACITY: 1}
    if program.mapped:
        limits |= {settings.MAP_THRESHOLD: 1, settings.RELEASE_THRESHOLD: 1}
    before = {field: settings.get(field) for field in limits}
    for field, value in limits.items():
        settings.put(field, value)
    try:
        models, done = by_model(program.ops)
        eagerly("eager", done, models, nbta.TensorArray, counts)
        eagerly("passed on", done, models, partial(Passed, machine_code), counts, as_swapped)
        if machine_code:
            eagerly("compiled methods", done, models, Caller, counts)
        in_graphs(done, models, machine_code, counts)
    finally:
        for field, value in before.items():
            settings.put(field, value)
    return counts


def eagerly(way, done, models, make, counts, convert=as_value):
    """Operation by operation, with states that are compared at the end and values at once."""
    arrays, kept = [], []
    for place, (op, want, reason) in enumerate(done):
        got, found = attempt(op, arrays, make, convert)
        if found != reason:
            raise DisagreementError(f"{way}: reasons", place, f"{op}: {found}, not {reason}")
        hold(way, place, got, want)
        kept.append((got, want))
    for place, (got, want) in enumerate(kept):
        hold(f"{way}: kept values", place, got, want)
    same_arrays(way, arrays, models)
    count(counts, way, len(done))


def hold(way, place, got, want):
    try:
        for mine, theirs in zip(parts(got), parts(want), strict=True):
            assert_same(mine, np.asarray(theirs))
    except AssertionError as error:
        raise DisagreementError(f"{way}: values", place, error) from error


def parts(result):
    if result is None:
        return []
    return list(result) if isinstance(result, tuple) else [result]


def same_arrays(way, arrays, models):
    """Shapes, states and guard bytes of all arrays."""
    for number, (array, model) in enumerate(zip(arrays, models, strict=True)):
        array = getattr(array, "array", array)
        found = described(array, [] if array.closed else array._states().tolist())
        wanted = described(model, model.states())
        if found != wanted:
            raise DisagreementError(f"{way}: states", number, f"{found}, not {wanted}")
        if not python_calls.native(python_calls.guards_intact)(array._address):
            raise DisagreementError(f"{way}: guard bytes", number, array)


def described(array, states):
    return array.closed, array.is_gradient, array.dynamic_size, array.element_shape, states


# In graphs.

#: Reasons of errors that a known element shape spares. A plain array learns one from a value that
#: has no rows, and a graph while it is built what its run does not.
OF_UNKNOWN_SHAPE = {"empty_gather", "unknown_element_shape"}


def in_graphs(done, models, machine_code, counts):
    """What went well as one graph; and that with one operation at its end that fails."""
    done = [step for step in done if step[0].method not in LOOKS]
    good = [(op, want) for op, want, reason in done if reason is None]
    run_graph(good, None, models, machine_code, counts)
    failing = [place for place, (_, _, reason) in enumerate(done) if reason is not None]
    few = len(done) < 20
    for place in failing if few else failing[:: max(1, len(failing) // 3)]:
        before = [(op, want) for op, want, reason in done[:place] if reason is None]
        run_graph(before, done[place], None, machine_code, counts)


def run_graph(good, failing, models, machine_code, counts):
    """A graph of operations by both executors."""
    graph = nbta.Graph()
    try:
        with graph.as_default():
            arrays, fetches, ends, feeds = build(good, failing)
    except nbta.NbtaError as error:  # some mistakes are seen while the graph is built
        if failing is None and not fixes_shape_of_nothing(good):
            raise DisagreementError("building: an error", len(good), f"{error}") from error
        count(counts, "refused as a graph is built")
        return
    session, of_nothing = nbta.Session(graph), fixes_shape_of_nothing(good)
    flows = [array.flow for array in arrays]  # Python keeps no array then
    ways = {"reference": (False, arrays), "compiled": (True, arrays), "buffers": (True, flows)}
    for way, (compiled, last) in ways.items():
        try:
            with executed(machine_code):
                found, ended, _ = session.run([fetches, last, ends], feeds, compiled=compiled)
        except nbta.NbtaError as error:
            count(counts, f"{way}: {told(way, error, len(good), failing, of_nothing)}")
            continue
        if failing is not None:
            if failing[2] not in OF_UNKNOWN_SHAPE or not of_nothing:
                raise DisagreementError(f"{way}: no error", len(good), f"{failing}")
            count(counts, f"{way}: knew the shape of no rows")
            continue
        wanted = [part for _, want in good for part in parts(want)]
        for place, (got, want) in enumerate(zip(found, wanted, strict=True)):
            hold(way, place, got, want)
        if last is arrays and not of_nothing:  # a run learns no shape from no rows
            same_arrays(way, ended, models)
        count(counts, way, len(good))


def told(way, error, place, failing, of_nothing):
    """What the error of a run is about; a disagreement where it should have another reason."""
    if way != "reference" and "cannot be compiled" in str(error):
        return "refused"
    if failing is not None and error.reason == failing[2]:
        return "failed as it should"
    if error.reason in OF_UNKNOWN_SHAPE and of_nothing:
        return "did not know the shape of no rows"
    raise DisagreementError(f"{way}: reasons", place, f"{failing}: {error}") from error


def fixes_shape_of_nothing(good):
    """Whether a value without rows is written, whose shape counts while a graph is built."""
    bulk = {"scatter", "unstack", "split"}
    values = [arg for op, _ in good if op.method in bulk for arg in op.args]
    return any(isinstance(value, Value) and value.shape[:1] == (0,) for value in values)


def build(good, failing):
    """Arrays, tensors of all results, operations that close arrays, and feeds."""
    arrays, fetches, ends, feeds = [], [], [], {}

    def convert(arg):
        if not isinstance(arg, Value):
            return arg
        value = arg.array()
        if arg.seed % 2 or value.dtype.kind not in "biufc":
            return value
        shape = tuple(
            None if (arg.seed >> axis) % 4 == 0 else n for axis, n in enumerate(arg.shape)
        )
        fed = nbta.placeholder(value.dtype, shape)
        feeds[fed] = value
        return fed

    for op in [op for op, _ in good] + ([failing[0]] if failing else []):
        result = op.run(arrays, nbta.TensorArray, convert)
        if op.method == "close":
            ends.append(result)
        else:
            fetches += parts(result)
    return arrays, fetches, ends, feeds


# Cutting them down.


def shrunk(program, fails, seconds=120.0):
    """Without operations that it does without, in chunks of half their number and less."""
    end = time.monotonic() + seconds
    chunk = max(1, len(program.ops) // 2)
    while chunk:
        start = len(program.ops)
        while start > 0 and time.monotonic() < end:
            start -= chunk
            kept = without(program.ops, range(max(0, start), start + chunk))
            if kept and fails(program._replace(ops=kept)):
                program = program._replace(ops=kept)
        chunk //= 2
    return program


def without(ops, places):
    """Operations but for those at some places, and those on arrays that these made."""
    arrays, numbers, kept = [], {}, []
    for place, op in enumerate(ops):
        before = len(arrays)
        if op.array is None or op.array < before:
            attempt(op, arrays, ModelArray, as_value)
        if place in places or not (op.array is None or op.array in numbers):
            continue
        kept.append(op if op.array is None else op._replace(array=numbers[op.array]))
        if len(arrays) > before:
            numbers[before] = len(numbers)
    return kept
