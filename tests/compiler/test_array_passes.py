"""Arrays that are written as a whole become tensors; what a loop reads by rows is done there."""

import re

import numpy as np
import pytest
from golden import programs
from golden_graph import with_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from loop_programs import PROGRAMS, inside, loops, prepared, recurrent, same, values_of, whole
from tape_programs import built

import nbta
from nbta.compiler.array_passes import arrays_to_tensors
from nbta.compiler.gradient_passes import gradients_to_tensors
from nbta.compiler.passes import prune
from nbta.compiler.program import extract
from nbta.compiler.row_passes import rows_of_elementwise
from nbta.structure import leaves
from nbta.testing import check_grads


def both(program):
    return rows_of_elementwise(arrays_to_tensors(program))


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_recurrent_nets_give_the_same(name):
    program, given = PROGRAMS[name]()
    for each in (program, prepared(program)):
        same(each, given, arrays_to_tensors, rtol=1e-13)
        same(each, given, both, rtol=1e-13)


SOME = [program for family in ("gradients", "loops") for program in programs(family)[::4]]


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("program", SOME, ids=lambda program: program["id"])
def test_recorded_programs_give_the_same(program):
    feeds, wanted = with_gradients(program)
    same(extract(list(feeds), wanted), list(feeds.values()), both, rtol=1e-12)


@pytest.mark.smoke
def test_rows_of_inputs_are_taken_from_the_tensor():
    program, given = recurrent()
    program = prepared(program)
    before, _ = loops(program)
    assert "TensorArrayReadV3" in inside(before)
    forward, _ = loops(same(program, given, arrays_to_tensors))
    assert "TensorArrayReadV3" not in inside(forward)
    assert "GetItem" in inside(forward)


def rows(ta, count, first=0, step=1, y=0.0):
    """Sum of reads in a loop."""
    return nbta.while_loop(
        lambda i, y: i < count, lambda i, y: (i + 1, y + ta.read(first + step * i)), (0, y)
    )[1]


def unstacked(x, **options):
    return nbta.TensorArray("float64", size=3, element_shape=(), **options).unstack(x)


X = [np.array([1.0, 2.0, 4.0])]


@pytest.mark.smoke
def test_a_gather_of_all_slots_is_the_tensor():
    program = built(lambda x: nbta.exp(unstacked(x).stack()), (3,))
    assert sorted(set(whole(same(program, X, arrays_to_tensors)))) == ["Exp", "Parameter"]


@pytest.mark.smoke
def test_reads_from_the_last_to_the_first():
    program = built(lambda x: rows(unstacked(x), 3, 2, -1), (3,))
    assert "TensorArrayV3" not in whole(same(program, X, arrays_to_tensors))


def test_sizes_are_what_arrays_were_made_with():
    program = built(lambda x: unstacked(x).stack() * nbta.cast(unstacked(x).size(), "float64"), 3)
    assert "TensorArraySizeV3" not in whole(same(program, X, arrays_to_tensors))


def fails(program, message, given=X):
    for each in (program, both(program)):
        with pytest.raises(nbta.InvalidArgumentError, match=message):
            values_of(each, given)


@pytest.mark.smoke
def test_reads_past_the_end_and_before_the_beginning_stay_errors():
    fails(built(lambda x: rows(unstacked(x), 4), (3,)), "3")
    fails(built(lambda x: rows(unstacked(x), 3, -1), (3,)), "-1")
    fails(built(lambda x: rows(unstacked(x), 4, 2, -1), (3,)), "-1")


@pytest.mark.smoke
def test_a_slot_that_is_cleared_stays_an_error_when_it_is_read_again():
    fails(built(lambda x: rows(unstacked(x), 3, 1, 0), (3,)), "clear")
    fails(built(lambda x: (lambda ta: rows(ta, 3) + rows(ta, 3))(unstacked(x)), (3,)), "clear")

    def again(x):
        ta = unstacked(x)
        return nbta.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, rows(ta, 3, y=y)), (0, 0.0))

    fails(built(again, (3,)), "clear")


def test_arrays_that_keep_what_is_read_may_be_read_often():
    def f(x):
        ta = unstacked(x, clear_after_read=False)
        return rows(ta, 3) * rows(ta, 3, 1, 0) + nbta.sum(ta.stack())

    assert "TensorArrayV3" not in whole(same(built(f, (3,)), X, arrays_to_tensors))


def test_a_tensor_of_another_length_stays_in_an_array():
    program = built(lambda x: rows(unstacked(x), 2), (None,))
    assert "TensorArrayV3" in whole(same(program, [X[0][:2]], arrays_to_tensors))
    fails(program, "does not grow", [np.ones(4)])


@pytest.mark.smoke
def test_arrays_that_are_written_more_than_once_stay():
    def f(x):
        ta = nbta.TensorArray("float64", size=4, element_shape=())
        return nbta.sum(ta.unstack(x).write(3, 1.0).stack())

    assert "TensorArrayV3" in whole(same(built(f, (3,)), X, arrays_to_tensors))


def test_a_read_that_sees_no_write_stays():
    def f(x):
        ta = nbta.TensorArray("float64", size=3, element_shape=(), clear_after_read=False)
        before = ta.read(0)
        written = ta.unstack(x)
        return before + rows(written, 3)

    program = built(f, (3,))
    fails(program, "read|written")


def written(x, **options):
    """An array that a loop writes."""
    ta = nbta.TensorArray("float64", **{"size": 3, "element_shape": (), **options})
    first = (0, ta)
    return nbta.while_loop(
        lambda i, ta: i < 3, lambda i, ta: (i + 1, ta.write(i, nbta.sum(x) * 2.0)), first
    )[1]


@pytest.mark.smoke
def test_a_gradient_array_that_is_scattered_once_is_what_is_scattered():
    program = built(lambda x: rows(written(x).grad("a").unstack(nbta.exp(x)), 3, 2, -1), (3,))
    result = same(program, X, arrays_to_tensors)
    assert not {op for op in whole(result) if op.startswith("TensorArray")}
    program = built(lambda x: rows(written(x).grad("a").unstack(x), 4), (3,))
    assert "TensorArrayGradV3" not in whole(arrays_to_tensors(program))


def test_lookups_in_a_loop_find_what_was_scattered_before_it():
    def f(x):
        ta = written(x)
        flow = ta.grad("a").unstack(x).flow

        def body(i, y):
            handle, flow_ = nbta.raw_ops.TensorArrayGradV3(ta.handle, flow, "a")
            read = nbta.raw_ops.TensorArrayReadV3(handle, i, flow_, "float64")
            return i + 1, y + nbta.reshape(read, ()) * (i + 1.0)

        return nbta.while_loop(lambda i, y: i < 3, body, (0, 0.0))[1]

    result = same(built(f, (3,)), X, arrays_to_tensors)
    assert "TensorArrayGradV3" not in whole(result)


def test_gradient_arrays_stay_where_more_is_added_or_the_size_is_the_runs():
    def twice(x):
        gradient = written(x).grad("a").unstack(x)
        return rows(written(x).grad("a").unstack(x), 3) + rows(gradient.unstack(2 * x), 3)

    assert "TensorArrayGradV3" in whole(same(built(twice, (3,)), X, arrays_to_tensors))

    def growing(x):
        ta = written(x, size=0, dynamic_size=True)
        return rows(ta.grad("a").unstack(x), 3)

    assert "TensorArrayGradV3" in whole(same(built(growing, (3,)), X, arrays_to_tensors))


def test_a_gradient_of_other_shapes_than_the_slots_stays_an_error():
    def f(x):
        ta, raw = written(x, element_shape=None), nbta.raw_ops
        handle, flow = raw.TensorArrayGradV3(ta.handle, ta.flow, "a")
        flow = raw.TensorArrayScatterV3(handle, nbta.arange(3), nbta.reshape(x, (3, 1)), flow)
        return nbta.sum(raw.TensorArrayReadV3(handle, 0, flow, "float64"))

    fails(built(f, (3,)), "shape")


# Gradient arrays that loops add to and that are stacked after them.


def stacked(x, add, dtype="float64", count=3, **options):
    """A gradient array that each iteration of a loop adds to by ``add(gradient, i)``, stacked."""
    options = {"element_shape": (), **options}
    ta = nbta.TensorArray(dtype, size=3, **options)
    rows = nbta.stack([x] * 3) if options["element_shape"] == (3,) else x
    gradient = ta.scatter(nbta.arange(3), rows).grad("a")

    def body(i, gradient):
        return i + 1, add(gradient, i)

    return nbta.while_loop(lambda i, _: i < count, body, (0, gradient))[1].gather(nbta.arange(3))


def adds(x, program):
    """Whether a program has gradient arrays after the pass, where it gives the same."""
    result = same(program, x, gradients_to_tensors)
    return "TensorArrayGradV3" in whole(prune(result))


@pytest.mark.smoke
def test_a_gradient_array_that_is_only_stacked_is_a_tensor():
    program = built(lambda x: stacked(x, lambda g, i: g.accumulate(2 - i, x[i])), (3,))
    assert not adds(X, program)
    twice = built(lambda x: stacked(x, lambda g, i: g.accumulate(i, x[i]).accumulate(0, x[i])), 3)
    assert not adds(X, twice)


def test_a_gradient_array_that_loops_in_loops_and_branches_add_to_is_a_tensor():
    def inner(x, g, i):
        def body(j, g):
            return j + 1, nbta.cond(x[j] > 1.5, lambda: g.accumulate(j, x[i] * x[j]), lambda: g)

        return nbta.while_loop(lambda j, _: j <= i, body, (0, g))[1]

    program = built(lambda x: stacked(x, lambda g, i: inner(x, g, i)), (3,))
    assert not adds(X, program)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: stacked(x, lambda g, i: g.accumulate(i, x), element_shape=(3,)),
        lambda x: stacked(x, lambda g, i: g.accumulate(i - nbta.cast(x[0], "int64"), x[i])),
        lambda x: stacked(x, lambda g, i: g.accumulate(i, x[i]), element_shape=None),
    ],
    ids=["vectors", "index that may be negative", "shape that is not given"],
)
def test_gradient_arrays_stay_where_code_could_not_add_as_they_do(f):
    program = built(f, (3,))
    assert "TensorArrayGradV3" in whole(prune(gradients_to_tensors(program)))


def test_gradient_arrays_stay_where_they_are_read_twice():
    def twice(x):
        gradient = written(x).grad("a", clear_after_read=False).accumulate(1, x[0])
        return nbta.sum(gradient.gather(np.arange(3))) * nbta.sum(gradient.gather(np.arange(3)))

    assert adds(X, built(twice, (3,)))


def test_a_slot_of_a_gradient_array_that_was_read_and_cleared_stays_an_error():
    def f(x):
        gradient = written(x).grad("a")
        first = gradient.read(0)
        return first + nbta.sum(gradient.accumulate(1, x[0]).gather(np.arange(3)))

    program = built(f, (3,))
    for each in (program, gradients_to_tensors(program)):
        with pytest.raises(nbta.InvalidArgumentError, match="was cleared"):
            values_of(each, X)


def test_what_is_added_past_the_end_of_a_gradient_array_stays_an_error():
    program = built(lambda x: stacked(x, lambda g, i: g.accumulate(i, x[0]), count=4), (3,))
    for each in (program, gradients_to_tensors(program)):
        with pytest.raises(nbta.InvalidArgumentError):
            values_of(each, X)


@pytest.mark.parametrize("size", [0, 2])
def test_what_is_added_past_the_end_of_an_array_that_nobody_reads_stays_an_error(size):
    """Fetched are flows alone: the write's only effect is its error."""
    graph = nbta.Graph()
    with graph.as_default():
        array = nbta.TensorArray("float64", size, element_shape=())
        flow = array.grad("a").write(size, 1.0).flow
    for compiled in (False, True):
        with pytest.raises(nbta.InvalidArgumentError, match=f"no slot {size}"):
            nbta.Session(graph).run(flow, compiled=compiled)


def accessed(x, n, k, kind):
    """Squares in an array, and accesses of its gradient arrays, some of which fail."""
    array = nbta.TensorArray(np.float64, n, clear_after_read=False, element_shape=())
    for i in range(n):
        array = array.write(i, x[i] * x[i])
    gradient = array.grad("a")
    if "nested" in kind:
        gradient = gradient.grad("b", clear_after_read=True)
    if "first" in kind:
        gradient = gradient.scatter(np.arange(3), x[:k])
    else:
        for i in range(n):
            gradient = gradient.accumulate(i + k, x[i])
    total = nbta.sum(gradient.stack() * x[0])
    for i in range(n):
        if "again" in kind:
            total += gradient.read(i)
    return total


@pytest.mark.parametrize(
    ("kind", "k"),
    [
        ("each", 0), ("each", 1), ("each", -1), ("first", 1), ("first", 3), ("again", 0),
        ("nested", 0), ("nested again", 0),
    ],
)  # fmt: skip
def test_errors_of_users_gradient_arrays_stay(kind, k):
    """Of slots there are not, of a row for three slots, and of slots that were cleared."""
    x, found = np.array([1.0, -2.0, 0.5]), []
    for compiled in (False, True):
        try:
            found.append(nbta.value_and_grad(accessed, compiled=compiled)(x, 3, k, kind))
        except nbta.NbtaError as error:
            found.append(re.sub(r"TensorArray_\d+", "", str(error)))
    assert str(found[0]) == str(found[1])
    assert isinstance(found[0], str) == (("again" in kind) or (kind, k) in FAIL)


FAIL = [("each", 1), ("each", -1), ("first", 1)]


def test_gradients_of_nested_scans_need_no_arrays():
    """Soft dynamic time warping: all that goes along rows, and back, is in tensors and tapes."""

    def f(x, y):
        def row(above, x):
            def column(left, here):
                y, corner, over = here
                value = (x - y) ** 2 - nbta.logsumexp(-nbta.stack([corner, over, left]))
                return value, value

            _, values = nbta.scan(column, 1e10, (y, above[:-1], above[1:]))
            return nbta.concatenate([nbta.fill((1,), 1e10), values]), None

        first = nbta.concatenate([nbta.zeros((1,)), nbta.fill(y.shape, 1e10)])
        return nbta.scan(row, first, x)[0][-1]

    x, y = np.sin(np.arange(5.0)), np.cos(np.arange(7.0))
    check_grads(f, (x, y), order=2)
    both = [nbta.value_and_grad(f, argnums=(0, 1), compiled=c) for c in (False, True)]
    for found, expected in zip(leaves(both[1](x, y)), leaves(both[0](x, y)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert "TensorArrayGradV3" not in whole(both[1]._last.runner.ran.program)
    assert _held(both[1], 200, 400) - _held(both[1], 100, 400) <= 1.1 * 100 * 400 * 4 * 8


def _held(gradient, rows, columns):
    """Bytes of all buffers after a call."""
    gradient(np.zeros(rows), np.zeros(columns))
    executable = gradient._last.runner.ran.executable
    work = executable.borrow()
    executable.give_back(work)
    return sum(buffer.nbytes for buffer in work._buffers.values())


@pytest.mark.smoke
def test_elementwise_operations_of_rows_are_done_in_the_loop():
    program = built(
        lambda x, y: rows(unstacked(nbta.tanh(2.0 * x) + y[0]), 3), (3,), (1,)
    )  # what does not depend on the row is not repeated
    result = same(arrays_to_tensors(program), [*X, np.ones(1)], rows_of_elementwise)
    (op,) = loops(result)
    assert {"Tanh", "Mul"} <= set(inside(op))
    assert whole(result).count("Tanh") == 1
    assert whole(result).count("GetItem") == 2  # the row of x; y[0] stays outside of the loop


def test_rows_of_what_others_need_stay_rows():
    def f(x):
        y = nbta.exp(x)
        return rows(unstacked(y), 3) * nbta.sum(y)

    result = same(arrays_to_tensors(built(f, (3,))), X, rows_of_elementwise)
    assert "Exp" not in inside(loops(result)[0])


def test_broadcast_scalars_are_repeated_by_row_where_no_index_is_out_of_range():
    program = built(lambda x, y: rows(unstacked(nbta.broadcast_to(y, (3,)) * x), 3), (3,), ())
    result = same(arrays_to_tensors(program), [*X, np.array(2.0)], rows_of_elementwise)
    assert "BroadcastTo" not in whole(result)  # a row of it is the scalar
    fails(built(lambda x, y: rows(unstacked(nbta.broadcast_to(y, (3,))), 4), (3,), ()), "3",
          [*X, np.array(2.0)])  # fmt: skip


# Elementary functions before loops.


def scattered(bins, weights, others, scale):
    """Sums by bins of what is computed of items; the last ones first where ``others`` are read."""
    h = np.ones(4)
    for i in range(len(weights)):
        e = np.exp(weights[i] * scale)
        h[bins[i]] += np.log(1.0 + e) + e * others[len(others) - 1 - i] ** 2
    return np.sum(np.log(h) * h)


def carried(bins, weights, others, scale):
    """A recurrence, with what it needs of its own value in the loop."""
    v = 1.0
    for i in range(len(weights)):
        v = np.tanh(v * np.exp(scale - weights[i])) + np.log(2.0 + weights[i] ** 2) * others[i]
    return v


def in_place(bins, weights, others, scale):
    a = np.zeros(len(weights))
    a[0] = scale
    for i in range(1, len(weights)):
        a[i] = np.sin(a[i - 1]) * np.exp(weights[i])
    for i in range(len(weights)):
        a[bins[i]] = a[bins[i]] * np.tanh(weights[i]) + others[i]
    return np.sum(a * a)


def side_by_side(bins, weights, others, scale):
    s = 0.0
    for i in range(len(weights)):
        s += np.exp(weights[i] * others[i])
    return s * scale


#: With the elementary functions that stay in their loops.
LOOPS = {scattered: set(), carried: {"Tanh"}, in_place: {"Exp"}, side_by_side: {"Exp"}}


def bins_and_numbers(n):
    random = np.random.default_rng(n)
    return random.integers(0, 4, n), *random.normal(size=(2, n)), np.array(0.5)


@pytest.mark.slow_but_every(4)
@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_functions_before_loops_give_the_same(f, n):
    """First and second derivatives, too; a loop that starts after the first item keeps its own."""
    bins, *numbers = bins_and_numbers(n)
    if f is in_place:
        bins = bins % n

    def g(*numbers):
        return f(bins, *numbers)

    check_grads(g, numbers, order=2)

    def squares(*numbers):
        return sum(np.sum(g * g) for g in nbta.grad(g, argnums=(0, 1, 2))(*numbers))

    for function in (g, squares):
        found, expected = (
            nbta.value_and_grad(function, argnums=(0, 1, 2), compiled=compiled)(*numbers)
            for compiled in (True, False)
        )
        for one, other in zip(leaves(found), leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_functions_of_items_are_computed_before_loops_that_go_iteration_by_iteration(f):
    function = nbta.value_and_grad(f, argnums=(1, 2, 3), compiled=True)
    function(*bins_and_numbers(20))
    program = function._last.runner.ran.program
    elementary = {"Exp", "Log", "Tanh"}
    assert set().union(*map(inside, loops(program))) & elementary == LOOPS[f]
    value = nbta.function(f, compiled=True)
    value(*bins_and_numbers(20))
    inner = loops(value._last.runner.ran.program)
    assert set().union(*map(inside, inner)) & elementary == LOOPS[f]


def test_no_tape_keeps_what_was_computed_before_a_loop():
    def f(bins, weights):
        h = np.ones(4)
        for i in range(len(weights)):
            h[bins[i]] += np.exp(weights[i])
        return np.sum(np.log(h))

    function = nbta.value_and_grad(f, argnums=1, compiled=True)
    function(*bins_and_numbers(20)[:2])
    assert not [t for t in whole(function._last.runner.ran.program) if t.startswith("TensorArray")]


def test_a_function_before_a_loop_stays_there_if_the_loop_goes_iteration_by_iteration():
    def f(bins, weights):
        h, e = np.zeros(4), np.exp(weights)
        for i in range(len(weights)):
            h[bins[i]] += e[i]
        return h

    function = nbta.function(f, compiled=True)
    function(*bins_and_numbers(20)[:2])
    assert "Exp" not in inside(loops(function._last.runner.ran.program)[0])


@settings(max_examples=8)
@given(st.data())
def test_random_functions_of_items(data):
    """Sums of random terms by bins, and a recurrence: by the reference, and against NumPy."""
    functions = st.sampled_from([np.exp, np.tanh, np.log1p, np.expm1, np.sin, np.square, np.abs])
    items = st.sampled_from(["x", "y", "back", "scale", "v"])
    terms = data.draw(
        st.lists(st.tuples(functions, functions, items, items), min_size=1, max_size=4)
    )

    def f(bins, x, y, scale):
        h, v = np.ones(4), 0.1 * scale
        for i in range(len(x)):
            now = {"x": x[i], "y": y[i], "back": x[len(x) - 1 - i], "scale": scale, "v": v}
            total = 0.0
            for outer, inner, one, other in terms:
                total = total + outer(np.tanh(inner(np.tanh(now[one])) * now[other]) * 0.7)
            h[bins[i]] += total
            v = np.tanh(v + 0.1 * total)
        return np.sum(h * h) + v

    numbers = bins_and_numbers(data.draw(st.integers(1, 6)))
    (one, expected), (other, found) = (
        nbta.value_and_grad(f, argnums=(1, 2, 3), compiled=compiled)(*numbers)
        for compiled in (False, True)
    )
    np.testing.assert_allclose([one, other], f(*numbers), rtol=1e-12)
    for pair in zip(found, expected, strict=True):
        np.testing.assert_allclose(*pair, rtol=1e-10, atol=1e-12)
