"""Runs of statements that are alike but for names and integers, for a loop over them.

Large graphs are mostly such *runs*: layers, steps and parameters written out. A run becomes a
function of its first *piece*, and a table with a row for each piece: integers that differ, and
where in a *frame* of memory the values of names are that differ. So LLVM is given a hundredth of
the code.
"""

import ast
import keyword
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from nbta.tuning import FRAME_VALUES, PIECE_STATEMENTS, RUN_PIECES

_TOKEN = re.compile(r"(?<![\w.])([A-Za-z_]\w*|\d+(?![\w.]))")
_COMMENT = re.compile(r"^ *#.*\n?", re.MULTILINE)
_WORDS = frozenset((*keyword.kwlist, "range"))
#: Functions that give a pointer of a scope, which is their last argument.
_SCOPED = frozenset(("pointer", "room", "array_in"))
#: Which arguments of functions may be computed.
_FREE = {
    "room": [2], "array_in": [2], "extent_in": [1], "agrees": [1], "adopt": [1, 2], "refuse": [-1],
}  # fmt: skip
_NAMED, _FIXED, _FREED, _SCOPE = range(4)


@dataclass(eq=False)
class Run:
    """Pieces that follow one another.

    Attributes
    ----------
    first, length, count : int
        The first statement, statements of a piece, and pieces.
    text : list of str
        The first piece in parts: each second one is a token.
    roles : list of int
        Of the tokens.
    tokens : list of list of str
        Those of each piece.
    constant : list of str
        Names that all pieces read.
    varying, kept : list of int
        Tokens by which pieces read other names each, and store what is read elsewhere.
    """

    first: int
    length: int
    count: int
    text: list
    roles: list
    tokens: list
    constant: list = field(default_factory=list)
    varying: list = field(default_factory=list)
    kept: list = field(default_factory=list)

    def numbers(self):
        """Tokens that are other integers in other pieces."""
        freed = (k for k, role in enumerate(self.roles) if role == _FREED)
        return [k for k in freed if len({piece[k] for piece in self.tokens}) > 1]

    def scopes(self):
        """Tokens that are numbers of scopes, each with the name that is given a pointer of it."""
        name, found = None, []
        for k, role in enumerate(self.roles):
            if role == _SCOPE:
                found.append((k, self.tokens[0][name]))
            elif self.text[2 * k + 2].startswith(" = "):
                name = k
        return found

    def handed_on(self):
        """Names of the first piece that it only makes, or hands on as addresses."""
        tokens, found, others = self.tokens[0], set(), set()
        for k, name in enumerate(tokens):
            is_apart = self.text[2 * k + 2].startswith(" = ") or tokens[k - 1 : k] == ["address"]
            (found if is_apart else others).add(name)
        return found - others

    def source(self, tokens, replaced):
        """A piece, with other text for some tokens."""
        parts = list(self.text)
        parts[1::2] = tokens
        for k, text in replaced.items():
            parts[2 * k + 1] = text
        return "".join(parts)


class _Statement(NamedTuple):
    parts: list
    tokens: list
    kind: object


class Runs:
    """The runs of a function.

    Parameters
    ----------
    texts : list of str
        Of its statements.
    names : container of str
        What is no variable.
    single : set of str
        Variables that are one value each.
    fewest : int
        Pieces that a run is to have at least.
    wanted : set of int, optional
        Statements of which each piece has one.
    """

    def __init__(self, texts, names, single, fewest=RUN_PIECES, wanted=None):
        self._names, self._single, self._fewest, self._wanted = names, single, fewest, wanted
        statements = list(map(self._statement, texts))
        shapes = Counter(statement.kind for statement in statements)
        self._statements = [
            statement._replace(kind=_alike(statement) if shapes[statement.kind] >= fewest else k)
            for k, statement in enumerate(statements)
        ]
        self._found = Counter()
        for statement in self._statements:
            self._found.update(statement.tokens)
        #: By the number of the first statement.
        self.runs = {}
        for start, length, count in self._repeated():
            for run in self._cut(start, length, count):
                self.runs[run.first] = run
        moved = [piece[k] for run in self.runs.values()
                 for piece in run.tokens for k in (*run.varying, *run.kept)]  # fmt: skip
        #: Place in the frame by name.
        self.frame = {name: k for k, name in enumerate(dict.fromkeys(moved))}
        if len(self.frame) > FRAME_VALUES:
            self.runs, self.frame = {}, {}

    def _statement(self, text):
        parts = _TOKEN.split(_COMMENT.sub("", text) if "#" in text else text)
        tokens = parts[1::2]
        return _Statement(parts, tokens, (tuple(parts[::2]), tuple(map(self._kind, tokens))))

    def _kind(self, token):
        if token.isdigit():
            return "#"
        return token if token in _WORDS or token in self._names else "$"

    def _repeated(self):
        """First statement, length and count of pieces alike; those that save most come first."""
        numbers: dict = {}
        kinds = np.array([numbers.setdefault(s.kind, len(numbers)) for s in self._statements])
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
        tokens = [[token for statement in piece for token in statement.tokens] for piece in pieces]
        roles = [r for statement in pieces[0] for r in _roles(*statement.kind[0])]
        patterns = [_pattern(each) for each in tokens]
        at = 0
        for _, group in groupby(patterns):
            size = len(list(group))
            if size >= self._fewest:
                text = [[*s.parts[:-1], s.parts[-1] + "\n"] for s in pieces[at]]
                run = Run(start + at * length, length, size, _joined(text), roles,
                          tokens[at : at + size])  # fmt: skip
                if self._fits(run, _stores(pieces[at])):
                    yield run
            at += size

    def _fits(self, run, stores):
        """Whether a run can be a loop; finds what its pieces read and keep."""
        columns = list(zip(*run.tokens, strict=True))
        places = defaultdict(list)
        for k, role in enumerate(run.roles):
            if role == _NAMED and self._kind(run.tokens[0][k]) == "$":
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
        own = len(changed) == len(stored) * run.count
        moved = (name for k in (*run.varying, *run.kept) for name in columns[k])
        return own and self._single.issuperset(moved)


def _alike(statement):
    """What statements that may be pieces of one run have in common."""
    roles = zip(statement.tokens, _roles(*statement.kind), strict=True)
    return statement.kind, tuple(token for token, role in roles if role == _FIXED)


def _joined(statements):
    """Parts of statements one behind another, so that each second one is a token."""
    parts = [""]
    for each in statements:
        parts[-1] += each[0]
        parts += each[1:]
    return parts


def _pattern(tokens):
    """Which tokens of a piece are the same."""
    order: dict = {}
    return tuple(order.setdefault(token, len(order)) for token in tokens if not token.isdigit())


def _stores(piece):
    """Names that a piece gives values to."""
    tree = ast.parse("\n".join("".join(statement.parts) for statement in piece))
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {node.id for node in names if isinstance(node.ctx, ast.Store)}


@lru_cache(4096)
def _roles(between, kinds):
    """The role of each token in a statement, by what is between them."""
    first, tokens = 10**9, []
    for k, kind in enumerate(kinds):
        tokens.append({"$": f"_{k}", "#": str(first + k)}.get(kind, kind))
    text = "".join(part for pair in zip(between, [*tokens, ""], strict=True) for part in pair)
    roles = [_FIXED if kind == "#" else _NAMED for kind in kinds]
    for node in ast.walk(ast.parse(text)):
        for place, role in _places(node):
            if isinstance(place, ast.Constant) and type(place.value) is int:
                roles[place.value - first] = role
    return roles


def _places(node):
    """What may be an integer of the row, or is a scope, in an expression."""
    match node:
        case ast.Subscript(_, place):
            return [(place, _FREED)]
        case ast.Call(ast.Name("call"), [_, ast.Tuple(items)]):
            return [(item, _FREED) for item in items]
        case ast.Call(ast.Name(name), arguments):
            freed = [(arguments[k], _FREED) for k in _FREE.get(name, ())]
            return [*freed, (arguments[-1], _SCOPE)] if name in _SCOPED else freed
    return []
