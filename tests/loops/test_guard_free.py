"""Inner loops with guards, in two versions: which ones, and that results stay."""

import numpy as np
import pytest
import read_code

import nbta
from nbta.loops import Block, Function
from nbta.loops.guard_free import guard_free
from nbta.loops.interpreting import Interpreter
from nbta.testing import check_grads

HEAD = """def run(w):
    W = pointer(int64, w, 99)
    x = pointer(float64, w, 0)
    y = pointer(float64, w, 1)
    n = W[0]
    i = int64(W[1])
    s = float64(0.0)
    u = i < 0
    o = n > 7
    for _ in range(n):
"""
TAIL = """        i = int64(i + 1)
    y[30] = s
    return 0
"""
INDEX = [
    "refuse(u and (i < -40 or i >= 40), 17)", "k = i + 40 if u and i < 0 else i",
]  # fmt: skip
SUM = [*INDEX, "y[k] = float64(y[k] + x[k])"]


def results(made, length, first):
    x, y = np.random.default_rng(length).normal(size=40), np.ones(40)
    buffers = {0: x, 1: y, 99: {0: length, 1: first}}

    def refuse(condition, status):
        if condition:
            raise IndexError(status)

    names = {
        "pointer": lambda kind, address, number: buffers[number], "int64": int, "float64": float,
        "fast_add": lambda a, b: a + b, "refuse": refuse,
    }  # fmt: skip
    Interpreter(made, names).run(0)
    return x.tolist(), y.tolist()


def versions(lines):
    """How many versions of its loop a function has that is held against itself."""
    text = "".join(f"        {line}\n" for line in lines)
    one = read_code.function(f"{HEAD}{text}{TAIL}", Block)
    other = Function(guard_free(one.body), one.constants)
    for length in (0, 1, 9):
        for first in (-3, 2):
            assert results(one, length, first) == results(other, length, first)
    return str(other).count("for _ in")


TWICE = [
    SUM,
    [*SUM, "refuse(o and x[k] > 90.0, 33)"],
    [*INDEX, "s = float64(fast_add(s, x[k]))"],
]
ONCE = [
    ["refuse(i >= 40, 17)", "y[i] = x[i]"],
    [*SUM, "refuse(x[k] > 90.0, 33)"],
    [*SUM, "u = i < 2"],
    [*INDEX, "s = float64(s * x[k] + y[k])"],
    [*INDEX, "if x[k] > 0.0:", "    y[k] = x[k]"],
    ["y[i] = x[i]"],
]


@pytest.mark.parametrize("lines", TWICE)
def test_loops_with_two_versions(lines):
    assert versions(lines) == 2


@pytest.mark.parametrize("lines", ONCE)
def test_loops_that_stay(lines):
    assert versions(lines) == 1


def test_an_index_outside_is_refused_in_both_versions():
    text = "".join(f"        {line}\n" for line in SUM)
    one = read_code.function(f"{HEAD}{text}{TAIL}", Block)
    other = Function(guard_free(one.body), one.constants)
    for made in (one, other):
        with pytest.raises(IndexError, match="17"):
            results(made, 3, -41)


def fields(e, h, c):
    e, h = e.copy(), h.copy()
    for _ in range(3):
        for i in range(len(e) - 1):
            h[i] += c * (e[i + 1] - e[i])
        for i in range(1, len(e)):
            e[i] += c * (h[i] - h[i - 1])
    return np.sum(e * e)


def test_two_fields():
    args = (*np.random.default_rng(3).random((2, 23)), 0.3)
    made = nbta.function(fields, compiled=True)
    check_grads(made, args, order=1)
    one, other = (
        nbta.jvp(nbta.function(fields, compiled=each), args, args) for each in (False, True)
    )
    np.testing.assert_allclose(one, other, rtol=1e-13)
    with pytest.raises(IndexError):
        made(args[0], args[1][:9], 0.3)


def along_columns(x, n):
    p = np.zeros_like(x)
    for j in range(1, n - 1):
        p[:, j] = np.sin(p[:, j - 1]) * x[:, j] - 0.5 * x[:, j + 1] + x[:, j - 1] * p[:, j - 1]
        p[:, j - 1] = p[:, j] * x[:, j] - x[:, j + 1] * p[:, j - 1]
    return p


def test_iterations_along_arrays_have_one_version():
    """Looks at indices take no time there, and to compile two versions takes twice as long."""
    x = np.random.default_rng(0).normal(size=(5, 7))
    f = nbta.function(along_columns, compiled=True)
    np.testing.assert_allclose(f(x, 7), along_columns(x, 7), rtol=1e-12)
    assert f.source.count("float64(sin(") == 1
    with pytest.raises(IndexError):
        f(x, 9)
