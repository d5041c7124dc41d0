"""Gradient of an ODE solver that chooses its own steps, by where it starts and by its rates.

The method of Dormand and Prince (1980) in a loop that ends when the run says so: a step whose
error is too large is tried again, shorter. How long steps are counts as given
(`nbta.stop_gradient`), so the gradient is that of the Runge-Kutta formula along the steps taken.
"""

import numpy as np

import nbta

# Weights of the slopes so far, for where the next slope is taken; the last point is the new state.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def lotka_volterra(rates, y):
    """Prey and predators; rates of birth, hunting, death, and growth by hunting."""
    prey, predators = y[0], y[1]
    met = prey * predators
    return nbta.stack([rates[0] * prey - rates[1] * met, rates[3] * met - rates[2] * predators])


def van_der_pol(rates, y):
    """An oscillator that damps itself where it swings wide."""
    return nbta.stack([y[1], rates[0] * (1.0 - y[0] * y[0]) * y[1] - y[0]])


def combined(weights, slopes):
    """Their weighted sum."""
    return sum(w * k for w, k in zip(weights, slopes, strict=True) if w)


def one_step(slope, y, first_slope, step):
    """The state a step on, the slope there, and the estimated error of the state."""
    slopes = [first_slope]
    for weights in STAGES:
        moved = y + step * combined(weights, slopes)
        slopes.append(slope(moved))
    return moved, slopes[-1], step * combined(ERROR, slopes)


def solve(slope, start, rates, end, tolerance, first_step=0.01):
    """The state at time ``end``, and the numbers of accepted and of rejected steps."""

    def slope_at(y):
        return slope(rates, y)

    def unfinished(t, y, k1, step, taken, refused):
        return t < end

    def advance(t, y, k1, step, taken, refused):
        step = nbta.minimum(step, end - t)
        moved, k7, off = one_step(slope_at, y, k1, step)
        scale = tolerance * (1.0 + nbta.maximum(nbta.abs(y), nbta.abs(moved)))
        error = nbta.stop_gradient(nbta.sqrt(nbta.mean(nbta.square(off / scale))))
        wish = 0.9 * error**-0.2

        def accept():
            return t + step, moved, k7, step * nbta.clip(wish, 1.0, 10.0), taken + 1, refused

        def reject():
            return t, y, k1, step * nbta.clip(wish, 0.2, 0.9), taken, refused + 1

        return nbta.cond(error < 1.0, accept, reject)

    first = (0.0, start, slope_at(start), first_step, 0, 0)
    _, y, _, _, taken, refused = nbta.while_loop(unfinished, advance, first)
    return y, taken, refused


def end_loss(slope, start, rates, end, tolerance):
    """Sum of squares of the state at time ``end``."""
    y, _, _ = solve(slope, start, rates, end, tolerance)
    return nbta.sum(nbta.square(y))


def gradients(slope, start, rates, end, tolerance):
    """The loss, and its gradients with respect to the start and the rates."""
    loss = nbta.value_and_grad(
        lambda start, rates: end_loss(slope, start, rates, end, tolerance), argnums=(0, 1)
    )
    return loss(np.asarray(start), np.asarray(rates))


def differences(slope, start, rates, end, tolerance, by=1e-5):
    """The same gradients by central differences of the loss."""
    found, values = [], np.concatenate([start, rates])
    loss = nbta.function(
        lambda v: end_loss(slope, v[: len(start)], v[len(start) :], end, tolerance)
    )
    for i in range(len(values)):
        nudge = by * np.eye(len(values))[i]
        found.append((loss(values + nudge) - loss(values - nudge)) / (2 * by))
    return found[: len(start)], found[len(start) :]


def main(quick=False):
    """Two equations: steps, loss, gradient, and how far central differences are off."""
    end, tolerance = (2.0, 1e-6) if quick else (20.0, 1e-8)
    problems = {
        "Lotka-Volterra": (lotka_volterra, [10.0, 5.0], [1.1, 0.4, 0.4, 0.1]),
        "Van der Pol": (van_der_pol, [2.0, 0.0], [5.0]),
    }
    for name, (slope, start, rates) in problems.items():
        run = nbta.function(lambda y, r, slope=slope: solve(slope, y, r, end, tolerance))
        _, taken, refused = run(np.array(start), np.array(rates))
        value, found = gradients(slope, start, rates, end, tolerance)
        expected = np.concatenate(differences(slope, start, rates, end, tolerance))
        off = np.max(np.abs(np.concatenate(found) - expected)) / np.max(np.abs(expected))
        print(f"{name}: {taken} steps, {refused} more tried, loss {value:.6f}")
        print(f"  by the start {found[0].round(4)}, by the rates {found[1].round(4)}")
        print(f"  central differences are off by {off:.0e}")


if __name__ == "__main__":
    main()
