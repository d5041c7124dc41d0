"""Gradients over batches: sums over items, bitwise identical on any number of threads."""

import threading

import numba
import numpy as np
import pytest

import nbta
from nbta.structure import leaves

RNG = np.random.default_rng(5)
PARAMS = {"w": RNG.normal(size=(3, 4)) * 0.5, "b": RNG.normal(size=4), "s": 0.7}


def loss(params, xs):
    def step(h, x):
        h = nbta.tanh(x @ params["w"] + params["s"] * h + params["b"])
        return h, nbta.sum(h * h)

    return nbta.sum(nbta.scan(step, params["b"] * 0.0, xs)[1])


def sequences(*lengths, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, 3)) for n in lengths]


@pytest.fixture(params=[1, 2])
def threads(request):
    """Numba runs so many threads, if the machine has them."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(request.param, numba.config.NUMBA_NUM_THREADS))
    yield request.param
    numba.set_num_threads(before)


def one_by_one(f, items, argnums=0, shared=(PARAMS,)):
    """Sums of values and of gradients."""
    both = nbta.value_and_grad(f, argnums, compiled=False)
    found = [both(*shared, *item) for item in items]
    values, gradients = zip(*found, strict=True)
    return sum(values), [sum(parts) for parts in zip(*map(leaves, gradients), strict=True)]


def agree(found, expected, rtol=1e-12):
    value, gradients = found
    np.testing.assert_allclose(value, expected[0], rtol)
    for mine, theirs in zip(leaves(gradients), expected[1], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol, 1e-12)


def same_bits(one, other):
    for mine, theirs in zip(leaves(one), leaves(other), strict=True):
        assert type(mine) is type(theirs)
        np.testing.assert_array_equal(mine, theirs)


# What comes out.


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("compiled", [True, False, "auto"])
def test_items_of_one_length(compiled, threads):
    xs = np.stack(sequences(*[6] * 9))
    both = nbta.value_and_grad(loss, batch_axis=0, compiled=compiled)
    expected = one_by_one(loss, [(x,) for x in xs])
    for _ in range(3):
        agree(both(PARAMS, xs), expected)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize(
    ("compiled", "count"),
    [(False, 1), (False, 2), *((True, count) for count in (1, 2, 63, 64, 65, 150))],
)
def test_items_of_other_lengths(compiled, count, threads):
    lengths = np.random.default_rng(count).integers(0, 9, count)
    xs = sequences(*lengths)
    both = nbta.value_and_grad(loss, batch_axis=0, compiled=compiled)
    for seed in range(2):
        xs = sequences(*lengths, seed=seed)
        agree(both(PARAMS, xs), one_by_one(loss, [(x,) for x in xs]))


@pytest.mark.smoke
@pytest.mark.machine_code
def test_the_number_of_threads_changes_no_bit():
    xs = [x.astype(np.float32) for x in sequences(*range(1, 90))]
    params = {key: np.float32(value) for key, value in PARAMS.items()}
    both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
    most = numba.config.NUMBA_NUM_THREADS
    found = []
    for count in [1, most, 1, most]:
        numba.set_num_threads(count)
        found.append(both(params, xs))
    for other in found[1:]:
        same_bits(found[0], other)


@pytest.mark.smoke
def test_the_mean_divides_the_sum():
    xs = sequences(2, 3, 4)
    total, mean = (
        nbta.value_and_grad(loss, batch_axis=0, reduction=how)(PARAMS, xs)
        for how in ("sum", "mean")
    )
    for mine, theirs in zip(leaves(mean), leaves(total), strict=True):
        np.testing.assert_allclose(3 * mine, theirs, 1e-14)


@pytest.mark.smoke
def test_the_mean_divides_nothing_that_goes_with_the_loss():
    both = nbta.value_and_grad(
        lambda w, x: (w * x, 2 * x), has_aux=True, batch_axis=0, reduction="mean"
    )
    (value, aux), gradient = both(3.0, np.array([1.0, 2.0, 6.0]))
    assert (value, gradient) == (9.0, 3.0)
    np.testing.assert_array_equal(aux, [2.0, 4.0, 12.0])


def test_grad_gives_the_gradient_alone():
    xs = sequences(2, 3)
    same_bits(
        nbta.grad(loss, batch_axis=0, compiled=True)(PARAMS, xs),
        nbta.value_and_grad(loss, batch_axis=0, compiled=True)(PARAMS, xs)[1],
    )


def squares(w, x, y, scale=1.0):
    return scale * nbta.sum((x @ w - y["target"]) ** 2), {"error": x @ w - y["target"]}


@pytest.mark.parametrize("compiled", [True, False])
def test_gradients_of_what_is_cut_are_those_of_the_items(compiled, threads):
    w, x = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 5, 3))
    y = {"target": RNG.normal(size=(5, 4, 2))}
    both = nbta.value_and_grad(
        squares, (0, 1, 2), has_aux=True, batch_axis=(None, 0, 1), compiled=compiled
    )
    for _ in range(2):
        (value, aux), (dw, dx, dy) = both(w, x, y, scale=2.0)
        error = np.einsum("nij,jk->nik", x, w) - y["target"].swapaxes(0, 1)
        np.testing.assert_allclose(value, 2 * np.sum(error**2))
        np.testing.assert_allclose(aux["error"], error)
        np.testing.assert_allclose(dw, 4 * np.einsum("nij,nik->jk", x, error))
        np.testing.assert_allclose(dx, 4 * error @ w.T)
        np.testing.assert_allclose(dy["target"], -4 * error.swapaxes(0, 1))


def test_gradients_of_lists_are_lists(threads):
    w, xs = np.array([2.0, 3.0]), sequences(2, 0, 4)
    xs = [x[:, :2] for x in xs]
    both = nbta.grad(
        lambda w, x: nbta.sum((x @ w) ** 2), (0, 1), batch_axis=(None, 0), compiled=True
    )
    for _ in range(2):
        dw, dx = both(w, xs)
        np.testing.assert_allclose(dw, sum(2 * (x @ w) @ x for x in xs))
        assert isinstance(dx, list)
        for mine, x in zip(dx, xs, strict=True):
            np.testing.assert_allclose(mine, 2 * np.outer(x @ w, w))


def test_items_may_be_structures():
    items = [{"x": np.arange(n + 1.0), "y": float(n)} for n in range(5)]

    def f(w, item):
        return nbta.sum(item["x"] * w) * item["y"]

    value, slope = nbta.value_and_grad(f, batch_axis=0, compiled=True)(2.0, items)
    expected = sum(item["x"].sum() * item["y"] for item in items)
    assert (value, slope) == (2 * expected, expected)


def test_other_results_of_other_shapes_are_a_list():
    both = nbta.value_and_grad(
        lambda w, x: (nbta.sum(w * x), w * x), has_aux=True, batch_axis=0, compiled=True
    )
    for _ in range(2):
        (_, parts), _ = both(3.0, [np.arange(2.0), np.arange(3.0), np.ones(1)])
        assert [list(part) for part in parts] == [[0, 3], [0, 3, 6], [3]]


def test_half_precision_is_summed_in_float32():
    xs = np.full((1000, 1), 0.1, np.float16)
    value, _ = nbta.value_and_grad(lambda w, x: nbta.sum(w * x), batch_axis=0)(np.float16(1), xs)
    assert value.dtype == np.float16
    assert value == np.float16(1000 * np.float64(np.float16(0.1)))


@pytest.mark.slow
def test_the_mean_in_half_precision_is_that_of_float32():
    mean = nbta.value_and_grad(lambda w, x: w * x, batch_axis=0, reduction="mean")
    for count, value in ((70_001, 1.0), (1000, 100.0)):  # no float16 is the count, or the sum
        assert mean(np.float16(1), np.full(count, value, np.float16)) == (value, value)


def test_lists_in_structures_are_batches():
    def f(w, pair):
        return w * nbta.sum(pair[0]) * nbta.sum(pair[1]["y"])

    xs, ys = [np.ones(n) for n in (1, 2, 3)], [np.full(n, 2.0) for n in (4, 3, 2)]
    value, (dw, (dx, dy)) = nbta.value_and_grad(f, (0, 1), batch_axis=(None, 0))(
        2.0, (xs, {"y": ys})
    )
    assert (value, dw) == (2 * dw, 8 + 12 + 12)
    assert [list(each) for each in dx] == [[16.0], [12.0] * 2, [8.0] * 3]
    assert [len(each) for each in dy["y"]] == [4, 3, 2]


def test_lists_of_truth_values():
    def f(w, x):
        return nbta.where(x, w, 2 * w)

    assert nbta.grad(f, batch_axis=0)(1.0, [True, False, True]) == 4.0
    assert nbta.grad(f, batch_axis=0)(1.0, np.array([True, False, True])) == 4.0


def test_what_an_item_is_compiled_to_is_shown():
    both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
    both(PARAMS, sequences(3, 4))
    assert "def run" in both.source
    assert "one function of" in both.explain()


def test_results_are_not_shared_between_calls():
    both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
    first = both(PARAMS, sequences(3, 4))
    copies = [np.copy(value) for value in leaves(first)]
    for seed in range(3):
        both(PARAMS, sequences(3, 4, seed=seed + 1))
    for value, copy in zip(leaves(first), copies, strict=True):
        np.testing.assert_array_equal(value, copy)


def test_inputs_that_are_not_contiguous():
    xs = np.stack(sequences(*[5] * 6))
    both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
    expected = one_by_one(loss, [(x,) for x in xs])
    agree(both(PARAMS, np.asfortranarray(xs)), expected)
    agree(both(PARAMS, list(np.asfortranarray(xs))), expected)
    turned = {key: np.asfortranarray(value) for key, value in PARAMS.items()}
    agree(both(turned, xs), expected)


def test_small_batches_are_not_compiled_by_themselves():
    both = nbta.value_and_grad(loss, batch_axis=0)
    both(PARAMS, sequences(1, 2))
    assert "not compiled yet" in both.item.explain()
    assert "warm()" in both.item.explain()
    for seed in range(3):
        both(PARAMS, sequences(*[400] * 5, seed=seed))
    assert "not compiled yet" not in both.item.explain()


def test_what_python_has_a_part_in_runs_too(threads):
    calls = []

    @nbta.custom_gradient(backward=lambda dy, x, y: dy * 2.0)
    def double(x):
        calls.append(x.copy())
        return x * 2.0

    xs = RNG.normal(size=(5, 3))
    both = nbta.value_and_grad(lambda w, x: nbta.sum(double(w * x)), batch_axis=0, compiled=True)
    value, slope = both(1.5, xs)
    np.testing.assert_allclose([value, slope], [3 * xs.sum(), 2 * xs.sum()])
    assert len(calls) == 5


# What cannot be.


@pytest.mark.smoke
@pytest.mark.machine_code
def test_the_first_item_that_fails_is_named(threads):
    def f(w, x):
        return nbta.sum(
            nbta.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y + x[i]), (0, w))[1]
        )

    both = nbta.value_and_grad(f, batch_axis=0, compiled=True)
    good = [np.ones(3)] * 4
    both(1.0, good)
    with pytest.raises(nbta.InvalidArgumentError, match=r"GetItem.*item 2 of the batch"):
        both(1.0, [np.ones(3), np.ones(4), np.ones(1 + 0), np.ones(0), np.ones(2)])
    assert both(1.0, good)[0] == 12.0


@pytest.mark.smoke
@pytest.mark.machine_code
def test_of_several_items_that_fail_while_they_run_the_first_is_named(threads):
    """The last one is the longest, and so is begun first."""
    table = np.array([1.0, 2.0, 4.0])
    both = nbta.value_and_grad(
        lambda w, k: w * nbta.sum(nbta.take(table, k)), batch_axis=0, compiled=True
    )
    rows = [[0, 1], [1, 2], [2, 0], [2, 2], [1, 1, 1, 1, 1]]
    assert both(2.0, [np.array(row) for row in rows])[0] == 2.0 * 32
    rows[2][1], rows[4][3] = 5, 7
    with pytest.raises(nbta.InvalidArgumentError, match=r"Take.*item 2 of the batch"):
        both(2.0, [np.array(row) for row in rows])


@pytest.mark.parametrize(
    ("axes", "args", "words"),
    [
        (0, (1.0,), "no argument is divided"),
        ((None, None), (1.0, 2.0), "no argument is divided"),
        ((0,), (1.0, 2.0), "1 entries for 2 arguments"),
        ("0", (1.0, np.ones(2)), "'0' is not an axis"),
        (1, (1.0, np.ones(2)), r"args\[1\] has shape \(2,\), which has no axis 1"),
        (0, (1.0, 2.0), r"args\[1\] has shape \(\), which has no axis 0"),
        (0, (1.0, []), r"args\[1\] is an empty list"),
        (0, (1.0, [np.ones(1), {"a": 1.0}]), r"args\[1\]\[1\] has a different structure"),
        (0, (1.0, "text"), r"args\[1\] is 'text', which cannot be cut"),
        (0, (1.0, [object()]), r"args\[1\]\[0\]: <object"),
        ((None, 0, 0), (1.0, np.ones(2), np.ones(3)), "different numbers of items: .*has 2.*has 3"),
    ],
)
def test_arguments_that_are_refused(axes, args, words):
    both = nbta.value_and_grad(lambda w, *x: w * nbta.sum(x[0]), batch_axis=axes)
    with pytest.raises(nbta.InvalidArgumentError, match=words):
        both(*args)


@pytest.mark.parametrize("compiled", [True, False])
def test_items_that_give_results_of_other_dtypes_are_refused(compiled):
    both = nbta.value_and_grad(
        lambda w, x: nbta.sum(nbta.cast(w, x.dtype) * x), batch_axis=0, compiled=compiled
    )
    items = [np.ones(3), np.ones(3, np.float32)]
    with pytest.raises(nbta.InvalidArgumentError, match=r"float64 for the first.*float32"):
        both(1.0, items)
    assert both(1.0, items[:1])[0] == 3.0


def test_other_reductions_are_refused():
    with pytest.raises(nbta.InvalidArgumentError, match='"sum" or "mean"'):
        nbta.value_and_grad(loss, batch_axis=0, reduction="max")


def test_other_arguments_of_gradients_are_refused():
    with pytest.raises(nbta.InvalidArgumentError, match="compiled must be"):
        nbta.grad(loss, batch_axis=0, compiled="yes")
    with pytest.raises(nbta.InvalidArgumentError, match="no argument 1; given by position: 1"):
        nbta.grad(loss, 1, batch_axis=0)(PARAMS)

    def arrays(w, x):
        return w * x, nbta.TensorArray("float64", size=1).write(0, x)

    with pytest.raises(nbta.InvalidArgumentError, match="TensorArray, which cannot be stacked"):
        nbta.grad(arrays, has_aux=True, batch_axis=0)(1.0, np.ones(3))


def test_graphs_are_refused():
    both = nbta.grad(lambda w, x: w * x, batch_axis=0)
    with pytest.raises(nbta.InvalidArgumentError, match="map_fn"):
        nbta.function(lambda x: both(1.0, x))(np.ones(3))


@pytest.mark.parametrize("compiled", [True, False])
def test_no_items(compiled):
    both = nbta.value_and_grad(squares, (0, 1), True, compiled, batch_axis=(None, 0, 0))
    (value, aux), (dw, dx) = both(
        np.ones((3, 2)), np.ones((0, 5, 3)), {"target": np.ones((0, 5, 2))}
    )
    assert value == 0.0
    np.testing.assert_array_equal(dw, np.zeros((3, 2)))
    assert dx.shape == (0, 5, 3)
    assert aux["error"].shape == (0, 5, 2)
    mean = nbta.grad(lambda w, x: w * x, batch_axis=0, reduction="mean")
    with pytest.raises(nbta.InvalidArgumentError, match="mean over no items"):
        mean(1.0, np.ones(0))


# Threads and processes.


@pytest.mark.slow_but_every(2)
def test_several_threads_and_a_batch_in_a_batch(threads):
    xs = sequences(*range(20))
    both = nbta.value_and_grad(loss, batch_axis=0, compiled=True)
    expected = both(PARAMS, xs)
    found = []
    workers = [threading.Thread(target=lambda: found.append(both(PARAMS, xs))) for _ in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()
    assert len(found) == 6
    for each in found:
        same_bits(each, expected)
