"""Structured arrays and objects of jitclasses: arguments, made inside, with gradients."""

from abc import ABC, ABCMeta, abstractmethod
from dataclasses import dataclass, field

import numba
import numpy as np
import pytest
from numba.experimental import jitclass

import nbta

POINT = np.dtype([("a", np.float64), ("b", np.float64), ("n", np.int64)])
BODY = np.dtype([("place", np.float64, (3,)), ("mass", np.float32), ("at", POINT)])
X = np.linspace(0.1, 3.0, 6)


def points():
    found = np.zeros(6, POINT)
    found["a"], found["b"], found["n"] = np.arange(6.0), 2.0, np.arange(6)
    return found


def bodies():
    found = np.zeros(6, BODY)
    found["place"], found["mass"] = np.arange(18.0).reshape(6, 3), np.arange(6)
    found["at"]["a"] = 3.0
    return found


def fields_of_an_argument(x, r):
    total = 0.0
    for i in range(len(r)):
        total += r[i]["a"] * x[i] + r[i]["b"] * x[i] ** 2 + r["n"][i]
    return total


def attributes_in_njit(x, r):
    total = 0.0
    for i in range(r.shape[0]):
        total += r[i].a * x[i] + r.b[i] * x[i] ** 2
    return total


def made_inside(x):
    r = np.empty(len(x), dtype=POINT)
    for i in range(len(x)):
        r[i]["a"] = x[i] ** 2
        r[i]["b"] = x[i]
        r[i]["n"] = i
        r[i]["a"] += 1.0
    total = 0.0
    for each in r:
        total += each["a"] * each["b"] + each["n"]
    return total


def whole_fields(x):
    r = np.zeros(6, POINT)
    r["a"] = x
    r["b"] = x * x
    r["a"][2] = 5.0 * x[1]
    return np.sum(r["a"] * r["b"])


def whole_records_and_views(x):
    r = np.zeros(6, POINT)
    for i in range(6):
        r[i] = (x[i], x[i] ** 2, i)
    r[0] = r[3]
    part = r[1:4]
    part["a"][0] = 7.0
    alone = r[4].copy()
    alone["a"] = 9.0
    return np.sum(r["a"] * r["b"]) + alone["a"] * alone["b"]


def fields_with_axes_and_in_fields(x, s):
    total = 0.0
    for i in range(len(s)):
        total += s[i]["place"][1] * x[i] + s["place"][i, 2] * x[i]
        total += s[i]["mass"] * x[i] + s[i]["at"]["a"] * x[i]
    return total


def one_record_that_branches_change(x):
    r = np.zeros(1, POINT)[0]
    for i in range(20):
        if x[i % 6] > 1.0:
            r["a"] += x[i % 6]
        else:
            r["b"] += x[i % 6] ** 2
    return r["a"] * r["b"]


def a_copy_that_changes(x, r):
    r = r.copy()
    for i in range(6):
        r["a"][i] *= x[i]
    return np.sum(r["a"])


TABLE = points()


def of_the_module(x):
    total = 0.0
    for i in range(6):
        total += TABLE[i]["a"] * x[i] + TABLE["b"][i] * x[i]
    return total


@jitclass([("w", numba.float64[:]), ("b", numba.float64), ("n", numba.int64)])
class Model:
    def __init__(self, w, b):
        self.w = w
        self.b = b
        self.n = 0

    @property
    def twice(self):
        return 2.0 * self.b

    @staticmethod
    def squared(v):
        return v * v

    def value(self, x):
        total = self.b
        for i in range(len(x)):
            total += self.w[i] * self.squared(x[i])
            if x[i] > 1.0:
                self.n += 1
        return total

    def step(self, v):
        self.b = self.b * 0.5 + v


@jitclass([("model", Model.class_type.instance_type), ("scale", numba.float64)])
class Outer:
    def __init__(self, model, scale):
        self.model = model
        self.scale = scale

    def run(self, x):
        return self.model.value(x) * self.scale


def model():
    return Model(np.arange(6.0), 2.0)


def methods_and_properties(x, m):
    return m.value(x) * m.twice + m.n


def fields_that_change(x, m):
    for i in range(len(x)):
        m.step(x[i])
    return m.b


def objects_in_objects(x, o):
    return o.run(x)


def an_object_made_inside(x):
    m = Model(x, x[0])
    m.n = 2.7  # an integer
    return m.value(x) * m.b + m.n


def arrays_of_fields_that_change(x, m):
    total = 0.0
    for i in range(20):
        if x[i % 6] > 1.0:
            m.w[i % 6] = x[i % 6] ** 2
        total += m.w[i % 6]
    return total


#: Functions, what makes their other arguments, and whether they run in Python and in Numba.
PROGRAMS = [
    (fields_of_an_argument, lambda: (points(),), "both"),
    (attributes_in_njit, lambda: (points(),), "numba"),
    (made_inside, tuple, "both"),
    (whole_fields, tuple, "python"),
    (whole_records_and_views, tuple, "python"),
    (fields_with_axes_and_in_fields, lambda: (bodies(),), "python"),
    (one_record_that_branches_change, tuple, "python"),
    (a_copy_that_changes, lambda: (points(),), "python"),
    (of_the_module, tuple, "both"),
    (methods_and_properties, lambda: (model(),), "both"),
    (fields_that_change, lambda: (model(),), "both"),
    (objects_in_objects, lambda: (Outer(model(), 3.0),), "both"),
    (an_object_made_inside, tuple, "both"),
    (arrays_of_fields_that_change, lambda: (model(),), "both"),
]


def slope(f, x, others, step=1e-6):
    """Central differences, each of other objects, as functions change these."""
    units = np.eye(len(x)) * step
    return [(f(x + u, *others()) - f(x - u, *others())) / (2 * step) for u in units]


@pytest.mark.parametrize(
    ("f", "others", "where"), PROGRAMS, ids=[f.__name__ for f, _, _ in PROGRAMS]
)
def test_values_and_gradients(f, others, where):
    for each in {"both": [f, numba.njit(f)], "numba": [numba.njit(f)], "python": [f]}[where]:
        for compiled in (False, True):
            value, gradient = nbta.value_and_grad(each, compiled=compiled)(X, *others())
            np.testing.assert_allclose(value, each(X, *others()), rtol=1e-12)
            np.testing.assert_allclose(gradient, slope(each, X, others), rtol=1e-6, atol=1e-6)


def test_records_are_results():
    def filled(x):
        r = np.zeros(3, POINT)
        r["a"] = x
        return r, r[1]

    for compiled in (False, True):
        found, one = nbta.function(filled, compiled=compiled)(X[:3])
        expected, expected_one = filled(X[:3])
        assert found.dtype == POINT
        np.testing.assert_array_equal(found, expected)
        assert one == expected_one
        same = nbta.function(lambda r: r, compiled=compiled)(bodies())
        np.testing.assert_array_equal(same, bodies())


def test_gradients_of_fields():
    kind = np.dtype([("a", np.float64), ("b", np.float64)])
    r = np.zeros(6, kind)
    r["a"], r["b"] = np.arange(6.0), 2.0
    found = nbta.grad(lambda r, x: np.sum(r["a"] * r["b"] * x))(r, X)
    assert found.dtype == kind
    np.testing.assert_allclose(found["a"], r["b"] * X)
    np.testing.assert_allclose(found["b"], r["a"] * X)
    with pytest.raises(nbta.InvalidArgumentError, match=r"args\[0\]\['n'\] is int64"):
        nbta.grad(lambda r, x: np.sum(r["a"] * x))(points(), X)


def test_lengths_share_a_graph_and_arguments_stay():
    f = nbta.value_and_grad(fields_of_an_argument)
    for n in (6, 4, 3):
        r = points()[:n]
        assert f(X[:n], r)[0] == pytest.approx(fields_of_an_argument(X[:n], r))
    assert f.traces == 1
    m = model()
    nbta.grad(methods_and_properties)(X, m)
    assert (m.n, m.b) == (0, 2.0)


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: TABLE[0]["q"], nbta.InvalidArgumentError, "no field 'q'; it has a, b, n"),
        (lambda x: TABLE[["a", "b"]], nbta.InvalidArgumentError, "several fields at once"),
        (lambda x: MODEL.value(x), nbta.UnimplementedError, "Model.n is assigned.* as an argument"),
    ],
)
def test_what_is_not_taken_is_told(f, error, words):
    with pytest.raises(error, match=words) as failed:
        nbta.function(f)(X)
    assert "test_records_and_objects.py" in str(failed.value)


MODEL = model()


def test_a_record_that_a_branch_chooses_is_refused():
    def best(x, r):
        found = r[0]
        for i in range(len(x)):
            if x[i] > 1.0:
                found = r[i]
        return found["a"] * x[0]

    with pytest.raises(nbta.InvalidArgumentError, match="'found' is"):
        nbta.grad(best)(X, points())


def test_typed_containers_in_a_jitclass_are_refused():
    items = numba.typed.List([1.0, 2.0])

    @jitclass([("items", numba.typeof(items))])
    class Holder:
        def __init__(self, items):
            self.items = items

    with pytest.raises(nbta.UnimplementedError, match="the field 'items' of Holder is a list"):
        nbta.grad(lambda x, h: x * h.items[0])(1.0, Holder(items))


@dataclass
class Body:
    mass: float
    place: np.ndarray
    speed: np.ndarray = field(default_factory=lambda: np.zeros(2))
    seen: list = field(default_factory=list)


@pytest.mark.parametrize("compiled", [False, True])
def test_arrays_of_factories_are_the_functions_own(compiled):
    def energy(x):
        bodies = [Body(1.0, np.array([x[0], 0.0])), Body(x[1], np.array([0.0, x[2]]))]
        for _ in range(3):
            one, other = bodies
            d = other.place - one.place
            pull = d / np.sqrt(d @ d + 0.1) ** 3
            one.speed += 0.1 * other.mass * pull
            other.speed[:] -= 0.1 * one.mass * pull
            for body in bodies:
                body.place += 0.1 * body.speed
                body.seen.append(body.place[0])
        return sum(b.mass * (b.speed @ b.speed) + sum(b.seen) for b in bodies)

    x = np.array([0.31, 0.74, 1.22])
    value, slope = nbta.value_and_grad(energy, compiled=compiled)(x)
    np.testing.assert_allclose(value, energy(x), 1e-12)
    steps = 1e-6 * np.eye(3)
    want = [(energy(x + step) - energy(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(slope, want, 1e-7)


def _asks_for_a_field(r):
    found = r[1]["a"] * (2.0 if hasattr(r[1], "a") else 3.0)
    found += r[2]["b"] * getattr(r[2], "b", 5.0) + getattr(r[0], "other", 7.0)
    found += 11.0 * hasattr(r, "a") + 13.0 * hasattr(r[0], "dtype") + 17.0 * hasattr(r, "shape")
    found += 19.0 * hasattr(r, "__name__") + 23.0 * hasattr(r[0], "__name__")
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [np.ndarray, np.recarray])
def test_fields_are_attributes_of_recarrays_alone(kind, compiled):
    given = points().view(kind)
    assert nbta.function(_asks_for_a_field, compiled=compiled)(given) == _asks_for_a_field(given)
    outer = nbta.function(lambda x: x * (2.0 if hasattr(given[1], "a") else 3.0))
    assert outer(1.0) == (2.0 if kind is np.recarray else 3.0)


NAMED = np.zeros(3, [("x", "f8"), ("name", "S5"), ("code", "U4"), ("day", "M8[D]")])
NAMED["x"], NAMED["name"], NAMED["code"] = X[:3], [b"one", b"two", b"one"], ["k", "l", "m"]

#: A text of a run is none of the texts that Python knows: an answer would be "no" always.
OF_TEXTS = [
    lambda x, r: x if r[0]["name"] == b"one" else 2.0 * x,
    lambda x, r: x if r[0]["name"] != b"one" else 2.0 * x,
    lambda x, r: x if r[0]["code"] in ("k", "z") else 2.0 * x,
    lambda x, r: x * {b"one": 1.0}.get(r[0]["name"], 2.0),
    lambda x, r: x * [b"two", b"one"].count(r[0]["name"]),
    lambda x, r: x if (r[0]["name"], 1) == (b"one", 1) else 2.0 * x,
    lambda x, r: x if r[0]["day"] == np.datetime64("1970-01-01") else 2.0 * x,
    lambda x, r: np.sum(np.where(r["name"] == b"one", x, 2.0 * x)),
]


@pytest.mark.parametrize("k", range(len(OF_TEXTS)))
def test_texts_of_a_run_are_not_compared(k):
    with pytest.raises(nbta.InvalidArgumentError, match="cannot be computed with"):
        nbta.grad(OF_TEXTS[k])(2.0, NAMED)


def test_fields_of_other_kinds_are_in_nobodys_way():
    def f(x, r):
        return np.sum(r["x"]) * x**2 * len(r)

    for given in (NAMED, NAMED[:2]):
        for compiled in (False, True):
            slope = nbta.grad(f, compiled=compiled)
            assert slope(2.0, given) == pytest.approx(4.0 * np.sum(given["x"]) * len(given))
    call = nbta.grad(lambda x, r: r["x"] * x**2, compiled=True)
    assert [call(1.0, r) for r in NAMED] == pytest.approx(2.0 * NAMED["x"])
    assert call.traces == 1


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", [bytes, np.bytes_, str, np.str_])
def test_texts_as_arguments_are_known_by_their_value(kind, compiled):
    one, two = (kind(v) if issubclass(kind, str) else kind(v.encode()) for v in ("one", "two"))
    slope = nbta.grad(lambda x, name: x**2 if name == one else x**3, compiled=compiled)
    for _ in range(3):
        assert (slope(2.0, one), slope(2.0, two)) == (4.0, 12.0)


def test_fields_in_one_place_are_refused():
    union = np.zeros(2, np.dtype({"names": ["a", "b"], "formats": ["f8", "f8"], "offsets": [0, 4]}))
    with pytest.raises(nbta.InvalidArgumentError, match="'a' and 'b' share memory"):
        nbta.grad(lambda r: np.sum(r["a"]))(union)


@jitclass([("v", numba.float64)])
class Cell:
    def __init__(self, v):
        self.v = v


def assigns_an_attribute(a, b, x):
    a.v = x
    return b.v * x


def assigns_a_field(a, b, x):
    a[0]["a"] = x
    return b[0]["a"] * x


def appends(a, b, x):
    a.append(np.full(2, x))
    return b[-1][0] * x


def sets_a_key(a, b, x):
    a["k"] = x
    return b["k"] * x


def _made_dict():
    found = numba.typed.Dict()
    found["k"] = 2.0
    return found


IN_TWO_PLACES = [
    (assigns_an_attribute, lambda: Cell(2.0)),
    (assigns_a_field, points),
    (appends, lambda: numba.typed.List([np.ones(2), np.ones(2)])),
    (sets_a_key, _made_dict),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("f", "make"), IN_TWO_PLACES, ids=lambda v: v.__name__)
def test_one_in_two_places_is_refused_where_it_changes(f, make, compiled):
    gradient = nbta.value_and_grad(f, argnums=2, compiled=compiled)
    for _ in range(2):
        value, slope = gradient(make(), make(), 3.0)
        expected = f(make(), make(), 3.0)
        assert value == expected
        assert slope == (f(make(), make(), 3.5) - f(make(), make(), 2.5))
        given = make()
        with pytest.raises(nbta.InvalidArgumentError, match="give a copy"):
            gradient(given, given, 3.0)


def changes_the_first(r, other, x):
    r["a"][2] = x
    return _sum(other) * x


def changes_the_second(other, r, x):
    return changes_the_first(r, other, x)


def _sum(part):
    return np.sum(part["a"]) if part.dtype.names else np.sum(part)


#: Two parts of one array of records, and what makes the array.
PARTS = [
    (points, lambda r: r, lambda r: r["a"]),
    (points, lambda r: r, lambda r: r["b"]),
    (points, lambda r: r[:4], lambda r: r[2:]),
    (points, lambda r: r[:3], lambda r: r[3:]),
    (points, lambda r: r[::-1], lambda r: r["a"][3:]),
    (bodies, lambda r: r["at"], lambda r: r["at"]["a"]),
    (bodies, lambda r: r["at"], lambda r: r["mass"]),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [changes_the_first, changes_the_second])
def test_parts_of_one_array_of_records_are_refused_where_they_share_items(f, compiled):
    gradient = nbta.value_and_grad(f, argnums=2, compiled=compiled)
    for make, one, other in PARTS:
        whole = make()
        parts = one(whole), other(whole)
        share = np.shares_memory(parts[0]["a"], parts[1]["a"] if parts[1].dtype.names else parts[1])
        parts = parts if f is changes_the_first else parts[::-1]
        if share:
            with pytest.raises(nbta.InvalidArgumentError, match=r"share items.*give a copy"):
                gradient(*parts, 3.0)
        else:
            value, slope = gradient(*parts, 3.0)
            assert value == f(*parts, 3.0)
            assert slope == value / 3.0


class Rule(ABC):
    def __init__(self, size):
        self.weights = np.zeros(size)
        self.weights[0] = 0.5

    @abstractmethod
    def begin(self, x):
        """Take the first numbers."""


class Trapezoid(Rule):
    def begin(self, x):
        self.weights[1:] = x[:-1]
        self.weights[-1] *= 0.5


class Counting(ABCMeta):
    """A metaclass whose classes make their objects by its own rule."""

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.scale = 3.0
        return made


class Scaled(metaclass=Counting):
    def __init__(self, scale):
        self.scale = scale


@pytest.mark.parametrize("compiled", [False, True])
def test_objects_of_abstract_classes_are_made_inside(compiled):
    def f(x):
        rule = Trapezoid(len(x))
        rule.begin(x)
        return np.sum(rule.weights * x) * Scaled(2.0).scale

    x = np.array([0.4, 1.3, -0.7])
    value, gradient = nbta.value_and_grad(f, compiled=compiled)(x)
    assert value == pytest.approx(f(x), rel=1e-14)
    slopes = [(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(gradient, slopes, rtol=1e-8)
