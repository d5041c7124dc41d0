"""Arrays that are filled, looked at and filled further, in every order; and their gradients."""

import numpy as np
import pytest
from fuzz.fillings import Filling, Look, Split, Write, X, filling_programs, fixed_orders
from generated_source import BOUNDED, outcome, tensors
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from running import both

import nbta

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def check(program, x, order):
    both(program, x)
    nbta.testing.check_grads(program, (x,), order=order, rtol=1e-5, atol=1e-6)


@settings(max_examples=15, suppress_health_check=SLOW)
@given(filling_programs(), st.sampled_from(X))
def test_values_and_gradients(program, x):
    check(program, x, order=1)


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=SLOW)
@given(filling_programs(), st.sampled_from(X))
def test_many_values_and_gradients(program, x):
    check(program, x, order=1)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=SLOW)
@given(filling_programs(most=5), st.sampled_from(X))
def test_second_order(program, x):
    check(program, x, order=2)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("part", range(4))
def test_every_order_of_fill_look_growth_and_look(part):
    for program in list(fixed_orders())[part::4]:
        check(program, X[0], order=1)


def compiled_and_not(program, x):
    """What becomes of the gradients of two orders, by the generated source and one by one."""
    with nbta.Graph().as_default():
        fed = {nbta.placeholder("float64", (3,)): x}
        (given_x,) = fed
        y = program(given_x)
        (slope,) = nbta.gradients([y], [given_x])
        (bend,) = nbta.gradients([nbta.sum(nbta.sin(slope))], [given_x])
    return outcome(tensors([y, slope, bend]), fed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_order_compiled(part):
    found = [compiled_and_not(program, X[0]) for program in list(fixed_orders())[part::4]]
    assert set(found) == {"agreed"}


@pytest.mark.slow
@settings(max_examples=25, **BOUNDED)
@given(filling_programs(), st.sampled_from(X))
def test_random_orders_compiled(program, x):
    found = compiled_and_not(program, x)
    assert found == "agreed" or found.startswith("not compiled"), found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("feeds", [False, True], ids=["", "x in the append too"])
def test_a_split_into_an_array_that_grows(compiled, feeds):
    """As TensorFlow's ``testTensorArraySplitDynamic``; the gradient had four elements."""

    def f(x):
        ta = nbta.TensorArray("float64", dynamic_size=True).split(x, [1, 1, 1])
        joined = ta.append(2.0 * x[:1] if feeds else np.array([4.0])).concat()
        return nbta.sum(joined.value**2)

    x = np.array([1.0, 2.0, 3.0])
    expected = np.array([10.0 if feeds else 2.0, 4.0, 6.0])
    np.testing.assert_allclose(nbta.function(nbta.grad(f), compiled=compiled)(x), expected)
    along = nbta.function(lambda x: nbta.hvp(f, x, np.ones(3)), compiled=compiled)
    np.testing.assert_allclose(along(x), expected / x)


def test_a_split_into_a_gradient_array_leaves_the_mark():
    """TensorFlow's ``SetMarkedSize`` does nothing for gradient arrays."""
    ta = nbta.TensorArray("float64", dynamic_size=True).split([1.0, 2.0, 3.0], [1, 1, 1])
    gradient = ta.append([4.0]).grad("gradients").split(np.ones(4), [1, 1, 1, 1])
    np.testing.assert_array_equal(gradient.concat().lengths, [1, 1, 1])


@pytest.mark.slow
def test_a_gradient_of_all_slots_for_that_of_a_split_is_found(monkeypatch):
    """So it was: the gradient array's own split moved the mark up to which it was joined."""
    first = nbta.TensorArray._concat
    monkeypatch.setattr(
        nbta.TensorArray, "_concat",
        lambda ta, shape=None, dtype=None, count=0: first(ta, shape, dtype, count and ta.size()),
    )  # fmt: skip
    grown = Filling([Split(3, 0), Write(-1, 0), Look("concat", ())], False, False)
    with pytest.raises(nbta.InvalidArgumentError, match="slot 3 was cleared"):
        check(grown, X[0], order=1)
    with pytest.raises((AssertionError, nbta.InvalidArgumentError)):
        found_by_the_family()


@settings(max_examples=150, phases=[Phase.generate], suppress_health_check=SLOW, derandomize=True)
@given(filling_programs(), st.sampled_from(X))
def found_by_the_family(program, x):
    check(program, x, order=1)
