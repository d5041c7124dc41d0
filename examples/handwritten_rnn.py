"""A recurrent network whose forward and backward passes are compiled loops written by hand.

``h[t+1] = tanh(x[t] @ w_in + h[t] @ w_rec + bias)`` and ``y[t] = h[t+1] @ w_out + offset``. The
forward pass appends states to an array that grows; the backward pass sums into the gradient array
of those states, slot by slot. `nbta demo` has the same network as a plain Python loss and leaves
the backward pass to `nbta.value_and_grad`; the tests hold the two gradients against each other.
"""

import numpy as np
from numba import njit

import nbta

PENALTY = 1e-3  # on squared weights


@njit(cache=True)
def forward(inputs, w_in, w_rec, bias):
    """The states before the first step and after each."""
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


@njit(cache=True)
def backward(states, inputs, d_outputs, w_rec, w_out):
    """Gradients with respect to ``w_in``, ``w_rec`` and ``bias``."""
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


def loss_and_gradient(parameters, inputs, targets, weights):
    """Weighted mean squared error with a penalty on the weights, and its gradient.

    Parameters
    ----------
    parameters : tuple of ndarray
        ``w_in`` (features, hidden), ``w_rec`` (hidden, hidden), ``bias`` (hidden,), ``w_out``
        (hidden,) and ``offset`` (1,).
    inputs : ndarray, shape (steps, batch, features)
    targets, weights : ndarray, shape (steps, batch)

    Returns
    -------
    loss : float
    gradient : list of ndarray
        One a parameter, in their order.
    """
    w_in, w_rec, bias, w_out, offset = parameters
    states = forward(inputs, w_in, w_rec, bias)
    after = states.stack()[1:]
    errors = weights * (after @ w_out + offset - targets)
    total = weights.sum()
    d_outputs = 2 * weights * errors / total
    by_drive = backward(states, inputs, d_outputs, w_rec, w_out)
    by_output = np.einsum("tb,tbh->h", d_outputs, after)
    parts = [*by_drive, by_output, d_outputs.sum(keepdims=True).ravel()]
    loss = np.sum(errors**2) / total + PENALTY * sum(np.sum(p**2) for p in parameters)
    return loss, [g + 2 * PENALTY * p for g, p in zip(parts, parameters, strict=True)]


def made_up_problem(seed=0, steps=40, batch=5, features=3, hidden=6):
    """Small random weights, and a running mean of the first feature to predict."""
    random = np.random.default_rng(seed)
    shapes = (features, hidden), (hidden, hidden), (hidden,), (hidden,), (1,)
    parameters = tuple(random.normal(0.0, 0.3, shape) for shape in shapes)
    inputs = random.normal(size=(steps, batch, features))
    targets = np.cumsum(inputs[..., 0], axis=0) / np.arange(1, steps + 1)[:, None]
    return parameters, inputs, targets, np.ones((steps, batch))


def central_differences(parameters, *rest, step=1e-5):
    """The gradient once more, from the loss alone."""
    gradient = []
    for place, part in enumerate(parameters):
        slopes = np.empty_like(part)
        for index in np.ndindex(part.shape):
            ends = []
            for shift in (step, -step):
                moved = [p.copy() for p in parameters]
                moved[place][index] += shift
                ends.append(loss_and_gradient(tuple(moved), *rest)[0])
            slopes[index] = (ends[0] - ends[1]) / (2 * step)
        gradient.append(slopes)
    return gradient


if __name__ == "__main__":
    problem = made_up_problem()
    loss, gradient = loss_and_gradient(*problem)
    pairs = zip(gradient, central_differences(*problem), strict=True)
    difference = max(np.abs(found - expected).max() for found, expected in pairs)
    print(f"loss {loss:.6f}; gradient off central differences by {difference:.1e} at most")
