"""Give a routine of LAPACK a gradient, and infer what a rod is made of from its warmth.

Heat in a rod is computed by implicit steps, each of which solves a tridiagonal system by LAPACK's
`dgtsv`. nbta cannot look into LAPACK, so `nbta.custom_gradient` says what the gradient of a
solution is: the same routine again, for the transposed matrix. Both stay in compiled code.
"""

import ctypes
import sys
from pathlib import Path

import numba
import numpy as np
from numba.extending import get_cython_function_address
from scipy.optimize import minimize

import nbta

ADDRESS = get_cython_function_address("scipy.linalg.cython_lapack", "dgtsv")
DGTSV = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)(ADDRESS)
CELLS, SENSORS, STEPS, NOISE = 40, np.arange(1, 40, 3), 60, 0.005


@numba.njit
def solve(b, lower, diagonal, upper):
    """The solution of a tridiagonal system."""
    x, low, mid, up = b.copy(), lower.copy(), diagonal.copy(), upper.copy()  # dgtsv changes them
    numbers = np.array([len(b), 1, 0], np.int32)  # of equations, of right-hand sides, of the error
    n, count, info = numbers[:1].ctypes, numbers[1:2].ctypes, numbers[2:].ctypes
    DGTSV(n, count, low.ctypes, mid.ctypes, up.ctypes, x.ctypes, n, info)
    if numbers[2] != 0:
        raise ValueError("singular matrix")
    return x


@numba.njit
def adjoint(dx, b, lower, diagonal, upper, x):
    """The gradient by each argument of `solve`, given that by its result."""
    db = solve(dx, upper, diagonal, lower)  # the transposed matrix
    return db, -db[1:] * x[:-1], -db * x, -db[:-1] * x[1:]


tridiagonal_solve = nbta.custom_gradient(solve, adjoint)


def warmth(log_flow):
    """Temperatures at the sensors in each step, of a rod that is warmed at its left end."""
    flow = np.exp(log_flow)  # between neighbours
    diagonal = np.ones(CELLS)
    diagonal[:-1] += flow
    diagonal[1:] += flow
    state, seen = np.zeros(CELLS), np.zeros((STEPS, len(SENSORS)))
    for t in range(STEPS):
        state[0] += 1.0
        state = tridiagonal_solve(state, -flow, diagonal, -flow)
        seen[t] = state[SENSORS]
    return seen


def misfit(log_flow, observed):
    """Squared distance to the observations, and a little of the roughness."""
    residuals = (warmth(log_flow) - observed) / NOISE
    return 0.5 * np.sum(residuals**2) + np.sum(np.sqrt(np.diff(log_flow) ** 2 + 1e-4))


def main(picture=None):
    """Make observations up, infer, print how well, and draw it; gives the inferred logarithms."""
    true = np.log(np.where(np.abs(np.arange(CELLS - 1) - 18) < 6, 2.0, 10.0))
    observed = warmth(true)
    observed += np.random.default_rng(0).normal(0.0, NOISE, observed.shape)

    slope = nbta.value_and_grad(misfit, compiled=True)
    start, options = np.full(CELLS - 1, np.log(5.0)), {"maxcor": 30}
    fit = minimize(slope, start, (observed,), jac=True, method="L-BFGS-B", options=options)
    print(f"misfit {misfit(true, observed):.1f} of the true rod, {fit.fun:.1f} of the inferred one")
    print(f"{fit.nfev} gradients; logarithms of conductivity off by {np.std(fit.x - true):.3f}")
    if picture:
        draw(picture, np.exp(true), np.exp(fit.x))
    return fit.x, true, observed


def draw(picture, true, inferred):
    """The conductivity along the rod."""
    import matplotlib.pyplot as plt

    with plt.style.context(Path(__file__).with_name("gallery.mplstyle")):
        figure, axes = plt.subplots()
        edges = np.arange(CELLS) + 0.5
        axes.stairs(true, edges, color="grey", label="true", lw=2, baseline=None)
        axes.stairs(inferred, edges, color="C1", label="inferred", lw=2, baseline=None)
        axes.plot(SENSORS, np.zeros(len(SENSORS)), "^", color="C0", label="sensor", clip_on=False)
        axes.set(xlabel="cell", ylabel="conductivity", ylim=(0, None))
        axes.legend()
        figure.savefig(picture, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
