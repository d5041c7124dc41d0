"""What users may get wrong with fetches, feeds, gradients, order and scope of graphs."""

import numpy as np
import pytest

import nbta
from nbta import raw_ops
from nbta.graph.graph import current


@pytest.fixture
def graph():
    with nbta.Graph().as_default() as made:
        yield made
        assert current() is made


def p(shape=(), dtype="float64", name="x"):
    return nbta.placeholder(dtype, shape, name=name)


def failing(action, *words, error=nbta.InvalidArgumentError):
    """The error of an action, whose message has all the words."""
    with pytest.raises(error) as caught:
        action()
    assert type(caught.value) is error
    for word in words:
        assert word in str(caught.value)
    return caught.value


def run(fetches, feeds=None):
    return nbta.Session().run(fetches, feeds)


# Fetches and feeds.


@pytest.fixture
def foreign():
    with nbta.Graph().as_default():
        return p(name="foreign")


def test_a_fetch_of_another_graph(graph, foreign):
    words = "'foreign:0' belongs to another graph", "give what this session's graph has"
    failing(lambda: run(foreign), "run: fetches:", *words)
    failing(lambda: run({"a": [foreign]}), "run: fetches:", *words)
    failing(lambda: run(p(), {foreign: 1.0}), "run: feed_dict:", *words)
    failing(lambda: run(foreign.op), "run: fetches: 'foreign' belongs to another graph")


def test_building_with_a_tensor_of_another_graph(graph, foreign):
    text = "'foreign:0' belongs to another graph; build with tensors of one graph"
    failing(lambda: foreign + p(), text)
    failing(lambda: nbta.gradients(p(), [foreign]), text)
    failing(lambda: nbta.while_loop(lambda i: i < 3, lambda i: i + foreign, p()), text)
    assert run(p(name="y") * 2.0, {"y": 2.0}) == 4.0


@pytest.mark.parametrize(
    ("fetch", "words"),
    [
        (
            3.0,
            "run: fetches: 3.0 is not a tensor of a graph; give tensors, TensorArrays, operations",
        ),
        ("y", "run: fetches: there is no operation 'y' in the graph"),
        ("x:1", "run: fetches: 'x:1': 'x' has 1 results, from 0"),
        ("x:a", "run: fetches: 'x:a': 'x' has 1 results, from 0"),
        (np.ones(2), "is not a tensor of a graph"),
    ],
)
def test_what_cannot_be_fetched(graph, fetch, words):
    p()
    failing(lambda: run(fetch, {"x": 1.0}), words)


def test_an_eager_array_is_not_fetched(graph):
    with_array = nbta.Session(graph)
    eager = np.ones(1)
    failing(lambda: with_array.run({"a": eager}), "run: fetches: array([1.]) is not a tensor")


def test_a_placeholder_without_a_value(graph):
    weights = p((None, 3), name="weights")
    double = weights * 2.0
    words = "the placeholder 'weights' got no value", "in feed_dict, of float64 (?, 3)"
    error = failing(lambda: run(double), *words, error=nbta.FailedPreconditionError)
    assert error.reason == "unfed"
    failing(
        lambda: run(weights, {double: np.ones((1, 3))}), *words, error=nbta.FailedPreconditionError
    )


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({"x": [1.0, 2.0]}, ["'x:0' takes shape (3,), and the value has shape (2,); reshape it"]),
        ({"x": 1.0}, ["'x:0' takes shape (3,), and the value has shape ()"]),
        (
            {"x": np.full(3, 1e300)},
            ["'x:0': it takes float32, and the value is float64", ".astype('float32')"],
        ),
        ({"x": "abc"}, ["'x:0': it takes float32, and the value is <U3; give numbers"]),
        ({"x": None}, ["'x:0': it takes float32, and the value is object; give numbers"]),
        ({"x": [object()]}, ["'x:0': it takes float32, and the value is object; give numbers"]),
        ({"x": np.array([object()])}, ["'x:0': arrays hold plain numbers"]),
        (
            {"x": [[1], [1, 2]]},
            ["'x:0': the nested list is no array, its rows must have one length"],
        ),
        ({"y": 1.0}, ["there is no operation 'y' in the graph"]),
        ({3: 1.0}, ["3 is not a tensor of a graph; give tensors or names of them"]),
        ({"x": 1.0, "x:0": 1.0}, ["'x:0' is there twice; give it one value"]),
        ([1.0], ["feed_dict must be a dict, value by tensor, not [1.0]"]),
    ],
)
def test_what_cannot_be_fed(graph, feeds, words):
    double = p((3,), "float32") * 2.0
    failing(lambda: run(double, feeds), "run: feed_dict", *words)
    assert run(double, {"x": [1, 2, 3]}).tolist() == [2.0, 4.0, 6.0]


def test_a_tensor_is_no_value_to_feed(graph):
    x = p()
    words = "'x:0': the value is symbolic itself, <nbta.Tensor 'Mul:0' float64 ()>; run that first"
    failing(lambda: run(x + 1.0, {x: x * 2.0}), words)


def test_a_handle_is_not_fed(graph):
    ta = nbta.TensorArray("float64", 1, name="states", element_shape=())
    text = "run: feed_dict: 'states:0' is a handle, which only a run can make"
    failing(lambda: run(ta.read(0), {ta.handle: 0}), text)


# Gradients.


def test_integers_are_not_differentiated(graph):
    n, x = p(dtype="int64", name="n"), p()
    text = "is int64 (), and only floats and complex numbers can be differentiated; cast it"
    failing(lambda: nbta.gradients([x, n * 2], [x]), f"gradients: ys[1], 'Mul:0', {text}")
    failing(lambda: nbta.gradients(x, [x, n]), f"gradients: xs[1], 'n:0', {text}")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda f: nbta.value_and_grad(f)(3), "args[0] is int64 ()"),
        (lambda f: nbta.grad(f)({"n": [3]}), "args[0]['n'][0] is int64 ()"),
        (lambda f: nbta.grad(f, argnums=(0, 1))(1.0, True), "args[1] is bool ()"),
        (lambda f: nbta.jvp(f, (3,), (1,)), "primals[0] is int64 ()"),
        (lambda f: nbta.hvp(f, (3,), (1,)), "primals[0] is int64 ()"),
    ],
)
def test_integers_have_no_gradient(call, words):
    error = failing(lambda: call(lambda *args: 1.0), words, "floats and complex numbers only")
    assert error.reason == "integer"


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: x, "f must return a scalar of floats to differentiate, and returns float64"),
        (lambda x: nbta.sum(x) > 0, "scalar of floats to differentiate, and returns bool ()"),
        (lambda x: (nbta.sum(x), x), "one scalar to differentiate, and returns (*, *)"),
        (lambda x: {"a": nbta.sum(x)}, "and returns {'a': *}; add up the terms"),
        (lambda x: None, "f must return one scalar to differentiate, and returns None"),
    ],
)
def test_only_scalars_are_losses(f, words):
    failing(lambda: nbta.grad(f)(np.ones(3)), words)
    failing(lambda: nbta.hvp(f, np.ones(3), np.ones(3)), words)


def test_arguments_of_grad():
    x = np.ones(3)
    words = "argnums: there is no argument 1; given by position: 1"
    failing(lambda: nbta.grad(nbta.sum, argnums=1)(x), words)
    failing(lambda: nbta.grad(nbta.sum, argnums="x")(x), "argnums: 'x' is not an int or a tuple")
    failing(lambda: nbta.grad(nbta.sum, has_aux=True)(x), "f must return a pair", "returns *")
    like = "tangents[0] is float64 (2,), and primals[0] is float64 (3,); they must be equal"
    failing(lambda: nbta.jvp(nbta.sum, x, np.ones(2)), like)
    failing(lambda: nbta.hvp(nbta.sum, (x,), (np.ones(2),)), like)
    failing(lambda: nbta.jvp(nbta.sum, x, np.ones(3, "float32")), "tangents[0] is float32 (3,)")
    failing(
        lambda: nbta.jvp(nbta.sum, (x,), (x, x)), "the structure of primals, (*,), and are (*, *)"
    )


def test_what_nothing_leads_to(graph):
    x, y = p((2,)), p((3,), name="y")
    loss = nbta.sum(x * 2.0)
    none, some = nbta.gradients(loss, [y, x])
    assert none is None
    zeros, _ = nbta.gradients(loss, [y, x], unconnected="zero")
    assert zeros.shape == (3,)
    assert run([zeros, some], {x: np.ones(2)})[1].tolist() == [2.0, 2.0]
    assert run(zeros, {y: np.ones(3)}).tolist() == [0.0, 0.0, 0.0]
    failing(lambda: nbta.gradients(loss, [y], unconnected="nil"), '"none" or "zero", not \'nil\'')
    flat = nbta.grad(lambda a, b: nbta.sum(a), argnums=1)(x, y)
    assert run(flat, {y: np.ones(3)}).tolist() == [0.0, 0.0, 0.0]


def test_arguments_of_gradients(graph):
    x = p((3,))
    ta = nbta.TensorArray("float64", 1)
    failing(lambda: nbta.gradients([1.0], [x]), "gradients: ys[0] must be a Tensor, not float")
    failing(lambda: nbta.gradients([ta], [x]), "ys[0] must be a Tensor", "stack it first")
    failing(lambda: nbta.gradients([x], [1.0]), "xs[0] must be a Tensor or a TensorArray", "float")
    failing(lambda: nbta.gradients([x], [x], [1.0, 2.0]), "there are 1 ys and 2 grad_ys")
    failing(lambda: nbta.gradients(x, x, np.ones(2)), "grad_ys[0] is float64 (2,), and 'x:0' is")
    failing(lambda: nbta.gradients(x, x, np.ones(3, "float32")), "grad_ys[0] is float32 (3,)")


# Arrays.


def test_an_array_after_its_end(graph):
    ta = nbta.TensorArray("float64", 2, element_shape=(), name="states").write(0, 1.0)
    close = ta.close()
    with nbta.control_dependencies([close]):
        late = {
            "read": ta.read(0, name="late_read"),
            "write": ta.write(1, 2.0, name="late_write").flow,
            "gather": ta.gather([0], name="late_gather"),
            "grad": ta.grad("g").flow,
        }
    for name, fetch in late.items():
        words = f"{name} on states", "the array is closed; make a new one", repr(fetch.op.name)
        failing(lambda fetch=fetch: run(fetch), *words, fetch.op.type)
    assert run(ta.read(0)) == 1.0


EAGER_USES = {
    "write": lambda ta, x, i: ta.write(0, x),
    "write at": lambda ta, x, i: ta.write(i, 1.0),
    "read": lambda ta, x, i: ta.read(i),
    "unstack": lambda ta, x, i: ta.unstack(x),
    "body": lambda ta, x, i: nbta.while_loop(lambda j: j < 3, lambda j: (ta.read(j), j)[1], i),
}


@pytest.mark.parametrize("use", EAGER_USES)
def test_an_eager_array_does_not_take_tensors(use):
    eager = nbta.TensorArray("float64", 2, element_shape=(), clear_after_read=False)
    eager.unstack([1.0, 2.0])
    with nbta.Graph().as_default():
        text = "make a TensorArray that", "while the graph is being built"
        failing(lambda: EAGER_USES[use](eager, p(), p(dtype="int32", name="i")), *text)
        assert run(nbta.constant(eager.stack()) * 2.0).tolist() == [2.0, 4.0]


def test_an_eager_array_is_no_loop_variable():
    eager = nbta.TensorArray("float64", 2, name="outside")
    with nbta.Graph().as_default():
        text = "was made outside of the graph; make the TensorArray while the graph is being built"
        loop = lambda i, t: (i + 1, t)  # noqa: E731
        failing(lambda: nbta.while_loop(lambda i, t: i < 3, loop, (0, eager)), "while_loop:", text)
        scan = lambda c, x: (c, x)  # noqa: E731
        failing(lambda: nbta.scan(scan, eager, p((2,))), "scan:", "'outside_", text)
        failing(lambda: p() + eager, "is a TensorArray where a tensor is needed; use its stack()")
        failing(lambda: nbta.gradients(p(), [eager]), "xs[0] must be", "TensorArray of the graph")
        failing(lambda: run(eager), "run: fetches:", "is not a tensor of a graph")


# Order.


def test_a_circle_of_flows(graph):
    handle, flow = raw_ops.TensorArrayV3(2, "float64", name="states")
    first = raw_ops.TensorArrayWriteV3(handle, 0, 1.0, flow, name="first")
    second = raw_ops.TensorArrayWriteV3(handle, 1, 2.0, first, name="second")
    value = raw_ops.TensorArrayReadV3(handle, 1, second, "float64")
    first.op.replace_input(3, second)
    circle = "in a circle: second -> first -> second", "give one of them a flow or an input"
    for use in (
        lambda: run(second),
        lambda: run(nbta.constant(1.0) * 2.0),
        lambda: nbta.gradients(value, [p()]),
        lambda: nbta.check_flow(graph),
    ):
        assert failing(use, *circle).reason == "cycle"
    first.op.replace_input(3, flow)
    assert run(value) == 2.0


def test_a_circle_of_control_edges(graph):
    x = nbta.tanh(p(), name="one")
    y = nbta.sin(x, name="two")
    x.op.add_control_input(y.op)
    failing(lambda: run(y, {"x": 1.0}), "wait for each other in a circle: two -> one -> two")
    x.op.control_inputs.clear()
    x.op.add_control_input(x.op)
    failing(lambda: run(y, {"x": 1.0}), "in a circle: one -> one")


def test_a_circle_in_a_body(graph):
    def body(i, x):
        one = nbta.tanh(x, name="one")
        two = nbta.sin(one, name="two")
        one.op.add_control_input(two.op)
        return i + 1, two

    _, y = nbta.while_loop(lambda i, x: i < 3, body, (0, p()), name="loop")
    failing(lambda: run(y, {"x": 1.0}), "loop/body/two -> loop/body/one -> loop/body/two")


# Bodies.


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    "build",
    [
        lambda f: nbta.while_loop(lambda i: i < 3, f, p()),
        lambda f: nbta.while_loop(f, lambda i: i + 1.0, p()),
        lambda f: nbta.cond(p() > 0, lambda: f(0), lambda: 1.0),
        lambda f: nbta.scan(lambda c, x: (c, f(x)), 0.0, p((3,))),
        lambda f: nbta.map_fn(f, p((3,))),
        lambda f: nbta.while_loop(lambda i: i < 3, lambda i: nbta.cond(i > 0, f, lambda: i), p()),
    ],
)
def test_an_exception_while_a_body_is_traced(graph, build):
    raised = OwnError("mine")

    def f(*args):
        with nbta.name_scope("inner"), nbta.control_dependencies([nbta.constant(1.0)]):
            raise raised

    with pytest.raises(OwnError) as caught:
        build(f)
    assert caught.value is raised
    assert caught.value.args == ("mine",)
    assert current() is graph
    fresh = nbta.identity(nbta.constant([1.0, 2.0]), name="fresh")
    assert (fresh.op.name, fresh.op.control_inputs) == ("fresh", [])
    (grad,) = nbta.gradients(nbta.foldl(lambda a, x: a * x, fresh), [fresh])
    assert run(grad).tolist() == [2.0, 1.0]


def test_an_error_in_an_iteration(graph):
    ta = nbta.TensorArray("float64", 2, element_shape=(), name="states")
    put = lambda i, t: (i + 1, t.write(i, 1.0, name="put"))  # noqa: E731
    last = nbta.while_loop(lambda i, t: i < 5, put, (0, ta), name="fill")[1]
    error = failing(
        lambda: run(last),
        "write on states",
        "there is no slot 2",
        "(operation 'fill/body/put', TensorArrayWriteV3) (iteration 2 of the loop 'fill')",
    )
    assert error.reason == "write_out_of_range"


def test_an_error_in_an_iteration_of_a_loop_in_a_loop(graph):
    x = p((None,))

    def outer(i, total):
        rows = nbta.foldl(lambda a, j: a + x[j], nbta.arange(i + 1), 0.0, name="inner")
        return i + 1, total + rows

    last = nbta.while_loop(lambda i, t: i < 5, outer, (0, 0.0), name="outer")[1]
    failing(
        lambda: run(last, {x: [1.0, 2.0]}),
        "[2] is out of range for shape (2,)",
        "GetItem) (iteration 2 of the loop 'outer/body/inner') (iteration 2 of the loop 'outer')",
        error=nbta.OutOfRangeError,
    )


def test_an_error_in_a_branch_and_in_a_gradient(graph):
    x, y = p((None,)), p((None,), name="y")
    value = nbta.cond(x[0] > 0, lambda: nbta.sum(x * y), lambda: nbta.sum(x), name="pick")
    failing(
        lambda: run(value, {x: [1.0, 2.0], y: [1.0, 2.0, 3.0]}),
        "shapes (2,) and (3,) do not broadcast",
        "(operation 'pick/true_fn/Mul', Mul)",
    )
    assert run(value, {x: [-1.0, 2.0], y: [1.0, 2.0, 3.0]}) == 1.0


def test_a_tensor_of_a_body_outside(graph):
    kept = []

    def body(i):
        kept[:] = [i * 2.0]
        return i + 1.0

    nbta.while_loop(lambda i: i < 3, body, p(), name="loop")
    words = "'loop/body/Mul:0' belongs to the body of a loop or branch", "return"
    for use in (
        lambda: kept[0] + p(name="y"),
        lambda: run(kept[0], {"x": 1.0}),
        lambda: nbta.gradients(kept[0], [p(name="z")]),
        lambda: nbta.cond(p(dtype="bool", name="b"), lambda: kept[0], lambda: 1.0),
        lambda: nbta.TensorArray("float64", 1).write(0, kept[0]),
        lambda: run(p(), {kept[0]: 1.0}),
    ):
        failing(use, *words)
