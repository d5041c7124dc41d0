"""Which items of a function's result may depend on which items of an argument.

A graph is run with sets in place of the values that depend on the argument (J. Bezanson et al. call
this non-standard interpretation; A. Griewank and A. Walther, "Evaluating Derivatives", 2008,
section 7.1, propagation of index domains). What is known, such as indices and counts of iterations,
is computed as ever, so that an operation that moves items moves the numbers of their sets, and a
loop goes as often as it will. Where a choice is not known, all that may be chosen is in the set: a
pattern may have an item that is always zero, but never misses one.

Sets are not computed as the graph runs. A set is a number, and a union a new one, which knows its
parts; from the results one looks down to the items. So a loop of unknown length needs no fixed
point: the set of a variable is the union of its first value and of what an iteration makes of it,
itself.
"""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from nbta.errors import NbtaError
from nbta.graph.dependence import connections
from nbta.graph.operation import DATA, HANDLE, TABLE, Operation, Spec, Tensor
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop
from nbta.kernels.sparse_patterns import reach
from nbta.ops.arrays import tensor_arrays as arrays
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.loops import residuals
from nbta.ops.loops.branch import CASE, choose
from nbta.ops.loops.loop import WHILE
from nbta.ops.loops.mapping import MAP
from nbta.shapes import Dim

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


#: What NumPy and Python raise for values that do not fit.
_REFUSALS = ArithmeticError, IndexError, TypeError, ValueError


class UnclearError(Exception):
    """The pattern is not known: what the text says is known to the run alone."""


def pattern_of(
    result: Tensor, inputs: Sequence[Tensor], values: Sequence[Any], place: int
) -> tuple[np.ndarray, np.ndarray]:
    """The items of a result that may depend on items of an input.

    Parameters
    ----------
    result : Tensor
        Of real floats.
    inputs : sequence of Tensor
        All that the graph is given.
    values : sequence of numpy.ndarray or tuple
        Of each input its value, for all of which the pattern must hold, or just its shape.
    place : int
        Which input.

    Returns
    -------
    ends, items : numpy.ndarray
        Rows in compressed form, one for each item of the result: the items of the input that it
        may depend on, in order.

    Raises
    ------
    UnclearError
        Where operations have no bounds that are known.
    """
    shapes = [value if isinstance(value, tuple) else value.shape for value in values]
    interpreter = _Interpreter(inputs, shapes, int(np.prod(shapes[place])))
    given = [Dependent(np.zeros(v, np.int64)) if isinstance(v, tuple) else v for v in values]
    given[place] = Dependent(np.arange(1, interpreter.sets.count + 1).reshape(shapes[place]))
    try:
        (found,) = interpreter.run(inputs, given, [result])
    except (NbtaError, *_REFUSALS) as error:  # of what a run may never come to
        raise UnclearError(str(error)) from error
    return interpreter.sets.rows(_sets_of(found))


class Sets:
    """Sets of so many items, by number: 0 is empty, k the set of item k - 1, others are unions."""

    def __init__(self, count: int) -> None:
        self.count, self._last = count, count
        self._unions: list[Any] = [[]]  # arrays of rows of parts; lists of pairs

    def new(self, parts: np.ndarray) -> np.ndarray:
        """A union for each row of numbers; the rows may be filled in later."""
        start = self._last + 1
        self._last += len(parts)
        self._unions += [parts, []]
        return np.arange(start, self._last + 1)

    def union(self, one: Any, other: Any) -> Any:
        """Item by item, of two arrays that are broadcast."""
        if not one.ndim and not other.ndim:  # ten times as fast, in loops over items
            if one == other or not other:
                return one
            if not one:
                return other
            self._last += 1
            self._unions[-1].append((one, other))
            return np.int64(self._last)
        one, other = np.broadcast_arrays(one, other)
        differ = (one != other) & (one != 0) & (other != 0)
        if not differ.any():
            return np.maximum(one, other)
        return self._put(np.maximum(one, other), differ, np.stack([one[differ], other[differ]], 1))

    def merged(self, sets: np.ndarray, axes: tuple[int, ...] | None = None) -> np.ndarray:
        """The unions along some axes, by default along all."""
        axes = tuple(range(sets.ndim)) if axes is None else axes
        rest = [axis for axis in range(sets.ndim) if axis not in {a % sets.ndim for a in axes}]
        shape = tuple(sets.shape[axis] for axis in rest)
        taken = [axis for axis in range(sets.ndim) if axis not in rest]
        rows = sets.transpose(*rest, *taken).reshape(*shape, -1)
        if not rows.shape[-1]:
            return np.zeros(shape, np.int64)
        largest = rows.max(-1)
        differ = ((rows != 0) & (rows != largest[..., None])).any(-1)
        return self._put(largest, differ, rows[differ])

    def _put(self, result, differ, parts):
        result = np.asarray(result)
        result[differ] = self.new(parts)
        return result

    def rows(self, sets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sets as compressed rows: where each begins, and the items of all."""
        unions = [np.array(parts, np.int64) for parts in self._unions if len(parts)]
        widths = [np.full(len(parts), parts.shape[1]) for parts in unions]
        first = np.concatenate([np.zeros(1, np.int64), *widths]).cumsum()
        parts = [parts.ravel() for parts in unions]
        parts = np.concatenate([np.zeros(0, np.int64), *parts])
        return reach(sets.ravel(), self.count, first, parts)


class Dependent:
    """In place of a value that is not known: for each item the set that it may depend on."""

    __slots__ = ("sets",)

    def __init__(self, sets: Any) -> None:
        self.sets = sets if isinstance(sets, np.generic) else np.asarray(sets)


class _Array:
    """In place of a tensor array."""

    def __init__(self, forward: _Array | None = None) -> None:
        self.slots: dict[int, Any] = {}
        self.size, self.forward = 0, forward
        self.gradients: dict[str, _Array] = {}


def _is_known(value):
    return not isinstance(value, Dependent | _Array)


_EMPTY = np.int64(0)


def _sets_of(value):
    if isinstance(value, Dependent):
        return value.sets
    shape = np.shape(value)
    return np.zeros(shape, np.int64) if shape else _EMPTY


def _shape(value):
    return np.shape(value) if _is_known(value) else value.sets.shape


#: By record: ``rule(interpreter, op, *values)`` gives results, None where it has nothing to say.
_RULES: dict[Any, Callable] = {}


def _rule(*records):
    """Say that a function is the rule of some records, or of those of some names."""

    def put(function):
        _RULES.update((TABLE[r] if isinstance(r, str) else r, function) for r in records)
        return function

    return put


class _Interpreter:
    """A run with sets.

    Attributes
    ----------
    sets : Sets
    """

    def __init__(self, inputs, shapes, count):
        self.sets = Sets(count)
        self._orders = {}
        self._uncertain = set()  # arrays that are not to be written to
        self._arrays = []
        self.numbers = itertools.count()
        self._lengths = {
            n: length
            for tensor, shape in zip(inputs, shapes, strict=True)
            for n, length in zip(tensor.spec.shape or (), shape, strict=True)
            if isinstance(n, Dim)
        }

    def run(self, inputs, given, wanted) -> list:
        """The values of tensors of a graph."""
        values = dict(zip(inputs, given, strict=True))
        key = tuple(wanted)
        if key not in self._orders:
            self._orders[key] = [op for op in ordered([t.op for t in wanted]) if not op.record.fed]
        for op in self._orders[key]:
            found = self._results(op, [values[tensor] for tensor in op.inputs])
            values.update(zip(op.outputs, found, strict=True))
        return [values[tensor] for tensor in wanted]

    def body(self, body, given) -> list:
        """The results of a body."""
        return self.run(body.inputs, given, body.outputs)

    def _results(self, op: Operation, values: list) -> Sequence:
        record = op.record
        if record is CONSTANT:
            return [op.attrs["value"]]
        if record.pure and record is not residuals.EMPTY and all(map(_is_known, values)):
            found = record.evaluate(*values, **op.attrs)
            return found if record.several or len(op.outputs) != 1 else [found]
        rule = _RULES.get(record)
        found = None if rule is None else rule(self, op, *values)
        if found is None:
            found = self._by_traits(op, values)
        if all(tensor.spec.differentiable for tensor in op.outputs):
            return list(found)
        return [
            Dependent(np.zeros(_shape(value), np.int64))
            if isinstance(value, Dependent) and not tensor.spec.differentiable
            else value
            for tensor, value in zip(op.outputs, found, strict=True)
        ]

    def _by_traits(self, op, values):
        """Results of an operation of which its record says enough."""
        record = op.record
        if record.effects:
            raise UnclearError(f"{op.type} has no rule")
        sets = list(map(_sets_of, values))
        if record.elementwise:
            return [Dependent(functools.reduce(self.sets.union, sets))]
        places = range(len(values)) if record.linear is True else record.linear or ()
        others = [value for k, value in enumerate(values) if k not in places]
        if (record.moves or record.selects) and all(map(_is_known, others)):
            given = [sets[k] if k in places else value for k, value in enumerate(values)]
            found = record.evaluate(*given, **op.attrs)
            return map(Dependent, found if isinstance(found, tuple | list) else [found])
        if record.changes:  # at places that are not known
            anywhere = self.sets.merged(sets[places[-1]])
            return [Dependent(self.sets.union(sets[0], anywhere))]
        return self.mixed(op, values)

    def mixed(self, op, values):
        """Results each item of which may depend on all items of all inputs."""
        specs = [
            Spec(tensor.dtype, _shape(value), tensor.kind)
            for tensor, value in zip(op.inputs, values, strict=True)
        ]
        found = op.record.infer(*specs, **op.attrs)
        found = [found] if isinstance(found, Spec) else found
        by_input = dict(zip(op.inputs, values, strict=True))
        return [
            Dependent(np.broadcast_to(self.all_of(by_input[t] for t in ways), self.shape(spec)))
            for spec, ways in zip(found, connections(op), strict=True)
        ]

    def all_of(self, values):
        """The union of all items of values."""
        return self.sets.merged(np.concatenate([[0], *(_sets_of(v).ravel() for v in values)]))

    def shape(self, spec):
        """The shape of a spec, with the lengths of this run."""
        found = [self._lengths.get(n) if isinstance(n, Dim) else n for n in spec.shape or ()]
        if spec.shape is None or None in found:
            raise UnclearError(f"only the run knows the shape {spec}")
        return tuple(found)

    def stacked(self, values):
        """Values along a new first axis."""
        if all(map(_is_known, values)):
            return np.stack(values)
        if len(set(map(_shape, values))) > 1:
            raise UnclearError("shapes differ")
        return Dependent(np.stack(list(map(_sets_of, values))))

    def either(self, values):
        """What may be any one of some values."""
        first = values[0]
        if all(value is first for value in values):
            return first
        if any(isinstance(value, _Array) for value in values):
            raise UnclearError("a branch chooses an array")
        if len(set(map(_shape, values))) > 1:
            raise UnclearError("the shape is one or the other")
        if all(map(_is_known, values)) and all(map(functools.partial(_same, first), values)):
            return first
        return Dependent(functools.reduce(self.sets.union, map(_sets_of, values)))

    def perhaps(self, function):
        """What a function gives that runs or not: it must not write to arrays that there are."""
        before = self._uncertain
        self._uncertain = set(self._arrays)
        try:
            return function()
        finally:
            self._uncertain = before

    def new_array(self, **options) -> _Array:
        """Another array."""
        self._arrays.append(_Array(**options))
        return self._arrays[-1]

    def put(self, array, index, value):
        """Write to a slot, or add to that of a gradient array."""
        if array in self._uncertain:
            raise UnclearError("whether an array is written to is not known")
        if not _is_known(index):
            raise UnclearError("the slot that is written is not known")
        index = int(index)
        if array.forward is not None and index in array.slots:
            value = Dependent(self.sets.union(_sets_of(array.slots[index]), _sets_of(value)))
        array.slots[index] = value
        array.size = max(array.size, index + 1)

    def get(self, array, index, spec):
        """A slot; zeros where nothing was written."""
        if not _is_known(index):
            raise UnclearError("the slot that is read is not known")
        index = int(index)
        if index in array.slots:
            return array.slots[index]
        if array.forward is not None and index in array.forward.slots:
            return np.zeros(_shape(array.forward.slots[index]), spec.dtype)
        return np.zeros(self.shape(spec), spec.dtype)


def _same(one, other):
    return np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype


# Loops and branches.


@_rule(WHILE)
def _while(run, op, *values):
    """Iterations one by one, as long as it is known that there is another one."""
    loop = Loop(op)
    state, captured = list(values[: loop.count]), list(values[loop.count :])
    while True:
        (goes_on,) = run.body(loop.cond, [*state, *captured])
        if not _is_known(goes_on):
            return run.perhaps(functools.partial(_any_number, run, loop, state, captured))
        if not goes_on:
            return state
        state = run.body(loop.body, [*state, *captured])


def _any_number(run, loop, state, captured):
    """Variables after any number of iterations: unions of which the next value is a part."""
    changing = [v for v in loop.variables() if not v.is_kept and v.first.kind == DATA]
    if any(v.first.kind == HANDLE for v in loop.variables() if not v.is_kept):
        raise UnclearError("an iteration makes an array")
    unions, state = [], list(state)
    for variable in changing:
        sets = _sets_of(state[variable.place])
        parts = np.stack([sets.ravel(), np.zeros(sets.size, np.int64)], 1)
        unions.append(parts)
        state[variable.place] = Dependent(run.sets.new(parts).reshape(sets.shape))
    following = run.body(loop.body, [*state, *captured])
    for variable, parts in zip(changing, unions, strict=True):
        if _shape(following[variable.place]) != state[variable.place].sets.shape:
            raise UnclearError("shapes change in a loop")
        parts[:, 1] = _sets_of(following[variable.place]).ravel()
    return state


@_rule(CASE)
def _case(run, op, index, *captured):
    branches = Branch(op).branches
    if _is_known(index):
        return run.body(choose(np.asarray(index), branches), captured)
    ways = [run.perhaps(functools.partial(run.body, branch, captured)) for branch in branches]
    return list(map(run.either, zip(*ways, strict=True)))


@_rule(MAP)
def _map(run, op, *values):
    body, rows, likes = (op.attrs[name] for name in ("body", "rows", "likes"))
    cut, shared = values[:rows], values[rows:]
    count = _shape(cut[0])[0]
    if not count:
        raise UnclearError("a map has no rows")
    found = []
    for k in range(count):
        row = [v[k] if _is_known(v) else Dependent(v.sets[k]) for v in cut]
        found.append(run.body(body.graph, [*row, *shared]))
    return [
        run.stacked(column)
        if like is None or like < rows
        else Dependent(run.sets.merged(np.stack(list(map(_sets_of, column))), (0,)))
        for column, like in zip(zip(*found, strict=True), likes, strict=True)
    ]


# Arrays.

_FLOW = arrays.FLOW_VALUE


def _element(attrs):
    known = attrs.get("known")
    return Spec(attrs["dtype"], attrs.get("element_shape") if known is None else known)


@_rule(arrays.CREATE)
def _create(run, op, size):
    array = run.new_array()
    if not _is_known(size):
        raise UnclearError("the size of an array is not known")
    array.size = int(size)
    return [array, _FLOW]


@_rule(arrays.ITERATION)
def _number(run, op):
    return [np.int64(next(run.numbers))]


@_rule(arrays.LOOKUP)
def _lookup(run, op, array, flow, *iteration):
    source = "#".join([op.attrs["source"], *map(str, iteration)])
    if source not in array.gradients:
        array.gradients[source] = run.new_array(forward=array)
        array.gradients[source].size = array.size
    return [array.gradients[source], _FLOW]


@_rule(arrays.SIZE)
def _size(run, op, array, flow):
    return [np.int32(array.size)]


@_rule(arrays.CLOSE)
def _close(run, op, array):
    return []


@_rule(arrays.WRITE)
def _write(run, op, array, index, value, flow):
    run.put(array, index, value)
    return [_FLOW]


@_rule(arrays.READ)
def _read(run, op, array, index, flow):
    return [run.get(array, index, _element(op.attrs))]


@_rule(residuals.EMPTY)
def _empty_tape(run, op):
    return [run.new_array()]


@_rule(residuals.SAVE, residuals.ADD_SAVED)
def _save(run, op, tape, index, value):
    have = tape.slots.get(int(index)) if _is_known(index) else None
    if isinstance(have, _Array):  # a shadow of an inner loop's tape, which others add to
        for slot, part in value.slots.items():
            run.put(have, slot, part)
    else:
        run.put(tape, index, value)
    return [tape]


@_rule(residuals.RESTORE)
def _restore(run, op, tape, index):
    missing = op.outputs[0].spec.is_tape and _is_known(index) and int(index) not in tape.slots
    if missing:
        tape.slots[int(index)] = run.new_array(forward=tape.forward.slots[int(index)])
    return [run.get(tape, index, _element(op.attrs))]


@_rule(residuals.SHADOW)
def _shadow(run, op, tape):
    return [run.new_array(forward=tape)]


@_rule(arrays.SCATTER)
def _scatter(run, op, array, indices, value, flow):
    if not _is_known(indices):
        raise UnclearError("the slots that are written are not known")
    count = _shape(value)[0] if op.attrs.get("unstacks") else len(indices)
    for k in range(count):
        row = value[k] if _is_known(value) else Dependent(value.sets[k])
        run.put(array, k if op.attrs.get("unstacks") else indices[k], row)
    return [_FLOW]


@_rule(arrays.GATHER)
def _gather(run, op, array, indices, flow):
    if not _is_known(indices):
        raise UnclearError("the slots that are read are not known")
    element = _element(op.attrs)
    if not len(indices):
        return [np.zeros((0, *run.shape(element)), element.dtype)]
    return [run.stacked([run.get(array, index, element) for index in indices])]


# Operations that depend on their inputs alone.


@_rule("Shape")
def _shape_of(run, op, x):
    return [np.array(_shape(x), op.outputs[0].dtype)]


@_rule("Size")
def _size_of(run, op, x):
    return [np.asarray(np.prod(_shape(x)), op.outputs[0].dtype)[()]]


@_rule("LogicalAnd")
def _and(run, op, one, other):
    """Also where one is not known, and the other is false: ``i < n and not found``."""
    return _decided(one, other, by=False)


@_rule("LogicalOr")
def _or(run, op, one, other):
    return _decided(one, other, by=True)


def _decided(*values, by):
    if any(map(_shape, values)):
        return None
    return [np.bool_(by)] if any(_is_known(v) and bool(v) is by for v in values) else None


@_rule("Mul")
def _product(run, op, one, other):
    """Without what is multiplied by a constant that is zero."""
    sets = [_sets_of(one), _sets_of(other)]
    for constant, place in ((one, 1), (other, 0)):
        if _is_known(constant):
            zero = np.equal(constant, 0)
            sets[place] = np.where(zero, _EMPTY, sets[place]) if zero.any() else sets[place]
    return [Dependent(run.sets.union(*sets))]


@_rule("Where")
def _where(run, op, condition, one, other):
    if not _is_known(condition):
        return None
    return [Dependent(np.where(condition, _sets_of(one), _sets_of(other)))]


@_rule("Sum", "Mean", "Max", "Min", "Prod", "LogSumExp")
def _reduction(run, op, x):
    axis, keepdims = op.attrs["axis"], op.attrs["keepdims"]
    axes = tuple(range(x.sets.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    found = run.sets.merged(x.sets, axes)
    return [Dependent(np.expand_dims(found, axes) if keepdims else found)]


@_rule("Softmax", "LogSoftmax")
def _along(run, op, x):
    axis = op.attrs["axis"]
    axes = tuple(range(x.sets.ndim)) if axis is None else tuple(np.atleast_1d(axis).tolist())
    found = np.expand_dims(run.sets.merged(x.sets, axes), axes)
    return [Dependent(np.broadcast_to(found, x.sets.shape))]


@_rule("CumSum")
def _cumulative(run, op, x):
    sets = np.moveaxis(x.sets, op.attrs["axis"], 0)
    sets = sets[::-1] if op.attrs["reverse"] else sets
    found = list(itertools.accumulate(sets, run.sets.union))
    found = np.stack(found) if found else sets
    found = found[::-1] if op.attrs["reverse"] else found
    return [Dependent(np.moveaxis(found, 0, op.attrs["axis"]))]


@_rule("SumTo")
def _sum_to(run, op, x, shape):
    if not _is_known(shape):
        return None
    sets, shape = x.sets, tuple(map(int, shape))
    more = sets.ndim - len(shape)
    axes = [*range(more), *(more + k for k, n in enumerate(shape) if n == 1)]
    return [Dependent(run.sets.merged(sets, tuple(axes)).reshape(shape))]


@_rule("AddItem")
def _add_item(run, op, x, value, *scalars):
    if not all(map(_is_known, scalars)) or any(map(np.ndim, scalars)):
        return None
    sets, item = _sets_of(x), TABLE["GetItem"].evaluate
    total = run.sets.union(item(sets, *scalars, **op.attrs), _sets_of(value))
    return [Dependent(TABLE["SetItem"].evaluate(sets, total, *scalars, **op.attrs))]


#: Items up to which products with constants look at each.
_LARGEST = 1 << 24


@_rule("MatMul")
def _matrix_product(run, op, a, b):
    """Rows by columns; of constants the items that are not zero."""
    parts = [_sets_of(a), _sets_of(b)]
    one, other = (_shape(a) or (1,)), (_shape(b) or (1,))
    rows, columns = len(one) > 1, len(other) > 1
    left = parts[0] if rows else parts[0][None, :]
    right = parts[1] if columns else parts[1][:, None]
    if _is_known(a) and right.size * left.shape[-2] <= _LARGEST:
        mask = np.asarray(a if rows else a[None, :])[..., :, :, None] != 0
        found = run.sets.merged(np.where(mask, right[..., None, :, :], 0), (-2,))
    elif _is_known(b) and left.size * right.shape[-1] <= _LARGEST:
        mask = np.asarray(b if columns else b[:, None])[..., None, :, :] != 0
        found = run.sets.merged(np.where(mask, left[..., :, :, None], 0), (-2,))
    else:
        by_row, by_column = run.sets.merged(left, (-1,)), run.sets.merged(right, (-2,))
        found = run.sets.union(by_row[..., :, None], by_column[..., None, :])
    found = found if rows else found[..., 0, :]
    return [Dependent(found if columns else found[..., 0])]


@_rule("Outer")
def _outer(run, op, a, b):
    return [Dependent(run.sets.union(_sets_of(a)[:, None], _sets_of(b)[None, :]))]
