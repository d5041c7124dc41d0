"""What converted functions refuse, with the user's line, and what the run fails with."""

import linecache
import math
import re
import warnings
from dataclasses import dataclass

import numba
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
from fuzz.ways import in_python

import nbta

X = np.linspace(0.2, 1.4, 12)


class Counter:
    def __init__(self):
        self.kind = "none"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


def said(error):
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


def generator(x):
    received = yield x
    yield received


@numba.stencil
def neighbours(a):
    total = 0.0
    for k in range(2):
        total += a[k]
    return total


def calls_a_stencil(x):
    return np.sum(neighbours(x))


def calls_a_generator(x):
    return sum(generator(x))


def none_at_first(x):
    best = None
    for v in x[x > 0.1]:
        if best is None or v < 0.5:
            best = [x[0], x[1]]
    return best[0]


def text_that_is_added_to(x):
    word = "a"
    for v in x:
        if v > 1.0:
            word = "b"
    return x[0] * len(word + word)


def takes_from_an_iterator(x):
    numbers, s = iter(range(100)), 0.0
    for v in x[x > 0.1]:
        s += v * next(numbers)
    return s


def draws(x):
    state, s = np.random.RandomState(), 0.0
    for v in x:
        s += v * state.random_sample()
    return s


def asks_a_dict(x):
    table, s = {0: 1.0, 1: 2.0}, 0.0
    for i in range(len(x)):
        table[i % 2] = x[i]
        s += table[0] * x[i]
    return s


def sorts_arrays(x):
    return sorted([x[:2], x[3:5]])[0][0]


def compares_arrays_by_name(x):
    a, b, s = x.copy(), x.copy(), 0.0
    for v in x[x > 0.1]:
        s += v if a is b else -v
        b = a
    return s


def sets_a_text_to_a_number(x):
    counter = Counter()
    for v in x:
        if v > 1.0:
            counter.kind = 2.0
    return x[0]


def changes_integers_or_floats(x):
    i = np.arange(len(x))
    a = i if x[0] > x[1] else x
    a[0] = 2.0
    return np.sum(x) + np.sum(i)


def changes_a_list_of_integers_or_floats(x):
    a = np.arange(len(x))
    if x[0] > x[1]:
        a = x
    items = []
    for v in a:
        items.append(v)
    listed = np.array(items)
    listed[0] = 0.5
    return np.sum(listed)


def becomes_a_matrix(x):
    y = x
    for _ in range(int(x[0] * 50)):
        y = y[None] * 2.0
    return np.sum(y)


def deletes_an_item_of_a_dict(x):
    d = {"p": x[0], "q": x[1]}
    if x[1] > 0.2:
        del d["q"]
    return sum(d.values())


def takes_from_a_generator_in_a_loop(x):
    g, total = (v for v in x if v > 0.5), 0.0
    for i in range(len(x)):
        if x[i] > 0.9:
            total += next(g)
    return total


def appends_tuples_of_two_lengths(x):
    pairs = []
    for v in x:
        if v > 0.5:
            pairs.append((v, v))
        else:
            pairs.append((v, v, v))
    return pairs[0][0]


def changes_a_list_that_iterations_make_anew(x):
    xs = [x[0]]
    for _ in range(int(x[0] * 50)):
        xs[0] = 1.0
        xs = [v * 0.9 for v in xs if v > 0.1] + [x[0]]
    return sum(xs)


def keeps_lists_that_iterations_make_anew(x):
    xs, kept = [x[0]], []
    for _ in range(int(x[0] * 50)):
        xs = [v * 0.9 for v in xs if v > 0.1] + [x[0]]
        kept.append(xs)
    return sum(kept[0])


def makes_a_dict_by_a_number_of_the_run(x):
    n = int(x[0] * 10)
    ratings = {p: 0.0 for p in range(n)}  # noqa: C420
    return sum(ratings.values()) + x[0]


def repeats_a_list(x):
    return sum([v for v in x if v > 0.5] * 2)


def asks_which_list_it_is(x):
    one, other = [x[0]], [x[2]]
    best = other if x[2] > x[0] else one
    return x[0] if best is other else x[1]


@dataclass
class Held:
    v: float


def asks_which_object_it_is(x):
    one, other = Held(x[0]), Held(x[2])
    best = one
    if other.v > best.v:
        best = other
    return x[0] if best is other else x[1]


def orders_lists(x):
    kept = [v for v in x if v > 0.5]
    return x[0] if kept < [1.0] else x[1]


def makes_a_tuple(x):
    kept = [v for v in x if v > 0.5]
    return sum(tuple(kept))


def gives_lists_of_pairs(x):
    def found(v):
        if v < 0.0:
            return False, []
        return True, [(v, 2.0)]

    holds, parts = found(x[0])
    return parts[0][0] if holds else x[1]


def swaps_rows_that_are_lists(x):
    rows = [[x[i % 3] * j for j in range(9)] for i in range(9)]
    for k in range(9):
        p = k
        for i in range(k + 1, 9):
            if rows[i][k] > rows[p][k]:
                p = i
        rows[k], rows[p] = rows[p], rows[k]
    return rows[0][1]


class Compared:
    def __init__(self, v):
        self.v = v

    def __gt__(self, other):
        return self.v > other.v


def takes_the_largest_object(x):
    return max(Compared(x[0]), Compared(x[1])).v


#: Functions, and words of the error that each ends in.
REFUSED = {
    gives_lists_of_pairs: "item 1 of what the function gives is list of 0 items where",
    takes_the_largest_object: "only the run knows which Compared is the largest one",
    orders_lists: "a comparison (__lt__) of a list that a loop appends to",
    makes_a_tuple: "only the run knows how many items this tuple has; use list(...)",
    asks_which_list_it_is: "`is` compares objects of which one is chosen",
    asks_which_object_it_is: "`is` compares objects of which one is chosen",
    calls_a_stencil: "has indices that are no constants; give numba.stencil its neighborhood",
    deletes_an_item_of_a_dict: "dict['q'] is given a value, or deleted",
    takes_from_a_generator_in_a_loop: "takes items of a generator that was made before it",
    appends_tuples_of_two_lengths: "an item that is no tuple of 2",
    changes_a_list_that_iterations_make_anew: "change a copy, as of v = list(v)",
    keeps_lists_that_iterations_make_anew: "put a copy there, as list(xs)",
    makes_a_dict_by_a_number_of_the_run: "Python iterates over a range whose bounds",
    repeats_a_list: "a multiple of a list that a loop appends to",
    calls_a_generator: "is a generator that is sent values",
    none_at_first: "'best' is None before an iteration of the loop and list",
    text_that_is_added_to: "only the run knows which of 'a', 'b' this is",
    takes_from_an_iterator: "take items by their index",
    draws: "without a seed draws new numbers in each call",
    asks_a_dict: "use an array",
    sorts_arrays: "a list cannot be sorted by arrays that only the run knows",
    compares_arrays_by_name: "whether two arrays are the same",
    sets_a_text_to_a_number: "Counter.kind",
    changes_integers_or_floats: "is an array of int64 or float64, which only the run knows",
    changes_a_list_of_integers_or_floats: "is an array of float64 or int64, which only the run",
    becomes_a_matrix: "'y' is float64",
}


@pytest.mark.usefixtures("long_loops")
@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_it_says_where_and_what(f):
    with pytest.raises(nbta.NbtaError) as caught:
        nbta.value_and_grad(f, compiled=False)(X)
    assert REFUSED[f] in said(caught.value)
    assert f"{__file__}:" in said(caught.value)


def test_rows_that_change_places_and_how_many_operations_would_do():
    with pytest.raises(nbta.NbtaError) as caught:
        nbta.value_and_grad(swaps_rows_that_are_lists, compiled=False)(X)
    remedy = "can be rows of an array: a[[i, j]] = a[[j, i]]; Python makes the iterations of such"
    assert remedy in said(caught.value)
    assert "at most 1,500 operations" in said(caught.value)


OUTSIDE = np.zeros(3)
COUNT = 0.0


def writes_outside(x):
    OUTSIDE[0] = x[0]
    return x[0]


def test_arrays_from_outside_are_not_written():
    with pytest.raises(nbta.InvalidArgumentError, match=r"OUTSIDE is from outside.*OUTSIDE\.copy"):
        nbta.grad(writes_outside)(X)
    np.testing.assert_array_equal(OUTSIDE, 0.0)


def adds_to_a_global(x):
    global COUNT
    for v in x:
        COUNT += v
    return x[0]


def test_globals_get_no_tensors():
    with pytest.raises(nbta.InvalidArgumentError, match="global 'COUNT'"):
        nbta.grad(adds_to_a_global)(X)
    assert COUNT == 0.0


def last_of(x, count):
    for i in range(count):
        y = x[i] * 2.0
    return y * x[0]


def larger(x):
    for v in x:
        if v > 1.3:
            found = v
    return found * found


@pytest.mark.parametrize("compiled", [False, True])
def test_a_variable_without_a_value(compiled):
    last = nbta.value_and_grad(last_of, compiled=compiled)
    value, slope = last(X, 3)
    assert value == last_of(X, 3)
    assert slope[2] == 2.0 * X[0]
    with pytest.raises(UnboundLocalError, match=r"test_frontend_refusals.py:\d+: the variable 'y'"):
        last(X, 0)
    found = nbta.value_and_grad(larger, compiled=compiled)
    assert found(X)[0] == larger(X)
    with pytest.raises(UnboundLocalError, match="'found'"):
        found(X * 0.5)


def none_of_them(x):
    best = None
    for v in x:
        if v > 1.3:
            best = v
    return best * 2.0


@pytest.mark.parametrize("compiled", [False, True])
def test_none_that_is_used_as_a_number(compiled):
    f = nbta.value_and_grad(none_of_them, compiled=compiled)
    assert f(X)[0] == none_of_them(X)
    with pytest.raises(
        nbta.InvalidArgumentError, match="None, or a variable without a value, is used"
    ) as failed:
        f(X * 0.5)
    line = none_of_them.__code__.co_firstlineno + 5
    assert f"{__file__}:{line}" in said(failed.value)


def shifts_where_it_may(x, c):
    """The lengths are known, as Python asks for them."""
    w = 1.0 if len(x) % 2 else 0.0
    for i in range(3):
        if c > i:
            x[1:] = x
    return w + np.sum(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_shapes_that_do_not_fit_fail_where_the_run_comes_to_them(compiled):
    f = nbta.value_and_grad(shifts_where_it_may, compiled=compiled)
    assert f(X, -1.0)[0] == shifts_where_it_may(X, -1.0)
    with pytest.raises(nbta.InvalidArgumentError, match="does not broadcast") as failed:
        f(X, 1.0)
    line = shifts_where_it_may.__code__.co_firstlineno + 5
    assert f"{__file__}:{line}" in said(failed.value)


def roots(x):
    s = 0.0
    for v in x:
        if v < 0.0:
            raise ValueError("no root")
        s += math.sqrt(v)
    return s


@pytest.mark.parametrize("compiled", [False, True])
def test_errors_of_the_user_are_errors_of_the_run(compiled):
    taken = nbta.value_and_grad(roots, compiled=compiled)
    np.testing.assert_allclose(taken(X)[1], 0.5 / np.sqrt(X), rtol=1e-12)
    with pytest.raises(ValueError, match="no root"):
        taken(-X)


def too_far(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i + 3]
    return s


@pytest.mark.parametrize("compiled", [False, True])
def test_errors_of_the_run_name_the_line(compiled):
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        nbta.grad(too_far, compiled=compiled)(X)
    line = too_far.__code__.co_firstlineno + 3
    assert f"{__file__}:{line}" in said(caught.value)


def test_without_source_loops_are_refused_by_name_and_all_else_works():
    names = {"np": np, "nbta": nbta}
    exec("def f(x):\n    return np.sum(x * x)\ndef g(x):\n    for v in x:\n        x = v\n", names)
    assert nbta.grad(names["f"])(2.0 * np.ones(2)).tolist() == [4.0, 4.0]
    with pytest.raises(nbta.UnimplementedError, match=r"^g \(<string>:3\).*nbta\.while_loop"):
        nbta.grad(names["g"])(X)


def test_called_functions_without_source_are_refused_by_name_too():
    names = {"np": np}
    exec("def f(x):\n    return x[0] if x[0] > 0.5 else x[1]\ndef g(x):\n    return x[0]\n", names)
    f, g = names["f"], names["g"]
    assert nbta.grad(lambda x: g(x) ** 2)(X)[0] == 2.0 * X[0]
    with pytest.raises(nbta.UnimplementedError, match=r"^f \(<string>:1\): its source cannot"):
        nbta.grad(lambda x: f(x) ** 2)(X)


def test_a_sum_of_more_terms_than_python_goes_into():
    names, text = {}, f"def f(x):\n    return {' + '.join(['x'] * 1500)}\n"
    linecache.cache["<long sum>"] = len(text), None, text.splitlines(True), "<long sum>"
    exec(compile(text, "<long sum>", "exec"), names)
    with pytest.raises(nbta.UnimplementedError, match=r"^f \(<long sum>:1\).*several statements"):
        nbta.grad(names["f"])(1.0)


def formatted(x, i):
    raise ValueError(f"item {i} of {len(x)} is {x[i]:.3f}, {x[i] * 2.0!r}, {'text':>5}")


def filled(x, i):
    raise ValueError("item %d is %.3f%%, %5s %%d" % (i, x[i], "text"))  # noqa: UP031


def filled_alone(x, i):
    raise ValueError("%+5.1e at last" % x[i])  # noqa: UP031


def by_format(x, i):
    raise ValueError("item {0} is {v:.3f}".format(i, v=x[i]))  # noqa: UP032


def joined(x, i):
    raise ValueError("item " + str(i) + " is " + repr(x[i]) + format(x[i], ".3f"))


def by_name(x, i):
    raise ValueError("item %(i)d of %(n)d is %(v).3f" % {"i": i, "v": x[i], "n": 4})  # noqa: UP031


def asserted(x, i):
    assert x[i] < 0.0, f"item {i} is {x[i]:g}"


def of_parts(x, i):
    raise ValueError("too great", i, x[i])


def of_a_number(x, i):
    raise ValueError(x[i] - 0.5)


def asserted_number(x, i):
    assert x[i] < 0.0, x[i]


class TooGreatError(ValueError):
    def __init__(self, value, place):
        super().__init__(f"{value:.3f} at {place} is too great")


class OfTwoError(ValueError):
    def __init__(self, value, least):
        self.value, self.least = value, least

    def __str__(self):
        return f"{self.value:g} is less than {self.least}"


def by_own_class(x, i):
    value = x[i]
    raise TooGreatError(value, place="home")


def by_own_text(x, i):
    raise OfTwoError(least=0.5, value=x[i] * 2)


TEXTS = {
    by_own_class: "{value} at home is too great",
    by_own_text: "{...} is less than 0.5",
    of_parts: "('too great', {i}, {x[i]})",
    of_a_number: "{x[i] - 0.5}",
    asserted_number: "{x[i]}",
    formatted: "item {i} of 4 is {x[i]}, {x[i] * 2.0},  text",
    filled: "item {i} is {x[i]}%,  text %d",
    filled_alone: "{x[i]} at last",
    by_format: "item {i} is {x[i]}",
    joined: "item {i} is {x[i]}{x[i]}",
    by_name: "item {i} of 4 is {x[i]}",
    asserted: "item {i} is {x[i]}",
}


def said_of(fail):
    """What a text is, where the first iterations may be made while the function is traced."""
    return re.escape(TEXTS[fail]).replace(re.escape("{i}"), r"(1|\{i\})")


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("fail", TEXTS, ids=lambda f: f.__name__)
def test_texts_of_errors_have_the_source_of_what_only_the_run_knows(fail, compiled):
    def f(x):
        for i in range(len(x)):
            if x[i] > 0.5:
                fail(x, i)
        return np.sum(x)

    slope = nbta.grad(f, compiled=compiled)
    assert slope(np.zeros(4)).tolist() == [1.0] * 4
    with pytest.raises((ValueError, AssertionError), match=said_of(fail)):
        slope(np.array([0.1, 0.7, 0.3, 0.2]))


def a_function_of_either_branch(x):
    if x[0] > 0:
        f = lambda y: 2 * y  # noqa: E731
    else:
        f = lambda y: 3 * y  # noqa: E731
    return f(x[0])


def a_function_after_its_branch(x):
    if x[0] > 0:
        f = lambda y, k=x[0] * 2: k * y  # noqa: E731
    return f(x[0])


def test_functions_that_a_branch_makes():
    with pytest.raises(nbta.InvalidArgumentError, match=r"'f' is one function.*call each in its"):
        nbta.function(a_function_of_either_branch, convert=True)(X)
    with pytest.raises(NameError, match=r"'f' is a function made in a branch.*call it there"):
        nbta.function(a_function_after_its_branch, convert=True)(X)


def test_texts_of_errors_have_what_is_known():
    def f(x):
        n = len(x) - 4
        if n < 0:
            raise ValueError(f"n is {n:+d}, " + f"%d, {n!s}" % n)
        return x * n

    with pytest.raises(ValueError, match=r"n is -3, -3"):
        nbta.grad(f)(np.ones(1))


@pytest.mark.parametrize("pick", [max, min], ids=["max", "min"])
def test_extremes_by_a_key(pick):
    """The key decides, of an array too: without it another item would be taken."""

    def of_array(x):
        return pick(x, key=lambda v: -v)

    def of_list(x):
        return pick([x[0], x[1]], key=lambda v: -v)

    opposite = np.argmin(X) if pick is max else np.argmax(X)
    np.testing.assert_array_equal(nbta.grad(of_array)(X), np.arange(12) == opposite)
    np.testing.assert_array_equal(nbta.grad(of_list)(X), np.arange(12) == (pick is min))
    assert (
        nbta.grad(lambda x: x[pick([3, 1, 2], key=lambda k: -k)])(X)[1 if pick is max else 3] == 1
    )
    assert nbta.grad(lambda x: x[0] * pick(np.ones(2), key=lambda v: -v))(X)[0] == 1.0
    np.testing.assert_array_equal(nbta.grad(lambda x: pick(x, key=None))(X), pick(X) == X)


def test_what_is_filtered_by_values():
    def taken_one_by_one(x):
        total = 0.0
        for v in filter(lambda v: v > 0.7, x):
            total += v
        return total

    with pytest.raises(nbta.InvalidArgumentError, match=r"filter\(\) .* comprehension, \[v for"):
        nbta.grad(taken_one_by_one)(X)
    f = lambda x: sum(filter(lambda v: v > 0.7, x))  # noqa: E731
    np.testing.assert_array_equal(nbta.grad(f)(X), X > 0.7)
    assert nbta.grad(lambda x: x[0] * sum(filter(None, [0, 3])))(X)[0] == 3.0


def test_a_file_that_changed(tmp_path, monkeypatch):
    import importlib
    import linecache

    path = tmp_path / "module_that_changes.py"
    path.write_text("def square(v):\n    return v * v\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("module_that_changes")
    path.write_text("def square(v):\n    return v * v * v\n")
    linecache.checkcache(str(path))
    with pytest.raises(nbta.InvalidArgumentError, match=r"square: its text in .* changed"):
        nbta.grad(module.square)(2.0)


def test_what_is_switched_off_stays_off():
    with pytest.raises(nbta.InvalidArgumentError, match=r"truth value. Use nbta\.cond"):
        nbta.grad(roots, convert=False)(X[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert nbta.grad(lambda x: x * x, convert=False)(3.0) == 6.0


def mask_of_other_items(x):
    return np.sum(x[x[1:] > 0.5])


def too_many_values(x):
    a = x.copy()
    a[x > 0.5] = x[x < 0.5]
    return np.sum(a)


def too_few_in_a_list(x):
    a = x.copy()
    a[x > 0.5] = [1.0, 2.0]
    return np.sum(a)


def too_short_a_mask(x):
    a = x.copy()
    a[x[1:] > 0.5] = 0.0
    return np.sum(a)


def one_for_all(x):
    a = x.copy()
    a[x[: int(x[0] * 5)] > 0.1] = 0.0
    return np.sum(a)


MISFITS = {
    mask_of_other_items: "differ in length",
    too_many_values: "does not broadcast",
    too_few_in_a_list: "does not broadcast",
    too_short_a_mask: "differ in length",
    one_for_all: "differ in length",
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", MISFITS)
def test_masks_that_do_not_fit(f, compiled):
    with pytest.raises((IndexError, ValueError)):
        f(X)
    with pytest.raises(nbta.InvalidArgumentError, match=MISFITS[f]) as caught, in_python():
        nbta.value_and_grad(f, compiled=compiled)(X)
    assert f"{__file__}:" in said(caught.value)


def fills_too_short_an_array(x):
    path = np.zeros(5)
    for t in range(len(x) - 1):
        path[t + 1] = x[t]
    return path.sum()


def adds_after_the_end(x):
    path = x.copy()
    for t in range(len(x)):
        path[t + 1] += 2.0 * (
            x[t]
            + 1.0
        )  # fmt: skip
    return path.sum()


def reads_another_column(x):
    table, s = np.outer(x, x), 0.0
    for i in range(len(x)):
        s += x[i] * table[i, i + 1]
    return s


def swaps_after_the_end(x):
    order = x.copy()
    for i in range(len(x)):
        order[i], order[i + 1] = order[i + 1], order[i]
    return order[0]


def entry(of, k):
    return of[k + 3]


def asks_a_callee(x):
    s = 0.0
    for i in range(len(x)):
        s += entry(x, i)
    return s


def asks_a_list(x):
    kept, s = [], 0.0
    for v in x:
        kept.append(v * v)
    for i in range(len(x)):
        s += kept[i + 1]
    return s


def picks_rows(x):
    return np.sum(x[np.array([1, int(x[0] * 500.0)])])


AFTER = {
    fills_too_short_an_array: (r"path\[t \+ 1\]: \[5\] is .* shape \(5,\)", "iteration 4"),
    adds_after_the_end: (r"path\[t \+ 1\]: \[12\]", "iteration 11"),
    reads_another_column: (r"table\[i, i \+ 1\]: \[11, 12\]", "iteration 11"),
    swaps_after_the_end: (r"order\[i \+ 1\]: \[12\]", "iteration 11"),
    asks_a_callee: (r"of\[k \+ 3\]: \[12\]", "iteration 9"),
    asks_a_list: (r"kept\[i \+ 1\]: read on", "iteration 11"),
    picks_rows: (r"x\[np\.array\(\[1, int\(x\[0\] \* 500\.0\)\]\)\]: index 100", ""),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", AFTER)
def test_an_index_that_is_out_of_range_says_of_which_array(f, compiled):
    words, iteration = AFTER[f]
    with pytest.raises(nbta.InvalidArgumentError, match=words) as caught, in_python():
        nbta.value_and_grad(f, compiled=compiled)(X)
    assert iteration in str(caught.value)
    (line,) = [note for note in caught.value.__notes__ if __file__ in note]
    assert re.match(r".*\.py:\d+: \S.*\[", line)


def test_where_an_index_was_is_found_without_the_text(monkeypatch):
    """Of a file that is gone the line's number is left."""
    taken = nbta.function(fills_too_short_an_array, compiled=False)
    taken(X[:5])
    monkeypatch.setattr(linecache, "getline", lambda *_: "")
    with pytest.raises(nbta.InvalidArgumentError, match=r"^\[5\] is out of range") as caught:
        taken(X)
    assert re.search(r"\.py:\d+\)$", caught.value.__notes__[0])


def assigns_after_a_list(x):
    xs = [x[0], x[1]]
    for i in range(len(x)):
        xs[i] = x[i]
    return xs[0]


def deletes_after_a_list(x):
    xs = [x[0], x[1]]
    del xs[int(x[0] * 11.0)]
    return xs[0]


def takes_a_negative_power(x):
    return x[0] * pow(3, int(x[0]) - 1, 7)


def takes_too_large_a_modulus(x):
    return x[0] * pow(3, int(x[0] * 11.0), 10_000_000_019)


def takes_no_modulus(x):
    return x[0] * pow(3, 4, int(x[0]))


OF_LISTS_AND_POWERS = {
    assigns_after_a_list: "out of range for a list of 2 items",
    deletes_after_a_list: "out of range for a list of 2 items",
    takes_a_negative_power: "the exponent is negative",
    takes_too_large_a_modulus: "squares may not fit into int64",
    takes_no_modulus: "or the modulus is 0",
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", OF_LISTS_AND_POWERS)
def test_lists_and_powers_in_a_run(f, compiled):
    words = rf"{re.escape(__file__)}:\d+: .*{OF_LISTS_AND_POWERS[f]}"
    with pytest.raises(nbta.InvalidArgumentError, match=words), in_python():
        nbta.value_and_grad(f, compiled=compiled)(X)


def keeps_nothing(x):
    kept = None
    for i in range(len(x)):
        if x[i] > 50.0:
            kept = x * 2.0
    return np.sum(kept)


@pytest.mark.parametrize("compiled", [False, True])
def test_none_in_a_run_where_an_array_is_needed(compiled):
    assert keeps_nothing(X) is None  # which is not a number to differentiate
    words = r"\.py:\d+: None, .* used as an array"
    with pytest.raises(nbta.InvalidArgumentError, match=words), in_python():
        nbta.value_and_grad(keeps_nothing, compiled=compiled)(X)


# What is deleted is not there, whichever way a run takes.


def a_deleted_variable(x):
    t = x[0]
    if x[1] > 0.5:
        del t
    return t


def a_variable_deleted_in_an_iteration(x):
    t = x[0]
    for i in range(len(x)):
        if x[i] > 0.5:
            del t
        elif x[i] > 0.4:
            t = x[i]
    return t


def a_deleted_attribute(x):
    o = Counter()
    o.value = x[0]
    if x[1] > 0.5:
        del o.value
    return o.value


def an_argument_that_is_deleted(x):
    t = x[0]
    if x[1] > 0.5:
        del x
    return t + 0.0 * x[0]


def deleted_twice(x):
    t = s = x[0]
    if x[1] > 0.5:
        del s
    del s
    return t


@pytest.mark.parametrize(
    "f",
    [
        a_deleted_variable,
        a_variable_deleted_in_an_iteration,
        a_deleted_attribute,
        an_argument_that_is_deleted,
        deleted_twice,
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_deleted_is_missed_in_the_run(f, compiled):
    there, gone = np.full(12, 0.3), np.full(12, 0.3)
    gone[1] = 0.6
    g = nbta.function(f, compiled=compiled)
    with in_python():
        assert g(there) == 0.3
        with pytest.raises((UnboundLocalError, nbta.NbtaError), match="has no value"):
            g(gone)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: sum({i: v for i, v in enumerate(x) if v > 0.5}.values()),
        lambda x: sum(z for v in x if (z := v * 2.0) > 1.0),
    ],
    ids=["dict", "walrus"],
)
def test_conditions_of_comprehensions_are_refused_at_their_line(f):
    with pytest.raises(
        nbta.InvalidArgumentError, match=r"py:\d+: only the run knows which items this"
    ):
        nbta.function(f)(np.array([0.3, 0.7, 1.2]))


def last_scaled(x):
    found = None
    for v in x:
        if v > 0.5:
            found = x * v
    return found


@pytest.mark.parametrize(
    "ask",
    [lambda a: a.shape[0], len, np.ndim, np.size, lambda a: a.ndim, lambda a: sum(v for v in a)],
    ids=["shape", "len", "np.ndim", "np.size", "ndim", "loop"],
)
def test_what_is_asked_of_an_array_that_may_be_none(ask):
    f = nbta.function(lambda x: ask(last_scaled(x)), compiled=False)
    there = np.array([0.3, 0.7, 1.2])
    np.testing.assert_allclose(f(there), ask(last_scaled(there)))
    with pytest.raises((nbta.NbtaError, TypeError), match="used as an array in this run"):
        f(np.array([0.3, 0.2, 0.1]))


def a_dict_of_either_key(x):
    if x[0] > 0:
        return {"a": x[0]}
    return {"b": x[1]}


def a_dict_in_either_order(x):
    return {"a": x[0], "b": 1} if x[0] > 0 else {"b": 2, "a": x[1]}


def a_pair_or_none_in_a_loop(x):
    best = None
    for i, v in enumerate(x):
        if v > 0.5:
            best = v, i
    return best[0]


def a_pair_or_none_of_a_function(x):
    def first_beyond(limit):
        for i, v in enumerate(x):
            if v > limit:
                return v, i
        return None

    found = first_beyond(5.0)
    return 0.0 if found is None else found[0]


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (a_dict_of_either_key, r"only one of two dicts .* has dict\['a'\]; .* static_argnums"),
        (a_dict_in_either_order, "only one of two dicts .* in this order; .* static_argnums"),
        (a_pair_or_none_in_a_loop, "use None, None in place of None"),
        (a_pair_or_none_of_a_function, "None in this run and a tuple .* return None, None"),
    ],
)
def test_structures_that_branches_choose(f, words):
    with pytest.raises(nbta.NbtaError, match=r"test_frontend_refusals.py:\d+: .*" + words):
        nbta.function(f, compiled=False)(np.linspace(0.3, 1.2, 12))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: scipy.optimize.minimize(lambda t: (t - x[0]) ** 2, 0.0).x[0],
        lambda x: scipy.optimize.minimize_scalar(lambda t: (t - x[0]) ** 2).x,
        lambda x: scipy.optimize.brentq(lambda t: t - x[0], -3.0, 3.0),
        lambda x: scipy.integrate.quad(func=lambda t: t * x[0], a=0.0, b=1.0)[0],
    ],
    ids=["minimize", "minimize_scalar", "brentq", "quad"],
)
def test_functions_of_values_of_the_run_that_a_library_calls(f):
    words = r"of scipy\.\w+\.\w+ was called with values that are known only when the function runs"
    with pytest.raises(nbta.NbtaError, match=words):
        nbta.function(f, compiled=False)(np.linspace(0.3, 1.2, 4))
