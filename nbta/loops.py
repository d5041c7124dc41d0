"""Loops over the first axis: scan, map_fn, foldl, foldr."""

import numpy as np

from nbta import shapes
from nbta.control_flow import while_loop
from nbta.errors import invalid
from nbta.graph.graph import Graph, SubGraph, current
from nbta.graph.operation import Tensor
from nbta.loop_variables import leaf_spec
from nbta.ops.dispatch import as_tensor, building
from nbta.ops.shaping import cast, shape
from nbta.structure import describe, layout, leaves, map_leaves, pack
from nbta.tensor_array import TensorArray


def scan(f, init, xs, length=None, reverse=False, name=None):
    """Run a function along the first axis, carrying a state and stacking results.

    Parameters
    ----------
    f : callable
        ``f(carry, x)`` gives ``(carry, y)``: the next state, in the same structure and dtypes, and
        a result, which may be None or any structure.
    init : structure
        The first state.
    xs : structure of array-like or Tensor, or None
        All with the same length in their first axis.
    length : int or Tensor, optional
        Number of steps; needed where ``xs`` is None.
    reverse : bool
        Whether to go from the last step to the first.
    name : str, optional

    Returns
    -------
    carry : structure
        The last state.
    ys : structure
        The results stacked along a new first axis, that of step ``t`` at ``t``.

    Raises
    ------
    InvalidArgumentError
        For a state that changes its structure, dtype or rank, and where no length is known.

    Notes
    -----
    JAX's ``jax.lax.scan``; the length may be known only when it runs, and may be 0.

    Examples
    --------
    >>> nbta.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))
    """
    graph = building(*leaves(init), *leaves(xs), length)
    if graph is None or graph is current():
        return _scan(f, init, xs, length, reverse, name)
    with graph.as_default():
        return _scan(f, init, xs, length, reverse, name)


def _scan(f, init, xs, length, reverse, name):
    init, xs = map_leaves(_tensor, init), map_leaves(_tensor, xs)
    count = _length(xs, length)
    rows = [_unstacked(value, count) for value in leaves(xs)]
    result = _abstract(f, init, xs)
    results = [_array_for(spec, count) for spec in result.specs]
    carried = leaves(init)

    def body(t, *values):
        state, stacks = values[: len(carried)], values[len(carried) :]
        place = count - 1 - t if reverse else t
        x = pack(xs, [row.read(place) for row in rows])
        carry, y = f(pack(init, state), x)
        _check_carry(init, carry)
        written = [s.write(place, v) for s, v in zip(stacks, leaves(y), strict=True)]
        return (t + 1, *leaves(carry), *written)

    first = (np.int32(0), *carried, *results)
    last = while_loop(lambda t, *_: t < count, body, first, name=name or "scan")
    state, stacks = last[1 : 1 + len(carried)], last[1 + len(carried) :]
    return pack(init, state), pack(result.structure, [stack.stack() for stack in stacks])


def _tensor(value):
    if isinstance(value, TensorArray):
        return value
    return as_tensor(value) if current() is not None else np.asarray(value)[()]


def _length(xs, length):
    """The number of steps, an int32 scalar or an int."""
    found = leaves(xs)
    if length is None and not found:
        raise invalid("length", "scan: give length where xs has no arrays")
    for value in found:
        if value.ndim == 0:
            raise invalid("xs", "scan: xs has a scalar, which has no first axis to go along")
    known = {value.shape[0] for value in found if value.shape is not None} - {None}
    if length is not None and not isinstance(length, Tensor):
        known.add(int(length))
    if len(known) > 1:
        message = f"scan: xs and length have the lengths {sorted(known)}; they must be the same"
        raise invalid("length", message)
    if known:
        return np.int32(known.pop())
    return cast(length if length is not None else shape(found[0])[0], np.int32)


def _unstacked(value, count):
    extents = None if value.shape is None else value.shape[1:]
    return TensorArray(value.dtype, size=count, element_shape=extents).unstack(value)


class _Result:
    """What a function gives, found out without running it."""

    def __init__(self, structure):
        self.structure = structure
        self.specs = [leaf_spec(value) for value in leaves(structure)]


def _abstract(f, init, xs):
    """Trace ``f`` once in a graph that is thrown away."""
    outer = current() or Graph()
    graph = SubGraph(outer, "abstract")

    def stand_in(value, drop):
        if isinstance(value, TensorArray):
            return value
        spec = leaf_spec(value)
        pattern = spec.shape if spec.shape is None else spec.shape[drop:]
        return graph.parameter(spec._replace(shape=pattern))

    with graph.as_default():
        state = map_leaves(lambda value: stand_in(value, 0), init)
        given = f(state, map_leaves(lambda value: stand_in(value, 1), xs))
        if not isinstance(given, tuple) or len(given) != 2:
            message = f"scan: f must give (carry, y), and gives {describe(given)}"
            raise invalid("structure", message)
        _check_carry(init, given[0])
        return _Result(given[1])


def _check_carry(init, carry):
    if layout(carry) != layout(init):
        message = (
            f"scan: init is {describe(init)}, and f gives {describe(carry)} as carry; give back "
            f"the same structure"
        )
        raise invalid("structure", message)


def _array_for(spec, count):
    return TensorArray(spec.dtype, size=count, element_shape=shapes.public(spec.shape))


def map_fn(fn, elems, parallel_iterations=None, name=None):
    """Apply a function to each row and stack the results.

    Parameters
    ----------
    fn : callable
        ``fn(x)``, of the structure of ``elems``; gives any structure.
    elems : structure of array-like or Tensor
        All with the same length in their first axis.
    parallel_iterations : int, optional
        Accepted as TensorFlow does; it changes no result.

    Returns
    -------
    structure
        What ``fn`` gives, stacked along a new first axis.

    Notes
    -----
    TensorFlow's ``tf.map_fn``.

    Examples
    --------
    >>> nbta.map_fn(lambda row: nbta.sum(row), np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([3., 7.])
    """
    return scan(lambda _, x: ((), fn(x)), (), elems, name=name or "map_fn")[1]


def foldl(fn, elems, initializer=None, name=None):
    """Combine rows from the first to the last.

    Parameters
    ----------
    fn : callable
        ``fn(accumulated, x)``, the next accumulated value.
    elems : structure of array-like or Tensor
    initializer : structure, optional
        The first accumulated value; by default the first row.

    Notes
    -----
    TensorFlow's ``tf.foldl``.

    Examples
    --------
    >>> nbta.foldl(lambda a, x: 10 * a + x, np.array([1, 2, 3]))
    np.int64(123)
    """
    if initializer is None:
        initializer = map_leaves(lambda v: _tensor(v)[0], elems)
        elems = map_leaves(lambda v: _tensor(v)[1:], elems)
    return scan(lambda a, x: (fn(a, x), None), initializer, elems, name=name or "foldl")[0]


def foldr(fn, elems, initializer=None, name=None):
    """Combine rows from the last to the first; see `foldl`.

    Notes
    -----
    TensorFlow's ``tf.foldr``.

    Examples
    --------
    >>> nbta.foldr(lambda a, x: 10 * a + x, np.array([1, 2, 3]))
    np.int64(321)
    """
    if initializer is None:
        initializer = map_leaves(lambda v: _tensor(v)[-1], elems)
        elems = map_leaves(lambda v: _tensor(v)[:-1], elems)
    combine = scan(
        lambda a, x: (fn(a, x), None), initializer, elems, reverse=True, name=name or "foldr"
    )
    return combine[0]
