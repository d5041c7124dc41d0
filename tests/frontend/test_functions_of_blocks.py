"""Functions defined in branches and loops that only the run knows to come to."""

import frontend_checks as checks
import numpy as np
import pytest

import nbta

X = np.array([0.7, -0.4, 1.1])
PROGRAMS = []


def program(function):
    """Note a program of three numbers."""
    PROGRAMS.append(function)
    return function


@program
def that_calls_itself(x):
    if x[0] > 0:

        def sequence(k):
            return 1.0 if k < 2 else sequence(k - 1) + x[0] * sequence(k - 2)

        return sequence(5)
    return x.sum()


@program
def in_a_branch_of_a_loop(x):
    total = 0.0
    for v in x:
        if v > 0.5:

            def power(k):
                return 1.0 if k < 1 else power(k - 1) * v  # noqa: B023

            total += power(3)
    return total


@program
def in_a_loop(x):
    total = 0.0
    for v in x:

        def scaled(u, depth):
            return u if depth == 0 else scaled(u * x[1], depth - 1)

        total += scaled(v, 2)
    return total


@program
def called_in_a_later_branch(x):
    if x[0] > 0:
        factor = 2.0 * x[1]

        def scaled(u):
            return u * factor

    total = x.sum()
    if x[0] > 0:
        total += scaled(total)
    return total


@program
def with_a_variable_that_changes_after(x):
    if x[0] > 0:
        factor = 2.0 * x[1]
        scaled = lambda u: u * factor  # noqa: E731
        factor = 3.0 * x[2]
    if x[0] > 0:
        return scaled(x[1])
    return x.sum()


@program
def of_the_first_iteration(x):
    total = 0.0
    for i in range(len(x)):
        if i == 0:

            def scaled(u):
                return u * x[i]  # noqa: B023

        total += scaled(x[i])
    return total


@program
def that_changes_arrays(x):
    y = x.copy()
    if x[0] > 0:
        sums = np.zeros(3)

        def put(k, v):
            sums[k] += v
            y[k] *= 2

        put(0, x[1])
        put(1, x[2])
    else:
        sums = x * x
    if x[0] > 0:
        put(2, x[0] * x[1])
    return (sums * y).sum()


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_right(f, compiled):
    for x in (X, -X):
        checks.check_of_an_array(f, x, compiled)


@pytest.mark.parametrize("compiled", [True, False])
def test_a_run_that_did_not_come_there_has_no_function(compiled):
    def f(x):
        if x[0] > 0:

            def scaled(u):
                return u * x[1]

        return scaled(x[2])

    found = nbta.function(f, compiled=compiled)
    assert found(X) == f(X)
    with pytest.raises(UnboundLocalError, match="'scaled' has no value in this run"):
        found(-X)
