"""NumPy's records and arrays of records in calls of gradients in ``@njit`` functions."""

import functools

import numba
import numpy as np
import pytest
from numba import types
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python, rtsys

import nbta
from nbta.runtime.records import RecordType

PAIR = np.dtype([("a", np.float64), ("b", np.float64)])
ALIGNED = np.dtype([("n", np.int8), ("a", np.float32), ("b", np.float64)], align=True)
NAMED = np.dtype(
    [("a", "f4"), ("n", "i4"), ("b", "f8"), ("name", "S25"), ("ok", "?"), ("t", "M8[s]")]
)
CODED = np.dtype([("code", "U9"), ("a", "f8"), ("name", "S25")])
BODY = np.dtype([("place", "f8", (3,)), ("mass", "f4"), ("at", PAIR, (2,)), ("z", "c16")])


def records(dtype, shape=()):
    """Records of random numbers."""
    rng, found = np.random.default_rng(len(dtype)), np.zeros(shape, dtype)

    def fill(part):
        for name in part.dtype.names:
            kind, items = part.dtype[name].base, part[name]
            if kind.names:
                fill(items)
            elif kind.kind in "fc":
                items[...] = rng.normal(size=items.shape)
            elif kind.kind in "ib":
                items[...] = rng.integers(0, 2 if kind.kind == "b" else 5, size=items.shape)
            else:
                items[...] = b"abc" if kind.kind in "SU" else 7

    fill(found)
    return found[()]


def alike(found, expected):
    """Whether structures are of the same types and have the same items."""
    if isinstance(expected, tuple) and not isinstance(expected, np.void):
        return len(found) == len(expected) and all(map(alike, found, expected))
    found, expected = np.asarray(found), np.asarray(expected)
    return (found.dtype, found.shape) == (expected.dtype, expected.shape) and bool(
        np.all(found == expected)
    )


def parts_of(found):
    """The arrays of numbers in a structure."""
    if isinstance(found, tuple) and not isinstance(found, np.void):
        return [part for each in found for part in parts_of(each)]
    found = np.asarray(found)
    names = found.dtype.names or ()
    return [part for name in names for part in parts_of(found[name])] if names else [found]


def of_items(x, r):
    total = 0.0
    for i in range(len(r)):
        if r[i]["a"] < 1.0:
            total += r[i]["a"] * x + r[i]["b"] * x**2
    return total


def of_numbers_and_truth_values(x, r):
    total = 0.0
    for i in range(len(r)):
        if r[i]["ok"]:
            total += r[i]["a"] * x + r[i]["b"] * x**2 * r[i]["n"]
    return total


def of_fields(r, x):
    return np.sum(r["a"] * r["b"]) * x


def of_axes_and_parts(r, x):
    total = np.sum(r["place"]) * x + np.sum(r["mass"]) * x**2
    return total + np.sum(r["at"]["a"] ** 2 * r["at"]["b"]) + np.sum(np.abs(r["z"]))


CALLS = [
    (of_items, (2.0, records(PAIR, 4)), 0),
    (of_items, (2.0, records(ALIGNED, 1)), 0),
    (of_numbers_and_truth_values, (2.0, records(NAMED, 4)), 0),
    (lambda x, r: x**2 * r["a"], (2.0, records(CODED)), 0),
    (of_fields, (records(PAIR, 4), 3.0), (0, 1)),
    (of_fields, (records(PAIR, 0), 3.0), 0),
    (of_fields, (records(PAIR, 8)[::2], 3.0), 0),
    (of_fields, (records(PAIR, (2, 3)).T, 3.0), 0),
    (of_fields, (records(PAIR), 3.0), (0, 1)),
    (of_axes_and_parts, (records(BODY, 3), 3.0), (0, 1)),
    (of_axes_and_parts, (records(BODY), 3.0), 0),
]


#: The others differ in ranks, layouts and lengths alone.
QUICK = (0, 2, 3, 6, 8, 10)


@pytest.mark.parametrize(
    "k", [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in range(len(CALLS))]
)
def test_calls_are_those_from_python(k):
    f, args, argnums = CALLS[k]
    vg = nbta.value_and_grad(f, argnums=argnums, compiled=True)
    expected, call = vg(*args), numba.njit(lambda *args: vg(*args))
    assert expected[0] == pytest.approx(f(*args))
    for _ in range(2):
        assert alike(call(*args), expected)
    apart = nbta.value_and_grad(f, argnums=argnums, compiled=False)
    for have, want in zip(parts_of(apart(*args)), parts_of(expected), strict=True):
        np.testing.assert_allclose(have, want, 1e-6)


@pytest.mark.parametrize("k", [2, pytest.param(9, marks=pytest.mark.slow)])
def test_calls_that_python_answers(k):
    f, args, argnums = CALLS[k]
    vg = nbta.value_and_grad(f, argnums=argnums, compiled=False)
    assert alike(numba.njit(lambda *args: vg(*args))(*args), vg(*args))


def test_a_gradient_at_records_is_that_of_differences():
    r, x, step = records(BODY, 3), 0.7, 1e-6
    slope = nbta.grad(of_axes_and_parts, compiled=True)
    found = numba.njit(lambda r, x: slope(r, x))(r, x)
    for part in (lambda r: r["place"], lambda r: r["at"]["b"], lambda r: r["at"]["a"]):
        for place in np.ndindex(part(r).shape):
            sides = [r.copy(), r.copy()]
            part(sides[0])[place] += step
            part(sides[1])[place] -= step
            above, below = (of_axes_and_parts(side, x) for side in sides)
            assert part(found)[place] == pytest.approx((above - below) / (2 * step), 1e-6, 1e-8)


def energy(q, x):
    return q["a"] * x + q["b"] * x * x


def test_single_records_are_values():
    """Numba passes its own by address: one would change with the next call."""
    slope = nbta.grad(energy, compiled=True)

    @numba.njit
    def last_and_first(r, out):
        first = slope(r[0], 1.0)
        for i in range(len(r)):
            g = slope(r[i], float(i))
            if i == 1:
                second = g
            out[i] = g
            r[i].a -= 0.5 * g.a
        return first, second, g, second.a + g["b"]

    r = records(PAIR, 3)
    r_before, out = r.copy(), np.zeros(3, PAIR)
    first, second, last, total = last_and_first(r, out)
    assert (first.tolist(), second.tolist(), last.tolist()) == ((1, 1), (1, 1), (2, 4))
    assert (total, out.tolist()) == (5.0, [(0, 0), (1, 1), (2, 4)])
    assert r["a"].tolist() == [a - 0.5 * i for i, a in enumerate(r_before["a"])]

    @numba.njit
    def again(r):  # what a call gives is an argument of the next
        return slope(slope(r[1], 2.0), 3.0)

    assert again(r).tolist() == (3.0, 9.0)


def test_records_in_tuples_and_results():
    @nbta.function(compiled=True)
    def parts(pair, x):
        r, (one, y) = pair
        return r["a"] * x, r, {"b": one}["b"], (r[1], y)

    r = records(PAIR, 3)
    pair = (r, (records(PAIR), 2))
    found = numba.njit(lambda pair, x: parts(pair, x))(pair, 2.0)
    assert alike(found, parts(pair, 2.0))


def test_arrays_to_fill():
    r, out = records(PAIR, 3), np.zeros(3, PAIR)
    vg = nbta.value_and_grad(of_fields, compiled=True)

    @numba.njit
    def filled(r, out):
        return vg(r, 3.0, out=out)

    value, found = filled(r, out)
    assert found is out
    assert alike((value, out), vg(r, 3.0))
    expected = vg(r, 3.0)[1]
    assert alike(filled(r, r)[1], expected)  # the arguments' own memory
    both = nbta.grad(of_fields, argnums=(0, 1), compiled=True)
    with pytest.raises(TypingError, match=r"out\[1\]: the gradient there is a number"):
        numba.njit(lambda r, out: both(r, 1.0, out=(out, out)))(r, out)
    with pytest.raises(nbta.InvalidArgumentError, match="another shape"):
        filled(r, out[:2])
    with pytest.raises(TypingError, match="which may be written to"):
        filled(r, np.zeros(3, ALIGNED))
    one = nbta.grad(energy)
    with pytest.raises(TypingError, match="the gradient there is a record"):
        numba.njit(lambda r, out: one(r[0], 1.0, out=out))(r, out)
    two = nbta.grad(lambda r, s: np.sum(r["a"] * s["b"]), argnums=(0, 1), compiled=True)
    with pytest.raises(nbta.InvalidArgumentError, match="share memory"):
        numba.njit(lambda r, out: two(r, r, out=(out, out)))(r, out)


@pytest.mark.slow
def test_products_with_directions():
    r, t, x = records(PAIR, 3), records(PAIR, 3), 2.0
    t["a"] += 1.0

    def f(r, x):
        return np.sum(r["a"] ** 2 * r["b"]) * x

    @numba.njit
    def along(r, t, x):
        value, pullback = nbta.vjp(f, r, x)
        one, of_one = nbta.vjp(energy, r[0], x)
        before = r[0].a
        r[0].a = 7.0  # of which they have copies
        found = pullback(2.0), of_one(3.0)
        r[0].a = before
        return value, one, found, nbta.jvp(f, (r, x), (t, 1.0)), nbta.hvp(f, (r, x), (t, 1.0))

    value, pullback = nbta.vjp(f, r, x)
    one, of_one = nbta.vjp(energy, r[0], x)
    expected = value, one, (pullback(2.0), of_one(3.0)), nbta.jvp(f, (r, x), (t, 1.0))
    found = along(r.copy(), t, x)
    assert alike(found, (*expected, nbta.hvp(f, (r, x), (t, 1.0))))


def test_loops_in_parallel_and_batches():
    slope = nbta.grad(energy, compiled=True)

    @numba.njit(parallel=True)
    def many(r):
        out = np.empty(len(r), PAIR)
        for i in numba.prange(len(r)):
            out[i] = slope(r[i], float(i))
        return out

    r = records(PAIR, 50)
    assert many(r).tolist() == [(float(i), float(i * i)) for i in range(50)]
    batched = nbta.value_and_grad(lambda x, q: energy(q, x), batch_axis=0, compiled=True)
    assert alike(numba.njit(lambda x, r: batched(x, r))(0.5, r), batched(0.5, r))
    of_records = nbta.value_and_grad(energy, batch_axis=(0, None), compiled=True)
    assert alike(numba.njit(lambda r, x: of_records(r, x))(r, 0.5), of_records(r, 0.5))


def test_errors_are_caught_and_nothing_leaks():
    @functools.partial(nbta.grad, compiled=True)
    def slope(r, x):
        assert x > 0, "positive only"
        return of_fields(r, x)

    @numba.njit
    def caught(r, x):
        found = np.zeros(2, r.dtype)
        try:
            found = slope(r, x)
        except Exception:
            return np.zeros(1, r.dtype)
        return found

    r = records(PAIR, 4)
    assert alike(caught(r, 2.0), slope(r, 2.0))
    assert caught(r, -2.0).tolist() == [(0.0, 0.0)]
    call = numba.njit(lambda r, x: slope(r, x)["a"].sum())
    call(r[::2], 2.0)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(5):
            call(r[::2], 2.0)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc - before.alloc == after.free - before.free > 0


def test_what_is_not_taken_is_told():
    r = records(NAMED, 3)
    slope = nbta.grad(lambda r: np.sum(r["a"]))
    with pytest.raises(TypingError, match=r"args\[0\]\['n'\] is int32 .*gradients exist"):
        numba.njit(lambda r: slope(r))(r)
    with pytest.raises(nbta.InvalidArgumentError, match=r"args\[0\]\['n'\] is int32 \(\)"):
        slope(r[0])
    nothing = np.zeros(2, [("a", "f8"), ("b", [])])
    with pytest.raises(nbta.InvalidArgumentError, match="a record has no fields"):
        nbta.grad(lambda x, r: x * r["a"][0])(1.0, nothing)
    with pytest.raises(TypingError, match="a record has no fields"):
        numba.njit(lambda r: slope(r))(nothing)
    union = np.zeros(2, np.dtype({"names": ["a", "b"], "formats": ["f8", "f8"], "offsets": [0, 0]}))
    with pytest.raises(nbta.InvalidArgumentError, match="'a' and 'b' share memory"):
        nbta.grad(of_fields)(union, 1.0)


@pytest.mark.slow
def test_types_and_programs_ahead():
    slope = nbta.grad(of_fields)
    kind = numba.typeof(records(PAIR, 3))
    slope.warm(kind, numba.float64)
    at = numba.njit(kind(kind, numba.float64))(lambda r, x: slope(r, x))
    assert alike(at(records(PAIR, 3), 2.0), slope(records(PAIR, 3), 2.0))
    one = numba.njit(lambda q: nbta.grad(energy)(q, 2.0))
    one(records(PAIR))
    assert isinstance(one.nopython_signatures[0].return_type, RecordType)
    whole = types.FunctionType(kind(kind, types.float64))
    held = numba.typed.List.empty_list(whole)
    held.append(slope)
    found = numba.njit(lambda f, r: f[0](r, 2.0))(held, records(PAIR, 3))
    assert alike(found, slope(records(PAIR, 3), 2.0))
