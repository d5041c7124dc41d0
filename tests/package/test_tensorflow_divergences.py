"""One test for each row of docs/tensorflow.md: where nbta differs from TensorFlow."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import nbta
from nbta import raw_ops
from nbta.testing import check_grads

PAGE = Path(__file__).parents[2] / "docs" / "tensorflow.md"


def test_every_row_has_a_test_and_every_test_a_row():
    named = set(re.findall(r"`(test_\w+)`", PAGE.read_text()))
    here = {name for name in globals() if name.startswith("test_")}
    assert named == here - {"test_every_row_has_a_test_and_every_test_a_row"}


def array_of(*values, **options):
    return nbta.TensorArray("float64", size=len(values), **options).unstack(values)


# Arrays.


def test_a_gradient_array_has_a_gradient_array():
    handle, flow = raw_ops.TensorArrayV3(1, "float64", element_shape=())
    first, flow = raw_ops.TensorArrayGradV3(handle, flow, "gradients")
    second, flow = raw_ops.TensorArrayGradV3(first, flow, "gradients_1")
    assert second.name == f"{handle.name}@gradients@gradients_1"
    flow = raw_ops.TensorArrayWriteV3(second, 0, 2.0, flow)
    assert raw_ops.TensorArrayReadV3(second, 0, flow, "float64") == 2


def test_second_order_through_an_array():
    def f(x):
        ta = nbta.TensorArray("float64", size=2, clear_after_read=False)
        ta = ta.write(0, x).write(1, x * x)
        return ta.read(0) * ta.read(1) * nbta.sum(ta.stack())

    check_grads(f, (np.float64(0.7),), order=3)


def test_a_negative_length():
    with pytest.raises(nbta.InvalidArgumentError, match="length 1 is -1"):
        nbta.TensorArray("float64", size=2).split([1.0, 2.0], [3, -1])


def test_concat_of_a_gradient_array():
    ta = nbta.TensorArray("float64", size=2, infer_shape=False).write(0, [1.0]).write(1, [2.0, 3.0])
    gradient = ta.grad("gradients").write(1, [5.0, 6.0])
    np.testing.assert_array_equal(gradient.concat().value, [0, 5, 6])


def test_the_gradient_of_a_concat_before_growth():
    def f(x):
        options = {"clear_after_read": False, "infer_shape": False}
        ta = nbta.TensorArray("float64", dynamic_size=True, **options).split(x, [1, 2])
        early = nbta.sum(ta.concat().value ** 3)
        ta = ta.append(x[:1] * early)
        return early * nbta.sum(nbta.sin(ta.concat().value))

    check_grads(f, (np.array([0.4, 0.9, -0.6]),))


def test_eager_arrays_keep_what_is_read():
    ta = array_of(1.0, 2.0)
    assert not ta.clear_after_read
    for _ in range(2):
        assert (ta.read(0), ta.gather([1, 1]).tolist(), ta.stack().tolist()) == (1, [2, 2], [1, 2])
    with nbta.Graph().as_default():
        assert nbta.TensorArray("float64", size=1).clear_after_read
    ta = array_of(1.0, 2.0, clear_after_read=True)
    ta.stack()
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was cleared"):
        ta.stack()


def test_eager_slots_are_written_once():
    ta = array_of(1.0, 2.0)
    for write in (lambda: ta.write(0, 3.0), lambda: ta.unstack([1.0, 2.0])):
        with pytest.raises(
            nbta.InvalidArgumentError, match=r"once; .* a new array, .* NumPy array"
        ):
            write()
    assert ta.stack().tolist() == [1, 2]


def test_looking_at_an_eager_array():
    ta = array_of(1.0, 2.0)
    assert (ta[-1], len(ta), list(ta), np.asarray(ta).tolist()) == (2, 2, [1, 2], [1, 2])


def test_a_gradient_array_that_keeps_what_is_read():
    gradient = array_of(1.0).grad("gradients", clear_after_read=False).write(0, 2.0)
    assert (gradient.read(0), gradient.read(0)) == (2, 2)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_half_precision_sums_are_rounded_once(dtype):
    one, small = np.ones((), dtype), np.array(2.0**-12, dtype)
    gradient = nbta.TensorArray(dtype, size=1).write(0, one).grad("gradients")
    for value in [one, *[small] * 64]:
        gradient = gradient.write(0, value)
    assert float(gradient.read(0)) == 1 + 64 * 2.0**-12


def test_the_same_bits_each_time():
    rng = np.random.default_rng(0)
    with nbta.Graph().as_default() as g:
        x = nbta.placeholder("float64", ())
        ta = nbta.TensorArray("float64", size=1, clear_after_read=False).write(0, x)
        weights = rng.normal(size=50) * 10.0 ** rng.integers(-9, 9, 50)
        loss = nbta.add_n([ta.read(0) * w for w in weights])
        (grad,) = nbta.gradients(loss, [x])
    found = {nbta.Session(g).run(grad, {x: 1.0}).tobytes() for _ in range(5)}
    total = 0.0
    for weight in reversed(weights):  # backwards, one after another
        total += weight
    assert found == {np.float64(total).tobytes()}


def test_racing_operations_run_in_creation_order():
    with nbta.Graph().as_default() as g:
        ta = nbta.TensorArray("float64", size=1, element_shape=())
        written = ta.write(0, 3.0)
        value = ta.read(0)  # of the old name
    assert nbta.Session(g).run([value, written.flow])[0] == 3
    races = [finding for finding in nbta.check_flow(g) if hasattr(finding, "second")]
    assert [(race.first.type, race.second.type) for race in races] == [
        ("TensorArrayWriteV3", "TensorArrayReadV3")
    ]


def test_a_forgotten_assignment():
    def f(x):
        ta = nbta.TensorArray("float64", size=1, element_shape=())
        ta.write(0, x)
        return ta.stack()

    np.testing.assert_array_equal(f(2.0), [2])  # outside of graphs all names share the storage
    np.testing.assert_array_equal(nbta.function(f)(2.0), [2])
    with pytest.raises(nbta.InvalidArgumentError, match="is dropped"):
        nbta.function(f, convert=False)(2.0)


def test_a_write_after_a_read_of_zeros():
    ta = nbta.TensorArray("float64", size=3, element_shape=()).write(0, 1.0)
    np.testing.assert_array_equal(np.asarray(ta), [1, 0, 0])
    assert ta[1] == 0
    np.testing.assert_array_equal(ta.write(1, 2.0).stack(), [1, 2, 0])
    with pytest.raises(nbta.InvalidArgumentError, match="slot 2 was read") as caught:
        ta.write(2, 3.0)
    assert caught.value.reason == "already_read"
    with nbta.Graph().as_default() as g:
        ta = nbta.TensorArray("float64", size=1, element_shape=())
        with nbta.control_dependencies([ta.stack()]):
            written = ta.write(0, 1.0)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was read"):
        nbta.Session(g).run(written.flow)


def test_pieces_of_several_lengths():
    with nbta.Graph().as_default():
        ta = nbta.TensorArray("float64", size=2).split(np.ones((3, 2)), [1, 2])
        assert ta.read(0).shape == ta.element_shape == (None, 2)


def test_a_handle_of_strings():
    with nbta.Graph().as_default(), pytest.raises(nbta.InvalidArgumentError) as caught:
        raw_ops.TensorArrayConcatV2(["a", "b"], 0.1, "int32", (1,))
    assert caught.value.reason == "handle"
    with pytest.raises(nbta.InvalidArgumentError, match="give what TensorArrayV3 returned"):
        raw_ops.TensorArrayConcatV2(["a", "b"], 0.1, "int32", (1,))


def test_fetching_handles_and_arrays():
    with nbta.Graph().as_default() as g:
        ta = array_of(1.0, 2.0)
    handle, array = nbta.Session(g).run((ta.handle, ta))
    assert handle.container == "_tensor_arrays"
    assert handle == array.handle
    np.testing.assert_array_equal(array.stack(), [1, 2])


def test_the_dtype_of_a_handle():
    with nbta.Graph().as_default():
        handle, flow = raw_ops.TensorArrayV3(1, "float64")
        assert (handle.dtype, handle.shape, flow.dtype) == (np.int64, (), np.float32)
    handle, _ = raw_ops.TensorArrayV3(1, "float64", tensor_array_name="states")
    assert isinstance(handle, raw_ops.ArrayHandle)
    container, name = handle
    assert (container, name) == ("_tensor_arrays", handle.array.handle.name)


def test_strings_are_stored():
    for dtype, values in [("S3", [b"ab", b"c"]), ("M8[D]", ["2020-01-01", "2021-02-03"])]:
        values = np.array(values, dtype)
        ta = nbta.TensorArray(dtype, size=2).unstack(values)
        with pytest.raises(nbta.UnimplementedError):
            ta.grad("gradients")
        np.testing.assert_array_equal(ta.stack(), values)


# Errors.


def raised(operation, element_shape=(), size=2):
    """The class of an error, outside of graphs and in one, which is the same."""
    found = []
    for run in (lambda f: f(), in_graph):
        with pytest.raises(nbta.NbtaError) as caught:
            run(lambda: operation(*raw_ops.TensorArrayV3(size, "float64", element_shape)))
        found.append(type(caught.value))
    assert found[0] is found[1]
    return found[0]


def in_graph(build):
    with nbta.Graph().as_default() as g:
        fetch = build()
    return nbta.Session(g).run(fetch)


def is_invalid(operation, **options):
    return raised(operation, **options) is nbta.InvalidArgumentError


def test_errors_of_slots():
    assert issubclass(nbta.InvalidArgumentError, ValueError)
    for slot in (-1, 2):
        assert is_invalid(lambda h, f, k=slot: raw_ops.TensorArrayReadV3(h, k, f, "float64"))
        assert is_invalid(lambda h, f, k=slot: raw_ops.TensorArrayWriteV3(h, k, 1.0, f))
    read = lambda h, f: raw_ops.TensorArrayReadV3(h, 0, f, "float64")  # noqa: E731
    assert is_invalid(read, element_shape=None)


def test_errors_of_shapes():
    assert is_invalid(lambda h, f: raw_ops.TensorArrayWriteV3(h, 0, [1.0], f))
    assert is_invalid(lambda h, f: raw_ops.TensorArrayReadV3(h, [0], f, "float64"))
    assert is_invalid(lambda h, f: raw_ops.TensorArrayGatherV3(h, [[0]], f, "float64"))
    assert is_invalid(lambda h, f: raw_ops.TensorArrayScatterV3(h, [0, 1], [1.0, 2.0, 3.0], f))


def test_errors_of_types():
    assert is_invalid(lambda h, f: raw_ops.TensorArrayReadV3(h, 0.5, f, "float64"))
    assert is_invalid(lambda h, f: raw_ops.TensorArrayReadV3(h, 0, np.int32(1), "float64"))
    assert is_invalid(lambda h, f: raw_ops.TensorArrayGradV3(h, f, 5))
    assert is_invalid(lambda h, f: raw_ops.TensorArrayReadV3(3, 0, f, "float64"))
    assert is_invalid(lambda h, f: raw_ops.TensorArrayV3(1, "nonsense"))


def test_errors_of_sizes():
    assert is_invalid(raw_ops.TensorArraySizeV3, size=-1)
    assert raised(raw_ops.TensorArraySizeV3, (1000,), 2**31 - 1) is nbta.ResourceExhaustedError
    assert issubclass(nbta.ResourceExhaustedError, MemoryError)


def test_errors_of_closed_arrays():
    ta = array_of(1.0)
    ta.close()
    for operation in (ta.size, ta.stack, lambda: ta.read(0)):
        with pytest.raises(nbta.InvalidArgumentError, match="is closed"):
            operation()


def test_grad_outside_of_graphs():
    assert array_of(1.0).grad("gradients").stack().tolist() == [0.0]


def test_a_gradient_array_of_strings():
    assert issubclass(nbta.UnimplementedError, NotImplementedError)
    for run in (lambda f: f(), in_graph):
        with pytest.raises(nbta.UnimplementedError):
            run(lambda: raw_ops.TensorArrayGradV3(*raw_ops.TensorArrayV3(1, "S3"), "g").grad_handle)


def test_errors_of_compiled_code():
    @njit
    def read(ta, index):
        return ta.read(index)

    ta = array_of(1.0, element_shape=())
    with pytest.raises(TypingError, match="read: index must be an integer, not float64"):
        read(ta, 0.5)
    with pytest.raises(nbta.InvalidArgumentError, match="no slot 5"):
        read(ta, 5)


# Gradients.


def test_any_name_for_gradients():
    with nbta.Graph().as_default() as g:
        x = nbta.placeholder("float64", ())
        value = nbta.TensorArray("float64", size=1).write(0, x).read(0)
        (grad,) = nbta.gradients(value**2, [x], name="backprop")
    lookups = [op for op in g.operations if op.type == "TensorArrayGradV3"]
    assert {op.attrs["source"] for op in lookups} == {"backprop"}
    assert nbta.Session(g).run(grad, {x: 3.0}) == 6


def test_a_scope_named_gradients():
    for scope in ("gradients_of_loss", "gradients", "loss"):
        with nbta.Graph().as_default() as g:
            x = nbta.placeholder("float64", ())
            with nbta.name_scope("model"):
                ta = nbta.TensorArray("float64", size=1, element_shape=()).write(0, x)
            with nbta.name_scope(scope):
                loss = ta.read(0) ** 2
            (slope,) = nbta.gradients(loss, [x])
        lookups = [op for op in g.operations if op.type == "TensorArrayGradV3"]
        assert len({op.attrs["source"] for op in lookups}) == 1
        for compiled in (False, True):
            assert nbta.Session(g).run(slope, {x: 3.0}, compiled) == 6


def test_two_gradients_in_one_scope():
    with nbta.Graph().as_default() as g:
        x = nbta.placeholder("float64", ())
        loss = nbta.TensorArray("float64", size=1, element_shape=()).write(0, x).read(0) ** 2
        slopes = [nbta.gradients(loss, [x], name=f"gradients/{name}")[0] for name in "ab"]
    lookups = [op for op in g.operations if op.type == "TensorArrayGradV3"]
    assert {op.attrs["source"] for op in lookups} == {"gradients/a", "gradients/b"}
    assert nbta.Session(g).run(slopes, {x: 3.0}) == [6, 6]


def test_a_lookup_by_hand_before_gradients():
    with nbta.Graph().as_default() as g:
        x = nbta.placeholder("float64", ())
        ta = nbta.TensorArray("float64", size=1, element_shape=()).write(0, x)
        mine = ta.grad("gradients").write(0, 5.0)
        (slope,) = nbta.gradients(ta.read(0) ** 2, [x])
        results = [slope, mine.read(0)]
    assert nbta.Session(g).run(results, {x: 3.0}) == [6, 5]


def test_an_array_from_outside_of_a_function():
    outside = nbta.TensorArray("float64", size=2)

    def f(x, ta):
        return nbta.sum(ta.unstack(x).gather([1]))

    x = np.array([3.0, 4.0])
    with pytest.raises(nbta.InvalidArgumentError, match="make a TensorArray") as caught:
        nbta.grad(lambda x: f(x, outside))(x)
    assert caught.value.reason == "symbolic"
    inside = nbta.grad(lambda x: f(x, nbta.TensorArray("float64", size=2)))
    np.testing.assert_array_equal(inside(x), [0, 1])
    assert f(x, outside) == 4


def test_gradients_of_an_array():
    with nbta.Graph().as_default() as g:
        ta = array_of(1.0, 2.0, 3.0)
        loss = nbta.sum(ta.stack() ** 2)
        (grad,) = nbta.gradients(loss, [ta])
        rows = grad.stack()
    np.testing.assert_array_equal(nbta.Session(g).run(rows), [2, 4, 6])


def test_a_read_after_a_write_by_a_control_edge():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        ta = nbta.TensorArray("float64", size=1, element_shape=())
        written = ta.write(0, x)
        with nbta.control_dependencies([written.flow]):
            value = ta.read(0)
        with pytest.raises(nbta.InvalidArgumentError, match="no gradient passes"):
            nbta.gradients(value, [x])


def test_an_older_name_in_a_loop():
    def f(x):
        old = nbta.TensorArray("float64", size=3, clear_after_read=False).write(0, x)

        def body(i, ta, y):
            return i + 1, ta.write(i + 1, y * y), y * old.read(i)

        return nbta.while_loop(lambda i, ta, y: i < 2, body, (0, old, x))[2]

    assert nbta.value_and_grad(f)(2.0) == (16.0, 32.0)  # x x x**2
    check_grads(f, (np.float64(0.7),))


def test_equal_values_share_the_gradient():
    assert nbta.grad(nbta.maximum, argnums=(0, 1))(2.0, 2.0) == (0.5, 0.5)


def test_unconnected():
    with nbta.Graph().as_default() as g:
        x, y = nbta.placeholder("float64", (2,)), nbta.placeholder("float64", ())
        assert nbta.gradients(y, [x]) == [None]
        zeros = nbta.gradients(y, [x], unconnected="zero")
    np.testing.assert_array_equal(nbta.Session(g).run(zeros, {x: [1.0, 2.0]})[0], [0, 0])


def test_integers_are_refused():
    with nbta.Graph().as_default():
        i, x = nbta.placeholder("int32", ()), nbta.placeholder("float64", ())
        for ys, xs in [(i, x), (x, i)]:
            with pytest.raises(nbta.InvalidArgumentError, match="only floats and complex"):
                nbta.gradients(ys, [xs])


# Graphs.


def test_dtypes_meet_as_in_numpy():
    with nbta.Graph().as_default():
        i, x = nbta.placeholder("int32", ()), nbta.placeholder("float32", ())
        assert (i + x).dtype == np.float64
        assert (x * 2.5).dtype == np.float32


def test_integers_are_wide():
    with nbta.Graph().as_default():
        x = nbta.placeholder("int32", (3,))
        for tensor in (nbta.shape(x), nbta.size(x), nbta.sum(x)):
            assert tensor.dtype == np.int64


def test_negative_indices():
    np.testing.assert_array_equal(nbta.take(np.arange(3), [-1, 0]), [2, 0])


def test_dimensions_that_change():
    def grow(shape_invariants):
        x = nbta.constant([1.0])
        return nbta.while_loop(
            lambda x: nbta.size(x) < 4, lambda x: nbta.concatenate([x, x]), [x],
            shape_invariants=shape_invariants,
        )  # fmt: skip

    with nbta.Graph().as_default() as g:
        (x,) = grow(None)
        with pytest.raises(nbta.InvalidArgumentError, match="widen shape_invariants"):
            grow([(1,)])
    assert x.shape == (None,)
    np.testing.assert_array_equal(nbta.Session(g).run(x), [1, 1, 1, 1])


def test_a_signature_in_a_graph():
    seen = []

    def f(x):
        seen.append(x.spec.shape)
        return x + x

    doubled = nbta.function(f, input_signature=[nbta.Spec("int64", (None,))])
    np.testing.assert_array_equal(doubled(np.array([1])), [2])
    with nbta.Graph().as_default() as g:
        found = doubled(nbta.constant(np.array([1])))
    assert seen[0] != (1,)
    assert seen[1] == (1,)
    assert [op.type for op in g.operations] == ["Constant", "Add"]
    np.testing.assert_array_equal(nbta.Session(g).run(found), [2])


def test_a_loop_may_exchange_arrays():
    def body(i, ta):
        return i + 1, nbta.TensorArray("float64", size=1).write(0, nbta.cast(i, "float64"))

    with nbta.Graph().as_default() as g:
        _, ta = nbta.while_loop(lambda i, ta: i < 3, body, (0, array_of(7.0)))
        value = ta.read(0)
    assert nbta.Session(g).run(value) == 2


def test_one_loop_variable():
    with nbta.Graph().as_default() as g:
        (x,) = nbta.while_loop(lambda x: x < 9, lambda x: x * 2, [nbta.constant(1.0)])
    assert nbta.Session(g).run(x) == 16


def test_without_a_graph_operations_run_at_once():
    assert nbta.add(1, 2) == 3


def test_names_of_operations():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (2, 2))
        names = [(x + x).op.name, (x @ x).op.name, x[0].op.name]
    assert names == ["Add", "MatMul", "GetItem"]


def test_unknown_dimensions():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (None, 3))
        assert x.shape == (None, 3)
        assert None in x.shape
        assert None not in nbta.zeros((2, 3)).shape
        assert repr(x.shape) == "(?, 3)"
        assert f"{x.shape}" == "(?, 3)"
