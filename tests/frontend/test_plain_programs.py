"""Programs that know nothing of nbta: those that are measured, and some of many fields."""

import copy

import frontend_checks as checks
import numpy as np
import pytest
from fuzz.ways import in_python
from users_programs import PROGRAMS as USERS

import nbta
from asv_bench.programs import PROGRAMS

EACH = [pytest.param(program, id=name) for name, program in PROGRAMS.items()]


@pytest.mark.slow_but_every(3)
@pytest.mark.smoke_every(6)
@pytest.mark.parametrize("program", EACH)
def test_value_and_gradient(program):
    arguments = program.arguments(program.small)
    given = [np.copy(argument) for argument in arguments]
    taken = nbta.value_and_grad(program.function, program.argnums, compiled=False, convert=True)
    value, gradients = taken(*arguments)
    expected, slopes = program.value_and_grad(compiled=False)(*arguments)
    np.testing.assert_allclose(value, program.function(*arguments), rtol=1e-12)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for found, slope in zip(gradients, slopes, strict=True):
        np.testing.assert_allclose(found, slope, rtol=0, atol=1e-9 * np.max(np.abs(slope)))
    for before, after in zip(given, arguments, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("program", USERS, ids=lambda program: program[0].__name__)
def test_programs_of_users(program):
    function, arguments, argnums = program
    checks.check_first(function, argnums, copy.deepcopy(arguments), False)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("program", USERS, ids=lambda program: program[0].__name__)
def test_programs_of_users_in_generated_code(program):
    function, arguments, argnums = program
    with in_python():
        checks.check_first(function, argnums, copy.deepcopy(arguments), True)
