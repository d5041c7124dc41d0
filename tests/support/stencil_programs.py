"""Random programs whose loops take neighbours along an axis, and change places of arrays.

They are text, as those of `frontend_random`. Offsets go both ways, iterations may be none or a few,
coefficients may be items, and loops may do other things beside.
"""

import array_programs
from frontend_random import indented


class Maker(array_programs.Maker):
    """Writes one program."""

    lengths, largest, branches = (range(14, 30), range(14, 18)), 0.6, False
    steps = (0, 1, 2, 3, 9, 10)

    def __init__(self, seed):
        super().__init__(seed)
        self.reach = self.random.choice([1, 1, 1, 2, 3, 5])

    def offset(self):
        return self.random.randint(-self.reach, self.reach)

    def at(self, i):
        """An index near an iteration's."""
        offset = self.offset()
        return i if not offset else f"{i} {'+-'[offset < 0]} {abs(offset)}"

    def coefficient(self, *indices):
        """A factor, which may be an item."""
        where = ", ".join(indices)
        return self.pick(
            [self.constant(), f"k[{where}]", f"np.sin(k[{where}])", "c", f"0.03 * {indices[-1]}",
             f"(1.0 - k[{where}])"]
        )  # fmt: skip

    def span(self, n):
        """Where iterations begin and end; each item near one of them is in the array."""
        r = self.reach
        ends = [(str(r), f"{n} - {r}")] * 4 + [(f"{n} - {2 * r}", f"{n} - {r}")]
        ends += [(str(r), f"{r} + {self.random.randint(0, 3)}")]
        ends += [(str(r), f"max({r}, {n} - {r + 4})")]
        start, stop = self.pick(ends)
        if self.chance(0.3):
            return f"{stop} - 1, {start} - 1, -1"
        return f"{start}, {stop}" + ", 2" * self.chance(0.1)

    def item(self, array, indices):
        """Of the place of an iteration, or near it."""
        near = list(indices)
        for axis in range(len(near)):
            if self.chance(0.8 if len(near) == 1 else 0.5):
                near[axis] = self.at(near[axis])
        return f"{array}[{', '.join(near)}]"

    def sum(self, arrays, indices):
        """A sum of neighbours, each with its factor."""
        terms = [
            f"{self.coefficient(*indices)} * {self.item(self.pick(arrays), indices)}"
            for _ in range(self.random.randint(2, 5))
        ]
        text = " + ".join(terms)
        other = self.item(arrays[0], indices)
        return self.pick([text, text, f"np.tanh({text})", f"np.sin(({text}) * {other})"])

    def condition(self, arrays, indices):
        """What a branch asks: an item, a neighbour, or the number of the iteration."""
        item, number = self.item(self.pick(arrays), indices), indices[-1]
        return self.pick(
            [f"k[{', '.join(indices)}] > {self.constant()}", f"{item} > 0.1", f"{number} % 3 == 1",
             f"{number} > {self.reach + 2}", f"{item} * {self.item(arrays[0], indices)} < 0.05"]
        )  # fmt: skip

    def choice(self, lines, depth=2):
        """Branches, some of which do nothing, that are in one another; ``lines()`` are of one."""
        arrays, indices, made = self.sources, self.indices, []
        for header in self.pick([("if",), ("if", "else"), ("if", "elif"), ("if", "elif", "else")]):
            test = "" if header == "else" else f" {self.condition(arrays, indices)}"
            inner = self.choice(lines, depth - 1) if depth and self.chance(0.2) else lines()
            made += [f"{header}{test}:", *indented(inner)]
        return lines() + made if self.chance(0.2) else made

    def loop(self, rank, arrays, target):
        """A loop that gives all items of an array near ones of others."""
        if self.branches:
            return self.chosen(rank, arrays, target)
        names = [f"i{next(self.numbers)}" for _ in range(rank)]
        place = [*names]
        if self.chance(0.2):
            place[-1] = self.at(names[-1])
        sign = self.pick(["=", "=", "="] if target not in arrays else ["+="])
        lines = [f"{target}[{', '.join(place)}] {sign} {self.sum(arrays, names)}"]
        if self.chance(0.2):
            lines += [f"s += {self.constant()} * {self.item(arrays[0], names)}"]
        if self.chance(0.15):
            lines = [f"if k[{', '.join(names)}] > 0.1:", *indented(lines)]
        if self.chance(0.1):
            lines += [f"s = np.tanh(s + {self.item(arrays[0], names)})"]
        if self.chance(0.15):
            lines += [f"w[{', '.join(names)}] += 0.3 * {self.item(arrays[-1], names)}"]
        return self.around(names, lines)

    def chosen(self, rank, arrays, target):
        """A loop in which branches do so."""
        names = [f"i{next(self.numbers)}" for _ in range(rank)]
        self.sources, self.indices = arrays, names
        place, adds = ", ".join(names), self.chance(0.5)

        def lines():
            sums = self.pick([0, 1, 1, 1, 2])
            made = []
            for _ in range(sums):
                item = self.item(target, names) if adds else f"{target}[{place}]"
                made.append(f"{item} {'+=' if adds else '='} {self.sum(arrays, names)}")
            if self.chance(0.3) or not made:
                made.append(f"s += {self.constant()} * {self.item(arrays[0], names)}")
            return made

        return self.around(names, self.choice(lines))

    def around(self, names, lines):
        """Loops around lines."""
        for axis in reversed(range(len(names))):
            lines = [f"for {names[axis]} in range({self.span('nm'[axis])}):", *indented(lines)]
        return lines

    def program(self):
        """All of it."""
        rank = self.pick([1, 1, 1, 2])
        arrays = ["u", "v"] + ["w"] * self.chance(0.4)
        lines = ["s = 0.3 * c"]
        if rank == 1:
            lines += ["n = len(x)", "k = y.copy()"]
        else:
            lines += ["n, m = len(x), len(x) + 3", "k = np.outer(y, np.ones(m))"]
        for name, start in (("u", "x"), ("v", "np.sin(x)"), ("w", "x * y")):
            start = start if rank == 1 else f"np.outer({start}, np.cos(np.arange(m)))"
            lines.append(f"{name} = {start} + 0.0")
        body = []
        for _ in range(self.random.randint(1, 2)):
            target = self.pick(arrays)
            sources = [a for a in arrays if a != target]
            body += self.loop(rank, sources, target)
        changed = self.random.sample(arrays, len(arrays))
        if self.chance(0.7) and changed != arrays:
            body.append(f"{', '.join(arrays)} = {', '.join(changed)}")
        steps = self.random.choice(self.steps)
        lines += [f"for t in range({steps}):", *indented(body)] if steps > 1 else body
        lines += ["return s + np.sum(u * u) + np.sum(np.sin(v)) + np.sum(u * w)"]
        return self.function(lines)


class BranchMaker(Maker):
    """Writes one program whose loops choose what they do.

    After ten steps that add sums of products some are so steep that a difference needs a step of
    1e-12 (seed 1117 with ten steps: a slope of -4e10).
    """

    branches, steps = True, (0, 1, 2, 3)


def program(seed, branches=False):
    """The same for the same seed."""
    return (BranchMaker if branches else Maker).made(seed)
