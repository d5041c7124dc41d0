"""The record of an operation: all that is known about it, in one place."""

from collections.abc import Callable
from dataclasses import dataclass


class NotDifferentiable:
    """In place of a gradient rule, where there is no gradient, and why."""

    def __init__(self, reason: str):
        self.reason = reason

    def __repr__(self):
        return f"NotDifferentiable({self.reason!r})"


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
        ``gradient(op, *output_gradients)`` builds operations and gives one gradient an input,
        None where there is none. With ``effects`` it gets the gradient computation first. An output
        without a gradient has None.
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
    quick : bool
        Whether an item takes less time to compute than to write and to read again.
    selects : bool
        Whether the result is a part of the first input, or tells its extents: nothing is computed.
    keeps : bool
        Whether the result is the first input where that has the result's shape already.
    shape_input : int or None
        Which input holds the shape that the attribute ``pattern`` describes.
    value_input : int or None
        Which input's items go into an array.
    fed : bool
        Whether whatever runs the graph gives the value.
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
    quick: bool = False
    selects: bool = False
    keeps: bool = False
    shape_input: int | None = None
    value_input: int | None = None
    fed: bool = False

    @property
    def pure(self) -> bool:
        """Whether it depends on its inputs alone, and does nothing but give results."""
        return not (self.effects or self.foreign)

    def is_total(self, op) -> bool:
        """Whether an operation of this record gives a result for any values of its inputs."""
        return self.total(op) if callable(self.total) else self.total

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
