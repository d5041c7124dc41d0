"""Runs of slots: how many consecutive ones an operation may act on without looking at each.

A loop that goes through a `range` and does one thing with the next slot in each iteration asks here
ahead of a stretch of iterations (`nbta.runtime.loop_versions`), and then does it without checks.
"""

from functools import cache

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime import memory as mem
from nbta.runtime import request, settings
from nbta.runtime.compiled import out_of_line, stay_out_of_line
from nbta.runtime.extension import fast, new_request
from nbta.runtime.fields import address_of_store, change_field, field, reload
from nbta.runtime.memory import BYTE
from nbta.runtime.numba_private import cgutils
from nbta.runtime.settings import setting
from nbta.runtime.slots import FREE, VALUE, WRITTEN
from nbta.runtime.store import FIELD
from nbta.tuning import LONGEST_RUN, SHORTEST_RUN

_ALL_BITS = 0xFF


@intrinsic
def _range_state(typingctx, iterator):
    """The next value of a range's iterator, the step after it, and how many there are."""

    def codegen(context, builder, sig, args):
        state = cgutils.create_struct_proxy(iterator)(context, builder, value=args[0])
        words = [builder.load(state.iter), state.step, builder.load(state.count)]
        return context.make_tuple(builder, sig.return_type, words)

    return types.UniTuple(types.int64, 3)(iterator), codegen


@intrinsic
def next_value(typingctx, iterator):
    """The next value of a range's iterator, of which it is known that there is one."""

    def codegen(context, builder, sig, args):
        state = cgutils.create_struct_proxy(iterator)(context, builder, value=args[0])
        value, count = builder.load(state.iter), builder.load(state.count)
        builder.store(builder.sub(count, count.type(1), flags=["nsw"]), state.count)
        builder.store(builder.add(value, state.step), state.iter)
        return value

    return iterator.yield_type(iterator), codegen


@fast
def iterations_ahead(iterator):
    """How many iterations may be looked ahead; 0 where they are few, or their slots not adjacent.

    They are taken in stretches: a loop that is left early has looked at no more than one for
    nothing.
    """
    _, step, count = _range_state(iterator)
    if step != 1 or count < SHORTEST_RUN:
        return 0
    return min(count, LONGEST_RUN)


@fast
def is_some(count):
    """Whether there are iterations left."""
    return count > 0


@fast
def one_less(count):
    """How many are left after one."""
    return count - 1


#: Bytes that are compared at a time.
_TOGETHER = 32


@intrinsic
def _all_alike(typingctx, address, bits, wanted):
    """Whether `_TOGETHER` bytes from an address on are all ``wanted`` in some of their bits."""

    def codegen(context, builder, sig, args):
        kind = ir.VectorType(BYTE, _TOGETHER)

        def each(value):
            one = builder.insert_element(
                ir.Constant(kind, ir.Undefined), builder.trunc(value, BYTE), ir.IntType(32)(0)
            )
            places = ir.Constant(ir.VectorType(ir.IntType(32), _TOGETHER), [0] * _TOGETHER)
            return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), places)

        found = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
        found.align = 1
        same = builder.icmp_unsigned("==", builder.and_(found, each(args[1])), each(args[2]))
        mask = ir.IntType(_TOGETHER)
        return builder.icmp_unsigned("==", builder.bitcast(same, mask), mask(-1))

    return types.boolean(types.int64, types.int64, types.int64), codegen


@out_of_line
def count_alike(address, most, bits, wanted):
    """How many bytes from an address on, ``most`` of them, are ``wanted`` in some of their bits."""
    stay_out_of_line()
    count = 0
    while count + _TOGETHER <= most and _all_alike(address + count, bits, wanted):
        count += _TOGETHER
    while count < most and mem.load_byte(address + count) & bits == wanted:
        count += 1
    return count


@fast
def _run(store, first, limit, most, bits, wanted):
    """How many scalar slots from the first one on are below a limit and in a state."""
    most = min(most, limit - first)
    if first < 0 or most <= 0 or field(store, FIELD.rank) != 0:
        return 0
    return count_alike(field(store, FIELD.states) + first, most, bits, wanted)


@fast
def _next_write(store, iterator, most):
    first, _, _ = _range_state(iterator)
    return _run(store, first, field(store, FIELD.fast_write), most, _ALL_BITS, FREE)


@fast
def _next_append(store, iterator, most):
    first, limit = field(store, FIELD.size), field(store, FIELD.fast_append)
    if limit != 0 and field(store, FIELD.rank) == 0:
        return min(most, limit - first)
    return _run(store, first, field(store, FIELD.fast_write), most, _ALL_BITS, FREE)


@fast
def _next_append_of_all(store, iterator, most):
    _, _, count = _range_state(iterator)
    first = field(store, FIELD.size)
    limit = max(field(store, FIELD.fast_write), field(store, FIELD.fast_append))
    if limit != 0 and limit - first < count:
        reserve_ahead(address_of_store(store), first + count)
        reload(store)
    return _next_append(store, iterator, most)


@out_of_line
def reserve_ahead(store, count):
    """Let an array that grows have room for so many slots, if there is memory."""
    stay_out_of_line()
    words = new_request()
    mem.store_int(words + 8 * request.INDEX, count)
    mem.call_entry(setting(settings.STORAGE_ENTRY), request.RESERVE, store, words)


@fast
def _next_sum(store, iterator, most):
    first, _, _ = _range_state(iterator)
    return _run(store, first, field(store, FIELD.fast_add), most, _ALL_BITS, WRITTEN)


@fast
def _next_value(store, iterator, most):
    first, _, _ = _range_state(iterator)
    return _run(store, first, field(store, FIELD.fast_read), most, VALUE, WRITTEN)


#: By operation, ``(store, iterator, most)``: how many of the next slots it may act on.
RUNS = {
    "write": _next_write,
    "append": _next_append,
    "accumulate": _next_sum,
    "read": _next_value,
    "getitem": _next_value,
}
#: The same in loops that go on until their range ends.
RUNS_TO_THE_END = RUNS | {"append": _next_append_of_all}


# What lies at known places of buffers. LLVM is told that elements, states and fields of stores
# never overlap: the size is then stored once after a loop without calls, whose other stores become
# vector instructions.

ELEMENTS, STATES, FIELDS = range(3)


def _note(builder, instruction, kind):
    """Tell LLVM which kind of memory an access is to, and which it cannot be to."""
    add = builder.module.add_metadata
    domain = add(["nbta stores"])
    scopes = [add([name, domain]) for name in ("elements", "states", "fields")]
    instruction.set_metadata("alias.scope", add([scopes[kind]]))
    instruction.set_metadata("noalias", add([s for k, s in enumerate(scopes) if k != kind]))


def _items(context, builder, item, base):
    memory_type = context.data_model_manager[item].get_data_type()
    return builder.inttoptr(base, memory_type.as_pointer())


@cache
def item_putter(item):
    """An intrinsic ``(base, index, value)`` that stores an item of a buffer."""

    @intrinsic
    def put_item(typingctx, base, index, value):
        def codegen(context, builder, sig, args):
            place = builder.gep(_items(context, builder, item, args[0]), [args[1]])
            value = context.cast(builder, args[2], sig.args[2], item)
            data = context.data_model_manager[item].as_data(builder, value)
            stored = builder.store(data, place)
            _note(builder, stored, ELEMENTS)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, value), codegen

    return put_item


@cache
def item_getter(item):
    """An intrinsic ``(base, index)`` that loads an item of a buffer."""

    @intrinsic
    def get_item(typingctx, base, index):
        def codegen(context, builder, sig, args):
            place = builder.gep(_items(context, builder, item, args[0]), [args[1]])
            loaded = builder.load(place)
            _note(builder, loaded, ELEMENTS)
            return context.data_model_manager[item].from_data(builder, loaded)

        return item(types.int64, types.int64), codegen

    return get_item


@intrinsic
def put_field(typingctx, store, number, value):
    """Change a field of a promoted store, in its block and in the store."""

    def codegen(context, builder, sig, args):
        _note(builder, change_field(builder, store, *args), FIELDS)
        return context.get_dummy_value()

    return types.void(store, types.int64, types.int64), codegen


@intrinsic
def put_state(typingctx, base, index, state):
    """Store the state byte of a slot."""

    def codegen(context, builder, sig, args):
        base, index, state = args
        place = builder.gep(builder.inttoptr(base, BYTE.as_pointer()), [index])
        _note(builder, builder.store(builder.trunc(state, BYTE), place), STATES)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen
