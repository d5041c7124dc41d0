"""Roots and fixed points with the derivative of the solution, not that of the program.

A program that finds a root by bisection does not depend smoothly on its arguments, and its
derivative is 0. The useful derivative is that of the root, which follows from the implicit function
theorem, whichever program finds the root.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from nbta.api.tracing import Function
from nbta.control.implicit_functions import add_implicit
from nbta.frontend.pickling import Sent
from nbta.frontend.source import described
from nbta.ops.core.arithmetic import subtract
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import stop_gradient
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
    """Make a solver of an equation that has the derivative of the solution.

    Parameters
    ----------
    residual : callable
        ``residual(x, *args)`` returns a real array of the shape of ``x``, which is zero at the
        solution.
    solver : callable, optional
        ``solver(*args)`` returns the solution ``x``, a real number or array. It is not
        differentiated, and may use everything that nbta can run. Without it, `root` returns a
        decorator.

    Returns
    -------
    callable
        A function of ``*args`` that returns the result of the solver. Its derivatives with respect
        to the arguments, of any order and in both modes, are those of the root.

    Raises
    ------
    InvalidArgumentError
        If solution and residual are not real floats of the same dtype and rank.

    Notes
    -----
    Let ``J`` be the Jacobian of the residual with respect to ``x``, which must be invertible. The
    derivative of the solution is ``-J^-1`` times the derivative of the residual with respect to the
    arguments (J. Blondel et al., "Efficient and modular implicit differentiation", 2022). ``J`` is
    computed row by row and factorised. The derivative is as accurate as the solution.

    Examples
    --------
    The loop is read from the source of the function: in a file, in a notebook, or at the prompt of
    Python 3.13 and newer.

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
    """Make a solver of ``step(x, *args) == x`` that has the derivative of the solution.

    Parameters
    ----------
    step : callable
        ``step(x, *args)`` returns an array like ``x``.
    solver : callable, optional
        ``solver(*args)`` returns the fixed point; see `root`.

    Returns
    -------
    callable
        As for `root`.

    Raises
    ------
    InvalidArgumentError
        As for `root`.

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
