"""Random programs that compute with lengths and let Python decide on them, against NumPy."""

import random

import numpy as np

import nbta

from . import plain
from .program import Program, Statement
from .ways import DisagreementError, count, executed

#: Of numbers ``{n}`` and ``{m}``; ``{v}`` and ``{w}`` are vectors, ``{t}`` is a matrix.
NUMBERS = [
    "{v}.shape[0]", "{v}.shape[-1]", "{t}.shape[0]", "{t}.shape[1]", "len({v})", "{t}.size",
    "{v}.shape[0] - {w}.shape[0]", "{n} + {m}", "{n} - 1", "{n} * {m}", "{n} // 2", "{n} % 3",
    "3 - {n}", "abs({n} - {m})", "{n} ** 2", "{n} / 4", "1 / ({n} + 1)", "2.5 / {n}", "{n} * 0.5",
    "min({n}, {m})", "max({n}, 2)", "{n} or {m}", "{n} and {m}", "int({n})", "float({n})",
    "sum({t}.shape)", "sorted([{n}, {m}, 2])[1]", "divmod({n}, 2)[1]", "-{n}", "round({n})",
    "({n} if {n} > {m} else {m})", "{{2: 5, 3: 7}}.get({n}, 1)", "int(f'{{abs({n}):.0f}}')",
    "sum(i for i in range(int(abs({n})) % 7))", "len([0] * (int(abs({n})) % 9))", "hash({n}) % 5",
]  # fmt: skip
TRUTHS = [
    "{n} == 3", "{n} != {m}", "{n} < {m}", "2 <= {n}", "{n} > 2.5", "{n} in (2, 5)", "not {n}",
    "{v}.shape == {w}.shape", "{v}.shape == (3,)", "1 < {n} < 5", "{n} == {n}", "{n} == 1",
    "{t}.shape in {{(2, 3), (3, 2)}}", "len({v}) == len({w})", "{n} % 2 == 0", "bool({n})",
    "{n} > 0 and {m} > 2", "({n} > 2) | ({m} > 2)", "{v}.size > {w}.size", "{t}.shape[0] < {n}",
]  # fmt: skip
VECTORS = [
    "({v} * 2.0 if {p} else {v} - 1.0)", "({v} if {p} else {w})", "{v} * {n}", "{n} - {v}",
    "{v} / ({m} * {m} + 1)", "{v}[: {v}.shape[0] - 1]", "{v}[{v}.shape[0] // 2 :]",
    "{v} + np.zeros({v}.shape)", "np.ones({v}.shape[0]) * {v}", "{v} * np.arange({v}.shape[0])",
    "{v} * nbta.arange({v}.shape[0])", "nbta.concatenate([{v}, {w}])",
    "nbta.broadcast_to({n} * 1.0, ({v}.shape[0],)) + {v}",
    "nbta.reshape({t}, ({t}.shape[0] * {t}.shape[1],))", "nbta.sum({t}, 0)", "{t}[:, 0] * {n}",
    "nbta.where({v} > {n}, {v}, {n} * 0.5)", "nbta.maximum({v}, {n})",
    "nbta.cond({v}.shape[0] > 2, lambda: {v} * 2.0, lambda: {v})",
    "nbta.while_loop(lambda i, c: i < {v}.shape[0], "
    "lambda i, c: (i + 1, c * 0.5 + {w}.shape[0] * (1.0 if {p} else 2.0)), (0, {v}))[1]",
    "nbta.scan(lambda c, r: (c + nbta.sum(r) * (1.0 if r.shape[0] == 3 else 0.5), "
    "c + r.shape[0]), 0.5, {t})[1]",
    "nbta.map_fn(lambda r: nbta.sum(r) / (len(r) + 1) + {n}, {t})",
]  # fmt: skip
MATRICES = [
    "nbta.stack([{v}, {v} * 2.0])", "nbta.reshape({v}, ({v}.shape[0], 1))", "{t} * {n}",
    "({t} if {p} else nbta.transpose({t}))", "{t} - np.ones({t}.shape)", "nbta.transpose({t})",
    "{t}[: {t}.shape[0] - 1]", "nbta.outer({v}, {w})", "nbta.concatenate([{t}, {t}])",
]  # fmt: skip
CHOICE = (2, 3, 3, 4, 5, 1, 0)


class _Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = {"n": [], "p": [], "v": ["x1", "x2"], "t": ["x3"]}
        self.statements = []

    def inputs(self):
        sizes = [self.random.choice(CHOICE) for _ in range(4)]
        draw = np.random.default_rng(self.random.randrange(2**32)).normal
        return {"x1": draw(size=sizes[0]), "x2": draw(size=sizes[1]), "x3": draw(size=sizes[2:])}

    def name(self, kind):
        return self.random.choice(self.names[kind][-4:])

    def add(self, kind, templates):
        """A statement; `needed` drops those that nothing depends on."""
        places = {"n": "n", "m": "n", "p": "p", "v": "v", "w": "v", "t": "t"}
        fields = {place: self.name(kind_) for place, kind_ in places.items() if self.names[kind_]}
        template = self.random.choice([t for t in templates if _fits(t, fields)])
        name = f"{'k' if kind in 'np' else 'v'}{len(self.statements) + 1}"
        self.statements.append(
            Statement((name,), (f"{name} = {template.format(**fields)}",), (None,))
        )
        self.names[kind].append(name)


def _fits(template, fields):
    return all("{" + place not in template or place in fields for place in "nmpvwt")


def program(seed, size=12):
    """Numbers, truth values, vectors and matrices, each from those before."""
    maker = _Maker(seed)
    first, others = maker.inputs(), [maker.inputs() for _ in range(4)]
    kinds = {"n": NUMBERS, "p": TRUTHS, "v": VECTORS, "t": MATRICES}
    for kind in ("n", "n", "p", *maker.random.choices("nnppvvvt", k=size)):
        maker.add(kind, kinds[kind])
    outputs = tuple(dict.fromkeys(s.names[0] for s in maker.statements[-5:]))
    return Program(first, maker.statements, outputs, [*others, first])


def _outcome(f, values):
    """What a call gives; of an error that it failed, and how where Python itself says so."""
    with np.errstate(all="ignore"):
        try:
            return f(*values)
        except ZeroDivisionError as error:
            return error
        except (nbta.NbtaError, ValueError, IndexError, TypeError) as error:
            return error


def _agree(stage, call, found, expected, rtol=1e-9):
    failed = [isinstance(value, Exception) for value in (found, expected)]
    if any(failed):
        same = all(failed) and (
            type(found) is type(expected) or not isinstance(expected, ZeroDivisionError)
        )
        if not same:
            raise DisagreementError(f"{stage}: one fails", call, f"{found!r} and {expected!r}")
        return
    for mine, theirs in zip(found, expected, strict=True):
        if np.shape(mine) != np.shape(theirs):
            raise DisagreementError(f"{stage}: shapes", call, f"{mine!r} and {theirs!r}")
        try:
            np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol)
        except AssertionError as error:
            raise DisagreementError(f"{stage}: values", call, error) from error


def _loss(f, m):
    """The sum of what is not an integer, which has a gradient."""

    def loss(*values):
        parts = [m.sum(part) for part in f(*values) if getattr(part, "ndim", 0) > 0]
        return sum(parts, 0.0) + 0.0 * m.sum(values[0])

    return loss


def _slopes(f, values):
    """Central differences."""
    h, found = 1e-6, []
    for place, value in enumerate(values):
        slope = np.zeros_like(value)
        for index in np.ndindex(value.shape):
            ends = []
            for step in (h, -h):
                moved = value.copy()
                moved[index] += step
                ends.append(f(*values[:place], moved, *values[place + 1 :]))
            slope[index] = (ends[0] - ends[1]) / (2 * h)
        found.append(slope)
    return found


def check(given, machine_code=False, counts=None):
    """Run a program in all ways, and its gradient; `DisagreementError` where two differ."""
    counts = {} if counts is None else counts
    model, own = given.function(plain), given.function(nbta)
    reference = nbta.function(own, compiled=False)
    compiled = nbta.function(own, compiled=True)
    places = tuple(range(len(given.inputs)))
    grad = nbta.grad(_loss(own, nbta), places, compiled=False)
    for call, values in enumerate(given.given()):
        expected = _outcome(model, values)
        _agree("eager and model", call, _outcome(own, values), expected)
        _agree("reference and model", call, _outcome(reference, values), expected)
        with executed(machine_code):
            found = _outcome(compiled, values)
        if isinstance(found, nbta.UnimplementedError) and "cannot be compiled" in str(found):
            count(counts, "not compiled")
        else:
            _agree("compiled and model", call, found, expected)
        if isinstance(expected, Exception):
            count(counts, "failed")
            continue
        count(counts, "agreed")
        slopes = _slopes(_loss(model, plain), values)
        largest = max((np.max(np.abs(s), initial=1.0) for s in slopes), default=1.0)
        scaled = [s / largest for s in slopes]
        found = _outcome(grad, values)
        if not isinstance(found, Exception):
            found = [np.asarray(g) / largest for g in found]
        _agree("gradient", call, found, scaled, 1e-4)
    count(counts, "graphs", reference.traces)
    return counts
