"""PyTensor: ``scan``, compiled by Numba."""

import pytensor
import pytensor.tensor as pt

from . import cases


def _split(value, parts):
    return pt.split(value, [value.shape[-1] // parts] * parts, n_splits=parts, axis=-1)


MATHS = cases.Maths(pt.tanh, pt.sigmoid, _split, pt.stack)


def recurrent(cell, size):
    """A function that gives the loss and its gradients."""
    x, params = cases.network(cell, tuple(size))
    step = cases.CELLS[cell]
    rows = pt.tensor3("x", dtype="float32")
    named = {name: pt.tensor(name, dtype="float32", shape=(None,) * value.ndim)
             for name, value in params.items()}  # fmt: skip
    w_in, w_rec, b, *first = named.values()

    def advance(x, *given):
        state, (w_in, w_rec, b) = given[:-3], given[-3:]
        return list(step(MATHS, x @ w_in + b, state, w_rec))

    states = pytensor.scan(
        advance, sequences=[rows], outputs_info=first, non_sequences=[w_in, w_rec, b],
        strict=True, return_updates=False,
    )  # fmt: skip
    states = states[0] if isinstance(states, list) else states
    loss = pt.sum(pt.sqr(states))
    results = [loss, *pytensor.grad(loss, list(named.values()))]
    both = pytensor.function([rows, *named.values()], results, mode="NUMBA", trust_input=True)
    return lambda: both(x, *params.values())


def writes(trips):
    """A function that gives the numbers that a loop has written."""
    start = pt.scalar("x", dtype="float32")
    following = lambda x: pt.cast(0.999 * x + 0.01, "float32")  # noqa: E731
    written = pytensor.scan(following, outputs_info=[start], n_steps=trips, return_updates=False)
    stacked = pt.concatenate([start[None], written[:-1]])
    fill = pytensor.function([start], [stacked], mode="NUMBA")
    return lambda: fill(1.0)
