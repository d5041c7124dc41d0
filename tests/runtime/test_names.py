"""Names of arrays: the same in handles and messages of compiled code as eagerly."""

import re

import numpy as np
import pytest
from numba import njit, prange

import nbta
from nbta.naming import Handle
from nbta.runtime.store import FIELD

LONG = "a_name_of_many_letters_" * 4
NAMES = [None, "", "mine", "with@sign", "é😀", "x" * 48, LONG]


def made(tensor_array_name, name):
    return nbta.TensorArray(
        np.float64, 2, tensor_array_name=tensor_array_name, element_shape=(), name=name
    )


compiled = njit(made)


def first_part(array):
    return array.handle.name.removesuffix(f"_{array._fields[FIELD.id]}")


@pytest.mark.parametrize("name", [None, "", "other"])
@pytest.mark.parametrize("tensor_array_name", NAMES)
def test_names_are_kept(tensor_array_name, name):
    array = compiled(tensor_array_name, name)
    assert first_part(array) == first_part(made(tensor_array_name, name))
    assert array.handle == Handle("_tensor_arrays", array.handle.name)
    grad = array.grad("s@t")
    assert grad.handle == Handle("_tensor_array_grads", rf"{array.handle.name}@s\@t")


@njit
def of_literals():
    return (
        nbta.TensorArray(np.float64, tensor_array_name="mine", name="other"),
        nbta.TensorArray(np.float64, tensor_array_name="", name="other"),
        nbta.TensorArray(np.float64, name=""),
    )


def test_names_that_are_known_when_compiling_are_kept():
    assert [first_part(array) for array in of_literals()] == ["mine", "other", "TensorArray"]


@njit
def handed(array):
    return array


@njit
def gradient(array, source):
    return array.grad(source)


@pytest.mark.parametrize("name", NAMES)
def test_names_live_as_long_as_their_arrays(name):
    """Python knew them by the array that was made, and that may be gone."""
    array = nbta.TensorArray("float64", 1, tensor_array_name=name)
    second = array.grad("one").grad("two")
    lane = second.lanes(2).take(1)
    names = [each.handle for each in (array, second)]
    assert handed(array).handle == names[0]
    lanes = nbta.TensorArray("float64", dynamic_size=True, name=name).lanes(2)
    expected = lanes.take(1).handle.name
    del array
    assert handed(second).handle == names[1]
    assert gradient(second, "th@ree").handle.name == rf"{names[1].name}@th\@ree"
    assert handed(lane).handle.name == f"{names[1].name}[lane 1]"
    assert handed(lanes).take(0).handle.name == expected.replace("[lane 1]", "[lane 0]")


@njit
def fails(name, source, slot):
    array = nbta.TensorArray(np.float64, 2, tensor_array_name=name, element_shape=())
    if len(source):
        array = array.grad(source)
    return array.read(slot)


@pytest.mark.parametrize("source", ["", "gradients", "s" * 47])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in (None, LONG)])
def test_messages_of_compiled_code_have_the_names_of_eager_ones(name, source):
    found = []
    for function in (fails, fails.py_func):
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            function(name, source, -1)
        found.append(re.sub("_[0-9]+(?=[@:])", "_k", str(caught.value)))
    assert found[0] == found[1]
    assert f"read on {name or 'TensorArray'}_k{'@' * bool(source)}{source}: " in found[0]


def test_a_long_name_is_cut_in_messages_of_compiled_code():
    with pytest.raises(nbta.InvalidArgumentError, match=f"read on {LONG[:46]}\\.\\._[0-9]+: "):
        fails(LONG, "", -1)


@pytest.mark.parametrize("argument", ["tensor_array_name", "name"])
@pytest.mark.parametrize("value", [5, b"bytes"])
def test_what_is_no_name_is_refused(argument, value):
    scope = {"nbta": nbta, "np": np, "value": value}
    exec(f"def f(): return nbta.TensorArray(np.float64, {argument}=value)", scope)
    with pytest.raises(Exception, match=f"{argument} must be a string or None, not .*; give str"):
        njit(scope["f"])()


@njit(parallel=True)
def side_by_side(count):
    sizes = np.zeros(count, np.int64)
    for k in prange(count):
        array = nbta.TensorArray(np.int64, k, tensor_array_name="part", element_shape=())
        sizes[k] = array.size()
    return sizes


def test_iterations_of_parallel_loops_name_their_arrays():
    assert side_by_side(5).tolist() == [0, 1, 2, 3, 4]


def test_restored_gradient_arrays_know_their_names(tmp_path):
    array = nbta.TensorArray("float64", 2, tensor_array_name="kept", element_shape=())
    array.grad("a@b").write(0, 1.0).grad("c").write(1, 2.0)
    nbta.save(tmp_path / "tree.npz", array)
    restored = nbta.load(tmp_path / "tree.npz")
    second = restored.grad("a@b").grad("c")
    assert handed(second).handle == second.handle
    nbta.save(tmp_path / "leaf.npz", array.grad("a@b").grad("c"))
    leaf = nbta.load(tmp_path / "leaf.npz")
    assert handed(leaf).handle == leaf.handle
    assert leaf.handle.name.endswith(r"@a\@b@c")
