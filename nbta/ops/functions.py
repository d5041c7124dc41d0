"""All functions on tensors that users call: those that the families export."""

from nbta.ops import numbers, tensor_methods
from nbta.ops.arithmetic import *
from nbta.ops.comparison import *
from nbta.ops.contraction import *
from nbta.ops.dispatch import FUNCTIONS
from nbta.ops.elementary import *
from nbta.ops.filling import *
from nbta.ops.gathering import *
from nbta.ops.indexing import *
from nbta.ops.joining import *
from nbta.ops.linalg import *
from nbta.ops.placeholder import *
from nbta.ops.products import *
from nbta.ops.rearranging import *
from nbta.ops.recurrences import *
from nbta.ops.reductions import *
from nbta.ops.shaping import *
from nbta.ops.slicing import *
from nbta.ops.softmax import *

__all__ = sorted(FUNCTIONS)
globals().update(FUNCTIONS)  # whatever else the families may call so
_INSTALLED = tensor_methods, numbers
