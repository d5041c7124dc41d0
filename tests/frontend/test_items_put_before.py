"""Items that are read, replaced or added to after they were replaced, by the same index."""

import numba
import numpy as np
import pytest
from running import written

import nbta


def damped(x):
    m = np.zeros(len(x))
    for t in range(len(x)):
        if x[t] > 1.0:
            m[t] = 0.5 * x[t]
            m[t] = m[t] * np.exp(-m[t])
    return np.sum(m)


def test_an_item_replaced_twice_in_a_branch_needs_no_copy():
    """Nor is the array saved for each iteration, which took 489 MB for 8,000 items."""
    function = nbta.value_and_grad(numba.njit(damped), compiled=True)
    x = np.random.default_rng(0).uniform(0.9, 1.1, 50)
    _, slope = function(x)
    y = 0.5 * x
    np.testing.assert_allclose(slope, np.where(x > 1, 0.5 * (1 - y) * np.exp(-y), 0), rtol=1e-13)
    assert "copies of whole tensors" not in function.explain()


def shifted(x):
    a = np.ones(len(x) + 1)
    b = a[1:]
    for i in range(len(x)):
        b[i] = x[i] * a[i]
    return np.sum(a)


def table(x):
    a = np.zeros((len(x) + 2, len(x) + 1))
    b, c = a[1:, 1:], a[2:]
    for i in range(1, len(x)):
        for j in range(i):
            b[i, j] = x[i] * x[j] + a[i, j]
            c[i - 1][j + 1] += 0.5 * b[i, j]
            a[i + 1, j + 1] *= x[j]
    return np.sum(a**2)


def wrapped(x):
    """Rows of a view from the row before the first one on, which is the last."""
    a = np.zeros((len(x) + 1, len(x)))
    b = a[1:]
    for i in range(1, len(x)):
        for j in range(i):
            b[i - 2, j] += x[i] * x[j] + a[i - 1, j - 1]
            a[i, j] *= x[j]
    return np.sum(a**2)


@pytest.mark.parametrize("plain", [shifted, table])
def test_items_of_views_are_items_of_the_array(plain):
    """A view and its array were copied by turns: 8,000 items took 600 ms and 489 MB."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, 7)
    step = 1e-6 * np.eye(7)
    slopes = np.array([plain(x + each) - plain(x - each) for each in step]) / 2e-6
    for compiled in (False, True):
        function = nbta.value_and_grad(plain, compiled=compiled)
        value, slope = function(x)
        np.testing.assert_allclose(value, plain(x), rtol=1e-13)
        np.testing.assert_allclose(slope, slopes, rtol=1e-6)
    copies = function.explain().partition("copies of whole tensors")[2]
    assert not copies


@pytest.mark.parametrize("compiled", [False, True])
def test_items_of_views_from_the_end(compiled):
    x = np.random.default_rng(0).uniform(0.5, 1.5, 6)
    step = 1e-6 * np.eye(6)
    slopes = np.array([wrapped(x + each) - wrapped(x - each) for each in step]) / 2e-6
    value, slope = nbta.value_and_grad(wrapped, compiled=compiled)(x)
    np.testing.assert_allclose(value, wrapped(x), rtol=1e-13)
    np.testing.assert_allclose(slope, slopes, rtol=1e-6)


VIEWS = {
    "a counter": "for i in range(k):\n        b[i] = x",
    "a counter and a number": "for i in range(2, k):\n        b[2 * i - 4 + 0] = x",
    "a negative counter": "for i in range(-3, -3 + k):\n        b[i] = x * i",
    "a counter that goes down": "for i in range(k, -1, -1):\n        b[i - 1] = x * i",
    "an argument": "b[k] = x",
    "a part of a view": "c = b[1:]\n    for i in range(k):\n        c[i] = x",
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_an_index_of_a_view_is_held_against_the_view(tmp_path, name, compiled):
    lines = ["a = np.ones(5)", "b = a[2:]", VIEWS[name], "return np.sum(a * np.arange(5))"]
    text = "\n    ".join(["import numpy as np\n\ndef function(x, k):", *lines])
    plain = written(tmp_path, text + "\n", "function")
    function = nbta.value_and_grad(plain, compiled=compiled)
    for k in range(-5, 6):
        try:
            wanted = plain(1.5, k)
        except IndexError:
            with pytest.raises(nbta.OutOfRangeError):
                function(1.5, k)
        else:
            assert function(1.5, k)[0] == wanted, k


def rows(x):
    m = np.zeros((len(x), 2))
    for t in range(len(x)):
        if x[t] > 1.0:
            m[t] = np.array([0.5, 0.25]) * x[t]
            m[t] = m[t] * np.exp(-m[t])
    return np.sum(m)


def test_a_row_replaced_twice_in_a_branch_needs_no_copy():
    function = nbta.value_and_grad(rows, compiled=True)
    x = np.random.default_rng(0).uniform(0.9, 1.1, 50)
    _, slope = function(x)
    y = np.outer(x, [0.5, 0.25])
    expected = np.where(x > 1, np.sum((1 - y) * np.exp(-y) * [0.5, 0.25], 1), 0)
    np.testing.assert_allclose(slope, expected, rtol=1e-13)
    assert "copies of whole tensors" not in function.explain()


KEYS = ["i", "(i, ...)", "(..., i)", "(i, None)", "(None, i)", "(i, slice(None))", "(slice(1), i)",
        "(1, i)", "(slice(1, 3), slice(i))", "([0, i],)", "i - 1", "(-i, i)"]  # fmt: skip


@pytest.mark.parametrize("value", ["x[0]", "x[:1]", "x"])
@pytest.mark.parametrize("key", KEYS)
def test_keys_of_more_than_integers(tmp_path, key, value):
    """What they name has a shape of its own, unlike that of the value that was put there."""
    lines = ["a = np.zeros((4, 4))", f"a[{key}] = {value}", f"b = a[{key}]", f"a[{key}] = b * 2.0"]
    lines += [f"a[{key}] += 1.0", f"return np.sum(a * a), np.sum(b * b), a[{key}] + b"]
    text = "\n    ".join(["import numpy as np\n\ndef function(x, i):", *lines])
    plain = written(tmp_path, text + "\n", "function")
    x = np.arange(1.0, 5.0)
    try:
        wanted = plain(x, 1)
    except (ValueError, IndexError):
        return
    for compiled in (False, True):
        found = nbta.function(plain, compiled=compiled)(x, 1)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


FAILS = {
    "read": "a[i] = x\n    return a[i] + 1.0",
    "read in a branch": "a[i] = x\n    if x > 0.0:\n        return a[i]\n    return 0.0",
    "replaced": "a[i] = x\n    a[i] = a[i] * x\n    return a[i]",
    "added to": "a[i] = x\n    a[i] += a[i]\n    return a[i]",
    "in a loop": "for _ in range(3):\n        a[i] = x\n        x = a[i] * x\n    return x",
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", FAILS)
def test_an_index_out_of_range_is_an_error_though_the_value_is_known(tmp_path, name, compiled):
    text = f"import numpy as np\n\ndef function(x, i):\n    a = np.zeros(3)\n    {FAILS[name]}\n"
    plain = written(tmp_path, text, "function")
    function = nbta.value_and_grad(plain, compiled=compiled)
    for i in (0, 2, -3):
        assert function(1.5, i)[0] == plain(1.5, i)
    for i in (3, -4):
        with pytest.raises(nbta.OutOfRangeError, match=f"there is no index {i}"):
            function(1.5, i)


INDICES = ["i", "i + 1", "i - 1", "0", "-1", "j", "j + 1"]
ITEMS = ["a[{}]", "b[{}]", "c[{}, 1]", "c[1, {}]"]


class Maker:
    """Statements that put values to items and use items, at few indices."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def item(self):
        return self.rng.choice(ITEMS).format(self.rng.choice(INDICES))

    def value(self):
        forms = ["{} * x[i]", "np.sin({}) + {}", "0.5 * {} - x[i - 1]", "x[i] + 0.25"]
        return self.rng.choice(forms).format(self.item(), self.item())

    def statement(self, target):
        kind = self.rng.integers(4)
        if kind == 0:
            return f"{target} {self.rng.choice(['+=', '-=', '*='])} {self.value()}"
        return f"{target} = " + (f"{target} * np.cos({target})" if kind == 1 else self.value())

    def block(self, count, depth=0):
        """Lines, most of which are about the item of the line before."""
        lines, target = [], self.item()
        for _ in range(count):
            target = target if self.rng.random() < 0.6 else self.item()
            if depth == 2 or self.rng.random() < 0.7:
                lines.append(self.statement(target))
                continue
            lines.append(f"if {target} > {self.rng.choice(['0.0', '0.3'])}:")
            lines += ["    " + line for line in self.block(2, depth + 1)]
            if self.rng.random() < 0.5:
                lines += ["else:", *("    " + line for line in self.block(2, depth + 1))]
        return lines


def program(seed):
    body = "\n".join("        " + line for line in Maker(seed).block(5))
    return f"""import numpy as np

def function(x):
    n = len(x) - 1
    a, b2, c, j = np.zeros(n + 1), np.full(n + 3, 0.5), np.ones((n + 1, n + 1)), 1
    b = b2[1:]
    for i in range(1, n):
{body}
        j = n - i
    return np.sum(a * a) + np.sum(b2) + np.sum(c * np.arange(n + 1.0))
"""


def check(folder, seed):
    plain = written(folder, program(seed), "function")
    x = np.random.default_rng(seed).uniform(-1, 1, 6)
    wanted, step = plain(x), 1e-6 * np.eye(6)
    slopes = np.array([plain(x + each) - plain(x - each) for each in step]) / 2e-6
    for compiled in (False, True):
        value, slope = nbta.value_and_grad(plain, compiled=compiled)(x)
        np.testing.assert_allclose(value, wanted, rtol=1e-12, err_msg=program(seed))
        scale = 1 + np.abs(slopes).max()
        np.testing.assert_allclose(slope / scale, slopes / scale, atol=2e-7, err_msg=program(seed))


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(tmp_path, seed):
    check(tmp_path, seed)


@pytest.mark.slow
def test_many_random_programs(tmp_path):
    for seed in range(6, 60):
        check(tmp_path, seed)
