"""Functions that are traced, and their derivatives."""

import collections
import gc
import pickle
import weakref
from itertools import takewhile

import numpy as np
import pytest
from scipy.optimize import minimize

import nbta
from nbta.execution import runner

X = np.array([0.5, -1.0, 2.0])
Pair = collections.namedtuple("Pair", "w b")


class Counted:
    """A traced function that counts how often it is called to be traced."""

    def __init__(self, f):
        self.calls = 0

        def counting(*args, **kwargs):
            self.calls += 1
            return f(*args, **kwargs)

        self.function = nbta.function(counting)

    def __call__(self, *args, **kwargs):
        result = self.function(*args, **kwargs)
        assert self.calls == self.function.traces
        return result


# Tracing.


def test_one_trace_serves_all_lengths():
    norm = Counted(lambda x: nbta.sqrt(nbta.sum(x * x)))
    for n in (2, 3, 50):
        np.testing.assert_allclose(norm(np.arange(float(n))), np.linalg.norm(np.arange(n)))
    assert norm.calls == 1
    assert norm(np.zeros(0)) == 0.0  # what has no elements has its own
    assert norm.calls == 2


def test_a_trace_belongs_to_dtypes_ranks_and_axes_of_length_1():
    double = Counted(lambda x: x + x)
    kinds = [
        np.ones(3), np.ones(1), np.ones(3, np.float32), np.ones(3, np.int64), np.ones((3, 2)),
        np.ones((1, 2)), np.ones((2, 1)), np.ones((1, 1)), 1.0, 1,
    ]  # fmt: skip
    for count, x in enumerate(kinds, 1):
        assert double(x).dtype == np.asarray(x).dtype
        assert double.calls == count
    for x in kinds:
        np.testing.assert_array_equal(double(x), x + x)
    double(np.ones((7, 5)))
    double(np.float64(2.0))
    assert double.calls == len(kinds)


def test_broadcasting_is_decided_by_lengths_of_1():
    add = Counted(lambda x, y: x + y)
    for a, b in (((3,), (3,)), ((5,), (5,)), ((3,), (1,)), ((4, 1), (1, 3)), ((2, 1), (1, 7))):
        assert add(np.ones(a), np.ones(b)).shape == np.broadcast_shapes(a, b)
    assert add.calls == 3
    with pytest.raises(nbta.InvalidArgumentError, match="'Add', Add"):
        add(np.ones(3), np.ones(4))
    assert add(np.ones(3), np.ones(3)).tolist() == [2, 2, 2]


def _list_in_itself():
    numbers = [1.0]
    numbers.append(numbers)
    return numbers


def _dict_in_itself():
    numbers = {"a": 1.0}
    numbers["b"] = [numbers]
    return numbers


@pytest.mark.parametrize("structure", [_list_in_itself(), _dict_in_itself()], ids=["list", "dict"])
@pytest.mark.parametrize("make", [nbta.function, nbta.grad])
def test_arguments_that_contain_themselves_are_refused(make, structure):
    with pytest.raises(nbta.InvalidArgumentError, match="contains itself"):
        make(lambda numbers: 2.0)(structure)


def test_arguments_and_results_are_structures():
    @nbta.function
    def f(params, *rest, scale, **options):
        w, b = params["layer"]
        return {"y": w * scale + b, "rest": [r * 2 for r in rest], "none": None, **options}

    found = f({"layer": Pair(X, 1.0)}, 1, (2.0), scale=np.float64(2), extra=(X, {"k": 3}))
    np.testing.assert_array_equal(found["y"], X * 2 + 1)
    assert found["rest"] == [2, 4.0]
    assert found["none"] is None
    assert found["extra"][1] == {"k": 3}
    assert f.traces == 1
    f(scale=1.0, params={"layer": Pair(X, 1.0)})
    assert f.traces == 2


def test_each_order_of_keywords_has_its_trace_as_a_function_may_go_by_it():
    f = Counted(lambda *, a, b: a - b)
    assert (f(a=3.0, b=1.0), f(b=1.0, a=3.0)) == (2.0, 2.0)
    g = Counted(lambda p: p["a"] - p["b"])
    assert (g({"a": 3.0, "b": 1.0}), g({"b": 1.0, "a": 3.0})) == (2.0, 2.0)
    assert (f.calls, g.calls) == (2, 2)


def test_what_is_no_array_is_static():
    @nbta.function
    def f(x, mode, flag=True, activation=None):
        assert isinstance(flag, bool)
        y = x * 2.0 if mode == "double" else x
        y = activation(y) if activation else y
        return -y if flag else y

    assert f(1.0, "double") == -2.0
    assert f(1.0, "double", False) == 2.0
    assert f(1.0, "same", flag=False) == 1.0
    assert f(0.0, "double", False, nbta.cos) == 1.0
    assert f(0.0, "double", False, nbta.sin) == 0.0
    assert f.traces == 5
    assert f(3.0, "double") == -6.0
    assert f.traces == 5


def test_what_is_no_argument():
    f = nbta.function(lambda x, **k: x)
    for value, words in (
        (object(), "args[0]: <object object"),
        ({"a": [1.0, object()]}, "args[0]['a'][1]: <object object"),
        (nbta.TensorArray("float64", 1), "args[0]: a TensorArray cannot be passed"),
        ([[1, 2], np.array([None])], "args[0][1]: array([None]"),
    ):
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            f(value)
        assert words in str(caught.value)
    with pytest.raises(nbta.InvalidArgumentError, match="k: <object"):
        f(1.0, k=object())


def test_python_is_told_of_in_a_trace():
    f = nbta.function(lambda x: 1.0 if x > 0 else 2.0, convert=False)
    with pytest.raises(nbta.InvalidArgumentError, match=r"truth value. Use nbta\.cond"):
        f(1.0)


def test_arrays_from_outside_are_as_they_are_at_each_call():
    outside = np.array([1.0, 2.0])
    f = nbta.function(lambda x: x * outside)
    assert f(2.0).tolist() == [2.0, 4.0]
    outside[:] = 7.0
    assert f(2.0).tolist() == [14.0, 14.0]
    outside = np.array([3.0, 4.0, 5.0])
    assert f(2.0).tolist() == [6.0, 8.0, 10.0]
    assert f.traces == 1


def test_a_failed_trace_leaves_nothing():
    attempts = []

    @nbta.function
    def f(x):
        attempts.append(x)
        if len(attempts) == 1:
            raise KeyError("mine")
        return x + 1.0

    with pytest.raises(KeyError, match="mine"):
        f(1.0)
    assert f.traces == 0
    assert nbta.add(1, 2) == 3
    assert f(1.0) == 2.0


def test_in_a_graph_a_function_adds_its_operations():
    inner = Counted(lambda x: x * 2.0)
    with nbta.Graph().as_default() as graph:
        y = inner.function(nbta.constant(3.0))
    assert y.graph is graph
    assert inner.function(y) is not y
    assert nbta.Session(graph).run(y) == 6.0
    assert nbta.function(lambda x: inner.function(x) + 1.0)(1.0) == 3.0
    assert inner.function.traces == 0


def test_arrays_are_given_back():
    array = nbta.function(lambda x: nbta.TensorArray("float64", 3).unstack(x))(X)
    assert array.stack().tolist() == X.tolist()


def test_methods_are_traced_for_each_object():
    class Model:
        def __init__(self, w):
            self.w = w

        @nbta.function
        def __call__(self, x):
            return x * self.w

        @nbta.function(compiled=False)
        def loss(self, x):
            return nbta.sum(self(x))

    one, other = Model(2.0), Model(3.0)
    assert (one(1.0), other(1.0), one(2.0)) == (2.0, 3.0, 4.0)
    assert (one.loss(X), other.loss(X)) == (3.0, 4.5)
    assert Model.loss.traces == 0
    method, gone = other.loss, weakref.ref(other)
    del other
    assert method(np.ones(1)) == 3.0
    del method
    gc.collect()
    assert gone() is None


def test_compiled_is_forwarded():
    words = np.array([b"ab"])
    with pytest.raises(nbta.UnimplementedError, match=r"cannot be compiled: .* is of \|S2"):
        nbta.function(lambda x: x, compiled=True)(words)
    with pytest.raises(nbta.UnimplementedError, match=r"cannot be compiled: .* is of \|S2"):
        nbta.grad(lambda x, y: (x, y), has_aux=True, compiled=True)(1.0, words)
    assert nbta.grad(lambda x, y: x, compiled=True)(1.0, words) == 1.0  # which no operation takes


def test_a_function_keeps_its_name():
    @nbta.function
    def some(x):
        """Words."""
        return x

    assert (some.__name__, some.__doc__) == ("some", "Words.")
    assert "some" in repr(some)


# First derivatives.


def loss(p, x, scale=1.0):
    return scale * nbta.sum(nbta.tanh(p["w"] * x + p["b"]) ** 2)


P = {"w": np.array([1.0, 2.0, -0.5]), "b": 0.25}


def differences(f, x, h=1e-6):
    x = np.asarray(x, float)
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[index] = h
        result[index] = (f(x + step) - f(x - step)) / (2 * h)
    return result


def close(found, expected, rtol=1e-7):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-8)


def test_value_and_grad_of_a_structure():
    both = nbta.value_and_grad(loss)
    value, grads = both(P, X)
    close(value, nbta.function(loss)(P, X))
    assert list(grads) == ["w", "b"]
    run = nbta.function(loss)
    close(grads["w"], differences(lambda w: run({**P, "w": w}, X), P["w"]))
    close(grads["b"], differences(lambda b: run({**P, "b": b}, X), P["b"]))
    assert type(grads["b"]) is np.float64
    assert both.traces == 1
    both({"w": np.ones(5), "b": 1.0}, np.ones(5))
    assert both.traces == 1


@pytest.mark.parametrize("argnums", [1, -1, (1,), (0, 1), (1, 0), ()])
def test_argnums(argnums):
    def f(a, b):
        return nbta.sum(a * a * b)

    args = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    slopes = [2 * args[0] * args[1], args[0] ** 2]
    found = nbta.grad(f, argnums=argnums)(*args)
    if isinstance(argnums, tuple):
        assert type(found) is tuple
        assert len(found) == len(argnums)
        for g, place in zip(found, argnums, strict=True):
            close(g, slopes[place])
    else:
        close(found, slopes[argnums])


def test_has_aux():
    def f(x):
        return nbta.sum(x * x), {"double": x * 2.0, "n": nbta.size(x)}

    (value, aux), slope = nbta.value_and_grad(f, has_aux=True)(X)
    assert (value, aux["n"]) == (5.25, 3)
    close(slope, 2 * X)
    slope, aux = nbta.grad(f, has_aux=True)(X)
    close(aux["double"], slope)


def test_tuple_arguments():
    slope = nbta.grad(lambda p: p[0] * p[1][0], argnums=0)((2.0, [3.0]))
    assert slope == (3.0, [2.0])
    assert type(nbta.grad(lambda p: nbta.sum(p.w) * p.b)(Pair(X, 2.0))) is Pair


def test_a_gradient_that_needs_no_value_is_refused_where_the_value_fails():
    w = np.ones((2, 3))
    slope = nbta.grad(lambda v: nbta.sum(w @ v))
    close(slope(np.ones(3)), np.full(3, 2.0))
    with pytest.raises(nbta.InvalidArgumentError, match="MatMul"):
        slope(np.ones(4))  # the gradient alone would be one of three elements
    with pytest.raises(nbta.InvalidArgumentError, match="MatMul"):
        nbta.grad(lambda v: (nbta.sum(w @ v), v), has_aux=True)(np.ones(4))


def test_keywords_are_not_differentiated():
    close(nbta.grad(loss)(P, X, scale=2.0)["b"], 2 * nbta.grad(loss)(P, x=X)["b"])


def test_a_loss_of_one_element_of_unknown_rank():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", None, name="x")
        slope = nbta.grad(lambda v: v * v)(x)
    assert nbta.Session(graph).run(slope, {x: 3.0}) == 6.0


# Higher derivatives.


def test_derivatives_of_derivatives():
    f = nbta.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin):
        f = nbta.grad(f)
        close(f(0.7), expected(0.7), rtol=1e-13)


def test_grad_inside_a_function():
    @nbta.function
    def newton(x):
        f = lambda v: v**3 - 2.0 * v - 5.0  # noqa: E731
        step = lambda i, v: (i + 1, v - f(v) / nbta.grad(f)(v))  # noqa: E731
        return nbta.while_loop(lambda i, v: i < 20, step, (0, x))[1]

    root = newton(2.0)
    close(root**3 - 2 * root, 5.0)


def test_tensors_from_outside_are_constants_of_the_inner_gradient():
    def f(x):
        y = x * x
        return nbta.grad(lambda z: z * y * x)(x)  # y and x as they are: y * x

    assert nbta.function(f)(3.0) == 27.0
    close(nbta.grad(f)(3.0), 27.0)  # d(x ** 3)/dx
    assert nbta.grad(lambda x: nbta.grad(lambda y: x * y)(2.0) * x)(5.0) == 10.0


def test_a_gradient_under_a_loop_and_a_branch():
    def f(x):
        slopes = nbta.map_fn(nbta.grad(lambda v: v**3), x)
        return nbta.cond(slopes[0] > 0, lambda: nbta.sum(slopes), lambda: nbta.sum(x))

    close(nbta.function(f)(X), 3 * np.sum(X**2))
    close(nbta.grad(f)(X), 6 * X)


def network(w, b):
    """Of two arguments, with a loop and a branch."""

    def step(h, v):
        h = nbta.tanh(w * h + v)
        return h, h

    _, states = nbta.scan(step, nbta.constant(0.1), b)
    return nbta.cond(
        nbta.sum(b) > 0, lambda: nbta.sum(states**2), lambda: nbta.sum(nbta.exp(states))
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_jvp_against_differences(sign):
    w, b = np.float64(0.6), sign * X
    dw, db = 0.3, np.array([0.2, -0.7, 0.5])
    value, slope = nbta.jvp(network, (w, b), (dw, db))
    run = nbta.function(network)
    close(value, run(w, b))
    close(slope, differences(lambda t: run(w + t * dw, b + t * db), 0.0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_hvp_against_differences(sign):
    args = (np.float64(0.6), sign * X)
    direction = (0.3, np.array([0.2, -0.7, 0.5]))
    found = nbta.hvp(network, args, direction)
    slopes = nbta.grad(network, argnums=(0, 1))
    above, below = (
        slopes(*(a + s * 1e-5 * d for a, d in zip(args, direction, strict=True))) for s in (1, -1)
    )
    for part, high, low in zip(found, above, below, strict=True):
        close(part, (high - low) / 2e-5, rtol=1e-6)


def test_jvp_of_structures():
    def f(p):
        return {"sum": nbta.sum(p["a"]) * p["b"], "n": nbta.argmax(p["a"]), "one": nbta.ones((2,))}

    value, slope = nbta.jvp(f, {"a": X, "b": 2.0}, {"a": np.ones(3), "b": 1.0})
    assert (value["sum"], slope["sum"]) == (3.0, 7.5)
    assert (value["n"], slope["n"]) == (2, 0)
    assert slope["one"].tolist() == [0.0, 0.0]
    assert nbta.jvp(lambda x: x * 2.0, 1.0, 1) == (2.0, 2.0)
    found = nbta.jvp(lambda x: x * 2.0, np.float32(1), 1.0)
    assert [v.dtype for v in found] == [np.float32] * 2


def test_jvp_traces_once_and_lets_go():
    calls = []

    def f(x):
        calls.append(1)
        return nbta.sum(x * x)

    for n in (2, 3, 5):
        nbta.jvp(f, np.ones(n), np.ones(n))
        nbta.hvp(f, np.ones(n), np.ones(n))
    assert len(calls) == 2
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None


# Optimisers that want one vector.


def test_flatten_and_unflatten():
    params = {"w": np.arange(6.0).reshape(2, 3), "b": [1.0, np.ones((1, 1))], "a": ()}
    vector = nbta.flatten(params)
    assert vector.tolist() == [1, 1, 0, 1, 2, 3, 4, 5]
    again = nbta.unflatten(vector * 2, params)
    assert list(again) == ["w", "b", "a"]
    np.testing.assert_array_equal(again["w"], params["w"] * 2)
    assert type(again["b"]) is list
    assert again["b"][1].shape == (1, 1)
    assert nbta.flatten(()).shape == (0,)
    assert nbta.flatten({"i": 1, "f": np.float32(2)}).dtype == np.float64
    slope = nbta.grad(lambda v: loss(nbta.unflatten(v, P), X))(nbta.flatten(P))
    close(slope, nbta.flatten(nbta.grad(loss)(P, X)))


@pytest.mark.parametrize("vector", [np.ones(3), np.ones((4, 1)), np.float64(1.0)])
def test_a_vector_of_another_length(vector):
    with pytest.raises(nbta.InvalidArgumentError, match="the structure has 4 elements; give a"):
        nbta.unflatten(vector, P)


def test_rosenbrock_is_minimised():
    start = {"x": np.array([0.2, 0.5, 1.5]), "y": 2.0}

    def rosenbrock(vector):
        p = nbta.unflatten(vector, start)
        v = nbta.concatenate([p["x"], nbta.reshape(p["y"], (1,))])
        return nbta.sum(100.0 * (v[1:] - v[:-1] ** 2) ** 2 + (1.0 - v[:-1]) ** 2)

    both = nbta.value_and_grad(rosenbrock)
    found = minimize(both, nbta.flatten(start), jac=True, method="BFGS", options={"gtol": 1e-9})
    close(found.x, np.ones(4), rtol=1e-6)
    assert both.traces == 1
    hessian = lambda v, p: nbta.hvp(rosenbrock, v, p)  # noqa: E731
    newton = minimize(
        both, nbta.flatten(start), jac=True, hessp=hessian, method="trust-krylov", tol=1e-10
    )
    close(newton.x, np.ones(4), rtol=1e-8)


def test_python_loops_go_over_each_length_in_a_graph_of_its_own():
    def double(x):
        return [2 * x[i] for i in range(x.shape[0])]

    doubled = nbta.function(double, convert=False)
    assert doubled(np.ones(3)) == [2.0, 2.0, 2.0]
    assert doubled(np.ones(2)) == [2.0, 2.0]
    assert doubled.traces == 2
    converted = nbta.function(double)  # a loop of the graph fills the list
    assert converted(np.ones(3)) == [2.0, 2.0, 2.0]
    assert converted(np.ones(2)) == [2.0, 2.0]
    assert converted.traces == 1


def test_an_unknown_rank_says_what_to_do():
    def first(x):
        ta = nbta.TensorArray("float64", size=1, infer_shape=False).write(0, x)
        return ta.read(0).shape[0]

    with pytest.raises(TypeError) as caught:
        nbta.function(first)(np.ones(3))
    assert "nbta.reshape" in caught.value.__notes__[0]


def test_hvp_refuses_lengths_that_do_not_fit():
    matrix = np.ones((2, 3))
    with pytest.raises(nbta.InvalidArgumentError, match="do not multiply"):
        nbta.hvp(lambda w: nbta.sum(matrix @ w), np.ones(4), np.ones(4))


# Pickling.


def _twice(x):
    return x * 2


def _product_of_items(x):
    product = 1.0
    for i in range(x.shape[0]):
        product = product * x[i]
    return product


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("derivative", [nbta.jvp, nbta.hvp])
@pytest.mark.parametrize("specs", [None, [nbta.Spec("float64", (None,))] * 2])
def test_a_run_holds_tangents_against_primals(derivative, specs, compiled):
    """Items that a loop looks up would be there in a longer direction."""
    function = nbta.function(
        lambda x, v: derivative(_product_of_items, x, v), compiled=compiled, input_signature=specs
    )
    found = function(X, X)
    if derivative is nbta.jvp:
        np.testing.assert_allclose(found, [X.prod(), X.size * X.prod()])
    for wrong in (np.ones(X.size + 2), X[:-1], X[:1]):
        with pytest.raises(nbta.InvalidArgumentError):
            function(X, wrong)


def test_items_of_tangents_need_no_check_of_their_own():
    function = nbta.function(lambda x, v: nbta.jvp(_product_of_items, x, v), compiled=True)
    function(X, X)
    _, *lines = function.source.split("for _ in range")[1].splitlines()
    assert "refuse" not in "".join(takewhile(lambda line: line.startswith(" " * 8), lines))


def test_functions_are_pickled_without_their_traces():
    old = nbta.function(_twice, compiled=False)
    old(X)
    new = pickle.loads(pickle.dumps(old))
    assert (old.traces, new.traces) == (1, 0)
    np.testing.assert_array_equal(new(X), 2 * X)


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_of_other_graphs_are_no_results(compiled):
    """Where nothing was fed, the other graph's array came, as if it were this one's."""
    kept = []

    def keeps(x):
        kept.append(nbta.TensorArray("float64", 1).write(0, 1.0))
        return x

    def leaks(x):
        def body(i, y):
            kept.append(nbta.TensorArray("float64", 1).write(0, y))
            return i + 1, y

        nbta.while_loop(lambda i, y: i < 2, body, (0, nbta.sum(x)))
        return kept.pop()

    nbta.function(keeps)(X)
    with pytest.raises(nbta.InvalidArgumentError, match="belongs to another graph"):
        nbta.function(lambda x: kept[0], compiled=compiled)(X)
    with pytest.raises(nbta.InvalidArgumentError, match="belongs to the body of a loop"):
        nbta.function(leaks, compiled=compiled)(X)


def test_arrays_from_pickles_go_the_short_way(monkeypatch):
    twice = nbta.function(_twice, compiled=True)
    expected = twice(X)
    unpickled = pickle.loads(pickle.dumps(X))
    assert unpickled.dtype is not X.dtype
    monkeypatch.setattr(runner.Runner, "__call__", None)
    np.testing.assert_array_equal(twice(unpickled), expected)
    with pytest.raises(TypeError):  # None is called
        twice(unpickled.astype(">f8"))


_KINDS = [
    (2.5, -1.5, 1e300), (3, -4, 2**40), (1 + 2j, 3j, -1.0 + 0j), (np.float32(0.1), np.float32(7)),
    (np.float64(0.1), np.float64(-0.0)), (np.int8(3), np.int8(-128)),
    (np.uint64(2**63), np.uint64(1)), (np.complex64(1 + 1j), np.complex64(2)),
    (np.bool_(True), np.bool_(False)),
]  # fmt: skip


@pytest.mark.parametrize("given", _KINDS, ids=lambda given: type(given[0]).__name__)
def test_numbers_go_the_short_way(given, monkeypatch):
    same = nbta.function(lambda x, y: (x, nbta.where(y > 0, y, 0.0)), compiled=True)
    same(given[0], X)
    monkeypatch.setattr(runner.Runner, "__call__", None)
    found = [same(x, X)[0] for x in given]  # all are kept: each is a number of its own
    assert found == list(given)
    assert all(type(each) is type(np.asarray(given[0])[()]) for each in found)


@pytest.mark.parametrize("number", [2**63, 2.5, np.float32(2.5), True, np.int64(3)])
def test_numbers_of_other_kinds_do_not_go_the_short_way(number):
    twice = nbta.function(lambda x: x + x, compiled=True)
    assert twice(3) == twice(3) == 6
    found, expected = twice(number), nbta.function(lambda x: x + x, compiled=False)(number)
    assert found == expected
    assert found.dtype == expected.dtype


def test_short_ways_and_the_usual_way_share_what_calls_keep():
    """Calls with numbers, with arrays and the executable's own use the same words."""
    f = nbta.function(lambda x, y: (x * y, nbta.sum(y)), compiled=True)
    cases = [(2.0, X), (np.array(3.0), X), (np.float64(4.0), np.arange(5.0)), (5.0, np.arange(3.0))]
    for _ in range(3):
        for x, y in cases:
            product, total = f(x, y)
            f._runner().compiled[0].executable([np.asarray(x), y])
            np.testing.assert_array_equal(product, x * y)
            assert total == y.sum()


def test_a_short_way_refuses_what_the_function_does_not_take():
    f = nbta.function(lambda x, y=1.0, *, z=0.0: x * y + z, compiled=True)
    for _ in range(2):
        assert f(2.0) == 2.0
        assert f(2.0, 3.0) == f(2.0, y=3.0) == 6.0
        assert f(2.0, z=1.0) == 3.0
        assert f(2.0, z=1.0, y=3.0) == f(2.0, y=3.0, z=1.0) == 7.0
    with pytest.raises(TypeError):
        f(2.0, 3.0, 4.0)
    with pytest.raises(TypeError):
        f(2.0, w=3.0)


# Signatures.

ROWS = [nbta.Spec("float64", (None, 2))]


def test_one_graph_for_all_lengths_of_a_signature():
    f = nbta.function(lambda x: nbta.sum(x, 0) + x, input_signature=ROWS, compiled=True)
    for n in (1, 3, 1, 2, 5):
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_array_equal(f(x), x.sum(0) + x)
    assert f.traces == 1
    assert f(np.zeros((0, 2))).shape == (0, 2)


def test_gradients_in_a_signature_are_summed_where_length_1_was_repeated():
    def slope(x, y):
        return nbta.gradients([nbta.sum((x + y) ** 2)], [x, y])

    spec = nbta.Spec("float64", (None,))
    f = nbta.function(slope, input_signature=(spec, spec))
    for n, k in ((1, 3), (3, 1), (3, 3), (1, 1)):
        x, y = np.arange(1.0, n + 1), np.arange(2.0, k + 2)
        whole = 2 * (x + y)
        found = f(x, y)
        np.testing.assert_array_equal(found[0], whole if n == whole.size else whole.sum(keepdims=1))
        np.testing.assert_array_equal(found[1], whole if k == whole.size else whole.sum(keepdims=1))
    assert f.traces == 1


def test_lengths_of_a_signature_are_decided_on_in_python():
    def f(x):
        return nbta.sum(x) if x.shape[0] == 1 else -nbta.sum(x) / x.shape[0]

    traced = nbta.function(f, input_signature=[nbta.Spec("float64", (None,))])
    for n in (1, 2, 3, 1, 2):
        assert traced(np.ones(n)) == (1 if n == 1 else -1)
    assert traced.traces == 3
    mean = nbta.function(
        lambda x: nbta.sum(x) / x.shape[0], input_signature=[nbta.Spec("float64", (None,))]
    )
    assert [mean(np.full(n, 2.0)) for n in (1, 2, 3)] == [2.0] * 3
    assert mean.traces == 1


def test_structures_numbers_and_casts_in_a_signature():
    scalar, vector = nbta.Spec("float64", ()), nbta.Spec("float32", (None,))
    truth = nbta.Spec("bool", ())
    f = nbta.function(
        lambda p, flag: nbta.where(flag, p["w"] * p["x"], p["x"]),
        input_signature=[{"w": scalar, "x": vector}, truth],
        compiled=True,
    )
    for flag in (True, False, np.True_, True):
        for x in (np.ones(3), np.ones(1, np.float32), [1.0, 2.0]):
            if isinstance(x, list):
                with pytest.raises(nbta.InvalidArgumentError, match="structure"):
                    f({"w": 2, "x": x}, flag)
                continue
            expected = np.float32(1) * np.float64(2) * x if flag else x.astype(np.float64)
            np.testing.assert_array_equal(f({"w": 2, "x": x}, flag), expected)
    assert f.traces == 1


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((np.ones((2, 3)),), {}),
        ((np.ones(2),), {}),
        ((np.ones((2, 2), complex),), {}),
        ((np.ones((2, 2)), 1.0), {}),
        ((), {"x": np.ones((2, 2))}),
        (("text",), {}),
        ((1.0,), {}),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_what_does_not_fit_a_signature(args, kwargs, before):
    f = nbta.function(lambda x: x * 2, input_signature=ROWS, compiled=True)
    if before:
        f(np.ones((2, 2)))
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        f(*args, **kwargs)
    assert caught.value.reason == "input_signature"


def test_tensors_are_held_against_a_signature():
    f = nbta.function(lambda x: x * 2, input_signature=ROWS)
    outer = nbta.function(lambda x: f(x) + 1)
    np.testing.assert_array_equal(outer(np.ones((3, 2))), np.full((3, 2), 3.0))
    for x in (np.ones(3), np.ones((3, 1)), np.ones((3, 2), np.float32)):
        with pytest.raises(nbta.InvalidArgumentError, match="input_signature says"):
            outer(x)


@pytest.mark.parametrize("given", [ROWS[0], [(None, 2)], ["float64"], [nbta.Spec("float64", None)]])
def test_what_is_no_signature(given):
    with pytest.raises(nbta.InvalidArgumentError, match="input_signature"):
        nbta.function(lambda x: x, input_signature=given)


def test_signatures_of_methods_and_pickles():
    class Model:
        @nbta.function(input_signature=ROWS)
        def rows(self, x):
            return x * x.shape[0]

    model = Model()
    assert model.rows(np.ones((1, 2))).tolist() == [[1.0, 1.0]]
    assert model.rows(np.ones((2, 2))).tolist() == [[2.0, 2.0]] * 2
    f = pickle.loads(pickle.dumps(nbta.function(_twice, input_signature=ROWS)))
    with pytest.raises(nbta.InvalidArgumentError, match="input_signature"):
        f(np.ones(2))


def test_the_last_call_is_known_however_it_ran():
    """Calls of known kinds take a short way, and are the last ones all the same."""
    f = nbta.function(lambda x: x * 2.0, compiled=True)
    given = np.ones(3), np.ones((2, 2)), np.ones(1)
    for x in (*given, *given):
        f(x)
    for x in (*given, *given[::-1]):
        f(x)
        shape = f.graph.inputs[0].shape
        assert len(shape) == x.ndim
        assert (shape == (1,)) == (x.shape == (1,))
        assert f.traced()[0].operations[0].outputs[0].spec.rank == x.ndim
