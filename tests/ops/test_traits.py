"""What records say of their operations, by trying; and that nothing else says it a second time."""

import ast
import inspect
import itertools
from pathlib import Path

import numpy as np
import pytest

import nbta
import nbta.namespace  # with the records of all operations
from nbta.errors import NbtaError
from nbta.graph.graph import Graph, SubGraph
from nbta.graph.operation import TABLE, Spec
from nbta.ops.arrays.tensor_arrays import WRITES

DTYPES = [
    np.dtype(name)
    for name in (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128",
    )
]  # fmt: skip
ELEMENTWISE = [record for record in TABLE.values() if record.elementwise]
#: Dtypes of the inputs of elementwise operations whose evaluation does not tell their number.
INPUTS = {"Where": (bool, None, None), "AddN": (None, None, None), "Real": (None,), "Imag": (None,)}
ATTRS = {
    **{
        name: [{"n": n} for n in range(3)]
        for name in ("BesselI", "BesselIE", "BesselJ", "BesselY", "BesselK", "BesselKE")
    },
    "ExpN": [{"n": 1}, {"n": 4}],
    "LambertW": [{"k": 0}, {"k": -1}],
    "Fixed": [{"message": "a"}],
    "Cast": [{"dtype": dtype} for dtype in DTYPES],
    "Polygamma": [{"n": n} for n in range(3)],
    "Philox": [{"stream": 0}, {"stream": 1}],
    "UnitOfBits": [{"dtype": np.dtype(name)} for name in ("float32", "float64")],
}
REDUCED = [{"axis": axis, "keepdims": keep} for axis in (None, (0,), (-1,)) for keep in (0, 1)]
#: Attributes with which other total records are tried, and on how many matrices.
OTHERS = {
    "AsMatrix": (1, [{"side": "row"}, {"side": "column"}]),
    "CumSum": (1, [{"axis": 1, "reverse": False}, {"axis": 0, "reverse": True}]),
    "ExpandDims": (1, [{"axes": (0,)}, {"axes": (1, -1)}]),
    "GetItem": (1, [{"key": (0,)}, {"key": (-1, 0)}]),
    "MatMul": (2, [{}]),
    "MatMulOfAdjoints": (2, [{"adjoints": (True, False)}]),
    "Mean": (1, REDUCED),
    "Outer": (2, [{}]),
    "OuterOfAdjoints": (2, [{"adjoints": (True, True)}]),
    "Prod": (1, REDUCED),
    "Shape": (1, [{}]),
    "Size": (1, [{}]),
    "Sort": (1, [{"axis": 0}, {"axis": -1}]),
    "Split": (1, [{"sections": 1, "axis": 0}, {"sections": (1,), "axis": 1}]),
    "Stack": (2, [{"axis": 0}, {"axis": -1}]),
    "Sum": (1, REDUCED),
    "SwapAxes": (1, [{"a": 0, "b": -1}]),
    "Transpose": (1, [{"axes": None}, {"axes": (1, 0)}]),
    "Tril": (1, [{"k": 0}, {"k": -1}]),
    "Mirror": (1, [{}]),
    "Fold": (1, [{}]),
}
#: Those that take square matrices.
SQUARE = ("MatMul", "MatMulOfAdjoints", "Mirror", "Fold")


def extremes(dtype):
    """The numbers of a dtype that are most likely to be refused."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        about = np.iinfo(dtype)
        return np.array([about.min, about.max, 0, 1, about.max - 1, about.min + 1], dtype)
    real = np.empty(0, dtype).real.dtype
    about = np.finfo(real)
    numbers = [np.nan, np.inf, -np.inf, 0.0, -0.0, about.max, about.min, about.tiny, -1, 0.5, -2.5]
    if dtype.kind == "f":
        return np.array(numbers, dtype)
    return np.array([complex(a, b) for a in numbers for b in numbers[:6]], dtype)


def inputs_of(record, dtype):
    """The dtypes of an elementwise operation's inputs."""
    if record.name in INPUTS:
        return [np.dtype(kind or dtype) for kind in INPUTS[record.name]]
    nin = getattr(record.evaluate, "nin", None)
    if nin is None:
        kinds = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = inspect.signature(record.evaluate).parameters.values()
        nin = sum(parameter.kind is kinds for parameter in parameters)
    return [dtype] * nin


def operation(record, specs, attrs):
    """An operation on placeholders; None where the shape rule refuses them."""
    with Graph().as_default() as graph:
        given = [nbta.placeholder(spec.dtype, spec.shape) for spec in specs]
        try:
            return graph.create(record, given, attrs)
        except NbtaError:
            return None


def evaluated(record, arrays, attrs):
    with np.errstate(all="ignore"):
        return record.evaluate(*arrays, **attrs)


def applicable(record):
    """Dtypes and attributes that the shape rule of an elementwise operation admits."""
    for dtype in DTYPES:
        for attrs in ATTRS.get(record.name, [{}]):
            dtypes = inputs_of(record, dtype)
            op = operation(record, [Spec(each, (3,)) for each in dtypes], attrs)
            if op is not None:
                yield dtypes, attrs, op


def meetings(dtypes):
    """Extreme numbers against each other, as scalars, as rows, and none."""
    rows = np.array(list(itertools.product(*(extremes(dtype)[:11] for dtype in dtypes))), object)
    columns = [rows[:, i].astype(dtype) for i, dtype in enumerate(dtypes)]
    yield columns
    yield [column[:0] for column in columns]
    yield [column[0] for column in columns]


@pytest.mark.parametrize("record", ELEMENTWISE, ids=lambda record: record.name)
def test_total_elementwise_operations_give_results_for_all_numbers_and_others_do_not(record):
    for dtypes, attrs, op in applicable(record):
        try:
            for arrays in meetings(dtypes):
                result = evaluated(record, arrays, attrs)
                assert np.shape(result) == np.shape(arrays[0])
        except (ValueError, TypeError):
            assert not record.is_total(op), dtypes
        else:
            assert record.is_total(op), dtypes


@pytest.mark.smoke
@pytest.mark.parametrize("record", ELEMENTWISE, ids=lambda record: record.name)
def test_elementwise_operations_go_item_by_item(record):
    rng = np.random.default_rng(0)
    for dtypes, attrs, op in applicable(record):
        arrays = [rng.uniform(0, 4, 7).astype(dtype) for dtype in dtypes]
        if record.is_total(op):
            whole = evaluated(record, arrays, attrs)
            items = [evaluated(record, item, attrs) for item in zip(*arrays, strict=True)]
            np.testing.assert_allclose(
                whole.astype(np.complex128), np.array(items, np.complex128), rtol=2e-3
            )


@pytest.mark.parametrize("record", ELEMENTWISE, ids=lambda record: record.name)
def test_elementwise_operations_broadcast_their_inputs(record):
    last = [np.uint64, np.int64, np.float64]  # the best of these that there is
    dtypes, attrs, _ = max(
        (case for case in applicable(record) if case[0][-1] in last),
        key=lambda case: last.index(case[0][-1]),
    )
    if record.name == "AddN":
        with pytest.raises(NbtaError, match="differ; broadcast them first"):
            record.infer(Spec(dtypes[0], (2, 3)), Spec(dtypes[0], (3,)))
        return
    rng = np.random.default_rng(0)
    arrays = [
        rng.uniform(1, 2, (2, 3)[-rank:]).astype(dtype)
        for dtype, rank in zip(dtypes, (2, 1, 2), strict=False)
    ]
    wide = np.broadcast_arrays(*arrays)
    found = evaluated(record, arrays, attrs)
    assert found.shape == record.infer(*(Spec(a.dtype, a.shape) for a in arrays), **attrs).shape
    np.testing.assert_array_equal(found, evaluated(record, wide, attrs))


def test_all_total_records_are_tried():
    total = {name for name, record in TABLE.items() if record.total and not record.elementwise}
    assert total == {*OTHERS, "Constant"}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("shape", [(2, 2), (1, 3), (0, 2), (2, 0)])
def test_total_operations_give_results_for_all_numbers(name, shape):
    count, ways = OTHERS[name]
    shape = shape if name not in SQUARE else (shape[1], shape[1])
    shape = shape if not name.startswith("Outer") else shape[:1]
    tried = 0
    for dtype, attrs in itertools.product(DTYPES, ways):
        spec = Spec(dtype, shape)
        op = operation(TABLE[name], [spec] * count, attrs)
        if op is None or not op.record.is_total(op):
            continue
        for first in range(len(extremes(dtype))):
            numbers = np.resize(np.roll(extremes(dtype), first), shape)
            result = evaluated(op.record, [numbers] * count, attrs)
            results = result if isinstance(result, tuple) else (result,)
            assert [np.shape(r) for r in results] == [t.spec.shape for t in op.outputs]
            tried += 1
    assert tried or (name == "GetItem" and 0 in shape)


def test_indices_and_sections_that_may_be_refused_are_not_total():
    key = {"key": (5,)}
    assert operation(TABLE["GetItem"], [Spec(np.dtype(float), (3,))], key) is None
    unproven = operation(TABLE["GetItem"], [Spec(np.dtype(float), (None,))], key)
    assert not unproven.record.is_total(unproven)
    sections = {"sections": 2, "axis": 0}
    unproven = operation(TABLE["Split"], [Spec(np.dtype(float), (None,))], sections)
    assert not unproven.record.is_total(unproven)


def test_compiled_total_operations_give_results_for_all_numbers():
    """All in one function, of floats and of integers; what Python computes of them, too."""
    for dtype in (np.float64, np.int64):
        numbers = extremes(dtype)
        a, b = (x.ravel() for x in np.meshgrid(numbers, numbers))
        wanted, records = [], []
        for record in ELEMENTWISE:
            for dtypes, attrs, op in applicable(record):
                if dtypes in ([dtype], [dtype] * 2) and record.is_total(op):
                    value = evaluated(record, (a, b)[: len(dtypes)], attrs)
                    if value.dtype == op.outputs[0].dtype and attrs.get("dtype", dtype) == dtype:
                        records.append((record, len(dtypes), attrs))
                        wanted.append(value)

        def every(x, y, records=records):
            graph = x.graph
            both = (x, y)
            return [graph.create(r, both[:n], attrs).outputs[0] for r, n, attrs in records]

        found = nbta.function(every, compiled=True)(a, b)
        assert len(found) > 15
        for (record, *_), mine, numpys in zip(records, found, wanted, strict=True):
            np.testing.assert_allclose(mine, numpys, rtol=1e-13, err_msg=record.name)


def test_what_is_cheap_is_elementwise_and_total_for_plain_numbers():
    for record in TABLE.values():
        if record.cheap:
            assert record.elementwise
            assert any(record.is_total(op) for _, _, op in applicable(record)), record


@pytest.mark.parametrize("name", [name for name, record in TABLE.items() if record.selects])
def test_what_selects_gives_items_or_dimensions_of_its_first_input(name):
    attrs = {
        "GetItem": {"key": (1, slice(0, 2))}, "Split": {"sections": (1,), "axis": 1},
        "Take": {"axis": 1}, "Slice": {"pattern": (1, 2), "clamp": False},
    }.get(name, {})  # fmt: skip
    rest = {"Take": [np.array([2, 0])], "Slice": [np.array([1, 0]), np.array([1, 2])]}.get(name, [])
    x = np.arange(100.0, 106.0).reshape(2, 3)
    results = evaluated(TABLE[name], [x, *rest], attrs)
    others = evaluated(TABLE[name], [-x, *rest], attrs)
    pairs = zip(results, others, strict=True) if name == "Split" else [(results, others)]
    for result, other in pairs:
        selected = np.isin(result, x).all() and np.array_equal(-result, other)
        assert selected or np.array_equal(result, other)


@pytest.mark.parametrize("name", [name for name, record in TABLE.items() if record.keeps])
def test_what_keeps_a_shape_gives_its_first_input(name):
    x = np.arange(6.0).reshape(2, 3)
    shape = np.array(x.shape)
    np.testing.assert_array_equal(evaluated(TABLE[name], [x, shape], {"pattern": (2, 3)}), x)


def test_shapes_are_inputs_of_all_that_have_a_pattern_and_say_the_shape_of_the_result():
    said = {name for name, record in TABLE.items() if record.shape_input is not None}
    have = {
        name
        for name, record in TABLE.items()
        if "pattern" in inspect.signature(record.infer).parameters
    }
    assert said == have
    shape, two = np.array([2, 3]), np.array([0, 0])
    x = np.arange(6.0).reshape(2, 3)
    given = {
        "BroadcastTo": [x[0], shape], "Fill": [shape, 1.0], "FillAround": [shape, 1.0],
        "Reshape": [x.T, shape], "ScatterSlice": [x[0], shape], "Slice": [np.pad(x, 1), two, shape],
        "SumTo": [np.stack([x, x]), shape],
    }  # fmt: skip
    more = {"FillAround": {"axes": ()}, "ScatterSlice": {"key": (0,)}, "Slice": {"clamp": True}}
    for name in said:
        assert given[name][TABLE[name].shape_input] is shape
        attrs = {"pattern": (2, 3), **more.get(name, {})}
        assert np.shape(evaluated(TABLE[name], given[name], attrs)) == (2, 3)


def test_what_stores_says_which_input():
    assert {record for record in TABLE.values() if record.value_input is not None} == set(WRITES)
    with Graph().as_default():
        ta = nbta.TensorArray("float64", size=3, infer_shape=False)
        x = nbta.placeholder("float64", (3,))
        flows = [ta.write(0, x[0]).flow, ta.unstack(x).flow, ta.split(x, [1, 1, 1]).flow]
    for flow in flows:
        value = flow.op.inputs[flow.op.record.value_input]
        assert (value.dtype, value.kind) == (np.float64, "data")


def test_what_is_fed_has_no_value_of_its_own():
    fed = {name for name, record in TABLE.items() if record.fed}
    assert fed == {"Parameter", "Placeholder"}
    for name in fed:
        keys = inspect.signature(TABLE[name].infer).parameters
        with pytest.raises((AssertionError, NbtaError)):
            TABLE[name].evaluate(**dict.fromkeys(keys, Spec(np.dtype(float), ())))


def test_what_is_pure_takes_no_run_and_no_bodies():
    for record in TABLE.values():
        names = list(inspect.signature(record.infer).parameters)
        assert record.pure or record.effects or record.foreign
        assert not (record.pure and {"body", "branches", "function"} & set(names)), record
    assert SubGraph  # bodies are attributes of operations


# One home for each fact.

SOURCES = sorted(Path(nbta.__file__).parent.rglob("*.py"))


def tables_by_type(tree):
    """Places that ask a collection about the name of an operation's type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and any(
            isinstance(o, ast.In | ast.NotIn) for o in node.ops
        ):
            asked = [node.left]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            asked = [node.slice]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "index"):
            asked = node.args
        else:
            continue
        if any(ends_in_type(each) for each in asked):
            yield node.lineno


def ends_in_type(node):
    """Whether an expression is ``op.type``, or the name of its record."""
    if not isinstance(node, ast.Attribute):
        return False
    owner = node.value
    last = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return (node.attr == "type" and last in ("op", "test", "made", "inner", "maker", "step")) or (
        node.attr == "name" and last == "record"
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_table_of_names_says_what_a_record_should_say(path):
    tables = list(tables_by_type(ast.parse(path.read_text(encoding="utf-8"))))
    assert len(tables) == (path.stem == "operation")  # which has that of all records


def test_tables_of_names_are_found():
    source = """
if op.type in QUICK: pass
if t.op.type not in ("Add", "AddN"): pass
PLACE[op.type]
RULES.get(tensor.op.type)
seen[op.record.name]
counts[dtype.type]
found.get(node.type)
"""
    assert list(tables_by_type(ast.parse(source))) == [2, 3, 4, 5, 6]
