"""Items that a function takes and that nobody uses: an index out of range is an error all the same.

Nearly all that a statement computes is of use to somebody, or cannot fail. So a trace notes where
the source says that nobody reads a value (`nbta.frontend.liveness`), and looks in the end whether
items went into it that nothing else takes. Then it is traced again, and runs compute the values of
those lines in their turn, as they print (`nbta.frontend.effects`).
"""

from __future__ import annotations

import contextlib
import sys

from nbta.frontend.boxes import Box, is_of_now
from nbta.graph.graph import PARAMETER, SubGraph, current, subgraphs
from nbta.graph.operation import Tensor
from nbta.graph.views import Branch, Loop, arguments, is_branch, is_loop, place_of
from nbta.ops.checks import computed, order_now
from nbta.structure import leaves

_NOTED, _LINES, _MISSED = "values that nobody reads", "lines to compute", "lines to compute yet"


def compute(value, depth=1) -> None:
    """Note a value that nobody reads; compute it in a run if an earlier trace missed it."""
    parts = value if type(value) is tuple else (value,)
    held = [part.itself if isinstance(part, Box) else part for part in parts if is_of_now(part)]
    tensors = [part for part in held if isinstance(part, Tensor)]
    order = order_now()
    if not tensors or order is None:
        return
    frame, cache = sys._getframe(depth), current().root.cache
    line = (frame.f_code.co_filename, frame.f_lineno)
    if line in cache.get(_LINES, ()):
        order.token = computed(order.token, tensors)
    else:
        cache.setdefault(_NOTED, []).append((line, tensors))


def unused(*variables) -> None:
    """`compute` for variables that a statement gave values."""
    for value in _values(variables):
        compute(value, depth=2)


def unused_behind(*variables) -> None:
    """`compute` for variables that blocks gave values.

    A view that a block made is not looked at after it: a run that did not come there has no such
    items, and its index may be out of range.
    """
    for value in _values(variables):
        compute(value.root if isinstance(value, Box) else value, depth=2)


def _values(variables):
    for get in variables:
        with contextlib.suppress(NameError):  # such as of an annotation alone
            yield get()


def compute_lines(graph, lines) -> None:
    """Let a trace compute what nobody reads in some lines."""
    graph.root.cache[_LINES] = lines


def missed_lines(graph) -> set:
    """The lines of a trace whose items its runs would not take."""
    return graph.root.cache.get(_MISSED, set())


def look_for_missed(results) -> None:
    """Find the lines whose items runs would not take, as what a function gives needs none."""
    cache, known = current().root.cache, set()
    noted = cache.pop(_NOTED, ())
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
        return [] if owner is None else _of_parameter(owner, tensor)
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
