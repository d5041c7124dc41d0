"""Gradients by a Dask cluster: bitwise identical whatever workers do, and errors say where."""

import contextlib
import logging
import os
import pickle
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

import dask
import ml_dtypes
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.protocol import serialize

import nbta
from nbta import distributed as ours
from nbta.distributed import Pickled, value_and_grad
from nbta.runtime import python_calls

SECONDS = 60  # after which a test counts as hanging
RANDOM = np.random.default_rng(7)
W, X, Y = RANDOM.normal(size=5), RANDOM.normal(size=(37, 5)), RANDOM.normal(size=37)


@pytest.fixture(autouse=True)
def _watchdog():
    def bark(*args):
        raise TimeoutError(f"the test still runs after {SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    options = {
        "n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0",
        "local_directory": str(tmp_path_factory.mktemp("dask")), "silence_logs": logging.CRITICAL,
    }  # fmt: skip
    with LocalCluster(**options) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


def loss(w, x, y):
    return (nbta.sum(w * nbta.tanh(x)) - y) ** 2


def recurrent(p, x):
    """The last state of a loop over a sequence (steps, 5)."""
    states = nbta.TensorArray(np.float64, size=0, dynamic_size=True, element_shape=(5,))
    count = nbta.shape(x)[0]

    def step(t, state, states):
        state = nbta.tanh(state * p["a"] + x[t] * p["b"])
        return t + 1, state, states.write(t, state)

    first = (0, nbta.zeros_like(p["b"]), states)
    _, _, states = nbta.while_loop(lambda t, *_: t < count, step, first)
    return nbta.sum(states.stack() ** 2)


P = {"a": 0.5, "b": W}
SEQUENCES = [RANDOM.normal(size=(n, 5)) for n in (3, 2, 7, 2, 5, 4, 2, 6, 9)]


def one_by_one(f, shared, items):
    """Sums of what nbta gives here for each item, in float64."""
    found = [nbta.value_and_grad(f)(shared, *item) for item in items]
    return np.sum([nbta.flatten(one) for one in found], axis=0)


def poll(condition):
    while not condition():
        time.sleep(0.02)


def bits(result):
    return [(np.asarray(leaf).dtype, np.asarray(leaf).tobytes()) for leaf in leaves_of(result)]


def leaves_of(result):
    return nbta.structure.leaves(result)


# Results.


@pytest.mark.parametrize("compiled", [False, "auto"])
def test_sums_and_means_agree_with_items_one_by_one(client, compiled):
    expected = one_by_one(loss, W, zip(X, Y, strict=True))
    for reduction, divisor in [("sum", 1), ("mean", 37)]:
        f = value_and_grad(loss, client, reduction=reduction, compiled=compiled)
        result = f(W, X, Y)
        assert [type(part) for part in result] == [np.float64, np.ndarray]
        assert result[1].flags.writeable
        np.testing.assert_allclose(nbta.flatten(result), expected / divisor, rtol=1e-13)


def test_what_the_function_reads_from_outside_goes_along_with_each_call(client):
    shift, scale = np.ones(5), 2.0

    def loss(w, x):
        return nbta.sum((w * x - shift) ** 2) * scale

    f = value_and_grad(loss, client)
    for _ in range(2):
        expected = sum(np.sum((W * x - shift) ** 2) * scale for x in X)
        np.testing.assert_allclose(f(W, X)[0], expected, rtol=1e-12)
        shift[:] = 3.0
        expected = sum(np.sum((W * x - shift) ** 2) * scale for x in X)
        np.testing.assert_allclose(f(W, X)[0], expected, rtol=1e-12)
        shift, scale = np.arange(5.0), scale + 1.0


def test_ragged_sequences(client):
    sequences = [*SEQUENCES, np.ones((1, 5)), np.ones((0, 5))]
    value, gradient = value_and_grad(recurrent, client, compiled=False)(P, sequences)
    assert type(gradient["a"]) is np.float64
    expected = one_by_one(recurrent, P, zip(sequences))
    np.testing.assert_allclose(nbta.flatten((value, gradient)), expected, rtol=1e-13)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("shards", [1, 2, 3, 5, 16, 37, 100])
def test_any_number_of_shards(client, shards):
    f = value_and_grad(loss, client, shards=shards, compiled=False)
    expected = one_by_one(loss, W, zip(X, Y, strict=True))
    np.testing.assert_allclose(nbta.flatten(f(W, X, Y)), expected, rtol=1e-13)


def test_lists_in_structures_are_batches(client):
    def f(w, pair):
        return w * nbta.sum(pair[0]) * nbta.sum(pair[1]["y"])

    pair = ([np.ones(n) for n in (1, 2, 3)], {"y": np.arange(6.0).reshape(3, 2)})
    found = value_and_grad(f, client, shards=2)(2.0, pair)
    assert found == nbta.value_and_grad(f, batch_axis=0)(2.0, pair) == (2 * 38.0, 38.0)


@dataclass(frozen=True)
class Weights:
    w: Any
    curve: Any = nbta.tanh
    scale: float = 2.0


@dataclass
class Batch:
    x: Any
    y: Any
    name: str = "batch"


def test_dataclasses(client):
    def f(p, batch):
        assert batch.name == "batch"
        return p.scale * (nbta.sum(p.w * p.curve(batch.x)) - batch.y) ** 2

    value, slope = value_and_grad(f, client, shards=3)(Weights(W), Batch(X, Y))
    expected = one_by_one(loss, W, zip(X, Y, strict=True))
    np.testing.assert_allclose(value, 2 * expected[0], rtol=1e-13)
    np.testing.assert_allclose(slope.w, 2 * expected[1:], rtol=1e-13)
    np.testing.assert_allclose(slope.scale, expected[0], rtol=1e-13)
    assert type(slope) is Weights
    assert slope.curve is nbta.tanh
    same = nbta.value_and_grad(f, batch_axis=0)(Weights(W), Batch(X, Y))[1]
    np.testing.assert_allclose(same.w, slope.w, rtol=1e-13)


def test_structures_axes_and_arguments_that_items_share(client):
    def f(w, batch, scale, shift=0.0):
        return scale * loss(w, batch["x"], batch["more"][0]) + shift

    batch = {"x": X.T, "more": (Y[:, None], None)}
    found = value_and_grad(f, client, argnums=(0, 2), batch_axis=(None, -1, None), compiled=False)
    value, (by_w, by_scale) = found(W, {"x": X.T, "more": (Y, None)}, 2.0, shift=0.5)
    expected = one_by_one(loss, W, zip(X, Y, strict=True))
    np.testing.assert_allclose(value, 2 * expected[0] + 0.5 * 37, rtol=1e-13)
    np.testing.assert_allclose(by_w, 2 * expected[1:], rtol=1e-13)
    np.testing.assert_allclose(by_scale, expected[0], rtol=1e-13)
    with pytest.raises(nbta.InvalidArgumentError, match=r"0\] has 1, args\[1\]\['x'\] has 37"):
        found(W, batch, 2.0)


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", ml_dtypes.bfloat16], ids=str)
def test_dtypes_are_kept(client, dtype):
    w, x = np.ones(2, dtype), np.ones((9, 2), dtype)
    f = value_and_grad(_real_sum, client, reduction="mean", compiled=False)
    value, gradient = f(w, x)
    assert gradient.dtype == w.dtype
    assert (complex(value), gradient.astype(complex).tolist()) == (2, [1, 1])


def _real_sum(w, x):
    return nbta.sum(nbta.real(w * x))


def test_half_precision_is_added_up_in_float32(client):
    """Shards of 1 item: 2048 + 1 is 2048 in float16, 16 ones more are not nothing."""
    x = np.ones((17, 1), np.float16)
    x[0] = 2048
    f = value_and_grad(_real_sum, client, shards=17, compiled=False)
    value, gradient = f(np.ones(1, np.float16), x)
    assert (float(value), gradient.tolist()) == (2064, [2064])


def test_no_items(client):
    """The same as without a cluster."""
    value, gradient = value_and_grad(_real_sum, client)(W, np.zeros((0, 5)))
    assert value == 0
    assert gradient.tolist() == [0] * 5
    with pytest.raises(nbta.InvalidArgumentError, match="the mean over no items is not defined"):
        value_and_grad(_real_sum, client, reduction="mean")(W, np.zeros((0, 5)))
    with pytest.raises(nbta.InvalidArgumentError, match="is an empty list, from which the shape"):
        value_and_grad(_real_sum, client)(W, [])


def _of_mixed_ranks(w, x, slot):
    values = nbta.TensorArray(np.float64, size=2, infer_shape=False)
    return nbta.sum(values.write(0, nbta.sum(w * x)).write(1, w * x * x).read(slot))


def test_functions_that_cannot_be_compiled(client):
    slots = np.arange(37) % 2
    value, gradient = value_and_grad(_of_mixed_ranks, client)(W, X, slots)
    weighed = np.where(slots[:, None] == 0, X, X * X)
    np.testing.assert_allclose(value, np.sum(weighed @ W), rtol=1e-12)
    np.testing.assert_allclose(gradient, weighed.sum(axis=0), rtol=1e-12)
    f = value_and_grad(_of_mixed_ranks, client, compiled=True, shards=2)
    with pytest.raises(
        nbta.UnimplementedError, match=r"compiled: .*\(items 0 to 17 of the batch\)"
    ):
        f(W, X, slots)


# Bitwise identical results.


def scale(client, cluster, count):
    cluster.scale(count)
    poll(lambda: len(client.nthreads()) == count)


@pytest.mark.slow
def test_the_same_bits_for_any_number_of_workers(client, cluster):
    few, many = (value_and_grad(recurrent, client, shards=shards) for shards in (3, 16))
    expected = [bits(f(P, SEQUENCES)) for f in (few, many)]
    for count in (1, 3, 2):
        scale(client, cluster, count)
        assert [bits(f(P, SEQUENCES)) for f in (few, many)] == expected
    with Client(processes=False, n_workers=3, dashboard_address=":0") as threads:
        assert bits(value_and_grad(recurrent, threads)(P, SEQUENCES)) == expected[1]


@pytest.mark.slow
def test_bits_do_not_depend_on_what_workers_did_before(client):
    """Operations one by one give other bits than compiled code, and "auto" changes over."""
    f = value_and_grad(recurrent, client)
    first = bits(f(P, SEQUENCES))
    others = [
        bits(value_and_grad(recurrent, client, compiled=c)(P, SEQUENCES)) for c in (True, False)
    ]
    assert all(bits(f(P, SEQUENCES)) == first for _ in range(5))
    assert first == others[0] != others[1]


@pytest.mark.parametrize("parts", range(1, 23))
def test_tasks_add_as_one_binary_tree(parts):
    """Adding in any other order gives other bits for these numbers."""
    numbers = np.random.default_rng(parts).normal(size=parts) * 10.0 ** np.arange(parts)
    expected = list(numbers)
    while len(expected) > 1:
        pairs = [sum(expected[k : k + 2]) for k in range(0, len(expected), 2)]
        expected = pairs
    plan = [ours._task(ours.Sums)([np.asarray(n)], [np.dtype(float)]) for n in numbers]
    (sums,) = dask.compute(ours._added(plan), scheduler="sync")
    assert sums.values[0] == expected[0]


# Workers that die.


def _meet(folder):
    """In the first process that traces: wait until another one is through with its shards."""
    here = folder / str(os.getpid())
    if here.exists():
        return
    here.write_text(str(os.getpid()))
    with contextlib.suppress(FileExistsError):  # of two at once one is slow, and its name is there
        os.link(here, folder / "slow")
        time.sleep(1.5)


def _pids(folder):
    return [int(file.name) for file in folder.iterdir() if file.name.isdigit()]


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["busy", "holds results"])
def test_a_killed_worker_changes_nothing(client, cluster, tmp_path, victim):
    def slow(p, x):
        _meet(tmp_path)
        return recurrent(p, x)

    def kill():
        poll(lambda: len(_pids(tmp_path)) == 2 and (tmp_path / "slow").exists())
        time.sleep(0.7)  # for the shards of the worker that does not wait
        busy = int((tmp_path / "slow").read_text())
        others = [pid for pid in _pids(tmp_path) if pid != busy]
        os.kill(busy if victim == "busy" else others[0], signal.SIGKILL)
        killed.append(True)

    expected = bits(value_and_grad(recurrent, client, compiled=False)(P, SEQUENCES))
    killed, before = [], set(client.run(os.getpid).values())
    for prefix in cluster.scheduler.task_prefixes.values():  # quick shards are not shared
        prefix.duration_average = -1
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    assert bits(value_and_grad(slow, client, compiled=False)(P, SEQUENCES)) == expected
    killer.join(SECONDS)
    assert killed
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != before


@pytest.mark.slow
def test_a_shard_that_ends_every_worker(client, cluster, monkeypatch):
    def deadly(w, x):
        os.kill(os.getpid(), signal.SIGKILL)

    # By default Dask gives up when a task ended four workers.
    monkeypatch.setattr(cluster.scheduler, "allowed_failures", 0)

    with pytest.raises(nbta.FailedPreconditionError, match=r"more shards, with shards=") as caught:
        value_and_grad(deadly, client, shards=1)(W, X)
    assert "a shard of the 37 items ended every worker that ran it" in str(caught.value)
    client.wait_for_workers(2)


# Errors of the function.


class CustomError(Exception):
    """With arguments that no message is made of."""

    def __init__(self, number, text):
        super().__init__(number, text)


def _read_at(w, x, slot):
    values = nbta.TensorArray(np.float64, size=5, clear_after_read=False).unstack(w * x)
    return nbta.sum(values.read(slot))


@pytest.mark.slow
def test_errors_of_operations_name_the_item(client):
    slots = np.zeros(37, np.int64)
    slots[[23, 30]] = 5, 9
    for compiled in (False, "auto"):
        with pytest.raises(
            nbta.InvalidArgumentError, match=r"no slot 5: .*\(item 23 of the batch\)"
        ) as e:
            value_and_grad(_read_at, client, compiled=compiled)(W, X, slots)
        assert e.value.reason == "read_out_of_range"


def test_errors_of_python_code_name_the_item(client):
    def strict(w, x):
        if x.ndim != 1:
            raise CustomError(x.ndim, "dimensions")
        return nbta.sum(w * x)

    items = [*X[:11], X[:2], *X[:3], X[:2]]
    with pytest.raises(CustomError) as caught:
        value_and_grad(strict, client)(W, items)
    assert caught.value.args == (2, "dimensions")
    where, text = caught.value.__notes__
    assert where == "(item 11 of the batch)"
    assert text.startswith("On the worker:\nTraceback")
    assert 'raise CustomError(x.ndim, "dimensions")' in text


@pytest.mark.parametrize("compiled", [False, "auto"])
def test_local_functions_with_loops_take_their_source_along(client, compiled):
    def looped(w, x):
        total = 0.0
        for a, b in zip(w, x, strict=True):
            if b > 0:
                total += a * b
        return total

    value, gradient = value_and_grad(looped, client, compiled=compiled)(W, X)
    positive = np.maximum(X, 0.0)
    np.testing.assert_allclose(value, np.sum(positive @ W), rtol=1e-13)
    np.testing.assert_allclose(gradient, positive.sum(axis=0), rtol=1e-13)


def test_errors_that_cannot_be_sent(client):
    def locked(w, x):
        raise ValueError(threading.Lock())

    with pytest.raises(RuntimeError, match=r"^ValueError: ") as caught:
        value_and_grad(locked, client)(W, X)
    assert "(item 0 of the batch)" in caught.value.__notes__


def test_errors_are_raised_once(client, tmp_path):
    """Failing is a result: Dask does not try again, and the next call works."""

    def failing(w, x):
        with open(tmp_path / "calls", "a") as file:
            file.write(".")
        raise KeyError("missing")

    with pytest.raises(KeyError):
        value_and_grad(failing, client, shards=1)(W, X)
    # Once in the batch, once to find the item.
    assert (tmp_path / "calls").read_text() == ".."
    assert value_and_grad(_real_sum, client)(W, X)[1].shape == (5,)


# Bad input.


BAD_BATCHES = {
    "lengths": ({}, (W, X, Y[:-1]), r"numbers of items: args\[1\] has 37, args\[2\] has 36"),
    "scalar": ({}, (W, X, 1.0), r"args\[2\] has shape \(\), which has no axis 0"),
    "axis": ({"batch_axis": 2}, (W, X, Y), r"args\[1\] has shape \(37, 5\), which has no axis 2"),
    "entries": ({"batch_axis": (None, 0)}, (W, X, Y), "2 entries for 3 arguments"),
    "weights": ({"batch_axis": (0, 0, 0)}, (X, X, Y), "argument 0 is one of argnums, which all"),
    "kind": ({"batch_axis": 0.0}, (W, X, Y), "0.0 is not an axis"),
    "none": ({"batch_axis": None}, (W, X, Y), "no argument is divided into items"),
    "nothing": ({}, (W, {}, None), "different numbers of items: none"),
    "text": ({}, (W, X, "names"), "args.2. is 'names', which cannot be cut into items"),
    "argnums": ({"argnums": 3}, (W, X, Y), "there is no argument 3; given by position: 3"),
    "float": ({"argnums": 0.5}, (W, X, Y), "0.5 is not an int or a tuple of ints"),
}


@pytest.mark.parametrize("case", BAD_BATCHES)
def test_batches_that_cannot_be_cut(client, case):
    options, arguments, message = BAD_BATCHES[case]
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        value_and_grad(loss, client, **options)(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reduction": "max"}, """must be "sum" or "mean", not 'max'"""),
        ({"shards": 0}, "shards must be an int of 1 or more, and is 0"),
        ({"shards": 2.0}, "shards must be an int of 1 or more, and is 2.0"),
        ({"compiled": 1}, "compiled must be 'auto', True or False, and is 1"),
        ({"client": "tcp://x"}, "client: 'tcp://x' is not a distributed.Client"),
    ],
)
def test_bad_options(client, options, message):
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        value_and_grad(loss, **{"client": client, **options})


def test_functions_that_cannot_be_sent(client):
    lock = threading.Lock()

    def locked(w, x):
        return nbta.sum(w) * bool(lock)

    with pytest.raises(
        nbta.InvalidArgumentError, match=r"f cannot be sent to workers \(.+\); make"
    ):
        value_and_grad(locked, client)(W, X)


def test_graphs_are_refused(client):
    with nbta.Graph().as_default(), pytest.raises(nbta.InvalidArgumentError, match="outside of"):
        value_and_grad(loss, client)(W, X, Y)


# Clusters that cannot do the work.


def _hide_nbta():
    sys.modules["kept nbta"], sys.modules["nbta"] = sys.modules["nbta"], None


def _show_nbta():
    sys.modules["nbta"] = sys.modules.pop("kept nbta")


def test_a_worker_without_nbta(client, cluster):
    first = min(client.nthreads())
    client.run(_hide_nbta, workers=[first])
    try:
        with Client(cluster) as new:
            with pytest.raises(nbta.FailedPreconditionError, match="cannot be imported") as caught:
                value_and_grad(loss, new)(W, X, Y)
            assert f"by worker {first} (import of nbta halted; None in" in str(caught.value)
            assert f"pip install nbta=={nbta.__version__}" in str(caught.value)
    finally:
        client.run(_show_nbta, workers=[first])
    with Client(cluster) as new:
        value_and_grad(loss, new, compiled=False)(W, X, Y)


def test_another_version_on_a_worker(client, cluster):
    first = min(client.nthreads())
    client.run(_set_version, "0.0.7", workers=[first])
    try:
        with Client(cluster) as new:
            with pytest.raises(nbta.FailedPreconditionError, match="one version everywhere") as e:
                value_and_grad(loss, new)(W, X, Y)
            assert f"has nbta {nbta.__version__}, and worker {first} has 0.0.7;" in str(e.value)
    finally:
        client.run(_set_version, nbta.__version__, workers=[first])


def _set_version(version):
    nbta.__version__ = version


def test_a_scheduler_without_nbta(cluster, monkeypatch):
    def run_on_scheduler(*args):
        raise ModuleNotFoundError("No module named 'nbta'")

    with Client(cluster) as new:
        monkeypatch.setattr(new, "run_on_scheduler", run_on_scheduler)
        with pytest.raises(nbta.FailedPreconditionError, match=r"by the scheduler \(No module"):
            value_and_grad(loss, new)(W, X, Y)


def test_workers_are_asked_once(cluster, monkeypatch):
    with Client(cluster) as new:
        f = value_and_grad(loss, new, compiled=False)
        f(W, X, Y)
        monkeypatch.setattr(new, "run", None)
        f(W, X, Y)


def test_long_lists_of_workers_are_cut():
    answers = {f"worker {n}": ImportError("no numba") for n in range(8)}
    with pytest.raises(nbta.FailedPreconditionError, match=r"4 \(no numba\) and 3 more; install"):
        ours._check_answers(answers)


def test_workers_that_are_gone_are_left_to_dask():
    ours._check_answers({"worker 1": OSError("closed"), "worker 2": nbta.__version__})


def test_without_dask(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("nbta.distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "nbta\[distributed\]"'):
        import nbta.distributed  # noqa: F401


# What workers and the scheduler keep.


def test_each_worker_traces_once(client, tmp_path):
    def counted(w, x):
        with open(tmp_path / str(os.getpid()), "a") as file:
            file.write(".")
        return nbta.sum(w * x)

    f = value_and_grad(counted, client, shards=12, compiled=False)
    for _ in range(3):
        f(W, X[:36])
    value_and_grad(counted, client, shards=12, compiled=False)(W, X[:36])  # the same function
    assert [file.read_text() for file in tmp_path.iterdir()] in ([".", "."], ["."])


def _count_tasks(dask_scheduler):
    return len(dask_scheduler.tasks)


def test_nothing_stays_on_the_scheduler(client):
    f = value_and_grad(loss, client, compiled=False)
    for _ in range(5):
        f(W, X, Y)
    poll(lambda: client.run_on_scheduler(_count_tasks) == 0)


@pytest.fixture
def interrupts():
    """Interrupts raise, also where a shell has let this process ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interrupts")
def test_interrupting_cancels_what_is_left(client, tmp_path):
    def endless(w, x):
        (tmp_path / "started").touch()
        poll(lambda: (tmp_path / "end").exists())
        return nbta.sum(w * x)

    def interrupt():
        poll(lambda: (tmp_path / "started").exists())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        value_and_grad(endless, client, compiled=False)(W, X)
    thread.join(SECONDS)
    poll(lambda: client.run_on_scheduler(_count_tasks) == 0)
    (tmp_path / "end").touch()
    assert value_and_grad(_real_sum, client, compiled=False)(W, X)[1].shape == (5,)


# Arrays on their way.


def _with_gradients(size):
    array = nbta.TensorArray(np.float64, size=size, tensor_array_name="sent")
    array.unstack(np.arange(2.0 * size).reshape(size, 2))
    array.grad("gradients").write(1, np.ones(2))
    array.grad("gradients").grad("more").write(0, np.full(2, 5.0))
    return array


def _described(array):
    gradient = array.grad("gradients")
    values = (gradient.grad("more").read(0), gradient.read(1), array.read(2))
    return array.handle.name.rpartition("_")[0], [value.tolist() for value in values]


def test_arrays_travel_both_ways(client):
    expected = ("sent", [[5, 5], [1, 1], [4, 5]])
    assert client.submit(_described, _with_gradients(3)).result() == expected
    assert _described(client.submit(_with_gradients, 3, pure=False).result()) == expected
    first, second = client.nthreads()
    made = client.submit(_with_gradients, 3, workers=[first], pure=False)
    assert client.submit(_described, made, workers=[second]).result() == expected
    (scattered,) = client.scatter([_with_gradients(3)])
    assert client.submit(_described, scattered).result() == expected


def test_arrays_are_sent_from_their_own_memory():
    array = nbta.TensorArray(np.float64, size=500).unstack(np.ones((500, 100)))
    _, frames = serialize(array)
    held = python_calls.native(python_calls.data_bytes)(array._address)
    sent = [np.frombuffer(f, np.uint8) for f in frames if memoryview(f).nbytes == 400_000]
    assert [np.shares_memory(frame, held) for frame in sent] == [True]


def test_dask_knows_how_large_arrays_are():
    array = nbta.TensorArray(np.float64, size=500).unstack(np.ones((500, 100)))
    assert 400_000 <= dask.sizeof.sizeof(array) < 410_000
    array.grad("gradients").write(0, np.ones(100))
    assert 400_800 <= dask.sizeof.sizeof(array) < 410_800
    assert 800_000 <= dask.sizeof.sizeof(Pickled([np.ones(100_000)])) < 801_000
    array.close()
    assert dask.sizeof.sizeof(array) == 0


@pytest.mark.parametrize("protocol", [4, 5])
def test_pickles_travel_without_being_opened(protocol):
    content = {"w": W, "text": "more", "empty": np.empty((0, 3)), "by column": X.T}
    pickled = Pickled(content)
    for _ in range(2):  # from the client to the scheduler, and on to a worker
        pickled = pickle.loads(pickle.dumps(pickled, protocol))
    opened = pickled.open()
    assert opened["text"] == "more"
    for key in ("w", "empty", "by column"):
        np.testing.assert_array_equal(opened[key], content[key])
        assert not opened[key].flags.writeable


def test_pickles_are_aligned_where_they_are_opened():
    buffers = []
    body = pickle.dumps(Pickled([W]), protocol=5, buffer_callback=buffers.append)
    (raw,) = (buffer.raw() for buffer in buffers)
    moved = bytearray(raw.nbytes + 3)
    moved[3:] = raw
    (opened,) = pickle.loads(body, buffers=[memoryview(moved)[3:]]).open()
    assert opened.flags.aligned
    np.testing.assert_array_equal(opened, W)


def test_cutting_gives_contiguous_pieces():
    piece = ours.cut({"x": X}, 1, 1, 3)["x"]
    assert piece.flags.c_contiguous
    np.testing.assert_array_equal(piece, X[:, 1:3].T)
    assert np.shares_memory(ours.cut(X, 0, 1, 3), X)
