"""The user's line, for messages, and refusals of what several places meet."""

from nbta.errors import UnimplementedError
from nbta.locations import of_caller


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
