"""What is known of operations besides their results: who writes it, and that copies keep it."""

import numpy as np
import pytest

import nbta
from nbta.compiler.program import extract, rebuild
from nbta.graph.copying import copied
from nbta.graph.graph import everything
from nbta.graph.operation import NO_FACTS, Facts
from nbta.graph.printer import attributes
from nbta.ops.arrays.tensor_arrays import CREATE, READ, WRITE


@pytest.fixture
def read():
    """A read of an array in a graph."""
    with nbta.Graph().as_default():
        array = nbta.TensorArray("float64", 1, clear_after_read=False).write(0, 2.0)
        yield array.read(0).op


def test_nothing_is_known_at_first(read):
    assert read.facts is NO_FACTS
    assert not any("facts" in text for text in attributes(read))


def test_what_is_known_is_added_to_and_is_of_one_operation(read):
    other = read.graph.create(READ, read.inputs, read.attrs)
    read.know(is_written=True)
    read.know(of_adjoint=True)
    assert read.facts == Facts(is_written=True, of_adjoint=True)
    assert other.facts is NO_FACTS


def test_it_is_shown_but_for_what_names_say(read):
    read.know(is_written=True, of_adjoint=True)
    assert [text for text in attributes(read) if text.startswith(("is_", "of_", "facts"))] == [
        "is_written=True"
    ]


def test_it_changes_no_result(read):
    read.know(is_written=True)
    assert nbta.Session(read.graph).run(read.outputs[0]) == 2.0


def test_copies_keep_it(read):
    read.know(is_written=True)
    program = extract([], read.outputs)
    for made in (program, rebuild(program, copied)):
        assert made.outputs[0].op.facts == Facts(is_written=True)


def test_reverse_mode_says_which_accesses_are_its_own():
    with nbta.Graph().as_default() as graph:
        x = nbta.placeholder("float64", (4,))
        array = nbta.TensorArray("float64", 4, clear_after_read=False).unstack(x)
        loss = array.read(1) * array.read(2)
        nbta.gradients(loss, x)
    of_user = {op.facts.of_adjoint for op in graph.operations if op.record is READ}
    of_adjoint = {op.facts.of_adjoint for op in graph.operations if op.record is WRITE}
    assert of_user == {False}
    assert of_adjoint == {True}


def test_the_front_end_says_which_arrays_are_lists():
    def total(x):
        items = []
        for item in x:
            items.append(item * 2.0)
        return np.sum(np.array(items))

    gradient = nbta.value_and_grad(total, compiled=True)
    gradient(np.arange(3.0))
    made = [op for op in everything(gradient.graph) if op.record is CREATE]
    assert any(op.facts.is_appended for op in made)
