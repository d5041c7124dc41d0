"""What a program is, and how its sides are made and checked."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import nbta


class Program(NamedTuple):
    """The same function of float64 arrays several times over; it gives a number."""

    name: str
    #: As a program of nbta's.
    loss: Callable
    #: As plain Python, which Numba compiles unmodified.
    function: Callable
    #: ``arguments(n)``: what it is called with, the same numbers each time.
    arguments: Callable
    #: The size that is measured, and one for tests.
    n: int
    small: int
    #: Which arguments the gradient is of.
    argnums: tuple = (0,)
    #: ``adjoint(*arguments)``: value and gradients, by hand; compiled by Numba.
    adjoint: Callable | None = None
    #: The loss for ``jax.value_and_grad``.
    in_jax: Callable | None = None
    #: How far the ratio of value and gradient to the function is to come.
    reach: float = 6.0

    @property
    def sizes(self):
        """The sizes that are measured."""
        return self.n, 4 * self.n

    def value_and_grad(self, compiled=True):
        """Value and gradients by nbta."""
        return nbta.value_and_grad(self.loss, argnums=self.argnums, compiled=compiled)

    def jax_value_and_grad(self):
        """Value and gradients by JAX, which waits for them; arguments are JAX's own arrays."""
        import jax

        both = jax.jit(jax.value_and_grad(self.in_jax, argnums=self.argnums))
        return lambda *arguments: jax.block_until_ready(both(*arguments))

    def differences(self, *arguments):
        """The gradients by central differences of the plain function."""
        return tuple(_differences(self.function, arguments, place) for place in self.argnums)


def _differences(function, arguments, place):
    """Fourth order: two central differences, the wider one to take its error off.

    Their steps go by the largest of the argument's numbers.
    """
    found, x = np.zeros_like(arguments[place]), arguments[place]
    h = 2e-4 * min(1.0, np.max(np.abs(x)))
    for index in np.ndindex(x.shape):

        def moved(steps, index=index):
            other = x.copy()
            other[index] += steps * h
            return function(*arguments[:place], other, *arguments[place + 1 :])

        near, far = moved(1) - moved(-1), moved(2) - moved(-2)
        found[index] = (8 * near - far) / (12 * h)
    return found


def rng(n):
    """Random numbers of a program's arguments, the same each time."""
    return np.random.default_rng(n)
