"""Indexing, slicing, gathering and joining: against NumPy, eagerly and in graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbta
from nbta.shapes import Dim, compatible, is_known
from nbta.testing import check_grads

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "complex128"]


def filled(*shape, dtype="float64"):
    """Unlike values of a shape."""
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)


def known(array):
    return array.shape


def dimensions_unknown(array):
    return (None,) * array.ndim


def rank_unknown(array):
    return None


def in_graph(function, *arrays, shape=known):
    """Specs and values of a function of placeholders."""
    graph = nbta.Graph()
    with graph.as_default():
        tensors = [nbta.placeholder(array.dtype, shape(array)) for array in arrays]
        results = function(*tensors)
        single = not isinstance(results, list)
        results = [results] if single else results
    values = nbta.Session(graph).run(results, dict(zip(tensors, arrays, strict=True)))
    specs = [result.spec for result in results]
    return (specs[0], values[0]) if single else (specs, values)


def same(got, want):
    np.testing.assert_array_equal(got, want)
    assert np.asarray(got).dtype == np.asarray(want).dtype
    assert np.shape(got) == np.shape(want)


def check(function, want, *arrays, shapes=(known, dimensions_unknown)):
    """Hold the function, eager and in graphs, against what NumPy gives."""
    got = function(*arrays)
    assert isinstance(got, list) == isinstance(want, list)
    wants = want if isinstance(want, list) else [want]
    for one, other in zip(got if isinstance(want, list) else [got], wants, strict=True):
        same(one, other)
    for shape in shapes:
        specs, values = in_graph(function, *arrays, shape=shape)
        if not isinstance(want, list):
            specs, values = [specs], [values]
        for spec, value, other in zip(specs, values, wants, strict=True):
            same(value, other)
            assert spec.dtype == other.dtype
            assert compatible(spec.shape, np.shape(other))
            assert shape is not known or is_known(spec.shape)


KEYS = [
    (0,), (-1,), (1, 2), (1, -2, 3), (np.s_[:],), (np.s_[1:],), (np.s_[:-1],), (np.s_[::-1],),
    (np.s_[5:1:-2], 0), (np.s_[1:1],), (np.s_[100:],), (np.s_[-100:2],), (..., 1), (1, ...),
    (0, ..., 2), (None,), (None, 0, None), (..., None), (np.s_[:, ::2, ::-1]), (), (...,),
    (np.int8(1),), (np.array(1),), (np.s_[np.int64(1) : np.int64(2)],), (1, 1, 1, ...),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_basic_keys(key):
    x = filled(2, 3, 4)
    check(
        lambda x: nbta.getitem(x, key),
        np.asarray(x[key]),
        x,
        shapes=(known, dimensions_unknown, rank_unknown),
    )


@pytest.mark.parametrize("dtype", [*DTYPES, "S3", "M8[s]"])
def test_keys_keep_the_dtype(dtype):
    x = filled(3, 2, dtype="int64").astype(dtype)
    check(lambda x: nbta.getitem(x, np.s_[1:, 0]), x[1:, 0], x)


def test_keys_of_scalars_and_empty_arrays():
    check(lambda x: nbta.getitem(x, ()), np.asarray(2.5), np.array(2.5))
    check(lambda x: nbta.getitem(x, (None, ...)), np.array([2.5]), np.array(2.5))
    check(lambda x: nbta.getitem(x, np.s_[:, 1]), np.zeros(0), np.zeros((0, 2)))


BOUND = st.none() | st.integers(-7, 7)
SLICE = st.builds(slice, BOUND, BOUND, st.sampled_from([None, 1, 2, 3, -1, -2, -7]))


@st.composite
def cases(draw):
    """A shape and a key for it."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    key = []
    for dimension in shape[: draw(st.integers(0, len(shape)))]:
        index = st.integers(-dimension, dimension - 1) if dimension else SLICE
        key.append(draw(SLICE | index))
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.booleans()):
        key.append(...)
    return shape, tuple(key)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_random_keys(case):
    shape, key = case
    x = filled(*shape)
    want = np.asarray(x[key])
    check(lambda x: nbta.getitem(x, key), want, x)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_random_symbolic_keys(case):
    """All integers of a key, also the bounds of slices, as tensors."""
    shape, key = case
    x, numbers = filled(*shape), []

    def symbolic(part, take):
        if isinstance(part, slice):
            bounds = (part.start, part.stop, part.step)
            return slice(*(None if n is None else take(n) for n in bounds))
        return take(part) if isinstance(part, int) else part

    for part in key:
        symbolic(part, numbers.append)

    def function(x, *tensors):
        left = iter(tensors)
        return nbta.getitem(x, tuple(symbolic(part, lambda n: next(left)) for part in key))

    arrays = [np.array(n, "int8") for n in numbers]
    for shape in (known, dimensions_unknown):
        spec, value = in_graph(function, x, *arrays, shape=shape)
        same(value, x[key])
        assert compatible(spec.shape, np.shape(value))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_one_symbolic_index(dtype):
    x = filled(3, 2)
    spec, value = in_graph(lambda x, t: x[t], x, np.array(2, dtype))
    same(value, x[2])
    assert spec.shape == (2,)
    with pytest.raises(nbta.InvalidArgumentError, match=r"axis 0 has 3 elements.* no index 3"):
        in_graph(lambda x, t: x[t], x, np.array(3, dtype))


def test_symbolic_indices_of_unknown_rank():
    spec, value = in_graph(lambda t: nbta.getitem(filled(3, 2), t), np.array(1), shape=rank_unknown)
    same(value, filled(3, 2)[1])
    assert spec.shape == (2,)
    with pytest.raises(nbta.InvalidArgumentError, match=r"not a scalar; use nbta\.take"):
        in_graph(lambda t: nbta.getitem(filled(3), t), np.array([1, 2]), shape=rank_unknown)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (3, r"\[3\] is out of range for shape \(3, 2\): axis 0 has 3 elements"),
        (np.s_[0, -3], r"axis 1 has 2 elements, and there is no index -3"),
        (np.s_[0, 0, 0], r"\[0, 0, 0\] has 3 indices, and shape \(3, 2\) has 2 axes"),
        (np.s_[::0], r"\[::0\]: the step of a slice must not be 0"),
        ((..., 0, ...), r"more than one '\.\.\.'"),
        (1.5, r"1\.5 is not an index here; use integers"),
        (np.s_[:, [0, 1]], r"\[0, 1\] is not an index here.*nbta\.take"),
        (np.array([True, False, True]), r"mask.*nbta\.where"),
        (True, r"mask.*nbta\.where"),
        ([0.5], r"must be integers, not float64"),
        ([0, 3], r"index 3 is out of range: axis 0 of shape \(3, 2\) has 3 rows"),
    ],
    ids=str,
)
def test_keys_that_are_wrong(key, message):
    x = filled(3, 2)
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        nbta.getitem(x, key)
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        in_graph(lambda x: x[key], x)


def test_symbolic_keys_that_are_wrong():
    x = filled(3, 2)
    with pytest.raises(nbta.InvalidArgumentError, match="cast it to an integer"):
        in_graph(lambda x, t: x[t], x, np.array(1.0))
    with pytest.raises(nbta.InvalidArgumentError, match="mask"):
        in_graph(lambda x, t: x[t], x, np.array(True))
    with pytest.raises(nbta.InvalidArgumentError, match="step"):
        in_graph(lambda x, t: x[::t], x, np.array(0))


def test_an_array_of_indices_picks_rows():
    x, indices = filled(3, 2), np.array([[2, 0], [1, -1]])
    check(lambda x: nbta.getitem(x, indices), x[indices], x)
    check(lambda x, i: nbta.getitem(x, (i,)), x[indices], x, indices)
    check(lambda x: nbta.getitem(x, []), x[[]], x)


def test_lengths_that_only_a_run_tells_stay_one_object():
    length = Dim()
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (length, 2))
        assert x[:].spec.shape[0] is length
        assert x[::-1].spec.shape[0] is length
        assert x[:, 0].spec.shape == (length,)
        assert x[:0].spec.shape == (0, 2)
        assert x[1:].spec.shape == (None, 2)
        assert nbta.stack([x, x], 1).spec.shape == (length, 2, 2)
        assert nbta.expand_dims(x, 0).spec.shape == (1, length, 2)
        assert nbta.squeeze(x[None]).spec.shape == (length, 2)
        assert nbta.concatenate([x, x], 1).spec.shape == (length, 4)
        assert nbta.pad(x, [(0, 0), (1, 0)]).spec.shape == (length, 3)
        assert nbta.take(x, [0], 1).spec.shape == (length, 1)
        assert nbta.arange(nbta.shape(x)[0]).spec.shape == (length,)
        assert nbta.slice(x, [0, 0], nbta.shape(x)).spec.shape == (length, 2)


BLOCKS = [
    ([0, 0], [2, 2]),
    ([1, 2], [-1, -1]),
    ([2, 0], [0, 3]),
    ([0, 1], (-1, 1)),
    ([3, 0], [0, -1]),
]


@pytest.mark.parametrize(("begin", "size"), BLOCKS, ids=str)
def test_slice(begin, size):
    x = filled(3, 4)
    ends = [n if s == -1 else b + s for n, b, s in zip(x.shape, begin, size, strict=True)]
    want = x[begin[0] : ends[0], begin[1] : ends[1]]
    check(
        lambda x: nbta.slice(x, begin, size),
        want,
        x,
        shapes=(known, dimensions_unknown, rank_unknown),
    )
    vectors = np.array(begin), np.array(size, "int32")
    for function in (nbta.slice, lambda x, b, s: nbta.slice(x, [b[0], begin[1]], [size[0], s[1]])):
        spec, value = in_graph(function, x, *vectors)
        same(value, want)
        assert compatible(spec.shape, want.shape)


@pytest.mark.parametrize(
    ("begin", "size", "message"),
    [
        ([0, 3], [1, 2], r"axis 1 has 4 elements, and a slice of 2 from 3 on does not fit"),
        ([-1, 0], [1, 1], r"axis 0 has 3 elements"),
        ([4, 0], [-1, 1], r"axis 0 has 3 elements"),
        ([0, 0], [-2, 1], r"axis 0 has 3 elements"),
        ([0], [1, 1], r"begin: there are 1 entries for shape"),
        ([0, 0], [1], r"size: there are 1 entries for shape"),
        ([0.5, 0], [1, 1], r"begin: .* is not a vector with one integer per axis"),
    ],
)
def test_slices_that_do_not_fit(begin, size, message):
    x = filled(3, 4)
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        nbta.slice(x, begin, size)
    for shape in (known, dimensions_unknown):
        with pytest.raises(nbta.InvalidArgumentError, match=message):
            in_graph(lambda x: nbta.slice(x, begin, size), x, shape=shape)


@pytest.mark.parametrize("starts", [[0, 0], [1, 1], [-5, 9], [2, 3], [100, -100]], ids=str)
@pytest.mark.parametrize("sizes", [[2, 2], [3, 4], [0, 1]], ids=str)
def test_dynamic_slice_and_update(starts, sizes):
    x, update = filled(3, 4), -filled(*sizes)
    moved = [min(max(s, 0), n - m) for s, n, m in zip(starts, x.shape, sizes, strict=True)]
    key = tuple(slice(a, a + n) for a, n in zip(moved, sizes, strict=True))
    changed = x.copy()
    changed[key] = update
    check(lambda x: nbta.dynamic_slice(x, starts, sizes), x[key], x)
    check(lambda x, s: nbta.dynamic_slice(x, s, sizes), x[key], x, np.array(starts))
    check(lambda x, u: nbta.dynamic_update_slice(x, u, starts), changed, x, update)
    first = np.array(starts[0])
    function = lambda x, u, s: nbta.dynamic_update_slice(x, u, [s, starts[1]])  # noqa: E731
    check(function, changed, x, update, first)


def test_dynamic_slices_that_do_not_fit():
    x = filled(3, 4)
    with pytest.raises(nbta.InvalidArgumentError, match="axis 0 has 3 elements, and a slice of 4"):
        nbta.dynamic_slice(x, [0, 0], [4, 1])
    with pytest.raises(nbta.InvalidArgumentError, match="negative"):
        nbta.dynamic_slice(x, [0, 0], [-1, 1])
    with pytest.raises(nbta.InvalidArgumentError, match="there are 1 entries"):
        nbta.dynamic_slice(x, [0], [1])
    with pytest.raises(nbta.InvalidArgumentError, match=r"\(4, 1\) does not fit into \(3, 4\)"):
        nbta.dynamic_update_slice(x, filled(4, 1), [0, 0])
    with pytest.raises(nbta.InvalidArgumentError, match=r"shape \(4,\) does not fit"):
        nbta.dynamic_update_slice(x, filled(4), [0, 0])
    with pytest.raises(nbta.InvalidArgumentError, match=r"nbta\.slice"):
        in_graph(lambda s: nbta.dynamic_slice(x, [0, 0], s), np.array([1, 1]))


def test_scalars_have_one_block():
    check(lambda x: nbta.slice(x, [], []), np.asarray(2.5), np.array(2.5))
    check(lambda x: nbta.dynamic_slice(x, [], []), np.asarray(2.5), np.array(2.5))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("indices", [1, [0, -1, 1], [[0], [1]], [], np.uint64(1)], ids=str)
def test_take(axis, indices):
    x = filled(2, 3)
    indices = np.asarray(indices, None if np.size(indices) else int)
    want = np.take(x, indices.astype(int), axis)
    check(lambda x, i: nbta.take(x, i, axis), np.asarray(want), x, indices)
    check(lambda x: nbta.take(x, indices, axis), np.asarray(want), x, shapes=(known, rank_unknown))
    if axis is not None:
        same(nbta.gather(x, indices, axis), want)


@pytest.mark.parametrize("function", [nbta.take, nbta.gather])
def test_takes_that_are_wrong(function):
    x = filled(2, 3)
    with pytest.raises(nbta.InvalidArgumentError, match=r"index -4 .*axis 1 of shape \(2, 3\)"):
        function(x, [1, -4], 1)
    with pytest.raises(nbta.InvalidArgumentError, match=r"no axis 2"):
        function(x, [0], 2)
    with pytest.raises(nbta.InvalidArgumentError, match="must be integers"):
        function(x, [0.5], 0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"nbta\.where"):
        function(x, [True, False], 0)
    with pytest.raises(nbta.InvalidArgumentError, match="is not an axis"):
        function(x, [0], "rows")


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex64"])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_scatter_add(axis, dtype):
    x, indices = filled(3, 4, dtype=dtype), np.array([[2, 0], [0, -1]])
    updates = np.take(-x, indices, axis)
    want = x.copy()
    np.add.at(want, (slice(None),) * (axis % 2) + (indices,), updates)
    check(lambda x, u: nbta.scatter_add(x, indices, u, axis), want, x, updates)
    check(lambda x, i, u: nbta.scatter_add(x, i, u, axis), want, x, indices, updates)


def test_scatter_add_of_scalars_and_one_row():
    x = filled(3, 2)
    check(lambda x: nbta.scatter_add(x, 1, 10.0), x + np.array([[0], [10], [0]]), x)
    check(lambda x: nbta.scatter_add(x, [1, 1], np.ones(2)), x + np.array([[0], [2], [0]]), x)
    check(lambda x: nbta.scatter_add(x, [], np.ones((0, 2))), x, x)
    same(x, filled(3, 2))


def test_scatters_that_are_wrong():
    x = filled(3, 2)
    with pytest.raises(nbta.InvalidArgumentError, match="index 3 is out of range: axis 0"):
        nbta.scatter_add(x, [3], np.ones((1, 2)))
    with pytest.raises(nbta.InvalidArgumentError, match=r"\(2, 3\) does not broadcast to \(2, 2\)"):
        nbta.scatter_add(x, [0, 1], np.ones((2, 3)))
    with pytest.raises(nbta.InvalidArgumentError, match=r"does not broadcast to \(1, 2\)"):
        nbta.scatter_add(x, [0], np.ones((2, 2)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "bool"])
def test_one_hot(dtype):
    indices = np.array([[1, 0], [-1, 3]], "int32")
    want = (indices[..., None] == np.arange(3)).astype(dtype)
    check(lambda i: nbta.one_hot(i, 3, dtype), want, indices)
    spec, value = in_graph(lambda i, n: nbta.one_hot(i, n, dtype), indices, np.array(3))
    same(value, want)
    assert spec.shape == (2, 2, None)
    check(lambda i: nbta.one_hot(i, 2), np.array([0.0, 1.0]), np.array(1))


def test_one_hot_errors():
    with pytest.raises(nbta.InvalidArgumentError, match="negative"):
        nbta.one_hot([0], -1)
    with pytest.raises(nbta.InvalidArgumentError, match="must be integers"):
        nbta.one_hot([0.5], 1)
    with pytest.raises(nbta.InvalidArgumentError, match="not a length"):
        nbta.one_hot([0], [1, 2])


@pytest.mark.parametrize("dtypes", [("int8", "uint8"), ("float32", "int64"), ("bool", "bool")])
@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concatenate(axis, dtypes):
    a, b = filled(2, 2, dtype=dtypes[0]), filled(2, 2, dtype=dtypes[1])
    shapes = (known, dimensions_unknown, rank_unknown)
    want = np.concatenate([a, b, a], axis)
    check(lambda a, b: nbta.concatenate([a, b, a], axis), want, a, b, shapes=shapes)


def test_concatenate_unlike_lengths():
    a, b = filled(2, 3), filled(2, 0)
    check(lambda a, b: nbta.concatenate([b, a, b], 1), a, a, b)
    check(lambda a: nbta.concatenate([a]), a, a)
    check(lambda a: nbta.concatenate(a), a.reshape(-1), a, shapes=(known,))
    same(nbta.concatenate([[1], [2.5]]), np.array([1, 2.5]))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_stack(axis, dtype):
    a = filled(2, dtype=dtype)
    want = np.stack([a, a, a[::-1]], axis)
    shapes = (known, dimensions_unknown, rank_unknown)
    check(lambda a, b: nbta.stack([a, a, b], axis), want, a, a[::-1], shapes=shapes)


def test_stack_scalars():
    same(nbta.stack([1, 2, 3]), np.array([1, 2, 3]))
    check(lambda a: nbta.stack([a, 1]), np.array([2.5, 1]), np.array(2.5))
    check(lambda a: nbta.stack([a, 1]), np.array([2, 1], "int8"), np.array(2, "int8"))
    check(lambda a: nbta.stack([a]), np.zeros((1, 0, 2)), np.zeros((0, 2)))


def test_joins_that_are_wrong():
    a, b = filled(2, 3), filled(3, 2)
    with pytest.raises(
        nbta.InvalidArgumentError, match=r"shapes \(2, 3\), \(3, 2\) do not join along axis 1"
    ):
        nbta.concatenate([a, b], 1)
    with pytest.raises(nbta.InvalidArgumentError, match=r"\(2, 3\), \(3,\) do not join"):
        nbta.concatenate([a, a[0]])
    with pytest.raises(nbta.InvalidArgumentError, match="no axis 2"):
        nbta.concatenate([a, a], 2)
    with pytest.raises(nbta.InvalidArgumentError, match="scalar"):
        nbta.concatenate([1, 2])
    with pytest.raises(nbta.InvalidArgumentError, match=r"\(3, 2\) do not join.*one shape"):
        nbta.stack([a, b])
    with pytest.raises(nbta.InvalidArgumentError, match="no axis 3"):
        nbta.stack([a, a], 3)
    for join in (nbta.stack, nbta.concatenate):
        with pytest.raises(nbta.InvalidArgumentError, match="nothing to join"):
            join([])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("sections", [1, 2, 6, [2], [1, 4], [], [3, 1], [2, 2, 9], [-2]], ids=str)
def test_split(axis, sections):
    x = filled(6, 6)
    want = np.split(x, sections, axis)
    shapes = (known, dimensions_unknown, rank_unknown)
    check(lambda x: nbta.split(x, sections, axis), want, x, shapes=shapes)


def test_split_at_symbolic_points():
    x = filled(5, 2)
    _, values = in_graph(lambda x, n: nbta.split(x, [1, n]), x, np.array(3))
    for value, want in zip(values, np.split(x, [1, 3]), strict=True):
        same(value, want)


def test_splits_that_are_wrong():
    x = filled(5, 2)
    message = r"axis 0 of shape \(5, 2\) has 5 elements, which 2 equal sections do not divide"
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        nbta.split(x, 2)
    for shape in (known, dimensions_unknown):
        with pytest.raises(nbta.InvalidArgumentError, match=message):
            in_graph(lambda x: nbta.split(x, 2), x, shape=shape)
    with pytest.raises(nbta.InvalidArgumentError, match="0 sections"):
        nbta.split(x, 0)
    with pytest.raises(nbta.InvalidArgumentError, match="no axis 2"):
        nbta.split(x, 1, 2)


WIDTHS = [0, 1, (1, 2), [(1, 2), (0, 3)], [(2, 1)], [[1], [2]], [1]]


@pytest.mark.parametrize("width", WIDTHS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_pad(width, dtype):
    x = filled(2, 3, dtype=dtype)
    shapes = (known, dimensions_unknown, rank_unknown)
    want = np.pad(x, width, constant_values=1)
    check(lambda x: nbta.pad(x, width, constant_values=1), want, x, shapes=shapes)


def test_pad_scalars_and_empty_arrays():
    check(lambda x: nbta.pad(x, 1), np.asarray(2.5), np.array(2.5))
    check(lambda x: nbta.pad(x, 1), np.zeros((2, 4)), np.zeros((0, 2)))
    check(lambda x, v: nbta.pad(x, 1, v), np.array([7, 1, 2, 7.0]), filled(2), np.array(7, "int8"))


@pytest.mark.parametrize(
    ("width", "message"),
    [
        (-1, "negative"),
        (1.5, "pad_width must be an integer, a pair, or"),
        ([(1, 2), (1,)], "or a pair for each axis, not"),
        ((1, 2, 3), "or a pair for each axis, not"),
        ([(1, 1)] * 3, r"3 pairs for shape \(2, 3\)"),
    ],
)
def test_pads_that_are_wrong(width, message):
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        nbta.pad(filled(2, 3), width)


def test_pad_takes_one_value():
    with pytest.raises(nbta.InvalidArgumentError, match="one scalar"):
        nbta.pad(filled(2), 1, constant_values=[1, 2])


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (), [1]], ids=str)
def test_flip(axis):
    x = filled(2, 3, 1)
    want = np.flip(x, tuple(axis) if isinstance(axis, list) else axis)
    check(lambda x: nbta.flip(x, axis), want, x)
    check(nbta.flip, np.asarray(2.5), np.array(2.5))


def test_flip_errors():
    with pytest.raises(nbta.InvalidArgumentError, match="no axis 1"):
        nbta.flip(filled(2), 1)
    with pytest.raises(nbta.InvalidArgumentError, match="twice"):
        nbta.flip(filled(2), (0, -1))
    with pytest.raises(nbta.InvalidArgumentError, match="unknown rank"):
        in_graph(nbta.flip, filled(2), shape=rank_unknown)


@pytest.mark.parametrize("axis", [0, -1, (0, 2), (), [2]], ids=str)
def test_squeeze_and_expand_dims(axis):
    x = filled(1, 3, 1)
    axes = tuple(axis) if isinstance(axis, list) else axis
    shapes = (known, dimensions_unknown, rank_unknown)
    check(lambda x: nbta.squeeze(x, axis), np.squeeze(x, axes), x, shapes=shapes)
    check(lambda x: nbta.expand_dims(x, axis), np.expand_dims(x, axes), x, shapes=shapes)


def test_squeeze_all():
    check(nbta.squeeze, filled(3), filled(1, 3, 1), shapes=(known,))
    check(nbta.squeeze, np.asarray(1.0), filled(1, 1), shapes=(known,))
    check(nbta.squeeze, np.asarray(2.5), np.array(2.5))


@pytest.mark.parametrize("compiled", [False, True], ids=["reference", "compiled"])
def test_the_run_tells_which_axes_are_squeezed(compiled):
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None, 3, None))
        y = nbta.squeeze(x)
        assert y.shape is None
        slope = nbta.gradients([nbta.sum(y * y)], [x])[0]
    session = nbta.Session(graph)
    for shape in ((1, 3, 2), (2, 3, 1), (1, 3, 1), (2, 3, 4), (0, 3, 1)):
        values = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
        found = session.run([y, slope], {x: values}, compiled="auto" if not compiled else True)
        np.testing.assert_array_equal(found[0], np.squeeze(values))
        np.testing.assert_array_equal(found[1], 2 * values)


def test_a_traced_function_is_traced_for_the_axes_that_are_squeezed():
    f = nbta.function(lambda x: nbta.squeeze(x[:, : x.shape[1] - 1]) * 2.0)
    g = nbta.function(lambda x: nbta.squeeze(x[:, None, :]) * 2.0)
    for shape in ((2, 2), (2, 3), (1, 3), (1, 2), (3, 2)):
        x = np.arange(1.0, np.prod(shape) + 1).reshape(shape)
        expected = np.squeeze(x[:, : shape[1] - 1]) * 2
        np.testing.assert_array_equal(f(x), expected)
        np.testing.assert_array_equal(g(x), np.squeeze(x[:, None, :]) * 2)
    assert g.traces == 2


def test_squeeze_errors():
    with pytest.raises(nbta.InvalidArgumentError, match=r"axis 1 of shape \(1, 3\)"):
        nbta.squeeze(filled(1, 3), 1)
    with pytest.raises(nbta.InvalidArgumentError, match="no axis 2"):
        nbta.squeeze(filled(1, 3), 2)
    with pytest.raises(nbta.InvalidArgumentError, match="twice"):
        nbta.squeeze(filled(1, 3), (0, -2))
    for shape in (dimensions_unknown, rank_unknown):
        with pytest.raises(nbta.InvalidArgumentError, match=r"axis 1 of shape \(1, 3\)"):
            in_graph(lambda x: nbta.squeeze(x, 1), filled(1, 3), shape=shape)
    with pytest.raises(nbta.InvalidArgumentError, match="no axis 2"):
        nbta.expand_dims(filled(3), 2)
    with pytest.raises(nbta.InvalidArgumentError, match="twice"):
        nbta.expand_dims(filled(3), (0, 0))


RANGES = [
    (3,), (0,), (-3,), (1, 4), (4, 1), (4, 1, -1), (0, 10, 3), (2.5,), (1.0, 2.0, 0.1),
    (0, 1, 0.3), (1, 0, -0.25), (np.float32(0), np.float32(1), np.float32(0.1)), (np.int8(3),),
]  # fmt: skip


@pytest.mark.parametrize("bounds", RANGES, ids=str)
def test_arange(bounds):
    full = bounds if len(bounds) > 1 else (0, *bounds)
    want = np.arange(*(np.asarray(n).item() for n in full))
    want = want.astype(np.result_type(*full, *([] if len(full) > 2 else [1])))
    check(lambda: nbta.arange(*bounds), want)
    arrays = [np.asarray(n) for n in bounds]
    spec, value = in_graph(lambda *tensors: nbta.arange(*tensors), *arrays)
    np.testing.assert_array_equal(value, want)
    assert spec.dtype == value.dtype
    assert spec.shape == (None,)


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8"])
def test_arange_of_a_dtype(dtype):
    check(lambda: nbta.arange(1, 7, 2, dtype), np.arange(1, 7, 2, dtype))


def test_arange_knows_lengths_from_shapes():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (3, None))
        assert nbta.arange(nbta.shape(x)[0]).shape == (3,)
        assert nbta.arange(nbta.shape(x)[1]).shape == (None,)
        assert nbta.arange(nbta.constant(4)).shape == (4,)
        assert nbta.arange(nbta.constant(2.5)).shape == (3,)


@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_pass_to_the_start_and_step_of_arange(compiled):
    def cubes(start, step):
        return np.sum(np.arange(start, start + 3.5 * step, step) ** 3)

    k = np.arange(4)
    numbers = 0.3 + 0.7 * k
    want = 3 * np.sum(numbers**2), 3 * np.sum(k * numbers**2)
    assert nbta.grad(cubes, argnums=(0, 1), compiled=compiled)(0.3, 0.7) == pytest.approx(want)
    assert nbta.jvp(cubes, (0.3, 0.7), (1.0, 2.0))[1] == pytest.approx(want[0] + 2 * want[1])
    assert nbta.grad(lambda n: n * np.sum(np.arange(n)), compiled=compiled)(3.5) == 6


def test_arange_errors():
    with pytest.raises(nbta.InvalidArgumentError, match="step: it must not be 0"):
        nbta.arange(1, 2, 0)
    with pytest.raises(nbta.InvalidArgumentError, match="step: it must not be 0"):
        in_graph(lambda n: nbta.arange(1, 2, n), np.array(0))
    with pytest.raises(nbta.InvalidArgumentError, match="give real numbers"):
        nbta.arange(2j)
    with pytest.raises(nbta.InvalidArgumentError, match="give scalars"):
        nbta.arange([1, 2])
    with pytest.raises(nbta.InvalidArgumentError, match="there is no end"):
        nbta.arange(float("inf"))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[0, 0, 0], r"\[0, 0, 0\] has 3 indices, and shape \(2, 3\) has 2 axes"),
        (lambda x: x[0, 3], r"axis 1 has 3 elements, and there is no index 3"),
        (
            lambda x: nbta.slice(x, [0], [1]),
            r"shape \(2, 3\) has 2 axes, and the block begins at 1",
        ),
        (lambda x: nbta.slice(x, [0, 0], [1, 4]), r"axis 1 has 3 elements, and a slice of 4"),
        (lambda x: nbta.dynamic_slice(x, [0, 0], [3, 1]), r"axis 0 has 2 elements.*slice of 3"),
        (lambda x: nbta.dynamic_update_slice(x, x[0], [0]), r"shape \(2, 3\) has 2 axes"),
        (lambda x: nbta.take(x, [0], 2), "no axis 2"),
        (lambda x: nbta.take(x, [0, -3], 0), "index -3 is out of range: axis 0"),
        (lambda x: nbta.scatter_add(x, [0], 1.0, 2), "no axis 2"),
        (lambda x: nbta.scatter_add(x, [3], 1.0, 1), "index 3 is out of range: axis 1"),
        (lambda x: nbta.split(x, 2, 1)[0], "which 2 equal sections do not divide"),
        (lambda x: nbta.split(x, 2, 2)[0], "no axis 2"),
        (lambda x: nbta.pad(x, [(1, 1)] * 3), "3 pairs"),
        (lambda x: nbta.concatenate([x, x], 2), "axis 2"),
        (lambda x: nbta.stack([x, x], 3), "axis 3"),
        (lambda x: nbta.expand_dims(x, 3), "axis 3"),
    ],
)
def test_what_only_a_run_finds(function, message):
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        in_graph(function, filled(2, 3), shape=rank_unknown)


def test_names():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (2, 2))
        tensors = [
            nbta.getitem(x, 0, name="n"),
            nbta.slice(x, [0, 0], [1, 1], name="n"),
            nbta.take(x, [0], name="n"),
            nbta.gather(x, [0], name="n"),
            nbta.one_hot([0], 2, name="n"),
            nbta.stack([x, x], name="n"),
            nbta.concatenate([x, x], name="n"),
            nbta.pad(x, 1, name="n"),
            nbta.flip(x, name="n"),
            nbta.squeeze(x[:1], 0, name="n"),
            nbta.expand_dims(x, 0, name="n"),
            nbta.arange(3, name="n"),
            nbta.scatter_add(x, [0], x[:1], name="n"),
            nbta.dynamic_slice(x, [0, 0], [1, 1], name="n"),
            nbta.dynamic_update_slice(x, x, [0, 0], name="n"),
            nbta.split(x, 2, name="n")[0],
        ]
        assert [t.op.name.rpartition("_")[0] or t.op.name for t in tensors] == ["n"] * len(tensors)
        assert nbta.stack([x, x]).op.type == "Stack"
        assert x[0].op.type == "GetItem"


ROWS, POINTS = np.array([[2, 0], [0, -1]]), np.array([1, 2])

#: Linear functions of float arrays of shape (3, 4), then of the shapes named.
LINEAR = {
    "index": (lambda x: nbta.getitem(x, (1, -1)),),
    "row": (lambda x: nbta.getitem(x, -1),),
    "steps": (lambda x: nbta.getitem(x, np.s_[::-2, None, 1:3]),),
    "ellipsis": (lambda x: nbta.getitem(x, np.s_[..., 1]),),
    "nothing": (lambda x: nbta.getitem(x, np.s_[2:1]),),
    "rows": (lambda x: nbta.getitem(x, ROWS),),
    "slice": (lambda x: nbta.slice(x, [1, 0], [-1, 2]),),
    "dynamic_slice": (lambda x: nbta.dynamic_slice(x, [9, -3], [2, 3]),),
    "update": (lambda x, u: nbta.dynamic_update_slice(x, u, [0, 2]), (2, 2)),
    "moved update": (lambda x, u: nbta.dynamic_update_slice(x, u, [5, 5]), (2, 3)),
    "take": (lambda x: nbta.take(x, ROWS),),
    "take columns": (lambda x: nbta.take(x, ROWS, 1),),
    "gather": (lambda x: nbta.gather(x, 2, -1),),
    "scatter_add": (lambda x, u: nbta.scatter_add(x, ROWS, u), (2, 2, 4)),
    "scatter_add columns": (lambda x, u: nbta.scatter_add(x, ROWS, u, -1), (3, 2, 2)),
    "scatter_add one": (lambda x, u: nbta.scatter_add(x, ROWS, u), (1, 4)),
    "concatenate": (lambda x, y: nbta.concatenate([x, y, x], 1), (3, 2)),
    "concatenate back": (lambda x, y: nbta.concatenate([y, x, y], -2), (1, 4)),
    "concatenate flat": (lambda x, y: nbta.concatenate([x, y], None), (2,)),
    "stack": (lambda x, y: nbta.stack([x, y], 1), (3, 4)),
    "stack last": (lambda x, y: nbta.stack([x, y, x], -1), (3, 4)),
    "split": (lambda x: nbta.split(x, 2, 1)[0] * 2 + nbta.split(x, 2, 1)[1],),
    "split at": (lambda x: nbta.split(x, [1], -2)[1],),
    "split back": (lambda x: nbta.split(x, [3, 1], 1)[2],),
    "pad": (lambda x: nbta.pad(x, (1, 2), 0.5),),
    "pad pairs": (lambda x, v: nbta.pad(x, [(1, 0), (0, 2)], v), ()),
    "flip": (lambda x: nbta.flip(x, 1) * x,),
    "squeeze": (lambda x: nbta.squeeze(x[None, :, None], (0, 2)),),
    "expand_dims": (lambda x: nbta.expand_dims(x, (0, -1)),),
}  # fmt: skip


def of_floats(case):
    """A function that is not linear, and its arguments."""
    function, *others = LINEAR[case]
    rng = np.random.default_rng(7)
    return lambda *args: function(*args) ** 3, tuple(rng.normal(size=s) for s in [(3, 4), *others])


@pytest.mark.smoke_every(4)
@pytest.mark.parametrize("case", LINEAR)
def test_gradients(case):
    function, arrays = of_floats(case)
    check_grads(function, arrays, order=2)


def two_orders(function, arrays, shape, extra=()):
    """First and second derivatives, through tensors of which little is known."""
    graph = nbta.Graph()
    with graph.as_default():
        xs = [nbta.placeholder("float64", shape(array)) for array in arrays]
        more = [nbta.placeholder(array.dtype, shape(array)) for array in extra]
        first = nbta.gradients(function(*xs, *more), xs)
        second = nbta.gradients([grad * grad for grad in first], xs)
    feeds = dict(zip([*xs, *more], [*arrays, *extra], strict=True))
    return nbta.Session(graph).run([*first, *second], feeds)


@pytest.mark.parametrize("case", LINEAR)
def test_gradients_of_unknown_shapes(case):
    function, arrays = of_floats(case)
    want = two_orders(function, arrays, known)
    shapes = (dimensions_unknown,) if case == "flip" else (dimensions_unknown, rank_unknown)
    for shape in shapes:
        for one, other in zip(two_orders(function, arrays, shape), want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


SYMBOLIC = {
    "index": lambda x, p: x[p[0], p[1]],
    "bounds": lambda x, p: x[p[0] :, : p[1] : p[0]],
    "slice": lambda x, p: nbta.slice(x, p, [1, p[1]]),
    "dynamic_slice": lambda x, p: nbta.dynamic_slice(x, p, [2, 3]),
    "update": lambda x, p: nbta.dynamic_update_slice(x, x[:2, :2] * 2, p),
    "take": lambda x, p: nbta.take(x, p, 1),
    "scatter_add": lambda x, p: nbta.scatter_add(x, p, x[:2] * 2),
    "split": lambda x, p: nbta.split(x, [p[0], p[1]], 1)[1],
}


@pytest.mark.parametrize("case", SYMBOLIC)
def test_gradients_at_symbolic_places(case):
    x = np.random.default_rng(7).normal(size=(3, 4))
    function = SYMBOLIC[case]
    want = two_orders(lambda x: function(x, POINTS) ** 3, [x], known)
    for shape in (known, dimensions_unknown):
        got = two_orders(lambda x, p: function(x, p) ** 3, [x], shape, [POINTS])
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_gradients_of_single_parts():
    """A split of which one part is used gives zeros to the others."""
    x = filled(4)
    (dx, _) = two_orders(lambda x: nbta.split(x, 2)[1] ** 2, [x], dimensions_unknown)
    same(dx, np.array([0, 0, 6, 8.0]))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex128"])
def test_gradients_keep_the_dtype(dtype):
    x = filled(3, 4, dtype=dtype)
    graph = nbta.Graph()
    with graph.as_default():
        t = nbta.placeholder(dtype, (3, 4))
        parts = [t[0], nbta.take(t, [1, 1], 1), nbta.pad(t, 1), nbta.slice(t, [0, 0], [1, 1])]
        parts += [nbta.concatenate([t, t]), nbta.stack([t, t]), *nbta.split(t, 2, 1)]
        parts += [nbta.scatter_add(t, [0], t[:1]), nbta.dynamic_update_slice(t, t[:1], [0, 0])]
        grads = [nbta.gradients(part, [t])[0] for part in parts]
    for value in nbta.Session(graph).run(grads, {t: x}):
        assert value.dtype == dtype
        assert value.shape == (3, 4)


def test_integers_have_no_gradients():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (3,))
        i = nbta.placeholder("int64", ())
        assert nbta.gradients(x[i], [x])[0].shape == (3,)
        assert nbta.gradients(nbta.arange(0.0, x[0]), [x]) == [None]
