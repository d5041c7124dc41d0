"""Functions as operations of PyTensor, and so of PyMC's models."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_type
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op

import nbta.api.in_njit  # noqa: F401 - tells Numba of functions
from nbta.errors import UnimplementedError
from nbta.graph.operation import Spec
from nbta.interop.flat import Door, FlatFunction
from nbta.structure import leaves, pack


def operation(f: Any, compiled: Any) -> Any:
    """The function that `nbta.interop.to_pytensor` returns."""
    door = Door(f, "to_pytensor", compiled)
    _register()

    @functools.wraps(f, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        function, arrays = door.flat(args, kwargs, _is_array)
        inputs = list(map(pt.as_tensor_variable, arrays))
        found = NbtaOp(function)(*inputs, return_list=True)
        return pack(function.results(list(map(_spec, inputs))), found)

    return call


def _is_array(value: Any) -> bool:
    if isinstance(value, bool | np.bool):
        return False
    return isinstance(value, Variable | np.ndarray | np.generic | int | float | complex)


def _spec(variable: Any) -> Spec:
    return Spec(np.dtype(variable.type.dtype), variable.type.shape)


def _is_float(variable: Any) -> bool:
    return not isinstance(variable.type, DisconnectedType) and variable.type.dtype[:1] in "fc"


@functools.cache
def _register() -> None:
    """Let PyTensor's Numba mode call operations natively, where PyTensor has one."""
    try:
        dispatch = importlib.import_module("pytensor.link.numba.dispatch.basic")
    except ImportError:
        return
    dispatch.numba_funcify.register(NbtaOp)(functools.partial(_in_njit, dispatch.numba_njit))


def _in_njit(njit: Any, op: NbtaOp, node: Any = None, **_: Any) -> Any:
    """What PyTensor's compiled code calls for an operation; numbers are arrays of rank 0 there."""
    names = "".join(f"x{k}, " for k in range(len(node.inputs)))
    found = [f"y[{k}]" if out.type.ndim else f"array(y[{k}])" for k, out in enumerate(node.outputs)]
    lines = [f"def run({names}):", f"    y = native({names})", f"    return {', '.join(found)}"]
    given = {"native": op.function.native, "array": np.asarray}
    exec("\n".join(lines), given)
    return njit(given["run"])


class NbtaOp(Op):
    """Runs a flat function; its gradients are other such operations, to any order."""

    __props__ = ("function",)

    def __init__(self, function: FlatFunction) -> None:
        self.function = function

    def make_node(self, *inputs: Any) -> Apply:
        """The operation on some variables."""
        inputs = list(map(pt.as_tensor_variable, inputs))
        found = leaves(self.function.results(list(map(_spec, inputs))))
        for k, tensor in enumerate(found):
            if tensor.shape is None:
                message = f"{self.function.title}: the rank of result {k} is not known; reshape it"
                raise UnimplementedError(message)
        shapes = [tuple(n if type(n) is int else None for n in t.spec.shape) for t in found]
        pairs = zip(found, shapes, strict=True)
        return Apply(self, inputs, [pt.tensor(dtype=t.dtype.name, shape=n) for t, n in pairs])

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Run."""
        for cell, found in zip(outputs, self.function(*inputs), strict=True):
            cell[0] = found

    def connection_pattern(self, node: Apply) -> list[list[bool]]:
        """Which results depend on which arguments, as far as there are derivatives."""
        outs = list(map(_is_float, node.outputs))
        return [[_is_float(x) and each for each in outs] for x in node.inputs]

    def L_op(self, inputs: Any, outputs: Any, cotangents: Any) -> list:  # noqa: N802
        """Gradients, from those of the results."""
        wrt = tuple(k for k, x in enumerate(inputs) if _is_float(x))
        outs = tuple(k for k, y in enumerate(outputs) if _is_float(y) and _is_float(cotangents[k]))
        found = [disconnected_type() for _ in inputs]
        if wrt and outs:
            pullback = NbtaOp(self.function.pullback(wrt, outs))
            given = [cotangents[k].astype(outputs[k].type.dtype) for k in outs]
            for place, x in zip(wrt, pullback(*inputs, *given, return_list=True), strict=True):
                found[place] = x
        return found

    def R_op(self, inputs: Any, tangents: Any) -> list:  # noqa: N802
        """Derivatives along directions of the arguments."""
        outputs = self.make_node(*inputs).outputs
        outs = tuple(k for k, y in enumerate(outputs) if _is_float(y))
        wrt = tuple(k for k, x in enumerate(tangents) if x is not None and _is_float(x))
        if not (wrt and outs):
            return [None] * len(outputs)
        tangent = NbtaOp(self.function.tangent(wrt, outs))
        along = tangent(*inputs, *(tangents[k] for k in wrt), return_list=True)
        found = dict(zip(outs, along, strict=True))
        return [found.get(k) for k in range(len(outputs))]
