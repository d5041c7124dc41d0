"""TensorFlow's raw operations in compiled code: `nbta.raw_ops`, by what methods of arrays do.

A handle is the array itself in another type, and a flow one in a type that knows no elements. So an
operation on a handle is the implementation of the array's method, which takes what has a store.
What a flow holds is ignored, as eagerly: compiled code runs one operation after another.
"""

import operator
from typing import Any, NamedTuple

from numba.extending import intrinsic, overload, overload_attribute

from nbta.naming import FORWARD, GRADIENT, UNNAMED
from nbta.runtime.cold_fields import NAME, SUFFIX, cold_points
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.extension import (
    FLOW,
    HandleType,
    TensorArrayType,
    fast,
    inlined,
    methods,
    store_fields,
)
from nbta.runtime.failures import refusal
from nbta.runtime.fields import field
from nbta.runtime.methods import check_flow, construct, first_name, gather_of
from nbta.runtime.numba_private import cgutils, imputils
from nbta.runtime.store import FIELD, store_at


class TensorArrayV3Output(NamedTuple):
    """The outputs of `TensorArrayV3`, by TensorFlow's names.

    Attributes
    ----------
    handle : ArrayHandle or Tensor
    flow : Flow or Tensor
        A float32 scalar, after which operations on the array may run.
    """

    handle: Any
    flow: Any


class TensorArrayGradV3Output(NamedTuple):
    """The outputs of `TensorArrayGradV3` and `TensorArrayGradWithShape`, by TensorFlow's names.

    Attributes
    ----------
    grad_handle : ArrayHandle or Tensor
    flow_out : Flow or Tensor
        A float32 scalar, after which operations on the gradient array may run.
    """

    grad_handle: Any
    flow_out: Any


# Handles and flows.


def _recast(context, builder, kind, given, value):
    """What has a store, in another type, with a reference of its own."""
    store = cgutils.create_struct_proxy(given)(context, builder, value=value).store
    proxy = cgutils.create_struct_proxy(kind)(context, builder)
    proxy.store = store
    return imputils.impl_ret_borrowed(context, builder, kind, proxy._getvalue())


@intrinsic
def handle_of(typingctx, array):
    """The handle of an array."""
    kind = HandleType(array)

    def codegen(context, builder, sig, args):
        return _recast(context, builder, kind, array, args[0])

    return kind(array), codegen


@intrinsic
def flow_of(typingctx, array):
    """A flow of an array, or of its handle."""

    def codegen(context, builder, sig, args):
        return _recast(context, builder, FLOW, array, args[0])

    return FLOW(array), codegen


@overload_attribute(TensorArrayType, "handle", jit_options=inlined)
def _handle(ta):
    return lambda ta: handle_of(ta)


@overload_attribute(TensorArrayType, "flow", jit_options=inlined)
def _flow(ta):
    return lambda ta: flow_of(ta)


@out_of_line
def name_of(store):
    """The name in an array's handle, as `nbta.naming` makes it."""
    stay_out_of_line()
    s = store_at(store)
    name = ""
    for point in cold_points(s, NAME):
        name += chr(point)
    name = (name or UNNAMED) + "_" + str(s._id)
    for point in cold_points(s, SUFFIX):
        name += chr(point)
    return name


@overload_attribute(HandleType, "name")
def _name(handle):
    return lambda handle: name_of(store_fields(handle))


@overload_attribute(HandleType, "container")
def _container(handle):
    return lambda handle: GRADIENT if field(store_fields(handle), FIELD.gradient) else FORWARD


@overload(operator.eq)
def _equal(handle, other):
    if isinstance(handle, HandleType) and isinstance(other, HandleType):
        return lambda handle, other: store_fields(handle) == store_fields(other)
    return None


@overload(operator.ne)
def _unequal(handle, other):
    if isinstance(handle, HandleType) and isinstance(other, HandleType):
        return lambda handle, other: store_fields(handle) != store_fields(other)
    return None


# Operations.


def _array(handle):
    """The type of the array of a handle."""
    if isinstance(handle, HandleType):
        return handle.array
    if isinstance(handle, TensorArrayType):
        return handle
    raise refusal(f"handle: {handle} is not a handle; give what TensorArrayV3 returned")


def _method(name, handle, *arguments):
    """A method of the array of a handle, which takes the handle in place of the array."""
    return fast(methods[name](_array(handle), *arguments))


def _new(
    size,
    dtype,
    element_shape=None,
    dynamic_size=False,
    clear_after_read=True,
    identical_element_shapes=False,
    tensor_array_name="",
    name=None,
):
    given = (dynamic_size, clear_after_read, tensor_array_name, element_shape)
    make = fast(construct(dtype, size, *given, identical_element_shapes, name))

    def implementation(
        size,
        dtype,
        element_shape=None,
        dynamic_size=False,
        clear_after_read=True,
        identical_element_shapes=False,
        tensor_array_name="",
        name=None,
    ):
        array = make(
            dtype,
            size,
            dynamic_size,
            clear_after_read,
            first_name(tensor_array_name, first_name(name, "TensorArrayV3")),
            element_shape,
            identical_element_shapes,
        )
        return TensorArrayV3Output(handle_of(array), flow_of(array))

    return implementation


def _grad(handle, flow_in, source, name=None):
    check_flow("TensorArrayGradV3: flow_in", flow_in)
    look_up = _method("grad", handle, source)

    def implementation(handle, flow_in, source, name=None):
        array = look_up(handle, source)
        return TensorArrayGradV3Output(handle_of(array), flow_of(array))

    return implementation


def _grad_with_shape(handle, flow_in, shape_to_prepend, source, name=None):
    check_flow("TensorArrayGradWithShape: flow_in", flow_in)
    look_up = _method("grad_with_shape", handle, source, shape_to_prepend)

    def implementation(handle, flow_in, shape_to_prepend, source, name=None):
        array = look_up(handle, source, shape_to_prepend)
        return TensorArrayGradV3Output(handle_of(array), flow_of(array))

    return implementation


def _write(handle, index, value, flow_in, name=None):
    check_flow("TensorArrayWriteV3: flow_in", flow_in)
    act = _method("write", handle, index, value)

    def implementation(handle, index, value, flow_in, name=None):
        act(handle, index, value)
        return flow_of(handle)

    return implementation


def _read(handle, index, flow_in, dtype, name=None):
    check_flow("TensorArrayReadV3: flow_in", flow_in)
    act = _method("read", handle, index, dtype)
    return lambda handle, index, flow_in, dtype, name=None: act(handle, index)


def _gather(handle, indices, flow_in, dtype, element_shape=None, name=None):
    check_flow("TensorArrayGatherV3: flow_in", flow_in)
    act = fast(gather_of(_array(handle), indices, element_shape, dtype, strict=True))

    def implementation(handle, indices, flow_in, dtype, element_shape=None, name=None):
        return act(handle, indices, element_shape)

    return implementation


def _scatter(handle, indices, value, flow_in, name=None):
    check_flow("TensorArrayScatterV3: flow_in", flow_in)
    act = _method("scatter", handle, indices, value)

    def implementation(handle, indices, value, flow_in, name=None):
        act(handle, indices, value)
        return flow_of(handle)

    return implementation


def _concat(handle, flow_in, dtype, element_shape_except0=None, name=None):
    check_flow("TensorArrayConcatV3: flow_in", flow_in)
    act = _method("concat", handle, element_shape_except0, dtype)

    def implementation(handle, flow_in, dtype, element_shape_except0=None, name=None):
        return act(handle, element_shape_except0)

    return implementation


def _split(handle, value, lengths, flow_in, name=None):
    check_flow("TensorArraySplitV3: flow_in", flow_in)
    act = _method("split", handle, value, lengths)

    def implementation(handle, value, lengths, flow_in, name=None):
        act(handle, value, lengths)
        return flow_of(handle)

    return implementation


def _size(handle, flow_in, name=None):
    check_flow("TensorArraySizeV3: flow_in", flow_in)
    act = _method("size", handle)
    return lambda handle, flow_in, name=None: act(handle)


def _close(handle, name=None):
    act = _method("close", handle)
    return lambda handle, name=None: act(handle)


_OPERATIONS = {
    "TensorArrayV3": _new,
    "TensorArrayGradV3": _grad,
    "TensorArrayGradWithShape": _grad_with_shape,
    "TensorArrayWriteV3": _write,
    "TensorArrayReadV3": _read,
    "TensorArrayGatherV3": _gather,
    "TensorArrayScatterV3": _scatter,
    "TensorArrayConcatV3": _concat,
    "TensorArraySplitV3": _split,
    "TensorArraySizeV3": _size,
    "TensorArrayCloseV3": _close,
}


def register_operations(functions):
    """Let compiled code call the raw operations.

    Parameters
    ----------
    functions : dict
        Those that Python calls, by TensorFlow's names.
    """
    for name, implementation in _OPERATIONS.items():
        options = {"prefer_literal": implementation is _new, "jit_options": inlined}
        overload(functions[name], **options)(implementation)
