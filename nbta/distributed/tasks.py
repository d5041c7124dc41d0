"""What runs on workers, and how it gets there.

Every task is pure: run again, on any worker, it gives the same bits.
"""

import functools
import pickle
import threading
import traceback
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cloudpickle
import numba
import numpy as np
from dask.sizeof import sizeof

import nbta
from nbta.errors import UnimplementedError
from nbta.ops.bodies import note
from nbta.ops.half import widened
from nbta.packing import pack
from nbta.structure import leaves, map_batches
from nbta.tensor_array import TensorArray

# Pickled once, and not looked into on the way.

#: Bytes; compiled code is fast with arrays whose items lie at multiples of their size.
ALIGNMENT = 16


class Pickled:
    """A pickle whose arrays stay where they are.

    Dask sends the arrays' memory as it is, without a copy, and neither Dask nor its scheduler sees
    what is inside: it may be of classes that only the user's code knows.

    Parameters
    ----------
    content : object
        Anything that cloudpickle takes.

    Examples
    --------
    >>> from nbta.distributed.tasks import Pickled
    >>> weights = np.ones(3)
    >>> np.shares_memory(Pickled({"w": weights}).open()["w"], weights)
    True
    """

    __slots__ = ("_body", "_buffers")

    def __init__(self, content):
        buffers = []
        self._body = cloudpickle.dumps(content, protocol=5, buffer_callback=buffers.append)
        # Read-only memory is never copied on arrival.
        self._buffers = [buffer.raw().toreadonly() for buffer in buffers]

    def open(self):
        """The content; its arrays are read-only, and lie in the pickle's memory."""
        self._buffers = [_aligned(buffer) for buffer in self._buffers]
        return pickle.loads(self._body, buffers=self._buffers)

    def parts(self) -> list:
        """All bytes of it."""
        return [self._body, *self._buffers]

    def __sizeof__(self):  # by which Dask weighs where to compute
        return object.__sizeof__(self) + sum(len(part) for part in self.parts())

    def __reduce_ex__(self, protocol):
        wrap = pickle.PickleBuffer if protocol >= 5 else bytes
        return _arrived, (self._body, list(map(wrap, self._buffers)))


def _arrived(body, buffers):
    pickled = object.__new__(Pickled)
    pickled._body = body
    pickled._buffers = [memoryview(buffer).cast("B").toreadonly() for buffer in buffers]
    return pickled


def _aligned(buffer):
    """The buffer, or a copy: Dask joins small messages, and so arrays arrive at any address."""
    items = np.frombuffer(buffer, np.uint8)
    return buffer if items.ctypes.data % ALIGNMENT == 0 else memoryview(items.copy()).toreadonly()


@sizeof.register(TensorArray)
def _bytes_of(array):
    """What an array and its gradient arrays hold, by which Dask weighs where to compute."""
    return 0 if array.closed else sum(part.nbytes for part in pack(array).values())


# The tasks.

#: Functions that a worker keeps traced and compiled.
PROGRAMS = 32


@dataclass(frozen=True)
class Program:
    """A function and how to differentiate it; equal ones are traced once by a worker."""

    digest: str  # of what is in ``function``
    argnums: int | tuple
    axes: tuple
    compiled: Any
    function: Pickled = field(compare=False)


class Job(NamedTuple):
    """What all shards of a call have in common."""

    program: Program
    args: list  # None in place of what is cut
    kwargs: dict


class Sums(NamedTuple):
    """Loss and gradients, each the sum over some items; half precision is summed in float32."""

    values: list
    dtypes: list


class Failure(NamedTuple):
    """What a function raised: a result like others, as running it again would not help."""

    error: Exception


def hold(pickled: Pickled) -> Pickled:
    """Make data the result of a task.

    Data that a client scatters is lost with the workers that hold it. This Dask computes again.
    """
    return pickled


def run_shard(job: Pickled, batch: Pickled, start: int, stop: int) -> Sums | Failure:
    """Sums over a shard: the items of a batch from one number to another."""
    job, pieces = job.open(), batch.open()
    numba.set_num_threads(1)  # of this thread; Dask runs as many tasks at once as it may
    try:
        found = leaves(evaluator(job.program)(*_joined(job.args, pieces), **job.kwargs))
        arrays = [np.asarray(leaf) for leaf in found]
        return Sums([widened(array) for array in arrays], [array.dtype for array in arrays])
    except Exception as caught:
        error = caught
    return _failure(error, job, pieces, start, stop)


def _failure(error, job, pieces, start, stop):
    """What the first item raises that fails by itself; where none does, the error of all."""
    f, argnums = job.program.function.open(), job.program.argnums
    one = nbta.value_and_grad(f, argnums, compiled=False)
    for number in range(start, stop):
        parts = {place: item(piece, number - start) for place, piece in pieces.items()}
        try:
            one(*_joined(job.args, parts), **job.kwargs)
        except Exception as found:
            return Failure(_portable(found, f"(item {number} of the batch)"))
    return Failure(_portable(error, f"(items {start} to {stop - 1} of the batch)"))


def _joined(args, pieces):
    """All arguments, with those that are cut."""
    return [pieces.get(place, arg) for place, arg in enumerate(args)]


def item(piece, number):
    """An item of what `cut` gives."""
    return map_batches(lambda _, part: part[number], "args", piece)


def add(*parts: Sums | Failure) -> Sums | Failure:
    """Sums over the items of all parts by a binary tree; of failures, that of the earliest item."""
    failures = [part for part in parts if isinstance(part, Failure)]
    if failures:
        return failures[0]
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [*(_sum(*pair) for pair in pairs), *parts[len(parts) // 2 * 2 :]]
    return parts[0]


def _sum(left, right):
    pairs = zip(left.values, right.values, strict=True)
    return Sums([np.add(a, b) for a, b in pairs], left.dtypes)


class Evaluator:
    """Value and gradient of a shard, in one process.

    Compiled code may take sums in another order than operations one by one. So which of the two
    runs must not depend on what a worker did before: "auto" means compiled from the first call on,
    wherever that is possible.
    """

    def __init__(self, program: Program):
        f, auto = program.function.open(), program.compiled == "auto"
        options = {"argnums": program.argnums, "batch_axis": program.axes}
        make = functools.partial(nbta.value_and_grad, f, **options)
        self._run = make(compiled=True if auto else program.compiled)
        self._otherwise = make(compiled=False) if auto else None
        self._lock, self._warm = threading.Lock(), False

    def __call__(self, *args, **kwargs):
        """Sums over the items in the arguments."""
        if self._warm:
            return self._evaluate(args, kwargs)
        with self._lock:  # threads of a worker wait for the first to trace and compile
            found = self._evaluate(args, kwargs)
            self._warm = True
        return found

    def _evaluate(self, args, kwargs):
        try:
            return self._run(*args, **kwargs)
        except UnimplementedError:
            if self._otherwise is None:
                raise
        return self._otherwise(*args, **kwargs)


_evaluators = functools.lru_cache(PROGRAMS)(Evaluator)
_lock = threading.Lock()


def evaluator(program: Program) -> Evaluator:
    """The one evaluator of a program in this process."""
    with _lock:
        return _evaluators(program)


def _portable(error, where):
    """The error with where it happened, as something that can be sent."""
    text = "".join(traceback.format_exception(error))
    try:
        error = pickle.loads(cloudpickle.dumps(error.with_traceback(None)))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    note(error, where)
    error.add_note(f"On the worker:\n{text}")
    return error
