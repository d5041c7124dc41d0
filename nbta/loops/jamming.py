"""Iterations of an outer loop side by side: unroll and jam.

An inner loop in which each iteration waits for the one before, as for a power or a state, takes as
long as its chain of operations, and is no vector instructions. If the iterations of the loop around
it are independent, several of them, its *lanes*, go through the inner loop together: their chains
overlap, and LLVM makes vectors of them. Unrolling and jamming is by Callahan, Cocke and Kennedy
(1988).

A lane has variables of its own; what one iteration hands to the next goes from lane to lane. The
statements of all lanes are divided into *phases*, one before the first inner loop and one after
each: a statement is in the first phase in which all that it depends on is done. Lanes are jammed if
each inner loop finds all that it depends on before its own phase. Guards come before the items that
the same lane reads or changes after them. Lanes may share what nobody changes, and items of which
each statement only adds to; such a sum has its terms in another order where an iteration adds to an
item more than once. Arrays that each iteration makes anew, such as tapes, become one array with the
items of all lanes next to each other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from nbta.loops.building import Block, call, comment, do
from nbta.loops.nodes import (
    ONE,
    ZERO,
    Accumulate,
    Assign,
    Binary,
    Call,
    Comment,
    Compare,
    Constant,
    Evaluate,
    Expression,
    For,
    Guard,
    If,
    Load,
    Logical,
    Mark,
    Name,
    Statement,
    Store,
    Versions,
    expressions_in,
    mapped,
    mapped_statement,
    names_in,
    names_of,
    statements_in,
    stored_by,
    with_blocks,
)
from nbta.loops.structure import height, without_remarks
from nbta.loops.versions import versions_of
from nbta.runtime.intrinsics import SCOPES, WORDS
from nbta.tuning import JAMMED_FUNCTION, JAMMED_LANES, JAMMED_STATEMENTS


class Anew(NamedTuple):
    """An array of numbers that begins empty wherever its length is set to 0.

    Attributes
    ----------
    limit : str
        The variable that says for how many numbers there is room.
    record : int
        The array's words in the table.
    """

    limit: str
    record: int


def jammed(statements: Iterable[Statement], anew: Mapping[str, Anew]) -> tuple[Statement, ...]:
    """Statements with outer loops unrolled and jammed, where this is legal and pays.

    Parameters
    ----------
    statements : iterable of Statement
        The whole body of a function.
    anew : mapping
        Arrays by the names of their buffers.
    """
    statements = tuple(statements)
    if not any(_pays(each) for each in statements_in(statements) if type(each) is For):
        return statements
    known = _Function(statements, anew)

    def changed(block):
        found = Block()
        for each in block:
            lanes = _lanes(each, known) if type(each) is For and _pays(each) else None
            found.add(*([with_blocks(each, changed)] if lanes is None else lanes))
        return found

    return tuple(changed(statements))


def _plain(statements: Iterable[Statement]) -> list[Statement]:
    return [each for each in statements if not isinstance(each, Comment | Mark)]


def _loops_in(statement: Statement) -> bool:
    return any(
        hasattr(each, "body") and type(each) is not If for each in statements_in([statement])
    )


def _pays(loop: For) -> bool:
    """Whether a loop has an inner loop that goes faster with others of its kind beside it.

    Each of its iterations waits for the one before, or it goes down a column of an array, whose
    next column is that of the next iteration of the loop.
    """
    inner = [each for each in loop.body if type(each) is For]
    if not any(map(has_chain, inner)):
        moved = _moved(loop) if inner else set()
        if not any(_goes_down_columns(each, moved) for each in inner):
            return False
    return height(without_remarks(loop.body, Block)) <= JAMMED_STATEMENTS


def _is_innermost(body: Iterable[Statement]) -> bool:
    return all(type(each) in (Assign, Store, Accumulate, Guard, If) for each in body)


def has_chain(loop: For) -> bool:
    """Whether a float goes from iteration to iteration otherwise than as a sum in any order."""
    body = _plain(loop.body)
    if not _is_innermost(body):
        return False
    values = {each.name: each.value for each in body if type(each) is Assign}
    for name in _exposed(body)[0] & values.keys():
        value = values[name]
        if not (type(value) is Call and value.name in _FLOATS):
            continue
        while type(value) is Call and value.name in _FLOATS:
            (value,) = value.arguments
            if type(value) is Name and value.id in values and value.id != name:
                value = values[value.id]
        is_sum = type(value) is Call and value.name == "fast_add"
        if not (is_sum and Name(name) in value.arguments):
            return True
    return False


def _goes_down_columns(loop: For, moved: set[str]) -> bool:
    """Whether each iteration is at another row of an array, in one column.

    The loop around it comes to other columns: it gives ``moved`` other values each time.
    """
    body = _plain(loop.body)
    if not _is_innermost(body):
        return False
    own = _moved(loop)
    for each in statements_in(body):
        for root in each.expressions:
            for node in expressions_in(root):
                match node:
                    case Load(Name(), Binary(row, "+", column)):
                        places = set(names_in(column))
                        rows = set(names_in(row)) & own
                        if rows and places & moved and not places & own:
                            return True
    return False


def _moved(loop: For) -> set[str]:
    """Variables that may have other values in each iteration of a loop."""
    found = {loop.variable} | (
        _exposed(loop.body)[0] & {name for each in loop.body for name in stored_by(each)}
    )
    for each in statements_in(loop.body):
        if type(each) is Assign and not found.isdisjoint(names_in(each.value)):
            found.add(each.name)
    return found


#: Parts of an expression: larger ones are not renamed, which is by recursion.
_LONGEST = 100
_FLOATS = frozenset(("float32", "float64"))


def _exposed(statements: Iterable[Statement]) -> tuple[set[str], set[str]]:
    """Names whose values are read before the statements give them any; and those given for sure."""
    exposed: set[str] = set()

    def walk(block, given):
        for each in block:
            read = each.expressions
            if type(each) in (Assign, For):
                read = read[1:]
            exposed.update(set(names_in(*read)) - given)
            if type(each) is For:
                walk(each.body, given | {each.variable})
            else:
                for inner in each.blocks:
                    walk(inner, set(given))
            if type(each) is Assign:
                given.add(each.name)
        return given

    return exposed, walk(statements, set())


class _Function:
    """What a loop must know of the function around it."""

    def __init__(self, statements, anew):
        self.anew = anew
        self.names: Counter[str] = Counter()
        self.items: Counter[str] = Counter()
        self.classes: dict[str, int] = {}
        self.table: str | None = None
        for each in statements_in(statements):
            self.names.update(names_in(*each.expressions))
            self.items.update(_buffers(each))
            match each:
                case Assign(name, Call(Name("pointer" | "room" | "array_in"), (*_, Constant(k)))):
                    self.classes[name] = k
                    if k == WORDS and each.value.arguments[1] == Name("w"):
                        self.table = name
        self.room = JAMMED_FUNCTION - height(without_remarks(statements, Block))
        self._used = set(self.names)

    def is_known(self, node: Expression) -> bool:
        """Whether it is known which memory an expression reads: a call may read none."""
        if type(node) is Load:  # other alias classes lie apart
            name = node.buffer.id if type(node.buffer) is Name else None
            return name == self.table or self.classes.get(name, SCOPES) < SCOPES
        if type(node) is Call:
            read = {part.id for part in node.arguments if type(part) is Name}
            return type(node.function) is Name and read.isdisjoint({"w", *self.classes})
        return True

    def variable(self, name: str, number: int | None = None) -> str:
        """A new name, for a variable of a lane or of all."""
        stem = f"{name}_{'all' if number is None else number}"
        found, k = stem, 0
        while found in self._used:
            k += 1
            found = f"{stem}_{k}"
        self._used.add(found)
        return found


def _buffers(statement: Statement) -> Iterator[str]:
    """Names of buffers of which a statement, without its blocks, reads or changes items."""
    for root in statement.expressions:
        for node in expressions_in(root):
            if type(node) is Load and type(node.buffer) is Name:
                yield node.buffer.id


def _items_in(root: Expression) -> bool:
    return any(type(node) is Load for node in expressions_in(root))


class _NotJammedError(Exception):
    """Lanes would depend on each other, or nothing is known of a statement."""


def _lanes(loop: For, known: _Function) -> list[Statement] | None:
    """A loop over groups of lanes, and one over what is left; None where that is not legal."""
    if loop.step != ONE:
        return None
    try:
        body = _Lanes(loop, known).body()
    except _NotJammedError:
        return None
    added = sum(map(height, (body, loop.body)))
    if added > known.room:
        return None
    known.room -= added
    stop, middle = known.variable("n"), known.variable("n")
    groups = call("max", 0, Name(stop) - loop.start) // JAMMED_LANES
    return [
        Assign(stop, loop.stop),
        Assign(middle, loop.start + groups * JAMMED_LANES),
        comment(f"{JAMMED_LANES} iterations side by side"),
        For("_", loop.start, Name(middle), Constant(JAMMED_LANES), body),
        comment("those that are left"),
        For("_", Name(middle), Name(stop), ONE, loop.body),
    ]


class _Growth(NamedTuple):
    """Makes room for so many numbers in an array that each iteration makes anew."""

    buffer: str
    count: Expression


class _Lanes:
    """The lanes of a loop."""

    def __init__(self, loop: For, known: _Function):
        self._loop, self._known = loop, known
        self._body = _plain(loop.body)
        if loop.variable != "_" or any(
            _loops_in(each) and (type(each) is not For or any(map(_loops_in, each.body)))
            for each in self._body
        ):
            raise _NotJammedError
        everything = list(statements_in(self._body))
        inside = Counter(name for each in everything for name in names_in(*each.expressions))
        items = Counter(name for each in everything for name in _buffers(each))
        self._stored = {name for each in everything for name in stored_by(each)}
        self._anew = {
            name: known.anew[name]
            for name in self._stored & known.anew.keys()
            if items[name] == known.items[name]
        }
        self._shared = set(self._anew) | {each.limit for each in self._anew.values()}
        self._growths = {
            each: found for each in self._body if (found := self._growth(each)) is not None
        }
        grown = {inner for each in self._growths for inner in statements_in([each])}
        self._rest = [each for each in everything if each not in grown]
        self._times = Counter(name for each in everything for name in stored_by(each))
        self._check_arrays(items)
        self._check()
        exposed, given = _exposed(each for each in self._body if each not in self._growths)
        own = self._stored - self._shared - {"_"}
        outside = {name for name in own if known.names[name] > inside[name]}
        self._handed = sorted(own & (exposed | outside - given))
        self._out = sorted(own & (exposed | outside))
        # What the next lane is handed gets a name of its own where it is given a value once: loops
        # may still read the value that the iteration began with.
        self._once = {
            each for each in self._body
            if type(each) is Assign and each.name in self._handed and self._times[each.name] == 1
        }  # fmt: skip
        self._added = self._additions()
        self._note_differing()
        self._names = [
            {name: known.variable(name, k) for name in sorted(own)} for k in range(JAMMED_LANES)
        ]
        self._phases, self._first = _Phases(), Block()
        self._loops = [each for each in self._body if type(each) is For]
        self._jammed = defaultdict(list)  # by inner loop, those of the lanes
        self._counts = defaultdict(list)  # by growth, how much room each lane asks for

    # What is known of statements.

    def _growth(self, statement) -> _Growth | None:
        match statement:
            case If(Compare((count, Name(limit)), (">",)), body, otherwise) if not otherwise:
                pass
            case _:
                return None
        match _plain(body):
            case [Evaluate(Call(Name("slot"), (_, Constant(record), _, items, _))),
                  Assign(buffer), Assign(name)]:  # fmt: skip
                found = self._anew.get(buffer) == Anew(limit, record)
                if found and name == limit and items == count and not _items_in(count):
                    return _Growth(buffer, count)
        return None

    def _check_arrays(self, items):
        """Whether arrays that iterations make anew have room for sure, and memory of their own."""
        grown = {each.buffer for each in self._growths.values()}
        classes = Counter(self._known.classes.get(name) for name in items)
        for name in self._anew:
            if items[name] and (name not in grown or classes[self._known.classes[name]] > 1):
                raise _NotJammedError
        for each in self._growths.values():  # room is made before the first loop
            if any(self._times[name] > 1 for name in names_in(each.count)):
                raise _NotJammedError

    def _check(self):
        """Whether everything is known of all statements."""
        for each in self._rest:
            match each:
                case Assign() | Store() | Guard() | For(start=Constant(0), step=Constant(1)) | If():
                    pass
                case Accumulate(Load()):
                    pass
                case Evaluate() if _watches(each):
                    continue
                case Comment() | Mark():
                    continue
                case _:
                    raise _NotJammedError
            if isinstance(each, Assign) and each.name in self._shared:
                if each not in self._body:
                    raise _NotJammedError
                continue
            for root in each.expressions:
                self._check_expression(root)

    def _check_expression(self, root):
        nodes = list(expressions_in(root))
        limits = self._shared - self._anew.keys()
        if (
            len(nodes) > _LONGEST
            or not all(map(self._known.is_known, nodes))
            or not limits.isdisjoint(names_in(root))
        ):
            raise _NotJammedError

    def _additions(self) -> set[int]:
        """Alias classes of which each statement that knows them only adds to an item."""
        added, others = set(), set()
        for each in self._rest:
            found = Counter(self._known.classes[name] for name in _buffers(each))
            target = each.target if type(each) in (Store, Accumulate) else None
            if type(target) is Load:
                number = self._known.classes[target.buffer.id]
                times = 2 if type(each) is Store else 1
                adds = each.sign in "+-" if times == 1 else _adds(target, each.value)
                if adds and found[number] == times:
                    added.add(number)
                    del found[number]
            others.update(found)
        return added - others

    def _note_differing(self) -> None:
        """Find the variables whose values may differ between lanes."""
        changed = {
            self._known.classes[each.target.buffer.id]
            for each in self._rest
            if type(each) in (Store, Accumulate)
        }
        found, before = set(self._handed), -1
        self._changed, self._differing, differs = changed, found, self._differs

        def walk(block, apart):
            for each in block:
                if each in self._growths:
                    continue
                if type(each) is Assign and each.name not in self._shared:
                    if apart or differs(each.value):
                        found.add(each.name)
                elif each.blocks:
                    inner = apart or differs(*each.expressions[type(each) is For :])
                    if inner and type(each) is For:
                        found.add(each.variable)
                    for below in each.blocks:
                        walk(below, inner)

        while len(found) != before:
            before = len(found)
            walk(self._body, False)

    def _differs(self, *roots) -> bool:
        """Whether one of some values may differ between lanes."""
        for root in roots:
            for node in expressions_in(root):
                if type(node) is Name and node.id in self._differing:
                    return True
                if type(node) is Load and self._known.classes[node.buffer.id] in self._changed:
                    return True
        return False

    # Lanes.

    def _renamed(self, number, node):
        """An expression of a lane."""
        names = self._names[number]
        if type(node) is Name:
            return Name(names.get(node.id, node.id))
        node = mapped(node, lambda part: self._renamed(number, part))
        if type(node) is Load and type(node.buffer) is Name and node.buffer.id in self._anew:
            return Load(node.buffer, node.index * JAMMED_LANES + number)
        return node

    def _statement(self, number, statement):
        return mapped_statement(
            statement,
            lambda node: self._renamed(number, node),
            lambda block: self._block(number, block),
        )

    def _block(self, number, block):
        return Block(self._statement(number, each) for each in _plain(block))

    def body(self) -> Block:
        """What all lanes of a group do, in phases."""
        for number in range(JAMMED_LANES):
            self._add_lane(number)
        found, statements = Block(self._first), self._phases.statements
        found.add(*statements[0], *self._room())
        for k, each in enumerate(self._loops):
            found.add(*self._together(each, self._jammed[each]), *statements[k + 1])
        found.add(*(Assign(name, Name(self._names[-1][name])) for name in self._out))
        return _Merged(self._same())(found)

    def _add_lane(self, number):
        """Put the statements of a lane into phases."""
        names, before = self._names[number], self._names[number - 1] if number else {}
        for name in self._handed:
            handed = Assign(names[name], Name(before.get(name, name)))
            self._phases.put(handed, number=number)
        for each in self._body:
            if each in self._growths:
                count = self._renamed(number, self._growths[each].count)
                self._counts[each].append(count)
                if self._phases.level(set(names_in(count)), set()):
                    raise _NotJammedError
            elif type(each) is Assign and each.name in self._shared:
                if not number:
                    self._first.add(each)
            elif not (number and type(each) is If and all(map(_watches, _plain(each.body)))):
                self._put(number, each)

    def _put(self, number, each):
        names, memory = self._names[number], self._memory(number, each)
        if each in self._once:
            value = self._renamed(number, each.value)
            names[each.name] = self._known.variable(each.name, number)
            self._phases.put(Assign(names[each.name], value), *memory, number)
            return
        lane = self._statement(number, each)
        if type(each) is For:
            self._phases.jam(lane, *memory, self._loops.index(each), number)
            self._jammed[each].append(lane)
        else:
            self._phases.put(lane, *memory, number)

    def _same(self) -> dict[str, str]:
        """Variables of lanes that are the first lane's, by their names.

        They have a single value between two inner loops, and one at a statement in a loop.
        """
        times = Counter(each.name for each in self._body if type(each) is Assign)
        direct = [*self._body, *(s for each in self._body if type(each) is For for s in each.body)]
        plain = Counter(name for each in direct for name in stored_by(each))
        every = Counter(name for each in self._rest for name in stored_by(each))
        first, *others = self._names
        return {
            lane[name]: kept
            for name, kept in first.items()
            if name not in self._differing and every[name] == plain[name] and times[name] <= 1
            for lane in others
        }

    def _memory(self, number, statement):
        """What a statement reads and changes besides variables."""
        read, changed, guards = set(), set(), False
        for each in statements_in((statement,)):
            guards |= type(each) is Guard
            target = each.target if type(each) in (Store, Accumulate) else None
            for name in _buffers(each):
                kind = self._known.classes[name]
                if kind in self._added:
                    continue
                place = (name, number) if name in self._anew else kind
                read.add(place)
                if type(target) is Load and target.buffer.id == name:
                    changed.add(place)
        return read, changed, guards

    def _room(self) -> Iterator[Statement]:
        """Room in arrays that iterations make anew, for all lanes."""
        for each, (buffer, count) in self._growths.items():
            counts = self._counts[each]
            most = counts[0]
            if self._differs(count):
                for other in counts[1:]:
                    most = call("max", most, other)
            most = most * JAMMED_LANES
            grow, *rest = _plain(each.body)
            table, record, reserve, _, zero = grow.value.arguments
            grow = do("slot", table, record, reserve, most, zero)
            yield If(most > Name(self._anew[buffer].limit), Block([grow, *rest]), Block())

    def _together(self, loop, lanes):
        """An inner loop of all lanes, and what is left of each lane's."""
        first, *others = lanes
        body = Block()
        if first.variable != "_":
            body.add(*(Assign(each.variable, Name(first.variable)) for each in others))
        for each in zip(*(lane.body for lane in lanes), strict=True):
            body.add(*each)
        if not self._differs(loop.stop):
            yield from _in_versions(For(first.variable, ZERO, first.stop, ONE, body))
            return
        least = first.stop
        for each in others:
            least = call("min", least, each.stop)
        name = self._known.variable("n")
        yield Assign(name, call("max", 0, least))
        yield from _in_versions(For(first.variable, ZERO, Name(name), ONE, body))
        for each in lanes:
            yield For(each.variable, Name(name), each.stop, ONE, each.body)


def _in_versions(loop: For) -> Iterator[Statement]:
    """A jammed loop, without guards where no lane's truth value from before it asks for them.

    LLVM makes a version of a loop for one truth value, but not for those of all lanes, and no
    vectors of lanes that have guards.
    """
    stored = {name for each in statements_in(loop.body) for name in stored_by(each)}
    asked = {
        node.operands[0].id: None
        for each in statements_in(loop.body)
        for root in each.expressions
        for node in expressions_in(root)
        if type(node) is Logical and node.sign == "and" and type(node.operands[0]) is Name
    }
    return versions_of(
        Versions(Block((loop,)), tuple(name for name in asked if name not in stored)), Block
    )


class _Merged:
    """Makes blocks in which some variables are others."""

    def __init__(self, names: Mapping[str, str]):
        self._names = names

    def __call__(self, statements: Iterable[Statement]) -> Block:
        """A block without what would give these variables values."""
        return Block(
            mapped_statement(each, self._expression, self)
            for each in statements
            if not (type(each) is Assign and each.name in self._names)
        )

    def _expression(self, node):
        if type(node) is Name:
            return Name(self._names.get(node.id, node.id))
        return mapped(node, self._expression)


def _watches(statement: Statement) -> bool:
    """Whether a statement looks at signals, which is enough for all lanes."""
    match statement:
        case Evaluate(Call(Name("watch"))):
            return True
    return False


def _adds(target: Load, value: Expression) -> bool:
    """Whether a value is an item and something else that it is added to."""
    while type(value) is Call and len(value.arguments) == 1:
        (value,) = value.arguments
    match value:
        case Binary(left, "+" | "-", _) | Call(Name("fast_add"), (left, _)):
            return left == target
    return False


class _Phases:
    """Statements of all lanes, by phase.

    Attributes
    ----------
    statements : dict
        In the order of a phase.
    """

    def __init__(self):
        self.statements = defaultdict(list)
        self._read, self._written = defaultdict(int), defaultdict(int)
        self._guarded = defaultdict(int)

    def level(self, read, written) -> int:
        """The first phase in which all is done that a statement depends on."""
        levels = [self._written[key] for key in read | written]
        return max([0, *levels, *(self._read[key] for key in written)])

    def _note(self, read, written, level):
        for keys, levels in ((read, self._read), (written, self._written)):
            for key in keys:
                levels[key] = max(levels[key], level)

    def put(self, statement, read=(), changed=(), guards=False, number=0) -> None:
        """A statement that is no loop, where all is done that it depends on."""
        read, written = _keys(statement, read, changed)
        level = self.level(read, written)
        if guards or any(map(_items_in, statement.expressions)) or statement.blocks:
            level = max(level, self._guarded[number])
        if guards:
            self._guarded[number] = level
        self._note(read, written, level)
        self.statements[level].append(statement)

    def jam(self, loop, read, changed, guards, place, number) -> None:
        """A lane's inner loop, which is between two phases."""
        read, written = _keys(loop, read, changed)
        if max(self.level(read, written), self._guarded[number]) > place:
            raise _NotJammedError
        if guards:
            self._guarded[number] = place + 1
        self._note(read, written, place + 1)


def _keys(statement, read, changed):
    names = set(names_of(statement)) | set(read)
    stored = {name for each in statements_in((statement,)) for name in stored_by(each)}
    return names, (stored - {"_"}) | set(changed)
