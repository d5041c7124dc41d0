"""JAX, compiled by XLA; with diffrax for differential equations."""

import jax
import jax.numpy as jnp
import numpy as np

from . import cases

MATHS = cases.Maths(
    jnp.tanh, jax.nn.sigmoid, lambda value, parts: jnp.split(value, parts, axis=-1), jnp.stack
)


def recurrent(cell, size, hoisted=False):
    """A function that gives the loss and its gradients.

    With ``hoisted`` the products with the inputs are one product ahead of the loop, by hand.
    """
    x, params = cases.network(cell, tuple(size))
    both = jax.jit(jax.value_and_grad(_net_loss(cell, hoisted)))
    arguments = jax.device_put((params, x))

    def run():
        value, gradients = jax.block_until_ready(both(*arguments))
        return [value, *(gradients[name] for name in cases.PARAMETERS if name in gradients)]

    return run


def _net_loss(cell, hoisted=False):
    step = cases.CELLS[cell]

    def loss(params, x):
        def drive(x):
            return x @ params["w_in"] + params["b"]

        def advance(state, x):
            state = step(MATHS, x if hoisted else drive(x), state, params["w_rec"])
            return state, state[0]

        first = tuple(params[name] for name in ("h0", "c0") if name in params)
        _, states = jax.lax.scan(advance, first, drive(x) if hoisted else x)
        return jnp.sum(jnp.square(states))

    return loss


def second(cell, size):
    """A function that gives the product of second derivatives with a direction."""
    x, params = cases.network(cell, tuple(size))
    slope = jax.grad(_net_loss(cell))
    product = jax.jit(lambda p, d, x: jax.jvp(lambda p: slope(p, x), (p,), (d,))[1])
    arguments = jax.device_put((params, cases.direction(params), x))

    def run():
        found = jax.block_until_ready(product(*arguments))
        return [found[name] for name in params]

    return run


def dense():
    """A function that gives the loss and its gradients by weights."""

    def loss(x, *params):
        return jnp.sum(jnp.square(cases.dense_net(MATHS, x, *params)))

    return _value_and_grad(loss, cases.dense(), (1, 2, 3))


def elementwise():
    """A function that gives the loss and its gradients by all vectors."""

    def loss(*vectors):
        return jnp.sum(jnp.square(cases.elementwise_chain(MATHS, *vectors)))

    return _value_and_grad(loss, cases.elementwise(), (0, 1, 2))


def _value_and_grad(loss, arguments, argnums):
    both = jax.jit(jax.value_and_grad(loss, argnums=argnums))
    arguments = jax.device_put(tuple(arguments))

    def run():
        value, gradients = jax.block_until_ready(both(*arguments))
        return [value, *gradients]

    return run


def program(name):
    """A function that gives value and gradients of one of `asv_bench.programs`, in float64."""
    from ..programs import PROGRAMS

    jax.config.update("jax_enable_x64", True)
    chosen = PROGRAMS[name]
    return _value_and_grad(chosen.in_jax, chosen.arguments(chosen.n), chosen.argnums)


def ragged(way, hoisted=False):
    """A function that gives the sum of losses and its gradients.

    XLA compiles for each shape, so that there is no loop over sequences of their own lengths. Item
    by item is a gradient for each padded sequence, added up; the other ways are the gradient of a
    sum, compiled for all lengths at once. Sorted batches are of 32: those of 16 are slower by a
    tenth, of 8 by a half.
    """
    sequences, params = cases.ragged()

    def loss(params, x, real):
        def drive(x):
            return x @ params["w_in"] + params["b"]

        def advance(state, x):
            state = jnp.tanh((x if hoisted else drive(x)) + state @ params["w_rec"])
            return state, state

        first = jnp.zeros((*x.shape[1:-1], len(params["w_rec"])), x.dtype)
        _, states = jax.lax.scan(advance, first, drive(x) if hoisted else x)
        return jnp.sum(real * jnp.square(states))

    def by_item(params, given):
        each = jax.vmap(jax.value_and_grad(loss), in_axes=(None, 1, 1))(params, *given[0])
        return jax.tree.map(lambda value: jnp.sum(value, axis=0), each)

    def together(params, given):
        return sum(loss(params, x, real) for x, real in given)

    both = jax.jit(by_item if way == "item by item" else jax.value_and_grad(together))
    given = cases.batches(sequences, 32 if way == "sorted" else len(sequences))
    arguments = jax.device_put((params, given))

    def run():
        value, gradients = jax.block_until_ready(both(*arguments))
        return [value, *(gradients[name] for name in params)]

    return run


def adaptive(problem):
    """A function that gives the loss on the end state, and its gradients.

    diffrax keeps the step's length out of gradients, and recomputes between checkpoints.
    """
    import diffrax

    jax.config.update("jax_enable_x64", True)
    given = cases.PROBLEMS[problem]
    term = diffrax.ODETerm(lambda t, y, rates: given.slope(MATHS, rates, y))
    # Its estimate of the error is two thirds of Dormand and Prince's, in every coefficient.
    tolerance = cases.TOLERANCE * 2 / 3
    control = diffrax.PIDController(
        rtol=tolerance,
        atol=tolerance,
        safety=cases.SAFETY,
        factormin=cases.REJECTED[0],
        factormax=cases.ACCEPTED[1],
        error_order=5,
    )

    def loss(start, rates):
        solved = diffrax.diffeqsolve(
            term, diffrax.Dopri5(), 0.0, cases.END, cases.FIRST_STEP, start, rates,
            stepsize_controller=control, adjoint=diffrax.RecursiveCheckpointAdjoint(),
        )  # fmt: skip
        return jnp.sum(jnp.square(solved.ys[-1]))

    return _value_and_grad(loss, (np.array(given.start), np.array(given.rates)), (0, 1))


def writes(iterations):
    """A function that gives the numbers that a loop has written."""
    fill = jax.jit(
        lambda x: jax.lax.scan(lambda x, _: (0.999 * x + 0.01, x), x, None, length=iterations)[1]
    )
    start = jnp.asarray(np.float32(1.0))
    return lambda: [jax.block_until_ready(fill(start))]
