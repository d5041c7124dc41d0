"""What records say that they move: evaluated for numbers of items, they give those of the result.

So what a record gives for any values must be the values of the items that it gives for numbers.
"""

import numpy as np
import pytest

import nbta
from nbta.graph.graph import everything
from nbta.graph.operation import TABLE

X = np.arange(1.0, 7.0)
PLACES = np.array([3, 0, 3])
FUNCTIONS = [
    lambda x: x.reshape(2, 3).T,
    lambda x: nbta.swapaxes(x.reshape(1, 2, 3), 0, 2),
    lambda x: nbta.transpose(x.reshape(1, 2, 3), (1, 2, 0)),
    lambda x: np.concatenate([x[1:3], x[::-2]]),
    lambda x: np.stack([x[:3], x[3:]], axis=1),
    lambda x: np.broadcast_to(x[:2], (3, 2)),
    lambda x: np.pad(x, (2, 1), constant_values=x[0]),
    lambda x: np.roll(x, 2),
    lambda x: np.tril(x.reshape(2, 3)),
    lambda x: nbta.expand_dims(x, 0),
    lambda x: nbta.squeeze(x.reshape(1, 6), 0),
    lambda x: np.full(3, x[2]),
    lambda x: x[PLACES],
    lambda x: nbta.slice(x, [1], [3]),
    lambda x: nbta.split(x, 3)[1],
    lambda x: nbta.set_item(x, slice(1, 3), x[4:]),
    lambda x: nbta.set_item(x, 2, x[4]),
    lambda x: nbta.dynamic_update_slice(x, x[:2], [3]),
    lambda x: nbta.set_item(x, PLACES, x[:3]),
    lambda x: nbta.gradients([x[1:4]], [x], [x[:3]])[0],
    lambda x: nbta.matmul(x.reshape(2, 3), x[:3]),
]


def moving():
    """Operations that say that they move, with a function that has one, by record."""
    found = {}
    for f in FUNCTIONS:
        made = nbta.function(f, compiled=False)
        made(X)
        for op in everything(made.traced()[0]):
            if op.record.moves or op.record.selects:
                found.setdefault(op.type, []).append(op)
    return found


MOVING = moving()
OTHERS = {"Shape", "Size"}  # which tell dimensions
#: Made by rules of gradients, of tokens, or of products of stacks of matrices.
ELSEWHERE = {"After", "AsMatrix"}


def test_each_record_that_moves_is_held():
    names = {name for name, record in TABLE.items() if record.moves or record.selects}
    assert names - OTHERS - ELSEWHERE <= set(MOVING)


def evaluated(op, table):
    """Results for items of which a table, by number, says the values."""
    places = range(len(op.inputs)) if op.record.linear is True else op.record.linear
    values, last = [], 0
    for k, tensor in enumerate(op.inputs):
        with nbta.Session(op.graph) as session:
            given = [o.outputs[0] for o in op.graph.operations if o.record.fed]
            value = session.run(tensor, {t: PLACES if t.dtype == int else X for t in given})
        if k in places:
            value = table[np.arange(last + 1, last + 1 + np.size(value)).reshape(np.shape(value))]
            last += value.size
        values.append(value)
    found = op.record.evaluate(*values, **op.attrs)
    return found if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("name", sorted(set(MOVING) - OTHERS))
def test_what_moves_gives_the_numbers_of_items(name):
    numbers = np.arange(100)
    values = np.random.default_rng(3).integers(1, 1 << 60, 100)
    values[0] = 0
    for op in MOVING[name]:
        pairs = zip(evaluated(op, numbers), evaluated(op, values), strict=True)
        for number, value in pairs:
            np.testing.assert_array_equal(values[number], value)
