"""What comes out of a user's function: Python's result, or Python's error where a run comes to it.

An error of a way that a run does not take is none; the same error in the way that it takes is of
Python's class, in both executors.
"""

# ruff: noqa: B008, F821 (as users write it)

import enum
import math
import numbers
import re

import numpy as np
import pytest
import scipy.linalg

import nbta
from nbta.graph.graph import subgraphs
from nbta.testing import check_grads

CASES = []
EXECUTORS = [False, True]


def called(*arguments):
    """Call a program with each of some arguments."""

    def note(f):
        CASES.extend(pytest.param(f, x, id=f"{f.__name__}-{x}") for x in arguments)
        return f

    return note


def outcome(f, x):
    try:
        return f(x)
    except Exception as error:
        return error


@pytest.mark.parametrize("compiled", EXECUTORS)
@pytest.mark.parametrize(("f", "x"), CASES)
def test_results_and_errors_are_pythons(f, x, compiled):
    expected, found = outcome(f, x), outcome(nbta.function(f, compiled=compiled), x)
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), found
        with pytest.raises(type(expected)):
            nbta.value_and_grad(f, compiled=compiled)(x)
        return
    assert not isinstance(found, Exception), found
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    check_grads(f, [x], order=2)


@called(0.5)
def items_of_numbers(x):
    row = np.array([x, 2.0 * x])
    return np.dot(row, row).item() * row[1].item(0) + row.sum().item(-1)


@called(0.5)
def another_item_of_a_number(x):
    return np.array([x, x])[0].item(1)


# Tuples whose parts are None or other texts on some way.


@called(2.5, -0.5)
def a_tuple_of_none_or_numbers(x):
    def solved(v):
        names = ["a"]
        if v < 0.0:
            return None, None, "none", names
        return v, v * v, "two", names

    one, two, text, names = solved(x)
    if one is None:
        return 3.0 * x
    return one * two * len(names) + (1.0 if text == "two" else 0.0)


@called(2.5, 0.5, -0.5)
def such_a_tuple_in_later_branches_and_loops(x):
    pair = (None, x) if x < 0.0 else (x, 2.0)
    if x > 1.0:
        pair = pair[0], 5.0
    for i in range(12):
        if pair[0] is not None and pair[0] * i > 7.0:
            pair = pair[0] + x, pair[1] * 1.1
    return x if pair[0] is None else pair[0] * pair[1]


@called(2.5, -0.5)
def uses_a_part_that_is_none(x):
    pair = (None, x) if x < 0.0 else (x, 2.0)
    return pair[0] * pair[1]


@called(0.5)
def a_dict_that_changes_while_a_loop_goes_along_it(x):
    items = {"a": x, "b": 1.5}
    for _ in items:
        items.clear()
    return x


# Variables that have no value on some way.


@called(2.5, 1.5, -0.5)
def made_by_the_first_of_known_iterations(x):
    for i in range(3):
        if x > i:
            y = x
        else:
            y = y + 1.0
    return y * y


@called(2.5, 0.5)
def made_in_one_branch(x):
    if x > 1.0:
        y = x * x
    if x > 2.0:
        return y + x
    return y


@called(2.5, 7.5)
def made_by_the_first_iteration_of_while_true(x):
    n = 0
    while True:
        y = x * 2.0 if n == 0 else y * x
        n += 1
        if n > x:
            break
    return y


@called(2.5, -2.5, 12.0)
def made_in_a_loop_of_the_run(x):
    n, total = 0, x
    while n < 20:
        if total > n:
            y = total * 0.5
        elif total < 0.0:
            total = total + y
        total = total + y * 0.1
        n += 1
    return total


@called(2.5, -2.5)
def made_in_a_loop_in_a_loop(x):
    total = x
    for i in range(12):
        for j in range(12):
            if total > i * j:
                y = x * j
            total = total + y * 1e-3
    return total


# Errors of Python's containers on ways that a run may not take.


@called(2.5, 200.0)
def index_of_a_list_in_a_while(x):
    items = [1.0, 2.0]
    k = 5
    while x > 100.0:
        x = x * items[k]
    return x * x


@called(2.5, 14.5)
def index_of_a_list_in_a_range(x):
    items, k = [1.0, 2.0], 7
    for _ in range(int(x) - 3):
        x = x * items[k]
    return x * x


@called(2.5, 200.0)
def index_of_an_array(x):
    items = np.ones(3) * x
    if x > 100.0:
        return items[3]
    return items[2] * x


@called(2.5, 200.0)
def key_of_a_dict(x):
    found = {"a": x}
    if x > 100.0:
        found["b"]["a"] = 1.0
    return found["a"] * x


@called(2.5, 200.0)
def item_of_a_number(x):
    found = {"b": x}
    if x > 100.0:
        found["b"]["a"] = 1
    return x * found["b"]


@called(2.5, 200.0)
def attribute_that_is_not_there(x):
    items = [x]
    if x > 100.0:
        items.push(x)
    return items[0] * x


@called(2.5, 200.0)
def unpacking(x):
    pair = x, x
    if x > 100.0:
        a, b, c = pair
        return a + b + c
    return pair[0] * pair[1]


@called(2.5, 200.0)
def text_and_number(x):
    unit = "m"
    if x > 100.0:
        return unit + 1
    return x * x


@called(2.5, 200.0)
def number_of_a_text(x):
    if x > 100.0:
        return float("x") * x
    return x * x


@called(2.5, 200.0)
def removing(x):
    items = [1, 2]
    if x > 100.0:
        items.remove(3)
    return x * x * items[0]


@called(2.5, 200.0)
def call_of_what_is_no_function(x):
    factor = 3
    if x > 100.0:
        return factor(x)
    return x * factor


@called(2.5, 200.0)
def wrong_arguments(x):
    def scaled(v, by):
        return v * by

    if x > 100.0:
        return scaled(x)
    return scaled(x, 2.0)


# What Python asks of a value.


@called(2.5)
def class_of_a_number(x):
    kind = type(x)
    return kind(2) * x * x


@called(2.5)
def is_one_of_a_union(x):
    return x * x if isinstance(x, int | float) else 0.0 * x


@called(2.5)
def is_one_of_nested_tuples(x):
    return x * x if isinstance(x, (int, (float, complex))) else 0.0 * x


@called(2.5)
def is_one_of_a_union_with_none(x):
    return x * x if isinstance(x, float | None) else 0.0 * x


@called(2.5)
def is_a_number_of_an_abstract_class(x):
    known = isinstance(x, numbers.Real), isinstance(x, numbers.Integral), hasattr(x, "__iter__")
    return x * x if known == (True, False, False) else 0.0 * x


@called(2.5)
def is_of_the_class_of_another(x):
    y = x * 2.0
    return x * y if isinstance(x, type(y)) else 0.0 * x


@called(2.5)
def is_no_class(x):
    return x if isinstance(x, "float") else -x


@called(2.5)
def real_and_imaginary_part(x):
    return x.real * x.conjugate() + x.imag


@called(2.5)
def default_of_an_inner_function(x):
    def scaled(v, by=x.real if x > 1.0 else x.imag, *, shift=max(x, 1.0)):
        return v * by + shift

    return scaled(x) * (lambda q, r=x.conjugate(): q * r)(x)


@called(2.5)
def attribute_of_a_list(x):
    items = [x]
    items.note = x
    return items[0]


@called(2.5)
def attribute_of_a_number(x):
    x.note = 1.0
    return x


@called(2.5)
def list_at_a_float(x):
    items = [x, x]
    items[x * 0.0] = 1.0
    return items[0]


@called(2.5)
def float_times_a_tuple(x):
    return x * (x, 2.0)


@called(2.5)
def number_of_arguments_of_a_number(x):
    return x(2.0)


@called(2.5)
def integer_of_an_array(x):
    return x * int(np.array([x, x]))


@called(2.5)
def loop_over_an_integer(x):
    for _ in 3:
        x = x * 2.0
    return x


@called(2.5)
def reshape_of_what_nobody_reads(x):
    y = (np.ones(3) * x).reshape(2, 2)
    return x if y is not None else -x


@called(2.5)
def deleted_item_of_an_array(x):
    y = np.ones(3) * x
    del y[0]
    return x


@called(2.5)
def last_of_all_is_wrong(x):
    return x * x if all(q > 0.0 for q in (x, "a")) else -x


@called(2.5)
def no_value_in_a_try(x):
    try:
        y = missing * 2.0
    except NameError:
        y = x * x
        missing = 1.0
    return y * missing


# Assignments to all items, and NumPy's polynomials.


@called(2.5)
def flat_of_a_number(x):
    y = np.zeros((2, 3))
    y.flat = x
    return (y * x).sum()


@called(2.5)
def flat_of_few_values(x):
    y = np.zeros((2, 3))
    y.flat = [x, 2.0 * x]
    return (y * np.arange(6.0).reshape(2, 3)).sum() * x


@called(2.5)
def flat_of_many_values(x):
    y = x * np.ones((2, 2))
    y.T.flat = x * np.arange(7.0)
    return (y * np.arange(4.0).reshape(2, 2)).sum() * x


@called(2.5)
def atleast_1d_of_a_list(x):
    return (np.atleast_1d([x, x * x]) * np.arange(2.0)).sum()


POWERS = np.poly1d([1.0, -2.0, 3.0])
KINDS = [
    np.polynomial.Polynomial, np.polynomial.Chebyshev, np.polynomial.Legendre,
    np.polynomial.Hermite, np.polynomial.HermiteE, np.polynomial.Laguerre,
]  # fmt: skip


@called(2.5)
def poly1d_from_outside(x):
    return POWERS(x) * POWERS.deriv()(x)


@called(2.5)
def poly1d_made_inside(x):
    return np.poly1d([1.0, 2.0])(x) * x


class Season(enum.IntEnum):
    WET = 0
    DRY = 1


def member_of_a_number(x, k):
    return x * 2.0 if Season(k) is Season.WET else x


def member_of_a_comparison(x, k):
    return x * 2.0 if Season(int(x > k)) is Season.WET else x


def polynomial_of_values(x, k):
    return np.poly1d([x, x * x])(k)


class Vector(np.ndarray):
    def __new__(cls, items):
        return np.asarray(items).view(cls)


def vector_of_values(x, k):
    return Vector([x, x * x]).sum() * k


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (
            member_of_a_comparison,
            r"py:\d+: .* member of Season .* Season\.WET\.value, or .* static",
        ),
        (polynomial_of_values, r"py:\d+: np\.poly1d takes .* np\.polyval"),
        (vector_of_values, r"py:\d+: Vector is a subclass of np\.ndarray, .* an attribute"),
    ],
)
def test_objects_that_no_run_can_make(f, words):
    with pytest.raises(nbta.UnimplementedError, match=words):
        nbta.value_and_grad(f)(2.0, 1)


@pytest.mark.parametrize("static", [(), 1])
def test_a_member_of_a_number_that_python_needs(static):
    g = nbta.value_and_grad(member_of_a_number, static_argnums=static)
    assert (g(2.0, 0), g(2.0, 1)) == ((4.0, 2.0), (2.0, 1.0))


@called(0.3, 1.5, -0.1)
def a_fraction_of_the_run(x):
    return np.quantile(np.array([x, 2.0, 0.5, x * x]), x) + np.percentile([x, 3.0], [100.0 * x])[0]


@called(0.3)
def points_of_several_lengths(x):
    row = np.array([x, 1.0, 2.0])
    return math.dist(row[: 1 + int(x)], row)


@called(0.3)
def points_of_one_length(x):
    row = np.array([x, 1.0, 2.0])
    return math.dist(row[: 2 + int(x)], [x * x, 3.0])


@pytest.mark.parametrize("compiled", EXECUTORS)
@pytest.mark.parametrize("kind", KINDS)
def test_polynomials(kind, compiled):
    found = kind([0.5, -2.0, 0.25, 1.5], domain=[-2, 3], window=[-1, 1])

    def value(x):
        return found(x) + kind([1.0, 2.0, 3.0])(x) * found.deriv()(x)

    for x in (0.7, np.array([0.7, -0.2])):
        given = nbta.function(value, compiled=compiled)(x)
        np.testing.assert_allclose(given, value(x), rtol=1e-12)
    check_grads(value, [0.7], order=2)


# Functions of libraries, given as they are.


@pytest.mark.parametrize("compiled", EXECUTORS)
@pytest.mark.parametrize(
    "f", [scipy.linalg.circulant, scipy.linalg.toeplitz, scipy.linalg.expm, np.diag, np.cumsum]
)
def test_functions_of_libraries_given_directly(f, compiled):
    x = np.array([[0.5, 1.5], [2.5, 3.5]]) if f is scipy.linalg.expm else np.array([0.5, 1.5, 2.5])
    np.testing.assert_allclose(nbta.function(f, compiled=compiled)(x), f(x), rtol=1e-12)
    found = nbta.jacobian(f, compiled=compiled)(x)
    np.testing.assert_allclose(found, nbta.jacobian(lambda x: f(x), compiled=compiled)(x))


def test_an_unknown_function_of_a_library_given_directly():
    with pytest.raises(nbta.NbtaError, match=r"sqrtm"):
        nbta.function(scipy.linalg.sqrtm)(np.array([0.5, 1.5, 2.5]))


# Texts as results.


@pytest.mark.parametrize("compiled", EXECUTORS)
def test_results_with_texts(compiled):
    def named(x):
        return {"name": "square", "value": x * x, "raw": b"ab"}

    function = nbta.function(named, compiled=compiled)
    for _ in range(2):
        assert function(3.0) == {"name": "square", "value": 9.0, "raw": b"ab"}
    assert nbta.function(lambda x: "abc", compiled=compiled)(2.0) == "abc"
    found = nbta.value_and_grad(lambda x: (x * x, "abc"), has_aux=True, compiled=compiled)(3.0)
    assert found == ((9.0, "abc"), 6.0)


# Indices that are out of range, whoever uses the item.


@called(1.0, -3.0, 7.0)
def a_statement_by_itself(x):
    table = np.arange(4.0)
    table[int(x)]
    return x * x


@called(1.0, 7.0)
def an_item_of_no_use(x):
    table = np.arange(4.0)
    v = table[int(x)] + 1.0
    w = v * 2.0  # noqa: F841
    return x * x


@called(1.0, 7.0)
def an_item_that_another_replaces(x):
    table = np.arange(4.0)
    v = table[int(x)]
    v = table[1]
    return v * x * x


@called(1.0, 2.0)
def items_of_iterations(x):
    table, total = np.arange(4.0), 0.0
    for k in range(3):
        v = table[int(x) + k]  # noqa: F841
        total += k * x
    return total * x


@called(4.0, 5.0)
def a_sum_of_no_use(x):
    table, total = np.arange(4.0), 0.0
    for k in range(int(x)):
        total += table[k]
    return x * x


@called(1.0, 3.0)
def what_is_written_for_nobody(x):
    b = np.zeros(3)
    b[int(x)] = x
    return x * x


@called(3.0, 4.0)
def what_a_loop_writes_for_nobody(x):
    b = np.zeros(3)
    for k in range(int(x)):
        b[k] += x
    return x * x


@called(1.0, 7.0)
def taken_for_nobody(x):
    table = np.arange(4.0)
    np.take(table, int(x))
    table[np.array([0, int(x)])]
    return x * x


@called(1.0, 9.0, -9.0)
def in_a_branch(x):
    table = np.arange(4.0)
    if x > 0:
        v = table[int(x)]  # noqa: F841
    return x * x


@called(1.0, 9.0, -9.0)
def in_what_is_called(x):
    table = np.arange(4.0)

    def looked_at(k):
        table[k]

    if x > 0:
        looked_at(int(x))
    return x * x


@pytest.mark.parametrize("compiled", EXECUTORS)
def test_an_endless_loop_is_an_error_of_runs_that_come_to_it(compiled):
    def endless(x):
        if 0.0 < x < 1.0:
            while True:
                pass
        return x * x

    def counted(x):
        n = 0
        if x > 0:
            while n < 3000:
                n += 1
        return x * x * n

    function = nbta.value_and_grad(endless, compiled=compiled)
    assert function(3.0) == (9.0, 6.0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"test_errors_of.*never ends"):
        function(0.5)
    assert nbta.value_and_grad(counted, compiled=compiled)(2.0) == (12000.0, 12000.0)


@called(1.0)
def a_scalar_joined_to_an_array(x):
    return np.concatenate([np.array([x, 2.0]), x])


@called(1.0)
def an_array_joined_to_a_matrix(x):
    return np.concatenate([np.array([[x, 2.0]]), np.array([x])]).sum()


@called(1.5, 9.5)
def a_row_of_a_branch(x):
    table, total = np.outer(np.arange(4.0), np.arange(1.0, 4.0)), 0.0
    if x < 4:
        row = table[int(x)]
        total = row[0] * x
    return total + x * x


@called(1.5, 3.5, 9.5)
def rows_of_a_branch_in_a_loop(x):
    table, total = np.outer(np.arange(4.0), np.arange(1.0, 4.0)), 0.0
    for k in range(12):
        if x + k < 4:
            row = table[int(x) + k]
            total += row[0] * x
    return total + x * x


@called(2.0)
def an_annotation_alone(x):
    v: float  # noqa: F842
    return x * x


def earlier_items(x):
    total, kept = 0.0, np.zeros(len(x))
    for k in range(len(x)):
        before, row = x[k], np.zeros(len(x))
        for j in range(1, len(x)):
            row[j] = row[j - 1] * 0.5 + x[j] - before
            before = x[j - 1]
            total += row[j]
        kept[k] = total
    return kept.sum()


def rows_and_last_values(x):
    table, last, total = x.reshape(4, 5), 0.0, 0.0
    for i in range(4):
        if table[i, 0] > 0:
            row = table[i]
            grown = row[1]
            for j in range(5):
                grown = grown * 0.9 + row[j]
                total += grown
        last = table[i, 0]
        total += last
    return total


def types_in(graph):
    """The types of all operations, those in bodies too."""
    for op in graph.operations:
        yield op.type
        for body in subgraphs(op):
            yield from types_in(body)


@pytest.mark.parametrize("f", [earlier_items, rows_and_last_values])
def test_values_of_use_are_not_computed_in_turn(f):
    """Nor what traces of loops took that were given up: loops that have a turn are slower."""
    function = nbta.function(f)
    x = np.arange(1.0, 21.0)
    np.testing.assert_allclose(function(x), f(x))
    assert "Await" not in types_in(function.traced()[0])


def test_what_nobody_reads_is_computed_in_turn():
    function = nbta.function(an_item_of_no_use)
    function(1.0)
    assert "Await" in types_in(function.traced()[0])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("function", "kind", "words"),
    [
        (lambda x, k: x * 2**k, nbta.NbtaError, "'2 ** k': the power of an integer is negative"),
        (lambda x, k: x * (1 << k), ValueError, "'1 << k': negative shift count"),
        (lambda x, k: x * (8 >> k), ValueError, "'8 >> k': negative shift count"),
    ],
)
def test_negative_right_operands(function, kind, words, compiled):
    """Of numbers of the run; a known one fails where a run comes to it."""
    traced = nbta.function(function, compiled=compiled)
    assert traced(1.5, np.int64(2)) == function(1.5, 2)
    with pytest.raises(kind, match=rf"test_errors_of_python.py:\d+: {re.escape(words)}"):
        traced(1.5, np.int64(-1))


def test_known_negative_power():
    """Where no run comes to it, nothing fails."""
    traced = nbta.function(lambda x, k: x * k**-1 if k > 3 else x, compiled=False)
    assert traced(1.5, np.int64(2)) == 1.5
    with pytest.raises(nbta.NbtaError, match="power of an integer is negative"):
        traced(1.5, np.int64(4))
