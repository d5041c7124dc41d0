"""Checks of gradients: against central differences, forward against reverse, of any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.api.derivatives import jvp
from nbta.api.tracing import Function
from nbta.control.reverse_mode import gradients
from nbta.dtypes import as_plain
from nbta.frontend.entry import prepared
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.core.arithmetic import add_n, conj, multiply, real
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import cast
from nbta.structure import leaves, map_leaves, pack, paths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STEP = 6e-6  # near the cube root of the precision of float64, where central differences are best


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("reverse", "forward"),
    rtol: float = 1e-6,
    atol: float = 1e-7,
    step: float = STEP,
) -> None:
    """Compare the derivatives of a function with central differences.

    Parameters
    ----------
    f : callable
        A function of arrays or structures of arrays that returns an array or a structure of arrays.
    args : tuple
        The arguments at which to check. Every element of a float is checked, in float64 or
        complex128.
    order : int
        The highest order of derivatives: with 2, the gradient itself is checked, too, and so on.
    modes : tuple of {"reverse", "forward"}
        Check `nbta.gradients`, and `nbta.jvp` along a direction. A `nbta.custom_gradient` whose
        backward function is not itself made with it has no second derivatives: check
        it with ``order=1, modes=("reverse",)``.
    rtol, atol : float
        Allowed difference, relative to the largest derivative, and absolute.
    step : float
        Step of the central differences, relative for elements greater than 1.

    Raises
    ------
    AssertionError
        If derivatives differ; it names the argument, the element, and both values.

    Examples
    --------
    >>> nbta.testing.check_grads(lambda x: nbta.tanh(x) * x, (np.array([0.5, -1.0]),))
    """
    random = np.random.default_rng(0)
    args = map_leaves(_precise, tuple(args))
    _check(prepared(f, "the function"), args, order, modes, rtol, atol, step, random)


def assert_no_copies_in_loops(f: Callable[..., Any], *args: Any) -> None:
    """Check that the compiled code of a function does not copy whole tensors in a loop.

    Such a copy makes a loop over the items of an array take quadratic time. It is needed if a part
    of a tensor changes and the old items are used later, or if a variable takes the value of
    another variable. Tensors that an iteration computes as a whole do not count. Nothing is
    compiled.

    Parameters
    ----------
    f : callable
        A function such as a loss, `nbta.grad` of it, or an `nbta.function`.
    *args
        The arguments to call it with, once.

    Raises
    ------
    AssertionError
        If there are copies; it lists them with their reasons, as ``explain()`` does.

    Examples
    --------
    >>> def running(x):
    ...     def add(i, a):
    ...         return i + 1, nbta.set_item(a, i, a[i - 1] + a[i])
    ...     return nbta.while_loop(lambda i, a: i < x.shape[0], add, (1, x))[1]
    >>> nbta.testing.assert_no_copies_in_loops(running, np.ones(4))
    """
    traced = f if isinstance(f, Function) else Function(f, compiled=False)
    traced(*args)
    found = [row[0] for row in traced._compiled_program().generated.copies]
    if found:
        raise AssertionError("whole tensors are copied in loops:\n" + "\n".join(found))


def _precise(value):
    array = as_plain("args", value)
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _check(f, args, order, modes, rtol, atol, step, random):
    weights = [_direction(random, y) for y in leaves(Function(f)(*args))]
    places = [i for i, v in enumerate(leaves(args)) if v.dtype.kind in "fc"]

    def scalar(*given):
        """The results, weighted and added: one number to differentiate."""
        parts = zip(leaves(f(*given)), weights, strict=True)
        terms = [real(sum_(multiply(conj(w), y))) for y, w in parts if w is not None]
        return add_n([cast(term, np.float64) for term in terms])

    def reverse(*given):
        given = map_leaves(as_tensor, given)
        xs = [leaves(given)[i] for i in places]
        return gradients([scalar(*given)], xs, unconnected="zero")

    value, slope = Function(scalar), Function(reverse)
    numeric = [_central(value, args, i, step) for i in places]
    names = [path for i, arg in enumerate(args) for path in paths(arg, f"args[{i}]")]
    if "reverse" in modes:
        for i, found, expected in zip(places, slope(*args), numeric, strict=True):
            _compare("reverse", names[i], found, expected, rtol, atol)
    if "forward" in modes:
        _check_forward(scalar, args, places, numeric, rtol, atol, random)
    if order > 1:
        _check(reverse, args, order - 1, modes, rtol * 10, atol * 10, step, random)


def _direction(random, y):
    y = np.asarray(y)
    if y.dtype.kind not in "fc":
        return None
    real_part = random.uniform(0.5, 1.5, y.shape)
    return real_part + 1j * random.uniform(0.5, 1.5, y.shape) if y.dtype.kind == "c" else real_part


def _central(value, args, place, step):
    """Derivatives by each element of one argument."""
    flat = leaves(args)
    x = flat[place]
    result = np.zeros(x.shape, x.dtype)
    for index in np.ndindex(x.shape):
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            h = step * max(1.0, abs(x[index]))
            ends = []
            for sign in (1, -1):
                moved = x.copy()
                moved[index] += sign * h * unit
                ends.append((value(*pack(args, [*flat[:place], moved, *flat[place + 1 :]])), moved))
            (above, high), (below, low) = ends
            width = ((high[index] - low[index]) / unit).real
            result[index] += unit * (above - below) / width
    return result


def _compare(mode, name, found, expected, rtol, atol):
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape or found.dtype != expected.dtype:
        raise AssertionError(
            f"{mode} gradient of {name} is {found.dtype} {found.shape}, and should be "
            f"{expected.dtype} {expected.shape}"
        )
    scale = np.abs(expected).max(initial=0.0)
    wrong = ~(np.abs(found - expected) <= atol + rtol * max(scale, 1.0))
    if wrong.any():
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise AssertionError(
            f"{mode} gradient of {name} at {index}: {found[index]!r}, and central differences give "
            f"{expected[index]!r} ({int(wrong.sum())} of {wrong.size} elements differ)"
        )


def _check_forward(scalar, args, places, numeric, rtol, atol, random):
    flat = leaves(args)
    tangents = [_direction(random, flat[i]) for i in places]

    def along(*xs):
        given = list(flat)
        for i, x in zip(places, xs, strict=True):
            given[i] = x
        return scalar(*pack(args, given))

    _, found = jvp(along, tuple(flat[i] for i in places), tuple(tangents))
    expected = sum(np.sum(np.conj(n) * t).real for n, t in zip(numeric, tangents, strict=True))
    _compare("forward", "args along a direction", found, np.float64(expected), rtol, atol)
