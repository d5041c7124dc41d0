"""The fields of a store: in its memory, or promoted to local variables of a compiled function.

A loop that writes to an array would load the array's fields again at each operation: LLVM cannot
tell that the elements and states that it stores are not the fields, and what runs where an
operation is not simple may change them. So a function takes an array apart once
(`nbta.runtime.promotion` says where), into a block on its stack that LLVM turns into registers as
its address goes nowhere. The rules of `nbta.runtime.slots` take the address of a store, or such a
block.

What a block holds is what the store holds: the one field that fast paths change, ``size``, is
stored in both, and all are loaded again after whatever may have changed the store. Two blocks of
one store would not see each other's ``size``, so neither has limits: all that they do goes to the
kernels, as in an array without fast paths.
"""

from functools import cache

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_jitable, register_model

from nbta.runtime.memory import INT64, build_array, release
from nbta.runtime.numba_private import cgutils
from nbta.runtime.store import FIELD
from nbta.shapes import MAX_RANK

#: Those that fast paths go by. The elements' address is loaded ahead of their owner's: others may
#: let the array grow meanwhile, and the later owner keeps the earlier elements.
_PROMOTED = (
    FIELD.data, FIELD.data_owner, FIELD.states, FIELD.size, FIELD.rank, FIELD.element_bytes,
    FIELD.read_state, FIELD.gradient,
)  # fmt: skip
_LIMITS = (FIELD.fast_write, FIELD.fast_read, FIELD.fast_add, FIELD.fast_append)
#: After them in a block: the store's address, and what its limits are masked with: 0 where the
#: function has another block of the same store.
_ADDRESS, _MASK = len(FIELD), len(FIELD) + 1
_BLOCK = ir.ArrayType(INT64, len(FIELD) + 2)


class PromotedType(types.Type):
    """Fields of a store in local variables.

    Parameters
    ----------
    ndim : int
        How many dimensions of the element shape are among them.
    """

    def __init__(self, ndim):
        self.ndim = ndim
        super().__init__(f"nbta.Promoted({ndim})")

    @property
    def dimensions(self):
        """The fields that are dimensions."""
        return range(FIELD.dimension0, FIELD.dimension0 + self.ndim)


@register_model(PromotedType)
class _PromotedModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, _BLOCK.as_pointer())


def _in_block(builder, block, number):
    number = INT64(number) if isinstance(number, int) else number
    return builder.gep(block, [INT64(0), number], inbounds=True)


def _in_store(builder, address, number):
    number = INT64(number) if isinstance(number, int) else number
    base = builder.inttoptr(address, INT64.as_pointer())
    return builder.gep(base, [number], inbounds=True)


def _place(builder, kind, store, number):
    """Pointer to a field, wherever it is."""
    place = _in_block if isinstance(kind, PromotedType) else _in_store
    return place(builder, store, number)


def _address(builder, kind, store):
    if not isinstance(kind, PromotedType):
        return store
    return builder.load(_in_block(builder, store, _ADDRESS))


@intrinsic
def field(typingctx, store, number):
    """One int64 field."""

    def codegen(context, builder, sig, args):
        return builder.load(_place(builder, store, *args))

    return types.int64(store, types.int64), codegen


@intrinsic
def seen_field(typingctx, store, number):
    """`field`, with all that was written before it was published."""

    def codegen(context, builder, sig, args):
        place = _place(builder, store, *args)
        if isinstance(store, PromotedType):
            return builder.load(place)
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(store, types.int64), codegen


def change_field(builder, kind, store, number, value):
    """Store a field in a block and in the store; the instruction for the store."""
    if isinstance(kind, PromotedType):
        builder.store(value, _in_block(builder, store, number))
    return builder.store(value, _in_store(builder, _address(builder, kind, store), number))


@intrinsic
def set_field(typingctx, store, number, value):
    """Change a field, in a block and in the store."""

    def codegen(context, builder, sig, args):
        change_field(builder, store, *args)
        return context.get_dummy_value()

    return types.void(store, types.int64, types.int64), codegen


@intrinsic
def address_of_store(typingctx, store):
    """Address of a store, for functions that are not inlined: a block's address goes nowhere."""

    def codegen(context, builder, sig, args):
        return _address(builder, store, args[0])

    return types.int64(store), codegen


@intrinsic
def same_dimensions(typingctx, store, shape):
    """Whether the first dimensions of the element shape are a tuple's (also an empty one's)."""

    def codegen(context, builder, sig, args):
        same = cgutils.true_bit
        for axis, dimension in enumerate(cgutils.unpack_tuple(builder, args[1])):
            found = builder.load(_place(builder, store, args[0], FIELD.dimension0 + axis))
            same = builder.and_(same, builder.icmp_signed("==", dimension, found))
        return same

    return types.boolean(store, shape), codegen


@cache
def element_reader(item, ndim):
    """An intrinsic that makes a read-only array of the element shape.

    ``(store, owner, address)``; the array takes over one reference to the owner.
    """
    array_type = types.Array(item, ndim, "C", readonly=True)

    @intrinsic
    def element_of(typingctx, store, owner, address):
        def codegen(context, builder, sig, args):
            fields, owner, address = args
            meminfo = builder.inttoptr(owner, cgutils.voidptr_t)
            axes = range(FIELD.dimension0, FIELD.dimension0 + ndim)
            shape = [builder.load(_place(builder, store, fields, axis)) for axis in axes]
            return build_array(context, builder, array_type, address, shape, meminfo)

        return array_type(store, types.int64, types.int64), codegen

    return element_of


# Counters of loops over arrays, which LLVM turns into registers like blocks.


class CounterType(types.Type):
    """The slot that comes next in a loop over an array."""

    def __init__(self):
        super().__init__("nbta.Counter")


COUNTER = CounterType()


@register_model(CounterType)
class _CounterModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, INT64.as_pointer())


@intrinsic
def new_counter(typingctx, fields):
    """A counter at 0, in a function that has a block of fields."""

    def codegen(context, builder, sig, args):
        counter = cgutils.alloca_once(builder, INT64)
        builder.store(INT64(0), counter)
        return counter

    return COUNTER(fields), codegen


@intrinsic
def count_of(typingctx, counter):
    """Where a counter is."""
    return types.int64(counter), lambda context, builder, sig, args: builder.load(args[0])


@intrinsic
def set_count(typingctx, counter, value):
    """Put a counter elsewhere."""

    def codegen(context, builder, sig, args):
        builder.store(args[1], args[0])
        return context.get_dummy_value()

    return types.void(counter, types.int64), codegen


# Copies of elements that borrowed looks make where they cannot give a view.


class ScratchType(types.Type):
    """Where a look keeps the owner of its last copy, until the next one or the function's end."""

    def __init__(self):
        super().__init__("nbta.Scratch")


SCRATCH = ScratchType()


@register_model(ScratchType)
class _ScratchModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, INT64.as_pointer())


@intrinsic
def new_scratch(typingctx):
    """An empty place, in a function that looks."""

    def codegen(context, builder, sig, args):
        return cgutils.alloca_once(builder, INT64)

    return SCRATCH(), codegen


@intrinsic
def exchange(typingctx, scratch, owner):
    """Put an owner into a place; the one that was there."""

    def codegen(context, builder, sig, args):
        before = builder.load(args[0])
        builder.store(args[1], args[0])
        return before

    return types.int64(scratch, types.int64), codegen


@register_jitable
def empty(scratch):
    """Give back what is in a place, at the end of a function."""
    owner = exchange(scratch, 0)
    if owner:
        release(owner)


# Blocks.


def _load_all(builder, kind, block):
    address = builder.load(_in_block(builder, block, _ADDRESS))
    mask = builder.load(_in_block(builder, block, _MASK))
    for number in (*_PROMOTED, *kind.dimensions, *_LIMITS):
        place = _in_store(builder, address, number)
        seen = number == FIELD.data
        value = builder.load_atomic(place, "acquire", 8) if seen else builder.load(place)
        if number in _LIMITS:
            value = builder.and_(value, mask)
        builder.store(value, _in_block(builder, block, number))


def _promoter(ndim):
    """An intrinsic ``(address)`` that gives a block with the fields of a store."""
    kind = PromotedType(ndim)

    @intrinsic
    def promote(typingctx, address):
        def codegen(context, builder, sig, args):
            with builder.goto_entry_block():
                block = builder.alloca(_BLOCK)
            builder.store(args[0], _in_block(builder, block, _ADDRESS))
            builder.store(INT64(-1), _in_block(builder, block, _MASK))
            _load_all(builder, kind, block)
            return block

        return kind(types.int64), codegen

    return promote


#: By how many dimensions they load. Numba must know them before it compiles what calls them.
PROMOTERS = tuple(map(_promoter, range(MAX_RANK + 1)))


def promoter_of(array):
    """That for arrays of a type; all dimensions where the rank is not known."""
    return PROMOTERS[MAX_RANK if array.ndim is None else array.ndim]


@intrinsic
def reload(typingctx, store):
    """Load a block again, after what may have changed the store; nothing for an address."""

    def codegen(context, builder, sig, args):
        if isinstance(store, PromotedType):
            _load_all(builder, store, args[0])
        return context.get_dummy_value()

    return types.void(store), codegen


@intrinsic
def part(typingctx, one, other):
    """Take the limits of two blocks if they are of the same store."""

    def codegen(context, builder, sig, args):
        stores = [builder.load(_in_block(builder, block, _ADDRESS)) for block in args]
        keep = builder.sext(builder.icmp_unsigned("!=", *stores), INT64)
        for block in args:
            for number in (_MASK, *_LIMITS):
                place = _in_block(builder, block, number)
                builder.store(builder.and_(builder.load(place), keep), place)
        return context.get_dummy_value()

    return types.void(one, other), codegen
