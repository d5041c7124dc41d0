"""Loops over long rows, tile by tile."""

import numpy as np
import pytest
import tile_programs
from array_programs import check
from loop_programs import loops

import nbta
from nbta.compiler import pipeline, prefetch, tiles
from nbta.graph.graph import running
from nbta.graph.views import is_loop


@pytest.fixture
def tiny(monkeypatch):
    """Tiles of three to five items."""
    monkeypatch.setattr(tiles, "TILE_ITEMS", 3)
    monkeypatch.setattr(tiles, "TILE_BYTES", 0)


def is_tiled(function):
    return ": tile by tile" in function.explain()


def why_not(function):
    """What `explain` says of loops that are not tiled."""
    found = [line for line in function.explain().splitlines() if ": not tile by tile" in line]
    return " ".join(line.partition(", as ")[2] for line in found)


def without_tiles(monkeypatch, f, *arguments, **options):
    """What the compiled gradient gives where nothing is tiled."""
    with monkeypatch.context() as patch:
        passes = tuple(step for step in pipeline.LOWERING if step is not tiles.tile)
        patch.setattr(pipeline, "LOWERING", passes)
        compiled = nbta.value_and_grad(f, compiled=True, **options)
        found = compiled(*arguments)
    assert not is_tiled(compiled)
    return found


def hold(found, expected, rtol):
    for one, other in zip(_flat(found), _flat(expected), strict=True):
        assert one.dtype == other.dtype
        scale = np.max(np.abs(other), initial=1.0)
        np.testing.assert_allclose(one, other, rtol=0, atol=rtol * scale)


def _flat(found):
    value, slopes = found
    return [np.asarray(a) for a in (value, *(slopes if type(slopes) is tuple else (slopes,)))]


def least_squares(c, x, y):
    powers = np.ones(len(x))
    for j in range(len(c)):
        y = y - c[j] * powers
        powers = powers * x
    return 0.5 * np.sum(y * y)


def paths(c, x, y):
    z = np.outer(np.cos(np.arange(11.0)), y)
    s, total = c[0] * np.ones(len(x)), np.zeros(len(x))
    for t in range(11):
        s = s * np.exp(0.01 * c[1] + 0.1 * c[2] * z[t])
        total = total + s * x
    return np.exp(-c[1]) * np.mean(np.maximum(total / 11 - 0.2, 0.0))


def rows_and_tables(c, x, y):
    """Gives back sums of rows that loops fill, and of what they leave."""
    table, sums = np.outer(np.sin(np.arange(9.0)), y), np.zeros(9)
    u = x.copy()
    for t in range(9):
        u = 0.5 * np.sin(u * c[0]) + table[t]
        sums[t] += np.sum(u * x)
    filled = np.outer(np.arange(9.0), x)
    for t in range(9):
        filled[t] = u * np.cos(filled[t][0] + c[1])
        u *= c[2]
    return np.sum(sums * np.arange(9.0)) + np.sum(filled) + np.sum(np.cumsum(u))


def in_branches(c, x, y):
    a = 0.0
    if c[0] > 0.0:
        for t in range(9):
            if t % 2 == 0:
                x = x + 0.1 * np.sin(y * c[1])
            for _ in range(9):
                y = 0.9 * y + 0.01 * c[2] * x
            a += np.sum(x * y)
    return a + np.sum(y)


def in_a_loop(c, x, y):
    """Steps of descent, each of which goes along all points."""
    for _ in range(9):
        off, powers = y.copy(), np.ones(len(x))
        slope = np.zeros(len(c))
        for j in range(len(c)):
            off -= c[j] * powers
            powers *= x
        powers = np.ones(len(x))
        for j in range(len(c)):
            slope[j] += np.sum(off * powers)
            powers *= x
        c = c + 0.01 * slope / len(x)
    return np.sum(c * c)


WHOLE = (least_squares, paths, in_branches)
LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 40)


def given(n, count=9):
    made = np.random.default_rng(n)
    return made.uniform(0.2, 0.9, count), *made.uniform(-1.0, 1.0, (2, n))


@pytest.mark.smoke
@pytest.mark.parametrize("f", WHOLE)
def test_each_length_gives_what_all_rows_at_once_give(tiny, f, monkeypatch):
    compiled, reference = (nbta.value_and_grad(f, (0, 1, 2), compiled=k) for k in (True, False))
    for n in LENGTHS:
        if n or f is least_squares:
            hold(compiled(*given(n)), reference(*given(n)), 1e-12)
    assert is_tiled(compiled)
    expected = without_tiles(monkeypatch, f, *given(40), argnums=(0, 1, 2))
    hold(compiled(*given(40)), expected, 1e-13)
    once, again = compiled(*given(40)), compiled(*given(40))
    for one, other in zip(_flat(once), _flat(again), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("f", WHOLE)
def test_derivatives_of_both_orders(tiny, f):
    nbta.testing.check_grads(f, given(7), order=2)


def test_loops_in_iterations_of_another_one(tiny):
    compiled, reference = (nbta.function(in_a_loop, compiled=kind) for kind in (True, False))
    for n in LENGTHS[1:]:
        np.testing.assert_allclose(compiled(*given(n)), reference(*given(n)), rtol=1e-12)
    assert compiled.explain().count(": tile by tile") == 1


@pytest.mark.smoke
def test_loops_that_leave_rows_and_tables(tiny):
    compiled = nbta.function(rows_and_tables, compiled=True)
    reference = nbta.function(rows_and_tables, compiled=False)
    for n in LENGTHS[1:]:
        np.testing.assert_allclose(compiled(*given(n)), reference(*given(n)), rtol=1e-12)
    assert compiled.explain().count(": tile by tile") == 1
    assert "needs what all tiles" in why_not(compiled)  # of the one that reads an item


def begun(c, x, y, fetched=False):
    """Sums that begin with a number which another loop of the tile gives."""
    u, r = x.copy(), c[0]
    for _ in range(9):
        u = u * r + y
        r = np.sin(r)
    a = r
    b = 0.5 * r
    for t in range(9):
        u = np.sin(u)
        a += c[t] * np.sum(u)
        b -= np.sum(u * y)
    return a * b + r if fetched else a * b


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("fetched", [False, True])
def test_sums_that_begin_with_numbers_of_the_tile(tiny, fetched):
    f = lambda c, x, y: begun(c, x, y, fetched)  # noqa: E731
    compiled, reference = (nbta.function(f, compiled=kind) for kind in (True, False))
    for n in LENGTHS[1:]:
        np.testing.assert_allclose(compiled(*given(n)), reference(*given(n)), rtol=1e-12)
    assert "while_1, while_3: tile by tile" in compiled.explain()
    nbta.testing.check_grads(f, given(7), order=2)


def table(x, y):
    filled, u = np.outer(np.arange(9.0), y), x.copy()
    for t in range(9):
        filled[t] = u * np.cos(u)
        filled[t] += 0.5 * y
        u *= 0.9
    return filled, u


def test_rows_go_to_tables_in_place(tiny):
    compiled, reference = (nbta.function(table, compiled=kind) for kind in (True, False))
    for n in LENGTHS[1:]:
        for one, other in zip(compiled(*given(n)[1:]), reference(*given(n)[1:]), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
    assert is_tiled(compiled)
    assert "copies" not in compiled.explain()


@pytest.mark.parametrize(
    ("dtype", "rtol"), [("float32", 1e-5), ("complex64", 1e-5), ("complex128", 1e-12)]
)
def test_other_dtypes(tiny, dtype, rtol):
    def f(c, x, y):
        powers, total = nbta.ones_like(x), c[0]

        def iteration(j, off, powers, total):
            off = off - c[j] * powers
            return j + 1, off, powers * x, total + nbta.sum(off * powers)

        start = (0, y, powers, total)
        _, off, _, total = nbta.while_loop(lambda j, *_: j < c.shape[0], iteration, start)
        return nbta.sum(nbta.real(off * nbta.conj(off))) + nbta.real(total)

    def arguments(n):
        made = np.random.default_rng(n)
        parts = [made.uniform(-1, 1, (2, k)) for k in (9, n, n)]
        return [(p[0] + 1j * p[1] if dtype[0] == "c" else p[0]).astype(dtype) for p in parts]

    compiled, reference = (nbta.value_and_grad(f, (0, 1, 2), compiled=k) for k in (True, False))
    for n in (2, 3, 6, 7, 40):
        hold(compiled(*arguments(n)), reference(*arguments(n)), rtol)
    assert is_tiled(compiled)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_sums_of_inner_loops_in_other_dtypes(tiny, dtype):
    def f(c, x, y):
        def iteration(t, u, total):
            def inner(j, u, s):
                u = u * y + x
                return j + 1, u, s + nbta.sum(u) * c[j]

            first = (0, u, np.zeros((), dtype))
            _, u, s = nbta.while_loop(lambda j, *_: j < 9, inner, first)
            return t + 1, u, total + s * c[t]

        first = (0, x, np.zeros((), dtype))
        return nbta.while_loop(lambda t, *_: t < 9, iteration, first)[1:]

    compiled, reference = (nbta.function(f, compiled=kind) for kind in (True, False))
    for n in (2, 3, 6, 7, 40):
        arguments = [a.astype(dtype) for a in given(n)]
        for one, other in zip(compiled(*arguments), reference(*arguments), strict=True):
            assert one.dtype == other.dtype == dtype
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert "while: tile by tile" in compiled.explain()


def test_sums_of_float32_over_many_tiles_are_as_exact_as_over_one(tiny):
    def f(x):
        def iteration(t, s, total):
            return t + 1, s * np.float32(1.0), total + nbta.sum(s)

        _, s, total = nbta.while_loop(lambda t, *_: t < 9, iteration, (0, x, np.float32(0.0)))
        return nbta.sum(s) + total

    x = np.random.default_rng(0).uniform(0, 1, 30_000).astype("float32")
    compiled = nbta.function(f, compiled=True)
    np.testing.assert_allclose(compiled(x), 10 * np.sum(x, dtype="float64"), rtol=3e-7)
    assert is_tiled(compiled)


def test_numbers_that_are_none_and_infinities(tiny):
    compiled, reference = (nbta.value_and_grad(least_squares, compiled=k) for k in (True, False))
    for bad in (np.nan, np.inf):
        c, x, y = given(12)
        y[7] = bad
        for one, other in zip(compiled(c, x, y), reference(c, x, y), strict=True):
            np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
            np.testing.assert_array_equal(np.isnan(one), np.isnan(other))


def discounted(c, x, z, step=1):
    s, total = c[0] * x, 0.0
    for t in range(9):
        row = z[t] if step > 0 else z[8 - t]
        s = s * np.sin(c[1] + row)
        total += np.sum(s * row)
    return total


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_the_next_iteration_are_asked_for_once(tiny, monkeypatch, step, dtype):
    monkeypatch.setattr(prefetch, "PREFETCHED_MATRIX", 0)
    f = lambda c, x, z: discounted(c, x, z, step)  # noqa: E731
    compiled, reference = (nbta.value_and_grad(f, (0, 1, 2), compiled=k) for k in (True, False))
    for n in (2, 3, 7, 40, 600):
        c, x, _ = (a.astype(dtype) for a in given(n))
        z = np.random.default_rng(n).normal(size=(9, n)).astype(dtype)
        tolerance = 1e-4 if dtype == "float32" else 1e-12
        hold(compiled(c, x, z), reference(c, x, z), tolerance)
    assert is_tiled(compiled)
    fetches = [line.strip() for line in compiled.source.split("\n") if "fetch(z, " in line]
    assert len(set(fetches)) == 1
    assert len(fetches) <= 2  # one in each version of the loop


# What stays as it is.


def of_a_root(c, x, y):
    return np.sqrt(1.0 + least_squares(c, x, y))


def turned(c, x, y):
    for j in range(len(c)):
        y = y[::-1] * c[j]
    return np.sum(x * y)


def looked_at(c, x, y):
    a = 0.0
    for j in range(len(c)):
        a = 0.5 * a + np.sum(x * y)
        y = y * c[j]
    return a


def bent(c, x, y):
    a = 0.0
    for j in range(len(c)):
        a += np.tanh(np.sum(x * y))
        y = y * c[j]
    return a


def ended(c, x, y):
    j = 0
    while np.sum(y * y) > 0.1 and j < len(c):
        y = y * c[j]
        j += 1
    return np.sum(y)


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (of_a_root, "is needed when all tiles are done"),
        (turned, "is no elementwise operation, and no sum"),
        (looked_at, "a sum of all tiles"),
        (bent, "needs a sum of all tiles"),
        (ended, "ends by what tiles compute"),
    ],
)
def test_what_needs_other_items_is_run_as_a_whole(tiny, f, reason):
    compiled, reference = (nbta.value_and_grad(f, (0, 1, 2), compiled=k) for k in (True, False))
    for n in (3, 12):
        hold(compiled(*given(n)), reference(*given(n)), 1e-12)
    assert not is_tiled(compiled)
    assert reason in why_not(compiled)


def test_short_rows_of_known_length_and_numbers_are_left_alone():
    def f(c):
        u = np.zeros(20)
        for j in range(len(c)):
            u = u + c[j]
        return np.sum(u)

    compiled = nbta.function(f, compiled=True)
    compiled(np.ones(9))
    assert "long rows" not in compiled.explain()


def test_what_python_computes_is_not_left_to_it_for_each_tile(tiny):
    def f(x):
        return nbta.while_loop(lambda t, _: t < 9, lambda t, u: (t + 1, u * x), (0, x))[1]

    compiled = nbta.function(f, compiled=True)
    x = np.linspace(0.9, 1.1, 12).astype("float16")
    with pytest.warns(nbta.PerformanceWarning):
        found = compiled(x)
    np.testing.assert_array_equal(found, nbta.function(f, compiled=False)(x))
    assert "Mul" in why_not(compiled)


def test_rows_that_fit_into_the_cache_are_one_tile():
    compiled = nbta.value_and_grad(least_squares, (0, 1, 2), compiled=True)
    for n in (tiles.TILE_ITEMS - 1, 2 * tiles.TILE_ITEMS - 1, 2 * tiles.TILE_ITEMS, 5000):
        reference = nbta.value_and_grad(least_squares, (0, 1, 2), compiled=False)
        hold(compiled(*given(n)), reference(*given(n)), 1e-11)
    program = compiled._last.runner.ran.program
    outer = next(op for op in loops(program) if op.facts.tiling)
    assert sum(map(is_loop, running(outer.attrs["body"]))) == 2


# Random programs.


def count(seeds, machine_code=False, second=False):
    found = 0
    for seed in seeds:
        program = tile_programs.program(seed)
        try:
            found += is_tiled(check(program, machine_code, second, alone=True))
        except Exception as error:
            error.add_note(f"tile_programs.program({seed})\n{program!r}")
            raise
    return found


def test_random_programs(tiny):
    assert count([*range(9, 21), 1048, 1073]) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_many_random_programs(tiny, first):
    assert count(range(1000 + first, 1050 + first), second=True) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_as_machine_code(tiny, first):
    count(range(first, first + 20), machine_code=True)
