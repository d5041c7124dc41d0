"""Random programs that step a grid in time: items assigned once, twice or at ends, and read again.

They are text. The adjoint of an item that is assigned is taken and set to zero; the programs differ
in which of these zeros anybody reads. No item is read that has no value.
"""

import random

#: Where iterations along the grid begin and end, and how far from an item neighbours are there.
_SPANS = [("1", "n - 1", 1, 1), ("1", "n", 1, 0), ("0", "n - 1", 0, 1), ("2", "n - 2", 2, 2),
          ("0", "n", 0, 0)]  # fmt: skip


class _Maker:
    """Writes one program, of one array changed in place, or of two."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.first, self.last, self.before, self.after = self.pick(_SPANS)
        self.is_one = self.chance(0.3)
        self.new = "u" if self.is_one else "new"

    def pick(self, choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def item(self, *names):
        """A neighbour in one of some arrays."""
        offset = self.random.randint(-self.before, self.after)
        return f"{self.pick(names)}[j{offset:+d}]" if offset else f"{self.pick(names)}[j]"

    def value(self, *names):
        """What an item is assigned."""
        a, b, c = (self.item(*names) for _ in range(3))
        return self.pick(
            [f"0.4 * {a} + 0.3 * {b} + 0.1 * {c}", f"np.tanh({a}) + 0.2 * {b}", f"0.9 * {a}",
             f"w[j] * {a} + 0.1 * {b}", f"max({a}, {b} - 0.1)"]
        )  # fmt: skip

    def along(self):
        """A loop along the grid, to one end or to the other."""
        if self.chance(0.3):
            return f"for j in range({self.last} - 1, {self.first} - 1, -1):"
        return f"for j in range({self.first}, {self.last}):"

    def end(self):
        """An item at an end, or at the place that the time counts."""
        place, other = self.pick(["0", "n - 1", "1", "t"]), self.pick(["0", "n - 1", "2"])
        return f"{self.new}[{place}] = 0.7 * u[{other}]"

    def again(self):
        """A second statement about an item that was just assigned."""
        item = f"{self.new}[j]"
        return self.pick(
            [f"{item} = max({item}, w[j] - 1.2)", f"{item} += 0.1 * w[j]", f"total += 0.1 * {item}",
             f"if {item} > 0.2: {item} = 0.2 * w[j]"]
        )  # fmt: skip

    def sweep(self):
        """The lines of a loop that changes items by those that it comes to later."""
        around = self.before, self.after
        down = bool(self.before) and (not self.after or self.chance(0.5))
        self.before, self.after = (self.before, 0) if down else (0, self.after)
        ends = f"{self.last} - 1, {self.first} - 1, -1" if down else f"{self.first}, {self.last}"
        value = " + ".join([self.value("u"), *(f"0.1 * {self.item('u')}" for _ in range(2))])
        lines = [f"for j in range({ends}):", f"    u[j] = {value}"]
        lines += [f"    total += 0.1 * {self.item('u')}"] * self.chance(0.2)
        self.before, self.after = around
        return lines

    def step(self):
        """The lines of a step in time."""
        if self.is_one and self.chance(0.7):
            return self.sweep() + [f"    {self.again()}"] * self.chance(0.2)
        lines = []
        if not self.is_one and self.chance(0.4):
            lines.append(self.pick(["new = np.zeros(n)", "new = u.copy()"]))
        lines += [self.end()] * self.chance(0.3)
        lines += [self.along(), f"    {self.new}[j] = {self.value('u')}"]
        lines += [f"    {self.again()}"] * self.chance(0.4)
        if self.chance(0.3):
            lines += [self.along(), f"    {self.new}[j] = {self.value('u', self.new)}"]
        lines += [self.end()] * self.chance(0.3)
        if not self.is_one:
            span = f"{self.first}:{self.last}"
            ways = ["u = new", "u, new = new, u", "u[:] = new", f"u[{span}] = new[{span}]"]
            lines.append(self.pick(ways))
        return lines + ["total += u[1] * u[n // 2]"] * self.chance(0.3)

    def program(self):
        """All of it."""
        made = self.pick(["np.zeros(n)", "x.copy()", "np.ones(n)"])
        lines = ["n, total, u = len(x), 0.0, 0.5 * x", f"new = {made}"]
        lines += [f"for t in range({self.pick(['3', 'n // 2'])}):"]
        lines += [f"    {line}" for line in self.step()]
        found = self.pick(["u @ w", "u[1]", "u[0] + new[2]", "(u * new).sum()"])
        return "\n    ".join(["def f(x, w):", *lines, f"return total + {found}\n"])


def program(seed):
    """The text of ``f(x, w)`` of two vectors of five items or more; the same for the same seed."""
    return "import numpy as np\n\n\n" + _Maker(seed).program()
