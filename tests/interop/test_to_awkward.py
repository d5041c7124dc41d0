"""Arrays that go to awkward and come from there, with elements of one length and of several."""

import numpy as np
import pytest

import nbta
from nbta.interop import from_awkward, to_awkward

ak = pytest.importorskip("awkward")


def ragged(lengths=(2, 0, 3), dtype="float64", rest=(), **options):
    array = nbta.TensorArray(dtype, len(lengths), infer_shape=False, **options)
    for slot, length in enumerate(lengths):
        array.write(slot, np.full((length, *rest), slot + 1, dtype))
    return array


def test_numbers_in_one_buffer_are_not_copied():
    array = nbta.TensorArray("float64", 5, clear_after_read=False).unstack(np.arange(5.0))
    given = to_awkward(array)
    assert str(given.type) == "5 * float64"
    assert np.shares_memory(ak.to_numpy(given), array.stack())
    rows = nbta.TensorArray("int32", 2).unstack(np.arange(6, dtype=np.int32).reshape(2, 3))
    np.testing.assert_array_equal(to_awkward(rows), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(rows.stack(), [[0, 1, 2], [3, 4, 5]])  # nothing was read


@pytest.mark.parametrize("clears", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool", "complex128"])
def test_elements_of_several_lengths_are_lists(dtype, clears):
    array = ragged(dtype=dtype, clear_after_read=clears)
    given = to_awkward(array)
    assert str(given.type) == f"3 * var * {dtype}"
    again = from_awkward(given)
    assert again.dtype == array.dtype
    for slot, length in enumerate((2, 0, 3)):
        np.testing.assert_array_equal(again.read(slot), np.full(length, slot + 1, dtype))
        np.testing.assert_array_equal(array.read(slot), np.full(length, slot + 1, dtype))


def test_lists_of_rows_and_no_lists():
    given = to_awkward(ragged(rest=(2,)))
    assert [len(rows) for rows in given] == [2, 0, 3]
    assert from_awkward(given).read(2).shape == (3, 2)
    empty = to_awkward(nbta.TensorArray("float64", 0, element_shape=(None,), infer_shape=False))
    assert len(empty) == 0
    assert len(from_awkward(ak.Array(ak.Array([[1.0]])[:0]))) == 0


def test_what_comes_from_awkward_grows_and_is_a_copy():
    values = np.arange(6.0)
    array = from_awkward(ak.from_numpy(values), dynamic_size=True)
    values[0] = 9.0
    np.testing.assert_array_equal(array.append(6.0).stack(), np.arange(7.0))
    sliced = ak.Array([[1.0, 2.0], [], [3.0]])[[2, 0]]
    assert [row.tolist() for row in from_awkward(sliced)] == [[3.0], [1.0, 2.0]]
    masked = from_awkward(ak.to_regular(ak.Array([[1, 2], [3, 4]]), axis=1))
    np.testing.assert_array_equal(masked.stack(), [[1, 2], [3, 4]])


def test_arrow_is_reached_by_awkward():
    pyarrow = pytest.importorskip("pyarrow")
    given = ak.to_arrow(to_awkward(ragged()), extensionarray=False)
    assert given.to_pylist() == [[1.0, 1.0], [], [3.0, 3.0, 3.0]]
    array = from_awkward(ak.from_arrow(pyarrow.array([[1.0], [2.0, 3.0]])))
    assert [row.tolist() for row in array] == [[1.0], [2.0, 3.0]]


@pytest.mark.parametrize(
    "values", [[1.0, None], [[1.0], None], ["a"], [[[1.0], [2.0, 3.0]]], [{"x": 1}], [1, [2]]]
)
def test_what_is_not_numbers_is_refused(values):
    with pytest.raises(nbta.InvalidArgumentError, match="from_awkward"):
        from_awkward(ak.Array(values))


def test_elements_of_other_shapes_are_refused():
    array = nbta.TensorArray("float64", 2, infer_shape=False)
    array.write(0, np.ones((2, 2))).write(1, np.ones((2, 3)))
    with pytest.raises(nbta.InvalidArgumentError, match=r"slot 1 of .* has shape \(2, 3\)"):
        to_awkward(array)
    scalars = nbta.TensorArray("float64", 1, infer_shape=False).write(0, 1.0)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0"):
        to_awkward(scalars)
    with pytest.raises(nbta.InvalidArgumentError, match="S3"):
        to_awkward(nbta.TensorArray("S3", 1).write(0, b"abc"))
    with pytest.raises(nbta.InvalidArgumentError, match="eager"):
        to_awkward([1.0])
