"""Graphs: names, scopes, order, tensors, what they refuse, how they are printed and checked."""

import operator

import numba
import numpy as np
import pytest

import nbta
from nbta.graph.graph import Names, current
from nbta.graph.operation import Spec
from nbta.graph.verifier import BrokenGraphError, verify


@pytest.fixture
def graph():
    with nbta.Graph().as_default() as made:
        yield made
    assert current() is None


def names(tensors):
    return [tensor.op.name for tensor in tensors]


def constants(*given):
    return names(nbta.constant(1.0, name=name) for name in given)


# Names and scopes.


def test_names_are_counted(graph):
    assert constants(*["x"] * 3) == ["x", "x_1", "x_2"]
    arrays = [nbta.TensorArray("float64", 1) for _ in range(3)]
    found = [array.handle.op.name for array in arrays]
    assert found == ["TensorArrayV3", "TensorArrayV3_1", "TensorArrayV3_2"]


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (["x", "X", "x"], ["x", "X_1", "x_2"]),
        (["x_1", "x", "x"], ["x_1", "x", "x_2"]),
        (["x", "x_1", "x"], ["x", "x_1", "x_2"]),
        (["x", "x", "x_1"], ["x", "x_1", "x_1_1"]),
        (["a/x", "a/x"], ["a/x", "a/x_1"]),
        (["0.5-x_", ".x"], ["0.5-x_", ".x"]),
    ],
)
def test_unique_names(graph, given, made):
    assert constants(*given) == made


def test_scopes_are_counted(graph):
    scopes, found = [], []
    for name in ("a", "a", "A", "b"):
        with nbta.name_scope(name) as scope:
            scopes.append(scope)
            found += constants("x", "x")
            with nbta.name_scope("c") as inner:
                scopes.append(inner)
                found += constants("x")
    assert scopes == ["a/", "a/c/", "a_1/", "a_1/c/", "A_2/", "A_2/c/", "b/", "b/c/"]
    assert found[:6] == ["a/x", "a/x_1", "a/c/x", "a_1/x", "a_1/x_1", "a_1/c/x"]


def test_a_scope_is_entered_again(graph):
    with nbta.name_scope("a") as scope:
        before = constants("x")
    with nbta.name_scope("b"), nbta.name_scope(scope) as again:
        assert again == scope == "a/"
        assert before + constants("x", "y") == ["a/x", "a/x_1", "a/y"]
    assert constants("x") == ["x"]


def test_operations_and_scopes_share_their_names(graph):
    assert constants("a") == ["a"]
    with nbta.name_scope("a") as scope:
        assert scope == "a_1/"
    assert constants("a") == ["a_2"]


def test_a_scope_is_left_after_an_error(graph):
    with pytest.raises(KeyError), graph.name_scope("a"):
        raise KeyError("x")
    assert constants("x") == ["x"]


def test_a_name_that_ends_in_a_slash_is_taken_as_it_is(graph):
    with nbta.name_scope("a"):
        op = nbta.constant(1.0, name="b/c/").op
    assert op.name == "b/c"
    assert graph.operation("b/c") is op


def test_loops_and_branches_are_scopes(graph):
    x = nbta.placeholder("float64", (), name="x")
    seen = []

    def body(i):
        seen.append(nbta.tanh(x).op.name)
        return i + 1

    loops = [nbta.while_loop(lambda i: i < 2, body, 0) for _ in range(2)]
    assert names(loops) == ["while", "while_1"]
    assert seen == ["while/body/Tanh", "while_1/body/Tanh"]
    assert nbta.cond(x > 0, lambda: x, lambda: -x, name="pick").op.name == "pick"
    grads = [nbta.gradients(x * x, [x])[0] for _ in range(2)]
    assert [grad.op.name.partition("/")[0] for grad in grads] == ["gradients", "gradients_1"]


@pytest.mark.parametrize("name", ["", "a b", "_x", "/x", "ü", "a:0", 3, None])
@pytest.mark.parametrize("make", [nbta.name_scope, lambda n: nbta.Graph().name_scope(n)])
def test_what_is_no_name(name, make):
    with pytest.raises(
        nbta.InvalidArgumentError, match="is no name; use letters, digits"
    ) as caught:
        make(name).__enter__()
    assert repr(name) in str(caught.value)


def test_outside_of_graphs_a_scope_does_nothing():
    with nbta.name_scope("a") as scope:
        assert scope == "a/"
        assert nbta.add(1, 2) == 3


def test_operations_are_found_by_name(graph):
    x = nbta.constant(1.0, name="x")
    assert graph.operation("x") is x.op
    with pytest.raises(nbta.InvalidArgumentError, match="there is no operation 'y' in the graph"):
        graph.operation("y")


# Order.


def racing(first, second):
    """A write that makes an array grow, and its size, in the order in which they are made."""
    ta = nbta.TensorArray("float64", dynamic_size=True, element_shape=())
    steps = {
        "write": lambda name: ta.write(0, 1.0, name=name).flow,
        "size": lambda name: ta.size(name=name),
    }
    return [steps[kind](f"step_{i}") for i, kind in enumerate((first, second))]


@pytest.mark.parametrize(("kinds", "seen"), [(("write", "size"), 1), (("size", "write"), 0)])
def test_what_nothing_orders_runs_as_it_was_made(graph, kinds, seen):
    tensors = racing(*kinds)
    place = kinds.index("size")
    for fetches in (tensors, tensors[::-1]):
        values = nbta.Session(graph).run(fetches)
        assert values[place if fetches is tensors else 1 - place] == seen


@pytest.mark.parametrize(("kinds", "seen"), [(("write", "size"), 0), (("size", "write"), 1)])
def test_control_edges_go_before_creation(graph, kinds, seen):
    tensors = racing(*kinds)
    tensors[0].op.add_control_input(tensors[1].op)
    assert nbta.Session(graph).run(tensors)[kinds.index("size")] == seen


def test_control_dependencies_run_what_nobody_fetches(graph):
    ta = nbta.TensorArray("float64", 2, element_shape=(), clear_after_read=False)
    write = ta.write(0, 5.0).flow
    plain = ta.read(0)
    with nbta.control_dependencies([write]):
        ordered = ta.read(0)
        with nbta.control_dependencies([plain.op]):
            both = nbta.identity(1.0)
        with nbta.control_dependencies(None):
            none = nbta.identity(1.0)
    assert [t.op.control_inputs for t in (ordered, both, none)] == [
        [write.op],
        [write.op, plain.op],
        [],
    ]
    session = nbta.Session(graph)
    assert (session.run(plain), session.run(ordered)) == (0.0, 5.0)
    assert nbta.identity(1.0).op.control_inputs == []


def test_what_cannot_be_waited_for(graph):
    with pytest.raises(nbta.InvalidArgumentError, match="3 is not an operation of this graph"):
        nbta.control_dependencies([3]).__enter__()
    with nbta.Graph().as_default() as other:
        foreign = nbta.constant(1.0, name="far")
    with pytest.raises(nbta.InvalidArgumentError, match=r"'far'.* is not an operation of this"):
        nbta.control_dependencies([foreign]).__enter__()
    op = nbta.constant(1.0, name="near").op
    with pytest.raises(nbta.InvalidArgumentError, match="'far' is not in the graph of 'near'"):
        op.add_control_input(foreign.op)
    assert other.operations == [foreign.op]


def test_control_dependencies_outside_of_graphs_do_nothing():
    ta = nbta.TensorArray("float64", 1)
    for given in ([], None, [ta.flow], [nbta.constant(1.0)]):
        with nbta.control_dependencies(given):
            assert nbta.add(1.0, 2.0) == 3.0


def test_control_dependencies_hold_where_a_graph_is_found_by_its_tensors():
    with nbta.Graph().as_default():
        first, x = nbta.constant(1.0), nbta.constant(2.0)
    with nbta.control_dependencies([first.op]):
        assert nbta.tanh(x).op.control_inputs == [first.op]
    assert nbta.tanh(x).op.control_inputs == []


# Operations and tensors.


def test_what_a_tensor_says_of_itself(graph):
    x = nbta.placeholder("float32", (None, 3), name="x")
    assert (x.name, x.index, x.op.name, x.op.type) == ("x:0", 0, "x", "Placeholder")
    assert (x.dtype, x.shape, x.ndim, x.kind) == (np.float32, (None, 3), 2, "data")
    assert x.graph is x.op.graph is graph
    assert repr(x) == "<nbta.Tensor 'x:0' float32 (?, 3)>"
    assert repr(x.op) == "<nbta.Operation 'x' type=Placeholder>"
    assert len({x: 1, x.T: 2}) == 2
    unknown = nbta.placeholder("float32", name="y")
    assert (unknown.shape, unknown.ndim) == (None, None)
    ta = nbta.TensorArray("int64", 1, name="ta")
    assert (ta.handle.kind, ta.flow.kind) == ("handle", "flow")
    assert repr(ta.flow) == "<nbta.Tensor 'ta:1' flow>"
    assert [op.number for op in graph.operations] == list(range(len(graph.operations)))


def test_inputs_are_replaced(graph):
    x, y = (nbta.placeholder("float64", (2,), name=n) for n in "xy")
    z = x + 1.0
    z.op.replace_input(0, y)
    assert nbta.Session(graph).run(z, {y: [1.0, 2.0]}).tolist() == [2.0, 3.0]
    wrong = {
        "is float64 (2,), and 'a:0' is float64 (3,); give one": nbta.placeholder(
            "float64", (3,), name="a"
        ),
        "and 'b:0' is int64 (2,)": nbta.placeholder("int64", (2,), name="b"),
    }
    for text, tensor in wrong.items():
        with pytest.raises(nbta.InvalidArgumentError) as caught:
            z.op.replace_input(0, tensor)
        assert text in str(caught.value)
        assert "input 0 of 'Add'" in str(caught.value)
    with pytest.raises(nbta.InvalidArgumentError, match="'Add' has 2 inputs, and no 2"):
        z.op.replace_input(2, x)
    ta = nbta.TensorArray("float32", 1, element_shape=())
    with pytest.raises(nbta.InvalidArgumentError, match="is flow, and 'f:0' is float32"):
        ta.read(0).op.replace_input(2, nbta.placeholder("float32", (), name="f"))


PYTHON_USES = {
    "truth value": (bool, "nbta.cond, nbta.while_loop or nbta.where"),
    "Python integer": (int, "nbta.cast"),
    "Python number": (float, "Session.run"),
    "Python number ": (complex, "Session.run"),
    "Python integer ": (operator.index, "nbta.scan or nbta.arange"),
    "Python integer  ": (range, "nbta.scan or nbta.arange"),
    "Python length": (len, "x.shape[0]"),
    "an iterable": (iter, "nbta.scan, nbta.map_fn or nbta.while_loop"),
    "an iterable ": (lambda x: [*x], "nbta.scan"),
    "a NumPy array": (np.asarray, "nbta's functions"),
    "a NumPy array ": (lambda x: np.array([x]), "nbta.stack"),
    "truth value ": (lambda x: x < 1 < 2, "nbta.cond"),
    "truth value  ": (lambda x: 0 < x < 2, "nbta.cond"),
    "truth value   ": (lambda x: x > 0 and x < 2, "& and | in place of `and` and `or`"),
    "a number in the format '.3f'": (lambda x: f"{x:.3f}", "Session.run"),
}


@pytest.mark.parametrize("what", PYTHON_USES)
def test_a_tensor_is_no_python_value(graph, what):
    use, remedy = PYTHON_USES[what]
    x = nbta.placeholder("int64", (None,) if "Num" not in what else (), name="x")
    if what.startswith(("Python n", "Python i")):
        x = nbta.placeholder("int64", (), name="x")
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        use(x)
    assert caught.value.reason == "symbolic"
    for word in (what.strip(), remedy, "symbolic tensor", "only when the graph runs"):
        assert word in str(caught.value)


def test_compiled_code_takes_no_tensor(graph):
    with pytest.raises(nbta.InvalidArgumentError, match=r"x:0 is a symbolic.*custom_gradient"):
        numba.njit(lambda x: x)(nbta.placeholder("float64", (), name="x"))


def test_a_tensor_does_not_change(graph):
    x = nbta.placeholder("float64", (3,), name="x")
    with pytest.raises(nbta.InvalidArgumentError, match=r"x:0, a symbolic.*set_item"):
        x[0] = 1.0
    assert f"{x}" == repr(x)


def test_a_known_first_axis_has_a_length(graph):
    x = nbta.placeholder("float64", (2, None), name="x")
    first, second = x
    assert len(x) == 2
    found = nbta.Session(graph).run([first, second], {x: [[1.0], [2.0]]})
    assert [row.tolist() for row in found] == [[1.0], [2.0]]


# Printing.


def test_a_graph_is_readable():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None,), name="x")
        w = nbta.constant(np.arange(3.0), name="w")
        with nbta.name_scope("layer"):
            total = nbta.sum(x * w)
        ta = nbta.TensorArray("float64", 4, element_shape=(), name="states")
        _, last, ta = nbta.while_loop(
            lambda i, *_: i < 4,
            lambda i, s, ta: (i + 1, s + total, ta.write(i, s)),
            (0, 0.0, ta),
            name="loop",
        )
        nbta.cond(last > 0, lambda: last, lambda: -last, name="pick")
        ta.close(name="free")
    assert str(graph) == PRINTED
    assert str(nbta.Graph()) == "graph"


PRINTED = """\
graph
  x: float64 (?,) = Placeholder()
  w: float64 (3,) = Constant(value=[0.0, 1.0, 2.0])
  layer/Mul: float64 (3,) = Mul(x, w)
  layer/Sum: float64 () = Sum(layer/Mul, keepdims=False)
  states:0: handle, states:1: flow = TensorArrayV3(4, dtype=float64, dynamic_size=False, \
clear_after_read=True, tensor_array_name='states', element_shape=(), infer_shape=True)
  loop:0: int64 (), loop:1: int64 (), loop:2: float64 (), loop:3: flow = While()
    loop/cond(argument_1 <- 0):
      Less: bool () = Less(argument_1, 4)
      return Less
    loop/body(argument <- 0, argument_1 <- 0, argument_2 <- 0.0, argument_4 <- states:1, \
argument_3 <- states:0, captured <- layer/Sum):
      Add: int64 () = Add(argument, 1)
      Add_1: int64 () = Add(argument_1, 1)
      Add_2: float64 () = Add(argument_2, captured)
      TensorArrayWriteV3: flow = TensorArrayWriteV3(argument_3, argument_1, argument_2, argument_4)
      return Add, Add_1, Add_2, TensorArrayWriteV3
  Greater: bool () = Greater(loop:2, 0.0)
  pick: float64 () = Case()
    pick/true_fn(captured <- loop:2):
      return captured
    pick/false_fn(captured <- loop:2):
      Neg: float64 () = Neg(captured)
      return Neg
  free = TensorArrayCloseV3(states:0, after=loop)"""


# Checking.


def whole():
    """A graph with arrays, a loop in a loop, branches and gradients of gradients."""
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (None,), name="x")

        def inner(value):
            return nbta.foldl(lambda a, b: nbta.tanh(a + b), value * x)

        def step(carry, value):
            new = nbta.cond(value > 0, lambda: carry * inner(value), lambda: carry - value)
            return new, new

        last, states = nbta.scan(step, nbta.constant(1.0), x)
        loss = nbta.sum(states) + last
        (dx,) = nbta.gradients(loss, [x])
        (ddx,) = nbta.gradients(nbta.sum(dx * dx), [x])
    return graph, x, [loss, dx, ddx]


def test_graphs_that_were_built_are_whole():
    graph, x, fetches = whole()
    verify(graph)
    values = nbta.Session(graph).run(fetches, {x: [0.5, -0.25, 2.0]})
    assert [np.shape(value) for value in values] == [(), (3,), (3,)]
    verify(graph)


def broken(graph, tamper, op_type):
    op = next(op for op in graph.operations if op.type == op_type)
    tamper(op)
    graph.changed()
    with pytest.raises(BrokenGraphError) as caught:
        verify(graph)
    assert caught.value.code == "INTERNAL"
    assert isinstance(caught.value, AssertionError)
    return op, str(caught.value)


def foreign(spec=("float64", (None,))):
    with nbta.Graph().as_default():
        return nbta.placeholder(*spec, name="foreign")


def set_spec(op):
    op.outputs[0].spec = Spec(np.dtype("int8"), ())


def drop_parameter(op):
    op.attrs["body"].inputs.append(op.attrs["body"].inputs[0])
    op.attrs["body"].inputs *= 5


TAMPERED = {
    "another operation has this name": (lambda op: setattr(op, "name", "x"), "Sum"),
    "'foreign:0' lies in another graph": (lambda op: op.inputs.__setitem__(0, foreign()), "Sum"),
    "it waits for 'foreign', of another graph": (
        lambda op: op.control_inputs.append(foreign().op),
        "Sum",
    ),
    "result 0 should be float64 () and is int8 ()": (set_spec, "Sum"),
    "its number is not its place": (lambda op: setattr(op, "number", 99), "Sum"),
    "it should have 1 results": (lambda op: op.outputs.append(op.outputs[0]), "Sum"),
    "more parameters than it has inputs": (drop_parameter, "While"),
    "does not fit the parameter": (lambda op: op.attrs["body"].inputs.pop(), "While"),
    "its body belongs to another operation": (
        lambda op: setattr(op.attrs["body"], "owner", None),
        "While",
    ),
    "is not of its body": (
        lambda op: op.attrs["body"].outputs.__setitem__(0, foreign(("int64", ()))),
        "While",
    ),
}


@pytest.mark.parametrize("text", TAMPERED)
def test_a_broken_graph_is_found(text):
    graph, _, _ = whole()
    op, message = broken(graph, *TAMPERED[text])
    assert text in message
    assert f"operation {op.name!r} ({op.type})" in message


def test_a_session_refuses_a_broken_graph():
    graph, x, fetches = whole()
    session = nbta.Session(graph)
    session.run(fetches[0], {x: [1.0]})
    op, _ = broken(graph, set_spec, "Sum")
    with pytest.raises(BrokenGraphError, match=repr(op.name)):
        session.run(fetches[0], {x: [1.0]})


def test_graphs_are_threads_own(graph):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(current).result() is None
    assert current() is graph


def test_a_free_name_is_not_looked_for_from_the_first_again():
    class Looked(dict):
        times = 0

        def __contains__(self, key):
            self.times += 1
            return super().__contains__(key)

    names = Names()
    names._used = used = Looked({f"a_{k}": 1 for k in range(1, 101)})
    found = [names.unique("A") for _ in range(50)]
    assert found == ["A", *(f"A_{k}" for k in range(101, 150))]
    assert used.times < 200
