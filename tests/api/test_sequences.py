"""Eager arrays as Python sequences: ``ta[i]``, ``len``, iteration and `numpy.asarray` look only."""

import copy
import itertools
import operator

import numpy as np
import pytest

import nbta

ROWS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


def written(**options):
    return nbta.TensorArray("float64", 3, **options).unstack(ROWS)


def partly(**options):
    return nbta.TensorArray("float64", 3, element_shape=(2,), **options).write(1, ROWS[1])


def ragged(**options):
    ta = nbta.TensorArray("float64", 3, infer_shape=False, **options)
    return ta.write(0, ROWS[0]).write(1, ROWS[1]).write(2, ROWS[2])


def sums(**options):
    return written().grad("gradients", **options).write(1, ROWS[1])


def half(**options):
    ta = nbta.TensorArray("float16", 3, element_shape=(2,)).write(0, np.ones(2, np.float16))
    return ta.grad("gradients", **options).write(0, np.ones(2, np.float16))


MAKERS = [written, partly, ragged, sums, half]
LOOKS = {
    "item": lambda ta: ta[1],
    "from after": lambda ta: ta[-3],
    "NumPy's integers": lambda ta: ta[np.int8(2)],
    "list": list,
    "unpacked": lambda ta: (lambda a, b, c: None)(*ta),
    "zip": lambda ta: [*zip(ta, range(3), strict=True)],
    "reversed": lambda ta: list(reversed(ta)),
    "asarray": np.asarray,
    "as another dtype": lambda ta: np.asarray(ta, "complex128"),
    "copy": np.array,
    "dlpack": np.from_dlpack,
    "stacked by NumPy": np.stack,
    "mean": np.mean,
    "len": len,
    "size": lambda ta: ta.size(),
    "repr": repr,
    "html": lambda ta: ta._repr_html_(),
    "copied": copy.deepcopy,
}


@pytest.mark.slow_but_every(3)
@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("look", LOOKS)
def test_a_look_changes_nothing(look, make, clear):
    ta = make(clear_after_read=clear)
    before, memory = ta._states().tolist(), bytes(repr(ta), "ascii")
    for _ in range(2):
        LOOKS[look](ta)
    assert (ta._states().tolist(), bytes(repr(ta), "ascii")) == (before, memory)


@pytest.mark.parametrize("make", MAKERS)
def test_a_look_shows_what_reads_give(make):
    seen, everything, one = list(make()), np.asarray(make()), make()
    stack = make().stack()
    np.testing.assert_array_equal(seen, stack)
    np.testing.assert_array_equal(everything, stack)
    assert everything.dtype == stack.dtype
    for i in range(-3, 3):
        np.testing.assert_array_equal(one[i], stack[i])
        assert type(one[i]) is type(stack[i])


def test_the_random_order_of_looks_reads_and_writes_does_not_matter():
    """Writes and reads between any looks do as they do without them."""
    steps = {
        "write": lambda ta: ta.write(1, 5.0).size(),
        "read": lambda ta: ta.read(1),
        "append": lambda ta: ta.append(7.0).size(),
        "stack": lambda ta: ta.stack().tolist(),
    }
    for order in itertools.product(steps, repeat=3):
        outcomes = []
        for looks in (False, True):
            ta = nbta.TensorArray("float64", 2, dynamic_size=True, element_shape=()).write(0, 3.0)
            found = []
            for step in order:
                if looks:
                    _ = ta[1], list(ta), np.asarray(ta)
                try:
                    found.append(steps[step](ta))
                except nbta.InvalidArgumentError as error:
                    found.append(error.reason)
            outcomes.append(found)
        assert outcomes[0] == outcomes[1]


def test_reading_twice_gives_the_same():
    ta = written()
    for _ in range(2):
        np.testing.assert_array_equal(ta.stack(), ROWS)
        np.testing.assert_array_equal(ta.gather([1, 1]), ROWS[[1, 1]])
        np.testing.assert_array_equal(ta.read(2), ROWS[2])


def test_read_slots_may_be_looked_at_and_cleared_ones_not():
    for clear in (False, True):
        ta = written(clear_after_read=clear)
        ta.read(1)
        for look in (lambda ta=ta: ta[1], lambda ta=ta: list(ta), lambda ta=ta: np.asarray(ta)):
            if clear:
                with pytest.raises(nbta.InvalidArgumentError, match="slot 1 was cleared"):
                    look()
            else:
                look()
        np.testing.assert_array_equal(ta[0], ROWS[0])


@pytest.mark.parametrize("index", [3, -4, 2**70, -(2**70)])
def test_after_the_ends(index):
    with pytest.raises(IndexError, match=r"getitem on .*there is no slot") as caught:
        written()[index]
    assert isinstance(caught.value, nbta.OutOfRangeError)


@pytest.mark.parametrize("index", [1.0, "1", None, slice(1), (0, 1), [0], ..., np.array([1, 2])])
def test_what_is_no_index(index):
    with pytest.raises(nbta.InvalidArgumentError, match=r"getitem on .*index must be one integer"):
        written()[index]


def test_loops_end_and_see_what_comes_meanwhile():
    ta = nbta.TensorArray("int64", dynamic_size=True, element_shape=())
    assert list(ta) == []
    assert np.asarray(ta).shape == (0,)
    ta = ta.append(3)
    for value in ta:
        if value:
            ta = ta.append(value - 1)
    assert list(ta) == [3, 2, 1, 0]
    assert 2 in ta
    assert 9 not in ta


def test_what_was_seen_stays():
    ta = partly()
    empty, everything, one = ta[0], np.asarray(ta), ta[1]
    ta.write(0, ROWS[0])
    ta.close()
    assert (empty.tolist(), one.tolist()) == ([0, 0], [3, 4])
    assert everything.tolist() == [[0, 0], [3, 4], [0, 0]]
    for value in (empty, everything, one):
        assert not value.flags.writeable
    g = sums()
    before = g[1]
    g.accumulate(1, ROWS[1])
    assert (before.tolist(), g[1].tolist()) == ([3, 4], [6, 8])


@pytest.mark.parametrize("look", [lambda ta: ta[0], list, np.asarray, len])
def test_a_closed_array_shows_nothing(look):
    ta = written()
    ta.close()
    with pytest.raises(nbta.InvalidArgumentError, match="the array is closed"):
        look(ta)


@pytest.mark.parametrize("look", [lambda ta: ta[0], list, np.asarray, operator.itemgetter(0)])
def test_an_array_of_a_graph_has_nothing_to_see(look):
    with nbta.Graph().as_default():
        ta = nbta.TensorArray("float64", 2, element_shape=())
        with pytest.raises(nbta.InvalidArgumentError, match="only when the graph runs"):
            look(ta)
