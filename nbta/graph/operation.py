"""Operations: their records, the tensors that they give, and what is known of these."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nbta import shapes
from nbta.errors import NoNumbaType, invalid
from nbta.immutable import refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbta.graph.graph import Graph
    from nbta.typing import DTypeLike, Methods
else:
    Methods = object


DATA, HANDLE, FLOW = "data", "handle", "flow"
#: The kind of a tape (`nbta.ops.loops.residuals`), by the kind of the values that it has in the
#: end.
TAPES = {DATA: "tape", HANDLE: "tape of handles", FLOW: "tape of flows"}
TAPES |= {kind: kind for kind in TAPES.values()}
_WITHOUT_GRADIENT = {HANDLE, TAPES[HANDLE]}


class Spec(NamedTuple):
    """Dtype, partly known shape, and kind.

    A handle is at run time the number of an array in the step's container; a flow is a float32
    scalar with no meaning but order. A tape has the dtype of its values, and no dimensions.
    """

    dtype: np.dtype
    shape: tuple | None
    kind: str = DATA

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def differentiable(self) -> bool:
        """Whether a gradient may pass: floats and complex numbers, flows among them, and tapes."""
        return self.kind not in _WITHOUT_GRADIENT and is_inexact(self.dtype)

    @property
    def is_tape(self) -> bool:
        """Whether it is of the values that a loop saves."""
        return self.kind.startswith("tape")

    def __str__(self):
        if self.kind != DATA:
            return self.kind
        return f"{self.dtype.name} {shapes.text(self.shape)}"


Spec.dtype.__doc__ = "Of the elements."
Spec.shape.__doc__ = "Dimensions; None in it for one that is not known, None for an unknown rank."
Spec.kind.__doc__ = (
    '``"data"``, ``"handle"`` or ``"flow"``, or a tape of these, as ``"tape of flows"``.'
)


def is_inexact(dtype) -> bool:
    """Whether a dtype has fractions: floats, bfloat16, complex."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def spec(dtype: Any, shape=()) -> Spec:
    """A `Spec` of plain data."""
    return Spec(np.dtype(dtype), shape)


HANDLE_SPEC = Spec(np.dtype(np.int64), (), HANDLE)
FLOW_SPEC = Spec(np.dtype(np.float32), (), FLOW)


def made_gradient(gradient: Any) -> Any:
    """A gradient that a rule gave, or left to whoever wants it by giving what makes it."""
    return gradient() if callable(gradient) else gradient


class NotDifferentiable:
    """In place of a gradient rule, where there is no gradient, and why."""

    def __init__(self, reason: str):
        self.reason = reason

    def __repr__(self):
        return f"NotDifferentiable({self.reason!r})"


class Addend(NamedTuple):
    """A gradient of which all but a part is zeros: it is added in place to what else arrives.

    A rule gives one instead of a whole tensor for what was read by index, so that the gradient of
    a read costs no more than the read.
    """

    value: Tensor
    place: tuple
    alone: Callable[[Tensor], Tensor]
    onto: Callable[[Tensor, Tensor], Tensor]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the gradient."""
        return self.value.dtype


Addend.value.__doc__ = "What is added."
Addend.place.__doc__ = "Where: the values of what has the same place are added up before."
Addend.alone.__doc__ = "Of the value, gives the whole tensor, where nothing else arrives."
Addend.onto.__doc__ = "Of a tensor and the value, gives the sum."


@dataclass(frozen=True, eq=False)
class Record:
    """One operation.

    Attributes
    ----------
    name : str
        Its type, as it is printed.
    infer : callable
        ``infer(*input_specs, **attrs)`` gives the spec of the result, or a tuple of specs; it
        raises InvalidArgumentError for inputs that cannot be.
    evaluate : callable
        ``evaluate(*arrays, **attrs)`` computes with NumPy. With ``effects`` it gets the step, which
        has the arrays of the run, before the values.
    gradient : callable or NotDifferentiable
        ``gradient(op, *output_gradients)`` builds operations and gives one gradient an input:
        None where there is none, an `Addend` for what arrives at a part of the input, or a function
        that makes the gradient of an elementwise operation where one is wanted. With
        ``effects`` it gets the gradient computation first. An output without a gradient has None.
    effects : bool
        Whether it touches tensor arrays or runs sub-graphs.
    foreign : bool
        Whether it runs a user's function, which is called no more and no less often than the
        program says, and whose errors stay what they are.
    several : bool
        Whether ``evaluate`` gives a tuple even where there is one result.
    connections : callable or None
        ``connections(op)`` gives for each output the inputs that a gradient may pass to; by
        default all differentiable ones.
    emit : callable or None
        Code for the compiler.
    elementwise : bool
        Whether an item of the result is made of the items at its place in the inputs, which are
        broadcast.
    total : bool or callable
        Whether there is a result for any values, once the shapes of the inputs are known to fit;
        ``total(op)`` where dtypes or attributes decide. See `is_total`.
    cheap : bool
        Whether an item takes less time to compute than to write and to read again.
    selects : bool
        Whether the result is a part of the first input, or tells its dimensions: nothing is
        computed.
    change : callable or None
        Of what gives its first input with other items in some places: ``change(array, *others,
        **attrs)`` puts them into an array and gives that back. ``evaluate`` does it to a copy (see
        `nbta.ops.core.dispatch.define_change`); what runs operations changes the input where it is,
        unless somebody needs the old items.
    takes_list : bool
        Whether ``evaluate`` gets the values as one list, which is its own: so arrays that only a
        body needs can be changed where they are.
    keeps : bool
        Whether the result is the first input where that has the result's shape already.
    shape_input : int or None
        Which input holds the shape that the attribute ``pattern`` describes.
    value_input : int or None
        Which input's items go into an array.
    fed : bool
        Whether whatever runs the graph gives the value.
    spreads : bool or callable
        Whether what is computed of an input ``place`` is NaN where that is, or leaves it out
        whatever it is; ``spreads(op, place)`` says of which. Of inputs in which it is linear, that
        need not be said.
    misses : bool or callable
        Whether it takes or changes items whose indices the run may find to be out of range;
        ``misses(op)`` where attributes decide.
    tangent : callable or None
        ``tangent(op, *input_tangents)`` builds operations and gives one tangent an output, None
        where there is none; inputs without a tangent have None. With ``effects`` it gets the
        computation first. Where there is none, `nbta.control.forward_mode` derives one.
    linear : tuple of int or bool
        The inputs in which the operation is linear, if all change together; True for all floats.
    multilinear : bool
        Whether it is linear in each of its inputs.
    moves : bool
        Whether an item of the result is an item of an input in which the operation is linear, or
        zero: evaluated for numbers of items, it gives those of the items that are moved.
    distinct : bool
        Whether its result is indices of which no two name one item.
    """

    name: str
    infer: Callable
    evaluate: Callable
    gradient: Callable | NotDifferentiable
    effects: bool = False
    several: bool = False
    foreign: bool = False
    connections: Callable | None = None
    emit: Callable | None = None
    elementwise: bool = False
    total: bool | Callable = False
    cheap: bool = False
    selects: bool = False
    change: Callable | None = None
    takes_list: bool = False
    keeps: bool = False
    shape_input: int | None = None
    value_input: int | None = None
    fed: bool = False
    spreads: bool | Callable = False
    misses: bool | Callable = False
    tangent: Callable | None = None
    linear: tuple[int, ...] | bool = False
    multilinear: bool = False
    moves: bool = False
    distinct: bool = False

    @property
    def pure(self) -> bool:
        """Whether it depends on its inputs alone, and does nothing but give results."""
        return not (self.effects or self.foreign)

    @property
    def is_registered(self) -> bool:
        """Whether its name says which record it is."""
        return TABLE.get(self.name) is self

    @property
    def changes(self) -> bool:
        """Whether the result is the first input with other items in some places."""
        return self.change is not None

    def is_total(self, op) -> bool:
        """Whether an operation of this record gives a result for any values of its inputs."""
        return self.total(op) if callable(self.total) else self.total

    def may_miss(self, op) -> bool:
        """Whether a run may find an index of an operation of this record to be out of range."""
        return self.misses(op) if callable(self.misses) else self.misses

    def spreads_from(self, op, place) -> bool:
        """Whether what is computed of an input of an operation is NaN where that is."""
        linear = self.linear is True or (self.linear and place in self.linear)
        spreads = self.spreads(op, place) if callable(self.spreads) else self.spreads
        return bool(linear or self.multilinear or spreads)

    def __repr__(self):
        return f"<record {self.name}>"


#: All records by name.
TABLE: dict[str, Record] = {}


def register(record: Record) -> Record:
    """Put a record in the table."""
    if record.name in TABLE:
        raise ValueError(f"there is a record {record.name!r} already")
    TABLE[record.name] = record
    return record


NUMBER_REMEDY = (
    "Use nbta's functions in place of those of math; return what you want to see, or fetch it "
    "with Session.run"
)


class _Asked(threading.local):
    """How often somebody asked a tensor for a value that only the run has.

    Code that handles the error which that raises goes on in a way that it would not take in a run.
    """

    def __init__(self):
        self.times = 0


asked = _Asked()


class Tensor(Methods):
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

    def __init__(self, op: Operation, index: int, spec: Spec) -> None:
        self.op, self.index, self.spec = op, index, spec

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self  # a value, as numbers are

    @property
    def name(self) -> str:
        """``operation:index``."""
        return f"{self.op.name}:{self.index}"

    @property
    def graph(self) -> Graph:
        """Where it belongs."""
        return self.op.graph

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self.spec.dtype

    @property
    def ndim(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return self.spec.rank

    @property
    def kind(self) -> str:
        """``"data"``, ``"handle"`` or ``"flow"``, or a tape of these, as ``"tape of flows"``."""
        return self.spec.kind

    __hash__ = object.__hash__

    def _no_value(self, what, remedy):
        label = label_of(self)
        name = self.name if label is None else f"{label} ({self.name})"
        message = (
            f"{name} is a symbolic tensor, which has a value only when the graph runs; it "
            f"cannot be used as {what}. {remedy}"
        )
        return invalid("symbolic", message)

    def _asked(self, what, remedy):
        asked.times += 1
        return self._no_value(what, remedy)

    def __bool__(self) -> bool:
        remedy = (
            "Use nbta.cond, nbta.while_loop or nbta.where; & and | in place of `and` and `or`, "
            "(0 < x) & (x < 1) in place of 0 < x < 1. What nbta.function, nbta.grad and their "
            "kin convert may have all of these as they are: a Python function with its source in "
            "a file, without convert=False"
        )
        raise self._asked("a Python truth value", remedy)

    def __index__(self) -> int:
        remedy = (
            "Use nbta.while_loop, nbta.scan or nbta.arange; make a TensorArray that is indexed "
            "with it while the graph is being built"
        )
        raise self._asked("a Python integer", remedy)

    def __int__(self) -> int:
        raise self._asked("a Python integer", "Use nbta.cast")

    def __float__(self) -> float:
        raise self._asked("a Python number", NUMBER_REMEDY)

    def __complex__(self) -> complex:
        raise self._asked("a Python number", NUMBER_REMEDY)

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        remedy = (
            "Use nbta's functions, such as nbta.stack for a list of tensors and nbta.take(a, i, "
            "axis=0) for a[i] of a NumPy array; make a TensorArray that takes it while the graph "
            "is being built"
        )
        raise self._asked("a NumPy array", remedy)

    @property
    def _numba_type_(self):
        """What Numba asks for, when a compiled function is called with a tensor."""
        remedy = "Make the @njit function one with nbta.custom_gradient"
        return NoNumbaType(self._no_value("an argument of compiled code", remedy))

    def __iter__(self) -> Iterator[Tensor]:
        if not self.spec.shape or type(self.spec.shape[0]) is not int:
            remedy = "Use nbta.scan, nbta.map_fn or nbta.while_loop; take single elements by index"
            raise self._asked("an iterable", remedy)
        return (self[i] for i in range(self.spec.shape[0]))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refused("an item assignment", f"{self.name}, a symbolic tensor,")

    def __format__(self, spec: str) -> str:
        if spec:
            raise self._no_value(
                f"a number in the format {spec!r}",
                "Print what the function returns, or what Session.run does",
            )
        return str(self)

    def __repr__(self):
        what = str(self.spec) if self.kind == DATA else self.kind
        label = label_of(self)
        return f"<nbta.Tensor {self.name!r} {what}{'' if label is None else f', {label}'}>"


def label_of(tensor: Tensor) -> str | None:
    """The variable of the user's that a tensor is the value of, as far as that is known.

    An argument's is noted when it is traced. What an operation gives is that of the assignment
    whose right-hand side it ends: it is looked for in the text when somebody asks.
    """
    op = tensor.op
    label = getattr(op.graph, "labels", {}).get(tensor)
    spot = op.location
    if label is not None or spot is None or spot.is_gradient or len(op.outputs) != 1:
        return label
    label = getattr(spot, "assigned", None)
    if label is None:
        return None
    return label if _last_at_places(op.graph).get(_place(spot)) is op else None


def _place(spot):
    return id(spot.code), spot.instruction


def _last_at_places(graph):
    """The last operation of a graph at each place of users' code, found once until it changes."""
    state = graph.version, len(graph.operations)
    if graph.last_at_places is None or graph.last_at_places[0] != state:
        found = {}
        for op in graph.operations:
            spot = op.location
            if getattr(spot, "code", None) is not None and not spot.is_gradient:
                found[_place(spot)] = op
        graph.last_at_places = state, found
    return graph.last_at_places[1]


class Shape(tuple):
    """Dimensions, some of which only the run knows; the text has those of a trace."""

    __slots__ = ()

    def __str__(self):
        inner = ", ".join(map(str, self))
        return f"({inner},)" if len(self) == 1 else f"({inner})"

    def __format__(self, spec):
        return format(str(self), spec)


class Facts(NamedTuple):
    """What is known of an operation besides its result, written down by what made it or proved it.

    No result depends on these; they tell whoever makes it fast, or shows it, what to do.

    Attributes
    ----------
    of_adjoint : bool
        Of an access: reverse mode made it, to a slot that the forward pass has read or written, and
        that nothing else reads.
    is_written : bool
        Of a read: the slot is in range and has a value.
    is_rare : bool
        Of a write: most of the numbers are zero, so that code stores the others alone.
    is_saved : bool
        Of an array: it is a tape, of values that a gradient needs.
    is_appended : bool
        Of an array: it is a list of Python's, and each write goes to the slot after all others.
    row : tuple of int or None
        Of an array: its elements lie contiguous, without states of slots, and have this shape.
    only_frees : bool
        Of the end of an array: nothing comes after it, it is there for the memory alone.
    saves_state : bool
        Of a branch: it saves a variable where a checkpoint segment begins.
    has_adjoint : bool
        Of a loop: each iteration runs its adjoint iteration, too.
    runs_adjoints : bool
        Of a loop: reverse mode made it of adjoint iterations.
    skips_adjoints : bool
        Of a branch: adjoint iterations that change nothing go past what it does.
    keeps_item : bool
        Of a choice between numbers: one is an item of an array, in whose place the result goes.
    tiling : str or None
        Of a loop: that it runs tile by tile, or why it does not; for people.
    """

    of_adjoint: bool = False
    is_written: bool = False
    is_rare: bool = False
    is_saved: bool = False
    is_appended: bool = False
    row: tuple[int, ...] | None = None
    only_frees: bool = False
    saves_state: bool = False
    has_adjoint: bool = False
    runs_adjoints: bool = False
    skips_adjoints: bool = False
    keeps_item: bool = False
    tiling: str | None = None


#: Of most operations.
NO_FACTS = Facts()


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
    location : Location or None
        The user's line that it comes from, where functions are converted.
    """

    __slots__ = (
        "__weakref__", "attrs", "control_inputs", "graph", "inputs", "location", "name", "number",
        "outputs", "record", "tapes",
    )  # fmt: skip

    def __init__(
        self,
        graph: Graph,
        record: Record,
        name: str,
        inputs: Iterable[Tensor],
        attrs: dict[str, Any],
        control_inputs: Iterable[Operation],
        specs: Iterable[Spec],
    ) -> None:
        self.graph, self.record, self.name = graph, record, name
        self.inputs, self.attrs, self.control_inputs = list(inputs), attrs, list(control_inputs)
        self.outputs = [Tensor(self, i, spec) for i, spec in enumerate(specs)]
        self.number = len(graph.operations)
        self.tapes = {}
        self.location = None

    @property
    def type(self) -> str:
        """Name of the record."""
        return self.record.name

    @property
    def cannot_fail(self) -> bool:
        """Whether it has a result, whatever the values of its inputs are."""
        patterns = {tensor.spec.shape for tensor in self.inputs}
        if any(pattern is None or None in pattern for pattern in patterns):
            return False
        patterns -= {()}  # lengths that only the run tells must not be unlike each other
        fit = len(self.inputs) == 1 or all(map(shapes.is_known, patterns))
        fit = fit or (len(patterns) == 1 and self.record.elementwise)
        return fit and self.record.is_total(self)

    @property
    def facts(self) -> Facts:
        """What is known of it."""
        return self.attrs.get("facts", NO_FACTS)

    def know(self, **facts: Any) -> None:
        """Write facts down.

        Parameters
        ----------
        **facts
            Fields of ``Facts``, by name.
        """
        self.attrs = {**self.attrs, "facts": self.facts._replace(**facts)}

    def infer(self) -> tuple[Spec, ...]:
        """Specs of the outputs, by the record's shape rule.

        Returns
        -------
        tuple of Spec
            One for each output.
        """
        result = self.record.infer(*(t.spec for t in self.inputs), **self.attrs)
        return (result,) if isinstance(result, Spec) else tuple(result)

    def add_control_input(self, op: Operation) -> None:
        """Make this operation run after another one of the same graph.

        Parameters
        ----------
        op : Operation
            What is to run before.
        """
        if op.graph is not self.graph:
            message = f"add_control_input: {op.name!r} is not in the graph of {self.name!r}"
            raise invalid("graph", message)
        self.control_inputs.append(op)
        self.graph.changed()

    def replace_input(self, index: int, tensor: Tensor) -> None:
        """Take input ``index`` from another tensor, of the same dtype and a compatible shape.

        Parameters
        ----------
        index : int
            The number of the input.
        tensor : Tensor
            The new input.
        """
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
