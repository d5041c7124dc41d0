"""Random programs from an array to an array, each of whose items depends on some items.

They are made of slices, elementwise functions, reductions, loops with items, gathers and branches
on arrays `a` and `b` of one length ``n``. Values stay bounded by sines.
"""

from frontend_random import Choices, built

HEAD = "import numpy as np\n\nPLACES = np.array({places})\n\n\n"


class SparseMaker(Choices):
    """Writes one program: ``f(x)``, for arrays of ``length`` items."""

    length = 7

    def program(self):
        """The text of a function."""
        places = [self.random.randrange(self.length) for _ in range(self.length)]
        lines = ["n = len(x)", "a = x.copy()", "b = np.cos(x) * 0.5"]
        for _ in range(self.random.randint(2, 5)):
            lines += self.pick(self.statements)(self)
        body = "".join(f"    {line}\n" for line in lines)
        end = self.pick(["a", "b[1:] * a[:-1]", "np.concatenate([a, b])", "np.outer(a[:2], b)"])
        return f"{HEAD.format(places=places)}def f(x):\n{body}    return {end}\n"

    def two(self):
        """Names of arrays."""
        return self.pick("ab"), self.pick("ab")

    def index(self):
        """Of an item, from ``i`` within 2 and n - 2, or anywhere."""
        return self.pick(["i", "i - 1", "i + 1", "n - 1 - i", "PLACES[i]", "0", "-1", "i // 2"])

    def whole(self):
        """A formula of whole arrays."""
        to, one = self.two()
        k = self.random.randint(1, 3)
        formulas = [
            f"np.sin({one}) * b",
            f"np.concatenate([{one}[{k}:], {one}[:{k}] ** 2])",
            f"np.where({one} > 0.1, a, b[::-1])",
            f"np.where(np.arange(n) % 2 == 0, a * {one}, 0.0)",
            f"np.roll({one}, {k}) - 0.5 * a",
            f"np.sin(np.cumsum({one}))",
            f"{one} * np.max({one}[:{k}])",
            f"{one}[PLACES] + x",
            f"np.sin({one}) + np.sum(b[{k}:])",
            f"np.sin(np.diag(np.arange(n) % 3 * 1.0) @ {one})",
            f"np.sin(np.outer({one}, b)[{k}])",
            f"np.stack([a, {one}]).T[:, {k} % 2] * 0.5",
            f"np.concatenate([np.sort({one}[:{k}]), {one}[{k}:]])",
            f"np.pad({one}[1:-1], 1) + x",
            f"np.repeat({one}[:1], n) * a",
            f"np.array([s * 0.5 for s in {one}])",
            f"np.sin(np.dot({one}, b)) * (np.arange(n) == {k})",
            f"np.flip({one}) * np.argmax(a)",
            f"np.minimum({one}, np.roll(b, {k}))",
        ]
        return [f"{to} = {self.pick(formulas)}"]

    def part(self):
        """An assignment to a slice."""
        to, one = self.two()
        k = self.random.randint(0, 2)
        sign = self.pick(["=", "+="])
        return [f"{to}[{k}:{k} + 4] {sign} np.sin({one}[1:5]) * b[{2 - k}:{6 - k}]"]

    def loop(self):
        """Items, in a loop with a branch."""
        to, one = self.two()
        item = f"np.sin({one}[{self.index()}]) * b[{self.index()}]"
        other = f"{to}[{self.index()}] + 0.3 * {one}[{self.index()}]"
        condition = self.pick([f"{one}[i] > 0.2", "i % 2 == 0", "x[0] < a[i]", "i > 3"])
        target = self.pick(["i", "PLACES[i]", "n - 1 - i", "i - 1", f"np.argmax({one})"])
        return [
            "for i in range(2, n - 2):",
            f"    {to}[{target}] {self.pick(['=', '+='])} {item}",
            f"    if {condition}:",
            f"        {to}[{self.pick(['i', 'i + 1'])}] = {other}",
        ]

    def search(self):
        """A loop whose length depends on values."""
        to, one = self.two()
        k = self.random.randint(0, self.length - 1)
        return [
            f"s, t = 1.0 + {one}[{k}] ** 2, 0.0",
            "while s > 0.3:",
            f"    t = np.sin(t + s) * {self.pick(['0.5', 'x[1]', f'{one}[2]'])}",
            "    s = 0.5 * s",
            f"{to}[{self.random.randint(0, self.length - 1)}] = t * s",
        ]

    def early(self):
        """A loop that ends early."""
        to, one = self.two()
        return [
            "s = 0.0",
            "for i in range(n):",
            f"    if {one}[i] > 0.8:",
            "        break",
            f"    s = np.sin(s + {one}[i])",
            f"{to} = {to} * {self.pick(['s', 'np.cos(s)'])}",
        ]

    def listed(self):
        """A list that a loop fills."""
        to, one = self.two()
        carried = self.pick(["0.5 * s", "0.0"])
        return [
            "found, s = [], 0.0",
            "for i in range(n):",
            f"    s = {carried} + np.sin({one}[{self.pick(['i', 'n - 1 - i', 'PLACES[i]'])}])",
            "    found.append(s)",
            f"{to} = np.array(found)",
        ]

    def rows(self):
        """Products of a matrix."""
        to, one = self.two()
        return [
            f"m = np.concatenate([{one}[:3], b[:3]]).reshape(2, 3)",
            f"{to}[:2] = {self.pick(['np.sum(m, axis=1)', 'm @ a[:3]', 'm[:, 1]', 'm.T[0]'])}",
        ]

    statements = (whole, whole, whole, part, loop, loop, search, early, listed, rows)


def made(seed):
    """A program, and its text."""
    text = SparseMaker(seed).program()
    return built(text)[0], text
