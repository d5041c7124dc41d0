"""From the loop IR to LLVM's code: a walk over its nodes.

Numba comes to LLVM's code by way of bytecode, blocks, a search for the types of all names, and a
table of references: three quarters of the time that a graph took to compile. The loop IR
needs none of it. A name has the type of what is assigned to it first, control flow is nested, and
nothing counts references. So what is asked of Numba is the type and the code of each operator and
call, once for the types of its operands: numbers are what they would be in Numba. Variables are
places in memory here; LLVM finds single assignments by itself.
"""

import builtins
import itertools
import math
import operator
from collections import ChainMap, Counter
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types

from nbta.compiler import short_loops
from nbta.compiler.outlining import Runs
from nbta.loops import (
    Assign,
    Attribute,
    Binary,
    Block,
    Compare,
    Constant,
    For,
    Function,
    Logical,
    Name,
    Store,
    Unary,
    While,
)
from nbta.loops.nodes import names_in, names_of, statements_in, stored_by
from nbta.loops.structure import height, shape, without_remarks
from nbta.runtime import intrinsics
from nbta.runtime.intrinsics import FAILED, INT64, MEMORY, Pointer
from nbta.runtime.numba_private import (
    Environment,
    FastMathOptions,
    FunctionDescriptor,
    Intrinsic,
    NumbaError,
    callconv,
    cgutils,
    cpu_target,
    fastmathpass,
    new_library,
    number_typing,
    signature,
)
from nbta.tuning import (
    BLOCKS_LOOKED_BACK,
    EXIT_WAYS,
    FRAME_VALUES,
    LARGE_FUNCTION,
    RUN_FUNCTIONS,
    RUN_PIECES,
    SHORT_LOOPS,
    SMALL_RUN_PIECES,
    WIDEST_VECTOR,
)

_ARGUMENTS, _RESULT = (types.int64,), types.int64
_OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "%": operator.mod,
    "/": operator.truediv, "//": operator.floordiv, "**": operator.pow, "&": operator.and_,
    "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
_UNARY_OPERATORS = {"-": operator.neg, "+": operator.pos, "~": operator.invert}
#: Conditions of two integers of one type, which Numba compiles a function for.
_PICKED = {max: ">", min: "<"}


class Typed(NamedTuple):
    """A value: Numba's type, and LLVM's value or None for what exists while compiling only."""

    kind: types.Type
    llvm: object


class NotLoweredError(NumbaError):
    """Code that has no types, or is not of the kind that the compiler makes."""


class _NotRolledError(NotLoweredError):
    """A run of statements that cannot be a loop."""


@cache
def _target():
    """Numba's context for the code of all generated functions, and their description."""
    context = cpu_target.target_context
    number_typing()  # whose code the context knows from then on; what that calls needs all types
    description = FunctionDescriptor(
        native=True, modname="nbta", qualname="run", unique_name="run", doc="", typemap={},
        restype=_RESULT, calltypes={}, args=["w"], kws=(), argtypes=_ARGUMENTS,
    )  # fmt: skip
    context = context.subtarget(
        enable_nrt=True, fastmath=FastMathOptions({"contract"}), fndesc=description,
        error_model=callconv.create_error_model("numpy", context),
        environment=Environment.from_fndesc(description),
    )  # fmt: skip
    own = {"call_conv": property(_Convention), "is_true": _is_true}
    context.__class__ = type("Context", (type(context),), own)
    return context, description


def _is_true(context, builder, kind, value):
    """LLVM's truth value of a number, as Numba finds it, by the rules that are there."""
    function, code = _resolved(bool, (kind,))
    return code(builder, [context.cast(builder, value, kind, *function.args)])


def _intrinsic(function, kinds):
    """The signature and the code, ``(builder, values)``, of one of our own functions."""
    wanted = kinds if function._prefer_literal else tuple(map(types.unliteral, kinds))
    found, code = function._defn(number_typing(), *wanted)
    return found, lambda builder, values: code(_target()[0], builder, found, values)


@cache
def _resolved(function, kinds):
    """The same of a function of Python's, NumPy's or Numba's."""
    typing, (context, _) = number_typing(), _target()
    if function in _PICKED and kinds == (types.int64, types.int64):
        return types.int64(*kinds), partial(_picked, _PICKED[function])
    kind = typing.resolve_value_type(function)
    found = typing.resolve_function_type(kind, kinds, {})
    if found is None:
        raise NotLoweredError(f"{function} of {kinds}")
    return found, context.get_function(kind, found)


def _picked(sign, builder, values):
    """The greater or the less of two integers, and the first of equals."""
    first, second = values
    return builder.select(builder.icmp_signed(sign, second, first), second, first)


_literal = lru_cache(4096)(types.literal)


class _Convention(callconv.CPUCallConv):
    """How functions are left: parts of one give the status, or `_ON` where it goes on."""

    def return_value(self, builder, retval):
        """Leave the function that is being made, by the one block that all leave it by.

        A block that would do nothing else is left out: with two for each condition LLVM would have
        twice as much to go through.
        """
        if not _is_ours(builder):  # Numba compiles what some of its rules call
            return super().return_value(builder, retval)
        phi = _exit(builder, super().return_value)
        before = _only_leaves(builder)
        if before is None:
            phi.add_incoming(retval, builder.block)
            return builder.branch(phi.parent)
        before.terminator.operands[1] = phi.parent
        phi.add_incoming(retval, before)
        blocks = builder.function.blocks
        del blocks[next(k for k in range(-1, -1 - len(blocks), -1) if blocks[k] is builder.block)]
        return builder.unreachable()

    def return_user_exc(self, builder, *arguments, **keywords):
        """Leave it where Python would raise: in a part, as for all that is refused."""
        if _is_part(builder):
            return self.return_value(builder, INT64(FAILED))
        return super().return_user_exc(builder, *arguments, **keywords)

    def return_status_propagate(self, builder, status):
        """Leave it where a function of Numba's raised."""
        if _is_part(builder):
            return self.return_value(builder, INT64(FAILED))
        return super().return_status_propagate(builder, status)


def _exit(builder, return_value):
    """The status that a function gives, in the block that it is left by from here."""
    found = builder.function.__dict__["nbta_ways"]
    if not found or len(found[-1].incomings) >= EXIT_WAYS:
        leaving = ir.IRBuilder(builder.function.append_basic_block("exit"))
        found.append(leaving.phi(INT64))
        if _is_part(builder):
            leaving.ret(found[-1])
        else:
            return_value(leaving, found[-1])
    return found[-1]


def _only_leaves(builder):
    """The block that comes to an empty one under a condition, made just before that; or None."""
    block, blocks = builder.block, builder.function.blocks
    if not block.instructions:
        for before in blocks[-1 : -1 - BLOCKS_LOOKED_BACK : -1]:
            last = before.terminator
            if last is not None and block in last.operands:
                one = last.operands[1:2] == [block] and last.opname == "br"
                return before if one else None
    return None


def _is_ours(builder):
    return "nbta_ways" in builder.function.__dict__


def _is_part(builder):
    return builder.function.ftype.return_type == INT64


#: What a part of a function gives where the function goes on after it; statuses are not negative.
_ON = INT64(-1)
#: Functions that give pointers of their own: their scopes are those of the whole function.
_POINTERS = frozenset(("pointer", "room", "array_in"))


@dataclass
class _Part:
    """A part of a function: a loop that is a function of its own."""

    function: ir.Function
    calls: int = 0


class _Unit:
    """A function of the loop IR: what the functions that it becomes have in common.

    Parameters
    ----------
    module : llvmlite.ir.Module
    function : nbta.loops.Function
    names : dict
        What it refers to.
    """

    def __init__(self, module, function, names):
        self.module, self.names = module, {**names, **function.constants}
        self.statements = without_remarks(function.body, Block)
        self.is_large = height(self.statements) > LARGE_FUNCTION
        self.single = _Names(self.statements).single | {"w"}
        self.repeated = set() if self.is_large else self._repeated()
        self.found = None  # how often there is each name
        if self.is_large or self.repeated:
            self.found = Counter(name for each in self.statements for name in names_of(each))
        self.rolled = self._rolled() if self.is_large or self.repeated else None
        intrinsics.share_calls(module)
        self.parts: dict = {}
        #: First blocks of functions, and what follows on them. They end in no branch before all is
        #: made: llvmlite looks for that in the whole block, for each variable that is added.
        self.entries: list = []

    def _rolled(self):
        """Runs of statements that are alike but for names and integers; None where none are.

        In a small function, whose numbers stay in registers, those with loops that are alike.
        """
        known = ChainMap(self.names, _BUILTINS)
        if self.is_large:
            found = Runs(self.statements, known, self.single, RUN_PIECES)
        else:
            wanted = {k for k, node in enumerate(self.statements) if node in self.repeated}
            found = Runs(self.statements, known, self.single, SMALL_RUN_PIECES, wanted)
        return found if found.runs else None

    def _repeated(self):
        """Loops outside of loops that are alike but for names, as those of equal layers are.

        What the run tells is how often they go round: few iterations would not be worth a call.
        """
        found: dict = {}
        for node in self.statements:
            if isinstance(node, For) and not isinstance(node.ends[-1], Constant):
                found.setdefault(self._renamed(node), []).append(node)
        return {node for nodes in found.values() if len(nodes) > 1 for node in nodes}

    def _renamed(self, node):
        order: dict = {}
        return shape(
            node,
            lambda name: name if name in self.names else order.setdefault(name, len(order)),
        )


def _alike(node, given, stored):
    """What a loop shares with others: its shape, types of variables, and how many scopes.

    Variables are numbered as they come, and scopes of pointers too.
    """
    order, kinds, scopes = {}, [], {}

    def numbered(name):
        if name not in given and name not in stored:
            return name
        if name not in order:
            order[name] = len(order)
            if name in given:
                kinds.append((name, _in_order(given[name].kind, scopes)))
        return order[name]

    return shape(node, numbered), kinds, len(scopes)


def _in_order(kind, scopes):
    """A type, with the number of a pointer's scope as it came.

    Each number is a buffer's, also those that are too many to tell LLVM of. Only the table of words
    has none: parts of it are buffers.
    """
    if not isinstance(kind, Pointer) or kind.scope == intrinsics.WORDS:
        return kind
    return Pointer(kind.dtype, scopes.setdefault(kind.scope, len(scopes)))


def _stored(node):
    """The names that a statement gives values to, but for that of numbers nobody looks at."""
    return {name for each in statements_in((node,)) for name in stored_by(each)} - {"_"}


def _is_light(node):
    """Whether a value is a name, a number, or a sum, difference or product of such."""
    match node:
        case Name() | Constant():
            return True
        case Unary("-", operand):
            return _is_light(operand)
        case Binary(left, "+" | "-" | "*", right):
            return _is_light(left) and _is_light(right)
    return False


class _Names:
    """Where the names of a function are stored and used."""

    def __init__(self, statements):
        self._stores, self._around = Counter(), {}
        self._blocks = itertools.count()
        self._visit(statements, ())
        #: Those that are one value each: they need no place in memory, where LLVM has to find out.
        self.single = {
            name for name, (block, around) in self._around.items()
            if self._stores[name] == 1 and block == around
        }  # fmt: skip

    def _visit(self, statements, block):
        """Go through a block, which is known by the numbers of the blocks around it."""
        for statement in statements:
            match statement:
                case For(variable, body=body):
                    self._note(names_in(*statement.ends), block)
                    inner = (*block, next(self._blocks))
                    self._note((variable,), inner, (variable,))
                    self._visit(body, inner)
                case _:
                    stored = tuple(stored_by(statement))
                    self._note((*stored, *names_in(*statement.expressions)), block, stored)
                    for inner in statement.blocks:
                        self._visit(inner, (*block, next(self._blocks)))

    def _note(self, names, block, stored=()):
        """Keep the block of the last store, and the innermost block around all uses."""
        self._stores.update(stored)
        for name in names:
            place, around = self._around.get(name, (block, block))
            if around is not block:
                pairs = zip(around, block, strict=False)
                around = tuple(one for one, other in itertools.takewhile(_equal, pairs))
            self._around[name] = (block if name in stored else place), around


def _equal(pair):
    return pair[0] == pair[1]


class _Function:
    """A function that is being made, from the first of its statements to the last.

    Parameters
    ----------
    unit : _Unit
    function : llvmlite.ir.Function
        Without blocks.
    is_large : bool
        Whether loops in it may become parts.
    """

    def __init__(self, unit, function, is_large):
        self.unit, self.is_large, (self.context, _) = unit, is_large, _target()
        self.typing, self.names = number_typing(), unit.names
        function.__dict__["nbta_ways"] = []  # out of it, so far
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.convention = self.context.call_conv
        self.helper = self.convention.init_call_helper(self.builder)
        self.frame = None  # memory of what runs read and keep
        self.framed: dict = {}  # types of those kept that nothing else has asked for
        #: Values of names that are one each, and places of the others.
        self.values: dict[str, Typed] = {}
        self.variables: dict[str, Typed] = {}
        self.exits: list = []  # what is after each of the loops around
        self.has_loops = False
        self.open_loops = 0  # loops and calls made so far that LLVM is not to repeat by unrolling
        body = self.builder.append_basic_block("body")
        unit.entries.append((self.builder.block, body))
        self.builder.position_at_end(body)

    # Runs.

    def run_whole(self):
        """The statements of the function: runs of them become loops."""
        rolled, statements = self.unit.rolled, self.unit.statements
        if rolled is None:
            return self.run(statements)
        if self.frame is None and rolled.frame:
            kind = ir.ArrayType(INT64, len(rolled.frame))
            self.frame = cgutils.alloca_once(self.builder, kind, zfill=False)
        done = 0
        for first, run in sorted(rolled.runs.items()):
            self.run(statements[done:first])
            done = first + run.length * run.count
            try:
                pieces = _Pieces(self, run)
            except _NotRolledError:
                self.run(statements[first:done])
            else:
                self._roll(run, pieces)
        return self.run(statements[done:])

    def _place(self, name, kind):
        """Where a new variable is: in the frame, if runs read or keep it, or in its own place."""
        value_type = self.context.get_value_type(kind)
        if not self._is_framed(name) or not isinstance(value_type, _WORDS):
            return Typed(kind, cgutils.alloca_once(self.builder, value_type, zfill=False))
        number = INT64(self.unit.rolled.frame[name])
        with self.builder.goto_entry_block():
            place = self.builder.gep(self.frame, [INT64(0), number])
            return Typed(kind, self.builder.bitcast(place, value_type.as_pointer()))

    def _is_framed(self, name):
        return self.frame is not None and name in self.unit.rolled.frame

    def _roll(self, run, pieces):
        """Go through the pieces of a run in a loop, by a table with a row for each."""
        rows, builder = pieces.rows(), self.builder
        frame = INT64(0) if self.frame is None else builder.ptrtoint(self.frame, INT64)
        given = [frame, *(self._value_of(name) for name in run.constant)]
        table = builder.ptrtoint(_table(self.unit.module, rows), INT64)
        last = builder.add(table, INT64(8 * len(rows[0]) * (run.count - 1)))
        before = builder.block
        body, end = builder.append_basic_block("pieces"), builder.append_basic_block("end")
        builder.branch(body)
        builder.position_at_end(body)
        row = builder.phi(INT64)
        row.add_incoming(table, before)
        status = self._chosen(pieces.functions, row, given)
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", status, _ON)):
            self.convention.return_value(builder, status)
        row.add_incoming(builder.add(row, INT64(8 * len(rows[0]))), builder.block)
        builder.cbranch(builder.icmp_unsigned("<", row, last), body, end)
        builder.position_at_end(end)

    def _chosen(self, functions, row, given):
        """What the function gives whose number a row begins with."""
        builder = self.builder
        if len(functions) == 1:
            return builder.call(functions[0], [row, *given])
        blocks = [builder.append_basic_block("piece") for _ in functions]
        choice = builder.switch(intrinsics._field(builder, row, 0), blocks[0])
        found = []
        for number, (block, function) in enumerate(zip(blocks, functions, strict=True)):
            choice.add_case(INT64(number), block)
            builder.position_at_end(block)
            found.append((builder.call(function, [row, *given]), block))
        end = builder.append_basic_block("chosen")
        for block in blocks:
            builder.position_at_end(block)
            builder.branch(end)
        return self._joined(end, INT64, found)

    def run_once(self):
        """Have LLVM spend little on the function, as nothing in it runs more than once."""
        if not self.has_loops:
            for attribute in ("noinline", "optnone"):
                self.builder.function.attributes.add(attribute)

    # Parts.

    def is_part(self, node) -> bool:
        """Make a loop a function of its own and call that, unless it must stay here.

        In a loop, variables that outlive it must stay in registers: they are no arguments by place.
        """
        found, stored = Counter(names_of(node)), _stored(node)
        for name in [name for name in found if name in self.framed]:
            self._given(name)
        kept = {n for n in stored if self._given(n) or self.unit.found[n] > found[n]}
        has_pointers = not _POINTERS.isdisjoint(found)
        if (self.exits and (kept or has_pointers)) or not kept <= self.variables.keys():
            return False
        if has_pointers:
            kinds = [(n, known.kind) for n in found if (known := self._given(n))]
            self._call_part(self._made(node, kinds, kept, intrinsics.SCOPES), kinds, kept)
            return True
        alike, kinds, scopes = _alike(node, ChainMap(self.values, self.variables), stored)
        key = alike, tuple((kind, name in kept) for name, kind in kinds)
        if key not in self.unit.parts:
            self.unit.parts[key] = self._made(node, kinds, kept, scopes)
        self._call_part(self.unit.parts[key], kinds, kept)
        return True

    def _made(self, node, given, kept, scopes):
        """The part that a loop becomes, which takes variables by value, or those kept by place."""
        kinds = [self.context.get_value_type(kind) for _, kind in given]
        takes = [k.as_pointer() if n in kept else k for (n, _), k in zip(given, kinds, strict=True)]
        name = self.unit.module.get_unique_name("part")
        function = ir.Function(self.unit.module, ir.FunctionType(INT64, takes), name)
        function.linkage = "internal"
        intrinsics.limit_scopes(function, scopes)
        inner = _Function(self.unit, function, height(node.body) > LARGE_FUNCTION)
        for (name, kind), value in zip(given, function.args, strict=True):
            value = inner.builder.load(value) if name in kept else value
            inner.assign(name, Typed(kind, value))
        inner.statement(node)
        for (name, _), place in zip(given, function.args, strict=True):
            if name in kept:
                inner.builder.store(inner.builder.load(inner.variables[name].llvm), place)
        inner.builder.ret(_ON)
        return _Part(function)

    def _call_part(self, part, given, kept):
        part.calls += 1
        values = [self.variables[n].llvm if n in kept else self._value_of(n) for n, _ in given]
        status = self.builder.call(part.function, values)
        with cgutils.if_unlikely(self.builder, self.builder.icmp_signed("!=", status, _ON)):
            self.convention.return_value(self.builder, status)

    # Values.

    def _given(self, name):
        """What a name is so far, its type at least; None where it is not yet."""
        kind = self.framed.pop(name, None)
        if kind is not None:
            self.variables[name] = self._place(name, kind)
        return self.values.get(name) or self.variables.get(name)

    def _value_of(self, name):
        """LLVM's value of a name."""
        one = self.values.get(name)
        found = self._given(name) if one is None else one
        return self.builder.load(found.llvm) if one is None else found.llvm

    def cast(self, value, kind):
        """A value as one of another type, by Numba's rule."""
        if kind in (value.kind, types.unliteral(value.kind)):
            return value.llvm
        return self.context.cast(self.builder, value.llvm, value.kind, kind)

    def constant(self, value):
        """A value of Python's."""
        if isinstance(value, bool):
            return Typed(types.literal(value), ir.IntType(1)(int(value)))
        if isinstance(value, int):
            return Typed(_literal(value), INT64(value))
        kind = self.typing.resolve_value_type(value)
        if isinstance(kind, types.Number):
            return Typed(kind, self.context.get_constant_generic(self.builder, kind, value))
        return Typed(kind, None)

    def called(self, function, values):
        """What a function gives for values."""
        kinds = tuple(value.kind for value in values)
        if isinstance(function, Intrinsic):
            found, code = _intrinsic(function, kinds)
        else:
            found, code = _resolved(function, tuple(map(types.unliteral, kinds)))
            values = list(map(self._together, values))
        return Typed(found.return_type, code(self.builder, self._wanted(values, found.args)))

    def _together(self, value):
        """A tuple as one value of LLVM's, which our own intrinsics need not have."""
        if not isinstance(value.llvm, list):
            return value
        return Typed(value.kind, self.context.make_tuple(self.builder, value.kind, value.llvm))

    def _wanted(self, values, kinds):
        """Arguments as a function wants them."""
        if kinds and isinstance(kinds[0], types.StarArgTuple | types.StarArgUniTuple):
            given = [self.cast(value, kind) for value, kind in zip(values, kinds[0], strict=True)]
            return [self.context.make_tuple(self.builder, kinds[0], given)]
        pairs = zip(values, kinds, strict=True)
        return [None if value.llvm is None else self.cast(value, kind) for value, kind in pairs]

    def value(self, node):
        """The value of an expression."""
        return self._rule("_", node)(node)

    def _rule(self, prefix, node):
        """The method for an expression, or with another prefix for a statement."""
        rule = getattr(self, prefix + type(node).__name__.lower(), None)
        if rule is None:
            raise NotLoweredError(f"a {type(node).__name__}")
        return rule

    def truth(self, node):
        """LLVM's truth value of an expression."""
        value = self.value(node)
        if types.unliteral(value.kind) == types.boolean:
            return value.llvm
        return self.context.is_true(self.builder, types.unliteral(value.kind), value.llvm)

    def _constant(self, node):
        return self.constant(node.value)

    def _name(self, node):
        found = self._given(node.id)
        if found is not None:
            return Typed(found.kind, self._value_of(node.id))
        return self.constant(self.names[node.id])

    def _global(self, node):
        """What a function's name stands for."""
        if isinstance(node, Attribute):
            return getattr(self._global(node.value), node.name)
        return self.names[node.id] if node.id in self.names else _BUILTINS[node.id]

    def _call(self, node):
        if self._is_of_value(node.function):
            return self._method(self.value(node.function.value), node)
        given = [self.value(argument) for argument in node.arguments]
        return self.called(self._global(node.function), given)

    def _tuple(self, node):
        values = [self.value(item) for item in node.items]
        kind = types.Tuple(tuple(types.unliteral(value.kind) for value in values))
        return Typed(kind, [self.cast(value, one) for value, one in zip(values, kind, strict=True)])

    def _is_of_value(self, node):
        """Whether a name after a point is one of a value's, and not of a module."""
        if not isinstance(node, Attribute):
            return False
        inner = node.value
        if isinstance(inner, Name) and inner.id in self.names:
            return isinstance(self.names[inner.id], np.generic)
        return True

    def _method(self, value, node):
        kind = self.typing.resolve_getattr(value.kind, node.function.name)
        given = [self.value(argument) for argument in node.arguments]
        found = self.typing.resolve_function_type(kind, tuple(one.kind for one in given), {})
        code = self.context.get_function(kind, found)
        return Typed(
            found.return_type, code(self.builder, [value.llvm, *self._wanted(given, found.args)])
        )

    def _attribute(self, node):
        if self._is_of_value(node):
            value = self.value(node.value)
            kind = self.typing.resolve_getattr(value.kind, node.name)
            read = self.context.get_getattr(value.kind, node.name)
            return Typed(kind, read(self.context, self.builder, value.kind, value.llvm, node.name))
        return self.constant(self._global(node))

    def _binary(self, node):
        """An operation, after those on its left: a sum of lengths has as many as the program."""
        chain = []
        while isinstance(node, Binary):
            chain.append(node)
            node = node.left
        found = self.value(node)
        for each in reversed(chain):
            found = self.called(_OPERATORS[each.sign], [found, self.value(each.right)])
        return found

    def _unary(self, node):
        if node.sign == "-" and isinstance(node.operand, Constant):
            return self.constant(-node.operand.value)
        if node.sign == "not":
            return Typed(types.boolean, self.builder.not_(self.truth(node.operand)))
        return self.called(_UNARY_OPERATORS[node.sign], [self.value(node.operand)])

    def _compare(self, node):
        if len(node.signs) > 1:  # expressions have no effects
            pairs = itertools.pairwise(node.operands)
            each = (Compare(pair, (sign,)) for pair, sign in zip(pairs, node.signs, strict=True))
            return self._logical(Logical("and", tuple(each)))
        return self.called(_OPERATORS[node.signs[0]], [self.value(each) for each in node.operands])

    def _load(self, node):
        place, index = self.value(node.buffer), self.value(node.index)
        if not isinstance(place.kind, Pointer):
            return self.called(operator.getitem, [place, index])
        found = signature(place.kind.dtype, place.kind, types.int64)
        values = place.llvm, self.cast(index, types.int64)
        return Typed(place.kind.dtype, intrinsics._load(self.context, self.builder, found, values))

    def _logical(self, node):
        """Truth values from the left, until one decides."""
        builder, decides = self.builder, node.sign == "or"
        end, sources = builder.append_basic_block("decided"), []
        for item in node.operands[:-1]:
            truth, following = self.truth(item), builder.append_basic_block("next")
            sources.append((ir.IntType(1)(int(decides)), builder.block))
            builder.cbranch(truth, *((end, following) if decides else (following, end)))
            builder.position_at_end(following)
        sources.append((self.truth(node.operands[-1]), builder.block))
        builder.branch(end)
        return Typed(types.boolean, self._joined(end, ir.IntType(1), sources))

    def _select(self, node):
        if _is_light(node.one) and _is_light(node.other):
            return self._selected(node)
        builder = self.builder
        one, other, end = (builder.append_basic_block(name) for name in ("then", "else", "join"))
        builder.cbranch(self.truth(node.test), one, other)
        found = []
        for block, item in ((one, node.one), (other, node.other)):
            builder.position_at_end(block)
            found.append((self.value(item), builder.block))
        kind = self.typing.unify_types(*(types.unliteral(value.kind) for value, _ in found))
        if kind is None:
            raise NotLoweredError("two types in a choice")
        sources = []
        for value, block in found:
            builder.position_at_end(block)
            sources.append((self.cast(value, kind), block))
            builder.branch(end)
        return Typed(kind, self._joined(end, self.context.get_value_type(kind), sources))

    def _selected(self, node):
        """A choice between two values that cost next to nothing, without a branch.

        From branches LLVM makes choices, too, but for those whose conditions are related, such as
        of a number and of its opposite: they become one branch, which no vector instruction does.
        """
        one, other, test = self.value(node.one), self.value(node.other), self.truth(node.test)
        kind = self.typing.unify_types(types.unliteral(one.kind), types.unliteral(other.kind))
        if kind is None:
            raise NotLoweredError("two types in a choice")
        ends = self.cast(one, kind), self.cast(other, kind)
        return Typed(kind, self.builder.select(test, *ends))

    def _joined(self, block, kind, sources):
        self.builder.position_at_end(block)
        value = self.builder.phi(kind)
        for one, source in sources:
            value.add_incoming(one, source)
        return value

    # Statements.

    def run(self, statements):
        """Statements, one after another."""
        for statement in statements:
            is_loop = isinstance(statement, For | While)
            may_be_part = self.is_large or statement in self.unit.repeated
            if is_loop and may_be_part and self.is_part(statement):
                continue
            self.has_loops |= is_loop
            self.statement(statement)

    def statement(self, node):
        """One statement, here."""
        self._rule("_do_", node)(node)

    def assign(self, name, value):
        """Let a name stand for a value: it keeps the type that it had first."""
        kind = types.unliteral(value.kind)
        if name in self.unit.single and not self._is_framed(name):
            self.values[name] = Typed(kind, self.cast(value, kind))
            return
        value, place = self._together(value), self.variables.get(name)
        if place is None:
            place = self.variables[name] = self._place(name, kind)
        elif place.kind != kind:
            raise NotLoweredError(f"{name} is {place.kind} and {kind}")
        self.builder.store(self.cast(value, kind), place.llvm)

    def _do_assign(self, node):
        self.assign(node.name, self.value(node.value))

    def _do_store(self, node):
        self._store(node.target, self.value(node.value))

    def _store(self, target, value):
        place, index = self.value(target.buffer), self.value(target.index)
        found = signature(types.none, place.kind, types.int64, place.kind.dtype)
        item = self.cast(value, place.kind.dtype)
        values = place.llvm, self.cast(index, types.int64), item
        intrinsics._store(self.context, self.builder, found, values)

    def _do_accumulate(self, node):
        found = [self.value(node.target), self.value(node.value)]
        value = self.called(_OPERATORS[node.sign], found)
        if isinstance(node.target, Name):
            return self.assign(node.target.id, value)
        return self._store(node.target, value)

    def _do_evaluate(self, node):
        self.value(node.value)
        self.open_loops += 1

    def _do_guard(self, node):
        self.called(self.names["refuse"], [self.value(node.condition), self.value(node.status)])

    def _do_pass(self, node):
        pass

    def _do_return(self, node):
        value = self.cast(self.value(node.value), _RESULT)
        self.convention.return_value(self.builder, value)
        self.builder.position_at_end(self.builder.append_basic_block("after"))

    @contextmanager
    def _block(self, block, following):
        """Statements in a block of LLVM's, which goes on with another."""
        self.builder.position_at_end(block)
        yield
        self.builder.branch(following)

    def _do_if(self, node):
        builder = self.builder
        one, other, end = (builder.append_basic_block(name) for name in ("then", "else", "end"))
        builder.cbranch(self.truth(node.test), one, other)
        for block, statements in ((one, node.body), (other, node.otherwise)):
            with self._block(block, end):
                self.run(statements)
        builder.position_at_end(end)

    def _do_break(self, node):
        self.builder.branch(self.exits[-1])
        self.builder.position_at_end(self.builder.append_basic_block("after"))

    def _do_while(self, node):
        builder = self.builder
        head, body, end = (builder.append_basic_block(name) for name in ("while", "body", "end"))
        self.open_loops += 1
        builder.branch(head)
        builder.position_at_end(head)
        builder.cbranch(self.truth(node.test), body, end)
        with self._block(body, head):
            self._run_loop(node.body, end)
        builder.position_at_end(end)

    def _run_loop(self, statements, end):
        self.exits.append(end)
        intrinsics.share_calls(self.unit.module, self.unit.is_large)
        self.run(statements)
        self.exits.pop()
        intrinsics.share_calls(self.unit.module, self.unit.is_large or not self.exits)

    def _do_for(self, node):
        """A loop over a range of int64, tested after each iteration."""
        builder, ends = self.builder, (node.start, node.stop, node.step)
        start, stop, step = [self.cast(self.value(end), types.int64) for end in ends]
        body, end = builder.append_basic_block("for"), builder.append_basic_block("end")
        before = builder.block
        builder.cbranch(self._goes_on(start, stop, step), body, end)
        builder.position_at_end(body)
        number = builder.phi(INT64)
        number.add_incoming(start, before)
        self.assign(node.variable, Typed(types.int64, number))
        inner = self.open_loops
        self._run_loop(node.body, end)
        following = builder.add(number, step, flags=("nsw",))
        number.add_incoming(following, builder.block)
        back = builder.cbranch(self._goes_on(following, stop, step), body, end)
        count = _short_length(node)
        if count or self.open_loops > inner:
            options = [_ROLLED, *(_in_vectors(count) if count and self._is_plain(node) else [])]
            back.set_metadata("llvm.loop", _loop(self.unit.module, options))
        self.open_loops += not isinstance(stop, ir.Constant)
        builder.position_at_end(end)

    def _is_plain(self, node):
        """Whether LLVM certainly makes vector instructions of a loop along items."""
        return short_loops.Loop(node, self._scope, self._meaning).is_proven()

    def _scope(self, name):
        """The number of what a name points into, items that LLVM makes vectors of; else None."""
        found = self._given(name)
        kind = None if found is None else found.kind
        is_known = isinstance(kind, Pointer) and kind.scope < intrinsics.SCOPES
        return kind.scope if is_known and isinstance(kind.dtype, _IN_VECTORS) else None

    def _meaning(self, name):
        """What a name in an index stands for: two names may be the same numbers' product."""
        value = self.values.get(name)
        if value is None:
            return name
        return value.llvm.constant if _is_number(value.llvm) else _computed(value.llvm)

    def _goes_on(self, number, stop, step):
        up = self.builder.icmp_signed("<", number, stop)
        if isinstance(step, ir.Constant) and step.constant > 0:
            return up
        down = self.builder.icmp_signed(">", number, stop)
        return self.builder.select(self.builder.icmp_signed(">", step, INT64(0)), up, down)


class _Pieces:
    """What the pieces of a run become: one function for each kind of them.

    Pieces differ where what they read is of another type, or where one buffer serves two ends: of
    those whose items they read or write, as LLVM is told which lie apart.

    Parameters
    ----------
    outer : _Function
    run : nbta.compiler.outlining.Run
    """

    def __init__(self, outer, run):
        self._outer, self._run, self._which = outer, run, []
        self._apart, self._scopes = run.forwarded(), run.scopes()
        made: dict = {}
        try:
            self._make(made)
        except _NotRolledError:
            for name in [name for name in outer.framed if name in self._kept()]:
                del outer.framed[name]
            for _, function in made.values():
                function.drop()
            raise
        self.functions = [function.function for _, function in made.values()]

    def _kept(self):
        return {tokens[k] for tokens in self._run.tokens for k in self._run.kept}

    def _make(self, made):
        """Make the functions, by what tells them from others."""
        outer, run = self._outer, self._run
        for piece, tokens in enumerate(run.tokens):
            scopes: dict = {}
            kinds = self._kinds(tokens, scopes)
            numbers = (self._number(tokens[k], name, scopes) for k, name in self._scopes)
            key = tuple(kinds), tuple(numbers)
            if key not in made:
                if len(made) == RUN_FUNCTIONS:
                    raise _NotRolledError("a run of too many kinds")
                made[key] = len(made), _Piece(outer, run, piece, *key, len(scopes))
            number, function = made[key]
            self._which.append(number)
            for k, kind in zip(run.kept, function.kept, strict=True):
                outer.framed[tokens[k]] = _with_scope(kind, [scope for scope, _ in scopes])

    def _kinds(self, tokens, scopes):
        """Types of what a piece reads, with the numbers of scopes as they come."""
        run, first = self._run, self._run.tokens[0]
        pairs = [(name, name) for name in run.constant]
        pairs += [(tokens[k], first[k]) for k in run.varying]
        return [self._numbered(self._kind(name), own, scopes) for name, own in pairs]

    def _numbered(self, kind, name, scopes):
        """A type, with the number of its scope, for a name of the first piece."""
        if not isinstance(kind, Pointer) or kind.scope == intrinsics.WORDS:
            return kind
        return Pointer(kind.dtype, self._number(kind.scope, name, scopes))

    def _number(self, scope, name, scopes):
        """The number of a scope, as it came; what is only forwarded may lie where it wants."""
        return scopes.setdefault((scope, name if name in self._apart else None), len(scopes))

    def _kind(self, name):
        kind = self._outer.framed.get(name)
        if kind is not None:
            return kind
        found = self._outer._given(name)
        if found is None:
            raise _NotRolledError(f"{name} is no variable")
        return found.kind

    def rows(self):
        """The table: numbers of functions, places in the frame in bytes, and integers."""
        run, frame = self._run, self._outer.unit.rolled.frame
        places, numbers = (*run.varying, *run.kept), run.numbers()
        return [
            [
                which,
                *(8 * frame[tokens[k]] for k in places),
                *(tokens[k] for k in numbers),
            ]
            for which, tokens in zip(self._which, run.tokens, strict=True)
        ]


class _Piece:
    """A piece of a run as a function of its row, the frame, and what all pieces read.

    Parameters
    ----------
    outer : _Function
    run : nbta.compiler.outlining.Run
    piece : int
        Its number.
    kinds, scopes : tuple
        Types of what it reads, and numbers of the scopes that it says, as they come.
    count : int
        Scopes that there are.

    Attributes
    ----------
    kept : list
        Types of what it keeps.
    """

    def __init__(self, outer, run, piece, kinds, scopes, count):
        self._context, self._run, self._tokens = outer.context, run, run.tokens[piece]
        constant = kinds[: len(run.constant)]
        self.function = self._declared(outer.unit.module, constant, count)
        self._inner = _Function(outer.unit, self.function, outer.is_large and run.count == 1)
        replaced = {k: Name(f"_{k}") for k in run.numbers()}
        replaced |= {k: Constant(n) for (k, _), n in zip(run.scopes(), scopes, strict=True)}
        try:
            self._begin(constant, kinds[len(run.constant) :])
            self._inner.run(run.statements(piece, replaced))
            self.kept = self._end()
        except _NotRolledError:
            self.drop()
            raise
        if run.count == 1:
            self._inner.run_once()

    def drop(self):
        """Take the function, which nothing calls, out of its module."""
        del self._inner.unit.module.globals[self.function.name]

    def _declared(self, module, kinds, count):
        takes = [INT64, INT64, *map(self._context.get_value_type, kinds)]
        name = module.get_unique_name("piece")
        function = ir.Function(module, ir.FunctionType(INT64, takes), name)
        function.linkage = "internal"
        function.attributes.add("noinline")
        intrinsics.limit_scopes(function, count)
        return function

    def _begin(self, constant, varying):
        """Give names their values."""
        inner, run = self._inner, self._run
        self._row, self._frame, *values = self.function.args
        for name, kind, value in zip(run.constant, constant, values, strict=True):
            inner.assign(name, Typed(kind, value))
        for place, (k, kind) in enumerate(zip(run.varying, varying, strict=True), 1):
            found = inner.builder.load(self._place(place, kind))
            inner.assign(self._tokens[k], Typed(kind, found))
        for place, k in enumerate(run.numbers(), 1 + len(run.varying) + len(run.kept)):
            inner.values[f"_{k}"] = Typed(types.int64, self._entry(place))

    def _end(self):
        """Keep what is read elsewhere, and go on; types of that."""
        inner, run, kinds = self._inner, self._run, []
        for place, k in enumerate(run.kept, 1 + len(run.varying)):
            kinds.append(inner._given(self._tokens[k]).kind)
            value = inner._value_of(self._tokens[k])
            inner.builder.store(value, self._place(place, kinds[-1]))
        inner.builder.ret(_ON)
        return kinds

    def _entry(self, place):
        """An integer of the row."""
        return intrinsics._field(self._inner.builder, self._row, 8 * place)

    def _place(self, place, kind):
        """Where a value is in the frame; the row tells that in bytes."""
        found = self._context.get_value_type(kind)
        if not isinstance(found, _WORDS):
            raise _NotRolledError(f"{kind} in a run")
        builder = self._inner.builder
        return builder.inttoptr(builder.add(self._frame, self._entry(place)), found.as_pointer())


#: LLVM's types that a place in the frame has room for.
_WORDS = ir.IntType, ir.DoubleType, ir.FloatType, ir.PointerType


def _with_scope(kind, there):
    """A type with the scope that its number stands for."""
    if not isinstance(kind, Pointer) or kind.scope == intrinsics.WORDS:
        return kind
    return Pointer(kind.dtype, there[kind.scope])


def _table(module, rows):
    """A constant table of integers."""
    data = bytearray(np.array(rows, np.int64).tobytes())
    kind = ir.ArrayType(ir.IntType(8), len(data))
    table = ir.GlobalVariable(module, kind, module.get_unique_name("rows"))
    table.initializer, table.global_constant = ir.Constant(kind, data), True
    table.linkage, table.align = "internal", 8
    return table


def _short_length(node):
    """The iterations of a loop of a short known length that goes along items; 0 of any other."""
    count = node.ends[0]
    known = len(node.ends) == 1 and isinstance(count, Constant) and count.value in SHORT_LOOPS
    plain = all(isinstance(statement, Assign | Store) for statement in node.body)
    return count.value if known and plain else 0


#: Types of items in vector instructions.
_IN_VECTORS = types.Float | types.Integer


def _is_number(value):
    return isinstance(value, ir.Constant) and isinstance(value.constant, int)


def _computed(value):
    """How a number is computed, as text."""
    if type(value) is not ir.Instruction:
        return value.get_reference() if isinstance(value, ir.Value) else ""
    return f"{value.opname}({', '.join(map(_computed, value.operands))})"


#: Of a loop around another one, whose inner loop LLVM would divide into vectors once for each
#: iteration: 16 times for 16 rows. A call is as good as a loop: eight windows of 28 rows, copied
#: row by row, became thousands of moves in one block, of which LLVM made code in 8 s, else in 0.5.
_ROLLED = ("llvm.loop.unroll.disable",)


def _in_vectors(count):
    """Options of LLVM's for a short loop: to unroll it by vector instructions, not by items.

    Unrolled first, which LLVM does to all loops of few iterations, it would be single items, or
    else vectors along the loop around it, whose items lie apart. What is left behind the last whole
    vector takes longer than narrower vectors do (a loop of 10 iterations in fours twice as long as
    in twos), so that these are as wide as goes into the length.
    """
    width = math.gcd(count, WIDEST_VECTOR) if count else 1
    return [("llvm.loop.vectorize.width", ir.Constant(ir.IntType(32), width))][: width > 1]


def _loop(module, options):
    """What tells LLVM of options of a loop: a node that begins with itself."""
    found = [module.add_metadata(option) for option in options]
    node = ir.MDValue(module, found, str(len(module.metadata)))
    node.operands = (node, *found)
    return node


_BUILTINS = {name: getattr(builtins, name) for name in ("max", "min", "abs", "complex", "bool")}


def _whole(unit, function):
    """The function itself."""
    made = _Function(unit, function, unit.is_large)
    (start,) = made.convention.decode_arguments(made.builder, _ARGUMENTS, function)
    if unit.rolled is None or len(unit.rolled.frame) <= FRAME_VALUES:
        _all_of(unit, made, start)
    else:
        _with_memory(unit, made, start)
    for part in unit.parts.values():
        if part.calls > 1:
            part.function.attributes.add("noinline")
    return made


def _all_of(unit, made, start):
    """All statements, for the address of the table of words."""
    made.assign("w", Typed(types.int64, start))
    made.run_whole()
    made.builder.unreachable()
    if unit.is_large:
        made.run_once()


def _with_memory(unit, made, start):
    """A function that takes memory for a frame, and returns it when that with all else is left."""
    module, builder, address = unit.module, made.builder, ir.IntType(8).as_pointer()
    frame = ir.ArrayType(INT64, len(unit.rolled.frame)).as_pointer()
    function = ir.Function(module, ir.FunctionType(INT64, [INT64, frame]), "framed")
    function.linkage = "internal"
    function.attributes.add("noinline")
    inner = _Function(unit, function, unit.is_large)
    inner.frame = function.args[1]
    _all_of(unit, inner, function.args[0])
    allocate, free = (
        cgutils.get_or_insert_function(module, ir.FunctionType(*kinds), name)
        for kinds, name in (((address, [INT64]), "malloc"), ((ir.VoidType(), [address]), "free"))
    )
    memory = builder.call(allocate, [INT64(8 * len(unit.rolled.frame))])
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, memory)):
        made.convention.return_value(builder, INT64(MEMORY))
    status = builder.call(function, [start, builder.bitcast(memory, frame)])
    builder.call(free, [memory])
    made.convention.return_value(builder, status)


class Lowered(NamedTuple):
    """What Numba has of a compiled function, as far as it is asked for."""

    library: object
    fndesc: object


def lowered(function: Function, names: dict) -> Lowered:
    """The compiled function of a function of the loop IR.

    Parameters
    ----------
    function : nbta.loops.Function
    names : dict
        What it refers to.

    Raises
    ------
    NotLoweredError
        If a name would have two types, or Numba has no code for a call.
    """
    context, description = _target()
    library = new_library(context, "run")
    module = library.create_ir_module("run")
    unit = _Unit(module, function, names)
    with context.push_code_library(library):
        made = _whole(unit, context.declare_function(module, description))
    for entry, body in unit.entries:
        ir.IRBuilder(entry).branch(body)
    fastmathpass.rewrite_module(module, context.fastmath)
    library.add_ir_module(module)
    wrapped = library, description, context.environment, made.helper
    context.create_cpython_wrapper(*wrapped, release_gil=True)
    context.create_cfunc_wrapper(*wrapped)
    library.finalize()
    return Lowered(library, description)
