"""Objects of users' classes as structures, and functions over structures."""

import enum
import functools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

X = np.array([0.3, -0.7, 1.1])


@nbta.register_structure
@dataclass(frozen=True)
class Line:
    slope: Any
    offset: Any

    def at(self, x):
        return self.slope * x + self.offset


class Chain:
    """Has parts, and a name that is none."""

    def __init__(self, name, *lines):
        self.name, self.lines = name, lines


nbta.register_structure(Chain, lambda c: (c.lines, c.name), lambda name, lines: Chain(name, *lines))


def chained(chain, x):
    for line in chain.lines:
        x = np.tanh(line.at(x)) if chain.name == "tanh" else line.at(x)
    return np.sum(x)


@pytest.mark.parametrize("compiled", [False, True])
def test_objects_are_arguments_and_results(compiled):
    both = nbta.value_and_grad(chained, compiled=compiled)
    for offset in (0.5, 0.75, 0.25):  # later calls go the short way
        value, found = both(Chain("tanh", Line(2.0, offset), Line(X, 1.0)), X)
        inner = np.tanh(2.0 * X + offset)
        outer = np.tanh(X * inner + 1.0)
        np.testing.assert_allclose(value, np.sum(outer))
        assert type(found) is Chain
        assert found.name == "tanh"
        np.testing.assert_allclose(found.lines[1].slope, (1 - outer**2) * inner)
    plain = both(Chain("none", Line(2.0, 0.5), Line(X, 1.0)), X)[0]  # the rest is looked at
    np.testing.assert_allclose(plain, np.sum(X * (2.0 * X + 0.5) + 1.0))


def test_objects_as_the_state_of_loops_and_their_gradients():
    def last(line, x):
        return nbta.scan(lambda s, v: (Line(s.slope * v, s.offset + s.slope), s), line, x)[0]

    found = nbta.function(last)(Line(2.0, 0.0), X)
    np.testing.assert_allclose(
        [found.slope, found.offset], [2 * np.prod(X), 2 * 0.3 - 2 * 0.21 + 2]
    )
    check_grads(lambda line, x: last(line, x).offset, (Line(2.0, 0.0), X))

    def loop(line, x):
        for i in range(len(x)):
            line = Line(line.slope * x[i], line.offset + line.slope)
        return line

    for compiled in (False, True):
        again = nbta.function(loop, compiled=compiled)(Line(2.0, 0.0), np.tile(X, 4))
        want = loop(Line(2.0, 0.0), np.tile(X, 4))
        np.testing.assert_allclose([again.slope, again.offset], [want.slope, want.offset])


def test_jacobians_and_batches_of_objects():
    found = nbta.jacobian(lambda line: line.at(X))(Line(2.0, 1.0))
    np.testing.assert_array_equal(found.slope, X)
    np.testing.assert_array_equal(found.offset, np.ones(3))
    batch = nbta.value_and_grad(lambda w, line: line.at(w) ** 2, batch_axis=0)
    value, slope = batch(2.0, Line(X, np.ones(3)))
    np.testing.assert_allclose(value, np.sum((2 * X + 1) ** 2))
    np.testing.assert_allclose(slope, np.sum(2 * X * (2 * X + 1)))


def test_tree_map_of_several():
    one, other = {"a": Line(1.0, 2.0), "b": [X]}, {"a": Line(10.0, 20.0), "b": [X]}
    found = nbta.tree_map(lambda p, g: p + g, one, other)
    assert found["a"] == Line(11.0, 22.0)
    np.testing.assert_array_equal(found["b"][0], 2 * X)
    with pytest.raises(nbta.InvalidArgumentError, match="must be equal"):
        nbta.tree_map(np.add, one, {"a": 1.0})


def test_paths_name_fields():
    with pytest.raises(nbta.InvalidArgumentError, match=r"args\[0\]\.offset.*floats"):
        nbta.grad(lambda line: line.slope)(Line(1.0, 2))


def test_what_is_refused():
    class Plain:
        pass

    for call, words in (
        (lambda: nbta.register_structure(Plain), "is no dataclass"),
        (lambda: nbta.register_structure(Line), "is a structure already"),
        (lambda: nbta.register_structure(3), "is no class"),
        (lambda: nbta.grad(lambda x: 1.0)(Plain()), "register_structure"),
        (lambda: nbta.function(lambda x: x + x)(deque([1.0])), "register_structure"),
    ):
        with pytest.raises(nbta.InvalidArgumentError, match=words):
            call()


@nbta.register_structure
@dataclass
class Open:
    a: Any
    b: Any


def changed_in_a_branch(x):
    found = Open(1.0, 0.0)
    if x[0] > 0:
        found.b = x[1]
    else:
        found = Open(2.0, x[2])
    return found


def test_attributes_change_outside_of_loops_and_branches_alone():
    def swapped(p):
        p.a, p.b = p.b, p.a * 2.0
        return p

    given = Open(1.0, 3.0)
    assert nbta.function(swapped)(given) == Open(3.0, 2.0)
    assert given == Open(1.0, 3.0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"Open\.b changes in a loop or a branch"):
        nbta.function(changed_in_a_branch)(X)


# Dataclasses that nobody registered.


class Kind(enum.Enum):
    PLAIN = "plain"
    SCALED = "scaled"


@dataclass
class Layer:
    weights: Any
    bias: Any = 0.0
    name: str = "layer"
    curve: Callable = np.tanh
    kind: Kind = Kind.PLAIN
    tags: tuple = ("first", "second")
    rest: Any = None
    norm: Any = field(init=False, default=1.0)

    def __post_init__(self):
        self.norm = 2.0

    def __call__(self, x):
        y = self.curve(self.weights * x + self.bias) * self.norm
        return y * 3.0 if self.kind is Kind.SCALED else y


class Deep(Layer):
    """A subclass that is no dataclass of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Net:
    layers: list
    scale: float = 2.0

    def loss(self, x):
        for layer in self.layers:
            x = layer(x)
        return np.sum(x) * self.scale


def loss(net, x):
    return net.loss(x)


def nets():
    return (
        Net(layers=[Layer(2.0), Deep(X, 0.5, curve=np.sin)]),
        Net(layers=[Layer(2.0, kind=Kind.SCALED), Deep(X, 0.5, curve=np.sin)], scale=0.5),
        Net(layers=[Layer(2.5), Deep(X * 2, 0.25, curve=np.sin)]),
    )


def same(found, want):
    assert nbta.structure.layout(found) == nbta.structure.layout(want)
    pairs = zip(nbta.structure.leaves(found), nbta.structure.leaves(want), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("compiled", [False, True])
def test_dataclasses_are_arguments_and_results(compiled):
    both = nbta.value_and_grad(loss, compiled=compiled)
    for _ in range(2):  # later calls go the short way
        for net in nets():
            value, slope = both(net, X)
            np.testing.assert_allclose(value, net.loss(X))
            assert type(slope) is Net
            assert [type(layer) for layer in slope.layers] == [Layer, Deep]
            assert slope.layers[1].curve is np.sin
            h = 1e-6
            ends = [loss(replace(net, scale=net.scale + e), X) for e in (h, -h)]
            np.testing.assert_allclose(slope.scale, (ends[0] - ends[1]) / (2 * h), rtol=1e-6)
    assert nets()[0].layers[0].norm == 2.0


def test_derivatives_of_dataclasses():
    net, step = nets()[0], nbta.tree_map(lambda leaf: leaf * 0 + 0.5, nets()[0])
    check_grads(lambda a, b, x: Net(layers=[Layer(a), Deep(b, 0.5)]).loss(x), (2.0, X, X * 2))
    value, change = nbta.jvp(lambda net: net.loss(X), (net,), (step,))
    slope = nbta.grad(lambda net: net.loss(X))(net)
    np.testing.assert_allclose(value, net.loss(X))
    np.testing.assert_allclose(
        change, 0.5 * sum(np.sum(leaf) for leaf in nbta.structure.leaves(slope))
    )
    (second,) = nbta.hvp(lambda net: net.loss(X), (net,), (step,))
    h, f = 1e-5, nbta.grad(lambda net: net.loss(X))
    ends = [f(nbta.tree_map(lambda p, s, e=e: p + e * s, net, step)) for e in (h, -h)]
    for one, a, b in zip(*map(nbta.structure.leaves, (second, *ends)), strict=True):
        np.testing.assert_allclose(one, (a - b) / (2 * h), rtol=1e-5, atol=1e-7)
    rows = nbta.jacobian(lambda layer: layer(X))(Layer(2.0))
    np.testing.assert_allclose(rows.weights, 2 * X / np.cosh(2 * X) ** 2)
    np.testing.assert_array_equal(
        nbta.hessian(lambda p: p.bias**3 + p.weights)(Layer(1.0, 2.0)).bias.bias, 12
    )
    layers = nbta.tree_map(lambda leaf: leaf * np.ones(3), Layer(X, X, "name"))
    np.testing.assert_allclose(nbta.vmap(lambda layer: layer(1.0))(layers), 2 * np.tanh(2 * X))
    value, _ = nbta.value_and_grad(lambda w, p: p(w), batch_axis=0)(2.0, layers)
    np.testing.assert_allclose(value, np.sum(2 * np.tanh(3 * X)))


@dataclass
class State:
    position: Any
    speed: Any
    name: str = "ball"


def rebound(x):
    state = State(0.0, x)
    for i in range(len(x)):
        state = State(state.position + x[i], state.speed * 2.0)
    return state


def replaced(x):
    state = State(0.0, x)
    for i in range(len(x)):
        if x[i] > 0.0:
            state = replace(state, position=state.position + x[i])
    return state


def assigned(x):
    state = State(0.0, x)
    for i in range(len(x)):
        state.position += x[i]
        state.speed = state.speed * 2.0
        if x[i] > 0.0:
            state.position = state.position * 2.0
    return state


def filled(x):
    state = State(0.0, np.zeros(len(x)))
    for i in range(len(x)):
        state.speed[i] = x[i] * 2.0
    return state


def scanned(x):
    def step(state, v):
        return State(state.position + v, state.speed * v), state

    return nbta.scan(step, State(0.0, 1.0), x)


def whiled(x):
    def iteration(i, state):
        state.position = state.position + x[i]
        return i + 1, state

    return nbta.while_loop(lambda i, state: i < 3, iteration, (0, State(0.0, x)))


def chosen(x):
    return State(x, 1.0) if x[0] > 0.5 else State(x * 2.0, 2.0)


def chosen_by_cond(x):
    return nbta.cond(x[0] > 0.5, lambda: State(x, 1.0), lambda: State(-x, 2.0))


LOOPS = (rebound, replaced, assigned, filled, scanned, whiled, chosen, chosen_by_cond)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_dataclasses_in_loops_and_branches(f, compiled):
    taken = nbta.function(f, compiled=compiled)
    for x in (X, -X, np.tile(X, 5)):
        same(taken(x), f(x))


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_gradients_through_loops_of_dataclasses(f):
    def total(x):
        found = [leaf for leaf in nbta.structure.leaves(f(x)) if isinstance(leaf, nbta.Tensor)]
        return sum(nbta.sum(leaf * leaf) for leaf in found if leaf.dtype == np.float64)

    check_grads(nbta.function(total), (X,))


def aliased_by_a_loop(x):
    one, other = State(0.0, 1.0), State(1.0, 1.0)
    for _ in range(len(x)):
        other = one
    one.position = 5.0
    return other.position


def aliased_by_a_branch(x):
    one = State(0.0, 1.0)
    if x[0] > 0.0:
        one.position = x[1]
        other = one
    else:
        other = State(2.0, 3.0)
    return other


def assigned_and_rebound(x):
    state = State(0.0, 1.0)
    for _ in range(len(x)):
        state.position += 1.0
        state = State(state.position, state.speed)
    return state


LONG = np.ones(5000)


@pytest.mark.parametrize(
    ("f", "x"), [(aliased_by_a_loop, X), (aliased_by_a_branch, X), (assigned_and_rebound, LONG)]
)
def test_one_object_or_another_is_not_changed(f, x):
    with pytest.raises(nbta.InvalidArgumentError, match=r"State\.position is assigned, and only"):
        nbta.function(f)(x)


def test_python_follows_few_objects():
    for n in (3, 5):
        assert nbta.function(assigned_and_rebound)(LONG[:n]) == assigned_and_rebound(LONG[:n])


@dataclass
class Model:
    weights: Any
    rate: float = 0.0

    def loss(self, x):
        return np.sum(np.tanh(self.weights * x))

    def walked(self, x):
        total = 0.0
        for i in range(len(x)):
            total = total + self.weights[i] * x[i]
        return total


def test_methods_of_dataclasses_have_them_as_constants():
    model = Model(X)
    for compiled in (False, True):
        slope = nbta.grad(model.loss, compiled=compiled)(X)
        np.testing.assert_allclose(slope, X / np.cosh(X * X) ** 2)
        assert np.isclose(nbta.function(model.walked, compiled=compiled)(X), X @ X)
    swapped = nbta.grad(lambda w: replace(model, weights=w).loss(X))(X)
    np.testing.assert_allclose(swapped, slope)
    assert model.weights is X
    by_class = nbta.grad(Model.loss)(Model(X, 3.0), X)
    np.testing.assert_allclose(by_class.weights, slope)


def test_arguments_stay_as_they_are():
    def changed(state):
        state.position = state.position + 1.0
        return state

    given = State(1.0, X)
    assert nbta.function(changed)(given).position == 2.0
    assert given.position == 1.0


def changes_one(one, other):
    one.position = one.position * 2.0
    return one.position + other.position


@pytest.mark.parametrize("compiled", [False, True])
def test_one_object_for_two_arguments(compiled):
    taken = nbta.function(changes_one, compiled=compiled)
    one, other = State(1.0, X), State(3.0, X)
    for _ in range(2):
        assert taken(one, other) == 5.0
        with pytest.raises(nbta.InvalidArgumentError, match="one object is given in two places"):
            taken(one, one)
    with pytest.raises(nbta.InvalidArgumentError, match="one object is given in two places"):
        nbta.function(lambda state: taken(state, state))(one)
    reads = nbta.function(lambda a, b: a.position + b.position, compiled=compiled)
    assert reads(one, one) == 2.0


@dataclass
class OwnInit:
    a: Any

    def __init__(self, value):
        self.a = value


@dataclass
class MoreThanFields:
    a: Any

    def __post_init__(self):
        self.other = 3


@dataclass
class Cached:
    a: Any

    @functools.cached_property
    def squared(self):
        return self.a * self.a


def test_objects_that_cannot_be_made_again():
    for given, reason in (
        (OwnInit(1.0), "its class has an __init__ of its own"),
        (MoreThanFields(1.0), "it has an attribute 'other', which is no field"),
    ):
        with pytest.raises(nbta.InvalidArgumentError, match=reason + r".*nbta\.register_structure"):
            nbta.grad(lambda value: value.a)(given)
    given = Cached(3.0)
    assert given.squared == 9.0
    assert nbta.grad(lambda value: value.squared)(given) == Cached(6.0)


@nbta.register_structure
@dataclass
class Registered:
    a: Any
    name: str

    def __init__(self, name):
        self.a, self.name = 1.0, name


def test_registered_dataclasses_may_have_an_init_of_their_own():
    found = nbta.grad(lambda value: value.a**2 * len(value.name))(Registered("four"))
    assert (found.a, found.name) == (8.0, "four")


def test_fields_without_values_and_hashes():
    @dataclass
    class Partial:
        a: Any
        b: Any = field(init=False)
        names: list = field(default_factory=lambda: ["x"])

    found, length = nbta.function(lambda value: (value, len(value.names)))(Partial(3.0))
    assert (found.a, found.names, length) == (3.0, ["x"], 1)
    assert not hasattr(found, "b")


class Doubled(dict):
    """A dict of a class of its own."""

    __getattr__ = dict.__getitem__

    def __getitem__(self, key):
        return 2.0 * super().__getitem__(key)


def of_any_dict(p, x):
    bonus = 1.0 if isinstance(p, OrderedDict) else 0.0
    if isinstance(p, defaultdict | Counter):
        bonus = p["none"] + 2.0
    if isinstance(p, Doubled):
        bonus = p.a * p["a"]
    return bonus * x + p["a"] * x**2


@pytest.mark.parametrize("compiled", [False, True])
def test_classes_of_dicts(compiled):
    kinds = (
        dict,
        OrderedDict,
        Counter,
        Doubled,
        functools.partial(defaultdict, float),
        functools.partial(defaultdict, lambda: 5.0),
    )
    both = nbta.value_and_grad(of_any_dict, argnums=(0, 1), compiled=compiled)
    batched = nbta.vmap(of_any_dict)
    for _ in range(3):
        for kind in kinds:
            given = kind(a=1.5)
            value, (by_items, by_x) = both(given, 2.0)
            assert value == of_any_dict(given, 2.0)
            step = 1e-6
            more = of_any_dict(given, 2.0 + step) - of_any_dict(given, 2.0 - step)
            assert by_x == pytest.approx(more / (2 * step))
            assert type(by_items) is type(given)
            up, down = kind(a=1.5 + step), kind(a=1.5 - step)
            more = of_any_dict(up, 2.0) - of_any_dict(down, 2.0)
            assert dict.__getitem__(by_items, "a") == pytest.approx(more / (2 * step))
            rows = batched(kind(a=np.array([1.5, 0.5])), np.array([2.0, 3.0]))
            assert rows[1] == of_any_dict(kind(a=0.5), 3.0)


def test_dicts_with_attributes():
    given = Doubled(a=1.0)
    object.__setattr__(given, "scale", 2.0)
    with pytest.raises(nbta.InvalidArgumentError, match=r"give dict\(\.\.\.\) of it"):
        nbta.grad(of_any_dict)(given, 2.0)
