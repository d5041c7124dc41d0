"""Loops that keep one of the values that they see, as ``best = max(best, x[i])`` does.

The adjoint of the last value belongs to the iteration that replaced it last. Later iterations hand
it on, and to earlier ones none is left. So one adjoint iteration is enough, and the forward loop
saves the number of that iteration, in place of a value or a truth value for each. So it is where
an inner loop computes the values: its adjoint iterations add zeros if they begin with one. Where
equal values share the adjoint, as those of `np.maximum` do, iterations after it may have a part in
it: then all from there on have an adjoint iteration.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from nbta.graph.graph import substitute
from nbta.graph.operation import Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, is_loop
from nbta.ops.core.arithmetic import (
    ADD_N,
    SCALE,
    SCALE_BACK,
    WHERE,
    add,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    multiply,
    not_equal,
    subtract,
    where,
)
from nbta.ops.core.dispatch import CONSTANT, as_tensor, constant_in
from nbta.ops.core.shaping import IDENTITY, cast
from nbta.ops.indexing.items import ADD_ITEM
from nbta.ops.loops.bodies import GradientGraph
from nbta.ops.loops.branch import CASE

COMPARISONS = frozenset(
    f.record for f in (greater, greater_equal, less, less_equal, equal, not_equal)
)
#: Of so many truth values all combinations are looked at.
CONDITIONS = 2
#: So many operations in a row may make a truth value of comparisons.
DEPTH = 4
ONE = np.int64(1)


class _Zero:
    """What an adjoint is known to be."""


ZERO = _Zero()


class Selection(NamedTuple):
    """What decides whether an iteration has an adjoint iteration, as tensors of the forward body.

    ``resets`` holds where it leaves no adjoint to earlier iterations, ``shares`` where it takes a
    part of one; the latter is None where none does.
    """

    resets: Tensor
    shares: Tensor | None

    def save(self, loop: Loop) -> "Saved":
        """Let a loop save the last iteration that resets, and whether later ones share."""
        with loop.op.graph.as_default(), loop.op.graph.control_dependencies(None):
            none, no = as_tensor(np.int64(-1)), as_tensor(np.False_)
        last = loop.add_variable(none, lambda last: where(self.resets, loop.counter, last))
        if self.shares is None:
            return Saved(loop.iterations, last, None)
        followed = loop.add_variable(
            no, lambda found: logical_and(~self.resets, logical_or(found, self.shares))
        )
        return Saved(loop.iterations, last, followed)


class Saved(NamedTuple):
    """Iterations of a loop, the last that resets or -1, and whether later ones share."""

    iterations: Tensor
    last: Tensor
    followed: Tensor | None

    def count(self) -> Tensor:
        """How many adjoint iterations there are."""
        one = cast(greater_equal(self.last, 0), np.int64)
        if self.followed is None:
            return one
        return where(self.followed, subtract(self.iterations, maximum(self.last, 0)), one)

    def iteration(self, counter: Tensor) -> Tensor:
        """Which iteration an adjoint iteration is of."""
        graph = counter.graph
        last = graph.resolve(self.last)
        if self.followed is None:
            return last
        back = subtract(subtract(graph.resolve(self.iterations), ONE), counter)
        return where(graph.resolve(self.followed), back, last)


def selection(backward) -> Selection | None:
    """What decides whether there is an adjoint iteration, of those that a body computes.

    None where each iteration has one, or where nobody sees what decides.

    Parameters
    ----------
    backward : GradientGraph
        The adjoint iteration of a loop. Its parameters are a counter and adjoints.
    """
    for choosing in (_chosen_by, _chosen_in_branches):
        conditions = _conditions(backward, choosing(backward))
        found = _selection_by(backward, conditions) if conditions else None
        if found is not None:
            return found
    return None


def _selection_by(backward, conditions):
    """`selection`, where the truth values that choose are some conditions."""
    parameters, ends = backward.inputs[1 : len(backward.outputs)], backward.outputs[1:]
    ways = [_Way(conditions, values) for values in product((True, False), repeat=len(conditions))]
    results = [way.results(ends, {}) for way in ways]
    cleared = {places for places in map(_zeros, results) if places}
    if len(cleared) != 1:
        return None
    (places,) = cleared
    zeros = {parameters[place]: ZERO for place in places}
    wanted = [zeros.get(parameter, parameter) for parameter in parameters]
    if not all(_are(way.results(ends, zeros), wanted) for way in ways):
        return None  # earlier iterations have a part in other adjoints
    resets = [way for way, found in zip(ways, results, strict=True) if _zeros(found)]
    shares = [
        way
        for way, found in zip(ways, results, strict=True)
        if not _zeros(found) and not _are(found, parameters)
    ]
    made = _forward(backward, conditions)
    for place, condition in enumerate(conditions):
        value, *others = {way.values[place] for way in resets}
        if not others and not shares:  # it is known in the one adjoint iteration
            constant = constant_in(backward, np.array(value))
            substitute(backward, dict.fromkeys(condition, constant))
    return Selection(_any_of(resets, made), _any_of(shares, made) if shares else None)


class _Way(NamedTuple):
    """Truth values for conditions."""

    conditions: list
    values: tuple

    def results(self, ends, given):
        """What tensors are: `ZERO`, or a tensor that they are equal to."""
        pairs = zip(self.conditions, self.values, strict=True)
        known = {tensor: value for condition, value in pairs for tensor in condition}
        return _results(ends, known, given)

    def holds(self, tensors):
        """The truth value of these values of conditions."""
        found = [
            tensor if value else logical_not(tensor)
            for tensor, value in zip(tensors, self.values, strict=True)
        ]
        return found[0] if len(found) == 1 else logical_and(*found)


def _are(results, others):
    return all(one is other for one, other in zip(results, others, strict=True))


def _zeros(results):
    return frozenset(place for place, found in enumerate(results) if found is ZERO)


def _any_of(ways, tensors):
    """The truth value of one of some ways, in the forward body."""
    with tensors[0].graph.as_default(), tensors[0].graph.control_dependencies(None):
        found = [way.holds(tensors) for way in ways]
        total = found[0]
        for other in found[1:]:
            total = logical_or(total, other)
    return total


def _conditions(backward, choosing):
    """Truth values of the forward body that choose in an adjoint one; equal ones together.

    None of them where there are more than are looked at.
    """
    found = {}
    for chosen in choosing:
        tensor = _at_top(backward, chosen)
        key = _meaning(backward, tensor)
        if type(key) is tuple or (key is not None and backward.stands_for(key) is not None):
            found.setdefault(key, []).append(tensor)
        if len(found) > CONDITIONS:
            return []
    return list(found.values())


def _chosen_by(body):
    """Tensors by whose truth value a body chooses."""
    for op in ordered({tensor.op for tensor in body.outputs}):
        chooses = op.record in (WHERE, CASE) and op.inputs[0].spec.rank == 0
        if chooses and op.inputs[0].dtype.kind == "b":
            yield op.inputs[0]


def _chosen_in_branches(body):
    """Tensors by whose truth value a body or one of its branches chooses."""
    yield from _chosen_by(body)
    for op in ordered({tensor.op for tensor in body.outputs}):
        for branch in Branch(op).branches if op.record is CASE else ():
            yield from _chosen_in_branches(branch)


def _at_top(backward, tensor):
    """A tensor of an adjoint body, or of a branch in it, as far out as it is known."""
    while tensor.graph is not backward and tensor in tensor.graph.sources:
        tensor = tensor.graph.sources[tensor]
    return tensor


def _meaning(backward, tensor, depth=DEPTH):
    """What a truth value follows from: a value of the forward body, or an operation on such.

    None where it follows from anything else.
    """
    tensor = _at_top(backward, tensor)
    if _forward_value(backward, tensor) is not None:
        return tensor
    op = tensor.op
    if tensor.dtype.kind != "b" or tensor.spec.rank != 0 or not depth:
        return None
    if not (op.inputs and op.record.elementwise) or op.attrs or op.control_inputs:
        return None
    inputs = [_meaning(backward, each, depth - 1) for each in op.inputs]
    return None if any(each is None for each in inputs) else (op.record, *inputs)


def _forward(backward, conditions):
    """Conditions as tensors of the forward body, which saves them if the adjoint one needs them."""
    found = []
    for condition in conditions:
        tensor = backward.stands_for(condition[0])
        if tensor is None:
            tensor = _in_forward(backward, condition[0])
            saved = backward.recall(tensor)
            for old in condition:
                substitute(old.graph, {old: old.graph.resolve(saved)})
            condition[:] = [saved]
        found.append(tensor)
    return found


def _in_forward(backward, tensor):
    """What has the value of a tensor of an adjoint body in the forward body."""
    tensor, body = _at_top(backward, tensor), backward.forward
    found, op = _forward_value(backward, tensor), tensor.op
    if found is None:
        inputs = [_in_forward(backward, each) for each in op.inputs]
        with body.control_dependencies(None):
            return body.create(op.record, inputs, dict(op.attrs)).outputs[0]
    if found.op.record is CONSTANT:
        return constant_in(body, found.op.attrs["value"])
    return body.resolve(found)


def _forward_value(backward, tensor):
    """What has the value of a tensor of an adjoint body in the forward body, or around that.

    None where nothing has. A constant is itself, of whatever body.
    """
    if tensor.op.record is CONSTANT:
        return tensor
    source, around = backward.sources.get(tensor), backward.forward.outer
    if source is None:
        return backward.stands_for(tensor)
    if source.graph is around:
        return source
    outer = source.graph  # an adjoint body too, where the loop lies in a loop or branch
    follows = isinstance(outer, GradientGraph) and outer.forward is around
    return _forward_value(outer, source) if follows else None


# What tensors are where some truth values and zeros are known.


def _results(ends, known, given):
    values = dict(given)
    for op in ordered({tensor.op for tensor in ends}):
        inputs = [values.get(tensor, tensor) for tensor in op.inputs]
        rule = _loop if is_loop(op) else _RULES.get(op.record, _linear)
        found = rule(op, inputs, known)
        values.update(zip(op.outputs, found or (), strict=False))
    return [values.get(tensor, tensor) for tensor in ends]


def _constant(op, inputs, known):
    value = op.attrs["value"]
    return [ZERO] if value.dtype.kind in "fc" and not np.any(value) else None


def _linear(op, inputs, known):
    """Of an operation that is linear in inputs that are all zero."""
    places = op.record.linear or ()
    if places is True:
        places = [place for place, x in enumerate(op.inputs) if x.spec.differentiable]
    zero = len(op.outputs) == 1 and places and all(inputs[place] is ZERO for place in places)
    return [ZERO] if zero else None


def _scaled(op, inputs, known):
    """An adjoint that is zero stays zero, whatever the factor is."""
    return [ZERO] if inputs[0] is ZERO else None


def _same(op, inputs, known):
    return [inputs[0]]


def _product(op, inputs, known):
    """Times a number that is finite: another one may give NaN."""
    for one, other in (inputs, inputs[::-1]):
        if one is ZERO and other is not ZERO and other.op.record is CONSTANT:
            return [ZERO] if np.all(np.isfinite(other.op.attrs["value"])) else None
    return None


def _sum(op, inputs, known):
    left = [value for value in inputs if value is not ZERO]
    if not left:
        return [ZERO]
    return left if len(left) == 1 and left[0].spec == op.outputs[0].spec else None


def _added_item(op, inputs, known):
    return [inputs[0]] if inputs[1] is ZERO else None


def _chosen(op, inputs, known):
    if inputs[0] in known:
        return [inputs[1 if known[inputs[0]] else 2]]
    return [ZERO] if inputs[1] is inputs[2] is ZERO else None


def _branch(op, inputs, known):
    if inputs[0] not in known:
        return None
    branch = Branch(op).branches[0 if known[inputs[0]] else 1]
    return _results(branch.outputs, known, dict(zip(branch.inputs, inputs[1:], strict=True)))


def _loop(op, inputs, known):
    """Variables that no iteration changes, where what is zero on entry is zero in all of them."""
    loop = Loop(op)
    body, zeros = loop.body, [value is ZERO for value in inputs]
    left = dict(enumerate(loop.parameters))
    while True:
        pairs = enumerate(zip(body.inputs, zeros, strict=True))
        given = {t: ZERO for k, (t, zero) in pairs if zero and (k in left or k >= loop.count)}
        ends = _results(body.outputs, known, given)
        same = {k: t for k, t in left.items() if ends[k] is given.get(t, t)}
        if len(same) == len(left):
            return [inputs[k] if k in left else tensor for k, tensor in enumerate(op.outputs)]
        left = same


_RULES = {
    CONSTANT: _constant,
    IDENTITY: _same,
    multiply.record: _product,
    add.record: _sum,
    ADD_N: _sum,
    ADD_ITEM: _added_item,
    WHERE: _chosen,
    CASE: _branch,
    SCALE: _scaled,
    SCALE_BACK: _scaled,
}
