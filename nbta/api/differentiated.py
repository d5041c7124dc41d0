"""Which arguments of a function are differentiated: argnums and argnames."""

from __future__ import annotations

from typing import Any

from nbta.api.static import listed_names, parameters_of, positional
from nbta.errors import invalid


class Differentiated:
    """Which arguments of a function are differentiated.

    Parameters
    ----------
    f : callable
    argnums : int or tuple of int, optional
        By position; also where they are given by name. The first argument by default.
    argnames : str or sequence of str, optional
        By name; also where they are given by position.

    Attributes
    ----------
    numbers : tuple of int
        Their positions, as far as these are known before a call.
    names : tuple of str
        The names that were asked for.
    alone : bool
        Whether it is one argument, whose gradient is no tuple.

    Raises
    ------
    InvalidArgumentError
        For both, and for names that there are not.
    """

    def __init__(self, f: Any, argnums: Any = None, argnames: Any = ()) -> None:
        self._argnums = 0 if argnums is None and not argnames else argnums
        self.names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        self.alone = isinstance(argnames, str) if argnames else not isinstance(argnums, tuple)
        if self.names and argnums is not None:
            message = "argnames: argnums is given, too; choose arguments with one of the two"
            raise invalid("argnums", message)
        parameters = parameters_of(f, "argnames") if self.names else None
        self._order = positional(parameters) if parameters else _order_of(f)
        if parameters is not None:
            taken = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
            for name in self.names:
                if not isinstance(name, str) or (name not in parameters and not taken):
                    message = f"argnames: there is no argument {name!r}; {listed_names(parameters)}"
                    raise invalid("argnums", message)
        chosen = self._argnums if isinstance(self._argnums, tuple) else (self._argnums,)
        self.numbers = tuple(n for n in chosen if isinstance(n, int))
        self.numbers += tuple(k for k, name in enumerate(self._order) if name in self.names)

    def places(self, args: Any, kwargs: Any) -> list[int | str]:
        """Where the chosen arguments of a call are.

        Parameters
        ----------
        args : sequence
            Those given by position.
        kwargs : dict
            Those given by name.

        Returns
        -------
        list of (int or str)
            For each its position, or its name where it is given by that.

        Raises
        ------
        InvalidArgumentError
            For what is not given.
        """
        if self.names:
            return [self._named(name, len(args), kwargs) for name in self.names]
        chosen = self._argnums if isinstance(self._argnums, tuple) else (self._argnums,)
        by_name = {k: n for k, n in enumerate(self._order) if k >= len(args) and n in kwargs}
        return [
            by_name[n] if isinstance(n, int) and n in by_name else places_of(n, len(args))[0]
            for n in chosen
        ]

    def _named(self, name: str, count: int, kwargs: Any) -> int | str:
        if name in kwargs:
            return name
        if name in self._order[:count]:
            return self._order.index(name)
        message = f"argnames: {name!r} is not given; give it, as its default is a constant"
        raise invalid("argnums", message)


def _order_of(f: Any) -> list[str]:
    """The names of arguments by position, as far as anything tells them."""
    try:
        return positional(parameters_of(f, "argnums"))
    except ValueError:
        return []


def places_of(argnums: Any, count: Any) -> list:
    """The arguments that are differentiated, of so many."""
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(place, int) for place in chosen):
        raise invalid("argnums", f"argnums: {argnums!r} is not an int or a tuple of ints")
    for place in chosen:
        if not -count <= place < count:
            message = f"argnums: there is no argument {place}; given by position: {count}"
            raise invalid("argnums", message)
    return [place % count for place in chosen]
