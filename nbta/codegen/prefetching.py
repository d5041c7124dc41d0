"""Asking the processor for items before a loop reads them.

Prefetchers follow what is read one after the other, and end at each page. Where a loop reads a
short stretch of each row of a large matrix, every stretch is a new place to them: they begin too
late, and end too late.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_INT32, _BYTES = ir.IntType(32), ir.IntType(8).as_pointer()
_NAME = "llvm.prefetch.p0i8"


@intrinsic
def fetch(typingctx, place, index):
    """Bring the line of an item to the first-level cache; there need be no such item."""

    def codegen(context, builder, sig, args):
        start, index = args
        found = builder.module.globals.get(_NAME)
        if found is None:
            kind = ir.FunctionType(ir.VoidType(), [_BYTES, _INT32, _INT32, _INT32])
            found = ir.Function(builder.module, kind, _NAME)
        options = [_INT32(option) for option in (0, 3, 1)]  # to read, near, and no code
        builder.call(found, [builder.bitcast(builder.gep(start, [index]), _BYTES), *options])
        return context.get_dummy_value()

    return types.void(place, types.int64), codegen


#: Names in generated code.
NAMES = {"fetch": fetch}
