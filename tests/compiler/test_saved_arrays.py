"""Arrays that iterations make and loops with checkpoints read: none of it runs in Python."""

import numpy as np
import pytest
from compiled_pairs import compare
from fuzz.ways import in_python
from test_in_place import section

import nbta
from nbta.compiler import saved_arrays, shadow_arrays
from nbta.testing import check_grads

X = np.array([0.4, -0.7, 1.1, 0.25, -1.3])
CHECKPOINTS = [1, 2, "sqrt", "online"]
KINDS = {}


def kind(f):
    """Let ``f(x, checkpoint)`` be one of the programs."""
    KINDS[f.__name__] = f
    return f


def length(x):
    return nbta.cast(nbta.shape(x)[0], "int64")


def growing(shape=(), dtype="float64", **options):
    return nbta.TensorArray(
        dtype, 0, dynamic_size=True, clear_after_read=False, element_shape=shape, **options
    )


def each(count, f, *state, checkpoint=None, begin=0):
    """Variables after iterations with numbers below a count."""
    following = lambda j, *now: (j + 1, *_several(f(j, *now)))  # noqa: E731
    first = (nbta.cast(begin, "int64"), *state)
    _, *last = nbta.while_loop(lambda j, *_: j < count, following, first, checkpoint=checkpoint)
    return last[0] if len(last) == 1 else last


def _several(found):
    return found if isinstance(found, tuple) else (found,)


@kind
def numbers(x, checkpoint):
    def outer(i, s):
        ta = each(i, lambda j, ta: ta.append(nbta.sin(x[j] * s)), growing())
        read = lambda j, s: nbta.sin(s + ta.read(j) * x[i])  # noqa: E731
        return each(i, read, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def numbers_that_the_loop_itself_appends(x, checkpoint):
    def outer(i, s):
        def step(j, ta, s):
            return ta.append(nbta.sin(s * ta.read(j))), s + ta.read(j) * x[j]

        ta, s = each(i, step, growing().append(s * x[i]), s, checkpoint=checkpoint)
        return s + 0.1 * nbta.sum(ta.stack() ** 2)

    return each(length(x), outer, x[0])


@kind
def several_at_once(x, checkpoint):
    def outer(i, s):
        ta = each(i + 2, lambda j, ta: ta.append(nbta.cos(s * j)), growing())

        def step(j, s):
            return s + x[i] * nbta.sum(nbta.sin(ta.gather(nbta.stack([0, j])) * s))

        return each(i, step, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def a_size(x, checkpoint):
    def outer(i, s):
        ta = nbta.TensorArray("float64", i + 1, clear_after_read=False, element_shape=())
        ta = ta.unstack(x[: i + 1] * s)
        step = lambda j, s: nbta.sin(s + ta.read(j) * nbta.cast(ta.size(), "float64"))  # noqa: E731
        return each(i, step, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def some_slots_unwritten(x, checkpoint):
    """Which nobody reads, of an array that knows no shape for zeros."""

    def outer(i, s):
        ta = nbta.TensorArray("float64", i + 3, clear_after_read=False)
        ta = each(i + 1, lambda j, ta: ta.write(j, nbta.sin(x[j] * s)), ta, begin=1)
        return each(i + 1, lambda j, s: s * ta.read(j) + x[i], s, checkpoint=checkpoint, begin=1)

    return each(length(x), outer, x[0])


@kind
def in_a_branch(x, checkpoint):
    def outer(i, s):
        def one():
            ta = each(i, lambda j, ta: ta.append(nbta.sin(x[j] * s)), growing())
            return each(i, lambda j, s: s + ta.read(j) * nbta.sin(s), s, checkpoint=checkpoint)

        return nbta.cond(x[i] > 0.0, one, lambda: s * x[i])

    return each(length(x), outer, x[0])


@kind
def of_a_branch(x, checkpoint):
    def outer(i, s):
        ta = growing().append(s)
        fill = lambda: each(i, lambda j, ta: ta.append(x[j] * s), ta)  # noqa: E731
        ta = nbta.cond(x[i] > 0.0, fill, lambda: ta)
        count = nbta.cast(ta.size(), "int64")
        return each(count, lambda j, s: s + ta.read(j) * nbta.sin(s), s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def three_deep(x, checkpoint):
    def outer(i, s):
        def middle(k, s):
            ta = each(k, lambda j, ta: ta.append(nbta.sin(x[j] * s)), growing())
            return each(k, lambda j, s: nbta.tanh(s + ta.read(j)), s, checkpoint=checkpoint)

        return each(i + 1, middle, s) * x[i]

    return each(np.int64(3), outer, x[0])


@kind
def of_the_outer_iteration(x, checkpoint):
    """Which inner iterations read in which loops with checkpoints are."""

    def outer(i, s):
        ta = each(i + 1, lambda j, ta: ta.append(nbta.sin(x[j] * s)), growing())
        inner = lambda k, s: each(  # noqa: E731
            i, lambda j, s: nbta.tanh(s + ta.read(j) * x[k]), s, checkpoint=checkpoint
        )
        return each(i, inner, s, checkpoint=checkpoint)

    return each(np.int64(4), outer, x[0])


@kind
def of_a_segment(x, checkpoint):
    """The outer loop runs again, too."""

    def outer(i, s):
        ta = each(i + 1, lambda j, ta: ta.append(nbta.sin(x[j] * s)), growing())
        return each(i, lambda j, s: nbta.tanh(s + ta.read(j)), s, checkpoint="sqrt")

    return each(length(x), outer, x[0], checkpoint=checkpoint)


@kind
def rows_of_one_length(x, checkpoint):
    def outer(i, s):
        ta = each(i, lambda j, ta: ta.append(nbta.sin(x * s) * x[j]), growing(None))
        read = lambda j, s: nbta.sin(s + nbta.sum(ta.read(j) * x))  # noqa: E731
        return each(i, read, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def rows_of_several_lengths(x, checkpoint):
    def outer(i, s):
        ta = growing((None,), infer_shape=False)
        ta = each(i, lambda j, ta: ta.append(nbta.sin(x[:j] * s)), ta)
        read = lambda j, s: nbta.sin(s + nbta.sum(ta.read(j)) * x[i])  # noqa: E731
        return each(i, read, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def matrices_of_several_lengths(x, checkpoint):
    """In an array of a given size, whose last slots are empty."""

    def outer(i, s):
        ta = nbta.TensorArray("float64", i + 2, clear_after_read=False, infer_shape=False)
        write = lambda j, ta: ta.write(j, np.outer(x[:j], x[j:]) * s)  # noqa: E731
        ta = each(i, write, ta)
        read = lambda j, s: nbta.sin(s + nbta.sum(ta.read(j)) * x[i])  # noqa: E731
        return each(i, read, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


def ragged(size=None):
    grows = size is None
    return nbta.TensorArray(
        "float64", 0 if grows else size, dynamic_size=grows, clear_after_read=False,
        infer_shape=False,
    )  # fmt: skip


@kind
def pieces(x, checkpoint):
    """That split writes, of several lengths, one of them without any number."""

    def outer(i, s):
        ta = ragged(3).split(nbta.sin(x * s), nbta.stack([i, 5 - i, 0]))
        read = lambda j, s: nbta.sin(s + nbta.sum(nbta.sin(ta.read(j) * s)))  # noqa: E731
        return each(np.int64(3), read, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def pieces_of_a_matrix(x, checkpoint):
    """Which a branch splits, joined again, and one of them."""

    def outer(i, s):
        rows = nbta.outer(x, x[:2] * s)
        ta = ragged()
        ta = nbta.cond(s > 0.0, lambda: ta.split(rows, [2, 3]),
                       lambda: ta.split(nbta.sin(rows), [1, 0, 4]))  # fmt: skip

        def step(j, s):
            value, lengths = ta.concat()
            weight = nbta.cast(nbta.sum(lengths * (j + 1)), "float64")
            return nbta.tanh(s + nbta.sum(nbta.sin(value * s)) + nbta.sum(ta.read(0)) / weight)

        return each(i, step, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def even_pieces(x, checkpoint):
    def outer(i, s):
        ta = growing((2,)).split(nbta.sin(x[:4] * s), [2, 2])
        step = lambda j, s: nbta.sin(s + nbta.sum(ta.concat().value * x[:4]) * x[j])  # noqa: E731
        return each(i, step, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


@kind
def rows_of_several_lengths_at_once(x, checkpoint):
    """That scatter writes in two steps, and that are read several at a time."""

    def outer(i, s):
        ta = ragged(4).scatter([3, 1], nbta.outer(x[:2], x[: i + 1] * s))
        ta = ta.scatter([0, 2], nbta.outer(x[2:4], x[i:] * s))

        def step(j, s):
            some = ta.gather(nbta.stack([j % 2, j % 2 + 2]))
            return nbta.sin(s + nbta.sum(nbta.sin(some * s)))

        return each(i, step, s, checkpoint=checkpoint)

    return each(length(x), outer, x[0])


def held(f, *args):
    """Both executors agree, and neither gives up nor runs an operation in Python."""
    slow, fast = (nbta.value_and_grad(f, compiled=compiled) for compiled in (False, True))
    with in_python():
        compare(fast(*args), slow(*args))
        compare(fast(*args), slow(*args))
        text = fast.explain()
    assert section(text, "operations that run in Python") == []
    assert [trace.runner.fallbacks for trace in fast.every_trace()] == [0]


@pytest.mark.smoke_every(2)
@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("checkpoint", CHECKPOINTS)
@pytest.mark.parametrize("name", KINDS)
def test_first_order(name, checkpoint):
    f = lambda x: KINDS[name](x, checkpoint)  # noqa: E731
    held(f, X)
    check_grads(f, (X,), order=1)
    plain = nbta.grad(lambda x: KINDS[name](x, None), compiled=False)(X)
    np.testing.assert_allclose(nbta.grad(f, compiled=False)(X), plain, rtol=1e-12)


@pytest.mark.smoke_every(3)
@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("name", KINDS)
def test_second_order(name):
    checkpoint = CHECKPOINTS[list(KINDS).index(name) % len(CHECKPOINTS)]
    f = lambda x: KINDS[name](x, checkpoint)  # noqa: E731
    check_grads(f, (X,), order=2)
    held(lambda x: nbta.sum(nbta.sin(nbta.grad(f)(x))), X)


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_other_dtypes(dtype):
    x = X.astype(dtype) * (1 + 0.3j if dtype == "complex128" else 1)

    def f(x):
        def outer(i, s):
            ta = each(i, lambda j, ta: ta.append(x[j] * s), growing(dtype=dtype))
            return each(i, lambda j, s: s + ta.read(j) * x[i] * s, s, checkpoint=2)

        return nbta.real(each(length(x), outer, x[0]))

    held(f, x)


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("name", ["numbers", "rows_of_several_lengths"])
def test_lengths_that_the_first_call_did_not_have(name):
    """One trace and one function for all, those of no iterations and of empty arrays too."""
    f = lambda x: KINDS[name](nbta.concatenate([[0.5], x]), "sqrt")  # noqa: E731
    slow, fast = (nbta.value_and_grad(f, compiled=compiled) for compiled in (False, True))
    with in_python():
        for n in (5, 2, 9, 0, 3):
            x = np.linspace(-1.0, 1.5, n)
            compare(fast(x), slow(x))


def rolled(x, first, count):
    """Of a loop with checkpoints over a list of numbers, in each of three iterations."""

    def outer(i, h):
        ta = each(count, lambda j, ta: ta.append(x[i] * nbta.cast(j % 7, "float64")), growing())
        return each(count, lambda j, h: nbta.tanh(h + ta.read(j)), h, checkpoint="sqrt")

    return nbta.sum(each(np.int64(3), outer, first))


def test_memory_stays_bounded():
    """Of 16 times as many iterations four times as many states; of the list all its numbers."""

    def held(iterations):
        slope = nbta.grad(lambda x, first: rolled(x, first, np.int64(iterations)), 0, compiled=True)
        slope(X, np.linspace(-0.5, 0.5, 1000))
        executable = slope._last.runner.ran.executable
        work = executable.borrow()
        executable.give_back(work)
        return sum(buffer.nbytes for buffer in work._buffers.values())

    few, many = held(400), held(6400)
    assert 3 * few <= many < 6 * few


def test_sums_of_an_earlier_loop_are_found(monkeypatch):
    """That the tests above would tell if a second derivative began anew in each loop."""
    monkeypatch.setattr(shadow_arrays, "_pass_on", lambda *_: None)
    f = lambda x: KINDS["numbers"](x, 2)  # noqa: E731
    with pytest.raises(AssertionError):
        held(lambda x: nbta.sum(nbta.sin(nbta.grad(f)(x))), X)


def test_a_row_too_far_is_found(monkeypatch):
    """That the tests above would tell."""
    right = saved_arrays.begins_of
    monkeypatch.setattr(saved_arrays, "begins_of", lambda dimensions: right(dimensions) * 0)
    f = lambda x: KINDS["rows_of_several_lengths"](x, 2)  # noqa: E731
    with pytest.raises(AssertionError):
        held(f, X)


def test_a_state_that_no_iteration_changes():
    """Each iteration is a segment, and what an array is known to hold does not change in it."""

    def f(c, x, y):
        def outer(t, u, total):
            rows = nbta.TensorArray("float64", size=0, dynamic_size=True, clear_after_read=False)
            fill = lambda i, rows: (i + 1, rows.write(i, nbta.sin(u * c[i])))  # noqa: E731
            _, rows = nbta.while_loop(lambda i, _: i < t + 2, fill, (0, rows))

            def inner(j, z, q):
                r = rows.read(j)
                return j + 1, nbta.tanh(z + r * y), q + nbta.sum(z * r)

            start = (0, u, total)
            _, z, q = nbta.while_loop(lambda j, *_: j < t + 2, inner, start, checkpoint=1)
            return t + 1, z, q

        return nbta.while_loop(lambda t, *_: t < 4, outer, (0, x, 0.0))[2]

    made = np.random.default_rng(3)
    args = [made.uniform(0.2, 0.9, n) for n in (5, 3, 3)]
    gradient = nbta.grad(f, (0, 1, 2))
    slope = lambda *given: sum(map(nbta.sum, gradient(*given)))  # noqa: E731
    compiled, reference = (nbta.grad(slope, (0, 1, 2), compiled=k) for k in (True, False))
    with in_python():
        found = compiled(*args)
    for one, other in zip(found, reference(*args), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
