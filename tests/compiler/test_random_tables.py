"""Random dynamic programs: what conditions say about indices, and adjoints that mostly are zero."""

import numpy as np
import pytest
import table_programs
from array_programs import hold_equal
from frontend_random import ARGNUMS, built
from fuzz.ways import executed

import nbta

DIRECTION = np.sin(np.arange(10.0) + 1.0)


def outcome(f, arguments):
    """What a call gives; None where an item is not there."""
    try:
        return f(*arguments)
    except IndexError:
        return None


def derivatives(f, compiled):
    """The value with its gradient, and the second derivatives along a direction."""
    along = lambda *given: tuple(nbta.sin(a + 1.0) for a in given)  # noqa: E731
    bend = lambda *given: nbta.hvp(f, given, along(*given))  # noqa: E731
    gradient = nbta.value_and_grad(f, ARGNUMS, compiled=compiled)
    return gradient, nbta.function(bend, compiled=compiled)


def check(made, machine_code=False):
    """Both executors give the same, which is what differences say, or fail where Python does."""
    f, _ = built(made.source)
    slow, fast = (derivatives(f, compiled) for compiled in (False, True))
    for call in range(2):
        arguments = made.arguments(call)
        value = outcome(f, arguments)
        expected = [outcome(way, arguments) for way in slow]
        with executed(machine_code):
            found = [outcome(way, arguments) for way in fast]
        if value is None:
            assert found == expected == [None, None]
            continue
        (same, slopes), bends = expected
        np.testing.assert_allclose(same, value, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(found[0][0], value, rtol=1e-11, atol=1e-11)
        hold_equal(found[0][1], slopes, 1e-10)
        hold_equal(found[1], bends, 1e-9)
        hold_differences(f, arguments, slopes, value)


def hold_differences(f, arguments, slopes, value, h=1e-7):
    """A gradient to differences of both sides, which differ where two choices are equal."""
    along = [np.resize(DIRECTION, np.shape(a)) for a in arguments]
    ends = (f(*(a + s * d for a, d in zip(arguments, along, strict=True))) for s in (h, -h))
    right, left = ((end - value) / h for end in ends)
    slope = sum(np.sum(g * d) for g, d in zip(slopes, along, strict=True))
    scale = max(1.0, *(np.max(np.abs(g)) for g in slopes))
    assert abs(slope - (right - left) / 2) <= 1e-5 * scale + 2 * abs(right + left), (right, left)


def hold(seeds, machine_code=False):
    for seed in seeds:
        program = table_programs.program(seed)
        try:
            check(program, machine_code)
        except Exception as error:
            error.add_note(f"table_programs.program({seed})\n{program!r}")
            raise


def test_random_programs():
    hold([1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10, 130, 30))
def test_many_random_programs(first):
    hold(range(first, first + 30))


@pytest.mark.slow
def test_random_programs_in_machine_code():
    hold(range(200, 206), machine_code=True)
