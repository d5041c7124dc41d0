"""Numbers that lengths decide: entries of ``x.shape``, ``x.size``, and what is computed from them.

In arithmetic they are what Python's numbers are: float32 stays float32. Where Python must know one
(``if``, ``range``, a key of a dict, ``np.zeros``), the trace begins again with the lengths that it
depends on as plain integers, and is for these lengths only; see `nbta.graph.lengths`.
"""

from __future__ import annotations

import operator

import numpy as np

from nbta.errors import InvalidArgumentError, NoNumbaType, invalid
from nbta.graph.graph import current
from nbta.graph.lengths import users_line
from nbta.graph.operation import DATA, Shape, Spec, Tensor, is_inexact
from nbta.ops import tensor_methods
from nbta.ops.core import arithmetic
from nbta.ops.core.checks import checked
from nbta.ops.core.shaping import INT64, cast, shape_of, size
from nbta.ops.elementary import basic as elementary
from nbta.ops.indexing.items import getitem

#: Binary digits of a length, and the most that a product is computed with.
LENGTH_BITS, MOST_BITS = 30, 63
_PLAIN = bool | int | float | complex


class Number(Tensor):
    """A number that is known when the graph runs, and in Python where a trace is for one length.

    Parameters
    ----------
    make : callable
        Gives the tensor with its value.
    home : Graph
        Where that is.
    weak : type
        int, float, complex or bool.
    sources : frozenset
        What it depends on; see `nbta.graph.lengths.Lengths.source`.
    least : number or None
        What it is at least.
    bits : int
        How many binary digits it has at most.
    place : tuple or None
        Of an entry of a shape: the tensor, and the axis.
    """

    __slots__ = ("_home", "_made", "_make", "bits", "least", "place", "sources", "weak")

    def __init__(self, make, home, weak, sources, least=None, bits=LENGTH_BITS, place=None):
        self._make, self._made, self._home = make, None, home
        self.weak, self.sources, self.least, self.bits = weak, sources, least, bits
        self.place, self.spec = place, Spec(_DTYPES[weak], ())

    @property
    def itself(self):
        """The tensor that an operation gives."""
        if self._made is None:
            self._made = self._make()
        return self._made

    graph = property(lambda self: self._home)
    op = property(lambda self: self.itself.op)
    index = property(lambda self: self.itself.index)

    @property
    def source(self):
        """What an entry of a shape is the length of; None for other numbers."""
        return next(iter(self.sources)) if self.place else None

    @property
    def pattern(self):
        """What a pattern of a shape has in its place."""
        return self.place[0].spec.shape[self.place[1]] if self.place else None

    def ask(self, what):
        """Begin the trace again with the value known, or refuse; it never comes back."""
        raise self._refusal(what)

    def ask_again(self):
        """Begin the trace again with the value known; return where that would not tell it."""
        lengths = self._home.root.lengths
        if lengths is not None:
            lengths.ask(self.sources)

    def _refusal(self, what):
        """The error where a new trace would not tell the value either."""
        self.ask_again()
        origin = "lengths of symbolic tensors"
        if self.place:
            origin = f"axis {self.place[1]} of {self.place[0].name!r}, a symbolic tensor"
        message = (
            f"{users_line()}: Python needs {what}, and it comes from {origin}, which is known only "
            f"when the graph runs. {_REMEDY}"
        )
        return invalid("symbolic", message)

    def in_dtype(self, dtype):
        """The tensor of a dtype that a number of Python takes; of its own where it takes none."""
        if dtype == self.dtype:
            return self.itself
        if self.weak is int and dtype.kind in "iu":
            self.ask(f"a number that fits {dtype}")
        takes = {int: True, float: is_inexact(dtype), complex: dtype.kind == "c", bool: False}
        return cast(self.itself, dtype) if takes[self.weak] else self.itself

    # What Python must know.

    def __hash__(self):
        return self.ask("a key of a dict or set")

    def __index__(self):
        return self.ask("an integer")

    def __int__(self):
        return self.ask("an integer")

    def __float__(self):
        return self.ask("a float")

    def __complex__(self):
        return self.ask("a complex number")

    _numba_type_ = property(lambda self: NoNumbaType(self._refusal("an argument of compiled code")))

    def __bool__(self):
        if self.least is not None and self.least > 0:
            return True
        return self.ask("a truth value")

    def __str__(self):
        """The value where a trace can be for it; else what stands for any."""
        lengths = self._home.root.lengths
        if lengths is not None:
            lengths.ask(self.sources)
        return repr(self)

    def __format__(self, spec):
        return self.ask("the text of a number") if spec else str(self)

    def __array__(self, dtype=None, copy=None):
        return self.ask("an array of it")

    def __round__(self, digits=None):
        return self.ask("a rounded number")

    def __repr__(self):
        return "?"


class Truth(Number):
    """A comparison of numbers."""

    __slots__ = ()

    def __bool__(self):
        return self.ask("a truth value")


_DTYPES = {
    int: INT64, float: np.dtype(np.float64), complex: np.dtype(np.complex128), bool: np.dtype(bool),
}  # fmt: skip
_REMEDY = (
    "Use nbta.cond or nbta.where in place of `if`, x.shape[0] in place of len(x), nbta.while_loop, "
    "nbta.scan or nbta.map_fn in place of range(), nbta.zeros and its kin in place of NumPy's"
)


def _graph_of(*values):
    return next(value.graph for value in values if isinstance(value, Tensor))


def entry(tensor, axis) -> int | Number:
    """One dimension of a tensor's shape."""
    dimension = tensor.spec.shape[axis]
    if type(dimension) is int:
        return dimension
    lengths = tensor.graph.root.lengths
    source = dimension if lengths is None else lengths.source(tensor, axis)
    least = 0 if lengths is None else lengths.least(source)
    place = (tensor, axis)
    return Number(
        lambda: _extracted(tensor, axis), tensor.graph, int, frozenset([source]), least, place=place
    )


def _extracted(tensor, axis):
    """The scalar with a dimension, in the tensor's own graph, as `shape_of` has it."""
    graph = tensor.graph
    key = ("dimension", tensor, axis)
    if key not in graph.cache:
        with graph.as_default(), graph.control_dependencies(None):
            graph.cache[key] = getitem(shape_of(tensor), axis)
    return graph.cache[key]


def _shape(self) -> tuple[int, ...] | None:
    """None for an unknown rank; else a tuple of dimensions.

    A dimension that only the run knows is a number to compute with.
    """
    dimensions = self.spec.shape
    if dimensions is None:
        return None
    if all(type(dimension) is int for dimension in dimensions):
        return tuple(dimensions)
    return Shape(entry(self, axis) for axis in range(len(dimensions)))


def _size(self) -> int:
    """How many elements it has: an int, or a number to compute with."""
    dimensions = self.shape
    if dimensions is not None and not isinstance(dimensions, Shape):
        return int(np.prod(dimensions, dtype=object))
    unknown = [n for n in dimensions or () if isinstance(n, Number)]
    sources = frozenset().union(*(n.sources for n in unknown)) or frozenset([None])
    least = 0 if dimensions is None else _product([getattr(n, "least", n) for n in dimensions])
    return Number(lambda: _counted(self), self.graph, int, sources, least)


def _product(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def _counted(tensor):
    with tensor.graph.as_default(), tensor.graph.control_dependencies(None):
        return size(tensor)


def _length(self) -> int:
    """Python's ``len``, which must be an integer of Python's."""
    if not self.spec.shape:
        raise self._no_value("something with a Python length", "It has no first axis")
    dimension = entry(self, 0)
    return dimension if type(dimension) is int else dimension.ask("a Python length")


# Arithmetic: with Python's numbers as among them, with anything else as tensors.


def _is_plain(value):
    return isinstance(value, Number) or (
        isinstance(value, _PLAIN) and not isinstance(value, np.generic)
    )


def _least(value):
    if isinstance(value, Number):
        return value.least
    return None if isinstance(value, complex) or value != value else value


def _bits(value):
    if isinstance(value, Number):
        return value.bits if value.weak is int else 0
    return value.bit_length() if isinstance(value, int) else 0


def _sources(*values):
    return frozenset().union(*(v.sources for v in values if isinstance(v, Number)))


def _value(*values, what="a number"):
    """Ask for the numbers among values."""
    next(value for value in values if isinstance(value, Number)).ask(what)


def _computed(function, values, least, bits):
    """A number from an operation on others."""
    if bits > MOST_BITS:
        _value(*values, what="an integer of more than 64 bits")
    tensor = function(*values)
    least = least if least == least else None  # 0 times infinity
    weak = next(kind for kind, dtype in _DTYPES.items() if dtype == tensor.dtype)
    least = None if weak is complex else least
    return Number(lambda: tensor, tensor.graph, weak, _sources(*values), least, bits)


def _leasts(a, b):
    """What two numbers are at least, 0 or more; None where that is not proven."""
    found = _least(a), _least(b)
    return None if None in found or min(found) < 0 else found


def _add(a, b):
    found = _least(a), _least(b)
    low = None if None in found else sum(found)
    return _computed(arithmetic.add, (a, b), low, max(_bits(a), _bits(b)) + 1)


def _subtract(a, b):
    found = _least(a), _least(b)
    low = None if None in found or isinstance(b, Number) else found[0] - b
    return _computed(arithmetic.subtract, (a, b), low, max(_bits(a), _bits(b)) + 1)


def _multiply(a, b):
    found = _leasts(a, b)
    low = found and found[0] * found[1]
    return _computed(arithmetic.multiply, (a, b), low, _bits(a) + _bits(b))


def _checked_divisor(b):
    """A divisor, which is not 0: Python refuses that, and NumPy does not."""
    if not isinstance(b, Number):
        if b == 0:
            raise ZeroDivisionError("division by zero")
        return b
    if b.least is not None and b.least > 0:
        return b
    try:
        b.ask("to know that it does not divide by zero")
    except InvalidArgumentError:  # such as the length of a list that a loop fills
        if b._home.root.lengths is None or current() is None or b.weak is not int:
            raise
    message = f"{users_line()}: division by zero"
    value = checked(b.itself, arithmetic.not_equal(b.itself, 0), message)
    return Number(lambda: value, value.graph, b.weak, b.sources, 1, b.bits)


def _quotient(operation, function, bits):
    """Division of one kind."""

    def divide(a, b):
        b = _checked_divisor(b)
        found = _leasts(a, b)
        low = found and (0 if isinstance(b, Number) else operation(found[0], b))
        return _computed(function, (a, b), low, bits(a))

    return divide


_divide = _quotient(operator.truediv, arithmetic.divide, lambda a: 0)
_floor_divide = _quotient(operator.floordiv, arithmetic.floor_divide, _bits)


def _mod(a, b):
    b = _checked_divisor(b)
    low = None if _least(b) is None or _least(b) < 0 else 0
    return _computed(arithmetic.mod, (a, b), low, max(_bits(a), _bits(b)))


def _power(a, b):
    """Powers that are proven to be what Python's are: of a length, to a number that is known."""
    if isinstance(b, Number | complex) or a.weak not in (int, float):
        _value(a, b, what="a power")
    if a.weak is int and isinstance(b, int):
        if not 0 <= b <= 2:
            a.ask("a power of a length")
        low = None if a.least is None or a.least < 0 else a.least**b
        return _computed(elementary.power, (a, int(b)), low, max(1, a.bits * b))
    if a.least is None or a.least < 0 or (b < 0 and a.least == 0):
        a.ask("to know that it has such a power")
    low = a.least**b if b >= 0 else 0
    return _computed(elementary.power, (_as_float(a), float(b)), low, 0)


def _as_float(a):
    return a if a.weak is float else _computed(lambda n: cast(n, np.float64), (a,), a.least, 0)


def _divmod(a, b):
    return _floor_divide(a, b), _mod(a, b)


def _negative(self):
    return _computed(arithmetic.negative, (_numeric(self),), None, self.bits)


def _absolute(self):
    low = self.least if self.least is not None and self.least >= 0 else 0
    return _computed(elementary.abs, (_numeric(self),), low, self.bits)


def _numeric(value):
    """Truth values count as 0 and 1 in Python; this asks for them."""
    if isinstance(value, Number) and value.weak is bool:
        value.ask("a truth value as a number")
    return value


def _with_python(compute, function):
    """An operator, and the reflected one."""

    def combined(other, a, b):
        if _is_plain(other):
            return compute(_numeric(a), _numeric(b))
        if isinstance(other, Tensor | np.ndarray | np.generic):
            return function(a, b)
        return NotImplemented

    def method(self, other):
        return combined(other, self, other)

    def reflected(self, other):
        return combined(other, other, self)

    return method, reflected


def _bitwise(name):
    """``&`` or ``|``: of truth values another one, of integers for Python to compute."""
    function, of_tensors = _OF_TRUTH[name], getattr(tensor_methods.Tensor, f"__{name}__")

    def method(self, other):
        if not _is_plain(other):
            return of_tensors(self, other)
        if all(isinstance(value, bool | Truth) for value in (self, other)):
            return _truth(function, self, other)
        return self.ask("the bits of a number")

    return method


_OF_TRUTH = {"and": arithmetic.logical_and, "or": arithmetic.logical_or}


def _asking(what, name=None):
    """An operator whose result Python must compute, where no tensor is in it."""
    of_tensors = name and getattr(tensor_methods.Tensor, name)

    def method(self, other=None, modulus=None):
        if of_tensors and isinstance(other, Tensor | np.ndarray) and not _is_plain(other):
            return of_tensors(self, other)
        return self.ask(what)

    return method


# Comparisons.

_BY_LEAST = {
    "eq": lambda low, c: False if c < low else None,
    "ne": lambda low, c: True if c < low else None,
    "lt": lambda low, c: False if c <= low else None,
    "le": lambda low, c: False if c < low else None,
    "gt": lambda low, c: True if c < low else None,
    "ge": lambda low, c: True if c <= low else None,
}


def _decided(name, a, b):
    """What a comparison is for every length; None where lengths differ in that."""
    if isinstance(b, Number):
        same = a.place and b.place and a.place[1] == b.place[1] and a.place[0] is b.place[0]
        if same or (a.source is not None and a.source is b.source):
            return getattr(operator, name)(0, 0)
        return None
    if isinstance(b, complex):
        return None
    if a.pattern is not None and b == 1 and name in ("eq", "ne"):
        return name == "ne"
    return None if a.least is None else _BY_LEAST[name](a.least, b)


def _comparison(name, function):
    def method(self, other):
        if other is None and self.place and name in ("eq", "ne"):
            return name == "eq"  # "is it unknown?", as for TensorFlow's shapes
        if not _is_plain(other):
            # Texts and dates are not computed with, and that is told: no answer would be "no".
            numeric = isinstance(other, Tensor | np.ndarray | np.generic) or holds_text(self)
            return function(self, other) if numeric else NotImplemented
        found = _decided(name, self, other)
        if found is not None:
            return found
        return _truth(function, self, other)

    return method


def holds_text(value) -> bool:
    """Whether a tensor has texts or dates, which may be equal to what no number is equal to."""
    return value.spec.kind == DATA and value.dtype.kind in "SUMm"


def _truth(function, a, b):
    """A comparison, made an operation where a tensor is needed."""
    graph = _inner(a, b)

    def make():
        with graph.as_default(), graph.control_dependencies(None):
            return function(a, b)

    return Truth(make, graph, bool, _sources(a, b), None, 0)


def _second(method):
    """An operator of a number, after that of an array on the right that may change in place.

    Only the array's own gives an array that may change; see `ArrayWrapper.comes_first`.
    """

    def operator_of_number(self, other, *more):
        if getattr(other, "comes_first", False):
            return NotImplemented
        return method(self, other, *more)

    return operator_of_number


def _inner(*values):
    """Of the graphs of numbers the one that is inside of all others."""
    graphs = [value.graph for value in values if isinstance(value, Number)]
    return max(graphs, key=_depth)


def _depth(graph):
    return 0 if graph is graph.root else 1 + _depth(graph.outer)


def _install():
    arithmetical = {
        "add": (_add, tensor_methods.plus), "sub": (_subtract, arithmetic.subtract),
        "mul": (_multiply, arithmetic.multiply), "truediv": (_divide, arithmetic.divide),
        "floordiv": (_floor_divide, arithmetic.floor_divide), "mod": (_mod, arithmetic.mod),
        "pow": (_power, elementary.power), "divmod": (_divmod, arithmetic.floor_divide),
    }  # fmt: skip
    for name, functions in arithmetical.items():
        method, reflected = _with_python(*functions)
        setattr(Number, f"__{name}__", _second(method))
        setattr(Number, f"__r{name}__", reflected)
    comparisons = {
        "lt": arithmetic.less, "le": arithmetic.less_equal, "gt": arithmetic.greater,
        "ge": arithmetic.greater_equal, "eq": arithmetic.equal, "ne": arithmetic.not_equal,
    }  # fmt: skip
    for name, function in comparisons.items():
        setattr(Number, f"__{name}__", _second(_comparison(name, function)))
    for name in _OF_TRUTH:
        setattr(Number, f"__{name}__", _second(_bitwise(name)))
        setattr(Number, f"__r{name}__", _bitwise(name))
    Number.__invert__ = _asking("the bits of a number")
    for name in ("lshift", "rshift", "xor"):
        one, other = (_asking("the bits of a number", f"__{side}{name}__") for side in ("", "r"))
        setattr(Number, f"__{name}__", _second(one))
        setattr(Number, f"__r{name}__", other)
    for name in ("trunc", "floor", "ceil"):
        setattr(Number, f"__{name}__", _asking("an integer"))
    Number.__neg__, Number.__abs__ = _negative, _absolute
    Number.__pos__ = lambda self: _numeric(self)
    Tensor.shape = property(_shape, tensor_methods.assigned("shape"))
    Tensor.size = property(_size)
    Tensor.__len__ = _length


_install()
