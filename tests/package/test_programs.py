"""The programs that are measured: each of their forms gives the same values and gradients."""

import numpy as np
import pytest
from golden_graph import all_operations

import nbta
from asv_bench.programs import PROGRAMS
from asv_bench.programs.__main__ import HEAD, line
from asv_bench.programs.measure import BY_HAND, FUNCTION, GRADIENT, JAX, Row, copies, runs_in_python
from asv_bench.programs.program import Program
from nbta.graph.graph import subgraphs

EACH = [pytest.param(program, id=name) for name, program in PROGRAMS.items()]
WITH_ADJOINTS = [each for each in EACH if each.values[0].adjoint is not None]
LARGER = 3


def hold(found, value, gradients, rtol=1e-6):
    """A value and gradients to those expected; differences are as exact as the largest of each."""
    np.testing.assert_allclose(found[0], value, rtol=1e-12)
    assert len(found[1]) == len(gradients)
    for gradient, expected in zip(found[1], gradients, strict=True):
        assert np.any(expected)
        within = rtol * np.max(np.abs(expected)) + 1e-10 * max(1.0, abs(value))
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=within)


def by_differences(program, n):
    """What is called, and what comes of it by the plain function alone."""
    arguments = program.arguments(n)
    return arguments, program.function(*arguments), program.differences(*arguments)


def by_hand(program, *arguments):
    """Value and gradients, the latter in a tuple also where it is one."""
    value, gradients = program.adjoint(*arguments)
    return value, gradients if isinstance(gradients, tuple) else (gradients,)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("program", EACH)
def test_reference(program):
    arguments, *expected = by_differences(program, program.small)
    given = [np.copy(argument) for argument in arguments]
    hold(program.value_and_grad(compiled=False)(*arguments), *expected)
    for before, after in zip(given, arguments, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("program", EACH)
def test_compiled(program):
    arguments, *expected = by_differences(program, program.small)
    gradient = program.value_and_grad(compiled=True)
    given = [np.copy(argument) for argument in arguments]
    hold(gradient(*arguments), *expected)
    for before, after in zip(given, arguments, strict=True):
        np.testing.assert_array_equal(before, after)
    larger = program.arguments(2 * program.small)
    value, slopes = gradient(*larger)
    reference = program.value_and_grad(compiled=False)(*larger)
    hold((value, slopes), program.function(*larger), reference[1], rtol=1e-10)


@pytest.mark.parametrize("program", WITH_ADJOINTS)
def test_adjoints_by_hand(program):
    arguments, *expected = by_differences(program, program.small + LARGER)
    hold(by_hand(program, *arguments), *expected)


@pytest.mark.slow
@pytest.mark.parametrize("program", WITH_ADJOINTS)
def test_larger_ones_against_adjoints_by_hand(program):
    arguments = program.arguments(max(program.n // 20, 2 * program.small))
    value, gradients = by_hand(program, *arguments)
    hold(program.value_and_grad()(*arguments), value, gradients, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("program", EACH)
def test_in_jax(program):
    jax = pytest.importorskip("jax")
    arguments, *expected = by_differences(program, program.small)
    with jax.enable_x64(True):
        hold(program.jax_value_and_grad()(*arguments), *expected)


@pytest.mark.slow
def test_random_arguments_are_the_same_each_time():
    for program in PROGRAMS.values():
        for one, other in zip(*(program.arguments(program.n) for _ in range(2)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_wrong_gradient_is_found():
    def wrong(x):
        return nbta.sum(x * nbta.stop_gradient(x))

    program = Program("", wrong, lambda x: np.sum(x * x), lambda n: (np.arange(1.0, n),), 4, 4)
    arguments, *expected = by_differences(program, 4)
    with pytest.raises(AssertionError):
        hold(program.value_and_grad(compiled=False)(*arguments), *expected)


def row(gradient, **others):
    """Samples of a program, the gradient's and those of other sides."""
    return Row(8, {GRADIENT: gradient, FUNCTION: [0.001] * len(gradient), **others})


def entries(*rows):
    program = Program("it", None, None, None, 8, 2, reach=3.0)
    return dict(zip(HEAD, line(program, rows), strict=True))


def test_a_line_of_the_table():
    found = entries(row([0.002, 0.002, 0.5]), row([0.002, 0.0022, 0.0023]))
    assert (found["function ms"], found["gradient ms"]) == ("1.00", "2.00")
    assert (found["ratio"], found["ratio at 4n"], found["growth"]) == ("2.00", "2.20", "1.10")
    assert found["met"] == "yes"


def test_what_a_program_fails_to_reach():
    assert entries(row([0.004]), row([0.004]))["met"] == "no"  # more than three functions
    assert entries(row([0.002]), row([0.0025]))["met"] == "no"  # grows
    assert entries(row([0.002]))["met"] == "no"  # nobody knows whether it grows
    for side in ({BY_HAND: [0.001]}, {JAX: [0.0015]}):
        assert entries(row([0.002], **side), row([0.002], **side))["met"] == "no"


def test_what_runs_in_python_is_found_in_a_report():
    class Report:
        def explain(self):
            return "arrays:\n  a: b\noperations that run in Python:\n  Gather x 2\n  Sort x 1"

    assert runs_in_python(Report()) == ["Gather x 2", "Sort x 1"]
    assert copies(Report()) == []


# What a gradient keeps.


def held(program, n):
    """Bytes of all buffers after a gradient, and how many numbers an iteration of a nest keeps.

    These are what innermost loops write to tapes, which the nest fills one after the other.
    """
    gradient = program.value_and_grad()
    gradient(*program.arguments(n))
    compiled = gradient._last.runner.ran
    work = compiled.executable.borrow()
    compiled.executable.give_back(work)
    kept = [
        int(np.prod(write.inputs[2].spec.shape))
        for write in all_operations(compiled.program)
        if write.type == "TensorArrayWriteV3" and write.inputs[0].op.type == "Parameter"
        if not any(map(subgraphs, write.graph.operations))
    ]
    return sum(buffer.nbytes for buffer in work._buffers.values()), sum(kept)


@pytest.mark.parametrize("name", ["lu", "cholesky"])
def test_decompositions_in_place_keep_no_tape(name):
    """The matrix, which ends as its factors, and the gradient are all that grows with its size."""
    for n in (32, 64):
        nbytes, kept = held(PROGRAMS[name], n)
        assert kept == 0
        assert nbytes <= 2 * 8 * n * n + 64 * n


def test_soft_dtw_keeps_few_numbers_of_each_cell():
    """By hand these are three weights, of which the sum is made; a scan keeps its inputs, too.

    The table and its gradient come besides, and a tape has room for up to 1.6 times what it holds.
    """
    for name, numbers in (("soft-dtw", 3), ("soft-dtw by scans", 5)):
        nbytes, kept = held(PROGRAMS[name], 80)
        cells = 80 * 82
        assert kept == numbers  # of a scan with what is stacked as a row
        assert nbytes <= (4 * 1.1 * 1.6 + 2.2) * 8 * cells
