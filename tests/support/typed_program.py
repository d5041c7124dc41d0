"""A user's program that is checked strictly, and runs: what types nbta's functions give.

Each `assert_type` fails where a function has lost its types, and each ``type: ignore`` where a
mistake is no longer found: it is then unused, which is an error.
"""

from typing import TYPE_CHECKING, Any, assert_type

import numpy as np
from numpy.typing import NDArray

import nbta
from nbta.typing import Array

Params = dict[str, NDArray[np.float64]]


# Derivatives: the parameters of a function, and gradients like the arguments.


def loss(params: Params, x: Array, power: int = 2) -> Array:
    """A loss of structured parameters."""
    return nbta.sum(nbta.tanh(params["w"] * x) ** power)


params: Params = {"w": np.array([0.5, -0.5])}
x: NDArray[np.float64] = np.array([1.0, 2.0])

value, gradient = nbta.value_and_grad(loss)(params, x, power=2)
assert_type(value, Array)
assert_type(gradient, Params)
assert_type(nbta.grad(loss)(params, x), Params)
assert_type(nbta.value_and_grad(loss, argnums=1)(params, x), tuple[Array, Any])
assert_type(nbta.value_and_grad(loss, batch_axis=0)(params, x), tuple[Array, Any])
assert_type(nbta.jvp(lambda y: nbta.exp(y), (x,), (x,)), tuple[Array, Array])
assert_type(nbta.hvp(lambda y: nbta.sum(y**3), x, x), NDArray[np.float64])
nbta.grad(lambda y: y**3)(2.0)
nbta.grad(nbta.grad(lambda y: y**3))(2.0)
if TYPE_CHECKING:
    nbta.value_and_grad(loss)(params)  # type: ignore[call-arg]
    nbta.value_and_grad(loss)(params, x, power="2")  # type: ignore[arg-type]
    nbta.value_and_grad(loss, reduction="max")  # type: ignore[call-overload]


# Functions as graphs keep their parameters.


@nbta.function
def norm(y: Array) -> Array:
    """The Euclidean norm."""
    return nbta.sqrt(nbta.sum(y * y))


@nbta.function(compiled=False)
def shifted(y: Array, by: float = 1.0) -> Array:
    """A sum with a number."""
    return y + by


class Model:
    """Something with a traced method."""

    @nbta.function
    def twice(self, y: Array) -> Array:
        """The double."""
        return 2.0 * y


assert_type(norm(x), Array)
assert_type(shifted(x, by=2.0), Array)
assert_type(Model().twice(x), Array)
assert_type(norm.explain(), str)
if TYPE_CHECKING:
    norm(x, 1.0)  # type: ignore[call-arg]
    nbta.tanh(1.0, "name")  # type: ignore[call-arg]
    missing = nbta.no_such_function  # type: ignore[attr-defined]


# Loops and branches give what their variables are.

i, y = nbta.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 2.0), (0, x))
assert_type(i, int)
assert_type(y, NDArray[np.float64])
last, sums = nbta.scan(lambda total, row: (total + row, total), 0.0, x)
assert_type(last, float)
assert_type(nbta.foldl(lambda total, row: total + row, x, 0.0), float)
assert_type(nbta.cond(True, lambda: 1.0, lambda: "none"), float | str)
assert_type(nbta.switch_case(1, [lambda: 1.0, lambda: 2.0]), float)
if TYPE_CHECKING:
    nbta.while_loop(lambda i: i < 3, lambda i: i + 1, 0, checkpoint="root")  # type: ignore[arg-type]


# Arrays: writes give an array to go on with, reads give values.

array = nbta.TensorArray("float64", size=0, dynamic_size=True, element_shape=(None,))
assert_type(array, nbta.TensorArray)
for t in range(3):
    array = array.write(t, [1.0 * t, 2.0])
assert_type(array.write(3, x), nbta.TensorArray)
assert_type(array.read(0), Array)
assert_type(array.stack(), Array)
assert_type(array[0], Array)
assert_type(list(array), list[Array])
assert_type(array.lanes(2).join(), nbta.TensorArray)
assert_type(array.grad("gradients").write(0, x), nbta.TensorArray)
total: float = float(nbta.sum(array.stack()))
if TYPE_CHECKING:
    array.write("first", x)  # type: ignore[arg-type]
    array.write(0)  # type: ignore[call-arg]

_, array = nbta.while_loop(
    lambda i, ta: i < 2,
    lambda i, ta: (i + 1, ta.write(i, 1.0 * i)),
    (0, nbta.TensorArray("float64", size=2)),
)
assert_type(array, nbta.TensorArray)


# Graphs, and what their tensors give.

with nbta.Graph().as_default() as graph:
    feed = nbta.placeholder("float64", (None,))
    assert_type(feed, nbta.Tensor)
    assert_type(feed * 2.0, nbta.Tensor)
    assert_type(feed.sum(axis=0), nbta.Tensor)
    assert_type(nbta.sum(feed), Array)
assert_type(graph, nbta.Graph)
with nbta.Session(graph) as session:
    session.run(feed, {feed: x})


# Structures, files, checks.

vector = nbta.flatten(params)
assert_type(vector, Array)
assert_type(nbta.unflatten(vector, params), Params)
nbta.testing.check_grads(lambda y: nbta.sum(y**2), (x,))
try:
    nbta.load("no such file")
except OSError as error:
    assert_type(error, OSError)
