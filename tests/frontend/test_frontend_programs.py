"""Random programs with loops, branches and item assignment: some of `fuzz --family code`."""

import re

import frontend_random as made
import numpy as np
import pytest
from fuzz import families
from fuzz.ways import DisagreementError

import nbta

FAMILY = families.FAMILIES["code"]
#: Numbers of programs that are quick, and of all.
QUICK, ALL = 12, 160


def run(seeds):
    """What became of programs, by outcome."""
    counts = {}
    for seed in seeds:
        program = made.program(seed)
        try:
            made.check(program, False, counts)
        except DisagreementError as error:
            error.add_note(f"python -m fuzz --family code --seed {seed} --programs 1\n{program!r}")
            raise
    return counts


def hold(counts):
    """Most programs are taken, and few are not checked by differences."""
    refused = sum(number for what, number in counts.items() if what.startswith("refused"))
    agreed, skipped = counts["agreed"], counts.get("without differences", 0)
    ended = agreed + counts.get("failed as Python does", 0)  # those were taken, too
    assert refused <= 0.1 * ended, counts
    assert skipped <= 0.3 * agreed, counts
    assert counts.get("failed as Python does", 0) > 0, counts


def test_some():
    hold(run(range(QUICK)))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(QUICK, ALL, 24))
def test_more(first):
    hold(run(range(first, first + 24)))


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (10, 50))])
def test_arrays_under_several_names(first):
    """Which array a name stands for is decided by the run; few are refused for that.

    Such are two parts of one array, `x[:-1]` and one that may be `x[1:]`.
    """
    counts = {}
    for seed in range(first, first + (40 if first else 10)):
        made.check(made.sharing_program(seed), False, counts)
    refused = sum(number for what, number in counts.items() if what.startswith("refused"))
    assert counts["agreed"] > 10, counts
    assert refused <= 0.1 * counts["agreed"], counts


@pytest.mark.parametrize("first", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (12, 52))])
def test_containers_under_several_names(first):
    """What functions, methods and other names change of lists, deques, dicts and objects."""
    counts = {}
    for seed in range(first, first + (40 if first else 12)):
        made.check(made.container_program(seed), False, counts)
    refused = sum(number for what, number in counts.items() if what.startswith("refused"))
    assert counts["agreed"] > 12, counts
    assert refused <= 0.3 * counts["agreed"], counts


def test_values_that_nobody_reads_in_a_loop_that_lost_a_parameter():
    made.check(made.container_program(23), False, {})


@pytest.mark.slow
def test_some_in_machine_code_and_by_numba():
    counts = {}
    for seed in range(1000, 1004):
        made.check(made.program(seed), True, counts)
    assert counts["agreed with Numba"] >= 4


def test_a_program_is_the_same_for_its_seed():
    assert repr(made.program(5)) == repr(made.program(5)) != repr(made.program(6))


def test_programs_have_what_users_write():
    text = "".join(made.program(seed).source for seed in range(200))
    for part in (
        "while True:", "break", "continue", "    return", "elif", " else ", ".append(", ".pop()",
        "[::-1]", "[1:]", ".T[", "reshape(-1)", "np.zeros(", "@njit", "enumerate(", ", -1, -1)",
        " and ", "not ", "+=", "*=", "undefined_name", ".copy()",
    ):  # fmt: skip
        assert part in text, part
    assert re.search(r"^ +(\w+), (\w+) = \2, \1$", text, re.MULTILINE)


def test_nearly_all_programs_have_differences():
    """By plain Python alone."""
    found = {True: 0, False: 0}
    for seed in range(40):
        program = made.program(seed)
        if not program.wrong:
            noting, arguments = made.Notes(program.source), program.arguments(0)
            _, decisions = noting(*arguments)
            found[made.differences(noting, arguments, decisions) is not None] += 1
    assert found[True] > 10 * found[False]


# What the checks find.

SOURCE = made.HEAD + (
    "def f(x, y, c, k):\n"
    "    s = 0.0\n"
    "    for i in range(len(x)):\n"
    "        if x[i] > 0.1:\n"
    "            s += math.sin(x[i]) * y[i] * c\n"
    "    return s\n"
)


def failure(monkeypatch, change, source=SOURCE, kind="reference"):
    """What `made.check` says of what a function gives, changed, by one of the executors."""
    whole = made._called

    def called(which, gradient, arguments, machine_code):
        found = whole(which, gradient, arguments, machine_code)
        return change(found) if which == kind else found

    monkeypatch.setattr(made, "_called", called)
    error = families.failure(FAMILY, made.Program(source, 1, False))
    return None if error is None else families.word(error)


def test_nothing_is_found_where_nothing_is_wrong(monkeypatch):
    assert failure(monkeypatch, lambda found: found) is None


@pytest.mark.parametrize("kind", ["reference", "compiled"])
def test_a_wrong_value_is_found(monkeypatch, kind):
    wrong = failure(monkeypatch, lambda found: (found[0] * 1.0001, found[1]), kind=kind)
    assert wrong == f"{kind}: value"


@pytest.mark.parametrize("kind", ["reference", "compiled"])
def test_a_wrong_gradient_is_found(monkeypatch, kind):
    def change(found):
        x, y, c = found[1]
        return found[0], (x, y * 1.001, c)

    assert failure(monkeypatch, change, kind=kind) == f"{kind}: gradient"


def test_another_gradient_of_compiled_code_is_found(monkeypatch):
    def change(found):
        x, y, c = found[1]
        return found[0], (x, y, c * (1 + 1e-7))

    assert failure(monkeypatch, change, kind="compiled") == "compiled: another gradient"


def test_errors_of_pythons_are_found(monkeypatch):
    assert failure(monkeypatch, lambda found: KeyError(0)) == "an error of Python's"


def test_errors_without_a_place_are_found(monkeypatch):
    error = nbta.UnimplementedError("no file")
    assert failure(monkeypatch, lambda found: error) == "no place in the error"


def test_numbers_where_python_fails_are_found(monkeypatch):
    source = SOURCE.replace("range(len(x))", "range(len(x) + 1)")
    wrong = failure(monkeypatch, lambda found: (np.float64(1.0), found), source)
    assert wrong == "reference: no error"


def test_programs_are_cut_down(monkeypatch):
    whole = made._called

    def called(which, gradient, arguments, machine_code):
        found = whole(which, gradient, arguments, machine_code)
        return (found[0] + 1.0, found[1]) if found[0] != 0.0 else found

    monkeypatch.setattr(made, "_called", called)
    program = made.Program(SOURCE, 1, False)
    small = families.cut_down(FAMILY, program, False, families.failure(FAMILY, program))
    assert len(small.source.splitlines()) < len(SOURCE.splitlines()) - 2
    assert "sin" not in small.source
    assert families.failure(FAMILY, small).stage == "reference: value"


def test_cutting_down_leaves_loops_their_ends():
    text = SOURCE.replace("    s = 0.0\n", "    s = 0.0\n    while s < 1.0:\n        s += 1.0\n")
    assert made.runs(made.Program(text, 1, False), False)
    assert not made.runs(made.Program(text.replace("s += 1.0", "s += 0.0"), 1, False), True)
