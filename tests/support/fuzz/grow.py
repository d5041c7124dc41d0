"""How random programs grow: each statement is tried on values before it is taken."""

import random

import numpy as np
from model import ModelError

from . import plain
from .program import Body, Program, Statement, rebound

#: Lengths that axes of inputs have, by name, and other ones that the same program is run with.
LENGTHS = {"a": 2, "b": 3, "c": 4, "d": 1, "e": 3}
LARGEST, MOST = 30.0, 150  # of values, and how many


class Scope:
    """What is visible in a function: values and arrays by name, and its statements so far."""

    def __init__(self, values, arrays):
        self.values, self.arrays, self.statements = dict(values), dict(arrays), []

    def inside(self, params):
        """A function in this one."""
        return Scope({**self.values, **params}, self.arrays)


class Grower:
    """Makes one program."""

    def __init__(self, seed, menu, dtype="float64", hard=False, refused=()):
        self.refused = refused
        self.random, self.menu, self.dtype, self.hard = random.Random(seed), menu, dtype, hard
        self.numbers = np.random.default_rng(seed)
        self.count, self.depth = 0, 0

    def name(self, letter="v"):
        self.count += 1
        return f"{letter}{self.count}"

    # Choosing.

    def chance(self, share):
        return self.random.random() < share

    def among(self, *values):
        return self.random.choice(values)

    def one(self, scope, suits=lambda value: True):
        """The name of a value, mostly a recent one; None where none suits."""
        found = [name for name, value in scope.values.items() if suits(np.asarray(value))]
        if not found:
            return None
        recent = found[-6:]
        return self.random.choice(recent if self.chance(0.6) else found)

    def number(self, scope, rank=None, least=0):
        """The name of a value of the program's dtype."""

        def suits(value):
            ranked = value.ndim == rank if rank is not None else value.ndim >= least
            return value.dtype.name == self.dtype and ranked

        return self.one(scope, suits)

    def partner(self, scope, name):
        """A value that broadcasts with another one."""
        shape = np.shape(scope.values[name])

        def suits(value):
            try:
                np.broadcast_shapes(value.shape, shape)
            except ValueError:
                return False
            return value.dtype.name == self.dtype

        return self.one(scope, suits)

    def integer(self, scope, rank=0):
        return self.one(scope, lambda value: value.dtype.kind == "i" and value.ndim == rank)

    # Growing.

    def env(self, scope):
        return {"nbta": plain, "np": np, **scope.values, **scope.arrays}

    def add(self, scope, statement, letters=()):
        """Take a statement, if it gives plain values; whether it did."""
        env = self.env(scope)
        try:
            with np.errstate(all="ignore"):
                exec(rebound("\n".join(statement.source())), env)
        except (ModelError, IndexError, ValueError, TypeError, np.linalg.LinAlgError):
            return False
        samples = tuple(np.copy(env[name])[()] for name in statement.names)
        if not all(map(self.is_tame, samples)):
            return False
        statement.samples = samples
        scope.values.update(zip(statement.names, samples, strict=True))
        scope.statements.append(statement)
        return True

    def is_tame(self, value):
        """Whether a value is worth going on with."""
        value = np.asarray(value)
        if value.size > MOST or value.ndim > 4:
            return False
        if value.dtype.kind not in "fc" or self.hard:
            return True
        return bool(np.isfinite(value).all() and np.abs(value).max(initial=0) < LARGEST)

    def grow(self, scope, length):
        """Add so many statements."""
        tries = 0
        while length > 0 and tries < 200:
            tries += 1
            length -= self.random.choice(self.menu)(self, scope)
        return scope

    def expression(self, scope, text):
        """Take one expression."""
        if any(word in text for word in self.refused):
            return False
        name = self.name()
        return self.add(scope, Statement((name,), (f"{name} = {text}",), ()))

    def body(self, scope, params, length, result):
        """A function of some parameters; ``result`` gives the text of what it returns."""
        self.depth += 1
        inner = self.grow(scope.inside(params), length)
        self.depth -= 1
        return Body(self.name("f"), tuple(params), inner.statements, result(inner))

    def like(self, scope, name):
        """An expression of the same shape and dtype as a value, that stays small."""
        value = np.asarray(scope.values[name])
        same = self.one(scope, lambda v: v.shape == value.shape and v.dtype == value.dtype)
        if value.dtype.kind == "f":
            other = self.number(scope) or name
            if same and self.chance(0.6):
                return self.among(f"nbta.tanh({same})", f"0.6 * {name} + 0.3 * nbta.sin({same})")
            return f"0.5 * {name} + 0.4 * nbta.sin(nbta.sum({other}))"
        return f"({name} * 3 + 1) % 7" if value.dtype.kind in "iu" else name

    def picked(self, scope, most):
        """Outputs: late values, and some others."""
        names = [name for s in scope.statements for name in s.names]
        late, early = names[-2:], names[:-2]
        return tuple(late + self.random.sample(early, min(len(early), most - len(late))))


def inputs(grower, lengths):
    """Arguments of every program, for some lengths."""
    a, b, c, d, e = lengths.values()
    shapes = {
        "x1": (a,), "x2": (b,), "x3": (b, c), "x4": (c, b), "x5": (a, b, c), "x6": (d, c),
        "x7": (), "x8": (e, a),
    }  # fmt: skip
    found = {name: numbers(grower, shape) for name, shape in shapes.items()}
    found["k1"] = grower.numbers.integers(0, 2, b)
    found["n1"] = np.int64(lengths["e"])
    return found


def numbers(grower, shape):
    """Values of the grower's dtype that are not on a corner of any function."""
    draw = grower.numbers
    value = draw.uniform(0.2, 1.3, shape) * draw.choice([-1, 1], shape)
    if np.dtype(grower.dtype).kind == "c":
        value = value + 1j * draw.uniform(0.2, 1.0, shape)
    value = np.asarray(value).astype(grower.dtype)
    if grower.hard:
        odd = draw.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], shape)
        value = np.where(draw.random(shape) < 0.15, odd, value).astype(grower.dtype)
    return value[()]


def other_lengths(grower, choice=(0, 2, 3, 5, 6)):
    """Lengths for a further call: longer ones, and those of no elements."""
    return {name: n if n == 1 else grower.among(*choice) for name, n in LENGTHS.items()}


def program(
    seed, menu, length, dtype="float64", hard=False, outputs=5, others=1, refused=(), choice=None
):
    """A program of about so many statements; ``choice`` are lengths for further calls."""
    grower = Grower(seed, menu, dtype, hard, refused)
    given = inputs(grower, LENGTHS)
    scope = grower.grow(Scope(given, {}), length)
    lengths = [other_lengths(grower, *([choice] if choice else [])) for _ in range(others)]
    further = [inputs(grower, some) for some in lengths]
    return Program(given, scope.statements, grower.picked(scope, outputs), further)
