"""Objects of all kinds that a function reads from outside, and that change between two calls."""

import array as of_python
import collections
import contextlib
import copy
import ctypes
import datetime
import enum
import functools
import heapq
import itertools
import math
import operator
import re
import statistics
import types
import weakref
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import nbta

CASES = []


def case(make):
    """A function that gives a function of a number, and changes of what that reads."""
    CASES.append(pytest.param(make, id=make.__name__))
    return make


def check(make, compiled):
    f, *changes = make()
    traced = nbta.value_and_grad(f, compiled=compiled)
    for change in (lambda: None, *changes):
        change()
        for x in (2.0, 3.0):
            value, slope = traced(x)
            np.testing.assert_allclose(value, f(x), rtol=1e-12)
            wanted = (f(x + 1e-6) - f(x - 1e-6)) / 2e-6
            np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-5)


# Arrays that are given another shape or dtype in place.


def shaped(shape, *shapes):
    array = np.arange(4.0).reshape(shape)
    return array, *(lambda to=to: setattr(array, "shape", to) for to in shapes)


@case
def rank():
    array, *changes = shaped(4, (2, 2), (4,), (1, 2, 2))
    return (lambda x: x * array.ndim + array.sum()), *changes


@case
def lengths():
    array, *changes = shaped((2, 2), (4, 1), (1, 4), (4,))
    return (lambda x: x * array.shape[0] + array[0].sum()), *changes


@case
def rows():
    array, *changes = shaped((2, 2), (4, 1), (4,), (2, 2))

    def f(x):
        total = 0.0
        for i in range(len(array)):
            total = total + array[i].sum() * x
        return total

    return f, *changes


@case
def broadcast():
    array, *changes = shaped((2, 2), (1, 4), (4, 1))
    return (lambda x: np.sum(x * array * array.T)), *changes


@case
def another_dtype():
    array = np.arange(4.0)
    kinds = (np.int64, np.uint64, np.uint8, np.float64)
    changes = [lambda to=to: setattr(array, "dtype", to) for to in kinds]
    return (lambda x: x + np.sum(array) * 1e-300 + array.dtype.itemsize * x), *changes


# Values and objects of Python's own classes.


def place(value):
    """A place that holds a value, and a function that lets it hold others."""
    now = types.SimpleNamespace(value=value)
    return now, lambda other: lambda: setattr(now, "value", other)


def attribute(owner, name, value):
    return lambda: setattr(owner, name, value)


@case
def fraction_as_a_float():
    now, put = place(Fraction(2, 3))
    return (lambda x: x * float(now.value)), put(Fraction(1, 3)), put(Fraction(5))


@case
def fraction_beside_floats():
    now, put = place(Fraction(2, 3))

    def f(x):
        y = x * now.value + now.value / x - (x + 1) ** now.value
        y -= now.value
        return y + float(now.value * now.value)

    return f, put(Fraction(1, 3)), put(Fraction(5))


@case
def all_numbers_of_a_fraction():
    now, put = place(Fraction(7, 3))

    def f(x):
        value = now.value
        whole = int(value) + round(value) + bool(value) + (value > 1) + math.floor(value)
        part = complex(value).real + float(abs(value)) - float(-value) + float(round(value, 1))
        return x * (whole + part) + divmod(value, 2)[0] + value.numerator

    return f, put(Fraction(1, 3)), put(Fraction(0))


@case
def decimals_and_durations():
    now, put = place((Decimal("0.5"), datetime.timedelta(seconds=2), datetime.date(2020, 1, 1)))

    def f(x):
        number, duration, day = now.value
        return x * float(number) + duration.total_seconds() + day.year

    return f, put((Decimal("0.25"), datetime.timedelta(seconds=3), datetime.date(2021, 1, 1)))


def with_attribute(kind, *args):
    made = type(kind.__name__, (kind,), {"twice": lambda self: 2.0 * self.unit})(*args)
    made.unit = 2.0
    return made


@case
def attributes_of_numbers_and_texts():
    numbers = [with_attribute(float, 2.0), with_attribute(int, 3), with_attribute(str, "a")]

    def f(x):
        real, whole, text = numbers
        return x * real.unit + whole.twice() + text.unit * len(text) + real * whole

    changes = [
        attribute(each, "unit", value) for each, value in zip(numbers, (3.0, 4.0, 5.0), strict=True)
    ]
    return f, *changes


@case
def attributes_of_members():
    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 2

    Level.LOW.weight, Level.HIGH.weight = 2.0, 5.0
    now, put = place(Level.LOW)
    change = attribute(Level.LOW, "weight", 3.0)
    return (lambda x: x * now.value + now.value.weight), change, put(Level.HIGH)


class Unit(np.ndarray):
    def total(self):
        return np.sum(self) * self.unit


@case
def attributes_of_arrays():
    array = np.arange(3.0).view(Unit)
    array.unit = 2.0
    changes = attribute(array, "unit", 3.0), lambda: array.__setitem__(0, 5.0)
    return (lambda x: x * array.unit + array.total()), *changes


@case
def masked_arrays():
    array = np.ma.array([1.0, 2.0], mask=[False, True], fill_value=3.0)
    changes = [
        attribute(array, "mask", [False, False]),
        attribute(array, "fill_value", 9.0),
        lambda: array.__setitem__(0, 5.0),
        lambda: array.__setitem__(0, np.ma.masked),
    ]
    return (lambda x: x * array.sum() + array.fill_value + array.mask[0]), *changes


@case
def classes_of_arrays():
    class Product(np.ndarray):
        def __mul__(self, other):
            return np.asarray(self) @ np.asarray(other)

    values = np.arange(4.0).reshape(2, 2)
    now, put = place(values.view(Product))
    return (lambda x: x * np.sum(now.value * now.value)), put(values)


@case
def flags_of_arrays():
    array = np.arange(3.0)
    return (lambda x: x * (2.0 if array.flags.writeable else 1.0)), lambda: array.setflags(write=0)


@case
def arrays_of_objects():
    array = np.array([1.0, [2.0]], dtype=object)
    changes = lambda: array[1].append(3.0), lambda: array.__setitem__(0, 4.0)
    return (lambda x: x * array[0] + sum(array[1])), *changes


# Containers.


class Observations:
    """What subclasses of containers add, which reads them."""

    def total(self):
        return sum(self) + len(self) + (5.0 in self) + max(*self)

    def by_numpy(self):
        return np.sum(list(self)) + np.asarray(list(self)).size

    @property
    def squares(self):
        return sum([v * v for v in self]) if self else 7.0


def observed(kind, add):
    held = type(kind.__name__, (Observations, kind), {})([1.0, 2.0])

    def f(x):
        return x * held.total() + held.by_numpy() + held.squares

    return f, lambda: getattr(held, add)(5.0)


for kind, name in (
    (list, "append"),
    (collections.deque, "append"),
    (set, "add"),
    (collections.UserList, "append"),
):

    @case
    def subclass(kind=kind, name=name):
        return observed(kind, name)


@case
def numpy_of_a_subclass():
    class Row(list):
        def total(self):
            return np.sum(self) + (1.0 if self else 2.0)

    row = Row()
    return (lambda x: x * row.total()), lambda: row.append(5.0), lambda: row.append(2.0)


@case
def user_lists():
    held = collections.UserList([1.0, 2.0])

    def f(x):
        total = x * sum(held) + len(held) + (5.0 in held)
        for v in held:
            total = total + v
        return total

    return f, lambda: held.append(5.0), lambda: held.__setitem__(0, 7.0), held.pop


@case
def user_lists_alone():
    held = collections.UserList([1.0, 2.0])
    return (lambda x: x * sum(held)), lambda: held.append(5.0)


@case
def user_dicts():
    held = collections.UserDict(a=1.0)

    def f(x):
        found = x * len(held) + held["a"] + held.get("b", 7.0) + ("c" in held)
        for key, value in held.items():
            found = found + value * len(key)
        return found

    changes = [lambda key=key: held.update({key: 2.0}) for key in ("b", "a", "c")]
    return f, *changes


@case
def user_texts():
    held = collections.UserString("abc")
    return (lambda x: x * len(held)), attribute(held, "data", "abcde")


@case
def chains_of_dicts():
    first, last = {"a": 1.0}, {"b": 2.0}
    held = collections.ChainMap(first, last)

    def f(x):
        return x * held["b"] + len(held) + sum(held.values()) + held.get("z", 4.0)

    changes = [
        lambda: first.update(b=3.0),
        lambda: last.update(c=4.0),
        lambda: held.maps.append({"z": 5.0}),
    ]
    return f, *changes


@case
def what_counters_lack():
    held = collections.Counter("aab")
    return (lambda x: x * held["z"] + 1.0), lambda: held.update("zz")


@case
def what_dicts_make():
    now, put = place(3.0)
    made = collections.defaultdict(lambda: now.value)

    class Table(dict):
        def __missing__(self, key):
            return self.base * len(key)

    table = Table()
    table.base = 1.0

    def f(x):
        found = x * made["q"] + table["q"]
        del made["q"]
        return found

    return f, put(4.0), attribute(table, "base", 2.0), lambda: table.update(q=9.0)


@case
def weak_dicts():
    one, other = Settings(), Settings()
    keys, values = weakref.WeakKeyDictionary({one: 2.0}), weakref.WeakValueDictionary(a=one)

    def f(x):
        return x * keys[one] + len(keys) + values["a"].rate + len(values)

    changes = [
        lambda: keys.update({other: 3.0}),
        attribute(one, "rate", 4.0),
        lambda: values.update(b=other),
    ]
    return f, *changes


@case
def views_of_dicts():
    held = {"a": 1.0}
    keys, values, items = held.keys(), held.values(), held.items()

    def f(x):
        return x * sum(values) + ("b" in keys) + len(items) + sum(v for _, v in items)

    return f, lambda: held.update(a=2.0), lambda: held.update(b=3.0)


@case
def buffers():
    numbers, octets = of_python.array("d", [1.0, 2.0]), bytearray(b"abc")
    values = np.arange(3.0)
    view = memoryview(values)

    def f(x):
        return x * sum(numbers) + len(numbers) + sum(octets) + sum(view) + np.asarray(numbers)[0]

    changes = [
        lambda: numbers.append(3.0),
        lambda: octets.append(3),
        lambda: numbers.__setitem__(0, 5.0),
        lambda: octets.__setitem__(0, 5),
        lambda: values.__setitem__(2, 5.0),
    ]
    return f, *changes


@case
def arrays_of_c():
    numbers = (ctypes.c_double * 3)(1.0, 2.0, 3.0)
    return (lambda x: x * sum(numbers)), lambda: numbers.__setitem__(0, 5.0)


# What Python asks of objects.


class Settings:
    def __init__(self):
        self.rate, self.items, self.w, self.inner = 1.0, [1.0], np.ones(2), [[2.0]]


@case
def copies():
    held = Settings()

    def f(x):
        shallow, deep = copy.copy(held), copy.deepcopy(held)
        found = x * shallow.rate + sum(shallow.items) + np.sum(shallow.w) * x
        return found + deep.rate + np.sum(deep.w) + deep.inner[0][0]

    changes = [
        attribute(held, "rate", 2.0),
        lambda: held.items.append(3.0),
        lambda: held.w.__setitem__(0, 5.0),
        attribute(held, "w", np.zeros(2)),
        lambda: held.inner[0].__setitem__(0, 6.0),
    ]
    return f, *changes


@case
def patterns():
    held = types.SimpleNamespace(rate=1.0, inner=Settings())

    def f(x):
        match held:
            case types.SimpleNamespace(rate=rate, inner=Settings(w=w)):
                return x * rate + np.sum(w * x)
        return x

    changes = [
        attribute(held, "rate", 2.0),
        attribute(held.inner, "w", np.zeros(3)),
        lambda: held.inner.w.__setitem__(0, 4.0),
    ]
    return f, *changes


class Quantity:
    def __init__(self, value):
        self.value = value

    def __float__(self):
        return float(self.value)

    def __index__(self):
        return int(self.value)

    def __bool__(self):
        return self.value > 2

    def __round__(self, digits=None):
        return self.value * 10.0

    def __floor__(self):
        return self.value + 20.0

    def __hash__(self):
        return int(self.value)

    def __str__(self):
        return "a" * int(self.value)

    __repr__ = __str__

    def __eq__(self, other):
        return self.value == other


ASKED = [
    lambda x, q: x * float(q),
    lambda x, q: x * int(q),
    lambda x, q: x * complex(q).real,
    lambda x, q: x * (3.0 if q else 4.0),
    lambda x, q: x * bool(q) + (1.0 if not q else 2.0),
    lambda x, q: x * round(q),
    lambda x, q: x * math.floor(q) + math.sqrt(q),
    lambda x, q: x * [1.0, 2.0, 3.0, 4.0, 5.0][q] + sum(range(q)),
    lambda x, q: x * np.arange(5.0)[q] + np.eye(5)[q, 2],
    lambda x, q: x * len(str(q)),
    lambda x, q: x * len(f"{q!r}"),
    lambda x, q: x * hash(q),
]
for asked in ASKED:

    @case
    def special_methods(asked=asked):
        held = Quantity(1)
        return (lambda x: asked(x, held)), *(attribute(held, "value", v) for v in (4, 2))


class Series:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter([v * scale.value for v in self.items])


class Places:
    def __init__(self, items):
        self.items = items

    def __getitem__(self, place):
        return self.items[place] * scale.value


scale, put_scale = place(1.0)
GONE_ALONG = [
    lambda s: sum(s),
    lambda s: len(list(s)) + max(s) + sum(sorted(s)),
    lambda s: sum(tuple(s)) + len(set(s)) + sum(collections.deque(s)),
    lambda s: sum(v for v in s) + sum([2.0 * v for v in s]) + sum({v + 1 for v in s}),
    lambda s: sum(a * b for a, b in zip(s, s, strict=True)) + sum(k * v for k, v in enumerate(s)),
    lambda s: sum(map(float, s)) + (2.0 in s) + max(*s),
    lambda s: sum([*s]) + functools.reduce(lambda a, b: a + b, s),
]
for kind in (Series, Places):
    for taken in GONE_ALONG:

        @case
        def iterables(kind=kind, taken=taken):
            held = kind([1.0, 2.0])
            return (lambda x: x * taken(held)), lambda: held.items.append(5.0), put_scale(2.0)


@case
def sequences_by_their_base():
    class Sequence(collections.abc.Sequence):
        def __len__(self):
            return len(items)

        def __getitem__(self, place):
            return items[place]

    items, held = [1.0, 2.0], Sequence()

    def f(x):
        return x * sum(held) + (5.0 in held) + held.index(2.0) + len([*held])

    return f, lambda: items.append(5.0), lambda: items.insert(0, 3.0)


@case
def contexts():
    now = contextlib.nullcontext(2.0)

    def f(x):
        with now as value:
            return x * value

    return f, attribute(now, "enter_result", 3.0)


@case
def distributions():
    normal = scipy.stats.norm(loc=0.0, scale=2.0)
    return (lambda x: normal.logpdf(x)), lambda: normal.kwds.update(scale=3.0)


# Functions that code calls which nbta does not follow.


class Weighted:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value * scale.value < other.value * scale.value

    def __add__(self, other):
        return Weighted(self.value + other.value * scale.value)

    def __radd__(self, other):
        return Weighted(self.value * scale.value)

    def __array__(self, dtype=None, copy=None):
        return np.array([scale.value, 2.0])

    def __format__(self, spec):
        return str(scale.value)

    def keys(self):
        return ["a"]

    def __getitem__(self, key):
        return scale.value

    def total(self, by=1.0):
        return scale.value * by


@functools.total_ordering
class Ordered(Weighted):
    def __eq__(self, other):
        return self.value == other.value


@functools.singledispatch
def dispatched(value):
    return value * scale.value


@contextlib.contextmanager
def managed():
    yield scale.value


def in_context(x):
    with managed() as value:
        return x * value


def scaled(value):
    return value * scale.value


ROW, ONE, TWO = Series([1.0, 2.0]), Ordered(1.0), Ordered(2.0)
NOT_FOLLOWED = [
    lambda x: x * operator.methodcaller("total", by=2.0)(ONE),
    lambda x: x * sum(itertools.chain(ROW, ROW)) + math.fsum(ROW) + math.prod(ROW),
    lambda x: x * statistics.mean(ROW) + sum(dict(ONE).values()) + sum({**ONE}.values()),
    lambda x: x * np.sum(np.asarray(ONE)) + float(f"{ONE}"),
    lambda x: x * sum([ONE, TWO]).value + functools.reduce(operator.add, [ONE, TWO]).value,
    lambda x: x * dispatched(2.0) + (1.0 if Ordered(1.0) <= ONE else 2.0),
    in_context,
    lambda x: x * sorted([1.0, 2.0], key=functools.cmp_to_key(lambda a, b: scaled(b - a)))[0],
    lambda x: x * np.sum(np.vectorize(scaled)(np.arange(3.0))),
    lambda x: x * np.sum(np.apply_along_axis(scaled, 0, np.ones((2, 2)))),
    lambda x: x * np.sum(np.piecewise(np.arange(3.0), [np.arange(3.0) > 1], [scaled, 0.0])),
    lambda x: x * float(re.sub("a", lambda found: str(scaled(1.0)), "a")),
    lambda x: x * sum(itertools.accumulate([1.0, 2.0], lambda a, b: a + scaled(b))),
    lambda x: x * sum(itertools.islice(iter(lambda: scaled(1.0), None), 3)),
    lambda x: x * scipy.optimize.brentq(lambda v: v - scaled(1.0), -10.0, 10.0),
    lambda x: x * heapq.nlargest(1, [1.0, 2.0], key=lambda v: v * (scale.value - 1.5))[0],
]
for asked in NOT_FOLLOWED:

    @case
    def functions_not_followed(asked=asked):
        scale.value = 1.0
        return asked, put_scale(2.0), put_scale(3.0)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("make", CASES)
def test_call_gives_what_python_gives_now(make, compiled):
    check(make, compiled)
