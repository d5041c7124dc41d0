"""The pipeline: passes one after another; with NBTA_DEBUG=1 the verifier runs behind each."""

from nbta.compiler.array_passes import arrays_to_tensors
from nbta.compiler.gradient_passes import stacked_gradients_to_tensors
from nbta.compiler.item_keys import items_of_parts
from nbta.compiler.item_sums import add_items_behind_loops
from nbta.compiler.joint_trips import join_trips
from nbta.compiler.kept_arrays import keep_elements
from nbta.compiler.nests import (
    forget_trips,
    gradients_to_tensors,
    join_tapes,
    pack_tapes,
)
from nbta.compiler.passes import fold_constants, hoist, keep_all, prune, share
from nbta.compiler.phases import is_heard, phase
from nbta.compiler.product_passes import push_out_products, sum_products_outside
from nbta.compiler.program import Program, extract, rebuild
from nbta.compiler.row_passes import push_out_elementwise, rows_of_elementwise
from nbta.compiler.segments import loops_of_segments
from nbta.compiler.shape_passes import shapes_of_variables, simplify_shapes
from nbta.compiler.specialising import specialise
from nbta.compiler.stand_ins import detach_gradients
from nbta.compiler.tapes import read_in_branches, rematerialise, share_tapes
from nbta.compiler.tiles import tile
from nbta.graph.copying import copied
from nbta.graph.verifier import verify_change

#: In this order. None changes a result, not by a bit.
PASSES = (prune, fold_constants, hoist, share)
#: For compiled code, behind those, where all ranks are known: in this order too. Those about
#: products, and tiles, take sums in another order.
LOWERING = (
    simplify_shapes, shapes_of_variables, prune, fold_constants, hoist, share, push_out_elementwise,
    forget_trips, join_trips, read_in_branches, rematerialise, prune, keep_elements,
    detach_gradients, gradients_to_tensors, simplify_shapes, arrays_to_tensors, rematerialise,
    prune, arrays_to_tensors, stacked_gradients_to_tensors, share_tapes, prune, share, join_tapes,
    rows_of_elementwise, push_out_products, sum_products_outside, items_of_parts,
    add_items_behind_loops, simplify_shapes, hoist, share, prune, tile, pack_tapes,
)  # fmt: skip


def optimised(given, wanted, targets=()) -> Program:
    """What it takes to compute some tensors of a graph from others, made cheap."""
    return _run(PASSES, extract(given, wanted, targets))


def lowered(program: Program, shapes, log=None, *, frees=False) -> Program:
    """A program made ready for the code generator, for inputs of some shapes.

    ``log`` is told of each pass. With ``frees`` arrays are freed where they end, for those that
    Python keeps.
    """
    with phase("specialise") as facts:
        facts["before"] = program
        facts["after"] = made = specialise(program, shapes, together=True)
    program = rebuild(program, copied) if made is program else made
    verify_change(program)
    return _run(LOWERING if frees else (keep_all, loops_of_segments, *LOWERING), program, log)


def _run(passes, program, log=None):
    """A program behind passes, which may change it."""
    for step in passes:
        with phase(step.__name__) as facts:
            facts["before"] = _as_it_is(program)
            program = getattr(step, "in_place", step)(program)
            facts["after"] = _as_it_is(program)
        verify_change(program)
        if log is not None:
            log.note(step, program)
    return program


def _as_it_is(program):
    """A copy for those who listen, as later passes change a program where it is."""
    return rebuild(program, copied) if is_heard() else program
