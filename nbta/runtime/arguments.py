"""Arguments of a tensor array's methods in compiled code, checked while compiling."""

from numba import types

from nbta.dtypes import CODES, OTHER
from nbta.runtime.failures import refusal
from nbta.runtime.numba_private import Conversion, as_dtype, cpu_target
from nbta.runtime.records import RecordType
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
        raise refusal(f"{method}: {argument} must be an integer, not {index}")


def require_rank(method, array):
    """What a method gives has a rank that compiled code must know."""
    if array.ndim is None:
        raise refusal(
            f"{method}: the rank of the elements is not known when compiling; make the array with "
            f"element_shape= (its dimensions may be None), and give shape_to_prepend as a tuple"
        )


def check_vector(method, argument, value):
    """A vector of integers: an array, a list or a tuple."""
    if isinstance(value, types.Array):
        holds = value.ndim == 1 and isinstance(value.dtype, types.Integer)
    elif isinstance(value, types.BaseTuple):
        holds = all(isinstance(item, types.Integer | types.IntegerLiteral) for item in value)
    else:
        is_list = isinstance(value, types.List | types.ListType)
        holds = is_list and isinstance(value.dtype, types.Integer)
    if not holds:
        raise refusal(f"{method}: {argument} must be a vector of integers, not {value}")


def nested_shape(value) -> tuple:
    """Shape of a nested tuple; () for what is no tuple."""
    if not isinstance(value, types.BaseTuple):
        return ()
    shapes = {nested_shape(item) for item in value}
    if len(shapes) > 1:
        raise refusal(f"the nested tuple {value} is no array: its rows must have one length")
    return (len(value), *(shapes.pop() if shapes else ()))


def rank_of(value) -> int:
    """Rank of a value that compiled code gives."""
    if isinstance(value, types.Array):
        return value.ndim
    return 1 if isinstance(value, types.List | types.ListType) else len(nested_shape(value))


def _leaves(value):
    """Types of the items of a nested tuple or a list; of what is neither, itself."""
    if isinstance(value, types.BaseTuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, types.List | types.ListType):
        yield value.dtype
    else:
        yield value


def check_items(method, array, value):
    """Complain about a value whose dtype is not the array's, nor becomes it without loss."""
    is_array = isinstance(value, types.Array)
    if is_array and value.dtype == array.dtype:
        return
    for given in [value.dtype] if is_array else _leaves(value):
        if is_array or not _becomes(array.dtype, given):
            raise refusal(
                f"{method}: the array holds {array.dtype} and the value is {given}; "
                f"{_remedy(array.dtype, is_array)}"
            )


def check_rows(method, array, value, spare=0):
    """Complain about a value that is not written as a whole, but by rows or pieces."""
    check_items(method, array, value)
    _check_rank(method, rank_of(value) - spare)


def _check_rank(method, rank):
    if rank > MAX_RANK:
        raise refusal(
            f"{method}: elements have at most {MAX_RANK} dimensions and the value has {rank}; "
            f"reshape it"
        )


def check_value(method, array, value):
    """Complain about a value that no slot takes, in terms of the user's argument."""
    check_items(method, array, value)
    rank = rank_of(value)
    _check_rank(method, rank)
    if array.ndim not in (None, rank):
        raise refusal(
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
    value = value.record if isinstance(value, RecordType) else types.unliteral(value)
    if not isinstance(item, types.Number | types.Boolean):
        return value == item  # Numba would cut a longer string off
    if isinstance(item, types.Boolean) != isinstance(value, types.Boolean):
        return False
    return cpu_target.typing_context.can_convert(value, item) in _KEEPS_VALUE
