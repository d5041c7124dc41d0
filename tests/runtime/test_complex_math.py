"""Functions of complex numbers have NumPy's values, also for infinities and NaN."""

import numba
import numpy as np
import pytest

import nbta
from nbta.kernels import complex_math

SMALL, LARGE = (
    [0.0, 1e-320, 1e-8, 0.3, 0.7, 1.0, 1.0000001],
    [3.0, 23.0, 300.0, 709.5, 800.0, 1e305],
)
PARTS = np.array([*SMALL, *LARGE, np.inf, np.nan])
PARTS = np.concatenate([PARTS, -PARTS])
EXPONENTS = np.array([0, 1, 2, 3, -1, -2, 5, 99, 0.5, -0.5, 1.3, 2 + 1j, 1j, -0.5 + 0.2j])


def samples(dtype):
    rng = np.random.default_rng(0)
    circle = np.exp(1j * rng.uniform(-3, 3, 500)) * (1 + 1e-9 * rng.normal(size=500))
    grid = np.empty((len(PARTS), len(PARTS)), complex)
    grid.real, grid.imag = PARTS[:, None], PARTS
    inner = rng.normal(size=2000) + 1j * rng.normal(size=2000)
    with np.errstate(over="ignore"):
        return np.concatenate([grid.ravel(), inner, circle]).astype(dtype)


def far(found, wanted):
    """By how many units in the last place parts differ; infinite where one is not finite."""
    with np.errstate(all="ignore"):
        apart = np.abs(found.astype(float) - wanted) / np.spacing(np.abs(wanted))
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        return np.where(same, 0.0, np.where(np.isfinite(apart), apart, np.inf))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [n for n in complex_math.NAMES if n != "complex_power"])
def test_values_are_numpys(name, dtype):
    function = getattr(complex_math, name)

    @numba.njit
    def computed(z, out):
        for i in range(len(z)):
            out[i] = function(z[i])

    z = samples(dtype)
    found = np.empty_like(z)
    computed(z, found)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name.removeprefix("complex_"))(z)
    # NumPy's expm1 computes in the dtype itself, and its real part cancels.
    most = 200 if name == "complex_expm1" and dtype == "complex64" else 9
    assert far(found.real, wanted.real).max() <= most
    assert far(found.imag, wanted.imag).max() <= most


def test_powers_are_numpys():
    @numba.njit
    def computed(z, e, out):
        for i in range(len(z)):
            for j in range(len(e)):
                out[i, j] = complex_math.complex_power(z[i], e[j])

    z = np.array([complex(x, y) for x in (0, 1, -1, 0.3, -0.7, 2.5) for y in (0, 1, -0.7, 3)])
    z = np.append(z, [complex(np.inf, 1), complex(2, np.nan), 1e200])
    found = np.empty((len(z), len(EXPONENTS)), complex)
    computed(z, EXPONENTS, found)
    with np.errstate(all="ignore"):
        wanted = z[:, None] ** EXPONENTS
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def impedance(omega, alpha, resistance):
    """Layers whose waves have complex wave numbers, with absorption by a power of frequency."""
    total = 0.0
    for w in omega:
        z = 0.1 + 0.0j
        for k in range(len(resistance)):
            gamma = (1j * w * resistance[k]) ** alpha
            up = np.cosh(gamma) * z + np.sinh(gamma) * (0.5 + 0.1j)
            z = up / (np.cos(gamma) + np.tanh(gamma) * z) + np.log(gamma + 2.0) * np.sin(
                0.3 * gamma
            )
        total += np.abs(z) ** 2
    return total


def test_loops_of_complex_functions_call_no_python(recwarn):
    omega, resistance = np.linspace(0.2, 2.0, 9), np.linspace(0.5, 1.5, 11)
    value, _ = nbta.value_and_grad(impedance, (0, 1, 2), compiled=True)(omega, 0.6, resistance)
    np.testing.assert_allclose(value, impedance(omega, 0.6, resistance), rtol=1e-12)
    assert not [w for w in recwarn if issubclass(w.category, nbta.PerformanceWarning)]
    nbta.testing.check_grads(impedance, (omega[:2], 0.6, resistance[:3]))
