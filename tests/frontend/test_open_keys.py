"""Dicts of which the run decides what keys they have: items by key, and refusals of all else."""

import copy

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

X = np.array([1.5, 0.5, 2.5])
RIGHT, REFUSED = [], []


def right(f):
    RIGHT.append(f)
    return f


def refused(f):
    REFUSED.append(f)
    return f


def opened(x):
    """A dict that has its second key in some runs."""
    d = {"a": x[0]}
    if x[1] > 0:
        d["b"] = x[1] * x[1]
    return d


@right
def by_get(x):
    return opened(x).get("b", 3.0) * x[2]


@right
def by_in(x):
    d = opened(x)
    if "b" in d:
        return d["b"] * 3.0
    return d["a"] * x[2]


@right
def not_in(x):
    d = opened(x)
    return x[0] if "b" not in d else d["b"] * x[1]


@right
def the_others(x):
    d = opened(x)
    return d["a"] * x[1] if "a" in d and "c" not in d else x[0]


@right
def as_truth(x):
    return (opened(x).get("b") or x[2]) * x[0]


@right
def given_later(x):
    d = opened(x)
    d["b"] = x[0] * x[2]
    return sum(d.values()) * len(d)


@right
def changed_again(x):
    d = opened(x)
    if x[0] > 0:
        d["b"] = d.get("b", 2.0) * x[2]
    return d.get("b", x[1])


@right
def in_two_ways(x):
    d = {}
    if x[1] > 0:
        d["one"] = x[1]
    else:
        d["two"] = x[0] * x[2]
    return d.get("one", 4.0) * d.get("two", 5.0)


@right
def an_array(x):
    d = {}
    if x[1] > 0:
        d["b"] = x * 2.0
    return np.sum(d["b"] * x) if "b" in d else x[0]


@right
def in_a_dict_of_dicts(x):
    d = {"in": {}}
    if x[1] > 0:
        d["in"]["q"] = x[1] * x[0]
    if x[0] > 1:
        d["in"]["r"] = x[2]
    return d["in"].get("q", 1.0) + d["in"].get("r", x[1])


@right
def by_a_function(x):
    def fill(d, v):
        if v > 0:
            d["k"] = v * v

    d = {}
    fill(d, x[1])
    fill(d, x[2])
    return d.get("k", x[0])


@right
def a_sum_by_iterations(x):
    d = {}
    for v in np.repeat(x, 4):
        if v > 1:
            d["n"] = d.get("n", 0) + 1
            d["s"] = d.get("s", 0.0) + v * v
    return d["s"] / d["n"] if "s" in d else x[0]


@right
def computed_once(x):
    d, total = {}, 0.0
    for v in np.repeat(x, 4):
        if "m" not in d:
            d["m"] = v * x[0]
        total += d["m"] * v
    return total


@right
def the_last_of_a_loop(x):
    d = {}
    for v in np.repeat(x, 4):
        if v > 1:
            d["last"] = v * v
    return d.get("last", x[0])


@right
def of_an_object(x):
    class Holder:
        pass

    holder = Holder()
    holder.d = opened(x)
    return holder.d.get("b", 4.0) * x[0]


@right
def its_copy(x):
    d = opened(x).copy()
    return d.get("b", 4.0) * d["a"]


@right
def none_or_a_number(x):
    d = {"b": None}
    if x[1] > 0:
        d["b"] = x[1] * x[0]
    return x[2] * len(d) if d["b"] is None else d["b"]


def sign(x):
    return np.where(np.arange(3) == 1, -1.0, 1.0) * x


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("x", [X, sign(X), -X], ids=["there", "gone", "negative"])
@pytest.mark.parametrize("f", RIGHT)
def test_items_by_key(f, x, compiled):
    np.testing.assert_allclose(nbta.function(f, compiled=compiled)(x), f(x), rtol=1e-12)
    check_grads(f, (x,), order=2)


def deleted(x):
    d = opened(x)
    del d["b"]
    return sum(d.values())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("f", [deleted, lambda x: opened(x)["b"] * x[0]])
def test_a_key_that_is_not_there_is_an_error_of_the_run(f, compiled):
    function = nbta.function(f, compiled=compiled)
    np.testing.assert_allclose(function(X), f(X))
    with pytest.raises(KeyError, match=r"test_open_keys.*'b'"):
        function(sign(X))


# All that goes by which keys there are.


@refused
def their_number(x):
    return len(opened(x)) * x[0]


@refused
def along_them(x):
    total = 0.0
    d = opened(x)
    for key in d:
        total += d[key]
    return total


@refused
def along_values(x):
    return sum(opened(x).values())


@refused
def along_items(x):
    return sum([value for _, value in opened(x).items()])


@refused
def in_a_comprehension(x):
    return float("b" in dict.fromkeys(opened(x), 1.0)) * x[0]


@refused
def taken_apart_in_a_list(x):
    return len([*opened(x)]) * x[0]


@refused
def taken_apart_in_a_dict(x):
    return {"b": x[2], **opened(x)}["b"]


@refused
def taken_apart_by_names(x):
    _, *rest = opened(x)
    return x[0] * len(rest)


@refused
def as_arguments(x):
    def product(a, b=2.0):
        return a * b

    return product(**opened(x))


@refused
def as_truth_value(x):
    d = {}
    if x[1] > 0:
        d["b"] = x[1]
    return x[0] if d else x[2]


@refused
def compared(x):
    return x[0] if opened(x) == {"a": 1.5} else x[2]


@refused
def joined(x):
    return ({"b": x[2]} | opened(x))["b"]


@refused
def joined_in_place(x):
    d = {"b": x[2]}
    d |= opened(x)
    return d["b"]


@refused
def updated_by_it(x):
    d = {"b": x[2]}
    d.update(opened(x))
    return d["b"]


@refused
def popped(x):
    return opened(x).pop("b", x[2])


@refused
def by_default(x):
    return opened(x).setdefault("b", x[2])


@refused
def the_largest_key(x):
    return x[0] if max(opened(x)) == "b" else x[2]


@refused
def as_a_tuple(x):
    return len(tuple(opened(x))) * x[0]


@refused
def counted(x):
    return sum([k for k, _ in enumerate(opened(x))]) * x[0]


@refused
def copied_deep(x):
    return len(copy.deepcopy(opened(x))) * x[0]


@refused
def chosen(x):
    d = opened(x)
    e = d if x[0] > 0 else {"a": x[2], "b": 1.0}
    return e["a"]


@refused
def itself(x):
    return opened(x)


@pytest.mark.parametrize("f", REFUSED)
def test_what_goes_by_all_keys_is_refused(f):
    with pytest.raises(nbta.InvalidArgumentError, match=r"test_open_keys.*'b'.*get\(\) or in"):
        nbta.function(f)(X)


# None is not nothing.


def none_or_nothing(x):
    d = {}
    if x[1] > 0:
        d["b"] = None
    return x[0] if "b" in d else x[2]


def a_number_or_nothing_or_none(x):
    d = opened(x)
    if x[0] > 0:
        d["b"] = None
    return x[0] if "b" in d else x[2]


@pytest.mark.parametrize("f", [none_or_nothing, a_number_or_nothing_or_none])
def test_a_key_of_none_is_none_that_is_missing(f):
    with pytest.raises(nbta.InvalidArgumentError, match=r"test_open_keys.*dict\['b'\]"):
        nbta.function(f)(X)
