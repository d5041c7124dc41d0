"""A tanh recurrent network with a hand-written backward pass over two tensor arrays.

``h[t+1] = tanh(x[t] @ w_in + h[t] @ w_rec + bias)`` and ``y[t] = h[t+1] @ w_out + offset``. The
forward pass appends states to an array that grows; the backward pass sums into the gradient
array of those states, slot by slot.
"""

from typing import NamedTuple

import numpy as np

import nbta
from nbta.runtime.compiled import cacheable

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


def flatten(parameters: Parameters) -> np.ndarray:
    """All weights one behind the other."""
    return np.concatenate([part.ravel() for part in parameters])


def unflatten(vector: np.ndarray, like: Parameters) -> Parameters:
    """The inverse of `flatten`; ``like`` has the shapes."""
    ends = np.cumsum([part.size for part in like])
    pieces = np.split(vector, ends[:-1])
    return Parameters(*(p.reshape(part.shape) for p, part in zip(pieces, like, strict=True)))


def _forward(inputs, w_in, w_rec, bias):
    steps, batch = inputs.shape[:2]
    hidden = len(bias)
    states = nbta.TensorArray(
        np.float64,
        size=0,
        dynamic_size=True,
        clear_after_read=False,  # the backward pass and the output read each state again
        element_shape=(batch, hidden),
    )
    states.append(np.zeros((batch, hidden)))
    for t in range(steps):
        drive = np.dot(inputs[t], w_in) + np.dot(states.read(t), w_rec) + bias
        states.append(np.tanh(drive))
    return states


def _backward(states, inputs, d_outputs, w_rec, w_out):
    hidden = len(w_out)
    g_in = np.zeros((inputs.shape[2], hidden))
    g_rec, g_bias = np.zeros((hidden, hidden)), np.zeros(hidden)
    w_back = np.ascontiguousarray(w_rec.T)
    gradient = states.grad("gradients")
    for t in range(len(inputs) - 1, -1, -1):
        gradient.accumulate(t + 1, np.outer(d_outputs[t], w_out))  # through the output
        state = states.read(t + 1)
        d_drive = gradient.read(t + 1) * (1.0 - state * state)
        gradient.accumulate(t, np.dot(d_drive, w_back))  # through the next state
        g_in += np.dot(inputs[t].T, d_drive)
        g_rec += np.dot(states.read(t).T, d_drive)
        g_bias += d_drive.sum(axis=0)
    return g_in, g_rec, g_bias


forward = cacheable(_forward)
backward = cacheable(_backward)


def outputs(parameters: Parameters, inputs: np.ndarray):
    """What the network says, shape (steps, batch), and the array of its states."""
    states = forward(inputs, parameters.w_in, parameters.w_rec, parameters.bias)
    return states.stack()[1:] @ parameters.w_out + parameters.offset, states


def loss_and_gradient(vector: np.ndarray, like: Parameters, windows):
    """Weighted mean squared error with a penalty on the weights, and its gradient."""
    parameters = unflatten(vector, like)
    values, states = outputs(parameters, windows.inputs)
    errors = windows.weights * (values - windows.targets)
    total = windows.weights.sum()
    d_outputs = 2 * errors / total
    by_drive = backward(states, windows.inputs, d_outputs, parameters.w_rec, parameters.w_out)
    by_output = np.einsum("tb,tbh->h", d_outputs, states.stack()[1:])
    gradient = flatten(Parameters(*by_drive, by_output, d_outputs.sum(keepdims=True).ravel()))
    loss = np.sum(errors**2) / total + PENALTY * np.sum(vector**2)
    return loss, gradient + 2 * PENALTY * vector


def check_gradient(vector: np.ndarray, like: Parameters, windows, step: float = 1e-5) -> float:
    """Largest difference from central differences, relative to the largest derivative."""
    _, gradient = loss_and_gradient(vector, like, windows)
    numeric = np.empty_like(gradient)
    for i in range(len(vector)):
        shift = np.zeros_like(vector)
        shift[i] = step
        above, _ = loss_and_gradient(vector + shift, like, windows)
        below, _ = loss_and_gradient(vector - shift, like, windows)
        numeric[i] = (above - below) / (2 * step)
    return float(np.abs(gradient - numeric).max() / np.abs(numeric).max())
