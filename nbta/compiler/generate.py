"""A program's source, with what its callers must know."""

from dataclasses import dataclass, field

import numpy as np

from nbta.codegen.code import LAYOUT, OK
from nbta.codegen.values import Block
from nbta.compiler.array_code import ArrayCode
from nbta.compiler.emitter import Emitter, check
from nbta.compiler.plain_arrays import PlainArrays
from nbta.graph.order import ordered

#: Offsets in NumPy's array objects behind the head of a Python object (its C interface fixes them).
DATA, EXTENTS, FLAGS = 0, 16, 48
#: C order, and aligned.
GOOD_FLAGS = 0x101


@dataclass
class Generated:
    """Source, and the table of words that goes with it.

    Attributes
    ----------
    source : str
    words : int
        How many words a call's table has.
    inputs : list of int
        The word of each input, for the address of an array object.
    outputs : list of Output
    constants : list of (int, array)
    helpers : dict
        Word by helper's name.
    initial : list of (int, int or str)
        What is in a word before all calls: a number, or the address of a helper.
    calls : list of Call
    loops, buffers, arrays : list of str
        What was decided, for people.
    """

    source: str = ""
    words: int = 0
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    helpers: dict = field(default_factory=dict)
    initial: list = field(default_factory=list)
    calls: list = field(default_factory=list)
    loops: list = field(default_factory=list)
    buffers: list = field(default_factory=list)
    arrays: list = field(default_factory=list)


@dataclass
class Output:
    """Where a result is found after a call.

    Attributes
    ----------
    dtype, kind
    word : int
        Of the item itself (two words), or of the address of the buffer and its bytes.
    extents : list of int or None
        Words of the extents; None for a scalar.
    """

    dtype: np.dtype
    kind: str
    word: int
    extents: list | None


def generate(program, head=16, ragged=False) -> Generated:
    """The source of a program.

    Parameters
    ----------
    program : Program
    head : int
        Bytes of a Python object before its own fields.
    ragged : bool
        Whether arrays whose elements may be of several shapes were.

    Raises
    ------
    NotCompiledError
        For a program that cannot be one function, with the reason.
    """
    plain = PlainArrays(program, ragged)
    code = Emitter(ArrayCode(plain))
    check(program.inputs)
    found = Generated()
    for number, tensor in enumerate(program.inputs):
        found.inputs.append(_input(code, number, tensor, head))
    places = [_place(code, tensor) for tensor in program.outputs]
    needed = [*(t.op for t in program.outputs), *program.targets]
    code.body(ordered(list(dict.fromkeys(needed))), program.outputs)
    code.flush()
    for tensor, place in zip(program.outputs, places, strict=True):
        found.outputs.append(_output(code, tensor, place))
    code.add(f"return {OK}")
    constants = "".join(f"{name} = {text}\n" for name, text in code.numbers.values())
    found.source = f"{constants}def run(w):\n{code.top}\n"
    found.initial = code.initial
    found.words, found.constants = code.words, code.constants
    found.helpers, found.calls = code.helpers, code.calls
    found.loops, found.buffers = code.loops, code.buffers
    found.arrays = plain.notes()
    return found


def _input(code, number, tensor, head):
    word, spec = code.word(), tensor.spec
    base = code.base(spec.dtype, "x")
    code.add(f"# {tensor.op.name}: {spec}")
    code.add(code.pointer(base, f"load_int(W[{word}] + {head + DATA})"))
    if not spec.shape and code.is_number(spec.dtype):
        code.bind(tensor, code.local(f"{base.name}[0]", spec.dtype))
        return word
    code.add(f"if load_int(W[{word}] + {head + FLAGS}) & {GOOD_FLAGS} != {GOOD_FLAGS}: "
             f"return {LAYOUT}")  # fmt: skip
    dims = code.variable(f"load_int(W[{word}] + {head + EXTENTS})", "d")
    extents = []
    for axis, known in enumerate(spec.shape):
        text = f"load_int({dims} + {8 * axis})"
        if type(known) is int:
            code.fail_if(f"{text} != {known}")
            extents.append(str(known))
        else:
            extents.append(_length(code, known, text))
    code.bind(tensor, Block(base, tuple(extents)))
    return word


def _length(code, known, text):
    """The name of a length; what the graph knows to be the same has one name."""
    name = code.dims.get(known) if known is not None else None
    if name is not None:
        code.fail_if(f"{text} != {name}")
        return name
    name = code.variable(text)
    if known is not None:
        code.dims[known] = name
    return name


def _place(code, tensor):
    """The buffer of a result, which the caller takes away; None for a scalar."""
    spec = tensor.spec
    if spec.rank == 0 and code.is_number(spec.dtype):
        return None
    base = code.base(spec.dtype, "y", code.word(2))
    taken = []

    def place(extents):
        if taken or code.level:
            return None
        taken.append(True)
        code.room(base, extents)
        return Block(base, tuple(extents))

    code.destinations.setdefault(tensor, place)
    return base


def _output(code, tensor, base):
    value, spec = code.value(tensor), tensor.spec
    if base is None:
        word = code.word(2)
        kept = code.base(spec.dtype, "h")
        code.add(code.pointer(kept, f"w + {8 * word}"), f"{kept.name}[0] = {value.text}")
        return Output(spec.dtype, spec.kind, word, None)
    if value.base is not base:
        code.room(base, value.extents)
        code.copy_to(Block(base, value.extents), value)
    words = [code.word() for _ in value.extents]
    code.add(*(f"W[{w}] = {e}" for w, e in zip(words, value.extents, strict=True)))
    return Output(spec.dtype, spec.kind, base.word, words)
