"""Lists that the branches of a function make, each as long as it likes.

Two ways to make a list, and what is done with it then, are put together to programs. Values are
those of Python, which runs the same program, and gradients are compared with central differences.
"""

import itertools
import types

import numpy as np
import pytest

import nbta

#: Ways to make a list of numbers `r` of an array `x` and a number `n`.
MADE = {
    "none": "r = []",
    "written": "r = [x[0] * x[1], 2.0]",
    "known": "r = [1.5, -0.5, 4.0]",
    "integers": "r = [3, 1, 2, 5]",
    "filled": "r = []\nfor k in range(n):\n    r.append(x[k % 3] * k)",
    "filled_if": "r = [x[2]]\nfor k in range(n):\n    if x[k % 3] > 0.0:\n"
    "        r.append(x[k % 3] - k)",
    "comprehension": "r = [v * v for v in x]",
    "chosen": "r = [v * 3.0 for v in x if v > 0.0]",
    "sorted": "r = sorted([x[2], x[0]])",
    "joined": "r = [x[0]] + [x[1] * x[2]] * 2",
    "popped": "r = [x[0], x[1], x[2]]\nfor k in range(2):\n    r.pop()",
}
USES = {
    "sum": "s += sum(r)",
    "loop": "for v in r:\n    s = s * 0.5 + v * v",
    "indices": "for k in range(len(r)):\n    s += r[k] * (k + 1)",
    "length": "s += len(r) * x[1]",
    "append": "r.append(x[0])\nr.append(x[1] * 2.0)\ns += sum(r)",
    "array": "s += np.sum(np.array(r) ** 2)",
    "assign": "if len(r) > 0:\n    r[0] = x[1] * 7.0\ns += sum(r)",
    "max": "s += max(r) if r else x[2]",
}
X = np.array([1.25, -0.5, 0.75])


def _function(tmp_path, source):
    path = tmp_path / f"program_{len(list(tmp_path.iterdir()))}.py"
    path.write_text(source)
    module = types.ModuleType(path.stem)
    vars(module)["np"] = np
    exec(compile(source, str(path), "exec"), vars(module))
    return module.f


def _indented(text, by):
    return "".join(f"{' ' * by}{line}\n" for line in text.split("\n"))


def _by_branch(one, other, use):
    """A program whose branch makes one of two lists."""
    return (
        "def f(x, n, t):\n    s = 0.0\n    if t > 0.0:\n"
        f"{_indented(MADE[one], 8)}    else:\n{_indented(MADE[other], 8)}"
        f"{_indented(USES[use], 4)}    return s\n"
    )


def _by_return(one, other, use):
    """The same of a function that gives one list early."""
    return (
        f"def g(x, n, t):\n    if t > 0.0:\n{_indented(MADE[one], 8)}        return r\n"
        f"{_indented(MADE[other], 4)}    return r\n\n"
        "def f(x, n, t):\n    s = 0.0\n    r = g(x, n, t)\n"
        f"{_indented(USES[use], 4)}    return s\n"
    )


def _in_a_tuple(one, other, use):
    """The same of a function that gives a list and a number."""
    return (
        f"def g(x, n, t):\n    if t > 0.0:\n{_indented(MADE[one], 8)}"
        "        return 0.5, (r, x[0])\n"
        f"{_indented(MADE[other], 4)}    return x[1], (r, 2.0)\n\n"
        "def f(x, n, t):\n    s, (r, w) = g(x, n, t)\n"
        f"{_indented(USES[use], 4)}    return s * w\n"
    )


def _in_loop(one, other, use):
    """A list in each iteration of a loop, of one of two kinds."""
    return (
        "def f(x, n, t):\n    s = 0.0\n    for j in range(n + 7):\n        if t * (j - 4) > 0.0:\n"
        f"{_indented(MADE[one], 12)}        else:\n{_indented(MADE[other], 12)}"
        f"{_indented(USES[use], 8)}    return s\n"
    )


def _compare(function, compiled, n=4):
    made = nbta.value_and_grad(function, compiled=compiled)
    for t in (1.0, -1.0, 1.0):  # by one graph
        value, gradient = made(X, n, t)
        np.testing.assert_allclose(value, function(X.copy(), n, t), rtol=1e-12)
        for k in range(3):
            step = 1e-4 * np.eye(3)[k]
            ends = function(X + step, n, t) - function(X - step, n, t)
            assert gradient[k] == pytest.approx(ends / 2e-4, rel=1e-6, abs=1e-8)


PAIRS = list(itertools.permutations(MADE, 2))
CASES = [
    (write, *pair, sorted(USES)[k % len(USES)])
    for write in (_by_branch, _by_return, _in_a_tuple)
    for k, pair in enumerate(PAIRS)
]


@pytest.mark.slow_but_every(16)
@pytest.mark.parametrize(("write", "one", "other", "use"), CASES)
def test_a_list_of_one_of_two_ways(tmp_path, write, one, other, use):
    _compare(_function(tmp_path, write(one, other, use)), False)


@pytest.mark.slow_but_every(100)
@pytest.mark.parametrize(("write", "one", "other", "use"), CASES)
def test_a_list_of_one_of_two_ways_in_generated_code(tmp_path, write, one, other, use):
    _compare(_function(tmp_path, write(one, other, use)), True)


@pytest.mark.slow_but_every(24)
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_list_of_each_iteration(tmp_path, one, other):
    _compare(_function(tmp_path, _in_loop(one, other, "indices")), False, n=3)


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), PAIRS[::7])
def test_a_list_of_each_iteration_in_generated_code(tmp_path, one, other):
    _compare(_function(tmp_path, _in_loop(one, other, "indices")), True, n=3)


@pytest.mark.parametrize("way", [1.0, -1.0])
def test_results(tmp_path, way):
    source = (
        "def f(x, n, t):\n    if t > 0.0:\n        return []\n"
        "    out = []\n    for k in range(n):\n        out.append(x[0] * k)\n    return out\n"
    )
    function = _function(tmp_path, source)
    for compiled in (False, True):
        found = nbta.function(function, compiled=compiled)(X, 12, way)
        np.testing.assert_array_equal(found, function(X, 12, way))


#: Functions with several returns of one list, and of more than that.
RETURNS = {
    "longer": "if x[0] * t > 0.0:\n    return out\nfor v in x:\n"
    "    out.append(2.0 * v)\nreturn out",
    "three": "if x[0] * t > 0.0:\n    out.append(5.0)\n    return out\nif x[1] > 0.0:\n"
    "    return out\nfor v in x:\n    out.append(2.0 * v)\nreturn out",
    "tuples": "if x[0] * t > 0.0:\n    return out, 1.0\nout.append(2.0)\nreturn out, x[1]",
    "in_loop": "for v in x:\n    if v * t < 0.0:\n        return out\n"
    "    out.append(v)\nreturn out",
    "length": "if len(out) > 4 + t:\n    return out\nout.append(1.0)\nreturn out",
}


@pytest.mark.parametrize("name", RETURNS)
def test_several_returns_of_one_list(tmp_path, name):
    first = "out = []\nfor k in range(n):\n    out.append(x[k % 3])\n"
    source = f"def f(x, n, t):\n{_indented(first + RETURNS[name], 4)}"
    function = _function(tmp_path, source)
    made = nbta.function(function, compiled=False)
    for n, way in itertools.product([3, 12], [1.0, -1.0]):
        found, wanted = made(X, n, way), function(X, n, way)
        if name != "tuples":
            found, wanted = (found,), (wanted,)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)


def test_lists_in_tuples(tmp_path):
    source = (
        "def g(v):\n    if v < 0.0:\n        return False, []\n    return True, [v, 2.0]\n\n"
        "def f(x, n, t):\n    holds, parts = g(x[0] * t)\n"
        "    return sum(parts) * x[2] if holds else x[1]\n"
    )
    for compiled in (False, True):
        _compare(_function(tmp_path, source), compiled)


#: What must not become a copy: lists that something else refers to as well.
SHARED = {
    "two_names": "if t > 0.0:\n    r = [x[0]]\n    q = r\nelse:\n    r = [x[1], x[2]]\n    q = r\n"
    "r.append(5.0)\ns = sum(q)",
    "in_a_list": "q = [[0.0]]\nif t > 0.0:\n    r = [x[0]]\n    q[0] = r\nelse:\n"
    "    r = [x[1], x[2]]\n    q[0] = r\nr.append(5.0)\ns = sum(q[0])",
    "in_a_dict": "q = {}\nif t > 0.0:\n    r = [x[0]]\n    q['r'] = r\nelse:\n"
    "    r = [x[1], x[2]]\n    q['r'] = r\nr.append(5.0)\ns = sum(q['r'])",
    "in_a_tuple": "if t > 0.0:\n    r = [x[0]]\n    q = r, 1.0\nelse:\n"
    "    r = [x[1], x[2]]\n    q = r, 2.0\nr.append(5.0)\ns = sum(q[0]) * q[1]",
    "filled_in_a_tuple": "r = []\nif t > 0.0:\n    for k in range(n):\n        r.append(x[0] * k)\n"
    "    q = r, 1.0\nelse:\n    q = [x[1]], 2.0\nr.append(5.0)\ns = sum(q[0]) * q[1]",
    "filled_twice_in_a_tuple": "if t > 0.0:\n    r = []\n    for k in range(n):\n"
    "        r.append(x[0] * k)\n    q = r, r, x[1]\nelse:\n    r = [x[2]]\n"
    "    q = r, [x[1]], 2.0\n"
    "q[0].append(5.0)\ns = sum(q[0]) * sum(q[1]) + q[2]",
    "older_in_a_tuple": "r = []\nfor k in range(n):\n    r.append(x[0] * k)\nif t > 0.0:\n"
    "    q = r, 1.0\nelse:\n    r.append(x[1])\n    q = r, 2.0\n"
    "r.append(5.0)\ns = sum(q[0]) * q[1]",
    "older": "q = [x[2], x[1], x[0]]\nif t > 0.0:\n    r = [x[0]]\nelse:\n    r = q\n"
    "r.append(5.0)\ns = sum(q)",
    "both_older": "p = [x[2]]\nq = [x[1], x[0]]\nif t > 0.0:\n    r = p\nelse:\n    r = q\n"
    "r.append(5.0)\ns = sum(q) + 2.0 * sum(p)",
}


@pytest.mark.parametrize("name", SHARED)
def test_shared_lists_are_python_s_or_refused(tmp_path, name):
    source = f"def f(x, n, t):\n{_indented(SHARED[name], 4)}    return s\n"
    function = _function(tmp_path, source)
    for way in (1.0, -1.0):
        try:
            found = nbta.function(function, compiled=False)(X, 4, way)
        except nbta.NbtaError:
            continue  # that is exact, too
        assert found == pytest.approx(function(X, 4, way), rel=1e-14)


def test_a_list_that_is_read_where_no_branch_made_it(tmp_path):
    source = (
        "def f(x, n, t):\n    if t > 0.0:\n        r = []\n        for k in range(n):\n"
        "            r.append(x[0] * k)\n    return sum(r)\n"
    )
    made = nbta.function(_function(tmp_path, source), compiled=False)
    assert made(X, 12, 1.0) == 66 * X[0]
    with pytest.raises(UnboundLocalError):
        made(X, 12, -1.0)


def test_a_list_or_none(tmp_path):
    source = (
        "def f(x, n, t):\n    if t > 0.0:\n        return None\n"
        "    out = []\n    for k in range(n):\n        out.append(x[0] * k)\n    return out\n"
    )
    made = nbta.function(_function(tmp_path, source), compiled=False)
    np.testing.assert_array_equal(made(X, 12, -1.0), X[0] * np.arange(12))
    with pytest.raises(TypeError, match="gives None in this run and a list in others"):
        made(X, 12, 1.0)
