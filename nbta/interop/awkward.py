"""Arrays as awkward's, and back: numbers in one buffer, and elements of several lengths."""

from __future__ import annotations

from typing import Any

import awkward
import numpy as np

from nbta import errors
from nbta.arrow import parts
from nbta.tensor_array import TensorArray

_KINDS = "biufcmM"


def from_array(array: Any) -> Any:
    """The implementation of `nbta.interop.to_awkward`."""
    if not isinstance(array, TensorArray):
        raise _invalid("to_awkward", f"array must be an eager TensorArray, not {array!r}")
    if array.dtype.kind not in _KINDS:
        raise _invalid("to_awkward", f"awkward has no numbers of dtype {array.dtype}")
    rows, offsets = parts(array, "nbta.interop.to_awkward")
    if offsets is None:
        return awkward.from_numpy(rows)
    content = awkward.from_numpy(rows, highlevel=False)
    layout = awkward.contents.ListOffsetArray(awkward.index.Index64(offsets), content)
    return awkward.Array(layout)


def to_array(array: Any, dynamic_size: bool) -> Any:
    """The implementation of `nbta.interop.from_awkward`."""
    layout = _present(awkward.to_packed(awkward.to_layout(array), highlevel=False))
    if isinstance(layout, awkward.contents.ListOffsetArray):
        offsets, rows = np.asarray(layout.offsets), _numbers(layout.content)
        made = TensorArray(
            rows.dtype,
            len(offsets) - 1,
            dynamic_size,
            element_shape=(None, *rows.shape[1:]),
            infer_shape=False,
        )
        return made.split(rows, np.diff(offsets))
    values = _numbers(layout)
    made = TensorArray(values.dtype, len(values), dynamic_size, element_shape=values.shape[1:])
    return made.unstack(values)


def _present(layout):
    """What a layout holds that allows for missing values and has none, as Arrow's have it."""
    if layout.is_option and not layout.mask_as_bool(valid_when=False).any():
        return layout.project()
    return layout


def _numbers(layout):
    """A layout as an array of NumPy's; refused where it is more than that."""
    layout = inner = _present(layout)
    while isinstance(inner, awkward.contents.RegularArray):
        inner = inner.content
    if not isinstance(inner, awkward.contents.NumpyArray) or inner.parameter("__array__"):
        raise _invalid(
            "from_awkward",
            f"array must be numbers, or lists of numbers, without missing values, and has "
            f"{layout.form.type}",
        )
    return awkward.to_numpy(layout, allow_missing=False)


def _invalid(function, message):
    return errors.invalid("awkward", f"nbta.interop.{function}: {message}")
