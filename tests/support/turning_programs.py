"""Random programs whose arrays take each other's places, in loops of loops.

Iterations exchange arrays, shift them on by one, make new ones and change them in place, some of
it at the ends of a loop or in branches.
"""

from array_programs import Maker
from frontend_random import indented

ARRAYS = "pqr"


class TurningMaker(Maker):
    """Writes one program of arrays that have one length.

    Attributes
    ----------
    first : tuple of str
        What arrays begin with.
    rest : str
        What the result has beside sums of the arrays and the number.
    """

    lengths = (range(3, 8), range(13, 16))
    first = ("x * c", "y + 0.1", "np.zeros(n)", "np.ones(n) * c", "x.copy()", "np.sin(x)")
    rest = " + np.sum(p ** 2)"

    def program(self):
        n = self.random.randint(2, 3)
        self.arrays, self.depth, self.letters = ARRAYS[:n], 0, iter("ijklmo" * 9)
        lines = ["n = len(x)", "s = 0.1 * c"]
        lines += [f"{a} = {self.pick(self.first)}" for a in self.arrays]
        for _ in range(self.random.randint(1, 2)):
            lines += self.loop()
        whole = " + ".join(f"np.sum({a} * {self.constant()})" for a in self.arrays)
        return self.function([*lines, f"return {whole} + s{self.rest}"])

    def loop(self):
        """A loop with some statements, of which the last ones exchange arrays."""
        t, self.depth = next(self.letters), self.depth + 1
        times = "n" if self.chance(0.3) else str(self.random.randint(1, 4))
        lines = []
        for _ in range(self.random.randint(1, 4)):
            lines += self.statement(t, times)
        if self.chance(0.8):
            lines += self.exchange()
        self.depth -= 1
        return [f"for {t} in range({times}):", *indented(lines)]

    def exchange(self):
        """Arrays in each other's places, or one made anew and others shifted on."""
        names = self.random.sample(self.arrays, self.random.randint(2, len(self.arrays)))
        given = [*names[1:], names[0] if self.chance(0.6) else self.expression()]
        return [f"{', '.join(names)} = {', '.join(given)}"]

    def expression(self):
        """An array of bounded items."""
        one, other = (self.pick([*self.arrays, "x", "y"]) for _ in range(2))
        forms = ["0.4 * {0} - 0.3 * {1}", "np.tanh({0} + {1})", "np.sin({0} * {1}) * 0.9"]
        return self.pick([*forms, "0.5 * {0} + c * y", "{0}[::-1] * 0.8"]).format(one, other)

    def statement(self, t, times):
        """One that loops again, makes an array, or changes an item."""
        a, b = (self.pick(self.arrays) for _ in range(2))
        forms = [self.anew, self.in_place, self.items, self.number]
        if self.depth < 3:
            forms += [self.inner, self.inner, self.by_items, self.branch]
        if times == "n":
            forms += [self.ends, self.ends]
        return self.pick(forms)(t, a, b)

    def inner(self, *_):
        """A loop in the loop, of a range or until a count is reached."""
        lines = self.loop()
        if self.chance(0.8):
            return lines
        count, t = self.fresh("count"), lines[0].split()[1]
        ends = [
            f"    {count} += 1",
            *self.pick([[], [f"    if s > {self.constant()}:", "        break"]]),
        ]
        return [f"{count} = 0", f"while {count} < 3:", f"    {t} = {count}", *lines[1:], *ends]

    def branch(self, t, a, b):
        """Some statements in one of two branches."""
        one = [*self.pick([self.in_place, self.anew, self.items])(t, a, b), *self.exchange()]
        other = self.pick([self.exchange, self.loop])()
        test = self.pick([f"{t} % 2 == 0", f"s > {self.constant()}", f"{a}[0] > {b}[0]"])
        rest = ["else:", *indented(other)] if self.chance(0.5) else []
        return [f"if {test}:", *indented(one), *rest]

    def anew(self, t, a, b):
        return [f"{a} = {self.expression()}"]

    def in_place(self, t, a, b):
        return [self.pick([f"{a} *= 0.8", f"{a} -= 0.2 * {b}", f"{a}[1:] = {b}[:-1] * 0.7"])]

    def items(self, t, a, b):
        return [f"{a}[{t} % n] = {self.constant()} * {b}[0] + 0.5 * y[{t} % n]"]

    def number(self, t, a, b):
        return [self.pick([f"s += 0.1 * np.sum({a})", f"s = np.sin(s + {a}[{t} % n])"])]

    def by_items(self, t, a, b):
        """A new array, or an old one, item by item, which takes the place of one."""
        i, new = next(self.letters), self.fresh("new")
        begun = self.pick(["np.empty(n)", "np.zeros(n)", f"{a}.copy()"])
        item = f"{new}[{i}] = 0.6 * {a}[{i} - 1] - 0.3 * {b}[{i}] * x[{i}]"
        return [f"{new} = {begun}", f"for {i} in range(n):", f"    {item}", f"{a} = {new}"]

    def ends(self, t, a, b):
        """What differs at the first and the last iteration."""
        to = self.pick(["s", f"{a}[{t}]"])
        return [
            f"if {t} == 0:", f"    {to} += 0.3 * x[0]",
            f"elif {t} == n - 1:", f"    {to} -= 0.2 * {b}[{t}]",
            "else:", f"    {to} += 0.5 * x[{t} - 1] * y[{t} + 1]",
        ]  # fmt: skip


def program(seed):
    """The same program for the same seed."""
    return TurningMaker.made(seed)


class LengthsMaker(TurningMaker):
    """Writes one program of arrays that have several lengths, and others in each iteration."""

    first = ("x * c", "np.zeros(3) + c", "np.concatenate((x, y))", "y[1:] - c", "x.copy()",
             "np.ones(2 * n) * c", "np.arange(4.0) * c")  # fmt: skip
    rest = ""

    def expression(self):
        """An array of bounded items and of any length, the last ones with at least one more."""
        forms = ["np.tanh({0})", "np.sin({0}[1:]) * 0.9", "0.5 * {0}[:-1]", "{0}[::-1] * 0.8",
                 "x * 0.5 + c", "np.append({0}, s)", "0.5 * {0}[2:]"]  # fmt: skip
        return self.pick(forms).format(self.pick(self.arrays))

    def statement(self, t, times):
        """One that loops again, makes an array, or changes what there is."""
        a, b = (self.pick(self.arrays) for _ in range(2))
        forms = [self.anew, self.scaled, self.number]
        if self.depth < 3:
            forms += [self.inner, self.inner, self.branch]
        return self.pick(forms)(t, a, b)

    def scaled(self, t, a, b):
        """One array changed by numbers of others."""
        return [self.pick([f"{a} *= 0.8", f"{a} -= 0.1 * np.tanh(np.sum({b}))", f"{a}[:2] *= 0.7"])]

    def number(self, t, a, b):
        """A number that an array makes."""
        return [
            self.pick([f"s = 0.3 * np.sin(s + np.sum({a}))", f"s = 0.5 * np.sin(s + len({a}))"])
        ]

    def branch(self, t, a, b):
        """An exchange in some iterations."""
        return [f"if {t} % 2 == 0:", *indented(self.exchange())]


def program_of_lengths(seed):
    """The same program for the same seed."""
    return LengthsMaker.made(seed)
