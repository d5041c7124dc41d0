"""Comprehensions of several `for`, `filter`, and who takes their items, held to Python's.

The generator puts together loops over what Python and only the run know, tests that either knows,
and items that are numbers or tuples of these.
"""

import colorsys
import datetime
import fractions
import itertools
import linecache
import math
import os
import statistics
import struct
import types

import frontend_checks as checks
import numpy as np
import pytest

import nbta

X = np.array([0.313, -0.727, 1.241, 0.919, -0.433, 0.557, 1.783, -1.161, 0.269])

#: Loops, outer and inner, with what they give a number.
OUTER = ["for v in x", "for i, v in enumerate(x[:4])", "for v in [x[0], x[3], x[1] * x[2]]",
         "for r in [[x[0], x[1]], [x[5], x[2], x[3]]] for v in r"]  # fmt: skip
INNER = ["for w in x[2:]", "for w in [v, x[4]]", "for w in (x * v)[::2]",
         "for j in range(len(x)) for w in [x[j] - v]"]  # fmt: skip
TESTS = [("", "if w > v"), ("if v > 0", ""), ("if v < 1", "if w < 0.5 if w > -2 * v"),
         ("if v is not None", "if abs(w) > 0.3 or v > 1")]  # fmt: skip
TAKERS = [
    "sum({v} * {w} ...)",
    "max([{v} + {w} ...])",
    "sum(a * b * (k + 1) for k, (a, b) in enumerate([({v}, {w}) ...]))",
    "len([{v} ...]) * x[0] + math.fsum({w} ...)",
    "sum(sorted([{v} - {w} ...])[:2])",
    "x[1] * any({w} > 1.5 ...) + x[2] * all({w} > -2 ...)",
]


def source_of(number):
    """The text of a function: each number has another choice of each kind."""
    outer, inner = OUTER[number % 4], INNER[number // 4 % 4]
    tests = TESTS[(number + number // 4) % 4]
    taker = TAKERS[number % len(TAKERS)].format(v="v", w="w")
    loops = f"{outer} {tests[0]} {inner} {tests[1]}"
    return f"import math\ndef program(x):\n    return {taker.replace('...', loops)} + x[0]\n"


def program_of(number):
    name, source, space = f"<comprehensions {number}>", source_of(number), {}
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    exec(compile(source, name, "exec"), space)
    return space["program"]


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("number", range(48))
def test_loops_in_one_another(number):
    checks.check_of_an_array(program_of(number), X, False)


@pytest.mark.slow_but_every(48)
@pytest.mark.parametrize("number", range(48))
def test_loops_in_one_another_in_generated_code(number):
    checks.check_of_an_array(program_of(number), X, True)


def with_effects_of_tests(x):
    asked = []

    def is_kept(v, w):
        asked.append(v - w)
        return v * w > 0

    found = [v + w for v in x[:3] if len(asked) < 20 for w in x if is_kept(v, w)]
    return sum(found) + asked[5] * asked[-1] + len(asked) * x[0]


def known_to_python(x):
    edges = [(i, j) for i in range(9) for j in range(9) if (i + j) % 4 == 1 and i != j]
    weights = {edge: x[edge[0]] * x[edge[1]] for edge in edges}
    return weights[0, 1] + 2.0 * weights[5, 8] + len(edges) * x[0]


def filters(x):
    kept = list(filter(lambda v: v > 0, x))
    total = sum(filter(lambda v: v < 0.5, kept)) + sorted(filter(lambda v: v != x[0], x))[1]
    return total + max(filter(None, [x[0], 0.0, x[3]])) + next(filter(None, [0, 2])) * x[4]


class Adder:
    def all_after_the_first(self, items):
        return next(items) * sum(items)

    def all(self, items):
        return sum(items)


def items_for_methods(x):
    adder = Adder()
    given = adder.all_after_the_first(v * v for v in x) + adder.all(v for v in x if v > 0)
    return given + adder.all_after_the_first(v for v in x[1:5] if v < 1) + math.fsum(v for v in x)


def extremes_of_tuples(x):
    most = max((abs(v - 0.2), k) for k, v in enumerate(x))
    least = min((v * v, -k, x[k - 1]) for k, v in enumerate(x))
    return most[0] * most[1] + least[0] + least[2] + max((x[0], 1), (x[3], 2))[0]


def columns_of_one_length(x):
    return sum(v * w for v, w in zip(x[1:], x[:-1], strict=True)) + sum(
        k * v for k, v in zip(range(len(x)), x * x, strict=True)
    )


def statistics_of_samples(x):
    y, p = [v * v + 0.1 * k for k, v in enumerate(x)], [abs(v) for v in x]
    line = statistics.linear_regression(x, y)
    through = statistics.linear_regression(x, y, proportional=True)
    means = statistics.geometric_mean(p) + statistics.harmonic_mean(p)
    weighted = statistics.fmean(x, weights=p) + statistics.harmonic_mean(p, weights=y)
    cuts = statistics.quantiles(x) + statistics.quantiles(x, n=5, method="inclusive")
    between = statistics.median_low(x) * statistics.median_high(x)
    both = statistics.correlation(x, y) + statistics.covariance(x, y)
    return (line.slope * line.intercept + through.slope + means + weighted + between + both
            + sum(k * v for k, v in enumerate(cuts, 1)))  # fmt: skip


def rounded_to_places(x):
    places = 0
    for v in x:
        if v > 0:
            places += 1
    total = 0.0
    for k in range(len(x)):
        total += round(100.0 * x[k], k - places) * x[k] + round(12345 * k, -places)
    return total


PROGRAMS = [
    with_effects_of_tests, known_to_python, filters, items_for_methods, extremes_of_tuples,
    columns_of_one_length, statistics_of_samples, rounded_to_places,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f):
    checks.check_of_an_array(f, X + 0.001, False)


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_in_generated_code(f):
    checks.check_of_an_array(f, X + 0.001, True)


@pytest.mark.parametrize("compiled", [False, True])
def test_columns_of_two_lengths_are_an_error_of_the_run(compiled):
    def paired(x, y):
        total = 0.0
        for v, w in zip(x, y, strict=True):
            total += v * w
        return total

    f = nbta.function(paired, compiled=compiled)
    assert f(X, X) == pytest.approx(paired(X, X))
    for y in X[:-2], np.append(X, 1.0):
        with pytest.raises(ValueError, match=r"zip\(\) argument 2 is"):
            f(X, y)


def summed_before_a_limit(x):
    return sum(itertools.takewhile(lambda v: v < 1.0, x))


def looks_into_a_fraction(x):
    return float(fractions.Fraction(x[0]).limit_denominator(10))


def time_of(x):
    return datetime.timedelta(seconds=x[0]).total_seconds()


def bytes_of(x):
    return float(len(struct.pack("d", x[0])))


def of_a_distribution(x):
    return statistics.NormalDist(x[0], abs(x[1])).cdf(x[2])


REFUSED = {
    summed_before_a_limit: r"takewhile\(\) with a test whose result only the run knows",
    looks_into_a_fraction: "Fraction of fractions was called with values .*Rational instance",
    time_of: "timedelta of datetime was called with values .*unsupported type",
    bytes_of: "pack of _struct was called with values .*not a float",
    of_a_distribution: "NormalDist of statistics was called with values",
}


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_libraries_that_need_a_value(f):
    checks.check_refused(f, X, REFUSED[f])


def test_libraries_that_go_on_without_a_value():
    """A library that handles the error of asking would go on in another way than in a run."""
    library = types.ModuleType("xdrlib_of_numbers")
    lines = ["def number(v):", "    try:", "        return float(v)", "    except ValueError:",
             "        return 0.0", ""]  # fmt: skip
    name = os.path.join(os.path.dirname(statistics.__file__), "xdrlib_of_numbers.py")
    exec(compile("\n".join(lines), name, "exec"), library.__dict__)

    def takes_no_number(x):
        return library.number(x[0]) * x[1]

    checks.check_refused(takes_no_number, X, "number of xdrlib_of_numbers was called with values")


def test_arguments_that_a_library_does_not_take():
    def too_few(x):
        return colorsys.rgb_to_yiq(x[0])[0]

    with pytest.raises(TypeError, match="missing 2 required"):
        nbta.function(too_few, compiled=False)(X)
