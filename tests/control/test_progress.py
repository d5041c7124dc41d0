"""progress=: bars of loops, in graphs and outside."""

import importlib
import io
import re
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import nbta
from nbta import progress
from nbta.progress import Bar

pytest.importorskip("tqdm")
X = np.array([1.0, 2.0, 3.0])


class Stream(io.StringIO):
    """What stderr is replaced with."""

    def isatty(self):
        return False

    @property
    def shown(self):
        return self.getvalue().replace("\r", "\n")


@pytest.fixture
def stream(monkeypatch):
    made = Stream()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=made))  # pytest has its own sys
    yield made
    before = made.getvalue()
    assert [t.name for t in threading.enumerate() if t.name == "nbta bar"] == []
    time.sleep(0.02)
    assert made.getvalue() == before  # nothing is printed any more


def last_line(stream, label):
    return [line for line in stream.shown.splitlines() if line.startswith(f"{label}:")][-1]


# Loops.


def total(xs, **options):
    return nbta.scan(lambda c, x: (c + x * x, c), 0.0, xs, **options)[0]


def test_a_scan_knows_its_total(stream):
    assert nbta.function(lambda xs: total(xs, progress=True))(X) == 14.0
    assert "100%" in last_line(stream, "scan")
    assert "3/3" in last_line(stream, "scan")


def test_a_string_stands_before_the_bar(stream):
    nbta.function(lambda xs: total(xs, progress="solving"))(X)
    assert "3/3" in last_line(stream, "solving")


def test_a_loop_until_something_holds_counts(stream):
    f = nbta.function(
        lambda x: nbta.while_loop(lambda y: y < 9.0, lambda y: y * x, x, progress=True)
    )
    assert f(2.0) == 16.0
    assert last_line(stream, "while_loop").startswith("while_loop: 3iteration ")


def test_a_loop_with_a_plain_limit_knows_its_total(stream):
    def f(x, n):
        body = lambda i, y: (i + 1, y * x)  # noqa: E731
        return nbta.while_loop(lambda i, _: i < n, body, (np.int32(1), x), progress="powers")[1]

    assert nbta.function(f)(2.0, np.int64(6)) == 64.0
    assert "5/5" in last_line(stream, "powers")


def test_no_iteration(stream):
    assert nbta.function(lambda xs: total(xs, progress=True))(X[:0]) == 0.0
    assert "scan: 0iteration" in stream.shown or "0/0" in stream.shown


def test_outside_of_graphs(stream):
    assert total(X, progress="plain") == 14.0
    assert "3/3" in last_line(stream, "plain")
    nbta.while_loop(lambda y: y < 9.0, lambda y: y * 2.0, 2.0, progress="until")
    assert last_line(stream, "until").startswith("until: 3iteration ")


def test_folds_and_maps(stream):
    nbta.map_fn(lambda x: x, X, progress=True)
    nbta.foldl(lambda a, x: a + x, X, progress=True)
    nbta.foldr(lambda a, x: a + x, X, progress="right")
    for label, iterations in {"map_fn": 3, "foldl": 2, "right": 2}.items():
        assert f"{iterations}/{iterations}" in last_line(stream, label)


def test_the_backward_loop_has_a_bar_of_its_own(stream):
    for checkpoint, iterations in ((None, 3), (2, 2)):
        options = {"progress": "fit", "checkpoint": checkpoint}
        nbta.grad(lambda xs: total(xs, **options))(X)  # noqa: B023
        assert "3/3" in last_line(stream, "fit")
        assert f"{iterations}/{iterations}" in last_line(stream, "fit (gradient)")


def test_of_nested_loops_the_outer_one_shows(stream):
    def body(c, x):
        return c + nbta.scan(lambda d, y: (d + y, None), x, X, progress="inner")[0], None

    f = nbta.function(lambda xs: nbta.scan(body, 0.0, xs, progress="outer")[0])
    assert f(X) == 24.0
    assert "inner" not in stream.shown
    assert "outer: 100%" in stream.shown
    nbta.scan(body, 0.0, X)
    assert "inner: 100%" in stream.shown  # here no bar is around them


def test_without_progress_nothing_is_shown(stream):
    nbta.function(total)(X)
    nbta.function(lambda xs: total(xs, progress=False))(X)
    assert stream.getvalue() == ""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_bar_is_closed_on_errors(stream, error):
    @nbta.custom_gradient
    def failing(x):
        if x > 3.0:
            raise error("stopped")
        return x + 1.0

    def f(x):
        return nbta.while_loop(lambda y: True, failing, x, progress="run")

    with pytest.raises(error):
        nbta.function(f)(0.0)
    assert "run: 4iteration" in stream.shown
    assert nbta.function(lambda xs: total(xs, progress="next"))(X) == 14.0  # bars are free again
    assert "next: 100%" in stream.shown


def test_values_and_gradients_are_the_same(stream):
    with_bar = nbta.value_and_grad(lambda xs: total(xs, progress=True))(X)
    without = nbta.value_and_grad(total)(X)
    np.testing.assert_array_equal(with_bar[1], without[1])
    assert with_bar[0] == without[0]


# The bar.


def test_the_thread_follows_the_counter():
    stream = Stream()
    with Bar("slow", 50, stream, interval=0.005) as bar:
        for _ in range(50):
            bar.counter[0] += 1
            time.sleep(0.002)
    seen = [int(n) for n in re.findall(r"(\d+)/50", stream.shown)]
    assert seen == sorted(seen)
    assert seen[-1] == 50
    assert len(set(seen)) > 2


def test_a_short_loop_shows_its_end_only():
    stream = Stream()
    with Bar("short", 2, stream) as bar:
        bar.counter[0] += 2
        assert stream.getvalue() == ""
    assert "short: 100%" in stream.shown


def test_closing_twice_and_entering_again_print_nothing():
    stream = Stream()
    bar = Bar("once", 2, stream)
    with bar:
        pass
    before = stream.getvalue()
    bar.close()
    with bar:
        bar.counter[0] += 1
    assert stream.getvalue() == before


def test_the_counter_is_one_int64():
    counter = Bar("x", stream=Stream()).counter
    assert (counter.dtype, counter.shape) == (np.dtype(np.int64), (1,))


def test_a_stream_that_fails_does_not_end_the_loop():
    stream = Stream()
    with Bar("lost", 2, stream, interval=0.001) as bar:
        stream.close()
        time.sleep(0.01)
        bar.counter[0] += 1
    assert bar.counter[0] == 1


def test_without_stderr_nothing_is_shown(monkeypatch):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=None))
    assert nbta.function(lambda xs: total(xs, progress=True))(X) == 14.0


# Bad input.


@pytest.mark.parametrize("wrong", [1, 0, 2.5, ["a"], b"a", np.bool_(True)])
def test_other_arguments_are_refused(wrong):
    message = r"scan: progress must be True, False, or a string .*, not "
    with pytest.raises(nbta.InvalidArgumentError, match=message) as caught:
        total(X, progress=wrong)
    assert repr(wrong) in str(caught.value)


def test_without_tqdm(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(progress.importlib, "import_module", missing)
    with pytest.raises(nbta.FailedPreconditionError, match="pip install tqdm"):
        total(X, progress=True)
    assert total(X) == 14.0
    assert importlib is progress.importlib
