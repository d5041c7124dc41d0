"""Tensor arrays in users' own compiled functions."""

import numpy as np
import pytest
from numba import njit, prange, typeof
from numba.core import event
from numba.core.errors import TypingError

import nbta

RECORD = np.dtype([("a", np.int32), ("b", np.float64)])


ITEMS = [
    "bool",
    "int8",
    "uint16",
    "int64",
    "uint64",
    "float32",
    "complex128",
    "datetime64[s]",
    "U3",
]


@njit(cache=True)
def fill_and_read(ta, values):
    """Write the first value, append the others, and give back what slot 1 and the stack hold."""
    ta.write(0, values[0])
    for k in range(1, len(values)):
        ta = ta.append(values[k])
    return ta.read(1), ta.stack(), len(ta), ta.size()


@njit(cache=True)
def put(ta, index, value):
    return ta.write(index, value)


@njit(cache=True)
def get(ta, index):
    return ta.read(index)


@njit(cache=True)
def append(ta, value):
    return ta.append(value)


@njit(cache=True)
def add(ta, index, value):
    return ta.accumulate(index, value)


@njit(cache=True)
def stacked(ta):
    return ta.stack()


@njit(cache=True)
def sized(ta):
    return ta.size()


@njit(cache=True)
def counted(ta):
    return len(ta)


@njit(cache=True)
def gradient_of(ta, source):
    return ta.grad(source)


def grown(dtype, shape, **options):
    options = {"clear_after_read": False, "element_shape": shape, **options}
    return nbta.TensorArray(dtype, 0, dynamic_size=True, **options)


def fill_eagerly(dtype, values):
    return grown(dtype, values.shape[1:]).unstack(values).stack()


def sample(dtype, shape):
    """Values of any dtype that are all different."""
    dtype = np.dtype(dtype)
    counts = np.arange(1, 1 + int(np.prod(shape)))
    if dtype == RECORD:
        value = np.zeros(len(counts), dtype)
        value["a"], value["b"] = counts, counts / 8
        return value.reshape(shape)
    if dtype.kind == "c":
        return (counts * (1 + 0.5j)).astype(dtype).reshape(shape)
    return (counts % 2 if dtype.kind == "b" else counts).astype(dtype).reshape(shape)


# Each dtype, rank and memory layout.


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "S5"])
def test_items(dtype):
    values = sample(dtype, (20,))
    ta = grown(dtype, ())
    item, everything, count, size = fill_and_read(ta, values)
    assert np.asarray(item, dtype) == values[1]
    assert everything.dtype == values.dtype
    np.testing.assert_array_equal(everything, values)
    np.testing.assert_array_equal(ta.stack(), fill_eagerly(dtype, values))
    assert (count, size) == (20, 20)


@njit(cache=True)
def write_and_read(ta, values):
    for k in range(len(values)):
        ta.write(k, values[k])
    return ta.read(1)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ITEMS)
def test_items_of_each_dtype(dtype):
    values = sample(dtype, (20,))
    ta = grown(dtype, ())
    assert np.asarray(write_and_read(ta, values), dtype) == values[1]
    assert ta.dtype == values.dtype
    np.testing.assert_array_equal(ta.stack(), values)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("dtype", ["int16", "complex64", "U3", RECORD])
def test_elements_of_each_dtype(dtype):
    values = sample(dtype, (20, 3))
    ta = grown(dtype, (3,))
    np.testing.assert_array_equal(write_and_read(ta, values), values[1])
    np.testing.assert_array_equal(ta.stack(), values)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3), (1, 2) * 4])
def test_elements_of_each_rank(shape):
    values = sample("float64", (6, *shape))
    ta = grown("float64", shape)
    element = write_and_read(ta, values)
    np.testing.assert_array_equal(element, values[1])
    np.testing.assert_array_equal(ta.stack(), values)
    assert not element.flags.writeable
    assert element.flags.c_contiguous


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_elements_without_data(shape):
    ta = grown("float64", shape)
    values = np.ones((9, *shape))
    element = write_and_read(ta, values)
    assert (element.shape, ta.stack().shape, len(ta)) == (shape, values.shape, 9)


GIVEN = np.arange(24.0).reshape(4, 6)
LAYOUTS = {
    "F": np.asfortranarray(GIVEN[:3]),
    "strided": GIVEN[:3, ::2],
    "reversed": GIVEN[2::-1, ::-1],
    "C": GIVEN[:3].copy(),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_of_each_layout(layout):
    value = LAYOUTS[layout]
    ta = put(grown("float64", (None, None), infer_shape=False), 0, value)
    np.testing.assert_array_equal(ta.read(0), value)
    uniform = put(grown("float64", value.shape), 1, value)
    np.testing.assert_array_equal(uniform.stack()[1], value)
    sums = grown("float64", value.shape).write(0, value).grad("gradients")
    add(add(sums, 0, value), 0, value)
    np.testing.assert_array_equal(sums.read(0), 2 * value)


@pytest.mark.slow
def test_read_only_values_are_taken():
    value = np.arange(3.0)
    value.flags.writeable = False
    assert put(grown("float64", (3,)), 0, value).read(0).tolist() == [0.0, 1.0, 2.0]


# Growth.


@njit(cache=True)
def grow(count, step):
    ta = nbta.TensorArray(np.int64, dynamic_size=True, element_shape=(2,))
    value = np.zeros(2, np.int64)
    for k in range(count):
        value[:] = k
        ta.write(k * step, value)
    return ta


@pytest.mark.slow
@pytest.mark.parametrize(("count", "step"), [(1, 1), (7, 1), (8, 1), (9, 1), (200, 1), (40, 13)])
def test_growth_across_boundaries(count, step):
    everything = grow(count, step).stack()
    expected = np.zeros(((count - 1) * step + 1, 2), np.int64)
    expected[::step] = np.arange(count)[:, None]
    np.testing.assert_array_equal(everything, expected)


@njit(cache=True)
def grow_ragged(count):
    ta = nbta.TensorArray(np.float64, 0, True, True, None, (None,), False)
    for k in range(count):
        ta.append(np.full(k % 5, float(k)))
    total = 0.0
    for k in range(0, count, 2):
        total += ta.read(k).sum()
    return ta, total


@pytest.mark.slow
def test_ragged_arrays_grow():
    ta, total = grow_ragged(50)
    assert total == sum(k * (k % 5) for k in range(0, 50, 2))
    assert len(ta) == 50
    assert ta.element_shape == (None,)
    for k in range(1, 50, 2):
        np.testing.assert_array_equal(ta.read(k), np.full(k % 5, float(k)))
    with pytest.raises(nbta.InvalidArgumentError, match="slot 0 was cleared"):
        get(ta, 0)


@pytest.mark.slow
def test_ragged_arrays_stack_what_has_one_shape():
    ta = grown("float64", (None,), infer_shape=False).append(np.ones(2)).append(np.zeros(2))
    assert stacked(ta).tolist() == [[1, 1], [0, 0]]
    with pytest.raises(nbta.InvalidArgumentError, match=r"slot 2 has shape \(3,\)"):
        stacked(ta.append(np.ones(3)))


# An element shape that is not known.


def messages(function, *args):
    with pytest.raises(TypingError) as caught:
        function(*args)
    return str(caught.value)


@pytest.mark.slow
def test_an_unknown_rank_is_written_and_not_read():
    ta = grown("float64", None)
    put(put(ta, 0, np.arange(3.0)), 1, np.ones(3))
    np.testing.assert_array_equal(ta.stack(), [[0, 1, 2], [1, 1, 1]])
    np.testing.assert_array_equal(stacked(ta), ta.stack())  # the rank is known by now
    for function, args, name in [(get, (0,), "read"), (stacked, (), "stack")]:
        text = messages(function, grown("float64", None), *args)
        assert f"{name}: the rank of the elements is not known" in text
        assert "element_shape=" in text


# Making arrays.


@njit(cache=True)
def make(size, dynamic_size, clear_after_read, dimension, infer_shape):
    return nbta.TensorArray(
        np.float32,
        size,
        dynamic_size,
        clear_after_read=clear_after_read,
        tensor_array_name=None,
        element_shape=(dimension, None),
        infer_shape=infer_shape,
        name=None,
    )


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("flags", [(True, False, True), (False, True, False)])
def test_arrays_are_made_with_every_argument(flags):
    dynamic_size, clear_after_read, infer_shape = flags
    ta = make(4, dynamic_size, clear_after_read, 2, infer_shape)
    assert (ta.dtype, len(ta), ta.element_shape) == (np.float32, 4, (2, None))
    assert (ta.dynamic_size, ta.clear_after_read, ta.infer_shape) == flags
    assert not ta.is_gradient


@njit(cache=True)
def make_all():
    return (
        nbta.TensorArray(np.float64),
        nbta.TensorArray("int16", 2),
        nbta.TensorArray(COMPLEX, 3, element_shape=()),
        nbta.TensorArray(float, element_shape=4),
        nbta.TensorArray(np.dtype("uint8"), name="given", element_shape=(2, 3)),
        nbta.TensorArray(int, infer_shape=False),
        nbta.TensorArray(bool, size=np.int32(5), dynamic_size=True),
    )


COMPLEX = np.dtype("complex64")


@pytest.mark.slow
def test_dtypes_are_given_in_several_ways():
    arrays = make_all()
    assert [ta.dtype.name for ta in arrays] == [
        "float64", "int16", "complex64", "float64", "uint8", "int64", "bool",
    ]  # fmt: skip
    assert [len(ta) for ta in arrays] == [0, 2, 3, 0, 0, 0, 5]
    shapes = [ta.element_shape for ta in arrays]
    assert shapes == [None, None, (), (4,), (2, 3), None, None]
    assert [ta.infer_shape for ta in arrays] == [True] * 5 + [False, True]
    assert len({ta.handle for ta in arrays}) == 7


def test_arrays_that_cannot_be_made():
    with pytest.raises(nbta.InvalidArgumentError, match=r"create .*: the size is -1"):
        make(-1, True, True, 2, True)
    with pytest.raises(nbta.InvalidArgumentError, match=r"create .*: the dimension -3") as caught:
        make(1, True, True, -3, True)
    assert caught.value.reason == "negative_extent"
    with pytest.raises(nbta.ResourceExhaustedError, match=r"create .*: not enough memory"):
        make(2**60, True, True, 2, True)
    assert "size must be one integer" in messages(make, 1.5, True, True, 2, True)
    assert "has a dimension of type float64" in messages(make, 1, True, True, 2.0, True)


@njit(cache=True)
def make_half():
    return nbta.TensorArray(np.float16, 1)


@njit(cache=True)
def make_deep():
    return nbta.TensorArray(np.float64, 1, element_shape=(1, 1, 1, 1, 1, 1, 1, 1, 1))


@njit(cache=True)
def make_unknown():
    return nbta.TensorArray("no such dtype", 1)


def test_what_numba_cannot_compute_is_refused():
    assert "cannot compute with dtype float16" in messages(make_half)
    assert "at most 8 dimensions, and element_shape has 9" in messages(make_deep)
    assert "'no such dtype' is not a dtype" in messages(make_unknown)
    with pytest.raises(TypeError, match="cannot compute with dtype float16"):
        get(nbta.TensorArray("float16", 1), 0)


# Passing arrays about.


@njit(cache=True)
def inner(ta, k):
    ta.write(k, float(k))
    return ta


@njit(cache=True)
def outer(ta):
    pair = (ta, nbta.TensorArray(np.float64, 2, element_shape=()))
    for k in range(3):
        inner(pair[0], k)
    inner(pair[1], 1)
    return pair


@pytest.mark.slow
def test_arrays_pass_through_functions_and_tuples():
    ta = grown("float64", (), tensor_array_name="passed")
    same, other = outer(ta)
    assert same.handle == ta.handle
    assert ta.stack().tolist() == [0, 1, 2]
    assert same.write(3, 9.0) is same
    assert len(ta) == 4
    assert other.handle != ta.handle
    assert other.stack().tolist() == [0, 1]


@njit(parallel=True, cache=True)
def fill_in_parallel(ta, vectors, count):
    for k in prange(count):
        ta.write(k, float(k))
        vectors.write(k, np.full(2, float(k)))
    return ta


@pytest.mark.slow
def test_different_slots_are_written_in_parallel():
    ta = nbta.TensorArray("float64", 500, element_shape=())
    vectors = nbta.TensorArray("float64", 500, element_shape=(2,))
    fill_in_parallel(ta, vectors, 500)
    np.testing.assert_array_equal(ta.stack(), np.arange(500.0))
    np.testing.assert_array_equal(vectors.stack(), np.arange(500.0)[:, None] * [1, 1])


@njit(cache=True)
def ways_to_call(ta, flag):
    w = ta.write
    w(0, 1.0)
    ta.write(1, 2.0).write(2, 3.0)
    for k in range(3, 6):
        ta = ta.write(k, float(k))
    ta.write(index=6, value=1.5)
    ta.write(7, value=2.5)
    ta.write(*(8, 3.5))
    ta.write(9, 1.0 if flag else 2.0)
    if flag:
        ta.write(10, -1.0)
    r = ta.read
    return r(9) + ta.read(index=8)


class Compiled(event.Listener):
    """Names of the functions that Numba compiles."""

    def __init__(self):
        self.names = []

    def on_start(self, happened):
        self.names.append(happened.data["dispatcher"].py_func.__qualname__)

    def on_end(self, happened):
        pass


def test_what_is_after_a_method_is_compiled_once():
    """Typing compiles it, and the call that takes the method's place finds that."""

    @njit
    def written(ta, values):
        return ta.write(0, values).append(values).stack()

    ta = nbta.TensorArray("uint16", 0, True, element_shape=(None,), infer_shape=False)
    with event.install_listener("numba:compile", Compiled()) as compiled:
        assert written(ta, np.ones(3, np.uint16)).tolist() == [[1] * 3] * 2
    ours = [
        name for name in compiled.names if name.startswith(("_append", "_put_method", "_stack"))
    ]
    assert len(ours) == len(set(ours)) >= 3


@pytest.mark.slow
def test_ways_to_call_a_method():
    ta = grown("float64", ())
    assert ways_to_call(ta, True) == 4.5
    assert ta.stack().tolist() == [1, 2, 3, 3, 4, 5, 1.5, 2.5, 3.5, 1, -1]
    assert ways_to_call(grown("float64", ()), False) == 5.5


@pytest.mark.slow
def test_literals_take_the_dtype():
    ta = put_five(grown("int32", ()))
    assert (ta.read(0), ta.dtype) == (5, np.int32)
    assert put_five(grown("float32", ())).read(0) == np.float32(5)
    assert put_five(grown("uint8", ())).read(0) == 5


@njit(cache=True)
def put_five(ta):
    return ta.write(0, 5)


@njit(cache=True)
def put_huge(ta):
    return ta.write(0, 300)


# Gradients.


@njit(cache=True)
def literal_gradient(ta):
    return ta.grad("gradients")


@njit(cache=True)
def sum_up(ta, source, count):
    g = ta.grad(source)
    for k in range(count):
        g.accumulate(k % len(ta), float(k))
        g.write(0, 0.5)
    return g


def test_a_gradient_array_is_the_same_from_both_sides():
    ta = grown("float64", ()).unstack([1.0, 2.0, 3.0])
    assert literal_gradient(ta).handle == ta.grad("gradients").handle
    ta.grad("gradients").write(0, 1.0)
    literal_gradient(ta).accumulate(0, 2.0)
    sums = sum_up(ta, "gradients", 4)
    assert sums.handle.name == f"{ta.handle.name}@gradients"
    assert ta.grad("gradients").stack().tolist() == [1 + 2 + 0 + 3 + 4 * 0.5, 1, 2]
    other = sum_up(ta, "gradients_1", 1)
    assert other.handle != sums.handle
    assert ta.grad("gradients_1").stack().tolist() == [0.5, 0, 0]
    assert not ta.dynamic_size


@pytest.mark.slow
def test_sources_of_any_letters():
    ta = grown("float64", ()).unstack([1.0])
    assert gradient_of(ta, "skôp/∂_1").handle == ta.grad("skôp/∂_1").handle
    assert gradient_of(ta, "").handle.name == f"{ta.handle.name}@"
    second = gradient_of(gradient_of(ta, "gradients"), "gradients_1")
    assert second.handle.name == f"{ta.handle.name}@gradients@gradients_1"


@njit(cache=True)
def vector_sums(ta, values):
    g = ta.grad("gradients", clear_after_read=False)
    for k in range(len(values)):
        g.accumulate(k % 2, values[k])
    return g.read(1), g.read(1), g


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_vectors_are_summed(dtype):
    values = sample(dtype, (6, 3))
    ta = grown(dtype, (3,)).unstack(values[:2])
    once, twice, sums = vector_sums(ta, values)
    np.testing.assert_array_equal(once, values[1::2].sum(axis=0))
    np.testing.assert_array_equal(once, twice)
    np.testing.assert_array_equal(sums.stack()[0], values[::2].sum(axis=0))


def test_a_gradient_array_with_a_prefix_is_refused():
    ta = grown("float64", ()).unstack([1.0, 2.0])
    ta.grad_with_shape("gradients", [3]).write(0, np.ones(3))
    with pytest.raises(
        nbta.InvalidArgumentError, match=r"of rank 1, .* counts on rank 0"
    ) as caught:
        literal_gradient(ta)
    assert caught.value.reason == "gradient_rank"
    assert get(ta.grad("gradients"), 0).tolist() == [1, 1, 1]


# Errors are those of Python.


def state(**options):
    kept = {"element_shape": (2,), "tensor_array_name": "state", "clear_after_read": True}
    return nbta.TensorArray("float64", 3, **{**kept, **options}).unstack(np.ones((3, 2)))


def unwritten(**options):
    return nbta.TensorArray("float64", 3, tensor_array_name="state", **options)


def after_read():
    array = state()
    array.read(0)
    return array


def closed():
    array = state()
    array.close()
    return array


_forward = []  # messages find a name while Python holds the forward array


def sums(array):
    _forward.append(array)
    return array.grad("gradients")


def ragged_sum():
    array = unwritten(infer_shape=False, element_shape=(None,)).write(0, np.ones(3))
    return sums(array).write(0, np.ones(3))


ROW = np.ones(2)
FAILING = {
    "past the end": (state, put, lambda a: a.write(7, ROW), (7, ROW)),
    "before the start": (state, put, lambda a: a.write(-1, ROW), (-1, ROW)),
    "written": (state, put, lambda a: a.write(1, ROW), (1, ROW)),
    "read": (after_read, put, lambda a: a.write(0, ROW), (0, ROW)),
    "strided": (state, put, lambda a: a.write(1, np.ones(4)[::2]), (1, np.ones(4)[::2])),
    "no growth": (state, append, lambda a: a.append(ROW), (ROW,)),
    "shape": (
        lambda: unwritten(element_shape=(2,)), put, lambda a: a.write(0, np.ones(3)),
        (0, np.ones(3)),
    ),
    "too far": (
        lambda: state(dynamic_size=True), put, lambda a: a.write(2**61, ROW), (2**61, ROW)
    ),
    "read twice": (after_read, get, lambda a: a.read(0), (0,)),
    "read past the end": (state, get, lambda a: a.read(3), (3,)),
    "read before the start": (state, get, lambda a: a.read(-2), (-2,)),
    "read of nothing": (lambda: unwritten(element_shape=(None,)), get, lambda a: a.read(1), (1,)),
    "stack of nothing": (
        lambda: unwritten(element_shape=(None,)), stacked, lambda a: a.stack(), ()
    ),
    "stack after read": (after_read, stacked, lambda a: a.stack(), ()),
    "not gradient": (state, add, lambda a: a.accumulate(0, ROW), (0, ROW)),
    "sum past the end": (
        lambda: sums(state()), add, lambda a: a.accumulate(3, ROW), (3, ROW)
    ),
    "sum of shapes": (ragged_sum, add, lambda a: a.accumulate(0, ROW), (0, ROW)),
    "second order": (
        lambda: sums(state()).grad("gradients_1"), add,
        lambda a: a.accumulate(3, ROW), (3, ROW),
    ),
    "closed write": (closed, put, lambda a: a.write(0, ROW), (0, ROW)),
    "closed append": (closed, append, lambda a: a.append(ROW), (ROW,)),
    "closed read": (closed, get, lambda a: a.read(0), (0,)),
    "closed sum": (closed, add, lambda a: a.accumulate(0, ROW), (0, ROW)),
    "closed size": (closed, sized, lambda a: a.size(), ()),
    "closed length": (closed, counted, len, ()),
    "closed stack": (closed, stacked, lambda a: a.stack(), ()),
    "closed lookup": (closed, gradient_of, lambda a: a.grad("gradients"), ("gradients",)),
    "datetime gradients": (
        lambda: nbta.TensorArray("datetime64[s]", 1, tensor_array_name="state", element_shape=(1,)),
        gradient_of, lambda a: a.grad("gradients"), ("gradients",),
    ),
}  # fmt: skip


def failure_of(operation, array):
    before = snapshot(array)
    with pytest.raises(nbta.NbtaError) as caught:
        operation(array)
    assert snapshot(array) == before
    error, name = caught.value, array.handle.name
    assert name in str(error)
    return type(error), error.reason, str(error).replace(name, "NAME")


def snapshot(array):
    facts = repr(array), array.element_shape, array.closed, array.dynamic_size
    return facts if array.closed else (*facts, array._states().tolist())


@pytest.mark.slow_but_every(9)
@pytest.mark.parametrize("label", FAILING)
def test_errors_are_those_of_eager_operations(label):
    make_array, compiled, eager, args = FAILING[label]
    expected = failure_of(eager, make_array())
    assert failure_of(lambda array: compiled(array, *args), make_array()) == expected


@pytest.mark.slow
def test_a_long_name_is_cut():
    ta = state().grad("a" * 50)
    with pytest.raises(nbta.InvalidArgumentError, match=r"@a+\.\.: slot -1"):
        get(ta, -1)


@njit(cache=True)
def fails_at(ta, limit):
    for k in range(limit):
        ta.write(k, float(k))


def test_an_error_leaves_what_was_written_before():
    ta = nbta.TensorArray("float64", 3, element_shape=(), tensor_array_name="partial")
    with pytest.raises(
        nbta.InvalidArgumentError, match=r"write on partial_\d+: there is no slot 3"
    ):
        fails_at(ta, 5)
    assert ta.stack().tolist() == [0, 1, 2]


@njit(cache=True)
def caught_inside(ta, index):
    try:
        ta.write(index, 1.0)
    except Exception:
        return -1
    return len(ta)


@pytest.mark.slow
def test_an_error_is_caught_inside_compiled_code():
    ta = nbta.TensorArray("float64", 3, element_shape=())
    assert caught_inside(ta, 5) == -1
    assert caught_inside(ta, 2) == 3
    assert ta.stack().tolist() == [0, 0, 1]


# Errors of typing name both sides and the remedy.


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize(
    ("function", "array", "args", "words"),
    [
        (put, ("float32", ()), (0, 1.0), "write|float32|float64|np.float32(...)"),
        (append, ("float32", ()), (1.0,), "append|float32|float64|np.float32(...)"),
        (put, ("float32", (2,)), (0, ROW), "write|float32|float64|.astype(np.float32)"),
        (put, ("int32", ()), (0, 5), "write|int32|int64|np.int32(...)"),
        (put, ("float64", ()), (0, True), "write|float64|bool|np.float64(...)"),
        (put, ("float64", ()), (0, "a"), "write|float64|unicode_type|np.float64(...)"),
        (put, ("float64", ()), (0, None), "write|float64|none"),
        (put, ("float64", (2,)), (0, np.ones((2, 2))), "rank 1|rank 2|reshape|element_shape="),
        (put, ("float64", (2,)), (0, 1.0), "rank 1|rank 0|reshape|element_shape="),
        (put, ("float64", None), (0, np.ones((1,) * 9)), "at most 8 dimensions|9|reshape"),
        (put, ("float64", None), (0, np.ones((1,) * 32)), "at most 8 dimensions|32|reshape"),
        (put, ("float64", ()), (0.5, 1.0), "write|index must be an integer|float64"),
        (get, ("float64", ()), ("a",), "read|index must be an integer|unicode_type"),
        (add, ("float32", ()), (0, 1.0), "accumulate|float32|float64"),
        (put, ("U3", ()), (0, "abcd"), "write|unichr x 3|unicode_type|<U3"),
        (put, ("S5", ()), (0, b"ab"), "write|char x 5|bytes|S5"),
        (put, (RECORD, ()), (0, 1.0), "write|Record|float64"),
        (gradient_of, ("float64", ()), (3,), "grad|source must be a string|int64"),
        (put_huge, ("int8", ()), (), "write|int8|300|np.int8(...)"),
    ],
    ids=lambda part: part if isinstance(part, str) else None,
)
def test_errors_of_typing(function, array, args, words):
    dtype, shape = array
    text = messages(function, grown(dtype, shape), *args)
    for word in words.split("|"):
        assert word in text


# The type.


def test_one_type_for_arrays_of_a_kind():
    first, second = grown("float64", (2,)), grown("float64", (5,))
    assert typeof(first) == typeof(second)
    assert "float64, rank 1" in str(typeof(first))
    others = [
        grown("float32", (2,)),
        grown("float64", (2, 2)),
        grown("float64", None),
        grown("float64", (None,), infer_shape=False),
    ]
    assert len({typeof(array) for array in [first, *others]}) == 5
