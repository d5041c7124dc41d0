"""Products of small matrices inside compiled code, against NumPy's: GFLOP/s."""

import time

import numba
import numpy as np

from nbta.compiler import build
from nbta.runtime.intrinsics import LEFT, RIGHT, call

#: Rows, inner, columns: what recurrent loops multiply in an iteration.
FORWARD = [(1, 16, 64), (16, 32, 96), (64, 256, 1024)]
#: What their gradients multiply: by transposed weights, and transposed inputs by gradients.
BACKWARD = [(16, 96, 32), (32, 384, 128)]
WEIGHTS = [(32, 16, 96), (128, 3200, 384)]
CASES = [
    *[(*sizes, 0) for sizes in FORWARD],
    *[(*sizes, RIGHT) for sizes in BACKWARD],
    *[(*sizes, LEFT) for sizes in WEIGHTS],
]
#: Seconds of a sample, and how many there are.
SAMPLE, SAMPLES = 2e-3, 30


@numba.njit(cache=True)
def many(function, arguments, count):
    """Call a helper again and again, as a compiled loop does."""
    for _ in range(count):
        call(function, arguments)


class Products:
    """The best of many samples; ``flags`` say which operand is transposed."""

    params = (CASES, ("float32", "float64"))
    param_names = ("rows_inner_columns_flags", "dtype")

    def setup(self, case, dtype):
        *sizes, flags = rows, inner, columns, _ = case
        rng = np.random.default_rng(0)
        a = rng.standard_normal((inner, rows) if flags & LEFT else (rows, inner)).astype(dtype)
        b = rng.standard_normal((columns, inner) if flags & RIGHT else (inner, columns))
        b, self.out = b.astype(dtype), np.zeros((rows, columns), dtype)
        self.a, self.b = a.T if flags & LEFT else a, b.T if flags & RIGHT else b
        self.gemm = build.address(f"gemm_{dtype}")
        places = [matrix.ctypes.data for matrix in (a, b, self.out)]
        self.arguments = (*places, *sizes, flags, build.address(f"blas_{dtype}"))
        self.flops = 2 * rows * inner * columns
        self.call_helper(1)
        np.testing.assert_allclose(self.out, self.a @ self.b, rtol=1e-3, atol=1e-3)

    def call_helper(self, count):
        many(self.gemm, self.arguments, count)

    def call_numpy(self, count):
        for _ in range(count):
            np.dot(self.a, self.b, out=self.out)

    def best(self, function):
        """Operations in a nanosecond."""
        count = max(1, int(SAMPLE * 5e10 / (self.flops + 5e4)))
        times = []
        for _ in range(SAMPLES):
            start = time.perf_counter()
            function(count)
            times.append(time.perf_counter() - start)
        return self.flops * count / min(times) * 1e-9

    def track_helper(self, case, dtype):
        """Ours, called from compiled code."""
        return self.best(self.call_helper)

    def track_numpy(self, case, dtype):
        """NumPy's, called from Python."""
        return self.best(self.call_numpy)

    track_helper.unit = track_numpy.unit = "GFLOP/s"
