"""Code that changes arrays where they are: results of all kinds of programs, and no hidden copies.

Each program stands beside the same one in plain NumPy, which changes arrays in place. A copy in a
loop that has to stay is named by `explain()` with its reason.
"""

import numpy as np
import pytest
from compact import compact_source
from compiled_pairs import Pair, compare
from fuzz.ways import in_python

import nbta
from nbta.testing import check_grads

X = np.array([0.4, -0.7, 1.1, 0.25, -1.3])
Y = np.array([1.2, 0.3, -0.6, 0.9, 0.5])
M = np.linspace(-1.0, 1.5, 12).reshape(4, 3)


def loop(n, body, *start, begin=0):
    """What ``body(i, *arrays)`` leaves of some arrays after iterations ``begin`` to ``n``."""
    whole = lambda i, *arrays: (i + 1, *_tuple(body(i, *arrays)))  # noqa: E731
    first = nbta.cast(begin, "int64")
    _, *arrays = nbta.while_loop(lambda i, *_: i < n, whole, (first, *start))
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)


def length(x):
    return nbta.shape(x)[0]


def section(text, title):
    """The lines below a title of `explain()`."""
    found, inside = [], False
    for line in text.splitlines():
        inside = line.startswith(" ") if inside else False
        if inside:
            found.append(line.strip())
        inside = inside or line.startswith(title)
    return found


def copies(f):
    """What `explain()` says of copies in loops."""
    return section(f.explain(), "copies of whole tensors in loops")


def held(f, *args, make=nbta.function, copied=()):
    """What a function gives in both executors, the same, and without copies but those named."""
    before = [np.copy(value) for value in args]
    expected = make(f, compiled=False)(*args)
    fast = make(f, compiled=True)
    with in_python():
        found, again = fast(*args), fast(*args)
        lines = copies(fast)
    compare(found, expected)
    compare(again, found)
    for value, copy in zip(args, before, strict=True):
        np.testing.assert_array_equal(value, copy)
    assert len(lines) == len(copied), lines
    for line, words in zip(lines, copied, strict=True):
        assert all(word in line for word in words), line
    return found


def summed(f):
    """A number that depends on all that a function gives."""

    def number(*args):
        found = [nbta.cast(y, "float64") for y in _tuple(f(*args))]
        return nbta.add_n([nbta.sum(nbta.sin(y) * (k + 1.0)) for k, y in enumerate(found)])

    return number


class Program:
    """A function and what plain NumPy makes of the same arguments.

    Parameters
    ----------
    f : callable
    plain : callable
        Gets copies of the arguments, which it may change.
    args : tuple
    copied : tuple of tuple of str
        Of each copy in a loop that has to stay, words of the line that says so.
    backward : tuple of tuple of str, optional
        The same where the gradient is computed too.
    """

    def __init__(self, f, plain, *args, copied=(), backward=None):
        self.f, self.plain, self.args, self.copied = f, plain, args, copied
        self.backward = copied if backward is None else backward

    def expected(self):
        return self.plain(*map(np.copy, self.args))


PROGRAMS = {}
#: What a line says of a variable, or a result, that begins an iteration as what another one was.
MOVED = ("takes another one's place",)


def program(*args, **copies):
    """Let a function that gives a function and its plain counterpart be a program."""

    def add(make):
        PROGRAMS[make.__name__] = Program(*make(), *args, **copies)
        return make

    return add


# One loop.


@program(X)
def a_recurrence():
    def f(x):
        a = nbta.set_item(nbta.zeros_like(x), 0, x[0])
        step = lambda i, a: nbta.set_item(a, i, nbta.sin(a[i - 1]) * x[i] + x[i])  # noqa: E731
        return loop(length(x), step, a, begin=1)

    def plain(x):
        a = np.zeros_like(x)
        a[0] = x[0]
        for i in range(1, len(x)):
            a[i] = np.sin(a[i - 1]) * x[i] + x[i]
        return a

    return f, plain


@program(X)
def an_argument_is_the_variable():
    def f(x):
        return loop(length(x), lambda i, a: nbta.set_item(a, i, a[i] * a[0]), x)

    def plain(x):
        for i in range(len(x)):
            x[i] = x[i] * x[0]
        return x

    return f, plain


@program(X)
def the_variable_and_what_it_began_with():
    def f(x):
        a = nbta.tanh(x)
        return loop(length(x), lambda i, a: nbta.add_item(a, i, a[0] * x[i]), a), a

    def plain(x):
        a = np.tanh(x)
        b = a.copy()
        for i in range(len(x)):
            b[i] += b[0] * x[i]
        return b, a

    return f, plain


@program(X)
def an_array_made_in_each_iteration():
    def f(x):
        def step(i, s):
            t = nbta.set_item(nbta.sin(x * s), i, s)
            t = nbta.add_item(t, 0, x[i])
            return nbta.sum(t * x)

        return loop(length(x), step, 0.5)

    def plain(x):
        s = 0.5
        for i in range(len(x)):
            t = np.sin(x * s)
            t[i] = s
            t[0] += x[i]
            s = np.sum(t * x)
        return np.float64(s)

    return f, plain


@program(X, copied=[("SetItem", "Sin")])
def an_array_that_each_iteration_begins_with():
    """What no iteration changes is computed once, before the loop, and copied."""

    def f(x):
        def step(i, s):
            return nbta.sum(nbta.set_item(nbta.sin(x), i, s))

        return loop(length(x), step, 0.5)

    def plain(x):
        s = 0.5
        for i in range(len(x)):
            t = np.sin(x)
            t[i] = s
            s = np.sum(t)
        return np.float64(s)

    return f, plain


@program(X)
def write_after_read():
    def f(x):
        def step(i, a, s):
            old = a[i]
            return nbta.set_item(a, i, s), s + old * a[0]

        return loop(length(x), step, x, 0.5)

    def plain(x):
        s = 0.5
        for i in range(len(x)):
            old, first = x[i], x[0]
            x[i] = s
            s = s + old * first
        return x, np.float64(s)

    return f, plain


@program(X)
def a_read_that_stands_after_the_write():
    """It can come before it, as it reads the old array."""

    def f(x):
        def step(i, a, s):
            new = nbta.set_item(a, i, s * 0.5)
            return new, s + nbta.sin(a[i])

        return loop(length(x), step, x, 0.5)

    def plain(x):
        s = 0.5
        for i in range(len(x)):
            old = x[i]
            x[i] = s * 0.5
            s = s + np.sin(old)
        return x, np.float64(s)

    return f, plain


@program(X, backward=[("SetItem",)])
def a_whole_read_after_the_write():
    def f(x):
        def step(i, a, s):
            new = nbta.set_item(a, i, s * 0.5)
            return new, nbta.sum(a * x)

        return loop(length(x), step, x, 0.5)

    def plain(x):
        a, s = x.copy(), 0.5
        for i in range(len(x)):
            whole = np.sum(a * x)
            a[i] = s * 0.5
            s = whole
        return a, np.float64(s)

    return f, plain


@program(X, copied=[("SetItem", "is needed later")])
def the_old_array_goes_on():
    def f(x):
        return loop(length(x), lambda i, a, b: (nbta.set_item(a, i, b[i] + 1.0), a), x, x * 2.0)

    def plain(x):
        a, b = x, x * 2
        for i in range(len(x)):
            new = a.copy()
            new[i] = b[i] + 1
            a, b = new, a
        return a, b

    return f, plain


@program(X, copied=[("SetItem", "is needed later")])
def an_old_read_that_needs_the_new_value():
    """The index of the read comes of the new array, so the old one must stay."""

    def f(x):
        def step(i, a, s):
            new = nbta.set_item(a, i, s)
            k = nbta.argmax(new)
            return new, s * 0.5 + a[k]

        return loop(length(x), step, x, 2.0)

    def plain(x):
        a, s = x, 2.0
        for i in range(len(x)):
            new = a.copy()
            new[i] = s
            s = s * 0.5 + a[np.argmax(new)]
            a = new
        return a, np.float64(s)

    return f, plain


@program(X, Y)
def a_swap():
    def f(x, y):
        return loop(7, lambda i, a, b: (b, nbta.set_item(a, i % 5, b[0] * 0.5)), x, y)

    def plain(x, y):
        for i in range(7):
            x[i % 5] = y[0] * 0.5
            x, y = y, x
        return x, y

    return f, plain


@program(X, Y)
def two_arrays_that_read_one_another():
    def f(x, y):
        def step(i, a, b):
            return nbta.set_item(a, i, b[i] * 0.5), nbta.add_item(b, i, a[i])

        return loop(5, step, x, y)

    def plain(x, y):
        for i in range(5):
            x[i], y[i] = y[i] * 0.5, y[i] + x[i]
        return x, y

    return f, plain


@program(X)
def one_array_as_two_variables():
    def f(x):
        a = nbta.tanh(x)

        def step(i, a, b):
            return nbta.set_item(a, i, b[0] + 1.0), nbta.add_item(b, -1, a[0])

        return (*loop(4, step, a, a), a)

    def plain(x):
        first = np.tanh(x)
        a, b = first.copy(), first.copy()
        for i in range(4):
            a[i], b[-1] = b[0] + 1.0, b[-1] + a[0]
        return a, b, first

    return f, plain


@program(X, copied=[("SetItem",), MOVED], backward=[("SetItem",), MOVED])
def one_new_array_for_two_variables():
    """Both are one array after the first iteration, and neither may see the other's writes."""

    def f(x):
        def step(i, a, b):
            new = nbta.set_item(a, i, b[i] * 2.0)
            return new, new

        return loop(4, step, x, x * 0.5)

    def plain(x):
        a, b = x, x * 0.5
        for i in range(4):
            a = a.copy()
            a[i] = b[i] * 2.0
            b = a
        return a, b

    return f, plain


@program(X)
def captured_and_carried():
    def f(x):
        a = nbta.sin(x)
        return loop(length(x), lambda i, b: nbta.set_item(b, i, a[i] * b[0] + a[-1]), a)

    def plain(x):
        a = np.sin(x)
        b = a.copy()
        for i in range(len(x)):
            b[i] = a[i] * b[0] + a[-1]
        return b

    return f, plain


@program(X)
def a_whole_update():
    def f(x):
        return loop(4, lambda i, a: nbta.sin(a) * 0.5 + x, x)

    def plain(x):
        a = x.copy()
        for _ in range(4):
            a[:] = np.sin(a) * 0.5 + x
        return a

    return f, plain


@program(np.arange(5), X)
def traced_indices():
    def f(k, x):
        def step(i, a):
            place = nbta.take(k, i)
            a = nbta.add_item(a, place * 2 % 5, x[i])
            return nbta.set_item(a, -1 - place, a[place] * 0.5)

        return loop(5, step, nbta.zeros_like(x))

    def plain(k, x):
        a = np.zeros_like(x)
        for i in range(5):
            a[k[i] * 2 % 5] += x[i]
            a[-1 - k[i]] = a[k[i]] * 0.5
        return a

    return f, plain


@program(np.array([3, 1, 3, 0, 1, 3]), Y)
def a_histogram():
    def f(k, w):
        return loop(
            length(k), lambda i, a: nbta.add_item(a, nbta.take(k, i), w[i % 5]), nbta.zeros(4)
        )

    def plain(k, w):
        a = np.zeros(4)
        for i in range(len(k)):
            a[k[i]] += w[i % 5]
        return a

    return f, plain


@program(X)
def no_iterations():
    def f(x):
        a = nbta.cos(x)
        return loop(nbta.cast(x[0] > 5.0, "int64"), lambda i, a: nbta.set_item(a, i, 0.0), a), a

    return f, lambda x: (np.cos(x), np.cos(x))


# Views.


@program(X)
def a_slice_taken_before_the_write():
    def f(x):
        def step(i, a, s):
            part = a[1:3]
            a = nbta.set_item(a, 1, s)
            return a, nbta.sum(part) + s * a[1]

        return loop(4, step, x, 0.5)

    def plain(x):
        s = 0.5
        for _ in range(4):
            part = x[1:3].copy()
            x[1] = s
            s = np.sum(part) + s * x[1]
        return x, np.float64(s)

    return f, plain


@program(M)
def a_row_taken_before_the_write():
    def f(m):
        def step(i, a, s):
            row = a[i]
            a = nbta.set_item(a, (i, 0), nbta.sum(s))
            return a, row * a[i, 0] + s

        return loop(4, step, m, nbta.ones(3))

    def plain(m):
        s = np.ones(3)
        for i in range(4):
            row = m[i].copy()
            m[i, 0] = np.sum(s)
            s = row * m[i, 0] + s
        return m, s

    return f, plain


@program(M)
def rows_swapped():
    def f(m):
        def step(i, a):
            one, other = a[i], a[3 - i]
            return nbta.set_item(nbta.set_item(a, i, other), 3 - i, one)

        return loop(2, step, m)

    def plain(m):
        for i in range(2):
            m[[i, 3 - i]] = m[[3 - i, i]]
        return m

    return f, plain


@program(M)
def columns_swapped():
    def f(m):
        def step(i, a):
            one, other = a[:, 0], a[:, i]
            return nbta.set_item(nbta.set_item(a, np.s_[:, 0], other), (np.s_[:], i), one)

        return loop(3, step, m)

    def plain(m):
        for i in range(3):
            one, other = m[:, 0].copy(), m[:, i].copy()
            m[:, 0] = other
            m[:, i] = one
        return m

    return f, plain


@program(X)
def overlapping_to_the_right():
    f = lambda x: loop(3, lambda i, a: nbta.set_item(a, np.s_[1:], a[:-1]), x)  # noqa: E731

    def plain(x):
        for _ in range(3):
            x[1:] = x[:-1].copy()
        return x

    return f, plain


@program(X)
def overlapping_to_the_left():
    f = lambda x: loop(3, lambda i, a: nbta.add_item(a, np.s_[:-1], a[1:]), x)  # noqa: E731

    def plain(x):
        for _ in range(3):
            x[:-1] += x[1:].copy()
        return x

    return f, plain


@program(X)
def turned_round():
    f = lambda x: loop(3, lambda i, a: nbta.set_item(a, np.s_[i:], a[i:][::-1]), x)  # noqa: E731

    def plain(x):
        for i in range(3):
            x[i:] = x[i:][::-1].copy()
        return x

    return f, plain


@program(
    M[:3],
    copied=[("SetItem", "Transpose")],
    backward=[("SetItem", "Transpose"), ("SetItem", "GetItem")],
)
def transposed():
    f = lambda m: loop(3, lambda i, a: nbta.set_item(a, ..., nbta.transpose(a)), m)  # noqa: E731

    def plain(m):
        for _ in range(3):
            m[...] = m.T.copy()
        return m

    return f, plain


@program(M)
def a_row_added_to_another():
    f = lambda m: loop(3, lambda i, a: nbta.add_item(a, i + 1, a[i] * 0.5), m)  # noqa: E731

    def plain(m):
        for i in range(3):
            m[i + 1] += m[i] * 0.5
        return m

    return f, plain


@program(M)
def a_row_of_reshaped():
    def f(m):
        def step(i, a):
            flat = nbta.set_item(nbta.reshape(a, (12,)), i * 2, nbta.sum(a[i]))
            return nbta.reshape(flat, (4, 3))

        return loop(4, step, m)

    def plain(m):
        for i in range(4):
            m.reshape(12)[i * 2] = np.sum(m[i])
        return m

    return f, plain


# Branches.


@program(X)
def in_both_branches():
    def f(x):
        def step(i, a):
            return nbta.cond(
                a[i] > 0.2,
                lambda: nbta.set_item(a, i, a[0] * 0.5),
                lambda: nbta.add_item(a, i, a[i - 1]),
            )

        return loop(length(x), step, x)

    def plain(x):
        for i in range(len(x)):
            if x[i] > 0.2:
                x[i] = x[0] * 0.5
            else:
                x[i] += x[i - 1]
        return x

    return f, plain


@program(X)
def in_one_branch():
    def f(x):
        def step(i, a):
            return nbta.cond(a[i] > 0.2, lambda: nbta.set_item(a, i, a[0] + 1.0), lambda: a)

        return loop(length(x), step, x)

    def plain(x):
        for i in range(len(x)):
            if x[i] > 0.2:
                x[i] = x[0] + 1.0
        return x

    return f, plain


@program(X)
def in_nested_branches():
    def f(x):
        def step(i, a):
            def positive():
                return nbta.cond(
                    a[i] > 1.0, lambda: nbta.set_item(a, i, 1.0), lambda: nbta.add_item(a, 0, 0.5)
                )

            return nbta.cond(a[i] > 0.0, positive, lambda: nbta.set_item(a, i, -a[i]))

        return loop(length(x), step, x)

    def plain(x):
        for i in range(len(x)):
            if x[i] > 1.0:
                x[i] = 1.0
            elif x[i] > 0.0:
                x[0] += 0.5
            else:
                x[i] = -x[i]
        return x

    return f, plain


@program(X)
def a_branch_and_a_read_of_the_old_array():
    def f(x):
        def step(i, a, s):
            old = a[i]
            new = nbta.cond(old > 0.2, lambda: nbta.set_item(a, i, s), lambda: a)
            return new, s * 0.5 + old + new[i]

        return loop(length(x), step, x, 0.25)

    def plain(x):
        s = 0.25
        for i in range(len(x)):
            old = x[i]
            if old > 0.2:
                x[i] = s
            s = s * 0.5 + old + x[i]
        return x, np.float64(s)

    return f, plain


@program(
    X,
    copied=[("SetItem",), MOVED] * 2,
    backward=[("SetItem",), MOVED] * 3 + [("SetItem",), ("AddItem",)],
)
def branches_that_swap():
    def f(x):
        def step(i, a, b):
            return nbta.cond(
                a[i] > b[i],
                lambda: (nbta.set_item(b, i, 0.5), a),
                lambda: (a, nbta.set_item(b, i, a[0])),
            )

        return loop(length(x), step, x, x[::-1] * 0.75)

    def plain(x):
        a, b = x.copy(), x[::-1] * 0.75
        for i in range(len(x)):
            if a[i] > b[i]:
                b[i] = 0.5
                a, b = b, a
            else:
                b[i] = a[0]
        return a, b

    return f, plain


@program(X)
def a_branch_of_three_with_two_arrays():
    def f(x):
        def step(i, a, b):
            return nbta.switch_case(
                i % 3,
                [
                    lambda: (nbta.set_item(a, i, b[0]), b),
                    lambda: (a, nbta.add_item(b, i, a[0])),
                    lambda: (nbta.add_item(a, 0, b[i]), nbta.set_item(b, i, a[i])),
                ],
            )

        return loop(length(x), step, x, x * 0.5)

    def plain(x):
        a, b = x.copy(), x * 0.5
        for i in range(len(x)):
            if i % 3 == 0:
                a[i] = b[0]
            elif i % 3 == 1:
                b[i] += a[0]
            else:
                a[0], b[i] = a[0] + b[i], a[i]
        return a, b

    return f, plain


@program(X)
def outside_of_loops_in_a_branch():
    def f(x):
        a = nbta.sin(x)
        b = nbta.cond(x[0] > 0.0, lambda: nbta.set_item(a, 0, 5.0), lambda: a)
        return b, a

    def plain(x):
        a = np.sin(x)
        b = a.copy()
        if x[0] > 0:
            b[0] = 5.0
        return b, a

    return f, plain


@program(X, backward=[("SetItem",)] * 2)
def all_items_in_one_branch():
    def f(x):
        def step(i, a, s):
            return nbta.cond(
                a[i] > 0.2,
                lambda: (a * 0.5 + 1.0, nbta.sum(a)),
                lambda: (nbta.set_item(a, i, s), a[0] * a[-1]),
            )

        return loop(length(x), step, x, 0.25)

    def plain(x):
        a, s = x, 0.25
        for i in range(len(x)):
            if a[i] > 0.2:
                a, s = a * 0.5 + 1.0, np.sum(a)
            else:
                old = a[0] * a[-1]
                a[i] = s
                s = old
        return a, np.float64(s)

    return f, plain


@program(X, copied=[("SetItem",), MOVED], backward=[("SetItem",), MOVED, *[("Item",)] * 3, MOVED])
def another_array_in_one_branch():
    """That a branch gives one item twice leaves no buffer in two places."""

    def f(x):
        def step(i, a, b):
            one = lambda: (nbta.set_item(b, i, 1.0), nbta.set_item(b, 0, 2.0))  # noqa: E731
            return nbta.cond(a[i] > 0.2, one, lambda: (a, nbta.add_item(b, i, a[0])))

        return loop(length(x), step, x, nbta.cos(x))

    def plain(x):
        a, b = x, np.cos(x)
        for i in range(len(x)):
            if a[i] > 0.2:
                a, b = b.copy(), b.copy()
                a[i], b[0] = 1.0, 2.0
            else:
                b[i] += a[0]
        return a, b

    return f, plain


# Lengths.


def doubled(x):
    """A number that only the run tells: 2 to the power of 3, where a constant would be folded."""
    return loop(3, lambda i, m: 2 * m, nbta.cast(x[0] < 10.0, "int64"))


@program(X)
def of_a_length_that_the_run_tells():
    def f(x):
        m = doubled(x)
        step = lambda i, t: nbta.set_item(t, i, t[i - 1] * 0.5 + x[i % 5])  # noqa: E731
        return loop(m, step, nbta.zeros((m,)))

    def plain(x):
        t = np.zeros(8)
        for i in range(8):
            t[i] = t[i - 1] * 0.5 + x[i % 5]
        return t

    return f, plain


@program(X, backward=[MOVED])
def of_a_length_that_the_run_tells_in_a_nest():
    def f(x):
        m = doubled(x)

        def outer(i, t):
            scaled = lambda: nbta.add_item(t * 0.5, i, x[0])  # noqa: E731
            t = nbta.cond(t[i] > 0.0, scaled, lambda: t)
            return loop(i, lambda j, t: nbta.add_item(t, i, t[j] * x[j % 5]), t)

        return loop(m, outer, nbta.ones((m,)))

    def plain(x):
        t = np.ones(8)
        for i in range(8):
            if t[i] > 0:
                t *= 0.5
                t[i] += x[0]
            for j in range(i):
                t[i] += t[j] * x[j % 5]
        return t

    return f, plain


@program(X, copied=[("SetItem",)])
def shorter_in_each_iteration():
    def f(x):
        step = lambda i, a: nbta.set_item(a, 0, nbta.sum(a))[: length(a) - 1]  # noqa: E731
        whole = lambda i, a: (i + 1, step(i, a))  # noqa: E731
        return nbta.while_loop(lambda i, a: i < 3, whole, (np.int64(0), x))[1]

    def plain(x):
        for _ in range(3):
            x[0] = np.sum(x)
            x = x[:-1]
        return x

    return f, plain


# Loops in loops.


@program(M)
def two_deep():
    def f(m):
        def row(i, a):
            return loop(3, lambda j, a: nbta.set_item(a, (i, j), a[i, j - 1] * a[i - 1, j]), a)

        return loop(4, row, m)

    def plain(m):
        for i in range(4):
            for j in range(3):
                m[i, j] = m[i, j - 1] * m[i - 1, j]
        return m

    return f, plain


@program(M)
def three_deep():
    """Elimination."""

    def f(m):
        def column(k, a):
            def row(i, a):
                factor = a[i, k] / (a[k, k] + 3.0)
                step = lambda j, a: nbta.add_item(a, (i, j), -factor * a[k, j])  # noqa: E731
                return loop(3, step, a)

            return loop(4, row, a, begin=0)

        return loop(3, column, m)

    def plain(m):
        for k in range(3):
            for i in range(4):
                factor = m[i, k] / (m[k, k] + 3.0)
                for j in range(3):
                    m[i, j] += -factor * m[k, j]
        return m

    return f, plain


@program(X)
def a_bound_of_the_outer_loop():
    def f(x):
        def outer(i, a):
            return loop(i, lambda j, a: nbta.add_item(a, i, a[j] * 0.25), a)

        return loop(length(x), outer, x)

    def plain(x):
        for i in range(len(x)):
            for j in range(i):
                x[i] += x[j] * 0.25
        return x

    return f, plain


@program(X)
def a_loop_in_a_branch_in_a_loop():
    def f(x):
        def outer(i, a):
            inner = lambda: loop(i, lambda j, a: nbta.set_item(a, j, a[i] + a[j]), a)  # noqa: E731
            return nbta.cond(a[i] > 0.0, inner, lambda: nbta.add_item(a, i, 0.5))

        return loop(length(x), outer, x)

    def plain(x):
        for i in range(len(x)):
            if x[i] > 0:
                for j in range(i):
                    x[j] = x[i] + x[j]
            else:
                x[i] += 0.5
        return x

    return f, plain


@program(X)
def scratch_that_each_iteration_fills():
    def f(x):
        def outer(i, s, scratch):
            scratch = loop(length(x), lambda j, t: nbta.set_item(t, j, x[j] * s), scratch)
            return s + nbta.sum(scratch * scratch) * 0.1, scratch

        return loop(3, outer, 0.5, nbta.zeros_like(x))

    def plain(x):
        s, scratch = 0.5, np.zeros_like(x)
        for _ in range(3):
            for j in range(len(x)):
                scratch[j] = x[j] * s
            s = s + np.sum(scratch * scratch) * 0.1
        return np.float64(s), scratch

    return f, plain


@program(X)
def two_loops_in_one():
    def f(x):
        def outer(i, a):
            a = loop(i + 1, lambda j, a: nbta.set_item(a, j, a[j] * 0.5), a)
            return loop(length(x), lambda j, a: nbta.add_item(a, j, a[i]), a, begin=2)

        return loop(3, outer, x)

    def plain(x):
        for i in range(3):
            for j in range(i + 1):
                x[j] = x[j] * 0.5
            for j in range(2, len(x)):
                x[j] += x[i]
        return x

    return f, plain


@program(
    X,
    copied=[("while/body/while", "needed later")],
    backward=[("while/body/while", "needed later"), ("AddItem",)],
)
def an_inner_loop_and_the_array_before_it():
    """The array before the inner loop is read after it: the loop begins with a copy."""

    def f(x):
        def outer(i, a):
            b = loop(3, lambda j, b: nbta.set_item(b, j, b[j + 1] * 0.5), a)
            return nbta.add_item(b, i, nbta.sum(a * b))

        return loop(3, outer, x)

    def plain(x):
        a = x
        for i in range(3):
            b = a.copy()
            for j in range(3):
                b[j] = b[j + 1] * 0.5
            b[i] += np.sum(a * b)
            a = b
        return a

    return f, plain


@program(X)
def a_scan_that_carries_an_array():
    def f(x):
        def step(a, v):
            a = nbta.add_item(a, 0, v)
            return a, a[0] * a[1]

        return nbta.scan(step, nbta.tanh(x), x)

    def plain(x):
        a, ys = np.tanh(x), []
        for v in x:
            a[0] += v
            ys.append(a[0] * a[1])
        return a, np.array(ys)

    return f, plain


@program(X)
def a_scan_that_gives_the_array():
    """Each row of the result is the array as it was then."""

    def f(x):
        def step(a, v):
            a = nbta.add_item(a, 0, v)
            return a, a

        return nbta.scan(step, nbta.tanh(x), x)

    def plain(x):
        a, ys = np.tanh(x), []
        for v in x:
            a[0] += v
            ys.append(a.copy())
        return a, np.array(ys)

    return f, plain


@program(M)
def a_map_with_scratch():
    def f(m):
        def row(r):
            return loop(3, lambda j, a: nbta.set_item(a, j, a[j - 1] * r[j]), r)

        return nbta.map_fn(row, m)

    def plain(m):
        out = m.copy()
        for i in range(len(m)):
            for j in range(3):
                out[i, j] = out[i, j - 1] * m[i, j]
        return out

    return f, plain


NAMES = list(PROGRAMS)


@pytest.mark.parametrize("name", NAMES)
def test_values(name):
    found = held(PROGRAMS[name].f, *PROGRAMS[name].args, copied=PROGRAMS[name].copied)
    compare(found, PROGRAMS[name].expected())


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    made = PROGRAMS[name]
    places = tuple(k for k, value in enumerate(made.args) if value.dtype.kind == "f")
    make = lambda f, compiled: nbta.value_and_grad(f, places, compiled=compiled)  # noqa: E731
    held(summed(made.f), *made.args, make=make, copied=made.backward)
    check_grads(made.f, made.args, order=1)


@pytest.mark.slow_but_every(len(PROGRAMS))
@pytest.mark.parametrize("name", NAMES)
def test_machine_code(name):
    made = PROGRAMS[name]
    compare(Pair(made.f)(*made.args), made.expected())


# Names of one buffer: whatever is changed, what has another name stays.


def an_array(*args, **options):
    return nbta.TensorArray("float64", *args, clear_after_read=False, **options)


def a_slot_that_was_read(x):
    t = an_array(2, element_shape=(None,)).write(0, x).write(1, x * 2)
    return nbta.set_item(t.read(0), 0, 9.0), t.read(0), t.stack()


def slots_that_were_appended(x):
    def step(i, a, t):
        b = nbta.set_item(a, i, a[0] * 2.0 + 1.0)
        t = t.append(b)
        return nbta.add_item(b, 0, 1.0), t

    a, t = loop(4, step, x, an_array(0, dynamic_size=True))
    s = t.stack()
    return a, nbta.set_item(s, (0, 0), 5.0), s


def a_stack(x):
    t = an_array(5).unstack(x)
    s = t.stack()
    return nbta.set_item(s, 0, 3.0), s, t.read(0)


def pieces(x):
    a = nbta.sin(nbta.outer(x, x[:4]))
    one, other = nbta.split(a, 2, 1)
    return nbta.set_item(a, 0, 0.0), nbta.set_item(one, (0, 0), 7.0), one, other, a


def other_shapes(x):
    a = nbta.sin(nbta.outer(x, x[:2]))
    r, turned = nbta.reshape(a, (-1,)), nbta.transpose(a)
    changed = [nbta.set_item(r, 3, 1.0), nbta.set_item(a, (0, 0), 2.0)]
    return (a, r, turned, *changed, nbta.set_item(turned, (1, 0), 4.0))


def other_names(x):
    a = nbta.sin(x)
    b, c = nbta.identity(a), nbta.stop_gradient(a)
    return a, b, c, nbta.set_item(b, 0, 0.0), nbta.add_item(c, 1, 1.0)


def repeated_rows(x):
    a = nbta.sin(x)
    rows = nbta.broadcast_to(a, (3, 5))
    return a, rows, nbta.set_item(rows, (2, 1), 8.0), nbta.set_item(a, 1, 3.0)


def rows_that_are_carried(x):
    def step(i, a, r):
        return nbta.set_item(a, i, r), a[i]

    return loop(4, step, nbta.sin(nbta.outer(x, x)), x)


def three_that_change_places(x):
    step = lambda i, a, b, c: (b, c, nbta.set_item(a, i, b[i] * c[i]))  # noqa: E731
    return loop(4, step, nbta.sin(x), nbta.cos(x), x)


def a_branch_that_gives_an_array_of_the_iteration(x):
    def step(i, a, b):
        c = nbta.set_item(a, i, 1.0)
        d = nbta.cond(x[i] > 0.0, lambda: c, lambda: b)
        return c, nbta.add_item(d, 0, 2.0)

    return loop(5, step, x, x * 2)


def rows_of_a_captured_array(x):
    y = nbta.sin(x)
    return nbta.map_fn(lambda v: nbta.set_item(y, 0, v), x), y


def a_scan_that_swaps_and_gives_parts(x):
    def step(carry, v):
        a, b = carry
        new = nbta.set_item(a, 0, v)
        return (b, new), nbta.concatenate([a[:1], new[:1]])

    (a, b), rows = nbta.scan(step, (nbta.sin(x), nbta.cos(x)), x)
    return a, b, rows


def loops_from_one_array(x):
    a = nbta.sin(x)
    b = loop(3, lambda i, b: nbta.set_item(b, i, 0.5 * b[i]), a)
    c = loop(3, lambda i, b: nbta.add_item(b, i, a[i]), b)
    return a, b, c, loop(2, lambda i, d: nbta.set_item(d, i, c[i + 1]), b)


def loops_from_a_constant(x):
    ones = nbta.ones(5)
    one = loop(5, lambda i, a: nbta.set_item(a, i, x[i]), ones)
    return one, ones, loop(2, lambda i, a: nbta.add_item(a, i, x[i]), ones)


def a_name_for_what_changes_places(x):
    start = x + 1.0, nbta.sin(x), nbta.cos(x)
    return loop(5, lambda i, u, v, w: (v, u, v), *start)


def names_for_three_that_change_places(x):
    start = x + 1.0, nbta.sin(x), nbta.cos(x), x * 2.0, x * 3.0, nbta.zeros(2)
    return loop(5, lambda i, u, v, w, p, q, r: (v, w, u, u, w, v[1:3]), *start)


def a_branch_that_gives_one_array_twice(x):
    a = nbta.sin(x)
    way = nbta.sum(x) > 0.0
    return nbta.cond(way, lambda: (a, a), lambda: (a * 2.0, a * 3.0))


def a_branch_with_loops_from_one_array(x):
    a = nbta.sin(x)

    def loops():
        return loop(9, lambda i, u, v: (u * 0.9, v + 0.1 * x), a, a)

    return nbta.cond(nbta.sum(x) < 0.0, loops, lambda: (a, a))


def branches_in_a_branch_that_give_one_array(x):
    a, way = nbta.sin(x), nbta.sum(x) > 0.0

    def inner():
        return nbta.cond(x[0] > 9.0, lambda: (a, a, a), lambda: (a * 2.0, a, nbta.cos(a)))

    return nbta.cond(way, lambda: (a, a, a), inner)


NAMED = [
    a_name_for_what_changes_places, names_for_three_that_change_places,
    a_branch_that_gives_one_array_twice, a_branch_with_loops_from_one_array,
    branches_in_a_branch_that_give_one_array,
    a_slot_that_was_read, slots_that_were_appended, a_stack, pieces, other_shapes, other_names,
    repeated_rows, rows_that_are_carried, three_that_change_places,
    a_branch_that_gives_an_array_of_the_iteration, rows_of_a_captured_array,
    a_scan_that_swaps_and_gives_parts, loops_from_one_array, loops_from_a_constant,
]  # fmt: skip


@pytest.mark.parametrize("f", NAMED, ids=lambda f: f.__name__)
def test_other_names_of_a_buffer(f):
    """Eagerly each change is a new array; both executors give the same, and gradients too."""
    expected = f(X)
    slopes = nbta.grad(summed(f), compiled=False)(X)
    fast, fast_slopes = nbta.function(f, compiled=True), nbta.grad(summed(f), compiled=True)
    compare(nbta.function(f, compiled=False)(X), expected)
    with in_python():
        for _ in range(2):
            compare(fast(X), expected)
            compare(fast_slopes(X), slopes)


# Items of a part, replaced or added to in the loop that makes them.


def outer(a, u, v):
    a[1:, ::2] += 2.0 * np.outer(u, v)
    return a


def set_outer(a, u, v):
    a[:-1, 1:3] = np.outer(u, v[:2]) + 1.0
    return a


def upside_down(a, u, v):
    a[:0:-1, 2::-2] -= np.outer(u, v)[:, :2] * 3.0
    return a


def into_a_column(a, u, v):
    a[1:, 2] += u * u
    return a


def of_another_part(a, u, v):
    a[1:] += 0.5 * a[:-1]
    return a


def of_itself(a, u, v):
    a[1:, 1:] = a[1:, 1:] * a[1:, 1:] + 1.0
    return a


def also_used(a, u, v):
    w = 2.0 * u + 1.0
    a[1:, 0] += w
    return a * np.sum(w) + np.sum(w * w)


def twice(a, u, v):
    w = 2.0 * u
    a[1:, 0] += w
    a[1:, 3] = w
    return a


def repeated(a, u, v):
    a[1:] += 2.0 * v[0] * np.ones((1, 5))
    return a


def new_axis(a, u, v):
    a[1:, None, 2] = (u * 3.0)[:, None]
    return a


def none_there(a, u, v):
    a[4:, :] += np.outer(u[3:], v[:1] + np.zeros(5)) * 2.0
    return a


def set_of_as_many(a, u, v):
    b = np.sin(a)
    a[1:, 1:] = b[1:, 1:] + 1.0
    a[:, 2] = b[:, 0] * 3.0
    return a


def added_of_as_many(a, u, v):
    b = np.sin(a)
    a[::2, :3] += b[::2, :3] * 2.0
    a[::-1, 1] -= b[:, 4] * 0.5
    return a


def outer_of_as_many(a, u, v):
    b = np.sin(a)
    a[1:, :-1] = np.outer(b[1:, 0], b[0, :-1]) * 2.0
    a[1:, :-1] += np.outer(b[1:, 1], b[1, :-1])
    return a + np.sum(b)


def with_its_sum(a, u, v):
    b = np.sin(a)
    w = b[1:, :-1] * 2.0
    a[1:, :-1] = w
    return a + np.sum(w) + np.sum(w, axis=0)[0] + np.max(w)


PARTS = [outer, set_outer, upside_down, into_a_column, of_another_part, of_itself, also_used,
         twice, repeated, new_axis, none_there, set_of_as_many, added_of_as_many,
         outer_of_as_many, with_its_sum]  # fmt: skip


@pytest.mark.parametrize("f", PARTS)
def test_parts_that_a_loop_fills_as_it_makes_their_items(f):
    a = np.linspace(-1.0, 2.0, 20).reshape(4, 5)
    u, v = np.array([1.0, -2.0, 0.5]), np.array([0.3, 1.5, -1.0])
    for dtype in (np.float64, np.float32):
        given = [x.astype(dtype) for x in (a, u, v)]
        expected = f(*(x.copy() for x in given))
        for compiled in (False, True):
            found = nbta.function(f, compiled=compiled)(*given)
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    check_grads(lambda *args: nbta.sum(nbta.function(f)(*args) ** 2), (a, u, v), order=2)
    total = [nbta.value_and_grad(lambda *args: np.sum(f(*args) ** 2), argnums=(0, 1, 2),
                                 compiled=c) for c in (False, True)]  # fmt: skip
    (value, slopes), (fast, found) = (run(a, u, v) for run in total)
    np.testing.assert_allclose(fast, value, rtol=1e-12)
    for one, other in zip(found, slopes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)


def test_a_part_takes_what_is_added_from_registers():
    a, u = np.ones((4, 4)), np.arange(4.0)
    fast = nbta.function(lambda a, u: outer_sum(a, u), compiled=True)
    np.testing.assert_array_equal(fast(a, u), a + np.outer(u, u) - np.outer(u, [0, 0, 0, 3]))
    (line,) = [line for line in compact_source(fast).splitlines() if "] + t" in line]
    source = compact_source(fast)
    assert "room" not in source[source.index(line) :].split("return 0")[0]


def outer_sum(a, u):
    a[:, :-1] += np.outer(u, u[:-1])
    return a


@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("adds", [False, True])
def test_items_that_a_loop_computes_again_are_added_once(adds, negative):
    """Gamma functions of numbers that are not positive send a run of items through SciPy."""

    def f(a):
        b = 2.0 * a
        if adds:
            a[1:, :3] += nbta.gammaln(b[1:, :3])
        else:
            a[1:, :3] = nbta.gammaln(b[1:, :3])
        return a

    a = np.linspace(0.3, 2.0, 20).reshape(4, 5)
    a[2, 1] = -0.7 if negative else a[2, 1]
    expected, found = (nbta.function(f, compiled=c)(a) for c in (False, True))
    np.testing.assert_allclose(found, expected, rtol=1e-13)


def rows_then_items(a):
    """A sum of parts of an array, whose dimensions its gradient asks for after the inner loop."""
    a = a.copy()
    for i in range(1, len(a) - 1):
        a[i, 1:-1] += a[i - 1, :-2] + a[i, 2:]
        for j in range(1, a.shape[1]):
            a[i, j] += 0.5 * a[i, j - 1]
    return np.sum(a * a)


def parts_then_items(a):
    a = a[0] * 1.0
    for _ in range(len(a)):
        a[1:-1] += 0.25 * a[:-2]
        for j in range(1, len(a)):
            a[j] += 0.5 * a[j - 1]
    return np.sum(a * a)


def size_after_items(a):
    a, total = a.copy(), 0.0
    for i in range(1, len(a)):
        row = a[i - 1, i:]
        total += np.sum(row)
        for j in range(a.shape[1]):
            a[i, j] += 0.5 * a[i - 1, j]
        total *= np.size(row)
    return total + np.sum(a)


def column_then_items(a):
    a = a.copy()
    for j in range(1, a.shape[1] - 1):
        a[:, j] = a[:, j - 1] * np.sum(a[1:, j], axis=0) + a[:, j + 1]
        for i in range(1, len(a)):
            a[i, j] += 0.5 * a[i - 1, j]
    return np.sum(a)


def rows_saved_before_items(a):
    """The gradient needs a row as it was before the inner loop: the row alone is copied."""
    a, v = a.copy(), a[0] + 0.5
    for i in range(1, len(a)):
        a[i] = a[i] * v + a[i - 1] * a[i]
        for j in range(min(a.shape)):
            a[j, j] *= 0.8
    return np.sum(a * a)


def rows_saved_before_a_branch(a):
    a = a.copy()
    for i in range(1, len(a)):
        total = np.sum(a[i, 1:] * a[i, :-1])
        if total > 0.5:
            a[i - 1] = a[i] * 0.5
            a[i, 0] = total
    return np.sum(a * a)


def rows_saved_before_a_loop_that_ends(a):
    a, s = a.copy(), 0.0
    for i in range(1, len(a) - 1):
        s += np.sum(a[i, :-1] * a[i, 1:])
        for j in range(1, a.shape[1]):
            if s > 6.0:
                break
            a[i, j] += a[i, j - 1] * 0.3
    return s + np.sum(a * a)


PARTS = [
    rows_then_items, parts_then_items, size_after_items, column_then_items,
    rows_saved_before_items, rows_saved_before_a_branch, rows_saved_before_a_loop_that_ends,
]  # fmt: skip


@pytest.mark.parametrize("f", PARTS)
def test_parts_that_are_measured_or_read_later_keep_no_array(f):
    a = np.random.default_rng(1).uniform(0.5, 1.5, (5, 4))
    held(f, a, make=nbta.value_and_grad)
    held(f, a)
    check_grads(f, (a,))


def test_what_a_nested_loop_begins_with_is_a_copy_that_people_are_told_of():
    def f(a):
        total = 0.0
        for _ in range(len(a)):
            a = a + 1.0
            new = a.copy()
            for j in range(1, len(a)):
                new[j] *= new[j - 1]
            total += np.sum(a * new)
        return total

    (line,) = copies_of(f, X)
    assert "needed later" in line


def copies_of(f, *args):
    fast = nbta.function(f, compiled=True)
    with in_python():
        fast(*args)
        return copies(fast)


def in_a_branch(a, s, i, c):
    if c[i] > 0:
        a[i + 1] += a[i] * c[i]
    return s


def in_either_branch(a, s, i, c):
    if c[i] > 0:
        a[i + 1] = a[i] * c[i]
        s = s * 0.5
    else:
        a[i + 2] -= a[i + 1]
    return s


def in_a_loop(a, s, i, c):
    for j in range(i + 1, i + 3):
        a[j] -= c[i] * a[i] * a[j]
    return s


def in_a_branch_of_a_loop(a, s, i, c):
    for j in range(i + 1, i + 3):
        if c[j] > 0.5:
            a[j] += 0.3 * a[i]
    return s


def in_a_loop_of_a_branch(a, s, i, c):
    if c[i] > 0:
        for j in range(i, i + 3):
            a[j] *= 0.5 + c[i]
    return s


HOLDERS = [in_a_branch, in_either_branch, in_a_loop, in_a_branch_of_a_loop, in_a_loop_of_a_branch]


@pytest.mark.parametrize("make", ["value", "gradient", "jvp", "hvp"])
@pytest.mark.parametrize("change", HOLDERS)
def test_what_is_read_around_a_branch_or_loop_is_read_before_it_changes_the_array(change, make):
    def f(a, c):
        a, s = a.copy(), 0.0
        for i in range(len(a) - 3):
            before = a[i] * a[i + 1]
            s += a[i] ** 2
            s = change(a, s, i, c)
            s += np.sin(before)
        return s + np.sum(a)

    def made(f, compiled):
        if make == "value":
            return nbta.function(f, compiled=compiled)
        if make == "gradient":
            return nbta.value_and_grad(f, (0, 1), compiled=compiled)
        along = nbta.jvp if make == "jvp" else nbta.hvp
        return nbta.function(lambda a, c: along(f, (a, c), (c, a)), compiled=compiled)

    draw = np.random.default_rng(3)
    arguments = draw.normal(size=9), draw.normal(size=9)
    fast, plain = made(f, True), made(f, False)
    for one, other in zip(leaves(fast(*arguments)), leaves(plain(*arguments)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    assert copies(fast) == []


def leaves(value):
    return [leaf for part in value for leaf in leaves(part)] if type(value) is tuple else [value]


def filled(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        y[i] = x[i] * x[i - 1]
    return y


def changed_once_more(x):
    y = filled(x)
    y[0] += 1.0
    return y


def with_what_it_was(x):
    y = filled(x)
    z = y.copy()
    z[1] = 2.0
    return y, z, y[1]


def twice(x):
    y = filled(x)
    return y, y


def from_its_sum(x):
    y = filled(x)
    y[0] = np.sum(y)
    for i in range(1, len(y)):
        y[i] += y[i - 1]
    return y, y[0]


def in_a_branch(x):
    y = filled(x)
    if x[0] > 0.0:
        y[0] = 3.0
    y[2] = y[0] + y[1]
    return y


def of_the_same_room(x):
    y = filled(x)
    y[1] = 0.5
    z = filled(y)
    z[0] = y[2]
    return z, np.sum(y)


@pytest.mark.parametrize(
    "f",
    [changed_once_more, with_what_it_was, twice, from_its_sum, in_a_branch, of_the_same_room],
)
def test_what_becomes_a_result_is_made_there(f):
    expected = f(X)
    for compiled in (True, False):
        given = nbta.function(f, compiled=compiled)
        with in_python():
            for found in (given(X), given(X)):
                for one, other in zip(_tuple(found), _tuple(expected), strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("f", [changed_once_more, filled])
def test_a_result_of_loops_is_not_copied(f):
    loss = lambda x: np.sum(f(x)) + x[0]  # noqa: E731
    for whole in (nbta.function(f, compiled=True), nbta.grad(loss, compiled=True)):
        with in_python():
            whole(X)
        assert "copy(" not in whole.source
    check_grads(loss, (X,), order=2)


def exchanged(x, c):
    q = np.zeros(10)
    u, v = np.zeros(len(x)), np.ones(len(x)) * c
    for t in range(10):
        q[t] += np.dot(np.tanh(u * np.sin(c * t)), v)
        u, v = v, u
    return np.mean(u * x) + np.sum(q)


def test_two_arrays_that_take_each_others_room():
    """Adjoints of exchanged arrays, in loops of their own where lengths are one in the run alone.

    Each is to be where the other is read: the second one needs room of its own.
    """

    def slope(x, c):
        by_x, by_c = nbta.grad(exchanged, (0, 1))(x, c)
        return nbta.sum(by_x * Y) + 0.6 * by_c

    for f in (exchanged, slope):
        results = [nbta.value_and_grad(f, (0, 1), compiled=kind) for kind in (True, False)]
        with in_python():
            found = results[0](X, 0.7)
        expected = results[1](X, 0.7)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12, atol=1e-12)
        for one, other in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def row_captured(m):
    m = m * 1.0
    row = nbta.getitem(m, 2)
    made, total = loop(
        3, lambda i, m, s: (nbta.set_item(m, i, row * (i + 1.0)), s + nbta.sum(row)), m, 0.0
    )
    return nbta.sum(made * made) + total


def row_kept(m):
    m = m * 1.0
    row = nbta.getitem(m, 2)
    row, made, total = loop(
        3, lambda i, r, m, s: (r, nbta.set_item(m, i, r * (i + 1.0)), s + nbta.sum(r)), row, m, 0.0
    )
    return nbta.sum(made * made) + total + nbta.sum(row)


def row_of_a_branch(m):
    m = m * 1.0
    row = nbta.getitem(m, 2)
    changed = lambda: nbta.add_item(nbta.set_item(m, 2, row * 2.0), 1, row)  # noqa: E731
    made = nbta.cond(m[0, 0] < 0, changed, lambda: m)
    return nbta.sum(made * made)


@pytest.mark.parametrize("f", [row_captured, row_kept, row_of_a_branch])
def test_rows_of_an_array_that_a_loop_or_branch_takes(f):
    """They are copied before its buffer changes, and the body has the copies."""
    for make in (nbta.function, nbta.value_and_grad):
        fast, slow = (make(f, compiled=how, convert=False)(M) for how in (True, False))
        compare(fast, slow)
    check_grads(f, (M,), order=1)
