"""Functions of NumPy's that give views, most of them for reading alone.

To write to such a one is NumPy's ValueError. What is written to the array afterwards is seen in the
view, as in any other.
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from nbta.frontend import effects, native
from nbta.frontend.array_wrappers import ArrayWrapper, normalized_axes, wrapped
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.core import arithmetic, filling, shaping
from nbta.ops.core.numpy_arguments import refused_argument
from nbta.ops.indexing import arranging
from nbta.ops.indexing.gathering import take
from nbta.ops.numbers import Number


def _of_array(function):
    """A function of a wrapper, which an argument that is a list with values of a run becomes."""

    @functools.wraps(function)
    def called(array, *args, **kwargs):
        if isinstance(array, list | tuple) and not native.is_known(array):
            array = wrapped(native.together(array))
        return (
            function(array, *args, **kwargs) if isinstance(array, ArrayWrapper) else NotImplemented
        )

    return called


@_of_array
def _diagonal(a, offset=0, axis1=0, axis2=1):
    return a.diagonal(offset, axis1, axis2)


@_of_array
def _diag(v, k=0):
    return v.diagonal(k) if v.ndim == 2 else NotImplemented


@_of_array
def _linalg_diagonal(x, *, offset=0):
    return x.diagonal(offset, -2, -1)


@_of_array
def _imag(val):
    return val.imag


@_of_array
def _real(val):
    return val.real


def _broadcast_to(array, shape):
    if isinstance(array, ArrayWrapper):
        return array.shown(_broadcast, shape)
    if native.is_known((array, shape)):
        return NotImplemented
    array = native.together(array) if isinstance(array, list | tuple) else native.plain(array)
    found = wrapped(shaping.broadcast_to(array, native.plain(shape)))
    if isinstance(found, ArrayWrapper):
        found.read_only = True
    return found


def _broadcast(array, shape):
    known = not isinstance(array, Tensor) and native.is_known(shape)
    return (np.broadcast_to if known else shaping.broadcast_to)(array, shape)


@_of_array
def _sliding_window_view(x, window_shape, axis=None, *, writeable=False):
    """``np.lib.stride_tricks.sliding_window_view`` with windows whose shape Python knows."""
    name = "lib.stride_tricks.sliding_window_view"
    if writeable:
        raise refused_argument(name, "writeable=", here())
    dimensions = tuple(_integer(name, each) for each in _as_tuple(native.plain(window_shape)))
    if min(dimensions, default=0) < 0:
        raise ValueError(f"{here()}: `window_shape` cannot contain negative values")
    axes = range(x.ndim) if axis is None else normalized_axes(axis, x.ndim, may_repeat=True)
    if len(axes) != len(dimensions):
        message = f"{len(dimensions)} items of `window_shape` for {len(axes)} axes of `axis`"
        raise ValueError(f"{here()}: sliding_window_view: {message}; give one for each")
    lengths = dict(enumerate(x.shape))
    for one, dimension in zip(axes, dimensions, strict=True):
        lengths[one] = lengths[one] - dimension + 1
        _check_length(lengths[one])
    return x.shown(_windows, tuple(zip(axes, dimensions, strict=True)))


def _as_tuple(value):
    return tuple(value) if isinstance(value, list | tuple | np.ndarray) else (value,)


def _integer(name, dimension):
    """The length of a window; that of an array decides which trace this is."""
    if isinstance(dimension, Tensor) and not isinstance(dimension, Number):
        raise refused_argument(name, "window_shape= that is not a length of an array", here())
    return operator.index(dimension)


def _check_length(count):
    error = ValueError(f"{here()}: window shape cannot be larger than input array shape")
    if not native.is_known(count):
        effects.check(arithmetic.greater(count, 0), error)
    elif count <= 0:
        raise error


def _windows(array, windows):
    """Windows of some lengths along some axes, with their own axes after all others."""
    if not isinstance(array, Tensor):
        axes, dimensions = zip(*windows, strict=True) if windows else ((), ())
        return np.lib.stride_tricks.sliding_window_view(array, dimensions, axes)
    for axis, dimension in windows:
        count = array.shape[axis] - dimension + 1
        places = shaping.reshape(filling.arange(count), (-1, 1)) + filling.arange(dimension)
        array = arranging.moveaxis(take(array, places, axis), axis + 1, -1)
    return array


#: By NumPy's names.
FUNCTIONS = {
    "broadcast_to": _broadcast_to, "diag": _diag, "diagonal": _diagonal, "imag": _imag,
    "real": _real, "linalg.diagonal": _linalg_diagonal,
    "lib.stride_tricks.sliding_window_view": _sliding_window_view,
}  # fmt: skip
