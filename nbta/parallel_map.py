"""map_fn with rows on several threads: one operation, of which each thread computes some rows."""

from nbta.errors import invalid
from nbta.graph.graph import SubGraph, current
from nbta.ops.dispatch import as_tensor, building
from nbta.ops.mapping import add_map, is_closed, row_spec
from nbta.structure import leaves, pack
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray
from nbta.tracing import Function, check_writes


def as_threads(what, parallel_iterations) -> int:
    """How many threads may take part; 1 where nothing is said.

    Raises
    ------
    InvalidArgumentError
        For what is no integer of 1 or more.
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


def map_in_parallel(fn, elems, threads, name):
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
        return _inside(fn, elems, threads, scope)


def _inside(fn, elems, threads, scope):
    xs = [as_tensor(value) for value in leaves(elems)]
    if any(x.ndim == 0 for x in xs):
        return None
    body = SubGraph(current(), f"{scope}row")
    with body.as_default():
        given = fn(pack(elems, [body.parameter(row_spec(x.spec)) for x in xs]))
        if any(isinstance(value, SymbolicTensorArray) for value in leaves(given)):
            return None
        body.outputs = [as_tensor(value, body) for value in leaves(given)]
    if not body.outputs or not is_closed(body):
        return None
    check_writes(body, [])
    made = add_map(body, xs, [], (None,) * len(body.outputs), threads, scope)
    return pack(given, made.outputs)


def _outside(fn, elems, threads):
    """The same as a graph of its own; None where that would have to run rows in order."""
    made = []

    def traced(rows):
        made.append(map_in_parallel(fn, rows, threads, None))
        return made[0]

    function = Function(traced)
    function.bound(((elems,), {}))
    return None if made[0] is None else function(elems)
