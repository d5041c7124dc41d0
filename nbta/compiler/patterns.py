"""What operations on arrays say of the shapes of elements."""

from nbta import shapes
from nbta.ops.arrays import CONCAT, GATHER, LOOKUP_WITH_SHAPE, READ, SCATTER, SPLIT


def merge_into(attrs, key, pattern):
    """Add to a pattern; whether it says more now."""
    try:
        merged = shapes.merge(attrs[key], pattern)
    except ValueError:
        return False  # it fails when it runs, if it runs
    news = merged != attrs[key]
    attrs[key] = merged
    return news


def stored(op):
    """The shape of the elements that an operation writes."""
    shape = op.inputs[op.record.value_input].spec.shape
    if op.record is SPLIT:
        return shape and (None, *shape[1:])
    return shape and shape[1:] if op.record is SCATTER else shape


def tells_shape(op):
    """Whether an operation fixes an element shape for slots that nothing is written to."""
    key = "element_shape_except0" if op.record is CONCAT else "element_shape"
    asks = op.record in (GATHER, READ, CONCAT) and op.attrs.get(key) is not None
    return asks or op.record is LOOKUP_WITH_SHAPE
