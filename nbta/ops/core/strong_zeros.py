"""Sums of products, of matrices and the like, in which adjoints that are zero stay zero.

`nbta.ops.core.arithmetic.SCALE` is the product of an adjoint and a derivative, item by item. An
operation that adds up products of items has two records: the ordinary one, and one for factors
that are adjoints, which rules get by `sum_of_products`. That of adjoints computes the ordinary
sums, which are right unless one of them is NaN; if so, it looks at each item.
"""

import functools

import numpy as np

from nbta.graph.graph import is_adjoint, mark_adjoints
from nbta.ops.core.arithmetic import add_n, is_finite, scaled
from nbta.ops.core.dispatch import apply, define

#: The ordinary record by that of adjoints.
ORDINARY = {}
#: That of adjoints by the ordinary one.
OF_ADJOINTS = {}


def matrix_product(a, b):
    """The matrix product of arrays, or the products of columns and rows."""
    return a * b if a.ndim > 1 < b.ndim and a.shape[-1] == 1 else a @ b


def _scaled_matrices(a, b, adjoints):
    """The same of factors of which some are adjoints."""
    left = a if a.ndim > 1 else a[np.newaxis]
    right = b if b.ndim > 1 else b[:, np.newaxis]
    parts = (
        scaled((left[..., k, np.newaxis], right[..., k, np.newaxis, :]), adjoints)
        for k in range(left.shape[-1])
    )
    found = functools.reduce(np.add, parts)
    found = found if a.ndim > 1 else found[..., 0, :]
    return found if b.ndim > 1 else found[..., 0]


def define_product(name, infer, evaluate, gradient, *, emit, **traits):
    """The record of an operation that adds up products of items of its first two inputs.

    Parameters
    ----------
    evaluate : callable
        As that of a record. Its ``multiplied`` is a function for the product of two matrices,
        `matrix_product` by default.
    emit : callable
        As that of a record. Of adjoints, the attribute ``adjoints`` says which factors are some.
    gradient, **traits
        As those of a record.
    """

    def evaluate_of_adjoints(*arrays, adjoints, **attrs):
        found = evaluate(*arrays, **attrs)
        if not np.isnan(found.sum()):
            return found
        multiplied = functools.partial(_scaled_matrices, adjoints=adjoints)
        return evaluate(*arrays, multiplied=multiplied, **attrs)

    def gradient_of_adjoints(op, dy):
        mark_adjoints(adjoints_of(op))
        return gradient(op, dy)

    def tangent(op, *given):
        mark_adjoints(adjoints_of(op))
        attrs = {key: value for key, value in op.attrs.items() if key != "adjoints"}
        terms = [
            sum_of_products(record, [*op.inputs[:place], found, *op.inputs[place + 1 :]], attrs)
            for place, found in enumerate(given)
            if found is not None
        ]
        return [add_n(terms)]

    traits |= {"emit": emit, "tangent": tangent, "multilinear": True}
    record = define(name, infer, evaluate, gradient, **traits)
    of_adjoints = define(
        f"{name}OfAdjoints",
        lambda *specs, adjoints, **attrs: infer(*specs, **attrs),
        evaluate_of_adjoints,
        gradient_of_adjoints,
        **traits,
    )
    ORDINARY[of_adjoints], OF_ADJOINTS[record] = record, of_adjoints
    return record


def adjoints_of(op, inputs=None):
    """The factors that are adjoints, or what stands in their place."""
    inputs, adjoints = inputs or op.inputs, op.attrs.get("adjoints", ())
    return [tensor for tensor, is_one in zip(inputs, adjoints, strict=False) if is_one]


def sum_of_products(record, inputs, attrs=None, name=None):
    """The result of an operation by `define_product`; in rules, of the adjoints among factors."""
    adjoints = tuple(map(is_adjoint, inputs[:2]))
    others = [factor for factor, is_one in zip(inputs, adjoints, strict=False) if not is_one]
    if len(adjoints) < 2 or len(others) == 2 or any(map(is_finite, others)):
        return apply(record, inputs, attrs, name)
    return apply(OF_ADJOINTS[record], inputs, {**(attrs or {}), "adjoints": adjoints}, name)
