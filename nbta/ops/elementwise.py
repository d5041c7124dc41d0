"""What elementwise operations share: dtypes that meet, shapes that broadcast, rules."""

import functools

import numpy as np

from nbta import shapes
from nbta.codegen import number_rules as rules
from nbta.codegen.elementwise import as_rule
from nbta.dtypes import OTHER, code_of
from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.graph.record import NotDifferentiable
from nbta.graph.spec import Spec, is_inexact
from nbta.ops.dispatch import (
    apply,
    as_array,
    as_tensor,
    building,
    define,
    dtype_of,
    exported,
    is_weak,
)
from nbta.ops.shaping import cast, unbroadcast

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


def meet(*values, floats=False):
    """The values as tensors or arrays of one dtype; integers become floats where asked."""
    values = [v if isinstance(v, Tensor) or is_weak(v) else as_array(v) for v in values]
    dtype = common_dtype(*values)
    if floats and not is_inexact(dtype):
        dtype = np.dtype(np.float64)
    graph = building(*values)
    return [_of_dtype(value, dtype, graph) for value in values]


def _of_dtype(value, dtype, graph):
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


def conjugate(x):
    """The complex conjugate; real tensors as they are.

    Gradients of complex values follow TensorFlow: of a real loss L, dL/d(re) + i dL/d(im).
    """
    return apply(CONJ, [x]) if x.dtype.kind == "c" else x


def define_elementwise(name, infer, evaluate, gradient, *, total=True, **options):
    """A record of an operation that goes item by item; it cannot fail but where ``total`` says."""
    options["emit"] = as_rule(options.get("emit"))
    return define(name, infer, evaluate, gradient, elementwise=True, total=total, **options)


CONJ = define_elementwise(
    "Conj", same, np.conj, lambda op, dy: [conjugate(dy)], emit=rules.conjugate
)


def _name_in_numpy(evaluate):
    return evaluate.__name__ if isinstance(evaluate, np.ufunc) else None


def unary(name, evaluate, derivative, floats=True, infer=same, **options):
    """Make a function of one argument an elementwise operation, and export it.

    ``derivative(x, y)`` gives dy/dx; it may be a `NotDifferentiable`. The options are the
    record's.
    """

    def gradient(op, dy):
        return [dy * conjugate(derivative(op.inputs[0], op.outputs[0]))]

    rule = derivative if isinstance(derivative, NotDifferentiable) else gradient
    record = define_elementwise(name, infer, evaluate, rule, **options)

    def decorate(function):
        @functools.wraps(function)
        def operation(x, *, name=None):
            return apply(record, meet(x, floats=floats), name=name)

        operation.record = record
        return exported(operation, also=_name_in_numpy(evaluate))

    return decorate


def binary(name, evaluate, gradient, infer=broadcasting, floats=False, **options):
    """Make a function of two arguments an elementwise operation, and export it.

    ``gradient(x, y, result, dy)`` gives the gradients before they are summed over broadcast axes.
    """

    def summed(op, dy):
        grads = gradient(*op.inputs, op.outputs[0], dy)
        return [
            None if grad is None else unbroadcast(grad, tensor)
            for grad, tensor in zip(grads, op.inputs, strict=True)
        ]

    rule = gradient if isinstance(gradient, NotDifferentiable) else summed
    record = define_elementwise(name, infer, evaluate, rule, **options)

    def decorate(function):
        @functools.wraps(function)
        def operation(x, y, *, name=None):
            return apply(record, meet(x, y, floats=floats), name=name)

        operation.record = record
        return exported(operation, also=_name_in_numpy(evaluate))

    return decorate
