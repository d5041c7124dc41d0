"""Random programs of operations on arrays: the slow model, eagerly, in graphs, in compiled code."""

import random
import time
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from model import MAX_RANK, ModelArray, ModelError
from numba import njit
from random_values import DTYPES, RECORD, assert_same, make_value

import nbta
from nbta.runtime import python_calls, settings

from .ways import DisagreementError, count, in_python

SOURCES = ("gradients", "gradients_1", "deep/gradients")
EXTENTS = (0, 1, 1, 2, 3)
MOST_ARRAYS = 10
#: What `make_value` has as a dtype and a literal can name.
NAMED = [dtype for dtype in DTYPES if dtype != RECORD]


class Value(NamedTuple):
    """A repeatable array."""

    dtype: str
    shape: tuple
    seed: int

    def array(self):
        return make_value(as_dtype(self.dtype), self.shape, self.seed)


def as_dtype(name):
    return next(dtype for dtype in NAMED if str(dtype) == name)


class Op(NamedTuple):
    """A method of the array with a number, or (without one) the making of an array."""

    method: str
    array: int | None
    args: tuple
    options: tuple = ()

    def run(self, arrays, make, convert):
        """Do it; what comes out, and arrays that are made are put behind the others."""
        args = [convert(arg) for arg in self.args]
        options = dict(self.options)
        if self.method == "create":
            arrays.append(make(as_dtype(self.args[0]), *args[1:], **options))
            return None
        array = arrays[self.array]
        result = getattr(array, self.method)(*args, **options)
        if self.method.startswith("grad"):
            arrays.append(result)
            return None
        if self.method in WRITES:
            arrays[self.array] = result
            return None
        return result


WRITES = {"write", "append", "accumulate", "scatter", "unstack", "split"}


class Program(NamedTuple):
    """Operations, one after another; some fail, and leave the arrays as they were."""

    ops: list
    mapped: bool

    def operations(self):
        return len(self.ops)

    def __repr__(self):
        lines = [f"    {op!r}," for op in self.ops]
        return "\n".join(["raw.check(raw.Program([", *lines, f"], mapped={self.mapped}))"])


# Making programs.


class Maker:
    """Draws operations that are mostly allowed, by the state of a model."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.arrays, self.ops = [], []
        self.names = [str(d) for d in self.random.sample(NAMED, 3)] + ["float64"]

    def shape(self):
        return tuple(
            self.random.choice(EXTENTS) for _ in range(self.random.choice((0, 0, 1, 2, 3)))
        )

    def pattern(self, shape):
        hidden = tuple(n if self.random.random() < 0.7 else None for n in shape)
        return self.random.choice([None, shape, shape, hidden])

    def value(self, array, shape):
        dtype = array.dtype.name if array.dtype.name == "bfloat16" else str(array.dtype)
        if self.random.random() < 0.03:
            dtype = self.random.choice(self.names)
        return Value(dtype, tuple(shape), self.random.randrange(1 << 16))

    def fitting(self, array):
        """Mostly a shape that an array takes."""
        if self.random.random() < 0.06:
            return self.random.choice([self.shape(), (1,) * (MAX_RANK - 1)])
        if array.element_shape is None:
            return self.shape()
        return tuple(self.random.choice(EXTENTS) if n is None else n for n in array.element_shape)

    def slot_shape(self, array, index):
        slot = array.slots[index] if 0 <= index < len(array.slots) else None
        if (
            slot is not None
            and slot.written
            and slot.shape is not None
            and self.random.random() < 0.9
        ):
            return slot.shape
        return self.fitting(array)

    def slot(self, array, good):
        """Mostly a slot for which something holds."""
        suitable = [k for k, slot in enumerate(array.slots) if good(slot)]
        if suitable and self.random.random() < 0.9:
            return self.random.choice(suitable)
        return self.random.choice([len(array.slots), self.random.randint(-1, len(array.slots) + 2)])

    def slots(self, array):
        count = self.random.randint(0, 4)
        reads = lambda slot: slot.written and not slot.cleared  # noqa: E731
        return tuple(self.slot(array, reads) for _ in range(count))

    def create(self):
        shape, flag = self.shape(), lambda: self.random.random() < 0.5
        options = {
            "dynamic_size": flag(), "clear_after_read": flag(), "infer_shape": flag(),
            "element_shape": self.pattern(shape),
        }  # fmt: skip
        size = self.random.randint(0, 4)
        return Op("create", None, (self.random.choice(self.names), size), tuple(options.items()))

    def draw(self):
        """The next operation."""
        if not self.arrays or (len(self.arrays) < MOST_ARRAYS and self.random.random() < 0.06):
            return self.create()
        number = self.random.randrange(len(self.arrays))
        array = self.arrays[number]
        kinds = [*WRITES, "write", "append", "accumulate", "read", "read", "gather", "stack",
                 "concat", "size"]  # fmt: skip
        if len(self.arrays) < MOST_ARRAYS:
            kinds += ["grad", "grad_with_shape"]
        if self.random.random() < 0.02:
            kinds = ["close"]
        kind = self.random.choice(kinds)
        args, options = getattr(self, f"_{kind}")(array)
        return Op(kind, number, args, tuple(options.items()))

    def _write(self, array):
        free = lambda s: not s.read and (array.is_gradient or not s.written)  # noqa: E731
        index = self.slot(array, free)
        return (index, self.value(array, self.slot_shape(array, index))), {}

    _accumulate = _write

    def _append(self, array):
        return (self.value(array, self.fitting(array)),), {}

    def _scatter(self, array):
        indices = self.slots(array)
        rows = len(indices) + (self.random.random() < 0.05)
        return (indices, self.value(array, (rows, *self.fitting(array)))), {}

    def _unstack(self, array):
        rows = self.random.choice([0, 1, len(array.slots), len(array.slots) + 1])
        return (self.value(array, (rows, *self.fitting(array))),), {}

    def _split(self, array):
        shapes = [self.slot_shape(array, k) or (1,) for k in range(len(array.slots))]
        lengths = tuple(shape[0] for shape in shapes)
        behind = shapes[0][1:] if shapes else ()
        if lengths and self.random.random() < 0.1:
            lengths = (lengths[0] - 1, *lengths[1:])
        return (self.value(array, (max(0, sum(lengths)), *behind)), lengths), {}

    def _read(self, array):
        return (self.slot(array, lambda slot: slot.written and not slot.cleared),), {}

    def _gather(self, array):
        shape = self.pattern(self.fitting(array)) if self.random.random() < 0.2 else None
        return (self.slots(array),), {"element_shape": shape}

    def _stack(self, array):
        return (), {}

    _size = _close = _stack

    def _concat(self, array):
        shape = self.pattern(self.fitting(array)[1:]) if self.random.random() < 0.3 else None
        return (), {"element_shape_except0": shape}

    def _grad(self, array):
        return (self.random.choice(SOURCES),), {"clear_after_read": self.random.random() < 0.7}

    def _grad_with_shape(self, array):
        args = self.random.choice(SOURCES), self.shape()
        return args, {"clear_after_read": self.random.random() < 0.7}


def program(seed, length=120):
    """A program; `Maker` needs to know how it goes."""
    maker = Maker(seed)
    for _ in range(length):
        op = maker.draw()
        maker.ops.append(op)
        attempt(op, maker.arrays, ModelArray, as_value)
    return Program(maker.ops, maker.random.random() < 0.3)


# Running them.


def as_value(arg):
    return arg.array() if isinstance(arg, Value) else arg


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
        if machine_code:
            eagerly("compiled methods", done, models, Caller, counts)
        in_graphs(done, models, machine_code, counts)
    finally:
        for field, value in before.items():
            settings.put(field, value)
    return counts


def eagerly(way, done, models, make, counts):
    """Operation by operation, with states that are compared at the end and values at once."""
    arrays, kept = [], []
    for place, (op, want, reason) in enumerate(done):
        got, found = attempt(op, arrays, make, as_value)
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


def in_graphs(done, models, machine_code, counts):
    """What went well as one graph; and that with one operation at its end that fails."""
    good = [(op, want) for op, want, reason in done if reason is None]
    run_graph(good, None, models, machine_code, counts)
    failing = [place for place, (_, _, reason) in enumerate(done) if reason is not None]
    for place in failing[:: max(1, len(failing) // 3)]:
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
    session = nbta.Session(graph)
    for way, compiled in {"reference": False, "compiled": True}.items():
        try:
            with nullcontext() if machine_code else in_python():
                found, ended, _ = session.run([fetches, arrays, ends], feeds, compiled=compiled)
        except nbta.NbtaError as error:
            if compiled and "cannot be compiled" in str(error):
                count(counts, "not compiled")
            elif failing is None or error.reason != failing[2]:
                stage = f"{way}: reasons"
                raise DisagreementError(stage, len(good), f"{failing}: {error}") from error
            else:
                count(counts, f"{way} failed as it should")
            continue
        if failing is not None:
            raise DisagreementError(f"{way}: no error", len(good), f"{failing}")
        wanted = [part for _, want in good for part in parts(want)]
        for place, (got, want) in enumerate(zip(found, wanted, strict=True)):
            hold(way, place, got, want)
        same_arrays(way, ended, models)
        count(counts, way, len(good))


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


# In users' compiled functions.


class Caller:
    """An array whose methods are called in compiled functions, where these take them."""

    def __init__(self, dtype, *args, **options):
        self.array = nbta.TensorArray(dtype, *args, **options)

    def __getattr__(self, name):
        return getattr(self.array, name)

    @classmethod
    def over(cls, array):
        self = object.__new__(cls)
        self.array = array
        return self

    def _is_plain(self, *values):
        if self.array.dtype.name not in ("float64", "int32"):
            return False
        rank = self.array._numba_type_.ndim
        same = all(value.dtype == self.array.dtype and value.ndim == rank for value in values)
        return rank in (0, 1) and same

    def _do(self, function, method, *args, values=()):
        if self._is_plain(*values):
            return function(self.array, *(a[()] if isinstance(a, np.ndarray) else a for a in args))
        return getattr(self.array, method)(*args)

    def write(self, index, value):
        self._do(_write, "write", index, value, values=[value])
        return self

    def append(self, value):
        self._do(_append, "append", value, values=[value])
        return self

    def accumulate(self, index, value):
        self._do(_accumulate, "accumulate", index, value, values=[value])
        return self

    def read(self, index):
        value = self._do(_read, "read", index)
        return value if hasattr(value, "dtype") else self.array.dtype.type(value)

    def stack(self):
        return self._do(_stack, "stack")

    def size(self):
        return np.int32(self._do(_size, "size"))

    def _through(self, method, *args, **options):
        getattr(self.array, method)(*args, **options)
        return self

    def scatter(self, *args):
        return self._through("scatter", *args)

    def unstack(self, *args):
        return self._through("unstack", *args)

    def split(self, *args):
        return self._through("split", *args)

    def grad(self, *args, **options):
        return Caller.over(self.array.grad(*args, **options))

    def grad_with_shape(self, *args, **options):
        return Caller.over(self.array.grad_with_shape(*args, **options))


@njit(cache=True)
def _write(ta, index, value):
    ta.write(index, value)


@njit(cache=True)
def _append(ta, value):
    ta.append(value)


@njit(cache=True)
def _accumulate(ta, index, value):
    ta.accumulate(index, value)


@njit(cache=True)
def _read(ta, index):
    return ta.read(index)


@njit(cache=True)
def _stack(ta):
    return ta.stack()


@njit(cache=True)
def _size(ta):
    return ta.size()


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
