"""Random programs that return early, several results at once, and arrays of two precisions.

``whole(x, y, c)`` gives arrays, a dict and a number, from several places; ``f`` adds these up. Its
loops call helpers that change their arguments and return in the middle of loops, pass tuples of
arrays on, count through packed triangles, leave by several exits, and read what the loops before
wrote, from behind and shifted. Some programs have arrays longer than a tile.
"""

import numpy as np
from array_programs import Made
from array_programs import Maker as ArrayMaker
from frontend_random import HEAD, indented

#: Of arrays, by program and call; those of programs with few loops.
SHORT, LONG = (7, 4, 13, 2, 1, 9), (33, 130, 67, 260)


class Returning(Made):
    """A program, with arguments whose lengths go round."""

    def arguments(self, call):
        """Two arrays of one length, and a number."""
        made = np.random.default_rng([self.seed, call])
        n = self.lengths[call % len(self.lengths)]
        x, y = made.uniform(-1, 1, (2, n))
        return x, y, float(made.uniform(-1, 1))

    @property
    def tolerance(self):
        """To which share of the largest number results agree."""
        return 2e-5 if "float32" in self.source else 1e-10

    def in_double(self):
        """The text of the program in double precision throughout."""
        return self.source.replace("np.float32", "np.float64")


class ReturningMaker(ArrayMaker):
    """Writes one program.

    Attributes
    ----------
    vectors, singles, integers, matrices : list of str
        Names of arrays of n items: of double and single precision, and indices; and of n rows
        of 3 items.
    """

    deepest = 2

    @classmethod
    def made(cls, seed):
        """The same program for the same seed."""
        maker = cls(seed)
        source = HEAD + "from numba import prange\n\n\n" + maker.program()
        return Returning(source, seed, False, LONG if maker.long else SHORT)

    def program(self):
        """All of it."""
        self.long, self.depth, self.indices = self.chance(0.2), 0, []
        self.vectors = list("pqr"[: self.random.randint(2, 3)])
        self.singles = list("gh"[: self.random.randint(1, 2)]) if self.chance(0.35) else []
        self.integers = ["k"] if self.chance(0.4) else []
        self.matrices = list("MW"[: self.pick([0, 0, 1, 1, 2])])
        self.pair = self.chance(0.35)
        self.packed = self.chance(0.3) and not self.long
        self.rows = {}
        self.helpers = [self.helper() for _ in range(self.pick([0, 0, 1, 1, 2]))]
        lines = ["n = len(x)", "s = 0.1 * c", "t = 0.2"]
        first = ["x * c", "y + 0.1", "np.zeros(n)", "np.ones(n) * c", "x.copy()", "np.sin(x)"]
        lines += [f"{a} = {self.pick(first)}" for a in self.vectors]
        first = [
            "x.astype(np.float32)",
            "np.zeros(n, dtype=np.float32)",
            "(y * c).astype(np.float32)",
        ]
        lines += [f"{a} = {self.pick(first)}" for a in self.singles]
        lines += [
            f"{a} = {self.pick(['np.arange(n)', 'np.zeros(n, dtype=np.int64)'])}"
            for a in self.integers
        ]
        first = [
            "np.zeros((n, 3))",
            "np.outer(x, np.arange(3.0))",
            "np.outer(np.sin(y), np.ones(3)) * c",
        ]
        lines += [f"{m} = {self.pick(first)}" for m in self.matrices]
        if self.packed:
            lines += ["T = np.zeros(n * (n + 1) // 2)"]
        if self.pair:
            lines += [f"pair = ({', '.join(self.random.sample(self.vectors, 2))})"]
        for m in self.matrices:
            if self.chance(0.5):
                row = self.fresh("row")
                self.rows[row] = m
                lines += [f"{row} = {m}[{self.pick(['0', 'n - 1', 'n // 2'])}]"]
        for _ in range(self.random.randint(1, 2)):
            lines += self.pick([self.loop, self.loop, self.counted, self.whiled])()
            if self.chance(0.2):
                lines += [f"if {self.condition('n')}:", f"    return {self.results()}"]
        lines += [f"return {self.results()}"]
        whole = "\n".join(["def whole(x, y, c):", *indented(lines)])
        helpers = [text for _, _, text in self.helpers]
        return "\n\n\n".join([*helpers, whole, self.total()])

    def results(self):
        """What the program gives."""
        dict_ = [f'"{a}": {a}' for a in (*self.singles, *self.matrices, *self.integers)]
        dict_ += ['"T": T'] * self.packed + ['"pair": pair'] * self.pair
        return f"({', '.join(self.vectors)}), {{{', '.join(dict_)}}}, s + 0.1 * t"

    def total(self):
        """A number made of all results."""
        lines = ["arrays, named, s = whole(x, y, c)"]
        ends = [f"np.sum(arrays[{k}] * {self.constant()})" for k in range(len(self.vectors))]
        ends += [f'np.sum(named["{m}"] * {self.constant()})' for m in self.matrices]
        ends += [f'np.sum(named["{m}"] * y * {self.constant()})' for m in self.singles]
        ends += [f'0.01 * np.sum(named["{k}"] * y)' for k in self.integers]
        ends += ['np.sum(np.sin(named["T"]))'] * self.packed
        if self.pair:
            ends += [f'np.sum(named["pair"][{k}] * {self.constant()})' for k in (0, 1)]
        lines += [f"total = {' + '.join(ends)} + s + np.sum(arrays[0] ** 2)"]
        lines += ["return total, (arrays, named, s)"]
        return self.function(lines)

    # Helpers.

    def helper(self):
        """A name, what its results are, and the text of a function that returns early."""
        name = self.fresh("h")
        kind = self.pick(["number", "number, vector", "vectors", "dict", "number, number"])
        e = self.constant
        result = {
            "number": ["v + a[0]", "0.5 * a[i] - v", "v"],
            "number, vector": ["v, a", "v + b[0], b", "a[i], a * 0.9", "v, a + b"],
            "vectors": ["a, b", "b, a", "a * 0.7, b", "a, a", "b, a + b * v"],
            "dict": ['{"v": v, "a": a}', '{"v": v + a[0], "a": b}', '{"v": v * 0.5, "a": a * b}'],
            "number, number": ["v, a[i]", "a[0], v", "v, v * 0.5"],
        }[kind]
        changes = [
            f"a[j] = {e()} * b[j - 1] + 0.3 * v",
            f"a[j] += {e()} * b[j]",
            "b[j] = 0.5 * a[j - 1]",
            "v = 0.5 * v + 0.2 * a[j]",
            f"a[-1 - j] = 0.7 * a[j] + {e()} * v",
            "v -= 0.1 * b[j] * v",
            "a, b = b, a",
            "b = 0.5 * a",
        ]
        tests = [f"a[j] > {e()}", f"v > {e()}", "j == i", "j > 1 and v < b[j]", "abs(v) > 0.6"]
        lines = ["v = v * 0.5"]
        if self.chance(0.4):
            lines += [f"if {self.pick([f'v > {e()}', 'i == 0', 'i % 2 == 1'])}:"]
            lines += indented(
                [self.pick(["a[i] = v", "b[0] += 0.1 * v", "v = 0.3"])] * self.chance(0.6)
            )
            lines += [f"    return {self.pick(result)}"]
        span = self.pick(["3", "i", "i + 1"]) if not self.long else "3"
        body = [self.pick(changes) for _ in range(self.random.randint(1, 2))]
        jump = self.pick([f"return {self.pick(result)}"] * 3 + ["break", "continue"])
        body.insert(
            self.random.randint(0, len(body)), f"if {self.pick(tests)}:\n        {'    '}{jump}"
        )
        body += [self.pick(changes)] * self.chance(0.5)
        body = ["j = j % len(a)", *body] if span == "3" else body
        lines += [f"for j in range({span}):", *indented(body)]
        lines += [f"return {self.pick(result)}"]
        is_compiled = self.chance(0.3) and kind != "dict"  # which Numba can give to no Python
        head = ["@njit"] * is_compiled + [f"def {name}(a, b, i, v):"]
        return name, kind, "\n".join([*head, *indented(lines)])

    def called(self, i):
        """A call of a helper, and where its results go."""
        name, kind, _ = self.pick(self.helpers)
        a, b = self.vector(), self.vector()
        if self.chance(0.85):
            a, b = self.random.sample(self.vectors, 2)
        call = f"{name}({a}, {b}, {i} % n, {self.pick(['s', 't', '0.5 * s', 'c'])})"
        to, other = self.random.sample(self.vectors, 2)
        number = self.pick("st")
        forms = {
            "number": [
                [f"{number} = {call}"],
                [f"{number} = 0.5 * {number} + 0.3 * {call}"],
                [f"{to}[{self.index(i)}] = {call}"],
            ],
            "number, vector": [
                [f"{number}, {to} = {call}"],
                [f"t, new = {call}", "s += 0.1 * new[0]"],
            ],
            "vectors": [[f"{to}, {other} = {call}"], *[[f"pair = {call}"]] * self.pair * 2],
            "dict": [
                [f"d = {call}", f'{number} = 0.5 * d["v"]', f'{to} = d["a"]'],
                [f"d = {call}", 'd["a"][0] += 0.1 * d["v"]'],
                [f's += {call}["v"]'],
            ],
            "number, number": [[f"s, t = {call}"], [f"t, s = {call}"]],
        }[kind]
        return self.pick(forms)

    # Loops.

    def span(self):
        """A range, and whether all of its numbers are indices."""
        if self.long and self.depth:
            return self.pick(["2", "3"]), False
        forms = [("n", 1)] * 4 + [
            ("1, n", 1),
            ("n - 1", 1),
            ("n - 1, -1, -1", 1),
            ("n - 2, 0, -1", 1),
        ]
        forms += [("0, n, 2", 1), ("n // 2", 1)] + [("3", 0)] * 2
        if self.indices and not self.long:
            i = self.pick(self.indices)
            forms += [(f"{i}", 1), (f"{i} + 1", 1), (f"{i} - 1, -1, -1", 1), (f"{i}, n", 1)] * 2
        return self.pick(forms)

    def loop(self):
        """Some statements, of which the last ones may exchange arrays or end the loop."""
        i, (span, is_index) = self.fresh("i"), self.span()
        lines = self.body(i, is_index)
        range_ = "prange" if self.chance(0.1) else "range"
        return [f"for {i} in {range_}({span}):", *indented(lines)]

    def body(self, i, is_index):
        """Statements of a loop."""
        self.depth += 1
        self.indices += [i] * bool(is_index)
        lines = self.block(i, self.random.randint(1, 3 if self.depth < 2 else 1))
        if self.chance(0.3):
            lines += self.exchange()
        if self.chance(0.25):
            jump = self.pick(
                ["break", "continue", f"return {self.results()}", f"return {self.results()}"]
            )
            place = self.pick([0, len(lines)])
            if place == 0 or self.chance(0.5):
                lines[0:0] = [f"if {self.condition(i)}:", *indented([*self.block(i, 1), jump])]
            else:
                lines += [f"if {self.condition(i)}:", f"    {jump}", *self.block(i, 1)]
        self.depth -= 1
        if is_index:
            self.indices.pop()
        return lines

    def whiled(self):
        """A loop of several exits."""
        i = self.fresh("w")
        test = self.pick(
            [f"{i} < n", f"{i} < n and s < {self.constant()}", f"{i} < n and abs(t) < 0.9"]
        )
        if self.long and self.depth:
            test = f"{i} < 3"
        lines = self.body(i, test[len(i) + 3] == "n")

        step = self.pick([f"{i} += 1", f"{i} += 1", f"{i} += 2"])
        out = [f"if {self.condition(i)}:", self.pick(["    break", f"    return {self.results()}"])]
        if any("continue" in line for line in lines):
            lines = [line.replace("continue", "break") for line in lines]
        else_ = ["else:", *indented(self.block("n", 1))] if self.chance(0.2) else []
        return [
            f"{i} = 0",
            f"while {test}:",
            *indented([*lines, *out * self.chance(0.7), step]),
            *else_,
        ]

    def counted(self):
        """A loop over a packed triangle, or over what was written before, from behind."""
        i, j, m = self.fresh("i"), self.fresh("j"), self.fresh("m")
        a, b = self.random.sample(self.vectors, 2)
        e = self.constant
        if self.packed and self.depth == 0:
            span = self.pick([f"{i} + 1", f"{i}", f"{i}, n"])
            item = self.pick(
                [
                    f"T[{m}] = {a}[{i}] * {b}[{j}]",
                    f"T[{m}] += {e()} * {a}[{j}]",
                    f"{a}[{j}] += 0.1 * T[{m}]",
                    f"{a}[{i}] = 0.5 * {a}[{i}] + 0.3 * T[{m}] * {b}[{j}]",
                    f"T[{m}] = 0.5 * T[{m} - 1] + {b}[{j}]",
                    f"s = 0.9 * s + 0.1 * T[-1 - {m}]",
                ]
            )
            inner = [item, f"{m} += 1"]
            if self.chance(0.3):
                inner = [
                    f"if {self.pick([f'{a}[{j}] > {e()}', f'T[{m}] > {e()}', f's > {e()}'])}:",
                    self.pick(["    break", f"    return {self.results()}"]),
                    *inner,
                ]
            after = self.pick([[], self.exchange(), [f"s += 0.1 * T[{i}]"]])
            return [
                f"{m} = 0",
                f"for {i} in range(n):",
                f"    for {j} in range({span}):",
                *indented(indented(inner)),
                *indented(after),
            ]
        lines = [
            f"for {i} in range(n):",
            f"    {a}[{i}] = {e()} * {b}[{i} - 1] + 0.5 * {self.read(i)}",
        ]
        self.indices.append(i)
        lines += indented(self.block(i, 1)) if self.chance(0.3) else []
        self.indices.pop()
        second = self.pick(
            [
                f"{b}[{j}] = 0.6 * {a}[n - 1 - {j}] + {e()} * {b}[{j}]",
                f"{b}[{j}] += 0.5 * {a}[{j} - n]",
                f"s = 0.5 * s + {a}[n - 1 - {j}] * {b}[{j}]",
                f"{a}[{j}] -= 0.4 * {a}[n - 1 - {j}]",
                f"{b}[{j}] = {a}[({j} + 3) % n] * 0.5",
                f"{b}[{j}] = {a}[{j} // 2] - 0.3 * {a}[{j}]",
            ]
        )
        span = self.pick(["n", "n", "n - 1, -1, -1", "2, n", "n // 2"])
        return [*lines, f"for {j} in range({span}):", f"    {second}"]

    def block(self, i, size):
        """Statements."""
        lines = []
        for _ in range(size):
            lines += self.statement(i)
        return lines

    def statement(self, i):
        """One that loops again, calls a helper, or changes an array or a number."""
        forms = [self.item] * 3 + [self.number] * 2 + [self.anew, self.in_place]
        forms += [self.called] * 3 * bool(self.helpers)
        forms += [self.single] * 3 * bool(self.singles) + [self.whole_numbers] * 2 * bool(
            self.integers
        )
        forms += [self.matrix] * 2 * bool(self.matrices) + [self.row] * 2 * bool(self.rows)
        forms += [self.of_pair] * 2 * self.pair
        if self.depth < self.deepest:
            forms += [lambda _: self.pick([self.loop, self.loop, self.whiled])(), self.branch]
            forms += [lambda _: self.counted()] * (not self.long)
        return self.pick(forms)(i)

    # Expressions.

    def index(self, i):
        """One of an array of the length n."""
        if i not in self.indices:
            return self.pick([f"{i} % n", "0", "-1"])
        j = self.pick(self.indices[-2:])
        forms = [j] * 5 + [f"{j} - 1", f"({j} + 3) % n", f"n - 1 - {j}", f"{j} // 2", "0"]
        return self.pick([*forms, *(f"{k}[{j}]" for k in self.integers * 3)])

    def read(self, i):
        """An item."""
        if self.matrices and self.chance(0.25):
            return f"{self.pick(self.matrices)}[{self.index(i)}, {self.pick('012')}]"
        if self.pair and self.chance(0.25):
            return f"pair[{self.pick('01')}][{self.index(i)}]"
        if self.singles and self.chance(0.25):
            return f"{self.pick(self.singles)}[{self.index(i)}]"
        return f"{self.pick([*self.vectors, 'x', 'y'])}[{self.index(i)}]"

    def value(self, i):
        """A bounded number."""
        a, b = self.read(i), self.read(i)
        forms = [f"0.4 * {a} - 0.3 * {b}", f"np.sin({a} * {b})", f"{self.constant()} * {a}"]
        return self.pick([*forms, f"0.5 * {a} + 0.2 * s", f"np.tanh({a} + t)", a])

    def vector(self):
        """A new array of bounded items."""
        a, b = (self.pick([*self.vectors, "x", "y"]) for _ in range(2))
        forms = [
            "0.4 * {0} - 0.3 * {1}",
            "np.tanh({0} + {1})",
            "np.sin({0} * {1})",
            "{0}[::-1] * 0.8",
        ]
        forms += [f"{{0}}[{k}] * 0.9" for k in self.integers]
        forms += [f"{{0}} * 0.5 + 0.3 * {g}" for g in self.singles]
        return self.pick(forms).format(a, b)

    def condition(self, i):
        forms = [f"s > {self.constant()}", f"t * s < {self.constant()}", f"{i} % 3 == 1"]
        forms += [f"{self.read(i)} > {self.constant()}"] * 2
        forms += [f"s > {self.constant()} and {self.read(i)} < {self.constant()}"]
        return self.pick(forms)

    # Statements.

    def exchange(self):
        """Arrays in each other's places."""
        pool = self.vectors
        for other in (self.matrices, self.singles):
            if len(other) == 2 and self.chance(0.3):
                pool = other
        names = self.random.sample(pool, self.random.randint(2, len(pool)))
        last = self.vector() if pool is self.vectors and self.chance(0.4) else names[0]
        lines = [f"{', '.join(names)} = {', '.join([*names[1:], last])}"]
        if self.pair and pool is self.vectors and self.chance(0.5):
            a, b = self.random.sample(self.vectors, 2)
            lines += [
                self.pick([f"pair = ({a}, {b})", "pair = pair[1], pair[0]", f"{a}, {b} = pair"])
            ]
        if self.singles and self.chance(0.1):
            lines = [f"{self.vectors[0]}, {self.singles[0]} = {self.singles[0]}, {self.vectors[0]}"]
        return lines

    def of_pair(self, i):
        a, b = self.random.sample(self.vectors, 2)
        forms = [
            f"pair = ({a}, {b})",
            "pair = pair[1], pair[0]",
            f"{a}, {b} = pair",
            f"pair = ({a}, pair[0])",
        ]
        forms += [
            f"pair[{self.pick('01')}][{self.index(i)}] {self.pick(['=', '+='])} {self.value(i)}"
        ] * 2
        forms += [f"{a} = pair[{self.pick('01')}] * 0.5", f"{a}, pair = pair[0], ({b}, {a})"]
        return [self.pick(forms)]

    def anew(self, i):
        return [f"{self.pick(self.vectors)} = {self.vector()}"]

    def in_place(self, i):
        a, b = self.pick(self.vectors), self.vector()
        forms = [f"{a} *= 0.8", f"{a} -= 0.2 * ({b})", f"{a}[:] = {b}"]
        return [self.pick([*forms, f"{a}[1:] = {self.pick(self.vectors)}[:-1] * 0.7"])]

    def item(self, i):
        a, at = self.pick(self.vectors), self.index(i)
        return [f"{a}[{at}] {self.pick(['=', '=', '+=', '*='])} {self.value(i)}"]

    def number(self, i):
        to = self.pick("st")
        forms = [f"{to} = 0.5 * {to} + {self.value(i)}", f"{to} = np.sin(s + {self.read(i)})"]
        forms += [f"s, t = t, 0.5 * s + 0.3 * {self.read(i)}", f"{to} = {self.value(i)}"]
        return [self.pick(forms)]

    def single(self, i):
        g, at = self.pick(self.singles), self.index(i)
        forms = [
            f"{g}[{at}] {self.pick(['=', '+='])} {self.value(i)}",
            f"{g}[{at}] = 0.5 * {g}[{self.index(i)}]",
        ]
        forms += [
            f"{g} = 0.5 * {g}",
            f"{g} *= 0.7",
            f"{g} -= 0.1 * {self.pick(self.vectors)}",
        ]
        forms += [f"{g} = ({self.vector()}).astype(np.float32)"]
        forms += [f"{self.pick(self.vectors)}[:] = {g}", f"s += 0.1 * {g}[{at}] * {self.read(i)}"]
        return [self.pick(forms)]

    def whole_numbers(self, i):
        k, at = self.pick(self.integers), self.index(i)
        forms = [f"{k}[{at}] = ({k}[{self.index(i)}] * 3 + {i}) % n", f"{k}[{at}] = {i} % n"]
        forms += [f"{k}[{at}] = int(abs({self.read(i)}) * 7.3) % n", f"{k}[:] = {k}[::-1]"]
        forms += [f"{self.pick(self.vectors)}[{k}[{at}]] += {self.value(i)}"]
        forms += [
            f"{k} = ({k} + 1) % n",
            f"{self.pick(self.vectors)}[{k}] = {self.pick(['x', 'y'])} * 0.5",
        ]
        return [self.pick(forms)]

    def matrix(self, i):
        m, at, c = self.pick(self.matrices), self.index(i), self.pick("012")
        forms = [f"{m}[{at}, {c}] {self.pick(['=', '+='])} {self.value(i)}", f"{m}[{at}] *= 0.7"]
        forms += [
            f"{m}[:, {c}] = {self.pick(self.vectors)}",
            f"{m}[{at}] = {m}[{self.index(i)}] * 0.9",
        ]
        forms += [f"{self.pick(self.vectors)} = {m}[:, {c}]", f"{m} = {m} * 0.8", f"{m} *= 0.9"]
        forms += [
            f"{m}[:, {c}] -= 0.1 * {m}[:, {self.pick('012')}]",
            f"s += 0.1 * np.sum({m}[{at}])",
        ]
        return [self.pick(forms)]

    def row(self, i):
        row = self.pick(list(self.rows))
        m = self.rows[row] if self.chance(0.7) else self.pick(self.matrices)
        forms = [f"{row} = {m}[{self.index(i)}]"] * 2 + [
            f"{row}[{self.pick('012')}] += {self.value(i)}"
        ]
        forms += [
            f"{row} *= 0.9",
            f"s += 0.2 * {row}[{self.pick('012')}]",
            f"{row}[1:] = 0.5 * {row}[:-1]",
        ]
        return [self.pick(forms)]

    def branch(self, i):
        def lines():
            made = self.block(i, self.random.randint(1, 2))
            return made + self.exchange() if self.chance(0.3) else made

        rest = ["else:", *indented(lines())] if self.chance(0.5) else []
        return [f"if {self.condition(i)}:", *indented(lines()), *rest]


def program(seed):
    """The same program for the same seed."""
    return ReturningMaker.made(seed)
