"""Arrays of as many numbers as only the run knows, as `linspace` gives them: as NumPy has them."""

import numpy as np
import pytest

import nbta


def _linspace(x, endpoint):
    n = int(x[2])
    return np.sum(np.linspace(x[0], x[1], n, endpoint) * np.cos(np.arange(n)))


def _with_step(x, endpoint):
    found, step = np.linspace(x[0], x[1], int(x[2]), endpoint, retstep=True)
    return np.sum(found**2) + (step if x[2] > 2.0 else 0.0)


def _of_rows(x, endpoint):
    return np.sum(np.linspace(x[:2], 3.0, int(x[2]), endpoint) ** 3)


def _logspace(x, endpoint):
    return np.sum(np.logspace(x[0], x[1], int(x[2]), endpoint, base=2.0))


def _geomspace(x, endpoint):
    return np.sum(np.geomspace(x[0], x[1], int(x[2]), endpoint) ** 2)


def _times(x, endpoint):
    n = int(x[1] / 0.25)
    times, y = np.linspace(0.0, x[1], n + 1), x[0]
    for i in range(n):
        y += (times[i + 1] - times[i]) * y
    return y


@pytest.mark.slow_but_every(4)
def _resized(x, _):
    n = int(x[2])
    return np.sum(np.resize(x[:2] * x[1], (2, n))[1] * np.arange(n))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(
    "f", [_linspace, _with_step, _of_rows, _logspace, _geomspace, _times, _resized]
)
def test_value_and_gradient(f, endpoint, compiled):
    made = nbta.value_and_grad(f, compiled=compiled)
    for count in (5.5, 1.5, 2.5, 0.5, 9.5):  # by one graph
        x = np.array([0.75, 2.125, count])
        value, gradient = made(x, endpoint)
        np.testing.assert_allclose(value, f(x, endpoint), rtol=1e-14)
        for k in range(3):
            step = 1e-5 * np.eye(3)[k]
            ends = f(x + step, endpoint) - f(x - step, endpoint)
            assert gradient[k] == pytest.approx(ends / 2e-5, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("compiled", [False, True])
def test_each_number_is_numpy_s(compiled):
    def points(x, n):
        return np.linspace(x[0], x[1], n * 1)

    made = nbta.function(lambda x, v: points(x, int(v)), compiled=compiled)
    for dtype in (np.float64, np.float32):
        x = np.array([0.1, 0.7], dtype)
        for n in (7, 3, 1, 0):
            found, wanted = made(x, n + 0.5), points(x, n)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype).eps)
            assert not n or (found[0] == wanted[0] and found[-1] == wanted[-1])


def test_a_negative_number():
    made = nbta.function(lambda x: np.sum(np.linspace(0.0, 1.0, int(x))), compiled=False)
    assert made(3.5) == 1.5
    with pytest.raises(ValueError, match="the number of this run is negative"):
        made(-3.5)


LENGTHS = {
    "full": lambda x, n: np.full((2, n), x[0]),
    "empty": lambda x, n: np.empty(n) * 0.0 + x[0],
    "repeated": np.repeat,
    "tiled": np.tile,
    "tiled rows": lambda x, n: np.tile(x[None], (n, 2)),
    "broadcast": lambda x, n: np.broadcast_to(x[0], (n,)),
    "broadcast along an axis": lambda x, n: np.broadcast_to(x[:1], (2, n)) * x[1],
    "broadcast twice": lambda x, n: np.broadcast_to(x[0], (n, n)),
    "resized": np.resize,
    "resized rows": lambda x, n: np.resize(x, (2, n)),
    "a diagonal": lambda x, n: np.eye(n) + x[0],
    "a diagonal of few rows": lambda x, n: np.eye(2, n) + x[0],
    "an identity": lambda x, n: np.identity(n) + x[0],
    "padded": lambda x, n: np.pad(x, (n, 1)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", LENGTHS.values(), ids=LENGTHS)
def test_negative_lengths_fail_before_they_size_memory(f, compiled):
    made = nbta.function(lambda x, v: f(x, int(v)), compiled=compiled)
    x = np.array([0.5, 1.5])
    for n in (2, 0):
        np.testing.assert_array_equal(made(x, n + 0.5), f(x, n))
    with pytest.raises(ValueError, match="negative"):
        f(x, -3)
    with pytest.raises(ValueError, match="negative"):
        made(x, -3.5)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_length_of_the_run_is_squeezed_where_it_is_named(compiled):
    def steps(end, axis):
        y = np.zeros((int(end / 0.25), 2, 1))
        y[0] = end
        part = y.squeeze() if axis is None else np.squeeze(y, axis)
        part[0] = part[0] ** 2
        return y.sum() + part[0].sum()

    made = nbta.value_and_grad(steps, compiled=compiled)
    for end, axis in [(1.1, None), (1.1, 2), (0.3, 2), (0.3, (0, 2))]:
        value, slope = made(end, axis)
        np.testing.assert_allclose(value, steps(end, axis))
        np.testing.assert_allclose(slope, (steps(end + 1e-6, axis) - value) / 1e-6, rtol=1e-5)
    with pytest.raises(ValueError, match=r"squeeze: an axis of float64 .* other than one item"):
        made(1.1, 0)
    with pytest.raises(ValueError, match="has one item, which only the run knows"):
        made(0.3, None)
