"""Linear forms of indices, and iteration counts."""

import numpy as np

import nbta
from nbta.compiler.induction import Clamped, Counts, Linear, Order
from nbta.graph.order import ordered
from nbta.graph.views import origin
from nbta.ops.loops.iteration_counts import constant_of, step_of


def looped(cond, body, *first):
    """A loop's operation; ``body`` gives the next variables."""
    results = nbta.while_loop(cond, body, first)
    return (results if isinstance(results, tuple | list) else [results])[0].op


def test_a_scan_goes_through_its_rows():
    for reverse, direction in ((False, 1), (True, -1)):
        with nbta.Graph().as_default():
            x = nbta.placeholder("float64", (None, 2))
            h, _ = nbta.scan(lambda h, r: (h + r, h), nbta.constant([0.0, 0.0]), x, reverse=reverse)
            counts, op = Counts(h.op.graph), h.op
            (read,) = (o for o in op.attrs["body"].operations if o.type == "TensorArrayReadV3")
            assert counts.iterations(op) == counts.length(x)
            assert counts.direction(read.inputs[1], op, counts.length(x)) == direction
            assert counts.direction(read.inputs[1], op, Linear(3)) is None
            assert counts.is_index(read.inputs[1])


def test_a_condition_on_data_leaves_the_iterations_to_the_run():
    with nbta.Graph().as_default():
        op = looped(lambda i, y: y < 9.0, lambda i, y: (i + 2, y * 2), 1, nbta.constant(1.0))
        counts = Counts(op.graph)
        counter = op.outputs[0]
        assert counts.iterations(op) == Linear(0, {counter: 1})
        assert counts.number(op.outputs[1]) == Linear(1, {counter: 2})
        assert counts.number(op.outputs[1]).is_natural()
        assert step_of(op.attrs["body"].inputs[1]) == 2


def test_counts_that_may_be_negative_are_cut_off_at_0():
    with nbta.Graph().as_default():
        n = nbta.placeholder("int32", ())
        op = looped(lambda i: i < n, lambda i: i + 1, 0)
        assert Counts(op.graph).iterations(op) == Linear(0, {Clamped(0, frozenset({(n, 1)})): 1})
        op = looped(lambda i: i <= 7, lambda i: i + 1, 3)
        assert Counts(op.graph).iterations(op) == Linear(5)
        op = looped(lambda i: nbta.constant(9) > i, lambda i: i + 2, 0)
        assert Counts(op.graph).iterations(op) == Linear(0, {op.outputs[0]: 1})


def test_a_limit_that_the_body_changes_is_no_iteration_count():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (None,))
        limit = nbta.shape(x)[0]
        op = looped(lambda i, n: i < n, lambda i, n: (i + 1, n - 1), nbta.cast(0, "int64"), limit)
        assert Counts(op.graph).iterations(op) == Linear(0, {op.outputs[0]: 1})


def test_an_index_of_an_inner_loop_counts_from_where_the_outer_one_is():
    found = []

    def inner(j, i):
        found.append(i + j)
        return j + 1, i

    with nbta.Graph().as_default():

        def outer(i, z):
            j, _ = nbta.while_loop(lambda j, i: j < 2, inner, (0, i))
            return i + 1, z + j

        op = looped(lambda i, z: i < 3, outer, 0, 0)
        index = found[-1]
        body = index.graph
        start, step = Counts(op.graph).affine(index, body)
        assert (start == Counts(op.graph).number(op.attrs["body"].inputs[1]), step) == (True, 1)
        assert Counts(op.graph).affine(index, op.attrs["body"]) is None


def test_what_an_iteration_computes_says_nothing_of_the_next():
    """``a[t]`` and ``a[t + 1]`` are one item where ``t`` is less by one in a later iteration."""
    with nbta.Graph().as_default():
        places = nbta.constant([3, 0, 2, 1])
        op = looped(
            lambda i, y: i < 4, lambda i, y: (i + 1, y + places[i] % 4), 0, nbta.size(places)
        )
        counts, body = Counts(op.graph), op.attrs["body"]
        i, t = (counts.number(x) for x in (body.inputs[1], body.outputs[2].op.inputs[1]))
        assert t.is_natural()
        assert not i.constant

        def orders(one, other):
            return {order for order in Order if counts.is_above(one, other, body, order)}

        assert orders(t + 1, t) == {Order.SAME}
        assert orders(t + i + 1, t + i) == {Order.SAME}
        assert orders(i + 1, i) == {Order.SAME, Order.LATER}
        assert orders(i, i) == {Order.LATER}
        assert orders(i + 4, i) == set(Order)
        assert orders(i + 3, i) == {Order.SAME, Order.LATER}
        assert orders(t + 1, Linear(0)) == set(Order)


def test_as_many_iterations_as_a_loop_made_that_counts_down():
    """In one of them that loop has run an iteration, so what it counted is what was left."""
    with nbta.Graph().as_default():
        n = nbta.placeholder("int64", ())
        made = looped(lambda i: i > -1, lambda i: i - 1, n - 1).outputs[0]
        rows = []

        def body(k):
            rows.extend([n - made + k, n - made + k - 1, n - 1 - k])
            return k + 1

        counts = Counts(looped(lambda k: k < made, body, 0).graph)
        assert list(map(counts.is_index, rows)) == [True, False, True]
        assert not counts.is_index(n - made)


def test_where_values_come_from():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", ())
        seen = []

        def body(i, y):
            seen.append(x * 1.0)
            return i + 1, y + seen[-1]

        nbta.while_loop(lambda i, y: i < 3, body, (0, x))
        assert origin(seen[-1].op.inputs[0]) is x
        assert constant_of(nbta.cast(nbta.constant(3), "int32")) == 3


def test_a_variable_that_no_iteration_changes_is_what_it_begins_as():
    with nbta.Graph().as_default():
        ta = nbta.TensorArray("float64", size=3, element_shape=()).unstack(np.ones(3))
        w = nbta.placeholder("float64", ())
        _, y = nbta.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * w + ta.read(i)), (0, w))
        dw = nbta.gradients(y * 1.0, [w])[0]
        loop = next(op for op in ordered({dw.op}) if op.type == "While" and op is not y.op)
        kept = [i for i in range(loop.attrs["count"]) if origin(loop.outputs[i]).op is not loop]
        body = loop.attrs["body"]
        assert all(origin(body.inputs[i]) is origin(loop.outputs[i]) for i in kept)


def test_lengths_through_elementwise_operations_and_shapes():
    with nbta.Graph().as_default():
        x = nbta.placeholder("float64", (None, 2))
        y = nbta.placeholder("float64", (None, 2))
        counts = Counts(x.graph)
        assert counts.length(2.0 * x + nbta.zeros_like(x)) == counts.length(x)
        assert counts.length(x + y) != counts.length(x)
        rows = nbta.arange(nbta.shape(x)[0])
        assert counts.length(rows) == counts.length(x)
        assert counts.length(x, -1) == Linear(2)
        assert counts.length(x, 2) is None


def test_chains_are_as_long_as_a_program():
    with nbta.Graph().as_default():
        n = k = nbta.placeholder("int64", ())
        for _ in range(3000):
            k = k + 1
        counts = Counts(k.graph)
        assert counts.number(k) - counts.number(n) == Linear(3000)
        for _ in range(70):
            k = k + k  # of which each is two ways to the one before
        assert counts.number(k).terms == {n: 2**70}
