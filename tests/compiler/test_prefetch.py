"""Tapes that adjoint loops ask for a row ahead."""

import interpreted
import numpy as np
import pytest
from generated_source import outcome

import nbta
from nbta.compiler import prefetch

N, STEPS = 21, 5


def item_by_item(t, x, a):
    """A step of ``x = x + a * x * x``."""

    def item(i, x):
        return i + 1, nbta.set_item(x, i, x[i] + a[i] * x[i] * x[i])

    return t + 1, nbta.while_loop(lambda i, x: i < nbta.shape(x)[0], item, (0, x))[1]


def at_once(t, x, a):
    """The same of whole arrays, which change places so that no tiles are made."""
    x = x[::-1]
    return t + 1, x + a * x * x


@pytest.mark.parametrize("step", [item_by_item, at_once])
def test_a_row_asks_for_the_one_that_is_read_next(monkeypatch, step):
    monkeypatch.setattr(prefetch, "PREFETCHED_TAPE", 0)
    asked = {}

    def fetch(place, index):
        asked.setdefault(place.start, []).append(index)

    monkeypatch.setattr(interpreted, "fetch", fetch)
    with nbta.Graph().as_default():
        x, a = (nbta.placeholder(np.float64, [None]) for _ in range(2))
        last = nbta.while_loop(lambda t, x: t < STEPS, lambda t, x: step(t, x, a), (0, x))[1]
        y = nbta.sum(last)
        wanted = [y, *nbta.gradients(y, [x, a])]
    feeds = {x: np.linspace(0.1, 0.9, N), a: np.linspace(0.5, 0.2, N)}
    assert outcome(wanted, feeds) == "agreed"
    ((_, places),) = asked.items()
    half = len(places) // 2  # of two runs
    rows = np.array(places[:half]).reshape(STEPS, -1)
    np.testing.assert_array_equal(places[half:], places[:half])
    np.testing.assert_array_equal(rows[:, 0], N * np.arange(STEPS - 1, -1, -1) - 1)
    np.testing.assert_array_equal(rows - rows[:, :1], [np.arange(0, -N, -8)] * STEPS)
