"""A `TensorArray` that a traced function makes: what is written to it stays, as in an eager one.

In a graph each write gives the array to go on with. Here one object stands for it, which holds the
last of these; loops and branches take that as a place of the user's.

An array and its gradient arrays, and theirs, are a *family*: one flow orders all that is done with
them. So a lookup sees what was added before by whatever name, growth ends at the first one, and
nothing but a gradient array is of use after `close`. Where a loop or a branch leaves one of several
arrays, its family is not known. Where that array and one that it may be are both used, the trace
begins again, with one flow for all arrays of the function (`Lengths.shared`).
"""

from __future__ import annotations

import itertools
import weakref

from nbta.errors import NotOfArrays, invalid
from nbta.frontend import native
from nbta.frontend.array_wrappers import (
    Attribute,
    born,
    explicit_frame,
    explicitly_older,
    keeps_shared,
    note_place,
    wrapped,
)
from nbta.frontend.problems import here
from nbta.graph.graph import current, lies_in
from nbta.graph.operation import FLOW
from nbta.ops.arrays.tensor_arrays import CLOSE
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import special
from nbta.structure import leaves, map_leaves
from nbta.symbolic import SymbolicTensorArray

#: What gives the array to go on with.
_WRITES = ("write", "append", "accumulate", "scatter", "unstack", "split", "identity")
_READS = ("read", "gather", "stack", "concat", "size")
_LOOKUPS = ("grad", "grad_with_shape")
#: What makes a gradient array longer where it goes past its end.
_GROWING = ("read", "gather")

_clock = itertools.count()


def now() -> int:
    """A number that grows while functions are traced."""
    return next(_clock)


class TensorArrayWrapper:
    """A tensor array of a traced function.

    Parameters
    ----------
    held : SymbolicTensorArray
    forward : TensorArrayWrapper, optional
        Of a gradient array: the first array of its family.
    sources : tuple of str, optional
        By which it is looked up from there; None where the run decides.

    Attributes
    ----------
    held : SymbolicTensorArray
        After all that was done with the family, where this is its first array.
    others : list
        What it may be in a run, each with when that became so.
    since, used : int
        When it was made, and last used.
    """

    #: For `nbta.frontend.native.plain`.
    holds_array = True

    def __init__(self, held, forward=None, sources=()):
        self.held, self.sources = held, sources
        self.forward = self if forward is None else forward
        self.others, self.used, self.since = [], -1, now()
        _wrappers().setdefault(held.handle, self)  # those in functions given to loops are values
        born(self)

    @property
    def array(self):
        """The array, after all that was done with its family."""
        common = _common_order(self.forward)
        flow = self.forward.held.flow if common is None else common.flow
        return SymbolicTensorArray.over(self.held.handle, flow, self.held._facts)

    def go_on(self, flow):
        """Let a flow be what all that follows in the family comes after."""
        forward = self.forward
        common = _common_order(forward)
        if common is not None:
            note_place(Attribute(common, "flow"))
            common.flow = flow
        note_place(Attribute(forward, "held"))
        forward.held = SymbolicTensorArray.over(forward.held.handle, flow, forward.held._facts)

    def use(self):
        """Note a use; where an array that this one may be was used too, the trace begins again."""
        mine = self.forward
        for other, since in mine.others:
            if other.used > since:
                _ask_shared()
        mine.used = now()

    def is_same(self, other) -> bool:
        """Whether both are proven to be one array."""
        known = self.sources is not None and self.sources == other.sources
        return self is other or (known and self.forward is other.forward)

    def __getattr__(self, name):
        try:
            return getattr(self.array, name)
        except AttributeError as error:
            raise AttributeError(f"{here()}: {error}", name=name) from None

    __setitem__ = NotOfArrays("__setitem__", lambda: f"{here()}: ")
    __delitem__ = NotOfArrays("__delitem__", lambda: f"{here()}: ")

    def __getitem__(self, index):
        return self.array[index]

    def __iter__(self):
        return iter(self.array)

    def __len__(self):
        return len(self.array)

    def __array__(self, dtype=None, copy=None):
        return self.array.__array__(dtype)

    def __repr__(self):
        return repr(self.array)

    def close(self, *, name=None):
        """`TensorArray.close`; what follows comes after it, and fails."""
        self.use()
        array = self.array
        closing = array.close(name=name)
        _order_after(self, closing)


class _Order:
    """One flow for all arrays of a function."""

    def __init__(self, graph):
        with graph.as_default():
            self.flow = special(FLOW)


_ORDER = "the flow of all arrays of a function"
_WRAPPERS = "arrays in wrappers, by handle"


def _common_order(forward):
    """The one order where the trace has one; an array from outside of a function is a value."""
    if not keeps_shared() or explicitly_older(forward):
        return None
    frame = explicit_frame()
    if frame is not None:
        return frame.of_arrays(_Order)
    root = current().root
    if _ORDER not in root.cache:
        root.cache[_ORDER] = _Order(root)
    return root.cache[_ORDER]


def _wrappers():
    return current().root.cache.setdefault(_WRAPPERS, weakref.WeakValueDictionary())


def _ask_shared():
    lengths = current().root.lengths
    if lengths is not None:
        lengths.ask_shared()
    message = (
        f"{here()}: only the run knows whether two TensorArrays in use are the same array; use one "
        f"name for it"
    )
    raise invalid("spoiled_array", message)


def _check_open(wrapper, operation):
    """Refuse what comes after `close` of this very array, even if nobody uses its result."""
    array = wrapper.array
    if any(_closes(op, array.handle) for op in array.flow.op.control_inputs):
        message = f"{operation} on {array._facts.name}: the array is closed; make a new one"
        raise invalid("closed", message)


def _closes(op, handle):
    return op.record is CLOSE and outside(op.inputs[0]) is outside(handle)


def _writing(name):
    def method(self, *args, **options):
        args, options = native.plain(args), native.plain(options)
        self.use()
        _check_open(self, name)
        new = getattr(self.array, name)(*args, **options)
        if explicitly_older(self.forward):  # a value, in the body of nbta.while_loop or its like
            return TensorArrayWrapper(new)
        self.go_on(new.flow)
        return self

    return method


def _reading(name):
    def method(self, *args, **options):
        args, options = native.plain(args), native.plain(options)
        self.use()
        _check_open(self, name)
        found = getattr(self.array, name)(*args, **options)
        if name in _GROWING and self is not self.forward:
            _order_after(self, found.op)  # it may make the array longer
        return wrapped(found)

    return method


def _order_after(wrapper, op):
    """Let what follows in the family of an array come after an operation that gives no flow."""
    if not explicitly_older(wrapper.forward):
        array = wrapper.array
        with current().control_dependencies([op]):
            wrapper.go_on(array.identity().flow)


def _looking_up(name):
    def method(self, source, *args, **options):
        args, options = native.plain(args), native.plain(options)
        self.use()
        _check_open(self, name)
        new = getattr(self.array, name)(source, *args, **options)
        if explicitly_older(self.forward):
            return TensorArrayWrapper(new)
        self.go_on(new.flow)
        sources = None if self.sources is None else (*self.sources, source)
        return TensorArrayWrapper(new, self.forward, sources)

    return method


for _names, _kind in ((_WRITES, _writing), (_READS, _reading), (_LOOKUPS, _looking_up)):
    for _name in _names:
        setattr(TensorArrayWrapper, _name, _kind(_name))


def in_wrapper(found):
    """What a function gives, each tensor array of it in a wrapper of its own."""
    if any(isinstance(leaf, SymbolicTensorArray) for leaf in leaves(found)):
        found = map_leaves(_array_in_wrapper, found)
    return wrapped(found)


def _array_in_wrapper(leaf):
    if not isinstance(leaf, SymbolicTensorArray):
        return leaf
    wrapper = _wrappers().get(leaf.handle)
    if wrapper is None or explicitly_older(wrapper.forward):
        return TensorArrayWrapper(leaf)
    if leaf.flow is not wrapper.array.flow:
        wrapper.go_on(leaf.flow)
    return wrapper


def has_value(wrapper) -> bool:
    """Whether the handle has a value where the trace is: not that of a lookup in a branch."""
    return lies_in(current(), wrapper.held.handle.graph)


def one_of(held, firsts):
    """A wrapper of what a loop or a branch gives, of the family of one of these first arrays."""
    found = {id(first): first for first in firsts}
    if len(found) == 1 and not isinstance(firsts, Unknown):
        return TensorArrayWrapper(held, firsts[0], None)
    new = TensorArrayWrapper(held)
    for first in found.values():
        link(new, first)
    return new


class Unknown(list):
    """The first arrays of families, among which there may be others."""


def relatives(wrapper) -> list:
    """The first array of its family, and those that this may be."""
    return [wrapper.forward, *(other for other, _ in wrapper.forward.others)]


def link(new, old) -> None:
    """Note that an array may be another one, or any that this may be."""
    if keeps_shared():
        return
    since = now()
    for other in {id(wrapper): wrapper for wrapper in relatives(old)}.values():
        if other is not new.forward:
            new.forward.others.append((other, since))
            other.others.append((new.forward, since))


def unwrapped(value):
    """The array in a wrapper; other values as they are."""
    return value.array if isinstance(value, TensorArrayWrapper) else value
