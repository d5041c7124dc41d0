"""Data-parallel gradients on several machines, with Dask.

A batch is divided into shards, workers compute the sums of losses and gradients over them, and a
tree of additions combines these sums. `nbta.TensorArray` objects can be sent by Dask like other
data; their pickles contain the arrays' memory without a copy. All tasks are pure: when a task runs
again, on any worker, its result is bitwise identical.

This needs the package ``distributed``: ``pip install "nbta[distributed]"``.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import pickle
import threading
import traceback
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numba
import numpy as np

import nbta
from nbta import packing
from nbta.api.derivatives import (
    axes_of,
    batches_apart,
    check_outside,
    common_length,
    items_first,
)
from nbta.api.differentiated import places_of
from nbta.errors import FailedPreconditionError, UnimplementedError, invalid
from nbta.frontend import pickling
from nbta.ops.core.elementwise import narrow, widened
from nbta.ops.loops.bodies import note
from nbta.structure import leaves, map_batches, pack
from nbta.tensor_array import TensorArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.typing import Compiled, P, R

try:
    import cloudpickle
    import dask
    from dask import delayed
    from dask.sizeof import sizeof
    from distributed import Client, KilledWorker
except ModuleNotFoundError as error:
    if error.name not in ("cloudpickle", "dask", "distributed"):
        raise
    raise ImportError('nbta.distributed needs Dask: pip install "nbta[distributed]"') from None

__all__ = ["value_and_grad"]

#: Shards of a batch that has as many items, whatever the number of workers.
SHARDS = 16
#: How often Dask runs a task again that failed on its way; what the function raises is final.
RETRIES = 3


def value_and_grad(
    f: Callable[P, R],
    client: Client,
    argnums: int | tuple[int, ...] = 0,
    *,
    batch_axis: int | tuple[int | None, ...] = 0,
    reduction: Literal["sum", "mean"] = "sum",
    shards: int | None = None,
    compiled: Compiled = "auto",
) -> Callable[..., tuple[R, Any]]:
    """Make a function that computes the loss of a batch and its gradient on a Dask cluster.

    Parameters
    ----------
    f : callable
        The loss of one item, a scalar. It is sent to the workers by cloudpickle, in its state at
        the first call. Values that it uses from outside are sent with every call, so pass large
        arrays as arguments.
    client : distributed.Client
        The client of the cluster.
    argnums : int or tuple of int
        The positional arguments to differentiate with respect to, which all items share.
    batch_axis : int or tuple of (int or None)
        The axis along which arguments are divided into items, as for `nbta.value_and_grad`; a list
        is a batch, too.
    reduction : {"sum", "mean"}
        How the losses of the items are combined.
    shards : int, optional
        The number of parts into which to divide the batch, at most one per item; by default 16.
    compiled : {"auto", True, False}
        As for `nbta.value_and_grad`, except for "auto": the function is compiled at its first call,
        if that is possible.

    Returns
    -------
    callable
        A function of the arguments of ``f`` that returns ``(value, gradient)``, as
        `nbta.value_and_grad` does.

    Raises
    ------
    InvalidArgumentError
        If ``client`` is not a synchronous client. When called: if arguments cannot be divided.
    FailedPreconditionError
        When called: if workers cannot import nbta or have a different version of it, or if a shard
        caused several workers to die.

    Notes
    -----
    The shards depend only on the batch, and a fixed binary tree adds their results. Results are
    therefore bitwise identical for any number of workers, if their processors are of the same kind.
    Other values of ``shards`` change the last digits. The loss of a worker does not change the
    result: Dask computes its tasks again.

    An exception of ``f`` is raised here. It is that of the first failing item of the batch, which
    the message or a note names.

    Examples
    --------
    >>> from distributed import Client
    >>> from nbta.distributed import value_and_grad
    >>> def loss(w, x, y):
    ...     return (nbta.sum(w * x) - y) ** 2
    >>> x, y = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]]), np.array([1.0, 2.0, 4.0])
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     value_and_grad(loss, client, reduction="mean")(np.array([1.0, 1.0]), x, y)
    (np.float64(0.333...), array([-0.666..., -1.333...]))
    """
    _check_client(client)
    _check_options(shards, compiled)
    made = _Gradients(f, client, argnums, batch_axis, reduction, shards or SHARDS, compiled)

    @functools.wraps(f, updated=())  # a dispatcher's own attributes cannot be pickled
    def both(*args, **kwargs):
        return made(*args, **kwargs)

    return both


def _check_client(client):
    if not isinstance(client, Client):
        message = f"client: {client!r} is not a distributed.Client"
        raise invalid("client", message)
    if client.asynchronous:
        message = "client: it is asynchronous, and this waits for results; give a synchronous one"
        raise invalid("client", message)


def _check_options(shards, compiled):
    if shards is not None and (type(shards) is not int or shards < 1):
        raise invalid("shards", f"shards must be an int of 1 or more, and is {shards!r}")
    if compiled != "auto" and type(compiled) is not bool:
        raise invalid("compiled", f"compiled must be 'auto', True or False, and is {compiled!r}")


class _Gradients:
    """What `value_and_grad` was given, and the function as workers get it."""

    def __init__(self, f, client, argnums, batch_axis, reduction, shards, compiled):
        self._f, self._client, self._argnums = f, client, argnums
        self._axes, self._reduction = batch_axis, reduction
        self._shards, self._compiled = shards, compiled
        options = {"batch_axis": batch_axis, "reduction": reduction, "compiled": compiled}
        self._here = nbta.value_and_grad(f, argnums, **options)

    def __call__(self, *args, **kwargs):
        check_outside(args, kwargs)
        places = places_of(self._argnums, len(args))
        axes = axes_of(self._axes, places, len(args))
        args = batches_apart(args, axes)
        for place in places:
            if axes[place] is not None:
                message = (
                    f"batch_axis: argument {place} is one of argnums, which all items share here; "
                    f"give None for it"
                )
                raise invalid("batch_axis", message)
        items = count(args, axes)
        if items == 0:
            return self._here(*args, **kwargs)
        _check_versions(self._client)
        sums = self._compute(self._plan(args, kwargs, axes, items), items)
        divisor = items if self._reduction == "mean" else 1
        values = [_finished(*pair, divisor) for pair in zip(*sums, strict=True)]
        chosen = tuple(args[place] for place in places)
        like = chosen if isinstance(self._argnums, tuple) else chosen[0]
        return pack((0.0, like), values)

    def _sent(self):
        """The function, pickled with what it reads from outside as that is now, and its digest."""
        try:
            pickled = Pickled(self._f)
        except Exception as error:
            message = (
                f"f cannot be sent to workers ({error}); make what it uses inside it, or pass it in"
            )
            raise invalid("pickle", message) from error
        digest = hashlib.blake2b(digest_size=16)
        for part in pickled.parts():
            digest.update(part)
        return pickled, digest.hexdigest()

    def _plan(self, args, kwargs, axes, items):
        """The sums over all items, to be computed."""
        function, digest = self._sent()
        cuts = {place: axis for place, axis in enumerate(axes) if axis is not None}
        rows = tuple(0 if place in cuts else None for place in range(len(args)))
        program = Program(digest, self._argnums, rows, self._compiled, function)
        shared = [None if place in cuts else arg for place, arg in enumerate(args)]
        job = _task(hold)(Pickled(Job(program, shared, kwargs)))
        shards = min(self._shards, items)
        bounds = itertools.pairwise(items * k // shards for k in range(shards + 1))
        parts = []
        for start, stop in bounds:
            pieces = {place: cut(args[place], axis, start, stop) for place, axis in cuts.items()}
            parts.append(_task(run_shard)(job, Pickled(pieces), start, stop))
        return _added(parts)

    def _compute(self, plan, items):
        # Dask warns of data in graphs; here that is what makes it safe from dying workers.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": 2**62}):
            future = self._client.compute(plan, retries=RETRIES, optimize_graph=False)
        try:
            result = future.result()
        except KilledWorker as error:
            message = (
                f"a shard of the {items} items ended every worker that ran it ({error}); if memory "
                f"was short there, cut the batch into more shards, with shards="
            )
            raise FailedPreconditionError(message) from error
        except BaseException:
            self._client.cancel([future], force=True)
            raise
        finally:
            future.release()
        if isinstance(result, Failure):
            raise result.error
        return result


def _task(function):
    return delayed(function, pure=False, traverse=False)


def _added(parts):
    """The sum of all parts by a binary tree that depends on nothing but their number.

    A task does two levels of it, as each task on the way to the result costs 6 ms.
    """
    while len(parts) > 1:
        parts = [_task(add)(*parts[k : k + 4]) for k in range(0, len(parts), 4)]
    return parts[0]


def _finished(value, dtype, divisor):
    """A sum, or a mean, as it is handed out: an array of one's own, or a scalar."""
    value = value / divisor if divisor != 1 else value
    return np.array(narrow(value, dtype))[()]


# Batches in pieces: lists of items, and structures of arrays that hold an item a row.


def count(args, axes) -> int:
    """How many items there are in arguments that are cut along some axes.

    Raises
    ------
    InvalidArgumentError
        For arguments that do not agree, and for what has no such axis.
    """
    return common_length(
        (path, length)
        for i, (arg, axis) in enumerate(zip(args, axes, strict=True))
        if axis is not None
        for path, length in _lengths(f"args[{i}]", arg, axis)
    )


def _lengths(path, arg, axis):
    found = []

    def noted(path, part):
        is_list = isinstance(part, list)
        found.append((path, len(part) if is_list else len(items_first(path, part, axis))))

    map_batches(noted, path, arg)
    return found


def cut(arg, axis, start, stop):
    """Some items of an argument; in its arrays, which are contiguous, the first axis is theirs."""

    def some(path, part):
        if isinstance(part, list):
            return part[start:stop]
        return np.ascontiguousarray(items_first(path, part, axis)[start:stop])

    return map_batches(some, "args", arg)


# Whether the processes of a cluster can do the work, found before it starts.

#: Asks a process that may not have nbta, so that nothing of nbta may be sent to it.
_QUESTION = "__import__('nbta').__version__"
_checked = weakref.WeakKeyDictionary()


def _check_versions(client) -> None:
    """See that scheduler and workers have this version of nbta; each is asked once.

    Raises
    ------
    FailedPreconditionError
        Which names those that have not, and says what to do.
    """
    known = _checked.setdefault(client, set())
    if not known:
        _check_answers({"the scheduler": _ask_scheduler(client)})
    workers = set(client.nthreads())
    new = sorted(workers - known)
    if new:
        answers = client.run(eval, _QUESTION, workers=new, on_error="return")
        _check_answers({f"worker {address}": answer for address, answer in answers.items()})
    _checked[client] = workers or known


def _ask_scheduler(client):
    try:
        return client.run_on_scheduler(eval, _QUESTION)
    except Exception as error:
        return error


def _check_answers(answers):
    # A process that is gone gives an OSError; with that Dask copes.
    wrong = {w: e for w, e in answers.items() if not isinstance(e, str | OSError)}
    if wrong:
        message = (
            f"nbta cannot be imported by {_listed([f'{w} ({e})' for w, e in wrong.items()])}; "
            f"install it in the environment of every process of the cluster: pip install "
            f"nbta=={nbta.__version__}"
        )
        raise FailedPreconditionError(message)
    versions = {who: answer for who, answer in answers.items() if isinstance(answer, str)}
    others = [f"{who} has {has}" for who, has in versions.items() if has != nbta.__version__]
    if others:
        message = (
            f"the client has nbta {nbta.__version__}, and {_listed(others)}; install one version "
            f"everywhere"
        )
        raise FailedPreconditionError(message)


def _listed(parts, shown=5):
    more = len(parts) - shown
    return ", ".join(parts[:shown]) + (f" and {more} more" if more > 0 else "")


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
    >>> from nbta.distributed import Pickled
    >>> weights = np.ones(3)
    >>> np.shares_memory(Pickled({"w": weights}).open()["w"], weights)
    True
    """

    __slots__ = ("_body", "_buffers")

    def __init__(self, content):
        buffers = []
        self._body = pickling.dumps(content, protocol=5, buffer_callback=buffers.append)
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
    return 0 if array.closed else sum(part.nbytes for part in packing.pack(array).values())


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
