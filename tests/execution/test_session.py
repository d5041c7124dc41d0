"""Sessions: what is fetched, what is fed, and what one run leaves to the next."""

import collections
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import nbta
from nbta.execution import reference
from nbta.symbolic import SymbolicTensorArray

Pair = collections.namedtuple("Pair", "first second")


class Example:
    """A graph with a little of everything."""

    def __init__(self):
        with nbta.Graph().as_default() as self.graph:
            self.x = nbta.placeholder("float64", (None,), name="x")
            self.y = nbta.multiply(self.x, 2.0, name="y")
            self.z = nbta.add(self.y, 1.0, name="z")
            self.array = nbta.TensorArray("float64", 2, element_shape=(), name="states")
            self.array = self.array.write(0, nbta.sum(self.x), name="put")
        self.session = nbta.Session(self.graph)

    def run(self, fetches, feeds=None, **options):
        return self.session.run(
            fetches, {self.x: [1.0, 2.0]} if feeds is None else feeds, **options
        )


@pytest.fixture
def example():
    return Example()


# Fetches.


def test_fetches_keep_their_structure(example):
    fetches = {
        "b": [example.x, (example.y, {"z": example.z})],
        "a": Pair(example.y, None),
        "e": (),
    }
    found = example.run(fetches)
    assert list(found) == ["b", "a", "e"]
    assert type(found["b"][1]) is tuple
    assert type(found["a"]) is Pair
    assert found["a"].second is None
    assert found["e"] == ()
    assert found["b"][0].tolist() == [1.0, 2.0]
    assert found["b"][1][1]["z"].tolist() == [3.0, 5.0]
    assert found["a"].first.tolist() == [2.0, 4.0]


def test_fetches_by_name(example):
    found = example.run(["y:0", "x:0", "y", example.y.op, "states"])
    assert [np.asarray(v).tolist() for v in found[:2]] == [[2.0, 4.0], [1.0, 2.0]]
    assert found[2:] == [None, None, None]


def test_an_operation_runs_for_its_effect(example):
    with example.graph.as_default():
        size = example.array.size(name="size")
        done = example.array.close(name="done")
        with nbta.control_dependencies([size]):
            late = nbta.identity(size)
    assert example.run([done, late]) == [None, 2]


def test_a_tensor_array_is_fetched_as_an_array_of_now(example):
    array = example.run(example.array)
    assert type(array) is nbta.TensorArray
    assert array._states().tolist() == [1, 0]
    assert array.read(0) == 3.0
    assert array.write(1, 5.0).read(1) == 5.0
    both, again = example.run([example.array, example.array.identity()])
    assert both.handle == again.handle
    assert example.run(example.array.handle).name.startswith("states_")
    flow = example.run(example.array.flow)
    assert (flow, flow.dtype) == (0.0, np.float32)


def test_scalars_come_as_numpy_scalars(example):
    with example.graph.as_default():
        total = nbta.sum(example.x)
        rows = nbta.shape(example.x)
    found = example.run([total, total > 0, rows])
    assert [type(value) for value in found] == [np.float64, np.bool, np.ndarray]


def test_a_tensor_is_fetched_twice(example):
    first, second = example.run([example.y, example.y])
    assert first.tolist() == second.tolist() == [2.0, 4.0]


def test_constants_are_fetched(example):
    with example.graph.as_default():
        scalar, vector = nbta.constant(3), nbta.constant([1.0, 2.0])
    found = example.run([scalar, vector])
    assert found[0] == 3
    assert found[1].tolist() == [1.0, 2.0]
    assert nbta.Session(example.graph).run(vector).tolist() == [1.0, 2.0]


# Feeds.


def test_any_tensor_is_fed(example):
    assert example.run(example.z, {example.y: [5.0]}).tolist() == [6.0]
    assert example.run(example.z, {example.z: [7.0]}).tolist() == [7.0]
    with example.graph.as_default():
        constant = nbta.constant(3.0, name="c")
        double = constant * 2.0
    assert example.run(double, {constant: 10.0}) == 20.0
    assert example.run(double) == 6.0


@pytest.mark.parametrize("key", ["x", "x:0"])
def test_feeds_by_name(example, key):
    assert example.run(example.y, {key: [3.0]}).tolist() == [6.0]


def test_what_is_fed_is_not_computed(example):
    with example.graph.as_default():
        wrong = nbta.TensorArray("float64", 1, element_shape=()).read(5, name="wrong")
        after = wrong + 1.0
    assert example.run(after, {wrong: 2.0}) == 3.0
    with pytest.raises(nbta.InvalidArgumentError, match="'wrong'"):
        example.run(after)


def test_a_flow_is_fed_in_place_of_what_it_comes_after(example):
    with example.graph.as_default():
        ta = nbta.TensorArray("float64", 1, element_shape=())
        written = ta.write(0, 5.0)
        value = written.read(0)
    assert example.run(value) == 5.0
    assert example.run(value, {written.flow: 0.0}) == 0.0


@pytest.mark.parametrize(
    ("dtype", "value", "taken"),
    [
        ("float64", [1, 2], [1.0, 2.0]),
        ("float64", np.array([1, 2], np.int32), [1.0, 2.0]),
        ("float64", np.array([1, 2], np.float32), [1.0, 2.0]),
        ("float64", np.array([1, 2], ">f8"), [1.0, 2.0]),
        ("float64", np.arange(6.0)[::3], [0.0, 3.0]),
        ("float64", (np.float32(1), 2), [1.0, 2.0]),
        ("complex128", [1.0, 2j], [1, 2j]),
        ("int64", np.array([True, False]), [1, 0]),
        ("int32", [1, 2], [1, 2]),
        ("float32", [0.1, 2], [np.float32(0.1), 2]),
        ("bool", [True, False], [True, False]),
        ("bfloat16", np.array([1, 2], ml_dtypes.bfloat16), [1, 2]),
        ("bfloat16", np.array([1.0, 2.0]), [1, 2]),
        ("float32", np.array([0.1, np.inf]), [np.float32(0.1), np.inf]),
        ("float16", np.array([0.1, np.nan], np.float32), [np.float16(0.1), np.nan]),
        ("float64", np.array([1, 2], ml_dtypes.bfloat16), [1.0, 2.0]),
        ("complex64", np.array([0.1, 2.0]), [np.complex64(0.1), 2]),
        ("int32", np.array([1, 2]), [1, 2]),
        ("float32", np.array([1, 2]), [1.0, 2.0]),
        ("float64", [np.nan, np.inf], [np.nan, np.inf]),
    ],
)
def test_dtypes_that_are_fed(dtype, value, taken):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder(dtype, (2,), name="x")
    found = nbta.Session(graph).run(x, {x: value})
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found, np.asarray(taken, dtype))


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("float32", np.array([1e300, 0])),
        ("float16", np.array([1e5, 0], np.float32)),
        ("complex64", np.array([1e300j, 0])),
        ("float64", np.ones(2, np.complex64)),
        ("float32", np.array([2**24 + 1, 0])),
        ("int64", [1.5, 2.0]),
        ("int64", np.ones(2)),
        ("int32", np.array([1, 2**31])),
        ("uint64", np.array([1, 2])),
        ("int8", [1, 300]),
        ("bool", [0, 1]),
        ("float64", [1j, 0]),
        ("float32", [1e300, 0]),
        ("float64", ["a", "b"]),
        ("int64", [True, False]),
    ],
)
def test_dtypes_that_are_not_fed(dtype, value):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder(dtype, (2,), name="x")
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        nbta.Session(graph).run(x, {x: value})
    assert caught.value.reason == "feed_dtype"
    assert f"run: feed_dict: 'x:0': it takes {dtype}, and the value is" in str(caught.value)


@pytest.mark.parametrize(
    ("pattern", "shape", "fits"),
    [
        (None, (2, 3), True),
        (None, (), True),
        ((), (), True),
        ((), (1,), False),
        ((None,), (0,), True),
        ((None,), (), False),
        ((2, None), (2, 7), True),
        ((2, None), (3, 7), False),
        ((2,), (2, 1), False),
        ((1,), (5,), False),
    ],
)
def test_shapes_that_are_fed(pattern, shape, fits):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", pattern, name="x")
    session = nbta.Session(graph)
    if fits:
        assert np.shape(session.run(x, {x: np.ones(shape)})) == shape
        return
    with pytest.raises(nbta.InvalidArgumentError, match="'x:0' takes shape") as caught:
        session.run(x, {x: np.ones(shape)})
    assert f"the value has shape {shape}; reshape it" in str(caught.value)


# One run and the next.


def test_each_run_has_arrays_of_its_own(example):
    first, second = example.run(example.array), example.run(example.array, {example.x: [10.0]})
    assert first.handle != second.handle
    first.write(1, -1.0)
    assert second._states().tolist() == [1, 0]
    assert (first.read(0), second.read(0)) == (3.0, 10.0)


def test_gradient_arrays_are_of_one_run():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (), name="x")
        ta = nbta.TensorArray("float64", 1, element_shape=(), clear_after_read=False).write(0, x)
        (dx,) = nbta.gradients(ta.read(0) * ta.read(0), [x])
    session = nbta.Session(graph)
    assert [session.run(dx, {x: value}) for value in (1.0, 1.0, 3.0)] == [2.0, 2.0, 6.0]


def test_a_failed_run_leaves_all_as_it_was(example):
    with example.graph.as_default():
        wrong = example.array.write(7, 1.0, name="wrong").flow
        bad = nbta.reshape(example.x, (3,), name="bad")
    for _ in range(2):
        for fetch in (wrong, bad):
            with pytest.raises(nbta.InvalidArgumentError, match=repr(fetch.op.name)):
                example.run([example.y, fetch])
        assert example.run(example.y).tolist() == [2.0, 4.0]
        with pytest.raises(nbta.InvalidArgumentError, match="feed_dict"):
            example.run(example.y, {example.x: "a"})
        assert example.run(example.array).read(0) == 3.0
    with example.graph.as_default():
        more = example.y + 1.0
    assert example.run(more).tolist() == [3.0, 5.0]


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[::-1],
        lambda x: nbta.reshape(x, (2, 1)),
        lambda x: nbta.identity(x)[None],
        nbta.stop_gradient,
        lambda x: nbta.transpose(nbta.reshape(x, (1, 2))),
        lambda x: nbta.cond(x[0] > 0, lambda: x, lambda: -x),
        lambda x: nbta.while_loop(lambda i, x: i < 0, lambda i, x: (i + 1, x), (0, x))[1],
        lambda x: nbta.broadcast_to(x, (2, 2)),
    ],
)
def test_results_do_not_share_memory_with_feeds(view):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (2,), name="x")
        result = view(x)
    given = np.array([1.0, 2.0])
    found = nbta.Session(graph).run(result, {x: given})
    before = found.copy()
    given[:] = 7.0
    np.testing.assert_array_equal(found, before)
    assert not np.shares_memory(found, given)


def test_arrays_in_results_do_not_share_memory_with_feeds():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (2,), name="x")
        array = nbta.TensorArray("float64", 1).write(0, x)
    given = np.array([1.0, 2.0])
    array = nbta.Session(graph).run(array, {x: given})
    given[:] = 7.0
    assert array.read(0).tolist() == [1.0, 2.0]


def test_a_constant_is_not_changed_through_a_result(example):
    with example.graph.as_default():
        constant = nbta.constant([1.0, 2.0])
        plus = constant + 1.0
    found = example.run(constant)
    if found.flags.writeable:
        found[:] = 9.0
    assert example.run(plus).tolist() == [2.0, 3.0]


def test_the_graph_may_grow_between_runs(example):
    values = []
    last = example.x
    for _ in range(3):
        with example.graph.as_default():
            last = last * 2.0
            (grad,) = nbta.gradients(nbta.sum(last), [example.x])
        values.append(example.run([last, grad]))
    assert [value[0].tolist() for value in values] == [[2, 4], [4, 8], [8, 16]]
    assert [value[1].tolist() for value in values] == [[2, 2], [4, 4], [8, 8]]


def test_an_edge_may_change_between_runs(example):
    assert example.run(example.z).tolist() == [3.0, 5.0]
    example.z.op.replace_input(0, example.x)
    assert example.run(example.z).tolist() == [2.0, 3.0]


def test_a_body_may_grow_between_runs():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (), name="x")
        _, y = nbta.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, nbta.sin(y)), (0, x))
    session = nbta.Session(graph)
    before = session.run(y, {x: 0.5})
    (dx,) = nbta.gradients(y, [x])  # gives the loop tapes
    value, slope = session.run([y, dx], {x: 0.5})
    assert value == before
    expected = (session.run(y, {x: 0.5 + 1e-6}) - session.run(y, {x: 0.5 - 1e-6})) / 2e-6
    np.testing.assert_allclose(slope, expected, rtol=1e-8)


def test_a_session_runs_while_its_graph_is_being_built():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None,), name="x")
        array = nbta.TensorArray("float64", 3).unstack(x * 2.0)
        total = nbta.foldl(lambda a, b: a + b, array.stack())
        before = len(graph.operations)
        assert nbta.Session().run(total, {x: [1.0, 2.0, 3.0]}) == 12.0
        assert nbta.Session().run(array, {x: [1.0, 2.0, 3.0]}).read(2) == 6.0
        assert len(graph.operations) == before


def test_a_users_function_runs_at_once_while_a_graph_is_being_built():
    @nbta.custom_gradient
    def through_an_array(x):
        return nbta.TensorArray("float64", 2, dynamic_size=True).unstack(x).stack() + nbta.sum(x)

    with nbta.Graph().as_default():
        y = through_an_array(np.array([1.0, 2.0]))
        assert nbta.Session().run(y).tolist() == [4.0, 5.0]


def test_many_threads_run_one_session():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None,), name="x")
        _, states = nbta.scan(lambda c, v: (c * 0.5 + v, c * v), 0.0, x)
        loss = nbta.sum(states * states)
        (dx,) = nbta.gradients(loss, [x])
    session = nbta.Session(graph)
    inputs = [np.random.default_rng(i).normal(size=3 + i % 7) for i in range(40)]
    expected = [nbta.Session(graph).run([loss, dx], {x: value}) for value in inputs]

    def run(i):
        fetches = [loss, dx] if i % 2 else {"loss": loss, "dx": dx}
        found = session.run(fetches, {x: inputs[i % 40]})
        return found if i % 2 else [found["loss"], found["dx"]]

    with ThreadPoolExecutor(8) as pool:
        for i, found in enumerate(pool.map(run, range(160))):
            assert found[0] == expected[i % 40][0]
            np.testing.assert_array_equal(found[1], expected[i % 40][1])


# Arrays that operations one by one change where they are.


@pytest.fixture
def copies(monkeypatch):
    """For each change of an array, whether it was copied before."""
    found, is_ours = [], reference._is_ours

    def noted(arguments):
        found.append(not is_ours(arguments))
        return not found[-1]

    monkeypatch.setattr(reference, "_is_ours", noted)
    return found


def _filled(x):
    def step(i, a):
        return i + 1, nbta.set_item(a, i, nbta.sin(a[i - 1]) * x[i])

    _, a = nbta.while_loop(lambda i, _: i < x.shape[0], step, (1, nbta.zeros_like(x)))
    return nbta.sum(a)


def test_a_loop_changes_its_array_where_it_is(copies):
    x = np.linspace(0.5, 2.0, 40)
    nbta.function(_filled, compiled=False)(x)
    assert copies == [False] * 39
    copies.clear()
    nbta.value_and_grad(_filled, compiled=False)(x)
    assert sum(copies) <= 1
    assert len(copies) >= 39 * 3


def test_a_branch_in_nested_loops_changes_an_array_where_it_is(copies):
    def f(x):
        def row(i, a):
            def item(j, a):
                changed = nbta.cond(
                    x[j] > 1.0,
                    lambda: nbta.add_item(a, (i, j), x[i]),
                    lambda: nbta.set_item(a, (i, j), x[j]),
                )
                return j + 1, changed

            return i + 1, nbta.while_loop(lambda j, _: j < x.shape[0], item, (0, a))[1]

        a = nbta.while_loop(lambda i, _: i < 3, row, (0, nbta.zeros((3, x.shape[0]))))[1]
        return nbta.sum(a)

    x = np.array([0.5, 2.0, 1.5])
    assert nbta.function(f, compiled=False)(x) == 3 * 0.5 + 2 * x.sum()
    assert sum(copies) <= 1
    assert len(copies) == 9


def test_what_others_hold_is_not_changed():
    """A user's function keeps what it is given, and gives it back; so do the caller and a graph."""
    kept, ones = [], np.ones(3)

    @nbta.custom_gradient
    def keeping(x):
        kept.append(x)
        return x

    def f(x):
        def step(i, a, b, c):
            b = nbta.set_item(keeping(b), i, 5.0)
            return i + 1, nbta.set_item(a, i, 7.0), b, nbta.add_item(c, i, a[0])

        start = (0, x, nbta.zeros_like(x), ones)
        return nbta.while_loop(lambda i, *_: i < 3, step, start)[1:]

    x = np.array([1.0, 2.0, 3.0])
    function = nbta.function(f, compiled=False)
    for _ in range(2):
        kept.clear()
        a, b, c = function(x)
        assert (a.tolist(), b.tolist(), c.tolist()) == ([7.0] * 3, [5.0] * 3, [2.0, 8.0, 8.0])
        assert [y.tolist() for y in kept] == [[0.0, 0.0, 0.0], [5.0, 0.0, 0.0], [5.0, 5.0, 0.0]]
        assert x.tolist() == [1.0, 2.0, 3.0]
        assert ones.tolist() == [1.0, 1.0, 1.0]


def test_an_array_is_as_it_was_before_a_change_that_fails():
    def f(x):
        a = nbta.set_item(nbta.sin(x), 0, 1.0)
        return nbta.set_item(a, nbta.cast(nbta.sum(x), "int64"), 2.0)

    with pytest.raises(nbta.InvalidArgumentError, match=r"\[6\] is out of range for shape \(3,\)"):
        nbta.function(f, compiled=False)(np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_numbers_are_those_of_numpy_s_functions(dtype):
    """Scalars compute by themselves, with the same values, dtypes and infinities."""
    least, most = (np.iinfo if dtype[0] == "i" else np.finfo)(dtype).min, 7
    numbers = [least, -3, 0, 1, most] + [np.nan, np.inf, -0.0] * (dtype[0] == "f")
    operations = [nbta.add, nbta.subtract, nbta.multiply, nbta.less, nbta.less_equal, nbta.greater,
                  nbta.greater_equal, nbta.equal, nbta.not_equal]  # fmt: skip
    operations += [nbta.divide] * (dtype[0] == "f")
    run = nbta.function(lambda x, y: [*(f(x, y) for f in operations), -x], compiled=False)
    for x in np.array(numbers, dtype):
        for y in np.array(numbers, dtype):
            with np.errstate(all="ignore"):
                expected = [getattr(np, f.__name__)(x, y) for f in operations] + [np.negative(x)]
            found = run(x, y)
            assert [z.dtype for z in found] == [z.dtype for z in expected]
            assert [z.tobytes() for z in found] == [z.tobytes() for z in expected]


# Sessions themselves.


def test_a_session_is_a_context(example):
    with nbta.Session(example.graph) as session:
        assert session.run(example.y, {example.x: [1.0]}).tolist() == [2.0]


def test_each_way_to_run(example):
    assert example.run(example.y, compiled=True).tolist() == [2.0, 4.0]
    with pytest.raises(nbta.InvalidArgumentError, match="compiled must be 'auto', True or False"):
        example.run(example.y, compiled="yes")
    assert example.run(example.y, compiled=False).tolist() == [2.0, 4.0]


@pytest.mark.parametrize("graph", [None, 3, "x"])
def test_a_session_needs_a_graph(graph):
    with pytest.raises(nbta.InvalidArgumentError, match="Session: give a Graph, or make the"):
        nbta.Session(graph)


def test_names_of_one_array_share_what_runs():
    """Else each new one would be planned, and compiled, again."""
    with nbta.Graph().as_default() as graph:
        array = nbta.TensorArray("float64", 1).write(0, 2.0)
        other = SymbolicTensorArray.over(array.handle, array.flow, array._facts)
    session = nbta.Session(graph)
    runners = []
    for name in (array, other):
        assert session.run(name).read(0) == 2.0
        runners.append(session.last)
    assert runners[0] is runners[1]
