"""Gradient descent, Newton's method, L-BFGS and a sampler, each a loop in one ``@njit`` function.

The loops call gradients as other compiled functions, so that a step costs tens of nanoseconds
beside the arithmetic. `main` runs each loop in Python, too, and says how much longer that takes.
"""

from time import process_time

import numba
import numpy as np

import nbta

SIZE = 10
OFFSETS = np.linspace(-1.0, 1.0, SIZE)


def energy(q, data):
    """Springs between neighbours, and from each to its datum."""
    total = 0.0
    for i in range(len(q)):
        total += 0.5 * (q[i] - data[i]) ** 2 + 0.1 * q[i] ** 4
        if i > 0:
            total += 0.25 * (q[i] - q[i - 1]) ** 2
    return total


vg = nbta.value_and_grad(energy, compiled=True)
slope = nbta.grad(energy, compiled=True)
curvature = nbta.hessian(energy, compiled=True)


@numba.njit
def descend(q, data, rate, steps):
    """Gradient descent."""
    q, g = q.copy(), np.empty(len(q))
    for _ in range(steps):
        slope(q, data, out=g)
        q -= rate * g
    return q


@numba.njit
def newton(q, data, steps):
    """Newton's method."""
    for _ in range(steps):
        q = q - np.linalg.solve(curvature(q, data), slope(q, data))
    return q


@numba.njit
def direction(g, s, y, count):
    """The direction of L-BFGS, from steps and differences of the gradient in rings."""
    memory, alphas, d = len(s), np.zeros(len(s)), -g
    first = max(count - memory, 0)
    for k in range(count - 1, first - 1, -1):
        i = k % memory
        alphas[i] = np.sum(s[i] * d) / np.sum(s[i] * y[i])
        d -= alphas[i] * y[i]
    if count > 0:
        i = (count - 1) % memory
        d *= np.sum(s[i] * y[i]) / np.sum(y[i] * y[i])
    for k in range(first, count):
        i = k % memory
        d += (alphas[i] - np.sum(y[i] * d) / np.sum(s[i] * y[i])) * s[i]
    return d


@numba.njit
def lbfgs(q, data, memory, steps, tolerance):
    """L-BFGS with a line search that halves the step until the value falls."""
    s, y, count = np.zeros((memory, len(q))), np.zeros((memory, len(q))), 0
    value, g = vg(q, data)
    for _ in range(steps):
        if np.max(np.abs(g)) < tolerance:
            break
        d = direction(g, s, y, count)
        rate, along = 1.0, np.sum(g * d)
        new_value, new_g = vg(q + d, data)
        while new_value > value + 1e-4 * rate * along and rate > 1e-10:
            rate *= 0.5
            new_value, new_g = vg(q + rate * d, data)
        step, change = rate * d, new_g - g
        if np.sum(step * change) > 0.0:
            s[count % memory], y[count % memory] = step, change
            count += 1
        q, value, g = q + step, new_value, new_g
    return q


@numba.njit
def sample(q, data, step, leaps, momenta, chances):
    """Hamiltonian Monte Carlo: draws from the density ``exp(-energy)``."""
    draws = np.empty((len(chances), len(q)))
    value, g = vg(q, data)
    for k in range(len(chances)):
        p, new, new_value, new_g = momenta[k], q, value, g
        before = value + 0.5 * np.sum(p * p)
        for _ in range(leaps):
            p = p - 0.5 * step * new_g
            new = new + step * p
            new_value, new_g = vg(new, data)
            p = p - 0.5 * step * new_g
        if np.log(chances[k]) < before - new_value - 0.5 * np.sum(p * p):
            q, value, g = new, new_value, new_g
        draws[k] = q
    return draws


def runs(draws):
    """Each loop with its arguments, by its name."""
    generator = np.random.default_rng(0)
    momenta, chances = generator.normal(size=(draws, SIZE)), generator.uniform(size=draws)
    start = np.ones(SIZE)
    return {
        "gradient descent": (descend, (start, OFFSETS, 0.2, 200)),
        "Newton's method": (newton, (start, OFFSETS, 8)),
        "L-BFGS": (lbfgs, (start, OFFSETS, 5, 100, 1e-8)),
        "Hamiltonian Monte Carlo": (sample, (start, OFFSETS, 0.3, 8, momenta, chances)),
    }


def seconds(function, args, repeats=5):
    """The least processor time of some calls, each of which goes on for a moment."""
    function(*args)
    least = np.inf
    for _ in range(repeats):
        count, first = 0, process_time()
        while (taken := process_time() - first) < 0.01:
            function(*args)
            count += 1
        least = min(least, taken / count)
    return least


def main(draws=200):
    """Run the loops, and compare each with the same loop in Python."""
    found = {}
    for name, (loop, args) in runs(draws).items():
        found[name] = loop(*args)
        here, there = seconds(loop, args), seconds(loop.py_func, args, 1)
        text = f"{1e6 * here:8.1f} µs in @njit, {1e6 * there:9.1f} µs in Python"
        print(f"{name:24} {text}: {there / here:.0f} times")
    return found


if __name__ == "__main__":
    main()
