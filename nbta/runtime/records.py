"""Single records in compiled code: values, copied from the array.

Numba passes a record of its own by its address. One that was read would then lie in memory that may
go, and one that a function gave would change with the next call. A `RecordType` holds the bytes.
"""

from functools import cache

from llvmlite import ir
from numba import types
from numba.extending import (
    box,
    infer,
    infer_getattr,
    intrinsic,
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    models,
    register_model,
)

from nbta.runtime import memory as mem
from nbta.runtime.memory import BYTE, INT64
from nbta.runtime.numba_private import (
    AbstractTemplate,
    AttributeTemplate,
    Conversion,
    cgutils,
    signature,
)


class RecordType(types.Type):
    """A record by its value.

    Parameters
    ----------
    record : types.Record
        Numba's type, by address.
    """

    def __init__(self, record):
        self.record = record
        super().__init__(f"nbta.Record({record})")

    def can_convert_to(self, typingctx, other):
        """Where one of Numba's is taken, so is this."""
        return Conversion.safe if other == self.record else None


def value_type(item):
    """The type of an item of a dtype in compiled code."""
    return RecordType(item) if isinstance(item, types.Record) else item


@register_model(RecordType)
class _RecordModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        words = max(1, -(-kind.record.size // 8))
        super().__init__(manager, kind, ir.ArrayType(INT64, words))


def loaded(context, builder, record, source):
    """The record at a pointer, as a value."""
    place = cgutils.alloca_once(builder, context.get_value_type(RecordType(record)))
    cgutils.raw_memcpy(builder, place, source, context.get_constant(types.intp, record.size), 1)
    return builder.load(place)


def spilled(context, builder, kind, value):
    """A pointer to a value's bytes, of Numba's type for records."""
    place = cgutils.alloca_once_value(builder, value)
    return builder.bitcast(place, context.get_value_type(kind.record))


@cache
def value_reader(item):
    """`memory.item_reader`, which gives records as values."""
    if not isinstance(item, types.Record):
        return mem.item_reader(item)

    @intrinsic
    def load_record(typingctx, address):
        def codegen(context, builder, sig, args):
            source = builder.inttoptr(args[0], BYTE.as_pointer())
            return loaded(context, builder, item, source)

        return RecordType(item)(types.int64), codegen

    return load_record


@intrinsic
def value_of(typingctx, record):
    """A record of Numba's, which lies in an array, by its value."""

    def codegen(context, builder, sig, args):
        return loaded(context, builder, sig.args[0], args[0])

    return RecordType(record)(record), codegen


@lower_cast(RecordType, types.Record)
def _as_record(context, builder, kind, record, value):
    return spilled(context, builder, kind, value)


@box(RecordType)
def _box(kind, value, c):
    return c.box(kind.record, spilled(c.context, c.builder, kind, value))


def _field_type(record, name):
    """The type of a field; None where there is none."""
    if name not in record.fields:
        return None
    kind = record.typeof(name)
    if isinstance(kind, types.NestedArray):
        return types.Array(kind.dtype, kind.ndim, "C")
    return value_type(kind)


def _field(context, builder, kind, value, name):
    """A field's value; an array in a record is copied."""
    record, stored = kind.record, kind.record.typeof(name)
    start = builder.bitcast(spilled(context, builder, kind, value), BYTE.as_pointer())
    place = builder.gep(start, [INT64(record.offset(name))])
    if isinstance(stored, types.Record):
        return loaded(context, builder, stored, place)
    if not isinstance(stored, types.NestedArray):
        pointer = builder.bitcast(place, context.get_data_type(stored).as_pointer())
        return context.unpack_value(builder, stored, pointer, align=1)
    array = _field_type(record, name)
    dimensions = [INT64(dimension) for dimension in stored.shape]
    view = mem.build_array(context, builder, array, builder.ptrtoint(place, INT64), dimensions)
    return context.compile_internal(builder, lambda a: a.copy(), array(array), [view])


@infer_getattr
class _Fields(AttributeTemplate):
    key = RecordType

    def generic_resolve(self, kind, name):
        return _field_type(kind.record, name)


@infer
class _NamedField(AbstractTemplate):
    key = "static_getitem"

    def generic(self, args, kws):
        kind, name = args
        if isinstance(kind, RecordType) and isinstance(name, str):
            found = _field_type(kind.record, name)
            return None if found is None else signature(found, *args)
        return None


@lower_getattr_generic(RecordType)
def _get_field(context, builder, kind, value, name):
    return _field(context, builder, kind, value, name)


@lower_builtin("static_getitem", RecordType, types.StringLiteral)
def _get_named_field(context, builder, sig, args):
    return _field(context, builder, sig.args[0], args[0], sig.args[1].literal_value)
