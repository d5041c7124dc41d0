"""What operations give that is more than one array, in Python and in compiled code."""

from typing import NamedTuple

import numpy as np


class Concat(NamedTuple):
    """The result of `TensorArray.concat`."""

    value: np.ndarray
    lengths: np.ndarray
