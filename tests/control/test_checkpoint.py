"""checkpoint=: the same values and gradients from less memory, or a clear error."""

import functools
import weakref

import numpy as np
import pytest
import test_loops
import test_scans
from running import array, both, run

import nbta
from nbta.execution.reference import Step
from nbta.graph.graph import subgraphs
from nbta.ops.loops import residuals
from nbta.structure import leaves
from nbta.testing import check_grads

X = np.array([0.7, -1.3, 2.1])
MODES = [1, 2, 3, 7, "sqrt", "online"]
#: Loops whose iterations may not come out the same again, and what the message says of them.
REFUSED = {
    "cleared_by_the_loop": "reads an array that may not hold this later; make it with clear_after",
    "made_in_one_iteration_and_read_in_the_next": "stands for another array in each iteration",
    "two_arrays_swapped": "stands for another array in each iteration",
    "swapped_and_read": "stands for another array in each iteration",
}


def recurrent(x, checkpoint):
    """A scan that reads rows, captures weights, carries two tensors and stacks results."""

    def step(state, row):
        h, total = state
        h = nbta.tanh(h * x + row * x[::-1])
        return (h, total + nbta.sum(h) * row), (h * total, row * h[0])

    return nbta.scan(step, (x * 0.5, 0.0 * x[0]), nbta.sin(x), checkpoint=checkpoint)


def until_large(x, checkpoint):
    """A loop whose iteration count the data tell."""

    def step(y, n):
        return y * (1.0 + nbta.square(x[0])) + x[1] ** 2, n + 1

    return nbta.while_loop(lambda y, n: y < 20.0, step, (x[2] ** 2, 0), checkpoint=checkpoint)


def slopes(f):
    """Values, first and second derivatives of what a function gives."""

    def program(x):
        ys = [nbta.cast(y, x.dtype) for y in leaves(f(x))]
        (d,) = nbta.gradients([nbta.add_n([nbta.sum(y * y) for y in ys])], [x])
        return ys, d, nbta.gradients([nbta.sum(d * d)], [x], unconnected="zero")[0]

    return nbta.function(program, compiled=False)


def compare(found, expected):
    """Values and first derivatives are bitwise identical; second ones are summed otherwise."""
    for one, other in zip(leaves(found[:2]), leaves(expected[:2]), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-12, atol=1e-14)


# Exact.


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("checkpoint", MODES)
def test_scan_to_second_order(checkpoint):
    f = functools.partial(recurrent, checkpoint=checkpoint)
    check_grads(f, (X,))
    both(f, X)
    compare(slopes(f)(X), slopes(functools.partial(recurrent, checkpoint=None))(X))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("checkpoint", [1, 2, 3, 7, "online"])
def test_iteration_count_by_data_to_second_order(checkpoint):
    f = functools.partial(until_large, checkpoint=checkpoint)
    check_grads(lambda x: f(x)[0], (X,))
    both(f, X)
    compare(slopes(f)(X), slopes(functools.partial(until_large, checkpoint=None))(X))


@pytest.mark.parametrize("checkpoint", [1, 2, "online"])
@pytest.mark.parametrize("loop", [pytest.param(recurrent, marks=pytest.mark.slow), until_large])
def test_programs_of_all_orders_are_compiled(loop, checkpoint):
    """Each of them prunes what runs for its effects alone, such as the ends of arrays."""

    def total(x):
        return sum(nbta.sum(nbta.cast(part, x.dtype)) for part in leaves(loop(x, checkpoint)))

    way = np.ones_like(X)
    slope = nbta.grad(total)
    programs = {
        "gradient": slope,
        "forward": lambda x: nbta.jvp(total, x, way)[1],
        "forward over reverse": lambda x: nbta.jvp(slope, x, way)[1],
        "reverse over reverse": nbta.grad(lambda x: nbta.sum(slope(x) * way)),
        "reverse over forward": nbta.grad(lambda x: nbta.jvp(total, x, way)[1]),
    }
    for program in programs.values():
        found, wanted = (nbta.function(program, compiled=each)(X) for each in (True, False))
        np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.smoke_every(4)
@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 5, 6, 7, 10])
@pytest.mark.parametrize("checkpoint", [None, *MODES])
def test_every_number_of_iterations(checkpoint, length):
    """Also the second run, of what the passes make of the graph."""
    rows = np.linspace(0.5, 1.5, length)
    f = nbta.value_and_grad(
        lambda w, xs: nbta.sum(
            nbta.scan(lambda h, x: (h * w + nbta.sin(x * h), h), w, xs, checkpoint=checkpoint)[1]
        ),
        (0, 1),
    )
    plain = nbta.value_and_grad(
        lambda w, xs: nbta.sum(nbta.scan(lambda h, x: (h * w + nbta.sin(x * h), h), w, xs)[1]),
        (0, 1),
    )
    expected = leaves(plain(0.7, rows))
    for found in (f(0.7, rows), f(0.7, rows)):
        for one, other in zip(leaves(found), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def everywhere(monkeypatch, checkpoint):
    for name in ("while_loop", "scan", "map_fn", "foldl", "foldr"):
        given = functools.partial(getattr(nbta, name), checkpoint=checkpoint)
        monkeypatch.setattr(nbta, name, given)


SCANS = [f for f in vars(test_scans).values() if getattr(f, "__module__", "") == "test_scans"]
SCANS = [f for f in SCANS if not f.__name__.startswith("test_")]
PROGRAMS = [*test_loops.DIFFERENTIABLE, *SCANS]


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("checkpoint", [2, "online"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_all_loops_of_the_other_tests(monkeypatch, program, checkpoint):
    """Nested loops, branches, and arrays of every kind, each loop with checkpoints."""
    expected = slopes(program)(X)
    everywhere(monkeypatch, checkpoint)
    if program.__name__ in REFUSED:
        with pytest.raises(nbta.InvalidArgumentError, match=REFUSED[program.__name__]):
            slopes(program)(X)
    else:
        compare(slopes(program)(X), expected)


@pytest.mark.slow
@pytest.mark.parametrize("order", [3, 4])
def test_higher_orders(order):
    def power(x, checkpoint):
        return nbta.scan(lambda y, _: (y * x, None), x, None, 4, checkpoint=checkpoint)[0]

    f = functools.partial(power, checkpoint=2)
    for _ in range(order):
        f = nbta.grad(f)
    assert f(1.5) == pytest.approx({3: 60 * 1.5**2, 4: 120 * 1.5}[order])


@pytest.mark.parametrize("checkpoint", [None, 2, "sqrt", "online"])
def test_folds_and_maps(checkpoint):
    left = nbta.grad(lambda x: nbta.foldl(lambda a, r: a * r, x, checkpoint=checkpoint))
    right = nbta.grad(lambda x: nbta.foldr(lambda a, r: a * r, x, checkpoint=checkpoint))
    mapped = nbta.grad(lambda x: nbta.sum(nbta.map_fn(lambda r: r * r, x, checkpoint=checkpoint)))
    np.testing.assert_allclose(left(X), np.prod(X) / X)
    np.testing.assert_allclose(right(X), np.prod(X) / X)
    np.testing.assert_array_equal(mapped(X), 2 * X)


def test_within_an_ordinary_loop_and_the_other_way_round():
    def nested(x, outer, inner):
        def body(h, row):
            iterations = nbta.cast(row > 0.0, np.int64) + 2
            once = lambda i, a: (i + 1, nbta.sin(a * x) + row)  # noqa: E731
            return nbta.while_loop(lambda i, _: i < iterations, once, (0, h), checkpoint=inner)[
                1
            ], h[0]

        return nbta.scan(body, x, x, checkpoint=outer)

    expected = slopes(lambda x: nested(x, None, None))(X)
    for modes in ((None, 2), (2, None), (2, "sqrt"), ("online", 1)):
        compare(slopes(lambda x: nested(x, *modes))(X), expected)  # noqa: B023


def powers(iterations, goes_on, outer, inner):
    """Loops in one another with checkpoints; iteration counts, or data, end the inner ones."""

    def f(x):
        def row(i, s):
            once = lambda j, t: (j + 1, nbta.sin(t) * x[j] + t)  # noqa: E731

            def test(j, t):
                return (j < iterations) & (t < 0.8 + 0.1 * i) if goes_on else j < iterations

            return i + 1, 0.9 * nbta.while_loop(test, once, (0, s), checkpoint=inner)[1]

        return nbta.while_loop(lambda i, s: i < 6, row, (0, x[0] + 1.0), checkpoint=outer)[1] ** 2

    return f


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("goes_on", [False, True], ids=["counted", "by data"])
@pytest.mark.parametrize("inner", [1, 2, "sqrt", "online"])
@pytest.mark.parametrize("outer", [None, 3, "online"])
def test_compiled_in_one_another(outer, inner, goes_on):
    """Nothing calls Python: segments of the inner loops fill one array for all outer iterations."""
    if goes_on and inner == "sqrt":
        pytest.skip("refused: nobody knows the iterations")
    x = np.linspace(-0.3, 0.6, 5)
    for iterations in (5, 0):
        slope = nbta.value_and_grad(powers(iterations, goes_on, outer, inner), compiled=True)
        plain = nbta.value_and_grad(powers(iterations, goes_on, None, None), compiled=False)
        for one, other in zip(slope(x), plain(x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-14)
        assert "in Python" not in slope.explain()
    check_grads(powers(5, goes_on, outer, inner), (x,), order=1)


def test_three_in_one_another():
    def f(x, checkpoint):
        def level(depth, s):
            if not depth:
                return nbta.sin(s) * x[0] + s
            step = lambda i, t: (i + 1, x[depth] * level(depth - 1, t))  # noqa: E731
            return nbta.while_loop(lambda i, _: i < depth + 2, step, (0, s), checkpoint=checkpoint)[
                1
            ]

        return level(3, x[4])

    x = np.array([0.3, 0.9, 1.1, 0.8, 0.5])
    expected = nbta.grad(lambda x: f(x, None), compiled=False)(x)
    for checkpoint in (2, "online"):
        slope = nbta.grad(lambda x: f(x, checkpoint), compiled=True)  # noqa: B023
        np.testing.assert_allclose(slope(x), expected, rtol=1e-13)
        assert "in Python" not in slope.explain()


def test_rows_and_arrays_in_one_another():
    """States of several kinds: tensors, and arrays that the loops append to."""
    rows = np.linspace(-0.9, 1.1, 12).reshape(4, 3)

    def f(x, outer, inner):
        def iteration(state, row):
            step = lambda h, item: (nbta.tanh(h * x + item), h)  # noqa: E731
            last, made = nbta.scan(step, state, row, checkpoint=inner)
            return last * 0.5 + nbta.sum(made, axis=0), last

        return nbta.sum(nbta.scan(iteration, x * 0.1, rows, checkpoint=outer)[1])

    expected = nbta.value_and_grad(lambda x: f(x, None, None), compiled=False)(X)
    for modes in ((2, 2), ("sqrt", "online"), (None, 2)):
        slope = nbta.value_and_grad(lambda x: f(x, *modes), compiled=True)  # noqa: B023
        for one, other in zip(slope(X), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def test_gradients_in_the_body():
    def program(x, checkpoint=None):
        def step(i, y):
            ta = array(1).write(0, y)
            (slope,) = nbta.gradients([nbta.sin(ta.read(0)) * x], [y])
            return i + 1, y - 0.3 * slope

        return nbta.while_loop(lambda i, _: i < 5, step, (0, x), checkpoint=checkpoint)[1]

    expected = slopes(program)(0.8)
    for checkpoint in (2, "online"):
        compare(slopes(functools.partial(program, checkpoint=checkpoint))(0.8), expected)


def accumulated(x, checkpoint=None):
    sums = array(3).unstack(x).grad("mine", clear_after_read=False)

    def body(i, y, sums):
        return i + 1, y * nbta.sin(x[i]), sums.accumulate(i, y).accumulate((i + 1) % 3, y * y)

    first = (0, x[0], sums)
    _, y, sums = nbta.while_loop(lambda i, *_: i < 3, body, first, checkpoint=checkpoint)
    return sums.stack() * y


def ordered_by_an_edge(x, checkpoint=None):
    def body(i, y, ta):
        ta = ta.write(i, y)
        with nbta.control_dependencies([ta.flow.op]):
            z = nbta.identity(nbta.sin(y))
        return i + 1, z * x[1] + ta.read(i), ta

    first = (0, x[0], array(3))
    _, y, ta = nbta.while_loop(lambda i, *_: i < 3, body, first, checkpoint=checkpoint)
    return ta.stack() * y


def scattered_and_concatenated(x, checkpoint=None):
    def body(i, y, ta):
        ta = ta.scatter(nbta.stack([3 * i, 3 * i + 1]), nbta.stack([y, y * x]))
        return i + 1, nbta.sin(y * x), ta.write(3 * i + 2, y[:1])

    first = (0, x, array(9, element_shape=(None,), infer_shape=False))
    _, y, ta = nbta.while_loop(lambda i, *_: i < 3, body, first, checkpoint=checkpoint)
    return ta.concat().value, y


@pytest.mark.parametrize("checkpoint", [2, "online"])
@pytest.mark.parametrize("f", [accumulated, ordered_by_an_edge, scattered_and_concatenated])
def test_writes_of_every_kind_are_not_done_again(f, checkpoint):
    compare(slopes(functools.partial(f, checkpoint=checkpoint))(X), slopes(f)(X))


def test_one_slot_is_written_once_and_several_gradients_share_the_states():
    def program(x):
        first = array(5, element_shape=()).write(0, x)
        body = lambda i, ta: (i + 1, ta.write(i + 1, nbta.sin(ta.read(i)) * x))  # noqa: E731
        ta = nbta.while_loop(lambda i, _: i < 4, body, (0, first), checkpoint=2)[1]
        ys = ta.stack()
        return [nbta.gradients([ys[i]], [x])[0] for i in range(5)], nbta.gradients([ys], [ta])[
            0
        ].stack()

    slopes_, seeds = run(program, 0.6)
    y = dy = None
    for i in range(5):
        y, dy = (0.6, 1.0) if i == 0 else (np.sin(y) * 0.6, np.cos(y) * dy * 0.6 + np.sin(y))
        assert slopes_[i] == pytest.approx(dy, rel=1e-14)
    np.testing.assert_array_equal(seeds, np.ones(5))


def test_users_functions_are_called_again():
    calls = []

    @nbta.custom_gradient
    def double(x):
        calls.append(float(x))
        return 2.0 * x

    double.backward(lambda dy, x, y: 2.0 * dy)

    def f(x):
        return nbta.scan(lambda y, _: (double(y), None), x, None, 5, checkpoint=2)[0]

    assert nbta.grad(f, compiled=False)(1.0) == 32.0
    assert calls == [1.0, 2.0, 4.0, 8.0, 16.0, 16.0, 4.0, 8.0, 1.0, 2.0]


# Less memory.


class Kept:
    """Numbers on tapes and in arrays that a run has at once, at most."""

    def __init__(self, monkeypatch):
        self.arrays, self.most = [], 0
        self.tapes, self.shadows = (weakref.WeakValueDictionary() for _ in range(2))
        add = Step.add

        def noting(step, made):
            self.arrays.append(made)
            return add(step, made)

        class Noted(residuals.Values):
            def __init__(tape, *values):  # noqa: N805
                super().__init__(*values)
                self.tapes[id(tape)] = tape

        class Store(residuals._Store):
            def __init__(store, tape):  # noqa: N805
                super().__init__(tape)
                self.shadows[id(store)] = store

        monkeypatch.setattr(Step, "add", noting)
        monkeypatch.setattr(residuals, "_Store", Store)
        monkeypatch.setattr(residuals, "Values", Noted)

        @nbta.custom_gradient
        def probe(x):
            self.look()
            return x.copy()

        @probe.backward
        @nbta.custom_gradient
        def back(dy, x, y):
            self.look()
            return dy.copy()

        @back.backward
        def back_of_back(ddx, dy, x, y, dx):
            self.look()
            return ddx.copy(), np.zeros_like(x), np.zeros_like(y)

        self.probe = probe

    def look(self):
        held = [a for a in self.arrays if not a.closed and a.dtype == np.float64]
        saved = [value for tape in list(self.tapes.values()) for value in tape]
        saved += [v for store in list(self.shadows.values()) for v in store.sums.values()]
        numbers = sum(getattr(value, "dtype", None) == np.float64 for value in saved)
        self.most = max(self.most, numbers + sum(int(a.size()) for a in held))

    def of(self, function, *args):
        """The most slots in one run."""
        self.arrays, self.most = [], 0
        self.tapes.clear()
        self.shadows.clear()
        function(*args)
        return self.most


BOUND = {
    1: lambda t: t + 4,
    10: lambda t: t / 10 + 4 * 10,
    "sqrt": lambda t: np.sqrt(t) * (1 + 4),
    "online": lambda t: (np.sqrt(2 * t) + 1) * (1 + 4),
}


@pytest.mark.parametrize("checkpoint", BOUND)
@pytest.mark.parametrize("iterations", [100, 400])
def test_states_that_are_kept(monkeypatch, checkpoint, iterations):
    """An iteration has four values on tapes; a state is one."""
    kept = Kept(monkeypatch)

    def f(x, w, checkpoint):
        step = lambda i, y: (i + 1, kept.probe(nbta.tanh(y * w) + y))  # noqa: E731
        return nbta.while_loop(lambda i, _: i < iterations, step, (0, x), checkpoint=checkpoint)[1]

    plain = nbta.grad(lambda x, w: f(x, w, None), argnums=1, compiled=False)
    again = nbta.grad(lambda x, w: f(x, w, checkpoint), argnums=1, compiled=False)
    assert plain(0.1, 0.9) == again(0.1, 0.9)
    assert kept.of(plain, 0.1, 0.9) == 4 * iterations
    assert kept.of(again, 0.1, 0.9) <= BOUND[checkpoint](iterations)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [10, "sqrt", "online"])
def test_states_that_second_derivatives_keep(monkeypatch, checkpoint):
    kept = Kept(monkeypatch)

    def second(iterations, checkpoint):
        def f(w):
            step = lambda i, y: (i + 1, kept.probe(nbta.tanh(y * w) + y))  # noqa: E731
            return nbta.while_loop(
                lambda i, _: i < iterations, step, (0, 0.1), checkpoint=checkpoint
            )[1]

        return nbta.grad(nbta.grad(f), compiled=False)

    plain = kept.of(second(400, None), 0.9)
    assert plain == 16 * 400 - 2  # sums of shadows are there from what is added first
    assert kept.of(second(400, checkpoint), 0.9) < plain / 10
    growth = kept.of(second(400, checkpoint), 0.9) / kept.of(second(100, checkpoint), 0.9)
    assert growth < 2.2  # of four times as many iterations


def test_arrays_of_inner_loops_are_freed_too(monkeypatch):
    kept = Kept(monkeypatch)

    def f(w, checkpoint):
        def body(i, y):
            inner = lambda j, a: (j + 1, nbta.tanh(a * w) + a)  # noqa: E731
            y = nbta.while_loop(lambda j, _: j < 5, inner, (0, y))[1]
            return i + 1, kept.probe(y)

        return nbta.while_loop(lambda i, _: i < 100, body, (0, w), checkpoint=checkpoint)[1]

    plain, again = (nbta.grad(lambda w, c=c: f(w, c), compiled=False) for c in (None, 10))
    assert kept.of(again, 0.1) < kept.of(plain, 0.1) / 7


def test_only_what_the_gradient_needs_is_kept_and_computed_again():
    with nbta.Graph().as_default() as g:
        x = nbta.placeholder("float64", ())
        first = (0, x, x, array(9))

        def body(i, y, z, ta):
            return i + 1, y * x, nbta.exp(z), ta.write(i, z)

        y = nbta.while_loop(lambda i, *_: i < 9, body, first, checkpoint=3)[1]
        (dx,) = nbta.gradients([y], [x])
    forward, backward = (op for op in g.operations if op.type == "While")
    assert forward.attrs["count"] == 6  # counter, i, y, z, ta and states of y
    again = backward.attrs["body"]
    inner = [op for op in again.operations if op.type == "While"]
    types = {op.type for loop in inner for body in subgraphs(loop) for op in body.operations}
    assert "Exp" not in types
    assert nbta.Session(g).run(dx, {x: 1.1}) == pytest.approx(10 * 1.1**9)


# Bad input.


@pytest.mark.parametrize("wrong", [0, -2, True, False, 2.0, "root", "SQRT", np.float64(3), [2]])
def test_other_checkpoints_are_refused(wrong):
    calls = {
        "while_loop": lambda: nbta.while_loop(
            lambda i: i < 3, lambda i: i + 1, 0, checkpoint=wrong
        ),
        "scan": lambda: nbta.scan(lambda c, x: (c, x), 0.0, X, checkpoint=wrong),
        "map_fn": lambda: nbta.map_fn(lambda x: x, X, checkpoint=wrong),
        "foldl": lambda: nbta.foldl(lambda a, x: a, X, checkpoint=wrong),
        "foldr": lambda: nbta.foldr(lambda a, x: a, X, checkpoint=wrong),
    }
    for name, call in calls.items():
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            call()
        message = str(caught.value)
        assert message.startswith(f"{name}: checkpoint must be None, an int of 1 or more")
        assert repr(wrong) in message


def test_a_symbolic_checkpoint_is_refused():
    with pytest.raises(nbta.InvalidArgumentError, match="checkpoint must be None, an int"):
        run(lambda n: nbta.scan(lambda c, x: (c, x), 0.0, X, checkpoint=n), np.int64(2))


def test_numpy_integers_are_taken():
    f = nbta.grad(lambda x: nbta.scan(lambda c, r: (c * r, None), x, X, checkpoint=np.int32(2))[0])
    assert f(1.0) == pytest.approx(np.prod(X))


def test_sqrt_needs_an_iteration_count():
    def program(x, **options):
        return nbta.while_loop(lambda y: y < 9.0, lambda y: y * x, x, checkpoint="sqrt", **options)

    with pytest.raises(nbta.InvalidArgumentError) as caught:
        run(program, 2.0)
    for part in ("while_loop: checkpoint='sqrt'", "i < n", "maximum_iterations", "'online'"):
        assert part in str(caught.value)
    assert nbta.grad(lambda x: program(x, maximum_iterations=10))(2.0) == 4 * 2.0**3
    assert nbta.grad(lambda x, n: program(x, maximum_iterations=n))(2.0, np.int32(2)) == 3 * 2.0**2


def test_an_array_that_is_chosen_while_it_runs_is_refused():
    def program(x):
        ta = array(3).unstack(x)

        def body(i, y):
            own = array(3).unstack(x)
            chosen = nbta.cond(y > 0.0, lambda: own, lambda: ta)
            return i + 1, y * chosen.read(i)

        y = nbta.while_loop(lambda i, _: i < 3, body, (0, x[0]), checkpoint=2)[1]
        return nbta.gradients([y], [x])[0]

    with pytest.raises(nbta.InvalidArgumentError, match="an array that only the run knows"):
        run(program, X)


def test_an_accumulator_that_is_read_in_the_loop_is_refused():
    def program(x):
        sums = array(3).unstack(x).grad("mine", clear_after_read=False)

        def body(i, y, sums):
            sums = sums.accumulate(i, y)
            return i + 1, y * sums.read(i), sums

        y = nbta.while_loop(lambda i, *_: i < 3, body, (0, x[0], sums), checkpoint=2)[1]
        return nbta.gradients([y], [x])[0]

    with pytest.raises(nbta.InvalidArgumentError, match="may not hold this later"):
        run(program, X)
