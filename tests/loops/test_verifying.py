"""The verifier: each rule has a function that breaks it."""

import pytest
import read_code

from nbta.loops import Block, assign
from nbta.loops.verifying import BrokenFunctionError, verify

KNOWN = {"pointer", "int64", "refuse", "f"}
HEAD = "W = pointer(int64, w, 99)"

WHOLE = [
    "x = W[0]\nfor i in range(x):\n    W[i] = i\nreturn 0",
    "if W[0]:\n    x = 1\nelse:\n    x = 2\nreturn x",
    "if W[0]:\n    return 3\nelse:\n    x = 2\nreturn x",
    "if True:\n    x = 1\nreturn x",
    "a = W[0]\nif not a:\n    x = 1\nW[1] = 2\nif not a:\n    W[2] = x\nreturn 0",
    "while True:\n    x = W[0]\n    if not x: break\n    W[1] = x\nreturn x",
    "x, y = f(W)\nrefuse(x < y, W[1])\nreturn 0",
    "x = max(W[0], 3)\nrefuse(x < 0 or x > 3, 33)\nreturn 0",
    "p = pointer(int64, w, 3)\nq = pointer(int64, w, 4)\np = pointer(int64, w, 3)\nreturn p[q[0]]",
]
BROKEN = {
    "x = y\nreturn 0": "`x = y` uses y, which need not have a value",
    "if W[0]:\n    x = 1\nreturn x": "`return x` uses x, which",
    "a = W[0]\nif a:\n    x = 1\na = W[1]\nif a:\n    W[2] = x\nreturn 0": "uses x, which",
    "if W[0]:\n    x = 1\nif W[0]:\n    W[2] = x\nreturn 0": "uses x, which",
    "a = W[0]\nif a:\n    x = 1\nwhile W[1]:\n    if a:\n        f(x)\n    a = W[2]\nreturn 0": "x",
    "for i in range(3):\n    x = i\nreturn x": "uses x, which",
    "while True:\n    if W[0]: break\n    x = 1\nreturn x": "uses x, which",
    "break\nreturn 0": "`break` leaves no loop",
    "for i in range(3):\n    break\n    W[0] = 1\nreturn 0": "is never reached",
    "return 0\nW[0] = 1": "is never reached",
    "for i in range(3):\n    i = 2\nreturn 0": "changes i, by which a loop counts",
    "for i in range(3):\n    for i in range(4):\n        f(i)\nreturn 0": "changes i, by which",
    "f = 3\nreturn 0": "changes f, which is no variable",
    "p = pointer(int64, w, 3)\np = pointer(int64, w, 4)\nreturn 0": "another alias class",
    "refuse(W[0] < 0, 0.5)\nreturn 0": "has a status that is no integer",
    "x, y = f(z)\nreturn 0": "uses z, which need not have a value",
    "f(W)[0] = 1\nreturn 0": "stores into no variable",
    "for i in range(0, 3, 0):\n    f(i)\nreturn 0": "goes nowhere",
    "for i in range(True):\n    f(i)\nreturn 0": "counts by what is no integer",
}


def function(lines):
    body = "".join(f"    {line}\n" for line in [HEAD, *lines.splitlines()])
    return read_code.function(f"def run(w):\n{body}")


@pytest.mark.parametrize("lines", WHOLE)
def test_whole_functions_pass(lines):
    verify(function(lines), KNOWN)


@pytest.mark.parametrize("lines", BROKEN)
def test_broken_ones_are_told_by_the_statement(lines):
    with pytest.raises(BrokenFunctionError) as told:
        verify(function(lines), KNOWN)
    assert BROKEN[lines] in str(told.value)


def test_versions_must_be_made_first():
    found = function("x = 1")
    block = Block(found.body)
    block.versions("u").add(assign("x", 1))
    found.body = tuple(block._items)
    with pytest.raises(BrokenFunctionError, match="two versions"):
        verify(found, KNOWN)
