"""The backward steps of loops, one by one: what runs, in which order, with which numbers."""

import numpy as np
import pytest
from running import array

import nbta

X = np.array([0.7, -1.3, 2.1])


class Log(list):
    """Notes of the steps of a run; `step` is an operation ``2 y + x`` that makes them."""

    def step(self, y, x, *where):
        """An operation that notes when it runs, forward and backward; ``where`` are integers."""
        return self._operation(*(nbta.cast(i, np.int64) for i in where), y, x)

    @property
    def _operation(self):
        def forward(*given):
            *where, y, x = given
            self.append(("forward", *map(int, where)))
            return np.asarray(2.0 * y + x)

        def backward(dz, *given):
            *where, _y, _x, _z = given
            self.append(("backward", *map(int, where)))
            return (*[None] * len(where), 2.0 * dz, dz)

        return nbta.custom_gradient(forward, backward=backward, result=lambda *specs: specs[-2])

    def take(self):
        """The notes so far, which are then gone."""
        notes = list(self)
        self.clear()
        return notes


@pytest.fixture
def log():
    return Log()


def forward(*places):
    return [("forward", *np.atleast_1d(place).tolist()) for place in places]


def backward(*places):
    return [("backward", *np.atleast_1d(place).tolist()) for place in places]


def loop(n, body, *first):
    """``n`` iterations of ``body(i, *values)``."""
    advance = lambda i, *v: (i + 1, *body(i, *v))  # noqa: E731
    return nbta.while_loop(lambda i, *_: i < n, advance, (0, *first))[1:]


class Slopes:
    """A program's value and gradients, ready to run."""

    def __init__(self, program, *shapes, calls=1):
        with nbta.Graph().as_default() as graph:
            self.fed = [nbta.placeholder("float64", shape) for shape in shapes]
            self.y = program(*self.fed)
            self.calls = [nbta.gradients([self.y], self.fed) for _ in range(calls)]
        self.session = nbta.Session(graph)

    def __call__(self, *values, call=0):
        return self.fetch([self.y, *self.calls[call]], *values)

    def fetch(self, fetches, *values):
        return self.session.run(fetches, dict(zip(self.fed, values, strict=True)))


def test_a_simple_loop_runs_backward_exactly_reversed(log):
    run = Slopes(lambda y, x: loop(4, lambda i, y: [log.step(y, x, i)], y)[0], (), ())
    assert run(1.0, 3.0) == [2**4 + 3 * 15.0, 16.0, 15.0]
    assert log.take() == forward(0, 1, 2, 3) + backward(3, 2, 1, 0)


def test_a_value_alone_runs_nothing_backward(log):
    run = Slopes(lambda y, x: loop(2, lambda i, y: [log.step(y, x, i)], y)[0], (), ())
    run.fetch(run.y, 1.0, 3.0)
    assert log.take() == forward(0, 1)


def test_nested_loops(log):
    def program(y, x):
        inner = lambda i, y: [loop(i + 1, lambda j, z: [log.step(z, x, i, j)], y)[0]]  # noqa: E731
        return loop(3, inner, y)[0]

    run = Slopes(program, (), ())
    places = [(i, j) for i in range(3) for j in range(i + 1)]
    assert run(1.0, 1.0) == [2**7 - 1.0, 64.0, 63.0]
    assert log.take() == forward(*places) + backward(*places[::-1])


def test_nested_loops_with_steps_around_the_inner_one(log):
    def program(y, x):
        def outer(i, y):
            y = log.step(y, x, i, -1)
            (y,) = loop(i, lambda j, z: [log.step(z, x, i, j)], y)
            return [log.step(y, x, i, 9)]

        return loop(3, outer, y)[0]

    run = Slopes(program, (), ())
    places = [(i, j) for i in range(3) for j in (-1, *range(i), 9)]
    assert run(0.0, 1.0) == [2.0**9 - 1, 2.0**9, 2.0**9 - 1]
    assert log.take() == forward(*places) + backward(*places[::-1])


def test_only_the_chosen_branch_runs_backward(log):
    def program(y, x):
        def body(i, y):
            even = lambda: log.step(y, x, 0, i)  # noqa: E731
            return [nbta.cond(i % 2 == 0, even, lambda: log.step(y, x, 1, i))]

        return loop(4, body, y)[0]

    run = Slopes(program, (), ())
    places = [(0, 0), (1, 1), (0, 2), (1, 3)]
    assert run(1.0, 1.0) == [31.0, 16.0, 15.0]
    assert log.take() == forward(*places) + backward(*places[::-1])


def test_only_the_chosen_case_runs_backward_and_loops_in_it(log):
    def program(y, x):
        def body(i, y):
            looped = lambda: loop(2, lambda j, z: [log.step(z, x, i, j)], y)[0]  # noqa: E731
            return [nbta.switch_case(i, [looped, lambda: y, lambda: log.step(y, x, i, 7)])]

        return loop(4, body, y)[0]

    run = Slopes(program, (), ())
    places = [(0, 0), (0, 1), (2, 7), (3, 7)]
    assert run(1.0, 0.0) == [16.0, 16.0, 15.0]
    assert log.take() == forward(*places) + backward(*places[::-1])


def test_scan_and_reverse_scan(log):
    def program(y, x, reverse):
        def step(c, row):
            i, v = row
            c = log.step(c, v, i)
            return c, c

        rows = nbta.arange(3), x
        return nbta.sum(nbta.scan(step, y, rows, reverse=reverse)[1])

    for reverse in (False, True):
        run = Slopes(lambda y, x: program(y, x, reverse), (), (3,))  # noqa: B023
        _, dy, dx = run(1.0, X)
        steps = [0, 1, 2][:: -1 if reverse else 1]
        assert log.take() == forward(*steps) + backward(*steps[::-1])
        assert dy == 2.0 + 4.0 + 8.0
        np.testing.assert_array_equal(dx, [1, 3, 7] if reverse else [7, 3, 1])


def test_an_array_written_in_one_loop_and_read_in_another_order(log):
    def program(y, x):
        def write(i, y, ta):
            y = log.step(y, x[i], 0, i)
            return y, ta.write(i, y)

        y, ta = loop(3, write, y, array(3))
        places = nbta.constant([1, 2, 0, 1])
        read = lambda i, z: [log.step(z, ta.read(nbta.gather(places, i)), 1, i)]  # noqa: E731
        return loop(4, read, y * 0.0)[0]

    run = Slopes(program, (), (3,))
    value, dy, dx = run(1.0, np.zeros(3))
    written, read = [(0, i) for i in range(3)], [(1, i) for i in range(4)]
    assert log.take() == forward(*written, *read) + backward(*read[::-1], *written[::-1])
    weights = np.array([2.0, 8.0 + 1.0, 4.0])  # of slots 0, 1, 2
    assert value == dy == np.dot(weights, [2, 4, 8])
    np.testing.assert_array_equal(dx, [weights @ [1, 2, 4], weights @ [0, 1, 2], weights[2]])


def test_two_loops_that_need_each_other_only_through_an_array(log):
    def program(x):
        ta = array(4).write(0, x)
        for part in range(3):
            step = lambda i, t: [  # noqa: E731
                t.write(part + i + 1, log.step(t.read(part + i), x, part, i))  # noqa: B023
            ]
            (ta,) = loop(1, step, ta)
        return ta.read(3)

    run = Slopes(program, ())
    assert run(1.0) == [15.0, 15.0]
    places = [(0, 0), (1, 0), (2, 0)]
    assert log.take() == forward(*places) + backward(*places[::-1])


def test_independent_loops_run_backward_in_reversed_order_of_creation(log):
    def program(y, x):
        (a,) = loop(2, lambda i, y: [log.step(y, x, 0, i)], y)
        (b,) = loop(2, lambda i, y: [log.step(y, x, 1, i)], y)
        return a + b

    run = Slopes(program, (), ())
    run(1.0, 1.0)
    places = [(k, i) for k in range(2) for i in range(2)]
    assert log.take() == forward(*places) + backward(*places[::-1])


def test_no_iteration_has_no_backward_step(log):
    def program(y, x):
        iterations = nbta.cast(nbta.floor(x), np.int64)
        return loop(iterations, lambda i, y: [log.step(y, x, i)], y)[0]

    run = Slopes(program, (), ())
    assert (run(1.5, 0.25), log.take()) == ([1.5, 1.0, 0.0], [])
    assert (run(1.5, 1.25), log.take()) == ([4.25, 2.0, 1.0], forward(0) + backward(0))


def test_the_last_iteration_that_the_data_allows_comes_first(log):
    def program(y, x):
        return nbta.while_loop(
            lambda i, y: y < 20.0, lambda i, y: (i + 1, log.step(y, x, i)), (0, y)
        )[1]

    run = Slopes(program, (), ())
    for start, iterations in ((1.0, 5), (9.0, 2), (30.0, 0)):
        value, dy, dx = run(start, 0.0)
        assert (value, dy, dx) == (start * 2**iterations, 2**iterations, 2**iterations - 1)
        assert log.take() == forward(*range(iterations)) + backward(*reversed(range(iterations)))


def test_two_calls_run_their_own_backward_steps_only(log):
    body = lambda x: lambda i, y: [log.step(y, x, i)]  # noqa: E731
    run = Slopes(lambda y, x: loop(3, body(x), y)[0], (), (), calls=2)
    for call in (0, 1, 0):
        assert run(1.0, 1.0, call=call)[1:] == [8.0, 7.0]
        assert log.take() == forward(0, 1, 2) + backward(2, 1, 0)
    run.fetch(run.calls, 1.0, 1.0)
    assert log.take() == forward(0, 1, 2) + 2 * backward(2, 1, 0)


def test_an_iteration_whose_step_reaches_no_result_runs_no_backward_step(log):
    def program(y, x):
        def body(i, a, b):
            return log.step(a, x, 0, i), log.step(b, a, 1, i)

        return loop(2, body, y, y)[0]  # b is of no use

    run = Slopes(program, (), ())
    run(1.0, 1.0)
    assert [note for note in log.take() if note[0] == "backward"] == backward((0, 1), (0, 0))


class Twice(Log):
    """Cubes, whose backward steps have backward steps."""

    def cube(self, x, i):
        def forward_of_backward(dy, x, i, y):
            self.append(("backward", int(i)))
            return 3.0 * x * x * dy

        def backward_of_backward(dd, dy, x, i, y, given):
            self.append(("second", int(i)))
            return 3.0 * x * x * dd, 6.0 * x * dy * dd, None, np.zeros_like(y)

        def cubed(x, i):
            self.append(("forward", int(i)))
            return x**3

        slope = nbta.custom_gradient(
            lambda dy, x, i, y: (forward_of_backward(dy, x, i, y),),
            backward=backward_of_backward,
            result=lambda dy, x, i, y: x,
        )
        return nbta.custom_gradient(cubed, backward=slope)(x, i)


def test_second_order_runs_the_backward_steps_backward():
    log = Twice()
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", ())
        y = loop(2, lambda i, y: [log.cube(y, i)], x)[0]
        (dx,) = nbta.gradients([y], [x])
        (ddx,) = nbta.gradients([dx], [x])
    y, dx, ddx = nbta.Session(graph).run([y, dx, ddx], {x: 1.1})
    assert y == pytest.approx(1.1**9)
    assert dx == pytest.approx(9 * 1.1**8)
    assert ddx == pytest.approx(72 * 1.1**7)
    kinds = [note for note in log.take() if note[0] != "forward"]
    first = [("backward", 1), ("backward", 0)]
    assert kinds[:4] == [*first, ("second", 0), ("second", 1)]
    assert kinds[4:] == first  # what the forward loop got from the backward one
