"""Tensors, shapes and dtypes under TensorFlow's names."""

import operator
import unittest

import ml_dtypes
import numpy as np

import nbta
from nbta.graph.graph import current
from nbta.naming import Flow


class OutOfScope(unittest.SkipTest):
    """What a test asks for is no part of nbta."""


class DType:
    """A dtype that knows TensorFlow's attributes; strings have a fixed width here."""

    def __init__(self, numpy_dtype):
        self.as_numpy_dtype = np.dtype(numpy_dtype).type
        self.numpy = np.dtype(numpy_dtype)
        self.is_complex = self.numpy.kind == "c"
        self.is_floating = self.numpy.kind == "f"

    def __eq__(self, other):
        if not isinstance(other, (DType, np.dtype, type)):
            return NotImplemented
        return self.numpy == unwrap(other)

    def __hash__(self):
        return hash(self.numpy)

    def __repr__(self):
        return f"<dtype {self.numpy}>"


DTYPES = {
    name: DType(name)
    for name in [
        "bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64",
        "complex64", "complex128",
    ]
}  # fmt: skip
DTYPES["string"] = DType("S24")
DTYPES["bfloat16"] = DType(ml_dtypes.bfloat16)


def as_dtype(dtype):
    """A dtype by its NumPy dtype, name, or itself."""
    return dtype if isinstance(dtype, DType) else DType(dtype)


class Shape:
    """A shape that may be unknown, or know its rank only."""

    def __init__(self, dims):
        dims = dims.dims if isinstance(dims, Shape) else dims
        self.dims = None if dims is None else tuple(map(_dimension, dims))

    @property
    def ndims(self):
        """The rank, None where unknown."""
        return None if self.dims is None else len(self.dims)

    rank = ndims

    def as_list(self):
        """Dimensions, None for unknown ones; a shape of unknown rank has no such list."""
        if self.dims is None:
            raise ValueError("the rank is unknown")
        return list(self.dims)

    def __iter__(self):
        return iter(self.as_list())

    def __len__(self):
        return len(self.as_list())

    def __getitem__(self, place):
        return self.as_list()[place]

    def __eq__(self, other):
        return self.dims == Shape(other).dims

    def __hash__(self):
        return hash(self.dims)

    def __repr__(self):
        return f"Shape({self.dims})"


def _dimension(dimension):
    """A known dimension; what stands for the others differs between graphs and functions."""
    return int(dimension) if isinstance(dimension, (int, np.integer)) else None


class Value:
    """A tensor of a graph, an array, or a flow."""

    __array_priority__ = 1000

    def __init__(self, inner):
        self.inner = inner

    @property
    def shape(self):
        """As far as it is known now."""
        return Shape(self.inner.shape)

    def get_shape(self):
        """The same under its older name."""
        return self.shape

    @property
    def dtype(self):
        """Of the elements."""
        return DType(self.inner.dtype)

    @property
    def op(self):
        """The operation that computes it."""
        return Op(self.inner.op)

    @property
    def name(self):
        """Of a tensor."""
        return self.inner.name

    def numpy(self):
        """The array."""
        return self.inner

    def eval(self, feed_dict=None, session=None):
        """Its value in a run."""
        return run(self, feed_dict)

    def mark_used(self):
        """Nothing is said here where a result is not used."""

    def __getitem__(self, key):
        return wrap(self.inner[unwrap(key)])

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.inner, dtype)

    def __bool__(self):
        return bool(self.inner)

    def __index__(self):
        return operator.index(self.inner)

    def __repr__(self):
        return f"<{self.inner!r}>"


class Op:
    """An operation."""

    def __init__(self, inner):
        self.inner = inner

    def get_attr(self, name):
        """What is fixed when the graph is built."""
        return self.inner.attrs[name]


def _operator(function, swapped=False):
    def method(self, other):
        pair = (self.inner, unwrap(other))
        return wrap(function(*reversed(pair) if swapped else pair))

    return method


for _name in ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge"):
    setattr(Value, f"__{_name}__", _operator(getattr(operator, _name)))
for _name in ("add", "sub", "mul", "truediv"):
    setattr(Value, f"__r{_name}__", _operator(getattr(operator, _name), swapped=True))


def walk(change, structure):
    """A structure of lists, tuples and dicts with its leaves changed."""
    if isinstance(structure, dict):
        return {change(k): walk(change, v) for k, v in structure.items()}
    if isinstance(structure, (list, tuple)) and not isinstance(structure, Flow):
        items = [walk(change, item) for item in structure]
        return type(structure)(*items) if hasattr(structure, "_fields") else type(structure)(items)
    return change(structure)


def unwrap(structure):
    """What nbta takes, for what a test has."""
    return walk(_unwrapped, structure)


def _unwrapped(leaf):
    if isinstance(leaf, DType):
        return leaf.numpy
    if isinstance(leaf, Shape):
        return leaf.dims
    return getattr(leaf, "inner", leaf)


def wrap(structure):
    """What a test takes, for what nbta gives."""
    return walk(_wrapped, structure)


def _wrapped(leaf):
    if isinstance(leaf, nbta.TensorArray):
        from foreign.arrays import Array  # which needs this module

        return Array.over(leaf)
    if isinstance(leaf, nbta.Operation):
        return Op(leaf)
    return Value(leaf) if isinstance(leaf, (np.ndarray, np.generic, nbta.Tensor, Flow)) else leaf


#: How sessions run graphs: `nbta.Session.run`'s ``compiled``; why graphs were not compiled.
EXECUTOR = {"compiled": False, "refused": []}


def run(fetches, feed_dict=None):
    """The values of a structure of tensors, operations and plain values."""
    found, graph = [], current()
    walk(lambda leaf: found.append(_unwrapped(leaf)), fetches)
    asked = [leaf for leaf in found if isinstance(leaf, (nbta.Tensor, nbta.Operation))]
    feeds = unwrap(feed_dict or {})
    if asked:
        graph = graph or asked[0].graph
        got = iter(_results(nbta.Session(graph), asked, feeds))
    values = iter([next(got) if isinstance(v, (nbta.Tensor, nbta.Operation)) else v for v in found])
    return walk(lambda leaf: next(values), fetches)


def _results(session, asked, feeds):
    """By the executor that is asked for; one by one what cannot be compiled, such as strings."""
    try:
        return session.run(asked, feeds, EXECUTOR["compiled"])
    except nbta.UnimplementedError as error:
        if "cannot be compiled: " not in str(error):
            raise
        EXECUTOR["refused"].append(str(error).partition("cannot be compiled: ")[2])
        return session.run(asked, feeds, False)


def constant(value, dtype=None, shape=None, name=None):
    """A constant; Python's numbers are of 32 bits, as in TensorFlow."""
    array = np.asarray(unwrap(value), None if dtype is None else unwrap(dtype))
    small = {"float64": np.float32, "int64": np.int32}
    if dtype is None and not hasattr(value, "dtype") and array.dtype.name in small:
        array = array.astype(small[array.dtype.name])
    array = array if shape is None else np.broadcast_to(array, shape)
    return wrap(nbta.constant(array, name=name))
