"""What programs know of shapes for given lengths.

``specialise`` infers all shapes again from those of the inputs. An array's elements have the shape
that all writes of it give. Every `Dim` is the length of an input of the program, or follows from
such, so that it is one length in all iterations of all loops.

The shape rule of an operation gives the lengths of its results once those of its inputs are
numbers, also where it can say nothing about a `Dim`: the sections of a split, the sum of what is
joined. A `Dim` stands for such a length too. Where two are taken for one because they are equal
for the lengths at hand, or one is taken to be 1 or not to be 1, that is to be checked for others.
"""

import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.compiler.manager import Fact, contract
from nbta.compiler.program import Program, rebuild
from nbta.compiler.tapes import Tapes
from nbta.errors import NbtaError
from nbta.graph.copying import copied
from nbta.graph.graph import everything, subgraphs
from nbta.graph.operation import DATA, Spec
from nbta.graph.views import Branch, Loop, is_branch, is_loop, origin
from nbta.ops.arrays.tensor_arrays import (
    CONCAT,
    CREATE,
    GATHER,
    LOOKUP_WITH_SHAPE,
    READ,
    READS,
    SCATTER,
    SIZE,
    SPLIT,
    WRITES,
)
from nbta.ops.core.arithmetic import add
from nbta.ops.core.dimensions import outside, pattern_of
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.core.filling import RANGE
from nbta.ops.core.shaping import IDENTITY, RESHAPE
from nbta.ops.indexing.items import GETITEM, SYMBOLIC
from nbta.ops.loops.iteration_counts import constant_of
from nbta.ops.loops.residuals import RESTORE, saved_values
from nbta.shapes import Dim
from nbta.tuning import NAMED_ITEMS, REMEMBERED_LENGTHS, UNLIKE_LENGTH


def merge_into(attrs, key, pattern):
    """Add to a pattern; whether it says more now."""
    try:
        merged = shapes.merge(attrs[key], pattern)
    except ValueError:
        return False  # it fails when it runs, if it runs
    news = merged != attrs[key]
    attrs[key] = merged
    return news


def _is_open(pattern):
    """Whether a pattern leaves anything to others."""
    return pattern is None or any(dimension is None for dimension in pattern)


def stored(op):
    """The shape of the elements that an operation writes."""
    shape = op.inputs[op.record.value_input].spec.shape
    if op.record is SPLIT:
        return shape and (None, *shape[1:])
    return shape and shape[1:] if op.record is SCATTER else shape


def tells_shape(op):
    """Whether an operation fixes an element shape for slots that nothing is written to."""
    key = "element_shape_except0" if op.record is CONCAT else "element_shape"
    asks = op.record in (GATHER, READ, CONCAT) and op.attrs.get(key) is not None
    return asks or op.record is LOOKUP_WITH_SHAPE


class Sum(NamedTuple):
    """A bound of a slice that is several lengths together."""

    one: object
    other: object

    def swapped(self, swap):
        """The same of other dimensions; a number where both are."""
        ends = swapped(self.one, swap), swapped(self.other, swap)
        return sum(ends) if shapes.is_known(ends) else Sum(*ends)


def swapped(value, swap):
    """A spec or a pattern, or anything else, with other dimensions in place of some."""
    if isinstance(value, Dim):
        return swap.get(value, value)
    if isinstance(value, Spec):
        return value._replace(shape=swapped(value.shape, swap))
    if isinstance(value, Sum):
        return value.swapped(swap)
    if type(value) is slice:
        return slice(*(swapped(n, swap) for n in (value.start, value.stop, value.step)))
    return tuple(swapped(item, swap) for item in value) if type(value) is tuple else value


class Rule(NamedTuple):
    """A shape rule and what it is given, with lengths as they are in a program."""

    infer: Callable
    specs: tuple
    attrs: tuple

    def shapes(self, lengths) -> list:
        """The shapes of the results for some lengths."""
        attrs = {name: swapped(value, lengths) for name, value in self.attrs}
        found = self.infer(*(swapped(spec, lengths) for spec in self.specs), **attrs)
        return [spec.shape for spec in ((found,) if isinstance(found, Spec) else found)]

    def swapped(self, swap) -> "Rule":
        """The same with other dimensions in place of some."""
        return Rule(self.infer, swapped(self.specs, swap), swapped(self.attrs, swap))

    @property
    def key(self):
        """Equal for rules that give the same."""
        return (self.infer, *map(_hashable, (self.specs, self.attrs)))

    @property
    def dims(self) -> set:
        """The lengths that it needs."""
        return set(_dims((self.specs, self.attrs)))


def _hashable(value):
    if type(value) is slice:
        return (slice, value.start, value.stop, value.step)
    return tuple(map(_hashable, value)) if isinstance(value, tuple) else value


def _dims(value):
    if isinstance(value, Dim):
        yield value
    elif type(value) is slice:
        yield from _dims((value.start, value.stop, value.step))
    elif isinstance(value, tuple):
        for item in value:
            yield from _dims(item)


def rule_of(op, dimension) -> Rule | None:
    """The rule that gives the lengths of an operation's results; None where it is not proven to.

    ``dimension`` gives the length that a scalar tensor is, or None.
    """
    specs = [tensor.spec for tensor in op.inputs]
    plain = specs and all(spec.kind == DATA and spec.shape is not None for spec in specs)
    if not plain or op.record.foreign or subgraphs(op):
        return None
    if any(None in spec.shape for spec in specs):
        return None
    infer, attrs = op.record.infer, op.attrs
    if op.record is GETITEM:
        key = _bound(attrs["key"], iter(op.inputs[1:]), dimension)
        if key is None:
            return None
        attrs = {"key": key}
    elif op.record is RESHAPE:
        infer = _infer_reshape
    return Rule(infer, tuple(specs), tuple(attrs.items()))


def _bound(key, scalars, dimension):
    """A key with lengths in place of symbolic bounds; None where those are something else."""
    parts = []
    for part in key:
        if part is SYMBOLIC:
            next(scalars)
        elif type(part) is slice:
            bounds = (part.start, part.stop, part.step)
            found = [dimension(next(scalars)) if n is SYMBOLIC else n for n in bounds]
            if any(n is SYMBOLIC and m is None for n, m in zip(bounds, found, strict=True)):
                return None
            part = slice(*found)
        parts.append(part)
    return tuple(parts)


def _infer_reshape(spec, shape, *, pattern):
    """What is left for the one dimension of a shape that is not known."""
    found = RESHAPE.infer(spec, shape, pattern=pattern)
    if pattern is None or pattern.count(None) != 1 or not shapes.is_known(spec.shape):
        return found
    rest = int(np.prod([n for n in pattern if n is not None], dtype=object))
    count = int(np.prod(spec.shape, dtype=object))
    if rest == 0 or count % rest:
        return found
    return Spec(spec.dtype, tuple(count // rest if n is None else n for n in pattern))


class Lengths:
    """The lengths of one run, by what stands for them in the program.

    Attributes
    ----------
    known : dict
        Those of the inputs first.
    """

    def __init__(self, known):
        self.known = dict(known)
        self._found = {}

    def shapes(self, rule) -> list | None:
        """The shapes of an operation's results, with a new `Dim` for a new length."""
        try:
            key = rule.key
            if key not in self._found:
                self._found[key] = rule, self._new(rule)
        except (NbtaError, TypeError):
            return None  # it fails when it runs, if it runs; or it has an attribute of its own
        return self._found[key][1]

    def _new(self, rule):
        equal = type(dict(rule.attrs).get("sections")) is int
        result, made = [], {}
        for output, shape in enumerate(rule.shapes(self.known)):
            places = [None if equal else output] * len(shape or ())
            result.append(
                shape and tuple(map(self._dimension, shape, enumerate(places), [made] * 8))
            )
        return result

    def _dimension(self, length, place, made):
        if length in (None, 1):
            return length
        if place not in made:
            made[place] = Dim()
            self.known[made[place]] = length
        return made[place]

    def unite(self, swap) -> dict:
        """Use one dimension for another; what else has to be, as it follows from the same."""
        more, found = {}, {}
        for rule, old in self._found.values():
            rule = rule.swapped(swap)
            new = [swapped(shape, swap) for shape in old]
            _, first = found.setdefault(rule.key, (rule, new))
            pairs = zip(first, new, strict=True)
            more.update(
                (b, a) for one, two in pairs for a, b in zip(one or (), two or (), strict=True)
                if a is not b and isinstance(b, Dim)
            )  # fmt: skip
        self._found = found
        return more


class Assumed:
    """What is taken for granted: that rules give the lengths that a program says.

    Parameters
    ----------
    rules : list of tuple
        Rules with what they give: the number of the result, the axis, and the dimension. Each needs
        only lengths of inputs, and what those before it give.
    inputs : collection of Dim
        The lengths of inputs.
    """

    def __init__(self, rules, inputs):
        self._rules = rules
        needed = set().union(*(rule.dims | set(_dims(places)) for rule, places in rules))
        self._inputs = [dimension for dimension in inputs if dimension in needed]
        self._verdicts = {}

    def hold(self, lengths) -> bool:
        """Whether all is so, for some lengths of inputs."""
        key = tuple([lengths[dimension] for dimension in self._inputs])
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(self._verdicts) >= REMEMBERED_LENGTHS:
                self._verdicts.clear()
            verdict = self._verdicts[key] = self._check(dict(zip(self._inputs, key, strict=True)))
        return verdict

    def _check(self, lengths):
        try:
            return all(_gives(*each, lengths) for each in self._rules)
        except NbtaError:
            return False


def _gives(rule, places, lengths):
    found = rule.shapes(lengths)
    for output, axis, dimension in places:
        length = found[output][axis]
        if isinstance(dimension, Dim):
            if length in (None, 1) or lengths.setdefault(dimension, length) != length:
                return False
        elif length != dimension:
            return False
    return True


def in_order(rules, inputs) -> list | None:
    """Rules after those that give what they need; None where there is no such order."""
    have, result, rest = set(inputs), [], list(rules)
    while rest:
        ready = [each for each in rest if each[0].dims <= have]
        if not ready:
            return None
        rest = [each for each in rest if each not in ready]
        result += ready
        have |= set(_dims(tuple(places for _, places in ready)))
    return result


@contract(establishes=[Fact.RANKS], needed=True)
def specialise(program: Program, given, together: bool = False) -> Program:
    """Infer all shapes from those of the inputs.

    Parameters
    ----------
    program : Program
    given : list of tuple of int
        The shapes of what is fed. Only which lengths are 1, or what the program names as their last
        item, goes into the result, so that it holds for all shapes that `fits` accepts.
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
    lengths: dict = {}
    alike = fits_pattern([tensor.spec.shape for tensor in program.inputs], given, lengths)
    return alike and (program.assumed is None or program.assumed.hold(lengths))


def fits_pattern(pattern, given, lengths=None) -> bool:
    """Whether shapes are as partly known ones say; ``lengths`` gets those that these leave open."""
    lengths = {} if lengths is None else lengths
    return all(
        known is None
        or (
            len(known) == len(shape)
            and all(_fits(*pair, lengths) for pair in zip(known, shape, strict=True))
        )
        for known, shape in zip(pattern, given, strict=True)
    )


def _fits(dimension, length, lengths):
    if isinstance(dimension, Dim):
        return length != 1 and lengths.setdefault(dimension, length) == length
    return dimension in (None, length)


def _given(spec, shape, named):
    """A spec with what a shape tells: its rank, which lengths are 1, and those that are named."""
    if spec.kind != DATA:
        return spec
    pattern = (None,) * len(shape) if spec.shape is None else spec.shape
    known = [
        length if length in (1, named.get(axis)) else None for axis, length in enumerate(shape)
    ]
    dimensions = zip(pattern, known, strict=True)
    return spec._replace(shape=tuple([_dimension(*pair) for pair in dimensions]))


def _dimension(dimension, known):
    if dimension is not None:
        return dimension
    return Dim() if known is None else known


def _named_lengths(program) -> dict:
    """How many items of inputs are asked for by numbers, by input and axis.

    An axis that is as long is taken to be so always: a program that asks for ``points[i, 2]`` and
    no later column is for points of three coordinates. Code for just as many needs no checks, and
    goes from row to row in steps of a known size, in vector instructions.
    """
    found = {tensor: {} for tensor in program.inputs}
    for op in everything(program):
        if op.record is GETITEM:
            named = found.get(_unchanged(op.inputs[0]))
            for axis, part in enumerate(op.attrs["key"] if named is not None else ()):
                end = _end(part)
                if end is None:
                    break
                named[axis] = max(named.get(axis, 0), end)
    return {
        tensor: {axis: n for axis, n in ends.items() if 0 < n <= NAMED_ITEMS}
        for tensor, ends in found.items()
    }


def _unchanged(tensor):
    """The tensor that a value is, maybe by another name."""
    source = origin(tensor)
    while source.op.record is IDENTITY:
        source = origin(source.op.inputs[0])
    return source


def _end(part):
    """The number after the last item that a part of a key names; None for other parts."""
    if type(part) is slice:
        plain = part.step in (None, 1) and type(part.stop) is int and part.stop >= 0
        return part.stop if plain else 0
    if part is SYMBOLIC:
        return 0
    return part + 1 if type(part) is int else None


class _Shapes:
    """The specs of a program that nobody else has yet, inferred again."""

    def __init__(self, program, given, together):
        self._program, self._together = program, together
        pairs, named = list(zip(program.inputs, given, strict=True)), _named_lengths(program)
        self._first = [_given(tensor.spec, shape, named[tensor]) for tensor, shape in pairs]
        swap, known = {}, {}
        for (tensor, shape), spec in zip(pairs, self._first, strict=True):
            for axis, (old, new, length) in enumerate(
                zip(tensor.spec.shape or (), spec.shape or (), shape, strict=False)
            ):
                if isinstance(old, Dim) and length in (1, named[tensor].get(axis)):
                    swap[old] = length
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
        found = (dimension for spec in self._first for dimension in spec.shape or ())
        return list(dict.fromkeys(dimension for dimension in found if isinstance(dimension, Dim)))

    def _swap(self, swap):
        """Use other dimensions in place of some, wherever they are."""
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
            self._learn_dimension(op)

    def _learn(self, op, key, pattern):
        """Add to the pattern that an operation had at first, as a loop may know less by now."""
        op.attrs[key] = self._attrs[op].setdefault(key, op.attrs[key])
        merge_into(op.attrs, key, pattern)

    def _pattern(self, shape):
        """The dimensions in a shape, also in one that a tape brings."""
        if self._tapes is None or shape.op.record is not RESTORE:
            return pattern_of(shape)
        found = pattern_of(self._tapes.reaching_definition(shape).tensor)
        return found and tuple(n if self._is_length(n) else None for n in found)

    def _learn_dimension(self, op):
        stop = origin(op.inputs[1])
        if stop.op.record is SIZE:
            made = origin(stop.op.inputs[0]).op
            if made.record is not CREATE or made.attrs["dynamic_size"]:
                return
            stop = made.inputs[0]
        found = pattern_of(stop) if stop.spec.rank == 0 else None
        dimension = self._attrs[op].setdefault("dimension", op.attrs["dimension"])
        if found and dimension is None and self._is_length(found[0]):
            dimension = found[0]
        op.attrs["dimension"] = dimension

    def _is_length(self, dimension):
        """Whether a dimension is one length in all iterations of all loops."""
        return dimension in self._lengths.known or (type(dimension) is int and dimension >= 0)

    def _learn_elements(self):
        """Tell reads of arrays and tapes what all writes put in; whether that was news to any."""
        news = False
        for op in self._operations:
            news |= op.record is RESTORE and self._learn_saved(op)
        for array, users in self._tapes.uses.users.items():
            found = self._element(array)
            for op in users if found is not None else ():
                if op.record in READS and op.attrs.get("kind", DATA) == DATA:
                    known = found and (None, *found[1:]) if op.record is CONCAT else found
                    if op.record is GATHER and _is_open(op.attrs["known"]):
                        op.attrs["learnt"] = True
                    news |= merge_into(op.attrs, "known", known)
        return news

    def _learn_saved(self, restore):
        """Tell what is restored of which shape all values are that may have been saved."""
        values = saved_values(restore.inputs[0])
        if restore.outputs[0].kind != DATA or not values:
            return False
        return merge_into(
            restore.attrs, "known", self._shape_of_all([v.spec.shape for v in values])
        )

    def _shape_of_all(self, written):
        """The shape of all values, as far as it is the same in all iterations of all loops."""
        found = written[0]
        for other in written[1:]:
            self._link([(Spec(None, found), Spec(None, other))])
            found = shapes.common(found, other)
        return found and tuple(n if self._is_length(n) else None for n in found)

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
        return self._shape_of_all(written)

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
            if len(op.inputs) > 1 and not _arranges(op) and not op.record.foreign:
                self._linked |= set() if subgraphs(op) else self._needed_equal(op)
        found, order = {}, {dimension: n for n, dimension in enumerate(self._lengths.known)}
        for pair in self._linked:
            ends = (_last(found, dimension) for dimension in pair)
            one, other = sorted(ends, key=lambda dimension: order.get(dimension, -1))
            if one is not other and isinstance(other, Dim):
                found[other] = one
        self._linked.clear()
        return {old: _last(found, old) for old in found}

    def _needed_equal(self, op):
        """Pairs of lengths, equal now, that an operation refuses if they differ."""
        specs = [tensor.spec for tensor in op.inputs]
        have = dict.fromkeys(dimension for spec in specs for dimension in spec.shape or ())
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
        equal = {dimension: known[dimension] for dimension in have if dimension in known}
        alike = [n for n, m in equal.items() if m == length and n is not one and n is not other]
        ways = [{one: UNLIKE_LENGTH, **dict.fromkeys(alike, n)} for n in (length, UNLIKE_LENGTH)]
        return _infers(op, specs, equal) and not any(_infers(op, specs, equal | w) for w in ways)


def _arranges(op):
    """Whether an operation's result has other axes of as many items: no length must be another."""
    ranks = [tensor.spec.rank for tensor in (*op.inputs[:1], *op.outputs)]
    return op.record is RESHAPE and ranks != [1, 1]


def _last(found, dimension):
    while dimension in found:
        dimension = found[dimension]
    return dimension


def _set_all(parameters, specs):
    for parameter, spec in zip(parameters, specs, strict=True):
        parameter.spec = parameter.op.attrs["spec"] = spec


def _common(one, other):
    return one._replace(shape=shapes.common(one.shape, other.shape))


def _differing(op):
    """Where the results of an operation have dimensions that its shape rule does not give."""
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
