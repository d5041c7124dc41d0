"""Source of operations on arrays that are plain buffers.

Besides its items an array has a byte a slot: 1 for written, 2 for read where that clears. What the
eager array would refuse makes the function fail, and the reference executor says what it was.
"""

from nbta.codegen.code import RAGGED
from nbta.codegen.names import cast
from nbta.codegen.values import Block, Scalar, product, times, total
from nbta.ops.arrays import CREATE, GATHER, LOOKUP, READ, SCATTER, SIZE, WRITE

_FLOW = Scalar("float32(0)", "float32")


class ArrayCode:
    """The arrays of a function.

    Attributes
    ----------
    plain : PlainArrays
    """

    def __init__(self, plain):
        self.plain = plain
        self._made = {}

    def has(self, op) -> bool:
        """Whether an operation is one on a plain array."""
        if op.record is CREATE:
            return self.plain.key(op.outputs[0]) is not None
        return op.record in _RULES and self.plain.key(op.inputs[0]) is not None

    def of(self, code, handle) -> "_Array":
        """The array of a handle."""
        key = self.plain.key(handle)
        if key not in self._made:
            self._made[key] = _Array(code, key, self.plain.rank(key))
        return self._made[key]


def emit(code, op) -> None:
    """The source of an operation on a plain array."""
    handle = op.outputs[0] if op.record is CREATE else op.inputs[0]
    array = code.arrays.of(code, handle)
    code.flush_readers(array.data)
    _RULES[op.record](code, op, array)


class _Array:
    """Names of an array's variables."""

    def __init__(self, code, key, rank):
        op = key[0]
        name = code.name("a")
        dtype = op.attrs["dtype"]
        self.key, self.rank = key, rank
        self.data = code.base(dtype, f"{name}_data", code.word(2))
        self.state = code.base("uint8", f"{name}_state", code.word(2))
        self.size, self.grows, self.known = f"{name}_size", f"{name}_grows", f"{name}_known"
        self.there = f"{name}_there"
        self.extents = tuple(f"{name}_n{axis}" for axis in range(rank))
        self.clears = op.attrs.get("clear_after_read", True) if len(key) == 1 else len(key) == 2
        self.infers = op.attrs.get("infer_shape", True)
        self.adds = len(key) > 1
        self.children = []
        code.heads[0].add(
            f"{self.size} = {self.grows} = {self.known} = {self.there} = 0",
            *(f"{extent} = 0" for extent in self.extents),
            code.pointer(self.data, f"W[{self.data.word}]"),
            code.pointer(self.state, f"W[{self.state.word}]"),
        )
        for extent in self.extents:
            code.note_variable(extent)

    @property
    def items(self):
        """How many items an element has."""
        return product(self.extents)

    def offset(self, index):
        """Where a slot begins."""
        return times(index, self.items) if self.rank else index


def _create(code, op, array):
    shape = op.attrs.get("element_shape")
    size = code.scalar(op.inputs[0])
    code.add(f"{array.size} = int64({size})")
    code.fail_if(f"{array.size} < 0")
    known = shape is not None and all(type(e) is int for e in shape)
    code.add(f"{array.grows} = {int(bool(op.attrs.get('dynamic_size')))}",
             f"{array.known} = {int(known)}")  # fmt: skip
    for name, extent in zip(array.extents, shape or (None,) * array.rank, strict=True):
        code.add(f"{name} = {extent if type(extent) is int else -1}")
    _fresh_states(code, array)
    for handle in code.arrays.plain.descendants(op):
        code.add(f"{code.arrays.of(code, handle).there} = 0")
    code.bind(op.outputs[0], Scalar("int64(-1)", "int64"))
    code.bind(op.outputs[1], _FLOW)


def _fresh_states(code, array):
    code.room(array.state, (array.size,))
    code.add(f"clear({array.state.name}, 0, {array.size})")


def _look_up(code, op, parent):
    child = code.arrays.of(code, op.outputs[0])
    clears = op.attrs.get("clear_after_read")
    child.clears = not parent.adds if clears is None else clears
    with code.branch(f"if not {child.there}:"):
        code.add(
            f"{child.there} = 1",
            f"{parent.grows} = 0",
            f"{child.size} = {parent.size}",
            f"{child.known} = {parent.known}",
            *(f"{e} = {p}" for e, p in zip(child.extents, parent.extents, strict=True)),
        )
        _fresh_states(code, child)
    code.bind(op.outputs[0], Scalar("int64(-1)", "int64"))
    code.bind(op.outputs[1], _FLOW)


def _size(code, op, array):
    code.bind(op.outputs[0], code.local(array.size, "int32"))


def _index(code, tensor):
    """A slot's number in a variable."""
    return code.variable(f"int64({code.scalar(tensor)})", "k")


def _reserve(code, array, index):
    """Let a slot that is to be written be there, with room for its items."""
    with code.branch(f"if {index} >= {array.size}:"):
        code.fail_if(f"not {array.grows}")
        _grow(code, array.state, f"{index} + 1", array.size)
        code.add(
            f"clear({array.state.name}, {array.size}, {index} + 1 - {array.size})",
            f"{array.size} = {index} + 1",
        )


def _grow(code, base, count, kept):
    """More room, with what is there."""
    size = base.dtype.itemsize
    code.add(
        f"if W[{base.word + 1}] < ({count}) * {size}:",
        f"    if call({code.helper('grow')}, ({base.word}, ({count}) * {size}, "
        f"({kept}) * {size})): return 4",
        f"    {code.pointer(base, f'W[{base.word}]')}",
    )


def _fit(code, array, extents):
    """Hold an element against the others, or learn its shape if it is the first."""
    same = [f"{mine} == {theirs}" for mine, theirs in zip(array.extents, extents, strict=True)]
    if not same:
        return
    with code.branch(f"if {array.known}:"):
        code.add(f"if not ({' and '.join(same)}): return {1 if array.infers else RAGGED}")
    with code.branch("else:"):
        for mine, theirs in zip(array.extents, extents, strict=True):
            code.fail_if(f"{mine} >= 0 and {mine} != {theirs}")
            code.add(f"{mine} = {theirs}")
        code.add(f"{array.known} = 1")


def _write(code, op, array):
    value = op.inputs[2]
    index = _index(code, op.inputs[1])
    code.fail_if(f"{index} < 0")
    found = code.value(value)
    _reserve(code, array, index)
    _fit(code, array, found.extents)
    _room_for(code, array)
    if array.adds:
        _accumulate(code, array, index, found)
    else:
        code.fail_if(f"{array.state.name}[{index}] != 0")
        _store(code, array, array.offset(index), found)
        code.add(f"{array.state.name}[{index}] = uint8(1)")
    code.bind(op.outputs[0], _FLOW)


def _room_for(code, array):
    """Room for all slots."""
    _grow(code, array.data, times(array.size, array.items), times(array.size, array.items))


def _store(code, array, offset, value):
    if isinstance(value, Scalar):
        code.add(f"{array.data.name}[{offset}] = {value.text}")
    else:
        code.add(
            f"copy({array.data.name}, {offset}, {value.base.name}, {value.offset or 0}, "
            f"{array.items})"
        )


def _accumulate(code, array, index, value):
    state = array.state.name
    code.fail_if(f"{state}[{index}] & 2 != 0")
    offset = code.variable(array.offset(index), "o")
    with code.branch(f"if {state}[{index}] == 0:"):
        _store(code, array, offset, value)
        code.add(f"{state}[{index}] = uint8(1)")
    with code.branch("else:"):
        if isinstance(value, Scalar):
            at = f"{array.data.name}[{offset}]"
            code.add(f"{at} = {cast(f'{at} + {value.text}', array.data.dtype)}")
            return
        i = code.name("i")
        with code.nest(f"for {i} in range({array.items}):"):
            at = f"{array.data.name}[{total(offset, i)}]"
            code.add(f"{at} = {cast(f'{at} + {value.at(i)}', array.data.dtype)}")


def _read(code, op, array):
    index = _index(code, op.inputs[1])
    code.fail_if(f"{index} < 0 or {index} >= {array.size}")
    _see(code, array, index)
    offset = array.offset(index)
    if not array.rank:
        code.bind(op.outputs[0], code.local(f"{array.data.name}[{offset}]", array.data.dtype))
    else:
        extents = _known_extents(code, op.outputs[0].spec.shape, array.extents)
        start = code.variable(offset, "o")
        view = Block(array.data, extents, start)
        if array.adds and not array.clears:
            view = _copied(code, view)
        code.bind(op.outputs[0], view)


def _see(code, array, index):
    """Let a slot be read: an unwritten one becomes zeros; a cleared one is gone."""
    state = array.state.name
    if array.clears:
        code.fail_if(f"{state}[{index}] & 2 != 0")
    with code.branch(f"if {state}[{index}] == 0:"):
        code.fail_if(f"not {array.known}" if array.infers else "True")
        _room_for(code, array)
        code.add(f"clear({array.data.name}, {array.offset(index)}, {array.items})")
        code.add(f"{state}[{index}] = uint8(1)")
    if array.clears:
        code.add(f"{state}[{index}] = uint8(3)")


def _known_extents(code, shape, names):
    """Extents of an element in variables that do not change, held against what is known."""
    found = []
    for known, name in zip(shape, names, strict=True):
        if type(known) is int:
            code.fail_if(f"{name} != {known}")
            found.append(str(known))
        else:
            found.append(code.variable(name))
    return tuple(found)


def _copied(code, view):
    block = code.new(view.dtype, view.extents)
    code.copy_to(block, view)
    return block


def _is_whole(code, tensor):
    """Whether indices count from 0."""
    op = tensor.op
    return op.type == "Range" and all(
        t.op.type == "Constant" and int(t.op.attrs["value"]) == wanted
        for t, wanted in ((op.inputs[0], 0), (op.inputs[2], 1))
    )


def _each(code, op, array, value_extent=None):
    """A loop over the slots of indices: the context, and the names of place and slot."""
    (count,) = code.extents(op.inputs[1])
    j, slot = code.name("j"), code.name("k")
    whole = _is_whole(code, op.inputs[1])
    indices = None if whole else code.value(op.inputs[1])
    header = f"for {j} in range({count}):"
    text = f"int64({j})" if whole else f"int64({indices.at(j)})"
    return count, header, j, slot, text, whole


def _gather(code, op, array):
    count, header, j, slot, text, whole = _each(code, op, array)
    code.fail_if(f"not {array.known}")
    shape = op.attrs.get("element_shape")
    for known, name in zip(shape or (), array.extents, strict=False):
        if type(known) is int:
            code.fail_if(f"{name} != {known}")
    _room_for(code, array)
    with code.branch(header):
        code.add(f"{slot} = {text}")
        code.fail_if(f"{slot} < 0 or {slot} >= {array.size}")
        _see(code, array, slot)
    extents = _known_extents(code, op.outputs[0].spec.shape[1:], array.extents)
    if whole and not array.adds:
        code.bind(op.outputs[0], Block(array.data, (count, *extents)))
        return
    block = code.result(op, extents=(count, *extents))
    with code.branch(f"for {j} in range({count}):"):
        code.add(f"{slot} = {text}")
        code.add(
            f"copy({block.base.name}, {times(j, array.items)}, {array.data.name}, "
            f"{array.offset(slot)}, {array.items})"
        )


def _scatter(code, op, array):
    value = code.value(op.inputs[2])
    count, header, j, slot, text, _ = _each(code, op, array)
    code.fail_if(f"{count} != {value.extents[0]}")
    with code.branch(header):
        code.add(f"{slot} = {text}")
        code.fail_if(f"{slot} < 0")
        _reserve(code, array, slot)
        _fit(code, array, value.extents[1:])
        _room_for(code, array)
        start = total(value.offset, times(j, product(value.extents[1:])))
        row = Block(value.base, value.extents[1:], start)
        if array.adds:
            _accumulate(code, array, slot, row if array.rank else _item(value, start))
        else:
            code.fail_if(f"{array.state.name}[{slot}] != 0")
            _store(code, array, array.offset(slot), row)
            code.add(f"{array.state.name}[{slot}] = uint8(1)")
    code.bind(op.outputs[0], _FLOW)


def _item(value, index):
    return Scalar(f"{value.base.name}[{index}]", value.dtype)


_RULES = {
    CREATE: _create, LOOKUP: _look_up, SIZE: _size, WRITE: _write, READ: _read, GATHER: _gather,
    SCATTER: _scatter,
}  # fmt: skip
