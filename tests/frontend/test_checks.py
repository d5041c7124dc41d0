"""Assertions and prints in functions that are traced: they happen when the function runs."""

import numpy as np
import pytest

import nbta


def checked(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * x[i]
        assert s < 400.0, "too much"
    return s


@pytest.mark.parametrize("compiled", [False, True])
def test_an_assertion_that_fails_in_an_iteration(compiled):
    taken = nbta.value_and_grad(checked, compiled=compiled, convert=True)
    value, slope = taken(np.arange(4.0))
    assert value == 14.0
    np.testing.assert_array_equal(slope, 2 * np.arange(4.0))
    with pytest.raises(AssertionError, match=r"test_checks.py:\d+: too much") as caught:
        taken(np.arange(20.0))
    assert any("iteration 11" in note for note in caught.value.__notes__)


def test_prints_come_in_order(capsys):
    def shown(x):
        print("begin")
        for i in range(x.shape[0]):
            if x[i] > 1.0:
                print("item", i, x[i])
        print("sum", np.sum(x))
        return np.sum(x)

    taken = nbta.function(shown, compiled=False, convert=True)
    taken(np.arange(4.0))
    capsys.readouterr()
    taken(np.arange(5.0))
    found = capsys.readouterr().out.splitlines()
    assert found == ["item 2 2.0", "item 3 3.0", "item 4 4.0", "sum 10.0"]
