"""A tanh recurrent network: a loop that fills a tensor array, and its loss.

``h[t+1] = tanh(x[t] @ w_in + h[t] @ w_rec + bias)`` and ``y[t] = h[t+1] @ w_out + offset``. The
functions here are plain Python. Called with arrays they run at once; `nbta.value_and_grad` traces
the loss, and finds its gradient through the loop.
"""

from typing import NamedTuple

import numpy as np

import nbta

PENALTY = 1e-3  # on squared weights, so that growth unlike the past's is not followed too far


class Parameters(NamedTuple):
    """The weights of a network."""

    w_in: np.ndarray  # (features, hidden)
    w_rec: np.ndarray  # (hidden, hidden)
    bias: np.ndarray  # (hidden,)
    w_out: np.ndarray  # (hidden,)
    offset: np.ndarray  # (1,)


def initial(features: int, hidden: int, seed: int) -> Parameters:
    """Small random weights, the recurrent ones near the identity so that memory lasts."""
    random = np.random.default_rng(seed)
    return Parameters(
        w_in=random.normal(size=(features, hidden)) * 0.3 / np.sqrt(features),
        w_rec=0.9 * np.eye(hidden) + random.normal(size=(hidden, hidden)) * 0.1 / np.sqrt(hidden),
        bias=np.zeros(hidden),
        w_out=random.normal(size=hidden) * 0.3 / np.sqrt(hidden),
        offset=np.zeros(1),
    )


def outputs(parameters: Parameters, inputs):
    """What the network says of inputs (steps, batch, features), shape (steps, batch)."""
    w_in, w_rec, bias, w_out, offset = parameters
    steps = nbta.shape(inputs)[0]
    drive = inputs @ w_in + bias  # one product for all steps, as it needs no state
    # Read slot by slot: the gradient of drive[t] would be as large as drive, in every step.
    drives = nbta.TensorArray(np.float64, size=steps).unstack(drive)
    states = nbta.TensorArray(np.float64, size=steps)

    def step(t, state, states):
        state = nbta.tanh(drives.read(t) + state @ w_rec)
        return t + 1, state, states.write(t, state)

    first = (0, nbta.zeros_like(drive[0]), states)
    _, _, states = nbta.while_loop(lambda t, *_: t < steps, step, first)
    return states.stack() @ w_out + offset


def squared_error(parameters: Parameters, windows):
    """Sum of the weighted squared errors over windows."""
    errors = windows.weights * (outputs(parameters, windows.inputs) - windows.targets)
    return nbta.sum(errors**2)


def penalty(parameters: Parameters):
    """What large weights cost."""
    return PENALTY * nbta.sum(nbta.flatten(parameters) ** 2)


def loss(parameters: Parameters, windows):
    """Weighted mean squared error, with a penalty on the weights."""
    error = squared_error(parameters, windows)
    return error / nbta.sum(windows.weights) + penalty(parameters)


value = nbta.function(loss, compiled=True)
loss_and_gradient = nbta.value_and_grad(loss, compiled=True)


def check_gradient(parameters: Parameters, windows, step: float = 1e-5) -> float:
    """Largest difference from central differences, relative to the largest derivative."""
    gradient = nbta.flatten(loss_and_gradient(parameters, windows)[1])
    vector, numeric = nbta.flatten(parameters), np.empty_like(gradient)
    for i in range(len(vector)):
        shift = np.zeros_like(vector)
        shift[i] = step
        above, below = (
            value(nbta.unflatten(moved, parameters), windows)
            for moved in (vector + shift, vector - shift)
        )
        numeric[i] = (above - below) / (2 * step)
    return float(np.abs(gradient - numeric).max() / np.abs(numeric).max())
