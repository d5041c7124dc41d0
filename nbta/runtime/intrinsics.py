"""What generated code is written in: typed pointers, calls, and the numbers all sides agree on.

A pointer, ``p[i]``, has no bounds, reference counts or wrapping round. Its type says which buffer
it points into (its scope). LLVM is told that different scopes never overlap, so that loops over
several buffers become vector instructions without checks at run time; with more than a handful of
them LLVM would give up otherwise.
"""

import operator
from functools import cache, partial

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model

from nbta.runtime.memory import (
    ARRAY_DATA,
    ARRAY_DIMENSIONS,
    ARRAY_FLAGS,
    ARRAY_RANK,
    ARRAY_READY,
    BYTE,
    INT64,
    build_array,
    copy_memory,
)
from nbta.runtime.numba_private import (
    AbstractTemplate,
    as_dtype,
    cgutils,
    infer_global,
    signature,
)
from nbta.tuning import UNWATCHED_TURNS

#: What a generated function returns; above the lowest four bits is the number of the exit.
OK, FAILED, LAYOUT, MEMORY, RESIZED, INTERRUPTED, NOT_A_NUMBER = range(7)
STATUSES = 16
#: No array has more: processes have 47 bits of addresses.
MOST_ITEMS = 2**47
#: Words that every table begins with: addresses of what any function may call; and the status of
#: a call of Python. What such a call returns says nothing where a signal's handler raises ahead of
#: its first line: ctypes prints the exception, and gives what it finds on the stack.
ENSURE, GROW, PYTHON, PLAIN, ANSWER, FIRST_WORD = range(6)
#: How operands of a product are taken: each transposed or not, the product added to what is there.
RIGHT, LEFT, ADD = 1, 2, 4

BYTES = BYTE.as_pointer()
#: Scopes that LLVM is told of; a pointer with a higher number may overlap with all.
SCOPES = 96
#: The scope of the table of words: none.
WORDS = 99


class Pointer(types.Type):
    """To items of one dtype in one buffer."""

    def __init__(self, dtype, scope):
        self.dtype, self.scope = dtype, scope
        super().__init__(f"Pointer({dtype}, {scope})")


@cache
def size_of(kind) -> int:
    """Bytes of a number; Numba would have LLVM parse a module for each answer, 1 ms."""
    return as_dtype(kind).itemsize


@register_model(Pointer)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        item = dmm[fe_type.dtype].get_data_type()
        super().__init__(dmm, fe_type, item.as_pointer())


@intrinsic(prefer_literal=True)
def pointer(typingctx, items, address, scope):
    """The items of a Numba number type at an address, in buffer number ``scope``."""
    result = Pointer(items.instance_type, scope.literal_value)

    def codegen(context, builder, sig, args):
        return builder.inttoptr(args[1], context.get_value_type(result))

    return result(items, types.int64, scope), codegen


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, args, kws):
        place, index = args
        if isinstance(place, Pointer) and isinstance(index, types.Integer):
            return signature(place.dtype, place, types.int64)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, args, kws):
        place, index, _ = args
        if isinstance(place, Pointer) and isinstance(index, types.Integer):
            return signature(types.none, place, types.int64, place.dtype)
        return None


@lower_builtin(operator.getitem, Pointer, types.Integer)
def _load(context, builder, sig, args):
    kind, place = sig.args[0], builder.gep(args[0], [args[1]], inbounds=True)
    if isinstance(kind.dtype, types.Boolean):  # Numba's own way is a branch
        value = builder.load(place)
        _note(builder, value, kind.scope)
        return builder.icmp_unsigned("!=", value, value.type(0))
    value = context.unpack_value(builder, kind.dtype, place)
    if isinstance(value, ir.instructions.LoadInstr):
        _note(builder, value, kind.scope)
    return value


@lower_builtin(operator.setitem, Pointer, types.Integer, types.Any)
def _store(context, builder, sig, args):
    kind, place = sig.args[0], builder.gep(args[0], [args[1]], inbounds=True)
    model = context.data_model_manager[kind.dtype]
    data = model.as_data(builder, args[2])
    stored = builder.store(data, place)
    if not isinstance(kind.dtype, types.Complex):
        _note(builder, stored, kind.scope)
    return context.get_dummy_value()


def _note(builder, instruction, scope):
    """Tell LLVM which scope an access is of, and which it has nothing to do with."""
    if scope >= SCOPES:
        return
    found = _scopes(builder.module).setdefault(builder.function.name, {})
    if "all" not in found:
        add, name = builder.module.add_metadata, builder.function.name
        domain, count = add([f"nbta buffers of {name}"]), found.get("count", SCOPES)
        found["all"] = [add([f"buffer {k}", domain]) for k in range(count)]
    if scope not in found:
        every = found["all"]
        others = [node for k, node in enumerate(every) if k != scope]
        found[scope] = [builder.module.add_metadata(nodes) for nodes in ([every[scope]], others)]
    own, others = found[scope]
    instruction.set_metadata("alias.scope", own)
    instruction.set_metadata("noalias", others)


def limit_scopes(function, count):
    """Say how many scopes there are in a function; LLVM reads a list of all for each."""
    _scopes(function.module)[function.name] = {"count": count}


def _scopes(module):
    return module.__dict__.setdefault("nbta_scopes", {})


def _items(builder, several):
    """The items of a tuple, which is a list where generated source is gone through."""
    return several if isinstance(several, list) else cgutils.unpack_tuple(builder, several)


@intrinsic
def call(typingctx, function, arguments):
    """The int64 that a C function of int64 at an address gives for a tuple of arguments."""

    def codegen(context, builder, sig, args):
        given = [
            context.cast(builder, value, found, types.int64)
            for value, found in zip(_items(builder, args[1]), arguments, strict=True)
        ]
        kind = ir.FunctionType(INT64, [INT64] * len(given)).as_pointer()
        return builder.call(builder.inttoptr(args[0], kind), given)

    return types.int64(types.int64, arguments), codegen


@intrinsic
def address(typingctx, place, index):
    """Where the item of a pointer is."""

    def codegen(context, builder, sig, args):
        start, index = args
        if not (isinstance(index, ir.Constant) and index.constant == 0):
            return builder.ptrtoint(builder.gep(start, [index]), INT64)
        if getattr(start, "opname", "") == "inttoptr":
            return start.operands[0]
        return builder.ptrtoint(start, INT64)

    return types.int64(place, types.int64), codegen


@intrinsic
def fast_add(typingctx, one, other):
    """A sum of floats that LLVM may do in any order, so that loops of it become vectors."""

    def codegen(context, builder, sig, args):
        return builder.fadd(*args, flags=("reassoc", "contract", "nsz"))

    return one(one, one), codegen


@intrinsic
def unless(typingctx, condition, value):
    """A float where a condition does not hold, else 0, without a branch.

    The gradient of a choice needs it beside the float where the condition holds. Of such a pair
    LLVM 22 makes a mask for the one and a branch for the other, which is wrong as often as the
    choice is open (dynamic time warping with its gradient: 16 ns a cell, 7 without). So it is what
    is left of the bits when those of the one are taken out.
    """

    def codegen(context, builder, sig, args):
        kind = args[1].type
        bits = ir.IntType(8 * size_of(sig.return_type))
        other = builder.select(args[0], args[1], kind(0.0))
        whole, taken = (builder.bitcast(each, bits) for each in (args[1], other))
        return builder.bitcast(builder.xor(whole, taken), kind)

    return value(condition, value), codegen


def _hidden(builder, number):
    """A number of which LLVM does not know what it is, from the function's beginning on."""
    with builder.goto_entry_block():
        kind = ir.FunctionType(number.type, [number.type])
        return builder.asm(kind, "", "=r,0", [number], False)


@intrinsic
def chosen(typingctx, condition, one, other):
    """One of two floats, where LLVM is not to see that it is a choice.

    Of a choice between a new number and an item, which is stored in the item's place, LLVM 22 makes
    a store under a mask. So bits are taken by a mask that is the truth value, 0 or 1, less a number
    of which LLVM does not know that it is 1.
    """

    def codegen(context, builder, sig, args):
        kind = args[1].type
        bits = ir.IntType(8 * size_of(sig.return_type))
        mask = builder.add(builder.zext(args[0], bits), _hidden(builder, bits(-1)))
        one, other = (builder.bitcast(each, bits) for each in args[1:])
        found = builder.xor(one, builder.and_(mask, builder.xor(one, other)))
        return builder.bitcast(found, kind)

    return one(condition, one, one), codegen


@intrinsic
def guarded(typingctx, adjoint, value):
    """A float where another one is not 0, else 0, without a branch.

    It is the product of an adjoint and a derivative, or another such value. Its bits are masked, as
    LLVM 22 makes one branch of the choices of all that an adjoint is in, and then no vector
    instructions: a gradient through products of matrices of 3 x 3 took 2.8 times as long.
    """

    def codegen(context, builder, sig, args):
        kind = args[0].type
        bits = ir.IntType(8 * size_of(sig.return_type))
        mask = builder.sext(builder.fcmp_unordered("!=", args[0], kind(0.0)), bits)
        return builder.bitcast(builder.and_(builder.bitcast(args[1], bits), mask), kind)

    return value(adjoint, value), codegen


@intrinsic
def carried(typingctx, value):
    """A float that the next iteration has, where LLVM is not to see that it comes from a branch.

    Of a number where ways meet, LLVM 22 holds that the next iteration cannot have it as one of a
    vector, and makes no vector instructions of the loop. It does not know that these bits are none.
    """

    def codegen(context, builder, sig, args):
        bits = ir.IntType(8 * size_of(sig.return_type))
        none = _hidden(builder, bits(0))
        return builder.bitcast(builder.xor(builder.bitcast(args[0], bits), none), args[0].type)

    return value(value), codegen


@intrinsic
def tick(typingctx, place):
    """Add 1 to the number at a pointer, each time and not once after a loop: a thread looks."""

    def codegen(context, builder, sig, args):
        value = builder.load_atomic(args[0], "monotonic", 8)
        builder.store_atomic(builder.add(value, INT64(1)), args[0], "monotonic", 8)
        return context.get_dummy_value()

    return types.void(place), codegen


@intrinsic
def copy(typingctx, target, at, source, start, count):
    """Copy items from one buffer to another, or to where they do not overlap."""

    def codegen(context, builder, sig, args):
        to, at, source, start, count = args
        size = size_of(target.dtype)
        one = builder.bitcast(builder.gep(to, [at]), BYTES)
        other = builder.bitcast(builder.gep(source, [start]), BYTES)
        copy_memory(builder, one, other, builder.mul(count, INT64(size)))
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), codegen


@intrinsic
def has_nan(typingctx, items, at, count):
    """Whether there is a NaN among so many floats or complex numbers of a buffer from a place on.

    Truth values are widened to the floats' size: LLVM makes vector instructions of their union.
    """

    def codegen(context, builder, sig, args):
        real = getattr(items.dtype, "underlying_float", items.dtype)
        floats = context.get_value_type(real)
        wide = ir.IntType(8 * size_of(real))
        to, at, count = args
        place = builder.bitcast(builder.gep(to, [at]), floats.as_pointer())
        count = builder.mul(count, INT64(size_of(items.dtype) // size_of(real)))
        found = cgutils.alloca_once_value(builder, wide(0))
        with cgutils.for_range(builder, count) as loop:
            item = builder.load(builder.gep(place, [loop.index], inbounds=True))
            is_nan = builder.zext(builder.fcmp_unordered("uno", item, item), wide)
            builder.store(builder.or_(builder.load(found), is_nan), found)
        return builder.icmp_unsigned("!=", builder.load(found), wide(0))

    return types.boolean(items, types.int64, types.int64), codegen


@intrinsic
def clear(typingctx, target, at, count):
    """Fill with zeros."""

    def codegen(context, builder, sig, args):
        to, at, count = args
        size = size_of(target.dtype)
        place = builder.bitcast(builder.gep(to, [at]), BYTES)
        cgutils.memset(builder, place, builder.mul(count, INT64(size)), 0)
        return context.get_dummy_value()

    return types.void(target, types.int64, types.int64), codegen


@intrinsic
def refuse(typingctx, condition, status):
    """Leave the function with a status where a condition holds."""

    def codegen(context, builder, sig, args):
        with cgutils.if_unlikely(builder, args[0]):
            context.call_conv.return_value(builder, args[1])
        return context.get_dummy_value()

    return types.void(types.boolean, types.int64), codegen


@intrinsic(prefer_literal=True)
def room(typingctx, items, w, word, dimensions, scope):
    """Pointer to the buffer of a word, with room for some dimensions, or the function is left."""
    result = Pointer(items.instance_type, scope.literal_value)
    size, count = size_of(result.dtype), len(dimensions)

    def found(builder, args, leave):
        words, word, *factors = args
        nbytes, wrapped = _product(builder, factors, INT64(size))
        with cgutils.if_unlikely(builder, wrapped):
            leave(INT64(MEMORY))
        place = word_at(builder, words, word)
        have = builder.load(builder.gep(place, [INT64(1)]))
        with cgutils.if_unlikely(builder, builder.icmp_signed("<", have, nbytes)):
            status = call_word(builder, words, ENSURE, [word, nbytes])
            have = builder.load(builder.gep(place, [INT64(1)]))
            with cgutils.if_unlikely(builder, builder.icmp_signed("<", have, nbytes)):
                full = builder.icmp_signed("==", status, INT64(MEMORY))
                leave(builder.select(full, INT64(MEMORY), INT64(INTERRUPTED)))
        return builder.load(place)

    def codegen(context, builder, sig, args):
        _, words, word, several, _ = args
        given = [words, word, *_lengths(context, builder, several, dimensions)]
        start = _address(context, builder, f"room_{size}_{count}", found, given)
        return builder.inttoptr(start, context.get_value_type(result))

    return result(items, types.int64, types.int64, dimensions, scope), codegen


@intrinsic
def too_many(typingctx, dimensions):
    """Whether arrays of some dimensions have more items than memory can have bytes."""

    def codegen(context, builder, sig, args):
        factors = _lengths(context, builder, args[0], dimensions)
        items, wrapped = _product(builder, factors, INT64(1))
        return builder.or_(wrapped, builder.icmp_signed(">", items, INT64(MOST_ITEMS)))

    return types.boolean(dimensions), codegen


def _lengths(context, builder, several, kinds):
    """The items of a tuple of integers, as they are counted here."""
    pairs = zip(_items(builder, several), kinds, strict=True)
    return [context.cast(builder, value, kind, types.int64) for value, kind in pairs]


def _product(builder, factors, product):
    """A number times others, and whether that wrapped round."""
    wrapped = cgutils.false_bit
    for factor in factors:
        both = builder.smul_with_overflow(product, factor)
        product = builder.extract_value(both, 0)
        wrapped = builder.or_(wrapped, builder.extract_value(both, 1))
    return product, wrapped


def share_calls(module, shares=True):
    """Let arrays and buffers of a module's functions be found by functions of its own, from now on.

    The way to a buffer is thirty instructions, which LLVM need not go through again for each.
    """
    module.__dict__["nbta_shares"] = shares


def _address(context, builder, name, found, args):
    """An address, as ``found(builder, args, leave)`` has it; where it leaves, so does the function.

    No address is as small as a status.
    """
    if not getattr(builder.module, "nbta_shares", False):
        return found(builder, args, partial(context.call_conv.return_value, builder))
    function = builder.module.globals.get(name) or _address_function(
        builder.module, name, found, len(args)
    )
    result = builder.call(function, args)
    is_status = builder.icmp_unsigned("<", builder.sub(result, INT64(1)), INT64(STATUSES - 1))
    with cgutils.if_unlikely(builder, is_status):
        context.call_conv.return_value(builder, result)
    return result


def _address_function(module, name, found, arity):
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(INT64, [INT64] * arity), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    inner = ir.IRBuilder(function.append_basic_block())
    inner.ret(found(inner, list(function.args), inner.ret))
    return function


def word_at(builder, words, number):
    """The place of a word, for other intrinsics."""
    place = builder.inttoptr(words, INT64.as_pointer())
    return builder.gep(place, [number])


def call_word(builder, words, number, args):
    """Call the function whose address is in a word, for other intrinsics."""
    number = INT64(number) if isinstance(number, int) else number
    function = builder.load(word_at(builder, words, number))
    kind = ir.FunctionType(INT64, [INT64] * len(args)).as_pointer()
    return builder.call(builder.inttoptr(function, kind), args)


#: Functions of Python's C interface for that, whose addresses are in consecutive words.
WATCH = ("PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release")


@intrinsic
def watch(typingctx, w, word, iteration):
    """Let Python see its signals now and then; the function is left where one raises.

    The exception is then set: whatever Python calls the function by finds it.
    """

    def codegen(context, builder, sig, args):
        turn = builder.and_(args[2], INT64(UNWATCHED_TURNS))
        with cgutils.if_unlikely(
            builder, builder.icmp_unsigned("==", turn, INT64(UNWATCHED_TURNS))
        ):
            places = [builder.add(args[1], INT64(k)) for k in range(len(WATCH))]
            state = call_word(builder, args[0], places[0], [])
            raised = builder.trunc(call_word(builder, args[0], places[1], []), ir.IntType(32))
            call_word(builder, args[0], places[2], [state])
            with cgutils.if_unlikely(builder, builder.icmp_signed("!=", raised, ir.IntType(32)(0))):
                context.call_conv.return_value(builder, INT64(INTERRUPTED))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


# Arrays of whoever calls, by the addresses of their Python objects (see `memory`).


def _field(builder, start, offset, kind=INT64):
    return builder.load(builder.inttoptr(builder.add(start, INT64(offset)), kind.as_pointer()))


def _dimensions_of(builder, start, count):
    first = _field(builder, start, ARRAY_DIMENSIONS)
    return [_field(builder, first, 8 * axis) for axis in range(count)]


@intrinsic(prefer_literal=True)
def array_in(typingctx, items, w, word, head, rank, scope):
    """Pointer to the items of an array that is given, or the function is left."""
    result, count = Pointer(items.instance_type, scope.literal_value), rank.literal_value
    int32 = ir.IntType(32)

    def found(builder, args, leave):
        words, word, head = args
        start = builder.add(builder.load(word_at(builder, words, word)), head)
        wrong = builder.icmp_signed("!=", _field(builder, start, ARRAY_RANK, int32), int32(count))
        with cgutils.if_unlikely(builder, wrong):
            leave(INT64(FAILED))
        flags = builder.and_(_field(builder, start, ARRAY_FLAGS, int32), int32(ARRAY_READY))
        with cgutils.if_unlikely(builder, builder.icmp_signed("!=", flags, int32(ARRAY_READY))):
            leave(INT64(LAYOUT))
        return _field(builder, start, ARRAY_DATA)

    def codegen(context, builder, sig, args):
        start = _address(context, builder, f"array_in_{count}", found, args[1:4])
        return builder.inttoptr(start, context.get_value_type(result))

    number = types.int64
    return result(items, number, number, number, rank, scope), codegen


@intrinsic
def dimension_in(typingctx, w, word, head, axis):
    """A dimension of an array that is given."""

    def codegen(context, builder, sig, args):
        start = builder.add(builder.load(word_at(builder, args[0], args[1])), args[2])
        first = _field(builder, start, ARRAY_DIMENSIONS)
        place = builder.add(first, builder.mul(args[3], INT64(8)))
        return builder.load(builder.inttoptr(place, INT64.as_pointer()))

    return types.int64(types.int64, types.int64, types.int64, types.int64), codegen


@intrinsic(prefer_literal=True)
def adopt(typingctx, w, word, given, head, rank, itemsize):
    """Make the items of an array that is given, if any, the buffer of a word."""
    count = rank.literal_value

    def codegen(context, builder, sig, args):
        w, word, given, head, _, size = args
        place = word_at(builder, w, word)
        room = builder.gep(place, [INT64(1)])
        builder.store(INT64(0), room)
        found = builder.load(word_at(builder, w, given))
        with builder.if_then(builder.icmp_signed("!=", found, INT64(0))):
            start = builder.add(found, head)
            for dimension in _dimensions_of(builder, start, count):
                size = builder.mul(size, dimension)
            builder.store(size, room)
            builder.store(_field(builder, start, ARRAY_DATA), place)
        return context.get_dummy_value()

    number = types.int64
    return types.void(number, number, number, number, rank, number), codegen  # by rank


@intrinsic
def agrees(typingctx, w, given, head, dimensions):
    """Whether an array is given that has some dimensions."""

    def codegen(context, builder, sig, args):
        w, given, head, dimensions = args
        found = builder.load(word_at(builder, w, given))
        same = cgutils.alloca_once_value(builder, cgutils.false_bit)
        with builder.if_then(builder.icmp_signed("!=", found, INT64(0))):
            wanted = _items(builder, dimensions)
            have = _dimensions_of(builder, builder.add(found, head), len(wanted))
            equal = cgutils.true_bit
            for one, other in zip(wanted, have, strict=True):
                equal = builder.and_(equal, builder.icmp_signed("==", one, other))
            builder.store(equal, same)
        return builder.load(same)

    return types.boolean(types.int64, types.int64, types.int64, dimensions), codegen


# Users' own compiled functions.


@intrinsic
def frozen(typingctx, place, index, dimensions):
    """A read-only array of the items of a pointer from an index on."""
    result = types.Array(place.dtype, len(dimensions), "C", readonly=True)

    def codegen(context, builder, sig, args):
        address = builder.ptrtoint(builder.gep(args[0], [args[1]]), INT64)
        lengths = list(_items(builder, args[2]))
        return build_array(context, builder, result, address, lengths)

    return result(place, types.int64, dimensions), codegen


@intrinsic
def opaque(typingctx, value):
    """An integer of which LLVM does not know where it comes from."""

    def codegen(context, builder, sig, args):
        kind = ir.FunctionType(INT64, [INT64])
        return builder.call(ir.InlineAsm(kind, "", "=r,0"), args)

    return types.int64(types.int64), codegen


@intrinsic
def fence(typingctx):
    """A place that no access moves past: pointers of two scopes change places there.

    LLVM takes scopes to lie apart all the time. They do until here, and they do from here on.
    """

    def codegen(context, builder, sig, args):
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(ir.InlineAsm(kind, "", "~{memory}", side_effect=True), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def attempt(typingctx, function, arguments):
    """What a compiled function gives for a tuple of arguments; where it raises, ours is left."""
    kinds = tuple(map(types.unliteral, arguments))
    inner = function.get_call_type(typingctx, kinds, {})

    def codegen(context, builder, sig, args):
        compiled = function.dispatcher.get_compile_result(inner)
        context.active_code_library.add_linking_library(compiled.library)
        given = [
            context.cast(builder, *given)
            for given in zip(_items(builder, args[1]), arguments, inner.args, strict=True)
        ]
        status, value = context.call_internal_no_propagate(builder, compiled.fndesc, inner, given)
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_value(builder, INT64(FAILED))
        return value

    return inner.return_type(function, arguments), codegen
