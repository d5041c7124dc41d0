"""Entries of the cache for whole graphs: a second process neither runs passes nor compiles.

A key tells apart whatever may change a result; what it cannot tell has no entry.
"""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numba
import numpy as np
import pytest
from compilations import copy_kernels

import nbta
from nbta.compiler import graph_cache
from nbta.compiler.graph_cache import Description, UnknownError, decoded
from nbta.compiler.phases import listening
from nbta.graph import verifier
from nbta.graph.graph import SubGraph, everything
from nbta.graph.operation import TABLE, Spec
from nbta.ops.core.dispatch import PARAMETER
from nbta.ops.core.filling import PLACEHOLDER
from nbta.runtime import machine_code
from nbta.shapes import Dim

PASSES = {"specialise", "prune", "share", "source"}

PROGRAM = """
import json
import sys
import numpy as np
import nbta
from nbta.compiler.phases import listening

def loss(w, x):
    def step(h, row):
        h = nbta.tanh(row @ w + h)
        return h, h
    return nbta.sum(nbta.scan(step, nbta.zeros(2), x)[1])

rng = np.random.default_rng(0)
both, phases = nbta.value_and_grad(loss, compiled=True), []
with listening(lambda name, begin, end, facts: phases.append((name, facts.get("compiled", 0)))):
    value, slope = both(rng.random((3, 2)), rng.random((4, 3)))
seen = [both.source, both.explain(), str(both.graph)]
print(json.dumps([[float(value), slope.tolist(), seen], phases]))
"""


def start(folder, seed="1", **settings):
    paths = [str(Path(nbta.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "NBTA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(paths),
        "NBTA_DEBUG": "0", "PYTHONHASHSEED": seed, **settings,
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def answer(process):
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    return json.loads(out)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache for graphs, which are kept although tests verify what passes do."""
    monkeypatch.setenv("NBTA_CACHE_DIR", str(tmp_path / "made"))
    monkeypatch.setattr(verifier, "DEBUG", False)
    monkeypatch.setattr(graph_cache, "_BEGAN", 2e9)  # some sources may be a second old
    graph_cache.sources.cache_clear()
    yield tmp_path / "made"
    graph_cache.sources.cache_clear()


def graphs(folder):
    """The entries that hold no code."""
    paths = sorted(folder.glob("*.graph")) if folder.is_dir() else []
    return [path for path in paths if path.read_bytes().startswith(graph_cache.HEAD)]


def norm(x, y):
    return nbta.sum(nbta.sqrt(x * x + y * y))


def python(x):
    """What no code is for."""
    return np.sort(x)


def run(f=norm, arguments=None, **options):
    """The result of a new function, and whether passes ran for it."""
    function, phases = nbta.function(f, compiled=True, **options), []
    arguments = (np.array([3.0, 6.0]), np.array([4.0, 8.0])) if arguments is None else arguments
    with listening(lambda name, begin, end, facts: phases.append(name)):
        result = function(*arguments)
    return result, bool(PASSES.intersection(phases))


def told(found):
    """The same for comparing."""
    return np.asarray(found).tobytes()


# Hits.


@pytest.mark.slow
def test_a_second_process_runs_no_pass(tmp_path):
    """It gives bitwise identical results, and says the same of itself when it is asked."""
    copy_kernels(tmp_path)
    first = answer(start(tmp_path, "1"))
    files = {path: path.read_bytes() for path in tmp_path.iterdir()}
    second = answer(start(tmp_path, "2"))
    assert {"machine code", *PASSES} <= {name for name, _ in first[1]}
    assert second == [first[0], [["tracing", 0], ["machine code", 0]]]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == files


@pytest.mark.slow
def test_several_processes_at_once(tmp_path):
    copy_kernels(tmp_path)
    found = [answer(process)[0] for process in [start(tmp_path, str(k)) for k in range(3)]]
    assert found == found[:1] * 3
    assert len(graphs(tmp_path)) == 1
    assert not list(tmp_path.glob("*.tmp"))


def test_equal_functions_share_an_entry(folder):
    first, second = run(), run()
    assert (told(first[0]), first[1], second[1]) == (told(second[0]), True, False)
    assert len(graphs(folder)) == 1


def test_what_is_said_of_a_kept_graph_is_what_was_said_of_it(folder):
    functions = [nbta.function(norm, compiled=True) for _ in range(2)]
    for function in functions:
        function(np.array([3.0, 6.0]), np.array([4.0, 8.0]))
    first, second = functions
    assert second._compiled_program()._entry is not None is first._compiled_program()._entry
    assert second.explain() == first.explain()
    assert second.source == first.source
    assert str(second.graph) == str(first.graph)


def test_a_profile_of_a_kept_graph(folder):
    run()
    function = nbta.function(norm, compiled=True)
    given = np.array([3.0, 6.0]), np.array([4.0, 8.0])
    function(*given)
    assert "Mul_1, Add" in str(function.profile(*given, repeats=1))


def test_constants_are_those_of_the_graph_and_those_of_passes(folder):
    table, small = np.arange(3e5), np.array([1.0, 2.0, 3.0])

    def f(x):
        return nbta.sum(x * table) + nbta.sum(nbta.sort(small) * x[:3])

    first, second = (run(f, (np.ones(300_000),)) for _ in range(2))
    assert (told(first[0]), second[1]) == (told(second[0]), False)
    (path,) = graphs(folder)
    assert path.stat().st_size < table.nbytes  # it is not in the entry


def test_large_arrays_of_passes_are_not_kept(folder, monkeypatch):
    monkeypatch.setattr(graph_cache, "CACHED_ARRAYS", 16)
    small = np.array([3.0, 2.0, 1.0])
    found = [run(lambda x: nbta.sum(nbta.sort(nbta.constant(small)) * x), (2.0,)) for _ in range(2)]
    assert [passes for _, passes in found] == [True, True]
    assert graphs(folder) == []


# Shapes.


def test_other_lengths_are_served_by_the_same_entry(folder):
    run()
    result, passes = run(arguments=(np.arange(3.0), np.zeros(3)))
    assert (float(result), passes) == (3.0, False)


def test_a_function_from_an_entry_takes_other_lengths(folder):
    run()
    function = nbta.function(norm, compiled=True)
    for n in (2, 5, 3):
        assert function(np.ones(n), np.zeros(n)) == n
    (compiled,) = function._last.runner.compiled
    assert compiled._program is None  # nobody had to ask it


def test_lengths_of_one_and_none_are_distinguished(folder):
    for n in (2, 1, 0):
        assert run(arguments=(np.ones(n), np.zeros(n))) == (n, True)
    for n in (2, 1, 0):
        assert run(arguments=(np.ones(n), np.zeros(n))) == (n, False)


def test_what_counts_on_more_than_equal_lengths_is_for_its_shapes(folder):
    def f(x):
        return nbta.sum(nbta.stack(nbta.split(x, 2)), axis=0)

    found = []
    for n in (4, 6, 4, 6):
        result, passes = run(f, (np.arange(float(n)),))
        assert result.tolist() == [k + k + n // 2 for k in range(n // 2)]
        found.append(passes)
    assert found == [True, True, False, False]
    function = nbta.function(f, compiled=True)
    for _ in range(3):
        function._launchers.clear()
        function(np.arange(6.0))
    (compiled,) = function._last.runner.compiled
    assert compiled._program is None  # nor do passes run for a later call
    assert function(np.arange(8.0)).tolist() == [4.0, 6.0, 8.0, 10.0]


def test_wrong_lengths_are_refused_after_a_kept_graph(folder):
    run()
    function = nbta.function(norm, compiled=True)
    function(np.ones(2), np.ones(2))
    with pytest.raises(nbta.InvalidArgumentError):
        function(np.ones(2), np.ones(3))


# What a key tells apart.


def everywhere(x, table, n):
    """Operations with attributes of many kinds, in a loop and a branch too."""
    array = nbta.TensorArray("float64", size=n, element_shape=(None,), clear_after_read=False)
    rows, total = nbta.scan(lambda c, r: (c + r, nbta.tanh(c * r)), x[0], x[1:])
    array = array.unstack(total)
    picked = nbta.take(table, nbta.argsort(rows), axis=0)[..., None, ::2]
    chosen = nbta.cond(rows[0] > 0, lambda: nbta.roll(rows, 1), lambda: nbta.flip(rows, axis=0))
    values = [nbta.sum(picked, axis=1, keepdims=True), chosen, array.stack()]
    values += [nbta.cast(x, "float32"), nbta.pad(x, ((1, 0), (0, 2)), constant_values=1.5)]
    values += [nbta.reshape(x, (-1,)), nbta.transpose(x), nbta.one_hot([0, 1], 3)]
    values += nbta.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, nbta.concatenate([s[1:], s[:1]])), (0, rows)
    )
    return nbta.sum(nbta.concatenate([nbta.reshape(as_double(v), (-1,)) for v in values]))


def as_double(x):
    return nbta.cast(x, "float64")


def traced():
    """A graph, with its parameters and results."""
    x, table = np.arange(6.0).reshape(3, 2) + 0.5, np.arange(8.0).reshape(2, 4)
    f = nbta.value_and_grad(lambda x: everywhere(x, table, 2), compiled=True)
    trace, _ = f.bound(((x,), {}))
    return trace.graph, trace.runner.tensors


def test_equal_graphs_have_one_digest():
    first, second = (Description(*traced()[1]) for _ in range(2))
    assert first.digest == second.digest


def others(value):
    """Values that are not quite this one; operations of bodies are changed one by one."""
    if not isinstance(value, SubGraph):
        plain = (None, 0, 1.0, "x", (), True, Dim())
        yield from (other for other in plain if not same(other, value))
    for kind, rule in RULES:
        if isinstance(value, kind):
            yield from rule(value)
            return


def other_specs(spec):
    yield spec._replace(kind="other")
    yield spec._replace(dtype=np.dtype("complex128"))
    yield from (spec._replace(shape=shape) for shape in others(spec.shape))


def other_lists(items):
    kind = type(items)
    yield kind((*items, 1))
    yield kind(items[1:]) if items else kind((0, 0))
    yield tuple(items) if kind is list else list(items)
    for k, item in enumerate(items):
        yield from (kind((*items[:k], other, *items[k + 1 :])) for other in others(item))


def other_arrays(value):
    array = np.asarray(value)
    yield array[None]
    yield array.astype("complex128")
    if array.size and array.dtype.kind in "if":
        yield np.nextafter(array, 9).astype(array.dtype) if array.dtype.kind == "f" else array + 1
        yield -array if array.any() else array + 1


def other_slices(key):
    yield slice(3, key.stop, key.step)
    yield slice(key.start, 3, key.step)
    yield slice(key.start, key.stop, 7)


RULES = [
    (str, lambda text: [text + "_"]),
    (Spec, other_specs),
    ((tuple, list), other_lists),
    ((np.ndarray, np.generic), other_arrays),
    ((bool, int, float), lambda number: [number + 1]),
    (slice, other_slices),
]


def same(one, other):
    return type(one) is type(other) and repr(one) == repr(other)


def digest(tensors):
    """The digest, or None where there is none to be had."""
    try:
        return Description(*tensors).digest
    except UnknownError:
        return None


@pytest.mark.slow
def test_each_attribute_is_in_the_key():
    graph, tensors = traced()
    before, seen = digest(tensors), set()
    for op in inner(graph):
        for name, value in list(op.attrs.items()):
            for other in others(value):
                op.attrs[name] = other
                after = digest(tensors)
                assert after != before or not needed(op, tensors), (op, name, value, other)
                seen.add((op.type, name))
            op.attrs[name] = value
    assert digest(tensors) == before
    assert len(seen) > 40


def inner(graph):
    """Operations but those that stand for what is given, of which name and spec are all."""
    return [op for op in everything(graph) if op.record not in (PARAMETER, PLACEHOLDER)]


def needed(op, tensors):
    """Whether anything in the graph needs an operation: its name is in the key then."""
    before, op.name = digest(tensors), op.name + "_"
    after, op.name = digest(tensors), op.name.removesuffix("_")
    return before != after


def test_names_records_inputs_and_order_are_in_the_key():
    graph, tensors = traced()
    before = digest(tensors)
    records = itertools.cycle(TABLE.values())
    for op in filter(lambda op: needed(op, tensors), inner(graph)):
        record = op.record
        op.record = next(other for other in records if other is not record)
        assert digest(tensors) != before
        op.record = record
        if len(set(op.inputs)) > 1:
            op.inputs.reverse()
            assert digest(tensors) != before or op.inputs == op.inputs[::-1]
            op.inputs.reverse()
        for tensor in op.outputs:
            spec = tensor.spec
            tensor.spec = spec._replace(shape=(*(spec.shape or ()), 9))
            assert digest(tensors) != before
            tensor.spec = spec
    given, wanted, targets = tensors
    assert digest((given, wanted[::-1], targets)) != before
    assert digest((given, wanted, [wanted[0].op])) != before
    assert digest(tensors) == before


def test_control_edges_are_in_the_key():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (), name="x")
        y, z = nbta.sin(x), nbta.cos(x)
    before = digest(([x], [y, z], []))
    z.op.add_control_input(y.op)
    assert digest(([x], [y, z], [])) != before


def test_values_that_are_equal_in_python_are_distinguished():
    values = [1, True, 1.0, "1", b"1", np.float64(1), np.array(1.0), (1,), [1], None, 1 + 0j]
    values += [-0.0, 0.0, float("nan"), -float("nan"), np.float32(1), np.array([1.0])]
    values += [np.array(1.0, ">f8"), np.dtype("f8"), np.dtype("f4"), slice(1), slice(1, None, 1)]
    description = Description([], [], [])
    assert len({repr(description._value(value)) for value in values}) == len(values)


@pytest.mark.parametrize("dtype", ["bfloat16", "M8[s]", "S3", "bool", "complex64"])
def test_bits_of_arrays_of_all_dtypes_are_distinguished(dtype):
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    bits = np.zeros((2, dtype.itemsize), np.uint8)
    arrays = [bits.copy(), bits]
    bits[1, -1] = 1
    described = [Description([], [], [])._value(each.view(dtype)[:, 0]) for each in arrays]
    assert described[0] != described[1]


UNKNOWN = [np.array([object()]), lambda: 0, object(), np.dtype([("a", int)])]


@pytest.mark.parametrize("value", UNKNOWN)
def test_what_no_hash_tells_has_no_entry(value):
    with pytest.raises(UnknownError):
        Description([], [], [])._value(value)


def test_a_constant_that_changes_is_another_entry(folder):
    def found(factor):
        constant = np.array([1.0, factor])
        value, passes = run(lambda x: nbta.sum(x * nbta.constant(constant)), (np.ones(2),))
        return float(value), passes

    assert [found(2.0), found(3.0), found(2.0)] == [(3, True), (4, True), (3, False)]


def change_numpy(monkeypatch):
    monkeypatch.setattr(np, "__version__", np.__version__ + ".1")


def change_scipy(monkeypatch):
    monkeypatch.setattr("scipy.__version__", "99.0")


def change_sources(monkeypatch):
    monkeypatch.setattr(graph_cache, "sources", lambda: "others")


def change_numba(monkeypatch):
    monkeypatch.setattr(numba, "__version__", "99.0")
    machine_code._versions.cache_clear()


def change_python(monkeypatch):
    monkeypatch.setattr("sys.version", "9.9")
    machine_code._versions.cache_clear()


def change_processor(monkeypatch):
    codegen = type(machine_code.cpu_target.target_context.codegen())
    monkeypatch.setattr(codegen, "magic_tuple", lambda self: ("triple", "processor", "features"))
    machine_code._versions.cache_clear()


@pytest.mark.parametrize(
    "change",
    [change_numpy, change_scipy, change_sources, change_numba, change_python, change_processor],
)
def test_other_versions_have_other_entries(change, folder, monkeypatch):
    run()
    change(monkeypatch)
    assert run()[1]
    assert not run()[1]
    assert len(graphs(folder)) == 2
    monkeypatch.undo()
    machine_code._versions.cache_clear()


def test_sources_that_changed_since_they_were_read_keep_nothing(folder, monkeypatch):
    """What is written would be of other code than its name says."""
    monkeypatch.setattr(graph_cache, "_BEGAN", 0.0)
    graph_cache.sources.cache_clear()
    assert run()[1]
    assert run()[1]
    assert graphs(folder) == []


def test_without_sources_nothing_is_kept(folder, monkeypatch):
    monkeypatch.setattr(graph_cache, "_PACKAGE", folder / "nowhere")
    graph_cache.sources.cache_clear()
    assert graph_cache.sources() is None
    assert [run()[1], run()[1]] == [True, True]


def test_with_the_verifier_passes_always_run(folder, monkeypatch):
    run()
    monkeypatch.setattr(verifier, "DEBUG", True)
    assert run()[1]


# What has no entry, and what follows an entry.


def test_users_functions_have_no_entry(folder):
    f = nbta.custom_gradient(numba.njit(lambda x: 2 * x), backward=lambda dy, x, y: 2 * dy)
    assert [run(lambda x: nbta.sum(f(x)), (np.ones(2),))[1] for _ in range(2)] == [True, True]
    assert graphs(folder) == []


def test_what_calls_python_has_no_entry(folder):
    sort = nbta.custom_gradient(python, backward=lambda dy, x, y: dy)
    assert [run(lambda x: nbta.sum(sort(x)), (np.ones(2),))[1] for _ in range(2)] == [True, True]
    assert graphs(folder) == []


def test_a_kept_graph_whose_array_turns_out_ragged(folder):
    """Passes run then, as Python keeps the array."""

    def f(x, n):
        array = nbta.TensorArray("float64", size=0, dynamic_size=True, infer_shape=False)
        _, array = nbta.while_loop(
            lambda i, a: i < 3, lambda i, a: (i + 1, a.append(x[: i * n + 1])), (0, array)
        )
        return array.concat()[0]

    x = np.arange(9.0)
    for n in (0, 1, 0, 1):
        expected = np.concatenate([x[: i * n + 1] for i in range(3)])
        assert run(f, (x, n))[0].tolist() == expected.tolist()
    function = nbta.function(f, compiled=True)
    for n in (0, 1, 0):
        assert len(function(x, n)) == 3 + 3 * n


def test_a_graph_with_an_entry_is_cheap_to_compile(folder, monkeypatch):
    """It pays as soon as the entry would be found and loaded."""
    prices = []
    for _ in range(2):
        function = nbta.function(norm)
        trace, arrays = function.bound(((np.ones(2), np.ones(2)), {}))
        shapes = tuple(map(np.shape, arrays))
        prices.append(trace.runner._price(shapes, 1e9))
        trace.runner.function(shapes).build()
        assert trace.runner._price(shapes, 0.0) == 0.0
    assert prices[1] < 0.25 * prices[0]


# What is wrong with a file, or a folder.


def truncated(data):
    return data[:-1]


def empty(data):
    return b""


def damaged_text(data):
    at = len(graph_cache.HEAD) + 40
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def damaged_sum(data):
    at = len(graph_cache.HEAD) + 3
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def another_head(data):
    return b"x" + data[1:]


@pytest.mark.parametrize("damage", [truncated, empty, damaged_text, damaged_sum, another_head])
def test_damaged_entries_are_made_again(damage, folder):
    expected = told(run()[0])
    (path,) = graphs(folder)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    result, passes = run()
    assert (told(result), passes) == (expected, True)
    assert path.read_bytes() == whole
    assert not run()[1]


def test_an_entry_under_another_name_is_not_taken(folder):
    run()
    (path,) = graphs(folder)
    with pytest.raises(ValueError, match="another entry"):
        decoded("0" * 64, path.read_bytes(), [])


def test_an_entry_without_its_object_code(folder):
    """Its source is compiled; passes need not run."""
    expected = told(run()[0])
    kept = set(graphs(folder))
    for path in set(folder.glob("*.graph")) - kept:
        path.unlink()
    result, passes = run()
    assert (told(result), passes) == (expected, False)


def refuse(*_, **__):
    raise OSError("read-only")


@pytest.mark.parametrize("function", ["tempfile.mkstemp", "os.replace"])
def test_a_folder_that_cannot_be_written(function, folder, monkeypatch):
    expected = told(run()[0])
    for path in graphs(folder):
        path.unlink()
    monkeypatch.setattr(function, refuse)
    assert [told(run()[0]) for _ in range(2)] == [expected] * 2
    assert graphs(folder) == []


def test_entries_of_a_folder_that_cannot_be_written_are_taken(folder, monkeypatch):
    expected, before = told(run()[0]), sorted(folder.iterdir())
    folder.chmod(0o500)
    for function in ("tempfile.mkstemp", "os.utime", "os.replace"):  # root may write everywhere
        monkeypatch.setattr(function, refuse)
    result, passes = run()
    folder.chmod(0o700)
    assert (told(result), passes, sorted(folder.iterdir())) == (expected, False, before)


def test_without_a_folder(folder, monkeypatch):
    monkeypatch.setattr(machine_code, "folder", lambda: None)
    assert run()[1]
    assert run()[1]
