"""Branches and loops: cond, switch_case, while_loop."""

import functools
from dataclasses import replace

import numpy as np

from nbta import shapes
from nbta.errors import invalid
from nbta.graph.graph import SubGraph, substitute
from nbta.graph.spec import FLOW, HANDLE
from nbta.loop_variables import Variables, as_values, leaf_spec
from nbta.ops.arithmetic import add_n, where
from nbta.ops.arrays import array_behind
from nbta.ops.bodies import trace
from nbta.ops.branch import add_case
from nbta.ops.branch import choose as chosen
from nbta.ops.comparison import equal, less, logical_and
from nbta.ops.dispatch import as_tensor, building
from nbta.ops.elementwise import common_dtype
from nbta.ops.loop import COUNTER, add_while, counting
from nbta.structure import describe, layout, leaves, pack
from nbta.symbolic import SymbolicTensorArray


def while_loop(
    cond,
    body,
    loop_vars,
    maximum_iterations=None,
    parallel_iterations=None,
    shape_invariants=None,
    name=None,
):
    """Repeat a body as long as a condition holds.

    Parameters
    ----------
    cond : callable
        ``cond(*loop_vars)``, a boolean scalar: go on?
    body : callable
        ``body(*loop_vars)``, the next values, in the same structure.
    loop_vars : list or tuple
        First values: tensors, arrays, numbers, TensorArrays, and nested lists, tuples and dicts of
        these. What is not in a list or tuple counts as one variable.
    maximum_iterations : int or Tensor, optional
        Stop after so many trips.
    parallel_iterations : int, optional
        Accepted as TensorFlow does; it changes no result.
    shape_invariants : list or tuple, optional
        For each variable a shape that holds in every trip, None for as it is. By default extents
        that a trip changes are found out.
    name : str, optional

    Returns
    -------
    structure like ``loop_vars``
        The last values; the first ones where there was no trip.

    Raises
    ------
    InvalidArgumentError
        For a condition that is no boolean scalar, and for a body that changes the structure, a
        dtype, a rank, or a declared shape.

    Notes
    -----
    TensorFlow's ``tf.while_loop``. In a graph both functions are called to see what they build,
    more than once where shapes change; outside of graphs they are called for each trip. Tensors and
    arrays from outside may be used inside. Gradients are exact for every number of trips.

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
    """
    _check_callable("while_loop", cond=cond, body=body)
    several = isinstance(loop_vars, list | tuple)
    structure = tuple(loop_vars) if several else (loop_vars,)
    if not leaves(structure):
        raise invalid("loop_vars", "while_loop: loop_vars is empty; give one variable at least")
    run = _in_graph if building(*leaves(structure)) is not None else _at_once
    result = run(cond, body, structure, maximum_iterations, shape_invariants, name)
    if not several:
        return result[0]
    return list(result) if isinstance(loop_vars, list) else result


def _check_callable(what, **functions):
    for name, function in functions.items():
        if not callable(function):
            message = (
                f"{what}: {name} must be a function, and is {function!r}; write lambda: before "
                f"what is to be computed"
            )
            raise invalid("callable", message)


def _at_once(cond, body, structure, maximum, invariants, name):
    """The loop outside of graphs."""
    values = as_values(structure)
    variables = Variables(structure, leaves(values), invariants)
    trip = 0
    while (maximum is None or trip < maximum) and _truth(cond(*values)):
        following = variables.checked(body(*values))
        values = pack(structure, following)
        trip += 1
    return values


def _truth(value):
    spec = leaf_spec(value)
    if spec.shape not in ((), None) or spec.dtype.kind != "b":
        message = f"while_loop: cond must give one truth value, not {spec}; compare or reduce it"
        raise invalid("condition", message)
    return value


def _in_graph(cond, body, structure, maximum, invariants, name):
    graph = building(*leaves(structure))
    with graph.as_default():
        variables = Variables(structure, leaves(structure), invariants)
        first = [as_tensor(np.int64(0)), *variables.tensors]
        with graph.name_scope(name or "while") as scope:
            body_graph = _trace_body(graph, scope, body, variables)
            specs = [COUNTER, *variables.specs]
            condition = _condition(cond, variables, maximum)
            cond_graph = trace(graph, f"{scope}cond", specs, condition)
            _order_by_trips(body_graph, first)
            kept = _hoist(cond_graph, body_graph, first)
            op = add_while(cond_graph, body_graph, [first[i] for i in kept], scope)
    last = list(first)
    for place, tensor in zip(kept, op.outputs, strict=True):
        last[place] = tensor
    return variables.rebuilt(last[1:])


def _trace_body(graph, scope, body, variables):
    """Trace until extents, and what arrays are known to hold, stay as they are."""
    while True:
        known = variables.known()

        def advance(*tensors):
            return variables.following(body(*variables.rebuilt(tensors)))

        traced = trace(graph, f"{scope}body", [COUNTER, *variables.specs], counting(advance))
        relaxed = variables.relax([tensor.spec for tensor in traced.outputs[1:]])
        if not relaxed and variables.known() == known:
            return traced


def _condition(cond, variables, maximum):
    def condition(counter, *tensors):
        goes_on = as_tensor(_truth(cond(*variables.rebuilt(tensors))))
        if maximum is not None:
            goes_on = logical_and(less(counter, maximum), goes_on)
        return [goes_on]

    return condition


def _order_by_trips(body, first):
    """Put what uses an older name of an array that the loop carries behind all earlier trips.

    These are over when it runs, and so the gradient of what it reads must reach their writes.
    """
    for place, outer in enumerate(first):
        if outer.kind != HANDLE or body.outputs[place] is not body.inputs[place]:
            continue
        flow = body.inputs[place + 1]
        older = [
            p
            for p, t in body.sources.items()
            if p.kind == FLOW and (t is first[place + 1] or array_behind(t) is outer)
        ]
        for parameter in older:
            with body.as_default():
                both = add_n([parameter, flow])
            substitute(body, {parameter: both})
            both.op.inputs = [parameter, flow]


def _hoist(cond, body, first):
    """Make variables that no trip changes captured tensors; the places of the others."""
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


def cond(pred, true_fn, false_fn, name=None):
    """The result of one function or of another one; in a graph only that one runs.

    Parameters
    ----------
    pred : bool, or Tensor of bool and rank 0
    true_fn, false_fn : callable
        Without arguments; both give the same structure and dtypes. Tensors and arrays from outside
        may be used, and TensorArrays given back.

    Returns
    -------
    structure
        What the functions give.

    Raises
    ------
    InvalidArgumentError
        For another ``pred``, for what is no function, and for functions whose results differ in
        structure or dtype.

    Notes
    -----
    TensorFlow's ``tf.cond``.

    Examples
    --------
    >>> nbta.cond(2 > 1, lambda: 1.5, lambda: -1.5)
    1.5
    >>> nbta.grad(lambda x: nbta.cond(x > 0, lambda: x * x, lambda: -x))(3.0)
    np.float64(6.0)
    """
    spec = leaf_spec(pred)
    if spec.dtype.kind != "b" or spec.shape not in ((), None):
        raise invalid("pred", f"cond: pred must be one truth value, not {spec}; compare it first")
    _check_callable("cond", true_fn=true_fn, false_fn=false_fn)
    if building(pred) is None:
        return true_fn() if pred else false_fn()
    return _case("cond", pred, [true_fn, false_fn], ["true_fn", "false_fn"], name or "cond")


def switch_case(branch_index, branch_fns, default=None, name=None):
    """The result of one of several functions; in a graph only that one runs.

    Parameters
    ----------
    branch_index : int, or Tensor of int and rank 0
    branch_fns : list of callable, or dict of callable by int
    default : callable, optional
        For an index that no function has; by default the last function.

    Raises
    ------
    InvalidArgumentError
        For another ``branch_index``, and for results that differ in structure or dtype.

    Notes
    -----
    TensorFlow's ``tf.switch_case``.

    Examples
    --------
    >>> nbta.switch_case(1, [lambda: 10, lambda: 20])
    20
    """
    spec = leaf_spec(branch_index)
    if spec.dtype.kind not in "iu" or spec.shape not in ((), None):
        message = f"switch_case: branch_index must be one integer, not {spec}"
        raise invalid("branch_index", message)
    named = dict(branch_fns) if isinstance(branch_fns, dict) else dict(enumerate(branch_fns))
    if not named:
        raise invalid("branch_fns", "switch_case: branch_fns is empty; give one function at least")
    keys = sorted(named)
    functions = [named[key] for key in keys] + ([default] if default is not None else [])
    labels = [f"branch_fns[{key}]" for key in keys] + ["default"] * (default is not None)
    _check_callable("switch_case", **dict(zip(labels, functions, strict=True)))
    graph = building(branch_index)
    if graph is None:
        place = keys.index(branch_index) if branch_index in keys else len(functions) - 1
        return chosen(np.int64(place), functions)()
    with graph.as_default():
        place = _place(branch_index, keys)
    return _case("switch_case", place, functions, labels, name or "switch_case")


def _place(index, keys):
    """The place among the functions; too large where no key is the index."""
    if keys == list(range(len(keys))):
        return index
    place = as_tensor(np.int32(len(keys)))
    for i, key in enumerate(keys):
        place = where(equal(index, key), np.int32(i), place)
    return place


def _case(what, index, functions, labels, name):
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
        made = [_column(what, branches, labels, column) for column in columns]
        tensors = iter(add_case(index, branches, scope).outputs)
        return pack(results[0], [finish(tensors) for finish in made])


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
            weak = not hasattr(value, "dtype")
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
        infer_shape=all(facts.infer_shape for facts in all_facts),
        dynamic_size=all(facts.dynamic_size for facts in all_facts),
    )
