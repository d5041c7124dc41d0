"""Elementary functions of 4096 numbers inside compiled code, against Numba's own."""

import numba
import numpy as np
from scipy import special

from nbta.runtime import vector_math

NAMES = ("exp", "expm1", "tanh", "log", "log1p", "sigmoid", "softplus", "erf")


def numba_loop(name):
    """A loop that calls Numba's function for each element; None where it has none."""
    function = getattr(np, name, None)
    if function is None:
        return None

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
        self.ours, self.theirs = getattr(vector_math, f"{name}_all"), numba_loop(name)
        self.ours(self.x, self.out)
        peer = getattr(np, name, None) or {"sigmoid": special.expit, "erf": special.erf}.get(name)
        if peer is not None:
            np.testing.assert_allclose(self.out, peer(self.x), rtol=1e-6)
        if self.theirs is not None:
            self.theirs(self.x, self.out)

    def time_vector_math(self, name, dtype):
        """Ours."""
        self.ours(self.x, self.out)

    def time_numba(self, name, dtype):
        """Numba's, for the functions that it has."""
        if self.theirs is not None:
            self.theirs(self.x, self.out)
