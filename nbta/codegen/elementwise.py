"""Elementwise operations: broadcasting, and joining the loop that waits for their shape."""

import re

from nbta.codegen import folds
from nbta.codegen.fusion import Group
from nbta.codegen.names import cast
from nbta.codegen.values import Block, Lazy, Scalar

#: Rules that give the dtype of their operands: these only, and no numbers of their own.
_PLAIN = re.compile(r"(\{\d?\}|[-+*/() ]|sqrt)+")


class Elementwise:
    """The rule of an operation that goes item by item.

    Parameters
    ----------
    rule : str or callable
        Source of an item of the result, with ``{}`` or ``{0}`` in place of items of the inputs; or
        ``rule(op, *texts)``, which gives that source.
    kinds : str
        Kinds of dtypes that it is for; others are left to Python.
    """

    def __init__(self, rule, kinds="biufc"):
        self._rule, self._kinds = rule, kinds
        self.is_plain = isinstance(rule, str) and _PLAIN.fullmatch(rule) is not None

    def __call__(self, code, op):
        """Let the operation wait in the group of its shape; scalars are computed at once."""
        result = op.outputs[0]
        if any(tensor.dtype.kind not in self._kinds for tensor in op.inputs):
            code.call_python(op)
            return
        if result.spec.rank == 0:
            texts = [code.scalar(tensor) for tensor in op.inputs]
            name = code.name("t")
            code.add(f"{name} = {self._typed(op, texts)}")
            code.bind(result, Scalar(name, result.dtype))
            return
        extents = broadcast(code, [(code.extents(t), t.spec.shape) for t in op.inputs])
        group = joined(code, op.inputs, extents)
        texts = [operand(code, group, tensor) for tensor in op.inputs]
        group.step(code, self._typed(op, texts), result)

    def _typed(self, op, texts):
        """Source of an item of the right dtype, by a cast where the rule may give another one."""
        dtype = op.outputs[0].dtype
        alike = all(tensor.dtype == dtype for tensor in op.inputs)
        text = self.text(op, texts)
        return text if self.is_plain and alike and dtype.kind in "fc" else cast(text, dtype)

    def text(self, op, texts):
        """Source of an item."""
        return self._rule.format(*texts) if isinstance(self._rule, str) else self._rule(op, *texts)


def as_rule(rule):
    """A rule as `Elementwise`; None where there is none."""
    return rule if rule is None or isinstance(rule, Elementwise) else Elementwise(rule)


def joined(code, tensors, extents) -> Group:
    """The group of a shape; other groups that its operands wait in are written down."""
    extents = tuple(map(code.canonical, extents))
    for tensor in tensors:
        value = code.values[tensor]
        if isinstance(value, Lazy) and (value.group.extents != extents or not value.text):
            value.group.flush(code)
    if extents not in code.pending:
        if not any(_has(code, tensor, extents) for tensor in tensors):  # which is in memory
            code.refuse_uncountable(extents)
        code.pending[extents] = Group(extents)
    return code.pending[extents]


def _has(code, tensor, extents):
    return tuple(map(code.canonical, code.extents(tensor))) == extents


def operand(code, group, tensor) -> str:
    """Source of an item of an operand in a group's loop."""
    value = code.values[tensor]
    if isinstance(value, Lazy) and value.group is group:
        return value.text
    value = code.value(tensor)
    return value.text if isinstance(value, Scalar) else group.load(code, value)


def broadcast(code, operands) -> tuple[str, ...]:
    """Extents of a result; the run fails where they do not fit.

    ``operands`` are pairs of extents and what the graph knows of them.
    """
    rank = max(len(extents) for extents, _ in operands)
    padded = [
        (("1",) * (rank - len(e)) + tuple(e), (1,) * (rank - len(e)) + tuple(known))
        for e, known in operands
    ]
    return tuple(
        _extent(code, [(extents[axis], known[axis]) for extents, known in padded])
        for axis in range(rank)
    )


def _extent(code, found):
    """The extent that several meet in."""
    wide = [(e, known) for e, known in found if e != "1"]
    distinct = list({code.canonical(e): known for e, known in wide}.items())
    if len(distinct) <= 1:
        return distinct[0][0] if distinct else "1"
    sure = [e for e, known in distinct if known is not None]
    for other in sure[1:]:
        code.equate(sure[0], other)
    unsure = [e for e, known in distinct if known is None]
    if not unsure:
        return code.canonical(sure[0])
    first, rest = (sure[0], unsure) if sure else (unsure[0], unsure[1:])
    for other in rest:
        merged = code.variable(f"{other} if {first} == 1 else {first}")
        code.fail_if(f"{other} != 1 and {other} != {merged}")
        first = merged
    return first


def reduction(code, op, kept, extents) -> None:
    """Sum items of an input over the axes that are not kept, in the loop that makes them."""
    result = op.outputs[0]
    fold_items(code, op.inputs[0], result, kept, extents, folds.total_of(result.dtype))


def fold_items(code, tensor, result, kept, extents, fold, finish="") -> None:
    """Fold items of a tensor over the axes that are not kept, in the loop that makes them."""
    group = joined(code, [tensor], code.extents(tensor))
    text = cast(operand(code, group, tensor), result.dtype)
    fold_texts(code, group, text, result, kept, extents, fold, finish)


def fold_texts(code, group, text, result, kept, extents, fold, finish="") -> None:
    """Fold what source gives in a group's loop, for a result with some extents."""
    dtype = result.dtype
    if not extents:
        target = code.name("s")
    else:
        target = Block(code.new(dtype, extents, "s").base, tuple(extents))
    code.bind(result, Lazy(group, "", dtype, tuple(extents)))
    group.add_sum(result, text, dtype, target, kept, fold, finish)
