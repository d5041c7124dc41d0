"""Functions of items, computed for several items at once: as one by one, and where they are not."""

import numpy as np
import pytest
from fuzz.ways import executed, in_python

import nbta
from nbta.api import sequences
from nbta.control.batching import DeclinedError, Own
from nbta.graph.operation import TABLE
from nbta.ops.batches import RULES

RNG = np.random.default_rng(7)


@pytest.fixture
def ways(monkeypatch):
    """Which ways bodies of items went, one after another."""
    found = []

    class Noted(Own):
        def __init__(self, *args):
            try:
                super().__init__(*args)
            except DeclinedError:
                found.append("one by one")
                raise
            found.append("together")

        def pays(self, body, *, shares):
            return True  # examples without loops are to take this way, too

    monkeypatch.setattr(sequences, "Own", Noted)
    return found


# Rules: each operation by itself, with every choice of arguments that differ between items.

A, B, V, W = (
    RNG.normal(size=(3, 2)),
    RNG.normal(size=(2, 4)),
    RNG.normal(size=3),
    RNG.normal(size=2),
)
CASES = {
    "AddItem": [(lambda x, v: nbta.add_item(x, (1, slice(None)), v), A, W),
                (lambda x, v: nbta.add_item(x, (slice(None), 1), v), A, V),
                (lambda x, v: nbta.add_item(x, (..., 0), v), A, 2.0)],
    "AddN": [(lambda x, y: nbta.add_n([x, y, x]), A, A + 1),
             (lambda x, y: nbta.add_n([x, y]), 1.5, 2.5)],
    "Await": [],  # of tokens
    "After": [],
    "BroadcastTo": [(lambda x: nbta.broadcast_to(x, (4, 3)), V),
                    (lambda x: nbta.broadcast_to(x, (4, 3)), 2.0)],
    "Concatenate": [(lambda x, y: nbta.concatenate([x, y], 1), A, A + 1),
                    (lambda x, y: nbta.concatenate([x, y], -2), A, A + 1)],
    "CumSum": [(lambda x: nbta.cumsum(x, -1), A), (lambda x: nbta.cumsum(x, 0), A)],
    "ExpandDims": [(lambda x: nbta.expand_dims(x, (-1, 0)), A),
                   (lambda x: nbta.expand_dims(x, 0), 2.0)],
    "Fill": [(lambda x: nbta.fill((2, 3), x), 2.0)],
    "GetItem": [(lambda x: x[1], A), (lambda x: x[..., 0], A), (lambda x: x[:, -1], A),
                (lambda x: x[None, ::2, 1], A), (lambda x: x[-1, 0], A)],
    "LogSumExp": [(lambda x: nbta.logsumexp(x, 0), A), (nbta.logsumexp, A)],
    "MatMul": [(nbta.matmul, a, b)
               for a, b in [(A, B), (V, A), (A, W), (V, V), (A, B[:, 0]), (A[0], B)]],
    "MatMulOfAdjoints": [(nbta.grad(lambda a, b: nbta.sum(nbta.matmul(a, b) ** 2)), a, b)
                         for a, b in [(A, B), (V, A), (A, W)]],
    "Max": [(lambda x: nbta.max(x, 1), A)],
    "Mean": [(nbta.mean, A), (lambda x: nbta.mean(x, 0, keepdims=True), A)],
    "Min": [(nbta.min, A)],
    "Outer": [(nbta.outer, V, W)],
    "OuterOfAdjoints": [(nbta.grad(lambda x, a: nbta.sum((x @ a) ** 2), argnums=1), V, A)],
    "Prod": [(lambda x: nbta.prod(x, -1), A)],
    "Reshape": [(lambda x: nbta.reshape(x, (2, 3)), A), (lambda x: nbta.reshape(x, (-1,)), A),
                (lambda x: nbta.reshape(x, (1, 1)), 2.0)],
    "ScatterSlice": [(nbta.grad(lambda x: nbta.sum(nbta.getitem(x, (slice(1, 3), 0)) ** 2)), A)],
    "SetItem": [(lambda x, v: nbta.set_item(x, (1, slice(None)), v), A, W),
                (lambda x, v: nbta.set_item(x, 0, v), V, 3.0),
                (lambda x, v: nbta.set_item(x, slice(1, 3), v), A, W)],
    "Shape": [(lambda x: x * nbta.cast(nbta.shape(x)[0], "float64"), A)],
    "Size": [(lambda x: x * nbta.cast(nbta.size(x), "float64"), A)],
    "Stack": [(lambda x, y: nbta.stack([x, y], -1), A, A + 1),
              (lambda x, y: nbta.stack([x, y]), 1.0, 2.0)],
    "Sum": [(nbta.sum, A), (lambda x: nbta.sum(x, -1), A), (nbta.sum, 2.0),
            (lambda x: nbta.sum(x, 0, keepdims=True), A)],
    "SumTo": [(lambda x: nbta.sum_to(x, (2,)), A), (lambda x: nbta.sum_to(x, (3, 1)), A)],
    "SwapAxes": [(lambda x: nbta.swapaxes(x, -1, 0), A)],
    "Take": [(lambda x: nbta.take(x, [0, 2, 0], 0), A), (lambda x: nbta.take(x, 1, -1), A)],
    "Transpose": [(nbta.transpose, A), (lambda x: nbta.transpose(x, (1, 0)), A)],
}  # fmt: skip
EACH = [(name, k) for name, cases in CASES.items() for k in range(len(cases))]


@pytest.mark.smoke
def test_each_rule_is_tried():
    assert {record.name for record in RULES} == set(CASES)
    assert all(record is TABLE[record.name] for record in RULES)


@pytest.mark.smoke
@pytest.mark.parametrize(("name", "k"), EACH)
def test_rules(name, k, ways):
    f, *values = CASES[name][k]
    for chosen in range(1, 2 ** len(values)):
        axes = tuple(0 if chosen >> i & 1 else None for i in range(len(values)))
        scales = 1 + 0.1 * np.arange(9)  # nine items: a whole pass, and one more
        args = [
            v if axis is None else np.stack([v * s for s in scales])
            for v, axis in zip(values, axes, strict=True)
        ]
        want = np.stack([
            f(*(v if axis is None else v[i] for v, axis in zip(args, axes, strict=True)))
            for i in range(9)
        ])  # fmt: skip
        for compiled in (False, True) if chosen == 2 ** len(values) - 1 else (False,):
            ways.clear()
            with in_python():  # `test_compiled_operations` is about their machine code
                found = nbta.vmap(f, axes, compiled=compiled)(*args)
            np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-14)
            assert set(ways) == {"together"}


# Programs.


def recurrence(p, c):
    x, y = 1.0, 0.5
    for t in range(6):
        if t % 2 == 0:
            x = np.sin(p[0] * x + y * c)
        else:
            y = y * p[1] + x
    return x * y


def items(p, c):
    out = np.zeros(6)
    x = p[2]
    for t in range(6):
        x = np.tanh(x * p[0] + c)
        out[t] = x
    for i in range(3):
        for j in range(i):
            x += out[i] * out[j] * p[1]
            out[j] = out[j] * p[0]
    return x + out.sum()


def accumulated(p, c):
    total = np.zeros(2)
    for k in range(4):
        total[k % 2] += p[k % 3] ** 2 * c
    return total[0] * np.sum(total)


def products(p, c):
    m = np.eye(3) * c
    x = p
    for _ in range(3):
        x = m @ np.sin(x) + np.outer(p, x) @ x
    return x @ p


PROGRAMS = [recurrence, items, accumulated, products]


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("count", [0, 1, 8, 17])
def test_programs(program, count, compiled, ways):
    """Machine code runs for 17 items; for other counts Python runs the same constructs."""
    p, one = RNG.normal(size=(count, 3)), nbta.grad(program, (0, 1), compiled=False)
    with executed(count == 17):
        found = nbta.vmap(program, (0, None), compiled=compiled)(p, 0.3)
        total = nbta.grad(
            lambda p, c: np.sum(nbta.vmap(program, (0, None))(p, c) ** 2), (0, 1), compiled=compiled
        )
        dp, dc = total(p, 0.3)
        slopes = nbta.vmap(nbta.grad(program), (0, None), compiled=compiled)(p, 0.3)
    np.testing.assert_allclose(found, [program(each, 0.3) for each in p], rtol=1e-12)
    both = [one(each, 0.3) for each in p]
    want = np.reshape([2 * v * d for v, (d, _) in zip(found, both, strict=True)], (count, 3))
    np.testing.assert_allclose(dp, want, rtol=1e-9, atol=1e-12)
    sums = sum(2 * v * d for v, (_, d) in zip(found, both, strict=True))
    np.testing.assert_allclose(dc, sums, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(slopes, np.reshape([d for d, _ in both], (count, 3)), rtol=1e-9)
    assert set(ways) == {"together"}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives_in_several_directions(program, compiled, ways, monkeypatch):
    p = RNG.normal(size=3)

    def outputs(p):
        return np.stack([program(p, 0.3), program(p, 0.1), program(p * p, 0.2)])

    makers = [
        lambda: nbta.jacobian(outputs, compiled=compiled),
        lambda: nbta.jacfwd(outputs, compiled=compiled),
        lambda: nbta.hessian(lambda p: program(p, 0.3), compiled=compiled),
        lambda: nbta.hessian(lambda p: np.sum(outputs(p) ** 2), compiled=compiled),
        lambda: nbta.jacobian(nbta.grad(lambda p: program(p, 0.3)), compiled=compiled),
    ]
    found = [make()(p) for make in makers]
    assert set(ways) == {"together"}

    def declines(*_):
        raise DeclinedError

    monkeypatch.setattr(sequences, "Own", declines)
    for one, make in zip(found, makers, strict=True):
        np.testing.assert_allclose(one, make()(p), rtol=1e-11, atol=1e-13)


def test_third_derivatives(ways):
    p = RNG.normal(size=3)
    third = nbta.jacfwd(nbta.hessian(lambda p: recurrence(p, 0.3)))(p)
    h = 1e-5
    second = nbta.hessian(lambda p: recurrence(p, 0.3))
    for k in range(3):
        step = h * (np.arange(3) == k)
        want = (second(p + step) - second(p - step)) / (2 * h)
        np.testing.assert_allclose(third[..., k], want, rtol=1e-6, atol=1e-8)


# Items that take ways of their own.


def until(x):
    n = 0
    while x < 2.0:
        x = x * 1.5
        n += 1
    return x * n


def branches(x):
    total = x
    for _ in range(3):
        total = total * 2.0 if total < 1.0 else np.sqrt(total)
    return total


def picked(x):
    table = np.zeros(4)
    for k in range(4):
        table[int(x * k) % 4] += x
    return table[0] * 2.0 + table[1]


def sorted_items(x):
    return np.sort(np.stack([x, 1.0, -x]))[1] * x


def scanned(x):
    return nbta.scan(lambda s, r: (s * r, s + r), x, np.array([1.0, 0.5, 2.0]))[0]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [until, picked, sorted_items, scanned])
def test_items_one_by_one(f, compiled, ways):
    x = np.linspace(0.3, 1.7, 11)
    found = nbta.vmap(f, compiled=compiled)(x)
    np.testing.assert_allclose(found, [f(each) for each in x], rtol=1e-13)
    slopes = nbta.vmap(nbta.grad(f), compiled=compiled)(x)
    np.testing.assert_allclose(slopes, [nbta.grad(f)(each) for each in x], rtol=1e-12)
    assert "together" not in ways


@pytest.mark.parametrize("compiled", [False, True])
def test_choices_between_numbers_are_made_for_each_item(compiled):
    x = np.linspace(0.3, 1.7, 11)
    found = nbta.vmap(branches, compiled=compiled)(x)
    np.testing.assert_allclose(found, [branches(each) for each in x], rtol=1e-13)


def test_what_prints_does_so_for_each_item(capsys):
    def noisy(x):
        nbta.print(x)
        return x * 2.0

    np.testing.assert_array_equal(nbta.vmap(noisy)(np.array([1.0, 2.0])), [2.0, 4.0])
    assert capsys.readouterr().out == "1.0\n2.0\n"


def test_short_floats_are_added_up_in_wide_ones(ways):
    x = RNG.normal(size=(9, 40)).astype(np.float16)
    found = nbta.vmap(lambda row: np.sum(row * row))(x)
    np.testing.assert_array_equal(found, [np.sum(row * row) for row in x])
    assert set(ways) == {"one by one"}


def test_an_infinite_slope_of_the_last_item_is_its_own(ways):
    x = np.array([1.0, 4.0, 0.0])

    def f(x):
        y = x
        for _ in range(2):
            y = np.sqrt(y) + x
        return y

    total = nbta.grad(lambda x: np.sum(nbta.vmap(f)(x)[:2]), compiled=True)
    want = nbta.grad(lambda x: f(x[0]) + f(x[1]))(x)
    np.testing.assert_allclose(total(x), want)


def test_errors_in_the_items(ways):
    def out_of_range(x):
        table = np.zeros(3)
        for k in range(4):
            table[k] = x
        return table[0]

    with pytest.raises(nbta.NbtaError, match="out of range"):
        nbta.vmap(out_of_range)(np.ones(3))


def long_body(p, x):
    """Of statements of which LLVM makes no vectors, in a loop whose iterations carry no number."""
    y = np.zeros(len(x))
    for i in range(len(x)):
        a, b = x[i], p[0]
        for k in range(12):
            a, b = a * b - p[k % 3], 0.3 * a + b * p[1] - a * 0.1
        y[i] = a + b
    return y


def with_an_index_that_a_run_knows(p, x):
    y = np.zeros(len(x))
    y[int(x[0])] = p[0]
    return y[int(x[0])] * long_body(p, x)


@pytest.mark.parametrize("f", [long_body, with_an_index_that_a_run_knows])
def test_directions_of_long_bodies_go_together(f, monkeypatch):
    chunks, by_chunks = [], sequences._by_chunks
    monkeypatch.setattr(sequences, "_by_chunks", lambda *a: chunks.append(a) or by_chunks(*a))
    p, x = np.array([0.3, 0.5, 0.2]), np.linspace(0.0, 1.0, 5)
    found = nbta.jacfwd(f, compiled=True)(p, x)
    assert len(chunks) == 1
    rows = [nbta.jvp(f, (p, x), (d, np.zeros(5)))[1] for d in np.eye(3)]
    np.testing.assert_allclose(found, np.stack(rows, axis=-1), rtol=1e-12)
