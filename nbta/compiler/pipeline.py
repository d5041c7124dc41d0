"""The pipeline: passes one after another; with NBTA_DEBUG=1 the verifier runs behind each."""

from nbta.compiler.passes import fold_constants, hoist, prune, share
from nbta.compiler.program import Program, extract
from nbta.graph.verifier import verify_change

#: In this order. None changes a result, not by a bit.
PASSES = (prune, fold_constants, hoist, share)


def optimised(given, wanted, targets=()) -> Program:
    """What it takes to compute some tensors of a graph from others, made cheap."""
    return _run(PASSES, extract(given, wanted, targets))


def lowered(program: Program, shapes) -> Program:
    """A program made ready for the code generator, for inputs of some shapes."""
    return program


def _run(passes, program):
    for step in passes:
        program = step(program)
        verify_change(program)
    return program
