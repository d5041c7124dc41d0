"""Runs of statements that are alike but for names and integers, for a loop over them.

Large graphs are mostly such *runs*: layers, steps and parameters written out. A run becomes a
function of its first *piece*, and a table with a row for each piece: integers that differ, and
where in a *frame* of memory the values of names are that differ. So LLVM is given a hundredth of
the code.

Long stretches of statements that are not alike are cut into runs of one piece each: LLVM takes
more than twice the time for twice the statements of a function, however plain they are.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np

from nbta.loops import Block, Statement
from nbta.loops.nodes import statements_in, stored_by
from nbta.loops.structure import Outline, Replaced, Role, height, outline
from nbta.tuning import CUT_STATEMENTS, PIECE_STATEMENTS, RUN_PIECES

_NAMES = (Role.NAMED, Role.GIVEN, Role.FORWARDED)


@dataclass(eq=False)
class Run:
    """Pieces that follow one another.

    Attributes
    ----------
    first, length, count : int
        The first statement, statements of a piece, and pieces.
    pieces : list of list of Statement
    known : container of str
        What is no variable.
    roles : list of Role
        Of the leaves of a piece, called tokens here.
    tokens : list of list of (str or int)
        Those of each piece.
    constant : list of str
        Names that all pieces read.
    varying, kept : list of int
        Tokens by which pieces read other names each, and store what is read elsewhere.
    """

    first: int
    length: int
    count: int
    pieces: list
    known: object
    roles: list
    tokens: list
    constant: list = field(default_factory=list)
    varying: list = field(default_factory=list)
    kept: list = field(default_factory=list)

    def numbers(self):
        """Tokens that are other integers in other pieces."""
        free = (k for k, role in enumerate(self.roles) if role is Role.FREE)
        return [k for k in free if len({piece[k] for piece in self.tokens}) > 1]

    def scopes(self):
        """Tokens that are numbers of scopes, each with the name that is given a pointer of it."""
        name, found = None, []
        for k, role in enumerate(self.roles):
            if role is Role.CLASS:
                found.append((k, self.tokens[0][name]))
            elif role is Role.GIVEN:
                name = k
        return found

    def forwarded(self):
        """Names of the first piece that it only makes, or forwards as addresses."""
        found, others = set(), set()
        for name, role in zip(self.tokens[0], self.roles, strict=True):
            if role in _NAMES:
                (others if role is Role.NAMED else found).add(name)
        return found - others

    def statements(self, piece, replaced):
        """Those of a piece, with expressions in place of some tokens."""
        return Replaced(self.known, replaced, Block)(self.pieces[piece])


class _Statement(NamedTuple):
    node: Statement
    outline: Outline

    def stores(self):
        """Names that it gives values to."""
        return _stores((self.node,))


class Runs:
    """The runs of a function.

    Parameters
    ----------
    statements : list of Statement
    names : container of str
        What is no variable.
    single : set of str
        Variables that are one value each.
    fewest : int
        Pieces that a run is to have at least.
    wanted : set of int, optional
        Statements of which each piece has one.
    """

    def __init__(self, statements, names, single, fewest=RUN_PIECES, wanted=None):
        self._names, self._single, self._fewest, self._wanted = names, single, fewest, wanted
        self._statements = [_Statement(node, outline(node, names)) for node in statements]
        self._found = Counter()
        for statement in self._statements:
            self._found.update(statement.outline.leaves)
        #: By the number of the first statement.
        self.runs = {}
        for start, length, count in self._repeated():
            for run in self._cut(start, length, count):
                self.runs[run.first] = run
        if wanted is None:
            self._cut_the_rest()
        moved = [piece[k] for run in self.runs.values()
                 for piece in run.tokens for k in (*run.varying, *run.kept)]  # fmt: skip
        #: Place in the frame by name.
        self.frame = {name: k for k, name in enumerate(dict.fromkeys(moved))}
        for run in self.runs.values():
            self._read_from_frame(run)

    def _repeated(self):
        """First statement, length and count of pieces alike; those that save most come first."""
        numbers: dict = {}
        shapes = [statement.outline.shape for statement in self._statements]
        kinds = np.array([numbers.setdefault(shape, len(numbers)) for shape in shapes])
        found = []
        for length in range(1, min(PIECE_STATEMENTS, len(kinds) // self._fewest) + 1):
            same = np.concatenate(([False], kinds[:-length] == kinds[length:], [False]))
            edges = np.flatnonzero(same[1:] != same[:-1]).reshape(-1, 2)
            found += [(start, length, (end - start) // length + 1) for start, end in edges.tolist()]
        taken = np.zeros(len(kinds), bool)
        for start, length, count in sorted(found, key=lambda one: (-one[1] * (one[2] - 1), one[1])):
            stretch = slice(start, start + length * count)
            is_run = count >= self._fewest and self._is_wanted(start, length)
            if is_run and not taken[stretch].any():
                taken[stretch] = True
                yield start, length, count

    def _is_wanted(self, start, length):
        wanted = self._wanted
        return wanted is None or not wanted.isdisjoint(range(start, start + length))

    def _cut(self, start, length, count):
        """Runs of pieces whose names come in one pattern."""
        pieces = [self._statements[start + k * length : start + (k + 1) * length]
                  for k in range(count)]  # fmt: skip
        tokens = [[token for each in piece for token in each.outline.leaves] for piece in pieces]
        roles = [role for each in pieces[0] for role in each.outline.roles]
        patterns = [_pattern(each) for each in tokens]
        at = 0
        for _, group in groupby(patterns):
            size = len(list(group))
            if size >= self._fewest:
                nodes = [[each.node for each in piece] for piece in pieces[at : at + size]]
                run = Run(start + at * length, length, size, nodes, self._names, roles,
                          tokens[at : at + size])  # fmt: skip
                if self._fits(run, _stores(nodes[0])):
                    yield run
            at += size

    def _fits(self, run, stores):
        """Whether a run can be a loop; finds what its pieces read and keep."""
        columns, stored, changed = self._find_moved(run, stores)
        own = len(changed) == len(stored) * run.count
        moved = (name for k in (*run.varying, *run.kept) for name in columns[k])
        return own and self._single.issuperset(moved)

    def _find_moved(self, run, stores):
        """What the pieces of a run read and keep.

        Returns the tokens of all pieces by place, the places of what the first piece gives values
        to, by name, and the names that pieces give values to.
        """
        columns = list(zip(*run.tokens, strict=True))
        places = defaultdict(list)
        for k, role in enumerate(run.roles):
            if role in _NAMES:
                places[run.tokens[0][k]].append(k)
        stored = {name: ks for name, ks in places.items() if name in stores}
        changed = {name for ks in stored.values() for name in columns[ks[0]]}
        for name, ks in places.items():
            column, k = columns[ks[0]], ks[0]
            if name in stored:
                if any(self._found[each] > len(ks) for each in column):
                    run.kept.append(k)
            elif len(set(column)) > 1 or name in changed:
                run.varying.append(k)
            else:
                run.constant.append(name)
        return columns, stored, changed

    def _cut_the_rest(self):
        """Cut long stretches between runs into runs of one piece."""
        ends = [0]
        for first, run in sorted(self.runs.items()):
            ends += [first, first + run.length * run.count]
        ends.append(len(self._statements))
        stretches = [range(*pair) for pair in list(pairwise(ends))[::2]]
        heights = {k: height((self._statements[k].node,)) for each in stretches for k in each}
        stretches = [each for each in stretches if sum(map(heights.get, each)) > CUT_STATEMENTS]
        changed = self._changed_in_several() if stretches else set()
        for stretch in stretches:
            begin, size = stretch.start, 0
            for k in (*stretch, stretch.stop):
                stays = k == stretch.stop or not changed.isdisjoint(self._statements[k].stores())
                if stays or size >= CUT_STATEMENTS:
                    if size >= self._fewest:
                        self._add_one_piece(begin, k)
                    begin, size = k + stays, 0
                size += 0 if stays else heights[k]

    def _changed_in_several(self):
        """Names that more than one statement of the function gives values to."""
        found = Counter(name for each in self._statements for name in each.stores())
        return {name for name, count in found.items() if count > 1}

    def _add_one_piece(self, begin, end):
        piece = self._statements[begin:end]
        nodes = [each.node for each in piece]
        leaves = [leaf for each in piece for leaf in each.outline.leaves]
        roles = [role for each in piece for role in each.outline.roles]
        run = Run(begin, end - begin, 1, [nodes], self._names, roles, [leaves])
        self._find_moved(run, _stores(nodes))
        self.runs[begin] = run

    def _read_from_frame(self, run):
        """Have the one piece of a run read what the frame has from there: it may be thousands."""
        if run.count == 1:
            places = {run.tokens[0][k]: k for k, role in enumerate(run.roles) if role in _NAMES}
            run.varying = [places[name] for name in run.constant if name in self.frame]
            run.constant = [name for name in run.constant if name not in self.frame]


def _pattern(tokens):
    """Which names of a piece are the same."""
    order: dict = {}
    return tuple(order.setdefault(token, len(order)) for token in tokens if type(token) is str)


def _stores(piece):
    """Names that a piece gives values to."""
    return {name for statement in statements_in(piece) for name in stored_by(statement)}
