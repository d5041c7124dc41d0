"""Random small programs of loops, branches and arrays: how they are drawn, run and printed.

A program is a list of statements on three numbers ``s`` and two growing arrays ``t``, which begin
with two slots each. Python runs it, on NumPy or on tensors.
"""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import nbta

NUMBERS = st.integers(0, 2)
ARRAYS = st.integers(0, 1)
OPERATIONS = {
    "add": lambda a, b: 0.7 * a + 0.6 * b,
    "mul": lambda a, b: a * b,
    "sin": lambda a, b: nbta.sin(a) * b,
    "tanh": lambda a, b: nbta.tanh(a + 0.5 * b),
    "drop": lambda a, b: b * 0.9,
}


class Compute(NamedTuple):
    """``s[to] = operation(s[a], s[b])``."""

    to: int
    operation: str
    a: int
    b: int

    def run(self, env):
        env.put(self.to, OPERATIONS[self.operation](env.s[self.a], env.s[self.b]))

    def lines(self):
        return [f"s[{self.to}] = {self.operation}(s[{self.a}], s[{self.b}])"]


class Append(NamedTuple):
    """Write after the last slot; nothing where the array belongs to a body around."""

    array: int
    a: int

    def run(self, env):
        if env.own[self.array]:
            env.t[self.array] = env.t[self.array].append(env.s[self.a])

    def lines(self):
        return [f"t[{self.array}].append(s[{self.a}])"]


class Read(NamedTuple):
    """Add a slot, counted from the last one or from the first one."""

    to: int
    array: int
    slot: int

    def run(self, env):
        array = env.t[self.array]
        slot = self.slot if self.slot >= 0 else array.size() + self.slot
        env.put(self.to, 0.5 * env.s[self.to] + array.read(slot))

    def lines(self):
        return [f"s[{self.to}] = 0.5 * s[{self.to}] + t[{self.array}][{self.slot}]"]


class ReadOld(NamedTuple):
    """Multiply with a slot, under the name that the array had at first."""

    to: int
    array: int
    slot: int

    def run(self, env):
        env.put(self.to, env.s[self.to] * env.old[self.array].read(self.slot))

    def lines(self):
        return [f"s[{self.to}] *= old t[{self.array}][{self.slot}]"]


class Sum(NamedTuple):
    """The hyperbolic tangent of the sum of all slots."""

    to: int
    array: int

    def run(self, env):
        env.put(self.to, nbta.tanh(nbta.sum(env.t[self.array].stack() * env.x[0])))

    def lines(self):
        return [f"s[{self.to}] = tanh(sum(t[{self.array}] * x[0]))"]


class New(NamedTuple):
    """Another array in place of one, with the last slot of the old one."""

    array: int
    a: int

    def run(self, env):
        old = env.t[self.array]
        last = old.read(old.size() - 1)
        env.t[self.array] = started(last, env.s[self.a])
        env.own[self.array] = True

    def lines(self):
        return [f"t[{self.array}] = new(t[{self.array}][-1], s[{self.a}])"]


class Swap(NamedTuple):
    """The two arrays change places, where both may be written to."""

    def run(self, env):
        if all(env.own):
            env.t.reverse()

    def lines(self):
        return ["t.reverse()"]


class If(NamedTuple):
    """One of two blocks, by a number or by an iteration."""

    by: int
    then: list
    otherwise: list

    def run(self, env):
        if self.by < 3:
            test = env.s[self.by] > 0.137
        else:
            test = nbta.equal(env.iteration % 2, np.int64(0))
        made = env.own[:]
        given = nbta.cond(test, env.branch(self.then, made), env.branch(self.otherwise, made))
        env.take(given)

    def lines(self):
        test = f"s[{self.by}] > 0.137" if self.by < 3 else "iteration is even"
        return [f"if {test}:", *indented(self.then), "else:", *indented(self.otherwise)]


class Loop(NamedTuple):
    """Iterations; ``carried`` says which arrays are variables, and others are captured."""

    iterations: object
    carried: tuple
    body: list

    def run(self, env):
        limit = {"n": env.n, "iteration": env.iteration % 3}.get(self.iterations, 3)
        if isinstance(self.iterations, int):
            limit = np.int64(self.iterations)

        def goes_on(i, s, t):
            below = i < limit
            small = nbta.abs(s[0]) < 1.21
            return nbta.logical_and(below, small) if self.iterations == "until" else below

        def advance(i, s, t):
            inner = env.inside(i, s, t, self.carried)
            block(self.body, inner)
            return i + 1, inner.s, [inner.t[k] for k in range(2) if self.carried[k]]

        carried = tuple(mine and own for mine, own in zip(self.carried, env.own, strict=True))
        self = self._replace(carried=carried)
        first = (np.int64(0), env.s, [env.t[k] for k in range(2) if carried[k]])
        _, env.s, arrays = nbta.while_loop(goes_on, advance, first)
        env.put_arrays(arrays, carried)

    def lines(self):
        carried = [k for k in range(2) if self.carried[k]]
        return [f"loop {self.iterations} carrying t{carried}:", *indented(self.body)]


class Slope(NamedTuple):
    """The derivative of a block of its own by one number."""

    to: int
    a: int
    body: list

    def run(self, env):
        def of(v):
            inner = Env(env.x, env.n, [v, np.float64(0.4), np.float64(-0.3)])
            inner.iteration = env.n
            block(self.body, inner)
            return inner.s[1]

        env.put(self.to, nbta.tanh(nbta.grad(of)(env.s[self.a])))

    def lines(self):
        return [f"s[{self.to}] = tanh(d s[1] / d s[0]) at s[{self.a}] of:", *indented(self.body)]


class Env:
    """Where a program runs: its numbers, its arrays, and which of these it may write to."""

    def __init__(self, x, n, s):
        self.x, self.n, self.s, self.iteration = x, n, list(s), np.int64(1)
        self.t = [started(self.s[0], self.s[1]), started(self.s[2], self.s[0] * self.s[1])]
        self.old, self.own = list(self.t), [True, True]

    def put(self, place, value):
        self.s = [value if k == place else old for k, old in enumerate(self.s)]

    def put_arrays(self, arrays, places):
        arrays = iter(arrays)
        self.t = [next(arrays) if here else t for t, here in zip(self.t, places, strict=True)]

    def copy(self):
        other = object.__new__(Env)
        other.__dict__.update(self.__dict__)
        other.s, other.t, other.own = list(self.s), list(self.t), list(self.own)
        return other

    def inside(self, iteration, s, t, carried):
        other = self.copy()
        other.iteration, other.s, other.own = iteration, list(s), list(carried)
        other.put_arrays(t, carried)
        return other

    def branch(self, statements, own):
        def run():
            other = self.copy()
            block(statements, other)
            return other.s, [other.t[k] for k in range(2) if own[k]]

        return run

    def take(self, given):
        s, arrays = given
        self.s = list(s)
        self.put_arrays(arrays, self.own)


def started(first, second):
    array = nbta.TensorArray(
        "float64", size=2, dynamic_size=True, clear_after_read=False, element_shape=()
    )
    return array.write(0, first).write(1, second)


def block(statements, env):
    for statement in statements:
        statement.run(env)


def indented(statements):
    found = [line for statement in statements for line in statement.lines()]
    return [f"    {line}" for line in found or ["pass"]]


class Program(NamedTuple):
    """Statements as a function of three numbers and a number of iterations."""

    statements: list

    def __call__(self, x, n):
        env = Env(x, n, [x[0], x[1], x[2]])
        block(self.statements, env)
        return env.s, [array.stack() for array in env.t]

    def __repr__(self):
        return "\n".join(["program:", *indented(self.statements)])


def programs(depth=2, longest=4):
    """A strategy for programs whose loops and branches are nested so deep."""
    return statements(depth, longest, slopes=True).map(Program)


def statements(depth, longest, slopes):
    slots = st.sampled_from([-2, -1, 0, 1])
    simple = [
        st.builds(Compute, NUMBERS, st.sampled_from(sorted(OPERATIONS)), NUMBERS, NUMBERS),
        st.builds(Append, ARRAYS, NUMBERS),
        st.builds(Read, NUMBERS, ARRAYS, slots),
        st.builds(ReadOld, NUMBERS, ARRAYS, st.integers(0, 1)),
        st.builds(Sum, NUMBERS, ARRAYS),
        st.builds(New, ARRAYS, NUMBERS),
        st.builds(Swap),
    ]
    if depth == 0:
        return st.lists(st.one_of(simple), min_size=2, max_size=longest)
    inner = statements(depth - 1, longest, slopes=False)
    iterations = st.sampled_from(["n", "until", "iteration", 0, 1, 3])
    nested = [
        st.builds(Loop, iterations, st.tuples(st.booleans(), st.booleans()), inner),
        st.builds(Loop, iterations, st.just((True, True)), inner),
        st.builds(If, st.integers(0, 3), inner, inner),
    ]
    if slopes:
        nested.append(st.builds(Slope, NUMBERS, NUMBERS, inner))
    return st.lists(st.one_of(*nested, *nested, *simple), min_size=1, max_size=longest)
