"""LLVM is given the width of vectors where it certainly makes some; it prints nothing of others."""

import os
import random
import subprocess
import sys

import pytest
import read_code

import nbta
from nbta.compiler import lowering

#: Two integers and the places of floats; ``m`` and ``k`` are known to the run alone.
HEAD = """def run(w):
    W = pointer(int64, w, 99)
    m = W[0]
    k = W[1]
    a = pointer(float64, w + 1000, 3)
    b = pointer(float64, w + 2600, 4)
    c = pointer(float64, w + 4200, 5)
    d = pointer(float64, w + 5800, 5)
    n = pointer(int64, w + 7400, 6)
    s = a[0]
    t = a[1]
    z = a[2]
"""
TAIL = "    W[2] = int64(s + t + z)\n    return 0\n"
INDICES = [
    "j", "j", "j", "j + 1", "j + k", "k + j", "2 * j", "j * m", "j * m + k", "m", "3", "j // 2",
    "n[j]", "63 - j", "j + 8",
]  # fmt: skip


def compiled(lines, count, monkeypatch, tmp_path):
    """LLVM's code of a loop of some statements, made anew."""
    made = []

    class Unit(lowering._Unit):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            made.append(self)

    assert nbta.tanh  # all operations are defined, and their functions have names in source
    monkeypatch.setattr(lowering, "_Unit", Unit)
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path))
    body = "".join(f"        {line}\n" for line in lines)
    read_code.built(f"{HEAD}    for j in range({count}):\n{body}{TAIL}")
    return str(made[-1].module)


def is_told(text):
    """Whether LLVM is given a width of vectors."""
    return "llvm.loop.vectorize.width" in text


def drawn(rng):
    """A random body."""

    def item():
        return f"{rng.choice('abbcd')}[{rng.choice(INDICES)}]"

    def value(depth):
        kind = rng.randrange(9 if depth else 4)
        if kind < 2:
            return item()
        if kind < 4:
            return rng.choice(["s", "t", "z", "0.5", "j"])
        one, other = value(depth - 1), value(depth - 1)
        if kind == 4:
            return f"fast_add({one}, {other})" if "j" not in (one, other) else f"{one} * 2.0"
        if kind == 5 and one != "j":
            return f"{rng.choice(['exp', 'tanh'])}({one})"
        return f"({one} {rng.choice('+-*')} {other})"

    lines = []
    for _ in range(rng.randint(1, 4)):
        target = rng.choice([item(), item(), "s", "t", "z"])
        shape = rng.randrange(4)
        if shape == 0:
            lines.append(f"{target} = {target} + {value(1)}")
        elif shape == 1:
            lines.append(f"{target} = {target} * {value(0)}")
        else:
            lines.append(f"{target} = {value(2)}")
    return [line if line[-1] != "j" else f"{line} + 1.0" for line in lines]


@pytest.mark.slow_but_every(8)
@pytest.mark.parametrize("seed", range(80))
def test_nothing_is_printed_of_any_body(seed, monkeypatch, tmp_path, capfd):
    rng = random.Random(seed)
    for _ in range(4):
        lines, count = drawn(rng), rng.choice([8, 10, 12, 16, 24, 64])
        compiled(lines, count, monkeypatch, tmp_path)
        assert capfd.readouterr() == ("", ""), (lines, count)


@pytest.mark.parametrize(
    "body",
    [
        "a[j] = b[j] + c[j]", "a[j] = a[j] * exp(b[j])", "s = fast_add(s, a[j] * b[j])",
        "s = s + a[j]", "s = s + a[j] + b[j]", "a[m] = a[m] - b[j]", "a[2 * j + k] = b[j + m]",
        "z = a[j]; b[j] = z * z", "s = s + a[j]; t = t * b[j]", "a[j] = b[j] + b[j + 1]",
        "z = a[j]; t = a[j + 8]; b[j] = z * t", "s = s + a[j]; s = s - b[j]",
        "a[m * k + j] = b[j]", "a[j] = b[63 - j]", "a[m] = b[j]",
        "z = b[j]; t = b[k + j]; a[j] = z * t; c[j] = z + t",
    ],
)  # fmt: skip
def test_vectors_are_asked_for(body, monkeypatch, tmp_path, capfd):
    assert is_told(compiled(body.split("; "), 16, monkeypatch, tmp_path))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "body",
    [
        "s = s * a[j] + b[j]", "a[m] = a[m] * b[j] + 1.0", "z = s; s = a[j]; b[j] = z",
        "s = s + a[j]; b[j] = s", "s = a[j] - s", "a[j] = b[j * m]", "a[j * m] = b[j]",
        "a[j + 1] = a[j]", "a[j] = b[j]; c[j] = b[j + 1]", "c[j] = d[j]",
        "c[j] = a[j]; d[j] = b[j]", "a[j] = b[n[j]]", "a[j // 2] = b[j]",
        "a[j + m] = b[j]; a[j + k] = c[j]", "a[j] = b[j + m]; c[j] = b[j + k]",
    ],
)  # fmt: skip
def test_vectors_are_not_asked_for(body, monkeypatch, tmp_path, capfd):
    """Each of them has made LLVM print a remark, or is like one that has."""
    assert not is_told(compiled(body.split("; "), 16, monkeypatch, tmp_path))
    assert capfd.readouterr() == ("", "")


PROGRAM = """
import numpy as np
import nbta

def discounted(w, x):
    s = 0.0
    for j in range(16):
        s = s * w + x[j]
    return s

value, slope = nbta.value_and_grad(discounted, compiled=True)(0.5, np.arange(16.0))
print(value == discounted(0.5, np.arange(16.0)))
"""


def test_a_process_that_compiles_writes_nothing_to_standard_error(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "NBTA_CACHE_DIR": str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
