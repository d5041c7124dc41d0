"""Items that a function takes and that nobody uses: an index out of range is an error all the same.

Nearly all that a statement computes is of use to somebody, or cannot fail. So a trace notes values
that nobody reads, and arrays whose items are read as what was just put there. In the end it looks
whether items went into them that nothing else takes. Then it is traced again, and runs compute the
values of those lines in their turn, as they print (`nbta.frontend.effects`).
"""

from __future__ import annotations

from contextlib import contextmanager

from nbta.frontend.problems import here
from nbta.graph.graph import PARAMETER, SubGraph, current, subgraphs
from nbta.graph.operation import Tensor
from nbta.graph.views import Branch, Loop, arguments, is_branch, is_loop, place_of
from nbta.ops.core.checks import computed, order_now
from nbta.structure import leaves

_NOTED, _LINES, _MISSED = "values that nobody reads", "lines to compute", "lines to compute yet"
_PASSED_BY = "arrays whose items were taken as what was put there"
_REPEATED = "what is traced was traced before, for the same values"
_BODIES = "bodies that no operation has, though what they take is taken"


def note(line, tensors) -> None:
    """Note tensors of a line that nobody may need; compute them if an earlier trace missed them."""
    order = order_now()
    if order is None:
        return
    cache = current().root.cache
    if line not in cache.get(_LINES, ()):
        cache.setdefault(_NOTED, []).append((line, tensors, is_repeated()))
    elif not is_repeated():
        order.token = computed(order.token, tensors)


def pass_by(array) -> bool:
    """Note an array whose item is taken as what was put there, if that may be; whether it may."""
    order = order_now()
    if order is None:
        return False
    cache, line = current().root.cache, here()
    if line not in cache.get(_LINES, ()):
        cache.setdefault(_PASSED_BY, {}).setdefault(array, (line, is_repeated()))
    elif not is_repeated():
        order.token = computed(order.token, [array])
    return True


def noted() -> tuple:
    """What is noted so far, for `forget_later`."""
    cache = current().root.cache
    return len(cache.get(_NOTED, ())), dict(cache.get(_PASSED_BY, {}))


def forget_later(before) -> None:
    """Forget what was noted since, as it was traced in vain: no run comes there.

    It would be missed in each trace of the whole function anew, one line after the other.
    """
    cache, (count, passed_by) = current().root.cache, before
    del cache.get(_NOTED, [])[count:]
    cache[_PASSED_BY] = passed_by


@contextmanager
def repeated():
    """A context for what is traced once more, for the same values, as for each row of a Jacobian.

    Nothing has its turn here, as such rows would not be computed together. What fails does so
    before; there a line is missed only if it is missed here, too.
    """
    cache = current().root.cache
    is_outermost = cache.setdefault(_REPEATED, token := object()) is token
    try:
        yield
    finally:
        if is_outermost:
            del cache[_REPEATED]


def is_repeated() -> bool:
    """Whether what is traced was traced before, for the same values."""
    return _REPEATED in current().root.cache


def note_row(body) -> None:
    """Note a body of a row: what it takes, the copies that compute its results take."""
    current().root.cache.setdefault(_BODIES, []).append(body)


def note_blocks(condition, blocks) -> None:
    """Note the blocks of a branch that gives nothing, or picks: no operation has them."""
    note(here(), [condition])
    current().root.cache.setdefault(_BODIES, []).extend(blocks)


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
    """Find the lines whose items runs would not take, as no result needs them.

    Among the results is what earlier traces let runs compute: what two lines share is missed once,
    and does not take a trace of the whole function for each of them.
    """
    cache, known = current().root.cache, set()
    noted, bodies = [*cache.pop(_NOTED, ())], set(cache.pop(_BODIES, ()))
    noted += [(line, [array], again) for array, (line, again) in cache.pop(_PASSED_BY, {}).items()]
    if noted:
        needed = [*leaves(results), *(each for body in bodies for each in body.outputs)]
        _new(known, [leaf for leaf in needed if isinstance(leaf, Tensor)])
    missed, missed_again, repeated = set(), set(), set()
    for line, tensors, again in noted:
        run = [tensor for tensor in tensors if _is_run(tensor.graph, bodies)]
        if again and run:
            repeated.add(line)
        if any(each.op.record.may_miss(each.op) for each in _new(known, run)):
            (missed_again if again else missed).add(line)
    cache.setdefault(_MISSED, set()).update(missed - (repeated - missed_again))


def _is_run(graph, bodies):
    """Whether a graph is run: loops and branches are traced until all is known of them."""
    while isinstance(graph, SubGraph):
        if graph.owner is None and graph not in bodies:
            return False
        graph = graph.outer
    return True


def _new(known, tensors):
    """What is not known of all that tensors are computed from, and is known then."""
    found, waiting = [], [each if type(each) is Tensor else each.itself for each in tensors]
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
