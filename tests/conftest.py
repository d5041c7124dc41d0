"""Set-up of all tests: guard bytes around every buffer, and Hypothesis' profile."""

import os

os.environ["NBTA_DEBUG"] = "1"  # read when nbta is first imported

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

settings.register_profile(
    "nbta",
    deadline=None,
    max_examples=60,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("nbta")


@pytest.fixture
def long_loops(monkeypatch):
    """Loops are as if they were too long to be traced iteration by iteration."""
    monkeypatch.setattr("nbta.frontend.control.ITERATIONS_OF_PYTHON", 0)


@pytest.fixture
def file(tmp_path):
    """An array with a gradient array, saved."""
    import nbta

    path = tmp_path / "array.npz"
    array = nbta.TensorArray("float64", size=3).write(0, [1.0, 2.0]).write(1, [3.0, 4.0])
    array.grad("gradients").write(0, [5.0, 6.0])
    nbta.save(path, array)
    return path


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Files of tests have no examples, and importing all that is here would run programs.

    `tests/support/installed_wheel.py`, for one, names an empty folder as that of compiled code.
    """
    return [found for found in (yield) if not isinstance(found, DoctestModule)]
