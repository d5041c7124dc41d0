"""Products of matrices, which generated code calls by address.

Products are made of vector instructions for the processor at hand, built for LLVM directly: its own
vectoriser keeps no part of a matrix in registers over a loop. A tile of the product stays in
registers while the inner dimension is gone through. Its last vector of columns begins so that it
ends with the tile: vectors may overlap, and columns that are computed twice come out twice the
same. So nothing is masked, and nothing is left for a loop of scalars. Large products go to BLAS.

Matrices are addresses, and strides count items.
"""

from functools import partial
from itertools import starmap

from llvmlite import ir
from numba import types
from numba.extending import get_cython_function_address, intrinsic, register_jitable

from nbta.runtime.intrinsics import ADD, INT64, LEFT, RIGHT, clear, pointer
from nbta.runtime.machine_code import Routine
from nbta.runtime.memory import room
from nbta.runtime.numba_private import cgutils
from nbta.runtime.plain import plain
from nbta.tuning import (
    BLAS_PRODUCT,
    BLAS_PRODUCT_NARROW,
    DOT_TILES,
    PLAIN_PRODUCT,
    PRODUCT_BYTES,
    PRODUCT_DEPTH,
    ROW_SLICE,
    SPILLED_BYTES,
    SUM_CHAINS,
    TILE_HEIGHT,
    TRANSPOSED_ROWS,
)

INT32 = ir.IntType(32)
#: A product and a sum may be one instruction.
FLAGS = ("contract",)


class Machine:
    """What the processor that code is made for can do. Cached machine code goes by it too."""

    def __init__(self, context):
        features = set(context.codegen().magic_tuple()[2].split(","))
        self.is_wide = "+avx512f" in features
        #: Bytes of a vector.
        self.width = 64 if self.is_wide else 32 if "+avx" in features else 16
        #: Whether there are 16 vector registers, not 32.
        self.has_few = "+sse2" in features and not self.is_wide


def lanes_of(context, number):
    """Items of a vector."""
    return Machine(context).width * 8 // number.bitwidth


def _parts(values, count):
    return [tuple(values[i : i + count]) for i in range(0, len(values), count)]


class Builder:
    """Builds a function that takes integers: addresses of items of one type, strides, counts."""

    def __init__(self, context, module, name, number, arity):
        self.context, self.number = context, number
        self.item = context.get_value_type(number)
        self.nbytes = number.bitwidth // 8
        kind = ir.FunctionType(ir.VoidType(), [INT64] * arity)
        self.function = ir.Function(module, kind, name)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        self.builder = ir.IRBuilder(self.function.append_basic_block())
        self.lanes = lanes_of(context, number)

    def zero(self, lanes):
        """A vector of zeros."""
        return ir.Constant(ir.VectorType(self.item, lanes), None)

    def items(self, address):
        """A pointer to items."""
        return self.builder.inttoptr(address, self.item.as_pointer())

    def place(self, pointer, *steps):
        """Where the item is that lies ``n * stride`` items further on, for each such pair."""
        for n, stride in steps:
            n = n if isinstance(n, ir.Value) else INT64(n)
            pointer = self.builder.gep(pointer, [self.builder.mul(n, stride) if stride else n])
        return pointer

    def load(self, pointer, lanes):
        """A vector from where its first item is."""
        pointer = self.builder.bitcast(pointer, self.zero(lanes).type.as_pointer())
        return self.builder.load(pointer, align=self.nbytes)

    def load_some(self, pointer, lanes, mask):
        """A vector with zeros where a mask is not set; nothing is read there."""
        zero = self.zero(lanes)
        pointer = self.builder.bitcast(pointer, zero.type.as_pointer())
        kind = ir.FunctionType(zero.type, [pointer.type, INT32, mask.type, zero.type])
        name = f"llvm.masked.load.v{lanes}f{self.number.bitwidth}.p0"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [pointer, INT32(self.nbytes), mask, zero])

    def store(self, vector, pointer):
        """Put a vector to a place."""
        pointer = self.builder.bitcast(pointer, vector.type.as_pointer())
        self.builder.store(vector, pointer, align=self.nbytes)

    def spread(self, value, lanes):
        """A value in all lanes."""
        empty = ir.VectorType(value.type, lanes)(ir.Undefined)
        first = self.builder.insert_element(empty, value, INT32(0))
        return self.shuffle(first, empty, [0] * lanes)

    def spread_item(self, pointer, lanes):
        """An item in all lanes."""
        return self.spread(self.builder.load(pointer, align=self.nbytes), lanes)

    def shuffle(self, one, other, places):
        """Items of two vectors."""
        mask = ir.Constant(ir.VectorType(INT32, len(places)), places)
        return self.builder.shuffle_vector(one, other, mask)

    def first_lanes(self, count, lanes):
        """A mask of so many lanes."""
        numbers = ir.Constant(ir.VectorType(INT64, lanes), list(range(lanes)))
        return self.builder.icmp_signed("<", numbers, self.spread(count, lanes))

    def add(self, one, other):
        """A sum."""
        return self.builder.fadd(one, other, flags=FLAGS)

    def accumulate(self, total, one, other):
        """``total + one * other``, rounded once where the processor can."""
        return self.add(total, self.builder.fmul(one, other, flags=FLAGS))

    def repeat(self, values, test, body):
        """``values = body(*values)`` while ``test(*values)`` holds; the last values."""
        builder, before = self.builder, self.builder.block
        head, inside, after = map(self.function.append_basic_block, ("head", "inside", "after"))
        builder.branch(head)
        builder.position_at_end(head)
        phis = [builder.phi(value.type) for value in values]
        builder.cbranch(test(*phis), inside, after)
        builder.position_at_end(inside)
        found = body(*phis)
        builder.branch(head)
        for phi, first, later in zip(phis, values, found, strict=True):
            phi.add_incoming(first, before)
            phi.add_incoming(later, builder.block)
        builder.position_at_end(after)
        return phis

    def loop(self, start, stop, step, carried, body):
        """In full steps, ``body(k, carried)`` gives what is carried on. The last k, and that."""
        builder = self.builder

        def test(k, *values):
            return builder.icmp_signed("<=", builder.add(k, INT64(step)), stop)

        def further(k, *values):
            found = body(k, values)
            return [builder.add(k, INT64(step)), *found]

        k, *values = self.repeat([start, *carried], test, further)
        return k, values

    def when(self, condition, values, body):
        """What a body gives where a condition holds, else the values."""
        before = self.builder.block
        with self.builder.if_then(condition):
            found = body()
            last = self.builder.block
        phis = [self.builder.phi(value.type) for value in values]
        for phi, value, other in zip(phis, values, found, strict=True):
            phi.add_incoming(value, before)
            phi.add_incoming(other, last)
        return phis

    def add_up(self, totals, count):
        """The sum of sets of ``count`` vectors, by halves."""
        sets = _parts(totals, count)
        while len(sets) > 1:
            half = (len(sets) + 1) // 2
            sums = [tuple(map(self.add, *two)) for two in zip(sets, sets[half:], strict=False)]
            sets = sums + sets[len(sums) : half]
        return list(sets[0])

    def sums(self, vectors):
        """A vector with the sum of each vector's lanes; halves of two are added at once."""
        each = vectors[0].type.count  # lanes for partial sums of one vector
        while each > 1:
            pairs = _parts(vectors, 2) if len(vectors) > 1 else [(*vectors, *vectors)]
            span = vectors[0].type.count * min(len(vectors), 2)
            low = [start + i for start in range(0, span, each) for i in range(each // 2)]
            high = [place + each // 2 for place in low]
            vectors = [
                self.add(self.shuffle(*pair, low), self.shuffle(*pair, high)) for pair in pairs
            ]
            each //= 2
        while len(vectors) > 1:
            both = list(range(2 * vectors[0].type.count))
            join = partial(self.shuffle, places=both)
            vectors = list(starmap(join, _parts(vectors, 2)))
        return vectors[0]

    def less(self, one, other):
        """Whether one integer is less than another."""
        return self.builder.icmp_signed("<", one, other)

    def other(self, name, arity, build):
        """A function of another name for the same numbers."""
        return function_of(self.context, self.builder.module, name, self.number, arity, build)

    def go_on(self, which, choices):
        """End as the function of a number, which takes the same arguments."""
        builder = self.builder
        default = self.function.append_basic_block("unknown")
        switch = builder.switch(which, default)
        with builder.goto_block(default):
            builder.unreachable()
        for number, function in choices.items():
            block = self.function.append_basic_block("choice")
            switch.add_case(INT64(number), block)
            with builder.goto_block(block):
                builder.call(function, self.function.args, tail=True)
                builder.ret_void()


def function_of(context, module, name, number, arity, build):
    """The function of a name in a module, which ``build(made)`` fills at its first use."""
    name = f"nbta.{name}.{number.name}"
    if name in module.globals:
        return module.globals[name]
    made = Builder(context, module, name, number, arity)
    build(made)
    return made.function


def called(name, arity, build):
    """An intrinsic ``(number, *arguments)`` that calls a function with this content."""

    def codegen(context, builder, sig, args):
        item = sig.args[0].instance_type
        function = function_of(context, builder.module, name, item, arity, build)
        builder.call(function, args[1:])
        return context.get_dummy_value()

    def signature(number):
        return types.void(number, *[types.int64] * arity), codegen

    return signature


@intrinsic
def lanes(typingctx, number):
    """Items of a vector."""

    def codegen(context, builder, sig, args):
        return INT64(lanes_of(context, number.instance_type))

    return types.int64(number), codegen


def vectors_of(context):
    """Vectors in a row of a tile at most."""
    return 2 if Machine(context).has_few else 4


def _sets(count):
    """How often each of a few sums is to be kept."""
    return max(1, -(-SUM_CHAINS // count))


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
        for height in range(1, TILE_HEIGHT + 1):
            name, build = f"tile.{height}.{vectors}.{lanes}", partial(_tile, height, vectors, lanes)
            choices[k * TILE_HEIGHT + height] = made.other(name, 11, build)
        which = builder.add(which, builder.zext(made.less(INT64(most), columns), INT64))
    which = builder.add(builder.mul(which, INT64(TILE_HEIGHT)), rows)
    made.go_on(which, choices)


def _tiles(made):
    """Tiles below each other, the last two about as high."""
    a, a_row, a_step, b, b_step, out, out_row, inner, rows, columns, adds = made.function.args
    builder, one, most = made.builder, made.other("tile", 11, _one_tile), INT64(TILE_HEIGHT)
    at = partial(_row_address, made)

    def body(i):
        left = builder.sub(rows, i)
        half = builder.lshr(builder.add(left, INT64(1)), INT64(1))
        height = builder.select(made.less(left, INT64(2 * TILE_HEIGHT)), half, most)
        height = builder.select(made.less(most, left), height, left)
        x, z = at(a, i, a_row), at(out, i, out_row)
        args = [x, a_row, a_step, b, b_step, z, out_row, inner, height, columns, adds]
        builder.call(one, args)
        return [builder.add(i, height)]

    with builder.if_then(made.less(rows, INT64(TILE_HEIGHT + 1))):
        builder.call(one, made.function.args, tail=True)
        builder.ret_void()
    made.repeat([INT64(0)], lambda i: made.less(i, rows), body)
    builder.ret_void()


def _row_address(made, start, i, row):
    items = made.builder.mul(i, row)
    return made.builder.add(start, made.builder.mul(items, INT64(made.nbytes)))


def _some_dots(made):
    """Choose among `DOT_TILES`."""
    *_, rows, columns, _ = made.function.args
    choices = {
        16 * height + width: made.other(f"dots.{height}.{width}", 10, partial(_dots, height, width))
        for height, width in DOT_TILES
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


OPTIONS = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz"}}
_BLAS = {"float32": "sgemm", "float64": "dgemm", "complex64": "cgemm", "complex128": "zgemm"}

_BYTE, _INT32 = ir.IntType(8), ir.IntType(32)


def blas_address(name: str) -> int:
    """SciPy's matrix product of a dtype, or its function of BLAS of another name."""
    return get_cython_function_address("scipy.linalg.cython_blas", _BLAS.get(name, name))


@intrinsic
def _call_blas(typingctx, number, blas, flags, sizes, leads, places):
    """Fortran's GEMM, whose arguments are all pointers: ``c = op(a) op(b)``, by columns."""
    item = number.instance_type

    def codegen(context, builder, sig, args):
        _, blas, flags, sizes, leads, places = args
        numbers = context.get_value_type(item)

        def kept(value, kind):
            return cgutils.alloca_once_value(builder, builder.trunc(value, kind))

        def turned(bit):
            is_set = builder.icmp_unsigned("!=", builder.and_(flags, INT64(bit)), INT64(0))
            return builder.select(is_set, INT64(ord("T")), INT64(ord("N")))

        def constant(value):
            made = context.get_constant_generic(builder, item, value)
            return cgutils.alloca_once_value(builder, made)

        m, n, k = (kept(v, _INT32) for v in cgutils.unpack_tuple(builder, sizes))
        a_lead, b_lead, c_lead = (kept(v, _INT32) for v in cgutils.unpack_tuple(builder, leads))
        pointers = [builder.inttoptr(v, numbers.as_pointer())
                    for v in cgutils.unpack_tuple(builder, places)]  # fmt: skip
        adds = builder.icmp_unsigned("!=", builder.and_(flags, INT64(ADD)), INT64(0))
        alpha, zero = constant(1), constant(0)
        beta = builder.select(adds, alpha, zero)
        given = [
            kept(turned(RIGHT), _BYTE), kept(turned(LEFT), _BYTE), m, n, k, alpha,
            pointers[0], a_lead, pointers[1], b_lead, beta, pointers[2], c_lead,
        ]  # fmt: skip
        kind = ir.FunctionType(ir.VoidType(), [v.type for v in given])
        builder.call(builder.inttoptr(blas, kind.as_pointer()), given)
        return INT64(0)

    return types.int64(number, types.int64, types.int64, sizes, leads, places), codegen


def _by_blas(number):
    """By SciPy's BLAS."""

    @register_jitable
    def by_blas(a, b, out, rows, inner, columns, flags, blas):
        right = inner if flags & RIGHT else columns
        left = rows if flags & LEFT else inner
        sizes = (columns, rows, inner)
        return _call_blas(number, blas, flags, sizes, (right, left, columns), (b, a, out))

    return by_blas


def _by_loops(number):
    """Plain loops, which add."""

    @register_jitable
    def by_rows(x, y, z, sizes, step, along):
        rows, inner, columns = sizes
        for i in range(rows):
            for k in range(inner):
                s, o, p = x[i * step + k * along], i * columns, k * columns
                for j in range(columns):
                    z[o + j] = z[o + j] + s * y[p + j]

    @register_jitable
    def by_items(x, y, z, sizes, step, along):
        rows, inner, columns = sizes
        for i in range(rows):
            for j in range(columns):
                s = number(0)
                for k in range(inner):
                    s += x[i * step + k * along] * y[j * inner + k]
                z[i * columns + j] = z[i * columns + j] + s

    return by_rows, by_items


def _complex_gemm(number):
    """``out = a @ b`` of C-ordered matrices, by BLAS or by loops where they are small."""
    by_blas, (by_rows, by_items) = _by_blas(number), _by_loops(number)

    def gemm(a, b, out, rows, inner, columns, flags, blas):
        if rows == 0 or columns == 0:
            return 0
        if rows * inner * columns > PLAIN_PRODUCT:
            return by_blas(a, b, out, rows, inner, columns, flags, blas)
        x, y, z = pointer(number, a, 0), pointer(number, b, 1), pointer(number, out, 2)
        if flags & ADD == 0:
            clear(z, 0, rows * columns)
        sizes, (step, along) = (rows, inner, columns), (1, rows) if flags & LEFT else (inner, 1)
        if flags & RIGHT == 0:
            by_rows(x, y, z, sizes, step, along)
        else:
            by_items(x, y, z, sizes, step, along)
        return 0

    return _named(gemm, number)


def _named(function, number):
    function.__name__ = function.__qualname__ = f"gemm_{number.name}"
    return function


@intrinsic
def _large(typingctx):
    """Multiply-adds above which BLAS is called."""

    def codegen(context, builder, sig, args):
        return INT64(BLAS_PRODUCT if Machine(context).is_wide else BLAS_PRODUCT_NARROW)

    return types.int64(), codegen


@register_jitable
def _tile_width(left, lane, most):
    """Columns of the next tiles, so that the last ones are no narrower than a vector."""
    if left <= most:
        return left
    if left >= 2 * most:
        return most
    half = (left + 2 * lane - 1) // (2 * lane) * lane
    return half if left - half >= lane else half - lane


@register_jitable
def _depth(left, most):
    """Rows of the inner dimension to go through next; the last two times about as many."""
    if left <= most:
        return left
    return most if left >= 2 * most else (left + 1) // 2


def _gemm(number):
    """``out = a @ b`` of C-ordered matrices, by vectors in registers, or by BLAS where large."""
    by_blas, size = _by_blas(number), number.bitwidth // 8

    # One function: LLVM goes through vector code again in each that calls the one that it is in.
    def gemm(a, b, out, rows, inner, columns, flags, blas):
        if rows * inner * columns == 0:
            if flags & ADD == 0:
                clear(pointer(number, out, 2), 0, rows * columns)
            return 0
        if columns == 1:  # out.T = b.T @ a.T
            flags = (flags & ADD) | (RIGHT if flags & LEFT == 0 or rows == 1 else 0)
            a, b, rows, columns = b, a, 1, rows
        elif rows * inner * columns > _large():
            return by_blas(a, b, out, rows, inner, columns, flags, blas)
        adds, turned, is_row = (flags & ADD) // ADD, flags & RIGHT, rows == 1
        if turned and (is_row or (rows < TRANSPOSED_ROWS and flags & LEFT == 0)):
            dots(number, a, inner, b, inner, out, columns, inner, rows, columns, adds)
            return 0
        row, step = (1, rows) if flags & LEFT else (inner, 1)
        deep = ROW_SLICE if is_row and inner * columns * size >= SPILLED_BYTES else PRODUCT_DEPTH
        k, panel = 0, room(PRODUCT_BYTES)
        while k < inner:
            depth, j, x = _depth(inner - k, deep), 0, a + k * step * size
            while j < columns:
                width = _tile_width(columns - j, lanes(number), widest(number))
                y, y_step, z = b + (k * columns + j) * size, columns, out + j * size
                if turned:
                    y, y_step = panel, width
                    turn(number, b + (j * inner + k) * size, inner, panel, width, width, depth)
                tiles(number, x, row, step, y, y_step, z, columns, depth, rows, width, adds)
                j += width
            k, adds = k + depth, 1
        return 0

    return _named(gemm, number)


def routines(arity, *functions, by_processor=False):
    """Functions of so many integers, by name."""
    signature = types.int64(*[types.int64] * arity)
    return {f.__name__: Routine(f, signature, OPTIONS, by_processor) for f in functions}


#: What compiled graphs call by its address, by name.
FUNCTIONS = routines(5, plain)
FUNCTIONS |= routines(8, *map(_gemm, (types.float32, types.float64)), by_processor=True)
FUNCTIONS |= routines(8, *map(_complex_gemm, (types.complex64, types.complex128)))
