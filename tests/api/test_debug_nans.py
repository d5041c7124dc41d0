"""`nbta.debug.nans`: the first NaN or infinity, by operation, line and iteration."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import nbta

HERE = Path(__file__).name


def line_of(text):
    """Where a line of this file is."""
    lines = Path(__file__).read_text().splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.strip() == text)


def entropy(p):
    return -np.sum(p * np.log(p))


def lengths(points):
    total = 0.0
    for i in range(len(points)):
        for j in range(2):
            total += np.sqrt(points[i, j])
    return total


def masked(x):
    return np.sum(np.where(x > 0, np.sqrt(np.maximum(x, 0.0)), 0.0))


def overflow(x):
    for _ in range(10):
        x = x * x
    return x


def refused(f, *args, infinities=True):
    with nbta.debug.nans(infinities), pytest.raises(nbta.InvalidArgumentError) as caught:
        f(*args)
    assert caught.value.reason == "not_finite"
    return str(caught.value)


@pytest.mark.parametrize("make", [nbta.function, nbta.grad, nbta.value_and_grad])
def test_an_operation_of_the_function_is_named(make):
    message = refused(make(entropy), np.array([0.5, 0.0]))
    line = line_of("return -np.sum(p * np.log(p))")
    assert message.startswith("Log made an infinity of 0.0, item [1], at ")
    assert f"{HERE}:{line}: return -np.sum(p * np.log(p))" in message


def test_an_operation_of_the_gradient_is_named_with_the_line_that_it_is_of():
    points = np.array([[1.0, 2.0], [3.0, 0.0], [4.0, 5.0]])
    message = refused(nbta.grad(lengths), points)
    line = line_of("total += np.sqrt(points[i, j])")
    assert "made an infinity of 1.0 and inf, in the gradient of" in message
    assert f"{HERE}:{line}: total += np.sqrt(points[i, j])" in message
    assert message.count("(iteration 1 of the gradient of the loop `for ") == 1  # backwards
    assert np.isinf(nbta.grad(lengths)(points)[1, 1])


def test_iterations_of_all_loops_are_named():
    points = np.ones((900, 2))
    points[700:] = -1.0
    message = refused(nbta.function(lengths), points)
    assert "Sqrt made NaN of -1.0" in message
    assert "(iteration 700 of the loop" in message


def test_derivatives_that_no_adjoint_meets_do_not_count():
    with nbta.debug.nans():
        value, slope = nbta.value_and_grad(masked)(np.array([4.0, 0.0, -1.0]))
    assert value == 2.0
    np.testing.assert_array_equal(slope, [0.25, 0.0, 0.0])


def test_infinities_may_be_left_out():
    assert "Mul made an infinity of" in refused(nbta.function(overflow), 10.0)
    with nbta.debug.nans(infinities=False):
        assert nbta.function(overflow)(10.0) == np.inf
    assert "Sub made NaN of inf and inf" in refused(
        nbta.function(lambda x: overflow(x) - overflow(x)), 10.0, infinities=False
    )


def test_what_is_given_may_be_either():
    f = nbta.function(lambda x: np.sum(np.where(np.isnan(x), 0.0, x)))
    with nbta.debug.nans():
        assert f(np.array([1.0, np.nan])) == 1.0


def test_compiled_functions_are_watched_too_and_run_compiled_afterwards():
    f = nbta.value_and_grad(entropy, compiled=True)
    good, bad = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    f(good)
    for _ in range(3):
        refused(f, bad)
        with nbta.debug.nans():
            f(good)
    assert np.isnan(f(bad)[0])


def test_batches_name_the_item():
    f = nbta.value_and_grad(lambda w, x: entropy(w * x), batch_axis=(None, 0))
    items = np.array([[0.5, 0.5], [1.0, 1.0], [0.0, 1.0]])
    f(1.0, items[:2])
    assert "item 2" in refused(f, 1.0, items)


def test_it_is_of_the_thread_that_enters_it():
    f, found = nbta.function(entropy), []
    with nbta.debug.nans():
        thread = threading.Thread(target=lambda: found.append(f(np.array([0.5, 0.0]))))
        thread.start()
        thread.join()
    assert np.isnan(found[0])


def test_the_environment_switches_it_on():
    program = "import numpy as np, nbta; nbta.function(lambda x: np.log(x))(0.0)"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"NBTA_DEBUG_NANS": "1"},
        capture_output=True,
        text=True,
    )
    assert "Log made an infinity of 0.0" in run.stderr
