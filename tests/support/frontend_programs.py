"""Loop programs as Numba's users write them: what plain Python, Numba and nbta must agree on.

No function here knows of nbta. Each gives a float, and stands before a line that says of which
arguments it is differentiated, what to call it with (at two sizes: loops of few iterations may be
unrolled), and what Numba or mathematics does not allow.
"""

# ruff: noqa: B007, B905, C901  (this is how users write, not we)

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit


@dataclass(frozen=True)
class Case:
    """A program.

    Attributes
    ----------
    function : callable
        May change its arguments.
    argnums : tuple of int
        Of which arguments it is differentiated.
    arguments : callable
        Of a size, from 3; gives the arguments, new ones each time.
    njit : bool
        Whether Numba compiles it.
    order : int
        Of derivatives that are checked; 1 where the second one is zero everywhere.
    subject : str
    """

    function: Callable
    argnums: tuple
    arguments: Callable
    njit: bool = True
    order: int = 2
    subject: str = "hard"

    @property
    def name(self):
        return self.function.__name__

    def __repr__(self):
        return self.name


CASES = {}
SMALL, LARGE = 3, 11


def case(function, argnums, arguments, **options):
    """Note a program."""
    found = Case(function, argnums, arguments, **options)
    assert found.name not in CASES, found.name
    CASES[found.name] = found


def series(n, seed=0, low=-1.0, high=1.0):
    """``n`` random numbers."""
    return np.random.default_rng([n, seed]).uniform(low, high, n)


def table(n, m, seed=0):
    """``n`` rows of ``m`` random numbers."""
    return series(n * m, seed).reshape(n, m)


def heavy(n, seed=0):
    """A matrix with a large diagonal."""
    return table(n, n, seed) + (n + 1.0) * np.eye(n)


# Series and recurrences.


def recurrence(x):
    n = len(x)
    a = np.zeros(n)
    a[0] = x[0]
    for i in range(1, n):
        a[i] = math.sin(a[i - 1]) * x[i] + x[i]
    return np.sum(a)


case(recurrence, (0,), lambda n: (series(n),))


def simulate(rate, noise):
    path = np.zeros(noise.shape[0] + 1)
    for t in range(noise.shape[0]):
        path[t + 1] = path[t] * rate + noise[t]
        if path[t + 1] > 1.6:
            break
    return np.sum(path[: t + 2] ** 2)


case(simulate, (0, 1), lambda n: (0.9, series(n, 3, 0.2, 0.6)))


def two_back(x, a, b):
    y = np.empty(len(x))
    y[0] = x[0]
    y[1] = x[1] + a * y[0]
    for i in range(2, x.size):
        y[i] = a * y[i - 1] + b * y[i - 2] + x[i]
    return y[-1] * y[-2]


case(two_back, (0, 1, 2), lambda n: (series(n), 0.5, -0.3))


def self_increment(x):
    total = np.zeros(3)
    for i in range(len(x)):
        total[i % 3] += x[i] * x[i]
        total[i % 3] *= 1.0 + 0.1 * x[i]
    return total[0] * total[1] + total[2]


case(self_increment, (0,), lambda n: (series(n),))


def float_increment(x):
    s = 0.0
    for v in x:
        s += v
        s *= math.cos(v)
        s -= 0.5 * v
        s /= 1.0 + v * v
    return s


case(float_increment, (0,), lambda n: (series(n),))


def value_from_before_used_after(x, scale):
    before = math.exp(scale) * x[0]
    s = 0.0
    for i in range(len(x)):
        s = s * 0.5 + math.tanh(x[i] * before)
    return s * before + before


case(value_from_before_used_after, (0, 1), lambda n: (series(n), 0.3))


def ratio_after_a_loop(x, w):
    top = 0.0
    bottom = 0.0
    for i in range(len(x)):
        weight = math.exp(-w * x[i] * x[i])
        top += weight * x[i]
        bottom += weight
    return top / bottom


case(ratio_after_a_loop, (0, 1), lambda n: (series(n), 0.7))


def negative_step(x):
    n = len(x)
    back = np.zeros(n + 1)
    for i in range(n - 1, -1, -1):
        back[i] = math.sin(back[i + 1] + x[i])
    s = 0.0
    for i in range(n - 1, 0, -2):
        s += back[i] * x[i - 1]
    return s + back[0]


case(negative_step, (0,), lambda n: (series(n),))


def zero_iterations(x, n):
    s = x[0] * x[1]
    for i in range(n):
        s += math.exp(x[i])
    for _ in range(3, n):
        s *= 100.0
    return s


case(zero_iterations, (0,), lambda n: (series(n), 0))


def name_from_the_loop(x):
    for i in range(len(x)):
        last = x[i] * x[i]
        if last > 2.0:
            continue
        kept = last + x[i]
    return kept * last * (i + 1)


case(name_from_the_loop, (0,), lambda n: (series(n),))


def bound_changed_in_the_body(x):
    n = len(x)
    s = 0.0
    for i in range(n):
        n = n - 1
        s += x[i] * x[n]
    return s + n


case(bound_changed_in_the_body, (0,), lambda n: (series(n),))


def variable_of_the_loop_changed(x):
    s = 0.0
    for i in range(len(x)):
        j = i
        i = i // 2
        s = s * 0.9 + x[i] * x[j]
    return s


case(variable_of_the_loop_changed, (0,), lambda n: (series(n),))


def int_becomes_float(x):
    total = 0
    count = 0
    for v in x:
        total += v * v
        count += 1
    return total / count


case(int_becomes_float, (0,), lambda n: (series(n),))


def unused_state(x):
    s = 0.0
    unused = 1.0
    scratch = np.zeros(4)
    for i in range(len(x)):
        unused = unused * x[i] + 1.0
        scratch[i % 4] = unused
        s += x[i] ** 2
    return s


case(unused_state, (0,), lambda n: (series(n),))


def aliased_state(x):
    a = x * 1.0
    b = a
    for i in range(1, len(x)):
        b[i] = a[i - 1] * 0.5 + math.sin(b[i])
    a[0] = 3.0 * b[-1]
    return np.sum(a * b)


case(aliased_state, (0,), lambda n: (series(n),))


def scalars_that_are_copies(x):
    a = x[0]
    b = a
    s = 0.0
    for i in range(len(x)):
        b += x[i]
        s += a * b
        a, b = b, a
    return s + a - 2.0 * b


case(scalars_that_are_copies, (0,), lambda n: (series(n),))


def write_after_read(x):
    a = x.copy()
    s = 0.0
    for i in range(len(x)):
        old = a[i]
        a[i] = old * old
        s += old * a[i]
        a[i] = math.cos(a[i]) + old
    return s + np.sum(a)


case(write_after_read, (0,), lambda n: (series(n),))


def repeated_indices(x, where):
    a = np.zeros(4)
    for i in range(len(x)):
        a[where[i]] = x[i] * (1.0 + a[where[i]])
    for i in range(len(x)):
        a[where[i]] += x[i]
    return np.sum(a * a)


case(
    repeated_indices, (0,),
    lambda n: (series(n), np.random.default_rng(n).integers(0, 4, n)),
)  # fmt: skip


def histogram(x, width):
    counts = np.zeros(5)
    for v in x:
        k = int((v + 1.0) / width)
        if k >= 5:
            k = 4
        counts[k] += v * width
    return np.sum(counts**2)


case(histogram, (0, 1), lambda n: (series(n, 5), 0.41))


def running_maximum(x):
    best = x[0]
    s = 0.0
    for i in range(1, len(x)):
        best = max(best, x[i])
        s += best * min(x[i], 0.3) + abs(x[i])
    return s


case(running_maximum, (0,), lambda n: (series(n, 1),))


# Decisions and ways out of loops.


def argmax_with_continue(x):
    best = -1
    top = -np.inf
    for i in range(len(x)):
        if x[i] <= top:
            continue
        top = x[i]
        best = i
    return top * top + x[best] * best


case(argmax_with_continue, (0,), lambda n: (series(n, 2),))


def first_above(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            return x[i] * limit
    return -limit * x[0]


case(first_above, (0, 1), lambda n: (series(n, 4), 0.2))


def return_in_a_nest(a, limit):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j] * a[i, j]
            if s > limit:
                return s * a[i, j] + i - j
    return s


case(return_in_a_nest, (0,), lambda n: (table(n, 4, 1), 1.1))


def break_of_the_inner_loop(a):
    s = 0.0
    for i in range(a.shape[0]):
        t = 1.0
        for j in range(a.shape[1]):
            if a[i, j] < -0.5:
                break
            t *= 1.0 + a[i, j]
        else:
            s += 0.25 * t * t
        s += t
    return s


case(break_of_the_inner_loop, (0,), lambda n: (table(n, 4, 2),))


def both_ways_out(x, y):
    s = 0.0
    for i in range(len(x)):
        if y[i] < -0.6:
            s -= x[i]
            continue
        s += x[i] * y[i]
        if s > 1.5:
            break
        s = s + 0.1
    return s


case(both_ways_out, (0, 1), lambda n: (series(n, 6), series(n, 7)))


def loop_with_else(x, limit):
    for i in range(len(x)):
        if x[i] > limit:
            found = x[i] * x[i]
            break
    else:
        found = np.sum(x)
    return found + limit * x[0]


case(loop_with_else, (0, 1), lambda n: (series(n, 8), 5.0))


def while_true(x):
    i = 0
    s = 1.0
    while True:
        s = s * 0.9 + x[i]
        i += 1
        if i >= len(x):
            break
        if s > 3.0:
            s = s * 0.5
            break
    return s * s


case(while_true, (0,), lambda n: (series(n),))


def walrus(x):
    i = 0
    s = 0.0
    while (v := x[i] + 0.5 * s) < 1.2 and i < len(x) - 1:
        s += v * v * 0.3
        i += 1
    return s + v


case(walrus, (0,), lambda n: (series(n, 9, 0.0, 1.0),), njit=False)


def newton(a):
    x = 0.5 * (1.0 + a)
    for _ in range(60):
        step = 0.5 * (x - a / x)
        x -= step
        if abs(step) < 1e-13:
            break
    return x


case(newton, (0,), lambda n: (2.0 + n / 7.0,))


def scalar_match(x, kinds):
    s = 1.0
    for i in range(len(x)):
        match kinds[i]:
            case 0:
                s += x[i]
            case 1 | 2:
                s *= x[i]
            case _:
                s = math.sin(s)
    return s


case(
    scalar_match, (0,), lambda n: (series(n), np.arange(n) * 7 % 4), njit=False
)  # fmt: skip


def guard(x, offsets):
    s = 0.0
    n = len(x)
    for i in range(n):
        j = i + offsets[i]
        if 0 <= j < n and x[j] > -0.5:
            s += x[i] * x[j]
        if j < 0 or j >= n or x[j] < 0.0:
            s += 0.3 * x[i] ** 2
    return s


case(guard, (0,), lambda n: (series(n), np.arange(n) * 5 % 7 - 3))


def elif_chain(x):
    s = 0.0
    for v in x:
        if v < -0.5:
            s += v * v
        elif v < 0.0:
            s -= math.sin(v)
        elif not v > 0.5:
            s *= 1.0 + v
        else:
            s = s / (1.0 + v)
    return s


case(elif_chain, (0,), lambda n: (series(n, 3),))


def conditional_expression(x):
    s = 0.0
    for i in range(len(x)):
        v = x[i] if x[i] > 0.0 else -0.1 * x[i]
        s += math.log(v) if v > 0.3 else v * v
    return s


case(conditional_expression, (0,), lambda n: (series(n, 4),))


def variable_of_one_branch(x):
    s = 0.0
    for v in x:
        if v > 0.0:
            root = math.sqrt(v)
            s += root * 2.0
        else:
            square = v * v
            s += square
    return s


case(variable_of_one_branch, (0,), lambda n: (series(n, 5),))


def clipped(x, low, high):
    s = 0.0
    for v in x:
        if low < v < high:
            s += v**3
        elif v >= high:
            s += high * high
        else:
            s += low * v
    return s


case(clipped, (0, 1, 2), lambda n: (series(n, 3), -0.4, 0.5))


def assertions_that_hold(x):
    s = 0.0
    for i in range(len(x)):
        assert x[i] > -5.0, "x must be large"
        s += math.log(x[i] + 5.0)
        assert np.isfinite(s)
    return s


case(assertions_that_hold, (0,), lambda n: (series(n),))


# Nests.


def dynamic_nest(x):
    n = len(x)
    s = 0.0
    for i in range(n):
        for j in range(i):
            for k in range(j, i):
                s += x[i] * x[j] * math.sin(x[k])
    return s


case(dynamic_nest, (0,), lambda n: (series(min(n, 6)),))


def ragged_rows(values, counts):
    s = 0.0
    at = 0
    for i in range(len(counts)):
        row = 0.0
        for j in range(counts[i]):
            row = row * 0.7 + values[at]
            at += 1
        s += row * row
    return s


def ragged_arguments(n):
    counts = np.arange(n) * 3 % 4
    return series(int(counts.sum())), counts


case(ragged_rows, (0,), ragged_arguments)


def scratch_in_a_nest(a):
    n, m = a.shape
    scratch = np.zeros(m)
    s = 0.0
    for i in range(n):
        for j in range(m):
            scratch[j] = math.exp(a[i, j])
        total = 0.0
        for j in range(m):
            total += scratch[j]
        for j in range(m):
            scratch[j] /= total
        s += scratch[0] * scratch[m - 1]
    return s


case(scratch_in_a_nest, (0,), lambda n: (table(n, 4),))


def scratch_that_remembers(a):
    n, m = a.shape
    scratch = np.zeros(m)
    s = 0.0
    for i in range(n):
        for j in range(0, m, 2):
            scratch[j] = a[i, j] * (1.0 + scratch[j])
        for j in range(m):
            s += scratch[j] * a[i, j]
            scratch[j] += 0.1 * a[i, j]
    return s


case(scratch_that_remembers, (0,), lambda n: (table(n, 4),))


def heat(u, rate, steps):
    n = len(u)
    new = np.zeros(n)
    old = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            new[i] = old[i] + rate * (old[i - 1] - 2.0 * old[i] + old[i + 1])
        new[0] = old[0]
        new[n - 1] = old[n - 1]
        old, new = new, old
    return np.sum(old * old)


case(heat, (0, 1), lambda n: (series(n), 0.2, n))


def three_buffers(x):
    a = x * 1.0
    b = x * x
    c = np.zeros(len(x))
    for k in range(5):
        for i in range(len(x)):
            c[i] = a[i] + 0.3 * b[i - 1]
        a, b, c = b, c, a
    return np.sum(a) * np.sum(b) - c[0]


case(three_buffers, (0,), lambda n: (series(n),))


def edit_distance(x, y, gamma):
    n, m = len(x), len(y)
    d = np.full((n + 1, m + 1), 1e6)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = (x[i - 1] - y[j - 1]) ** 2
            low = min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
            s = math.exp((low - d[i - 1, j]) / gamma)
            s += math.exp((low - d[i, j - 1]) / gamma)
            s += math.exp((low - d[i - 1, j - 1]) / gamma)
            d[i, j] = cost + low - gamma * math.log(s)
    return d[n, m]


case(edit_distance, (0, 1), lambda n: (series(n), series(n - 1, 1), 0.7))


def longest_path(weights):
    n, m = weights.shape
    best = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            best[i, j] = weights[i, j]
            if i > 0 and j > 0:
                best[i, j] += max(best[i - 1, j], best[i, j - 1])
            elif i > 0:
                best[i, j] += best[i - 1, j]
            elif j > 0:
                best[i, j] += best[i, j - 1]
    return best[n - 1, m - 1]


case(longest_path, (0,), lambda n: (table(n, 4),), order=1)


# Matrices in place.


def tridiagonal(a, b, c, d):
    n = d.shape[-1]
    for i in range(1, n):
        w = a[..., i - 1] / b[..., i - 1]
        b[..., i] += -w * c[..., i - 1]
        d[..., i] += -w * d[..., i - 1]
    x = np.zeros(d.shape)
    x[..., -1] = d[..., -1] / b[..., -1]
    for i in range(n - 2, -1, -1):
        x[..., i] = (d[..., i] - c[..., i] * x[..., i + 1]) / b[..., i]
    return np.sum(x * x)


def tridiagonal_arguments(n):
    return table(2, n - 1), 4.0 + table(2, n, 1), table(2, n - 1, 2), table(2, n, 3)


case(tridiagonal, (0, 1, 2, 3), tridiagonal_arguments)


def thomas(lower, diagonal, upper, right):
    n = len(right)
    c = np.zeros(n)
    d = np.zeros(n)
    c[0] = upper[0] / diagonal[0]
    d[0] = right[0] / diagonal[0]
    for i in range(1, n):
        m = diagonal[i] - lower[i] * c[i - 1]
        c[i] = upper[i] / m
        d[i] = (right[i] - lower[i] * d[i - 1]) / m
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]
    return np.sum(d**2)


case(
    thomas, (0, 1, 2, 3),
    lambda n: (series(n), 4.0 + series(n, 1), series(n, 2), series(n, 3)),
)  # fmt: skip


def lu(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    s = 0.0
    for i in range(n):
        s += math.log(abs(a[i, i])) + a[i, 0] * a[0, i]
    return s


case(lu, (0,), lambda n: (heavy(min(n, 5)),))


def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            if i == j:
                low[i, i] = math.sqrt(s)
            else:
                low[i, j] = s / low[j, j]
    return np.sum(low) + low[n - 1, 0] * low[n - 1, n - 1]


case(cholesky, (0,), lambda n: (heavy(min(n, 5)),))


def cholesky_in_place(a):
    n = a.shape[0]
    for j in range(n):
        for k in range(j):
            for i in range(j, n):
                a[i, j] -= a[i, k] * a[j, k]
        a[j, j] = np.sqrt(a[j, j])
        for i in range(j + 1, n):
            a[i, j] /= a[j, j]
    s = 0.0
    for i in range(n):
        s += np.log(a[i, i]) * a[i, 0]
    return s


case(cholesky_in_place, (0,), lambda n: (heavy(min(n, 5), 1),))


def determinant(a):
    n = a.shape[0]
    det = 1.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                a[k, j], a[p, j] = a[p, j], a[k, j]
            det = -det
        det *= a[k, k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            for j in range(k, n):
                a[i, j] -= factor * a[k, j]
    return det


case(determinant, (0,), lambda n: (table(min(n, 4), min(n, 4), 5) * 2.0,))


def rows_at_once(a, b):
    n = a.shape[0]
    for k in range(n):
        a[k, k + 1 :] /= a[k, k]
        b[k] /= a[k, k]
        for i in range(k + 1, n):
            b[i] -= a[i, k] * b[k]
            a[i, k + 1 :] -= a[i, k] * a[k, k + 1 :]
    for k in range(n - 1, -1, -1):
        b[k] -= np.sum(a[k, k + 1 :] * b[k + 1 :])
    return np.sum(b * b)


case(rows_at_once, (0, 1), lambda n: (heavy(min(n, 5)), series(min(n, 5), 1)))


def gram_schmidt(a):
    n, m = a.shape
    q = a.copy()
    for j in range(m):
        for k in range(j):
            q[:, j] -= np.sum(q[:, k] * a[:, j]) * q[:, k]
        q[:, j] /= np.sqrt(np.sum(q[:, j] ** 2))
    return np.sum(q[0] * np.arange(m)) + q[n - 1, m - 1]


case(gram_schmidt, (0,), lambda n: (table(n + 1, 3, 2),))


def matrix_product(a, b):
    n, m = a.shape
    k = b.shape[1]
    c = np.zeros((n, k))
    for i in range(n):
        for j in range(k):
            for p in range(m):
                c[i, j] += a[i, p] * b[p, j]
    return np.sum(np.tanh(c))


case(matrix_product, (0, 1), lambda n: (table(n, 3), table(3, 2)))


def conjugate_gradients(a, b):
    x = np.zeros_like(b)
    r = b - a @ x
    p = r.copy()
    rs = r @ r
    for _ in range(len(b)):
        ap = a @ p
        alpha = rs / (p @ ap)
        x += alpha * p
        r -= alpha * ap
        new = r @ r
        if np.sqrt(new) < 1e-9:
            break
        p = r + (new / rs) * p
        rs = new
    return x @ x


def conjugate_arguments(n):
    a = table(min(n, 4), min(n, 4))
    return a @ a.T + np.eye(len(a)), series(len(a), 1)


case(conjugate_gradients, (1,), conjugate_arguments)


# Views.


def view_then_base(x):
    a = x * x
    view = a[1:]
    view[0] = 2.0 * x[0]
    a[2] = view[0] * x[1]
    view[1] += 0.5
    a[1] *= view[1]
    return np.sum(a * x) + view[0] * view[1]


case(view_then_base, (0,), lambda n: (series(n),))


def views_in_a_loop(x):
    a = np.zeros((len(x), 3))
    for i in range(len(x)):
        row = a[i]
        row[0] = x[i]
        row[1:] = x[i] ** 2
        row[1:][1] += row[0]
    flat = a.reshape(-1)
    flat[1] = x[0]
    turned = a.T
    turned[2, 0] *= 3.0
    return np.sum(np.sin(a)) + a[0, 1]


case(views_in_a_loop, (0,), lambda n: (series(n),))


def overlapping_views(x):
    a = x.copy()
    left = a[:-1]
    right = a[1:]
    for k in range(3):
        left += 0.5 * right
        right *= 1.0 + left[0]
        right[0] -= left[1]
    return np.sum(a * a)


case(overlapping_views, (0,), lambda n: (series(n),))


def shift_in_place(x):
    a = x.copy()
    for _ in range(2):
        a[1:] = a[:-1]
        a[0] = math.sin(a[1])
        a[:-1] = a[1:]
    return np.sum(a * x)


case(shift_in_place, (0,), lambda n: (series(n),))


def turned_around(x):
    a = x.copy()
    a[:] = a[::-1]
    a[::2] *= 2.0
    b = a[::-1]
    b[0] += 1.0
    return np.sum(a * x * x)


case(turned_around, (0,), lambda n: (series(n),))


def sum_of_two(a, b):
    for i in range(len(a)):
        a[i] += b[len(b) - 1 - i]
    return np.sum(a * b)


def same_array_twice(x):
    a = x.copy()
    return sum_of_two(a, a) + a[0]


case(same_array_twice, (0,), lambda n: (series(n),), njit=False)


def arrays_of_one_fill(x):
    a = np.zeros(3)
    b = np.zeros_like(a)
    c = a.copy()
    for i in range(len(x)):
        a[i % 3] += x[i]
        b[i % 3] = a[i % 3] * x[i]
        c += b
        c[0] = x[i]
    return np.sum(a * b * c)


case(arrays_of_one_fill, (0,), lambda n: (series(n),))


def slices_with_bounds_from_loops(x):
    a = x.copy()
    n = len(x)
    s = 0.0
    for i in range(n):
        a[:i] *= 0.9
        a[i:] += 0.1 * x[i]
        s += np.sum(a[i // 2 : i + 1] ** 2)
    return s


case(slices_with_bounds_from_loops, (0,), lambda n: (series(n),))


# Callees.


def fill(out, x, scale):
    for i in range(len(x)):
        out[i] = math.sin(scale * x[i])


def void_kernel(x, scale):
    out = np.zeros(len(x) + 1)
    fill(out[1:], x, scale)
    fill(out[:-1], x * 2.0, -scale)
    return np.sum(out * out)


case(void_kernel, (0, 1), lambda n: (series(n), 0.8), njit=False)


@njit
def rise(v, gain):
    if v > 0.0:
        return gain * v
    return 0.1 * v


@njit
def rise_all(a, gain):
    for i in range(len(a)):
        a[i] = rise(a[i], gain) + rise(gain, a[i])
    return a[0]


@njit
def compiled_calls_compiled(x, gain):
    a = x.copy()
    first = rise_all(a, gain)
    return np.sum(a * a) * first


case(compiled_calls_compiled, (0, 1), lambda n: (series(n), 0.8))


def python_calls_compiled(x, gain):
    a = x.copy()
    s = rise_all(a, gain)
    for i in range(len(a)):
        s += rise(a[i] - 0.1, s)
    return s


case(python_calls_compiled, (0, 1), lambda n: (series(n), 0.8))


class Tank:
    """Has a method that changes its array."""

    def __init__(self, level, n):
        self.levels = np.zeros(n)
        self.level = level

    def add(self, i, flow):
        self.level = self.level * 0.9 + flow
        self.levels[i] = self.level

    def total(self):
        return np.sum(self.levels**2)


def method_that_mutates(x, start):
    tank = Tank(start, len(x))
    for i in range(len(x)):
        tank.add(i, x[i])
    return tank.total() + tank.level


case(method_that_mutates, (0, 1), lambda n: (series(n), 0.4), njit=False)


def callee_that_swaps(a, i, j):
    if a[i] > a[j]:
        a[i], a[j] = a[j], a[i]


def bubble_sort(x):
    a = x.copy()
    n = len(a)
    for i in range(n):
        for j in range(n - 1 - i):
            callee_that_swaps(a, j, j + 1)
    s = 0.0
    for i in range(n):
        s += a[i] ** 2 * i
    return s


case(bubble_sort, (0,), lambda n: (series(min(n, 6), 7),), njit=False)


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


def recursion_by_an_int(x):
    return power(x[0], 5) + power(x[1], 3)


case(recursion_by_an_int, (0,), lambda n: (series(n),), njit=False)


def ranges_since_a_peak(x):
    """Items since the last that was large, by indices of all forms that `np.arange` takes."""
    s, last = 0.0, 0
    for i in range(len(x)):
        if x[i] > 0.3:
            last = i
        since = np.arange(last, i, dtype=np.uint32)
        s += np.sum(x[since] ** 2) + np.sum(x[np.arange(0, last, 2, np.int64)])
        s += np.sum(np.arange(last) * x[:last]) + x[np.arange(i, last - 1, -1)][0]
        s += np.sum(np.arange(start=last, stop=i + 1) * x[i])
    return s


case(ranges_since_a_peak, (0,), lambda n: (series(n),), njit=False)


def tail(v):
    """An area to the left of a point: what is right of 0 is the rest of its mirror image."""
    if v < 0.0:
        return 0.5 / (1.0 + 0.7 * v * v)
    return 1.0 - tail(-v)


@njit("float64(float64)")
def tail_by_signature(v):
    return 1.0 - tail_by_signature(-v) if v >= 0.0 else 0.5 / (1.0 + 0.7 * v * v)


def folded(v):
    """Of a period, then of its right half, then of its lower quarter."""
    if v > 1.0:
        return folded(v - 1.0)
    if v > 0.5:
        return -folded(v - 0.5) * v
    if v > 0.25:
        return folded(0.5 - v) + v
    return v**2


def recursion_by_reflections(x):
    s = 0.0
    for v in x:
        s += tail(v - 0.7) * v + tail_by_signature(0.7 - v) + folded(v)
    return s


case(recursion_by_reflections, (0,), lambda n: (series(n),), njit=False)


def inner_function(x, rate):
    s = 0.0

    def decay(v):
        return v * rate + 0.1

    for v in x:
        s = decay(s) + v * decay(v)
    return s


case(inner_function, (0, 1), lambda n: (series(n), 0.4))

square, cube = lambda v: v * v, lambda v: v if v < -9.0 else v * v * v


def two_lambdas_on_a_line(x):
    s = 0.0
    for v in x:
        s += square(v) - 2.0 * cube(v)
    return s


case(two_lambdas_on_a_line, (0,), lambda n: (series(n),), njit=False)


def steps_that_functions_give(x, v):
    def halve(v):
        return 0.5 * v

    def grow(v):
        return v * v if v > 0.2 else -v

    for step in (halve, grow, math.sin, np.tanh):
        for i in range(len(x)):
            v = step(v) + 0.3 * x[i]
    return v


case(steps_that_functions_give, (0, 1), lambda n: (series(n), 0.3), njit=False)


def reduced(x):
    return functools.reduce(lambda s, v: s * 0.5 + v * v, x, 0.0)


case(reduced, (0,), lambda n: (series(3),), njit=False)

# Lists and other containers.


def list_of_numbers(x):
    kept = []
    for v in x:
        kept.append(v * v)
    s = 0.0
    for k in range(len(kept)):
        s += kept[k] * math.sin(kept[k - 1])
    return s


case(list_of_numbers, (0,), lambda n: (series(n),))


def ragged_appends(x):
    kept = []
    for i in range(len(x)):
        if x[i] > 0.0:
            kept.append(x[i])
            if x[i] > 0.5:
                kept.append(x[i] ** 2)
    s = 1.0 * len(kept)
    for v in kept:
        s = s * 0.8 + v
    return s


case(ragged_appends, (0,), lambda n: (series(n, 3),))


def list_of_arrays(a):
    rows = [a[0] * 2.0]
    for i in range(1, a.shape[0]):
        rows.append(rows[-1] * 0.5 + np.sin(a[i]))
    s = 0.0
    for row in rows:
        s += np.sum(row * rows[0])
    return s


case(list_of_arrays, (0,), lambda n: (table(n, 2),))


def rows_of_other_lengths(x):
    parts = []
    for i in range(1, len(x)):
        parts.append(x[:i] * x[i])
    s = 0.0
    for part in parts:
        s += np.sum(part) ** 2
    return s


case(rows_of_other_lengths, (0,), lambda n: (series(n),))


def pop_in_a_loop(x):
    stack = [x[0]]
    s = 0.0
    i = 1
    while len(stack) > 0:
        v = stack.pop()
        s = s * 0.9 + v * v
        if i < len(x):
            stack.append(v + x[i])
            i += 1
            if i < len(x):
                stack.append(v * x[i])
                i += 1
    return s


case(pop_in_a_loop, (0,), lambda n: (series(n),))


def list_as_a_state(x):
    state = [0.0, 1.0]
    for v in x:
        state[0] = state[0] * 0.9 + v
        state[1] *= 1.0 + 0.1 * state[0]
    return state[0] * state[1]


case(list_as_a_state, (0,), lambda n: (series(n),))


def tuple_as_a_state(x):
    state = (0.0, 1.0)
    for v in x:
        position, speed = state
        state = (position + 0.1 * speed, speed - 0.1 * math.sin(position) + v)
    return state[0] + state[1] ** 2


case(tuple_as_a_state, (0,), lambda n: (series(n),))


def dict_as_a_state(x):
    state = {"s": 0.0, "n": 1.0}
    for v in x:
        state["s"] += v * state["n"]
        state["n"] = math.cos(state["s"])
    return state["s"] * state["n"]


case(dict_as_a_state, (0,), lambda n: (series(n),), njit=False)


def dict_as_an_argument(p, x):
    s = p["start"]
    for v in x:
        s = np.tanh(p["w"] * s + v)
    return s * s


case(
    dict_as_an_argument, (0, 1),
    lambda n: ({"start": np.array(0.3), "w": np.array(0.8)}, series(n)), njit=False,
)  # fmt: skip


def comprehension_that_shadows(x):
    s = 0.0
    for i in range(len(x)):
        parts = [x[i] * i for i in range(3)]
        s += parts[1] * x[i] + parts[2] + i
    return s


case(comprehension_that_shadows, (0,), lambda n: (series(n),))


def enumerate_and_zip(x, y):
    s = 0.0
    for i, (v, w) in enumerate(zip(x, y)):
        s += v * w * i
    for i, v in enumerate(reversed(x)):
        s -= 0.1 * v * v * i
    for v, w in zip(x[1:], x):
        s += math.sin(v - w)
    return s


case(enumerate_and_zip, (0, 1), lambda n: (series(n), series(n, 1)), njit=False)


def rows_of_a_matrix(a):
    s = 0.0
    for row in a:
        t = 1.0
        for v in row:
            t *= 1.0 + 0.3 * v
        s += t * row[0]
    return s


case(rows_of_a_matrix, (0,), lambda n: (table(n, 3),))


def sum_of_a_list(x):
    s = sum([v * v for v in x])
    for i in range(len(x)):
        s = s * 0.9 + x[i] * max(x[i], 0.0)
    return s


case(sum_of_a_list, (0,), lambda n: (series(n, 1),))


# Numbers and lengths.


def lengths_that_are_computed_with(a):
    n, m = a.shape
    half = n // 2
    out = np.zeros((half + 1, m))
    for i in range(half):
        out[i + 1] = 0.5 * (a[2 * i] + a[2 * i + 1]) + out[i]
    return np.sum(out**2) / (n * m) + a.size + a.ndim + len(out)


case(lengths_that_are_computed_with, (0,), lambda n: (table(n, 2),))


TIMES = np.linspace(0.0, 2.0, 30)
WEIGHTS = np.cos(np.arange(12.0)).reshape(4, 3)


def captured_arrays(x, o):
    s = 0.0
    for i in range(1, len(x)):
        dt = TIMES[i] - TIMES[i - 1]
        s += dt * x[i] * WEIGHTS[i % 4, o[i]] + np.sum(WEIGHTS[:, o[i]]) * x[i] ** 2
    return s


case(captured_arrays, (0,), lambda n: (series(n), np.arange(n) % 3))


def numbers_of_python(x):
    s = 0.0
    for i in range(len(x)):
        k = int(x[i] * 10.0)
        s += float(k) * x[i] + float(k % 2) + abs(x[i]) ** 1.5
        s += round(x[i]) + x[i] % 0.7 + (i // 2) * x[i] + 2**i * 0.001
    return s


case(numbers_of_python, (0,), lambda n: (series(n, 2, 0.05, 0.95),))


def functions_of_math(x):
    s = 0.0
    for v in x:
        s += math.exp(-v) * math.sqrt(v) + math.log(v) * math.atan2(v, 2.0) + math.pi * v
        s += math.hypot(v, 1.0) + math.tan(v) + math.sinh(v) / math.cosh(v) + math.erf(v)
        s += math.log1p(v) * math.expm1(v) + math.pow(v, 2.5) + math.fabs(v) + math.atan(v)
    return s


case(functions_of_math, (0,), lambda n: (series(n, 2, 0.1, 0.9),))


def more_functions_of_math(x):
    s = 0.0
    for v in x:
        s += math.acos(v) + math.asin(v) + math.acosh(v + 1) + math.asinh(v) + math.atanh(v)
        s += math.hypot(v, 1.0, 2.0) + math.copysign(v, -2.0) + math.fmod(v, 0.3) + math.erfc(v)
        s += math.log2(v) * math.log10(v) + math.log(v, 3.0) + math.log(2.0, v) + math.exp2(v)
        s += math.lgamma(v) + math.degrees(v) * math.radians(v) + math.remainder(v, 0.25) * v
        part, whole = math.modf(3.0 * v)
        s += part * v + whole + math.ldexp(v, 3) + math.dist([v, 2.0], [1.0, v])
        s += math.prod([v, v, 2.0]) + math.fsum([v, v]) + math.cbrt(v) + math.gamma(v + 1)
        s += (math.floor(3 * v) + math.ceil(3 * v) + math.trunc(3 * v)) * v
        s += (round(3 * v) + int(3 * v)) * v + round(v * 100.0, 1) + abs(v - 0.5)
        if math.isnan(v) or math.isinf(v) or math.isclose(v, 2.0) or not math.isfinite(v):
            s += 1e9
    return s


case(more_functions_of_math, (0,), lambda n: (series(n, 2, 0.111, 0.888),), njit=False)


def bits_and_divisors(x, seed):
    state = seed
    s = 0.0
    for i in range(20):
        state = (state * 75 + 74) % 65537
        state ^= i << 1
        state |= 4
        state &= ~8
        state = state >> 1
        q, r = divmod(state, 7)
        s += (state & 3) * x[i % len(x)] + math.gcd(state, 12) * x[0]
        s += r * abs(-state) * x[1] * 1e-3 + min(q, i) * max(q, r) * x[0] * 1e-3 + pow(i, 2) * x[1]
        if bool(state & 1) ^ (i % 2 == 0):
            s *= 0.5
    return s


case(bits_and_divisors, (0,), lambda n: (series(n), 12345))


def integers_that_steer(x, seed):
    state = seed
    s = 0.0
    for _ in range(20):
        state = (state * 75 + 74) % 65537
        i = state % len(x)
        if state & 1:
            s += x[i] * x[0]
        else:
            s *= 0.5 + 0.1 * x[i]
        state ^= i << 1
    return s


case(integers_that_steer, (0,), lambda n: (series(n), 12345))


def flags(x):
    seen = False
    marks = np.zeros(len(x), dtype=np.bool_)
    s = 0.0
    for i in range(len(x)):
        marks[i] = x[i] > 0.0
        seen = seen or x[i] > 0.8
        if marks[i] and not seen:
            s += x[i]
        elif seen:
            s += 0.5 * x[i] ** 2
    return s + np.sum(marks)


case(flags, (0,), lambda n: (series(n, 4),))


def adaptive_step(x0, k):
    t = 0.0
    x = x0
    h = 0.4
    while t < 1.0:
        if t + h > 1.0:
            h = 1.0 - t
        one = x + h * (-k * x * x)
        half = x + 0.5 * h * (-k * x * x)
        two = half + 0.5 * h * (-k * half * half)
        error = abs(two - one)
        if error > 0.01:
            h *= 0.5
            continue
        t += h
        x = two
        if error < 0.002:
            h *= 1.3
    return x


case(adaptive_step, (0, 1), lambda n: (1.0, 0.8 + n / 20.0))


def particles(position, mass):
    n, dims = position.shape
    energy = 0.0
    force = np.zeros((n, dims))
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            d2 = 0.01
            for k in range(dims):
                d2 += (position[i, k] - position[j, k]) ** 2
            inverse = 1.0 / np.sqrt(d2)
            energy -= 0.5 * mass[i] * mass[j] * inverse
            for k in range(dims):
                force[i, k] += mass[j] * (position[j, k] - position[i, k]) * inverse**3
    return energy + 0.1 * np.sum(force**2)


case(particles, (0, 1), lambda n: (2.0 * table(min(n, 5), 2), 1.0 + 0.1 * series(min(n, 5))))


def hidden_markov(start, moves, emits, seen):
    alpha = start * emits[:, seen[0]]
    other = np.zeros(len(start))
    total = 0.0
    for t in range(1, len(seen)):
        for j in range(len(start)):
            s = 0.0
            for i in range(len(start)):
                s += alpha[i] * moves[i, j]
            other[j] = s * emits[j, seen[t]]
        scale = other.sum()
        total += math.log(scale)
        alpha[:] = other / scale
    return total + math.log(alpha[0])


def markov_arguments(n):
    random = np.random.default_rng(n)
    start, moves = random.dirichlet(np.ones(3)), random.dirichlet(np.ones(3), 3)
    return start, moves, random.dirichlet(np.ones(2), 3), random.integers(0, 2, n)


case(hidden_markov, (0, 1, 2), markov_arguments)

# Six programs of one's own, written before nbta's manual was read.


def epidemic(beta, gamma, contacts, seen):
    """Two age groups, susceptible, infected and recovered, by days; misfit to counts of cases."""
    groups = contacts.shape[0]
    s = np.ones(groups) * 0.99
    i = np.ones(groups) * 0.01
    r = np.zeros(groups)
    misfit = 0.0
    for day in range(seen.shape[0]):
        new = np.zeros(groups)
        for g in range(groups):
            pressure = 0.0
            for h in range(groups):
                pressure += contacts[g, h] * i[h]
            rate = beta * (0.6 if i.sum() > 0.08 else 1.0)
            new[g] = s[g] * (1.0 - np.exp(-rate * pressure))
        for g in range(groups):
            healed = gamma * i[g]
            s[g] -= new[g]
            i[g] += new[g] - healed
            r[g] += healed
        expected = new.sum() + 1e-3
        misfit += expected - seen[day] * np.log(expected)
    return misfit + 0.1 * r[0]


def epidemic_arguments(n):
    return 0.6, 0.2, np.array([[1.2, 0.4], [0.5, 0.9]]), series(n, 1, 0.0, 0.1)


case(epidemic, (0, 1, 2), epidemic_arguments, subject="six")


def walk_of_metropolis(theta, noise, uniforms):
    """A chain whose random numbers are given; the mean of what it visits, after a burn-in."""

    def log_density(x):
        return -0.5 * x * x / theta[0] - theta[1] * x**4

    x = 0.1
    current = log_density(x)
    accepted = 0
    total = 0.0
    for t in range(len(noise)):
        proposal = x + theta[2] * noise[t]
        density = log_density(proposal)
        if density > current or uniforms[t] < math.exp(density - current):
            x = proposal
            current = density
            accepted += 1
        if t < 2:
            continue
        total += x**2 + 0.1 * current
    return total / (len(noise) - 2) + 0.01 * accepted


def metropolis_arguments(n):
    random = np.random.default_rng(n)
    return np.array([1.1, 0.2, 0.7]), random.normal(size=n), random.uniform(size=n)


case(walk_of_metropolis, (0, 1), metropolis_arguments, subject="six")


def kalman(y, q, r):
    """Position and speed, of which the position is seen in noise: minus the log likelihood."""
    f = np.array([[1.0, 0.5], [0.0, 1.0]])
    m = np.zeros(2)
    p = np.eye(2)
    nll = 0.0
    for t in range(len(y)):
        m_new = np.zeros(2)
        for i in range(2):
            for j in range(2):
                m_new[i] += f[i, j] * m[j]
        fp = np.zeros((2, 2))
        p_new = np.zeros((2, 2))
        for i in range(2):
            for j in range(2):
                for k in range(2):
                    fp[i, j] += f[i, k] * p[k, j]
        for i in range(2):
            for j in range(2):
                for k in range(2):
                    p_new[i, j] += fp[i, k] * f[j, k]
            p_new[i, i] += q
        if np.isnan(y[t]):
            m, p = m_new, p_new
            continue
        s = p_new[0, 0] + r
        e = y[t] - m_new[0]
        gain = p_new[:, 0] / s
        m = m_new + gain * e
        for i in range(2):
            for j in range(2):
                p[i, j] = p_new[i, j] - gain[i] * p_new[0, j]
        nll += 0.5 * (np.log(2 * np.pi * s) + e * e / s)
    return nll


def kalman_arguments(n):
    y = np.cumsum(series(n))
    return y, 0.1, 0.3


case(kalman, (0, 1, 2), kalman_arguments, subject="six")


def optimal_stopping(prices, strike, discount):
    """A put of Bermuda's on a tree of prices, by backward induction in one array."""
    n = len(prices)
    value = np.empty(n)
    for i in range(n):
        value[i] = max(strike - prices[i], 0.0)
    for level in range(n - 1, 0, -1):
        for i in range(level):
            hold = discount * (0.45 * value[i] + 0.55 * value[i + 1])
            exercise = strike - prices[i] * (1.0 + 0.02 * (n - level))
            value[i] = hold if hold > exercise else exercise
    return value[0]


case(
    optimal_stopping, (0, 1, 2),
    lambda n: (1.0 + 0.5 * np.sort(series(n, 2)), 1.13, 0.97), subject="six",
)  # fmt: skip


def queue(arrivals, services, servers):
    """Customers in line for some servers, each the first that is free: the mean time of waiting."""
    free = np.zeros(servers)
    waits = []
    now = 0.0
    for a, s in zip(arrivals, services):
        now += a
        first = 0
        for k in range(1, servers):
            if free[k] < free[first]:
                first = k
        start = max(now, free[first])
        free[first] = start + s
        if start > now:
            waits.append(start - now)
    total = 0.0
    for w in waits:
        total += w * w
    return total / len(arrivals) + free.max()


case(
    queue, (0, 1), lambda n: (series(n, 1, 0.1, 0.9), series(n, 2, 0.5, 1.9), 2), subject="six"
)  # fmt: skip


def spline(x, y, at):
    """A natural cubic spline through points, and a sum of what it is at others."""
    n = len(x)
    m = np.zeros(n)
    c = np.zeros(n)
    for i in range(1, n - 1):
        h0 = x[i] - x[i - 1]
        h1 = x[i + 1] - x[i]
        w = 2.0 * (h0 + h1) - h0 * c[i - 1]
        c[i] = h1 / w
        m[i] = (6.0 * ((y[i + 1] - y[i]) / h1 - (y[i] - y[i - 1]) / h0) - h0 * m[i - 1]) / w
    for i in range(n - 2, 0, -1):
        m[i] -= c[i] * m[i + 1]
    total = 0.0
    for q in at:
        low, high = 0, n - 1
        while high - low > 1:
            middle = (low + high) // 2
            if x[middle] > q:
                high = middle
            else:
                low = middle
        h = x[high] - x[low]
        a = (x[high] - q) / h
        b = (q - x[low]) / h
        total += a * y[low] + b * y[high]
        total += ((a**3 - a) * m[low] + (b**3 - b) * m[high]) * h**2 / 6.0
    return total


def spline_arguments(n):
    return np.linspace(0.0, 1.0, n) + 0.1 / n * series(n), series(n, 1), series(4, 2, 0.05, 0.95)


case(spline, (0, 1, 2), spline_arguments, subject="six")


def neural_ode(w1, b1, w2, y0, steps):
    """A small net as the right side of an equation, by Runge and Kutta's fourth order."""

    def net(y):
        hidden = np.zeros(len(b1))
        for i in range(len(b1)):
            z = b1[i]
            for j in range(len(y)):
                z += w1[i, j] * y[j]
            hidden[i] = np.tanh(z)
        out = np.zeros(len(y))
        for i in range(len(y)):
            for j in range(len(b1)):
                out[i] += w2[i, j] * hidden[j]
        return out

    y = y0.copy()
    h = 1.0 / steps
    path = np.zeros((steps + 1, len(y0)))
    path[0] = y
    for t in range(steps):
        k1 = net(y)
        k2 = net(y + 0.5 * h * k1)
        k3 = net(y + 0.5 * h * k2)
        k4 = net(y + h * k3)
        y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
        path[t + 1] = y
    return np.sum(path**2) / steps


def neural_arguments(n):
    return table(4, 2), series(4, 1), table(2, 4, 2), series(2, 3), n


# Second derivatives are right, but take five minutes.
case(neural_ode, (0, 1, 2, 3), neural_arguments, order=1, subject="six")
