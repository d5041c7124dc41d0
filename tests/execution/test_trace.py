"""Traces of runs: `Session.run(..., trace=FILE)`."""

import gzip
import io
import json
import os

import numpy as np
import pytest
from trace_format import checked

import nbta
from nbta.execution import tracer

ROW = tracer.INSTRUMENTED_ROW


def traced(session, fetches, feeds=None, **how):
    """The result of a run; its slices by thread; the trace."""
    file = io.StringIO()
    found = session.run(fetches, feeds, trace=file, **how)
    trace = json.loads(file.getvalue())
    return found, checked(trace), trace


def the_run(threads):
    """The slice of the whole run, which is the only outermost one."""
    (run,) = next(slices for row, slices in threads.items() if row != ROW)
    assert run.name == "run"
    return run


@pytest.fixture
def loop():
    """A graph with a loop that writes, a branch in it, and a gradient."""
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None, 2), name="x")
        ta = nbta.TensorArray("float64", 0, True, tensor_array_name="states", element_shape=(2,))

        def body(i, h, ta):
            even = nbta.equal(i % 2, 0)
            h = nbta.cond(even, lambda: nbta.tanh(h + x[i]), lambda: h * 0.5, name="choice")
            return i + 1, h, ta.write(i, h)

        def cond(i, h, ta):
            return i < nbta.shape(x)[0]

        first = (0, nbta.zeros((2,)), ta)
        _, _, ta = nbta.while_loop(cond, body, first, name="steps")
        total = nbta.sum(ta.stack() ** 2)
        (slope,) = nbta.gradients(total, [x])
    return nbta.Session(graph), [total, slope], x


def rows(count):
    return np.linspace(-1, 1, 2 * count).reshape(count, 2)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_iterations_and_branches_hold_what_they_ran(loop, count):
    session, fetches, x = loop
    _, threads, _ = traced(session, fetches, {x: rows(count)}, compiled=False)
    steps = the_run(threads).only("steps")
    assert steps.args["iterations"] == count
    assert len(steps.inside("condition")) == count + 1
    for number in range(count):
        iteration = steps.only(f"iteration {number}")
        write = iteration.only("steps/body/TensorArrayWriteV3")
        assert write.args["slots"] == [number]
        assert write.args["array"].startswith("states_")
        choice = iteration.only("steps/body/choice")
        assert [b.name for b in choice.children] == [f"branch {number % 2}"]
        assert len(choice.inside("steps/body/choice/true_fn/Tanh")) == (number + 1) % 2
    assert steps.inside(f"iteration {count}") == []


def test_an_event_says_what_an_operation_gave():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float32", (2, 3))
        both = nbta.matmul(x, nbta.transpose(x), name="both")
    _, threads, _ = traced(nbta.Session(graph), both, {x: np.ones((2, 3), np.float32)})
    assert the_run(threads).only("both").args == {
        "type": "MatMul", "shapes": [[2, 2]], "dtypes": ["float32"], "bytes": 16,
    }  # fmt: skip


def test_arrows_go_along_flows_and_a_counter_shows_bytes():
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", 2, element_shape=(500,))
        ta = ta.write(0, nbta.ones(500)).write(1, nbta.ones(500))
        both = ta.stack()
    _, _, trace = traced(nbta.Session(graph), both, compiled=False)
    events = trace["traceEvents"]
    names = {event["ts"]: event["name"] for event in events if event["ph"] == "X"}
    ends = [names[event["ts"]] for event in events if event["ph"] == "f"]
    assert ends == [
        "TensorArrayWriteV3", "TensorArrayWriteV3_1", "TensorArraySizeV3", "TensorArrayGatherV3",
    ]  # fmt: skip
    held = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
    assert max(held) - held[0] >= 2 * 500 * 8


def test_many_slots_are_listed_in_short():
    with nbta.Graph().as_default() as graph:
        both = nbta.TensorArray("float64", 20).unstack(nbta.ones(20)).stack()
    _, threads, _ = traced(nbta.Session(graph), both, compiled=False)
    (gather,) = the_run(threads).inside("TensorArrayGatherV3")
    assert gather.args["slots"] == [*range(8), "... 20 in all"]


def test_map_holds_its_rows():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None,))
        y = nbta.map_fn(lambda row: nbta.tanh(row), x, parallel_iterations=2, name="each")
    found, threads, _ = traced(nbta.Session(graph), y, {x: [1.0, 2.0, 3.0]}, compiled=False)
    np.testing.assert_array_equal(found, np.tanh([1.0, 2.0, 3.0]))
    (each,) = (s for s in the_run(threads).children if s.args["type"] == "Map")
    assert [child.name for child in each.children] == ["row 0", "row 1", "row 2"]


@pytest.mark.parametrize("compiled", [False, True, "auto"])
def test_results_are_those_of_a_run_without(loop, compiled):
    session, fetches, x = loop
    expected = session.run(fetches, {x: rows(6)}, compiled)
    found, _, _ = traced(session, fetches, {x: rows(6)}, compiled=compiled)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_arrays_that_are_fetched_stay_whole():
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", 2, clear_after_read=True).unstack([1.0, 2.0])
    found, _, _ = traced(nbta.Session(graph), ta, compiled=True)
    np.testing.assert_array_equal(found.stack(), [1.0, 2.0])


@pytest.mark.parametrize("count", [0, 1, 5])
def test_compiled_code_is_shown_by_iterations(loop, count):
    session, fetches, x = loop
    session.run(fetches, {x: rows(count)}, compiled=True)
    _, threads, trace = traced(session, fetches, {x: rows(count)}, compiled=True)
    run = the_run(threads)
    assert run.only("compiled function").children == []
    assert len(run.inside("once more, with clocks")) == 1
    iterations = [s for s in threads[ROW] if s.name == "steps" and s.category == "control"]
    assert [s.args["iterations"] for s in iterations] == [count] * bool(count)
    for steps in iterations:
        for number in range(count):
            iteration = steps.only(f"iteration {number}")
            assert len(iteration.inside("steps/body/TensorArrayWriteV3")) == 1
    assert "compiled function" not in trace["otherData"]
    own = [e for e in trace["traceEvents"] if e["tid"] == ROW and e["ph"] == "X"]
    order = [(event["ts"], -round(1000 * event["dur"])) for event in own]
    assert order == sorted(order), "a viewer puts what begins at once into what it saw first"


def test_a_first_compiled_run_shows_passes_and_the_compiler(loop):
    session, fetches, x = loop
    _, threads, _ = traced(session, fetches, {x: rows(3)}, compiled=True)
    run = the_run(threads)
    assert run.inside("pass: prune")[0].args.keys() == {"operations before", "operations after"}
    assert run.only("source").args["lines"] > 10
    made = [n for n in ("Numba compiles", "load from the disk cache") if run.inside(n)]
    assert made


def test_long_compiled_loops_end_with_a_note(loop, monkeypatch):
    monkeypatch.setattr(tracer, "TRACE_READINGS", 50)
    session, fetches, x = loop
    _, threads, trace = traced(session, fetches, {x: rows(40)}, compiled=True)
    assert "came after these" in trace["otherData"]["compiled function"]
    count = sum(len(s.inside("steps/body/TensorArrayWriteV3")) for s in threads[ROW])
    assert 0 < count < 40


def test_long_loops_end_with_a_note(loop, monkeypatch):
    monkeypatch.setattr(tracer, "TRACE_EVENTS", 100)
    session, fetches, x = loop
    _, threads, trace = traced(session, fetches, {x: rows(200)}, compiled=False)
    run = the_run(threads)
    assert len(run.only("steps").inside("iteration 3")) == 1
    assert run.inside("iteration 50") == []
    assert "events of bodies" in trace["otherData"]["left out"]
    assert run.inside("Sum"), "what is in no body is always there"


def test_what_waits_in_memory_is_bounded(loop, monkeypatch):
    monkeypatch.setattr(tracer, "WAITING_EVENTS", 30)
    waiting = []
    write = tracer.TraceFile.flush

    def flush(self):
        waiting.append(len(self._waiting))
        write(self)

    monkeypatch.setattr(tracer.TraceFile, "flush", flush)
    session, fetches, x = loop
    _, threads, _ = traced(session, fetches, {x: rows(20)}, compiled=False)
    assert len(waiting) > 10
    assert max(waiting) < 50
    # The last event of all may be the one that fills the memory: a write comes after the run then.
    (run,) = [one for slices in threads.values() for one in slices if one.name == "run"]
    assert run.inside("write this file")


@pytest.mark.parametrize("compiled", [False, True])
def test_a_run_that_fails_leaves_a_whole_file(compiled):
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", size=3, element_shape=())
        _, ta = nbta.while_loop(
            lambda i, ta: i < 5, lambda i, ta: (i + 1, ta.write(i, 1.0)), (0, ta), name="fill"
        )
        session, file = nbta.Session(graph), io.StringIO()
        with pytest.raises(nbta.InvalidArgumentError, match="iteration 3 of the loop 'fill'"):
            session.run(ta.stack(), compiled=compiled, trace=file)
    trace = json.loads(file.getvalue())
    run = the_run(checked(trace))
    iteration = run.only("fill").only("iteration 3")
    for each in (run, run.only("fill"), iteration, iteration.only("fill/body/TensorArrayWriteV3")):
        assert each.args["error"].startswith("InvalidArgumentError: ")
    (stopped,) = (event for event in trace["traceEvents"] if event["ph"] == "i")
    assert "iteration 3 of the loop 'fill'" in stopped["args"]["error"]
    if compiled:
        assert "FailedError" in run.only("compiled function").args["error"]


def test_users_functions_are_not_called_once_more():
    calls = []

    @nbta.custom_gradient
    def doubled(x):
        calls.append(1)
        return 2 * x

    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", ())
        y = doubled(x)
    found, threads, trace = traced(nbta.Session(graph), y, {x: 3.0}, compiled=True)
    assert (found, calls) == (6.0, [1])
    assert ROW not in threads
    assert "users' functions" in trace["otherData"]["compiled function"]


def test_files_may_be_compressed_and_paths_or_streams(tmp_path, loop):
    session, fetches, x = loop
    feeds = {x: rows(2)}
    session.run(fetches, feeds, False, trace=str(tmp_path / "a.json"))
    session.run(fetches, feeds, False, trace=tmp_path / "b.json.gz")
    with open(tmp_path / "c.json", "w") as stream:
        session.run(fetches, feeds, False, trace=stream)
        stream.write(" ")  # it is still open
    texts = [(tmp_path / "a.json").read_text(), (tmp_path / "c.json").read_text()]
    with gzip.open(tmp_path / "b.json.gz", "rt") as stream:
        texts.append(stream.read())
    sizes = [len(the_run(checked(json.loads(text))).children) for text in texts]
    assert len(set(sizes)) == 1


@pytest.mark.parametrize(
    ("trace", "kind", "message"),
    [
        ("/nowhere/at/all.json", FileNotFoundError, "run: trace: the file cannot be written"),
        ("/nowhere/at/all.json.gz", FileNotFoundError, "nothing was run"),
        (os.sep, IsADirectoryError, "run: trace: the file cannot be written"),
        (5, nbta.InvalidArgumentError, "a path or an open text file, not 5"),
        (io.BytesIO(), nbta.InvalidArgumentError, "takes bytes; open it for text"),
    ],
)
def test_a_file_that_cannot_be_written_is_refused_ahead_of_the_run(trace, kind, message):
    ran = []
    with nbta.Graph().as_default() as graph:
        y = nbta.custom_gradient(lambda x: ran.append(1) or x + 1)(nbta.ones(2))
        with pytest.raises(kind, match=message):
            nbta.Session(graph).run(y, trace=trace)
    assert ran == []


def test_closed_files_are_refused():
    file = io.StringIO()
    file.close()
    with nbta.Graph().as_default():
        one = nbta.identity(1.0)
        with pytest.raises(nbta.InvalidArgumentError, match="cannot be written"):
            nbta.Session().run(one, trace=file)


def test_a_disk_that_gets_full_costs_no_result(monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            if len(text) > 100:
                raise OSError(28, "No space left on device")
            return super().write(text)

    with nbta.Graph().as_default():
        one = nbta.identity(1.0)
        with pytest.warns(RuntimeWarning, match="run: trace: .*No space left"):
            assert nbta.Session().run(one, trace=Full()) == 1.0
