"""Passes about shapes: what is known of them for given lengths, and what that makes needless.

``specialise`` infers all shapes again from those of the inputs. An array's elements have the shape
that all writes of it give. Every `Dim` belongs to an input of the program, so that it is one length
in all trips of all loops.
"""

import itertools

from nbta import shapes
from nbta.compiler.induction import constant_of, origin
from nbta.compiler.program import Program, copied, rebuild
from nbta.compiler.tapes import Tapes, everything
from nbta.errors import NbtaError
from nbta.graph.graph import subgraphs
from nbta.graph.operation import Operation
from nbta.graph.spec import DATA, Spec
from nbta.ops.arrays import (
    CONCAT,
    CREATE,
    GATHER,
    LOOKUP_WITH_SHAPE,
    READ,
    READS,
    SCATTER,
    SIZE,
    SPLIT,
    VALUE_PLACE,
    WRITES,
)
from nbta.ops.branch import CASE
from nbta.ops.dispatch import PARAMETER
from nbta.ops.extents import pattern_of
from nbta.ops.loop import WHILE
from nbta.shapes import Dim

#: Which input holds the shape that the attribute ``pattern`` describes.
PATTERN_OF = {"BroadcastTo": 1, "Fill": 0, "Reshape": 1, "ScatterSlice": 1, "Slice": 2, "SumTo": 1}


def specialise(program: Program, given, together: bool = False) -> Program:
    """Infer all shapes from those of the inputs.

    Parameters
    ----------
    program : Program
    given : list of tuple of int
        The shapes of what is fed. Only which lengths are 1 goes into the result, so that it holds
        for all shapes that `fits` accepts.
    together : bool
        Also take lengths for one that are equal in ``given``, where some operation needs them to
        be; `fits` then asks for that.

    Returns
    -------
    Program
        The same one where the shapes cannot be, as the run is to say so if it gets there.
    """
    first = [
        _given(tensor.spec, shape) for tensor, shape in zip(program.inputs, given, strict=True)
    ]
    pairs = zip(program.inputs, given, strict=True)
    swap = {
        extent: 1
        for tensor, shape in pairs
        for extent, length in zip(tensor.spec.shape or (), shape, strict=False)
        if isinstance(extent, Dim) and length == 1
    }
    while True:
        made = rebuild(program, copied)
        work = _Shapes(made, [_swapped(spec, swap) for spec in first], given, swap)
        try:
            work.infer_all()
            links = work.links() if together else {}
        except NbtaError:
            return program
        if not links:
            return made
        swap = {old: links.get(new, new) for old, new in swap.items()} | links


def fits(program: Program, given) -> bool:
    """Whether shapes are as the inputs of a specialised program say."""
    lengths = {}
    return all(
        tensor.spec.shape is None
        or (
            len(tensor.spec.shape) == len(shape)
            and all(_fits(*pair, lengths) for pair in zip(tensor.spec.shape, shape, strict=True))
        )
        for tensor, shape in zip(program.inputs, given, strict=True)
    )


def _fits(extent, length, lengths):
    if isinstance(extent, Dim):
        return length != 1 and lengths.setdefault(extent, length) == length
    return extent in (None, length)


def _given(spec, shape):
    """A spec with what a shape tells: its rank, and which lengths are 1."""
    if spec.kind != DATA:
        return spec
    pattern = (None,) * len(shape) if spec.shape is None else spec.shape
    return spec._replace(shape=tuple(map(_extent, pattern, shape)))


def _extent(extent, length):
    if extent is not None:
        return extent
    return 1 if length == 1 else Dim()


def _swapped(value, swap):
    """A spec or a pattern, or anything else, with other extents in place of some."""
    if isinstance(value, Dim):
        return swap.get(value, value)
    if isinstance(value, Spec):
        return value._replace(shape=_swapped(value.shape, swap))
    return tuple(_swapped(item, swap) for item in value) if type(value) is tuple else value


class _Shapes:
    """The specs of a program that nobody else has yet, inferred again."""

    def __init__(self, program, first, given, swap):
        self._program, self._first, self._swap = program, first, swap
        self._length = {}
        for spec, shape in zip(first, given, strict=True):
            for extent, length in zip(spec.shape or (), shape, strict=False):
                if isinstance(extent, Dim):
                    self._length.setdefault(extent, length)
        self._linked = set()
        self._tapes = None

    def infer_all(self):
        """Infer until what arrays hold says no more about what is read from them."""
        for op in everything(self._program):
            op.attrs.update({key: _swapped(value, self._swap) for key, value in op.attrs.items()})
        _set_all(self._program.inputs, self._first)
        self._infer(self._program)
        self._tapes = Tapes(self._program)
        while True:
            self._infer(self._program)
            if not self._learn_elements():
                return

    def _infer(self, graph):
        for op in graph.operations:
            if op.record is PARAMETER:
                continue
            self._learn_pattern(op)
            if op.record is WHILE:
                self._infer_loop(op)
            elif op.record is CASE:
                for branch in op.attrs["branches"]:
                    _set_all(branch.inputs, [tensor.spec for tensor in op.inputs[1:]])
                    self._infer(branch)
            for tensor, spec in zip(op.outputs, op.infer(), strict=True):
                tensor.spec = spec

    def _infer_loop(self, op):
        """Variables are what their first values and all later ones have in common."""
        cond, body, count = (op.attrs[key] for key in ("cond", "body", "count"))
        specs = [tensor.spec for tensor in op.inputs]
        while True:
            _set_all(body.inputs, specs)
            self._infer(body)
            wider = [_common(a, b.spec) for a, b in zip(specs[:count], body.outputs, strict=True)]
            if wider == specs[:count]:
                break
            self._link(zip(specs, (tensor.spec for tensor in body.outputs), strict=False))
            specs[:count] = wider
        _set_all(cond.inputs, specs)
        self._infer(cond)

    def _learn_pattern(self, op):
        place = PATTERN_OF.get(op.type)
        if place is not None:
            _merge_into(op.attrs, "pattern", self._pattern(op.inputs[place]))
        if op.type == "Range" and (constant_of(op.inputs[0]), constant_of(op.inputs[2])) == (0, 1):
            self._learn_extent(op)

    def _pattern(self, shape):
        """The extents in a shape, also in one that a tape brings."""
        if self._tapes is None or shape.op.record is not READ:
            return pattern_of(shape)
        found = pattern_of(self._tapes.whereabouts(shape).tensor)
        return found and tuple(n if self._is_length(n) else None for n in found)

    def _learn_extent(self, op):
        stop = origin(op.inputs[1])
        if stop.op.record is SIZE:
            made = origin(stop.op.inputs[0]).op
            if made.record is not CREATE or made.attrs["dynamic_size"]:
                return
            stop = made.inputs[0]
        found = pattern_of(stop) if stop.spec.rank == 0 else None
        if found and op.attrs["extent"] is None and self._is_length(found[0]):
            op.attrs["extent"] = found[0]

    def _is_length(self, extent):
        """Whether an extent is one length in all trips of all loops."""
        return extent in self._length or (type(extent) is int and extent >= 0)

    def _learn_elements(self):
        """Tell reads of arrays what all writes put in; whether that was news to any."""
        news = False
        for array, users in self._tapes.users.items():
            found = self._element(array)
            for op in users if found is not None else ():
                if op.record in READS and op.attrs.get("kind", DATA) == DATA:
                    news |= _merge_into(op.attrs, "known", found)
        return news

    def _element(self, array):
        """The shape of all elements of an array; None where it is not plain."""
        written = []
        while True:
            users = self._tapes.users.get(array, ())
            if not self._tapes.is_known(array) or any(map(_tells_shape, users)):
                return None
            written += [_stored(op) for op in users if op.record in WRITES]
            if not isinstance(array, tuple):
                break
            array = array[0]  # slots of a gradient array have the shapes of the forward slots
        if not written:
            return None
        if shapes.is_known(array.op.attrs["element_shape"]):
            return array.op.attrs["element_shape"]  # of what nobody writes, too
        found = written[0]
        for other in written[1:]:
            self._link([(Spec(None, found), Spec(None, other))])
            found = shapes.common(found, other)
        return found and tuple(n if self._is_length(n) else None for n in found)

    def _link(self, pairs):
        """Note lengths that would say more if they were one."""
        for one, other in pairs:
            for a, b in zip(one.shape or (), other.shape or (), strict=False):
                if a is not b and a in self._length and b in self._length:
                    self._linked.add((a, b))

    def links(self):
        """Lengths that are equal now, and that something needs to be equal."""
        order = list(self._length)
        for op in everything(self._program):
            if len(op.inputs) > 1 and not (subgraphs(op) or op.record.foreign):
                self._linked |= _needed_equal(op, order)
        found = {}
        for pair in self._linked:
            one, other = sorted((_last(found, extent) for extent in pair), key=order.index)
            if one is not other and self._length[one] == self._length[other]:
                found[other] = one
        return {old: _last(found, old) for old in found}


def _last(found, extent):
    while extent in found:
        extent = found[extent]
    return extent


def _set_all(parameters, specs):
    for parameter, spec in zip(parameters, specs, strict=True):
        parameter.spec = parameter.op.attrs["spec"] = spec


def _common(one, other):
    return one._replace(shape=shapes.common(one.shape, other.shape))


def _merge_into(attrs, key, pattern):
    """Add to a pattern; whether it says more now."""
    try:
        merged = shapes.merge(attrs[key], pattern)
    except ValueError:
        return False  # it fails when it runs, if it runs
    news = merged != attrs[key]
    attrs[key] = merged
    return news


def _stored(op):
    """The shape of the elements that an operation writes."""
    shape = op.inputs[VALUE_PLACE[op.type]].spec.shape
    if op.record is SPLIT:
        return shape and (None, *shape[1:])
    return shape and shape[1:] if op.record is SCATTER else shape


def _tells_shape(op):
    """Whether an operation fixes an element shape for slots that nothing is written to."""
    return op.record is LOOKUP_WITH_SHAPE or bool(
        op.attrs.get("element_shape")
        if op.record in (GATHER, READ)
        else op.attrs.get("element_shape_except0")
        if op.record is CONCAT
        else None
    )


def _needed_equal(op: Operation, extents):
    """Pairs of lengths that an operation refuses if they differ."""
    specs = [tensor.spec for tensor in op.inputs]
    inside = {extent for spec in specs for extent in spec.shape or ()}
    have = [extent for extent in extents if extent in inside]
    return {
        (one, other)
        for one, other in itertools.combinations(have, 2)
        if _infers(op, specs, {one: 2, other: 2}) and not _infers(op, specs, {one: 2, other: 3})
    }


def _infers(op, specs, lengths):
    attrs = {key: _swapped(value, lengths) for key, value in op.attrs.items()}
    try:
        op.record.infer(*(_swapped(spec, lengths) for spec in specs), **attrs)
    except NbtaError:
        return False
    return True
