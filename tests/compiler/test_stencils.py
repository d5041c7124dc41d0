"""Loops that add to several items of an array in each iteration, and arrays that change places."""

import re

import numpy as np
import pytest
import stencil_programs
from array_programs import check
from fuzz.ways import executed

import nbta
from nbta.compiler import stencils


def ranged(start, stop, body, *variables, step=1):
    def following(i, *variables):
        found = body(i, *variables)
        return i + step, *(found if isinstance(found, tuple) else (found,))

    def goes_on(i, *_):
        return i < stop if step > 0 else i > stop

    last = nbta.while_loop(goes_on, following, (start, *variables))[1:]
    return last[0] if len(last) == 1 else last


def spread(offsets, step=1):
    """A loop that adds each item of a vector to neighbours' places, forwards or backwards."""
    reach = max(map(abs, offsets))

    def f(h, x):
        def iteration(i, h):
            for number, offset in enumerate(offsets):
                h = nbta.add_item(h, i + offset, x[i] if number % 2 else -x[i])
            return h

        first, end = reach, h.shape[0] - reach
        ends = (first, end) if step > 0 else (end - 1, first - 1)
        return ranged(*ends, iteration, h, step=step)

    return f


def has_rows(function):
    return f" = min({stencils.STENCIL_STRETCH}, " in function.source


def has_windows(function):
    """Whether what iterations add is in registers."""
    return has_rows(function) and not re.search(r"q\d+ = room", function.source)


def both(f, *arguments):
    """The compiled function, bitwise identical to operations one by one.

    Of NaN the sign means nothing: LLVM takes `x - y` for `x + -y`.
    """
    compiled = nbta.function(f, compiled=True)
    found, expected = compiled(*arguments), nbta.function(f, compiled=False)(*arguments)
    for one, other in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        np.testing.assert_array_equal(one, other)
        numbers = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one)[numbers], np.signbit(other)[numbers])
    return compiled


OFFSETS = [(-1, 0, 1), (1, 0, -1), (0, 3), (-2, -1), (5, 2, 2, 4), (2, 2, 2, 1), (-7, 9)]


@pytest.mark.slow_but_every(3)
@pytest.mark.smoke_every(4)
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("offsets", OFFSETS)
def test_each_item_gets_its_sums_in_order(offsets, step):
    reach, made = max(map(abs, offsets)), np.random.default_rng(1)
    few = stencils.STENCIL_ITERATIONS
    for iterations in (0, 1, 2, 3, few - 1, few, few + 1, 511, 512, 513, 1025, 1500):
        h, x = made.normal(size=(2, iterations + 2 * reach)) * 10.0 ** made.integers(-9, 9)
        x *= 10.0 ** made.integers(-12, 12, len(x))
        assert has_rows(both(spread(offsets, step), h, x))


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeros_keep_their_signs_and_what_is_no_number_stays_where_it_is(dtype):
    h = np.full(40, -0.0, dtype)
    x = np.zeros(40, dtype)
    both(spread((-1, 0, 1)), h, x)
    both(spread((-1, 2)), h, -x)
    x[17], x[25] = np.nan, np.inf
    both(spread((-1, 0, 1)), h, x)
    both(spread((0, 4), -1), h, x)


def test_lines_of_a_plate():
    def f(h, x):
        def row(i, h):
            def cell(j, h):
                for a, b in ((0, 0), (-1, 0), (0, 1), (1, 1), (0, -1), (2, 0), (1, -2)):
                    h = nbta.add_item(h, (i + a, j + b), x[i, j])
                return h

            return ranged(2, h.shape[1] - 2, cell, h)

        return ranged(2, h.shape[0] - 2, row, h)

    made = np.random.default_rng(2)
    for shape in ((4, 4), (5, 9), (7, 14), (3, 40), (9, 700)):
        shape = tuple(n + 2 for n in shape)
        assert has_rows(both(f, *made.normal(size=(2, *shape))))


def alone(i, h, x):
    return nbta.add_item(h, i, x[i])


class Chosen:
    """A random loop whose branches add to neighbours' places, and what it adds to.

    Each iteration takes them by truth values of its own. What is added is an item, also of the one
    before, twice, or to several places.
    """

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.reach, self.step = (
            int(self.random.integers(1, 5)),
            1 - 2 * int(self.random.integers(2)),
        )
        self.tree = [(0, self._steps(2), [(0, 0), (1, 1)]), *self._steps(2)]

    def _steps(self, depth):
        steps = []
        for _ in range(self.random.integers(4)):
            if depth and self.random.random() < 0.5:
                number = int(self.random.integers(4))
                steps.append((number, self._steps(depth - 1), self._steps(depth - 1)))
            else:
                offset = int(self.random.integers(-self.reach, self.reach + 1))
                steps.append((offset, int(self.random.integers(4))))
        return steps

    def _iteration(self, steps, i, h, x, b):
        values = [x[0, i], -x[1, i], x[0, i] + x[1, i], x[0, i]]
        for step in steps:
            if len(step) == 2:
                h = nbta.add_item(h, i + step[0], values[step[1]])
            else:
                number, one, other = step
                h = nbta.cond(
                    b[number, i],
                    lambda h=h, steps=one: self._iteration(steps, i, h, x, b),
                    lambda h=h, steps=other: self._iteration(steps, i, h, x, b),
                )
        return h

    def __call__(self, h, x, b):
        ends = self.reach, h.shape[0] - self.reach
        if self.step < 0:
            ends = ends[1] - 1, ends[0] - 1
        return ranged(*ends, lambda i, h: self._iteration(self.tree, i, h, x, b), h, step=self.step)

    def arguments(self, iterations):
        n = iterations + 2 * self.reach
        sizes = 10.0 ** self.random.integers(-9, 9, (3, n))
        h, *x = self.random.normal(size=(3, n)) * sizes
        return h, np.array(x), self.random.random((4, n)) < self.random.random((4, 1))


def hold_chosen(seeds):
    found = 0
    for seed in seeds:
        f = Chosen(seed)
        for iterations in (0, 1, 7, 8, 9, 511, 513, 1025):
            compiled = both(f, *f.arguments(iterations))
        found += has_rows(compiled)
    return found


def test_branches_add_in_order():
    assert hold_chosen(range(4)) == 4


@pytest.mark.slow
def test_many_branches_add_in_order():
    assert hold_chosen(range(100, 150)) == 50


def looked_at(i, h, x):
    return nbta.add_item(nbta.add_item(h, i, x[i]), i + 1, h[i])


def ahead(i, h, x):
    """Later iterations look at what this one adds to."""
    h = nbta.set_item(h, i, x[i] * h[i])
    return nbta.add_item(nbta.add_item(h, i, x[i]), i + 1, h[i])


def before_it_is_set(i, h, x):
    h = nbta.add_item(nbta.add_item(h, i, x[i]), i - 1, x[i])
    return nbta.set_item(h, i, x[i])


def recurrent(i, h, x):
    return nbta.set_item(nbta.add_item(nbta.add_item(h, i, x[i]), i + 1, x[i]), i - 1, 0.0)


def far(i, h, x):
    return nbta.add_item(nbta.add_item(h, i, x[i]), i + 33, x[i])


def moving(i, h, x):
    return nbta.add_item(nbta.add_item(h, i, x[i]), 2 * i, x[i])


def wide(i, h, x):
    return nbta.add_item(nbta.add_item(h, 2 * i, x[i]), 2 * i + 1, x[i])


def fixed(i, h, x):
    return nbta.add_item(nbta.add_item(h, 3, x[i]), i, x[i])


@pytest.mark.smoke
@pytest.mark.parametrize(
    "change", [alone, looked_at, ahead, before_it_is_set, recurrent, far, moving, wide, fixed]
)
def test_other_loops_add_at_once(change):
    def f(h, x):
        return ranged(1, 20, lambda i, h: change(i, h, x), h)

    assert not has_rows(both(f, *np.random.default_rng(3).normal(size=(2, 60))))


@pytest.mark.smoke
@pytest.mark.parametrize("step", [1, -1])
def test_items_that_no_later_iteration_comes_to(step):
    def f(h, x):
        def iteration(i, h):
            a = h[i]
            h = nbta.set_item(h, i, -0.5 * a)
            h = nbta.add_item(h, i - step, a)
            return nbta.add_item(nbta.add_item(h, i, x[i]), i - 2 * step, -a)

        n = h.shape[0]
        return ranged(*((2, n - 2) if step > 0 else (n - 3, 1)), iteration, h, step=step)

    made = np.random.default_rng(8)
    for n in (9, 12, 40, 1100):
        assert has_rows(both(f, *made.normal(size=(2, n)) * 10.0 ** made.integers(-9, 9, (2, n))))


@pytest.mark.smoke
@pytest.mark.parametrize("step", [1, -1])
def test_items_are_finished_in_registers_after_the_last_read(step):
    def f(h, x):
        def iteration(i, h):
            a = h[i]
            h = nbta.set_item(h, i, -0.5 * a)
            return nbta.add_item(nbta.add_item(h, i - step, a), i - 2 * step, x[i])

        n = h.shape[0]
        return ranged(*((2, n - 2) if step > 0 else (n - 3, 1)), iteration, h, step=step)

    made = np.random.default_rng(10)
    for n in (11, 12, 13, 40, 1100):
        h, x = made.normal(size=(2, n)) * 10.0 ** made.integers(-9, 9, (2, n))
        compiled = both(f, h, x)
        assert has_windows(compiled)
        plain = re.findall(r"\] = float64\(t\d+\)", compiled.source)
        assert len(plain) == (2 if step > 0 else 1)  # a sum begins with what its item is set to


@pytest.mark.smoke
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("in_branch", [False, True])
def test_one_addition_to_an_item_that_the_iteration_before_has_set(step, in_branch):
    def f(h, x):
        def iteration(i, h):
            h = nbta.set_item(h, i, -0.5 * x[i])
            if in_branch:
                return nbta.cond(x[i] > 0, lambda: nbta.add_item(h, i - step, x[i]), lambda: h)
            return nbta.add_item(h, i - step, x[i])

        n = h.shape[0]
        return ranged(*((1, n - 1) if step > 0 else (n - 2, 0)), iteration, h, step=step)

    made = np.random.default_rng(11)
    for n in (2, 9, 10, 11, 40, 514, 1100):
        h, x = made.normal(size=(2, n)) * 10.0 ** made.integers(-9, 9, (2, n))
        assert has_windows(both(f, h, x))


@pytest.mark.smoke
@pytest.mark.parametrize("step", [1, -1])
def test_loops_whose_order_others_need_keep_it(step):
    """The last one to write an item, and a reader of what a later iteration writes."""

    def f(h, x):
        def iteration(i, h, last, y):
            last = nbta.set_item(last, 0, x[i])
            y = nbta.set_item(y, i, 0.5 * y[i + step] + x[i])
            return nbta.add_item(nbta.add_item(h, i, x[i]), i + 1, x[i]), last, y

        n = h.shape[0]
        ends = (1, n - 2) if step > 0 else (n - 3, 0)
        return nbta.concatenate(ranged(*ends, iteration, h, x[:2], 2.0 * x, step=step))

    for n in (12, 600):
        compiled = both(f, *np.random.default_rng(n).normal(size=(2, n)))
    assert has_rows(compiled)
    assert has_windows(compiled) == (step > 0)


@pytest.mark.smoke
def test_far_neighbours_have_rows_in_memory():
    h, x = np.random.default_rng(11).normal(size=(2, 90))
    assert has_windows(both(spread((0, 1, 3)), h, x))
    assert has_windows(both(spread((0, 1, 3), -1), h, x))
    compiled = both(spread((0, 9)), h, x)
    assert has_rows(compiled)
    assert not has_windows(compiled)


@pytest.mark.smoke
def test_lines_that_may_be_one_keep_their_order():
    def f(h, x):
        def plane(k, h):
            def row(i, h):
                def cell(j, h):
                    h = nbta.add_item(h, (i, j), x[i, j])
                    h = nbta.add_item(h, (k, j + 1), -x[k, j])
                    return nbta.add_item(h, (i, j + 1), x[k, j])

                return ranged(0, h.shape[1] - 1, cell, h)

            return ranged(0, h.shape[0], row, h)

        return ranged(0, h.shape[0], plane, h)

    made = np.random.default_rng(9)
    both(f, *made.normal(size=(2, 3, 30)) * 10.0 ** made.integers(-9, 9, (2, 3, 30)))


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("offset", [-20, -1, 0, 3])
def test_indices_that_may_be_outside_are_looked_at(offset, step):
    def f(h, x):
        def iteration(i, h):
            return nbta.add_item(nbta.add_item(h, i + offset, x[i]), i + (offset + 1), x[i])

        n = x.shape[0]
        return ranged(*((0, n) if step > 0 else (n - 1, -1)), iteration, h, step=step)

    made = np.random.default_rng(4)
    compiled = both(f, made.normal(size=40), made.normal(size=30))
    assert has_rows(compiled)
    for count in (1, 29, 30, 31, 35, 36):
        h, x = made.normal(size=40), made.normal(size=count)
        np.testing.assert_array_equal(compiled(h, x), nbta.function(f, compiled=False)(h, x))
    with pytest.raises(nbta.InvalidArgumentError):
        compiled(np.ones(40), np.ones(70))
    with pytest.raises(nbta.InvalidArgumentError):
        compiled(np.ones(10), np.ones(12))


@pytest.mark.smoke
def test_no_item_outside_is_met_where_a_branch_is_not_taken():
    """So far outside that a process that looked there would end."""

    def f(h, x, w):
        def iteration(i, h):
            return nbta.cond(
                i >= w,
                lambda: nbta.add_item(nbta.add_item(h, i - w, x[i]), i - w + 1, -x[i]),
                lambda: h,
            )

        return ranged(0, x.shape[0], iteration, h)

    h, x = np.random.default_rng(12).normal(size=(2, 40))
    for w in (0, 1, 5, 39, 10**12):
        assert has_rows(both(f, h, x[:-1], w))


def test_rows_that_a_loop_goes_through_from_the_last_to_the_first():
    """The adjoint loop begins where the loop has ended: its rows are proven to be different."""

    def f(x):
        v = np.zeros((len(x), len(x)))
        v[len(x) - 1] = x
        for i in range(len(x) - 2, -1, -1):
            for j in range(i + 1):
                v[i, j] = 0.6 * v[i + 1, j + 1] + 0.3 * v[i + 1, j]
        return v[0, 0]

    x = np.linspace(1, 2, 12)
    compiled = nbta.grad(f, compiled=True)
    with executed(machine_code=False):
        found = compiled(x)
    np.testing.assert_allclose(found, nbta.grad(f, compiled=False)(x), rtol=1e-13)
    assert has_windows(compiled)


def test_what_iterations_need_of_each_other_keeps_its_loop():
    def f(h, x):
        def iteration(i, h, s):
            s = nbta.maximum(s, x[i]) * 0.5
            return nbta.add_item(nbta.add_item(h, i, s), i + 1, s), s

        return ranged(1, 30, iteration, h, 0.0)[0]

    assert not has_rows(both(f, *np.random.default_rng(5).normal(size=(2, 40))))


def heat(u, k, c):
    v = u.copy()
    for _ in range(11):
        for i in range(1, len(u) - 1):
            v[i] = u[i] + k[i] * c * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        u, v = v, u
    return np.sum(u * u)


def plate(u, k, c):
    w, v = np.outer(u, u), np.outer(u, k)
    for _ in range(3):
        for i in range(1, len(u) - 1):
            for j in range(2, len(u) - 2):
                v[i, j] = w[i, j] + c * (w[i - 1, j] * w[i, j + 2] + w[i + 1, j - 2] * k[j])
        w, v = v, w
    return np.sum(w * v)


def wave(u, k, c):
    before, after = u * 0.9, np.zeros(len(u))
    for _ in range(10):
        for i in range(1, len(u) - 1):
            after[i] = 2.0 * u[i] - before[i] + c * k[i] * (u[i - 1] - 2.0 * u[i] + u[i + 1])
        before, u, after = u, after, before
    return np.sum(u * u) + np.sum(np.sin(before))


def in_place(u, k, c):
    """Old neighbours ahead, whose adjoints no later iteration comes to."""
    u = u.copy()
    for _ in range(4):
        for i in range(1, len(u) - 2):
            u[i] = u[i] + 0.3 * k[i] * (u[i + 1] - u[i] * u[i + 2])
    return np.sum(u * u) * c


def tree(u, k, c):
    """What may be exercised at each node, whose factors have sums beside the sweep's adjoint."""
    u = u.copy()
    for t in range(4):
        for i in range(len(u) - 1 - t):
            u[i] = max(k[i], 1.1 * (c * u[i + 1] + (1.0 - c) * u[i]))
    return np.sum(u)


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("f", [heat, plate, wave, in_place, tree])
def test_gradients_of_both_orders(f):
    u, k = np.random.default_rng(6).uniform(0.1, 0.9, (2, 12))
    nbta.testing.check_grads(f, (u, k, 0.3), order=1 if f is plate else 2)
    slope = nbta.value_and_grad(f, (0, 1, 2), compiled=True)
    reference = nbta.value_and_grad(f, (0, 1, 2), compiled=False)
    for n in (12, 3, 5, 4, 40, 12):
        u, k = np.random.default_rng(n).uniform(0.1, 0.9, (2, n))
        (value, found), (same, expected) = slope(u, k, 0.3), reference(u, k, 0.3)
        np.testing.assert_allclose(value, same, rtol=1e-12)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    assert has_rows(slope)
    assert "copies" not in slope.explain()
    if f is tree:
        assert re.search(r"d_c_\d+ = float64\(fast_add\(d_c", slope.source)


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("turn", [(1, 0), (1, 2, 0), (2, 0, 1), (1, 0, 3, 2), (0, 2, 1)])
@pytest.mark.parametrize("nested", [False, True])
def test_arrays_that_change_places_are_not_copied(turn, nested):
    def f(n, *given):
        def iteration(i, *arrays):
            changed = [nbta.set_item(a, i % 4, a[(i + 1) % 4] + k) for k, a in enumerate(arrays)]
            return tuple(changed[place] for place in turn)

        def outer(_, *arrays):
            return ranged(0, 3, iteration, *arrays)

        arrays = ranged(0, 3, outer, *given) if nested else ranged(0, n, iteration, *given)
        return nbta.stack(arrays)

    given = np.random.default_rng(7).normal(size=(len(turn), 4))
    compiled, reference = (nbta.function(f, compiled=kind) for kind in (True, False))
    for n in (0, 1, 2, 3, 7, 8):
        expected = reference(n, *given)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(n, *given), expected)
    assert "copies" not in compiled.explain()


def test_arrays_that_change_places_in_a_branch_and_after_it():
    def f(u, v, n):
        def iteration(i, u, v):
            def turned():
                return ranged(0, i, lambda k, u, v: (nbta.add_item(v, 0, 1.0), u * 0.5), u, v)

            u, v = nbta.cond(nbta.equal(i % 2, 0), turned, lambda: (u, v))
            return v, nbta.set_item(u, 1, 3.0)

        u, v = ranged(0, n, iteration, u, v)
        w = nbta.set_item(u + v, 0, 5.0)
        return nbta.stack([u, v, w])

    u, v = np.random.default_rng(8).normal(size=(2, 5))
    compiled, reference = (nbta.function(f, compiled=kind) for kind in (True, False))
    for n in (0, 1, 2, 5, 6, 9):
        np.testing.assert_array_equal(compiled(u, v, n), reference(u, v, n))


@pytest.mark.smoke
def test_arrays_that_have_changed_places_share_no_memory_with_what_comes_next():
    def f(n, u, v):
        def iteration(i, u, v):
            return v, nbta.set_item(u, i % 4, u[(i + 1) % 4] + 1.0)

        u, v = ranged(0, n, iteration, u, v)
        w = nbta.set_item(nbta.sin(v), 0, nbta.sum(u))
        return nbta.sum(nbta.cumsum(w) * nbta.cumsum(v)) + nbta.cumsum(v * w)

    given = np.random.default_rng(10).normal(size=(2, 4))
    compiled, reference = (nbta.function(f, compiled=kind) for kind in (True, False))
    for n in range(6):
        np.testing.assert_allclose(compiled(n, *given), reference(n, *given), rtol=1e-14)


@pytest.fixture
def short_rows(monkeypatch):
    """Rows for few iterations, and many stretches."""
    monkeypatch.setattr(stencils, "STENCIL_STRETCH", 5)
    monkeypatch.setattr(stencils, "STENCIL_ITERATIONS", 1)


def hold(seeds, machine_code=False, branches=False):
    found = 0
    for seed in seeds:
        program = stencil_programs.program(seed, branches)
        try:
            found += has_rows(check(program, machine_code))
        except Exception as error:
            error.add_note(f"stencil_programs.program({seed}, {branches})\n{program!r}")
            raise
    return found


def test_random_programs(short_rows):
    assert hold(range(12)) >= 3


def test_random_programs_with_branches(short_rows):
    assert hold(range(12), branches=True) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_many_random_programs(short_rows, first):
    assert hold(range(1000 + first, 1050 + first)) >= 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_many_random_programs_with_branches(short_rows, first):
    assert hold(range(1000 + first, 1050 + first), branches=True) >= 10


@pytest.mark.slow
def test_random_programs_with_branches_as_machine_code():
    hold(range(20), machine_code=True, branches=True)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_as_machine_code(first):
    hold(range(first, first + 20), machine_code=True)
