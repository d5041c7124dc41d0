"""Building operations on an array that is known by its handle and flow."""

from typing import NamedTuple

import numpy as np

from nbta.graph.graph import current
from nbta.graph.operation import Tensor
from nbta.ops import arrays
from nbta.ops.dispatch import as_tensor
from nbta.ops.indexing import getitem
from nbta.ops.shaping import shape_of


def build(record, inputs, attrs=None, name=None):
    """The results of an operation in the graph that is being built."""
    graph = current()
    return graph.create(record, [as_tensor(t, graph) for t in inputs], attrs, name=name).outputs


class Access(NamedTuple):
    """An array's handle, with the flow that says what its operations come after."""

    handle: Tensor
    flow: Tensor

    def gradient(self, source: str, clear_after_read=None, trip=()) -> "Access":
        """The gradient array for a source, and for a trip where a loop's body calls `gradients`.

        Gradient arrays of forward arrays clear what they hand out, for each slot is read once. A
        slot of a gradient array may be written many times, so that its own gradient is read as
        often, and kept.
        """
        attrs = {"source": source, "clear_after_read": clear_after_read}
        return Access(*build(arrays.LOOKUP, [*self, *trip], attrs))

    def write(self, index, value) -> Tensor:
        """The flow after a write."""
        return build(arrays.WRITE, [self.handle, index, value, self.flow])[0]

    def scatter(self, indices, value) -> Tensor:
        """The flow after a scatter."""
        return build(arrays.SCATTER, [self.handle, indices, value, self.flow])[0]

    def split(self, value, lengths) -> Tensor:
        """The flow after a split into the first slots, of which there may be more."""
        inputs = [self.handle, value, lengths, self.flow]
        return build(arrays.SPLIT, inputs, {"partly": True})[0]

    def read(self, index, spec) -> Tensor:
        """An element like ``spec``."""
        attrs = {"dtype": spec.dtype, "known": spec.shape, "kind": spec.kind}
        return build(arrays.READ, [self.handle, index, self.flow], attrs)[0]

    def gather(self, indices, spec) -> Tensor:
        """Elements stacked like ``spec``."""
        known = None if spec.shape is None else spec.shape[1:]
        attrs = {"dtype": spec.dtype, "known": known}
        return build(arrays.GATHER, [self.handle, indices, self.flow], attrs)[0]

    def joined(self, value, lengths) -> Tensor:
        """The pieces into which ``value`` was split, joined again."""
        attrs = {"dtype": value.dtype, "known": value.spec.shape}
        inputs = [self.handle, self.flow, getitem(shape_of(lengths), 0), shape_of(value)]
        return build(arrays.CONCAT, inputs, attrs)[0]


def tape(spec, name="tape") -> Access:
    """A new array that grows with a loop and keeps values like ``spec``."""
    uniform = spec.shape is not None and all(type(extent) is int for extent in spec.shape)
    attrs = {
        "dtype": spec.dtype,
        "dynamic_size": True,
        "clear_after_read": False,  # several gradients, and gradients of them, read it
        "element_shape": spec.shape if uniform else None,
        "infer_shape": uniform,
        "tensor_array_name": name,
    }
    return Access(*build(arrays.CREATE, [np.int32(0)], attrs, name))
