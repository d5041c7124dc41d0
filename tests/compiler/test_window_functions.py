"""Window functions of series with missing numbers, and what their programs read and fill."""

import re

import numpy as np
import pytest
from running import written

import nbta

SERIES = np.random.default_rng(5).normal(size=12)
GAPS = np.where(np.arange(12) % 5 == 3, np.nan, SERIES)
TABLE = np.random.default_rng(6).normal(size=(7, 3))


def filled(x):
    out = np.empty_like(x)
    last = x[0]
    for i in range(x.shape[0]):
        if np.isnan(x[i]):
            out[i] = last
        else:
            last = out[i] = x[i]
    return np.nansum(out * np.arange(1.0, len(x) + 1.0))


def changes(x, n=2):
    out = np.empty_like(x)
    out[:n] = np.nan
    out[n:] = x[n:] / x[:-n] - 1
    return np.nansum(out * out)


def least(x, window):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        least = x[i]
        count = 0
        for j in range(max(i - window + 1, 0), i + 1):
            if np.isnan(x[j]):
                continue
            if np.isnan(least) or x[j] < least:
                least = x[j]
            count += 1
        out[i] = np.nan if count < 2 else least
    return out


def lowest(x):
    return np.nansum(least(x, 4) ** 2)


def lowest_ahead(x):
    out = np.empty_like(x)
    y = x[::-1]
    for column in range(y.shape[1]):
        out[:, column] = least(y[:, column], 3)
    return np.nansum(out[::-1] * np.arange(1.0, x.size + 1.0).reshape(x.shape))


def ranges(x):
    out = np.empty(x.shape)
    for column in range(x.shape[1]):
        for i in range(x.shape[0]):
            wide = 1.5 + x[i, column] ** 2
            if i == 0:
                out[i, column] = wide
            else:
                before = x[i - 1, column]
                out[i, column] = max(wide, abs(x[i, column] - before), abs(wide - before))
    return np.nansum(out)


def running_product(x):
    out = np.empty_like(x)
    product = 1.0
    for i in range(x.shape[0]):
        if not np.isnan(x[i]):
            product *= 0.1 * x[i] + 1.0
        out[i] = product
    return np.nansum(out * 2.0)


CASES = [
    *((f, SERIES) for f in (filled, changes, lowest, running_product)),
    *((f, GAPS) for f in (filled, lowest, running_product)),
    *((f, TABLE) for f in (lowest_ahead, ranges)),
]


def compiled(f, x):
    both = nbta.value_and_grad(f, compiled=True)
    both(x)
    return both


def differences(f, x, step=1e-6):
    """Central differences at all numbers that are not missing."""
    found = np.zeros_like(x)
    for place in zip(*np.nonzero(~np.isnan(x)), strict=True):
        ends = [x.copy(), x.copy()]
        ends[0][place] += step
        ends[1][place] -= step
        found[place] = (f(ends[0]) - f(ends[1])) / (2 * step)
    return found


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize(("f", "x"), CASES)
def test_gradients_are_those_of_differences(f, x):
    wanted = differences(f, x)
    for is_compiled in (False, True):
        value, slope = nbta.value_and_grad(f, compiled=is_compiled)(x)
        np.testing.assert_allclose(value, f(x), rtol=1e-13)
        known = ~np.isnan(x)
        np.testing.assert_allclose(slope[known], wanted[known], rtol=1e-6, atol=1e-8)
        _, along = nbta.function(lambda x, d: nbta.jvp(f, (x,), (d,)), compiled=is_compiled)(
            x, np.cos(x)
        )
        np.testing.assert_allclose(along, np.sum((slope * np.cos(x))[known]), rtol=1e-10)


@pytest.mark.parametrize(("f", "x"), [(lowest, SERIES), (lowest_ahead, TABLE)])
def test_a_window_has_one_adjoint_iteration(f, x):
    """The least of a window is saved as the iteration that it is from."""
    text = compiled(f, x).explain()
    saved = text[text.index("values saved") :]
    assert "np.isnan(x[j])" not in saved
    assert "`least`" not in saved


def test_a_part_that_is_measured_is_not_read():
    """``np.empty_like(x[:, column])`` asks for a length alone, and its gradient does so again."""
    source = compiled(lowest_ahead, TABLE).source
    loops = re.findall(r"for (\w+) in range\(\w+\):\n\s+(\w+)\[\1\] = (\w+)\[\w+ \+ \1", source)
    assert not [read for _, _, read in loops if read.startswith("b")]


def test_zeros_that_are_read_are_not_in_memory():
    """They begin what a loop fills, and stand for missing numbers in the gradient of a sum."""
    source = compiled(filled, SERIES).source
    assert "copy(" not in source
    assert source.count("clear(") == 2  # what is filled, and the sums of adjoints


#: What may be done with numbers that all begin as one.
STEPS = (
    "y = y + z * x",
    "y = np.where(x > 0.2, z, y)",
    "z = z * 1.5",
    "for i in range({n}):\n        z[i] = z[i] + x[i] * w",
    "for i in range(1, {n}):\n        y[i] = y[i - 1] * 0.5 + z[i]",
    "for i in range(2):\n        y = y * z + x",
    "z = np.zeros({n})",
    "z = np.zeros(len(x))",
    "z = np.full({n}, w)",
    "z = np.ones_like(x)",
    "y = np.zeros_like(x)",
    "if w > 0.5:\n        y = y + z\n    else:\n        z[1] = w",
    "if x[0] > w:\n        y = np.full(len(x), 2.0)\n    else:\n        y = y + z * y",
    "z[2] = np.sum(y * z)",
    "y = z",
    "y, z = z, y",
    "y = y + np.broadcast_to(w, x.shape) * z",
    "z = z[::-1] + np.sum(z)",
)


def program(seed, folder):
    """A function of random steps, its arguments, and the text."""
    random = np.random.default_rng(seed)
    steps = [STEPS[k] for k in random.integers(0, len(STEPS), 6)]
    lines = ["import numpy as np", "def f(x, w):", "    z = np.zeros(len(x))", "    y = x * 1.0"]
    lines += [f"    {step.format(n=('len(x)', 'x.shape[0]')[k % 2])}"
              for k, step in enumerate(steps)]  # fmt: skip
    lines += ["    return np.sum(y * y * 0.3) + np.sum(z * x)"]
    text = "\n".join(lines) + "\n"
    return written(folder, text), (random.normal(size=5), 0.7), text


@pytest.mark.slow_but_every(30)
@pytest.mark.parametrize("seed", range(150))
def test_random_programs_of_fills(seed, tmp_path):
    f, (x, w), text = program(seed, tmp_path)
    value, slopes = f(x.copy(), w), None
    for is_compiled in (False, True):
        found, both = nbta.value_and_grad(f, (0, 1), compiled=is_compiled)(x, w)
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12, err_msg=text)
        if slopes is None:
            slopes = both
            by_weight = (f(x.copy(), w + 1e-6) - f(x.copy(), w - 1e-6)) / 2e-6
            wanted = (differences(lambda x: f(x.copy(), w), x), by_weight)
            for one, other in zip(both, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6, err_msg=text)
        for one, other in zip(both, slopes, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12, err_msg=text)
