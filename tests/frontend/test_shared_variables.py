"""Variables that several functions assign, by ``nonlocal``, in all places where one is assigned."""

import frontend_checks as checks
import numpy as np
import pytest
from frontend_random import built

import nbta

X = np.array([0.7, -0.4, 1.1, 0.3, -0.9, 0.5])
PROGRAMS = []


def program(function):
    """Note a program of six numbers."""
    PROGRAMS.append(function)
    return function


@program
def in_a_branch(x):
    total = 0.0

    def add(v):
        nonlocal total
        if v > 0.0:
            total += v

    for v in x:
        add(v)
    return total * total


@program
def after_an_early_return(x):
    total = 0.0

    def add(v):
        nonlocal total
        if v < 0.0:
            return
        total += v * v

    add(x[0])
    add(x[1])
    return total


@program
def in_a_loop(x):
    t = x[1]

    def run():
        nonlocal t
        for k in range(20):
            t += x[0] * k

    run()
    return t * x[0]


@program
def in_a_loop_that_breaks(x):
    t = 0.0

    def run():
        nonlocal t
        while t < 3.0:
            t += x[0]
            if t > 2.0:
                break

    run()
    return t * x[2]


@program
def as_the_variable_of_a_loop(x):
    t = 0.0

    def run():
        nonlocal t
        for t in x:
            if t > 1.0:
                break

    run()
    return t * x[0]


@program
def by_both_functions_in_one_loop(x):
    t = 0.0

    def add(v):
        nonlocal t
        t += v

    for k in range(20):
        t += x[0] * k
        add(x[1])
    return t * t


@program
def by_a_generator(x):
    t = 0.0

    def running():
        nonlocal t
        for k in range(20):
            t += x[0]
            yield t * k

    s = 0.0
    for v in running():
        if v > 5.0:
            t *= 0.9
        s += v * t
    return s + t


@program
def two_functions_deep(x):
    t = 0.0

    def outer():
        nonlocal t

        def inner():
            nonlocal t
            for k in range(15):
                if x[0] * k > 2.0:
                    t += x[0] * k

        inner()
        t *= 2.0
        if x[1] < 0.0:
            t += x[1]

    outer()
    return t


@program
def read_by_another_function_in_between(x):
    t = s = 0.0

    def read():
        return t * x[0]

    def assign():
        nonlocal t, s
        if x[0] > 0.0:
            t = x[0] * 3.0
        s += read()
        t = 1.0

    assign()
    return s + t


@program
def by_a_walrus_in_a_map(x):
    t = 1.0

    def grown(v):
        nonlocal t
        if (t := t + v) > 1.5:
            t -= v * v
        return t

    return sum(map(grown, x)) + t


@program
def in_a_comprehension(x):
    t = 1.0

    def run():
        nonlocal t
        return [t := t * 0.5 + v for v in x]

    return sum(run()) * t


@program
def in_match_try_and_with(x):
    t = 0.0

    def run(v):
        nonlocal t
        match bool(v > 0.4):
            case True:
                t += v
            case _:
                t -= v * v
        try:
            t += v
        finally:
            t *= 0.8

    for k in range(12):
        run(x[k % 6])
    return t


@program
def by_patterns(x):
    t = 0.0

    def run(k):
        nonlocal t
        match k % 2, x[k]:
            case (1, t):
                t = t * 2.0
            case (_, t):
                pass
        return t

    return run(1) + t * run(2)


@program
def of_the_first_function_alone(x):
    def add(v):
        nonlocal t
        if v > 0.5:
            t += v

    if x[0] > 0.0:
        t = x[1]
    else:
        t = x[2]
    add(x[0])
    return t


@program
def arrays(x):
    row = np.zeros(6)

    def put(k):
        nonlocal row
        if x[k % 6] > 0.0:
            row = row + x * k
        row[k % 6] += x[0]

    for k in range(12):
        put(k)
    return (row * row).sum()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_right(f, compiled):
    checks.check_of_an_array(f, X, compiled)


def test_a_global_that_the_run_gives_a_value_is_refused():
    lines = (
        "def f(x):",
        "    global t",
        "    for k in range(20):",
        "        t += x * k",
        "    return t",
    )
    f, name = built("\n".join(["t = 0.0", *lines, ""]))
    with pytest.raises(nbta.NbtaError, match="the global 't' is assigned") as failed:
        nbta.value_and_grad(f)(2.0)
    assert f"{name}:5" in str(failed.value)
    assert f.__globals__["t"] == 0.0
