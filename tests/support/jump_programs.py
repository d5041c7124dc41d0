"""Random programs whose helpers assign variables of the function around, and jump out of blocks.

They are text, as those of `frontend_random`. `return`, `break` and `continue` stand in branches,
loops and their `else`, in `try` with all its parts, in `with` and `match`; helpers are called in
all of these, in comprehensions and by `map`, and define helpers of their own.
"""

from frontend_random import Writer, indented

HEAD = "import math\nfrom contextlib import nullcontext, suppress\n\n\n"
#: What several functions assign.
SHARED = ("a", "b", "c")


class Place:
    """Where a statement stands: in which function, and how deep in loops and blocks."""

    def __init__(self, helpers=(), generators=(), numbers=(), depth=0, loops=0, way="main"):
        self.helpers, self.generators, self.numbers = list(helpers), list(generators), numbers
        self.depth, self.loops, self.way = depth, loops, way

    def inner(self, number=None, loops=0):
        """Of a block in it."""
        numbers = self.numbers if number is None else (*self.numbers, number)
        given = self.helpers, self.generators, numbers, self.depth + 1, self.loops + loops
        return Place(*given, self.way)


class Maker(Writer):
    """Writes one program."""

    # Expressions.

    def value(self, place):
        k = self.pick([*place.numbers, "1", "2"])
        found = ["v", *SHARED, f"x[{k} % 6]", "x[0]", self.constant()]
        one, other = self.pick(found), self.pick(found)
        text = self.pick(["{0}", "{0} * 0.5 - {1}", "math.sin({0} + {1})", "0.3 * {0} * {1}"])
        return text.format(one, other)

    def test(self, place):
        k = self.pick([*place.numbers, "2"])
        known = [f"{k} == {self.pick([0, 1, 2, 5])}", f"{k} % 2"]
        of_run = [f"{self.pick(['v', *SHARED, 'x[1]'])} > {self.constant()}"] * 3
        bound = f"({self.pick(SHARED)} := {self.value(place)}) > {self.constant()}"
        return self.pick([*known, *of_run, bound])

    def call(self, place):
        helper = self.pick(place.helpers)
        value = self.value(place)
        text = self.pick([
            "{0}({1})", "{0}({1})", "sum([{0}(w) for w in x[:3]]) * 0.2",
            "sum(map({0}, x[:2])) * 0.3", "sum([{0}(x[q]) for q in range(5)]) * 0.1",
        ])  # fmt: skip
        return text.format(helper, value)

    # Statements.

    def statement(self, place):
        deep = place.depth > 2 or self.left < 1
        kinds = {
            self.assign: 6, self.called: 3 * bool(place.helpers), self.jump: 2 * bool(place.depth),
            self.branch: 4 * (not deep), self.for_loop: 2 * (not deep and place.loops < 2),
            self.while_loop: 1 * (not deep and place.loops < 2), self.tried: 3 * (not deep),
            self.in_with: 1 * (not deep), self.matched: 1 * (not deep),
            self.gone_along: 2 * (bool(place.generators) and place.loops < 1 and not deep),
            self.given: 3 * (place.way == "generator"),
        }  # fmt: skip
        return self.random.choices(list(kinds), list(kinds.values()))[0](place)

    def assign(self, place):
        target, value = self.pick(SHARED), self.value(place)
        return [self.pick([
            f"{target} = 0.6 * {target} + {value}", f"{target} += {value}", f"{target} = {value}",
            f"{target} -= 0.1 * {target}", "a, b = b, a",
        ])]  # fmt: skip

    def called(self, place):
        return [f"{self.pick(SHARED)} += 0.4 * {self.call(place)}"]

    def given(self, place):
        return [f"yield {self.value(place)}"]

    def jump(self, place):
        ways = ["break", "continue"] * bool(place.loops)
        ways.append("return" if place.way == "generator" else f"return {self.value(place)}")
        way = self.pick(ways)
        if self.chance(0.2):
            return [way]
        return [f"if {self.test(place)}:", f"    {way}"]

    def part(self, head, place, most=3):
        return [head, *indented(self.block(place, most))]

    def branch(self, place):
        lines = self.part(f"if {self.test(place)}:", place.inner())
        if self.chance(0.3):
            lines += self.part(f"elif {self.test(place)}:", place.inner())
        return lines + (self.part("else:", place.inner()) if self.chance(0.5) else [])

    def for_loop(self, place):
        number = self.fresh("k")
        head = f"for {number} in range({self.pick([3, 4, 12])}):"
        found = self.part(head, place.inner(number, 1))
        return found + self.otherwise(place)

    def otherwise(self, place):
        """The `else` of a loop."""
        return self.part("else:", place.inner(), 2) if self.chance(0.4) else []

    def while_loop(self, place):
        number = self.fresh("w")
        found = self.part(f"while {number} < {self.pick([2, 3, 11])}:", place.inner(number, 1))
        found.insert(1, f"    {number} += 1")
        return [f"{number} = 0", *found, *self.otherwise(place)]

    def gone_along(self, place):
        name = self.fresh("e")
        found = self.part(f"for {name} in {self.pick(place.generators)}():", place.inner(None, 1))
        return [*found, f"    {self.pick(SHARED)} += 0.1 * {name}", *self.otherwise(place)]

    def tried(self, place):
        lines = self.part("try:", place.inner())
        if self.chance(0.4):
            k = self.pick([*place.numbers, "2"])
            lines += [f"    [][{k} % 2]"] if self.chance(0.5) else []
        kind = self.pick(["with a handler", "with a finally", "with both"])
        if kind != "with a finally":
            lines += self.part("except IndexError:", place.inner(), 2)
            lines += self.part("else:", place.inner(), 2) if self.chance(0.6) else []
        if kind != "with a handler":
            own = place.inner()
            lines += ["finally:", *indented(self.assign(own))]
        return lines

    def in_with(self, place):
        manager = self.pick(["nullcontext()", "suppress(KeyError)"])
        return self.part(f"with {manager}:", place.inner())

    def matched(self, place):
        lines = [f"match {self.pick([*place.numbers, '3'])} % 3:"]
        lines += indented(self.part("case 0:", place.inner(), 2))
        if self.chance(0.5):
            lines += indented(self.part(f"case 1 if {self.test(place)}:", place.inner(), 2))
        target = self.pick(["_", "_", "q"])
        return lines + indented(self.part(f"case {target}:", place.inner(), 2))

    # Functions.

    def helper(self, place, depth=0):
        name = self.fresh("h")
        shared = self.random.sample(SHARED, self.random.randint(1, 3))
        own = Place(place.helpers, way="helper")
        lines = [f"nonlocal {', '.join(sorted(shared))}"]
        lines += [f"{each} = v" for each in SHARED if each not in shared]
        if depth < 1 and self.chance(0.3):
            lines += self.helper(own, depth + 1)
        lines += [*self.block(own), f"return {self.value(own)}"]
        place.helpers.append(name)
        return [f"def {name}(v):", *indented(lines)]

    def generator(self, place):
        name = self.fresh("g")
        own = Place(place.helpers, way="generator")
        lines = ["nonlocal a, b, c", "v = x[2]", *self.block(own), f"yield {self.value(own)}"]
        place.generators.append(name)
        return [f"def {name}():", *indented(lines)]

    def function(self):
        place = Place()
        lines = ["v, a, b, c = x[3], 0.0, x[4] * 0.5, 1.0"]
        for _ in range(self.random.randint(1, 2)):
            lines += self.helper(place)
        lines += self.generator(place) if self.chance(0.4) else []
        lines += [*self.block(place, 4), "return a + 2.0 * b - c"]
        return HEAD + "\n".join(["def f(x):", *indented(lines)]) + "\n"


def program(seed):
    """The text of a program."""
    return Maker(seed, 14, 36).function()
