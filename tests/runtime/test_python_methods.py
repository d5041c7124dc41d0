"""Methods in machine code are to users what functions of Python's are, and count references."""

import copy
import inspect
import pickle
import sys

import numpy as np
import pytest

import nbta
from nbta import immutable
from nbta.errors import InvalidArgumentError
from nbta.interface import ArrayInterface
from nbta.runtime import python_methods

NAMES = [name for name in python_methods.CODE if name[0] != "_"]


def array(size=3, shape=(), **options):
    return nbta.TensorArray(np.float64, size, True, element_shape=shape, **options)


def test_python_calls_them_without_binding():
    array()
    methods = vars(nbta.TensorArray)
    assert {type(methods[name]).__name__ for name in python_methods.CODE} == {"Method"}
    assert not hasattr(nbta.TensorArray, "__getattr__")


@pytest.mark.parametrize("name", NAMES)
def test_they_look_like_functions(name):
    ta, method = array(), getattr(nbta.TensorArray, name)
    assert inspect.signature(method) == inspect.signature(method.__wrapped__)
    assert next(iter(inspect.signature(getattr(ta, name)).parameters)) != "self"
    assert inspect.getdoc(method) == inspect.getdoc(getattr(ArrayInterface, name))
    assert pickle.loads(pickle.dumps(method)) is copy.deepcopy(method) is method
    assert inspect.isroutine(method)
    assert inspect.ismethod(getattr(ta, name))


def test_arguments_by_name_and_wrong_ones_are_those_of_functions():
    ta = array(1)
    assert ta.write(index=0, value=1.5).append(value=2.5, name="x") is ta
    assert (ta.read(index=0), ta.read(1, dtype=np.float64), ta[-1]) == (1.5, 2.5, 2.5)
    for call in (lambda: ta.write(), lambda: ta.read(0, 1), lambda: ta.append(1.0, 2.0)):
        with pytest.raises(TypeError, match=r"TensorArray\.\w+\(\) (missing|takes)"):
            call()
    with pytest.raises(AttributeError, match="'int' object has no"):
        nbta.TensorArray.write(5, 0, 1.0)
    with pytest.raises(AttributeError, match="_"):
        object.__new__(nbta.TensorArray).read(0)


def test_subclasses_may_override():
    class Doubling(nbta.TensorArray):
        __slots__ = ()

        def write(self, index, value, *, name=None):
            return super().write(index, 2.0 * value)

    ta = Doubling(np.float64, 2, element_shape=())
    assert ta.write(0, 1.5).append is not None
    assert ta.read(0) == ta[0] == 3.0


@pytest.mark.parametrize("shape", [(), (2,)])
def test_no_reference_is_lost_or_left(shape):
    ta, value = array(50, shape), np.ones(shape)
    value = value if shape else 1.0
    held = ta, value, ta.dtype
    ta.write(0, value)[0]
    before = list(map(sys.getrefcount, held))
    for k in range(1, 40):
        ta.write(k, value)
        ta.read(k), ta[k]
        with pytest.raises(InvalidArgumentError):
            ta.write(k, value)
    view = ta._seen[1]
    count = sys.getrefcount(view)
    parts = [ta[k] for k in range(40)] + [ta.read(k) for k in range(40)]
    del parts
    assert sys.getrefcount(view) == count
    assert list(map(sys.getrefcount, held)) == before


def test_elements_are_immutable_while_a_body_runs():
    ta = array(1, (2,)).write(0, np.ones(2))
    ta[0]
    with immutable.bodies("test"):
        found = ta[0], ta.read(0)
    assert [type(x) for x in found] == [immutable.ImmutableArray] * 2
    assert type(ta[0]) is np.ndarray
