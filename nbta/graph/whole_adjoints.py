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

    def inputs(
        self, op: Operation, whole: Iterable[Tensor], given: Iterable[Tensor]
    ) -> set[Tensor]:
        """Inputs of an operation with whole adjoints; ``given`` are all tensors that have some."""
        places = frozenset(place for place, tensor in enumerate(op.outputs) if tensor in whole)
        if not places or is_branch(op):
            return set()
        if is_loop(op):
            parameters = Loop(op).body.inputs
            reached = self._reached(Loop(op).body, self._through_loop(op, whole, given))
            pairs = zip(op.inputs, parameters, strict=True)
            return {tensor for tensor, parameter in pairs if parameter in reached}
        return {tensor for place, tensor in enumerate(op.inputs) if op.record.spreads_to(op, place)}

    def ends(self, op: Operation, whole: Iterable[Tensor], given: Iterable[Tensor]) -> set[Tensor]:
        """Results of an operation's bodies with whole adjoints, as for `inputs`."""
        if is_loop(op):
            outputs = Loop(op).body.outputs
            return {outputs[place] for place in self._through_loop(op, whole, given)}
        if is_branch(op):
            places = [place for place, tensor in enumerate(op.outputs) if tensor in whole]
            return {body.outputs[place] for body in Branch(op).branches for place in places}
        return set()

    def _through_loop(self, op, whole, given):
        """Places of the variables that have whole adjoints in all iterations.

        One whose last value nobody uses may be such a variable: in the last iteration it has none.
        """
        count = Loop(op).count
        if not any(tensor in whole for tensor in op.outputs[:count]):
            return frozenset()
        places = frozenset(
            place
            for place, tensor in enumerate(op.outputs[:count])
            if tensor.spec.differentiable and (tensor in whole or tensor not in given)
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
        found, given = {body.outputs[place] for place in places}, set(body.outputs)
        for op in reversed(ordered({tensor.op for tensor in body.outputs})) if places else ():
            if not given.isdisjoint(op.outputs):
                found |= self.inputs(op, found, given)
                given.update(op.inputs)
        return found
