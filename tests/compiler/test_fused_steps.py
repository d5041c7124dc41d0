"""Loops over items have a bounded number of operations: what others need of them is stored."""

import numpy as np
import pytest
from frontend_random import built

import nbta
from nbta.codegen import fusion

OPERATIONS = """\
np.sin({a}) * {c} + {b}
{a} * {b} - {c}
{a} / (2.0 + {b} * {b})
np.where({a} > {b}, {a}, {c})
{a} * np.sum({b}) * 0.01
np.tanh({a})[::-1] + {b}
{a} + x[1] * {b}
np.sqrt(1.0 + {a} * {a}) - {b}
""".splitlines()


def program(statements, seed, in_loop=False):
    """A function of vectors, of operations on what the last statements made."""
    random, names = np.random.default_rng(seed), ["x", "y"]
    space = "        " if in_loop else "    "
    lines = ["import numpy as np", "def f(x, y):", "    total = 0.0"]
    lines += ["    for k in range(3):"] if in_loop else []
    for k in range(statements):
        a, b = random.choice(names[-8:], 2)
        text = OPERATIONS[k % len(OPERATIONS)]
        lines.append(f"{space}v{k} = {text.format(a=a, b=b, c=round(random.uniform(0.2, 0.9), 3))}")
        names.append(f"v{k}")
    lines += [f"{space}total += np.sum({' + '.join(names[-8:])})"]
    lines += [f"{space}x = np.tanh(x) + 0.1 * v{statements - 1}"] if in_loop else []
    return built("\n".join([*lines, "    return total", ""]))[0]


def results(f, **options):
    random = np.random.default_rng(9)
    arguments = random.normal(size=9), random.normal(size=9)
    made = nbta.value_and_grad(f, argnums=(0, 1), **options)
    value, gradients = made(*arguments)
    return made, [value, *gradients]


@pytest.mark.parametrize(("steps", "in_loop"), [(2, False), (5, True)])
def test_loops_of_few_operations_give_what_one_does(monkeypatch, tmp_path, steps, in_loop):
    f, found, loops = program(6, steps, in_loop), [], []
    found.append(results(f, compiled=False)[1])
    for limit in (steps, fusion.FUSED_STEPS):
        monkeypatch.setattr(fusion, "FUSED_STEPS", limit)
        monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path / str(limit)))
        made, values = results(f, compiled=True)
        found.append(values)
        loops.append(made.source.count("for i"))
    assert loops[0] > loops[1]
    for values in found[1:]:
        for mine, other in zip(values, found[0], strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-13, atol=1e-14)


def test_a_loop_has_no_more_operations_than_its_bound(monkeypatch, tmp_path):
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(fusion, "FUSED_STEPS", 10)
    sizes, write = [], fusion.Group._write

    def noted(group, code, done):
        sizes.append(len(group.steps))
        return write(group, code, done)

    monkeypatch.setattr(fusion.Group, "_write", noted)
    results(program(16, 1), compiled=True)
    assert 10 <= max(sizes) <= 12  # an operation may take numbers of its own besides
