"""Users' own compiled functions, called from generated code."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from nbta.runtime.memory import build_array
from nbta.runtime.protocol import FAILED

_INT64 = ir.IntType(64)


@intrinsic
def frozen(typingctx, place, index, extents):
    """A read-only array of the items of a pointer from an index on."""
    result = types.Array(place.dtype, len(extents), "C", readonly=True)

    def codegen(context, builder, sig, args):
        address = builder.ptrtoint(builder.gep(args[0], [args[1]]), _INT64)
        lengths = [builder.extract_value(args[2], k) for k in range(len(extents))]
        return build_array(context, builder, result, address, lengths)

    return result(place, types.int64, extents), codegen


@intrinsic
def attempt(typingctx, function, arguments):
    """What a compiled function gives for a tuple of arguments; where it raises, ours is left."""
    kinds = tuple(map(types.unliteral, arguments))
    inner = function.get_call_type(typingctx, kinds, {})

    def codegen(context, builder, sig, args):
        compiled = function.dispatcher.get_compile_result(inner)
        context.active_code_library.add_linking_library(compiled.library)
        given = [
            context.cast(builder, builder.extract_value(args[1], k), have, want)
            for k, (have, want) in enumerate(zip(arguments, inner.args, strict=True))
        ]
        status, value = context.call_internal_no_propagate(builder, compiled.fndesc, inner, given)
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_value(builder, _INT64(FAILED))
        return value

    return inner.return_type(function, arguments), codegen
