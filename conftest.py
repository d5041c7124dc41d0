"""What all tests and doctests share."""

import os

os.environ.setdefault("NBTA_DEBUG", "1")  # guard bytes around every buffer

import numpy as np
import pytest

import nbta


@pytest.fixture(autouse=True)
def _names_for_doctests(doctest_namespace):
    """Doctests know the two packages by their usual names."""
    doctest_namespace["np"], doctest_namespace["nbta"] = np, nbta
