"""custom_jvp: a user's function, with a rule for tangents of its own, as an operation.

Forward mode applies the rule, which is traced as part of the program, and reverse mode transposes
it, as it is linear in the tangents: so derivatives of any order are of this one rule.
"""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, overload

from nbta import shapes
from nbta.api.custom import Custom, define_custom
from nbta.control.activity import active_tensors
from nbta.control.reverse_mode import Computation
from nbta.errors import UnimplementedError, invalid
from nbta.frontend.entry import prepared
from nbta.frontend.outside import reading
from nbta.frontend.pickling import Sent
from nbta.graph.graph import current, gradient_of, subgraphs, within
from nbta.graph.order import ordered
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import SHAPE, SIZE, broadcast_to, identity, shape_of
from nbta.runtime.numba_private import CFunc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbta.graph.operation import Operation, Tensor
    from nbta.ops.core.dispatch import F


def _tangent(op: Any, *given: Any) -> Any:
    return op.attrs["function"].tangents(op, given)


CUSTOM_JVP = define_custom("CustomJvp", tangent=_tangent)


class CustomJvp(Custom):
    """A function with its own rule for tangents; see `nbta.custom_jvp`."""

    _record, _what = CUSTOM_JVP, "custom_jvp"

    def __init__(
        self,
        forward: Callable[..., Any],
        tangent: Callable[..., Any] | None = None,
        result: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(forward, result)
        self._tangent = tangent

    def _recipe(self) -> tuple[Any, ...]:
        """The arguments that make one like it."""
        return self.forward, self._tangent, self.result

    def tangent(self, function: F) -> F:
        """Set the rule for tangents; use as a decorator."""
        self._tangent = function
        return function

    def tangents(self, op: Operation, given: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Tangents of the results, by the user's rule."""
        rule = self._tangent
        if rule is None:
            message = (
                f"{op.name!r}: {self.name} has no rule for tangents, so that nothing can be "
                f"differentiated through it; give one with custom_jvp(..., tangent=) or "
                f"@{self.name}.tangent"
            )
            raise UnimplementedError(message)
        if (outside := reading()) is not None:
            outside.read_attribute(self, "_tangent", rule)
        along = [
            zeros_like(as_tensor(tensor)) if tangent is None else tangent
            for tensor, tangent in zip(op.inputs, given, strict=True)
        ]
        values = [as_tensor(tensor) for tensor in [*op.inputs, *op.outputs]]
        if isinstance(rule, CFunc | ctypes._CFuncPtr):  # type: ignore[attr-defined]
            message = (
                f"the rule for tangents of {self.name} is machine code, which cannot be "
                f"transposed; give a function that calls it, as custom_jvp or custom_gradient "
                f"makes it an operation"
            )
            raise invalid("custom", message)
        if not isinstance(rule, Sent):
            rule = prepared(rule, f"the rule for tangents of {self.name}")
        return self._checked(op, rule(*along, *values))

    def _checked(self, op: Any, found: Any) -> Any:
        """What a rule gives: a tangent for each result of floats, and like it."""
        found = list(found) if isinstance(found, tuple | list) else [found]
        if len(found) != len(op.outputs):
            message = (
                f"the rule for tangents of {self.name} gave {len(found)} tangents, and "
                f"{self.name} has {len(op.outputs)} results; give one for each, None for integers"
            )
            raise invalid("custom", message)
        pairs = enumerate(zip(found, op.outputs, strict=True))
        return [
            self._like(i, value, tensor) if tensor.spec.differentiable else None
            for i, (value, tensor) in pairs
        ]

    def _like(self, i: int, value: Any, tensor: Any) -> Any:
        want = tensor.spec
        made: Any = None if value is None else as_tensor(value, current(), want.dtype)
        fits = made is not None and made.dtype == want.dtype
        if not fits or not shapes.compatible(made.spec.shape, want.shape):
            got = "None" if made is None else made.spec
            message = (
                f"the rule for tangents of {self.name} gave {got} for result {i} of {self.name}, "
                f"which is {want}; a tangent is like its result"
            )
            raise invalid("custom", message)
        is_known = made.spec.shape == want.shape and None not in (want.shape or (None,))
        if is_known or want.rank == 0:
            return made
        return broadcast_to(made, shape_of(tensor))  # the run refuses what does not fit

    def gradient(self, op: Operation, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Gradients of the inputs, by the transpose of the user's rule."""
        seeds: list[Any] = [
            identity(zeros_like(as_tensor(tensor))) if tensor.spec.differentiable else None
            for tensor in op.inputs
        ]
        wanted = [seed for seed in seeds if seed is not None]
        with gradient_of(op, wanted):
            along = self.tangents(op, seeds)
        pairs = [(t, g) for t, g in zip(along, grads, strict=True) if t is not None]
        pairs = [(t, as_tensor(g)) for t, g in pairs if g is not None]
        if not pairs:
            return [None] * len(op.inputs)
        graph: Any = current()
        computation = Computation(graph.unique_name("transposed"))
        found = computation.run([t for t, _ in pairs], [g for _, g in pairs], wanted)
        self._check_linear(op, found, wanted)
        rest = iter(found)
        return [None if seed is None else next(rest) for seed in seeds]

    def _check_linear(self, op: Any, found: Any, seeds: Any) -> None:
        """Refuse a transpose that depends on tangents, as that of no linear rule does."""
        if not _depend([tensor for tensor in found if tensor is not None], seeds):
            return
        message = (
            f"{op.name!r}: the rule for tangents of {self.name} is not linear in the tangents, so "
            f"that it has no transpose, which gradients take; multiply tangents with values alone "
            f"and add them, or use jvp"
        )
        raise UnimplementedError(message)


def _depend(ends: Any, starts: Any) -> bool:
    """Whether tensors are computed from values of others, not from their shapes alone."""
    operations = ordered({tensor.op for tensor in ends})
    inner = [op for op in within(operations) if op.record not in (SHAPE, SIZE)]
    decided = [op for op in inner if op.outputs and not any(map(_is_float, op.outputs))]
    asked = [tensor for op in decided for tensor in op.inputs if _is_float(tensor)]
    active = active_tensors(operations, starts, [*ends, *asked])
    reached = {*starts}
    for op in operations:
        if op.record in (SHAPE, SIZE):
            continue
        if subgraphs(op):  # what a body computes for some of its results is not of the others
            reached.update(active.intersection(op.outputs))
        elif not reached.isdisjoint(op.inputs):
            reached.update(op.outputs)
    return not reached.isdisjoint(ends) or not active.isdisjoint(asked)


def _is_float(tensor: Any) -> bool:
    return tensor.spec.differentiable


@overload
def custom_jvp(
    forward: Callable[..., Any],
    tangent: Callable[..., Any] | None = None,
    *,
    result: Callable[..., Any] | None = None,
) -> CustomJvp: ...
@overload
def custom_jvp(
    forward: None = None,
    tangent: Callable[..., Any] | None = None,
    *,
    result: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], CustomJvp]: ...
def custom_jvp(
    forward: Callable[..., Any] | None = None,
    tangent: Callable[..., Any] | None = None,
    *,
    result: Callable[..., Any] | None = None,
) -> Any:
    """Make a function of arrays an operation with its own rule for tangents.

    Forward mode applies the rule, and reverse mode its transpose.

    Parameters
    ----------
    forward : callable
        The function, as `custom_gradient` takes it.
    tangent : callable, optional
        A function of the tangents of all arguments, then all arguments, then all results. It
        returns a tangent for each result, and None for integers. Tangents of integers are zeros. It
        is traced as part of the program, and must be linear in the tangents. It may call operations
        that `custom_jvp` and `custom_gradient` made. It can also be given later, by the decorator
        ``@f.tangent``.
    result : callable, optional
        ``result(*specs)`` returns the `Spec`, or tuple of `Spec`, of the results, from those of the
        arguments. By default, the result has the dtype and shape of the first argument.

    Returns
    -------
    CustomJvp
        A function of the same arguments, for arrays and for tensors of a graph.

    Raises
    ------
    InvalidArgumentError
        When it runs: if the number, dtype or shape of results is not as announced. From
        derivatives, if those of the tangents are not those of the results.
    UnimplementedError
        From derivatives, if there is no rule, and from gradients, if it is not linear in the
        tangents.

    Notes
    -----
    The rule is differentiated for derivatives of higher order, in which ``forward`` itself has this
    very rule. A rule that adds a constant to the tangents is not told from a linear one;
    `nbta.testing.check_grads` finds it.

    Examples
    --------
    >>> @nbta.custom_jvp
    ... def log1pexp(x):
    ...     return np.logaddexp(0.0, x)
    >>> @log1pexp.tangent
    ... def rule(dx, x, y):
    ...     return dx / (1.0 + np.exp(-x))
    >>> nbta.jvp(log1pexp, 0.0, 2.0)[1], nbta.grad(log1pexp)(0.0)
    (np.float64(1.0), np.float64(0.5))
    >>> nbta.hessian(log1pexp)(0.0)
    np.float64(0.25)
    """
    if forward is None:
        return functools.partial(custom_jvp, tangent=tangent, result=result)
    return CustomJvp(forward, tangent, result)
