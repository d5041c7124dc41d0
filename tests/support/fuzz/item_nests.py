"""Random nests of two to four `for` loops that read items, add them up and fill arrays.

Each is the text of a plain function of a matrix and a vector. Its gradient is held to central
differences, its second derivatives (``jvp`` of ``grad``, ``hvp`` and ``hessian``) to differences of
the gradient, and all of them compiled to what they are one by one. Where a nest is so steep that
differences of two steps disagree, or that the last digits of its arguments change the derivative,
the comparison is skipped and counted.
"""

import linecache
import random
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np

import nbta
from nbta.frontend import control

from .ways import DisagreementError, count, executed

#: Rows and columns of the matrix; the length of the vector.
N = 3
#: Of central differences. The error of the second is a sixteenth of that of the first: where the
#: two agree to a tolerance the second one is exact to a fifteenth of it.
STEPS = (1e-5, 2.5e-6)
#: How far a derivative may be from its differences, and compiled from what it is one by one.
OF_DIFFERENCES, OF_COMPILED = 2e-6, 1e-9
LETTERS = "ijkl"


class Program(NamedTuple):
    """Lines of a function ``f(c, w)`` that gives a number, and which second derivative to take."""

    lines: tuple
    second: str

    def operations(self):
        """How many lines there are."""
        return len(self.lines)

    def source(self):
        """The text of the function."""
        return "import math\nimport numpy as np\n\n" + "\n".join(self.lines) + "\n"

    def function(self):
        """The function, whose text Python finds."""
        name, scope = f"<nest {hash(self.lines)}>", {}
        source = self.source()
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        exec(compile(source, name, "exec"), scope)
        return scope["f"]

    def __repr__(self):
        return f"# {self.second}\n{self.source()}"


class _Maker:
    """Writes one nest; ``names`` are the loop variables so far, ``sums`` numbers that exist."""

    def __init__(self, seed):
        self.random, self.names, self.sums = random.Random(seed), [], ["total"]
        self.depth = self.random.randint(2, 4)
        self.arrays = self.random.choice([[], ["t"], ["t", "m"]])

    def chance(self, share):
        return self.random.random() < share

    def pick(self, *choices):
        return self.random.choice(choices)

    def program(self):
        lines = ["def f(c, w):", "    total = 0.0"]
        made = {"t": f"    t = np.zeros({N})", "m": f"    m = np.zeros(({N}, {N}))"}
        lines += [made[name] for name in self.arrays]
        lines += self.loop(1)
        rest = {"t": " + np.sum(np.sin(t) * t)", "m": " + np.sum(np.cos(m))"}
        lines += ["    return total" + "".join(rest[a] for a in self.arrays)]
        return Program(tuple(lines), self.random.choice(list(_SECOND)))

    def loop(self, depth):
        """A loop of a depth, with what is in it and beside it."""
        name, pad, made = LETTERS[depth - 1], "    " * depth, []
        outer = self.names[-1] if self.names else None
        kinds = [f"range({N})", f"range({N})", "range(len(w))", "range(1, 3)", "range(2, -1, -1)"]
        kinds += [f"range({outer} + 1)", f"range({outer}, {N})"] if outer else []
        own = f"s{depth}" if self.chance(0.4) else None
        if own:
            made.append(f"{pad}{own} = {self.pick('0.0', self.value())}")
        made.append(f"{pad}for {name} in {self.random.choice(kinds)}:")
        self.names.append(name)
        self.sums += [own] if own else []
        made += self.block(depth + 1)
        if depth < self.depth:
            made += self.loop(depth + 1)
            made += self.block(depth + 1) if self.chance(0.4) else []
        elif made[-1].endswith(":"):
            made += self.statement(depth + 1)
        self.names.pop()
        if own:
            self.sums.remove(own)
            made.append(f"{pad}{self.pick(*self.sums)} += {self.pick(own, f'{own} * {own}')}")
        return made

    def block(self, depth):
        return [line for _ in range(self.pick(0, 0, 1, 2)) for line in self.statement(depth)]

    def statement(self, depth):
        pad = "    " * depth
        kinds = [f"{self.pick(*self.sums)} += {self.value()}"]
        changed = self.pick(*self.sums)
        kinds += [f"{changed} = math.sin({changed} + {self.value()})"]
        for array in self.arrays:
            kinds += [f"{self.item(array)} {self.pick('=', '+=')} math.sin({self.value()})"]
        line = self.random.choice(kinds)
        if self.chance(0.2):
            test = self.pick(f"{self.item('c')} > 0.1", f"{self.pick(*self.names)} % 2 == 0")
            return [f"{pad}if {test}:", f"{pad}    {line}"]
        return [pad + line]

    def item(self, array):
        """An item; of a vector or a matrix by loop variables or numbers."""
        places = [*self.names, *self.names, "0", "-1"]
        places += [f"{self.pick(*self.names)} - 1"] if self.names else []
        count = 2 if array in ("c", "m") else 1
        return f"{array}[{', '.join(self.random.choice(places) for _ in range(count))}]"

    def value(self):
        a, b = (self.item(self.pick("c", "c", "w", *self.arrays)) for _ in range(2))
        return self.pick(
            f"{a} ** 2", f"{a} * {b}", f"math.sin({a} * {b})", a, f"math.exp(-({a} - {b}) ** 2)",
            f"0.3 * {self.pick(*self.sums)} * {a}", f"{a} / (1.5 + {b} ** 2)",
            f"math.tanh({self.pick(*self.sums)}) * {a} ** 2",
        )  # fmt: skip


def program(seed):
    return _Maker(seed).program()


def arguments():
    c = np.cos(1.7 * np.arange(N * N) + 0.4).reshape(N, N)
    return c, np.sin(np.arange(N) + 0.7)


@contextmanager
def as_loops():
    """Iterations of short loops are not made one by one by Python."""
    before, control.UNROLLED = control.UNROLLED, 1
    try:
        yield
    finally:
        control.UNROLLED = before


#: Second derivatives of ``f`` at arguments; `directions` are along.
_SECOND = {
    "jvp of grad": lambda f, c, w: nbta.jvp(nbta.grad(f, (0, 1)), (c, w), directions())[1],
    "hvp": lambda f, c, w: nbta.hvp(f, (c, w), directions()),
    "hessian": lambda f, c, w: nbta.hessian(f, 0)(c, w),
}


def directions():
    c, w = arguments()
    return np.sin(np.arange(c.size) + 1.0).reshape(c.shape), np.cos(np.arange(w.size) + 0.2)


def check(program, machine_code=False, counts=None):
    """`DisagreementError` where a derivative is not that of differences, or differs compiled."""
    counts = {} if counts is None else counts
    f, given, found = program.function(), arguments(), {}
    with as_loops(), np.errstate(all="ignore"):
        for compiled in (False, True):
            ways = _ways(f, program.second, compiled)
            with executed(machine_code or not compiled):
                found[compiled] = [way(*given) for way in ways]
        _against_differences(program, f, given, *found[False], counts)
        for k, stage in enumerate(("gradient", program.second)):
            if not _near(found[True][k], found[False][k], OF_COMPILED) and _is_steep(f, program, k):
                count(counts, f"compiled {stage}: steep")
            else:
                _hold(f"compiled {stage}", found[True][k], found[False][k], OF_COMPILED)
    count(counts, "agreed")


def _ways(f, second, compiled):
    """The gradient and the second derivative of a function, compiled or not."""
    first = nbta.value_and_grad(f, (0, 1), compiled=compiled)
    return first, nbta.function(partial(_SECOND[second], f), compiled=compiled)


def _is_steep(f, program, k):
    """Whether the last digits of the arguments change a derivative as much as is compared."""
    way, given = _ways(f, program.second, False)[k], arguments()
    moved = [
        x * (1 + 4 * np.finfo(x.dtype).eps * np.cos(np.arange(x.size))).reshape(x.shape)
        for x in given
    ]
    return not _near(way(*moved), way(*given), OF_COMPILED)


def _against_differences(program, f, given, first, second, counts):
    along, (value, gradient) = directions(), first
    _hold("value", value, f(*given), 1e-12)
    own = sum(np.sum(g * v) for g, v in zip(gradient, along, strict=True))
    _hold_slope("gradient", own, f, given, along, counts)
    if program.second == "hessian":
        along = along[0], 0.0 * along[1]
        second = np.einsum("ijkl,kl->ij", second, along[0])
    places = 0 if program.second == "hessian" else (0, 1)
    slope = nbta.grad(f, places, compiled=False)
    _hold_slope(program.second, second, slope, given, along, counts)


def _hold_slope(stage, found, f, given, along, counts):
    """A derivative is the slope of differences, unless two steps of these disagree."""
    coarse, fine = (_slope(f, given, along, step) for step in STEPS)
    if np.all(np.isfinite(fine)) and _near(coarse, fine, OF_DIFFERENCES):
        _hold(f"{stage} and differences", found, fine, OF_DIFFERENCES)
    else:
        count(counts, f"{stage}: differences disagree")


def _slope(f, given, along, step):
    ends = [
        _flat(f(*(x + h * v for x, v in zip(given, along, strict=True)))) for h in (step, -step)
    ]
    return (ends[0] - ends[1]) / (2 * step)


def _flat(value):
    """All numbers of nested tuples of arrays, one after the other."""
    if isinstance(value, tuple | list):
        return np.concatenate([_flat(part) for part in value])
    return np.ravel(value)


def _near(found, expected, rtol):
    return np.allclose(_flat(found), _flat(expected), rtol=rtol, atol=rtol, equal_nan=True)


def _hold(stage, found, expected, rtol):
    if not _near(found, expected, rtol):
        raise DisagreementError(stage, 0, f"{_flat(found)} and {_flat(expected)}")
