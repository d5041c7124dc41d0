"""What helps to find out why a result is not what it should be."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from nbta.execution import non_finite

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["nans"]


@contextmanager
def nans(infinities: bool = True) -> Iterator[None]:
    """A context in which the first NaN or infinity of a run is an error.

    Functions, gradients and sessions run operation by operation in it, 1 to 10 us each, and look at
    each result. The error names the operation, the line of the function that it comes from, whether
    that is the line's gradient, and the iteration of each loop. With ``NBTA_DEBUG_NANS=1`` in the
    environment all runs are like that.

    Parameters
    ----------
    infinities : bool
        Whether infinities are errors too; without, only NaN is.

    Raises
    ------
    InvalidArgumentError
        From a run, where an operation gives NaN and none of its inputs has it, or an infinity and
        all of its inputs are finite. Constants and arguments may be either.

    Notes
    -----
    It holds in the thread or task that enters it. A branch that is not taken computes nothing, but
    both sides of `nbta.where` do: what it does not choose counts as well.

    Examples
    --------
    >>> def entropy(p):
    ...     return -nbta.sum(p * nbta.log(p))
    >>> with nbta.debug.nans():
    ...     nbta.grad(entropy)(np.array([0.5, 0.5, 0.0]))
    Traceback (most recent call last):
    nbta.errors.InvalidArgumentError: Log made an infinity of 0.0, item [2], at ...
    """
    token = non_finite.choose(infinities)
    try:
        yield
    finally:
        non_finite.restore(token)
