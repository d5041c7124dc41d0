"""What is known of the shapes of arrays' elements: forwarded when they are read, and inferred."""

import numpy as np
import pytest

import nbta
from nbta import raw_ops

# Loops of no iterations, which write nothing that could tell a shape.


def _append(path, i, x):
    return path.append(x)


def _write(path, i, x):
    return path.write(i, x)


def _append_row(path, i, x):
    return path.append(nbta.stack([x, 2 * x]))


def _append_piece(path, i, x):
    return path.append(nbta.reshape(x, (1,)))


#: How an array is made, what each iteration does, how it is read, and what is read where there is
#: none.
READS = {
    "stack": ({"dynamic_size": True}, _append, lambda ta: ta.stack(), (0,)),
    "stack of rows": ({"dynamic_size": True}, _append_row, lambda ta: ta.stack(), (0, 2)),
    "concat": ({"dynamic_size": True}, _append_piece, lambda ta: ta.concat().value, (0,)),
    "stack of a size": ({"size": 3}, _write, lambda ta: ta.stack(), (3,)),
    "gather": ({"size": 3}, _write, lambda ta: ta.gather([2, 0]), (2,)),
    "gather of none": ({"size": 3}, _write, lambda ta: ta.gather([]), (0,)),
    "partly declared": (
        {"size": 3, "element_shape": (None,)},
        lambda ta, i, x: ta.write(i, nbta.stack([x, x])),
        lambda ta: ta.stack(),
        (3, 2),
    ),
}


def _program(name):
    options, step, read, _ = READS[name]

    def total(rate, start):
        path = nbta.TensorArray("float64", **options)
        _, _, path = nbta.while_loop(
            lambda i, x, path: x > 1.0,
            lambda i, x, path: (i + 1, rate * x, step(path, i, x)),
            (0, start, path),
        )
        return read(path)

    return total


@pytest.mark.slow_but_every(5)
@pytest.mark.parametrize("compiled", [False, True], ids=["reference", "compiled"])
@pytest.mark.parametrize("name", READS)
def test_reads_after_a_loop_of_no_iterations_give_what_the_loop_would_write(name, compiled):
    total = _program(name)
    values = nbta.function(total, compiled=compiled)
    slopes = nbta.value_and_grad(lambda r, s: nbta.sum(total(r, s)), (0, 1), compiled=compiled)
    np.testing.assert_array_equal(values(0.5, 0.5), np.zeros(READS[name][3]))
    assert slopes(0.5, 0.5) == (0.0, (0.0, 0.0))
    after = slopes(0.5, 4.0)
    assert (after[0] > 0) == (after[1][1] > 0) == (name != "gather of none")


def test_the_readme_needs_no_element_shape():
    def total(rate, start):
        path = nbta.TensorArray("float64", dynamic_size=True)
        step = lambda x, path: (rate * x, path.append(x))  # noqa: E731
        return nbta.sum(nbta.while_loop(lambda x, path: x > 1.0, step, (start, path))[1].stack())

    slope = nbta.value_and_grad(total)
    assert slope(0.5, 1.0) == (0.0, 0.0)
    assert slope(0.5, 8.0) == (14.0, 16.0)


def test_elements_of_several_shapes_are_not_taken_for_one():
    with nbta.Graph().as_default() as graph:
        ta = nbta.TensorArray("float64", size=2, infer_shape=False).write(0, [1.0, 2.0])
        stacked = ta.stack()
    with pytest.raises(nbta.InvalidArgumentError, match="never written"):
        nbta.Session(graph).run(stacked)


# Inferred when the graph is built.


def test_a_stack_has_as_many_rows_as_the_array_has_slots():
    with nbta.Graph().as_default():
        ta = nbta.TensorArray("float64", size=3).write(0, np.ones(3))
        assert ta.stack().shape == (3, 3)
        assert ta.concat().value.shape == (None,)
        grown = nbta.TensorArray("float64", size=3, dynamic_size=True).write(0, np.ones(3))
        assert grown.stack().shape == (None, 3)
        size = nbta.placeholder("int32", ())
        assert nbta.TensorArray("float64", size=size).write(0, 1.0).stack().shape == (None,)


def test_a_stack_of_as_many_rows_as_an_argument_has():
    def doubled(x):
        n = x.shape[0]
        ta = nbta.TensorArray("float64", size=n, element_shape=())
        loop = nbta.while_loop(
            lambda i, ta: i < n, lambda i, ta: (i + 1, ta.write(i, 2 * x[i])), (0, ta)
        )
        stacked = loop[1].stack()
        assert stacked.spec.shape[0] is x.spec.shape[0]  # so that gradients need no comparison
        return nbta.sum(stacked * x)

    slope = nbta.value_and_grad(doubled)
    for n in (3, 5, 2):
        x = np.arange(1.0, n + 1)
        value, found = slope(x)
        assert value == 2 * x @ x
        np.testing.assert_array_equal(found, 4 * x)
    assert slope.traces == 1


@pytest.mark.parametrize(
    ("lengths", "shape"), [([1, 1, 1], (1, 2)), ([3], (3, 2)), ([1, 2], (None, 2)), ([], (None, 2))]
)
def test_pieces_of_a_split_have_the_length_that_they_share(lengths, shape):
    with nbta.Graph().as_default():
        ta = nbta.TensorArray("float64", size=len(lengths))
        assert ta.split(np.ones((3, 2)), lengths).element_shape == shape
        several = nbta.TensorArray("float64", size=len(lengths), infer_shape=False)
        assert several.split(np.ones((3, 2)), lengths).element_shape is None


def test_gradient_arrays_by_their_raw_names_have_the_shape_of_the_forward_array():
    with nbta.Graph().as_default():
        handle, flow = raw_ops.TensorArrayV3(3, "float64", element_shape=(2, 3))
        grad, after = raw_ops.TensorArrayGradV3(handle, flow, "gradients")
        assert raw_ops.TensorArrayReadV3(grad, 0, after, "float64").shape == (2, 3)
        assert raw_ops.TensorArrayGatherV3(grad, [0, 1], after, "float64").shape == (2, 2, 3)
        longer, after = raw_ops.TensorArrayGradWithShape(handle, flow, [5, 4], "gradients_1")
        assert raw_ops.TensorArrayReadV3(longer, 0, after, "float64").shape == (None, None, 2, 3)
        third, after = raw_ops.TensorArrayGradV3(grad, after, "again")
        assert raw_ops.TensorArrayReadV3(third, 0, after, "float64").shape == (2, 3)


def test_one_gradient_array_that_is_looked_up_in_two_ways_has_no_known_shape():
    with nbta.Graph().as_default() as graph:
        handle, flow = raw_ops.TensorArrayV3(3, "float64", element_shape=(2,))
        _, flow = raw_ops.TensorArrayGradWithShape(handle, flow, [4], "gradients")
        grad, flow = raw_ops.TensorArrayGradV3(handle, flow, "gradients")
        element = raw_ops.TensorArrayReadV3(grad, 0, flow, "float64")
        assert element.shape is None
    assert nbta.Session(graph).run(element).shape == (4, 2)
