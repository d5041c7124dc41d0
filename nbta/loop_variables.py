"""The variables of a loop: their structure, and what must hold in every trip."""

import numpy as np

from nbta import shapes
from nbta.dtypes import as_plain, as_value
from nbta.errors import InvalidArgumentError, NbtaError, invalid
from nbta.graph.graph import current, substitute
from nbta.graph.operation import Tensor
from nbta.graph.spec import FLOW, HANDLE, Spec, is_inexact
from nbta.immutable import frozen
from nbta.ops.arithmetic import add_n
from nbta.ops.arrays import array_behind
from nbta.ops.dispatch import as_array, as_tensor
from nbta.ops.elementwise import common_dtype
from nbta.structure import describe, layout, leaves, map_leaves, pack, paths
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray


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

    The body may bring in what nobody sees in front of the loop.
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
        Of the tensors, as far as every trip keeps to it.
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
                f"{len(self._values)} values; give one a value, None for what is to be found out"
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
        if isinstance(result, list | tuple) and not hasattr(result, "_fields"):
            result = tuple(result)
        alone = len(self._structure) == 1 and layout(result) == layout(self._structure[0])
        if alone:
            result = (result,)
        if layout(result) != layout(self._structure):
            was, is_ = describe(self._structure), describe(result)
            message = (
                f"while_loop: loop_vars has the structure {was}, and what the body gives has "
                f"{is_}; give back the same structure"
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
                f"while_loop: {self._paths[i]} is {names[was]}, and the body gives {names[is_]}; "
                f"give back the same kind"
            )
            raise invalid("structure", message)

    def _check(self, i, spec, new):
        if spec.dtype != new.dtype:
            message = (
                f"while_loop: {self._paths[i]} is {spec.dtype}, and the body gives {new.dtype}; "
                f"cast it, or begin with {new.dtype}"
            )
            raise invalid("loop_dtype", message)
        ranked = spec.shape is not None and new.shape is not None
        if ranked and len(spec.shape) != len(new.shape):
            message = (
                f"while_loop: {self._paths[i]} has shape {shapes.text(spec.shape)}, and the body "
                f"gives {shapes.text(new.shape)}; a variable keeps its rank"
            )
            raise invalid("loop_rank", message)
        if self._declared[i] and not _admits(spec.shape, new.shape):
            message = (
                f"while_loop: {self._paths[i]} has shape {shapes.text(spec.shape)} in every trip, "
                f"and the body gives {shapes.text(new.shape)}; widen shape_invariants"
            )
            raise invalid("shape_invariants", message)

    def relax(self, new):
        """Forget extents that a trip changes; whether there were any."""
        before = self.specs
        self.specs = [
            old._replace(shape=shapes.common(old.shape, spec.shape))
            for old, spec in zip(before, new, strict=True)
        ]
        return self.specs != before


def _admits(pattern, shape):
    """Whether a shape is sure to fit a pattern."""
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


def order_by_trips(body, first):
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


def hoist(cond, body, first):
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
