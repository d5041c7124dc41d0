"""What a compiled function leaves to Python: operations without code of their own, and bars."""

import ctypes
from contextlib import contextmanager

import numpy as np

from nbta.codegen.values import Block, Scalar
from nbta.graph.spec import DATA, FLOW
from nbta.graph.views import Loop
from nbta.ops.trip_counts import trips_on_entry
from nbta.progress import bar
from nbta.runtime.protocol import ANSWER, INTERRUPTED, OK, PYTHON


def emit(code, op) -> None:
    """Hand the inputs over, call Python, take the results."""
    inputs = [_hand_over(code, tensor) for tensor in op.inputs if tensor.kind != FLOW]
    outputs = [
        (tensor, code.word(1 + (tensor.spec.rank or 0)))
        for tensor in op.outputs
        if tensor.kind != FLOW
    ]
    code.add(f"# {op.name}, in Python")
    _add_call(code, Call(op, inputs, [word for _, word in outputs]))
    for tensor, word in outputs:
        _take(code, op, tensor, word)
    for tensor in op.outputs:
        if tensor.kind == FLOW:
            code.bind(tensor, Scalar("0", tensor.dtype))


class Call:
    """An operation that the reference executor's rule computes.

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

    def run(self, work) -> None:
        """Compute the results, and say among the words where they are."""
        op, words = self.op, work.words
        given = iter([handed(words, *entry) for entry in self.inputs])
        arguments = [np.float32(0) if t.kind == FLOW else next(given) for t in op.inputs]
        step = (work.step,) if op.record.effects else ()
        with np.errstate(all="ignore"):
            results = op.record.evaluate(*step, *arguments, **op.attrs)
        several = len(op.outputs) != 1 or op.record.several
        pairs = zip(results if several else (results,), op.outputs, strict=True)
        kept = [
            np.array(value, tensor.dtype, order="C", copy=None)
            for value, tensor in pairs
            if tensor.kind != FLOW
        ]
        wanted = [tensor.spec.rank for tensor in op.outputs if tensor.kind != FLOW]
        if [array.ndim for array in kept] != wanted:  # such as what comes of an empty array
            raise ValueError(f"{op.name} gives other ranks")
        work.kept[self] = kept
        for word, array in zip(self.outputs, kept, strict=True):
            words[word] = array.ctypes.data
            words[word + 1 : word + 1 + array.ndim] = array.shape


class ShowBar:
    """The begin of a loop with a progress bar.

    Attributes
    ----------
    op : Operation
    inputs : dict
        By place among the loop's inputs, where an integer is handed over.
    word : int
        For the address of the counter of trips.
    """

    def __init__(self, op, inputs, word):
        self.op, self.inputs, self.word = op, inputs, word

    def run(self, work) -> None:
        """Show the bar, until `HideBar` or the end of the call."""
        loop = Loop(self.op)
        given = {place: handed(work.words, *entry) for place, entry in self.inputs.items()}
        values = [given.get(place) for place in range(len(self.op.inputs))]
        total = trips_on_entry(loop.cond, loop.body, loop.count, values)
        shown = bar(loop.progress, total)
        counter = shown.__enter__()
        work.bars.append((shown, counter))
        work.words[self.word] = counter.ctypes.data


class HideBar:
    """The end of a loop with a progress bar."""

    def run(self, work) -> None:
        """Let the bar show that the loop is done."""
        work.bars.pop()[0].__exit__(None, None, None)


@contextmanager
def progress(code, op):
    """Lines that show a bar around a loop; gives the pointer to the counter of trips, or None."""
    if Loop(op).progress is None:
        yield None
        return
    scalars = {
        place: _hand_over(code, tensor)
        for place, tensor in enumerate(op.inputs)
        if tensor.kind == DATA and tensor.dtype.kind in "iu" and tensor.spec.rank == 0
    }
    word, base = code.word(), code.base(np.int64, "bar")
    _add_call(code, ShowBar(op, scalars, word))
    code.add(code.pointer(base, f"W[{word}]"))
    yield base.name
    _add_call(code, HideBar())


def _add_call(code, call):
    code.add(f"W[{ANSWER}] = {INTERRUPTED}", f"call(W[{PYTHON}], ({len(code.calls)},))")
    code.add(f"refuse(W[{ANSWER}] != {OK}, W[{ANSWER}])")
    code.calls.append(call)


def handed(words, word, dtype, rank):
    """A value that generated code handed over."""
    if rank < 0:
        return words[word : word + 2].view(np.uint8)[: dtype.itemsize].view(dtype)[0]
    shape = tuple(int(n) for n in words[word + 1 : word + 1 + rank])
    count = int(np.prod(shape))
    if not count:
        return np.empty(shape, dtype)
    items = (ctypes.c_char * (count * dtype.itemsize)).from_address(int(words[word]))
    return np.frombuffer(items, dtype).reshape(shape).copy()[()]


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
