"""Indexing, joining, linear algebra and users' functions in compiled code, against the reference.

Few functions with many operations each are compiled for real; hypothesis' cases go through the
generated source as Python runs it.
"""

import re

import numpy as np
import pytest
from compact import compact_source
from hypothesis import given
from hypothesis import strategies as st
from interpreted import interpreted, watched
from numba import njit

import nbta
from nbta.compiler.executable import Executable, FailedError
from nbta.compiler.generate import generate
from nbta.compiler.pipeline import lowered, optimised
from nbta.execution.reference import Step

RNG = np.random.default_rng(7)


class Program:
    """Fetches, by name, of a graph, which is run operation by operation and compiled.

    ``inputs`` are pairs of dtype and shape.
    """

    def __init__(self, build, *inputs):
        with nbta.Graph().as_default() as graph:
            self.fed = [nbta.placeholder(*one) for one in inputs]
            self.fetches = build(*self.fed)
        self.session = nbta.Session(graph)

    def run(self, arrays, compiled):
        feeds = dict(zip(self.fed, arrays, strict=True))
        return self.session.run(self.fetches, feeds, compiled=compiled)

    def check(self, *arrays):
        """Equal results, in machine code all along."""
        expected, found = (self.run(arrays, compiled) for compiled in (False, True))
        runner = self.session.last
        assert runner.fallbacks == 0
        for function in runner.compiled:
            assert [call.op.type for call in function.generated.calls] == []
        for name, value in expected.items():
            agree(name, found[name], value)

    def check_error(self, *arrays):
        """The same error in the same words."""
        with pytest.raises(nbta.NbtaError) as expected:
            self.run(arrays, False)
        with pytest.raises(type(expected.value)) as found:
            self.run(arrays, True)
        assert str(found.value) == str(expected.value)


def agree(name, found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), name
    tolerance = 200 * np.finfo(expected.dtype).eps if expected.dtype.kind in "fc" else 0
    np.testing.assert_allclose(found, expected, tolerance, tolerance, err_msg=str(name))


def sample(*shape, dtype="float64"):
    values = RNG.normal(size=shape) * 3
    return (values + 1j * RNG.normal(size=shape) if dtype[0] == "c" else values).astype(dtype)


# Indexing.

KEYS = [
    np.s_[-1], np.s_[1, -2], np.s_[..., -1], np.s_[1:3], np.s_[-3:-1], np.s_[1::3], np.s_[-2::-2],
    np.s_[10:], np.s_[:, :2], np.s_[1, 1:], np.s_[0:1, 1:3], np.s_[:, ::-1, :],
    np.s_[1, None, ::2, None], np.s_[1:, 0, ::-1],
]  # fmt: skip


@pytest.mark.smoke
def test_keys():
    def build(x):
        picked = {f"{key}": x[key] for key in KEYS}
        squares = [nbta.sum(nbta.square(tensor)) for tensor in picked.values()]
        return picked | {"dx": nbta.gradients(nbta.add_n(squares), [x])[0]}

    program = Program(build, ("float64", (None, None, 3)))
    program.check(sample(8, 9, 3))
    program.check(sample(9, 10, 3))
    assert len(program.session.last.compiled) == 1


def test_symbolic_keys():
    def build(x, k, m, s):
        keys = {
            "index": np.s_[k], "two": np.s_[k, m], "from": np.s_[k:], "to": np.s_[:k],
            "both": np.s_[k:m], "later": np.s_[:, m:], "mixed": np.s_[k, 1:m],
            "step": np.s_[::s], "all": np.s_[k:m:s], "new": np.s_[None, k:, None, m],
        }  # fmt: skip
        picked = {name: x[key] for name, key in keys.items()}
        squares = [nbta.sum(nbta.square(tensor)) for tensor in picked.values()]
        return picked | {"dx": nbta.gradients(nbta.add_n(squares), [x])[0]}

    scalars = [("int64", ()), ("int32", ()), ("int8", ())]
    program = Program(build, ("float64", (None, 5)), *scalars)
    for k, m, s in [(0, 1, 1), (2, -1, -1), (-4, 3, 2), (3, -5, -2), (1, 4, 127), (-1, 0, -128)]:
        program.check(sample(4, 5), np.int64(k), np.int32(m), np.int8(s))
    program.check_error(sample(4, 5), np.int64(4), np.int32(0), np.int8(1))
    program.check_error(sample(4, 5), np.int64(0), np.int32(-6), np.int8(1))
    program.check_error(sample(4, 5), np.int64(0), np.int32(0), np.int8(0))


@pytest.mark.slow
def test_rows_by_indices():
    def build(x, i, j, k):
        rows = {f"take{axis}": nbta.take(x, i, axis) for axis in (0, 1, -1)}
        rows |= {f"matrix{axis}": nbta.take(x, j, axis) for axis in (0, 2)}
        rows |= {f"one{axis}": nbta.take(x, k, axis) for axis in (0, 1, 2)}
        added = {
            "rows": nbta.scatter_add(x, i, nbta.take(x, i, 0)),
            "columns": nbta.scatter_add(x, j, 1.0, axis=-1),
            "spread": nbta.scatter_add(x, j, x[:, :1, None], axis=1),
            "single": nbta.scatter_add(x, k, x[0], axis=0),
        }
        hot = {"hot": nbta.one_hot(j, 3, "int8"), "long": nbta.one_hot(k, k + 2, "complex64")}
        total = nbta.add_n([nbta.sum(nbta.square(t)) for t in (rows | added).values()])
        return rows | added | hot | {"dx": nbta.gradients(total, [x])[0]}

    integers = [("int32", (None,)), ("uint8", (2, None)), ("int64", ())]
    program = Program(build, ("float64", (2, None, 3)), *integers)
    j = np.array([[1, 0, 1], [0, 0, 1]], np.uint8)
    program.check(sample(2, 5, 3), np.array([1, -1, 0, -2], np.int32), j, np.int64(1))
    program.check(sample(2, 4, 3), np.array([], np.int32), j, np.int64(-1))
    for wrong in (2, -3):
        program.check_error(sample(2, 4, 3), np.array([wrong, 0], np.int32), j, np.int64(0))
        program.check_error(sample(2, 4, 3), np.array([0, 1], np.int32), j, np.int64(wrong))


@pytest.mark.smoke
@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("dtype", ["bool", "uint64"])
def test_dtypes_without_a_sign(dtype):
    def build(x, i):
        added = nbta.scatter_add(x, i, nbta.take(x, i))
        joined = nbta.concatenate([x, added, nbta.stack([x[0], x[1]])])
        padded = nbta.pad(joined, 1, constant_values=x[0])
        contracted = nbta.einsum("i,j->", x, x), nbta.einsum("i,i->i", x, x)
        return dict(enumerate([added, padded, x[i[0]], *contracted, nbta.einsum("i->", x)]))

    program = Program(build, (dtype, (None,)), ("uint64", (None,)))
    program.check(np.array([1, 0, 1, 5], dtype), np.array([3, 3, 0], np.uint64))
    program.check_error(np.array([1, 0], dtype), np.array([2**64 - 1], np.uint64))


# Blocks, joining, axes.


@pytest.mark.smoke
def test_blocks():
    def build(x, k, m):
        fit, update = x[:2, :1], nbta.dynamic_update_slice
        found = {
            "slice": nbta.slice(x, [k, 0], [-1, 2]), "sizes": nbta.slice(x, [1, k], [k, 1]),
            "rows": nbta.slice(x, [k, 0], [1, -1]), "vector": nbta.slice(x, m, [2, 1]),
            "moved": nbta.dynamic_slice(x, [k, m[0]], [2, 3]),
            "clamped": nbta.dynamic_slice(x, [100, -100], [2, 3]),
            "update": update(x, fit, [k, 100]), "again": update(x * 2.0, fit, m),
            "scalar": update(x[0, 0], x[1, 1], []),
        }  # fmt: skip
        total = nbta.add_n([nbta.sum(nbta.square(tensor)) for tensor in found.values()])
        return found | {"dx": nbta.gradients(total, [x])[0]}

    program = Program(build, ("float64", (None, None)), ("int64", ()), ("int32", (2,)))
    for k, m in [(1, [0, 1]), (2, [2, 2]), (0, [1, 0])]:
        program.check(sample(4, 3), np.int64(k), np.array(m, np.int32))
        program.check(sample(5, 6), np.int64(k), np.array(m, np.int32))
    program.check_error(sample(4, 3), np.int64(5), np.array([0, 0], np.int32))
    program.check_error(sample(4, 3), np.int64(1), np.array([3, 0], np.int32))
    program.check_error(sample(4, 3), np.int64(1), np.array([-1, 0], np.int32))


@pytest.mark.slow
def test_joining_and_axes():
    def build(x, y, v, a):
        found = {
            "rows": nbta.concatenate([x, y, x[:1]]),
            "columns": nbta.concatenate([x, x[:, ::-1]], 1),
            "flat": nbta.concatenate([x, y], None), "stack": nbta.stack([x, x[::-1]]),
            "middle": nbta.stack([x, x * 2.0, x], axis=1), "last": nbta.stack([x, x], axis=-1),
            "scalars": nbta.stack([a, v[0], a * a]), "pad": nbta.pad(x, ((1, 2), (0, 1)), a),
            "around": nbta.pad(v, 2), "squeeze": nbta.squeeze(x[None, :, None], (0, 2)),
            "expand": nbta.expand_dims(v, (0, -1)), "item": nbta.squeeze(v[:1], 0),
            "one": nbta.expand_dims(a, 0), "flip": nbta.flip(x), "row": nbta.outer(v, v[1:]),
            "tile": nbta.broadcast_to(v, nbta.stack([2, nbta.shape(v)[0]])),
            "shaped": nbta.reshape(x, nbta.concatenate([nbta.shape(x)[1:], nbta.shape(x)[:1]])),
        }  # fmt: skip
        parts = nbta.split(x, 2), nbta.split(x, [1, 2], 1), nbta.split(v, [0, 3, 3, 50])
        found |= {("split", i, k): t for i, p in enumerate(parts) for k, t in enumerate(p)}
        used = nbta.split(x, 2, 1)[1]  # nobody uses the other part
        some = [found[name] for name in ("rows", "columns", "middle", "scalars", "pad", "expand")]
        total = nbta.add_n([nbta.sum(nbta.square(tensor)) for tensor in (*some, *parts[2], used)])
        grads = nbta.gradients(total, [x, y, v, a])
        return found | {("gradient", k): grad for k, grad in enumerate(grads)}

    matrix, vector = ("float64", (None, 4)), ("float64", (None,))
    program = Program(build, matrix, matrix, vector, ("float64", ()))
    program.check(sample(10, 4), sample(7, 4), sample(12), sample())
    program.check(sample(14, 4), sample(9, 4), sample(21), sample())


@pytest.mark.smoke
def test_lengths_that_must_be_equal():
    def build(x, y):
        joined, stacked = nbta.concatenate([x, y], 1), nbta.stack([x[0], y[0]])
        return {"joined": joined, "stacked": stacked, "half": nbta.split(x, 2)[1]}

    program = Program(build, ("int16", (None, None)), ("int16", (None, None)))
    program.check(sample(2, 3, dtype="int16"), sample(2, 3, dtype="int16"))
    program.check_error(sample(3, 3, dtype="int16"), sample(3, 3, dtype="int16"))
    program.check_error(sample(2, 3, dtype="int16"), sample(4, 3, dtype="int16"))
    program.check_error(sample(2, 3, dtype="int16"), sample(2, 4, dtype="int16"))


# Linear algebra.

SPECS = [
    "ij,jk->ik", "ij,kj->ki", "ji,jk->ik", "ij,ij->i", "ij,ij->", "ij,k->jk", "ij,jk->k",
    "ij,jk,k->i", "bij,bjk->bik", "bij,bkj->kbi", "ijb,jkb->bik", "ij,j->i", "i,i->", "i,j->ji",
    "bi,bi->b",
]  # fmt: skip
ALONE = ["ij,kj->ki", "ij,ij->", "ij->ji", "ij->", "ij->i", "ij->j", "bij->jb", "bij->ibj"]


@pytest.mark.smoke
@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize(("dtype", "specs"), [("float64", SPECS), ("complex64", ALONE)])
def test_contraction(dtype, specs):
    lengths = dict(zip("ijkb", (5, 4, 3, 2), strict=True))
    terms = [(spec, spec.partition("->")[0].split(",")) for spec in specs]

    def build(*operands):
        operands = iter(operands)
        return {spec: nbta.einsum(spec, *(next(operands) for _ in names)) for spec, names in terms}

    shapes = [[lengths[letter] for letter in term] for _, names in terms for term in names]
    program = Program(build, *((dtype, (None,) * len(shape)) for shape in shapes))
    program.check(*(np.asarray(sample(*shape, dtype=dtype)) for shape in shapes))


def test_integer_contraction_and_triangles():
    def build(x):
        sums = {spec: nbta.einsum(spec, x, x) for spec in ("ij,kj->ik", "ij,ij->j", "ij,kl->")}
        return sums | {k: nbta.tril(x, k) for k in (-2, 0, 1, 2**61, -(2**61))}

    program = Program(build, ("int8", (None, None)))
    program.check(sample(4, 3, dtype="int8") * np.int8(40))
    program.check(sample(2, 6, dtype="int8"))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_triangular_factors(dtype):
    def build(a, b, v):
        factor = nbta.cholesky(a)
        found = {"factor": factor}
        for lower in (True, False):
            for transpose in (True, False):
                options = {"lower": lower, "transpose": transpose}
                found[lower, transpose] = nbta.triangular_solve(a, b, **options)
                found[lower, transpose, 1] = nbta.triangular_solve(a[0], v, **options)
        found["repeated"] = nbta.triangular_solve(a[0], b)
        return found

    inputs = (None, None, None), (2, None, None), (None,)
    program = Program(build, *((dtype, shape) for shape in inputs))
    root = sample(2, 4, 4, dtype=dtype)
    a = root @ np.conj(np.swapaxes(root, 1, 2)) + 4 * np.eye(4, dtype=dtype)
    b, v = sample(2, 4, 3, dtype=dtype), sample(4, dtype=dtype)
    program.check(a.astype(dtype), b, v)
    program.check_error(-a.astype(dtype), b, v)
    a[0, 2, 2] = 0
    program.check_error(a.astype(dtype), b, v)


@pytest.mark.slow
def test_gradients_of_factors():
    def build(a, b):
        x = nbta.triangular_solve(nbta.cholesky(a), b)
        return dict(enumerate([x, *nbta.gradients(nbta.sum(x * x), [a, b])]))

    root = sample(3, 3)
    matrix = ("float64", (None, None))
    Program(build, matrix, matrix).check(root @ root.T + np.eye(3), sample(3, 2))


# In loops.


@pytest.mark.smoke
def test_results_in_the_places_of_loop_variables():
    """What waits to be computed sees the old values, and transposes keep their buffers."""

    def build(w, v):
        def body(i, v, u, m, total):
            waiting = nbta.tanh(v)
            turned = nbta.transpose(m * 0.5)
            other = m - 1.0
            v = nbta.einsum("ij,j->i", w, u)
            u = nbta.scatter_add(u, nbta.stack([i, i]), waiting[1:3])
            m = nbta.dynamic_update_slice(m, turned[:2, :2] @ other[:2, :2], [i, 0])
            return i + 1, v, u, m, total + waiting

        state = (np.int64(0), v, v * 2.0, w, nbta.zeros_like(v))
        *_, v, u, m, total = nbta.while_loop(lambda i, *_: i < 3, body, state)
        loss = nbta.sum(v) + nbta.sum(u * u) + nbta.sum(m) + nbta.sum(total)
        return dict(enumerate([v, u, m, total, *nbta.gradients(loss, [w, v])]))

    program = Program(build, ("float64", (None, None)), ("float64", (None,)))
    program.check(sample(4, 4), sample(4))
    program.check(sample(6, 6) / 3, sample(6))


# Users' functions.


@njit(cache=True)
def waves(x, s):
    if s < 0:
        raise ValueError("s is negative")
    y = np.empty_like(x)
    for i in range(len(x)):
        y[i] = np.sin(x[i]) * s
    return y


@njit(cache=True)
def waves_backward(dy, x, s, y):
    dx, ds = np.empty_like(x), 0.0
    for i in range(len(x)):
        dx[i] = dy[i] * np.cos(x[i]) * s
        ds += dy[i] * np.sin(x[i])
    return dx, ds


@njit(cache=True)
def several(x, n):
    y = np.zeros((2, len(x)))
    y[0] = x
    return x[:n], n + 1, np.array(x[0]), y.T


def announced(x, n):
    vector, number, rows = (None,), (), (*x.shape, 2)
    return nbta.Spec(x.dtype, vector), n, nbta.Spec(x.dtype, number), nbta.Spec(x.dtype, rows)


def custom_program():
    wave = nbta.custom_gradient(waves, backward=waves_backward)
    other = nbta.custom_gradient(several, result=announced)

    def build(x, s, n):
        y = wave(x, s)
        _, last = nbta.while_loop(
            lambda i, v: i < n, lambda i, v: (i + 1, wave(v, s) + v), (np.int64(0), x)
        )
        grads = nbta.gradients(nbta.sum(y * y) + nbta.sum(last), [x, s])
        return dict(enumerate([y, last, *grads, *other(x, n)]))

    return Program(build, ("float64", (None,)), ("float64", ()), ("int64", ()))


def test_users_functions():
    program = custom_program()
    program.check(sample(4), np.float64(1.5), np.int64(2))
    program.check(sample(5), np.float64(0.5), np.int64(4))
    assert len(waves.signatures) == 1
    for compiled in (False, True):
        with pytest.raises(ValueError, match="s is negative"):
            program.run([sample(4), np.float64(-1), np.int64(2)], compiled)


@njit(cache=True)
def shorter(x):
    return x[1:]


@njit(cache=True)
def narrower(x):
    return x.astype(np.float32)


@pytest.mark.parametrize("function", [shorter, narrower, lambda x: x, np.sin])
def test_users_functions_that_are_not_as_announced_or_not_compiled(function):
    f = nbta.custom_gradient(function)
    program = Program(lambda x: {"y": f(x) * 2.0}, ("float64", (None,)))
    if function in (shorter, narrower):
        program.check_error(sample(3))
    else:
        agree("y", *(program.run([sample(3) * 0], compiled)["y"] for compiled in (True, False)))


# At random, as Python runs the source.


def interpreted_run(build, *arrays, gives_up=False):
    """Hold what the generated source gives against the reference.

    It may give up where that fails; with ``gives_up`` elsewhere too.
    """
    with nbta.Graph().as_default() as graph:
        fed = [nbta.placeholder(a.dtype, (None,) * a.ndim) for a in arrays]
        wanted = build(*fed)
    feeds = dict(zip(fed, arrays, strict=True))
    try:
        expected = nbta.Session(graph).run(wanted, feeds, compiled=False)
    except nbta.NbtaError:
        expected = None
    program = lowered(optimised(fed, wanted, ()), [a.shape for a in arrays])
    made = generate(program)
    assert not made.calls
    try:
        with watched():
            found, _ = Executable(made, interpreted(made.source, made.globals), Step)(arrays)
    except FailedError:
        found = None
    assert found is None if expected is None else found is not None or gives_up
    for one, other in zip(found or (), expected or (), strict=True):
        agree(made.source, one, other)


BOUNDS = st.none() | st.integers(-5, 5)
PARTS = (
    st.integers(-3, 3)
    | st.builds(slice, BOUNDS, BOUNDS, st.none() | st.sampled_from([1, -1, 2, -2, 3, -7]))
    | st.none()
)


@pytest.mark.slow
@given(st.lists(st.integers(0, 4), min_size=1, max_size=3), st.lists(PARTS, max_size=4), st.data())
def test_random_keys(shape, key, data):
    used = [part for part in key if part is not None]
    if len(used) > len(shape):
        return
    if data.draw(st.booleans()):
        key.insert(data.draw(st.integers(0, len(key))), Ellipsis)

    def build(x):
        y = x[tuple(key)]
        return [y, *nbta.gradients(nbta.sum(y * y), [x])]

    x = np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)
    try:
        x[tuple(key)]
    except IndexError:
        return
    interpreted_run(build, x)


@pytest.mark.slow
@given(st.lists(st.integers(0, 3), min_size=1, max_size=3), st.data())
def test_random_rows(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    places = data.draw(st.lists(st.integers(0, 3), max_size=2))
    dimension = shape[axis]
    one = st.integers(-dimension, dimension - 1) if dimension else st.integers(-1, 1)
    count = int(np.prod(places, dtype=int))
    indices = data.draw(st.lists(one, min_size=count, max_size=count))

    def build(x, i):
        rows = nbta.take(x, i, axis)
        return [rows, nbta.scatter_add(x, i, rows + 1.0, axis)]

    x = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    # NumPy does not look at indices where there is nothing to be taken.
    interpreted_run(build, x, np.array(indices, np.int64).reshape(places), gives_up=x.size == 0)


@pytest.mark.slow
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.data())
def test_random_contractions(lengths, data):
    letters = st.lists(st.sampled_from("abcd"), max_size=3, unique=True)
    terms = data.draw(st.lists(letters, min_size=2, max_size=4))
    used = sorted({letter for term in terms for letter in term})
    result = data.draw(st.permutations(used))[: data.draw(st.integers(0, len(used)))]
    spec = f"{','.join(map(''.join, terms))}->{''.join(result)}"
    sizes = dict(zip("abcd", lengths, strict=True))
    arrays = [np.asarray(sample(*(sizes[letter] for letter in term))) for term in terms]
    interpreted_run(lambda *operands: [nbta.einsum(spec, *operands)], *arrays)
    np.testing.assert_allclose(nbta.einsum(spec, *arrays), np.einsum(spec, *arrays), atol=1e-12)


# Broadcasting, and variables of loops.


@pytest.mark.smoke
def test_lengths_that_only_the_run_tells_must_fit():
    def build(x, y, n):
        return {"sum": x[:n] + y, "product": y * x[None, :n]}

    vector = ("float64", (None,))
    program = Program(build, vector, vector, ("int64", ()))
    program.check(sample(5), sample(3), np.int64(3))
    program.check(sample(5), sample(1), np.int64(3))
    program.check(sample(5), sample(4), np.int64(1))
    program.check_error(sample(5), sample(3), np.int64(4))
    program.check_error(sample(5), sample(3), np.int64(2))


@pytest.mark.smoke
def test_variables_of_loops_change_all_at_once():
    def build(a, b, c, n):
        def turn(i, a, b, c):
            return i + 1, b, c, a

        return dict(enumerate(nbta.while_loop(lambda i, *_: i < n, turn, (0, a, b, c))))

    program = Program(build, *[("float64", ())] * 3, ("int64", ()))
    for n in range(5):
        program.check(*sample(3), np.int64(n))


def _contracted(spec, shapes, dtype=np.float64):
    """What was compiled for a contraction of arrays of known shapes, whose values are checked."""
    arrays = [RNG.normal(size=shape).astype(dtype) for shape in shapes]
    program = Program(
        lambda *operands: {spec: nbta.einsum(spec, *operands)}, *((dtype, s) for s in shapes)
    )
    program.check(*arrays)
    close = 1e-12 if dtype == np.float64 else 1e-5
    found = program.run(arrays, True)[spec]
    np.testing.assert_allclose(found, np.einsum(spec, *arrays), close, close)
    return program.session.last.compiled[-1].generated


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("kij,kj->ki", [(4, 5, 9), (4, 9)]),
        ("kij,ki->kj", [(4, 5, 9), (4, 5)]),
        ("ij,jk->ik", [(3, 4), (4, 10)]),
        ("ji,jk->ik", [(4, 3), (4, 10)]),
        ("ij,kj->ik", [(3, 4), (10, 4)]),
        ("ji,kj->ki", [(4, 3), (5, 4)]),
        ("ij,jk->ik", [(3, 1), (1, 2)]),
        ("ij,jk->ik", [(3, 0), (0, 8)]),
    ],
)
def test_small_products_are_loops(spec, shapes, dtype):
    assert "call(" not in _contracted(spec, shapes, dtype).source


@pytest.mark.parametrize("spec", ["ij,jk->ik", "kj,ij->ki"])
def test_larger_products_are_calls(spec):
    assert "call(" in _contracted(spec, [(8, 8), (8, 8)]).source


def exact(f, *arrays):
    """First and second derivatives: against differences, and compiled against one by one."""
    nbta.testing.check_grads(f, arrays, order=2)

    def squares(*arrays):
        return sum(np.sum(g * g) for g in nbta.grad(f, argnums=tuple(range(len(arrays))))(*arrays))

    for function in (f, squares):
        (one, expected), (other, found) = (
            nbta.value_and_grad(function, argnums=(0, 1), compiled=compiled)(*arrays)
            for compiled in (False, True)
        )
        for pair in ((other, one), *zip(found, expected, strict=True)):
            np.testing.assert_allclose(*pair, 1e-10, 1e-12)


@pytest.mark.parametrize("first", ["item", "row"])
def test_small_products_have_exact_gradients(first):
    """In a loop of rows, through matrices and vectors; to second order."""

    def f(m, x):
        m = np.reshape(m, (3, 3))
        total = 0.0
        for i in range(x.shape[0]):
            v = m @ x[i] if first == "item" else x[i] @ m
            total += np.sum(np.outer(v, v) @ m * np.sin(m))
        return total

    exact(f, 0.3 * RNG.normal(size=9), RNG.normal(size=(10, 3)))


@pytest.mark.parametrize(
    ("spec", "shapes"),
    [
        ("ki,kj->kij", [(4, 10), (4, 3)]),
        ("kj,ki->kij", [(4, 10), (4, 3)]),
        ("ki,jk->kij", [(4, 10), (3, 4)]),
        ("ij,j->ij", [(3, 10), (10,)]),
        ("i,ji->ji", [(10,), (3, 10)]),
        (",ij->ji", [(), (3, 4)]),
        ("i,j->ji", [(0,), (3,)]),
    ],
)
def test_products_without_sums_wait_for_what_uses_them(spec, shapes):
    """They are one loop with what is added to them, and take no memory."""
    arrays = [RNG.normal(size=shape) for shape in shapes]
    x = RNG.normal(size=np.einsum(spec, *arrays).shape)

    def build(x, *operands):
        return {"sum": x + nbta.sin(nbta.einsum(spec, *operands))}

    program = Program(build, *((array.dtype, array.shape) for array in (x, *arrays)))
    program.check(x, *arrays)
    (made,) = program.session.last.compiled
    assert [line for line in made.generated.loops if "Einsum, Sin, Add" in line] or not x.size
    for dtype in (np.int32, np.bool_):
        others = [(5 * array).astype(dtype) for array in arrays]
        inputs = [(dtype, array.shape) for array in others]
        Program(lambda *o: {spec: nbta.einsum(spec, *o)}, *inputs).check(*others)


def test_products_without_sums_have_exact_gradients():
    def f(a, b, c):
        s = np.zeros((3, 4, 5))
        for i in range(a.shape[0]):
            s = s + nbta.einsum("ki,jk->kij", np.sin(a[i]), b) * c[i]
        return np.sum(s * s)

    exact(f, *(RNG.normal(size=shape) for shape in ((10, 3, 4), (5, 3), (10,))))


# Sums over axes of which the run tells whether they are repeated, and what is asked for its shape.


def uneven(x, y, k):
    """Products of parts that are as long as one another, or of one item."""
    s = 0.0
    for i in range(1, len(x)):
        s += np.sum(np.sin(x[:i] * y[: k[i]]))
    return s


def plates(x, y, k):
    """The same along one of two axes, and along both."""
    a, s = np.outer(x, y), 0.0
    for i in range(1, len(x)):
        part = a[:i, : i + 1] * np.outer(y, x)[: k[i], : k[i] + (k[i] > 1)]
        s += np.sum(part * part) + np.sum(np.tanh(a[:i, 1:] * a[: k[i], 1:]))
    return s


@pytest.mark.parametrize("f", [uneven, plates], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_axes_that_may_be_repeated(f, dtype):
    n, (x, y) = 7, np.random.default_rng(5).uniform(-1, 1, (2, 7)).astype(dtype)
    compiled, reference = (nbta.value_and_grad(f, (0, 1), compiled=kind) for kind in (True, False))
    for k in (np.ones(n, int), np.arange(n), np.array([0, 1, 2, 1, 4, 1, 6])):
        (value, found), (same, expected) = compiled(x, y, k), reference(x, y, k)
        np.testing.assert_allclose(value, same, rtol=1e-5 if dtype is np.float32 else 1e-12)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype == dtype
            np.testing.assert_allclose(one, other, rtol=1e-4 if dtype is np.float32 else 1e-11)
        if dtype is np.float64:
            nbta.testing.check_grads(lambda x, y, k=k: f(x, y, k), (x, y), order=2)
    assert re.search(r"if \w\d+ == \w\d+( and \w\d+ == \w\d+)?:\n", compact_source(compiled))


def reflected(a):
    """Changes a part by a product whose shape the gradient asks for, and not its items."""
    q = a.copy()
    for j in range(a.shape[0] - 1):
        v = np.zeros(a.shape[0] - j) + q[j:, j]
        q[j:, j:] -= 0.3 * np.outer(v, v @ q[j:, j:])
    return np.sum(np.sin(q))


def test_what_is_only_asked_for_its_shape_takes_no_memory():
    compiled = nbta.value_and_grad(reflected, compiled=True)
    reference = nbta.value_and_grad(reflected, compiled=False)
    a = np.random.default_rng(5).uniform(-0.5, 0.5, (5, 5))
    (value, found), (same, expected) = compiled(a), reference(a)
    np.testing.assert_allclose(value, same, rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    nbta.testing.check_grads(reflected, (a,), order=2)
    assert unread(compact_source(compiled)) == set()


def unread(source):
    """Buffers to whose items source assigns, and that it never looks at."""
    text = re.sub(r"^ *(b\d+)\[[^=]*\] = ", r"set \1s = ", source, flags=re.MULTILINE)
    text = re.sub(r"^ *b\d+ = room\(.*", "", text, flags=re.MULTILINE)
    return set(re.findall(r"set (b\d+)s", text)) - set(re.findall(r"\bb\d+\b", text))
