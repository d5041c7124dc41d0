"""Lengths that follow from those of a program's inputs, and what is taken for granted about them.

The shape rule of an operation gives the lengths of its results once those of its inputs are
numbers, also where it can say nothing about a `Dim`: the sections of a split, the sum of what is
joined. A `Dim` stands for such a length too. Where two are taken for one because they are equal
for the lengths at hand, or one is taken to be 1 or not to be 1, that is to be checked for others.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from nbta import shapes
from nbta.errors import NbtaError
from nbta.graph.graph import subgraphs
from nbta.graph.spec import DATA, Spec
from nbta.ops.indexing import GETITEM, SYMBOLIC
from nbta.ops.shaping import RESHAPE
from nbta.shapes import Dim

#: How many sets of lengths are remembered with what they gave.
REMEMBERED = 1000


class Sum(NamedTuple):
    """A bound of a slice that is several lengths together."""

    one: object
    other: object

    def swapped(self, swap):
        """The same of other extents; a number where both are."""
        ends = swapped(self.one, swap), swapped(self.other, swap)
        return sum(ends) if shapes.is_known(ends) else Sum(*ends)


def swapped(value, swap):
    """A spec or a pattern, or anything else, with other extents in place of some."""
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
        """The same with other extents in place of some."""
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


def rule_of(op, extent) -> Rule | None:
    """The rule that gives the lengths of an operation's results; None where it is not sure to.

    ``extent`` gives the length that a scalar tensor is, or None.
    """
    specs = [tensor.spec for tensor in op.inputs]
    plain = specs and all(spec.kind == DATA and spec.shape is not None for spec in specs)
    if not plain or op.record.foreign or subgraphs(op):
        return None
    if any(None in spec.shape for spec in specs):
        return None
    infer, attrs = op.record.infer, op.attrs
    if op.record is GETITEM:
        key = _bound(attrs["key"], iter(op.inputs[1:]), extent)
        if key is None:
            return None
        attrs = {"key": key}
    elif op.record is RESHAPE:
        infer = _infer_reshape
    return Rule(infer, tuple(specs), tuple(attrs.items()))


def _bound(key, scalars, extent):
    """A key with lengths in place of symbolic bounds; None where those are something else."""
    parts = []
    for part in key:
        if part is SYMBOLIC:
            next(scalars)
        elif type(part) is slice:
            bounds = (part.start, part.stop, part.step)
            found = [extent(next(scalars)) if n is SYMBOLIC else n for n in bounds]
            if any(n is SYMBOLIC and m is None for n, m in zip(bounds, found, strict=True)):
                return None
            part = slice(*found)
        parts.append(part)
    return tuple(parts)


def _infer_reshape(spec, shape, *, pattern):
    """What is left for the one extent of a shape that is not known."""
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
            result.append(shape and tuple(map(self._extent, shape, enumerate(places), [made] * 8)))
        return result

    def _extent(self, length, place, made):
        if length in (None, 1):
            return length
        if place not in made:
            made[place] = Dim()
            self.known[made[place]] = length
        return made[place]

    def unite(self, swap) -> dict:
        """Use one extent in place of another; what else has to be, as it follows from the same."""
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
        Rules with what they give: the number of the result, the axis, and the extent. Each needs
        only lengths of inputs, and what those before it give.
    inputs : collection of Dim
        The lengths of inputs.
    """

    def __init__(self, rules, inputs):
        self._rules = rules
        needed = set().union(*(rule.dims | set(_dims(places)) for rule, places in rules))
        self._inputs = [extent for extent in inputs if extent in needed]
        self._verdicts = {}

    def hold(self, lengths) -> bool:
        """Whether all is so, for some lengths of inputs."""
        key = tuple([lengths[extent] for extent in self._inputs])
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(self._verdicts) >= REMEMBERED:
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
    for output, axis, extent in places:
        length = found[output][axis]
        if isinstance(extent, Dim):
            if length in (None, 1) or lengths.setdefault(extent, length) != length:
                return False
        elif length != extent:
            return False
    return True


def in_order(rules, inputs) -> list | None:
    """Rules behind those that give what they need; None where there is no such order."""
    have, result, rest = set(inputs), [], list(rules)
    while rest:
        ready = [each for each in rest if each[0].dims <= have]
        if not ready:
            return None
        rest = [each for each in rest if each not in ready]
        result += ready
        have |= set(_dims(tuple(places for _, places in ready)))
    return result
