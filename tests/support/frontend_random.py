"""Random programs with loops, branches and item assignment, as text, and what they must give.

Each runs under plain Python, traced, as generated code, and on request under Numba; its gradient is
held to central differences. Nothing but the same numbers, or an error of nbta's that says why and
where, is right. Values stay bounded, as what is assigned passes a sine or a tanh.

Differences mean nothing where a decision changes. So a second form of each program notes all
comparisons, and what is near to another decision, or changes one under the perturbation, is
counted and left out.
"""

import ast
import copy
import itertools
import linecache
import math
import random
import re
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
from frontend_refused import said
from fuzz.ways import DisagreementError, count, executed
from numba.core.errors import NumbaError

import nbta

HEAD = (
    "import math\n\nimport numpy as np\nfrom numba import njit\n\n\n"
    "class Bag:\n    def __init__(self, value):\n        self.value = value\n\n\n"
)
ARGNUMS = (0, 1, 2)


# Making programs.


@dataclass
class Scope:
    """Names that are defined for sure, by what they are.

    Arrays have the name of their length: "n", "less" (one less), "three" or "any"; ``below`` are
    integers from 0 to n - 1, ``loops`` how deep the place is in loops, ``blocks`` in blocks.
    ``dicts`` have numbers for "p" and "q", ``bags`` one as an attribute, ``maybes`` are numbers or
    None, ``functions`` take a number; ``cells`` are arrays without axes.
    """

    floats: list = field(default_factory=list)
    ints: list = field(default_factory=list)
    below: list = field(default_factory=list)
    arrays: dict = field(default_factory=dict)
    matrices: list = field(default_factory=list)
    lists: list = field(default_factory=list)
    dicts: list = field(default_factory=list)
    bags: list = field(default_factory=list)
    maybes: list = field(default_factory=list)
    functions: list = field(default_factory=list)
    cells: list = field(default_factory=list)
    loops: int = 0
    blocks: int = 0
    is_callee: bool = False

    def inner(self, loops=0):
        """Of a block: what it defines is unknown after it."""
        new = copy.deepcopy(self)
        new.loops += loops
        return new


class Choices:
    """Chooses by random numbers what a program consists of.

    Attributes
    ----------
    largest : float
        Of constants.
    """

    largest = 1.2

    def __init__(self, seed):
        self.random, self.numbers = random.Random(seed), itertools.count()

    def pick(self, choices):
        return self.random.choice(list(choices))

    def chance(self, share):
        return self.random.random() < share

    def fresh(self, letter):
        return f"{letter}{next(self.numbers)}"

    def constant(self):
        return str(round(self.random.uniform(-self.largest, self.largest), 2))


class Writer(Choices):
    """Writes programs by statements; `statement` gives lines of one.

    Attributes
    ----------
    left : int
        How many statements are to come.
    """

    def __init__(self, seed, fewest, most):
        super().__init__(seed)
        self.left = self.random.randint(fewest, most)

    def block(self, scope, most=4):
        lines = []
        for _ in range(self.random.randint(1, most)):
            if self.left > 0 or not lines:
                self.left -= 1
                lines += self.statement(scope)
        return lines


class Maker(Writer):
    """Writes one program."""

    def __init__(self, seed, wrong=False):
        super().__init__(seed, 5, 16)
        self.renames = 0.2  # of views, how many take a name that another array had
        self.wrong, self.all_right = wrong, not wrong
        self.callees = []

    # Expressions.

    def integer(self, scope):
        """One that may be anything."""
        kinds = [*scope.ints, *scope.below, "k", "n"]
        kinds += [f"len({name})" for name in scope.lists]
        return self.pick(kinds)

    def index(self, scope, array):
        """One that is in the array."""
        if scope.arrays.get(array) == "n" and scope.below and self.chance(0.7):
            i = self.pick(scope.below)
            return self.pick([i, i, f"{i} - 1", f"n - 1 - {i}", f"-{i} - 1"])
        if self.chance(0.5):
            return self.pick(["0", "-1", "1", "2"])
        k = self.integer(scope)
        return self.pick([f"{k} % len({array})", f"({k} * 2 + 1) % len({array})"])

    def item(self, scope):
        if scope.matrices and self.chance(0.25):
            m = self.pick(scope.matrices)
            k = self.pick(scope.below) if scope.below else f"{self.integer(scope)} % n"
            column = self.pick(["0", "2", "-1", f"{self.integer(scope)} % 3"])
            return self.pick([f"{m}[{k}, {column}]", f"{m}[{k}][{column}]"])
        array = self.pick(scope.arrays)
        return f"{array}[{self.index(scope, array)}]"

    def atom(self, scope):
        if self.chance(0.08):
            return f"0.1 * ({self.integer(scope)} % 5)"
        if self.chance(0.15) and (scope.dicts or scope.bags or scope.functions or scope.cells):
            return self.of_state(scope)
        if scope.lists and self.chance(0.2):
            one = self.pick(scope.lists)
            return self.pick([f"{one}[-1]", f"{one}[{self.integer(scope)} % len({one})]"])
        float_ = self.pick([*scope.floats, "c"])
        return self.pick([float_, float_, self.item(scope), self.item(scope), self.constant()])

    def of_state(self, scope):
        kinds = [f'{d}["{self.pick("pq")}"]' for d in scope.dicts]
        kinds += [f"{bag}.value" for bag in scope.bags] + scope.cells
        return self.pick([*kinds, *(f"{g}({self.constant()})" for g in scope.functions)])

    def expression(self, scope, depth=2):
        if depth == 0 or self.chance(0.2):
            return self.atom(scope)
        if self.chance(0.1):
            return self.reduction(scope)
        a, b = self.expression(scope, depth - 1), self.expression(scope, depth - 1)
        return self.pick(
            [
                f"{a} + {b}", f"{a} - {b}", f"({a}) * ({b})", f"({a}) / (1.5 + ({b}) ** 2)",
                f"math.sin({a})", f"np.cos({a})", f"math.exp(-abs({a}))", f"max({a}, {b})",
                f"-({a})", f"np.tanh({a} - {b})", f"math.sqrt(1.0 + ({a}) ** 2)",
                f"({a} if {self.condition(scope, 0)} else {b})", f"min({a}, 0.4)",
            ]
        )  # fmt: skip

    def same_length(self, scope, one):
        return self.pick([a for a, n in scope.arrays.items() if n == scope.arrays[one]])

    def reduction(self, scope):
        a = self.pick(scope.arrays)
        b = a if scope.arrays[a] == "any" else self.same_length(scope, a)
        kinds = [f"np.sum({a})", f"{a}.sum()", f"np.dot({a}, {b})", f"np.sum({a} * {b})"]
        k, e = self.integer(scope), self.constant()
        kinds += [f"np.sum({a}[: {k} % len({a}) + 1] ** 2)", f"{a}.mean()", f"np.cumsum({a})[-1]"]
        kinds += [f"np.sum({a}[{k} % len({a}) :])", f"np.sum({a}[{a} > {e}])", f"({a} @ {b})"]
        kinds += [f"np.sum(np.where({a} > {e}, {a}, 0.5 * {b}))", f"np.max({a})", f"{b}.min()"]
        kinds += [f"np.sum(np.maximum({a}, {e}) * {b})", f"np.clip({a}, -0.4, 0.6).sum()"]
        kinds += [f"sum(q * q for q in {a})", f"sum([0.3 * q for q in {a} if q > {e}])"]
        kinds += [f"sum(p * q for p, q in zip({a}, {b}))", f"np.outer({a}, {b}).sum()"]
        kinds += [f"{a}[np.argmax({b})]", f"np.abs({a}).sum()", f"np.sort({a})[1]"]
        kinds += [f"sum([{b}[j] for j in range({k} % len({a}))])", f"np.diff({a}).sum()"]
        kinds += [f"sum([{a}[0] > {e}, {b}[-1] > {e}, {k} > 2])"]
        if scope.matrices:
            m = self.pick(scope.matrices)
            kinds += [
                f"{m}.sum(axis=0)[1]",
                f"np.sum({m}.sum(axis=1) ** 2)",
                f"np.sum({m}.T @ {m})",
            ]
            kinds += [
                f"np.mean({m}[:, 0] * {m}[:, 2])",
                f"np.max(np.sum({m}, 0))",
                f"({m} @ {m}[0]).sum()",
            ]
            kinds += [f"sum(r[0] for r in {m})", f"{m}[::-1].T[1, 0]", f"np.trace({m}[:3])"]
        return "0.1 * " + self.pick(kinds)

    def bounded(self, scope, depth=2):
        return f"{self.pick(['math.sin', 'math.tanh', 'np.tanh'])}({self.expression(scope, depth)})"

    def condition(self, scope, depth=1):
        if depth and self.chance(0.35):
            a, b = self.condition(scope, 0), self.condition(scope, 0)
            return self.pick([f"{a} and {b}", f"{a} or {b}", f"not ({a})", f"not {a} and {b}"])
        if self.chance(0.25):
            k = self.integer(scope)
            return self.pick([f"{k} % 2 == 0", f"{k} % 3 != 1", f"{k} > 2", f"1 <= {k} < 6"])
        e = self.expression(scope, depth)
        if self.chance(0.15):
            return f"-0.31 {self.pick(['<', '<='])} {e} < 0.43"
        return f"{e} {self.pick(['<', '<=', '>', '>='])} {self.constant()}"

    # Statements: each gives lines.

    def statement(self, scope):
        kinds = {
            self.set_float: 4, self.set_item: 6, self.change_slice: 3, self.make_array: 2,
            self.make_view: 3, self.set_int: 1, self.swap: 2, self.make_list: 1.5,
            self.make_state: 1.5, self.walrus: 0.7, self.unpack: 0.7, self.comprehend: 1.5,
            self.change_where: 1.5, self.set_in_turn: 0.7, self.change_cell: 0.7,
        }  # fmt: skip
        kinds |= {self.use_state: 3 if scope.dicts or scope.bags or scope.maybes else 0}
        kinds |= {self.change_matrix: 2.5 if scope.matrices else 0}
        if scope.loops < 3:
            kinds |= {self.call: 3 if self.callees else 0}
        if self.left > 0:
            more = scope.loops < 3
            kinds |= {self.for_loop: 7 * more, self.while_loop: 2 * more, self.branch: 4}
            kinds |= {self.cases: 0.7, self.search: 1 * more, self.inner_function: 0.7}
            kinds |= {self.leave: 0 if scope.is_callee else 0.4}
            kinds |= {self.way_out: 1.5 if scope.loops else 0}
        kinds |= {self.use_list: 4 if scope.lists else 0}
        kinds |= {self.mistake: 3 if self.wrong else 0}
        return self.random.choices(list(kinds), list(kinds.values()))[0](scope)

    def set_float(self, scope):
        e = self.bounded(scope)
        if self.chance(0.25):
            name = self.fresh("s")
            scope.floats.append(name)
            return [f"{name} = {e}"]
        s = self.pick([name for name in scope.floats if name != "w"])
        kinds = [f"{s} = {e}", f"{s} = 0.7 * {s} + 0.3 * {e}", f"{s} += 0.1 * {e}", f"{s} *= {e}"]
        return [self.pick([*kinds, f"{s} -= 0.2 * {e}", f"{s} /= 1.5 + {e}"])]

    def set_item(self, scope):
        place, e = self.item(scope), self.bounded(scope)
        return [self.pick([f"{place} = {e}", f"{place} += 0.2 * {e}", f"{place} *= {e}"])]

    def set_int(self, scope):
        if scope.ints and self.chance(0.5):
            k, other = self.pick(scope.ints), self.integer(scope)
            return [
                self.pick([f"{k} += 1", f"{k} = ({k} * 3 + 1) % 7", f"{k} = ({k} + {other}) % 9"])
            ]
        name, e = self.fresh("k"), self.expression(scope, 1)
        scope.ints.append(name)
        return [f"{name} = " + self.pick(["0", f"int(3.0 * abs(math.sin({e})))", "n // 2"])]

    def set_in_turn(self, scope):
        """Several targets at once, of which one decides where another is."""
        a, e = self.pick(scope.arrays), self.bounded(scope, 1)
        if not scope.ints:
            return self.set_int(scope)
        k, other = self.pick(scope.ints), self.integer(scope)
        place = f"{a}[{k} % len({a})]"
        return [
            self.pick(
                [
                    f"{place}, {k} = {e}, ({other} + 1) % 9", f"{k}, {place} = {other} % 9, {e}",
                    f"{place} = {k} = {other} % 7", f"{place}, {k}, {place} = 0.3, {k} + 1, {e}",
                ]
            )
        ]  # fmt: skip

    def change_cell(self, scope):
        """An array without axes, or another name of one, that is made or changed."""
        if not scope.cells or self.chance(0.4):
            name = self.fresh("z")
            texts = ["np.zeros(())", f"np.array({self.expression(scope, 1)})", "np.full((), 0.5)"]
            text = self.pick([*texts, *scope.cells])
            scope.cells.append(name)
            return [f"{name} = {text}"]
        z, e = self.pick(scope.cells), self.bounded(scope, 1)
        return [self.pick([f"{z} += 0.2 * {e}", f"{z} *= {e}", f"{z}[...] = {e}"])]

    def change_slice(self, scope):
        a = self.pick(scope.arrays)
        b = a if scope.arrays[a] == "any" else self.same_length(scope, a)
        k, e = f"{self.integer(scope)} % len({a})", self.bounded(scope, 1)
        return [
            self.pick(
                [
                    f"{a}[1:] = {b}[:-1]", f"{a}[:-1] += 0.3 * {b}[1:]", f"{a}[:] = {e}",
                    f"{a}[:] = {b}[::-1]", f"{a} += 0.2 * {b}", f"{a} *= {e}",
                    f"{a}[{k} :] *= 0.9", f"{a}[: {k}] += {e}", f"{a}[::2] = {e}",
                    f"{a}[:] = np.tanh({b} + {e})", f"{a}[1:] = np.sin({b}[1:] * {e})",
                    f"{a}[::-2] *= 0.8", f"{a}[{k} : {k} + 2] = {e}", f"{a}[{k}::-1] += 0.1 * {e}",
                    f"{a}[1:-1] = 0.25 * ({b}[:-2] + 2.0 * {b}[1:-1] + {b}[2:])",
                ]
            )
        ]  # fmt: skip

    def make_array(self, scope):
        if self.chance(0.25):
            m = self.fresh("m")
            scope.matrices.append(m)
            row = self.pick(scope.below) if scope.below else "0"
            return [f"{m} = np.zeros((n, 3))", f"{m}[{row}, 1] = {self.atom(scope)}"]
        old, name = self.pick(scope.arrays), self.fresh("a")
        length = scope.arrays[old]
        kinds = [f"{old}.copy()", f"0.5 * {old}", f"np.cos({old})", f"np.zeros_like({old})"]
        kinds = [(length, text) for text in kinds]
        kinds += [("n", "np.zeros(n)"), ("three", "np.ones(3)"), ("less", "np.full(n - 1, 0.25)")]
        scope.arrays[name], text = self.pick(kinds)
        return [f"{name} = {text}"]

    def make_view(self, scope):
        """Another name, or a part of an array; sometimes for a name that is there."""
        old = self.pick(scope.arrays)
        length = scope.arrays[old]
        kinds = [(length, old), (length, f"{old}[::-1]"), (length, f"{old}[:]")]
        if length == "n":
            kinds += [("less", f"{old}[1:]"), ("less", f"{old}[:-1]")]
        if scope.matrices:
            m = self.pick(scope.matrices)
            k = self.pick(scope.below) if scope.below else "n - 1"
            kinds += [("three", f"{m}[{k}]"), ("n", f"{m}[:, 1]"), ("three", f"{m}.T[:, {k}]")]
            kinds += [("any", f"{m}.reshape(-1)")]
        length, text = self.pick(kinds)
        known = [a for a, n in scope.arrays.items() if n == length and a not in ("x", "y")]
        name = self.pick(known) if known and self.chance(self.renames) else self.fresh("v")
        scope.arrays[name] = length
        return [f"{name} = {text}"]

    def swap(self, scope):
        own = {a: n for a, n in scope.arrays.items() if a not in ("x", "y")}
        floats = [s for s in scope.floats if s != "w"]
        if own and self.chance(0.5):
            a = self.pick(own)
            others = [b for b, n in own.items() if n == own[a] != "any" and b != a]
            if others:
                b = self.pick(others)
                return [f"{a}, {b} = {b}, {a}"]
        if len(floats) > 1 and self.chance(0.4):
            s, t = self.random.sample(floats, 2)
            return [f"{s}, {t} = {t}, 0.9 * {s}"]
        a = self.pick(scope.arrays)
        i, j = self.index(scope, a), self.index(scope, a)
        return [f"{a}[{i}], {a}[{j}] = {a}[{j}], {a}[{i}]"]

    def change_matrix(self, scope):
        m, e = self.pick(scope.matrices), self.bounded(scope, 1)
        k = self.pick(scope.below) if scope.below else f"{self.integer(scope)} % n"
        a = self.pick([a for a, length in scope.arrays.items() if length == "n"] or [e])
        kinds = [f"{m}[{k}] += 0.1 * {e}", f"{m}[:, 1] *= {e}", f"{m}[{k}, :] = {e}", f"{m} *= 0.9"]
        kinds += [f"{m}[1:, 0] = {m}[:-1, 2]", f"{m}[{k}, 1:] -= 0.2 * {m}[{k}, :-1]"]
        kinds += [f"{m}[:, 2] += 0.1 * {a}", f"{m}[{m} > {self.constant()}] *= 0.5"]
        kinds += [
            f"{m}[:] = np.tanh({m} + {e})",
            f"{m}[[0, 1]] = {m}[[1, 0]]",
            f"{m}[{k}] = {m}[0]",
        ]
        kinds += [f"{m}[::2, ::-1] += 0.1 * {e}", f"{m}[{k}, {k} % 3] = {e}"]
        rows = [f"for r in {m}:", f"    r[0] = 0.5 * r[2] + 0.1 * {e}"]
        return self.pick([*([kind] for kind in kinds), rows])

    def change_where(self, scope):
        """By masks, or choosing between two arrays."""
        a, e, c = self.pick(scope.arrays), self.bounded(scope, 1), self.constant()
        b = a if scope.arrays[a] == "any" else self.same_length(scope, a)
        kinds = [
            [f"{a}[{b} > {c}] = {e}"],
            [f"{a}[{a} <= {c}] *= 0.7"],
            [f"{a}[~({b} < {c})] += {e}"],
        ]
        kinds += [
            [f"{a}[({b} > {c}) & ({a} < 0.5)] -= 0.3"],
            [f"{a}[:] = np.where({b} > {c}, {a}, {e})"],
        ]
        kinds += [[f"{a}[:] = np.minimum({a}, {e})"], [f"{a}[np.argmin({b})] = {e}"]]
        kinds += [[f"{a}[np.argsort({b})[:2]] *= 0.6"], [f"{a}[[0, -1]] = {e}"]]
        kinds += [[f"mask = {b} > {c}", f"{a}[mask] = 0.5 * {b}[mask]"]]
        return self.pick(kinds)

    def comprehend(self, scope):
        a, e, name = self.pick(scope.arrays), self.bounded(scope, 1), self.fresh("a")
        length = scope.arrays[a]
        kinds = [f"np.array([0.5 * q + 0.1 * {e} for q in {a}])"]
        kinds += [f"np.array([{a}[j] * {a}[-1] for j in range(len({a}))])"]
        kinds += [f"np.array([math.sin(q) if q > {self.constant()} else 0.2 for q in {a}])"]
        kinds += [f"np.array([q + 0.1 * p for p, q in enumerate({a})])"]
        if self.chance(0.3):
            name = self.fresh("l")
            scope.lists.append(name)
            return [f"{name} = [0.1] + [math.tanh(q) for q in {a} if q < {self.constant()}]"]
        scope.arrays[name] = length
        return [f"{name} = {self.pick(kinds)}"]

    def walrus(self, scope):
        name, e = self.fresh("s"), self.bounded(scope, 1)
        scope.floats.append(name)
        s = self.pick([s for s in scope.floats if s not in ("w", name)] or [name])
        return [f"if ({name} := {e}) > {self.constant()}:", f"    {s} = 0.5 * {name}"]

    def unpack(self, scope):
        s, t = self.fresh("s"), self.fresh("s")
        a, e = self.pick(scope.arrays), self.bounded(scope, 1)
        scope.floats += [s, t]
        kinds = [
            f"{s}, {t} = {e}, {a}[0]",
            f"{s}, {t} = {a}[:2]",
            f"({s}, {t}) = sorted([{e}, {a}[1]])",
        ]
        if scope.matrices:
            kinds += [f"{s}, _, {t} = {self.pick(scope.matrices)}[-1]"]
        return [self.pick(kinds)]

    def make_state(self, scope):
        """What holds numbers under names, or may be None."""
        kind, e = self.pick(["dict", "bag", "maybe"]), self.bounded(scope, 1)
        if kind == "dict":
            scope.dicts.append(name := self.fresh("d"))
            return [f'{name} = {{"p": {e}, "q": {self.constant()}}}']
        if kind == "bag":
            scope.bags.append(name := self.fresh("o"))
            return [f"{name} = Bag({e})"]
        scope.maybes.append(name := self.fresh("z"))
        return [f"{name} = None"]

    def use_state(self, scope):
        e, places = self.bounded(scope, 1), [f'{d}["{self.pick("pq")}"]' for d in scope.dicts]
        places += [f"{bag}.value" for bag in scope.bags]
        if scope.maybes and (not places or self.chance(0.5)):
            z, s = self.pick(scope.maybes), self.pick([s for s in scope.floats if s != "w"])
            use = [f"if {z} is not None:", f"    {s} = 0.5 * {z}"]
            better = [f"if {z} is None or {e} > {z}:", f"    {z} = {e}"]
            last = [f"{s} += 0.1 if {z} is None else 0.2 * {z}"]
            return self.pick([use, better, better, last, [f"{z} = {e}"], [f"{z} = None"]])
        place = self.pick(places)
        return [self.pick([f"{place} = {e}", f"{place} += 0.2 * {e}", f"{place} *= {e}"])]

    def inner_function(self, scope):
        """A function in the function, which may change variables around it."""
        name, s = self.fresh("g"), self.pick([s for s in scope.floats if s != "w"])
        scope.functions.append(name)
        a, e = self.pick(scope.arrays), self.bounded(Scope(["q", "c"], arrays={"x": "n"}), 1)
        kinds = [[f"return {e} + 0.1 * {s}"], [f"if q > {s}:", f"    return {e}", "return 0.3 * q"]]
        kinds += [[f"{a}[0] += 0.1 * q", f"return {e}"], [f"return math.sin(q * {a}[-1])"]]
        return [f"def {name}(q):", *indented(self.pick(kinds))]

    def cases(self, scope):
        lines, s = [f"match {self.integer(scope)} % 4:"], self.pick(scope.floats)
        for case in ("0", "1 | 2"):
            lines += [f"    case {case}:", *indented(indented(self.block(scope.inner(), 2)))]
        if self.chance(0.5):
            lines += ["    case _:", f"        {s} = 0.9 * {s} + 0.05"]
        return lines

    def search(self, scope):
        """A loop that ends where something is found, or goes through to its `else`."""
        a, i, s = self.pick(scope.arrays), self.fresh("k"), self.pick(scope.floats)
        other = self.pick([s for s in scope.floats if s != "w"])
        condition = f"{a}[{i}] {self.pick('<>')} {self.pick([self.constant(), other])}"
        if self.chance(0.5):
            inner = scope.inner(1)
            head = f"for {i} in range({self.pick(['', 'len(' + a + ') // 2, '])}len({a})):"
            stop = [f"    if {condition}:", f"        {s} += 0.1 * {a}[{i}]", "        break"]
            body = indented(self.block(inner, 2))
        else:
            head = f"while {i} < len({a}) - 1:"
            stop = [f"    if {condition}:", f"        {s} += 0.05 * {i}", "        break"]
            body = [f"    {i} += 1"]
        last = ["else:", f"    {other} = 0.5 * {other} + 0.1"]
        return [f"{i} = 0", head, *stop, *body, *last]

    def make_list(self, scope):
        name, e = self.fresh("l"), self.bounded(scope, 1)
        scope.lists.append(name)
        return [f"{name} = [{e}]"]

    def use_list(self, scope):
        one, e = self.pick(scope.lists), self.bounded(scope, 1)
        s = self.pick([s for s in scope.floats if s != "w"])
        return self.pick(
            [
                [f"{one}.append({e})"],
                [f"{one}.append({e})", f"{one}.append({s})"],
                [f"if {self.condition(scope)}:", f"    {one}.append({e})"],
                [f"if len({one}) > 1:", f"    {s} += 0.1 * {one}.pop()"],
                [f"for q in {one}:", f"    {s} = 0.8 * {s} + 0.1 * q"],
                [f"{one}[{self.integer(scope)} % len({one})] = {e}"],
                [f"{one}[-1] += {e}"],
            ]
        )

    def iterations(self, scope):
        """A range, and whether its numbers are below n."""
        kinds = [("n", 1), ("1, n", 1), ("n - 1, -1, -1", 1), ("0, n, 2", 1), ("3", 1), ("k", 0)]
        kinds += [(str(self.pick([9, 10])), 0), (f"{self.integer(scope)} % 4", 1)]
        kinds += [
            (f"int(4.0 * abs(math.sin({self.expression(scope, 1)})))", 1),
            ("n - 1, 0, -2", 1),
        ]
        if scope.below:
            j = self.pick(scope.below)
            kinds += [(j, 1), (f"{j}, n", 1), (f"{j}, -1, -1", 1)]
        inside, is_below = self.pick(kinds)
        return f"range({inside})", is_below

    def for_loop(self, scope):
        inner = scope.inner(1)
        if self.chance(0.2):
            a, i, v = self.pick(scope.arrays), self.fresh("i"), self.fresh("q")
            inner.floats.append(v)
            head = f"for {v} in {a}:"
            if scope.arrays[a] != "any" and self.chance(0.4):
                inner.below.append(i)
                head = f"for {i}, {v} in enumerate({a}):"
            elif scope.arrays[a] != "any" and self.chance(0.4):
                inner.floats.append(u := self.fresh("q"))
                order = self.pick(["", "reversed"])
                other = self.same_length(scope, a)
                other = f"reversed({other})" if order else other
                head = f"for {v}, {u} in zip({a}, {other}):"
        else:
            (iterations, is_below), i = self.iterations(scope), self.fresh("i")
            (inner.below if is_below else inner.ints).append(i)
            head = f"for {i} in {iterations}:"
        lines = [head, *indented(self.block(inner))]
        if self.chance(0.1):
            lines += ["else:", f"    {scope.floats[-1]} += 0.25"]
        return lines

    def while_loop(self, scope):
        k, most = self.fresh("k"), self.random.randint(2, 10)
        body, condition = self.block(scope.inner(1)), self.condition(scope, 0)
        scope.ints.append(k)
        head = [f"while {k} < {most} and {condition}:", f"    {k} += 1"]
        if self.chance(0.5):
            stop = [f"    if {k} > {most} or {condition}:", "        break"]
            head = ["while True:", f"    {k} += 1", *stop]
        if self.chance(0.2):
            body += ["w += 0.01"]
            last = ["else:", f"    {self.pick(scope.floats)} -= 0.125"]
            return [f"{k} = 0", *head, *indented(body), *last]
        return [f"{k} = 0", *head, *indented(body)]

    def branch(self, scope):
        if self.chance(0.2):
            name, condition = self.fresh("s"), self.condition(scope)
            lines = [f"if {condition}:", f"    {name} = {self.bounded(scope)}"]
            lines += ["else:", f"    {name} = {self.bounded(scope, 1)}"]
            scope.floats.append(name)
            return lines
        lines = [f"if {self.condition(scope)}:", *indented(self.block(scope.inner(), 3))]
        if self.chance(0.3):
            lines += [f"elif {self.condition(scope)}:", *indented(self.block(scope.inner(), 2))]
        if self.chance(0.5):
            lines += ["else:", *indented(self.block(scope.inner(), 3))]
        return lines

    def way_out(self, scope):
        return [f"if {self.condition(scope)}:", "    " + self.pick(["break", "continue"])]

    def leave(self, scope):
        return [f"if {self.condition(scope)}:", f"    return w + {self.expression(scope)}"]

    def call(self, scope):
        name, length, two = self.pick(self.callees)
        known = {a: n for a, n in scope.arrays.items() if length == "any" or n == length}
        if not known:
            return self.set_float(scope)
        a = self.pick(known)
        b = self.pick([b for b, n in known.items() if n == known[a] != "any"] or [a])
        s = self.pick([s for s in scope.floats if s != "w"])
        call = f"{name}({a}, {b}, {self.atom(scope)})"
        if two:
            t = self.fresh("s")
            scope.floats.append(t)
            return [f"{s}, {t} = {call}", f"{s} = math.sin({s})"]
        drop = call if self.all_right else f"w += {call}"  # no mistake goes unseen
        return [
            self.pick([f"{s} = 0.5 * math.sin({call})", drop, f"{s} += 0.1 * math.tanh({call})"])
        ]

    def mistake(self, scope):
        """A line that is wrong, for all or some values; what it gives is used."""
        self.wrong = False
        a = self.pick(scope.arrays)
        kinds = [[f"w += {a}[len({a}) + 1]"], [f"w += {a}[-len({a}) - 1]"]]
        kinds += [[f"{a}[{self.integer(scope)} + len({a})] = 0.5", f"w += {a}[0]"]]
        kinds += [[f"{a}[1:] = {a}", f"w += {a}[0]"], ["w += undefined_name"]]
        if scope.below:
            kinds += [[f"w += {a}[{self.pick(scope.below)} + 3]"]]
        if scope.lists:
            one = self.pick(scope.lists)
            kinds += [[f"w += {one}[len({one})]"], [f"w += {one}.pop()"] * 4]
        return self.pick(kinds)

    # Functions.

    def callee(self):
        """Changes its arrays, and gives a number."""
        name, length = self.fresh("h"), self.pick(["any", "any", "n"])
        known = {"ints": ["i"]} if length == "any" else {"below": ["i"]}
        arrays = {"a": length, "b": length}
        scope = Scope(["s", "u"], arrays=arrays, loops=2, is_callee=True, **known)
        left, self.left = self.left, 4
        inner = self.block(scope, 3)
        self.left = left
        if self.chance(0.4):
            inner += [f"if {self.condition(scope, 0)}:", f"    return w + u + {self.atom(scope)}"]
        lines = ["n = len(a)", "k = 3", "c = s", "u = 0.5 * s", "w = 0.0"]
        lines += ["for i in range(n):", *indented(inner), "a[0] += 0.1 * u"]
        found = f"w + {self.pick(['u', 'u + a[0]', '0.1 * np.sum(a * b)', 'u * b[-1]'])}"
        two = self.chance(0.3) and "return" not in "".join(inner)
        lines += [f"return {found}, u" if two else f"return {found}"]
        self.callees.append((name, length, two))
        mark = "@njit\n" if self.chance(0.5) else ""
        return f"{mark}def {name}(a, b, s):\n" + "\n".join(indented(lines)) + "\n\n\n"

    def program(self):
        callees = "".join(self.callee() for _ in range(self.random.randint(0, 2)))
        scope = Scope(["s0", "s1"], arrays={"x": "n", "y": "n", "a0": "n"})
        start = self.atom(Scope(["c"], arrays={"x": "n"}))
        lines = ["n = len(x)", "w = 0.0", f"s0 = {start}", "s1 = 0.3 * c"]
        lines += [self.pick(["a0 = np.zeros(n)", "a0 = x * y", "a0 = x.copy()", "a0 = y"])]
        if self.chance(0.4):
            scope.matrices.append("m")
            lines += ["m = np.zeros((n, 3))", "m[0, 1] = c"]
        while self.left > 0:
            lines += self.block(scope)
        if self.wrong:
            lines += self.mistake(scope)
        return callees + "def f(x, y, c, k):\n" + "\n".join(indented([*lines, self.result(scope)]))

    def result(self, scope):
        parts = ["w", *scope.floats, *(f"np.sum({a} * {a})" for a in scope.arrays)]
        parts += [f"np.sum({m})" for m in scope.matrices]
        parts += [f"0.1 * sum({one}) + len({one})" for one in scope.lists]
        parts += [f'{d}["p"] * {d}["q"]' for d in scope.dicts]
        parts += [f"{bag}.value" for bag in scope.bags]
        parts += [f"(0.3 if {z} is None else {z})" for z in scope.maybes]
        return "return " + " + ".join(parts)


def indented(lines):
    return ["    " + line for line in lines]


@dataclass
class Program:
    """A program, with arguments of two lengths."""

    source: str
    seed: int
    wrong: bool

    def __repr__(self):
        return f"# {self.arguments(0)}\n{self.source}"

    def operations(self):
        """Lines, for who counts."""
        return len(self.source.splitlines())

    def arguments(self, call):
        made = np.random.default_rng([self.seed, call])
        n = int(made.integers(4, 8)) if call == 0 else int(made.integers(8, 11))
        x, y = made.uniform(-1, 1, (2, n))
        return x, y, float(made.uniform(-1, 1)), int(made.integers(0, 5))


class SharingMaker(Maker):
    """Of programs in which names of arrays often change, so that the run decides what they are."""

    def __init__(self, seed):
        super().__init__(seed, wrong=False)
        self.renames = 0.7

    def statement(self, scope):
        more = self.left > 0 and scope.loops < 3
        kinds = {
            self.set_item: 6, self.change_slice: 3, self.make_array: 1, self.make_view: 8,
            self.swap: 3, self.set_float: 1, self.change_where: 1,
            self.take: 3 * (not scope.is_callee), self.for_loop: 4 * more,
            self.while_loop: 1 * more, self.branch: 6 * (self.left > 0),
            self.way_out: 1 * (scope.loops > 0), self.call: 2 * bool(self.callees),
        }  # fmt: skip
        return self.random.choices(list(kinds), list(kinds.values()))[0](scope)

    def take(self, scope):
        """Several names for one array that is made here, or for others' arrays in turn."""
        own = [a for a, n in scope.arrays.items() if n == "n" and a not in ("x", "y")]
        a, b, c = (self.pick(own) for _ in range(3))
        made = self.pick(["np.cos(x)", "0.5 * y", "np.zeros(n)", f"{c}.copy()"])
        return self.pick([[f"{a} = {b} = {made}"], [f"{a}, {b} = {b}, {c}"], [f"{a} = {b}"]])


def sharing_program(seed):
    """The same for the same seed."""
    return Program(HEAD + SharingMaker(seed).program() + "\n", seed, False)


CONTAINERS = """import copy
import math
import operator
from collections import deque

import numpy as np
from numba import njit


class Bag:
    def __init__(self, value):
        self.value = value

    def __getitem__(self, i):
        self.value += 0.1
        return self.value * (i + 1.0)

    def __iadd__(self, v):
        self.value = math.tanh(self.value + v)
        return self


def change(items, v):
    items[0] = math.tanh(items[1] - v)
    return items


def changed(items, v):
    items = list(items)
    items[2] = math.tanh(items[0] + v)
    return items


def halves(items, v):
    for each in items:
        yield each * 0.5
        v = math.tanh(v + each)
        yield v


"""


class NamedMaker(Writer):
    """Of programs whose numbers and containers have the same names from their first lines on.

    ``NUMBERS`` are the names of numbers; `atom` gives an expression, `program` the text.
    """

    def __init__(self, seed):
        super().__init__(seed, fewest=4, most=14)

    def value(self, scope):
        """A number between -1 and 1."""
        sign = self.pick("+-*")
        return f"math.tanh({self.atom(scope)} {sign} {self.atom(scope)})"

    def condition(self, scope):
        return f"{self.atom(scope)} < {self.atom(scope)}"

    def set_number(self, scope):
        return [f"{self.pick(self.NUMBERS)} = {self.value(scope)}"]

    def inner(self, scope, loops=0):
        inner = scope.inner(loops)
        inner.blocks += 1
        return inner

    def branch(self, scope):
        lines = [f"if {self.condition(scope)}:", *indented(self.block(self.inner(scope), 3))]
        if self.chance(0.5):
            lines += ["else:", *indented(self.block(self.inner(scope), 3))]
        return lines

    def way_out(self, scope):
        return [f"if {self.condition(scope)}:", f"    {self.pick(['break', 'continue'])}"]

    def rest(self, scope):
        """The statements that are left."""
        lines = []
        while self.left > 0:
            lines += self.block(scope)
        return lines

    def function(self, lines, parts):
        """The text of a function that gives a sum."""
        lines = [*lines, f"return {' + '.join(parts)}"]
        return "def f(x, y, c, k):\n" + "\n".join(indented(lines))


class ContainerMaker(NamedMaker):
    """Of programs about lists and deques of three numbers, dicts of two, and objects."""

    LISTS, DEQUES, DICTS, BAGS = ("l0", "l1", "l2"), ("q0", "q1"), ("d0", "d1"), ("b0", "b1")
    NUMBERS = ("s0", "s1", "s2")

    def atom(self, scope):
        kinds = [
            self.pick(self.NUMBERS), self.pick(self.NUMBERS), self.constant(), "c", "x[0]",
            f"{self.pick(self.LISTS)}[{self.place()}]", f"{self.pick(self.DEQUES)}[{self.place()}]",
            f'{self.pick(self.DICTS)}["{self.pick("pq")}"]', f"{self.pick(self.BAGS)}.value",
            f"0.1 * sum({self.pick(self.LISTS + self.DEQUES)})", *scope.floats, *scope.floats,
        ]  # fmt: skip
        return self.pick(kinds)

    def place(self):
        return self.random.randint(-3, 2)

    def statement(self, scope):
        more = self.left > 0 and scope.loops < 2
        kinds = {
            self.set_number: 3, self.set_item: 6, self.rename: 4, self.change_list: 5,
            self.change_deque: 4, self.change_dict: 4, self.change_bag: 4, self.branch: 5 * more,
            self.for_loop: 5 * more, self.way_out: 1 * (scope.loops > 0),
        }  # fmt: skip
        return self.random.choices(list(kinds), list(kinds.values()))[0](scope)

    def set_item(self, scope):
        one = self.pick(self.LISTS)
        value, place = self.value(scope), self.place()
        return [self.pick([
            f"{one}[{place}] = {value}", f"{one}[{place}] = {value}",
            f"{one}[{place}] += 0.1 * {value}", f"operator.setitem({one}, {place}, {value})",
            f"list.__setitem__({one}, {place}, {value})",
            f"{one}[0], {one}[2] = {one}[2], {value}",
        ])]  # fmt: skip

    def rename(self, scope):
        kinds = [self.LISTS, self.LISTS, self.DICTS]
        kinds += [self.DEQUES] * (scope.blocks == 0 or self.chance(0.1))  # refused in blocks
        kind = self.pick(kinds)
        a, b = self.pick(kind), self.pick(kind)
        ways = [f"{a} = {b}", f"{a}, {b} = {b}, {a}", f"{a} = copy.copy({b})"]
        ways += [f"{a} = {b}.copy()", f"{a} = copy.deepcopy({b})"]
        if kind is self.LISTS:
            ways += [f"{a} = {b}[:]", f"{a} = {b}[::-1]", f"{a} = change({b}, {self.atom(scope)})"]
            ways += [f"{a} = changed({b}, {self.atom(scope)})", f"{a} = list({b})"]
            ways += [f"{a} = [{self.value(scope)}, {self.atom(scope)}, {self.constant()}]"]
        return [self.pick(ways)]

    def change_list(self, scope):
        one, value = self.pick(self.LISTS), self.value(scope)
        ways = [
            [f"{one}.reverse()"], [f"change({one}, {value})"],
            [f"{one}[1:] = [{value}, {one}[0]]"], [f"{one}[::-1] = [{value}, {one}[0], 0.2]"],
        ]  # fmt: skip
        if scope.blocks == 0 or self.chance(0.1):  # refused in blocks of the graph
            ways += [
                [f"{one}.append({one}.pop(0))"], [f"{one}.insert(0, {one}.pop())"],
                [f"{one}.append({value})", f"{one}.pop(0)"],
                [f"{one} += [{value}]", f"del {one}[1]"],
                [f"{one}.extend([{value}])", f"{one}.pop(1)"],
            ]  # fmt: skip
        return self.pick(ways)

    def change_deque(self, scope):
        one, value = self.pick(self.DEQUES), self.value(scope)
        return [self.pick([
            f"{one}.append({value})", f"{one}.appendleft({value})", f"{one}.rotate(1)",
            f"{one}.rotate(-1)", f"{one}[{self.place()}] = {value}",
            f"{one}.extend([{value}, 0.5])", f"{one}.append({one}.popleft())",
            f"{one}.reverse()", f"{one} += [{value}]",
            f"{one}[{self.place()}] += 0.1 * {value}",
        ])]  # fmt: skip

    def change_dict(self, scope):
        one, key, value = self.pick(self.DICTS), self.pick("pq"), self.value(scope)
        return [self.pick([
            f'{one}["{key}"] = {value}', f'{one}["{key}"] += 0.1 * {value}',
            f"{one}.update({key}={value})", f'{one}.setdefault("{key}", {value})',
            f'{one} |= {{"{key}": {value}}}', f"for key in {one}: {one}[key] = {one}[key] * 0.9",
            f'operator.setitem({one}, "{key}", {value})',
        ])]  # fmt: skip

    def change_bag(self, scope):
        one, value = self.pick(self.BAGS), self.value(scope)
        return [self.pick([
            f"{one}.value = {value}", f'setattr({one}, "value", {value})',
            f'object.__setattr__({one}, "value", {value})', f"{one} += {value}",
            f"{self.pick(self.NUMBERS)} = math.tanh({one}[{self.random.randint(0, 2)}])",
            f"{one}.value *= 0.5", f"b2 = {self.pick(['copy.copy', 'copy.deepcopy'])}({one}); "
            f"b2.value = {value}; {self.pick(self.NUMBERS)} = b2.value",
        ])]  # fmt: skip

    def for_loop(self, scope):
        v, inner = self.fresh("v"), self.inner(scope, 1)
        inner.floats.append(v)
        one = self.pick(self.LISTS + self.DEQUES)
        along = self.pick([
            "x", "x", "y", f"halves(x, {self.atom(scope)})", f"list({one})", f"tuple({one})",
            f"halves(list({one}), {self.atom(scope)})", "[0.3, -0.4]",
        ])  # fmt: skip
        return [f"for {v} in {along}:", *indented(self.block(inner))]

    def program(self):
        first = Scope()
        lines = ["s0, s1, s2 = c, 0.3, x[1]"]
        lines += [f"{one} = [{self.constant()}, {self.constant()}, x[2]]" for one in self.LISTS]
        lines += [f"{one} = deque([{self.constant()}, c, 0.2], maxlen=3)" for one in self.DEQUES]
        lines += [f'{one} = {{"p": {self.constant()}, "q": x[0]}}' for one in self.DICTS]
        lines += [f"{one} = Bag({self.constant()})" for one in self.BAGS]
        lines += self.rest(first)
        parts = list(self.NUMBERS)
        parts += [f"{one}[0] - 2.0 * {one}[1] + 0.5 * {one}[2]" for one in self.LISTS + self.DEQUES]
        parts += [f'{one}["p"] * {one}["q"] + list({one}.values())[0]' for one in self.DICTS]
        parts += [f"{one}.value" for one in self.BAGS]
        return self.function(lines, parts)


def container_program(seed):
    """The same for the same seed."""
    return Program(CONTAINERS + ContainerMaker(seed).program() + "\n", seed, False)


class GrowingMaker(NamedMaker):
    """Of programs about lists that loops make longer: their items change, come, go and move.

    ``g0`` to ``g2`` are lists of numbers with three items at least, ``r0`` is one of rows of three.
    """

    LISTS, NUMBERS = ("g0", "g1", "g2"), ("s0", "s1")

    def __init__(self, seed):
        super().__init__(seed)
        self.along = []  # lists that loops go along, which get no items meanwhile

    def atom(self, scope):
        one = self.pick(self.LISTS)
        kinds = [
            self.pick(self.NUMBERS), self.constant(), "c", "x[0]", f"{one}[{self.place(one)}]",
            f"{one}[{self.place(one)}]", f"0.1 * sum({one}[-3:])", f"0.2 * sum({one}[:2])",
            f"0.05 * len({one})", f"r0[{self.place('r0')}][{self.random.randint(0, 2)}]",
            *scope.floats, *scope.floats,
        ]  # fmt: skip
        return self.pick(kinds)

    def place(self, one):
        return self.pick([
            0, 1, -1, -1, -2, -3, f"k % len({one})", f"len({one}) // 2", f"-1 - k % len({one})",
            f"len({one}) - 1", f"int(9 * abs({self.pick(self.NUMBERS)})) % len({one})",
        ])  # fmt: skip

    def statement(self, scope):
        more = self.left > 0
        kinds = {
            self.set_number: 3, self.set_item: 8, self.add_item: 6, self.take_item: 5,
            self.move_items: 3, self.change_row: 5, self.whole: 2,
            self.name: 2 * (not scope.blocks),
            self.branch: 5 * more, self.for_loop: 5 * (more and scope.loops < 2),
            self.while_loop: 2 * (scope.loops < 2), self.way_out: 1 * (scope.loops > 0),
        }  # fmt: skip
        return self.random.choices(list(kinds), list(kinds.values()))[0](scope)

    def one(self):
        """A list whose length may change."""
        return self.pick([one for one in self.LISTS if one not in self.along] or ["g9"])

    def set_item(self, scope):
        one, value = self.pick(self.LISTS), self.value(scope)
        a, b = self.place(one), self.place(one)
        return [self.pick([
            f"{one}[{a}] = {value}", f"{one}[{a}] = {value}", f"{one}[{a}] += 0.1 * {value}",
            f"{one}[{a}] *= {value}", f"{one}[{a}], {one}[{b}] = {one}[{b}], {one}[{a}]",
            f"{one}[{a}], {one}[{b}] = {value}, {one}[{a}]", f"put({one}, {a}, {value})",
        ])]  # fmt: skip

    def add_item(self, scope):
        one, value = self.one(), self.value(scope)
        lines = self.pick([
            [f"{one}.append({value})"], [f"{one}.append({value})"], [f"note({one}, {value})"],
            [f"{one}.append(0)", f"{one}[-1] += {value}"], [f"{one}.extend([{value}, 0.5])"],
            [f"{one} += [{value}]"], [f"{one}.insert({self.place(one)}, {value})"],
            [f"r0.append(np.array([{value}, 0.1, {self.atom(scope)}]))"],
        ])  # fmt: skip
        if one == "g9":
            return ["pass"]
        return [f"if len({one}) + len(r0) < 40:", *indented(lines)]

    def take_item(self, scope):
        one, s = self.one(), self.pick(self.NUMBERS)
        if one == "g9":
            return ["pass"]
        place = self.place(one)
        return [f"if len({one}) > 3:", "    " + self.pick([
            f"{s} = math.tanh({one}.pop())", f"{s} = math.tanh({one}.pop())", f"del {one}[{place}]",
            f"{s} = math.tanh({one}.pop({place}) + {s})", f"{s} = math.tanh({one}.pop(0))",
        ])]  # fmt: skip

    def move_items(self, scope):
        one = self.one()
        return ["pass"] if one == "g9" else [self.pick([
            f"{one}.reverse()", f"{one}.append({one}.pop(0))", f"{one}.insert(0, {one}.pop())",
        ])]  # fmt: skip

    def change_row(self, scope):
        a, b, j = self.place("r0"), self.place("r0"), self.random.randint(0, 2)
        row, value = self.fresh("w"), self.value(scope)
        return self.pick([
            [f"r0[{a}][{j}] = {value}"], [f"r0[{a}][{j}] += 0.1 * {value}"], [f"r0[{a}] *= 0.9"],
            [f"r0[{a}] = r0[{b}] * {value}"], [f"{row} = r0[{a}]", f"{row}[{j}] = {value}"],
            [f"for {row} in range(3):", f"    r0[{a}][{row}] *= 0.9"],
            [f"r0[{a}] = np.tanh(r0[{a}] + {value})"],
        ])  # fmt: skip

    def whole(self, scope):
        one, s = self.pick(self.LISTS), self.pick(self.NUMBERS)
        found = self.pick([
            f"sum({one})", f"np.array({one}).sum()", f"sum({one}[1:])",
            f"sum(a * b for a, b in zip({one}, {one}[1:]))", "np.sum(np.array(r0))",
            f"sum({one}[::-2])", f"sum(v * v for v in {one})",
        ])  # fmt: skip
        return [f"{s} = math.tanh(0.1 * {found})"]

    def name(self, scope):
        one, other = self.one(), self.pick(self.LISTS)
        return ["pass"] if one == "g9" else [self.pick([
            f"{one} = {other}", f"{one} = {other}.copy()", f"{one} = list({other})",
            f"{one} = {other}[:]", f"{one} = {other}[::-1]", f"{one} = {one} + [{self.constant()}]",
            f"{one} = [0.5 * v for v in {other}]", f"{one} = [c, {self.value(scope)}, x[1]]",
        ])]  # fmt: skip

    def for_loop(self, scope):
        v, inner = self.fresh("v"), self.inner(scope, 1)
        inner.floats.append(v)
        one = self.pick(self.LISTS)
        along = self.pick(["x", "x", "y", one, f"{one}[1:]", f"list({one})", f"reversed({one})"])
        held = [one] if along in (one, f"reversed({one})") else []
        # a list under two names grows by either
        self.along += self.LISTS if held else ()
        lines = [f"for {v} in {along}:", *indented(self.block(inner))]
        del self.along[len(self.along) - 3 * len(held) :]
        return lines

    def while_loop(self, scope):
        one, s = self.one(), self.pick(self.NUMBERS)
        test = self.pick([f"{one}[-1] < {one}[-2]", f"{s} > 0.1"])
        return ["pass"] if one == "g9" else [
            f"while len({one}) > 3 and {test}:", f"    {s} = 0.5 * {s} + 0.1 * {one}.pop()",
        ]  # fmt: skip

    def program(self):
        first = Scope()
        lines = ["s0, s1 = c, 0.3"]
        lines += [f"{one} = [{self.constant()}, c, x[{k}]]" for k, one in enumerate(self.LISTS)]
        lines += ["r0 = []", "for v in x[:3]:", "    r0.append(np.array([v, c, 0.2]))"]
        lines += ["for v in y:", f"    {self.pick(self.LISTS)}.append({self.value(first)})"]
        lines += self.rest(first)
        parts = [*self.NUMBERS, "np.sum(np.array(r0) * np.array([1.0, -2.0, 0.5]))"]
        parts += [f"{one}[0] - 2.0 * {one}[-1] + 0.5 * sum({one})" for one in self.LISTS]
        return self.function(lines, parts)


GROWING = """import math
import numpy as np


def note(items, v):
    items.append(math.tanh(items[-1] + v))
    items[0] *= 0.9


def put(items, place, v):
    items[place] = v


"""


def growing_program(seed):
    """The same for the same seed."""
    return Program(GROWING + GrowingMaker(seed).program() + "\n", seed, False)


def program(seed):
    """The same for the same seed; one in five has a wrong line."""
    maker = Maker(seed, wrong=seed % 5 == 4)
    source = HEAD + maker.program() + "\n"
    return Program(source, seed, seed % 5 == 4)


# Running programs.

_files = itertools.count()


def built(source):
    """The function; its text is where tracebacks and `inspect` find it."""
    name = f"<random program {next(_files)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"__name__": "random_program"}
    exec(compile(source, name, "exec"), space)
    return space["f"], name


def python_only(source):
    """Without Numba's decorators."""
    return source.replace("@njit\n", "")


class Noting(ast.NodeTransformer):
    """Calls of ``note_*`` in place of comparisons, and of what has corners."""

    def visit_Compare(self, node):
        self.generic_visit(node)
        ops = ast.Constant(tuple(type(op).__name__ for op in node.ops))
        values = ast.Tuple([node.left, *node.comparators], ast.Load())
        return ast.Call(ast.Name("note_compare", ast.Load()), [ops, values], [])

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in NOTED:
            node.func = ast.Name(f"note_{node.func.id}", ast.Load())
        elif isinstance(node.func, ast.Attribute) and node.func.attr in NOTED_OF_ARRAYS:
            what = ast.Constant(node.func.attr)
            owner = node.func.value
            of_numpy = isinstance(owner, ast.Name) and owner.id == "np"
            given = node.args if of_numpy else [owner, *node.args]
            node = ast.Call(ast.Name("note_arrays", ast.Load()), [what, *given], node.keywords)
        return node


#: Functions that decide something by numbers, and those that do so by items of arrays.
NOTED = ("max", "min", "abs", "int", "sorted")
NOTED_OF_ARRAYS = (
    "max", "min", "maximum", "minimum", "clip", "abs", "sort", "argsort", "argmax", "argmin",
)  # fmt: skip
_OPS = {
    "Lt": lambda a, b: a < b, "LtE": lambda a, b: a <= b, "Gt": lambda a, b: a > b,
    "GtE": lambda a, b: a >= b, "Eq": lambda a, b: a == b, "NotEq": lambda a, b: a != b,
    "Is": lambda a, b: a is b, "IsNot": lambda a, b: a is not b,
}  # fmt: skip


class Notes:
    """Runs the noting form of a program, and keeps its decisions and how near they were."""

    def __init__(self, source):
        tree = ast.fix_missing_locations(Noting().visit(ast.parse(python_only(source))))
        names = ("compare", "arrays", *NOTED)
        self.space = {f"note_{name}": getattr(self, name) for name in names}
        exec(compile(tree, "<noted>", "exec"), self.space)

    def __call__(self, *arguments):
        """The value, and all decisions."""
        self.seen, self.margin = [], math.inf
        with np.errstate(all="ignore"):
            value = self.space["f"](*copy.deepcopy(arguments))
        return value, self.seen

    def noted(self, what, a, b):
        self.seen.append(what)
        if b is not None and (isinstance(a, float) or isinstance(b, float)):
            self.margin = min(self.margin, abs(a - b))
        return what

    def compare(self, ops, values):
        if any(np.ndim(value) for value in values):
            (op,), (a, b) = ops, values
            self.order(a, b)
            return _OPS[op](a, b)
        pairs = zip(ops, values[:-1], values[1:], strict=True)
        return all(self.noted(bool(_OPS[op](a, b)), a, b) for op, a, b in pairs)

    def max(self, a, b):
        return a if self.noted(bool(a >= b), a, b) else b

    def min(self, a, b):
        return a if self.noted(bool(a <= b), a, b) else b

    def abs(self, a):
        return a if self.noted(bool(a >= 0), a, 0) else -a

    def int(self, a):
        return self.noted(int(a), a, round(a))

    def sorted(self, values):
        for k, a in enumerate(values):
            self.order(a, values[:k])
        return sorted(values)

    def order(self, a, b):
        """Note how two arrays lie, item by item; items that are one do so whatever they are."""
        found = np.subtract(a, b)
        self.seen.append(np.sign(found).ravel().tolist())
        apart = np.abs(found[found != 0.0]) if found.ndim else np.abs(found)
        self.margin = min(self.margin, *np.ravel(apart).tolist(), math.inf)

    def arrays(self, name, array, *others, **options):
        """A function of NumPy's that decides by items."""
        if name in ("maximum", "minimum", "clip"):
            for other in others:
                self.order(array, other)
        elif name == "abs":
            self.order(array, 0.0)
        else:
            self.order(np.ravel(array)[:, None], np.ravel(array)[None])
        return getattr(np, name)(array, *others, **options)


STEP = 2e-6
NEAR = 1e-9


def differences(noting, arguments, decisions):
    """Pairs of a direction and the derivative along it; None where a decision changes.

    Two steps are extrapolated to none (Richardson): a sine of what grows fast bends within a step.
    """
    made, found = np.random.default_rng(len(decisions)), []
    for _ in range(2):
        direction = [made.uniform(-1, 1, np.shape(arguments[k])) for k in ARGNUMS]
        ends = []
        for h in (STEP, -STEP, STEP / 2, -STEP / 2):
            given = list(copy.deepcopy(arguments))
            for k, d in zip(ARGNUMS, direction, strict=True):
                given[k] = given[k] + h * d if np.ndim(d) else float(given[k] + h * d)
            value, seen = noting(*given)
            if seen != decisions:
                return None
            ends.append(value)
        wide, near = (ends[0] - ends[1]) / (2 * STEP), (ends[2] - ends[3]) / STEP
        found.append((direction, (4 * near - wide) / 3))
    return found


def outcome(f, arguments):
    """What comes of a call; errors are given."""
    with np.errstate(all="ignore"):
        try:
            return f(*arguments)
        except Exception as error:
            return error


def same(found, expected, rtol=1e-9):
    return np.allclose(found, expected, rtol=rtol, atol=rtol)


#: The largest values that are held to differences. Sines of numbers as large as 1e16 turn within a
#: rounding of these: their slope is in the gradient, and differences see nothing of it.
FARTHEST = 1e15


def check(made, machine_code=False, counts=None):
    """`DisagreementError` where two ways differ, or an error is not a clear one.

    With machine code Numba compiles the program, too.
    """
    counts = {} if counts is None else counts
    noting, (f, filename) = Notes(made.source), built(made.source)
    plain, _ = built(python_only(made.source))
    ways = {
        kind: nbta.value_and_grad(f, ARGNUMS, compiled=kind == "compiled", convert=True)
        for kind in ("reference", "compiled")
    }
    for call in range(2):
        arguments = made.arguments(call)
        expected = outcome(plain, copy.deepcopy(arguments))
        if isinstance(expected, Exception):
            _must_fail(ways, arguments, expected, call, machine_code, counts)
            continue
        _, decisions = noting(*arguments)
        if 0.0 < noting.margin < NEAR or not np.isfinite(expected):
            count(counts, "near another decision")
            continue
        near = noting.margin and np.all(np.abs(expected) < FARTHEST)
        along = differences(noting, arguments, decisions) if near else None
        count(counts, "without differences", along is None)
        if machine_code:
            _numba_agrees(made, arguments, expected, call, counts)
        error = _must_agree(ways, arguments, (expected, along), call, machine_code)
        if error is not None:
            _is_clear(error, filename, call, made.wrong)
        count(counts, "agreed" if error is None else f"refused: {worded(error)}")
    return counts


def _must_agree(ways, arguments, expected, call, machine_code):
    """None, or the error of a program that is refused."""
    value, along = expected
    first = None
    for kind, gradient in ways.items():
        given = copy.deepcopy(arguments)
        found = _called(kind, gradient, given, machine_code)
        if any(np.any(a != b) for a, b in zip(given, arguments, strict=True)):
            raise DisagreementError(f"{kind}: arguments changed", call, given)
        if isinstance(found, Exception):
            return found
        if not same(found[0], value):
            raise DisagreementError(f"{kind}: value", call, f"{found[0]} and {value}")
        if along is not None:
            _hold_differences(kind, found[1], along, call)
        if first is not None:
            _hold_equal(found[1], first, call)
        first = found[1]
    return None


def _called(kind, gradient, arguments, machine_code):
    with executed(machine_code) if kind == "compiled" else nullcontext():
        return outcome(gradient, arguments)


def _hold_differences(kind, found, along, call):
    largest = max(1.0, *(np.max(np.abs(f)) for f in found))
    for direction, expected in along:
        slope = sum(np.sum(f * d) for f, d in zip(found, direction, strict=True))
        if not abs(slope - expected) <= 2e-5 * largest:
            raise DisagreementError(f"{kind}: gradient", call, f"{slope} and {expected}: {found}")


def _hold_equal(found, expected, call):
    scale = max(1.0, *(np.max(np.abs(e)) for e in expected))
    for k, (a, b) in enumerate(zip(found, expected, strict=True)):
        if not np.all(np.abs(a - b) <= 1e-9 * scale):
            raise DisagreementError(
                "compiled: another gradient", call, f"argument {k}: {a} and {b}"
            )


def _must_fail(ways, arguments, expected, call, machine_code, counts):
    """Where Python fails nbta fails, by an error of its own, or by Python's."""
    for kind, gradient in ways.items():
        found = _called(kind, gradient, copy.deepcopy(arguments), machine_code)
        if not isinstance(found, Exception):
            raise DisagreementError(f"{kind}: no error", call, f"{found} and {expected!r}")
        if not isinstance(found, nbta.NbtaError | type(expected)):
            raise DisagreementError(f"{kind}: another error", call, f"{found!r} and {expected!r}")
    count(counts, "failed as Python does")


def _is_clear(error, filename, call, wrong):
    """An error of nbta's that names the file; of wrong lines that are not reached, Python's."""
    if not isinstance(error, nbta.NbtaError) and not wrong:
        raise DisagreementError("an error of Python's", call, repr(error)) from error
    if "belongs to the body" in str(error):
        raise DisagreementError("a value has left its body", call, repr(error)) from error
    if isinstance(error, nbta.NbtaError) and filename not in said(error):
        raise DisagreementError("no place in the error", call, repr(error)) from error


def worded(error):
    """An error without names and numbers, to be counted."""
    return re.sub(r"\d+", "#", str(error).splitlines()[0])[:90]


def _numba_agrees(made, arguments, expected, call, counts):
    compiled, _ = built(
        re.sub("^def ", "@njit\ndef ", python_only(made.source), flags=re.MULTILINE)
    )
    found = outcome(compiled, copy.deepcopy(arguments))
    if isinstance(found, NumbaError):  # such as of views in one variable whose strides differ
        count(counts, "not compiled by Numba")
    elif not same(found, expected):
        raise DisagreementError("Numba: value", call, f"{found} and {expected}")
    else:
        count(counts, "agreed with Numba")


# Cutting programs down.


def shrunk(made, fails, seconds):
    """A program with fewer statements that fails as well."""
    end, small = time.monotonic() + seconds, made
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for source in smaller(small.source):
            if time.monotonic() > end:
                break
            candidate = Program(source, made.seed, made.wrong)
            if runs(candidate, made.wrong) and fails(candidate):
                small, progress = candidate, True
                break
    return small


def runs(made, may_fail):
    """Whether Python gives a number, or is expected to fail; no loop may lack its end now."""
    try:
        f, _ = built(python_only(made.source))
    except SyntaxError:
        return False
    found = outcome(lambda *arguments: _within(100_000, f, arguments), made.arguments(0))
    ends = not isinstance(found, TimeoutError)
    return ends and (may_fail or not isinstance(found, Exception))


def _within(lines, f, arguments):
    """A call that may run so many lines."""
    left, before = [lines], sys.gettrace()

    def trace(frame, event, _):
        left[0] -= 1
        if left[0] < 0:
            raise TimeoutError
        return trace

    sys.settrace(trace)
    try:
        return f(*arguments)
    finally:
        sys.settrace(before)


def smaller(source):
    """Sources with one statement less, or a block in place of its statement; large steps first."""
    places = [
        (len(ast.unparse(statement)), number)
        for number, statement in enumerate(_statements(ast.parse(source)))
    ]
    for _, number in sorted(places, reverse=True):
        for change in ("remove", "unwrap"):
            tree = ast.parse(source)
            if _changed(tree, number, change):
                yield ast.unparse(tree) + "\n"
    yield from _simpler(source)


def _bodies(tree):
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                yield body


def _statements(tree):
    return [statement for body in _bodies(tree) for statement in body]


def _changed(tree, number, change):
    """Change the statement of a number in place; whether that is possible."""
    for body in _bodies(tree):
        if number < len(body):
            old = body[number]
            inner = getattr(old, "body", []) if change == "unwrap" else []
            if isinstance(old, ast.Import | ast.ImportFrom) or (change == "unwrap" and not inner):
                return False
            if isinstance(old, ast.FunctionDef) and (change == "unwrap" or old.name == "f"):
                return False
            body[number : number + 1] = inner
            return bool(body) or _is_orelse(tree, body)
        number -= len(body)
    return False


def _is_orelse(tree, body):
    return any(getattr(node, "orelse", None) is body for node in ast.walk(tree))


def _simpler(source):
    """Sources with an operand in place of an expression."""
    count = sum(1 for _ in _expressions(ast.parse(source)))
    for number in range(count):
        for part in range(2):
            tree = ast.parse(source)
            parent, name, at, node = next(itertools.islice(_expressions(tree), number, None))
            parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
            parts = parts[1:] if isinstance(node, ast.Call) else parts
            if part < len(parts):
                if at is None:
                    setattr(parent, name, parts[part])
                else:
                    getattr(parent, name)[at] = parts[part]
                yield ast.unparse(tree) + "\n"


def _expressions(tree):
    kinds = ast.BinOp | ast.Call | ast.IfExp | ast.UnaryOp | ast.BoolOp
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, kinds):
                yield parent, name, None, value
            elif isinstance(value, list):
                yield from (
                    (parent, name, k, v) for k, v in enumerate(value) if isinstance(v, kinds)
                )
