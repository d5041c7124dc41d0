"""`try` in functions that are differentiated unmodified: right, or refused by name."""

import contextlib
import math
import warnings

import numpy as np
import pytest
from frontend_random import built

import nbta
from nbta.testing import check_grads

X = np.array([1.4, 0.45, 2.5])


def _differentiated(function, x=X):
    """Value and gradient, which hold against the function and differences."""
    value, grad = nbta.value_and_grad(function)(x)
    np.testing.assert_allclose(value, function(x))
    check_grads(function, (x,), order=1)
    return grad


def _in_a_try(compute, *errors):
    def tried(x):
        try:
            found = compute(x)
        except errors:
            found = 7.0 * x[0]
        return found

    return tried


def _fails_where_a_handler_is_taken(function, x, what):
    """Runs differ by values alone: what the same graph gave for others, it does not give here."""
    for compiled in (False, True):
        with pytest.raises(
            nbta.UnimplementedError, match=rf"test_tries.*{what} raises .*in this run"
        ):
            nbta.value_and_grad(function, compiled=compiled)(x)


WIDE = np.array([9.5, 0.45, 2.5])
#: What raises an error in a run, one that Python raises, and values with and without one.
DOMAIN = [
    ("sqrt", lambda x: math.sqrt(x[0] - 9.0), ValueError, WIDE, X),
    ("log", lambda x: math.log(x[0]), (KeyError, ValueError), X, X - 1.4),
    ("exp", lambda x: math.exp(x[0]), OverflowError, X, 800.0 * X),
    ("sin", lambda x: math.sin(x[0]), ValueError, X, X * np.inf),
    ("gamma", lambda x: math.gamma(x[0]), ArithmeticError, X, 200.0 * X),
    (r"math\.floor\(\)", lambda x: x[1] * math.floor(x[0]), ValueError, X, X * np.nan),
    (r"int\(\)", lambda x: x[1] * int(x[0]), ValueError, X, X * np.nan),
    (r"round\(\)", lambda x: x[1] * round(x[0]), OverflowError, X, X * np.inf),
    ("/", lambda x: x[0] / x[1], ZeroDivisionError, X, X - 0.45),
    ("//", lambda x: x[0] // x[1], ArithmeticError, X, X - 0.45),
    ("%", lambda x: x[0] % x[1], Exception, X, X - 0.45),
    ("%", lambda x: divmod(x[0], x[1])[1], ZeroDivisionError, X, X - 0.45),
    (r"\*\*", lambda x: x[1] ** x[0], ZeroDivisionError, X, -1.0 * (X - 0.45)),
    (r"\*\*", lambda x: x[0] ** x[1], OverflowError, X, 1e4**X),
    (r"\*\*", lambda x: pow(x[0], -1), ZeroDivisionError, X, X - 1.4),
]


@pytest.mark.parametrize(("what", "compute", "error", "fine", "raising"), DOMAIN)
def test_a_run_fails_where_a_handler_would_be_taken(what, compute, error, fine, raising):
    tried = _in_a_try(compute, error)
    _differentiated(tried, fine)
    _fails_where_a_handler_is_taken(tried, raising, what)


@pytest.mark.parametrize("compute", [row[1] for row in DOMAIN], ids=[r[0] for r in DOMAIN])
def test_handlers_for_other_errors_do_not_matter(compute):
    _differentiated(_in_a_try(compute, KeyError, TypeError), np.array([9.6, 0.45, 2.5]))


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: math.exp(x[0]) * math.log(x[1]),
        lambda x: x[0] / x[1] + x[0] ** x[1],
        lambda x: math.sqrt(x[0]),
    ],
    ids=["NaN of NaN", "quotients", "infinity of infinity"],
)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_before_raises_nothing(compute, value):
    tried = _in_a_try(compute, ValueError, ArithmeticError)
    found, _ = nbta.value_and_grad(tried)(np.full(3, value))
    with np.errstate(all="ignore"):
        np.testing.assert_equal(found, tried(np.full(3, value)))


@pytest.mark.parametrize(
    "compute",
    [lambda x: math.atan(x[0]) * math.tanh(x[1]), lambda x: x[0] / 2.0, lambda x: np.sum(x / x)],
    ids=["total", "known divisor", "arrays"],
)
def test_what_raises_nothing_is_taken_in_each_try(compute):
    _differentiated(_in_a_try(compute, Exception))


def test_a_try_around_a_call_counts_in_the_function_that_is_called():
    def root(v):
        return math.sqrt(v)

    def tried(x):
        try:
            return root(x[0] - 9.0)
        except (ArithmeticError, ValueError):
            return x[1]

    _differentiated(tried, WIDE)
    _fails_where_a_handler_is_taken(tried, X, r"math\.sqrt")


def test_a_handler_without_a_name_waits_for_all_errors():
    def tried(x):
        try:
            found = math.sqrt(x[0] - 9.0)
        except:  # noqa: E722 - it is what is tried here
            found = x[1]
        return found

    _differentiated(tried, WIDE)
    _fails_where_a_handler_is_taken(tried, X, r"math\.sqrt")


def test_a_condition_of_a_loop_fails_where_a_handler_would_be_taken():
    def tried(x):
        total = 0.0
        try:
            while math.sqrt(x[0]) > 1.2:
                x = x * 0.5
                total += x[1]
        except ValueError:
            total = -1.0
        return total

    _differentiated(tried)
    _fails_where_a_handler_is_taken(tried, -X, r"math\.sqrt")


def test_suppress_is_a_try():
    def suppressed(x):
        found = x[0]
        with contextlib.suppress(ValueError):
            found = found + math.sqrt(x[0] - 9.0)
        return found

    def known(x):
        found = {"a": x[0] * x[1]}
        with contextlib.suppress(KeyError):
            found["a"] = found["b"] * x[2]
        return found["a"]

    _differentiated(suppressed, WIDE)
    _fails_where_a_handler_is_taken(suppressed, X, r"math\.sqrt")
    _differentiated(known)


class _Quiet:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return True


def _quiet(x):
    found = x[0]
    with _Quiet():
        found = found * math.factorial(x[1])
    return found * 2.0


def test_handlers_do_not_take_what_cannot_be_followed_for_an_error_of_the_function():
    with pytest.raises((nbta.UnimplementedError, nbta.InvalidArgumentError)):
        nbta.value_and_grad(_quiet)(np.repeat(X, 8))


def test_a_handler_waits_for_values_of_an_earlier_iteration():
    def tried(x):
        total = 0.0
        for v in x:
            try:
                last = last * v  # the first iteration has none
            except NameError:
                last = v
            total = total + last
        return total

    with pytest.raises((UnboundLocalError, nbta.UnimplementedError)):
        nbta.value_and_grad(tried)(np.repeat(X, 8))


def test_handlers_take_what_is_known_before_a_run():
    def of_key(x):
        try:
            return {"a": x[0]}["b"]
        except KeyError:
            return x[0] * x[2]

    def of_own(x):
        try:
            raise ArithmeticError("none")
        except ArithmeticError:
            return x[0] * x[2]

    def of_what_it_has(x):
        try:
            raise ArithmeticError("found", x[0] * x[2])
        except ArithmeticError as error:
            return error.args[1] * x[1]

    for function in (of_key, of_own, of_what_it_has):
        _differentiated(function)


@pytest.mark.parametrize("error", [KeyError, UnboundLocalError])
def test_variables_without_a_value_are_errors_in_a_try_too(error):
    def tried(x):
        if x[0] > 2.0:
            factor = x[1]
        try:
            found = factor * x[0]
        except error:
            found = x[0]
        return found

    kinds = (UnboundLocalError, nbta.UnimplementedError)
    with pytest.raises(kinds, match="'factor'"):
        nbta.value_and_grad(tried)(X)


def test_variables_without_a_value_are_errors_in_a_match_too():
    def matched(x, kind="scaled"):
        if x[0] > 2.0:
            factor = x[1]
        match kind:
            case "scaled":
                return factor * x[0]
            case other:
                factor = other
        return factor

    with pytest.raises(UnboundLocalError, match="'factor'"):
        nbta.value_and_grad(matched)(X)
    np.testing.assert_allclose(nbta.value_and_grad(matched)(X + 1.0)[0], 2.4 * 1.45)


def test_errors_that_numpy_is_told_to_raise_are_refused():
    def raising(x):
        with np.errstate(invalid="raise"):
            return np.sqrt(x[0] - 9.0)

    def quiet(x):
        with np.errstate(all="ignore"):
            found = 0.0
            for v in x:
                found = found + np.sqrt(v)
        return found

    with pytest.raises(nbta.UnimplementedError, match=r"np\.errstate asks for errors"):
        nbta.value_and_grad(raising)(X)
    assert "raise" not in np.geterr().values()
    _differentiated(quiet)
    with np.errstate(all="raise"):
        _differentiated(quiet)


def test_variables_without_a_value_are_errors_in_comprehensions_and_with_too():
    def summed(x):
        if x[0] > 2.0:
            factor = x[1]
        return sum([factor * v for v in x])

    def managed(x):
        if x[0] > 2.0:
            factor = x[1]
        with contextlib.nullcontext(factor) as found:
            return found * x[0]

    for function in (summed, managed):
        with pytest.raises(UnboundLocalError, match="'factor'"):
            nbta.value_and_grad(function)(X)
        value, _ = nbta.value_and_grad(function)(X + 1.0)
        np.testing.assert_allclose(value, function(X + 1.0))


@pytest.mark.parametrize("compiled", [False, True])
def test_an_index_that_python_knows_ends_a_loop(compiled):
    def total(x):
        s, i = 0.0, 0
        while True:
            try:
                s += x[i] * x[i]
                i += 1
            except IndexError:
                break
        return s

    for count in (3, 5, 1):
        value, grad = nbta.value_and_grad(total, compiled=compiled)(X[:1].repeat(count))
        np.testing.assert_allclose(value, count * X[0] ** 2)
        np.testing.assert_allclose(grad, 2.0 * X[:1].repeat(count))


# Loops and branches.


def _sum_of_squares(x):
    found = 0.0
    try:
        for v in x:
            found = found + v * v
    except Exception:
        found = -1.0
    return found


def _doubled(x):
    found = x[0]
    try:
        if x[0] > 0.0:
            found = found * 2.0
        else:
            found = found * 3.0
    except:  # noqa: E722 - it is what is tried here
        found = -1.0
    return found


def _first_above(x):
    try:
        for v in x:
            if v > 2.0:
                return v * v
        return x[0]
    except ZeroDivisionError:
        return 0.0


def _until(x):
    total = 0.0
    try:
        for v in x:
            if v > 2.0:
                break
            total += v * x[1]
        else:
            total = total * 2.0
    finally:
        total = total + 1.0
    return total


def _grown(x):
    total, iterations = x[0], 0
    try:
        while total < 10.0:
            total = total * 1.5
            iterations += 1
    except (ValueError, OverflowError):
        return x[0]
    else:
        total = total + iterations
    return total


def _tried_in_each_iteration(x):
    total = 0.0
    for v in x:
        try:
            if v > 1.0:
                total = total + v * v
            for w in x:
                total = total + w * v
        except KeyError:
            total = 0.0
    return total


def _known_error_after_a_loop(x):
    total = 0.0
    try:
        for v in x:
            total = total + v
        total = total * {}["missing"]
    except KeyError:
        total = total * 2.0
    return total


def _raise_of_another_kind(x):
    try:
        if x[0] > 100.0:
            raise ValueError("large")
        return x[0] * x[2]
    except KeyError:
        return x[1]


def _suppressing_all(x):
    found = x[0]
    with contextlib.suppress(Exception):
        for v in x:
            found = found + v
    return found


def _left_by_finally(x):
    seen = []
    try:
        if x[0] > 1.0:
            return x[0] * x[1]
        return x[2]
    finally:
        seen.append(1)


@pytest.mark.parametrize(
    "function",
    [
        _sum_of_squares,
        _doubled,
        _first_above,
        _until,
        _grown,
        _tried_in_each_iteration,
        _known_error_after_a_loop,
        _raise_of_another_kind,
        _suppressing_all,
        _left_by_finally,
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("x", [np.repeat(X, 8), np.repeat(X[::-1], 8)], ids=["up", "down"])
def test_loops_and_branches_in_a_try(function, compiled, x):
    value, _ = nbta.value_and_grad(function, compiled=compiled)(x)
    np.testing.assert_allclose(value, function(x))
    check_grads(function, (x,), order=2)


def _raises_in_a_branch(x):
    try:
        if x[0] > 1.0:
            raise ValueError("large")
        return x[0]
    except ValueError:
        return x[1]


def _raises_in_a_loop(x):
    total, held = 0.0, {}
    try:
        for v in x[x > -9.0]:
            total = total + held["missing"] * v
    except KeyError:
        total = x[0] * 3.0
    return total


def _removes(x):
    items = [x[0], x[1]]
    try:
        items.remove(0.45)
    except ValueError:
        return 3.0 * x[0]
    return items[0] * x[2]


def _asserts(x):
    try:
        assert x[0] > 0.0
        found = x[0]
    except AssertionError:
        found = x[1]
    return found


@pytest.mark.parametrize(
    ("function", "fine", "raising"),
    [
        (_raises_in_a_branch, X - 1.0, X),
        (_raises_in_a_loop, X - 20.0, X),
        (_asserts, X, -X),
    ],
)
def test_a_run_fails_where_a_handler_would_take_what_the_user_raises(function, fine, raising):
    _differentiated(function, fine)
    _fails_where_a_handler_is_taken(function, raising, "this line")


def test_an_item_that_a_list_does_not_have_in_a_run():
    value, slope = nbta.value_and_grad(_removes)(X)
    np.testing.assert_allclose(value, _removes(X))
    np.testing.assert_allclose(slope, [2.5, 0.0, 1.4])
    _fails_where_a_handler_is_taken(_removes, -X, "this line")


def _else_after_continue(x):
    s = 0.0
    for k in range(3):
        try:
            if k == 1:
                continue
        except ValueError:
            s -= 1.0
        else:
            s += x[k] * x[k]
    return s


def _else_after_break(x):
    s, k = 0.0, 0
    while k < 3:
        try:
            if x[k] < 1.0:
                break
            s += x[k]
        except ValueError:
            s -= 1.0
        else:
            s += x[k] * x[k]
        finally:
            s *= 1.5
        k += 1
    else:
        s += 100.0 * x[0]
    return s


def _else_after_return(x):
    def scaled(v):
        try:
            if v > 1.0:
                return v
        except ValueError:
            return 0.0
        else:
            v = v * v
        return v

    return sum(scaled(v) for v in x)


def _else_of_nested_tries(x):
    s = 0.0
    for k in range(12):
        try:
            try:
                if k % 4 == 2:
                    continue
                if x[k % 3] > 2.0:
                    break
            except KeyError:
                pass
            else:
                s += x[k % 3] ** 2
        except ValueError:
            s = 0.0
        else:
            s += x[0] * k
    return s


def _while_there_are_items(x):
    total, place, items = x[0], 0, [1.0, 2.0]
    try:
        while True:
            total = total + items[place] * x[1]
            place += 1
    except IndexError:
        total = total * place
    return total


def _counted_until_a_key_lacks(x):
    total, table = x[0], {0: 1.0, 1: 3.0}
    try:
        for k in range(6):
            total = total * table[k]
    except KeyError:
        pass
    return total


def _changes_arrays_and_lists(x):
    y, seen, items = x.copy(), [], [2.0, 5.0]
    try:
        for k in range(3):
            y[k] *= items[k] * y[2]
            seen.append(y[k])
    except IndexError:
        y[0] += len(seen)
    return y.sum() + seen[-1]


def _error_of_an_inner_loop(x):
    total, rows = x[0], [[1.0, 2.0], [3.0]]
    try:
        for row in range(2):
            for k in range(2):
                total = total + rows[row][k] * x[row]
    except IndexError:
        total = total * 2.0
    return total


def _items():
    place = 0
    try:
        while True:
            yield [1.0, 2.0][place]
            place += 1
    except IndexError:
        return


def _generator_that_ends_by_an_error(x):
    total = x[0]
    for v in _items():
        total = total + v * x[1]
    return total


@pytest.mark.parametrize(
    "function",
    [_else_after_continue, _else_after_break, _else_after_return, _else_of_nested_tries],
)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("x", [X, X[::-1].copy()], ids=["up", "down"])
def test_else_of_a_try_whose_body_jumps(function, compiled, x):
    value, _ = nbta.value_and_grad(function, compiled=compiled)(x)
    np.testing.assert_allclose(value, function(x))
    check_grads(function, (x,), order=1)


def test_a_jump_out_of_finally_is_refused():
    lines = [
        "def f(x):", "    for k in range(3):", "        try:", "            s = x / k",
        "        finally:", "            continue", "    return s", "",
    ]  # fmt: skip
    with warnings.catch_warnings(action="ignore"):  # Python warns of such a jump, too
        f, name = built("\n".join(lines))
    with pytest.raises(
        nbta.UnimplementedError, match="`continue` leads out of a finally"
    ) as failed:
        nbta.value_and_grad(f)(2.0)
    assert f"{name}:6" in str(failed.value)


@pytest.mark.parametrize(
    "function",
    [
        _while_there_are_items,
        _counted_until_a_key_lacks,
        _changes_arrays_and_lists,
        _error_of_an_inner_loop,
        _generator_that_ends_by_an_error,
    ],
)
@pytest.mark.parametrize("compiled", [True, False])
def test_iterations_before_an_error_stay_made(function, compiled):
    value, slope = nbta.value_and_grad(function, compiled=compiled)(X)
    np.testing.assert_allclose(value, function(X))
    np.testing.assert_allclose(slope, _differentiated(function))
