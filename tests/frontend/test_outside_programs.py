"""Programs of many fields whose data outside changes between calls."""

import collections
import enum
import functools
import gc
import operator
import types
import weakref

import numpy as np
import pytest

import nbta

X = np.array([1.0, 2.0, 3.0])


def held(f, *changes):
    """A traced function gives what Python gives, at first and after each change."""
    traced = nbta.value_and_grad(f)
    for change in (lambda: None, *changes):
        change()
        value, slope = traced(X)
        np.testing.assert_allclose(value, f(X), rtol=1e-12)
        with np.errstate(all="ignore"):
            wanted = [(f(X + s) - f(X - s)) / 2e-6 for s in 1e-6 * np.eye(3)]
        np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-5)


def test_rates_of_an_epidemic_in_a_named_tuple():
    rates = collections.namedtuple("Rates", "beta gamma")
    now = rates(0.5, 0.1)

    def f(x):
        s, i = x[0], x[1]
        for _ in range(20):
            new = now.beta * s * i
            s, i = s - 0.01 * new, i + 0.01 * (new - now.gamma * i)
        return s + i

    def change():
        nonlocal now
        now = now._replace(beta=0.9)

    held(f, change)


def test_lenses_in_an_ordered_dict():
    lenses = collections.OrderedDict(a={"f": 2.0, "d": 1.0}, b={"f": 3.0, "d": 0.5})

    def f(x):
        y, t = x[0], x[1]
        for lens in lenses.values():
            t = t - y / lens["f"]
            y = y + t * lens["d"]
        return y + t

    held(f, lambda: lenses["a"].update(f=5.0), lambda: lenses.move_to_end("a"), lenses.popitem)


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


def test_a_history_a_set_of_names_and_a_mode():
    history, names = collections.deque([1.0, 2.0, 3.0], maxlen=3), {1, 2}
    own = types.SimpleNamespace(mode=Mode.FAST)

    def f(x):
        found = np.sum(x) * sum(history) + history[0]
        found = found * (2.0 if 3 in names else len(names))
        return found if own.mode is Mode.FAST else found * x[0]

    held(
        f,
        lambda: history.append(7.0),
        lambda: history.rotate(1),
        lambda: names.add(3),
        lambda: names.discard(3),
        lambda: setattr(own, "mode", Mode.SLOW),
    )


def test_attributes_of_classes_slots_and_functions():
    class Base:
        k, w = 2.0, np.ones(3)

        @classmethod
        def scale(cls, x):
            return x * cls.k

    class Derived(Base):
        __slots__ = ("a",)

        def f(self, x):
            return np.sum(self.scale(x) * self.w) * self.a + np.sum(x)

    own = Derived()
    own.a = 1.0

    def f(x):
        return own.f(x) * f.gain

    f.gain = 2.0
    held(
        f,
        lambda: setattr(Base, "k", 5.0),
        lambda: setattr(Base, "w", np.arange(3.0)),
        lambda: operator.setitem(Base.w, 0, 9.0),
        lambda: setattr(Derived, "k", 7.0),
        lambda: setattr(own, "a", 3.0),
        lambda: setattr(f, "gain", 4.0),
        lambda: setattr(Derived, "f", lambda self, x: np.sum(x) * self.a),
    )


class Net:
    def __init__(self):
        self.layers = [(np.eye(3), np.zeros(3)), (np.ones((2, 3)), np.ones(2))]

    def __call__(self, x):
        for w, b in self.layers:
            x = np.tanh(w @ x + b)
        return np.sum(x)


def test_a_net_that_is_called_directly():
    net = Net()
    held(
        net,
        lambda: operator.setitem(net.layers[0][0], (1, 1), 3.0),
        lambda: operator.setitem(net.layers, 1, (np.full((2, 3), 0.3), np.ones(2))),
        lambda: net.layers.append((np.ones((1, 2)), np.zeros(1))),
    )


class Node:
    def __init__(self, value, *children):
        self.value, self.children = value, children

    def total(self, x):
        return self.value * x[0] + sum(child.total(x) for child in self.children)


def test_a_tree():
    tree = Node(1.0, Node(2.0), Node(3.0, Node(4.0)))
    held(
        lambda x: tree.total(x),
        lambda: setattr(tree.children[1].children[0], "value", 10.0),
        lambda: setattr(tree, "children", (Node(5.0),)),
    )


def test_modules_proxies_and_dicts_of_attributes():
    module, inner = types.ModuleType("settings"), {"a": 1.0, "w": np.ones(3)}
    module.rate, module.w, proxy = 2.0, np.ones(3), types.MappingProxyType(inner)
    own, options = types.SimpleNamespace(a=1.0, w=np.ones(3)), {}

    def f(x):
        try:
            power = options["power"]
        except KeyError:
            power = 1.0
        found = np.sum(x * module.w * proxy["w"]) * module.rate * proxy["a"] * power
        found = found + sum(v for k, v in vars(own).items() if k == "a") * x[0]
        found = found + own.__dict__["a"] * getattr(own, "missing", 2.0) * x[1]
        return found + np.sum(operator.attrgetter("w")(own) * x)

    held(
        f,
        lambda: setattr(module, "rate", 3.0),
        lambda: setattr(module, "w", np.arange(3.0)),
        lambda: inner.update(a=4.0),
        lambda: inner.update(w=np.full(3, 2.0)),
        lambda: setattr(own, "a", 5.0),
        lambda: setattr(own, "missing", 7.0),
        lambda: operator.setitem(own.w, 1, 6.0),
        lambda: options.update(power=2.0),
        options.clear,
    )


def test_generators_stars_and_lists_of_functions():
    table, first, named = [(1, 2.0), (2, 3.0)], [2.0, 3.0], {"c": 1.0}
    steps = [np.sin, lambda v: v * 2.0]

    def terms():
        for n, c in table:
            yield n * c

    def scaled(x, a, b, c=0.0):
        return np.sum(x) * a + b * c

    def f(x):
        for step in steps:
            x = step(x)
        found = scaled(x, *first, **named) * sum(terms())
        return found + sum(c * x[0] ** n for n, c in table) + {n: c + 0.0 for n, c in table}[1]

    held(
        f,
        lambda: operator.setitem(table, 0, (1, 9.0)),
        lambda: table.append((3, 1.0)),
        lambda: operator.setitem(first, 0, 6.0),
        lambda: named.update(c=9.0),
        lambda: operator.setitem(steps, 1, lambda v: v * 3.0),
        steps.reverse,
    )


def test_arrays_that_numpy_and_scipy_are_given():
    ws, knots, values = [np.ones(3), np.arange(3.0)], np.arange(5.0), np.arange(5.0) ** 2
    matrix, limit = 2.0 * np.eye(3), np.full(3, 1.5)

    def f(x):
        found = np.sum(np.stack(ws) @ x) + np.sum(np.asarray(ws)[1] * x)
        found = found + np.sum(np.interp(x + 0.3, knots, values))
        found = found + np.sum(np.linalg.inv(matrix) @ x) * np.linalg.det(matrix)
        found = found + np.sum(np.where(x > limit, x, -x))
        return found if limit[0] > 1.0 else found * x[0]

    held(
        f,
        lambda: ws[0].fill(4.0),
        lambda: operator.setitem(ws, 1, np.full(3, 7.0)),
        lambda: operator.setitem(values, slice(None), 1.0),
        lambda: operator.setitem(knots, 1, 1.2),
        lambda: operator.setitem(matrix, (0, 1), 5.0),
        lambda: limit.fill(0.5),
    )


KINDS = [
    2.0, np.float32(3), np.ones(3, np.float32), np.ones((2, 3)), np.ones((2, 3))[:, ::-1],
    np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(5.0), np.ones(6)[::2], None,
    np.ones((1, 3)), np.arange(3), np.array([True, False, True]), (1.0, 2.0, 3.0),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False])
def test_values_of_all_kinds_in_one_place(compiled):
    value = np.ones(3)

    def f(x):
        return np.sum(x) if value is None else np.sum(x * np.asarray(value))

    traced = nbta.function(f, compiled=compiled)
    for _ in range(2):
        for value in KINDS:  # noqa: B007
            np.testing.assert_allclose(traced(X), f(X), rtol=1e-6)
    assert traced.traces <= len(KINDS)


def test_functions_with_a_cache_and_nested_derivatives():
    w, base = np.ones(3), 2.0
    inner = nbta.grad(lambda x: np.sum(w * x**3))
    part = functools.partial(lambda w, x: np.sum(w * x), w)

    def f(x):
        return np.sum(inner(x) ** 2) * base + part(x)

    def change():
        nonlocal w, base
        w, base = np.arange(3.0), 5.0

    held(f, lambda: w.fill(2.0), change)


def test_functions_without_source_and_without_conversion():
    names = {"np": np, "nbta": nbta, "w": np.ones(3), "k": 2.0, "d": {"a": 1.0}}
    exec("def f(x):\n    return nbta.sum(w * x) * k * d['a'] + nbta.sum(np.sin(w) * x)\n", names)
    f = names["f"]
    for traced in (nbta.function(f), nbta.function(lambda x: f(x) + 0.0)):
        names.update(w=np.ones(3), k=2.0)
        for change in ({}, {"w": np.arange(3.0)}, {"k": 5.0}, {"d": {"a": 3.0}}):
            names.update(change)
            np.testing.assert_allclose(traced(X), f(X))
            names["w"][:] += 1.0
            np.testing.assert_allclose(traced(X), f(X))

    n = 3.0

    def loop(x):
        def body(i, total):
            return i + 1, total + n * nbta.sum(names["w"] * x)

        return nbta.while_loop(lambda i, total: i < 3, body, (0, 0.0))[1]

    traced = nbta.function(loop, convert=False)
    for n in (3.0, 4.0, 4.0):
        np.testing.assert_allclose(traced(X), 3 * n * np.sum(names["w"] * X))
        names["w"][:] += 1.0


class Column:
    """Made when it is asked for, as a column of a table is."""

    def __init__(self, values):
        self.values = values


class Table:
    def __init__(self, **columns):
        self.columns = columns

    a = property(lambda self: Column(self.columns["a"]))

    def __getitem__(self, name):
        return Column(self.columns[name])


def test_parts_of_a_table_that_are_made_when_they_are_asked_for():
    table = Table(a=np.ones(3), b=np.arange(3.0))
    traced = nbta.function(lambda x: np.sum(x * table["b"].values * table.a.values))
    for column in (np.ones(3), np.arange(3.0), np.full(3, 5.0)):
        table.columns["a"] = column
        table.columns["b"][0] += 1.0
        assert traced(X) == np.sum(X * table.columns["b"] * column)
    assert traced.traces == 1


class Cyclic:
    def __init__(self):
        self.k, self.items = 2.0, [self]
        self.child, self.act = types.SimpleNamespace(parent=self), lambda v: v * self.k

    @nbta.function
    def f(self, x):
        return np.sum(self.act(x)) * self.child.parent.k * self.items[0].k


def test_objects_that_refer_to_themselves_are_let_go():
    own = Cyclic()
    for own.k in (2.0, 3.0):
        assert own.f(X) == 6.0 * own.k**3
    gone = weakref.ref(own)
    del own
    gc.collect()
    assert gone() is None


class Scaled:
    w, k = np.ones(3), 2.0

    def __init__(self):
        self.b = 1.0


def test_attributes_of_a_class_whose_objects_the_function_makes(monkeypatch):
    def f(x):
        own = Scaled()
        return np.sum(own.w * x) * own.k * own.b

    held(
        f,
        lambda: monkeypatch.setattr(Scaled, "w", np.arange(3.0)),
        lambda: monkeypatch.setattr(Scaled, "k", 5.0),
        lambda: Scaled.w.fill(3.0),
    )


def test_an_error_that_the_function_raises_is_raised_at_once():
    w, calls = np.ones(3), []

    def f(x):
        calls.append(1)
        raise ValueError(f"mine of {len(calls)}")

    with pytest.raises(ValueError, match="mine of 1"):
        nbta.function(lambda x: f(x * w))(X)
    assert len(calls) == 1
