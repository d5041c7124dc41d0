"""Random programs whose helpers assign variables of the function around, and jump out of blocks."""

import frontend_checks as checks
import jump_programs
import numpy as np
import pytest
from frontend_random import built

import nbta

X = np.array([0.7, -0.4, 1.1, 0.3, -0.9, 0.5])


def check(seed, compiled=False):
    """Hold a random program to Python; what came of it."""
    f, name = built(jump_programs.program(seed))
    try:
        f(X)
    except (IndexError, UnboundLocalError) as failed:
        with checks.in_python(), pytest.raises((type(failed), nbta.NbtaError)):
            nbta.value_and_grad(f, compiled=compiled)(X)
        return "failed as Python does"
    try:
        checks.check_of_an_array(f, X, compiled)
    except nbta.NbtaError as error:
        return "refused" if name in str(error) else f"{seed} is refused without a place: {error}"
    except Exception as error:
        error.add_note(f"seed {seed}:\n{jump_programs.program(seed)}")
        raise
    return "agreed"


def hold(seeds, compiled=False):
    """Hold programs to Python, of which few are refused."""
    found = [check(seed, compiled) for seed in seeds]
    assert found.count("agreed") >= 0.9 * len(found), found
    assert set(found) <= {"agreed", "refused", "failed as Python does"}, found


@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
def test_random_programs():
    hold(range(25))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
@pytest.mark.parametrize("first", range(25, 400, 75))
def test_more_random_programs(first):
    hold(range(first, first + 75))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::nbta.PerformanceWarning")
def test_random_programs_in_generated_code():
    hold(range(400, 406), compiled=True)
