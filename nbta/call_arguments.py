"""Arguments of traced functions: how they are named, told apart, and stood in for."""

from contextlib import suppress

import numpy as np

from nbta import shapes
from nbta.dtypes import as_dtype, as_value, check_plain
from nbta.errors import InvalidArgumentError, NbtaError, invalid
from nbta.execution.session import fits, within_kind
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.graph.spec import DATA, Spec
from nbta.ops.dispatch import as_array
from nbta.ops.placeholder import PLACEHOLDER
from nbta.shapes import Dim
from nbta.structure import describe, layout, leaves, paths
from nbta.tensor_array import TensorArray


def any_tensor(args, kwargs):
    """Whether a tensor of a graph is among arguments."""
    return any(isinstance(value, Tensor) for value in leaves((args, kwargs)))


def named(structure):
    """Leaves of arguments, each with how a message names it."""
    args, kwargs = structure
    found = [(f"args[{i}]{p}", v) for i, arg in enumerate(args) for p, v in _below(arg)]
    return found + [(f"{k}{p}", v) for k in sorted(kwargs, key=repr) for p, v in _below(kwargs[k])]


def _below(value):
    return zip(paths(value, ""), leaves(value), strict=True)


def as_leaf(path, value):
    """Arrays and numbers as arrays; truth values and strings as they are."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, TensorArray):
        message = f"{path}: a TensorArray is no argument of a traced function; give its stack()"
        raise invalid("tensor_array", message)
    if callable(value) or value is Ellipsis:
        return value
    check_plain(path, value)
    try:
        return as_array(value)
    except InvalidArgumentError as error:
        message = (
            f"{path}: {value!r} is no argument of a traced function; give arrays, numbers, and "
            f"lists, tuples and dicts of these"
        )
        raise invalid("argument", message) from error


def order_of(structure):
    """In which order dicts were filled, as a function may go by that."""
    if isinstance(structure, dict):
        return (tuple(structure), tuple(map(order_of, structure.values())))
    return tuple(map(order_of, structure)) if isinstance(structure, list | tuple) else None


def any_empty(values):
    """Whether any value is an array without elements."""
    return any(isinstance(value, np.ndarray) and not value.size for value in values)


def kinds_of(values, exact=False):
    """What decides whether a graph fits values.

    Lengths other than 1 do not, but where an array has no elements: loops that make no trip give
    results of shapes that no trip tells, and so all lengths count. ``exact`` says that there is
    such an array besides.
    """
    exact = exact or any_empty(values)
    return tuple(_kind_of(value, exact) for value in values)


def _kind_of(value, exact):
    if isinstance(value, np.ndarray):
        shape = value.shape if exact else tuple(n if n == 1 else None for n in value.shape)
        return value.dtype, shape, exact
    return value


def _general_spec(value, exact):
    """What a graph may count on for all values of the same kind; None for what is no array."""
    if not isinstance(value, np.ndarray):
        return None
    return Spec(value.dtype, tuple(n if exact or n == 1 else Dim() for n in value.shape))


class _Leaf:
    """Stands for a `Spec` in a structure, as that is a tuple itself."""

    def __init__(self, spec):
        pattern = shapes.as_pattern("input_signature", spec.shape)
        self.spec = Spec(as_dtype(spec.dtype), pattern)
        if pattern is None or spec.kind != DATA:
            message = f"input_signature: {self.spec} does not tell the rank; give a shape"
            raise invalid("input_signature", message)


class Signature:
    """What the arguments of a function are by its ``input_signature``.

    Parameters
    ----------
    given : list or tuple
        For each argument a `Spec`, or a structure of them.

    Raises
    ------
    InvalidArgumentError
        For anything else.
    """

    def __init__(self, given):
        if not isinstance(given, list | tuple) or isinstance(given, Spec):
            raise _no_signature(given)
        self._like = tuple(map(_boxed, given))
        self.specs = [leaf.spec for leaf in leaves(self._like)]

    def check(self, structure):
        """Refuse arguments of another structure; how each is named, what it is and should be."""
        args, kwargs = structure
        if kwargs or layout(args) != layout(self._like):
            have = describe(args) if not kwargs else f"{describe(args)} and {describe(kwargs)}"
            message = (
                f"the arguments are {have}, and input_signature has {describe(self._like)}; give "
                f"them by position, in its structure"
            )
            raise invalid("input_signature", message)
        return [(*pair, spec) for pair, spec in zip(named(structure), self.specs, strict=True)]

    def values(self, structure):
        """The arguments as arrays of the dtypes that it says."""
        return [_fitted(*each) for each in self.check(structure)]


def _boxed(part):
    if isinstance(part, Spec):
        return _Leaf(part)
    if isinstance(part, dict):
        return {key: _boxed(value) for key, value in part.items()}
    if isinstance(part, list | tuple) and not hasattr(part, "_fields"):
        return type(part)(map(_boxed, part))
    raise _no_signature(part)


def _no_signature(given):
    message = (
        f"input_signature: {given!r} is none; give a list with a Spec for each argument, or lists, "
        f"tuples and dicts of Specs"
    )
    return invalid("input_signature", message)


def _fitted(path, value, spec):
    """An argument in the dtype of its spec."""
    found = np.asarray(value) if isinstance(value, bool) else as_leaf(path, value)
    array = None
    if isinstance(found, np.ndarray) and fits(spec.shape, found.shape):
        with suppress(NbtaError):
            array = as_value("call", path, within_kind(value, spec.dtype), spec.dtype)
    if array is None:
        have = Spec(found.dtype, found.shape) if isinstance(found, np.ndarray) else repr(value)
        message = f"{path} is {have}, and input_signature says {spec}; cast or reshape it"
        raise invalid("input_signature", message)
    return array


def stand_ins(structure, values, specs):
    """Placeholders for arrays in the graph that is being built; other values as they are.

    ``specs`` are those of an ``input_signature``, or None.
    """
    exact = any_empty(values)
    if exact or specs is None:
        specs = [_general_spec(value, exact) for value in values]
    named_values = zip(named(structure), values, specs, strict=True)
    return [_stand_in(i, path, v, s) for i, ((path, _), v, s) in enumerate(named_values)]


def _stand_in(leaf, path, value, spec):
    if not isinstance(value, np.ndarray):
        return value
    lengths = current().lengths
    extents = zip(value.shape, spec.shape, strict=True)
    shape = tuple(lengths.extent(leaf, axis, n, m) for axis, (n, m) in enumerate(extents))
    attrs = {"spec": spec._replace(shape=shape), "label": path}
    tensor = current().create(PLACEHOLDER, [], attrs, name="argument").outputs[0]
    lengths.stands_for(tensor, leaf)
    return tensor
