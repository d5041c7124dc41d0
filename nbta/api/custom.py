"""Users' functions as operations, and custom_gradient, which gives them a backward pass."""

from __future__ import annotations

import ctypes
import functools
from typing import TYPE_CHECKING, Any, overload

import numba
import numpy as np
from numba import types

from nbta import shapes
from nbta.api.tracing import once
from nbta.codegen.values import Scalar, is_known, typed
from nbta.codegen.windows import window
from nbta.dtypes import as_plain
from nbta.errors import UnimplementedError, invalid
from nbta.frontend.outside import reading
from nbta.frontend.pickling import Sent
from nbta.frontend.source import described
from nbta.graph.operation import Spec
from nbta.immutable import own_numpy, refusals
from nbta.loops import Attribute, assign, attempt, call, comment, over, several
from nbta.loops.nodes import as_node
from nbta.ops.core.dispatch import apply, define
from nbta.ops.core.filling import zeros_like
from nbta.runtime.numba_private import CFunc, Dispatcher, cpu_target
from nbta.shapes import Dim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nbta.graph.operation import Operation, Tensor
    from nbta.ops.core.dispatch import F
    from nbta.typing import ArrayLike


def _infer(*specs: Any, function: Any) -> Any:
    result = function.result(*specs)
    announced = (result,) if isinstance(result, Spec) else result
    known = isinstance(announced, tuple | list) and all(isinstance(s, Spec) for s in announced)
    if not known:
        message = f"result= of {function.name} must give a Spec or a tuple of Spec, not {result!r}"
        raise invalid("custom", message)
    return tuple(announced)


def _evaluate(*arrays: Any, function: Any) -> Any:
    with own_numpy(), refusals(function.name):
        results = _by_address(function.forward)(*map(_read_only, arrays))
    results = results if isinstance(results, tuple) else (results,)
    specs = _infer(*(Spec(a.dtype, np.shape(a)) for a in arrays), function=function)
    if len(results) != len(specs):
        raise invalid("custom", function.miscounted(len(results), len(specs)))
    pairs = zip(results, specs, strict=True)
    return tuple(_fitting(function, i, r, spec) for i, (r, spec) in enumerate(pairs))


def _read_only(array: Any) -> Any:
    """An array as a user's function gets it, always of one type: scalars, and read-only views."""
    if np.ndim(array) == 0:
        return array[()]
    view = array.view()
    view.flags.writeable = False
    return view


def _fitting(function: Any, i: Any, value: Any, spec: Any) -> Any:
    array = as_plain(f"result {i}", value)
    if array.dtype != spec.dtype or not shapes.compatible(array.shape, spec.shape):
        got = "None" if value is None else str(Spec(array.dtype, array.shape))
        raise invalid("custom", function.misfit(i, got, spec))
    return array[()]


def _gradient(op: Any, *grads: Any) -> Any:
    return op.attrs["function"].gradient(op, grads)


def _emit_custom(code: Any, op: Any) -> None:
    """Call a function with read-only arrays and scalars, and copy what it gives.

    Where anything about its results cannot be told in advance, it runs in Python.
    """
    function, wanted = op.attrs["function"].native()
    found = _returned(function, op) if isinstance(function, Dispatcher) else None
    kinds = None if found is None else _chosen(op, found, wanted)
    dimensions = None if kinds is None else _announced(code, op)
    if kinds is None or dimensions is None:
        return code.call_python(op)
    arguments = [_argument(code, tensor) for tensor in op.inputs]
    name = code.foreign(function)
    names = [code.name("r") for _ in (found if isinstance(found, types.BaseTuple) else (0,))]
    targets = several(*names) if isinstance(found, types.BaseTuple) else names[0]
    code.add(comment(op.name), assign(targets, attempt(name, arguments)))
    kept = [one for k, one in enumerate(names) if wanted is None or wanted[k]]
    for result, one, kind, lengths in zip(op.outputs, kept, kinds, dimensions, strict=True):
        _take(code, op, result, one, kind, lengths)
    return None


def _returned(function: Any, op: Any) -> Any:
    """The type of what a function gives for the inputs; None where it does not take them."""
    kinds = tuple(_kind(tensor) for tensor in op.inputs)
    try:
        found = types.Dispatcher(function).get_call_type(cpu_target.typing_context, kinds, {})
    except Exception:  # whatever it is, the call from Python shows it
        return None
    return found.return_type if found.args == kinds else None


def _kind(tensor: Any) -> Any:
    item = numba.from_dtype(tensor.dtype)
    rank = tensor.spec.rank
    return types.Array(item, rank, "C", readonly=True) if rank else item


def _chosen(op: Any, found: Any, wanted: Any) -> Any:
    """Types of the results; None where they are not as announced."""
    kinds = list(found) if isinstance(found, types.BaseTuple) else [found]
    if wanted is not None:
        if len(kinds) != len(wanted):
            return None
        kinds = [kind for kind, is_wanted in zip(kinds, wanted, strict=True) if is_wanted]
    fits = len(kinds) == len(op.outputs)
    return kinds if fits and all(map(_is_announced, kinds, op.outputs)) else None


def _is_announced(kind: Any, tensor: Any) -> Any:
    item, rank = numba.from_dtype(tensor.dtype), tensor.spec.rank
    if isinstance(kind, types.Array):
        return (kind.dtype, kind.ndim) == (item, rank)
    return rank == 0 and types.unliteral(kind) == item


def _announced(code: Any, op: Any) -> Any:
    """For each result what its dimensions must be, or None for any.

    What the user's rule says of shapes is tried out with lengths that stand for those of the run
    and with numbers. None where the two do not tell.
    """
    names = {e for tensor in op.inputs for e in map(code.canonical, code.dimensions(tensor))}
    dims = {e: e.value if is_known(e) else Dim() for e in names}
    numbers = {
        e: e.value if is_known(e) else 1009 + 7 * k for k, e in enumerate(sorted(names, key=str))
    }
    source = {dim: name for name, dim in dims.items()}
    try:
        general, special = (_inferred(code, op, lengths) for lengths in (dims, numbers))
        found = [
            [_rule(a, b, source, numbers) for a, b in zip(one.shape, other.shape, strict=True)]
            for one, other in zip(general, special, strict=True)
        ]
    except Exception:  # a rule that computes with lengths, or that knows of few of them
        return None
    return found


def _inferred(code: Any, op: Any, lengths: Any) -> Any:
    specs = [
        Spec(tensor.dtype, tuple(lengths[code.canonical(e)] for e in code.dimensions(tensor)))
        for tensor in op.inputs
    ]
    found = op.record.infer(*specs, **op.attrs)
    for spec, tensor in zip(found, op.outputs, strict=True):
        if spec.dtype != tensor.dtype:
            raise TypeError(spec)
    return found


def _rule(general: Any, special: Any, source: Any, numbers: Any) -> Any:
    if general is None and special is None:
        return None
    is_name = isinstance(general, Dim)
    if special != (numbers[source[general]] if is_name else general):
        raise ValueError(general, special)
    return source[general] if is_name else as_node(general)


def _argument(code: Any, tensor: Any) -> Any:
    value = code.value(tensor)
    if isinstance(value, Scalar):
        return typed(value.item, value.dtype)
    return call("frozen", value.base.name, value.offset, several(*value.dimensions))


def _take(code: Any, op: Any, result: Any, name: Any, kind: Any, lengths: Any) -> Any:
    """Put a result where it belongs."""
    if not result.spec.rank:
        item = name[several()] if isinstance(kind, types.Array) else name
        return code.bind(result, code.local(item, result.dtype))
    dimensions = []
    for axis, length in enumerate(lengths):
        have = Attribute(name, "shape")[axis]  # type: ignore[call-arg]
        if length is not None:
            code.fail_if(have.differs(length))
        dimensions.append(code.variable(have) if length is None else length)
    block = code.result(op, dimensions=tuple(dimensions), index=result.index)
    indices = [code.name("i") for _ in dimensions]
    return code.nested(
        [over(*pair) for pair in zip(indices, dimensions, strict=True)],
        assign(
            window(code, block).at(*indices),
            name[several(*indices) if len(indices) > 1 else indices[0]],
        ),
    )


def define_custom(name: str, **options: Any) -> Any:
    """A record of users' functions, whose attribute ``function`` is a `Custom`."""
    return define(
        name,
        _infer,
        _evaluate,
        _gradient,
        several=True,
        foreign=True,
        emit=_emit_custom,
        **options,
    )


CUSTOM = define_custom("Custom")


class Custom(Sent):
    """A user's function as an operation; what derivatives it has, those say who derive from this.

    Attributes
    ----------
    forward : callable
        The user's function.
    result : callable
        What it gives, by specs; see `custom_gradient`.
    name : str
        Of the function, in messages.
    """

    __wrapped__: Callable[..., Any]
    _record: Any
    _what: str

    def __init__(
        self, forward: Callable[..., Any], result: Callable[..., Any] | None = None
    ) -> None:
        functools.update_wrapper(self, forward)
        self.forward, self.result = forward, result or _like_first
        self.name = getattr(forward, "__name__", "function")

    def __call__(self, *args: ArrayLike, name: str | None = None) -> Any:
        """Add the operation to a graph, or run it at once."""
        values = apply(self._record, args, {"function": self}, name or _as_name(self.name))
        return values[0] if isinstance(values, tuple) and len(values) == 1 else values

    def __repr__(self) -> str:
        return f"<nbta.{self._what} of {described(self.forward)}>"

    def native(self) -> Any:
        """The user's function, and which of its results count; None for all."""
        return _as_dispatcher(self.forward), None

    def miscounted(self, found: Any, announced: Any) -> Any:
        """The message for another number of results."""
        return (
            f"{self.name} gave {found} results, and {announced} were announced; say with result= "
            f"what it gives"
        )

    def misfit(self, i: Any, got: Any, spec: Any) -> Any:
        """The message for a result of another dtype or shape."""
        default = ", like the first argument" * (self.result is _like_first)
        return (
            f"{self.name} gave {got}, and {spec} was announced{default}; say with result= what it "
            f"gives"
        )


class CustomGradient(Custom):
    """A function with its own gradient; see `nbta.custom_gradient`."""

    _record, _what = CUSTOM, "custom_gradient"

    def __init__(
        self,
        forward: Callable[..., Any],
        backward: Callable[..., Any] | None = None,
        result: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(forward, result)
        self._backward = backward

    def _recipe(self) -> tuple[Any, ...]:
        """The arguments that make one like it."""
        return self.forward, self._backward, self.result

    def backward(self, function: F) -> F:
        """Set the backward function; use as a decorator."""
        self._backward = function
        return function

    def undifferentiable(self) -> Any:
        """The message where there is no backward function."""
        return (
            f"{self.name} has no backward function, so that nothing can be differentiated through "
            f"it; give one with custom_gradient(..., backward=) or @{self.name}.backward"
        )

    def gradient(self, op: Operation, grads: Sequence[Tensor | None]) -> list[Tensor | None]:
        """Gradients of the inputs, by the user's backward function."""
        if self._backward is None:
            raise UnimplementedError(f"{op.name!r}: {self.undifferentiable()}")
        given = [
            zeros_like(output) if grad is None else grad
            for output, grad in zip(op.outputs, grads, strict=True)
        ]
        wanted = [tensor.spec.differentiable for tensor in op.inputs]
        backward = self._backward
        if (outside := reading()) is not None:
            outside.read_attribute(self, "_backward", backward)
        if not isinstance(backward, CustomGradient):
            backward = _Backward(self, backward, len(given), wanted)
        found = backward(*given, *op.inputs, *op.outputs)
        found = iter(self._checked(op, backward.name, found, wanted))
        return [next(found) if is_wanted else None for is_wanted in wanted]

    def _checked(self, op: Any, name: str | None, found: Any, wanted: Any) -> Any:
        """What the backward operation gives: a gradient for each float argument, and like it."""
        found = found if isinstance(found, tuple) else (found,)
        floats = [i for i, is_wanted in enumerate(wanted) if is_wanted]
        if len(found) != len(floats):
            message = (
                f"{name} announces {len(found)} gradients, and {self.name} has {len(floats)} "
                f"arguments of floats; announce one for each with result="
            )
            raise invalid("custom", message)
        for i, gradient in zip(floats, found, strict=True):
            have, want = gradient.spec, op.inputs[i].spec
            if have.dtype != want.dtype or not shapes.compatible(have.shape, want.shape):
                message = (
                    f"{name} announces {have} for argument {i} of {self.name}, which is {want}; "
                    f"a gradient is like its argument"
                )
                raise invalid("custom", message)
        return found


class _Backward(CustomGradient):
    """A backward function as an operation, which has no gradient itself."""

    def __init__(self, owner: Any, function: Any, count: Any, wanted: Any) -> None:
        super().__init__(function)
        self.name = f"{owner.name}_backward"
        self._owner, self._count, self._wanted = owner, count, wanted
        self.result, self.forward = self._result, self._run

    def _result(self, *specs: Any) -> Any:
        inputs = specs[self._count : self._count + len(self._wanted)]
        return tuple(s for s, wanted in zip(inputs, self._wanted, strict=True) if wanted)

    def _run(self, *arrays: Any) -> Any:
        found = _by_address(self.__wrapped__)(*arrays)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(self._wanted):
            raise invalid("custom", self.miscounted(len(found), len(self._wanted)))
        return tuple(g for g, wanted in zip(found, self._wanted, strict=True) if wanted)

    def native(self) -> Any:
        """The user's function, and which of its results count."""
        return _as_dispatcher(self.__wrapped__), self._wanted

    def undifferentiable(self) -> Any:
        """The message for a derivative of the gradient."""
        return (
            f"the backward function of {self._owner.name} is not an operation itself, so that its "
            f"gradient cannot be differentiated again, as second derivatives and jvp do; make the "
            f"backward function with custom_gradient too"
        )

    def miscounted(self, found: Any, announced: Any) -> Any:
        """The message for another number of gradients."""
        return (
            f"{self.name} gave {found} gradients, and {self._owner.name} has {announced} "
            f"arguments; give one for each, None for integers"
        )

    def misfit(self, i: Any, got: Any, spec: Any) -> Any:
        """The message for a gradient unlike its argument."""
        place = [i for i, wanted in enumerate(self._wanted) if wanted][i]
        return (
            f"{self.name} gave {got} for argument {place} of {self._owner.name}, which is {spec}; "
            f"a gradient is like its argument"
        )


def _like_first(*specs: Any) -> Any:
    if not specs:
        message = "the function has no arguments; say what it gives with result="
        raise invalid("custom", message)
    return Spec(specs[0].dtype, specs[0].shape)


def _as_dispatcher(function: Any) -> Any:
    """A function in machine code, by its address, as one that Numba compiles; others as they are.

    Functions of ctypes are meant that say what they take and give, and ``numba.cfunc``.
    """
    called = _by_address(function)
    is_pointer = isinstance(called, ctypes._CFuncPtr)  # type: ignore[attr-defined]
    if not is_pointer or called.argtypes is None:
        return function

    def made() -> Any:
        names = ", ".join(f"x{k}" for k in range(len(called.argtypes)))
        return numba.njit(eval(f"lambda {names}: called({names})", {"called": called}))

    return once(function, "dispatcher", made)


def _by_address(function: Any) -> Any:
    """A function that Python calls in machine code where it is there: others as they are."""
    return function.ctypes if isinstance(function, CFunc) else function


def _as_name(name: str) -> str:
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in name).lstrip("_-") or "custom"


@overload
def custom_gradient(
    forward: Callable[..., Any],
    backward: Callable[..., Any] | None = None,
    *,
    result: Callable[..., Any] | None = None,
) -> CustomGradient: ...
@overload
def custom_gradient(
    forward: None = None,
    backward: Callable[..., Any] | None = None,
    *,
    result: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], CustomGradient]: ...
def custom_gradient(
    forward: Callable[..., Any] | None = None,
    backward: Callable[..., Any] | None = None,
    *,
    result: Callable[..., Any] | None = None,
) -> Any:
    """Make a function of arrays an operation with its own backward function.

    Parameters
    ----------
    forward : callable
        A Python function that uses NumPy, or an ``@njit`` function, of arrays. It returns an array
        or a tuple of arrays. It must not change its arguments, which are read-only. Functions of
        numbers may also be made by ``numba.cfunc``, or be ctypes functions that have ``argtypes``
        and ``restype``. Compiled graphs call all but Python functions without Python.
    backward : callable, optional
        A function of the gradients of all results, then all arguments, then all results. It returns
        a gradient for each argument, and None for integers. If it is itself made with
        `custom_gradient`, it can be differentiated for second derivatives. It can also be given
        later, by the decorator ``@f.backward``.
    result : callable, optional
        ``result(*specs)`` returns the `Spec`, or tuple of `Spec`, of the results, from those of the
        arguments. By default, the result has the dtype and shape of the first argument.

    Returns
    -------
    CustomGradient
        A function of the same arguments, for arrays and for tensors of a graph.

    Raises
    ------
    InvalidArgumentError
        When it runs: if the number, dtype or shape of results or gradients is not as announced.
    UnimplementedError
        From gradients, if there is no backward function.

    Examples
    --------
    >>> @nbta.custom_gradient
    ... def clipped(x):
    ...     return np.clip(x, -1.0, 1.0)
    >>> @clipped.backward
    ... def straight_through(dy, x, y):
    ...     return dy
    >>> nbta.grad(lambda x: 3.0 * clipped(x))(5.0)
    np.float64(3.0)

    The same in one call:

    >>> clipped = nbta.custom_gradient(lambda x: np.clip(x, -1.0, 1.0), lambda dy, x, y: dy)
    >>> nbta.grad(lambda x: 3.0 * clipped(x))(5.0)
    np.float64(3.0)
    """
    if forward is None:
        return functools.partial(custom_gradient, backward=backward, result=result)
    return CustomGradient(forward, backward, result)
