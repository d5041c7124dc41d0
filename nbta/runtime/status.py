"""Status codes of kernels: indices into `nbta.errors.REASONS`."""

from nbta.errors import REASONS


def _number(reason):
    (index,) = (i for i, row in enumerate(REASONS) if row.reason == reason)
    return index


OK = _number("ok")
CLOSED = _number("closed")
READ_OUT_OF_RANGE = _number("read_out_of_range")
WRITE_OUT_OF_RANGE = _number("write_out_of_range")
SCATTER_OUT_OF_RANGE = _number("scatter_out_of_range")
ALREADY_WRITTEN = _number("already_written")
ALREADY_READ = _number("already_read")
CLEARED = _number("cleared")
UNKNOWN_ELEMENT_SHAPE = _number("unknown_element_shape")
INCOMPATIBLE_ELEMENT_SHAPE = _number("incompatible_element_shape")
AGGREGATE_SHAPE = _number("aggregate_shape")
AGGREGATE_DTYPE = _number("aggregate_dtype")
WRITE_DTYPE = _number("write_dtype")
READ_DTYPE = _number("read_dtype")
RANK = _number("rank")
SCATTER_LENGTH = _number("scatter_length")
SCATTER_SCALAR = _number("scatter_scalar")
SPLIT_SCALAR = _number("split_scalar")
SPLIT_COUNT = _number("split_count")
SPLIT_SUM = _number("split_sum")
SPLIT_NEGATIVE = _number("split_negative")
CONCAT_SCALAR = _number("concat_scalar")
CONCAT_EXCEPT0 = _number("concat_except0")
INCONSISTENT_SHAPES = _number("inconsistent_shapes")
GATHER_ELEMENT_SHAPE = _number("gather_element_shape")
EMPTY_GATHER = _number("empty_gather")
EMPTY_CONCAT = _number("empty_concat")
NEGATIVE_SIZE = _number("negative_size")
PREPEND_NEGATIVE = _number("prepend_negative")
NO_GRADIENT = _number("no_gradient")
NOT_GRADIENT = _number("not_gradient")
TOO_LARGE = _number("too_large")
NOT_LOADED = _number("not_loaded")
NEGATIVE_EXTENT = _number("negative_extent")
GROWTH_IN_LOOP = _number("growth_in_loop")
DEPOSITED_TWICE = _number("deposited_twice")
BULK_IN_LOOP = _number("bulk_in_loop")
GRADIENT_RANK = _number("gradient_rank")
