"""Where a number that is nearly right would come from: effects, views, copies and names.

Each program may be refused, by an error that names the file, but gives no other number than Python.
"""

# ruff: noqa: B007, B023, C419, F821, F841, RET504, RUF005, SIM113  (as users write)

import dataclasses
import functools
import itertools
import math

import numpy as np

CORNERS = []
X = np.linspace(0.2, 1.4, 12)


def corner(function):
    """Note a program of twelve numbers."""
    CORNERS.append(function)
    return function


# Effects of Python's.


@corner
def counted_by_a_cell(x):
    n = 0.0

    def add():
        nonlocal n
        n += 1.0

    for v in x:
        add()
    return x[0] * n


class Counter:
    """Counts, in an attribute and in a list."""

    def __init__(self):
        self.n, self.seen = 0, []

    def __enter__(self):
        self.n += 1
        return self

    def __exit__(self, *_):
        return False


@corner
def counted_by_an_attribute(x):
    counter = Counter()
    for v in x:
        counter.n += 1
    return x[0] * counter.n


@corner
def counted_by_an_attribute_in_a_branch(x):
    counter = Counter()
    if x[0] > 5.0:
        counter.n += 1
    return x[0] * counter.n


@corner
def counted_by_a_list_of_an_object(x):
    counter = Counter()
    for v in x:
        counter.seen.append(1)
    return x[0] * len(counter.seen)


@corner
def counted_by_a_context(x):
    counter = Counter()
    s = 0.0
    for v in x:
        with counter:
            s += v
    return s * counter.n


@corner
def counted_by_a_default(x):
    def add(v, seen=[]):  # noqa: B006
        seen.append(v)
        return len(seen)

    s = 0.0
    for v in x:
        s += add(v) * v
    return s


@corner
def counted_by_an_iterator(x):
    numbers = itertools.count()
    s = 0.0
    for v in x:
        s += v * next(numbers)
    return s


@corner
def counted_by_a_set(x):
    seen = set()
    for i in range(len(x)):
        seen.add(i % 3)
    return x[0] * len(seen)


@corner
def counted_by_a_dict(x):
    seen = {}
    for i in range(len(x)):
        seen[i] = x[i]
    return x[0] * len(seen)


@corner
def counted_by_text(x):
    text = ""
    for i in range(len(x)):
        text += str(i)
    return x[0] * len(text)


@corner
def extended_list(x):
    kept = []
    for v in x:
        kept.extend([v, 2.0 * v])
    return kept[3] + len(kept)


@corner
def sorted_list(x):
    kept = [2.0, 1.0, 3.0]
    for v in x:
        kept[0] = v + 2.0
        kept.sort()
    return kept[0] + 2.0 * kept[2]


@corner
def reversed_list(x):
    kept = [2.0, 1.0, 3.0]
    for v in x:
        kept.reverse()
        kept[0] += v
    return kept[0] + 2.0 * kept[2]


@corner
def added_lists(x):
    kept = []
    for v in x:
        kept += [v]
        kept = kept + [1.0]
    return kept[2] + len(kept)


@corner
def cleared_list(x):
    kept = [1.0]
    for v in x:
        if v > 1.0:
            kept.clear()
        kept.append(v)
    return kept[0] + len(kept)


@corner
def deleted_items(x):
    kept = [1.0, 2.0]
    for v in x:
        kept.append(v)
        del kept[0]
    return kept[0] + 2.0 * kept[1]


@corner
def list_under_two_names(x):
    one = [1.0]
    two = one
    for v in x:
        one.append(v)
        two[0] += v
    return one[0] * len(two) + two[3]


@corner
def raised_never(x):
    for v in x:
        if v > 100.0:
            raise ValueError("too large")
    return x[0] * x[1]


@corner
def caught(x):
    s = 0.0
    for v in x:
        try:
            if v > 1.0:
                raise ValueError
            s += v
        except ValueError:
            s -= v
    return s


@corner
def compared_by_name(x):
    mode, s = "add", 0.0
    for v in x:
        s = s + v if mode == "add" else s - 2.0 * v
        mode = "take" if v > 0.5 else "add"
    return s


@corner
def none_at_first(x):
    best, s = None, 0.0
    for v in x:
        if best is None or v < best:
            best = v
        s += best * v
    return s


@corner
def same_object(x):
    a, b, s = x.copy(), x.copy(), 0.0
    for v in x:
        s += v if a is b else -v
        b = a
    return s


@corner
def large_integers(x):
    k = 1
    for i in range(40):
        k = k * 2
    return x[0] * k


@corner
def integers_into_an_array_of_integers(x):
    a = np.zeros(4, dtype=np.int64)
    for i in range(len(x)):
        a[i % 4] = x[i] * 9.7
    return x[0] * np.sum(a)


@corner
def divided_and_rounded(x):
    s = 0.0
    for i in range(-5, 6):
        s += (i // 2) * x[i] + (i % 3) * x[0] + (-i) // 3 + i / 2
        s += (x[i] - 0.7) // 0.3 + (x[i] - 0.7) % 0.3
    return s + 7 // len(x) - (-7) // len(x) + (-7) % len(x)


@corner
def number_of_the_last_iteration(x):
    i = 7
    for i in range(len(x) - 12):
        x[0] += 1.0
    return x[i] * i


@corner
def truth_values_as_numbers(x):
    n = 0
    for v in x:
        n += v > 0.5
    return x[0] * n + (x[1] > 0) * x[1]


@corner
def changed_while_it_is_walked(x):
    a, s = x.copy(), 0.0
    for v in a:
        a[1:] = a[:-1] * 1.5
        s += v
    return s


@corner
def rebound_while_it_is_walked(x):
    a, s = x.copy(), 0.0
    for v in a:
        a = a * 0.5
        s += v + a[0]
    return s


@corner
def out_arguments(x):
    a = np.zeros(len(x))
    for i in range(3):
        np.add(a, x, out=a)
        np.multiply(a[1:], 0.5, out=a[:-1])
    return np.sum(a * x)


@corner
def methods_that_change(x):
    a = x.copy()
    for i in range(3):
        a.fill(x[i])
        a[i] += 1.0
        np.copyto(a[3:], x[3:])
        a.put([0], 2.0)
    return np.sum(a * x)


@corner
def adding_at_indices(x):
    a = np.zeros(3)
    for i in range(len(x)):
        np.add.at(a, [0, 0, 1], x[:3])
        a[np.array([0, 2, 2])] += x[i]
    return np.sum(a * a)


@corner
def flat_and_diagonals(x):
    a = np.outer(x, x)
    for i in range(len(x)):
        a.flat[i] = x[i]
        a.ravel()[0] = 2.0
        a.T[0, 1] += 1.0
        np.fill_diagonal(a, 0.5)
        a.flatten()[1] = 100.0
        a.swapaxes(0, 1)[2] = x[i]
    return np.sum(a * a)


@corner
def reshaped_copies(x):
    a = np.outer(x, x)
    for i in range(len(x)):
        a.T.reshape(-1)[0] = 5.0
        a[:, ::2].reshape(-1)[1] = 7.0
        a[::-1][0] = x
    return np.sum(a * a)


# Views.


@corner
def view_that_a_loop_carries(x):
    a = np.outer(x, x)
    before = a[0]
    for i in range(1, len(x)):
        row = a[i]
        row[0] = before[1] + math.sin(row[1])
        before[2] += row[0]
        before = row
    before[3] = 2.0
    return np.sum(a * a)


@corner
def column_that_a_loop_forwards(x):
    """What changes it changes the matrix, in a column that only the run knows."""
    a = np.outer(x, x)
    p = x.copy()
    for i in range(len(x)):
        p[1] = a[0, i] + 3.0
        p = a[:, i]
    return np.sum(a * a)


@corner
def row_that_takes_another_arrays_place(x):
    """No array of one axis is the whole matrix of which another one is a row."""
    m = np.outer(x, x)
    p, q, r = x.copy(), x + 0.1, m[0]
    for _ in range(len(x)):
        for _ in range(0, len(x), 2):
            q = x[::-1]
        m[-1] = np.where(x > 0.3, p, q)
        q, p, r = p, r, q
    return np.sum(m * m) + np.sum(p) + 2.0 * np.sum(q) - np.sum(r)


@corner
def view_of_an_index_that_changes_later(x):
    a = np.outer(x, x)
    i = 0
    for _ in range(10):
        row = a[i]
        i += 1
        row[1] = x[i]
    return np.sum(a * a)


@corner
def view_from_before_the_loop(x):
    a = x.copy()
    tail = a[2:]
    head = a[:3]
    for i in range(len(x)):
        a[i] = a[i - 1] * 0.5 + x[i]
        tail[i % 10] += 0.1
        head[2] *= 1.1
    tail[0] = 3.0 * a[1]
    return np.sum(a * a) + tail[0] * head[1]


@corner
def views_that_are_swapped(x):
    a = np.zeros((2, len(x)))
    old, new = a[0], a[1]
    old[:] = x
    for k in range(9):
        for i in range(len(x)):
            new[i] = math.sin(old[i] + old[i - 1])
        old, new = new, old
    return np.sum(a[0] * x) + 2.0 * np.sum(a[1] ** 2)


@corner
def rows_that_are_swapped_as_views(x):
    """Both rows are the second one in the end."""
    a = np.outer(x, x)
    for i in range(len(x) - 1):
        a[i], a[i + 1] = a[i + 1], a[i]
    return np.sum(a * np.arange(144.0).reshape(12, 12))


@corner
def rows_that_are_swapped_as_copies(x):
    a = np.outer(x, x)
    for i in range(len(x) - 1):
        a[i], a[i + 1] = a[i + 1].copy(), a[i].copy()
    return np.sum(a * np.arange(144.0).reshape(12, 12))


@corner
def rows_that_are_swapped_by_indices(x):
    a = np.outer(x, x)
    for i in range(len(x) - 1):
        a[[i, i + 1]] = a[[i + 1, i]]
    return np.sum(a * np.arange(144.0).reshape(12, 12))


@corner
def items_of_a_loop_are_views(x):
    a = np.outer(x, x)
    for row in a:
        row[0] = row[1] * 3.0
        row *= 0.5
    for i, row in enumerate(a):
        row[i] = 1.0
    for v in a[0]:
        v *= 100.0
    return np.sum(a * a)


@corner
def unpacked_rows_are_views(x):
    a = np.outer(x[:2], x)
    p, q = a
    p[0] = 5.0 * x[1]
    q *= p
    first, *others = x
    first += others[1]
    return np.sum(a * a) + first


@corner
def scalars_are_copies_and_short_slices_are_not(x):
    a = x.copy()
    s, part, all_ = a[0], a[0:1], a[...]
    a[0] = 7.0 * x[1]
    part[0] += 1.0
    all_[1] = s
    return a[0] * s + part[0] * a[1]


@corner
def functions_that_give_views(x):
    a = np.outer(x, x)
    np.transpose(a)[0, 1] = 2.0
    np.asarray(a)[1, 1] = 3.0
    a[None][0, 2, 2] = 4.0
    np.expand_dims(a, 1)[3, 0, 3] = 5.0
    np.squeeze(a[:1])[4] = 6.0
    np.swapaxes(a, 0, 1)[5, 6] = 7.0
    a.view()[6, 6] = 8.0
    a.real[7, 7] = 9.0
    np.atleast_2d(a)[8, 8] = 10.0
    np.ravel(a)[20] = 11.0
    return np.sum(a * a)


@corner
def functions_that_give_copies(x):
    a = np.outer(x, x)
    np.array(a)[0, 1] = 2.0
    a.copy()[1, 1] = 3.0
    a[[0, 1]][0, 2] = 4.0
    a.flatten()[3] = 5.0
    a.astype(np.float64)[4, 4] = 6.0
    np.ascontiguousarray(a.T)[5, 6] = 7.0
    a.T.ravel()[3] = 8.0
    (+a)[6, 6] = 9.0
    np.concatenate((a, a))[0, 0] = 10.0
    np.where(a > 0.0, a, a)[7, 7] = 11.0
    a[a[0] > 0.0][0, 0] = 12.0
    return np.sum(a * a)


@corner
def plus_and_plus_in_place(x):
    a = x.copy()
    b = a
    for k in range(9):
        b += 0.1 * x
        b = b + 1.0
        b *= 0.5
    return np.sum(a * a) + np.sum(b * x)


@corner
def names_in_containers(x):
    a = x.copy()
    pair, named, several = (a, x[0]), {"a": a, "b": a[1:]}, [a, a, a[::2]]
    for i in range(10):
        pair[0][i] += 1.0
        named["b"][i] *= 1.1
        several[1][2] -= 0.1 * i
        several[2][1] += named["a"][i]
    several[0] = x
    several[0][1] += 5.0
    return np.sum(a * x) + named["b"][0] + x[1]


class Holder:
    """Shares its array."""

    def __init__(self, a):
        self.a, self.part = a, a[2:]

    def change(self, v):
        self.part[0] += v
        self.a[0] = self.a[2] * v
        return self


@corner
def names_in_objects(x):
    a = x.copy()
    one = Holder(a)
    for v in x:
        one.change(v).change(0.5)
    one.a = a[1:]
    one.a[0] = 9.0
    return np.sum(a * a)


def same(a):
    return a


def changed(a, b):
    a[0] += b[1]
    b[0] *= 2.0
    a = a * 2.0
    a[1] = 100.0
    return b[2:]


@corner
def names_through_functions(x):
    a = x.copy()
    for i in range(9):
        b = same(a)
        c = changed(b, a[1:])
        c[i - 3] = x[i]
    return np.sum(a * a)


@corner
def overlapping_moves(x):
    a = x.copy()
    for i in range(9):
        a[1:] = a[:-1] + 0.1 * a[1:]
        a[:-2] += a[2:]
        a[::-1] *= 0.7
        a[1:-1] = a[:-2] * a[2:] * 0.1
        a[:] = a[::-1]
    return np.sum(a * x)


@corner
def one_array_as_both_arguments(x):
    def move(a, b):
        for i in range(len(a) - 1):
            a[i + 1] = b[i] * 0.9 + a[i + 1]
            b[i] = 0.5 * a[i]

    move(x, x)
    move(x[1:], x[:-1])
    return np.sum(x * x)


@corner
def array_of_one_branch(x):
    a, b = x.copy(), 2.0 * x
    for i in range(len(x)):
        target = a if x[i] > 0.7 else b
        target[i] += 1.0
        if i % 3 == 0:
            target = b
        target[0] *= 1.5
    return np.sum(a * x) + np.sum(b * b)


@corner
def array_that_may_be_replaced(x):
    a = x.copy()
    b = a
    for i in range(len(x)):
        if x[i] > 0.7:
            b = x * 2.0
        b[i] += 1.0
    return np.sum(a * a) + np.sum(b * b)


@corner
def rows_of_lists(x):
    rows = [[0.0] * 3 for _ in range(3)]
    shared = [[0.0] * 3] * 2
    for i in range(3):
        rows[i][2 - i] = x[i]
        shared[0][i] += x[i]
    return sum(rows[0]) + rows[1][1] * shared[1][2] + len(rows)


@corner
def rows_of_lists_at_a_traced_place(x):
    rows = [[0.0] * 3 for _ in range(3)]
    for i in range(len(x)):
        rows[i % 3][1] += x[i]
    return rows[0][1] * rows[2][1]


@corner
def rows_of_computed_arrays_at_a_traced_place(x):
    rows = [x * 1.0, x * 2.0]
    for i in range(len(x)):
        rows[i % 2][0] = x[i]
    return rows[0][0] * rows[1][0]


@corner
def row_at_a_traced_place_that_is_written(x):
    rows = [x * 1.0, x * 2.0]
    row = rows[int(x[0] * 7)]
    row[0] = 7.0 * x[1]
    return np.sum(rows[0] * rows[1])


@corner
def items_of_a_list_at_traced_places(x):
    xs, counts, best = [x[0], x[1], x[2]], [0, 0, 0], [0.0] * 4
    for i in range(len(x)):
        xs[i % 3] = x[i] * xs[(i + 1) % -3]
        xs[-1 - i % 2] += 0.5
        counts[int(x[i] * 2.1)] += 1
        best[int(x[i] * 2.1)] = max(best[int(x[i] * 2.1)], x[i])
    xs[int(x[0] * 7)] *= x[5]
    return xs[0] * xs[1] * xs[2] + sum(counts) * x[0] + counts[1] * x[1] + sum(best)


@corner
def arrays_of_a_list_at_traced_places(x):
    xs = [x[:3] * 1.0, x[3:6] * 1.0]
    for i in range(len(x)):
        xs[i % 2] = xs[i % 2] * x[i]
    return np.sum(xs[0] * xs[1])


@corner
def array_put_into_a_list_and_changed(x):
    xs, y = [x * 1.0, x * 2.0], x * 3.0
    xs[int(x[0] * 7)] = y
    y[0] = 1.0
    return np.sum(xs[0] * xs[1])


@corner
def views_of_views_of_views(x):
    """Each was asked for twice by the next one."""
    a = x.copy()
    for i in range(8):
        for j in range(7):
            a = a[::-1]
        a[i] *= 2.0
    return np.sum(a * x) + a[0]


@corner
def none_and_then_an_array(x):
    best, row = None, None
    m = np.outer(x, x)
    for i in range(m.shape[0]):
        score = np.dot(m[i], np.cos(9 * x))
        if best is None or score > best:
            best, row = score, m[i]
    if row is None:
        return x[0]
    return best * np.sum(row**2) + row[0] * len(row) + row[1:].sum()


@corner
def array_of_the_last_iteration(x):
    last, prev, s, k = None, None, 0.0, 0
    for i in range(len(x)):
        if last is not None:
            s += np.sum(last * x) * last[0]
        last = x * x[i]
    while k < 10 and s < 50.0:
        s += 0.0 if prev is None else np.abs(x * k - prev).sum()
        prev = x * k
        k += 1
    return s


@corner
def array_that_is_there_from_some_iteration_on(x):
    last, table, s = None, None, 0.0
    for i in range(len(x)):
        if i % 3 == 0:
            last = x.copy()
        last[1] = x[i]
        if table is None:
            table = np.zeros((2, 3))
        table[i % 2, i % 3] += x[i]
        s += last[0] * last[1] + table[0, 0] * table[1, 1]
    return s + np.sum(table)


@corner
def array_of_a_branch_or_none(x):
    a = None
    if x[0] > 0.1:
        a = np.sin(x)
    if x[1] > 0.1 and a is not None:
        a[0] = 2.0 * x[3]
        a *= x[2]
    return np.sum(a) if a is not None else x[0]


@corner
def longer_parts_or_none(x):
    best = None
    for i in range(2, 12):
        if best is None or x[i] > np.max(best):
            best = x[:i]
    return np.sum(best)


@corner
def array_or_none_that_changes_under_another_name(x):
    b, keep = x.copy(), None
    for i in range(len(x)):
        if x[i] > 0.6 and keep is None:
            keep = b
        b[0] += 1.0
    return np.sum(keep)


@corner
def items_that_change_before_a_loop_comes_to_them(x):
    a, b, s = x[:5] * 1.0, x[5:10] * 1.0, 0.0
    for i, q in enumerate(a):
        a *= a[i]
        s += q * (i + 1)
    for p, q in zip(a, b, strict=True):
        a[1:] += p
        b *= 1.5
        s += p * q
    for p, q in zip(b, reversed(b), strict=True):
        b[2:] *= p
        s += q
    items = iter(a)
    a[0] = 3.0 * x[0]
    s += next(items)
    squares = map(lambda v: v * v, b)  # noqa: C417
    b[:] = x[2]
    return s + sum(squares) + sum(v * x[1] for v in a)


class Oscillator:
    """Has properties that compute, of others."""

    stiffness = 2.0

    def __init__(self, mass):
        self.mass, self.positions = mass, []

    @property
    def frequency(self):
        return math.sqrt(self.stiffness / self.mass)

    @property
    def largest(self):
        best = 0.0
        for v in self.positions:
            if v > best:
                best = v
        return best

    @property
    def trace(self):
        return np.array(self.positions) * self.frequency


@corner
def properties_of_objects(x):
    one = Oscillator(x[3])
    for v in x:
        one.positions.append(v * one.frequency)
    return one.frequency * one.largest + one.trace.sum() + one.trace[0]


@corner
def lists_as_long_as_an_array(x):
    first, *_, last = [np.cos(9 * v) for v in x]
    largest, *_, smallest = sorted(x * x, reverse=True)
    by_key, *_ = sorted(x, key=lambda v: -v * v)
    weighted = sum((k + 1) * v for k, v in zip(range(50), sorted(x), strict=False))
    pairs = zip([0.5 * k for k in range(12)], [v * v for v in x], [2.0, 0.5] * 6, strict=False)
    return (
        first * last
        + largest * smallest
        + by_key * tuple(sorted(x))[1]
        + weighted
        + sum(a * b * c for a, b, c in pairs)
    )


@corner
def numbers_in_order(x):
    out, s = x.copy(), 0.0
    for i in range(1, len(x) - 1):
        out[i] = sorted([x[i - 1] * 2.0, x[i], -x[i + 1]])[1]
    low, *_, high = sorted(np.cos(9 * x))
    parts = [x[2], -x[1], x[5] * x[4]]
    parts.sort(reverse=True)
    for k, v in enumerate(sorted(parts)):
        s += (k + 1) * v
    return (
        np.sum(out * x) + low * high + s + parts[0] * 2.0 + sorted([3, 1, 2], key=lambda k: -k)[0]
    )


@corner
def places_of_all_items(x):
    m, s = np.outer(x[:4], x[:5]), 0.0
    for i, j in np.ndindex(4, 4):
        if i < j:
            s += m[i, j] * m[j, i]
    for (i, j), v in np.ndenumerate(m):
        m[i, j] = v * 0.5
        s -= v**2 * (i + 1) / (j + 1) + m[3, 4]
    for place in np.ndindex(2, 3):
        s += m[place] * x[place[0]]
    return s + len(list(np.ndindex(2, 2)))


@corner
def parts_of_complex_items(x):
    z, s = np.exp(1j * x), 0.0
    for k in range(len(x)):
        s += k * z[k].real ** 2 - z[k].imag * x[k].real
    return s


@corner
def generators_whose_items_are_made_when_asked_for(x):
    b, c = x[:10] * 1.0, x[:4] * 1.0
    squares, pairs = (v * v for v in b), (u * v for u in c for v in c)
    b[:] = x[2]
    c[1] = 2.0 * x[1]
    s = sum(squares) + sum(pairs)
    names = (f"{k}" for k in range(3))
    for k, name in enumerate(names):
        s += x[k] * int(name)
    first = next(v * 2.0 for v in c)
    return s * first + sum(v * x[1] for v in x) + max(v * v for v in b)


@corner
def items_deleted_from_lists(x):
    xs = [x[0], x[1], x[2], x[3] * 2.0]
    del xs[1]
    del xs[int(x[0] * 7)]
    for i in range(len(x)):
        xs[i % 2] *= x[i]
    return xs[0] - xs[1] + len(xs)


@corner
def powers_of_integers_with_a_modulus(x):
    s = 0.0
    for i in range(len(x)):
        s += x[pow(i, 3, 12)] * pow(3, i, 7) + x[0] * pow(-i, 2, -5) + pow(i, 0, 1)
    return s


@corner
def masks(x):
    a, b = x.copy(), x * x
    for i in range(9):
        a[a > 0.8] = 0.3
        a[b > 0.5] *= 1.5
        a[b < 0.2] += b[b < 0.2]
        a[[0, 3]] = b[[1, 2]]
    return np.sum(a * b)


@corner
def arrays_of_a_condition(x):
    s = 0.0
    for i in range(len(x)):
        if (x[:3] > 0.1).all() and np.any(x[i:] > 1.3):
            s += x[i]
        if not np.all(x[:i] < 0.9) or max(x[0], x[i]) == x[i]:
            s *= 1.1
    return s


# Names and loops.


@corner
def names_of_loops_that_are_used_again(x):
    s = 0.0
    for i in range(3):
        for i in range(9):
            s += x[i]
        s += i * x[i]
    for v in x:
        v = v * 2.0
        s += v
    return s + v + i


@corner
def walrus_in_a_comprehension(x):
    last = 0.0
    values = [last := v * 2.0 + 0.1 * k for k, v in enumerate(x[:4])]
    return last * values[1] + len(values)


@corner
def names_that_hide_functions_of_python(x):
    sum = 0.0
    for abs in x:
        sum += abs
    len = sum * 2.0
    return len


@corner
def range_whose_step_is_known_late(x):
    s = 0.0
    for i in range(9):
        for step in (-3, -1, 2):
            for j in range(i if step < 0 else 0, -1 if step < 0 else i, step):
                s = 0.9 * s + x[j]
    return s


@corner
def range_that_is_kept(x):
    iterations = range(1, len(x), 2)
    s = 0.0
    for i in iterations:
        s += x[i]
    for i in reversed(iterations):
        s = s * 0.5 + x[i]
    return s + len(iterations) + iterations[1] + (3 in iterations)


@corner
def condition_with_an_array_that_changes(x):
    a = x.copy()
    count = 0
    while a[0] < 2.0 and count < 30:
        a[:] = a * 1.2
        count += 1
    return np.sum(a) * count


@corner
def loops_in_conditions(x):
    def first(limit):
        for k in range(len(x)):
            if x[k] > limit:
                return k
        return -1

    s, k = 0.0, 0
    while (k := first(0.3 + 0.2 * s)) >= 0 and s < 9.0:
        s += x[k]
    return s * s + k


@corner
def results_of_several_kinds(x):
    def found(limit):
        for k in range(len(x)):
            if x[k] > limit:
                return x[k], k
        return 0.0, -1

    v, k = found(0.7)
    w, m = found(7.0)
    return v * k + w * m + v * v


@corner
def nothing_or_a_number(x):
    def found(limit):
        for v in x:
            if v > limit:
                return v * v
        return None

    v, w = found(0.7), found(7.0)
    return v if w is None else w


@corner
def breaks_of_two_loops(x):
    s = 0.0
    done = False
    for i in range(len(x)):
        for j in range(len(x)):
            if x[i] * x[j] > 0.9:
                done = True
                break
            if j > i:
                continue
            s += x[i] * x[j]
        else:
            s += 0.5
            continue
        s -= 0.25
        if done and i > 9:
            break
    else:
        s = -s
    return s


@corner
def return_within_else(x):
    for v in x:
        if v > 5.0:
            return v
    else:
        for w in x:
            if w > 0.8:
                return w * w
    return 0.0


@corner
def while_with_else_and_continue(x):
    i, s = 0, 0.0
    while i < len(x):
        i += 1
        if i % 3 == 0:
            continue
        s += x[i - 1] * i
        if s > 100.0:
            break
    else:
        s *= 2.0
    return s


@corner
def chained_conditional_expressions(x):
    s = 0.0
    for i, v in enumerate(x):
        s += v if v < 0.4 else v * v if v < 0.8 else -v if i % 2 else 0.0
        s = (s and v) or (v > 0.5 and s + 1.0) or s
    return s


@corner
def integers_that_become_floats_late(x):
    a, b, c = 0, 1, 2
    for i in range(len(x)):
        a, b, c = b, c, c + x[i]
    return a * b + c


@corner
def integers_divided(x):
    n, s = 40, 0.0
    for i in range(1, len(x)):
        n = n / 2 if i == 30 else n
        s += x[i] * (n // i) + n % i
    return s


@corner
def accumulated_in_an_array_of_integers(x):
    counts = np.zeros(3, dtype=np.int64)
    for i in range(len(x)):
        counts[int(x[i] * 2.0)] += 1
    return x[0] * counts[0] * counts[1] + counts[2]


@corner
def arguments_of_closures(x):
    total = [0.0]

    def add(v):
        total[0] = total[0] * 0.9 + v

    for v in x:
        add(v)
        add(v * v)
    return total[0]


@corner
def functions_made_in_a_loop(x):
    made = []
    for k in range(3):
        made.append(lambda v: v * k)
    s = 0.0
    for f in made:
        s += f(x[1]) if x[1] > 0 else 0.0
    return s


BUFFER = np.zeros(3)


@corner
def array_of_the_module_that_is_written(x):
    BUFFER[:] = 1.0
    for i in range(len(x)):
        BUFFER[i % 3] += x[i]
    return BUFFER[0] * BUFFER[1]


@corner
def array_of_the_module_that_is_read(x):
    s = 0.0
    for i in range(len(x)):
        s += X[i] * x[i] + X[-i - 1]
    return s


@corner
def higher_functions_of_python(x):
    add = lambda s, v: s + v if v > 0.5 else s  # noqa: E731
    s = functools.reduce(add, x, 0.0)
    s += sum(map(lambda v: v * v if v > 0.5 else -v, x))  # noqa: C417
    s += sum(v if v > 0.3 else 2.0 * v for v in x)
    s += max(x, key=lambda v: v if v < 1.0 else -v)
    s += sum(filter(lambda v: v > 0.7, x))
    return s + float(any(v > 1.3 for v in x)) + float(all([v > 0.3 for v in x]))


class Rate:
    """Has a number that others set by its name."""

    def __init__(self):
        self.value = 0.5


@corner
def attributes_by_name(x):
    rate, s = Rate(), 0.0
    for v in x:
        setattr(rate, "value", getattr(rate, "value") * 0.5 + v)  # noqa: B009, B010
        s += rate.value * getattr(rate, "other", 2.0)
    s += getattr(x, "ndim", 0) * getattr(x[1:], "size", 0) * x[0]
    is_called = hasattr(x, "__call__")  # noqa: B004
    return s + (hasattr(x, "shape") + hasattr(x, "wheels") + is_called) * x[1]


@corner
def powers_of_lengths(x):
    n = len(x)
    s = x[n >> 1] * (n & 1) + x[(n ^ 3) % 12] + x[1 << 2] * (1 << n % 3)
    for i in range(n):
        s += x[i & 3] * x[n >> 2] * (~i & 1)
    return s


@corner
def array_that_is_appended_to(x):
    a = x[:1]
    for i in range(len(x)):
        a = np.append(a, x[i] * a[0])
    return a[0] * a[-1] + np.sum(a)


@corner
def flat_items(x):
    a, s = np.outer(x, x), 0.0
    for i in range(len(x)):
        a.flat[i * 3] *= x[i]
    a.T.flat[5:7] = 0.5
    a.flat[1:3][0] = 100.0
    for v in a.flat:
        s += v * v
    return s + a.nbytes * x[0] + a.itemsize


@corner
def whole_view(x):
    a = x.copy()
    b = a.view()
    for i in range(len(x)):
        b[i] = a[i - 1] * x[i]
    return np.sum(a * x)


@corner
def range_of_a_length_that_is_kept(x):
    iterations = range(len(x))
    s = x[iterations[1]] * len(iterations) + x[iterations[-2]]
    for i in range(3):
        for k in iterations[2:]:
            s += x[k] * i
    for k in reversed(iterations):
        s = s * 0.5 + x[k]
    return s


@corner
def any_and_all(x):
    s = 0.0
    for i in range(len(x)):
        if any(v > 1.3 for v in x[: i + 1]) or all([x[0] > 0.1, x[i] < 0.4]):
            s += x[i]
        if not any((x[i] > 2.0, False)) and all(x[:i] < 0.9):
            s -= x[i] * x[0]
    return s


@corner
def masks_that_are_written(x):
    a, b = x.copy(), np.outer(x, x)
    for i in range(3):
        a[a > 0.7] -= 0.1 * x[i]
        a[x < 0.3] = x[0] * i
        a[1:][a[1:] > 0.9] *= x[1]
        b[x > 1.0] += 0.5
        b[b < 0.2] = 0.25
    a[a < 0.5] **= 0.5
    a[~(x > 0.5) & (a > 0.1)] /= 0.3
    return np.sum(a * x) + np.sum(b * b)


@corner
def compacted_by_a_mask(x):
    a, m = x.copy(), x > 0.7
    a[m] = a[m][::-1] * 2.0
    a[m] -= np.sin(x)[m]
    a[x > 1.3] = [0.25]
    return np.sum(a * x)


@corner
def items_that_a_mask_picks(x):
    m, s = x > 0.5, 0.0
    part = x[m]
    part[0] = 3.0 * x[1]
    part *= 2.0
    for i in range(len(part)):
        s = s * part[i] + np.sin(x)[m][i]
    for k in range(10):
        s = np.sin(s) + x[x > 0.11 * k].max() * x[x > 0.11 * k].mean()
    empty = x[x > 5.0]
    return s + part[-1] * part.size + np.std(x[~m]) + empty.sum() * len(empty)


@corner
def masks_of_several_axes(x):
    a = np.outer(x, x)
    s = np.sum(a[a > 0.5] ** 2) + np.sum(a[x > 0.5] * x) + np.sum(a[x > 0.5, 1] ** 2)
    s += np.sum(a[:, x > 0.7][0] ** 2) + np.sum(x[1:][x[1:] > 0.5] * 2.0)
    a[a > 0.5] = a[a > 0.5] ** 2
    a[x > 1.0] += x
    a[:, x < 0.5] *= 2.0
    a[x > 1.2, 0] = 3.0
    return s + np.sum(a * a)


@corner
def places_that_a_mask_names(x):
    a = np.outer(x, x)
    i, (j, k) = np.where(x > 0.5)[0], np.nonzero(a > 0.7)
    first, both = np.flatnonzero(x > 0.3), np.argwhere(a > 0.7)
    s = np.sum(x[i] ** 2) + np.sum(x[j] * x[k]) + x[first[0]] * len(first) + x[both[-1, 0]]
    s += np.sum(np.extract(x > 0.4, x * x)) + x.nonzero()[0][-1]
    s += np.sum(np.compress(x > 0.3, a, 0) ** 2) + np.sum(a.compress(x > 0.5, axis=0) ** 2)
    return s + np.sum(x.compress(x > 0.9))


@corner
def values_put_where_a_mask_is_true(x):
    a = x * 2.0
    np.putmask(a, x > 0.5, x * x)
    np.copyto(a, -x, where=x < 0.3)
    np.putmask(a, x > 1.3, 0.5)
    return np.sum(a * a * x)


@corner
def mask_that_leaves_out_what_has_no_slope(x):
    a = x - 0.5
    a[a > 0.0] **= 0.5
    return np.sum(a * x)


@corner
def several_index_arrays(x):
    m, s = np.outer(x, x), 0.0
    for k in range(len(x)):
        i, j = np.array([k % 3, (k + 1) % 3, -2]), np.array([2, 0, k])
        s += np.sum(m[i, j]) + np.sum(m[[k % 4, 1], [2, k % 5]]) * x[0]
        m[i, j] = x[k] * np.array([1.0, 2.0, 3.0])
        m[[k % 4, -1]] += 0.1
        m[j, 0] *= 0.5
    return s + np.sum(m * m)


@corner
def index_arrays_between_slices(x):
    t, s = np.reshape(np.outer(x, x), (12, 3, 4)).copy(), 0.0
    for k in range(9):
        i, j = np.array([k % 3, 1]), np.array([[k % 4], [2]])
        s += np.sum(t[:, i, j][0] * x[k]) + np.sum(t[i, :, 1][1] * x[:3])
        s += np.sum(t[1:3, i][1, 0] * x[4:8]) + np.sum(t[k % 12, i, 1:3] ** 2)
        t[2:4, i, k % 4] = x[:2]
        t[k, :, i[0]] += x[:3]
        t[0, i, j] = x[k]
    np.fill_diagonal(t[0], 0.5)
    return s + np.sum(t * t)


@corner
def added_at_several_arrays(x):
    m = np.outer(x, x)
    for k in range(9):
        np.add.at(m, ([k, 1, 1], [0, 2, 2]), x[k])
    return np.sum(m * m)


@corner
def views_by_functions(x):
    a = np.reshape(np.outer(x, x), (12, 3, 4)).copy()
    for i in range(9):
        np.moveaxis(a, 0, -1)[1, 2, i] = x[i]
        a.swapaxes(0, 2)[i % 4, 1] *= 0.5
        np.flip(a, 0)[0] += x[1]
        np.flip(a)[i, 0, 1] = 0.3
        np.flipud(a)[1, 2] = x[0]
        np.expand_dims(a, (0, 2))[0, 3, 0, 1, 2] *= x[2]
        a[:1].squeeze(0)[2, 1] = x[i]
        np.squeeze(a[:, :1])[4] = 6.0
    return np.sum(a * a)


@corner
def parts_that_are_written(x):
    a = np.outer(x, x)
    top, low = np.split(a, 2)
    for i in range(6):
        low[i] = top[i] * x[i]
    return np.sum(a * a)


@corner
def array_that_a_function_gives_back(x):
    def first_of(a, b):
        for i in range(len(a)):
            if i > 100:
                return b
        if len(a) > 50:
            return b
        return a

    a, b = x.copy(), x * 2.0
    c = first_of(a, b) if len(x) < 5 else a
    c[0] = 5.0
    return np.sum(a * b)


@corner
def array_given_back_as_it_is(x):
    def doubled(a):
        if len(a) > 50:
            return a
        for i in range(len(a)):
            a[i] *= 2.0
        return a

    a = x.copy()
    b = doubled(a)
    b[0] = 5.0
    return np.sum(a * x) + a[0]


@corner
def none_until_there_is_one(x):
    before, low, s = None, None, 0.0
    for v in x:
        if before is not None:
            s += (v - before) ** 2
        low = v if low is None else min(low, v)
        before = v
    return s * before * low


@corner
def place_of_the_best(x):
    best = None
    for i in range(len(x)):
        if best is None or x[i] * (1.1 - x[i]) > x[best] * (1.1 - x[best]):
            best = i
    return x[best] * 2.0


@corner
def none_now_and_then(x):
    last, s = 1.0, 0.0
    for v in x:
        if last is None:
            last = v
        s += last * v
        last = None if v > 0.9 else last * 0.5
    return s + (x[0] if last is None else last)


@corner
def while_there_is_none(x):
    a, k, s = None, 0, 0.0
    while a is None or a < 3.0:
        a = x[k] if a is None else a + x[k]
        k += 1
        s += a
    return s * a


@corner
def never_any(x):
    best = None
    for v in x:
        if v > 5.0:
            best = v
    return best if best else x[0]


@corner
def view_that_is_taken_anew_in_a_nest(x):
    def changed(a, b):
        u = 0.0
        for i in range(len(a)):
            for _ in range(len(b)):
                u = 0.7 * u + 0.3 * math.sin(b[2])
                a = b[::-1]
                a[(i * 2 + 1) % len(a)] += 0.2 * math.sin(u)
        a[0] += 0.1 * u
        return u + a[0]

    y = x * 2.0
    return changed(y, y) + np.sum(y * x)


@corner
def array_of_a_nest_after_a_break(x):
    s = 0.0
    for i in range(len(x)):
        k = 0
        if k > 10:
            break
        for j in range(i, len(x)):
            a = np.zeros((len(x), 3))
            a[j, 1] = x[j] * x[i]
            s += a[j, 1]
    return s


@corner
def array_of_a_dict_changed_in_place(x):
    d = {"a": x.copy()}
    rows = [d["a"], x * 2.0]
    d["b"] = d["a"]
    for i in range(9):
        d["b"] *= 1.1
        rows[0] += x[i]
        rows[0][i] = 0.5
    return np.sum(d["a"] * x) + np.sum(rows[0])


class Search:
    """Has no best value at first, and others only later."""

    def __init__(self):
        self.best = None

    def see(self, v):
        self.square = v * v
        if self.best is None or v < self.best:
            self.best = v
        if v > 0.7:
            self.large = v
        return self.square


@corner
def attributes_that_are_none_or_not_there(x):
    search, s = Search(), 0.0
    for v in x:
        s += search.see(1.3 - v)
        s += search.best * v
    return s * search.best * search.square + search.large


@corner
def key_of_one_branch(x):
    seen = {"sum": 0.0}
    for v in x:
        seen["sum"] += v
        if v > 5.0:
            seen["large"] = v
    return seen["sum"] * seen.get("large", 1.0)


@corner
def list_that_a_loop_of_known_iterations_fills(x):
    kept, s = [], 0.0
    for i in range(4):
        s += x[i] * x[0]
        if x[i] > 0.3:
            kept.append(x[i])
    return s + len(kept) * kept[0]


@corner
def list_that_is_emptied(x):
    queue, s = [x[0]], 0.0
    while queue:
        v = queue.pop()
        s += v
        if v < 2.0:
            queue.append(v * 2)
    return s


@corner
def value_of_the_iteration_before(x):
    s, first = 0.0, True
    for i in range(len(x)):
        v, row = x[i] * 2.0, x[:3] * x[i]
        if i > 0:
            s += (v - last) ** 2 + np.dot(row, before)
        if i > 0 and v > last:
            s += 1.0
        s += 0.0 if first else last * v
        last, before, first = v, row, False
    return s


@corner
def value_of_the_iteration_before_in_a_nest(x):
    s = 0.0
    for i in range(len(x)):
        for j in range(len(x)):
            if i > 0:
                s += before * x[j]
            if j > 1:
                s -= inner * x[i]
            inner = x[i] * x[j]
        before = inner * 0.5
    return s


@corner
def names_that_expressions_bind(x):
    s, n = 0.0, 0
    if (m := len(x)) > 3 and (k := m * 2) > 4:
        s += x[0] * k
    for i in range(len(x)):
        if (y := x[i] * 2.0) > 1.4:
            s += y
    return s + m


@corner
def names_that_operands_bind(x):
    s, y = 0.0, 0.0
    for i in range(len(x)):
        if x[i] > 0.5 and (y := x[i] * 2.0) > 1.4:
            s += y
    return s + y


@corner
def names_that_ways_bind(x):
    s = 0.0
    for i in range(3):
        y = 0.0
        z = (y := x[i] * 2.0) if x[i] > 0.3 else 1.0
        s += y * z
    return s


@corner
def array_that_is_kept_and_changed(x):
    place, path = np.zeros(3), []
    for i in range(len(x)):
        place[i % 3] += x[i]
        path.append(place)
    return np.sum(np.array(path))


@corner
def item_of_a_list_that_is_changed(x):
    rows = []
    for i in range(len(x)):
        rows.append(x[:3] * i)
    row = rows[2]
    row[0] = 5.0
    return np.sum(np.array(rows))


@corner
def copies_that_are_kept(x):
    place, path = np.zeros(3), []
    for i in range(len(x)):
        row = np.zeros(3)
        row[i % 3] = x[i]
        place += row
        path.append(place.copy())
        path.append(row)
    last = path[-1]
    return np.sum(np.array(path)) + last[0] * path[3][1]


@corner
def view_of_one_way(x):
    s = 0.0
    for i in range(len(x)):
        part = x[i : i + 2] if i < 11 else x[i:]
        s += part[0] * part[-1]
    return s


@corner
def functions_of_a_comprehension(x):
    functions = [lambda v: v * i for i in range(3)]
    return sum(f(x[0]) for f in functions)


@corner
def generators_of_a_comprehension(x):
    rows = [(v * i for v in [1.0, 2.0]) for i in range(3)]
    return sum(sum(row) for row in rows) * x[0]


@corner
def sums_of_a_comprehension(x):
    return sum([sum(v * i for v in x) for i in range(len(x))])


@corner
def complex_numbers_of_parts(x):
    z = complex(x[0], x[1])
    for v in x:
        z = z * z * 0.1 + complex(v, 0.5)
    return abs(z) + z.real - complex(x[2]).real + complex("1+2j").imag


# The order in which several targets are assigned.


@corner
def item_before_its_index(x):
    a, i = x.copy(), 0
    for k in range(len(x)):
        a[i], i = a[i] * 2 + k, (i + 2) % len(x)
    return a @ np.arange(len(x)) + i


@corner
def item_before_its_index_in_a_row(x):
    a, i = x.copy(), 3
    a[i] = i = 1
    a[i], i = 7.0 * x[2], 4
    i, a[i], i = 0, 9.0, 2
    return a @ np.arange(len(x)) + i


@corner
def item_before_its_array(x):
    a = x.copy()
    b = a
    a[1], a = 5.0 * x[0], a * 2
    (c, a), a[0] = (a, a + 1), x[3]
    return a.sum() + 3 * b.sum() + c[0]


@corner
def item_before_what_its_key_asks_for(x):
    a, n = x.copy(), 0

    def following():
        nonlocal n
        n += 1
        return n

    a[following()], n, a[following()] = x[0], 2, 50.0
    return a @ np.arange(len(x)) + n


@corner
def attribute_before_its_owner(x):
    counter, other = Counter(), Counter()
    first = counter
    for i in range(3):
        counter.n, counter = counter.n + x[i], other
    return first.n * other.n


# Arrays without axes.


def add_into(total, v):
    """As kernels add to what they are given."""
    total += v


@corner
def array_of_no_axes_that_is_filled(x):
    total, least = np.zeros(()), np.array(1.0)
    same = total
    for v in x:
        add_into(total, v * v)
        if v > 0.7:
            same *= 0.9
        least[...] = min(least, v)
    return float(total + same) * least + total[()]


@corner
def array_of_no_axes_in_an_object(x):
    kept = Counter()
    kept.n = np.full((), x[0])
    other = kept.n
    for v in x:
        kept.n += v
    np.multiply(other, 2.0, out=other)
    return other.item() * kept.n


@corner
def array_of_no_axes_or_a_number(x):
    total = np.array(0.0)
    for v in x:
        total = total + v
    least = np.zeros(())
    for v in x:
        least = v if v < least else least
    return total * 2 + least


@corner
def array_of_no_axes_under_two_names(x):
    total = np.array(0.0)
    same = total
    for v in x:
        if v > 0.5:
            total += v
        else:
            total = total * 2
    return total * 3 + same


@corner
def array_of_no_axes_of_two(x):
    total = np.array(1.0) if x[0] > 0 else np.zeros(())
    same = total
    total += x[1]
    return same


# Attributes whose assignment calls a function.


class Magnitude:
    """A descriptor of a number that is never negative."""

    def __set_name__(self, owner, name):
        self.name = f"_{name}"

    def __get__(self, owner, kind=None):
        return self if owner is None else getattr(owner, self.name)

    def __set__(self, owner, value):
        setattr(owner, self.name, -value if value < 0 else value)


class Tank:
    """Its level is assigned through a function, and counts that."""

    width = Magnitude()

    def __init__(self):
        self._level, self.writes, self.width = 0.0, 0, 1.0

    @property
    def level(self):
        """How full it is."""
        return self._level

    @level.setter
    def level(self, value):
        self.writes += 1
        self._level = value if value > 0.5 else 0.1 * value


@corner
def property_that_counts_its_writes(x):
    tank = Tank()
    for v in x:
        if v > 0.9:
            tank.level = v
        tank.level += v
    return tank.level + tank.writes * x[0]


@corner
def descriptor_that_is_assigned(x):
    tank = Tank()
    for v in x:
        tank.width -= v
        tank.width *= 1.1
    return tank.width


# Patterns.


@dataclasses.dataclass
class Disc:
    """A shape."""

    radius: float


@corner
def classes_of_numbers_in_patterns(x):
    match x[0]:
        case int():
            s = x[1]
        case float() as v if v > 5.0:
            s = 3.0 * v
        case float(v):
            s = 2.0 * v
        case _:
            s = x[3]
    for shape in (Disc(x[4]), (x[5], x[6]), [1.0, x[7]], 3, "two"):
        match shape:
            case Disc(radius=r):
                s += r * r
            case int(k):
                s += k
            case str() as text:
                s += len(text)
            case (a, b):
                s += a * b
    return s


@corner
def patterns_that_bind_and_ask(x):
    s = 0.0
    for i, v in enumerate(x):
        match i:
            case 0:
                s += v
            case 1 | 2:
                s += 10 * v
            case n if n % 2 == 0:
                s += 100 * v * n
            case n if v > 0.9:
                s += 1000 * v + n
            case _:
                s -= v * n
    return s


@corner
def parts_of_a_class_of_numbers(x):
    match (x[0], x[1]):
        case (float(), b):
            return b
        case _:
            return x[2]


@corner
def a_class_of_numbers_in_a_dict(x):
    match {"first": x[0], "second": x[1]}:
        case {"first": float(), "second": b}:
            return b
        case _:
            return x[2]


# What is printed, and what stands in tests.


@corner
def numbers_in_tests(x):
    n, left, s = 9, int(x[3] * 10), 0.0
    while left and n > 1 and s < 100:
        s += x[n]
        n -= 1
        left -= 1
    return s + (1 if left and x[0] else 2) + (not (left or x[1] > 0))


@corner
def tuples_in_order(x):
    best = (x[0], 0)
    for i in range(1, len(x)):
        now = (x[i] * x[i] - 1.3 * x[i], i)
        if now < best:
            best = now
    pair = x[0], x[1]
    same = (pair == (x[0], x[1])) + 2 * (pair != (x[0], x[2])) + 4 * ((*pair, 1) > pair)
    return best[0] * best[1] + x[0] * same


@corner
def number_that_is_no_divisor(x, n=0):
    return x[0] * 2 if x[1] > 0 else x[0] / 1 / n


class Lazy:
    """Attributes that functions find."""

    def __init__(self, x):
        self.x, self.parts = x, {"first": x[0], "last": -x[-1]}

    @functools.cached_property
    def large(self):
        """The greatest item, or the least."""
        return self.x.max() if self.x[0] > 0 else self.x.min()

    def __getattr__(self, name):
        found = self.parts[name]
        return found if found > 0 else 2.0 * found


@corner
def attributes_that_functions_find(x):
    lazy = Lazy(x)
    return lazy.large + lazy.large * lazy.first + lazy.last


# Parts of complex numbers.


@corner
def parts_that_are_assigned(x):
    z = np.zeros(len(x), complex)
    z.real = x
    z.imag = 2 * x
    z.imag += x[::-1]
    s = 0.0
    for i in range(len(x)):
        z[i] = z[i - 1] * 0.5 + x[i]
        s += z.real.sum() + z.imag[i]
    return s + np.sum(z.real**2 + z.imag**2)


@corner
def parts_that_a_loop_carries(x):
    u, k = x.copy(), np.arange(len(x))
    for _ in range(10):
        waves = np.fft.fft(u)
        waves *= np.exp(-0.01 * k)
        u = np.fft.ifft(waves).real
        u += 0.1
        u[0] = 0.5
    return u @ u


@corner
def real_parts_under_two_names(x):
    z = x + 1j * x[::-1]
    real = z.real
    real += 0.5
    return np.abs(z).sum()


@corner
def imaginary_parts_before_a_change(x):
    z = x + 1j * x[::-1]
    some = z[1:3].imag
    z[1] = 0.0
    return some.sum()


# Truth values as numbers.


@corner
def truth_values_in_a_sum(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * sum([x[i] > 0.4, i > 3, x[i] < 1.2])
    return s


@corner
def masks_in_a_sum(x):
    return np.sum(sum([x > 0.4, x > 0.8]) * x)


@corner
def truth_values_counted(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * (int(i > 3) + int(x[i] > 0.8)) + (x[i] > 0.5) * (i > 2)
    return s


@corner
def truth_values_added(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * ((i > 3) + (i > 5))
    return s


@corner
def truth_values_added_to_one_of_python(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] * ((len(x) > 2) + (i > 5)) + x[i] * (True + (i > 5))
    return s


# The real and the imaginary parts of an array are views of it.


@corner
def parts_written_by_a_loop(x):
    z = np.outer(x[:4], x[:5] + 1j * x[1:6]).ravel()
    real, imag = z.real, np.imag(z)
    for i in range(len(z)):
        real[i] *= x[0]
        imag[(3 * i) % 20] += real[i]
        z[(i + 1) % 20] = z[i] * 1j
    return np.sum(real * imag) + np.abs(z).sum()


@corner
def parts_of_views(x):
    z = np.outer(x[:4], x[:4] + 1j * x[1:5])
    row, turned = z[1].real, z.T.imag
    turned[2] += x[0]
    row[:] = turned[0] * 2.0
    z.real[[0, 0, 2]] += 1.0
    z.imag[1:3, ::-1] -= z.real[1:3]
    z *= 1.0 + 1j
    return np.abs(z).sum() + np.sum(row * turned[1])


@corner
def parts_filled_and_masked(x):
    z = x + 1j * x[::-1]
    z.real[x > 0.5] = x[1]
    np.add(z.imag, -3.0 * x, out=z.imag)
    np.real(z)[2:4].fill(x[0])
    z.imag.sort()
    return np.sum(z.real * z.imag) + np.abs(z[1])


@corner
def parts_in_branches_of_a_loop(x):
    z = x + 1j * x[::-1]
    real = z.real
    for i in range(10):
        z.imag[i % 4] = real[(i + 1) % 4] * 0.5
        if z.imag[i % 4] > 0.2:
            real[i % 4] *= x[i % 3]
        z[i % 4] *= 0.9
    return np.sum(real) + np.abs(z).sum()


@corner
def arrays_of_iterators(x):
    of_map = np.fromiter(map(np.sin, x), dtype=np.float64)
    counted = np.fromiter((v * v for v in x), np.float64, count=len(x))
    first = np.fromiter((v for v in x if v > 0.5), float, 3)
    known = np.fromiter((2 * i for i in range(12)), dtype=np.int64, count=12)
    return np.sum(of_map * counted * known) + first.sum() * first[0]
