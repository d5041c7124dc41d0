"""The source of a compiled function in the user's names and lines, for reading.

What is compiled has names of its own, so that functions which differ in names and places alone
share machine code. To show it, the program is written down once more by an emitter that notes which
variable stands for which tensor, and marks which lines of the user's all comes from. It is printed
with other names, and comments in place of marks. Compiling knows nothing of it.
"""

from __future__ import annotations

import keyword
import linecache
import os
import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nbta.codegen.values import Block, Lazy, Scalar
from nbta.compiler.emitter import Emitter
from nbta.compiler.generate import generate
from nbta.display.picture import shortened
from nbta.graph.graph import is_of_gradient, within
from nbta.graph.labels import ADJOINT, array_called, called
from nbta.graph.operation import DATA, Tensor
from nbta.graph.views import Branch, Loop, is_branch, is_loop
from nbta.loops import Assign, Comment, Expression, Load, Mark, Name
from nbta.loops.nodes import ZERO, names_of, statements_in
from nbta.loops.printing import Printer, printed_function

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from nbta.compiler.executable import Compiled
    from nbta.graph.operation import Tensor
    from nbta.loops import Statement

#: Names that a function has without any statement that says so.
_FIXED = "run", "w", "range"
#: Loops that have no name of their own, neither of the user's nor by what a pass made them for.
_UNNAMED = re.compile(r"(while|scan|for)(_\d+)?(_grad(_\d+)?)*")
#: What is known of lines is said of so many at most, where one loop does operations of several.
MOST = 3
#: Letters of a line that are shown.
LONGEST = 100


class NotingEmitter(Emitter):
    """Writes a program down, and notes what stands for what.

    Attributes
    ----------
    tensors : dict
        By variable, the tensors that it stands for, in order.
    places : dict
        By variable, the tensors that begin there in a buffer.
    items : dict
        By variable, the tensor of which it is an item in a loop.
    marks : list
        What statements come from, by the number of the mark before them: operations, and whether
        the statements are in the body of the loop or branch that the operation is.
    """

    def __init__(self, arrays, counts, same_shapes):
        self.tensors, self.places, self.items, self.marks = {}, {}, {}, []
        self._parts, self._last = [], {}
        super().__init__(arrays, counts, same_shapes)

    def bind(self, tensor, value) -> None:
        """Say what stands for a tensor."""
        super().bind(tensor, value)
        if not isinstance(tensor, Tensor) or tensor.kind != DATA:  # rules bind parts of their own
            return
        if isinstance(value, Scalar):
            self.tensors.setdefault(str(value.item), []).append(tensor)
        elif isinstance(value, Lazy):
            self.items.setdefault(str(value.item), tensor)
        elif isinstance(value, Block):
            names, place = self.places, value.offset
            if value.offset == ZERO:
                names, place = self.tensors, value.base.name
            names.setdefault(str(place), []).append(tensor)

    @contextmanager
    def part(self, what):
        """Lines of some operations, or of what a string says."""
        self._parts.append((what if isinstance(what, str) else tuple(what), self.lines))
        yield
        self._parts.pop()

    def add(self, *statements: Statement | str) -> None:
        """Statements, after a mark where they come from other operations than those before."""
        if statements and not _is_comment(statements[0]):
            self._mark()
        super().add(*statements)

    @contextmanager
    def nest(self, header: Statement | str):
        """A block below a header; within it statements go there."""
        self._mark()
        with super().nest(header):
            yield

    def _mark(self):
        if not self._parts:
            return
        what, around = self._parts[-1]
        mark = what, self.lines is not around
        is_first = self.lines not in self._last
        if self._last.get(self.lines) != mark and not (is_first and mark[1] and _has_body(what)):
            self._last[self.lines] = mark
            self.marks.append(mark)
            self.lines.add(Mark(len(self.marks) - 1))

    def iterations(self) -> Iterable[Expression | None]:
        """Variables with numbers of iterations."""
        return self._counted.values()


def named_source(compiled: Compiled) -> str:
    """The source of what was compiled, in the user's names and with the user's lines."""
    made: list[NotingEmitter] = []

    def emitter(*given):
        made.append(NotingEmitter(*given))
        return made[0]

    program, compact = compiled.program, compiled.generated
    found = generate(program, emitter)
    function = found.function
    if printed_function(function, Printer(remark=_comments)) != compact.source:
        return compact.source  # nothing is known of what was compiled
    names = _Names(function, program, made[0], found.lengths)
    printer = Printer(names.new, _Remarks(program, made[0]))
    return printed_function(function, printer)


def _is_comment(statement):
    return statement.startswith("#") if isinstance(statement, str) else type(statement) is Comment


def _comments(statement):
    """What was compiled has the comments, but no marks."""
    return [statement.text] if isinstance(statement, Comment) else []


def _has_body(what):
    """Whether lines are of a loop or a branch, whose heads say so."""
    return not isinstance(what, str) and len(what) == 1 and (is_loop(what[0]) or is_branch(what[0]))


class _Names:
    """Names of the user's for variables of a function, each of them once.

    Parameters
    ----------
    function : nbta.loops.Function
    program : Program
    code : NotingEmitter
    lengths : dict
        Of arguments; see `Generated.lengths`.

    Attributes
    ----------
    new : dict
        By variable, its name for the user.
    """

    def __init__(self, function, program, code, lengths):
        used = (name for each in function.body for name in names_of(each))
        self._used, self._wanted = dict.fromkeys([*_FIXED, *function.constants, *used]), {}
        self._want_arrays(program, code)
        self._want_lengths(program, lengths)
        for iterations in code.iterations():
            self._want(str(iterations), "iterations")
        for name, tensor in code.items.items():
            self._want(name, called(tensor), "_i")
        for statement in statements_in(function.body):
            match statement:
                case Assign(name, Load(Name(buffer))):
                    self._want(name, self._wanted.get(buffer), "_i")
        for name in list(self._wanted):
            self._want(f"{name}w", self._wanted[name], "_so_far")  # of a fold
        self.new = dict(self._settled())

    def _want_arrays(self, program, code):
        """Names of variables and buffers: arguments and loops' variables have the first choice."""
        first = {*program.inputs, *_variables(program)}
        constants = {name.id for name, _ in code.numbers.values()}
        tensors = {name: each for name, each in code.tensors.items() if name not in constants}
        for array in code.arrays.made():
            create, *more = array.key
            label = array_called(create)
            self._want(array.data.name.id, label and ADJOINT * len(more) + label)
        for name in sorted(tensors, key=lambda name: first.isdisjoint(tensors[name])):
            self._want(name, _called(tensors[name]))
        for name, each in code.places.items():
            self._want(name, _called(each), "_at")

    def _want_lengths(self, program, lengths):
        for length, (place, axis) in lengths.items():
            label = called(program.inputs[place])
            if label is not None:
                text = _identifier(label)
                self._want(length, f"{text}_shape{axis}" if axis else f"len_{text}")

    def _want(self, name, label, suffix=""):
        """Let a variable have a name, if it has none yet."""
        if label and name in self._used:
            self._wanted.setdefault(name, _identifier(label) + suffix)

    def _settled(self):
        """Names that nothing else has: with a number where they are wanted more than once."""
        taken = {*keyword.kwlist, *(name for name in self._used if name not in self._wanted)}
        numbers = Counter()
        for name, wanted in self._wanted.items():
            found = wanted
            while found in taken:
                numbers[wanted] += 1
                found = f"{wanted}_{numbers[wanted]}"
            taken.add(found)
            yield name, found


def _variables(graph) -> Iterator[Tensor]:
    """Variables of all loops of a graph."""
    for op in within(graph.operations):
        if is_loop(op):
            yield from Loop(op).parameters


def _called(tensors):
    """The name of the first that has one, of those that a variable stands for."""
    return next(filter(None, map(_name_of, tensors)), None)


def _name_of(tensor):
    return called(tensor) or ("iteration" if is_counter(tensor) else None)


def is_counter(tensor: Tensor) -> bool:
    """Whether a tensor counts the iterations of a loop."""
    owner = getattr(tensor.graph, "owner", None)
    return owner is not None and is_loop(owner) and tensor is Loop(owner).counter


def _identifier(text):
    """A name that Python takes: ``params_w`` of ``params['w']``."""
    found = re.sub(r"\W+", "_", text).strip("_") or "value"
    found = f"_{found}" if found[0].isdigit() else found
    return f"{found}_" if keyword.iskeyword(found) else found


class _Remarks:
    """The comments that are shown: in place of marks, and of those with graphs' names."""

    def __init__(self, program, code):
        self._marks = code.marks
        self._inputs = {tensor.op.name: tensor for tensor in program.inputs}
        self._bodies = {op.name: op for op in within(program.operations)}
        self._shown = None

    def __call__(self, statement) -> list[str]:
        """Those in place of a mark or a comment; none where the last ones say it already."""
        is_mark = isinstance(statement, Mark)
        found = (
            self._places(*self._marks[statement.number])
            if is_mark
            else self._comment(statement.text)
        )
        if not found or found == self._shown:
            return []
        self._shown = found
        return found

    def _places(self, what, inside):
        """The user's lines of some operations."""
        if isinstance(what, str):
            return [what] if what != "arguments" else []
        if len(what) == 1 and is_branch(what[0]) and inside:
            return []
        if len(what) == 1 and is_loop(what[0]):
            return [_title_of_loop(what[0])]
        found = list(dict.fromkeys(filter(None, map(_line_of, what))))
        more = len(found) - MOST
        return found if more <= 0 else [*found[:MOST], f"and {more} more lines"]

    def _comment(self, text):
        """What a comment with the name of an operation becomes."""
        name, _, rest = text.partition(":")
        if name in self._inputs:
            label = called(self._inputs[name])
            return [f"{label or name}:{rest}"]
        op = self._bodies.get(name.removesuffix(", in Python"))
        if op is None:
            return [text]
        if name.endswith(", in Python"):
            return [f"{_line_of(op) or op.name}  -> {op.type}, in Python"]
        if is_branch(op):
            return [f"{_line_of(op) or op.name}  -> {_branch(op, rest)}"]
        return [_title_of_loop(op)]


def _branch(op, rest):
    number = int(rest.rpartition(" ")[2])
    if Branch(op).index.dtype.kind != "b":
        return f"branch {number}"
    return "where this does not hold" if number else "where this holds"


def _title_of_loop(op):
    origin = Loop(op).origin
    location = op.location if origin is None else origin.location
    text, name = _text(location, is_of_gradient(op)), op.name.rpartition("/")[2]
    if text is None:
        return op.name
    return text if _UNNAMED.fullmatch(name) else f"{text}  -> {name}"


def _line_of(op):
    return _text(op.location, op.location is not None and op.location.is_gradient)


def _text(location, is_gradient):
    if location is None:
        return None
    line = shortened(linecache.getline(location.filename, location.line).strip(), LONGEST)
    place = f"{os.path.basename(location.filename)}:{location.line}"
    return f"{'gradient of ' * is_gradient}{place}  {line}".rstrip()
