"""Items that nothing writes any more are read again on the way back; all others are on tapes.

Where code took an item for final that a later iteration changes, gradients would be wrong. So
random nests of loops, whose reads and writes meet in all kinds of ways, run in the reference
executor too, which keeps what it needs on tapes.
"""

import functools
import random

import numpy as np
import pytest
from compiled_pairs import compare
from fuzz.ways import in_python
from interpreted import interpreted, watched
from many import each
from test_in_place import length, loop, section

import nbta
from nbta.compiler import executable, recompute
from nbta.testing import check_grads

X = np.array([0.4, -0.7, 1.1, 0.25, -1.3, 0.6])
M = np.linspace(-0.9, 1.1, 36).reshape(6, 6)


def number_of_arrays(f, *args):
    """Arrays of the compiled gradient, which is held against the reference executor's."""
    slow, fast = (nbta.value_and_grad(f, compiled=compiled) for compiled in (False, True))
    with in_python():
        compare(fast(*args), slow(*args))
        return len(section(fast.explain(), "arrays"))


# By hand: what is final, and what is not.

FINAL, TAPED = {}, {}


def final(f):
    FINAL[f.__name__] = f
    return f


def taped(f):
    TAPED[f.__name__] = f
    return f


@final
def earlier_items(x):
    """The one before, and the one before that, of an array that is filled."""

    def iteration(i, a):
        return nbta.set_item(a, i, x[i] * a[i - 1] * a[i - 2])

    return nbta.sum(loop(length(x), iteration, nbta.sin(x), begin=2))


@final
def all_earlier_items(x):
    """A stretch that ends where the iteration writes."""

    def iteration(i, a):
        return nbta.set_item(a, i, x[i] + 0.3 * nbta.sum(a[:i] * a[:i]))

    return nbta.sum(loop(length(x), iteration, nbta.sin(x), begin=1))


@final
def all_later_items(x):
    def iteration(i, a):
        k = length(x) - 1 - i
        return nbta.set_item(a, k, x[k] + 0.3 * nbta.sum(a[k + 1 :] * a[k + 1 :]))

    return nbta.sum(loop(length(x), iteration, nbta.sin(x), begin=1))


@final
def stretches_that_others_follow(x):
    """Two items per iteration, of which later ones read the two before."""

    def iteration(i, a):
        k = 2 * i
        new = x[k] * a[k - 2 : k] * a[k - 2 : k]
        return nbta.set_item(a, slice(k, k + 2), new)

    return nbta.sum(loop(length(x) // 2, iteration, nbta.sin(x), begin=1))


@taped
def a_stretch_with_the_item_itself(x):
    """Copied, as its length changes."""

    def iteration(i, a):
        return nbta.set_item(a, i, x[i] * nbta.sum(a[i - 2 : i + 1] * a[i - 2 : i + 1]))

    return nbta.sum(loop(length(x), iteration, nbta.sin(x), begin=2))


@taped
def a_stretch_that_begins_at_the_end(x):
    """A negative index wraps around."""

    def iteration(i, a):
        return nbta.set_item(a, i, x[i] * nbta.sum(a[-2:] * a[-2:]))

    return nbta.sum(loop(length(x), iteration, nbta.sin(x), begin=1))


@final
def items_further_up_on_the_way_down(x):
    def iteration(i, a):
        k = length(x) - 2 - i
        return nbta.set_item(a, k, x[k] + nbta.sin(a[k + 1]) * 0.5)

    a = loop(length(x) - 1, iteration, x)
    return nbta.sum(a * a)


@taped
def items_further_up_on_the_way_up(x):
    """They are changed in the iteration after."""

    def iteration(i, a):
        return nbta.set_item(a, i, a[i] * a[i + 1])

    return nbta.sum(loop(length(x) - 1, iteration, x))


@taped
def the_item_itself(x):
    def iteration(i, a):
        a = nbta.set_item(a, i, a[i] * a[i])
        return nbta.set_item(a, i, a[i] * x[i])

    return nbta.sum(loop(length(x), iteration, x))


@final
def what_was_written(x):
    """The value itself goes on, and is final where it was put."""

    def iteration(i, a, s):
        v = nbta.exp(x[i] * a[i - 1])
        return nbta.set_item(a, i, v), s + v * v

    a, s = loop(length(x), iteration, x, 0.0, begin=1)
    return s + nbta.sum(a)


@taped
def what_is_written_over(x):
    def iteration(i, a, s):
        v = nbta.exp(x[i] * a[i - 1])
        a = nbta.set_item(nbta.set_item(a, i, v), i, 0.5 * v)
        return a, s + v * v

    a, s = loop(length(x), iteration, x, 0.0, begin=1)
    return s + nbta.sum(a)


@final
def rows_above(m):
    """Of a table that is filled row by row."""

    def row(i, a):
        def column(j, a):
            return nbta.set_item(a, (i, j), a[i - 1, j - 1] * a[i - 1, j] * a[i, j - 1])

        return loop(length(m), column, a, begin=1)

    return nbta.sum(loop(length(m), row, m, begin=1))


@final
def factors(m):
    """Without pivots, the last loop changes what no loop has read."""

    def pivot(k, a):
        def row(i, a):
            a = nbta.set_item(a, (i, k), a[i, k] / (a[k, k] + 3.0))
            return loop(
                length(m), lambda j, a: nbta.add_item(a, (i, j), -a[i, k] * a[k, j]), a, begin=k + 1
            )

        return loop(length(m), row, a, begin=k + 1)

    return nbta.sum(loop(length(m), pivot, m) ** 2)


@final
def an_array_that_inner_loops_capture(m):
    def column(j, a):
        def rest(i):
            return loop(j, lambda k, s: s - a[i, k] * a[j, k], a[i, j])

        a = nbta.set_item(a, (j, j), 1.0 + 0.1 * rest(j))
        return loop(length(m), lambda i, a: nbta.set_item(a, (i, j), 0.1 * rest(i)), a, begin=j + 1)

    return nbta.sum(loop(length(m), column, m))


@taped
def a_table_that_each_sweep_changes(m):
    def sweep(_, a):
        return loop(length(m), lambda i, a: nbta.set_item(a, (i, 0), a[i, 0] * a[i, 1]), a)

    return nbta.sum(loop(3, sweep, m))


@taped
def rows_from_the_end(x):
    """An index that wraps around may be any item's."""

    def iteration(i, a):
        return nbta.set_item(a, i - 3, a[i - 4] * a[i - 5])

    return nbta.sum(loop(length(x), iteration, x))


@taped
def an_index_that_data_decide(x):
    places = np.array([0, 2, 1, 3, 2, 0])

    def iteration(i, a):
        return nbta.set_item(a, nbta.gather(places, i), a[i] * x[i])

    return nbta.sum(loop(length(x), iteration, x))


@taped
def an_index_that_counts_iterations(x):
    """It is not negative, and another one in each iteration."""

    def iteration(i, a):
        def goes_on(c, s):
            return nbta.logical_and(c < 3, s < -x[i])

        c, _ = nbta.while_loop(goes_on, lambda c, s: (c + 1, s + 0.4), (0, -1.02))
        return nbta.set_item(a, c, a[c + 1] * x[i])

    return nbta.sum(loop(length(x), iteration, x) ** 2)


@taped
def two_arrays_that_change_places(x):
    def iteration(i, a, b):
        return nbta.set_item(b, i, a[i] * a[i - 1]), a

    a, b = loop(length(x), iteration, x, nbta.sin(x), begin=1)
    return nbta.sum(a * b)


@taped
def an_array_of_each_iteration(x):
    """The last version of it is there for the iteration only."""

    def iteration(i, s):
        a = loop(3, lambda j, a: nbta.set_item(a, j + 1, a[j] * s), x, begin=i)
        return nbta.tanh(s + nbta.sum(a))

    return loop(3, iteration, 0.5)


def spans(m, other):
    """A table over pairs of ends, by lengths, whose items read those of other spans."""
    n, t = len(m), np.sin(m)
    for span in range(2, n):
        for i in range(n - span):
            for k in range(i + 1, i + span):
                t[i, i + span] += m[k, i] * t[i, k] * t[k + other, i + span]
    return np.sum(t[0])


@final
def shorter_spans(m):
    return spans(m, 0)


@taped
def spans_as_long(m):
    """The same item is changed again for the next place between its ends."""
    n, t = len(m), np.sin(m)
    for span in range(2, n):
        for i in range(n - span):
            for k in range(i + 1, i + span):
                t[i, i + span] = m[k, i] * t[i, i + span] * t[i, k]
    return np.sum(t[0])


@taped
def spans_of_the_other_end(m):
    """One end further, a span may be one that is longer by an item, and so is changed later."""
    return spans(m, -1)


@final
def anti_diagonals(m):
    """By sums of indices: what an item reads was written for smaller ones."""
    n, t = len(m), np.sin(m)
    for total in range(2, n):
        for i in range(1, total):
            t[i, total - i] = m[i, total - i] * t[i - 1, total - i] * t[i, total - i - 1]
    return np.sum(t)


@taped
def anti_diagonals_of_the_next(m):
    n, t = len(m), np.sin(m)
    for total in range(2, n - 1):
        for i in range(1, total):
            t[i, total - i] = m[i, total - i] * t[i + 1, total - i]
    return np.sum(t)


@taped
def a_branch_that_writes(x):
    def iteration(i, a):
        return nbta.cond(x[i] > 0.3, lambda: nbta.set_item(a, i, a[i - 1] * x[i]), lambda: a)

    return nbta.sum(loop(length(x), iteration, x, begin=1))


@taped
def stretches_that_meet_where_each_iteration_says(x):
    """A later iteration writes further down: where one begins is a number of its own."""

    def iteration(j, a, total):
        n, meet = length(x), nbta.constant([5, 2, 4, 1, 3, 0])[j] % 6
        a = loop(n - meet, lambda k, b: nbta.set_item(b, n - 1 - k, b[n - 1 - k] * 1.5 + 0.1), a)
        return a, loop(meet, lambda k, s: s + a[k] * a[k], total)

    return loop(length(x), iteration, x, nbta.constant(0.0))[1]


def filled_by_branches(m, is_final):
    """A triangle; the diagonal's way may write where the rows below have read."""
    n, t = len(m), np.zeros_like(m)
    for i in range(n):
        for j in range(i + 1):
            s = m[i, j]
            for k in range(j):
                s -= 0.1 * t[i, k] * t[j, k]
            if i == j:
                t[i, i if is_final else 0] = s * 0.5
            elif i > j + 1:
                t[i, j] = s + 1.0
    return np.sum(t)


@final
def an_array_that_branches_fill(m):
    return filled_by_branches(m, True)


@taped
def an_array_in_which_a_branch_goes_back(m):
    return filled_by_branches(m, False)


ALL = {**FINAL, **TAPED}


def argument(f):
    return X if f.__code__.co_varnames[0] == "x" else M


@pytest.mark.parametrize("name", ALL)
def test_what_is_final(name):
    count = number_of_arrays(ALL[name], argument(ALL[name]))
    assert (count == 0) == (name in FINAL)


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("name", ALL)
def test_gradients(name):
    f = ALL[name]
    check_grads(f, (argument(f),), order=2)
    grads = [nbta.grad(lambda x: nbta.sum(nbta.grad(f)(x) ** 2), compiled=c) for c in (False, True)]
    compare(grads[1](argument(f)), grads[0](argument(f)))


def places_change_places(x):
    k, a = np.arange(len(x)), x * 1.0
    for i in range(len(x)):
        j = k[i]
        k[i] = k[j - 1]
        k[j - 1] = j
        a[i] *= a[j]
    return np.sum(a * a)


def place_at_its_place(x):
    k, a = np.arange(len(x)), x * 1.0
    for i in range(len(x)):
        j = k[len(x) - 1 - i]
        k[j] = j
        a[i] *= a[j - 1]
    return np.sum(a * a)


def place_in_another_array(x):
    k, m, a = np.arange(len(x)) * 2 % len(x), np.zeros(len(x), np.int64), x * 1.0
    for i in range(len(x)):
        j = k[i]
        m[j] = j
        k[j] = i
        a[i] *= a[j - 1]
    return np.sum(a * a[m])


@pytest.mark.parametrize("f", [places_change_places, place_at_its_place, place_in_another_array])
def test_indices_that_are_items_at_themselves(f):
    """To read such an item again takes its index, which is the item: the search had no end."""
    compiled, reference = (nbta.value_and_grad(f, compiled=c, convert=True) for c in (True, False))
    with in_python():
        (value, found), (_, expected) = compiled(X), reference(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-12)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    units = np.eye(len(X)) * 1e-6
    slopes = [(f(X + u) - f(X - u)) / 2e-6 for u in units]
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-7)


def test_bytes_of_an_iteration():
    """A recurrence keeps the eight bytes of its sine, and nothing else."""

    def f(x):
        def iteration(i, a):
            return nbta.set_item(a, i, nbta.sin(a[i - 1]) * x[i] + x[i])

        return nbta.sum(loop(length(x), iteration, nbta.zeros_like(x), begin=1))

    def held(n):
        gradient(np.linspace(-1.0, 1.0, n))
        executable = gradient._last.runner.ran.executable
        work = executable.borrow()
        executable.give_back(work)
        return sum(buffer.nbytes for buffer in work._buffers.values())

    gradient = nbta.value_and_grad(f, compiled=True)
    arrays = 2  # the one that is filled, and its gradient; that of x is a result
    few, many = held(10_000), held(20_000)
    assert many - few == (arrays * 8 + 8) * 10_000


# At random.


#: Seeds from here on have nests of which some changes are in branches.
BRANCHES = 100


def changed(seed, r, names, change):
    """The lines of a change, or of a branch of which one way or both change the matrix."""
    if seed < BRANCHES or r.random() < 0.4:
        return change(names)
    first, last = r.choice(names), r.choice(names)
    ways = [change(names), change(names) if r.random() < 0.6 else []]
    found = []
    for name, way in zip(("then", "otherwise"), ways, strict=True):
        found += [f"def {name}(a, s):", *(f"    {line}" for line in way), "    return a, s"]
    test = r.choice([f"{first} < {last} + 1", f"{first} >= {last} + 1", f"x[{first}] > 0.2"])
    both = "lambda a=a, s=s: then(a, s), lambda a=a, s=s: otherwise(a, s)"
    return [*found, f"a, s = nbta.cond({test}, {both})"]


def index_of(r, names):
    v = r.choice(names)
    return r.choice([f"{v} + {r.randint(-2, 2)}", v, f"n - 1 - {v}", str(r.randint(0, 8))])


def bounds(r, names):
    """Where a loop in others begins and ends."""
    low = r.choice(["2", "2", *(f"{u}" for u in names), *(f"{u} + 1" for u in names)])
    return low, r.choice(["n - 2", "n - 2", *names])


def nest(seed):
    """The source of a nest that reads and writes a matrix at sums of counters and numbers.

    Some reads and writes are of stretches of a row or column.
    """
    r = random.Random(seed)
    levels = r.choice([1, 2, 2, 3])

    index = functools.partial(index_of, r)

    def key(names):
        return f"{index(names)}, {index(names)}"

    def stretch(names):
        ends = [r.choice([index(names), "None"]), r.choice([index(names), "None"])]
        parts = [f"slice({ends[0]}, {ends[1]})", index(names)]
        return ", ".join(parts if r.random() < 0.5 else parts[::-1])

    def change(names):
        return changed(seed, r, names, one_change)

    def one_change(names):
        value = f"0.4 * a[{key(names)}] * a[{key(names)}] + x[{index(names)}]"
        some = stretch(names)
        value += f" + 0.1 * nbta.sum(a[{some}] * a[{some}])" * (r.random() < 0.2)
        kind = r.choice(["set_item", "set_item", "add_item"])
        if r.random() < 0.3:
            lines = [f"v = {value}", f"s = s + nbta.sin(v) * a[{key(names)}]"]
            return [*lines, f"a = nbta.{kind}(a, ({key(names)}), nbta.tanh(v))"]
        if r.random() < 0.3:
            return [f"v = {value}", f"a = nbta.set_item(a, ({key(names)}), v)", "s = s + v * v"]
        written = stretch(names) if kind == "set_item" and r.random() < 0.2 else key(names)
        return [f"a = nbta.{kind}(a, ({written}), nbta.tanh({value}))"]

    def lines(names):
        found = change(names) if names and r.random() < 0.6 else []
        if len(names) < levels:
            v = "ijl"[len(names)]
            low, high = bounds(r, names)
            step = r.choice(["", "", "", "k"])
            turned = [f"{v} = n - 1 - {v}"] if r.random() < 0.25 and not step else []
            found += [
                f"def body_{v}({v}, a, s):",
                *(f"    {line}" for line in (*turned, *lines(names + v))),
                "    return a, s",
                f"a, s = loop({high}, body_{v}, a, s, begin={low})",
            ]
        if names and (len(names) == levels or r.random() < 0.5):
            found += change(names)
        return found

    whole = ["n, a, s = length(x), nbta.outer(x, nbta.sin(x)), 0.0", *lines("")]
    body = "".join(f"    {line}\n" for line in [*whole, "return nbta.sum(nbta.sin(a)) + s"])
    return f"def f(x):\n{body}"


def arrays_of(seed):
    names = {"nbta": nbta, "loop": loop, "length": length}
    exec(nest(seed), names)
    return number_of_arrays(names["f"], np.linspace(-0.9, 1.3, 9))


@pytest.fixture
def uncompiled(monkeypatch):
    """Python runs the source, and looks that all is within its buffer."""
    monkeypatch.setattr(executable, "build", interpreted)
    with watched():
        yield


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("first", range(0, 64, 4))
def test_random_nests(uncompiled, first):
    each(range(first, first + 4), arrays_of)


@pytest.mark.slow_but_every(6)
@pytest.mark.parametrize("first", range(BRANCHES, BRANCHES + 48, 4))
def test_random_nests_with_branches(uncompiled, first):
    each(range(first, first + 4), arrays_of)


@pytest.mark.slow
def test_random_nests_have_both(uncompiled, monkeypatch):
    """Else nothing is known of items that are final, or of those that are not."""
    found = list(map(arrays_of, range(12)))
    monkeypatch.setattr(recompute, "last_version", lambda *_: None)
    without = list(map(arrays_of, range(12)))
    assert sum(few < many for few, many in zip(found, without, strict=True)) >= 5
    assert sum(few > 0 for few in found) >= 2
