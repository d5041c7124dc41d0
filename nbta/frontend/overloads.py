"""Functions that compiled code calls by another implementation, by `numba.extending.overload`.

Where a function that Numba compiles calls such a function, Numba does not look at its Python code,
which is often a stub: it asks the overload for an implementation for the types of the arguments.
"""

import numba

from nbta.errors import UnimplementedError
from nbta.frontend import native
from nbta.frontend.declared_types import type_of
from nbta.frontend.problems import here
from nbta.frontend.source import described


def implementation(function, makers, args, kwargs):
    """The Python function that Numba compiles for a call of an overloaded function.

    Parameters
    ----------
    function : callable
    makers : list of callables
        What the overloads are: each gives an implementation for some types, or None.
    args, kwargs : tuple, dict
    """
    for typed in (type_of, _literal_of):  # Numba's order
        try:
            kinds, named = [*map(typed, args)], {k: typed(v) for k, v in kwargs.items()}
        except (ValueError, TypeError, NotImplementedError) as error:
            message = (
                f"{here()}: {described(function)} has an overload for compiled code, and is given "
                f"what nbta has no type of Numba's for; call the implementation itself"
            )
            raise UnimplementedError(message) from error
        for maker in makers:
            try:
                found = maker(*kinds, **named)
            except numba.TypingError:  # it may want literal types
                continue
            if found is not None:
                return found
    message = f"{here()}: {described(function)} has no overload for {', '.join(map(str, kinds))}"
    raise TypeError(message)


def _literal_of(value):
    value = native.plain(value)
    if isinstance(value, bool | int | str):
        return numba.types.literal(value)
    return type_of(value)
