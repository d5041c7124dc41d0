"""TensorFlow's raw operations: their names, their arguments, and both ways to use them."""

import inspect
import pickle

import numpy as np
import pytest
from memory_in_use import live_bytes
from numba import njit, prange
from numba.core.errors import TypingError

import nbta
from nbta import raw_ops
from nbta.graph.graph import current
from nbta.naming import Handle

ARGUMENTS = {
    "": "size dtype element_shape dynamic_size clear_after_read identical_element_shapes "
    "tensor_array_name",
    "Grad": "handle flow_in source",
    "Write": "handle index value flow_in",
    "Read": "handle index flow_in dtype",
    "Gather": "handle indices flow_in dtype element_shape",
    "Scatter": "handle indices value flow_in",
    "Concat": "handle flow_in dtype element_shape_except0",
    "Split": "handle value lengths flow_in",
    "Size": "handle flow_in",
    "Close": "handle",
}


@pytest.mark.parametrize("kind", ARGUMENTS)
def test_names_and_arguments_are_tensorflows(kind):
    latest = getattr(raw_ops, f"TensorArray{kind}V3")
    assert latest.__name__ == f"TensorArray{kind}V3"
    assert list(inspect.signature(latest).parameters) == [*ARGUMENTS[kind].split(), "name"]
    for version in ("", "V2"):
        assert getattr(raw_ops, f"TensorArray{kind}{version}") is latest


def test_the_gradient_with_a_shape():
    parameters = inspect.signature(raw_ops.TensorArrayGradWithShape).parameters
    assert list(parameters) == ["handle", "flow_in", "shape_to_prepend", "source", "name"]


def test_defaults_are_tensorflows():
    parameters = inspect.signature(raw_ops.TensorArrayV3).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}
    assert defaults == {
        "element_shape": None,
        "dynamic_size": False,
        "clear_after_read": True,
        "identical_element_shapes": False,
        "tensor_array_name": "",
        "name": None,
    }


def test_the_class_is_not_hidden():
    assert raw_ops.TensorArray is raw_ops.TensorArrayV3
    assert nbta.TensorArray is not raw_ops.TensorArray
    assert type(nbta.TensorArray("int8", 1)) is nbta.TensorArray


def every_operation():
    """Values of a program that uses each operation once."""
    r = raw_ops
    handle, flow = r.TensorArray(
        size=3, dtype="float64", element_shape=(2,), clear_after_read=False, tensor_array_name="raw"
    )
    flow = r.TensorArrayWrite(handle=handle, index=0, value=[1.0, 2.0], flow_in=flow)
    flow = r.TensorArrayScatter(
        handle=handle, indices=[2, 1], value=np.arange(4.0).reshape(2, 2), flow_in=flow
    )
    first = r.TensorArrayRead(handle=handle, index=1, flow_in=flow, dtype="float64")
    rows = r.TensorArrayGather(handle=handle, indices=[0, 2], flow_in=flow, dtype="float64")
    size = r.TensorArraySize(handle=handle, flow_in=flow)
    sums, gflow = r.TensorArrayGrad(handle=handle, flow_in=flow, source="g")
    for _ in range(2):
        gflow = r.TensorArrayWrite(sums, 1, np.array([0.5, 1.0]), gflow)
    total = r.TensorArrayRead(sums, 1, gflow, "float64")
    wide, wflow = r.TensorArrayGradWithShape(handle, flow, (2,), "w")
    zeros = r.TensorArrayRead(wide, 0, wflow, "float64")
    other, oflow = r.TensorArrayV2(
        2, "int64", element_shape=(None,), identical_element_shapes=False
    )
    oflow = r.TensorArraySplit(handle=other, value=[5, 6, 7], lengths=[1, 2], flow_in=oflow)
    value, lengths = r.TensorArrayConcat(handle=other, flow_in=oflow, dtype="int64")
    return (first, rows, size, total, zeros, value, lengths), handle


def check(found, dtypes=("float64", "int32")):
    expected = [
        [2.0, 3.0], [[1.0, 2.0], [0.0, 1.0]], 3, [1.0, 2.0], [[0.0, 0.0], [0.0, 0.0]],
        [5, 6, 7], [1, 2],
    ]  # fmt: skip
    assert [np.asarray(value).tolist() for value in found] == expected
    assert [np.asarray(value).dtype.name for value in found[1:3]] == list(dtypes)


def test_every_operation_at_once():
    found, handle = every_operation()
    check(found)
    assert handle.name.startswith("raw_")
    raw_ops.TensorArrayClose(handle)
    with pytest.raises(nbta.InvalidArgumentError, match="is closed"):
        raw_ops.TensorArrayReadV3(handle, 0, np.float32(0), "float64")


@pytest.mark.slow
def test_every_operation_in_compiled_code():
    found, handle = njit(every_operation)()
    check(found, ("float64", "int64"))  # Numba gives Python's integers
    assert isinstance(handle, raw_ops.ArrayHandle)
    assert handle.name.startswith("raw_")
    assert raw_ops.TensorArraySizeV3(handle, 0.0) == 3


def test_every_operation_in_a_graph():
    with nbta.Graph().as_default() as graph:
        tensors, handle = every_operation()
        close = raw_ops.TensorArrayClose(handle, name="close")
        assert all(isinstance(tensor, nbta.Tensor) for tensor in tensors)
        with nbta.control_dependencies([close]):
            late = raw_ops.TensorArraySizeV3(handle, nbta.constant(np.float32(0)))
    session = nbta.Session(graph)
    check(session.run(list(tensors)))
    with pytest.raises(nbta.InvalidArgumentError, match="'TensorArraySizeV3_1'"):
        session.run(late)
    assert current() is None


def test_operations_join_the_graph_of_their_tensors():
    with nbta.Graph().as_default() as graph:
        handle, flow = raw_ops.TensorArrayV3(2, "int64", element_shape=())
    flow = raw_ops.TensorArrayWriteV3(handle, 0, 7, flow, name="put")
    value = raw_ops.TensorArrayReadV3(handle, 0, flow, "int64")
    assert (flow.op.name, value.graph, value.shape) == ("put", graph, ())
    assert nbta.Session(graph).run(value) == 7


def test_arrays_and_raw_operations_mix():
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", 2, element_shape=()).write(0, 1.5)
        flow = raw_ops.TensorArrayWriteV3(ta, 1, 2.5, ta.flow)
        value = raw_ops.TensorArrayGatherV3(ta.handle, [0, 1], flow, "float64")
        (grad,) = nbta.gradients(value, [ta])
        slopes = raw_ops.TensorArrayReadV3(grad.handle, 0, grad.flow, "float64")
    assert nbta.Session(graph).run(value).tolist() == [1.5, 2.5]
    assert nbta.Session(graph).run(slopes) == 1.0
    eager = nbta.TensorArray("float64", 1, element_shape=())
    raw_ops.TensorArrayWriteV3(eager, 0, 2.5, eager.flow)
    assert eager.read(0) == 2.5


@pytest.mark.parametrize("handle", [3, "x", None, np.int64(0)])
def test_what_is_no_handle(handle):
    with pytest.raises(nbta.InvalidArgumentError, match="is not a handle; give what TensorArrayV3"):
        raw_ops.TensorArrayReadV3(handle, 0, 0.0, "float64")
    if handle is None:
        return
    with nbta.Graph().as_default(), pytest.raises(nbta.InvalidArgumentError) as caught:
        raw_ops.TensorArrayReadV3(handle, 0, 0.0, "float64")
    assert "TensorArrayReadV3 'TensorArrayReadV3': handle:" in str(caught.value)
    assert "is not a handle; give what TensorArrayV3 returned" in str(caught.value)


def test_arguments_are_checked_when_they_run():
    """As TensorFlow's kernels do, with the operation's name."""
    with nbta.Graph().as_default() as graph:
        handle, flow = raw_ops.TensorArrayV3(2, "float64", element_shape=())
        other = raw_ops.TensorArrayWriteV3(handle, 0, np.float32(1), flow, name="narrow")
        read = raw_ops.TensorArrayReadV3(handle, 0, flow, "int64", name="whole")
        far = raw_ops.TensorArrayWriteV3(handle, 7, 1.0, flow, name="far")
    session = nbta.Session(graph)
    for fetch, words in (
        (other, ["write on TensorArrayV3", "holds float64", "float32", "'narrow'"]),
        (read, ["read on TensorArrayV3", "ask for the array's dtype", "'whole'"]),
        (far, ["there is no slot 7", "'far'"]),
    ):
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            session.run(fetch)
        for word in words:
            assert word in str(caught.value)


def test_python_numbers_lose_nothing():
    with nbta.Graph().as_default():
        handle, flow = raw_ops.TensorArrayV3(2, "int64", name="whole")
        for operation in (
            lambda: raw_ops.TensorArrayWriteV3(handle, 0, 1.5, flow),
            lambda: raw_ops.TensorArrayScatterV3(handle, [0], [1.5], flow),
            lambda: raw_ops.TensorArraySplitV3(handle, [1.5], [1, 0], flow),
        ):
            with pytest.raises(
                nbta.InvalidArgumentError, match="on 'whole': the array holds int64"
            ):
                operation()


@pytest.mark.parametrize(("shape", "compiled"), [((0,), False), ((0,), True), ((2,), False)])
def test_a_raw_gather_of_no_slots_has_the_shape_that_it_asks_for(shape, compiled):
    none = np.zeros(0, np.int32)
    handle, flow = raw_ops.TensorArrayV3(2, "float32", element_shape=shape)
    with pytest.raises(nbta.UnimplementedError, match=r"nothing to stack.*\(unknown rank\)"):
        raw_ops.TensorArrayGatherV3(handle, none, flow, "float32")
    assert raw_ops.TensorArrayGatherV3(handle, none, flow, "float32", shape).shape == (0, *shape)
    assert handle.array.gather([]).shape == (0, *shape)  # the array tells what it knows
    with nbta.Graph().as_default() as g:
        indices = nbta.placeholder("int32", (None,))
        handle, flow = raw_ops.TensorArrayV3(2, "float32", element_shape=shape)
        bare = raw_ops.TensorArrayGatherV3(handle, indices, flow, "float32")
        asked = raw_ops.TensorArrayGatherV3(handle, indices, flow, "float32", shape)
    session = nbta.Session(g)
    assert session.run(asked, {indices: none}, compiled).shape == (0, *shape)
    assert session.run(bare, {indices: [1]}, compiled).shape == (1, *shape)
    with pytest.raises(nbta.UnimplementedError) as caught:
        session.run(bare, {indices: none}, compiled)
    assert caught.value.reason == "empty_gather"


def test_a_raw_gather_of_rows_that_are_known_to_pass_by_the_array():
    """`unstack` and a raw `gather` of all of it is the value itself, but not of no rows."""
    with nbta.Graph().as_default() as g:
        x = nbta.placeholder("float64", (None, 2))
        rows = nbta.arange(nbta.cast(nbta.shape(x)[0], np.int32))
        size = nbta.cast(nbta.shape(x)[0], np.int32)
        handle, flow = raw_ops.TensorArrayV3(size, "float64", element_shape=(2,))
        flow = raw_ops.TensorArrayScatterV3(handle, rows, x, flow)
        found = raw_ops.TensorArrayGatherV3(handle, rows, flow, "float64")
    session = nbta.Session(g)
    for compiled in (False, True):
        assert session.run(found, {x: np.ones((3, 2))}, compiled).shape == (3, 2)
        with pytest.raises(nbta.UnimplementedError):
            session.run(found, {x: np.ones((0, 2))}, compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_gather_of_elements_without_data_is_held_to_the_shape_asked_for(compiled):
    empty = np.zeros((0, 3), np.float32)
    ta = nbta.TensorArray("float32", size=1, infer_shape=False).write(0, empty)
    for wrong in [(0,), (1, 3), (0, 2), (None, 2), (None, None, None)]:
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            ta.gather([0], element_shape=wrong)
        assert caught.value.reason == "gather_element_shape"
    for wrong in [(0,), (1, 3)]:
        with nbta.Graph().as_default() as g:
            value = nbta.placeholder("float32", None)
            array = nbta.TensorArray("float32", size=1, infer_shape=False).write(0, value)
            found = array.gather([0], element_shape=wrong)
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            nbta.Session(g).run(found, {value: empty}, compiled)
        assert caught.value.reason == "gather_element_shape"
    assert ta.gather([0], element_shape=(None, 3)).shape == (1, 0, 3)


def test_results_have_tensorflows_names():
    made = raw_ops.TensorArrayV3(2, "float64", element_shape=())
    found = raw_ops.TensorArrayGradV3(made.handle, made.flow, b"g")
    assert found.grad_handle.name == f"{made.handle.name}@g"
    assert raw_ops.TensorArrayConcatV3(
        raw_ops.TensorArrayV3(0, "float64", element_shape=(3,)).handle, made.flow, "float64",
        element_shape_except0=(),
    )._fields == ("value", "lengths")  # fmt: skip
    with nbta.Graph().as_default():
        made = raw_ops.TensorArrayV3(2, "float64")
        assert raw_ops.TensorArrayGradV3(*made, "g").flow_out.dtype == np.float32


@pytest.mark.parametrize("flow", [None, "flow", np.float64(0), np.zeros(2, np.float32), True])
def test_a_flow_is_a_float32_scalar(flow):
    handle = raw_ops.TensorArrayV3(2, "float64").handle
    calls = [
        lambda: raw_ops.TensorArrayWriteV3(handle, 0, 1.0, flow),
        lambda: raw_ops.TensorArrayReadV3(handle, 0, flow, "float64"),
        lambda: raw_ops.TensorArrayGatherV3(handle, [0], flow, "float64"),
        lambda: raw_ops.TensorArrayScatterV3(handle, [0], [1.0], flow),
        lambda: raw_ops.TensorArraySizeV3(handle, flow),
        lambda: raw_ops.TensorArrayGradV3(handle, flow, "g"),
    ]
    for call in calls:
        with pytest.raises(nbta.InvalidArgumentError, match=r"must be a flow .* float32 scalar"):
            call()
    with nbta.Graph().as_default():
        handle = raw_ops.TensorArrayV3(2, "float64").handle
        with pytest.raises(nbta.InvalidArgumentError, match="must be a flow"):
            raw_ops.TensorArraySizeV3(handle, flow)


@pytest.mark.parametrize("source", [None, 3, b"\xff"])
def test_a_source_is_a_string(source):
    handle, flow = raw_ops.TensorArrayV3(2, "float64")
    with pytest.raises(nbta.InvalidArgumentError, match="source must be a string"):
        raw_ops.TensorArrayGradV3(handle, flow, source)
    with nbta.Graph().as_default():
        handle, flow = raw_ops.TensorArrayV3(2, "float64")
        with pytest.raises(nbta.InvalidArgumentError, match="source must be a string"):
            raw_ops.TensorArrayGradWithShape(handle, flow, [2], source)


def test_sources_with_an_at_are_no_gradients_of_gradients():
    ta = nbta.TensorArray("float64", 1, element_shape=())
    nested, plain = ta.grad("g1").grad("g2"), ta.grad("g1@g2")
    assert nested.handle != plain.handle
    assert plain.handle.name.endswith(r"@g1\@g2")
    nested.accumulate(0, 1.0)
    assert plain.read(0) == 0.0


def test_a_shape_to_prepend_is_checked():
    ta = nbta.TensorArray("float64", 1, element_shape=(2,))
    with pytest.raises(nbta.InvalidArgumentError, match="has the dimension -3"):
        ta.grad_with_shape("g", [4, -3])
    with pytest.raises((nbta.ResourceExhaustedError, nbta.InvalidArgumentError)):
        ta.grad_with_shape("h", [2**40, 2**40]).read(0)


def test_closing_gives_the_memory_of_gradient_arrays_back():
    before = live_bytes()
    ta = nbta.TensorArray("float64", 4, element_shape=(10_000,))
    for k in range(4):
        ta.write(k, np.ones(10_000))
        ta.grad("g").accumulate(k, np.ones(10_000))
    assert live_bytes() - before > 640_000
    ta.close()
    assert live_bytes() - before < 10_000


def test_sources_of_one_beginning_are_distinguished():
    ta = nbta.TensorArray("float64", 1, element_shape=())
    sources = ["a long beginning that all of them have " * 20 + str(k) for k in range(300)]
    for k, source in enumerate(sources):
        ta.grad(source).accumulate(0, float(k))
    looks = [ta.grad(source, clear_after_read=False).read(0) for source in sources]
    assert looks == [float(k) for k in range(300)]


# Compiled code.


@njit
def handed(value):
    return value


@njit
def of_array(ta):
    return ta.handle, ta.flow, ta.handle == ta.grad("s").handle, ta.handle == ta.handle


@njit
def names(handle):
    return handle.container, handle.name


def test_handles_and_flows_pass_between_python_and_compiled_code():
    ta = nbta.TensorArray("float64", 2, tensor_array_name="passed", element_shape=())
    second = ta.grad("a").grad("b@c")
    for array in (ta, second):
        handle, flow, other, same = of_array(array)
        assert handle == array.handle == handed(array.handle)
        assert flow.handle == array.flow.handle == handed(array.flow).handle
        assert names(array.handle) == tuple(array.handle)
        assert (other, same) == (False, True)
        assert handle.array.size() == 2
    raw_ops.TensorArrayWriteV3(handed(ta.handle), 0, 2.5, handed(ta.flow))
    assert ta.read(0) == 2.5


def test_a_plain_handle_stays_a_tuple_of_strings():
    plain = Handle("_tensor_arrays", "x_0")
    assert handed(plain) == plain
    assert handed(("a", "b")) == ("a", "b")
    with pytest.raises(TypingError, match="is not a handle; give what TensorArrayV3 returned"):
        njit(lambda handle: raw_ops.TensorArraySizeV3(handle, 0.0))(plain)


def test_handles_and_flows_are_pickled_by_name():
    ta = nbta.TensorArray("float64", 2)
    handle, flow = pickle.loads(pickle.dumps((ta.handle, ta.flow)))
    assert (type(handle), handle) == (Handle, ta.handle)
    assert flow.handle == ta.handle
    with pytest.raises(nbta.InvalidArgumentError, match="was pickled, without its array"):
        handed(flow)


def test_a_flow_keeps_its_array_in_compiled_code():
    @njit
    def flow_alone():
        return nbta.TensorArray(np.float64, 3, tensor_array_name="gone").flow

    before = live_bytes()
    for _ in range(3):
        assert flow_alone().handle.name.startswith("gone_")
    assert live_bytes() == before


@njit
def fill(handle, flow, values):
    for k in range(len(values)):
        flow = raw_ops.TensorArrayWriteV3(handle, k, values[k], flow)
    return flow


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(), (2,), (2, 0, 3)])
def test_elements_of_each_dtype_and_shape(dtype, shape):
    values = np.ones((3, *shape), dtype)
    handle, flow = raw_ops.TensorArrayV3(0, dtype, shape, dynamic_size=True)
    flow = fill(handle, flow, values)
    found = raw_ops.TensorArrayGatherV3(handle, [0, 1, 2], flow, dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, values)


@njit(parallel=True)
def in_parallel(handle, flow, values):
    for k in prange(len(values)):
        raw_ops.TensorArrayWriteV3(handle, k, values[k], flow)


def test_parallel_loops_write_by_handles():
    handle, flow = raw_ops.TensorArrayV3(100, "float64", element_shape=())
    in_parallel(handle, flow, np.arange(100.0))
    assert raw_ops.TensorArrayGatherV3(handle, range(100), flow, "float64").sum() == 4950
    with pytest.raises(nbta.InvalidArgumentError, match="slot 100"):
        in_parallel(raw_ops.TensorArrayV3(100, "float64", ()).handle, flow, np.arange(101.0))


@njit
def with_flow(ta, flow):
    return ta.grad("s", flow), ta.grad_with_shape("t", (2,), flow)


def test_grad_takes_the_flow_of_its_own_array():
    first, second = nbta.TensorArray("float64", 1), nbta.TensorArray("float64", 1)
    for flow in (first.flow, np.float32(0), 0.0, 0):
        assert with_flow(first, flow)[0].handle.name.endswith("@s")
    for function in (with_flow, with_flow.py_func):
        with pytest.raises(nbta.InvalidArgumentError, match=r"the flow is .*own$") as caught:
            function(first, second.flow)
        assert caught.value.reason == "flow"


@pytest.mark.parametrize("flow", [None, True, "flow", 1j, np.int8(0), np.zeros(1, np.float32)])
def test_what_is_no_flow_is_refused_when_compiling(flow):
    @njit
    def size(handle, flow):
        return raw_ops.TensorArraySizeV3(handle, flow)

    handle, _ = raw_ops.TensorArrayV3(1, "float64")
    message = "TensorArraySizeV3: flow_in must be a flow that an operation on the array gave"
    with pytest.raises(TypingError, match=message):
        size(handle, flow)


NOT_COMPILED = {
    "a rank that is not known": (
        "raw_ops.TensorArrayReadV3(raw_ops.TensorArrayV3(1, 'int64')[0], 0, 0.0, 'int64')",
        "read: the rank of the elements is not known when compiling; make the array with element",
    ),
    "a float index": (
        "raw_ops.TensorArrayReadV3(raw_ops.TensorArrayV3(1, 'int64', ())[0], 0.5, 0.0, 'int64')",
        "read: index must be an integer, not float64",
    ),
    "another dtype": (
        "raw_ops.TensorArrayWriteV3(raw_ops.TensorArrayV3(1, 'int64', ())[0], 0, 0.5, 0.0)",
        "write: the array holds int64 and the value is float64",
    ),
    "no dtype": ("raw_ops.TensorArrayV3(1, 5)", "dtype must be a dtype such as np.float64"),
    "no handle": ("raw_ops.TensorArrayCloseV3(5)", "is not a handle; give what TensorArrayV3"),
    "bytes as a source": (
        "raw_ops.TensorArrayGradV3(raw_ops.TensorArrayV3(1, 'int64')[0], 0.0, b's')",
        "grad: source must be a string, not ",
    ),
}


@pytest.mark.parametrize("case", NOT_COMPILED)
def test_what_compiled_code_refuses(case):
    expression, message = NOT_COMPILED[case]
    scope = {"raw_ops": raw_ops}
    exec(f"def f(): return {expression}", scope)
    with pytest.raises(TypingError, match=message):
        njit(scope["f"])()


@pytest.mark.parametrize("element_shape", [None, (), (3,), (2, 2)])
@pytest.mark.parametrize("count", [0, 1])
def test_a_strict_gather_in_compiled_code(element_shape, count):
    @njit
    def gathered(indices):
        handle, flow = raw_ops.TensorArrayV3(2, "int64", element_shape=(3,))
        return raw_ops.TensorArrayGatherV3(handle, indices, flow, "int64", element_shape)

    found = []
    for function in (gathered.py_func, gathered):
        try:
            value = function(np.zeros(count, np.int64))
        except nbta.NbtaError as error:
            found.append((type(error), error.reason))
        else:
            found.append((value.dtype, value.shape))
    assert found[0] == found[1]
