"""Passes held against the reference executor, and bisected: planted faults are named."""

import sys

import numpy as np
import pytest
import read_code

import nbta
from nbta import debug
from nbta.compiler import executable, pipeline
from nbta.compiler.manager import contract
from nbta.compiler.passes import share
from nbta.compiler.program import changes
from nbta.compiler.rematerialisation import rematerialise
from nbta.execution.pass_check import PassError
from nbta.graph.graph import running, substitute
from nbta.ops.core.arithmetic import add, multiply
from nbta.ops.elementary.trigonometry import cos, sin


def loss(x):
    total = 0.0
    for i in range(x.shape[0]):
        y = np.sin(x[i]) * 0.7
        total = total + y * y
    return total


def texts(x):
    print(x.sum())
    return (x * x).sum()


def failing(x):
    if x.sum() > 0.0:
        raise ValueError("not that")
    return (x * x).sum()


X = np.linspace(0.1, 1.0, 5)
#: What `bisect` calls the functions with.
ARGUMENTS = {"loss": lambda: (X,), "texts": (X,)}


def planted(old, new):
    """A pass that puts an operation in place of another one, which it must not."""

    @contract()
    @changes
    def faulty(program):
        for op in running(program):
            if op.record is old.record:
                op.record = new.record
                op.graph.changed()
        return program

    return faulty


#: What takes the place of what: the cosine is in the gradient alone.
FAULTS = {
    "sine": (sin, cos),
    "product": (multiply, add),
    "cosine": (cos, sin),
}


def rounded(reorders):
    """A pass that computes products in a way that rounds otherwise."""

    @contract(reorders=reorders)
    @changes
    def rounding(program):
        for op in [op for op in running(program) if op.record is multiply.record]:
            one, other = op.inputs
            if other.dtype == np.float64:
                with op.graph.as_default():
                    made = one / (np.float64(1.0) / other)
                substitute(op.graph, {op.outputs[0]: made})
        return program

    return rounding


@contract()
def failing_pass(program):
    """Fail as a pass does that goes by an analysis that is out of date."""
    return next(iter(()))


def plant(monkeypatch, step, after=rematerialise):
    """Put a pass after the first of a kind; its number."""
    place = pipeline.LOWERING.index(after) + 1
    steps = (*pipeline.LOWERING[:place], step, *pipeline.LOWERING[place:])
    monkeypatch.setattr(pipeline, "LOWERING", steps)
    return pipeline.passes().index(step) + 1


def run():
    return nbta.value_and_grad(loss, compiled=True)(X)


@pytest.mark.parametrize("after", [share, rematerialise, pipeline.tile], ids=lambda s: s.__name__)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_pass_is_named_with_the_value_that_differs(monkeypatch, fault, after):
    number = plant(monkeypatch, planted(*FAULTS[fault]), after)
    monkeypatch.setenv("NBTA_CHECK", "passes")
    with pytest.raises(PassError) as caught:
        run()
    assert caught.value.number == number
    text = str(caught.value)
    assert text.startswith(f"after pass {number}, faulty: result ")
    assert " in place of " in text


def test_right_passes_are_all_right(monkeypatch):
    want = run()
    monkeypatch.setenv("NBTA_CHECK", "passes")
    got = run()
    assert got[0] == want[0]
    np.testing.assert_array_equal(got[1], want[1])


def test_automatic_compiling_raises_it_too(monkeypatch):
    plant(monkeypatch, planted(sin, cos))
    monkeypatch.setenv("NBTA_CHECK", "passes")
    function = nbta.value_and_grad(loss)
    with pytest.raises(PassError, match="faulty"):
        function(np.linspace(0.1, 1.0, 20_000))


def test_rounding_is_found_unless_the_contract_says_so(monkeypatch):
    monkeypatch.setenv("NBTA_CHECK", "passes")
    with monkeypatch.context() as patch:
        plant(patch, rounded(reorders=True))
        run()
    plant(monkeypatch, rounded(reorders=False))
    with pytest.raises(PassError, match="rounding: result"):
        run()


def test_what_prints_is_not_run_again(monkeypatch, capfd):
    monkeypatch.setenv("NBTA_CHECK", "passes")
    nbta.value_and_grad(texts, compiled=True)(X)
    shown = capfd.readouterr()
    assert len(shown.out.splitlines()) == 1
    assert "NBTA_CHECK: a program is not compared, as it calls Python by Print" in shown.err


def test_an_error_of_the_users_is_theirs(monkeypatch, capfd):
    monkeypatch.setenv("NBTA_CHECK", "passes")
    with pytest.raises(ValueError, match="not that"):
        nbta.value_and_grad(failing, compiled=True)(X)
    assert "is not compared, as it fails one by one, too" in capfd.readouterr().err


# Bisection.


def bisected(capsys, *options, function="loss"):
    """The exit code, and what is printed."""
    code = debug._main(["bisect", f"{__file__}:{function}", *options])
    return code, capsys.readouterr()


@pytest.mark.parametrize("fault", FAULTS)
def test_bisect_names_a_faulty_pass(monkeypatch, capsys, fault):
    number = plant(monkeypatch, planted(*FAULTS[fault]))
    code, shown = bisected(capsys)
    assert code == 1
    start = f"by the reference executor, after pass {number}, faulty: result "
    assert shown.out.startswith(start)


def test_bisect_names_a_pass_that_fails(monkeypatch, capsys):
    number = plant(monkeypatch, failing_pass)
    code, shown = bisected(capsys)
    assert code == 1
    assert shown.out == f"pass {number}, failing_pass, fails: StopIteration()\n"


def spoil(generated):
    """Let a function compute cosines in place of sines."""
    generated.source = generated.source.replace("sin(", "cos(")
    generated.function = read_code.function(generated.source)


def test_bisect_names_a_pass_whose_fault_is_seen_in_compiled_code_alone(monkeypatch, capsys):
    @contract()
    def marking(program):
        program.is_spoiled = True
        return program

    plant(monkeypatch, marking, after=pipeline.tile)
    number = pipeline.passes().index(marking) + 1
    written = executable.generate

    def generate(program):
        found = written(program)
        if getattr(program, "is_spoiled", False):
            assert "sin(" in found.source
            spoil(found)
        return found

    monkeypatch.setattr(executable, "generate", generate)
    code, shown = bisected(capsys)
    assert code == 1
    assert shown.out.startswith(f"by compiled code, after pass {number}, marking: result 0")


def test_bisect_names_the_code_generator(monkeypatch, capsys):
    written = executable.generate

    def generate(program):
        found = written(program)
        spoil(found)
        return found

    monkeypatch.setattr(executable, "generate", generate)
    code, shown = bisected(capsys)
    assert code == 1
    assert shown.out.startswith("compiled code differs without any pass that can be left out: ")


def test_bisect_finds_nothing_where_all_is_right(capsys):
    count = len(pipeline.passes())
    for options in (["--value"], ["--args", "(np.ones(4),)"]):
        code, shown = bisected(capsys, *options)
        assert (code, shown.out) == (
            0,
            f"results agree after each of {count} passes, and compiled\n",
        )


def test_bisect_says_what_it_cannot_do(capsys):
    code, shown = bisected(capsys, function="texts")
    assert code == 2
    assert shown.out == "nothing is compared: it calls Python by Print, and would again\n"
    code, shown = bisected(capsys, function="other")
    assert (code, shown.err.count("has no function 'other'")) == (2, 1)
    code, shown = bisected(capsys, function="failing")
    assert (code, shown.err.count("there are no arguments for failing")) == (2, 1)
    assert debug._main(["bisect", "no_such_module:loss"]) == 2
    assert "no_such_module cannot be imported" in capsys.readouterr().err


def test_bisect_takes_a_module(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "some_module", sys.modules[__name__])
    assert debug._main(["bisect", "some_module:loss", "--value"]) == 0
