"""What elementwise operations share: how dtypes meet and shapes broadcast; half precision."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from nbta import shapes
from nbta.codegen.fusion import Elementwise, as_it_is, complex_only
from nbta.codegen.special import OfSciPy
from nbta.dtypes import OTHER, code_of
from nbta.errors import UnimplementedError, invalid
from nbta.graph.operation import NotDifferentiable, Spec, Tensor, is_inexact
from nbta.ops.core.descriptions import FLOATS, NUMBERS, REAL, REAL_FLOATS, TRUTHS
from nbta.ops.core.dispatch import (
    apply,
    as_array,
    as_tensor,
    building,
    define,
    dtype_of,
    exported,
    is_weak,
)
from nbta.ops.core.shaping import cast, unbroadcast

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.ops.core.dispatch import F


INTEGER = NotDifferentiable("its result is an integer or a truth value")


def common_dtype(*values) -> np.dtype:
    """The dtype of an elementwise result, by NumPy's rules; Python numbers are weak."""
    arrays = [v if dtype_of(v) is not None else np.asarray(v) for v in values]
    kinds = [dtype_of(v) for v in arrays]
    weak = [
        kind(0) if isinstance(v, Tensor) else v
        for v, kind in zip(arrays, kinds, strict=True)
        if isinstance(kind, type)
    ]
    strong = [kind for kind in kinds if not isinstance(kind, type)]
    try:
        dtype = _result_type(strong, weak)
    except TypeError:
        dtype = np.dtype(object)
    if code_of(dtype) == OTHER:
        together = " together" if len(set(strong)) > 1 else ""
        message = f"{_names(strong)} cannot be computed with{together}; cast to numbers first"
        raise invalid("dtype", message)
    return dtype


def _result_type(strong, weak):
    """NumPy's rule, which alone would widen bfloat16 for any Python number."""
    dtype = np.result_type(*strong) if strong else None
    if dtype is None or not is_inexact(dtype) or any(isinstance(v, complex) for v in weak):
        return np.result_type(*strong, *weak)
    return dtype


def _names(dtypes):
    return " and ".join(dict.fromkeys(map(str, dtypes)))


def promoted(*values, floats=False):
    """The values as tensors or arrays of one dtype; integers become floats where asked."""
    values = [v if isinstance(v, Tensor) or is_weak(v) else as_array(v) for v in values]
    dtype = common_dtype(*values)
    if floats and not is_inexact(dtype):
        dtype = np.dtype(np.float64)
    graph = building(*values)
    return [of_dtype(value, dtype, graph) for value in values]


def _to_compare(value, other):
    """An operand of a comparison: NumPy compares integers with numbers that their dtype has not."""
    dtype = dtype_of(other)
    if type(value) is not int or not isinstance(dtype, np.dtype) or dtype.kind not in "iu":
        return value
    if np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
        return value
    if dtype == np.uint64:
        return float(value) if value < 0 else value  # which all of them are above, rounded or not
    wide = np.iinfo(np.int64)
    return np.int64(value) if wide.min <= value <= wide.max else value


def of_dtype(value, dtype, graph):
    """A value in a dtype; numbers of Python must fit, and are tensors where there is a graph."""
    if isinstance(value, Tensor):
        if value.weak is not None:
            value = value.in_dtype(dtype)
        return value if value.dtype == dtype else cast(value, dtype)
    try:
        array = as_array(value, dtype if is_weak(value) else None)
    except OverflowError:
        raise invalid("dtype", f"{value!r} does not fit {dtype}") from None
    array = array if array.dtype == dtype else array.astype(dtype)
    return array if graph is None else as_tensor(array, graph)


def broadcast_shape(*specs):
    """The shape that specs broadcast to."""
    try:
        return shapes.broadcast(*(spec.shape for spec in specs))
    except ValueError:
        texts = " and ".join(shapes.text(spec.shape) for spec in specs)
        message = (
            f"shapes {texts} do not broadcast together; axes, counted from the last, must be equal "
            f"or 1"
        )
        raise invalid("broadcast", message) from None


def same(spec):
    """Shape rule: the result is like the input."""
    return Spec(spec.dtype, spec.shape)


def broadcasting(*specs):
    """Shape rule: the result has the broadcast shape and the inputs' dtype."""
    return Spec(specs[0].dtype, broadcast_shape(*specs))


def truth(*specs):
    """Shape rule: truth values of the broadcast shape."""
    return Spec(np.dtype(bool), broadcast_shape(*specs))


def real_only(*specs):
    """Shape rule of functions for real numbers: the result is like the inputs, broadcast."""
    dtype = specs[0].dtype
    if dtype.kind == "c":
        raise invalid("dtype", f"it is for real numbers, not {dtype}; use real or abs first")
    return broadcasting(*specs)


def floats_only(*specs):
    """Shape rule of functions for real floats, which others are cast to before."""
    if not is_inexact(specs[0].dtype):
        raise invalid("dtype", f"it is for floats, not {specs[0].dtype}; cast it first")
    return real_only(*specs)


def from_scipy(name, x, *before):
    """A special function, of some numbers before it if it has such.

    Half precision goes by float32, as SciPy has no bfloat16.
    """
    return _of_scipy(name, before, [x])


def of_two(name):
    """SciPy's function of two operands."""
    return lambda x, y: _of_scipy(name, (), [x, y])


def of_three(name):
    """SciPy's function of three operands."""
    return lambda x, y, z: _of_scipy(name, (), [x, y, z])


def _of_scipy(name, before, values):
    from scipy import special  # takes 0.15 s, which most programs need not wait for

    dtype = values[0].dtype
    wide = dtype if dtype in (np.float32, np.float64) else np.dtype(np.float32)
    given = [value.astype(wide, copy=False) for value in values]
    return getattr(special, name)(*before, *given).astype(dtype)


def conjugate(x):
    """The complex conjugate; real tensors as they are.

    Gradients of complex values follow TensorFlow: of a real loss L, dL/d(re) + i dL/d(im).
    """
    return apply(CONJ, [x]) if x.dtype.kind == "c" else x


def define_elementwise(name, infer, evaluate, gradient, *, total=True, **options):
    """A record of an operation that goes item by item; it cannot fail but where ``total`` says."""
    return define(name, infer, evaluate, gradient, elementwise=True, total=total, **options)


CONJ = define_elementwise(
    "Conj",
    same,
    np.conj,
    lambda op, dy: [conjugate(dy)],
    emit=complex_only(lambda x: x.conjugate(), as_it_is),
    linear=(0,),
)


def _refuse_gradient(op, dy):
    raise UnimplementedError(op.attrs["message"])


FIXED = define_elementwise(
    "Fixed",
    lambda spec, *, message: same(spec),
    lambda x, *, message: x,
    _refuse_gradient,
    emit=Elementwise(as_it_is, is_plain=True),
    cheap=True,
)


def without_gradient(x, message):
    """The same values; whatever gradient arrives is refused with a message."""
    return apply(FIXED, [x], {"message": message})


def _known_as(evaluate, also):
    """NumPy's name for a function, and others."""
    return [*([evaluate.__name__] if isinstance(evaluate, np.ufunc) else []), *also]


def _call_arguments_as(operation, function):
    """Let a function be called with another one's names of arguments, with which it is shown."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    operation.__code__ = operation.__code__.replace(co_varnames=names)


#: What docstrings share, by the shape rule and whether integers become floats.
_FAMILIES = {
    (same, True): FLOATS,
    (same, False): NUMBERS,
    (broadcasting, True): FLOATS,
    (broadcasting, False): NUMBERS,
    (real_only, True): REAL_FLOATS,
    (real_only, False): REAL,
    (floats_only, True): REAL_FLOATS,
    (truth, True): TRUTHS,
    (truth, False): TRUTHS,
}


def unary(
    name,
    evaluate,
    derivative,
    floats=True,
    infer=same,
    also=(),
    pullback=None,
    family=None,
    **options,
) -> Callable[[F], F]:
    """Make a function of one argument an elementwise operation, and export it.

    ``derivative(x, y)`` gives dy/dx; it may be a `NotDifferentiable`. ``pullback(op, dy)``, where
    there is one, gives the gradient in its place. ``also`` and ``family`` are as in `exported`;
    the family is that of the shape rule if nothing else is said. The options are the record's.
    """

    def gradient(op, dy):
        return [dy * conjugate(derivative(op.inputs[0], op.outputs[0]))]

    rule = derivative if isinstance(derivative, NotDifferentiable) else pullback or gradient
    record = define_elementwise(name, infer, evaluate, rule, **options)

    def decorate(function):
        @functools.wraps(function)
        def operation(x, *, name=None):
            return apply(record, promoted(x, floats=floats), name=name)

        _call_arguments_as(operation, function)
        operation.record = record
        known = _known_as(evaluate, also)
        return exported(operation, also=known, family=family or _FAMILIES[infer, floats])

    return decorate


def of_one(record, name, derivative) -> Callable[[F], F]:
    """Make a function of one real number that SciPy has an operation, see `unary`."""
    return unary(
        record,
        lambda x: from_scipy(name, x),
        derivative,
        infer=floats_only,
        also=(name,),
        emit=OfSciPy(name),
    )


def summed(gradient):
    """A record's rule of ``gradient(*inputs, result, dy)``, summed over what was broadcast.

    A gradient that only calling gives is left to whoever wants it. Before the sum the rule is the
    attribute ``by_item``, for tangents.
    """

    def rule(op, dy):
        grads = gradient(*op.inputs, op.outputs[0], dy)
        return list(map(_summed, grads, op.inputs))

    rule.by_item = gradient
    return rule


def _summed(grad, tensor):
    if callable(grad):
        return lambda: unbroadcast(grad(), tensor)
    return None if grad is None else unbroadcast(grad, tensor)


def binary(
    name,
    evaluate,
    gradient,
    infer=broadcasting,
    floats=False,
    also=(),
    of_adjoints=None,
    family=None,
    **options,
) -> Callable[[F], F]:
    """Make a function of two arguments an elementwise operation, and export it.

    ``gradient(x, y, result, dy)`` gives the gradients before they are summed over broadcast axes.
    ``of_adjoints(x, y)`` gives the result in gradient rules, or None where it is no other one.
    All else is as in `unary`.
    """

    rule = gradient if isinstance(gradient, NotDifferentiable) else summed(gradient)
    record = define_elementwise(name, infer, evaluate, rule, **options)

    def compute(operands, name):
        found = None if of_adjoints is None else of_adjoints(*operands)
        return apply(record, operands, name=name) if found is None else found

    def decorate(function):
        @functools.wraps(function)
        def operation(x, y, *, name=None):
            if infer is truth:
                x, y = _to_compare(x, y), _to_compare(y, x)
            return compute(promoted(x, y, floats=floats), name)

        _call_arguments_as(operation, function)
        operation.record = record
        known = _known_as(evaluate, also)
        return exported(operation, also=known, family=family or _FAMILIES[infer, floats])

    return decorate


def wide(dtype):
    """The dtype to compute in: float32 for float16 and bfloat16, else the dtype itself."""
    return np.dtype(np.float32) if is_inexact(dtype) and dtype.itemsize == 2 else dtype


def widened(x):
    """An array in the dtype to compute in."""
    return x.astype(wide(x.dtype), copy=False)


def narrow(value, dtype):
    """A computed value in the dtype that it is to have."""
    return value if value.dtype == dtype else value.astype(dtype)
