"""Programs of loops with their gradients, for tests of passes: built, fed, and run."""

import numpy as np
from golden_graph import all_operations

import nbta
from nbta.compiler import passes
from nbta.compiler.plain_products import use_plain_products
from nbta.compiler.program import extract
from nbta.execution.reference import Plan, Step
from nbta.graph.verifier import verify

T, B, INPUTS, H = 5, 2, 3, 4


def tanh_cell(h, x, w, u, b):
    return nbta.tanh(x @ w + h @ u + b)


def gru_cell(h, x, w, u, b):
    p, q = x @ w + b, h @ u
    z = nbta.sigmoid(p[..., :H] + q[..., :H])
    r = nbta.sigmoid(p[..., H : 2 * H] + q[..., H : 2 * H])
    return (1 - z) * h + z * nbta.tanh(p[..., 2 * H :] + r * q[..., 2 * H :])


def lstm_cell(state, x, w, u, b):
    h, c = state
    p = x @ w + h @ u + b
    i, f, o = (nbta.sigmoid(p[..., k * H : (k + 1) * H]) for k in range(3))
    c = f * c + i * nbta.tanh(p[..., 3 * H :])
    return o * nbta.tanh(c), c


CELLS = {"tanh": (tanh_cell, 1), "gru": (gru_cell, 3), "lstm": (lstm_cell, 4)}


def recurrent(cell="tanh", batch=True, reverse=False, steps=T, static=False, second=False):
    """A recurrent net's loss and gradients by all weights; what is given, and its values."""
    function, gates = CELLS[cell]
    rng = np.random.default_rng(1)
    rows = (B,) if batch else ()
    shapes = [(steps, *rows, INPUTS), (INPUTS, gates * H), (H, gates * H), (gates * H,), (*rows, H)]
    values = [rng.normal(size=shape) for shape in shapes]
    with nbta.Graph().as_default():
        declared = [shapes[0] if static else (None, *shapes[0][1:]), *shapes[1:]]
        given = [nbta.placeholder("float64", shape) for shape in declared]
        x, w, u, b, h = given

        def step(state, row):
            state = function(state, row, w, u, b)
            return state, state[0] if cell == "lstm" else state

        first = (h, h * 0.5) if cell == "lstm" else h
        _, hs = nbta.scan(step, first, x, reverse=reverse)
        loss = nbta.sum(hs * hs)
        grads = nbta.gradients(loss, [w, u, b, h])
        if second:
            grads += nbta.gradients(sum(nbta.sum(g * g) for g in grads), [w, u, b, h])
    return extract(given, [loss, *grads]), values


def traced_recurrent(steps=T):
    """A tanh net whose lengths are all known at run time only, and whose last state counts."""
    rng = np.random.default_rng(2)
    values = [rng.normal(size=s) for s in [(steps, B, INPUTS), (INPUTS, H), (H, H), (H,), (B, H)]]

    def loss(x, w, u, b, h):
        last, _ = nbta.scan(lambda h, row: (tanh_cell(h, row, w, u, b), None), h, x)
        return nbta.sum(last * last)

    with nbta.Graph().as_default():
        d = [nbta.shapes.Dim() for _ in range(4)]
        shapes = [(d[0], d[1], d[2]), (d[2], d[3]), (d[3], d[3]), (d[3],), (d[1], d[3])]
        given = [nbta.placeholder("float64", None) for _ in shapes]
        for tensor, shape in zip(given, shapes, strict=True):
            tensor.spec = tensor.spec._replace(shape=shape)
        y = loss(*given)
        wanted = [y, *nbta.gradients(y, given[1:])]
    return extract(given, wanted), values


def until(limit=3.0):
    """A while loop whose iterations depend on data, with a branch in its body."""
    rng = np.random.default_rng(3)
    values = [np.float64(limit), rng.normal(size=(H, H)), rng.normal(size=(B, H))]
    with nbta.Graph().as_default():
        given = [nbta.placeholder("float64", np.shape(value)) for value in values]
        bound, w, h = given

        def body(i, h):
            h = nbta.tanh(h @ w) + 0.1
            return i + 1, nbta.cond(nbta.equal(i % 2, 0), lambda: h @ w, lambda: h * 1.5)

        _, last = nbta.while_loop(
            lambda i, h: nbta.logical_and(i < 7, nbta.sum(h * h) < bound * 10), body, (0, h)
        )
        loss = nbta.sum(last * last)
        wanted = [loss, *nbta.gradients(loss, [w, h])]
    return extract(given, wanted), values


def nested(steps=T):
    """A loop in a loop, both with the same weights."""
    rng = np.random.default_rng(4)
    values = [rng.normal(size=(steps, B, H)), rng.normal(size=(H, H)), rng.normal(size=(H,))]
    with nbta.Graph().as_default():
        given = [nbta.placeholder("float64", (None, B, H)), nbta.placeholder("float64", (H, H))]
        given.append(nbta.placeholder("float64", (H,)))
        x, w, b = given

        def outer(h, row):
            def inner(i, z):
                return i + 1, nbta.tanh(z @ w + row + b)

            z = nbta.while_loop(lambda i, z: i < 3, inner, (0, h))[1]
            return z, nbta.sum(z * (row @ w), 1)

        last, sums = nbta.scan(outer, nbta.zeros((B, H)), x)
        loss = nbta.sum(last) + nbta.sum(sums * sums)
        wanted = [loss, *nbta.gradients(loss, given)]
    return extract(given, wanted), values


PROGRAMS = {
    "tanh": recurrent,
    "tanh of vectors": lambda: recurrent(batch=False),
    "tanh of known length": lambda: recurrent(static=True),
    "gru": lambda: recurrent("gru"),
    "gru of vectors": lambda: recurrent("gru", batch=False),
    "lstm": lambda: recurrent("lstm"),
    "reverse": lambda: recurrent(reverse=True),
    "reverse lstm": lambda: recurrent("lstm", reverse=True),
    "no steps": lambda: recurrent(steps=0),
    "one step": lambda: recurrent(steps=1),
    "second order": lambda: recurrent(second=True),
    "second order of vectors": lambda: recurrent(batch=False, second=True),
    "lengths of the run": traced_recurrent,
    "lengths of the run, no steps": lambda: traced_recurrent(0),
    "until": until,
    "until, no iterations": lambda: until(-1.0),
    "nested": nested,
    "nested, no steps": lambda: nested(0),
}


def prepared(program):
    """A program as passes find it."""
    use_plain_products(program)
    for step in (passes.prune, passes.fold_constants, passes.hoist, passes.share):
        program = step(program)
    return program


def values_of(program, given):
    return Plan(program.inputs, program.outputs, program.targets)(Step(), given)


def same(program, given, step, rtol=1e-10):
    """What a pass makes of a program; it is whole, and gives the same numbers."""
    expected = values_of(program, given)
    result = step(program)
    verify(result)
    for found, value in zip(values_of(result, given), expected, strict=True):
        scale = np.max(np.abs(value), initial=0.0)
        np.testing.assert_allclose(found, value, rtol=rtol, atol=rtol * (1e-3 + scale))
    return result


def loops(program):
    """The operations of loops, outer ones first."""
    return [op for op in all_operations(program) if op.type == "While"]


def inside(op):
    """Types of what a loop's body does, without constants and parameters."""
    found = [inner.type for inner in op.attrs["body"].operations]
    return sorted(name for name in found if name not in ("Parameter", "Constant"))


def whole(program):
    """Types of all operations, those in bodies too."""
    return [op.type for op in all_operations(program)]


def ranged(n, step, *first):
    """What ``step(i, *values)`` leaves of some values for ``i`` below ``n``."""

    def body(i, *values):
        found = step(i, *values)
        return i + 1, *(found if isinstance(found, tuple) else (found,))

    _, *last = nbta.while_loop(lambda i, *_: i < n, body, (nbta.cast(0, "int64"), *first))
    return last[0] if len(last) == 1 else tuple(last)
