"""Random small programs: eager as in graphs, and gradients as central differences say."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from random_programs import programs
from running import both

import nbta

X = [np.array([0.71, -0.43, 0.92]), np.array([-0.37, 0.83, 0.11])]
SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]


def check(program, x, n, order):
    both(program, x, np.int64(n))
    nbta.testing.check_grads(program, (x, np.int64(n)), order=order, rtol=1e-5, atol=1e-6)


@settings(max_examples=20, suppress_health_check=SLOW)
@given(programs(depth=2), st.sampled_from(X), st.integers(0, 4))
def test_values_and_gradients(program, x, n):
    check(program, x, n, order=1)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(15))
def test_many_values_and_gradients(number):
    """In parts of a minute, which run beside each other."""

    @seed(number)
    @settings(max_examples=20, suppress_health_check=SLOW)
    @given(programs(depth=2), st.sampled_from(X), st.integers(0, 4))
    def held(program, x, n):
        check(program, x, n, order=1)

    held()


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=SLOW)
@given(programs(depth=1, longest=3), st.sampled_from(X), st.integers(0, 4))
def test_second_order(program, x, n):
    check(program, x, n, order=2)
