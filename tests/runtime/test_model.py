"""The model is right: it does what TensorFlow did, and nbta does the same in the odd corners."""

import numpy as np
import pytest
from golden import Replay, programs, tensor
from many import chunks, each
from model import FURTHEST, ModelArray, ModelError, known
from random_values import assert_same

import nbta
from nbta.runtime.buffers import LARGEST


class ModelReplay(Replay):
    """Runs recorded programs on the model."""

    def create(self, label, dtype, identical_element_shapes, name, **rest):
        self.arrays[label] = ModelArray(dtype, infer_shape=identical_element_shapes, **rest)


@pytest.mark.slow_but_every(2)
@pytest.mark.parametrize("some", chunks(programs("raw"), 100))
def test_the_model_agrees_with_tensorflow(some):
    each(some, check_program)


def check_program(program):
    replay = ModelReplay()
    for step, expected in zip(program["steps"], program["expect"], strict=True):
        reason = expected.get("error", {}).get("reason")
        if reason == "gradient_of_gradient":  # nbta, and so the model, goes further
            assert replay.step(step) == {"ok": True}
        elif reason:
            with pytest.raises(ModelError, match=f"^{reason}$"):
                replay.step(step)
        else:
            result = replay.step(step)
            assert result.keys() == expected.keys()
            for key in result.keys() - {"ok"}:
                assert_same(result[key], tensor(expected[key]), zero_signs=False)


def failing(operation, shape=None, **options):
    """A program: an operation fails on a new array, whose element shape is what it was."""

    def program(make):
        array = make("float64", 3, element_shape=shape, **options)
        with pytest.raises((nbta.NbtaError, ModelError)) as caught:
            operation(array)
        return [np.array(caught.value.reason), np.array(str(array.element_shape))]

    return program


def reading(*operations, dtype="float64", size=2, **options):
    """A program: what the last of some operations on a new array gives."""

    def program(make):
        result = make(dtype, size, **options)
        for operation in operations:
            result = operation(result)
        return [result]

    return program


ROWS = np.arange(6.0).reshape(3, 2)
DEEP = np.arange(6.0).reshape(2, 1, 1, 1, 1, 1, 1, 1, 3)
CORNERS = {
    "a slot named twice": failing(lambda a: a.scatter([1, 2, 1], ROWS)),
    "a slot named twice, partly known": failing(lambda a: a.scatter([1, 1, 0], ROWS), (None,)),
    "a negative slot": failing(lambda a: a.scatter([0, 1, -1], ROWS)),
    "a negative slot, ragged": failing(lambda a: a.scatter([0, 1, -1], ROWS), infer_shape=False),
    "pieces of two shapes": failing(lambda a: a.split(ROWS, [1, 2, 0])),
    "a shape asked for in vain": failing(lambda a: a.gather([0, 3], element_shape=(2,))),
    "a stack of a closed array": failing(lambda a: (a.close(), a.stack()), (2,)),
    "nine dimensions": failing(lambda a: a.write(0, DEEP)),
    "a prefix that is too long": failing(
        lambda a: a.write(0, DEEP[0]).grad_with_shape("gradients", [2]), infer_shape=False
    ),
    "rows of eight dimensions": reading(lambda a: a.unstack(DEEP), lambda a: a.stack()[1]),
    "listed rows of eight dimensions": reading(
        lambda a: a.scatter([1, 0], DEEP), lambda a: a.read(0)
    ),
    "an element without data": reading(
        lambda a: a.write(1, np.zeros((0, 3))), lambda a: a.read(1), clear_after_read=True
    ),
    "halves that add up": reading(
        lambda a: a.grad("gradients"),
        lambda a: a.scatter([0] * 4, np.array([2048, 1, 1, 1], np.float16)),
        lambda a: a.gather([0]),
        dtype="float16",
        element_shape=(),
    ),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_nbta_agrees_with_the_model_in_a_corner(corner):
    for got, want in zip(
        CORNERS[corner](nbta.TensorArray), CORNERS[corner](ModelArray), strict=True
    ):
        assert_same(got, want)


def test_bools_that_a_scatter_adds_up_are_refused():
    gradient = nbta.TensorArray("bool", 2, element_shape=()).grad("gradients")
    with pytest.raises(nbta.InvalidArgumentError) as caught:
        gradient.scatter([0, 0], np.array([True, True]))
    assert caught.value.reason == "aggregate_dtype"
    assert gradient.scatter([0, 1], np.array([True, True])).stack().tolist() == [True, True]


def test_no_slot_lies_where_no_address_reaches():
    assert FURTHEST == LARGEST


def test_the_model_knows_what_a_shape_is():
    assert known((2, 0))
    assert not known((2, None))
    assert not known(None)
