"""set_item and add_item: against NumPy, eagerly, in graphs and compiled; derivatives; errors."""

import numpy as np
import pytest
from compiled_pairs import Pair
from fuzz.ways import in_python
from hypothesis import given, settings
from hypothesis import strategies as st
from many import each

import nbta
from nbta.structure import leaves
from nbta.testing import check_grads

S = np.s_
WAYS = {"set": nbta.set_item, "add": nbta.add_item}


def filled(*shape, dtype="float64"):
    """Unlike values of a shape."""
    return (np.arange(np.prod(shape, dtype=int)) + 1).reshape(shape).astype(dtype)


def by_numpy(way, x, key, value):
    """What NumPy makes of a copy; only its assignments take values with more axes of one item."""
    out = np.array(x)
    rank = out[key].ndim
    value = np.reshape(value, np.shape(value)[max(np.ndim(value) - rank, 0) :])
    if way == "set":
        out[key] = value
    else:
        np.add.at(out, key, value)
    return out


def same(found, want):
    np.testing.assert_array_equal(found, want)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)


def hold(way, x, key, value):
    """Eagerly, one by one and compiled; the arguments stay as they are."""
    want = by_numpy(way, x, key, value)
    before = [np.copy(x), np.copy(value)]
    f = lambda x, value: WAYS[way](x, key, value)  # noqa: E731
    found = [f(x, value), nbta.function(f, compiled=False)(x, value)]
    with in_python():
        fast = nbta.function(f, compiled=True)
        found += [fast(x, value), fast(x, value)]
    for one in found:
        same(one, want)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(value, before[1])


# Values.

KEYS = [
    0, -1, (1, 2), (1, -2, 3), S[:], S[1:], S[:-1], S[::-1], (S[4:1:-2], 0), S[1:1], S[100:],
    S[-100:2], S[:, ::2, ::-1], (..., 1), (1, ...), (0, ..., 2), None, (None, 0, None), (..., None),
    (), ..., np.int8(1), np.array(1), (1, 1, 1, ...), S[:, 2:0:-1, 1], S[:, 5:], [0, 1, 0], [-1],
    np.array([[1, 0], [0, 0]]), np.zeros(0, int), [], ([1, 1],),
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_keys(way):
    x = filled(2, 3, 4)

    def check(key):
        shape = x[key].shape
        hold(way, x, key, 0.5 * filled(*shape))
        hold(way, x, key, 0.25)

    each(KEYS, check)


@pytest.mark.parametrize("way", WAYS)
def test_values_broadcast(way):
    x = filled(4, 3)
    rows = [
        (0, np.float64(0.5)), (0, np.ones(1)), (0, np.ones((1, 3))), (0, np.ones((1, 1, 3))),
        ((0, 0), np.ones(1)), ((0, 0), np.ones((1, 1))), (S[:], filled(3)), (S[:, 1], np.ones(1)),
        (S[1:], filled(1, 3)), (S[1:], filled(3, 1)), (S[1:3], np.ones((1, 2, 1))),
        ([0, 2, 0], filled(3)), ([0, 2], filled(2, 1)), ((None, 0), filled(1, 3)),
    ]  # fmt: skip

    def check(row):
        hold(way, x, *row)

    each(rows, check)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int8",
                                   "int64", "uint8", "bool", "float16"])  # fmt: skip
def test_dtypes(dtype):
    x, value = filled(3, 2, dtype=dtype), filled(2, dtype=dtype)
    for way in WAYS:
        for key in (1, S[::-1], [0, 0, 2], (S[:], -1)):
            hold(way, x, key, value if np.ndim(x[key]) > 1 else value[: x[key].shape[-1] // 2])


@pytest.mark.parametrize("way", WAYS)
def test_casts_within_a_kind(way):
    x = filled(3)
    rows = [
        (x.astype("f4"), np.float64(1 / 3)), (x, np.float32(0.1)), (x, np.int64(3)),
        (x.astype("i1"), np.int64(3)), (x.astype("c8"), np.float64(0.5)), (x, np.bool_(True)),
    ]  # fmt: skip

    def check(row):
        array, value = row
        cast = np.asarray(value).astype(array.dtype)
        want = by_numpy(way, array, 1, cast)
        f = lambda a, v: WAYS[way](a, 1, v)  # noqa: E731
        same(f(array, value), want)
        same(nbta.function(f, compiled=False)(array, value), want)

    each(rows, check)


def test_numbers_of_python_are_weak():
    x = filled(3)
    for dtype in ("f4", "f2", "c8", "f8"):
        same(nbta.set_item(x.astype(dtype), 0, 0.1), by_numpy("set", x.astype(dtype), 0, 0.1))
    for dtype in ("i1", "u1", "u8", "f4"):
        same(nbta.add_item(x.astype(dtype), 0, 7), by_numpy("add", x.astype(dtype), 0, 7))
    f = nbta.function(lambda a: nbta.set_item(a, 0, 0.1), compiled=False)
    same(f(x.astype("f4")), by_numpy("set", x.astype("f4"), 0, 0.1))
    same(nbta.set_item([1, 2, 3], 0, 9), np.array([9, 2, 3]))
    same(nbta.set_item(2.0, (), 1), np.array(1.0))


def test_nothing_is_special_about_nan_and_infinities():
    x = np.array([np.nan, np.inf, -0.0, 1.0])
    for way in WAYS:
        hold(way, x, S[1:], np.array([np.nan, -np.inf, -0.0]))
        hold(way, x, [0, 2, 0], np.array([np.inf, np.nan, 1.0]))
    assert np.signbit(nbta.set_item(np.zeros(2), 0, -0.0)[0])


def test_empty_arrays():
    for shape in ((0,), (0, 3), (2, 0)):
        x = np.zeros(shape)
        for way in WAYS:
            hold(way, x, S[:], 1.0)
            hold(way, x, S[5:], 1.0)
            hold(way, x, ..., np.zeros(shape))
            hold(way, x, [], np.zeros((0, *shape[1:])))
    hold("set", np.zeros((2, 0)), 1, np.zeros(0))


BOUND = st.none() | st.integers(-7, 7)
SLICE = st.builds(slice, BOUND, BOUND, st.sampled_from([None, 1, 2, 3, -1, -2, -7]))


@st.composite
def cases(draw):
    """A shape, a key for it, and the shape of a value."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=4)))
    key = []
    for dimension in shape[: draw(st.integers(0, len(shape)))]:
        index = st.integers(-dimension, dimension - 1) if dimension else SLICE
        key.append(draw(SLICE | index))
    for _ in range(draw(st.integers(0, 2))):
        key.insert(draw(st.integers(0, len(key))), None)
    if draw(st.booleans()):
        key.append(...)
    picked = np.zeros(shape)[tuple(key)].shape
    value = [n if draw(st.booleans()) else 1 for n in picked]
    return shape, tuple(key), tuple(value[draw(st.integers(0, len(value))) :])


@settings(max_examples=40, deadline=None)
@given(cases(), st.sampled_from(list(WAYS)))
def test_any_key_and_value(case, way):
    shape, key, value = case
    hold(way, filled(*shape), key, 0.5 * filled(*value))


@pytest.mark.parametrize("way", WAYS)
def test_symbolic_integers_and_bounds(way):
    """Each place of an integer is one of the run; one trace for all of them."""
    x = filled(5, 4)
    f = lambda x, i, j, v: WAYS[way](x, (S[i:j], i), v)  # noqa: E731
    g = lambda x, i, j, v: WAYS[way](x, (i, S[j:i:-1]), v)  # noqa: E731
    rows = [(0, 3), (1, 1), (-2, 5), (3, 100), (-4, -1), (2, -9)]
    for h, key in ((f, lambda i, j: (S[i:j], i)), (g, lambda i, j: (i, S[j:i:-1]))):
        slow, fast = nbta.function(h, compiled=False), nbta.function(h, compiled=True)
        with in_python():
            for i, j in rows:
                want = by_numpy(way, x, key(i, j), 0.5)
                for one in (h, slow, fast):
                    same(one(x, np.int64(i), np.int64(j), 0.5), want)


@pytest.mark.parametrize("way", WAYS)
def test_symbolic_rows(way):
    x, rows = filled(4, 3), np.array([3, 0, -1, 3])
    values = 0.25 * filled(4, 3)
    f = lambda x, k, v: WAYS[way](x, k, v)  # noqa: E731
    want = by_numpy(way, x, rows, values)
    with in_python():
        for make in (nbta.function(f, compiled=False), nbta.function(f, compiled=True)):
            same(make(x, rows, values), want)
            same(make(x, rows[:0], values[:0]), x)


def test_lengths_of_the_run_in_keys():
    def f(x):
        n = nbta.shape(x)[0]
        x = nbta.set_item(x, n - 1, x[0])
        return nbta.add_item(x, S[n // 2 :], 1.0)

    with in_python():
        fast = nbta.function(f, compiled=True)
        for n in (4, 7, 1):
            x = filled(n)
            want = np.array(x)
            want[-1] = want[0]
            want[n // 2 :] += 1.0
            for one in (f, nbta.function(f, compiled=False), fast):
                same(one(x), want)


def test_machine_code_too():
    f = Pair(lambda x, i, v: nbta.add_item(nbta.set_item(x, (i, S[::-1]), v), [0, 2, 0], v * 0.5))
    for i in (1, 0, -1):
        f(filled(3, 4), np.int64(i), 0.25 * filled(4))


# Nothing of the caller's changes.


def test_arguments_captured_arrays_and_earlier_results_stay():
    around = filled(4)
    kept = np.copy(around)

    def f(x):
        a = nbta.set_item(x, 0, 9.0)
        b = nbta.add_item(around, 1, a[0])
        return a, nbta.set_item(b, 2, 7.0), x

    x = filled(4) * 0.5
    with in_python():
        fast = nbta.function(f, compiled=True)
        for make in (f, nbta.function(f, compiled=False), fast):
            first = make(x)
            copies = [np.copy(value) for value in leaves(first)]
            make(x * 2)
            for value, copy in zip(leaves(first), copies, strict=True):
                np.testing.assert_array_equal(value, copy)
            np.testing.assert_array_equal(x, filled(4) * 0.5)
            np.testing.assert_array_equal(around, kept)


def test_what_an_eager_call_gives_is_an_array_of_its_own():
    x = filled(3)
    for key in (0, S[5:], [], S[:]):
        for change in WAYS.values():
            found = change(x, key, 1.0)
            assert not np.shares_memory(found, x)
            found[...] = -1.0
    np.testing.assert_array_equal(x, filled(3))


def test_a_value_that_is_a_part_of_the_array():
    x = filled(5)
    for way in WAYS:
        want = by_numpy(way, x, S[1:], np.copy(x[:-1]))
        f = lambda x, way=way: WAYS[way](x, S[1:], x[:-1])  # noqa: E731
        with in_python():
            for make in (f, nbta.function(f, compiled=False), nbta.function(f, compiled=True)):
                same(make(x), want)


# Derivatives.


@pytest.mark.smoke_every(2)
@pytest.mark.parametrize("way", WAYS)
def test_gradients(way):
    """To the second order, in both modes; of values that broadcast too."""
    x = np.linspace(-0.8, 1.2, 12).reshape(4, 3)
    rows = [
        (1, np.array([0.5, -0.4, 0.3])), ((-1, 0), np.float64(0.7)), (S[::-2], np.array([0.2])),
        (S[1:3, 1:], np.array([[0.4], [0.9]])), (..., np.array([0.1, 0.2, 0.3])),
        ((None, 0), np.array([[0.5, 0.6, 0.7]])), (S[7:], np.float64(0.3)),
        ([0, 2, 0], np.array([[0.3], [0.6], [-0.8]])), ([1, 1], np.array([0.3, 0.6, -0.8])),
    ]  # fmt: skip

    def check(row):
        key, value = row
        f = lambda x, v: nbta.sin(WAYS[way](x, key, v * v)) * x  # noqa: E731
        check_grads(f, (x, value))

    each(rows, check)


@pytest.mark.parametrize("way", WAYS)
def test_gradients_in_both_executors(way):
    x, v = np.linspace(-0.8, 1.2, 12).reshape(4, 3), np.array([0.5, -0.4, 0.3])

    def f(x, k, i, v):
        a = WAYS[way](nbta.tanh(x), (i, S[i:]), v[i:])
        a = WAYS[way](a, k, v * 0.5)
        return nbta.sum(nbta.sin(a) * x)

    def slope(x, k, i, v):
        one, other = nbta.grad(f, (0, 3))(x, k, i, v)
        return nbta.sum(nbta.sin(one)) + nbta.sum(nbta.cos(other))

    rows = np.array([2, 0, 2])
    for g in (f, slope):
        slow, fast = (nbta.value_and_grad(g, (0, 3), compiled=c) for c in (False, True))
        with in_python():
            for i in (0, 1, 2):
                expected = leaves(slow(x, rows, np.int64(i), v))
                for mine, theirs in zip(
                    leaves(fast(x, rows, np.int64(i), v)), expected, strict=True
                ):
                    np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def test_of_a_row_named_twice_only_the_last_value_counts():
    f = lambda v: nbta.sum(nbta.set_item(np.zeros(3), [1, 1, 0], v))  # noqa: E731
    np.testing.assert_array_equal(nbta.grad(f)(np.ones(3)), [0.0, 1.0, 1.0])


def test_complex_gradients():
    x = np.array([0.3 + 0.2j, -0.5 + 0.9j, 1.1 - 0.4j])
    for way in WAYS.values():
        check_grads(lambda x, v, way=way: way(x * x, S[1:], v * x[0]), (x, x[:1]), order=1)


def test_reads_of_one_array_share_a_gradient():
    """Many reads outside of loops: as differences have it, and one addition in place for each."""

    def f(x):
        return nbta.add_n([nbta.sin(x[k] * x[k - 1]) for k in range(4)]) + nbta.sum(x[1:] * x[:-1])

    x = np.array([0.3, -0.9, 1.2, 0.5])
    check_grads(f, (x,))
    graph = nbta.function(nbta.grad(f), compiled=False)
    with in_python():
        np.testing.assert_allclose(nbta.grad(f, compiled=True)(x), graph(x), rtol=1e-12)


# Errors.


def error(f, *args):
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        f(*args)
    return caught.value.reason, str(caught.value)


def errors(f, *args):
    """Of an eager call, and of both executors: the same reason; gives the three texts."""
    with in_python():
        made = [f, nbta.function(f, compiled=False), nbta.function(f, compiled=True)]
        found = [error(g, *args) for g in made]
    assert len({reason for reason, _ in found}) == 1
    return found[0][0], [text for _, text in found]


X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_an_index_out_of_range(change):
    rows = [(2, 2, 0), (-3, -3, 0), ((0, 3), 3, 1), ((1, -4), -4, 1), ((..., 3), 3, 1)]

    def check(row):
        key, index, axis = row
        reason, texts = errors(lambda x: change(x, key, 0.0), X)
        assert reason == "index"
        expected = f"axis {axis} has {(2, 3)[axis]} elements, and there is no index {index}"
        assert all(expected in text for text in texts), texts

    each(rows, check)


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("index", [2, -3])
def test_a_symbolic_index_out_of_range(change, index):
    reason, texts = errors(lambda x, i: change(x, i, 0.0), X, np.int64(index))
    assert reason == "index"
    expected = f"axis 0 has 2 elements, and there is no index {index}"
    assert all(expected in text for text in texts)


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("index", [2, -3])
def test_a_row_out_of_range(change, index):
    for rows in (np.array([0, index]), [0, index]):
        reason, texts = errors(lambda x, rows=rows: change(x, rows, 0.0), X)
        assert reason == "index"
        assert all(f"index {index} is out of range: axis 0" in text for text in texts), texts
    reason, texts = errors(lambda x, k: change(x, k, 0.0), X, np.array([0, index]))
    assert all(f"index {index} is out of range: axis 0" in text for text in texts), texts


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_a_loop_names_the_iteration(change):
    def up(x):
        step = lambda i, a: (i + 1, change(a, (0, i), 1.0))  # noqa: E731
        return nbta.while_loop(lambda i, a: i < 5, step, (0, x))[1]

    def down(x):
        step = lambda i, a: (i + 1, change(a, -1 - i, 1.0))  # noqa: E731
        return nbta.while_loop(lambda i, a: i < 5, step, (0, x))[1]

    for f, axis, count, index, iteration in ((up, 1, 3, 3, 3), (down, 0, 2, -3, 2)):
        _, (_, *traced) = errors(f, X)
        for text in traced:
            assert f"axis {axis} has {count} elements, and there is no index {index}" in text
            assert f"iteration {iteration} of the loop 'while'" in text


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_what_is_no_index(change):
    rows = [
        (1.5, "index", "is not an index"), (np.float64(1.0), "index", "is not an index"),
        ("a", "index", "is not an index"), (S[0.5:], "index", "is not an index"),
        (S[::0], "index", "step of a slice must not be 0"), ((0, 1, 2), "index", "has 3 indices"),
        ((..., ...), "index", "more than one"), (True, "mask", "nbta.where"),
        (X > 2, "mask", "nbta.where"), ((0, np.array([True, False, True])), "mask", "nbta.where"),
        ((0, np.array([1, 2])), "index", "is not an index"), ([0.5, 1.0], "dtype", "float64"),
    ]  # fmt: skip

    def check(row):
        key, word, words = row
        reason, texts = errors(lambda x: change(x, key, 0.0), X)
        assert reason == word
        assert all(words in text for text in texts), texts

    each(rows, check)
    assert errors(lambda x: change(x, x > 2, 0.0), X)[0] == "mask"
    assert errors(lambda x, i: change(x, i, 0.0), X, 0.5)[0] == "index"


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_values_of_another_kind(change):
    rows = [
        (np.arange(3), 1.5, "float64", "int64"), (np.arange(3), np.nan, "float64", "int64"),
        (X, 1j, "complex128", "float64"), (np.array([True]), 1, "int64", "bool"),
        (np.zeros(2, "u1"), np.int64(1), "int64", "uint8"),
    ]  # fmt: skip

    def check(row):
        x, value, have, want = row
        for one in (value, np.asarray(value)):
            reason, texts = errors(lambda x, v=one: change(x, 0, v), x)
            assert reason == "dtype"
            wanted = f"it is {have}, and what it goes into is {want}; cast one of them"
            assert all(wanted in text for text in texts), texts
        assert errors(lambda x, v: change(x, 0, v), x, np.asarray(value))[0] == "dtype"

    each(rows, check)


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_integers_that_do_not_fit(change):
    for dtype, value in (("i1", 300), ("u1", -1), ("u1", 256)):
        reason, texts = errors(lambda x, v=value: change(x, 0, v), np.zeros(2, dtype))
        assert reason == "dtype"
        assert all(f"{value} does not fit" in text for text in texts), texts


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_values_of_another_shape(change):
    rows = [
        (0, (2,), "(2,) does not broadcast to (3,)"),
        (0, (2, 3), "(2, 3) does not broadcast to (3,)"),
        ((0, 0), (2,), "(2,) does not broadcast to ()"),
        (S[5:], (2, 3), "(2, 3) does not broadcast to (0, 3)"),
        (S[:, :2], (3,), "(3,) does not broadcast to (2, 2)"),
    ]  # fmt: skip

    def check(row):
        key, shape, words = row
        reason, texts = errors(lambda x, v: change(x, key, v), X, np.ones(shape))
        assert reason == "shape"
        assert words in texts[0]
        assert all("does not broadcast to" in text for text in texts)  # a trace may not know them

    each(rows, check)
    assert errors(lambda x, v: change(x, [0, 1], v), X, np.ones((3, 3)))[0] == "shape"


@pytest.mark.parametrize("change", WAYS.values(), ids=WAYS)
def test_a_slice_past_the_end_in_a_loop(change):
    """NumPy cuts it off, and then the value does not fit."""

    def f(x):
        step = lambda i, a: (i + 1, change(a, S[i : i + 2], np.ones(2)))  # noqa: E731
        return nbta.while_loop(lambda i, a: i < 5, step, (0, x))[1]

    with in_python():
        found = nbta.function(f, compiled=True)(np.zeros(6))
    same(found, f(np.zeros(6)))
    reason, (_, *traced) = errors(f, np.zeros(5))
    assert reason == "shape"
    for text in traced:
        assert "(2,) does not broadcast to (1,), the shape of [4:6]" in text
        assert "iteration 4 of the loop 'while'" in text


def test_arrays_that_are_no_tensors():
    for x in (np.array(["a", "b"]), np.array(["2020-01-01"], "M8[D]"), np.zeros(2, [("a", "f8")])):
        assert error(nbta.set_item, x, 0, 1)[0] == "dtype"
    assert error(nbta.set_item, np.ma.array([1.0, 2.0]), 0, 1)[0] == "subclass"


def test_a_failed_call_changes_nothing():
    x = np.zeros(4)

    def f(x, i):
        step = lambda j, a: (j + 1, nbta.set_item(a, j, 1.0))  # noqa: E731
        return nbta.while_loop(lambda j, a: j < i, step, (0, x))[1]

    with in_python():
        fast = nbta.function(f, compiled=True)
        first = fast(x, np.int64(4))
        assert error(fast, x, np.int64(5))[0] == "index"
        same(first, np.ones(4))
        same(fast(x, np.int64(2)), np.array([1.0, 1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(x, np.zeros(4))
