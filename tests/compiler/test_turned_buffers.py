"""Loops whose arrays take each other's places, or become shorter, beside the same ones in NumPy."""

import array_programs
import numpy as np
import pytest
import turning_programs

import nbta

X = np.array([0.4, -0.7, 1.1, 0.25, -1.3, 0.6, 0.9, -0.2])
STEPS = (0, 1, 2, 3, 4)


def step_into_new(u, steps):
    for t in range(steps):
        new = np.empty(len(u))
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1] + 0.1 * t
        u = new
    return u


def step_into_zeros(u, steps):
    for _ in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u) - 1):
            new[i] = u[i - 1] * u[i + 1]
        u = new
    return u


def step_between_ends(u, steps):
    for _ in range(steps):
        new = np.empty(len(u))
        new[0] = u[0]
        new[-1] = u[-1]
        for i in range(1, len(u) - 1):
            new[i] = u[i] + 0.2 * (u[i - 1] - 2 * u[i] + u[i + 1])
        u = new
    return u


def step_into_copy(u, steps):
    for _ in range(steps):
        new = u.copy()
        for i in range(1, len(u)):
            new[i] += u[i - 1] * u[i]
        u = new
    return u


def arrays_at_once(u, steps):
    for _ in range(steps):
        u = u[::-1] * np.cumsum(u)
    return u


def swap(u, steps):
    v = np.zeros(len(u))
    for _ in range(steps):
        for i in range(1, len(u)):
            v[i] = u[i - 1] * u[i]
        u, v = v, u
    return np.sum(u * v) + u - v


def two_behind(u, steps):
    before = u * u
    for _ in range(steps):
        new = np.empty(len(u))
        for i in range(len(u)):
            new[i] = u[i - 1] * before[i]
        before = u
        u = new
    return u + 2 * before


def three_behind(u, steps):
    a, b, c = u.copy(), u * 2, u * u
    for _ in range(steps):
        new = np.zeros(len(u))
        for i in range(1, len(u)):
            new[i] = a[i] * b[i - 1] - c[i]
        a, b, c = b, c, new
    return a + 2 * b + 3 * c


def three_in_turn(u, steps):
    a, b, c = u.copy(), u * 2, u * u
    for _ in range(steps):
        for i in range(1, len(u)):
            c[i] = a[i] * b[i - 1]
        a, b, c = b, c, a
    return a + 2 * b + 3 * c


def two_take_one(u, steps):
    a, b = u * 2, u * u
    for _ in range(steps):
        new = np.empty(len(u))
        for i in range(len(u)):
            new[i] = u[i - 1] + a[i] * b[i]
        a = u
        b = u
        u = new
    return a - 3 * b + u


def new_is_read_later(u, steps):
    kept = np.zeros(len(u))
    for _ in range(steps):
        new = np.empty(len(u))
        for i in range(len(u)):
            new[i] = u[i] * u[i - 1]
        u = new
        kept = kept + new[::-1]
    return u * kept


def inside_a_loop(u, steps):
    for _ in range(3):
        for _ in range(steps):
            new = np.empty(len(u))
            for i in range(len(u)):
                new[i] = u[i] * u[i - 1]
            u = new
        u = u + 0.5
    return u


def in_turns_of_others(u, steps):
    v, w = np.zeros(len(u)), np.ones(len(u)) * 0.3
    for t in range(steps):
        v = 0.5 * v + 0.4 * np.tanh(u + t)
        for _ in range(10):
            w = 0.5 * w + 0.4 * np.tanh(np.exp(-w * w))
        v, w = w, v
    return v * w


def with_ends(u, steps):
    v, s = u * u, 0.0
    for i in range(len(u) * steps):
        if i == 0:
            s += u[0]
        elif i == len(u) * steps - 1:
            s -= v[0]
        else:
            s += X[(i - 1) % 8] * X[(i + 1) % 8]
        u, v = v, 0.5 * u - 0.3 * np.sin(v)
    return u + 2 * v * s


def one_begins_where_another_ends(u, steps):
    v = np.ones(len(u)) * 0.4
    for _ in range(len(u)):
        w = np.tanh(u)
        for _ in range(steps):
            for k in range(len(u)):
                v[k] += 0.3 * u[0]
                w, v = v, w
        w, v = v, w
    return v - 2 * w


def in_branches(u, steps):
    for t in range(steps):
        new = np.zeros(len(u))
        if u[0] * t < 0.5:
            for i in range(len(u)):
                new[i] = u[i] * u[i - 1]
        else:
            new[1] = u[2]
        u = new
    return u


def until_small(u, steps):
    while np.sum(np.abs(u)) > 0.5 and steps > 0:
        new = np.empty(len(u))
        for i in range(len(u)):
            new[i] = 0.5 * u[i] * u[i - 1]
        u = new
        steps -= 1
    return u


def computed_length(u, steps):
    v = np.zeros(2 * steps + 1)
    for j in range(2 * steps + 1):
        v[j] = u[j % 8] * (j + 1)
    for step in range(steps - 1, -1, -1):
        w = np.zeros(2 * steps + 1)
        for j in range(2 * step + 1):
            w[j] = v[j] * u[0] + v[j + 1] * v[j + 2]
        v = w
    return v


def shorter(u, steps):
    for _ in range(steps):
        u = u[1:] * u[:-1] + u[1:]
    return u


def shorter_by_two(u, steps):
    v = u * 2
    for _ in range(min(steps, 3)):
        u, v = u[2:] * v[:-2] + v[1:-1], v[1:-1] + u[2:]
    return u * v


def shorter_in_turn(u, steps):
    v = u * 2
    for _ in range(steps):
        u, v = v[1:], u
    return np.sum(u) * u[0] + np.sum(v) * v[1]


def several_lengths_in_turn(u, steps):
    v, w = np.ones(3), np.concatenate((u, u)) * u[0]
    for _ in range(steps):
        u, v, w = v, u, w
        w, v = v, w
    return np.sum(u) + 2 * np.sum(v) - 3 * np.sum(w) * X


def shorter_by_turns(u, steps):
    v = u * u
    for t in range(steps):
        u = u[1:] * 2
        v = v[:-1] * u[0] if t % 2 == 0 else v[2:]
    return np.sum(u) * np.sum(v)


def rows_and_columns(u, steps):
    table = np.ones((2 * steps + 5, 3 * steps + 9)) * u[0]
    column, row = table[:, 0], table[0, :]
    for _ in range(steps):
        column, row = column[1:] * u[1], row[1:] * u[2]
    return np.sum(column) * u + np.sum(row)


def parts_of_a_cube(u, steps):
    cube = np.ones((steps + 5, 2 * steps + 6, 7 * steps + 4)) * u[0]
    back, front = cube[..., 0, 1:], cube[0, ..., 1:]
    for _ in range(steps):
        back, front = back[1:] * u[1], front[1:] * u[2]
    return np.sum(back) * u + np.sum(front)


LOOPS = [
    step_into_new, step_into_zeros, step_between_ends, step_into_copy, arrays_at_once, swap,
    two_behind, three_behind, three_in_turn, two_take_one, new_is_read_later, inside_a_loop,
    in_turns_of_others, with_ends, one_begins_where_another_ends, in_branches, until_small,
    computed_length, shorter, shorter_by_two, shorter_in_turn, several_lengths_in_turn,
    shorter_by_turns, rows_and_columns, parts_of_a_cube,
]  # fmt: skip


@pytest.mark.parametrize("f", LOOPS)
def test_values(f):
    compiled = nbta.function(f, compiled=True)
    for steps in STEPS:
        np.testing.assert_allclose(compiled(X, steps), f(X.copy(), steps), rtol=1e-13, atol=1e-15)


def weighted(f):
    """What a loop gives, as one number."""
    return lambda u, steps: np.sum(f(u, steps) * 1.5 + f(u, steps) ** 2)


#: Of those, which are differentiated in each run of the tests.
QUICK = {
    step_into_new,
    step_between_ends,
    two_behind,
    in_turns_of_others,
    computed_length,
    shorter_by_two,
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(
    "f", [f if f in QUICK else pytest.param(f, marks=pytest.mark.slow) for f in LOOPS]
)
def test_derivatives(f):
    loss, d = weighted(f), np.linspace(-1, 1, len(X))
    backward, forward = (
        [nbta.function(made, compiled=is_compiled) for is_compiled in (True, False)]
        for made in (
            lambda x, steps: nbta.value_and_grad(loss)(x, steps),
            lambda x, d, steps: nbta.jvp(lambda u: loss(u, steps), (x,), (d,)),
        )
    )
    for steps in STEPS[:4]:
        slope = (loss(X + 1e-6 * d, steps) - loss(X - 1e-6 * d, steps)) / 2e-6
        one, other = (run(X, steps) for run in backward)
        np.testing.assert_allclose(one[0], other[0], rtol=1e-13)
        np.testing.assert_allclose(one[1], other[1], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(np.sum(one[1] * d), slope, rtol=1e-6, atol=1e-7)
        for run in forward:
            np.testing.assert_allclose(run(X, d, steps)[1], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", [step_into_new, step_into_copy, swap, two_behind, three_behind])
def test_buffers_take_each_others_places(f):
    """No iteration copies items to the array that they become."""
    compiled = nbta.function(f, compiled=True)
    compiled(X, 3)
    body = compiled.source.split("fence()")
    assert len(body) > 2
    assert "copy(" not in body[0].split("range(steps)")[-1].split("for ")[-1]


@pytest.mark.parametrize("f", [step_into_zeros, step_between_ends, two_behind])
def test_adjoints_take_each_others_places(f):
    """What an adjoint iteration makes in a second buffer, and changes there, stays there."""
    slope = nbta.value_and_grad(lambda u, c, steps: np.sum(f(u * c, steps) * X), argnums=(0, 1))
    compiled = nbta.function(lambda u, c, steps: slope(u, c, steps), compiled=True)
    compiled(X, 0.5, 3)
    assert "copies of whole tensors in loops" not in compiled.explain()


@pytest.mark.parametrize("f", [shorter, shorter_by_two])
def test_arrays_of_one_length_are_one_loop(f):
    """Tangents have the lengths of values, so that one loop computes both."""
    forward = nbta.function(
        lambda x, d: nbta.jvp(lambda u: np.sum(f(u, 3)), (x,), (d,)), compiled=True
    )
    forward(X, X)
    assert "!= 1)" not in forward.source


def check_random(seed, program=turning_programs.program):
    """The value, the gradient, its derivatives and the slope along a direction, of one program."""
    made = program(seed)
    machine_code, call = seed % 16 == 0, seed % 2
    slope = array_programs.check(made, machine_code, second=seed % 8 == 0, alone=True)
    f, _ = array_programs.built(made.source)
    given = made.arguments(call)
    along = array_programs.tangents(given, seed)
    forward = nbta.function(lambda x, y, c, *ds: nbta.jvp(f, (x, y, c), ds), compiled=True)
    with array_programs.executed(machine_code):
        value, found = forward(*given, *along)
        gradient = slope(*given)[1]
    np.testing.assert_allclose(value, f(*given), rtol=1e-10, atol=1e-10)
    expected = sum(np.sum(g * d) for g, d in zip(gradient, along, strict=True))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    return "fence()" in slope.source


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("seed", [0, 1, 4, 7])
def test_random_programs_that_turn(seed):
    assert check_random(seed)


def test_what_ends_where_it_began_changes_no_places():
    """Two steps an iteration, one to the second buffer and one back, need no exchange."""
    assert not check_random(3)


@pytest.mark.parametrize("seed", [0, 3, 5, 11])
def test_random_programs_of_arrays_of_several_lengths(seed):
    check_random(seed, turning_programs.program_of_lengths)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(12, 92, 20))
def test_many_random_programs_of_arrays_of_several_lengths(first):
    for seed in range(first, first + 20):
        check_random(seed, turning_programs.program_of_lengths)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 120, 20))
def test_many_random_programs_that_turn(first):
    assert sum(check_random(seed) for seed in range(first, first + 20)) >= 5
