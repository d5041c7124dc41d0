"""Texts of errors that the run decides to raise, which are put together while a function is traced.

A value that only the run knows has no text then: its source stands for it, in braces.
"""

import re

from nbta.frontend import native
from nbta.frontend.tries import in_a_try
from nbta.ops.numbers import Number

#: Of a text after ``%``: name, flags and width, precision, conversion.
PLACES = re.compile(r"%%|%(?:\((.*?)\))?([-+ #0]*(?:\*|\d*))(\.(?:\*|\d*))?[a-zA-Z]")


class Unknown:
    """Stands for a value in a text.

    Parameters
    ----------
    source : str
        How the user computes it.
    """

    def __init__(self, source):
        self._source = source

    def __str__(self):
        return f"{{{self._source}}}"

    __repr__ = __str__

    def __format__(self, spec):
        return str(self)

    def __getitem__(self, key):
        return self

    get = __getitem__

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def shown(value, source):
    """A value for a text: itself where it is known, can be asked for, or may be taken up again."""
    is_unknown = not isinstance(value, Number) and not native.is_known(value)
    return Unknown(source) if is_unknown and not in_a_try() else value


def filled(text, values):
    """``text % values``."""
    parts = iter(values if isinstance(values, tuple) else (values,))
    named = values if isinstance(values, dict | Unknown) else {}

    def place(found):
        if found[0] == "%%":
            return found[0]
        name = "" if found[1] is None else f"({found[1]})"
        for _ in range(found[0].count("*")):
            next(parts, None)
        value = named.get(found[1]) if name else next(parts, None)
        precision = found[3] if found[3] == ".*" else ""  # or a number would be left over
        return f"%{name}{found[2]}{precision}s" if isinstance(value, Unknown) else found[0]

    return PLACES.sub(place, text) % values
