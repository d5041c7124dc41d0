"""Tiles of matrix products in vector registers.

A tile of the product stays in registers while the inner dimension is gone through. Its last vector
of columns begins so that it ends with the tile: vectors may overlap, and columns that are computed
twice come out twice the same. So nothing is masked, and nothing is left for a loop of scalars.

Matrices are addresses, and strides count items.
"""

from functools import partial

from numba import types
from numba.extending import intrinsic

from nbta.runtime.vector_code import INT64, Machine, called, lanes_of

#: Rows of a tile at most. With 4 vectors a row it takes 24 of 32 registers, with 2 vectors 12 of
#: 16; five more hold what is being multiplied.
HEIGHT = 6
#: Independent sums that keep two pipelines of four stages busy.
CHAINS = 8
#: Rows and columns that `dots` can do at once.
DOTS = ((4, 4), (1, 8), (1, 4), (4, 1), (1, 1))


def vectors_of(context):
    """Vectors in a row of a tile at most."""
    return 2 if Machine(context).has_few else 4


def _sets(count):
    """How often each of a few sums is to be kept."""
    return max(1, -(-CHAINS // count))


def _finish(made, rows, out, out_row, places, adds):
    """Store vectors to their places in each row of the result, or add them to what is there."""
    with made.builder.if_else(made.builder.icmp_signed("!=", adds, INT64(0))) as branches:
        for branch, is_sum in zip(branches, (True, False), strict=True):
            with branch:
                for i, row in enumerate(rows):
                    at = [made.place(out, (i, out_row), (place, None)) for place in places]
                    if is_sum:  # all are loaded before any is stored: they may overlap
                        there = [made.load(p, v.type.count) for p, v in zip(at, row, strict=True)]
                        row = list(map(made.add, there, row))
                    for vector, place in zip(row, at, strict=True):
                        made.store(vector, place)
    made.builder.ret_void()


def _tile(height, vectors, lanes, made):
    """``height`` rows of vectors: each item of a times vectors of b."""
    *places, inner, _, columns, adds = made.function.args
    a, a_row, a_step, b, b_step, out, out_row = places
    a, b, out = map(made.items, (a, b, out))
    builder, size = made.builder, height * vectors
    starts = [lanes * v for v in range(vectors)]
    if vectors > 1:
        starts[-1] = builder.sub(columns, INT64(lanes))

    def body(k, totals, depth):
        totals = iter(totals)
        found = []
        for step in range(depth):
            at = builder.add(k, INT64(step))
            right = [made.load(made.place(b, (at, b_step), (s, None)), lanes) for s in starts]
            for i in range(height):
                left = made.spread_item(made.place(a, (at, a_step), (i, a_row)), lanes)
                found += [made.accumulate(next(totals), left, vector) for vector in right]
        return found

    sets = _sets(size)
    totals = [made.zero(lanes)] * (sets * size)
    k, totals = made.loop(INT64(0), inner, sets, totals, partial(body, depth=sets))
    totals = made.add_up(totals, size)
    if sets > 1:
        _, totals = made.loop(k, inner, 1, totals, partial(body, depth=1))
    rows = [totals[i : i + vectors] for i in range(0, size, vectors)]
    _finish(made, rows, out, out_row, starts, adds)


def _dots(height, width, made):
    """Rows of a by rows of b, both contiguous."""
    a, a_row, b, b_row, out, out_row, inner, _, _, adds = made.function.args
    a, b, out = map(made.items, (a, b, out))
    builder, lanes, size = made.builder, made.lanes, height * width

    def products(at, totals, load):
        left = [load(made.place(a, (i, a_row), (at, None))) for i in range(height)]
        right = [load(made.place(b, (j, b_row), (at, None))) for j in range(width)]
        pairs = [(x, y) for x in left for y in right]
        return [made.accumulate(t, *pair) for t, pair in zip(totals, pairs, strict=True)]

    def body(k, totals, depth):
        found = []
        for step in range(depth):
            at = builder.add(k, INT64(step * lanes))
            load = partial(made.load, lanes=lanes)
            found += products(at, totals[step * size : (step + 1) * size], load)
        return found

    sets = _sets(size)
    totals = [made.zero(lanes)] * (sets * size)
    k, totals = made.loop(INT64(0), inner, sets * lanes, totals, partial(body, depth=sets))
    totals = made.add_up(totals, size)
    if sets > 1:
        k, totals = made.loop(k, inner, lanes, totals, partial(body, depth=1))

    def rest():
        mask = made.first_lanes(builder.sub(inner, k), lanes)
        return products(k, totals, partial(made.load_some, lanes=lanes, mask=mask))

    totals = made.when(builder.icmp_signed("<", k, inner), totals, rest)
    rows = [[made.sums(totals[i : i + width])] for i in range(0, size, width)]
    _finish(made, rows, out, out_row, [0], adds)


def _turned(made, vectors):
    """A square of vectors transposed: halves change places, then quarters, and so on."""
    size = half = len(vectors)
    while half := half // 2:
        low = [k if k & half == 0 else size + k - half for k in range(size)]
        high = [k + half if k & half == 0 else size + k for k in range(size)]
        mixed = list(vectors)
        for n in (n for n in range(size) if n & half == 0):
            pair = vectors[n], vectors[n + half]
            mixed[n], mixed[n + half] = made.shuffle(*pair, low), made.shuffle(*pair, high)
        vectors = mixed
    return vectors


def _turn_squares(made):
    """Write a matrix transposed, in squares, of which the last ones overlap."""
    source, row, target, target_row, rows, columns = made.function.args
    source, target = map(made.items, (source, target))
    builder, size = made.builder, made.lanes

    def clipped(n, count):
        last = builder.sub(count, INT64(size))
        return builder.select(made.less(n, last), n, last)

    def square(j, _, i):
        i, j = clipped(i, rows), clipped(j, columns)
        start = made.place(source, (i, row), (j, None))
        vectors = [made.load(made.place(start, (n, row)), size) for n in range(size)]
        start = made.place(target, (j, target_row), (i, None))
        for n, vector in enumerate(_turned(made, vectors)):
            made.store(vector, made.place(start, (n, target_row)))
        return []

    def across(i, _):
        made.loop(INT64(0), builder.add(columns, INT64(size - 1)), size, [], partial(square, i=i))
        return []

    made.loop(INT64(0), builder.add(rows, INT64(size - 1)), size, [], across)
    builder.ret_void()


def _turn_items(made):
    """Write a matrix transposed that is too small for squares."""
    source, row, target, target_row, rows, columns = made.function.args
    source, target = map(made.items, (source, target))

    def item(j, _, i):
        one = made.load(made.place(source, (i, row), (j, None)), 1)
        made.store(one, made.place(target, (j, target_row), (i, None)))
        return []

    def across(i, _):
        made.loop(INT64(0), columns, 1, [], partial(item, i=i))
        return []

    made.loop(INT64(0), rows, 1, [], across)
    made.builder.ret_void()


def _turn(made):
    *_, rows, columns = made.function.args
    squares = [made.less(INT64(made.lanes - 1), size) for size in (rows, columns)]
    which = made.builder.zext(made.builder.and_(*squares), INT64)
    functions = {"turn.items": _turn_items, "turn.squares": _turn_squares}
    made.go_on(which, {k: made.other(n, 6, functions[n]) for k, n in enumerate(functions)})


def _widths(context, lanes):
    """Vectors and their lanes for tiles of all widths, and the most columns of each."""
    narrow, half = [], lanes // 2
    while half > 1:
        narrow.insert(0, ((2, half), min(2 * half, lanes - 1)))
        half //= 2
    return narrow + [((v, lanes), v * lanes) for v in range(1, vectors_of(context) + 1)]


def _one_tile(made):
    """Choose among tiles of all sizes."""
    *_, rows, columns, _ = made.function.args
    builder, choices, which = made.builder, {}, INT64(0)
    for k, ((vectors, lanes), most) in enumerate(_widths(made.context, made.lanes)):
        for height in range(1, HEIGHT + 1):
            name, build = f"tile.{height}.{vectors}.{lanes}", partial(_tile, height, vectors, lanes)
            choices[k * HEIGHT + height] = made.other(name, 11, build)
        which = builder.add(which, builder.zext(made.less(INT64(most), columns), INT64))
    which = builder.add(builder.mul(which, INT64(HEIGHT)), rows)
    made.go_on(which, choices)


def _tiles(made):
    """Tiles below each other, the last two about as high."""
    a, a_row, a_step, b, b_step, out, out_row, inner, rows, columns, adds = made.function.args
    builder, one, most = made.builder, made.other("tile", 11, _one_tile), INT64(HEIGHT)
    at = partial(_row_address, made)

    def body(i):
        left = builder.sub(rows, i)
        half = builder.lshr(builder.add(left, INT64(1)), INT64(1))
        height = builder.select(made.less(left, INT64(2 * HEIGHT)), half, most)
        height = builder.select(made.less(most, left), height, left)
        x, z = at(a, i, a_row), at(out, i, out_row)
        args = [x, a_row, a_step, b, b_step, z, out_row, inner, height, columns, adds]
        builder.call(one, args)
        return [builder.add(i, height)]

    with builder.if_then(made.less(rows, INT64(HEIGHT + 1))):
        builder.call(one, made.function.args, tail=True)
        builder.ret_void()
    made.repeat([INT64(0)], lambda i: made.less(i, rows), body)
    builder.ret_void()


def _row_address(made, start, i, row):
    items = made.builder.mul(i, row)
    return made.builder.add(start, made.builder.mul(items, INT64(made.nbytes)))


def _some_dots(made):
    """Choose among `DOTS`."""
    *_, rows, columns, _ = made.function.args
    choices = {
        16 * height + width: made.other(f"dots.{height}.{width}", 10, partial(_dots, height, width))
        for height, width in DOTS
    }
    made.go_on(made.builder.add(made.builder.mul(rows, INT64(16)), columns), choices)


def _all_dots(made):
    """Four rows by four of b, or one by eight; the rest one by one or one by four."""
    a, a_row, b, b_row, out, out_row, inner, rows, columns, adds = made.function.args
    builder, some = made.builder, made.other("some_dots", 10, _some_dots)
    at, four = partial(_row_address, made), INT64(4)

    def across(j, i, height):
        left, is_row = builder.sub(columns, j), made.less(height, four)
        most = builder.select(is_row, INT64(8), four)
        fewer = builder.select(made.less(left, four), INT64(1), four)
        width = builder.select(made.less(left, most), fewer, most)
        z = at(at(out, i, out_row), j, INT64(1))
        x, y = at(a, i, a_row), at(b, j, b_row)
        args = [x, a_row, y, b_row, z, out_row, inner, height, width, adds]
        builder.call(some, args)
        return [builder.add(j, width)]

    def down(i):
        height = builder.select(made.less(builder.sub(rows, i), four), INT64(1), four)
        body = partial(across, i=i, height=height)
        made.repeat([INT64(0)], lambda j: made.less(j, columns), body)
        return [builder.add(i, height)]

    made.repeat([INT64(0)], lambda i: made.less(i, rows), down)
    builder.ret_void()


@intrinsic
def tiles(typingctx, number, a, a_row, a_step, b, b_step, out, out_row, inner, rows, columns, adds):
    """From 2 to `widest` columns of a product, or added to what is there."""
    return called("tiles", 11, _tiles)(number)


@intrinsic
def dots(typingctx, number, a, a_row, b, b_row, out, out_row, inner, rows, columns, adds):
    """A product of rows by rows, or added to what is there."""
    return called("dots", 10, _all_dots)(number)


@intrinsic
def turn(typingctx, number, source, row, target, target_row, rows, columns):
    """Write a matrix transposed."""
    return called("turn", 6, _turn)(number)


@intrinsic
def widest(typingctx, number):
    """Columns that `tiles` can do at once."""

    def codegen(context, builder, sig, args):
        return INT64(lanes_of(context, number.instance_type) * vectors_of(context))

    return types.int64(number), codegen
