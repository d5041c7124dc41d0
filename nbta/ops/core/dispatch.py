"""How a function becomes an operation: in a graph it is added, elsewhere it runs at once."""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from nbta.bitwise import key_of
from nbta.dtypes import as_dtype, as_plain, check_plain
from nbta.errors import InvalidArgumentError, NbtaError, invalid, located
from nbta.graph import graph as graphs
from nbta.graph.graph import current
from nbta.graph.operation import DATA, FLOW, Record, Spec, Tensor, register
from nbta.immutable import computed
from nbta.ops.core.descriptions import OTHER, Family, describe
from nbta.ops.core.remedies import REMEDIES

#: All functions on tensors that users call, by name.
FUNCTIONS: dict[str, Callable] = {}
#: What stands for NumPy's and SciPy's functions, by `known_as`, and how many first arguments are in
#: their order; None for universal functions, which have no others.
OF_NUMPY: dict[str, tuple[Callable, float | None]] = {}

F = TypeVar("F", bound=Callable[..., Any])


@overload
def exported(function: F) -> F: ...
@overload
def exported(
    *, also: str | Sequence[str] = (), numpy: float | None = None, family: Family = OTHER
) -> Callable[[F], F]: ...
def exported(function=None, *, also=(), numpy=None, family=OTHER):
    """Give users a function, and NumPy and SciPy where a function of theirs meets a tensor.

    Parameters
    ----------
    function : callable
        By its name it stands for NumPy's function of that name, too, if there is one.
    also : str or sequence of str, optional
        Other names that it stands for: in NumPy's namespace, "linalg.norm", "fft.rfft",
        "scipy.special.logsumexp", or of a universal function of whichever library.
    numpy : int, optional
        Of what is no universal function, and these have as well: how many first arguments stand in
        their order. All others are to be named.
    family : Family, optional
        What its docstring shares with others.
    """
    if function is None:
        return functools.partial(exported, also=also, numpy=numpy, family=family)
    if function.__name__ in FUNCTIONS:
        raise ValueError(f"there is a function {function.__name__!r} already")
    FUNCTIONS[function.__name__] = function
    describe(function, family)
    for name in {function.__name__, *([also] if isinstance(also, str) else also)}:
        OF_NUMPY[name] = function, numpy
    return function


def stands_for(*names: str, numpy: float | None = None) -> Callable[[F], F]:
    """Let a function stand for others of NumPy's and SciPy's, without a name among nbta's own.

    The parameters are those of `exported`; so other arguments or results of theirs are met.
    """

    def decorate(function):
        OF_NUMPY.update(dict.fromkeys(names, (function, numpy)))
        return function

    return decorate


def refuses(remedy: str, *names: str) -> None:
    """Say of functions of NumPy's and SciPy's what to use in their place, by `known_as`."""

    def refused_by(name):
        def refuse(*args, **kwargs):
            what = name if name.startswith("scipy.") else f"np.{name}"
            tensors = [repr(one.name) for one in args if isinstance(one, Tensor)]
            given = tensors[0] if tensors else "values that only the run knows"
            message = f"{what} with {given}: nbta has no such operation on symbolic tensors"
            raise invalid("symbolic", f"{message}; {remedy}")

        return refuse

    for name in names:
        stands_for(name, numpy=math.inf)(refused_by(name))


def library_of(ufunc: np.ufunc) -> str:
    """Whose universal function it is, "np" or "scipy.special"; empty for one that a user made.

    It may be called exp all the same.
    """
    homes = [("np", np), ("scipy.special", sys.modules.get("scipy.special"))]
    homes.append(("scipy.special", sys.modules.get("scipy.special._ufuncs")))  # such as _zeta
    name = ufunc.__name__
    return next((k for k, home in homes if getattr(home, name, None) is ufunc), "")


def known_as(function: Callable) -> str:
    """The name under which a function of NumPy's or SciPy's may be in `OF_NUMPY`.

    Empty for others: what stands for a function, such as one that `functools.wraps` it, has taken
    over its name and that of its module.
    """
    name = getattr(function, "__name__", "")  # not every object has one
    if isinstance(function, np.ufunc):
        return name if library_of(function) else ""
    library, *inner = (function.__module__ or "").split(".")
    if library != "numpy":  # where it is after the first is SciPy's own matter
        inner = inner[:1]
    home = sys.modules.get(".".join([library, *inner]))
    if getattr(home, name, None) is not function:
        return ""
    return ".".join([*([] if library == "numpy" else [library]), *inner, name])


def strange(function: Callable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What of some arguments a function does not have: the first such name; empty if it takes all.

    What NumPy has for its own arrays' sake, and is None, may be left out: see `sensible`.
    """
    parameters = inspect.signature(function).parameters.values()
    if inspect.Parameter.VAR_POSITIONAL in {one.kind for one in parameters}:
        return ""
    names = [one.name for one in parameters]
    places = [one for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    if len(args) > len(places):
        return f"of number {len(places) + 1}"
    return next((f"{name}=" for name in kwargs if name not in names), "")


def in_our_names(
    function: Callable, ours: Callable, shared: float, kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by names of NumPy's with those of ours, as far as both have them in one order."""
    try:
        theirs = _in_order(function)
    except ValueError:  # it says nothing
        return dict(kwargs)
    pairs = enumerate(zip(theirs, _in_order(ours), strict=False))
    names = {one: other for k, (one, other) in pairs if k < shared}
    return {names.get(name, name): value for name, value in kwargs.items()}


def _in_order(function):
    """Names of the arguments that may be given by their place."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in inspect.signature(function).parameters.values()
            if one.kind in kinds]  # fmt: skip


def sensible(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name without those that leave everything to NumPy, to which None is no truth."""
    kwargs = {k: False if k == "where" and value is None else value for k, value in kwargs.items()}
    idle = {"out": None, "dtype": None, "where": True, "subok": True, "casting": "same_kind"}
    return {name: value for name, value in kwargs.items()
            if not (name in idle and value is idle[name]) and value is not np._NoValue}  # fmt: skip


def nearest(name: str) -> str:
    """What to use in place of a function that there is no operation for, as part of a message."""
    last = name.rpartition(".")[2]
    if last in REMEDIES:
        return REMEDIES[last]
    found = difflib.get_close_matches(last, FUNCTIONS, 1, 0.82)
    near = f"nbta.{found[0]} is nearest; else " if found else ""
    return f"{near}write it with other functions, or give it a gradient with nbta.custom_gradient"


def define(name, infer, evaluate, gradient, **options) -> Record:
    """A record in the table; see `nbta.graph.operation.Record`."""
    return register(Record(name, infer, evaluate, gradient, **options))


def define_change(name, infer, change, gradient, **options) -> Record:
    """A record of what changes some places of its first input, by what does it to an array."""

    def evaluate(x, *others, **attrs):
        return change(np.array(x), *others, **attrs)

    return define(name, infer, evaluate, gradient, change=change, **options)


def _infer_constant(*, value, kind=DATA):
    return Spec(value.dtype, value.shape, kind)


def _no_gradient(op, dy):
    return []


def _evaluate_constant(*, value, kind=DATA):
    return value


CONSTANT = define("Constant", _infer_constant, _evaluate_constant, _no_gradient, total=True)


def _unbound(*, spec):
    raise AssertionError("parameters are given by what runs the body")


PARAMETER = define("Parameter", lambda *, spec: spec, _unbound, _no_gradient, fed=True)
graphs.PARAMETER = PARAMETER


def building(*values):
    """The graph that an operation on values goes to; None where it runs at once."""
    graph = current()
    if graph is not None:
        return graph
    return next((value.graph for value in values if isinstance(value, Tensor)), None)


def is_in_body(*values) -> bool:
    """Whether an operation on values goes to the body of a loop or a branch, which may not run."""
    graph = building(*values)
    return graph is not None and graph is not graph.root


def apply(record: Record, inputs, attrs=None, name=None):
    """The result of an operation: tensors in a graph, else arrays."""
    inputs = [as_array(v) if isinstance(v, list | tuple) else v for v in inputs]
    graph = building(*inputs)
    if graph is None:
        arrays = [as_plain("value", value) for value in inputs]
        return computed(run_now(record, arrays, attrs or {}))
    tensors = [as_tensor(value, graph) for value in inputs]
    outputs = graph.create(record, tensors, attrs, name=name).outputs
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def run_now(record, arrays, attrs):
    """Check the inputs by the shape rule and compute."""
    try:
        record.infer(*(Spec(a.dtype, a.shape) for a in arrays), **attrs)
        with np.errstate(all="ignore"):
            found = record.evaluate(*arrays, **attrs)
    except NbtaError as error:
        raise located(error, record.name) from None
    except ValueError as error:
        raise InvalidArgumentError(f"{record.name}: {error}") from None
    return tuple(map(_scalar, found)) if type(found) is tuple else _scalar(found)


def _scalar(value):
    """What has no axes as NumPy's functions and compiled ones give it: as a scalar."""
    return value[()] if type(value) is np.ndarray and value.ndim == 0 else value


def as_tensor(value, graph=None, dtype=None) -> Tensor:
    """The tensor of a graph that stands for a value: itself, or a constant."""
    graph = graph or current()
    if isinstance(value, Tensor):
        if dtype is not None and value.weak is not None:
            value = value.in_dtype(np.dtype(dtype))
        return graph.resolve(value)
    outside = graph.root.outside if isinstance(value, np.ndarray) else None
    if outside is not None and (found := outside.tensor(value)) is not None:
        return as_tensor(found, graph, dtype)
    array = as_array(value, dtype)
    return array if isinstance(array, Tensor) else constant_in(graph, _frozen(array))


def _has_tensor(value):
    if isinstance(value, list | tuple):
        return any(map(_has_tensor, value))
    return isinstance(value, Tensor) and value.kind == DATA


def _stacked(values):
    """A list with tensors in it as a tensor; numbers of Python have dtypes there."""
    items = [v if isinstance(v, Tensor) and v.weak is None else v.in_dtype(v.dtype)
             if isinstance(v, Tensor) else as_array(v) for v in values]  # fmt: skip
    return stacked(items)


def stacked(tensors):
    """Tensors of one shape along a new first axis, by the function that exports itself so.

    That stands far above, on shapes and indices, which may be lists with tensors in them.
    """
    return FUNCTIONS["stack"](tensors)


def as_array(value, dtype=None) -> np.ndarray | Tensor:
    """A value as a constant array, of a dtype that tensors can have; a list of tensors as one."""
    if isinstance(value, list | tuple) and _has_tensor(value):
        return _stacked(value)
    if hasattr(value, "handle") and hasattr(value, "stack"):
        message = f"{value!r} is a TensorArray where a tensor is needed; use its stack() or read(i)"
        raise invalid("tensor_array", message)
    check_plain("value", value)
    try:
        array = np.asarray(value) if dtype is None else np.asarray(value, dtype)
    except (ValueError, TypeError) as error:
        if isinstance(error, NbtaError):
            raise
        raise invalid("value", f"{value!r} is not a tensor ({error})") from None
    if array.dtype.hasobject:
        raise invalid("value", f"{value!r} is not a tensor; give numbers, arrays or tensors")
    as_dtype(array.dtype)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _frozen(array):
    """An array that nobody can change any more."""
    if array.base is not None or array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def constant_in(graph, array) -> Tensor:
    """A constant; scalars of one value and dtype are one operation."""
    key = (array.dtype, array.tobytes()) if array.ndim == 0 else None
    found = graph.cache.get(key) if key else None
    if found is None:
        with graph.control_dependencies(None):
            found = graph.create(CONSTANT, [], {"value": array}, name="Const").outputs[0]
        if key:
            graph.cache[key] = found
    return found


def operation_key(op, inputs, after=()):
    """What makes operations equal; None for those with effects or with a state of their own.

    To be looked up: `==` of keys would compare tensors, which builds operations.

    Parameters
    ----------
    op : Operation
    inputs : sequence of Tensor
        In place of its own.
    after : tuple of Operation
        Its control inputs.
    """
    if not op.record.pure or not (op.inputs or op.record is CONSTANT):
        return None
    try:
        attrs = tuple((name, _hashable(value)) for name, value in op.attrs.items())
        key = (op.record, tuple(inputs), attrs, after)
        hash(key)
    except TypeError:
        return None
    return key


def _hashable(value):
    if isinstance(value, np.ndarray | np.generic):
        return (value.dtype, value.shape, value.tobytes())
    if isinstance(value, slice):
        return (slice, *map(_hashable, (value.start, value.stop, value.step)))
    if isinstance(value, bool | int | float | complex):
        return key_of(value)  # an index True is another one than 1
    return tuple(map(_hashable, value)) if isinstance(value, tuple) else value


def special(kind) -> Tensor:
    """The constant in place of a flow, or of a handle, where there is none."""
    graph = current()
    if kind not in graph.cache:
        value = np.float32(0) if kind == FLOW else np.int64(-1)
        with graph.control_dependencies(None):
            op = graph.create(CONSTANT, [], {"value": value, "kind": kind}, name=f"No{kind}")
        graph.cache[kind] = op.outputs[0]
    return graph.cache[kind]


def dtype_of(value):
    """Dtype of a tensor or array; Python numbers have their type, which NumPy treats as weak."""
    if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
        return type(value)
    if isinstance(value, Tensor):
        return value.weak or value.dtype
    return value.dtype if isinstance(value, np.ndarray | np.generic) else None


def is_weak(value) -> bool:
    """Whether a value takes the dtype of what it meets: a number of Python, or of a length."""
    return isinstance(dtype_of(value), type)


def data_spec(tensor) -> Spec:
    """Spec of a tensor or an array."""
    return tensor.spec if isinstance(tensor, Tensor) else Spec(tensor.dtype, tensor.shape, DATA)
