"""Functions of `numba.stencil`: loops over the items for which their kernels are called.

A kernel reads items of its arrays at places relative to the one that it gives. How far it reaches
is told by its constant indices, or by ``neighborhood``; items at the border are ``cval``, or 0.
"""

from __future__ import annotations

import numba
import numpy as np

from nbta.errors import UnimplementedError
from nbta.frontend import native
from nbta.frontend.array_wrappers import ArrayWrapper
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.runtime.numba_private import kernel_indices, kernel_type


def unrolled(function, args, out=None):
    """What `nbta.frontend.followed.stencil` is called with for a call of a stencil."""
    kernel, names = function.kernel_ir.func_id.func, function.kernel_ir.arg_names
    if not args or not isinstance(args[0], ArrayWrapper) or args[0].shape is None:
        raise TypeError(f"{here()}: the first argument of a stencil must be an array")
    standard = function.options.get("standard_indexing", ())
    relative = tuple(
        isinstance(arg, ArrayWrapper) and name not in standard
        for name, arg in zip(names, args, strict=True)
    )
    reach = function.neighborhood or _reach(function, names, relative, args[0].ndim)
    if len(reach) != args[0].ndim:
        raise ValueError(
            f"{here()}: {len(reach)} dimensional neighborhood specified for {args[0].ndim} "
            f"dimensional input array"
        )
    border = [(max(0, -before), max(0, after)) for before, after in reach]
    cval = function.options.get("cval", 0 if out is None else None)
    dtype = kernel_type(function, tuple(map(_type_of, args)))  # Numba refuses other kernels
    return kernel, args, relative, border, cval, dtype, out


def _reach(function, names, relative, ndim):
    """How far a kernel reaches along each axis, by its indices."""
    arrays = [name for name, is_relative in zip(names, relative, strict=True) if is_relative]
    found = kernel_indices(function, arrays)
    if found is None:
        raise UnimplementedError(
            f"{here()}: a kernel of numba.stencil has indices that are no constants; give "
            f"numba.stencil its neighborhood"
        )
    columns = list(zip(*found, strict=True)) or [(0,)] * ndim
    return [(min(0, *column), max(0, *column)) for column in columns]


def _type_of(value):
    """The type that Numba has for a value."""
    if not isinstance(value, Tensor):
        return numba.typeof(native.plain(value))
    item = numba.from_dtype(np.dtype(value.dtype))
    return numba.types.Array(item, value.ndim, "C") if value.ndim else item
