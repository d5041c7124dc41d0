"""Arrays whose elements lie in the store itself: when they move, what keeps them, their cost."""

import gc

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import _nrt_python, rtsys

import nbta
from nbta.runtime import python_calls, settings
from nbta.runtime.store import FIELD


def is_inline(array):
    """Whether elements of an array lie in its store."""
    return array._fields[FIELD.data_owner] == array._fields[FIELD.owner] != 0


def intact(array):
    """Whether nobody wrote beside what an array holds."""
    return python_calls.native(python_calls.guards_intact)(array._address)


@njit
def filled(count, stacked):
    """An array of so many numbers."""
    array = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())
    for i in range(count):
        array.append(float(i))
    if stacked:
        array.stack()
    return array


def test_ten_numbers_are_one_allocation():
    _nrt_python.memsys_enable_stats()
    kept = [filled(10, True)]
    before = rtsys.get_allocation_stats()
    kept.append(filled(10, True))
    after = rtsys.get_allocation_stats()
    assert after.mi_alloc - before.mi_alloc == 1
    assert is_inline(kept[1])


@pytest.mark.parametrize("options", [{"element_shape": ()}, {}, {"size": 10}])
def test_ten_numbers_cost_400_bytes_beside_them(options):
    guard = settings.put(settings.GUARD, 0)
    try:
        array = nbta.TensorArray("float64", dynamic_size=True, **options)
    finally:
        settings.put(settings.GUARD, guard)
    head_of_an_owner, head_of_an_allocation = 48, 8
    used = array._fields[FIELD.end] - array._address + head_of_an_owner + head_of_an_allocation
    assert (used + 15) // 16 * 16 - 80 <= 400


@pytest.mark.parametrize("dtype", ["bool", "float16", "float64", "complex128", "S3", "S200"])
@pytest.mark.parametrize("options", [{}, {"element_shape": ()}, {"size": 3}, {"size": 60}])
def test_elements_stay_when_they_move(dtype, options):
    array = nbta.TensorArray(dtype, dynamic_size=True, clear_after_read=False, **options)
    values = (np.arange(200) % 2).astype(dtype)
    views = []
    for i, value in enumerate(values):
        array.write(i, value)
        if i in (0, 7, 30):
            views.append((array.gather(np.arange(i + 1)), values[: i + 1]))
        assert intact(array)
    np.testing.assert_array_equal(array.stack(), values)
    for view, given in views:
        np.testing.assert_array_equal(view, given)


@pytest.mark.parametrize("rank", range(9))
def test_dimensions_and_elements_lie_side_by_side(rank):
    shape = (1,) * rank
    array = nbta.TensorArray("int64", dynamic_size=True)
    for i in range(12):
        array.append(np.full(shape, i))
    assert array.element_shape == shape
    np.testing.assert_array_equal(array.stack().ravel(), np.arange(12))
    assert intact(array)


def test_views_keep_a_store():
    view = filled(10, False).stack()
    gc.collect()
    others = [filled(10, True) for _ in range(100)]
    np.testing.assert_array_equal(view, np.arange(10.0))
    assert len(others) == 100


def test_a_failed_scatter_forgets_the_shape_and_no_state():
    array = nbta.TensorArray("int8", dynamic_size=True, infer_shape=True)
    with pytest.raises(nbta.InvalidArgumentError):
        array.scatter([0, 1, 1], np.ones(3, np.int8))  # a slot twice
    assert array.element_shape is None
    assert len(array) == 0
    for i in range(9):
        array.append(np.full((1,) * 8, i, np.int8))
    np.testing.assert_array_equal(array.stack().ravel(), np.arange(9))
    assert intact(array)


def test_gradient_arrays_are_small_too():
    array = filled(10, False)
    gradient = array.grad("gradients")
    for i in range(10):
        gradient.accumulate(i, float(i))
    gradient.accumulate(3, 1.0)
    assert is_inline(gradient)
    view = gradient.stack()
    array.close()
    del array, gradient
    gc.collect()
    np.testing.assert_array_equal(view, [0, 1, 2, 4, 4, 5, 6, 7, 8, 9])


def test_elements_outlive_closing_where_compiled_code_looks():
    @njit
    def look(n):
        array = nbta.TensorArray(np.float64, size=2, element_shape=(n,), clear_after_read=False)
        array.write(0, np.arange(float(n)))
        view = array.read(0)
        array.close()
        other = nbta.TensorArray(np.float64, size=2, element_shape=(n,), clear_after_read=False)
        other.write(0, np.ones(n))
        return view.sum() + other.read(0).sum()

    assert look(4) == 10.0


def test_trim_leaves_arrays_alone():
    arrays = [filled(n, False) for n in (5, 500)]
    nbta.trim()
    for array, n in zip(arrays, (5, 500), strict=True):
        np.testing.assert_array_equal(array.stack(), np.arange(float(n)))
