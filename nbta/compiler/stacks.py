"""The values of all trips of a loop below each other: in a tensor, or in an array it fills."""

import numpy as np

from nbta import shapes
from nbta.compiler.induction import Linear
from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.graph.views import Loop, origin, place_of
from nbta.ops.aliases import array_of
from nbta.ops.array_access import Access, build
from nbta.ops.arrays import CREATE, GATHER, READ
from nbta.ops.indexing import GETITEM, SYMBOLIC
from nbta.ops.rearranging import arange
from nbta.ops.shaping import cast
from nbta.ops.trip_counts import compared


class Stacks:
    """Values of a loop's body, stacked behind the loop in one order of the trips.

    The order is that of the trips, or the opposite one where the body reads rows and slots from the
    last to the first, so that these need not be turned.
    """

    def __init__(self, loop, counts, uses):
        self.loop, self.body = loop, Loop(loop).body
        self._counts, self._uses = counts, uses
        self._trips = counts.trips(loop)
        self._known = self._count_on_entry()
        self._order, self._slot = 1, Loop(loop).counter
        self._arrays: dict[Tensor, Access] = {}
        self._found = {}

    def _count_on_entry(self):
        """The tensor that the trips are counted up to, where it is known before the loop."""
        limit = compared(Loop(self.loop).condition)
        found = limit and self._counts.affine(limit.low, self.body)
        if found is None or limit.more:
            return None
        (first, step), limit = found, origin(limit.high)
        plain = step == 1 and first == Linear(0)
        return limit if plain and self._counts.number(limit) == self._trips else None

    def choose_order(self, tensors) -> None:
        """Go through the trips as most of the tensors do that are rows and slots already."""
        ways = [(tensor, self._direction(tensor)) for tensor in tensors]
        backwards = [tensor for tensor, way in ways if way == -1]
        forwards = [tensor for tensor, way in ways if way == 1]
        if self._known is not None and len(backwards) > len(forwards):
            self._order, self._slot = -1, backwards[0].op.inputs[1]

    def _direction(self, tensor):
        """How a row or slot of something that is there goes with the trips; None for others."""
        found = self._counts.direction
        if tensor.op.record is GETITEM and self._is_row(tensor):
            length = self._counts.length(tensor.op.inputs[0])
            return found(tensor.op.inputs[1], self.loop, length)
        if tensor.op.record is READ and self._is_slot(tensor):
            return found(tensor.op.inputs[1], self.loop, self._trips)
        return None

    def _is_row(self, tensor):
        return tensor.op.attrs["key"] == (SYMBOLIC,) and tensor.op.inputs[0] in self.body.sources

    def _is_slot(self, tensor):
        """Whether it is read from an array that nothing changes in the loop, and that keeps it."""
        handle, _, flow = tensor.op.inputs
        array = array_of(handle)
        return (
            array is not None
            and len(array) == 1
            and array[0].attrs.get("clear_after_read") is False
            and self._uses.is_plain(array)
            and handle in self.body.sources
            and origin(flow).graph is not self.body
            and origin(handle).graph is self.loop.graph
        )

    def is_new(self, tensor) -> bool:
        """Whether an array has to be filled for it."""
        return tensor not in self._arrays and self._direction(tensor) is None

    def prepare(self, tensor) -> None:
        """See to it that the values can be stacked: in the loop, where nothing has them yet."""
        if self.is_new(tensor):
            self._arrays[tensor] = self._filled(tensor)

    def _filled(self, tensor):
        spec = tensor.spec
        attrs = {
            "dtype": spec.dtype,
            "dynamic_size": self._known is None,
            "clear_after_read": False,
            "element_shape": spec.shape if shapes.is_known(spec.shape) else None,
            "infer_shape": True,
            "tensor_array_name": f"stack_of_{tensor.op.type}",
        }
        with self.loop.graph.as_default():
            size = np.int32(0)
            if self._known is not None:
                size = cast(self.loop.graph.resolve(self._known), np.int32)
            start = Access(*build(CREATE, [size], attrs, f"stack_of_{tensor.op.type}"))

        def following(flow):
            return Access(self.body.capture(start.handle), flow).write(self._slot, tensor)

        return Access(start.handle, Loop(self.loop).add_variable(start.flow, following))

    def never_fails(self, tensor) -> bool:
        """Whether the values can be stacked where there was no trip."""
        if self._direction(tensor) is not None and tensor.op.record is GETITEM:
            return True
        return shapes.is_known(tensor.spec.shape)

    def stacked(self, tensor):
        """The values of all trips, in the graph that is being built."""
        key = (current(), tensor)
        if key not in self._found:
            self._found[key] = self._stacked(tensor)
        return self._found[key]

    def _stacked(self, tensor):
        if tensor in self._arrays:
            return self._gathered(tensor, self._arrays[tensor], 1)
        turn = self._direction(tensor) * self._order
        if tensor.op.record is READ:
            handle, _, flow = tensor.op.inputs
            return self._gathered(tensor, Access(*map(self._outside, (handle, flow))), turn)
        rows = self._outside(tensor.op.inputs[0])
        return rows if turn == 1 else rows[::-1]

    def _outside(self, tensor):
        """What a tensor of the body is around it."""
        while tensor.graph is self.body:
            before = self.body.sources.get(tensor)
            tensor = self.loop.inputs[place_of(tensor)] if before is None else before
        return current().resolve(tensor)

    def _gathered(self, tensor, array, turn):
        """The slots of an array from the first to the last, or the other way."""
        graph, fixed = current(), None if self._trips.terms else self._trips.constant
        count = np.int64(fixed) if fixed is not None else graph.resolve(Loop(self.loop).trips)
        slots = arange(count) if turn == 1 else arange(count - 1, np.int64(-1), np.int64(-1))
        self._note_length(slots)
        known = tensor.spec.shape if shapes.is_known(tensor.spec.shape) else None
        attrs = {"dtype": tensor.dtype, "known": tensor.spec.shape, "element_shape": known}
        handle, flow = map(graph.resolve, array)
        return build(GATHER, [handle, slots, flow], attrs)[0]

    def _note_length(self, slots):
        """Say of indices of all trips how many they are, where that is the length of an axis."""
        terms = list(self._trips.terms.items())
        plain = slots.op.type == "Range" and self._trips.constant == 0
        if plain and len(terms) == 1 and isinstance(terms[0][0], shapes.Dim) and terms[0][1] == 1:
            slots.op.attrs["extent"] = terms[0][0]
            slots.spec = slots.spec._replace(shape=(terms[0][0],))
