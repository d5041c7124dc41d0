"""Random nests of loops, maps and branches, with checkpoints and threads, around one expression.

A nest is a function of a value with an axis for each loop and of a number, and gives a number.
"""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

import nbta

from .drawn import drawn
from .ways import hold_compiled

STEP = 6e-6


def leaf(x, c):
    return 0.4 * nbta.sin(0.8 * x + c) * nbta.tanh(c - 0.3 * x)


class Level(NamedTuple):
    """One loop or branch: its kind, its options, and what is in its body."""

    kind: str
    options: dict
    inner: object

    def __call__(self, x, c):
        return _KINDS[self.kind](self.inner or leaf, x, c, self.options)

    def depth(self):
        """Axes of the value that the nest goes along."""
        below = self.inner.depth() if self.inner else 0
        return below + (self.kind != "cond")

    def operations(self):
        """How many loops and branches there are."""
        return 1 + (self.inner.operations() if self.inner else 0)

    def plain(self):
        """The same without options."""
        return Level(self.kind, {}, self.inner and self.inner.plain())

    def __repr__(self):
        given = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"{self.kind}({self.inner or 'leaf'}{given})"


def _map(f, x, c, options):
    ys = nbta.map_fn(lambda row: f(row, c), x, **options)
    return nbta.tanh(nbta.sum(ys * ys) + 0.5 * nbta.sum(ys))


def _scan(f, x, c, options):
    def step(h, row):
        y = f(row, h)
        return nbta.tanh(h + y), y * h

    h, ys = nbta.scan(step, c, x, **options)
    return h + nbta.sum(ys)


def _fold(fold):
    def run(f, x, c, options):
        return fold(lambda a, row: 0.5 * a + f(row, a), x, c, **options)

    return run


def _while(f, x, c, options):
    """Until the number is small, or the rows are at an end."""
    rows = nbta.shape(x)[0]

    def goes_on(i, h):
        return nbta.logical_and(i < rows, nbta.abs(h) > 0.0137)

    def step(i, h):
        return i + 1, h + f(x[i], h)

    return nbta.while_loop(goes_on, step, (np.int64(0), c), **options)[1]


def _array(f, x, c, options):
    """What an iteration appends, a later one reads."""
    rows = nbta.shape(x)[0]

    def step(i, ta):
        return i + 1, ta.append(f(x[i], ta.read(ta.size() - 1)))

    ta = nbta.TensorArray(
        "float64", dynamic_size=True, clear_after_read=False, element_shape=()
    ).write(0, c)
    _, ta = nbta.while_loop(lambda i, ta: i < rows, step, (np.int64(0), ta), **options)
    return nbta.sum(nbta.square(ta.stack()))


def _list(f, x, c, options):
    """An array of this iteration: some iterations around append numbers, others read them."""
    rows = nbta.shape(x)[0]

    def fill(i, h, ta):
        h = nbta.sin(h + f(x[i], h))
        return i + 1, h, nbta.cond(h > 0.23, lambda: ta.append(h * h), lambda: ta)

    def add(k, h):
        return k + 1, nbta.sin(h + 0.4 * ta.read(k) * h)

    ta = _growing(()).append(c)
    _, h, ta = nbta.while_loop(lambda i, *_: i < rows, fill, (np.int64(0), c, ta), **options)
    count = nbta.cast(ta.size(), "int64")
    _, h = nbta.while_loop(lambda k, _: k < count, add, (np.int64(0), h), **options)
    return h + 0.1 * nbta.sum(nbta.sin(ta.stack()))


def _rows(f, x, c, options):
    """The same of rows of several lengths, of which one is not read."""
    rows, flat = nbta.shape(x)[0], nbta.reshape(x, (-1,))

    def fill(i, h, ta):
        h = nbta.sin(h + f(x[i], h))
        return i + 1, h, ta.append(flat[: i + 1] * h)

    def add(k, h):
        row = ta.read(k)
        return k + 1, nbta.sin(h + 0.3 * nbta.sum(row * nbta.sin(row * h)))

    ta = _growing((None,))
    _, h, ta = nbta.while_loop(lambda i, *_: i < rows, fill, (np.int64(0), c, ta), **options)
    return nbta.while_loop(lambda k, _: k < rows, add, (np.int64(1), h), **options)[1]


def _growing(shape):
    return nbta.TensorArray(
        "float64", dynamic_size=True, clear_after_read=False, element_shape=shape,
        infer_shape=None not in shape,
    )  # fmt: skip


def _plain(f, x, c, options):
    """Python's own list, filled and read by Python's own loops."""
    values, h = [], c
    for i in range(nbta.shape(x)[0]):
        h = nbta.sin(h + f(x[i], h))
        if h < 0.7:
            values.append(h)
        values.append(h * c)
    for value in values:
        h = nbta.sin(h + 0.3 * value * values[0])
    return h


def _cond(f, x, c, options):
    return nbta.cond(c > 0.11, lambda: f(x, c) * 1.1, lambda: c - f(x, 0.5 * c))


_KINDS = {
    "map": _map, "scan": _scan, "foldl": _fold(nbta.foldl), "foldr": _fold(nbta.foldr),
    "while": _while, "array": _array, "list": _list, "rows": _rows, "plain": _plain,
    "cond": _cond,
}  # fmt: skip
_NONE, _TWO, _SQRT = {}, {"checkpoint": 2}, {"checkpoint": "sqrt"}
_ONLINE, _PARALLEL = {"checkpoint": "online"}, {"parallel_iterations": 2}
#: What each kind takes.
OPTIONS = {
    "map": [_NONE, _TWO, _SQRT, _ONLINE, _PARALLEL],
    "scan": [_NONE, _TWO, _SQRT, _ONLINE],
    "foldl": [_NONE, _TWO, _ONLINE],
    "foldr": [_NONE, _SQRT],
    "while": [_NONE, _TWO, _SQRT, _ONLINE],
    "array": [_NONE, _TWO, _ONLINE],
    "list": [_NONE, _TWO, _SQRT, _ONLINE],
    "rows": [_NONE, _TWO, _SQRT, _ONLINE],
    "plain": [_NONE],
    "cond": [_NONE],
}
LEVELS = [(kind, options) for kind, several in OPTIONS.items() for options in several]


def nests(deepest=3):
    """A strategy for nests so deep, and not less than two."""
    level = st.sampled_from(LEVELS)
    return st.lists(level, min_size=2, max_size=deepest).map(nest)


def nest(levels):
    """The nest of levels from the outermost one on."""
    made = None
    for kind, options in reversed(levels):
        made = Level(kind, options, made)
    return made


def arguments(program):
    """A value with an axis for each loop, and a number."""
    shape = (3, *[2] * 3)[: program.depth()]
    x = np.cos(1.7 * np.arange(np.prod(shape, dtype=int)) + 0.4).reshape(shape)
    return x, np.float64(0.34)


def direction(program):
    x, _ = arguments(program)
    return np.sin(np.arange(x.size) + 1.0).reshape(x.shape)


def orders(program, count=2):
    """What a nest gives, its slope along a direction, and so on: each with its gradients."""
    along = direction(program)

    def run(x, c):
        y, found = program(x, c), []
        for _ in range(count):
            dx, dc = nbta.gradients([y], [x, c], unconnected="zero")
            found += [y, dx, dc]
            y = nbta.sum(dx * along) + 0.7 * dc
        return found

    return run


def compare_orders(program, count=2):
    """Against the same nest without options, and this against differences along a direction."""
    x, c = arguments(program)
    plain = nbta.function(orders(program.plain(), count))
    expected = plain(x, c)
    for mine, theirs in zip(nbta.function(orders(program, count))(x, c), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)
    v = direction(program)
    ends = [plain(x + h * v, c + h * 0.7) for h in (STEP, -STEP)]
    for k in range(0, len(expected), 3):
        slope = (ends[0][k] - ends[1][k]) / (2 * STEP)
        found = np.sum(expected[k + 1] * v) + expected[k + 2] * 0.7
        np.testing.assert_allclose(found, slope, rtol=1e-5, atol=1e-5)


def program(seed):
    return drawn(nests(deepest=3), seed)


def check(program, machine_code=False, counts=None):
    """Orders of gradients, of which those with options and those compiled are the same.

    Of nests of two without options there are three.
    """
    count = 3 if program.operations() == 2 and program == program.plain() else 2
    compare_orders(program, count)
    hold_compiled(orders(program, count), arguments(program), machine_code, counts)
