"""Checks that a function of the loop IR is whole, with NBTA_DEBUG=1 after each that is made.

What LLVM's code relies on: that names have values where they are used, that a loop's counter is the
loop's alone, that loops are left from inside of them, and that a buffer is a variable which points
into memory of one alias class.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable

from nbta.errors import NbtaError
from nbta.loops.nodes import (
    Assign,
    Break,
    Call,
    Comment,
    Constant,
    Expression,
    For,
    Function,
    Guard,
    If,
    Load,
    Mark,
    Name,
    Return,
    Statement,
    Store,
    Tuple,
    Unpack,
    Versions,
    While,
    expressions_in,
    names_in,
    statements_in,
    stored_by,
)


class BrokenFunctionError(NbtaError, AssertionError):
    """A function that no program should have become: a mistake in nbta itself."""

    code = "INTERNAL"


#: Whether functions are checked when they are made.
DEBUG = os.environ.get("NBTA_DEBUG") == "1"
#: What Python has, and functions refer to.
_BUILTINS = frozenset(("max", "min", "abs", "complex", "bool"))


def verify(function: Function, known: Container[str]) -> None:
    """Check a function.

    Parameters
    ----------
    function : nbta.loops.Function
    known : container of str
        The names that it may refer to.

    Raises
    ------
    BrokenFunctionError
        With the statement, and what is wrong with it.
    """
    _Verifier(known, function.constants).block(function.body, {"w"}, ())


class _Verifier:
    def __init__(self, known, constants):
        self._known, self._constants = known, constants
        self._classes: dict[str, Expression] = {}
        #: By a condition, the names that have values where it holds once more.
        self._under: dict[Expression, set[str]] = {}

    def block(
        self, statements: Iterable[Statement], given: set[str], counters: tuple[str, ...],
        is_in_loop: bool = False,
    ) -> set[str] | None:  # fmt: skip
        """Check a block that begins with values of some names.

        Returns
        -------
        set of str or None
            The names that have values in the end; None where the end is never reached.
        """
        given, is_left = set(given), False
        around, self._under = self._under, dict(self._under)
        for statement in statements:
            if is_left and not isinstance(statement, Comment | Mark):
                self._fail(statement, "is never reached")
            self._check(statement, given, counters, is_in_loop)
            for name in stored_by(statement):
                if name in counters:
                    self._fail(statement, f"changes {name}, by which a loop counts")
                if name in self._known or name in self._constants:
                    self._fail(statement, f"changes {name}, which is no variable")
            is_left = self._enter(statement, given, counters, is_in_loop) or is_left
            self._forget(statement)
        self._under = around
        return None if is_left else given

    def _forget(self, statement):
        """Drop what holds under conditions that may be others after a statement."""
        if not self._under:
            return
        changed = {name for each in statements_in((statement,)) for name in stored_by(each)}
        self._under = {
            test: names for test, names in self._under.items() if changed.isdisjoint(names_in(test))
        }

    def _enter(self, statement, given, counters, is_in_loop):
        """Check what is below a statement; whether what comes next is never reached."""
        match statement:
            case For(variable, body=body):
                self._forget(statement)
                inside = (*counters, variable) if variable != "_" else counters
                self.block(body, given | {variable}, inside, True)
            case While(_, body):
                self._forget(statement)
                # A loop without a test is left by a break, after what came before it.
                self.block(body, given, counters, True)
                if statement.test == Constant(True):
                    given |= _before_breaks(body)
            case If(_, body, otherwise):
                known = self._under.get(statement.test, set())
                ends = [self.block(body, given | known, counters, is_in_loop)]
                if ends[0] is not None and _is_of_variables(statement.test):
                    self._under[statement.test] = ends[0]
                if statement.test != Constant(True):
                    ends.append(self.block(otherwise, given, counters, is_in_loop))
                ends = [names for names in ends if names is not None]
                if not ends:
                    return True
                given |= set.intersection(*ends)
            case _:
                given.update(stored_by(statement))
        return isinstance(statement, Break | Return)

    def _check(self, statement, given, counters, is_in_loop):
        if isinstance(statement, Versions):
            raise BrokenFunctionError("there is a block whose two versions were not made")
        if isinstance(statement, Break) and not is_in_loop:
            self._fail(statement, "leaves no loop")
        read = statement.expressions
        if isinstance(statement, Assign | Unpack | For):
            read = read[len(list(stored_by(statement))) :]
        for node in (each for root in read for each in expressions_in(root)):
            self._expression(statement, node, given)
        self._check_kind(statement)

    def _check_kind(self, statement):
        match statement:
            case Assign(name, Call(Name("pointer" | "room" | "array_in"), (*_, number))):
                if self._classes.setdefault(name, number) != number:
                    self._fail(statement, f"lets {name} point into another alias class")
            case Guard(_, Constant(bool() | float()) | Tuple()):
                self._fail(statement, "has a status that is no integer")
            case Store(Load(buffer)) if not isinstance(buffer, Name):
                self._fail(statement, "stores into no variable")
            case For(step=Constant(0)):
                self._fail(statement, "goes nowhere")
            case For():
                for end in statement.ends:
                    self._check_end(statement, end)

    def _expression(self, statement, node, given):
        is_known = not isinstance(node, Name) or (
            node.id in given
            or node.id in self._known
            or node.id in self._constants
            or node.id in _BUILTINS
        )
        if not is_known:
            self._fail(statement, f"uses {node.id}, which need not have a value")
        if isinstance(node, Constant) and type(node.value) is not bool and node.value < 0:
            self._fail(statement, f"has the number {node.value}, which is no `-` of one")

    def _check_end(self, statement, end):
        """An end of a loop is an integer: no truth value, no float, no tuple."""
        if isinstance(end, Tuple) or (isinstance(end, Constant) and type(end.value) is not int):
            self._fail(statement, "counts by what is no integer")

    def _fail(self, statement, what):
        first = str(statement).partition("\n")[0]
        raise BrokenFunctionError(f"`{first}` {what}")


def _is_of_variables(test: Expression) -> bool:
    """Whether a condition is the same as long as its variables are."""
    return not any(isinstance(node, Load | Call) for node in expressions_in(test))


def _before_breaks(body: Iterable[Statement]) -> set[str]:
    """Names that a loop without a test gives values to before it may be left."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, If) and any(isinstance(s, Break) for s in statement.body):
            break
        found.update(stored_by(statement))
    return found
