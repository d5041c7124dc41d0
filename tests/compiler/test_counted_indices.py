"""Indices that iterations count up or down are not saved for gradients."""

import itertools

import numpy as np
import pytest
from running import written

import nbta

#: Loops whose number of iterations only the run knows; {first}, {step} and {test} are drawn.
PROGRAM = """
def f(x, k):
    a = x.copy()
    total = 0.0
    for i in range(2, len(a) - 2):
        j = {first}
        while {test} and a[j] * a[j] > 0.3 * a[i]:
            {body}
            j {step}
        total += a[j] * i
    return total
"""
FIRSTS = {"up": "i - 2", "down": "i + 2"}
STEPS = {"up": ["+= 1", "= 1 + j", "+= k", "-= -1"], "down": ["-= 1", "= j - 2", "-= k", "+= -1"]}
TESTS = {"up": "j < len(a) - 2", "down": "j > 1"}
BODIES = ["a[j] = 0.9 * a[j]", "a[j] *= x[j - 1]", "a[j - 1] += 0.2 * a[j]"]
DRAWN = [
    (way, step, body) for way in FIRSTS for step, body in itertools.product(STEPS[way], BODIES)
]


@pytest.mark.parametrize(("way", "step", "body"), DRAWN)
def test_it_follows_from_the_number_of_the_iteration(way, step, body, tmp_path):
    text = PROGRAM.format(first=FIRSTS[way], step=step, test=TESTS[way], body=body)
    f = written(tmp_path, text)
    x = np.random.default_rng(0).uniform(0.9, 1.3, 9)
    ways = np.eye(9) * 1e-6
    slopes = [(f(x + each, 1) - f(x - each, 1)) / 2e-6 for each in ways]
    for compiled in (False, True):
        both = nbta.value_and_grad(f, compiled=compiled)
        value, slope = both(x, 1)
        np.testing.assert_allclose(value, f(x, 1), rtol=1e-13)
        np.testing.assert_allclose(slope, slopes, rtol=1e-5, atol=1e-8)
    inner = f"`while {TESTS[way]} and a[j] * a[j] > 0.3 * a[i]`"
    saved = [
        line for line in both.explain().splitlines() if f"an iteration of the loop {inner}" in line
    ]
    assert not [line for line in saved if line.strip().startswith(("j", "`j"))], saved
