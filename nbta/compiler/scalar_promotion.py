"""What iterations add to one item of an array, as numbers that are added after the loop.

So the gradient of ``x[i]`` in a loop over ``j`` is in a register there, and what goes to other
items need not wait for it. Other items of the array may be read and changed in the loop as well,
such as those of other rows in the gradient of a decomposition in place.
"""

import numpy as np

from nbta.compiler.access_sets import differ, indices_of, touched
from nbta.compiler.induction import Counts
from nbta.compiler.manager import Fact, analysis, contract
from nbta.compiler.program import Program, changes
from nbta.graph.copying import keep_shapes
from nbta.graph.graph import running, substitute
from nbta.graph.operation import Tensor, is_inexact
from nbta.graph.views import Loop, is_loop
from nbta.ops.core.arithmetic import add
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.indexing.items import ADD_ITEM


@contract(requires=[Fact.RANKS], reorders=True)
@changes
def add_items_after_loops(program: Program) -> Program:
    """Add up in a number what iterations add to one item, and add that after the loop.

    The sums are the same but for the order of additions.
    """
    counts = analysis(Counts, program)
    for op in reversed(list(running(program))):  # from the inside out
        if is_loop(op):
            _add_items_after(counts, Loop(op))
    return program


def _add_items_after(counts, loop):
    found = []
    for variable in loop.variables():
        if variable.parameter.spec.rank != 0 and variable.following.op.record.changes:
            found += [(change, variable) for change in _only_added(counts, variable)]
    for change, variable in found:
        _add_after(change, variable)


def _only_added(counts, variable) -> list:
    """The additions to items of an array that nothing else in the loop touches, but to add."""
    use = touched(variable)
    if use is None or not is_inexact(variable.parameter.dtype):
        return []
    body = variable.loop.body
    others = [*use.reads, *(op for op in use.changes if op.record is not ADD_ITEM)]
    return [
        change
        for change in use.changes
        if change.record is ADD_ITEM
        and change.graph is body
        and _is_one_item(counts, change, variable)
        and all(differ(counts, change, other, body) for other in others)
    ]


def _is_one_item(counts, change, variable):
    """Whether iterations add a number to the same item, and adding nothing there is no error."""
    x, value, *_ = change.inputs
    body, around = variable.loop.body, variable.loop.op.graph
    named = [index for index in indices_of(change) if not isinstance(index, slice)]
    one = len(named) == x.spec.rank == len(change.attrs["key"])
    if not one or value.spec.rank != 0 or value.dtype != x.dtype or change.control_inputs:
        return False
    if any(isinstance(index, Tensor) and index not in body.sources for index in named):
        return False
    return counts.iterates(variable.loop.op) or all(
        _is_there(counts, index, counts.length(variable.first, axis), body, around)
        for axis, index in enumerate(named)
    )


def _is_there(counts, index, length, body, around):
    """Whether an index in a body, which is one of around it, is proven to be within a length."""
    outside = body.sources[index] if isinstance(index, Tensor) else index
    return counts.is_within(outside, length, around)


def _add_after(change, variable):
    loop, last = variable.loop, variable.last
    body, around = loop.body, loop.op.graph
    x, value, *scalars = change.inputs
    with around.as_default(), around.control_dependencies(None):
        zero = as_tensor(np.zeros((), value.dtype), around)
        total = loop.add_variable(zero, lambda number: add(number, value))
        substitute(body, {change.outputs[0]: x})
        inputs = [last, total, *(body.sources[scalar] for scalar in scalars)]
        made = around.create(ADD_ITEM, inputs, dict(change.attrs))
    made.location = change.location
    keep_shapes([last], made.outputs)
    substitute(around, {last: made.outputs[0]})
    made.inputs[0] = last
    around.changed()
