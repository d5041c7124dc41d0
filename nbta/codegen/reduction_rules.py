"""Code of reductions along axes, in the loops that make their inputs."""

from nbta.codegen import folds
from nbta.codegen.elementwise import fold_items, fold_texts, joined, operand
from nbta.codegen.names import cast
from nbta.codegen.values import Block, Scalar, product


class _Part:
    """A value on the way to a result, which no operation of the graph gives."""

    def __init__(self, op):
        self.op, self.dtype = op, op.outputs[0].dtype


def kept_axes(op) -> list[bool]:
    """Axis by axis of the input, whether it stays."""
    rank, axis = op.inputs[0].spec.rank, op.attrs["axis"]
    axes = set(range(rank)) if axis is None else {one % rank for one in axis}
    return [axis not in axes for axis in range(rank)]


def _extents(code, op, kept):
    """Extents of the result."""
    extents = code.extents(op.inputs[0])
    if op.attrs.get("keepdims"):
        return _with_ones(extents, kept)
    return tuple(e for e, k in zip(extents, kept, strict=True) if k)


def _with_ones(extents, kept):
    return tuple(e if k else "1" for e, k in zip(extents, kept, strict=True))


def _fold(code, op, fold, finish=""):
    kept = kept_axes(op)
    fold_items(code, op.inputs[0], op.outputs[0], kept, _extents(code, op, kept), fold, finish)


def _gone(code, op):
    """Extents of the axes that do not stay."""
    extents = code.extents(op.inputs[0])
    return [e for e, k in zip(extents, kept_axes(op), strict=True) if not k]


def _alone(code, op):
    """A result that is its input, of rank 0."""
    result = op.outputs[0]
    code.bind(result, code.local(code.scalar(op.inputs[0]), result.dtype))


def total(code, op) -> None:
    """Sums."""
    if not op.inputs[0].spec.rank:
        return _alone(code, op)
    return _fold(code, op, folds.total_of(op.outputs[0].dtype))


def mean(code, op) -> None:
    """Sums by counts."""
    if not op.inputs[0].spec.rank:
        return _alone(code, op)
    dtype = op.outputs[0].dtype
    count = cast(product(_gone(code, op)), dtype)
    finish = f"complex_divide({{}}, {count})" if dtype.kind == "c" else f"{{}} / {count}"
    return _fold(code, op, folds.total_of(dtype), finish)


def prod(code, op) -> None:
    """Products."""
    if not op.inputs[0].spec.rank:
        return _alone(code, op)
    return _fold(code, op, folds.product_of(op.outputs[0].dtype))


def extreme(sign):
    """The rule of the greatest (1) or the least (-1)."""

    def rule(code, op):
        if not op.inputs[0].spec.rank:
            return _alone(code, op)
        refuse_empty(code, _gone(code, op))
        return _fold(code, op, folds.extreme_of(op.outputs[0].dtype, sign))

    return rule


def refuse_empty(code, extents) -> None:
    """Leave where an axis has no items."""
    for extent in extents:
        if not extent.isdigit() or extent == "0":
            code.fail_if(f"{extent} == 0")


class _Exponentials:
    """Exponentials of an input less its greatest along axes, which is 0 where that is infinite."""

    def __init__(self, code, op):
        self.code, self.op, self.x = code, op, op.inputs[0]
        self.dtype = op.outputs[0].dtype
        self.kept = kept_axes(op)
        self.top, self.items, self.total = (_Part(op) for _ in range(3))
        finish = "({0} if {0} - {0} == 0 or {0} != {0} else 0)"
        if not self.kept:
            text = code.scalar(self.x)
            code.bind(self.top, code.local(finish.format(text), self.dtype))
            return
        fold_items(code, self.x, self.top, self.kept, self.short,
                   folds.extreme_of(self.dtype, 1), finish)  # fmt: skip

    @property
    def short(self):
        """Extents of what there is one of for each sum."""
        extents = self.code.extents(self.x)
        return _with_ones(extents, self.kept) if any(self.kept) else ()

    def step(self, rule, *tensors, result=None):
        """Another operation on items, such as ``"{} - {}"``; its group and its source."""
        code = self.code
        if not self.kept:
            text = rule.format(*(code.scalar(tensor) for tensor in tensors))
            value = code.local(text, self.dtype)
            if result is not None:
                code.bind(result, value)
            return None, value.text
        group = joined(code, tensors, code.extents(self.x))
        text = rule.format(*(operand(code, group, tensor) for tensor in tensors))
        if result is not None:
            group.step(code, text, result)
            text = code.values[result].text
        return group, text

    def add_up(self, items=None, finish=""):
        """Sum them; they are stored as items where a part is given for that."""
        group, text = self.step("exp({} - {})", self.x, self.top, result=items)
        if group is None:
            text = (finish or "{}").format(text)
            self.code.bind(self.total, self.code.local(text, self.dtype))
            return
        fold_texts(self.code, group, text, self.total, self.kept, self.short,
                   folds.total_of(self.dtype), finish)  # fmt: skip


def softmax(code, op) -> None:
    """The items are stored where the result is to be, and then divided."""
    parts, result = _Exponentials(code, op), op.outputs[0]
    if result in code.destinations:
        code.destinations[parts.items] = code.destinations.pop(result)
    with code.holding(parts.items):
        parts.add_up(parts.items)
        if parts.kept:
            code.value(parts.total)
            code.destinations[result] = lambda extents: code.values[parts.items]
    parts.step("{} / {}", parts.items, parts.total, result=result)


def log_softmax(code, op) -> None:
    """Exponentials are not stored."""
    parts = _Exponentials(code, op)
    parts.add_up(finish="log({})")
    parts.step("{} - {} - {}", parts.x, parts.top, parts.total, result=op.outputs[0])


def logsumexp(code, op) -> None:
    """The greatest is added again to each sum's logarithm."""
    parts, result = _Exponentials(code, op), op.outputs[0]
    parts.add_up(finish="log({})")
    top, total = code.value(parts.top), code.value(parts.total)
    extents = _extents(code, op, parts.kept)
    if not extents:
        return code.bind(result, code.local(f"{top.text} + {total.text}", result.dtype))
    group = joined(code, [], extents)
    texts = [
        value.text if isinstance(value, Scalar) else
        group.load(code, Block(value.base, extents, value.offset))
        for value in (top, total)
    ]  # fmt: skip
    return group.step(code, " + ".join(texts), result)
