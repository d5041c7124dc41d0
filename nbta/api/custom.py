"""custom_gradient: a user's function, with a backward pass of its own, as an operation."""

import functools

import numpy as np

from nbta import shapes
from nbta.codegen import custom_rules
from nbta.dtypes import as_plain
from nbta.errors import UnimplementedError, invalid
from nbta.graph.spec import Spec
from nbta.immutable import own_numpy, refusals
from nbta.ops.dispatch import apply, define
from nbta.ops.filling import zeros_like


def _infer(*specs, function):
    result = function.result(*specs)
    announced = (result,) if isinstance(result, Spec) else result
    known = isinstance(announced, tuple | list) and all(isinstance(s, Spec) for s in announced)
    if not known:
        message = f"result= of {function.name} must give a Spec or a tuple of Spec, not {result!r}"
        raise invalid("custom", message)
    return tuple(announced)


def _evaluate(*arrays, function):
    with own_numpy(), refusals(function.name):
        results = function.forward(*map(_read_only, arrays))
    results = results if isinstance(results, tuple) else (results,)
    specs = _infer(*(Spec(a.dtype, np.shape(a)) for a in arrays), function=function)
    if len(results) != len(specs):
        raise invalid("custom", function.miscounted(len(results), len(specs)))
    pairs = zip(results, specs, strict=True)
    return tuple(_fitting(function, i, r, spec) for i, (r, spec) in enumerate(pairs))


def _read_only(array):
    """An array as a user's function gets it, always of one type: scalars, and read-only views."""
    if np.ndim(array) == 0:
        return array[()]
    view = array.view()
    view.flags.writeable = False
    return view


def _fitting(function, i, value, spec):
    array = as_plain(f"result {i}", value)
    if array.dtype != spec.dtype or not shapes.compatible(array.shape, spec.shape):
        got = "None" if value is None else str(Spec(array.dtype, array.shape))
        raise invalid("custom", function.misfit(i, got, spec))
    return array[()]


def _gradient(op, *grads):
    return op.attrs["function"].gradient(op, grads)


def _emit(code, op):
    custom_rules.custom(code, op, *op.attrs["function"].native())


CUSTOM = define("Custom", _infer, _evaluate, _gradient, several=True, foreign=True, emit=_emit)


class CustomGradient:
    """A function with a gradient of its own; see `nbta.custom_gradient`."""

    def __init__(self, forward, backward=None, result=None):
        functools.update_wrapper(self, forward)
        self.forward, self._backward = forward, backward
        self.result = result or _like_first
        self.name = getattr(forward, "__name__", "function")

    def __call__(self, *args, name=None):
        """Add the operation to a graph, or run it at once."""
        values = apply(CUSTOM, args, {"function": self}, name or _as_name(self.name))
        return values[0] if isinstance(values, tuple) and len(values) == 1 else values

    def backward(self, function):
        """Say how gradients pass; for use as a decorator."""
        self._backward = function
        return function

    def native(self):
        """The user's function, and which of its results count; None for all."""
        return self.forward, None

    def undifferentiable(self):
        """The message where there is no backward function."""
        return (
            f"{self.name} has no backward function, so that nothing can be differentiated through "
            f"it; give one with custom_gradient(..., backward=) or @{self.name}.backward"
        )

    def miscounted(self, found, announced):
        """The message for another number of results."""
        return (
            f"{self.name} gave {found} results, and {announced} were announced; say with result= "
            f"what it gives"
        )

    def misfit(self, i, got, spec):
        """The message for a result of another dtype or shape."""
        default = ", like the first argument" * (self.result is _like_first)
        return (
            f"{self.name} gave {got}, and {spec} was announced{default}; say with result= what it "
            f"gives"
        )

    def gradient(self, op, grads):
        """Gradients of the inputs, by the user's backward function."""
        if self._backward is None:
            raise UnimplementedError(f"{op.name!r}: {self.undifferentiable()}")
        given = [
            zeros_like(output) if grad is None else grad
            for output, grad in zip(op.outputs, grads, strict=True)
        ]
        wanted = [tensor.spec.differentiable for tensor in op.inputs]
        backward = self._backward
        if not isinstance(backward, CustomGradient):
            backward = _Backward(self, backward, len(given), wanted)
        found = backward(*given, *op.inputs, *op.outputs)
        found = iter(self._checked(op, backward.name, found, wanted))
        return [next(found) if is_wanted else None for is_wanted in wanted]

    def _checked(self, op, name, found, wanted):
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

    def __init__(self, owner, function, count, wanted):
        super().__init__(function)
        self.name = f"{owner.name}_backward"
        self._owner, self._count, self._wanted = owner, count, wanted
        self.result, self.forward = self._result, self._run

    def _result(self, *specs):
        inputs = specs[self._count : self._count + len(self._wanted)]
        return tuple(s for s, wanted in zip(inputs, self._wanted, strict=True) if wanted)

    def _run(self, *arrays):
        found = self.__wrapped__(*arrays)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != len(self._wanted):
            raise invalid("custom", self.miscounted(len(found), len(self._wanted)))
        return tuple(g for g, wanted in zip(found, self._wanted, strict=True) if wanted)

    def native(self):
        """The user's function, and which of its results count."""
        return self.__wrapped__, self._wanted

    def undifferentiable(self):
        """The message for a derivative of the gradient."""
        return (
            f"the backward function of {self._owner.name} is not an operation itself, so that its "
            f"gradient cannot be differentiated again, as second derivatives and jvp do; make the "
            f"backward function with custom_gradient too"
        )

    def miscounted(self, found, announced):
        """The message for another number of gradients."""
        return (
            f"{self.name} gave {found} gradients, and {self._owner.name} has {announced} "
            f"arguments; give one for each, None for integers"
        )

    def misfit(self, i, got, spec):
        """The message for a gradient unlike its argument."""
        place = [i for i, wanted in enumerate(self._wanted) if wanted][i]
        return (
            f"{self.name} gave {got} for argument {place} of {self._owner.name}, which is {spec}; "
            f"a gradient is like its argument"
        )


def _like_first(*specs):
    if not specs:
        message = "the function has no arguments; say what it gives with result="
        raise invalid("custom", message)
    return Spec(specs[0].dtype, specs[0].shape)


def _as_name(name):
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in name).lstrip("_-") or "custom"


def custom_gradient(forward=None, backward=None, *, result=None):
    """Make a function of arrays an operation, with a backward function of its own.

    Parameters
    ----------
    forward : callable
        Of arrays (a Python function with NumPy, or an ``@njit`` function); gives an array or a
        tuple of arrays. It must not change its arguments, which are read-only.
    backward : callable, optional
        Of the gradients of all results, then all arguments, then all results; gives a gradient for
        each argument, None for integers. If it is made with `custom_gradient` itself, second
        derivatives go through it. It can be given later: ``@f.backward``.
    result : callable, optional
        ``result(*specs)``, the `Spec` or tuple of `Spec` that comes out for the specs of the
        arguments; by default the dtype and shape of the first argument.

    Raises
    ------
    InvalidArgumentError
        In a run, for results or gradients of another number, dtype or shape than announced.
    UnimplementedError
        From gradients, where there is no backward function.

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
