"""Rates of a predator-prey model, fitted through an ODE solver that chooses its own steps.

The solver is a loop whose number of iterations only the run tells: a step whose error is too large
is tried again with a shorter one. Accepted times, states and slopes go into arrays that grow.
`nbta.value_and_grad` differentiates all of it, step sizes included, so the gradient is that of the
numbers which the loss is computed from, to rounding.
"""

import time

import numpy as np
from scipy.optimize import minimize

import nbta

TRUE = np.array([1.1, 0.4, 0.4, 0.1])  # birth, hunting, death, growth by hunting
START = np.array([10.0, 5.0])  # prey and predators
TIMES = np.linspace(0.5, 12.0, 24)  # of the observations
NOISE = 0.3


def slope(rates, state):
    """Of the Lotka-Volterra equations."""
    prey, predators = state[0], state[1]
    met = prey * predators
    return nbta.stack([rates[0] * prey - rates[1] * met, rates[3] * met - rates[2] * predators])


def solve(rates, start, end, tolerance):
    """Accepted times, states and slopes, by the method of Bogacki and Shampine (1989)."""
    times = nbta.TensorArray("float64", dynamic_size=True, element_shape=())
    states = nbta.TensorArray("float64", dynamic_size=True, element_shape=(2,))
    slopes = nbta.TensorArray("float64", dynamic_size=True, element_shape=(2,))
    k1 = slope(rates, start)
    arrays = times.append(0.0), states.append(start), slopes.append(k1)

    def unfinished(t, state, k1, step, arrays):
        return t < end

    def advance(t, state, k1, step, arrays):
        step = nbta.minimum(step, end - t)
        k2 = slope(rates, state + step / 2 * k1)
        k3 = slope(rates, state + step * 3 / 4 * k2)
        moved = state + step / 9 * (2 * k1 + 3 * k2 + 4 * k3)
        k4 = slope(rates, moved)
        off = step * (k4 / 8 - k3 / 9 - k2 / 12 + k1 * 5 / 72)
        error = nbta.sqrt(nbta.mean((off / (tolerance * (1 + nbta.abs(moved)))) ** 2))

        def accept():
            times, states, slopes = arrays
            now = nbta.where(step < end - t, t + step, end)  # and not just short of the end
            grown = times.append(now), states.append(moved), slopes.append(k4)
            return now, moved, k4, grown

        def reject():
            return t, state, k1, arrays

        factor = nbta.clip(0.9 * (error + 1e-9) ** (-1 / 3), 0.2, 5.0)
        now, state, k1, grown = nbta.cond(error <= 1.0, accept, reject)
        return now, state, k1, step * factor, grown

    *_, arrays = nbta.while_loop(unfinished, advance, (0.0, start, k1, 0.1, arrays))
    return tuple(array.stack() for array in arrays)


def states_at(rates, wanted, tolerance=1e-3):
    """States at given times, by cubic Hermite interpolation between the steps; and their number."""
    times, states, slopes = solve(rates, START, wanted[-1], tolerance)
    passed = nbta.cast(nbta.expand_dims(times, 1) < wanted, "int64")
    right = nbta.sum(passed, axis=0)  # the step that each time lies in ends there
    left = right - 1
    width = nbta.expand_dims(nbta.take(times, right) - nbta.take(times, left), 1)
    u = nbta.expand_dims(wanted - nbta.take(times, left), 1) / width
    y0, y1 = nbta.take(states, left, axis=0), nbta.take(states, right, axis=0)
    d0, d1 = width * nbta.take(slopes, left, axis=0), width * nbta.take(slopes, right, axis=0)
    between = (1 + 2 * u) * (1 - u) ** 2 * y0 + u**2 * (3 - 2 * u) * y1
    return between + u * (1 - u) ** 2 * d0 - u**2 * (1 - u) * d1, nbta.size(times) - 1


def loss(log_rates, observed):
    """Mean squared error, and the number of accepted steps; logarithms keep rates positive."""
    states, steps = states_at(nbta.exp(log_rates), TIMES)
    return nbta.mean((states - observed) ** 2), steps


def fit(observed, guess):
    """The rates that fit best, and the numbers of steps that the solver took on the way."""
    value_and_grad = nbta.value_and_grad(loss, has_aux=True)
    taken = []

    def objective(log_rates):
        (value, steps), gradient = value_and_grad(log_rates, observed)
        taken.append(int(steps))
        return value, gradient

    found = minimize(objective, np.log(guess), jac=True, method="BFGS")
    return np.exp(found.x), found, taken


def main():
    """Make data up, check the gradient, fit, and print what was found."""
    clean, _ = nbta.function(states_at)(TRUE, TIMES, tolerance=1e-7)
    observed = clean + np.random.default_rng(0).normal(0.0, NOISE, clean.shape)
    guess = np.array([0.9, 0.3, 0.5, 0.12])
    nbta.testing.check_grads(
        lambda v: loss(v, observed)[0], (np.log(guess),), order=1, rtol=1e-5, modes=("reverse",)
    )
    print("gradient through the solver agrees with central differences")
    began = time.perf_counter()
    rates, found, taken = fit(observed, guess)
    seconds = time.perf_counter() - began
    print(f"{found.nit} iterations, {len(taken)} gradients, {seconds:.1f} s")
    print(f"steps of the solver: {min(taken)} to {max(taken)}, one graph for all")
    print(f"root mean squared error {np.sqrt(found.fun):.3f}, noise {NOISE}")
    print("rates, true and found:")
    for name, true, value in zip(("birth", "hunting", "death", "growth"), TRUE, rates, strict=True):
        print(f"  {name:8}{true:.3f}  {value:.3f}")


if __name__ == "__main__":
    main()
