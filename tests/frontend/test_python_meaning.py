"""What Python means by `is`, `return`, `max`, `//` and their kin: the same, or a clear error.

Each program is called with arguments that lead it along each way; a run gives what Python gives,
None too, or raises what Python raises.
"""

# ruff: noqa: RET502, RET503, B023, UP031, UP032 (as users write it)

import enum
import math

import numba
import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

V = np.arange(12.0) + 0.1
NAN, INF = float("nan"), float("inf")


def _outcome(f, args):
    try:
        return f(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    except Exception as error:
        return error


def _check(f, args, compiled, python, smooth):
    """Value, or kind of error, and the gradient, against the function's own."""
    expected = _outcome(python or getattr(f, "py_func", f), args)
    found = _outcome(nbta.function(f, compiled=compiled), args)
    if isinstance(expected, Exception):
        assert isinstance(found, type(expected)), (args, found)
        return
    assert not isinstance(found, Exception), (args, found)
    if expected is None:
        assert found is None, args
        with pytest.raises((TypeError, nbta.InvalidArgumentError), match="returns None"):
            nbta.value_and_grad(f, compiled=compiled)(*args)
        return
    np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=str(args))
    if smooth and np.isfinite(expected) and np.all(np.isfinite(args[0])):
        check_grads(lambda x: f(x, *args[1:]), args[:1], order=2)


RIGHT = []


def right(*arguments, python=None, smooth=True):
    def note(f):
        for args in arguments:
            args = args if isinstance(args, tuple) else (args,)
            RIGHT.append(pytest.param(f, args, python, smooth, id=f"{f.__name__}-{len(RIGHT)}"))
        return f

    return note


# The end of a function, and bare returns.


@right(V, V * 0.0, V * 0.1)
def falls_off_a_loop(v):
    for each in v:
        if each > 2.0:
            return each * each


@right(2.5, 0.5)
def falls_off_a_branch(x):
    if x > 1.0:
        return x * x


@right(2.5, 1.5, 0.5)
def falls_off_in_the_middle(x):
    if x > 1.0:
        if x > 2.0:
            return x * 3.0
    else:
        return -x


@right(2.5, 0.5, -3.0)
def returns_nothing(x):
    if x > 1.0:
        return
    if x < 0.0:
        return None
    return x * x


@right(V, V * 0.0)
def falls_off_a_while(v):
    k = 0
    while k < len(v):
        if v[k] > 3.0:
            return v[k] * k
        k += 1


@right(2.5, 0.5)
def calls_what_falls_off(x):
    found = falls_off_a_branch(x)
    return 7.0 * x if found is None else found


@right(2.5, 0.5)
def falls_off_but_raises(x):
    while True:
        if x > 1.0:
            return x * x
        x = x + 1.0


@right(2.5, 0.5)
def uses_what_is_none(x):
    return falls_off_a_branch(x) * 2.0


@right(2.5, 1.5, 0.5, smooth=False)
def compares_what_may_be_none(x):
    found = falls_off_a_branch(x)
    return x if found == 6.25 else 2.0 * x if found != None else 3.0 * x  # noqa: E711


@right(V, V * 0.0)
def falls_off_after_a_match(v):
    n = 0
    for each in v:
        n += each > 3.0
    match n:
        case 0:
            return
        case 8 | 9:
            return v[1] * 2.0
        case _:
            return v[1]


# Variables without a value.


@right(2.5, 40.0)
def adds_to_nothing(x):
    for i in range(30):
        if i > x:
            n = x
    n += 1.0
    return n * x


@right(2.5, 0.5)
def adds_to_nothing_in_a_branch(x):
    if x > 1.0:
        n = x
    n *= x
    return n


@right((V, 2.0), (V, 0.5))
def fills_nothing(v, x):
    if x > 1.0:
        a = np.zeros(3)
    a[0] = v[1]
    return a[0]


@right(2.5, 0.5)
def a_lambda_reads_nothing(x):
    if x > 1.0:
        n = x * x
    g = lambda t: n * t  # noqa: E731
    return g(x)


@right(2.5, 40.0)
def a_function_in_a_function_reads_nothing(x):
    def outer(t):
        def inner():
            return n

        return inner() * t

    for i in range(20):
        if i > x:
            n = x
    return outer(2.0)


@right(2.5)
def a_lambda_reads_what_comes_later(x):
    g = lambda t: n * t  # noqa: E731
    n = x * x
    return g(x)


@right(2.5, -1.0)
def a_lambda_reads_a_tuple(x):
    total = 0.0
    for k in range(20):
        if x > k:
            pair = (x, k * 1.0)
        g = lambda t: pair[0] * t + pair[1]  # noqa: E731
        total += g(x)
    return total


@right(2.5)
def functions_call_each_other(x):
    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    return x * x if even(4) else x


# Who a value is, and of which class.


@right(1.05, 100.0)
def a_flag_is_true(x):
    done, total = False, 0.0
    for _ in range(20):
        if total > x:
            done = True
        if done is True:
            return 65.0 * x
        if done is not False:
            return 1.0
        total += x * 0.1
    return total


@right(2.5, 0.5)
def matches_truth(x):
    match x > 1.0:
        case True:
            return x * 2.0
        case False:
            return x * 3.0


@right(2.5, 0.5)
def matches_none(x):
    y = None
    if x > 1.0:
        y = x
    match y:
        case None:
            return 0.5 * x
        case _:
            return y * 3.0


def count_below(x):
    k = 0
    for i in range(20):
        if i < x:
            k = i
    return k


@right(2.5, 0.5)
def a_count_is_a_number(x):
    n, two, text = count_below(x), 2, "a"
    return x * 3.0 if n is two else x if n is None or n is text else 2.0 * x


@right(2.5, 0.5)
def a_number_is_no_object(x):
    n = count_below(x)
    return x if n is x or n is len or n == "2" or n == {} else x * 2.0


@right(2.5, 0.5)
def looks_up(x):
    table = {0: 1.0, 1: x, 2: x * x, "a": 3.0}
    return table[count_below(x)] * x + table.get(count_below(x) + 1, 7.0)


@right(2.5, 0.5, 8.5)
def misses_a_key(x):
    return {0: 1.0, 2: x * x}[count_below(x)] * x


@right(2.5, 0.5)
def looks_up_pairs_and_truth(x):
    n = count_below(x)
    found = {(2, 1): 3.0 * x, (0, 1): x}[n, 1] * {True: 2.0, False: 3.0}[n == 2]
    return found + (5.0, 7.0 * x)[n == 2]


@right(2.5, 0.5)
def is_among(x):
    n = count_below(x)
    found = [(n, 1) in {(2, 1): 0}, n in {2, 3}, n in range(1, 9, 2), n not in {7: 1}]
    return x * sum(found, 0) + x * ((n, 1) in [(2, 1), (0, 0)])


@right(2.5, 0.5)
def has_attributes(x):
    names = ("__len__", "__iter__", "op", "__call__", "__name__")
    return x * 2.0 if any(hasattr(x, name) for name in names) else x


@right(2.5, 0.5)
def has_no_name(x):
    return x if x.name == "a" else 2.0 * x


@right(2.5, 3.0, smooth=False)
def is_whole(x):
    return x * 3.0 if x.is_integer() else x


class Deleted:
    pass


@right(2.5, 0.5)
def an_attribute_may_be_gone(x):
    o = Deleted()
    o.value = x * x
    if x > 1.0:
        del o.value
    return getattr(o, "value", 3.0 * x) + (1.0 if hasattr(o, "value") else 2.0)


@right(2.5, 0.5)
def an_attribute_is_gone(x):
    o = Deleted()
    o.value = x * x
    if x > 1.0:
        del o.value
    return o.value


@right(2.5)
def in_the_order_of_known_keys(x):
    d = {3: x, 1: x * x, 2: 3.0}
    s = 0.0
    for i, (k, v) in enumerate(sorted(d.items())):
        s += i * v * k
    for i, (_, v) in enumerate(sorted(d.items(), key=lambda item: -item[0])):
        s += 7.0 * i * v
    pairs = [(3, x), (1, 2.0 * x)]
    pairs.sort(key=lambda pair: pair[0])
    return s + pairs[1][1]


# Greatest and least, beside NaN.


@right(2.5, 0.5, NAN)
def first_wins(x):
    return max(x, 1.0) + min(2.0, x)


@right(2.5, 0.5, NAN)
def second_wins(x):
    return max(1.0, x) + min(x, 2.0)


@right(V, np.array([1.0, NAN, 3.0]), np.array([NAN, 1.0, 2.0]), np.array([2.0, 3.0, NAN]))
def of_a_sequence(v):
    return max(v) + 2.0 * min(v) + 3.0 * max(v[0], v[1], v[2]) + min([v[2], v[1]])


@right(V, np.zeros(0))
def of_a_sequence_with_a_default(v):
    return max(v, default=7.0) * 2.0


@pytest.mark.parametrize("compiled", [False, True])
def test_of_equal_ones_the_first_has_the_gradient(compiled):
    f = nbta.grad(lambda v: max(v) + 2.0 * max(v[1], v[0]), compiled=compiled)
    np.testing.assert_array_equal(f(np.array([2.0, 2.0, 1.0])), [1.0, 2.0, 0.0])


# Numbers that are no integers, or 0.


@right(2.5, 0.5)
def divides(x):
    return 7 // count_below(x) * x + 7 % count_below(x)


@right(2.5, 0.5)
def divides_for_nothing(x):
    n = count_below(x)
    found = 7 // n  # noqa: F841
    return x * x


@right(2.5, 0.5)
def divides_where_it_may(x):
    n = count_below(x)
    return 7 // n * x if n != 0 else x * x


@right(2.5, 0.5)
def divides_in_place(x):
    n, k = 9, count_below(x)
    n //= k
    q, r = divmod(n, k)
    return x * (n + q + r)


@right(2.5, NAN, INF)
def an_integer_of(x):
    return int(x) * x


@right(2.5, NAN, INF)
def rounded_for_nothing(x):
    k = (round(x), math.floor(x), math.ceil(x))  # noqa: F841
    return x * 2.0


@right(2.5, 1.2, 0.5)
def takes_parts_of_a_tuple(x):
    s = 0.0
    for k in range(12):
        match (k % 2, x > 1.0, x > 2.0):
            case (0, True, False):
                s += x * k
            case (1, _, True) | (0, False, False):
                s -= x
            case (a, True, b) as whole if a:
                s += 0.5 * x * len(whole) * (2.0 if b else 3.0)
            case _:
                s += 1.0
    return s


@right(1.5, smooth=False)
@right(2.5)
def takes_parts_that_are_numbers(x):
    match [x, 3]:
        case [_, _, _]:
            return 0.0 * x
        case [1.5, k]:
            return k * x
        case [y, 3]:
            return y * y
    return x


@right(2.5, 3.0, smooth=False)
@right(0.7)
def counts_and_finds(x):
    items = (3.0, x, 2.5)
    return items.count(x) * x + [0.5, 2.5, x].index(x) * x * x


@right(2.5, 0.5, smooth=False)
def fails_where_nothing_is_found(x):
    return [2.5, 1.0].index(x) * x + x


@right(0.0, smooth=False)
@right(2.5, INF)
def maps_functions_of_python(x):
    values = [x, 2.0 * x]
    found = sum(map(bool, values)) * x + sum(map(abs, values)) + sum(map(max, values, [1.0, 2.0]))
    return found if all(map(math.isfinite, values)) else 7.0


@right(2.5, 0.5)
def takes_the_default_of_none(x):
    kept = [x * k for k in range(12) if x * k > 6.0]
    return max(kept, default=x) + min((v for v in kept if v < 9.0), default=2.0) * x


@right(2.5, 0.9, 0.2)
def starts_with_none(x):
    peak, day = -math.inf, None
    for t in range(12):
        v = math.sin(x * t)
        if v > peak:
            peak, day = v, t
        elif t - day > 5:
            break
    return peak * day


@right(2.5, 0.5)
def meets_none_in_some_runs(x):
    before = None
    for k in range(12):
        if x > 1.0 and k == 0:
            before = x
        if k > 5:
            x = x + 0.1 * before if before < 9.0 else x
        elif k > 3:
            before = x * k
    return x


@right((2.5, 0, 3), (0.5, 0, 2), (7.0, 1, 0))
def asks_for_the_truth_of_what_python_knows(x, n, m):
    none, some, s = n - n, 2, 0.0
    for k, flag in enumerate([none, some, n, m, "", "text", [], [x], None, 0.0]):
        if x > 1.0 and flag:
            s += k * x
        if x > 5.0 or flag:
            s += 2.0 * k * x
    return s


@numba.njit
def numbas_logarithm(x):
    try:
        y = math.log(0.0)
    except Exception:
        y = 5.0
    return x if y < -9.0 else 2.0 * x


@numba.njit
def numbas_integer(x):
    return int(x) * 0.0 + x * x


@numba.njit
def numbas_quotient(x):
    return 7 // int(x) * x


right(2.5, python=numbas_logarithm)(numbas_logarithm)
right(2.5, python=numbas_integer)(numbas_integer)
right(2.5, 0.5, python=numbas_quotient)(numbas_quotient)


@pytest.mark.parametrize(("f", "args", "python", "smooth"), RIGHT)
@pytest.mark.parametrize("compiled", [False, True])
def test_a_run_gives_what_python_gives(f, args, python, smooth, compiled):
    _check(f, args, compiled, python, smooth)


@pytest.mark.parametrize("compiled", [False, True])
def test_numbas_integers_of_nan_raise_nothing(compiled):
    assert isinstance(nbta.function(lambda x: numbas_integer(x), compiled=compiled)(NAN), float)


# What nobody can know.

REFUSED = []


def refused(words):
    return lambda f: REFUSED.append(pytest.param(f, words, id=f.__name__)) or f


@refused("match asks for the class or parts of a value")
def matches_a_truth_value_in_a_dict(x):
    match {"large": x > 1.0}:
        case {"large": True}:
            return x
    return 2.0 * x


@refused("match asks for the class or parts of a value")
def matches_none_in_a_dict(x):
    found = x if x > 1.0 else None
    match {"found": found}:
        case {"found": None}:
            return x
    return 2.0 * x


@refused(r"hash\(\) of a value")
def asks_for_a_hash(x):
    return x if hash((count_below(x), 1)) == 3 else 2.0 * x


@refused(r"id\(\) of a value")
def asks_for_an_id(x):
    return x if id(count_below(x)) == id(2) else 2.0 * x


@refused(r"either float or numpy\.float64.*isinstance\(value, float\)")
def asks_for_a_class(x):
    return x if type(x) is float else 2.0 * x


@refused(r"either int or numpy\.int64")
def asks_for_a_class_by_name(x):
    return x if np.arange(5)[count_below(x)].__class__ == int else 2.0 * x  # noqa: E721


@refused(r"ask for \(float, numpy\.float64\)")
def asks_for_one_of_two_classes(x):
    return x if isinstance(x, np.floating) else 2.0 * x


@refused(r"ask for \(int, numpy\.int64\)")
def asks_for_an_integer_of_pythons(x):
    return x if isinstance(np.arange(5)[count_below(x)], int) else 2.0 * x


@right(2.5, 0.5)
def asks_for_the_class_of_a_count(x):
    count, single, whole = count_below(x), np.zeros(3, np.float32), np.zeros(3, np.int16)
    single[0], whole[count] = x, count
    return x * sum(
        2.0**k
        for k, found in enumerate([
            type(count) is int, isinstance(count, int), isinstance(count, np.integer),
            isinstance(single[0], float), isinstance(single[0], (float, np.floating)),
            isinstance(whole[count], int), isinstance(whole[count], int | np.integer),
            isinstance(x, int | float), isinstance(x, np.float32),
        ])
        if found
    )  # fmt: skip


@refused("float lacks")
def asks_for_a_shape(x):
    return x if hasattr(x, "shape") else 2.0 * x


@refused("the text of a value")
def asks_for_a_text(x):
    return x if f"{count_below(x)}" == "2" else 2.0 * x


@refused("the text of a value")
def asks_for_a_text_by_format(x):
    return x if "{}".format(count_below(x)) == "2" else 2.0 * x


@refused("the text of a value")
def asks_for_a_text_by_percent(x):
    return x if "%s" % count_below(x) == "2" else 2.0 * x


@refused("the text of a value")
def asks_for_a_text_by_repr(x):
    return x if repr(count_below(x)) == "2" else 2.0 * x


@refused("a value that only the run knows is looked up in a dict")
def makes_a_dict(x):
    return {(count_below(x), 1): 3.0}.get((2, 1), 5.0) * x


@refused("a value that only the run knows is looked up in a set")
def makes_a_set(x):
    return len({count_below(x), 2}) * x


@refused("a value that only the run knows is looked up in a set")
def makes_a_set_of_a_list(x):
    return len(frozenset([count_below(x), 2])) * x


@refused("a value that only the run knows is looked up in a dict")
def makes_a_dict_of_keys(x):
    return len(dict.fromkeys([count_below(x), 2], 1.0)) * x


@refused("the identity of a number")
def asks_who_a_float_is(x):
    y = x * 1.5
    return x if y is x else 2.0 * x


@right(2.5, 0.5)
def sorts_equal_keys(x):
    return sorted([(1, x), (1, x * x)])[0][1]


@refused("compares arrays")
def greatest_of_arrays(x):
    return np.sum(max(np.full(3, x), np.full(3, 2.0)))


@pytest.mark.parametrize(("f", "words"), REFUSED)
def test_what_only_python_can_know_is_refused(f, words):
    with pytest.raises(nbta.NbtaError, match=words) as caught:
        nbta.value_and_grad(f)(2.5)
    assert "test_python_meaning.py" in "\n".join(
        [str(caught.value), *getattr(caught.value, "__notes__", [])]
    )


@pytest.mark.parametrize("compiled", [False, True])
def test_print_shows_texts_of_a_run(compiled, capfd):
    def shown(x):
        n = count_below(x)
        print(f"n={n!r} x={x:.2f}", n)
        return x

    nbta.function(shown, compiled=compiled)(2.5)
    assert capfd.readouterr().out == "n=2 x=2.50 2\n"


def test_classes_of_what_is_known_and_of_arrays():
    def f(v):
        assert type(v) is np.ndarray
        assert type(v.shape[0]) is int
        kind = type(v[0])
        return kind(2) * v[0]

    assert nbta.function(f)(V) == 0.2


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize("compiled", [False, True])
def test_integer_members_compare_by_value(compiled):
    def f(x):
        c = Color.RED
        if x > 1.0:
            c = Color.BLUE
        return x * 2.0 if c == Color.BLUE else x * c

    for x in (2.5, 0.5):
        assert nbta.function(f, compiled=compiled)(x) == f(x)


def test_the_gradient_of_a_complex_result_is_an_error():
    with pytest.raises(nbta.InvalidArgumentError, match=r"must return a real scalar.*complex128"):
        nbta.grad(lambda x: np.exp(1j * x))(2.0)


@pytest.mark.parametrize("compiled", [False, True])
def test_the_deviation_of_one_number_has_no_slope(compiled):
    f = nbta.value_and_grad(lambda v: np.std(v) + v.std(axis=0), compiled=compiled)
    value, grad = f(np.array([2.0]))
    assert value == 0.0
    assert grad == [0.0]


NAN_IN_CONTAINERS = [
    lambda v: v in [v],
    lambda v: v not in (0.0, v),
    lambda v: (v,) == (v,),
    lambda v: [v] != [v],
    lambda v: [[v], 1] == [[v], 1],
    lambda v: (v, 1.0) < (v, 2.0),
    lambda v: (v,) <= (v,),
    lambda v: (v, 1.0) > (v, 1.0),
    lambda v: [v * 1.0] == [v * 1.0],
    lambda v: v * 2.0 in (v, v * 2.0),
    lambda v: v == v,
]


@pytest.mark.parametrize("compiled", [False, True])
def test_containers_ask_first_whether_items_are_one_object(compiled):
    for k, asks in enumerate(NAN_IN_CONTAINERS):
        found = nbta.function(lambda v, asks=asks: asks(v), compiled=compiled)
        for v in (math.nan, 1.5):
            assert bool(found(v)) == asks(v), (k, v)
    of_items = nbta.function(lambda x: x[0] in [x[0]], compiled=compiled)
    assert not of_items(np.array([math.nan]))  # two objects of NumPy's


def test_what_is_converted_can_be_read_for_each_program():
    assert "checked(n" in nbta.function(adds_to_nothing).convert_source
