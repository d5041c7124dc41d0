"""Derivatives and traced functions that ``@njit`` functions call."""

import collections
import contextlib
import gc
import linecache
import platform
import re
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import literal_unroll, types
from numba.core.errors import NumbaWarning, TypingError
from numba.core.runtime import _nrt_python, rtsys
from numba.experimental import jitclass

import nbta
from nbta.api import in_njit
from nbta.structure import leaves

Point = collections.namedtuple("Point", ["at", "scale"])


def alike(found, expected):
    """Whether structures have bitwise the same values, and arrays of the same dtypes and shapes."""
    pairs = list(zip(leaves(found), leaves(expected), strict=True))
    return all(
        isinstance(a, np.ndarray) == isinstance(b, np.ndarray)
        and (not isinstance(a, np.ndarray) or (a.dtype, a.shape) == (b.dtype, b.shape))
        and np.asarray(a, np.asarray(b).dtype).tobytes() == np.asarray(b).tobytes()
        for a, b in pairs
    )


def asked(kind):
    """How often compiled code asked Python, by the type of what it calls."""
    entries = list(numba.typeof(kind).entries)
    return sum(entry.asked for entry in entries)


@pytest.fixture
def threads():
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


def distance(q, data):
    total = 0.0
    for i in range(len(q)):
        total += (q[i] - data[i]) ** 2
    return total


def test_a_value_and_gradient_in_a_compiled_loop():
    vg = nbta.value_and_grad(distance, compiled=True)

    @numba.njit
    def leapfrog(q, p, step, data):
        for _ in range(3):
            _, g = vg(q, data)
            p = p - step * g
            q = q + step * p
        return q, p

    q, p, data = np.arange(4.0), np.ones(4), np.full(4, 2.0)
    assert alike(leapfrog(q, p, 0.1, data), leapfrog.py_func(q, p, 0.1, data))
    before = asked(vg)
    for n in (2, 7, 100):
        q, data = np.arange(float(n)), np.ones(n)
        assert alike(leapfrog(q, q, 0.1, data), leapfrog.py_func(q, q, 0.1, data))
    assert asked(vg) == before  # one program is for all lengths


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_dtypes_and_lengths(dtype, n):
    def loss(x):
        return nbta.sum(nbta.abs(x) ** 2)

    vg = nbta.value_and_grad(loss, compiled=True)
    compiled = numba.njit(lambda x: vg(x))
    x = (np.arange(n) + 0.5).astype(dtype)
    for _ in range(2):
        assert alike(compiled(x), vg(x))


def test_numbers_tuples_and_named_tuples():
    def loss(p, k, pair):
        return p.scale * nbta.sum(p.at) * k + pair[0] * pair[1]

    vg = nbta.value_and_grad(loss, argnums=(0, 2), compiled=True)
    compiled = numba.njit(lambda *args: vg(*args))
    given = Point(np.ones(3), 2.0), 3, (np.float32(0.5), 1.5)
    found, expected = compiled(*given), vg(*given)
    assert isinstance(found[1][0], Point)
    assert alike(found, expected)


def test_results_of_each_kind():
    def f(x):
        return x * 2, (nbta.sum(x), x > 1), None, nbta.shape(x)[0]

    g = nbta.function(f, compiled=True)
    found = numba.njit(lambda x: g(x))(np.arange(3.0))
    expected = g(np.arange(3.0))
    assert alike(found, expected)
    assert found[2] is None


def test_keywords_and_static_arguments():
    def loss(x, power, *, scale):
        return nbta.sum(x**power) * scale

    g = nbta.grad(loss, compiled=True, static_argnums=1)
    compiled = numba.njit(lambda x: g(x, 3, scale=2.0))
    assert alike(compiled(np.arange(3.0)), g(np.arange(3.0), 3, scale=2.0))
    with pytest.raises(TypingError, match=r"args\[1\] is static, and its value is not known"):
        numba.njit(lambda x, k: g(x, k, scale=2.0))(np.arange(3.0), 3)


def test_what_may_be_none():
    g = nbta.grad(lambda x, y: x * nbta.sum(y), compiled=True)

    @numba.njit
    def compiled(x, y, has_x, has_y):
        a = b = None
        if has_x:
            a = x
        if has_y:
            b = y
        return g(a, y=b)

    assert compiled(2.0, np.ones(3), True, True) == 3.0
    for given in ((False, True), (True, False)):
        with pytest.raises(TypeError, match="expected"):
            compiled(2.0, np.ones(3), *given)


def test_truth_values_decide_which_program():
    def loss(x, squares):
        return nbta.sum(x * x) if squares else nbta.sum(x)

    g = nbta.grad(loss, compiled=True)
    compiled = numba.njit(lambda x, squares: g(x, squares))
    x = np.arange(3.0)
    for squares in (True, False, True):
        assert alike(compiled(x, squares), g(x, squares))


def test_auxiliary_results():
    vg = nbta.value_and_grad(lambda x: (nbta.sum(x * x), x + 1), has_aux=True, compiled=True)
    assert alike(numba.njit(lambda x: vg(x))(np.ones(2)), vg(np.ones(2)))
    g = nbta.grad(lambda x: (nbta.sum(x * x), x + 1), has_aux=True, compiled=True)
    assert alike(numba.njit(lambda x: g(x))(np.ones(2)), g(np.ones(2)))


def curve(x):
    return nbta.stack([x[0] ** 2 * x[1], nbta.sin(x[1])])


@pytest.mark.parametrize(
    "made",
    [nbta.jacobian(curve), nbta.jacfwd(curve), nbta.hessian(lambda x: curve(x)[0])],
)
def test_matrices_of_derivatives(made):
    x = np.array([1.5, 0.5])
    assert alike(numba.njit(lambda x: made(x))(x), made.apart(True)(x))


@numba.njit
def cubes(x):
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** 3
    return total


def test_products_with_a_direction():
    @numba.njit
    def along(x, v):
        return nbta.jvp(cubes, (x,), (v,)), nbta.hvp(cubes, (x,), (v,)), nbta.hvp(cubes, x, v)

    x, v = np.array([1.0, 2.0]), np.array([0.5, 1.0])
    found = along(x, v)
    assert alike(found[0], (9.0, 3 * 0.5 + 12.0))
    assert alike(found[1:], ((6 * x * v,), 6 * x * v))


def test_layouts():
    def loss(x):
        return nbta.sum(nbta.ravel(x) * nbta.arange(x.size) * 1.0)

    vg = nbta.value_and_grad(loss, compiled=True)
    compiled = numba.njit(lambda x: vg(x))
    x = np.arange(24.0).reshape(4, 6)
    frozen = x.copy()
    frozen.flags.writeable = False
    layouts = x.T, x[::2], x[:, ::3], np.asfortranarray(x), x[:, :1], x[:1].T, frozen, x[:0].T
    for given in layouts:
        assert alike(compiled(given), vg(given)), given.strides
    line = nbta.value_and_grad(lambda x: nbta.sum(x * x), compiled=True)
    assert alike(numba.njit(lambda x: line(x))(x[:, 2]), line(x[:, 2]))


def test_results_whose_lengths_only_a_run_knows():
    def positive(x):
        return x[x > 0] * 1.0

    f = nbta.function(positive, compiled=True)
    compiled = numba.njit(lambda x: f(x))
    for x in ([1.0, -1.0, 2.0], [1.0, 2.0], [-1.0, -1.0], [1.0] * 9, [1.0, -1.0]):
        x = np.array(x)
        assert alike(compiled(x), x[x > 0])


def test_lengths_that_python_goes_by():
    def loss(x):
        if len(x) > 4:
            return nbta.sum(x * x)
        return nbta.sum(x) * len(x)

    vg = nbta.value_and_grad(loss, compiled=True)
    compiled = numba.njit(lambda x: vg(x))
    for n in (2, 3, 6, 2, 6):
        assert alike(compiled(np.arange(float(n))), vg(np.arange(float(n))))


@pytest.mark.parametrize("kind", [int, np.int8, np.uint64])
def test_whole_numbers_that_python_goes_by(kind):
    """A value has a program of its own, of which the second call needs no Python."""

    def loss(x, n, k):
        return nbta.sum(nbta.sum(x, axis=n) ** 2) * nbta.sum(np.linspace(0.0, 1.0, k))

    vg = nbta.value_and_grad(loss, compiled=True)
    compiled = numba.njit(lambda x, n, k: vg(x, n, k))
    x = np.arange(12.0).reshape(3, 4)
    values = [(n, k) for n in (0, 1, -1) for k in (2, 5) if n >= 0 or kind is not np.uint64]
    pairs = [(kind(n), kind(k)) for n, k in values]
    for n, k in pairs:
        assert alike(compiled(x, n, k), vg(x, n, k))
    before = asked(vg)
    for n, k in pairs:
        assert alike(compiled(x, n, k), vg(x, n, k))
    assert asked(vg) == before
    for _ in range(2):
        with pytest.raises(nbta.NbtaError, match="axis"):
            compiled(x, kind(7), kind(2))


def test_many_whole_numbers_that_python_goes_by(monkeypatch):
    """Python computes what is for further values, as a program for each would take longer."""
    monkeypatch.setattr(in_njit, "MANY_LENGTHS", 3)
    slope = nbta.grad(lambda x, n: nbta.sum(x * np.linspace(1.0, 2.0, n)), compiled=True)

    @numba.njit
    def compiled(x, n):
        return slope(x, n)

    for _ in range(2):
        for n in range(2, 7):
            assert alike(compiled(2.0, n), slope(2.0, n))
    (entry,) = numba.typeof(slope).entries
    assert len(entry._records) == 3


def test_a_number_that_all_items_of_a_batch_share():
    def loss(w, n, x):
        return nbta.sum(np.linspace(0.0, 1.0, n)) * nbta.sum(w * x)

    vg = nbta.value_and_grad(loss, batch_axis=(None, None, 0), compiled=True)
    compiled = numba.njit(lambda w, n, x: vg(w, n, x))
    w, x = np.arange(4.0), np.arange(20.0).reshape(5, 4)
    for n in (3, 4):
        assert alike(compiled(w, n, x), vg(w, n, x))
    before = asked(vg)
    for n in (3, 4):
        assert alike(compiled(w, n, x), vg(w, n, x))
    assert asked(vg) == before


def test_a_length_that_no_sample_has():
    def loss(x):
        if len(x) != 77:
            raise ValueError("77 items, please")
        return nbta.sum(x * x)

    vg = nbta.value_and_grad(loss, compiled=True)
    compiled = numba.njit(lambda x: vg(x))
    with pytest.raises(TypingError, match="77 items, please"):
        compiled(np.ones(77))
    vg(np.ones(77))  # from now on the types of the results are known
    again = numba.njit(lambda x: vg(x))
    assert alike(again(np.ones(77)), vg(np.ones(77)))
    with pytest.raises(ValueError, match="77 items, please"):
        again(np.ones(5))


def test_other_types_for_other_lengths_are_refused():
    f = nbta.function(lambda x: x if len(x) > 4 else nbta.sum(x), compiled=True)
    compiled = numba.njit(lambda x: f(x))
    assert compiled(np.ones(3)) == 3.0
    with pytest.raises(nbta.InvalidArgumentError, match="float64 of rank 1 for these arguments"):
        compiled(np.ones(7))


# Errors.


def test_an_error_is_that_of_the_call_from_python():
    vg = nbta.value_and_grad(distance, compiled=True)
    compiled = numba.njit(lambda q, data: vg(q, data))
    with pytest.raises(nbta.OutOfRangeError) as expected:
        vg(np.ones(3), np.ones(2))
    for _ in range(2):
        with pytest.raises(nbta.OutOfRangeError) as found:
            compiled(np.ones(3), np.ones(2))
        assert str(found.value) == str(expected.value)
    assert alike(compiled(np.ones(3), np.zeros(3)), vg(np.ones(3), np.zeros(3)))


def test_errors_can_be_caught_where_they_are_raised():
    vg = nbta.value_and_grad(distance, compiled=True)

    @numba.njit
    def guarded(q, data):
        found = 0
        for k in range(3):
            try:
                found += vg(q, data[k:])[1].size
            except Exception:
                found -= 100
        return found

    assert guarded(np.ones(3), np.ones(4)) == 3 + 3 - 100


def test_errors_of_a_users_assertion():
    def loss(x):
        assert x > 0, "not positive"
        return nbta.log(x)

    g = nbta.grad(loss, compiled=True)
    compiled = numba.njit(lambda x: g(x))
    assert compiled(2.0) == 0.5
    with pytest.raises(AssertionError, match="not positive"):
        compiled(-1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones(3, int), r"args\[0\] is int64 \(\?,\), and gradients exist for floats"),
        (np.ones((2, 2)), r"f must return a scalar of floats to differentiate"),
        ([1.0, 2.0], "arguments of calls in @njit functions may be arrays, numbers"),
        ("text", "arguments of calls in @njit functions may be arrays, numbers"),
        (np.ones(3, "f2"), "arguments of calls in @njit functions may be arrays, numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPendingDeprecationWarning")
def test_types_are_refused_with_the_line(given, message):
    g = nbta.grad(lambda x: nbta.sum(x, axis=0))

    @numba.njit
    def compiled(x):
        y = x
        return g(y)

    with pytest.raises(TypingError, match=message) as refused:
        compiled(given)
    line = compiled.py_func.__code__.co_firstlineno + 3
    assert f"{__file__}:{line}: " in str(refused.value).splitlines()[-1]


def test_what_cannot_be_traced_is_refused_as_from_python():
    def loss(x):
        return nbta.sum(x) * hash(x[0])

    g = nbta.grad(loss)
    with pytest.raises(nbta.NbtaError) as expected:
        g(np.ones(3))
    with pytest.raises(TypingError) as found:
        numba.njit(lambda x: g(x))(np.ones(3))
    assert str(expected.value) in str(found.value)


def test_results_that_are_refused():
    texts = nbta.function(lambda x: (x, "text"))
    with pytest.raises(TypingError, match="gives a text, which a call in an @njit function"):
        numba.njit(lambda x: texts(x))(1.0)
    dicts = nbta.function(lambda x: {"a": x})
    with pytest.raises(TypingError, match="results of calls in @njit functions may be arrays"):
        numba.njit(lambda x: dicts(x))(1.0)


@pytest.mark.parametrize("other", [None, "text"])
def test_objects_that_a_run_chooses_are_refused(other):
    chosen = nbta.function(lambda x: (x if other is None else "positive") if x > 0.0 else other)
    with pytest.raises(TypingError, match="gives None, or one of several texts"):
        numba.njit(lambda x: chosen(x))(1.0)


@pytest.mark.parametrize("by", ["machine code", "Python"])
def test_lists_that_loops_fill_are_arrays(by):
    def halves(x):
        found, rows, pairs = [], [], []
        for i in range(len(x)):
            if x[i] > 0.0:
                found.append(0.5 * x[i])
            row = []
            for j in range(i):
                row.append(x[j])
            rows.append(row)
            pairs.append((i, x[i]))
        return found, rows, pairs

    run = nbta.function(halves, compiled=by == "machine code")
    x = np.array([1.0, -2.0, 3.0])
    found, (numbers, starts, counts), (places, values) = numba.njit(lambda x: run(x))(x)
    np.testing.assert_array_equal(found, [0.5, 1.5])
    np.testing.assert_array_equal(numbers, [1.0, 1.0, -2.0])
    np.testing.assert_array_equal(starts, [0, 0, 1])
    np.testing.assert_array_equal(counts, [0, 1, 2])
    np.testing.assert_array_equal(places, range(3))
    np.testing.assert_array_equal(values, x)


@pytest.mark.parametrize("axes", [0, (0, None), (None, 1), 1])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_batches(axes, reduction):
    def loss(w, x):
        return nbta.sum((w * x) ** 2), w[0] + x

    x = np.random.default_rng(0).normal(size=(40, 40))
    w = x.T.copy() if type(axes) is tuple and axes[0] == 0 else x[0]
    # What "auto" decides by its clock may differ from one call to the next, and so may last digits.
    options = {"has_aux": True, "batch_axis": axes, "reduction": reduction, "compiled": True}
    for made in (nbta.value_and_grad(loss, **options), nbta.grad(loss, **options)):
        compiled = numba.njit(lambda w, x, made=made: made(w, x))
        assert alike(compiled(w, x), made(w, x))
        assert alike(compiled(w, x), made(w, x))


def test_batches_of_pairs_and_errors(threads):
    vg = nbta.value_and_grad(distance, argnums=(0, 1), batch_axis=(None, 0))
    compiled = numba.njit(lambda q, data: vg(q, data))
    for n in (1, 5, 100):
        q, data = np.arange(4.0), np.arange(4.0 * n).reshape(n, 4)
        assert alike(compiled(q, data), vg(q, data))
    with pytest.raises(nbta.NbtaError, match=r"out of range|outside"):
        compiled(np.ones(5), np.ones((2, 4)))
    with pytest.raises(TypingError, match=r"gradients exist for floats"):
        compiled(np.ones(4, int), np.ones((2, 4)))
    with pytest.raises(TypingError, match="batch_axis"):
        compiled(np.ones(4), 1.0)

    @numba.njit(parallel=True)
    def many(rows, data):
        found = np.zeros(rows.shape)
        for i in numba.prange(len(rows)):
            found[i] = vg(rows[i], data)[1][0]
        return found

    rows, data = np.arange(80.0).reshape(20, 4), np.arange(12.0).reshape(3, 4)
    for count in (1, numba.config.NUMBA_NUM_THREADS):
        threads(count)
        assert alike(many(rows, data), np.array([vg(row, data)[1][0] for row in rows]))


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_batches_need_no_python(dtype, reduction):
    """One program is for all numbers of items, with sums by parts as from Python."""

    def loss(w, scale, pair):
        x, y = pair
        return scale * (nbta.sum(w * x) - y) ** 2, (x[0] * y, 2 * w * x)

    options = {"has_aux": True, "reduction": reduction, "compiled": True}
    axes = (None, None, 0)
    both = nbta.value_and_grad(loss, (0, 1, 2), batch_axis=axes, **options)
    alone = nbta.grad(loss, (0, 2), batch_axis=axes, **options)
    compiled = numba.njit(lambda w, scale, pair: (both(w, scale, pair), alone(w, scale, pair)))
    rng = np.random.default_rng(1)

    def given(n, size):
        x, y, w = rng.normal(size=(n, size)), rng.normal(size=n), rng.normal(size=size)
        return w.astype(dtype), dtype(0.7), (x.astype(dtype), y.astype(dtype))

    compiled(*given(3, 5))
    before = asked(both), asked(alone)
    for n in (1, 2, 15, 16, 17, 63, 64, 65, 200):
        args = given(n, 3 + n % 7)
        assert alike(compiled(*args), (both(*args), alone(*args)))
    assert (asked(both), asked(alone)) == before


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("axes", [(1, 0), (-1, -1), (2, 1), (-3, -2)])
def test_batches_along_other_axes_need_no_python(axes, reduction):
    """The gradient of what is cut has its items along that axis, too."""

    def loss(w, x, y, n):
        total = 0.0
        for row in x:
            total += nbta.sum(row * row * w) * nbta.sum(y)
        return total * n, x * y[0]

    options = {"has_aux": True, "reduction": reduction, "compiled": True}
    axes = (None, *axes, None)
    both = nbta.value_and_grad(loss, (0, 1, 2), batch_axis=axes, **options)
    alone = nbta.grad(loss, (2, 1), batch_axis=axes, **options)
    compiled = numba.njit(lambda w, x, y, n: (both(w, x, y, n), alone(w, x, y, n)))
    rng = np.random.default_rng(3)

    def given(n, *size):
        x, y = rng.normal(size=(n, *size)), rng.normal(size=(n, size[0]))
        return 0.5, *map(np.ascontiguousarray, map(np.moveaxis, (x, y), (0, 0), axes[1:3])), 2

    compiled(*given(3, 2, 4))
    before = asked(both), asked(alone)
    for n in (1, 2, 17, 64, 65):
        args = given(n, 2 + n % 3, 3 + n % 4)
        assert alike(compiled(*args), (both(*args), alone(*args)))
    assert (asked(both), asked(alone)) == before
    args = given(5, 3, 2)
    args = (args[0], *map(np.asfortranarray, args[1:3]), args[3])
    assert alike(compiled(*args), (both(*args), alone(*args)))


def test_batches_of_no_items_need_no_python():
    def loss(w, x):
        return nbta.sum((w * x) ** 2), x + w

    for axis in (0, 1):
        options = {"has_aux": True, "batch_axis": (None, axis), "compiled": True}
        vg = nbta.value_and_grad(loss, (0, 1), **options)
        mean = nbta.value_and_grad(loss, reduction="mean", **options)
        compiled = numba.njit(lambda w, x, vg=vg: vg(w, x))
        averaged = numba.njit(lambda w, x, mean=mean: mean(w, x))
        w, none = np.arange(4.0), np.zeros((4, 0) if axis else (0, 4))
        assert alike(compiled(w, none), vg(w, none))
        some = np.ones((4, 4))
        assert alike(compiled(w, some), vg(w, some))
        before = asked(vg)
        assert alike(compiled(w, none), vg(w, none))
        assert asked(vg) == before
        assert alike(averaged(w, some), mean(w, some))
        with pytest.raises(nbta.NbtaError, match="mean over no items"):
            averaged(w, none)


def test_errors_and_nan_in_batches():
    def loss(w, x, k):
        return nbta.sum(nbta.where(x > 0, nbta.log(x), 0.0) * (w @ x)) * w[0, int(k)]

    vg = nbta.value_and_grad(loss, batch_axis=(None, 0, 0), compiled=True)
    compiled = numba.njit(lambda w, x, k: vg(w, x, k))
    w, x = np.arange(1.0, 10.0).reshape(3, 3), np.ones((20, 3))
    k = np.zeros(20, int)
    assert alike(compiled(w, x, k), vg(w, x, k))
    k[7] = 5
    with pytest.raises(nbta.NbtaError) as expected:
        vg(w, x, k)
    with pytest.raises(nbta.NbtaError) as found:
        compiled(w, x, k)
    assert type(found.value) is type(expected.value)
    assert str(found.value) == str(expected.value)
    assert found.value.__notes__ == expected.value.__notes__
    k[7], x[5, 1] = 0, 0.0
    x[6] = np.inf
    assert alike(compiled(w, x, k), vg(w, x, k))
    for wrong in (x[:3], x[:0]):
        with pytest.raises(nbta.NbtaError, match="different numbers of items"):
            compiled(w, wrong, k)
    assert alike(compiled(w, x[:0], k[:0]), vg(w, x[:0], k[:0]))


def test_long_items_of_batches_go_to_threads():
    """The bits are the same, whoever computes."""

    def loss(w, x):
        total = 0.0
        for i in range(len(x)):
            total += np.sin(w[0] * x[i]) ** 2
        return total

    vg = nbta.value_and_grad(loss, batch_axis=(None, 0), compiled=True)
    compiled = numba.njit(lambda w, x: vg(w, x))
    w, x = np.ones(1), np.random.default_rng(2).normal(size=(100, 20_000))
    short = x[:, :10].copy()
    assert alike(compiled(w, short), vg(w, short))
    assert asked(vg) == 2  # for a program and a workspace
    assert alike(compiled(w, x), vg(w, x))
    assert alike(compiled(w, x), vg(w, x))
    if platform.machine() in ("x86_64", "AMD64"):
        assert asked(vg) > 3


def test_batched_functions():
    slopes = nbta.vmap(nbta.grad(lambda x: nbta.sum(x**3)))
    compiled = numba.njit(lambda x: slopes(x))
    x = np.arange(6.0).reshape(3, 2)
    before = compiled(x)
    assert alike(before, slopes(x))
    assert alike(compiled(x[:2]), 3 * x[:2] ** 2)


def test_nan_in_a_program_whose_products_look_at_zeros():
    def loss(w, x):
        return nbta.sum(nbta.where(x > 0, nbta.log(x), 0.0) * (w @ x))

    vg = nbta.value_and_grad(loss, argnums=(0, 1), compiled=True)
    compiled = numba.njit(lambda w, x: vg(w, x))
    w = np.arange(9.0).reshape(3, 3)
    good, bad = np.array([1.0, 2.0, 3.0]), np.array([1.0, np.inf, 0.0])
    for x in (good, bad, good, np.full(3, np.nan)):
        assert alike(compiled(w, x), vg(w, x))


# Several functions.

SLOPES = nbta.grad(lambda x: x**2, compiled=True), nbta.grad(lambda x: x**3, compiled=True)


def test_a_loop_over_a_tuple_of_functions():
    @numba.njit
    def given(slopes, x):
        total = slopes[0](x)
        for slope in literal_unroll(slopes):
            total += slope(x)
        return total

    @numba.njit
    def known(x):
        total = 0.0
        for slope in literal_unroll(SLOPES):
            total += slope(x)
        return total

    assert given(SLOPES, 2.0) == 4.0 + 4.0 + 12.0
    assert given(SLOPES[:1] * 2, 2.0) == 4.0 * 3
    assert known(2.0) == 4.0 + 12.0


def test_first_class_functions_around_gradients():
    slope = SLOPES[1]

    @numba.njit("f8(FunctionType(f8(f8)), f8)")
    def call(f, x):
        return f(x)

    assert call(numba.njit("f8(f8)")(lambda x: slope(x)), 2.0) == 12.0
    assert call(numba.cfunc("f8(f8)")(lambda x: slope(x)), 2.0) == 12.0


FIRST_CLASS = types.FunctionType(types.float64(types.float64))


@numba.njit(types.float64(FIRST_CLASS, types.float64))
def called(f, x):
    return f(x)


@jitclass([("f", FIRST_CLASS)])
class Holder:
    def __init__(self, f):
        self.f = f

    def at(self, x):
        return self.f(x)


def test_gradients_become_first_class_functions():
    a, b = SLOPES

    @numba.njit
    def of_both(x):
        held = numba.typed.List.empty_list(FIRST_CLASS)
        held.append(a)
        held.append(b)
        total = called(a, x) + called(b, x) + Holder(a).at(x)
        for f in held:
            total += f(x)
        return total

    assert of_both(2.0) == 2 * (4.0 + 12.0) + 4.0
    held = numba.typed.Dict.empty(types.int64, FIRST_CLASS)
    held[1], held[2] = a, b
    assert held[2] is b
    assert numba.njit(lambda d, k, x: d[k](x))(held, 2, 2.0) == 12.0
    assert [numba.njit(lambda f: f is a)(f) for f in (a, b)] == [True, False]

    def positive(x):
        assert x > 0, "positive numbers only"
        return x * x

    slope = nbta.grad(positive, compiled=True)
    with pytest.raises(AssertionError, match="positive numbers only"):
        numba.njit(lambda x: called(slope, x))(-1.0)
    whole = types.FunctionType(types.int64(types.float64))
    rounded = numba.njit(types.int64(whole, types.float64))(lambda f, x: f(x))
    with pytest.raises(TypingError, match="Known signatures"):
        numba.njit(lambda x: rounded(a, x))(1.0)
    with pytest.raises(nbta.UnimplementedError, match="pass it from an @njit function"):
        called(a, 2.0)
    of_one = numba.typed.List.empty_list(numba.typeof(a))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaWarning)
        with pytest.raises(TypingError, match="first-class function type"):
            of_one.append(b)


@numba.extending.overload(called.py_func)
def _called(f, x):
    return (lambda f, x: f(x)) if isinstance(f, in_njit.NativeFunction) else None


overloaded = called.py_func


@pytest.mark.parametrize("how", ["list", "jitclass", "overload", "vectorize"])
def test_parallel_loops_know_what_is_called_by_other_ways(how):
    """Its threads have no workspaces yet, and ask Python for these."""
    f = nbta.grad(lambda x: x**2, compiled=True)
    held = numba.typed.List.empty_list(FIRST_CLASS)
    held.append(f)
    of_items = numba.vectorize(lambda x: f(x))
    call = {
        "list": lambda held, x: held[0](x),
        "jitclass": lambda held, x: held.at(x),
        "overload": lambda held, x: overloaded(held, x),
        "vectorize": lambda held, x: of_items(x),
    }[how]
    call = numba.njit(inline="always")(call)

    @numba.njit(parallel=True)
    def many(held, x):
        found = np.full(len(x), -1.0)
        for i in numba.prange(len(x)):
            found[i] = call(held, x[i])
        return found

    x = np.arange(1.0, 9.0)
    given = {"list": held, "jitclass": Holder(f), "overload": f, "vectorize": None}[how]
    assert alike(many(given, x), 2.0 * x)


def test_a_process_ends_where_numba_would_drop_the_error():
    """Of loops that Numba makes by itself nobody is told; without an error results are wrong."""
    source = """
        import numba, numpy as np, nbta
        slope = nbta.grad(lambda x: x**2, compiled=True)
        of_items = numba.vectorize(["f8(f8)"], target="parallel")(lambda x: slope(x))
        print(of_items(np.arange(100.0)))
    """
    command = [sys.executable, "-c", textwrap.dedent(source)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "Call it in a loop over numba.prange" in run.stderr


def test_what_may_be_one_function_or_another_is_refused():
    a, b = SLOPES

    @numba.njit
    def either(x):
        slope = a if x > 0 else b
        return slope(x)

    @numba.njit
    def items(x):
        total = 0.0
        for slope in [a, b]:
            total += slope(x)
        return total

    @numba.njit
    def each(slopes, x):
        total = 0.0
        for slope in slopes:
            total += slope(x)
        return total

    @numba.njit
    def one(slopes, x):
        return slopes[int(x)](x)

    two = "a variable cannot be one function of nbta or another"
    several = "are of several types; take one by an index"
    for f, args, words in [
        (either, (1.0,), two), (items, (1.0,), several),
        (each, (SLOPES, 1.0), several), (one, (SLOPES, 1.0), several),
    ]:  # fmt: skip
        with pytest.raises(TypingError) as refused:
            f(*args)
        last = str(refused.value).splitlines()[-1]
        assert last.startswith(__file__)
        assert words in last


# What a function reads from outside.

weights, rate = np.array([1.0, 2.0, 3.0]), 2.0


def weighted(x):
    return np.sum(weights * x**2) * rate


def test_what_is_outside_is_as_it_is_now(monkeypatch):
    vg = nbta.value_and_grad(weighted, compiled=True)
    compiled = numba.njit(lambda x: vg(x))
    x = np.arange(3.0)
    assert alike(compiled(x), vg(x))
    weights[0] = 5.0
    assert alike(compiled(x), vg(x))
    for name, value in (("rate", 3.0), ("weights", np.ones(3)), ("rate", 2.0)):
        monkeypatch.setitem(globals(), name, value)
        assert alike(compiled(x), vg(x))
    monkeypatch.setitem(globals(), "weights", np.ones(4))
    with pytest.raises(nbta.InvalidArgumentError, match="do not broadcast"):
        compiled(x)
    monkeypatch.setitem(globals(), "weights", np.ones((2, 3)))
    with pytest.raises(nbta.NbtaError):
        vg(np.ones((3, 2)))
    assert alike(compiled(x), vg(x))


def test_cells_defaults_and_code():
    factor = 2.0

    def loss(x, power=2):
        return nbta.sum(x**power) * factor

    g = nbta.grad(loss, compiled=True)
    compiled = numba.njit(lambda x: g(x))
    x = np.arange(3.0)
    assert alike(compiled(x), 4 * x)
    factor = 3.0
    assert alike(compiled(x), 6 * x)
    loss.__defaults__ = (1,)
    assert alike(compiled(x), np.full(3, 3.0))
    loss.__code__ = (lambda x, power=2: nbta.sum(x) * 7.0 if factor else x).__code__
    assert alike(compiled(x), np.full(3, 7.0))


def test_attributes_and_items():
    class Model:
        scale = 2.0

    model, table = Model(), {"rate": [1.0, 2.0]}
    g = nbta.grad(lambda x: x * x * model.scale * table["rate"][1], compiled=True)
    compiled = numba.njit(lambda x: g(x))
    assert compiled(1.0) == 8.0
    model.scale = 3.0
    assert compiled(1.0) == 12.0
    table["rate"][1] = 1.0
    assert compiled(1.0) == 6.0


class Model:
    offset = 1.0

    def __init__(self):
        self.scale = 2.0

    def scaled(self, x):
        return x * self.scale + self.offset


class Other(Model):
    def scaled(self, x):
        return x * self.scale * 5.0


@pytest.mark.skipif(in_njit._attribute_words() is None, reason="no word tells of changes")
def test_attributes_and_items_of_dicts_need_no_python():
    model, table = Model(), {"rate": 2.0, "inner": {"power": 3}}

    def loss(x):
        return model.scaled(x) ** 2 * table["rate"] * table["inner"]["power"]

    g = nbta.grad(loss, compiled=True)
    compiled = numba.njit(lambda x: g(x))
    assert compiled(1.0) == g(1.0) == 2 * 3.0 * 2.0 * 2.0 * 3

    def is_as_now(change=lambda: None):
        change()
        found = compiled(1.0)
        before = asked(g)
        for _ in range(3):
            assert compiled(1.0) == found
        assert asked(g) == before  # not even once
        assert found == g.apart(True)(1.0)
        return found

    def change_loop(count):  # by which the interpreter finds its short ways
        for number in range(count):
            model.scale = float(number)

    changes = [
        lambda: setattr(model, "scale", 3.0),
        lambda: change_loop(40),
        lambda: change_loop(41),
        lambda: setattr(Model, "offset", 7.0),
        lambda: setattr(model, "offset", 8.0),
        lambda: delattr(model, "offset"),
        lambda: setattr(model, "__dict__", {"scale": 4.0}),
        lambda: setattr(model, "scale", 4.5),
        lambda: setattr(model, "__class__", Other),
        lambda: setattr(Other, "scaled", lambda self, x: x * self.scale * 11.0),
        lambda: setattr(Model, "scale", 0.5),  # the object's own is before it
        lambda: delattr(model, "scale"),
        lambda: setattr(model, "scaled", lambda x: x * 13.0),
        lambda: table.update(rate=5.0),
        lambda: table["inner"].update(power=2),
        lambda: table.update(inner={"power": 4}),
        lambda: table["inner"].update(power=6),
    ]
    try:
        results = [is_as_now(change) for change in changes]
        model.__dict__.clear()
        model.scale, model.__class__ = 2.0, Model
        Model.scale = property(lambda self: 17.0)  # is before the object's own
        assert compiled(1.0) == g.apart(True)(1.0)
    finally:
        Model.offset = 1.0
        del Model.scale
    assert len(set(results)) == len(results) - 2  # two of them change no result


class Slotted:
    __slots__ = ("rate", "unset")
    power = 2

    def __init__(self, rate):
        self.rate = rate

    def scaled(self, x):
        return x * self.rate * self.power


class Twice(Slotted):
    __slots__ = ()

    def scaled(self, x):
        return x * self.rate * 2.5


class Half:
    def __init__(self, rate):
        self._rate = rate

    @property
    def rate(self):
        return self._rate * 0.5


def read_slot(x, h):
    return h.slotted.scaled(x)


def read_property(x, h):
    return x * h.half.rate


def read_items(x, h):
    return x * h.items[1] * h.items[-1][0]


def read_whole(x, h):
    return x * sum(h.items[:2]) * sum(h.table.values())


def read_tuples(x, h):
    return x * h.pair.at * h.pair[1].rate * h.plain[1][0]


def read_nested(x, h):
    total = 0.0
    for each in h.layers:
        total += each.rate
    return x * total


def holder():
    class Holder:
        pass

    h = Holder()
    h.slotted, h.half, h.items, h.table = Slotted(3.0), Half(5.0), [2.0, 3.0, [4.0]], {"a": 1.0}
    h.pair, h.plain, h.layers = Point(2.0, Slotted(3.0)), (1.0, [5.0]), [Half(1.0), Slotted(2.0)]
    return h


def insert_many(items):
    items[2:2] = [1.0] * 100
    del items[2:102]


CHANGES = {
    read_slot: [
        lambda h: setattr(h.slotted, "rate", 5.0),
        lambda h: setattr(h.slotted, "unset", 1.0),
        lambda h: setattr(h.slotted, "__class__", Twice),
        lambda h: setattr(h, "slotted", Slotted(7.0)),
        lambda h: setattr(Slotted, "power", 3),
    ],
    read_property: [
        lambda h: setattr(h.half, "_rate", 7.0),
        lambda h: setattr(Half, "rate", property(lambda self: self._rate * 0.25)),
        lambda h: setattr(Half, "rate", 2.5),
    ],
    read_items: [
        lambda h: h.items.__setitem__(1, 7.0),
        lambda h: h.items.append([6.0]),
        lambda h: insert_many(h.items),
        lambda h: h.items[-1].__setitem__(0, 9.0),
        lambda h: h.items.pop(),
        lambda h: h.items.insert(0, 7.5),
        lambda h: h.items.clear() or h.items.extend([8.0, 8.5, (8.25,)]),
    ],
    read_whole: [
        lambda h: h.items.__setitem__(0, 7.0),
        lambda h: h.items.insert(0, 2.5),
        lambda h: h.table.update(b=2.0),
        lambda h: h.table.pop("a"),
    ],
    read_tuples: [
        lambda h: setattr(h, "pair", Point(3.0, h.pair.scale)),
        lambda h: setattr(h.pair[1], "rate", 4.0),
        lambda h: h.plain[1].__setitem__(0, 4.0),
    ],
    read_nested: [
        lambda h: setattr(h.layers[0], "_rate", 2.0),
        lambda h: setattr(h.layers[1], "rate", 4.0),
        lambda h: h.layers.append(Half(2.0)),
    ],
}


@pytest.mark.skipif(in_njit._attribute_words() is None, reason="no word tells of changes")
@pytest.mark.parametrize("read", CHANGES)
def test_slots_properties_and_items_need_no_python(read, monkeypatch):
    monkeypatch.setattr(Slotted, "power", 2)
    monkeypatch.setattr(Half, "rate", Half.rate)
    h = holder()
    g = nbta.grad(lambda x: read(x, h) * x, compiled=True)
    compiled = numba.njit(lambda x: g(x))
    seen = [compiled(1.0)]
    for change in [lambda h: None, *CHANGES[read]]:
        change(h)
        seen.append(compiled(1.0))
        assert seen[-1] == nbta.grad(lambda x: read(x, h) * x)(1.0)
        before = asked(g)
        for _ in range(3):
            assert compiled(1.0) == seen[-1]
        assert asked(g) == before  # not even once
    assert len(set(seen)) > 2


def test_items_of_lists_that_other_threads_change(threads):
    items = [1.0, [2.0]]
    g = nbta.grad(lambda x: x * items[0] * items[1][0], compiled=True)

    @numba.njit(nogil=True)
    def run(x, n):
        wrong = 0
        for _ in range(n):
            found = g(x)
            wrong += found not in (2.0, 4.0, 8.0)
        return wrong

    @numba.njit(parallel=True)
    def many(n):
        out = np.zeros(n)
        for i in numba.prange(n):
            out[i] = g(1.0)
        return out

    assert run(1.0, 1) == 0
    found = []
    thread = threading.Thread(target=lambda: found.append(run(1.0, 200)))
    thread.start()
    k = 0
    while thread.is_alive():
        k += 1
        items[0] = (1.0, 2.0, 4.0)[k % 3]
        items[2:] = [None] * (k % 1000)
    thread.join()
    assert found == [0]
    items[0] = 3.0
    for count in (1, numba.config.NUMBA_NUM_THREADS):
        threads(count)
        assert (many(50) == 6.0).all()


def test_an_array_from_outside_that_is_replaced_while_threads_use_it():
    data = np.zeros(1000)

    def loss(x):
        return nbta.sum(x * data)

    vg = nbta.value_and_grad(loss, compiled=True)

    @numba.njit(nogil=True)
    def run(x, n):
        low = high = 0.0
        for _ in range(n):
            _, g = vg(x)
            low, high = min(low, g.min()), max(high, g.max())
        return low, high

    x, found = np.ones(1000), []
    run(x, 1)
    thread = threading.Thread(target=lambda: found.append(run(x, 20000)))
    thread.start()
    while thread.is_alive():
        data = np.full(1000, float(np.random.default_rng().integers(5)))
    thread.join()
    assert found[0][0] >= 0.0
    assert found[0][1] <= 4.0


# Threads, loops, and functions that take functions.


def test_threads_without_the_lock():
    vg = nbta.value_and_grad(distance, compiled=True)

    @numba.njit(nogil=True)
    def run(q, data, n):
        total = 0.0
        for _ in range(n):
            v, g = vg(q, data)
            total += v + g.sum()
        return total

    data = np.zeros(8)
    cases = [np.arange(8.0) * k for k in range(8)]
    expected = [run(q, data, 500) for q in cases]
    found = [None] * len(cases)

    def work(k):
        found[k] = run(cases[k], data, 500)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(cases))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


@pytest.mark.parametrize("nogil", [False, True])
def test_parallel_loops(nogil, threads):
    vg = nbta.value_and_grad(weighted, compiled=True)

    @numba.njit(parallel=True, nogil=nogil)
    def many(x):
        values, slopes = np.zeros(len(x)), np.zeros(x.shape)
        for i in numba.prange(len(x)):
            values[i], slopes[i] = vg(x[i])
        return values, slopes

    x = np.random.default_rng(0).normal(size=(40, 3))
    pairs = [vg(row) for row in x]
    expected = np.array([v for v, _ in pairs]), np.array([g for _, g in pairs])
    for count in (1, numba.config.NUMBA_NUM_THREADS):
        threads(count)
        globals()["unrelated"] = count  # which the lock is needed to look at
        assert alike(many(x), expected)


def test_parallel_loops_of_functions_that_call_it():
    vg = nbta.value_and_grad(weighted, compiled=True)
    inner = numba.njit(lambda x: vg(x)[1])
    middle = numba.njit(lambda x: inner(x) + 0.0)

    @numba.njit(parallel=True)
    def many(x):
        out = np.zeros(x.shape)
        for i in numba.prange(len(x)):
            out[i] = middle(x[i])
        return out

    x = np.random.default_rng(0).normal(size=(40, 3))
    for k in range(2):
        globals()["unrelated"] = k
        assert alike(many(x), np.array([vg(row)[1] for row in x]))


def test_a_parallel_loop_in_a_parallel_loop():
    """The inner one leaves the lock with the outer one, which let go of it."""

    def loss(x):
        assert x < 50.0, "too large"
        return x**3

    slope = nbta.grad(loss, compiled=True)

    @numba.njit(parallel=True)
    def inner(found, first, n):
        for j in numba.prange(n):
            found[first + j] = slope(float(first + j))

    @numba.njit(parallel=True)
    def outer(found, rows, columns):
        for i in numba.prange(rows):
            inner(found, i * columns, columns)

    found = np.zeros(10)
    inner(found, 0, 10)
    assert np.array_equal(found, 3 * np.arange(10.0) ** 2)
    if numba.threading_layer() == "workqueue":
        pytest.skip("which ends the process for loops in loops")
    found = np.zeros(40)
    for _ in range(20):
        outer(found, 4, 10)
        assert np.array_equal(found, 3 * np.arange(40.0) ** 2)
    for _ in range(3):
        with pytest.raises(AssertionError, match="too large"):
            outer(np.zeros(100), 10, 10)


def test_an_error_in_a_loop_that_goes_on(capfd):
    """Numba's universal functions go on with the next item, and Python is asked for that, too."""

    def loss(x):
        assert x < 50.0, "too large"
        return x**3

    slope = nbta.grad(loss, compiled=True)
    of_all = numba.vectorize(["f8(f8)"])(lambda x: slope(x))
    with pytest.raises(AssertionError, match="too large"):
        of_all(np.arange(48.0, 53.0))
    assert np.array_equal(of_all(np.arange(3.0)), 3 * np.arange(3.0) ** 2)
    assert capfd.readouterr().err == ""


def test_an_error_in_a_parallel_loop_is_raised_after_it():
    vg = nbta.value_and_grad(distance, compiled=True)

    @numba.njit(parallel=True)
    def many(x, data):
        out = np.zeros(x.shape)
        for i in numba.prange(len(x)):
            out[i] = vg(x[i], data)[1]
        return out

    x = np.ones((40, 3))
    with pytest.raises(nbta.OutOfRangeError, match="out of range"):
        many(x, np.ones(2))
    assert alike(many(x, np.zeros(3)), 2 * x)


def test_new_lengths_in_a_parallel_loop():
    vg = nbta.value_and_grad(distance, compiled=True)

    @numba.njit(parallel=True)
    def many(x):
        out = np.zeros(len(x))
        for i in numba.prange(len(x)):
            out[i] = vg(x[: i % 4], x[: i % 4] * 0)[0]
        return out

    x = np.arange(20.0)
    assert alike(many(x), np.array([float(np.sum(x[: i % 4] ** 2)) for i in range(20)]))


def test_functions_that_are_given_as_arguments():
    @numba.njit
    def descend(vg, x, n):
        for _ in range(n):
            x = x - 0.1 * vg(x)[1]
        return x

    one = nbta.value_and_grad(lambda x: nbta.sum(x * x), compiled=True)
    other = nbta.value_and_grad(lambda x: nbta.sum(x**4), compiled=True)
    for vg in (one, other, one):
        assert alike(descend(vg, np.ones(3), 5), descend.py_func(vg, np.ones(3), 5))
    assert numba.njit(lambda f: f)(one) is one


def test_recursion():
    g = nbta.grad(lambda x: x**3 / 3, compiled=True)

    @numba.njit
    def again(x, n):
        if n == 0:
            return x
        return again(g(x), n - 1)

    assert again(1.5, 3) == 1.5**8


def test_a_function_in_a_graph_is_followed():
    vg = nbta.value_and_grad(lambda x: x**3, compiled=True)

    @numba.njit
    def step(x):
        v, g = vg(x)
        return v + g

    assert step(2.0) == 20.0
    assert nbta.grad(step)(2.0) == 24.0


# Caches and the rest.


def test_caching_is_refused_by_numba():
    g = nbta.grad(lambda x: x * x)

    @numba.njit(cache=True)
    def compiled(x):
        return g(x)

    @numba.njit(cache=True)
    def outer(x):
        return compiled(x) + 1

    with (
        pytest.warns(NumbaWarning, match='Cannot cache compiled function "compiled"'),
        pytest.warns(NumbaWarning, match="compiled has cache=True and is compiled in each process"),
    ):
        assert compiled(2.0) == 4.0
    with pytest.warns(NumbaWarning, match='Cannot cache compiled function "outer"'):
        assert outer(2.0) == 5.0


def test_functions_that_run_in_python():
    generator = np.random.default_rng(3)
    draws = nbta.function(lambda x: x + generator.normal())
    slow = nbta.grad(lambda x: x * x, compiled=False)
    compiled = numba.njit(lambda x: (slow(x), draws(x)))
    assert compiled(2.0) == (4.0, 2.0 + np.random.default_rng(3).normal())


def left_over(function, *args):
    """Blocks of Numba's memory that are left after calls, some of which may fail."""
    for _ in range(50):
        with contextlib.suppress(IndexError):
            function(*args)
    gc.collect()
    stats = rtsys.get_allocation_stats()
    return stats.alloc - stats.free


def test_no_copy_of_an_argument_is_left():
    vg = nbta.value_and_grad(distance, compiled=True)
    compiled = numba.njit(lambda q, data: vg(q, data))

    @numba.njit
    def raising(q, data):
        if len(data) < len(q):
            raise IndexError("of which Numba leaves the arguments")
        return q.sum() + data.sum()

    @numba.njit
    def failing(q, data):
        return raising(q, data)

    q, data = np.ones(2000)[::2], np.zeros(1000)
    compiled(q, data)
    _nrt_python.memsys_enable_stats()
    try:
        before = left_over(compiled, q, data)
        assert left_over(compiled, q, data) == before
        by_numba = left_over(failing, q, data[:5]) - before
        assert left_over(compiled, q, data[:5]) - before == 2 * by_numba
    finally:
        _nrt_python.memsys_disable_stats()


def test_a_result_outlives_the_call():
    vg = nbta.value_and_grad(distance, compiled=True)
    compiled = numba.njit(lambda q, data: vg(q, data)[1])
    found = [compiled(np.full(50, float(k)), np.zeros(50)) for k in range(20)]
    assert all(np.all(g == 2.0 * k) for k, g in enumerate(found))


class AlarmError(Exception):
    """What a signal's handler raises."""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such timer")
@pytest.mark.parametrize("nogil", [False, True])
def test_a_signal_ends_a_long_call(nogil):
    def loss(x, n):
        for i in range(n):
            x = x * 1.0000001 + 1e-12 * i
        return x

    def handler(*given):
        raise AlarmError

    f = nbta.function(loss, compiled=True)
    compiled = numba.njit(lambda x, n: f(x, n), nogil=nogil)
    assert compiled(1.0, 10) > 1.0
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(AlarmError):
            compiled(1.0, 2 * 10**10)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert compiled(1.0, 10) > 1.0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such timer")
@pytest.mark.parametrize("nogil", [False, True])
def test_a_signal_ends_a_long_loop_of_short_calls(nogil):
    def handler(*given):
        raise AlarmError

    g = nbta.grad(lambda x: x * x * 0.5, compiled=True)

    @numba.njit(nogil=nogil)
    def run(x, n):
        done = 0
        for _ in range(n):
            x = g(x)
            done += 1
        return done

    assert run(1.0, 10) == 10
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(AlarmError):
            run(1.0, 10**11)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert run(1.0, 1000) == 1000


@pytest.mark.slow
def test_the_page_about_it_runs():
    page = Path(__file__).parents[2] / "docs" / "call_in_njit.md"
    cells = re.findall(r"^```{code-cell} ipython3\n(.*?)^```$", page.read_text(), re.M | re.S)
    names: dict = {"__name__": "page"}
    for k, cell in enumerate(cells):
        name = f"<page {k}>"
        linecache.cache[name] = len(cell), None, cell.splitlines(keepends=True), name
        exec(compile(cell, name, "exec"), names)
    assert len(cells) == 12
    assert np.max(np.abs(names["slope"](names["root"], names["data"]))) < 1e-12
    assert np.array_equal(names["at"](np.ones(2)), [10.0, 10.0])
