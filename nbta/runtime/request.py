"""What passes between a caller and a kernel: a block of int64, the *request*.

Every kernel has the signature ``(operation, store address, request address) -> status``, so
that one compiled function serves all dtypes and ranks, from Python and from compiled code.
"""

from typing import NamedTuple

import numpy as np

MAX_RANK = 8

# In: what is asked.
INDEX = 0  # slot; for GRAD: whether the new array clears after reads; for CONCAT: how many lengths
# there is room for; for SPLIT: whether fewer pieces than slots will do; for GATHER: see
# `reading.nothing_listed`
VALUE = 1  # address of a C-contiguous value; for GRAD: of the source's int32 code points;
# for CONCAT: how many slots from the first one, 0: as many as the array says;
# for CREATE: of the int32 code points of the array's name
DTYPE = 2  # dtype code of the value, or the one asked for
RANK = 3  # of the value, or of a shape pattern; -1: unknown
SHAPE = 4  # 8 dimensions; -1: unknown
LIST = 12  # address of int64 indices or lengths; for CONCAT: where lengths go
COUNT = 13  # how many of those; for GRAD: of code points
# Out: what came of it.
OWNER = 14  # owner of the result, one reference to it passed to the caller
RESULT = 15  # address of the result; into CREATE: how many code points the name has
OUT_RANK = 16  # of the result; after an error: of the shape that was expected
OUT_SHAPE = 17  # 8 dimensions
SLOT = 25  # after an error: the slot it is about
EXPECTED = 26  # after an error: numbers for the message
GOT = 27
WORDS = 28

# Operations, numbered as `nbta.errors.OPERATIONS` names them.
CREATE, WRITE, READ, GATHER, SCATTER, CONCAT = 0, 1, 2, 3, 4, 5
SPLIT, GRAD, CLOSE, APPEND, STACK, ACCUMULATE = 6, 7, 8, 9, 10, 11
VIEW = 12  # a read in compiled code, of an element that is looked at in place
LANES, TAKE, RANGE, JOIN = 14, 15, 16, 17  # see `nbta.runtime.lanes`
# These change who uses an array, and cannot fail; see `nbta.runtime.sharing`. (13: size)
ENTER, LEAVE, ARRIVE, DEPART = 18, 19, 20, 21
LOOK, LOOK_AT_ALL = 22, 23  # a slot, all slots, without a read; see `nbta.runtime.reading`
OFFSETS = 24  # of all elements' rows, without a read
RESERVE = 25  # room for as many slots as INDEX says; cannot fail


class Concat(NamedTuple):
    """The result of `TensorArray.concat`."""

    value: np.ndarray
    lengths: np.ndarray
