"""Arrays of which a branch of the run chooses the dtype, and what is computed of them.

Where a branch chooses between integers and floats, or real and complex numbers, both are of the
wider dtype, with the same values. NumPy casts what is stored in one of them, or in an array that is
computed of it, to the dtype that it has in this run: so nobody may store there, nor ask for it.
"""

from __future__ import annotations

import numpy as np

from nbta.graph import graph as graphs
from nbta.graph.graph import SubGraph, current
from nbta.graph.operation import FLOW, Tensor
from nbta.graph.views import Branch, Loop, is_branch, is_loop
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.core.shaping import CAST, identity

#: Of the outermost graph: the dtypes of tensors, by tensor; None where there is only one.
_CHOSEN = "tensors of which only the run knows the dtype"


def note_chosen(tensor: Tensor, dtypes: tuple) -> None:
    """Note that a tensor stands for an array of either of two dtypes."""
    current().root.cache.setdefault(_CHOSEN, {})[tensor] = dtypes


def of_one_dtype(tensor: Tensor) -> Tensor:
    """A tensor that has its dtype in each run, as a cast gives it."""
    found = identity(tensor)
    note_chosen(found, None)
    return found


def chosen_dtypes(tensor: Tensor) -> tuple | None:
    """The dtypes of which an array may have either; None where it is known.

    Each tensor is looked at once.
    """
    graph = current()
    found = None if graph is None else graph.root.cache.get(_CHOSEN)
    if found is None:
        return None
    waiting = [tensor]
    while waiting:
        last = waiting.pop()
        if last in found:
            continue
        sources = [s for s in _sources(last) if s.kind == FLOW or s.dtype == tensor.dtype]
        missing = [each for each in sources if each not in found]
        if missing:
            waiting += [last, *missing]
        else:
            found[last] = _by_sources(last, sources, found)
    return found[tensor]


def _sources(tensor):
    """The tensors that the dtype of one comes from; that of items of a list, along its flow."""
    op = tensor.op
    if op.record is graphs.PARAMETER:
        around = tensor.graph.sources if isinstance(tensor.graph, SubGraph) else {}
        return [around[tensor]] if tensor in around else []
    if is_loop(op):
        variable = Loop(op).variable(tensor.index)
        return [variable.first, *([variable.following] if tensor.kind == FLOW else [])]
    if is_branch(op):
        return Branch(op).ends(tensor.index)
    return op.inputs[:1] if op.record.changes else op.inputs


def _by_sources(tensor, sources, found):
    """The dtypes of a result, of those of what it is computed of.

    One of a function that gives floats for integers is of floats, and so is one of floats and
    others. A constant that is a whole number, or a cast, may come from integers.
    """
    op = tensor.op
    chosen = next((found[each] for each in sources if found[each] is not None), None)
    passes_on = op.record is graphs.PARAMETER or is_loop(op) or is_branch(op)
    if chosen is None or passes_on or FLOW in {each.kind for each in (tensor, *sources)}:
        return chosen
    narrow = next(dtype for dtype in chosen if dtype != tensor.dtype)
    if narrow.kind in "iu" and _gives_floats(op.record.evaluate):
        return None
    others = [each for each in sources if found[each] is None]
    return chosen if all(_may_be(each, narrow) for each in others) else None


def _gives_floats(evaluate):
    if not isinstance(evaluate, np.ufunc):
        return False
    return not any(np.dtype(kind[-1]).kind in "iu" for kind in evaluate.types)


def _may_be(tensor, dtype):
    """Whether a tensor may come from numbers of a narrower dtype."""
    op = tensor.op
    if op.record is CONSTANT:
        value = np.asarray(op.attrs["value"])
        narrow = value.real if dtype.kind == "f" else np.floor(value.real)
        return bool((value == narrow).all())
    return op.record is CAST and np.can_cast(op.inputs[0].dtype, dtype, "same_kind")
