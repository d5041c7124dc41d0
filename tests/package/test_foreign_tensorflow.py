"""The stand-in that runs TensorFlow's own tests, on a test file of ours."""

import sys

import foreign_tensorflow
import pytest
from foreign import messages, modules
from foreign.differences import DIFFERENCES
from foreign.running import FAILED, OUTSIDE, PASSED, Outcome, outcomes
from test_tensorflow_divergences import PAGE

import nbta

HEAD = """\
from tensorflow.python.eager import backprop, context, def_function
from tensorflow.python.framework import constant_op, dtypes, errors, ops, tensor_shape, test_util
from tensorflow.python.ops import array_ops, cond, control_flow_util, gradients_impl, math_ops
from tensorflow.python.ops import tensor_array_ops, while_loop
from tensorflow.python.platform import test
"""
OWN = (
    HEAD
    + """
@test_util.run_all_in_graph_and_eager_modes
class OwnTest(test.TestCase):
    def testDoublesInALoop(self):
        ta = tensor_array_ops.TensorArray(dtypes.float32, size=0, dynamic_size=True)

        def body(i, x, ta):
            x = cond.cond(math_ops.less(i, 2), lambda: x * 2.0, lambda: x)
            return i + 1, x, ta.write(i, x)

        loop_vars = [0, constant_op.constant(1.0), ta]
        _, _, ta = while_loop.while_loop(lambda i, x, ta: i < 3, body, loop_vars)
        stacked = ta.stack()
        self.assertEqual(stacked.dtype, dtypes.float32)
        self.assertAllEqual(stacked, [2.0, 4.0, 4.0])

    def testSlope(self):
        def f(x):
            ta = tensor_array_ops.TensorArray(dtypes.float32, size=1).write(0, x * x)
            return ta.stack()

        x = constant_op.constant([3.0, 4.0])
        if context.executing_eagerly():
            slope = backprop.gradients_function(f)(x)[0]
        else:
            slope = gradients_impl.gradients([f(x)], [x], [[[1.0, 1.0]]])[0]
        self.assertAllClose(self.evaluate(slope), [6.0, 8.0])

    def testTooFar(self):
        ta = tensor_array_ops.TensorArray(dtypes.float32, size=3, tensor_array_name="foo")
        with self.assertRaisesOpError("Tried to write to index 3 but the size is: 3"):
            self.evaluate(ta.write(3, 1.0).flow)
        with self.assertRaisesRegex(errors.InvalidArgumentError, "index -1"):
            self.evaluate(ta.write(-1, 1.0).flow)
        ta = tensor_array_ops.TensorArray(dtypes.float32, size=3).write(0, [[1.0]])
        self.assertEqual(ta.read(0).shape, tensor_shape.TensorShape([1, 1]))

    def testSkipEagerFeeds(self):
        with self.session() as session:
            x = array_ops.placeholder(dtypes.int64, [None])
            ta = tensor_array_ops.TensorArray(dtypes.int64, size=2).unstack(x)
            with ops.control_dependencies([ta.flow]):
                read = ta.read(1)
            self.assertAllEqual(7, session.run(read, {x: [5, 7]}))

    @test_util.deprecated_graph_mode_only
    def testFunction(self):
        @def_function.function
        def twice(x):
            return x + x

        self.assertAllEqual(twice(constant_op.constant([1, 2])), [2, 4])

    def testSkipEagerOfNewArrays(self):
        if not control_flow_util.ENABLE_CONTROL_FLOW_V2:
            self.skipTest("new arrays only")

    def testSkipEagerStrings(self):
        ta = tensor_array_ops.TensorArray(dtypes.string, size=2).unstack(["ab", "c"])
        self.assertAllEqual([b"ab", b"c"], ta.stack())

    def testSkipEagerOnADevice(self):
        with ops.device("/job:worker/task:0"):
            self.fail()
"""
)


def ran(tmp_path, text, compiled=False):
    path = tmp_path / "own_test.py"
    path.write_text(text)
    return list(outcomes(path, compiled))


@pytest.mark.parametrize("compiled", [False, True])
def test_each_method_runs_in_its_modes(tmp_path, compiled):
    before = {name for name in sys.modules if name.startswith("tensorflow")}
    outcomes = ran(tmp_path, OWN, compiled)
    found = {(o.method, o.mode): o.state for o in outcomes}
    refused = [o.method for o in outcomes if "runs not compiled" in o.why]
    assert refused == ["testSkipEagerStrings"] * compiled
    graph = "compiled" if compiled else "graph"
    both = ["testDoublesInALoop", "testSlope", "testTooFar"]
    graphs = ["testSkipEagerFeeds", "testFunction", "testSkipEagerOfNewArrays"]
    graphs.append("testSkipEagerStrings")
    expected = {(name, mode): PASSED for name in both for mode in ("eager", graph)}
    expected |= {(name, graph): PASSED for name in graphs}
    assert found == {**expected, ("testSkipEagerOnADevice", graph): OUTSIDE}
    assert {name for name in sys.modules if name.startswith("tensorflow")} == before


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [
        ("[2.0, 4.0, 4.0]", "[2.0, 4.0, 8.0]", "Arrays are not equal"),
        ("[2.0, 4.0, 4.0]", "[[2.0, 4.0, 4.0]]", "shapes (3,) and (1, 3)"),
        ("stacked.dtype, dtypes.float32", "stacked.dtype, dtypes.float64", "float64"),
        ("[6.0, 8.0]", "[6.0, 8.1]", "Not equal to tolerance"),
        ("Tried to write to index", "Tried to read from index", "expected a reason of"),
        ("Tried to write to index", "Tried to paint index", "no row in foreign/messages.py"),
        ("errors.InvalidArgumentError", "errors.NotFoundError", "slot -1 is negative"),
        ("TensorShape([1, 1])", "TensorShape([1, None])", "Shape"),
        ("assertAllEqual(7", "assertAllEqual(5", "Arrays are not equal"),
        ("write(3, 1.0)", "write(2, 1.0)", "NbtaError not raised"),
        ('skipTest("new arrays only")', 'fail("old arrays")', "old arrays"),
    ],
)
def test_a_wrong_expectation_fails(tmp_path, right, wrong, why):
    assert right in OWN
    failed = [o for o in ran(tmp_path, OWN.replace(right, wrong)) if o.state == FAILED]
    assert failed
    assert all(why in outcome.why for outcome in failed)


def test_every_piece_of_a_message_names_reasons_that_are():
    known = {row.reason for row in nbta.errors.REASONS}
    known |= {"value", "split_lengths_rank", "container"}  # found ahead of the kernels
    for _, found in messages.REASONS:
        assert found <= known


def test_every_module_can_be_imported_as_tensorflow_is(tmp_path):
    lines = [f"import tensorflow.{path}" for path in modules.MODULES]
    lines += [
        f"from tensorflow.{p} import {n}" for p, names in modules.MODULES.items() for n in names
    ]
    assert ran(tmp_path, "\n".join(lines)) == []


def test_every_difference_has_a_row():
    for _, test in DIFFERENCES.values():
        assert f"`{test}`" in PAGE.read_text()


def test_the_command_line_tells_failures_from_differences(tmp_path, capsys, monkeypatch):
    path = tmp_path / "own_test.py"
    path.write_text(OWN)
    assert foreign_tensorflow.main([str(path), "-k", "testTooFar"]) == 0
    assert "2 of 2 pairs in scope pass" in capsys.readouterr().out
    other = tmp_path / "other_test.py"  # the bytecode of a file of one size and second is kept
    other.write_text(OWN.replace("index -1", "index -2"))
    assert foreign_tensorflow.main([str(other), "-k", "testTooFar", "-v"]) == 1
    assert "no row in foreign/messages.py" in capsys.readouterr().out
    judged, differs = foreign_tensorflow.judged, foreign_tensorflow.DIFFERS
    failed = Outcome("OwnTest", "testTooFar", "compiled", FAILED, "ValueError: so it is")
    monkeypatch.setitem(DIFFERENCES, ("testTooFar", "graph"), ("so it is", "test_row"))
    assert judged(failed) == failed._replace(state=differs, why=f"test_row: {failed.why}")
    assert judged(failed._replace(why="another")).state == FAILED
    assert judged(failed._replace(state=PASSED)).state == FAILED
    assert judged(failed._replace(mode="eager")) == failed._replace(mode="eager")
