"""Adjoints that have no exact zeros but where the loss does not depend on their tensor.

An adjoint is *whole* where nothing between a tensor and the loss leaves out a part of the tensor,
or hides that it is not finite: no choice, branch or part of an array, and no function with a finite
value at infinity. Then where a factor of a product is not finite, the loss is not either, and the
product of its adjoint and the other factor needs no look at zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from nbta.graph.order import ordered
from nbta.graph.views import Branch, Loop, is_branch, is_loop

if TYPE_CHECKING:
    from collections.abc import Iterable

    from nbta.graph.operation import Operation, Tensor


class WholeAdjoints:
    """What is known of the operations that one computation of gradients goes through."""

    def __init__(self) -> None:
        self._through: dict[tuple[Operation, frozenset[int]], frozenset[int]] = {}

    def inputs(self, op: Operation, whole: Iterable[Tensor]) -> set[Tensor]:
        """Inputs of an operation with whole adjoints, where ``whole`` are all outputs with such."""
        places = frozenset(place for place, tensor in enumerate(op.outputs) if tensor in whole)
        if not places or is_branch(op):
            return set()
        if is_loop(op):  # what its body captures is in no result of no iterations
            return {op.inputs[place] for place in self._through_loop(op, whole)}
        return {tensor for place, tensor in enumerate(op.inputs) if op.record.spreads_to(op, place)}

    def ends(self, op: Operation, whole: Iterable[Tensor]) -> set[Tensor]:
        """Results of an operation's bodies with whole adjoints, as for `inputs`."""
        if is_loop(op):
            outputs = Loop(op).body.outputs
            return {outputs[place] for place in self._through_loop(op, whole)}
        if is_branch(op):
            places = [place for place, tensor in enumerate(op.outputs) if tensor in whole]
            return {body.outputs[place] for body in Branch(op).branches for place in places}
        return set()

    def _through_loop(self, op, whole):
        """Places of the variables that have whole adjoints in all iterations.

        One whose last value nobody uses has an adjoint of zero in the last iteration.
        """
        count = Loop(op).count
        places = frozenset(
            place
            for place, tensor in enumerate(op.outputs[:count])
            if tensor.spec.differentiable and tensor in whole
        )
        if (op, places) not in self._through:
            body, staying = Loop(op).body, places
            while staying:
                reached = self._reached(body, staying)
                left = frozenset(place for place in staying if body.inputs[place] in reached)
                if left == staying:
                    break
                staying = left
            self._through[op, places] = staying
        return self._through[op, places]

    def _reached(self, body, places):
        """Tensors of a body with whole adjoints."""
        found = {body.outputs[place] for place in places}
        for op in reversed(ordered({tensor.op for tensor in found})):
            found |= self.inputs(op, found)
        return found
