"""Operators and NumPy's functions on symbolic tensors."""

import functools

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.immutable import FUNCTIONS, METHODS, refused
from nbta.ops import (
    arithmetic,
    comparison,
    elementary,
    indexing,
    joining,
    linalg,
    reductions,
    shaping,
)
from nbta.ops.dispatch import OF_NUMPY, as_array, data_spec


def _among(tensor):
    return f"an array (the symbolic tensor {tensor.name} is among the arguments)"


def _array_ufunc(self, ufunc, method, *inputs, out=None, **options):
    """NumPy's universal functions, as far as there is an operation for them."""
    function, _ = OF_NUMPY.get(ufunc.__name__, (None, None))
    options.pop("dtype", None) if options.get("dtype", 0) is None else None
    if method == "reduce" and ufunc in _REDUCTIONS:
        function, method = _REDUCTIONS[ufunc], "__call__"
        inputs = (*inputs, options.pop("axis", 0), options.pop("keepdims", False))
    if out is not None or method == "at":
        kind = ".at" if method == "at" else " with out="
        raise refused(f"np.{ufunc.__name__}{kind}", _among(self))
    if method != "__call__" or options or function is None:
        what = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        message = (
            f"{what} with {self.name!r}: nbta has no operation for this call on symbolic tensors; "
            f"use nbta's own functions, without where="
        )
        raise invalid("symbolic", message)
    return function(*inputs)


_REDUCTIONS = {
    np.add: reductions.sum, np.multiply: reductions.prod,
    np.maximum: reductions.max, np.minimum: reductions.min,
}  # fmt: skip


def _array_function(self, function, types, args, kwargs):
    """NumPy's other functions, as far as there is an operation for them."""
    name = function.__name__
    if name in FUNCTIONS or kwargs.get("out") is not None:
        out = "" if name in FUNCTIONS else " with out="
        raise refused(f"np.{name}{out}", _among(self))
    ours, shared = OF_NUMPY.get(name, (None, None))
    if shared is None:
        module = function.__module__.replace("numpy", "np", 1)
        message = (
            f"{module}.{function.__name__} with {self.name!r}: nbta has no such operation on "
            f"symbolic tensors; wrap a function of your own with nbta.custom_gradient"
        )
        raise invalid("symbolic", message)
    if len(args) > shared:
        message = (
            f"np.{name} with {self.name!r}: give what is behind the first {shared} arguments by "
            f"name, as NumPy's order is another one here"
        )
        raise invalid("symbolic", message)
    return ours(*args, **kwargs)


def _operator(function):
    def method(self, other):
        return function(self, other)

    return method


def _reflected(function):
    def method(self, other):
        return function(other, self)

    return method


def _of_truth(function):
    """An operator that works bit by bit on integers, for which there is no operation."""

    @functools.wraps(function)
    def checked(*values):
        for value in values:
            spec = data_spec(value if isinstance(value, Tensor) else as_array(value))
            if spec.dtype.kind != "b":
                message = (
                    f"the operators &, | and ~ are for truth values, and one is given {spec}; "
                    f"compare it first, or use nbta.{function.__name__}"
                )
                raise invalid("dtype", message)
        return function(*values)

    return checked


def _install():
    arithmetic_operators = {
        "add": arithmetic.add, "sub": arithmetic.subtract, "mul": arithmetic.multiply,
        "truediv": arithmetic.divide, "floordiv": arithmetic.floor_divide,
        "mod": arithmetic.mod, "pow": elementary.power, "matmul": linalg.matmul,
        "and": _of_truth(comparison.logical_and), "or": _of_truth(comparison.logical_or),
    }  # fmt: skip
    for name, function in arithmetic_operators.items():
        setattr(Tensor, f"__{name}__", _operator(function))
        setattr(Tensor, f"__r{name}__", _reflected(function))
    comparisons = {
        "lt": comparison.less, "le": comparison.less_equal, "gt": comparison.greater,
        "ge": comparison.greater_equal, "eq": comparison.equal, "ne": comparison.not_equal,
    }  # fmt: skip
    for name, function in comparisons.items():
        setattr(Tensor, f"__{name}__", _operator(function))
    Tensor.__neg__ = arithmetic.negative
    Tensor.__pos__ = shaping.identity
    Tensor.__abs__ = elementary.abs
    Tensor.__invert__ = _of_truth(comparison.logical_not)
    Tensor.__getitem__ = indexing.getitem
    Tensor.__array_ufunc__ = _array_ufunc
    Tensor.__array_function__ = _array_function
    Tensor.T = property(linalg.transpose, doc="Axes in the opposite order.")
    for name in ("sum", "mean", "max", "min", "prod", "argmax", "cumsum"):
        setattr(Tensor, name, getattr(reductions, name))
    for name in ("reshape", "squeeze", "transpose", "astype"):
        setattr(Tensor, name, _METHODS[name])
    Tensor.dtype = Tensor.dtype.setter(assigned("dtype"))
    Tensor.flat = property(_flat)
    for name in METHODS:
        setattr(Tensor, name, _changing(name))


def _changing(name):
    def method(self, *args, **options):
        raise refused(f".{name}()", f"{self.name}, a symbolic tensor,")

    return method


def assigned(name):
    """What refuses to set an attribute of a tensor."""

    def method(self, value=None):
        raise refused(f"an assignment to .{name}", f"{self.name}, a symbolic tensor,")

    return method


def _flat(self):
    """Refused by the error that ``hasattr`` takes for a no."""
    raise AttributeError(str(refused("the iterator .flat", f"{self.name}, a symbolic tensor,")))


def _reshape(self, *extents):
    """See `nbta.reshape`."""
    return shaping.reshape(self, extents[0] if len(extents) == 1 else extents)


def _transpose(self, *axes):
    """See `nbta.transpose`."""
    return linalg.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)


_METHODS = {
    "reshape": _reshape,
    "squeeze": joining.squeeze,
    "transpose": _transpose,
    "astype": shaping.cast,
}
_install()
