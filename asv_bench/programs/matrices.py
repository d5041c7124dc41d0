"""Linear algebra by loops, in place."""

import math

import numpy as np
from numba import njit

import nbta

from .loops import repeat, repeat_down
from .program import Program, rng

# A tridiagonal system.


def tridiagonal(a, b, c, d):
    """Sum of squares of the solution, by Thomas' algorithm; ``a[0]`` and ``c[-1]`` do not count."""
    n = a.shape[0]

    def eliminate(i, b, d):
        w = a[i] / b[i - 1]
        return nbta.add_item(b, i, -w * c[i - 1]), nbta.add_item(d, i, -w * d[i - 1])

    b, d = repeat(1, n, eliminate, b, d)

    def substitute(i, x):
        return nbta.set_item(x, i, (d[i] - c[i] * x[i + 1]) / b[i])

    x = nbta.set_item(nbta.zeros_like(d), -1, d[-1] / b[-1])
    x = repeat_down(n - 2, -1, substitute, x)
    return nbta.sum(x * x)


@njit(cache=True)
def tridiagonal_plain(a, b, c, d):
    n = len(a)
    b, d, x = b.copy(), d.copy(), np.zeros(n)
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    x[n - 1] = d[n - 1] / b[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    return np.sum(x * x)


@njit(cache=True)
def tridiagonal_adjoint(a, b, c, d):
    """Each ``b[i]`` and ``d[i]`` is changed once, so that the last values serve the way back."""
    n = len(a)
    b, d, x = b.copy(), d.copy(), np.zeros(n)
    for i in range(1, n):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    x[n - 1] = d[n - 1] / b[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = (d[i] - c[i] * x[i + 1]) / b[i]
    a_bar, b_bar, c_bar, d_bar = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    bar = 0.0
    for i in range(n - 1):
        g = (2.0 * x[i] + bar) / b[i]
        d_bar[i] = g
        c_bar[i] = -g * x[i + 1]
        b_bar[i] = -g * x[i]
        bar = -g * c[i]
    g = (2.0 * x[n - 1] + bar) / b[n - 1]
    d_bar[n - 1] = g
    b_bar[n - 1] = -g * x[n - 1]
    for i in range(n - 1, 0, -1):
        w = a[i] / b[i - 1]
        w_bar = -(d_bar[i] * d[i - 1] + b_bar[i] * c[i - 1])
        d_bar[i - 1] -= w * d_bar[i]
        c_bar[i - 1] -= w * b_bar[i]
        a_bar[i] = w_bar / b[i - 1]
        b_bar[i - 1] -= w_bar * w / b[i - 1]
    return np.sum(x * x), (a_bar, b_bar, c_bar, d_bar)


def tridiagonal_in_jax(a, b, c, d):
    import jax.numpy as jnp
    from jax import lax

    def eliminate(before, row):
        (b, d), (a, below, c, right) = before, row
        w = a / b
        now = below - w * c, right - w * d
        return now, now

    _, (bs, ds) = lax.scan(eliminate, (b[0], d[0]), (a[1:], b[1:], c[:-1], d[1:]))
    b, d = jnp.concatenate([b[:1], bs]), jnp.concatenate([d[:1], ds])

    def substitute(after, row):
        d, c, b = row
        x = (d - c * after) / b
        return x, x

    last = d[-1] / b[-1]
    _, x = lax.scan(substitute, last, (d[:-1], c[:-1], b[:-1]), reverse=True)
    return jnp.sum(x * x) + last * last


def tridiagonal_arguments(n):
    random = rng(n)
    a, c, d = random.uniform(-1, 1, n), random.uniform(-1, 1, n), random.normal(size=n)
    return a, random.uniform(3, 4, n), c, d


# LU decomposition.


def lu(a):
    """Logarithm of the determinant, by a decomposition in place without pivots."""
    n = a.shape[0]

    def pivot(k, a):
        def row(i, a):
            a = nbta.set_item(a, (i, k), a[i, k] / a[k, k])

            def column(j, a):
                return nbta.add_item(a, (i, j), -a[i, k] * a[k, j])

            return repeat(k + 1, n, column, a)

        return repeat(k + 1, n, row, a)

    a = repeat(0, n, pivot, a)
    return repeat(0, n, lambda k, s: s + nbta.log(a[k, k]), 0.0)


@njit(cache=True)
def lu_plain(a):
    n, a = len(a), a.copy()
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    s = 0.0
    for k in range(n):
        s += math.log(a[k, k])
    return s


@njit(cache=True)
def lu_adjoint(a):
    """Factors are final once made, so that only they are needed on the way back."""
    n, a = len(a), a.copy()
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]
    s, bars = 0.0, np.zeros((n, n))
    for k in range(n):
        s += math.log(a[k, k])
        bars[k, k] = 1.0 / a[k, k]
    for k in range(n - 1, -1, -1):
        for i in range(n - 1, k, -1):
            bar = bars[i, k]
            for j in range(n - 1, k, -1):
                bar -= bars[i, j] * a[k, j]
                bars[k, j] -= bars[i, j] * a[i, k]
            bars[i, k] = bar / a[k, k]
            bars[k, k] -= bar * a[i, k] / a[k, k]
    return s, bars


def lu_in_jax(a):
    """The usual loop over pivots, with masks in place of the shorter rows."""
    import jax.numpy as jnp
    from jax import lax

    n = a.shape[0]
    index = jnp.arange(n)

    def pivot(k, a):
        below = index > k
        factors = jnp.where(below, a[:, k] / a[k, k], 0.0)
        a = a.at[:, k].set(jnp.where(below, factors, a[:, k]))
        return a - jnp.outer(factors, jnp.where(below, a[k], 0.0))

    return jnp.sum(jnp.log(jnp.diag(lax.fori_loop(0, n, pivot, a))))


def lu_arguments(n):
    return (rng(n).uniform(-1, 1, (n, n)) + 2 * n * np.eye(n),)


# Cholesky decomposition.


def cholesky(a):
    """Half the logarithm of the determinant, by a decomposition in place."""
    n = a.shape[0]

    def column(j, a):
        def inner(i, a):
            return repeat(0, j, lambda k, s: s - a[i, k] * a[j, k], a[i, j])

        a = nbta.set_item(a, (j, j), nbta.sqrt(inner(j, a)))
        return repeat(j + 1, n, lambda i, a: nbta.set_item(a, (i, j), inner(i, a) / a[j, j]), a)

    a = repeat(0, n, column, a)
    return repeat(0, n, lambda k, s: s + nbta.log(a[k, k]), 0.0)


@njit(cache=True)
def cholesky_plain(a):
    n, a = len(a), a.copy()
    for j in range(n):
        s = a[j, j]
        for k in range(j):
            s -= a[j, k] * a[j, k]
        a[j, j] = math.sqrt(s)
        for i in range(j + 1, n):
            s = a[i, j]
            for k in range(j):
                s -= a[i, k] * a[j, k]
            a[i, j] = s / a[j, j]
    s = 0.0
    for k in range(n):
        s += math.log(a[k, k])
    return s


def cholesky_in_jax(a):
    import jax.numpy as jnp
    from jax import lax

    n = a.shape[0]
    index = jnp.arange(n)

    def column(j, a):
        known = jnp.where(index < j, a[j], 0.0)
        rest = a[:, j] - a @ known
        pivot = jnp.sqrt(rest[j])
        made = jnp.where(index > j, rest / pivot, jnp.where(index == j, pivot, a[:, j]))
        return a.at[:, j].set(made)

    return jnp.sum(jnp.log(jnp.diag(lax.fori_loop(0, n, column, a))))


def cholesky_arguments(n):
    b = rng(n).uniform(-1, 1, (n, n))
    return (b @ b.T + n * np.eye(n),)


# Conjugate gradients.

CLOSE = 1e-20


def conjugate_gradients(a, b):
    """Sum of squares of the solution, in as many steps as it takes; ``a`` is its lower half."""
    n = b.shape[0]

    def times(p):
        def row(i, q):
            def column(j, q, s):
                return nbta.add_item(q, j, a[i, j] * p[i]), s + a[i, j] * p[j]

            q, s = repeat(0, i, column, q, a[i, i] * p[i])
            return nbta.add_item(q, i, s)

        return repeat(0, n, row, nbta.zeros_like(p))

    def step(x, r, p, rr):
        q = times(p)
        along = rr / nbta.sum(p * q)
        x, r = x + along * p, r - along * q
        now = nbta.sum(r * r)
        return x, r, r + now / rr * p, now

    first = (nbta.zeros_like(b), b, b, nbta.sum(b * b))
    x, _, _, _ = nbta.while_loop(lambda x, r, p, rr: rr > CLOSE, step, first)
    return nbta.sum(x * x)


@njit(cache=True)
def conjugate_gradients_plain(a, b):
    n = len(b)
    x, r, p, q = np.zeros(n), b.copy(), b.copy(), np.zeros(n)
    rr = np.sum(r * r)
    while rr > CLOSE:
        q[:] = 0.0
        for i in range(n):
            s = a[i, i] * p[i]
            for j in range(i):
                q[j] += a[i, j] * p[i]
                s += a[i, j] * p[j]
            q[i] += s
        along = rr / np.sum(p * q)
        x += along * p
        r -= along * q
        now = np.sum(r * r)
        p = r + now / rr * p
        rr = now
    return np.sum(x * x)


def conjugate_gradients_in_jax(a, b):
    """A fixed number of steps, of which the last do nothing: no ``while_loop`` has a gradient."""
    import jax.numpy as jnp
    from jax import lax

    a = jnp.tril(a) + jnp.tril(a, -1).T

    def step(_, state):
        x, r, p, rr = state
        goes_on = rr > CLOSE
        q = a @ p
        along = jnp.where(goes_on, rr / jnp.where(goes_on, jnp.sum(p * q), 1.0), 0.0)
        x, r = x + along * p, r - along * q
        now = jnp.sum(r * r)
        p = r + jnp.where(goes_on, now / jnp.where(goes_on, rr, 1.0), 0.0) * p
        return x, r, p, now

    x, _, _, _ = lax.fori_loop(0, 24, step, (jnp.zeros_like(b), b, b, jnp.sum(b * b)))
    return jnp.sum(x * x)


def conjugate_gradients_arguments(n):
    """Of a condition that asks for about as many steps whatever the size."""
    random = rng(n)
    b = random.normal(size=(n, n)) / np.sqrt(n)
    return b @ b.T + 1.5 * np.eye(n), random.normal(size=n)


# A determinant by minors.


def minors(a):
    """The determinant of n x n: for each set of columns that of the first rows, by minors.

    Sets are numbers in binary; the determinant of a set is that of its last row's minors, which
    are those of the sets without a column.
    """
    n = a.shape[0]
    sets = repeat(0, n, lambda _, p: 2 * p, np.int64(1))

    def members(of):
        return nbta.while_loop(
            lambda q, count: q > 0, lambda q, count: (q // 2, count + q % 2), (of, np.int64(0))
        )[1]

    def one_set(of, table):
        last = members(of) - 1

        def column(j, q, bit, sign, s):
            def minor():
                return s + sign * a[last, j] * table[of - bit], -sign

            s, sign = nbta.cond(nbta.equal(q % 2, 1), minor, lambda: (s, sign))
            return q // 2, 2 * bit, sign, s

        sign = nbta.cast(1 - 2 * (last % 2), np.float64)
        found = repeat(0, n, column, of, np.int64(1), sign, 0.0)
        return nbta.set_item(table, of, found[3])

    table = nbta.set_item(nbta.zeros((sets,)), 0, 1.0)
    return repeat(1, sets, one_set, table)[-1]


@njit(cache=True)
def minors_plain(a):
    n = len(a)
    sets = 2**n
    table = np.zeros(sets)
    table[0] = 1.0
    for of in range(1, sets):
        last, q = -1, of
        while q > 0:
            last += q % 2
            q //= 2
        q, bit, sign, s = of, 1, 1.0 - 2.0 * (last % 2), 0.0
        for j in range(n):
            if q % 2 == 1:
                s += sign * a[last, j] * table[of - bit]
                sign = -sign
            q //= 2
            bit *= 2
        table[of] = s
    return table[-1]


def minors_in_jax(a):
    """The same table, an entry at a time and all columns of it at once."""
    import jax.numpy as jnp
    from jax import lax

    n = a.shape[0]
    bits = 2 ** jnp.arange(n)

    def one_set(table, of):
        has = (of // bits) % 2
        last = jnp.sum(has) - 1
        signs = 1.0 - 2.0 * ((last + jnp.cumsum(has) - 1) % 2)
        terms = signs * a[last] * table[jnp.where(has == 1, of - bits, 0)]
        return table.at[of].set(jnp.sum(jnp.where(has == 1, terms, 0.0))), None

    table = jnp.zeros(2**n).at[0].set(1.0)
    return lax.scan(one_set, table, jnp.arange(1, 2**n))[0][-1]


def minors_arguments(n):
    """``n`` is the number of sets of columns, a power of two."""
    rows = n.bit_length() - 1
    return (rng(rows).normal(size=(rows, rows)),)


PROGRAMS = [
    Program("tridiagonal", tridiagonal, tridiagonal_plain, tridiagonal_arguments, 30_000, 6,
            (0, 1, 2, 3), adjoint=tridiagonal_adjoint, in_jax=tridiagonal_in_jax),
    Program("lu", lu, lu_plain, lu_arguments, 96, 5, adjoint=lu_adjoint, in_jax=lu_in_jax),
    Program("cholesky", cholesky, cholesky_plain, cholesky_arguments, 96, 5,
            in_jax=cholesky_in_jax),
    Program("conjugate gradients", conjugate_gradients, conjugate_gradients_plain,
            conjugate_gradients_arguments, 128, 4, (0, 1), in_jax=conjugate_gradients_in_jax),
    Program("determinant by minors", minors, minors_plain, minors_arguments, 1 << 12, 1 << 4,
            in_jax=minors_in_jax),
]  # fmt: skip
