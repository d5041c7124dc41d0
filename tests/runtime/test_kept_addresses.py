"""Addresses that native code keeps: what lies there lives, row by row of its design note."""

import ctypes
import gc
import re
import sys
from pathlib import Path
from types import ModuleType

import llvmlite.binding
import numpy as np
import pytest
from memory_in_use import in_use
from numba import njit, typeof
from numba.core.runtime import _nrt_python

import nbta
from nbta import arrow
from nbta.api import cached_callers
from nbta.compiler import build
from nbta.eager import Request
from nbta.runtime import entry_points, python_calls, python_methods, settings
from nbta.runtime import request as rq
from nbta.runtime.cold_fields import FAILED, FAILED_AT, cold_address
from nbta.runtime.memory import array_at
from nbta.runtime.numba_private import cpu_target
from nbta.runtime.store import BORROWED, FIELD, HEADER, STORE, store_at

SOURCES = Path(nbta.__file__).parent
PAGE = SOURCES.parent / "docs" / "design_notes" / "kept_addresses.md"
ROWS = {}
#: Where an expression looks like an address and native code gets none.
OTHER_USES = {
    "api/launching.py", "api/tracing.py", "bitwise.py", "ops/core/filling.py", "distributed.py",
    "codegen/fusion.py", "execution/runner.py", "graph/operation.py", "locations.py",
    "loops/saving.py", "saving.py", "runtime/numba_private.py",
    "runtime/loop_versions.py",  # sites, which have the statement
}  # fmt: skip
_TAKES = re.compile(
    r"\.ctypes\.data\b|addressof\(|ctypes\.cast\(|get_pointer_to_function|get_function_address"
    r"|get_cython_function_address|add_symbol\(|\bid\(|map\(id,|pointer_of\("
)


def table():
    """Rows of the page: name -> modules."""
    lines = PAGE.read_text().splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("|")]
    return {row[0].strip(): set(re.findall(r"`nbta/([\w/]+\.py)`", row[-1])) for row in rows[2:]}


def row(name):
    """Say which row of the table a test is for."""

    def note(test):
        ROWS[name] = test
        return test

    return note


def test_each_row_has_a_test():
    assert set(table()) == set(ROWS)


def test_each_module_that_takes_addresses_is_in_the_table():
    named = set().union(*table().values())
    taking = {
        str(file.relative_to(SOURCES))
        for file in SOURCES.rglob("*.py")
        if _TAKES.search(file.read_text()) and file.parent.name != "frontend"
    }  # that tells Python's objects apart while it traces, and keeps each as long as its id
    assert taking - named == OTHER_USES
    assert all((SOURCES / name).exists() for name in named)


def churned():
    """Collect garbage, and let new objects and memory lie where others were."""
    gc.collect()
    return [
        [np.dtype(f"S{k}") for k in range(1, 60)],
        [np.full(2**k, -1.0) for k in range(14) for _ in range(4)],
    ]


def growing(shape=(3,), **options):
    options = {"dynamic_size": True, "clear_after_read": False, "element_shape": shape, **options}
    return nbta.TensorArray("float64", 0, **options)


@row("dtype objects")
def test_the_store_keeps_no_dtype_object():
    assert not {"descriptor", "dtype_object"} & set(HEADER)
    dtype = np.dtype([("a", "f8"), ("b", "i8")])
    ta = nbta.TensorArray(dtype, 1)
    fields = list(ta._fields)
    assert id(dtype) not in fields
    assert id(ta.dtype) not in fields


@row("functions, a class and a list")
def test_methods_for_python_hold_what_they_know():
    ta = growing(())
    method = vars(nbta.TensorArray)["read"]
    size = type(method).__basicsize__ - object.__basicsize__
    words = (ctypes.c_int64 * (size // 8)).from_address(id(method) + object.__basicsize__)
    held = method.__dict__["__wrapped__"], nbta.TensorArray, *method.__dict__["_held"]
    first, second = python_methods.FUNCTION, python_methods.LOOK
    assert [*words[first : first + 2], *words[second : second + 3]] == list(map(id, held))
    kept = churned()
    for k in range(20):
        assert ta.append(float(k)).read(k) == ta[k] == k
    del kept


@row("type objects")
def test_types_are_held():
    held = {field: id(kind) for field, kind in settings.TYPES.items()}
    assert held == {field: settings.get(field) for field in held}
    named = {place for place, name in enumerate(settings.NAMES) if name.endswith("_type")}
    assert set(held) == named


@row("settings block")
def test_the_settings_block_is_the_one_that_llvm_knows():
    from llvmlite import binding

    found = binding.address_of_symbol("nbta_settings")
    assert found == ctypes.addressof(settings._block)
    assert ctypes.c_int64.from_address(found + 8 * settings.EPOCH).value >= 1


@row("entry points of kernels")
def test_entry_points_are_held():
    """Also the placeholders, which code may have found in the block and call later."""
    nbta.TensorArray("float64", 1)
    assert len(entry_points._placeholders) == len(entry_points.ENTRIES)
    assert entry_points.entry(settings.STORAGE_ENTRY) is entry_points.entry(settings.STORAGE_ENTRY)
    placeholder = entry_points._placeholders[entry_points.ENTRIES.index(settings.STORAGE_ENTRY)]
    kept = churned()
    request = Request()
    request[rq.INDEX] = -1
    for run in (placeholder, entry_points._C_ENTRY(settings.get(settings.STORAGE_ENTRY))):
        assert run(rq.CREATE, 0, ctypes.addressof(request)) != 0  # a negative size
    del kept


@row("stores")
def test_a_store_lives_as_long_as_a_face():
    ta = growing().append(np.ones(3))
    other, flow = ta.identity(), ta.flow
    del ta
    kept = churned()
    assert other.append(np.full(3, 2.0)).stack().tolist() == [[1.0] * 3, [2.0] * 3]
    assert flow.handle.name
    del kept


@njit
def one_after_another(n, m):
    """Arrays that go while their fields lie in registers, in iterations of an outer loop."""
    a = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(2,))
    total, kept = 0.0, np.zeros(2)
    for k in range(m):
        for i in range(n):
            a.append(np.full(2, float(i + k)))
            total += a[i][0]
        kept = a[n - 1]
        a = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(2,))
        other = np.full(2 * n, -1.0)  # where the array may have been
        for i in range(n):
            a.append(np.full(2, kept[0]))
            total += a[i][1] + other[i]
        a = nbta.TensorArray(np.float64, dynamic_size=True, element_shape=(2,))
    return total


def test_fields_in_registers_are_those_of_living_stores():
    for n in (3, 40):
        assert one_after_another(n, 30) == one_after_another.py_func(n, 30)


@njit
def last_uses(n):
    """Arrays that nobody uses after kernels made, grew, looked up or read them."""
    total = 0.0
    for k in range(n):
        a = nbta.TensorArray(np.float64, 0, True, element_shape=(2,))
        for i in range(5):
            a.append(np.full(2, float(i + k)))
        total += a.stack()[4, 0]
        b = nbta.TensorArray(np.float64, 0, True, element_shape=(2,))
        b.write(40, np.full(2, float(k)))
        g = nbta.TensorArray(np.float64, 1, element_shape=(2,)).write(0, np.ones(2)).grad("s")
        total += g.write(0, np.full(2, 3.0)).read(0)[0]
        c = nbta.TensorArray(np.float64, 0, True, element_shape=(None,), infer_shape=False)
        for i in range(3):
            c.append(np.full(i, 1.0))
        c.close()
        other = np.full(64, -1.0)  # where an array may have been
        total += other[k % 64]
    return total


def test_stores_live_as_long_as_kernels_use_them():
    _nrt_python.memsys_enable_stats()
    try:
        before = None
        for _ in range(3):
            assert last_uses(50) == sum(4.0 + k + 3.0 - 1.0 for k in range(50))
            now = in_use()
            assert before in (None, now)
            before = now
    finally:
        _nrt_python.memsys_disable_stats()


def test_stores_that_could_not_be_made_whole_are_dropped():
    """Of arrays, gradient arrays and lanes, by each allocation that fails on the way."""
    forward = growing().append(np.ones(3))
    gradients = forward.grad("kept")
    made = [
        lambda: nbta.TensorArray("float64", 500, element_shape=(3,), tensor_array_name="x"),
        lambda: growing().append(np.ones(3)).grad("s"),
        lambda: growing().append(np.ones(3)).lanes(3),
        lambda: gradients.lanes(2),
    ]
    _nrt_python.memsys_enable_stats()
    try:
        for make in made:
            make()  # what it finds or compiles once
            before, failed = in_use(), 0
            while True:
                settings.put(settings.ALLOCATIONS_LEFT, failed)
                try:
                    make()
                except nbta.errors.ResourceExhaustedError:
                    failed += 1
                else:
                    break
                finally:
                    settings.put(settings.ALLOCATIONS_LEFT, -1)
            assert failed
            assert in_use() == before
    finally:
        _nrt_python.memsys_disable_stats()


def test_kernels_count_no_references_to_stores():
    models = cpu_target.target_context.data_model_manager
    assert models[STORE].contains_nrt_meminfo()
    assert not models[BORROWED].contains_nrt_meminfo()


@row("elements and states")
def test_views_outlive_growth_and_their_array():
    ta, views = growing(), []
    for k in range(300):
        views.append(ta.append(np.full(3, float(k))).read(k))
    ta.close()
    del ta
    kept = churned()
    assert [view[0] for view in views] == list(range(300))
    del kept


@row("ragged blocks")
def test_blocks_are_held_by_the_table():
    ta = growing((None,), infer_shape=False)
    for k in reversed(range(100)):  # in the order of their slots they would be packed
        ta.write(k, np.full(k, float(k)))
    kept, views = churned(), [ta.read(k) for k in range(100)]
    ta.close()
    del ta, kept
    kept = churned()
    assert [view.tolist() for view in views] == [[float(k)] * k for k in range(100)]
    del kept


@row("packed elements")
def test_views_hold_the_buffers_of_packed_elements():
    ta = growing((None,), infer_shape=False)
    views, offsets = [], []
    for k in range(100):
        ta.append(np.full(k, float(k)))
        views.append(ta.read(k))
        offsets.append(ta.offsets)
    kept = churned()
    ta.write(200, np.ones(1))  # moves all out
    ta.close()
    del ta, kept
    kept = churned()
    assert [view.tolist() for view in views] == [[float(k)] * k for k in range(100)]
    assert [seen[-1] for seen in offsets] == [k * (k + 1) // 2 for k in range(100)]
    del kept


@pytest.mark.slow
@row("gradient stores and lanes")
def test_lists_hold_gradient_stores_and_lanes():
    ta = growing().append(np.ones(3))
    ta.grad("s").grad("t").write(0, np.ones(3))
    lanes = growing().append(np.zeros(3)).lanes(3)  # nobody else holds the array
    for k in range(3):
        lanes.take(k).append(np.full(3, float(k)))
    kept = churned()
    assert ta.grad("s").grad("t").read(0).tolist() == [1.0] * 3
    assert lanes.join().stack()[:, 0].tolist() == [0.0, 0.0, 1.0, 2.0]
    del kept


@njit
def cold_fields(store):
    """The cold fields of a store that has such, for as long as it lives."""
    return array_at(cold_address(store_at(store), 0), FAILED_AT + 1, np.int64)


@row("the store that failed in a loop")
def test_a_failure_is_kept_with_its_store():
    ta = growing().append(np.ones(3))
    gradients = ta.grad("s")
    cold = cold_fields(ta._address)
    cold[FAILED], cold[FAILED_AT] = 1, gradients._address
    del gradients
    kept = churned()
    owners = python_calls.native(python_calls.gradient_owners)(ta._address).view(np.int64)
    assert ta.grad("s")._owner() in owners.tolist()
    assert ta.grad("s")._address == cold[FAILED_AT]
    cold[FAILED] = 0
    del kept


@row("values, indices and lengths of a request")
def test_what_a_request_points_to_is_copied():
    """Values that are made for the call alone, and changed or freed after it."""
    ta = growing().scatter(np.array([1, 0]), np.array([[1.0] * 3, [2.0] * 3]))
    value = np.full((4, 3), 5.0)
    parts = nbta.TensorArray("float64", 2, element_shape=(None, 3), infer_shape=False)
    parts = parts.split(value, np.array([1, 3]))
    value[:] = -1.0
    kept = churned()
    assert ta.append([3, 3, 3]).stack()[:, 0].tolist() == [2.0, 1.0, 3.0]
    joined, lengths = parts.concat()
    assert (joined == 5.0).all()
    assert lengths.tolist() == [1, 3]
    del kept


@row("the view of all elements")
def test_a_view_of_all_elements_is_the_arrays_of_now():
    ta = growing(())
    for k in range(50):
        assert ta.append(float(k)).read(0) == 0.0
        base, view = ta._seen
        assert base == view.ctypes.data == ta._fields[FIELD.data]
    ta.close()
    assert ta._seen[1] is None


def graph_function():
    table = np.arange(50.0)
    return nbta.function(lambda x: nbta.sum(x * table[: len(table)]) + x, compiled=True)


@row("constants, buffers and results of calls of a graph")
def test_constants_and_buffers_are_held():
    f = graph_function()
    for _ in range(3):
        found = f(np.ones(50))
        kept = churned()
        np.testing.assert_array_equal(found, np.full(50, 50 * 49 / 2 + 1.0))
        del kept


@pytest.mark.slow
@row("inputs and results of a graph")
def test_inputs_of_a_former_call_are_not_looked_at():
    f = nbta.function(lambda x, y: nbta.cumsum(x) + y, compiled=True)
    results = []
    for k in range(30):
        results.append(f(np.full(5, float(k)), np.ones(5)))
        churned()
    for k, found in enumerate(results):
        np.testing.assert_array_equal(found, k * np.arange(1.0, 6.0) + 1.0)


@row("inputs and results that are one number")
def test_numbers_lie_in_arrays_of_the_workspace():
    """Calls put numbers there and take them out, whatever else was made and freed meanwhile."""
    f = nbta.function(lambda x, y: (x * y, x + y), compiled=True)
    found = []
    for k in range(30):
        found.append(f(float(k), 2.0))
        kept = churned()
        del kept
    assert found == [(2.0 * k, k + 2.0) for k in range(30)]


@row("callbacks of a graph")
def test_buffers_grow_by_callbacks_of_the_workspace():
    """Results of a length that nothing told beforehand are grown by a call of Python."""
    f = nbta.function(lambda x: nbta.cumsum(x), compiled=True)
    for n in (1, 10, 1000, 3, 5000):
        kept = churned()
        np.testing.assert_array_equal(f(np.ones(n)), np.arange(1.0, n + 1))
        del kept


@row("helpers")
def test_helpers_are_held():
    found = build.address(next(iter(build.FUNCTIONS)))
    gc.collect()
    assert found in [kept.address for kept in build._kept]
    assert build.address("PyErr_CheckSignals") == build.address("PyErr_CheckSignals")


@row("machine code of a graph")
def test_machine_code_lives_as_long_as_its_function():
    """What other functions were compiled to is freed meanwhile."""
    f = graph_function()
    f(np.ones(50))
    kept = churned()
    for _ in range(20):
        graph_function()  # others are compiled or loaded, and freed
    np.testing.assert_array_equal(f(np.ones(50)), np.full(50, 1226.0))
    del kept


@row("tables of a batch")
def test_tables_of_batches_are_held():
    f = nbta.value_and_grad(lambda w, x: nbta.sum(w * x), batch_axis=(None, 0), compiled=True)
    for k in range(4):
        items = [np.full(n, float(k)) for n in (3, 3, 3, 3)]
        value, slope = f(np.ones(3), items)
        kept = churned()
        assert value == pytest.approx(sum(item.sum() for item in items))
        np.testing.assert_allclose(slope, np.full(3, 4.0 * k))
        del kept


@row("readings of clocks")
def test_no_clock_points_to_readings_after_its_run():
    f = graph_function()
    f(np.ones(50))
    f.profile(np.ones(50))
    kept = churned()
    np.testing.assert_array_equal(f(np.ones(50)), np.full(50, 1226.0))
    del kept


@njit(cache=True)
def _views(count):
    ta = nbta.TensorArray(np.float64, 0, True, element_shape=(2,), clear_after_read=False)
    total = 0.0
    for k in range(count):
        ta.append(np.full(2, float(k)))
        total += ta.read(k // 2)[1]
    return total, ta


def test_nothing_of_all_this_is_left_behind():
    """What keeps something alive lets go of it, too."""
    _nrt_python.memsys_enable_stats()
    try:
        before = None
        for _ in range(3):
            total, ta = _views(100)
            assert total == sum(k // 2 for k in range(100))
            del ta
            test_lists_hold_gradient_stores_and_lanes()
            test_blocks_are_held_by_the_table()
            now = in_use()
            assert before in (None, now)
            before = now
    finally:
        _nrt_python.memsys_disable_stats()


@row("programs, workspaces and places that users' `@njit` functions look at")
def test_what_njit_functions_look_at_lives():
    def made(weights):
        slope = nbta.grad(lambda x: nbta.sum(weights * x * x))

        @njit
        def compiled(x):
            return slope(x)

        return compiled

    def made_of_batches(weights):
        slope = nbta.grad(lambda x, y: nbta.sum(weights * x * x) + y, batch_axis=(0, None))

        @njit
        def compiled(x):
            return slope(np.stack((x, x)), 1.0)[1]

        return compiled

    x = np.linspace(1.0, 2.0, 4)
    for make in (made, made_of_batches):
        compiled = make(np.arange(4.0))
        for _ in range(3):
            np.testing.assert_array_equal(compiled(x), 2 * np.arange(4.0) * x)
            kept = churned()
            np.testing.assert_array_equal(compiled(x), 2 * np.arange(4.0) * x)
            del kept


@row("entries and loops of functions that callers in Numba's disk cache call")
def test_what_callers_from_the_disk_call_lives(monkeypatch):
    module = ModuleType("kept_addresses_named")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.g = nbta.grad(lambda x: x * x)
    compiled = njit(lambda x, g: g(x))
    assert compiled(2.0, module.g) == 4.0
    (symbol,) = typeof(module.g).symbols
    found = llvmlite.binding.address_of_symbol(symbol)
    del module.g
    gc.collect()
    assert found == cached_callers._holders[symbol].words.ctypes.data


@row("structs of Arrow's C data interface, and columns")
def test_columns_of_arrow_live_as_long_as_their_capsules():
    array = nbta.TensorArray("float64", 1000, clear_after_read=False).unstack(np.arange(1000.0))
    before = arrow._held.keys() | set()
    schema, contents = array.__arrow_c_array__()
    del array
    kept = churned()
    address = arrow._pointer_in(id(contents), b"arrow_array")
    numbers = arrow._Array.from_address(address).buffers[1]
    found = np.ctypeslib.as_array(ctypes.cast(numbers, ctypes.POINTER(ctypes.c_double)), (1000,))
    np.testing.assert_array_equal(found, np.arange(1000.0))
    del schema, contents, found, kept
    gc.collect()
    assert arrow._held.keys() == before
