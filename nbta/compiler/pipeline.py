"""The pipeline: passes one after another; with NBTA_DEBUG=1 the verifier runs behind each."""

from nbta.compiler.passes import fold_constants, hoist, prune, share
from nbta.compiler.program import Program, extract
from nbta.graph.verifier import verify_change

#: In this order.
PASSES = (prune, fold_constants, hoist, share)


def optimised(given, wanted, targets=()) -> Program:
    """What it takes to compute some tensors of a graph from others, made cheap."""
    program = extract(given, wanted, targets)
    for step in PASSES:
        program = step(program)
        verify_change(program)
    return program
