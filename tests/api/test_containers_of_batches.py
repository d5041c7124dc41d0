"""Batches in containers: tuples, dicts, objects and records of arrays that are cut together."""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.experimental import jitclass

import nbta
from nbta.structure import leaves

X = np.arange(12.0).reshape(4, 3) / 7.0
Y = np.array([1.0, -2.0, 3.0, 0.5])
W = np.array([0.1, 0.2, -0.3])


class Pair(NamedTuple):
    x: np.ndarray
    y: np.ndarray


@dataclass
class Data:
    x: np.ndarray
    y: np.ndarray
    mode: str = "square"


@jitclass([("x", numba.float64[:, :]), ("y", numba.float64[:])])
class Compiled:
    def __init__(self, x, y):
        self.x, self.y = x, y


@jitclass([("x", numba.float64[:]), ("y", numba.float64)])
class Item:
    def __init__(self, x, y):
        self.x, self.y = x, y


RECORDS = np.zeros(4, [("x", "f8", (3,)), ("y", "f8")])
RECORDS["x"], RECORDS["y"] = X, Y


def by_place(w, d):
    return (np.sin(w) @ d[0] - d[1]) ** 2


def by_name(w, d):
    return (np.sin(w) @ d["x"] - d["y"]) ** 2


def by_attribute(w, d):
    return (np.sin(w) @ d.x - d.y) ** 2


def nested(w, d):
    return (np.sin(w) @ d[0]["x"][0] - d[1]) ** 2


#: Functions, and what makes their batches.
BATCHES = {
    "tuple": (by_place, lambda: (X, Y)),
    "named tuple": (by_attribute, lambda: Pair(X, Y)),
    "dict": (by_name, lambda: {"y": Y, "x": X}),
    "dataclass": (by_attribute, lambda: Data(X, Y)),
    "nested": (nested, lambda: ({"x": (X, None)}, Y)),
    "records": (by_name, lambda: RECORDS),
    "recarray": (by_attribute, lambda: RECORDS.view(np.recarray)),
    "jitclass": (by_attribute, lambda: Compiled(X, Y)),
    "lists in a tuple": (by_place, lambda: (list(X), list(Y))),
    "list of tuples": (by_place, lambda: list(zip(X, Y, strict=True))),
    "list of records": (by_name, lambda: list(RECORDS)),
    "list of a jitclass": (by_attribute, lambda: [Item(x, y) for x, y in zip(X, Y, strict=True)]),
}


def made(name):
    """A function and its batch."""
    f, make = BATCHES[name]
    return f, make()


WANT = sum(by_place(W, pair) for pair in zip(X, Y, strict=True))


def differences(f, w):
    steps = 1e-6 * np.eye(len(w))
    return np.array([(f(w + step) - f(w - step)) / 2e-6 for step in steps])


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_an_axis_is_that_of_all_arrays(name, compiled):
    f, batch = made(name)
    value, slope = nbta.value_and_grad(f, batch_axis=0, compiled=compiled)(W, batch)
    np.testing.assert_allclose(value, WANT, 1e-12)
    total = lambda w: sum(by_place(w, pair) for pair in zip(X, Y, strict=True))  # noqa: E731
    np.testing.assert_allclose(slope, differences(total, W), 1e-7)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_gradients_of_the_batch_are_like_it(name, compiled):
    f, batch = made(name)
    _, found = nbta.value_and_grad(lambda d: f(W, d), batch_axis=(0,), compiled=compiled)(batch)
    if isinstance(batch, list):
        assert len(found) == 4
    if "record" in name or name == "recarray":
        xs = np.stack([row["x"] for row in found])
        ys = np.stack([row["y"] for row in found])
    elif "jitclass" in name:
        rows = found if isinstance(found, list) else [found]
        xs = np.stack([row.x for row in rows]).reshape(4, 3)
        ys = np.stack([row.y for row in rows]).reshape(4)
    elif name == "list of tuples":
        xs, ys = map(np.stack, zip(*found, strict=True))
    else:
        assert type(found) is type(batch)
        xs, ys = found if name == "lists in a tuple" else leaves(found)
    rest = np.array([2 * (np.sin(W) @ x - y) for x, y in zip(X, Y, strict=True)])
    np.testing.assert_allclose(xs, rest[:, None] * np.sin(W), 1e-12)
    np.testing.assert_allclose(ys, -rest, 1e-12)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", [n for n in BATCHES if "list" not in n])
def test_maps_over_containers(name, compiled):
    f, batch = made(name)
    given = nbta.vmap(lambda w, d: (f(w, d), {"w": w * 2.0}), (None, 0), compiled=compiled)
    found, other = given(W, batch)
    np.testing.assert_allclose(found, [by_place(W, pair) for pair in zip(X, Y, strict=True)], 1e-12)
    np.testing.assert_array_equal(other["w"], np.tile(2 * W, (4, 1)))
    total = lambda w: np.sum(nbta.vmap(f, (None, 0))(w, batch))  # noqa: E731
    slope = nbta.grad(total, compiled=compiled)(W)
    plain = lambda w: sum(by_place(w, pair) for pair in zip(X, Y, strict=True))  # noqa: E731
    np.testing.assert_allclose(slope, differences(plain, W), 1e-7)


@pytest.mark.parametrize("compiled", [False, True])
def test_results_in_containers(compiled):
    def loss(w, d):
        return by_place(w, d), (d[1], {"x": d[0] * w})

    f = nbta.value_and_grad(loss, batch_axis=0, has_aux=True, compiled=compiled)
    (_, (ys, xs)), _ = f(W, (X, Y))
    np.testing.assert_array_equal(ys, Y)
    np.testing.assert_array_equal(xs["x"], X * W)


SHORT = Y[:3]
REFUSED = {
    "tuple": (by_place, (X, SHORT), r"args\[1\]\[0\] has 4, args\[1\]\[1\] has 3"),
    "dict": (by_name, {"x": X, "y": SHORT}, r"args\[1\]\['x'\] has 4, args\[1\]\['y'\] has 3"),
    "dataclass": (by_attribute, Data(X, SHORT), r"args\[1\]\.x has 4, args\[1\]\.y has 3"),
    "number": (by_place, (X, 2.0), r"args\[1\]\[1\] has .*as an argument of its own"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_items_are_named_that_do_not_fit(name):
    f, batch, words = REFUSED[name]
    with pytest.raises(nbta.InvalidArgumentError, match=words):
        nbta.grad(f, batch_axis=0)(W, batch)
    first, _, second = words.partition(" has 4, ")
    words = f"{second.removesuffix(' has 3')} and {first} have different numbers of items"
    words = r"args\[1\]\[1\] has 0 axes" if name == "number" else words
    for compiled in (False, True):
        with pytest.raises(nbta.InvalidArgumentError, match=words):
            nbta.vmap(f, (None, 0), compiled=compiled)(W, batch)
