"""Passes about shapes: what is known of them for given lengths, and what that makes needless.

``specialise`` infers all shapes again from those of the inputs. An array's elements have the shape
that all writes of it give. Every `Dim` is the length of an input of the program, or follows from
such, so that it is one length in all trips of all loops.
"""

import itertools

from nbta import shapes
from nbta.compiler.derived import Assumed, Lengths, Sum, in_order, rule_of, swapped
from nbta.compiler.patterns import merge_into, stored, tells_shape
from nbta.compiler.program import Program, rebuild
from nbta.compiler.tapes import Tapes
from nbta.errors import NbtaError
from nbta.graph.copying import copied
from nbta.graph.graph import everything, subgraphs
from nbta.graph.spec import DATA, Spec
from nbta.graph.views import Branch, Loop, is_branch, is_loop, origin
from nbta.ops.arithmetic import add
from nbta.ops.arrays import CREATE, READ, READS, SIZE, WRITES
from nbta.ops.dispatch import PARAMETER
from nbta.ops.extents import outside, pattern_of
from nbta.ops.indexing import GETITEM
from nbta.ops.rearranging import RANGE
from nbta.ops.shaping import RESHAPE
from nbta.ops.trip_counts import constant_of
from nbta.shapes import Dim

#: A length that no other one is equal to by chance.
UNLIKE = 2**40 + 15


def specialise(program: Program, given, together: bool = False) -> Program:
    """Infer all shapes from those of the inputs.

    Parameters
    ----------
    program : Program
    given : list of tuple of int
        The shapes of what is fed. Only which lengths are 1 goes into the result, so that it holds
        for all shapes that `fits` accepts.
    together : bool
        Also compute lengths that rules do not give before the run, and take lengths for one that
        are equal in ``given``, where some operation needs them to be; `fits` then asks for that.

    Returns
    -------
    Program
        The same one where the shapes cannot be, as the run is to say so if it gets there.
    """
    made = rebuild(program, copied)
    try:
        work = _Shapes(made, given, together)
        work.infer_all()
    except NbtaError:
        return program
    rules = in_order(work.rules(), work.inputs)
    if rules is None:
        return specialise(program, given)
    made.assumed = Assumed(rules, work.inputs) if rules else None
    return made


def fits(program: Program, given) -> bool:
    """Whether shapes are as a specialised program says."""
    lengths = {}
    alike = all(
        tensor.spec.shape is None
        or (
            len(tensor.spec.shape) == len(shape)
            and all(_fits(*pair, lengths) for pair in zip(tensor.spec.shape, shape, strict=True))
        )
        for tensor, shape in zip(program.inputs, given, strict=True)
    )
    return alike and (program.assumed is None or program.assumed.hold(lengths))


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


class _Shapes:
    """The specs of a program that nobody else has yet, inferred again."""

    def __init__(self, program, given, together):
        self._program, self._together = program, together
        pairs = list(zip(program.inputs, given, strict=True))
        self._first = [_given(tensor.spec, shape) for tensor, shape in pairs]
        swap, known = {}, {}
        for (tensor, shape), spec in zip(pairs, self._first, strict=True):
            for old, new, length in zip(
                tensor.spec.shape or (), spec.shape or (), shape, strict=False
            ):
                if isinstance(old, Dim) and length == 1:
                    swap[old] = 1
                elif isinstance(new, Dim):
                    known.setdefault(new, length)
        self._lengths = Lengths(known)
        self._linked = set()
        self._tapes = None
        self._operations = list(everything(program))
        self._attrs = {}
        self._swap(swap)

    @property
    def inputs(self) -> list:
        """What stands for lengths of inputs."""
        found = (extent for spec in self._first for extent in spec.shape or ())
        return list(dict.fromkeys(extent for extent in found if isinstance(extent, Dim)))

    def _swap(self, swap):
        """Use other extents in place of some, wherever they are."""
        self._first = [swapped(spec, swap) for spec in self._first]
        for op in self._operations:
            for attrs in (op.attrs, self._attrs.setdefault(op, {})):
                attrs.update({key: swapped(value, swap) for key, value in attrs.items()})

    def infer_all(self):
        """Infer until neither what arrays hold nor what must be equal says any more."""
        self._set_up()
        self._tapes = Tapes(self._program)
        while True:
            self._set_up()
            if not self._learn_elements():
                links = self._links() if self._together else {}
                if not links:
                    return
                while links:
                    self._swap(links)
                    links = self._lengths.unite(links)

    def _set_up(self):
        _set_all(self._program.inputs, self._first)
        self._infer(self._program)

    def _infer(self, graph):
        for op in graph.operations:
            if op.record is PARAMETER:
                continue
            self._learn_pattern(op)
            if is_loop(op):
                self._infer_loop(Loop(op))
            elif is_branch(op):
                self._infer_branches(Branch(op))
            specs = op.infer()
            for tensor, spec in zip(op.outputs, specs, strict=True):
                tensor.spec = spec
            if self._together and any(None in (spec.shape or ()) for spec in specs):
                self._derive(op)

    def _derive(self, op):
        """Compute the lengths that a shape rule does not give before the run."""
        rule = rule_of(op, self._length_in)
        found = rule and self._lengths.shapes(rule)
        for tensor, shape in zip(op.outputs, found or (), strict=False):
            tensor.spec = tensor.spec._replace(shape=shapes.merge(tensor.spec.shape, shape))

    def _length_in(self, scalar):
        """The length that a scalar is, or the sum of such; None where it is something else."""
        made = outside(scalar).op
        if made.record is add.record:
            ends = [self._length_in(tensor) for tensor in made.inputs]
            return None if None in ends else Sum(*ends).swapped({})
        if made.record is not GETITEM or made.inputs[0].spec.rank != 1:
            found, place = self._pattern(outside(scalar)), 0
        else:
            found, (place, *_) = self._pattern(outside(made.inputs[0])), made.attrs["key"]
        inside = found and type(place) is int and -len(found) <= place < len(found)
        return found[place] if inside and self._is_length(found[place]) else None

    def rules(self):
        """What gives the lengths that were computed, and those lengths."""
        found = {}
        for op in self._operations if self._together else ():
            places = tuple(_differing(op))
            if places:
                rule = rule_of(op, self._length_in)
                found[rule.key, places] = rule, places
        return list(found.values())

    def _infer_branches(self, case):
        first, *_ = case.branches
        for branch in case.branches:
            _set_all(branch.inputs, [tensor.spec for tensor in case.captured])
            self._infer(branch)
            self._link((a.spec, b.spec) for a, b in zip(first.outputs, branch.outputs, strict=True))

    def _infer_loop(self, loop):
        """Variables are what their first values and all later ones have in common."""
        cond, body, count = loop.cond, loop.body, loop.count
        specs = [tensor.spec for tensor in loop.op.inputs]
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
        place = op.record.shape_input
        if place is not None:
            self._learn(op, "pattern", self._pattern(op.inputs[place]))
        if op.record is RANGE and (constant_of(op.inputs[0]), constant_of(op.inputs[2])) == (0, 1):
            self._learn_extent(op)

    def _learn(self, op, key, pattern):
        """Add to the pattern that an operation had at first, as a loop may know less by now."""
        op.attrs[key] = self._attrs[op].setdefault(key, op.attrs[key])
        merge_into(op.attrs, key, pattern)

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
        extent = self._attrs[op].setdefault("extent", op.attrs["extent"])
        if found and extent is None and self._is_length(found[0]):
            extent = found[0]
        op.attrs["extent"] = extent

    def _is_length(self, extent):
        """Whether an extent is one length in all trips of all loops."""
        return extent in self._lengths.known or (type(extent) is int and extent >= 0)

    def _learn_elements(self):
        """Tell reads of arrays what all writes put in; whether that was news to any."""
        news = False
        for array, users in self._tapes.uses.users.items():
            found = self._element(array)
            for op in users if found is not None else ():
                if op.record in READS and op.attrs.get("kind", DATA) == DATA:
                    news |= merge_into(op.attrs, "known", found)
        return news

    def _element(self, array):
        """The shape of all elements of an array; None where it is not plain."""
        written = []
        while True:
            users = self._tapes.uses.users.get(array, ())
            if not self._tapes.is_known(array) or any(map(tells_shape, users)):
                return None
            written += [stored(op) for op in users if op.record in WRITES]
            if len(array) == 1:
                break
            array = array[:-1]  # slots of a gradient array have the shapes of the forward slots
        if not written:
            return None
        told = array[0].attrs["element_shape"]
        if shapes.is_known(told):
            return told  # of what nobody writes, too
        found = written[0]
        for other in written[1:]:
            self._link([(Spec(None, found), Spec(None, other))])
            found = shapes.common(found, other)
        return found and tuple(n if self._is_length(n) else None for n in found)

    def _link(self, pairs):
        """Note lengths that would say more if they were one."""
        for one, other in pairs:
            for pair in zip(one.shape or (), other.shape or (), strict=False):
                if self._are_equal(*pair):
                    self._linked.add(pair)

    def _are_equal(self, one, other):
        """Whether two lengths are equal now, and not by themselves."""
        known = self._lengths.known
        return (
            one is not other
            and (one in known or other in known)
            and self._is_length(one)
            and self._is_length(other)
            and known.get(one, one) == known.get(other, other)
        )

    def _links(self):
        """What to use in place of lengths that are equal now, and that something needs to be."""
        for op in self._operations:
            if len(op.inputs) > 1 and op.record is not RESHAPE and not op.record.foreign:
                self._linked |= set() if subgraphs(op) else self._needed_equal(op)
        found, order = {}, {extent: n for n, extent in enumerate(self._lengths.known)}
        for pair in self._linked:
            ends = (_last(found, extent) for extent in pair)
            one, other = sorted(ends, key=lambda extent: order.get(extent, -1))
            if one is not other and isinstance(other, Dim):
                found[other] = one
        self._linked.clear()
        return {old: _last(found, old) for old in found}

    def _needed_equal(self, op):
        """Pairs of lengths, equal now, that an operation refuses if they differ."""
        specs = [tensor.spec for tensor in op.inputs]
        have = dict.fromkeys(extent for spec in specs for extent in spec.shape or ())
        if op.record.shape_input is not None:
            have |= dict.fromkeys(op.attrs["pattern"] or ())
        if len(have) < 2:
            return set()
        pairs = [pair for pair in itertools.combinations(have, 2) if self._are_equal(*pair)]
        return {pair for pair in pairs if self._refuses(op, specs, have, pair)}

    def _refuses(self, op, specs, have, pair):
        """Whether an operation refuses a pair of lengths if they differ, whatever others are."""
        known = self._lengths.known
        one, other = pair if isinstance(pair[0], Dim) else pair[::-1]
        length = known[one]
        equal = {extent: known[extent] for extent in have if extent in known}
        alike = [n for n, m in equal.items() if m == length and n is not one and n is not other]
        ways = [{one: UNLIKE, **dict.fromkeys(alike, n)} for n in (length, UNLIKE)]
        return _infers(op, specs, equal) and not any(_infers(op, specs, equal | w) for w in ways)


def _last(found, extent):
    while extent in found:
        extent = found[extent]
    return extent


def _set_all(parameters, specs):
    for parameter, spec in zip(parameters, specs, strict=True):
        parameter.spec = parameter.op.attrs["spec"] = spec


def _common(one, other):
    return one._replace(shape=shapes.common(one.shape, other.shape))


def _differing(op):
    """Where the results of an operation have extents that its shape rule does not give."""
    for output, (tensor, plain) in enumerate(zip(op.outputs, op.infer(), strict=True)):
        for axis, (have, given) in enumerate(
            zip(tensor.spec.shape or (), plain.shape or (), strict=False)
        ):
            if given is None and have is not None:
                yield output, axis, have


def _infers(op, specs, lengths):
    attrs = {key: swapped(value, lengths) for key, value in op.attrs.items()}
    try:
        op.record.infer(*(swapped(spec, lengths) for spec in specs), **attrs)
    except NbtaError:
        return False
    return True
