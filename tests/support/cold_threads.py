"""Processes in which several threads use nbta first, each in the same moment.

``python tests/support/cold_threads.py KIND STARTS [FOLDER]`` prints what was wrong in any start;
FOLDER has kernels as a wheel brings them (``python -m nbta.kernels.ahead FOLDER``). A start is a
fork of a process that has imported nbta and used nothing of it.
"""

import collections
import faulthandler
import os
import pickle
import signal
import sys
import threading
import traceback
from pathlib import Path

import numba
import numpy as np

import nbta
from nbta.runtime import settings, shipped

THREADS = 4
#: Seconds after which a start counts as hanging. One that compiles all takes 20 to 30 CPU seconds,
#: and took more than 120 on two processors that eight processes shared.
PATIENCE = 400
#: Elements of an array with which a call lets go of the interpreter's lock.
LARGE = settings.get(settings.LARGE) // 8


def new(size=0, **options):
    return nbta.TensorArray("float64", size, dynamic_size=True, **options)


@numba.njit(cache=True)
def appended(array, value):
    array = array.append(value)
    array = array.append(value)
    return array.stack().sum()


@numba.njit(cache=True, nogil=True)
def appended_apart(array, value):
    array = array.append(value)
    array = array.append(value)
    return array.stack().sum() + array.grad("g").accumulate(0, value).read(0)


@numba.njit(cache=True, parallel=True)
def filled(array, value):
    for k in numba.prange(8):
        array.write(k, value)
    return array.stack().sum()


def squares(x):
    total = 0.0
    for v in x:
        total += v * v
    return total


def product(w, x):
    return nbta.sum(w * x) ** 2


_function = nbta.function(squares, compiled=True)
_gradient = nbta.value_and_grad(squares, compiled=True)
_interpreted = nbta.value_and_grad(squares, compiled=False)
_batch = nbta.value_and_grad(product, batch_axis=0, compiled=True)
_graph = nbta.Graph()
with _graph.as_default():
    _x = nbta.placeholder(np.float64, (3,))
    _array = nbta.TensorArray(np.float64, size=3).unstack(_x)
    _total = nbta.sum(_array.stack())
_session = nbta.Session(_graph)


def large(k):
    """By the entry point that lets go of the interpreter's lock."""
    return new().write(0, np.full(LARGE, k)).read(0)[-1]


def lanes(k):
    parts = new().lanes(2)
    parts.take(1).append(k)
    return parts.join().stack().sum()


#: What each thread does first, of its number, and what that gives.
KINDS = {
    "eager": (lambda k: new().write(0, k).write(1, k).read(1), lambda k: k),
    "large": (large, lambda k: k),
    "bulk": (lambda k: new().unstack([k, 2 * k]).stack().sum(), lambda k: 3 * k),
    "ragged": (
        lambda k: new(infer_shape=False).split([k, k, k], [1, 2]).concat()[0].sum(),
        lambda k: 3 * k,
    ),
    "gradient": (
        lambda k: new().unstack([k, k]).grad("g").accumulate(1, k).accumulate(1, k).read(1),
        lambda k: 2 * k,
    ),
    "lanes": (lanes, lambda k: k),
    "njit": (lambda k: appended(new(element_shape=()), k), lambda k: 2 * k),
    "nogil": (
        lambda k: appended_apart(new(element_shape=(), clear_after_read=False), k),
        lambda k: 3 * k,
    ),
    "prange": (lambda k: filled(new(8, element_shape=()), k), lambda k: 8 * k),
    "function": (lambda k: _function(np.full(3, k)), lambda k: 3 * k * k),
    "other shapes": (lambda k: _gradient(np.full(int(k), k))[0], lambda k: k**3),
    "gradient function": (lambda k: _gradient(np.full(3, k))[1][2], lambda k: 2 * k),
    "one by one": (lambda k: _interpreted(np.full(3, k))[1][2], lambda k: 2 * k),
    "forward mode": (
        lambda k: nbta.jvp(squares, np.full(3, k), np.ones(3))[1],
        lambda k: 6 * k,
    ),
    "batch": (
        lambda k: _batch(np.ones(3), np.full((8, 3), k))[0],
        lambda k: 72 * k * k,
    ),
    "session": (
        lambda k: _session.run(_total, {_x: np.full(3, k)}, compiled=True),
        lambda k: 3 * k,
    ),
    "pickle": (
        lambda k: pickle.loads(pickle.dumps(new().unstack([k, k]))).stack().sum(),
        lambda k: 2 * k,
    ),
}
#: Each thread another kind.
MIXED = "mixed"


def start(kind):
    """Use it first in all threads; what they gave that they should not have."""
    kinds = list(KINDS) if kind == MIXED else [kind] * THREADS
    barrier, wrong = threading.Barrier(len(kinds)), []

    def use(number):
        function, expected = KINDS[kinds[number]]
        value = number % 4 + 1.0
        barrier.wait()
        try:
            found = function(value)
            if found != expected(value):
                wrong.append(f"{kinds[number]}: {found} in place of {expected(value)}")
        except BaseException:
            wrong.append(f"{kinds[number]}: {traceback.format_exc()}")

    threads = [threading.Thread(target=use, args=(n,)) for n in range(len(kinds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def forked(kind):
    """How a start ended: nothing, or what was wrong."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(PATIENCE)
        sys.setswitchinterval(1e-5)
        with os.fdopen(writing, "w") as file:
            file.write("\n".join(start(kind)))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"ended with {status} {text}"


def main():
    """Exit code, after a line for each way in which starts failed."""
    kind, starts, *folder = sys.argv[1:]
    faulthandler.enable()
    if folder:
        shipped.FOLDER = Path(*folder)
        assert not shipped.reason(), shipped.reason()
    found = collections.Counter(forked(kind) for _ in range(int(starts)))
    found.pop("", None)
    for text, count in found.items():
        print(f"{count} of {starts} starts of {kind}: {text}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
