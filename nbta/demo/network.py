"""A tanh recurrent network: a loop that fills a tensor array, and its loss.

``h[t+1] = tanh(x[t] @ w_in + h[t] @ w_rec + bias)`` and ``y[t] = h[t+1] @ w_out + offset``. The
functions here are plain Python. Called with arrays they run at once; `nbta.value_and_grad` traces
the loss, and finds its gradient through the loop.
"""

import contextlib
import itertools
import logging
import signal
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


# The same loss, computed by processes of a Dask cluster on this machine.

#: Groups of windows, each of which one task computes. Windows one by one, in 16 tasks, took 121 ms
#: for an epoch where these took 95, with one worker.
GROUPS = 8


@contextlib.contextmanager
def computing(count: int):
    """A context with `loss_and_gradient`, as ``count`` processes compute it.

    Its last digits are others, as sums are taken in another order, but the same for any ``count``.
    """
    from distributed import Client, LocalCluster

    from nbta.distributed import value_and_grad

    options = {"n_workers": count, "threads_per_worker": 1, "processes": True}
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(**options, **quiet) as cluster, Client(cluster) as client:
        client.run(_ignore_interrupts)
        of_error = value_and_grad(squared_error, client)
        of_penalty = nbta.value_and_grad(penalty)

        def loss_and_gradient(parameters, windows):
            error, slope = of_error(parameters, _groups(windows))
            cost, more = of_penalty(parameters)
            total = np.sum(windows.weights)
            gradient = map(lambda a, b: a / total + b, slope, more)
            return error / total + cost, Parameters(*gradient)

        yield loss_and_gradient


def _ignore_interrupts():
    """Ctrl-C goes to all processes of a terminal; workers end when the cluster does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _groups(windows):
    count = len(windows.levels)
    bounds = sorted({count * k // GROUPS for k in range(GROUPS + 1)})
    return [windows.part(*pair) for pair in itertools.pairwise(bounds)]
