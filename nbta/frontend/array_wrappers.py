"""Arrays that change while a function is traced: wrappers, and views of wrappers.

An `ArrayWrapper` stands for one array of the user's function. What it holds is a tensor, or a NumPy
array as long as only values that Python knows went into it; an assignment of items puts another one
in. A `View` is its base and a step: it is read through the base as it is then, and written into it.

While a block is traced that may become the body of a loop or a branch, a `Frame` notes what the
wrappers from before it held, so that they can have it back.

Two wrappers that may stand for one array, which only the run knows, are linked: where one is
changed, the other is spoiled. To use that begins the trace again, with the graph saying in which
runs they are one, so that each write to one of them is a write to the other there; where that
cannot be said it is an error.
"""

from __future__ import annotations

import itertools
import math
import operator
import threading
import types
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from nbta import shapes
from nbta.classes import node_of, objects_in
from nbta.control.control_flow import cond
from nbta.dtypes import check_plain
from nbta.errors import InvalidArgumentError, invalid
from nbta.frontend import native, picking
from nbta.frontend.awaited import is_repeated
from nbta.frontend.chosen_dtypes import chosen_dtypes, of_one_dtype
from nbta.frontend.naturals import is_natural
from nbta.frontend.problems import at_line, here
from nbta.frontend.python_numbers import as_limits
from nbta.graph.graph import current, lies_in
from nbta.graph.operation import Spec, Tensor, label_of
from nbta.immutable import refused
from nbta.ops import numbers
from nbta.ops.axes.diagonals import diagonal
from nbta.ops.axes.places import compress
from nbta.ops.axes.sorting import sort
from nbta.ops.core import arithmetic
from nbta.ops.core.checks import assert_holds, order_now
from nbta.ops.core.dimensions import as_shape
from nbta.ops.core.dispatch import as_tensor, constant_in, nearest
from nbta.ops.core.filling import arange, fill
from nbta.ops.core.shaping import cast, reshape, shape_of
from nbta.ops.indexing import changes
from nbta.ops.indexing.items import SYMBOLIC, indexed
from nbta.ops.indexing.transposing import transpose

_serials = itertools.count(1)


class _Frames(threading.local):
    def __init__(self):
        self.stack = []


_frames = _Frames()


class Frame:
    """What wrappers held before a block that is traced.

    Attributes
    ----------
    start : int
        Wrappers with smaller serial numbers are from before.
    changed : dict
        By the identity of a wrapper: it, what it held, and why it was spoiled.
    traced : bool
        Whether it is the body of a loop or a branch, and no iterations of Python's.
    spent : str or None
        What the block did that cannot be put back.
    explicit : bool
        Whether the block is a function that the user gave to `nbta.while_loop` or its like: arrays
        from outside of it are values there, as they are outside of graphs.
    taken : dict or None
        Iterators from before that a block of a branch went along, by identity; None in loops.
    """

    def __init__(self, explicit=False, traced=False, of_branch=False):
        self.start, self.changed, self.explicit = next(_serials), {}, explicit
        self.traced, self.spent = traced, None
        self.taken = {} if of_branch else None
        self.places, self._born, self._linked = {}, {}, []
        self._graph, self._order = current(), None
        self._first = 0 if self._graph is None else len(self._graph.operations)

    def __enter__(self):
        _frames.stack.append(self)
        return self

    def __exit__(self, kind, *_):
        _frames.stack.pop()
        if kind is not None and not self.explicit:
            self.spent = None
            self.undo()

    def is_before(self, wrapper) -> bool:
        """Whether a wrapper was there before the block."""
        return wrapper.serial < self.start

    def wrappers(self) -> list:
        """Those from before that were changed."""
        return [wrapper for wrapper, _, _ in self.changed.values()]

    def has_acted(self, but=None) -> bool:
        """Whether places or wrappers, but for one, hold something else than before."""
        changed = any(
            wrapper._value is not old and wrapper is not but
            for wrapper, old, _ in self.changed.values()
        )
        return changed or any(place.value is not old for place, old in self.places.values())

    def undo(self) -> None:
        """Give wrappers and places what they held."""
        if self.spent is not None:
            raise invalid("effect", self.spent)
        for wrapper, value, spoiled in self.changed.values():
            wrapper._value, wrapper.spoiled = value, spoiled
        for place, value in reversed(self.places.values()):
            place.value = value
        for one, other in self._linked:
            self._unlink(one, other)
            self._unlink(other, one)
        if not self.traced and self._graph is not None:
            made = self._graph.operations[self._first :]
            self._graph.put_back.update(op for op in made if op.record.effects)

    def _unlink(self, older, younger):
        """Let a wrapper from before forget one of the block, which is traced again or is over."""
        if self.is_before(older) and not self.is_before(younger):
            older.links = [each for each in older.links if each.other is not younger]

    def keep(self) -> None:
        """Let the changes stand, for those who note them around."""
        if _frames.stack:
            around = _frames.stack[-1]
            for key, entry in self.changed.items():
                if around.is_before(entry[0]):
                    around.changed.setdefault(key, entry)
            around._born.update(self._born)
            around._linked += self._linked
            for key, entry in self.places.items():
                around.note_place(key, *entry)

    def note_place(self, key, place, value) -> None:
        """Note what a place held, if its owner was there before."""
        if id(place.owner) in self._born or self.explicit or key in self.places:
            return
        if key[1] == "item" and (id(place.owner), "whole") in self.places:
            return
        if key[1] == "whole":
            value = self._before(place, value)
        self.places[key] = place, value

    def _before(self, place, value):
        """What an object held in all, of which the block has changed items already."""
        items = list(value) if isinstance(value, tuple) else value
        for other, old in self.places.values():
            if other.owner is place.owner and isinstance(other, Item):
                if old is Missing:
                    items.pop(other.name)
                else:
                    items[other.name] = old
        return type(value)(items)

    def of_arrays(self, order):
        """What orders all arrays of the block, as ``order`` makes it."""
        self._order = self._order or order(self._graph)
        return self._order

    def owns(self, owner) -> None:
        """Note that an object was made in the block."""
        self._born[id(owner)] = owner

    def disowns(self, owner) -> None:
        """Note that an object is as if it had been made before the block."""
        self._born.pop(id(owner), None)

    def made(self, owner) -> bool:
        """Whether an object was made in the block."""
        return id(owner) in self._born


@dataclass(frozen=True, eq=False)
class Link:
    """That an array may be another one in a run, or a certain view of it.

    Attributes
    ----------
    other : ArrayWrapper
    holds : bool, Tensor or None
        Whether it is; None where nobody can say.
    steps : tuple
        From the other array to this one.
    is_inverse : bool
        Whether they lead from this one to the other.
    """

    other: ArrayWrapper
    holds: object
    steps: tuple = ()
    is_inverse: bool = False

    def of(self, wrapper):
        """The same, seen from the other array."""
        inverse = bool(self.steps) and not self.is_inverse
        return Link(wrapper, self.holds, self.steps, inverse)

    def is_like(self, another) -> bool:
        """Whether the one array is the same part of the other."""
        ways = [(each.is_inverse, _spelled(each.steps)) for each in (self, another)]
        return ways[0] == ways[1]


def _spelled(steps):
    return [(type(step), step.spelled) for step in steps]


def link(one, other, found=()):
    """Say that two wrappers may stand for one array.

    ``found`` has the links of the one to the other that are known; without any nobody knows.
    """
    if other is one:
        return
    found = found or [Link(other, None)]
    known = one.links_to(other)
    if known:
        if all(any(new.holds is old.holds and new.is_like(old) for old in known) for new in found):
            return
        found = [Link(other, None)]
        one.links = [each for each in one.links if each.other is not other]
        other.links = [each for each in other.links if each.other is not one]
    one.links = [*one.links, *found]
    other.links = [*other.links, *(each.of(one) for each in found)]
    if _frames.stack:
        _frames.stack[-1]._linked.append((one, other))


def common_read_only(values) -> bool | None:
    """Whether what is one of several values is read-only; None where the run decides."""
    found = {value.read_only if isinstance(value, ArrayWrapper) else False for value in values}
    return found.pop() if len(found) == 1 else None


def made_read_only(array, given) -> bool:
    """Whether an array is read-only that a library made of others which may be changed."""
    return not array.flags.writeable and all(each.flags.writeable for each in given)


def frames() -> list:
    """The blocks that are traced, the innermost last."""
    return list(_frames.stack)


def is_older_array(wrapper) -> bool:
    """Whether an array was there before the block that is traced."""
    return bool(_frames.stack) and _frames.stack[-1].is_before(wrapper)


def relations(one, other) -> list:
    """In which ways an array, or a view of one, is another one, as far as anybody knows."""
    (root, steps), (base, others) = _path(one), _path(other)
    # blocks that are over are forgotten by what was there before
    known = root.links_to(base) or [each.of(base) for each in base.links_to(root)]
    if steps is None or others is None:
        return [Link(other, None)] if root is base or known else []
    if root is base:
        return [_within(steps, others, other)]
    found = []
    for each in known:
        if each.is_inverse:  # both are views of the first one's root, or else of the other one's
            way = _within(steps, _joined(each.steps, others), other)
        else:
            way = _within(_joined(each.steps, steps), others, other)
        found.append(way if way.holds is None else replace(way, holds=each.holds))
    return found


def _within(steps, others, other):
    """How one view of an array is another one."""
    common = sum(1 for _ in itertools.takewhile(
        lambda pair: _spelled(pair[:1]) == _spelled(pair[1:]), zip(steps, others, strict=False)
    ))  # fmt: skip
    steps, others = steps[common:], others[common:]
    if steps and others:
        return Link(other, None)
    return Link(other, np.True_, steps or others, bool(others))


def _path(wrapper):
    """The array that a wrapper is a view of, and the steps to it.

    None where the run chooses them.
    """
    steps = ()
    while isinstance(wrapper, View):
        if not wrapper.step.is_all:
            steps = _joined((wrapper.step,), steps)
        wrapper = wrapper.base
    known = all(native.is_known(step.values) for step in steps)
    return wrapper, steps if known else None


def _joined(steps, others):
    """Steps and further steps, without two that undo each other, as in ``x[::-1][::-1]``."""
    while steps and others and _is_reversal(steps[-1]) and _is_reversal(others[0]):
        if steps[-1].spelled != others[0].spelled:
            break
        steps, others = steps[:-1], others[1:]
    return (*steps, *others)


def _is_reversal(step):
    return isinstance(step, KeyStep) and all(_is_whole(p) or _is_turned(p) for p in step.key)


def keeps_shared() -> bool:
    """Whether the graph that is built says which arrays are one."""
    lengths = current().root.lengths if current() is not None else None
    return lengths is not None and lengths.shared


def born(owner):
    """An object that was made where things are traced now."""
    if (graph := current()) is not None and (outside := graph.root.outside) is not None:
        outside.makes(owner)
    if _frames.stack:
        _frames.stack[-1].owns(owner)
    return owner


def older_serial(owner, serial):
    """A serial number for a wrapper that belongs to an object, as if it had been made with it.

    ``serial`` is that of a wrapper that is made now.
    """
    for frame in reversed(_frames.stack):
        if id(owner) in frame._born:
            break
        serial = frame.start - 1
    return serial


def in_trace(owner=None) -> bool:
    """Whether a block is traced that only the run decides, and an object is older."""
    for frame in reversed(_frames.stack):
        if owner is not None and id(owner) in frame._born:
            return False
        if frame.traced:
            return True
    return False


def explicitly_older(owner) -> bool:
    """Whether an object is from outside of a function that was given to a loop of nbta's."""
    for frame in reversed(_frames.stack):
        if id(owner) in frame._born:
            return False
        if frame.explicit:
            return True
    return False


def explicit_frame():
    """The innermost function that was given to a loop of nbta's; None outside of them."""
    return next((frame for frame in reversed(_frames.stack) if frame.explicit), None)


def is_older(owner) -> bool:
    """Whether an object was there before the block that is traced."""
    return bool(_frames.stack) and id(owner) not in _frames.stack[-1]._born


def spend(items, reason) -> None:
    """Note that items are taken of an iterator, which cannot be put back.

    Where only the run decides the block that is traced, that is refused.
    """
    if in_trace(items):
        raise invalid("effect", reason)
    if is_older(items):
        for frame in _frames.stack:
            frame.spent = frame.spent or reason


def take_in_branches(items, reason) -> bool:
    """Note that blocks of branches go along an iterator from before, which no loop around does.

    Whether there are such blocks. The iterator is as it was after each.
    """
    found = False
    for frame in reversed(_frames.stack):
        if id(items) in frame._born:
            break
        if frame.traced:
            if frame.taken is None or id(items) in frame.taken:
                raise invalid("effect", reason)
            frame.taken[id(items)], found = items, True
    return found


def is_taken_in_branches(items) -> bool:
    """Whether a branch that is traced went along an iterator from before."""
    return any(frame.taken and id(items) in frame.taken for frame in _frames.stack)


def is_of_now(value) -> bool:
    """Whether a value is a tensor or a wrapper whose items have a value in what is traced."""
    if isinstance(value, View):
        return is_of_now(value.base) and _lies_around(value.step.values)
    if isinstance(value, ArrayWrapper):
        return value.spoiled is None and _lies_around(value._value)
    return isinstance(value, Tensor) and _lies_around(value)


def _lies_around(value):
    """Whether the tensors of a key have values in the graph that is built."""
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, tuple):
        return all(map(_lies_around, value))
    return not isinstance(value, Tensor) or lies_in(current(), value.graph)


def note_place(place) -> None:
    """Note what a place of an object holds before that changes."""
    check_whole(place)
    if (graph := current()) is not None and (outside := graph.root.outside) is not None:
        outside.wrote(place.key, place.owner)
    if _frames.stack:
        if isinstance(place, Attribute) and place.value is not Missing:
            _check_no_structure(place)
        _frames.stack[-1].note_place(place.key, place, place.value)


def _check_no_structure(place):
    """Refuse to change what is taken apart as a value where a loop or branch leaves off."""
    node = node_of(place.owner)
    if node is None or not node.is_value:
        return
    message = (
        f"{place} changes in a loop or a branch, and objects of classes that register_structure "
        f"knows are values there: make a new object, as with dataclasses.replace"
    )
    raise invalid("register", message)


_APART = "objects that loops and branches took apart"


def take_apart(value, places=(), frame=None) -> None:
    """Note that one object may be another one in a run, so that neither may be changed any more.

    ``places`` are those that a block changed before; lists and dicts that were made in a ``frame``
    are nobody else's.
    """
    found = {id(each): each for each in objects_in(value)}
    found |= {id(each): each for each in containers_in(value) if not (frame and frame.made(each))}
    if not found:  # as for each of thousands of numbers
        return
    current().root.cache.setdefault(_APART, {}).update(found)
    for place in places:
        if id(place.owner) in found:
            raise taken_apart(place)


def fix(owner) -> None:
    """Note that an object may not be changed any more."""
    current().root.cache.setdefault(_APART, {})[id(owner)] = owner


def is_apart(owner) -> bool:
    """Whether an object may be another one in a run, or another one may be it."""
    return current() is not None and id(owner) in current().root.cache.get(_APART, ())


def containers_in(structure) -> list:
    """The lists and dicts in a structure."""
    if isinstance(structure, list | tuple | dict):
        parts = structure.values() if isinstance(structure, dict) else structure
        inner = [found for part in parts for found in containers_in(part)]
        return inner if isinstance(structure, tuple) else [structure, *inner]
    node = node_of(structure)
    return [] if node is None else containers_in(node.parts)


def taken_apart(place):
    """The error of a change to what may be one of several objects."""
    if getattr(place.owner, "copied_in", ()):
        message = (
            f"{here()}: a list that was appended to a list is changed afterwards; change it before "
            f"it is appended, or append a copy, such as list(row)"
        )
        return invalid("aliased", message)
    remedy = "make a new object, as with dataclasses.replace"
    if isinstance(place.owner, list | dict):
        remedy = "change a copy, such as list(items) or dict(items)"
    message = (
        f"{here()}: {place} is assigned, and only the run knows which object a loop or a branch "
        f"has chosen: {remedy}"
    )
    return invalid("aliased", message)


_GIVEN = "what functions that are traced now were given, and which of it they changed"


def check_whole(place) -> None:
    """Refuse to change an object that may be another one; note one that changes."""
    graph, owner = current(), place.owner
    if graph is None:
        return
    cache = graph.root.cache
    if id(owner) in cache.get(_APART, ()):
        raise taken_apart(place)
    note_changed(owner)


def note_changed(owner) -> None:
    """Note that an object, a list or a dict changes, if it is an argument."""
    for given, changed in current().root.cache.get(_GIVEN, ()):
        if id(owner) in given:
            changed.append(owner)


@contextmanager
def watched_changes(structure):
    """Around the call of a function that is traced: whether it has changed parts of a structure.

    These are objects, lists and dicts; arrays know themselves whether they were written.
    """
    watching = current().root.cache.setdefault(_GIVEN, [])
    changed = []
    watching.append(({id(each): each for each in _changeable(structure)}, changed))
    try:
        yield lambda: bool(changed)
    finally:
        watching.pop()


def _changeable(structure):
    """Objects, lists and dicts in a structure."""
    return [*objects_in(structure), *containers_in(structure)]


def check_apart(structure) -> None:
    """Refuse one object, list or dict in two places, where the function changes one."""
    found = set()
    for each in _changeable(structure):
        if id(each) in found:
            is_list = isinstance(each, list | dict)
            kind = type(each).__name__ if is_list else "object"
            copy = f"{kind}(items)" if is_list else "dataclasses.replace makes"
            message = (
                f"one {kind} is given in two places of the arguments, and the function changes an "
                f"object, a list or a dict among the arguments; give a copy, such as {copy}"
            )
            raise invalid("aliased", message)
        found.add(id(each))


class Missing:
    """In place of what a place does not hold."""


class Attribute:
    """An attribute of an object of the user's."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name
        self.key = id(owner), "attribute", name

    def of(self, owner):
        """The same of another object."""
        return Attribute(owner, self.name)

    @property
    def value(self):
        """What it holds."""
        return getattr(self.owner, self.name, Missing)

    @value.setter
    def value(self, new):
        plain = isinstance(getattr(type(self.owner), "__setattr__", None), types.FunctionType)
        put = object.__setattr__ if plain else setattr  # not what a class would do besides
        if new is not Missing:
            put(self.owner, self.name, new)
        elif self.value is not Missing:
            delattr(self.owner, self.name)

    def __str__(self):
        return f"{type(self.owner).__name__}.{self.name}"


class Cell:
    """A variable of a function around a function."""

    def __init__(self, cell, name):
        self.owner, self.name = cell, name
        self.key = id(cell), "cell"

    def of(self, owner):
        """The same of another cell."""
        return Cell(owner, self.name)

    @property
    def value(self):
        """What it holds."""
        try:
            return self.owner.cell_contents
        except ValueError:
            return Missing

    @value.setter
    def value(self, new):
        if new is Missing:
            del self.owner.cell_contents
        else:
            self.owner.cell_contents = new

    def __str__(self):
        return self.name


def cells_of(function):
    """The variables from around a function, as places."""
    names = zip(function.__closure__ or (), function.__code__.co_freevars, strict=True)
    return [Cell(cell, name) for cell, name in names]


class Item:
    """An item of a list or a dict of the user's."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name
        self.key = id(owner), "item", name

    def of(self, owner):
        """The same of another list or dict."""
        return Item(owner, self.name)

    @property
    def value(self):
        """What it holds."""
        try:
            return self.owner[self.name]
        except (KeyError, IndexError):
            return Missing

    @value.setter
    def value(self, new):
        if new is Missing:
            if self.value is not Missing:
                del self.owner[self.name]
        elif isinstance(self.owner, list):  # of this package's kind, too, which notes changes
            list.__setitem__(self.owner, self.name, new)
        else:
            self.owner[self.name] = new

    def __str__(self):
        kind = "list" if isinstance(self.owner, list) else type(self.owner).__name__
        return f"{kind}[{self.name!r}]"


def _note(wrapper):
    """Note what a wrapper holds before that changes."""
    if _frames.stack:
        frame = _frames.stack[-1]
        if frame.is_before(wrapper) and id(wrapper) not in frame.changed:
            frame.changed[id(wrapper)] = wrapper, wrapper._value, wrapper.spoiled
            return True
    return False


class ArrayWrapper(Tensor):
    """An array that may change while a function is traced.

    Attributes
    ----------
    label : str or None
        What the user calls it.
    serial : int
    links : list of Link
        What may be the same array.
    spoiled : str or None
        Why nobody knows what it holds.
    fixed : str or None
        Why it cannot be changed.
    made : bool
        Whether the function made it to be filled, as by ``np.zeros``, and did not compute it.
    read : int
        A serial number of about when it was last read.
    written : bool
        Whether it was changed.
    apart : bool
        Whether its items may lie in another order than C's, as those of what it was computed from.
    read_only : bool or None
        Whether NumPy lets nobody change it; None where the run decides.
    """

    __slots__ = (
        "_constant", "_first", "_maker", "_value", "apart", "fixed", "label", "links", "made",
        "read", "read_only", "serial", "spoiled", "written",
    )  # fmt: skip
    #: Its operators come before those of a number of the run on the left, as they come before those
    #: of a tensor: Python asks the right one first only of a subclass.
    comes_first = True

    def __init__(self, value, label=None, fixed=None, maker=None):
        self._value, self.label, self.fixed, self._maker = value, label, fixed, maker
        self._first = value if isinstance(value, Tensor) else None
        self._constant, self.links, self.spoiled = None, [], None
        self.serial = next(_serials)
        self.made = not isinstance(value, Tensor)
        self.read, self.written, self.read_only = 0, False, False
        known = isinstance(value, np.ndarray)
        self.apart = known and value.ndim > 1 and not value.flags.c_contiguous

    # What it holds.

    @property
    def root(self):
        """The wrapper that holds the items."""
        return self

    @property
    def content(self):
        """The tensor or array that it holds."""
        if self.spoiled is not None:
            self._refuse_spoiled()
        self.read = next(_serials)
        return self._value

    def _refuse_spoiled(self):
        lengths = current().root.lengths if current() is not None else None
        if lengths is not None:
            lengths.ask_shared()
        raise invalid("spoiled_array", f"{here()}: {self.spoiled}")

    def store(self, value, change=None) -> None:
        """Hold another tensor or array; ``change`` does the same to an array that this one is."""
        self.check_writable()
        self.hold(value)
        self._changed(change or (lambda array: array.store(value)))

    def hold(self, value) -> None:
        """Hold what a block left, in which arrays that this one may be were changed with it."""
        self.rebind(value)
        self.written = True

    def _changed(self, change):
        for each in self.links:
            each.other.follow(self, each, change)

    def follow(self, changed, known, change) -> None:
        """Be changed in runs in which another array that was changed is this one."""
        if known.holds is None or self.fixed is not None or not keeps_shared():
            return self.spoil(changed)
        if self.spoiled is not None:
            return None
        if known.is_inverse:
            return self._hold_where(known.holds, lambda: _seen(changed, known.steps).itself)
        return self._hold_where(known.holds, lambda: self._with(change, known.steps))

    def _hold_where(self, holds, made):
        self.hold(made() if holds is np.True_ else cond(holds, made, lambda: self.itself))

    def _with(self, change, steps):
        """What it holds where a part of it is changed."""
        other = ArrayWrapper(self.itself)
        other.made = True
        change(_seen(other, steps))
        return other.itself

    def links_to(self, other):
        """What is known of another array that this one may be."""
        return [each for each in self.links if each.other is other]

    def spoil(self, changed) -> None:
        """Forget what it holds, as an array that it may be was changed."""
        _note(self)
        mine, other = self.called, changed.label
        other = "another one" if other in (None, mine) else other
        self.spoiled = (
            f"{mine} may or may not be the same array as {other}, which was changed: only the run "
            f"knows; make one of the two a copy, by .copy()"
        )

    def rebind(self, tensor) -> None:
        """Hold what an iteration of a loop begins with."""
        _note(self)
        self._value, self._constant, self._maker = tensor, None, None

    def put_off(self, reason) -> None:
        """Be spoiled."""
        _note(self)
        self.spoiled = reason

    def check_writable(self) -> None:
        """Refuse to change what is not the function's own, or what NumPy lets nobody change."""
        self.check_no_read_only()
        if self.fixed is not None:
            raise invalid("immutable", self.fixed)
        self.check_one_dtype("changed")
        if self.is_value:
            what = "an item assignment in a function that is given to a loop or a branch of nbta's"
            raise refused(what, self.called)

    def check_one_dtype(self, what) -> None:
        """Refuse what NumPy does by the dtype, where only the run knows that."""
        if self.chosen_dtypes is not None:
            raise invalid("immutable", self.of_either_dtype(what))

    @property
    def chosen_dtypes(self):
        """The dtypes of which it may have either; None where it is known."""
        first = self.root._first
        return None if first is None else chosen_dtypes(first)

    def of_either_dtype(self, what):
        """The message for what is done with an array of a dtype that only the run knows."""
        kinds = " or ".join(map(str, self.chosen_dtypes))
        return (
            f"{here()}: {self.called} is {what}, and is an array of {kinds}, which only the run "
            f"knows; give both arrays one dtype by astype, in the branch"
        )

    def check_no_read_only(self) -> None:
        """NumPy's error for a write to what is read-only; a refusal where only the run knows."""
        if self.read_only is False:
            return
        what, remedy = self.called, "change a copy, such as np.diagonal(x).copy()"
        if self.read_only:
            message = f"assignment destination is read-only ({what}): it is read-only in NumPy, too"
            raise ValueError(f"{here()}: {message}; {remedy}")
        message = f"{what} is changed, and may or may not be a view that is read-only in NumPy"
        raise invalid("immutable", f"{here()}: {message}; {remedy}")

    @property
    def is_value(self) -> bool:
        """Whether it is an array that a function given to a loop of nbta's was handed."""
        frame, root = explicit_frame(), self.root
        return frame is not None and (frame.is_before(root) or not root.made or bool(root.fixed))

    @property
    def itself(self):
        """The tensor that it holds, in the graph that is being built or one around it."""
        value = self.content
        if isinstance(value, Tensor):
            return value
        if self._maker is not None and current() is not None:
            return self._maker()
        return self._as_constant(value)

    def _as_constant(self, value):
        graph = current()
        root = None if graph is None else graph.root
        if self._constant is None or self._constant.graph is not root:
            with root.as_default(), root.control_dependencies(None):
                self._constant = constant_in(root, _frozen(value))
        return self._constant

    @property
    def is_known(self) -> bool:
        """Whether Python knows what it holds."""
        return not isinstance(self.content, Tensor)

    graph = property(lambda self: self.itself.graph)
    op = property(lambda self: self.itself.op)
    index = property(lambda self: self.itself.index)

    @property
    def spec(self):
        value = self._value
        return value.spec if isinstance(value, Tensor) else Spec(value.dtype, value.shape)

    @property
    def _shaped(self):
        """A tensor that has its shape, which never changes: the first that it held."""
        first = self._first
        graph = current()
        known = first is not None and (graph is None or lies_in(graph, first.graph))
        return first if known else self.itself

    @property
    def shape(self):
        value = self._value
        return self._shaped.shape if isinstance(value, Tensor) else value.shape

    @shape.setter
    def shape(self, dimensions):
        raise invalid("immutable", "an array keeps its shape; use reshape, which gives a view")

    @property
    def size(self):
        value = self._value
        return self._shaped.size if isinstance(value, Tensor) else value.size

    @property
    def length(self):
        """The dimension of the first axis: an int, or a number that only the run knows."""
        shape = self.shape
        if shape is None:
            return shape_of(self.itself)[0]
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __len__(self):
        length = self.length
        return length if type(length) is int else length.ask("a Python length")

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __bool__(self):
        value = self.content
        if isinstance(value, Tensor):
            message = (
                f"{self.called} has no truth value: use np.any, np.all or compare single items"
            )
            raise invalid("symbolic", message)
        return bool(value)

    def __index__(self):
        return operator.index(native.plain(self))

    def __int__(self):
        return int(native.plain(self))

    def __float__(self):
        return float(native.plain(self))

    def __complex__(self):
        return complex(native.plain(self))

    def __array__(self, dtype=None, copy=None):
        value = self.content
        return np.asarray(value, dtype) if self.is_known else value.__array__(dtype)

    @property
    def called(self):
        """What messages call it: the user's variable, where that is known."""
        return self.label or self._variable() or "an array"

    def _variable(self):
        return label_of(self._value) if isinstance(self._value, Tensor) else None

    def __repr__(self):
        if not current():
            return repr(self._value)
        return f"<array {self.label or self._variable() or ''} {self.spec}>"

    # Items.

    def __getitem__(self, key):
        key = picking.as_key(key)
        if any(map(picking.is_run_truth, _as_tuple(key))):
            axes, key = picking.without_truths(_as_tuple(key))
            return self[axes][key]
        rank = _rank_of(key, self.ndim)
        if rank is None and any(type(part) in (bool, np.bool_) for part in _as_tuple(key)):
            axes, key = picking.without_truths(_as_tuple(key))
            return self[axes][key]
        if rank is None:
            return wrapped(picking.item(self.content_for(key), native.plain(key)))
        if rank == 0:
            return self.scalar_at(key)
        key = native.plain(key)
        self._check_places(key)
        return View(self, KeyStep(key, self.ndim))

    def _check_places(self, key):
        """Refuse an index that is out of range, which reading the view would, if anything does.

        Only lengths that are known by themselves tell: to ask one of an argument would make the
        graph one for that length.
        """
        if self.shape is not None:
            known = tuple(n if type(n) is int else None for n in self.shape)
            parts = [SYMBOLIC if isinstance(part, Tensor) else part for part in _as_tuple(key)]
            indexed(known, tuple(_WHOLE if type(p) is slice else p for p in parts))

    def content_for(self, key):
        """What it holds, as a tensor where a key has tensors in it."""
        return self.content if native.is_known(native.plain(key)) else self.itself

    def scalar_at(self, key):
        """A single item."""
        return picking.item(self.content_for(key), native.plain(key))

    def __setitem__(self, key, value):
        self.check_writable()
        key = picking.as_key(key)
        if any(map(picking.is_run_truth, _as_tuple(key))):
            axes, key = picking.without_truths(_as_tuple(key))
            self[axes][key] = value
            return
        self.put(native.plain(key), native.plain(value))

    def put(self, key, value) -> None:
        """Replace items."""
        content = self.content
        if not isinstance(content, Tensor) and native.is_known((key, value)):
            return self._put_known(key, value)

        def again(array):
            array.put(key, value)

        if picking.selects(key, value):
            return self.store(picking.where_true(key, value, self.itself), again)
        value = native.settled(value, self.dtype)
        if all(part is Ellipsis or _is_whole(part) for part in _as_tuple(key)):
            return self._put_whole(key, value, again)
        return self.store(picking.replaced(self.itself, key, value), again)

    def _put_whole(self, key, value, again):
        """Replace all items, for which nobody needs the old ones."""
        scalar = value.spec.rank == 0 if isinstance(value, Tensor) else np.ndim(value) == 0
        known = self.shape is not None
        if scalar and known and _dtype_of(value, self.dtype) == self.dtype:
            held = value if isinstance(value, Tensor) else np.asarray(value, self.dtype)[()]
            return self.store(fill(self.shape, held), again)
        dimensions = self.spec.shape
        alike = isinstance(value, Tensor) and value.spec == self.spec
        if alike and dimensions is not None and None not in dimensions:
            return self.store(as_tensor(value), again)
        return self.store(picking.replaced(self.itself, key, value), again)

    def _put_known(self, key, value):
        if _note(self) or self._is_noted():
            self._value = self._value.copy()
        self._value[key] = value
        self._constant = self._maker = None
        self.written = True
        self._changed(lambda array: array.put(key, value))

    def _is_noted(self):
        return bool(_frames.stack) and _frames.stack[-1].is_before(self)

    def change_where(self, mask, compute, value) -> None:
        """``array[mask] = compute(array[mask], value)``."""
        self.check_writable()
        found = picking.computed_where(mask, compute, self.itself, value)
        self.store(found, lambda array: array.change_where(mask, compute, value))

    def add(self, key, value) -> None:
        """Add to items."""
        content = self.content
        if not isinstance(content, Tensor) and native.is_known((key, value)):
            return self._put_known(key, content[key] + value)
        found = picking.added(self.itself, key, native.settled(value, self.dtype))
        return self.store(found, lambda array: array.add(key, value))

    # What NumPy's arrays can do.

    @property
    def at(self):
        """See `nbta.at`; of what it holds now."""
        return changes.At(self.content)

    @property
    def T(self):  # noqa: N802
        """The view with its axes in the opposite order."""
        return self.transpose()

    def transpose(self, *axes):
        """A view with other axes; see `nbta.transpose`."""
        order = native.plain(axes[0] if len(axes) == 1 else axes or None)
        if order is None:
            return View(self, AxesStep(tuple(range(self.ndim))[::-1]))
        order = normalized_axes(order, self.ndim)
        if len(order) != self.ndim:
            raise ValueError(f"{here()}: transpose: {len(order)} axes of an array of {self.ndim}")
        return View(self, AxesStep(order))

    def reshape(self, *dimensions, shape=None, order="C", copy=None):
        """A view of another shape; see `nbta.reshape`."""
        shape = (
            shape if shape is not None else dimensions[0] if len(dimensions) == 1 else dimensions
        )
        shape = native.plain(shape)
        shape = shape.tolist() if isinstance(shape, np.ndarray | np.generic) else shape
        if _is_fortran(order):
            vector = isinstance(shape, list | tuple) or getattr(shape, "ndim", 0)
            turned = shape[::-1] if vector else shape
            found = self.transpose()._in_shape(turned).transpose()
        else:
            found = self._in_shape(shape)
        if copy is False and found.root is not self.root:
            message = (
                "reshape with copy=False: the items are not contiguous, so that a copy is needed"
            )
            raise ValueError(f"{here()}: {message}")
        return found.copy() if copy else found

    def ravel(self, order="C"):
        """The view as a vector; a copy where its items do not lie together."""
        return (self.transpose() if _is_fortran(order) else self)._in_shape((-1,))

    @property
    def together(self):
        """Whether the items lie together in memory, in their order."""
        return not self.apart

    def _in_shape(self, shape):
        self._check_size(shape)
        view = View(self, ShapeStep(shape))
        if self.together:
            return view
        copy = view.copy()  # or a view, as NumPy finds by the strides
        copy.read_only = None if self.read_only else self.read_only
        link(copy, self.root)
        return copy

    def _check_size(self, shape):
        """Refuse what reading the view would, if anything does: no shape, or of another size."""
        have, dimensions = self.shape, shape if isinstance(shape, list | tuple) else (shape,)
        as_shape([n for n in dimensions if not isinstance(n, Tensor) or n.dtype.kind not in "iu"])
        if have is None or not all(type(n) is int for n in (*have, *dimensions)):
            return
        known = math.prod(n for n in dimensions if n >= 0)
        left = [n for n in dimensions if n < 0]
        fits = math.prod(have) == known if not left else known and not math.prod(have) % known
        if len(left) > 1 or not fits:
            found = f"an array of shape {shapes.text(have)} into shape {shapes.text(dimensions)}"
            raise invalid("reshape", f"{here()}: cannot reshape {found}")

    def flatten(self, order="C"):
        """A vector of all items."""
        return self.ravel(order).copy()

    def diagonal(self, offset=0, axis1=0, axis2=1):
        """A view of a diagonal, for reading."""
        return self.shown(_diagonal_of, offset, axis1, axis2)

    def shown(self, function, *values):
        """A view for reading, of what a function of the array and of some values gives."""
        found = View(self, ReadStep(function, native.plain(values)))
        _ = found.content  # what is wrong with the values is so here
        return found

    def diagonal_view(self):
        """A view of the diagonal of a matrix, to be read and assigned."""
        return View(self, DiagonalStep())

    def conj(self):
        """Complex conjugates; an array of real numbers itself."""
        if self.dtype.kind != "c":
            return self
        return laid_as(wrapped(native.method("conj", self.content, (), {})), (self,))

    def swapaxes(self, axis1, axis2):
        """A view with two axes in each other's place."""
        order = list(range(self.ndim))
        (one,), (other,) = (normalized_axes(axis, self.ndim) for axis in (axis1, axis2))
        order[one], order[other] = order[other], order[one]
        return View(self, AxesStep(tuple(order)))

    def moveaxis(self, source, destination):
        """A view with some axes at other places."""
        source, destination = (normalized_axes(axes, self.ndim) for axes in (source, destination))
        if len(source) != len(destination):
            message = f"{here()}: moveaxis: source and destination must name equally many axes"
            raise ValueError(message)
        order = [n for n in range(self.ndim) if n not in source]
        for place, axis in sorted(zip(destination, source, strict=True)):
            order.insert(place, axis)
        return View(self, AxesStep(tuple(order)))

    def squeeze(self, axis=None):
        """The view without axes of one item."""
        dimensions = self.shape
        if axis is None:
            what = "squeeze: an axis has one item, which only the run knows; name the axes in axis="
            axes = {n for n in range(self.ndim) if not _expected(dimensions[n] != 1, what)}
        else:
            axes = normalized_axes(axis, self.ndim)
            what = f"squeeze: an axis of {self.spec} has other than one item"
            if not all(_expected(dimensions[n] == 1, what) for n in axes):
                raise invalid("shape", f"{here()}: {what}")
        return self[tuple(0 if n in axes else slice(None) for n in range(self.ndim))]

    def expand_dims(self, axis):
        """The view with axes of one item more."""
        count = self.ndim + np.size(native.plain(axis))
        axes = normalized_axes(axis, count)
        return self[tuple(None if n in axes else slice(None) for n in range(count))]

    def flip(self, axis=None):
        """The view with the items of some axes, or of all, in the opposite order."""
        axes = range(self.ndim) if axis is None else normalized_axes(axis, self.ndim)
        return self[tuple(slice(None, None, -1 if n in axes else None) for n in range(self.ndim))]

    def copy(self, order="C"):
        """Another array with the same items."""
        content = self.content
        made = ArrayWrapper(content if isinstance(content, Tensor) else content.copy(), self.label)
        made._maker, made._first, made.made = self._maker, self._first, True
        return made

    __copy__ = copy

    def __deepcopy__(self, memo):
        return self.copy()

    def fill(self, value):
        """Set all items."""
        if isinstance(value, list | tuple) or (isinstance(value, ArrayWrapper) and value.ndim):
            raise ValueError(f"{here()}: setting an array element with a sequence.")
        self[...] = value

    def astype(self, dtype, order="K", casting="unsafe", *, copy=True):
        """A copy of another dtype."""
        dtype = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        if not np.can_cast(self.dtype, dtype, casting):
            message = f"from {self.dtype} to {dtype} according to the rule {casting!r}"
            raise TypeError(f"{here()}: astype: there is no cast {message}")
        if dtype == self.dtype and not copy and order != "F":
            return self
        if dtype == self.dtype and self.chosen_dtypes is not None:
            found = made(of_one_dtype(self.itself))
        elif dtype == self.dtype:
            found = self.copy()
        else:
            found = wrapped(native.method("astype", self.content, (dtype,), {}))
        found = found if order == "C" else laid_as(found, (self,))
        turn = order == "F" and found.ndim > 1
        return found.transpose().copy().transpose() if turn else found

    def item(self, *index):
        """A number: the item at an index along each axis, or at one in C's order, or the only one.

        Raises
        ------
        ValueError
            Without an index for an array of more than one item, or with as many as no axes.
        IndexError
            Where there is no such item; a run raises it where only that knows.
        """
        if len(index) == 1 and isinstance(index[0], tuple):
            (index,) = index
        if self.is_known and native.is_known(index):
            return self.content.item(*index)
        if not index:
            message = "can only convert an array of size 1 to a Python scalar"
            return only_item(self, ValueError(f"{here()}: {message}"))
        if len(index) == 1 and self.ndim != 1:
            return self.ravel().scalar_at(index)
        if self.ndim not in (len(index), None):
            raise ValueError(f"{here()}: incorrect number of indices for array")
        return self.scalar_at(index)

    def tolist(self):
        """The items in lists."""
        return self.content.tolist() if self.is_known else [_listed(part) for part in self]

    @property
    def flat(self):
        """Its items in one row, to be read and assigned."""
        return Flat(self)

    @flat.setter
    def flat(self, value):
        Flat(self).fill(value)

    def view(self, *kinds, **options):
        """All of it, as an array of its own that shares its items."""
        if kinds or options:
            raise _no_attribute(self, "view(dtype)", "astype gives a copy of another dtype")
        return self[...]

    @property
    def real(self):
        """The real parts; of real numbers a view of them all."""
        return self._part(arithmetic.real) if self.dtype.kind == "c" else self[...]

    @real.setter
    def real(self, value):
        value = native.plain(value)
        if self.dtype.kind == "c":
            value = arithmetic.complex_of(value, arithmetic.imag(self.itself))
        self[...] = value

    @property
    def imag(self):
        """The imaginary parts; of real numbers zeros that are read-only."""
        found = self._part(arithmetic.imag)
        if isinstance(found, ArrayWrapper) and self.dtype.kind != "c":
            found.read_only = True
        return found

    @imag.setter
    def imag(self, value):
        if self.dtype.kind != "c":
            raise TypeError("array does not have imaginary part to set")
        self[...] = arithmetic.complex_of(arithmetic.real(self.itself), native.plain(value))

    def _part(self, function):
        """Parts of complex numbers, a view in NumPy: a change of one is seen in the other.

        They are no `View`, as loops carry computed parts, such as ``np.fft.ifft(x).real``.
        """
        found = wrapped(function(self.itself))
        if isinstance(found, ArrayWrapper) and self.dtype.kind == "c":
            found.label = f"{self.label or 'an array'}.{function.__name__}"
            root, steps = _path(self)
            ways = () if steps is None else [Link(root, np.True_, (*steps, PartStep(function)))]
            link(found, root, ways)
        return found

    @property
    def nbytes(self):
        """How many bytes its items have."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self):
        """How many bytes an item has."""
        return self.dtype.itemsize

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        raise _no_attribute(self, name, f"nbta has no such operation; {nearest(name)}")

    def __hash__(self):
        return object.__hash__(self)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **options):
        if out is not None or method == "at":
            return _into(self, ufunc, method, inputs, out, options)
        inputs, options = native.plain(inputs), native.plain(options)
        return wrapped(getattr(ufunc, method)(*inputs, **options))

    def __array_function__(self, function, types, args, kwargs):
        return wrapped(function(*native.plain(args), **native.plain(kwargs)))


def only_item(value, error):
    """The item of an array of one: the error is raised for another array, or by a run."""
    value = as_tensor(native.plain(value))
    if value.spec.rank == 0:
        return value
    if any(isinstance(n, shapes.Dim) or n not in (1, None) for n in value.spec.shape or ()):
        raise error
    return reshape(value, ())


def normalized_axes(axis, rank, may_repeat=False):
    """Axes counted from the first, each at most once or not; an error of NumPy's for others."""
    axes = native.plain(axis)
    axes = axes.tolist() if isinstance(axes, np.ndarray) else axes
    try:
        return normalize_axis_tuple(axes, rank, allow_duplicate=may_repeat)
    except ValueError as error:
        raise at_line(error) from None


def _expected(holds, what) -> bool:
    """Whether lengths are as they should be; where only the run knows, it fails if they are not."""
    if not isinstance(holds, numbers.Number):
        return bool(holds)
    holds.ask_again()
    if not is_repeated():
        order = order_now()
        error = invalid("shape", f"{here()}: {what}")
        order.token = assert_holds(order.token, holds, error)
    return True


class NoAttributeError(InvalidArgumentError, AttributeError):
    """NumPy's arrays have an attribute, and those that are traced have not."""


def _no_attribute(wrapper, name, remedy):
    error = NoAttributeError(f"{here()}: .{name} of {wrapper.label or 'an array'}: {remedy}")
    error.reason = "symbolic"
    return error


def _into(wrapper, ufunc, method, inputs, out, options):
    """A universal function that changes an array."""
    if method == "at":
        target, key, *rest = inputs
        if not rest or ufunc is not np.add:
            raise invalid("symbolic", f"np.{ufunc.__name__}.at: write a loop over the indices")
        target.check_writable()
        return target.add(native.plain(key), native.plain(rest[0]))
    (target,) = out if isinstance(out, tuple) else (out,)
    found = getattr(ufunc, method)(*native.plain(inputs), **native.plain(options))
    target[...] = found
    return target


def _listed(part):
    return part.tolist() if isinstance(part, ArrayWrapper) else part


def _frozen(array):
    array = np.array(array)
    array.flags.writeable = False
    return array


def _is_fortran(order):
    """Whether an order lets the first axis run fastest."""
    if order not in ("C", "F"):
        message = f"{here()}: order={order!r}: the memory layout is not known; give 'C' or 'F'"
        raise invalid("value", message)
    return order == "F"


def _rank_of(key, rank):
    """How many axes a key leaves; None where it picks copies of items, or nobody knows."""
    parts = key if isinstance(key, tuple) else (key,)
    if rank is None:
        return None
    for part in parts:
        if part is None:
            rank += 1
        elif isinstance(part, slice) or part is Ellipsis:
            continue
        elif native.is_integer(part):
            rank -= 1
        else:
            return None
    return max(rank, 0)


def _deepest(graph, values):
    """The graph being built, or the body around which it is where a value is of that body.

    Like its array, a view of a body has a shape outside, too, but no value.
    """
    if isinstance(values, slice):
        values = values.start, values.stop, values.step
    if isinstance(values, tuple | list):
        for value in values:
            graph = _deepest(graph, value)
    elif graph is not None and isinstance(values, Tensor) and not native.is_known(values):
        graph = graph if lies_in(graph, values.graph) else values.graph
    return graph


class View(ArrayWrapper):
    """A part of an array, or all of it in another order, that stays the array's."""

    __slots__ = ("_kept", "base", "step")

    def __init__(self, base, step, label=None):
        self.base, self.step, self._kept = base, step, (None, None)
        super().__init__(None, label or base.label)
        self.read_only = step.read_only or base.read_only

    @property
    def root(self):
        return self.base.root

    @property
    def together(self):
        return self.base.together and self.step.together

    @property
    def content(self):
        whole = self.base.content  # asked for once: views of views are as many as iterations
        if not isinstance(whole, Tensor) and not native.is_known(self.step.values):
            whole = self.base.itself
        graph = current()
        held, found = self._kept
        here = held is whole and (
            not isinstance(found, Tensor) or graph is None or lies_in(graph, found.graph)
        )
        if not here or not isinstance(whole, Tensor):
            body = _deepest(graph, (whole, self.step.values))
            with nullcontext() if body is graph else body.as_default():
                found = self.step.get(whole)
            self._kept = whole, found
        return found

    def store(self, value, change=None) -> None:
        base, step = self.base, self.step
        base.check_writable()
        known = base.is_known and native.is_known((value, step.values))
        found = step.put(base.content if known else base.itself, value)
        change = change or (lambda view: view.store(value))
        base.store(found, lambda array: change(View(array, step)))

    def check_writable(self) -> None:
        self.check_no_read_only()
        self.base.check_writable()

    @property
    def itself(self):
        content = self.content
        return content if isinstance(content, Tensor) else as_tensor(content)

    @property
    def spec(self):
        value = self.content
        return value.spec if isinstance(value, Tensor) else Spec(value.dtype, value.shape)

    @property
    def shape(self):
        return self.content.shape

    @shape.setter
    def shape(self, dimensions):
        raise invalid("immutable", "a view keeps its shape; use reshape, which gives another")

    @property
    def size(self):
        return self.content.size

    def scalar_at(self, key):
        inner = self.step.composed(_as_tuple(native.plain(key)))
        if inner is not None:
            return self.step.item(self.base.scalar_at(inner))
        return super().scalar_at(key)

    def put(self, key, value) -> None:
        inner = self.step.composed(_as_tuple(key))
        if inner is not None:
            return self.base.put(inner, self.step.as_items(self.base, inner, value))
        content = self.content
        if not isinstance(content, Tensor) and native.is_known((key, value)):
            changed = content.copy()
            changed[key] = value
            return self.store(changed)
        if picking.selects(key, value):
            return self.store(picking.where_true(key, value, self.itself))
        return self.store(picking.replaced(self.itself, key, native.settled(value, self.dtype)))

    def add(self, key, value) -> None:
        inner = self.step.composed(_as_tuple(key))
        if inner is not None:
            return self.base.add(inner, self.step.as_summand(value))
        content = self.content
        if not isinstance(content, Tensor) and native.is_known((key, value)):
            return self.put(key, content[key] + value)
        return self.store(picking.added(self.itself, key, native.settled(value, self.dtype)))

    def copy(self, order="C"):
        content = self.content
        made = ArrayWrapper(content if isinstance(content, Tensor) else content.copy(), self.label)
        made.made = True
        return made

    __copy__ = copy


class Flat(View):
    """What ``array.flat`` is: items in C's order, wherever they lie; parts of it are copies."""

    __slots__ = ()

    def __init__(self, base):
        super().__init__(base, ShapeStep((-1,)))

    def __getitem__(self, key):
        found = super().__getitem__(key)
        return found.copy() if isinstance(found, View) else found

    def fill(self, values):
        """Assign all items, from the first again where there are fewer values, as NumPy does."""
        values = wrapped(native.together(values) if isinstance(values, list | tuple) else values)
        if not (isinstance(values, ArrayWrapper) and values.ndim):
            self[...] = values
            return
        row, have = values.ravel(), values.size
        if native.is_known(have) and not have:
            return
        self[...] = row[arange(self.length) % have]


def _dtype_of(value, dtype):
    """The dtype of a value; of a number of Python's the one that it is to have, if it may."""
    if hasattr(value, "dtype") and not (isinstance(value, Tensor) and value.weak is not None):
        return value.dtype
    kind = np.asarray(value).dtype if not isinstance(value, Tensor) else value.dtype
    return dtype if np.can_cast(kind, dtype, "same_kind") and kind.kind != "b" else kind


def _as_tuple(key):
    return key if isinstance(key, tuple) else (key,)


def _seen(wrapper, steps):
    """The view that some steps lead to."""
    for step in steps:
        wrapper = View(wrapper, step)
    return wrapper


# Steps from an array to a view of it.

_WHOLE = slice(None)


def _is_whole(part):
    return _runs(part, 1) and (part.start is None or _is(part.start, 0))


def _is_turned(part):
    return _runs(part, -1) and part.start is None


def _runs(part, step):
    """Whether a part of a key is a slice to the end, by a step."""
    ends = isinstance(part, slice) and part.stop is None
    return ends and (_is(part.step, step) or (step == 1 and part.step is None))


def _is(part, number):
    return type(part) is int and part == number


def _padded(key, rank):
    """A key with a part for each of so many axes; None where it is not that simple."""
    simple = all(isinstance(part, slice) or native.is_integer(part) for part in key)
    if not simple or len(key) > rank:
        return None
    return (*key, *[_WHOLE] * (rank - len(key)))


class Step:
    """A step from an array to a view of it, which can be changed."""

    read_only = False

    def item(self, found):
        """An item of the view, for that of the array with the composed key."""
        return found

    def as_items(self, array, key, value):
        """What items of the array become where those of the view become a value."""
        return value

    def as_summand(self, value):
        """What is added to items of the array where a value is added to those of the view."""
        return value


class KeyStep(Step):
    """Integers, slices, None and ``...`` between brackets."""

    def __init__(self, key, rank):
        self.key = _as_tuple(key)
        self._parts = _padded(self.key, rank) if rank is not None else None

    values = spelled = property(lambda self: self.key)

    @property
    def is_all(self):
        """Whether it leaves the array as it is."""
        return all(part is Ellipsis or _is_whole(part) for part in self.key)

    @property
    def together(self):
        """Whether it leaves items that lie together: whole ones after the first slice."""
        if self._parts is None:
            return all(part is None or _is_whole(part) for part in self.key)
        kept = list(self._parts)
        while kept and not isinstance(kept[0], slice):
            kept.pop(0)
        first = [part for part in kept[:1] if _is_dense(part)]
        return not kept or (bool(first) and all(map(_is_whole, kept[1:])))

    def get(self, array):
        """The view of an array."""
        return picking.item(array, self.key)

    def put(self, array, value):
        """The array where the view is another one."""
        if not isinstance(array, Tensor):
            array = array.copy()
            array[self.key] = value
            return array
        return picking.replaced(array, self.key, value)

    def composed(self, key):
        """The key of the array for one of the view; None where that is not simple."""
        if self._parts is None:
            return None
        kept = [part for part in self._parts if isinstance(part, slice)]
        inner = _padded(key, len(kept))
        if inner is None:
            return None
        merged = [_merged(part, other) for part, other in zip(kept, inner, strict=True)]
        if any(part is None for part in merged):
            return None
        merged = iter(merged)
        return tuple(next(merged) if isinstance(p, slice) else p for p in self._parts)


def _is_dense(part):
    """Whether a slice takes one item after the other, as is known."""
    return part.step is None or (not isinstance(part.step, Tensor) and part.step == 1)


def _merged(part, inner):
    """A part of a key within what a slice leaves; None where that is not simple."""
    if _is_whole(part):
        return inner
    if _is_whole(inner):
        return part
    plain = part.stop is None and _is_dense(part) and type(part.start) is int
    if plain and part.start >= 0 and is_natural(inner):
        return inner + part.start
    return None


class AxesStep(Step):
    """Another order of axes."""

    values = ()
    is_all = False
    spelled = property(lambda self: self.axes)

    def __init__(self, axes):
        self.axes = axes
        self.together = list(axes) == sorted(axes)

    def get(self, array):
        """The view of an array."""
        if isinstance(array, Tensor):
            return transpose(array, self.axes)
        return np.transpose(array, self.axes)

    def put(self, array, value):
        """The array where the view is another one."""
        return AxesStep(tuple(np.argsort(self.axes).tolist())).get(value)

    def composed(self, key):
        """The key of the array for one of the view."""
        parts = _padded(key, len(self.axes))
        if parts is None or sum(isinstance(part, slice) for part in parts) > 1:
            return None
        found = [None] * len(parts)
        for axis, part in zip(self.axes, parts, strict=True):
            found[axis] = part
        return tuple(found)


class DiagonalStep(Step):
    """The diagonal of a matrix."""

    values = spelled = ()
    together = is_all = False

    def get(self, array):
        """The view of an array."""
        return diagonal(array) if isinstance(array, Tensor) else np.diagonal(array)

    def put(self, array, value):
        """The array where the view is another one."""
        if not isinstance(value, Tensor) and not isinstance(array, Tensor):
            array = array.copy()
            np.fill_diagonal(array, value)
            return array
        length = value.shape[0]
        places = arange(length)
        return picking.replaced(as_tensor(array), (places, places), value)

    def composed(self, key):
        """The key of the array for one of the view."""
        if len(key) == 1 and native.is_integer(key[0]):
            return (key[0], key[0]) if isinstance(key[0], int) and key[0] >= 0 else None
        return None


def _diagonal_of(array, offset, axis1, axis2):
    return native.method("diagonal", array, (offset, axis1, axis2), {})


class PartStep(Step):
    """The real or the imaginary parts of complex numbers."""

    values = ()
    together = is_all = False
    spelled = property(lambda self: self.function)

    def __init__(self, function):
        self.function = function

    def get(self, array):
        """The view of an array."""
        return self.function(array)

    def put(self, array, value):
        """The array where the view is another one."""
        if self.function is arithmetic.real:
            return arithmetic.complex_of(value, arithmetic.imag(array))
        return arithmetic.complex_of(arithmetic.real(array), value)

    def composed(self, key):
        """The key of the array for one of the view; None where it is not a basic one."""
        basic = all(
            part is None or part is Ellipsis or isinstance(part, slice) or native.is_integer(part)
            for part in key
        )
        return key if basic else None

    item = get

    def as_items(self, array, key, value):
        """What items of the array become where those of the view become a value."""
        return self.put(native.plain(array[key]), native.plain(value))

    def as_summand(self, value):
        """What is added to items of the array where a value is added to those of the view."""
        value = native.plain(value)
        return value if self.function is arithmetic.real else arithmetic.complex_of(0.0, value)


class ReadStep(Step):
    """What a function gives of the array and of some values, for reading alone."""

    read_only, together, is_all = True, False, False

    def __init__(self, function, values):
        self.function, self.values = function, values

    spelled = property(lambda self: (self.function, self.values))

    def get(self, array):
        """The view of an array."""
        return self.function(array, *self.values)

    def composed(self, key):
        """Which item that is only the function knows."""
        return


class ShapeStep(Step):
    """Another shape, in the same order of items."""

    together, is_all = True, False

    def __init__(self, shape):
        self.shape = shape

    values = spelled = property(lambda self: self.shape)

    def get(self, array):
        """The view of an array."""
        if isinstance(array, Tensor) or not native.is_known(self.shape):
            return reshape(array, self.shape)
        return np.reshape(array, self.shape)

    def put(self, array, value):
        """The array where the view is another one."""
        if not isinstance(value, Tensor) and not isinstance(array, Tensor):
            return np.reshape(value, np.shape(array)).copy()
        return reshape(value, array.shape if array.shape is not None else shape_of(array))

    def composed(self, key):
        """Which item that is depends on the shape."""
        return


# What operations give.


def made(value, label=None):
    """A wrapper that may be filled, of a tensor of any rank but 0."""
    found = wrapped(value, label)
    if isinstance(found, ArrayWrapper):
        found.made = True
    return found


def new_array(value):
    """A wrapper that may be filled, of a tensor of any rank: rank 0 changes as others do."""
    found = made(value)
    if not isinstance(found, ArrayWrapper):
        found = ArrayWrapper(as_tensor(found))
        found.made = True
    return found


_NUMBERS_NOW = "numbers that were arrays of no axes"


def note_number(value, sources) -> None:
    """Note that loops or branches made a number of what may be an array of no axes."""
    if not isinstance(value, ArrayWrapper) and any(
        isinstance(each, ArrayWrapper) for each in sources
    ):
        current().root.cache.setdefault(_NUMBERS_NOW, {})[id(value)] = value


def check_number(value) -> None:
    """Refuse to change in place what may be an array of no axes, which others may hold."""
    graph = current()
    if graph is not None and id(value) in graph.root.cache.get(_NUMBERS_NOW, ()):
        message = (
            f"{here()}: an array without axes, such as np.zeros(()), is changed in place after a "
            f"loop or branch that may have put another one into its variable; begin with a number, "
            f"such as 0.0, or write s = s + x in place of s += x"
        )
        raise invalid("aliased", message)


def wrapped(value, label=None):
    """What a computation gives, with arrays in wrappers.

    Their own wrappers where they have some.
    """
    if isinstance(value, ArrayWrapper):
        return value
    if isinstance(value, Tensor):
        data = value.kind == "data" and value.spec.rank != 0 and value.weak is None
        return ArrayWrapper(value, label) if data else value
    if isinstance(value, np.ndarray):
        if type(value) is not np.ndarray:
            check_plain(f"{here()}: {label or 'a value'}", value)
        return ArrayWrapper(np.asarray(value), label) if value.ndim else value[()]
    if type(value) in (tuple, list):
        return type(value)(wrapped(part, label) for part in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(wrapped(part, label) for part in value))
    if type(value) is dict:
        return {key: wrapped(part, label) for key, part in value.items()}
    if (node := node_of(value)) is not None:
        parts = [wrapped(part, label) for part in node.parts]
        same = all(one is other for one, other in zip(parts, node.parts, strict=True))
        return value if same else node.packed(parts)
    return value


def _operator(name):
    compute = getattr(operator, name)

    def method(self, other):
        return _computed(compute, self, other)

    return method


def _reflected(name):
    compute = getattr(operator, name)

    def method(self, other):
        return _computed(compute, other, self)

    return method


def laid_as(found, sources):
    """A result that may lie in another order than C's, as one of those that it is computed of.

    A vector of its items is a copy in NumPy then, and a view otherwise.
    """
    if (
        type(found) is ArrayWrapper
        and (found.spec.rank or 2) > 1
        and any(map(_lies_apart, sources))
    ):
        found.apart = True
    return found


def _lies_apart(source):
    if isinstance(source, list | tuple):  # a list that a loop fills is stacked in C's order
        return native.is_python(source) and any(map(_lies_apart, source))
    return isinstance(source, ArrayWrapper) and not source.together and (source.ndim or 2) > 1


def _computed(compute, a, b):
    if a is None or b is None:
        return NotImplemented
    sources = a, b
    a, b = (native.together(v) if isinstance(v, list | tuple) else native.plain(v) for v in (a, b))
    with np.errstate(all="ignore"):
        return laid_as(wrapped(compute(a, b)), sources)


def _method(name):
    def method(self, *args, **options):
        given = native.plain(args), native.plain(options)
        return laid_as(wrapped(native.method(name, self.content, *given)), (self, *args))

    method.__name__ = name
    return method


def _in_place(name):
    compute = getattr(operator, name)

    def method(self, other):
        if self.is_value:
            return _computed(compute, self, other)
        change_in_place(self, compute, other)
        return self

    return method


def change_in_place(wrapper, compute, other) -> None:
    """``wrapper = compute(wrapper, other)`` as NumPy does it in place."""
    wrapper.check_writable()
    with np.errstate(all="ignore"):
        found = compute(wrapper.content, native.plain(other))
    held = wrapper.content
    if not isinstance(found, Tensor) and not isinstance(held, Tensor):
        wrapper[...] = np.asarray(found).astype(held.dtype, casting="same_kind")
        return
    if found.dtype != held.dtype:
        if not np.can_cast(found.dtype, held.dtype, "same_kind"):
            message = (
                f"{wrapper.label or 'an array'} is {held.dtype}, and cannot take {found.dtype} in "
                f"place; make it with dtype={found.dtype.name!r}"
            )
            raise invalid("dtype", message)
        found = cast(found, held.dtype)
    same = isinstance(found, Tensor) and found.spec.shape == wrapper.spec.shape
    if same and None not in (found.spec.shape or (None,)):
        wrapper.store(found)
    else:
        wrapper[...] = found


def _install():
    names = (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
        "lshift", "rshift",
    )  # fmt: skip
    for name in names:
        plain = name.strip("_")
        setattr(ArrayWrapper, f"__{plain}__", _operator(name))
        setattr(ArrayWrapper, f"__r{plain}__", _reflected(name))
        setattr(ArrayWrapper, f"__i{plain}__", _in_place(name))
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(ArrayWrapper, f"__{name}__", _operator(name))
    for name in ("neg", "pos", "abs", "invert"):
        compute = getattr(operator, name)
        setattr(
            ArrayWrapper,
            f"__{name}__",
            lambda self, c=compute: laid_as(wrapped(c(self.content)), (self,)),
        )
    for name in (
        "sum", "mean", "max", "min", "prod", "argmax", "argmin", "cumsum", "cumprod", "dot", "std",
        "var", "any", "all", "round", "repeat", "trace",
        "argsort", "take", "argpartition", "searchsorted", "choose",
    ):  # fmt: skip
        setattr(ArrayWrapper, name, _method(name))
    for name, function in (
        ("clip", _clip), ("compress", _compress), ("nonzero", _nonzero), ("sort", _sort),
        ("partition", _partition),
    ):  # fmt: skip
        function.__name__ = name
        setattr(ArrayWrapper, name, function)
    ArrayWrapper.conjugate = ArrayWrapper.conj
    ArrayWrapper.__hash__ = object.__hash__


def _clip(self, min=None, max=None, **options):
    """``np.clip``."""
    return _clipped(self, *as_limits(self, min, max), **options)


_clipped = _method("clip")


def _compress(self, condition, axis=None):
    """Items for which a condition holds."""
    condition = picking.as_key(condition)
    if native.is_known(condition):
        return wrapped(compress(native.plain(condition), self.content, axis))
    return (self.ravel() if axis is None else self.moveaxis(axis, 0))[condition]


def _nonzero(self):
    """Where items are other than 0."""
    return wrapped(np.nonzero(self.content) if self.is_known else picking.nonzero(self.content))


def _sort(self, axis=-1, kind=None, *, stable=None):
    """Sort in place."""
    native.check_method("sort", self, {"kind": kind})
    self[...] = np.sort(self.content, axis) if self.is_known else sort(self.itself, axis)


def _partition(self, kth, axis=-1, kind="introselect"):
    """Sort in place: one of the orders in which all smaller ones stand before an item."""
    native.check_method("partition", self, {"kind": kind})
    _sort(self, axis)


_install()
#: Imported for what it does to tensors.
_NUMBERS = numbers
