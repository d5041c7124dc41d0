"""From generated source to LLVM's code: numbers as Numba's, and functions made in parts."""

import itertools
import os
import re
import subprocess
import sys

import numba
import numpy as np
import pytest
import read_code
from generated_source import BOUNDED
from hypothesis import given, settings
from hypothesis import strategies as st
from llvmlite import ir
from random_programs import programs

import nbta
from nbta.codegen.values import Base
from nbta.compiler import build, lowering, outlining
from nbta.runtime.intrinsics import SCOPES
from nbta.runtime.numba_private import NumbaError, ShortPipeline
from nbta.structure import leaves

HEAD = "def run(w):\n    W = pointer(int64, w, 99)\n"


@pytest.fixture(autouse=True)
def whole(tmp_path_factory, monkeypatch):
    """Functions made as a whole, kept in a folder for these tests."""
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "whole"))


@pytest.fixture
def parts(tmp_path_factory, monkeypatch):
    """Functions made in parts, however small they are; in another folder, as the source is one."""
    monkeypatch.setattr(lowering, "LARGE_FUNCTION", 0)
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "parts"))


@pytest.fixture
def runs(tmp_path_factory, parts, monkeypatch):
    """And in loops over whatever comes twice."""
    monkeypatch.setattr(lowering, "RUN_PIECES", 2)
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "runs"))


@pytest.fixture
def cuts(tmp_path_factory, parts, monkeypatch):
    """Functions cut every few statements, with the values between them in memory of their own."""
    monkeypatch.setattr(lowering, "RUN_PIECES", 8)
    monkeypatch.setattr(outlining, "CUT_STATEMENTS", 10)
    monkeypatch.setattr(lowering, "FRAME_VALUES", 0)
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cuts"))


both_ways = pytest.mark.parametrize("way", ["whole", "parts", "runs"])


@pytest.fixture
def units(tmp_path, parts, monkeypatch):
    """What is made of each source, nothing of which was kept."""
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path))
    made = []

    class Unit(lowering._Unit):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            made.append(self)

    monkeypatch.setattr(lowering, "_Unit", Unit)
    return made


def called(source, words):
    table = np.array(words, np.int64)
    return read_code.built(source).function(table.ctypes.data), table.tolist()


# Statements.

STATEMENTS = {
    "choices": "W[2] = W[0] if W[0] > W[1] else W[1]",
    "truth values": "W[2] = int64(W[0] > 3 and W[1] > 3 or not W[0] == W[1])",
    "chains": "W[2] = int64(0 < W[0] <= W[1] != 5)",
    "what decides first": "W[2] = int64(W[1] != 0 and W[0] // W[1] > 0 or W[0] < 0)",
    "loops": "for i in range(W[0]):\n    for j in range(i, W[1]):\n        W[2] += i * j",
    "steps": "for i in range(W[0], W[1], -2):\n    W[2] += i * i",
    "longer steps": "for i in range(W[1], W[0], 3):\n    W[2] -= i",
    "no iterations": "for i in range(W[0], W[0]):\n    W[2] = 7",
    "breaks": "for i in range(100):\n    if i * i > W[0]:\n        break\n    W[2] += i",
    "while": "while True:\n    if not W[2] < W[0]: break\n    W[2] += 2",
    "a number of iterations": "i = int64(0)\nwhile i < W[1]:\n    i += 1\n    W[2] += i",
    "leaving": "for i in range(W[0]):\n    refuse(i == W[1], 33)\n    W[2] += i\nW[2] = -W[2]",
    "returning": "if W[0] < W[1]: return 17\nW[2] = 5",
    "bounds": "W[2] = max(W[0], W[1]) - min(W[0], 2)",
    "bits": "W[2] = (W[0] << 2) ^ (W[1] | 5) & ~W[0]",
    "what a loop sets": "t = int64(0)\nfor i in range(W[0]):\n    t = i * W[1]\nW[2] = t",
    "with a pointer": (
        "t = int64(0)\nfor i in range(W[0]):\n"
        "    p = pointer(int64, w, 0)\n    t = p[1] + i\nW[2] = t"
    ),
    "what a loop leaves": "s = int64(1)\nfor i in range(W[0]):\n    s += i * W[1]\nW[2] = s",
}


@both_ways
@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_are_those_of_python(name, way, request):
    request.getfixturevalue(way)
    text = "".join(f"    {line}\n" for line in STATEMENTS[name].splitlines())
    source = f"{HEAD}{text}    return 0\n"
    for words in ([5, 3, 0], [3, 5, 0], [0, 0, 0], [4, 4, 9], [9, -2, 0]):
        assert called(source, words) == by_python(source, list(words))


def by_python(source, words):
    def refuse(condition, status):
        if condition:
            raise LeftError(status)

    names = {"pointer": lambda *_: words, "int64": int, "refuse": refuse}
    exec(source, names)
    try:
        return names["run"](0), words
    except LeftError as left:
        return left.args[0], words


class LeftError(Exception):
    pass


# Numbers.

KINDS = ("int32", "int64", "uint8", "uint64", "float32", "float64")
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "<", ">=", "==", "!=")
SAMPLES = (0, 1, 2, 3, 7, 200)


def _source_of(operator):
    lines = []
    for k, (one, other) in enumerate(itertools.product(KINDS, KINDS)):
        pair = f"{one}(W[0]) {operator} {other}(W[1])"
        lines.append(f"    y[{k}] = float64({pair})\n")
    return HEAD + "    y = pointer(float64, W[2], 0)\n" + "".join(lines) + "    return 0\n"


def _results(function):
    found = []
    for a, b in itertools.product(SAMPLES, SAMPLES):
        y = np.zeros(len(KINDS) ** 2)
        words = np.array([a, b, y.ctypes.data], np.int64)
        assert function(words.ctypes.data) == 0
        found.append(y)
    return np.array(found)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_are_numbas(operator):
    source, names = _source_of(operator), build.namespace()
    exec(source, names)
    compiled = numba.njit(pipeline_class=ShortPipeline, **build.OPTIONS)(names["run"])
    np.testing.assert_array_equal(_results(read_code.built(source).function), _results(compiled))


def test_numba_compiles_what_its_rules_call(units):
    """A product of complex numbers is a function of Numba's own, which needs all of its types."""
    source = "def run(w):\n    a = complex(2.0, 1.0)\n    b = a * a\n    return int64(b.real)\n"
    assert read_code.built(source).function(0) == 3


def test_a_name_has_one_type():
    with pytest.raises(NumbaError, match="t is int64 and float64"):
        read_code.built(f"{HEAD}    t = W[0]\n    t = float64(t)\n    return 0\n")


@both_ways
def test_each_refusal_gives_its_own_status(way, request):
    """However many there are: one way out of the function is for some of them."""
    request.getfixturevalue(way)
    count = 3 * lowering.EXIT_WAYS
    lines = [f"    refuse(W[0] == {k}, {16 * k + 1})\n" for k in range(count)]
    lines[5:5] = [
        "    if W[0] == 1000: return 7\n    if W[0] == 1001:\n        W[1] = 3\n        return 8\n"
    ]
    lines += ["    for i in range(W[1]):\n        refuse(i == W[0], 5)\n"]
    source = HEAD + "".join(lines) + "    return 0\n"
    for k in range(count):
        assert called(source, [k, 0])[0] == 16 * k + 1
    assert called(source, [1000, 0]) == (7, [1000, 0])
    assert called(source, [1001, 0]) == (8, [1001, 3])
    assert [called(source, [count, n])[0] for n in (count, count + 1)] == [0, 5]


def test_a_refusal_has_no_block_of_its_own(units, monkeypatch):
    monkeypatch.setattr(lowering, "LARGE_FUNCTION", 600)
    lines = "".join(f"    refuse(W[0] == {k}, {16 * k + 1})\n" for k in range(100))
    called(f"{HEAD}{lines}    return 0\n", [1000])
    blocks = units[-1].module.get_global("_ZN4nbta3runEx").blocks
    assert len(blocks) < 100 + 10
    assert sum(block.terminator.opname == "ret" for block in blocks) == -(
        -101 // lowering.EXIT_WAYS
    )


def test_another_variable_needs_no_look_at_those_before(monkeypatch):
    """llvmlite looks through a block for the place before its last instruction."""
    seen, before = [0], ir.IRBuilder.position_before

    def counted(builder, instruction):
        seen[0] += len(instruction.parent.instructions)
        before(builder, instruction)

    monkeypatch.setattr(ir.IRBuilder, "position_before", counted)
    lines = "".join(f"    x{k} = W[{k % 9}]\n    x{k} = x{k} + 1\n" for k in range(100))
    called(f"{HEAD}{lines}    return x99\n", [0] * 9)
    assert seen[0] < 5000


@pytest.mark.parametrize(
    ("count", "width"), [(7, None), (8, 8), (9, 1), (10, 2), (20, 4), (65, None)]
)
def test_short_loops_become_vectors_before_they_are_unrolled(units, count, width):
    """As wide as goes into their length; a loop that has another one in it is left to LLVM."""
    places = "    a = pointer(int64, w, 3)\n    b = pointer(int64, w + 800, 4)\n"
    source = f"{HEAD}{places}    for i in range(3):\n        for j in range({count}):\n"
    body = "            a[j] = a[j] + b[j]\n    return 0\n"
    words = list(range(200))
    wanted = [w + 3 * (100 + w) if w < count else w for w in words]
    assert called(source + body, words) == (0, wanted)
    text = str(units[-1].module)
    assert ("llvm.loop.unroll.disable" in text) == (width is not None)
    assert text.count(", !llvm.loop") == (width is not None)
    found = re.findall(r'"llvm.loop.vectorize.width", i32 (\d+)', text)
    assert found == ([] if width in (None, 1) else [str(width)])


@pytest.mark.parametrize(
    "statement",
    [
        "W[j] = W[j] + 1", "a[j] = a[j + 1] + 1", "a[j] = W[j] + 1", "a[j] = b[j] ** b[j]",
        "a[j] = max(b[j], 1)", "a[j] = b[j] if b[j] > 3 else 1",
    ],
)  # fmt: skip
def test_llvm_is_told_of_no_vectors_that_it_may_not_make(units, statement, capfd):
    """It would print a remark on each such loop."""
    places = "    a = pointer(int64, w, 3)\n    b = pointer(int64, w + 800, 4)\n"
    called(f"{HEAD}{places}    for j in range(16):\n        {statement}\n    return 0\n", [1] * 200)
    text = str(units[-1].module)
    assert "llvm.loop.unroll.disable" in text
    assert "llvm.loop.vectorize.width" not in text
    assert "remark" not in "".join(capfd.readouterr())


def test_loops_around_loops_whose_iterations_the_run_tells_stay_loops(units, monkeypatch):
    monkeypatch.setattr(lowering, "LARGE_FUNCTION", 600)
    source = "    for i in range(4):\n        for j in range({}):\n            W[i] = W[i] + j\n"
    for inner, count in (("W[5]", 1), ("5", 0)):
        found = called(f"{HEAD}{source.format(inner)}    return 0\n", [0, 0, 0, 0, 0, 5])
        assert found == (0, [10, 10, 10, 10, 0, 5])
        assert str(units[-1].module).count(", !llvm.loop") == count


def test_loops_that_are_alike_are_one_function_in_small_sources_too(units, monkeypatch):
    monkeypatch.setattr(lowering, "LARGE_FUNCTION", 600)
    loop = "    for i{0} in range({1}):\n        x{0} = W[i{0}]\n        W[i{0}] = x{0} + {2}\n"
    lines = [(0, "W[9]", 1), (1, "W[9]", 1), (2, "W[9]", 2), (3, 4, 1), (4, 4, 1)]
    source = HEAD + "".join(loop.format(*line) for line in lines) + "    return 0\n"
    assert called(source, [0] * 9 + [3]) == (0, [6, 6, 6, 2, 0, 0, 0, 0, 0, 3])
    assert [part.calls for part in units[-1].parts.values()] == [2]


def test_buffers_are_found_by_functions_outside_of_loops(units, monkeypatch):
    monkeypatch.setattr(lowering, "LARGE_FUNCTION", 600)
    room = "b{0} = room(float64, w, {1}, (W[0],), {0})"
    outside = "".join(f"    {room.format(k, 10 + 2 * k)}\n" for k in range(3))
    inside = f"    for i in range(W[0]):\n        {room.format(3, 16)}\n"
    helpers = f"{HEAD}{{}}    return 0\n"
    for lines, count in ((outside, 3), (inside, 0), (inside + outside, 3)):
        read_code.built(helpers.format(lines))
        assert str(units[-1].module).count('call i64 @"room_8_1"') == count


# Parts.


def chain(x, w):
    for _ in nbta.unroll(range(6)):
        x = nbta.tanh(x * w[1]) * 0.5 + nbta.sin(x)
    return nbta.sum(x * x)


def nested(x, w):
    ta = nbta.TensorArray(np.float64, 0, dynamic_size=True)
    for row in x:
        for k in range(len(row)):
            if row[k] > 0:
                ta = ta.append(row[k] * w[k, 0])
            else:
                ta = ta.append(-row[k])
    return nbta.sum(ta.stack() ** 2)


def searched(x, w):
    i = 0
    while i < 30 and x[0, 0] * i < 2:
        i += 1
    return nbta.sum(x * i) + nbta.sum(nbta.cumsum(w, 0) * nbta.reshape(x, (-1,))[i])


@pytest.mark.parametrize("function", [chain, nested, searched])
def test_graphs_give_the_same_in_parts(function, request):
    rng = np.random.default_rng(3)
    x, w = rng.normal(size=(4, 5)) + 0.3, rng.normal(size=(5, 5))
    plain, *found = (
        request.getfixturevalue(way)
        or nbta.value_and_grad(function, argnums=(0, 1), compiled=way != "reference")(x, w)
        for way in ("reference", "whole", "parts", "runs", "cuts")
    )
    for reference, one, other, *rolled in zip(*map(leaves, (plain, *found)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)
        for each in rolled:
            np.testing.assert_array_equal(each, other)
        np.testing.assert_allclose(one, reference, rtol=1e-12)


@pytest.fixture
def reference():
    """Operation by operation."""


def waves(x):
    for _ in nbta.unroll(range(6)):
        x = nbta.sin(x) * nbta.sum(x) * 0.3
    return nbta.sum(x)


def test_loops_that_are_alike_are_one_part(units):
    x = np.linspace(0.1, 0.3, 7)
    nbta.value_and_grad(waves, compiled=True)(x)
    (unit,) = units
    assert max(part.calls for part in unit.parts.values()) >= 5
    assert sum(part.calls for part in unit.parts.values()) > 2 * len(unit.parts)


def test_loops_that_differ_in_a_function_are_two(units):
    lines = [
        f"    for i{k} in range(3): y[i{k}] = np.{name}(y[i{k}])\n"
        for k, name in enumerate(("sin", "cos", "sin"))
    ]
    source = HEAD + "    y = pointer(float64, W[0], 0)\n" + "".join(lines) + "    return 0\n"
    y = np.array([0.1, 0.2, 0.3])
    called(source, [y.ctypes.data])
    np.testing.assert_allclose(y, np.sin(np.cos(np.sin([0.1, 0.2, 0.3]))), rtol=1e-15)
    assert [part.calls for part in units[-1].parts.values()] == [2, 1]


def test_parts_that_write_where_they_read(parts):
    """One buffer for two names makes another part: LLVM must know that they overlap."""
    body = "    for i{0} in range(1, 200): {1}[i{0}] = {2}[i{0} - 1] + 1.0\n"
    source = (
        f"{HEAD}    a = pointer(float64, W[0], 0)\n    b = pointer(float64, W[1], 1)\n"
        f"{body.format(0, 'a', 'b')}{body.format(1, 'a', 'a')}    return 0\n"
    )
    a, b = np.zeros(200), np.zeros(200)
    called(source.replace("1.0", "float64(1)"), [a.ctypes.data, b.ctypes.data])
    np.testing.assert_array_equal(a, np.arange(200.0))


def test_functions_of_numbas_are_called_in_parts(parts):
    x = np.arange(6, dtype=np.int64)
    f = nbta.function(lambda x, y: nbta.power(x, y) + x, compiled=True)
    np.testing.assert_array_equal(f(x, x), x**x + x)
    with pytest.raises(ValueError):  # noqa: PT011 - its words are NumPy's
        f(x, -x)


@both_ways
def test_errors_leave_parts(way, request):
    request.getfixturevalue(way)

    def gathered(x, i):
        for k in nbta.unroll(range(3)):
            x = nbta.concatenate([nbta.gather(x, i + k) * 2.0, x], 0)
        return nbta.sum(x)

    f = nbta.value_and_grad(gathered, compiled=True)
    f(np.ones(7), np.arange(5))
    with pytest.raises(nbta.InvalidArgumentError, match="index 5 is out of range"):
        f(np.ones(5), np.arange(8))


# Runs.


def pieces(unit):
    """How many functions pieces have become."""
    return sum(f.name.startswith("piece") for f in unit.module.functions)


def rolled_and_not(source, words, monkeypatch):
    """What a source gives with runs, after it was held against what it gives without."""
    found = called(source, words)
    with monkeypatch.context() as patch:
        patch.setattr(lowering._Unit, "_rolled", lambda unit: None)
        assert called(f"{source}# without\n", words) == found
    return found


def test_statements_that_come_again_are_one_function(units, monkeypatch):
    monkeypatch.setattr(lowering, "RUN_PIECES", 8)
    lines = "".join(f"    t{k + 1} = t{k} * 3 + W[{5 + k % 4}]\n" for k in range(30))
    source = f"{HEAD}    t0 = W[0]\n{lines}    W[1] = t30\n    W[2] = t12 - t7\n    return 0\n"
    words = [2, 0, 0, 0, 0, 7, 11, 13, 17]
    values = [2]
    for k in range(30):
        values.append(values[-1] * 3 + words[5 + k % 4])
    _, found = rolled_and_not(source, words, monkeypatch)
    assert found[1:3] == [values[30], values[12] - values[7]]
    assert [pieces(unit) for unit in units] == [1, 0]
    assert len(units[0].module.get_global("_ZN4nbta3runEx").blocks) < 10


def test_fewer_statements_are_left_as_they_are(units, monkeypatch):
    monkeypatch.setattr(lowering, "RUN_PIECES", 8)
    lines = "".join(f"    W[{k}] += {k + 1}\n" for k in range(9))
    called(f"{HEAD}{lines}    return 0\n", [0] * 9)  # of integers that are no places
    called(f"{HEAD}{'    W[0] += W[1]' + chr(10)}    return 0\n", [0, 1])
    assert [pieces(unit) for unit in units] == [0, 0]


def test_a_refusal_in_a_run_has_its_own_status(units, monkeypatch):
    monkeypatch.setattr(lowering, "RUN_PIECES", 8)
    lines = "".join(f"    refuse(W[{k}] == 5, {16 * k + 1})\n" for k in range(20))
    source = f"{HEAD}{lines}    W[0] = 9\n    return 0\n"
    for k in (0, 7, 19):
        words = [5 if j == k else 1 for j in range(20)]
        assert rolled_and_not(source, words, monkeypatch) == (16 * k + 1, words)
    assert rolled_and_not(source, [1] * 20, monkeypatch)[0] == 0
    assert pieces(units[0]) == 1


def test_pieces_where_one_buffer_serves_two_ends_are_others(units, monkeypatch):
    """LLVM must know that they overlap: each item is then what the one before has become."""
    monkeypatch.setattr(lowering, "RUN_PIECES", 8)
    arrays = [np.zeros(200) for _ in range(3)]
    heads = "".join(f"    a{k} = pointer(float64, W[{k}], {k})\n" for k in range(3))
    heads += "".join(f"    b{k} = pointer(float64, W[{k % 3}], {k % 3})\n" for k in range(10))
    heads += "".join(f"    c{k} = pointer(float64, W[{k * k % 3}], {k * k % 3})\n"
                     for k in range(10))  # fmt: skip
    loop = (
        "    for i{0} in range(1, 200):\n        c{0}[i{0}] = b{0}[i{0} - 1] * 0.5 + float64({1})\n"
    )
    source = HEAD + heads + "".join(loop.format(k, 1) for k in range(10)) + "    return 0\n"
    called(source, [array.ctypes.data for array in arrays])
    wanted = [np.zeros(200) for _ in range(3)]
    for k in range(10):
        for i in range(1, 200):
            wanted[k * k % 3][i] = wanted[k % 3][i - 1] * 0.5 + 1.0
    np.testing.assert_array_equal(arrays, wanted)
    assert pieces(units[0]) >= 2


def test_where_buffers_lie_that_are_only_forwarded_makes_no_other_pieces(units, monkeypatch):
    """Here one is forwarded in its first piece, and another's place is that of the first."""
    monkeypatch.setattr(lowering, "RUN_PIECES", 8)
    y = np.zeros(9)
    scopes = [3, 3, 4, 3, 5, 5, 6, 3, 4]
    heads = "".join(
        f"    b{k} = pointer(float64, W[0] + {8 * k}, {s})\n" for k, s in enumerate(scopes)
    )
    lines = "".join(
        f"    W[1] += address(b{k}, 0) - W[0]\n"
        f"    for i{k} in range(2): b{k + 1}[0] = b{k + 1}[0] + float64({1})\n"
        for k in range(8)
    )
    status, words = called(f"{HEAD}{heads}{lines}    return 0\n", [y.ctypes.data, 0])
    assert (status, words[1]) == (0, 8 * sum(range(8)))
    np.testing.assert_array_equal(y, [0, *[2] * 8])
    assert pieces(units[0]) == 1


def test_what_has_no_room_in_the_frame_is_not_rolled(units, monkeypatch):
    """Others are, also those that are next to it."""
    monkeypatch.setattr(lowering, "RUN_PIECES", 8)
    lines = "".join(f"    t{k + 1} = t{k} * complex(0, 2)\n" for k in range(10))
    lines += "".join(f"    n{k + 1} = n{k} * 3 + W[0]\n" for k in range(10))
    source = (
        f"{HEAD}    t0 = complex(W[0], 1)\n    n0 = W[0]\n{lines}"
        "    W[1] = int64(t10.real)\n    W[2] = n10 + n4\n    return 0\n"
    )
    _, found = rolled_and_not(source, [3, 0, 0], monkeypatch)
    numbers = [3]
    for _ in range(10):
        numbers.append(numbers[-1] * 3 + 3)
    assert found[1:] == [((3 + 1j) * 2j**10).real, numbers[10] + numbers[4]]
    assert [pieces(unit) for unit in units] == [1, 0]


# Stretches of statements that are not alike.


def unlike(count):
    """Statements of which no two are alike, each with results of some before it."""
    lines = "".join(
        f"    t{k + 1} = (t{k} * {k + 3} - t{k // 2}) % 1000003\n"
        + ("" if k not in (9, 21) else f"    if t{k} > 5000:\n        c = {k}\n")
        for k in range(count)
    )
    end = f"    W[1] = t{count}\n    W[2] = c\n    return 0\n"
    return f"{HEAD}    c = W[0]\n    t0 = W[0]\n    p = pointer(int64, w, 99)\n{lines}{end}"


def longest(unit):
    """Instructions of the longest function."""
    return max(sum(len(b.instructions) for b in f.blocks) for f in unit.module.functions)


def test_what_is_not_alike_is_cut_into_functions_of_one_length(units, cuts, monkeypatch):
    """LLVM takes more than twice the time for twice the statements of a function."""
    once, twice = (
        rolled_and_not(unlike(count), [11, 0, 0], monkeypatch) and units[-2] for count in (40, 160)
    )
    assert pieces(twice) >= 3 * pieces(once) > 0
    assert longest(twice) < 1.5 * longest(once)


@pytest.mark.parametrize("at", [3, 57])
def test_a_refusal_leaves_a_cut_function_and_its_memory(at, units, cuts, monkeypatch):
    source = unlike(60).replace(f"    t{at} =", f"    refuse(t{at - 1} != 3, 33)\n    t{at} =")
    assert rolled_and_not(source, [11, 0, 0], monkeypatch) == (33, [11, 0, 0])
    calls = [name for name in units[0].module.globals if name in ("malloc", "free")]
    assert calls == ["malloc", "free"]


def test_equal_layers_of_a_small_function_are_a_run(units, monkeypatch):
    monkeypatch.setattr(lowering, "LARGE_FUNCTION", 600)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 5)), rng.normal(size=(5, 5)) * 0.3

    def loss(x, w):
        for _ in nbta.unroll(range(7)):
            x = nbta.tanh(x @ w) * 0.9
        return nbta.sum(x * x)

    found = nbta.value_and_grad(loss, argnums=(0, 1), compiled=True)(x, w)
    wanted = nbta.value_and_grad(loss, argnums=(0, 1), compiled=False)(x, w)
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    assert pieces(units[0]) >= 2


@pytest.mark.slow
@settings(max_examples=8, **BOUNDED)
@given(programs(depth=2), st.integers(0, 4))
@pytest.mark.parametrize("fewest", [8, 2])
def test_random_programs_in_parts(fewest, program, n):
    with nbta.Graph().as_default() as graph:
        fed = {
            nbta.placeholder("float64", (3,)): np.array([0.71, -0.43, 0.92]),
            nbta.placeholder("int64", ()): np.int64(n),
        }
        results = leaves(program(*fed))
        ys = [y for y in results if y.dtype == np.float64]
        slopes = nbta.gradients([nbta.add_n([nbta.sum(y * y) for y in ys])], [next(iter(fed))])
    wanted = [one for one in (*results, *slopes) if one is not None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lowering, "LARGE_FUNCTION", 0)
        patch.setattr(lowering, "RUN_PIECES", fewest)
        patch.setenv("NBTA_CACHE_DIR", f"{os.environ['NBTA_CACHE_DIR']}-parts{fewest}")
        found, expected = (_outcome(graph, wanted, fed, how) for how in ("auto", False))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def _outcome(graph, wanted, fed, compiled):
    session = nbta.Session(graph)
    try:
        if compiled:
            session.run(wanted, fed, compiled=True)
        return session.run(wanted, fed, compiled=compiled)
    except nbta.UnimplementedError:
        return session.run(wanted, fed, compiled=False)
    except nbta.NbtaError:
        return ()


@pytest.mark.slow  # a process in which nobody has loaded Numba's other tables
def test_integers_are_conditions_before_numba_has_loaded_its_tables(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("""
import numpy as np, nbta

def f(x):
    y = x.copy()
    for i in range(1, len(x)):
        y[i] = np.sin(y[i - 1]) * x[i]
    return np.sum(y**2)

x = np.linspace(0.0, 1.0, 12)
print(nbta.function(lambda x: nbta.hvp(f, x, x), compiled=True)(x).shape)
""")
    settings = {**os.environ, "NBTA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.returncode) == ("(12,)\n", 0), done.stderr


def test_many_buffers_share_scopes_but_the_first():
    scopes = [Base("b", np.dtype(float), number).scope for number in range(5 * SCOPES)]
    assert scopes[:SCOPES] == list(range(SCOPES))
    assert set(scopes[SCOPES:]) == set(range(SCOPES // 2, SCOPES))
    near = range(SCOPES // 2)
    assert all(len({scopes[k + n] for n in near}) == len(near) for k in range(4 * SCOPES))


def test_values_of_more_buffers_than_scopes():
    def f(x):
        sums = [np.cumsum(x * k) for k in range(2 * SCOPES)]
        total = np.zeros(len(x))
        for i in range(len(x)):
            for each in sums[:3] + sums[-3:]:
                total[i] += each[i] * each[0]
        return np.sum(total * np.sum(np.stack(sums), 0))

    x = np.linspace(0.5, 1.0, 9)
    function = nbta.value_and_grad(f, compiled=True)
    value, gradient = function(x)
    assert max(map(int, re.findall(r" = room\(.*, (\d+)\)", str(function.source)))) < SCOPES
    wanted = nbta.value_and_grad(f, compiled=False)(x)
    np.testing.assert_allclose(value, wanted[0], rtol=1e-12)
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-12)
