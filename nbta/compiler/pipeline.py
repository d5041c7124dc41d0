"""The pipeline: passes one after another; with NBTA_DEBUG=1 the verifier runs behind each."""

from nbta.compiler.array_passes import arrays_to_tensors
from nbta.compiler.passes import fold_constants, hoist, prune, share
from nbta.compiler.phases import phase
from nbta.compiler.product_passes import push_out_products, sum_products_outside
from nbta.compiler.program import Program, extract
from nbta.compiler.row_passes import rows_of_elementwise
from nbta.compiler.shape_passes import simplify_shapes
from nbta.compiler.sharing import share_tapes
from nbta.compiler.specialising import specialise
from nbta.compiler.tape_passes import rematerialise
from nbta.graph.verifier import verify_change

#: In this order. None changes a result, not by a bit.
PASSES = (prune, fold_constants, hoist, share)
#: For compiled code, behind those, where all ranks are known: in this order too. Those about
#: products take sums in another order.
LOWERING = (
    simplify_shapes, prune, fold_constants, hoist, share, rematerialise, prune, simplify_shapes,
    arrays_to_tensors, rematerialise, prune, arrays_to_tensors, share_tapes, prune, share,
    rows_of_elementwise, push_out_products, sum_products_outside,
    simplify_shapes, hoist, share, prune,
)  # fmt: skip


def optimised(given, wanted, targets=()) -> Program:
    """What it takes to compute some tensors of a graph from others, made cheap."""
    return _run(PASSES, extract(given, wanted, targets))


def lowered(program: Program, shapes, log=None) -> Program:
    """A program made ready for the code generator, for inputs of some shapes.

    ``log`` is told of each pass.
    """
    with phase("specialise") as facts:
        facts["before"] = program
        facts["after"] = program = specialise(program, shapes, together=True)
    verify_change(program)
    return _run(LOWERING, program, log)


def _run(passes, program, log=None):
    for step in passes:
        with phase(step.__name__) as facts:
            facts["before"] = program
            facts["after"] = program = step(program)
        verify_change(program)
        if log is not None:
            log.note(step, program)
    return program
