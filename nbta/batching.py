"""Gradients over a batch: a function of one item, run for all items on several threads."""

import functools
import operator

import numpy as np

from nbta.call_arguments import any_empty, any_tensor, as_leaf, kinds_of
from nbta.errors import invalid, memory_for
from nbta.execution.batch import Items, Memories, run_batch
from nbta.execution.results import rows_of
from nbta.execution.runner import check_compiled
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops.mapping import no_rows
from nbta.structure import layout, leaves, map_batches, pack, paths


class Batched:
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
    argnums : int or tuple of int
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

    def __init__(self, f, item, axes, argnums, reduction, compiled, pick=None):
        functools.update_wrapper(self, f)
        if reduction not in ("sum", "mean"):
            message = f'reduction: it must be "sum" or "mean", not {reduction!r}'
            raise invalid("reduction", message)
        check_compiled(compiled)
        self.item, self._axes, self._argnums = item, axes, argnums
        self._reduction, self._compiled, self._memories = reduction, compiled, Memories()
        self._pick = pick or (lambda result: result)

    def __call__(self, *args, **kwargs):
        """The reduced loss, and its gradient."""
        check_outside(args, kwargs)
        places = places_of(self._argnums, len(args))
        axes = axes_of(self._axes, places, len(args))
        batch = _Batch(self.item, args, axes, kwargs)
        value = batch.trace.result[0]
        sums = batch.sums(places)
        divisors = self._divisors(batch.count, len(sums), range(1, len(leaves(value))))
        found = batch.run(sums, divisors, self._compiled, self._memories)
        found = iter(found)
        value = pack(value, found)
        gradients = tuple(_joined(args[p], found, axes[p], batch.count) for p in places)
        if not isinstance(self._argnums, tuple):
            gradients = gradients[0]
        return self._pick((value, gradients))

    def _divisors(self, count, results, aux):
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

    def profile(self, *args, file=None, repeats=10, **kwargs):
        """Where the time of a call goes; operations are those of the first item, on one thread.

        See `Function.profile`.
        """
        from nbta.inspect.profiling import profile  # what few need

        check_outside(args, kwargs)
        axes = axes_of(self._axes, places_of(self._argnums, len(args)), len(args))
        item = self.item.apart(self._compiled)
        batch = _Batch(item, args, axes, kwargs)
        if not batch.count:
            raise invalid("batch_empty", "profile: there are no items; give one at least")
        given = self._axes, self._argnums, self._reduction, self._compiled, self._pick
        whole, one = Batched(self.__wrapped__, item, *given), self.item.apart(self._compiled)
        return profile(
            repr(self), whole, (args, kwargs), one, (batch.first(), kwargs), file, repeats
        )

    def prefer_compiled(self) -> None:
        """Run compiled from now on, without waiting until that pays."""
        self._compiled = True

    def explain(self) -> str:
        """How an item runs; see `nbta.tracing.Function.explain`."""
        return self.item.explain()

    def __repr__(self):
        return f"<nbta.function over a batch of {self.item!r}>"


def check_outside(args, kwargs) -> None:
    """Refuse to run while a graph is built."""
    if current() is not None or any_tensor(args, kwargs):
        message = (
            "batch_axis: this runs outside of graphs; in a graph, add up what map_fn with "
            "parallel_iterations= gives"
        )
        raise invalid("batch_graph", message)


def places_of(argnums, count) -> list:
    """The arguments that are differentiated, of so many."""
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)
    if not all(isinstance(place, int) for place in chosen):
        raise invalid("argnums", f"argnums: {argnums!r} is no int and no tuple of ints")
    for place in chosen:
        if not -count <= place < count:
            message = f"argnums: there is no argument {place}; given by position: {count}"
            raise invalid("argnums", message)
    return [place % count for place in chosen]


def axes_of(axes, places, count) -> list:
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
            message = f"batch_axis: {axis!r} is no axis; give an int, or None for what is shared"
            raise invalid("batch_axis", message)
    if all(axis is None for axis in found):
        message = (
            "batch_axis: no argument is cut into items, as all are differentiated or shared; give "
            "an axis for one, as in batch_axis=(None, 0)"
        )
        raise invalid("batch_axis", message)
    return [axis if axis is None else operator.index(axis) for axis in found]


class _Batch:
    """The items of a call, each with the graph that computes it.

    Attributes
    ----------
    count : int
        How many items there are.
    trace : Trace
        Of the first item.
    """

    def __init__(self, one, args, axes, kwargs):
        self._one, self._kwargs = one, kwargs
        self._parts = [
            arg if axis is None else _Cut(f"args[{i}]", arg, axis)
            for i, (arg, axis) in enumerate(zip(args, axes, strict=True))
        ]
        cuts = [part for part in self._parts if isinstance(part, _Cut)]
        self.count = common_length((cut.path, len(c)) for cut in cuts for c in cut.columns)
        self._columns = [column for cut in cuts for column in cut.columns]
        first = [leaf for cut in cuts for leaf in leaves(cut.like)]
        self.trace, shared = self._bound(first)
        self._shared = list(map(_plain, shared))
        own = set(self._places())
        self._exact = any_empty(v for place, v in enumerate(shared) if place not in own)
        self._runners = {self._kinds(first): self.trace.runner_of_results()}

    def _bound(self, values):
        """The graph for an item, and all its inputs."""
        values = iter(values)
        args = [pack(p.like, values) if isinstance(p, _Cut) else p for p in self._parts]
        return self._one.bound((tuple(args), self._kwargs))

    def first(self) -> tuple:
        """Arguments for the first item."""
        return tuple(p.like if isinstance(p, _Cut) else p for p in self._parts)

    def _places(self):
        """Which inputs of the graph an item brings, and which all share."""
        found, before = [], 0
        for part in self._parts:
            own = isinstance(part, _Cut)
            arrays = part.columns if own else [v for v in leaves(part) if _is_input(v)]
            found += range(before, before + len(arrays)) if own else ()
            before += len(arrays)
        return found

    def _runner(self, values):
        """What computes items of the kind of one."""
        trace, _ = self._bound(values)
        if layout(trace.result) != layout(self.trace.result):
            message = "batch_axis: f gives other structures for some items; give the same for all"
            raise invalid("structure", message)
        for mine, first in zip(leaves(trace.result), leaves(self.trace.result), strict=True):
            if mine.dtype != first.dtype:  # a place for one does not fit the other
                message = (
                    f"batch_axis: items have other dtypes, so that results are {first.dtype} for "
                    f"the first of them and {mine.dtype} for another; give all of one dtype"
                )
                raise invalid("batch_dtype", message)
        return trace.runner_of_results()

    def _kinds(self, values):
        """What decides which graph computes an item."""
        return kinds_of(values, self._exact or bool(self.trace.lengths.known))

    def _runner_of(self, item):
        values = [column[item] for column in self._columns]
        kinds = self._kinds(values)
        if kinds not in self._runners:
            self._runners[kinds] = self._runner(values)
        return self._runners[kinds]

    def sums(self, places) -> list:
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

    def run(self, sums, divisors, compiled, memories):
        """For each result its sum, or the values of all items."""
        if self.count:
            items = Items(self._shared, dict(zip(self._places(), self._columns, strict=True)))
            memory = memories.of((self.trace, *items.shapes()))
            return run_batch(items, self._runner_of, sums, compiled, None, memory, divisors)
        extents = [np.shape(value) for value in self._shared]
        return [
            no_rows("batch_axis", tensor.spec, self.trace.inputs, extents)
            if total is None
            else np.zeros(*total)[()]
            for tensor, total in zip(leaves(self.trace.result), sums, strict=True)
        ]


class _Cut:
    """An argument in pieces.

    Attributes
    ----------
    path : str
    like : structure
        Of an item, with values of its kind.
    columns : list of list
        For each value of an item those of all items.
    """

    def __init__(self, path, arg, axis):
        self.path = path
        self.like, self.columns = _in_columns(path, arg, axis)


def _in_columns(path, arg, axis):
    """The structure of an item, with the values of the first, and columns of its values."""
    columns = []

    def like(path, batch):
        is_list = isinstance(batch, list)
        first, found = _listed(path, batch) if is_list else _cut_rows(path, batch, axis)
        columns.extend(found)
        return first

    return map_batches(like, path, arg), columns


def _listed(path, items):
    """The first of the items in a list, and columns of their values."""
    if not items:
        message = f"batch_axis: {path} is an empty list, from which nobody can tell what items are"
        raise invalid("batch_empty", message)
    if all(map(_is_plain, items)):
        return items[0], [items]  # as most are: 20 times faster
    for i, item in enumerate(items):
        if layout(item) != layout(items[0]):
            message = f"batch_axis: {path}[{i}] has another structure than {path}[0]"
            raise invalid("structure", message)
    names = paths(items[0], "")
    rows = [
        [_input(f"{path}[{i}]{name}", v) for name, v in zip(names, leaves(item), strict=True)]
        for i, item in enumerate(items)
    ]
    return pack(items[0], rows[0]), [list(column) for column in zip(*rows, strict=True)]


def _cut_rows(path, value, axis):
    """An array like a row, and the rows along an axis."""
    with memory_for(f"a copy of {path}"):
        moved = np.ascontiguousarray(items_first(path, value, axis))
    rows = rows_of(moved)
    return (rows[0] if rows else np.zeros(moved.shape[1:], moved.dtype)), [rows]


def items_first(path, value, axis) -> np.ndarray:
    """An array whose first axis is the one to cut along, in the memory of the value."""
    array = _input(path, value)
    if not -array.ndim <= axis < array.ndim:
        message = (
            f"batch_axis: {path} has shape {array.shape}, which has no axis {axis}; give "
            f"batch_axis a tuple, with None for what all items share"
        )
        raise invalid("batch_axis", message)
    return np.moveaxis(array, axis, 0)


def _is_plain(item):
    """Whether an item is an array that compiled code takes as it is."""
    return type(item) is np.ndarray and item.dtype.isbuiltin == 1 and item.flags.carray


def _input(path, value):
    found = np.asarray(value) if isinstance(value, bool) else as_leaf(path, value)
    if not isinstance(found, np.ndarray):
        message = f"batch_axis: {path} is {value!r}, which cannot be cut into items"
        raise invalid("batch_axis", message)
    return _plain(found)


def _plain(array):
    """An array as compiled code takes it: in C order, and aligned."""
    return array if array.flags.carray else np.require(array, None, ["C", "A"])


def _is_input(value) -> bool:
    """Whether a shared value is an input of a graph, and no part of its kind."""
    return isinstance(as_leaf("args", value), np.ndarray)


def common_length(named) -> int:
    """How many items there are, from pairs: what is cut, and into how many."""
    lengths = {length: path for path, length in named}
    if len(lengths) != 1:
        told = ", ".join(f"{path} has {n}" for n, path in lengths.items())
        message = f"batch_axis: arguments have other numbers of items: {told or 'none'}"
        raise invalid("batch_length", message)
    return next(iter(lengths))


def _joined(arg, found, axis, count):
    """The gradient of an argument, from those that were found for its values."""
    if axis is None:
        return pack(arg, found)

    def gradient(_, batch):
        if not isinstance(batch, list):
            return np.moveaxis(next(found), 0, axis) if count else np.zeros_like(batch)
        values = [next(found) for _ in leaves(batch[0])]
        return [pack(batch[0], [value[i] for value in values]) for i in range(count)]

    return map_batches(gradient, "args", arg)
