"""A net of LSTM cells with diagonal matrices: the mean loss of each next item of a sequence."""

import numpy as np

from ..programs.learning import lstm_plain
from ..programs.program import rng
from .evaluation import Eval, compiled, floats, gradient


def objective(main, extra, state, sequence):
    """The mean over items and their bits."""
    return lstm_plain(main, extra, state, sequence) / sequence.shape[1]


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def objective_in_numpy(main, extra, state, sequence):
    """The same, with the bits of an item as a vector."""
    state, total = state.copy(), 0.0
    for t in range(len(sequence) - 1):
        value = sequence[t] * extra[0]
        for k in range(len(main)):
            (w, b), (hidden, cell) = main[k], state[k]
            forget, out = sigmoid(value * w[0] + b[0]), sigmoid(value * w[2] + b[2])
            gate, change = sigmoid(hidden * w[1] + b[1]), np.tanh(hidden * w[3] + b[3])
            cell = cell * forget + gate * change
            value = out * np.tanh(cell)
            state[k] = np.stack((value, cell))
        guess = value * extra[1] + extra[2]
        guess = guess - np.log(np.sum(np.exp(guess)) + 2.0)
        total += np.sum(guess * sequence[t + 1])
    return -total / ((len(sequence) - 1) * sequence.shape[1])


def functions(objective):
    return {
        "objective": compiled(objective),
        "jacobian": gradient(objective, argnums=(0, 1)),
    }


def arguments(data):
    main, extra, state, sequence = floats(
        data["main_params"], data["extra_params"], data["state"], data["sequence"]
    )
    layers, width = len(main) // 2, sequence.shape[1]
    main, state = main.reshape(layers, 2, 4, width), state.reshape(layers, 2, width)
    return main, extra, state, sequence


def generate(layers, length, width=14):
    """Random weights and a sequence of random bits."""
    random = rng(layers * length)
    return {
        "main_params": random.random((2 * layers, 4 * width)).tolist(),
        "extra_params": random.random((3, width)).tolist(),
        "state": random.random((2 * layers, width)).tolist(),
        "sequence": random.integers(0, 2, (length, width)).tolist(),
    }


EVAL = Eval(
    objectives={"loops": objective, "numpy": objective_in_numpy},
    arguments=arguments,
    functions=functions,
    outputs={"jacobian": lambda found: np.concatenate([x.ravel() for x in found]).tolist()},
    generate=generate,
    sizes=((2, 1024), (4, 1024), (4, 4096)),
    small=(2, 5, 3),
)
