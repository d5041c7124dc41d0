"""Random programs whose loops use vectors and matrices of another length each iteration.

They are text, as those of `frontend_random`, and are checked by what checks those. None may leave
an array or an operation to Python, or give up.
"""

from dataclasses import dataclass, field

import frontend_random
import numpy as np
from frontend_random import ARGNUMS, HEAD, Program, built, indented
from fuzz.ways import executed

import nbta


@dataclass
class Scope:
    """Names that are defined for sure.

    Attributes
    ----------
    vectors : dict
        By name the length, as source.
    whole : list of str
        Vectors of all n items that may be changed.
    below : list of str
        Integers from 1 to n - 1.
    loops : int
    """

    vectors: dict = field(default_factory=dict)
    whole: list = field(default_factory=list)
    below: list = field(default_factory=list)
    loops: int = 0

    def inner(self, *below):
        """Of a block."""
        return Scope(dict(self.vectors), self.whole, [*self.below, *below], self.loops + len(below))


class Maker(frontend_random.Writer):
    """Writes one program."""

    def __init__(self, seed):
        super().__init__(seed, 3, 8)

    # Vectors.

    def taken(self, scope):
        """A part of what is there, and its length."""
        i = self.pick(scope.below)
        whole = self.pick([*scope.whole, "x", "y"])
        return self.pick(
            [
                (f"{whole}[:{i}]", i), (f"{whole}[:{i}]", i), (f"{whole}[{i}:]", f"n - {i}"),
                (f"A[{i}, :{i}]", i), (f"A[:{i}, {i}]", i), (f"A[{i}:, {i}]", f"n - {i}"),
                (f"A[:{i}, :{i}] @ {whole}[:{i}]", i), (f"{whole}[{i}:] @ A[{i}:, :{i}]", i),
                (f"A[:{i}, {i}:] @ {whole}[{i}:]", i), (f"np.cumsum({whole}[:{i}])", i),
                (f"np.sort({whole}[{i}:])", f"n - {i}"), (f"{whole}[:{i}][::-1]", i),
                (f"A[{i} - 1, 1:{i} + 1]", i), (f"np.sum(A[:{i}, {i}:], axis=1)", i),
                (f"np.concatenate(({whole}[:{i}], y[{i}:]))", "n"), (f"np.zeros({i})", i),
            ]
        )  # fmt: skip

    def vector(self, scope, depth=2):
        """A vector, and its length."""
        known = [*scope.vectors.items(), *[self.taken(scope) for _ in range(3)]]
        if not depth or self.chance(0.2):
            return self.pick(known)
        one, length = self.vector(scope, depth - 1)
        other = self.pick([v for v, n in known if n == length] or [self.scalar(scope)])
        return self.pick(
            [
                f"np.tanh({one})", f"np.sin({one}) * ({other})", f"({one}) * ({other})",
                f"({one}) - ({other})", f"np.exp(-({one}) ** 2)", f"0.5 * ({one}) + ({other})",
                f"({one}) / (1.5 + ({other}) ** 2)", f"({one}) * {self.scalar(scope)}",
                f"np.cos({one})", f"np.maximum({one}, 0.3 * ({other}))",
                f"np.tanh(np.outer({one}, {one}) @ ({one}))",
            ]
        ), length  # fmt: skip

    def scalar(self, scope):
        i, vector = self.pick(scope.below), self.pick([*scope.vectors, "x[:2]"])
        return self.pick(
            ["s", "c", f"x[{i}]", f"y[{i} - 1]", f"a0[{i}]", f"np.sin(np.sum({vector}))",
             f"np.tanh({vector} @ {vector})", f"A[{i}, {i} - 1]", self.constant(),
             f"x[{i} - 1 : {i}]"]
        )  # fmt: skip

    # Statements: each gives lines.

    def statement(self, scope):
        kinds = {
            self.define: 4, self.change: 4, self.take_in: 4, self.scratch: 2, self.again: 2,
            self.branch: 2, self.way_out: 0.7, self.block_of: 1.5,
        }  # fmt: skip
        if scope.loops < 2:
            kinds[self.loop] = 3
        return self.random.choices(list(kinds), list(kinds.values()))[0](scope)

    def define(self, scope):
        """A vector of a name of its own."""
        name = f"v{next(self.numbers)}"
        text, length = self.vector(scope)
        scope.vectors[name] = length
        return [f"{name} = {text}"]

    def change(self, scope):
        """A part of something that stays."""
        text, length = self.vector(scope)
        whole = self.pick(scope.whole)
        places = [f"{whole}[:{length}]", f"{whole}[n - ({length}):]", f"L[0, :{length}]"]
        if length in scope.below:
            places += [f"L[{length}, :{length}]", f"L[:{length}, {length}]", f"{whole}[-{length}:]"]
        place = self.pick(places)
        return [self.pick([f"{place} = np.tanh({text})", f"{place} += 0.2 * np.sin({text})"])]

    def block_of(self, scope):
        """A part of a matrix."""
        i, (text, length) = self.pick(scope.below), self.vector(scope, 1)
        return [
            self.pick(
                [
                    f"L[:{i}, :{i}] += 0.1 * np.sin(A[:{i}, :{i}])",
                    f"L[{i}:, :{i}] = 0.5 * L[{i}:, :{i}] + 0.1 * np.outer(x[{i}:], y[:{i}])",
                    f"L[:{length}, 0] += np.sin({text})",
                    f"L[:{length}, :{length}] -= 0.1 * np.outer({text}, {text})",
                ]
            )
        ]

    def take_in(self, scope):
        """The number that all counts for."""
        text, _ = self.vector(scope)
        return [
            self.pick(
                [
                    f"s = 0.5 * s + np.tanh(0.3 * np.sum({text}))",
                    f"s += 0.1 * np.sin(({text}) @ ({text}))",
                    f"s = np.tanh(s + 0.1 * np.sum(({text}) * s))",
                ]
            )
        ]

    def scratch(self, scope):
        """A vector that a loop in the loop fills."""
        name, k, i = f"w{next(self.numbers)}", f"k{next(self.numbers)}", self.pick(scope.below)
        item = self.pick([f"x[{k}] * y[{i}]", f"np.sin({k} * s)", f"A[{i}, {k}] * a0[{k}]"])
        inner = [f"{name}[{k}] = {item}"]
        if self.chance(0.3):
            inner += [f"if {k} > 0:", f"    {name}[{k}] += np.tanh({name}[{k} - 1])"]
        if self.chance(0.2):
            inner += [f"if {k} == 3:", "    break"]
        scope.vectors[name] = i
        return [f"{name} = np.zeros({i})", f"for {k} in range({i}):", *indented(inner)]

    def again(self, scope):
        """A vector that goes through a loop."""
        if not scope.vectors:
            return self.define(scope)
        name, k = self.pick(scope.vectors), f"k{next(self.numbers)}"
        iterations = self.pick(
            ["3", "9", self.pick(scope.below), f"2 + {self.pick(scope.below)} % 3"]
        )
        factor = self.pick([f"x[{k} % n]", "s", f"(0.5 + 0.1 * {k})", f"a0[{k} % 3]"])
        update = self.pick(["np.tanh({0} * {1})", "0.9 * {0} + 0.1 * np.sin({1} * {0})"])
        lines = [f"{name} = {update.format(name, factor)}"]
        if self.chance(0.3):
            lines += [f"s = 0.9 * s + 0.1 * np.sum({name})"]
        return [f"for {k} in range({iterations}):", *indented(lines)]

    def branch(self, scope):
        i = self.pick(scope.below)
        test = self.pick([f"{i} % 2 == 0", f"{i} % 3 != 1", f"{i} > 3", "s > 0.137"])
        lines = [f"if {test}:", *indented(self.block(scope.inner(), 2))]
        if self.chance(0.5):
            lines += ["else:", *indented(self.block(scope.inner(), 2))]
        return lines

    def way_out(self, scope):
        i = self.pick(scope.below)
        return [f"if {self.pick([f'{i} % 3 == 2', f'{i} > 6', 's > 1.613'])}:",
                "    " + self.pick(["break", "continue", "continue"])]  # fmt: skip

    def loop(self, scope):
        i = f"i{next(self.numbers)}"
        span = self.pick(["1, n", "1, n", "2, n", "1, n - 1", "n - 1, 0, -1", "1, n, 2"])
        if scope.below and self.chance(0.3):
            span = f"1, {self.pick(scope.below)} + 1"
        return [f"for {i} in range({span}):", *indented(self.block(scope.inner(i)))]

    def program(self):
        """All of it."""
        lines = ["n = len(x)", "s = 0.3 * c", f"a0 = {self.pick(['x.copy()', 'np.zeros(n)'])}"]
        lines += ["a1 = np.sin(y)", "A = np.outer(np.cos(x), y) + np.outer(x, x)"]
        lines += ["L = np.zeros((n, n))"]
        scope = Scope(whole=["a0", "a1"])
        while self.left > 0:
            lines += self.loop(scope)
        lines += ["return s + np.sum(a0 * a1) + np.sum(np.sin(a0)) + np.sum(L * L) + np.sum(L)"]
        return "def f(x, y, c, k):\n" + "\n".join(indented(lines)) + "\n"


def program(seed):
    """The same for the same seed."""
    return Program(HEAD + Maker(seed).program(), seed, False)


def check(made, machine_code=False, counts=None):
    """As `frontend_random.check`; besides, nothing may be left to Python.

    Machine code is held to the operations one by one.
    """
    f, _ = built(made.source)
    slope, reference = (
        nbta.value_and_grad(f, ARGNUMS, compiled=kind, convert=True) for kind in (True, False)
    )
    with executed(machine_code):
        value, found = slope(*made.arguments(1))
    if machine_code:
        same, expected = reference(*made.arguments(1))
        np.testing.assert_allclose(value, same, rtol=1e-10)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * max(1, np.max(abs(other))))
    else:
        counts = frontend_random.check(made, False, counts)
    text = str(slope.explain())
    left = [line for line in text.splitlines() if "Python keeps it" in line]
    if "operations that run in Python" in text:
        left += text[text.index("operations that run in Python") :].splitlines()[:3]
    gave_up = sum(trace.runner.fallbacks for trace in slope.every_trace() if trace.runner)
    if left or gave_up:
        raise AssertionError(f"left to Python: {left}, gave up {gave_up} times")
    return counts
