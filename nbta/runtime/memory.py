"""Memory at integer addresses: loads, stores and copies, atomic steps, counted buffers, objects.

The store keeps the *address* of each buffer beside the array that owns it. Going through the
owning field costs two atomic reference counts an access (58 ns a scalar write in a loop);
going through the address costs 1 to 2 ns.
"""

import platform
import sys
from functools import cache

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.numba_private import PartCompiler, cgutils, compile_by, forget_literals
from nbta.tuning import COPY_PIECE, SPINS

INT64 = ir.IntType(64)
BYTE = ir.IntType(8)
SETTINGS_SYMBOL = "nbta_settings"


def _pointer(builder, address, llvm_type):
    return builder.inttoptr(address, llvm_type.as_pointer())


@intrinsic
def load_byte(typingctx, address):
    """The uint8 at an address, as int64."""

    def codegen(context, builder, sig, args):
        return builder.zext(builder.load(_pointer(builder, args[0], BYTE)), INT64)

    return types.int64(types.int64), codegen


@intrinsic
def store_byte(typingctx, address, value):
    """Store the low 8 bits of an int64 at an address."""

    def codegen(context, builder, sig, args):
        value = builder.trunc(args[1], BYTE)
        builder.store(value, _pointer(builder, args[0], BYTE))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@intrinsic
def load_int(typingctx, address):
    """The int64 at an address."""

    def codegen(context, builder, sig, args):
        return builder.load(_pointer(builder, args[0], INT64))

    return types.int64(types.int64), codegen


@intrinsic
def store_int(typingctx, address, value):
    """Store an int64 at an address."""

    def codegen(context, builder, sig, args):
        builder.store(args[1], _pointer(builder, args[0], INT64))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@cache
def item_writer(item):
    """An intrinsic ``(address, value)`` that stores a value as an item of a Numba dtype."""

    @intrinsic
    def store_item(typingctx, address, value):
        def codegen(context, builder, sig, args):
            memory_type = context.data_model_manager[item].get_data_type()
            place = _pointer(builder, args[0], memory_type)
            value = context.cast(builder, args[1], sig.args[1], item)
            context.pack_value(builder, item, value, place, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, value), codegen

    return store_item


@cache
def item_reader(item):
    """An intrinsic ``(address)`` that loads an item of a Numba dtype."""

    @intrinsic
    def load_item(typingctx, address):
        def codegen(context, builder, sig, args):
            memory_type = context.data_model_manager[item].get_data_type()
            return context.unpack_value(
                builder, item, _pointer(builder, args[0], memory_type), align=1
            )

        return item(types.int64), codegen

    return load_item


@intrinsic
def store_dimensions(typingctx, address, shape):
    """Store a tuple of integers (also an empty one) as int64 from an address on."""

    def codegen(context, builder, sig, args):
        for axis, dimension in enumerate(cgutils.unpack_tuple(builder, args[1])):
            place = builder.add(args[0], INT64(8 * axis))
            builder.store(dimension, _pointer(builder, place, INT64))
        return context.get_dummy_value()

    return types.void(types.int64, shape), codegen


def copy_memory(builder, target, source, nbytes):
    """``memcpy`` of so many bytes at two pointers, at full speed wherever these point to.

    AMD's processors copy by ``rep movsb``, as the C library does from 2 KiB on, at 3 GB/s and not
    40 where the target is less than 32 bytes after the source but for whole pages
    (glibc bug 30994). Pieces below that length are copied by vector instructions.
    """
    one = INT64(1)
    if isinstance(nbytes, ir.Constant) and nbytes.constant <= COPY_PIECE:
        cgutils.raw_memcpy(builder, target, source, nbytes, one)
        return
    places = [builder.ptrtoint(place, INT64) for place in (target, source)]
    after = builder.and_(builder.sub(*places), INT64(4095))
    near = builder.icmp_unsigned("<", builder.sub(after, one), INT64(31))
    slow = builder.and_(near, builder.icmp_signed(">", nbytes, INT64(COPY_PIECE)))
    with builder.if_else(slow, likely=False) as (in_pieces, at_once):
        with in_pieces:
            builder.call(_piecewise(builder.module), [*places, nbytes])
        with at_once:
            cgutils.raw_memcpy(builder, target, source, nbytes, one)


def _piecewise(module):
    """``void copy(int64 target, int64 source, int64 nbytes)`` that copies piece by piece."""
    function_type = ir.FunctionType(ir.VoidType(), [INT64] * 3)
    function = cgutils.get_or_insert_function(module, function_type, "nbta_copy_in_pieces")
    if not function.is_declaration:
        return function
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    entry, loop, end = map(function.append_basic_block, ("entry", "loop", "end"))
    builder, piece = ir.IRBuilder(entry), INT64(COPY_PIECE)
    builder.branch(loop)
    builder.position_at_end(loop)
    words = [builder.phi(INT64) for _ in function.args]
    target, source, left = words
    count = builder.select(builder.icmp_unsigned("<", left, piece), left, piece)
    places = [_pointer(builder, place, BYTE) for place in (target, source)]
    cgutils.raw_memcpy(builder, *places, count, INT64(1))
    after = builder.sub(left, count)
    moved = [builder.add(target, count), builder.add(source, count), after]
    builder.cbranch(builder.icmp_unsigned("!=", after, INT64(0)), loop, end)
    for word, first, next_ in zip(words, function.args, moved, strict=True):
        word.add_incoming(first, entry)
        word.add_incoming(next_, loop)
    builder.position_at_end(end)
    builder.ret_void()
    return function


@intrinsic
def copy_bytes(typingctx, target, source, count):
    """`copy_memory`: the two ranges must not overlap."""

    def codegen(context, builder, sig, args):
        target, source, count = args
        copy_memory(
            builder, _pointer(builder, target, BYTE), _pointer(builder, source, BYTE), count
        )
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def fill_bytes(typingctx, target, count, value):
    """Set ``count`` bytes to the low 8 bits of a value."""

    def codegen(context, builder, sig, args):
        place, value = _pointer(builder, args[0], BYTE), builder.trunc(args[2], BYTE)
        function = builder.module.declare_intrinsic("llvm.memset", [place.type, INT64])
        builder.call(function, [place, value, args[1], cgutils.false_bit])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def clear_bytes(typingctx, target, count):
    """Set ``count`` bytes to zero."""

    def codegen(context, builder, sig, args):
        cgutils.memset(builder, _pointer(builder, args[0], BYTE), args[1], 0)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


def build_array(context, builder, array_type, data, shape, meminfo=None, strides=None):
    """An array struct over ``data``; borrowed memory (no owner) where ``meminfo`` is None.

    Items lie in C order where there are no ``strides``.
    """
    array = context.make_array(array_type)(context, builder)
    itemsize = context.get_abi_sizeof(context.get_data_type(array_type.dtype))
    stride, dense, count = context.get_constant(types.intp, itemsize), [], INT64(1)
    for dimension in reversed(shape):
        dense.insert(0, stride)
        stride = builder.mul(stride, dimension)
        count = builder.mul(count, dimension)
    array.data = builder.inttoptr(data, array.data.type)
    array.shape = cgutils.pack_array(builder, shape, INT64)
    array.strides = cgutils.pack_array(builder, strides or dense, INT64)
    array.itemsize = context.get_constant(types.intp, itemsize)
    array.nitems = count
    array.meminfo = cgutils.get_null_value(array.meminfo.type) if meminfo is None else meminfo
    array.parent = cgutils.get_null_value(array.parent.type)
    return array._getvalue()


@intrinsic
def array_at(typingctx, address, count, dtype):
    """A one-dimensional array of ``count`` items over memory owned by somebody else."""
    array_type = types.Array(dtype.dtype, 1, "C")

    def codegen(context, builder, sig, args):
        return build_array(context, builder, sig.return_type, args[0], [args[1]])

    return array_type(types.int64, types.int64, dtype), codegen


@cache
def array_reader(item, ndim):
    """An intrinsic that makes a read-only array from its owner, address and dimensions' address.

    The array takes over one reference to the owner.
    """
    array_type = types.Array(item, ndim, "C", readonly=True)

    @intrinsic
    def array_of(typingctx, owner, address, dimensions):
        def codegen(context, builder, sig, args):
            owner, address, dimensions = args
            meminfo = builder.inttoptr(owner, cgutils.voidptr_t)
            places = [builder.add(dimensions, INT64(8 * axis)) for axis in range(ndim)]
            shape = [builder.load(_pointer(builder, place, INT64)) for place in places]
            return build_array(context, builder, array_type, address, shape, meminfo)

        return array_type(types.int64, types.int64, types.int64), codegen

    return array_of


@intrinsic
def adopt_array(typingctx, owner, address, count, dtype):
    """An array of ``count`` items; takes over one reference to ``owner``."""
    array_type = types.Array(dtype.dtype, 1, "C")

    def codegen(context, builder, sig, args):
        meminfo = builder.inttoptr(args[0], cgutils.voidptr_t)
        return build_array(context, builder, sig.return_type, args[1], [args[2]], meminfo)

    return array_type(types.int64, types.int64, types.int64, dtype), codegen


@intrinsic
def address_of(typingctx, array):
    """Address of an array's first item."""

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.ptrtoint(data, INT64)

    return types.int64(array), codegen


@intrinsic
def keep_alive(typingctx, array):
    """Use an array, so that its memory lives at least until here."""
    return types.void(array), lambda context, builder, sig, args: context.get_dummy_value()


@intrinsic
def owner_of(typingctx, array):
    """Address of the object that keeps an array's memory alive (borrowed reference)."""

    def codegen(context, builder, sig, args):
        meminfo = context.make_array(sig.args[0])(context, builder, args[0]).meminfo
        return builder.ptrtoint(meminfo, INT64)

    return types.int64(array), codegen


def _count_reference(name):
    @intrinsic
    def count(typingctx, owner):
        def codegen(context, builder, sig, args):
            function_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t])
            function = cgutils.get_or_insert_function(builder.module, function_type, name)
            builder.call(function, [builder.inttoptr(args[0], cgutils.voidptr_t)])
            return context.get_dummy_value()

        return types.void(types.int64), codegen

    return count


#: Take, or give back, one reference to an owner (0 stands for no owner).
retain = _count_reference("NRT_incref")
release = _count_reference("NRT_decref")


@intrinsic
def owner_payload(typingctx, owner):
    """Address of the memory that an owner object manages."""

    def codegen(context, builder, sig, args):
        meminfo = builder.inttoptr(args[0], cgutils.voidptr_t)
        return builder.ptrtoint(context.nrt.meminfo_data(builder, meminfo), INT64)

    return types.int64(types.int64), codegen


@intrinsic
def allocate_owner(typingctx, nbytes):
    """A new owner with ``nbytes`` of its own memory, 16-byte aligned; 0 when there is none."""

    def codegen(context, builder, sig, args):
        meminfo = context.nrt.meminfo_alloc_aligned_unchecked(builder, args[0], 16)
        return builder.ptrtoint(meminfo, INT64)

    return types.int64(types.int64), codegen


@intrinsic
def allocate_finalized(typingctx, nbytes, finalizer):
    """A new owner whose payload's address is given to ``finalizer`` when the last user is gone."""
    finalize = finalizer.dispatcher.py_func

    def codegen(context, builder, sig, args):
        subroutine = context.compile_subroutine(builder, finalize, types.int64(types.int64))
        destructor = _destructor(context, builder.module, subroutine.fndesc)
        meminfo = context.nrt.meminfo_alloc_dtor_unchecked(builder, args[0], destructor)
        return builder.ptrtoint(meminfo, INT64)

    return types.int64(types.int64, finalizer), codegen


def _destructor(context, module, fndesc):
    """``void destroy(void *payload, size_t size, void *info)`` that calls a compiled function."""
    function_type = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, INT64, cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(
        module, function_type, "nbta_destroy." + fndesc.mangled_name
    )
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        builder = ir.IRBuilder(function.append_basic_block())
        payload = builder.ptrtoint(function.args[0], INT64)
        signature = types.int64(types.int64)
        context.call_internal_no_propagate(builder, fndesc, signature, [payload])
        builder.ret_void()
    return function


@intrinsic
def setting_address(typingctx):
    """Address of the process-wide settings block (see `settings`)."""

    def codegen(context, builder, sig, args):
        return builder.ptrtoint(setting_place(builder, 0), INT64)

    return types.int64(), codegen


def setting_place(builder, field):
    """Pointer to one of the process-wide settings."""
    variable = builder.module.globals.get(SETTINGS_SYMBOL)
    if variable is None:
        variable = ir.GlobalVariable(builder.module, INT64, SETTINGS_SYMBOL)
    return builder.gep(variable, [INT64(field)])


@intrinsic
def call_entry(typingctx, entry, operation, store, request):
    """Call the kernel entry point at an address: ``(operation, store, request) -> status``."""

    def codegen(context, builder, sig, args):
        function_type = ir.FunctionType(INT64, [INT64] * 3)
        return builder.call(builder.inttoptr(args[0], function_type.as_pointer()), args[1:])

    return types.int64(types.int64, types.int64, types.int64, types.int64), codegen


libc_malloc = types.ExternalFunction("malloc", types.intp(types.intp))
libc_free = types.ExternalFunction("free", types.void(types.intp))
libc_mmap = types.ExternalFunction(
    "mmap", types.intp(types.intp, types.intp, *[types.int32] * 3, types.intp)
)
libc_munmap = types.ExternalFunction("munmap", types.int32(types.intp, types.intp))
libc_madvise = types.ExternalFunction("madvise", types.int32(types.intp, types.intp, types.int32))


def kernel(function, **options):
    """``njit`` for the parts that kernels are made of; not callable from Python."""
    dispatcher = numba.njit(nogil=True, error_model="numpy", **options)(function)
    compile_by(dispatcher, PartCompiler)
    forget_literals(dispatcher)
    return dispatcher


@intrinsic(prefer_literal=True)
def room(typingctx, nbytes):
    """Address of so many bytes that the function has until it returns, as vectors are aligned."""

    def codegen(context, builder, sig, args):
        kind = ir.ArrayType(BYTE, nbytes.literal_value)
        with builder.goto_entry_block():  # `alloca_once` would have LLVM fill it, for a minute
            place = builder.alloca(kind)
        place.align = 64
        return builder.ptrtoint(place, INT64)

    return types.int64(nbytes), codegen


# Atomic steps, and waiting for other threads.


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


_yield = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
_let_others_run = types.ExternalFunction(_yield, types.int32())


@kernel
def relax(turn):
    """One turn of a loop that waits for another thread."""
    if turn < SPINS:
        pause()
    else:
        _let_others_run()


# Where objects of Python and arrays of NumPy hold what compiled code looks for. The head of an
# object is longer in some builds of Python: cached code reads its length from the settings.

#: Bytes of the head of a Python object; its last word is the address of the object's type. After
#: it, a float holds its value.
HEAD = object.__basicsize__

#: After the head of an array, in the order that NumPy's binary interface fixes
#: (``PyArrayObject_fields``): the addresses of its items, its rank (an int), the addresses of its
#: dimensions, strides and base, then those of its dtype object, and flags (an int).
ARRAY_DATA, ARRAY_RANK, ARRAY_DIMENSIONS, ARRAY_DTYPE, ARRAY_FLAGS = 0, 8, 16, 40, 48
#: Of the flags: in C order, and aligned.
ARRAY_READY = 0x1 | 0x100
