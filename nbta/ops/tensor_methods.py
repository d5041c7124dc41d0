"""Operators and NumPy's functions on symbolic tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.immutable import FUNCTIONS, METHODS, ImmutableArray, refused
from nbta.ops.axes import diagonals, reductions, sorting, truths
from nbta.ops.core import arithmetic, shaping
from nbta.ops.core.dispatch import (
    OF_NUMPY,
    as_array,
    data_spec,
    dtype_of,
    in_our_names,
    known_as,
    library_of,
    nearest,
    sensible,
    strange,
)
from nbta.ops.core.numpy_arguments import refused_argument, resolved, settled
from nbta.ops.elementary import basic as elementary
from nbta.ops.elementary import integers, rounding
from nbta.ops.indexing import arranging, changes, gathering, joining, transposing
from nbta.ops.indexing import items as indexing
from nbta.ops.linalg import triangular as linalg
from nbta.ops.special import softmax
from nbta.ops.statistics import moments as statistics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def _among(tensor):
    return f"an array (the symbolic tensor {tensor.name} is among the arguments)"


def _array_ufunc(
    self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
) -> Any:
    """NumPy's universal functions, as far as there is an operation for them."""
    if out is not None or method == "at":
        kind = ".at" if method == "at" else " with out="
        raise refused(f"np.{ufunc.__name__}{kind}", _among(self))
    function, _ = OF_NUMPY.get(known_as(ufunc), (None, None))
    options = sensible(options)
    if options.get("order") in _ORDERS:
        options.pop("order")  # tensors lie nowhere
    if method == "__call__" and function is not None:
        inputs, dtype = _in_dtype_of_loop(ufunc, inputs, options)
        unknown = strange(function, inputs, options)
        if unknown:
            raise refused_argument(ufunc.__name__, unknown, tensor=self)
        found = function(*inputs, **options)
        if dtype is None:
            return found
        if isinstance(found, tuple):
            return tuple(shaping.cast(one, dtype) for one in found)
        return shaping.cast(found, dtype)
    found = _METHODS_OF_UFUNCS.get(method)
    result = NotImplemented if found is None else found(ufunc, inputs, options)
    if result is not NotImplemented:
        return result
    remedy = _plainly(ufunc) if function is not None else nearest(known_as(ufunc))
    if isinstance(ufunc, np.ufunc) and not library_of(ufunc):
        remedy = "its source is not known; use numba.vectorize without target=, or write a loop"
    what = _of_library(ufunc) + ("" if method == "__call__" else f".{method}")
    message = (
        f"{what} with {self.name!r}: nbta has no operation for this call on symbolic tensors; "
        f"{remedy}"
    )
    raise invalid("symbolic", message)


#: In which orders an array may lie in memory.
_ORDERS = ("C", "F", "A", "K")


def _in_dtype_of_loop(ufunc, inputs, options):
    """Arguments in the dtypes that ``dtype=`` and ``casting=`` choose, and that of the results."""
    if not {"dtype", "casting"} & set(options):
        return inputs, None
    dtype, casting = options.pop("dtype", None), options.pop("casting", "same_kind")
    inputs = [v if dtype_of(v) is not None else as_array(v) for v in inputs]
    takes, gives = resolved(ufunc, [dtype_of(value) for value in inputs], dtype, casting)
    return [shaping.cast(v, kind) for v, kind in zip(inputs, takes, strict=True)], gives[0]


#: Universal functions that give integers what they are, where NumPy has a loop for that.
_WHOLE = {"floor", "ceil", "trunc"}


def called_in_dtypes(ufunc: np.ufunc, ours: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """A universal function in the dtypes of NumPy's loop, where these are not what nbta takes.

    Functions of integers of 8 and 16 bits are computed in float16 and float32.
    """
    kinds = [dtype_of(value) for value in inputs]
    known = [kind for kind in kinds if kind is not None and not isinstance(kind, type)]
    small = any(kind.kind in "biu" and kind.itemsize < 4 for kind in known)
    whole = ufunc.__name__ in {*_WHOLE, "fabs"} and any(kind.kind in "biu" for kind in known)
    if None in kinds or ufunc.signature is not None or not (small or whole):
        return ours(*inputs)
    if library_of(ufunc) != "np":
        return ours(*inputs)
    try:
        takes, gives = resolved(ufunc, kinds, None, "same_kind")
    except TypeError:  # nbta's function says what it takes
        return ours(*inputs)
    if ufunc.__name__ in _WHOLE and gives[0].kind in "biu":
        return shaping.identity(inputs[0])
    inputs = [
        value if isinstance(kind, type) or kind == take else shaping.cast(value, take)
        for value, kind, take in zip(inputs, kinds, takes, strict=True)
    ]
    found = ours(*inputs)
    if isinstance(found, tuple) or found.dtype == gives[0]:
        return found
    return shaping.cast(found, gives[0])


def _of_library(ufunc):
    """A universal function's name, with what is imported for it."""
    library = library_of(ufunc) if isinstance(ufunc, np.ufunc) else ""
    return f"{library}.{ufunc.__name__}" if library else f"the function {ufunc.__name__!r}"


def _plainly(ufunc):
    """How to call what there is an operation for."""
    found = f"nbta.{OF_NUMPY[known_as(ufunc)][0].__name__}"
    return f"write it with {found}"


#: What the methods of universal functions are, and whether they take a dtype.
_REDUCTIONS = {
    np.add: reductions.sum, np.multiply: reductions.prod,
    np.maximum: reductions.max, np.minimum: reductions.min,
    np.logical_and: truths.all, np.logical_or: truths.any,
    np.logaddexp: softmax.logsumexp,
}  # fmt: skip
_SCANS = {
    np.add: reductions.cumsum, np.multiply: reductions.cumprod,
    np.maximum: reductions.cummax, np.minimum: reductions.cummin,
}  # fmt: skip


def _reduce(ufunc, inputs, options):
    """Along the first axis, unless another one is given."""
    return _along_axis(_REDUCTIONS.get(ufunc), inputs, options)


def _accumulate(ufunc, inputs, options):
    return _along_axis(_SCANS.get(ufunc), inputs, options)


def _along_axis(function, inputs, options):
    options = {"axis": inputs[1] if len(inputs) > 1 else 0, **options}
    if function is None or len(inputs) > 2 or strange(function, inputs[:1], options):
        return NotImplemented
    return function(inputs[0], **options)


def _outer(ufunc, inputs, options):
    """Each of the first with each of the second."""
    function, _ = OF_NUMPY.get(known_as(ufunc), (None, None))
    ranks = [data_spec(v if isinstance(v, Tensor) else as_array(v)).rank for v in inputs]
    if function is None or options or None in ranks:
        return NotImplemented
    one, other = inputs
    return function(indexing.getitem(one, (..., *[None] * ranks[1])), other)


_METHODS_OF_UFUNCS = {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer}


def _array_function(
    self,
    function: Callable[..., Any],
    types: Iterable[type],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """NumPy's other functions, as far as there is an operation for them."""
    name = function.__name__
    if name in FUNCTIONS or kwargs.get("out") is not None:
        out = "" if name in FUNCTIONS else " with out="
        raise refused(f"np.{name}{out}", _among(self))
    ours, shared = OF_NUMPY.get(known_as(function), (None, None))
    if shared is None:
        message = (
            f"np.{known_as(function)} with {self.name!r}: nbta has no such operation on symbolic "
            f"tensors; {nearest(name)}"
        )
        raise invalid("symbolic", message)
    args, kwargs = settled(function, args, kwargs)
    kwargs = in_our_names(function, ours, shared, sensible(kwargs))
    unknown = strange(ours, args, kwargs)
    if unknown:
        raise refused_argument(known_as(function), unknown, tensor=self)
    if len(args) > shared:
        message = (
            f"np.{known_as(function)} with {self.name!r}: give all after the first {shared} "
            f"arguments by name, as NumPy's order differs here"
        )
        raise invalid("symbolic", message)
    return ours(*args, **kwargs)


def _operator(function):
    def method(self: Tensor, other: Any) -> Tensor:
        return function(self, other)

    return method


def _reflected(function):
    def method(self: Tensor, other: Any) -> Tensor:
        return function(other, self)

    return method


def plus(x: Any, y: Any) -> Any:
    """``+``. Two truth values are 0, 1 or 2 in Python and Numba, and a truth value in NumPy."""
    specs = [data_spec(v if isinstance(v, Tensor) else as_array(v)) for v in (x, y)]
    if all(spec.dtype.kind == "b" and spec.rank == 0 for spec in specs):
        message = (
            "the sum of two truth values is a number in Python and a truth value in NumPy; write "
            "int(a) + int(b) to count them, or a | b"
        )
        raise invalid("dtype", message)
    return arithmetic.add(x, y)


def _divmod(x, y):
    return arithmetic.floor_divide(x, y), arithmetic.mod(x, y)


def _inverted(self: Tensor) -> Tensor:
    return arithmetic.logical_not(self) if self.dtype.kind == "b" else integers.invert(self)


def _logic(of_truth, of_bits):
    """An operator of truth values, which works bit by bit on integers."""

    def combined(*values):
        specs = [data_spec(v if isinstance(v, Tensor) else as_array(v)) for v in values]
        function = of_truth if all(spec.dtype.kind == "b" for spec in specs) else of_bits
        return function(*values)

    return combined


def _install():
    arithmetic_operators = {
        "add": plus, "sub": arithmetic.subtract, "mul": arithmetic.multiply,
        "truediv": arithmetic.divide, "floordiv": arithmetic.floor_divide,
        "mod": arithmetic.mod, "pow": elementary.power, "matmul": linalg.matmul,
        "and": _logic(arithmetic.logical_and, integers.bitwise_and),
        "or": _logic(arithmetic.logical_or, integers.bitwise_or),
        "xor": integers.bitwise_xor, "lshift": integers.left_shift,
        "rshift": integers.right_shift, "divmod": _divmod,
    }  # fmt: skip
    for name, function in arithmetic_operators.items():
        setattr(Tensor, f"__{name}__", _operator(function))
        setattr(Tensor, f"__r{name}__", _reflected(function))
    comparisons = {
        "lt": arithmetic.less, "le": arithmetic.less_equal, "gt": arithmetic.greater,
        "ge": arithmetic.greater_equal, "eq": arithmetic.equal, "ne": arithmetic.not_equal,
    }  # fmt: skip
    for name, function in comparisons.items():
        setattr(Tensor, f"__{name}__", _operator(function))
    Tensor.__neg__ = arithmetic.negative
    Tensor.__pos__ = shaping.identity
    Tensor.__abs__ = elementary.abs
    Tensor.__invert__ = _inverted
    Tensor.__getitem__ = indexing.getitem
    Tensor.__array_ufunc__ = _array_ufunc
    Tensor.__array_function__ = _array_function
    Tensor.T = property(linalg.transpose, doc="Axes in the opposite order.")
    Tensor.at = ImmutableArray.at = property(changes.At, doc="See `nbta.at`.")
    for name in ("sum", "mean", "max", "min", "prod", "argmax", "argmin", "cumsum", "cumprod"):
        setattr(Tensor, name, getattr(reductions, name))
    for family, names in _OF_FAMILIES.items():
        for name in names.split():
            setattr(Tensor, name, getattr(family, name))
    for name, method in _METHODS.items():
        setattr(Tensor, name, method)
    Tensor.dtype = Tensor.dtype.setter(assigned("dtype"))
    Tensor.flat = property(_flat)
    for name in METHODS:
        setattr(Tensor, name, _changing(name))


def _changing(name):
    def method(self: Tensor, *args: Any, **options: Any) -> NoReturn:
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


def _reshape(self, *shape: Any) -> Tensor:
    """The same elements in another shape; see `nbta.reshape`.

    Parameters
    ----------
    *shape : int or Tensor, or one tuple of them
        The shape.

    Returns
    -------
    Tensor
        Of the given shape.
    """
    return shaping.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self, *axes: Any) -> Tensor:
    """The tensor with its axes in another order; see `nbta.transpose`.

    Parameters
    ----------
    *axes : int, or one tuple of them
        Axes of the tensor, in their new order; by default the order is reversed.

    Returns
    -------
    Tensor
        The same elements.
    """
    return linalg.transpose(self, (axes[0] if len(axes) == 1 else axes) or None)


def _copy(self, order: str = "C", *, name: str | None = None) -> Tensor:
    """The same values; see `nbta.identity`.

    Parameters
    ----------
    order : str, default "C"
        Accepted for compatibility with NumPy; tensors have no memory layout.
    name : str, optional
        Name of the operation.

    Returns
    -------
    Tensor
        The same values, as another tensor.
    """
    return shaping.identity(self, name=name)


_METHODS = {
    "copy": _copy,
    "flatten": arranging.ravel,
    "reshape": _reshape,
    "squeeze": joining.squeeze,
    "transpose": _transpose,
    "astype": shaping.cast,
    "conjugate": arithmetic.conj,
}
#: Methods that are functions of the tensor, by their module.
_OF_FAMILIES = {
    arranging: "ravel repeat",
    diagonals: "diagonal trace",
    arithmetic: "clip conj",
    rounding: "round",
    statistics: "std var",
    truths: "all any",
    gathering: "take",
    transposing: "swapaxes",
    sorting: "argpartition argsort searchsorted",
}
_install()
