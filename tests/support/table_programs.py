"""Random dynamic programs: tables whose indices conditions bound, and items chosen among some.

They are text, as those of `frontend_random`. A condition on a column bounds the indices in its
branch, as a knapsack's weight does, also from the other side or by an offset of the iteration;
tables are whole, lists of lists, or two rows that change places; a counter may run through both
loops. Some programs read an item that is not there.
"""

import array_programs
from frontend_random import indented

#: Conditions on a column, and columns that are in the table where they hold, and where they do not.
CONDITIONS = (
    ("j >= w", ("j - w", "j - w", "j"), ("j",)),
    ("j - w >= 0", ("j - w", "j"), ("j",)),
    ("w <= j", ("j - w", "j"), ("j",)),
    ("not j < w", ("j - w",), ("j",)),
    ("j < w", ("j",), ("j - w", "j")),
    ("j > 0", ("j - 1", "j - 1", "j"), ("j",)),
    ("j", ("j - 1", "j"), ("j",)),
    ("j == 0", ("j", "1"), ("j - 1", "j")),
    ("j < m", ("j + 1", "j", "m"), ("j", "j - 1")),
    ("j + w <= m", ("j + w", "j"), ("j", "m")),
    ("0 < j < m", ("j - 1", "j + 1", "j"), ("j",)),
    ("j >= w and j + w <= m", ("j - w", "j + w"), ("j",)),
    ("j <= 1 or j > m - 1", ("j",), ("j - 2", "j + 1")),
    ("i > 1 and j >= 2", ("j - 2", "j"), ("j",)),
    ("(i + j) % 3 > 0 and j != m", ("j + 1", "j"), ("j",)),
)

#: Columns that a loop goes through, and others that are in the table for all of them.
COLUMNS = {
    "range(m + 1)": ("j",),
    "range(m, -1, -1)": ("j",),
    "range(0, m + 1, 2)": ("j",),
    "range(i)": ("j",),
    "range(1, m + 1)": ("j", "j - 1"),
    "range(1, m)": ("j", "j - 1", "j + 1"),
    "range(w, m + 1)": ("j", "j - w"),
    "range(m, w - 1, -1)": ("j", "j - w"),
    "range(m - w + 1)": ("j", "j + w"),
}


class Maker(array_programs.Maker):
    """Writes one program."""

    lengths, largest = (range(3, 7), range(1, 8)), 0.9

    def __init__(self, seed):
        super().__init__(seed)
        self.kind = self.pick(["whole", "whole", "lists", "rows", "rows"])
        self.tables = ["d", "e"][: self.pick([1, 1, 2])]
        self.wrong, self.counts = self.chance(0.1), self.chance(0.25)

    def at(self, table, row, column):
        """Where an item is."""
        if self.kind == "rows":
            return f"{table}{'' if row == 'i' else '_before'}[{column}]"
        return f"{table}[{row}, {column}]" if self.kind == "whole" else f"{table}[{row}][{column}]"

    def item(self, columns):
        columns = [*columns, "j + w"] if self.wrong else columns
        row = self.pick(["i - 1", "i - 1", "i"] + ["0"] * (self.kind != "rows"))
        return self.at(self.pick(self.tables), row, self.pick(columns))

    def value(self, columns):
        one = self.item(columns)
        others = ["x[i - 1]", "y[i - 1]", "c", self.constant(), "0.05 * j", "x[j % n]", "r"]
        other = self.pick(others + ["a[p % len(a)]"] * (2 * self.counts))
        text = self.pick(["{0} + {1}", "0.8 * {0} + {1}", "0.5 * {0} + 0.4 * {2}", "{0} - abs({1})",
                          "np.sin({0}) + {1}", "np.tanh({0} * {1})",
                          "({0} if {0} > {1} else {1})"])  # fmt: skip
        return text.format(one, other, self.item(columns))

    def choice(self, columns, depth):
        """A branch, by the column or by what an item is."""
        test, inside, outside = self.pick(CONDITIONS)
        if self.chance(0.3):
            test, inside, outside = f"{self.item(columns)} > {self.constant()}", columns, columns
        lines = [f"if {test}:", *indented(self.lines(inside, depth - 1))]
        if self.chance(0.35):
            lines += ["else:", *indented(self.lines(outside, depth - 1))]
        return lines

    def line(self, columns, depth):
        """What an iteration does for its item."""
        if depth and self.chance(0.5):
            return self.choice(columns, depth)
        value, place = self.value(columns), self.at(self.pick(self.tables), "i", self.pick(columns))
        found = [[f"best = {kind}(best, {value})"] for kind in ("max", "min") * 2]
        found += [[f"best = {value}"], [f"best += 0.3 * ({value})"], ["s = max(s, best)"]]
        found += [[f"v = {value}", "if v > best:", "    best, k = v, j"]] * 2
        found += [[f"{place} {self.pick(['=', '+=', '*='])} np.sin(best)"], ["s += 0.1 * best"]]
        found += [["q[k % 3] += best"], ["r = 0.5 * np.sin(r + best)"]]
        return self.pick(found)

    def lines(self, columns, depth):
        count = self.random.choice([1, 1, 2])
        return [line for _ in range(count) for line in self.line(columns, depth)]

    def columns(self):
        """A loop over a row."""
        span, columns = self.pick(COLUMNS.items())
        lines = [f"best = {self.pick([self.item(columns), '0.1 * c', '-9.0 * c'])}"]
        lines += self.lines(columns, 2) + self.lines(columns, 2)
        lines += [f"p += {self.pick([1, 1, 2])}"] * self.counts
        store = [f"{self.at(self.pick(self.tables), 'i', 'j')} = best"]
        if self.chance(0.2):
            store = [f"if {self.pick(CONDITIONS)[0]}:", *indented(store)]
        return [f"for j in {span}:", *indented(lines + store)]

    def start(self, table):
        """A table as it is at first."""
        if self.kind == "whole":
            found = ["np.zeros((n + 1, m + 1))", "np.full((n + 1, m + 1), 0.2) * c"]
            return f"{table} = {self.pick(found)}"
        if self.kind == "lists":
            return f"{table} = [[{self.pick(['0.0', '0.1 * c'])}] * (m + 1) for _ in range(n + 1)]"
        row = self.pick(["np.zeros(m + 1)", "np.arange(m + 1.0) * 0.1 * c"])
        return f"{table}, {table}_before = np.zeros(m + 1), {row}"

    def program(self):
        """All of it."""
        weights = ", ".join(str(self.random.randint(1, 4)) for _ in range(5))
        lines = [f"n, m, weights = len(x), len(x) + {self.pick([2, 3, 5])}, np.array([{weights}])"]
        lines += ["s, r, k, q = 0.0, 0.3 * c, 0, np.zeros(3)", *map(self.start, self.tables)]
        lines += ["a, p = np.sin(np.arange(60.0)) * c, 0"] * self.counts
        width = self.pick(["weights[i % 5]", "weights[i % 5]", "1", "2", "i % 3 + 1",
                           "int(abs(x[i - 1]) * 3) + 1"])  # fmt: skip
        body = [f"w = {width}", *[f"{self.at('d', 'i', 0)} = c * i"] * self.chance(0.4)]
        for _ in range(self.random.choice([1, 1, 1, 2])):
            body += self.columns()
        for table in self.tables if self.kind == "rows" else ():
            before = f"{table}_before"
            changed = [f"{table}, {before} = {before}, {table}"] * 3
            body.append(
                self.pick([*changed, f"{before} = {table}.copy()", f"{before}[:] = {table}"])
            )
        span = self.pick(["1, n + 1"] * 4 + ["n, 0, -1", "1, n"])
        loop = [f"for i in range({span}):", *indented(body)]
        lines += ["for _ in range(2):", *indented(loop)] if self.chance(0.15) else loop
        last = {"whole": "np.sum({0} * {0})", "lists": "sum([sum(row) for row in {0}])",
                "rows": "np.sum({0}_before * {0})"}[self.kind]  # fmt: skip
        ends = ["s", "r", "np.sum(q)", *map(last.format, self.tables)]
        row = {"whole": "n, ", "lists": "n][", "rows": ""}[self.kind]
        ends += [f"{table}[{row}{place}]" for table in self.tables for place in ("m", "1")]
        return self.function([*lines, f"return {' + '.join(self.random.sample(ends, 4))}"])


def program(seed):
    """The same for the same seed."""
    return Maker.made(seed)
