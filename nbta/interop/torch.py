"""Functions as operations of PyTorch, by an autograd function that is its own derivative's kind."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from nbta.errors import invalid
from nbta.graph.operation import Spec
from nbta.interop.flat import Door, FlatFunction
from nbta.structure import pack


def operation(f: Any, compiled: Any) -> Any:
    """The function that `nbta.interop.to_torch` returns."""
    door = Door(f, "to_torch", compiled)

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        function, arrays = door.flat(args, kwargs, _is_array)
        tensors = [a if isinstance(a, torch.Tensor) else _tensor(a) for a in arrays]
        for tensor in tensors:
            if (why := _unlike_numpy(tensor)) is not None:
                raise invalid("argument", f"{door.title}: a tensor is {why}")
        found = _Call.apply(function, *tensors)
        return pack(function.results(list(map(_spec, tensors))), found)

    return call


def _is_array(value: Any) -> bool:
    if isinstance(value, bool | np.bool):
        return False
    return isinstance(value, torch.Tensor | np.ndarray | np.generic | int | float | complex)


def _unlike_numpy(tensor: torch.Tensor) -> str | None:
    """Why NumPy has no array like a tensor, and what to give instead; None where it has one."""
    if tensor.device.type != "cpu":
        return f"on {tensor.device}; give tensor.cpu()"
    if tensor.layout != torch.strided:
        return f"of layout {tensor.layout}; give tensor.to_dense()"
    if tensor.is_quantized:
        return f"of dtype {tensor.dtype}; give tensor.dequantize()"
    if tensor.dtype not in _DTYPES:
        return f"of dtype {tensor.dtype}, which NumPy does not have; give tensor.float()"
    return None


def _tensor(value: Any) -> torch.Tensor:
    """An array of NumPy's, or a number, as a tensor."""
    return torch.from_numpy(np.array(value))


def _array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's items, in its memory where that may be."""
    return tensor.detach().resolve_conj().resolve_neg().numpy()


def _spec(tensor: torch.Tensor) -> Spec:
    return Spec(_DTYPES[tensor.dtype], tuple(tensor.shape))


_NAMES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_NAMES += ["bool", "float16", "float32", "float64", "complex64", "complex128"]
#: Those of NumPy by PyTorch's; tensors are not asked, as those of torch.func have no items.
_DTYPES = {getattr(torch, name): np.dtype(name) for name in _NAMES if hasattr(torch, name)}


class _Call(torch.autograd.Function):
    """Runs a flat function; its derivatives are others, to any order."""

    @staticmethod
    def forward(function: FlatFunction, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(map(_tensor, function(*map(_array, tensors))))

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.function, *tensors = inputs
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)
        ctx.set_materialize_grads(False)
        ctx.outs = tuple(k for k, y in enumerate(output) if _is_float(y))
        ctx.mark_non_differentiable(*(y for y in output if not _is_float(y)))

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        tensors = ctx.saved_tensors
        needed = ctx.needs_input_grad[1:]
        wrt = tuple(k for k, each in enumerate(needed) if each)
        outs = tuple(k for k in ctx.outs if cotangents[k] is not None)
        if not (wrt and outs):
            return (None,) * (len(tensors) + 1)
        given = [cotangents[k] for k in outs]
        found = _Call.apply(ctx.function.pullback(wrt, outs), *tensors, *given)
        found = dict(zip(wrt, found, strict=True))
        return None, *(found.get(k) for k in range(len(tensors)))

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        wrt = tuple(k for k, tangent in enumerate(tangents) if tangent is not None)
        given = [tangents[k] for k in wrt]
        function = ctx.function.tangent(wrt, ctx.outs)
        found = _Call.apply(function, *ctx.saved_tensors, *given)
        found = dict(zip(ctx.outs, found, strict=True))
        return tuple(found.get(k) for k in range(max(found, default=-1) + 1))

    @staticmethod
    def vmap(info: Any, axes: Any, function: FlatFunction, *tensors: torch.Tensor) -> Any:
        mask = tuple(axis is not None for axis in axes[1:])
        pairs = zip(tensors, axes[1:], strict=True)
        moved = [x if axis is None else x.movedim(axis, 0) for x, axis in pairs]
        found = _Call.apply(function.batched(mask), *moved)
        return found, (0,) * len(found)


def _is_float(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
