"""Random programs in which much of what loops do with arrays comes together, beside NumPy."""

import array_programs
import crossing_programs
import numpy as np
import pytest
from frontend_random import ARGNUMS, built
from fuzz.ways import executed

import nbta

#: Words of the error where only the run knows which arrays are one.
REFUSED = "make one of the two a copy"


def check(seed, call, machine_code=False) -> bool:
    """The value, the gradient and a slope; False for a program refused or of huge numbers."""
    made = crossing_programs.program(seed)
    changing, _ = built(made.source)

    def f(x, y, c):
        return changing(x.copy(), y.copy(), c)

    given = made.arguments(call)
    compiled, reference = (
        nbta.value_and_grad(f, ARGNUMS, compiled=kind, convert=True) for kind in (True, False)
    )
    try:
        with np.errstate(over="raise"):
            wanted = f(*given)
    except FloatingPointError:
        return False
    except (IndexError, ZeroDivisionError) as error:
        with pytest.raises(type(error)), executed(machine_code):
            compiled(*given)
        return True
    try:
        with executed(machine_code):
            value, found = compiled(*given)
    except nbta.NbtaError as error:
        if REFUSED in str(error):
            return False
        raise
    same, expected = reference(*given)
    np.testing.assert_allclose([value, same], wanted, rtol=1e-10, atol=1e-10)
    for one, other in zip(found, expected, strict=True):
        bound = 1e-10 * max(1, np.max(np.abs(other), initial=0))
        np.testing.assert_allclose(one, other, rtol=0, atol=bound)
    if len(given[0]):
        array_programs.hold_differences(f, given, found, seed)
    along = array_programs.tangents(given, seed)
    forward = nbta.function(lambda x, y, c, *ds: nbta.jvp(f, (x, y, c), ds), compiled=True)
    with executed(machine_code):
        _, slope = forward(*given, *along)
    bound = 1e-9 * max([1, *(np.max(np.abs(g), initial=0) for g in found)])
    total = sum(np.sum(g * d) for g, d in zip(found, along, strict=True))
    np.testing.assert_allclose(slope, total, rtol=1e-9, atol=bound)
    return True


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_that_cross(seed):
    assert check(seed, seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 300, 20))
def test_many_random_programs_that_cross(first):
    done = [check(seed, seed % 8, machine_code=seed % 10 == 0) for seed in range(first, first + 20)]
    assert sum(done) >= 15


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1128, 1166, 1212])
def test_programs_that_found_faults(seed):
    """A column that a loop forwards, twice, and a row that was taken for the whole matrix."""
    assert check(seed, seed % 8)
