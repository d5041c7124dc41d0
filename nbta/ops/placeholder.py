"""Tensors that a run is given, and constants."""

import numpy as np

from nbta import shapes
from nbta.dtypes import as_dtype, without_loss
from nbta.errors import FailedPreconditionError, invalid
from nbta.graph.graph import current
from nbta.graph.spec import Spec
from nbta.ops.dispatch import CONSTANT, as_array, define, exported


def _unfed(*, spec, label):
    error = FailedPreconditionError(
        f"the placeholder {label!r} got no value; give Session.run one in feed_dict, of {spec}"
    )
    error.reason = "unfed"
    raise error


def _no_gradient(op, dy):
    return []


PLACEHOLDER = define("Placeholder", lambda *, spec, label: spec, _unfed, _no_gradient, fed=True)


@exported
def placeholder(dtype, shape=None, *, name=None):
    """A tensor whose value each run is given.

    Parameters
    ----------
    dtype : dtype-like
    shape : tuple of int or None, optional
        None in it stands for an extent that differs from run to run, None for any shape.
    name : str, optional

    Returns
    -------
    Tensor

    Raises
    ------
    InvalidArgumentError
        Outside of a graph.

    Examples
    --------
    >>> with nbta.Graph().as_default() as g:
    ...     x = nbta.placeholder("float64", (None, 2), name="x")
    >>> x.shape
    (?, 2)
    """
    graph = current()
    if graph is None:
        message = "placeholder: no graph is being built; open one with Graph().as_default()"
        raise invalid("graph", message)
    if graph.root is not graph:
        message = "placeholder: make it outside of the loop or branch and use it there"
        raise invalid("graph", message)
    spec = Spec(as_dtype(dtype), shapes.as_pattern("shape", shape))
    attrs = {"spec": spec, "label": name or "Placeholder"}
    with graph.control_dependencies(None):
        return graph.create(PLACEHOLDER, [], attrs, name=name).outputs[0]


def _converted(value, dtype):
    """A value in another dtype: numbers of Python without loss, arrays within their kind."""
    given = as_array(value)
    if hasattr(value, "dtype"):
        fits = np.can_cast(given.dtype, dtype, "same_kind")
        array = given.astype(dtype) if fits else None
    else:
        array = without_loss(value, dtype)
    if array is None:
        message = f"constant: {value!r} does not fit {dtype}; round it, or cast it with nbta.cast"
        raise invalid("dtype", message)
    return array


@exported
def constant(value, dtype=None, *, name=None):
    """A tensor of a value that is known now; outside of graphs an array.

    Raises
    ------
    InvalidArgumentError
        For what is no array, and for a dtype that the value does not fit.

    Examples
    --------
    >>> nbta.constant([1, 2], dtype="float32")
    array([1., 2.], dtype=float32)
    """
    array = as_array(value) if dtype is None else _converted(value, as_dtype(dtype))
    array, graph = np.array(array), current()
    if graph is None:
        return array
    array.flags.writeable = False
    with graph.control_dependencies(None):
        return graph.create(CONSTANT, [], {"value": array}, name=name or "Const").outputs[0]
