"""Functions as operations of JAX, by a primitive with all rules of transformations."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from nbta.errors import UnimplementedError, invalid
from nbta.graph.operation import Spec
from nbta.interop.flat import Door, FlatFunction
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.shaping import cast
from nbta.structure import leaves, pack


def operation(f: Any, compiled: Any) -> Any:
    """The function that `nbta.interop.to_jax` returns."""
    # What JAX calls back from runs in threads of its own, where jax.enable_x64 says nothing.
    doors = [Door(f, "to_jax", compiled, _single), Door(f, "to_jax", compiled)]

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        is_double = jax.dtypes.canonicalize_dtype(np.float64) == np.float64
        function, arrays = doors[is_double].flat(args, kwargs, _is_array)
        arrays = [jnp.asarray(array) for array in arrays]
        found = _call.bind(*arrays, function=function)
        return pack(function.results(list(map(_spec, arrays))), found)

    return call


#: Dtypes that JAX has only with jax_enable_x64, and those of its results without.
_SINGLE = {"float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"}


def _single(result: Any) -> Any:
    """A result in the dtype that JAX has for it without jax_enable_x64."""
    tensor = as_tensor(result)
    return cast(tensor, _SINGLE.get(tensor.dtype.name, tensor.dtype))


def _is_array(value: Any) -> bool:
    if isinstance(value, bool | np.bool):
        return False
    return isinstance(value, jax.Array | np.ndarray | np.generic | int | float | complex)


def _spec(value: Any) -> Spec:
    return Spec(np.dtype(value.dtype), tuple(value.shape))


def _outputs(function: FlatFunction, values: Any) -> list:
    """Shapes and dtypes of all results."""
    found = leaves(function.results(list(map(_spec, values))))
    for k, tensor in enumerate(found):
        if tensor.shape is None or not all(type(n) is int for n in tensor.spec.shape):
            message = (
                f"{function.title}: the shape of result {k} is {tensor.spec}, and JAX must know it "
                f"before the run; reshape it to one that the arguments' shapes tell"
            )
            raise UnimplementedError(message)
    return [jax.ShapeDtypeStruct(tensor.spec.shape, tensor.dtype) for tensor in found]


def _floats(avals: Any) -> tuple[int, ...]:
    return tuple(k for k, aval in enumerate(avals) if jnp.issubdtype(aval.dtype, jnp.inexact))


# `_call` runs a function; `_linear` gives its derivative along directions, which are the last
# arguments, and is transposed to `_call` of the pullback.

_call, _linear = Primitive("nbta_call"), Primitive("nbta_linear")
_call.multiple_results = _linear.multiple_results = True


def _run(*values: Any, function: FlatFunction) -> list:
    return [jnp.asarray(found) for found in function(*map(np.asarray, values))]


def _abstract(*avals: Any, function: FlatFunction) -> list:
    found = _outputs(function, avals)
    return [jax.core.ShapedArray(each.shape, each.dtype) for each in found]


def _callback(*values: Any, function: FlatFunction) -> list:
    """What compiled programs do: they call back, with one item of a batch after another."""

    dtypes = [value.dtype for value in values]

    def run(*arrays: Any) -> list:
        arrays = list(map(np.asarray, arrays))
        if [array.dtype for array in arrays] != dtypes:
            message = (
                f"{function.title}: JAX has cast arguments on their way, as jax.enable_x64 holds "
                f"in one thread; use jax.config.update('jax_enable_x64', True)"
            )
            raise invalid("other_library", message)
        return function(*arrays)

    return jax.pure_callback(run, _outputs(function, values), *values, vmap_method="sequential")


def _derivative(primals: Any, tangents: Any, *, function: FlatFunction) -> Any:
    results = _call.bind(*primals, function=function)
    along = [not isinstance(tangent, ad.Zero) for tangent in tangents]
    wrt = tuple(k for k, each in enumerate(along) if each)
    outs = _floats(results)
    found = [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    if wrt and outs:
        given = [tangents[k] for k in wrt]
        slopes = _linear.bind(*primals, *given, function=function, wrt=wrt, outs=outs)
        for place, slope in zip(outs, slopes, strict=True):
            found[place] = slope
    return results, found


def _batch(values: Any, axes: Any, *, function: FlatFunction) -> Any:
    mask = tuple(axis is not None for axis in axes)
    moved = [jnp.moveaxis(v, a, 0) if m else v for v, a, m in zip(values, axes, mask, strict=True)]
    found = _call.bind(*moved, function=function.batched(mask))
    return found, [0] * len(found)


def _run_linear(*values: Any, function: FlatFunction, wrt: Any, outs: Any) -> list:
    return _run(*values, function=function.tangent(wrt, outs))


def _abstract_linear(*avals: Any, function: FlatFunction, wrt: Any, outs: Any) -> list:
    found = _abstract(*avals[: -len(wrt)], function=function)
    return [found[k] for k in outs]


def _callback_linear(*values: Any, function: FlatFunction, wrt: Any, outs: Any) -> list:
    return _callback(*values, function=function.tangent(wrt, outs))


def _derivative_linear(
    primals: Any, tangents: Any, *, function: FlatFunction, wrt: Any, outs: Any
) -> Any:
    return _derivative(primals, tangents, function=function.tangent(wrt, outs))


def _transpose(cotangents: Any, *values: Any, function: FlatFunction, wrt: Any, outs: Any) -> list:
    xs, directions = values[: -len(wrt)], values[-len(wrt) :]
    pairs = list(zip(wrt, directions, strict=True))
    wanted = tuple(place for place, each in pairs if ad.is_undefined_primal(each))
    given = [not isinstance(each, ad.Zero) for each in cotangents]
    chosen = tuple(k for k, each in zip(outs, given, strict=True) if each)
    # JAX transposes, where the gradients of complex numbers are adjoint.
    cotangents = [jnp.conj(c) for c, each in zip(cotangents, given, strict=True) if each]
    found = _call.bind(*xs, *cotangents, function=function.pullback(wanted, chosen))
    found = dict(zip(wanted, map(jnp.conj, found), strict=True))
    return [None] * len(xs) + [found.get(place) for place, _ in pairs]


def _batch_linear(values: Any, axes: Any, *, function: FlatFunction, wrt: Any, outs: Any) -> Any:
    count = len(values) - len(wrt)
    size = next(v.shape[a] for v, a in zip(values, axes, strict=True) if a is not None)
    by_direction = {k for k, a in zip(wrt, axes[count:], strict=True) if a is not None}
    mask = tuple(axes[k] is not None or k in by_direction for k in range(count))

    def first(value: Any, axis: Any, place: int) -> Any:
        if axis is not None:
            return jnp.moveaxis(value, axis, 0)
        return jnp.broadcast_to(value, (size, *value.shape)) if mask[place] else value

    places = [*range(count), *wrt]
    moved = list(map(first, values, axes, places))
    found = _linear.bind(*moved, function=function.batched(mask), wrt=wrt, outs=outs)
    return found, [0] * len(found)


_RULES = {
    _call: (_run, _abstract, _callback, _derivative, _batch),
    _linear: (_run_linear, _abstract_linear, _callback_linear, _derivative_linear, _batch_linear),
}
for _primitive, (_eager, _shapes, _compiled, _jvp, _items) in _RULES.items():
    _primitive.def_impl(_eager)
    _primitive.def_abstract_eval(_shapes)
    mlir.register_lowering(_primitive, mlir.lower_fun(_compiled, multiple_results=True))
    ad.primitive_jvps[_primitive] = _jvp
    batching.primitive_batchers[_primitive] = _items
ad.primitive_transposes[_linear] = _transpose
