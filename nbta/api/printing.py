"""Printing when a graph runs."""

from __future__ import annotations

import builtins
import string
from typing import IO, TYPE_CHECKING, Any

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.checks import first_token, order_now, print_values
from nbta.ops.dispatch import building
from nbta.structure import leaves, pack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbta.graph.operation import Operation

_Text = IO[str] | None


def print(
    *values: Any,
    sep: str = " ",
    end: str = "\n",
    file: _Text = None,
    flush: bool = False,
    fmt: str | None = None,
) -> Operation | None:
    """Print values when the program runs; outside of graphs, at once.

    Parameters
    ----------
    *values : Tensor, structure of Tensors, or anything else
        What is no tensor is printed as it is when the function is traced.
    sep, end, file, flush
        As for Python's ``print``; without ``file``, to what ``sys.stdout`` is then.
    fmt : str, optional
        ``fmt.format(*values)`` is printed in place of the values: ``fmt="x = {:.3f}"``.

    Returns
    -------
    None or Operation
        In a `Graph` that is built by hand, outside of the functions of loops and branches: the
        operation, which runs where something asks for it. Give it to `Session.run`, or to
        `control_dependencies` of what is to run after it.

    Raises
    ------
    InvalidArgumentError
        For a ``fmt`` with a field that there is no value for, or with one by name.

    Notes
    -----
    In a traced function each run prints, in the order of the program, in each iteration of a loop
    and in the branch that is taken, compiled and operation by operation; also texts alone, and also
    from a function given to `scan`, `cond` and their like. What the function gives waits for that.
    Values are whole, at any size, as of NumPy's arrays. Derivatives pass by: `nbta.grad` prints
    what the function itself does, once. Rows of `map_fn` on several threads come one after another
    where they print. A compiled run that fails is done again operation by operation, for the error
    to say where, and so prints again.

    TensorFlow's ``tf.print``; JAX's ``jax.debug.print`` with ``ordered=True``, whose text is here
    ``fmt``. Python's own ``print`` in a function that nbta converts does the same with tensors, but
    prints what has none of them when the function is traced.

    Examples
    --------
    >>> @nbta.function
    ... def total(x):
    ...     s = 0.0
    ...     for i in range(x.shape[0]):
    ...         s += x[i]
    ...         nbta.print(i, s, fmt="after iteration {}: {:.2f}")
    ...     return s
    >>> total(np.array([0.5, 0.25]))
    after iteration 0: 0.50
    after iteration 1: 0.75
    np.float64(0.75)
    """
    if fmt is not None:
        _check(fmt, len(values))
    options: dict[str, Any] = {"sep": sep, "end": end, "file": file, "flush": flush}
    graph = building(*leaves(values))
    if graph is None:
        shown = values if fmt is None else (fmt.format(*values),)
        builtins.print(*shown, **options)
        return None
    with graph.as_default():
        return _later(values, fmt, options)


def _check(fmt: str, count: int) -> None:
    """Refuse a text with fields for which there are no values."""
    fields = [field for _, field, _, _ in string.Formatter().parse(fmt) if field is not None]
    names = [field.partition(".")[0].partition("[")[0] for field in fields]
    for place, name in enumerate(names):
        number = place if not name else int(name) if name.isdecimal() else count
        if number >= count:
            message = f"print: fmt has the field {{{fields[place]}}}, and there are {count} values"
            raise invalid("print", f"{message}; give one for each field, by its place")


def _later(values: tuple[Any, ...], fmt: str | None, options: dict[str, Any]) -> Operation | None:
    """Print in each run of the graph that is being built."""
    parts = [_part(value, as_text=fmt is None) for value in values]
    if fmt is not None:
        parts = [_Formatted(fmt, parts)]
    tensors = [leaf for leaf in leaves(values) if isinstance(leaf, Tensor)]
    order = order_now()
    if order is None:
        return print_values(first_token(), parts, tensors, options).op
    order.token = print_values(order.token, parts, tensors, options)
    return None


def _part(value: Any, as_text: bool) -> Any:
    """A value as `print_values` takes it."""
    if isinstance(value, Tensor):
        return None
    if any(isinstance(leaf, Tensor) for leaf in leaves(value)):
        return _Structured(value)
    return str(value) if as_text else _Known(value)


class _Known:
    """What Python knows, for a text that may format it."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self, values: Iterator[Any]) -> Any:
        return self._value


class _Structured:
    """A structure in which tensors are."""

    def __init__(self, structure: Any) -> None:
        found = leaves(structure)
        self._like = pack(structure, [None if isinstance(v, Tensor) else v for v in found])
        self._structure, self._leaves = structure, found

    def __call__(self, values: Iterator[Any]) -> Any:
        found = [next(values) if isinstance(leaf, Tensor) else leaf for leaf in self._leaves]
        return pack(self._structure, found)


class _Formatted:
    """A text with fields, for values that the run brings."""

    def __init__(self, fmt: str, parts: list[Any]) -> None:
        self._fmt, self._parts = fmt, parts

    def __call__(self, values: Iterator[Any]) -> str:
        found = [next(values) if part is None else part(values) for part in self._parts]
        return self._fmt.format(*found)
