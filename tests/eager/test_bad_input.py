"""What users may get wrong with graphs: each mistake has a message that tells what to do."""

from typing import Any, NamedTuple

import numpy as np
import pytest

import nbta
from nbta import raw_ops
from nbta.graph.graph import current


class Case(NamedTuple):
    """A function that builds, what is fed, and all that the message must say."""

    build: Any
    words: str
    feeds: Any = None
    error: type = nbta.InvalidArgumentError


def p(shape=(), dtype="float64", name="x"):
    return nbta.placeholder(dtype, shape, name=name)


def attempt(build, feeds=None):
    """Build in a graph and run what there is to run; the graph stays of use."""
    graph = nbta.Graph()
    before = current()
    try:
        with graph.as_default():
            fetches = build()
        if feeds is not None:
            return nbta.Session(graph).run(fetches, feeds)
        return fetches
    finally:
        assert current() is before
        with graph.as_default():
            healthy = nbta.multiply(nbta.constant(2.0), 3.0, name="healthy")
        assert nbta.Session(graph).run(healthy) == 6.0
        assert graph.operations[-1].name == "healthy"


def check(case):
    with pytest.raises(case.error) as caught:
        attempt(case.build, case.feeds)
    for word in case.words.split("|"):
        assert word in str(caught.value)
    return caught.value


def run(build, words, feeds=(), error=nbta.InvalidArgumentError):
    return Case(build, words, dict(feeds), error)


def array(size=2, dtype="float64", **options):
    return nbta.TensorArray(dtype, size, name="states", **options)


ROWS, WIDE = np.ones((2, 3)), np.ones((2, 4))
SHAPES = {
    "add": Case(lambda: p((2,)) + p((3,), name="y"), "Add 'Add'|(2,) and (3,)|must be equal or 1"),
    "add at run": run(
        lambda: p((None,)) + p((None,), name="y"),
        "operation 'Add', Add|(2,) and (3,)|must be equal or 1",
        {"x": [1.0, 2.0], "y": [1.0, 2.0, 3.0]},
    ),
    "add of an array": Case(lambda: p((2,)) + np.ones(3), "Add 'Add'|(2,) and (3,)"),
    "matmul": Case(
        lambda: p((2, 3)) @ p((2, 3), name="y"),
        "MatMul 'MatMul'|(2, 3) and (2, 3)|inner lengths 3 and 2 must be equal",
    ),
    "matmul at run": run(
        lambda: p((None, None)) @ p((None, None), name="y"),
        "'MatMul', MatMul|(2, 3) and (2, 4)|inner lengths 3 and 2 must be equal",
        {"x": ROWS, "y": WIDE},
    ),
    "matmul of a number": Case(lambda: p((2, 3)) @ 2.0, "MatMul|multiply scalars with *"),
    "concatenate": Case(
        lambda: nbta.concatenate([p((2, 3)), p((2, 4), name="y")]),
        "Concatenate 'Concatenate'|(2, 3), (2, 4)|axis 0|must be equal",
    ),
    "concatenate at run": run(
        lambda: nbta.concatenate([p((None, None)), p((None, None), name="y")]),
        "'Concatenate', Concatenate|(2, 3), (2, 4)|must be equal",
        {"x": ROWS, "y": WIDE},
    ),
    "reshape at run": run(
        lambda: nbta.reshape(p((None,)), (2, 3)),
        "'Reshape', Reshape|(2,) has 2 elements, and (2, 3) has 6|give a shape",
        {"x": [1.0, 2.0]},
    ),
    "index at run": run(
        lambda: p((None,))[5], "'GetItem', GetItem|[5] is out of range|2 elements", {"x": [1, 2.0]}
    ),
    "write": Case(
        lambda: array(element_shape=(2,)).write(0, np.ones(3)),
        "write on states|elements have shape (2,)|value gives (3,)|reshape it",
    ),
    "second write": Case(
        lambda: array().write(0, np.ones(3)).write(1, p((2,))),
        "write on states|elements have shape (3,)|value gives (2,)|infer_shape=False",
    ),
    "write at run": run(
        lambda: array(element_shape=(2,)).write(0, p((None,))).flow,
        "write on states|takes elements of shape (2,)|the value has shape (3,)|reshape it|"
        "operation 'TensorArrayWriteV3', TensorArrayWriteV3",
        {"x": np.ones(3)},
    ),
    "unstack": Case(
        lambda: array(element_shape=(2,)).unstack(p((2, 3))), "unstack on states|(2,)|gives (3,)"
    ),
    "scan of two lengths": Case(
        lambda: nbta.scan(lambda c, x: (c, x[0]), 0.0, (p((3,)), p((4,), name="y"))),
        "scan: xs have the lengths [3, 4]; they must be the same",
    ),
    "scan of two lengths at run": run(
        lambda: nbta.scan(lambda c, x: (c, x[1]), 0.0, (p((None,)), p((None,), name="y")))[1],
        "size 2 into shape (3,)|'xs_of_one_length'",
        {"x": np.ones(3), "y": np.ones(2)},
    ),
    "scan of a scalar": Case(
        lambda: nbta.scan(lambda c, x: (c, x), 0.0, p()), "scan: xs has a scalar|no first axis"
    ),
    "map_fn of a scalar": Case(lambda: nbta.map_fn(lambda x: x, p()), "map_fn: elems has a scalar"),
    "foldl of nothing": Case(
        lambda: nbta.foldl(lambda a, x: a + x, np.zeros(0)), "foldl: elems has no rows; give init"
    ),
    "scan without a length": Case(
        lambda: nbta.scan(lambda c, x: (c, c), p(), None), "scan: xs has no arrays; give length"
    ),
    "scan of a negative length": Case(
        lambda: nbta.scan(lambda c, x: (c, c), p(), None, length=-1), "scan: length must be|not -1"
    ),
}
DTYPES = {
    "add": Case(
        lambda: p((2,)) + np.array([b"a", b"b"]), "float64 and |S1 cannot be computed with together"
    ),
    "big number": Case(lambda: p(dtype="int32") + 2**40, "1099511627776 does not fit int32"),
    "object": Case(lambda: p() + object(), "<object object at|is not a tensor; give numbers"),
    "write": Case(
        lambda: array().write(0, p(dtype="int32")),
        "write on states|holds float64|value is int32|nbta.cast",
    ),
    "write of a fraction": Case(
        lambda: array(dtype="int64").write(0, 1.5),
        "write on states|holds int64|the value is float64 (1.5)|.astype('int64')",
    ),
    "raw write of a fraction": Case(
        lambda: raw_ops.TensorArrayWriteV3(*_raw("int64", index=0, value=1.5)),
        "write on 'raw'|holds int64|float64 (1.5)",
    ),
    "write of a list of tensors": Case(
        lambda: array().write(0, [p(), 1.0]), "x:0 is a symbolic tensor|nbta.stack for a list"
    ),
    "float index": Case(lambda: array().read(1.5), "index: must be one integer, not float64 ()"),
    "huge index": Case(
        lambda: array().read(2**70), "index: 1180591620717411303424 is not an integer"
    ),
    "two indices": Case(lambda: array().read([0, 1]), "index: must be one integer, not int32 (2,)"),
    "read": Case(
        lambda: array().read(0, dtype="int8"), "read on states: it holds float64, not int8"
    ),
    "placeholder": Case(lambda: p(dtype="nothing"), "dtype: 'nothing' is not a dtype"),
    "where": Case(lambda: nbta.where(p(), 1.0, 2.0), "condition|booleans, not float64|compare"),
}


def _raw(dtype, index, value):
    handle, flow = raw_ops.TensorArrayV3(2, dtype, name="raw")
    return handle, index, value, flow


def loop(body, first=(0, 1.0), cond=lambda i, x: i < 3, **options):
    return lambda: nbta.while_loop(cond, body, first, **options)


def scan(f, init=0.0):
    return lambda: nbta.scan(f, init, p((3,)))


def branches(one, other, pred="bool", shape=()):
    return lambda: nbta.cond(p(shape, pred, "pred"), one, other)


LOOPS = {
    "fewer": Case(
        loop(lambda i, x: (i + 1,)),
        "while_loop: loop_vars has the structure (*, *)|body returns (*,)|same structure",
    ),
    "nothing": Case(loop(lambda i, x: None), "while_loop: loop_vars|returns None"),
    "another structure": Case(loop(lambda i, x: {"i": i, "x": x}), "(*, *)|{'i': *, 'x': *}"),
    "another dtype": Case(
        loop(lambda i, x: (i + 1, nbta.cast(x, "float32"))),
        "while_loop: loop_vars[1] is float64|body returns float32|cast it, or begin with float32",
    ),
    "a number that does not fit": Case(
        loop(lambda i, x: (2.5, x)), "loop_vars[0] is int64, and the body returns float64"
    ),
    "a truth value": Case(loop(lambda i, x: (True, x)), "loop_vars[0] is int64|returns bool"),
    "in a dict": Case(
        loop(lambda s: {"a": [s["a"][0] * 1j]}, ({"a": [1.0]},), lambda s: True),
        "loop_vars[0]['a'][0] is float64, and the body returns complex128",
    ),
    "another rank": Case(
        loop(lambda i, x: (i + 1, nbta.stack([x, x]))),
        "loop_vars[1] has shape ()|body returns (2,)|keeps its rank",
    ),
    "an array for a tensor": Case(
        loop(lambda i, x: (i + 1, array())), "loop_vars[1] is a tensor|returns a TensorArray"
    ),
    "declared": Case(
        loop(
            lambda i, x: (i + 1, nbta.concatenate([x, x])),
            (0, np.ones(2)),
            shape_invariants=[(), (2,)],
        ),
        "loop_vars[1] has shape (2,) in every iteration|body returns (4,)|widen shape_invariants",
    ),
    "too few invariants": Case(
        loop(lambda i, x: (i, x), shape_invariants=[()]), "shape_invariants has 1 entries|2 values"
    ),
    "unfit invariants": Case(
        loop(lambda i, x: (i, x), shape_invariants=[(3,), ()]), "loop_vars[0] has shape ()|(3,)"
    ),
    "no variables": Case(
        loop(lambda: (), ()), "while_loop: loop_vars is empty; give at least one variable"
    ),
    "cond of numbers": Case(
        loop(lambda i, x: (i + 1, x), cond=lambda i, x: x),
        "while_loop: cond must give one truth value, not float64 ()|compare",
    ),
    "cond of a vector": Case(
        loop(lambda i, x: (i + 1, x), (0, np.ones(2)), lambda i, x: x > 0),
        "cond must give one truth value, not bool (2,)|reduce",
    ),
    "cond in Python": Case(
        loop(lambda i, x: (i + 1, x), cond=lambda i, x: i < 3 and x < 2),
        "while/cond/Less:0 is a symbolic tensor|Python truth value|nbta.cond",
    ),
    "scan structure": Case(
        scan(lambda c, x: ((c, x), x)),
        "scan: init has the structure *, and the carry that f gives has (*, *)|same structure",
    ),
    "scan dtype": Case(
        scan(lambda c, x: (c + x, x), 0),
        "scan: init is int64, and the carry that f gives is float64 there|begin with float64",
    ),
    "scan rank": Case(
        scan(lambda c, x: ({"a": nbta.stack([x, x])}, x), {"a": 0.0}),
        "scan: init['a'] has shape ()|the carry that f gives has (2,) there|rank",
    ),
    "scan kind": Case(scan(lambda c, x: (array(), x)), "scan: init is a tensor|has a TensorArray"),
    "scan without a pair": Case(
        scan(lambda c, x: c + x), "scan: f must return a pair (carry, y), and returns *"
    ),
    "fold dtype": Case(
        lambda: nbta.foldr(lambda a, x: nbta.cast(a, "float32"), p((3,)), 0.0),
        "foldr: initializer is float64, and what fn gives is float32 there|cast",
    ),
    "branches of two structures": Case(
        branches(lambda: (1.0, 2.0), lambda: 1.0),
        "cond: true_fn gives (*, *), and false_fn gives *; the structures must be the same",
    ),
    "branches of two dtypes": Case(
        branches(lambda: np.float64(1), lambda: np.float32(1)),
        "cond: false_fn gives float32 () where another gives float64; cast it",
    ),
    "an array in one branch": Case(
        branches(lambda: 1.0, array), "cond: true_fn gives 1.0 where another gives a TensorArray"
    ),
    "arrays of two dtypes": Case(
        branches(array, lambda: array(dtype="int8")), "cond: the branches give arrays of|one dtype"
    ),
    "pred of numbers": Case(
        branches(lambda: 1, lambda: 2, "float64"), "cond: pred must be one truth value, not float64"
    ),
    "pred of a vector": Case(
        branches(lambda: 1, lambda: 2, shape=(2,)),
        "cond: pred must be one truth value, not bool (2,)",
    ),
    "a branch that is no function": Case(
        branches(1.0, lambda: 2.0), "cond: true_fn must be a function, and is 1.0|lambda:"
    ),
    "a case that is no function": Case(
        lambda: nbta.switch_case(p(dtype="int32"), {3: lambda: 1, 5: 2}),
        "switch_case: branch_fns[5] must be a function, and is 2|lambda:",
    ),
    "a default that is no function": Case(
        lambda: nbta.switch_case(p(dtype="int32"), [lambda: 1], default=2),
        "switch_case: default must be a function, and is 2|lambda:",
    ),
    "a name in the place of an operand": Case(
        lambda: nbta.cond(True, lambda: 1, lambda: 2, "choice"),
        "cond: operand 1 is 'choice'; give name= by name",
    ),
    "a default in the place of an operand": Case(
        lambda: nbta.switch_case(p(dtype="int32"), [np.sin], 1.0, np.cos),
        "switch_case: operand 2 is <ufunc 'cos'>; give name= and default= by name",
    ),
    "a condition that is no function": Case(
        loop(lambda i, x: (i, x), cond=True), "while_loop: cond must be a function, and is True"
    ),
    "a scan of no function": Case(
        lambda: nbta.scan(p(), 0.0, np.ones(2)), "scan: f must be a function, and is"
    ),
    "a map of no function": Case(
        lambda: nbta.map_fn(3, np.ones(2)), "map_fn: fn must be a function, and is 3"
    ),
    "a fold of no function": Case(
        lambda: nbta.foldr(None, np.ones(2)), "foldr: fn must be a function, and is None"
    ),
    "switch of floats": Case(
        lambda: nbta.switch_case(p(), [lambda: 1]), "branch_index must be one integer, not float64"
    ),
    "switch of nothing": Case(
        lambda: nbta.switch_case(p(dtype="int32"), []), "switch_case: branch_fns is empty"
    ),
    "switch of two structures": Case(
        lambda: nbta.switch_case(p(dtype="int32"), {3: lambda: 1, 5: lambda: (1,)}),
        "switch_case: branch_fns[3] gives *, and branch_fns[5] gives (*,)",
    ),
    "placeholder in a body": Case(
        loop(lambda i, x: (i + 1, p())), "placeholder: make it outside of the loop or branch"
    ),
}
EXTREMES = {
    "huge array": run(
        lambda: array(2**60).flow,
        "create on states|1152921504606846976 slots|fewer|operation 'states', TensorArrayV3",
        error=nbta.ResourceExhaustedError,
    ),
    "beyond 64 bits": Case(lambda: array(2**70), "size: 1180591620717411303424 is not an integer"),
    "negative array": run(lambda: array(-1).flow, "create on states|size is -1|0 or more"),
    "huge write": run(
        lambda: array(dynamic_size=True).write(2**61, 1.0).flow,
        "write on states|not enough memory|'TensorArrayWriteV3'",
        error=nbta.ResourceExhaustedError,
    ),
    "huge tensor": run(
        lambda: nbta.zeros((2**40, 2**10)),
        "Unable to allocate|(1099511627776, 1024)|operation 'Fill', Fill",
        error=nbta.ResourceExhaustedError,
    ),
    "huge range": run(
        lambda: nbta.arange(p(dtype="int64")),
        "Unable to allocate|'Range'",
        {"x": 2**50},
        nbta.ResourceExhaustedError,
    ),
    "greatest of none": run(
        lambda: nbta.max(p((None,))),
        "axis 0 of shape (0,)|give an axis with elements|'Max'",
        {"x": []},
    ),
    "stack of none": run(
        lambda: array(0).stack(),
        "gather on states|nothing to stack|make the array with element_shape=",
        error=nbta.UnimplementedError,
    ),
    "concatenate nothing": Case(
        lambda: nbta.concatenate([]), "nothing to join; give at least one tensor"
    ),
    "integer power": run(
        lambda: p(dtype="int64") ** -1, "Integers to negative integer powers|'Pow'", {"x": 3}
    ),
}


@pytest.mark.parametrize("label", SHAPES)
def test_shapes_that_do_not_match(label):
    check(SHAPES[label])


@pytest.mark.parametrize("label", DTYPES)
def test_dtypes_that_do_not_match(label):
    check(DTYPES[label])


@pytest.mark.parametrize("label", LOOPS)
def test_loops_and_branches_that_do_not_keep_to_their_form(label):
    check(LOOPS[label])


@pytest.mark.parametrize("label", EXTREMES)
def test_sizes_that_cannot_be(label):
    check(EXTREMES[label])


@pytest.mark.parametrize("body", ["fewer", "another dtype", "another rank", "cond of numbers"])
def test_loops_outside_of_graphs_say_the_same(body):
    case = LOOPS[body]
    if body == "another dtype":
        case = case._replace(build=loop(lambda i, x: (i + 1, np.float32(x))))
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        case.build()
    for word in case.words.split("|"):
        assert word in str(caught.value)


# What is strange but right.


def test_infinities_and_nans_pass_without_a_word():
    with nbta.Graph().as_default() as graph:
        x = p((None,))
        results = [x / 0.0, nbta.log(x), nbta.exp(x * 1e10), nbta.sum(x), nbta.cast(x, "float32")]
        (dx,) = nbta.gradients(nbta.sum(nbta.sqrt(x)), [x])
        last = nbta.while_loop(nbta.isfinite, lambda y: y * y, nbta.max(x[:1]) + 10.0)
    values = np.array([0.0, -1.0, np.nan, np.inf, 1e300])
    found = nbta.Session(graph).run([*results, dx, last], {x: values})
    np.testing.assert_array_equal(found[0], [np.nan, -np.inf, np.nan, np.inf, np.inf])
    np.testing.assert_array_equal(found[1], [-np.inf, np.nan, np.nan, np.inf, np.log(1e300)])
    assert np.isnan(found[3])
    assert found[4][4] == np.inf
    np.testing.assert_allclose(found[5], [np.inf, np.nan, np.nan, 0.0, 5e-151])
    assert found[6] == np.inf


def test_empty_arrays_pass_through_everything():
    with nbta.Graph().as_default() as graph:
        x = p((None,))
        total, squares = nbta.scan(lambda c, v: (c + v, v * v), 0.0, x)
        loss = nbta.sum(squares) + total + nbta.sum(nbta.concatenate([x, x]))
        (dx,) = nbta.gradients(loss, [x])
        product = x[:, None] @ x[None]
        stacked = nbta.TensorArray("float64", 0, element_shape=(2,)).stack()
    found = nbta.Session(graph).run([total, squares, loss, dx, product, stacked], {x: []})
    assert [np.shape(v) for v in found] == [(), (0,), (), (0,), (0, 0), (0, 2)]
    assert found[0] == found[2] == 0.0


@pytest.mark.parametrize("value", [1.5, [1, 2.5], np.array(1.5), 2**40], ids=repr)
def test_a_constant_of_another_dtype_loses_nothing(value):
    with pytest.raises(nbta.InvalidArgumentError, match="does not fit int32; round it"):
        nbta.constant(value, dtype="int32")
    assert nbta.constant(2.0, dtype="float32").dtype == np.float32
    assert nbta.constant(np.ones(2), dtype="float32").dtype == np.float32
