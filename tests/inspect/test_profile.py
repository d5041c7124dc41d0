"""Profiles: `nbta.function(f).profile(...)`, and the clocks in compiled code."""

import json

import numpy as np
import pytest
from trace_format import checked

import nbta
from nbta.compiler.instrumentation import Instrumented
from nbta.execution.tracer import INSTRUMENTED_ROW
from nbta.runtime import clock


def recurrence(w, xs):
    def step(h, x):
        h = nbta.tanh(nbta.matmul(w, h) + x)
        return h, h

    last, states = nbta.scan(step, nbta.zeros(3), xs, name="steps")
    return nbta.sum(states**2) + nbta.sum(last)


W, XS = np.eye(3) / 2, np.linspace(-1, 1, 60).reshape(20, 3)


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """A profile of a gradient, and its trace."""
    path = tmp_path_factory.mktemp("profile") / "trace.json"
    found = nbta.value_and_grad(recurrence).profile(W, XS, file=path, repeats=4)
    return found, json.loads(path.read_text())


def test_phases_are_told_in_order(profile):
    found, _ = profile
    names = [phase.name for phase in found.phases]
    assert names[0] == "tracing"
    assert names[-1] == "first call"
    assert names.index("pass: prune") < names.index("source") < names.index("first call")
    first = next(phase for phase in found.phases if phase.category == "pass")
    assert first.facts["operations before"] > 0
    assert {"Numba compiles", "load from the disk cache"} & set(names)


def test_calls_are_timed(profile):
    found, _ = profile
    assert found.calls.shape == (4,)
    assert found.median > 0


def test_operations_of_compiled_code_are_counted_by_iterations(profile):
    found, _ = profile
    assert found.compiled
    by_loop = {}
    for row in found.operations:
        by_loop.setdefault(row.loops, set()).add(row.runs)
    assert by_loop == {(): {1}, ("steps",): {20}, ("gradients/steps_grad",): {20}}
    assert any("Tanh" in row.types for row in found.operations if row.loops == ("steps",))
    times = [row.seconds for row in found.operations]
    assert times == sorted(times, reverse=True)
    assert min(times) >= 0


def test_the_table_says_what_was_measured_and_how(profile):
    found, _ = profile
    text = repr(found)
    assert "recurrence" in text.splitlines()[0]
    assert "a call, compiled" in text
    assert "passes, " in text
    assert "readings of a clock a call" in text
    assert "(in steps)" in text
    short = found.table(rows=2)
    assert f"{len(found.operations) - 2} others" in short
    assert len(short.splitlines()) < len(text.splitlines())


def test_notebooks_get_tables(profile):
    found, _ = profile
    shown = found._repr_html_()
    assert shown.count("<table>") == 2
    assert "<lambda>" not in shown
    assert "nbta.value_and_grad of recurrence at test_profile.py:" in shown


def test_the_trace_of_a_profile_is_one(profile):
    _, trace = profile
    threads = checked(trace)
    (mine,) = (slices for row, slices in threads.items() if row != INSTRUMENTED_ROW)
    names = [s.name for s in mine]
    calls = ["first call", "call 1", "call 2", "call 3", "call 4"]
    assert names == ["prepare", *calls, "calls with clocks"]
    (steps,) = (
        s for s in threads[INSTRUMENTED_ROW] if s.name == "steps" and "iterations" in s.args
    )
    assert steps.args["iterations"] == 20
    assert [len(steps.inside(f"iteration {k}")) for k in (0, 19, 20)] == [1, 1, 0]


def test_nothing_changes_for_calls():
    function = nbta.function(recurrence, compiled=False)
    before = function(W, XS)
    traces = function.traces
    function.profile(W, XS[:5], repeats=1)
    assert function.traces == traces
    assert function(W, XS) == before


def test_what_runs_one_by_one_is_labelled_so():
    found = nbta.function(recurrence, compiled=False).profile(W, XS, repeats=2)
    assert not found.compiled
    assert "operations one by one" in repr(found)
    assert "compiled=False says so" in found.note
    runs = {row.names[0]: row.runs for row in found.operations}
    assert runs["steps/body/Tanh"] == 20
    assert runs["steps/cond/Less"] == 21


def test_what_cannot_be_compiled_says_why():
    text = nbta.function(lambda x: nbta.TensorArray("S3", 1).write(0, x).read(0))
    found = text.profile(np.array(b"abc"), repeats=1)
    assert not found.compiled
    assert "not compiled: " in found.note
    assert {row.types for row in found.operations} >= {("TensorArrayWriteV3",)}


def test_users_functions_are_not_called_by_clocks():
    calls = []

    @nbta.custom_gradient
    def doubled(x):
        calls.append(1)
        return 2 * x

    found = nbta.function(lambda x: nbta.sum(doubled(x))).profile(np.ones(3), repeats=2)
    assert len(calls) == 3
    assert found.operations == []
    assert "users' functions" in found.note


def test_batches_show_calls_of_all_and_operations_of_an_item():
    loss = nbta.value_and_grad(lambda w, x: nbta.sum(nbta.tanh(w * x)) ** 2, batch_axis=0)
    found = loss.profile(np.ones(3), np.ones((10, 3)), repeats=2)
    assert found.compiled
    assert ", over a batch" in repr(found)
    assert {row.runs for row in found.operations} == {1}
    assert any("Tanh" in row.types for row in found.operations)


def test_batches_need_an_item():
    loss = nbta.value_and_grad(lambda w, x: nbta.sum(w * x), batch_axis=0)
    with pytest.raises(nbta.InvalidArgumentError, match="no items"):
        loss.profile(np.ones(3), np.ones((0, 3)))


@pytest.mark.parametrize("repeats", [0, 1.5, True])
def test_repeats_are_checked(repeats):
    with pytest.raises(nbta.InvalidArgumentError, match="repeats must be an int from 1 on"):
        nbta.function(recurrence).profile(W, XS, repeats=repeats)


def test_a_file_that_cannot_be_written_is_refused_first():
    with pytest.raises(FileNotFoundError, match="profile: file: the file cannot be written"):
        nbta.function(recurrence).profile(W, XS, file="/nowhere/at/all.json")


def test_what_fails_leaves_a_whole_file(tmp_path):
    def bad(x):
        return nbta.TensorArray("float64", 2, element_shape=()).write(5, nbta.sum(x)).read(5)

    path = tmp_path / "trace.json"
    with pytest.raises(nbta.InvalidArgumentError, match="size"):
        nbta.function(bad).profile(np.ones(3), file=path)
    trace = json.loads(path.read_text())
    checked(trace)
    assert [event["name"] for event in trace["traceEvents"] if event["ph"] == "i"] == ["stopped"]


# The clocks.


def compiled(f, *args):
    """The compiled function for arguments, and these."""
    function = nbta.function(f, compiled=True)
    expected = function(*args)
    return function._runner().last(), [np.asarray(arg) for arg in args], expected


@pytest.mark.parametrize("ticks", [True, False])
def test_clocks_change_no_result(ticks, monkeypatch):
    if ticks and not clock.counts_ticks():
        pytest.skip("this processor has no counter that we know of")
    if not ticks and not clock.system_clock():
        pytest.skip("this system has no clock_gettime")
    monkeypatch.setattr(clock, "counts_ticks", lambda: ticks)
    plain, given, expected = compiled(recurrence, W, XS)
    instrumented = Instrumented(plain)
    assert ("system_lap" in instrumented.generated.source) != ticks
    ((value,), _) = instrumented(given)
    assert value == expected
    measured = instrumented.measure(given, 2, 100)
    assert measured.readings == len(measured.entries) + measured.left_out
    ends = [end for _, _, end in measured.entries]
    assert ends == sorted(ends)
    assert measured.plain > 0


def test_parts_take_no_less_than_a_run_without_clocks():
    """Also where most runs have to wait for a processor: all parts took none of a long run."""
    plain, given, _ = compiled(recurrence, W, XS)
    instrumented = Instrumented(plain)
    runs, run = [], instrumented._run

    def waits(*args):
        runs.append(run(*args))
        one = runs[-1]
        one.ticks[len(runs) % len(one.ticks)] += 100 * one.ticks.sum()
        one.plain *= 1 if len(runs) % 3 == 0 else 200
        return one

    instrumented._run = waits
    measured = instrumented.measure(given, 12)
    assert measured.plain == min(one.plain for one in runs[1:])
    assert sum(time for _, time, _ in measured.rows) >= 0.999 * min(
        measured.plain, np.median([one.ticks for one in runs[1:]], axis=0).sum() * measured._tick
    )


def test_plain_code_has_no_clock():
    plain, _, _ = compiled(lambda x: nbta.sum(x) * 2, XS)
    assert "lap" not in plain.generated.source
    assert plain.generated.clock is None


def test_single_numbers_are_part_of_what_follows():
    def loop(x):
        return nbta.while_loop(
            lambda k, y: y > 1e-3, lambda k, y: (k + 1, y * 0.5), (0, x), name="halve"
        )[1]

    plain, given, _ = compiled(loop, 1.0)
    measured = Instrumented(plain).measure(given)
    (iteration,) = (row for row in measured.rows if row[0].ends_iteration)
    assert iteration[2] == 10
    assert "Mul" in iteration[0].numbers


def test_ragged_arrays_are_measured_as_python_keeps_them():
    def ragged(xs):
        def body(i, ta):
            return i + 1, ta.write(i, xs[: i + 1])

        ta = nbta.TensorArray("float64", 3, infer_shape=False)
        ta = nbta.while_loop(lambda i, ta: i < 3, body, (0, ta))[1]
        return ta.concat()[0]

    plain, given, expected = compiled(ragged, np.arange(4.0))
    measured = Instrumented(plain).measure(given)
    assert measured.readings > 0
    np.testing.assert_array_equal(expected, [0, 0, 1, 0, 1, 2])


def test_ragged_tapes_are_measured():
    def f(x):
        total = 0.0
        for i in range(1, len(x)):
            y = np.sin(x[:i])
            total += np.sum(y * y * y)
        return total

    slope = nbta.value_and_grad(f, compiled=True)
    value, _ = slope(XS[:, 0])
    assert value == pytest.approx(f(XS[:, 0]))
    assert "compiled" in str(slope.profile(XS[:, 0], repeats=2))


def test_no_clock_is_an_answer(monkeypatch):
    monkeypatch.setattr(clock, "counts_ticks", lambda: False)
    monkeypatch.setattr(clock, "system_clock", lambda: 0)
    found = nbta.function(lambda x: nbta.sum(x * 3)).profile(XS, repeats=1)
    assert found.compiled
    assert found.operations == []
    assert "no clock that compiled code could read" in found.note


# By line.


def looped(w, xs):
    h = np.zeros(3)
    total = 0.0
    for x in xs:
        h = np.tanh(w @ h + x)
        total += np.sum(np.exp(-h * h))
    return total


FIRST = looped.__code__.co_firstlineno


def by_number(found):
    assert all(line.filename in ("", __file__) for line in found.lines())
    return {line.line - FIRST if line.filename else None: line for line in found.lines()}


@pytest.fixture(scope="module", params=[True, False], ids=["compiled", "one by one"])
def by_line(request):
    return nbta.value_and_grad(looped, compiled=request.param).profile(W, XS, repeats=2)


def test_lines_have_the_time_of_their_operations(by_line):
    lines = by_number(by_line)
    assert {3, 4, 5} <= set(lines) <= {None, 1, 2, 3, 4, 5}
    assert lines[4].hits == lines[5].hits == 20
    assert lines[4].text == "h = np.tanh(w @ h + x)"
    assert lines[4].place == f"test_profile.py:{FIRST + 4}"
    times = [line.seconds for line in by_line.lines()]
    assert times == sorted(times, reverse=True)
    assert sum(times) == pytest.approx(sum(row.seconds for row in by_line.operations))


def test_gradients_are_shares_of_their_lines(by_line):
    lines = by_number(by_line)
    parts = {(at.line - FIRST, back) for r in by_line.operations for at, back, _ in r.lines if at}
    for number in (4, 5):
        assert {(number, False), (number, True)} <= parts
        assert 0 <= lines[number].gradient <= lines[number].seconds
    assert any(line.gradient > 0 for line in lines.values())
    plain = nbta.function(looped, compiled=by_line.compiled).profile(W, XS, repeats=1)
    assert all(line.gradient == 0 for line in plain.lines())
    assert "gradient" in by_line.text().splitlines()[0]
    assert "gradient" not in plain.text().splitlines()[0]


def test_the_product_after_a_loop_is_the_gradient_of_its_line():
    found = nbta.grad(looped, compiled=True).profile(W, XS, repeats=1)
    (product,) = (r for r in found.operations if r.types == ("MatMul",) and not r.loops)
    assert [(at.line - FIRST, back) for at, back, _ in product.lines] == [(4, True)]


def test_lines_are_printed_first(by_line):
    text = repr(by_line)
    assert text.index("h = np.tanh(w @ h + x)") < text.index(by_line.note)
    short = by_line.text(rows=1).splitlines()
    assert len(short) == 3
    assert f"{len(by_line.lines()) - 1} others" in short[-1]


def test_functions_are_listed_as_by_line_profiler(by_line):
    text = by_line.text(style="line_profiler")
    assert text.startswith("Timer unit: 1e-06 s\n\nTotal time: ")
    assert f"File: {__file__}\nFunction: looped at line {FIRST}\n" in text
    (head, *_) = (line for line in text.splitlines() if line.startswith("Line #"))
    assert head.split("  ")[0] == "Line #"
    for name in ("Hits", "Time", "Per Hit", "% Time", "% Gradient", "Line Contents"):
        assert name in head
    listed = [line for line in text.splitlines() if line.lstrip().startswith(str(FIRST + 1))]
    assert listed[0].endswith("    h = np.zeros(3)")
    (row,) = (line for line in text.splitlines() if "np.tanh" in line)
    number, hits, time, each, *_ = row.split()
    assert (int(number), int(hits)) == (FIRST + 4, 20)
    assert float(time) / 20 == pytest.approx(float(each), abs=0.06)


def test_notebooks_show_lines_in_the_colours_of_the_page(by_line):
    shown = by_line._repr_html_()
    table = shown[shown.index('<table class="nbta-lines">') :].split("</table>")[0]
    assert "h = np.tanh(w @ h + x)" in table
    assert table.count("<tr>") == 1 + len(by_line.lines())
    assert "color: inherit" in table
    assert "#" not in table


def test_what_was_written_over_several_lines_is_at_its_first_one():
    def f(xs):
        total = 0.0
        for x in xs:
            total += np.sum(
                np.exp(
                    x,
                ),
            )
        return total

    first = f.__code__.co_firstlineno
    found = nbta.function(f, compiled=True).profile(XS, repeats=1)
    assert {line.line - first for line in found.lines() if line.filename} <= {2, 3, 4}


def test_what_is_not_converted_has_no_lines():
    found = nbta.function(lambda x: x, convert=False).profile(XS, repeats=1)
    assert {line.place for line in found.lines()} <= {""}


def test_styles_are_checked(by_line):
    with pytest.raises(nbta.InvalidArgumentError, match="style must be 'table'"):
        by_line.text(style="html")


def test_traces_name_lines(tmp_path):
    for compiled in (True, False):
        path = tmp_path / f"{compiled}.json"
        nbta.grad(looped, compiled=compiled).profile(W, XS, file=path, repeats=1)
        events = json.loads(path.read_text())["traceEvents"]
        named = {line for event in events for line in event.get("args", {}).get("at", ())}
        place = f"test_profile.py:{FIRST + 4}: h = np.tanh(w @ h + x)"
        assert {place, f"gradient of {place}"} <= named
