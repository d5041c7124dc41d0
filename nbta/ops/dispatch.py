"""How a function becomes an operation: in a graph it is added, elsewhere it runs at once."""

import functools
from collections.abc import Callable

import numpy as np

from nbta.dtypes import as_dtype, as_plain, check_plain
from nbta.errors import InvalidArgumentError, NbtaError, invalid, located
from nbta.graph import graph as graphs
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.graph.record import Record, register
from nbta.graph.spec import DATA, FLOW, Spec
from nbta.immutable import computed

#: All functions on tensors that users call, by name.
FUNCTIONS: dict[str, Callable] = {}
#: What stands for NumPy's functions, by NumPy's names of them, and how many first arguments are in
#: NumPy's order; None for universal functions, which have no others.
OF_NUMPY: dict[str, tuple[Callable, float | None]] = {}


def exported(function=None, *, also=None, numpy=None):
    """Give users a function, and NumPy where a function of its own meets a tensor.

    Parameters
    ----------
    function : callable
        By its name it stands for NumPy's universal function of that name, too, if there is one.
    also : str, optional
        Another name that NumPy has for it.
    numpy : int, optional
        Of what is no universal function, and NumPy has as well: how many first arguments stand in
        NumPy's order. All others are to be named.
    """
    if function is None:
        return functools.partial(exported, also=also, numpy=numpy)
    if function.__name__ in FUNCTIONS:
        raise ValueError(f"there is a function {function.__name__!r} already")
    FUNCTIONS[function.__name__] = function
    for name in {function.__name__, also or function.__name__}:
        OF_NUMPY[name] = function, numpy
    return function


def define(name, infer, evaluate, gradient, **options) -> Record:
    """A record in the table; see `nbta.graph.record.Record`."""
    return register(Record(name, infer, evaluate, gradient, **options))


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


def apply(record: Record, inputs, attrs=None, name=None):
    """The result of an operation: tensors in a graph, else arrays."""
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
            return record.evaluate(*arrays, **attrs)
    except NbtaError as error:
        raise located(error, record.name) from None
    except ValueError as error:
        raise InvalidArgumentError(f"{record.name}: {error}") from None


def as_tensor(value, graph=None, dtype=None) -> Tensor:
    """The tensor of a graph that stands for a value: itself, or a constant."""
    graph = graph or current()
    if isinstance(value, Tensor):
        if dtype is not None and value.weak is not None:
            value = value.in_dtype(np.dtype(dtype))
        return graph.resolve(value)
    return constant_in(graph, _frozen(as_array(value, dtype)))


def as_array(value, dtype=None) -> np.ndarray:
    """A value as a constant array, of a dtype that tensors can have."""
    if hasattr(value, "handle") and hasattr(value, "stack"):
        message = f"{value!r} is a TensorArray where a tensor is needed; use its stack() or read(i)"
        raise invalid("tensor_array", message)
    check_plain("value", value)
    try:
        array = np.asarray(value) if dtype is None else np.asarray(value, dtype)
    except (ValueError, TypeError) as error:
        if isinstance(error, NbtaError):
            raise
        raise invalid("value", f"{value!r} is no tensor ({error})") from None
    if array.dtype.hasobject:
        raise invalid("value", f"{value!r} is no tensor; give numbers, arrays or tensors")
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
