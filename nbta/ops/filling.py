"""Tensors of one value."""

import numpy as np

from nbta.codegen import shape_rules as rules
from nbta.dtypes import as_dtype
from nbta.graph.operation import Tensor
from nbta.graph.spec import Spec
from nbta.ops.dispatch import apply, as_array, as_tensor, building, define, exported
from nbta.ops.extents import as_shape, pattern_of
from nbta.ops.shaping import shape_of, sum_to


def _infer_fill(_, value, *, pattern):
    return Spec(value.dtype, pattern)


FILL = define(
    "Fill",
    _infer_fill,
    lambda shape, value, *, pattern: np.full(shape, value),
    lambda op, dy: [None, sum_to(dy, ())],
    emit=rules.fill,
    shape_input=0,
)


@exported
def fill(shape, value, *, name=None):
    """A tensor of one value.

    Parameters
    ----------
    shape : int, tuple of int or Tensor, or Tensor
    value : scalar or Tensor of rank 0

    Examples
    --------
    >>> nbta.fill((2,), 7.0)
    array([7., 7.])
    """
    wanted = as_shape(shape, value)
    return apply(FILL, [wanted, value], {"pattern": pattern_of(wanted)}, name)


@exported
def zeros(shape, dtype=np.float64, *, name=None):
    """A tensor of zeros.

    Examples
    --------
    >>> nbta.zeros(2)
    array([0., 0.])
    """
    return fill(shape, np.zeros((), as_dtype(dtype)), name=name)


@exported
def ones(shape, dtype=np.float64, *, name=None):
    """A tensor of ones.

    Examples
    --------
    >>> nbta.ones(2, "int64")
    array([1, 1])
    """
    return fill(shape, np.ones((), as_dtype(dtype)), name=name)


def _full_like(x, value, dtype, name):
    x = x if isinstance(x, Tensor) or building() is None else as_tensor(x)
    if not isinstance(x, Tensor):
        x = as_array(x)
        wanted = np.array(x.shape, np.int64)
    else:
        wanted = shape_of(x)
    dtype = x.dtype if dtype is None else as_dtype(dtype)
    return fill(wanted, np.full((), value, dtype), name=name)


@exported(numpy=2)
def zeros_like(x, dtype=None, *, name=None):
    """Zeros of the shape and dtype of another tensor.

    Examples
    --------
    >>> nbta.zeros_like([1.5, 2.5])
    array([0., 0.])
    """
    return _full_like(x, 0, dtype, name)


@exported(numpy=2)
def ones_like(x, dtype=None, *, name=None):
    """Ones of the shape and dtype of another tensor.

    Examples
    --------
    >>> nbta.ones_like([1.5, 2.5])
    array([1., 1.])
    """
    return _full_like(x, 1, dtype, name)
