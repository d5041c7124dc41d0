"""The last line of an error of typing says what is wrong, and where."""

import ast
import linecache
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit, typed
from numba.core.errors import TypingError

import nbta
from nbta import errors, raw_ops, runtime
from nbta.runtime import failures

HERE = Path(__file__)


def array(dtype="float64", shape=(), **options):
    return nbta.TensorArray(dtype, 0, dynamic_size=True, element_shape=shape, **options)


def write(ta, index, value):
    ta.write(index, value)


def append(ta, value):
    ta.append(value)


def accumulate(ta, index, value):
    ta.accumulate(index, value)


def read(ta, index):
    return ta.read(index)


def stack(ta):
    return ta.stack()


def gather(ta, indices, element_shape):
    return ta.gather(indices, element_shape=element_shape)


def scatter(ta, indices, value):
    ta.scatter(indices, value)


def unstack(ta, value):
    ta.unstack(value)


def split(ta, value, lengths):
    ta.split(value, lengths)


def concat(ta, after):
    return ta.concat(element_shape_except0=after)


def grad(ta, source):
    return ta.grad(source)


def grad_with_shape(ta, source, shape):
    return ta.grad_with_shape(source, shape)


def item(ta, index):
    return ta[index]


def loop(ta):
    for value in ta:
        print(value)


def asarray(ta):
    return np.asarray(ta)


def lanes(ta, count):
    return ta.lanes(count)


def take(ta, lane):
    return ta.lanes(2).take(lane)


def make(size, shape):
    return nbta.TensorArray(np.float64, size, element_shape=shape)


def make_half():
    return nbta.TensorArray(np.float16, 1)


def make_unknown():
    return nbta.TensorArray("no such dtype", 1)


def make_of_what(dtype):
    return nbta.TensorArray(dtype, 1)


def make_named(name):
    return nbta.TensorArray(np.float64, 1, name=name)


def grad_with_flow(ta, flow):
    return ta.grad("s", flow)


def raw_size(handle, flow):
    return raw_ops.TensorArraySizeV3(handle, flow)


def set_item(ta):
    ta[0] = 1.0


def delete_item(ta):
    del ta[0]


DEEP = np.ones((1,) * 10)
CASES = [
    (write, (array("float32"), 0, 1.0), "write: the array holds float32 and the value is float64"),
    (write, (array("float32", (2,)), 0, np.ones(2)), "write: the array holds float32 and"),
    (write, (array(), 0.5, 1.0), "write: index must be an integer, not float64"),
    (write, (array(shape=(2,)), 0, 1.0), "write: elements have rank 1 and the value has rank 0"),
    (write, (array(shape=None), 0, DEEP), "write: elements have at most 8 dimensions"),
    (write, (array(), 0, "a"), "write: the array holds float64 and the value is unicode_type"),
    (write, (array(shape=(2,)), 0, (1.0, "a")), "write: the array holds float64 and the value is"),
    (write, (array(shape=None), 0, ((1.0,), 2.0)), "is no array: its rows must have one length"),
    (append, (array("int8"), 1000), "append: the array holds int8 and the value is int64"),
    (append, (array("int8", (2,)), [1, 2]), "append: the array holds int8 and the value is int64"),
    (accumulate, (array(), 0, None), "accumulate: the array holds float64 and the value is none"),
    (read, (array(), "a"), "read: index must be an integer, not unicode_type"),
    (read, (array(shape=None), 0), "read: the rank of the elements is not known when compiling"),
    (stack, (array(shape=None),), "stack: the rank of the elements is not known"),
    (gather, (array(), 1, None), "gather: indices must be a vector of integers, not int64"),
    (gather, (array(), np.ones(2), None), "gather: indices must be a vector of integers"),
    (gather, (array(shape=None), (0,), None), "gather: the rank of the elements is not known"),
    (gather, (array(), (0,), 0.5), "gather: element_shape must be a tuple or None, not float64"),
    (gather, (array(), (0,), (0.5,)), "gather: element_shape has a dimension of type float64"),
    (scatter, (array(), np.ones((1, 1), int), np.ones(1)), "scatter: indices must be a vector"),
    (scatter, (array(), (0,), np.ones(1, np.int8)), "scatter: the array holds float64 and"),
    (scatter, (array(shape=None), (0,), DEEP), "scatter: elements have at most 8 dimensions"),
    (unstack, (array("int32"), [1.5]), "unstack: the array holds int32 and the value is float64"),
    (split, (array(), np.ones(1), 1.5), "split: lengths must be a vector of integers"),
    (concat, (array(shape=None), None), "concat: the rank of the elements is not known"),
    (concat, (array(), (1,) * 9), "concat: elements have at most 8 dimensions, and"),
    (grad, (array(), 3), "grad: source must be a string, not int64"),
    (grad_with_shape, (array(), "s", 1), "grad_with_shape: shape_to_prepend must be a vector"),
    (item, (array(), 0.5), "getitem: index must be an integer, not float64"),
    (item, (array(shape=None), 0), "getitem: the rank of the elements is not known"),
    (loop, (array(shape=None),), "a loop: the rank of the elements is not known"),
    (asarray, (array(shape=None),), "asarray: the rank of the elements is not known"),
    (lanes, (array(), 0.5), "lanes: count must be an integer, not float64"),
    (take, (array(), "a"), "take: lane must be an integer, not unicode_type"),
    (make, (1.5, ()), "TensorArray: size must be one integer, not float64"),
    (make, (1, (1.5,)), "TensorArray: element_shape has a dimension of type float64"),
    (make_half, (), "TensorArray: Numba cannot compute with dtype float16"),
    (make_unknown, (), "TensorArray: 'no such dtype' is not a dtype"),
    (make_of_what, (1.5,), "TensorArray: dtype must be a dtype such as np.float64, not float64"),
    (make_named, (1.5,), "TensorArray: name must be a string or None, not float64; give str(name)"),
    (grad_with_flow, (array(), "flow"), "grad: flow must be a flow that an operation on the array"),
    (set_item, (array(),), errors.not_of_arrays("__setitem__")),
    (delete_item, (array(),), errors.not_of_arrays("__delitem__")),
    (raw_size, (array(), None), "TensorArraySizeV3: flow_in must be a flow that an operation on"),
    (raw_size, (3, 0.0), "handle: int64 is not a handle; give what TensorArrayV3 returned"),
]


def last_line(function, args):
    with pytest.raises(TypingError) as caught:
        function(*args)
    return str(caught.value).splitlines()[-1]


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize(("function", "args", "words"), CASES, ids=[f.__name__ for f, *_ in CASES])
def test_the_last_line_says_it(function, args, words):
    line = last_line(njit(function), args)
    place, _, sentence = line.partition(": ")
    file, _, number = place.rpartition(":")
    assert Path(file) == HERE
    code = function.__code__
    assert code.co_firstlineno < int(number) <= max(n for *_, n in code.co_lines() if n)
    assert words in sentence


def sites():
    """Places in nbta that refuse."""
    for file in sorted(Path(runtime.__path__[0]).glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and getattr(node.exc, "func", None) is not None:
                name = getattr(node.exc.func, "id", "")
                assert name != "TypingError", f"{file}:{node.lineno}: raise refusal(...)"
                if name == "refusal":
                    yield file.name, node.lineno


def test_each_refusal_has_a_case(monkeypatch):
    met = set()

    def noted(frame, event, _):
        if event == "call" and frame.f_code is failures.refusal.__code__:
            caller = frame.f_back
            met.add((Path(caller.f_code.co_filename).name, caller.f_lineno))

    sys.setprofile(noted)
    try:
        for function, args, _ in CASES:
            with pytest.raises(TypingError):
                njit(function)(*args)
    finally:
        sys.setprofile(None)
    starts = {(file, line) for file, line in sites()}
    assert starts - met == set()


@njit
def inner(ta):
    ta.write(0, 1.0)


@njit
def outer(ta):
    inner(ta)


def test_a_function_that_is_called_is_named_by_its_own_line():
    line = last_line(outer, [array("float32")])
    number = int(line.split(": ")[0].rpartition(":")[2])
    assert linecache.getline(str(HERE), number).strip() == "ta.write(0, 1.0)"


@njit
def not_ours(ta):
    return ta.size() + "a"


def test_errors_that_are_not_ours_stay():
    last_line(outer, [array("float32")])
    assert "float32" not in last_line(not_ours, [array()])


def changes_its_type(ta, values):
    x = 0
    for value in values:
        ta.append(x)
        x = value
    return x


@pytest.mark.slow
def test_what_is_refused_at_first_may_be_right_at_last():
    """Numba asks for the types of a loop's variables several times."""
    ta = array("float64")
    njit(changes_its_type)(ta, typed.List([0.5, 1.5]))
    assert ta.stack().tolist() == [0, 0.5]
