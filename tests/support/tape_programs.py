"""Programs with loops and their gradients, for passes over shapes and tapes."""

import re

import numpy as np
from golden_graph import all_operations

import nbta
from nbta.compiler.plain_products import use_plain_products
from nbta.compiler.program import extract
from nbta.execution.reference import Plan, Step


def built(function, *shapes):
    """A program of a function of float64 placeholders of some shapes."""
    with nbta.Graph().as_default():
        given = [nbta.placeholder("float64", shape, name=f"x{i}") for i, shape in enumerate(shapes)]
        result = function(*given)
    return extract(given, list(result) if isinstance(result, tuple | list) else [result])


def run(program, values):
    """What a program gives, or the type of its error."""
    try:
        return Plan(program.inputs, program.outputs, program.targets)(Step(), list(values))
    except nbta.NbtaError as error:
        return type(error)


def same_bits(made, program, values):
    """Check that two programs give bitwise identical results, or fail alike."""
    found, expected = run(made, values), run(program, values)
    if isinstance(expected, type):
        assert found is expected
        return
    for one, other in zip(found, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def types(program):
    """Types of all operations, without what has no cost."""
    found = [op.type for op in all_operations(program)]
    return sorted(name for name in found if name not in ("Parameter", "Constant"))


def arrays(program):
    """Names of the arrays and tapes that a program makes; of tapes without numbers."""
    made = [op for op in all_operations(program) if op.type in ("TensorArrayV3", "Tape")]
    names = [op.attrs.get("tensor_array_name", op.name.rpartition("/")[2]) for op in made]
    return [re.sub(r"_\d+$", "", name) if op.type == "Tape" else name
            for op, name in zip(made, names, strict=True)]  # fmt: skip


def tanh_rnn(xs, h, w, u, b):
    def step(h, x):
        h = nbta.tanh(x @ w + h @ u + b)
        return h, h

    return nbta.scan(step, h, xs)


def gru(xs, h, w, u, b):
    def step(h, x):
        z = nbta.sigmoid(x @ w + h @ u)
        r = nbta.sigmoid(x @ w - h @ u)
        h = z * h + (1 - z) * nbta.tanh(x @ w + (r * h) @ u + b)
        return h, h

    return nbta.scan(step, h, xs)


def lstm(xs, h, w, u, b):
    def step(state, x):
        h, c = state
        gates = x @ w + h @ u + b
        c = nbta.sigmoid(gates + 1) * c + nbta.sigmoid(gates) * nbta.tanh(gates)
        h = nbta.sigmoid(-gates) * nbta.tanh(c)
        return (h, c), h

    (h, _), hs = nbta.scan(step, (h, nbta.zeros_like(h)), xs)
    return h, hs


def fused_gru(xs, h, w, u, b):
    """Gates side by side, as in the weights."""

    def step(h, x):
        of_x, of_h = (nbta.split(value, 3, axis=-1) for value in (x @ w + b, h @ u))
        z, r = (nbta.sigmoid(of_x[i] + of_h[i]) for i in (0, 1))
        h = h + z * (nbta.tanh(of_x[2] + r * of_h[2]) - h)
        return h, h

    return nbta.scan(step, h, xs)


def fused_lstm(xs, h, w, u, b):
    """Gates side by side, of the input and the state one after the other."""
    both = nbta.concatenate([w, u])

    def step(state, x):
        h, c = state
        gates = nbta.split(nbta.concatenate([x, h], axis=-1) @ both + b, 4, axis=-1)
        into, forget, out = map(nbta.sigmoid, gates[:3])
        c = forget * c + into * nbta.tanh(gates[3])
        h = out * nbta.tanh(c)
        return (h, c), h

    (h, _), hs = nbta.scan(step, (h, nbta.zeros_like(h)), xs)
    return h, hs


def split_gru(xs, h, w, u, b):
    """Weights side by side, which each step takes apart."""

    def step(h, x):
        of_x, of_h, rest = (nbta.split(value, 3, axis=-1) for value in (w, u, b))
        z, r = (nbta.sigmoid(x @ of_x[i] + rest[i] + h @ of_h[i]) for i in (0, 1))
        h = (1 - z) * nbta.tanh(x @ of_x[2] + rest[2] + r * (h @ of_h[2])) + z * h
        return h, h

    return nbta.scan(step, h, xs)


#: How many gates the weights of a net hold side by side.
GATES = {fused_gru: 3, fused_lstm: 4, split_gru: 3}


def nested(xs, h, w, u, b):
    """An inner loop of as many iterations as the outer one has made."""

    def step(state, x):
        i, h = state
        _, h = nbta.while_loop(
            lambda j, h: j < i, lambda j, h: (j + 1, nbta.tanh(h @ u + x @ w)), (0, h)
        )
        return (i + 1, nbta.cond(nbta.sum(h) > 0, lambda: h * b, lambda: nbta.sin(h))), h

    (_, h), hs = nbta.scan(step, (0, h), xs)
    return h, hs


def halving(xs, h, w, u, b):
    """A loop of which the data say when it ends."""
    _, h = nbta.while_loop(
        lambda k, h: nbta.sum(h * h) > 0.1, lambda k, h: (k + 2, nbta.tanh(h @ u) * 0.5), (3, h)
    )
    return h, h


def differentiated(make, order=1, batch=2, last=False, steps=5):
    """A program of a net with gradients of all weights, and values for it.

    With ``last``, the loss is of the last state alone, and the results of all steps are fetched.
    """
    rng = np.random.default_rng(0)
    wide = 4 * GATES.get(make, 1)
    sizes = [(steps, batch, 3), (batch, 4), (3, wide), (4, wide), (wide,)]
    values = [rng.normal(size=shape) for shape in sizes]
    with nbta.Graph().as_default():
        kinds = [tuple(1 if n == 1 else nbta.shapes.Dim() for n in shape) for shape in sizes]
        given = [nbta.placeholder("float64", kind, name=f"x{i}") for i, kind in enumerate(kinds)]
        h, hs = make(*given)
        loss = nbta.sum(h * h) if last else nbta.sum(h) + nbta.sum(hs * hs)
        wanted = [loss, hs]
        for _ in range(order):
            grads = [g for g in nbta.gradients(loss, given) if g is not None]
            wanted += grads
            loss = sum(nbta.sum(g * g) for g in grads)
    program = extract(given, wanted)
    use_plain_products(program)
    return program, values
