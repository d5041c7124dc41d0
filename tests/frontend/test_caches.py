"""Functions of `functools.lru_cache` in functions that are traced: Python's cache answers."""

import functools

import numpy as np
import pytest

import nbta

WAYS = pytest.mark.parametrize("compiled", [True, False])
factor, runs = 2.0, []


@functools.lru_cache
def scale(k, by=1.0):
    return factor * k * by


@functools.cache
def noted(k):
    runs.append(k)
    return k + 1.0


@functools.cache
def ones(k):
    return [1.0] * k


@functools.cache
def filled(k):
    return np.full(3, factor * k)


@functools.cache
def table(k):
    return {"rate": factor, "rows": [[factor], np.ones(k)]}


@functools.cache
def by_object(settings):
    return settings.factor * 2.0


@functools.cache
def failing(k):
    if factor < 4.0:
        raise KeyError(k)
    return factor


@functools.cache
def square(v):
    return v * v + 1.0


class Model:
    def __init__(self):
        self.factor = 2.0

    @functools.lru_cache  # noqa: B019
    def scaled(self, k):
        return self.factor * k


model = Model()
CACHED = (scale, noted, ones, filled, table, by_object, failing, square, Model.scaled)


def clear():
    for each in CACHED:
        each.cache_clear()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Caches that hold nothing, and all as it was afterwards."""
    clear()
    runs.clear()
    monkeypatch.setattr(model, "factor", 2.0)
    yield
    clear()


def handles(x):
    try:
        return x * failing(3)
    except KeyError:
        return x * 10.0


def in_loops(x):
    total = 0.0
    for k in range(4):
        total = total + scale(k) * x
    return total


PROGRAMS = [
    lambda x: x * scale(3) + scale(k=2, by=0.5) + scale((1.0, 2.0)[1]),
    lambda x: x * scale(True) + scale(1),
    lambda x: x * len(ones(2)) + sum(ones(3)),
    lambda x: x * np.sum(filled(2)) + filled(2)[0],
    lambda x: x * table(3)["rate"] + table(3)["rows"][0][0] + np.sum(table(3)["rows"][1]),
    lambda x: x * by_object(model),
    lambda x: x * model.scaled(3),
    lambda x: x * sum(map(scale, [1.0, 2.0])) + max([1.0, 2.0], key=scale),
    lambda x: x * functools.partial(scale, 2.0)(by=3.0),
    handles,
    in_loops,
]


@WAYS
@pytest.mark.parametrize("f", PROGRAMS)
def test_cache_answers_as_in_python(f, compiled, monkeypatch):
    def change_results():
        ones(2).append(1.0)
        ones(3)[0] = 5.0
        filled(2)[0] = 100.0
        table(3)["rate"] = 7.0
        table(3)["rows"][0].append(7.0)
        table(3)["rows"][1][0] = 7.0

    traced = nbta.value_and_grad(f, compiled=compiled)
    changes = [
        lambda: None,
        lambda: monkeypatch.setitem(globals(), "factor", 5.0),
        lambda: setattr(model, "factor", 5.0),
        change_results,
        clear,
        lambda: monkeypatch.setitem(globals(), "factor", 3.0),
        clear,
    ]
    for change in changes:
        change()
        for _ in range(2):
            value, slope = traced(2.0)
            assert value == f(2.0)
            np.testing.assert_allclose(slope, f(3.0) - f(2.0))


@WAYS
def test_call_fills_the_cache_and_runs_nothing_twice(compiled):
    f = nbta.function(lambda x: x * noted(3), compiled=compiled)
    assert [f(2.0) for _ in range(3)] == [8.0] * 3
    assert (runs, noted.cache_info().misses) == ([3], 1)
    noted(3)
    assert runs == [3]
    noted.cache_clear()
    assert f(2.0) == 8.0
    assert runs == [3, 3]


def test_list_that_the_caller_appends_to():
    def f(x):
        held = ones(5)
        held.append(2.0)
        return x * len(held)

    traced = nbta.function(f)
    assert [g(1.0) for g in (traced, f, traced, traced, f)] == [6.0, 7.0, 8.0, 9.0, 10.0]


@WAYS
def test_functions_that_the_trace_makes_are_traced(compiled):
    def f(x):
        @functools.cache
        def power(n):
            return x if n == 1 else power(n - 1) * x

        return power(5) + power(3)

    value, slope = nbta.value_and_grad(f, compiled=compiled)(2.0)
    assert (value, slope) == (40.0, 92.0)


@WAYS
def test_values_of_the_run_are_traced_where_nothing_is_read_from_outside(compiled):
    f = nbta.value_and_grad(lambda x: square(x) + square(2.0), compiled=compiled)
    assert np.isclose(f(3.0)[1], 6.0)


def test_values_of_the_run_beside_what_may_change_are_refused():
    reads = r"has a cache.* reads \S*factor"
    for f in (lambda x: scale(x), lambda x: model.scaled(x), lambda x: by_object(model) + scale(x)):
        with pytest.raises(nbta.InvalidArgumentError, match=reads) as info:
            nbta.value_and_grad(f)(2.0)
        assert info.value.reason == "cache"
    value, slope = nbta.value_and_grad(lambda x: scale.__wrapped__(x))(3.0)
    assert (value, slope) == (6.0, 2.0)


def test_arrays_have_no_hash():
    x = np.ones(3)
    for f in (lambda x: scale(x), lambda x: scale(np.ones(3)) * x, lambda x: scale((1, x))):
        for g in (f, nbta.function(f)):
            with pytest.raises(TypeError, match=r"unhashable type: 'numpy\.ndarray'"):
                g(x)


def test_values_of_a_trace_do_not_stay_in_a_cache():
    held = Model()

    @functools.cache
    def of_another(k):
        return held.factor * k

    def f(x):
        held.factor = x * 2.0
        return by_object(held) * x

    def g(x):
        held.factor = x * 2.0
        return of_another(3) * x

    for each in (f, g):
        with pytest.raises(nbta.InvalidArgumentError, match=r"test_caches.* has a cache"):
            nbta.function(each)(2.0)
    held.factor = 3.0
    assert (by_object(held), of_another(3)) == (6.0, 9.0)
