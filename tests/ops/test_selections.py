"""Gradients of loops that keep one of the values that they see: one adjoint iteration is enough."""

from itertools import product

import numpy as np
import pytest
from running import written

import nbta
from nbta.ops.loops import loop

#: How one of two is chosen; {v} is the value of an iteration.
CHOICES = {
    "max": "A = max(A, {v})",
    "min": "A = min({v}, A)",
    "if": "v = {v}\n{tab}if v > A:\n{tab}    A = v\n{tab}    k = i",
    "not": "v = {v}\n{tab}if A <= v:\n{tab}    A = v\n{tab}    k = i\n{tab}else:\n{tab}    k = k",
    "else": "A = A if A >= {v} else {v}",
    "maximum": "A = np.maximum(A, {v})",
    "minimum": "A = np.minimum({v}, A)",
    "both": "v = {v}\n{tab}if v > A and i != 2:\n{tab}    A = v",
    "nested": "v = {v}\n{tab}if not np.isnan(v):\n{tab}    if np.isnan(A) or v > A:\n"
    "{tab}        A = v\n{tab}        k = i",
    "read": "if x[i] < 9.0:\n{tab}    if np.isnan(A) or x[i] > A:\n{tab}        A = {v}",
    "outer": "v = {v}\n{tab}if limit < 0.9:\n{tab}    A = v",
}
VALUES = {
    "item": "x[i]",
    "function": "np.sin(w * x[i])",
    "product": "x[i] * x[i - 1]",
    "loop": "apart(x, w * x[i])",
}
APART = """
def apart(x, y):
    total = 0.0
    for j in range(len(x)):
        total += 0.3 * np.cos(x[j] - y)
    return total
"""
#: Where the loop is.
PLACES = {
    "alone": """
def f(x, w):
    A = x[0]
    k = 0
    limit = w
    for i in range(1, len(x)):
        {choice}
    return A * A + x[k] * w
""",
    "rows": """
def f(x, w):
    total = 0.0
    for r in range(3):
        limit = 0.5 * w + x[r % len(x)]
        A = -w * r
        k = 0
        for i in range(r, len(x)):
            {choice}
        total += np.exp(0.3 * A) * x[k]
        w = w + 0.1 * A
    return total
""",
    "while": """
def f(x, w):
    A = w * x[0]
    k = 0
    i = 0
    limit = w + x[0]
    while i < len(x) and x[i] < 9.0:
        {choice}
        i += 1
    return A + x[k] * np.cos(A)
""",
    "branch": """
def f(x, w):
    A = x[0]
    k = 0
    if w > 0.5:
        limit = w * x[0]
        for i in range(1, len(x)):
            {choice}
        A = np.sin(A)
    return A * A + x[k] * w
""",
}
#: The last has many that are equal.
DATA = {
    "drawn": np.random.default_rng(3).normal(size=7),
    "rising": np.linspace(0.1, 0.9, 6),
    "falling": np.linspace(0.9, 0.1, 6),
    "one": np.array([0.4]),
    "equal": np.array([0.5, -0.2, 0.5, 0.1, 0.5, 0.5, 0.3, 0.5]),
}


def made(place, choice, value, folder):
    """The function of a program."""
    tab = " " * (12 if place in ("rows", "branch") else 8)
    body = CHOICES[choice].format(v=VALUES[value], tab=tab)
    return written(folder, "import numpy as np\n" + APART + PLACES[place].format(choice=body))


@pytest.mark.slow_but_every(12)
@pytest.mark.parametrize(("place", "choice", "value"), list(product(PLACES, CHOICES, VALUES)))
def test_gradients_are_those_of_all_adjoint_iterations(place, choice, value, tmp_path, monkeypatch):
    f = made(place, choice, value, tmp_path)
    both = [nbta.value_and_grad(f, (0, 1), compiled=False)]
    both += [nbta.value_and_grad(f, (0, 1), compiled=True)] * (value != "product")
    found = {name: [each(x, 0.7) for each in both] for name, x in DATA.items()}
    for name, x in DATA.items():
        if name != "equal":
            nbta.testing.check_grads(f, (x, 0.7), order=1)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "selection", lambda backward: None)
        whole = nbta.value_and_grad(lambda x, w: f(x, w), (0, 1), compiled=False)
        for name, x in DATA.items():
            value, slopes = whole(x, 0.7)
            for other, (slope, by_weight) in found[name]:
                np.testing.assert_allclose(other, value, rtol=1e-13)
                np.testing.assert_allclose(slope, slopes[0], rtol=1e-12, atol=1e-14)
                np.testing.assert_allclose(by_weight, slopes[1], rtol=1e-12, atol=1e-14)


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("choice", CHOICES)
def test_second_derivatives(choice, tmp_path):
    f = made("rows", choice, "function", tmp_path)
    nbta.testing.check_grads(f, (DATA["drawn"], 0.7), order=2, rtol=1e-4)


@pytest.mark.parametrize("choice", CHOICES)
def test_nothing_is_saved_for_each_iteration(choice, tmp_path):
    f = made("alone", choice, "item", tmp_path)
    both = nbta.value_and_grad(f, compiled=True)
    both(DATA["drawn"], 0.7)
    shares = choice in ("maximum", "minimum")  # a truth value for each
    assert ("values saved for gradients" in both.explain()) == shares
    assert "8 bytes an iteration" not in both.explain()


@pytest.mark.parametrize("choice", CHOICES)
def test_inner_loops_have_adjoints_in_one_iteration(choice, tmp_path):
    f = made("alone", choice, "loop", tmp_path)
    both = nbta.value_and_grad(f, compiled=True)
    both(DATA["drawn"], 0.7)
    shares = choice in ("maximum", "minimum")
    assert ("1 bytes an iteration" in both.explain()) == shares  # a truth value


def clipped(x):
    best = -np.inf
    for i in range(len(x)):
        best = max(best, x[i])
        x[i] = 0.5 * best
    return np.sum(x)


def test_a_value_that_others_need_is_none_of_these():
    nbta.testing.check_grads(clipped, (DATA["drawn"],), order=1)


@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("value", [1.5, -0.0, np.inf, np.nan])
def test_a_number_or_zero_bit_by_bit(zero, value):
    """Compiled it is taken by its bits, whose sign is that of the zero that was written."""
    chosen = nbta.function(lambda c, x: nbta.where(c, zero, x) * np.float64(1.0), compiled=True)
    for condition in (True, False):
        found = chosen(np.bool_(condition), np.float64(value))
        assert np.float64(found).tobytes() == np.float64(zero if condition else value).tobytes()
