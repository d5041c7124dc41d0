"""Tangents that need no care for infinite derivatives, as no result is finite where one is not.

A number is *whole* where all results that depend on it are not finite if it is not: where nothing
between it and them hides an infinity, as ``exp`` of one that is negative does. Then a product that
is whole needs no look at tangents that are exactly zero: where a factor is not finite, neither is
any result that its tangent reaches. What a branch does not take, and what is assigned over, reaches
none. Where a number is the only result, one way to it that shows infinities is enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbta.graph.dependence import connections
from nbta.graph.graph import subgraphs
from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, is_branch, is_loop
from nbta.graph.whole_adjoints import WholeAdjoints
from nbta.ops.arithmetic import SCALE, WHERE, maximum, minimum
from nbta.ops.elementary import ABS
from nbta.ops.residuals import RESTORE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbta.graph.operation import Operation, Tensor

#: What gives one of its inputs, and its tangent; and what gives numbers that are finite for those.
_CHOICES = frozenset((SCALE, WHERE, maximum.record, minimum.record, ABS, RESTORE))


class WholeTangents:
    """What is known of the operations that lead to some results.

    Parameters
    ----------
    operations : list of Operation
        In running order.
    results : list of Tensor
    """

    def __init__(self, operations: list[Operation], results: list[Tensor]):
        self._seen: set[Tensor] = set()
        self._hidden: set[Tensor] = set()
        self._shown: set[Tensor] = set()
        self._adjoints = WholeAdjoints()
        if len(results) == 1 and results[0].spec.rank == 0:
            self._show(operations, set(results))
        self._look(operations)

    def has(self, op: Operation) -> bool:
        """Whether all results of an operation are whole real numbers."""
        return all(
            tensor in self._seen and tensor not in self._hidden and tensor.dtype.kind == "f"
            for tensor in op.outputs
        )

    def _show(self, operations, ends):
        """Note what is not finite only where the one result is not, whatever depends on it."""
        self._shown |= ends
        for op in reversed(operations):
            self._shown |= self._adjoints.inputs(op, self._shown)
            inner = self._adjoints.ends(op, self._shown)
            for body in subgraphs(op) if inner else ():
                last = inner & set(body.outputs)
                self._show(ordered({tensor.op for tensor in last}), last)

    def _look(self, operations):
        """Note what the users of tensors, which are behind them, hide."""
        for op in reversed(operations):
            self._seen.update(op.outputs)
            if is_loop(op):
                self._look_through_loop(op)
            elif is_branch(op):
                for body in Branch(op).branches:
                    self._look_through(body, body.outputs, op.outputs)
                    self._hide(Branch(op).captured, body.inputs)
            else:
                self._look_at(op)

    def _look_at(self, op):
        for output, inputs in zip(op.outputs, connections(op), strict=True):
            hides, reached = op.record.effects or output in self._hidden, set(inputs)
            self._add(
                tensor
                for place, tensor in enumerate(op.inputs)
                if tensor in reached and (hides or not _passes(op, place))
            )

    def _look_through_loop(self, op):
        loop, body = Loop(op), Loop(op).body
        variables, count = body.inputs[: loop.count], -1
        while count < len(self._hidden):  # an iteration's results are the variables of the next
            count = len(self._hidden)
            self._look_through(body, body.outputs, op.outputs[: loop.count])
            self._hide(body.outputs, variables)
        self._hide(op.inputs, body.inputs)
        self._hide(op.inputs, op.outputs[: loop.count])  # of no iterations

    def _look_through(self, body, ends, results):
        self._hide(ends, results)
        self._look(ordered({tensor.op for tensor in ends}))

    def _hide(self, tensors: Iterable[Tensor], users: Iterable[Tensor]):
        """Hide tensors of which those beside them are hidden."""
        pairs = zip(tensors, users, strict=False)
        self._add(tensor for tensor, user in pairs if user in self._hidden)

    def _add(self, hidden):
        self._hidden.update(tensor for tensor in hidden if tensor not in self._shown)


def _passes(op, place):
    """Whether no result is finite that depends on an item of an input that is not."""
    record = op.record
    linear = record.linear is True or (record.linear and place in record.linear)
    return linear or record.multilinear or record in _CHOICES or record.spreads_to(op, place)
