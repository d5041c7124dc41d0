"""Gradients for arrays with labels: values in, the labels of an argument on its gradient."""

from __future__ import annotations

import functools
import itertools
import sys
from typing import Any

import numpy as np

from nbta.api.filling import gradient_place
from nbta.api.tracing import Function
from nbta.errors import InvalidArgumentError, invalid

#: Kinds of arrays with labels, by module and class.
_KINDS = {("pandas", "Series"), ("pandas", "DataFrame"), ("xarray", "DataArray")}


def labelled(g: Any) -> Any:
    """The function that `nbta.interop.with_labels` returns."""
    chosen = getattr(getattr(g, "_f", None), "chosen", None)
    if not isinstance(g, Function) or chosen is None:
        message = "with_labels: give what nbta.grad or nbta.value_and_grad makes, of one item"
        raise invalid("argument", message)

    @functools.wraps(g, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        found: list[tuple[str, Any]] = []
        values = [_values(f"args[{k}]", arg, found) for k, arg in enumerate(args)]
        named = {key: _values(key, arg, found) for key, arg in kwargs.items()}
        for one, other in itertools.combinations(found, 2):
            _check_pair(one, other)
        result = g(*values, **named)
        given = [kwargs[p] if isinstance(p, str) else args[p] for p in chosen.places(args, kwargs)]
        like = given[0] if chosen.alone else tuple(given)
        place = gradient_place(g._pick)
        if place is None:
            return _with_labels(like, result)
        return tuple(_with_labels(like, r) if k == place else r for k, r in enumerate(result))

    return call


def _kind(value: Any) -> tuple[str, str] | None:
    """Library and class of an array with labels; None for anything else."""
    names = ((base.__module__.partition(".")[0], base.__name__) for base in type(value).__mro__)
    return next((name for name in names if name in _KINDS), None)


def _values(path: str, part: Any, found: list[tuple[str, Any]]) -> Any:
    """A structure with the values of arrays with labels, which are put in a list."""
    if isinstance(part, dict):
        return {key: _values(f"{path}[{key!r}]", value, found) for key, value in part.items()}
    if isinstance(part, list | tuple):
        parts = [_values(f"{path}[{k}]", value, found) for k, value in enumerate(part)]
        return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)
    if (kind := _kind(part)) is None:
        return part
    found.append((path, part))
    dtypes = list(part.dtypes) if kind[1] == "DataFrame" else [part.dtype]
    if not all(isinstance(each, np.dtype) and each.kind in "biufc" for each in dtypes):
        bad = next(d for d in dtypes if not isinstance(d, np.dtype) or d.kind not in "biufc")
        message = f"{path}: a {kind[1]} has dtype {bad}; convert it to a numeric dtype of NumPy's"
        raise invalid("other_library", message)
    if len(set(dtypes)) > 1:
        names = ", ".join(sorted({str(each) for each in dtypes}))
        message = f"{path}: columns have dtypes {names}; convert all to one, as by .astype(float)"
        raise invalid("other_library", message)
    return part.to_numpy()


def _check_pair(one: tuple[str, Any], other: tuple[str, Any]) -> None:
    """Refuse arguments whose items have the same labels in other places."""
    (first, a), (second, b) = one, other
    libraries = {_kind(a)[0], _kind(b)[0]}  # type: ignore[index] # which have one
    if len(libraries) > 1:
        message = f"{first} and {second} are of pandas and of xarray; give all of one library"
        raise invalid("other_library", message)
    if "pandas" in libraries:
        for x, y in itertools.product(_axes(a), _axes(b)):
            if not _agree(x, y):
                raise _misaligned(first, second, "have some labels in common, in other places")
        return
    shared = [name for name in a.dims if name in b.dims]
    if shared != [name for name in b.dims if name in a.dims]:
        raise _misaligned(first, second, f"have dimensions {a.dims} and {b.dims}")
    for name in shared:
        sizes = a.sizes[name] == b.sizes[name]
        both = name in a.indexes and name in b.indexes
        if not sizes or (both and not a.indexes[name].equals(b.indexes[name])):
            raise _misaligned(first, second, f"have other labels along {name!r}")


def _axes(value: Any) -> list[Any]:
    return [value.index] if _kind(value) == ("pandas", "Series") else [value.index, value.columns]


def _agree(one: Any, other: Any) -> bool:
    """Whether equal labels of two axes are in equal places, or there are none.

    Numbers from 0, which pandas gives where nobody gives labels, are none for another length.
    """
    if one.equals(other):
        return True
    ranges = sys.modules["pandas"].RangeIndex
    is_default = [isinstance(i, ranges) and i.start == 0 and i.step == 1 for i in (one, other)]
    if any(is_default) and len(one) != len(other):
        return True
    return not len(one.intersection(other))


def _misaligned(first: str, second: str, why: str) -> InvalidArgumentError:
    message = (
        f"{first} and {second} {why}, and the function sees values alone; align them first "
        f"(pandas: a.align(b), xarray: xarray.align), or give .to_numpy()"
    )
    return invalid("other_library", message)


def _with_labels(like: Any, gradient: Any) -> Any:
    """A gradient with the labels of arguments."""
    if isinstance(like, dict):
        return {key: _with_labels(like[key], gradient[key]) for key in like}
    if isinstance(like, list | tuple):
        parts = [_with_labels(own, part) for own, part in zip(like, gradient, strict=True)]
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    kind = _kind(like)
    if kind is None:
        return gradient
    made = getattr(sys.modules[kind[0]], kind[1])
    if kind[1] == "Series":
        return made(gradient, index=like.index, name=like.name)
    if kind[1] == "DataFrame":
        return made(gradient, index=like.index, columns=like.columns)
    return made(gradient, coords=like.coords, dims=like.dims, name=like.name)
