"""When functions are compiled that did not say: as soon as that pays, whatever the graph's size."""

import math
import warnings

import numpy as np
import pytest
import read_code

import nbta
from nbta.compiler import build
from nbta.execution import break_even, reference, runner
from nbta.execution.break_even import Estimates, build_seconds
from nbta.graph import verifier
from nbta.loops import structure


class Clock:
    """CPU seconds that go by when somebody says so."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock of runs one by one; each takes a second, and compiling is estimated to take 10."""
    made = Clock()
    for name in ("clock", "processor"):
        monkeypatch.setattr(runner, name, made)
    monkeypatch.setattr(runner, "WALL_CLOCK_RUN", 0.0)

    class Known(Estimates):
        def looking(self, operations):
            return 1.5

        def passes(self, operations):
            return 3.5

        def building(self, seconds, is_kept):
            return 10.0

        def one_by_one(self, operations):
            return 0.0

    monkeypatch.setattr(runner, "estimates", Known())
    plan = runner.Plan.__call__

    def second(self, step, given):
        made.now += 1.0
        return plan(self, step, given)

    monkeypatch.setattr(runner.Plan, "__call__", second)
    return made


def calls_until(function, *args):
    """How many calls run one by one."""
    for count in range(60):
        function(*args)
        if function._last.runner.ran is not None:
            return count
    return math.inf


def poly(x):
    return nbta.sum(x * x * x - 2.0 * x)


def test_it_compiles_once_runs_have_taken_as_long(clock):
    assert calls_until(nbta.grad(poly), np.arange(3.0)) == 10


@pytest.mark.slow
def test_large_graphs_are_compiled_too(clock):
    def long(x):
        for _ in nbta.unroll(range(700)):
            x = nbta.sin(x) * 0.9 + nbta.cos(x) * 0.1
        return nbta.sum(x)

    slope = nbta.grad(long)
    assert calls_until(slope, np.arange(3.0)) in (9, 10)  # in or after the tenth run
    assert slope._last.runner._size > 4000


def test_second_derivatives_are_compiled_too(clock):
    @nbta.function
    def product(x, v):
        return nbta.hvp(poly, (x,), (v,))

    x = np.arange(3.0)
    assert calls_until(product, x, np.ones(3)) == 10
    np.testing.assert_allclose(product(x, np.ones(3))[0], 6.0 * x)


def test_each_kind_of_shapes_must_be_worth_its_own(clock):
    """Lengths of 1 are compiled in, so that there are two functions of one graph."""
    slope = nbta.function(lambda x, y: nbta.sum(x + y), input_signature=[
        nbta.Spec("float64", (None,)), nbta.Spec("float64", (None,))])  # fmt: skip
    assert calls_until(slope, np.ones(3), np.ones(3)) == 10
    assert calls_until(slope, np.ones(3), np.ones(1)) == 10
    assert calls_until(slope, np.ones(4), np.ones(4)) == 0
    assert len(slope._last.runner.compiled) == 2


def test_traces_of_several_kinds_have_their_own_account(clock):
    function = nbta.function(lambda x: nbta.sum(x * x))
    for _ in range(9):
        function(np.ones(3))
        function(np.ones((2, 2)))
    assert [trace.runner.ran for trace in function.every_trace()] == [None, None]
    assert calls_until(function, np.ones(3)) == 1


def test_stages_in_the_middle_of_a_run_do_not_begin_it_again(clock, monkeypatch):
    """Nor do they count as time one by one."""
    function = nbta.grad(lambda x: nbta.sum(nbta.scan(lambda h, v: (h * v, h + v), x, ROWS)[1]))
    begun, compiled, original = [], [], runner.Compiled

    def slow(*args):
        clock.now += 100.0
        compiled.append(clock.now)
        return original(*args)

    def run(*args):
        begun.append(clock.now)
        return plan(*args)

    plan = runner.Plan.__call__
    monkeypatch.setattr(runner, "Compiled", slow)
    monkeypatch.setattr(runner.Plan, "__call__", run)
    monkeypatch.setattr(reference.Plan, "use_up", use_up_in_seconds(clock))
    function(0.5)
    assert len(begun) == len(compiled) == 1
    assert function._last.runner.ran is None
    assert 4.0 < function._last.runner._spent < 100.0


def use_up_in_seconds(clock):
    """Each iteration takes a twentieth of a second."""
    plan = reference.Plan.use_up

    def use_up(self, step, given):
        clock.now += 0.05
        return plan(self, step, given)

    return use_up


ROWS = np.ones(20)


def test_a_run_that_takes_too_long_is_stopped_and_compiled(monkeypatch):
    """A loop of 10 million iterations does not end before it is compiled."""

    @nbta.function
    def sums(x, n):
        total = x
        i = 0
        while total < n:
            total = total + 1.0
            i = i + 1
        return total

    assert sums(0.5, 1e7) == 1e7 + 0.5
    assert sums._last.runner.ran is not None
    assert sums._last.runner._spent < 5.0


def test_batches_are_compiled_where_all_items_take_as_long(clock):
    both = nbta.value_and_grad(lambda w, x: nbta.sum(nbta.tanh(w * x)), batch_axis=0)
    x, runs = np.ones((4, 3)), []
    for _ in range(5):
        before = clock.now
        both(0.5, x)
        runs.append(clock.now - before)
    assert runs[0] >= 4.0  # item by item
    assert runs[-1] == 0.0


def refused(x):
    return nbta.sum(x * x)


def test_what_cannot_be_compiled_is_tried_once_and_said_once(clock, monkeypatch):
    def refuse(*args, **kwargs):
        tries.append(args)
        raise runner.NotCompiledError("it is Tuesday")

    tries = []
    monkeypatch.setattr(runner, "Compiled", refuse)
    function = nbta.function(refused)
    with warnings.catch_warnings(record=True, action="always") as found:
        assert calls_until(function, np.ones(3)) == math.inf
    assert len(tries) == 1
    (one,) = found
    assert (one.category, one.filename) == (nbta.PerformanceWarning, __file__)
    assert "it is Tuesday" in str(one.message)
    assert "compiled=False" in str(one.message)


def test_a_fault_of_the_compiler_is_no_fault_of_the_program(clock, monkeypatch):
    def fail(*args, **kwargs):
        raise StopIteration

    monkeypatch.setattr(runner, "Compiled", fail)
    monkeypatch.setattr(verifier, "DEBUG", False)
    function = nbta.function(refused)
    with pytest.warns(nbta.PerformanceWarning, match="StopIteration"):
        assert calls_until(function, np.ones(3)) == math.inf
    assert function(np.ones(3)) == 3.0
    with pytest.raises(StopIteration):
        nbta.function(refused, compiled=True)(np.ones(3))


# Estimates.


def test_what_is_on_disk_is_cheap():
    estimates = Estimates()
    estimates.is_cold = False
    assert estimates.building(1.0, is_kept=True) < 0.05 * estimates.building(1.0, is_kept=False)


def test_the_first_function_of_a_process_takes_more():
    estimates = Estimates()
    cold = estimates.building(0.1, is_kept=False)
    estimates.learn_building(cold, 100.0)  # of which nothing is learnt
    assert not estimates.is_cold
    assert estimates.building(0.1, is_kept=False) < 0.6 * cold


def test_speed_comes_near_to_that_of_the_machine():
    estimates = Estimates()
    estimates.is_cold, estimates._speed = False, 1.0
    for _ in range(60):
        estimates.learn_building(estimates.building(0.1, is_kept=False), 0.3)
    assert estimates.speed == pytest.approx(3.0, rel=0.05)


def build_seconds_of(source):
    return build_seconds(structure.sizes(read_code.function(source), build.namespace()))


def test_statements_that_are_alike_count_little():
    """As they become a loop over a table."""

    def seconds(n):
        return build_seconds_of("def run(w):\n" + "".join(
            f"    for i{k} in range(3):\n        b{k}[i{k}] = sin(a{k}[i{k}])\n" for k in range(n)
        ))  # fmt: skip

    assert seconds(1000) < 20.0 * seconds(1)


def test_passes_of_large_graphs_take_more_than_in_proportion():
    """As measured: 0.09 s for 250 operations, 0.26 s for 774, 1.25 s for 2,600, 4 s for 6,100."""
    estimates = Estimates()
    estimates._speed = 1.0
    for operations, seconds in ((250, 0.09), (774, 0.26), (2606, 1.25), (6126, 4.0)):
        found = estimates.passes(operations) / break_even.SOURCE_WAIT
        assert 0.7 < found / seconds < 1.4


def test_the_smallest_functions_take_their_time_to_build():
    """Two numbers' sum takes 0.035 s, with all that is around it."""
    assert 0.02 < build_seconds_of("def run(w):\n    return 0\n") < 0.05


def test_compiling_what_operations_call_is_not_counted():
    from nbta.runtime.numba_private import global_compiler_lock

    begin, spent = break_even.clock(), break_even.processor()
    with global_compiler_lock, global_compiler_lock:
        while break_even.processor() - spent < 0.05:
            pass
    assert break_even.clock() - begin < 0.025
