"""The programs that are measured as plain functions: differentiated as Numba compiles them."""

import numpy as np
import pytest

import nbta
from asv_bench.programs import PROGRAMS

EACH = [pytest.param(program, id=name) for name, program in PROGRAMS.items()]


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
