"""Arrays as columns of Arrow: values, memory that is shared, and who lets go of it."""

import gc

import numpy as np
import pytest

import nbta
from nbta import arrow

pyarrow = pytest.importorskip("pyarrow")
NUMBERS = ["bool", "int8", "uint16", "int32", "uint64", "float16", "float32", "float64"]


@pytest.fixture(autouse=True)
def nothing_more_is_held():
    gc.collect()
    before = arrow._held.keys() | set(), arrow._in_capsules.keys() | set()
    yield
    gc.collect()
    assert before == (arrow._held.keys(), arrow._in_capsules.keys())


@pytest.mark.parametrize("dtype", NUMBERS)
def test_numbers_are_a_column(dtype):
    values = np.arange(11).astype(dtype)
    array = nbta.TensorArray(dtype, 11).unstack(values)
    column = pyarrow.array(array)
    column.validate(full=True)
    assert column.null_count == 0
    np.testing.assert_array_equal(column.to_numpy(zero_copy_only=False), values)
    np.testing.assert_array_equal(array.stack(), values)  # nothing was read


def test_memory_is_shared_and_outlives_the_array():
    array = nbta.TensorArray("float64", 1000, clear_after_read=False).unstack(np.arange(1000.0))
    column = pyarrow.array(array)
    assert column.type == pyarrow.float64()
    assert column.buffers()[1].address == array.stack().__array_interface__["data"][0]
    part = column.slice(10, 3)
    array.close()
    del array, column
    gc.collect()
    assert part.to_pylist() == [10.0, 11.0, 12.0]


def test_elements_are_lists():
    array = nbta.TensorArray("float64", 3, infer_shape=False)
    array.write(0, np.ones(2)).write(1, np.ones(0)).write(2, np.full(3, 2.0))
    column = pyarrow.array(array)
    assert column.type == pyarrow.large_list(pyarrow.float64())
    assert column.to_pylist() == [[1.0, 1.0], [], [2.0, 2.0, 2.0]]
    column.validate(full=True)
    empty = nbta.TensorArray("float64", 0, element_shape=(None,), infer_shape=False)
    assert pyarrow.array(empty).type == column.type
    rows = nbta.TensorArray("int64", 2).unstack(np.arange(12).reshape(2, 3, 2))
    assert pyarrow.array(rows).to_pylist() == np.arange(12).reshape(2, 3, 2).tolist()


def test_capsules_that_nobody_takes_are_released():
    array = nbta.TensorArray("int64", 2).unstack(np.arange(6).reshape(2, 3))
    capsules = array.__arrow_c_array__()
    assert arrow._held
    del capsules


@pytest.mark.parametrize("dtype", ["complex128", "S3"])
def test_what_arrow_has_no_numbers_for_is_refused(dtype):
    array = nbta.TensorArray(dtype, 1).write(0, np.zeros((), dtype))
    with pytest.raises(nbta.InvalidArgumentError, match=f"{np.dtype(dtype)}, which TensorArray_"):
        array.__arrow_c_array__()
