"""Roots and fixed points, with the derivative of the solution in place of that of the program.

A program that finds a root by bisection gives a number that does not depend on its arguments
smoothly, and its derivative is 0. What one wants is the derivative of the root, which the implicit
function theorem gives, however the root was found.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from nbta.api.tracing import Function
from nbta.control.implicit_functions import add_implicit
from nbta.frontend.pickling import Sent
from nbta.frontend.source import described
from nbta.ops.arithmetic import subtract
from nbta.ops.dispatch import as_tensor
from nbta.ops.shaping import stop_gradient
from nbta.structure import map_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["fixed_point", "root"]


class Implicit(Sent):
    """A solver whose result is differentiated as a solution; see `root` and `fixed_point`."""

    def __init__(self, equation: Callable[..., Any], solver: Callable[..., Any], is_step: bool):
        functools.update_wrapper(self, solver)
        self._recipe_parts = equation, solver, is_step
        self._equation, self._solver, self._is_step = Function(equation), Function(solver), is_step
        self._function = Function(self._traced, convert=False)

    def __call__(self, *args: Any) -> Any:
        """The solution for some arguments."""
        return self._function(*args)

    def _recipe(self) -> tuple[Any, ...]:
        """The arguments that make one like it."""
        return self._recipe_parts

    def __repr__(self) -> str:
        kind = "fixed_point" if self._is_step else "root"
        return f"<nbta.implicit.{kind} of {described(self._solver.__wrapped__)}>"

    def _traced(self, *args: Any) -> Any:
        args = tuple(map_leaves(as_tensor, arg) for arg in args)
        fixed = [map_leaves(stop_gradient, arg) for arg in args]
        return add_implicit(as_tensor(self._solver(*fixed)), lambda x: self._residual(x, args))

    def _residual(self, x, args):
        value = self._equation(x, *args)
        return subtract(value, x) if self._is_step else value


def _made(equation, solver, is_step):
    if solver is None:
        return lambda function: Implicit(equation, function, is_step)
    return Implicit(equation, solver, is_step)


def root(residual: Callable[..., Any], solver: Callable[..., Any] | None = None) -> Any:
    """A solver of an equation, with the derivative of the solution.

    Parameters
    ----------
    residual : callable
        ``residual(x, *args)``, which is zero at the solution: a real array of the shape of ``x``.
    solver : callable, optional
        ``solver(*args)``, which gives the solution ``x``: a real number or array. It is not
        differentiated and may do whatever nbta runs. Without it, the result is a decorator.

    Returns
    -------
    callable
        Of ``*args``. It gives what the solver gives; its derivatives with respect to the arguments,
        to any order and in either mode, are those of the root.

    Raises
    ------
    InvalidArgumentError
        Where solution and residual are not real floats of one dtype and rank.

    Notes
    -----
    With ``J`` the Jacobian of the residual by ``x``, which must be regular, the derivative is
    ``-J^-1`` of that by the arguments (J. Blondel et al., "Efficient and modular implicit
    differentiation", 2022). ``J`` is computed row by row and factored. The derivative is as exact
    as the solution.

    Examples
    --------
    >>> def bisected(a):
    ...     low, high = 0.0, 10.0
    ...     while high - low > 1e-13:
    ...         middle = 0.5 * (low + high)
    ...         if middle * middle < a:
    ...             low = middle
    ...         else:
    ...             high = middle
    ...     return low
    >>> square_root = nbta.implicit.root(lambda x, a: x * x - a, bisected)
    >>> nbta.grad(bisected)(4.0), nbta.grad(square_root)(4.0).round(9)
    (np.float64(0.0), np.float64(0.25))
    """
    return _made(residual, solver, False)


def fixed_point(step: Callable[..., Any], solver: Callable[..., Any] | None = None) -> Any:
    """A solver of ``step(x, *args) == x``, with the derivative of the solution.

    Parameters
    ----------
    step : callable
        ``step(x, *args)``, an array like ``x``.
    solver : callable, optional
        ``solver(*args)``, which gives the fixed point; see `root`.

    Returns
    -------
    callable
        As `root` gives it.

    Examples
    --------
    >>> def step(x, a):
    ...     return 0.5 * (x + a / x)
    >>> @nbta.implicit.fixed_point(step)
    ... def square_root(a):
    ...     x = a
    ...     for _ in range(50):
    ...         x = step(x, a)
    ...     return x
    >>> nbta.hessian(square_root)(4.0).round(9)
    np.float64(-0.03125)
    """
    return _made(step, solver, True)
