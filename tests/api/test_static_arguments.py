"""Arguments that a graph is for: static ones; and one array in the place of two."""

import pickle

import numpy as np
import pytest
from fuzz.ways import in_python

import nbta

X = np.array([1.0, 2.0, 3.0])


def chosen(x, order, how="power"):
    total = 0.0
    for v in x:
        total += v**order if how == "power" else v * order
    return total


@pytest.mark.parametrize("compiled", [False, True])
def test_one_trace_for_each_value(compiled):
    f = nbta.function(chosen, static_argnums=1, static_argnames=["how"], compiled=compiled)
    g = nbta.value_and_grad(chosen, static_argnames=("order", "how"), compiled=compiled)
    with in_python():
        for _ in range(2):
            assert f(X, 2) == 14.0
            assert f(X, order=2, how="times") == 12.0
            assert f(X, 3, "power") == 36.0
            value, slope = g(X, 2)
            assert value == 14.0
            np.testing.assert_array_equal(slope, 2.0 * X)
            np.testing.assert_array_equal(g(X, how="times", order=5)[1], np.full(3, 5.0))
    assert (f.traces, g.traces) == (3, 2)


def test_python_knows_them():
    @nbta.function(static_argnames="order")
    def power(x, order):
        return x * power(x, order - 1) if order else 1.0

    assert power(2.0, order=10) == 1024.0
    assert power(2.0, 3) == 8.0
    found = nbta.function(lambda x, names: dict.fromkeys(names, x), static_argnums=-1)
    assert found(1.0, ("a", "b")) == {"a": 1.0, "b": 1.0}


def test_values_that_python_takes_as_equal_are_distinguished():
    kind = nbta.function(lambda x, n: x * (type(n) is int) + (type(n) is bool), static_argnums=1)
    assert [kind(2.0, n) for n in (1, 1.0, True, 1)] == [2.0, 0.0, 1.0, 2.0]
    sign = nbta.function(lambda x, n: np.copysign(x, n), static_argnums=1)
    assert (sign(2.0, 0.0), sign(2.0, -0.0)) == (2.0, -2.0)
    tuples = nbta.function(lambda x, n: x * (type(n[0]) is int), static_argnums=1)
    assert (tuples(2.0, (1,)), tuples(2.0, (1.0,))) == (2.0, 0.0)
    assert kind.traces == 3


class Scaled:
    @nbta.function(static_argnums=2)
    def by(self, x, n):
        return x * n if n > 2 else x


def test_of_methods_batches_and_pickles():
    assert (Scaled().by(2.0, 3), Scaled().by(2.0, 1), Scaled().by(2.0, n=4)) == (6.0, 2.0, 8.0)
    loss = nbta.grad(
        lambda w, x, n: nbta.sum(w * x) ** n, batch_axis=(None, 0, None), static_argnums=2
    )
    assert loss(1.0, np.ones((3, 2)), 2) == 24.0
    again = pickle.loads(pickle.dumps(nbta.function(len_of, static_argnums=1)))
    assert again(X, 2) == 12.0


def len_of(x, n):
    return np.sum(x) * n


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"static_argnums": 0}, "argument 0 is in argnums too"),
        ({"static_argnums": 7}, "there is no argument 7; there are x, order, how"),
        ({"static_argnums": -4}, "there is no argument -4"),
        ({"static_argnums": ("x",)}, "sequence of ints, not 'x'"),
        ({"static_argnames": "order size"}, "there is no argument 'order size'"),
    ],
)
def test_arguments_that_there_are_not(options, words):
    with pytest.raises(nbta.InvalidArgumentError, match=words) as failed:
        nbta.grad(chosen, **options)
    assert failed.value.reason == "static"


@pytest.mark.parametrize("value", [[1], X, {"a": 1}])
def test_values_without_a_hash(value):
    with pytest.raises(nbta.InvalidArgumentError, match=r"order is static and is of type .* hash"):
        nbta.function(chosen, static_argnums=1)(X, value)


def test_tensors_are_not_static():
    f = nbta.function(chosen, static_argnums=1)
    with pytest.raises(nbta.InvalidArgumentError, match="order is static and is a tensor"):
        nbta.grad(lambda n: f(X, n))(2.0)


def test_a_signature_has_arrays_only():
    with pytest.raises(nbta.InvalidArgumentError, match="give one of the two"):
        nbta.function(chosen, static_argnums=1, input_signature=[nbta.Spec("float64", (None,))])


# One array for two arguments.


def doubled(a, b):
    for i in range(len(a)):
        a[i] = 2.0 * a[i] + b[i]
    return np.sum(a * b)


def only_read(a, b):
    return np.sum(a * b)


def changed_in_a_branch(a, b, c):
    if c[0] > 5.0:
        a[1:][0] = 3.0
    return np.sum(a * b)


@pytest.mark.parametrize("compiled", [False, True])
def test_one_array_that_is_changed_is_refused(compiled):
    x = np.linspace(0.0, 1.0, 12)
    f = nbta.value_and_grad(doubled, (0, 1), compiled=compiled)
    with in_python():
        for _ in range(2):  # the second call goes a shorter way
            assert f(x, x.copy())[0] == pytest.approx(doubled(x.copy(), x.copy()))
            assert f(x[:6], x[6:])[0] == pytest.approx(doubled(x[:6].copy(), x[6:].copy()))
            for a, b in ((x, x), (x[:6], x[5:11]), (x, x[::-1])):
                with pytest.raises(nbta.InvalidArgumentError, match="a and b are one") as failed:
                    f(a, b)
                assert failed.value.reason == "aliased"
        pairs = x.reshape(6, 2)
        assert f(pairs[:, 0], pairs[:, 1])[0] > 0.0  # in one memory, and apart
        assert nbta.function(only_read, compiled=compiled)(x, x) == pytest.approx(np.sum(x * x))


def test_what_may_be_changed_is_refused_too():
    x = np.linspace(0.0, 1.0, 12)
    f = nbta.function(changed_in_a_branch, compiled=False)
    assert f(x.copy(), x, x) == pytest.approx(np.sum(x * x))
    with pytest.raises(nbta.InvalidArgumentError, match="a and c are one array"):
        f(x, x.copy(), x)


def test_one_array_in_a_function_that_is_traced():
    inner = nbta.function(doubled)
    with pytest.raises(nbta.InvalidArgumentError, match="a and b are one array"):
        nbta.grad(lambda x: inner(x, x))(X)
    np.testing.assert_allclose(nbta.grad(lambda x: doubled(x, x))(X), 18.0 * X)
