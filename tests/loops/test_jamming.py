"""Iterations of an outer loop side by side: where that is done, and that results stay."""

import random

import numpy as np
import pytest
import read_code
from numba import njit

import nbta
from nbta.loops import Block, Function
from nbta.loops.interpreting import Interpreter
from nbta.loops.jamming import Anew, jammed
from nbta.testing import check_grads

SIDE_BY_SIDE = "iterations side by side"
HEAD = """def run(w):
    W = pointer(int64, w, 99)
    x = pointer(float64, w, 0)
    y = pointer(float64, w, 1)
    z = pointer(float64, w, 2)
    c = pointer(int64, w, 4)
    n = W[0]
    d = W[1]
    i = int64(0)
    s = float64(0.0)
    for _ in range(W[2], n):
        l = 0
        m = W[4] // 8
        a = pointer(float64, W[3], 3)
        j = int64(0)
        p = float64(x[i])
        q = float64(1.0)
        k = max(0, d)
        if k > m:
            slot(w, 3, 6, k, 0)
            a = pointer(float64, W[3], 3)
            m = W[4] // 8
"""
POWERS = [
    "for _ in range(k):", "    a[j] = q", "    l = j + 1", "    q1 = float64(q * p)",
    "    j = int64(j + 1)", "    q = float64(q1)", "r = int64(0)", "for _ in range(k):",
    "    t = float64(a[j - r - 1] * q)", "    y[r] = float64(y[r] + t)", "    r = int64(r + 1)",
]  # fmt: skip
TAIL = """        s = float64(s + q)
        i = int64(i + 1)
    z[0] = s
    z[1] = i
    return 0
"""


def function(lines):
    return read_code.function(HEAD + "".join(f"        {line}\n" for line in lines) + TAIL, Block)


def changed(made):
    return Function(jammed(made.body, {"a": Anew("m", 3)}), made.constants)


def results(made, count, depth, first):
    """What a run leaves in the buffers, and the room that it asked for."""
    rng = np.random.default_rng(count)
    words, tape = {0: count, 1: depth, 2: first, 3: "a", 4: 0}, np.zeros(400)
    buffers = {
        0: rng.normal(size=40), 1: np.zeros(40), 2: np.zeros(40), 3: tape, 99: words,
        4: rng.integers(0, 6, 40),
    }  # fmt: skip

    def slot(w, record, what, items, zero):
        assert record == 3
        words[4] = 8 * items

    def refuse(condition, status):
        assert not condition

    names = {
        "pointer": lambda kind, address, number: buffers[number], "int64": int, "float64": float,
        "slot": slot, "refuse": refuse, "watch": lambda *_: None, "fast_add": lambda a, b: a + b,
    }  # fmt: skip
    Interpreter(made, names).run(0)
    return [buffers[k].tolist() for k in (1, 2)]


def holds(lines):
    """Hold a function against itself, jammed; whether it is another one."""
    one = function(lines)
    other = changed(one)
    for count in range(11):
        for depth, first in ((3, 0), (0, 0), (1, 2)):
            assert results(one, count, depth, first) == results(other, count, depth, first)
    return SIDE_BY_SIDE in str(other)


def test_a_chain_with_a_tape():
    assert holds(POWERS)
    other = str(changed(function(POWERS)))
    assert "if k_0 * 4 > m:" in other
    assert "a[j_0 * 4 + 3] = q_3" in other
    assert other.count("j_0 = int64(j_0 + 1)") == 1  # the lanes count together


LEGAL = [
    # Loops of several lengths, with what is left of each.
    [line.replace("range(k)", "range(min(k, c[i]))") for line in POWERS],
    ["for _ in range(c[i]):", "    q = float64(q * p)"],
    ["for _ in range(i):", "    q = float64(q * p)"],
    ["for g in range(k):", "    q = float64(q * x[g])"],
    ["for g in range(i):", "    q = float64(q * x[g])"],
    # Items that are added to, and what comes after a loop.
    ["for _ in range(k):", "    q = float64(q * p)", "y[c[i]] = float64(y[c[i]] - q)"],
    ["for _ in range(k):", "    q = float64(q * p)", "z[i + 2] = q"],
    ["if p > 0.0:", "    q = p", "for _ in range(k):", "    q = float64(q * p)"],
    ["for _ in range(k):", "    refuse(q != q, 17)", "    if q > 0.5:", "        q = p",
     "    q = float64(q * p)"],
    ["z[i + 2] = p", "for _ in range(k):", "    q = float64(q * p)", "z[i + 3] = q"],
    # Truth values of lanes, and columns of an array.
    ["u = c[i] > 2", "for g in range(k):", "    refuse(u and g < 0, 17)",
     "    e = g + d if u and g < 1 else g", "    q = float64(q * x[e])"],
    ["for g in range(k):", "    y[g * 3 + i] = float64(y[g * 3 + i] + p * x[g * 3 + i])"],
]  # fmt: skip
ILLEGAL = [
    # The chain goes on from one iteration of the outer loop to the next.
    ["for _ in range(k):", "    s = float64(s * p)"],
    ["for _ in range(k):", "    q = float64(q * s)"],
    ["q = s", "for _ in range(k):", "    q = float64(q * p)"],
    # Loops change what the next iteration reads, or perhaps.
    ["for _ in range(k):", "    q = float64(q * y[j])", "    y[j] = q"],
    ["for _ in range(k):", "    q = float64(q * y[j])", "    y[j] = float64(y[j] + q)"],
    ["for _ in range(k):", "    q = float64(q * p)", "    z[j] = q"],
    ["for _ in range(k):", "    q = float64(q * x[c[j]])", "c[0] = 1"],
    ["for _ in range(k):", "    q = float64(q * p)", "y[3] = float64(y[3] * q)",
     "for _ in range(k):", "    q = float64(q * y[3])"],
    # There may be more items than there is room for.
    ["k = c[i]", *POWERS],
    # Nothing is known of a call with the table, nor of what is left early.
    ["o = slot(w, 3, 4, 0, 0)", "for _ in range(k):", "    q = float64(q * p)"],
    ["for _ in range(k):", "    q = float64(q * p)", "    if q > 2.0: break"],
]  # fmt: skip


@pytest.mark.parametrize("lines", LEGAL)
def test_lanes_are_jammed_where_they_are_independent(lines):
    assert holds(lines)


@pytest.mark.parametrize("lines", ILLEGAL)
def test_other_loops_stay(lines):
    made = function(lines)
    assert str(changed(made)) == str(made)


@pytest.mark.parametrize(
    "lines",
    [
        ["for _ in range(k):", "    q = float64(fast_add(q, x[j]))", "    j = int64(j + 1)"],
        ["for g in range(k):", "    y[i * 3 + g] = float64(y[i * 3 + g] + x[g])"],
        ["for g in range(k):", "    y[g * 3 + d] = float64(y[g * 3 + d] + x[g])"],
    ],
)
def test_what_is_in_vectors_anyway_stays(lines):
    made = function(lines)
    assert str(changed(made)) == str(made)


def test_lanes_have_no_guards_where_none_asks_for_them():
    body = ["u = c[i] > 2", "for g in range(k):", "    refuse(u and g < 0, 17)",
            "    q = float64(q * x[g])"]  # fmt: skip
    lanes = str(changed(function(body))).split(SIDE_BY_SIDE)[1].split("those that are left")[0]
    guarded, plain = lanes.split("if u_0 or u_1 or u_2 or u_3:")[1].split("else:")
    assert guarded.count("refuse(") == 4
    assert "refuse(" not in plain


def drawn(rng):
    """Random lines, legal or not; what is read of the tape was written before."""
    names = ["p", "q", "u", "x[j]", "x[i]"] * 3 + ["s", "y[r]", "z[i + 2]"]
    targets = ["p", "q", "u", "+y[r]"] * 3 + ["y[r]", "z[i + 2]", "s"]

    def statement(more=()):
        one, other = (rng.choice([*names, *more]) for _ in range(2))
        value = f"float64({one} {rng.choice('+-*')} 0.5 * {other})"
        target = rng.choice(targets)
        if target.startswith("+"):
            target, value = "y[r]", f"float64(y[r] + {rng.choice('pqu')})"
        return f"{target} = {value}"

    lines = ["u = float64(0.25)", "r = int64(0)", f"b = {rng.choice(['p > 0.0', 'c[i] > 2'])}"]
    tape: list[str] = []
    for stop in ("k", rng.choice(["k", "min(k, c[i])"])):
        lines += [statement() for _ in range(rng.randrange(3))]
        lines += ["j = int64(0)", f"for _ in range({stop}):"]
        lines += [] if tape else ["    a[j] = q"]
        lines += ["    refuse(b and j < 0, 17)", "    e = j + d if b and j < 1 else j"]
        lines += [f"    {statement([*tape, 'x[e]'])}" for _ in range(rng.randrange(1, 4))]
        lines += ["    q = float64(q * p)", "    j = int64(j + 1)"]
        tape = ["a[j]"] * 3
    return [*lines, *(statement() for _ in range(rng.randrange(2)))]


def test_random_bodies():
    rng, found = random.Random(5), 0
    for _ in range(150):
        lines = drawn(rng)
        if SIDE_BY_SIDE in str(changed(function(lines))):
            found += 1
            one, other = function(lines), changed(function(lines))
            for count in (0, 3, 6, 9):
                here, there = (results(each, count, 3, 0) for each in (one, other))
                np.testing.assert_allclose(there, here, rtol=1e-12, atol=1e-12)
    assert found > 20


@njit
def powers(coefficients, points):
    total = 0.0
    for i in range(len(points)):
        off, power = 0.3, 1.0
        for j in range(len(coefficients)):
            off -= coefficients[j] * power
            power *= points[i]
        total += off * off
    return total


@njit
def logistic(rates, starts, steps):
    total = 0.0
    for i in range(len(starts)):
        state = starts[i]
        for t in range(len(steps)):
            state = rates[t] * state * (1.0 - state) + steps[t]
        total += state
    return total


@njit
def handed(coefficients, points):
    total = 1.0
    for i in range(len(points)):
        for j in range(len(coefficients)):
            total = 0.5 * total + coefficients[j] * points[i]
    return total


@njit
def columns(matrix, row):
    total = 0.0
    for j in range(matrix.shape[1]):
        item = 0.0
        for i in range(len(row)):
            item += row[i] * matrix[i, j]
        total += item * item
    return total


@pytest.mark.parametrize(
    ("function", "lengths", "is_jammed"),
    [
        (columns, ((8, 6), 5), True),
        (powers, (5, 9), True),
        (logistic, (3, 7, 3), True),
        (handed, (5, 6), False),
    ],
)
def test_gradients(function, lengths, is_jammed):
    rng = np.random.default_rng(3)
    arguments = [rng.uniform(0.1, 0.9, length) for length in lengths]
    check_grads(function, arguments, order=1, modes=("reverse",))
    places = tuple(range(len(arguments)))
    both = [nbta.value_and_grad(function, argnums=places, compiled=each) for each in (False, True)]
    for more in range(4):  # iterations that are left after the last four
        arguments[1] = rng.uniform(0.1, 0.9, lengths[1] + more)
        (value, here), (other, there) = (each(*arguments) for each in both)
        np.testing.assert_allclose([value, other], function(*arguments), rtol=1e-13)
        for one, another in zip(here, there, strict=True):
            np.testing.assert_allclose(one, another, rtol=1e-12)
    assert (SIDE_BY_SIDE in both[1].source) == is_jammed
