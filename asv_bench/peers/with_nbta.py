"""nbta: graphs that are compiled as a whole, and arrays in loops that Numba compiles."""

import importlib.util
from pathlib import Path

import numpy as np
from numba import njit

import nbta

from . import cases

MATHS = cases.Maths(
    nbta.tanh, nbta.sigmoid, lambda value, parts: nbta.split(value, parts, axis=-1), nbta.stack
)


def recurrent(cell, size):
    """A function that gives the loss and its gradients."""
    x, params = cases.network(cell, tuple(size))
    both = nbta.value_and_grad(net_loss(cell), compiled=True)

    def run():
        value, gradients = both(params, x)
        return [value, *(gradients[name] for name in cases.PARAMETERS if name in gradients)]

    return run


def net_loss(cell):
    """Sum of squares of all states, a function of the parameters and the inputs."""
    step = cases.CELLS[cell]

    def loss(params, x):
        def advance(state, x):
            state = step(MATHS, x @ params["w_in"] + params["b"], state, params["w_rec"])
            return state, state[0]

        first = tuple(params[name] for name in ("h0", "c0") if name in params)
        return nbta.sum(nbta.square(nbta.scan(advance, first, x)[1]))

    return loss


def second(cell, size):
    """A function that gives the product of second derivatives with a direction."""
    x, params = cases.network(cell, tuple(size))
    direction, loss = cases.direction(params), net_loss(cell)

    @nbta.function(compiled=True)
    def product(params, direction, x):
        return nbta.hvp(lambda params: loss(params, x), params, direction)

    def run():
        found = product(params, direction, x)
        return [found[name] for name in params]

    return run


def dense():
    """A function that gives the loss and its gradients by weights."""
    x, *params = cases.dense()

    def loss(x, *params):
        return nbta.sum(nbta.square(cases.dense_net(MATHS, x, *params)))

    return _value_and_grad(loss, (x, *params), (1, 2, 3))


def elementwise():
    """A function that gives the loss and its gradients by all vectors."""

    def loss(*vectors):
        return nbta.sum(nbta.square(cases.elementwise_chain(MATHS, *vectors)))

    return _value_and_grad(loss, cases.elementwise(), (0, 1, 2))


def _value_and_grad(loss, arguments, argnums):
    both = nbta.value_and_grad(loss, argnums=argnums, compiled=True)

    def run():
        value, gradients = both(*arguments)
        return [value, *gradients]

    return run


def program(name):
    """A function that gives value and gradients of one of `asv_bench.programs`."""
    from ..programs import PROGRAMS

    chosen = PROGRAMS[name]
    return _value_and_grad(chosen.loss, chosen.arguments(chosen.n), chosen.argnums)


def ragged(way):
    """A function that gives the sum of losses and its gradients; threads share the items.

    Sorted batches are of 8: 16 take a seventh longer, 4 are no faster.
    """
    sequences, params = cases.ragged()
    if way == "item by item":
        items = [(x[:, None],) for x in sequences]
    else:
        items = cases.batches(sequences, 8 if way == "sorted" else len(sequences))
    start = np.zeros((items[0][0].shape[1], len(params["w_rec"])), np.float32)

    def loss(params, x, real=1.0):
        def advance(state, x):
            state = nbta.tanh(x @ params["w_in"] + params["b"] + state @ params["w_rec"])
            return state, state

        return nbta.sum(real * nbta.square(nbta.scan(advance, start, x)[1]))

    both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
    columns = [list(column) for column in zip(*items, strict=True)]

    def run():
        value, gradients = both(params, *columns)
        return [value, *(gradients[name] for name in params)]

    return run


def adaptive(problem):
    """A function that gives the loss on the end state, and its gradients."""
    ode, given = _example("adaptive_ode"), cases.PROBLEMS[problem]
    slope = {"Lotka-Volterra": ode.lotka_volterra, "Van der Pol": ode.van_der_pol}[problem]

    def loss(start, rates):
        return ode.end_loss(slope, start, rates, cases.END, cases.TOLERANCE)

    return _value_and_grad(loss, (np.array(given.start), np.array(given.rates)), (0, 1))


def sampler(size):
    """A function that samples by Hamiltonian Monte Carlo, and gives moments of the draws."""
    energy = _example("loops_in_njit").energy
    vg, data = nbta.value_and_grad(energy, compiled=True), np.linspace(-1.0, 1.0, size)

    @njit
    def draw(start, data, count, leaps, step):
        draws, q = np.empty((count, len(start))), start.copy()
        new, p, g, new_g = start.copy(), np.empty_like(q), np.empty_like(q), np.empty_like(q)
        np.random.seed(0)
        value, _ = vg(q, data, out=g)
        for k in range(count):
            before = value
            for i in range(len(p)):
                p[i] = np.random.normal()
                before += 0.5 * p[i] ** 2
            new[:], new_g[:], after = q, g, value
            for _ in range(leaps):
                for i in range(len(p)):
                    p[i] -= 0.5 * step * new_g[i]
                    new[i] += step * p[i]
                after, _ = vg(new, data, out=new_g)
                for i in range(len(p)):
                    p[i] -= 0.5 * step * new_g[i]
            for i in range(len(p)):
                before -= 0.5 * p[i] ** 2
            if np.log(np.random.random()) < before - after:
                q[:], g[:], value = new, new_g, after
            draws[k] = q
        return draws

    given = np.ones(size), data, cases.DRAWS, cases.LEAPS, cases.LEAP
    return lambda: cases.moments(draw(*given))


def writes(iterations):
    """A function that gives the numbers that a loop has written."""

    @nbta.function(compiled=True)
    def fill(x):
        written = nbta.TensorArray("float32", size=iterations, element_shape=())
        *_, written = nbta.while_loop(
            lambda i, x, written: i < iterations,
            lambda i, x, written: (i + 1, 0.999 * x + 0.01, written.write(i, x)),
            (0, x, written),
        )
        return written.stack()

    start = np.float32(1.0)
    return lambda: [fill(start)]


def appends(count, width):
    """A function that gives what a loop has appended, as arrays."""
    if width == 1:
        return lambda: [append_numbers(count)]
    if width:
        return lambda: [append_vectors(count, np.ones(width))]
    source = np.arange(float(cases.LENGTHS))
    return lambda: append_ragged(count, source).concat()


@njit
def append_numbers(count):
    array = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
    for i in range(count):
        array.append(float(i))
    return array.stack()


@njit
def append_vectors(count, value):
    array = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(len(value),))
    for i in range(count):
        value[0] = i
        array.append(value)
    return array.stack()


@njit
def append_ragged(count, source):
    array = nbta.TensorArray(np.float64, dynamic_size=True, infer_shape=False)
    for i in range(count):
        array.append(source[: i % len(source)])
    return array


def _example(name):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
