"""Values and gradients of losses over batches, computed by a cluster."""

import functools
import hashlib
import itertools
import weakref

import dask
import numpy as np
from dask import delayed
from distributed import Client, KilledWorker

import nbta
from nbta.api.derivatives import axes_of, check_outside, common_length, items_first, places_of
from nbta.distributed import tasks
from nbta.distributed.tasks import Pickled
from nbta.errors import FailedPreconditionError, invalid
from nbta.ops.half import narrow
from nbta.structure import map_batches, pack

#: Shards of a batch that has as many items, whatever the number of workers.
SHARDS = 16
#: How often Dask runs a task again that failed on its way; what the function raises is final.
RETRIES = 3


def value_and_grad(
    f, client, argnums=0, *, batch_axis=0, reduction="sum", shards=None, compiled="auto"
):
    """A function that gives a loss over a batch, and its gradient, computed by a Dask cluster.

    Parameters
    ----------
    f : callable
        The loss of one item, a scalar. It is sent to the workers by cloudpickle, as it is at the
        first call; what it uses from outside goes along with every call, so that large arrays are
        better given as arguments.
    client : distributed.Client
    argnums : int or tuple of int
        With respect to which positional arguments, which all items share.
    batch_axis : int or tuple of (int or None)
        Along which axis arguments are cut into items, as for `nbta.value_and_grad`; a list is a
        batch as it is.
    reduction : {"sum", "mean"}
        What to make of the losses of the items.
    shards : int, optional
        Into how many parts to cut the batch, at most one an item; by default 16.
    compiled : {"auto", True, False}
        As for `nbta.value_and_grad`, but for "auto": the function is compiled at its first call,
        if it can be.

    Returns
    -------
    callable
        Of the arguments of ``f``; gives ``(value, gradient)`` as `nbta.value_and_grad` does.

    Raises
    ------
    InvalidArgumentError
        For what is no client, or no synchronous one; when called, for arguments that cannot be
        cut.
    FailedPreconditionError
        When called: if workers cannot import nbta or have another version of it, and if a shard
        ended several workers.

    Notes
    -----
    The shards depend on the batch alone, and a fixed binary tree adds what they give. So the
    result has the same bits for any number of workers, as long as their processors are alike.
    Other ``shards`` give other last digits. A worker that is lost changes nothing: Dask computes
    again what it held.

    What ``f`` raises is raised here, by the first item in the batch that fails, which the message
    or a note names.

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

    @functools.wraps(f)
    def both(*args, **kwargs):
        return made(*args, **kwargs)

    return both


def _check_client(client):
    if not isinstance(client, Client):
        message = f"client: {client!r} is no distributed.Client"
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

    @functools.cached_property
    def _sent(self):
        """The function, pickled, and its digest."""
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
        function, digest = self._sent
        cuts = {place: axis for place, axis in enumerate(axes) if axis is not None}
        rows = tuple(0 if place in cuts else None for place in range(len(args)))
        program = tasks.Program(digest, self._argnums, rows, self._compiled, function)
        shared = [None if place in cuts else arg for place, arg in enumerate(args)]
        job = _task(tasks.hold)(Pickled(tasks.Job(program, shared, kwargs)))
        shards = min(self._shards, items)
        bounds = itertools.pairwise(items * k // shards for k in range(shards + 1))
        parts = []
        for start, stop in bounds:
            pieces = {place: cut(args[place], axis, start, stop) for place, axis in cuts.items()}
            parts.append(_task(tasks.run_shard)(job, Pickled(pieces), start, stop))
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
        if isinstance(result, tasks.Failure):
            raise result.error
        return result


def _task(function):
    return delayed(function, pure=False, traverse=False)


def _added(parts):
    """The sum of all parts by a binary tree that depends on nothing but their number.

    A task does two levels of it, as each task on the way to the result costs 6 ms.
    """
    while len(parts) > 1:
        parts = [_task(tasks.add)(*parts[k : k + 4]) for k in range(0, len(parts), 4)]
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
