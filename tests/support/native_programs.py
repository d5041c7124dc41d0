"""Random nests of loops, branches and arrays over numbers and rows of numbers.

A program is a function of a vector and a number that gives a number, made of blocks of this kind in
each other. All that it does has a compiled form, in its gradient too, but for the threads of a map.
"""

import random

import numpy as np

import nbta

LENGTH = 4
X = np.cos(1.7 * np.arange(LENGTH) + 0.4)
S = np.float64(0.34)
CHECKPOINTS = [None, None, None, 1, 2, "sqrt", "online"]


class Block:
    """A function of a vector and a number, with the words that name it."""

    def __init__(self, name, call, *inner):
        self.name, self.inner, self._call = name, inner, call

    def __call__(self, x, s):
        return self._call(x, s)

    def __repr__(self):
        return f"{self.name}({', '.join(map(repr, self.inner))})"


def each(count, f, *state, checkpoint=None, begin=0):
    """Variables after iterations with numbers below a count."""

    def following(j, *now):
        found = f(j, *now)
        return (j + 1, *(found if isinstance(found, tuple) else (found,)))

    first = (nbta.cast(begin, "int64"), *state)
    count = nbta.cast(count, "int64")
    _, *last = nbta.while_loop(lambda j, *_: j < count, following, first, checkpoint=checkpoint)
    return last[0] if len(last) == 1 else tuple(last)


def rows_in(x):
    return nbta.cast(nbta.shape(x)[0], "int64")


class Maker:
    """Draws blocks by a seed."""

    def __init__(self, seed, kinds=None):
        self.random = random.Random(seed)
        self.kinds = kinds or [*LOOPS, *[arrays] * 6]

    def pick(self, *choices):
        return self.random.choice(choices)

    def block(self, depth):
        """One block, of so many in each other."""
        if depth == 0:
            return Block("leaf", lambda x, s: 0.4 * nbta.sin(0.5 * s + x[1] * nbta.cos(x[0])))
        return self.pick(*self.kinds)(self, depth)

    def program(self, depth=3):
        first, second = self.block(depth), self.block(self.pick(0, 1))
        both = Block("both", lambda x, s: second(x, first(x, s)), first, second)
        return self.pick(*LOOPS)(self, depth, both)


# Loops and branches.


def counted(maker, depth, inner=None):
    inner, k = inner or maker.block(depth - 1), maker.pick(*CHECKPOINTS)

    def call(x, s):
        return each(
            rows_in(x), lambda i, s: nbta.sin(0.7 * s + 0.5 * inner(x * x[i], s)), s, checkpoint=k
        )

    return Block(f"counted[{k}]", call, inner)


def growing_iterations(maker, depth, inner=None):
    inner = inner or maker.block(depth - 1)

    def call(x, s):
        for i in range(1, x.shape[0]):
            s = nbta.tanh(s * x[i - 1] + inner(x - x[i], s))
        return s

    return Block("python", call, inner)


def until(maker, depth, inner=None):
    inner = inner or maker.block(depth - 1)

    def call(x, s):
        i = 0
        while s < 0.9 and i < 3:
            s = s + 0.3 + 0.1 * nbta.sin(inner(x, s))
            i += 1
        return s

    return Block("until", call, inner)


def scanned(maker, depth, inner=None):
    inner, k = inner or maker.block(depth - 1), maker.pick(*CHECKPOINTS)

    def call(x, s):
        def step(h, row):
            y = inner(x * row, h)
            return nbta.tanh(0.5 * h + y), y * h

        h, ys = nbta.scan(step, s, x, checkpoint=k)
        return h + nbta.sum(ys * ys)

    return Block(f"scan[{k}]", call, inner)


def folded(maker, depth, inner=None):
    inner = inner or maker.block(depth - 1)
    fold = maker.pick(nbta.foldl, nbta.foldr)

    def call(x, s):
        return fold(lambda h, row: 0.5 * h + inner(x + row, h), x, s)

    return Block(fold.__name__, call, inner)


def mapped(maker, depth, inner=None):
    inner = inner or maker.block(depth - 1)
    options = maker.pick({}, {"checkpoint": 2}, {"parallel_iterations": 2})

    def call(x, s):
        return nbta.sum(nbta.sin(nbta.map_fn(lambda row: inner(x * row, s), x, **options)))

    return Block(f"map{options}", call, inner)


def branched(maker, depth, inner=None):
    inner, other = inner or maker.block(depth - 1), maker.block(0)

    def call(x, s):
        return nbta.cond(s > 0.3, lambda: inner(x, s), lambda: other(x, s))

    return Block("cond", call, inner, other)


LOOPS = [counted, growing_iterations, until, scanned, folded, mapped, branched]


# Arrays: what an element is, how it is filled, how it is read, and where it is made.


def number(x, s, j):
    return x[j] * s


def row(x, s, j):
    return nbta.sin(x * s + x[j])


def short_row(x, s, j):
    return nbta.sin(x[: 1 + j % 3] * s + x[j])


def new(kind, size, clear, told=True):
    shapes = {number: (), row: (LENGTH,) if told else None, short_row: (None,)}
    return nbta.TensorArray(
        "float64", size or 0, dynamic_size=size is None, clear_after_read=clear,
        element_shape=shapes[kind], infer_shape=kind is not short_row,
    )  # fmt: skip


def lengths_of(kind, x):
    """How long the pieces are of a vector that is split."""
    if kind is row:
        return nbta.stack([rows_in(x)] * LENGTH)
    return 1 + nbta.arange(rows_in(x)) % 3


def by_append(maker, kind, inner):
    k = maker.pick(*CHECKPOINTS)

    def fill(x, s, clear):
        def step(j, s, ta):
            s = nbta.sin(0.6 * s + 0.4 * inner(x, s))
            return s, ta.append(kind(x, s, j))

        return each(rows_in(x), step, s, new(kind, None, clear), checkpoint=k)

    return f"append[{k}]", fill


def by_write(maker, kind, inner):
    backwards = maker.pick(False, True)

    def fill(x, s, clear):
        def step(j, s, ta):
            s = nbta.sin(0.6 * s + 0.4 * inner(x, s))
            return s, ta.write(rows_in(x) - 1 - j if backwards else j, kind(x, s, j))

        return each(rows_in(x), step, s, new(kind, rows_in(x), clear))

    return "backwards" if backwards else "write", fill


def by_branches(maker, kind, inner):
    def fill(x, s, clear):
        def step(j, s, ta):
            s = nbta.sin(0.6 * s + 0.4 * inner(x, s))
            put = lambda: ta.append(kind(x, s, j))  # noqa: E731
            return s, nbta.cond(s > 0.1, lambda: put().append(kind(x, s * s, j)), put)

        return each(rows_in(x), step, s, new(kind, None, clear))

    return "branches", fill


def at_once(maker, kind, inner, how, put):
    """An array that one call fills: ``put(ta, x, s)``."""
    grows, told = maker.pick(False, True), maker.pick(False, True)

    def fill(x, s, clear):
        s = inner(x, s)
        return s, put(new(kind, None if grows else rows_in(x), clear, told), x, s)

    return f"{how}[{grows}, {told}]", fill


def by_scatter(maker, kind, inner):
    def put(ta, x, s):
        if kind is short_row:
            first = nbta.outer(x[:2], x[:2]) * s
            second = nbta.outer(x[2:], x[1:] * s)
            return ta.scatter([0, 2], first).scatter([1, 3], second)
        return ta.scatter([2, 0, 3, 1], x * s if kind is number else nbta.outer(x, x * s))

    return at_once(maker, kind, inner, "scatter", put)


def by_unstack(maker, kind, inner):
    def put(ta, x, s):
        return ta.unstack(x * s if kind is number else nbta.outer(x, x * s))

    return at_once(maker, kind, inner, "unstack", put)


def by_split(maker, kind, inner):
    def put(ta, x, s):
        if kind is number:
            return ta.unstack(x * s)
        lengths = lengths_of(kind, x)
        whole = nbta.sin(nbta.cast(nbta.arange(nbta.sum(lengths)), "float64") * s + x[2])
        return ta.split(whole, lengths)

    return at_once(maker, kind, inner, "split", put)


FILLS = [by_append, by_write, by_branches, by_scatter, by_unstack, by_split]


def by_read(maker, kind, inner):
    k = maker.pick(*CHECKPOINTS)

    def take(x, s, ta):
        def step(j, s):
            return nbta.sin(0.6 * s + 0.3 * nbta.sum(nbta.sin(ta.read(j))) * inner(x, s))

        return each(rows_in(x), step, s, checkpoint=k)

    return f"read[{k}]", take


def by_read_by_size(maker, kind, inner):
    k = maker.pick(*CHECKPOINTS)

    def take(x, s, ta):
        def step(j, s):
            return nbta.sin(0.6 * s + 0.2 * nbta.sum(nbta.sin(s * ta.read(j))))

        return inner(x, each(ta.size(), step, s, checkpoint=k))

    return f"read size[{k}]", take


def by_read_in_branch(maker, kind, inner):
    def take(x, s, ta):
        def step(j, s):
            one = lambda: nbta.sum(nbta.sin(ta.read(j) * s))  # noqa: E731
            return nbta.sin(0.6 * s + 0.2 * nbta.cond(s > 0.2, one, lambda: s * x[j]))

        return inner(x, each(rows_in(x), step, s))

    return "read in branch", take


def by_gather(maker, kind, inner):
    def take(x, s, ta):
        def step(j, s):
            return nbta.sin(s + nbta.sum(nbta.sin(ta.gather(nbta.stack([j, j])) * s)))

        if kind is short_row:
            return inner(x, each(rows_in(x), step, s))
        return inner(x, s + nbta.sum(nbta.sin(ta.gather([1, 2]) * s)))

    return "gather", take


def by_stack(maker, kind, inner):
    def take(x, s, ta):
        if kind is number:
            return inner(x, s + nbta.sum(nbta.sin(ta.stack() * s)))
        if kind is row:
            return inner(x, s + nbta.sum(nbta.sin(ta.stack() * s)))
        value, lengths = ta.concat()
        counts = nbta.cast(nbta.sum(lengths), "float64")
        return inner(x, s + nbta.sum(nbta.sin(value * s)) / counts)

    return "stack", take


def by_concat(maker, kind, inner):
    def take(x, s, ta):
        if kind is number:
            return inner(x, s + nbta.sum(nbta.sin(ta.stack() * s)))
        return inner(x, s + nbta.sum(nbta.sin(ta.concat().value * s)))

    return "concat", take


TAKES = [by_read, by_read_by_size, by_read_in_branch, by_gather, by_stack, by_concat]
CLEARED = [by_read, by_stack, by_concat]


def arrays(maker, depth, inner=None):
    """An array that is filled and then read, beside the loops that are in it."""
    kind = maker.pick(number, row, short_row)
    clear = maker.pick(False, False, True)
    blocks = [maker.block(maker.pick(0, depth - 1)), maker.block(0)]
    filling, fill = maker.pick(*FILLS)(maker, kind, blocks[0])
    taking, take = maker.pick(*(CLEARED if clear else TAKES))(maker, kind, blocks[1])
    where = maker.pick("here", "inner loop", "branch")

    def call(x, s):
        s, ta = fill(x, s, clear)
        if where == "inner loop" and not clear:
            return each(2, lambda i, s: take(x * x[i], s, ta), s)
        if where == "branch":
            return nbta.cond(s < 0.25, lambda: take(x, s, ta), lambda: s * x[0])
        return take(x, s, ta)

    return Block(f"{kind.__name__} {filling} {taking} {where} clear={clear}", call, *blocks)


def program(seed, depth=2):
    return Maker(seed).program(depth)
