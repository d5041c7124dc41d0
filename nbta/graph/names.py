"""Unique names within scopes, by TensorFlow's rules."""

import re

from nbta.errors import invalid

_VALID = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*")


def check(name: str) -> None:
    """Refuse what is no name of an operation or a scope."""
    if not isinstance(name, str) or not _VALID.fullmatch(name):
        message = (
            f"name: {name!r} is no name; use letters, digits and any of '_.-/', beginning with a "
            f"letter, a digit or '.'"
        )
        raise invalid("name", message)


class Names:
    """The names that a graph has given away, in any mixture of upper and lower case."""

    def __init__(self):
        self._used: dict[str, int] = {}

    def unique(self, name: str) -> str:
        """The name, or the first of ``name_1``, ``name_2``, ... that is free."""
        key = name.lower()
        count = self._used.get(key, 0)
        self._used[key] = count + 1
        if not count:
            return name
        while f"{key}_{count}" in self._used:
            count += 1
        self._used[f"{key}_{count}"] = 1
        return f"{name}_{count}"

    def copy(self) -> "Names":
        """These names, for going back to them."""
        names = Names()
        names._used = dict(self._used)
        return names
