"""What all tests and doctests share."""

import gc
import importlib.util
import os
import warnings
from zlib import crc32

import compiled_folder

os.environ.setdefault("NBTA_DEBUG", "1")  # guard bytes around every buffer
os.environ.update(compiled_folder.environment())  # before Numba is imported

import numba
import numpy as np
import pytest

import nbta
from nbta.graph import verifier

pytest_plugins = ["slow_marks"]
#: Modules for libraries that are not installed have no doctests to run.
collect_ignore = [
    f"nbta/interop/{library}.py"
    for library in ("awkward", "jax", "pytensor", "torch")
    if importlib.util.find_spec(library) is None
]


def pytest_addoption(parser):
    """``--all-passes`` sends also graphs that run one by one through the compiler's passes."""
    parser.addoption(
        "--all-passes", action="store_true", help="each graph that runs goes through all passes"
    )


def pytest_configure(config):
    """Of stages that cost nothing the first run goes through each, up to machine code."""
    if config.option.all_passes:
        from nbta.execution.break_even import Estimates

        Estimates.looking = Estimates.passes = lambda estimates, operations: 0.0


@pytest.fixture(autouse=True, scope="module")
def _collections_walk_what_is_new():
    """Tests that collect garbage need not walk what all files before them left: 4 GB in the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _some_verify_each_pass(request):
    """All slow tests verify programs after each pass, and an eighth of the others, by their names.

    It is a third of the time of compiling small programs.
    """
    is_slow = request.node.get_closest_marker("slow") is not None
    verifier.EACH_PASS = is_slow or crc32(request.node.nodeid.encode()) % 8 == 0


@pytest.fixture(autouse=True)
def _slow_loops_are_known():
    """Hundreds of tests are about results of nested loops, whose gradients call Python today.

    `tests/compiler/test_slow_loops.py` is about the warning; ``pytest.warns`` sees it in spite of
    this.
    """
    warnings.simplefilter("ignore", nbta.PerformanceWarning)


@pytest.fixture(autouse=True)
def _names_for_doctests(doctest_namespace):
    """Doctests know the three packages by their usual names."""
    doctest_namespace.update(np=np, nbta=nbta, numba=numba)
