"""The function that is being generated, as the rules of operations see it."""

from abc import ABC, abstractmethod
from contextlib import contextmanager

import numpy as np

from nbta.codegen.fusion import Group
from nbta.codegen.values import (
    NUMBERS,
    TABLE,
    Base,
    Block,
    Lazy,
    Scalar,
    Transposed,
    Vector,
    factors,
    is_known,
    numba_name,
    number_in,
    product,
    times,
    total,
    typed,
    uncast,
)
from nbta.loops import (
    Call,
    Constant,
    Expression,
    Load,
    Name,
    Statement,
    assign,
    building,
    call,
    over,
    refuse,
    several,
)
from nbta.loops.nodes import as_node
from nbta.runtime.intrinsics import FAILED, FIRST_WORD, MEMORY, MOST_ITEMS, STATUSES, WORDS


class NotCompiledError(Exception):
    """A program that cannot be one function, and why."""


class Code(ABC):
    """Names, buffers and statements of a function, for the rules of operations.

    Attributes
    ----------
    lines : nbta.loops.Block
        Where statements are added now.
    level : int
        How many loops are around.
    clock : Clock or None
        What reads the time, in code that does.
    loops, buffers : list of str
        What was decided, for people.
    ahead : dict
        By buffer and place of a row: where items are that the loop that reads it asks for
        meanwhile, and how many at once.
    """

    def __init__(self):
        self.top = building.Block()
        self.top.add(assign(TABLE, call("pointer", "int64", "w", WORDS)))
        self.heads = [self.top.place()]  # by level, what is ahead of a loop or of each of its parts
        self.rooms = self.heads[:]  # by level, what is ahead of all of a loop, such as its buffers
        self._ahead_of_parts: building.Block | None = None
        self.lines = self.top.place()
        self.level = 0
        self.loops: list[str] = []
        self.buffers: list[str] = []
        self.words = FIRST_WORD
        self.clock = None
        self.exits = 0  # each has a number above the status, to find it by
        self.helpers: dict[str, int] = {}  # the word of each
        self.numbers: dict = {}
        self.watch_word: int | None = None
        self.globals: dict = {}  # users' functions by the name that the source has for them
        self.dims: dict = {}  # names of lengths that the graph knows to be the same everywhere
        self.initial: list[tuple[int, int | str]] = []
        self.constants: list[np.ndarray] = []
        self.values: dict = {}
        self._names: dict[str, int] = {}
        self._bases = 0
        self._levels: dict[Name, int] = {}
        self._same: dict[Expression, Expression] = {}
        self._derived: dict[str, Name] = {}  # by what an expression says
        self._free: list[list[Base]] = [[]]
        self.pending: dict[tuple, Group] = {}
        self.destinations: dict = {}
        self.everywhere: dict = {}  # by tensor, the number that all of its items are
        self.ahead: dict = {}

    # What only the emitter of a whole program knows.

    @abstractmethod
    def call_python(self, op) -> None:
        """Leave an operation to Python, which runs it as the reference executor does."""

    @abstractmethod
    def uses(self, tensor) -> int:
        """How many operations are still to come that use a tensor."""

    @abstractmethod
    def needs_items(self, tensor) -> int:
        """How many of these use its items, not its dimensions alone."""

    @abstractmethod
    def is_within(self, index, x, axis) -> bool:
        """Whether an index is proven to be from 0 to before the length of an axis of a tensor."""

    @abstractmethod
    def guard(self, index, dimension) -> Name | None:
        """A truth value from before a loop: whether an index may leave an axis in any iteration."""

    @abstractmethod
    def holding(self, part):
        """A context in which what stands for a part of an operation may be written down."""

    @abstractmethod
    def changed(self, op, place=0) -> Block:
        """Room for a result that begins as an input does: that itself if nobody else needs it."""

    # Names and lines.

    def name(self, stem: str) -> Name:
        """A name that nothing else has."""
        self._names[stem] = number = self._names.get(stem, -1) + 1
        return Name(f"{stem}{number}")

    def add(self, *statements: Statement) -> None:
        """Statements, one after another."""
        self.lines.add(*statements)

    def addition(self, store: Statement) -> None:
        """The store by which an operation adds to one item."""
        self.add(store)

    def replacement(self, store: Statement) -> None:
        """The store by which an operation sets one item."""
        self.add(store)

    @contextmanager
    def part(self, what):
        """Lines of some operations, or of what a string says: code with a clock measures them."""
        yield

    @contextmanager
    def nest(self, header: Statement):
        """A block below a header; within it statements go there."""
        around = self.lines
        self.lines = around.nest(header)
        yield
        self.lines = around

    def in_parts(self, header: Statement) -> None:
        """Begin a block that the next loop, whose iterations it divides, and its head are in."""
        self._ahead_of_parts = self.lines.place()
        self.lines = self.lines.nest(header)

    @contextmanager
    def loop(self, *lines: Statement, versions: tuple[Name, ...] = ()):
        """A loop of the program: what is made in it belongs to a level of its own.

        Its statements come below those given, of which headers have a block. With names of truth
        values there are two `nbta.loops.Block.versions` of it.
        """
        around, known = self.lines, (dict(self._same), dict(self._derived))
        self.heads.append(around.place())
        ahead, self._ahead_of_parts = self._ahead_of_parts, None
        self.rooms.append(self.heads[-1] if ahead is None else ahead)
        self.lines = around.versions(*(name.id for name in versions)) if versions else around
        self._free.append([])
        self.level += 1
        for line in lines:
            if line.blocks:
                self.lines = self.lines.nest(line)
            else:
                self.add(line)
        yield
        self.lines = around
        self.level -= 1
        self._free.pop()
        self.heads.pop()
        self.rooms.pop()
        self._same, self._derived = known

    @contextmanager
    def branch(self, header: Statement):
        """A block that may not run: what is known in it does not hold after it."""
        known = dict(self._same), dict(self._derived)
        free, self._free[-1] = self._free[-1], []
        with self.nest(header):
            yield
        (self._same, self._derived), self._free[-1] = known, free

    def fail_if(self, condition: Expression | bool) -> None:
        """Leave: the program is run again operation by operation, which tells what is wrong."""
        self.exits += STATUSES
        self.add(refuse(condition, FAILED + self.exits))

    def word(self, count=1) -> int:
        """The place of more words in the table that a call brings."""
        self.words += count
        return self.words - count

    def helper(self, name: str) -> Load:
        """The address of a helper function, which is in a word."""
        if name not in self.helpers:
            self.helpers[name] = self.word()
        return TABLE[self.helpers[name]]

    def foreign(self, function) -> str:
        """The name of a user's function."""
        found = next((name for name, one in self.globals.items() if one is function), None)
        name = found or self.name("F").id
        self.globals[name] = function
        return name

    # Dimensions.

    def variable(self, value: Expression, stem="n") -> Name:
        """A new integer variable, known at this level."""
        name = self.name(stem)
        self.add(assign(name, value))
        self._levels[name] = self.level
        return name

    def derived(self, value: Expression, stem="n") -> Name:
        """A variable computed from dimensions and other variables that stay: once for all."""
        said = str(value)  # a sum may have more terms than a hash can go down
        if said not in self._derived:
            self._derived[said] = self.variable(value, stem)
        return self._derived[said]

    def note_variable(self, name: Name) -> Name:
        """Let a variable count as known from this level on."""
        self._levels[name] = self.level
        return name

    def level_of(self, dimensions) -> int:
        """From which level on all of some dimensions are known."""
        return max((self._levels.get(e, 0) for e in dimensions if not is_known(e)), default=0)

    def canonical(self, dimension: Expression) -> Expression:
        """One name for dimensions that were found to be the same."""
        while dimension in self._same:
            dimension = self._same[dimension]
        return dimension

    def same(self, one: Expression, other: Expression) -> bool:
        """Whether two dimensions are known to be the same."""
        return self.canonical(one) == self.canonical(other)

    def equate(self, one: Expression, other: Expression) -> None:
        """Fail where two dimensions are not the same, and know from then on that they are."""
        one, other = self.canonical(one), self.canonical(other)
        if one == other:
            return
        self.fail_if(one.differs(other))
        keep, drop = sorted((one, other), key=lambda e: (not is_known(e), self.level_of([e])))
        if not is_known(drop):
            self._same[drop] = keep

    # Buffers.

    def base(self, dtype, stem="b", word=None) -> Base:
        """A new buffer."""
        number = self._bases
        self._bases += 1
        return Base(self.name(stem), np.dtype(dtype), number, word, self.level)

    def pointer(self, base: Base, address: Expression) -> Statement:
        """The statement that lets a buffer's pointer point to an address."""
        return assign(base.name, call("pointer", numba_name(base.dtype), address, base.scope))

    def new(self, dtype, dimensions, stem="b", *, anew=False) -> Block:
        """Room for items, whose dimensions are known here; ``anew``, not where others were."""
        dtype, dimensions = np.dtype(dtype), tuple(map(self.canonical, dimensions))
        level = min(self.level, self.level_of(dimensions))
        # Made ahead of loops, a buffer must not move when another block takes it.
        made = (level, product(dimensions)) if level < self.level else None
        old = None if anew else self._taken(dtype, made)
        base = self.base(dtype, stem, None if old else self.word(2))
        base.loose, base.made = True, made
        if old:  # under another name, as Numba is slow with names that change
            base.number, base.word = old.number, old.word
        if not old:
            place = "ahead of a loop" if made else "at its place"
            lengths = ", ".join(map(str, dimensions))
            self.buffers.append(f"{base.name}: {dtype.name} ({lengths}), {place}")
        if old and made:
            base.name = old.name
        else:
            self._ensure(self.rooms[level + 1] if made else self.lines, base, dimensions)
        return Block(base, dimensions)

    def _taken(self, dtype, made):
        waiting = {base for group in self.pending.values() for base in group.reads}
        for base in self._free[-1]:
            if (base.dtype, base.made) == (dtype, made) and base not in waiting:
                self._free[-1].remove(base)
                return base
        return None

    def room(self, base, dimensions) -> None:
        """See to it that a buffer has room for items, here."""
        self._ensure(self.lines, base, dimensions)

    def _ensure(self, lines, base, dimensions):
        kind = numba_name(base.dtype)
        count = several(*factors(dimensions))
        lines.add(assign(base.name, call("room", kind, "w", base.word, count, base.scope)))

    def refuse_uncountable(self, dimensions) -> None:
        """Leave where there would be more items than an array can have."""
        count = product(dimensions)
        if is_known(count) and count.value <= MOST_ITEMS:
            return
        self.add(refuse(call("too_many", several(*factors(dimensions))), MEMORY))

    def release(self, base) -> None:
        """Let a buffer be used again: nothing needs its items any more."""
        if base.loose and base.level == self.level:
            base.loose = False  # what takes the buffer has a name of its own
            self._free[-1].append(base)

    def constant(self, array: np.ndarray) -> Block:
        """A constant array, which whoever calls brings."""
        word = self.word()
        self.constants.append((word, array))
        base = self.base(array.dtype, "c")
        self.rooms[0].add(self.pointer(base, TABLE[word]))
        return Block(base, tuple(map(Constant, array.shape)))

    # Values of tensors.

    def bind(self, tensor, value) -> None:
        """Say what stands for a tensor."""
        self.values[tensor] = value

    def value(self, tensor):
        """What stands for a tensor, written down: a `Scalar` or a `Block`."""
        value = self.values[tensor]
        if isinstance(value, Lazy):
            value.group.flush(self)
            value = self.values[tensor]
        if isinstance(value, Transposed):
            value = self.destination(tensor, value.dtype, value.dimensions)
            transposed(self, value, self.values[tensor].block)
            self.bind(tensor, value)
        if isinstance(value, Vector):
            items, value = value.items, self.new(value.dtype, value.dimensions)
            self.add(*(assign(value.at(k), item) for k, item in enumerate(items)))
            self.bind(tensor, value)
        return value

    def kept(self, tensor):
        """What stands for a tensor, written down as far as it must be."""
        value = self.values[tensor]
        return self.value(tensor) if isinstance(value, Lazy) else value

    def vector(self, tensor) -> tuple[Expression, ...]:
        """Each item of a vector of known length."""
        value = self.values[tensor]
        if isinstance(value, Vector):
            return value.items
        value = self.value(tensor)
        if isinstance(value, Scalar):
            return (value.item,)
        if not is_known(value.dimensions[0]):
            raise NotCompiledError(f"the length of {tensor.name!r} is known in a run only")
        return tuple(typed(value.at(k), np.int64) for k in range(value.dimensions[0].value))

    def known_dimension(self, dimension):
        """The name of a dimension that is the same as one that has a name; None otherwise."""
        return self.dims.get(dimension)

    def dimension(self, value: Expression) -> Expression:
        """A dimension that an expression gives: the name after it, or a new variable."""
        inner = uncast(value)
        stays = is_known(inner) or (type(inner) is Name and inner in self._levels)
        return inner if stays else self.variable(value)

    def bind_turned(self, op) -> None:
        """Let the transpose of a matrix stand for a result, until somebody needs it itself."""
        value = self.values[op.inputs[0]]
        if isinstance(value, Transposed):
            self.bind(op.outputs[0], value.block)
        else:
            self.bind(op.outputs[0], Transposed(self.value(op.inputs[0])))

    def nested(self, headers, line) -> None:
        """A line in nested loops."""
        around = self.lines
        for header in headers:
            self.lines = self.lines.nest(header)
        self.add(line)
        self.lines = around

    def matrix(self, tensor):
        """A tensor as what a product takes: a block, and whether that is its transpose."""
        value = self.values[tensor]
        if isinstance(value, Transposed):
            return value.block, True
        return self.value(tensor), False

    def scalar(self, tensor) -> Expression:
        """A tensor of rank 0."""
        return self.value(tensor).item

    def integer(self, tensor) -> Expression:
        """An integer of rank 0, as an int64."""
        item = self.scalar(tensor)
        wide = tensor.dtype == np.int64 or not (type(item) is Call or number_in(item) is None)
        return item if wide else typed(item, np.int64)

    def local(self, value: Expression, dtype, stem="t") -> Scalar:
        """A scalar in a variable of its dtype."""
        name = self.name(stem)
        self.add(assign(name, typed(value, dtype)))
        return Scalar(name, np.dtype(dtype))

    def is_number(self, dtype) -> bool:
        """Whether Numba computes with a dtype, so that a scalar is a local variable."""
        return np.dtype(dtype).char in NUMBERS

    def number(self, value) -> Expression:
        """A constant of its dtype: a literal where Numba takes it for that."""
        if value.dtype.kind == "b":
            return Constant(bool(value))
        if value.dtype.kind == "i":
            return as_node(int(value))
        key = value.dtype, value.tobytes()
        if key not in self.numbers:
            self.numbers[key] = self.name("K"), _one_nan(value)
        return self.numbers[key][0]

    def dimensions(self, tensor) -> tuple[Expression, ...]:
        """Dimensions of a tensor, without writing it down."""
        return self.values[tensor].dimensions

    def flush(self) -> None:
        """Write down all loops that wait."""
        for group in list(self.pending.values()):
            group.flush(self)

    def flush_readers(self, base) -> None:
        """Write down the loops that read a buffer, before it changes."""
        for group in list(self.pending.values()):
            if base in group.reads:
                group.flush(self)

    def destination(self, tensor, dtype, dimensions) -> Block:
        """Where a result goes: to where it must be in the end, if that is free; or to new room."""
        rule = self.destinations.get(tensor)
        found = rule(dimensions) if rule is not None else None
        if found is None:
            return self.new(dtype, dimensions)
        self.flush_readers(found.base)
        return found

    def result(self, op, dtype=None, dimensions=(), index=0):
        """Room for a result of an operation, bound to its tensor."""
        tensor = op.outputs[index]
        block = self.destination(tensor, dtype or tensor.dtype, dimensions)
        self.flush_readers(block.base)
        self.bind(tensor, block)
        return block


def transposed(code, target, source) -> None:
    """Lines that put the transpose of a matrix into a block."""
    rows, columns = source.dimensions
    i, j = code.name("i"), code.name("j")
    with code.nest(over(i, rows)), code.nest(over(j, columns)):
        to = target.at(total(times(j, rows), i))
        code.add(assign(to, source.at(total(times(i, columns), j))))


def _one_nan(value):
    """A number of NumPy's; of NaN there is one, as machine code is found by what is printed."""
    if value.dtype.kind == "c":
        return value.dtype.type(complex(_one_nan(value.real), _one_nan(value.imag)))
    return value.dtype.type(np.nan if value != value else value)
