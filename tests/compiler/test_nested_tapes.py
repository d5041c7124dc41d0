"""Gradients of loops in loops: nothing runs in Python, and values are those of differences."""

import re

import numpy as np
import pytest
from compiled_pairs import compare
from fuzz.ways import in_python
from running import written
from test_in_place import loop, section

import nbta
from nbta.compiler import array_code
from nbta.graph.graph import running
from nbta.loops import assign, call
from nbta.ops.arrays.tensor_arrays import LOOKUP, READ
from nbta.testing import check_grads

X = np.array([0.4, -0.7, 1.1, 0.25, -1.3])
M = np.linspace(-0.9, 1.1, 12).reshape(4, 3)
NESTS = {}


def nest(*args, native=True):
    """Let a function of arrays that gives a number be one of the nests.

    ``native`` says whether nothing of its gradient runs in Python.
    """

    def add(f):
        NESTS[f.__name__] = f, args, native
        return f

    return add


def length(x):
    return nbta.shape(x)[0]


def places(args):
    return tuple(k for k, value in enumerate(args) if value.dtype.kind == "f")


def held(f, *args, make=None, native=True):
    """Both executors agree; nothing runs in Python, or something does."""
    make = make or (lambda f, compiled: nbta.value_and_grad(f, places(args), compiled=compiled))
    slow, fast = make(f, compiled=False), make(f, compiled=True)
    with in_python():
        compare(fast(*args), slow(*args))
        compare(fast(*args), slow(*args))
        text = fast.explain()
    assert native in (None, section(text, "operations that run in Python") == [])


# The inner loop's iterations.


@nest(X)
def a_nest_in_a_branch(x):
    """Which the gradient's branch reads the tapes of."""

    def outer(i, s):
        return loop(i + 1, lambda j, s: s + nbta.exp(x[i] * s) * x[j], 0.1 * s)

    return nbta.cond(x[0] > 0.1, lambda: loop(length(x), outer, x[1]), lambda: x[2])


@nest(X)
def a_search_in_a_nest_in_a_branch(x):
    """The gradient's branch sees the iteration counts of this one as its results."""

    def outer(i, s):
        a = x[i] * x[i] + 1.0
        better = lambda r: (r + a / r) / 2.0  # noqa: E731
        root = nbta.while_loop(lambda r: nbta.abs(r * r - a) > 1e-3, better, a)
        return s + root * x[i] * nbta.sin(s)

    return nbta.cond(x[0] > 0.1, lambda: loop(length(x), outer, 0.3), lambda: x[1])


@nest(X)
def branches_around_each_loop(x):
    def outer(i, s):
        def inner(j, s):
            return s + nbta.exp(x[i] * s) * x[j]

        return nbta.cond(x[i] > -1.0, lambda: loop(i + 1, inner, 0.1 * s), lambda: 2.0 * s)

    def below():
        return nbta.cond(x[1] < 0.0, lambda: loop(length(x), outer, x[1]), lambda: x[0])

    return nbta.cond(x[0] > 0.1, below, lambda: x[2])


@nest(X)
def as_many_as_the_outer_iteration(x):
    def outer(i, s):
        return loop(i, lambda j, s: s + x[i] * nbta.tanh(x[j] + s), s)

    return loop(length(x), outer, 0.0)


@nest(X)
def a_constant_number(x):
    def outer(i, s):
        return loop(3, lambda j, s: s * nbta.sin(s + x[i]) + x[j], s)

    return loop(length(x), outer, 0.5)


@nest(X)
def none_at_all(x):
    def outer(i, s):
        return loop(0, lambda j, s: s * nbta.sin(s + x[i]), s) + nbta.sin(s * x[i])

    return loop(length(x), outer, 0.5)


@nest(X)
def none_in_some_outer_iterations(x):
    def outer(i, s):
        return loop(i % 3, lambda j, s: s * nbta.sin(s + x[i]), s) + x[i] * s

    return loop(length(x), outer, 0.5)


@nest(X)
def fewer_and_fewer(x):
    def outer(i, s):
        return loop(length(x), lambda j, s: nbta.tanh(s * x[j]) + x[i], s, begin=i)

    return loop(length(x), outer, 0.5)


@nest(np.array([2, 0, 3, 1, 2]), X)
def as_many_as_an_array_says(k, x):
    def outer(i, s):
        step = lambda j, s: nbta.sin(s * x[i]) + s * x[j]  # noqa: E731
        return loop(nbta.take(k, i), step, s)

    return loop(length(x), outer, 0.5)


@nest(X)
def until_something_is_small(x):
    """Newton's iterations for a root of each item."""

    def outer(i, s):
        a = x[i] * x[i] + 1.0
        root, _ = nbta.while_loop(
            lambda r, _: nbta.abs(r * r - a) > 1e-3, lambda r, _: ((r + a / r) / 2.0, a), (a, a)
        )
        return s + root * x[i] * nbta.sin(s)

    return loop(length(x), outer, 0.5)


@nest(X)
def both_until_something_is_large(x):
    def outer(i, s, t):
        inner = lambda s, t: (s * 1.5 + nbta.sin(t * x[i % 5]), t + 0.1)  # noqa: E731
        s, t = nbta.while_loop(lambda s, t: nbta.abs(s) < 2.0, inner, (s, t))
        return i + 1, s * 0.3, t

    _, s, t = nbta.while_loop(lambda i, s, t: t < 1.0, outer, (np.int64(0), x[0], 0.25 * x[1]))
    return s * t


@nest(X)
def an_outer_loop_without_iterations(x):
    def outer(i, s):
        return loop(i, lambda j, s: s + x[i] * nbta.tanh(x[j] + s), s)

    return loop(nbta.cast(x[0] > 5.0, "int64"), outer, x[1]) * x[0]


# Branches.


@nest(X)
def a_loop_in_one_branch(x):
    def outer(i, s):
        inner = lambda: loop(i + 1, lambda j, s: nbta.sin(s * x[j]) + x[i], s)  # noqa: E731
        return nbta.cond(x[i] > 0.0, inner, lambda: s * x[i])

    return loop(length(x), outer, 0.5)


@nest(X)
def loops_in_both_branches(x):
    def outer(i, s):
        one = lambda: loop(i + 1, lambda j, s: nbta.sin(s * x[j]) + x[i], s)  # noqa: E731
        other = lambda: loop(2, lambda j, s: nbta.tanh(s + x[j]) * s, s)  # noqa: E731
        return nbta.cond(x[i] > 0.0, one, other)

    return loop(length(x), outer, 0.5)


@nest(X)
def a_branch_in_the_inner_loop(x):
    def outer(i, s):
        def inner(j, s):
            return nbta.cond(x[j] * s > 0.1, lambda: nbta.sin(s * x[i]), lambda: s * s + x[j])

        return loop(i + 1, inner, s)

    return loop(length(x), outer, 0.5)


@nest(X)
def a_loop_in_branches_of_branches(x):
    def outer(i, s):
        inner = lambda: loop(i, lambda j, s: nbta.sin(s * x[j]) + x[i], s)  # noqa: E731
        some = lambda: nbta.cond(s > 0.3, inner, lambda: nbta.exp(s) * x[i])  # noqa: E731
        return nbta.cond(x[i] > 0.0, some, lambda: s * x[i])

    return loop(length(x), outer, 0.5)


@nest(X)
def a_loop_in_a_branch_of_the_inner_loop(x):
    def outer(i, s):
        def inner(j, s):
            deep = lambda: loop(j + 1, lambda k, s: nbta.tanh(s * x[k]) + x[j], s)  # noqa: E731
            return nbta.cond(x[j] > 0.0, deep, lambda: s * x[i])

        return loop(i + 1, inner, s)

    return loop(length(x), outer, 0.5)


# Deeper, and more of them.


@nest(X)
def three_deep(x):
    def outer(i, s):
        def inner(j, s):
            return loop(j + 1, lambda k, s: nbta.tanh(s * x[k] + x[j]) + x[i] * s * 0.1, s)

        return loop(i + 1, inner, s)

    return loop(4, outer, 0.5)


@nest(X)
def four_deep(x):
    def deepest(n, s):
        return loop(n + 1, lambda k, s: nbta.tanh(s * x[k] + x[n]) * s, s)

    def outer(i, s):
        return loop(i + 1, lambda j, s: loop(j + 1, deepest, s), s)

    return loop(3, outer, 0.7)


@nest(X)
def two_inner_loops(x):
    def outer(i, s):
        s = loop(i, lambda j, s: nbta.sin(s * x[j]) + x[i], s)
        t = loop(3, lambda j, t: t * s + x[j] * nbta.cos(t), s)
        return s * nbta.tanh(t)

    return loop(length(x), outer, 0.5)


@nest(X)
def the_second_inner_loop_is_as_long_as_the_first_says(x):
    def outer(i, s):
        s, n = loop(i + 1, lambda j, s, n: (nbta.sin(s * x[j]) + x[i], n + j % 2), s, np.int64(0))
        return loop(n, lambda j, s: s * nbta.cos(s) + x[j], s)

    return loop(length(x), outer, 0.5)


@nest(X)
def an_outer_read_of_what_inner_iterations_gave(x):
    """The inner loop fills an array that the outer iteration reads."""

    def outer(i, s):
        def inner(j, t):
            return nbta.set_item(t, j, nbta.sin(s * x[j]) + x[i])

        t = loop(length(x), inner, nbta.zeros_like(x))
        return s * 0.5 + t[i] * t[0] + nbta.sum(t * t) * 0.1

    return loop(length(x), outer, 0.5)


@nest(X)
def arrays_of_inner_iterations(x):
    def outer(i, s):
        def inner(c, v):
            c = nbta.tanh(c * v + s)
            return c, c * x[i]

        c, ys = nbta.scan(inner, s, x)
        return c + nbta.sum(ys * x) * 0.2

    return loop(length(x), outer, 0.5)


@nest(M)
def scans_in_scans(m):
    def outer(c, row):
        return nbta.scan(lambda c, v: (nbta.sin(c * v) + c, c * c), c, row)

    c, ys = nbta.scan(outer, 0.5, m)
    return c * nbta.sum(ys)


@nest(M)
def rows_in_the_inner_loop(m):
    def outer(i, h):
        return loop(i + 1, lambda j, h: nbta.tanh(h * m[j] + m[i]), h)

    return nbta.sum(loop(4, outer, nbta.ones(3)))


@nest(X)
def a_table(x):
    """Each item of the inner loop needs its neighbours: soft minimum along paths."""
    n = length(x)

    def outer(i, t):
        def inner(j, t):
            least = -nbta.logsumexp(nbta.stack([-t[i - 1, j], -t[i, j - 1], -t[i - 1, j - 1]]))
            return nbta.set_item(t, (i, j), (x[i - 1] - x[j - 1]) ** 2 + least)

        return loop(n + 1, inner, t, begin=1)

    t = nbta.set_item(nbta.fill((n + 1, n + 1), 10.0), (0, 0), 0.0)
    return loop(n + 1, outer, t, begin=1)[-1, -1]


@nest(X)
def an_inner_loop_of_one_iteration(x):
    def outer(i, s):
        return loop(1, lambda j, s: nbta.sin(s * x[i]), s)

    return loop(length(x), outer, 0.5)


@nest(X, np.float64(0.3))
def captured_in_the_inner_loop_alone(x, w):
    def outer(i, s):
        y = nbta.sin(x * s)
        return loop(i + 1, lambda j, s: nbta.tanh(s * w + y[j]), s)

    return loop(length(x), outer, 0.5)


@nest(X)
def after_one_another(x):
    def first(i, s):
        return loop(i, lambda j, s: s + x[i] * nbta.tanh(x[j] + s), s)

    def second(i, s):
        return loop(2, lambda j, s: s * nbta.cos(s + x[i]), s)

    return loop(3, second, loop(length(x), first, 0.1))


# Scans, maps, and values of other kinds.


def pushed(c, v):
    return nbta.sin(c * v) + c, c * c


@nest(M)
def backwards_in_backwards(m):
    rows = lambda c, row: nbta.scan(pushed, c, row, reverse=True)  # noqa: E731
    return nbta.sum(nbta.scan(rows, 0.5, m, reverse=True)[1])


@nest(np.stack([M, M[::-1] * 0.5]))
def three_scans(t):
    rows = lambda c, row: nbta.scan(pushed, c, row)  # noqa: E731
    return nbta.sum(nbta.scan(lambda c, m: nbta.scan(rows, c, m), 0.5, t)[1])


@nest(M)
def a_scan_in_a_branch_of_a_scan(m):
    def outer(c, row):
        inner = lambda: nbta.scan(pushed, c, row)  # noqa: E731
        return nbta.cond(c > 0.2, inner, lambda: (c + 1.0, row * c))

    return nbta.sum(nbta.scan(outer, 0.5, m)[1])


@nest(M)
def a_map_in_a_scan(m):
    def outer(c, row):
        return c * 0.5 + nbta.sum(nbta.map_fn(lambda v: nbta.sin(v * c), row)), None

    return nbta.scan(outer, 0.5, m)[0]


@nest(M)
def a_fold_in_a_scan(m):
    inner = lambda c, row: nbta.foldl(lambda a, v: nbta.tanh(a * v + c), row, c)  # noqa: E731
    return nbta.scan(lambda c, row: (inner(c, row), None), 0.5, m)[0]


@nest(M)
def matrices(m):
    def outer(i, h):
        return loop(i + 1, lambda j, h: nbta.tanh(h @ m[:3] + m[j]), h)

    return nbta.sum(loop(3, outer, m))


@nest(X)
def indices_that_data_decide(x):
    def outer(i, s):
        def inner(j, s):
            k = nbta.cast(nbta.floor(nbta.abs(s) * 3.0), "int64") % 5
            return s * nbta.sin(x[k]) + x[j]

        return loop(3, inner, s)

    return loop(length(x), outer, 0.5)


@nest(X)
def truth_values(x):
    def outer(i, s):
        return loop(3, lambda j, s: nbta.where(s > x[j], s * x[i], nbta.sin(s)), s)

    return loop(length(x), outer, 0.5)


@nest(X)
def an_array_of_each_outer_iteration(x):
    def outer(i, s):
        t = nbta.TensorArray(
            "float64", 0, dynamic_size=True, element_shape=(), clear_after_read=False
        )
        append = lambda j, t, s: (t.append(nbta.sin(s * x[j])), s + x[i] * 0.1)  # noqa: E731
        t, s = loop(i + 1, append, t, s)
        return s + nbta.sum(t.stack() * t.read(0))

    return loop(length(x), outer, 0.5)


@nest(X)
def items_replaced_until_they_are_small(x):
    def outer(i, a):
        smaller = lambda a: nbta.set_item(a, i, a[i] * 0.7)  # noqa: E731
        return nbta.while_loop(lambda a: a[i] * a[i] > 0.1, smaller, a)

    return nbta.sum(loop(length(x), outer, x))


@nest(X)
def items_replaced_in_loops_of_branches(x):
    def outer(i, a):
        one = lambda: loop(i, lambda j, a: nbta.set_item(a, j, a[i] * a[j]), a)  # noqa: E731
        other = lambda: loop(2, lambda j, a: nbta.add_item(a, j, nbta.sin(a[i])), a)  # noqa: E731
        return nbta.cond(a[i] > 0.1, one, other)

    return nbta.sum(loop(length(x), outer, x))


def pairs(x):
    def outer(i, s):
        return loop(i, lambda j, s: s + x[i] * nbta.tanh(x[j] + s), s)

    return loop(length(x), outer, 0.0)


def one_after_another(x):
    s = loop(length(x), lambda i, s: nbta.sin(s) * x[i], x[0])
    return loop(3, lambda i, s: nbta.tanh(s * x[i]) + s, s)


def of_vectors(x):
    return nbta.sum(loop(length(x), lambda i, h: nbta.tanh(h * x) * x[i], x))


# Arrays that grow in an outer iteration.


@nest(X)
def lists_of_numbers(x):
    s = 0.0
    for i in range(len(x)):
        values = []
        for j in range(i + 1):
            if x[j] > -1.0:
                values.append(np.sin(x[j] * x[i]))
        s += np.sum(np.array(values) ** 2)
    return s


@nest(X)
def lists_of_rows(x):
    s = 0.0
    for i in range(len(x)):
        rows = []
        for j in range(i + 1):
            rows.append(np.sin(x * x[i] * (j + 1)))
        s += np.sum(np.stack(rows) ** 2)
    return s


@nest(X)
def lists_that_several_loops_fill(x):
    s = 0.0
    for i in range(len(x)):
        values, k = [x[i] * x[0]], 0
        for j in range(i):
            values.append(x[j] * x[i])
        values.append(x[i])
        while k < 3 and x[k] * x[i] < 0.9:
            values.append(x[k] * values[k])
            k += 1
        s += values[-1] * values[0] + np.sum(np.array(values)) ** 2
    return s


@nest(X)
def lists_of_what_lists_gave(x):
    s = 0.0
    for i in range(len(x)):
        outer = []
        for j in range(i + 1):
            inner = []
            for k in range(j + 1):
                inner.append(x[k] * x[i])
            outer.append(np.sum(np.array(inner) ** 2) * x[j])
        s += np.sum(np.array(outer) * np.array(outer))
    return s


@nest(X)
def lists_in_a_branch(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.3:
            values = []
            for j in range(i + 1):
                if x[j] < x[i]:
                    values.append(x[j] * x[i])
            if len(values) > 0:
                s += values[-1] ** 3 + np.sum(np.array(values))
        else:
            s += x[i] ** 2
    return s


@nest(X)
def stacks_that_shrink(x):
    s = 0.0
    for i in range(len(x)):
        stack = [abs(x[i])]
        while len(stack) > 0:
            v = stack.pop()
            if v > 0.23:
                stack.append(v * 0.5)
                stack.append(v * 0.3)
            s += v * v
    return s


@nest(X)
def lists_of_parts(x):
    s = 0.0
    for i in range(1, len(x)):
        parts = []
        for j in range(1, i + 1):
            parts.append(x[:j] * x[i])
        for part in parts:
            s += np.sum(part * part)
    return s


@nest(X)
def lists_of_parts_of_which_few_are_read(x):
    s = 0.0
    for i in range(1, len(x)):
        parts = [x[i:] * x[0]]
        for j in range(1, i + 1):
            if x[j] > -1.0:
                parts.append(np.sin(x[:j] * x[i]))
        s += np.sum(parts[-1] * x[0]) * np.sum(parts[0] ** 2)
    return s


@nest(X)
def lists_of_parts_in_a_branch(x):
    s = 0.0
    for i in range(1, len(x)):
        if x[i] > 0.3:
            parts = []
            for j in range(1, i + 1):
                parts.append(np.outer(x[:j], x[i:]))
            for part in parts:
                s += np.sum(part * part * s)
        else:
            s += np.sin(x[i])
    return s


@nest(X)
def two_uses_of_a_list_in_branches(x):
    s = 0.0
    for i in range(len(x)):
        values = [x[i] * s]
        for j in range(i + 1):
            if x[j] < x[i]:
                values.append(x[j] * values[-1] + x[i])
        if s > 0.1:
            s += values[-1] * values[0]
        else:
            s += np.sum(np.array(values) ** 2)
    return s


def filled_with_rows(ta, i, s, x, write):
    """An array with rows of 1, 2, ... items, and a number that follows from them."""

    def fill(j, s, ta):
        return nbta.sin(s + x[j]), write(ta, j, x[: j + 1] * nbta.sin(s), s)

    s, ta = loop(i + 1, fill, s, ta)
    return ta, s


def squared(ta, begin, count, s):
    def add(k, s):
        row = ta.read(k)
        return s + 0.3 * nbta.sum(row * nbta.sin(row * s))

    return loop(count, add, s, begin=begin)


@nest(X)
def rows_that_reads_clear(x):
    """Of which the first is not read."""

    def outer(i, s):
        ta = nbta.TensorArray("float64", 0, True, element_shape=(None,), infer_shape=False)
        ta, s = filled_with_rows(ta, i, s, x, lambda ta, j, row, _: ta.append(row))
        return squared(ta, 1, i + 1, s)

    return loop(length(x), outer, 0.3)


@nest(X)
def rows_in_an_array_of_a_given_size(x):
    """Whose last slot is empty, and which branches fill."""

    def outer(i, s):
        def write(ta, j, row, s):
            return nbta.cond(s > -5.0, lambda: ta.write(j, row), lambda: ta)

        ta = nbta.TensorArray("float64", i + 2, element_shape=(None,), infer_shape=False)
        ta, s = filled_with_rows(ta, i, s, x, write)
        return squared(ta, 0, i + 1, s)

    return loop(length(x), outer, 0.3)


@nest(X)
def rows_after_an_empty_slot(x):
    def outer(i, s):
        ta = nbta.TensorArray(
            "float64", 0, True, False, element_shape=(None,), infer_shape=False
        )  # fmt: skip
        ta, s = filled_with_rows(ta, i, s, x, lambda ta, j, row, _: ta.write(j + 1, row))
        return squared(ta, 1, i + 2, s)

    return loop(length(x), outer, 0.3)


@pytest.mark.slow_but_every(3)
@pytest.mark.smoke_every(5)
@pytest.mark.parametrize("name", NESTS)
def test_first_order(name):
    f, args, native = NESTS[name]
    held(f, *args, native=native)
    check_grads(f, args, order=1)


def test_numbers_of_other_dtypes():
    for dtype in ("float32", "complex128"):
        x = X.astype(dtype) * (1 + 0.3j if dtype == "complex128" else 1)

        def f(x):
            step = lambda i, s: loop(i, lambda j, s: s * x[j] + x[i], s)  # noqa: E731
            return nbta.real(loop(length(x), step, x[0] * 0.5))

        make = lambda f, compiled: nbta.value_and_grad(f, compiled=compiled)  # noqa: E731
        held(f, x, make=make, native=True)


#: Each kind of iterations and of branches once, as second derivatives take long; and whether
#: nothing of these runs in Python.
SECOND = {
    "as_many_as_the_outer_iteration": True, "none_in_some_outer_iterations": True,
    "until_something_is_small": True, "a_loop_in_one_branch": True, "a_table": True,
    "three_deep": True, "fewer_and_fewer": True, "both_until_something_is_large": True,
    "arrays_of_inner_iterations": True, "a_nest_in_a_branch": True,
    "a_map_in_a_scan": True, "a_scan_in_a_branch_of_a_scan": True,
    "a_search_in_a_nest_in_a_branch": True, "a_loop_in_a_branch_of_the_inner_loop": True,
    "lists_of_numbers": True, "lists_of_rows": True, "lists_that_several_loops_fill": True,
    "lists_of_what_lists_gave": True, "lists_in_a_branch": True, "stacks_that_shrink": True,
    "an_array_of_each_outer_iteration": True, "lists_of_parts": True,
    "lists_of_parts_of_which_few_are_read": True, "lists_of_parts_in_a_branch": True,
    "two_uses_of_a_list_in_branches": True, "rows_that_reads_clear": True,
    "rows_in_an_array_of_a_given_size": True, "rows_after_an_empty_slot": True,
}  # fmt: skip


@pytest.mark.smoke_every(2)
@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("name", SECOND)
def test_second_order(name):
    f, args, _ = NESTS[name]
    check_grads(f, args, order=2)
    wanted = places(args)
    slope = lambda *a: sum(nbta.sum(nbta.sin(g)) for g in nbta.grad(f, wanted)(*a))  # noqa: E731
    held(slope, *args, native=SECOND[name])


@pytest.mark.parametrize("f", [pairs, one_after_another, of_vectors])
def test_second_derivatives_add_to_tensors(f):
    """Where arrays of gradients would note of each slot whether it was written."""
    slope = lambda x: nbta.sum(nbta.grad(f)(x) * X)  # noqa: E731
    second = nbta.function(nbta.grad(slope), compiled=True)
    with in_python():
        second(X)
        program = second._compiled_program().program
    assert not any(op.record is LOOKUP for op in running(program))


#: Of numbers, of rows, in branches, and with arrays of inner iterations.
THIRD = [
    pairs, rows_in_the_inner_loop, a_loop_in_one_branch, a_nest_in_a_branch, a_map_in_a_scan
]  # fmt: skip


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("f", THIRD)
def test_third_order(f):
    """By the tangent of the gradient: gradients pass by flows of its tangents, too."""
    args = NESTS[f.__name__][1] if f.__name__ in NESTS else (X,)

    def along(x):
        return nbta.sum(nbta.hvp(f, (x,), args)[0] * args[0])

    check_grads(along, args, order=1)
    held(along, *args)


def test_iterations_that_take_gradients_keep_their_numbers_for_arrays_of_all_iterations():
    def f(x):
        def iteration(i, total, ta):
            s = x[i]
            ta = ta.write(i, s)
            (slope,) = nbta.gradients([(2 * ta.read(i)) ** 2], [s])
            return i + 1, total + slope * nbta.cast(i + 1, x.dtype), ta

        ta = nbta.TensorArray("float64", length(x), element_shape=(), clear_after_read=False)
        more = lambda i, *_: i < length(x)  # noqa: E731
        return nbta.while_loop(more, iteration, (np.int64(0), 0.0, ta))[1]

    make = lambda f, compiled: nbta.function(f, compiled=compiled)  # noqa: E731
    with in_python():
        found = make(f, True)
        assert found(X) == pytest.approx(8.0 * X @ np.arange(1, 6))
    assert any(
        "GradientIteration" in row
        for row in section(found.explain(), "operations that run in Python")
    )
    held(f, X, make=make, native=False)


def test_iterations_that_take_gradients_of_loops_of_their_own_call_no_python():
    """What an iteration makes needs no number."""

    def f(x):
        def inner(y):
            return loop(length(x), lambda j, s: s * nbta.sin(x[j]) + y, y * y)

        slope = lambda s: nbta.gradients([inner(s)], [s])[0]  # noqa: E731
        return loop(3, lambda i, s: s + slope(nbta.sin(s) + x[i]), x[0])

    held(f, X, make=lambda f, compiled: nbta.function(f, compiled=compiled), native=True)
    held(f, X, native=None)
    check_grads(f, (X,), order=1)


# With other options.


def with_checkpoints(outer, inner):
    """The nest of pairs with ``checkpoint=`` on its loops."""

    def f(x):
        n = length(x)

        def inside(i, s):
            following = lambda j, s: (j + 1, s + x[i] * nbta.tanh(x[j] + s))  # noqa: E731
            first = (np.int64(0), s)
            return nbta.while_loop(lambda j, s: j < i, following, first, checkpoint=inner)[1]

        following = lambda i, s: (i + 1, inside(i, s))  # noqa: E731
        first = (np.int64(0), 0.0)
        return nbta.while_loop(lambda i, s: i < n, following, first, checkpoint=outer)[1]

    return f


CHECKPOINTS = [
    ("sqrt", None), (2, None), ("online", None), (1, None), (None, "sqrt"), (None, 2),
    (None, "online"), ("sqrt", "sqrt"), (2, "online"), ("online", 1),
]  # fmt: skip


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize(("outer", "inner"), CHECKPOINTS)
def test_checkpoints(outer, inner):
    """The numbers are those without."""
    f = with_checkpoints(outer, inner)
    held(f, X)
    compare(nbta.grad(f, compiled=False)(X), nbta.grad(pairs, compiled=False)(X))


def bent(f):
    """A number that second derivatives of a function decide the slope of."""
    return lambda *args: nbta.sum(nbta.sin(nbta.grad(f)(*args)))


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize(("outer", "inner"), CHECKPOINTS)
def test_second_derivatives_with_checkpoints(outer, inner):
    f = with_checkpoints(outer, inner)
    held(bent(f), X)
    expected = nbta.grad(bent(pairs), compiled=False)(X)
    np.testing.assert_allclose(nbta.grad(bent(f), compiled=False)(X), expected, rtol=1e-9)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("checkpoint", ["sqrt", "online"])
def test_memory_of_second_derivatives_with_checkpoints(checkpoint):
    """Of 16 times the iterations four times the states, and four times the values of iterations."""

    def f(v, x):
        iteration = lambda h, t: nbta.tanh(v * h + t)  # noqa: E731
        return nbta.sum(nbta.foldl(iteration, x, v, checkpoint=checkpoint))

    def held(iterations):
        slope(np.linspace(-0.5, 0.5, 50), np.linspace(-1.0, 1.0, iterations))
        executable = slope._last.runner.ran.executable
        work = executable.borrow()
        executable.give_back(work)
        return sum(buffer.nbytes for buffer in work._buffers.values())

    slope = nbta.grad(bent(f), compiled=True)
    few, many = held(400), held(6400)
    assert 4 * few <= many < 6 * few


def test_second_derivatives_of_checkpoints():
    """What looks up a gradient array need not see the forward array's loop."""

    def f(x):
        row = lambda h, _: nbta.foldl(lambda h, v: nbta.tanh(h * v), x, h)  # noqa: E731
        return nbta.foldl(row, x[:3], 0.5, checkpoint=2)

    held(bent(f), X)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("axis", [0, 1])
def test_batches(axis):
    """The gradient of a batch is the sum of those of its items."""
    rows = np.stack([X, X[::-1], 0.5 * X], axis)
    f = lambda w, x: pairs(w * x) * w[0]  # noqa: E731
    w = np.array([0.5, 1.5, -0.5, 1.0, 0.25])
    each = [nbta.value_and_grad(f, compiled=False)(w, x) for x in np.moveaxis(rows, axis, 0)]
    batched = nbta.value_and_grad(f, batch_axis=(None, axis), compiled=True)
    value, slope = batched(w, rows)
    np.testing.assert_allclose(value, sum(v for v, _ in each), rtol=1e-10)
    np.testing.assert_allclose(slope, sum(g for _, g in each), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("threads", [None, 2])
def test_maps(threads):
    def f(m):
        return nbta.sum(nbta.map_fn(pairs, m, parallel_iterations=threads))

    held(f, M, native=None)
    check_grads(f, (M,), order=1)
    compare(nbta.grad(f, compiled=False)(M), np.stack([nbta.grad(pairs)(row) for row in M]))


def test_lengths_that_the_first_call_did_not_have():
    """One trace and one function for all of them."""
    slow, fast = (nbta.value_and_grad(pairs, compiled=c) for c in (False, True))
    with in_python():
        for n in (5, 2, 9, 0, 3, 40):
            x = np.linspace(-1.0, 1.5, n)
            compare(fast(x), slow(x))


def test_a_failure_deep_inside_names_the_iteration():
    def f(x):
        def outer(i, s):
            return loop(i, lambda j, s: s * x[i + j], s)

        return loop(length(x), outer, 1.0)

    for compiled in (False, True):
        with in_python(), pytest.raises(nbta.InvalidArgumentError, match="no index 5"):
            nbta.grad(f, compiled=compiled)(X)


# Tapes of short rows.


def moved_rows(rows, steps):
    """A nest whose inner iterations keep rows, and rows of earlier ones; the first may be long.

    ``steps`` tells how many inner iterations each outer one makes.
    """
    state, total = rows * 1.0, 0.0
    for i in range(steps.shape[0]):
        for _ in range(steps[i]):
            state = np.tanh(state + np.sin(np.roll(state, 1))) * 0.9
            total += np.sum(state * state) * np.max(state)
    return total


def moved_until(rows, steps):
    """A loop whose iterations nobody knows ahead."""
    state, count = rows * 1.0, 0
    while np.sum(state * state) > 0.05 and count < 200:
        state = np.tanh(state + np.sin(np.roll(state, 1)) * 0.1) * 0.8
        count += 1
    return np.sum(state * np.cos(state))


def compiled_with(f, rows, steps, second=False):
    """Value and gradient for rows of a known shape: compiled, and one by one.

    With ``second`` that of the gradient's squares besides; no tape is packed then.
    """
    with nbta.Graph().as_default() as graph:
        x, s = nbta.placeholder(rows.dtype, rows.shape), nbta.placeholder("int64", (None,))
        loss = nbta.function(f)(x, s)
        (first,) = nbta.gradients(loss, [x])
        wanted = [loss, first, *(nbta.gradients(nbta.sum(first * first), [x]) if second else ())]
    session = nbta.Session(graph)
    feeds = {x: rows, s: steps}
    found, expected = (session.run(wanted, feeds, compiled=compiled) for compiled in (True, False))
    return found, expected, session


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3,), (17,), (2, 3)])
@pytest.mark.parametrize("f", [moved_rows, moved_until], ids=lambda f: f.__name__)
def test_tapes_of_short_rows_give_the_same(f, shape, dtype):
    rows = np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)
    close = 1e-11 if dtype == "float64" else 2e-3
    for steps in ([2, 0, 3], [], [700, 400]):
        found, expected, session = compiled_with(f, rows, np.array(steps, np.int64))
        assert session.last.fallbacks == 0
        for one, other in zip(found, expected, strict=True):
            scale = max(1.0, np.abs(other).max())
            np.testing.assert_allclose(one, other, rtol=close, atol=close * scale)


def turned(rows, steps):
    state = rows * 1.0
    for i in range(steps.shape[0]):
        state = np.tanh(state) * np.sin(state + i)
    return np.sum(state)


@pytest.mark.parametrize("f", [moved_rows, moved_until, turned], ids=lambda f: f.__name__)
def test_second_derivatives_of_short_rows(f):
    rows, steps = np.array([0.1, 0.9, -0.4]), np.array([2, 0, 3])
    found, expected, session = compiled_with(f, rows, steps, second=True)
    assert session.last.fallbacks == 0
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


@pytest.mark.parametrize(("length", "is_packed"), [(1, True), (16, True), (17, False)])
def test_short_rows_lie_one_after_the_other(length, is_packed):
    f, rows = turned, np.linspace(0.1, 0.9, length)
    with nbta.Graph().as_default() as graph:
        x, s = nbta.placeholder("float64", (length,)), nbta.placeholder("int64", (None,))
        loss = nbta.function(f)(x, s)
        wanted = [loss, *nbta.gradients(loss, [x])]
    session = nbta.Session(graph)
    found = session.run(wanted, {x: rows, s: np.zeros(9, np.int64)}, compiled=True)
    check_grads(lambda x: f(x, np.zeros(9, np.int64)), (rows,))
    np.testing.assert_allclose(found[0], f(rows, np.zeros(9, np.int64)), rtol=1e-13)
    (compiled,) = session.last.compiled
    assert ("slot(w" in re.sub(r"slot\(w, \d+, 6,", "", compiled.generated.source)) != is_packed


def test_a_row_that_is_read_in_the_wrong_iteration_is_found(monkeypatch):
    """That the tests above would tell."""
    read = array_code._PACKED[READ]

    def shifted(code, op, array):
        read(code, op, array)
        value = code.values[op.outputs[0]]
        if array.rank:
            code.add(assign(value.offset, call("max", 0, value.offset - array.row[0])))

    monkeypatch.setitem(array_code._PACKED, READ, shifted)
    found, expected, _ = compiled_with(turned, np.array([0.1, 0.9, -0.4]), np.array([3, 2, 1]))
    assert not np.allclose(found[1], expected[1])


#: A loop over rows of other lengths each time, whose second derivatives need a gradient array.
SHRINKING = """
row = x
for k in range(len(x) - 2):
    row = np.sin(row[1:] * row[0] * c)
    total += np.sum(row * np.exp(row)) * c
"""
#: Where it is.
AROUND = {
    "branch": ["if c > 0.5:", "    total = np.sum(x) * c", "else:", "    {loop}"],
    "branches": ["if c > 0.5:", "    {loop}", "    total *= c", "else:", "    {loop}"],
    "twice": ["if c > 0.5:", "    {loop}", "    {loop}", "else:", "    total = c"],
    "branch in a branch": [
        "if x[0] < 5.0:", "    if c > 0.5:", "        {loop}", "    else:", "        total += c",
        "else:", "    total = x[0]",
    ],
    "branch in a loop": [
        "for i in range(3):", "    c *= 1.3", "    if c > 0.5:", "        total += np.sum(x) * c",
        "    else:", "        {loop}",
    ],
    "loop in a branch in a loop": [
        "for j in range(2):", "    c *= 1.2", "    if c > 0.5:", "        total += np.sum(x) * c",
        "    else:", "        for i in range(3):", "            c *= 1.1", "            {loop}",
    ],
}  # fmt: skip


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("place", AROUND)
def test_second_derivatives_of_loops_over_rows_of_several_lengths_in_branches(place, tmp_path):
    lines = ["total = 0.0"]
    for line in AROUND[place]:
        indent, inner, _ = line.partition("{loop}")
        lines += [indent + part for part in SHRINKING.strip().split("\n")] if inner else [line]
    source = "\n    ".join(["def f(x, c):", *lines, "return total * c"])
    f = written(tmp_path, f"import numpy as np\n\n\n{source}\n")
    gradient = nbta.grad(f, (0, 1))

    def slope(x, c):
        by_row, by_number = gradient(x, c)
        return nbta.sum(by_row * x) + by_number

    reference, compiled = (nbta.grad(slope, (0, 1), compiled=kind) for kind in (False, True))
    for c in (0.3, 0.8):
        row = np.linspace(0.1, 0.9, 6)
        for one, other in zip(compiled(row, c), reference(row, c), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)
    check_grads(f, (row, 0.3), order=2)
