"""Random programs whose loops go over long rows item by item, and add up along them.

They are text, as those of `frontend_random`. Rows are replaced, changed in place and exchanged,
sums go to numbers, to items and to what else the iteration does, rows to those of matrices; loops
are in branches and in other loops, and some do what no tile can do by itself.
"""

import array_programs
from frontend_random import indented


class Maker(array_programs.Maker):
    """Writes one program."""

    lengths, largest = (range(6, 9), range(2, 14)), 0.6

    def __init__(self, seed):
        super().__init__(seed)
        self.wild = self.chance(0.25)  # does what cannot be tiled
        self.rows = ["u", "v"] + ["w"] * self.chance(0.4)

    def number(self, t):
        """What is the same for all items."""
        found = [self.constant(), "c", f"b[{t}]", f"np.sin(c * {t})", f"0.02 * {t}", "r"]
        return self.pick(found + ["a"] * self.wild + [f"x[{t} % n]"] * self.wild)

    def row(self, t, depth=2):
        """An expression that is a row."""
        leaf = self.pick([*self.rows, *self.rows, "x", f"z[{t}]", "k"])
        if depth == 0 or self.chance(0.15):
            return leaf
        one, other = self.row(t, depth - 1), self.pick([self.number(t), self.row(t, 0)])
        text = self.pick(["{0} * {1}", "{0} + {1}", "{0} - 0.5 * {1}", "np.tanh({0} * {1})",
                          "np.sin({0}) * {1}", "np.maximum({0}, {1})", "np.exp(-{0} * {0})",
                          "np.where({0} > {1}, {0}, 0.3 * {1})",
                          "1.0 / (2.0 + {0} * {0})"])  # fmt: skip
        return text.format(f"({one})", f"({other})")

    def sum(self, t):
        """A number that takes all items."""
        text = self.pick(["np.sum({0})", "np.sum({0} * {1})", "np.dot({0}, {1})"])
        return text.format(self.row(t, 1), self.pick(self.rows))

    def line(self, t):
        """What an iteration does."""
        target = self.pick(self.rows)
        found = [f"{target} = 0.5 * {target} + 0.4 * np.tanh({self.row(t)})"] * 4
        found += [f"{target} = {target} * 0.9 + 0.2 * np.sin({self.row(t, 1)})"]
        found += [f"{target} += 0.1 * np.cos({self.row(t, 1)})", f"{target} *= 0.7"]
        found += [f"a += {self.sum(t)}", f"a -= 0.3 * {self.sum(t)}"]
        found += [f"q[{t}] += {self.sum(t)}", f"q[{t} % 3] += c * {self.sum(t)}"]
        found += [f"m[{t}] = {self.row(t, 1)}", f"r = 0.5 * np.sin(r + {self.constant()})"]
        if self.wild:
            found += [f"a = 0.5 * np.tanh(a) + 0.01 * {self.sum(t)}", f"{target}[{t} % n] = 0.3"]
            found += [f"{target} = {target}[::-1] * 1.0", f"q[{t}] = {self.sum(t)}"]
        return self.pick(found)

    def body(self, t):
        """The lines of an iteration."""
        lines = [self.line(t) for _ in range(self.random.randint(1, 4))]
        if self.chance(0.15):
            lines += [f"if {t} % 2 == 0:", *indented([self.line(t)])]
        if self.chance(0.15):
            lines += [f"if c > {self.constant()}:", *indented([self.line(t)])]
        if self.chance(0.15):
            j = f"j{next(self.numbers)}"
            lines += [f"for {j} in range({self.pick([9, 10])}):", *indented([self.line(t)])]
        if self.chance(0.25):
            lines.append("u, v = v, u")
        return lines

    def loop(self):
        """A loop over few iterations."""
        t = f"t{next(self.numbers)}"
        iterations = self.pick(["len(b)", "len(b)", "len(b)", "9", "10", "len(b) - 3"])
        lines = [f"for {t} in range({iterations}):", *indented(self.body(t))]
        if self.chance(0.1):
            lines = [f"if c > {self.constant()}:", *indented(lines)]
        if self.chance(0.1):
            lines = [f"for _ in range({self.pick([9, 10])}):", *indented(lines)]
        return lines

    def program(self):
        """All of it."""
        lines = ["n, b = len(x), np.cos(np.arange(11.0)) * c", "k = y.copy()", "a, r = 0.1 * c, c"]
        lines += ["z = np.outer(np.sin(np.arange(11.0)), y)", "q, m = np.zeros(11), np.outer(b, x)"]
        starts = ["x + 0.0", "np.sin(x)", "np.zeros(n)", "np.ones(n) * c", "y * x", "y.copy()"]
        lines += [f"{name} = {self.pick(starts)}" for name in ("u", "v", "w")]
        for _ in range(self.random.choice([1, 1, 2])):
            lines += self.loop()
            lines += ["a = r * 1.0"] * self.chance(0.2)
        if self.chance(0.3):
            lines.append(f"w = w + {self.row('3')}")
        if self.chance(0.2):
            lines.append(f"u = u * {self.pick(['np.cumsum(v)', 'np.tanh(np.sum(v * v))'])}")
        ends = ["np.sum(u * u)", "np.sum(np.sin(v))", "np.mean(u * w)", "np.sum(m * 0.1)", "a",
                "np.sum(q)", "r", "np.sum(w)"]  # fmt: skip
        chosen = self.random.sample(ends, self.random.randint(2, 5))
        chosen += ["np.tanh(np.sum(u))"] * self.chance(0.15)
        # What nobody reads is computed in its turn, item by item, for an index may be out of range.
        used = ["np.sum(q)", "np.sum(m * 0.1)", "np.sum(w)", "a", "r"]
        chosen += [end for end in used if end not in chosen]
        lines += [f"return {' + '.join(['np.sum(u * v)', *chosen])}"]
        return self.function(lines)


def program(seed):
    """The same for the same seed."""
    return Maker.made(seed)
