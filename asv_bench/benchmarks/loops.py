"""Loops over numbers and arrays in compiled graphs: nanoseconds per iteration, forward and back."""

from functools import cache, partial
from statistics import median

import numba
import numpy as np

import nbta
from asv_bench.figures import ratios
from asv_bench.programs import measure

from . import common

ITERATIONS, RATE, START = 10_000, 0.9999, 1.0
#: What the state is below after so many iterations, and not before.
FLOOR = START * RATE ** (ITERATIONS - 0.5)
DIRECTIONS = ("forward", "value and gradient")


def _counted(body, *state):
    """The last values of a loop whose iteration count is known when it begins."""

    def advance(i, *state):
        return i + 1, *body(i, *state)

    return nbta.while_loop(lambda i, *_: i < ITERATIONS, advance, (0, *state))[1:]


def _path(shape=(), **given):
    return nbta.TensorArray("float64", element_shape=shape, **given)


def numbers(rate):
    """A number per iteration and no array."""
    _, total = _counted(lambda i, x, total: (rate * x, total + x), START, 0.0)
    return total


def writes(rate):
    """A number is written per iteration."""
    start = START, _path(size=ITERATIONS)
    _, path = _counted(lambda i, x, path: (rate * x, path.write(i, x)), *start)
    return nbta.sum(path.stack())


def appends(rate):
    """A number is appended per iteration; the numbers tell when the loop ends."""
    _, path = nbta.while_loop(
        lambda x, _: x > FLOOR,
        lambda x, path: (rate * x, path.append(x)),
        (START, _path(dynamic_size=True)),
    )
    return nbta.sum(path.stack())


def reads(rate):
    """A number is read per iteration."""
    drive = _path(size=ITERATIONS).unstack(np.linspace(0.0, 1.0, ITERATIONS))
    (x,) = _counted(lambda i, x: (rate * x + drive.read(i),), START)
    return x


def earlier(rate):
    """The last two slots are read per iteration and the next is written."""
    path = _path(size=ITERATIONS + 2, clear_after_read=False).write(0, START).write(1, START)

    def body(i, path):
        return (path.write(i + 2, 0.5 * rate * (path.read(i) + path.read(i + 1))),)

    (path,) = _counted(body, path)
    return nbta.sum(path.stack())


def vectors(rate):
    """Eight numbers are written per iteration."""
    start = np.full(8, START), _path((8,), size=ITERATIONS)
    _, path = _counted(lambda i, x, path: (rate * x, path.write(i, x)), *start)
    return nbta.sum(path.stack())


def branches(rate):
    """One of two branches per iteration."""

    def body(i, x):
        return (nbta.cond(x > 0.5, lambda: rate * x, lambda: x + 0.6),)

    (x,) = _counted(body, START)
    return x


LOOPS = {f.__name__: f for f in (numbers, writes, appends, reads, earlier, vectors, branches)}


@cache
def compiled(loop, direction):
    """A loop, compiled; its gradient agrees with a central difference."""
    forward = nbta.function(LOOPS[loop], compiled=True)
    if direction == "forward":
        forward(RATE)
        return forward
    both, by = nbta.value_and_grad(LOOPS[loop], compiled=True), 1e-9
    value, slope = both(RATE)
    np.testing.assert_allclose(value, forward(RATE), rtol=1e-12)
    expected = (forward(RATE + by) - forward(RATE - by)) / (2 * by)
    np.testing.assert_allclose(slope, expected, rtol=1e-3)
    return both


class Iterations:
    """10,000 iterations; `control.Control.track_compiled_iteration` is a plain loop of Numba's."""

    params = (tuple(LOOPS), DIRECTIONS)
    param_names = ("loop", "direction")

    def setup(self, loop, direction):
        self.run = compiled(loop, direction)

    def track_iteration(self, loop, direction):
        """Median of many calls."""
        return common.median_seconds(lambda: self.run(RATE)) / ITERATIONS * 1e9

    track_iteration.unit = "ns"


class Call:
    """What calling compiled code costs, where there is next to nothing to do."""

    def setup(self):
        self.number, self.x = 3.0, np.ones(8)
        self.gradient = nbta.value_and_grad(lambda x: nbta.sum(nbta.square(x)), compiled=True)
        self.gradient(self.number)
        self.gradient(self.x)

    def track_scalar(self):
        """Value and gradient of a square."""
        return common.median_seconds(lambda: self.gradient(self.number), calls=1000) * 1e9

    def track_vector(self):
        """Value and gradient of a sum of eight squares."""
        return common.median_seconds(lambda: self.gradient(self.x), calls=1000) * 1e9

    track_scalar.unit = track_vector.unit = "ns"


# Second derivatives of plain loops.


def valley(x):
    """Rosenbrock's function."""
    s = 0.0
    for i in range(len(x) - 1):
        s += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return s


def pairs(x):
    """A loop in a loop."""
    s = 0.0
    for i in range(len(x)):
        for j in range(i):
            s += np.tanh(x[i] - x[j]) * x[j] ** 2
    return s


PLAIN = {f.__name__: f for f in (valley, pairs)}


class SecondDerivatives:
    """A Hessian, beside one product with a direction for each of its rows."""

    params = (tuple(PLAIN), (40, 100))
    param_names = ("loop", "variables")

    def setup(self, loop, variables):
        f = PLAIN[loop]
        self.x = np.linspace(0.1, 1.0, variables)
        self.direction = np.cos(np.arange(variables))
        self.hessian = nbta.hessian(f, compiled=True)
        self.product = nbta.function(lambda x, v: nbta.hvp(f, (x,), (v,))[0], compiled=True)
        expected = self.product(self.x, self.direction)
        np.testing.assert_allclose(self.hessian(self.x) @ self.direction, expected, rtol=1e-8)

    def track_hessian(self, loop, variables):
        """Median of many calls."""
        return common.median_seconds(lambda: self.hessian(self.x)) * 1e6

    def track_product(self, loop, variables):
        """Of one row."""
        return common.median_seconds(lambda: self.product(self.x, self.direction)) * 1e6

    track_hessian.unit = track_product.unit = "us"


def burgers(u):
    """A tridiagonal residual of whole arrays."""
    du = np.zeros_like(u)
    du[1:-1] = -u[1:-1] * (u[2:] - u[:-2]) * 50.0 + (u[2:] - 2.0 * u[1:-1] + u[:-2]) * 25.0
    return du


def burgers_by_items(u):
    """The same in a loop."""
    du = np.zeros_like(u)
    for i in range(1, len(u) - 1):
        du[i] = -u[i] * (u[i + 1] - u[i - 1]) * 50.0 + (u[i + 1] - 2.0 * u[i] + u[i - 1]) * 25.0
    return du


RESIDUALS = {f.__name__: f for f in (burgers, burgers_by_items)}


class SparseJacobians:
    """A tridiagonal Jacobian, beside its function and one derivative along a direction."""

    params = (tuple(RESIDUALS), (10_000,))
    param_names = ("residual", "variables")
    timeout = 300

    def setup(self, residual, variables):
        f = RESIDUALS[residual]
        self.x = np.sin(np.linspace(0.0, 6.0, variables))
        self.sparse = nbta.sparse_jacobian(f, compiled=True)
        self.function = nbta.function(f, compiled=True)
        self.product = nbta.function(lambda x, v: nbta.jvp(f, (x,), (v,))[1], compiled=True)
        expected = self.product(self.x, self.x)
        np.testing.assert_allclose(self.sparse(self.x) @ self.x, expected, rtol=1e-8, atol=1e-10)
        self.function(self.x)

    def track_jacobian(self, residual, variables):
        """Median of many calls."""
        return common.median_seconds(lambda: self.sparse(self.x)) * 1e6

    def track_function(self, residual, variables):
        """Of the residual."""
        return common.median_seconds(lambda: self.function(self.x)) * 1e6

    def track_direction(self, residual, variables):
        """Of one derivative, with the residual."""
        return common.median_seconds(lambda: self.product(self.x, self.x)) * 1e6

    track_jacobian.unit = track_function.unit = track_direction.unit = "us"


class DenseJacobians:
    """All derivatives of a residual by rows, and by columns."""

    params = (tuple(RESIDUALS), (100,))
    param_names = ("residual", "variables")

    def setup(self, residual, variables):
        self.x = np.sin(np.linspace(0.0, 6.0, variables))
        self.rows = nbta.jacobian(RESIDUALS[residual], compiled=True)
        self.columns = nbta.jacfwd(RESIDUALS[residual], compiled=True)
        np.testing.assert_allclose(self.rows(self.x), self.columns(self.x), atol=1e-12)

    def time_jacobian(self, residual, variables):
        """One call."""
        self.rows(self.x)

    def time_jacfwd(self, residual, variables):
        """One call."""
        self.columns(self.x)


def orbit(p):
    """A thousand steps of two equations, each of which waits for the one before."""
    x, y = 1.0, 0.5
    for _ in range(1000):
        dx = (p[0] - p[1] * y) * x
        dy = (p[2] * x - p[3]) * y
        x += 0.001 * dx
        y += 0.001 * dy
    return x * y


class Items:
    """The same loop for many items by `nbta.vmap`, which computes several together."""

    params = ((8, 64),)
    param_names = ("items",)

    def setup(self, items):
        self.p = np.linspace(0.5, 1.5, 4 * items).reshape(items, 4)
        self.values = nbta.vmap(orbit, compiled=True)
        self.slopes = nbta.vmap(nbta.grad(orbit), compiled=True)
        np.testing.assert_allclose(self.values(self.p), [orbit(p) for p in self.p])
        self.slopes(self.p)

    def time_values(self, items):
        """One call."""
        self.values(self.p)

    def time_gradients(self, items):
        """One call."""
        self.slopes(self.p)


@numba.njit
def on_a_ring(u):
    """An upwind difference with periodic neighbours."""
    n = len(u)
    for _ in range(200):
        v = np.empty(n)
        for i in range(n):
            v[i] = u[i] - 0.001 * u[i] * (u[(i + 1) % n] - u[i - 1])
        u = v
    return np.sum(u * u)


@numba.njit
def on_a_torus(u):
    """The heat equation on a plate whose ends meet."""
    n, m = u.shape
    for _ in range(40):
        v = np.empty((n, m))
        for i in range(n):
            for j in range(m):
                around = u[(i + 1) % n, j] + u[(i - 1) % n, j]
                around += u[i, (j + 1) % m] + u[i, (j - 1) % m]
                v[i, j] = u[i, j] + 0.2 * (around - 4.0 * u[i, j])
        u = v
    return np.sum(u * u)


@numba.njit
def seam(energy):
    """The path of the least energy from the first row to the last (seam carving)."""
    n, m = energy.shape
    c = energy.copy()
    for i in range(1, n):
        for j in range(m):
            best = c[i - 1, j]
            if j > 0:
                best = min(best, c[i - 1, j - 1])
            if j < m - 1:
                best = min(best, c[i - 1, j + 1])
            c[i, j] = energy[i, j] + best
    return np.min(c[n - 1])


@numba.njit
def spread(x):
    """The range of all values so far, beside each value."""
    low, high, total = x[0], x[0], 0.0
    for i in range(len(x)):
        low = min(low, x[i])
        high = max(high, x[i])
        total += (high - low) * x[i]
    return total


@numba.njit
def evidence(x):
    """Logarithms of sums of weights, which are then divided by these (expectation maximisation)."""
    n, k = 10_000, len(x)
    weights, total = np.zeros((n, k)), 0.0
    for i in range(n):
        point, s = 0.001 * (i * 7 % 1000), 0.0
        for j in range(k):
            weights[i, j] = np.exp(-x[j] * point) / x[j]
            s += weights[i, j]
        for j in range(k):
            weights[i, j] /= s
        total += np.log(s)
    return total


@numba.njit
def trinomial(x):
    """Backward induction in place by three weights, which are the first items."""
    v = x[3:].copy()
    for i in range((len(v) - 3) // 2, -1, -1):
        for j in range(2 * i + 1):
            v[j] = 0.33 * (x[0] * v[j + 2] + x[1] * v[j + 1] + x[2] * v[j])
    return v[0]


@numba.njit
def ranks(x):
    """PageRank by compressed rows, with weights for their items."""
    n = 400
    start = np.zeros(n + 1, np.int64)
    for i in range(n):
        start[i + 1] = start[i] + 3 + i % 9
    columns = np.arange(start[n]) * 7919 % n
    rank, new = np.ones(n) / n, np.zeros(n)
    for _ in range(20):
        for i in range(n):
            s = 0.0
            for k in range(start[i], start[i + 1]):
                s += 0.1 * x[k] * rank[columns[k]]
            new[i] = 0.15 / n + 0.85 * s
        for i in range(n):
            rank[i] = new[i]
    return np.sum(rank * rank)


@numba.njit
def merged(x):
    """A merge sort from the bottom up, and a sum of what it sorted with its places."""
    n, a, b, width = len(x), x.copy(), np.zeros(len(x)), 1
    while width < n:
        low = 0
        while low < n:
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j >= high or a[i] <= a[j]):
                    b[k] = a[i]
                    i += 1
                else:
                    b[k] = a[j]
                    j += 1
            low += 2 * width
        for k in range(n):
            a[k] = b[k]
        width *= 2
    total = 0.0
    for k in range(n):
        total += k * a[k]
    return total


#: Functions as users compile them, and the shape of the argument.
FUNCTIONS = {
    "ring": (on_a_ring, (500,)),
    "torus": (on_a_torus, (48, 48)),
    "seam": (seam, (300, 300)),
    "spread": (spread, (100_000,)),
    "evidence": (evidence, (4,)),
    "trinomial": (trinomial, (604,)),
    "ranks": (ranks, (2_796,)),
    "merged": (merged, (1_000,)),
}


class Unmodified:
    """Value and gradient of functions compiled by Numba, over the functions themselves."""

    params = (tuple(FUNCTIONS),)
    param_names = ("program",)

    def setup(self, name):
        self.function, shape = FUNCTIONS[name]
        self.x = np.random.default_rng(0).uniform(0.5, 1.5, shape)
        self.gradient = nbta.value_and_grad(self.function, compiled=True)
        self.function(self.x)
        self.gradient(self.x)

    def time_value_and_grad(self, name):
        """One call."""
        self.gradient(self.x)

    def track_ratio(self, name):
        """Value and gradient over the function: a median of neighbours."""
        runs = {
            measure.GRADIENT: partial(self.gradient, self.x),
            measure.FUNCTION: partial(self.function, self.x),
        }
        found = measure.samples(runs)
        return median(ratios(found[measure.GRADIENT], found[measure.FUNCTION]))

    track_ratio.unit = "ratio"
