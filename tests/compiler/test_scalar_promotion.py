"""Items that the iterations of a loop add to, and sums that may be taken in any order."""

import random

import numpy as np
import pytest
from compact import compact_source
from loop_programs import inside, loops, ranged, values_of

import nbta
from nbta.compiler import pipeline
from nbta.compiler.program import extract
from nbta.compiler.scalar_promotion import add_items_after_loops
from nbta.graph.verifier import verify
from nbta.graph.views import is_loop
from nbta.testing import check_grads


def pairs(x):
    def row(i, s):
        return ranged(i, lambda j, s: s + x[i] * nbta.tanh(x[j]), s)

    return ranged(x.shape[0], row, 0.0)


def test_what_goes_to_one_item_in_all_iterations_is_added_after_the_loop():
    x = np.linspace(-1.0, 2.0, 7)
    check_grads(pairs, (x,), order=2)
    fast = nbta.value_and_grad(pairs, compiled=True)
    value, slopes = nbta.value_and_grad(pairs, compiled=False)(x)
    found = fast(x)
    np.testing.assert_allclose(found[0], value, rtol=1e-14)
    np.testing.assert_allclose(found[1], slopes, rtol=1e-13)
    inner = [
        op
        for op in loops(fast._last.runner.ran.program)
        if not any(map(is_loop, op.attrs["body"].operations))
    ]
    assert [inside(op).count("AddItem") for op in inner] == [1]  # forward and back are one loop
    assert [fast(np.ones(n))[1].shape for n in (0, 1, 2)] == [(0,), (1,), (2,)]


def triangle(x, v):
    """Loops of which each makes an iteration at least, by the number of the outer one's."""
    v = v.copy()
    for i in range((len(v) - 3) // 2, -1, -1):
        for j in range(2 * i + 1):
            v[j] = x[0] * v[j + 2] + x[1] * np.sin(v[j]) + x[2] * v[j + 1]
    return np.sum(v * v)


def test_an_item_that_a_loop_inside_surely_reads_is_added_to_after_it():
    x, v = np.array([0.3, 0.4, 0.5]), np.linspace(-1.0, 2.0, 9)
    check_grads(triangle, (x, v), order=1)
    fast, slow = (nbta.value_and_grad(triangle, (0, 1), compiled=how) for how in (True, False))
    for given in ((x[:2], v[:2]), (x, v)):  # where no iteration reads the third, it need not be
        for one, other in zip(fast(*given)[1], slow(*given)[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    inner = [
        op
        for op in loops(fast._last.runner.ran.program)
        if not any(map(is_loop, op.attrs["body"].operations))
    ]
    assert max(inside(op).count("AddItem") for op in inner) == 3  # neighbours' adjoints alone


def added(step, count=3):
    """A program of a loop that adds to an array; without a count it runs ``k`` iterations."""

    def f(x, k):
        iterations = k if count is None else count
        return ranged(iterations, lambda i, a: step(i, a, x, k), nbta.zeros((4,)))

    with nbta.Graph().as_default():
        feeds = [nbta.placeholder("float64", (3,)), nbta.placeholder("int64", ())]
        return extract(feeds, [f(*feeds)])


def add(a, key, value):
    return nbta.add_item(a, key, value)


MOVED = {
    "one": lambda i, a, x, k: add(a, 1, x[i]),
    "two": lambda i, a, x, k: add(add(a, 1, x[i]), i, x[0]),
    "of the run, in a loop that runs an iteration": lambda i, a, x, k: add(a, k, x[i]),
    "another is read": lambda i, a, x, k: add(a, 1, x[i] + a[0]),
    "others are read": lambda i, a, x, k: add(a, 0, x[i] + a[i + 1]),
    "another is read after": lambda i, a, x, k: add(t := add(a, 1, x[i]), 2, t[0]),
    "another is set": lambda i, a, x, k: nbta.set_item(add(a, 1, x[i]), 0, 0.5),
    "others are set": lambda i, a, x, k: nbta.set_item(add(a, 0, x[i]), i + 1, x[i]),
}
KEPT = {
    "of each iteration": lambda i, a, x, k: add(a, i, x[i]),
    "read": lambda i, a, x, k: add(a, 1, x[i] + a[1]),
    "read in a later iteration": lambda i, a, x, k: add(a, 1, x[i] + a[i]),
    "read after": lambda i, a, x, k: add(t := add(a, 0, x[i]), 1, t[0] * t[1]),
    "read at an index of the run": lambda i, a, x, k: add(a, 2, x[i] + a[k]),
    "read from the end": lambda i, a, x, k: add(a, 1, x[i] + a[i - 3]),
    "set": lambda i, a, x, k: nbta.set_item(add(a, 1, x[i]), 1, 0.5),
    "set in an iteration": lambda i, a, x, k: nbta.set_item(add(a, 1, x[i]), i, 0.5),
    "read as a whole": lambda i, a, x, k: add(a, 1, x[i] * nbta.sum(a)),
    "slice": lambda i, a, x, k: add(a, slice(0, 2), x[i]),
    "in a slice": lambda i, a, x, k: add(a, 1, x[i] + a[1:3][0]),
}


@pytest.mark.parametrize(
    ("step", "moves"),
    [*((f, True) for f in MOVED.values()), *((f, False) for f in KEPT.values())],
    ids=[*MOVED, *KEPT],
)
def test_only_items_that_nothing_else_touches_are_added_after_the_loop(step, moves):
    program = added(step)
    made = add_items_after_loops(program)
    verify(made)
    (loop,) = loops(made)
    assert (loop.outputs[-1].spec.rank == 0) == moves
    for k in (0, 2, -1):
        feeds = [np.array([1.0, 2.0, 4.0]), np.int64(k)]
        for one, other in zip(values_of(made, feeds), values_of(program, feeds), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)


def test_an_item_that_may_not_be_there_is_looked_at_as_before():
    program = added(lambda i, a, x, k: add(a, 9 - k, x[i]), count=None)
    made = add_items_after_loops(program)
    assert loops(made)[0].outputs[-1].spec.rank == 1
    assert not values_of(made, [np.ones(3), np.int64(0)])[0].any()
    proven = add_items_after_loops(added(MOVED["of the run, in a loop that runs an iteration"]))
    for program in (made, proven):
        with pytest.raises(nbta.InvalidArgumentError, match="AddItem"):
            values_of(program, [np.ones(3), np.int64(4 if program is proven else 1)])


def test_no_iteration_adds_nothing():
    program = added(lambda i, a, x, k: nbta.add_item(a, 1, x[i]), count=0)
    feeds = [np.ones(3), np.int64(0)]
    assert values_of(add_items_after_loops(program), feeds)[0].tolist() == [0.0] * 4


def test_sums_of_what_takes_long_are_taken_in_any_order():
    source = nbta.function(lambda x: ranged(x.shape[0], lambda i, s: s + nbta.exp(x[i]), 0.0),
                           compiled=True)  # fmt: skip
    x = np.linspace(-1.0, 1.0, 1000)
    np.testing.assert_allclose(source(x), np.sum(np.exp(x)), rtol=1e-13)
    assert "fast_add(v" in source.source
    down = nbta.function(lambda x: ranged(x.shape[0], lambda i, s: s - nbta.exp(x[i]), 0.0),
                         compiled=True)  # fmt: skip
    np.testing.assert_allclose(down(x), -np.sum(np.exp(x)), rtol=1e-13)


def test_so_are_those_beside_changes_of_items_that_no_other_iteration_reads():
    def f(x):
        def step(i, s, a):
            a = nbta.add_item(a, i, 0.5 * a[i])
            return s + x[i] * x[i], a

        s, a = ranged(x.shape[0], step, 0.0, x)
        return s + a[0]

    x = np.linspace(-1.0, 1.0, 1000)
    source = nbta.function(f, compiled=True)
    np.testing.assert_allclose(source(x), np.sum(x * x) + 1.5 * x[0], rtol=1e-13)
    assert "fast_add(v" in source.source


def corrected(x):
    """Kahan's sum, whose correction is lost where additions change places."""

    def step(i, s, c):
        y = nbta.exp(x[i]) - c
        t = s + y
        return t, (t - s) - y

    return ranged(x.shape[0], step, 0.0, 0.0)[0]


def kept(x):
    return ranged(x.shape[0], lambda i, s, w: (s + nbta.exp(x[i]), w + s), 0.0, 0.0)[1]


def little(x):
    return ranged(x.shape[0], lambda i, s: s + x[i], 0.0)


def little_in_a_loop(x):
    return ranged(3, lambda k, s: ranged(x.shape[0], lambda i, s: s + x[i], s), 0.0)


def of_each_other(x):
    return ranged(x.shape[0], lambda i, s, y: (s + y, nbta.tanh(y * x[i])), 0.0, 1.0)[0]


def of_the_item_before(x):
    def step(i, s, a):
        a = nbta.add_item(a, i + 1, 0.5 * a[i])
        return s + x[i], a

    s, a = ranged(x.shape[0] - 1, step, 0.0, x)
    return s + a[-1]


@pytest.mark.parametrize(
    "f", [corrected, kept, little_in_a_loop, of_each_other, of_the_item_before]
)
def test_other_sums_keep_their_order(f):
    x = np.linspace(-20.0, 20.0, 999) * np.where(np.arange(999) % 2, 1.0, -1.0)
    compiled = nbta.function(f, compiled=True)
    np.testing.assert_allclose(compiled(x), nbta.function(f, compiled=False)(x), rtol=1e-14)
    assert "fast_add(v" not in compact_source(compiled)


def test_sums_of_a_loop_that_runs_once_are_free():
    x = np.linspace(-20.0, 20.0, 999)
    compiled = nbta.function(little, compiled=True)
    np.testing.assert_allclose(compiled(x + 30.0), np.sum(x + 30.0), rtol=1e-14)
    assert "fast_add(v" in compact_source(compiled)


# Loops that touch other items of the array as well.


def lu(a):
    """Logarithm of the determinant, by a decomposition in place."""
    n = a.shape[0]

    def pivot(k, a):
        def row(i, a):
            a = nbta.set_item(a, (i, k), a[i, k] / a[k, k])
            return between(k + 1, n, lambda j, a: nbta.add_item(a, (i, j), -a[i, k] * a[k, j]), a)

        return between(k + 1, n, row, a)

    a = ranged(n, pivot, a)
    return ranged(n, lambda k, s: s + nbta.log(a[k, k]), 0.0)


def between(low, high, step, *first):
    return ranged(nbta.maximum(high - low, 0), lambda i, *v: step(low + i, *v), *first)


def test_gradients_of_decompositions_in_place_add_up_rows_in_registers():
    a = np.random.default_rng(0).uniform(-1, 1, (6, 6)) + 8 * np.eye(6)
    check_grads(lu, (a,), order=2)
    fast = nbta.value_and_grad(lu, compiled=True)
    found, expected = fast(a), nbta.value_and_grad(lu, compiled=False)(a)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)
    np.testing.assert_allclose(found[1], np.linalg.inv(a).T, rtol=1e-10)
    assert "fast_add(v" in compact_source(fast).split("gradients/while_grad/")[-1]
    for n in (0, 1, 2):
        np.testing.assert_allclose(fast(2.0 * np.eye(n))[1], 0.5 * np.eye(n))


@pytest.mark.parametrize("other", [(3, 5), (5, 3)])
def test_matrices_that_are_not_square_fail_as_before(other):
    both = [nbta.value_and_grad(lu, compiled=c) for c in (False, True)]
    results = []
    for f in both:
        try:
            results.append(f(np.ones(other) + 4 * np.eye(*other)))
        except nbta.NbtaError as error:
            results.append(type(error))
    if isinstance(results[0], type):
        assert results[0] is results[1]
    else:
        np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-12)


def test_a_condition_that_looks_at_an_item_sees_each_iteration():
    def f(x):
        return nbta.while_loop(
            lambda a: a[0] < 3.5, lambda a: nbta.add_item(a, 0, x), nbta.zeros((2,))
        )

    for x in (1.0, 0.5, 4.0):
        expected = nbta.function(f, compiled=False)(x)
        np.testing.assert_array_equal(nbta.function(f, compiled=True)(x), expected)


def test_an_array_that_another_variable_goes_on_with_sees_each_iteration():
    def f(x):
        def step(i, a, before, s):
            now = nbta.add_item(a, 1, x[i])
            return now, now, s + before[1]

        return ranged(3, step, nbta.zeros((2,)), nbta.zeros((2,)), 0.0)

    x = np.array([1.0, 2.0, 4.0])
    for found in (nbta.function(f, compiled=c)(x) for c in (False, True)):
        assert [part.tolist() for part in found] == [[0.0, 7.0], [0.0, 7.0], 4.0]


# Random nests, whose indices are made of the numbers of their iterations.


class Nest:
    """Two loops, and in each iteration some changes of items of ``b`` by what is read of ``b``."""

    def __init__(self, seed):
        draw = random.Random(seed)
        self.low = draw.choice(["0", "i", "i + 1", "3 - i"])
        self.steps = [self.step(draw) for _ in range(draw.randint(1, 2))]
        self.last = self.step(draw, "i")

    def step(self, draw, names="ijjj"):
        """A change: whether it adds, its key and two that are read."""
        named = draw.choice(["i", names])
        keys = [(self.index(draw, "ii7"), self.index(draw, names)) for _ in range(2)]
        return draw.random() < 0.7, (self.index(draw, "i"), self.index(draw, named)), *keys

    @staticmethod
    def index(draw, names):
        name = draw.choice(names)
        return "7" if name == "7" else f"{name} + {draw.randint(0, 2)}"

    def run(self, b, n, loop, add_item, set_item):
        """What the loops leave of an array; the parameters are the ways to do things."""

        def changed(step, b, names):
            adds, *keys = step
            key, one, two = (tuple(eval(part, dict(names)) for part in key) for key in keys)
            value = 0.5 * b[one] - 0.25 * b[two]
            return (add_item if adds else set_item)(b, key, value)

        def outer(i, b):
            names = {"i": i}
            low = eval(self.low, dict(names))

            def inner(j, b):
                for step in self.steps:
                    b = changed(step, b, {**names, "j": low + j})
                return b

            return changed(self.last, loop(n - low, inner, b), names)

        return loop(n, outer, b)


def plainly(nest, b, n):
    def loop(count, step, b):
        for i in range(count):
            b = step(i, b)
        return b

    def add_item(b, key, value):
        b[key] += value
        return b

    def set_item(b, key, value):
        b[key] = value
        return b

    return nest.run(b.copy(), n, loop, add_item, set_item)


def by_nbta(nest):
    return lambda b, n: nest.run(b, n, ranged, nbta.add_item, nbta.set_item)


def items(n):
    return np.random.default_rng(n).normal(size=(8, 8))


def ahead_of_the_pass(program):
    """A program as the passes before the one that is tested leave it."""
    for step in pipeline.LOWERING[: pipeline.LOWERING.index(add_items_after_loops)]:
        program = step(program)
    return program


def moved_in(seeds):
    """How many of random programs' gradients the pass changes; all must give the same."""
    count = 0
    for seed in seeds:
        nest = Nest(seed)
        with nbta.Graph().as_default():
            feeds = [nbta.placeholder("float64", (8, 8)), nbta.placeholder("int64", ())]
            b = by_nbta(nest)(*feeds)
            db = nbta.gradients(nbta.sum(b * b), [feeds[0]])
            program = ahead_of_the_pass(extract(feeds, [b, *db]))
        made = add_items_after_loops(program)
        verify(made)
        before, after = map(numbers_in, (program, made))
        count += after > before
        for n in (0, 1, 4):
            expected = values_of(program, [items(n), np.int64(n)])
            np.testing.assert_allclose(expected[0], plainly(nest, items(n), n), rtol=1e-12)
            if after > before:
                for one, other in zip(values_of(made, [items(n), np.int64(n)]), expected,
                                      strict=True):  # fmt: skip
                    np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    return count


def numbers_in(program):
    return sum(tensor.spec.rank == 0 for op in loops(program) for tensor in op.outputs)


def test_random_nests_give_the_same():
    assert moved_in(range(16, 40)) >= 3


@pytest.mark.slow
def test_more_random_nests_give_the_same():
    assert moved_in(range(40, 290)) >= 20


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 24))]
)
def test_random_nests_compiled(seed):
    f = by_nbta(Nest(seed))
    both = [
        nbta.value_and_grad(lambda b, n: nbta.sum(f(b, n) ** 2), compiled=c) for c in (False, True)
    ]
    for n in (0, 1, 4):
        (value, slopes), found = (run(items(n), n) for run in both)
        np.testing.assert_allclose(found[0], value, rtol=1e-11)
        np.testing.assert_allclose(found[1], slopes, rtol=1e-10, atol=1e-12)
