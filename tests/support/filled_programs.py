"""Random programs that fill arrays and store some of their items in loops before they read them.

They are text. Some loops store a whole box of items, and some do not quite: they stop early, leave
every other item out, store under a condition, or read an item that is stored only later. The rows
of tables are as many as a number says, or as the run does.
"""

import functools
import random


class _Maker:
    """Writes one program."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, share):
        return self.random.random() < share

    def made(self, shape):
        """An array, filled."""
        return self.pick(f"np.zeros({shape})", f"np.ones({shape})", f"np.full({shape}, 0.5)")

    def span(self, index, length, first=(0, 1, 2), others=()):
        """A loop along an axis, and how far before and after it there are items."""
        low, high = self.pick(*first), self.pick(0, 0, 1, 2)
        end = f"{length} - {high}" if high else length
        if others and self.chance(0.15):
            return f"for {index} in range({low}, {self.pick(*others)}):", (low, 0)
        if self.chance(0.3):
            return f"for {index} in range({end} - 1, {low} - 1, -1):", (low, high)
        if self.chance(0.15):  # of short axes it makes no iteration
            return f"for {index} in range({length} - {self.pick(2, 5, 6)}, -1, -1):", (0, 1)
        step = ", 2" if self.chance(0.1) else ""
        return f"for {index} in range({low}, {end}{step}):", (low, high)

    def near(self, index, around):
        """An index next to the one of a loop; now and then it wraps around before the first."""
        before, after = around
        offset = self.random.randint(-before - self.chance(0.15), after)
        return f"{index}{offset:+d}" if offset else index

    def value(self, *items):
        """What an item is assigned."""
        a, b = self.pick(*items), self.pick(*items)
        return self.pick(
            f"0.4 * {a} + 0.3 * {b}", f"np.tanh({a}) - {b}", f"0.9 * {a}", f"max({a}, 0.5 * {b})"
        )

    def stores(self, array, place, near, *items):
        """The statements of an iteration that stores an item, or should."""
        store = f"{array}[{place}] = {self.value(*items)}"
        if self.chance(0.2):
            store = f"{array}[{place}] = {self.value(*items, f'{array}[{near()}]')}"
        lines = [store]
        if self.chance(0.15):
            lines = [f"if {self.pick(*items)} > 0.2:", f"    {store}"]
        if self.chance(0.2):
            lines.append(f"{array}[{near()}] = {self.value(*items)}")
        if self.chance(0.15):
            lines.append(f"{array}[{place}] += {self.pick(*items)}")
        if self.chance(0.2):
            lines.append(f"total += 0.3 * {array}[{near()}]")
        if lines[0] == store:
            self.random.shuffle(lines)
        return [f"    {line}" for line in lines]

    def vector(self):
        """The lines of a step that makes a vector of another one, `u`."""
        lines = [f"new = {self.made('n')}"]
        ends = [f"new[{self.pick('0', 'n - 1', '1', '-1', 't')}] = 0.7 * u[{self.pick(0, 1)}]",
                f"total += new[{self.pick('0', 'n - 1', '2')}] * u[1]"]  # fmt: skip
        lines += [ends[0]] * self.chance(0.4) + [ends[1]] * self.chance(0.1)
        for _ in range(self.pick(1, 1, 1, 2)):
            header, around = self.span("j", "n", others=("n // 2", "t + 2", "2 * t"))
            if self.chance(0.1):
                lines += ["j = 1", "while j < n - 1 and u[j] < 0.8:"]
                around = (1, 1)
                more = ["    j += 1"]
            else:
                lines.append(header)
                more = []
            reads = [f"u[{self.near('j', around)}]" for _ in range(3)]
            near = functools.partial(self.near, "j", around)
            lines += self.stores("new", self.near("j", around), near, *reads, "w[j]") + more
        lines += [ends[0]] * self.chance(0.3)
        return [*lines, self.pick("u = new", "u = new", "total += new @ w", "u = u + new")]

    def table(self):
        """The lines of a step that makes a table of a vector."""
        lines = [f"c = {self.made('(m, n)')}"]
        if self.chance(0.4):
            lines += ["for j in range(n):", "    c[0, j] = u[j]"]
        rows, above = self.span("i", "m")
        columns, beside = self.span("j", "n", others=("i", "i + 1", "n // 2"))
        if self.chance(0.2):
            rows, columns = columns.replace("i + 1", "2").replace("(0, i)", "(0, 3)"), rows
            columns = columns.replace("range(2, i)", "range(0, 3)")
            rows = rows.replace(", i)", ", 3)")
        lines += [rows, f"    {columns}"]
        items = [f"u[{self.near('j', beside)}]", "w[i]", "x[i] * u[j]"]
        earlier = f"{self.near('i', above)}, {self.near('j', beside)}"
        if self.chance(0.5):
            items.append(f"c[{earlier}]")
        near = lambda: f"{self.near('i', above)}, {self.near('j', beside)}"  # noqa: E731
        lines += [f"    {line}" for line in self.stores("c", "i, j", near, *items)]
        if rows.startswith("for i") and self.chance(0.3):
            lines.append(f"    total += c[{self.near('i', above)}, n // 2]")
        return [*lines, self.pick("u = c[m - 1]", "u = u + c[1]", "total += np.sum(c * c)")]

    def program(self):
        """All of it."""
        rows = self.pick("4", "n - 2", "n // 2 + 1")
        lines = [f"n, total, u = len(x), 0.0, 0.5 * x\n    m = {rows}"]
        lines.append(f"for t in range({self.pick(1, 3)}):")
        for _ in range(self.pick(1, 1, 2)):
            step = self.vector() if self.chance(0.6) else self.table()
            lines += [f"    {line}" for line in step]
        return "\n    ".join(["def f(x, w):", *lines, "return total + u @ w\n"])


def program(seed):
    """The text of ``f(x, w)`` of two vectors of seven items or more; the same for the same seed."""
    return "import numpy as np\n\n\n" + _Maker(seed).program()
