"""A program: what a run needs of a graph, by itself; and how passes build it again."""

import functools

from nbta.graph.copying import Copy, Rule, copied
from nbta.graph.graph import Graph, SubGraph
from nbta.graph.operation import Operation


class Program(SubGraph):
    """A graph with parameters for what is fed, and results for what is fetched.

    Attributes
    ----------
    targets : list of Operation
        What is to run besides, for its effects.
    assumed : Assumed or None
        What it takes for granted of lengths besides those of its inputs.
    analyses : dict
        By type, those that `nbta.compiler.manager.analysis` holds.
    is_plain : bool
        Whether a result with a NaN may be wrong; see `nbta.compiler.plain_products`.
    """

    def __init__(self):
        super().__init__(Graph(), "")
        self._scope = ""
        self.targets: list[Operation] = []
        self.assumed = None
        self.analyses: dict = {}
        self.is_plain = False


def extract(given, wanted, targets=()) -> Program:
    """What it takes to compute some tensors of a graph from others."""
    program = Program()
    for item in [*wanted, *targets][:1]:
        program.outer.gradient_scopes = item.graph.root.gradient_scopes
    _fill(program, copied, list(given), list(wanted), list(targets))
    return program


def rebuild(program: Program, rule: Rule) -> Program:
    """The program again, operation by operation, without what nothing needs."""
    new = Program()
    new.outer.gradient_scopes = program.outer.gradient_scopes
    _fill(new, rule, program.inputs, program.outputs, program.targets)
    new.assumed, new.is_plain = program.assumed, program.is_plain
    return new


def changes(step):
    """A pass that changes the program that it is given, or gives another one.

    Called as it is, it changes a copy. Who has a program that is nobody else's calls ``in_place``:
    half of all passes would make a copy each.
    """

    @functools.wraps(step)
    def pure(program: Program) -> Program:
        return step(rebuild(program, copied))

    pure.in_place = step
    return pure


def _fill(program, rule, inputs, outputs, targets):
    copy = Copy(program, "", rule)
    copy.parameters(inputs)
    program.outputs, program.targets = copy.fill(inputs, outputs, targets)
