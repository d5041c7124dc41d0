"""Loops whose iterations Python counts and makes, as no loop of the graph can use what they use."""

import itertools
import math
from collections import defaultdict, deque

import frontend_checks as checks
import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

X = np.array([0.3, -0.7, 1.2, 0.95, -0.4, 0.55, 1.7, -1.1, 0.25, 0.6])


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __rmul__(self, factor):
        return Vector(factor * self.x, factor * self.y)

    def __abs__(self):
        return math.hypot(self.x, self.y)


def objects_of_a_class(x):
    place, speed = Vector(1.0, 0.1), Vector(x[0], x[2])
    for _ in range(12):
        speed += (-0.05 / abs(place) ** 3) * place
        place += 0.05 * speed
    return abs(place) * abs(speed)


def keys_of_a_set(x):
    seen, total = set(), 0.0
    for i in range(20):
        if i * i % 7 not in seen:
            seen.add(i * i % 7)
            total += x[i * i % 7] ** 2
    return total * len(seen)


def keys_of_dicts(x):
    groups, sums, table = defaultdict(list), {}, {}
    for i, v in enumerate(x):
        groups["even" if i % 2 == 0 else "odd"].append(v)
        sums[i % 3] = sums.get(i % 3, 0.0) + v
    for i, j in itertools.product(range(4), repeat=2):
        table[i, j] = x[i] * sums[j % 3]
    return sum(groups["even"]) * sum(groups["odd"]) + table[3, 1] + len(table)


def left_where_the_run_decides(x):
    found, total = {}, 0.0
    for i in range(20):
        found[i % 3] = found.get(i % 3, 0.0) + x[i % 10]
        if found[i % 3] > 2.5:
            total = found[0] * i
            break
    return total + found[1] ** 2


def window(x):
    last, total = deque(maxlen=3), 0.0
    for v in x:
        last.append(v)
        total += sum(last) / len(last) * v
    return total


def iterator(x):
    factors, total = iter(range(100)), 0.0
    for v in x:
        total += v**2 * next(factors)
    return total


def ranks_that_change(x):
    y = x
    for _ in range(10):
        y = y[None] * 1.5
    return np.sum(y**2)


def row_of_other_lengths(x):
    row = [x[0]]
    for k in range(9):
        row = [1.0, *(a + x[k] * b for a, b in itertools.pairwise(row)), x[k]]
    return sum(row)


def handled_in_its_first_iteration(x):
    total, held = 0.0, {}
    try:
        for v in x:
            total = total + held["missing"] * v
    except KeyError:
        total = x[0] * 3.0
    return total


def parts_under_one_name(x):
    steps = [(k, v * k, v) for k, v in enumerate(x)]
    return sum(b for _, b, _ in steps) * max(b for _, b, _ in steps)


def keys_up_to_a_length(x):
    sums, seen, total = {}, set(), 0.0
    for i in range(1, x.shape[0] - 1):
        sums[i % 3] = sums.get(i % 3, 0.0) + x[i] * x[i + 1]
    for i in range(len(x) - 1, -1, -2):
        if i * i % 5 not in seen:
            seen.add(i * i % 5)
            total += sums[i % 3] * x[i]
    return total


def keys_below_a_diagonal(x):
    table = {}
    for i in range(len(x) // 2):
        for j in range(i + 1):
            table[i, j] = x[i] * x[j]
            if (i - 1, j) in table:
                table[i, j] += table[i - 1, j]
    return table[len(x) // 2 - 1, 0]


def keys_of_a_while(x):
    sums, i = {}, 0
    while i < len(x):
        sums[i % 4] = sums.get(i % 4, 1.0) * x[i]
        i += 1
    while i < 40:
        sums[i % 4] = 0.9 * sums[i % 4] + x[i % len(x)]
        i += 3
    return sums[0] * sums[1] + sums[2]


def factorial(n):
    return 1 if n <= 1 else n * factorial(n - 1)


def recursion_of_a_counter(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 2 / factorial(i)
    return total


def chain_of_objects(x):
    last = None
    for i in range(len(x)):
        last = (last, x[i])
    total = 0.0
    while last is not None:
        last, v = last
        total = 0.5 * total + v * v
    return total


BY_LENGTH = [
    keys_up_to_a_length,
    keys_below_a_diagonal,
    keys_of_a_while,
    recursion_of_a_counter,
    chain_of_objects,
]

PROGRAMS = [
    objects_of_a_class,
    keys_of_a_set,
    keys_of_dicts,
    left_where_the_run_decides,
    window,
    iterator,
    ranks_that_change,
    row_of_other_lengths,
    handled_in_its_first_iteration,
    parts_under_one_name,
    *BY_LENGTH,
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_right(f, compiled):
    checks.check_of_an_array(f, X, compiled)


@pytest.mark.parametrize("f", BY_LENGTH, ids=lambda f: f.__name__)
def test_one_function_for_several_lengths(f):
    gradient = nbta.value_and_grad(f, compiled=False)
    for n in (10, 7, 10, 9):
        x = X[:n].copy()
        value, slopes = gradient(x)
        assert value == pytest.approx(f(x), rel=1e-13)
        steps = 1e-6 * np.eye(n)
        expected = [(f(x + step) - f(x - step)) / 2e-6 for step in steps]
        np.testing.assert_allclose(slopes, expected, rtol=1e-6, atol=1e-8)


def test_second_derivatives():
    with in_python():
        checks.check_second(objects_of_a_class, (0,), (X.copy(),), True)


def asks_in_a_long_loop(x):
    total, seen = 0.0, {}
    for i in range(2000):
        seen[i] = x[i % 10] * i
        total += seen[i]
    return total


def asks_where_the_run_counts(x):
    total, seen = 0.0, {}
    for i in range(int(x[2] * 10)):
        seen[i] = x[i % 10] * i
        total += seen[i]
    return total


def asks_in_a_long_while(x):
    i, seen = 0, {}
    while i < 200 * len(x):
        seen[i] = x[i % 10] * i
        i += 1
    return seen[7]


def asks_in_a_while_of_the_run(x):
    i, total, seen = 0, 0.0, {}
    while total < 5.0:
        seen[i] = x[i % 10] ** 2
        total += seen[i]
        i += 1
    return total


ASKING = [
    asks_in_a_long_loop,
    asks_where_the_run_counts,
    asks_in_a_long_while,
    asks_in_a_while_of_the_run,
]


@pytest.mark.parametrize("f", ASKING)
def test_long_loops_are_refused_as_before(f):
    checks.check_refused(f, X, "only the run knows is looked up in a dict")


def test_lists_are_as_before_the_loop_that_could_not_be():
    """A list that the loop of the graph had made an array holds what Python puts into it."""

    def f(x):
        pairs, seen = [(x[0], "a")], {}
        numbers = [x[1]]
        for i in range(10):
            numbers.append(x[i] * numbers[-1])
            seen[i] = len(numbers)
            pairs.append((numbers[-1], "b"))
        return sum(numbers) + pairs[3][0] * seen[4] + len(pairs)

    checks.check_of_an_array(f, X, False)


def test_an_error_of_the_users_own():
    def f(x):
        names = {k: x[k] for k in range(4)}
        return sum(names[k] for k in (0, 3, 9))

    def in_a_loop(x):
        names, total = {0: x[0], 1: x[1]}, 0.0
        for k in range(10):
            total += names[k]
        return total

    for g in (f, in_a_loop):
        with pytest.raises(KeyError):
            nbta.function(g, compiled=False)(X)


def test_texts_that_patterns_ask_for():
    def area(shape):
        match shape:
            case ("circle", r):
                return math.pi * r * r
            case ("box", w, h):
                return w * h
            case "unit":
                return 1.0
            case [first, *rest]:
                return first + sum(rest)

    def f(x):
        a = x[2]
        shapes = ("circle", a), ("box", a, 2.0), [a, a * 2, a * a], "unit"
        return sum(area(shape) for shape in shapes)

    checks.check_of_an_array(f, X, False)


def test_a_loop_that_was_short_elsewhere_says_why_it_cannot_be_a_loop_of_the_graph():
    def by_key(x, n):
        seen = {}
        for k in range(n):
            seen[k % 3] = seen.get(k % 3, 0.0) + x[0] * k
        return seen[0] + 2.0 * seen[1]

    def caught(x):
        try:
            return by_key(x, 12) + by_key(x, 5000)
        except Exception:
            return 0.0

    for f in (lambda x: by_key(x, 12) + by_key(x, 5000), caught):
        with pytest.raises(nbta.InvalidArgumentError, match="looked up in a dict"):
            nbta.function(f, compiled=False)(X)
