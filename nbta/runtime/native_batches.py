"""Batches of items in users' compiled code: one program, called for each item, without Python.

To whoever calls it this is a program: it takes a table of words, finds the arrays of the call where
`nbta.runtime.native_calls` puts them, and gives a status. It cuts them into items along one axis
each, lets the program of an item compute each, and adds up in the order of
`nbta.execution.batch.Results`, so that sums are bitwise identical to those of a batch from Python.
An item along a first axis is where it lies; one along another axis is copied, before or after.
What it cannot do, it leaves to Python: there, a batch begins with its first item again.
"""

import numpy as np
from numba import types

from nbta.runtime import settings
from nbta.runtime.accumulation import add_elements
from nbta.runtime.compiled import stay_out_of_line
from nbta.runtime.intrinsics import INTERRUPTED, MEMORY, NOT_A_NUMBER, OK, call
from nbta.runtime.machine_code import Routine
from nbta.runtime.memory import ARRAY_READY, array_at, copy_bytes, kernel, libc_free, libc_malloc
from nbta.runtime.native_calls import (
    ARRAY,
    DATA,
    DIMENSIONS,
    FLAGS,
    RANK,
    check_signals,
    thread_state,
    words,
)
from nbta.runtime.parallel import moment
from nbta.runtime.settings import setting
from nbta.runtime.sharing import hold_python, let_python_go
from nbta.tuning import (
    BATCH_PARTS,
    BATCH_PARTS_LEAST,
    BATCH_SUMS,
    HELPED_BATCH_CYCLES,
    HELPED_ITEM_CYCLES,
    UNWATCHED_ITEMS,
)

#: Words of a table: the program of an item, its words, and the first of these for an array; how
#: many arrays are given, how many more come from outside, and how many results an item has; the
#: address of the number of parallel loops that use the function now; and addresses: of what is
#: known of each array that is given, and of each result; of what stands for the arrays of an item;
#: and of their dimensions where they are cut along an axis that is not the first, with how many
#: there may be.
(
    PROGRAM, WORDS, PLACE, GIVEN, OUTSIDE, RESULTS, LOOPS, CUT, PLAN, BLOCK, SHAPES, RANKS, TABLE,
) = range(13)  # fmt: skip
#: Words of an array that is given: the bytes of one of its numbers if it is cut, else 0; the axis;
#: and, for a call, the bytes of an item.
UNIT, ALONG, STEP, GIVEN_ARRAY = range(4)
#: Words of a result: which one of the call it is, or -1; the bytes of a number; the dtype code if
#: it is added up, else -1; whether it is divided by the number of items, 4 or 8 for the bytes of
#: the float; the axis along which items are joined, or -1; and, for a call, its bytes, where a
#: part's sum is, and where a term is, or an item before it is joined.
WANTED, ITEMSIZE, CODE, DIVIDED, AXIS, NBYTES, SUM, TERM, RESULT = range(9)
#: The status of what Python is to compute: no program gives it.
HELP = -7
_LINE = 64


@kernel
def size_of(array, axis):
    """How many numbers a row of an array has, from an axis on."""
    found, dimensions = 1, words(array[DIMENSIONS])
    for k in range(axis, array[RANK]):
        found *= dimensions[k]
    return found


@kernel
def put_dimensions(t, k, whole, axis):
    """Put the dimensions of the items of an array somewhere, and say where."""
    found, dimensions = t[SHAPES] + 8 * t[RANKS] * k, words(whole[DIMENSIONS])
    if axis == 0:
        return whole[DIMENSIONS] + 8
    for d in range(whole[RANK] - 1):
        words(found)[d] = dimensions[d + (d >= axis)]
    return found


@kernel
def copy_item(one, whole, axis, itemsize, item, is_given):
    """Copy an item from an array that is cut along an axis, or to one."""
    stay_out_of_line()
    dimensions, blocks = words(whole[DIMENSIONS]), 1
    for d in range(axis):
        blocks *= dimensions[d]
    nbytes = itemsize * size_of(whole, axis + 1)
    for k in range(blocks):
        place = whole[DATA] + (k * dimensions[axis] + item) * nbytes
        if is_given:
            copy_bytes(one[DATA] + k * nbytes, place, nbytes)
        else:
            copy_bytes(place, one[DATA] + k * nbytes, nbytes)


@kernel
def is_interrupted(item):
    """Whether a signal's handler has raised, of which some items ask."""
    if item & UNWATCHED_ITEMS != UNWATCHED_ITEMS or thread_state() == 0:
        return False
    python = hold_python()
    raised = check_signals()
    let_python_go(python)
    return raised != 0


@kernel
def cut(t, arrays):
    """Say what stands for the first item's arrays; how many items there are, or -1."""
    head, item, count = setting(settings.OBJECT_HEAD), words(t[WORDS]), -1
    for k in range(t[GIVEN]):
        whole, one = words(arrays[k] + head), words(t[BLOCK] + 8 * ARRAY * k)
        one[DATA], one[RANK], one[FLAGS] = whole[DATA], whole[RANK], ARRAY_READY
        one[DIMENSIONS] = whole[DIMENSIONS]
        own = words(t[CUT] + 8 * GIVEN_ARRAY * k)
        if own[UNIT] != 0:
            n = words(whole[DIMENSIONS])[own[ALONG]]
            if count not in (-1, n):
                return -1
            count = n
            one[RANK], one[DIMENSIONS] = whole[RANK] - 1, put_dimensions(t, k, whole, own[ALONG])
            own[STEP] = own[UNIT] * size_of(one, 0)
        item[t[PLACE] + k] = t[BLOCK] + 8 * ARRAY * k - head
    for k in range(t[OUTSIDE]):
        item[t[PLACE] + t[GIVEN] + k] = arrays[t[GIVEN] + k]
    return count


@kernel
def want(t, arrays):
    """Say what stands for an item's results; how many bytes all sums have."""
    head, item, nbytes = setting(settings.OBJECT_HEAD), words(t[WORDS]), 0
    given = t[GIVEN] + t[OUTSIDE]
    for k in range(t[RESULTS]):
        result = words(t[PLAN] + 8 * RESULT * k)
        one = words(t[BLOCK] + 8 * ARRAY * (t[GIVEN] + k))
        one[RANK], one[DIMENSIONS], one[FLAGS] = 0, 0, ARRAY_READY
        if result[WANTED] >= 0:
            whole = words(arrays[given + result[WANTED]] + head)
            one[RANK], one[DIMENSIONS] = whole[RANK], whole[DIMENSIONS]
            if result[CODE] < 0:
                one[RANK] = whole[RANK] - 1
                one[DIMENSIONS] = put_dimensions(t, t[GIVEN] + k, whole, result[AXIS])
        result[NBYTES] = result[ITEMSIZE] * size_of(one, 0)
        if result[CODE] >= 0:
            nbytes += result[NBYTES]
        item[t[PLACE] + given + k] = t[BLOCK] + 8 * ARRAY * (t[GIVEN] + k) - head
    return nbytes


@kernel
def lines(nbytes):
    """Bytes of whole lines of the processor's cache."""
    return (nbytes + _LINE - 1) // _LINE * _LINE


@kernel
def make_places(t):
    """Memory for a part's sums, for terms and items, freed with it; 0 where there is none."""
    size = _LINE
    for k in range(t[RESULTS]):
        size += 2 * lines(words(t[PLAN] + 8 * RESULT * k)[NBYTES])
    for k in range(t[GIVEN]):
        size += lines(words(t[CUT] + 8 * GIVEN_ARRAY * k)[STEP])
    memory = libc_malloc(size)
    place = lines(memory)
    for k in range(t[RESULTS]):
        result = words(t[PLAN] + 8 * RESULT * k)
        result[SUM], result[TERM] = place, place + lines(result[NBYTES])
        place += 2 * lines(result[NBYTES])
    for k in range(t[GIVEN]):
        own = words(t[CUT] + 8 * GIVEN_ARRAY * k)
        if own[ALONG] != 0:
            words(t[BLOCK] + 8 * ARRAY * k)[DATA] = place
            place += lines(own[STEP])
    return memory


@kernel
def whole_of(t, arrays, result):
    """What stands for a result of the call."""
    head = setting(settings.OBJECT_HEAD)
    return words(arrays[t[GIVEN] + t[OUTSIDE] + result[WANTED]] + head)


@kernel
def give_item(t, arrays, item):
    """Say where the arrays of an item are, for all items one after another."""
    for k in range(t[GIVEN]):
        own, one = words(t[CUT] + 8 * GIVEN_ARRAY * k), words(t[BLOCK] + 8 * ARRAY * k)
        if own[ALONG] != 0:
            whole = words(arrays[k] + setting(settings.OBJECT_HEAD))
            copy_item(one, whole, own[ALONG], own[UNIT], item, True)
        elif item != 0:
            one[DATA] += own[STEP]


@kernel
def run_item(t, arrays, item, is_first):
    """Compute one item, and add what is added up to the sums of its part."""
    give_item(t, arrays, item)
    for k in range(t[RESULTS]):
        result = words(t[PLAN] + 8 * RESULT * k)
        one = words(t[BLOCK] + 8 * ARRAY * (t[GIVEN] + k))
        if result[AXIS] == 0:
            one[DATA] = whole_of(t, arrays, result)[DATA] + item * result[NBYTES]
        else:
            one[DATA] = result[SUM] if is_first else result[TERM]
    status = call(t[PROGRAM], (t[WORDS],))
    if status != OK:
        return status
    for k in range(t[RESULTS]):
        result = words(t[PLAN] + 8 * RESULT * k)
        if result[AXIS] < 0 and not is_first:
            add_elements(result[CODE], result[SUM], result[TERM], result[NBYTES])
        elif result[AXIS] > 0:
            one = words(t[BLOCK] + 8 * ARRAY * (t[GIVEN] + k))
            whole = whole_of(t, arrays, result)
            copy_item(one, whole, result[AXIS], result[ITEMSIZE], item, False)
    return OK


@kernel
def take_sums(t, arrays, is_first):
    """Add the sums of a part to those of the parts before it."""
    for k in range(t[RESULTS]):
        result = words(t[PLAN] + 8 * RESULT * k)
        if result[CODE] >= 0 and result[WANTED] >= 0:
            target = whole_of(t, arrays, result)[DATA]
            if is_first:
                copy_bytes(target, result[SUM], result[NBYTES])
            else:
                add_elements(result[CODE], target, result[SUM], result[NBYTES])


@kernel
def divide(t, arrays, count):
    """Divide the results of a mean."""
    for k in range(t[RESULTS]):
        result = words(t[PLAN] + 8 * RESULT * k)
        if result[WANTED] < 0 or result[DIVIDED] == 0 or count == 1:
            continue
        target, n = whole_of(t, arrays, result)[DATA], result[NBYTES] // result[ITEMSIZE]
        n *= count if result[CODE] < 0 else 1
        if result[DIVIDED] == 4:
            divide_floats(array_at(target, n, np.float32), np.float32(count))
        else:
            divide_floats(array_at(target, n, np.float64), np.float64(count))


@kernel
def divide_floats(array, divisor):
    """Divide each number of an array."""
    for i in range(len(array)):
        array[i] /= divisor


@kernel
def is_worth_help(t, began, done, count):
    """Whether threads of Python's are sooner done, as so many items took long.

    Where threads are not Python's, or a parallel loop calls, all are at work.
    """
    spent = moment() - began
    if spent < HELPED_BATCH_CYCLES or spent // done < HELPED_ITEM_CYCLES:
        return False
    is_long = spent // done * (count - done) > 4 * HELPED_BATCH_CYCLES
    return is_long and thread_state() != 0 and words(t[LOOPS])[0] == 0


@kernel
def run_parts(t, arrays, count, nbytes):
    """Compute all items, part by part; see `nbta.execution.batch.Results`."""
    parts = min(BATCH_PARTS, BATCH_SUMS // max(nbytes, 1))
    parts, began = min(count, max(BATCH_PARTS_LEAST, parts)), moment()
    for part in range(parts):
        start, end = count * part // parts, count * (part + 1) // parts
        for item in range(start, end):
            if is_interrupted(item):
                return INTERRUPTED
            status = run_item(t, arrays, item, item == start)
            if status != OK:
                return status if status in (INTERRUPTED, NOT_A_NUMBER) else HELP
        take_sums(t, arrays, part == 0)
        if is_worth_help(t, began, end, count):
            return HELP
    divide(t, arrays, count)
    return OK


@kernel
def sum_nothing(t, arrays):
    """The results for no items; a mean of these is an error."""
    for k in range(t[RESULTS]):
        result = words(t[PLAN] + 8 * RESULT * k)
        if result[DIVIDED] != 0:
            return HELP
        if result[CODE] >= 0 and result[WANTED] >= 0:
            target = array_at(whole_of(t, arrays, result)[DATA], result[NBYTES], np.uint8)
            for i in range(len(target)):
                target[i] = 0
    return OK


def run_items(table):
    """The results of a batch: the program that calls from compiled code run for it."""
    t, arrays = words(table), words(table + 8 * TABLE)
    count = cut(t, arrays)
    if count < 0:
        return HELP
    nbytes = want(t, arrays)
    if count == 0:
        return sum_nothing(t, arrays)
    memory = make_places(t)
    if memory == 0:
        return MEMORY
    status = run_parts(t, arrays, count, nbytes)
    libc_free(memory)
    return status


RUN_ITEMS = Routine(run_items, types.int64(types.int64), {"nogil": True, "error_model": "numpy"})
_loaded = []


def address() -> int:
    """The address of `run_items`, loaded or compiled at its first use."""
    if not _loaded:
        _loaded.append(RUN_ITEMS.load())
    return _loaded[0].address
