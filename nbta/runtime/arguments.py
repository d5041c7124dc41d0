"""Arguments of a tensor array's methods in compiled code, checked while compiling."""

from numba.core import types
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.core.typeconv import Conversion
from numba.np.numpy_support import as_dtype

from nbta.dtypes import CODES, OTHER
from nbta.shapes import MAX_RANK

_KEEPS_VALUE = (Conversion.exact, Conversion.promote, Conversion.safe)


def code_of(item) -> int:
    """The kernels' code of a Numba dtype."""
    return CODES.get(str(item), OTHER)


def item_bytes(item) -> int:
    """Bytes of an item of a Numba dtype in memory."""
    context = cpu_target.target_context
    return context.get_abi_sizeof(context.data_model_manager[item].get_data_type())


#: Largest integers up to which each float dtype has all of them.
_EXACT_INTEGERS = {types.float32: 2**24, types.float64: 2**53}


def check_index(method, index, argument="index"):
    """An index is an integer."""
    if not isinstance(index, types.Integer | types.IntegerLiteral):
        raise TypingError(f"{method}: {argument} must be an integer, not {index}")


def require_rank(method, array):
    """What a method gives has a rank that compiled code must know."""
    if array.ndim == 0 and method == "read":
        _refuse_record(method, array.dtype)
    if array.ndim is None:
        raise TypingError(
            f"{method}: the rank of the elements is not known when compiling; make the array with "
            f"element_shape= (its extents may be None)"
        )


def _refuse_record(method, item):
    """Numba passes a record by its address, which must not outlive the array."""
    if isinstance(item, types.Record):
        raise TypingError(
            f"{method}: compiled code does not pass single records; give the elements a dimension, "
            f"such as element_shape=(1,), or use the array from Python"
        )


def check_value(method, array, value):
    """Complain about a value that no slot takes, in terms of the user's argument."""
    is_array = isinstance(value, types.Array)
    if not is_array:
        _refuse_record(method, value)
    if not (value.dtype == array.dtype if is_array else _becomes(array.dtype, value)):
        given = value.dtype if is_array else value
        raise TypingError(
            f"{method}: the array holds {array.dtype} and the value is {given}; "
            f"{_remedy(array.dtype, is_array)}"
        )
    rank = value.ndim if is_array else 0
    if rank > MAX_RANK:
        raise TypingError(
            f"{method}: elements have at most {MAX_RANK} dimensions and the value has {rank}; "
            f"reshape it"
        )
    if array.ndim not in (None, rank):
        raise TypingError(
            f"{method}: elements have rank {array.ndim} and the value has rank {rank}; reshape it, "
            f"or make the array with another element_shape="
        )


def _remedy(item, is_array):
    """How a value gets the dtype of the array."""
    if isinstance(item, types.Number | types.Boolean):
        return f"cast it with {f'.astype(np.{item})' if is_array else f'np.{item}(...)'}"
    return f"pass {'an array' if is_array else 'an item of an array'} of dtype {as_dtype(item)}"


def _becomes(item, value):
    """Whether a scalar becomes an item without loss."""
    if isinstance(value, types.IntegerLiteral) and isinstance(item, types.Integer):
        return item.minval <= value.literal_value <= item.maxval
    if isinstance(value, types.IntegerLiteral) and item in _EXACT_INTEGERS:
        return abs(value.literal_value) <= _EXACT_INTEGERS[item]
    value = types.unliteral(value)
    if not isinstance(item, types.Number | types.Boolean):
        return value == item  # Numba would cut a longer string off
    if isinstance(item, types.Boolean) != isinstance(value, types.Boolean):
        return False
    return cpu_target.typing_context.can_convert(value, item) in _KEEPS_VALUE


def item_words(item) -> int:
    """Words of 8 bytes that hold an item."""
    return -(-item_bytes(item) // 8)
