"""Gradients that are written to arrays which the caller gives: ``out=``."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from nbta.api.static import parameters_of
from nbta.errors import invalid
from nbta.structure import layout, leaves, paths

#: Which functions fill arrays, by what makes them.
FILLING = ("grad", "value_and_grad")


def takes_out(function: Any) -> bool:
    """Whether ``out=`` is for the gradient, as a user's function has no such argument itself."""
    if function._what not in FILLING:
        return False
    try:
        parameters = parameters_of(function._f, "out")
    except ValueError:
        return True
    kinds = [each.kind for each in parameters.values()]
    return "out" not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds


def gradient_place(pick: Any) -> int | None:
    """Which part of a result the gradient is, by what is picked of a pair; None for all of it."""
    mark = object()
    if pick is None:
        return 1
    return None if pick(((None, None), mark)) is mark else 0


def fill(result: Any, pick: Any, out: Any) -> Any:
    """A result with the gradient in arrays of the caller's.

    Parameters
    ----------
    result : structure
        That of a call, of which ``pick`` gives a part.
    pick : callable or None
        Of a pair of a value and a gradient: what the call gives.
    out : structure
        An array for each of the gradient.

    Raises
    ------
    InvalidArgumentError
        For arrays that do not fit; nothing is written then.
    """
    place = gradient_place(pick)
    gradient = result if place is None else result[place]
    check(gradient, out)
    pairs = zip(leaves(gradient), leaves(out), strict=True)
    for found, array in pairs:
        array[...] = found
    if place is None:
        return out
    return tuple(out if k == place else part for k, part in enumerate(result))


def check(gradient: Any, out: Any) -> None:
    """Refuse arrays that a gradient cannot be written to."""
    if layout(gradient) != layout(out):
        message = "out: it is not of the gradient's structure; give an array for each of its arrays"
        raise invalid("out", message)
    arrays = leaves(out)
    for path, array, found in zip(paths(out, "out"), arrays, leaves(gradient), strict=True):
        want = np.asarray(found)
        if type(array) is not np.ndarray:
            raise invalid("out", f"{path} is a {type(array).__name__}; give an array of NumPy's")
        if array.dtype != want.dtype or array.shape != want.shape:
            have, need = (f"{each.dtype}{list(each.shape)}" for each in (array, want))
            raise invalid("out", f"{path} is {have}, and the gradient {need}; give one like it")
        if not array.flags.c_contiguous or not array.flags.writeable:
            why = "read-only" if array.flags.c_contiguous else "not in C order"
            raise invalid("out", f"{path} is {why}; give an array as np.empty makes it")
    for k, one in enumerate(arrays):
        if any(np.may_share_memory(one, other) for other in arrays[k + 1 :]):
            raise invalid("out", "out: its arrays share memory; give one for each")
