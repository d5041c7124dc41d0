"""Random programs that look gradient arrays up by sources that derivatives of nbta's use too.

They add, read, stack, ask for sizes and close in any order, and look arrays up to clear or to keep
what is read. Python runs a program on eager arrays: traced, one by one and compiled, it has the
same value and slope, or raises an error for the same reason.
"""

import textwrap

from . import accumulators
from .ways import DisagreementError, executed, hold, outcome

X, H = 1.3, 2.0**-6
SOURCES = ("s", "gradients", "gradients_1", "gradients#0", "s/tangents", "s/tangents_1")

_HEAD = """\
def f(x):
    a = nbta.TensorArray("float64", size=2, element_shape=(), clear_after_read=False)
    b = nbta.TensorArray("float64", size=2, element_shape=(), clear_after_read=False)
    last_a = a.grad("last", clear_after_read=False)
    last_b = b.grad("last", clear_after_read=False)
    g, total = a.grad("s"), x * 0.5
"""


class _Maker(accumulators._Maker):
    def lookup(self):
        clear = self.one("", "", ", clear_after_read=False")
        found = f'{self.one("a", "a", "b")}.grad("{self.one(*SOURCES)}"{clear})'
        deeper = f'{found}.grad("{self.one(*SOURCES)}")'
        return self.one("g", found, found, found, deeper)

    def statement(self, depth):
        kinds = ["add"] * 6 + ["read"] * 2 + ["stack", "size", "name", "write", "forward", "close"]
        kind = self.one(*kinds, *(["if", "else", "for"] * 2 if depth else []))
        if kind == "add":
            return [f"{self.lookup()}.accumulate({self.index()}, {self.value()})"]
        if kind == "read":
            index = self.one(self.index(), self.index(), "3")
            return [f"total = total + {self.lookup()}.read({index}) * x"]
        if kind == "stack":
            return [f"total = total + ({self.lookup()}.stack() ** 2).sum() * 0.25"]
        if kind == "size":
            return [f"total = total + {self.lookup()}.size() * x"]
        if kind == "name":
            return [f"g = {self.lookup()}"]
        if kind == "write":
            return [f"{self.one('a', 'b')}.write({self.index()}, {self.value()})"]
        if kind == "forward":
            return [f"total = total + {self.one('a', 'b')}.read({self.index()}) * x"]
        if kind == "close":
            return [f"{self.lookup()}.close()"]
        if kind in ("if", "else"):
            lines = [f"if {self.test()}:", *self.block(depth - 1)]
            return lines if kind == "if" else [*lines, "else:", *self.block(depth - 1)]
        return self.loop(kind, depth)

    def text(self):
        lines = [line for _ in range(self.random.randint(3, 7)) for line in self.statement(2)]
        lines += self.one([], [], ["a.close()", "last_a.accumulate(0, x * x)"])
        lines += ["return total + last_a.read(0) + last_b.read(0)"]  # after all else
        return _HEAD + textwrap.indent("\n".join(lines), "    ") + "\n"


def program(seed):
    """The program of a seed."""
    return accumulators.Program(_Maker(seed).text())


def check(made, machine_code=False, counts=None):
    """Value and slope, one by one and compiled, against the eager program."""
    f = made.function()

    def value(x):
        return float(f(x))

    expected = outcome(value, [X])
    near = [outcome(value, [X + k * H]) for k in (-2, -1, 1, 2)]
    for kind, compiled in {"one by one": False, "compiled": True}.items():
        with executed(machine_code):
            found = outcome(accumulators.nbta.function(f, compiled=compiled), [X])
            both = outcome(accumulators.nbta.value_and_grad(f, compiled=compiled), [X])
            jvp = outcome(_tangent(f, compiled), [X, 1.0])
        if isinstance(expected, Exception):
            for name, have in (("value", found), ("slope", both), ("tangent", jvp)):
                _hold_reason(f"{kind}: {name}", have, expected)
            continue
        hold(kind, 0, found if isinstance(found, Exception) else float(found), expected, 1e-9)
        if any(isinstance(each, Exception) for each in near):
            continue
        slope = (8 * (near[2] - near[1]) - (near[3] - near[0])) / (12 * H)
        for name, have in (("slope", both), ("tangent", jvp)):
            wrong = isinstance(have, Exception) or abs(have[1] - slope) > 1e-4 * max(1, abs(slope))
            if wrong:
                raise DisagreementError(f"{kind}: {name}", 0, f"{have!r} and {slope!r}")


def _tangent(f, compiled):
    nbta = accumulators.nbta
    return nbta.function(lambda x, v: nbta.jvp(f, (x,), (v,)), compiled=compiled)


def _hold_reason(stage, have, expected):
    reason = getattr(have, "reason", None)
    if not isinstance(have, Exception) or reason != getattr(expected, "reason", None):
        raise DisagreementError(f"{stage}: reason", 0, f"{have!r} and {expected!r}")
