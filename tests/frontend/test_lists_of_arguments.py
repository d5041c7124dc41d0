"""Lists among the arguments: all that Python does with them, and one list in two places.

Programs are put together of random steps on a list that is an argument. Values are Python's, which
runs the same program, and gradients are compared with central differences.
"""

import types

import numpy as np
import pytest

import nbta
from nbta.testing import check_grads

#: Changes of a list `x` of numbers, of which there are four or more.
CHANGES = {
    "append": "x.append(x[0] * 1.5)",
    "appends": "for k in range(n):\n    x.append(x[k] - 0.25 * k)",
    "extend": "x.extend([2.5, x[1]])",
    "insert": "x.insert(1, x[2] + 0.5)",
    "pop": "s += x.pop()",
    "pop_first": "s += 2.0 * x.pop(0)",
    "pop_some": "for k in range(n - 1):\n    s += x.pop() * k",
    "remove": "x.remove(max(x))",
    "delete": "del x[1]",
    "sort": "x.sort()",
    "sort_by": "x.sort(key=lambda v: -v)",
    "reverse": "x.reverse()",
    "assign": "x[1] = x[0] * x[2]",
    "assign_in_loop": "for k in range(n):\n    x[k] = x[k] * 0.5 + k",
    "assign_slice": "x[0:2] = [x[1], x[0], 1.25]",
    "add": "x += [x[0], 0.75]",
    "multiply": "x *= 2",
    "swap": "x[0], x[-1] = x[-1], x[0]",
}
FOR_KNOWN_LENGTHS = {"assign_slice", "multiply"}  # a list that a loop fills refuses these
OF_DICTS = {
    "assign": "x['a'] = 2.0",
    "pop": "x.pop('a')",
    "delete": "del x['a']",
    "update": "x.update(a=3.0)",
    "add": "x['c'] = 1.0",
}


def _function(tmp_path, source, name="f"):
    path = tmp_path / f"program_{len(list(tmp_path.iterdir()))}.py"
    path.write_text(source)
    module = types.ModuleType(path.stem)
    exec(compile(source, str(path), "exec"), vars(module))
    return getattr(module, name)


def _program(steps):
    lines = ["def f(x, n):", "    s = 0.0"]
    lines += [f"    {line}" for step in steps for line in CHANGES[step].split("\n")]
    lines += ["    for k in range(len(x)):", "        s += x[k] * (k + 1.5)", "    return s"]
    return "\n".join(lines) + "\n"


def _compare(function, items, n):
    wanted = function(list(items), n)
    before = list(items)
    for compiled in (False, True):
        value, gradient = nbta.value_and_grad(function, compiled=compiled)(items, n)
        np.testing.assert_allclose(value, wanted, rtol=1e-12)
        assert items == before  # the caller's own list stays as it is
        for k in range(len(items)):
            ends = []
            for step in (1e-4, -1e-4):
                moved = list(items)
                moved[k] += step
                ends.append(function(moved, n))
            assert gradient[k] == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_list_that_is_an_argument(tmp_path, change):
    _compare(_function(tmp_path, _program([change])), [3.0, -1.25, 2.0, 0.5], 3)


def _random_steps(seed):
    rng = np.random.default_rng(seed)
    steps = [str(step) for step in rng.choice(sorted(CHANGES), size=4)]
    first = [step for step in steps if step in FOR_KNOWN_LENGTHS]
    return [*first, "append", *(step for step in steps if step not in FOR_KNOWN_LENGTHS)]


@pytest.mark.slow_but_every(20)
@pytest.mark.parametrize("seed", range(60))
def test_random_changes(tmp_path, seed):
    function = _function(tmp_path, _program(_random_steps(seed)))
    _compare(function, [3.0, -1.25, 2.0, 0.5, 0.875, 4.0], 3)


def test_lists_in_lists(tmp_path):
    source = (
        "def f(rows, n):\n"
        "    s = 0.0\n"
        "    for row in rows:\n"
        "        row.sort()\n"
        "        row.append(row[0] * row[1])\n"
        "    rows[0][1] = 4.0\n"
        "    rows.reverse()\n"
        "    for row in rows:\n"
        "        for k in range(len(row)):\n"
        "            s = s * 0.5 + row[k] * (k + n)\n"
        "    return s\n"
    )
    function = _function(tmp_path, source)
    rows = [[3.0, 1.0], [0.5, 2.0], [-1.0, 4.0]]
    for compiled in (False, True):
        made = nbta.value_and_grad(function, compiled=compiled)
        assert made(rows, 2)[0] == pytest.approx(function([list(row) for row in rows], 2))
    assert rows == [[3.0, 1.0], [0.5, 2.0], [-1.0, 4.0]]
    check_grads(lambda a: function([[a[0], a[1]], [0.5, 2.0]], 2), (np.array([3.0, 1.0]),))


def test_an_argument_that_fills_a_list_is_a_result(tmp_path):
    function = _function(tmp_path, "def f(x, out):\n    for v in x:\n        out.append(v * v)\n")
    for compiled in (False, True):
        made = nbta.function(function, compiled=compiled, outputs=("out",))
        np.testing.assert_allclose(made(np.arange(12.0), []), np.arange(12.0) ** 2)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("inner", [False, True])
def test_one_list_in_two_places(tmp_path, change, inner):
    body = "".join(f"    {line}\n" for line in CHANGES[change].split("\n"))
    head = "def f(both, n):\n    x, y = both\n" if inner else "def f(x, y, n):\n"
    function = _function(tmp_path, f"{head}    s = 0.0\n{body}    return s + sum(y)\n")
    one, other = [3.0, -1.25, 2.0, 0.5], [1.0, 0.0]

    def given(x, y):
        return ([x, y], 3) if inner else (x, y, 3)

    for compiled in (False, True):
        made = nbta.function(function, compiled=compiled)
        first = made(*given(one, other))  # a graph for lists that are two
        assert first == function(*given(list(one), list(other)))
        for _ in range(2):
            assert made(*given(one, list(one))) == function(*given(list(one), list(one)))
        with pytest.raises(nbta.InvalidArgumentError, match="one list is given in two places"):
            made(*given(one, one))
        with pytest.raises(nbta.InvalidArgumentError, match="one list is given in two places"):
            nbta.function(function, compiled=compiled)(*given(one, one))


def test_one_list_in_two_places_that_nobody_changes(tmp_path):
    function = _function(tmp_path, "def f(x, y):\n    return x[0] * y[1]\n")
    one = [3.0, 2.0]
    for compiled in (False, True):
        made = nbta.value_and_grad(function, compiled=compiled)
        for _ in range(3):
            assert made(one, one) == (6.0, [2.0, 0.0])


@pytest.mark.parametrize("change", OF_DICTS)
def test_one_dict_in_two_places(tmp_path, change):
    source = f"def f(x, y):\n    {OF_DICTS[change]}\n    return sum(y.values())\n"
    function = _function(tmp_path, source)
    one = {"a": 1.0, "b": 2.0}
    for compiled in (False, True):
        made = nbta.function(function, compiled=compiled)
        for _ in range(3):
            assert made(one, dict(one)) == 3.0
        with pytest.raises(nbta.InvalidArgumentError, match="one dict is given in two places"):
            made(one, one)


@pytest.mark.parametrize(
    ("items", "value"),
    [(items, value) for items in [(3.0, 1.0, 2.0), (2.0, 1.0, 2.0)] for value in [2.0, 9.0]],
)
def test_remove_of_what_the_run_finds(tmp_path, items, value):
    source = "def f(x, v):\n    x.remove(v)\n    return x[0] * 10.0 + x[1]\n"
    function = _function(tmp_path, source)
    for compiled in (False, True):
        made = nbta.function(function, compiled=compiled)
        if value not in items:
            with pytest.raises(ValueError, match="the value is not in the list"):
                made(list(items), value)
        else:
            assert made(list(items), value) == function(list(items), value)
