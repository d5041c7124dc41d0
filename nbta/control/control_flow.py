"""Branches and loops: cond, switch_case, while_loop, and what loops demand of their variables."""

from __future__ import annotations

import functools
import inspect
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nbta import shapes
from nbta.control.captured import guarded
from nbta.control.item_variables import carry_together
from nbta.dtypes import as_plain, as_value
from nbta.errors import InvalidArgumentError, NbtaError, invalid
from nbta.graph.graph import SubGraph, current, substitute
from nbta.graph.operation import FLOW, HANDLE, Spec, Tensor, is_inexact
from nbta.immutable import bodies, frozen, given_back
from nbta.locations import OWN, Origin, of_caller
from nbta.ops.arrays.array_lengths import carry_lengths
from nbta.ops.arrays.tensor_arrays import is_flow_of
from nbta.ops.core.arithmetic import add_n, equal, less, logical_and, where
from nbta.ops.core.checks import (
    Acts,
    Order,
    Unordered,
    after,
    after_token,
    entered,
    first_token,
    order_now,
)
from nbta.ops.core.dispatch import as_array, as_tensor, building, is_weak
from nbta.ops.core.elementwise import common_dtype
from nbta.ops.loops.bodies import trace
from nbta.ops.loops.branch import add_case, choices
from nbta.ops.loops.branch import choose as chosen
from nbta.ops.loops.checkpoints import as_checkpoint
from nbta.ops.loops.iteration_counts import limits
from nbta.ops.loops.loop import COUNTER, add_while, counting
from nbta.progress import as_label, bar
from nbta.structure import describe, layout, leaves, map_leaves, pack, paths
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nbta.typing import ArrayLike, Checkpoint, Integer, T, U

# Variables of a loop: their structure, and what must hold in every iteration.


def leaf_spec(value) -> Spec:
    """Spec of a tensor, an array or a number."""
    if isinstance(value, Tensor):
        return value.spec
    array = as_array(value)
    return Spec(array.dtype, array.shape)


def with_weak_floats(structure, *others):
    """First values with Python's floats in the precision of the other ones.

    A number of Python has no precision of its own, as in arithmetic: beside float32 it is float32.

    Parameters
    ----------
    structure : structure
        First values of a loop's variables.
    *others : structure
        What the loop goes along.

    Returns
    -------
    structure
        The same object where there is nothing to do.
    """
    values = [value for part in (structure, *others) for value in leaves(part)]
    weak = any(type(value) is float for value in leaves(structure))
    dtypes = [value.dtype for value in values if hasattr(value, "dtype")]
    dtypes = [dtype for dtype in dtypes if is_inexact(np.dtype(dtype))]
    if not weak or not dtypes:
        return structure
    dtype = common_dtype(*(np.empty(0, dtype) for dtype in dtypes))
    dtype = np.empty(0, dtype).real.dtype if dtype.kind == "c" else dtype
    if dtype == np.float64:
        return structure
    return map_leaves(lambda v: np.asarray(v, dtype)[()] if type(v) is float else v, structure)


def in_the_precision(run, structure, *others):
    """``run(first values)`` in the precision of the others, or where that is too little, float64.

    The body may bring in what nobody sees before the loop.
    """
    chosen = with_weak_floats(structure, *others)
    try:
        return run(chosen)
    except InvalidArgumentError as error:
        written = current() is None and any(isinstance(v, TensorArray) for v in leaves(structure))
        if chosen is structure or error.reason != "loop_dtype" or written:
            raise
    return run(structure)


def as_values(structure):
    """Values outside of graphs: arrays, scalars for rank 0, and TensorArrays as they are."""
    return map_leaves(_as_value, structure)


def _as_value(value):
    return value if isinstance(value, TensorArray) else as_plain("loop_vars", value)[()]


class Variables:
    """Variables of one loop.

    A TensorArray is two tensors, its handle and its flow; anything else is one.

    Attributes
    ----------
    specs : list of Spec
        Of the tensors, as far as every iteration keeps to it.
    """

    def __init__(self, structure, values, invariants=None):
        self._structure, self._values = structure, values
        self._paths = paths(structure, "loop_vars")
        patterns = self._patterns(invariants)
        if current() is None:
            parts = [[_spec_outside(value)] for value in values]
        else:
            self.tensors = [part for value in values for part in _parts(value)]
            parts = [[part.spec for part in _parts(value)] for value in values]
        self._owner = [i for i, specs in enumerate(parts) for _ in specs]
        self._declared = [pattern is not None for pattern in patterns]
        self.specs = [
            self._widened(i, spec, patterns[i]) for i, specs in enumerate(parts) for spec in specs
        ]

    def _patterns(self, invariants):
        if invariants is None:
            return [None] * len(self._values)
        given = list(invariants)
        if len(given) != len(self._values):
            message = (
                f"while_loop: shape_invariants has {len(given)} entries, and loop_vars has "
                f"{len(self._values)} values; give one per value, None where nbta is to find it"
            )
            raise invalid("shape_invariants", message)
        return [shapes.as_pattern("shape_invariants", pattern) for pattern in given]

    def _widened(self, i, spec, pattern):
        if pattern is None or spec.kind != "data":
            return spec
        if not shapes.compatible(spec.shape, pattern):
            message = (
                f"while_loop: {self._paths[i]} has shape {shapes.text(spec.shape)}, which "
                f"shape_invariants does not admit: {shapes.text(pattern)}"
            )
            raise invalid("shape_invariants", message)
        return spec._replace(shape=pattern)

    def rebuilt(self, tensors):
        """The structure with tensors in place of its values."""
        tensors = iter(tensors)
        return pack(self._structure, [_rebuilt(value, tensors) for value in self._values])

    def handed(self, values):
        """The structure with values that functions may not change, outside of graphs."""
        return pack(self._structure, map(frozen, values, self._paths))

    def known(self):
        """What is known of the arrays among the variables."""
        arrays = [v for v in self._values if isinstance(v, SymbolicTensorArray)]
        return [array._facts.element_shape for array in arrays]

    def _next_leaves(self, result):
        """The values that a body gave, in the structure that it must keep."""
        result = _given_for(self._structure, result)
        if layout(result) != layout(self._structure):
            was, is_ = describe(self._structure), describe(result)
            message = (
                f"while_loop: loop_vars has the structure {was}, and the body returns {is_}; "
                f"return the same structure"
            )
            raise invalid("structure", message)
        return leaves(result)

    def following(self, result):
        """The tensors of what the body gave."""
        found = []
        for i, value in enumerate(self._next_leaves(result)):
            self._check_kind(i, value)
            place = len(found)
            found += _parts(taken(value, self.specs[place].dtype))
            if not isinstance(value, TensorArray):
                self._check(i, self.specs[place], found[place].spec)
        return found

    def checked(self, result):
        """The values of what the body gave, outside of graphs."""
        found = []
        for i, value in enumerate(self._next_leaves(result)):
            self._check_kind(i, value)
            if not isinstance(value, TensorArray):
                value = as_array(taken(value, self.specs[i].dtype))[()]
                self._check(i, self.specs[i], Spec(value.dtype, value.shape))
            found.append(value)
        return found

    def _check_kind(self, i, value):
        was, is_ = (isinstance(v, TensorArray) for v in (self._values[i], value))
        if was != is_:
            names = ("a tensor", "a TensorArray")
            message = (
                f"while_loop: {self._paths[i]} is {names[was]}, and the body returns {names[is_]}; "
                f"return the same kind"
            )
            raise invalid("structure", message)

    def _check(self, i, spec, new):
        if spec.dtype != new.dtype:
            message = (
                f"while_loop: {self._paths[i]} is {spec.dtype}, and the body returns {new.dtype}; "
                f"cast it, or begin with {new.dtype}"
            )
            raise invalid("loop_dtype", message)
        ranked = spec.shape is not None and new.shape is not None
        if ranked and len(spec.shape) != len(new.shape):
            message = (
                f"while_loop: {self._paths[i]} has shape {shapes.text(spec.shape)}, and the body "
                f"returns {shapes.text(new.shape)}; a variable keeps its rank"
            )
            raise invalid("loop_rank", message)
        if self._declared[i] and not _admits(spec.shape, new.shape):
            message = (
                f"while_loop: {self._paths[i]} has shape {shapes.text(spec.shape)} in every "
                f"iteration, and the body returns {shapes.text(new.shape)}; widen shape_invariants"
            )
            raise invalid("shape_invariants", message)

    def relax(self, new):
        """Forget dimensions that an iteration changes; whether there were any."""
        before = self.specs
        self.specs = [
            old._replace(shape=shapes.common(old.shape, spec.shape))
            for old, spec in zip(before, new, strict=True)
        ]
        return self.specs != before


def _given_for(structure, result):
    """What a body gave as a tuple of variables; one variable may be given alone."""
    if isinstance(result, list | tuple) and not hasattr(result, "_fields"):
        result = tuple(result)
    alone = len(structure) == 1 and layout(result) == layout(structure[0])
    return (result,) if alone else result


def _admits(pattern, shape):
    """Whether a shape is proven to fit a pattern."""
    if pattern is None or shape is None:
        return pattern is None
    return all(type(p) is not int or p == n for p, n in zip(pattern, shape, strict=True))


def _spec_outside(value):
    if isinstance(value, TensorArray):
        return Spec(value.dtype, None)
    return Spec(value.dtype, value.shape)


def taken(value, dtype):
    """A Python value in the dtype of its variable, where nothing is lost; else in its own."""
    if isinstance(value, Tensor) and value.weak is not None:
        return value.in_dtype(dtype)
    if hasattr(value, "dtype"):
        return value
    array = as_array(value)
    try:
        return as_value("while_loop", "loop_vars", value, dtype)
    except NbtaError:
        return array


def _parts(value):
    """The tensors of a value, in the graph that is being built."""
    if isinstance(value, SymbolicTensorArray):
        return list(value._access)
    if isinstance(value, TensorArray):
        message = (
            f"while_loop: {value!r} was made outside of the graph; make the TensorArray while the "
            f"graph is being built"
        )
        raise invalid("tensor_array", message)
    return [as_tensor(value)]


def _rebuilt(value, tensors):
    if isinstance(value, SymbolicTensorArray):
        return SymbolicTensorArray.over(next(tensors), next(tensors), value._facts)
    return next(tensors)


def order_by_iterations(body, first):
    """Put what uses an older name of an array that the loop carries after all earlier iterations.

    These are over when it runs, and so the gradient of what it reads must reach their writes.
    """
    for place, outer in enumerate(first):
        if outer.kind != HANDLE or body.outputs[place] is not body.inputs[place]:
            continue
        flow = body.inputs[place + 1]
        older = [
            p
            for p, t in body.sources.items()
            if p.kind == FLOW and (t is first[place + 1] or is_flow_of(t, outer))
        ]
        for parameter in older:
            with body.as_default():
                both = add_n([parameter, flow])
            substitute(body, {parameter: both})
            both.op.inputs = [parameter, flow]


def hoist(cond, body, first):
    """Make variables that no iteration changes captured tensors; the places of the others."""
    fixed = [i for i, t in enumerate(body.outputs) if t is body.inputs[i]]
    for place in fixed:
        for graph in (cond, body):
            parameter, outer = graph.inputs[place], first[place]
            if outer in graph.captures:
                substitute(graph, {parameter: graph.captures[outer]})
            else:
                graph.captures[outer], graph.sources[parameter] = parameter, outer
    kept = [i for i in range(len(first)) if i not in fixed]
    body.outputs = [body.outputs[i] for i in kept]
    for graph in (cond, body):
        graph.inputs = [graph.inputs[i] for i in kept] + graph.inputs[len(first) :]
    return kept


# The functions.


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: T,
    maximum_iterations: Integer | None = None,
    parallel_iterations: int | None = None,
    shape_invariants: Sequence[Any] | None = None,
    *,
    name: str | None = None,
    checkpoint: Checkpoint = None,
    progress: bool | str = False,
) -> T:
    """Repeat a body as long as a condition holds.

    Parameters
    ----------
    cond : callable
        ``cond(*loop_vars)`` returns a boolean scalar: whether to run another iteration.
    body : callable
        ``body(*loop_vars)`` returns the next values, in the same structure.
    loop_vars : list or tuple
        Initial values: tensors, arrays, numbers, TensorArrays, and nested lists, tuples, dicts and
        dataclasses of these. Any other object than a list or tuple is a single variable. A Python
        float has the precision of the other floats, as in arithmetic, or float64 if the body needs
        that.
    maximum_iterations : int or Tensor, optional
        Stop after this number of iterations.
    parallel_iterations : int, optional
        Accepted for compatibility with TensorFlow; it has no effect.
    shape_invariants : list or tuple, optional
        For each variable, a shape that holds in every iteration, with None for dimensions that
        change. If the entry of a variable is None, as by default, nbta detects which dimensions
        change.
    name : str, optional
        Name of the loop in the graph.
    checkpoint : int or {"sqrt", "online"}, optional
        How gradients get the values of each iteration. By default, the forward pass saves them.
        With an integer ``k``, the variables are saved every ``k`` iterations, and the gradient runs
        the iterations between them again: the results are the same to rounding, and the memory is
        that of ``k`` iterations and ``T / k`` states. "sqrt" uses the square root of the number of
        iterations as ``k``, if that number is known on entry (from a condition such as ``i < n`` or
        ``i >= 0``, or from ``maximum_iterations``). "online" does not need it.
    progress : bool or str
        Whether to show a progress bar of tqdm while the loop runs; a string is its label.

    Returns
    -------
    structure like ``loop_vars``
        The final values; the initial ones if no iteration ran.

    Raises
    ------
    InvalidArgumentError
        If the condition is not a boolean scalar; if the body changes the structure, a dtype, a
        rank, or a declared shape; if ``checkpoint`` or ``progress`` is invalid; or with "sqrt", if
        the number of iterations is not known on entry. From gradients, with ``checkpoint``: if
        running iterations again may have different results, because the body reads an array that
        clears slots when they are read, continues with a different array in each iteration, or asks
        for the length of an array by a name other than that of the last write.
    FailedPreconditionError
        With ``progress``, if tqdm is not installed.

    Notes
    -----
    This is TensorFlow's ``tf.while_loop``. In a graph, both functions are called to record their
    operations, more than once if shapes change; outside graphs, they are called for each iteration.
    They may use tensors and arrays from outside. Gradients are exact for every number of
    iterations.

    Outside graphs, functions get arrays that behave like tensors: ``y += x`` makes a new array, and
    ``y[0] = 1``, ``out=``, ``y.sort()`` and similar operations are refused, also for arrays from
    outside; ``y.copy()`` is an ordinary array. Results are therefore the same as in a graph, and
    the caller's arrays do not change. This holds for the functions of all loops and branches.

    With ``checkpoint``, each iteration runs once more for a gradient, and so do functions of
    `custom_gradient`. Writes to arrays from outside are not repeated. "online" saves the variables
    at iterations 0, 1, 3, 6, 10, ... (segments of 1, 2, 3, ... iterations), which needs the memory
    of ``sqrt(2 T)`` states and ``sqrt(2 T)`` iterations for any number ``T`` of iterations.

    Gradients of gradients save as many states of the gradient's loop as of this loop, and the
    values of as many iterations. Compiled, they do not call Python, unless iterations that run
    again read an array that is made in an iteration of an enclosing loop, which gives a
    `PerformanceWarning`.

    Examples
    --------
    >>> i, total = nbta.while_loop(
    ...     lambda i, total: total < 100, lambda i, total: (i + 1, total + i * i), (0, 0)
    ... )
    >>> i, total
    (np.int64(8), np.int64(140))

    Of a loop that multiplies by ``x`` until the product exceeds 100, five times here:

    >>> product = lambda x: nbta.while_loop(lambda y: y < 100.0, lambda y: y * x, x)
    >>> nbta.value_and_grad(product)(3.0)
    (np.float64(243.0), np.float64(405.0))

    A thousand steps, of which the gradient keeps about 45 states and the values of 45 steps:

    >>> def cooled(rate):
    ...     step = lambda i, y: (i + 1, y - rate * y**4)
    ...     return nbta.while_loop(lambda i, y: i < 1000, step, (0, 2.0), checkpoint="online")[1]
    >>> nbta.grad(cooled)(0.001)
    np.float64(-218.886...)
    """
    check_callable("while_loop", cond=cond, body=body)
    options = options_of("while_loop", checkpoint, progress)
    carries_order = getattr(body, "carries_order", False)
    several = isinstance(loop_vars, list | tuple)
    structure = tuple(loop_vars) if several else (loop_vars,)
    if not leaves(structure):
        raise invalid("loop_vars", "while_loop: loop_vars is empty; give at least one variable")
    cond, body = guarded(cond, "cond"), guarded(body, "body")
    run = _at_once
    if building(*leaves(structure)) is not None:
        run = _in_graph if carries_order else _in_order
    rest = (maximum_iterations, shape_invariants, name, options)
    result = in_the_precision(lambda first: run(cond, body, first, *rest), structure)
    if not several:
        return result[0]
    return list(result) if isinstance(loop_vars, list) else result


def options_of(what, checkpoint, progress):
    """What a loop has besides its bodies, checked."""
    return {
        "checkpoint": as_checkpoint(what, checkpoint),
        "progress": as_label(what, progress),
    }


def check_callable(what, **functions):
    """Refuse what is no function where one is asked for."""
    for name, function in functions.items():
        if not callable(function):
            message = (
                f"{what}: {name} must be a function, and is {function!r}; write lambda: before "
                f"what is to be computed"
            )
            raise invalid("callable", message)


def _at_once(cond, body, structure, maximum, invariants, name, options):
    """The loop outside of graphs."""
    values = leaves(as_values(structure))
    variables = Variables(structure, values, invariants)
    label = options["progress"]
    shown = bar(label) if label is not None else nullcontext(np.zeros(1, np.int64))
    with shown as done, bodies("while_loop"):
        while maximum is None or done[0] < maximum:
            if not _truth(cond(*variables.handed(values))):
                break
            values = variables.checked(body(*variables.handed(values)))
            done[0] += 1
    return pack(structure, map(given_back, values))


def _truth(value):
    spec = leaf_spec(value)
    if spec.shape not in ((), None) or spec.dtype.kind != "b":
        message = f"while_loop: cond must give one truth value, not {spec}; compare or reduce it"
        raise invalid("condition", message)
    return value


def _in_order(cond, body, structure, maximum, invariants, name, options):
    """A loop in a graph, with a further variable where its iterations print or fail."""
    graph = building(*leaves(structure))
    with graph.as_default():
        try:
            with entered(Unordered()):
                return _in_graph(cond, body, structure, maximum, invariants, name, options)
        except Acts:
            token = _token_now()

        def goes_on(*given):
            with entered(Order(given[-1])) as order:
                found = _truth(cond(*given[:-1]))
            return found if order.token is given[-1] else after(as_tensor(found), order.token)

        def iteration(*given):
            with entered(Order(given[-1])) as order:
                found = _given_for(structure, body(*given[:-1]))
            if not isinstance(found, tuple):
                return found  # which is refused
            # After itself, so that it is another one where only the condition acts.
            return (*found, after(order.token, order.token))

        if invariants is not None:
            invariants = [*invariants, None]
        first = (*structure, token)
        *last, token = _in_graph(goes_on, iteration, first, maximum, invariants, name, options)
    return _ordered(tuple(last), token)


def _token_now():
    """The token that what is traced now begins with."""
    order = order_now()
    return as_tensor(first_token()) if order is None else order.token


def _ordered(result, token):
    """What a loop or a branch gives, and what is done later after all that it does."""
    order = order_now()
    if order is None:
        return map_leaves(lambda leaf: after_token(leaf, token), result)
    order.token = token
    return result


def _in_graph(cond, body, structure, maximum, invariants, name, options):
    graph = building(*leaves(structure))
    with graph.as_default():
        variables = Variables(structure, leaves(structure), invariants)
        first = [as_tensor(np.int64(0)), *variables.tensors]
        with graph.name_scope(name or "while") as scope:
            body_graph = _trace_body(graph, scope, body, variables)
            specs = [COUNTER, *variables.specs]
            condition = _condition(cond, variables, maximum)
            cond_graph = trace(graph, f"{scope}cond", specs, condition)
            order_by_iterations(body_graph, first)
            first, apart = carry_together(cond_graph, body_graph, first)
            kept = hoist(cond_graph, body_graph, first)
            _check_root(options["checkpoint"], cond_graph, body_graph, len(kept))
            origin = Origin(scope.removesuffix("/"), of_caller())
            op = add_while(
                cond_graph, body_graph, [first[i] for i in kept], scope, **options, origin=origin
            )
            last = list(first)
            for place, tensor in zip(kept, op.outputs, strict=True):
                last[place] = tensor
            last = apart(last)
    carry_lengths(op)
    return variables.rebuilt(last[1:])


def _check_root(checkpoint, cond, body, count):
    if checkpoint == "sqrt" and not limits(cond, body, count):
        message = (
            "while_loop: checkpoint='sqrt' needs a number of iterations that is known on entry; "
            "write the condition as i < n for an integer i that grows by 1, give "
            "maximum_iterations, or use checkpoint='online'"
        )
        raise invalid("checkpoint", message)


def _trace_body(graph, scope, body, variables):
    """Trace until dimensions, and what arrays are known to hold, stay as they are."""
    while True:
        known = variables.known()

        def advance(*tensors):
            given = variables.rebuilt(tensors)
            _call_as_arguments(body, given)
            return variables.following(body(*given))

        traced = trace(graph, f"{scope}body", [COUNTER, *variables.specs], counting(advance))
        relaxed = variables.relax([tensor.spec for tensor in traced.outputs[1:]])
        if not relaxed and variables.known() == known:
            return traced


def _call_as_arguments(body, given):
    """Note what the user's function calls the variables of a loop."""
    code = getattr(inspect.unwrap(body), "__code__", None)
    if code is None or code.co_filename.startswith(OWN):
        return
    names = code.co_varnames[inspect.ismethod(body) : code.co_argcount]
    for name, value in zip(names, given, strict=False):
        for leaf, path in zip(leaves(value), paths(value, name), strict=True):
            if isinstance(leaf, Tensor):
                leaf.graph.labels.setdefault(leaf if type(leaf) is Tensor else leaf.itself, path)


def _condition(cond, variables, maximum):
    def condition(counter, *tensors):
        goes_on = as_tensor(_truth(cond(*variables.rebuilt(tensors))))
        if maximum is not None:
            goes_on = logical_and(less(counter, maximum), goes_on)
        return [goes_on]

    return condition


def cond(
    pred: ArrayLike,
    true_fn: Callable[..., T],
    false_fn: Callable[..., U],
    *operands: Any,
    name: str | None = None,
) -> T | U:
    """Return the result of one of two functions; in a graph, only that function runs.

    Parameters
    ----------
    pred : bool, or Tensor of bool and rank 0
        Whether to use ``true_fn``.
    true_fn, false_fn : callable
        Functions of the operands, whose results have the same structure and dtypes. They may use
        tensors and arrays from outside, and return TensorArrays.
    *operands : structure of array-like, Tensor or TensorArray
        The arguments of the functions. Arrays are copied for them.
    name : str, optional
        Name of the branch in the graph.

    Returns
    -------
    structure
        The result of the chosen function.

    Raises
    ------
    InvalidArgumentError
        If ``pred`` is not a single truth value, if an argument is not a function, or if the results
        of the functions differ in structure or dtype.

    Notes
    -----
    This is TensorFlow's ``tf.cond``, with operands as in JAX's ``jax.lax.cond``.

    Examples
    --------
    >>> nbta.cond(2 > 1, lambda: 1.5, lambda: -1.5)
    1.5
    >>> nbta.grad(lambda x: nbta.cond(x > 0, lambda: x * x, lambda: -x))(3.0)
    np.float64(6.0)
    >>> nbta.cond(2 > 1, nbta.add, nbta.subtract, 5.0, 3.0)
    np.float64(8.0)
    """
    spec = leaf_spec(pred)
    if spec.dtype.kind != "b" or spec.shape not in ((), None):
        raise invalid("pred", f"cond: pred must be one truth value, not {spec}; compare it first")
    check_callable("cond", true_fn=true_fn, false_fn=false_fn)
    labels = ["true_fn", "false_fn"]
    functions = list(map(guarded, (true_fn, false_fn), labels))
    functions = _given("cond", functions, operands, building(pred))
    if building(pred) is None:
        return _called("cond", functions[0 if pred else 1])
    return _case("cond", pred, functions, labels, name or "cond")


def _given(what, functions, operands, graph):
    """Functions of no arguments, which give the operands to those of a branch."""
    for place, value in enumerate(operands, 1):
        if callable(value) or isinstance(value, str):
            names = "name= and default=" if what == "switch_case" else "name="
            message = f"{what}: operand {place} is {value!r}; give {names} by name"
            raise invalid("operand", message)
    with graph.as_default() if graph is not None else nullcontext():
        taken = [
            pack(operand, map(_operand, leaves(operand), paths(operand, f"operands[{i}]")))
            for i, operand in enumerate(operands)
        ]
    return [functools.partial(function, *taken) for function in functions]


def _operand(value, name):
    if isinstance(value, TensorArray):
        return value
    return as_tensor(value) if current() is not None else frozen(as_array(value)[()], name)


def switch_case(
    branch_index: Integer,
    branch_fns: Sequence[Callable[..., T]] | Mapping[int, Callable[..., T]],
    *operands: Any,
    default: Callable[..., T] | None = None,
    name: str | None = None,
) -> T:
    """Return the result of one of several functions; in a graph, only that function runs.

    Parameters
    ----------
    branch_index : int, or Tensor of int and rank 0
        The number of the function to use.
    branch_fns : list of callable, or dict of callable by int
        Functions of the operands, as for `cond`.
    *operands : structure of array-like, Tensor or TensorArray
        The arguments of the functions. Arrays are copied for them.
    default : callable, optional
        Used for an index without a function; by default, the last function.
    name : str, optional
        Name of the branch in the graph.

    Returns
    -------
    structure
        The result of the chosen function.

    Raises
    ------
    InvalidArgumentError
        If ``branch_index`` is not an integer, or if results differ in structure or dtype.

    Notes
    -----
    This is TensorFlow's ``tf.switch_case``, with operands as in JAX's ``jax.lax.switch``.

    Examples
    --------
    >>> nbta.switch_case(1, [lambda: 10, lambda: 20])
    20
    >>> nbta.switch_case(1, [nbta.sin, nbta.square], 3.0)
    np.float64(9.0)
    """
    spec = leaf_spec(branch_index)
    if spec.dtype.kind not in "iu" or spec.shape not in ((), None):
        message = f"switch_case: branch_index must be one integer, not {spec}"
        raise invalid("branch_index", message)
    named = dict(branch_fns) if isinstance(branch_fns, dict) else dict(enumerate(branch_fns))
    if not named:
        raise invalid("branch_fns", "switch_case: branch_fns is empty; give at least one function")
    keys = sorted(named)
    functions = [named[key] for key in keys] + ([default] if default is not None else [])
    labels = [f"branch_fns[{key}]" for key in keys] + ["default"] * (default is not None)
    check_callable("switch_case", **dict(zip(labels, functions, strict=True)))
    functions = list(map(guarded, functions, labels))
    graph = building(branch_index)
    functions = _given("switch_case", functions, operands, graph)
    if graph is None:
        place = keys.index(branch_index) if branch_index in keys else len(functions) - 1
        return _called("switch_case", chosen(np.int64(place), functions))
    with graph.as_default():
        place = _place(branch_index, keys)
    return _case("switch_case", place, functions, labels, name or "switch_case")


def _called(what, function):
    """What a branch gives outside of graphs."""
    with bodies(what):
        result = function()
    return map_leaves(given_back, result)


def _place(index, keys):
    """The place among the functions; too large where no key is the index."""
    if keys == list(range(len(keys))):
        return index
    place = as_tensor(np.int32(len(keys)))
    for i, key in enumerate(keys):
        place = where(equal(index, key), np.int32(i), place)
    return place


def _case(what, index, functions, labels, name):
    """A branch in a graph, with a further result where functions print or fail."""
    with building(index).as_default():
        try:
            with entered(Unordered()):
                return _built_case(what, index, functions, labels, name)
        except Acts:
            first = _token_now()

        def acting(function):
            with entered(Order(first)) as order:
                found = function()
            return found, order.token

        acts = [functools.partial(acting, function) for function in functions]
        return _ordered(*_built_case(what, index, acts, labels, name))


def _built_case(what, index, functions, labels, name):
    graph = building(index)
    with graph.as_default(), graph.name_scope(name) as scope:
        index = as_tensor(index)
        branches = [SubGraph(graph, f"{scope}{label}") for label in _plain(labels)]
        results = []
        for branch, function in zip(branches, functions, strict=True):
            with branch.as_default():
                results.append(function())
        _check_layouts(what, labels, results)
        columns = zip(*(leaves(result) for result in results), strict=True)
        return pack(results[0], joined_branches(what, index, branches, labels, columns, scope))


def joined_branches(what, index, branches, labels, columns, scope):
    """The results of branches that are traced: one of each column, which has a value a branch."""
    made = [_column(what, branches, labels, column) for column in columns]
    chosen = choices(index, branches)
    tensors = iter(add_case(index, branches, scope).outputs if chosen is None else chosen)
    return [finish(tensors) for finish in made]


def _plain(labels):
    return [label.replace("[", "_").replace("]", "") for label in labels]


def _check_layouts(what, labels, results):
    for label, result in zip(labels, results, strict=True):
        if layout(result) != layout(results[0]):
            message = (
                f"{what}: {labels[0]} gives {describe(results[0])}, and {label} gives "
                f"{describe(result)}; the structures must be the same"
            )
            raise invalid("structure", message)


def _column(what, branches, labels, column):
    """Make one value a result of every branch; how to get it from the results of the operation."""
    if any(isinstance(value, SymbolicTensorArray) for value in column):
        return _array_column(what, branches, labels, column)
    dtype = common_dtype(*column)
    for branch, label, value in zip(branches, labels, column, strict=True):
        with branch.as_default():
            weak = not hasattr(value, "dtype") or is_weak(value)
            tensor = as_tensor(value, branch, dtype=dtype if weak else None)
        if tensor.dtype != dtype:
            message = f"{what}: {label} gives {tensor.spec} where another gives {dtype}; cast it"
            raise invalid("branches", message)
        branch.outputs.append(tensor)
    return next


def _array_column(what, branches, labels, column):
    for label, value in zip(labels, column, strict=True):
        if not isinstance(value, SymbolicTensorArray):
            message = f"{what}: {label} gives {value!r} where another gives a TensorArray"
            raise invalid("branches", message)
    facts = _common_facts(what, [value._facts for value in column])
    handles = [b.resolve(v.handle) for b, v in zip(branches, column, strict=True)]
    around = [b.sources.get(handle) for b, handle in zip(branches, handles, strict=True)]
    shared = around[0] if all(t is not None and t is around[0] for t in around) else None
    for branch, value, handle in zip(branches, column, handles, strict=True):
        if shared is None:
            branch.outputs.append(handle)
        branch.outputs.append(branch.resolve(value.flow))

    def finish(tensors):
        handle = next(tensors) if shared is None else shared
        return SymbolicTensorArray.over(handle, next(tensors), facts)

    return finish


def _common_facts(what, all_facts):
    first = all_facts[0]
    if all(facts is first for facts in all_facts):
        return first
    if any(facts.dtype != first.dtype for facts in all_facts):
        names = " and ".join(str(facts.dtype) for facts in all_facts)
        raise invalid("branches", f"{what}: the branches give arrays of {names}; use one dtype")
    return replace(
        first,
        element_shape=functools.reduce(shapes.common, (f.element_shape for f in all_facts)),
        declared=functools.reduce(shapes.common, (f.declared for f in all_facts)),
        infer_shape=all(facts.infer_shape for facts in all_facts),
        dynamic_size=all(facts.dynamic_size for facts in all_facts),
        is_gradient=all(facts.is_gradient for facts in all_facts),
    )
