"""`sorted`, `list.sort`, and `max` and `min` with a key, of what only the run knows."""

import bisect
import heapq
import math
import statistics

import frontend_checks as checks
import numpy as np
import pytest

import nbta

X = np.array([0.3, -0.7, 1.2, 0.9, -0.4, 0.55, 1.7, -1.1, 0.25, 0.62])


def positives(x):
    found = []
    for v in x:
        if v > -0.5:
            found.append(v * v)
    return found


def weighted(items):
    return sum(k * v for k, v in enumerate(items))


def sorted_in_place(x):
    up, down, near = positives(x), positives(x), positives(x)
    up.sort()
    down.sort(reverse=True)
    near.sort(key=lambda v: abs(v - 0.5))
    return weighted(up) + 2.0 * down[0] * down[-1] + weighted(near)


def sorted_by_keys(x):
    found = sorted(positives(x), key=lambda v: -v)
    few = sorted([("b", x[0]), ("a", x[1]), ("c", x[2]), ("a", x[3])], key=lambda t: (t[0], -t[1]))
    return weighted(found) + weighted([v for _, v in few])


def sorted_tuples(x):
    pairs = []
    for i, v in enumerate(x):
        pairs.append((v * v, i))
    pairs.sort()
    by_place = sorted(pairs, key=lambda pair: (pair[1] % 3, -pair[0]))
    return weighted([v for v, _ in pairs]) + by_place[1][0] * pairs[2][1] + by_place[5][0]


def sorted_while_it_grows(x):
    found, total = [], 0.0
    for v in x:
        found.append(math.sin(v))
        found.sort(key=lambda s: -s)
        if len(found) > 4:
            found.pop()
        total += found[0] * found[len(found) // 2]
    return total


def extremes(x):
    found, pairs = positives(x), []
    for i, v in enumerate(x):
        pairs.append((v * v, i))
    far = max(found, key=lambda v: abs(v - 0.5)) * min(found, key=lambda v: abs(v - 0.5))
    place = max(range(len(found)), key=lambda k: found[k])
    value, at = max(pairs)
    return far + found[place] * place + value * at + min(pairs, key=lambda p: -p[0])[0]


def extremes_of_few(x):
    table = {"a": x[0], "b": x[1], "c": x[2]}
    name, value = max(table.items(), key=lambda pair: pair[1])
    points = [(x[0], x[1]), (x[2], x[3]), (x[4], x[5])]
    near = min(points, key=lambda p: math.hypot(p[0] - 0.5, p[1]))
    row = max([[x[0], x[1]], [x[2], x[3]]], key=sum)
    return value * table[min(table, key=table.get)] + near[0] * near[1] + row[1] * len(name)


def pivots(x):
    n = 3
    a = [[x[(2 * i + j) % 10] + 3.0 * (i == j) for j in range(n)] for i in range(n)]
    product = 1.0
    for i in range(n):
        p = max(range(i, n), key=lambda r: abs(a[r][i]))
        a[i], a[p] = a[p], a[i]
        product *= a[i][i]
        for r in range(i + 1, n):
            a[r] = [u - a[r][i] / a[i][i] * w for u, w in zip(a[r], a[i], strict=True)]
    return product


def heap_of_numbers(x):
    heap, total = [], 0.0
    for v in x[:6]:
        heapq.heappush(heap, v * v)
    while len(heap) > 1:
        one, other = heapq.heappop(heap), heapq.heappop(heap)
        total += one + other
        heapq.heappush(heap, one * other)
    return total + heapq.nsmallest(2, x)[1] * heapq.nlargest(3, x, key=lambda v: -v)[2]


def heap_of_pairs(x):
    heap = []
    for i in range(2 * len(x)):
        heapq.heappush(heap, (math.sin(x[i % 10] * (i + 0.9)), i))
    total, weight = 0.0, 1.0
    while heap:
        v, i = heapq.heappop(heap)
        total, weight = total + v * weight + 0.1 * i * v, 0.9 * weight
    return total


def heap_in_place(x):
    heap = [v * v for v in x[:5]]
    heapq.heapify(heap)
    one, other = heapq.heapreplace(heap, x[0]), heapq.heappushpop(heap, x[1])
    return one * other + heap[0] + 2.0 * heap[3]


def between_points(x):
    at, values = [0.0, 0.1, 0.35, 0.5, 1.0], [1.0, 2.0, 0.5, 4.0, 3.0]
    i = bisect.bisect(at, x[0]) - 1
    part = (x[0] - at[i]) / (at[i + 1] - at[i])
    found = []
    for v in x:
        bisect.insort(found, v)
    return values[i] * (1 - part) + values[i + 1] * part + weighted(found)


def of_samples(x):
    found = positives(x)
    spread = statistics.stdev(found) * statistics.pvariance(x)
    return statistics.mean(found) * spread + statistics.median(found) + statistics.fmean(x)


EACH = [
    sorted_in_place, sorted_by_keys, sorted_tuples, sorted_while_it_grows, extremes,
    extremes_of_few, pivots, heap_of_numbers, heap_of_pairs, heap_in_place, between_points,
    of_samples,
]  # fmt: skip


@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right(f):
    checks.check_of_an_array(f, X, False)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("f", EACH, ids=lambda f: f.__name__)
def test_right_in_generated_code(f):
    checks.check_of_an_array(f, X, True)


@pytest.mark.parametrize("reverse", [False, True])
def test_equal_keys_keep_their_order(reverse):
    def grown(x):
        pairs = []
        for i, v in enumerate(x):
            pairs.append((i % 3, v, i))
        pairs.sort(key=lambda t: t[0], reverse=reverse)
        first, last = max(pairs, key=lambda t: t[0]), min(pairs, key=lambda t: t[0])
        return [i for _, _, i in pairs], first[2], last[2]

    def few(x):
        pairs = [(x[k] * 0.0, k) for k in range(5)]
        pairs = sorted(pairs, key=lambda t: t[0], reverse=reverse)
        return [k for _, k in pairs], max(pairs, key=lambda t: t[0])[1]

    for f in grown, few:
        found, expected = nbta.function(f, compiled=False)(X), f(X)
        np.testing.assert_array_equal(found[0], expected[0])
        assert found[1:] == expected[1:]


def test_no_extreme_of_nothing():
    def f(x):
        found = []
        for v in x:
            if v > 9.0:
                found.append(v)
        return max(found, key=lambda v: -v)

    with pytest.raises(ValueError, match="iterable argument is empty"):
        nbta.function(f, compiled=False)(X)


def test_only_the_first_nan_counts():
    def f(x, place):
        found = []
        for v in x:
            found.append(v)
        found[place] = float("nan")
        return max(found, key=lambda v: v) + 0.0

    assert np.isnan(nbta.function(f, compiled=False)(X, 0))
    assert nbta.function(f, compiled=False)(X, 2) == f(X, 2) == 1.7
