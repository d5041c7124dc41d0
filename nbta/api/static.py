"""Arguments that are no inputs of a graph, but part of what it is for."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from nbta.bitwise import key_of
from nbta.errors import invalid
from nbta.graph.operation import Tensor


class Fixed:
    """A static argument, as a leaf of a structure; a graph is for one, by type and bits."""

    __slots__ = ("_key", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.value = value
        try:
            if isinstance(value, Tensor):
                raise TypeError
            hash(value)
            self._key = key_of(value)
        except TypeError:
            message = (
                f"{name} is static and is {_kind(value)}, which has no hash; give what cannot "
                f"change, such as a tuple, or let it be no static argument"
            )
            raise invalid("static", message) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fixed) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)


def _kind(value: Any) -> str:
    return "a tensor" if isinstance(value, Tensor) else f"of type {type(value).__name__}"


def unfixed(leaf: Any) -> Any:
    """A static argument's value; other leaves as they are."""
    return leaf.value if isinstance(leaf, Fixed) else leaf


def is_constant(leaf: Any) -> bool:
    """Whether a leaf of arguments is part of a graph as it is, and does not become an array.

    These are truth values, texts, functions and static arguments.
    """
    return isinstance(leaf, bool | str | bytes | Fixed) or callable(leaf) or leaf is Ellipsis


class Static:
    """Which arguments of a function are static.

    Parameters
    ----------
    f : callable
    argnums : int or sequence of int
        By position; also where they are given by name.
    argnames : str or sequence of str
        By name; also where they are given by position.
    differentiated : Differentiated, optional
        Those that are not to be among them.

    Raises
    ------
    InvalidArgumentError
        For numbers and names that there are not.
    """

    def __init__(self, f: Any, argnums: Any, argnames: Any, differentiated: Any = None) -> None:
        numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        names = (argnames,) if isinstance(argnames, str) else tuple(argnames)
        parameters = parameters_of(f, "static_argnums") if numbers or names else {}
        order = positional(parameters)
        rest = any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
        taken = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        numbers = tuple(_number(n, order, rest) for n in numbers)
        for name in names:
            if name not in parameters and not taken:
                message = (
                    f"static_argnames: there is no argument {name!r}; {listed_names(parameters)}"
                )
                raise invalid("static", message)
        self.names = {*names, *(order[n] for n in numbers if n < len(order))}
        self.numbers = {*numbers, *(k for k, name in enumerate(order) if name in names)}
        self._order = order
        if differentiated is not None:
            self._keep_apart(differentiated)

    def _keep_apart(self, differentiated: Any) -> None:
        numbers = self.numbers & set(differentiated.numbers)
        names = self.names & set(differentiated.names)
        for which in [*sorted(numbers), *sorted(names)]:
            message = f"static_argnums: argument {which!r} is in argnums too; give it in one"
            raise invalid("static", message)

    def __bool__(self) -> bool:
        return bool(self.names or self.numbers)

    def of_method(self) -> Static:
        """The same for a function that has got its first argument."""
        made = copy.copy(self)
        made.numbers, made._order = {n - 1 for n in self.numbers if n}, self._order[1:]
        return made

    def wrapped(self, structure: Any) -> Any:
        """A pair of arguments and keyword arguments, with static ones as leaves."""
        args, kwargs = structure
        args = tuple(
            self._fixed(self._name(k), value) if k in self.numbers else value
            for k, value in enumerate(args)
        )
        return args, {k: self._fixed(k, v) if k in self.names else v for k, v in kwargs.items()}

    def _name(self, number: int) -> str:
        return self._order[number] if number < len(self._order) else f"args[{number}]"

    def _fixed(self, name: str, value: Any) -> Fixed:
        return value if isinstance(value, Fixed) else Fixed(name, value)


_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


def positional(parameters: Any) -> list[str]:
    """Names of the parameters that may be given by position, in order."""
    return [name for name, p in parameters.items() if p.kind in _POSITIONAL]


def parameters_of(f: Any, what: str) -> Any:
    """The parameters of a function, by name; ``what`` needs them, as the message says."""
    try:
        return inspect.signature(getattr(f, "py_func", f)).parameters
    except (TypeError, ValueError):
        message = f"{what}: nothing tells which arguments {f!r} has; wrap it in a function"
        raise invalid("static", message) from None


def _number(number: Any, order: list[str], rest: bool) -> int:
    """A number of an argument, counted from the first."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise invalid(
            "static", f"static_argnums must be an int or a sequence of ints, not {number!r}"
        )
    if number >= 0 and (rest or number < len(order)):
        return number
    if -len(order) <= number < 0 and not rest:
        return number + len(order)
    message = f"static_argnums: there is no argument {number}; {listed_names(order)}"
    raise invalid("static", message)


def listed_names(names: Any) -> str:
    """The arguments that a function has, as a message ends."""
    return f"there are {', '.join(names)}" if names else "there are none"
