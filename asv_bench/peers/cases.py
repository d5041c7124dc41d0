"""What is measured: the work, its sizes and its numbers, the same for every peer.

The formulas that all peers can share (they need only operators and a few named functions, given as
a `Maths`) are here too, so that all run the same program.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

#: Steps, batch, inputs, states.
SIZES = ((1000, 1, 8, 16), (200, 16, 32, 32), (200, 32, 64, 128), (100, 64, 128, 256))
#: Gates of each recurrent cell, side by side in its weights.
GATES = {"tanh": 1, "gru": 3, "lstm": 4}
#: What gradients are taken of, in the order of the results; c0 for the LSTM only.
PARAMETERS = ("w_in", "w_rec", "b", "h0", "c0")
ITERATIONS = 10_000
#: Sequences of a ragged batch, their least and greatest length, inputs, states.
RAGGED = (64, 20, 400, 32, 64)
#: What a hidden layer takes and gives: rows, inputs, hidden, outputs.
DENSE = (512, 1024, 1024, 512)
#: Numbers of three vectors that an elementwise loss takes.
ELEMENTS = 1_000_000
#: Variables of densities that are sampled; draws, leapfrog steps of each and their length. Results
#: are means and mean squares, which differ by chance.
DENSITIES, DRAWS, LEAPS, LEAP = (10, 100), 20_000, 10, 0.2
#: How many elements of what width are appended; width None: elements of different lengths.
APPENDS = (
    (100, 1), (10_000, 1), (1_000_000, 1), (100, 3), (100_000, 3), (10_000, 64), (100_000, None),
)  # fmt: skip
#: Elements of different lengths: item i has i modulo this many numbers.
LENGTHS = 8
#: Libraries that differentiate, and ways to append in a loop that Numba compiles.
GRAPHS = ("jax", "jax hoisted", "tensorflow", "torch", "pytensor")
UNHOISTED = tuple(name for name in GRAPHS if name != "jax hoisted")
BUFFERS = ("typed.List", "doubling", "awkward")
#: What a library may do with a ragged batch: take each sequence by itself; fill up all to the
#: longest and take a step of all at once; take steps together of sequences of like length.
WAYS = ("item by item", "padded", "sorted")


class Maths(NamedTuple):
    """A peer's names for what operators do not say."""

    tanh: Callable
    sigmoid: Callable
    #: ``split(value, parts)``: equal parts along the last axis.
    split: Callable
    #: ``stack(values)``: scalars as a vector.
    stack: Callable


class Case(NamedTuple):
    """``work`` names a function of a peer's module, ``options`` are its keyword arguments."""

    #: The table that it stands in.
    subject: str
    work: str
    title: str
    options: dict
    #: Largest difference between peers, of the largest number of each result.
    tolerance: float
    #: Who else does it.
    peers: tuple

    def named(self, pattern):
        """Whether subject and title hold a text."""
        return pattern.lower() in f"{self.subject}: {self.title}".lower()


def cases(pattern=""):
    """All whose subject and title hold a text."""
    return [case for case in _all() if case.named(pattern)]


def _all():
    for cell in GATES:
        for size in SIZES:
            title = f"{cell} net {'x'.join(map(str, size))}"
            options = {"cell": cell, "size": size}
            yield Case("Recurrent nets", "recurrent", title, options, 1e-4, GRAPHS)
    yield Case("Second derivatives", "second", "tanh net 200x16x32x32, Hessian by vector",
               {"cell": "tanh", "size": SIZES[1]}, 1e-3, UNHOISTED)  # fmt: skip
    for problem in PROBLEMS:
        yield Case("Adaptive solvers", "adaptive", f"adaptive {problem}", {"problem": problem},
                   1e-6, ("jax", "tensorflow", "torch"))  # fmt: skip
    for way in WAYS:
        yield Case("Ragged batches", "ragged", f"ragged batch, {way}", {"way": way}, 1e-3,
                   ("jax", "jax hoisted", "torch"))  # fmt: skip
    for size in DENSITIES:
        title = f"Hamiltonian Monte Carlo, {DRAWS:,} draws, {LEAPS} steps each, {size} variables"
        yield Case("Samplers", "sampler", title, {"size": size}, 0.1, ("blackjax",))
    yield Case("No loop", "dense", f"dense net {'x'.join(map(str, DENSE))}", {}, 1e-4, UNHOISTED)
    yield Case("No loop", "elementwise", f"elementwise loss, {ELEMENTS:,} numbers", {}, 1e-4,
               UNHOISTED)  # fmt: skip
    for name in _programs():
        yield Case("Programs", "program", name, {"name": name}, 1e-6, ("jax",))
    yield Case(
        "Loops without gradients",
        "writes",
        f"{ITERATIONS:,} scalar writes",
        {"iterations": ITERATIONS},
        1e-4,
        UNHOISTED,
    )
    for count, width in APPENDS:
        kind = {1: "scalars", None: "vectors of 0 to 7"}.get(width, f"vectors of {width}")
        yield Case("Appends in a compiled loop", "appends", f"append {count:,} {kind}",
                   {"count": count, "width": width}, 0.0, BUFFERS)  # fmt: skip


def _programs():
    """Names of the programs of `asv_bench.programs` that are written in JAX too."""
    from ..programs import PROGRAMS  # nbta and Numba, which workers of other peers do without

    return [name for name, program in PROGRAMS.items() if program.in_jax is not None]


def network(cell, size):
    """Inputs (steps, batch, inputs) and parameters of a recurrent net, float32."""
    steps, batch, inputs, states = size
    rng, wide = np.random.default_rng(0), GATES[cell] * states
    shapes = {"w_in": (inputs, wide), "w_rec": (states, wide), "b": (wide,), "h0": (batch, states)}
    if cell == "lstm":
        shapes["c0"] = (batch, states)
    x = rng.normal(size=(steps, batch, inputs)).astype(np.float32)
    scale = {"w_in": inputs**-0.5, "w_rec": states**-0.5}
    drawn = {name: rng.normal(0, scale.get(name, 0.1), shape) for name, shape in shapes.items()}
    return x, {name: value.astype(np.float32) for name, value in drawn.items()}


def moments(draws):
    """What is held of a sampler's draws (draws, variables): means, and mean squares."""
    return [np.mean(draws, axis=0), np.mean(np.square(draws), axis=0)]


def ragged():
    """Sequences (steps, inputs), and weights of a tanh net that starts from zeros; float32.

    The loss is the sum of squares of all states of all sequences; sought is its gradient with
    respect to the weights.
    """
    count, least, most, inputs, states = RAGGED
    _, params = network("tanh", (1, 1, inputs, states))
    del params["h0"]
    rng = np.random.default_rng(1)
    lengths = rng.integers(least, most + 1, count)
    return [rng.normal(size=(n, inputs)).astype(np.float32) for n in lengths], params


def padded(sequences):
    """Sequences side by side (steps, batch, inputs) with zeros after, and where they are real.

    The latter (steps, batch, 1) is 1.0 or 0.0. It need be used in the loss only: what comes after
    a sequence's end has no effect on what was before.
    """
    steps, count, inputs = max(map(len, sequences)), len(sequences), sequences[0].shape[1]
    x, real = np.zeros((steps, count, inputs), np.float32), np.zeros((steps, count, 1), np.float32)
    for k, sequence in enumerate(sequences):
        x[: len(sequence), k] = sequence
        real[: len(sequence), k] = 1.0
    return x, real


def batches(sequences, size):
    """Padded batches of so many sequences of like lengths."""
    by_length = sorted(sequences, key=len)
    return [padded(by_length[k : k + size]) for k in range(0, len(by_length), size)]


def direction(params):
    """Numbers like the parameters, for a product with second derivatives."""
    rng = np.random.default_rng(2)
    return {name: rng.normal(size=p.shape).astype(np.float32) for name, p in params.items()}


def dense():
    """Inputs and parameters of `dense_net`, float32; the loss is the sum of squares."""
    rows, inputs, hidden, outputs = DENSE
    rng = np.random.default_rng(3)
    x = rng.normal(size=(rows, inputs))
    into = rng.normal(0, inputs**-0.5, (inputs, hidden))
    out = rng.normal(0, hidden**-0.5, (hidden, outputs))
    return [a.astype(np.float32) for a in (x, into, rng.normal(0, 0.1, hidden), out)]


def dense_net(maths, x, into, bias, out):
    """One hidden layer."""
    return maths.tanh(x @ into + bias) @ out


def elementwise():
    """Three vectors for `elementwise_chain`, float32; the loss is the sum of squares."""
    return list(np.random.default_rng(4).normal(size=(3, ELEMENTS)).astype(np.float32))


def elementwise_chain(maths, x, scale, shift):
    """A gate on a scaled and shifted number."""
    moved = x * scale + shift
    return maths.tanh(moved) * maths.sigmoid(x - moved)


def tanh_cell(maths, drive, state, w_rec):
    """The next state; ``drive`` is what the input brings, with the bias."""
    return (maths.tanh(drive + state[0] @ w_rec),)


def gru_cell(maths, drive, state, w_rec):
    """Gates: reset, update, new."""
    reset_in, update_in, new_in = maths.split(drive, 3)
    reset_rec, update_rec, new_rec = maths.split(state[0] @ w_rec, 3)
    update = maths.sigmoid(update_in + update_rec)
    new = maths.tanh(new_in + maths.sigmoid(reset_in + reset_rec) * new_rec)
    return (new + update * (state[0] - new),)


def lstm_cell(maths, drive, state, w_rec):
    """Gates: in, forget, out, new; the state is the output and the cell."""
    into, forget, out, new = maths.split(drive + state[0] @ w_rec, 4)
    cell = maths.sigmoid(forget) * state[1] + maths.sigmoid(into) * maths.tanh(new)
    return maths.sigmoid(out) * maths.tanh(cell), cell


CELLS = {"tanh": tanh_cell, "gru": gru_cell, "lstm": lstm_cell}


def lotka_volterra(maths, rates, y):
    """Prey and predators."""
    met = y[0] * y[1]
    return maths.stack([rates[0] * y[0] - rates[1] * met, rates[3] * met - rates[2] * y[1]])


def van_der_pol(maths, rates, y):
    """An oscillator that damps itself where it swings wide."""
    return maths.stack([y[1], rates[0] * (1.0 - y[0] * y[0]) * y[1] - y[0]])


class Problem(NamedTuple):
    """An initial value problem to be solved from 0 to `END`."""

    slope: Callable
    start: tuple
    rates: tuple


PROBLEMS = {
    "Lotka-Volterra": Problem(lotka_volterra, (10.0, 5.0), (1.1, 0.4, 0.4, 0.1)),
    "Van der Pol": Problem(van_der_pol, (2.0, 0.0), (5.0,)),
}
END, TOLERANCE, FIRST_STEP = 20.0, 1e-8, 0.01
#: Of the step's length: safety; least and most after a rejected step, and after an accepted one.
SAFETY, REJECTED, ACCEPTED = 0.9, (0.2, 0.9), (1.0, 10.0)

#: J. R. Dormand and P. J. Prince, "A family of embedded Runge-Kutta formulae", 1980.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def combined(weights, slopes):
    """Their weighted sum."""
    return sum(w * k for w, k in zip(weights, slopes, strict=True) if w)


def dormand_prince(slope, y, first_slope, step):
    """The state a step on, the slope there, and the estimated error; any library's arrays."""
    slopes = [first_slope]
    for weights in STAGES:
        moved = y + step * combined(weights, slopes)
        slopes.append(slope(moved))
    return moved, slopes[-1], step * combined(ERROR, slopes)
