"""Views of loops and branches, what they change, and what they tell of iterations and arrays."""

import re
from pathlib import Path

import numpy as np
import pytest
from tape_programs import run

import nbta
from nbta import shapes
from nbta.compiler.program import extract, rebuild
from nbta.graph.copying import copied
from nbta.graph.graph import SubGraph, subgraphs, substitute
from nbta.graph.operation import Spec
from nbta.graph.verifier import verify
from nbta.graph.views import (
    Branch,
    Loop,
    arguments,
    is_branch,
    is_loop,
    origin,
    owners,
    place_of,
    variable_of,
)
from nbta.ops.arrays.tensor_arrays import CREATE, LOOKUP, WRITE
from nbta.ops.loops.aliases import ArrayUses, array_of, origins
from nbta.ops.loops.iteration_counts import iterations_on_entry, plain_limit

ROOT = Path(nbta.__file__).parent
PARTS = "body|cond|count|branches|checkpoint|progress|origin"
#: Each with its iterations: what a condition counts to, and by what.
COUNTED = {
    "below": (lambda i: i < 5, 1, 0, 5),
    "up to": (lambda i: i <= 5, 1, 0, 6),
    "the other way round": (lambda i: nbta.constant(5) > i, 1, 2, 3),
    "down": (lambda i: i > 0, -1, 4, 4),
    "down to": (lambda i: i >= 1, -1, 4, 4),
    "no iteration": (lambda i: i < 5, 1, 9, 0),
    "narrow": (lambda i: i < np.int16(5), np.int16(1), np.int16(1), 4),
}
UNCOUNTED = {
    "by twos": (lambda i: i < 6, 2, 0, 3),
    "away": (lambda i: i > 0, 1, -3, 0),
    "data": (lambda i: i < 4.5, 1.0, 0.0, 5),
}


def powers(condition, step, first, **options):
    """A function with a loop that multiplies by its argument each iteration."""

    def function(x):
        body = lambda i, y: (i + step, y * x)  # noqa: E731
        return nbta.while_loop(lambda i, _: condition(i), body, (first, 1.0), **options)[1]

    return function


def loop_of(condition, step, first):
    """The view of such a loop; in a graph."""
    return Loop(powers(condition, step, first)(nbta.constant(2.0)).op)


def test_only_the_views_know_where_the_parts_of_a_loop_are():
    told = re.compile(rf"attrs(\.get\(|\[)\"({PARTS})\"")
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if told.search(path.read_text())
    }
    assert found <= {"graph/views.py", "ops/loops/mapping.py"}  # a map's body is no sub-graph


def test_the_parts_of_a_loop():
    with nbta.Graph().as_default() as graph:
        x = nbta.constant(2.0)
        loop = Loop(powers(lambda i: i < 3, 1, 0)(x).op)
        assert is_loop(loop.op)
        assert not is_branch(loop.op)
        assert all(a is b for a, b in zip(loop.first, loop.op.inputs[:3], strict=True))
        assert loop.captured[-1] is x
        for body in (loop.cond, loop.body):
            assert body in subgraphs(loop.op)
            assert len(arguments(loop.op, body)) == len(body.inputs)
        counter, i, y = loop.variables()
        assert counter.parameter is loop.counter
        assert i.tested.op in loop.cond.operations
        assert i.following.op in loop.body.operations
        assert variable_of(y.parameter) == y
        assert variable_of(x) is None
        assert variable_of(loop.body.captures[x]) is None
        assert origin(loop.body.captures[x]) is x
        assert list(owners(y.following.op)) == [loop.op]
        verify(graph)


def test_variables_come_and_go():
    with nbta.Graph().as_default() as graph:
        x = nbta.constant(2.0)
        loop = Loop(powers(lambda i: i < 3, 1, 0)(x).op)
        last = loop.add_variable(nbta.constant(1.0), lambda parameter: parameter + x)
        assert loop.count == 4
        assert loop.variable(3).last is last
        verify(graph)
        assert nbta.Session(graph).run([*loop.op.outputs]) == [3, 3, 8.0, 7.0]
        loop.keep([0, 1, 3, *range(4, len(loop.op.inputs))])
        assert loop.op.outputs[2] is last
        assert loop.count == 3
        verify(graph)
        assert nbta.Session(graph).run(last) == 7.0


def test_a_captured_tensor_is_released():
    with nbta.Graph().as_default() as graph:
        x, unused = nbta.constant(2.0), nbta.constant(3.0)
        loop = Loop(powers(lambda i: i < 3, 1, 0)(x).op)
        loop.body.capture(unused)
        assert unused in set(loop.captured)
        loop.release(unused)
        assert unused not in set(loop.captured)
        assert unused not in loop.body.captures
        verify(graph)
        assert nbta.Session(graph).run(loop.op.outputs[2]) == 8.0


def test_all_parameters_that_stand_for_a_tensor_stand_for_what_takes_its_place():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        one, other, last = x * 2.0, x * 3.0, x * 5.0
        out = nbta.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * one + other), (0, x))[1]
    program = extract([x], [out, last])
    one, other, last = (op.outputs[0] for op in program.operations if op.type == "Mul")
    loop = Loop(next(op for op in program.operations if is_loop(op)))
    first, second = (loop.body.captures[tensor] for tensor in (one, other))
    substitute(program, {other: one})  # two parameters for one tensor
    substitute(program, {one: last})
    assert loop.body.sources[first] is loop.body.sources[second] is last
    assert origin(second) is last
    verify(program)
    np.testing.assert_allclose(run(program, [np.float64(0.1)]), [0.1 / 8 + 0.5 * 1.75, 0.5])


def test_a_branch_gets_another_result():
    with nbta.Graph().as_default() as graph:
        x = nbta.constant(2.0)
        case = Branch(nbta.cond(x > 1.0, lambda: x * x, lambda: -x).op)
        assert is_branch(case.op)
        assert case.index.dtype == bool
        assert x in set(case.captured)
        ends = []
        for branch in case.branches:
            with branch.as_default():
                ends.append(nbta.identity(x) + 1.0)
        added = case.add_result(ends)
        assert set(case.ends(1)) == set(ends)
        verify(graph)
        assert nbta.Session(graph).run([case.op.outputs[0], added]) == [4.0, 3.0]


@pytest.mark.parametrize("way", COUNTED)
def test_an_iteration_count_is_known_on_entry(way):
    *given, iterations = COUNTED[way]
    with nbta.Graph().as_default() as graph:
        loop = loop_of(*given)
        entry = nbta.Session(graph).run(loop.op.inputs)
        assert iterations_on_entry(loop.cond, loop.body, loop.count, entry) == iterations
        assert nbta.Session(graph).run(loop.iterations) == iterations
    expected = nbta.value_and_grad(powers(*given))(3.0)
    for compiled in (False, True):
        function = nbta.value_and_grad(powers(*given, checkpoint="sqrt"), compiled=compiled)
        assert function(3.0) == expected == (3.0**iterations, iterations * 3.0 ** (iterations - 1))


@pytest.mark.parametrize("way", UNCOUNTED)
def test_an_iteration_count_is_not_known_on_entry(way):
    *given, iterations = UNCOUNTED[way]
    with nbta.Graph().as_default() as graph:
        loop = loop_of(*given)
        assert plain_limit(loop.cond, loop.body, loop.count) is None
        assert nbta.Session(graph).run(loop.iterations) == iterations
    with pytest.raises(nbta.InvalidArgumentError, match="iterations that is known on entry"):
        nbta.grad(powers(*given, checkpoint="sqrt"))(3.0)


def test_arrays_by_their_handles():
    with nbta.Graph().as_default():
        x = nbta.constant(2.0)
        kept, other = (nbta.TensorArray("float64", size=3, tensor_array_name=k) for k in "ab")

        def body(i, y):
            return i + 1, y * kept.read(i)

        kept = kept.unstack(nbta.constant([1.0, 2.0, 3.0]))
        y = nbta.while_loop(lambda i, _: i < 3, body, (0, x))[1] + other.write(0, x).read(0)
        (dx,) = nbta.gradients(y, [x])
        program = extract([], [y, dx])
    uses = ArrayUses(program)
    made = {op.attrs["tensor_array_name"]: op for op in uses.operations if op.record is CREATE}
    assert len(made) >= 2
    assert None not in uses.users
    for array, ops in uses.users.items():
        assert array[0].record is CREATE
        assert {array_of(op.inputs[0]) for op in ops} == {array}
        assert all(op.record is LOOKUP for op in uses.lookups(array))
        assert set(ops) <= uses.touching(array)


def test_a_handle_out_of_a_branch_may_be_one_of_several():
    with nbta.Graph().as_default():
        one, other = (nbta.TensorArray("float64", size=1) for _ in range(2))
        x = nbta.constant(2.0)
        either = nbta.cond(x > 1.0, lambda: one.write(0, x), lambda: other.write(0, x))
        same = nbta.cond(x > 1.0, lambda: one.write(0, x), lambda: one)
        write = either.write(0, x).flow.op
        assert write.record is WRITE
        assert origins(write.inputs[0]) == {one.handle, other.handle}
        assert origins(same.handle) == {one.handle}
        assert array_of(write.inputs[0]) is None


def test_a_copy_follows_its_rule_into_bodies():
    def swapped(copy, op, inputs):
        """Sines become cosines."""
        if op.record is not nbta.sin.record:
            return copied(copy, op, inputs)
        return copy.graph.create(nbta.cos.record, inputs, dict(op.attrs)).outputs

    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        y = nbta.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, nbta.sin(y) * x), (0, x))[1]
        z = nbta.cond(x > 0.0, lambda: nbta.sin(y), lambda: y)
        program = extract([x], [z])
    made = rebuild(program, swapped)
    verify(made)
    first, second = (run(p, [np.float64(0.5)]) for p in (program, made))
    assert first == pytest.approx([np.sin(np.sin(np.sin(0.5) * 0.5) * 0.5)])
    assert second == pytest.approx([np.cos(np.cos(np.cos(0.5) * 0.5) * 0.5)])
    assert [op.name for op in made.operations] == [op.name for op in program.operations]


def test_places_of_parameters_are_those_that_they_have():
    body = SubGraph(nbta.Graph(), "body")
    first, second, third = (body.parameter(Spec(np.dtype(float), ())) for _ in range(3))
    assert [place_of(tensor) for tensor in body.inputs] == [0, 1, 2]
    body.inputs = [third, second]
    assert [place_of(tensor) for tensor in (second, third)] == [1, 0]
    body.inputs.insert(1, first)
    assert [place_of(tensor) for tensor in (first, second, third)] == [1, 2, 0]


def test_another_result_of_a_branch_needs_no_look_at_those_before(monkeypatch):
    """A gradient adds a result for each value that it needs of a branch: there may be thousands."""
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (None,))
        several = nbta.cond(x[0] > 0.0, lambda: [x * k for k in range(20)], lambda: [x + 1.0] * 20)
        case, looks, common = Branch(several[0].op), [], shapes.common
        monkeypatch.setattr(shapes, "common", lambda *of: looks.append(of) or common(*of))
        result = case.add_result(case.ends(0))
    assert len(looks) == 1
    assert result.spec == several[0].spec
