"""The interpreter: nodes run as Python runs what is printed of them, and as compiled code does."""

import numpy as np
import pytest
import read_code
from interpreted import by_nodes, interpreted

import nbta
from nbta.compiler.executable import Compiled, Executable
from nbta.execution.reference import Step
from nbta.loops.interpreting import Interpreter

HEAD = "def run(w):\n    W = table(w)\n"
BODIES = [
    "for i in range(W[0]):\n    for j in range(i, W[1], 2):\n        W[2] += i * j\nreturn 0",
    "for i in range(W[1], W[0], -1):\n    if i == 4: break\n    W[2] -= i\nreturn 1",
    "while True:\n    W[2] += 1\n    if W[2] > 5 and not W[0] == 9 or W[2] >= 8: break\nreturn 2",
    "if W[0] < W[1] <= 5: return 17\nelif W[0] == 9:\n    W[2] = ~W[1] ^ 3\nelse:\n    W[2] = -1\n"
    "refuse(W[2] < 0, 33)\nreturn 4",
    "x = max(W[0], 2) if W[1] else abs(-W[0])\nx -= 1\nW[2] = x << 1 | 1\npass\nreturn W[2] % 3",
    "f(W, (W[0], W[1], 7))\nW[2] += K0 // 2\nreturn 0",
]


class LeftError(Exception):
    pass


def refuse(condition, status):
    if condition:
        raise LeftError(status)


def by(run, words):
    try:
        return run(), words
    except LeftError as left:
        return left.args, words


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("words", [[5, 3, 0], [3, 5, 0], [9, -2, 0], [0, 0, 0]])
def test_statements_are_those_of_python(body, words):
    def f(table, items):
        table[2] = sum(items)

    names = {"table": lambda w: w, "refuse": refuse, "f": f, "K0": 7}
    source = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    function = read_code.function(source)
    here, there = list(words), list(words)
    printed = dict(names)
    exec(str(function), printed)
    one = by(lambda: Interpreter(function, names).run(here), here)
    assert one == by(lambda: printed["run"](there), there)


class ByNodes(Compiled):
    """A program whose nodes are run."""

    def _built(self, generated):
        return Executable(generated, by_nodes(generated.function, generated.globals), Step)


class ByText(Compiled):
    """A program whose text Python runs."""

    def _built(self, generated):
        return Executable(generated, interpreted(generated.source, generated.globals), Step)


def filtered(x, w):
    """A loop with an index that may be outside, a branch, a growing array and a sum."""
    kept = nbta.TensorArray(np.float64, dynamic_size=True)
    total = 0.0
    for i in range(len(x)):
        if x[i] > 0.3:
            total = total + w[i - 1] * x[i]
        kept = kept.write(i, total * w)
    return nbta.sum(kept.stack() ** 2) + nbta.logsumexp(x)


def test_programs_give_what_their_text_gives():
    rng = np.random.default_rng(3)
    x, w = rng.random(7), rng.random(7)
    results = []
    for kind in (ByNodes, ByText):
        value_and_grad = nbta.value_and_grad(filtered, argnums=(0, 1), compiled=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Compiled, "_built", kind._built)
            results.append(value_and_grad(x, w))
    (one, gradients), (other, others) = results
    np.testing.assert_array_equal(one, other)
    for mine, theirs in zip(gradients, others, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    value, expected = nbta.value_and_grad(filtered, argnums=(0, 1), compiled=False)(x, w)
    np.testing.assert_allclose(one, value, rtol=1e-14)
    for mine, theirs in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
