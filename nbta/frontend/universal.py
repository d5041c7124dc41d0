"""Universal functions that users made, by Numba or np.vectorize, followed by their source.

A kernel of `vectorize` is called for each item, one of `guvectorize` for each of the arrays that
its signature names, in loops of Python's that are converted as the user's own code is.
"""

from __future__ import annotations

import numpy as np

from nbta.errors import UnimplementedError, invalid
from nbta.frontend import conversion, native
from nbta.frontend.array_wrappers import new_array, wrapped
from nbta.frontend.problems import here
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import zeros
from nbta.ops.core.shaping import cast, reshape
from nbta.ops.indexing.arranging import broadcast_arrays
from nbta.runtime.numba_private import universal_function


def call_universal(function, args, kwargs):
    """A call of a universal function of Numba's with values that only the run knows."""
    if isinstance(function, np.vectorize):
        return _numpys(function, args, kwargs)
    loops = universal_function(function)
    out = kwargs.pop("out", None)
    out = out if isinstance(out, tuple) or out is None else (out,)
    args, out = args[: loops.inputs], args[loops.inputs :] or out
    if kwargs:
        message = (
            f"{here()}: {function.__name__} is called with {next(iter(kwargs))}=, which nbta does "
            f"not take for universal functions of Numba's; leave it out"
        )
        raise UnimplementedError(message)
    if len(args) < loops.inputs or (out is not None and len(out) != loops.outputs):
        count = f"{loops.inputs} arguments, and {loops.outputs} arrays for results or none"
        raise TypeError(f"{here()}: {function.__name__} takes {count}")
    if loops.signature and not loops.declared and out is None:
        message = f"{here()}: {function.__name__} has no declared types; give the array to fill too"
        raise TypeError(message)  # Numba refuses it as well
    args, dtypes = _in_declared_dtypes(function.__name__, loops, args)
    if loops.signature is None:
        found = (_of_items(loops.kernel, args, dtypes[0]),)
    else:
        found = _of_parts(function.__name__, loops, args, out, dtypes)
    if out is not None:
        for target, value in zip(out, found, strict=True):
            target[...] = value
        found = out
    return found[0] if len(found) == 1 else tuple(found)


def _numpys(function, args, kwargs):
    """A call of a function of ``np.vectorize``."""
    given = {
        "a keyword argument": kwargs,
        "excluded=": function.excluded,
        "signature=": function.signature,
        "several otypes=": (function.otypes or "")[1:],
    }
    strange = next((name for name, value in given.items() if value), None)
    if strange is not None:
        message = (
            f"{here()}: a function of np.vectorize has {strange}, which nbta does not take where "
            f"only the run knows a value; write a loop over the items"
        )
        raise UnimplementedError(message)
    return _of_items(function.pyfunc, args, np.dtype(function.otypes) if function.otypes else None)


def _in_declared_dtypes(name, loops, args):
    """Arguments in the dtypes of the first declared loop that takes them; those of the results.

    Without declared types Numba compiles a loop for the dtypes that come; None then.
    """
    if not loops.declared:
        return list(args), [None] * loops.outputs
    for takes, gives in loops.declared:
        if all(map(_goes_into, args, takes)):
            return [_cast(arg, dtype) for arg, dtype in zip(args, takes, strict=True)], gives
    kinds = ", ".join(str(native.dtype_of(arg)) for arg in args)
    known = "; ".join(", ".join(map(str, takes)) for takes, _ in loops.declared)
    raise invalid("dtype", f"{here()}: {name} is declared for {known}, and is given {kinds}")


def _goes_into(arg, dtype):
    weak = isinstance(arg, int | float | complex) and not isinstance(arg, bool | np.generic)
    return np.can_cast(np.min_scalar_type(arg) if weak else native.dtype_of(arg), dtype, "safe")


def _cast(arg, dtype):
    if native.is_known(arg):
        return np.asarray(native.plain(arg)).astype(dtype)[()]
    return wrapped(cast(as_tensor(native.plain(arg)), dtype))


def _of_items(kernel, args, dtype):
    """What a kernel gives for each item, with broadcasting."""
    args = [native.together(a) if isinstance(a, list | tuple) else native.plain(a) for a in args]
    arrays = list(filter(_has_axes, args))
    if not arrays:
        return _as_dtype(conversion.converted(_one)(kernel, args), dtype)
    arrays = broadcast_arrays(*arrays)
    rest, shape = iter(arrays), arrays[0].shape
    given = [
        (wrapped(reshape(next(rest), (-1,))), True) if _has_axes(arg) else (arg, False)
        for arg in args
    ]
    count = next(arg for arg, axes in given if axes).shape[0]
    found = conversion.converted(_each_item)(kernel, given, count)
    if found.ndim != 1:
        message = f"{here()}: {kernel.__name__} gives more than one number for each item"
        raise UnimplementedError(f"{message}; give each by a function of its own, or write a loop")
    return wrapped(reshape(native.plain(_as_dtype(found, dtype)), shape))


def _has_axes(arg):
    return getattr(arg, "ndim", 0) > 0


def _as_dtype(value, dtype):
    return value if dtype is None else _cast(value, dtype)


def _one(kernel, args):
    return kernel(*args)


def _each_item(kernel, args, count):
    return np.array([kernel(*[a[i] if axes else a for a, axes in args]) for i in range(count)])


def _of_parts(name, loops, args, out, dtypes):
    """What a kernel leaves in arrays that it fills, for all parts that its signature names."""
    takes, gives = loops.signature
    args = [wrapped(as_tensor(native.plain(arg))) for arg in args]
    depths = [arg.ndim - len(core) for arg, core in zip(args, takes, strict=True)]
    if min(depths) < 0:
        worst = depths.index(min(depths))
        message = f"argument {worst} has {args[worst].ndim} axes, and ({', '.join(takes[worst])})"
        raise invalid("shape", f"{here()}: {name}: {message} in its signature")
    sizes = _sizes(name, args, takes, depths)
    around = [sizes[axis] for axis in range(-max(depths), 0)]
    targets = []
    for k, core in enumerate(gives):
        shape = (*around, *([sizes[each] for each in core] or [1]))
        target = new_array(zeros(shape, dtypes[k] or native.dtype_of(out[k])))
        if out is not None:
            target[...] = out[k] if core else out[k][..., None]
        targets.append(target)
    args = [
        arg[..., None] if is_array and not core else arg
        for arg, core, is_array in zip(args, takes, loops.is_array, strict=True)
    ]
    if around:
        keys = [_key(arg, depth, len(around)) for arg, depth in zip(args, depths, strict=True)]
        given = list(zip(args, keys, strict=True))
        conversion.converted(_each_part)(loops.kernel, given, targets, around)
    else:
        conversion.converted(_one)(loops.kernel, [*args, *targets])
    return [t if core else t[..., 0] for t, core in zip(targets, gives, strict=True)]


def _sizes(name, args, takes, depths):
    """Lengths by the name of an axis, or by its place among those that loops go along."""
    found = {}
    for arg, core, depth in zip(args, takes, depths, strict=True):
        for axis, length in zip((*range(-depth, 0), *core), arg.shape, strict=True):
            known = found.get(axis)
            if known is None or (isinstance(axis, int) and _is_one(known)):
                found[axis] = length
            elif not (isinstance(axis, int) and _is_one(length)) and length is not known:
                alike = as_tensor(length) == as_tensor(known)
                message = f"{name}: arrays have other lengths along the axis {axis}"
                found[axis] = checked(as_tensor(known), alike, message)
    return found


def _is_one(length):
    return isinstance(length, int) and length == 1


def _key(arg, depth, axes):
    """Which indices of the loops pick a part of an array; None where it has one for all."""
    lengths = enumerate(arg.shape[:depth], axes - depth)
    return [None if _is_one(length) else axis for axis, length in lengths]


def _each_part(kernel, args, targets, around):
    for place in np.ndindex(*around):
        parts = [
            a[tuple([0 if axis is None else place[axis] for axis in key])] if key else a
            for a, key in args
        ]
        kernel(*parts, *[target[place] for target in targets])
