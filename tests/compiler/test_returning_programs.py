"""Random programs with early returns, several results and two precisions, beside NumPy."""

import array_programs
import numpy as np
import pytest
import returning_programs
from frontend_random import ARGNUMS, built, python_only
from fuzz.ways import executed

import nbta
from nbta.structure import leaves

#: Words of errors where only the run knows which arrays are one, or of which dtype.
REFUSED = ("make one of the two a copy", "give both arrays one dtype")


def check(seed, machine_code=False, second=False) -> bool:
    """All results with their dtypes, the gradient and a slope; False for a program refused."""
    made = returning_programs.program(seed)
    f, _ = built(made.source)
    plain, _ = built(python_only(made.source))
    given, bound = made.arguments(seed), made.tolerance
    total, results = plain(*given)
    slopes = []
    for kind in (True, False):
        gradient = nbta.value_and_grad(f, ARGNUMS, compiled=kind, convert=True, has_aux=True)
        try:
            with executed(machine_code):
                (value, found), slope = gradient(*given)
        except nbta.InvalidArgumentError as error:
            if any(words in str(error) for words in REFUSED):
                return False
            raise
        hold(value, total, bound)
        for one, other in zip(leaves(found), leaves(results), strict=True):
            assert np.ndim(other) == 0 or one.dtype == other.dtype
            hold(one, other, bound)
        slopes.append(slope)
    array_programs.hold_equal(*slopes, 10 * bound)
    _hold_directions(made, f, given, slopes[0], machine_code)
    if second and "float32" not in made.source:
        array_programs.hold_second_derivatives(lambda *a: f(*a)[0], given, machine_code)
    return True


def hold(found, expected, bound):
    """A result, to a share of its largest number."""
    atol = bound * max(1.0, np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def _hold_directions(made, f, given, slopes, machine_code):
    """The gradient, to differences in double precision, and to the derivative along a direction."""
    double, _ = built(python_only(made.in_double()))
    if abs(double(*given)[0] - f(*given)[0]) < 1e-5:  # and no comparison came out otherwise
        array_programs.hold_differences(lambda *a: double(*a)[0], given, slopes, made.seed)
    along = array_programs.tangents(given, made.seed)
    forward = nbta.function(
        lambda x, y, c, *ds: nbta.jvp(lambda *a: f(*a)[0], (x, y, c), ds, convert=True),
        compiled=True,
    )
    with executed(machine_code):
        _, slope = forward(*given, *along)
    total = sum(np.sum(g * d) for g, d in zip(slopes, along, strict=True))
    scale = max(1.0, *(np.max(np.abs(g)) for g in slopes))
    np.testing.assert_allclose(slope, total, rtol=0, atol=100 * made.tolerance * scale)


@pytest.mark.parametrize("seed", [4, 6, 10, 15, 19, 24, 26, 27])
def test_random_programs_that_return_early(seed):
    assert check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 300, 20))
def test_many_random_programs_that_return_early(first):
    seeds = range(first, first + 20)
    done = [check(seed, machine_code=seed % 20 == 0, second=seed % 5 == 0) for seed in seeds]
    assert sum(done) >= 15
