"""Order along an axis: sorting, and what is found in what is sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from nbta import shapes
from nbta.codegen.values import NUMBERS, Scalar, product, times
from nbta.errors import invalid
from nbta.graph.operation import NotDifferentiable, Spec, Tensor
from nbta.loops import (
    Constant,
    Expression,
    accumulate,
    assign,
    both,
    call,
    do,
    either,
    loop_while,
    over,
    select,
    when,
)
from nbta.ops.axes.places import dimensions_of, numbers_along, take_along_axis
from nbta.ops.axes.reductions import Along
from nbta.ops.axes.reductions import sum as sum_
from nbta.ops.core.arithmetic import (
    add,
    equal,
    greater,
    greater_equal,
    logical_and,
    logical_not,
    logical_or,
    minimum,
    where,
)
from nbta.ops.core.axis_arguments import integers, keeping, numbers, one_axis, operand
from nbta.ops.core.checks import checked
from nbta.ops.core.dispatch import apply, data_spec, define, exported, stands_for
from nbta.ops.core.elementwise import promoted
from nbta.ops.core.filling import zeros_like
from nbta.ops.core.shaping import INT64, cast, named, reshape, shape_of, size
from nbta.ops.indexing.arranging import moveaxis
from nbta.ops.indexing.gathering import scatter_add, take
from nbta.ops.indexing.joining import expand_dims, rows_of, stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nbta.typing import Array, ArrayLike

__all__ = [
    "argpartition",
    "argsort",
    "digitize",
    "lexsort",
    "partition",
    "searchsorted",
    "sort",
]


def _infer_sort(spec, *, axis):
    found = keeping(numbers)(spec, axis=axis)
    return found, Spec(INT64, found.shape)


def _evaluate_sort(x, *, axis):
    places = np.argsort(x, axis, kind="stable")
    return np.take_along_axis(x, places, axis), places.astype(np.int64, copy=False)


def _sort_connections(op):
    return [op.inputs, []]


def _sort_gradient(op, dy, _):
    """Each item's gradient goes to where the item was."""
    x, places = op.inputs[0], op.outputs[1]
    if x.spec.rank == 1:
        return [scatter_add(zeros_like(dy), places, dy)]
    numbers = reshape(numbers_along(places, dimensions_of(x), op.attrs["axis"]), -1)
    dy = reshape(dy, -1)
    return [reshape(scatter_add(zeros_like(dy), numbers, dy), shape_of(x))]


#: Items that are sorted by insertion before runs are merged.
_SHORT = 12


def _emit_sort(code, op) -> None:
    """Insertion in short runs, then merges, between the halves of a buffer; both are stable."""
    x = op.inputs[0]
    if x.dtype.char not in NUMBERS or x.dtype.kind == "c":
        return code.call_python(op)
    axis, value = op.attrs["axis"] % x.spec.rank, code.value(x)
    found = {k: code.result(op, dimensions=value.dimensions, index=k)
             for k, output in enumerate(op.outputs) if code.uses(output)}  # fmt: skip
    run = _Run(code, x.dtype, value.dimensions[axis], placed=1 in found)
    along = Along(code, value.dimensions, axis)
    outer, rest = along.runs()
    with code.nest(outer), code.nest(rest):
        with code.nest(along.steps()):
            run.set(along.step, along.at(value, along.step), along.step)
        run.sort()
        with code.nest(along.steps()):
            for which, block in found.items():
                item = run.item(which, run.source + along.step)
                code.add(assign(along.at(block, along.step), item))
    run.release()
    return None


class _Run:
    """Lines that sort the items of a buffer, and their places along with them if asked.

    Parameters
    ----------
    code : Code
    dtype : numpy.dtype
    count : Expression
        How many items there are.
    placed : bool
    """

    def __init__(self, code, dtype, count, placed):
        self._code, self._count, self._dtype = code, count, dtype
        room = (code.dimension(times(Constant(2), count)),)
        self._blocks = [code.new(dtype, room), *([code.new(INT64, room)] if placed else [])]
        self._names = {}
        self.source, self._target = code.name("a"), code.name("a")

    def _name(self, stem):
        """A variable of these lines."""
        if stem not in self._names:
            self._names[stem] = self._code.name(stem)
        return self._names[stem]

    def item(self, which, place):
        """A key, or with 1 where it was."""
        return self._blocks[which].at(place)

    def set(self, place, *items):
        """Lines that put a key and where it was."""
        pairs = zip(self._blocks, items, strict=False)
        self._code.add(*(assign(block.at(place), item) for block, item in pairs))

    def _less(self, one, other):
        return less(self._dtype, one, other)

    def sort(self):
        """All lines; the items are then from ``source`` on."""
        code, low, high = self._code, self._name("l"), self._name("h")
        code.add(assign(self.source, 0), assign(self._target, self._count), assign(low, 0))
        with code.nest(loop_while(low < self._count)):
            code.add(assign(high, call("min", low + _SHORT, self._count)))
            self._insert(low, high)
            code.add(assign(low, high))
        self._merge_all(low, high)

    def _insert(self, low, high):
        """Insertion sort from one place to before another."""
        code, i, j = self._code, self._name("i"), self._name("j")
        held = [self._name(stem) for stem in ("x", "p")][: len(self._blocks)]
        with code.nest(over(i, low + 1, high)):
            code.add(*(assign(name, self.item(k, i)) for k, name in enumerate(held)), assign(j, i))
            before = self.item(0, j - 1)
            with code.nest(loop_while(both(j > low, self._less(held[0], before)))):
                self.set(j, *(self.item(k, j - 1) for k in range(len(held))))
                code.add(assign(j, j - 1))
            self.set(j, *held)

    def _merge_all(self, low, high):
        code, width, middle, kept = self._code, self._name("w"), self._name("m"), self._name("k")
        code.add(assign(width, _SHORT))
        with code.nest(loop_while(width < self._count)):
            code.add(assign(low, 0))
            with code.nest(loop_while(low < self._count)):
                code.add(assign(middle, call('min', low + width, self._count)),
                         assign(high, call('min', middle + width, self._count)))  # fmt: skip
                self._merge(low, middle, high)
                code.add(assign(low, high))
            code.add(assign(kept, self.source), assign(self.source, self._target),
                     assign(self._target, kept), assign(width, 2 * width))  # fmt: skip

    def _merge(self, low, middle, high):
        """Two sorted runs become one; without jumps that a processor would have to guess."""
        code, i, j, k = self._code, *(self._name(stem) for stem in "ijo")
        right, count = self._name("q"), len(self._blocks)
        code.add(assign(i, low), assign(j, middle), assign(k, self._target + low))
        with code.nest(loop_while(both(i < middle, j < high))):
            ours, theirs = ([self.item(n, self.source + place) for n in range(count)]
                            for place in (i, j))  # fmt: skip
            pairs = [(self._name(f"x{n}l"), self._name(f"x{n}r")) for n in range(count)]
            for (one, other), mine, other_item in zip(pairs, ours, theirs, strict=True):
                code.add(assign(one, mine), assign(other, other_item))
            code.add(assign(right, _comes_first(self._dtype, *pairs[0][::-1])))
            self.set(k, *(select(right.differs(0), other, one) for one, other in pairs))
            code.add(assign(i, i + 1 - right), assign(j, j + right), assign(k, k + 1))
        for place, end in ((i, middle), (j, high)):  # one of them is at its end
            for name in (block.base.name for block in self._blocks):
                code.add(do("copy", name, k, name, self.source + place, end - place))

    def release(self):
        """Let the buffers be used again."""
        for block in self._blocks:
            self._code.release(block.base)


def _comes_first(dtype, one, other) -> Expression:
    """The same as a number, 1 or 0, without jumps."""
    if dtype.kind != "f":
        return call("int64", one < other)
    last = call("int64", other.differs(other)) & call("int64", one.equals(one))
    return call("int64", one < other) | last


def less(dtype, one, other) -> Expression:
    """Whether one number comes before another; NaN is last, as in NumPy."""
    if dtype.kind != "f":
        return one < other
    return either(one < other, both(other.differs(other), one.equals(one)))


SORT = define(
    "Sort",
    _infer_sort,
    _evaluate_sort,
    _sort_gradient,
    connections=_sort_connections,
    emit=_emit_sort,
    several=True,
    total=True,
)


def _infer_selected(x, wanted):
    numbers(x)
    if x.shape is None or wanted.rank is None:
        return Spec(INT64, None)
    return Spec(INT64, (*x.shape[:-1], wanted.shape[-1]))


def _evaluate_selected(x, wanted):
    order = _in_order(x, wanted)
    if wanted.ndim > 1:
        return np.take_along_axis(order, wanted, -1)
    return order[..., wanted]


def _in_order(x, wanted):
    """Where the items of rows are that sorted ones have, with places that there are."""
    for place in wanted.reshape(-1):
        if not 0 <= place < x.shape[-1]:
            raise invalid("index", f"there is no item {place} in order among {x.shape[-1]}")
    return np.argsort(x, -1, kind="stable").astype(np.int64, copy=False)


def _emit_selected(code, op) -> None:
    x, wanted = op.inputs
    if x.dtype.char not in NUMBERS or x.dtype.kind == "c":
        return code.call_python(op)
    value, places = code.value(x), code.value(wanted)
    *outer, count = value.dimensions
    number = places.dimensions[-1]
    found = code.result(op, dimensions=(*outer, number))
    selection, row, w = _Selection(code, x.dtype, count), code.name("r"), code.name("w")
    with code.nest(over(row, product(outer))):
        selection.begin(value, row * count)
        with code.nest(over(w, number)):
            place = row * number + w if wanted.spec.rank > 1 else w
            origin = selection.select(places.at(place))
            code.add(assign(found.at(row * number + w), origin))
    selection.release()
    return None


#: Items that part others and are kept for the places that follow.
_KEPT = 64


class _Selection:
    """Hoare's selection: items are parted by one of them, and so is the part with the place.

    Equal items are distinguished by where they were, as in a stable sort. Which item parts them is
    drawn, so that the expected time is linear whatever the order. Those above a place are kept for
    the next ones, so that rising places take the time of a logarithm of their number.

    Parameters
    ----------
    code : Code
    dtype : numpy.dtype
    count : Expression
        How many items a row has.
    """

    def __init__(self, code, dtype, count):
        self._code, self._dtype, self._count = code, dtype, count
        self._keys, self._origins = code.new(dtype, (count,)), code.new(INT64, (count,))
        self._kept = code.new(INT64, (Constant(_KEPT + 1),))
        names = (code.name(stem) for stem in ("l", "h", "a", "s", "t", "e"))
        self._low, self._high, self._place, self._seed, self._top, self._last = names

    def begin(self, value, start):
        """Lines that take the items of a row, from an index on."""
        code, i = self._code, self._code.name("i")
        with code.nest(over(i, self._count)):
            code.add(assign(self._keys.at(i), value.at(start + i)),
                     assign(self._origins.at(i), i))  # fmt: skip
        code.add(
            assign(self._last, 0), assign(self._seed, 1), assign(self._top, 0), assign(self._low, 0)
        )

    def select(self, place):
        """Lines that bring an item to a place; where it was."""
        code, low, high, top, at = self._code, self._low, self._high, self._top, self._place
        code.add(assign(at, place))
        code.fail_if(either(at < 0, at >= self._count))
        with code.nest(when(at < self._last)):
            code.add(assign(low, 0), assign(top, 0))
        code.add(assign(self._last, at))
        kept = self._kept.at(top - 1)
        with code.nest(loop_while(both(top > 0, kept <= at))):
            code.add(assign(low, kept + 1), assign(top, top - 1))
        code.add(assign(high, select(top > 0, kept, self._count)))
        with code.nest(loop_while(both(high - low > 1, low <= at))):
            self._part()
        code.add(assign(low, call("max", low, at + 1)))
        return self._origins.at(at)

    def before(self, item, origin, pivot):
        """A number: whether an item comes before that at a place, without jumps."""
        key, other = self._keys.at(pivot), self._origins.at(pivot)
        return _before(self._dtype, (item, origin), (key, other))

    def origin(self, place):
        """Where the item at a place was."""
        return self._origins.at(place)

    def _part(self):
        """Part the items between two places, without jumps that a processor would have to guess."""
        code, keys, origins = self._code, self._keys, self._origins
        low, high, place, seed, top = self._low, self._high, self._place, self._seed, self._top
        i, j, q, key, origin, x, p = (code.name(stem) for stem in "ijqboxp")
        end = high - 1
        code.add(assign(seed, (seed * 1103515245 + 12345) & 2147483647),
                 assign(j, low + seed % (high - low)),
                 assign(key, keys.at(j)), assign(origin, origins.at(j)),
                 assign(keys.at(j), keys.at(end)), assign(origins.at(j), origins.at(end)),
                 assign(j, low))  # fmt: skip
        with code.nest(over(i, low, end)):
            code.add(assign(x, keys.at(i)), assign(p, origins.at(i)),
                     assign(q, _before(self._dtype, (x, p), (key, origin))),
                     assign(keys.at(i), keys.at(j)), assign(origins.at(i), origins.at(j)),
                     assign(keys.at(j), x), assign(origins.at(j), p), accumulate(j, q))  # fmt: skip
        code.add(assign(keys.at(end), keys.at(j)), assign(origins.at(end), origins.at(j)),
                 assign(keys.at(j), key), assign(origins.at(j), origin),
                 assign(self._kept.at(top), j),
                 accumulate(top, call('int64', j > place) & call('int64', top < _KEPT)),
                 assign(high, select(j < place, high, j)),
                 assign(low, select(j > place, low, j + call('int64', j < place))),
                 )  # fmt: skip

    def release(self):
        """Let the buffers be used again."""
        for block in (self._keys, self._origins, self._kept):
            self._code.release(block.base)


def _before(dtype, one, other) -> Expression:
    """A number: whether one pair of an item and where it was comes before another."""
    (x, p), (key, origin) = one, other
    found = call("int64", x < key) | (call("int64", x.equals(key)) & call("int64", p < origin))
    if dtype.kind == "f":  # NaN is last
        later = call("int64", x.equals(x)) | call("int64", p < origin)
        found = found | call("int64", key.differs(key)) & later
    return found


SELECTED = define(
    "SelectedPlaces",
    _infer_selected,
    _evaluate_selected,
    NotDifferentiable("its result is an index"),
    emit=_emit_selected,
)


def selected_places(rows, wanted):
    """Where in rows the items are that a stable sort brings to some places: in linear time.

    Parameters
    ----------
    rows : array-like or Tensor
        Sorted, each by itself, they would be in order along the last axis.
    wanted : array-like or Tensor of int
        Places in that order: a vector, or one for each row. Rising ones take the least time.
    """
    return apply(SELECTED, [rows, wanted])


def _infer_parted(x, wanted):
    numbers(x)
    return Spec(INT64, x.shape)


def _evaluate_parted(x, wanted):
    order = _in_order(x, wanted)
    places = np.unique(wanted)
    for first, end in zip([0, *(places + 1)], [*places, x.shape[-1]], strict=True):
        order[..., first:end].sort(-1)
    return order


def _emit_parted(code, op) -> None:
    """Items at the places are selected; others then go between those that they come between."""
    x, wanted = op.inputs
    if x.dtype.char not in NUMBERS or x.dtype.kind == "c":
        return code.call_python(op)
    value, places = code.value(x), code.value(wanted)
    *outer, count = value.dimensions
    (number,) = places.dimensions
    found, ends = code.result(op, dimensions=value.dimensions), code.new(INT64, (number + 1,))
    selection = _Selection(code, x.dtype, count)
    row, w, i, item, part, own = (code.name(stem) for stem in ("r", "w", "i", "x", "g", "o"))
    with code.nest(over(row, product(outer))):
        selection.begin(value, row * count)
        code.add(assign(ends.at(0), row * count))
        with code.nest(over(w, number)):
            origin = selection.select(places.at(w))
            place = row * count + places.at(w)
            code.add(assign(found.at(place), origin), assign(ends.at(w + 1), place + 1))
        with code.nest(over(i, count)):
            code.add(assign(item, value.at(row * count + i)), assign(part, 0), assign(own, 0))
            with code.nest(over(w, number)):
                pivot = places.at(w)
                # Those that do not come before it: of one place itself, and what comes after it.
                code.add(accumulate(part, 1 - selection.before(item, i, pivot)))
                code.add(accumulate(own, call("int64", selection.origin(pivot).equals(i)), "|"))
            with code.nest(when(own.equals(0))):
                end = ends.at(part)
                code.add(assign(found.at(end), i), accumulate(end, 1))
    selection.release()
    code.release(ends.base)
    return None


PARTED = define(
    "PartitionedPlaces",
    _infer_parted,
    _evaluate_parted,
    NotDifferentiable("its result are places"),
    emit=_emit_parted,
)


def _sorted(x, axis, name):
    """Items in order, and where they were."""
    x = operand(x)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return apply(SORT, [x], {"axis": one_axis(x, axis)}, name)


@exported(numpy=3)
def sort(
    x: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    stable: bool | None = None,
    name: str | None = None,
) -> Array:
    """The items of each row along an axis in ascending order, NaN last.

    Parameters
    ----------
    x : array-like or Tensor
    axis : int or None, optional
        None sorts the flattened tensor.
    kind, stable : optional
        NumPy's; the order is stable whatever they are.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``. The gradient of an item goes to where it was, of equal ones
        the first to the first.

    Raises
    ------
    InvalidArgumentError
        For an axis that is not there, and for what is not a number.

    Examples
    --------
    >>> nbta.sort([3.0, 1.0, 2.0])
    array([1., 2., 3.])
    >>> nbta.grad(lambda x: nbta.sort(x)[0])(np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    return _sorted(x, axis, name)[0]


@exported(numpy=3)
def argsort(
    x: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    *,
    stable: bool | None = None,
    name: str | None = None,
) -> Array:
    """Indices that sort rows along an axis in ascending order, as `numpy.argsort`.

    Parameters
    ----------
    x, axis, kind, stable
        As for `nbta.sort`.

    Returns
    -------
    Tensor or numpy.ndarray
        Indices, as int64, of the shape of ``x``; equal elements keep their order. They have no
        gradient.

    Raises
    ------
    InvalidArgumentError
        As `nbta.sort`.

    Examples
    --------
    >>> nbta.argsort([3.0, 1.0, 2.0])
    array([1, 2, 0])
    """
    return _sorted(x, axis, name)[1]


@exported(numpy=3)
def partition(
    x: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Rows partitioned along an axis, as `numpy.partition`, in linear time.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers.
    kth : int or Tensor, or sequence of them
        Places where the elements are to be those of the sorted row.
    axis : int or None, default -1
        Axis to partition along; None flattens ``x`` first.
    kind : str, optional
        Accepted for compatibility with NumPy; it has no effect.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the shape and dtype of ``x``. Elements between two places are in the order that they had
        (NumPy says nothing of it). Gradients follow the elements to their places.

    Raises
    ------
    InvalidArgumentError
        As `nbta.sort`, and for a place that the axis does not have.

    Examples
    --------
    >>> nbta.partition([3, 1, 2], 1)
    array([1, 2, 3])
    """
    x, axis, places = _parted(x, kth, axis)
    return take_along_axis(x, places, axis, name=name)


@exported(numpy=3)
def argpartition(
    x: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Indices that partition rows along an axis, as `numpy.argpartition`; they have no gradient.

    Parameters
    ----------
    x, kth, axis, kind
        As for `nbta.partition`.

    Returns
    -------
    Tensor or numpy.ndarray
        Indices, as int64, of the shape of ``x``; between two places they rise.

    Raises
    ------
    InvalidArgumentError
        As `nbta.partition`.

    Examples
    --------
    >>> nbta.argpartition([3, 1, 2], 1)
    array([1, 2, 0])
    """
    return named(_parted(x, kth, axis)[2], name)


#: Places that are selected; where there are more, rows are sorted.
MOST = 64


def _parted(x, kth, axis):
    """The operand, its axis, and the places of its items in partitioned rows."""
    x, kth = _with_places(x, kth, axis)
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, one_axis(x, axis))
    if len(kth) > MOST:
        return x, axis, argsort(x, axis)
    wanted = _from_first(kth, dimensions_of(x)[axis])
    if data_spec(x).rank == 1:
        return x, axis, apply(PARTED, [x, wanted])
    places = apply(PARTED, [moveaxis(x, axis, -1), wanted])
    return x, axis, moveaxis(places, -1, axis)


def _from_first(kth, count):
    """Places as a vector that rises."""
    known = sorted({place for place in kth if not isinstance(place, Tensor)})
    if len(known) == len(kth) and (not known or known[0] >= 0 or known[-1] < 0):
        places = np.array(known, np.int64)
        return places if known and known[0] >= 0 else add(places, count)
    places = stack([cast(place, np.int64) for place in kth])
    return sort(where(greater(0, places), add(places, count), places))


def _with_places(x, kth, axis):
    """The operand, whose axis has the places; of those that a run decides, in a run that fails."""
    x = operand(x)
    shape, places = data_spec(x).shape, []
    dimension = None if shape is None or axis is None else shape[one_axis(x, axis)]
    for place in kth if isinstance(kth, list | tuple | np.ndarray) else (kth,):
        if isinstance(place, Tensor):
            x = _checked_place(x, place, axis)
        else:
            (place,) = integers((place,))
            if type(dimension) is int and not -dimension <= place < dimension:
                raise invalid("index", f"kth: there is no item {place} among {dimension}")
        places.append(place)
    return x, places


def _checked_place(x, place, axis):
    if place.dtype.kind not in "iu" or place.spec.rank not in (0, None):
        raise invalid("index", f"kth must be an integer, not {place!r}")
    dimension = size(x) if axis is None else dimensions_of(x)[one_axis(x, axis)]
    inside = logical_and(greater_equal(place, -dimension), greater(dimension, place))
    return checked(x, inside, "kth: there is no such item along the axis")


@exported(numpy=2)
def lexsort(keys: Sequence[ArrayLike] | Array, axis: int = -1, *, name: str | None = None) -> Array:
    """Indices that sort by several keys, as `numpy.lexsort`; they have no gradient.

    Parameters
    ----------
    keys : sequence of array-like or Tensor
        Keys of one shape. The last one is compared first.
    axis : int, default -1
        Axis to sort along.

    Returns
    -------
    Tensor or numpy.ndarray
        Indices, as int64, of the shape of each key.

    Raises
    ------
    InvalidArgumentError
        As `nbta.sort`, and without keys.

    Examples
    --------
    >>> nbta.lexsort(([1, 2, 3], [1, 0, 1]))
    array([1, 0, 2])
    """
    keys = [operand(key) for key in rows_of(keys)]
    if not keys:
        raise invalid("value", "lexsort: there are no keys; give at least one")
    axis, places = one_axis(keys[0], axis), argsort(keys[0], axis)
    for key in keys[1:]:
        order = argsort(take_along_axis(key, places, axis), axis)
        places = take_along_axis(places, order, axis)
    return named(places, name)


def _infer_search(x, values, *, side):
    numbers(x)
    if x.shape is not None and len(x.shape) != 1:
        message = (
            f"the sorted array has shape {shapes.text(x.shape)}; give one row in ascending order"
        )
        raise invalid("rank", message)
    return Spec(INT64, values.shape)


def _emit_search(code, op) -> None:
    """Halves, until one place is left."""
    x, values = op.inputs
    if x.dtype.char not in NUMBERS or x.dtype.kind == "c":
        return code.call_python(op)
    row, value = code.value(x), code.value(values)
    low, high, middle, item, right = (code.name(stem) for stem in "lhmxq")
    if isinstance(value, Scalar):
        code.add(assign(item, value.item))
        _halve(code, op, row, (low, high, middle, item, right))
        return code.bind(op.outputs[0], Scalar(low, INT64))
    block, i = code.result(op, dimensions=value.dimensions), code.name("i")
    with code.nest(over(i, product(value.dimensions))):
        code.add(assign(item, value.at(i)))
        _halve(code, op, row, (low, high, middle, item, right))
        code.add(assign(block.at(i), low))
    return None


def _halve(code, op, row, names):
    low, high, middle, item, right = names
    pair = row.at(middle), item
    code.add(assign(low, 0), assign(high, row.dimensions[0]))
    with code.nest(loop_while(low < high)):
        code.add(assign(middle, (low + high) // 2))
        if op.attrs["side"] == "left":
            code.add(assign(right, _comes_first(row.dtype, *pair)))
        else:
            code.add(assign(right, 1 - _comes_first(row.dtype, *pair[::-1])))
        code.add(assign(low, select(right.differs(0), middle + 1, low)),
                 assign(high, select(right.differs(0), high, middle)))  # fmt: skip


SEARCH = define(
    "SearchSorted",
    _infer_search,
    lambda x, values, *, side: np.asarray(np.searchsorted(x, values, side), np.int64),
    NotDifferentiable("its result is an index"),
    emit=_emit_search,
)


@exported(numpy=4)
def searchsorted(
    x: ArrayLike,
    values: ArrayLike,
    side: Literal["left", "right"] = "left",
    sorter: ArrayLike | None = None,
    *,
    name: str | None = None,
) -> Array:
    """Where values would stand in a row that is in order, so that it stays so.

    Parameters
    ----------
    x : array-like or Tensor
        Of rank 1, ascending, NaN last. It is not checked.
    values : array-like or Tensor
    side : {"left", "right"}, optional
        Whether before equal ones or after them.
    sorter : array-like or Tensor of int, optional
        The order of ``x``, as `nbta.argsort` gives it, where that is in none.

    Returns
    -------
    Tensor or numpy.ndarray
        Of int64 and the shape of ``values``. There is no gradient.

    Raises
    ------
    InvalidArgumentError
        For another rank than 1, and another side.

    Examples
    --------
    >>> nbta.searchsorted([10, 20, 30], [5, 20, 35])
    array([0, 1, 3])
    """
    if side not in ("left", "right"):
        raise invalid("value", f'side must be "left" or "right", not {side!r}')
    x = operand(x)
    if sorter is not None:  # as long as x, which a run finds
        sorter = operand(sorter)
        dimensions = sorter.shape if isinstance(sorter, np.ndarray) else shape_of(sorter)
        x = take(reshape(x, dimensions), sorter, 0)
    return apply(SEARCH, promoted(x, values), {"side": side}, name)


@exported(numpy=3)
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, name: str | None = None
) -> Array:
    """Index of the bin that each element falls into, as `numpy.digitize`; it has no gradient.

    Parameters
    ----------
    x : array-like or Tensor
        Real numbers, of any shape.
    bins : array-like or Tensor
        Edges of the bins, in ascending or descending order; bin ``i`` ends at edge ``i``.
    right : bool, default False
        Whether a value that equals an edge belongs to the bin that ends there.

    Returns
    -------
    Tensor or numpy.ndarray
        Indices, as int64, of the shape of ``x``.

    Raises
    ------
    InvalidArgumentError
        For edges in no order; in a graph the run raises it if they are not known before.

    Examples
    --------
    >>> nbta.digitize([0.2, 6.4, 3.0], [0.0, 1.0, 2.5, 4.0])
    array([1, 4, 3])
    """
    bins, side = operand(bins), "left" if right else "right"
    rises, falls = rising(bins), rising(bins[::-1])
    bins = checked(bins, logical_or(rises, falls), _UNORDERED)
    down = size(bins) - searchsorted(bins[::-1], x, side)
    return where(rises, searchsorted(bins, x, side), down, name=name)


_UNORDERED = "digitize: the edges are not monotonic; sort them with nbta.sort"


def rising(row):
    """Whether no number of a row is less than the one before."""
    return equal(sum_(greater(row[:-1], row[1:])), 0)


@stands_for("isin", numpy=2)
def _isin(element, test_elements, assume_unique=False, invert=False, *, kind=None):
    """NumPy's: whether each element is among others, by a search among them in order."""
    element, others = promoted(operand(element), reshape(operand(test_elements), (-1,)))
    if element.dtype.kind == "c" or data_spec(others).shape == (0,):
        found = equal(expand_dims(element, -1), others)
        found = greater(sum_(cast(found, np.int64), -1), 0)
    else:
        others = sort(others)
        place = searchsorted(others, element)
        found = equal(take(others, minimum(place, others.shape[0] - 1)), element)
    return logical_not(found) if invert else found
