"""Random programs that fill an array of vectors, look at it, and fill it further, in any order.

Which slots are there is known while a program runs, so that a statement that would fail is left
out. Python runs it, on NumPy or on tensors.
"""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import nbta

from .drawn import drawn
from .ways import hold, hold_compiled, outcome

X = [np.array([0.71, -0.43, 0.92]), np.array([-0.37, 0.83, 0.11])]
#: Rows of the elements of a uniform array, and the other lengths that ragged ones have.
ROWS, LENGTHS = 2, (2, 0, 1, 3)
MOST_SLOTS = 9


def weights(shape, salt=0):
    """Numbers of about one, all different."""
    return np.cos(np.arange(np.prod(shape, dtype=int)) + 0.7 * salt + 0.3).reshape(shape)


class Env:
    """An array with what is known of its slots, and a number that all looks go into."""

    def __init__(self, x, ragged, clears):
        self.x, self.sum, self.ragged, self.clears = x, x[0], ragged, clears
        self.slots, self.read, self.count = [], set(), 0
        self.array = nbta.TensorArray(
            "float64", dynamic_size=True, clear_after_read=clears, infer_shape=not ragged
        )

    def length(self, k):
        return LENGTHS[k % len(LENGTHS)] if self.ragged else ROWS

    def value(self, *shape):
        """Something new that depends on ``x`` and on all that was looked at."""
        self.count += 1
        salt = self.count
        return self.x[salt % 3] * weights(shape, salt) + nbta.sin(self.sum * weights(shape, -salt))

    def free(self, slots):
        """Whether these slots, of which there are some, may be written, each once."""
        taken = {k for k, n in enumerate(self.slots) if n is not None} | self.read
        far = not slots or max(slots) >= MOST_SLOTS or len(set(slots)) < len(slots)
        return not far and taken.isdisjoint(slots)

    def occupy(self, slots, lengths):
        for slot, n in zip(slots, lengths, strict=True):
            self.slots += [None] * (slot + 1 - len(self.slots))
            self.slots[slot] = n

    def may_look(self, slots):
        """Whether these slots can be looked at; a look at a gap of known shape fills it."""
        gaps = [k for k in slots if self.slots[k] is None]
        if not slots or (gaps and self.ragged) or (self.clears and self.read & set(slots)):
            return False
        if self.clears and len(set(slots)) < len(slots):
            return False
        self.occupy(gaps, [ROWS] * len(gaps))
        self.read |= set(slots)
        return True

    def look(self, value):
        """Let a value count."""
        shape = np.shape(value) if not isinstance(value, nbta.Tensor) else None
        if shape is None:
            total = nbta.sum(nbta.square(value) * 0.3 + nbta.sin(value))
        else:
            total = nbta.sum(np.square(value) * 0.3 + np.sin(value))
        self.sum = nbta.tanh(0.5 * self.sum + 0.2 * total)


class Write(NamedTuple):
    """One element, in a slot or (-1) after the last one."""

    slot: int
    k: int

    def run(self, env):
        slot = len(env.slots) if self.slot < 0 else self.slot
        if env.free([slot]):
            n = env.length(self.k)
            put = env.array.append if self.slot < 0 else lambda v: env.array.write(slot, v)
            env.array = put(env.value(n))
            env.occupy([slot], [n])


class Scatter(NamedTuple):
    """Elements of one length, in these slots."""

    slots: tuple
    k: int

    def run(self, env):
        if env.free(self.slots):
            n = env.length(self.k)
            rows = env.value(len(self.slots), n)
            env.array = env.array.scatter(list(self.slots), rows)
            env.occupy(self.slots, [n] * len(self.slots))


class Unstack(NamedTuple):
    """Elements of one length, in the first slots."""

    count: int
    k: int

    def run(self, env):
        slots = list(range(self.count))
        if env.free(slots):
            n = env.length(self.k)
            env.array = env.array.unstack(env.value(self.count, n))
            env.occupy(slots, [n] * self.count)


class Split(NamedTuple):
    """Pieces, in the first slots of an array that has no more of them."""

    count: int
    k: int

    def run(self, env):
        slots = list(range(self.count))
        if env.free(slots) and len(env.slots) <= self.count:
            lengths = [env.length(self.k + i) for i in slots]
            env.array = env.array.split(env.value(sum(lengths)), lengths)
            env.occupy(slots, lengths)


class Grow(NamedTuple):
    """A loop that appends, and reads what it appended last."""

    iterations: int
    reads: bool

    def run(self, env):
        slots = [len(env.slots) + i for i in range(self.iterations)]
        if not env.free(slots):
            return
        value, sees = env.value(ROWS), self.reads and not env.clears

        def body(i, h, ta):
            ta = ta.append(nbta.tanh(h + 0.1 * value))
            return i + 1, (ta.read(ta.size() - 1) if sees else h) * 1.1, ta

        first = (np.int64(0), value, env.array)
        _, h, env.array = nbta.while_loop(lambda i, h, ta: i < self.iterations, body, first)
        env.occupy(slots, [ROWS] * self.iterations)
        env.read |= set(slots) if sees else set()
        env.look(h)


class Look(NamedTuple):
    """All slots, some or one."""

    way: str
    slots: tuple

    def run(self, env):
        every = list(range(len(env.slots)))
        some = [k % len(every) for k in self.slots] if every else []
        if self.way == "read":
            some = some[:1]
        seen = every if self.way in ("stack", "concat") else some
        alike = len({env.slots[k] for k in seen} | ({ROWS} if not env.ragged else set())) <= 1
        if (self.way in ("stack", "gather") and not alike) or not env.may_look(seen):
            return
        reads = {
            "read": lambda: env.array.read(some[0]),
            "gather": lambda: env.array.gather(some),
            "stack": env.array.stack,
            "concat": lambda: env.array.concat().value,
        }
        env.look(reads[self.way]())


class Filling(NamedTuple):
    """Statements as a function of three numbers."""

    statements: list
    ragged: bool
    clears: bool

    def __call__(self, x):
        env = Env(x, self.ragged, self.clears)
        for statement in self.statements:
            statement.run(env)
        return env.sum

    def operations(self):
        """How many statements there are."""
        return len(self.statements)

    def __repr__(self):
        kind = f"ragged={self.ragged}, clears={self.clears}"
        return "\n    ".join([f"filling ({kind}):", *map(str, self.statements)])


def filling_programs(most=7):
    """A strategy for programs of one array."""
    lengths = st.integers(0, 3)
    slots = st.lists(st.integers(0, MOST_SLOTS - 2), min_size=1, max_size=3).map(tuple)
    count = st.integers(1, 4)
    fills = [
        st.builds(Split, count, lengths),
        st.builds(Unstack, count, lengths),
        st.builds(Scatter, slots, lengths),
    ]
    grows = [
        st.builds(Write, st.integers(-1, MOST_SLOTS - 2), lengths),
        st.builds(Grow, st.integers(1, 3), st.booleans()),
    ]
    looks = st.builds(Look, st.sampled_from(["read", "gather", "stack", "concat"]), slots)
    whole = st.builds(Look, st.sampled_from(["stack", "concat"]), st.just((0,)))
    first = st.one_of(*fills, *grows)
    rest = st.lists(st.one_of(*fills, *grows, looks, looks), min_size=1, max_size=most - 2)
    statements = st.tuples(first, rest, whole).map(lambda t: [t[0], *t[1], t[2]])
    return st.builds(Filling, statements, st.booleans(), st.sampled_from([False, False, True]))


def fixed_orders():
    """Each fill, look, growth and last look in turn, by a name."""
    fills = [Split(3, 0), Unstack(3, 0), Scatter((2, 0, 1), 0), Write(-1, 0)]
    looks = [None, Look("concat", ()), Look("gather", (0, 0))]
    grows = [Write(-1, 0), Write(4, 0), Scatter((4, 3), 0), Grow(2, True)]
    ends = [Look("concat", ()), Look("stack", ())]
    for fill in fills:
        for look in looks:
            for grow in grows:
                for end in ends:
                    some = [s for s in (fill, look, grow, end) if s is not None]
                    yield Filling(some, False, False)


def program(seed):
    return drawn(filling_programs(), seed)


def slopes(program):
    """What a program gives, and its gradients of two orders."""

    def run(x):
        y = program(x)
        (slope,) = nbta.gradients([y], [x], unconnected="zero")
        (bend,) = nbta.gradients([nbta.sum(nbta.sin(slope))], [x], unconnected="zero")
        return y, slope, bend

    return run


def check(program, machine_code=False, counts=None):
    """Plain, traced and compiled, and against differences to the second order."""
    for x in X:
        expected = outcome(nbta.function(program, compiled=False), [x])
        hold("plain", 0, outcome(program, [x]), expected, 1e-12)
        nbta.testing.check_grads(program, (x,), order=2, rtol=1e-5, atol=1e-6)
        hold_compiled(slopes(program), [x], machine_code, counts)
