"""Atomic steps on memory at integer addresses."""

import platform

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.memory import BYTE, INT64


def _atomic_load(llvm_type):
    @intrinsic
    def load(typingctx, address):
        def codegen(context, builder, sig, args):
            place = builder.inttoptr(args[0], llvm_type.as_pointer())
            value = builder.load_atomic(place, "acquire", llvm_type.width // 8)
            return value if llvm_type is INT64 else builder.zext(value, INT64)

        return types.int64(types.int64), codegen

    return load


def _atomic_store(llvm_type):
    @intrinsic
    def store(typingctx, address, value):
        def codegen(context, builder, sig, args):
            place = builder.inttoptr(args[0], llvm_type.as_pointer())
            value = args[1] if llvm_type is INT64 else builder.trunc(args[1], llvm_type)
            builder.store_atomic(value, place, "release", llvm_type.width // 8)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return store


def _atomic_swap(llvm_type):
    @intrinsic
    def swap(typingctx, address, expected, new):
        def codegen(context, builder, sig, args):
            place = builder.inttoptr(args[0], llvm_type.as_pointer())
            values = args[1:]
            if llvm_type is not INT64:
                values = [builder.trunc(value, llvm_type) for value in values]
            pair = builder.cmpxchg(place, *values, "acq_rel", "acquire")
            return builder.extract_value(pair, 1)

        return types.boolean(types.int64, types.int64, types.int64), codegen

    return swap


#: Loads that see all that was written before what they load was published.
seen_byte, seen_int = _atomic_load(BYTE), _atomic_load(INT64)
#: Stores that show all that was written before them to whoever sees them.
publish_byte, publish_int = _atomic_store(BYTE), _atomic_store(INT64)
#: ``(address, expected, new)``: put another value where the expected one is; whether it was.
swap_byte, swap_int = _atomic_swap(BYTE), _atomic_swap(INT64)


@intrinsic
def add_int(typingctx, address, value):
    """Add to the int64 at an address in one step; gives what was there."""

    def codegen(context, builder, sig, args):
        place = builder.inttoptr(args[0], INT64.as_pointer())
        return builder.atomic_rmw("add", place, args[1], "acq_rel")

    return types.int64(types.int64, types.int64), codegen


#: What tells a processor that a loop only waits.
_PAUSE = {"x86_64": "llvm.x86.sse2.pause", "AMD64": "llvm.x86.sse2.pause"}.get(platform.machine())


@intrinsic
def pause(typingctx):
    """Leave the processor's other thread the room for a moment."""

    def codegen(context, builder, sig, args):
        if _PAUSE:
            function = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic(_PAUSE, fnty=function), [])
        return context.get_dummy_value()

    return types.void(), codegen
