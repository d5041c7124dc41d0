"""The demo's loss, computed by processes of a Dask cluster on this machine."""

import contextlib
import itertools
import logging
import signal

import numpy as np
from distributed import Client, LocalCluster

import nbta
from nbta.demo import network
from nbta.distributed import value_and_grad

#: Groups of windows, each of which one task computes. Windows one by one, in 16 tasks, took 121 ms
#: for an epoch where these took 95, with one worker.
GROUPS = 8


@contextlib.contextmanager
def computing(count: int):
    """A context with `network.loss_and_gradient`, as ``count`` processes compute it.

    Its last digits are others, as sums are taken in another order, but the same for any ``count``.
    """
    options = {"n_workers": count, "threads_per_worker": 1, "processes": True}
    quiet = {"dashboard_address": ":0", "silence_logs": logging.CRITICAL}
    with LocalCluster(**options, **quiet) as cluster, Client(cluster) as client:
        client.run(_ignore_interrupts)
        squared_error = value_and_grad(network.squared_error, client)
        penalty = nbta.value_and_grad(network.penalty)

        def loss_and_gradient(parameters, windows):
            error, slope = squared_error(parameters, _groups(windows))
            cost, more = penalty(parameters)
            total = np.sum(windows.weights)
            gradient = map(lambda a, b: a / total + b, slope, more)
            return error / total + cost, network.Parameters(*gradient)

        yield loss_and_gradient


def _ignore_interrupts():
    """Ctrl-C goes to all processes of a terminal; workers end when the cluster does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _groups(windows):
    count = len(windows.levels)
    bounds = sorted({count * k // GROUPS for k in range(GROUPS + 1)})
    return [windows.part(*pair) for pair in itertools.pairwise(bounds)]
