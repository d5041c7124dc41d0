"""What is fitted to data: counts, descent, and three of GradBench's problems."""

import math

import numpy as np
from numba import njit

import nbta

from .loops import repeat
from .program import Program, rng

# A histogram.

BINS = 256


def histogram(weights, bins):
    """Sum of logarithms of what falls into each bin; many items fall into the same."""

    def item(i, h):
        return nbta.add_item(h, bins[i], nbta.exp(weights[i]))

    h = repeat(0, weights.shape[0], item, nbta.ones((BINS,)))
    return nbta.sum(nbta.log(h))


@njit(cache=True)
def histogram_plain(weights, bins):
    h = np.ones(BINS)
    for i in range(len(weights)):
        h[bins[i]] += math.exp(weights[i])
    return np.sum(np.log(h))


def histogram_in_jax(weights, bins):
    import jax.numpy as jnp

    return jnp.sum(jnp.log(jnp.ones(BINS).at[bins].add(jnp.exp(weights))))


def histogram_arguments(n):
    return rng(n).normal(size=n), rng(n + 1).integers(0, BINS, n)


# Descent, and what its rates do to the outcome.


def descent(rates, w, x, y, checkpoint=None):
    """Squared errors of the weights after a descent, an item a step; ``rates``: step and decay."""
    features = w.shape[0]

    def guess(w, k):
        return repeat(0, features, lambda j, s: s + w[j] * x[k, j], 0.0)

    def step(k, w):
        off = guess(w, k) - y[k]

        def weight(j, w):
            return nbta.add_item(w, j, -rates[0] * (off * x[k, j] + rates[1] * w[j]))

        return repeat(0, features, weight, w)

    w = repeat(0, x.shape[0], step, w, checkpoint=checkpoint)

    def error(k, s):
        off = guess(w, k) - y[k]
        return s + off * off

    return repeat(0, x.shape[0], error, 0.0) / nbta.cast(x.shape[0], np.float64)


@njit(cache=True)
def descent_plain(rates, w, x, y):
    n, features = x.shape
    w = w.copy()
    for k in range(n):
        guess = 0.0
        for j in range(features):
            guess += w[j] * x[k, j]
        off = guess - y[k]
        for j in range(features):
            w[j] -= rates[0] * (off * x[k, j] + rates[1] * w[j])
    total = 0.0
    for k in range(n):
        guess = 0.0
        for j in range(features):
            guess += w[j] * x[k, j]
        total += (guess - y[k]) ** 2
    return total / n


def checkpointed_descent(rates, w, x, y):
    """The same, with weights kept for as many steps only as the root of their number."""
    return descent(rates, w, x, y, checkpoint="sqrt")


def descent_in_jax(rates, w, x, y):
    import jax.numpy as jnp
    from jax import lax

    def step(w, item):
        x, y = item
        return w - rates[0] * ((w @ x - y) * x + rates[1] * w), None

    w, _ = lax.scan(step, w, (x, y))
    return jnp.mean((x @ w - y) ** 2)


def checkpointed_descent_in_jax(rates, w, x, y):
    """A loop of segments, each a loop that is run again."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    def step(w, item):
        x, y = item
        return w - rates[0] * ((w @ x - y) * x + rates[1] * w), None

    @jax.checkpoint
    def segment(w, items):
        return lax.scan(step, w, items)

    length = next(k for k in range(math.isqrt(len(y)), 0, -1) if len(y) % k == 0)
    w, _ = lax.scan(segment, w, (x.reshape(-1, length, x.shape[1]), y.reshape(-1, length)))
    return jnp.mean((x @ w - y) ** 2)


def descent_arguments(n, features=20):
    random = rng(n)
    x = random.normal(size=(n, features))
    y = x @ random.normal(size=features) + 0.1 * random.normal(size=n)
    return np.array([0.01, 0.1]), random.normal(size=features), x, y


# A mixture of Gaussians, as in GradBench (after ADBench): the inverse factors of covariances have
# logarithms on their diagonals, in ``logs``, and what is below them column by column, in ``below``.

DIMENSIONS = 10


def triangle(d):
    """Row and column of each entry below a diagonal, column by column."""
    columns, rows = np.triu_indices(d, 1)
    return rows, columns


def places(d):
    """Where each entry of a square stands in ``below``, and one after it for all others."""
    found = np.full((d, d), d * (d - 1) // 2)
    found[triangle(d)] = np.arange(d * (d - 1) // 2)
    return found


def mixture(alphas, means, logs, below, x):
    """Log likelihood of points and a Wishart prior, by mixture weights, means and covariances."""
    d = DIMENSIONS
    padded = nbta.concatenate([below, nbta.zeros_like(below[:, :1])], axis=1)
    lower = nbta.take(padded, places(d), axis=1)
    diagonal = nbta.exp(logs)
    traces = nbta.sum(logs, 1)

    def point(i, s):
        off = x[i] - means
        white = diagonal * off + nbta.einsum("kij,kj->ki", lower, off)
        return s + nbta.logsumexp(alphas + traces - 0.5 * nbta.sum(white * white, 1))

    total = repeat(0, x.shape[0], point, 0.0)
    weights = nbta.cast(x.shape[0], np.float64) * nbta.logsumexp(alphas)
    prior = 0.5 * (nbta.sum(diagonal * diagonal) + nbta.sum(below * below))
    return total - weights + prior


@njit(cache=True)
def likelihood_plain(alphas, means, logs, below, x):
    """Log likelihood of points, without a constant."""
    n, d = x.shape
    k = len(alphas)
    diagonal, traces, terms, off = np.exp(logs), np.zeros(k), np.zeros(k), np.zeros(d)
    for c in range(k):
        for i in range(d):
            traces[c] += logs[c, i]
    total, white = 0.0, np.zeros(d)
    for p in range(n):
        for c in range(k):
            for i in range(d):
                off[i] = x[p, i] - means[c, i]
                white[i] = diagonal[c, i] * off[i]
            place = 0
            for j in range(d):
                for i in range(j + 1, d):
                    white[i] += below[c, place] * off[j]
                    place += 1
            square = 0.0
            for i in range(d):
                square += white[i] * white[i]
            terms[c] = alphas[c] + traces[c] - 0.5 * square
        total += logsumexp_plain(terms)
    return total - n * logsumexp_plain(alphas)


@njit(cache=True)
def mixture_plain(alphas, means, logs, below, x):
    diagonal = np.exp(logs)
    prior = 0.5 * (np.sum(diagonal * diagonal) + np.sum(below * below))
    return likelihood_plain(alphas, means, logs, below, x) + prior


def mixture_in_jax(alphas, means, logs, below, x):
    """As GradBench's: all points and components at once."""
    import jax
    import jax.numpy as jnp

    rows, columns = triangle(DIMENSIONS)
    lower = jnp.zeros((alphas.shape[0], DIMENSIONS, DIMENSIONS)).at[:, rows, columns].set(below)
    diagonal = jnp.exp(logs)
    off = x[:, None] - means
    white = diagonal * off + jnp.einsum("kij,nkj->nki", lower, off)
    terms = alphas + jnp.sum(logs, axis=1) - 0.5 * jnp.sum(white * white, axis=2)
    total = jnp.sum(jax.nn.logsumexp(terms, axis=1))
    prior = 0.5 * (jnp.sum(diagonal * diagonal) + jnp.sum(below * below))
    return total - x.shape[0] * jax.nn.logsumexp(alphas) + prior


def mixture_arguments(n, k):
    random, d = rng(n), DIMENSIONS
    logs, below = random.normal(0, 0.3, (k, d)), random.normal(0, 0.3, (k, d * (d - 1) // 2))
    return (
        random.normal(size=k),
        random.normal(size=(k, d)),
        logs,
        below,
        random.normal(size=(n, d)),
    )


# The logarithm of a sum of exponentials.


def logsumexp(x):
    """Of all numbers."""
    most = nbta.max(x)
    return most + nbta.log(nbta.sum(nbta.exp(x - most)))


@njit(cache=True)
def logsumexp_plain(x):
    most = x[0]
    for i in range(1, len(x)):
        most = max(most, x[i])
    s = 0.0
    for i in range(len(x)):
        s += math.exp(x[i] - most)
    return most + math.log(s)


def logsumexp_in_jax(x):
    import jax

    return jax.nn.logsumexp(x)


def logsumexp_arguments(n):
    return (rng(n).normal(size=n),)


# Linear least squares: a polynomial for the sign of points between -1 and 1, as in GradBench.


def least_squares(coefficients, points, signs):
    """Half the sum of squares."""

    def power(j, off, powers):
        return off - coefficients[j] * powers, powers * points

    off, _ = repeat(0, coefficients.shape[0], power, signs, nbta.ones_like(points))
    return 0.5 * nbta.sum(off * off)


@njit(cache=True)
def least_squares_plain(coefficients, points, signs):
    s = 0.0
    for i in range(len(points)):
        off, power = signs[i], 1.0
        for j in range(len(coefficients)):
            off -= coefficients[j] * power
            power *= points[i]
        s += off * off
    return 0.5 * s


def least_squares_in_jax(coefficients, points, signs):
    import jax.numpy as jnp

    powers = points[:, None] ** jnp.arange(coefficients.shape[0])
    off = signs - powers @ coefficients
    return 0.5 * jnp.sum(off * off)


def least_squares_arguments(n, count=16):
    points = np.linspace(-1, 1, n)
    return rng(n).normal(size=count), points, np.sign(points)


# A net of LSTM cells, as in GradBench (after ADBench): each state has weights of its own only.


def lstm(main, extra, state, sequence):
    """Mean of minus the log likelihood of each next item of a sequence (steps, width).

    ``main`` (layers, 2, 4, width) has weights and biases of the cells, ``extra`` (3, width) weights
    of inputs, weights and biases of outputs, and ``state`` (layers, 2, width) states and cells.
    """
    layers = main.shape[0]

    def step(t, states, total):
        value, following = sequence[t] * extra[0], []
        for (hidden, cell), (w, b) in zip(states, weights, strict=True):
            forget = nbta.sigmoid(value * w[0] + b[0])
            gate = nbta.sigmoid(hidden * w[1] + b[1])
            out = nbta.sigmoid(value * w[2] + b[2])
            cell = cell * forget + gate * nbta.tanh(hidden * w[3] + b[3])
            value = out * nbta.tanh(cell)
            following.append((value, cell))
        guess = value * extra[1] + extra[2]
        guess = guess - nbta.log(nbta.sum(nbta.exp(guess)) + 2.0)
        return following, total + nbta.sum(guess * sequence[t + 1])

    weights = [(main[k, 0], main[k, 1]) for k in range(layers)]
    states = [(state[k, 0], state[k, 1]) for k in range(layers)]
    _, total = repeat(0, sequence.shape[0] - 1, step, states, 0.0)
    return -total / nbta.cast(sequence.shape[0] - 1, np.float64)


@njit(cache=True)
def lstm_plain(main, extra, state, sequence):
    n, width = sequence.shape
    state, value, total = state.copy(), np.zeros(width), 0.0
    for t in range(n - 1):
        for i in range(width):
            value[i] = sequence[t, i] * extra[0, i]
        for k in range(len(main)):
            w, b = main[k, 0], main[k, 1]
            for i in range(width):
                hidden = state[k, 0, i]
                forget = 1.0 / (1.0 + math.exp(-(value[i] * w[0, i] + b[0, i])))
                gate = 1.0 / (1.0 + math.exp(-(hidden * w[1, i] + b[1, i])))
                out = 1.0 / (1.0 + math.exp(-(value[i] * w[2, i] + b[2, i])))
                change = math.tanh(hidden * w[3, i] + b[3, i])
                state[k, 1, i] = state[k, 1, i] * forget + gate * change
                value[i] = out * math.tanh(state[k, 1, i])
                state[k, 0, i] = value[i]
        s = 2.0
        for i in range(width):
            value[i] = value[i] * extra[1, i] + extra[2, i]
            s += math.exp(value[i])
        s = math.log(s)
        for i in range(width):
            total += (value[i] - s) * sequence[t + 1, i]
    return -total / (n - 1)


def lstm_in_jax(main, extra, state, sequence):
    import jax
    import jax.numpy as jnp
    from jax import lax

    def step(states, now):
        (given, wanted), following = now, []
        value = given * extra[0]
        for (hidden, cell), (w, b) in zip(states, main, strict=True):
            forget = jax.nn.sigmoid(value * w[0] + b[0])
            gate = jax.nn.sigmoid(hidden * w[1] + b[1])
            out = jax.nn.sigmoid(value * w[2] + b[2])
            cell = cell * forget + gate * jnp.tanh(hidden * w[3] + b[3])
            value = out * jnp.tanh(cell)
            following.append((value, cell))
        guess = value * extra[1] + extra[2]
        guess = guess - jnp.log(jnp.sum(jnp.exp(guess)) + 2.0)
        return following, jnp.sum(guess * wanted)

    first = [(state[k, 0], state[k, 1]) for k in range(main.shape[0])]
    return -jnp.mean(lax.scan(step, first, (sequence[:-1], sequence[1:]))[1])


def lstm_arguments(n, width=14, layers=2):
    random = rng(n)
    main, extra = random.normal(size=(layers, 2, 4, width)), random.normal(size=(3, width))
    sequence = np.eye(width)[random.integers(0, width, n)]
    return main, extra, random.normal(size=(layers, 2, width)), sequence


PROGRAMS = [
    Program("histogram", histogram, histogram_plain, histogram_arguments, 50_000, 9,
            in_jax=histogram_in_jax),
    Program("descent", descent, descent_plain, descent_arguments, 5000, 4, (0, 1),
            in_jax=descent_in_jax),
    Program("checkpointed descent", checkpointed_descent, descent_plain, descent_arguments, 5000,
            4, (0, 1), in_jax=checkpointed_descent_in_jax),
    Program("mixture of 25", mixture, mixture_plain, lambda n: mixture_arguments(n, 25), 1000, 3,
            (0, 1, 2, 3), in_jax=mixture_in_jax, reach=3.2),
    Program("mixture of 100", mixture, mixture_plain, lambda n: mixture_arguments(n, 100), 1000, 2,
            (0, 1, 2, 3), in_jax=mixture_in_jax, reach=3.2),
    Program("lstm", lstm, lstm_plain, lstm_arguments, 1024, 4, (0, 1), in_jax=lstm_in_jax,
            reach=3.0),
    Program("least squares", least_squares, least_squares_plain, least_squares_arguments, 100_000,
            9, in_jax=least_squares_in_jax, reach=1.5),
    Program("logsumexp", logsumexp, logsumexp_plain, logsumexp_arguments, 100_000, 9,
            in_jax=logsumexp_in_jax, reach=1.5),
]  # fmt: skip
