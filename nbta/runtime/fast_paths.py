"""What the fast paths of methods in compiled code share.

A fast path is a few loads and a store, emitted into the user's function; everything else goes to
the kernels' entrances. The loads go by address: a jitclass field that is an array would count
references at each access. Nothing that is counted is held across an error exit: LLVM could not
remove the counting, two atomic operations or 12 ns.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload, overload_method, register_jitable

from nbta.runtime import memory as mem
from nbta.runtime.direct_calls import direct_function
from nbta.runtime.extension import TensorArrayType
from nbta.runtime.numba_private import cgutils
from nbta.runtime.store import CLEARED, FIELD, PENDING, WRITTEN, ZERO

#: Fast paths are inlined into the user's function whatever they cost the inliner.
inlined = {"forceinline": True, "error_model": "numpy"}
fast = register_jitable(**inlined)

READABLE = WRITTEN | CLEARED | PENDING | ZERO


#: What is behind the methods of tensor arrays, by name.
methods = {}


def method(name):
    """Define a method of tensor arrays, and the function that direct calls of it become."""

    def define(implementation):
        methods[name] = implementation
        overload(direct_function(name), jit_options=inlined)(implementation)
        overload_method(TensorArrayType, name, jit_options=inlined)(implementation)
        return implementation

    return define


@intrinsic
def likely(typingctx, condition):
    """The same condition; code for when it is false is laid out of the way."""

    def codegen(context, builder, sig, args):
        bit = ir.IntType(1)
        expect = ir.FunctionType(bit, [bit, bit])
        function = builder.module.declare_intrinsic("llvm.expect", [bit], expect)
        return builder.call(function, [args[0], cgutils.true_bit])

    return types.boolean(types.boolean), codegen


@fast
def field(store, index):
    """One int64 field of a store."""
    return mem.load_int(store + 8 * index)


@fast
def below(index, limit):
    """``0 <= index < limit`` in one comparison."""
    return np.uint64(index) < np.uint64(limit)


@fast
def fits(store, shape):
    """Whether a shape is the element shape of a uniform store."""
    same_rank = field(store, FIELD.rank) == len(shape)
    return same_rank and mem.same_extents(store + 8 * FIELD.extent0, shape)


@fast
def occupy(store, state, index):
    """Mark a slot as written; the array reaches at least this far."""
    mem.store_byte(state, WRITTEN)
    if index >= field(store, FIELD.size):
        mem.store_int(store + 8 * FIELD.size, index + 1)


@fast
def addable(store, slot):
    """Whether a gradient slot holds a sum that takes another term in place."""
    if not below(slot, field(store, FIELD.fast_add)):
        return False
    return mem.load_byte(field(store, FIELD.states) + slot) == WRITTEN


@fast
def take(store, slot):
    """Mark a slot as read where that is simple; False where it is not."""
    if likely(below(slot, field(store, FIELD.fast_read))):
        state = field(store, FIELD.states) + slot
        if likely(mem.load_byte(state) & READABLE == WRITTEN):
            mem.store_byte(state, field(store, FIELD.read_state))
            return True
    return False
