"""Shapes that are vectors: of the module, of the arguments, and made inside. The rank is theirs."""

import numpy as np
import pytest

import nbta

X = np.array([0.5, 2.0, -1.0, 3.0, 1.5, -2.5])
SHAPE = np.array([2, 3])
WEIGHTS = np.cos(np.arange(6.0))


def _in_a_loop(x, shape):
    total = np.zeros(6)
    for i in range(len(shape)):
        total = total + (x * i).reshape(shape, order="F").ravel()
    return total


SHAPES = [
    lambda x, shape: x.reshape(SHAPE),
    lambda x, shape: x.reshape(SHAPE, order="F"),
    lambda x, shape: x.reshape(shape),
    lambda x, shape: x.reshape(shape[::-1], order="F"),
    lambda x, shape: np.reshape(x, shape, order="F"),
    lambda x, shape: x.reshape(np.array([1 * n for n in shape])),
    lambda x, shape: x.reshape(np.array([len(x) // 2, -1]), order="F"),
    lambda x, shape: np.zeros(shape) + x[0],
    lambda x, shape: np.ones(SHAPE + 1) * x[1],
    lambda x, shape: np.full(shape, x[2]),
    lambda x, shape: np.broadcast_to(x[0], SHAPE),
    _in_a_loop,
]


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_value_and_gradient(number, compiled):
    def loss(x, shape):
        made = SHAPES[number](x, shape)
        return np.sum(made.ravel() * np.arange(1.0, made.size + 1.0) ** 2)

    made = nbta.function(SHAPES[number], compiled=compiled)
    gradient = nbta.value_and_grad(loss, compiled=compiled)
    for shape in (SHAPE, SHAPE[::-1], np.array([1, 3, 2])):  # of two ranks
        found, wanted = made(X, shape), SHAPES[number](X, shape)
        assert found.shape == wanted.shape
        np.testing.assert_array_equal(found, wanted)
        value, slopes = gradient(X, shape)
        assert value == pytest.approx(loss(X, shape), rel=1e-14)
        for k in range(6):
            unit = np.eye(6)[k]
            np.testing.assert_allclose(slopes[k], loss(X + unit, shape) - loss(X, shape), rtol=1e-9)


@pytest.mark.parametrize("shape", [SHAPE * 1.0, np.array(6.0), SHAPE[None]])
def test_no_shapes(shape):
    with pytest.raises(ValueError, match=r"is not a shape|contains a sequence"):
        nbta.function(lambda x: x.reshape(shape), compiled=False)(X)
