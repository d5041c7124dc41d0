"""Motion by small steps: bodies that attract each other, and a differential equation."""

import math

import numpy as np
from numba import njit

import nbta

from .loops import repeat
from .program import Program, rng

# Bodies.

LEAPS, DT, SOFT = 20, 0.01, 0.05


def bodies(place, speed, mass):
    """Sum of squares of all places (n, 3) after some leaps."""
    n = mass.shape[0]

    def pull(place):
        def one(i, pulls):
            def other(j, x, y, z):
                dx, dy, dz = (place[j, k] - place[i, k] for k in range(3))
                square = dx * dx + dy * dy + dz * dz + SOFT
                g = mass[j] / (square * nbta.sqrt(square))
                return x + g * dx, y + g * dy, z + g * dz

            for k, total in enumerate(repeat(0, n, other, 0.0, 0.0, 0.0)):
                pulls = nbta.set_item(pulls, (i, k), total)
            return pulls

        return repeat(0, n, one, nbta.zeros_like(place))

    def leap(_, place, speed):
        half = speed + 0.5 * DT * pull(place)
        place = place + DT * half
        return place, half + 0.5 * DT * pull(place)

    place, _ = repeat(0, LEAPS, leap, place, speed)
    return nbta.sum(place * place)


@njit(cache=True)
def pull_plain(place, mass, pulls):
    n = len(mass)
    for i in range(n):
        x, y, z = 0.0, 0.0, 0.0
        for j in range(n):
            dx, dy = place[j, 0] - place[i, 0], place[j, 1] - place[i, 1]
            dz = place[j, 2] - place[i, 2]
            square = dx * dx + dy * dy + dz * dz + SOFT
            g = mass[j] / (square * math.sqrt(square))
            x += g * dx
            y += g * dy
            z += g * dz
        pulls[i, 0], pulls[i, 1], pulls[i, 2] = x, y, z


@njit(cache=True)
def bodies_plain(place, speed, mass):
    place, speed, pulls = place.copy(), speed.copy(), np.zeros_like(place)
    for _ in range(LEAPS):
        pull_plain(place, mass, pulls)
        speed += 0.5 * DT * pulls
        place += DT * speed
        pull_plain(place, mass, pulls)
        speed += 0.5 * DT * pulls
    return np.sum(place * place)


def bodies_in_jax(place, speed, mass):
    """All pairs at once."""
    import jax.numpy as jnp
    from jax import lax

    def pull(place):
        d = place[None] - place[:, None]
        square = jnp.sum(d * d, axis=-1) + SOFT
        return jnp.einsum("ij,ijk->ik", mass / (square * jnp.sqrt(square)), d)

    def leap(_, state):
        place, speed = state
        speed = speed + 0.5 * DT * pull(place)
        place = place + DT * speed
        return place, speed + 0.5 * DT * pull(place)

    place, _ = lax.fori_loop(0, LEAPS, leap, (place, speed))
    return jnp.sum(place * place)


def bodies_arguments(n):
    random = rng(n)
    places, speeds = random.normal(size=(n, 3)), random.normal(size=(n, 3))
    return places, speeds, random.uniform(0.5, 1.5, n)


# A differential equation by the classical method of Runge and Kutta.

ODE_STEPS = 100


def ode(rates):
    """Last of the ``y`` at 1, where each one's slope is its rate times the one before.

    This is GradBench's equation: ``y[0]' = x[0]``, ``y[i]' = x[i] * y[i-1]``, all from 0.
    """
    h = 1.0 / ODE_STEPS

    def slope(y):
        def one(i, d):
            return nbta.set_item(d, i, rates[i] * y[i - 1])

        first = nbta.set_item(nbta.zeros_like(y), 0, rates[0])
        return repeat(1, rates.shape[0], one, first)

    def step(_, y):
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        k4 = slope(y + h * k3)
        return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return nbta.sum(repeat(0, ODE_STEPS, step, nbta.zeros_like(rates)))


@njit(cache=True)
def slope_plain(rates, y, d):
    d[0] = rates[0]
    for i in range(1, len(rates)):
        d[i] = rates[i] * y[i - 1]


@njit(cache=True)
def solve_plain(rates, steps, end):
    """All ``y`` at the end."""
    n, h = len(rates), end / steps
    y, k1, k2, k3, k4 = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    for _ in range(steps):
        slope_plain(rates, y, k1)
        slope_plain(rates, y + 0.5 * h * k1, k2)
        slope_plain(rates, y + 0.5 * h * k2, k3)
        slope_plain(rates, y + h * k3, k4)
        y += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return y


@njit(cache=True)
def ode_plain(rates):
    return np.sum(solve_plain(rates, ODE_STEPS, 1.0))


def ode_in_jax(rates):
    import jax.numpy as jnp
    from jax import lax

    h = 1.0 / ODE_STEPS

    def slope(y):
        return rates * jnp.concatenate([jnp.ones(1), y[:-1]])

    def step(y, _):
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        k4 = slope(y + h * k3)
        return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

    return jnp.sum(lax.scan(step, jnp.zeros_like(rates), None, length=ODE_STEPS)[0])


def ode_arguments(n):
    return (rng(n).uniform(0.5, 1.5, n),)


# Prey and predators by an adaptive method, seen at some times.

TOLERANCE = 1e-4
#: Enough for the steps to an output, in JAX.
OUTPUT_STEPS = 20


def predators(start, rates, times):
    """Sum of squares of both at all times, by Heun's method with steps of its own choice.

    Its error is told by Euler's step. The step to an output's time is cut to end there.
    """

    def slope(x, y):
        return rates[0] * x - rates[1] * x * y, rates[2] * x * y - rates[3] * y

    def step(until, t, x, y, h):
        is_last = t + h >= until
        now = nbta.where(is_last, until - t, h)
        a, b = slope(x, y)
        c, d = slope(x + now * a, y + now * b)
        off_x, off_y = 0.5 * now * (c - a), 0.5 * now * (d - b)
        error = nbta.sqrt(off_x * off_x + off_y * off_y) / TOLERANCE + 1e-10
        scaled = now * nbta.minimum(nbta.maximum(0.9 / nbta.sqrt(error), 0.2), 5.0)

        def accept():
            following = nbta.where(is_last, h, scaled)
            end = nbta.where(is_last, until, t + now)
            return end, x + now * a + off_x, y + now * b + off_y, following

        return nbta.cond(error <= 1.0, accept, lambda: (t, x, y, scaled))

    def output(k, t, x, y, h, s):
        t, x, y, h = nbta.while_loop(
            lambda t, *_: t < times[k], lambda *state: step(times[k], *state), (t, x, y, h)
        )
        return t, x, y, h, s + x * x + y * y

    return repeat(0, times.shape[0], output, 0.0, start[0], start[1], 0.01, 0.0)[4]


@njit(cache=True)
def predators_plain(start, rates, times):
    t, x, y, h, s = 0.0, start[0], start[1], 0.01, 0.0
    for k in range(len(times)):
        until = times[k]
        while t < until:
            is_last = t + h >= until
            now = until - t if is_last else h
            a, b = rates[0] * x - rates[1] * x * y, rates[2] * x * y - rates[3] * y
            u, v = x + now * a, y + now * b
            c, d = rates[0] * u - rates[1] * u * v, rates[2] * u * v - rates[3] * v
            off_x, off_y = 0.5 * now * (c - a), 0.5 * now * (d - b)
            error = math.sqrt(off_x * off_x + off_y * off_y) / TOLERANCE + 1e-10
            scaled = now * min(max(0.9 / math.sqrt(error), 0.2), 5.0)
            if error <= 1.0:
                x, y = x + now * a + off_x, y + now * b + off_y
                t = until if is_last else t + now
                h = h if is_last else scaled
            else:
                h = scaled
        s += x * x + y * y
    return s


def predators_in_jax(start, rates, times):
    """At most so many steps to an output, of which the last do nothing."""
    import jax.numpy as jnp
    from jax import lax

    def slope(x, y):
        return rates[0] * x - rates[1] * x * y, rates[2] * x * y - rates[3] * y

    def output(state, until):
        def step(_, state):
            t, x, y, h = state
            goes_on, is_last = t < until, t + h >= until
            now = jnp.where(is_last, until - t, h)
            a, b = slope(x, y)
            c, d = slope(x + now * a, y + now * b)
            off_x, off_y = 0.5 * now * (c - a), 0.5 * now * (d - b)
            square = jnp.where(goes_on, off_x * off_x + off_y * off_y, 1.0)
            error = jnp.sqrt(square) / TOLERANCE + 1e-10
            scaled = now * jnp.minimum(jnp.maximum(0.9 / jnp.sqrt(error), 0.2), 5.0)
            accepts = goes_on & (error <= 1.0)
            return (
                jnp.where(accepts, jnp.where(is_last, until, t + now), t),
                jnp.where(accepts, x + now * a + off_x, x),
                jnp.where(accepts, y + now * b + off_y, y),
                jnp.where(goes_on & ~(accepts & is_last), scaled, h),
            )

        state = lax.fori_loop(0, OUTPUT_STEPS, step, state)
        return state, state[1] ** 2 + state[2] ** 2

    return jnp.sum(lax.scan(output, (0.0, start[0], start[1], 0.01), times)[1])


def predators_arguments(n):
    return np.array([1.0, 0.8]), np.array([1.1, 0.4, 0.3, 0.7]), 0.05 * np.arange(1.0, n + 1)


PROGRAMS = [
    Program("n-body", bodies, bodies_plain, bodies_arguments, 32, 3, (0, 1, 2),
            in_jax=bodies_in_jax),
    Program("predators", predators, predators_plain, predators_arguments, 1000, 5, (0, 1),
            in_jax=predators_in_jax),
    Program("ode", ode, ode_plain, ode_arguments, 1000, 4, in_jax=ode_in_jax, reach=3.0),
]  # fmt: skip
