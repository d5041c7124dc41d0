"""Loops, branches, arrays and lists of plain functions: values as Python's, and gradients.

Each function is called by Python as it is, and differentiated; central differences of Python's own
values decide.
"""

import ast
import functools
import linecache
import math
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest
from fuzz.ways import in_python
from numba import njit

import nbta
from nbta.frontend import control, liveness
from nbta.frontend.control import OPERATIONS
from nbta.graph.graph import everything

R = np.random.default_rng(3)
X7, X12 = R.uniform(0.2, 1.5, 7), R.uniform(0.2, 1.5, 12)
M4 = R.normal(size=(4, 4)) + 4 * np.eye(4)
TIMES, TABLE, SEEN = np.linspace(0, 1, 12), R.normal(size=(3, 5)), R.integers(0, 5, 12)
CASES = []


def case(*args):
    def note(f):
        CASES.append(pytest.param(f, args, id=f.__name__))
        return f

    return note


@case(X12)
def argmax_continue(x):
    best = 0
    for i in range(len(x)):
        if x[i] <= x[best]:
            continue
        best = i
    return x[best] ** 2


@case(X7)
def an_array_made_after_a_break(x):
    """Which iterations that Python tried, and that were put back, leave behind."""
    s = x[0]
    while True:
        if s < 0.1:
            break
        a = np.zeros((len(x), 2))
        a[0, 1] = s
        s = 0.7 * a[0, 1] * x[1] / (x[1] + 0.1)
    return s


@case(X12)
def value_before(x):
    old = x[0]
    x[0] = x[1] * 2
    for i in range(1, len(x)):
        x[i] += x[i - 1] * 0.5
    return old * x[-1]


@case(X12)
def ratio(x):
    a = 0.0
    b = 0.0
    for v in x:
        a += v
        b += v * v
    return a / b


@case(X12)
def self_increment(x):
    y = x.copy()
    for i in range(len(y)):
        y[i] += y[i] * y[i]
    return np.sum(y)


@case(X12)
def shadow(x):
    t = 0.0
    for i in range(3):
        v = [x[i] * i for i in range(4)]
        t += v[2] * i
    return t


@case(X12)
def alias_state(x):
    a = x.copy()
    b = a
    for i in range(1, len(x)):
        a[i] = b[i - 1] * x[i]
    return b[-1] + a[3]


# Arrays that only the run knows to be one.


@case(X7)
def two_names_for_what_one_way_makes(x):
    a, b = x.copy(), x.copy()
    if x[0] > 0.3:
        t = x * 2
        a = t
        b = t
    a[0] = x[1] * x[2]
    return b[0] ** 2 + b[1] * x[0]


@case(X7)
def one_of_two_arrays(x):
    a, b = x.copy(), 2.0 * x
    best = a if x[1] > x[2] else b
    best[0] *= x[3]
    a[1] = b[0] * best[1]
    return np.sum(best * best) + a[0] + b[0] * a[1]


@case(X7)
def arrays_that_a_loop_makes_one(x):
    a, b = x.copy(), x.copy()
    for i in range(len(x)):
        if x[i] > 0.7:
            t = x * i
            a, b = t, t
    a[0] = x[1]
    return b[0] * b[2]


@case(X7)
def the_array_of_the_iteration_before(x):
    a, b = x.copy(), x
    for i in range(len(x)):
        b = a
        a = x * i
        if x[i] > 0.8:
            a = b
    a[0] = x[3] ** 2
    b[1] *= a[0]
    return np.sum(a * b)


@case(X12)
def a_view_that_a_loop_comes_to(x):
    y, s = np.cos(x), 0.0
    a = y
    for k in range(len(a) // 2, len(a)):
        if a[k] > 0.9:
            s += a[k]
            break
        a = x[::-1]
        a += 0.2 * y
    a[1] = x[0] ** 2
    x[5] *= y[1]
    return s + np.sum(x * x) + np.sum(y * a)


@case(X7)
def a_part_or_another_array_of_another_length(x):
    y = np.sin(x)
    a = y[2:] if x[0] < x[1] else np.zeros(3)
    a[1] = x[3] * y[0]
    y[4] += 0.5 * a[0]
    return np.sum(a * a) + np.sum(y)


@case(X7)
def swaps_and_looks_at_the_old_name(x):
    u, v = x.copy(), x * 2.0
    w = u
    for _ in range(10):
        u, v = v, u
        u[0] += 1.0
    return w[0] * v[1]


@case(X7)
def swaps_in_a_nest_and_looks_at_the_old_name(x):
    a = x
    for i in range(len(x)):
        k = 0
        while k < 2 and x[0] < 2.0:
            k += 1
            b = a.copy()
            if b[i] <= 0.7:
                a[1] += 0.2
                a, b = b, a
    return np.sum(x * x)


@case(X7)
def changed_where_it_may_be_what_another_way_leaves(x):
    y = 1.0 * x
    a = y
    for i in range(4):
        t = np.zeros(len(x))
        if x[i] < 1.0:
            y[3] += 0.2 * x[i]
        else:
            a = t
    return np.sum(a * x)


@case(X7)
def a_function_changes_what_may_be_one(x):
    def halve(v, w):
        for i in range(len(v)):
            v[i] = 0.5 * w[i] + v[i]

    a, b = x * x, np.cos(x)
    if a[0] > b[0]:
        a = b
    halve(a, b)
    halve(b, a)
    return np.sum(a * b * x)


@case(M4)
def a_row_or_a_column(m):
    r = m[1] if m[0, 1] > m[1, 0] else m[:, 2]
    r[0] *= m[3, 3]
    m[1, 2] += r[0] * r[2]
    return np.sum(r * r) + np.sum(m * m)


@case(M4)
def the_largest_of_some_rows(m):
    best = m[0]
    for row in (m[1], m[2], m[3]):
        if np.sum(row) > np.sum(best):
            best = row
    best *= 0.5
    m[0, 1] += best[2]
    return np.sum(m * m) * best[0]


@case(X12)
def an_array_or_its_reverse(x):
    b = x
    for i in range(len(x)):
        b = b[::-1]
        b[0] = x[i]
    return np.sum(x * b)


@case(X12)
def unused(x):
    z = 0.0
    w = np.zeros(3)
    for i in range(len(x)):
        z = x[i] * 2
        w[0] = z
    return x[0] * x[1]


@case(X12)
def write_after_read(x):
    a = x.copy()
    s = 0.0
    for i in range(len(a)):
        s += a[i] ** 2
        a[i] = 0.0
    return s + np.sum(a)


@case(X12)
def view_then_base(x):
    a = x.copy()
    v = a[2:]
    a[3] = a[0] * 2
    s = v[1] * 3
    v[0] = s
    return a[2] * a[3] + np.sum(v)


@case(X12)
def overlap(x):
    a = x.copy()
    u = a[:5]
    w = a[2:7]
    u[2] = u[0] * u[1]
    w[1] = w[0] * 2
    return np.sum(a * a) + u[3]


@case(X12)
def shift(x):
    a = x.copy()
    a[1:] = a[:-1]
    a[1:] *= a[:-1]
    return np.sum(a * x)


@case(X7)
def same_twice(x):
    def f(a, b):
        a[0] = b[1] * 2
        return b[0] * a[1]

    y = x.copy()
    return f(y, y)


def fill(out, x, k):
    for i in range(len(out)):
        out[i] = x[i] * k


@case(X12)
def void_callee(x):
    o = np.zeros(len(x))
    fill(o, x, 3.0)
    fill(o[2:4], o, 2.0)
    return np.sum(o * o)


class Acc:
    def __init__(self, n):
        self.buf = np.zeros(n)
        self.k = 2.0

    def add(self, i, v):
        self.buf[i] += v * self.k


@case(X12)
def method(x):
    acc = Acc(len(x))
    for i in range(len(x)):
        acc.add(i, x[i])
        acc.add(0, x[i])
    return np.sum(acc.buf**2)


@case(X12)
def repeated(x):
    h = np.zeros(4)
    for i in range(len(x)):
        h[i % 4] += x[i] * x[i]
    return np.sum(h**2)


@case(X12)
def zero_iterations(x):
    s = x[0]
    for i in range(3, 3):
        s += x[i]
    for i in range(len(x), 0):
        s *= x[i]
    return s


@case(X12)
def negative_steps(x):
    s = 0.0
    for i in range(len(x) - 1, -1, -2):
        s = s * 0.5 + x[i]
    return s


@case(X12)
def bound_changed(x):
    n = 5
    s = 0.0
    for i in range(n):
        n = n + 1
        s += x[i] * n
    return s


@case(X12)
def return_nested(x):
    for i in range(len(x)):
        for j in range(i):
            if x[i] * x[j] > 1.2:
                return x[i] * x[j] * i
    return -1.0 * x[0]


@case(X12)
def while_true(x):
    s = 0.0
    i = 0
    while True:
        s += x[i]
        if s > 2.0:
            break
        i += 1
    return s * i


@case(X12)
def walrus(x):
    i = 0
    s = 0.0
    while (v := x[i]) < 1.3:
        s += v
        i += 1
    return s + v


@case(X12)
def matching(x):
    s = 0.0
    for i in range(len(x)):
        match i % 3:
            case 0:
                s += x[i]
            case 1:
                s *= x[i]
            case _:
                s -= x[i]
    return s


@case(X12)
def short_circuit(x):
    i = len(x) - 1
    while i >= 0 and x[i] > 0.3:
        i -= 1
    s = 0.0
    for k in range(len(x)):
        if k > 0 and x[k - 1] > 0.7:
            s += x[k]
        elif (k + 3 < len(x) and x[k + 3] > 1.0) or k == 4:
            s += 2 * x[k]
    return s + i * x[0]


@case(X12)
def int_float(x):
    t = 0
    for i in range(len(x)):
        t += x[i]
    return t * t


@case(M4)
def det(a):
    a = a.copy()
    n = a.shape[0]
    d = 1.0
    for k in range(n):
        p = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            for j in range(n):
                t = a[k, j]
                a[k, j] = a[p, j]
                a[p, j] = t
            d = -d
        d *= a[k, k]
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            a[i, k:] -= f * a[k, k:]
    return d


@case(X7, X12)
def edit(x, y):
    n, m = len(x), len(y)
    d = np.zeros((n + 1, m + 1))
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            c = (x[i - 1] - y[j - 1]) ** 2
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + c)
    return d[n, m]


@case(X12)
def scratch(x):
    n = len(x)
    tmp = np.zeros(n)
    s = 0.0
    for t in range(10):
        for i in range(n):
            tmp[i] = x[i] * (t + 1)
        for i in range(1, n):
            s += tmp[i] * tmp[i - 1]
    return s


@case(X12)
def adaptive(x):
    t = 0.0
    y = x[0]
    h = 0.1
    k = 0
    while t < 1.0:
        k += 1
        yn = y + h * (-y * y + x[1])
        err = abs(yn - y) * h
        if err > 0.01:
            h *= 0.5
            continue
        y = yn
        t += h
        if err < 0.002:
            h *= 1.3
    return y


@case(X12)
def rows(x):
    a = np.zeros((4, 3))
    for i in range(4):
        r = a[i]
        for j in range(3):
            r[j] = x[i * 3 + j] * 2
    b = a.T
    b[0] *= 3.0
    return np.sum(a**2) + a[1][2]


@case(X12)
def elif_chain(x):
    s = 0.0
    for v in x:
        if v < 0.5:
            s += v
        elif v < 0.9:
            s += v * v
        elif v < 1.2:
            s -= v
        else:
            s += 1 / v
    return s


@case(X12)
def ifexp(x):
    s = 0.0
    for i, v in enumerate(x):
        s += v if v > 0.8 else -v * i
    return s


@case(X12, X7)
def zipped(x, y):
    s = 0.0
    for a, b in zip(x, y, strict=False):
        s += a * b
    return s


@case(X12)
def maxmin(x):
    lo = x[0]
    hi = x[0]
    for v in x:
        lo = min(lo, v)
        hi = max(hi, v)
    return hi - lo * 2


@case(X12)
def for_else(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i]
        if s > 100:
            break
    else:
        s = s * 2
    for i in range(len(x)):
        if x[i] > 1.0:
            break
    else:
        s = s * 5
    return s


@case(X12)
def power_norm(x):
    v = np.ones(3)
    a = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            a[i, j] = x[i + j] * x[i]
    for _ in range(20):
        v = a @ v
        v /= np.sqrt(np.sum(v * v))
    return v @ (a @ v)


@case(X12)
def chained(x):
    s = 0.0
    for v in x:
        if 0.4 < v < 1.0:
            s += v
        if not (v > 0.7):
            s += 2 * v
    return s


@case(X12)
def last_value(x):
    for i in range(len(x)):
        y = x[i] * i
    return y + i * x[0]


@case(X12)
def prefix_sum_view(x):
    a = x.copy()
    for i in range(1, len(a)):
        b = a[i - 1 :]
        b[1] += b[0]
    return a[-1] * a[3]


@case(X12)
def captured(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * TIMES[i] + TABLE[1, SEEN[i]]
        s += np.sum(TABLE[:, SEEN[i]]) * x[0]
    return s


@case(X12)
def two_lambdas(x):
    f, g = (lambda v: v * 2 if v > 0.7 else v), (lambda v: v + 1 if v > 0.7 else -v)
    s = 0.0
    for v in x:
        s += f(v) * g(v)
    return s


@case(X12)
def cell_rebound(x):
    k = 2.0

    def f(v):
        return v * k

    s = f(x[0])
    k = 3.0
    s += f(x[1])
    for i in range(len(x)):
        k = k * 1.1
        s += f(x[i])
    return s


@njit
def inner_njit(v, w=2.0):
    if v > 0.7:
        return v * w
    return v


@njit
def outer_njit(x):
    s = 0.0
    for i in range(len(x)):
        s += inner_njit(x[i]) + inner_njit(x[i], 3.0)
    return s


case(X12)(outer_njit)


@case(X12)
def list_append(x):
    vals = []
    for i in range(len(x)):
        vals.append(x[i] * i)
    return np.sum(np.array(vals) ** 2) + len(vals) * x[0]


@case(X12)
def list_index(x):
    vals = [0.0]
    for i in range(len(x)):
        vals.append(vals[i] * 0.5 + x[i])
    return vals[-1] * vals[3]


@case(X12)
def list_break(x):
    out = []
    for i in range(len(x)):
        if x[i] > 1.3:
            break
        out.append(x[i] ** 2)
    s = 0.0
    for v in out:
        s += v
    return s * len(out)


@case(X12)
def comp_sym(x):
    return np.sum(np.array([x[i] * i for i in range(len(x))]) ** 2) + sum(
        x[i] * 2 for i in range(len(x))
    )


@case(X12)
def short_list(x):
    parts = [x[i] for i in range(4)]
    parts[1] = parts[0] * 2
    parts.append(x[5])
    return sum(parts) * max(parts)


@case(X12)
def masks(x):
    y = x.copy()
    y[y > 0.8] = 0.0
    return np.sum(y * y)


def poly(x, *, deg=3, scale=2.0):
    r = 0.0
    for _ in range(deg):
        r = r * x + scale
    return r


@case(X12)
def kwonly(x):
    return poly(x[0]) + poly(x[1], deg=10) + functools.partial(poly, scale=3.0)(x[2])


def deco(f):
    @functools.wraps(f)
    def w(*a, **k):
        r = f(*a, **k)
        return r * 2 if r > 0 else r

    return w


@deco
def dd(v):
    if v > 1:
        return v * v
    return v


@case(X12)
def decorated(x):
    s = 0.0
    for v in x:
        s += dd(v)
    return s


@case(X12)
def tuple_state(x):
    st = (x[0], 0.0)
    for i in range(len(x)):
        a, b = st
        st = (a * 0.9 + x[i], b + a)
    return st[0] * st[1]


@case(X12)
def recursion(x):
    def fact(n):
        return 1.0 if n <= 0 else x[n] * fact(n - 1)

    return fact(5)


@case(X12)
def while_concrete(x):
    k = 0
    s = 0.0
    while k < 5:
        s += x[k]
        k += 1
    k = 0
    while k < 12:
        s += x[k] ** 2
        k += 2
    k = 1
    while k < 1000:
        s = s + x[k % 12]
        k *= 2
        if k == 64:
            s *= 2
    return s


@case(X12)
def nested_break(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if j > i:
                break
            if x[j] > 1.2:
                continue
            s += x[i] * x[j]
        if s > 8:
            break
    return s


@case(X12)
def np_things(x):
    a = np.empty_like(x)
    b = np.ones((3, 4))
    c = np.arange(len(x)) * 0.5
    for i in range(len(x)):
        a[i] = np.exp(-x[i]) + np.maximum(x[i], 0.5)
    b[1] = a[:4]
    b[:, 2] += c[3]
    return np.sum(b) * np.dot(a, c) + np.mean(x) + a.max()


@case(X12, X7)
def early(x, y):
    if len(y) > 100:
        return 0.0
    if x[0] > 5:
        return x[1]
    s = 0.0
    for v in y:
        if v < 0:
            return s
        s += v * x[0]
    return s


@case(X12)
def boolean_flag(x):
    found = False
    s = 0.0
    for i in range(len(x)):
        if x[i] > 1.0 and not found:
            found = True
            s += x[i] * 10
        elif found:
            s += x[i]
    return s


@case(X12)
def swap_in_if(x):
    u = x.copy()
    v = x * 2
    for _ in range(10):
        if u[0] > v[0]:
            u, v = v, u
        u[0] = u[0] + v[1] * 0.1
    return u[0] * 2 + v[0]


@case(X12)
def best_array(x):
    best = x * 1.0
    cur = x * 1.0
    for t in range(10):
        cur = cur * 0.9 + 0.1 * t * x
        if np.sum(cur) > np.sum(best):
            best = cur
    return np.sum(best**2)


@case(X12)
def fstring(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError(f"negative {i}")
        s += x[i]
    return s


@case(X12)
def int_conv(x):
    s = 0.0
    for i in range(len(x)):
        k = int(x[i] * 4) % len(x)
        s += x[k] * float(k)
    return s + round(2.6)


def differences(f, args, place):
    found = np.zeros_like(args[place])
    for index in np.ndindex(found.shape):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [arg.copy() for arg in args]
            moved[place][index] += step
            ends.append(f(*moved))
        found[index] = (ends[0] - ends[1]) / 2e-6
    return found


@case(X7)
@case(X12)
def divisions_by_lengths_that_the_run_tells(x):
    some, n = np.array([v for v in x if v > 0.5]), len(x)
    total = some[n % len(some)] + some[(2 * n + 1) % len(some)] * (n // len(some))
    return total + x[0] / len(some)


@pytest.mark.parametrize("compiled", [False, True])
def test_division_by_a_length_of_zero(compiled):
    f = nbta.function(divisions_by_lengths_that_the_run_tells, compiled=compiled)
    with in_python(), pytest.raises(ZeroDivisionError, match="by zero"):
        f(np.zeros(12))


# Lists of tuples that a loop fills.


class Point(NamedTuple):
    t: float
    y: float


@case(X7)
@case(X12)
def tuples_that_are_picked(x):
    picked, named, nested = [], [], []
    for i in range(len(x)):
        if x[i] > 0.6:
            picked.append((i, x[i] * 2, x * x[i]))
        named.append(Point(0.1 * i, x[i]))
        nested.append((x[i], (x[i] ** 2, i)))
    total = 0.0
    for i, v, row in picked:
        total += i * v + x[i] * row[0]
    for a, (b, c) in nested:
        total += a * b * c
    again = [p for p in named]  # noqa: C416
    total += sum(p.t * p.y for p in again) + named[0].y
    return total + len(picked) + picked[-1][1]


@case(X7)
def a_history_of_tuples(x):
    history, t, y = [(0.0, x[0])], 0.0, x[0]
    while t < 1.0:
        y += 0.1 * math.sin(y + x[1])
        t += 0.1
        history.append((t, y))
    table = np.array(history)
    return np.sum(table[:, 1] * table[:, 0]) + table.shape[0] * table.shape[1]


@case(X7)
@case(X12)
def a_stack_of_ranges(x):
    waiting, total = [(0, len(x))], 0.0
    while waiting:
        low, high = waiting.pop()
        if high - low <= 1:
            total += x[low] * low
        else:
            middle = (low + high) // 2
            waiting.append((low, middle))
            waiting.append((middle, high))
    return total


# Generator expressions, whose items are made when somebody asks for them.


def weighted(items, weight):
    total = 0.0
    for v in items:
        total += v * weight
    return total


@case(X7)
@case(X12)
def generators_that_are_asked_later(x):
    t = 0.9
    g = (v * t for v in x if v > t)
    t = 0.6
    total = sum(g) + 10.0 * sum(g)
    some, x = (v for v in x if v > 0.5), x * 2.0
    total += sum(k * v for k, v in enumerate(some))
    y = x.copy()
    late = (v for v in y if v > 1.0)
    y[:] = y[::-1] * 1.1
    total += weighted(late, 3.0) + weighted((v * v for v in x if v > 0.4), t)
    return total + max(v for v in x if v > 0.1)


@case(X7)
@case(X12)
def generators_that_give_items_one_by_one(x):
    first = next(v for v in x if v > 0.6)
    none = next((v for v in x if v > 50.0), -1.0)
    g = (v for v in x if v > 0.3)
    a, b = next(g), next(g)
    rest = 0.0
    for v in g:
        rest += v * v
    for v in g:
        rest += 100.0 * v
    return first * none + a * b + rest


@case(X7)
@case(X12)
def lengths_of_lists_of_all_items(x):
    a = np.array([v * v + x[0] for v in x])
    rows = np.array([x * v for v in x])
    xs = [v for v in x]  # noqa: C416
    xs.append(3.0)
    n = len(x)
    total = a[n % len(a)] + a[(2 * n + 1) % len(a)] + np.sum(a * x) + np.trace(rows @ rows)
    total += np.array(xs).sum() * len([v * 2.0 for v in x])
    return total + rows.shape[0] * rows.shape[1] + len(xs)


# Ranges with a step that the run tells.


@case(X7)
@case(X12)
def steps_that_the_run_tells(x):
    n, total, size = len(x), 0.0, 2
    while size <= n:
        for start in range(0, n - size + 1, size):
            total += x[start] * x[start + size - 1]
        for k in range(n - 1, -1, -size):
            total += x[k] * k
        size *= 2
    step = int(x[0] * 3) + 1
    for k in range(n, 2, step):
        total += 100.0 * x[k]
    for k in range(0, n, n // 3):
        total *= 1.0 + 0.1 * x[k]
    return total + len(range(0, n, step)) + sum([x[k] for k in range(0, n, step)])


# What is deleted.


@case(X7)
@case(X12)
def variables_that_iterations_delete(x):
    total, i, last = 0.0, 0, x[0]
    while x[i] < 1.2 and i < len(x) - 1:
        t = x[i] * 2
        u = x * t
        total += t + u[0]
        del t, u
        i += 1
    for k in range(len(x)):
        if x[k] > 0.7:
            s = x[k] * last
            del last
            last = s
    del k
    return total + last


@case(X7)
@case(X12)
def state_that_iterations_delete(x):
    o, d, total = Held(x[0]), {}, 0.0
    for i in range(len(x)):
        o.more, d["p"] = x[i], x[i] * x[0]
        o.value += o.more
        total += d["p"]
        del o.more, d["p"]
    return o.value + total + len(d)


@case(X7)
@case(X12)
def a_list_that_several_loops_fill(x):
    xs = [x[0]]
    for i in range(len(x)):
        xs.append(x[i])
    for i in range(len(x)):
        for j in range(2):
            xs.append(xs[i] * x[j])
    return sum(xs)


# What an assignment reads ahead of computing its value, which changes that.


class Held:
    def __init__(self, value):
        self.value = value


@case(X7)
@case(X12)
def items_changed_by_the_value_of_their_own_assignment(x):
    m = np.outer(x, x)
    row = m[1]

    def changing(i):
        x[0] += 0.1
        for k in range(len(x)):
            m[1] += 0.1 * k
        return x[i]

    for i in range(len(x)):
        row[i] += changing(i)
        m[1, i] -= changing(0)
    x[1:] *= changing(2) * x[1:]
    x[0] += changing(1)
    return np.sum(m * m) * 1e-4 + np.sum(x * x)


@case(X7)
def state_changed_by_the_value_of_its_own_assignment(x):
    o, d, xs = Held(x[0]), {"p": x[1]}, [x[2]]

    def changing(q):
        o.value = q
        d["p"] += q
        xs[0] *= q
        return q * o.value

    o.value += changing(x[3])
    d["p"] *= changing(3.0)
    xs[0] -= changing(x[0])
    return o.value + d["p"] + xs[0]


@case(X7)
@case(X12)
def values_given_in_the_heads_of_branches_and_loops(x):
    t = 0.0
    for i in range(len(x)):
        if x[i] > 0.8:
            z = x[i]
        if (z := x[i] * 2) > 1.0:
            t += z
        t += z
        for k in (u := x * z):
            t += k * u[0]
        t += u[1]
    if (v := t * 0.5) > 1.0:
        w = v
    if (w := x[0]) > 0.0:
        t += w
    return t + w * v


# Lists that a loop fills, and others, together.


@case(X7)
@case(X12)
def lists_that_are_joined(x):
    some = [v for v in x if v > 0.5]
    both = [0.1] + some + [1.0]  # noqa: RUF005
    both += some
    both.extend([2.0])
    both.extend(v * v for v in x)
    copy, other = some.copy(), list(some)
    copy.append(x[0])
    other.extend(other)
    total = sum(copy) * len(other) + sum(v * k for k, v in enumerate(both))
    return total + len(some) + (x[1] in both) + (7.0 in some)


@case(X7)
def lists_of_one_number_again_and_again(x):
    xs, ys = [0.0] * 3, [0.5] * len(x)
    for v in x:
        if v > 0.5:
            xs.append(v)
    ys += x
    flags = [1, 2, 1]
    return sum(xs) + np.sum(ys) * flags.count(1) * flags.index(2)


def check(f, args, compiled):
    expected = f(*(arg.copy() for arg in args))
    given = [arg.copy() for arg in args]
    places = tuple(range(len(args)))
    value, gradients = nbta.value_and_grad(f, places, compiled=compiled)(*given)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for place, gradient in enumerate(gradients):
        np.testing.assert_array_equal(given[place], args[place])
        np.testing.assert_allclose(gradient, differences(f, args, place), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("f", "args"), CASES)
def test_value_and_gradient(f, args):
    check(f, args, compiled=False)


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize(("f", "args"), CASES)
def test_compiled(f, args):
    check(f, args, compiled=True)


# How much is traced.


def nest_of_short_loops(x):
    grid = np.zeros((5, 4, 6))
    for i in range(5):
        for j, v in enumerate(np.linspace(0.0, 1.0, 4)):
            for k, y in zip(range(6), x, strict=False):
                t = math.sin(x[k] * v + i) * y
                if t > 0.1:
                    grid[i, j, k] += t * math.cos(x[j] * t)
                else:
                    grid[i, j, k] = t - x[i] * y
    return np.sum(grid * grid)


def layers_of_a_list(x):
    layers = [{"w": np.outer(x, x) * 0.1 * k, "b": x + k, "on": k % 2 == 0} for k in range(5)]
    h = x
    for k in range(5):
        layer = layers[k]
        for step in range(8):
            for part in range(6):
                h = np.tanh(layer["w"] @ h + layer["b"] * step)
                h = h * 0.5 if layer["on"] else h * math.cos(h[0]) + part
    return np.sum(h * h)


def with_a_known_while(x):
    k, total = 0, 0.0
    while k < 7:
        m = 0
        while m < 8:
            for j in range(6):
                total += math.sin(total + x[j]) * x[k] + x[(j + m) % 7] ** 2
                if total > 2.0:
                    total *= 0.25
            m += 1
        k += 1
    return total


def whiles_of(graph):
    return sum(op.type == "While" for op in everything(graph))


def lists_of_several_shapes(x):
    """A list that an array could not be, in a loop that could otherwise be one of the graph."""
    found, y = [], x
    for _ in range(2):
        for k in range(8):
            for j in range(8):
                for i in range(8):
                    y = y + 0.001 * np.sin(y * (k + j * i))
        found += [y, np.sum(y), y[0]]
    return np.sum(found[0]) + found[4] * found[5]


@pytest.mark.parametrize(
    "f", [nest_of_short_loops, layers_of_a_list, with_a_known_while, lists_of_several_shapes]
)
def test_nests_of_short_loops(f):
    check(f, [X7], compiled=False)


def test_nests_of_short_loops_do_not_grow_with_their_iterations():
    for f in (nest_of_short_loops, with_a_known_while):
        traced = nbta.function(f)
        traced(X7)
        graph, _ = traced.traced()
        assert whiles_of(graph) >= 1
        assert len(list(everything(graph))) < 2 * OPERATIONS


def test_short_loops_that_cannot_be_one_of_the_graph_are_still_unrolled():
    traced = nbta.function(layers_of_a_list)
    traced(X7)
    assert len(list(everything(traced.traced()[0]))) > OPERATIONS


def eight_steps_of_loops(x):
    """Few iterations, of loops whose iterations only the run counts."""
    y = x.copy()
    for _ in range(8):
        z, norm = np.zeros(len(x)), 0.0
        for i in range(len(x)):
            s = 0.0
            for j in range(len(x)):
                s += math.sin(x[i] * y[j]) / (1.0 + abs(i - j))
            z[i] = s
        for i in range(len(x)):
            norm += z[i] * z[i]
        for i in range(len(x)):
            y[i] = z[i] / math.sqrt(norm)
    return y[0] + y[1]


def eight_known_steps_of_loops(x):
    y, k = x.copy(), 0
    while k < 8:
        norm = 1.0
        for i in range(len(x)):
            for j in range(len(x)):
                norm += abs(math.sin(y[i] * y[j]) * math.cos(x[i] - x[j]) + x[i] * x[j])
                norm = norm * 0.75 + math.tanh(norm + y[i]) * x[j] if norm > 2.0 else norm + x[j]
        for i in range(len(x)):
            y[i] = math.tanh(y[i] / math.sqrt(norm)) + x[i] * k
        k += 1
    return y[0] + y[1]


def two_small_steps_of_loops(x):
    y = x.copy()
    for _ in range(2):
        for i in range(len(x)):
            y[i] *= x[i]
    return np.sum(y)


@pytest.mark.parametrize("f", [eight_steps_of_loops, eight_known_steps_of_loops])
def test_few_iterations_of_loops_that_take_long_to_compile_are_one_loop(f):
    check(f, [X7], compiled=False)
    traced = nbta.function(f)
    traced(X7)
    assert whiles_of(traced.traced()[0]) < 16  # with those of an iteration that was tried


def test_two_iterations_of_a_small_loop_are_two_loops():
    traced = nbta.function(two_small_steps_of_loops)
    traced(X7)
    assert whiles_of(traced.traced()[0]) == 2


def nest(depth):
    """A function with loops in each other that carry what they begin with in several ways."""
    lines, indent = ["def f(x):", "    s, a, best = 0.0, x.copy(), None"], "    "
    for k in range(depth):
        lines += [f"{indent}for i{k} in range(len(x)):"]
        indent += "    "
        lines += [f"{indent}s += x[i{k}] * {k + 1}", f"{indent}a = a * 0.5", f"{indent}t{k} = s"]
    lines += [
        f"{indent}if best is None or s > best:",
        f"{indent}    best = s + a[0]",
        "    return s + best",
    ]
    name = f"<a nest of {depth}>"
    linecache.cache[name] = (1, None, [line + "\n" for line in lines], name)
    space = {}
    exec(compile("\n".join(lines), name, "exec"), space)
    return space["f"]


def test_loops_in_each_other_are_not_traced_anew_each_time():
    made = {}
    for depth in (2, 4, 6):
        traced = nbta.function(nest(depth))
        np.testing.assert_allclose(traced(X7[:2]), nest(depth)(X7[:2]))
        made[depth] = traced.traced()[0].version  # counts operations of all traces
    assert made[6] < 3 * made[4]


SWAPS = """\
{indent}if x[0] > 0.{k}:
{indent}    u, v = v, u
{indent}u[i{k} % 3] = 0.5 * v[0] + x[i{k} % 3]
"""
ROWS = """\
{indent}if x[0] > 0.{k}:
{indent}    rows[i{k} % 3][{k}] += x[i{k} % 3]
"""


def nest_of_changes(depth, change):
    """A function with loops in each other that all change arrays, or lists of lists."""
    lines, indent = (
        ["def f(x):", "    u, v, rows = x * 2.0, x * 3.0, [[0.0] * 5 for _ in range(3)]"],
        "    ",
    )
    for k in range(depth):
        lines.append(f"{indent}for i{k} in range(9):")
        indent += "    "
        lines += change.format(indent=indent, k=k).splitlines()
    lines.append("    return sum(u) + 2.0 * sum(v) + sum([sum(row) for row in rows])")
    name = f"<changes in a nest of {depth}: {change}>"
    linecache.cache[name] = (1, None, [line + "\n" for line in lines], name)
    space = {}
    exec(compile("\n".join(lines), name, "exec"), space)
    return space["f"]


@pytest.mark.parametrize("change", [SWAPS, ROWS])
def test_loops_that_change_what_may_be_one_are_traced_a_few_times_a_level(change, monkeypatch):
    traces, attempt = Counter(), control._Loop._attempt

    def counted(self, *given):
        traces[self._block.__code__] += 1
        return attempt(self, *given)

    monkeypatch.setattr(control._Loop, "_attempt", counted)
    x = np.array([0.15, -0.2, 0.3])
    for depth in (2, 4):
        traces.clear()
        f = nest_of_changes(depth, change)
        np.testing.assert_allclose(nbta.function(f, compiled=False)(x), f(x), rtol=1e-12)
        # one with more levels around it is traced again where one of these learns of a change
        assert max(traces.values()) <= 4 * depth


def sum_in_steps(step):
    total = 0
    for _ in range(20):
        total += step
    return total


def test_a_loop_begins_with_no_dtypes_of_another_one_of_its_code():
    def both(x):
        return sum_in_steps(0.5) * x, sum_in_steps(1)

    value, count = nbta.function(both, compiled=False)(2.0)
    assert (value, count) == (20.0, 20)
    assert count.dtype == np.int64


# Ranges that a branch chooses.


@case(X7)
@case(-X12)
def ranges_that_a_branch_chooses(x):
    chosen = range(3) if x[0] > 0.1 else range(1, 6)
    total = 0.0
    for i in chosen:
        total += x[i] * (i + 1.0)
    if x[1] > 0.0:
        r = range(len(x) - 1, 0, -1)
    else:
        r = range(5, int(abs(x[2])), -1)
    for i in r:
        total += x[i] * x[i - 1] * i
    return total * len(chosen)


def test_ranges_of_other_steps_are_refused():
    def f(x):
        r = range(0, 6, 2) if x > 0.0 else range(3)
        for i in r:
            x = x + i
        return x

    with pytest.raises(nbta.InvalidArgumentError, match="one range where"):
        nbta.function(f)(1.0)


def test_variables_of_a_chain_of_elif_are_found_in_linear_time(monkeypatch):
    """Each branch of one lies in the one before, and is looked at once."""
    parts_of = liveness.parts_of

    def looks(count):
        branches = "".join(f"elif a > {k}:\n    b = {k}\n" for k in range(count))
        tree, seen = ast.parse(f"if a:\n    b = 0\n{branches}"), []
        monkeypatch.setattr(liveness, "parts_of", lambda node: seen.append(node) or parts_of(node))
        liveness.Liveness(set()).block(tree.body, {"b"})
        return len(seen)

    assert looks(80) < 4.4 * looks(20)
