"""Inner loops that read items again: which ones, and that results stay."""

import numpy as np
import pytest
import read_code
from numba import njit

import nbta
from nbta.loops import Block, Function
from nbta.loops.interpreting import Interpreter
from nbta.loops.rereading import reread
from nbta.runtime import machine_code
from nbta.runtime.numba_private import final_module, global_compiler_lock
from nbta.testing import check_grads

HEAD = """def run(w):
    W = pointer(int64, w, 99)
    x = pointer(float64, w, 0)
    y = pointer(float64, w, 1)
    n = W[0]
    d = W[1]
    s = float64(0.0)
    i = int64(d)
    r = int64(0)
"""
TAIL = """    y[30] = float64(i)
    y[31] = float64(r)
    y[32] = s
    return 0
"""


def function(loop, lines):
    text = "".join(f"        {line}\n" for line in lines)
    return read_code.function(f"{HEAD}    {loop}\n{text}{TAIL}", Block)


def results(made, length, first):
    x, y = np.random.default_rng(length).normal(size=40), np.ones(40)
    buffers = {0: x, 1: y, 99: {0: length, 1: first}}

    def refuse(condition, status):
        assert not condition

    names = {
        "pointer": lambda kind, address, number: buffers[number], "int64": int, "float64": float,
        "fast_add": lambda a, b: a + b, "opaque": int, "refuse": refuse,
    }  # fmt: skip
    Interpreter(made, names).run(0)
    return x.tolist(), y.tolist()


def is_changed(loop, lines):
    """Hold a function against itself with loops that read again; whether it is another one."""
    one = function(loop, lines)
    other = Function(reread(one.body), one.constants)
    for length in (0, 1, 2, 9):
        for first in (2, 5):
            assert results(one, length, first) == results(other, length, first)
    return "opaque" in str(other)


ON = "i = int64(i + 1)"
NEIGHBOURS = ["y[i] = float64(x[i] + x[i + 1])", ON]
READ_AGAIN = [
    NEIGHBOURS,
    ["j = int64(i + 1)", "a = float64(x[j])", "y[i] = float64(a * x[i])", "i = int64(j)"],
    ["y[i] = float64(x[i - 1] + x[i + 1] + x[i])", ON],
    # In place: what is stored was read before, or in the same iteration.
    ["x[i] = float64(x[i] + x[i + 1])", ON],
    ["x[i] = float64(x[i + 1] + x[i + 2])", ON],
    # Another step, several counters, what comes after a counter was raised, and other factors.
    ["y[r] = float64(x[2 * i] - x[2 * i + 2])", ON, "r = int64(r + 3)"],
    ["j = 30 - i", "y[i] = float64(x[j] - x[j + 1])", ON],
    [ON, "y[i] = float64(x[i] * x[i + 1])"],
    ["e = n * d", "y[i] = float64(x[e * 0 + i] + x[i + 1 + e * 0])", ON],
    # Sums in any order.
    ["s = float64(fast_add(s, x[i] * x[i + 1]))", ON],
    ["refuse(i < 0, 17)", *NEIGHBOURS],
]  # fmt: skip
LEFT_ALONE = [
    ["y[i] = float64(x[i] + x[i])", ON],
    ["y[i] = float64(x[i] + x[i + 2])", ON],
    ["y[i] = float64(x[3] + x[4])", ON],
    ["y[i] = float64(x[i] + y[i + 1])", ON],
    # A later iteration reads what an earlier one stored, or may read it.
    ["x[i] = float64(x[i - 1] + x[i])", ON],
    ["x[i + 1] = float64(x[i] + x[i + 1])", ON],
    ["a = float64(x[i] + x[i + 1])", "x[d] = a", ON],
    ["y[i] = float64(y[i - 1] + x[i] + x[i + 1])", ON],
    # A number goes from iteration to iteration.
    ["s = float64(s * x[i] + x[i + 1])", ON],
    # An index that is no counter.
    ["j = min(i, 9)", "y[i] = float64(x[j] + x[j + 1])", ON],
    ["y[i] = float64(x[r * i] + x[r * i + 1])", "r = int64(1 - r)", ON],
    ["if n > 1:", "    y[i] = float64(x[i] + x[i + 1])", ON],
]  # fmt: skip


@pytest.mark.parametrize("lines", READ_AGAIN)
def test_loops_that_read_again(lines):
    assert is_changed("for _ in range(n):", lines)
    assert is_changed("for _ in range(d, n):", lines)


@pytest.mark.parametrize("lines", LEFT_ALONE)
def test_loops_that_stay(lines):
    assert not is_changed("for _ in range(n):", lines)


def test_a_loop_with_a_variable():
    lines = ["y[g] = float64(x[g] + x[g + 1])", "i = int64(i + g)"]
    assert is_changed("for g in range(d, n):", lines)
    assert not is_changed("for g in range(d, n, 2):", lines)


def stepped(v, p, q):
    n = len(v) - 1
    v = v.copy()
    for i in range(n - 1, -1, -1):
        for j in range(i + 1):
            v[j] = q * (p * v[j + 1] + (1.0 - p) * v[j])
    return v[0] * v[0] + v[1]


def smoothed(u, a):
    u = u.copy()
    for _ in range(5):
        old = u.copy()
        for i in range(1, len(u) - 1):
            u[i] = old[i] + a * (old[i + 1] - 2.0 * old[i] + old[i - 1])
    return np.sum(u * u)


def leapfrog(e, h, c):
    e, h = e.copy(), h.copy()
    for _ in range(4):
        for i in range(len(e) - 1):
            h[i] += c * (e[i + 1] - e[i])
        for i in range(1, len(e)):
            e[i] += c * (h[i] - h[i - 1])
    return np.sum(e * e)


PROGRAMS = [
    (stepped, (np.random.default_rng(1).random(23), 0.45, 0.9)),
    (smoothed, (np.random.default_rng(2).random(23), 0.2)),
    (leapfrog, (*np.random.default_rng(3).random((2, 23)), 0.3)),
]


@pytest.mark.parametrize(("program", "args"), PROGRAMS[:2])
def test_programs_that_read_again(program, args):
    made = nbta.function(program, compiled=True)
    np.testing.assert_allclose(made(*args), njit(program)(*args), rtol=1e-13)
    assert "opaque(" in made.source
    check_grads(made, args, order=1)
    places = tuple(range(len(args)))
    one, other = (
        nbta.value_and_grad(program, argnums=places, compiled=each)(*args)[1]
        for each in (False, True)
    )
    for here, there in zip(one, other, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("program", "args"), PROGRAMS)
def test_second_derivatives(program, args, compiled):
    check_grads(nbta.function(program, compiled=compiled), args, order=2)


def test_vectors_are_not_made_of_those_before(monkeypatch):
    """LLVM's name for a vector that the iteration before hands on is in no loop."""
    found, kept = [], machine_code.kept

    def noted(text, options, compiled):
        if "def run(w)" in text:
            with global_compiler_lock:
                found.append(str(final_module(compiled().library)))
        return kept(text, options, compiled)

    monkeypatch.setattr(machine_code, "kept", noted)
    nbta.function(stepped, compiled=True)(*PROGRAMS[0][1])
    (code,) = found
    assert "x double>" in code
    assert "vector.recur" not in code
