"""What lists do and arrays do not: the message says what to write, in all three ways to run."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

import nbta
from nbta.errors import NOT_OF_ARRAYS, not_of_arrays

HERE = Path(__file__)
PAGE = (HERE.parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
CALLS = {
    "__setitem__": "ta[0] = x[0]",
    "__delitem__": "del ta[0]",
    "insert": "ta.insert(0, x[0])",
    "extend": "ta.extend(x)",
    "remove": "ta.remove(x[0])",
    "index": "ta.index(x[0])",
    "count": "ta.count(x[0])",
    "none": "ta.none()",
}
OWN = [name for name in vars(list) if name[0] != "_" and name != "append"]


def array():
    return nbta.TensorArray(np.float64, dynamic_size=True, element_shape=())


def program(tmp_path, name, head=""):
    """A function that does with an array what only lists do, from a file; and that line of it."""
    file = tmp_path / f"of_{name.strip('_')}.py"
    call = CALLS.get(name, f"ta.{name}()")
    file.write_text(f"def f(x, ta=None):\n    {head}\n    {call}\n    return x[0]\n")
    scope = {"array": array}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    return scope["f"], f"{file}:3: "


def test_each_method_of_lists_has_an_answer():
    assert set(OWN) == {name for name in NOT_OF_ARRAYS if name[0] != "_"}


@pytest.mark.parametrize("name", NOT_OF_ARRAYS)
def test_eagerly(name, tmp_path):
    function, _ = program(tmp_path, name)
    kind = TypeError if name[0] == "_" else AttributeError
    with pytest.raises(kind, match=re.escape(not_of_arrays(name))) as caught:
        function(np.ones(2), array())
    assert caught.typename == kind.__name__
    assert type(pickle.loads(pickle.dumps(caught.value))) is kind
    assert not hasattr(array(), name)
    assert not hasattr(nbta.TensorArray, name)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", NOT_OF_ARRAYS)
def test_compiled(name, tmp_path):
    function, place = program(tmp_path, name)
    with pytest.raises(TypingError) as caught:
        njit(function)(np.ones(2), array())
    assert str(caught.value).splitlines()[-1] == place + not_of_arrays(name)


@pytest.mark.parametrize("name", NOT_OF_ARRAYS)
@pytest.mark.parametrize("of", [nbta.grad, nbta.function])
def test_traced(name, of, tmp_path):
    function, place = program(tmp_path, name, "ta = array()")
    kind = TypeError if name[0] == "_" else AttributeError
    with pytest.raises(kind, match=re.escape(place + not_of_arrays(name))):
        of(function)(np.ones(2))


def test_traced_functions_ask_for_attributes():
    def has(x):
        ta = array()
        seen = [hasattr(ta, name) for name in ("extend", "append", "__setitem__")]
        return x[0] if seen == [False, True, False] else 0.0 * x[0]

    assert nbta.grad(has)(np.ones(1)).tolist() == [1.0]


def test_compiled_functions_ask_for_attributes():
    asked = njit(lambda ta: (hasattr(ta, "extend"), hasattr(ta, "append")))
    assert asked(array()) == (False, True)


def test_arrays_of_graphs_say_it():
    with pytest.raises(AttributeError, match=re.escape(not_of_arrays("extend"))):
        nbta.while_loop(lambda k, ta: k < 2, lambda k, ta: (k + 1, ta.extend([1.0])), (0, array()))


def test_other_names_are_no_attributes_either(tmp_path):
    with pytest.raises(AttributeError, match=r"'TensorArray' object has no attribute 'none'$"):
        array().none()
    function, place = program(tmp_path, "none", "ta = array()")
    with pytest.raises(AttributeError, match=re.escape(place) + "'TensorArray' object has no"):
        nbta.grad(function)(np.ones(2))


@pytest.mark.parametrize("name", NOT_OF_ARRAYS)
def test_the_page_has_it(name):
    table = PAGE.partition("## What lists do and arrays do not")[2].partition("\n## ")[0]
    written = {"__setitem__": "ta[i] = value", "__delitem__": "del ta[i]"}.get(name, f"ta.{name}(")
    assert f"`{written}" in table
