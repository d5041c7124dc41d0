"""What makes operations fail does so in each way to run them, and in the same way."""

import numpy as np
import pytest
from failing_programs import (
    ARGUMENTS,
    ELEMENTS,
    OPERATIONS,
    RAW_OPERATIONS,
    Program,
    arguments,
    functions,
    outcome,
)

import nbta
from nbta import raw_ops

#: Of each array: dynamic, clears, gradient, closed.
FLAGS = [
    (False, True, False, False),
    (True, False, False, False),
    (False, True, True, False),
    (False, False, True, True),
    (True, True, False, True),
]
PROGRAMS = [
    Program(operation, second, elements, "float64", *flags)
    for operation in OPERATIONS
    for second in dict.fromkeys(("read", "stack", operation))
    for elements in ELEMENTS
    for flags in FLAGS
] + [
    Program(operation, "read", "rows", dtype, gradient=gradient)
    for operation in ("write", "accumulate", "scatter")
    for dtype in ("bool", "int8", "float16", "complex128")
    for gradient in (False, True)
]
RAW_PROGRAMS = [
    Program(operation, second, elements, "float64", *flags, raw=True)
    for operation in RAW_OPERATIONS
    for second in dict.fromkeys(("read", operation))
    for elements in ELEMENTS
    for flags in FLAGS
]


@pytest.mark.slow_but_every(300)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_errors_are_the_same_in_each_way(program):
    hold_alike(program)


@pytest.mark.slow_but_every(60)
@pytest.mark.parametrize("program", RAW_PROGRAMS, ids=str)
def test_raw_operations_fail_alike_in_each_way(program):
    hold_alike(program)


def hold_alike(program):
    """Run a program in each way with all its arguments."""
    ways = functions(program)
    for named in arguments(program):
        given = [named[name] for name in ARGUMENTS]
        expected = outcome(ways["eager"], given)
        for way, function in ways.items():
            found = outcome(function, given)
            refused = hasattr(function, "error") and isinstance(expected, tuple)
            assert refused or found in (None, expected), (way, named)


def test_two_true_values_have_no_sum():
    program = Program("accumulate", "read", "rows", "bool", gradient=True)
    true = np.ones((1, 2), bool)
    given = dict.fromkeys(("written", "added", "read", "list"), np.array([], np.int64))
    given |= {"filler": true[:0], "more": true[:0], "rows": true, "size": 1, "k": 0}
    given |= {"written": np.array([0]), "filler": true, "added": np.array([0]), "more": true}
    for function in functions(program).values():
        assert outcome(function, [given[name] for name in ARGUMENTS])[1] == "aggregate_dtype"


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_learnt_of_written_rows_is_no_shape_of_no_slots(compiled):
    """Compiled code took the shape of the rows that nobody had written."""
    with nbta.Graph().as_default() as graph:
        slots, rows = nbta.placeholder("int64", (None,)), nbta.placeholder("float64", (None, None))
        ta = nbta.TensorArray("float64", 0, dynamic_size=True, element_shape=(None,))
        found = ta.scatter(slots, rows).gather(slots)
    session, none = nbta.Session(graph), np.zeros(0, np.int64)
    with pytest.raises(nbta.UnimplementedError, match="nothing to stack"):
        session.run(found, {slots: none, rows: np.zeros((0, 2))}, compiled)
    some = {slots: np.array([1]), rows: np.ones((1, 2))}
    assert session.run(found, some, compiled).tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("operation", ["scatter", "unstack", "split"])
def test_a_scalar_has_no_rows(operation, compiled):
    """Compiling ended in an IndexError of a tuple."""
    with nbta.Graph().as_default() as graph:
        ta, x = nbta.TensorArray("float64", 0), nbta.placeholder("float64", ())
        none = np.zeros(0, np.int32)
        given = {"scatter": (none, x), "unstack": (x,), "split": (x, none)}[operation]
        with pytest.raises(nbta.InvalidArgumentError, match=f"{operation} on .*no first axis"):
            getattr(ta, operation)(*given)
        if operation == "split":
            flow = raw_ops.TensorArraySplitV3(ta.handle, x, np.zeros(0, np.int64), ta.flow)
        else:
            flow = raw_ops.TensorArrayScatterV3(ta.handle, none, x, ta.flow)
    with pytest.raises(nbta.InvalidArgumentError, match="a scalar has no"):
        nbta.Session(graph).run(flow, {x: 1.0}, compiled)
