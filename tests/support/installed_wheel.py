"""Use every kernel of an installed wheel, with empty caches: none may be compiled.

``python tests/support/installed_wheel.py`` prints which are used, and ends with 1 where any was
compiled. It is the test of wheels on other platforms, and needs nothing but the wheel. With
``--eager`` it has no function of a user's compiled, which takes seconds.
"""

import os
import shutil
import sys
import tempfile

os.environ.update(dict.fromkeys(("NUMBA_CACHE_DIR", "NBTA_CACHE_DIR"), tempfile.mkdtemp()))

import numpy as np
from numba import njit
from numba.core import event

import nbta
from nbta.kernels import ahead
from nbta.runtime import shipped


class Compiled(event.Listener):
    """Names of the functions that Numba compiles."""

    def __init__(self):
        self.names = []

    def on_start(self, happened):
        """One of them."""
        self.names.append(happened.data["dispatcher"].py_func.__name__)

    def on_end(self, happened):
        """Nothing to note."""


@njit
def stacked(ta):
    """A user's function without a cache: the entry point is called by its address."""
    return ta.stack().sum()


def eager():
    """A sum of what operations of all four entry points give."""
    rows = np.arange(6.0).reshape(3, 2)
    ta = nbta.TensorArray("float64", dynamic_size=True, clear_after_read=False)
    total = ta.unstack(rows).write(3, rows[0]).append(rows[1]).stack().sum() + ta.read(1).sum()
    total += ta.grad("gradients").accumulate(0, rows[0]).stack().sum()
    lanes = nbta.TensorArray("float64", dynamic_size=True).lanes(2)
    lanes.take(1).append(rows[2])
    return total + lanes.join().stack().sum()


def main():
    """Exit code, after a line on what was used."""
    compiled = Compiled()
    event.register("numba:compile", compiled)
    total = eager()
    of_kernels = {routine.name for routine in ahead.routines()}
    for routine in ahead.routines():
        assert routine.load().address
    if "--eager" not in sys.argv:
        total += stacked(nbta.TensorArray("float64", 2).unstack([1.0, 3.0]))
    wrongly = sorted(of_kernels & set(compiled.names))
    shutil.rmtree(os.environ["NBTA_CACHE_DIR"], ignore_errors=True)
    print(f"{shipped.summary()}; sum {total}; compiled: {', '.join(wrongly) or 'none'}")
    return 1 if wrongly or shipped.reason() else 0


if __name__ == "__main__":
    sys.exit(main())
