"""The manager of passes: their contracts, their order, and analyses of a program between them.

A pass has a `Contract`, written above it: which facts of a program it requires, which it
establishes, and which facts and analyses it preserves. The manager refuses a pass whose facts are
missing. An analysis that a pass asks for by `analysis` is computed once, and dropped when the
program changes; a pass that changes a program may preserve one by its contract. With NBTA_DEBUG=1
an analysis that is used again is computed anew and compared.

Settings for whoever looks for a fault are in the environment, and read for each compilation:

- ``NBTA_PRINT_AFTER`` prints programs after passes, to standard error: names or numbers of passes,
  with commas between them, or ``all``;
- ``NBTA_PASS_LIMIT`` is the number of the last pass that runs. Passes that code generation needs
  run anyway;
- ``NBTA_CHECK=passes`` compares results after each pass (`nbta.execution.pass_check`).
"""

import contextlib
import enum
import os
import sys
from contextvars import ContextVar
from typing import NamedTuple

from nbta.compiler.phases import is_heard, phase
from nbta.compiler.program import Program, rebuild
from nbta.errors import invalid
from nbta.graph import verifier
from nbta.graph.copying import copied
from nbta.graph.graph import Analysis, Graph
from nbta.graph.printer import annotated
from nbta.graph.verifier import BrokenGraphError, verify_change
from nbta.tuning import SHOWN_CHARACTERS


class Fact(enum.Enum):
    """What holds of a program, for passes that rely on it."""

    RANKS = "each rank is known, and lengths follow from those of the inputs"
    BUFFERS_STAY = "no array is freed before the end of the program"
    SAVED_BY_TAPES = "adjoint loops read what they need from the tapes of reverse mode"
    TAPES_OF_LOOPS = "each loop has tapes of its own, with an element for each iteration"
    WHOLE_AXES = "no loop is divided into tiles"


#: What holds of a program that was just extracted from a graph.
AT_FIRST = frozenset(Fact) - {Fact.RANKS, Fact.BUFFERS_STAY}


class Contract(NamedTuple):
    """What a pass says of itself.

    Attributes
    ----------
    requires : frozenset of Fact
        What must hold of the program that it takes.
    establishes : frozenset of Fact
        What holds of the program that it gives.
    preserves : frozenset of Fact and type of Analysis
        What holds of that if it held before; an analysis, also if the pass has changed something.
    reorders : bool
        Whether it takes sums in another order. Results are bitwise identical without.
    needed : bool
        Whether code generation needs it, so that it runs beyond NBTA_PASS_LIMIT.
    """

    requires: frozenset
    establishes: frozenset
    preserves: frozenset
    reorders: bool
    needed: bool


def contract(*, requires=(), establishes=(), breaks=(), preserves=(), reorders=False, needed=False):
    """A decorator that gives a pass its `Contract`.

    Parameters
    ----------
    requires, establishes : iterable of Fact
    breaks : iterable of Fact
        What need no longer hold; the pass preserves all other facts.
    preserves : iterable of type of Analysis
    reorders, needed : bool
    """
    kept = frozenset(Fact).difference(breaks).union(preserves)

    def registered(step):
        step.contract = Contract(
            frozenset(requires), frozenset(establishes), kept, reorders, needed
        )
        return step

    return registered


class BrokenPassError(BrokenGraphError):
    """A pass that breaks its contract, or a result: a mistake in nbta itself."""


class Settings(NamedTuple):
    """What a compilation is told by the environment, or by `using`.

    Attributes
    ----------
    printed : frozenset of str
        Names and numbers of passes; ``all`` is every pass.
    limit : int or None
        The number of the last pass.
    checks : bool
        Whether results are compared after each pass.
    """

    printed: frozenset = frozenset()
    limit: int | None = None
    checks: bool = False

    @classmethod
    def of_environment(cls) -> "Settings":
        """Those of the environment.

        Raises
        ------
        InvalidArgumentError
            For a value that means nothing.
        """
        printed = os.environ.get("NBTA_PRINT_AFTER", "")
        limit, checked = os.environ.get("NBTA_PASS_LIMIT"), os.environ.get("NBTA_CHECK")
        if limit and not limit.isdecimal():
            raise invalid("setting", f"NBTA_PASS_LIMIT must be a number of passes, not {limit!r}")
        if checked and checked != "passes":
            raise invalid("setting", f"NBTA_CHECK must be 'passes', not {checked!r}")
        names = frozenset(name.strip() for name in printed.split(",") if name.strip())
        return cls(names, int(limit) if limit else None, bool(checked))

    def prints(self, number: int, name: str) -> bool:
        """Whether the program after a pass is printed."""
        return bool(self.printed) and not self.printed.isdisjoint(("all", name, str(number)))


_used = ContextVar("nbta settings of passes", default=None)
_watchers = ContextVar("nbta watchers of passes", default=())


def settings() -> Settings:
    """Those that hold for a compilation that begins now."""
    return _used.get() or Settings.of_environment()


@contextlib.contextmanager
def using(given: Settings):
    """A context with other settings than those of the environment."""
    token = _used.set(given)
    try:
        yield
    finally:
        _used.reset(token)


def is_observed() -> bool:
    """Whether somebody looks at what passes do, so that they are to run."""
    return verifier.DEBUG or bool(_watchers.get()) or settings() != Settings()


@contextlib.contextmanager
def watching(watcher):
    """A context in which ``watcher(number, step, program)`` is called after each pass that ran.

    It must leave the program unmodified.
    """
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield
    finally:
        _watchers.reset(token)


class Manager:
    """Runs passes of one program, each by its contract.

    Parameters
    ----------
    before : int
        How many passes there are before the first.
    log : Log, optional
        Is told of each pass.
    """

    def __init__(self, before=0, log=None):
        self._number, self._log, self._settings = before, log, settings()
        self._facts, self._printed = AT_FIRST, None

    def run(self, steps, program: Program) -> Program:
        """A program after some passes, which may change it."""
        for step in steps:
            program = self.step(step, program)
        verify_change(program)
        return program

    def skip(self, count: int) -> None:
        """Leave out so many passes, whose numbers no others get."""
        self._number += count

    def step(self, step, program: Program, call=None) -> Program:
        """A program after a pass; ``call`` is how it is called, where that needs more.

        Raises
        ------
        BrokenPassError
            Where a fact is missing, or an analysis is out of date.
        """
        self._number += 1
        said = _contract_of(step)
        missing = said.requires - self._facts
        limit = self._settings.limit
        if limit is not None and self._number > limit and not said.needed:
            return program
        if missing:
            facts = "; ".join(sorted(fact.value for fact in missing))
            raise self._broken(step, f"requires what no pass before it establishes: {facts}")
        with phase(step.__name__) as facts:
            facts["before"] = _as_it_is(program)
            program = (call or getattr(step, "in_place", step))(program)
            facts["after"] = _as_it_is(program)
        self._facts = self._facts & said.preserves | said.establishes
        self._settle(step, said, program)
        if verifier.EACH_PASS:
            verify_change(program)
        self._tell(step, program)
        return program

    def _broken(self, step, text):
        return BrokenPassError(f"pass {self._number}, {step.__name__}: {text}")

    def _settle(self, step, said, program):
        """Drop the analyses that are no longer true, and look at the others."""
        for kind, held in list(program.analyses.items()):
            now = _state(program)
            lost = held.state.losses != now.losses  # what is left stands at other places
            if held.state != now and (lost or kind not in said.preserves):
                del program.analyses[kind]
                continue
            held.state, held.is_compared = now, False
            if verifier.EACH_PASS and kind in said.preserves:
                _compare(held, program, f"after pass {self._number}, {step.__name__}")

    def _tell(self, step, program):
        """Let those who look see a program after a pass."""
        if self._log is not None:
            self._log.note(step, program)
        if self._settings.prints(self._number, step.__name__):
            text = annotated(program)
            shown = " unchanged" if text == self._printed else f"\n{text}"
            print(f"# pass {self._number}, {step.__name__}:{shown}", file=sys.stderr, flush=True)
            self._printed = text
        for watcher in _watchers.get():
            watcher(self._number, step, program)


def _contract_of(step) -> Contract:
    found = getattr(step, "contract", None)
    if found is None:
        raise BrokenPassError(
            f"{step.__name__} has no contract: say by @contract what it requires, establishes and "
            f"preserves"
        )
    return found


def _as_it_is(program):
    """A copy for those who listen, as later passes change a program where it is."""
    return rebuild(program, copied) if is_heard() else program


class _Held:
    """An analysis of a program, and the state of the program that it is for."""

    def __init__(self, found, state):
        self.found, self.state = found, state
        self.is_compared = True  # since the last pass


def analysis(kind: type[Analysis], graph: Graph) -> Analysis:
    """An analysis of the program that a graph is, or lies in: computed where none is up to date.

    Parameters
    ----------
    kind : type of Analysis
        Called with the program.
    graph : Graph

    Raises
    ------
    BrokenPassError
        With NBTA_DEBUG=1, where one is not what it would be now: something has changed the program
        without `Graph.changed`.
    """
    program = _program_of(graph)
    held = program.analyses.get(kind)
    if held is None or held.state != _state(program):
        found = kind(program)  # may ask for others
        held = program.analyses[kind] = _Held(found, _state(program))
    elif verifier.EACH_PASS and not held.is_compared:
        _compare(held, program, "when it is used again")
        held.is_compared = True
    return held.found


def _program_of(graph):
    while not isinstance(graph, Program):
        graph = graph.outer
    return graph


class _State(NamedTuple):
    """Counts of all changes of a program by `Graph.changed`, and of removals."""

    version: int
    losses: int


def _state(program):
    return _State(program.root.version, program.root.losses)


def _short(value):
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]} ..."


def _compare(held, program, when):
    """Refuse an analysis that says something else than a new one of the same program."""
    fresh = type(held.found)(program)
    for name, (old, new) in held.found.differences(fresh).items():
        raise BrokenPassError(
            f"{type(fresh).__name__} of the program is out of date {when}: {name} is "
            f"{_short(old)} there and {_short(new)} in a new one; whoever changes a graph "
            f"says so by Graph.changed, and a pass preserves an analysis only if it stays the same"
        )
