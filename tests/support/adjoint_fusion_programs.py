"""Random programs whose loops add up what they compute of one item after the other.

They are text, as those of `frontend_random`. Iterations have loops of their own, of as many
iterations as the item or its values say, and branches; sums are numbers and items of arrays. Some
programs carry something on from iteration to iteration, or ask for a sum in the end, so that no
iteration may go back at once.
"""

import array_programs
from frontend_random import indented


class Maker(array_programs.Maker):
    """Writes one program."""

    lengths, largest = (range(4, 7), range(1, 9)), 0.9

    def __init__(self, seed):
        super().__init__(seed)
        self.wild = self.chance(0.3)
        self.names = []  # numbers that the iteration has

    def leaf(self, i):
        found = [f"x[{i}]", f"y[{i}]", f"m[{i}, 1]", f"m[{i}, 0]", "c", self.constant(), "p[1]",
                 "p[2]", f"x[n - 1 - {i}]", f"0.1 * {i}", *self.names * 2]  # fmt: skip
        return self.pick(found + ["a"] * self.wild)

    def number(self, i, depth=2):
        if depth == 0:
            return self.leaf(i)
        one, other = self.number(i, depth - 1), self.leaf(i)
        text = self.pick(["{0} * {1}", "{0} + {1}", "{0} - {1}", "np.sin({0}) * {1}",
                          "np.tanh({0} * {1})", "{0} / (1.5 + {1} * {1})", "max({0}, {1})",
                          "np.exp(-{0} * {0})", "({0} if {1} > 0.1 else 0.3 * {1})"])  # fmt: skip
        return text.format(f"({one})", f"({other})")

    def sum(self, i):
        """A line that adds to what the loop carries."""
        value = self.number(i)
        found = [f"s += {value}", f"s -= {value}", f"t = t + {value}", f"s = s + {value} + c"]
        found += [f"q[{i} % 3] += {value}", f"q[1] -= {value}", f"h[{i}] += {value}"]
        if self.wild:
            found += [f"a = 0.5 * a + 0.1 * {value}", f"q[{i} % 3] *= 0.9", f"h[{i}] = {value}"]
        return self.pick(found)

    def lines(self, i, depth):
        """What an iteration does."""
        found = []
        for _ in range(self.random.randint(1, 4)):
            name = f"v{next(self.numbers)}"
            kind = self.random.random()
            if kind < 0.35 or depth == 0:
                found.append(f"{name} = {self.number(i)}")
                self.names.append(name)
            elif kind < 0.5:
                found += [f"if {self.number(i)} > {self.constant()}:", *self.block(i, depth)]
                found += ["else:", *self.block(i, depth)] if self.chance(0.4) else []
            elif kind < 0.75:
                j, iterations = (
                    f"j{next(self.numbers)}",
                    self.pick([f"{i} % 4", "3", f"int(3 * abs(x[{i}]))"]),
                )
                found += [f"{name} = {self.number(i, 1)}", f"for {j} in range({iterations}):"]
                step = f"{name} = 0.6 * np.sin({name}) + {self.number(i, 1)}"
                found += indented([step]) + (self.block(i, depth) if self.chance(0.5) else [])
                self.names.append(name)
            else:
                found += [f"{name} = 1.0 + abs({self.number(i, 1)})", f"while {name} > 0.4:"]
                found += indented([f"{name} = 0.5 * {name} - 0.05 * np.cos({name})"])
                self.names.append(name)
        return [*found, self.sum(i)]

    def block(self, i, depth):
        """Lines below a header, whose names are theirs."""
        names = list(self.names)
        found = indented(self.lines(i, depth - 1))
        self.names = names
        return found

    def loop(self):
        """A loop over all items."""
        i = f"i{next(self.numbers)}"
        lines = self.lines(i, 2)
        self.names.clear()
        head = self.pick([f"for {i} in range(n):"] * 3 + [f"for {i} in range(n - 1, -1, -1):"])
        lines = [head, *indented(lines)]
        if self.chance(0.15):
            lines = ["for _ in range(2):", *indented(lines)]
        return lines

    def program(self):
        """All of it."""
        lines = ["n, s, t, a = len(x), 0.0, c, 0.2", "p = np.array([c, 0.3, c * c])"]
        lines += ["m = np.stack((x, y * c), axis=1)", "q, h = np.zeros(3), np.zeros(n)"]
        for _ in range(self.random.choice([1, 1, 2, 4])):
            lines += self.loop()
        ends = ["s", "2.0 * s", "t", "np.sum(q)", "q[1] - q[2]", "np.sum(h)", "np.sum(h * y)"]
        ends += ["np.tanh(s)", "a", "np.sum(h * h)"] * self.wild
        chosen = self.random.sample(ends, self.random.randint(2, 4))
        lines += [f"return {' + '.join(chosen)}"]
        return self.function(lines)


def program(seed):
    """The same for the same seed."""
    return Maker.made(seed)
