"""What loops ask for one iteration ahead: rows of a large matrix, and of tapes that are read back.

A tile's iterations read a few kilobytes of each row, so that nothing read so far tells the
processor where it goes on (`nbta.codegen.prefetching`). With 50 rows of 80,000 numbers a third of a
gradient's time went by in waiting for them. The loop that reads them first asks for those of its
next iteration; later ones, such as the loop back, find them in the cache.

Adjoint iterations read the rows of a tape from the last to the first, but the items of a row from
the first to the last. That is a saw to the processor: after each row it goes on two rows below.
Each row asks for as many items below its own. In turns, with tapes of 3 to 50 MB, a gradient of 100
steps on a grid of 64 by 64, 128 by 128 and 256 by 256 takes 0.63, 0.57 and 0.72 of the time.
"""

from nbta.codegen.values import Block, product, times, total
from nbta.codegen.windows import strides_of
from nbta.compiler.access_sets import indices_of
from nbta.graph.graph import everything
from nbta.graph.views import is_loop, origin
from nbta.loops import both, do, over, select, when
from nbta.loops.nodes import ZERO
from nbta.ops.arrays.tensor_arrays import READ
from nbta.ops.indexing.items import GETITEM, SLICE
from nbta.runtime import plain as rt
from nbta.shapes import IterationDim
from nbta.tuning import CACHE_LINE, PREFETCH_STRETCH, PREFETCHED_MATRIX, PREFETCHED_TAPE


def look_ahead(code, op) -> None:
    """Let the loop over a tile's part of a row ask for that of the next iteration's row."""
    part = code.values.get(op.outputs[0]) if op.record is SLICE else None
    if not isinstance(part, Block) or len(part.dimensions) != 1 or part.offset == ZERO:
        return
    dimension, read = op.outputs[0].spec.shape[0], op.inputs[0].op
    if (
        type(dimension) is not IterationDim
        or read.record is not GETITEM
        or read.graph is not op.graph
    ):
        return
    x, key = read.inputs[0], (origin(read.inputs[0]), dimension)
    step = _step(code, read, code.values[x]) if key not in code.asked else None
    if step is not None:
        code.asked.add(key)
        _ask(code, part, code.values[x].dimensions, step)


def _step(code, read, matrix):
    """The node of how far apart the rows of two iterations are, and whether they go backwards."""
    body = read.graph
    if (
        not is_loop(getattr(body, "owner", None))
        or matrix.offset != ZERO
        or len(matrix.dimensions) < 2
    ):
        return None
    *indices, along = indices_of(read)
    if not isinstance(along, slice) or any(isinstance(index, slice) for index in indices):
        return None
    forms = [code.counts.affine(index, body) for index in indices]
    steps = [None if form is None else form[1] for form in forms]
    moved = [axis for axis, step in enumerate(steps) if step != 0]
    if len(moved) != 1 or steps[moved[0]] is None:
        return None
    (axis,) = moved
    distance = times(abs(steps[axis]), strides_of(code, matrix.dimensions)[axis])
    return distance, steps[axis] < 0


def _ask(code, part, dimensions, step):
    """After the last row comes the first one, for the next tile."""
    (length,), (distance, backwards), size = part.dimensions, step, product(dimensions)
    if backwards:
        there = code.variable(part.offset - distance, "o")
        there = code.variable(select(there < 0, there + size + length, there), "o")
    else:
        there = code.variable(total(part.offset, distance), "o")
        there = code.variable(select(there >= size, there - size + length, there), "o")
    large = both(size > PREFETCHED_MATRIX // part.dtype.itemsize, length < dimensions[-1])
    count = code.derived(select(large, PREFETCH_STRETCH, 0))
    code.ahead[part.base, part.offset] = there, count


def read_backwards(code, body) -> dict:
    """The numbers that each iteration of a loop reads from a packed tape below the one before.

    By array, an index of one of them.
    """
    found: dict = {}
    for op in everything(body):
        if op.record is READ and code.arrays.has(op) and goes_back(code, op, body):
            array = code.arrays.of(code, op.inputs[0])
            if array.packed and not array.rank:
                found.setdefault(array, op.inputs[1])
    return found


def goes_back(code, op, body) -> bool:
    """Whether iterations of a body read one element of an array after another, from the last."""
    form = code.counts.affine(op.inputs[1], body)
    return form is not None and form[1] == -1


def ask_below(code, array, place, count) -> None:
    """Ask for as many items of a tape below a place: no such items need be there."""
    k, large = code.name("k"), array.word(rt.DATA + 1) > PREFETCHED_TAPE
    each = over(k, 0, count, CACHE_LINE // array.itemsize)
    code.nested([when(large), each], do("fetch", array.data.name, place - 1 - k))
