"""Changes of items that give a new array, as JAX writes them: ``at(x)[key].set(value)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.arithmetic import maximum, minimum, multiply
from nbta.ops.dispatch import exported
from nbta.ops.indexing import add_item, getitem, set_item

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.typing import Array, ArrayLike


class At:
    """An array whose items are to be others."""

    def __init__(self, x: ArrayLike, name: str | None = None) -> None:
        self._x, self._name = x, name

    def __getitem__(self, key: Any) -> Items:
        return Items(self._x, key, self._name)


class Items:
    """Items of an array at a key."""

    def __init__(self, x: ArrayLike, key: Any, name: str | None) -> None:
        self._x, self._key, self._name = x, key, name

    def set(self, value: ArrayLike) -> Array:
        """The array with other items there."""
        return set_item(self._x, self._key, value, name=self._name)

    def add(self, value: ArrayLike) -> Array:
        """The array with something added there."""
        return add_item(self._x, self._key, value, name=self._name)

    def mul(self, value: ArrayLike) -> Array:
        """The array with items multiplied there."""
        return self._changed(multiply, value)

    def min(self, value: ArrayLike) -> Array:
        """The array with the lesser of items and other ones there."""
        return self._changed(minimum, value)

    def max(self, value: ArrayLike) -> Array:
        """The array with the greater of items and other ones there."""
        return self._changed(maximum, value)

    def _changed(self, change: Callable[..., Any], value: ArrayLike) -> Array:
        for part in self._key if isinstance(self._key, tuple) else (self._key,):
            if isinstance(part, list | np.ndarray) or (isinstance(part, Tensor) and part.ndim != 0):
                message = (
                    "at: the key has an array, and items may repeat; give integers and slices, or "
                    "go through the items by a loop"
                )
                raise invalid("at", message)
        changed = change(getitem(self._x, self._key), value)
        return set_item(self._x, self._key, changed, name=self._name)


@exported
def at(x: ArrayLike, *, name: str | None = None) -> At:
    """Changes of items that give a new array: ``at(x)[key].set(value)``, and add, mul, min, max.

    Parameters
    ----------
    x : array-like or Tensor
        It stays as it is.
    name : str, optional
        Of the operation that changes it.

    Returns
    -------
    At
        With keys as for `set_item`. For mul, min and max arrays of indices are refused, as they may
        repeat; with add, what repeats adds up.

    Notes
    -----
    JAX's ``x.at[key].set(value)``. In compiled code items are replaced where they are, unless
    something needs the old ones.

    Examples
    --------
    >>> nbta.at(np.array([1.0, 2.0, 3.0]))[1:].mul(10.0)
    array([ 1., 20., 30.])
    """
    return At(x, name)
