"""Arguments of a tensor array's methods in compiled code, checked while compiling."""

from numba.core import types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.typeconv import Conversion

from nbta.dtypes import CODES, OTHER

_KEEPS_VALUE = (Conversion.exact, Conversion.promote, Conversion.safe)


def code_of(item) -> int:
    """The kernels' code of a Numba dtype."""
    return CODES.get(str(item), OTHER)


def item_bytes(item) -> int:
    """Bytes of an item of a Numba dtype in memory."""
    context = cpu_target.target_context
    return context.get_abi_sizeof(context.data_model_manager[item].get_data_type())


def check_index(method, index):
    """An index is an integer."""
    if not isinstance(index, types.Integer | types.IntegerLiteral):
        raise TypingError(f"{method}: index must be an integer, not {index}")


def require_rank(method, array):
    """What a method gives has a rank that compiled code must know."""
    if array.ndim is None:
        raise TypingError(
            f"{method}: the rank of the elements is not known when compiling; make the array with "
            f"element_shape= (its extents may be None)"
        )


def check_value(method, array, value):
    """Complain about a value that no slot takes, in terms of the user's argument."""
    if isinstance(value, types.Array):
        if value.dtype != array.dtype:
            raise TypingError(
                f"{method}: the array holds {array.dtype} and the value {value.dtype}; cast it "
                f"with .astype(np.{array.dtype})"
            )
    elif not _becomes(array.dtype, value):
        raise TypingError(
            f"{method}: the array holds {array.dtype} and the value is {value}; cast it with "
            f"np.{array.dtype}(...)"
        )
    rank = value.ndim if isinstance(value, types.Array) else 0
    if array.ndim not in (None, rank):
        raise TypingError(
            f"{method}: elements have {array.ndim} dimensions and the value has {rank}; give it "
            f"the element shape"
        )


def _becomes(item, value):
    """Whether a scalar becomes an item without loss."""
    if isinstance(value, types.IntegerLiteral) and isinstance(item, types.Integer):
        return item.minval <= value.literal_value <= item.maxval
    value = types.unliteral(value)
    if isinstance(item, types.Boolean) != isinstance(value, types.Boolean):
        return False
    return cpu_target.typing_context.can_convert(value, item) in _KEEPS_VALUE


def item_words(item) -> int:
    """Words of 8 bytes that hold an item."""
    return -(-item_bytes(item) // 8)
