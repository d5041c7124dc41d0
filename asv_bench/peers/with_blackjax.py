"""The work in BlackJAX: a scan of its kernel, compiled with all draws."""

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

from . import cases


def sampler(size):
    """A function that samples by Hamiltonian Monte Carlo, and gives moments of the draws."""
    jax.config.update("jax_enable_x64", True)
    data = jnp.linspace(-1.0, 1.0, size)

    def density(q):
        own = 0.5 * jnp.sum((q - data) ** 2) + 0.1 * jnp.sum(q**4)
        return -own - 0.25 * jnp.sum(jnp.diff(q) ** 2)

    kernel = blackjax.hmc(density, cases.LEAP, jnp.ones(size), cases.LEAPS)

    @jax.jit
    def draw(key, start):
        def advance(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        keys = jax.random.split(key, cases.DRAWS)
        return jax.lax.scan(advance, kernel.init(start), keys)[1]

    start = jnp.asarray(np.ones(size))
    return lambda: cases.moments(np.asarray(draw(jax.random.key(0), start)))
