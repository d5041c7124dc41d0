"""Programs that know nothing of nbta: values and derivatives of each, and clear refusals."""

import copy
import math
import re

import frontend_checks as checks
import frontend_refused as refused
import numpy as np
import pytest
from frontend_programs import CASES, LARGE, SMALL
from fuzz.ways import in_python
from numba import njit

import nbta

#: Programs that fail today in a way in which none should, and how.
WRONG = {}
EACH = [
    pytest.param(case, id=name, marks=checks.wrong_today(WRONG, name))
    for name, case in CASES.items()
]
SIZES = (SMALL, LARGE)

#: Programs that are refused today, with the words of the error. One that begins to work fails here.
NOT_YET = {}


def refusal(case):
    """A context in which the error of a program that is not taken is expected; None for others."""
    if case.name not in NOT_YET:
        return None
    return pytest.raises(nbta.NbtaError, match=NOT_YET[case.name])


def first_order(case, compiled):
    """At both sizes, with one function."""
    gradient = None
    for n in SIZES:
        arguments = case.arguments(n)
        gradient = checks.check_first(case.function, case.argnums, arguments, compiled, gradient)


def held(case, check):
    """Run a check, or see that the program is refused."""
    expected = refusal(case)
    if expected is None:
        check()
    else:
        with expected:
            check()


@pytest.mark.smoke_every(8)
@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("case", EACH)
def test_first_derivatives(case):
    held(case, lambda: first_order(case, False))


@pytest.mark.slow_but_every(10)
@pytest.mark.parametrize("case", EACH)
def test_first_derivatives_by_generated_code(case):
    """That is run by Python, with bounds of all accesses checked."""
    with in_python():
        held(case, lambda: first_order(case, True))


@pytest.mark.slow_but_every(50)
@pytest.mark.parametrize("case", EACH)
def test_first_derivatives_compiled(case):
    held(case, lambda: first_order(case, True))


@pytest.mark.slow_but_every(32)
@pytest.mark.parametrize("case", [each for each in EACH if each.values[0].order > 1])
def test_second_derivatives(case):
    def check():
        for compiled in (False, True):
            checks.check_second(case.function, case.argnums, case.arguments(SMALL + 1), compiled)

    with in_python():
        held(case, check)


@pytest.mark.slow
@pytest.mark.parametrize("case", [each for each in EACH if each.values[0].njit])
def test_numba_agrees(case):
    for n in SIZES:
        arguments = case.arguments(n)
        expected = checks.plain(case.function)(*copy.deepcopy(arguments))
        compiled = njit(checks.plain(case.function))
        np.testing.assert_allclose(compiled(*copy.deepcopy(arguments)), expected, rtol=1e-12)


@pytest.mark.slow_but_every(12)
@pytest.mark.parametrize("case", [each for each in EACH if each.values[0].njit])
def test_dispatchers_are_taken_as_functions_are(case):
    """What ``@njit`` gives; it is not compiled by Numba for this."""
    f = njit(checks.plain(case.function))
    arguments = case.arguments(LARGE)
    expected = checks.plain(f)(*copy.deepcopy(arguments))

    def check():
        value, _ = checks.value_and_grad(f, case.argnums, compiled=False)(*arguments)
        checks.hold_value(value, expected)

    held(case, check)
    assert not f.signatures


def test_a_wrong_gradient_is_found():
    def wrong(x):
        return nbta.sum(x * nbta.stop_gradient(x))

    def right(x):
        return np.sum(x * x)

    arguments = (np.array([0.5, -1.0]),)
    gradient = checks.value_and_grad(wrong, (0,), compiled=False)
    with pytest.raises(AssertionError, match="gradient"):
        checks.check_first(right, (0,), arguments, False, gradient)


def test_a_wrong_second_derivative_is_found(monkeypatch):
    def f(x):
        return nbta.sum(x**3)

    checks.check_second(f, (0,), (np.array([0.5, -1.0]),), False)
    monkeypatch.setattr(checks, "second", lambda *_: lambda x: (np.array([3.0, -5.0]),))
    with pytest.raises(AssertionError, match="second derivatives"):
        checks.check_second(f, (0,), (np.array([0.5, -1.0]),), False)


# What the table has no room for.


def kernel(x, scale, out):
    for i in range(len(x)):
        out[i] = math.sin(scale * x[i]) + out[i - 1]


@pytest.mark.parametrize("compiled", [False, True])
def test_an_output_argument(compiled):
    x, out = np.linspace(0.1, 1.0, 11), np.ones(11)
    expected = out.copy()
    kernel(x, 0.7, expected)
    with in_python():
        found = nbta.function(kernel, compiled=compiled, convert=True, outputs=("out",))(
            x, 0.7, out
        )
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(out, np.ones(11))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gradient_through_an_output_argument(compiled):
    def loss(x, scale):
        out = np.ones(len(x))
        kernel(x, scale, out)
        return np.sum(out**2)

    with in_python():
        checks.check_first(loss, (0, 1), (np.linspace(0.1, 1.0, 11), 0.7), compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_whole_hessian_of_a_mutating_loop(compiled):
    f, x = CASES["recurrence"].function, CASES["recurrence"].arguments(LARGE)[0][:5]
    with in_python():
        product = nbta.function(lambda x, v: nbta.hvp(f, x, v), compiled=compiled, convert=True)
        found = np.stack([product(x, unit) for unit in np.eye(len(x))])
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    h = 1e-4
    for i in range(len(x)):
        for j in range(len(x)):
            ends = [
                a * b * f(x + h * (a * np.eye(5)[i] + b * np.eye(5)[j]))
                for a in (1, -1) for b in (1, -1)
            ]  # fmt: skip
            assert abs(sum(ends) / (4 * h * h) - found[i, j]) < 1e-6


#: Loops that change one item per iteration; what they carry must not be copied for it.
IN_PLACE = (
    "recurrence", "two_back", "self_increment", "thomas", "heat", "edit_distance", "negative_step",
    "scratch_in_a_nest", "lu", "hidden_markov", "matrix_product",
)  # fmt: skip


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", IN_PLACE)
def test_carries_are_never_copied(name):
    case = CASES[name]
    arguments = case.arguments(LARGE)
    nbta.testing.assert_no_copies_in_loops(
        checks.value_and_grad(case.function, case.argnums), *arguments
    )


def test_one_trace_serves_all_lengths():
    traced = nbta.function(CASES["recurrence"].function, compiled=False, convert=True)
    for n in (9, 12, 30):
        x = CASES["recurrence"].arguments(n)
        checks.hold_value(traced(*x), CASES["recurrence"].function(*x))
    assert traced.traces == 1


def test_a_closure_cell_that_is_rebound():
    factor = 2.0

    def scaled(x):
        s = 0.0
        for v in x:
            s += factor * v * v
        return s

    x = np.linspace(0.0, 1.0, 9)
    first = nbta.function(scaled, compiled=False, convert=True)
    assert first(x) == pytest.approx(scaled(x))
    factor = 3.0
    assert nbta.function(scaled, compiled=False, convert=True)(x) == pytest.approx(scaled(x))


def test_two_lambdas_of_one_line_each_give_their_own():
    one, two = (
        checks.grad(lambda x: x * x if x > 0 else x),
        checks.grad(lambda x: x if x > 0 else 3 * x),
    )
    assert (one(3.0), one(-3.0), two(3.0), two(-3.0)) == (6.0, 1.0, 1.0, 3.0)


def guarded(x):
    s = 0.0
    for i in range(len(x)):
        assert x[i] < 17.0, "too large"
        s += x[i] * x[i]
    return s


@pytest.mark.parametrize("compiled", [False, True])
def test_an_assertion_that_fails_in_iteration_17(compiled):
    x = np.arange(30.0)
    gradient = checks.value_and_grad(guarded, compiled=compiled)
    with in_python():
        assert gradient(x[:17])[0] == pytest.approx(guarded(x[:17]))
        with pytest.raises((AssertionError, nbta.NbtaError), match="too large") as failed:
            gradient(x)
    said = refused.said(failed.value)
    [line] = refused.lines_of(guarded, "assert")
    assert f"{refused.name_of(guarded)}:{line}" in said
    assert re.search(r"iteration 17\b", said)


def last_square(x, n):
    for i in range(n):
        last = x[i] * x[i]
    return last


@pytest.mark.parametrize("compiled", [False, True])
def test_a_name_that_no_iteration_defined(compiled):
    x = np.linspace(0.5, 1.0, 12)
    gradient = checks.value_and_grad(last_square, compiled=compiled)
    with in_python():
        assert gradient(x, 11)[0] == pytest.approx(x[10] ** 2)
        with pytest.raises((NameError, nbta.NbtaError), match="last"):
            gradient(x, 0)


# Refusals: file, line, variable, and what to do.


def of_one_branch(x, limit):
    for v in x:
        if v > limit:
            root = v * v
    return root


@pytest.mark.parametrize("compiled", [False, True])
def test_a_name_that_no_branch_defined(compiled):
    x = np.linspace(0.5, 1.0, 12)
    gradient = checks.value_and_grad(of_one_branch, compiled=compiled)
    with in_python():
        assert gradient(x, 0.7)[0] == pytest.approx(1.0)
        with pytest.raises((NameError, nbta.NbtaError), match="root"):
            gradient(x, 1.5)


@pytest.fixture(autouse=True)
def _global_is_a_number():
    yield
    refused.COUNT = 0.0


def refused_rightly(case):
    """Whether the message has file, line, name and remedy."""
    with pytest.raises(nbta.NbtaError) as failed:
        checks.value_and_grad(case.function, compiled=False)(*case.arguments)
    said = refused.said(failed.value)
    assert any(place in said for place in case.places)
    assert re.search(rf"\b({case.names})\b", re.sub(r"\S+:\d+", "", said))
    assert re.search(case.remedy, said)


#: What is wrong with refusals today.
REFUSED_BADLY = {}
REFUSALS = [
    pytest.param(case, id=repr(case), marks=checks.wrong_today(REFUSED_BADLY, repr(case)))
    for case in refused.CASES
]


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("case", REFUSALS)
def test_refused(case):
    refused_rightly(case)


@pytest.mark.parametrize("case", refused.CASES, ids=repr)
def test_what_is_refused_runs_in_python(case):
    """It is not wrong, but for these."""
    if case.wrong is None:
        assert np.isfinite(case.function(*copy.deepcopy(case.arguments)))
    else:
        with pytest.raises(case.wrong):
            case.function(*copy.deepcopy(case.arguments))
