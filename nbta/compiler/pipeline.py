"""The pipeline: passes one after another, which `nbta.compiler.manager` runs.

A pass has the same number in each compilation: its place in `passes`.
"""

from nbta.compiler.adjoint_loop_fusion import fuse_adjoint_loops
from nbta.compiler.array_passes import arrays_to_tensors
from nbta.compiler.branch_reads import read_before_branches
from nbta.compiler.checkpoint_segments import loops_of_segments
from nbta.compiler.choices import keep_stores_whole
from nbta.compiler.dead_stores import drop_dead_stores
from nbta.compiler.filled_arrays import pack_arrays
from nbta.compiler.gradient_passes import gradients_to_tensors
from nbta.compiler.least_saved import save_least
from nbta.compiler.linearised_tapes import flows_of_tapes, forget_iterations, tapes_to_arrays
from nbta.compiler.manager import Manager, settings
from nbta.compiler.partial_fills import fill_around
from nbta.compiler.passes import fold_constants, hoist, keep_all, prune, separate_fills, share
from nbta.compiler.plain_products import use_plain_products
from nbta.compiler.product_passes import hoist_products, sum_products_outside
from nbta.compiler.program import Program, extract, rebuild
from nbta.compiler.rematerialisation import rematerialise
from nbta.compiler.row_passes import hoist_elementwise, rows_of_elementwise
from nbta.compiler.saved_arrays import save_elements
from nbta.compiler.scalar_promotion import add_items_after_loops
from nbta.compiler.shadow_arrays import detach_gradients
from nbta.compiler.shape_passes import shapes_of_variables, simplify_shapes
from nbta.compiler.slice_folding import items_of_parts
from nbta.compiler.specialising import specialise
from nbta.compiler.tape_passes import read_in_branches, share_tapes
from nbta.compiler.tiles import tile
from nbta.compiler.zero_adjoints import skip_zero_adjoints
from nbta.errors import invalid
from nbta.graph.copying import copied

#: In this order. None changes a result, not by a bit.
PASSES = (prune, fold_constants, hoist, share)
#: For compiled code, after `specialise`: left out where arrays are to be freed where they end.
ENDS = (keep_all, loops_of_segments)
#: After those, in this order too. Some take sums in another order, as their contracts say.
LOWERING = (
    flows_of_tapes, simplify_shapes, shapes_of_variables, prune, fold_constants, hoist, share,
    hoist_elementwise, forget_iterations, fuse_adjoint_loops, read_in_branches, rematerialise,
    prune, save_least, save_elements, detach_gradients, gradients_to_tensors, simplify_shapes,
    arrays_to_tensors, rematerialise, prune, save_least, arrays_to_tensors, gradients_to_tensors,
    share_tapes, prune, share, tapes_to_arrays, rows_of_elementwise, hoist_products,
    sum_products_outside, items_of_parts, add_items_after_loops, read_before_branches,
    simplify_shapes, hoist, share, prune, tile, skip_zero_adjoints,
    drop_dead_stores, separate_fills, fill_around, keep_stores_whole, pack_arrays,
)  # fmt: skip


def passes() -> tuple:
    """All passes, by their numbers from 1."""
    return (*PASSES, specialise, *ENDS, *LOWERING)


def _manager(before=0, log=None):
    """A manager, if the settings name passes that there are."""
    every = passes()
    known = {"all", *(step.__name__ for step in every), *map(str, range(1, len(every) + 1))}
    unknown = sorted(settings().printed - known)
    if unknown:
        names = ", ".join(dict.fromkeys(step.__name__ for step in every))
        message = f"{unknown[0]!r} is no pass; there are 1 to {len(every)}: {names}"
        raise invalid("setting", f"NBTA_PRINT_AFTER: {message}")
    return Manager(before, log)


def optimised(given, wanted, targets=(), *, careful=False) -> Program:
    """What it takes to compute some tensors of a graph from others, made cheap.

    Unless it is ``careful``, results that have a NaN may be wrong, and the program's code says so.
    """
    program = extract(given, wanted, targets)
    if not careful:
        use_plain_products(program)
    return _manager().run(PASSES, program)


def lowered(program: Program, shapes, log=None, *, frees=False) -> Program:
    """A program made ready for the code generator, for inputs of some shapes.

    ``log`` is told of each pass. With ``frees`` arrays are freed where they end, for those that
    Python keeps.
    """

    def specialised(given):
        made = specialise(given, shapes, together=True)
        return rebuild(given, copied) if made is given else made

    manager = _manager(len(PASSES), log)
    program = manager.step(specialise, program, specialised)
    if frees:
        manager.skip(len(ENDS))
    else:
        program = manager.run(ENDS, program)
    return manager.run(LOWERING, program)
