"""nbta."""

import importlib.util
from pathlib import Path

import numpy as np

import nbta

from . import cases

MATHS = cases.Maths(
    nbta.tanh, nbta.sigmoid, lambda value, parts: nbta.split(value, parts, axis=-1), nbta.stack
)


def recurrent(cell, size, compiled="auto"):
    """A function that gives the loss and its gradients."""
    x, params = cases.network(cell, tuple(size))
    step = cases.CELLS[cell]

    def loss(params, x):
        def advance(state, x):
            state = step(MATHS, x @ params["w_in"] + params["b"], state, params["w_rec"])
            return state, state[0]

        first = tuple(params[name] for name in ("h0", "c0") if name in params)
        return nbta.sum(nbta.square(nbta.scan(advance, first, x)[1]))

    both = nbta.value_and_grad(loss, compiled=compiled)

    def run():
        value, gradients = both(params, x)
        return [value, *(gradients[name] for name in cases.PARAMETERS if name in gradients)]

    return run


def ragged(way, compiled="auto"):
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

    both = nbta.value_and_grad(loss, batch_axis=0, compiled=compiled)
    columns = [list(column) for column in zip(*items, strict=True)]

    def run():
        value, gradients = both(params, *columns)
        return [value, *(gradients[name] for name in params)]

    return run


def adaptive(problem, compiled="auto"):
    """A function that gives the loss on the end state, and its gradients."""
    ode, given = _example("adaptive_ode"), cases.PROBLEMS[problem]
    slope = {"Lotka-Volterra": ode.lotka_volterra, "Van der Pol": ode.van_der_pol}[problem]

    def loss(start, rates):
        return ode.end_loss(slope, start, rates, cases.END, cases.TOLERANCE)

    both = nbta.value_and_grad(loss, argnums=(0, 1), compiled=compiled)
    arguments = np.array(given.start), np.array(given.rates)

    def run():
        value, gradients = both(*arguments)
        return [value, *gradients]

    return run


def writes(trips, compiled="auto"):
    """A function that gives the numbers that a loop has written."""

    @nbta.function(compiled=compiled)
    def fill(x):
        written = nbta.TensorArray("float32", size=trips, element_shape=())
        *_, written = nbta.while_loop(
            lambda i, x, written: i < trips,
            lambda i, x, written: (i + 1, 0.999 * x + 0.01, written.write(i, x)),
            (0, x, written),
        )
        return written.stack()

    start = np.float32(1.0)
    return lambda: [fill(start)]


def _example(name):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
