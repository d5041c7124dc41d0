"""The reference executor: operations one by one, in creation order as far as edges allow.

A `Plan` is what runs, a `Step` what belongs to one run: its arrays, by handles.

A value is dropped after its last use. What then changes some items of an array that nobody else
has, as Python's count of its references tells, changes it where it is; so a loop that fills an
array copies it once, not in each iteration.
"""

import copy
import functools
import itertools
import math
import operator
import re
import sys

import numpy as np

from nbta.errors import InvalidArgumentError, NbtaError, ResourceExhaustedError, invalid
from nbta.execution.batch import Items, one_by_one
from nbta.graph.labels import array_called
from nbta.graph.operation import HANDLE, Operation, Spec
from nbta.graph.order import ordered
from nbta.graph.views import is_loop, origin
from nbta.ops.arrays.tensor_arrays import CREATE, clears
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.loops.bodies import note
from nbta.shapes import Dim
from nbta.tensor_array import TensorArray
from nbta.tuning import CLOCK_LOOK

#: How an operation is called: with its values; to change the first of them, which nobody needs any
#: more; with the step before them; with the step and a list of them that it may use up.
PLAIN, CHANGES, WITH_STEP, TAKES_LIST = range(4)


#: What NumPy's scalars do by themselves, bitwise identical, in 15 to 80 ns where the universal
#: function takes 900; and the dtypes for which both do the same.
_OF_NUMBERS = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.true_divide: operator.truediv,
    np.negative: operator.neg,
    np.less: operator.lt,
    np.less_equal: operator.le,
    np.greater: operator.gt,
    np.greater_equal: operator.ge,
    np.equal: operator.eq,
    np.not_equal: operator.ne,
}
_NUMBERS = {np.dtype(kind) for kind in ("int32", "int64", "float32", "float64")}


def _evaluation(op):
    """What computes an operation's results from its inputs' values."""
    function = op.record.evaluate
    specs = [tensor.spec for tensor in op.inputs]
    if function in _OF_NUMBERS and {spec.shape for spec in specs} == {()}:
        kinds = {spec.dtype for spec in specs}
        if len(kinds) == 1 and kinds <= _NUMBERS:
            function = _OF_NUMBERS[function]
    return _with_attrs(function, op)


def _references(arguments):
    return sys.getrefcount(arguments[0])


def _references_if_alone():
    values = [np.zeros(1)]
    return _references([value for value in values])  # noqa: C416


#: Of an argument of `_references` that a plan's values have besides, and nobody else.
_ALONE = _references_if_alone()


def _make_ours(arguments):
    if not _is_ours(arguments):
        arguments[0] = np.array(arguments[0])


def _is_ours(arguments):
    """Whether the first argument is an array that nobody else can see, and can be changed.

    A view refers to its array, which then has one reference more.
    """
    array = arguments[0]
    plain = type(array) is np.ndarray and array.base is None and array.flags.writeable
    del array
    return plain and _references(arguments) == _ALONE


class Plan:
    """A graph, or a part of it, as a list of calls.

    Parameters
    ----------
    given : list of Tensor
        Whose values each call brings.
    wanted : list of Tensor
        Whose values it returns.
    targets : list of Operation
        What is to run besides.

    Attributes
    ----------
    operations : list of Operation
        In order.
    """

    def __init__(self, given, wanted, targets=()):
        fed = set(given)
        stop = {t.op for t in given if fed.issuperset(t.op.outputs)}
        needed = dict.fromkeys([*(t.op for t in wanted if t not in fed), *targets])
        self.operations = ordered(list(needed), stop)
        self._place = {tensor: i for i, tensor in enumerate(given)}
        self._start = [None] * len(given)
        self._given = len(given)
        self._calls = [self._call(op, fed) for op in self.operations if op.record is not CONSTANT]
        self._wanted = [self._place_of(tensor) for tensor in wanted]
        self._forget()

    def _lengths(self, given):
        """The lengths of what is given, by what stands for them in the graph."""
        pairs = zip(list(self._place)[: self._given], given, strict=True)
        return {
            dimension: length
            for tensor, value in pairs
            for dimension, length in zip(tensor.spec.shape or (), np.shape(value), strict=False)
            if isinstance(dimension, Dim)
        }

    def _place_of(self, tensor):
        if tensor not in self._place:
            self._place[tensor] = len(self._start)
            constant = tensor.op.record is CONSTANT
            self._start.append(as_result(tensor.op.attrs["value"]) if constant else None)
        return self._place[tensor]

    def _call(self, op, fed):
        record = op.record
        inputs = [self._place_of(tensor) for tensor in op.inputs]
        outputs = [-1 if tensor in fed else self._place_of(tensor) for tensor in op.outputs]
        single = outputs[0] if len(outputs) == 1 and not record.several else None
        way = TAKES_LIST if record.takes_list else WITH_STEP if record.effects else PLAIN
        return [_evaluation(op), way, inputs, single, outputs, (), op]

    def _forget(self):
        """Note after each call which values nobody needs any more."""
        kept = {*self._wanted, *(i for i, value in enumerate(self._start) if value is not None)}
        for call in reversed(self._calls):
            _, _, inputs, _, outputs, _, op = call
            used = {*inputs, *outputs} - {-1}
            call[5] = tuple(used - kept)
            if op.record.changes and inputs[0] in call[5] and inputs.count(inputs[0]) == 1:
                call[:2] = _with_attrs(op.record.change, op), CHANGES
            kept |= used

    def __len__(self):
        return len(self._calls)

    def observed(self, observe) -> "Plan":
        """The same, with functions as ``observe(op, function)`` gives them for operations."""
        other = copy.copy(self)
        other._calls = [[observe(call[-1], call[0]), *call[1:]] for call in self._calls]
        return other

    def _begin(self, step, given):
        """Count the operations of a run, and note what lengths it has."""
        if len(given) != self._given:
            message = (
                "run: the graph was changed while it ran; build all of it, gradients too, before "
                "other threads run it"
            )
            raise invalid("changed", message)
        step.count(len(self))
        if step.lengths is None:  # the outermost plan
            step.lengths = self._lengths(given)

    def __call__(self, step, given):
        """Run for the values of what is given; the values of what is wanted."""
        return self.use_up(step, list(given))

    def use_up(self, step, given):
        """The same for a list that is this call's own: arrays that only it has may be changed."""
        self._begin(step, given)
        values, op, arguments = given, None, []
        values += self._start[self._given :]
        try:
            for function, way, inputs, single, outputs, dead, op in self._calls:  # noqa: B007
                arguments = [values[i] for i in inputs]
                if way <= CHANGES:
                    if way:
                        _make_ours(arguments)
                    result = function(*arguments)
                elif way == WITH_STEP:
                    result = function(step, *arguments)
                else:
                    _drop(values, dead)
                    result = function(step, arguments)
                if single is not None:
                    values[single] = result
                else:
                    _put(values, outputs, result)
                for place in dead:
                    values[place] = None
                result = None  # it would be a reference more
        except Exception as error:
            raise _located(_by_rule(error, op, arguments), op) from error.__cause__
        found = [values[i] for i in self._wanted]
        values.clear()  # whoever gave the list may still hold it
        return found


def _put(values, places, results):
    for place, value in zip(places, results, strict=True):
        values[place] = value


def _drop(values, places):
    for place in places:
        values[place] = None


def _with_attrs(function, op):
    return functools.partial(function, **op.attrs) if op.attrs else function


def _by_rule(error, op, values):
    """What the shape rule of the operation says to the values, where it refuses them too."""
    known = isinstance(error, NbtaError | MemoryError) or not isinstance(error, _CONVERTED)
    if known or op.record.effects or op.record.foreign:
        return error
    try:
        op.record.infer(*(Spec(np.asarray(v).dtype, np.shape(v)) for v in values), **op.attrs)
    except NbtaError as refusal:
        return refusal
    return error


def _located(error, op: Operation):
    """The error as nbta's own, with the operation; those of users' functions stay as they are."""
    where = f"(operation {op.name!r}, {op.type})"
    if not getattr(error, "nbta_line", False):
        error.nbta_line = op.record.foreign or op.location is not None
        error.nbta_from = None if op.record.foreign else op.location
        if op.location is not None and not op.record.foreign:
            error.add_note(f"({_line(error, op.location)})")
    if isinstance(error, NbtaError):
        if not _has_place(error):
            _name_item(error, op)
            _name_array(error, op)
            note(error, where)
        return error
    if _has_place(error):
        return error
    if op.record.foreign or not isinstance(error, _CONVERTED):
        note(error, where)
        return error
    kind = ResourceExhaustedError if isinstance(error, MemoryError) else InvalidArgumentError
    made = kind(f"{error} {where}")
    made.reason, made.nbta_place = "run_time", True
    made.nbta_from = getattr(error, "nbta_from", None)
    return made


def _line(error, location):
    """A line, with its text for an error about an index."""
    text = getattr(location, "text", "") if getattr(error, "reason", "") in _OF_INDICES else ""
    return f"{location}: {text}" if text else str(location)


def _name_item(error, op):
    """Begin an error about an index with the item as the user wrote it, such as ``path[t + 1]``."""
    item = getattr(op.location, "item", None) if error.reason in _OF_INDICES else None
    if item is not None:
        error.args = (f"{item}: {error}",)


def _name_array(error, op):
    """Call an array without a name by the variable that it was assigned to, where that is known."""
    if not op.inputs or op.inputs[0].kind != HANDLE or not error.args:
        return
    create = origin(op.inputs[0]).op
    while create.inputs and create.inputs[0].kind == HANDLE and not is_loop(create):
        create = origin(create.inputs[0]).op  # the forward array of a gradient array
    label = array_called(create) if create.record is CREATE else None
    if label is not None:
        named = _UNNAMED.sub(rf" on {label} (\1):", str(error.args[0]), count=1)
        error.args = (named, *error.args[1:])


_UNNAMED = re.compile(r" on (TensorArray_\d+\S*):")
_OF_INDICES = {"index", "read_out_of_range"}
_CONVERTED = (ArithmeticError, IndexError, MemoryError, TypeError, ValueError)


def _has_place(error):
    """Whether the innermost operation is named already."""
    seen = getattr(error, "nbta_place", False)
    error.nbta_place = True
    return seen


def body_function(body):
    """The plan of a sub-graph, made again when the graph has changed."""
    found = body.cache.get("plan")
    if found is None or found[0] != body.version:
        found = body.version, Plan(body.inputs, body.outputs)
        body.cache["plan"] = found
    return found[1]


def as_result(value):
    """A value as users get it: arrays, and scalars for rank 0."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


#: What errors call a row.
ROW = "row {} of map_fn"


class TooLongError(Exception):
    """A run takes so long that it pays to compile the program."""


class Step:
    """The container of a run.

    Parameters
    ----------
    deadline : Deadline, optional
        When it has taken so long that it is to be compiled.

    Attributes
    ----------
    operations : int
        How many it took.
    lengths : dict or None
        By `Dim`, those of what the run was given, once it began.
    """

    def __init__(self, deadline=None):
        self.operations, self._deadline = 0, deadline
        self._look = math.inf if deadline is None else CLOCK_LOOK
        self._arrays: list[TensorArray] = []
        self._gradients: dict[tuple[int, str], int] = {}
        self._staying: set[tuple[int, str]] = set()
        self._functions = {}
        self.lengths = None
        self._numbers = itertools.count()

    def count(self, operations: int) -> None:
        """Count operations, and stop the run where it takes too long to go on one by one.

        Raises
        ------
        TooLongError
        """
        self.operations += operations
        if self.operations > self._look:
            if self._deadline.is_over():
                raise TooLongError
            self._look = self.operations + CLOCK_LOOK

    @property
    def is_limited(self) -> bool:
        """Whether it may take so long only."""
        return self._deadline is not None

    def foresee(self, iterations: int, *bodies) -> None:
        """Stop a limited run before a loop that would take too long, not half-way in it.

        Raises
        ------
        TooLongError
        """
        operations = iterations * sum(len(body_function(body)) for body in bodies)
        if self._deadline.is_over(operations):
            raise TooLongError

    def add(self, array: TensorArray) -> int:
        """Keep an array; its handle's value."""
        self._arrays.append(array)
        return len(self._arrays) - 1

    def number(self) -> int:
        """One that this run has not given before."""
        return next(self._numbers)

    def array(self, handle) -> TensorArray:
        """The array of a handle.

        Raises
        ------
        InvalidArgumentError
            For the handle of another run.
        """
        if not 0 <= handle < len(self._arrays):
            raise invalid("handle", f"there is no array {handle} in this run; handles end with it")
        return self._arrays[handle]

    def gradient(self, handle, source: str, clear_after_read=None, stays=False, grows=False) -> int:
        """The handle of a gradient array, looked up or made.

        ``stays``: later lookups find it also once the other array is closed. ``grows``: so does
        the gradient array, where it is written past the end.
        """
        key = (handle, source)
        array = self.array(handle)
        if stays:
            self._staying.add(key)
        if key not in self._gradients or (array.closed and key not in self._staying):
            clear = clears(clear_after_read, array.is_gradient)
            made = array.grad(source, clear_after_read=clear)
            if grows:
                made._let_grow()
            self._gradients[key] = self.add(made)
        return self._gradients[key]

    def each(self, graph, shared, columns, sums, threads) -> list:
        """Results of a body for many inputs; see `nbta.execution.batch.run_batch`."""
        run, items = self.function(graph), Items(shared, columns, ROW)
        return one_by_one(items, lambda item: run(self, items.given(item)), sums, [1] * len(sums))

    def function(self, body):
        """What runs a sub-graph, and uses up the list of values that it is given.

        It is found once a run, as a graph may grow between runs.
        """
        if body not in self._functions:
            self._functions[body] = body_function(body).use_up
        return self._functions[body]
