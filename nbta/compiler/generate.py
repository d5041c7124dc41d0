"""A program as one function of the loop IR, with what its callers must know."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from nbta.codegen.values import TABLE, Block, numba_name, product
from nbta.compiler.array_code import ArrayCode, PlainArrays
from nbta.compiler.emitter import Call, Emitter, changed_from, check, has_code, unread
from nbta.compiler.explain import place_of, work
from nbta.compiler.induction import Counts
from nbta.compiler.manager import analysis
from nbta.compiler.same_shapes import SameShapes
from nbta.graph.operation import is_inexact
from nbta.graph.order import ordered
from nbta.loops import (
    Constant,
    Function,
    Return,
    assign,
    call,
    comment,
    do,
    leave,
    negated,
    refuse,
    saving,
    several,
)
from nbta.loops.building import finished
from nbta.loops.guard_free import guard_free
from nbta.loops.jamming import jammed
from nbta.loops.nodes import as_node
from nbta.loops.rereading import reread
from nbta.loops.structure import Sizes
from nbta.runtime.intrinsics import NOT_A_NUMBER, OK, RESIZED
from nbta.runtime.memory import HEAD


@dataclass
class Generated:
    """A function, and the table of words that goes with it.

    Attributes
    ----------
    source : str
        The function as text: for people, and to find its machine code by.
    function : nbta.loops.Function, bytes or None
        The function as nodes, or as it is on disk; None once it was compiled.
    sizes : nbta.loops.structure.Sizes
        How much there is to compile.
    words : int
        How many words a call's table has.
    inputs : int
        The first of the words for the address of the array object of each input, and after these
        for one of each output: a new array to be filled, or 0.
    arguments : int
        The number of inputs.
    outputs : list of Output
    constants : list of (int, array)
    helpers : dict
        Word by helper's name.
    initial : list of (int, int or str)
        What is in a word before all calls: a number, or the address of a helper.
    globals : dict
        Users' functions by name. Source that refers to any is not known by its text alone.
    calls : list of Call
    clock : Clock or None
        What reads the time, in code that does.
    loops, buffers, arrays, tiles, joint : list of str
        What was decided, for people.
    lengths : dict
        Place and axis of an argument by the name of its length.
    copies : list of list
        What a loop copies whole: text for people, file, line and module, lengths, bytes an item,
        and lengths of what the same iteration goes through.
    kept : dict
        By the operation that makes an array which Python keeps, why.
    makers : dict
        By operation that Python runs on such an array, the operation that makes that.
    is_plain : bool
        Whether it looks for NaN in results; see `nbta.compiler.plain_products`.
    """

    source: str = ""
    function: Function | bytes | None = None
    sizes: Sizes | None = None
    words: int = 0
    inputs: int = 0
    arguments: int = 0
    outputs: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    helpers: dict = field(default_factory=dict)
    initial: list = field(default_factory=list)
    globals: dict = field(default_factory=dict)
    calls: list = field(default_factory=list)
    clock: object = None
    loops: list = field(default_factory=list)
    buffers: list = field(default_factory=list)
    arrays: list = field(default_factory=list)
    copies: list = field(default_factory=list)
    lengths: dict = field(default_factory=dict)
    tiles: list = field(default_factory=list)
    joint: list = field(default_factory=list)
    kept: dict = field(default_factory=dict)
    makers: dict = field(default_factory=dict)
    is_plain: bool = False

    def nodes(self) -> Function:
        """The function as nodes."""
        return saving.decoded(self.function) if type(self.function) is bytes else self.function


@dataclass
class Output:
    """Where a result is found after a call.

    Attributes
    ----------
    dtype, kind
    word : int or None
        Of the address of its buffer and the bytes there; None for a scalar, which goes into the
        array of rank 0 that must be given.
    dimensions : list of int or None
        Words of the dimensions; None for a scalar.
    """

    dtype: np.dtype
    kind: str
    word: int | None
    dimensions: list | None


def generate(program, emitter=Emitter) -> Generated:
    """A program as one function.

    Parameters
    ----------
    program : Program
    emitter : type of Emitter
        What writes it down.

    Raises
    ------
    NotCompiledError
        For a program that cannot be one function, with the reason.
    """
    head = HEAD
    plain = PlainArrays(program)
    code = emitter(ArrayCode(plain), analysis(Counts, program), SameShapes(program))
    # What no operation takes, as the texts of records, is in nobody's way.
    in_code = [t for t in program.inputs if has_code(t.dtype) or t.spec.rank is None]
    check([*in_code, *program.outputs])
    found = Generated()
    found.arguments = len(program.inputs)
    found.inputs = code.word(len(program.inputs) + len(program.outputs))
    with code.part("arguments"):
        for place, tensor in enumerate(program.inputs):
            for axis, length in enumerate(_input(code, found.inputs + place, tensor, head)):
                found.lengths.setdefault(str(length), (place, axis))
    first = found.inputs + len(program.inputs)
    needed = [*(t.op for t in program.outputs), *program.targets]
    operations = ordered(list(dict.fromkeys(needed)))
    places = _places(code, program, operations, first, head)
    code.body(operations, program.outputs)
    code.flush()
    with code.part("results"):
        for tensor, place in zip(program.outputs, places, strict=True):
            found.outputs.append(_output(code, tensor, place))
        if program.is_plain:
            _look_for_nan(code, program.outputs, places)
    for place in places:
        if place.base:
            agrees = call("agrees", "w", place.given, head, place.shape)
            code.add(leave(negated(agrees), Return(as_node(RESIZED))))
    code.add(Return(as_node(OK)))
    found.function = Function(
        reread(guard_free(jammed(finished(code.top), code.arrays.anew))),
        {name.id: number for name, number in code.numbers.values()},
    )
    found.source = str(found.function)
    found.initial = code.initial
    found.words, found.constants = code.words, code.constants
    found.helpers, found.calls = code.helpers, code.calls
    found.globals, found.clock = code.globals, code.clock
    found.loops, found.buffers = code.loops, code.buffers
    found.tiles, found.joint = code.tiles, code.joint
    found.is_plain = program.is_plain
    found.copies = [
        [
            f"{op.name}: {reason}",
            place_of(op),
            tuple(map(str, value.dimensions)),
            value.dtype.itemsize,
            work(code, body),
        ]
        for op, value, reason, body in code.copies
    ]
    found.arrays, found.kept = plain.notes(), plain.reasons
    operations = (call.op for call in code.calls if isinstance(call, Call) and call.op.inputs)
    makers = {op: plain.maker(op.inputs[0]) for op in operations}
    found.makers = {op: maker for op, maker in makers.items() if maker in plain.reasons}
    return found


def _input(code, word, tensor, head):
    """Read an input; its dimensions."""
    spec, given = tensor.spec, ("w", word, head)
    code.add(comment(f"{tensor.op.name}: {spec}"))
    if not has_code(spec.dtype):  # operations that take it are refused, but its lengths are known
        return [_dimension(code, given, axis, known) for axis, known in enumerate(spec.shape)]
    base = code.base(spec.dtype, "x")
    kind = numba_name(spec.dtype)
    code.add(assign(base.name, call("array_in", kind, *given, spec.rank, base.scope)))
    if not spec.shape and code.is_number(spec.dtype):
        code.bind(tensor, code.local(base.name[0], spec.dtype))
        return ()
    dimensions = [_dimension(code, given, axis, known) for axis, known in enumerate(spec.shape)]
    code.bind(tensor, Block(base, tuple(dimensions)))
    return dimensions


def _dimension(code, given, axis, known):
    """A dimension of an input."""
    length = call("dimension_in", *given, axis)
    if type(known) is int:
        code.fail_if(length.differs(known))
        return Constant(known)
    return _length(code, known, length)


def _length(code, known, length):
    """The name of a length; what the graph knows to be the same has one name."""
    name = code.dims.get(known) if known is not None else None
    if name is not None:
        code.fail_if(length.differs(name))
        return name
    name = code.variable(length)
    if known is not None:
        code.dims[known] = name
        code.fail_if(name.equals(1))  # broadcasting was decided for other lengths
    return name


def _places(code, program, operations, first, head):
    """Where the results of a program go."""
    uses = Counter(t for op in operations for t in op.inputs)
    uses.subtract(t for op in operations for t in unread(op))
    uses.update(program.outputs)
    return [
        _Place(code, tensor, changed_from(tensor, uses), first + k, head)
        for k, tensor in enumerate(program.outputs)
    ]


class _Place:
    """Where a result goes: an array that is given, if it is large enough, or a new buffer.

    What only becomes the result, ``before``, is made there, and changed in place.
    """

    def __init__(self, code, tensor, before, given, head):
        self.given, self.head, self.base, self.shape = given, head, None, several()
        self._code, spec = code, tensor.spec
        if spec.rank == 0 and code.is_number(spec.dtype):
            return
        self.base = code.base(spec.dtype, "y", code.word(2))
        size = spec.dtype.itemsize
        code.add(do("adopt", "w", self.base.word, given, head, spec.rank, size))
        self._is_taken = False
        code.destinations.setdefault(tensor, self._take)
        for made in before:
            code.destinations.setdefault(made, self._take)
            code.change_here(self.base)  # nothing else is ever there

    def _take(self, dimensions, there=None):
        if self._is_taken or self._code.level:
            return None
        self._is_taken = True
        self._code.room(self.base, dimensions)
        return Block(self.base, tuple(dimensions))

    def put(self, value):
        """Bring the result there; the words of its dimensions, None for a scalar."""
        code = self._code
        if self.base is None:
            item = code.base(value.dtype, "h")
            code.add(code.pointer(item, call("load_int", TABLE[self.given] + self.head)))
            code.add(assign(item.name[0], value.item))
            return None
        if value.base is not self.base:
            code.room(self.base, value.dimensions)
            code.copy_to(Block(self.base, value.dimensions), value)
        words = [code.word() for _ in value.dimensions]
        code.add(*(assign(TABLE[w], e) for w, e in zip(words, value.dimensions, strict=True)))
        self.shape = several(*value.dimensions)
        return words


def _look_for_nan(code, results, places):
    """Leave where a result has a NaN."""
    for tensor, place in zip(results, places, strict=True):
        if is_inexact(tensor.dtype):
            if place.base is None:
                item = code.scalar(tensor)
                found = item.differs(item)
            else:
                found = call("has_nan", place.base.name, 0, product(code.dimensions(tensor)))
            code.add(refuse(found, NOT_A_NUMBER))


def _output(code, tensor, place):
    words = place.put(code.value(tensor))
    word = None if place.base is None else place.base.word
    return Output(tensor.dtype, tensor.spec.kind, word, words)
