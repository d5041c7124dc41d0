"""Texts with values that only the run knows, which a run puts together where it tells them.

`print`, logging, warnings and messages of errors can take such a text, and texts can be joined to
longer ones. All else that Python does with a text would have to know it while it traces.
"""

from __future__ import annotations

import builtins
import itertools
import string

import numpy as np

from nbta.errors import invalid
from nbta.frontend import native
from nbta.frontend.constants import Chosen
from nbta.frontend.messages import PLACES
from nbta.frontend.outside import seen_by
from nbta.frontend.problems import here
from nbta.graph.operation import Tensor
from nbta.ops.numbers import Number

#: In place of a conversion: the format is one for the operator ``%``.
_PERCENT = "%"


class Text:
    """A text with values that only the run knows.

    Attributes
    ----------
    parts : list
        Texts, and triples of a value, a conversion such as ``r`` and a format.
    """

    def __init__(self, parts):
        self.parts = [part if isinstance(part, str) else _as_it_is(*part) for part in parts]

    def values(self):
        """The values that the run brings."""
        return [
            part[0].code.number if isinstance(part[0], Chosen) else part[0]
            for part in self.parts
            if not isinstance(part, str)
        ]

    def __call__(self, values):
        """The text, with values of a run."""
        return "".join(
            part if isinstance(part, str) else _formatted(_of_run(part[0], next(values)), *part[1:])
            for part in self.parts
        )

    @property
    def text(self):
        """The text for an error that a trace makes, with the places of its values."""
        return "".join(part if isinstance(part, str) else "{...}" for part in self.parts)

    def _refuse(self, *_):
        _refuse_text()

    __eq__ = __ne__ = __hash__ = __bool__ = __len__ = __iter__ = __getitem__ = _refuse
    __contains__ = __str__ = __repr__ = __format__ = __add__ = __radd__ = __mul__ = _refuse
    __mod__ = __lt__ = __gt__ = __le__ = __ge__ = __getattr__ = _refuse


def _as_it_is(value, *format_):
    """A field of a text, of what an array holds now."""
    return (value if isinstance(value, Chosen) else native.plain(value), *format_)


def _refuse_text():
    message = f"{here()}: the text of a value that only the run knows; print it to see it in a run"
    raise invalid("symbolic", message)


def check_no_text(*values) -> None:
    """Refuse a text that only the run knows as a variable of a loop or a branch."""
    if any(isinstance(value, Text) for value in values):
        _refuse_text()


def _of_run(value, found):
    """A field of a text, of what a run has found: a number as Python's, with its digits alone."""
    if isinstance(value, Chosen):
        return value.decoded(found)
    return found.item() if isinstance(found, np.generic) else found


def _formatted(value, conversion, spec):
    """A field of a text as Python makes it."""
    if conversion == _PERCENT:
        return spec % (value,)
    if conversion != -1:
        value = {"r": repr, "s": str, "a": ascii}[chr(conversion)](value)
    return format(value, spec)


def _is_open(value):
    """Whether a value has a text that only the run knows."""
    if isinstance(value, Tensor):
        return not (isinstance(value, Number) or getattr(value, "is_known", False))
    return isinstance(value, Text | Chosen)


def joined_text(*parts):
    """A text of texts, and of triples of a value, a conversion and a format, as f-strings are."""
    found = []
    for part in parts:
        if isinstance(part, Text):
            found += part.parts
        elif isinstance(part, str) or (_is_open(part[0]) and not isinstance(part[0], Text)):
            found.append(part)
        elif isinstance(part[0], Text) and part[1] in (-1, ord("s")) and not part[2]:
            found += part[0].parts
        else:
            found.append(_formatted(text_of(part[0]), *part[1:]))
    return "".join(found) if all(isinstance(part, str) for part in found) else Text(found)


def text_of(value):
    """A value for a text, which Python must know; lengths are asked for."""
    if not _has_text(value):
        _refuse_text()
    seen_by(value, "__str__", "__repr__", "__format__", followed=False)
    return value


def _has_text(value):
    if isinstance(value, list | tuple):
        return native.is_python(value) and all(map(_has_text, value))
    return not isinstance(value, Text) and (isinstance(value, Number) or native.is_known(value))


def text_of_error(value):
    """A part of an error, which a trace makes."""
    return value.text if isinstance(value, Text) else value


# What Python makes texts with.


def of_operator(name, left, right):
    """What ``+`` and ``%`` give where a text is one that only the run knows; None for others."""
    if name == "Add" and isinstance(left, str | Text) and isinstance(right, str | Text):
        return joined_text(left, right)
    if name == "Mod" and isinstance(left, str | bytes):
        given = right if isinstance(right, tuple) else (right,)
        if isinstance(left, str) and any(map(_is_open, given)):
            return _filled(left, given)
        text_of(right)
    return None


def _filled(text, values):
    """``text % values``."""
    found, end, given = [], 0, iter(values)
    for place in PLACES.finditer(text):
        found.append(text[end : place.start()])
        end, spec = place.end(), place[0]
        if spec == "%%":
            found.append("%")
            continue
        try:
            for _ in range(spec.count("*")):
                spec = spec.replace("*", str(text_of(next(given))), 1)
            found.append((next(given), _PERCENT, spec))
        except StopIteration:
            raise TypeError(f"{here()}: not enough arguments for format string") from None
    if next(given, given) is not given:
        raise TypeError(f"{here()}: not all arguments converted during string formatting")
    return joined_text(*found, text[end:])


def of_method(text, name, args, kwargs):
    """What a method of a text gives of values that only the run knows; None for known ones."""
    if name == "format" and any(map(_is_open, (*args, *kwargs.values()))):
        return joined_text(*_fields(text, args, kwargs, itertools.count()))
    if name == "join" and isinstance(args[0], list | tuple) and any(map(_is_open, args[0])):
        if not all(isinstance(part, str | Text) for part in args[0]):
            raise TypeError(f"{here()}: join() of an item that is no text")
        between = itertools.repeat(text)
        return joined_text(*list(itertools.chain(*zip(between, args[0], strict=False)))[1:])
    text_of((args, kwargs))
    return None


def _fields(text, args, kwargs, counter):
    """The parts of a text that `str.format` fills; ``counter`` counts fields without a name."""
    for literal, name, spec, conversion in string.Formatter().parse(text):
        yield literal
        if name is None:
            continue
        if not name or name[0] in ".[":
            name = f"{next(counter)}{name}"
        if not name.isidentifier() and not name.isdigit():
            text_of((args, kwargs))  # of which it takes an item or an attribute
        value, _ = string.Formatter().get_field(name, args, kwargs)
        spec = joined_text(*_fields(spec, args, kwargs, counter))
        yield value, ord(conversion) if conversion else -1, text_of(spec)


def _by(function, conversion):
    """A function of Python's that gives the text of a value."""

    def shown(*value, **options):
        if len(value) == 1 and not options and _is_open(value[0]):
            return joined_text((value[0], conversion, ""))
        return function(*map(text_of, value), **options)

    return shown


def _format(value, spec=""):
    """``format``."""
    return joined_text((value, -1, text_of(spec)))


FUNCTIONS = {
    builtins.repr: _by(repr, ord("r")),
    builtins.ascii: _by(ascii, ord("a")),
    builtins.format: _format,
    builtins.str: _by(str, ord("s")),
}
