"""The rest of the eager array: names, flows, protocols, half precision, many arrays, threads."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from numba import njit

import nbta

HALVES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


def filled(dtype="float64", **options):
    options = {"clear_after_read": False, **options}
    return nbta.TensorArray(dtype, 3, **options).unstack(np.arange(6).reshape(3, 2).astype(dtype))


# Names.


def number_of(array):
    return int(array.handle.name.partition("@")[0].rpartition("_")[2])


def test_arrays_of_one_name_differ():
    first, second = (nbta.TensorArray("float64", tensor_array_name="foo") for _ in range(2))
    assert first.handle.container == "_tensor_arrays"
    assert first.handle.name == f"foo_{number_of(first)}"
    assert str(first.handle) == "_tensor_arrays" + first.handle.name
    assert number_of(second) == number_of(first) + 1
    assert first.handle != second.handle


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "TensorArray"),
        ({"name": "operation"}, "operation"),
        ({"name": "operation", "tensor_array_name": "array"}, "array"),
        ({"tensor_array_name": "a b/ü"}, "a b/ü"),
    ],
)
def test_where_a_name_comes_from(options, name):
    assert nbta.TensorArray("int8", **options).handle.name.rpartition("_")[0] == name


def test_gradient_arrays_are_named_after_their_source():
    array = filled()
    first = array.grad("gradients")
    assert first.handle.container == "_tensor_array_grads"
    assert first.handle.name == f"{array.handle.name}@gradients"
    assert first.grad("gradients_1").handle.name == f"{first.handle.name}@gradients_1"
    again = array.grad("gradients")
    assert again.handle == first.handle
    again.write(0, np.ones(2))
    assert first.read(0).tolist() == [1, 1]
    assert array.grad("gradients_1").handle != first.handle
    assert array.grad("Gradients").handle != first.handle


# Flows.


def test_a_flow_says_whose_it_is():
    array = filled()
    assert array.flow.handle == array.handle
    assert float(array.flow) == 0.0
    assert (array.flow.dtype, array.flow.shape) == ("float32", ())
    assert repr(array.flow) == f"<flow of {array.handle.name}>"
    assert array.grad("gradients", flow=array.flow).is_gradient
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        array.grad("gradients", flow=filled().flow)
    assert caught.value.reason == "flow"


def test_identity_shares_the_storage():
    array = nbta.TensorArray("int64", dynamic_size=True)
    other = array.identity()
    assert other is not array
    assert other.handle == array.handle
    other.append(5)
    array.append(6)
    assert (len(array), len(other)) == (2, 2)
    assert array.identity().stack().tolist() == [5, 6]
    array.close()
    assert other.closed


def by_file(array, path):
    nbta.save(path, array)
    return nbta.load(path)


@njit(cache=True)
def compiled_identity(array):
    return array.identity()


@pytest.mark.parametrize(
    "other",
    [
        lambda array, path: array.identity(),
        lambda array, path: array.grad("gradients").write(0, [0.0, 1.0]).write(1, [2.0, 3.0]),
        lambda array, path: array.lanes(1).take(0).append([0.0, 1.0]).append([2.0, 3.0]),
        lambda array, path: compiled_identity(array),
        lambda array, path: pickle.loads(pickle.dumps(array)),
        by_file,
    ],
)
def test_what_arrays_make_of_themselves_is_eager_while_a_graph_is_built(other, tmp_path):
    array = filled(dynamic_size=True)
    with nbta.Graph().as_default() as graph:
        found = other(array, tmp_path / "array.npz")
        assert type(found) is type(array)
        assert found.gather([0, 1]).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert graph.operations == []


# Small things.


def test_append_counts_on():
    array = nbta.TensorArray("float64", 2, dynamic_size=True, element_shape=())
    assert array.append(1.0) is array
    assert array.append(2).append(np.float64(3)).size() == 5
    assert array.stack().tolist() == [0, 0, 1, 2, 3]


def test_size_is_an_int32():
    array = filled()
    assert (array.size(), type(array.size()), len(array)) == (3, np.int32, 3)
    assert type(len(array)) is int


def test_repr_counts_slots():
    array = nbta.TensorArray("float32", 4, clear_after_read=True, tensor_array_name="counted")
    array.write(0, [1, 2])
    array.write(2, [3, 4]).read(2)
    assert repr(array) == (
        f"<nbta.TensorArray {array.handle.name!r} dtype=float32 size=4 element_shape=(2,) "
        f"written=2 read=1 cleared=1>"
    )
    array.close()
    assert repr(array) == f"<nbta.TensorArray {array.handle.name!r} closed>"


def test_properties_say_how_it_was_made():
    array = nbta.TensorArray("int8", 2, True, False, element_shape=(None, 3), infer_shape=False)
    facts = array.dynamic_size, array.clear_after_read, array.infer_shape, array.is_gradient
    assert facts == (True, False, False, False)
    assert (array.dtype, array.element_shape) == (np.int8, (None, 3))
    gradient = array.grad("gradients")
    facts = gradient.dynamic_size, gradient.clear_after_read, gradient.is_gradient
    assert facts == (False, True, True)
    assert not array.dynamic_size


# Values that come out.


def test_values_are_read_only():
    array = filled()
    for value in (array.read(0), array.stack(), array.gather([2, 0]), array.concat().value):
        assert not value.flags.writeable
        before = value.copy()
        with pytest.raises(ValueError):  # noqa: PT011 - its words are NumPy's
            value[...] = 0
        np.testing.assert_array_equal(value, before)


def test_stack_copies_nothing():
    array = filled()
    stacked = array.stack()
    for value in (array.stack(), array.read(1), array.gather([1, 2]), array.concat().value):
        assert np.shares_memory(value, stacked)
    assert not np.shares_memory(array.gather([2, 0]), stacked)


def test_scalars_come_out_as_scalars():
    array = nbta.TensorArray("float32", 1).write(0, 0.5)
    assert type(array.read(0)) is np.float32


# Protocols.


def test_numpy_takes_an_array():
    array = filled()
    value = np.asarray(array)
    assert np.shares_memory(value, array.stack())
    assert value.tolist() == [[0, 1], [2, 3], [4, 5]]
    assert np.asarray(array, dtype="float32").dtype == np.float32
    assert not np.shares_memory(np.array(array), array.stack())
    copied = np.array(array, copy=True)
    copied[0] = 7
    assert array.read(0).tolist() == [0, 1]
    assert np.shares_memory(np.asarray(array, copy=False), array.stack())
    with pytest.raises(ValueError, match="needs a copy"):
        np.asarray(array, dtype="int8", copy=False)
    assert (np.ones(2) + array).shape == (3, 2)


def test_dlpack_hands_out_the_stack():
    array = filled()
    assert array.__dlpack_device__() == (1, 0)
    value = np.from_dlpack(array)
    np.testing.assert_array_equal(value, array.stack())
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":  # which asks for copies
        value = np.from_dlpack(array, copy=True)
        np.testing.assert_array_equal(value, array.stack())
        assert not np.shares_memory(value, array.stack())
    assert array.__dlpack__() is not None  # for consumers that know no read-only data


class Exporter:
    """Another library's tensor."""

    def __init__(self, value):
        self._value = value

    def __dlpack__(self, **options):
        return self._value.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._value.__dlpack_device__()


def test_values_come_in_by_dlpack():
    array = nbta.TensorArray("float64", 1).write(0, Exporter(np.arange(3.0)))
    assert array.read(0).tolist() == [0, 1, 2]
    with pytest.raises(nbta.InvalidArgumentError, match="holds float64, and the value is float32"):
        nbta.TensorArray("float64", 1).write(0, Exporter(np.ones(3, np.float32)))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_copies_go_their_own_way(duplicate):
    array = nbta.TensorArray("float64", 2, dynamic_size=True, clear_after_read=False)
    array.write(0, [1.0, 2.0]).read(0)
    other = duplicate(array)
    assert other._states().tolist() == array._states().tolist() == [3, 0]
    assert (other.dynamic_size, other.element_shape) == (True, (2,))
    other.append([5.0, 6.0])
    assert (len(array), len(other)) == (2, 3)
    assert other.stack().tolist() == [[1, 2], [0, 0], [5, 6]]
    assert array.read(0).tolist() == [1, 2]
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was read"):
        other.write(0, [1.0, 2.0])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_sums_are_copied(duplicate):
    gradient = filled().grad("gradients").write(1, np.ones(2))
    other = duplicate(gradient)
    other.write(1, np.ones(2))
    assert other.stack().tolist() == [[0, 0], [2, 2], [0, 0]]
    assert gradient.stack().tolist() == [[0, 0], [1, 1], [0, 0]]


# Half precision.


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_precision_rounds_a_sum_once(dtype):
    random = np.random.default_rng(5)
    terms = (random.normal(size=(40, 500)) * 10 ** random.uniform(-3, 3, 500)).astype(dtype)
    gradient = nbta.TensorArray(dtype, 1, element_shape=(500,)).grad("gradients")
    total, narrow = np.zeros(500, np.float32), np.zeros(500, dtype)
    for term in terms:
        gradient.accumulate(0, term)
        total += term.astype(np.float32)
        narrow = narrow + term
    got = gradient.read(0)
    assert got.dtype == dtype
    assert got.tobytes() == total.astype(dtype).tobytes()
    assert got.tobytes() != narrow.tobytes()  # rounding each time gives something else


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_precision_keeps_every_bit_pattern(dtype):
    bits = np.arange(65536, dtype=np.uint16)
    values = bits.view(dtype)
    gradient = nbta.TensorArray(dtype, 1, element_shape=(65536,)).grad("gradients")
    got = gradient.write(0, values).read(0).view(np.uint16)
    numbers = ~np.isnan(values.astype(np.float32))
    np.testing.assert_array_equal(got[numbers], bits[numbers])
    assert np.isnan(got.view(dtype)[~numbers].astype(np.float32)).all()
    forward = nbta.TensorArray(dtype, 1).write(0, values).read(0)
    np.testing.assert_array_equal(forward.view(np.uint16), bits)


def test_half_precision_rounds_to_even():
    """Sums halfway between two float16 numbers, from either side, and at the ends of the range."""
    sums = np.array([[2048, 1], [2048, 3], [65504, 15], [65504, 16], [-65504, -16]], np.float16)
    sums = np.vstack([sums, np.array([[6e-8, 6e-8], [2**-14, -(2**-24)]], np.float16)])
    gradient = nbta.TensorArray("float16", 1, element_shape=(len(sums),)).grad("gradients")
    got = gradient.write(0, sums[:, 0].copy()).write(0, sums[:, 1].copy()).read(0)
    with np.errstate(over="ignore"):
        expected = sums.astype(np.float32).sum(axis=1).astype(np.float16)
    assert got.tobytes() == expected.tobytes()
    assert got[:5].tolist() == [2048, 2052, 65504, np.inf, -np.inf]


# Gradient arrays.


def test_a_gradient_array_can_keep_what_was_read():
    gradient = filled().grad("gradients", clear_after_read=False).write(0, np.ones(2))
    assert not gradient.clear_after_read
    assert gradient.read(0).tolist() == gradient.read(0).tolist() == [1, 1]
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was read"):
        gradient.write(0, np.ones(2))
    clearing = filled().grad("gradients").write(0, np.ones(2))
    clearing.read(0)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was cleared"):
        clearing.read(0)


def test_gradients_of_gradients_hold_their_own_sums():
    array = filled()
    first = array.grad("gradients").write(0, np.ones(2))
    second = first.grad("gradients_1")
    third = second.grad("gradients_2").write(2, np.full(2, 3.0))
    second.write(0, np.full(2, 2.0)).write(0, np.full(2, 5.0))
    assert array.read(0).tolist() == [0, 1]
    assert first.read(0).tolist() == [1, 1]
    assert second.read(0).tolist() == [7, 7]
    assert third.stack().tolist() == [[0, 0], [0, 0], [3, 3]]


def test_closing_leaves_gradient_arrays_alive():
    array = filled()
    gradient = array.grad("gradients").write(0, np.ones(2))
    array.close()
    array.close()
    assert array.closed
    assert not gradient.closed
    assert gradient.write(0, np.ones(2)).stack().tolist() == [[2, 2], [0, 0], [0, 0]]
    for operation in (lambda: array.grad("gradients"), lambda: array.read(0), lambda: len(array)):
        with pytest.raises(nbta.InvalidArgumentError, match="the array is closed"):
            operation()


# Many.


def test_two_thousand_arrays_of_one_name():
    arrays = [nbta.TensorArray("int64", 1, tensor_array_name="many") for _ in range(2000)]
    for k, array in enumerate(arrays):
        array.write(0, k)
    assert len({array.handle for array in arrays}) == 2000
    assert [array.read(0) for array in arrays] == list(range(2000))


def test_threads_write_different_slots():
    threads, each = 8, 500
    uniform = nbta.TensorArray("float64", threads * each, element_shape=(3,))
    ragged = nbta.TensorArray("int64", threads * each, infer_shape=False)

    def work(thread):
        for k in range(thread, threads * each, threads):
            uniform.write(k, np.full(3, float(k)))
            ragged.write(k, np.full(k % 4, k))
        return thread

    with ThreadPoolExecutor(threads) as pool:
        assert sorted(pool.map(work, range(threads))) == list(range(threads))
    np.testing.assert_array_equal(uniform.stack(), np.arange(threads * each)[:, None] * np.ones(3))
    for k in range(threads * each):
        np.testing.assert_array_equal(ragged.read(k), np.full(k % 4, k))
