"""Tensors that a run is given, and constants."""

import numpy as np

from nbta import shapes
from nbta.dtypes import as_dtype
from nbta.errors import FailedPreconditionError, invalid
from nbta.graph.graph import current
from nbta.graph.spec import Spec
from nbta.ops.dispatch import CONSTANT, as_array, define


def _unfed(*, spec, label):
    error = FailedPreconditionError(
        f"the placeholder {label!r} got no value; feed {spec} under it, as in "
        f"Session.run(fetches, {{{label}: value}})"
    )
    error.reason = "unfed"
    raise error


def _no_gradient(op, dy):
    return []


PLACEHOLDER = define("Placeholder", lambda *, spec, label: spec, _unfed, _no_gradient)


def placeholder(dtype, shape=None, name=None):
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
    (None, 2)
    """
    graph = current()
    if graph is None:
        message = "placeholder: no graph is being built; open one with Graph().as_default()"
        raise invalid("graph", message)
    if graph.root is not graph:
        message = "placeholder: make it outside of the loop or branch and use it there"
        raise invalid("graph", message)
    spec = Spec(as_dtype(dtype), shapes.as_pattern("shape", shape))
    attrs = {"spec": spec, "label": name or "x"}
    with graph.control_dependencies(None):
        return graph.create(PLACEHOLDER, [], attrs, name).outputs[0]


def constant(value, dtype=None, name=None):
    """A tensor of a value that is known now; outside of graphs an array.

    Raises
    ------
    InvalidArgumentError
        For what is no array of numbers, and for a shape other than the value's.

    Examples
    --------
    >>> nbta.constant([1, 2], dtype="float32")
    array([1., 2.], dtype=float32)
    """
    array = np.array(as_array(value, None if dtype is None else as_dtype(dtype)))
    graph = current()
    if graph is None:
        return array
    array.flags.writeable = False
    with graph.control_dependencies(None):
        return graph.create(CONSTANT, [], {"value": array}, name or "Const").outputs[0]
