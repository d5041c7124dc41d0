"""Objects of jitclasses that a function reads from outside: by their fields, as they are now."""

import gc
import weakref
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.experimental import jitclass

import nbta

X = np.array([0.5, 1.5, 0.7])


@jitclass([("w", numba.float64[:]), ("b", numba.float64), ("n", numba.int64)])
class Model:
    def __init__(self, w, b):
        self.w = w
        self.b = b
        self.n = 2

    @property
    def twice(self):
        return 2.0 * self.b

    @twice.setter
    def twice(self, value):
        self.b = value / 2.0

    @staticmethod
    def squared(v):
        return v * v

    def value(self, x):
        total = self.b
        for i in range(len(x)):
            total += self.w[i] * self.squared(x[i]) ** self.n
        return total

    def __getitem__(self, i):
        return self.w[i] * self.b

    def step(self, v):
        self.b = v

    def scale(self, v):
        self.w[0] = v


@jitclass([("model", Model.class_type.instance_type), ("scale", numba.float32)])
class Outer:
    def __init__(self, model, scale):
        self.model = model
        self.scale = scale

    def value(self, x):
        return self.model.value(x) * self.scale + self.model.b


MODEL, OTHER = Model(np.ones(3), 2.0), Model(np.ones(3), 1.0)
OUTER = Outer(MODEL, 0.5)
ITEMS, SPACE = {"m": [MODEL, OTHER]}, SimpleNamespace(m=MODEL)
VALUE = MODEL.value


class Holder:
    def __init__(self, model):
        self.model = model

    def loss(self, x):
        return self.model.value(x) * self.model.b


HOLDER = Holder(MODEL)


@numba.njit
def helper(model, x):
    return model.value(x) * model.b


def by_global(x):
    return MODEL.value(x) * np.sum(MODEL.w * x)


def by_number(x):
    return MODEL.b * np.sum(x) ** MODEL.n


def by_property(x):
    return MODEL.twice * x[0]


def by_item(x):
    return ITEMS["m"][0].value(x) + ITEMS["m"][1].value(x)


def by_loop(x):
    total = 0.0
    for model in ITEMS["m"]:
        total += model.value(x) * model.b
    return total


def by_attribute(x):
    return SPACE.m.value(x) * SPACE.m.w[1]


def by_object(x):
    return HOLDER.loss(x)


def by_default(x, model=MODEL):
    return model.value(x)


def by_helper(x):
    return helper(MODEL, x)


def by_method(x):
    return VALUE(x) * x[1]


def by_known_arguments(x):
    return x[0] * MODEL.value(np.ones(3)) + x[1] * helper(MODEL, np.ones(3))


def by_nested(x):
    return OUTER.value(x) * OUTER.model.b + np.sum(OUTER.model.w * x)


def by_special_method(x):
    return MODEL[1] * x[0] + MODEL[2] * x[1]


def by_name(x):
    return getattr(MODEL, "b") * np.sum(getattr(MODEL, "w") * x)  # noqa: B009


def by_class(x):
    return MODEL.b * np.sum(x) if isinstance(MODEL, Model) else x[0]


def by_branch(x):
    return MODEL.value(x) if x[0] > 0.4 else OTHER.value(x)


def by_rows(x):
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.6:
            total += MODEL.value(x * i)
    return total


def enclosed():
    model = MODEL

    def by_cell(x):
        return model.value(x) + model.b * np.sum(model.w * x)

    return by_cell


PROGRAMS = [
    by_global, by_number, by_property, by_item, by_loop, by_attribute, by_object, by_default,
    by_helper, by_method, by_known_arguments, by_nested, by_special_method, by_name, by_class,
    by_branch, by_rows, enclosed(),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _anew():
    MODEL.w, MODEL.b, MODEL.n, OTHER.b = np.array([0.3, -0.7, 1.2]), 2.0, 2, 1.0
    OUTER.model, OUTER.scale = MODEL, 0.5


def differences(f, x):
    steps = 1e-6 * np.eye(len(x))
    return np.array([(f(x + step) - f(x - step)) / 2e-6 for step in steps])


def holds(f, traced):
    value, slope = traced(X)
    np.testing.assert_allclose(value, f(X), 1e-12)
    np.testing.assert_allclose(slope, differences(f, X), 1e-5, 1e-8)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_fields_are_what_they_are_now(f, compiled):
    traced = nbta.value_and_grad(f, compiled=compiled)
    holds(f, traced)
    before = traced.traces
    MODEL.w[1] = 4.0
    holds(f, traced)
    MODEL.w = np.array([1.0, 0.5, 0.25])
    holds(f, traced)
    if f is not by_known_arguments:  # which goes by what the array holds
        assert traced.traces == before
    MODEL.b = 3.5
    holds(f, traced)
    MODEL.n = 1
    holds(f, traced)
    OUTER.model = OTHER
    holds(f, traced)


@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_have_the_dtypes_of_fields(compiled):
    outer = Outer(MODEL, 0.1)
    f = lambda x: outer.value(x)  # noqa: E731
    np.testing.assert_allclose(nbta.function(f, compiled=compiled)(X), f(X), 1e-14)
    small = X.astype(np.float32)
    g = lambda x: x * outer.scale * MODEL.b  # noqa: E731
    found = nbta.function(g, compiled=compiled)(small)
    assert found.dtype == g(small).dtype
    np.testing.assert_array_equal(found, g(small))


@pytest.mark.parametrize("compiled", [False, True])
def test_objects_of_what_python_knows_are_the_functions_own(compiled):
    def f(x):
        model = Model(np.array([1.0, 2.0, 3.0]), 2.0)
        first = model.value(x)
        model.step(x[0])
        model.scale(x[1])
        kind = 1.0 if isinstance(model, Model) else 0.0
        return first * model.value(x) + kind

    traced = nbta.value_and_grad(f, compiled=compiled)
    holds(f, traced)


@pytest.mark.parametrize("name", ["step", "scale", "assigned", "set", "added", "item"])
def test_outer_objects_are_not_changed(name):
    def assigned(x):
        MODEL.b = 1.0
        return x[0]

    def set_(x):
        MODEL.twice = x[0]
        return x[0]

    def added(x):
        MODEL.n += 1
        return x[0]

    def item(x):
        MODEL.w[0] = x[0]
        return x[0]

    changes = {
        "step": lambda x: MODEL.step(x[0]), "scale": lambda x: MODEL.scale(x[0]),
        "assigned": assigned, "set": set_, "added": added, "item": item,
    }  # fmt: skip
    words = r"(Model\.[bn]|w) is (assigned|from outside).*may not change it: give"
    held = MODEL.w.copy(), MODEL.b, MODEL.n
    with pytest.raises(nbta.NbtaError, match=words):
        nbta.function(changes[name])(X)
    np.testing.assert_array_equal(MODEL.w, held[0])
    assert (MODEL.b, MODEL.n) == held[1:]


def test_a_trace_keeps_no_object_alive():
    w = np.ones(20_000)
    space, held = SimpleNamespace(m=Model(w, 2.0)), weakref.ref(w)
    traced = nbta.function(lambda x: space.m.value(x))
    np.testing.assert_allclose(traced(w), space.m.value(w))
    del space.m, w
    gc.collect()
    assert held() is None
