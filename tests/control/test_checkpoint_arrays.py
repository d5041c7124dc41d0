"""Every operation on arrays in the body of a loop, with every checkpoint: exact, or refused."""

import numpy as np
import pytest
from generated_source import outcome, tensors
from test_checkpoint import X, compare, slopes

import nbta
from nbta.structure import leaves

POLICIES = [1, 2, "sqrt", "online"]
ITERATIONS = 5


def growing(**options):
    options = {"dynamic_size": True, "clear_after_read": False, **options}
    return nbta.TensorArray("float64", **options)


def scalars():
    return growing(element_shape=())


def ragged():
    return growing(infer_shape=False)


def loop(start, iteration):
    """A loop that carries a number and an array: ``iteration(i, h, ta)`` gives the next ones."""

    def program(x, checkpoint):
        def body(i, h, ta):
            return i + 1, *iteration(x, i, h, ta)

        first = (np.int64(0), x[2], start(x))
        _, h, ta = nbta.while_loop(lambda i, *_: i < ITERATIONS, body, first, checkpoint=checkpoint)
        # After the loop it grows on, so that the gradient finds it longer than any iteration did.
        ta = ta.append(h * x[:2] if ta.element_shape != () else h)
        return h, ta.concat().value if ta.element_shape is None else ta.stack()

    return program


def last(ta):
    return ta.read(ta.size() - 1)


def of_scalars(iteration):
    return loop(lambda x: scalars().append(x[0]), iteration)


def of_vectors(iteration):
    return loop(lambda x: ragged().append(x), iteration)


def append_twice(x, i, h, ta):
    before = last(ta)
    return h * x[1], ta.append(h).append(before)


def in_a_branch(x, i, h, ta):
    even = nbta.equal(i % 2, np.int64(0))
    ta = nbta.cond(even, lambda: ta.append(h).append(h * x[1]), lambda: ta)
    return nbta.sin(last(ta) + h), ta


def in_an_inner_loop(x, i, h, ta):
    def body(j, ta):
        return j + 1, ta.append(nbta.tanh(h * last(ta) + x[1]))

    _, ta = nbta.while_loop(lambda j, ta: j + ta.size() % 2 < i, body, (np.int64(0), ta))
    return nbta.sin(h + nbta.sum(ta.stack())), ta


def in_an_inner_loop_of_a_branch(x, i, h, ta):
    inner = lambda: in_an_inner_loop(x, i, h, ta)  # noqa: E731
    return nbta.cond(h > 0.05, inner, lambda: (h * x[1], ta.append(h)))


def in_an_inner_loop_with_checkpoints(x, i, h, ta):
    def body(j, g, ta):
        return j + 1, nbta.sin(g + last(ta)), ta.append(g * x[0])

    first = (np.int64(0), h, ta)
    _, h, ta = nbta.while_loop(lambda j, *_: j < 3, body, first, checkpoint=2)
    return h, ta


def split_of_an_own_array(x, i, h, ta):
    own = ragged().split(nbta.sin(h * x), [1, 2]).append(x[:1])
    return nbta.tanh(nbta.sum(own.concat().value)), ta.append(h)


def unstack_of_an_own_array(x, i, h, ta):
    own = scalars().unstack(nbta.sin(h * x)).append(h)
    return nbta.tanh(nbta.sum(own.stack() * own.read(1))), ta.append(h)


def split_once(x, i, h, ta):
    """Into an array from around, in the first iteration."""
    pieces = lambda: ta.split(nbta.sin(h * x), [2, 1])  # noqa: E731
    ta = nbta.cond(nbta.equal(i, np.int64(0)), pieces, lambda: ta.append(h * x[1:]))
    return nbta.tanh(nbta.sum(last(ta)) + h), ta


def unstack_once(x, i, h, ta):
    rows = lambda: ta.unstack(nbta.sin(h * x))  # noqa: E731
    ta = nbta.cond(nbta.equal(i, np.int64(0)), rows, lambda: ta.append(h))
    return nbta.tanh(last(ta) + h), ta


PROGRAMS = {
    "write": of_scalars(lambda x, i, h, ta: (nbta.sin(h * x[0]), ta.write(i + 1, h))),
    "write, a gap": of_scalars(
        lambda x, i, h, ta: (nbta.sin(h + last(ta)), ta.write(ta.size() + 1, h))
    ),
    "append": of_scalars(lambda x, i, h, ta: (nbta.sin(h * last(ta)), ta.append(h + x[0]))),
    "append twice": of_scalars(append_twice),
    "append in a branch": of_scalars(in_a_branch),
    "append in an inner loop": of_scalars(in_an_inner_loop),
    "append in an inner loop of a branch": of_scalars(in_an_inner_loop_of_a_branch),
    "append in an inner loop with checkpoints": of_scalars(in_an_inner_loop_with_checkpoints),
    "scatter": of_scalars(
        lambda x, i, h, ta: (
            nbta.sin(h + last(ta)),
            ta.scatter(nbta.stack([ta.size() + 1, ta.size()]), nbta.stack([h, h * x[1]])),
        )
    ),
    "split": of_scalars(split_of_an_own_array),
    "split once": loop(lambda x: ragged(), split_once),
    "unstack": of_scalars(unstack_of_an_own_array),
    "unstack once": loop(lambda x: scalars(), unstack_once),
    "read": of_scalars(lambda x, i, h, ta: (nbta.sin(h + ta.read(i // 2)), ta.append(h))),
    "gather": of_scalars(
        lambda x, i, h, ta: (
            nbta.sum(ta.gather(nbta.stack([ta.size() - 1, np.int32(0)]))) * h, ta.append(h),
        )
    ),
    "stack": of_scalars(lambda x, i, h, ta: (nbta.sin(nbta.sum(ta.stack()) * h), ta.append(h))),
    "concat": of_vectors(
        lambda x, i, h, ta: (nbta.sin(nbta.sum(ta.concat().value) * h), ta.append(h * x[1:]))
    ),
    "concat of nothing": loop(
        lambda x: growing(element_shape=(2,)),
        lambda x, i, h, ta: (
            h * x[0] + nbta.sum(ta.concat(element_shape_except0=()).value), ta.append(h * x[:2]),
        ),
    ),
    "size": of_scalars(
        lambda x, i, h, ta: (h * nbta.cast(ta.size(), "float64") * x[0], ta.append(h))
    ),
    "an array around that does not grow here": of_scalars(
        lambda x, i, h, ta: (nbta.sin(h + last(ta)), ta)
    ),
}  # fmt: skip


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_of_two_orders(name):
    program = PROGRAMS[name]
    expected = slopes(lambda x: program(x, None))(X)
    for checkpoint in POLICIES:
        compare(slopes(lambda x, c=checkpoint: program(x, c))(X), expected)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", ["append", "append in a branch", "scatter", "concat"])
def test_compiled(name):
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (3,))
        ys = leaves(PROGRAMS[name](x, "online"))
        (d,) = nbta.gradients([nbta.add_n([nbta.sum(y * y) for y in ys])], [x])
        (dd,) = nbta.gradients([nbta.sum(d * d)], [x])
    assert outcome(tensors([ys, d, dd]), {x: X}) == "agreed"


def test_the_ball_of_the_tutorial():
    """It appends its place in each step until it lands, and the number of steps is not known."""

    def path(v, checkpoint):
        def step(place, speed, ta):
            speed = speed - 0.1
            return place + 0.1 * speed, speed, ta.append(place)

        first = (v * 0.0 + 0.01, v, scalars())
        return nbta.while_loop(lambda p, *_: p > 0.0, step, first, checkpoint=checkpoint)[2]

    def value(v, checkpoint):
        return nbta.sum(nbta.square(path(v, checkpoint).stack()))

    found, expected = (
        [f(1.3) for f in (nbta.grad(lambda v, c=c: value(v, c)),
                          nbta.grad(nbta.grad(lambda v, c=c: value(v, c))))]
        for c in ("online", None)
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_lengths_by_older_names():
    """An older name sees what was written since, as it does outside of graphs."""

    def by_an_older_name(x, i, h, ta):
        newer = ta.append(h)
        return h * x[0] * nbta.cast(ta.size(), "float64"), newer

    def in_a_branch(x, i, h, ta):
        newer = ta.append(h)
        grown = nbta.cond(h > 5.0, lambda: newer.size(), lambda: ta.size())
        return h * x[0] * nbta.cast(grown, "float64"), newer

    for iteration in (by_an_older_name, in_a_branch):
        program = of_scalars(iteration)
        assert program(X, None)[0] == pytest.approx(
            X[2] * X[0] ** ITERATIONS * np.prod(range(2, 7))
        )
        expected = slopes(lambda x, program=program: program(x, None))(X)
        for checkpoint in POLICIES:
            found = slopes(lambda x, c=checkpoint, program=program: program(x, c))(X)
            compare(found, expected)


# What stays refused.


def refused(iteration, match, start=lambda x: scalars().append(x[0])):
    program = loop(start, iteration)
    slopes(lambda x: program(x, None))(X)
    for checkpoint in POLICIES:
        with pytest.raises(nbta.InvalidArgumentError, match=match):
            slopes(lambda x, c=checkpoint: program(x, c))(X)


def test_another_array_in_each_iteration():
    def iteration(x, i, h, ta):
        return nbta.sin(last(ta)) * x[0], scalars().append(h).append(last(ta))

    refused(iteration, "stands for another array in each iteration")


def test_an_array_that_clears():
    def iteration(x, i, h, ta):
        return nbta.sin(last(ta)) * x[0], ta.append(h)

    start = lambda x: growing(element_shape=(), clear_after_read=True).append(x[0])  # noqa: E731
    clearing = loop(start, iteration)
    for checkpoint in POLICIES:
        with pytest.raises(nbta.InvalidArgumentError, match="clear_after_read=False"):
            nbta.grad(lambda x, c=checkpoint: clearing(x, c)[0])(X)
