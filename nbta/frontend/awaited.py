"""Items that a function takes and that nobody uses: an index out of range is an error all the same.

Nearly all that a statement computes is of use to somebody, or cannot fail. So a trace notes values
that nobody reads, and arrays whose items are read as what was just put there. In the end it looks
whether items went into them that nothing else takes. Then it is traced again, and runs compute the
values of those lines in their turn, as they print (`nbta.frontend.effects`).
"""

from __future__ import annotations

from nbta.frontend.problems import here
from nbta.graph.graph import PARAMETER, SubGraph, current, subgraphs
from nbta.graph.operation import Tensor
from nbta.graph.views import Branch, Loop, arguments, is_branch, is_loop, place_of
from nbta.ops.core.checks import computed, order_now
from nbta.structure import leaves

_NOTED, _LINES, _MISSED = "values that nobody reads", "lines to compute", "lines to compute yet"
_PASSED_BY = "arrays whose items were taken as what was put there"


def note(line, tensors) -> None:
    """Note tensors of a line that nobody may need; compute them if an earlier trace missed them."""
    order = order_now()
    if order is None:
        return
    cache = current().root.cache
    if line in cache.get(_LINES, ()):
        order.token = computed(order.token, tensors)
    else:
        cache.setdefault(_NOTED, []).append((line, tensors))


def pass_by(array) -> bool:
    """Note an array whose item is taken as what was put there, if that may be; whether it may."""
    order = order_now()
    if order is None:
        return False
    cache, line = current().root.cache, here()
    if line in cache.get(_LINES, ()):
        order.token = computed(order.token, [array])
    else:
        cache.setdefault(_PASSED_BY, {}).setdefault(array, line)
    return True


def replace(old, new) -> None:
    """Let an array that looks at the index of an older one stand for it."""
    passed_by = current().root.cache.get(_PASSED_BY, {})
    if old in passed_by:
        passed_by[new] = passed_by.pop(old)


def compute_lines(graph, lines) -> None:
    """Let a trace compute what nobody reads in some lines."""
    graph.root.cache[_LINES] = lines


def missed_lines(graph) -> set:
    """The lines of a trace whose items its runs would not take."""
    return graph.root.cache.get(_MISSED, set())


def look_for_missed(results) -> None:
    """Find the lines whose items runs would not take, as what a function gives needs none."""
    cache, known = current().root.cache, set()
    noted = [*cache.pop(_NOTED, ())]
    noted += [(line, [array]) for array, line in cache.pop(_PASSED_BY, {}).items()]
    if noted:
        _new(known, [leaf for leaf in leaves(results) if isinstance(leaf, Tensor)])
    for line, tensors in noted:
        run = [tensor for tensor in tensors if _is_run(tensor.graph)]
        if any(each.op.record.may_miss(each.op) for each in _new(known, run)):
            cache.setdefault(_MISSED, set()).add(line)


def _is_run(graph):
    """Whether a graph is run: loops and branches are traced until all is known of them."""
    while isinstance(graph, SubGraph):
        if graph.owner is None:
            return False
        graph = graph.owner.graph
    return True


def _new(known, tensors):
    """What is not known of all that tensors are computed from, and is known then."""
    found, waiting = [], list(tensors)
    while waiting:
        tensor = waiting.pop()
        if tensor not in known:
            known.add(tensor)
            found.append(tensor)
            waiting += _inputs(tensor)
    return found


def _inputs(tensor):
    """What a tensor is computed from at once, in its graph, around it and in bodies."""
    op = tensor.op
    before = [each for other in op.control_inputs for each in other.outputs]
    if op.record is PARAMETER:
        owner = getattr(tensor.graph, "owner", None)
        is_given = any(tensor is each for each in tensor.graph.inputs)  # or a body left it out
        return _of_parameter(owner, tensor) if owner is not None and is_given else []
    if is_loop(op):
        loop = Loop(op)
        return [*before, op.inputs[tensor.index], loop.condition, loop.following[tensor.index]]
    if is_branch(op):
        branch = Branch(op)
        return [*before, branch.index, *branch.ends(tensor.index)]
    return [*before, *op.inputs, *(each for body in subgraphs(op) for each in body.outputs)]


def _of_parameter(owner, parameter):
    place = place_of(parameter)
    given = arguments(owner, parameter.graph)[place]
    if is_loop(owner) and place < Loop(owner).count:
        return [given, Loop(owner).following[place]]
    return [given]
