"""Calls again with arguments of a kind: no graph is looked up, however these lie in memory."""

import array
from typing import NamedTuple

import numba
import numpy as np
import pytest
from fuzz.ways import in_python

import nbta
from nbta.api.tracing import Function


def layers(w, x):
    """A sum over a matrix and a vector, with a loop."""
    total = 0.0
    for i in range(w.shape[0]):
        total += np.sin(w[i] @ x) * x[0]
    return total


SLOW = pytest.mark.slow
W, X = np.arange(12.0).reshape(3, 4) / 7, np.array([0.5, -1.0, 2.0, 0.25])


def gaps(array):
    """Items with others between them."""
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), np.nan)
    wide[..., ::2] = array
    return wide[..., ::2]


def backwards(array):
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


def unaligned(array):
    """Items that begin between two words."""
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:]
    found = memory.view(array.dtype).reshape(array.shape)
    found[...] = array
    return found


def frozen(array):
    array = gaps(array)
    array.flags.writeable = False
    return array


LAYOUTS = [np.asfortranarray, gaps, backwards, frozen, lambda array: gaps(array.T).T]
CASES = [(of_w, of_x) for of_w in LAYOUTS for of_x in (np.copy, gaps, backwards)]


def in_short(monkeypatch, f, *args, **kwargs):
    """What a call gives that looks up no graph."""
    with monkeypatch.context() as patch:
        patch.setattr(Function, "bound", None)
        return f(*args, **kwargs)


@pytest.mark.parametrize(("of_w", "of_x"), CASES)
def test_each_layout_is_called_in_short(monkeypatch, of_w, of_x):
    f = nbta.value_and_grad(layers, (0, 1), compiled=True)
    value, (dw, dx) = f(W, X)
    for _ in range(2):  # with what was made for the other layout, too
        w, x = of_w(W), of_x(X)
        f(w, x)
        found = in_short(monkeypatch, f, w, x)
        in_short(monkeypatch, f, W, X)
        np.testing.assert_array_equal(w, W)
        np.testing.assert_allclose(found[0], value, rtol=1e-14)
        np.testing.assert_allclose(found[1][0], dw, rtol=1e-14)
        np.testing.assert_allclose(found[1][1], dx, rtol=1e-14)


def test_items_that_begin_between_words():
    f = nbta.value_and_grad(layers, (0, 1), compiled=True)
    value, _ = f(W, X)
    for _ in range(3):
        assert f(unaligned(W), unaligned(X))[0] == value


@pytest.mark.parametrize("of_x", [gaps, backwards])
def test_vectors_of_what_was_called_with_others(monkeypatch, of_x):
    f = nbta.value_and_grad(layers, (0, 1), compiled=True)
    value, _ = f(W, X)
    assert in_short(monkeypatch, f, W, of_x(X))[0] == value


def test_gradients_of_other_layouts_are_filled(monkeypatch):
    f = nbta.value_and_grad(layers, (0, 1), compiled=True)
    expected = f(W, X)
    w, x = np.asfortranarray(W), gaps(X)
    f(w, x)
    out = np.zeros((3, 4)), np.zeros(4)
    found = in_short(monkeypatch, f, w, x, out=out)
    assert found[1] is out
    for one, other in zip(out, expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_matrices_of_another_rank_or_order(monkeypatch):
    f = nbta.grad(lambda w: np.sum(w * w), compiled=True)
    for given in (np.asfortranarray(W), W, gaps(X), gaps(np.stack([W, W]))):
        f(given)
        np.testing.assert_array_equal(f(given), 2 * given)


def test_a_function_whose_arrays_go_by_the_order_is_not_run_for_another():
    def flattened(w):
        flat = w.ravel()  # a view of w in C's order
        flat[0] = 10.0
        return np.sum(w * w)

    f = nbta.value_and_grad(flattened, compiled=True)
    for _ in range(3):
        assert f(W)[0] == pytest.approx(flattened(W.copy()), rel=1e-14)
        with pytest.raises(nbta.InvalidArgumentError, match="only the run knows"):
            f(np.asfortranarray(W))


def test_parts_of_one_array_of_which_one_changes():
    def moved(x, y):
        x[0] = y[1] * 3.0
        return np.sum(x * y)

    base = np.arange(8.0)
    f = nbta.value_and_grad(moved, (0, 1), compiled=True)
    for _ in range(3):
        found, (dx, dy) = f(base[::2], base[1::2])
        assert found == moved(base[::2].copy(), base[1::2].copy())
        np.testing.assert_array_equal(dx, [0, 3, 5, 7])
        np.testing.assert_array_equal(dy, [9, 5, 4, 6])


POINTS = np.array([(1.0, 2.0), (3.0, 4.0)], [("a", "f8"), ("b", "f8")])


class Line(NamedTuple):
    slope: float
    points: np.ndarray


@numba.experimental.jitclass([("a", numba.float64), ("b", numba.float64[:])])
class Point:
    def __init__(self, a, b):
        self.a, self.b = a, b


def typed_dict():
    made = numba.typed.Dict.empty(numba.types.unicode_type, numba.float64)
    made["a"] = 4.0
    return made


def in_a_file(folder):
    made = np.memmap(folder / "items", "f8", "w+", shape=(4,))
    made[:] = X
    return made


def parts(x, other):
    return x * other["a"] * 2.0


def items(x, other):
    return x * sum(v * v for v in other)


def first(x, other):
    return x * other[0] * other[1]


def everything(x, other):
    return x * np.sum(other * other)


KINDS = {
    "records": (lambda x, other: x * np.sum(other["a"] * other["b"]), lambda _: POINTS),
    "a record": (parts, lambda _: POINTS[1]),
    "an object": (lambda x, other: x * other.a * np.sum(other.b), lambda _: Point(2.0, X)),
    "a named tuple": (
        lambda x, other: x * other.slope * np.sum(other.points),
        lambda _: Line(2.0, X),
    ),
    "a typed list": (first, lambda _: numba.typed.List([3.0, 5.0])),
    "a typed list of arrays": (
        lambda x, other: x * np.sum(other[0]) * other[1][1],
        lambda _: numba.typed.List([X, X]),
    ),
    "a typed dict": (parts, lambda _: typed_dict()),
    "a range": (items, lambda _: range(4)),
    "an array of the library": (first, lambda _: array.array("d", [3.0, 5.0])),
    "memory": (first, lambda _: memoryview(X)),
    "a file": (everything, in_a_file),
}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_called_in_short(monkeypatch, tmp_path, name):
    f, make = KINDS[name]
    other = make(tmp_path)
    expected = f(2.0, other)
    fast, slow = (nbta.value_and_grad(f, compiled=how) for how in (True, False))
    np.testing.assert_allclose(slow(2.0, other), (expected, expected / 2), rtol=1e-14)
    fast(2.0, other)
    for x in (2.0, 4.0):
        found = in_short(monkeypatch, fast, x, other)
        np.testing.assert_allclose(found, (expected * x / 2, expected / 2), rtol=1e-14)


def test_values_in_such_arguments_may_change():
    f = nbta.value_and_grad(items, compiled=True)
    for count in (3, 4, 3, 5, 4):
        assert f(1.0, range(count)) == (items(1, range(count)),) * 2
    g = nbta.value_and_grad(parts, compiled=True)
    for k in (0, 1, 0):
        assert g(1.0, POINTS[k]) == (2 * POINTS[k]["a"],) * 2
    given = typed_dict()
    for value in (1.0, 2.0):
        given["a"] = value
        assert g(1.0, given) == (2 * value,) * 2
    given["b"] = 1.0
    assert g(1.0, given) == (4.0, 4.0)


def test_gradients_by_records(monkeypatch):
    f = nbta.grad(lambda points: np.sum(points["a"] * points["b"]), compiled=True)
    expected = f(POINTS)
    assert expected.dtype == POINTS.dtype
    np.testing.assert_array_equal(in_short(monkeypatch, f, POINTS), expected)
    np.testing.assert_array_equal(expected["a"], POINTS["b"])


def test_whole_numbers_for_floats_of_a_signature(monkeypatch):
    signature = [nbta.Spec("float64", ()), nbta.Spec("float64", (None,))]
    f = nbta.function(lambda n, x: x / n, input_signature=signature, compiled=True)
    f(4, X)
    np.testing.assert_array_equal(in_short(monkeypatch, f, 5, X), X / 5)
    for n in (2**53 + 1, -(2**60) - 1):
        with pytest.raises(nbta.InvalidArgumentError, match="cast"):
            f(n, X)
    for _ in range(3):
        np.testing.assert_array_equal(f(2, np.array([2, 4])), [1.0, 2.0])
        np.testing.assert_array_equal(in_short(monkeypatch, f, 2, X), X / 2)


def drawn(random):
    """An argument of each kind, of random values and lengths."""
    n = random.choice([0, 1, 2, 3, 5])
    items, wide = random.normal(size=n), random.normal(size=(2, 2 * n + 1))
    return {
        "float": float(random.normal()), "int": int(random.integers(-5, 5)), "huge": 2**70,
        "float64": np.float64(random.normal()), "float32": np.float32(random.normal()),
        "int8": np.int8(3), "uint64": np.uint64(2**63 + 5), "no axes": np.array(random.normal()),
        "vector": items, "gaps": wide[0, : 2 * n : 2], "backwards": items[::-1],
        "floats": items.astype("f4"), "integers": np.arange(n), "truths": items > 0,
        "other order": items.astype(items.dtype.newbyteorder()), "matrix": wide.copy(),
        "Fortran": np.asfortranarray(wide), "columns": wide[:, : 2 * n : 2], "transposed": wide.T,
        "list": list(items), "tuple": tuple(items), "lists": [list(items)] * 2, "range": range(n),
        "memory": memoryview(items), "library": array.array("d", items), "frozen": frozen(items),
        "true": True, "false": np.bool_(False), "none": None, "bytes": b"ab",
        "text": "abc"[: random.integers(0, 4)], "complex": 1 + 2j,
    }  # fmt: skip


def by_kind(x, other):
    if other is None:
        return x * 2.0
    if isinstance(other, str | bytes):
        return x * (len(other) + 1)
    return x * np.sum(np.abs(np.asarray(other)) * 1.0) + x * x


def outcome(f, *args):
    """What a call gives, or how it fails."""
    try:
        return f(*args)
    except nbta.NbtaError as error:
        return type(error), str(error)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(k, marks=SLOW) for k in range(2, 12))])
def test_random_kinds_by_turns(seed):
    random = np.random.default_rng(seed)
    fast, slow = (nbta.value_and_grad(by_kind, compiled=how) for how in (True, False))
    kinds = random.choice(list(drawn(random)), 6)
    with in_python():
        for _ in range(30):
            given, x = drawn(random)[random.choice(kinds)], float(random.normal())
            found, expected = outcome(fast, x, given), outcome(slow, x, given)
            if isinstance(expected[0], type):
                assert found == expected
                continue
            np.testing.assert_allclose(found, expected, rtol=1e-5)  # sums of float32
            np.testing.assert_allclose(found[0], by_kind(x, given), rtol=1e-5)
            assert [value.dtype for value in found] == [value.dtype for value in expected]
