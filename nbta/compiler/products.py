"""Products that a loop sums: what one product of all its iterations can stand for.

A pass that would do more of such a product in each iteration, or save less for it, asks here, as
the pass does that takes it out of the loop.
"""

from nbta.ops.indexing.transposing import SWAPAXES, TRANSPOSE
from nbta.ops.linalg.products import MATMUL, OUTER

#: Products, and operations that only turn what products take.
PRODUCTS, _TURNS = frozenset((MATMUL, OUTER)), frozenset((SWAPAXES, TRANSPOSE))
_PASSED = PRODUCTS | _TURNS


def is_of_iterations(op) -> bool:
    """Whether it makes a product of vectors or matrices, not one for each of a stack of these."""
    ranks = [tensor.spec.rank for tensor in op.inputs]
    return op.record in PRODUCTS and (None in ranks or max(ranks) <= 2)


def is_multiplied(read) -> bool:
    """Whether a product takes what a tape gives: it may be summed with the tape as a whole."""
    todo = [read.outputs[0]]
    found = [op for op in read.graph.operations if op.record in _PASSED]
    for tensor in todo if found else ():
        users = [op for op in found if any(t is tensor for t in op.inputs)]
        if any(op.record in PRODUCTS for op in users):
            return True
        todo += [op.outputs[0] for op in users]
    return False
