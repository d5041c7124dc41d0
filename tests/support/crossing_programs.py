"""Random programs in which much of what loops do with arrays comes together.

Arrays exchange places, are made anew or change in place, in loops of loops whose iterations read
neighbours, rows, columns and parts, count in triangles, end early, or differ at their ends.
"""

import numpy as np
from array_programs import Made
from array_programs import Maker as ArrayMaker
from frontend_random import HEAD, indented

#: Of arrays, by program and call.
LENGTHS = (7, 13, 3, 15, 2, 1, 8, 0)


class Crossed(Made):
    """A program, with arguments whose lengths go round."""

    def arguments(self, call):
        """Two arrays of one length, and a number."""
        made = np.random.default_rng([self.seed, call])
        n = LENGTHS[call % len(LENGTHS)]
        x, y = made.uniform(-1, 1, (2, n))
        return x, y, float(made.uniform(-1, 1))


class CrossingMaker(ArrayMaker):
    """Writes one program of vectors, matrices of as many rows and columns, and numbers."""

    lengths, deepest = LENGTHS, 3

    @classmethod
    def made(cls, seed):
        """The same program for the same seed."""
        return Crossed(HEAD + cls(seed).program(), seed, False, cls.lengths)

    def program(self):
        """All of it."""
        self.depth, self.indices = 0, []
        self.vectors = list("pqr"[: self.random.randint(2, 3)])
        self.matrices = list("MW"[: self.random.randint(0, 2)])
        self.integers = ["k"] if self.chance(0.4) else []
        self.truths = ["b"] if self.chance(0.3) else []
        self.changing = ["g"] if self.chance(0.35) else []
        lines = ["n = len(x)", "s = 0.1 * c"]
        first = ["x * c", "y + 0.1", "np.zeros(n)", "np.ones(n) * c", "x.copy()", "np.sin(x)"]
        lines += [f"{a} = {self.pick(first)}" for a in self.vectors]
        first = ["np.zeros((n, n))", "np.outer(x, y)", "np.outer(y, np.cos(np.arange(n)))"]
        lines += [f"{m} = {self.pick(first)}" for m in self.matrices]
        lines += [f"{k} = np.arange(n)" for k in self.integers]
        lines += [f"{b} = {self.pick(['x > 0.1', 'np.zeros(n, dtype=bool)'])}" for b in self.truths]
        lines += [f"{g} = {self.pick(['x * y', 'np.append(x, c)'])}" for g in self.changing]
        for _ in range(self.random.randint(1, 3)):
            lines += self.loop()
        ends = [f"np.sum({a} * {self.constant()})" for a in self.vectors]
        ends += [f"np.sum({m} * {self.constant()})" for m in self.matrices]
        ends += [f"0.01 * np.sum({k} * y)" for k in self.integers]
        ends += [f"0.3 * np.sum({b} * y)" for b in self.truths]
        ends += [f"np.sum(np.sin({g}))" for g in self.changing]
        return self.function([*lines, f"return {' + '.join(ends)} + s + np.sum(p ** 2)"])

    # Loops.

    def span(self):
        """A range, and whether all of its numbers are indices."""
        forms = [("n", 1)] * 4 + [("1, n", 1), ("n - 1", 1), ("1, n - 1", 1)]
        forms += [("n - 1, -1, -1", 1), ("n - 2, 0, -1", 1), ("0, n, 2", 1)]
        forms += [(str(self.random.randint(0, 4)), 0)] * 2
        if self.indices:
            i = self.pick(self.indices)
            forms += [(f"{i}", 1), (f"{i} + 1", 1), (f"{i}, n", 1), (f"{i} + 1, n", 1)] * 2
            forms += [(f"{i} - 1, -1, -1", 1), (f"n - {i}", 1)]
        return self.pick(forms)

    def loop(self):
        """Some statements, of which the last ones may exchange arrays."""
        i = self.fresh("i")
        kept = list(self.indices), list(self.vectors)
        span, is_index = self.span()
        self.depth += 1
        if is_index:
            self.indices.append(i)
        lines = self.block(i, self.random.randint(1, 4 if self.depth < 3 else 2))
        if self.chance(0.45):
            lines += self.exchange()
        if self.chance(0.12):
            lines += [f"if {self.condition(i)}:", self.pick(["    break", "    continue"])]
            lines += self.block(i, 1)
        self.depth -= 1
        self.indices, self.vectors = kept
        if self.chance(0.12) and not is_index:
            count = self.fresh("count")
            head = [f"{i} = {count}", f"{count} += 1"]
            return [f"{count} = 0", f"while {count} < 3:", *indented([*head, *lines])]
        return [f"for {i} in range({span}):", *indented(lines)]

    def block(self, i, size):
        """Statements."""
        lines = []
        for _ in range(size):
            lines += self.statement(i)
        return lines

    def statement(self, i):
        """One that loops again, makes an array, or changes a part of one."""
        forms = [self.anew, self.in_place, self.item, self.item, self.item, self.number]
        forms += [self.ends, self.view] if self.indices else []
        forms += [self.matrix] * 3 * bool(self.matrices)
        forms += [self.whole] * bool(self.integers or self.truths) * 2
        forms += [self.length] * 2 * bool(self.changing)
        if self.depth < self.deepest:
            forms += [lambda _: self.loop()] * 3 + [self.branch, self.by_items]
        return self.pick(forms)(i)

    # Expressions.

    def index(self, i):
        """One of an array of the length n."""
        j = self.pick([*self.indices[-2:], i]) if self.indices else i
        if j not in self.indices:
            return f"{j} % n"
        forms = [j] * 5 + [f"{j} - 1", f"{j} - 1", f"({j} + 1) % n", f"n - 1 - {j}", "0", "-1"]
        forms += [f"{k}[{j}]" for k in self.integers]
        if len(self.indices) > 1:
            forms += [
                f"({' + '.join(self.indices[-2:])}) % n",
                f"abs({' - '.join(self.indices[-2:])}) % n",
            ]
        return self.pick(forms)

    def read(self, i):
        """An item."""
        if self.matrices and self.chance(0.35):
            return f"{self.pick(self.matrices)}[{self.index(i)}, {self.index(i)}]"
        return f"{self.pick([*self.vectors, 'x', 'y'])}[{self.index(i)}]"

    def value(self, i):
        """A bounded number."""
        a, b = self.read(i), self.read(i)
        forms = [f"0.4 * {a} - 0.3 * {b}", f"np.sin({a} * {b})", f"{self.constant()} * {a}"]
        forms += [f"np.tanh({a} + s)", f"0.3 * s + {b}", f"{a} * np.cos({b})", "0.5 * s"]
        forms += [f"({a} if {self.condition(i)} else {self.constant()} * {b})"]
        return self.pick(forms)

    def condition(self, i):
        """What a branch asks."""
        forms = [f"{i} % 2 == 0", f"s > {self.constant()}", f"{self.read(i)} > {self.read(i)}"]
        forms += [f"{i} > 0", f"{i} < n - 1", f"{i} == 0", f"{self.read(i)} > {self.constant()}"]
        forms += [f"{b}[{self.index(i)}]" for b in self.truths] * 2
        if len(self.indices) > 1:
            forms += [f"{self.indices[-1]} < {self.indices[-2]}"]
        text = self.pick(forms)
        if self.chance(0.2):
            text = self.pick([f"{text} and {self.condition(i)}", f"not ({text})"])
        return text

    def vector(self):
        """One of bounded items and of the length n."""
        forms = ["0.4 * {0} - 0.3 * {1}", "np.tanh({0} + {1})", "np.sin({0} * {1}) * 0.9", "{0}"]
        forms += ["0.5 * {0} + c * y", "{0}[::-1] * 0.8", "np.where({0} > {1}, {0}, 0.2)"]
        forms += ["{0} + 0.1 * s", "{0}.copy()", "{0}[::-1]"]
        pool = [*self.vectors, "x", "y"]
        for m in self.matrices:
            rows = [f"{m}[{j}]" for j in self.indices] + [f"{m}[:, {j}]" for j in self.indices]
            pool += rows
            forms += [f"0.2 * np.sum({m}, axis={self.random.randint(0, 1)}) + {{0}}"]
            forms += [f"0.3 * {m} @ {{0}}", f"np.diag({m}) * {{0}}"]
        for k in self.integers:
            forms += [f"{{0}}[{k}]"]
        for b in self.truths:
            forms += [f"np.where({b}, {{0}}, {{1}})"]
        return self.pick(forms).format(self.pick(pool), self.pick(pool))

    # Statements.

    def exchange(self):
        """Arrays in each other's places, or one made anew and others shifted on."""
        pool = self.matrices if len(self.matrices) == 2 and self.chance(0.3) else self.vectors
        names = self.random.sample(pool, self.random.randint(2, len(pool)))
        last = names[0]
        if pool is self.vectors and self.chance(0.4):
            last = self.vector()
        elif pool is self.matrices and self.chance(0.3):
            last = f"np.sin({names[0]} + {names[1]}.T)"
        return [f"{', '.join(names)} = {', '.join([*names[1:], last])}"]

    def anew(self, i):
        return [f"{self.pick(self.vectors)} = {self.vector()}"]

    def in_place(self, i):
        a, b = self.pick(self.vectors), self.vector()
        forms = [
            f"{a} *= 0.8",
            f"{a} -= 0.2 * ({b})",
            f"{a}[1:] = {self.pick(self.vectors)}[:-1] * 0.7",
        ]
        forms += [
            f"{a}[:] = {b}",
            f"{a}[1:-1] += 0.3 * {self.pick(self.vectors)}[2:] - 0.1 * {a}[:-2]",
        ]
        forms += [
            f"{a}[::2] = {self.pick(self.vectors)}[::2] * 0.6",
            f"{a}[::-1] *= {self.constant()}",
        ]
        forms += [f"{a}[{b_}] *= 0.5" for b_ in self.truths]
        return [self.pick(forms)]

    def item(self, i):
        a, at = self.pick(self.vectors), self.index(i)
        return [f"{a}[{at}] {self.pick(['=', '=', '+=', '*='])} {self.value(i)}"]

    def number(self, i):
        a = self.pick(self.vectors)
        forms = [
            f"s += 0.1 * np.sum({a})",
            f"s = np.sin(s + {self.read(i)})",
            f"s += 0.2 * {self.value(i)}",
        ]
        return [self.pick(forms)]

    def matrix(self, i):
        m, a = self.pick(self.matrices), self.pick(self.vectors)
        j, other = self.index(i), self.index(i)
        forms = [f"{m}[{j}, {other}] {self.pick(['=', '+='])} {self.value(i)}"] * 3
        forms += [f"{m}[{j}] = {self.vector()}", f"{m}[:, {j}] = {self.vector()}"]
        forms += [
            f"{m}[{j}] += 0.2 * {a}",
            f"{m}[:, {j}] *= 0.7",
            f"{m} = {m}.T",
            f"{m} = 0.5 * {m}.T + 0.1",
        ]
        forms += [
            f"{m}[1:, :-1] = 0.5 * {m}[:-1, 1:]",
            f"{m} = np.tanh({self.pick(self.matrices)} * 1.1)",
        ]
        forms += [f"{m}[{j}], {m}[{other}] = {m}[{other}].copy(), {m}[{j}].copy()"]
        forms += [f"{a} = {m}[{j}]", f"{a} = {m}[:, {j}]", f"{a} = {m}[{j}] * 0.9"]
        return [self.pick(forms)]

    def whole(self, i):
        """Changes integers or truth values."""
        forms = []
        for k in self.integers:
            at, other = self.index(i), self.index(i)
            forms += [
                f"{k} = {k}[::-1].copy()",
                f"{k}[{at}], {k}[{other}] = {k}[{other}], {k}[{at}]",
            ]
            forms += [
                f"{k} = (2 * {k} + 1) % max(n, 1)",
                f'{k} = np.argsort({self.pick(self.vectors)}, kind="stable")',
            ]
        for b in self.truths:
            forms += [f"{b}[{self.index(i)}] = {self.condition(i)}", f"{b} = ~{b}"]
            forms += [f"{b} = {self.pick(self.vectors)} > {self.pick(self.vectors)}"]
        return [self.pick(forms)]

    def length(self, i):
        """Changes an array of any length."""
        g = self.pick(self.changing)
        forms = [
            [f"if len({g}) > 2:", f"    {g} = {g}[1:] * 0.9 + 0.3 * {g}[:-1]"],
            [f"if len({g}) < 12:", f"    {g} = np.append({g}, s)"],
            [
                f"if len({g}) < 12:",
                f"    {g} = np.concatenate(({g}, {self.pick(self.vectors)}[:2]))",
            ],
            [f"{g} = 0.3 * {self.pick(self.vectors)}"],
            [f"if len({g}) > 1:", f"    {g} = {g}[:-1]"],
            [f"if len({g}) > 0:", f"    {g}[{i} % len({g})] += 0.2 * s"],
            [f"{g} = {g}[::-1] * 0.9"],
            [f"s += 0.1 * np.sum({g})"],
        ]
        return self.pick(forms)

    def branch(self, i):
        """Some statements in one of two branches."""

        def lines():
            made = self.block(i, self.random.randint(1, 2))
            return made + self.exchange() if self.chance(0.4) else made

        rest = ["else:", *indented(lines())] if self.chance(0.5) else []
        return [f"if {self.condition(i)}:", *indented(lines()), *rest]

    def by_items(self, i):
        """A new array, item by item, which takes the place of one, or is read alone."""
        a, new = self.pick(self.vectors), self.fresh("new")
        j, begun = self.fresh("i"), self.pick(["np.empty(n)", "np.zeros(n)", f"{a}.copy()"])
        self.indices.append(j)
        lines = [
            f"{new}[{j}] {self.pick(['=', '='] + ['+='] * ('empty' not in begun))} {self.value(j)}"
        ]
        span = "n" if "empty" in begun else self.pick(["n", "1, n", "1, n - 1", "n - 1, -1, -1"])
        if self.chance(0.3):
            lines += self.block(j, 1)
        self.indices.pop()
        last = self.pick([f"{a} = {new}"] * 3 + [f"s += 0.1 * np.sum({new} * {a})"])
        return [f"{new} = {begun}", f"for {j} in range({span}):", *indented(lines), last]

    def view(self, i):
        """A row, or a part, as a name of its own."""
        v, j = self.fresh("v"), self.pick(self.indices)
        sources = [f"{self.pick(self.vectors)}[::-1]", f"{self.pick(self.vectors)}[:]"]
        sources += [
            t for m in self.matrices for t in (f"{m}[{j}]", f"{m}[:, {j}]", f"{m}.T[{j}]")
        ] * 2
        made = [f"{v} = {self.pick(sources)}"]
        forms = [f"{v} *= 0.7", f"{v}[{j}] = {self.value(i)}", f"s += 0.2 * {v}[{j}]"]
        forms += [f"{self.pick(self.vectors)} = {v}", f"{self.pick(self.vectors)} = {v} * 0.9"]
        forms += [f"{v}[{self.index(i)}] += {self.value(i)}"]
        return made + [self.pick(forms) for _ in range(self.random.randint(1, 2))]

    def ends(self, i):
        """What differs at the first and the last iteration."""
        j = self.pick(self.indices)
        to = self.pick(
            ["s", f"{self.pick(self.vectors)}[{j}]", f"{self.pick(self.vectors)}[{self.index(i)}]"]
        )
        a, b = self.pick(self.vectors), self.pick(self.vectors)
        return [
            f"if {j} == 0:", f"    {to} += 0.3 * {a}[0]",
            f"elif {j} == n - 1:", f"    {to} -= 0.2 * {b}[{j}]",
            "else:", f"    {to} = 0.5 * {a}[{j} - 1] - 0.3 * {b}[{j} + 1] + 0.2 * {to}",
        ]  # fmt: skip


def program(seed):
    """The same program for the same seed."""
    return CrossingMaker.made(seed)
