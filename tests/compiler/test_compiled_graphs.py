"""Graphs in machine code: the values, errors and memory of the executor that runs them one by one.

Everything is called several times, as results go into arrays of the shapes of the call before.
"""

import resource
import runpy
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from compiled_pairs import Pair, compare, error_of
from loop_programs import CELLS, INPUTS, H
from numba import njit

import nbta
from nbta import raw_ops

EXAMPLES = Path(__file__).parents[2] / "examples"
LENGTHS = [(5, 2), (3, 2), (7, 4), (1, 2), (5, 1), (6, 3)]


def numbers(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).normal(size=shape)


# Nets.


def weights(gates):
    shapes = [(INPUTS, gates * H), (H, gates * H), (gates * H,)]
    return {name: numbers(*s) * 0.6 for name, s in zip("wub", shapes, strict=True)}


def net(name, every=True, **options):
    """The loss of a recurrent net: of the states of every step, or of the last one."""
    cell = CELLS[name][0]

    def loss(params, xs, h):
        def step(state, x):
            state = cell(state, x, params["w"], params["u"], params["b"])
            h = state[0] if name == "lstm" else state
            return state, h

        first = (h, h * 0.5) if name == "lstm" else h
        last, hs = nbta.scan(step, first, xs, **options)
        if not every:
            return nbta.sum(nbta.square(last))
        return nbta.sum(hs * hs) + nbta.sum(nbta.sin(hs))

    return loss


def run_net(pair, gates, lengths):
    params = weights(gates)
    for k, (steps, rows) in enumerate(lengths):
        params = {key: value * 0.95 for key, value in params.items()}
        pair(params, numbers(steps, rows, INPUTS, seed=k), numbers(rows, H, seed=k) * 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("name", CELLS)
def test_gradients_of_nets_of_any_lengths(name):
    pair = Pair(net(name), nbta.value_and_grad)
    run_net(pair, CELLS[name][1], LENGTHS[: 5 if name == "tanh" else 3])
    assert pair.calls() == []


@pytest.mark.slow
def test_a_net_that_runs_backwards():
    run_net(Pair(net("tanh", reverse=True), nbta.value_and_grad), 1, LENGTHS[:3])


@pytest.mark.slow
def test_a_net_without_steps():
    run_net(
        Pair(net("tanh", every=False), nbta.value_and_grad), 1, [(0, 2), (4, 2), (0, 3), (2, 3)]
    )


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", [2, "sqrt"])
def test_gradients_with_checkpoints(checkpoint):
    pair = Pair(net("tanh", every=False, checkpoint=checkpoint), nbta.value_and_grad)
    run_net(pair, 1, [(5, 2), (7, 3), (0, 2), (4, 2)])


@pytest.mark.slow
def test_results_of_every_step_and_of_the_last():
    def f(w, xs):
        last, hs = nbta.scan(lambda h, x: (nbta.tanh(h @ w + x),) * 2, xs[0] * 0.0, xs)
        return {"last": last, "all": hs, "none": None, "pair": (hs[-1], hs * 2.0)}

    pair = Pair(f)
    for k, steps in enumerate((4, 4, 6, 2, 9)):
        pair(numbers(3, 3, seed=k), numbers(steps, 3, seed=k))


# Control flow.


def test_loops_as_long_as_data_say():
    def f(x, limit):
        def step(i, y):
            return i + 1, nbta.cond(nbta.equal(i % 2, 0), lambda: y * x, lambda: y + nbta.sin(x))

        i, y = nbta.while_loop(lambda i, y: nbta.sum(y * y) < limit, step, (0, x))
        return nbta.sum(y) * nbta.cast(i, "float64")

    pair = Pair(f, nbta.value_and_grad)
    for n, limit in ((3, 50.0), (3, 1e4), (2, 1e6), (4, -1.0), (3, 7.0)):
        pair(1.1 + np.arange(float(n)) * 0.3, limit)


@pytest.mark.slow
def test_a_bound_that_is_never_reached_makes_no_room_ahead():
    def f(x, tolerance):
        def body(i, error, written):
            return i + 1, error * 0.5, written.write(i, error)

        errors = nbta.TensorArray("float64", size=0, dynamic_size=True, element_shape=())
        return nbta.while_loop(
            lambda i, error, written: (i < 10**12) & (error > tolerance), body, (0, x, errors)
        )[2].stack()

    Pair(f)(np.float64(1.0), np.float64(0.1))


@pytest.mark.slow
def test_loops_in_loops_of_lengths_that_change():
    def f(x, n):
        def outer(i, total):
            def inner(j, y):
                return j + 1, nbta.tanh(y * x) + 0.1 * nbta.cast(j, "float64")

            y = nbta.while_loop(lambda j, y: j < i, inner, (0, x))[1]
            return i + 1, total + y * x

        return nbta.sum(nbta.while_loop(lambda i, t: i < n, outer, (0, x * 0.0))[1])

    pair = Pair(f, nbta.value_and_grad)
    for k, n in enumerate((3, 0, 1, 5, 2)):
        pair(numbers(2 + k, seed=k), n)


@pytest.mark.slow
def test_one_of_several_branches_in_a_loop():
    def f(x, n):
        def step(i, y, k):
            y = nbta.switch_case(
                i % 3,
                [lambda: y * x, lambda: nbta.sin(y), lambda: nbta.concatenate([y[1:], y[:1]])],
            )
            return i + 1, y, nbta.cond(nbta.sum(y) > 0.0, lambda: k + 1, lambda: k)

        _, y, k = nbta.while_loop(lambda i, *_: i < n, step, (0, x, 0))
        return nbta.sum(y * y), k

    pair = Pair(f, lambda f, compiled: nbta.value_and_grad(f, has_aux=True, compiled=compiled))
    for k, n in enumerate((4, 7, 0, 2)):
        pair(numbers(2 + k, seed=k), n)


@pytest.mark.slow
def test_states_of_all_kinds():
    def f(z, n, flag, small):
        def step(i, z, flag, small, k):
            return i + 1, z * z * 0.5 + 1j, nbta.logical_and(flag, i < 2), small + small, k - 3

        first = (0, z, flag, small, np.uint8(200))
        return nbta.while_loop(lambda i, *_: i < n, step, first)

    pair = Pair(f)
    for k, n in enumerate((3, 0, 5, 1)):
        z = numbers(2 + k, seed=k) + 1j * numbers(2 + k, seed=k + 9)
        pair(z, n, np.array([True, False]), np.array([100, -3], np.int8))
    single = Pair(lambda x: nbta.scan(lambda h, r: (h * r, h + r), x[0], x))
    for n in (3, 5, 2):
        single(numbers(n, 2).astype(np.float32))


@pytest.mark.slow
def test_states_that_grow():
    def f(x, n):
        def step(i, y):
            return i + 1, nbta.concatenate([y, y[-1:] * 2.0 + x[:1]])

        return nbta.while_loop(lambda i, y: i < n, step, (0, x))[1]

    pair = Pair(f)
    for n, count in ((2, 3), (4, 3), (3, 0), (2, 9)):
        pair(numbers(n), count)


# Arrays.


def test_arrays_of_all_operations():
    def f(x, n):
        a = nbta.TensorArray("float64", size=n, clear_after_read=False, element_shape=(None,))
        step = lambda i, a: (i + 1, a.write(i, x * nbta.cast(i, "float64")))  # noqa: E731
        a = nbta.while_loop(lambda i, a: i < n, step, (0, a))[1]
        b = nbta.TensorArray("float64", size=n, clear_after_read=False)
        b = b.scatter(nbta.arange(n)[::-1], a.stack() * 2.0)
        picked = b.gather([1, 0, 1])
        return nbta.sum(picked * picked) + nbta.sum(a.read(n - 1) * b.read(0)), a.size(), picked

    def both(f, compiled):
        with_slope = lambda x, n: (f(x, n), nbta.grad(lambda x: f(x, n)[0])(x))  # noqa: E731
        return nbta.function(with_slope, compiled=compiled)

    pair = Pair(f, both)
    for k, n in enumerate((3, 2, 7, 4)):
        pair(numbers(2 + k, seed=k), n)


@pytest.mark.slow
def test_arrays_that_grow_and_are_read_in_the_loop():
    def f(x, n):
        a = nbta.TensorArray("float64", dynamic_size=True, clear_after_read=False)
        a = a.write(0, x)

        def step(i, a):
            return i + 1, a.write(i + 1, nbta.sin(a.read(i)) + 0.5 * a.read(i // 2))

        i, a = nbta.while_loop(lambda i, a: i < n, step, (0, a))
        return nbta.sum(a.stack()) + nbta.sum(a.read(i)), a.size()

    pair = Pair(f, lambda f, compiled: nbta.value_and_grad(f, has_aux=True, compiled=compiled))
    for k, n in enumerate((3, 0, 20, 5)):
        pair(numbers(2 + k, seed=k), n)


@pytest.mark.slow
def test_two_gradients_of_one_array():
    def f(x):
        a = nbta.TensorArray("float64", size=3, clear_after_read=False, element_shape=(None,))
        a = a.unstack(nbta.stack([x, nbta.sin(x), x * x]))
        y, z = nbta.sum(a.read(0) * a.read(1)), nbta.sum(a.gather([2, 1]) ** 3)
        (first,), (second,) = nbta.gradients(y, [x]), nbta.gradients(z, [x])
        return first, second, nbta.gradients(nbta.sum(first * second), [x])[0]

    pair = Pair(f)
    for k in range(4):
        pair(numbers(3 + k % 3, seed=k))


@pytest.mark.slow
def test_slots_that_nobody_wrote_are_zeros():
    def f(x, i):
        a = nbta.TensorArray("float64", size=4, clear_after_read=False).write(i, x)
        return a.read(2), a.read(0)

    pair = Pair(f)
    for k in (1, 0, 2, 3):
        pair(numbers(2 + k), k)


@pytest.mark.slow
def test_arrays_of_elements_of_several_lengths():
    def f(x, n):
        a = nbta.TensorArray("float64", n, clear_after_read=False, infer_shape=False)
        a = nbta.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, x[:i])), (0, a))[1]
        return a.read(n - 1), a.read(0)

    pair = Pair(f, may_fall_back=True)
    for n in (3, 5, 2, 4):
        pair(numbers(6), n)


@pytest.mark.slow
def test_gradients_of_arrays_in_a_branch():
    def f(x):
        a = nbta.TensorArray("float64", 2, dynamic_size=True, element_shape=())
        a = a.write(0, x[0]).write(1, x[1])
        return nbta.cond(x[0] > 0.0, lambda: nbta.sum(a.append(x[2]).stack() ** 2), lambda: x[1])

    pair = Pair(f, nbta.value_and_grad)
    for k in range(6):
        pair(numbers(3 + k % 2, seed=k))


def test_arrays_as_results():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None, 2))
        a = nbta.TensorArray("float64", size=2, clear_after_read=False)
        a = a.write(0, x).write(1, x * 2.0)
        b = nbta.TensorArray("float64", size=1).write(0, nbta.sum(a.stack(), 0))
        fetches = [a, nbta.sum(a.read(1)), b.read(0)]
    one, other = nbta.Session(graph), nbta.Session(graph)
    for k in range(4):
        value = numbers(1 + k, 2)
        found, *rest = one.run(fetches, {x: value}, compiled=True)
        expected, *others = other.run(fetches, {x: value}, compiled=False)
        compare([found.stack(), *rest], [expected.stack(), *others])
    assert one.last.fallbacks == 0


@pytest.mark.slow
def test_source_is_the_same_each_time():
    """Machine code of one process is found by another by its source."""
    names = runpy.run_path(str(EXAMPLES / "adaptive_ode.py"))

    def loss(start, rates):
        return names["end_loss"](names["lotka_volterra"], start, rates, 1.0, 1e-4)

    sources, kept = set(), []
    for k in range(4):
        function = nbta.value_and_grad(loss, compiled=True)
        function(np.array([1.0, 1.0]), np.array([1.5, 1.0, 3.0, 1.0]))
        sources.add(function.source)
        kept.append([object() for _ in range(37 * k)])  # other addresses, another order of a set
    assert len(sources) == 1


# Derivatives.


def recurrence(w, x):
    return nbta.sum(nbta.scan(lambda h, r: (nbta.tanh(w * h + r), h), x[0], x)[1] ** 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda f, compiled: nbta.grad(lambda w, x: nbta.sum(nbta.grad(f)(w, x)), compiled=compiled),
        lambda f, compiled: nbta.function(
            lambda w, x: nbta.hvp(f, (w, x), (w * 0.5, x + 1.0)), compiled=compiled
        ),
        lambda f, compiled: nbta.function(
            lambda w, x: nbta.jvp(f, (w, x), (w * 0.5, x + 1.0)), compiled=compiled
        ),
    ],
    ids=["grad of grad", "hvp", "jvp"],
)
def test_higher_derivatives(make):
    pair = Pair(recurrence, make)
    for n in (4, 6, 2):
        pair(numbers(3, seed=n), numbers(n, 3))


@pytest.mark.slow
def test_compiled_functions_of_users():
    @njit
    def forward(x):
        return np.sin(x) * x

    @njit
    def backward(dy, x, y):
        return dy * (np.cos(x) * x + np.sin(x))

    f = nbta.custom_gradient(forward, backward=backward)
    pair = Pair(lambda x, n: nbta.sum(
        nbta.while_loop(lambda i, y: i < n, lambda i, y: (i + 1, f(y) + x), (0, x))[1]
    ), nbta.value_and_grad)  # fmt: skip
    for k, n in enumerate((2, 0, 5, 3)):
        pair(numbers(2 + k), n)


def test_python_functions_of_users():
    f = nbta.custom_gradient(lambda x: np.sort(x), backward=lambda dy, x, y: dy)
    pair = Pair(lambda x: nbta.sum(f(x * 2.0) * nbta.sin(x)), nbta.value_and_grad)
    for n in (3, 5, 2, 0):
        pair(numbers(n))


@pytest.mark.slow
def test_bars(capsys):
    pytest.importorskip("tqdm")
    pair = Pair(lambda x: nbta.scan(lambda c, r: (c + r * r, c), 0.0, x, progress="sums"))
    for n in (3, 6, 0):
        pair(numbers(n))


# Inputs.


@pytest.mark.slow
def test_inputs_of_all_layouts():
    pair = Pair(lambda x, y: (nbta.sum(x * y, 0), x @ nbta.transpose(y), x[::-1]))
    base = numbers(6, 8)
    frozen = base[:3, :4].copy()
    frozen.flags.writeable = False
    for x in (
        base[:3, :4], base[::2, ::2], base.T[:4, :3].T, np.asfortranarray(base[:3, :4]), frozen,
        base[::-1][:3, 4:], np.broadcast_to(base[0, :4], (3, 4)), np.zeros((0, 4)), base[:5, :0],
    ):  # fmt: skip
        pair(x, x + 1.0)
    raw = np.zeros(8 * 12 + 1, np.uint8)[1:].view(np.float64).reshape(3, 4)
    assert not raw.flags.aligned
    raw[...] = base[:3, :4]
    pair(raw, frozen)
    swapped = frozen.astype(">f8")
    compare(pair.fast(swapped, frozen), pair.slow(swapped, frozen))


@pytest.mark.slow
def test_numbers_and_arrays_of_rank_0():
    pair = Pair(lambda x, y: (x * y, nbta.sin(x), y))
    for x, y in ((1.0, 2.0), (np.float64(3.0), np.array(4.0)), (np.array(0.5), 6), (-1.0, 2)):
        pair(x, y)


def test_inputs_are_not_written_to_nor_given_away():
    double = lambda i, y: (i + 1, y * 2.0)  # noqa: E731
    pair = Pair(lambda x: (x, x[1:], nbta.while_loop(lambda i, y: i < 2, double, (0, x))))
    for n in (3, 4, 2):
        x = numbers(n)
        before = x.copy()
        same, part, (_, doubled) = pair(x)
        for result in (same, part, doubled):
            assert not np.may_share_memory(result, x)
            result[...] = 7.0
        np.testing.assert_array_equal(x, before)
        pair._kept.clear()


# Errors.


def test_errors_are_those_of_the_reference():
    def f(x, n, k):
        a = nbta.TensorArray("float64", size=n, name="rows", clear_after_read=False)

        def step(i, a):
            return i + 1, a.write(nbta.minimum(i, k), x * 2.0)

        a = nbta.while_loop(lambda i, a: i < n, step, (0, a), name="filling")[1]
        return nbta.sum(a.stack())

    pair = Pair(f, nbta.value_and_grad, may_fall_back=True)
    for k in range(3):
        pair(numbers(2), 3, 9)
        message = pair.fails(numbers(2 + k), 4, k)
        assert "rows" in message
        assert f"(iteration {k + 1} of the loop 'filling')" in message


def test_shapes_that_do_not_fit_are_refused():
    pair = Pair(lambda x, y: x + y, may_fall_back=True)
    pair(numbers(3), numbers(3))
    for n in (4, 2, 5):
        assert "Add" in pair.fails(numbers(3), numbers(n))
        pair(numbers(n), numbers(n))
    rows = Pair(lambda x, i: (x[i], nbta.reshape(x, (2, -1))), may_fall_back=True)
    rows(numbers(4), 3)
    rows.fails(numbers(4), 4)
    rows.fails(numbers(5), 0)
    rows(numbers(6), -6)


def test_what_cannot_be_compiled_says_why():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", None)
        a = nbta.TensorArray("float64", size=2, infer_shape=False).write(0, x)
        i = nbta.placeholder("int64", ())
        b = nbta.cond(i > 0, lambda: a.write(1, x), lambda: a.write(1, nbta.sum(x)))
        y = b.read(1)
    session = nbta.Session(graph)
    error = error_of(lambda: session.run(y, {x: numbers(2), i: 1}, compiled=True))
    assert isinstance(error, nbta.UnimplementedError)
    assert "the rank of 'TensorArrayReadV3:0' is known in a run only" in str(error)
    for k in range(3):
        np.testing.assert_array_equal(session.run(y, {x: numbers(2), i: 1 + k}), numbers(2))


# Threads and memory.


@pytest.mark.slow
def test_threads_call_one_function():
    pair = Pair(net("tanh"), nbta.value_and_grad)
    params, work = weights(1), []
    for k, (steps, rows) in enumerate(LENGTHS[:3] * 4):
        work.append((params, numbers(steps, rows, INPUTS, seed=k), numbers(rows, H, seed=k)))
    expected = [pair.slow(*args) for args in work]
    failures = []

    def run(first):
        try:
            for iteration in range(60):
                k = (first + iteration) % len(work)
                compare(pair.fast(*work[k]), expected[k])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(3 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def resident():
    """Bytes of memory in use."""
    if sys.platform == "linux":
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_write_after_a_read_of_a_gradient_array_of_any_order_is_refused(depth, compiled):
    """That of a gradient array took such a write when compiled."""
    graph = nbta.Graph()
    with graph.as_default():
        x = nbta.placeholder("float64", ())
        handle, flow = raw_ops.TensorArrayV3(
            size=1, dtype="float64", element_shape=(), clear_after_read=False
        )
        flow = raw_ops.TensorArrayWriteV3(handle, 0, x, flow)
        for source in "ab"[:depth]:
            handle, flow = raw_ops.TensorArrayGradV3(handle, flow, source)
            flow = raw_ops.TensorArrayWriteV3(handle, 0, x, flow)
        first = raw_ops.TensorArrayReadV3(handle, 0, flow, "float64")
        again = raw_ops.TensorArrayReadV3(handle, 0, flow + 0 * cast_to_flow(first), "float64")
        flow = flow + 0 * cast_to_flow(first)
        flow = raw_ops.TensorArrayWriteV3(handle, 0, x, flow)
        second = raw_ops.TensorArrayReadV3(handle, 0, flow, "float64")
    session = nbta.Session(graph)
    assert session.run(first, {x: 3.0}, compiled=compiled) == 3.0
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was cleared"):
        session.run([first, again], {x: 3.0}, compiled=compiled)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was read") as caught:
        session.run([first, second], {x: 3.0}, compiled=compiled)
    assert caught.value.reason == "already_read"


def cast_to_flow(value):
    return nbta.cast(value, "float32")


@pytest.mark.slow
def test_memory_stays_as_it_is():
    def f(x, n, k):
        a = nbta.TensorArray("float64", size=n, dynamic_size=True, clear_after_read=False)
        step = lambda i, a: (i + 1, a.write(nbta.minimum(i, k), x * 2.0))  # noqa: E731
        a = nbta.while_loop(lambda i, a: i < n, step, (0, a))[1]
        return nbta.sum(a.stack()), x * 3.0

    fast = nbta.function(f, compiled=True)
    rng = np.random.default_rng(0)

    def calls(count):
        for iteration in range(count):
            x = np.ones(2000 + int(rng.integers(200)))
            if iteration % 50:
                assert fast(x, 4, 9)[0] == 8.0 * len(x)
            else:
                error_of(fast, x, 4, 2)

    calls(300)
    before = resident()
    calls(2000)
    assert resident() - before < 8 << 20
