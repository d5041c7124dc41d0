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
    rows, named, loss = _net(cell, params)
    results = [loss, *pytensor.grad(loss, named)]
    both = pytensor.function([rows, *named], results, mode="NUMBA", trust_input=True)
    return lambda: both(x, *params.values())


def _net(cell, params):
    """Variables for the inputs and for the parameters, and the loss."""
    step, rows = cases.CELLS[cell], pt.tensor3("x", dtype="float32")
    named = [_variable(name, value) for name, value in params.items()]
    w_in, w_rec, b, *first = named

    def advance(x, *given):
        state, (w_in, w_rec, b) = given[:-3], given[-3:]
        return list(step(MATHS, x @ w_in + b, state, w_rec))

    states = pytensor.scan(
        advance, sequences=[rows], outputs_info=first, non_sequences=[w_in, w_rec, b],
        strict=True, return_updates=False,
    )  # fmt: skip
    states = states[0] if isinstance(states, list) else states
    return rows, named, pt.sum(pt.sqr(states))


def _variable(name, value):
    return pt.tensor(name, dtype="float32", shape=(None,) * value.ndim)


def second(cell, size):
    """A function that gives the product of second derivatives with a direction."""
    x, params = cases.network(cell, tuple(size))
    rows, named, loss = _net(cell, params)
    direction = cases.direction(params)
    along = [_variable(f"along_{name}", value) for name, value in direction.items()]
    slopes = pytensor.grad(loss, named)
    slope = sum(pt.sum(g * d) for g, d in zip(slopes, along, strict=True))
    product = pytensor.function(
        [rows, *named, *along], pytensor.grad(slope, named), mode="NUMBA", trust_input=True
    )
    return lambda: product(x, *params.values(), *direction.values())


def dense():
    """A function that gives the loss and its gradients by weights."""
    return _value_and_grad(lambda *v: cases.dense_net(MATHS, *v), cases.dense(), 1)


def elementwise():
    """A function that gives the loss and its gradients by all vectors."""
    return _value_and_grad(lambda *v: cases.elementwise_chain(MATHS, *v), cases.elementwise(), 0)


def _value_and_grad(net, values, first):
    """Of the sum of squares, by all from the first one on."""
    variables = [_variable(f"v{k}", value) for k, value in enumerate(values)]
    loss = pt.sum(pt.sqr(net(*variables)))
    results = [loss, *pytensor.grad(loss, variables[first:])]
    both = pytensor.function(variables, results, mode="NUMBA", trust_input=True)
    return lambda: both(*values)


def writes(iterations):
    """A function that gives the numbers that a loop has written."""
    start = pt.scalar("x", dtype="float32")
    following = lambda x: pt.cast(0.999 * x + 0.01, "float32")  # noqa: E731
    written = pytensor.scan(
        following, outputs_info=[start], n_steps=iterations, return_updates=False
    )
    stacked = pt.concatenate([start[None], written[:-1]])
    fill = pytensor.function([start], [stacked], mode="NUMBA")
    return lambda: fill(1.0)
