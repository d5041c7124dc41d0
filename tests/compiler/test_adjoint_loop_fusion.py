"""Loops that run each adjoint iteration right after its own, and lengths that programs name."""

import adjoint_fusion_programs
import numpy as np
import pytest
from array_programs import check

import nbta

TITLE = "loops whose adjoint iterations run right after their own:"


def joint(function):
    """How many loops `explain` says that of."""
    lines = iter(function.explain().splitlines())
    after = next((True for line in lines if line == TITLE), False)
    return sum(1 for _ in _section(lines)) if after else 0


def _section(lines):
    for line in lines:
        if not line.startswith(" "):
            return
        yield line


def both(f, *arguments, joins=None):
    """Values and gradients of the compiled function, which the reference executor gives too."""
    argnums = tuple(range(len(arguments)))
    compiled, reference = (nbta.value_and_grad(f, argnums, compiled=k) for k in (True, False))
    (value, found), (same, expected) = compiled(*arguments), reference(*arguments)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)
    assert joins is None or joint(compiled) == joins
    return compiled


def given(n):
    made = np.random.default_rng(n)
    return made.uniform(-0.9, 0.9, 3), *made.uniform(-1.0, 1.0, (2, n))


def errors(p, x, y):
    """A sum of squares, of two terms per iteration."""
    s = 0.0
    for i in range(len(x)):
        off = np.tanh(p[0] * x[i]) + p[1] - y[i]
        s += off * off + p[2] * x[i] * np.exp(-off)
    return s


def paths(p, x, y):
    """Simulates each item for as many steps as it says."""
    s = 0.0
    for i in range(len(x)):
        state = x[i]
        for k in range(i % 4):
            state = state + 0.3 * np.sin(state * p[0]) * y[k]
        s += p[1] * state * state
    return s


def roots(p, x, y):
    """A loop that ends by its values, in a loop."""
    s = 0.0
    for i in range(len(x)):
        root = 1.0 + x[i] * x[i]
        while abs(root * root - 2.0 - p[0]) > 1e-9:
            root = 0.5 * (root + (2.0 + p[0]) / root)
        s += root * y[i]
    return s


def in_branches(p, x, y):
    """Adds to numbers and to items, in branches and in loops."""
    q, s = np.zeros(4), p[2]
    for i in range(len(x)):
        v = x[i] * p[0]
        if v > 0.0:
            q[i % 3] += np.sin(v) * y[i]
        elif y[i] > 0.0:
            for k in range(3):
                q[k] -= v * y[i] * k
                s += v * v
        s += np.cos(v)
    return s + 2.0 * q[0] - q[1] + 0.5 * q[2]


def backwards(p, x, y):
    """Goes along from the end, and gives each item a place."""
    h = np.zeros(len(x))
    for i in range(len(x) - 1, -1, -1):
        h[i] += np.sin(x[i] * p[0]) * y[len(x) - 1 - i]
    return np.sum(h * 0.5)


def pairs(p, x, y):
    """Two loops in one another, both of which only add."""
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            s += x[i] * np.tanh(x[j] * p[0] + y[i])
    return s


def while_it_holds(p, x, y):
    """Ends by what it has added up."""
    s, i = 0.0, 0
    while i < len(x) and s < 1.5:
        s += np.exp(p[0] * x[i]) * abs(y[i])
        i += 1
    return s


def of_stacks(p, x, y):
    """Products of stacks of matrices, which are those of their iteration alone."""
    w, s = np.stack([np.outer(p, p), np.outer(p, p + 1.0)]), 0.0
    for i in range(len(x)):
        off = np.stack([p - x[i], p * x[i]])
        white = np.einsum("kij,kj->ki", w, off) + np.matmul(off[:, None, :], w)[:, 0]
        s += np.log(1.0 + np.sum(white * white)) * y[i]
    return s


JOINED = (errors, paths, roots, in_branches, backwards, pairs, while_it_holds, of_stacks)


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("f", JOINED, ids=lambda f: f.__name__)
def test_adjoint_iterations_run_at_once(f):
    both(f, *given(1))
    for n in (2, 7):
        both(f, *given(n), joins=2 if f is pairs else 1)


@pytest.mark.parametrize("f", JOINED, ids=lambda f: f.__name__)
def test_derivatives_of_both_orders(f):
    nbta.testing.check_grads(f, given(6), order=2)


def test_no_items_at_all():
    p, *_ = given(3)
    value, slopes = nbta.value_and_grad(errors, (0, 1, 2), compiled=True)(p, np.ones(0), np.ones(0))
    assert value == 0.0
    assert [np.sum(np.abs(slope)) for slope in slopes] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_other_dtypes(dtype):
    real = np.zeros((), dtype).real.dtype

    def f(p, x, y):
        def iteration(i, s):
            v = p[0] * x[i] - y[i]
            return i + 1, s + nbta.real(v * nbta.conj(v) * p[1])

        return nbta.while_loop(lambda i, s: i < x.shape[0], iteration, (0, np.zeros((), real)))[1]

    made = np.random.default_rng(1)
    parts = [made.uniform(-1, 1, (2, n)) for n in (2, 5, 5)]
    arguments = [(a + 1j * b if dtype[0] == "c" else a).astype(dtype) for a, b in parts]
    compiled, reference = (nbta.grad(f, (0, 1, 2), compiled=kind) for kind in (True, False))
    for one, other in zip(compiled(*arguments), reference(*arguments), strict=True):
        assert one.dtype == other.dtype == dtype
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert joint(compiled) == 1


# What stays as it is.


def of_a_root(p, x, y):
    return np.sqrt(1.0 + errors(p, x, y))


def carried(p, x, y):
    s, a = 0.0, p[0]
    for i in range(len(x)):
        a = 0.5 * np.sin(a) + x[i] * y[i]
        s += a * a
    return s


def scaled(p, x, y):
    s = 0.0
    for i in range(len(x)):
        s = s * 0.9 + np.sin(p[0] * x[i]) * y[i]
    return s


def with_products(p, x, y):
    """Products of each iteration are one product of them all."""
    w, s = np.outer(p, p), 0.0
    for i in range(len(x)):
        s += np.sum(np.tanh(w @ (p * x[i]))) * y[i]
    return s


def filled(p, x, y):
    """Asks for what all iterations left."""
    h = np.zeros(len(x))
    for i in range(len(x)):
        h[i] = np.sin(p[0] * x[i])
    return np.sum(h * h * y)


def compared(p, x, y):
    """Each iteration looks at the one before."""
    s = 0.0
    for i in range(1, len(x)):
        s += np.tanh(x[i] - x[i - 1]) * np.tanh(s * 0.1)
    return s + p[0] * y[0]


@pytest.mark.smoke
@pytest.mark.parametrize(
    "f", [of_a_root, carried, scaled, with_products, filled, compared], ids=lambda f: f.__name__
)
def test_what_needs_other_iterations_goes_back_after_them(f):
    for n in (2, 7):
        both(f, *given(n), joins=0)
    nbta.testing.check_grads(f, given(6), order=2)


@pytest.mark.parametrize("checkpoint", [None, "sqrt", 2])
def test_loops_with_checkpoints(checkpoint):
    def f(p, x, y):
        def iteration(i, s):
            return i + 1, s + nbta.sin(p[0] * x[i]) * y[i]

        options = {} if checkpoint is None else {"checkpoint": checkpoint}
        return nbta.while_loop(lambda i, _: i < x.shape[0], iteration, (0, 0.0), **options)[1]

    both(f, *given(7), joins=1)  # of those with checkpoints, that of a segment that runs again


# Random programs.


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    check(adjoint_fusion_programs.program(seed))


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(6))
def test_many_random_programs(batch):
    found = [joint(check(adjoint_fusion_programs.program(12 + 20 * batch + k))) for k in range(20)]
    assert sum(map(bool, found)) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_random_programs_in_machine_code(seed):
    check(adjoint_fusion_programs.program(1000 + seed), machine_code=True)


# Lengths that a program names.


def sums_one_after_the_other(p, x, y):
    s = 0.0
    for i in range(len(x)):
        s += np.tanh(x[i] * p[0])
    for i in range(len(x)):
        s += np.sin(x[i] * p[1]) * y[i]
    for i in range(len(x) - 1):
        s += np.exp(x[i] * p[2]) * y[i + 1]
    return s


def sums_of_sums(p, x, y):
    """The slope of the first loop is known after the second one, whose own is known at once."""
    s = t = 0.0
    for i in range(len(x)):
        s += np.tanh(x[i] * p[0])
    for i in range(len(x)):
        t += np.sin(x[i] * s) * y[i]
    return t


@pytest.mark.smoke
@pytest.mark.parametrize(("f", "joins"), [(sums_one_after_the_other, 3), (sums_of_sums, 1)])
def test_several_loops_that_go_back_at_once(f, joins):
    nbta.testing.check_grads(f, given(7), order=2)
    both(f, *given(7), joins=joins)


def columns(p, x):
    s = 0.0
    for i in range(len(x)):
        u, v = x[i, 0] * p[0], x[i, 1] + x[i, 2] * p[1]
        s += u * v * v
    return s


def test_lengths_that_a_program_names_to_the_last_item():
    compiled, reference = (nbta.value_and_grad(columns, (0, 1), compiled=k) for k in (True, False))
    made = np.random.default_rng(0)
    for lengths in [(2, 3), (3, 3), (2, 5), (4, 7), (2, 3)]:
        arguments = [made.uniform(-1, 1, lengths[0]), made.uniform(-1, 1, (6, lengths[1]))]
        (value, found), (same, expected) = compiled(*arguments), reference(*arguments)
        np.testing.assert_allclose(value, same, rtol=1e-13)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    with pytest.raises(nbta.NbtaError, match="index 2"):
        compiled(np.ones(2), np.ones((6, 2)))
    with pytest.raises(nbta.NbtaError, match="index 1"):
        compiled(np.ones(1), np.ones((6, 3)))


@pytest.fixture
def entries(tmp_path, monkeypatch):
    """Calls the gradient of a function with some arrays; which files a folder has then."""

    def found(f, *calls):
        for arguments in calls:
            nbta.value_and_grad(f, compiled=True)(*arguments)
        return {path.name: path.stat().st_ino for path in tmp_path.rglob("*.graph")}

    found(columns, (np.ones(2), np.ones((6, 3))))  # code that all programs share is elsewhere
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path))
    return found


def test_named_lengths_of_several_kinds_are_kept_side_by_side(entries):
    """Those of one process do not take the place of another's on disk."""
    calls = [(np.ones(2), np.ones((6, k))) for k in (3, 5)]
    kept = entries(columns, *calls)
    assert len(kept) == 2
    assert entries(columns, *calls) == kept
