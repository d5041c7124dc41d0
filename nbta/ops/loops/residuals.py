"""Save and Restore: what the adjoint iterations of a loop need of its iterations.

A *tape* is a value of a kind of its own: a list to which a loop, which carries it as a variable,
adds a value in each iteration (`Save`), and from which operations after the loop take the values
again, by the number of the iteration (`Restore`). A loop in the body of another one makes a tape in
each iteration, and the loop around saves that like any other value. A restore says of which shape
its result is, as far as that is known.

The gradient of a tape is its *shadow* (`Shadow`): a tape of as many zeros, to which adjoints of
restored values are added (`AddSaved`), and from which those of saved values are restored.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nbta.graph.operation import DATA, TAPES, Addend, NotDifferentiable, Spec, Tensor
from nbta.graph.views import Branch, Loop, is_branch, is_loop, variable_of
from nbta.ops.arrays.tensor_arrays import build
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import as_tensor, define
from nbta.ops.core.filling import zeros_like


def tape_spec(spec: Spec) -> Spec:
    """The spec of a tape of values like ``spec``."""
    return Spec(spec.dtype, (), TAPES[spec.kind])


class _Store:
    """The sums of a shadow, by index, and how many values have been added.

    Parameters
    ----------
    tape : list or _Shadow
        Of the values that sums are like.
    """

    def __init__(self, tape):
        self.tape, self.sums, self.count = tape, {}, 0


class _Shadow(NamedTuple):
    """A shadow as it is after so many values; there is one at a time, as values are added in place.

    Whoever goes on with an older one is a mistake in nbta, which must not be a wrong number.
    """

    store: _Store
    count: int

    def __getitem__(self, index):
        self._hold()
        sums = self.store.sums
        if index not in sums:
            like = self.store.tape[index]
            sums[index] = _shadow(like) if isinstance(like, list | _Shadow) else np.zeros_like(like)
        return sums[index]

    def added(self, index, value):
        """The shadow with one more value added."""
        self._hold()
        have = self.store.sums.get(index)
        self.store.sums[index] = value if have is None else _sum(have, value)
        self.store.count += 1
        return self._replace(count=self.store.count)

    def _hold(self):
        if self.count != self.store.count:
            raise AssertionError("a shadow of a tape was changed after it was forwarded")


def _sum(one, other):
    if not isinstance(one, _Shadow):
        return one + other
    for index, value in other.store.sums.items():
        one = one.added(index, value)
    return one


def _shadow(tape):
    return _Shadow(_Store(tape), 0)


# Tapes.


class Values(list):
    """What was saved on a tape, by the number of the iteration."""

    __slots__ = ("__weakref__",)


EMPTY = define(
    "Tape",
    lambda *, dtype, kind: Spec(dtype, (), kind),
    lambda *, dtype, kind: Values(),
    lambda op, dy: [],
)


def _save(tape, index, value):
    """The tape with another value; the first one begins a new list, as empty ones may be shared."""
    if index == 0:
        return Values([value])
    tape.append(value)
    return tape


def _infer_save(tape, index, value):
    want = tape_spec(value)
    if (tape.dtype, tape.kind) != (want.dtype, want.kind):
        raise AssertionError(f"a {value} is saved on a {tape.kind} of {tape.dtype}")
    return tape


def _save_gradient(op, dy):
    _, index, value = op.inputs
    return [dy, None, restore(dy, index, value.spec) if value.spec.differentiable else None]


def _save_tangent(op, tape, _, value):
    """Tangents are saved beside the values: a tape has some of all or of none of its values."""
    old, index, saved = op.inputs
    beside = old if tape is None else tape
    return [save(beside, index, none_like(saved) if value is None else value)]


SAVE = define("Save", _infer_save, _save, _save_gradient, spreads=True, tangent=_save_tangent)


def _restore_gradient(op, dy):
    tape, index = op.inputs

    def onto(total, value):
        return build(ADD_SAVED, [total, index, value])[0]

    return [Addend(dy, (RESTORE, index), lambda value: onto(shadow(tape), value), onto), None]


def _restore_tangent(op, tape, _):
    return [None if tape is None else restore(tape, op.inputs[1], op.outputs[0].spec)]


RESTORE = define(
    "Restore",
    lambda tape, index, *, dtype, known, kind: Spec(dtype, known, kind),
    lambda tape, index, *, dtype, known, kind: tape[int(index)],
    _restore_gradient,
    spreads=True,
    tangent=_restore_tangent,
)

#: In compiled programs: the values of several numbers, as `nbta.ops.arrays.tensor_arrays.GATHER`
#: stacks them.
RESTORE_ROWS = define(
    "RestoreRows",
    lambda tape, indices, *, dtype, known, **attrs: Spec(dtype, (indices.shape[0], *known)),
    lambda tape, indices, *, dtype, known, **attrs: _stacked(tape, indices, dtype, known),
    NotDifferentiable("compiled programs are not differentiated"),
)


def _stacked(tape, indices, dtype, known):
    if len(indices):
        return np.stack([tape[index] for index in indices])
    shape = tape[0].shape if tape else (n if type(n) is int else 0 for n in known)
    return np.zeros((0, *shape), dtype)


# Shadows.

SHADOW = define(
    "Shadow",
    lambda tape: tape,
    lambda step, tape: _shadow(tape),
    lambda context, op, dy: [None],
    effects=True,  # each is one of its own, to which values are added where it is
    connections=lambda op: [[]],
    tangent=lambda context, op, tape: [shadow(op.inputs[0])],
)


def _add_saved_gradient(op, dy):
    _, index, value = op.inputs
    return [dy, None, restore(dy, index, value.spec)]


def _add_saved_tangent(op, tape, _, value):
    old, index, added = op.inputs
    inputs = [none_like(old) if tape is None else tape, index]
    return build(ADD_SAVED, [*inputs, none_like(added) if value is None else value])


ADD_SAVED = define(
    "AddSaved",
    lambda tape, index, value: tape,
    lambda tape, index, value: tape.added(int(index), value),
    _add_saved_gradient,
    spreads=True,
    tangent=_add_saved_tangent,
)


def _add_shadows_tangent(op, one, other):
    pairs = zip((one, other), op.inputs, strict=True)
    return build(ADD_SHADOWS, [none_like(old) if tape is None else tape for tape, old in pairs])


#: The first shadow with all that the second one has; of what arrives at a tape in two ways.
ADD_SHADOWS = define(
    "AddShadows",
    lambda one, other: one,
    lambda one, other: _sum(one, other),
    lambda op, dy: [dy, dy],
    spreads=True,
    tangent=_add_shadows_tangent,
)


def empty_tape(spec: Spec, name: str = "tape") -> Tensor:
    """A tape of no values yet, which will be like ``spec``."""
    return build(EMPTY, [], {"dtype": spec.dtype, "kind": TAPES[spec.kind]}, name)[0]


def save(tape: Tensor, index: Tensor, value: Tensor) -> Tensor:
    """The tape with another value, whose number is the index."""
    return build(SAVE, [tape, index, value])[0]


def saved_by(loop: Loop, tensor: Tensor) -> Tensor:
    """A new tape of a loop with a tensor of its body, iteration by iteration, after the loop."""
    with loop.op.graph.as_default(), loop.op.graph.control_dependencies(None):
        start = empty_tape(tensor.spec, f"tape_of_{tensor.op.type}")
    return loop.add_variable(start, lambda tape: save(tape, loop.counter, tensor))


def restore(tape: Tensor, index: Tensor, spec: Spec) -> Tensor:
    """The value of a number, which is like ``spec``."""
    attrs = {"dtype": spec.dtype, "known": spec.shape, "kind": spec.kind}
    return build(RESTORE, [tape, index], attrs)[0]


def shadow(tape: Tensor) -> Tensor:
    """A tape of as many zeros."""
    return build(SHADOW, [tape])[0]


def sum_of_shadows(one: Tensor, other: Tensor) -> Tensor:
    """The first shadow with what the second one has added to it."""
    return build(ADD_SHADOWS, [one, other])[0]


def saved_values(tape: Tensor) -> list[Tensor]:
    """What may have been saved on a tape, in a graph that is being built."""
    seen, todo, found = set(), [tape], []
    while todo:
        tape = outside(todo.pop())
        if tape in seen:
            continue
        seen.add(tape)
        if tape.op.record is SAVE:
            found.append(tape.op.inputs[2])
        todo += _before(tape)
    return found


def _before(tape):
    """What a tape was made of, or may have been; of a shadow what it is like."""
    op = tape.op
    if op.record is RESTORE:
        return saved_values(op.inputs[0])
    if op.record in (SAVE, SHADOW, ADD_SAVED, ADD_SHADOWS):
        return op.inputs[:1]
    if is_branch(op):
        return Branch(op).ends(tape.index)
    variable = Loop(op).variable(tape.index) if is_loop(op) else variable_of(tape)
    if variable is not None:
        return [variable.first, variable.following]
    stood_for = getattr(tape.graph, "stands_for", lambda _: None)(tape)  # there is no tape as yet
    return [] if stood_for is None else [stood_for]


def none_like(tensor: Tensor) -> Tensor:
    """Zeros in place of a tangent or an adjoint; of handles and flows these themselves."""
    if tensor.kind == TAPES[DATA]:
        return tensor if tensor.op.record is EMPTY else shadow(tensor)
    if tensor.kind != DATA:
        return tensor
    return as_tensor(zeros_like(tensor))
