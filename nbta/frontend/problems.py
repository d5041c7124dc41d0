"""The user's line, for messages, and refusals of what several places meet."""

import enum
import os
import re

import numpy as np

from nbta.errors import NbtaError, UnimplementedError
from nbta.locations import OWN, after_users, is_raised_here, of_caller


def here() -> str:
    """File and line of the user's code that is traced."""
    place = of_caller()
    return str(place) if place is not None else "?"


def refuse_numbas(value) -> None:
    """Refuse to give values of a trace to a typed list or dict of Numba's."""
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__.startswith("numba.typed"):
        raise UnimplementedError(
            f"{here()}: {kind.__name__} is compiled by Numba and takes values of a run only; use "
            f"a {kind.__name__.lower()} of Python's, or an array"
        )


def refuse_class(kind) -> None:
    """Refuse to make an object of a class from what only the run knows, where that cannot be."""
    if issubclass(kind, enum.Enum):
        first = next(iter(kind.__members__), "MEMBER")
        raise UnimplementedError(
            f"{here()}: only the run knows which member of {kind.__name__} has this value; compare "
            f"the value with {kind.__name__}.{first}.value, or let the argument be static"
        )
    if kind is np.nditer:
        raise UnimplementedError(
            f"{here()}: np.nditer goes along items as they lie in memory, which is not known; loop "
            f"over array.flat, zip(a.flat, b.flat) or np.ndenumerate(array)"
        )
    if kind is np.poly1d:
        raise UnimplementedError(
            f"{here()}: np.poly1d takes coefficients that Python knows, as it leaves out leading "
            f"zeros; use np.polyval(coefficients, x)"
        )
    if issubclass(kind, np.ndarray) and kind is not np.ndarray:
        raise UnimplementedError(
            f"{here()}: {kind.__name__} is a subclass of np.ndarray, of which nbta makes no "
            f"objects from values that only the run knows; write a class that has an array as an "
            f"attribute"
        )


def at_line(error):
    """An error as Python or NumPy raises it, that says where the user's code is."""
    return type(error)(f"{here()}: {error}")


_SAYS_WHERE = re.compile(r"\S.*\.\w+:\d+: ")


def lead(error, sentence) -> None:
    """Put a sentence before an error's message, which says what came of it further inside."""
    error.args = (f"{sentence} ({error})",)


#: Where an error of what the user wrote is raised when this package does it in the user's place.
_DOING = tuple(
    os.path.join(OWN, "frontend", f"{name}.py")
    for name in (
        "calls", "containers", "extremes", "identity", "iteration", "lists", "list_items",
        "math_functions", "ordering", "outside", "ranges", "read_views", "runtime",
    )
)  # fmt: skip
#: Where NumPy computes with arrays that Python knows, and the errors that it raises there.
_NUMPYS = tuple(
    os.path.join(OWN, "frontend", f"{name}.py") for name in ("array_wrappers", "native", "picking")
)
_RAISED_BY_NUMPY = (ArithmeticError, IndexError, TypeError, ValueError)
_FRONTEND = os.path.join(OWN, "frontend", "")
#: Classes of this package that stand for values of the user's, in a message of Python's.
_STANDS_FOR = re.compile(
    r"'(?:nbta\.[\w.]+|TensorArrayWrapper|ArrayWrapper|Class|Flat|Number|Records?|Tensor|Text|Undefined|Unknown|"
    r"View)'|must be \w+, not (?:ArrayWrapper|Listing|Number|Picked|Tensor|View)\b"
)


#: What Python says of any number: tensors that converted code sees are numbers.
_OF_A_NUMBER = re.compile(r"'Tensor' object is not (?:a mapping|callable|iterable|subscriptable)")


def is_of_placeholder(error) -> bool:
    """Whether Python says something of an object that stands for a value in a trace."""
    said = _OF_A_NUMBER.sub("", str(error))
    return _STANDS_FOR.search(said) is not None


def in_pythons_words(error) -> None:
    """Let an error of Python's name the class that what stands for a value is of."""
    if len(error.args) == 1 and isinstance(error.args[0], str):
        said = error.args[0].replace("'Listing'", "'list'").replace("'Tensor'", "'float'")
        error.args = (said,)


def is_pythons(error) -> bool:
    """Whether an error is one that Python, or a library, raises for what the user wrote.

    So it is where this package raises it in their place. Others came up in this package, which
    could not follow the user.
    """
    if is_raised_here(error):
        return not isinstance(error, NbtaError)
    if isinstance(error, NbtaError | RecursionError) or is_of_placeholder(error):
        return False
    if _SAYS_WHERE.match(str(error)):
        return True  # raised in Python's place, with the user's line
    files = after_users(error)[1]
    ours = [name for name in files if name.startswith(OWN)]
    if not ours:
        return True
    of_numpy = ours[-1] in _NUMPYS and isinstance(error, _RAISED_BY_NUMPY)
    return (of_numpy or ours[-1] in _DOING) and all(name.startswith(_FRONTEND) for name in ours)


def unfollowed(error) -> NbtaError:
    """What to raise in place of an error that came up in this package."""
    place = after_users(error)[0]
    where = "" if place is None else f"{place}: {place.expression!r}: "
    said = str(error).partition("\n")[0]
    return UnimplementedError(
        f"{where}nbta cannot follow this ({type(error).__name__}: {said}); compute it in another "
        f"way, or outside of the function"
    )
