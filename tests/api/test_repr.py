"""What functions that nbta makes say they are."""

import pickle
import re

import numba
import numpy as np
import pytest

import nbta


@numba.njit
def loss(x):
    return np.sum(x * x)


LINE = loss.py_func.__code__.co_firstlineno
WAYS = ("function", "grad", "value_and_grad", "jacobian", "hessian", "vmap")


@pytest.mark.parametrize("way", WAYS)
def test_a_function_says_what_it_is_of_which_function_and_how_it_runs(way):
    made = getattr(nbta, way)(loss)
    title = f"nbta.{way} of loss at test_repr.py:{LINE}"
    assert repr(made) == f"<{title}, not called yet>"
    made(np.ones((2, 3)) if way == "vmap" else np.ones(3))
    assert repr(made) == f"<{title}, 1 graph, not compiled>"


def test_graphs_are_counted_and_compiled_ones_said_to_be():
    made = nbta.value_and_grad(loss, compiled=True)
    made(np.ones(3))
    made(np.ones((2, 3)))
    assert repr(made).endswith(", 2 graphs, compiled>")


def test_batches_and_copies():
    made = nbta.value_and_grad(lambda w, x: np.sum(w * x), batch_axis=(None, 0))
    assert re.fullmatch(
        r"<nbta.value_and_grad of .*<lambda> at test_repr.py:\d+, over a batch>", repr(made)
    )
    assert repr(pickle.loads(pickle.dumps(nbta.grad(loss)))).startswith("<nbta.grad of loss at ")
    slope = nbta.grad(loss, batch_axis=(0,))
    assert repr(slope) == f"<nbta.grad of loss at test_repr.py:{LINE}, over a batch>"


def test_other_kinds():
    where = f"loss at test_repr.py:{LINE}"
    assert repr(nbta.opaque(loss)) == f"<nbta.opaque of {where}>"
    assert repr(nbta.custom_gradient(loss)) == f"<nbta.custom_gradient of {where}>"
    root = nbta.implicit.root(lambda x, a: x * x - a, loss)
    assert repr(root) == f"<nbta.implicit.root of {where}>"


def test_messages_name_the_function():
    with pytest.raises(nbta.FailedPreconditionError, match=r"nbta\.grad of loss at test_repr\.py"):
        nbta.grad(loss).explain()
