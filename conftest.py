"""What all tests and doctests share."""

import os
import warnings

os.environ.setdefault("NBTA_DEBUG", "1")  # guard bytes around every buffer

import numpy as np
import pytest

import nbta


@pytest.fixture(autouse=True)
def _slow_loops_are_known():
    """Hundreds of tests are about results of nested loops, whose gradients call Python today.

    `tests/test_slow_loops.py` is about the warning; ``pytest.warns`` sees it in spite of this.
    """
    warnings.simplefilter("ignore", nbta.PerformanceWarning)


@pytest.fixture(autouse=True)
def _names_for_doctests(doctest_namespace):
    """Doctests know the two packages by their usual names."""
    doctest_namespace["np"], doctest_namespace["nbta"] = np, nbta
