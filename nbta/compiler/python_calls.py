"""Operations that a compiled function leaves to the reference executor, one by one."""

from nbta.codegen.values import Block, Scalar
from nbta.graph.spec import FLOW


def emit(code, op) -> None:
    """Hand the inputs over, call Python, take the results."""
    number = len(code.calls)
    inputs = [_hand_over(code, tensor) for tensor in op.inputs if tensor.kind != FLOW]
    outputs = [
        (tensor, code.word(1 + (tensor.spec.rank or 0)))
        for tensor in op.outputs
        if tensor.kind != FLOW
    ]
    code.calls.append(Call(op, inputs, [word for _, word in outputs]))
    code.add(f"# {op.name}, in Python")
    code.fail_if(f"call(W[2], ({number},)) != 0")
    for tensor, word in outputs:
        _take(code, op, tensor, word)
    for tensor in op.outputs:
        if tensor.kind == FLOW:
            code.bind(tensor, Scalar("0", tensor.dtype))


class Call:
    """What a Python call of a compiled function does.

    Attributes
    ----------
    op : Operation
    inputs : list of (int, dtype, int)
        Word, dtype and rank of what is handed over: its address, or the item itself in two words
        where the rank is -1; then its extents.
    outputs : list of int
        Words of the results: address, extents.
    """

    def __init__(self, op, inputs, outputs):
        self.op, self.inputs, self.outputs = op, inputs, outputs


def _hand_over(code, tensor):
    value = code.value(tensor)
    if isinstance(value, Scalar):
        word = code.word(2)
        base = code.base(value.dtype, "h")
        code.add(code.pointer(base, f"w + {8 * word}"), f"{base.name}[0] = {value.text}")
        return word, value.dtype, -1
    word = code.word(1 + len(value.extents))
    code.add(f"W[{word}] = {value.address}")
    code.add(*(f"W[{word + 1 + k}] = {extent}" for k, extent in enumerate(value.extents)))
    return word, value.dtype, len(value.extents)


def _take(code, op, tensor, word):
    spec = tensor.spec
    source = code.base(spec.dtype, "y")
    code.add(code.pointer(source, f"W[{word}]"))
    if spec.rank == 0 and code.is_number(spec.dtype):
        code.bind(tensor, code.local(f"{source.name}[0]", spec.dtype))
        return
    extents = tuple(
        str(known) if type(known) is int else code.variable(f"W[{word + 1 + axis}]")
        for axis, known in enumerate(spec.shape)
    )
    block = code.result(op, spec.dtype, extents, tensor.index)
    code.copy_to(block, Block(source, extents))
