"""Changes of items that give a new array, as JAX writes them: ``at(x)[key].set(value)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.errors import invalid
from nbta.graph.operation import Tensor
from nbta.ops.core.arithmetic import add, maximum, minimum, multiply, where
from nbta.ops.core.dispatch import as_array, data_spec, exported
from nbta.ops.indexing.items import add_item, castable, getitem, set_item

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.typing import Array, ArrayLike


def as_given(x: ArrayLike) -> Array:
    """An array or a tensor."""
    return x if isinstance(x, Tensor) else as_array(x)


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
        if self._is_mask(value):
            return self._where_true(lambda _, new: new, value)
        return set_item(self._x, self._key, value, name=self._name)

    def add(self, value: ArrayLike) -> Array:
        """The array with something added there."""
        if self._is_mask(value):
            return self._where_true(add, value)
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

    def _is_mask(self, value: ArrayLike) -> bool:
        """Whether the key is a mask, for one value; of others nobody knows how many it takes."""
        spec, key = data_spec(as_given(self._x)), self._key
        if not isinstance(key, np.ndarray | Tensor) or key.dtype != bool or not key.ndim:
            return False
        axes = list(zip(spec.shape or (), key.shape or (), strict=False))
        fits = len(axes) == key.ndim and all(n is not None and m is not None for n, m in axes)
        return (
            fits
            and all((n == 1) is (m == 1) for n, m in axes)
            and data_spec(as_given(value)).rank == 0
        )

    def _where_true(self, change: Callable[..., Any], value: ArrayLike) -> Array:
        x = as_given(self._x)
        mask = getitem(self._key, (..., *[None] * (x.ndim - self._key.ndim)))
        return where(mask, castable(change(x, value), x.dtype), x, name=self._name)

    def _changed(self, change: Callable[..., Any], value: ArrayLike) -> Array:
        if self._is_mask(value):
            return self._where_true(change, value)
        for part in self._key if isinstance(self._key, tuple) else (self._key,):
            if isinstance(part, list | np.ndarray) or (isinstance(part, Tensor) and part.ndim != 0):
                message = (
                    "at: the key has an array, in which items may repeat; give integers and "
                    "slices, or loop over the items"
                )
                raise invalid("at", message)
        changed = change(getitem(self._x, self._key), value)
        return set_item(self._x, self._key, changed, name=self._name)


@exported
def at(x: ArrayLike, *, name: str | None = None) -> At:
    """Change items and return a new array: ``at(x)[key].set(value)``, and add, mul, min, max.

    Parameters
    ----------
    x : array-like or Tensor
        The array, which does not change.
    name : str, optional
        Name of the operation.

    Returns
    -------
    At
        Indexed with the keys of `set_item`, or with masks and a single value for all selected
        items. mul, min and max refuse arrays of indices, as these may repeat; add adds up repeated
        ones.

    Notes
    -----
    This is JAX's ``x.at[key].set(value)``, which also works for Tensors and the arrays of traced
    functions. NumPy's own arrays have no such attribute; ``nbta.at(x)`` works for all of them.
    Compiled code changes items in place, unless the old ones are needed later.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> nbta.at(x)[1:].mul(10.0)
    array([ 1., 20., 30.])
    >>> nbta.grad(lambda x: nbta.sum(x.at[0].set(5.0) * x))(x)
    array([5., 4., 6.])
    """
    return At(x, name)
