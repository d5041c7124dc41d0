"""Loops whose branches take neighbours: what LLVM needs to make vector instructions of them."""

import re

import numpy as np
import pytest
import read_code
from compiled_pairs import compare
from fuzz.ways import in_python

import nbta
from nbta.compiler.build import lowered, namespace
from nbta.runtime.numba_private import global_compiler_lock
from nbta.testing import check_grads


def upwind(u, v, c):
    u, w = u.copy(), np.zeros(len(u))
    for _ in range(3):
        for i in range(1, len(u) - 1):
            if v[i] > 0:
                w[i] = u[i] - c[0] * v[i] * (u[i] - u[i - 1])
            else:
                w[i] = u[i] - c[1] * v[i] * (u[i + 1] - u[i])
        for i in range(1, len(u) - 1):
            u[i] = w[i]
    return np.sum(u * u)


def burgers(u, v, c):
    u, w = u.copy(), np.zeros(len(u))
    for _ in range(20):
        for i in range(1, len(u) - 1):
            if u[i] > 0:
                w[i] = u[i] - 0.02 * u[i] * (u[i] - u[i - 1])
            else:
                w[i] = u[i] - 0.02 * u[i] * (u[i + 1] - u[i])
        for i in range(1, len(u) - 1):
            u[i] = w[i]
    return np.sum(u * u * v) + np.sum(c)


def limited(u, v, c):
    w = np.zeros(len(u))
    for i in range(2, len(u) - 2):
        a, b = u[i] - u[i - 1], u[i + 1] - u[i]
        if a * b <= 0:
            w[i] += c[0] * v[i]
        elif abs(a) < abs(b):
            w[i - 1] += a * v[i]
            w[i + 1] -= a * c[1]
        else:
            w[i + 2] += b * v[i + 1]
    return np.sum(np.sin(w))


def masked(u, v, c):
    w = u * 0.5
    for i in range(1, len(u) - 1):
        if v[i] > 0.2:
            continue
        w[i] = c[0] * (u[i - 1] + u[i + 1])
        w[i] *= c[1]
    return np.sum(w * w)


def drifting(u, v, c):
    w, drift, total = u * 0.0, c[0], 0.0
    for i in range(1, len(u) - 1):
        if v[i] > 0:
            w[i] = drift * v[i] * (u[i] - u[i - 1])
            total += v[i] * u[i]
        elif v[i] < -0.5:
            w[i] = drift * (u[i + 1] - u[i])
    return np.sum(w * w) + total * c[1]


PROGRAMS = [upwind, burgers, limited, masked, drifting]


def arguments(n):
    draw = np.random.default_rng(n)
    return draw.normal(size=n), draw.normal(size=n), np.array([0.1, 0.2])


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients(f):
    check_grads(f, arguments(11), order=2)
    ways = [nbta.value_and_grad(f, (0, 1, 2), compiled=kind) for kind in (True, False)]
    with in_python():
        for n in (11, 5, 3, 1, 0, 520, 11):
            (value, found), (same, expected) = (way(*arguments(n)) for way in ways)
            np.testing.assert_allclose(value, same, rtol=1e-12)
            compare(found, expected)


@pytest.mark.parametrize("f", [upwind, burgers, masked])
def test_loops_ask_nothing_where_all_indices_are_inside(f):
    slope = nbta.value_and_grad(f, (0, 1, 2), compiled=True)
    slope(*arguments(11))
    versions = re.findall(r"^( +)else:\n((?:\1 .*\n|\n)+)", slope.source, re.M)
    found = [text for _, text in versions if "for i" in text.partition("\n")[0]]
    is_known = f is burgers  # forward, as all lengths are one
    assert len(found) >= 2 - is_known  # forward and adjoint
    assert not any("refuse(" in text for text in found)


def test_sums_in_branches_are_added_after_them():
    slope = nbta.value_and_grad(drifting, (0, 1, 2), compiled=True)
    slope(*arguments(11))
    sums = re.findall(r"^ +(\w+) = float64\(fast_add\(\w+, r\d+\)\)$", slope.source, re.M)
    assert len(sums) >= 2  # the total, and the gradient of the factor


def test_numbers_of_branches_that_next_iterations_have_are_in_vectors():
    slope = nbta.value_and_grad(burgers, (0, 1, 2), compiled=True)
    slope(*arguments(11))
    with global_compiler_lock:
        library = lowered(read_code.function(slope.source), namespace()).library
    assert "vector.recur" in library.get_llvm_str()


def test_indices_in_branches_that_are_not_taken_at_the_ends():
    def f(u, v):
        w = u * 0.0
        for i in range(len(u)):
            if i > 0:
                w[i] += v[i] * u[i - 1]
            if i < len(u) - 1:
                w[i] += v[i] * u[i + 1]
        return np.sum(w * w)

    u, v, _ = arguments(9)
    check_grads(f, (u, v), order=2)
    slope = nbta.value_and_grad(f, (0, 1), compiled=True)
    slope(u, v)
    with pytest.raises(nbta.NbtaError):
        slope(u, v[:5])


def test_a_number_is_saved_for_all_branches_of_a_kind():
    slope = nbta.value_and_grad(burgers, compiled=True)
    slope(*arguments(11))
    saved = [line for line in slope.explain().splitlines() if "`if u[i] > 0:`" in line]
    assert len(saved) == 2  # a factor and a difference, of the branch that was taken
    assert all("8 bytes an iteration" in line for line in saved)


def periodic(u, v, c):
    n = len(u)
    u = u * c[0]
    for _ in nbta.unroll(range(3)):
        w = np.zeros(n)
        for i in range(n):
            after = i + 1 if i + 1 < n else 0
            before = i - 1 if i > 0 else n - 1
            if v[i] > 0:
                far = (2 * i + 1 if 2 * i + 1 < n else 2 * i - n) if n > 1 else 0
            else:
                far = i
            w[i] = u[i] * u[i] + c[1] * u[after] * u[before] + v[i] * u[far]
        u = w
    return np.sum(u)


def test_indices_that_branches_choose_are_computed_again():
    check_grads(periodic, arguments(7), order=2)
    slope = nbta.value_and_grad(periodic, (0, 1, 2), compiled=True)
    for n in (11, 1, 7):
        value, _ = slope(*arguments(n))
        np.testing.assert_allclose(value, periodic(*arguments(n)), rtol=1e-12)
    saved = [line for line in slope.explain().splitlines() if "bytes an iteration" in line]
    assert not any("after" in line or "before" in line or "far" in line for line in saved), saved


def test_integers_that_may_fail_are_computed_in_their_branch_alone():
    def f(x, k):
        total = 0.0
        for i in range(len(x)):
            j = i // k if k != 0 else i
            total += x[i] * x[j]
        return total

    x = arguments(9)[0]
    slope = nbta.value_and_grad(f, compiled=True)
    for k in (0, 2, 0):
        value, found = slope(x, k)
        np.testing.assert_allclose(value, f(x, k), rtol=1e-12)
        compare(found, nbta.grad(f, compiled=False)(x, k))


def test_truth_values_in_memory_lie_apart_from_other_buffers():
    source = """
def run(w):
    a = pointer(boolean, w, 1)
    b = pointer(float64, w, 2)
    for i in range(8):
        t = boolean(a[i])
        b[i] = (1.0 if t else 2.0)
    return 0
"""
    with global_compiler_lock:
        library = lowered(read_code.function(source), namespace()).library
    loads = [line for line in library.get_llvm_str().splitlines() if re.search(r"load i8\b", line)]
    wide = re.findall(r".*load <\d+ x i8>.*", library.get_llvm_str())
    assert loads or wide
    assert all("!alias.scope" in line and "!noalias" in line for line in loads + wide)


def seam(e):
    """The cheapest seam: a cell above is asked for where there is one, and read if cheaper."""
    c, (n, m) = e.copy(), e.shape
    for i in range(1, n):
        for j in range(m):
            b = c[i - 1, j]
            if j > 0 and c[i - 1, j - 1] < b:
                b = c[i - 1, j - 1]
            if j < m - 1 and c[i - 1, j + 1] < b:
                b = c[i - 1, j + 1]
            c[i, j] = e[i, j] + b
    return np.sum(c[n - 1] * c[n - 1])


@pytest.mark.smoke
def test_tangents_are_read_before_the_branches_that_may_fail_at_the_ends_alone():
    """As the values are, in the condition; a branch that reads was 14 times the function."""
    compiled, reference = (
        nbta.function(lambda e, d: nbta.jvp(seam, (e,), (d,)), compiled=kind)
        for kind in (True, False)
    )
    made = np.random.default_rng(5)
    for shape in ((4, 1), (3, 2), (3, 11), (4, 12), (4, 40)):
        e, d = made.normal(size=(2, *shape))
        for one, other in zip(compiled(e, d), reference(e, d), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13)
    chosen = re.findall(r"( +)if r\d+:\n((?:\1 +.*\n)+)", compiled.source)
    assert chosen
    assert not any("t_c[" in lines for _, lines in chosen)
