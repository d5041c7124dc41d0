"""Random programs whose branches and loops name arrays, change them, and let them change places.

They are text, as those of `frontend_random`. One way through a branch gives an array for several
names, and another one computes each, or changes items of one; so do loops around and in them.
"""

import array_programs
from frontend_random import indented


class Maker(array_programs.Maker):
    """Writes one program."""

    lengths, largest = (range(3, 8),), 0.6

    def __init__(self, seed):
        super().__init__(seed)
        self.arrays = ["u", "v", "w"][: self.pick([2, 3, 3])]
        self.aliases = self.chance(0.3)  # may change items where two names are one array

    def index(self, loops):
        return self.pick(["0", "1", "-1", "n - 2", *(f"{t} % n" for t in loops)])

    def row(self, loops):
        """An array of its own, whose items stay small."""
        one, other = self.pick(self.arrays), self.pick([*self.arrays, "x", "y"])
        factor = self.pick(["c", self.constant(), *(f"0.05 * {t}" for t in loops)])
        text = self.pick(["{0} * {2}", "{0} * 0.9", "np.sin({0})", "np.cos({0}) * {2}",
                          "0.5 * {0} + {2}", "0.5 * {0} + 0.4 * {1}", "np.tanh({0} * {1})",
                          "{0}.copy()", "{1} * 0.7"])  # fmt: skip
        return text.format(one, other, factor)

    def line(self, loops):
        """A line that names arrays, or changes one."""
        target, other = self.random.sample(self.arrays, 2)
        found = [f"{target} = {self.row(loops)}"] * 5
        found += [f"{target} = {other}"] * 2
        found += [f"{target}, {other} = {other}, {target}"] * 2
        found += [f"{', '.join(self.arrays)} = {', '.join(self.arrays[1:] + self.arrays[:1])}"]
        found += [f"s = 0.5 * s + 0.1 * {target}[{self.index(loops)}]"]
        if self.aliases:
            found += [f"{target}[{self.index(loops)}] = 0.6 * {other}[0]"] * 2
            found += [f"{target}[1:] *= {self.constant()}", f"{target} += 0.1 * np.sin({other})"]
        return self.pick(found)

    def test(self, loops):
        found = [f"c > {self.constant()}", f"x[0] > {self.constant()}", f"s < {self.constant()}"]
        return self.pick(found + [f"{t} % {self.pick([2, 3])} == 0" for t in loops] * 2)

    def block(self, loops, depth):
        """Some lines."""
        lines = []
        for _ in range(self.random.randint(1, 3)):
            lines += self.statement(loops, depth)
        return lines

    def statement(self, loops, depth):
        if depth and self.chance(0.3):
            lines = [f"if {self.test(loops)}:", *indented(self.block(loops, depth - 1))]
            if self.chance(0.6):
                lines += ["else:", *indented(self.block(loops, depth - 1))]
            return lines
        if depth and self.chance(0.25):
            t = f"t{next(self.numbers)}"
            lines = self.block([*loops, t], depth - 1)
            if self.chance(0.15):
                lines.append(f"if {self.test([*loops, t])}:")
                lines += indented([self.line([*loops, t]), "break"])
            return [f"for {t} in range({self.pick(['9', '10', 'n + 4'])}):", *indented(lines)]
        return [self.line(loops)]

    def program(self):
        """All of it."""
        lines = ["n, s = len(x), 0.3 * c"]
        for name in self.arrays:
            starts = ["x.copy()", "np.sin(x)", "np.cos(y)", "x * y", "np.ones(n) * c"]
            starts += self.arrays[: self.arrays.index(name)]
            lines.append(f"{name} = {self.pick(starts)}")
        for _ in range(self.random.randint(2, 3)):
            lines += self.statement([], 3)
        ends = [f"np.sum(np.sin({name} + {k}.0) * y)" for k, name in enumerate(self.arrays)]
        return self.function([*lines, f"return s + {' + '.join(ends)}"])


def program(seed):
    """The same for the same seed."""
    return Maker.made(seed)
