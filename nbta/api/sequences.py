"""Loops over sequences and numbers: scan, map_fn, vmap, foldl, foldr, fori_loop."""

from __future__ import annotations

import functools
import math
import operator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from nbta import shapes
from nbta.api.tracing import CONVERT, Function, check_writes
from nbta.control.batching import DeclinedError, Own, batched, replayed
from nbta.control.captured import guarded
from nbta.control.control_flow import (
    check_callable,
    in_the_precision,
    leaf_spec,
    options_of,
    taken,
    while_loop,
)
from nbta.errors import PrecisionWarning, invalid
from nbta.frontend.arguments import taken_apart
from nbta.frontend.awaited import note_row
from nbta.frontend.entry import prepared
from nbta.graph.graph import Graph, SubGraph, current
from nbta.graph.operation import Tensor, is_inexact
from nbta.immutable import bodies, computed, frozen
from nbta.locations import warn_caller
from nbta.ops.core.arithmetic import equal, floor_divide, minimum
from nbta.ops.core.axis_arguments import one_axis
from nbta.ops.core.checks import Acts, Order, Unordered, checked, entered, first_token
from nbta.ops.core.dimensions import outside
from nbta.ops.core.dispatch import as_array, as_tensor, building, data_spec, stands_for
from nbta.ops.core.filling import arange
from nbta.ops.core.shaping import CAST, SHAPE, cast, reshape, shape
from nbta.ops.indexing.arranging import moveaxis, ranked
from nbta.ops.indexing.gathering import take
from nbta.ops.indexing.items import GETITEM, getitem
from nbta.ops.indexing.joining import concatenate, stack
from nbta.ops.loops.mapping import add_map, is_closed, row_spec
from nbta.progress import bar
from nbta.structure import describe, layout, leaves, map_leaves, pack, paths
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from nbta.typing import Checkpoint, Compiled, Integer, T

# Rows on several threads: one operation, of which each thread computes some rows.


def as_threads(what: str, parallel_iterations: Any) -> int:
    """How many threads may take part; 1 where nothing is said.

    Raises
    ------
    InvalidArgumentError
        For what is not an integer of 1 or more.
    """
    if parallel_iterations is None:
        return 1
    is_int = hasattr(parallel_iterations, "__index__") and not isinstance(parallel_iterations, bool)
    if not is_int or parallel_iterations < 1:
        message = (
            f"{what}: parallel_iterations must be an integer of 1 or more, not "
            f"{parallel_iterations!r}"
        )
        raise invalid("parallel_iterations", message)
    return int(parallel_iterations)


def map_in_parallel(fn: Any, elems: Any, threads: int, name: str | None) -> Any:
    """What ``fn`` gives for each row, stacked.

    Parameters
    ----------
    fn : callable
    elems : structure of array-like or Tensor
    threads : int
        How many may take part.
    name : str or None

    Returns
    -------
    structure or None
        None where rows must come one after another.
    """
    values = leaves(elems)
    if not values or any(isinstance(value, TensorArray) for value in values):
        return None
    graph = building(*values)
    if graph is None:
        return _outside(fn, elems, threads)
    with graph.as_default(), graph.name_scope(name or "map_fn") as scope:
        return _inside(graph, fn, elems, threads, scope)


def _inside(graph: Any, fn: Any, elems: Any, threads: int, scope: Any) -> Any:
    xs = [as_tensor(value) for value in leaves(elems)]
    if any(x.ndim == 0 for x in xs):
        return None
    body = SubGraph(graph, f"{scope}row")
    with body.as_default():
        rows = pack(elems, [body.parameter(row_spec(x.spec)) for x in xs])
        try:
            with entered(Unordered()):
                given = fn(rows)
        except Acts:  # what rows print comes in their order
            return None
        if any(isinstance(value, SymbolicTensorArray) for value in leaves(given)):
            return None
        body.outputs = [as_tensor(value, body) for value in leaves(given)]
    if not body.outputs or not is_closed(body):
        return None
    check_writes(body, [])
    made = add_map(body, xs, [], (None,) * len(body.outputs), threads, scope)
    return pack(given, made.outputs)


def _outside(fn: Any, elems: Any, threads: int) -> Any:
    """The same as a graph of its own; None where that would have to run rows in order."""
    made: list[Any] = []

    def traced(rows: Any) -> Any:  # once more where what the last trace went by has changed
        with bodies("map_fn"):  # it is one, and arrays from around it stand for tensors
            made[:] = [map_in_parallel(fn, rows, threads, None)]
        return made[0]

    function = Function(traced)
    function.bound(((elems,), {}))
    return None if made[0] is None else function(elems)


# The functions.


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: T,
    xs: Any,
    length: Integer | None = None,
    reverse: bool = False,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> tuple[T, Any]:
    """Run a function along the first axis, carrying a state and stacking results.

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` returns ``(carry, y)``: the next state, with the same structure and dtypes,
        and a result, which may be None or any structure.
    init : structure
        The initial state. A Python float has the precision of the other floats, as in arithmetic,
        or float64 if ``f`` needs that. A float64 array, such as ``np.zeros(2)``, makes all values
        that are computed from it float64; if ``xs`` is float32, that gives a `PrecisionWarning`.
    xs : structure of array-like or Tensor, or None
        The rows to loop over: arrays whose first axes have the same length.
    length : int or Tensor, optional
        Number of steps; required if ``xs`` is None.
    reverse : bool
        Whether to go from the last row to the first.
    name : str, optional
        Name of the loop in the graph.
    checkpoint : int or {"sqrt", "online"}, optional
        Save only some states for gradients, and compute the steps between them again; see
        `while_loop`. For most scans, use "sqrt".
    progress : bool or str
        Whether to show a progress bar of tqdm while the loop runs; a string is its label.

    Returns
    -------
    carry : structure
        The final state.
    ys : structure
        The results stacked along a new first axis; that of row ``t`` is at index ``t``.

    Raises
    ------
    InvalidArgumentError
        If the state changes its structure, dtype or rank, if no length is known, or if
        ``checkpoint`` or ``progress`` is invalid; see `while_loop` for errors of gradients.
    FailedPreconditionError
        With ``progress``, if tqdm is not installed.

    Notes
    -----
    This is JAX's ``jax.lax.scan``, except that the length may be known only when the graph runs.
    Without any steps, the stacked results are empty, with the shapes that ``f`` would return.

    Examples
    --------
    >>> nbta.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))

    A gradient from the memory of about 20 of 100 steps:

    >>> def last(w, xs):
    ...     step = lambda h, x: (nbta.tanh(w * h + x), None)
    ...     return nbta.scan(step, 0.0, xs, checkpoint="sqrt")[0]
    >>> nbta.grad(last)(0.5, np.ones(100))
    np.float64(0.197...)
    """
    check_callable("scan", f=f)
    options = options_of("scan", checkpoint, progress)
    return _loop(guarded(f, "f"), init, xs, length, reverse, name, _Words(), options)


class _Words(NamedTuple):
    """What messages call the function, its arguments, and the next state."""

    what: str = "scan"
    first: str = "init"
    rows: str = "xs"
    following: str = "the carry that f gives"


def _loop(
    f: Any,
    init: Any,
    xs: Any,
    length: Any,
    reverse: bool,
    name: str | None,
    words: _Words,
    options: dict[str, Any],
) -> Any:
    graph = building(*leaves(init), *leaves(xs), length)
    rest = (xs, length, reverse, name, words, options)
    with graph.as_default() if graph is not None else nullcontext():
        warn_of_precision(init, xs, words)
        return in_the_precision(lambda first: _scan(f, first, *rest), init, xs)


def warn_of_precision(init: Any, xs: Any, words: _Words) -> None:
    """Say which first values make a loop over float32 one of float64."""
    found = [v.dtype for v in leaves(xs) if is_inexact(leaf_spec(v).dtype) and hasattr(v, "dtype")]
    if not found or any(np.finfo(dtype).bits > 32 for dtype in found if dtype.kind == "f"):
        return
    if any(dtype.kind == "c" for dtype in found):
        return
    for path, value in zip(paths(init, words.first), leaves(init), strict=True):
        if isinstance(value, TensorArray) or getattr(value, "dtype", None) != np.float64:
            continue
        name = found[0].name
        message = (
            f"{words.what}: {path} is float64 and {words.rows} {name}, so that what is computed "
            f"from both is float64; begin with {name}, as in np.zeros(2, {name!r}), or "
            f"warnings.simplefilter('ignore', nbta.PrecisionWarning) where that is meant"
        )
        warn_caller(message, PrecisionWarning)


def _scan(
    f: Any,
    init: Any,
    xs: Any,
    length: Any,
    reverse: bool,
    name: str | None,
    words: _Words,
    options: dict[str, Any],
) -> Any:
    init, xs = (map_leaves(lambda value: _tensor(value, words), part) for part in (init, xs))
    count = _length(leaves(xs), length, words)
    again = options["checkpoint"] is not None  # rows are read more than once
    rows = [_unstacked(value, count, words, not again) for value in leaves(xs)]
    with bodies(words.what) if current() is None else nullcontext():
        result = _abstract(f, init, xs, words)
    results = [_array_for(spec, count) for spec in result.specs]
    carried = leaves(init)
    names, row_names = paths(init, words.first), [f"a row of {p}" for p in paths(xs, words.rows)]

    def body(t: Any, *values: Any) -> Any:
        state, stacks = values[: len(carried)], values[len(carried) :]
        place = count - 1 - t if reverse else t
        x = pack(xs, [frozen(row.read(place), n) for row, n in zip(rows, row_names, strict=True)])
        carry, y = f(pack(init, map(frozen, state, names)), x)
        written = [s.write(place, v) for s, v in zip(stacks, leaves(y), strict=True)]
        return (t + 1, *leaves(carry), *written)

    first = (np.int32(0), *carried, *results)
    last = _run(body, first, count, name or words.what, options)
    state, stacks = last[1 : 1 + len(carried)], last[1 + len(carried) :]
    results = [computed(_stacked(stack, count)) for stack in stacks]
    return pack(init, state), pack(result.structure, results)


def _stacked(array: Any, count: Any) -> Any:
    """All slots; of an array of a graph so many, as that number may be known."""
    return array.stack() if current() is None else array.gather(arange(count))


def _run(body: Any, first: Any, count: Any, name: str | None, options: dict[str, Any]) -> Any:
    """The loop; outside of graphs, with a bar that knows the number of steps."""
    if current() is not None or options["progress"] is None:
        return while_loop(lambda t, *_: t < count, body, first, name=name, **options)
    with bar(options["progress"], int(count)) as done:
        count_one = functools.partial(np.add, done, 1, out=done)  # bodies may not change arrays

        def counted(*values: Any) -> Any:
            following = body(*values)
            count_one()
            return following

        return while_loop(lambda t, *_: t < count, counted, first)


def _tensor(value: Any, words: _Words) -> Any:
    if isinstance(value, TensorArray):
        if current() is not None and not isinstance(value, SymbolicTensorArray):
            message = (
                f"{words.what}: {value!r} was made outside of the graph; make the TensorArray "
                f"while the graph is being built"
            )
            raise invalid("tensor_array", message)
        return value
    return as_tensor(value) if current() is not None else as_array(value)[()]


def _length(found: Any, length: Any, words: _Words) -> Any:
    """The number of steps, an int32 scalar."""
    what, rows = words.what, words.rows
    if length is None and not found:
        raise invalid("length", f"{what}: {rows} has no arrays; give {_LENGTH.get(what, rows)}")
    for value in found:
        if isinstance(value, TensorArray):
            raise invalid("xs", f"{what}: {rows} has a TensorArray; give its stack()")
        if value.ndim == 0:
            message = f"{what}: {rows} has a scalar, which has no first axis to iterate over"
            raise invalid("xs", message)
    dimensions = [s[:1] for value in found if (s := data_spec(value).shape) is not None]
    known = {n for (n,) in dimensions if type(n) is int}
    if length is not None and not isinstance(length, Tensor):
        known.add(_as_length(length))
    if len(known) > 1:
        message = (
            f"{what}: {rows}{' and length' * (length is not None)} have the lengths "
            f"{sorted(known)}; they must be the same"
        )
        raise invalid("length", message)
    if known:
        return np.int32(known.pop())
    return cast(length if length is not None else shape(found[0])[0], np.int32)


_LENGTH = {"scan": "length"}


def _as_length(length: Any) -> Any:
    try:
        number = operator.index(length)
    except TypeError:
        number = -1
    if number < 0:
        raise invalid("length", f"scan: length must be an integer of 0 or more, not {length!r}")
    return number


def _unstacked(value: Any, count: Any, words: _Words, clear: bool) -> Any:
    dimensions = shapes.public(data_spec(value).shape)
    if dimensions is not None and not _has_length(value, count):
        rows = [count, *value.shape[1:]]
        value = reshape(value, rows, name=f"{words.rows}_of_one_length")
    options = {"element_shape": dimensions and dimensions[1:], "clear_after_read": clear}
    return TensorArray(value.dtype, size=count, **options).unstack(value)


def _has_length(value: Any, count: Any) -> Any:
    """Whether a value is proven to have as many rows as there are steps."""
    if not isinstance(value, Tensor) or not isinstance(count, Tensor):
        dimension = data_spec(value).shape[0]  # type: ignore[index] # who calls this has asked
        return type(dimension) is int and not isinstance(count, Tensor) and dimension == count
    first = outside(count)
    while first.op.record is CAST and first.op.inputs[0].dtype.kind in "iu":
        first = outside(first.op.inputs[0])
    if first.op.record is not GETITEM or first.op.attrs["key"] != (0,):
        return False
    lengths = outside(first.op.inputs[0])
    return lengths.op.record is SHAPE and outside(lengths.op.inputs[0]) is outside(value)


class _Result:
    """What a function gives, found out without running it."""

    def __init__(self, structure: Any) -> None:
        self.structure = structure
        self.specs = [leaf_spec(value) for value in leaves(structure)]


def _abstract(f: Any, init: Any, xs: Any, words: _Words) -> Any:
    """Trace ``f`` once in a graph that is thrown away."""
    outer = current() or Graph()
    graph = SubGraph(outer, "abstract")

    def placeholder(value: Any, drop: Any) -> Any:
        if isinstance(value, TensorArray):
            return _symbolic(value)
        spec = leaf_spec(value)
        pattern = spec.shape if spec.shape is None else spec.shape[drop:]
        return graph.parameter(spec._replace(shape=pattern))

    with graph.as_default(), entered(Order(as_tensor(first_token()))):
        state = map_leaves(lambda value: placeholder(value, 0), init)
        given = f(state, map_leaves(lambda value: placeholder(value, 1), xs))
        if not isinstance(given, tuple) or len(given) != 2:
            message = f"scan: f must return a pair (carry, y), and returns {describe(given)}"
            raise invalid("structure", message)
        _check_carry(init, given[0], words)
        return _Result(given[1])


def _symbolic(array: Any) -> Any:
    """What stands for an array while it is only looked at what a function does."""
    if isinstance(array, SymbolicTensorArray):
        return array
    shape, infer_shape = array.element_shape, array.infer_shape
    return TensorArray(array.dtype, element_shape=shape, infer_shape=infer_shape)


def _check_carry(init: Any, carry: Any, words: _Words) -> None:
    if layout(carry) != layout(init):
        message = (
            f"{words.what}: {words.first} has the structure {describe(init)}, and "
            f"{words.following} has {describe(carry)}; return the same structure"
        )
        raise invalid("structure", message)
    named = zip(paths(init, words.first), leaves(init), leaves(carry), strict=True)
    for path, first, following in named:
        kinds = [isinstance(value, TensorArray) for value in (first, following)]
        if kinds[0] != kinds[1]:
            was, is_ = ("a TensorArray" if kind else "a tensor" for kind in kinds)
            message = (
                f"{words.what}: {path} is {was}, and {words.following} has {is_} there; return "
                f"the same kind"
            )
            raise invalid("structure", message)
        if not kinds[0]:
            _check_state(path, leaf_spec(first), following, words)


def _check_state(path: str, first: Any, following: Any, words: _Words) -> None:
    new = leaf_spec(taken(following, first.dtype))
    if new.dtype != first.dtype:
        message = (
            f"{words.what}: {path} is {first.dtype}, and {words.following} is {new.dtype} there; "
            f"cast it, or begin with {new.dtype}"
        )
        raise invalid("loop_dtype", message)
    if None not in (first.rank, new.rank) and first.rank != new.rank:
        message = (
            f"{words.what}: {path} has shape {shapes.text(first.shape)}, and {words.following} "
            f"has {shapes.text(new.shape)} there; it keeps its rank"
        )
        raise invalid("loop_rank", message)


def _array_for(spec: Any, count: Any) -> Any:
    return TensorArray(spec.dtype, size=count, element_shape=shapes.public(spec.shape))


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    parallel_iterations: int | None = None,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> Any:
    """Apply a function to each row and stack the results.

    Parameters
    ----------
    fn : callable
        ``fn(x)`` takes a row, in the structure of ``elems``, and returns any structure.
    elems : structure of array-like or Tensor
        Arrays whose first axes have the same length.
    parallel_iterations : int, optional
        The maximum number of threads that compute rows once the function is compiled, limited by
        the number of Numba's threads. With 2 or more, gradients compute rows again, and add them in
        an order that depends only on the number of rows. Rows run one after another if ``fn`` uses
        tensor arrays from outside or returns some, and with ``checkpoint`` or ``progress``. Outside
        graphs, each call traces ``fn``.
    name : str, optional
        Name of the loop in the graph.
    checkpoint, progress
        As for `scan`.

    Returns
    -------
    structure
        The results of ``fn``, stacked along a new first axis.

    Raises
    ------
    InvalidArgumentError
        If ``parallel_iterations`` is invalid, or if rows have results of different shapes. The
        message contains the number of the first row that fails.

    Notes
    -----
    This is TensorFlow's ``tf.map_fn``.

    Examples
    --------
    >>> nbta.map_fn(lambda row: nbta.sum(row), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])

    >>> def total(w, x):  # rows on two threads, and their gradients
    ...     return nbta.sum(nbta.map_fn(lambda row: (w * row) ** 2, x, parallel_iterations=2))
    >>> nbta.grad(total)(0.5, np.array([1.0, 2.0, 3.0]))
    np.float64(14.0)
    """
    words = _Words("map_fn", rows="elems")
    options = options_of("map_fn", checkpoint, progress)
    threads = as_threads("map_fn", parallel_iterations)
    check_callable("map_fn", fn=fn)
    fn = guarded(fn, "fn")
    if threads > 1 and not any(options.values()):
        found = map_in_parallel(fn, elems, threads, name)
        if found is not None:
            return found
    return _loop(lambda _, x: ((), fn(x)), (), elems, None, False, name, words, options)[1]


# Rows together, as lanes of operations on batches.

#: So many rows are computed together: code for lanes of a known number needs no loops over them.
LANES = 8


def map_together(
    fn: Any, elems: Any, threads: int = 1, name: str = "map", *, shares: bool = True
) -> Any:
    """What `map_fn` gives, by operations on many rows at once where that is possible.

    Parameters
    ----------
    fn : callable
    elems : structure of Tensor
        With arrays of one length.
    threads : int
        How many may take part.
    name : str
    shares : bool
        Whether rows have most of their work in common.

    Returns
    -------
    structure
        The results of ``fn``, stacked along a new first axis.
    """
    graph: Any = current()
    fn = guarded(fn, "fn")
    xs = [as_tensor(value) for value in leaves(elems)]
    body = SubGraph(graph, graph.unique_name("row"))
    try:
        with body.as_default(), entered(Unordered()):
            rows = [body.parameter(row_spec(x.spec)) for x in xs]
            given = fn(pack(elems, rows))
            body.outputs = [as_tensor(value, body) for value in leaves(given)]
    except Acts:  # what rows print comes in their order
        return map_fn(fn, elems, threads)
    if not is_closed(body):  # a row may write to an array around it, for which no result waits
        return map_fn(fn, elems, threads)
    note_row(body)
    try:
        own = Own(body, rows)
        if not own.pays(body, shares=shares):
            raise DeclinedError
    except DeclinedError:
        return map_fn(lambda rows: pack(given, replayed(body, leaves(rows))), elems, threads)
    found = _by_chunks(body, own, xs, threads, name)
    return pack(given, found)


def _by_chunks(body: Any, own: Any, xs: Any, threads: int, name: str) -> list:
    """Results of a body for `LANES` rows at once, of which the last ones may be the last row."""
    count = shape(xs[0])[0]
    chunks = floor_divide(count + (LANES - 1), LANES)

    def chunk(number: Any) -> list:
        places = minimum(number * LANES + np.arange(LANES), count - 1)
        rows: Any = [moveaxis(take(x, places, 0), 0, -1) for x in xs]
        return [moveaxis(y, -1, 0) for y in batched(body, own, rows, LANES)]

    parts = map_fn(chunk, arange(chunks), threads, name=name)
    whole = [reshape(y, concatenate([stack([chunks * LANES]), shape(y)[2:]])) for y in parts]
    return [getitem(y, slice(0, count)) for y in whole]


@overload
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: None = None,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> Any: ...
@overload
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: T,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> T: ...
def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> Any:
    """Combine rows from the first to the last.

    Parameters
    ----------
    fn : callable
        ``fn(accumulated, x)`` returns the next accumulated value.
    elems : structure of array-like or Tensor
        The rows: arrays whose first axes have the same length.
    initializer : structure, optional
        The initial accumulated value; by default, the first row.
    name : str, optional
        Name of the loop in the graph.
    checkpoint, progress
        As for `scan`.

    Returns
    -------
    structure
        The final accumulated value.

    Notes
    -----
    This is TensorFlow's ``tf.foldl``.

    Examples
    --------
    >>> nbta.foldl(lambda a, x: 10 * a + x, np.array([1, 2, 3]))
    np.int64(123)
    """
    options = options_of("foldl", checkpoint, progress)
    return _fold("foldl", fn, elems, initializer, name, options)


def _fold(
    what: str, fn: Any, elems: Any, initializer: Any, name: str | None, options: dict[str, Any]
) -> Any:
    words = _Words(what, "initializer", "elems", "what fn gives")
    check_callable(what, fn=fn)
    fn = guarded(fn, "fn")
    reverse = what == "foldr"
    if initializer is None:
        rows = map_leaves(lambda value: _row_tensor(value, words), elems)
        first, rest = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
        initializer = map_leaves(lambda value: value[first], rows)
        elems = map_leaves(lambda value: value[rest], rows)
    step = lambda a, x: (fn(a, x), None)  # noqa: E731
    return _loop(step, initializer, elems, None, reverse, name, words, options)[0]


def _row_tensor(value: Any, words: _Words) -> Any:
    value = _tensor(value, words)
    dimensions = data_spec(value).shape
    if dimensions is not None and dimensions[:1] in ((), (0,)):
        message = f"{words.what}: elems has no rows; give initializer, or one row at least"
        raise invalid("xs", message)
    return value


@overload
def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: None = None,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> Any: ...
@overload
def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: T,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> T: ...
def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> Any:
    """Combine rows from the last to the first, as TensorFlow's ``tf.foldr``.

    Parameters
    ----------
    fn, elems, initializer, name, checkpoint, progress
        As for `foldl`.

    Returns
    -------
    structure
        The final carry, as for `foldl`.

    Notes
    -----
    This is TensorFlow's ``tf.foldr``.

    Examples
    --------
    >>> nbta.foldr(lambda a, x: 10 * a + x, np.array([1, 2, 3]))
    np.int64(321)
    """
    options = options_of("foldr", checkpoint, progress)
    return _fold("foldr", fn, elems, initializer, name, options)


def fori_loop(
    lower: Integer, upper: Integer, body: Callable[[Any, T], T], init: T, *, name: str | None = None
) -> T:
    """Repeat a body for the integers from ``lower`` to ``upper - 1``.

    Parameters
    ----------
    lower, upper : int or Tensor
        The bounds. The body does not run if ``upper <= lower``.
    body : callable
        ``body(i, state)`` returns the next state, with the same structure and dtypes; ``i`` is an
        int64.
    init : structure
        The initial state.
    name : str, optional
        Name of the loop in the graph.

    Returns
    -------
    structure like ``init``
        The final state.

    Raises
    ------
    InvalidArgumentError
        If the bounds are not integers, and as for `while_loop`.

    Notes
    -----
    This is JAX's ``jax.lax.fori_loop``. Gradients are exact, also for bounds that are known only
    when the loop runs.

    Examples
    --------
    >>> nbta.fori_loop(1, 6, lambda i, product: product * i, 1)
    np.int64(120)
    """
    check_callable("fori_loop", body=body)
    first, last = (_bound(which, n) for which, n in (("lower", lower), ("upper", upper)))

    def iteration(i: Any, state: Any) -> Any:
        return i + 1, body(i, state)

    return while_loop(lambda i, _: i < last, iteration, (first, init), name=name or "fori_loop")[1]


def _bound(which: str, value: Any) -> Any:
    spec = leaf_spec(value)
    if spec.dtype.kind not in "iu" or spec.shape not in ((), None):
        message = f"fori_loop: {which} is {spec}, and must be one integer"
        raise invalid("length", message)
    return cast(value, np.int64)


def vmap(
    f: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    compiled: Compiled = "auto",
    *,
    parallel_iterations: int | None = None,
    convert: bool = CONVERT,
) -> Function[..., Any]:
    """Make a function of batches from a function of single items.

    Parameters
    ----------
    f : callable
        A function of arguments, each an array or a structure of arrays, that returns such a
        structure.
    in_axes : int, or tuple of (int, None or structure)
        The axis along which arguments are divided into items. A tuple has one entry per positional
        argument: its axis, None if all items share it, or a structure of these for the parts of
        the argument. Arguments by name are divided along their first axis.
    out_axes : int, or structure of int
        The axis along which results are stacked; a structure has an axis for each part of the
        result.
    compiled : {"auto", True, False}
        As for `Session.run`.
    parallel_iterations : int, optional
        The maximum number of threads that compute items, as for `map_fn`.
    convert : bool
        As for `function`.

    Returns
    -------
    callable
        A function of the same arguments, with the additional axis.

    Raises
    ------
    InvalidArgumentError
        If the axes do not fit the arguments or the result. When called: if arguments have different
        numbers of items, or an axis does not exist.

    Notes
    -----
    This is JAX's ``jax.vmap``. A loop of compiled code runs the items, so ``f`` may have loops of
    different lengths and different branches for each item. Where all items take the same way
    through loops that compute numbers, eight items are computed together, in vector registers.
    `jacobian`, `jacfwd` and `hessian` compute derivatives in eight directions together, too, and
    what does not depend on the direction once.

    Examples
    --------
    >>> dots = nbta.vmap(lambda x, y: x @ y, in_axes=(0, None))
    >>> dots(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1.0, 10.0]))
    array([21., 43.])

    >>> axes = {"a": 0, "b": None}
    >>> line = nbta.vmap(lambda p, x: p["a"] * x + p["b"], in_axes=(axes, None))
    >>> line({"a": np.array([1.0, 2.0]), "b": 0.5}, 10.0)
    array([10.5, 20.5])
    """
    threads = as_threads("vmap", parallel_iterations)

    @functools.wraps(f, updated=())  # a dispatcher's own attributes cannot be pickled
    def mapped(*args: Any, **kwargs: Any) -> Any:
        inner = prepared(f, "the function", convert)
        return _mapped(inner, in_axes, out_axes, threads, args, kwargs)

    return Function(mapped, compiled, convert=False, what="vmap")


def _mapped(
    f: Any, in_axes: Any, out_axes: Any, threads: int, args: Any, kwargs: dict[str, Any]
) -> Any:
    axes = in_axes if isinstance(in_axes, tuple | list) else (in_axes,) * len(args)
    if len(axes) != len(args):
        message = f"vmap: in_axes is {in_axes!r} for {len(args)} arguments; give an axis for each"
        raise invalid("batch_axis", message)
    args, kwargs = taken_apart(args), taken_apart(kwargs)
    given = [*zip(map("args[{}]".format, range(len(args))), args, axes, strict=True)]
    given += [(name, value, 0) for name, value in kwargs.items()]
    parts = [
        (path, leaf, axis)
        for name, value, entry in given
        if entry is not None
        for path, leaf, axis in zip(
            paths(value, name),
            leaves(value),
            _axis_of_each(entry, value, "in_axes", name),
            strict=True,
        )
    ]
    if all(axis is None for _, _, axis in parts):
        message = (
            f"vmap: in_axes is {in_axes!r}, so that no argument is divided into items; give an "
            f"axis for one at least"
        )
        raise invalid("batch_axis", message)
    cut = _items_first([part for part in parts if part[2] is not None])

    def item(rows: Any) -> Any:
        rows = iter(rows)
        own = iter([next(rows) if axis is not None else leaf for _, leaf, axis in parts])
        values = [
            value if entry is None else pack(value, [next(own) for _ in leaves(value)])
            for _, value, entry in given
        ]
        return f(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))

    found = map_together(item, cut, threads, shares=False)
    places = _axis_of_each(out_axes, found, "out_axes", "the result")
    if None in places:
        message = "vmap: out_axes has None, and each item has a result; give an axis to stack along"
        raise invalid("batch_axis", message)
    moved = [moveaxis(y, 0, place) for y, place in zip(leaves(found), places, strict=True)]
    return pack(found, moved)


def _axis_of_each(axes: Any, value: Any, what: str, name: str) -> list:
    """The axis of each leaf of a structure, from one for all or a structure of them."""
    if axes is None or (hasattr(axes, "__index__") and not isinstance(axes, bool)):
        return [axes] * len(leaves(value))
    inner: Any = None
    if isinstance(axes, dict) and isinstance(value, dict) and axes.keys() == value.keys():
        keys = sorted(value, key=repr)  # as `leaves` goes through them
        inner = [(axes[key], value[key], f"{name}[{key!r}]") for key in keys]
    both = isinstance(axes, tuple | list) and isinstance(value, tuple | list)
    if both and len(axes) == len(value):
        names = [f"{name}[{i}]" for i in range(len(value))]
        inner = zip(axes, value, names, strict=True)
    if inner is None:
        message = (
            f"vmap: {what} has {axes!r} for {name}, which is {describe(value)}; give an int, or a "
            f"structure like it"
        )
        raise invalid("batch_axis", message)
    return [axis for each in inner for axis in _axis_of_each(each[0], each[1], what, each[2])]


def _items_first(parts: list[tuple[str, Any, Any]]) -> list:
    """Arrays, from pairs of path and value with an axis, with that axis first, of one length."""
    cut: list[Any] = []
    for path, value, axis in parts:
        x: Any = as_tensor(value)
        if x.ndim is not None and not -x.ndim <= axis < x.ndim:
            message = (
                f"vmap: {path} has {x.ndim} axes, and none that is {axis}; give None for it in "
                f"in_axes if all items share it"
            )
            raise invalid("batch_axis", message)
        x = moveaxis(x, axis, 0)
        cut.append(_of_one_length(x, path, parts[0][0], cut[0]) if cut else x)
    return cut


def _of_one_length(x: Any, path: str, first_path: str, first: Any) -> Any:
    """The same items, as many as another argument has."""
    one, other = (None if each.shape is None else each.spec.shape[0] for each in (x, first))
    if x is first or (one is not None and one is other):
        return x
    if type(one) is int and type(other) is int:
        if one == other:
            return x
        told = f"{first_path} has {other}, {path} has {one}"
        raise invalid("batch_length", f"vmap: arguments have different numbers of items: {told}")
    message = f"vmap: {path} and {first_path} have different numbers of items; give the same number"
    return checked(x, equal(shape(x)[0], shape(first)[0]), message)


@stands_for("apply_along_axis", numpy=math.inf)
def _apply_along_axis(func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    """NumPy's: a function of each row along an axis, in one loop over the rows."""
    arr = ranked(arr)
    axis = one_axis(arr, axis)
    rows, f = moveaxis(arr, axis, -1), prepared(func1d, "the function")
    outer = rows.shape[:-1]

    def item(row: Any) -> Any:
        return f(row, *args, **kwargs)

    found = map_fn(item, reshape(rows, (-1, rows.shape[-1])))
    inner = found.shape[1:]
    found = reshape(found, (*outer, *inner))
    back = range(axis, axis + len(inner))
    return moveaxis(found, tuple(range(-len(inner), 0)), tuple(back)) if inner else found
