"""Slots of plain arrays in generated code: what is right at once is done in place.

A call to `nbta.runtime.plain` costs 5 ns. A scalar that is written to a slot which is there and
free, or read from one which is written, takes 1 to 2 ns without it.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.numba_private import cgutils
from nbta.runtime.plain import (
    ADDS,
    CLEARS,
    DATA,
    READ,
    READ_SLOT,
    SIZE,
    STATE,
    WRITE_SLOT,
    WRITTEN,
)
from nbta.runtime.pointers import INT64, call_word, word_at
from nbta.runtime.protocol import INTERRUPTED, PLAIN

_BYTE, _INT32 = ir.IntType(8), ir.IntType(32)

#: Trips between two looks at signals, less 1: a look takes 0.1 us, with the interpreter's lock.
WATCHED = 4095
#: Functions of Python's C interface for that, whose addresses are in consecutive words.
WATCH = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release")


@intrinsic
def watch(typingctx, w, word, trip):
    """Let Python see its signals now and then; the function is left where one raises.

    The exception is then set: whatever Python calls the function by finds it.
    """

    def codegen(context, builder, sig, args):
        turn = builder.and_(args[2], INT64(WATCHED))
        with cgutils.if_unlikely(builder, builder.icmp_unsigned("==", turn, INT64(WATCHED))):
            places = [builder.add(args[1], INT64(k)) for k in range(len(WATCH))]
            state = call_word(builder, args[0], places[0], [])
            raised = builder.trunc(call_word(builder, args[0], places[1], []), _INT32)
            call_word(builder, args[0], places[2], [state])
            with cgutils.if_unlikely(builder, builder.icmp_signed("!=", raised, _INT32(0))):
                context.call_conv.return_value(builder, INT64(INTERRUPTED))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def slot(typingctx, w, record, what, a, b):
    """What an operation on a plain array gives, or the function is left."""

    def codegen(context, builder, sig, args):
        return _called(context, builder, args)

    number = types.int64
    return number(number, number, number, number, number), codegen


def _called(context, builder, args):
    result = call_word(builder, args[0], PLAIN, args)
    with cgutils.if_unlikely(builder, builder.icmp_signed("<", result, INT64(0))):
        context.call_conv.return_value(builder, builder.neg(result))
    return result


@intrinsic(prefer_literal=True)
def write_item(typingctx, w, record, index, itemsize):
    """The place for a scalar in a slot, which is written from now on, or the function is left."""

    def codegen(context, builder, sig, args):
        w, record, index, size = args
        need = builder.mul(builder.add(index, INT64(1)), size)
        room = builder.icmp_signed("<=", need, _field(builder, w, record, DATA + 1))
        return _at_once(context, builder, args, room, 0, WRITTEN, WRITE_SLOT)

    number = types.int64
    return number(number, number, number, number), codegen


@intrinsic(prefer_literal=True)
def read_item(typingctx, w, record, index, flags):
    """The place of a scalar in a slot, which counts as read now, or the function is left."""
    after = WRITTEN | READ if flags.literal_value & (CLEARS | ADDS) else WRITTEN

    def codegen(context, builder, sig, args):
        return _at_once(context, builder, args, cgutils.true_bit, WRITTEN, after, READ_SLOT)

    number = types.int64
    return number(number, number, number, flags), codegen


def _at_once(context, builder, args, fits, before, after, what):
    """A slot's number where its state is as expected, else what the call gives."""
    w, record, index, _ = args
    result = cgutils.alloca_once_value(builder, index)
    there = builder.icmp_unsigned("<", index, _field(builder, w, record, SIZE))
    done = cgutils.alloca_once_value(builder, cgutils.false_bit)
    with cgutils.if_likely(builder, builder.and_(there, fits)):
        place = builder.inttoptr(
            builder.add(_field(builder, w, record, STATE), index), _BYTE.as_pointer()
        )
        expected = builder.icmp_unsigned("==", builder.load(place), _BYTE(before))
        with cgutils.if_likely(builder, expected):
            if after != before:
                builder.store(_BYTE(after), place)
            builder.store(cgutils.true_bit, done)
    with cgutils.if_unlikely(builder, builder.not_(builder.load(done))):
        zero = INT64(0)
        found = _called(context, builder, [w, record, INT64(what), index, zero])
        builder.store(found, result)
    return builder.load(result)


def _field(builder, w, record, field):
    return builder.load(word_at(builder, w, builder.add(record, INT64(field))))
