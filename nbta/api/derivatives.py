"""Derivatives of Python functions: grad, value_and_grad, jvp, vjp, hvp, jacobian, hessian, ..."""

from __future__ import annotations

import functools
import operator
from typing import IO, TYPE_CHECKING, Any, Concatenate, Generic, Literal, Self, overload

import numpy as np

from nbta import shapes
from nbta.api.custom import CUSTOM
from nbta.api.differentiated import Differentiated
from nbta.api.sequences import map_together
from nbta.api.static import Static
from nbta.api.tracing import (
    CONVERT,
    Function,
    P,
    R,
    any_empty,
    any_tensor,
    as_examples,
    as_leaf,
    kinds_of,
    once,
    weakly,
)
from nbta.control.control_flow import leaf_spec, taken
from nbta.control.forward_mode import tangents as tangents_of
from nbta.control.reverse_mode import gradients
from nbta.errors import UnimplementedError, invalid, memory_for
from nbta.execution.batch import Items, Memories, rows_of, run_batch
from nbta.execution.runner import check_compiled
from nbta.frontend.arguments import taken_apart
from nbta.frontend.awaited import repeated
from nbta.frontend.entry import prepared
from nbta.frontend.pickling import Sent
from nbta.graph.graph import current, leaving, within
from nbta.graph.operation import FLOW, Tensor
from nbta.graph.order import ordered
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.axes.truths import all as all_
from nbta.ops.core.arithmetic import add_n, equal, multiply
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import as_tensor
from nbta.ops.core.filling import arange, ones_like, zeros_like
from nbta.ops.core.shaping import broadcast_to, cast, identity, reshape, shape, shape_of, size
from nbta.ops.indexing.arranging import moveaxis
from nbta.ops.indexing.joining import concatenate
from nbta.ops.loops.mapping import no_rows
from nbta.structure import describe, layout, leaves, map_batches, map_leaves, pack, paths

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from nbta.inspect.profiling import Profile
    from nbta.typing import Compiled, T

# Gradients over a batch: a function of one item, run for all items on several threads.


class Batched(Sent, Generic[R]):
    """A function of the arguments of all items, from one of those of a single item.

    Parameters
    ----------
    f : callable
        The user's, for its name and text.
    item : Function
        Gives the loss of an item, or a pair of that and anything else; and the gradient.
    axes : int or tuple of (int or None)
        Along which axis each argument is cut, None for one that all items share. An int is for all
        arguments but those that are differentiated.
    chosen : Differentiated
        The arguments that are differentiated, which a call gives by position.
    reduction : {"sum", "mean"}
    compiled : {"auto", True, False}
    pick : callable, optional
        Of the result.

    Attributes
    ----------
    item : Function
        Says by ``item.explain()`` how items run.

    Raises
    ------
    InvalidArgumentError
        For another reduction.
    """

    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        f: Callable[..., Any],
        item: Function[..., Any],
        axes: Any,
        chosen: Differentiated,
        reduction: Literal["sum", "mean"],
        compiled: Compiled,
        pick: Callable[[Any], R] | None = None,
    ) -> None:
        functools.update_wrapper(self, f)
        if reduction not in ("sum", "mean"):
            message = f'reduction: it must be "sum" or "mean", not {reduction!r}'
            raise invalid("reduction", message)
        check_compiled(compiled)
        self.item, self._axes, self._chosen = item, axes, chosen
        self._reduction, self._compiled, self._memories = reduction, compiled, Memories()
        self._pick = pick or _unchanged

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """The reduced loss, and its gradient."""
        try:
            check_outside(args, kwargs)
            args, kwargs = self.item.with_static((args, kwargs))
            places = self._places(args, kwargs)
            axes = axes_of(self._axes, places, len(args))
            args = batches_apart(args, axes)
            batch = _Batch(self.item, args, axes, kwargs)
            value = batch.trace.result[0]
            sums = batch.sums(places)
            divisors = self._divisors(batch.count, len(sums), range(1, len(leaves(value))))
            found = batch.run(sums, divisors, self._compiled, self._memories)
            found = iter(found)
            value = pack(value, found)
            gradients = tuple(_joined(args[p], found, axes[p], batch.count) for p in places)
            if self._chosen.alone:
                gradients = gradients[0]
            return self._pick((value, gradients))
        except Exception as error:
            leaving(error)
            raise

    def _example(self, *args: Any, **kwargs: Any) -> Any:
        """A result of zeros for such arguments, which tells dtypes and ranks; see `__call__`."""
        args, kwargs = self.item.with_static((args, kwargs))
        places = self._places(args, kwargs)
        axes = axes_of(self._axes, places, len(args))
        args = batches_apart(args, axes)
        batch = _Batch(self.item, args, axes, kwargs)
        (value, _), sums = batch.trace.result, batch.sums(places)
        found = iter(
            np.zeros((batch.count,) + (1,) * leaf.ndim if to is None else to[0], leaf.dtype)
            for leaf, to in zip(leaves(batch.trace.result), sums, strict=True)
        )
        value = pack(value, found)
        gradients = tuple(_joined(args[p], found, axes[p], batch.count) for p in places)
        return self._pick((value, gradients[0] if self._chosen.alone else gradients))

    def items_of(self, args: Any, kwargs: Any) -> BatchItems:
        """What a call is made of, for compiled code; see `nbta.api.batches_in_njit`."""
        args, kwargs = self.item.with_static((args, kwargs))
        places = self._places(args, kwargs)
        axes = axes_of(self._axes, places, len(args))
        args = batches_apart(args, axes)
        batch = _Batch(self.item, args, axes, kwargs)
        value, _ = batch.trace.result
        sums = batch.sums(places)
        numbers = iter(range(len(sums)))
        numbered = pack(value, numbers)
        gradients = tuple(pack(args[p], numbers) for p in places)
        picked = self._pick((numbered, gradients[0] if self._chosen.alone else gradients))
        aux, is_mean = range(1, len(leaves(value))), self._reduction == "mean"
        divides = [is_mean and k not in aux for k in range(len(sums))]
        joins = [None, *[0 for _ in aux], *[axes[p] for p in places for _ in leaves(args[p])]]
        return BatchItems(batch, axes, sums, divides, leaves(picked), joins)

    def _places(self, args: Any, kwargs: Any) -> list[int]:
        """The arguments that are differentiated."""
        places = []
        for place in self._chosen.places(args, kwargs):
            if isinstance(place, str):
                message = f"batch_axis: {place!r} is differentiated; give it by position"
                raise invalid("argnums", message)
            places.append(place)
        return places

    def _divisors(self, count: Any, results: Any, aux: Any) -> Any:
        """What each result is divided by: all but those that go with the loss, for a mean."""
        if self._reduction == "sum":
            return [1] * results
        if not count:
            raise invalid("batch_empty", "batch_axis: the mean over no items is not defined")
        return [1 if k in aux else count for k in range(results)]

    @property
    def source(self) -> str:
        """Source of the function of an item; see `Function.source`."""
        return self.item.source

    def profile(
        self,
        *args: Any,
        file: str | os.PathLike[str] | IO[str] | None = None,
        repeats: int = 10,
        **kwargs: Any,
    ) -> Profile:
        """Where the time of a call goes; operations are those of the first item, on one thread.

        See `Function.profile`.
        """
        from nbta.inspect.profiling import profile  # what few need

        try:
            check_outside(args, kwargs)
            args, kwargs = self.item.with_static((args, kwargs))
            axes = axes_of(self._axes, self._places(args, kwargs), len(args))
            args = batches_apart(args, axes)
            item = self.item.apart(self._compiled)
            batch = _Batch(item, args, axes, kwargs)
            if not batch.count:
                raise invalid("batch_empty", "profile: there are no items; give at least one")
            f, _, *given = self._recipe()
            whole, one = Batched(f, item, *given), self.item.apart(self._compiled)
            return profile(
                self._title, whole, (args, kwargs), one, (batch.first(), kwargs), file, repeats
            )
        except Exception as error:
            leaving(error)
            raise

    def _recipe(self) -> tuple[Any, ...]:
        """The arguments that make one like it."""
        options = self._axes, self._chosen, self._reduction, self._compiled, self._pick
        return self.__wrapped__, self.item, *options

    def warm(self, *args: Any, **kwargs: Any) -> Self:
        """Trace and compile for items like the first of a batch; see `Function.warm`."""
        try:
            check_outside(args, kwargs)
            args, kwargs = self.item.with_static((args, kwargs))
            axes = axes_of(self._axes, self._places(args, kwargs), len(args))
            args = batches_apart(as_examples(args), axes)
            batch = _Batch(self.item, args, axes, kwargs)
            if not batch.count:
                raise invalid("batch_empty", "warm: there are no items; give at least one")
            self.item.warm(*batch.first(), **kwargs)
        except Exception as error:
            leaving(error)
            raise
        return self

    def prefer_compiled(self) -> None:
        """Run compiled from now on, without waiting until that pays."""
        self._compiled = True

    def explain(self) -> str:
        """How an item runs; see `nbta.api.tracing.Function.explain`."""
        return self.item.explain()

    @property
    def _title(self) -> str:
        """What it is, of which function, and where that is."""
        return f"{self.item._title}, over a batch"

    def __repr__(self) -> str:
        return f"<{self._title}>"


def _unchanged(result: Any) -> Any:
    return result


def check_outside(args: Any, kwargs: Any) -> None:
    """Refuse to run while a graph is built."""
    if current() is not None or any_tensor(args, kwargs):
        message = (
            "batch_axis: this runs outside of graphs; in a graph, add up what map_fn with "
            "parallel_iterations= gives"
        )
        raise invalid("batch_graph", message)


def axes_of(axes: Any, places: Any, count: Any) -> list:
    """The axis along which each of so many arguments is cut, None for what items share."""
    if isinstance(axes, tuple):
        if len(axes) != count:
            message = f"batch_axis: there are {len(axes)} entries for {count} arguments; give all"
            raise invalid("batch_axis", message)
        found = list(axes)
    else:
        found = [None if place in places else axes for place in range(count)]
    for axis in found:
        if axis is not None and (isinstance(axis, bool) or not hasattr(axis, "__index__")):
            message = f"batch_axis: {axis!r} is not an axis; give an int, or None if it is shared"
            raise invalid("batch_axis", message)
    if all(axis is None for axis in found):
        message = (
            "batch_axis: no argument is divided into items, as all are differentiated or shared; "
            "give an axis for one, as in batch_axis=(None, 0)"
        )
        raise invalid("batch_axis", message)
    return [axis if axis is None else operator.index(axis) for axis in found]


def batches_apart(args: Any, axes: Any) -> tuple:
    """Arguments with parts in place of records and compiled objects.

    Items of a list are alike, so that the first one tells what all are: a look at each would take
    as long as a third of the call.
    """

    def apart(arg: Any, axis: Any) -> Any:
        first = arg[:1] if axis is not None and isinstance(arg, list) else None
        return arg if first and taken_apart(first) is first else taken_apart(arg)

    return tuple(map(apart, args, axes))


class _Batch:
    """The items of a call, each with the graph that computes it.

    Attributes
    ----------
    count : int
        How many items there are.
    trace : Trace
        Of the first item.
    """

    def __init__(self, one: Any, args: Any, axes: Any, kwargs: Any) -> None:
        self._one, self._kwargs = one, kwargs
        self._parts = [
            arg if axis is None else _Cut(f"args[{i}]", arg, axis)
            for i, (arg, axis) in enumerate(zip(args, axes, strict=True))
        ]
        cuts = [part for part in self._parts if isinstance(part, _Cut)]
        self.count = common_length(pair for cut in cuts for pair in cut.lengths)
        self._columns = [column for cut in cuts for column in cut.columns]
        first = [leaf for cut in cuts for leaf in leaves(cut.like)]
        self.trace, shared = self._bound(first)
        self._outside = shared[self.trace.arguments :]
        self._shared = list(map(_plain, shared))
        own = set(self._places())
        self._exact = any_empty(v for place, v in enumerate(shared) if place not in own)
        self._runners = {self._kinds(first): self.trace.runner}

    def _bound(self, values: Any) -> Any:
        """The graph for an item, and all its inputs, of which those from outside come last."""
        values = iter(values)
        args = [pack(p.like, values) if isinstance(p, _Cut) else p for p in self._parts]
        trace, inputs = self._one.bound((tuple(args), self._kwargs))
        self._check_values(trace)
        return trace, inputs

    def _check_values(self, trace: Any) -> None:
        """Refuse whole numbers of items whose values Python needs."""
        parts = (p.like if isinstance(p, _Cut) else p for p in self._parts)
        owners = [k for k, part in enumerate(parts) for _ in leaves(part)]
        for leaf in trace.lengths.values:
            if leaf < len(owners) and isinstance(self._parts[owners[leaf]], _Cut):
                message = (
                    f"batch_axis: Python needs the value of {self._parts[owners[leaf]].path} for "
                    f"each item; let all items share it, with None in batch_axis, or call the "
                    f"function for each item"
                )
                raise UnimplementedError(message)

    def first(self) -> tuple:
        """Arguments for the first item."""
        return tuple(p.like if isinstance(p, _Cut) else p for p in self._parts)

    def _places(self) -> Any:
        """Which inputs of the graph an item brings, and which all share."""
        found: list[Any] = []
        before = 0
        for part in self._parts:
            own = isinstance(part, _Cut)
            arrays = part.columns if own else [v for v in leaves(part) if _is_input(v)]
            found += range(before, before + len(arrays)) if own else ()
            before += len(arrays)
        return found

    def _runner(self, values: Any) -> Any:
        """What computes items of the kind of one."""
        trace, inputs = self._bound(values)
        outside = inputs[trace.arguments :], self._outside
        if len(outside[0]) != len(outside[1]) or any(map(operator.is_not, *outside)):
            message = (
                "batch_axis: for some items, f reads other arrays from outside than for the first; "
                "pass them as arguments that all items share, with None in batch_axis"
            )
            raise invalid("batch_outside", message)
        if layout(trace.result) != layout(self.trace.result):
            message = "batch_axis: f returns different structures for some items; return one"
            raise invalid("structure", message)
        for mine, first in zip(leaves(trace.result), leaves(self.trace.result), strict=True):
            if mine.dtype != first.dtype:  # a place for one does not fit the other
                message = (
                    f"batch_axis: items have different dtypes, so that results are {first.dtype} "
                    f"for the first and {mine.dtype} for another; give all of one dtype"
                )
                raise invalid("batch_dtype", message)
        return trace.runner

    def _kinds(self, values: Any) -> Any:
        """What decides which graph computes an item."""
        return kinds_of(values, self._exact or bool(self.trace.lengths.known))

    def _runner_of(self, item: Any) -> Any:
        values = [column[item] for column in self._columns]
        kinds = self._kinds(values)
        if kinds not in self._runners:
            self._runners[kinds] = self._runner(values)
        return self._runners[kinds]

    def sums(self, places: Any) -> list:
        """Shape and dtype of each result that is added up, None for others.

        Those are the loss, which comes first, and the gradients of what all items share.
        """
        loss, *aux = leaves(self.trace.result[0])
        if not all(isinstance(other, Tensor) for other in aux):
            message = "has_aux: f gives a TensorArray, which cannot be stacked; give its stack()"
            raise invalid("batch_aux", message)
        found = [((), loss.dtype), *[None] * len(aux)]
        for part in (self._parts[place] for place in places):
            if isinstance(part, _Cut):
                found += [None] * len(part.columns)
            else:
                arrays = (as_leaf("args", value) for value in leaves(part))
                found += [(array.shape, array.dtype) for array in arrays]
        return found

    def run(self, sums: Any, divisors: Any, compiled: Compiled, memories: Any) -> Any:
        """For each result its sum, or the values of all items."""
        if self.count:
            items = Items(self._shared, dict(zip(self._places(), self._columns, strict=True)))
            memory = memories.of((self.trace, *items.shapes()))
            return run_batch(items, self._runner_of, sums, compiled, None, memory, divisors)
        dimensions = [np.shape(value) for value in self._shared]
        return [
            no_rows("batch_axis", tensor.spec, self.trace.inputs, dimensions)
            if total is None
            else np.zeros(*total)[()]
            for tensor, total in zip(leaves(self.trace.result), sums, strict=True)
        ]


class BatchItems:
    """What a call over a batch is made of.

    Attributes
    ----------
    count : int
        How many items there are.
    trace, inputs
        The graph of the first item, and its inputs, of which those from outside come last.
    is_exact : bool
        Whether the graph is for the lengths of the first item alone.
    axes : list of (int or None)
        By argument.
    sums : list of (shape, dtype) or None
        By result of an item, as for `nbta.execution.batch.run_batch`.
    divides : list of bool
        By result, whether it is divided by the number of items.
    wanted : list of int
        By result of the call the number of the item's.
    joins : list of (int or None)
        By result of an item, along which axis those of all are joined; None for those added up.
    """

    def __init__(
        self, batch: _Batch, axes: Any, sums: Any, divides: Any, wanted: Any, joins: Any
    ) -> None:
        self.count = batch.count
        self.trace, self.inputs, self.is_exact = batch.trace, batch._shared, batch._exact
        self.axes, self.sums, self.divides, self.wanted = axes, sums, divides, wanted
        self.joins = joins


class _Cut:
    """An argument in pieces.

    Attributes
    ----------
    path : str
    like : structure
        Of an item, with values of its kind.
    columns : list of list
        For each value of an item those of all items.
    lengths : list of (str, int)
        By the array or list that is cut: how many items it has.
    """

    def __init__(self, path: str, arg: Any, axis: Any) -> None:
        self.path = path
        self.like, self.columns, self.lengths = _in_columns(path, arg, axis)


def _in_columns(path: str, arg: Any, axis: Any) -> Any:
    """The structure of an item, with the first one's values; columns of values; and lengths."""
    columns: list[Any] = []
    lengths: list[Any] = []

    def like(path: str, batch: Any) -> Any:
        is_list = isinstance(batch, list)
        one, found = _listed(path, batch) if is_list else _cut_rows(path, batch, axis)
        columns.extend(found)
        lengths.append((path, len(found[0] if found else batch)))
        return one

    first = taken_apart(map_batches(like, path, arg))  # one record is NumPy's again
    return first, columns, lengths


def _listed(path: str, items: Any) -> Any:
    """The first of the items in a list, and columns of their values."""
    if not items:
        message = f"batch_axis: {path} is an empty list, from which the shape of items is not known"
        raise invalid("batch_empty", message)
    if all(map(_is_plain, items)):
        return items[0], [items]  # as most are: 20 times faster
    for i, item in enumerate(items):
        if layout(item) != layout(items[0]):
            message = f"batch_axis: {path}[{i}] has a different structure from {path}[0]"
            raise invalid("structure", message)
    names = paths(items[0], "")
    rows = [
        [_input(f"{path}[{i}]{name}", v) for name, v in zip(names, leaves(item), strict=True)]
        for i, item in enumerate(items)
    ]
    return pack(items[0], rows[0]), [list(column) for column in zip(*rows, strict=True)]


def _cut_rows(path: str, value: Any, axis: Any) -> Any:
    """An array like a row, and the rows along an axis."""
    with memory_for(f"a copy of {path}"):
        moved = np.ascontiguousarray(items_first(path, value, axis))
    rows = rows_of(moved)
    return (rows[0] if rows else np.zeros(moved.shape[1:], moved.dtype)), [rows]


def items_first(path: str, value: Any, axis: Any) -> np.ndarray:
    """An array whose first axis is the one to cut along, in the memory of the value."""
    array = _input(path, value)
    if not -array.ndim <= axis < array.ndim:
        message = (
            f"batch_axis: {path} has shape {array.shape}, which has no axis {axis}; give what all "
            f"items share as an argument of its own, with None in a tuple for batch_axis"
        )
        raise invalid("batch_axis", message)
    return np.moveaxis(array, axis, 0)


def _is_plain(item: Any) -> Any:
    """Whether an item is an array that compiled code takes as it is."""
    return type(item) is np.ndarray and item.dtype.isbuiltin == 1 and item.flags.carray


def _input(path: str, value: Any) -> Any:
    found = np.asarray(value) if isinstance(value, bool) else as_leaf(path, value)
    if not isinstance(found, np.ndarray):
        message = f"batch_axis: {path} is {value!r}, which cannot be cut into items"
        raise invalid("batch_axis", message)
    return _plain(found)


def _plain(array: Any) -> Any:
    """An array as compiled code takes it: in C order, and aligned."""
    return array if array.flags.carray else np.require(array, None, ["C", "A"])


def _is_input(value: Any) -> bool:
    """Whether a shared value is an input of a graph, and no part of its kind."""
    return isinstance(as_leaf("args", value), np.ndarray)


def common_length(named: Any) -> int:
    """How many items there are, from pairs: what is cut, and into how many."""
    lengths = {length: path for path, length in named}
    if len(lengths) != 1:
        told = ", ".join(f"{path} has {n}" for n, path in lengths.items())
        message = f"batch_axis: arguments have different numbers of items: {told or 'none'}"
        raise invalid("batch_length", message)
    return next(iter(lengths))


def _joined(arg: Any, found: Any, axis: Any, count: Any) -> Any:
    """The gradient of an argument, from those that were found for its values."""
    if axis is None:
        return pack(arg, found)

    def gradient(_: Any, batch: Any) -> Any:
        if not isinstance(batch, list):
            return np.moveaxis(next(found), 0, axis) if count else np.zeros_like(batch)
        values = [next(found) for _ in leaves(batch[0])]
        return [pack(batch[0], [value[i] for value in values]) for i in range(count)]

    return map_batches(gradient, "args", arg)


# The functions.


@overload
def value_and_grad(
    f: Callable[Concatenate[T, P], R],
    argnums: Literal[0] | None = None,
    has_aux: bool = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: None = None,
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: tuple[()] = (),
) -> Function[Concatenate[T, P], tuple[R, T]]: ...
@overload
def value_and_grad(
    f: Callable[P, R],
    argnums: int | tuple[int, ...] | None = None,
    has_aux: bool = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: None = None,
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Function[P, tuple[R, Any]]: ...
@overload
def value_and_grad(
    f: Callable[..., R],
    argnums: int | tuple[int, ...] | None = None,
    has_aux: bool = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: int | tuple[int | None, ...],
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Batched[tuple[R, Any]]: ...
def value_and_grad(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = None,
    has_aux: bool = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: int | tuple[int | None, ...] | None = None,
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Any:
    """Make a function that returns the value of ``f`` and its gradient.

    Parameters
    ----------
    f : callable
        Returns a scalar or, with ``has_aux``, a pair of a scalar and any other results.
    argnums : int or tuple of int, optional
        The arguments to differentiate with respect to, by position; the first by default. Each is
        an array or a structure of arrays.
    has_aux : bool
        Whether ``f`` returns a pair ``(value, aux)``, of which only the value is differentiated.
    compiled : {"auto", True, False}
        As for `Session.run`.
    batch_axis : int or tuple of (int or None), optional
        Run ``f``, a function of one item, for all items of a batch, on at most as many threads as
        Numba uses (`numba.set_num_threads`), and on fewer if the last batch took little time. An
        integer is the axis along which all arguments are divided into items, except those of
        ``argnums``, which all items share. A tuple has one entry per argument: its axis, or None if
        all items share it. A list is a batch, too: its elements are the items, which may have
        different lengths. Tuples and dicts are structures of batches. Keyword arguments are shared.
        Items that call Python run one after another (see `nbta.api.tracing.Function.explain`).
    reduction : {"sum", "mean"}
        How the values of all items of a batch are combined.
    convert : bool
        As for `function`.
    static_argnums, static_argnames : int or str, or a sequence of these
        As for `function`. They must not be among ``argnums``, nor be divided into items.
    argnames : str or sequence of str
        The arguments to differentiate with respect to, by name, in place of ``argnums``. A call may
        give them by position or by name; for a batch, by position.

    Returns
    -------
    callable
        A function of the arguments of ``f`` that returns ``(value, gradient)`` or, with
        ``has_aux``, ``((value, aux), gradient)``. The gradient has the structure of the argument;
        if ``argnums`` is a tuple or ``argnames`` a sequence, it is a tuple of gradients. It is zero
        if the value does not depend on the argument. For a batch, ``aux`` contains the values of
        all items, stacked if they have the same shape. The order of summation depends only on the
        number of items, so
        results are bitwise identical for any number of threads. Called with ``out=``, an array of
        the gradient's dtype and shape or a structure of such arrays, it writes the gradient there
        and returns these, unless ``f`` itself has an argument of this name (not for a batch).

    Raises
    ------
    InvalidArgumentError
        When called: if an argument to differentiate is an integer, if ``f`` does not return a
        scalar, or if the arguments of a batch have different numbers of items.
    Exception
        Any exception that ``f`` raises; for a batch, that of the first failing item, with its
        number.

    See Also
    --------
    flatten, unflatten : for optimisers that expect one vector.

    Examples
    --------
    >>> loss = nbta.value_and_grad(lambda p, x: nbta.sum((p["w"] * x) ** 2))
    >>> loss({"w": np.array([1.0, 2.0])}, np.array([3.0, 1.0]))
    (np.float64(13.0), {'w': array([18.,  4.])})

    >>> slope = nbta.grad(lambda x, *, rate: rate * x**2, argnames="rate")
    >>> slope(3.0, rate=0.5)
    np.float64(9.0)

    >>> from scipy.optimize import minimize
    >>> start = {"a": np.array([3.0, 4.0]), "b": 1.0}
    >>> def loss(vector):
    ...     p = nbta.unflatten(vector, start)
    ...     return nbta.sum((p["a"] - p["b"]) ** 2) + p["b"] ** 2
    >>> found = minimize(nbta.value_and_grad(loss), nbta.flatten(start), jac=True)
    >>> bool(found.fun < 1e-9)
    True

    >>> def loss(w, x):
    ...     return nbta.sum(w * x) ** 2
    >>> ragged = [np.array([1.0]), np.array([1.0, 2.0]), np.array([0.5, 0.5, 0.5])]
    >>> nbta.value_and_grad(loss, batch_axis=0)(1.0, ragged)
    (np.float64(12.25), np.float64(24.5))
    """
    chosen = Differentiated(f, argnums, argnames)
    static = Static(f, static_argnums, static_argnames, chosen)
    both = _both(f, chosen, has_aux, compiled, convert, static)
    if batch_axis is None:
        return both
    return Batched(f, both, batch_axis, chosen, reduction, compiled)


def _both(
    f: Any,
    chosen: Differentiated,
    has_aux: bool,
    compiled: Compiled,
    convert: bool,
    static: Static,
    pick: Any = None,
    what: str = "value_and_grad",
) -> Any:
    @functools.wraps(f, updated=())  # a dispatcher's own attributes cannot be pickled
    def both(*args: Any, **kwargs: Any) -> Any:
        inner = prepared(f, "the function", convert)
        return _value_and_grad(inner, chosen, has_aux, args, kwargs)

    both.chosen = chosen  # type: ignore[attr-defined] # for what gives labels to gradients
    return Function(both, compiled, pick, convert=False, static=static, what=what)


@overload
def grad(
    f: Callable[Concatenate[T, P], Any],
    argnums: Literal[0] | None = None,
    has_aux: Literal[False] = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: None = None,
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: tuple[()] = (),
) -> Function[Concatenate[T, P], T]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: int | tuple[int, ...] | None = None,
    has_aux: bool = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: None = None,
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Function[P, Any]: ...
@overload
def grad(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = None,
    has_aux: bool = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: int | tuple[int | None, ...],
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Batched[Any]: ...
def grad(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = None,
    has_aux: bool = False,
    compiled: Compiled = "auto",
    *,
    batch_axis: int | tuple[int | None, ...] | None = None,
    reduction: Literal["sum", "mean"] = "sum",
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Any:
    """Make a function that returns the gradient of ``f``; see `value_and_grad`.

    With ``has_aux``, it returns ``(gradient, aux)``. The value is computed, too, so errors in its
    computation are raised even if the gradient does not depend on it.

    Parameters
    ----------
    f : callable
        Returns a scalar or, with ``has_aux``, a pair of a scalar and any other results.
    argnums, has_aux, compiled, batch_axis, reduction, convert
        As for `value_and_grad`.
    static_argnums, static_argnames, argnames
        As for `value_and_grad`.

    Returns
    -------
    callable
        A function of the arguments of ``f`` that returns the gradient, in the structure of the
        argument, or a tuple of gradients if ``argnums`` is a tuple or ``argnames`` a sequence.

    Raises
    ------
    InvalidArgumentError
        As for `value_and_grad`.

    Examples
    --------
    >>> nbta.grad(lambda x: x ** 3)(2.0)
    np.float64(12.0)
    >>> nbta.grad(nbta.grad(lambda x: x ** 3))(2.0)
    np.float64(12.0)
    """

    def pick(result: Any) -> Any:
        value, found = result
        return (found, value[1]) if has_aux else found

    chosen = Differentiated(f, argnums, argnames)
    static = Static(f, static_argnums, static_argnames, chosen)
    if batch_axis is None:
        return _both(f, chosen, has_aux, compiled, convert, static, pick, "grad")
    both = _both(f, chosen, has_aux, compiled, convert, static, what="grad")
    return Batched(f, both, batch_axis, chosen, reduction, compiled, pick)


def _value_and_grad(f: Any, chosen: Differentiated, has_aux: bool, args: Any, kwargs: Any) -> Any:
    args, kwargs, xs = _freed(chosen.places(args, kwargs), args, kwargs)
    result = f(*args, **kwargs)
    value, aux = _parted(result) if has_aux else (result, None)
    value = _scalar(value)
    found = pack(xs, gradients([value], leaves(xs), unconnected="zero"))
    return ((value, aux) if has_aux else value), (found[0] if chosen.alone else found)


def _freed(places: Any, args: Any, kwargs: Any) -> tuple[list, dict, tuple]:
    """Arguments of which nothing else depends on the chosen ones, and these."""
    args, kwargs = list(args), dict(kwargs)
    for place in places:
        if isinstance(place, str):
            kwargs[place] = free(place, kwargs[place])
        else:
            args[place] = free(f"args[{place}]", args[place])
    return args, kwargs, tuple(kwargs[p] if isinstance(p, str) else args[p] for p in places)


def free(path: str, structure: Any) -> Any:
    """The tensors of an argument under new names, so that nothing else depends on them."""
    for where, value in zip(paths(structure, path), leaves(structure), strict=True):
        spec = leaf_spec(value)
        if not spec.differentiable or spec.kind == FLOW:
            message = (
                f"{where} is {spec}, and gradients exist for floats and complex numbers only; give "
                f"a float, or choose other arguments with argnums="
            )
            raise invalid("integer", message)
    return map_leaves(lambda value: identity(as_tensor(value)), structure)


def _parted(result: Any) -> Any:
    if not isinstance(result, tuple) or len(result) != 2:
        message = f"has_aux: f must return a pair (value, aux), and returns {describe(result)}"
        raise invalid("has_aux", message)
    return result


def _scalar(value: Any) -> Any:
    if len(leaves(value)) != 1 or leaves(value)[0] is not value:
        message = (
            f"f must return one scalar to differentiate, and returns {describe(value)}; add up the "
            f"terms of the loss, and return other results with has_aux=True"
        )
        raise invalid("scalar", message)
    value = as_tensor(value)
    if value.ndim not in (0, None) or not value.spec.differentiable:
        message = (
            f"f must return a scalar of floats to differentiate, and returns {value.spec}; "
            f"reduce it, as with nbta.sum"
        )
        raise invalid("scalar", message)
    if value.dtype.kind == "c":
        message = (
            f"f must return a real scalar to differentiate, and returns {value.spec}; return a "
            f"real number, such as its real part or the square of its absolute value"
        )
        raise invalid("scalar", message)
    return value if value.ndim == 0 else reshape(value, ())


def _tuples(primals: Any, tangents: Any) -> Any:
    """Arguments and directions as tuples of the same structure."""
    if not isinstance(primals, tuple):
        primals, tangents = (primals,), (tangents,)
    if _are_arrays_alike(primals, tangents):
        return primals, tangents
    if layout(primals) != layout(tangents):
        message = (
            f"tangents must have the structure of primals, {describe(primals)}, and are "
            f"{describe(tangents)}"
        )
        raise invalid("tangents", message)
    names = paths(primals, "primals")
    pairs = zip(names, leaves(primals), leaves(tangents), strict=True)
    return primals, pack(tangents, [_like_primal(*pair) for pair in pairs])


def _are_arrays_alike(primals: Any, tangents: Any) -> bool:
    """Whether primals and tangents are tuples of NumPy arrays of the same dtypes and shapes.

    So nothing is to be checked, or converted: for structures that takes 20 us, as long as a call
    of a small function.
    """
    return (
        type(primals) is type(tangents) is tuple
        and len(primals) == len(tangents)
        and all(
            type(primal) is type(tangent) is np.ndarray
            and primal.dtype == tangent.dtype
            and primal.dtype.kind == "f"
            and primal.shape == tangent.shape
            for primal, tangent in zip(primals, tangents, strict=True)
        )
    )


def _like_primal(name: str, primal: Any, tangent: Any) -> Any:
    """A tangent of the dtype and shape of its primal; Python's numbers take the dtype."""
    want = leaf_spec(primal)
    if not want.differentiable:
        return tangent  # the primal will be refused
    tangent = taken(tangent, want.dtype)
    have = leaf_spec(tangent)
    if have.dtype != want.dtype or not shapes.compatible(have.shape, want.shape):
        message = (
            f"tangents{name.removeprefix('primals')} is {have}, and {name} is {want}; "
            f"they must be equal"
        )
        raise invalid("tangents", message)
    return tangent


def jvp(
    f: Callable[..., R], primals: Any, tangents: Any, *, convert: bool = CONVERT
) -> tuple[R, R]:
    """Return the value of a function and its derivative along a direction.

    Parameters
    ----------
    f : callable
        Returns an array or any structure of arrays.
    primals : tuple
        The arguments of ``f``. Any other object than a tuple is the only argument.
    tangents : tuple
        The direction, with the structure, shapes and dtypes of ``primals``.
    convert : bool
        As for `function`.

    Returns
    -------
    value : structure
        The result of ``f``.
    derivative : structure
        The directional derivative, in the same structure.

    Raises
    ------
    InvalidArgumentError
        If the tangents do not match the primals, or for integers.

    Notes
    -----
    This is forward mode: tangents are computed beside the values, and nothing of a loop's
    iterations is saved.

    Examples
    --------
    >>> nbta.jvp(lambda x: x ** 2, np.array([1.0, 2.0]), np.array([1.0, 0.5]))
    (array([1., 4.]), array([2., 2.]))
    """
    primals, tangents = _tuples(primals, tangents)
    return jvp_of(f, convert)(primals, tangents)


def jvp_of(f: Any, convert: bool) -> Function[..., Any]:
    """The function of primals and tangents that `jvp` calls."""
    return once(
        f, ("jvp", convert), lambda: Function(weakly(_jvp, f, convert), convert=False, what="jvp")
    )


def _jvp(f: Any, convert: bool, primals: Any, tangents: Any) -> Any:
    primals = tuple(free(f"primals[{i}]", p) for i, p in enumerate(primals))
    tangents = _shaped_alike(primals, tangents)
    value = map_leaves(as_tensor, prepared(f, "the function", convert)(*primals))
    return value, pack(value, directional(leaves(value), leaves(primals), tangents))


def _shaped_alike(primals: Any, tangents: Any) -> list:
    """The tangents, which a run refuses where they have not the lengths of the primals.

    So these are one length for the compiler, too: items of both are looked up by one index, and a
    loop over them has no other check.
    """
    tangents = _tuples(primals, tangents)[1]  # compiled code has not looked at them
    pairs = zip(leaves(primals), leaves(tangents), paths(tangents, "tangents"), strict=True)
    return [_of_shape(primal, as_tensor(tangent), path) for primal, tangent, path in pairs]


def _of_shape(primal: Any, tangent: Any, path: str, what: str = "primal") -> Any:
    want, have = primal.spec.shape, tangent.spec.shape
    if want is None or have is None or None in (*want, *have):
        alike = all_(equal(shape_of(tangent), shape_of(primal)))
        return checked(tangent, alike, f"{path} has another shape than its {what}; give its own")
    if want == have:
        return tangent
    if any((n == 1) != (m == 1) for n, m in zip(want, have, strict=True)):  # no `Dim` is 1
        message = f"{path} is {tangent.spec}, and its {what} is {primal.spec}; they must be equal"
        raise invalid("tangents", message)
    return broadcast_to(tangent, shape_of(primal), name=path.partition("[")[0])


def linearize(
    f: Callable[..., R], *primals: Any, convert: bool = CONVERT
) -> tuple[R, Callable[..., R]]:
    """Return the value of a function and its derivative as a function of the direction.

    Parameters
    ----------
    f : callable
        Returns an array or any structure of arrays.
    *primals
        The arguments of ``f``: floats, or structures of floats.
    convert : bool
        As for `function`.

    Returns
    -------
    value : structure
        The result of ``f``.
    derivative : callable
        A function of a direction for each argument, of its structure, shapes and dtypes. It returns
        the directional derivative at ``primals``, in the structure of ``value``.

    Raises
    ------
    InvalidArgumentError
        For integers; and from the function that is returned, if directions do not match.

    See Also
    --------
    jvp : value and derivative along one direction.

    Notes
    -----
    This is JAX's ``jax.linearize``. The values that derivatives need are computed again with each
    direction, from copies of ``primals``; what ``f`` reads from outside is as at that time.

    Examples
    --------
    >>> value, along = nbta.linearize(lambda x: x ** 2, np.array([1.0, 2.0]))
    >>> value, along(np.array([1.0, 0.5]))
    (array([1., 4.]), array([2., 2.]))
    """
    primals = map_leaves(lambda v: v.copy() if isinstance(v, np.ndarray) else v, primals)

    def along(*tangents: Any) -> R:
        return linear_of(f, convert)(*_tuples(primals, tangents))

    return value_of(f, convert)(*primals), along


def linear_of(f: Any, convert: bool) -> Function[..., Any]:
    """The function of primals and tangents, as tuples, that `linearize` calls."""
    return _made_of(f, convert, "linearize", _tangent)


def value_of(f: Any, convert: bool) -> Function[..., Any]:
    """The function of primals that `linearize` and `vjp` call."""
    return _made_of(f, convert, "value", _value)


def vjp_of(f: Any, convert: bool) -> Function[..., Any]:
    """The function of primals, as a tuple, and a cotangent that `vjp` calls."""
    return _made_of(f, convert, "vjp", _pulled)


def _made_of(f: Any, convert: bool, what: str, function: Any) -> Function[..., Any]:
    make = lambda: Function(weakly(function, f, convert), convert=False, what=what)  # noqa: E731
    return once(f, (what, convert), make)


def _value(f: Any, convert: bool, *primals: Any) -> Any:
    primals = tuple(free(f"primals[{i}]", p) for i, p in enumerate(primals))
    return map_leaves(as_tensor, prepared(f, "the function", convert)(*primals))


def _tangent(f: Any, convert: bool, primals: Any, tangents: Any) -> Any:
    return _jvp(f, convert, primals, tangents)[1]


def vjp(
    f: Callable[..., R], *primals: Any, convert: bool = CONVERT
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]:
    """Return the value of a function, and a function that pulls a cotangent back.

    Parameters
    ----------
    f : callable
        Returns an array or any structure of arrays.
    *primals
        The arguments of ``f``: floats, or structures of floats.
    convert : bool
        As for `function`.

    Returns
    -------
    value : structure
        The result of ``f``.
    pullback : callable
        A function of a cotangent, of the structure, shapes and dtypes of ``value``. It returns a
        tuple with the vector-Jacobian product for each argument, in its structure: the gradient of
        the sum of the products of results and their cotangents.

    Raises
    ------
    InvalidArgumentError
        For integers among ``primals``; and from the function that is returned, if the cotangent
        does not match, or if a result is an integer.

    See Also
    --------
    grad : of a function with a scalar result.
    linearize : the same in forward mode.

    Notes
    -----
    This is JAX's ``jax.vjp``. The values that derivatives need are computed again with each
    cotangent, from copies of ``primals``; what ``f`` reads from outside is as at that time.

    Examples
    --------
    >>> value, pullback = nbta.vjp(lambda x, a: a * x ** 2, np.array([1.0, 2.0]), 3.0)
    >>> value, pullback(np.array([1.0, 0.5]))
    (array([ 3., 12.]), (array([6., 6.]), np.float64(3.0)))
    """
    primals = map_leaves(lambda v: v.copy() if isinstance(v, np.ndarray) else v, primals)
    value = value_of(f, convert)(*primals)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        return vjp_of(f, convert)(primals, _cotangents(value, cotangent))

    return value, pullback


def _pulled(f: Any, convert: bool, primals: Any, cotangents: Any) -> Any:
    primals = tuple(free(f"primals[{i}]", p) for i, p in enumerate(primals))
    value = map_leaves(as_tensor, prepared(f, "the function", convert)(*primals))
    cotangents = map_leaves(as_tensor, _cotangents(value, cotangents))
    given = [
        _of_shape(one, other, f"cotangent{path}", "value")
        for one, other, path in zip(
            leaves(value), leaves(cotangents), paths(value, ""), strict=True
        )
    ]
    return pack(primals, gradients(leaves(value), leaves(primals), given, unconnected="zero"))


def _cotangents(value: Any, cotangent: Any) -> Any:
    """A cotangent in the structure of a value, whose dtypes Python's numbers take."""
    if layout(value) != layout(cotangent):
        message = (
            f"the cotangent must have the structure of the value, {describe(value)}, and is "
            f"{describe(cotangent)}"
        )
        raise invalid("tangents", message)
    triples = zip(paths(value, ""), leaves(value), leaves(cotangent), strict=True)
    return pack(value, [_like_result(*each) for each in triples])


def _like_result(path: str, result: Any, cotangent: Any) -> Any:
    want = leaf_spec(result)
    if not want.differentiable:
        message = f"vjp: value{path} is {want}, which has no cotangent; let f return floats"
        raise invalid("integer", message)
    cotangent = taken(cotangent, want.dtype)
    have = leaf_spec(cotangent)
    if have.dtype != want.dtype or not shapes.compatible(have.shape, want.shape):
        message = f"cotangent{path} is {have}, and value{path} is {want}; they must be equal"
        raise invalid("tangents", message)
    return cotangent


def hvp(f: Callable[..., Any], primals: T, tangents: Any, *, convert: bool = CONVERT) -> T:
    """Return the product of the Hessian of a scalar function with a direction.

    Parameters
    ----------
    f : callable
        Returns a scalar.
    primals, tangents : tuple
        The arguments and the direction, as for `jvp`.
    convert : bool
        As for `function`.

    Returns
    -------
    structure like ``primals``
        The Hessian-vector product.

    Raises
    ------
    InvalidArgumentError
        If ``f`` does not return a scalar, and as for `jvp`.

    Notes
    -----
    This is forward over reverse mode: the tangent of the gradient.

    Examples
    --------
    >>> nbta.hvp(lambda x: nbta.sum(x ** 3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    alone = not isinstance(primals, tuple)
    primals, tangents = _tuples(primals, tangents)
    found = hvp_of(f, convert)(primals, tangents)
    return found[0] if alone else found


def hvp_of(f: Any, convert: bool) -> Function[..., Any]:
    """The function of primals and tangents, as tuples, that `hvp` calls."""
    # The value is computed too, so that arguments of a wrong shape are refused.
    return once(
        f,
        ("hvp", convert),
        lambda: Function(
            weakly(_hvp, f, convert), pick=lambda found: found[-1], convert=False, what="hvp"
        ),
    )


def _hvp(f: Any, convert: bool, primals: Any, tangents: Any) -> Any:
    primals = tuple(free(f"primals[{i}]", p) for i, p in enumerate(primals))
    xs, tangents = leaves(primals), _shaped_alike(primals, tangents)
    value = _scalar(prepared(f, "the function", convert)(*primals))
    first = gradients([value], xs, unconnected="zero")
    if not calls_users(first):
        return value, pack(primals, directional(first, xs, tangents))
    slope = add_n([sum_(multiply(g, t)) for g, t in zip(first, tangents, strict=True)])
    return value, pack(primals, gradients([slope], xs, unconnected="zero"))


def calls_users(tensors: Any) -> bool:
    """Whether users' own operations are on the way to tensors that are gradients.

    Their backward functions can be differentiated once: by reverse mode, which a second derivative
    takes then.
    """
    operations = within(ordered({tensor.op for tensor in tensors}))
    return any(op.record is CUSTOM for op in operations)


def directional(ys: Any, xs: Any, directions: Any) -> list:
    """Derivatives of ``ys`` along directions, zeros where they do not depend on ``xs``."""
    found = tangents_of(list(map(as_tensor, ys)), xs, list(map(as_tensor, directions)))
    return [zeros_like(y) if t is None else t for y, t in zip(ys, found, strict=True)]


def jacobian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = None,
    compiled: Compiled = "auto",
    *,
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Function[..., Any]:
    """Make a function that returns all first derivatives of ``f``.

    Parameters
    ----------
    f : callable
        Returns real floats: an array of any rank, or a structure of arrays.
    argnums : int or tuple of int, optional
        The arguments to differentiate with respect to, by position; the first by default. Each is a
        real array or a structure of real arrays.
    compiled : {"auto", True, False}
        As for `Session.run`.
    convert : bool
        As for `function`.
    static_argnums, static_argnames : int or str, or a sequence of these
        As for `function`. They must not be among ``argnums``.
    argnames : str or sequence of str
        As for `value_and_grad`.

    Returns
    -------
    callable
        A function of the arguments of ``f``. For each array of the result of ``f``, it returns the
        structure of the argument with arrays of shape ``result.shape + argument.shape``; if
        ``argnums`` is a tuple, a tuple of these. Derivatives of results that do not depend on the
        argument are zero.

    Raises
    ------
    InvalidArgumentError
        When called: if arguments or results are integers or complex numbers, or if the rank of a
        result is known only when the function runs.

    See Also
    --------
    jvp, hvp : products with a direction, which need no matrix.

    Notes
    -----
    This is JAX's ``jax.jacrev``. A loop of the graph computes the gradient of each item of a
    result. Operations of ``f`` that do not depend on the item are computed only once if the
    compiler detects that, and otherwise once per item; effects such as ``print`` may happen more
    than once.

    Examples
    --------
    >>> polar = lambda p: nbta.stack([p[0] * nbta.cos(p[1]), p[0] * nbta.sin(p[1])])
    >>> nbta.jacobian(polar)(np.array([2.0, 0.0]))
    array([[1., 0.],
           [0., 2.]])
    """

    @functools.wraps(f, updated=())  # a dispatcher's own attributes cannot be pickled
    def rows(*args: Any, **kwargs: Any) -> Any:
        return _jacobian(prepared(f, "the function", convert), chosen, args, kwargs)

    chosen = Differentiated(f, argnums, argnames)
    static = Static(f, static_argnums, static_argnames, chosen)
    return Function(rows, compiled, convert=False, static=static, what="jacobian")


def jacfwd(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = None,
    compiled: Compiled = "auto",
    *,
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Function[..., Any]:
    """Make a function that returns all first derivatives of ``f``, in forward mode.

    Parameters
    ----------
    f : callable
        Returns real floats: an array of any rank, or a structure of arrays.
    argnums : int or tuple of int, optional
        The arguments to differentiate with respect to, as for `jacobian`.
    compiled : {"auto", True, False}
        As for `Session.run`.
    convert : bool
        As for `function`.
    static_argnums, static_argnames : int or str, or a sequence of these
        As for `function`. They must not be among ``argnums``.
    argnames : str or sequence of str
        As for `value_and_grad`.

    Returns
    -------
    callable
        A function of the arguments of ``f`` that returns what `jacobian` returns.

    Raises
    ------
    InvalidArgumentError
        When called: as for `jacobian`.

    See Also
    --------
    jacobian : the same by reverse mode, for functions with fewer results than arguments.

    Notes
    -----
    This is JAX's ``jax.jacfwd``. A loop of the graph computes the derivatives with respect to each
    item of an argument. It needs fewer operations than `jacobian` where the arguments have fewer
    items than the results, and saves nothing of a loop's iterations.

    Examples
    --------
    >>> polar = lambda p: nbta.stack([p[0] * nbta.cos(p[1]), p[0] * nbta.sin(p[1])])
    >>> nbta.jacfwd(polar)(np.array([2.0, 0.0]))
    array([[1., 0.],
           [0., 2.]])
    """

    @functools.wraps(f, updated=())  # a dispatcher's own attributes cannot be pickled
    def columns(*args: Any, **kwargs: Any) -> Any:
        return _jacobian(prepared(f, "the function", convert), chosen, args, kwargs, _by_columns)

    chosen = Differentiated(f, argnums, argnames)
    static = Static(f, static_argnums, static_argnames, chosen)
    return Function(columns, compiled, convert=False, static=static, what="jacfwd")


def hessian(
    f: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = None,
    compiled: Compiled = "auto",
    *,
    convert: bool = CONVERT,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    argnames: str | Sequence[str] = (),
) -> Function[..., Any]:
    """Make a function that returns all second derivatives of ``f``.

    Parameters
    ----------
    f : callable
        Returns a scalar.
    argnums, compiled, convert, static_argnums, static_argnames, argnames
        As for `jacobian`.

    Returns
    -------
    callable
        A function of the arguments of ``f``. For each array of the argument, it returns the
        structure of the argument with arrays of shape ``one.shape + other.shape``: derivatives with
        respect to the items of the one array, then of the other.

    Raises
    ------
    InvalidArgumentError
        When called: if ``f`` does not return a scalar, and as for `jacobian`.

    Notes
    -----
    This is JAX's ``jax.hessian``: the Jacobian of the gradient, in forward mode.

    Examples
    --------
    >>> nbta.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """

    @functools.wraps(f, updated=())  # a dispatcher's own attributes cannot be pickled
    def rows(*args: Any, **kwargs: Any) -> Any:
        inner = prepared(f, "the function", convert)
        return _jacobian(gradient_of(inner, chosen), chosen, args, kwargs, _of_gradients)

    chosen = Differentiated(f, argnums, argnames)
    static = Static(f, static_argnums, static_argnames, chosen)
    return Function(rows, compiled, convert=False, static=static, what="hessian")


def gradient_of(f: Any, chosen: Differentiated) -> Any:
    """The function of the same arguments that gives the gradient, in a graph."""
    return lambda *args, **kwargs: _value_and_grad(f, chosen, False, args, kwargs)[1]


def _by_rows(fresh: Any, chosen: Any, value: Any) -> list:
    """For each result its derivatives by all that is chosen, by reverse mode."""
    return [_rows(fresh, k, y) for k, y in enumerate(leaves(value))]


def _by_columns(fresh: Any, chosen: Any, value: Any) -> list:
    """The same by forward mode."""
    columns = [_columns(fresh, place, x) for place, x in enumerate(leaves(chosen))]
    return [[column[k] for column in columns] for k in range(len(leaves(value)))]


def _of_gradients(fresh: Any, chosen: Any, value: Any) -> list:
    """The same for results that are gradients."""
    derivatives = _by_rows if calls_users(leaves(value)) else _by_columns
    return derivatives(fresh, chosen, value)


def _jacobian(
    f: Any, chosen: Differentiated, args: Any, kwargs: Any, derivatives: Any = _by_rows
) -> Any:
    places = chosen.places(args, kwargs)

    def fresh() -> Any:
        """The chosen arguments where nothing else depends on them, and what f gives for them."""
        given, named, xs = _freed(places, args, kwargs)
        return xs, map_leaves(as_tensor, f(*given, **named))

    xs, value = fresh()
    for path, x in zip(paths(xs, "args"), leaves(xs), strict=True):
        _check_real(f"the argument {path}", x)
    for path, y in zip(paths(value, "result"), leaves(value), strict=True):
        _check_real(f"f's {path}", y)
        if y.ndim is None:
            message = f"jacobian: the rank of f's {path} is not known before the run; reshape it"
            raise invalid("jacobian", message)

    def again() -> Any:
        with repeated():
            return fresh()

    found = [pack(xs, row) for row in derivatives(again, xs, value)]
    return pack(value, [part[0] for part in found] if chosen.alone else found)


def _check_real(name: str, value: Any) -> None:
    if value.dtype.kind in "fV" and value.spec.differentiable:
        return
    message = (
        f"jacobian: {name} is {value.spec}; give real floats, of complex numbers their real and "
        f"imaginary parts"
    )
    raise invalid("jacobian", message)


def _rows(fresh: Any, place: int, value: Any) -> list:
    """Derivatives of one result by all that is chosen, stacked over its items."""

    def row(item: Any) -> Any:
        chosen, again = fresh()
        y = leaves(again)[place]
        if item is None:
            return gradients([y], leaves(chosen), unconnected="zero")
        return gradients([y], leaves(chosen), [_unit(y, item)], unconnected="zero")

    if value.ndim == 0:
        return row(None)
    stacks = map_together(row, arange(size(value)))
    before = shape(value)
    return [reshape(s, concatenate([before, shape(s)[1:]])) for s in stacks]


def _columns(fresh: Any, place: int, x: Any) -> list:
    """Derivatives of all results by one array that is chosen, stacked over its items."""

    def column(item: Any) -> Any:
        chosen, again = fresh()
        x = leaves(chosen)[place]
        return directional(leaves(again), [x], [ones_like(x) if item is None else _unit(x, item)])

    if x.ndim == 0:
        return column(None)
    stacks = map_together(column, arange(size(x)))
    return [reshape(moveaxis(s, 0, -1), concatenate([shape(s)[1:], shape(x)])) for s in stacks]


def _unit(like: Any, item: Any) -> Any:
    """An array that is zero but for one item, by its number."""
    return reshape(cast(equal(arange(size(like)), item), like.dtype), shape_of(like))
