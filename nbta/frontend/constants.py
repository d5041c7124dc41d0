"""Variables that are one of several texts, or members of an enumeration, which only the run knows.

``state = "idle"`` and, in a branch of a loop, ``state = "run"``: in the state of a loop or a branch
such a variable is the code of a constant, an integer, and the constants that it may be are the
class of its state, which a loop traces again to learn. The user's code sees a `Chosen`. What it
asks of that is asked of each constant, and the code chooses among the answers.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import operator
import types
from typing import NamedTuple

import numpy as np

from nbta import classes
from nbta.errors import invalid
from nbta.frontend import native
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import equal, logical_and, logical_or, where
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.indexing.items import getitem
from nbta.ops.indexing.joining import stack

_NONE = type(None)


class Code(NamedTuple):
    """The code of a constant in the state of a loop or a branch; `options` are of its class."""

    number: object


def is_constant(value) -> bool:
    """Whether a value is a text, a member of an enumeration that is no number, or None."""
    if isinstance(value, enum.Enum):
        return not isinstance(value, int | float | complex)
    return type(value) in (str, _NONE)


def _number(constant):
    """The code of a constant, which is the same in all graphs and processes."""
    kind = type(constant)
    name = constant.name if isinstance(constant, enum.Enum) else repr(constant)
    text = f"{kind.__module__}.{kind.__qualname__}:{name}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest())


@functools.cache
def _codes(options):
    """The class of codes of some constants, given as pairs of a code and a constant."""
    return type("Code", (Code,), {"__slots__": (), "options": options})


def _options(value):
    return value.options if isinstance(value, Code) else ((_number(value), value),)


def may_be_chosen(one, other) -> bool:
    """Whether two values of a variable are constants, or codes of some, but None alone."""
    known = all(isinstance(value, Code) or is_constant(value) for value in (one, other))
    return known and any(value is not None for value in (one, other))


def as_code(value, *others) -> Code:
    """A constant or a code as a code that may be that of others, too."""
    pairs = {number: pair for pair in map(_options, (value, *others)) for number, pair in
             ((each[0], each) for each in pair)}  # fmt: skip
    kind = _codes(tuple(pairs[number] for number in sorted(pairs)))
    return kind(value.number if isinstance(value, Code) else np.int64(_number(value)))


def may_be_all(value, other) -> bool:
    """Whether a code may be that of each constant that another value may be."""
    return {number for number, _ in _options(other)} <= {number for number, _ in _options(value)}


class Chosen:
    """One of several constants in the user's code.

    Attributes
    ----------
    code : Code
    """

    holds_array = False  # which says that Python does not know it

    def __init__(self, code):
        self.code = code

    def of_each(self, compute):
        """What a function of a constant gives for the one of this run."""
        found = [(number, compute(value)) for number, value in self.code.options]
        values = [value for _, value in found]
        if all(value is values[0] for value in values):
            return values[0]
        if all(map(_is_truth, values)):
            return self._truth(found)
        if any(value is not None for value in values) and all(map(is_constant, values)):
            found = [(number, np.int64(_number(value))) for number, value in found]
            return Chosen(as_code(values[0], *values)._replace(number=self._one_of(found)))
        if all(isinstance(value, int | float | complex | np.generic) for value in values):
            dtype = np.result_type(*map(np.asarray, values))
            return self._one_of([(number, dtype.type(value)) for number, value in found])
        return self.refuse()

    def _one_of(self, found):
        chosen = as_tensor(found[-1][1])
        for number, value in reversed(found[:-1]):
            chosen = where(self.holds(number), value, chosen)
        return chosen

    def _truth(self, found):
        holds = np.False_
        for number, value in found:
            if isinstance(value, Tensor):
                holds = logical_or(holds, logical_and(self.holds(number), value))
            elif value:
                holds = logical_or(holds, self.holds(number))
        return holds

    def holds(self, number):
        """Whether it is the constant of a code."""
        return equal(as_tensor(self.code.number), np.int64(number))

    def decoded(self, number):
        """The constant of a code that a run gives."""
        return dict(self.code.options)[int(number)]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = [getattr(value, name) for _, value in self.code.options]
        if all(isinstance(each, types.BuiltinMethodType) for each in found):
            return lambda *args: self.of_each(lambda value: getattr(value, name)(*args))
        if name in ("name", "value") or any(map(callable, found)):
            return self.of_each(lambda value: getattr(value, name))
        raise AttributeError(name)

    def refuse(self, *_):
        """Say what cannot be done with what only the run knows."""
        kinds = ", ".join(repr(value) for _, value in self.code.options)
        message = (
            f"{here()}: only the run knows which of {kinds} this is; it can be compared, assigned, "
            f"looked up in a dict and returned; use a number, or an if for each of them"
        )
        raise invalid("identity", message)

    def _of_texts(self, compute, other):
        """What each text gives with a value that Python knows."""
        of_texts = all(type(value) is str for _, value in self.code.options)
        if not of_texts or not native.is_known(other):
            return self.refuse()
        try:
            return self.of_each(lambda value: compute(value, other))
        except IndexError:  # of texts that this may not be
            return self.refuse()

    def __getitem__(self, key):
        return self._of_texts(operator.getitem, key)

    def __add__(self, other):
        return self._of_texts(operator.add, other)

    def __radd__(self, other):
        return self._of_texts(lambda value, other: other + value, other)

    __hash__ = __bool__ = __len__ = __iter__ = __contains__ = __index__ = refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __float__ = __int__ = refuse
    __mul__ = __rmul__ = __mod__ = __rmod__ = refuse
    __str__ = __repr__ = __format__ = __array__ = refuse


def _is_truth(value):
    return isinstance(value, bool | np.bool_) or (
        isinstance(value, Tensor) and value.dtype.kind == "b" and value.spec.rank == 0
    )


def chosen(code):
    """A code for the user's code: the constant itself where Python knows it."""
    if isinstance(code.number, Tensor):
        return Chosen(code)
    return dict(code.options)[int(code.number)]


def are_constants(values) -> bool:
    """Whether values are constants, or some of several, and not None alone."""
    codes = [value.code if isinstance(value, Chosen) else value for value in values]
    return any(value is not None for value in codes) and all(
        isinstance(value, Code) or is_constant(value) for value in codes
    )


def one_of_constants(values, place):
    """The constant at a place that only the run knows."""
    codes = [value.code if isinstance(value, Chosen) else value for value in values]
    codes = [as_code(value, *codes) for value in codes]
    numbers = stack([as_tensor(code.number) for code in codes])
    return chosen(codes[0]._replace(number=getitem(numbers, place)))


class ChosenResult:
    """One of several constants as a function gives it: a run puts the constant in its place."""

    def __init__(self, number, options):
        self.number, self.options = number, options


def _of_run(options, parts):
    (number,) = parts
    if isinstance(number, Tensor):
        return ChosenResult(number, options)
    names = dict(options)
    if np.ndim(number) == 0:
        return names[int(number)]
    found = [names[int(each)] for each in np.ravel(number)]
    return np.array(found, object).reshape(np.shape(number)).tolist()


classes.add(ChosenResult, (lambda result: ((result.number,), result.options), _of_run))
