"""The manager of passes: contracts, analyses that are computed once, printing, and limits."""

import numpy as np
import pytest

import nbta
from nbta.compiler import manager, pipeline
from nbta.compiler.adjoint_loop_fusion import fuse_adjoint_loops
from nbta.compiler.generate import generate
from nbta.compiler.induction import Counts
from nbta.compiler.manager import (
    BrokenPassError,
    Fact,
    Settings,
    analysis,
    contract,
    using,
    watching,
)
from nbta.compiler.program import changes, extract
from nbta.compiler.rematerialisation import rematerialise
from nbta.compiler.tapes import Tapes
from nbta.graph import verifier
from nbta.graph.graph import Analysis, running
from nbta.graph.verifier import BrokenGraphError
from nbta.ops.arrays.tensor_arrays import READ
from nbta.ops.loops.aliases import ArrayUses
from nbta.structure import leaves


@pytest.fixture(autouse=True)
def _each_pass(monkeypatch):
    monkeypatch.setattr(verifier, "EACH_PASS", True)


def recurrence(w, x):
    h = np.zeros(3)
    total = 0.0
    for t in range(x.shape[0]):
        h = np.tanh(w * h + x[t])
        total = total + h.sum()
    return total


def nest(a):
    total = 0.0
    for t in range(a.shape[0]):
        h = 0.0
        for j in range(a.shape[1]):
            h = np.sin(h + a[t, j]) * a[t, j]
        total = total + h * h
    return total


def filled(a):
    w = np.zeros(a.shape[0])
    for i in range(a.shape[0]):
        w[i] = np.sin(a[i]) if a[i] > 0.0 else a[i] * a[i]
    total = 0.0
    for i in range(1, a.shape[0]):
        total += w[i] * w[i - 1]
    return total


PROGRAMS = {
    recurrence: (np.full(3, 0.5), np.linspace(-1.0, 1.0, 12).reshape(4, 3)),
    nest: (np.linspace(-1.0, 1.0, 12).reshape(4, 3),),
    filled: (np.linspace(-1.0, 1.0, 9),),
}
by_program = pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)


def traced(function):
    """A graph of value and gradient, and the arrays that it is for."""
    both = nbta.value_and_grad(function, compiled=True)
    return both.bound((PROGRAMS[function], {}))


def lowered(function):
    graph, arrays = traced(function)
    program = pipeline.optimised(graph.inputs, leaves(graph.result))
    return pipeline.lowered(program, [array.shape for array in arrays])


def result(function):
    return leaves(nbta.value_and_grad(function, compiled=True)(*PROGRAMS[function]))


def with_passes(monkeypatch, *steps, after=rematerialise):
    """Put passes after the last of a kind in the pipeline."""
    place = len(pipeline.LOWERING) - pipeline.LOWERING[::-1].index(after)
    changed = (*pipeline.LOWERING[:place], *steps, *pipeline.LOWERING[place:])
    monkeypatch.setattr(pipeline, "LOWERING", changed)


# Contracts.


@pytest.mark.smoke
@pytest.mark.parametrize("step", dict.fromkeys(pipeline.passes()), ids=lambda step: step.__name__)
def test_each_pass_has_a_contract(step):
    said = step.contract
    assert said.requires | said.establishes <= set(Fact)
    assert all(isinstance(p, Fact) or issubclass(p, Analysis) for p in said.preserves)


def test_each_fact_is_required_by_a_pass_and_holds_at_some_time():
    contracts = [step.contract for step in pipeline.passes()]
    assert set(Fact) == set().union(*(said.requires for said in contracts))
    assert set(Fact) == manager.AT_FIRST.union(*(said.establishes for said in contracts))


def test_a_pass_without_a_contract_is_refused(monkeypatch):
    def planted(program):
        return program

    with_passes(monkeypatch, planted)
    with pytest.raises(BrokenPassError, match="planted has no contract"):
        lowered(nest)


def test_an_order_that_breaks_a_contract_is_refused(monkeypatch):
    with_passes(monkeypatch, fuse_adjoint_loops)  # `rematerialise` has taken what it goes by
    with pytest.raises(
        BrokenPassError, match=r"fuse_adjoint_loops: requires .* the tapes of reverse mode"
    ):
        lowered(nest)


def test_passes_that_need_ranks_run_after_shapes_are_known(monkeypatch):
    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES, pipeline.simplify_shapes))
    with pytest.raises(BrokenPassError, match=r"pass 5, simplify_shapes: requires .* each rank"):
        lowered(nest)


# Analyses.


def small_program():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (4,))
        array = nbta.TensorArray("float64", 4).unstack(x)
        return extract([x], [array.read(1) + array.read(2)])


@pytest.mark.parametrize("kind", [Counts, ArrayUses, Tapes], ids=lambda kind: kind.__name__)
def test_an_analysis_is_computed_once_until_the_program_changes(kind):
    program = small_program()
    found = analysis(kind, program)
    assert analysis(kind, program) is found
    program.changed()
    assert analysis(kind, program) is not found


@by_program
def test_no_analysis_is_computed_twice_for_the_same_program(function, monkeypatch):
    monkeypatch.setattr(verifier, "EACH_PASS", False)  # which computes them again to compare
    made, begin = [], Analysis.__init__

    def noted(self, graph):
        begin(self, graph)
        made.append((type(self), graph.root, graph.root.version, graph.root.losses))

    monkeypatch.setattr(Analysis, "__init__", noted)
    generate(lowered(function))
    inner = [key for key in made if key[0] is ArrayUses]  # each `Tapes` has one of its own
    others = [key for key in made if key[0] is not ArrayUses]
    assert len(set(others)) == len(others)
    assert len(inner) <= sum(key[0] is Tapes for key in made) + len(set(inner))


def move_a_read(program):
    """Let a read be of another array."""
    analysis(ArrayUses, program)
    one, other = (op for op in running(program) if op.record is READ)
    one.inputs[0] = other.inputs[0]
    return program


def two_reads():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (4,))
        one, other = (nbta.TensorArray("float64", 4).unstack(v) for v in (x, x * 2.0))
        return extract([x], [one.read(1) + other.read(2)])


def test_a_change_that_nobody_is_told_of_is_found():
    @contract()
    def asking(program):
        analysis(ArrayUses, program)
        return program

    steps = [contract()(changes(move_a_read)), asking]
    with pytest.raises(BrokenPassError, match=r"ArrayUses .* out of date when .* users is"):
        manager.Manager().run(steps, two_reads())


def test_a_pass_that_does_not_preserve_what_it_says_is_named():
    def moving(program):
        move_a_read(program).changed()
        return program

    step = contract(preserves=[ArrayUses])(changes(moving))
    match = "ArrayUses .* out of date after pass 1, moving: users is"
    with pytest.raises(BrokenPassError, match=match):
        manager.Manager().run([step], two_reads())


@pytest.mark.parametrize(("each", "ended"), [(True, 0), (False, 2)])
def test_a_program_is_verified_after_each_pass_or_after_the_last(monkeypatch, each, ended):
    def renaming(program):
        one, other = program.operations[:2]
        one.name = other.name
        return program

    def idle(program):
        return program

    monkeypatch.setattr(verifier, "EACH_PASS", each)
    steps, heard = [contract()(renaming), contract()(idle)], []
    with (
        watching(lambda number, step, program: heard.append(number)),
        pytest.raises(BrokenGraphError, match="another operation has this name"),
    ):
        manager.Manager().run(steps, small_program())
    assert len(heard) == ended


def test_an_analysis_that_a_pass_preserves_stays():
    def idle(program):
        found.append(analysis(Counts, program))
        program.changed()
        return program

    found = []
    step = contract(preserves=[Counts])(changes(idle))
    manager.Manager().run([step, step], small_program())
    assert found[0] is found[1]
    found.clear()
    step = contract()(changes(idle))
    manager.Manager().run([step, step], small_program())
    assert found[0] is not found[1]


# Settings.


def test_programs_are_printed_with_names_and_lines(monkeypatch, capsys):
    monkeypatch.setenv("NBTA_PRINT_AFTER", "tile, 1")
    lowered(recurrence)
    shown = capsys.readouterr().err
    number = pipeline.passes().index(pipeline.tile) + 1
    assert shown.startswith("# pass 1, prune:\nprogram(")
    assert shown.count("# pass ") == 2
    assert f"# pass {number}, tile:\nprogram(" in shown
    line = recurrence.__code__.co_firstlineno + 4
    assert f"  # h, test_manager.py:{line}\n" in shown
    assert f"  # gradient of test_manager.py:{line}\n" in shown
    assert f"`for t in range(x.shape[0])` at test_manager.py:{line - 1}" in shown
    assert "x = argument_1: float64 (?, ?)" in shown


def test_a_pass_that_changes_nothing_prints_no_program(monkeypatch, capsys):
    monkeypatch.setenv("NBTA_PRINT_AFTER", "all")
    lowered(filled)
    shown = [s for s in capsys.readouterr().err.splitlines() if s.startswith("# pass ")]
    assert len(shown) == len(pipeline.passes())
    assert "# pass 7, loops_of_segments: unchanged" in shown


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("NBTA_PRINT_AFTER", "prun", "NBTA_PRINT_AFTER: 'prun' is no pass; there are 1 to "),
        ("NBTA_PASS_LIMIT", "some", "NBTA_PASS_LIMIT must be a number of passes, not 'some'"),
        ("NBTA_CHECK", "everything", "NBTA_CHECK must be 'passes', not 'everything'"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    with pytest.raises(nbta.InvalidArgumentError, match=message):
        result(nest)


def ran(function, limit):
    """Numbers and names of the passes that run."""
    found = []
    with (
        using(Settings(limit=limit)),
        manager.watching(lambda number, step, program: found.append((number, step.__name__))),
    ):
        lowered(function)
    return found


def test_a_limit_leaves_out_later_passes_but_those_that_are_needed():
    every = list(enumerate((step.__name__ for step in pipeline.passes()), 1))
    needed = [(n, name) for n, name in every
              if name in ("specialise", "flows_of_tapes", "tapes_to_arrays")]  # fmt: skip
    assert ran(nest, None) == every
    assert ran(nest, 0) == needed
    assert ran(nest, 3) == [*every[:3], *needed]
    assert ran(nest, 9) == [*every[:9], needed[-1]]


def test_a_pass_has_the_same_number_where_arrays_are_freed():
    found = []
    graph, arrays = traced(nest)
    program = pipeline.optimised(graph.inputs, leaves(graph.result))
    with manager.watching(lambda number, step, program: found.append((number, step))):
        pipeline.lowered(program, [array.shape for array in arrays], frees=True)
    every = dict(enumerate(pipeline.passes(), 1))
    assert all(every[number] is step for number, step in found)
    assert len(found) == len(every) - len(pipeline.PASSES) - len(pipeline.ENDS)


@by_program
@pytest.mark.parametrize("limit", [0, 8, 24])
def test_results_are_the_same_with_any_number_of_passes(function, limit, monkeypatch):
    want = result(function)
    monkeypatch.setenv("NBTA_PASS_LIMIT", str(limit))
    both = nbta.value_and_grad(function, compiled=True)
    got = leaves(both(*PROGRAMS[function]))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_the_environment_is_read_for_each_compilation(monkeypatch):
    monkeypatch.setenv("NBTA_PASS_LIMIT", "1")
    assert manager.settings() == Settings(limit=1)
    assert manager.is_observed()
    monkeypatch.delenv("NBTA_PASS_LIMIT")
    monkeypatch.setattr(verifier, "DEBUG", False)
    assert not manager.is_observed()
    with manager.watching(print):
        assert manager.is_observed()
