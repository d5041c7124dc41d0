"""`index`, `count`, `remove` and `==` of lists of which only the run knows the length."""

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


def places(x):
    found, pairs = positives(x), []
    for i, v in enumerate(x):
        pairs.append((i % 4, v))
    at = found.index(max(found))
    return found[at] * at + found.index(x[2] * x[2]) * x[0] + pairs.index((2, x[6])) * x[1]


def counts(x):
    signs, pairs = [], []
    for v in x:
        signs.append(1 if v > 0 else 0)
        pairs.append((signs[-1], len(signs) % 2))
    return signs.count(1) * x[0] + pairs.count((1, 0)) * x[1] + signs.count(5)


def removed(x):
    found = positives(x)
    found.remove(max(found))
    found.remove(x[0] * x[0])
    return sum(k * v for k, v in enumerate(found))


def removed_in_a_loop(x):
    found, total = [], 0.0
    for v in x:
        found.append(v * v)
        if len(found) > 3:
            found.remove(min(found))
        total += found[0] * found[-1]
    return total


def compared(x):
    one, other, third = positives(x), positives(x), positives(x)
    third.append(1.0)
    total = x[0] * 2.0 if one == other else x[1]
    total += x[2] if one == third else x[3] * 3.0
    other[1] = 0.0
    total += x[4] if one != other else x[5]
    return total + (x[6] if third != [x[0], x[1]] else x[7])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [places, counts, removed, removed_in_a_loop, compared])
def test_right(f, compiled):
    checks.check_of_an_array(f, X, compiled)


def test_what_is_not_there():
    def f(x):
        found = positives(x)
        found.remove(9.0)
        return sum(found)

    for g in (f, lambda x: positives(x).index(9.0) * x[0]):
        with pytest.raises(ValueError, match="the value is not in the list"):
            nbta.function(g, compiled=False)(X)


def test_an_index_that_a_handler_waits_for():
    def f(x, n):
        total = 0.0
        for i in range(n):
            try:
                total += x[i] * i
            except IndexError:
                total += 0.5
        return total

    assert nbta.function(f, compiled=False)(X, 10) == f(X, 10)
    with pytest.raises(IndexError, match=r"does not catch .*; test the index with an if") as failed:
        nbta.function(f, compiled=False)(X, 11)
    assert "test_searching.py:" in str(failed.value)


def test_an_array_has_no_names():
    with pytest.raises(TypeError, match=r"'numpy\.ndarray' object is not a mapping"):
        nbta.function(lambda x: {**x}, compiled=False)(X)
