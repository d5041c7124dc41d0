"""Run with ``failing_allocations.c`` preloaded: each allocation of each job fails once.

``python failing_allocations.py LIBRARY`` prints a JSON row for each job: how many allocations of
compiled code, of Numba's runtime and of NumPy there are, how often the job ended with
ResourceExhaustedError, and what else was wrong.
"""

import ctypes
import gc
import json
import pickle
import sys
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import numpy as np
from memory_in_use import in_use
from numba import njit, prange
from numba.core.runtime import _nrt_python

import nbta

ROWS = np.arange(6.0).reshape(3, 2)
#: Rows whose buffers are allocations of their own, which no record of Numba's runtime has room for.
LARGE = np.tile(ROWS, (1, 400))
FOLDER = tempfile.TemporaryDirectory()
#: Jobs in users' compiled functions: Numba gives back nothing of what one holds when it raises.
HOLDING = (
    "made inside", "made ragged", "written once", "written strided once", "written",
    "written ragged", "written large", "looked up", "looked up in large ones", "in lanes",
    "in bulk", "looked at",
)  # fmt: skip
#: Jobs on Numba's threads.
THREADED = ("compiled mapped", "batch", "in lanes")


def forward(rows=ROWS, **options):
    """A filled array."""
    array = nbta.TensorArray("float64", 3, clear_after_read=False, **options)
    return array.unstack(rows)


# In users' compiled code.


@njit(cache=True)
def made_inside(rows):
    ta = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(2,))
    for k in range(len(rows)):
        ta.append(rows[k])
    gradient = ta.grad("gradients")
    gradient.accumulate(0, rows[1])
    return ta.read(1)[0] + gradient.read(0)[0]


@njit(cache=True)
def made_ragged(rows):
    ta = nbta.TensorArray(np.float64, dynamic_size=True, infer_shape=False)
    for k in range(len(rows)):
        ta.append(rows[k:])
    return ta.size()


@njit(cache=True)
def written(ta, rows):
    for k in range(len(rows)):
        ta.write(k, rows[k])
    return ta.stack()


@njit(cache=True)
def looked_up(ta, row):
    gradient = ta.grad("gradients")
    gradient.accumulate(1, row)
    return gradient.read(1)


@njit(cache=True)
def in_bulk(ta, rows):
    ta.scatter((2, 0, 1), rows[:, ::-1])
    value, lengths = ta.grad_with_shape("g", (1,)).concat()
    return ta.gather((0, 1)).sum() + value.sum() + lengths.sum()


@njit(cache=True)
def looked_at(ta, row):
    ta.append((row[0], 1.0))
    ta.append((row[1], 2.0))
    total = np.asarray(ta).sum()
    for value in ta:
        total += value.sum()
    return total + ta[-1][0]


@njit(cache=True, parallel=True)
def in_lanes(ta, row):
    parts = ta.lanes(4)
    for k in prange(4):
        lane = parts.take(k)
        for _ in range(k + 2):
            lane.append(row)
    return parts.join()


# Graphs.


def recurrent(w, xs):
    """The loss of a small recurrent net, whose gradient has tapes."""
    return nbta.sum(nbta.scan(lambda h, x: (nbta.tanh(x + h @ w),) * 2, np.zeros(2), xs)[1])


def grown(w, xs):
    """A loss through an array that a loop makes grow."""

    def body(i, ta, s):
        s = s * nbta.sum(w) + xs[i]
        return i + 1, ta.append(s), s

    ta = nbta.TensorArray("float64", dynamic_size=True, element_shape=(2,))
    i0, s0 = nbta.constant(0), nbta.constant(np.zeros(2))
    _, ta, _ = nbta.while_loop(lambda i, ta, s: i < nbta.shape(xs)[0], body, (i0, ta, s0))
    return nbta.sum(ta.stack() ** 2)


def mapped(w, xs):
    """Rows on Numba's threads."""
    return nbta.sum(nbta.map_fn(lambda x: nbta.tanh(x @ w), xs, parallel_iterations=4))


W = np.eye(2) * 0.5
compiled = {f.__name__: nbta.value_and_grad(f, (0, 1), compiled=True)
            for f in (recurrent, grown, mapped)}  # fmt: skip
reference = {f.__name__: nbta.value_and_grad(f, (0, 1), compiled=False) for f in (recurrent, grown)}
batched = nbta.value_and_grad(recurrent, batch_axis=1, compiled=True)


def graph_job(function, shape, axis=0):
    """A job for longer and longer inputs, so that each attempt needs new buffers."""
    lengths = count(3, 3)

    def make():
        return np.ones([next(lengths) if k == axis else n for k, n in enumerate(shape)])

    return make, lambda xs: function(W, xs)


def saved(array):
    with tempfile.TemporaryDirectory() as folder:
        nbta.save(Path(folder, "a"), array)
        return sorted(path.name for path in Path(folder).iterdir())


@cache
def saved_file():
    """A file that stays for the whole run."""
    path = Path(FOLDER.name, "array")
    array = forward(infer_shape=False)
    array.grad("g").write(0, ROWS[0])
    nbta.save(path, array)
    return path


def growing(**options):
    return nbta.TensorArray("float64", dynamic_size=True, **options)


def joined(array, rows=ROWS):
    parts = array.lanes(3)
    for k in range(3):
        parts.take(k).append(rows[k])
    return parts.join().size()


def looked_up_eagerly(array, rows=ROWS):
    return array.grad("one").write(0, rows[0]).grad("two").write(1, rows[0]).stack().tolist()


@njit(cache=True)
def written_once(ta, row):
    ta.write(0, row)


JOBS = {
    "first append": (growing, lambda a: a.append(LARGE).size()),
    "lookup": (forward, lambda a: a.grad("one").size()),
    "written once": (growing, lambda a: written_once(a, ROWS)),
    "written strided once": (growing, lambda a: written_once(a, ROWS.T)),
    "eager": (growing, lambda a: a.append(ROWS).append(ROWS).stack().tolist()),
    "eager ragged": (
        lambda: growing(infer_shape=False),
        lambda a: a.append(ROWS).append(ROWS[0]).read(0).tolist(),
    ),
    "eager gradient": (forward, looked_up_eagerly),
    "eager ragged gradient": (lambda: forward(infer_shape=False), looked_up_eagerly),
    "eager lanes": (lambda: growing(element_shape=(2,)), joined),
    "eager ragged lanes": (lambda: growing(infer_shape=False), joined),
    "eager large": (growing, lambda a: a.append(LARGE).append(LARGE).stack().tolist()),
    "eager large ragged": (
        lambda: growing(infer_shape=False),
        lambda a: a.append(LARGE).append(LARGE[0]).read(0).tolist(),
    ),
    "eager large gradient": (lambda: forward(LARGE), lambda a: looked_up_eagerly(a, LARGE)),
    "eager large ragged gradient": (
        lambda: forward(LARGE, infer_shape=False),
        lambda a: looked_up_eagerly(a, LARGE),
    ),
    "eager large lanes": (lambda: growing(element_shape=(800,)), lambda a: joined(a, LARGE)),
    "made inside": (lambda: None, lambda _: made_inside(ROWS)),
    "made ragged": (lambda: None, lambda _: made_ragged(ROWS)),
    "written": (
        lambda: nbta.TensorArray("float64", 3, element_shape=(None,)),
        lambda a: written(a, ROWS).tolist(),
    ),
    "written ragged": (
        lambda: nbta.TensorArray("float64", 3, element_shape=(None,), infer_shape=False),
        lambda a: written(a, ROWS).tolist(),
    ),
    "written large": (
        lambda: nbta.TensorArray("float64", 3, element_shape=(None,)),
        lambda a: written(a, LARGE).tolist(),
    ),
    "looked up in large ones": (
        lambda: forward(LARGE),
        lambda a: looked_up(a, LARGE[0]).tolist(),
    ),
    "looked up": (forward, lambda a: looked_up(a, ROWS[0]).tolist()),
    "in bulk": (
        lambda: nbta.TensorArray("float64", 3, element_shape=(2,), clear_after_read=True),
        lambda a: in_bulk(a, ROWS),
    ),
    "looked at": (
        lambda: growing(element_shape=(2,), clear_after_read=True),
        lambda a: looked_at(a, ROWS[0]),
    ),
    "in lanes": (lambda: growing(element_shape=(2,)), lambda a: in_lanes(a, ROWS[0]).size()),
    **{f"compiled {name}": graph_job(f, (3, 2)) for name, f in compiled.items()},
    **{f"reference {name}": graph_job(f, (3, 2), None) for name, f in reference.items()},
    "batch": graph_job(batched, (3, 5, 2)),
    "save": (lambda: forward(infer_shape=False), saved),
    "load": (saved_file, lambda name: nbta.load(name).read(1).tolist()),
    "pickle": (forward, lambda a: pickle.loads(pickle.dumps(a)).stack().tolist()),
}


#: Jobs that allocate some thousand times, at a few places.
LONG = ("reference recurrent", "reference grown", "compiled mapped")
#: Jobs whose buffers stay for the next call.
KEEPING = [job for job in JOBS if job.startswith(("compiled", "batch"))]
#: Jobs of one operation, after whose failure an array is as it was.
SINGLE = (
    "first append", "lookup", "written once", "written strided once", "save", "pickle",
)  # fmt: skip


#: Jobs in which kernels alone ask for memory: there is none from the first failure on either.
LASTING = [job for job in JOBS if job.startswith(("eager", "first", "lookup", "load"))]


def snapshot(array):
    """All that an operation could change and a caller could see."""
    if not isinstance(array, nbta.TensorArray):
        return None
    return repr(array), array._states().tolist(), array.element_shape, array.dynamic_size


def attempt(library, job, allowed, failing):
    """What one run came to, where some allocations fail after so many others."""
    make, operation = JOBS[job]
    state = make()
    before, counts = snapshot(state), (ctypes.c_long * 4)()
    library.allocations_arm(kinds_of(job), allowed, failing)
    try:
        result, error = operation(state), None
    except BaseException as caught:
        result, error = None, caught.with_traceback(None)
    finally:
        library.allocations_disarm(counts)
    changed = error is not None and snapshot(state) != before
    return settled(result), error, changed, list(counts)


def settled(result):
    """A result in a form that compares; of a loss and its gradient, that these are numbers."""
    if not isinstance(result, tuple):
        return result
    value, slopes = result
    slopes = slopes if isinstance(slopes, tuple) else (slopes,)
    return all(np.isfinite(part).all() and np.any(part) for part in (value, *slopes))


def kinds_of(job):
    """Which allocations of a job fail: of compiled code 1, of Numba's runtime 2, of NumPy 4.

    Numba's threads need a schedule, a few words that Numba takes from `malloc` without a look.
    Eager operations take NumPy's memory for what Python made of their arguments.
    """
    if job in THREADED:
        return 2 if job == "in lanes" else 6
    return 7 if job.startswith(("compiled", "reference")) else 3


def run(library, job, failing):
    """The row of a job: what it reached, how often it failed, and what was wrong."""
    make, operation = JOBS[job]
    expected = settled([operation(make()) for _ in range(2)][-1])
    row = {"reached": [0, 0, 0], "failures": 0, "wrong": []}
    used, step = in_use()[:2], 17 if job in LONG else 1
    for allowed in range(0, 50 * step, step):
        result, error, changed, counts = attempt(library, job, allowed, failing)
        row["reached"] = [max(pair) for pair in zip(row["reached"], counts, strict=False)]
        row["failures"] += error is not None
        if error is None and result != expected:
            row["wrong"].append(f"{allowed}: gave {result}")
        if not isinstance(error, nbta.ResourceExhaustedError | None):
            row["wrong"].append(f"{allowed}: {type(error).__name__}: {error}")
        if changed and job in SINGLE:
            row["wrong"].append(f"{allowed}: the array is changed")
        del error, result
        now = in_use()[:2]  # Numba counts allocations that it was refused, too
        if now != used and job not in (*HOLDING, *KEEPING):
            row["wrong"].append(f"{allowed}: leaked {np.subtract(now, used)}")
        used = now
        if not counts[3]:
            return row
    return row if step > 1 else {**row, "wrong": ["no end"]}


def main():
    """All jobs, or those that are named."""
    library = ctypes.CDLL(sys.argv[1])
    _nrt_python.memsys_enable_stats()
    gc.freeze()
    for job in sys.argv[2:] or JOBS:
        print(json.dumps([job, run(library, job, 1)]), flush=True)
        if job in LASTING:
            print(json.dumps([f"{job}, from then on", run(library, job, 10**6)]), flush=True)


if __name__ == "__main__":
    main()
