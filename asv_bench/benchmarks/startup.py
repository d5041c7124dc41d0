"""New processes: from the interpreter's start to the end of a first, small job."""

import atexit
import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

import nbta

from . import common

NBTA_PROGRAM = """
import numpy as np
import nbta
array = nbta.TensorArray(np.float64, size=1, element_shape=())
array.write(0, 1.5)
assert array.read(0) == 1.5
"""
#: Numba keeps on disk only what comes from a file.
PEER_PROGRAM = """
from numba import njit
@njit("float64(float64)", cache=True)
def same(x):
    return x
assert same(1.5) == 1.5
"""


@cache
def folder():
    """A folder for this process, with both programs in it; gone when the process ends."""
    made = tempfile.TemporaryDirectory(prefix="nbta-startup-")
    atexit.register(made.cleanup)
    for side, text in zip(common.SIDES, (NBTA_PROGRAM, PEER_PROGRAM), strict=True):
        Path(made.name, f"start_{side}.py").write_text(text)
    return made


def run(side, cache_folder=None):
    """Run a side's program in a new process, perhaps with another folder for both caches."""
    environment = dict(os.environ)
    root = str(Path(nbta.__file__).parents[1])
    paths = (root, environment.get("PYTHONPATH"))
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    environment.pop("NBTA_DEBUG", None)
    if cache_folder is not None:
        environment["NUMBA_CACHE_DIR"] = environment["NBTA_CACHE_DIR"] = cache_folder
    program = str(Path(folder().name, f"start_{side}.py"))
    subprocess.run([sys.executable, program], env=environment, check=True)


def new_cache():
    """A new, empty folder for caches."""
    return tempfile.mkdtemp(dir=folder().name)


class _Process(common.Pair):
    number, repeat, timeout = 1, 5, 300
    warm_up = False

    def count(self):
        """Processes."""
        return 1


class WarmStart(_Process):
    """Import, make an array, write, read; everything compiled before."""

    label = "new process, caches warm"
    reach = common.Reach("ratio", 1.2)
    pairs = 9

    def make_nbta(self, count):
        """A process that uses nbta."""
        return partial(run, "nbta")

    def make_peer(self, count):
        """A process that imports Numba and calls one trivial function."""
        return partial(run, "peer")


class ColdStart(_Process):
    """The same with nothing compiled before."""

    label = "new process, no cache"
    reach = common.Reach("s", 6.0)
    pairs, repeat = 3, 3

    def make_nbta(self, count):
        """A process that uses nbta, with a new folder for its cache."""
        return partial(run, "nbta", new_cache())

    def make_peer(self, count):
        """A process that imports Numba and compiles one trivial function."""
        return partial(run, "peer", new_cache())


class Import:
    """Importing alone, in a new process; `numba` is what nbta cannot do without."""

    params = (("numba", "nbta", "nbta.namespace"),)
    param_names = ("module",)

    def timeraw_import(self, module):
        """One import; `nbta.namespace` has the graphs, and comes with the first use of any."""
        return f"import {module}"
