"""Elementary functions of 4096 numbers inside compiled code, against Numba's own, and powers."""

import numba
import numpy as np
from scipy import special

import nbta
from nbta.kernels import vector_math

NAMES = ("exp", "expm1", "tanh", "log", "log1p", "sigmoid", "softplus", "erf")


def numba_loop(name):
    """A loop that calls Numba's function for each element."""
    function = getattr(np, name)

    @numba.njit(cache=True)
    def loop(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return loop


class Elementwise:
    """Seconds for 4096 numbers."""

    params = (NAMES, ("float32", "float64"))
    param_names = ("function", "dtype")

    def setup(self, name, dtype):
        self.x = np.random.default_rng(0).uniform(0.1, 3, 4096).astype(dtype)
        self.out = np.empty_like(self.x)
        self.function = getattr(vector_math, f"{name}_all")
        self.function(self.x, self.out)
        peer = getattr(np, name, None) or {"sigmoid": special.expit, "erf": special.erf}.get(name)
        if peer is not None:
            np.testing.assert_allclose(self.out, peer(self.x), rtol=1e-6)

    def time_call(self, name, dtype):
        """One."""
        self.function(self.x, self.out)


class NumbasOwn(Elementwise):
    """The same by Numba's functions, those that it has."""

    params = (tuple(name for name in NAMES if hasattr(np, name)), ("float32", "float64"))

    def setup(self, name, dtype):
        super().setup(name, dtype)
        self.function = numba_loop(name)
        self.function(self.x, self.out)


@numba.njit(cache=True)
def powers(x):
    """Sums of powers with constant exponents, as of the Lennard-Jones potential."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** -12 - 2.0 * x[i] ** -6 + x[i] ** 6 + x[i] ** -0.5
    return total


class Powers:
    """Seconds for 4096 numbers: Numba's function, and its value with the gradient."""

    params = ("function", "value and gradient")
    param_names = ("what",)

    def setup(self, what):
        self.x = np.random.default_rng(0).uniform(0.5, 2, 4096)
        slope = nbta.value_and_grad(powers, compiled=True)
        x = self.x
        np.testing.assert_allclose(
            slope(x)[1], -12 * x**-13 + 12 * x**-7 + 6 * x**5 - 0.5 * x**-1.5, rtol=1e-13
        )
        self.run = powers if what == "function" else slope
        self.run(x)

    def time_call(self, what):
        """One."""
        self.run(self.x)
