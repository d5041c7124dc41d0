"""Tools that find the cause of wrong results.

``python -m nbta.debug bisect MODULE:FUNCTION --args "(np.ones(3), 2.0)"`` names the first pass of
the compiler after which a function, or its gradient, has a different result.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.execution import non_finite

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["nans"]


@contextmanager
def nans(infinities: bool = True) -> Iterator[None]:
    """Raise an error at the first NaN or infinity of a run.

    In this context, functions, gradients and sessions run operation by operation, which takes 1 to
    10 us each, and check each result. The error names the operation, the line of the function that
    it comes from, whether it belongs to that line's gradient, and the iteration of each loop. With
    ``NBTA_DEBUG_NANS=1`` in the environment, all runs are checked.

    Parameters
    ----------
    infinities : bool
        Whether infinities are errors, too; otherwise, only NaN is.

    Raises
    ------
    InvalidArgumentError
        From a run, if the result of an operation contains NaN and its inputs do not, or contains an
        infinity and all its inputs are finite. Constants and arguments may contain both.

    Notes
    -----
    The context applies to the thread or task that enters it. A branch that is not taken computes
    nothing, but both sides of `nbta.where` are computed and checked, including values that are not
    chosen.

    Examples
    --------
    >>> def entropy(p):
    ...     return -nbta.sum(p * nbta.log(p))
    >>> with nbta.debug.nans():
    ...     nbta.grad(entropy)(np.array([0.5, 0.5, 0.0]))
    Traceback (most recent call last):
    nbta.errors.InvalidArgumentError: Log made an infinity of 0.0, item [2]...
    """
    token = non_finite.choose(infinities)
    try:
        yield
    finally:
        non_finite.restore(token)


def _main(argv: list[str] | None = None) -> int:
    """Run ``python -m nbta.debug``; the answer is its exit code.

    It is 0 where results agree, 1 where a pass is named, and 2 where nothing was compared.
    """
    parser = argparse.ArgumentParser(prog="python -m nbta.debug", description=_main.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    bisect = commands.add_parser(
        "bisect", help="the first pass of the compiler after which a result is another one"
    )
    bisect.add_argument("function", metavar="MODULE:FUNCTION", help="or FILE.py:FUNCTION")
    bisect.add_argument(
        "--args",
        metavar="EXPRESSION",
        help="a tuple, with the module's names and np; without, the module's ARGUMENTS, which is "
        "a tuple, a function that gives one, or a dict of these by the function's name",
    )
    bisect.add_argument(
        "--value", action="store_true", help="of the function alone, not its gradient"
    )
    options = parser.parse_args(argv)
    try:
        return _bisect(options.function, options.args, options.value)
    except _UsageError as error:
        print(f"nbta.debug bisect: {error}", file=sys.stderr)
        return 2


class _UsageError(Exception):
    """What is asked for cannot be done."""


def _bisect(named: str, expression: str | None, value: bool) -> int:
    """Name the first pass after which a function has another result."""
    from nbta.api.derivatives import value_and_grad
    from nbta.api.tracing import Function, function
    from nbta.inspect.bisection import Bisection

    module, name = _found(named)
    target = getattr(module, name, None)
    if not callable(target):
        raise _UsageError(f"{module.__name__} has no function {name!r}")
    arguments = _arguments(module, name, expression)
    if not isinstance(target, Function):
        target = (function if value else value_and_grad)(target)
    trace, values = target.bound((arguments, {}))
    finding = Bisection(trace.runner, values).find()
    print(finding.text)
    return 1 if finding.number is not None else 2 if finding.is_refused else 0


def _found(named: str) -> tuple[Any, str]:
    """The module, and the name of the function in it."""
    place, _, name = named.rpartition(":")
    if not place:
        raise _UsageError(f"{named!r} is not MODULE:FUNCTION")
    sys.path.insert(0, str(Path.cwd()))
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place), name
        spec = importlib.util.spec_from_file_location(Path(place).stem, place)
        if spec is None or spec.loader is None:
            raise _UsageError(f"{place} is no module")
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module, name
    except (ImportError, OSError) as error:
        raise _UsageError(f"{place} cannot be imported: {error}") from error


def _arguments(module: Any, name: str, expression: str | None) -> tuple[Any, ...]:
    """The arguments of the function: from the command line, or the module."""
    if expression is not None:
        found = eval(expression, {"np": np, **vars(module)})
    else:
        found = getattr(module, "ARGUMENTS", None)
        if isinstance(found, dict):
            found = found.get(name)
        found = found() if callable(found) else found
    if found is None:
        raise _UsageError(
            f"there are no arguments for {name}: give --args, or ARGUMENTS in {module.__name__}"
        )
    return found if isinstance(found, tuple) else (found,)


if __name__ == "__main__":
    sys.exit(_main())
