"""Elementwise comparison and logic."""

import numpy as np

from nbta.codegen.elementwise import Elementwise
from nbta.ops.dispatch import apply, exported
from nbta.ops.elementwise import INTEGER, binary, define_elementwise, meet, truth


def _compare(name, evaluate, sign, kinds="biuf"):
    """A comparison; complex numbers are compared in Python, as NumPy does."""
    rule = Elementwise(f"{{}} {sign} {{}}", kinds)
    return binary(name, evaluate, INTEGER, infer=truth, emit=rule, quick=True)


@_compare("Less", np.less, "<")
def less(x, y, *, name=None):
    """Whether ``x < y``, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.less([1, 5], 3)
    array([ True, False])
    """


@_compare("LessEqual", np.less_equal, "<=")
def less_equal(x, y, *, name=None):
    """Whether ``x <= y``, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.less_equal([1, 3], 3)
    array([ True,  True])
    """


@_compare("Greater", np.greater, ">")
def greater(x, y, *, name=None):
    """Whether ``x > y``, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.greater([1, 5], 3)
    array([False,  True])
    """


@_compare("GreaterEqual", np.greater_equal, ">=")
def greater_equal(x, y, *, name=None):
    """Whether ``x >= y``, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.greater_equal([1, 3], 3)
    array([False,  True])
    """


@_compare("Equal", np.equal, "==", "biufc")
def equal(x, y, *, name=None):
    """Whether ``x == y``, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.equal([1, 3], 3)
    array([False,  True])
    """


@_compare("NotEqual", np.not_equal, "!=", "biufc")
def not_equal(x, y, *, name=None):
    """Whether ``x != y``, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.not_equal([1, 3], 3)
    array([ True, False])
    """


@_compare("LogicalAnd", np.logical_and, "&", "b")
def logical_and(x, y, *, name=None):
    """Whether both are true, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.logical_and([True, True], [True, False])
    array([ True, False])
    """


@_compare("LogicalOr", np.logical_or, "|", "b")
def logical_or(x, y, *, name=None):
    """Whether any is true, elementwise with broadcasting.

    Examples
    --------
    >>> nbta.logical_or([True, False], [False, False])
    array([ True, False])
    """


LOGICAL_NOT = define_elementwise(
    "LogicalNot", truth, np.logical_not, INTEGER, emit=Elementwise("not {}", "b"), quick=True
)


@exported
def logical_not(x, *, name=None):
    """Whether it is false.

    Examples
    --------
    >>> nbta.logical_not([True, False])
    array([False,  True])
    """
    return apply(LOGICAL_NOT, meet(x), name=name)
