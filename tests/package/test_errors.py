"""Every documented error: its class, its reason, its message, and an array that is as it was."""

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest

import nbta
from nbta.runtime import python_calls

RECORD = np.dtype([("a", np.int32), ("b", np.float64)])


def empty(size=3, dtype="float64", **options):
    return nbta.TensorArray(dtype, size, tensor_array_name="state", **options)


def filled(size=3, rows=2, dtype="float64", **options):
    value = np.arange(size * rows).reshape(size, rows).astype(dtype)
    return empty(size, dtype, **options).unstack(value)


def scalars(**options):
    return empty(3, **options).unstack([1.0, 2.0, 3.0])


def ragged():
    array = empty(3, infer_shape=False)
    return array.write(0, np.ones(2)).write(1, np.ones((1, 2))).write(2, np.ones(3))


def after_read(index=1, **options):
    array = filled(**{"clear_after_read": True, **options})
    array.read(index)
    return array


def gradient(**options):
    return filled(**options).grad("gradients")


def added():
    return gradient().write(1, np.ones(2))


def ragged_gradient():
    return ragged().grad("gradients").write(1, np.ones((1, 2)))


def locked():
    array = filled(dynamic_size=True)
    array.grad("gradients")
    return array


class Case(NamedTuple):
    """An operation that fails; the message has all of these words."""

    make: Any
    operation: Any
    reason: str
    words: str
    error: type = nbta.InvalidArgumentError


def unimplemented(*case):
    return Case(*case, error=nbta.UnimplementedError)


def exhausted(*case):
    return Case(*case, error=nbta.ResourceExhaustedError)


ROW, ROWS = np.ones(2), np.ones((3, 2))
CASES = {
    # write, append
    "before the first slot": Case(
        filled, lambda a: a.write(-1, ROW), "write_out_of_range", "write|slot -1|negative|from 0"
    ),
    "past the end": Case(
        filled, lambda a: a.write(3, ROW), "write_out_of_range", "write|slot 3|3 slots|dynamic_size"
    ),
    "negative and dynamic": Case(
        lambda: filled(dynamic_size=True),
        lambda a: a.write(-2, ROW),
        "write_out_of_range",
        "write|slot -2|negative|numbered from 0",
    ),
    "append to a fixed size": Case(
        filled, lambda a: a.append(ROW), "write_out_of_range", "append|slot 3|dynamic_size=True"
    ),
    "append after a lookup": Case(
        locked, lambda a: a.append(ROW), "write_out_of_range", "append|gradient lookup ends growth"
    ),
    "far beyond int64": Case(
        filled, lambda a: a.write(2**200, ROW), "write_out_of_range", "write|no slot|3 slots"
    ),
    "far below int64": Case(
        filled, lambda a: a.write(-(2**200), ROW), "write_out_of_range", "write|slot -|negative"
    ),
    "index times item size over int64": exhausted(
        lambda: filled(dynamic_size=True),
        lambda a: a.write(2**61, ROW),
        "too_large",
        "write|not enough memory|fewer",
    ),
    "index over int64, dynamic": exhausted(
        lambda: filled(dynamic_size=True),
        lambda a: a.write(2**64, ROW),
        "too_large",
        "write|not enough memory",
    ),
    "largest index": exhausted(
        lambda: filled(dynamic_size=True),
        lambda a: a.write(2**63 - 1, ROW),
        "too_large",
        "write|not enough memory",
    ),
    "written": Case(
        filled, lambda a: a.write(1, ROW), "already_written", "write|slot 1|once|accumulate"
    ),
    "read": Case(
        lambda: after_read(clear_after_read=False),
        lambda a: a.write(1, ROW),
        "already_read",
        "write|slot 1|was read|before the read",
    ),
    "zeros were read": Case(
        lambda: after_zeros(),
        lambda a: a.write(0, ROW),
        "already_read",
        "write|slot 0|was read",
    ),
    "another shape": Case(
        lambda: empty(element_shape=(2,)),
        lambda a: a.write(0, np.ones(3)),
        "incompatible_element_shape",
        "write|slot 0|(2,)|(3,)|reshape",
    ),
    "another rank": Case(
        lambda: empty(element_shape=(None, 3)),
        lambda a: a.write(2, np.ones((1, 2, 3))),
        "incompatible_element_shape",
        "write|slot 2|(?, 3)|(1, 2, 3)",
    ),
    "another inferred shape": Case(
        lambda: empty().write(0, ROW),
        lambda a: a.write(1, ROWS),
        "incompatible_element_shape",
        "write|slot 1|(2,)|(3, 2)|infer_shape=False",
    ),
    "nine dimensions": Case(
        empty, lambda a: a.write(0, np.ones((1,) * 9)), "rank", "write|at most 8|9|reshape"
    ),
    "ten dimensions": Case(
        empty, lambda a: a.write(0, np.ones((1,) * 10)), "rank", "write|at most 8|10|reshape"
    ),
    # dtypes of values
    "float32 array": Case(
        filled,
        lambda a: a.write(0, np.ones(2, np.float32)),
        "write_dtype",
        "write|holds float64|float32|.astype('float64')",
    ),
    "NumPy scalar": Case(
        scalars, lambda a: a.write(0, np.int64(1)), "write_dtype", "write|float64|int64|.astype"
    ),
    "float into integers": Case(
        lambda: empty(dtype="int32"),
        lambda a: a.write(0, 1.5),
        "write_dtype",
        "write|holds int32|float64|1.5|cast",
    ),
    "whole float into integers": Case(
        lambda: empty(dtype="int32"),
        lambda a: a.write(0, 1.0),
        "write_dtype",
        "write|holds int32|float64|1.0",
    ),
    "too large for int8": Case(
        lambda: empty(dtype="int8"), lambda a: a.write(0, 128), "write_dtype", "write|int8|128"
    ),
    "negative into uint8": Case(
        lambda: empty(dtype="uint8"), lambda a: a.write(0, [-1]), "write_dtype", "write|uint8|int64"
    ),
    "complex into float": Case(
        empty, lambda a: a.write(0, 1 + 2j), "write_dtype", "write|float64|complex128|(1+2j)"
    ),
    "string into float": Case(
        empty, lambda a: a.write(0, "1.0"), "write_dtype", "write|float64|<U3"
    ),
    "number into strings": Case(
        lambda: empty(dtype="S3"), lambda a: a.write(0, 1), "write_dtype", "write|S3|int64"
    ),
    "string too long": Case(
        lambda: empty(dtype="S3"), lambda a: a.write(0, b"abcd"), "write_dtype", "write|S3|S4"
    ),
    "integer that float64 rounds": Case(
        empty, lambda a: a.write(0, 2**53 + 1), "write_dtype", "write|float64|int64"
    ),
    "float that float32 overflows": Case(
        lambda: empty(dtype="float32"), lambda a: a.write(0, 1e39), "write_dtype", "write|float32"
    ),
    "number into bool": Case(
        lambda: empty(dtype="bool"), lambda a: a.write(0, 1), "write_dtype", "write|bool|int64"
    ),
    "bool into numbers": Case(
        empty, lambda a: a.write(0, True), "write_dtype", "write|float64|bool"
    ),
    "None": Case(empty, lambda a: a.write(0, None), "write_dtype", "write|float64|object"),
    "crooked list": Case(
        empty, lambda a: a.write(0, [[1.0], [1.0, 2.0]]), "write_dtype", "write|nested list"
    ),
    "scatter of another dtype": Case(
        empty,
        lambda a: a.scatter([0], np.ones((1, 2), np.int64)),
        "write_dtype",
        "scatter|float64|int64",
    ),
    # read, gather, stack, concat
    "read before the first": Case(
        filled, lambda a: a.read(-1), "read_out_of_range", "read|slot -1|negative|from 0"
    ),
    "read past the end": Case(
        filled, lambda a: a.read(3), "read_out_of_range", "read|slot 3|3 slots"
    ),
    "read twice": Case(
        after_read, lambda a: a.read(1), "cleared", "read|slot 1|clear_after_read=False"
    ),
    "gather twice": Case(
        lambda: filled(clear_after_read=True),
        lambda a: a.gather([0, 1, 0]),
        "cleared",
        "gather|slot 0|clear_after_read=False",
    ),
    "stack after a read": Case(after_read, lambda a: a.stack(), "cleared", "stack|slot 1"),
    "concat after a read": Case(after_read, lambda a: a.concat(), "cleared", "concat|slot 1"),
    "read of nothing": Case(
        empty, lambda a: a.read(2), "unknown_element_shape", "read|slot 2|never|element_shape="
    ),
    "stack of nothing": Case(
        lambda: empty(element_shape=(None, 2)),
        lambda a: a.stack(),
        "unknown_element_shape",
        "stack|slot 0|(?, 2)|element_shape=",
    ),
    "read of another dtype": Case(
        filled, lambda a: a.read(0, dtype="float32"), "read_dtype", "read|dtype|array's"
    ),
    "gather of another dtype": Case(
        filled, lambda a: a.gather([0], dtype="int64"), "read_dtype", "gather|dtype|array's"
    ),
    "ragged stack": Case(
        ragged, lambda a: a.stack(), "inconsistent_shapes", "stack|slot 1|(1, 2)|(2,)|one by one"
    ),
    "ragged gather": Case(
        ragged, lambda a: a.gather([2, 0]), "inconsistent_shapes", "gather|slot 0|(2,)|(3,)"
    ),
    "ragged concat": Case(
        ragged, lambda a: a.concat(), "inconsistent_shapes", "concat|slot 1|(1, 2)|(2,)"
    ),
    "gather past the end": Case(
        filled, lambda a: a.gather([0, 3]), "read_out_of_range", "gather|slot 3|3 slots"
    ),
    "gather of another shape": Case(
        filled,
        lambda a: a.gather([0], element_shape=(3,)),
        "gather_element_shape",
        "gather|(3,)|(2,)|does not fit",
    ),
    "concat of scalars": Case(
        scalars, lambda a: a.concat(), "concat_scalar", "concat|slot 0|scalar|use stack"
    ),
    "concat of another shape": Case(
        lambda: empty().unstack(np.ones((3, 2, 4))),
        lambda a: a.concat(element_shape_except0=(5,)),
        "concat_except0",
        "concat|slot 0|(2, 4)|(5,)",
    ),
    "empty gather": unimplemented(
        empty, lambda a: a.gather([]), "empty_gather", "gather|nothing to stack|element_shape="
    ),
    "empty stack": unimplemented(
        lambda: empty(0), lambda a: a.stack(), "empty_gather", "stack|nothing to stack"
    ),
    "empty concat": unimplemented(
        lambda: empty(0), lambda a: a.concat(), "empty_concat", "concat|element_shape_except0="
    ),
    # scatter, unstack, split
    "scatter past the end": Case(
        empty,
        lambda a: a.scatter([0, 1, 5], ROWS),
        "scatter_out_of_range",
        "scatter|slot 5|3 slots|dynamic_size",
    ),
    "scatter before the first": Case(
        empty, lambda a: a.scatter([0, -1, 1], ROWS), "write_out_of_range", "scatter|slot -1"
    ),
    "scatter to a slot twice": Case(
        empty, lambda a: a.scatter([0, 1, 0], ROWS), "already_written", "scatter|slot 0|once"
    ),
    "scatter onto a value": Case(
        lambda: empty(4).write(2, ROW),
        lambda a: a.scatter([3, 0, 2], ROWS),
        "already_written",
        "scatter|slot 2|once",
    ),
    "scatter of too few": Case(
        empty, lambda a: a.scatter([0, 1], ROWS), "scatter_length", "scatter|2 indices|3 rows"
    ),
    "scatter of a scalar": Case(
        empty, lambda a: a.scatter([0], 1.0), "scatter_scalar", "scatter|scalar|use write"
    ),
    "scatter of another shape": Case(
        lambda: empty(element_shape=(3,)),
        lambda a: a.scatter([2, 1, 0], ROWS),
        "incompatible_element_shape",
        "scatter|slot 2|(3,)|(2,)",
    ),
    "scatter far away": exhausted(
        lambda: filled(dynamic_size=True),
        lambda a: a.scatter([3, 2**60], ROWS[:2]),
        "too_large",
        "scatter|not enough memory",
    ),
    "scatter of ten dimensions": Case(
        empty, lambda a: a.scatter([0], np.ones((1,) * 10)), "rank", "scatter|at most 8|10|reshape"
    ),
    "unstack of too many": Case(
        lambda: empty(2), lambda a: a.unstack(ROWS), "scatter_out_of_range", "scatter|slot 2"
    ),
    "indices in a table": Case(
        empty, lambda a: a.scatter([[0]], ROWS), "indices_rank", "scatter|indices|vector|(1, 1)"
    ),
    "float indices": Case(
        empty, lambda a: a.scatter([0.0], ROWS[:1]), "indices_rank", "scatter|indices|float64"
    ),
    "one index to gather": Case(
        filled, lambda a: a.gather(1), "indices_rank", "gather|indices|vector|()"
    ),
    "split of a scalar": Case(
        empty, lambda a: a.split(1.0, [1]), "split_scalar", "split|scalar|use write"
    ),
    "split with lengths in a table": Case(
        empty, lambda a: a.split(ROWS, [[3]]), "split_lengths_rank", "split|lengths|vector|(1, 1)"
    ),
    "split with one length": Case(
        empty, lambda a: a.split(ROWS, 3), "split_lengths_rank", "split|lengths|vector|()"
    ),
    "split that does not add up": Case(
        empty, lambda a: a.split(ROWS, [1, 1, 2]), "split_sum", "split|add up to 4|has 3"
    ),
    "split into negative lengths": Case(
        empty, lambda a: a.split(ROWS, [4, -1, 0]), "split_negative", "split|length 1 is -1"
    ),
    "split into too few": Case(
        lambda: empty(infer_shape=False),
        lambda a: a.split(ROWS, [1, 2]),
        "split_count",
        "split|2 lengths|3 slots",
    ),
    "split into too many": Case(
        lambda: empty(2, infer_shape=False),
        lambda a: a.split(ROWS, [1, 1, 1]),
        "split_count",
        "split|3 lengths|2 slots|dynamic_size=True",
    ),
    "split into unequal pieces": Case(
        empty,
        lambda a: a.split(ROWS, [1, 2, 0]),
        "incompatible_element_shape",
        "split|slot 1|(1, 2)|reshape",
    ),
    "split onto a value": Case(
        lambda: empty(infer_shape=False).write(1, ROWS),
        lambda a: a.split(ROWS, [1, 1, 1]),
        "already_written",
        "split|slot 1|once",
    ),
    # gradients
    "sum of other shapes": Case(
        added,
        lambda a: a.write(1, np.ones(3)),
        "incompatible_element_shape",
        "write|slot 1|(2,)|(3,)",
    ),
    "ragged sum of other shapes": Case(
        ragged_gradient,
        lambda a: a.accumulate(1, np.ones((2, 2))),
        "aggregate_shape",
        "accumulate|slot 1|(1, 2)|(2, 2)|equal shapes",
    ),
    "sum into virtual zeros of other shapes": Case(
        lambda: ragged().grad("gradients"),
        lambda a: a.accumulate(2, np.ones(2)),
        "aggregate_shape",
        "accumulate|slot 2|(3,)|(2,)",
    ),
    "sum of bools": Case(
        lambda: empty(1, "bool").unstack([True]).grad("gradients").write(0, True),
        lambda a: a.write(0, True),
        "aggregate_dtype",
        "write|slot 0|bools have no sum|numbers",
    ),
    "sum of bools of one scatter": Case(
        lambda: empty(1, "bool").unstack([True]).grad("gradients"),
        lambda a: a.scatter([0, 0], [True, False]),
        "aggregate_dtype",
        "scatter|slot 0|bools have no sum|numbers",
    ),
    "sum after a read": Case(
        lambda: after_sum_read(), lambda a: a.write(1, ROW), "already_read", "write|slot 1|was read"
    ),
    "write past a gradient's end": Case(
        gradient, lambda a: a.write(3, ROW), "write_out_of_range", "write|slot 3|3 slots"
    ),
    "append to a gradient": Case(
        gradient, lambda a: a.append(ROW), "write_out_of_range", "append|slot 3"
    ),
    "accumulate forward": Case(
        filled, lambda a: a.accumulate(0, ROW), "not_gradient", "accumulate|forward|grad(source)"
    ),
    "accumulate strings forward": Case(
        lambda: empty(dtype="S3"), lambda a: a.accumulate(0, b"a"), "not_gradient", "accumulate"
    ),
    "read before a gradient's first": Case(
        gradient, lambda a: a.read(-1), "read_out_of_range", "read|slot -1|negative|from 0"
    ),
    "gradient of nothing": Case(
        lambda: empty().grad("gradients"),
        lambda a: a.read(0),
        "unknown_element_shape",
        "read|slot 0|element_shape=",
    ),
    "source that is no string": Case(
        filled, lambda a: a.grad(3), "source", "grad|source must be a string|3"
    ),
    "flow of another array": Case(
        filled, lambda a: a.grad("g", flow=empty().flow), "flow", "grad|flow of state_|own"
    ),
    "negative prefix": Case(
        filled,
        lambda a: a.grad_with_shape("g", [2, -1]),
        "prepend_negative",
        "grad|shape to prepend|the dimension -1",
    ),
    "prefix of eight": Case(
        filled, lambda a: a.grad_with_shape("g", [1] * 8), "rank", "grad|at most 8|9"
    ),
    "prefix of nine": Case(filled, lambda a: a.grad_with_shape("g", [1] * 9), "rank", "grad|8"),
}  # fmt: skip
CASES |= {
    f"gradient of {dtype}": unimplemented(
        lambda dtype=dtype: empty(dtype=dtype),
        lambda a: a.grad("gradients"),
        "no_gradient",
        "grad|no gradients",
    )
    for dtype in ("S5", "U3", "datetime64[s]", RECORD)
}
CASES |= {
    f"{name} with index {index!r}": Case(
        filled, lambda a, op=op, index=index: op(a, index), "index_rank", f"{name}|index|{word}"
    )
    for name, op in {
        "write": lambda a, index: a.write(index, ROW),
        "read": lambda a, index: a.read(index),
        "accumulate": lambda a, index: a.accumulate(index, ROW),
    }.items()
    for index, word in [(1.0, "1.0"), ("1", "'1'"), (None, "None"), ([1], "shape (1,)")]
}
CASES |= {
    f"{name} on a closed array": Case(
        lambda: closed(), operation, "closed", f"{name}|closed|make a new one"
    )
    for name, operation in {
        "write": lambda a: a.write(0, ROW),
        "append": lambda a: a.append(ROW),
        "read": lambda a: a.read(0),
        "gather": lambda a: a.gather([0]),
        "stack": lambda a: a.stack(),
        "scatter": lambda a: a.scatter([0], ROWS[:1]),
        "concat": lambda a: a.concat(),
        "split": lambda a: a.split(ROWS, [1, 1, 1]),
        "accumulate": lambda a: a.accumulate(0, ROW),
        "grad": lambda a: a.grad("gradients"),
        "size": lambda a: a.size(),
    }.items()
}


def after_zeros():
    array = empty(element_shape=(2,), clear_after_read=False)
    array.read(0)
    return array


def after_sum_read():
    array = added()
    array.read(1)
    return array


def closed():
    array = filled()
    array.close()
    return array


def snapshot(array):
    """All that an operation could change and a caller could see."""
    facts = repr(array), array.element_shape, array.closed, array.dynamic_size, array.infer_shape
    return facts if array.closed else (*facts, len(array), array._states().tolist())


def outcome(operation):
    try:
        value = operation()
    except nbta.NbtaError as error:
        return error.reason
    return value.dtype, value.tolist()


def remaining(array):
    """What the array still does, which shows what it holds."""
    if array.closed:
        return None
    results = [len(array), array.dynamic_size]
    for index in range(len(array)):
        if not array._states()[index]:
            value = np.ones(2, array.dtype) if array.dtype.names is None else np.ones(2, RECORD)
            results.append(outcome(lambda i=index, v=value: array.write(i, v).gather([i])))
    return results + [outcome(lambda i=index: array.read(i)) for index in range(len(array))]


@pytest.mark.parametrize("label", CASES)
def test_an_error_says_what_is_wrong_and_changes_nothing(label):
    make, operation, reason, words, kind = CASES[label]
    array = make()
    before = snapshot(array)
    with pytest.raises(nbta.NbtaError) as caught:
        operation(array)
    assert type(caught.value) is kind
    assert caught.value.reason == reason
    message = str(caught.value)
    name, *others = words.split("|")
    assert message.startswith(f"{name} on {array.handle.name}: ")
    for word in others:
        assert word in message
    assert snapshot(array) == before
    assert array.closed or python_calls.native(python_calls.guards_intact)(array._address)
    assert remaining(array) == remaining(make())


CREATIONS = {
    "negative size": Case(
        None, lambda _: empty(-1), "negative_size", "create|state|size is -1|0 or more"
    ),
    "size that is a list": Case(None, lambda _: empty([2, 3]), "size_rank", "size|(2,)"),
    "size that is a float": Case(None, lambda _: empty(2.0), "size_rank", "size|integer|2.0"),
    "absurd size": exhausted(
        None, lambda _: empty(2**60), "too_large", "create|state|1152921504606846976 slots|fewer"
    ),
    "absurd elements": exhausted(
        None, lambda _: empty(1, element_shape=(2**40, 2**40)), "too_large", "create|state|memory"
    ),
    "size beyond int64": exhausted(None, lambda _: empty(2**80), "too_large", "create|state"),
    "objects": Case(None, lambda _: empty(1, object), "dtype", "dtype|Python objects|convert"),
    "record of objects": Case(
        None, lambda _: empty(1, [("a", object)]), "dtype", "dtype|Python objects|convert"
    ),
    "no dtype": Case(None, lambda _: empty(1, "number"), "dtype", "dtype|'number'|not a dtype"),
    "strings without width": Case(None, lambda _: empty(1, "S"), "dtype", "dtype|width"),
    "array dtype": Case(None, lambda _: empty(1, "(2,)f8"), "dtype", "dtype|fixed size"),
    "nine dimensions": Case(
        None, lambda _: empty(1, element_shape=(1,) * 9), "rank", "element_shape|at most 8|9"
    ),
    "negative dimension": Case(
        None, lambda _: empty(1, element_shape=(2, -1)), "negative_extent", "element_shape|-1|None"
    ),
    "fractional dimension": Case(
        None, lambda _: empty(1, element_shape=(2.5,)), "shape", "element_shape|2.5|integer"
    ),
}


@pytest.mark.parametrize("label", CREATIONS)
def test_an_array_that_cannot_be_made(label):
    _, operation, reason, words, kind = CREATIONS[label]
    with pytest.raises(nbta.NbtaError) as caught:
        operation(None)
    assert (type(caught.value), caught.value.reason) == (kind, reason)
    for word in words.split("|"):
        assert word in str(caught.value)


def test_a_prefix_is_a_vector():
    with pytest.raises(nbta.InvalidArgumentError, match=r"shape_to_prepend must be a vector"):
        filled().grad_with_shape("g", [[2]])


# The classes.


@pytest.mark.parametrize(
    ("kind", "builtin", "code"),
    [
        (nbta.InvalidArgumentError, ValueError, "INVALID_ARGUMENT"),
        (nbta.NotFoundError, KeyError, "NOT_FOUND"),
        (nbta.ResourceExhaustedError, MemoryError, "RESOURCE_EXHAUSTED"),
        (nbta.UnimplementedError, NotImplementedError, "UNIMPLEMENTED"),
        (nbta.FailedPreconditionError, RuntimeError, "FAILED_PRECONDITION"),
    ],
)
def test_errors_are_built_in_errors_too(kind, builtin, code):
    error = kind("what was wrong")
    assert isinstance(error, nbta.NbtaError)
    assert isinstance(error, builtin)
    assert (error.code, error.reason, str(error)) == (code, None, "what was wrong")


def test_errors_survive_pickling():
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        filled().write(0, ROW)
    caught.value.add_note("in the second epoch")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.__notes__ == ["in the second epoch"]
    assert type(again) is nbta.InvalidArgumentError
    assert (again.reason, str(again)) == ("already_written", str(caught.value))


# What is not an error.


@pytest.mark.parametrize(
    ("dtype", "given", "stored"),
    [
        ("float64", 3, 3.0),
        ("float32", 0.1, np.float32(0.1)),
        ("float64", [[1, 2], [3, 4]], [[1.0, 2.0], [3.0, 4.0]]),
        ("complex128", 1.5, 1.5 + 0j),
        ("int8", 127, 127),
        ("uint64", 2**64 - 1, 2**64 - 1),
        ("bool", [True, False], [True, False]),
        ("float32", float("inf"), np.inf),
        ("S3", b"ab", b"ab"),
        ("U3", ["a", "bcd"], ["a", "bcd"]),
        ("float64", [], []),
    ],
)
def test_python_values_take_the_dtype_where_nothing_is_lost(dtype, given, stored):
    value = empty(1, dtype).write(0, given).read(0)
    assert np.asarray(value, dtype).tolist() == np.asarray(stored, dtype).tolist()
    assert np.shape(value) == np.shape(given)


@pytest.mark.parametrize("index", [True, np.int8(1), np.uint64(1), np.array(1)])
def test_whatever_is_an_integer_to_python_is_an_index(index):
    array = empty().write(index, 2.5)
    assert array._states().tolist() == [0, 1, 0]
    assert array.read(index) == 2.5


GIVEN = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    "value",
    [GIVEN.T, GIVEN[::-1], GIVEN[:, ::2], np.asfortranarray(GIVEN), GIVEN.astype(">f8")],
    ids=["transposed", "reversed", "strided", "fortran", "swapped"],
)
def test_any_memory_layout_is_taken(value):
    for array in (empty(1).write(0, value), empty(1).unstack(value[None])):
        got = array.read(0)
        assert got.flags.c_contiguous
        assert got.dtype.isnative
        np.testing.assert_array_equal(got, value.astype("float64"))
    array = empty(len(value)).unstack(value)
    np.testing.assert_array_equal(array.stack(), value.astype("float64"))


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
def test_elements_without_data(shape):
    array = empty(2, dynamic_size=True).append(np.ones(shape))
    assert array.element_shape == shape
    assert array.read(2).shape == shape
    array.write(5, np.ones(shape))
    assert array.gather([0, 1, 3, 4, 5]).shape == (5, *shape)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 6"):
        array.read(6)


def test_eight_dimensions_are_taken():
    array = empty(1, element_shape=(1, 2, 1, 2, 1, 2, 1, 2)).write(0, np.ones((1, 2) * 4))
    assert array.stack().shape == (1, 1, 2, 1, 2, 1, 2, 1, 2)
    assert empty(1).grad_with_shape("g", [1] * 8).element_shape is None
    assert scalars().grad_with_shape("g", [1] * 8).element_shape == (1,) * 8


# Values that lie in the array's own memory.


@pytest.mark.parametrize("infer_shape", [True, False])
def test_a_slot_is_written_to_another(infer_shape):
    array = empty(0, dynamic_size=True, clear_after_read=False, infer_shape=infer_shape)
    array.append(np.arange(3.0))
    for k in range(40):
        array.write(2 * k + 1, array.read(max(2 * k - 1, 0)))
    np.testing.assert_array_equal(array.gather(range(1, 80, 2)), [[0, 1, 2]] * 40)


@pytest.mark.parametrize("infer_shape", [True, False])
def test_a_stack_is_scattered_into_the_array_that_it_came_from(infer_shape):
    array = empty(3, dynamic_size=True, clear_after_read=False, infer_shape=infer_shape)
    array.unstack(np.arange(6.0).reshape(3, 2))
    for _ in range(5):
        view = array.stack()
        array.scatter(range(len(view), 2 * len(view)), view[::-1] if len(view) > 6 else view)
    assert len(array) == 96
    expected = np.arange(6.0).reshape(3, 2)
    for k in range(5):
        expected = np.concatenate([expected, expected[::-1] if k > 1 else expected])
    np.testing.assert_array_equal(array.stack(), expected)


@pytest.mark.parametrize("make", [filled, lambda **o: empty(3, infer_shape=False, **o)])
def test_a_sum_is_added_to_other_sums(make):
    array = make(clear_after_read=False)
    sums = array.grad("gradients", clear_after_read=False)
    sums.write(0, np.array([1.0, 2.0]))
    first = sums.read(0)
    for _ in range(3):
        sums.accumulate(1, first)
    second = sums.gather([1])[0]
    sums.accumulate(2, second).accumulate(2, first)
    assert sums.read(2).tolist() == [4.0, 8.0]
    assert first.tolist() == [1.0, 2.0]


def test_a_slot_is_added_to_itself():
    base = filled()
    sums = base.grad("gradients", clear_after_read=False).write(0, np.array([1.0, 2.0]))
    own = python_calls.native(python_calls.data_bytes)(sums._address)[:16].view("float64")
    sums.accumulate(0, own)
    assert sums.read(0).tolist() == [2.0, 4.0]


def test_a_message_has_no_value_of_any_length():
    """What it says first and last, where it happened and what to do, is there."""
    huge = {f"key {k}": object for k in range(50_000)}
    with pytest.raises(nbta.NbtaError) as failed:
        nbta.grad(lambda x, y: x)(1.0, [object(), set(huge)])
    assert len(str(failed.value)) <= 2000
    error = nbta.InvalidArgumentError("first " + "x" * 10_000 + " last")
    assert len(str(error)) == 2000
    assert str(error).startswith("first x")
    assert "characters more" in str(error)
    assert str(error).endswith("x last")
    same = pickle.loads(pickle.dumps(error))
    assert str(same) == str(error)
