"""Functions of vector instructions for the processor at hand, built for LLVM directly.

Its own vectoriser keeps no part of a matrix in registers over a loop.
"""

from functools import partial
from itertools import starmap

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.numba_private import cgutils

INT32, INT64 = ir.IntType(32), ir.IntType(64)
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


@intrinsic(prefer_literal=True)
def room(typingctx, nbytes):
    """Address of so many bytes that the function has until it returns, as vectors are aligned."""

    def codegen(context, builder, sig, args):
        kind = ir.ArrayType(ir.IntType(8), nbytes.literal_value)
        with builder.goto_entry_block():  # `alloca_once` would have LLVM fill it, for a minute
            place = builder.alloca(kind)
        place.align = 64
        return builder.ptrtoint(place, INT64)

    return types.int64(nbytes), codegen
