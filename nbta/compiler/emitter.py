"""From a program to the source of one function."""

from collections import Counter, defaultdict
from contextlib import contextmanager

import numpy as np

from nbta.codegen.code import Code, NotCompiledError
from nbta.codegen.names import NUMBERS
from nbta.codegen.values import Block, Scalar, Turned, product
from nbta.compiler import array_code, control, python_calls
from nbta.graph.spec import DATA, FLOW, HANDLE
from nbta.ops.branch import CASE
from nbta.ops.dispatch import CONSTANT, PARAMETER
from nbta.ops.loop import WHILE


class Emitter(Code):
    """Writes a program down.

    Attributes
    ----------
    calls : list of Operation
        What runs in Python, one by one.
    """

    def __init__(self, arrays):
        super().__init__()
        self.arrays = arrays
        self.calls = []
        self._left = Counter()
        self._on_base = defaultdict(set)
        self._writes: dict = {}  # what may be computed in its slot: operation and lines, by tensor
        self._done: set = set()

    def bind(self, tensor, value) -> None:
        """Say what stands for a tensor."""
        super().bind(tensor, value)
        base = _base(value)
        if base is not None:
            self._on_base[base].add(tensor)

    def uses(self, tensor) -> int:
        """How many operations are still to come that use a tensor."""
        return self._left[tensor]

    @contextmanager
    def holding(self, part):
        """Let what stands for a part of an operation be written down."""
        self._left[part] += 1
        yield
        self._left[part] -= 1

    def destination(self, tensor, dtype, extents) -> Block:
        """Where a result goes: into the slot that it is written to, or where it may."""
        write, before, lines = self._writes.pop(tensor, (None, (), None))
        if write is not None and lines is self.lines and self._done.issuperset(before):
            block = array_code.slot_ahead(self, write, extents)
            if block is not None:
                return block
        return super().destination(tensor, dtype, extents)

    def is_free(self, base) -> bool:
        """Whether nothing to come uses what is in a buffer now."""
        tensors = self._on_base[base]
        return not any(self._left[t] and _base(self.values.get(t)) is base for t in tensors)

    def changed(self, op, place=0) -> Block:
        """Room for a result that begins as an input does: that itself if nobody else needs it."""
        x, result = op.inputs[place], op.outputs[0]
        value, rule = self.value(x), self.destinations.get(result)
        self._left[x] -= 1
        block = rule(value.extents) if rule is not None else None
        loose = value.base.loose and value.base.level == self.level
        if block is None and loose and self.is_free(value.base):
            block = value
        self._left[x] += 1
        block = block or self.new(result.dtype, value.extents)
        if block.base is value.base and block.offset == value.offset:
            self.flush_readers(block.base)
        else:
            self.copy_to(block, value)
        self.bind(result, block)
        return block

    def is_last(self, tensor, block) -> bool:
        """Whether a tensor is used here for the last time, and nothing else is in its buffer."""
        base = block.base
        alone = all(t is tensor or not self._left[t] for t in self._on_base[base])
        whole = base.loose and base.level == self.level and not block.offset
        return whole and alone and self._left[tensor] == 1

    def body(self, operations, outputs) -> None:
        """Operations of a graph, in order."""
        self._left.update(t for op in operations for t in op.inputs)
        self._left.update(outputs)
        self._writes.update(array_code.writes(self, operations))
        for op in operations:
            self.operation(op)
            self._done.add(op)

    def operation(self, op) -> None:
        """One operation, by the rule of its record."""
        if op.record is not PARAMETER:
            with self.part([op]):
                self._emit(op)
        for tensor in op.inputs:
            self._left[tensor] -= 1
        for tensor in dict.fromkeys(op.inputs):  # in order: source must not differ by process
            value = self.values.get(tensor)
            base = _base(value)
            if base is not None and not self._left[tensor] and self.is_free(base):
                self.release(base)

    def _emit(self, op):
        if op.record is CONSTANT:
            return self._constant(op)
        check([*op.inputs, *op.outputs])
        if op.record is WHILE:
            return control.emit_while(self, op)
        if op.record is CASE:
            return control.emit_case(self, op)
        if self.arrays.has(op):
            return array_code.emit(self, op)
        if op.outputs and all(tensor.kind == FLOW for tensor in op.outputs) and not _has_handle(op):
            return self._flows(op)
        rule = op.record.emit
        if rule is None or not _computable(op):
            return self.call_python(op)
        return rule(self, op)

    def _constant(self, op):
        tensor, value = op.outputs[0], np.asarray(op.attrs["value"])
        if tensor.spec.kind != DATA:
            text = "0" if tensor.spec.kind == FLOW else "(-1)"
            self.bind(tensor, Scalar(text, tensor.dtype))
        elif value.ndim == 0 and value.dtype.char in NUMBERS:
            self.bind(tensor, Scalar(self.number(value), value.dtype))
        else:
            self.bind(tensor, self.constant(np.array(value, order="C")))

    def _flows(self, op):
        for tensor in op.outputs:
            self.bind(tensor, Scalar("0", tensor.dtype))

    def copy_to(self, target: Block, value: Block) -> None:
        """Copy items."""
        self.flush_readers(target.base)
        self.add(
            f"copy({target.base.name}, {target.offset or 0}, {value.base.name}, "
            f"{value.offset or 0}, {product(value.extents)})"
        )

    def call_python(self, op) -> None:
        """Run an operation as the reference executor does."""
        python_calls.emit(self, op)


def _base(value):
    """The buffer that has the items of a value."""
    value = value.block if isinstance(value, Turned) else value
    return value.base if isinstance(value, Block) else None


def _has_handle(op):
    return any(tensor.kind == HANDLE for tensor in op.inputs)


def check(tensors) -> None:
    """Refuse what cannot be in a compiled function."""
    for tensor in tensors:
        if tensor.spec.kind == DATA and tensor.spec.rank is None:
            raise NotCompiledError(f"the rank of {tensor.name!r} is known in a run only")
        if tensor.dtype.hasobject or tensor.dtype.kind not in "biufcV" or tensor.dtype.names:
            raise NotCompiledError(f"{tensor.name!r} is of {tensor.dtype}")


def _computable(op):
    return all(t.dtype.char in NUMBERS for t in [*op.inputs, *op.outputs])
