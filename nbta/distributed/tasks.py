"""What runs on workers. Every task is pure: run again, on any worker, it gives the same bits."""

import functools
import pickle
import threading
import traceback
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

import nbta
from nbta.distributed.batches import count, item
from nbta.distributed.parcels import Parcel
from nbta.distributed.stand_in import value_and_grad
from nbta.errors import NbtaError, UnimplementedError, located
from nbta.ops.half import widened
from nbta.structure import leaves

#: Functions that a worker keeps traced and compiled.
PROGRAMS = 32


@dataclass(frozen=True)
class Program:
    """A function and how to differentiate it; equal ones are traced once by a worker."""

    digest: str  # of what is in ``function``
    argnums: int | tuple
    axes: tuple
    compiled: Any
    function: Parcel = field(compare=False)


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


def hold(parcel: Parcel) -> Parcel:
    """Make data the result of a task.

    Data that a client scatters is lost with the workers that hold it. This Dask computes again.
    """
    return parcel


def run_shard(job: Parcel, batch: Parcel, first: int) -> Sums | Failure:
    """Sums over a shard, whose first item has this number in the whole batch."""
    program, args, kwargs = job.open()
    pieces = zip(batch.open(), args, program.axes, strict=True)
    args = [whole if axis is None else piece for piece, whole, axis in pieces]
    try:
        found = leaves(evaluator(program)(*args, **kwargs))
    except Exception as caught:
        error = caught
    else:
        arrays = [np.asarray(leaf) for leaf in found]
        return Sums([widened(array) for array in arrays], [array.dtype for array in arrays])
    return Failure(_portable(_blamed(error, program, args, kwargs, first)))


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
        make = functools.partial(value_and_grad, f, program.argnums, batch_axis=program.axes)
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


def _blamed(error, program, args, kwargs, first):
    """The error of the first item that fails on its own, with the number of that item."""
    one = nbta.value_and_grad(program.function.open(), program.argnums, compiled=False)
    items = count(args, program.axes)
    for number in range(items):
        try:
            one(*item(args, program.axes, number), **kwargs)
        except Exception as found:
            return _named(found, f"item {first + number} of the batch")
    return _named(error, f"items {first} to {first + items - 1} of the batch")


def _named(error, where):
    text = "".join(traceback.format_exception(error))
    if isinstance(error, NbtaError):
        error = located(error, where)
    else:
        error.add_note(where)
    error.add_note(f"On the worker:\n{text}")
    return error.with_traceback(None)


def _portable(error):
    """The error, where it can be sent; else one that says what it was."""
    try:
        pickle.loads(cloudpickle.dumps(error))
    except Exception:
        notes, error = error.__notes__, RuntimeError(f"{type(error).__name__}: {error}")
        for note in notes:
            error.add_note(note)
    return error
