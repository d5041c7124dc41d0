"""Variables that are a number or None, or an array or None, which only the run knows.

In the state of a loop or a branch such a variable is two values: the number or array, or a
placeholder for it, and whether it is there. The user's code sees a tensor, or a view of all of the
array, and to use that checks that it is there.
"""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np

from nbta import classes
from nbta.errors import InvalidArgumentError, invalid
from nbta.frontend import effects
from nbta.frontend.array_wrappers import ArrayWrapper, Step, View
from nbta.frontend.constants import Chosen, ChosenResult, Code, chosen
from nbta.frontend.lists import Listing, list_result
from nbta.frontend.native import is_python
from nbta.frontend.problems import here
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.core import filling
from nbta.ops.core.arithmetic import logical_and
from nbta.ops.core.dispatch import as_tensor
from nbta.structure import leaves


class Parts(NamedTuple):
    """A number, an array or None in the state of a loop or a branch."""

    value: object
    present: object


class Gone(Parts):
    """A number or an array of an attribute, or of a key of a dict, that may not be there."""

    __slots__ = ()


class Maybe(Tensor):
    """A number or None in the user's code.

    Attributes
    ----------
    parts : Parts
    """

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = parts

    @property
    def itself(self):
        """The number, which a run fails for where there is none."""
        _check(self.parts, "a number")
        return as_tensor(self.parts.value)

    content = property(lambda self: self.itself)
    is_known = False
    graph = property(lambda self: self.parts.value.graph)
    op = property(lambda self: self.parts.value.op)
    index = property(lambda self: self.parts.value.index)
    spec = property(lambda self: self.parts.value.spec)


def _check(parts, what):
    """Fail in a run for what is not there."""
    message = f"{here()}: None, or a variable without a value, is used as {what} in this run"
    effects.check(parts.present, NoneError(message))


def used(value):
    """A value that is used otherwise than as a number or an array: a run fails where it is None."""
    if is_maybe(value):
        _check(value.parts, "an array" if isinstance(value, MaybeArray) else "a number")
    return value


class NoneError(InvalidArgumentError, TypeError):
    """What is None in a run is used as something else."""


class OrNone:
    """A number, an array or None as a function gives it: a run puts one of these in its place."""

    def __init__(self, value, present):
        self.value, self.present = value, present


def _of_run(_, parts):
    value, present = parts
    if isinstance(present, Tensor):
        return OrNone(value, present)
    return value if present else None


classes.add(OrNone, (lambda result: ((result.value, result.present), None), _of_run))


def as_result(value):
    """What a function gives, with objects that a run replaces by what only it knows."""
    if is_maybe(value):
        return OrNone(*value.parts)
    if isinstance(value, Chosen):
        return ChosenResult(value.code.number, value.code.options)
    if type(value) is Listing:
        if not is_python(value):
            return list_result(value)
        return list(map(as_result, list.__iter__(value)))
    if type(value) in (list, tuple):
        return type(value)(map(as_result, value))
    if type(value) is dict:
        check_keys(value, "the result")
        return {key: as_result(part) for key, part in value.items()}
    return value


def result_of(value, code, for_run):
    """What a function gives: a run may give None, of which derivatives can make nothing."""
    if for_run:
        return as_result(value)
    if isinstance(value, tuple | list | dict):
        return _with_constants(value)
    if is_maybe(value):
        message = (
            f"{code.co_filename}:{code.co_firstlineno}: the function returns None in this run, "
            f"since it reaches no return statement with a value; end each branch with one"
        )
        effects.check(value.parts.present, NoneError(message))
    return value


def _with_constants(value):
    """What a function gives beside a number, with constants that a run chooses."""
    if isinstance(value, Chosen):
        return as_result(value)
    if type(value) in (list, tuple):
        return type(value)(map(_with_constants, value))
    if type(value) is dict:
        return {key: _with_constants(part) for key, part in value.items()}
    return value


class _All(Step):
    """The step from an array to itself."""

    together, is_all, values = True, True, ()

    def get(self, array):
        """The array."""
        return array

    def put(self, array, value):
        """Another one."""
        return value

    def composed(self, key):
        """The same place."""
        return key


class MaybeArray(View):
    """An array or None in the user's code.

    Attributes
    ----------
    parts : Parts
        Of the array's own wrapper.
    """

    __slots__ = ("parts",)

    def __init__(self, parts):
        super().__init__(parts.value, _All())
        self.parts = parts

    @property
    def content(self):
        """What the array holds, which a run fails for where there is none."""
        _check(self.parts, "an array")
        return self.base.content

    def check_writable(self) -> None:
        """Refuse to change what is not the function's own; a run fails where there is no array."""
        _check(self.parts, "an array")
        super().check_writable()

    is_known = False
    spec = property(lambda self: self.base.spec)
    shape = property(lambda self: self.base.shape)
    size = property(lambda self: self.base.size)


def is_maybe(value) -> bool:
    """Whether the user's code has what may be None."""
    return isinstance(value, Maybe | MaybeArray)


def as_state(values) -> tuple:
    """The values of variables, of which two stand for one that may be None."""
    return tuple(map(_hidden, values))


def _hidden(value):
    if type(value) is tuple:
        return _with_parts(_hidden, value)
    return value.parts if is_maybe(value) else value.code if isinstance(value, Chosen) else value


def _with_parts(change, value):
    """A tuple of other parts; the same one where they are all what they were."""
    found = tuple(map(change, value))
    return value if all(map(operator.is_, found, value)) else found


def as_user(values) -> tuple:
    """The values of variables for the user's code."""
    return tuple(map(_seen, values))


def _seen(value):
    if type(value) is tuple:
        return _with_parts(_seen, value)
    if isinstance(value, Code):
        return chosen(value)
    if not isinstance(value, Parts):
        return value
    if not isinstance(value.present, Tensor):
        return value.value if value.present else None
    if not isinstance(value.value, Tensor):
        value = value._replace(value=as_tensor(value.value))
    return MaybeArray(value) if isinstance(value.value, ArrayWrapper) else Maybe(value)


def or_none(value, present):
    """A value where a truth value of the run holds, and None elsewhere.

    None or a structure is nothing that a graph could go on with: a run fails where it is None.
    """
    if value is None:
        return None
    if is_maybe(value):
        return _seen(Parts(value.parts.value, logical_and(value.parts.present, present)))
    if is_number(value) or isinstance(value, ArrayWrapper):
        return _seen(Parts(value, present))
    rule = (
        f"return {', '.join(['None'] * len(value))}" if type(value) is tuple else "raise an error"
    )
    kind = "list" if isinstance(value, list) else type(value).__name__
    message = (
        f"{here()}: the function gives None in this run and a {kind} in others, "
        f"which one variable cannot hold; {rule} in place of None"
    )
    effects.check(present, NoneError(message))
    return value


def in_state(get, set_):
    """Functions that get and set variables, for the state of a loop or a branch."""
    setter = set_ and (lambda values: set_(as_user(values)))
    return lambda: as_state(get()), setter


def may_be_none(one, other) -> bool:
    """Whether one of two values of a variable may be None, and they go together else."""
    kinds = [_is_empty(value) or isinstance(value, Parts) for value in (one, other)]
    return (
        any(kinds)
        and not (_is_empty(one) and _is_empty(other))
        and all(
            empty or is_number(value) or isinstance(value, ArrayWrapper)
            for empty, value in zip(kinds, (one, other), strict=True)
        )
    )


def _is_empty(value) -> bool:
    """Whether a value is None, or that of an attribute or a key that is not there."""
    return value is None or _is_absent(value)


def _is_absent(value):
    return getattr(type(value), "is_absent", False)


def is_number(value) -> bool:
    """Whether a value is a scalar of the graph's or Python's."""
    if isinstance(value, Tensor):
        return value.kind == "data" and value.spec.rank == 0
    return isinstance(value, bool | int | float | complex | np.generic)


def as_parts(value, like) -> Parts:
    """A value that may be None; ``like`` is what it is in other cases, or parts."""
    if isinstance(value, Parts):
        return value
    gone = _is_absent(value) or _is_absent(like) or (isinstance(like, Gone) and value is not None)
    parts = Gone if gone else Parts
    if _is_empty(value):
        like = leaves(like)[0]
        dtype = like.dtype if hasattr(like, "dtype") else np.asarray(like).dtype
        if isinstance(like, ArrayWrapper):
            return parts(array_like(like), np.False_)
        return parts(np.zeros((), dtype)[()], np.False_)
    return parts(value, np.True_)


def may_be_gone(value) -> bool:
    """Whether a value is of an attribute or a key that may not be there."""
    return is_maybe(value) and isinstance(value.parts, Gone)


_OPEN = "whether there are dicts of which the run decides what keys they have"


def note_open_key(owner) -> None:
    """Note that the run decides whether a dict has a key."""
    if isinstance(owner, dict):
        current().root.cache[_OPEN] = True


def open_keys(value) -> list:
    """The keys of a dict of which the run decides whether it has them."""
    graph = current()
    if type(value) is not dict or graph is None or _OPEN not in graph.root.cache:
        return []
    return [key for key, part in value.items() if may_be_gone(part)]


def check_keys(value, what) -> None:
    """Refuse to go by all keys of a dict where the run decides what these are."""
    for key in open_keys(value):
        message = (
            f"{here()}: {what} of a dict that has the key {key!r} only in some runs; look up its "
            "items by key, with get() or in, or add all keys before"
        )
        raise invalid("undefined", message)


def there(value, name):
    """The value of an attribute that may not be there, which a run fails for then."""
    message = f"{here()}: the attribute {name!r} has no value, or was deleted, in this run"
    effects.check(value.parts.present, GoneError(message))
    return value.parts.value


class GoneError(InvalidArgumentError, AttributeError):
    """An attribute is asked for that an object does not have in a run."""


def array_like(wrapper) -> ArrayWrapper:
    """An array that nobody reads, of another one's dtype, and of its shape as far as that is told.

    Lengths that are not those of arguments are 0 in a run, and open in the graph, as code that the
    run never comes to is traced with them.
    """
    pattern, dtype = wrapper.spec.shape, wrapper.dtype
    if pattern is None:
        raise invalid("undefined", f"{here()}: an array of unknown rank may have no value here")

    def made():
        return filling.zeros([_dimension(n) for n in pattern], dtype)

    known = [n if type(n) is int else 0 for n in pattern]
    found = ArrayWrapper(np.zeros(known, dtype), maker=made)
    found.read_only = wrapper.read_only
    return found


def _dimension(length):
    """A length as a number of the graph that is being built."""
    if type(length) is int:
        return length
    given = current().root.operations if length is not None else ()
    for tensor in (op.outputs[0] for op in given if op.type == "Placeholder"):
        for axis, dimension in enumerate(tensor.spec.shape or ()):
            if dimension is length:
                return tensor.shape[axis]
    zero = as_tensor(np.int64(0))
    return zero + zero
