"""Items of parts of arrays, read and added to as items of the whole."""

import random

import numpy as np
import pytest
from loop_programs import ranged, values_of

import nbta
from nbta.compiler import pipeline
from nbta.compiler.program import extract
from nbta.compiler.slice_folding import items_of_parts
from nbta.graph.graph import running
from nbta.graph.verifier import verify
from nbta.testing import check_grads


def camera(x, points):
    """Parts of an argument, named before a loop, whose items a loop takes."""
    first, second, rest = x[0:3], x[3:5], x[5:]

    def step(i, s):
        near = first[0] * points[i] + first[2]
        return s + nbta.sin(near * second[1]) * rest[1] + second[0] * first[0]

    return ranged(points.shape[0], step, 0.0)


def slices(program):
    """Keys with slices of what reads items, and adds them."""
    keys = [op.attrs["key"] for op in running(program) if op.type in ("GetItem", "AddItem")]
    return [key for key in keys if any(isinstance(part, slice) for part in key)]


def test_a_gradient_adds_items_of_parts_to_the_whole():
    x, points = np.linspace(0.2, 1.4, 7), np.linspace(-1.0, 1.0, 5)
    check_grads(camera, (x, points), order=2)
    fast = nbta.value_and_grad(camera, argnums=(0, 1), compiled=True)
    found = fast(x, points)
    expected = nbta.value_and_grad(camera, argnums=(0, 1), compiled=False)(x, points)
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert not slices(fast._last.runner.ran.program)
    assert not any(fast(x, points[:0])[1][0])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 6])
def test_items_that_are_not_there_fail(n, compiled):
    run = nbta.value_and_grad(camera, compiled=compiled)
    with pytest.raises(nbta.InvalidArgumentError, match="GetItem"):
        run(np.ones(n), np.ones(3))


def program_of(f, *shapes):
    with nbta.Graph().as_default():
        feeds = [nbta.placeholder("float64", shape) for shape in shapes]
        y = f(*feeds)
        return extract(feeds, [y, *nbta.gradients(nbta.sum(y * y), feeds)])


def ahead_of_the_pass(program):
    """A program as the passes before the one that is tested leave it."""
    for step in pipeline.LOWERING[: pipeline.LOWERING.index(items_of_parts)]:
        program = step(program)
    return program


READ = {
    "one": (lambda x: x[2:5][1], True),
    "from the start": (lambda x: x[:5][4], True),
    "to the end": (lambda x: x[3:][2], True),
    "row": (lambda x: nbta.reshape(x, (4, 2))[1:3][1, 0], True),
    "part of a part": (lambda x: x[1:6][1:4][2], True),
    "from after": (lambda x: x[2:5][-1], False),
    "a part that ends after": (lambda x: x[2:-1][1], False),
    "a part from the end": (lambda x: x[-4:6][1], False),
    "in steps": (lambda x: x[0:6:2][2], False),
    "backwards": (lambda x: x[5::-1][2], False),
    "along another axis": (lambda x: nbta.reshape(x, (2, 4))[:, 1:3][1, 1], False),
}


@pytest.mark.parametrize(("f", "goes"), READ.values(), ids=READ)
def test_which_items_are_read_from_the_whole(f, goes):
    program = program_of(f, (8,))
    made = items_of_parts(program)
    verify(made)
    assert (len(slices(made)) < len(slices(program))) == goes
    x = np.linspace(-1.0, 2.0, 8)
    for one, other in zip(values_of(made, [x]), values_of(program, [x]), strict=True):
        np.testing.assert_array_equal(one, other)
    assert values_of(made, [x])[0] == f(x)


def test_zeros_of_another_shape_are_added_as_they_are():
    """Those that are as long as a part of another array repeat where they are of one item."""

    def f(x, y):
        taken = y[0:2]
        (zeros,) = nbta.gradients(3.0 * taken[0], [taken])
        return nbta.add_item(x, slice(0, 2), zeros)

    with nbta.Graph().as_default():
        feeds = [nbta.placeholder("float64", (None,)) for _ in range(2)]
        program = extract(feeds, [f(*feeds)])
    for lengths, expected in (((4, 4), [3.0, 0.0, 0.0, 0.0]), ((4, 1), [3.0, 3.0, 0.0, 0.0])):
        given = [np.zeros(n) for n in lengths]
        for each in (program, items_of_parts(program)):
            np.testing.assert_array_equal(values_of(each, given)[0], expected)


class Parts:
    """A random function of items of parts of a vector of 9 numbers, in a loop."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.parts = [self.part() for _ in range(3)]
        self.terms = [(self.item(), self.item(), self.draw.random()) for _ in range(4)]

    def part(self):
        low = self.draw.choice([None, 0, 1, 2, 3])
        high = self.draw.choice([None, 4, 5, 7, 9, -1])
        return slice(low, high)

    def item(self):
        part = self.draw.choice(self.parts)
        return part, self.draw.randrange(-1, len(range(9)[part]))

    def __call__(self, x, y):
        parts = {repr(part): x[part] for part in self.parts}

        def step(i, s):
            for (one, k), (other, m), factor in self.terms:
                s = s + factor * y[i] * nbta.sin(parts[repr(one)][k] * parts[repr(other)][m])
            return s

        return ranged(y.shape[0], step, 0.0)


@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(k, marks=pytest.mark.slow) for k in range(6, 40))]
)
def test_random_parts(seed):
    f, x, y = Parts(seed), np.linspace(-1.0, 2.0, 9), np.array([0.5, -1.0, 0.25])
    program = ahead_of_the_pass(program_of(f, (9,), (3,)))
    made = items_of_parts(program)
    verify(made)
    for one, other in zip(values_of(made, [x, y]), values_of(program, [x, y]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    check_grads(f, (x, y))
    (value, slopes), found = (
        nbta.value_and_grad(f, argnums=(0, 1), compiled=c)(x, y) for c in (False, True)
    )
    np.testing.assert_allclose(found[0], value, rtol=1e-13)
    for one, other in zip(found[1], slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def after_a_part(x):
    return x[2:4][3]


def zeros_of_another_part(x):
    taken = x[0:2]
    (zeros,) = nbta.gradients(3.0 * taken[0], [taken])
    return nbta.add_item(x, slice(2, 4), zeros)


@pytest.mark.parametrize(("f", "n"), [(after_a_part, 8), (zeros_of_another_part, 3)])
def test_what_fails_still_fails(f, n):
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (None,))
        program = extract([x], [f(x)])
    for each in (program, items_of_parts(program)):
        with pytest.raises(nbta.InvalidArgumentError):
            values_of(each, [np.zeros(n)])
