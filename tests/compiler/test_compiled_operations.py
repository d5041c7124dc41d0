"""Every operation of arrays in users' compiled functions does what it does in Python."""

import inspect

import numpy as np
import pytest
from numba import njit, prange, typed

import nbta
from nbta.errors import OPERATIONS
from nbta.runtime import extension, python_calls
from nbta.symbolic import SymbolicTensorArray
from nbta.tensor_array import TensorArray

#: Lists from Python, which Numba wants to give up one day.
pytestmark = pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPendingDeprecationWarning")

RECORD = np.dtype([
    ("tag", "S3"), ("x", np.float64), ("pair", np.int16, (2,)), ("deep", [("q", np.float32)]),
])  # fmt: skip


@njit(cache=True)
def gather(ta, indices):
    return ta.gather(indices)


@njit(cache=True)
def gather_as(ta, indices, element_shape):
    return ta.gather(indices, element_shape=element_shape)


@njit(cache=True)
def gather_typed(ta, indices):
    return ta.gather(indices, dtype=np.float32, name="name")


@njit(cache=True)
def scatter(ta, indices, value):
    return ta.scatter(indices, value)


@njit(cache=True)
def unstack(ta, value):
    return ta.unstack(value)


@njit(cache=True)
def split(ta, value, lengths):
    return ta.split(value, lengths)


@njit(cache=True)
def concat(ta):
    return ta.concat()


@njit(cache=True)
def concat_as(ta, after):
    return ta.concat(element_shape_except0=after)


@njit(cache=True)
def stack(ta):
    return ta.stack()


@njit(cache=True)
def append(ta, value):
    return ta.append(value)


@njit(cache=True)
def close(ta):
    ta.close()


@njit(cache=True)
def with_shape(ta, source, prefix):
    return ta.grad_with_shape(source, prefix)


@njit(cache=True)
def item(ta, index):
    return ta[index]


@njit(cache=True)
def everything(ta):
    return np.asarray(ta), np.array(ta), np.asarray(ta, np.complex128), len(ta)


@njit(cache=True)
def total(ta):
    found = 0.0
    for k, value in enumerate(ta):
        found += (k + 1) * value.sum()
    return found


@njit(cache=True)
def doubled(ta):
    for value in ta:
        if len(ta) < 8:
            ta.append(2 * value)
    return ta


def array(shape=(2,), size=3, dtype="float64", **options):
    options = {"clear_after_read": False, "tensor_array_name": "state", **options}
    return nbta.TensorArray(dtype, size, element_shape=shape, **options)


def ragged(**options):
    options = {"shape": None, "infer_shape": False, **options}
    return array(**options).write(0, np.ones((1, 2))).write(1, np.zeros((2, 2)))


def full(**options):
    return array(**options).unstack(ROWS)


def closed():
    ta = full()
    ta.close()
    return ta


def states(ta):
    return [] if ta.closed else ta._states().tolist()


def outcome(operation, ta):
    """What an operation gives, or why it fails, and what becomes of the array."""
    name = ta.handle.name
    try:
        result = operation(ta)
    except nbta.NbtaError as error:
        result = type(error), error.reason, str(error).replace(name, "NAME")
    if isinstance(result, TensorArray):
        assert result.handle == ta.handle
        result = None
    assert ta.closed or python_calls.native(python_calls.guards_intact)(ta._address)
    return result, states(ta), ta.element_shape, len(states(ta))


def same(make, compiled, eager):
    """Both ways come to the same."""
    mine, theirs = outcome(compiled, make()), outcome(eager, make())
    assert mine[1:] == theirs[1:]
    assert type(mine[0]) is type(theirs[0])
    if theirs[0] is None or (isinstance(theirs[0], tuple) and isinstance(theirs[0][0], type)):
        assert mine[0] == theirs[0]
        return
    for one, other in zip(parts(mine[0]), parts(theirs[0]), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


ROWS = np.arange(6.0).reshape(3, 2)
FEW = np.array([2, 0])
INDICES = [FEW, FEW.astype(np.uint8), np.arange(3)[::-2], (2, 0), [2, 0], typed.List([2, 0])]
LENGTHS = (1, 2, 0)
OPEN = {"shape": (None, 2), "infer_shape": False}

CASES = {
    "gather": (full, lambda a: gather(a, FEW), lambda a: a.gather(FEW)),
    "gather twice": (
        lambda: full(clear_after_read=True), lambda a: gather(a, (1, 1)), lambda a: a.gather([1, 1])
    ),
    "gather none": (full, lambda a: gather(a, FEW[:0]), lambda a: a.gather([])),
    "gather none of ()": (full, lambda a: gather(a, ()), lambda a: a.gather([])),
    "gather none of unknown": (
        lambda: array((None,)), lambda a: gather(a, FEW[:0]), lambda a: a.gather([])
    ),
    "gather after": (full, lambda a: gather(a, (0, 3)), lambda a: a.gather([0, 3])),
    "gather before": (full, lambda a: gather(a, (-1,)), lambda a: a.gather([-1])),
    "gather closed": (closed, lambda a: gather(a, FEW), lambda a: a.gather(FEW)),
    "gather as": (
        full, lambda a: gather_as(a, FEW, (None,)), lambda a: a.gather(FEW, element_shape=(None,))
    ),
    "gather as another": (
        full, lambda a: gather_as(a, FEW, (3,)), lambda a: a.gather(FEW, element_shape=(3,))
    ),
    "gather of unknown rank": (
        lambda: ragged(), lambda a: gather_as(a, (1,), (None, 2)),
        lambda a: a.gather([1], element_shape=(None, 2)),
    ),
    "gather of another rank": (
        lambda: ragged(), lambda a: gather_as(a, (1,), (None,)),
        lambda a: a.gather([1], element_shape=(None,)),
    ),
    "gather of a dtype": (
        full, lambda a: gather_typed(a, FEW), lambda a: a.gather(FEW, dtype=np.float32)
    ),
    "scatter": (array, lambda a: scatter(a, FEW, ROWS[:2]), lambda a: a.scatter(FEW, ROWS[:2])),
    "scatter F": (
        array, lambda a: scatter(a, FEW, np.asfortranarray(ROWS[1:])),
        lambda a: a.scatter(FEW, ROWS[1:]),
    ),
    "scatter twice": (
        array, lambda a: scatter(a, (1, 1), ROWS[:2]), lambda a: a.scatter([1, 1], ROWS[:2])
    ),
    "scatter few": (array, lambda a: scatter(a, (1,), ROWS), lambda a: a.scatter([1], ROWS)),
    "scatter after": (
        array, lambda a: scatter(a, (3,), ROWS[:1]), lambda a: a.scatter([3], ROWS[:1])
    ),
    "scatter none": (
        array, lambda a: scatter(a, FEW[:0], ROWS[:0]), lambda a: a.scatter([], ROWS[:0])
    ),
    "scatter another rank": (
        array, lambda a: scatter(a, (0,), ROWS[0]), lambda a: a.scatter([0], ROWS[0])
    ),
    "scatter a scalar": (
        lambda: array(()), lambda a: scatter(a, (0,), 1.5), lambda a: a.scatter([0], 1.5)
    ),
    "scatter closed": (
        closed, lambda a: scatter(a, FEW, ROWS[:2]), lambda a: a.scatter(FEW, ROWS[:2])
    ),
    "unstack": (array, lambda a: unstack(a, ROWS), lambda a: a.unstack(ROWS)),
    "unstack T": (array, lambda a: unstack(a, ROWS[:2].T[:, :]), lambda a: a.unstack(ROWS[:2].T)),
    "unstack many": (
        lambda: array(size=2), lambda a: unstack(a, ROWS), lambda a: a.unstack(ROWS)
    ),
    "unstack a tuple": (
        array, lambda a: unstack(a, ((1, 2.0), (3, 4.5))), lambda a: a.unstack([[1, 2.0], [3, 4.5]])
    ),
    "unstack a list": (
        lambda: array(()), lambda a: unstack(a, typed.List([1.0, 2.0])),
        lambda a: a.unstack([1.0, 2.0]),
    ),
    "unstack none": (
        lambda: array(None), lambda a: unstack(a, ROWS[:0]), lambda a: a.unstack(ROWS[:0])
    ),
    "unstack none of another shape": (
        array, lambda a: unstack(a, ROWS[:0, :1]), lambda a: a.unstack(ROWS[:0, :1])
    ),
    "unstack none of any shape": (
        lambda: array(**OPEN), lambda a: unstack(a, ROWS[:0]), lambda a: a.unstack(ROWS[:0])
    ),
    "unstack a scalar": (lambda: array(()), lambda a: unstack(a, 2.0), lambda a: a.unstack(2.0)),
    "split": (
        lambda: array(**OPEN), lambda a: split(a, ROWS, LENGTHS), lambda a: a.split(ROWS, LENGTHS)
    ),
    "split a list": (
        lambda: array((None,), infer_shape=False),
        lambda a: split(a, typed.List([1.0, 2.0, 3.0]), LENGTHS),
        lambda a: a.split([1.0, 2.0, 3.0], LENGTHS),
    ),
    "split too few": (
        lambda: array(**OPEN), lambda a: split(a, ROWS, (1, 2)), lambda a: a.split(ROWS, [1, 2])
    ),
    "split another sum": (
        lambda: array(**OPEN), lambda a: split(a, ROWS, (1, 1, 0)),
        lambda a: a.split(ROWS, [1, 1, 0]),
    ),
    "split negative": (
        lambda: array(**OPEN), lambda a: split(a, ROWS, (4, -1, 0)),
        lambda a: a.split(ROWS, [4, -1, 0]),
    ),
    "split a scalar": (lambda: array(()), lambda a: split(a, 1.0, ()), lambda a: a.split(1.0, [])),
    "split closed": (closed, lambda a: split(a, ROWS, LENGTHS), lambda a: a.split(ROWS, LENGTHS)),
    "concat": (
        lambda: array(**OPEN).split(ROWS, LENGTHS), concat, lambda a: a.concat()
    ),
    "concat uniform": (lambda: array((1, 2)).unstack(ROWS[:, None]), concat, lambda a: a.concat()),
    "concat scalars": (lambda: array(()).unstack(ROWS[:, 0]), concat, lambda a: a.concat()),
    "concat no slots": (lambda: array(size=0, **OPEN), concat, lambda a: a.concat()),
    "concat no slots as": (
        lambda: array(size=0, **OPEN), lambda a: concat_as(a, (2,)),
        lambda a: a.concat(element_shape_except0=(2,)),
    ),
    "concat as another": (
        lambda: array(**OPEN).split(ROWS, LENGTHS), lambda a: concat_as(a, (3,)),
        lambda a: a.concat(element_shape_except0=(3,)),
    ),
    "concat unknown rank": (
        lambda: ragged(size=2), lambda a: concat_as(a, (None,)),
        lambda a: a.concat(element_shape_except0=(None,)),
    ),
    "concat closed": (closed, concat, lambda a: a.concat()),
    "close": (full, close, lambda a: a.close()),
    "close twice": (closed, close, lambda a: a.close()),
    "append a tuple": (
        lambda: array(dynamic_size=True), lambda a: append(a, (1, 2.5)),
        lambda a: a.append([1, 2.5]),
    ),
    "append a list": (
        lambda: array(dynamic_size=True), lambda a: append(a, [1.0, 2.5]),
        lambda a: a.append([1, 2.5]),
    ),
    "append another shape": (
        lambda: array(dynamic_size=True), lambda a: append(a, (1.0, 2.0, 3.0)),
        lambda a: a.append([1.0, 2.0, 3.0]),
    ),
    "append no growth": (array, lambda a: append(a, (1.0, 2.0)), lambda a: a.append([1.0, 2.0])),
    "append ()": (
        lambda: array((0,), dynamic_size=True), lambda a: append(a, ()), lambda a: a.append([])
    ),
}  # fmt: skip


@pytest.mark.slow_but_every(18)
@pytest.mark.parametrize("label", CASES)
def test_compiled_as_in_python(label):
    same(*CASES[label])


@pytest.mark.slow
@pytest.mark.parametrize("indices", INDICES, ids=lambda i: type(i).__name__)
def test_vectors_of_integers(indices):
    np.testing.assert_array_equal(gather(full(), indices), ROWS[[2, 0]])
    assert scatter(array(), indices, ROWS[:2]).gather([2, 0]).tolist() == ROWS[:2].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int16", "complex64", "S5", "datetime64[s]", RECORD])
def test_dtypes(dtype):
    values = np.zeros(6, dtype)
    values[...] = np.arange(6).astype("S5" if dtype == "S5" else "int64") if dtype != RECORD else 0
    rows = values.reshape(3, 2)[:, ::-1]
    ta = unstack(array(dtype=dtype), rows)
    np.testing.assert_array_equal(gather(ta, FEW), rows[FEW])
    np.testing.assert_array_equal(item(ta, -1), rows[-1])
    np.testing.assert_array_equal(stack(ta), rows)


# Looking.


@pytest.mark.slow
@pytest.mark.parametrize("make", [full, lambda: full(clear_after_read=True)])
def test_looks_mark_nothing(make):
    ta = make()
    before = states(ta)
    assert item(ta, 1).tolist() == item(ta, -2).tolist() == ROWS[1].tolist()
    assert not item(ta, 1).flags.writeable
    assert total(ta) == ROWS.sum(axis=1) @ [1, 2, 3]
    as_array, copy, cast, count = everything(ta)
    for found in (as_array, copy, cast):
        np.testing.assert_array_equal(found, ROWS)
    assert (copy.flags.writeable, cast.dtype, count) == (True, np.complex128, 3)
    assert states(ta) == before


@pytest.mark.slow
def test_looks_at_items():
    ta = array((), dynamic_size=True).write(1, 1.5)
    assert (item(ta, 0), item(ta, -2), states(ta)) == (0.0, 1.5, [0, 1, 0])
    assert ta.write(0, 2.5).gather([0, 1]).tolist() == [2.5, 1.5]
    sums = ta.grad("s").write(0, 1.0)
    assert (item(sums, 0), item(sums.write(0, 1.0), 0), item(sums, 1)) == (1, 2, 0)


def test_looks_outside_end_a_loop_in_python_too():
    for index in (3, -4):
        with pytest.raises(
            nbta.OutOfRangeError, match=rf"getitem on \w+: there is no slot {index}"
        ):
            item(full(), index)
    with pytest.raises(nbta.InvalidArgumentError, match="closed"):
        item(closed(), 0)
    with pytest.raises(nbta.InvalidArgumentError, match="closed"):
        total(closed())
    read = full(clear_after_read=True)
    read.read(1)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 1 was cleared"):
        total(read)


def test_a_loop_sees_what_it_appends():
    ta = doubled(array(dynamic_size=True).unstack(ROWS))
    assert ta.stack()[3:].tolist() == [*(2 * ROWS).tolist(), *(4 * ROWS[:2]).tolist()]


@pytest.mark.slow
def test_ragged_elements_are_looped_over():
    ta = array(**OPEN).split(ROWS, LENGTHS)
    assert total(ta) == ROWS[0].sum() + 2 * ROWS[1:].sum()


@njit(parallel=True, cache=True)
def look_in_parallel(ta, out):
    for k in prange(len(out)):
        out[k] = ta[k].sum() + ta[-1][0]
    return out


@pytest.mark.slow
def test_looks_in_a_parallel_loop():
    assert look_in_parallel(full(), np.zeros(3)).tolist() == (ROWS.sum(axis=1) + 4).tolist()
    ta = array(size=4).unstack(ROWS)
    with pytest.raises(nbta.FailedPreconditionError, match="slot 3 may change") as e:
        look_in_parallel(ta, np.zeros(3))
    assert e.value.reason == "look_in_loop"
    with pytest.raises(nbta.FailedPreconditionError, match="slot 2 may change"):
        look_in_parallel(full().grad("s"), np.zeros(3))


# Closing.


@njit(cache=True)
def keep_views(ta, count):
    """Views of an array that is closed before they are used, and memory that others take."""
    first, second = ta.read(0), ta.read(1)
    ta.close()
    taken = 0.0
    for k in range(count):
        taken += np.full(4 * len(first), float(k)).sum()
    return first.sum(), second.sum(), taken


@pytest.mark.slow
def test_views_outlive_the_close():
    values = np.arange(2048.0).reshape(2, 1024)
    ta = array((1024,), 2).unstack(values)
    first, second, _ = keep_views(ta, 50)
    assert (first, second) == (values[0].sum(), values[1].sum())
    assert ta.closed


# Gradient arrays.


@pytest.mark.slow
def test_grad_with_shape():
    ta = full()
    made = with_shape(ta, "s", (3,))
    assert (made.element_shape, made.handle) == ((3, 2), ta.grad("s").handle)
    assert with_shape(full(), "s", np.array([3, 4])).element_shape == (3, 4, 2)
    for prefix, reason in [((-1,), "prepend_negative"), (np.ones(9, int), "rank")]:
        with pytest.raises(nbta.InvalidArgumentError) as e:
            with_shape(full(), "s", prefix)
        assert e.value.reason == reason
    with pytest.raises(nbta.InvalidArgumentError, match=r"of rank 2, .* counts on rank 3"):
        with_shape(ta, "s", (1, 1))


# Records.


@njit(cache=True)
def carry(ta, values):
    """A record from the iteration before, which a later read must not change."""
    for value in values:
        ta.append(value)
    before, found = ta.read(0), 0.0
    for k in range(1, len(ta)):
        now = ta.read(k)
        found += 10 * before.x + now["x"] + now.pair[1] + now.deep.q
        before = now
    ta.append(before)
    for value in ta:
        found += value.x
    return found, ta[-2].tag, before["pair"]


@pytest.mark.slow
def test_records_are_values():
    values = np.zeros(4, RECORD)
    values["x"], values["pair"][:, 1], values["tag"] = np.arange(4), np.arange(4, 8), b"abc"
    values["deep"]["q"] = np.arange(4)
    ta = array((), 0, RECORD, dynamic_size=True)
    found, tag, pair = carry(ta, values)
    steps = sum(10 * (k - 1) + k + (4 + k) + k for k in range(1, 4))
    assert found == steps + values["x"].sum() + values["x"][-1]
    assert (tag, pair.tolist()) == (b"abc", [0, 7])
    np.testing.assert_array_equal(ta.stack(), values[[0, 1, 2, 3, 3]])


# The table.

#: What is there for Python alone: pictures, and what Python's own protocols ask for.
PYTHON_ONLY = {"plot"}


def methods(kind):
    functions = inspect.getmembers(kind, inspect.isroutine)
    return {name for name, _ in functions if name[0] != "_"}


def test_each_operation_is_there_in_three_forms():
    operations = methods(TensorArray) - PYTHON_ONLY
    assert len(operations) >= 16
    symbolic = {name for name in operations if name in vars(SymbolicTensorArray)}
    assert operations - symbolic == set()
    assert operations == set(extension.methods)
    kernels = {"create", "take", "range", "join", "enter", "leave", "arrive", "depart"}
    looks = {"getitem", "asarray", "offsets"}  # which are no methods
    assert set(OPERATIONS) - operations - kernels == looks


@pytest.mark.slow_but_every(16)
@pytest.mark.parametrize("name", sorted(methods(TensorArray) - PYTHON_ONLY))
def test_compiled_methods_take_what_eager_ones_take(name):
    eager = inspect.signature(getattr(TensorArray, name)).parameters
    mine = inspect.signature(extension.methods[name]).parameters
    assert set(eager) - {"self"} == set(mine) - {"ta"}
    for word, parameter in eager.items():
        if word != "self":
            assert parameter.default == mine[word].default
