"""Random programs that look gradient arrays up, by any name and from anywhere, and add to them.

Python runs a program on eager arrays. Traced it must give the same value, and the derivatives that
differences of the eager values have.
"""

import itertools
import linecache
import random
import textwrap
import time
from typing import NamedTuple

import nbta

from .ways import DisagreementError, executed, hold, outcome

X = 1.7
SOURCES = ("s", "t")
#: Of central differences. All values are polynomials of a low degree between the places where a
#: test changes, and a shorter step lies on one side of these.
STEPS = (2**-8, 2**-12, 2**-16)
_files = itertools.count()

_HEAD = """\
def f(x):
    a = nbta.TensorArray("float64", size=2, element_shape=())
    b = nbta.TensorArray("float64", size=2, element_shape=())
    total, t, g, held = x * 0.5, a, b.grad("s"), {"k": a}

    def put(array, i, value):
        array.grad("s").accumulate(i, value)

"""


class Program(NamedTuple):
    """The text of a function of one number."""

    text: str

    def operations(self):
        """How many lines there are."""
        return self.text.count("\n")

    def function(self):
        """It; its text is where `inspect` finds it."""
        name = f"<accumulators {next(_files)}>"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        space = {"nbta": nbta, "__name__": "random_accumulators"}
        exec(compile(self.text, name, "exec"), space)
        return space["f"]

    def __repr__(self):
        return self.text


class _Maker:
    def __init__(self, seed):
        self.random, self.loops = random.Random(seed), []

    def one(self, *choices):
        return self.random.choice(choices)

    def array(self):
        return self.one("a", "b", "t", 'held["k"]')

    def gradient(self):
        source = f'{self.array()}.grad("{self.one(*SOURCES)}")'
        return self.one("g", source, source, source, f'{source}.grad("u")')

    def value(self):
        factor = self.one("0.5", "x", "1.5", *self.loops)
        return f"x * {factor} + {self.random.randint(1, 9)}.0 * x"

    def index(self):
        return self.one("0", "1", *(f"{name} % 2" for name in self.loops))

    def test(self):
        tests = [f"x > {self.one(0.5, 1.2, 2.3)}", "total > 7.123"]
        return self.one(*tests, *(f"{name} * x > 4.321" for name in self.loops))

    def block(self, depth):
        lines = [line for _ in range(self.random.randint(1, 3)) for line in self.statement(depth)]
        return textwrap.indent("\n".join(lines), "    ").splitlines()

    def statement(self, depth):
        kinds = ["add", "add", "add", "put", "name", "name", "other", "total"]
        kind = self.one(*kinds, *(["if", "else", "for", "while"] if depth else []))
        if kind == "add":
            return [f"{self.gradient()}.accumulate({self.index()}, {self.value()})"]
        if kind == "put":
            return [f"put({self.array()}, {self.index()}, {self.value()})"]
        if kind == "name":
            return [f"g = {self.gradient()}"]
        if kind == "other":
            return [self.one("t = b", "t = a", 'held["k"] = b')]
        if kind == "total":
            return [f"total = total + {self.value()}"]
        if kind in ("if", "else"):
            lines = [f"if {self.test()}:", *self.block(depth - 1)]
            return lines if kind == "if" else [*lines, "else:", *self.block(depth - 1)]
        return self.loop(kind, depth)

    def loop(self, kind, depth):
        name = f"i{len(self.loops)}"
        self.loops.append(name)
        body = self.block(depth - 1)
        self.loops.pop()
        if kind == "for":
            return [f"for {name} in range({self.one(2, 10)}):", *body]
        return [f"{name} = 0", f"while {name} * x < 5.55:", *body, f"    {name} += 1"]

    def text(self):
        lines = [line for _ in range(self.random.randint(3, 6)) for line in self.statement(2)]
        for k, (array, source) in enumerate(itertools.product("ab", SOURCES)):
            found = f'{array}.grad("{source}")'
            lines.append(f"total = total + ({found}.stack() ** {k % 2 + 1}).sum() * {k + 1}.0")
            lines.append(f'total = total + {found}.grad("u").read({k % 2}) * {k + 0.5}')
        return _HEAD + textwrap.indent("\n".join([*lines, "return total"]), "    ") + "\n"


def program(seed):
    """The program of a seed."""
    return Program(_Maker(seed).text())


def check(made, machine_code=False, counts=None):
    """Value, first and second derivative, one by one and compiled, against the eager program."""
    f = made.function()

    def value(x):
        return float(f(x))

    middle = outcome(value, [X])
    for kind, compiled in {"one by one": False, "compiled": True}.items():
        with executed(machine_code):
            found = outcome(nbta.value_and_grad(f, compiled=compiled), [X])
            second = outcome(nbta.grad(nbta.grad(f), compiled=compiled), [X])
        if isinstance(middle, Exception) or isinstance(found, Exception):
            hold(kind, 0, found, middle, 1e-9)
            continue
        hold(kind, 0, float(found[0]), middle, 1e-9)
        against_differences(kind, value, middle, (found[1], second))


def against_differences(kind, value, middle, derivatives):
    """Slope and bend, by the longest step that crosses no test of the program."""
    for have in derivatives:
        if isinstance(have, Exception):
            raise DisagreementError(f"{kind}: derivative", 0, f"{have!r}") from have
    pairs = "errors beside the point"
    for h in STEPS:
        left, right = (outcome(value, [X + d]) for d in (-h, h))
        if isinstance(left, Exception) or isinstance(right, Exception):
            continue
        differences = (right - left) / (2 * h), (right - 2 * middle + left) / h**2
        pairs = list(zip(derivatives, differences, strict=True))
        if all(abs(have - expected) <= 1e-2 * max(1, abs(expected)) for have, expected in pairs):
            return
    raise DisagreementError(f"{kind}: slope and bend", 0, f"{pairs}")


def _without(lines, k):
    """The lines without one, and without what is indented below it."""
    depth = len(lines[k]) - len(lines[k].lstrip())
    end = next((j for j in range(k + 1, len(lines))
                if len(lines[j]) - len(lines[j].lstrip()) <= depth), len(lines))  # fmt: skip
    return lines[:k] + lines[end:]


def shrunk(made, fails, seconds):
    """A program of fewer lines that fails in the same way."""
    end, k = time.monotonic() + seconds, 0
    while k < made.text.count("\n") and time.monotonic() < end:
        lines = made.text.splitlines()
        candidate = Program("\n".join(_without(lines, len(lines) - 1 - k)) + "\n")
        if lines[-1 - k].strip() and fails(candidate):
            made = candidate
        else:
            k += 1
    return made
