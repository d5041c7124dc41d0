"""Arrays in compiled code: which become plain buffers, and the statements of their operations.

See `nbta.runtime.plain`.
"""

import math

from nbta import shapes
from nbta.codegen.values import (
    NUMBERS,
    TABLE,
    Block,
    Scalar,
    is_known,
    product,
    times,
    total,
    typed,
)
from nbta.compiler.prefetch import ask_below, goes_back
from nbta.dtypes import INT32_MAX
from nbta.graph.graph import live, subgraphs
from nbta.graph.operation import HANDLE
from nbta.graph.order import ordered
from nbta.graph.views import arguments, variables_in
from nbta.loops import Constant, accumulate, assign, both, call, do, either, otherwise, over, when
from nbta.loops.jamming import Anew
from nbta.loops.nodes import ZERO, as_node
from nbta.ops.arrays.index_lists import (
    GATHER_SLOT_LIST,
    ON_SLOT_LISTS,
    READ_SLOT_LIST,
    SLOT_LIST,
    WRITE_SLOT_LIST,
)
from nbta.ops.arrays.tensor_arrays import (
    CONCAT,
    CREATE,
    GATHER,
    LOOKUP,
    READ,
    SCATTER,
    SIZE,
    SPLIT,
    WRITE,
    WRITES,
    clears,
)
from nbta.ops.core.arithmetic import add
from nbta.ops.core.dispatch import CONSTANT
from nbta.ops.core.filling import RANGE
from nbta.runtime import plain as rt

ADD = add.record
_PLAIN = {WRITE, READ, GATHER, SCATTER, SPLIT, CONCAT, SIZE, LOOKUP}
_CREATES = {CREATE, SLOT_LIST}


class PlainArrays:
    """The arrays whose handles a program only uses directly, with elements of one rank.

    Attributes
    ----------
    reasons : dict
        By the operation that makes an array, why it is none.
    """

    def __init__(self, program):
        self._array = {}  # key of an array by handle: (creation, source, ...)
        self._writers = {}  # by key, the operations that write
        self._clears = {}  # by key of a gradient array, whether reads clear its slots
        self._ranks = {}
        self._places = {}  # the bodies that are around what makes an array
        self._held = {}  # keys of the arrays whose handles an array has
        self.reasons = {}
        self._walk(program, ())
        self._check_held()
        self._check_ranks()
        self._check_keepers()

    def key(self, handle):
        """The array of a handle: what made it, and the sources of gradients; None otherwise."""
        key = self._array.get(handle)
        return None if key is None or key[0] in self.reasons else key

    def maker(self, handle):
        """The operation that makes the array of a handle; None where that is not known."""
        return self._array.get(handle, (None,))[0]

    def notes(self) -> list[str]:
        """For each array, whether it is a plain buffer, and why not."""
        return [
            f"{op.name}: {self.reasons.get(op) or 'a plain buffer'}"
            + (", so that Python keeps it" if op in self.reasons else "")
            for op in self._ranks
        ]

    def descendants(self, op):
        """Gradient arrays of the array that an operation makes: a handle of each."""
        found = {key: handle for handle, key in self._array.items() if key[0] is op}
        return [handle for key, handle in found.items() if len(key) > 1]

    def is_tape(self, key) -> bool:
        """Whether one operation writes all elements of an array."""
        return len(key) == 1 and [op.record for op in self._writers.get(key, ())] == [WRITE]

    def clears(self, key) -> bool:
        """Whether reading a slot of an array clears it."""
        return self._clears[key] if len(key) > 1 else key[0].attrs.get("clear_after_read", True)

    def rank(self, key) -> int:
        """Rank of an array's elements."""
        return next(iter(self._ranks[key[0]]))

    def _walk(self, graph, around):
        for op in ordered([*{t.op: None for t in graph.outputs}, *getattr(graph, "targets", ())]):
            own = len(variables_in(op))
            for body in subgraphs(op):
                pairs = list(zip(body.inputs, arguments(op, body), strict=True))
                for parameter, outer in pairs[own:]:
                    if parameter.kind == HANDLE and outer in self._array:
                        self._array[parameter] = self._array[outer]
                self._walk(body, (*around, body))
            if op.record in _CREATES:
                self._places[op] = around
            self._visit(op)
        for tensor in graph.outputs:
            self._refuse(tensor, "its handle is a result")

    def _visit(self, op):
        if op.record in _CREATES:
            self._create(op)
        elif op.record is LOOKUP and op.inputs[0] in self._array:
            self._look_up(op)
        elif op.record in _PLAIN:
            self._note_rank(op)
        elif op.record in ON_SLOT_LISTS:
            self._note_number(op)
        elif subgraphs(op):
            for tensor in variables_in(op):
                self._refuse(tensor, "its handle changes in a loop")
        else:
            for tensor in op.inputs:
                self._refuse(tensor, f"{op.type} uses it")

    def _create(self, op):
        handle, key = op.outputs[0], (op,)
        self._array[handle] = key
        self._ranks[op] = set()
        shape = op.attrs.get("element_shape")
        if shape is not None:
            self._ranks[op].add(len(shape))
        if op.attrs["dtype"].char not in NUMBERS:
            self._refuse(handle, f"it is of {op.attrs['dtype']}")
        if op.inputs[0].spec.rank != 0:
            self._refuse(handle, f"{op.name} has a size that is not a number")

    def _look_up(self, op):
        key = self._array[op.inputs[0]]
        made = self._array[op.outputs[0]] = (*key, op.attrs["source"])
        clear = clears(op.attrs.get("clear_after_read"), len(key) > 1)
        if self._clears.setdefault(made, clear) != clear:  # only the run knows which is the first
            self._refuse(op.inputs[0], "its lookups differ in whether a read clears a slot")
        if key[0].attrs.get("dtype") == "bool":  # two true ones in a slot are an error
            self._refuse(op.inputs[0], "bools have no sum")
        if len(op.inputs) > 2:
            self._refuse(op.inputs[0], "each iteration of a loop has gradient arrays of its own")

    def _note_rank(self, op):
        key = self._array.get(op.inputs[0])
        if key is None and op.record is WRITE:
            self._refuse(op.inputs[2], f"{op.name} hands its handle to Python")
        if key is None or op.record is SIZE:
            return
        if op.record in WRITES:
            self._writers.setdefault(key, []).append(op)
        if op.record in (WRITE, READ):
            self._note_held(op, key)
        self._note_elements(op, key)
        if op.record is CONCAT:
            self._check_concat(op, key)
        elif op.record is SPLIT:
            self._check_index(op, op.inputs[2].spec, 1, "lengths")
        else:
            rank = int(op.record in (SCATTER, GATHER))
            self._check_index(op, op.inputs[1].spec, rank, "an index")

    def _note_elements(self, op, key):
        """Hold dtype and rank of what is written or read against those of the array."""
        puts, rows = op.record in WRITES, op.record in (SCATTER, GATHER)
        value = op.inputs[op.record.value_input] if puts else op.outputs[0]
        dtype, verb = (value.dtype, "writes") if puts else (op.attrs["dtype"], "reads")
        rank = None if value.spec.shape is None else len(value.spec.shape) - rows
        if rank is None:
            self._refuse(op.inputs[0], f"the rank of an element of {op.name} is not known")
        else:
            self._ranks[key[0]].add(rank)
        if rank == 0 and op.record in (SPLIT, CONCAT):
            self._refuse(op.inputs[0], f"{op.name} cuts or joins numbers")
        if dtype != key[0].attrs["dtype"]:
            self._refuse(op.inputs[0], f"{op.name} {verb} {dtype}")
        asked = op.attrs.get("element_shape")
        if None not in (asked, rank) and len(asked) != rank:
            self._refuse(op.inputs[0], f"{op.name} asks for elements of another rank")

    def _check_concat(self, op, key):
        asked, shape = op.attrs.get("element_shape_except0"), op.outputs[0].spec.shape
        if None not in (asked, shape) and len(asked) + 1 != len(shape):
            self._refuse(op.inputs[0], f"{op.name} asks for elements of another rank")
        if len(key) > 1 and len(op.inputs) == 2:
            self._refuse(op.inputs[0], f"{op.name} joins as many slots as a split has marked")

    def _note_number(self, op):
        key = self._array.get(op.inputs[0])
        if key is not None:
            self._ranks[key[0]].add(0)

    def _check_index(self, op, spec, rank, what):
        if spec.dtype.kind not in "iu":
            self._refuse(op.inputs[0], f"{op.name} has {what} of {spec.dtype}")
        if spec.rank != rank:
            self._refuse(op.inputs[0], f"{op.name} has {what} of rank {spec.rank}")

    def _note_held(self, op, key):
        """Follow a handle through the array that keeps it, such as a tape."""
        held = self._held.setdefault(key, set())
        if op.record is WRITE and op.inputs[2] in self._array:
            held.add(self._array[op.inputs[2]])
        elif op.record is READ and op.outputs[0].kind == HANDLE and len(held) == 1:
            self._array[op.outputs[0]] = next(iter(held))

    def _check_held(self):
        """What is read must be the array that was written, not that of another iteration."""
        for keeper, held in self._held.items():
            place = self._places[keeper[0]]
            for key in held:
                inner = self._places[key[0]]
                if len(held) > 1 or place[: len(inner)] != inner:
                    reason = f"{keeper[0].name} keeps its handle"
                    self.reasons.setdefault(key[0], reason)

    def _check_keepers(self):
        """Where Python keeps an array of handles, it gets to see those; it may hold keepers too."""
        found = {op for op in self._places if op in self.reasons}
        while found:
            held = {key[0] for keeper in self._held if keeper[0] in found
                    for key in self._held[keeper]}  # fmt: skip
            found = {op for op in held if op not in self.reasons}
            self.reasons |= dict.fromkeys(found, "Python keeps an array with its handle")

    def _check_ranks(self):
        for op, ranks in self._ranks.items():
            if len(ranks) != 1:
                self.reasons.setdefault(op, "the rank of its elements is not known")

    def _refuse(self, tensor, reason):
        key = self._array.get(tensor)
        if key is not None:
            self.reasons.setdefault(key[0], reason)


_FLOW, _HANDLE = Scalar(ZERO, "float32"), Scalar(as_node(-1), "int64")


class ArrayCode:
    """The arrays of a function.

    Attributes
    ----------
    plain : PlainArrays
    """

    def __init__(self, plain):
        self.plain = plain
        self._made = {}
        # what is the same for elements of one shape in one iteration, by array
        self.written: dict = {}
        self.found: dict = {}  # dimensions of what was read, by that, the index and the lines
        self.ahead: dict = {}  # places that were taken before the operation that writes
        self.stored: dict = {}  # the place of a tensor in an array
        self.reserved: set = set()  # writes for which there is room already
        self.anew: dict = {}  # packed arrays of numbers, by the names of their buffers

    def has(self, op) -> bool:
        """Whether an operation is one on a plain array."""
        if op.record in _CREATES:
            return self.plain.key(op.outputs[0]) is not None
        known = op.record in _RULES or op.record in ON_SLOT_LISTS
        return known and self.plain.key(op.inputs[0]) is not None

    def of(self, code, handle) -> "_Array":
        """The array of a handle."""
        key = self.plain.key(handle)
        if key not in self._made:
            self._made[key] = _Array(code, key, self.plain)
        return self._made[key]

    def made(self) -> list["_Array"]:
        """All arrays that there are."""
        return list(self._made.values())


def emit(code, op) -> None:
    """Add the statements of an operation on a plain array."""
    handle = op.outputs[0] if op.record in _CREATES else op.inputs[0]
    array = code.arrays.of(code, handle)
    code.flush_readers(array.data)
    rules = _PACKED if array.packed else _RULES
    rules[op.record](code, op, array)


class _Array:
    """An array's record and the pointer to its items."""

    def __init__(self, code, key, plain):
        op, self.key = key[0], key
        self.rank, self.record = plain.rank(key), code.word(rt.WORDS)
        self.data = code.base(op.attrs["dtype"], "a", self.record)
        self.adds = len(key) > 1
        self.clears = plain.clears(key)
        self.infers = op.attrs.get("infer_shape", True) or _known(op)
        self.may_differ = bool(self.rank) and not self.infers  # elements may be of several shapes
        row = op.facts.row
        self.packed = row is not None and self.rank == len(row) and not self.adds
        self.row = tuple(map(Constant, row or ()))  # dimensions of a packed element
        self.length = self.limit = None
        code.initial += [
            (self.record + rt.ITEM, self.data.dtype.itemsize),
            (self.record + rt.RANK, 0 if self.packed else self.rank),
            (self.record + rt.GROW, "grow"),
        ]
        code.initial.append((self.record + rt.FLAGS, self.flags))
        code.rooms[0].add(code.pointer(self.data, TABLE[self.record]))

    @property
    def flags(self):
        """How the array behaves."""
        return rt.CLEARS * bool(self.clears) + rt.INFERS * self.infers + rt.ADDS * self.adds

    def word(self, number):
        """A word of the record."""
        return TABLE[self.record + number]

    @property
    def itemsize(self):
        """Bytes of an item."""
        return self.data.dtype.itemsize

    def call(self, code, what, a=0, b=0, stem="o"):
        """The variable with the result of an operation on the record."""
        return self.at(code, call("slot", "w", self.record, what, a, b), stem)

    def at(self, code, value, stem="o"):
        """The variable with what a call gives that may move the items."""
        name = code.variable(value, stem)
        code.add(code.pointer(self.data, TABLE[self.record]))
        return name

    def give(self, code, dimensions):
        """Say which dimensions the element has that is to be written."""
        for axis, dimension in enumerate(dimensions):
            code.add(assign(self.word(rt.GIVEN + axis), dimension))

    def dimensions(self, code, shape, expected=()):
        """Dimensions of an element in variables, held against what is known or expected of them."""
        found = []
        for axis, known in enumerate(shape):
            length = self.word(rt.DIMENSIONS + axis)
            if expected:
                code.fail_if(length.differs(expected[axis]))
                found.append(expected[axis])
            elif type(known) is int:
                code.fail_if(length.differs(known))
                found.append(Constant(known))
            else:
                name = code.known_dimension(known)
                found.append(code.variable(length) if name is None else name)
                if name is not None:
                    code.fail_if(length.differs(name))
        return tuple(found)


def _known(op):
    shape = op.attrs.get("element_shape")
    return shape is not None and all(type(dimension) is int for dimension in shape)


def _create(code, op, array):
    shape = op.attrs.get("element_shape") or (None,) * array.rank
    array.give(code, [e if type(e) is int else -1 for e in shape])
    for handle in code.arrays.plain.descendants(op):
        code.add(assign(code.arrays.of(code, handle).word(rt.THERE), 0))
    size = code.integer(op.inputs[0])
    array.call(code, rt.CREATE, size, int(bool(op.attrs.get("dynamic_size"))), "z")
    code.bind(op.outputs[0], _HANDLE)
    code.bind(op.outputs[1], _FLOW)


def _look_up(code, op, parent):
    child = code.arrays.of(code, op.outputs[0])
    child.call(code, rt.LOOK_UP, parent.record, stem="z")
    code.bind(op.outputs[0], _HANDLE)
    code.bind(op.outputs[1], _FLOW)


def _size(code, op, array):
    _bind_size(code, op, array.word(rt.SIZE))


def _bind_size(code, op, count):
    """The reference executor tells of a size past int32."""
    code.fail_if(count > INT32_MAX)
    code.bind(op.outputs[0], code.local(count, "int32"))


def _write(code, op, array):
    found = code.value(op.inputs[2])
    if op in code.arrays.ahead:
        start = code.arrays.ahead.pop(op)
        if not (isinstance(found, Block) and found.base is array.data and found.offset == start):
            _put(code, array, start, found)
        code.bind(op.outputs[0], _FLOW)
        return
    array.give(code, found.dimensions)
    _note_shape(code, op, found.dimensions)
    index = code.integer(op.inputs[1])
    if array.rank or array.adds:
        start = array.call(code, rt.WRITE_SLOT, index)
    else:
        start = array.at(code, call("write_item", "w", array.record, index, array.itemsize))
    _put(code, array, start, found)
    code.arrays.stored[array, op.inputs[2]] = start
    code.bind(op.outputs[0], _FLOW)


def writes(code, operations) -> dict:
    """What operations write to slots, each thing once, so that it may be computed there.

    By tensor the operation, what must be emitted before, and the lines in which it is.
    """
    found, before = {}, {}
    for op in operations:
        if subgraphs(op):  # its bodies may do anything with arrays
            before = {key: [*ops, op] for key, ops in before.items()}
            before[None] = [*before.get(None, ()), op]
            continue
        key = code.arrays.plain.key(op.inputs[0]) if op.record in _RULES and op.inputs else None
        if key is None or op.record in _CREATES:
            continue
        plain = op.record is WRITE and len(key) == 1 and op.inputs[2].spec.rank
        if plain and op.inputs[2] not in found and op.inputs[2].op in operations:
            others = [*before.get(key, before.get(None, ())), op.inputs[3].op]
            needed = {o for o in [*others, op.inputs[1].op] if o in operations}
            found[op.inputs[2]] = op, needed, code.lines
        before[key] = [*before.get(key, before.get(None, ())), op]
    return found


def filled(code, body) -> list[int]:
    """Records of the arrays that a body writes to, a slot per iteration."""
    found = {}
    for op in body.operations:
        key = code.arrays.plain.key(op.inputs[0]) if op.record is WRITE else None
        grows = key is not None and len(key) == 1 and key[0].attrs.get("dynamic_size")
        if grows and not code.arrays.of(code, op.inputs[0]).packed:
            found[code.arrays.of(code, op.inputs[0]).record] = None
    return list(found)


def slot_ahead(code, op, dimensions) -> Block | None:
    """The slot that a result will be written to, taken before it is computed."""
    array = code.arrays.of(code, op.inputs[0])
    if not isinstance(code.values.get(op.inputs[1]), Scalar):
        return None
    if array.packed:
        start = _packed_slot(code, op, array)
    else:
        array.give(code, dimensions)
        _note_shape(code, op, dimensions)
        start = array.call(code, rt.WRITE_SLOT, code.integer(op.inputs[1]))
    code.arrays.ahead[op] = code.arrays.stored[array, op.inputs[2]] = start
    return Block(array.data, tuple(dimensions), start)


def kept_in_slots(code, body, following, first):
    """Where a loop's variable is, if all its values are slots of one array; None otherwise.

    The array and the variable with the place of the first value.
    """
    for op in following.op.graph.operations if following.op.graph is body else ():
        if op.record is not WRITE or op.inputs[2] is not following:
            continue
        key = code.arrays.plain.key(op.inputs[0])
        if key is None or len(key) > 1:
            continue
        array = code.arrays.of(code, op.inputs[0])
        start = code.arrays.stored.get((array, first))
        if start is not None and not array.clears and array.rank:
            return array, start
    return None


def _put(code, array, start, value):
    """Store an element in its slot; where writes add up, ``start`` says whether it is the first."""
    if not array.adds:
        _store(code, array, start, value)
        return
    offset = code.variable(start >> 1)
    with code.branch(when(start & 1)):
        _store(code, array, offset, value)
    with code.branch(otherwise()):
        if isinstance(value, Scalar):
            at = array.data.name[offset]
            code.add(assign(at, typed(at + value.item, value.dtype)))
            return
        i = code.name("i")
        at = array.data.name[total(offset, i)]
        line = assign(at, typed(at + value.at(i), value.dtype))
        code.nested([over(i, product(value.dimensions))], line)


def _store(code, array, offset, value):
    if isinstance(value, Scalar):
        code.add(assign(array.data.name[offset], value.item))
    else:
        source = value.base.name, value.offset, product(value.dimensions)
        code.add(do("copy", array.data.name, offset, *source))


def _read(code, op, array):
    index = code.integer(op.inputs[1])
    if array.rank:
        start = array.call(code, rt.READ_SLOT, index)
    else:
        start = array.at(code, call("read_item", "w", array.record, index, array.flags))
    if not array.rank:
        code.bind(op.outputs[0], code.local(array.data.name[start], array.data.dtype))
        return
    view = Block(array.data, _dimensions_read(code, op, array), start)
    if goes_back(code, op, op.graph):
        ask_below(code, array, start, product(view.dimensions))
    code.bind(op.outputs[0], _kept(code, view) if array.adds and not array.clears else view)


def _note_shape(code, op, dimensions):
    """Note what the elements that an iteration writes to a tape have the shape of, by name."""
    key = code.arrays.plain.key(op.inputs[0])
    if code.arrays.plain.is_tape(key):
        shape = tuple(map(code.canonical, dimensions))
        code.arrays.written[key] = (op.graph, op.inputs[1], shape)


def _dimensions_read(code, op, array):
    """Dimensions of what is read: of tapes an iteration wrote by the same names, the same."""
    written = code.arrays.written.get(code.arrays.plain.key(op.inputs[0]))
    place = written and (written, op.inputs[1], op.graph)
    expected = code.arrays.found.get(place, ()) if array.may_differ else ()
    found = array.dimensions(code, op.outputs[0].spec.shape, expected)
    if place and array.may_differ:
        code.arrays.found[place] = found
    return found


def _kept(code, view):
    """A copy of what may be added to later."""
    block = code.new(view.dtype, view.dimensions)
    code.copy_to(block, view)
    return block


def _first(tensor):
    """The first of indices that count up by 1; None for others."""
    if tensor.op.record is not RANGE:
        return None
    start, _, step = (t.op.attrs["value"] if t.op.record is CONSTANT else -1
                      for t in tensor.op.inputs)  # fmt: skip
    return int(start) if step == 1 and start >= 0 else None


def _shape_when_empty(code, array, count, shape):
    """Where there are no elements, let what the graph knows be their shape."""
    dimensions = [as_node(n) if type(n) is int else code.known_dimension(n) for n in shape]
    if None in dimensions or (is_known(count) and count != ZERO):
        return
    with code.branch(when(both(count.equals(0), array.word(rt.KNOWN).equals(0)))):
        for axis, dimension in enumerate(dimensions):
            code.add(assign(array.word(rt.DIMENSIONS + axis), dimension))
        code.add(assign(array.word(rt.COUNT), product(dimensions)))
        code.add(assign(array.word(rt.KNOWN), 1))


def _gather(code, op, array):
    (count,) = code.dimensions(op.inputs[1])
    first, shape = _first(op.inputs[1]), op.attrs.get("element_shape")
    if op.attrs.get("strict") and not shapes.is_known(shape):
        code.fail_if(count.equals(0))
    if not op.attrs.get("learnt"):
        _shape_when_empty(code, array, count, op.outputs[0].spec.shape[1:])
    for axis, known in enumerate(shape or ()):
        if type(known) is int:
            code.fail_if(array.word(rt.DIMENSIONS + axis).differs(known))
    if first is not None:
        start = array.call(code, rt.READ_ALL, count, first)
    elif array.may_differ:
        _look_at_first(code, array, code.value(op.inputs[1]), count, shapes.is_known(shape))
    code.fail_if(array.word(rt.KNOWN).equals(rt.NOTHING))
    dimensions = (count, *array.dimensions(code, op.outputs[0].spec.shape[1:]))
    if first is not None:
        view = Block(array.data, dimensions, start)
        code.bind(op.outputs[0], _kept(code, view) if array.adds and not array.clears else view)
        return
    indices = code.value(op.inputs[1])
    block = code.result(op, dimensions=dimensions)
    j, items = code.name("j"), product(dimensions[1:])
    with code.branch(over(j, count)):
        start = array.call(code, rt.READ_SLOT, call("int64", indices.at(j)))
        for axis, dimension in enumerate(dimensions[1:] if array.may_differ else ()):
            code.fail_if(array.word(rt.DIMENSIONS + axis).differs(dimension))
        target = block.base.name, total(block.offset, times(j, items))
        code.add(do("copy", *target, array.data.name, start, items))


def _look_at_first(code, array, indices, count, known):
    """Let the record have the shape of the first of some slots, which all are to have.

    Where there is no slot, equal shapes of earlier elements say nothing of the next one.
    """
    unlike = array.word(rt.KNOWN).equals(rt.UNLIKE)
    code.fail_if(both(count.equals(0), unlike) if known else count.equals(0))
    with code.branch(when(count > 0)):
        array.call(code, rt.LOOK_AT, call("int64", indices.at(0)), stem="z")


def _scatter(code, op, array):
    value = code.value(op.inputs[2])
    (count,) = code.dimensions(op.inputs[1])
    code.bind(op.outputs[0], _FLOW)
    if not value.dimensions:
        code.fail_if(True)
        return
    code.fail_if(count.differs(value.dimensions[0]))
    array.give(code, value.dimensions[1:])
    if op.attrs.get("unstacks") and array.infers and not array.adds:
        with code.branch(when(count.equals(0))):
            array.call(code, rt.FIT, stem="z")
    whole = _first(op.inputs[1]) == 0
    if whole and not array.adds:
        array.call(code, rt.WRITE_ALL, count, value.address, "z")
        return
    indices = None if whole else code.value(op.inputs[1])
    j, items = code.name("j"), product(value.dimensions[1:])
    with code.branch(over(j, count)):
        slot = j if whole else indices.at(j)
        start = array.call(code, rt.WRITE_SLOT, call("int64", slot))
        row = total(value.offset, times(j, items))
        if array.rank:
            _put(code, array, start, Block(value.base, value.dimensions[1:], row))
        else:
            _put(code, array, start, Scalar(value.base.name[row], value.dtype))


def _split(code, op, array):
    value, lengths = code.value(op.inputs[1]), code.value(op.inputs[2])
    code.bind(op.outputs[0], _FLOW)
    if not value.dimensions:
        code.fail_if(True)
        return
    (count,), j = lengths.dimensions, code.name("j")
    begin, rest = code.variable(ZERO, "b"), product(value.dimensions[1:])
    _check_lengths(code, op, array, lengths, value.dimensions[0])
    with code.branch(over(j, count)):
        dimensions = (code.variable(call("int64", lengths.at(j)), "l"), *value.dimensions[1:])
        array.give(code, dimensions)
        start = array.call(code, rt.WRITE_SLOT, j)
        row = total(value.offset, times(begin, rest))
        _put(code, array, start, Block(value.base, dimensions, row))
        code.add(accumulate(begin, dimensions[0]))


def _check_lengths(code, op, array, lengths, rows):
    """Let lengths be none below zero, as many as there are slots, and add up to all rows."""
    (count,), j, found = lengths.dimensions, code.name("j"), code.variable(ZERO, "n")
    with code.branch(over(j, count)):
        length = code.variable(call("int64", lengths.at(j)), "l")
        code.fail_if(length < 0)
        code.add(accumulate(found, length))
    code.fail_if(found.differs(rows))
    if not op.attrs.get("partly"):
        code.fail_if(count < array.word(rt.SIZE))


def _concat(code, op, array):
    given, j = len(op.inputs) > 2, code.name("j")
    count = code.variable(code.integer(op.inputs[2]) if given else array.word(rt.SIZE))
    code.fail_if(either(count < 0, count > array.word(rt.SIZE)))
    rest = _after_rows(code, op, array, count)
    lengths = code.result(op, dimensions=(count,), index=1)
    rows = code.variable(ZERO, "n")
    with code.branch(over(j, count)):
        if array.may_differ:
            array.call(code, rt.LOOK_AT, j, stem="z")
        for axis, dimension in enumerate(rest, 1):
            code.fail_if(array.word(rt.DIMENSIONS + axis).differs(dimension))
        code.add(assign(lengths.at(j), array.word(rt.DIMENSIONS)))
        code.add(accumulate(rows, array.word(rt.DIMENSIONS)))
    length = _agreed(code, op.outputs[0].spec.shape[0], rows)
    block = code.result(op, dimensions=(length, *rest))
    begin = code.variable(ZERO, "b")
    with code.branch(over(j, count)):
        start = array.call(code, rt.READ_SLOT, j)
        items = code.variable(times(lengths.at(j), product(rest)), "n")
        target = block.base.name, total(block.offset, begin)
        code.add(do("copy", *target, array.data.name, start, items), accumulate(begin, items))


def _after_rows(code, op, array, count):
    """Dimensions of what is joined, after the first one; of nothing those that somebody told."""
    shape, asked = op.outputs[0].spec.shape, op.attrs.get("element_shape_except0")
    told = code.value(op.inputs[3]) if len(op.inputs) > 3 else None
    with code.branch(when(count > 0)):
        code.fail_if(array.word(rt.KNOWN).equals(rt.NOTHING))
        if array.may_differ:
            array.call(code, rt.LOOK_AT, ZERO, stem="z")
    if told is None and not shapes.is_known(asked):
        code.fail_if(count.equals(0))
    found = []
    for axis in range(1, array.rank):
        dimension = code.variable(array.word(rt.DIMENSIONS + axis))
        if told is not None:
            code.nested([when(count.equals(0))], assign(dimension, call("int64", told.at(axis))))
        elif shapes.is_known(asked):
            code.nested(
                [when(both(count.equals(0), dimension < 0))], assign(dimension, asked[axis - 1])
            )
        for known in (shape[axis], None if asked is None else asked[axis - 1]):
            dimension = _agreed(code, known, dimension)
        found.append(dimension)
    return found


def _agreed(code, known, dimension):
    """A dimension, held against what the graph knows of it."""
    name = as_node(known) if type(known) is int else code.known_dimension(known)
    if name is None or name == dimension:
        return dimension
    code.fail_if(dimension.differs(name))
    return name


_RULES = {
    CREATE: _create, LOOKUP: _look_up, SIZE: _size, WRITE: _write, READ: _read, GATHER: _gather,
    SCATTER: _scatter, SPLIT: _split, CONCAT: _concat,
}  # fmt: skip


# Packed arrays: numbers, or rows of as many numbers, one after the other, and how many there are.


def _create_packed(code, op, array):
    array.length = code.variable(ZERO, "l")
    array.limit = code.variable(_room_of(array), "m")
    code.add(code.pointer(array.data, array.word(rt.DATA)))
    if not array.rank:
        limit, name = array.limit.id, array.data.name.id
        code.arrays.anew[name] = Anew(limit, array.record)
    code.bind(op.outputs[0], _HANDLE)
    code.bind(op.outputs[1], _FLOW)


def _room_of(array):
    """For how many elements a packed array has room."""
    return array.word(rt.DATA + 1) // (array.itemsize * math.prod(e.value for e in array.row))


def _write_packed(code, op, array):
    value, index = code.value(op.inputs[2]), code.integer(op.inputs[1])
    start = code.arrays.ahead.pop(op, None)
    if start is None or value.base is not array.data or value.offset != start:
        start = _packed_slot(code, op, array) if start is None else start
        if op.facts.is_rare and op in code.arrays.reserved:  # of zeros
            with code.nest(when(value.item)):
                _store(code, array, start, value)
        else:
            _store(code, array, start, value)
    code.add(assign(array.length, index + 1))
    code.bind(op.outputs[0], _FLOW)


def _packed_slot(code, op, array):
    """Where the first number of an element goes that is to be written; with room."""
    index = code.integer(op.inputs[1])
    if op not in code.arrays.reserved:
        _reserve(code, array, index + 1)
    if not array.rank:
        return index
    start = code.variable(times(index, product(array.row)), "o")
    code.arrays.stored[array, op.inputs[2]] = start
    return start


def _reserve(code, array, count):
    """Let a packed array have room for so many elements."""
    items = times(count, product(array.row)) if array.rank else count
    with code.nest(when(count > array.limit)):
        code.add(do("slot", "w", array.record, rt.RESERVE, items, 0))
        code.add(code.pointer(array.data, array.word(rt.DATA)))
        code.add(assign(array.limit, _room_of(array)))


def reserve(code, loop, iterations) -> None:
    """Make room before a loop for what each of its iterations writes to packed arrays."""
    for op in live(loop.body):
        key = code.arrays.plain.key(op.inputs[0]) if op.record is WRITE else None
        array = None if key is None else code.arrays.of(code, op.inputs[0])
        start = _first_slot(code, loop, op.inputs[1]) if array and array.packed else None
        if start is not None:
            _reserve(code, array, total(start, iterations))
            code.arrays.reserved.add(op)
            if op.facts.is_rare:
                code.add(do("clear", array.data.name, start, iterations))


def _first_slot(code, loop, index):
    """The slot that the first iteration writes where each writes the next; None otherwise."""
    if index is loop.counter:
        return ZERO
    if index.op.record is ADD and index.op.inputs[1] is loop.counter:
        outer = loop.body.sources.get(index.op.inputs[0])
        return None if outer is None else code.integer(outer)
    return None


def _read_packed(code, op, array):
    index = code.integer(op.inputs[1])
    if not op.facts.is_written:
        code.fail_if(either(index < 0, index >= array.length))
    if array.rank:
        size = product(array.row)
        start = code.variable(times(index, size), "o")
        if goes_back(code, op, op.graph):
            ask_below(code, array, start, size)
        code.bind(op.outputs[0], Block(array.data, array.row, start))
    else:
        code.bind(op.outputs[0], code.local(array.data.name[index], array.data.dtype))


def _gather_packed(code, op, array):
    (count,) = code.dimensions(op.inputs[1])
    first, dimensions, size = _first(op.inputs[1]), (count, *array.row), product(array.row)
    if first is not None:
        code.fail_if(count + first > array.length)
        start = times(first, size)
        code.bind(op.outputs[0], Block(array.data, dimensions, start))
        return
    indices, block, j = (
        code.value(op.inputs[1]),
        code.result(op, dimensions=dimensions),
        code.name("j"),
    )
    with code.branch(over(j, count)):
        index = code.variable(call("int64", indices.at(j)), "k")
        code.fail_if(either(index < 0, index >= array.length))
        if array.rank:
            to, start = total(block.offset, times(j, size)), times(index, size)
            code.add(do("copy", block.base.name, to, array.data.name, start, size))
        else:
            code.add(assign(block.at(j), array.data.name[index]))


def _size_packed(code, op, array):
    _bind_size(code, op, array.length)


# Lists of slots, which are packed.


def _create_slots(code, op, array):
    _create_packed(code, op, array)
    count, j = code.integer(op.inputs[0]), code.name("j")
    _reserve(code, array, count)
    code.nested([over(j, count)], assign(array.data.name[j], j))


def _slot_index(code, op):
    index, length = code.integer(op.inputs[1]), code.integer(op.inputs[2])
    code.fail_if(either(index < 0, index >= length))
    return index


def _read_slots(code, op, array):
    found = array.data.name[_slot_index(code, op)]
    code.bind(op.outputs[0], code.local(found, array.data.dtype))


def _write_slots(code, op, array):
    index = _slot_index(code, op)
    _reserve(code, array, index + 1)
    _store(code, array, index, code.value(op.inputs[3]))
    code.bind(op.outputs[0], _FLOW)


def _gather_slots(code, op, array):
    count = code.variable(code.integer(op.inputs[1]))  # a dimension, as it is now
    code.fail_if(count < 0)
    block = code.result(op, dimensions=(count,))
    code.add(do("copy", block.base.name, block.offset, array.data.name, 0, count))


_PACKED = {
    CREATE: _create_packed, SIZE: _size_packed, WRITE: _write_packed, READ: _read_packed,
    GATHER: _gather_packed, SLOT_LIST: _create_slots, READ_SLOT_LIST: _read_slots,
    WRITE_SLOT_LIST: _write_slots, GATHER_SLOT_LIST: _gather_slots,
}  # fmt: skip
