"""Lists of numbers whose items are assigned at places that only the run knows."""

import numpy as np
import pytest
from numba import njit

import nbta
from nbta.testing import check_grads

X = np.random.default_rng(4).normal(size=23)


def delayed(x):
    buf, s = [0.0] * 5, 0.0
    for i in range(len(x)):
        s += x[i] * buf[i % 5]
        buf[i % 5] = x[i]
    return s


def echoed(x):
    buf, p, s = [0.0] * 6, 0, 0.0
    for i in range(len(x)):
        buf[p] = x[i] + 0.6 * buf[p]
        s += buf[p] * buf[p]
        p += 1
        if p == 6:
            p = 0
    return s


def from_the_end(x):
    buf, s = [1.0, 2.0, 3.0, 4.0], 0.0
    for i in range(len(x)):
        buf[-1 - i % 4] = x[i] * buf[(i + 1) % 4]
        s += buf[-1] * buf[0]
    return s


def summed(x):
    """All items are used by themselves, after a change and after the loop."""
    buf, s = [0.5] * 4, 0.0
    for i in range(len(x)):
        buf[i % 4] = x[i]
        s += sum(buf) ** 2
        buf[2] = 0.5 * buf[2]
    return s + buf[0] * buf[3]


def in_branches(x):
    buf, s = [0.1, 0.2, 0.3, 0.4], 0.0
    for i in range(len(x)):
        if x[i] > 0:
            buf[i % 4] = x[i]
        s += buf[(i + 1) % 4] * x[i]
    return s


def nested(x):
    buf, s = [0.0] * 4, 0.0
    for i in range(3):
        for j in range(len(x)):
            buf[(i + j) % 4] = 0.5 * buf[j % 4] + x[j]
        s += buf[i] ** 2
    return s


def other_name(x):
    buf, s = [0.0] * 4, 0.0
    same = buf
    for i in range(len(x)):
        same[i % 4] = x[i]
        s += buf[i % 4] * buf[(i + 2) % 4]
    return s


def until(x):
    """The loop's condition looks at an item."""
    buf, i = [0.0] * 4, 0
    while buf[1] < 1.0 and i < len(x):
        buf[i % 4] = buf[i % 4] + x[i] * x[i]
        i += 1
    return buf[0] * buf[1]


def numbered(x):
    """A list of integers beside one of floats."""
    state, s = [1, 2, 3, 4, 5], 0.0
    for i in range(len(x)):
        j = i % 5
        state[j] = (1103515245 * state[j] + 12345) % 2147483648
        s += x[i] * x[i] * (state[j] / 2147483648.0)
    return s


def short(x):
    buf, s = [0.0] * 3, 0.0
    for i in range(len(x)):
        s += buf[i % 3] * x[i]
        buf[i % 3] = x[i]
    return s


ALL = (
    delayed,
    echoed,
    from_the_end,
    summed,
    in_branches,
    nested,
    other_name,
    until,
    numbered,
    short,
)


@pytest.mark.parametrize("f", ALL)
def test_lists_have_their_values_and_derivatives(f):
    check_grads(f, (X,))
    for way in (False, True):
        found = nbta.value_and_grad(f, convert=True, compiled=way)(X)
        np.testing.assert_allclose(found[0], f(X), rtol=1e-12)
        wanted = nbta.grad(f, convert=True, compiled=False)(X)
        np.testing.assert_allclose(found[1], wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", [delayed, echoed, numbered])
def test_so_have_those_of_compiled_functions(f):
    compiled = njit(f)
    for way in (False, True):
        found = nbta.value_and_grad(compiled, compiled=way)(X)
        np.testing.assert_allclose(found[0], compiled(X), rtol=1e-12)


@pytest.mark.parametrize("f", [delayed, echoed, numbered, nested])
def test_a_loop_carries_the_list_as_one_tensor(f):
    g = nbta.value_and_grad(f, convert=True, compiled=True)
    g(X)
    assert "list_0" not in g.source
    assert "state_0" not in g.source
    nbta.testing.assert_no_copies_in_loops(f, X)


def test_few_items_are_chosen_one_by_one():
    g = nbta.value_and_grad(short, convert=True, compiled=True)
    g(X)
    assert "list_0" in g.source


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("place", [5, -6, 100])
def test_a_place_that_there_is_not_is_an_error(place, compiled):
    def f(x, k):
        buf = [0.0] * 5
        for i in range(len(x)):
            buf[k[i]] = x[i]
        return buf[0] * buf[4]

    k = np.array([0, 4, place])
    with pytest.raises(IndexError):
        nbta.value_and_grad(f, convert=True, compiled=compiled)(X[:3].copy(), k)


def test_items_of_several_dtypes_stay_apart():
    def f(x):
        buf, s = [0, 1, 2, 3.5], 0.0
        for i in range(len(x)):
            s += buf[i % 4] * x[i]
            buf[i % 4] = x[i]
        return s

    for way in (False, True):
        np.testing.assert_allclose(nbta.function(f, convert=True, compiled=way)(X), f(X))
