"""Generators of users, which loops, lists and other generators go along.

Each program may be refused, by an error that names the file, but gives no other number than Python.
"""

# ruff: noqa: B007, B905, SIM113  (as users write)

import itertools

import numpy as np

PROGRAMS = []
X = np.linspace(0.2, 1.4, 12) * (-1) ** (np.arange(12) % 3 == 1)


def program(function):
    """Note a program of twelve numbers."""
    PROGRAMS.append(function)
    return function


def running(x):
    s = 0.0
    for v in x:
        s = s + v
        yield s


def count(start):
    while True:
        yield start
        start = start * 0.5


def pairs(n):
    for i in range(n):
        for j in range(i):
            yield (i, j)


@program
def sums_so_far(x):
    out = 0.0
    for s in running(x):
        out = out + s * s
    return out


@program
def left_by_break(x):
    out = 0.0
    for s in running(x):
        if s > 1.0:
            break
        out = out + s
    return out


@program
def with_an_else(x):
    out = 0.0
    for s in running(x):
        if s > 1000000000.0:
            break
        out = out + s
    else:
        out = out + 100.0
    return out


@program
def without_an_end(x):
    out = 0.0
    for v in count(x[0]):
        out = out + v
        if v < 0.001:
            break
    return out


@program
def without_an_end_for_some_iterations(x):
    out = 0.0
    k = 0
    for v in count(1.0):
        out = out + v * x[k]
        k += 1
        if k == 5:
            break
    return out


@program
def two_loops(x):
    out = 0.0
    for i, j in pairs(len(x)):
        out = out + x[i] * x[j]
    return out


@program
def as_a_list(x):
    return sum(list(running(x))) + max(running(x)) + np.array(list(running(x))).sum()


@program
def in_a_generator_expression(x):
    return sum(v * v for v in running(x))


@program
def as_arrays(x):
    items = np.fromiter(running(x), float)
    return items.sum() + np.array(list(running(x))).max()


@program
def counted(x):
    out = 0.0
    for i, s in enumerate(running(x)):
        out = out + i * s
    return out


@program
def beside_an_array(x):
    out = 0.0
    for a, b in zip(running(x), x):
        out = out + a * b
    return out


def chained(x):
    yield x[0]
    yield from running(x)
    yield x[-1]


@program
def from_another_one(x):
    out = 1.0
    for s in chained(x):
        out = out * 0.5 + s
    return out


def tree(d, x):
    if d == 0:
        yield x
    else:
        yield from tree(d - 1, x * 0.5)
        yield from tree(d - 1, x + 1.0)


@program
def recursive(x):
    return sum(np.sin(v) for v in tree(4, x[0]))


class Doubled:
    def __init__(self, a):
        self.a = a

    def __iter__(self):
        for v in self.a:
            yield (v * 2.0)


@program
def of_a_class(x):
    out = 0.0
    for v in Doubled(x):
        out = out + v * v
    return out


@program
def with_continue(x):
    out = 0.0
    for s in running(x):
        if s < 0:
            continue
        out = out + s
    return out


@program
def left_by_return(x):
    for s in running(x):
        if s > 0.5:
            return s * 3.0
    return -1.0


@program
def of_before_the_loop(x):
    g = running(x)
    out = 0.0
    for v in x:
        for s in g:
            out = out + s
    return out


@program
def gone_along_twice(x):
    g = running(x)
    out = 0.0
    for s in g:
        out = out + s
    for s in g:
        out = out + 100.0
    return out


@program
def asked_for_the_next(x):
    g = running(x)
    return next(g) + next(g)


def clip(xs):
    for v in xs:
        if v > 0:
            yield v


@program
def that_leaves_out(x):
    out = 0.0
    n = 0
    for v in clip(x):
        out = out + v
        n += 1
    return out / n


@program
def of_another_one(x):
    out = 0.0
    for s in running(clip(x)):
        out = out + s * s
    return out


@program
def in_another_loop(x):
    out = 0.0
    for a in running(x):
        for b in clip(x):
            out = out + a * b
    return out


@program
def into_an_array(x):
    buf = np.zeros(len(x))
    k = 0
    for s in running(x):
        buf[k] = s * s
        k += 1
    return buf.sum() + buf[2]


@program
def sent_values(x):

    def co():
        s = 0.0
        while True:
            v = yield s
            s = s + v

    g = co()
    next(g)
    out = 0.0
    for v in x:
        out = out + g.send(v)
    return out


def batches(x, n):
    for i in range(0, len(x) - n + 1, n):
        yield x[i : i + n]


@program
def of_batches(x):
    w = 0.5
    for b in batches(x, 2):
        w = w - 0.1 * np.mean(w * b - 1.0)
    return w


@program
def whose_last_item_stays(x):
    for s in running(x):
        last = s
    return last


@program
def into_a_dict(x):
    d = {"a": 0.0}
    for s in running(x):
        d["a"] = d["a"] + s
    return d["a"]


@program
def as_a_tuple(x):
    return sum(tuple(running(x)))


def terms(v, taken):
    """The series of a sine, without an end; ``taken`` gets each term that was asked for."""
    term, k = v, 1.0
    while True:
        taken.append(term)
        yield term
        term = -term * v * v / ((k + 1.0) * (k + 2.0))
        k += 2.0


@program
def parts_of_what_has_no_end(x):
    out, taken = 0.0, []
    for term in itertools.islice(terms(x[0], taken), 5):
        out = out * 0.5 + term
    out += sum(itertools.islice(terms(x[1], taken), 1, 9, 3))
    out += sum(itertools.takewhile(lambda term: abs(term) > 1e-6, terms(x[2], taken)))
    none = sum(itertools.islice(terms(x[3], taken), 0))
    return out * sum(taken) + len(taken) + none


@program
def numbers_of_what_has_no_end(x):
    out, taken = 0.0, []
    for k, term in enumerate(terms(x[0], taken), 2):
        out += k * term
        if abs(term) < 1e-9:
            break
    return out * sum(taken) + len(taken)


@program
def partners_of_what_has_no_end(x):
    out, taken = 0.0, []
    for weight, term in zip(x, terms(x[1], taken)):
        out += weight * term
    for term, k, weight in zip(terms(x[2], taken), range(4), (2.0, 3.0, 5.0)):
        out += weight * term * k
    for k, term in zip(range(0), terms(x[3], taken)):
        out += term
    return out * sum(taken) + len(taken)
