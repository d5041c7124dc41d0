"""Lists of slots: which slot of a `TensorArray` has an item of a list whose items change places.

Slots of a `TensorArray` are written once, so that gradients find in them what was read. A list
whose items are assigned, or taken off, writes each new item to a slot of its own and keeps beside
the array a list of numbers: that of the slot for each place. These numbers alone change where they
are, and no gradient passes through them.

>>> @nbta.value_and_grad
... def f(x):
...     kept = []
...     for v in x:
...         kept.append(v)
...         kept[len(kept) // 2] *= v
...     return sum(kept)
>>> f(np.arange(1.0, 11.0))
(np.float64(695.0), array([ 2., 12., 24., 57., 84., 38., 25., 46., 41.,  7.]))
"""

import numpy as np

from nbta.errors import out_of_range
from nbta.graph.operation import FLOW_SPEC, HANDLE_SPEC, Facts, NotDifferentiable, Spec
from nbta.ops.arrays.tensor_arrays import FLOW_VALUE, need_handle
from nbta.ops.core.dispatch import define
from nbta.ops.core.shaping import INT64

_NUMBERS = NotDifferentiable("slot numbers are integers, which have no derivative")


class _Slots(list):
    """The numbers, in a run whose operations Python makes one by one."""

    closed, is_gradient = False, False

    def close(self):
        """Nothing is kept for others."""


def _infer_create(count, **attrs):
    return HANDLE_SPEC, FLOW_SPEC


def _create(step, count, *, dtype, element_shape, facts):
    """The attributes say of compiled code's array what it holds."""
    return step.add(_Slots(range(int(count)))), FLOW_VALUE


#: A list of the numbers from 0 on.
SLOT_LIST = define("SlotList", _infer_create, _create, _NUMBERS, effects=True)


def _check(index, length):
    if not 0 <= index < length:
        place = index if index >= 0 else index - length
        message = (
            f"list index out of range: item {int(place)} of a list of {int(length)} items; an "
            f"index is from -len(list) to len(list) - 1"
        )
        raise out_of_range(message)


def _infer_read(handle, index, length, flow):
    need_handle(handle)
    return Spec(INT64, ())


def _read(step, handle, index, length, flow):
    _check(index, length)
    return np.int64(step.array(handle)[int(index)])


#: The number at a place of a list of a certain length.
READ_SLOT_LIST = define("SlotListRead", _infer_read, _read, _NUMBERS, effects=True)


def _infer_write(handle, index, length, value, flow):
    need_handle(handle)
    return FLOW_SPEC


def _write(step, handle, index, length, value, flow):
    _check(index, length)
    numbers = step.array(handle)
    if index == len(numbers):
        numbers.append(int(value))
    else:
        numbers[int(index)] = int(value)
    return FLOW_VALUE


#: Another number at a place, which may be the first one after the others.
WRITE_SLOT_LIST = define("SlotListWrite", _infer_write, _write, _NUMBERS, effects=True)


def _infer_gather(handle, length, flow):
    need_handle(handle)
    return Spec(INT64, (None,))


def _gather(step, handle, length, flow):
    return np.asarray(step.array(handle)[: int(length)], np.int64)


#: The numbers of a list of a certain length.
GATHER_SLOT_LIST = define("SlotListGather", _infer_gather, _gather, _NUMBERS, effects=True)

ON_SLOT_LISTS = frozenset({READ_SLOT_LIST, WRITE_SLOT_LIST, GATHER_SLOT_LIST})

#: What compiled code asks of what makes an array.
ATTRS = {"dtype": INT64, "element_shape": (), "facts": Facts(row=())}
