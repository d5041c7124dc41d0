"""Printing when a graph runs."""

from __future__ import annotations

import builtins
import string
from typing import IO, TYPE_CHECKING, Any

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.core.checks import first_token, order_now, print_values
from nbta.ops.core.dispatch import building
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
    """Print values when the graph runs or, outside graphs, at once.

    Parameters
    ----------
    *values : Tensor, structure of Tensors, or any other object
        Objects that are not tensors are printed with the value that they have during tracing.
    sep, end, file, flush
        As for Python's ``print``; the default of ``file`` is the ``sys.stdout`` of the run.
    fmt : str, optional
        Print ``fmt.format(*values)`` instead of the values: ``fmt="x = {:.3f}"``.

    Returns
    -------
    None or Operation
        In a `Graph` that is built by hand, outside functions of loops and branches: the operation,
        which runs only if something depends on it. Pass it to `Session.run`, or to the
        `control_dependencies` of operations that should run after it.

    Raises
    ------
    InvalidArgumentError
        If ``fmt`` has a field without a value, or a named field.

    Notes
    -----
    In a traced function, each run prints in the order of the program: in each iteration of a loop
    and in the branch that is taken, whether it is compiled or runs operation by operation. This
    also holds for text without tensors, and in functions that are given to `scan`, `cond` and the
    like. The results of the function wait for the output. Values are printed whole, like NumPy's
    arrays, at any size. Gradients print nothing of their own: `nbta.grad` prints what the function
    prints, once. Rows of `map_fn` that print run one after another. If a compiled run fails, it is
    repeated operation by operation to locate the error, and prints again.

    This is TensorFlow's ``tf.print``, or JAX's ``jax.debug.print`` with ``ordered=True``, whose
    format string is ``fmt`` here. In a function that nbta converts, Python's own ``print`` does the
    same with tensors, but text without tensors is printed when the function is traced.

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
