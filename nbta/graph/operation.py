"""Operations, and the tensors that they give."""

import numpy as np

from nbta import shapes
from nbta.errors import NoNumbaType, invalid
from nbta.graph.spec import DATA, Spec
from nbta.immutable import refused

NUMBER_REMEDY = (
    "Use nbta's functions in place of those of math; give back what you want to see, or fetch it "
    "with Session.run"
)


class Tensor:
    """A result of an operation, known once the graph runs.

    Arithmetic, comparison, indexing and NumPy's functions work on it and give tensors.

    Attributes
    ----------
    op : Operation
        What computes it.
    index : int
        Which of the operation's results it is.
    """

    __slots__ = ("__weakref__", "index", "op", "spec")
    # The type of Python's numbers that it behaves like in arithmetic, if it does.
    weak = None

    def __init__(self, op: "Operation", index: int, spec: Spec):
        self.op, self.index, self.spec = op, index, spec

    @property
    def name(self) -> str:
        """``operation:index``."""
        return f"{self.op.name}:{self.index}"

    @property
    def graph(self):
        """Where it belongs."""
        return self.op.graph

    @property
    def dtype(self) -> np.dtype:
        """Of the elements."""
        return self.spec.dtype

    @property
    def ndim(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return self.spec.rank

    @property
    def kind(self) -> str:
        """``"data"``, ``"handle"`` or ``"flow"``."""
        return self.spec.kind

    __hash__ = object.__hash__

    def _no_value(self, what, remedy):
        message = (
            f"{self.name} is a symbolic tensor, which has a value only when the graph runs; it "
            f"cannot be used as {what}. {remedy}"
        )
        return invalid("symbolic", message)

    def __bool__(self):
        remedy = (
            "Use nbta.cond, nbta.while_loop or nbta.where; & and | in place of `and` and `or`, "
            "(0 < x) & (x < 1) in place of 0 < x < 1"
        )
        raise self._no_value("a Python truth value", remedy)

    def __index__(self):
        remedy = (
            "Use nbta.while_loop, nbta.scan or nbta.arange; make a TensorArray that is indexed "
            "with it while the graph is being built"
        )
        raise self._no_value("a Python integer", remedy)

    def __int__(self):
        raise self._no_value("a Python integer", "Use nbta.cast")

    def __float__(self):
        raise self._no_value("a Python number", NUMBER_REMEDY)

    def __complex__(self):
        raise self._no_value("a Python number", NUMBER_REMEDY)

    def __array__(self, dtype=None, copy=None):
        remedy = (
            "Use nbta's functions, such as nbta.stack for a list of tensors and nbta.take(a, i, "
            "axis=0) for a[i] of a NumPy array; make a TensorArray that takes it while the graph "
            "is being built"
        )
        raise self._no_value("a NumPy array", remedy)

    @property
    def _numba_type_(self):
        """What Numba asks for, when a compiled function is called with a tensor."""
        remedy = "Make the @njit function one with nbta.custom_gradient"
        return NoNumbaType(self._no_value("an argument of compiled code", remedy))

    def __iter__(self):
        if not self.spec.shape or type(self.spec.shape[0]) is not int:
            remedy = "Use nbta.scan, nbta.map_fn or nbta.while_loop; take single elements by index"
            raise self._no_value("an iterable", remedy)
        return (self[i] for i in range(self.spec.shape[0]))

    def __setitem__(self, key, value):
        raise refused("an item assignment", f"{self.name}, a symbolic tensor,")

    def __format__(self, spec):
        if spec:
            raise self._no_value(
                f"a number in the format {spec!r}",
                "Print what the function gives back, or what Session.run does",
            )
        return str(self)

    def __repr__(self):
        what = str(self.spec) if self.kind == DATA else self.kind
        return f"<nbta.Tensor {self.name!r} {what}>"


class Shape(tuple):
    """Extents, some of which are numbers that only the run tells; its text has those of a trace."""

    __slots__ = ()

    def __str__(self):
        inner = ", ".join(map(str, self))
        return f"({inner},)" if len(self) == 1 else f"({inner})"

    def __format__(self, spec):
        return format(str(self), spec)


class Operation:
    """A node of a graph.

    Attributes
    ----------
    graph : Graph
    record : Record
        What kind of operation it is.
    name : str
        Unique in its graph.
    inputs : list of Tensor
    attrs : dict
        What is fixed when the graph is built.
    control_inputs : list of Operation
        What must have run before.
    outputs : list of Tensor
    number : int
        Its place in creation order.
    """

    __slots__ = (
        "__weakref__", "attrs", "control_inputs", "graph", "inputs", "name", "number", "outputs",
        "record", "tapes",
    )  # fmt: skip

    def __init__(self, graph, record, name, inputs, attrs, control_inputs, specs):
        self.graph, self.record, self.name = graph, record, name
        self.inputs, self.attrs, self.control_inputs = list(inputs), attrs, list(control_inputs)
        self.outputs = [Tensor(self, i, spec) for i, spec in enumerate(specs)]
        self.number = len(graph.operations)
        self.tapes = {}

    @property
    def type(self) -> str:
        """Name of the record."""
        return self.record.name

    def infer(self):
        """Specs of the outputs, by the record's shape rule."""
        result = self.record.infer(*(t.spec for t in self.inputs), **self.attrs)
        return (result,) if isinstance(result, Spec) else tuple(result)

    def add_control_input(self, op: "Operation") -> None:
        """Make this operation run after another one of the same graph."""
        if op.graph is not self.graph:
            message = f"add_control_input: {op.name!r} is not in the graph of {self.name!r}"
            raise invalid("graph", message)
        self.control_inputs.append(op)
        self.graph.changed()

    def replace_input(self, index: int, tensor: Tensor) -> None:
        """Take input ``index`` from another tensor, of the same dtype and a compatible shape."""
        if not 0 <= index < len(self.inputs):
            message = f"replace_input: {self.name!r} has {len(self.inputs)} inputs, and no {index}"
            raise invalid("index", message)
        old, new = self.inputs[index].spec, tensor.spec
        if tensor.graph is not self.graph:
            message = f"replace_input: {tensor.name!r} is not in the graph of {self.name!r}"
            raise invalid("graph", message)
        same = (old.dtype, old.kind) == (new.dtype, new.kind)
        if not same or not shapes.compatible(old.shape, new.shape):
            message = (
                f"replace_input: input {index} of {self.name!r} is {old}, and {tensor.name!r} is "
                f"{new}; give one of the same dtype and shape"
            )
            raise invalid("shape", message)
        self.inputs[index] = tensor
        self.graph.changed()

    def __repr__(self):
        return f"<nbta.Operation {self.name!r} type={self.type}>"
