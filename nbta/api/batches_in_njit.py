"""What a call of a gradient over a batch, ``batch_axis=``, in compiled code is made of.

Its program is `nbta.runtime.native_batches.run_items`, which calls that of an item. Here is told
how arrays of such a call become those of items, and which results are added up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.api.tracing import lies_apart
from nbta.dtypes import code_of
from nbta.execution.batch import is_half
from nbta.runtime import native_batches as batches
from nbta.runtime import native_calls as rt
from nbta.structure import leaves

if TYPE_CHECKING:
    from nbta.api.derivatives import Batched

#: Floats that compiled code divides, by their bytes.
_DIVIDED = {np.dtype(np.float32): 4, np.dtype(np.float64): 8}
#: How far a length may go up from the least one, and bounds of a number whose value is any.
ANY_LENGTH, ANY_NUMBER = 1 << 62, (0, -1)


def bits_of(value: Any) -> int:
    """A whole number as compiled code compares it; of one above all int64 the bits."""
    return int(np.asarray(value).astype(np.int64))


class ItemPlan:
    """The items of calls like one.

    Parameters
    ----------
    batched : Batched
    structure : tuple
        Arguments and keyword arguments.
    parts : list
        What stands for each of their leaves: `nbta.api.in_njit._Given` for what a call brings.

    Attributes
    ----------
    trace : object
        Of an item; see `nbta.api.tracing.Function.bound`.
    inputs : list of ndarray
        Of the first item.
    results : int
        How many an item has.
    is_native : bool
        Whether compiled code can cut and add up: arrays, and in the items' own dtypes.
    specs : list of tuple
        Dtype and rank of each result of the call.
    dimensions : tuple of list of int
        As `nbta.api.in_njit._Record` has them.
    """

    def __init__(self, batched: Batched[Any], structure: Any, parts: Any) -> None:
        found = batched.items_of(*structure)
        self.trace, self.inputs = found.trace, found.inputs
        self._sums, self._divides, self._wanted = found.sums, found.divides, found.wanted
        self._joins = found.joins
        self._tensors, self.results = leaves(self.trace.result), len(found.sums)
        self._is_exact, self._values = found.is_exact, leaves(structure)
        args, kwargs = structure
        axes = [axis for a, axis in zip(args, found.axes, strict=True) for _ in leaves(a)]
        axes += [None for _ in leaves(kwargs)]
        is_cut = all(
            axis is None or getattr(part, "rank", 0) for part, axis in zip(parts, axes, strict=True)
        )
        #: What calls bring: its number, what stands for it, and along which axis it is cut.
        self._given = (
            [
                (k, part, axis if axis is None else axis % part.rank)
                for k, (part, axis) in enumerate(zip(parts, axes, strict=True))
                if hasattr(part, "rank")
            ]
            if is_cut
            else []
        )
        self.is_native = is_cut and all(map(self._can_take, range(self.results)))
        self.specs = [
            (self._tensors[k].dtype, (self._tensors[k].ndim or 0) + (self._sums[k] is None))
            for k in self._wanted
        ]
        self.dimensions: Any = self._dimensions() if self.is_native else None
        self.is_native = self.dimensions is not None

    def _can_take(self, k: int) -> bool:
        """Whether compiled code can take a result."""
        tensor, total = self._tensors[k], self._sums[k]
        if self._divides[k] and tensor.dtype not in _DIVIDED:
            return False
        if total is None:
            return k in self._wanted
        fits = total[1] == tensor.dtype and not is_half(tensor.dtype)
        return fits and (k in self._wanted or not tensor.ndim)

    def _dimensions(self) -> tuple[list[int], list[int]] | None:
        """For each dimension of a result its condition or -1, and the number if that is known.

        None where only a run knows one.
        """
        places: dict[Any, int] = {}
        inputs, place, count = iter(self.trace.inputs), 0, -1
        for _, part, cut in self._given:
            if not part.is_truth:
                for axis, n in enumerate(next(inputs).spec.shape):
                    if n is not None and type(n) is not int:
                        places.setdefault(n, place + axis + (cut is not None and axis >= cut))
            if cut is not None and count < 0:
                count = place + cut
            place += part.conditions
        sources, hints = [], []
        for k in self._wanted:
            found = []
            for n in self._tensors[k].spec.shape:
                if n not in places and type(n) is not int:
                    return None
                found.append((places.get(n, -1), n if type(n) is int else 0))
            if self._sums[k] is None:
                found.insert(self._joined_along(k), (count, 0))
            sources += [source for source, _ in found]
            hints += [hint for _, hint in found]
        return sources, hints

    def _joined_along(self, k: int) -> int:
        """Along which axis a result of all items is joined."""
        axis = self._joins[k] or 0
        return int(axis % (self._tensors[k].ndim + 1))

    def bounds(self) -> list[tuple[int, int]]:
        """For each condition the least number, and how far up it may go from there."""
        found: list[tuple[int, int]] = []
        looks = {(k.leaf, k.axis) for k in self.trace.lengths.known if hasattr(k, "axis")}
        numbers = self.trace.lengths.values
        for leaf, part, cut in self._given:
            value = self._values[leaf]
            for place, n in enumerate(np.shape(value)):
                axis = place - (cut is not None and place > cut)
                is_fixed = self._is_exact or n == 1 or (leaf, axis) in looks
                if place == cut:
                    found.append((0, ANY_LENGTH))
                else:
                    found.append((n, 0) if is_fixed else (2, ANY_LENGTH))
            if part.is_truth:
                found.append((int(value), 0))
            if part.is_whole:
                found.append((bits_of(value), 0) if leaf in numbers else ANY_NUMBER)
            if part.may_lie_apart:  # what is cut is copied first
                found.append((int(lies_apart(value)), 0) if cut is None else (0, 1))
        return found

    def table(self, executable: Any, loops: int, words: int) -> list[Any]:
        """The words of a table for `run_items`, and what lives with them.

        Parameters
        ----------
        executable : Executable
            The program of an item.
        loops, words : int
            Addresses: of the number of parallel loops, and of the program's words.
        """
        generated = executable.generated
        given = [(part, cut) for _, part, cut in self._given if not part.is_truth]
        outside = generated.arguments - len(given)
        size = batches.TABLE + generated.arguments + len(self._wanted)
        ranks = max([part.rank for part, _ in given] + [rank for _, rank in self.specs])
        table = np.zeros(size, np.int64)
        cuts = np.zeros((len(given), batches.GIVEN_ARRAY), np.int64)
        for row, (part, cut) in zip(cuts, given, strict=True):
            if cut is not None:
                row[batches.UNIT], row[batches.ALONG] = part.dtype.itemsize, cut
        plan = np.zeros((self.results, batches.RESULT), np.int64)
        block = np.zeros((len(given) + self.results, rt.ARRAY), np.int64)
        shapes = np.zeros((len(block), ranks), np.int64)
        for k, (row, tensor, total) in enumerate(zip(plan, self._tensors, self._sums, strict=True)):
            row[batches.WANTED] = self._wanted.index(k) if k in self._wanted else -1
            row[batches.ITEMSIZE] = tensor.dtype.itemsize
            row[batches.CODE] = -1 if total is None else code_of(tensor.dtype)
            row[batches.DIVIDED] = _DIVIDED[tensor.dtype] if self._divides[k] else 0
            row[batches.AXIS] = self._joined_along(k) if total is None else -1
        table[: batches.TABLE] = (
            executable.address, words, generated.inputs, len(given), outside, self.results, loops,
            cuts.ctypes.data, plan.ctypes.data, block.ctypes.data, shapes.ctypes.data, ranks,
        )  # fmt: skip
        return [table, cuts, plan, block, shapes]
