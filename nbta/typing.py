"""Types for annotations, in nbta and in users' code; nothing needs them while it runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ForwardRef,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
)

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:
    from nbta.graph.operation import Tensor
    from nbta.ops.indexing.changes import At
else:  # looked up when it is asked for, so that every module may import this one
    Tensor = ForwardRef("Tensor", module="nbta.graph.operation")

__all__ = [
    "Array", "ArrayLike", "Axis", "Checkpoint", "Compiled", "DTypeLike", "Integer", "Pattern",
    "ShapeLike",
]  # fmt: skip

#: What functions of arrays give: arrays at once, tensors in a graph. Scalars count as arrays.
Array: TypeAlias = Union[np.ndarray[Any, Any], Tensor]  # noqa: UP007 - of a name, too
#: One axis, several, or all.
Axis: TypeAlias = int | Sequence[int] | None
#: As for `nbta.Session.run`.
Compiled: TypeAlias = Literal["auto", True, False]
#: As for `nbta.while_loop`.
Checkpoint: TypeAlias = int | Literal["sqrt", "online"] | None
#: An integer that the run may tell.
Integer: TypeAlias = int | np.integer[Any] | Array
#: What is known of a shape: None in it for an unknown dimension, None for an unknown rank.
Pattern: TypeAlias = int | Sequence[int | None] | None
#: Dimensions that the run may tell.
ShapeLike: TypeAlias = Integer | Sequence[Integer]

#: Stand for what a user's function takes and gives, and for structures of arrays.
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")
U = TypeVar("U")


class Methods(Protocol):
    """What `nbta.ops` puts into `Tensor`, for checkers, which cannot see that."""

    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Any, /) -> Tensor: ...
    def __and__(self, other: Any, /) -> Tensor: ...
    def __divmod__(self, other: Any, /) -> tuple[Tensor, Tensor]: ...
    def __eq__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: Any, /) -> Tensor: ...
    def __ge__(self, other: Any, /) -> Tensor: ...
    def __getitem__(self, key: Any, /) -> Tensor: ...
    def __gt__(self, other: Any, /) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __le__(self, other: Any, /) -> Tensor: ...
    def __len__(self) -> int: ...
    def __lshift__(self, other: Any, /) -> Tensor: ...
    def __lt__(self, other: Any, /) -> Tensor: ...
    def __matmul__(self, other: Any, /) -> Tensor: ...
    def __mod__(self, other: Any, /) -> Tensor: ...
    def __mul__(self, other: Any, /) -> Tensor: ...
    def __ne__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Any, /) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Any, /) -> Tensor: ...
    def __radd__(self, other: Any, /) -> Tensor: ...
    def __rand__(self, other: Any, /) -> Tensor: ...
    def __rdivmod__(self, other: Any, /) -> tuple[Tensor, Tensor]: ...
    def __rfloordiv__(self, other: Any, /) -> Tensor: ...
    def __rlshift__(self, other: Any, /) -> Tensor: ...
    def __rmatmul__(self, other: Any, /) -> Tensor: ...
    def __rmod__(self, other: Any, /) -> Tensor: ...
    def __rmul__(self, other: Any, /) -> Tensor: ...
    def __ror__(self, other: Any, /) -> Tensor: ...
    def __rpow__(self, other: Any, /) -> Tensor: ...
    def __rrshift__(self, other: Any, /) -> Tensor: ...
    def __rshift__(self, other: Any, /) -> Tensor: ...
    def __rsub__(self, other: Any, /) -> Tensor: ...
    def __rtruediv__(self, other: Any, /) -> Tensor: ...
    def __rxor__(self, other: Any, /) -> Tensor: ...
    def __sub__(self, other: Any, /) -> Tensor: ...
    def __truediv__(self, other: Any, /) -> Tensor: ...
    def __xor__(self, other: Any, /) -> Tensor: ...

    @property
    def at(self) -> At:
        """Changes of items that give a new tensor; see `nbta.at`."""

    @property
    def T(self) -> Tensor:  # noqa: N802 - NumPy's name
        """Axes in the opposite order."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Dimensions; numbers to compute with where only the run knows them."""

    @property
    def size(self) -> int:
        """How many elements there are; a number to compute with where only the run knows it."""

    def all(
        self,
        axis: Axis = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.all`."""

    def any(
        self,
        axis: Axis = None,
        keepdims: bool = False,
        *,
        where: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.any`."""

    def argmax(
        self, axis: int | None = None, *, keepdims: bool = False, name: str | None = None
    ) -> Tensor:
        """See `nbta.argmax`."""

    def argmin(
        self, axis: int | None = None, *, keepdims: bool = False, name: str | None = None
    ) -> Tensor:
        """See `nbta.argmin`."""

    def argpartition(
        self,
        kth: Any,
        axis: int | None = -1,
        kind: str | None = None,
        *,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.argpartition`."""

    def argsort(
        self,
        axis: int | None = -1,
        kind: str | None = None,
        *,
        stable: bool | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.argsort`."""

    def astype(self, dtype: DTypeLike, *, name: str | None = None) -> Tensor:
        """See `nbta.cast`."""

    def clip(
        self,
        low: ArrayLike | None = None,
        high: ArrayLike | None = None,
        *,
        min: ArrayLike | None = None,
        max: ArrayLike | None = None,
        a_min: ArrayLike | None = None,
        a_max: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.clip`."""

    def conj(self, *, name: str | None = None) -> Tensor:
        """See `nbta.conj`."""

    def conjugate(self, *, name: str | None = None) -> Tensor:
        """See `nbta.conj`."""

    def copy(self, order: str = "C", *, name: str | None = None) -> Tensor:
        """See `nbta.identity`."""

    def cumprod(
        self, axis: int | None = None, *, dtype: DTypeLike | None = None, name: str | None = None
    ) -> Tensor:
        """See `nbta.cumprod`."""

    def cumsum(
        self, axis: int | None = None, *, dtype: DTypeLike | None = None, name: str | None = None
    ) -> Tensor:
        """See `nbta.cumsum`."""

    def diagonal(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, *, name: str | None = None
    ) -> Tensor:
        """See `nbta.diagonal`."""

    def flatten(self, order: str = "C", *, name: str | None = None) -> Tensor:
        """See `nbta.ravel`."""

    def max(
        self,
        axis: Axis = None,
        keepdims: bool = False,
        *,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.max`."""

    def mean(
        self,
        axis: Axis = None,
        keepdims: bool = False,
        *,
        dtype: DTypeLike | None = None,
        where: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.mean`."""

    def min(
        self,
        axis: Axis = None,
        keepdims: bool = False,
        *,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.min`."""

    def prod(
        self,
        axis: Axis = None,
        keepdims: bool = False,
        *,
        dtype: DTypeLike | None = None,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.prod`."""

    def ravel(self, order: str = "C", *, name: str | None = None) -> Tensor:
        """See `nbta.ravel`."""

    def repeat(
        self, repeats: ArrayLike, axis: int | None = None, *, name: str | None = None
    ) -> Tensor:
        """See `nbta.repeat`."""

    def reshape(self, *shape: Any) -> Tensor:
        """See `nbta.reshape`."""

    def round(self, decimals: int = 0, *, name: str | None = None) -> Tensor:
        """See `nbta.round`."""

    def searchsorted(
        self,
        values: ArrayLike,
        side: Literal["left", "right"] = "left",
        sorter: ArrayLike | None = None,
        *,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.searchsorted`."""

    def squeeze(self, axis: Axis = None, *, name: str | None = None) -> Tensor:
        """See `nbta.squeeze`."""

    def std(
        self,
        axis: Axis = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
        dtype: DTypeLike | None = None,
        where: ArrayLike | None = None,
        correction: float | None = None,
        mean: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.std`."""

    def sum(
        self,
        axis: Axis = None,
        keepdims: bool = False,
        *,
        dtype: DTypeLike | None = None,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.sum`."""

    def swapaxes(self, a: int, b: int, *, name: str | None = None) -> Tensor:
        """See `nbta.swapaxes`."""

    def take(
        self,
        indices: ArrayLike,
        axis: int | None = None,
        *,
        mode: Literal["raise", "wrap", "clip"] = "raise",
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.take`."""

    def trace(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, *, name: str | None = None
    ) -> Tensor:
        """See `nbta.trace`."""

    def transpose(self, *axes: Any) -> Tensor:
        """See `nbta.transpose`."""

    def var(
        self,
        axis: Axis = None,
        *,
        ddof: float = 0,
        keepdims: bool = False,
        dtype: DTypeLike | None = None,
        where: ArrayLike | None = None,
        correction: float | None = None,
        mean: ArrayLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        """See `nbta.var`."""
